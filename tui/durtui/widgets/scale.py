"""The pure half of a slider: its values, where each stands on a track of columns, and what fits above the track.

No widget and no terminal: `durtui.widgets.slider` draws this and listens to a person.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from rich.cells import cell_len, set_cell_size

Value: TypeAlias = float | None
"""A value of a slider; None is 'unlimited'. On a scale of whole numbers it is always an int."""

_NICE = tuple(Decimal(mantissa) for mantissa in ("1", "1.5", "2", "3", "5", "7"))
_COARSE_TO_FINE = (100, 20, 10, 5, 2, 1)
_DIGITS = 15
_PAGES = 10
_TYPED = re.compile(r"(-?(?:\d{1,3}(?:[,_]\d{3})+|\d+|(?=\.\d))(?:\.\d*)?) ?([km%]?)")
_UNITS = {"": Decimal(1), "k": Decimal(1_000), "m": Decimal(1_000_000)}
_PERCENT_UNITS = {"": Decimal("0.01"), "%": Decimal("0.01")}


def _exact(value: float) -> Decimal:
    # By way of the shortest text, so that 0.3 is three tenths and steps of 0.1 land on it.
    return Decimal(str(value))


def _rank(value: Value) -> float:
    return math.inf if value is None else value


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """A range of numbers on a track, linear or logarithmic; built by `Scale.linear` or `Scale.logarithmic`.

    `step` is the grid of the arrow keys and the mouse on a linear scale, and not a rule for values: a value that was
    typed or set is kept as it is, if it is in range. None makes the scale logarithmic; its steps are the numbers
    1, 1.5, 2, 3, 5, 7, 10 and so on. With `unlimited` the last column of a track stands for None, above `high`.
    `percent` is about typing only: values are fractions, and a person writes 3 or 3%, as the value is shown.

    Raises ValueError, naming field, value and rule, where no such scale can be drawn.
    """

    low: float
    high: float
    step: float | None
    whole: bool
    percent: bool = False
    unlimited: bool = False

    def __post_init__(self) -> None:
        for name, value in (("low", self.low), ("high", self.high), ("step", self.step or 0)):
            if not math.isfinite(value) or (self.whole and value != int(value)):
                raise ValueError(f"{name}(={value}) must be {'a whole' if self.whole else 'a finite'} number")
        if self.high < self.low:
            raise ValueError(f"high(={self.high}) must be at least low(={self.low})")
        if self.step is not None and self.step <= 0:
            raise ValueError(f"step(={self.step}) must be above 0")
        if self.step is None and self.low <= 0:
            raise ValueError(f"low(={self.low}) must be above 0 on a logarithmic scale")

    @classmethod
    def linear(cls, low: float, high: float, step: float = 1, *, percent: bool = False) -> Scale:
        """Multiples of `step`, and both ends. Whole numbers where all three are ints."""
        whole = all(isinstance(number, int) for number in (low, high, step))
        return cls(low=low, high=high, step=step, whole=whole, percent=percent)

    @classmethod
    def logarithmic(cls, low: float, high: float, *, unlimited: bool = False) -> Scale:
        """Equal ratios in equal distances; `low` is above 0. Whole numbers where both ends are ints."""
        whole = isinstance(low, int) and isinstance(high, int)
        return cls(low=low, high=high, step=None, whole=whole, unlimited=unlimited)

    @property
    def top(self) -> Value:
        """The value of the last column: None where the scale is unlimited, else `high`."""
        return None if self.unlimited else self.high

    def clamp(self, value: Value) -> Value:
        """`value` where the scale has it, else the nearest end."""
        if value is None:
            return self.top
        return self._within(_exact(value))

    def column(self, value: Value, width: int) -> int:
        """Where `value` stands on a track of `width` columns: in the first or the last only if it is that end.

        Tracks too short to have a column between their ends are the exception.
        """
        last = max(width, 1) - 1
        if value is None:
            return last
        last = self._last_number(last)
        if value <= self.low:
            return 0
        if value >= self.high:
            return last
        return min(max(round(self._position(value) * last), min(1, last)), max(last - 1, 0))

    def at_column(self, column: int, width: int) -> Value:
        """The roundest value that stands in `column`, or the value nearest to it; past an end, that end.

        Column 0 is exactly `low` and column `width` - 1 exactly `top`.
        """
        last = max(width, 1) - 1
        if column <= 0:
            return self.low
        if column >= last:
            return self.top
        last = self._last_number(last)
        if column >= last:
            return self.high
        rounded = self.low
        for rounded in self._roundings(self._at_position(column / last)):
            if self.column(rounded, width) == column:
                break
        return rounded

    def stepped(self, value: Value, steps: int) -> Value:
        """`value` moved by that many steps, upward where positive. Each moves it, until an end is reached."""
        for _ in range(abs(steps)):
            value = self._next(value) if steps > 0 else self._previous(value)
        return value

    def paged(self, value: Value, pages: int) -> Value:
        """`value` moved to the next tenth of the track, that many times, upward where positive."""
        stops = [self.at_column(tenth, _PAGES + 1) for tenth in range(_PAGES + 1)]
        for _ in range(abs(pages)):
            if pages > 0:
                value = next((stop for stop in stops if _rank(stop) > _rank(value)), self.top)
            else:
                value = next((stop for stop in reversed(stops) if _rank(stop) < _rank(value)), self.low)
        return value

    def parse(self, text: str) -> Value:
        """The value that a person typed, as 2,000 or 2_000 or 2k or 1m, on a percent scale as 3 or 3%.

        Raises ValueError, whose message is the rule, short enough for a slider's row: "1 to 100".
        """
        text = text.strip().lower()
        if self.unlimited and text == "unlimited":
            return None
        match = _TYPED.fullmatch(text)
        if match is None:
            raise ValueError(self._spelling)
        digits, unit = match.groups()
        number = Decimal(digits.replace(",", "").replace("_", ""))
        units = _PERCENT_UNITS if self.percent else _UNITS
        if unit not in units:
            raise ValueError(self._spelling)
        number *= units[unit]
        if not _exact(self.low) <= number <= _exact(self.high):
            raise ValueError(f"{self._spelled(self.low)} to {self._spelled(self.high)}")
        if self.whole and number != int(number):
            raise ValueError("a whole number")
        return self._within(number)

    @property
    def _spelling(self) -> str:
        return "like 3 or 3%" if self.percent else "like 2,000 or 2k"

    def _spelled(self, value: float) -> str:
        return f"{value * 100:,.12g}%" if self.percent else f"{value:,.12g}"

    def _within(self, exact: Decimal) -> float:
        number: float = round(exact) if self.whole else float(exact)
        return min(max(number, self.low), self.high)

    def _last_number(self, last: int) -> int:
        # The column of `high`: on an unlimited scale the one before the last, if there is one.
        return max(last - 1, 0) if self.unlimited else last

    def _position(self, value: float) -> float:
        if self.step is None:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def _at_position(self, position: float) -> Decimal:
        if self.step is None:
            return _exact(self.low * (self.high / self.low) ** position)
        return _exact(self.low + (self.high - self.low) * position)

    def _roundings(self, exact: Decimal) -> Iterator[float]:
        # From round numbers to the finest that the scale gives: under the mouse 2,000 is better than 1,968.
        if self.step is None:
            grids = [Decimal(1).scaleb(exact.adjusted() - digits) for digits in range(_DIGITS)]
        else:
            grids = [_exact(self.step) * coarseness for coarseness in _COARSE_TO_FINE]
        for grid in grids:
            yield self._within(round(exact / grid) * grid)

    def _next(self, value: Value) -> Value:
        if value is None or value >= self.high:
            return self.top
        exact = _exact(value)
        return self._within(min(stop for stop in self._stops_near(exact) if stop > exact))

    def _previous(self, value: Value) -> Value:
        if value is None:
            return self.high
        exact = _exact(value)
        return self._within(max((stop for stop in self._stops_near(exact) if stop < exact), default=_exact(self.low)))

    def _stops_near(self, exact: Decimal) -> list[Decimal]:
        # At least one on either side, save below the least whole number of a logarithmic scale.
        if self.step is not None:
            grid = _exact(self.step)
            return [(math.floor(exact / grid) + offset) * grid for offset in (-1, 0, 1)]
        magnitude = exact.adjusted()
        nice = [mantissa.scaleb(power) for power in (magnitude - 1, magnitude, magnitude + 1) for mantissa in _NICE]
        return [number for number in nice if not self.whole or number == int(number)]


def fit_row(label: str, value: str, width: int, cut: str) -> tuple[str, str]:
    """The label padded, and the value, so that they fill `width` cells. What does not fit is cut, the label first."""
    value = _cut(value, width, cut)
    room = width - cell_len(value)
    return set_cell_size(_cut(label, room - 1, cut), room), value


def _cut(text: str, width: int, cut: str) -> str:
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + cut if width > 0 else ""
