"""A session's lanes: started, held, stepped, restarted, ended; and what it leaves behind, which is nothing."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from durcore.designs import DEFAULT_DESIGNS, find_designs
from durcore.errors import DurtuiError
from durcore.figures import Figures
from durcore.interventions import COUNTS, KINDS, Intervention, Kind, applied
from durcore.lab import run_lab
from durcore.rundir import RunDirectory
from durcore.scenario import Scenario
from durtui.session import Session
from durtui.view import LaneView, Phase

Lanes = Callable[[], list[int]]
Runs = Callable[[], list[Path]]

SMALL = Scenario(jobs=60, steps=4, transient_rate=0.2, crash_rate=0.1)
LARGE = Scenario(jobs=100_000)


@pytest.fixture
def session(state_home: Path) -> Iterator[Session]:
    """A session of the default designs at unlimited speed, ended after the test."""
    session = Session(find_designs(DEFAULT_DESIGNS), 7, None)
    yield session
    session.close()


def wait_until(session: Session, condition: Callable[[tuple[LaneView, ...]], bool], within_s: float = 20.0) -> None:
    deadline = time.monotonic() + within_s
    while not condition(session.look()):
        assert time.monotonic() < deadline, session.look()
        time.sleep(0.02)


def all_done(views: tuple[LaneView, ...]) -> bool:
    return all(view.phase is Phase.DONE for view in views)


def all_working(views: tuple[LaneView, ...]) -> bool:
    return all(view.figures.model_calls > 0 for view in views)


def calls(session: Session) -> list[float]:
    return [view.figures.model_calls for view in session.look()]


def truth(scenario: Scenario) -> list[Figures]:
    return [design.median for design in run_lab(scenario, seeds=(7,)).designs]


def test_a_run_ends_with_the_figures_of_the_lab(session: Session) -> None:
    session.start(SMALL)
    assert [view.design.name for view in session.look()] == list(DEFAULT_DESIGNS)
    wait_until(session, all_done)
    assert [view.figures for view in session.look()] == truth(SMALL)
    assert [view.share for view in session.look()] == [1.0, 1.0, 1.0]
    assert [view.latency is None for view in session.look()] == [True, False, False]


def test_a_run_is_watched_while_it_is_under_way(session: Session) -> None:
    session.set_speed(2000)
    session.start(Scenario(jobs=150))
    seen: set[tuple[float, ...]] = set()

    def done(views: tuple[LaneView, ...]) -> bool:
        seen.add(tuple(view.figures.model_calls for view in views))
        return all_done(views)

    wait_until(session, done)
    assert len(seen) >= 10
    finals = tuple(calls(session))
    assert all(early <= final for some in seen for early, final in zip(some, finals, strict=True))


def test_close_leaves_no_process_and_no_directory(session: Session, lanes: Lanes, runs: Runs) -> None:
    session.start(LARGE)
    wait_until(session, all_working)
    assert len(lanes()) == 3
    assert runs() == [session.directory.path if session.directory else None]
    session.close()
    assert (lanes(), runs(), session.look()) == ([], [], ())
    session.close()


def test_restarts_in_a_row_leave_only_the_last_run_and_closing_none(session: Session, lanes: Lanes, runs: Runs) -> None:
    for jobs in (30_000, 40_000, 50_000, 60_000):
        session.start(Scenario(jobs=jobs))
    assert {view.jobs for view in session.look()} == {60_000}
    wait_until(session, lambda _: len(lanes()) == 3 and len(runs()) == 1)
    session.close()
    assert (lanes(), runs()) == ([], [])


def test_a_restart_begins_from_the_first_job(session: Session) -> None:
    session.start(SMALL)
    wait_until(session, all_done)
    other = Scenario(jobs=80, steps=3)
    session.start(other)
    assert all(view.phase is not Phase.DONE for view in session.look())
    wait_until(session, all_done)
    assert [view.figures for view in session.look()] == truth(other)


def test_a_pause_holds_every_lane_until_it_is_lifted(session: Session) -> None:
    session.start(LARGE)
    wait_until(session, all_working)
    session.pause(True)
    time.sleep(0.3)
    held = calls(session)
    assert {view.phase for view in session.look()} == {Phase.PAUSED}
    time.sleep(0.5)
    assert calls(session) == held
    session.pause(False)
    wait_until(session, lambda _: all(now > then for now, then in zip(calls(session), held, strict=True)))
    assert {view.phase for view in session.look()} == {Phase.RUNNING}


def test_a_step_is_one_call_in_each_lane_and_pauses_a_run(session: Session) -> None:
    session.start(SMALL)
    session.pause(True)
    wait_until(session, lambda views: all(view.phase is Phase.PAUSED for view in views))
    before = calls(session)
    for count in (1, 2, 3):
        session.step()
        wait_until(session, lambda _, count=count: calls(session) == [each + count for each in before])  # type: ignore[misc]  # binds
    time.sleep(0.3)
    assert calls(session) == [each + 3 for each in before]
    session.pause(False)
    wait_until(session, all_done)
    assert [view.figures for view in session.look()] == truth(SMALL)


def test_a_step_pauses_lanes_that_run(session: Session) -> None:
    session.start(LARGE)
    wait_until(session, all_working)
    session.step()
    assert session.paused
    time.sleep(0.3)
    held = calls(session)
    time.sleep(0.3)
    assert calls(session) == held


def test_a_run_that_is_started_while_paused_makes_no_call(session: Session) -> None:
    session.pause(True)
    session.start(SMALL)
    wait_until(session, lambda views: all(view.phase is Phase.PAUSED for view in views))
    time.sleep(0.3)
    assert calls(session) == [0, 0, 0]


def test_the_speed_is_kept_to_and_changes_without_a_restart(session: Session, lanes: Lanes) -> None:
    session.set_speed(100)
    session.start(Scenario(jobs=200))
    wait_until(session, all_working)
    processes, began, first = lanes(), time.monotonic(), calls(session)
    time.sleep(1)
    passed, made = time.monotonic() - began, [now - then for now, then in zip(calls(session), first, strict=True)]
    assert max(made) <= 100 * (passed + 0.2)
    assert min(made) >= 50
    session.set_speed(None)
    assert lanes() == processes
    wait_until(session, all_done)


def test_a_result_is_complete_only_when_every_lane_is_done(session: Session) -> None:
    session.set_speed(200)
    session.start(SMALL)
    wait_until(session, all_working)
    assert not session.result().complete
    session.set_speed(None)
    wait_until(session, all_done)
    result = session.result()
    assert result.complete
    assert (result.seeds, list(result), result.scenario) == ((7,), list(DEFAULT_DESIGNS), SMALL)
    assert [design.median for design in result.designs] == truth(SMALL)


def test_a_run_can_be_kept_without_its_processes(session: Session, lanes: Lanes, runs: Runs) -> None:
    session.start(LARGE)
    wait_until(session, all_working)
    session.close(keep=True)
    assert lanes() == []
    (kept,) = runs()
    assert {path.name for path in kept.iterdir()} == {
        "lock",
        "run.json",
        *(f"{name}-seed-7" for name in DEFAULT_DESIGNS),
    }


def test_a_lane_that_is_killed_has_failed_and_the_others_go_on(session: Session, lanes: Lanes) -> None:
    session.set_speed(3000)
    session.start(Scenario(jobs=300))
    wait_until(session, all_working)
    os.kill(lanes()[0], signal.SIGKILL)
    wait_until(session, lambda views: {view.phase for view in views} == {Phase.DONE, Phase.FAILED})
    phases = [view.phase for view in session.look()]
    assert phases.count(Phase.FAILED) == 1
    failed = session.look()[phases.index(Phase.FAILED)]
    assert "killed by signal 9" in failed.error
    assert failed.design.name in failed.error
    wanted = truth(Scenario(jobs=300))
    assert [v.figures for v in session.look() if v is not failed] == [
        figures for figures, phase in zip(wanted, phases, strict=True) if phase is Phase.DONE
    ]


def test_a_run_without_a_place_is_refused_and_the_session_lives_on(
    session: Session, lanes: Lanes, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.start(LARGE)
    with pytest.raises(DurtuiError, match="MiB"):
        session.start(Scenario(jobs=10_000_000, output_bytes=1_048_576))
    wait_until(session, lambda _: (lanes(), runs()) == ([], []))
    session.step()
    session.set_speed(10)
    session.pause(False)
    session.set_speed(None)
    session.start(SMALL)
    wait_until(session, all_done)


# Interventions


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_done_to_every_lane_can_be_done_again_with_the_same_figures(session: Session, kind: Kind) -> None:
    session.set_speed(500)
    session.start(SMALL)
    wait_until(session, all_working)
    assert session.intervene(kind) == 3
    wait_until(session, lambda views: all(view.interventions for view in views))
    session.set_speed(None)
    wait_until(session, all_done)
    result = session.result()
    assert [(each.design, each.kind, each.count) for each in result.interventions] == [
        (name, kind, COUNTS[kind]) for name in DEFAULT_DESIGNS
    ]
    assert all(design.expected is None for design in result.values())
    again = run_lab(SMALL, (7,), interventions=result.interventions)
    assert [design.median for design in again.values()] == [design.median for design in result.values()]
    assert session.intervene(kind) == 0


def test_a_run_that_was_begun_with_interventions_is_gone_on_with_under_them(state_home: Path) -> None:
    made = [Intervention(name, "outage", 20, 30) for name in DEFAULT_DESIGNS]
    due = run_lab(SMALL, (7,), interventions=made)
    directory = RunDirectory.create(None, SMALL, find_designs(DEFAULT_DESIGNS), [7], made)
    session = Session(find_designs(DEFAULT_DESIGNS), 7, None, directory)
    session.start(SMALL)
    wait_until(session, all_done)
    assert list(session.result().interventions) == made
    assert [view.figures for view in session.look()] == [design.median for design in due.values()]
    session.close()


def test_a_look_at_a_run_under_way_lists_what_has_met_an_attempt_so_far(session: Session) -> None:
    session.start(LARGE)
    wait_until(session, all_working)
    session.pause(True)
    session.intervene("kill")
    wait_until(session, lambda views: all(view.interventions for view in views))
    assert session.result().interventions == ()
    session.step()
    wait_until(
        session,
        lambda views: all(applied(view.interventions, int(view.figures.model_calls)) for view in views),
    )
    assert len(session.result().interventions) == 3


def test_a_deploy_strikes_the_resume_alert_of_every_lane_and_a_kill_does_not(session: Session) -> None:
    session.set_speed(2000)
    session.start(Scenario(jobs=5000))
    wait_until(session, all_working)
    session.intervene("kill")
    wait_until(session, lambda views: all(view.figures.model_calls > 400 for view in views))
    assert [view.alert_at for view in session.look()] == [None] * 3
    session.intervene("deploy")
    wait_until(session, lambda views: all(view.alert_at is not None for view in views))
