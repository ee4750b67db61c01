"""The live screen: sliders, and the lanes side by side. It looks at the session and draws; it counts nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.geometry import Size
from textual.timer import Timer
from textual.widgets import Footer, Static
from textual.worker import Worker, WorkerState

from durcore.errors import DurtuiError
from durcore.interventions import COUNTS, Kind
from durcore.rundir import RunDirectory
from durcore.scenario import Scenario
from durcore.theory import Expectation, expect, judge
from durtui.along import Chart
from durtui.export import export
from durtui.history import History
from durtui.panel import rows_shown
from durtui.present import arithmetic, compact_table, headline, odds_of, pointed_at, verdict
from durtui.session import Session
from durtui.view import LaneView, Phase
from durtui.widgets.lane_panel import LanePanel, Look
from durtui.widgets.rail import Rail
from durtui.widgets.steady import SteadyScreen
from durtui.widgets.sweep_view import ChartView, SweepView

LOOKS_PER_S = 15
ODD_BELOW = 1e-4  # a figure that fewer than one run in ten thousand would show is marked
LOOKS_A_CURVE = 4  # the curves move at 4 Hz
WASTE = Chart(title="wasted cost against calls made", money=True, moment=lambda e: (e.wasted_cost_usd.mean, 0.0))
DARK, LIGHT = "textual-dark", "projector-light"
DONE_BY_KEY: dict[Kind, str] = {  # in every lane that is at work
    "kill": "the next attempt of every lane crashes",
    "deploy": f"the next {COUNTS['deploy']} deliveries of every lane are cut at their first attempt",
    "outage": f"the next {COUNTS['outage']} attempts of every lane fail",
}
REST_S = 0.3  # a scenario is run when its sliders have rested for this long


class LiveScreen(SteadyScreen):
    """The app's main screen over a session, which it starts and restarts."""

    HORIZONTAL_BREAKPOINTS = [(0, "-small"), (70, "-medium"), (110, "-wide")]  # noqa: RUF012  # as Screen has it
    VERTICAL_BREAKPOINTS = [(0, "-low"), (14, "-high"), (44, "-tall")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "app.quit", "Quit"),  # first, so that a narrow footer shows it
        Binding("space", "pause", "Pause"),
        Binding("full_stop", "step", "Step", key_display="."),
        Binding("r", "restart", "Restart"),
        Binding("left_square_bracket", "speed(-1)", "Slower", show=False),
        Binding("right_square_bracket", "speed(1)", "Faster", show=False),
        Binding("e", "export", "Export"),
        Binding("w", "sweep", "Sweep"),
        Binding("s", "toggle_rail", "Sliders"),
        Binding("p", "present", "Present"),
        Binding("v", "curves", "Curves"),
        Binding("l", "light", "Light or dark", show=False),
        Binding("c", "go_on", "Go on"),  # shown where a lane has failed
        Binding("k", "intervene('kill')", "Kill the worker", show=False),
        Binding("D", "intervene('deploy')", "Deploy", show=False),
        Binding("o", "intervene('outage')", "Outage", show=False),
        Binding("x", "crash_mode", "Real SIGKILL", show=False),
        Binding("up", "app.focus_previous", show=False),
        Binding("down", "app.focus_next", show=False),
    ]

    def __init__(self, session: Session, scenario: Scenario) -> None:
        super().__init__()
        self.session = session
        self._scenario = scenario
        self._rest: Timer | None = None
        self._drawn_at: Size | None = None
        self._failed_before = False
        self._pointed: tuple[int, int] | None = None
        self._history = History()
        self._looks = 0
        self._expected_of: tuple[Scenario, Mapping[str, Expectation]] | None = None
        # By design: the figures out of the ordinary, with their odds; empty where it was judged and has none.
        self._out_of_ordinary: dict[str, dict[str, float]] = {}

    def compose(self) -> ComposeResult:
        """A headline, the rail beside the lanes, the keys; and for a small terminal one compact table."""
        yield Static(id="headline", markup=False)
        with Horizontal(id="body"):
            yield Rail(self._scenario, self.session.calls_per_s)
            for design in self.session.designs:
                yield LanePanel(design)
            yield Static(id="compact", markup=False)
            yield SweepView(self.session.designs, self._scenario)
        yield ChartView(WASTE, marked=False, id="waste")
        yield Static(id="verdict", markup=False)
        yield Static(id="arithmetic", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        """Begin the run, and look at it from now on."""
        self._start()
        self.set_interval(1 / LOOKS_PER_S, self._look)

    def _start(self) -> None:
        self._out_of_ordinary.clear()
        self._history.clear()
        try:
            self.session.start(self._scenario)
        except DurtuiError as error:
            for panel in self.query(LanePanel):
                panel.clear()
            self.notify(str(error), title="This cannot run", severity="error", timeout=10, markup=False)
        self._look()

    def _look(self) -> None:
        views = self.session.look()
        expected = self._expected()
        presenting = self.has_class("-presenting")
        rows = rows_shown([view.figures for view in views], list(expected.values()), presenting=presenting)
        wall_width = min((panel.content_size.width for panel in self.query(LanePanel)), default=0)
        for view in views:
            name = view.design.name
            odd = frozenset(self._out_of_ordinary.get(name, ()))
            self._judge(view)
            look = Look(
                view=view,
                rows=rows,
                expected=None if view.interventions else expected[name],
                odd=odd,
                wall_width=wall_width,
                presenting=presenting,
            )
            self.query_one(f"#lane-{name}", LanePanel).show(look)
        compact = self.query_one("#compact", Static)
        if compact.display:
            width, height = compact.content_size
            self._update(compact, "\n".join(compact_table(views, width, height)))
        self._history.add(views)
        self._looks += 1
        if self._looks % LOOKS_A_CURVE == 0:
            self._draw_curves()
        line = verdict(views) if self._pointed is None else pointed_at(views, *self._pointed)
        self._update(self.query_one("#verdict", Static), line)
        if self._failed_before is not self.session.failed:
            self._failed_before = self.session.failed
            self.refresh_bindings()
        line = headline(views, self.session.seed, self.session.calls_per_s)
        self._update(self.query_one("#headline", Static), f" durtui  {line}")

    def _expected(self) -> Mapping[str, Expectation]:
        """What theory expects of the scenario that the sliders show, also while they are being dragged."""
        if self._expected_of is None or self._expected_of[0] != self._scenario:
            self._expected_of = (self._scenario, expect(self._scenario, self.session.designs))
            line = self.query_one("#arithmetic", Static)
            self._update(line, arithmetic(self._scenario, line.content_size.width))
        return self._expected_of[1]

    def _judge(self, view: LaneView) -> None:
        """Hold a finished lane's figures against what one run in ten thousand would show; once, and in a thread."""
        name = view.design.name
        if view.phase is not Phase.DONE or view.interventions or name in self._out_of_ordinary:
            return
        self._out_of_ordinary[name] = {}
        scenario, run = self.session.scenario, self.session.directory

        def work() -> None:
            judged = judge(scenario, view.design, view.figures.as_dict())
            odd = {figure: odds_of(each) for figure, each in judged.items() if odds_of(each) < ODD_BELOW}
            if odd:
                self.app.call_from_thread(self._tell_odd, run, view, odd)

        self.run_worker(work, thread=True, group="judge", exit_on_error=False)

    @on(Worker.StateChanged)
    def _failed(self, event: Worker.StateChanged) -> None:
        if event.state is WorkerState.ERROR:
            self.notify(str(event.worker.error), title="A figure was not judged", severity="error", markup=False)

    def _tell_odd(self, run: RunDirectory | None, view: LaneView, odd: dict[str, float]) -> None:
        if self.session.directory is not run:
            return  # another run has begun since
        self._out_of_ordinary[view.design.name] = odd
        figure, likely = min(odd.items(), key=lambda item: item[1])
        rarity = f"one run in {1 / likely:,.0f}" if likely > 1e-12 else "no run"
        self.notify(
            f"{view.design.title}: {figure} is {getattr(view.figures, figure):,g}, and {rarity} would be as far off its"
            " expectation. It is bad luck, or a fault of durtui's: try another --seed",
            title="A figure out of the ordinary",
            severity="warning",
            timeout=20,
            markup=False,
        )

    def _update(self, widget: Static, text: str) -> None:
        if widget.content != text:
            widget.update(text)

    def on_resize(self, event: events.Resize) -> None:
        """Draw what fits now, also while paused."""
        if event.size != self._drawn_at:
            self._drawn_at = event.size
            self._expected_of = None  # its line of arithmetic is as long as there is room for
            self.call_after_refresh(self._look)

    @on(Rail.ScenarioChanged)
    def _scenario_changed(self, event: Rail.ScenarioChanged) -> None:
        self._scenario = event.scenario
        self._look()
        self.query_one(SweepView).show(event.scenario)
        if self._rest is not None:
            self._rest.stop()
        if event.final:  # a drag is followed by the expectations alone, until it is let go
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

    def action_go_on(self) -> None:
        """Start the failed lanes again from where they stopped: the cause was mended."""
        try:
            self.session.go_on()
        except DurtuiError as error:
            self.notify(str(error), title="This cannot go on", severity="error", timeout=10, markup=False)
        self._look()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer to go on only where there is a reason to."""
        return self.session.failed if action == "go_on" else super().check_action(action, parameters)

    def action_crash_mode(self) -> None:
        """Crashes that unwind, or workers that are killed."""
        self.query_one(Rail).toggle_crash_mode()

    def action_intervene(self, kind: Kind) -> None:
        """Do something to every lane, from its next call on, and say what."""
        met = self.session.intervene(kind)
        told = DONE_BY_KEY[kind] if met else "every lane has ended: there is nothing to do it to"
        self.notify(told, title=kind.capitalize(), timeout=4, markup=False)

    def action_speed(self, steps: int) -> None:
        """Faster or slower, by a step of the slider."""
        self.query_one(Rail).nudge_speed(steps)

    def action_sweep(self) -> None:
        """Show the sweep in the place of the lanes, which go on; or the lanes again."""
        self.toggle_class("-sweeping")
        self.call_after_refresh(self.query_one(SweepView).show, self._scenario)

    def action_toggle_rail(self) -> None:
        """Show the sliders where there was no room for them, or hide them where there was."""
        self.toggle_class("-rail-toggled")
        self.call_after_refresh(self._look)

    @on(LanePanel.Pointed)
    def _point(self, event: LanePanel.Pointed) -> None:
        if event.jobs != self._pointed:
            self._pointed = event.jobs
            self._look()

    def action_present(self) -> None:
        """Huge figures and the wall, for the last row of a hall; or everything again."""
        self.toggle_class("-presenting")
        self.call_after_refresh(self._look)

    def _draw_curves(self) -> None:
        chart, curves = self.query_one("#waste", ChartView), self._history.curves()
        most = max((curve.xs[-1] for curve in curves), default=0.0)
        if chart.display and most > 0:
            chart.show(curves, ("0", "now", f"{most:,.0f} calls"), most)

    def action_curves(self) -> None:
        """Show the curves of waste where there was no room for them, or hide them where there was."""
        self.toggle_class("-curves-toggled")
        self.call_after_refresh(self._draw_curves)

    def action_light(self) -> None:
        """A theme for a bright hall, or for a dark one."""
        self.app.theme = LIGHT if self.app.current_theme.dark else DARK

    async def action_export(self) -> None:
        """Write the run down, as it is now; what was told before is not part of the picture."""
        self.app.clear_notifications()
        await self.query("Toast").remove()
        self.call_after_refresh(self._export)

    def _export(self) -> None:
        directory = self.session.directory
        if directory is None:
            self.notify("there is no run to export", severity="warning")
            return
        try:
            folder = export(self.session.result(), self.app.export_screenshot(), directory.path, Path())
        except DurtuiError as error:
            self.notify(str(error), title="Nothing was exported", severity="error", timeout=10, markup=False)
            return
        self.notify(f"JSON, Markdown, CSV and SVG in {folder}", title="Exported", markup=False)
