"""The wall: every job a cell, two to a character, coloured by what has become of it. Pure code; a widget paints it.

The same cell is the same job in every lane. Where jobs outnumber cells, a cell stands for several and shows the worst.
No state is told by colour alone: what a customer or an operator would complain of is drawn as a sign of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from durcore.worker import DEAD_LETTERED, DUPLICATED, FINISHED, LOST, MISSING

SHADES = 8  # of the steps that an open job has behind it, dark to bright
# What a cell can show, from the best to the worst: a job that is done, how far an open one is (the last step first, so
# that a cell is done when all of its jobs are), one that waits, and the four complaints.
DONE, WAITING, DUPLICATE, MISSED, PARKED, GONE = 1, SHADES + 2, SHADES + 3, SHADES + 4, SHADES + 5, SHADES + 6
NOTHING = 0  # there is no job
SIGNS = {DUPLICATE: "2", MISSED: "?", PARKED: "†", GONE: "×"}
NAMES = {DUPLICATE: "duplicate", MISSED: "no email", PARKED: "dead letter", GONE: "lost"}
UPPER_HALF = "▀"


@dataclass(frozen=True, slots=True)
class Cell:
    """One character of the wall: its sign, and the states whose colours are its ink and the ground behind it.

    Two jobs to complain of make a sign cut out of a block of the worse one's colour.
    """

    sign: str
    ink: int
    ground: int

    @property
    def complains(self) -> bool:
        """Whether a job in it is one that somebody would complain of."""
        return self.sign in SIGNS.values()


@lru_cache(maxsize=4)
def shades_of(steps: int) -> bytes:
    """For each byte of a board what a cell of it shows, as `bytes.translate` takes it. `steps`: of a whole job."""
    table = []
    for byte in range(256):
        stands, duplicated = byte & ~DUPLICATED, byte & DUPLICATED
        ending = {LOST: GONE, DEAD_LETTERED: PARKED, MISSING: MISSED, FINISHED: DONE}.get(stands)
        if ending is None:
            behind = min(stands, steps)
            ending = WAITING if not behind else WAITING - 1 - (behind - 1) * SHADES // steps
        table.append(max(ending, DUPLICATE) if duplicated else ending)
    return bytes(table)


def rows_needed(jobs: int, width: int) -> int:
    """Rows of characters in which every job has a cell of its own."""
    return -(-jobs // (2 * max(width, 1)))


def wall(board: bytes, steps: int, width: int, rows: int) -> list[bytes]:
    """What each cell shows: rows of `width` bytes, two rows to a row of characters, the first job at the upper left."""
    cells = 2 * rows * width
    if not board or cells < 1:
        return [bytes(width)] * (2 * rows)
    shown = board.translate(shades_of(steps))
    if len(shown) > cells:
        shown = bytes(max(shown[slice(*jobs_of(cell, len(board), cells))]) for cell in range(cells))
    # Character by character: a job stands above its neighbour only where the wall is full of them.
    shown = shown.ljust(cells, bytes(1))
    return [shown[row * width : (row + 1) * width] for row in range(2 * rows)]


def jobs_of(cell: int, jobs: int, cells: int) -> tuple[int, int]:
    """The jobs that a cell stands for, counted from 0, the second excluded; an empty range where there is none."""
    if jobs <= cells:
        return min(cell, jobs), min(cell + 1, jobs)
    return cell * jobs // cells, (cell + 1) * jobs // cells


def characters(upper: bytes, lower: bytes) -> list[tuple[Cell, int]]:
    """A row of characters from its two rows of cells, as runs: what is drawn, and how often in a row."""
    runs: list[tuple[Cell, int]] = []
    last: tuple[int, int] | None = None
    for pair in zip(upper, lower, strict=True):
        if pair == last:
            cell, count = runs[-1]
            runs[-1] = (cell, count + 1)
        else:
            runs.append((_cell(*pair), 1))
            last = pair
    return runs


@lru_cache(maxsize=512)
def _cell(upper: int, lower: int) -> Cell:
    better, worst = sorted((upper, lower))
    if worst not in SIGNS:
        return Cell(UPPER_HALF if worst else " ", upper, lower)
    return Cell(SIGNS[worst], NOTHING, worst) if better in SIGNS else Cell(SIGNS[worst], worst, better)


def told(byte: int, steps: int) -> str:
    """Where a job stands, from its byte of a board, in words."""
    stands = byte & ~DUPLICATED
    words = {LOST: "lost", DEAD_LETTERED: "dead-lettered", MISSING: "finished, no email", FINISHED: "finished"}
    text = words.get(stands, f"{min(stands, steps)} of {steps} steps" if stands else "waiting")
    return f"{text}, emailed twice or more" if byte & DUPLICATED else text
