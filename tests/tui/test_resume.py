"""Going on with a run in the app: lanes that failed, runs that were interrupted, and what is kept of which."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from durcore.designs import CHECKPOINT, DEFAULT_DESIGNS, find_designs
from durcore.errors import InUse
from durcore.lab import resume_lab, run_lab
from durcore.lanes import LaneProcess
from durcore.rundir import RunDirectory
from durcore.scenario import Scenario
from durtui.app import DurtuiApp
from durtui.session import Session
from durtui.view import LaneView, Phase
from durtui.widgets.rail import Rail

Lanes = Callable[[], list[int]]
Runs = Callable[[], list[Path]]

SCENARIO = Scenario(jobs=300, transient_rate=0.1, crash_rate=0.05)
DESIGNS = find_designs(DEFAULT_DESIGNS)


@pytest.fixture
def sessions(state_home: Path) -> Iterator[Callable[..., Session]]:
    """Makes sessions that end with the test."""
    made: list[Session] = []

    def make(resumed: RunDirectory | None = None, *, calls_per_s: float | None = None, seed: int = 7) -> Session:
        made.append(Session(DESIGNS, seed, calls_per_s, resumed))
        return made[-1]

    yield make
    for session in made:
        session.close()


def wait_until(session: Session, condition: Callable[[tuple[LaneView, ...]], bool], within_s: float = 20.0) -> None:
    deadline = time.monotonic() + within_s
    while not condition(session.look()):
        assert time.monotonic() < deadline, session.look()
        time.sleep(0.02)


def all_in(phase: Phase) -> Callable[[tuple[LaneView, ...]], bool]:
    return lambda views: all(view.phase is phase for view in views)


def all_calling(views: tuple[LaneView, ...]) -> bool:
    return all(view.figures.model_calls > 100 for view in views)


def truth(scenario: Scenario, seed: int = 7) -> list[object]:
    return [design.median for design in run_lab(scenario, seeds=(seed,)).designs]


def test_lanes_that_failed_go_on_from_where_they_stopped_when_asked(
    sessions: Callable[..., Session], lanes: Lanes
) -> None:
    session = sessions(calls_per_s=1000)
    session.start(SCENARIO)
    wait_until(session, all_calling)
    for lane in lanes()[:2]:
        os.kill(lane, signal.SIGKILL)
    wait_until(session, lambda views: sum(view.phase is Phase.FAILED for view in views) == 2)
    before = [view.figures.model_calls for view in session.look()]
    session.set_speed(None)
    session.go_on()
    wait_until(session, all_in(Phase.DONE))
    assert not session.failed
    assert all(view.figures.model_calls > calls for view, calls in zip(session.look(), before, strict=True))
    assert [view.figures for view in session.look()] == truth(SCENARIO)


def test_a_session_goes_on_with_an_interrupted_run_at_its_own_speed(
    sessions: Callable[..., Session], runs: Runs
) -> None:
    first = sessions(calls_per_s=1000)
    first.start(SCENARIO)
    wait_until(first, all_calling)
    first.interrupt()
    (kept,) = runs()
    second = sessions(RunDirectory.open(kept), calls_per_s=20)
    second.start(second.scenario)
    wait_until(second, all_in(Phase.RUNNING))
    assert all_calling(second.look())
    assert not all_in(Phase.DONE)(second.look())
    second.set_speed(None)
    wait_until(second, all_in(Phase.DONE))
    assert [view.figures for view in second.look()] == truth(SCENARIO)
    second.close()
    assert runs() == []


def test_a_run_that_is_done_is_not_kept_by_an_interruption(sessions: Callable[..., Session], runs: Runs) -> None:
    session = sessions()
    session.start(SCENARIO)
    wait_until(session, all_in(Phase.DONE))
    session.interrupt()
    assert runs() == []


def test_an_interrupted_run_that_was_opened_is_there_still_when_it_is_left_for_another_scenario(
    sessions: Callable[..., Session], runs: Runs
) -> None:
    first = sessions(calls_per_s=1000)
    first.start(SCENARIO)
    wait_until(first, all_calling)
    first.interrupt()
    (kept,) = runs()
    second = sessions(RunDirectory.open(kept), calls_per_s=20)
    second.start(second.scenario)
    second.start(Scenario(jobs=10))
    second.close()
    assert runs() == [kept]
    result = resume_lab(kept)
    assert [design.median for design in result.designs] == truth(SCENARIO)
    assert runs() == []


def test_the_lanes_of_another_seed_are_left_to_whoever_goes_on_with_all(
    sessions: Callable[..., Session], tmp_path: Path
) -> None:
    directory = RunDirectory.create(tmp_path / "run", SCENARIO, DESIGNS, [7, 8])
    lane = LaneProcess(directory.lane(CHECKPOINT, 8), SCENARIO, CHECKPOINT, 8, calls_per_s=50)
    lane.end()
    directory.release()
    session = sessions(RunDirectory.open(tmp_path / "run"), seed=7)
    session.start(session.scenario)
    wait_until(session, all_in(Phase.DONE))
    session.close()
    result = resume_lab(tmp_path / "run")
    assert [[r.figures for r in design.replications] for design in result.designs] == [
        list(pair) for pair in zip(truth(SCENARIO), truth(SCENARIO, 8), strict=True)
    ]
    assert (tmp_path / "run").exists()


def test_a_run_under_way_in_one_session_is_refused_to_another(sessions: Callable[..., Session], runs: Runs) -> None:
    session = sessions(calls_per_s=100)
    session.start(SCENARIO)
    (under_way,) = runs()
    with pytest.raises(InUse, match=rf"in use by another durtui \(process {os.getpid()}\)"):
        RunDirectory.open(under_way)


def test_workers_that_are_killed_are_counted_and_the_figures_are_the_same(sessions: Callable[..., Session]) -> None:
    session = sessions()
    session.start(Scenario(jobs=60, transient_rate=0.1, crash_rate=0.05, crash_mode="sigkill"))
    wait_until(session, all_in(Phase.DONE))
    assert all((view.workers_killed or 0) > 5 for view in session.look())
    unwinding = Scenario(jobs=60, transient_rate=0.1, crash_rate=0.05)
    assert [view.figures for view in session.look()] == truth(unwinding)
    session.start(unwinding)
    assert [view.workers_killed for view in session.look()] == [None, None, None]


async def test_a_key_has_the_workers_really_killed_and_the_panels_count_them(sessions: Callable[..., Session]) -> None:
    session = sessions()
    app = DurtuiApp(session, Scenario(jobs=60, transient_rate=0.1, crash_rate=0.05))
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.press("x")
        deadline = time.monotonic() + 20
        while not (session.scenario.crash_mode == "sigkill" and all_in(Phase.DONE)(session.look())):
            assert time.monotonic() < deadline
            await pilot.pause(0.05)
        await pilot.pause(0.2)
        assert app.screen.query_one(Rail).scenario.crash_mode == "sigkill"
        strips = app.screen._compositor.render_strips()
        (line,) = (text for strip in strips if "killed" in (text := "".join(part.text for part in strip)))
        assert [int(word) for word in line.split() if word.isdigit()] == [
            view.workers_killed for view in session.look()
        ]


async def test_going_on_is_offered_when_a_lane_has_failed_and_does_it(
    sessions: Callable[..., Session], lanes: Lanes
) -> None:
    session = sessions(calls_per_s=500)
    app = DurtuiApp(session, SCENARIO)
    async with app.run_test(size=(120, 36)) as pilot:
        deadline = time.monotonic() + 20

        async def until(condition: Callable[[], bool]) -> None:
            while not condition():
                assert time.monotonic() < deadline
                await pilot.pause(0.05)

        def footer() -> str:
            return "".join(part.text for part in app.screen._compositor.render_strips()[-1])

        await until(lambda: all_calling(session.look()))
        assert "Go on" not in footer()
        os.kill(lanes()[0], signal.SIGKILL)
        await until(lambda: "Go on" in footer())
        await pilot.press("c")
        await until(lambda: not session.failed and "Go on" not in footer())
        session.set_speed(None)
        await until(lambda: all_in(Phase.DONE)(session.look()))
        assert [view.figures for view in session.look()] == truth(SCENARIO)
