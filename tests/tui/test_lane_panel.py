"""A lane's panel on a screen: what it repaints is what a fresh one would paint, and nothing that did not change."""

from dataclasses import replace

from textual.app import App, ComposeResult
from textual.geometry import Region

from durcore.designs import CHECKPOINT
from durcore.figures import Tally, figures_of
from durcore.scenario import Scenario
from durcore.theory import expect
from durtui.panel import rows_shown
from durtui.view import LaneView, Phase
from durtui.widgets.lane_panel import LanePanel, Look


def view(finished: int, *, phase: Phase = Phase.RUNNING) -> LaneView:
    tally = Tally(finished=finished, model_calls=finished * 11)
    return LaneView(
        design=CHECKPOINT,
        phase=phase,
        ended=finished,
        jobs=2000,
        figures=figures_of(tally, Scenario()),
        latency=None,
        elapsed_s=1.0,
        error="",
    )


class Bench(App[None]):
    def compose(self) -> ComposeResult:
        yield LanePanel(CHECKPOINT)

    def show(self, look: LaneView) -> None:
        expected = expect(Scenario())["checkpoint"]
        rows = rows_shown([look.figures], [expected])
        self.query_one(LanePanel).show(Look(view=look, rows=rows, expected=expected))

    def picture(self) -> list[str]:
        height = self.size.height
        return ["".join(s.text for s in strip) for strip in self.screen._compositor.render_strips()][:height]


async def test_a_repainted_panel_shows_what_a_fresh_one_shows() -> None:
    app = Bench()
    async with app.run_test(size=(31, 36)) as pilot:
        for finished in (0, 7, 1083, 1999):
            app.show(view(finished))
            await pilot.pause()
        repainted = app.picture()
        app.query_one(LanePanel).refresh(layout=True)
        await pilot.pause()
        assert repainted == app.picture()


async def test_only_the_lines_that_changed_are_repainted() -> None:
    app = Bench()
    async with app.run_test(size=(31, 36)) as pilot:
        app.show(view(1083))
        await pilot.pause()
        panel = app.query_one(LanePanel)
        repainted: list[Region] = []
        panel.refresh = lambda *regions, **_: repainted.extend(regions)  # type: ignore[method-assign,assignment]
        app.show(view(1083))
        assert repainted == []
        app.show(replace(view(1083), figures=view(1084).figures))
        assert {region.height for region in repainted} == {1}
        assert 1 <= len(repainted) < panel.content_size.height / 2


async def test_the_phase_stands_in_the_box() -> None:
    app = Bench()
    async with app.run_test(size=(31, 36)) as pilot:
        for phase in Phase:
            app.show(view(5, phase=phase))
            await pilot.pause()
            assert phase.value in app.picture()[-1]
