"""One lane on the screen: a box that draws the lines it is given, and repaints only those that changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from durcore.designs import Design
from durcore.theory import Expectation
from durtui.panel import Line, Row, panel
from durtui.present import lane_status
from durtui.view import LaneView


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """All that a panel draws: a look at its lane, the rows of all panels, and what theory expects of the design.

    It expects nothing, None, where somebody has intervened.
    """

    view: LaneView
    rows: tuple[Row, ...]
    expected: Expectation | None
    odd: frozenset[str] = frozenset()


class LanePanel(Widget):
    """The panel of one design."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"lane--{role}" for role in ("label", "value", "good", "bad", "bar", "rest", "error")
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
    }
    """

    def __init__(self, design: Design) -> None:
        super().__init__(id=f"lane-{design.name}")
        self._design = design
        self._seen: Look | None = None
        self._lines: list[Line] = []

    def show(self, look: Look) -> None:
        """Draw a look."""
        # Textual repaints the whole box for a title that is assigned, also for the one that it had.
        if (status := lane_status(look.view)) != self.border_subtitle:
            self.border_subtitle = status
        self._seen = look
        self._redraw()

    def clear(self) -> None:
        """Draw nothing: there is no lane."""
        self._seen = None
        self._lines = []
        self.border_subtitle = ""
        self.refresh()

    def on_resize(self, event: events.Resize) -> None:
        """Lay the newest look out anew."""
        fits = len(self._design.title) <= self.content_size.width
        self.border_title = self._design.title if fits else self._design.short
        self._redraw()

    def _redraw(self) -> None:
        if self._seen is None:
            return
        width, height = self.content_size
        look = self._seen
        before, self._lines = self._lines, panel(look.view, look.rows, look.expected, width, height, look.odd)
        changed = [
            Region(0, y, width, 1)
            for y in range(max(len(before), len(self._lines)))
            if before[y : y + 1] != self._lines[y : y + 1]
        ]
        if changed:
            self.refresh(*changed)

    def render_line(self, y: int) -> Strip:
        """One line of the panel."""
        width = self.content_size.width
        if y >= len(self._lines):
            return Strip.blank(width, self.rich_style)
        segments = [
            Segment(text, self.get_component_rich_style(f"lane--{role}")) for text, role in self._lines[y] if text
        ]
        return Strip(segments).adjust_cell_length(width, self.rich_style)
