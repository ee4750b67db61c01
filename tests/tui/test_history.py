"""The curves of waste: each lane's own, from nothing to where it is, in a bounded number of points."""

import time
from itertools import pairwise

import pytest

from durcore.designs import DEFAULT_DESIGNS, find_designs
from durcore.figures import Tally, figures_of
from durcore.scenario import Scenario
from durtui.app import DurtuiApp
from durtui.history import POINTS, History
from durtui.plot import Curve, plot
from durtui.session import Session
from durtui.view import LaneView, Phase
from durtui.widgets.sweep_view import ChartView


def look(name: str, calls: int, finished: int) -> LaneView:
    (design,) = find_designs([name])
    return LaneView(
        design=design,
        phase=Phase.RUNNING,
        ended=finished,
        jobs=100_000,
        figures=figures_of(Tally(model_calls=calls, finished=finished), Scenario()),
        latency=None,
        elapsed_s=1.0,
        error="",
    )


def test_a_curve_goes_from_nothing_to_the_newest_look_however_many_there_were() -> None:
    history = History()
    for each in range(1, 5000):
        history.add([look("whole-job", 12 * each, each), look("checkpoint", 11 * each, each)])
        history.add([look("whole-job", 12 * each, each), look("checkpoint", 11 * each, each)])  # nothing new
    whole, saved = history.curves()
    for curve, extra in ((whole, 2), (saved, 1)):
        assert len(curve.xs) <= POINTS
        assert (curve.xs[0], curve.means[0]) == (0.0, 0.0)
        assert curve.xs[-1] == (10 + extra) * 4999
        assert curve.means[-1] == pytest.approx(extra * 4999 * 0.0102)
        assert all(before < after for before, after in pairwise(curve.xs))
    history.clear()
    assert history.curves() == []


def test_a_curve_is_not_drawn_beyond_its_end() -> None:
    short = Curve((0.0, 10.0), (0.0, 1.0), (0.0, 0.0))
    long = Curve((0.0, 40.0), (0.0, 0.0), (0.0, 0.0))
    grid = plot([long, short], 40, 6, float("inf"))
    columns = {column for row in grid for column, cell in enumerate(row) if cell.curve == 1}
    assert columns
    assert max(columns) <= 10
    assert max(column for row in grid for column, cell in enumerate(row) if cell.curve == 0) >= 36


@pytest.mark.parametrize(("size", "at_first"), [((120, 48), True), ((120, 36), False), ((80, 24), False)])
async def test_the_curves_are_there_where_there_is_height_and_one_key_away_else(
    size: tuple[int, int], at_first: bool, state_home: object
) -> None:
    session = Session(find_designs(DEFAULT_DESIGNS), 7, None)
    app = DurtuiApp(session, Scenario(jobs=200))
    try:
        async with app.run_test(size=size) as pilot:
            deadline = time.monotonic() + 20
            while not all(view.phase is Phase.DONE for view in session.look()):
                assert time.monotonic() < deadline
                await pilot.pause(0.05)
            chart = app.screen.query_one("#waste", ChartView)
            for shown in (at_first, not at_first, at_first):
                assert bool(chart.display) is shown
                await pilot.pause(0.6)
                if shown:
                    text = "\n".join(chart.render_line(y).text for y in range(chart.content_size.height))
                    assert "wasted cost against calls made" in text
                    costs = [f"${view.figures.wasted_cost_usd:.2f}" for view in session.look()]
                    assert f"now: {' · '.join(costs)}" in text
                await pilot.press("v")
                await pilot.pause(0.2)
    finally:
        session.close()
