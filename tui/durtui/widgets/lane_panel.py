"""One lane on the screen: a box that draws the lines and the wall it is given, and repaints only what changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.color import Color
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from durcore.designs import Design
from durcore.theory import Expectation
from durtui.panel import WALL, Line, Row, panel
from durtui.present import lane_status
from durtui.view import LaneView
from durtui.wall import (
    DONE,
    DUPLICATE,
    GONE,
    MISSED,
    NOTHING,
    PARKED,
    SHADES,
    WAITING,
    characters,
    jobs_of,
    rows_needed,
    wall,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """All that a panel draws: a look at its lane, the rows of all panels, and what theory expects of the design.

    It expects nothing, None, where somebody has intervened.
    """

    view: LaneView
    rows: tuple[Row, ...]
    expected: Expectation | None
    odd: frozenset[str] = frozenset()
    wall_width: int = 0  # of the narrowest panel: the same cell is the same job in every lane
    presenting: bool = False


class LanePanel(Widget):
    """The panel of one design."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"lane--{role}"
        for role in (
            *("label", "value", "good", "bad", "bar", "rest", "error", "wall"),
            *("waiting", "first", "last", "done", "duplicate", "missed", "parked", "gone"),
        )
    }
    DEFAULT_CSS = """
    LanePanel {
        width: 1fr;
        height: 1fr;
        border: round $primary 50%;
        border-title-color: $foreground;
        border-title-style: bold;
        border-subtitle-color: $text-muted;
        padding: 0 1;
        & > .lane--label { color: $text-muted; }
        & > .lane--value { color: $foreground; text-style: bold; }
        & > .lane--good { color: $text-success; text-style: bold; }
        & > .lane--bad { color: $text-error; text-style: bold; }
        & > .lane--bar { color: $primary; background: $foreground 10%; }
        & > .lane--rest { background: $foreground 10%; }
        & > .lane--error { color: $text-error; }
        & > .lane--waiting { color: $foreground 15%; }
        & > .lane--first { color: $primary-darken-3; }
        & > .lane--last { color: $primary-lighten-3; }
        & > .lane--done { color: $success 50%; }
        & > .lane--duplicate { color: $text-warning; text-style: bold; }
        & > .lane--missed { color: $text-accent; text-style: bold; }
        & > .lane--parked { color: $text-secondary; text-style: bold; }
        & > .lane--gone { color: $text-error; text-style: bold; }
    }
    """

    def __init__(self, design: Design) -> None:
        super().__init__(id=f"lane-{design.name}")
        self._design = design
        self._seen: Look | None = None
        self._lines: list[Line] = []
        self._wall: list[bytes] = []
        self._inks: dict[int, Color] = {}

    @dataclass
    class Pointed(Message):
        """The mouse is on a cell of the wall: the jobs that it stands for, from 1, first and last; or it has left."""

        jobs: tuple[int, int] | None

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Tell which jobs are pointed at."""
        self.post_message(self.Pointed(self.jobs_at(event.x, event.y)))

    def on_leave(self) -> None:
        """Nothing is pointed at."""
        self.post_message(self.Pointed(None))

    def show(self, look: Look) -> None:
        """Draw a look. One that is as the last was costs nothing: a paused lane is looked at as often as another."""
        if look == self._seen:
            return
        # Textual repaints the whole box for a title that is assigned, also for the one that it had.
        if (status := lane_status(look.view, self.size.width - 4)) != self.border_subtitle:
            self.border_subtitle = status
        self._seen = look
        self._redraw()

    def clear(self) -> None:
        """Draw nothing: there is no lane."""
        self._seen = None
        self._lines, self._wall = [], []
        self.border_subtitle = ""
        self.refresh()

    def on_resize(self, event: events.Resize) -> None:
        """Lay the newest look out anew."""
        fits = len(self._design.title) <= self.content_size.width
        self.border_title = self._design.title if fits else self._design.short
        self._redraw()

    @property
    def wall_rows(self) -> int:
        """How many rows of characters the wall has."""
        return self._lines.count(WALL)

    def jobs_at(self, x: int, y: int) -> tuple[int, int] | None:
        """The jobs, numbered from 1, that a cell of the screen stands for, first and last; None where there is none."""
        look, offset = self._seen, y - (self._lines.index(WALL) if WALL in self._lines else 0) - 1
        column = x - 2  # behind border and padding
        if look is None or not 0 <= offset < self.wall_rows or not 0 <= column < look.wall_width:
            return None
        cells = 2 * self.wall_rows * look.wall_width
        first, _ = jobs_of(2 * offset * look.wall_width + column, len(look.view.board), cells)
        _, last = jobs_of((2 * offset + 1) * look.wall_width + column, len(look.view.board), cells)
        return (first + 1, last) if first < last else None

    def _redraw(self) -> None:
        if self._seen is None:
            return
        width, height = self.content_size
        look = self._seen
        lines, wall_ = self._lines, self._wall
        wanted = rows_needed(len(look.view.board), look.wall_width) if look.view.board and look.wall_width else 0
        self._lines = panel(
            look.view, look.rows, look.expected, width, height, look.odd, wanted, big_first=look.presenting
        )
        self._wall = wall(look.view.board, look.view.steps, look.wall_width, self.wall_rows)
        top = self._lines.index(WALL) if WALL in self._lines else 0
        changed = [
            Region(0, y, width, 1)
            for y in range(max(len(lines), len(self._lines)))
            if lines[y : y + 1] != self._lines[y : y + 1]
            or (self._lines[y : y + 1] == [WALL] and self._cells(wall_, y - top) != self._cells(self._wall, y - top))
        ]
        if changed:
            self.refresh(*changed)

    def _cells(self, wall_: list[bytes], row: int) -> list[bytes]:
        return wall_[2 * row : 2 * row + 2]

    def notify_style_update(self) -> None:
        """Mix the inks of the wall anew under another theme."""
        super().notify_style_update()
        self._inks.clear()

    def _ink(self, state: int) -> Color:
        """The colour of what a cell shows; of steps, between the first and the last."""
        if not self._inks:
            names = {WAITING: "waiting", DONE: "done", DUPLICATE: "duplicate", MISSED: "missed"}
            names |= {PARKED: "parked", GONE: "gone"}
            for each, name in names.items():
                self._inks[each] = self._colour(name)
            first, last = self._colour("first"), self._colour("last")
            for shade in range(SHADES):
                self._inks[WAITING - 1 - shade] = first.blend(last, shade / (SHADES - 1))
            self._inks[NOTHING] = self.background_colors[1]
        return self._inks[state]

    def _colour(self, name: str) -> Color:
        styles = self.get_component_styles(f"lane--{name}")
        return self.background_colors[1] + styles.color

    def _wall_strip(self, row: int, width: int) -> Strip:
        segments = []
        upper, lower = self._cells(self._wall, row)
        for cell, count in characters(upper, lower):
            upper_ink, lower_ink = self._ink(cell.ink).rich_color, self._ink(cell.ground).rich_color
            segments.append(Segment(cell.sign * count, Style(color=upper_ink, bgcolor=lower_ink, bold=cell.complains)))
        return Strip(segments).adjust_cell_length(width, self.rich_style)

    def render_line(self, y: int) -> Strip:
        """One line of the panel."""
        width = self.content_size.width
        if y >= len(self._lines):
            return Strip.blank(width, self.rich_style)
        if self._lines[y] == WALL:
            return self._wall_strip(y - self._lines.index(WALL), width)
        segments = [
            Segment(text, self.get_component_rich_style(f"lane--{role}")) for text, role in self._lines[y] if text
        ]
        return Strip(segments).adjust_cell_length(width, self.rich_style)
