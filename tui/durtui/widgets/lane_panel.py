"""One lane on the screen: a box that draws the lines it is given, and repaints only those that changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from durcore.designs import Design
from durcore.figures import Figures
from durtui.present import Line, panel
from durtui.session import LaneView


class LanePanel(Widget):
    """The panel of one design. `show` gives it a new look at its lane."""

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
        self._seen: tuple[LaneView, Sequence[Figures]] | None = None
        self._lines: list[Line] = []

    def show(self, view: LaneView, others: Sequence[Figures]) -> None:
        """Draw `view`; `others` are the figures of every lane, for panels of equal rows."""
        # Textual repaints the whole box for a title that is assigned, also for the one that it had.
        if self._seen is None or self._seen[0].phase is not view.phase:
            self.border_subtitle = view.phase.value
        self._seen = (view, others)
        self._redraw()

    def on_resize(self, event: events.Resize) -> None:
        """Lay the newest look out anew."""
        fits = len(self._design.title) <= self.content_size.width
        self.border_title = self._design.title if fits else self._design.short
        self._redraw()

    def _redraw(self) -> None:
        if self._seen is None:
            return
        width, height = self.content_size
        before, self._lines = self._lines, panel(*self._seen, width, height)
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
