"""What a lane left: it begins anew where nothing was called, goes on where something was, and never loses a call."""

import json
import os
import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from durcore.designs import DESIGNS
from durcore.errors import Damaged, LedgerDamaged, StoreDamaged
from durcore.figures import Tally
from durcore.latency import Latency
from durcore.ledger import Ledger
from durcore.live import LaneState, LiveFigures
from durcore.remains import RESULT, LaneResult, Remains, write_result
from durcore.scenario import Scenario
from durcore.shift import Assignment, Shift
from durcore.store import Store

SCENARIO = Scenario(jobs=6, steps=3, transient_rate=0.2, crash_rate=0.2, redeliveries_max=2, synchronous="off")
DONE = Tally(finished=6, model_calls=18, emails_delivered=6, checkpoint_writes=18)


@pytest.fixture
def assignment(tmp_path: Path) -> Assignment:
    (tmp_path / "lane").mkdir()
    return Assignment(directory=tmp_path / "lane", scenario=SCENARIO, design=DESIGNS["checkpoint"], seed=3)


@pytest.fixture
def live(assignment: Assignment) -> LiveFigures:
    return LiveFigures.create(assignment.live)


def make_ledger(assignment: Assignment) -> Ledger:
    return Ledger.create(assignment.ledger, jobs=SCENARIO.jobs, steps=SCENARIO.steps)


def make_store(assignment: Assignment, jobs: int) -> None:
    with Store.create(assignment.store, synchronous="off") as store:
        if jobs:
            store.enqueue(1, jobs)


def begun(assignment: Assignment) -> Ledger:
    """Everything that a lane makes before its first call."""
    ledger = make_ledger(assignment)
    make_store(assignment, SCENARIO.jobs)
    return ledger


# Whether a lane goes on


def test_where_nothing_is_nothing_was_begun(assignment: Assignment) -> None:
    assert not Remains.of(assignment).begun
    assert list(assignment.directory.iterdir()) == []


@pytest.mark.parametrize("made", ["ledger", "noise", "empty store", "store", "one job", "all but one job"])
def test_a_lane_that_was_ended_before_its_queue_was_full_begins_anew(assignment: Assignment, made: str) -> None:
    if made == "noise":
        assignment.ledger.write_bytes(b"noise")
    else:
        make_ledger(assignment).close()
    if made == "empty store":
        assignment.store.touch()
    elif made not in ("ledger", "noise"):
        make_store(assignment, {"store": 0, "one job": 1, "all but one job": SCENARIO.jobs - 1}[made])
    (assignment.directory / "lane.log").write_text("kept")
    remains = Remains.of(assignment)
    assert not remains.begun
    remains.clear_away()
    remains.clear_away()
    assert [path.name for path in assignment.directory.iterdir()] == ["lane.log"]
    begun(assignment).close()  # in the place that was cleared
    assert Remains.of(assignment).begun


def test_a_lane_whose_queue_was_full_goes_on_whether_it_has_called_or_not(assignment: Assignment) -> None:
    ledger = begun(assignment)
    assert Remains.of(assignment).begun
    ledger.bill(1, 1)
    ledger.close()
    assert Remains.of(assignment).begun


@pytest.mark.parametrize("lost", ["deleted", "emptied"])
def test_a_store_that_is_gone_is_damage_once_a_call_was_made(assignment: Assignment, lost: str) -> None:
    ledger = begun(assignment)
    ledger.bill(6, 3)
    ledger.close()
    if lost == "deleted":
        assignment.store.unlink()
    else:
        os.truncate(assignment.store, 0)
    with pytest.raises(StoreDamaged, match=rf"^{assignment.store} is gone"):
        Remains.of(assignment)


def test_a_log_that_was_deleted_with_the_queue_in_it_is_damage_and_is_asked_for(assignment: Assignment) -> None:
    ledger = make_ledger(assignment)
    with Store.create(assignment.store) as store:
        store.enqueue(1, SCENARIO.jobs)
        shutil.copy(assignment.store, assignment.directory / "without")  # what the file has while its log is not in it
    (assignment.directory / "without").replace(assignment.store)
    ledger.bill(1, 1)
    ledger.close()
    with pytest.raises(StoreDamaged, match=rf"^{assignment.store} has lost its jobs: was store.db-wal deleted\?$"):
        Remains.of(assignment)


@pytest.mark.parametrize("content", [b"Dear diary\n" * 500, bytes(9000)], ids=["text", "zeros"])
def test_a_store_that_is_none_is_damage_whether_a_call_was_made_or_not(assignment: Assignment, content: bytes) -> None:
    make_ledger(assignment).close()
    assignment.store.write_bytes(content)
    with pytest.raises(StoreDamaged, match=rf"^{assignment.store} is not a durtui store"):
        Remains.of(assignment)
    assert assignment.store.read_bytes() == content


