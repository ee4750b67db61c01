"""The sweep: a parameter to choose, and one chart a figure with a curve a design. It computes in a thread."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from textual import events, on, work
from textual.app import ComposeResult
from textual.containers import Grid, Vertical
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Static, Tab, Tabs
from textual.worker import Worker, WorkerState, get_current_worker

from durcore.designs import Design
from durcore.report import dollars
from durcore.scenario import Scenario
from durtui.along import CHARTS, KEY_CHARTS, SWEEPABLE, Chart, curves_along
from durtui.plot import STROKES, Cell, Curve, bounds, plot
from durtui.present import compact
from durtui.widgets.rail import value_text

COLOURS = ("$text-error", "$text-warning", "$text-success")  # of the legend, as the charts' CSS has them


class ChartView(Widget):
    """One chart: title and range above, curves in the middle, the parameter's ends and its present value below."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"chart--title", "chart--axis", "chart--0", "chart--1", "chart--2"}
    DEFAULT_CSS = """
    ChartView {
        & > .chart--title { text-style: bold; }
        & > .chart--axis { color: $text-muted; }
        & > .chart--0 { color: $text-error; }
        & > .chart--1 { color: $text-warning; }
        & > .chart--2 { color: $text-success; }
    }
    """

    def __init__(
        self,
        chart: Chart,
        *,
        marked: bool = True,
        id: str | None = None,  # noqa: A002  # as every widget has it
    ) -> None:
        super().__init__(id=id)
        self._marked = marked
        self._chart = chart
        self._curves: Sequence[Curve] = ()
        self._axis = ("", "", "")
        self._now = 0.0
        self._grid: list[list[Cell]] = []

    def show(self, curves: Sequence[Curve], axis: tuple[str, str, str], now: float) -> None:
        """Draw curves; `axis` is the text of the first, the present and the last value, `now` the present one."""
        self._curves, self._axis, self._now = curves, axis, now
        self._redraw()

    def on_resize(self, event: events.Resize) -> None:
        """Draw the same curves at the new size."""
        self._redraw()

    def _redraw(self) -> None:
        if self._curves:
            width, height = self.content_size
            self._grid = plot(self._curves, width, height - 2, self._now if self._marked else math.inf)
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """A row of the chart."""
        width, height = self.content_size
        if y == 0:
            segments = [Segment(self._top(width), self.get_component_rich_style("chart--title"))]
        elif y == height - 1:
            segments = [Segment(self._bottom(width), self.get_component_rich_style("chart--axis"))]
        elif y - 1 < len(self._grid):
            segments = [Segment(cell.character, self._style(cell)) for cell in self._grid[y - 1]]
        else:
            segments = []
        return Strip(segments).adjust_cell_length(width, self.rich_style)

    def _style(self, cell: Cell):  # type: ignore[no-untyped-def]  # rich's Style, by textual's own accessor
        return self.get_component_rich_style("chart--axis" if cell.curve is None else f"chart--{cell.curve % 3}")

    def _top(self, width: int) -> str:
        if not self._curves:
            return self._chart.title[:width]
        sign = "$" if self._chart.money else ""
        low, high = bounds(self._curves)
        span = f"{sign}{compact(low)}…{sign}{compact(high)}"
        room = max(width - len(span) - 1, 0)
        return f"{self._chart.title[:room]:<{room}} {span}"[:width]

    def _short(self, value: float) -> str:
        if self._chart.money:
            return dollars(value) if abs(value) < 1000 else f"${compact(value)}"
        return compact(value)

    def _bottom(self, width: int) -> str:
        first, now, last = self._axis
        means = " · ".join(self._short(curve.at(self._now)[0]) for curve in self._curves)
        room = max(width - len(first) - len(last) - 2, 0)
        middle = next((text for text in (f"{now}: {means}", means, now) if len(text) <= room), "")
        return f"{first} {middle:^{room}} {last}"[:width]


class SweepView(Vertical):
    """The sweep of the scenario that it is shown, along the parameter of the tab that is active."""

    DEFAULT_CSS = """
    SweepView {
        width: 1fr;
        height: 1fr;
        border: round $primary 50%;
        border-title-color: $foreground;
        border-title-style: bold;
        padding: 0 1;
        & Grid {
            grid-size: 3 2;
            grid-gutter: 1 3;
        }
        & #legend { height: 1; color: $text-muted; margin-bottom: 1; }
    }
    """

    def __init__(self, designs: Sequence[Design], scenario: Scenario) -> None:
        super().__init__(id="sweep")
        self.border_title = "Expected, along one parameter"
        self._designs = tuple(designs)
        self._scenario = scenario

    def compose(self) -> ComposeResult:
        """Tabs, a legend, the charts."""
        yield Tabs(*(Tab(label, id=name) for name, label in SWEEPABLE.items()))
        strokes = [
            f"[{COLOURS[i % len(COLOURS)]} bold]{STROKES[i % len(STROKES)]}[/] {design.title}"
            for i, design in enumerate(self._designs)
        ]
        yield Static("  ".join([*strokes, "░ ± one sd", "│ now"]), id="legend")
        with Grid():
            for chart in CHARTS:
                view = ChartView(chart)
                view.set_class(chart in KEY_CHARTS, "-key")
                yield view

    def show(self, scenario: Scenario) -> None:
        """Sweep another scenario."""
        self._scenario = scenario
        self._compute()

    @on(Tabs.TabActivated)
    def _chosen(self, event: Tabs.TabActivated) -> None:
        event.stop()
        self._compute()

    def _compute(self) -> None:
        name = self.query_one(Tabs).active
        if self.display and name:
            self._sweep(self._scenario, name)

    @on(Worker.StateChanged)
    def _failed(self, event: Worker.StateChanged) -> None:
        if event.state is WorkerState.ERROR:
            self.notify(str(event.worker.error), title="This sweep failed", severity="error", markup=False)

    @work(thread=True, exclusive=True, group="sweep", exit_on_error=False)
    def _sweep(self, scenario: Scenario, name: str) -> None:
        worker = get_current_worker()
        charts = curves_along(scenario, name, self._designs, lambda: worker.is_cancelled)
        if charts is not None and not worker.is_cancelled:
            self.app.call_from_thread(self._draw, scenario, name, [curves for _, curves in charts])

    def _draw(self, scenario: Scenario, name: str, charts: list[list[Curve]]) -> None:
        now = scenario.resolved()[name]
        xs = charts[0][0].xs
        axis = (value_text(name, xs[0]), f"{SWEEPABLE[name]} {value_text(name, now)}", value_text(name, xs[-1]))
        for view, curves in zip(self.query(ChartView), charts, strict=True):
            view.show(curves, axis, float(now))
