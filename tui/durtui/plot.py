"""Curves as braille dots: pure code. A curve is told by its dash as well as by its colour, so it needs no colour."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

DOTS_ACROSS, DOTS_DOWN = 2, 4  # of one braille character
BRAILLE = 0x2800
DOT_BITS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # by row and column of a character
DASHES = ((8, 8), (6, 3), (4, 1))  # period and how much of it is drawn: solid, dashed, dotted
STROKES = ("━━━", "╸╸╸", "···")  # the same dashes in a legend
BAND, MARKER = "░", "│"


@dataclass(frozen=True, slots=True)
class Curve:
    """A mean with a deviation at each of some rising x: three sequences of one length, at least one point."""

    xs: tuple[float, ...]
    means: tuple[float, ...]
    deviations: tuple[float, ...]

    def at(self, x: float) -> tuple[float, float]:
        """Mean and deviation at `x`, straight between two points and level beyond the ends."""
        right = min(max(bisect_left(self.xs, x), 1), len(self.xs) - 1)
        if len(self.xs) == 1:
            return self.means[0], self.deviations[0]
        low, high = self.xs[right - 1], self.xs[right]
        part = min(max((x - low) / (high - low), 0.0), 1.0)
        mean = self.means[right - 1] * (1 - part) + self.means[right] * part
        return mean, self.deviations[right - 1] * (1 - part) + self.deviations[right] * part


@dataclass(frozen=True, slots=True)
class Cell:
    """One character of a plot: what it shows, and of which curve (None: of none)."""

    character: str
    curve: int | None


EMPTY = Cell(" ", None)


def dash(curve: int, dot: int) -> bool:
    """Whether a curve is drawn at this column of dots."""
    period, drawn = DASHES[curve % len(DASHES)]
    return dot % period < drawn


def bounds(curves: Sequence[Curve]) -> tuple[float, float]:
    """The lowest and the highest value that the curves reach with their bands; they differ, and 0 is among them."""
    low = min(0.0, *(m - d for c in curves for m, d in zip(c.means, c.deviations, strict=True)))
    high = max(0.0, *(m + d for c in curves for m, d in zip(c.means, c.deviations, strict=True)))
    return low, high if high > low else low + 1.0


def plot(curves: Sequence[Curve], width: int, height: int, marker: float) -> list[list[Cell]]:
    """`height` rows of `width` cells: the curves, the bands of one deviation around them, and a line at x = `marker`.

    All curves share their first x, and each is drawn up to its own last. Where curves meet in one cell the last one's
    colour stands: dashes are seen over a solid line.
    """
    if width < 1 or height < 1:
        return []
    low, high = bounds(curves)
    rows, columns = height * DOTS_DOWN, width * DOTS_ACROSS
    first, last = curves[0].xs[0], max(curve.xs[-1] for curve in curves)
    xs = [first + (last - first) * dot / max(columns - 1, 1) for dot in range(columns)]

    def row_of(value: float) -> int:
        return min(max(round((high - value) / (high - low) * (rows - 1)), 0), rows - 1)

    dots: list[dict[tuple[int, int], int]] = []  # by curve: the bits of each cell
    for index, curve in enumerate(curves):
        dots.append({})
        heights = [row_of(curve.at(x)[0]) for x in xs if x <= curve.xs[-1]]
        for dot, (before, here) in enumerate(pairwise([heights[0], *heights])):
            if dash(index, dot):
                for row in _between(before, here):
                    cell = (row // DOTS_DOWN, dot // DOTS_ACROSS)
                    bit = DOT_BITS[row % DOTS_DOWN][dot % DOTS_ACROSS]
                    dots[index][cell] = dots[index].get(cell, 0) | bit
    grid = [[_dotted(dots, row, column) for column in range(width)] for row in range(height)]
    _fill_bands(grid, curves, [xs[column * DOTS_ACROSS] for column in range(width)], low, high)
    if first <= marker <= last and last > first:
        column = min(int((marker - first) / (last - first) * (width - 1) + 0.5), width - 1)
        for line in grid:
            if line[column].character in (" ", BAND):
                line[column] = Cell(MARKER, None)
    return grid


def _between(before: int, here: int) -> range:
    """The dots that join two neighbours: down or up to the new one, without the old one's own row."""
    if here == before:
        return range(here, here + 1)
    return range(before + 1, here + 1) if here > before else range(here, before)


def _dotted(dots: Sequence[dict[tuple[int, int], int]], row: int, column: int) -> Cell:
    bits = [mine.get((row, column), 0) for mine in dots]
    if not any(bits):
        return EMPTY
    together = 0
    for mine in bits:
        together |= mine
    return Cell(chr(BRAILLE + together), max(index for index, mine in enumerate(bits) if mine))


def _fill_bands(grid: list[list[Cell]], curves: Sequence[Curve], xs: Sequence[float], low: float, high: float) -> None:
    """Shade the empty cells whose middle lies within one deviation of a curve, where that is more than the curve."""
    height = len(grid)
    least = 0.75 * (high - low) / height  # a thinner band would show in the gaps of a dashed curve alone
    for column, x in enumerate(xs):
        for index, curve in enumerate(curves):
            mean, deviation = curve.at(x)
            if x > curve.xs[-1]:
                continue
            for row in range(height) if deviation >= least else ():
                middle = high - (row + 0.5) / height * (high - low)
                if abs(middle - mean) <= deviation and grid[row][column] is EMPTY:
                    grid[row][column] = Cell(BAND, index)