def test_a_strangers_trigger_is_refused_before_anything_is_written(assignment: Assignment) -> None:
    begun(assignment).close()
    with sqlite3.connect(assignment.store) as connection:
        connection.execute("CREATE TRIGGER t AFTER UPDATE ON jobs BEGIN DELETE FROM checkpoints; END")
    connection.close()
    with pytest.raises(StoreDamaged, match="has other tables than a store of durtui's"):
        Remains.of(assignment)


# The boundary of an attempt


def worked(assignment: Assignment, live: LiveFigures) -> Iterator[tuple[Shift, Ledger]]:
    """Work a lane in this process; stop before each call, and at the end."""
    ledger = begun(assignment)
    with Shift(assignment, ledger, live.writes, memoryview(bytearray(assignment.scenario.jobs)), None) as shift:
        while shift.more:
            shift.advance(1)
            yield shift, ledger
    ledger.close()


@pytest.mark.parametrize("design", DESIGNS)
def test_between_two_deliveries_what_is_counted_is_what_was_streamed(
    assignment: Assignment, live: LiveFigures, tmp_path: Path, design: str
) -> None:
    assignment = replace(assignment, design=DESIGNS[design])
    stops = 0
    for shift, ledger in worked(assignment, live):
        if ledger.mark().job:
            continue  # an attempt is in flight: it is undone, and made again
        stops += 1
        there = replace(assignment, directory=tmp_path / f"stopped-{stops}")
        shutil.copytree(assignment.directory, there.directory)
        with Remains.of(there).recovered(LiveFigures.reopen(there.live)) as (store, _, redo, tally):
            assert tally == shift.tally
            if shift.more:
                assert redo is not None
                assert (redo.step, redo.failures) == (0, 0)
                assert store.running(redo.claim.job) == redo.claim
            else:
                assert redo is None
    assert stops > SCENARIO.jobs


def test_a_recovery_takes_back_the_attempt_in_flight_and_no_more_however_often_it_is_made(
    assignment: Assignment, live: LiveFigures, tmp_path: Path
) -> None:
    stops = 0
    for _, ledger in worked(assignment, live):
        mark = ledger.mark()
        if not mark.job:
            continue
        stops += 1
        there = replace(assignment, directory=tmp_path / f"stopped-{stops}")
        shutil.copytree(assignment.directory, there.directory)
        for _ in range(2):
            with Remains.of(there).recovered(LiveFigures.reopen(there.live)) as (store, again, redo, _):
                assert again.total_calls() == ledger.total_calls() - 1
                assert redo == ((mark.job, mark.delivery), mark.step, mark.failures)
                assert store.saved_steps(mark.job) == mark.step - 1
    assert stops > SCENARIO.jobs


@pytest.mark.parametrize("shape", [(SCENARIO.jobs + 1, SCENARIO.steps), (SCENARIO.jobs, SCENARIO.steps - 1)], ids=str)
def test_a_ledger_of_another_run_is_damage(assignment: Assignment, live: LiveFigures, shape: tuple[int, int]) -> None:
    begun(assignment).close()
    assignment.ledger.unlink()
    Ledger.create(assignment.ledger, jobs=shape[0], steps=shape[1]).close()
    with (
        pytest.raises(LedgerDamaged, match=rf"^{assignment.ledger} is of another run$"),
        Remains.of(assignment).recovered(live),
    ):
        pass


def test_a_ledger_that_is_gone_is_damage(assignment: Assignment, live: LiveFigures) -> None:
    begun(assignment).close()
    assignment.ledger.unlink()
    with (
        pytest.raises(LedgerDamaged, match=rf"^{assignment.ledger} is gone"),
        Remains.of(assignment).recovered(live),
    ):
        pass


def test_timings_that_can_be_right_are_kept_and_others_start_anew(assignment: Assignment, live: LiveFigures) -> None:
    begun(assignment).close()
    live.writes.record(4_000)
    live.publish(LaneState.RUNNING, 6, 12.5, 0, Tally())
    with Remains.of(assignment).recovered(live):
        assert live.timings() == (12.5, 0)
        assert live.latency() is not None
    for elapsed_s, killed in ((1e10, 0), (12.5, 2**64 - 1)):  # three hundred years; more workers than calls
        live.writes.record(4_000)
        live.publish(LaneState.RUNNING, 6, elapsed_s, killed, Tally())
        with Remains.of(assignment).recovered(live):
            assert (live.timings(), live.latency()) == ((0.0, 0), None)
    for _ in range(2000):  # checkpoints that this lane cannot have written
        live.writes.record(4_000)
    with Remains.of(assignment).recovered(live):
        assert live.latency() is None


# The result


