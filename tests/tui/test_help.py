"""The help: one key away, and it explains all that a panel shows."""

import pytest

from durcore.designs import DEFAULT_DESIGNS, find_designs
from durcore.figures import Tally, figures_of
from durcore.scenario import Scenario
from durcore.theory import expect
from durtui.app import DurtuiApp
from durtui.panel import rows_shown
from durtui.screens.help import FIGURES, SIGNS, HelpScreen
from durtui.screens.live import LiveScreen
from durtui.session import Session
from durtui.wall import SIGNS as WALL_SIGNS


def test_every_figure_that_a_panel_can_show_is_explained() -> None:
    scenario = Scenario(crash_point="anywhere", redeliveries_max=0, crash_rate=0.2)
    tally = Tally(lost=1, dead_lettered=1, missing_email_jobs=1)
    rows = rows_shown([figures_of(tally, scenario)], list(expect(scenario).values()))
    assert {row.label for row in rows if row.lead} <= set(FIGURES)
    assert all(any(sign in key for key in SIGNS) for sign in WALL_SIGNS.values())


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (30, 10)])
async def test_help_comes_by_one_key_and_goes_by_another_while_the_lanes_go_on(
    size: tuple[int, int], state_home: object
) -> None:
    session = Session(find_designs(DEFAULT_DESIGNS), 7, 500)
    app = DurtuiApp(session, Scenario(jobs=5000))
    try:
        async with app.run_test(size=size) as pilot:
            await pilot.press("question_mark")
            await pilot.pause(0.3)
            assert isinstance(app.screen, HelpScreen)
            before = [view.figures.model_calls for view in session.look()]
            text = "".join(part.text for strip in app.screen._compositor.render_strips() for part in strip)
            assert "finished" in text
            await pilot.press("question_mark")  # the same key again
            await pilot.pause(0.5)
            assert isinstance(app.screen, LiveScreen)
            assert [view.figures.model_calls for view in session.look()] > before
    finally:
        session.close()
