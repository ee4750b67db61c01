"""The live screen: sliders, and the lanes side by side. It looks at the session and draws; it counts nothing."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import Footer, Static

from durcore.errors import DurtuiError
from durcore.scenario import Scenario
from durtui.export import export
from durtui.present import compact_table, headline
from durtui.session import Session
from durtui.widgets.lane_panel import LanePanel
from durtui.widgets.rail import Rail

LOOKS_PER_S = 15
REST_S = 0.3  # a scenario is run when its sliders have rested for this long


class LiveScreen(Screen[None]):
    """The app's main screen over a session, which it starts and restarts."""

    HORIZONTAL_BREAKPOINTS = [(0, "-small"), (70, "-normal")]  # noqa: RUF012  # as Screen has it
    VERTICAL_BREAKPOINTS = [(0, "-low"), (14, "-high")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "pause", "Pause"),
        Binding("full_stop", "step", "Step", key_display="."),
        Binding("r", "restart", "Restart"),
        Binding("left_square_bracket", "speed(-1)", "Slower", key_display="["),
        Binding("right_square_bracket", "speed(1)", "Faster", key_display="]"),
        Binding("e", "export", "Export"),
        Binding("s", "toggle_rail", "Sliders"),
        Binding("up", "app.focus_previous", show=False),
        Binding("down", "app.focus_next", show=False),
    ]

    def __init__(self, session: Session, scenario: Scenario) -> None:
        super().__init__()
        self.session = session
        self._scenario = scenario
        self._rest: Timer | None = None

    def compose(self) -> ComposeResult:
        """A headline, the rail beside the lanes, the keys; and for a small terminal one compact table."""
        yield Static(id="headline", markup=False)
        with Horizontal(id="body"):
            yield Rail(self._scenario, self.session.calls_per_s)
            for design in self.session.designs:
                yield LanePanel(design)
            yield Static(id="compact", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        """Begin the run, and look at it from now on."""
        self._start()
        self.set_interval(1 / LOOKS_PER_S, self._look)

    def _start(self) -> None:
        try:
            self.session.start(self._scenario)
        except DurtuiError as error:
            self.notify(str(error), title="This cannot run", severity="error", timeout=10)
        self._look()

    def _look(self) -> None:
        views = self.session.look()
        figures = [view.figures for view in views]
        for view in views:
            self.query_one(f"#lane-{view.design.name}", LanePanel).show(view, figures)
        compact = self.query_one("#compact", Static)
        if compact.display:
            width, height = compact.content_size
            self._update(compact, "\n".join(compact_table(views, width, height)))
        self._update(self.query_one("#headline", Static), f" durtui  {headline(views, self.session)}")

    def _update(self, widget: Static, text: str) -> None:
        if widget.content != text:
            widget.update(text)

    def on_resize(self, event: events.Resize) -> None:
        """Draw what fits now, also while paused."""
        self.call_after_refresh(self._look)

    @on(Rail.ScenarioChanged)
    def _scenario_changed(self, event: Rail.ScenarioChanged) -> None:
        self._scenario = event.scenario
        if self._rest is not None:
            self._rest.stop()
        self._rest = self.set_timer(REST_S, self._start)

    @on(Rail.SpeedChanged)
    def _speed_changed(self, event: Rail.SpeedChanged) -> None:
        self.session.set_speed(event.calls_per_s)

    def action_pause(self) -> None:
        """Hold the lanes, or let them go on."""
        self.session.pause(not self.session.paused)
        self._look()

    def action_step(self) -> None:
        """One call in each lane."""
        self.session.step()

    def action_restart(self) -> None:
        """Begin the same scenario again."""
        self._start()

    def action_speed(self, steps: int) -> None:
        """Faster or slower, by a step of the slider."""
        self.query_one(Rail).nudge_speed(steps)

    def action_toggle_rail(self) -> None:
        """Show the sliders where there was no room for them, or hide them where there was."""
        self.toggle_class("-rail-toggled")
        self.call_after_refresh(self._look)

    def action_export(self) -> None:
        """Write the run down, as it is now."""
        directory = self.session.directory
        if directory is None:
            self.notify("there is no run to export", severity="warning")
            return
        try:
            folder = export(self.session.result(), self.app.export_screenshot(), directory.path, Path.cwd())
        except DurtuiError as error:
            self.notify(str(error), title="Nothing was exported", severity="error", timeout=10)
            return
        self.notify(f"JSON, Markdown, CSV and SVG in {folder}", title="Exported", markup=False)