def result_of(tally: Tally) -> LaneResult:
    latency = Latency(count=18, mean=10.5, median=9.0, p99=40.0, max=55.25)
    return LaneResult(tally=tally, checkpoint_write_us=latency, elapsed_s=1.5, workers_killed=3)


@pytest.fixture
def remains(assignment: Assignment) -> Remains:
    return Remains(assignment=assignment, begun=True)


def test_a_lane_that_has_not_finished_has_no_result(remains: Remains) -> None:
    assert remains.result(DONE) is None


def test_a_result_is_read_as_it_was_written_and_nothing_else_is_left(remains: Remains, assignment: Assignment) -> None:
    write_result(assignment, result_of(DONE))
    assert remains.result(DONE) == result_of(DONE)
    assert [path.name for path in assignment.directory.iterdir()] == [RESULT]
    without = replace_latency(result_of(DONE))
    write_result(assignment, without)  # in the place of the one before it
    assert remains.result(DONE) == without


def replace_latency(result: LaneResult) -> LaneResult:
    return LaneResult(
        tally=result.tally, checkpoint_write_us=None, elapsed_s=result.elapsed_s, workers_killed=result.workers_killed
    )


@pytest.mark.parametrize("field", ["finished", "model_calls", "duplicate_email_jobs", "redeliveries", "open_steps"])
def test_a_result_that_store_and_ledger_do_not_add_up_to_is_damage(
    remains: Remains, assignment: Assignment, field: str
) -> None:
    write_result(assignment, result_of(replace(DONE, **{field: getattr(DONE, field) + 1})))
    with pytest.raises(
        Damaged, match=rf"^{assignment.directory / RESULT} is not what .*ledger and store.db add up to$"
    ):
        remains.result(DONE)


def test_a_result_before_the_end_is_damage(remains: Remains, assignment: Assignment) -> None:
    early = replace(DONE, finished=5)
    write_result(assignment, result_of(early))
    with pytest.raises(Damaged, match="is not what"):
        remains.result(early)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"null",
        b"{}",
        b"noise\x00\xff",
        b"\x1b[2J",
        b'{"tally": ' + b"[" * 100_000,
        b"[" * 60_000,
        b'{"tally": {}, "elapsed_s": "\x1b[2J"}',
        b" " * 70_000 + b"{}",
    ],
    ids=lambda text: repr(text[:12]),
)
def test_a_result_that_is_none_is_damage_told_in_one_line(
    remains: Remains, assignment: Assignment, text: bytes
) -> None:
    (assignment.directory / RESULT).write_bytes(text)
    with pytest.raises(Damaged) as caught:
        remains.result(DONE)
    assert str(caught.value) == f"{assignment.directory / RESULT} is not the result of a lane: it was written over"


@pytest.mark.parametrize(
    ("field", "value"), [("elapsed_s", "long"), ("workers_killed", 1.5), ("tally", {"finished": "6"})]
)
def test_a_result_with_a_value_of_another_kind_is_damage(
    remains: Remains, assignment: Assignment, field: str, value: Any
) -> None:
    write_result(assignment, result_of(DONE))
    tree = json.loads((assignment.directory / RESULT).read_text())
    (assignment.directory / RESULT).write_text(json.dumps(tree | {field: value}))
    with pytest.raises(Damaged, match="is not the result of a lane"):
        remains.result(DONE)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("workers_killed", -5),
        ("workers_killed", 19),
        ("elapsed_s", -1e308),
        ("elapsed_s", 1e10),
        ("checkpoint_write_us", {"count": -3, "mean": 1.0, "median": 1.0, "p99": 1.0, "max": 1.0}),
        ("checkpoint_write_us", {"count": 18, "mean": 1.0, "median": 1.0, "p99": 1e300, "max": 1.0}),
        ("checkpoint_write_us", {"count": 10_000, "mean": 1.0, "median": 1.0, "p99": 1.0, "max": 1.0}),
    ],
)
def test_a_result_with_timings_that_cannot_be_is_damage(
    remains: Remains, assignment: Assignment, field: str, value: Any
) -> None:
    write_result(assignment, result_of(DONE))
    tree = json.loads((assignment.directory / RESULT).read_text())
    (assignment.directory / RESULT).write_text(json.dumps(tree | {field: value}))
    with pytest.raises(Damaged, match="has timings that cannot be: it was written over"):
        remains.result(DONE)


@pytest.mark.parametrize("number", [-1000, 0, 7])
def test_a_store_with_a_job_that_its_run_has_not_is_damage(assignment: Assignment, number: int) -> None:
    begun(assignment).close()
    with sqlite3.connect(assignment.store) as connection:
        connection.execute("INSERT INTO jobs (id, ticket, state) VALUES (?, 1, 'finished')", (number,))
    connection.close()
    with pytest.raises(StoreDamaged, match=r"has jobs -?[\d,]+ to \d, and its run 1 to 6$"):
        Remains.of(assignment)
