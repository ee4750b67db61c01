"""The audit: a sound lane passes wherever it was stopped; any one thing that was written over is found and named."""

import shutil
import sqlite3
import struct
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from durcore.audit import TELL_EVERY, audit
from durcore.designs import DESIGNS
from durcore.errors import Damaged, StoreDamaged
from durcore.interventions import Intervention
from durcore.latency import WORDS, LatencyHistogram
from durcore.ledger import HEADER_BYTES, Ledger
from durcore.live import LiveFigures
from durcore.remains import Remains
from durcore.scenario import Scenario
from durcore.shift import Assignment, Shift
from durcore.store import Store

SCENARIO = Scenario(
    jobs=8, steps=3, email_step=2, transient_rate=0.2, crash_rate=0.25, crash_point="anywhere", redeliveries_max=2
)
SEED = 3
# Every kind, and by the time that a lane is stopped each has struck.
INTERVENED = tuple(
    Intervention.parse(f"{design}:{done}") for design in DESIGNS for done in ("deploy:3:2", "kill:9:1", "outage:10:3")
)
STATES = ("queued", "running", "finished", "lost", "dead_lettered")


def assign(directory: Path, design: str, scenario: Scenario = SCENARIO) -> Assignment:
    """A design's lane; of `design+`, one in which somebody has intervened."""
    name = design.removesuffix("+")
    made = tuple(each for each in INTERVENED if each.design == name) if design.endswith("+") else ()
    return Assignment(directory=directory, scenario=scenario, design=DESIGNS[name], seed=SEED, interventions=made)


def begin(assignment: Assignment) -> Ledger:
    """Make what a lane makes before its first call."""
    scenario = assignment.scenario
    assignment.directory.mkdir()
    with Store.create(assignment.store, synchronous="off") as store:
        store.enqueue(1, scenario.jobs)
    return Ledger.create(assignment.ledger, jobs=scenario.jobs, steps=scenario.steps)


def work(assignment: Assignment) -> Iterator[Ledger]:
    """Work a lane in this process, without waiting for the disk; stop before each call, and at the end."""
    ledger = begin(assignment)
    writes = LatencyHistogram(memoryview(bytearray(WORDS * 8)).cast("Q"))
    hasty = replace(assignment, scenario=replace(assignment.scenario, synchronous="off"))
    board = memoryview(bytearray(assignment.scenario.jobs))
    with Shift(hasty, ledger, writes, board, None) as shift:
        yield ledger
        while shift.more:
            shift.advance(1)
            yield ledger
    ledger.close()


def look_through(assignment: Assignment) -> list[int]:
    """Recover a lane as its next life does, and audit it; how far the audit told that it was."""
    live = LiveFigures.reopen(assignment.live)
    with Remains.of(assignment).recovered(live) as (store, ledger, redo, _):
        return list(audit(assignment, store, ledger, redo))


def copy_of(assignment: Assignment, name: str) -> Assignment:
    directory = assignment.directory.with_name(name)
    shutil.copytree(assignment.directory, directory)
    return replace(assignment, directory=directory)


# Sound lanes


@pytest.mark.parametrize("design", [*DESIGNS, *(f"{name}+" for name in DESIGNS)])
def test_a_sound_lane_passes_wherever_it_was_stopped(tmp_path: Path, design: str) -> None:
    assignment = assign(tmp_path / "lane", design)
    stops = 0
    for stops, _ in enumerate(work(assignment), start=1):
        look_through(copy_of(assignment, f"stopped-{stops}"))
    assert stops > SCENARIO.jobs * SCENARIO.steps
    with Store.open(assignment.store) as store:  # or this small lane would prove little
        endings = {state for state, jobs in store.count_states().items() if jobs}
        assert endings == {"finished", "dead_lettered" if assignment.design.checkpoints else "lost"}
        assert store.count_redeliveries()[0] > 3


def test_a_lane_is_told_of_the_audit_as_it_goes_on(tmp_path: Path) -> None:
    assignment = assign(tmp_path / "lane", "checkpoint", Scenario(jobs=2 * TELL_EVERY + 1, steps=1))
    for _ in work(assignment):
        pass
    assert look_through(assignment) == [TELL_EVERY, 2 * TELL_EVERY]


# Altered ones


@pytest.fixture
def stopped(request: pytest.FixtureRequest, tmp_path: Path) -> Assignment:
    """A lane stopped between two attempts, some jobs at their end, one under way, some queued: nothing is in flight.

    What a recovery undoes anyway cannot be told from what somebody wrote over, and does no harm.
    """
    assignment = assign(tmp_path / "lane", request.param)
    for stops, ledger in enumerate(work(assignment)):
        if stops > 15 and ledger.mark().job == 0:
            return copy_of(assignment, "stopped")
    raise AssertionError("no such stop")


Change = Callable[[Path], None]


def sql(statement: str, *values: object) -> Change:
    """Change one row of a store."""

    def change(directory: Path) -> None:
        with sqlite3.connect(directory / "store.db") as connection:
            assert connection.execute(statement, values).rowcount == 1
        connection.close()

    return change


def at(offset: int, kind: str, value: int) -> Change:
    """Write one count of a ledger over."""

    def change(directory: Path) -> None:
        with (directory / "ledger").open("rb+") as file:
            file.seek(offset)
            file.write(struct.pack(kind, value))

    return change


def rows(assignment: Assignment, query: str) -> list[Any]:
    connection = sqlite3.connect(assignment.store)
    found: list[Any] = connection.execute(query).fetchall()
    connection.close()
    return found


def states(assignment: Assignment) -> Iterator[tuple[int, Change]]:
    for job, state in rows(assignment, "SELECT id, state FROM jobs"):
        for other in STATES:
            if other != state:
                yield job, sql("UPDATE jobs SET state = ? WHERE id = ?", other, job)


def deliveries(assignment: Assignment) -> Iterator[tuple[int, Change]]:
    for job, count in rows(assignment, "SELECT id, deliveries FROM jobs"):
        for other in {0, count - 1, count + 1, 2**40} - {count}:
            yield job, sql("UPDATE jobs SET deliveries = ? WHERE id = ?", other, job)


def checkpoints(assignment: Assignment) -> Iterator[tuple[int, Change]]:
    there = rows(assignment, "SELECT job, step FROM checkpoints")
    for job in range(1, SCENARIO.jobs + 1):
        for step in range(SCENARIO.steps + 2):
            key = job << 8 | step
            if (job, step) in there:
                yield job, sql("DELETE FROM checkpoints WHERE id = ?", key)
            else:
                output = bytes(SCENARIO.output_bytes)
                yield job, sql("INSERT INTO checkpoints (id, output) VALUES (?, ?)", key, output)


def keys(assignment: Assignment) -> Iterator[tuple[int, Change]]:
    there = dict(rows(assignment, "SELECT job, attempt FROM effect_keys"))
    for job in range(1, SCENARIO.jobs + 1):
        key = job << 8 | SCENARIO.effect_step
        if job in there:
            yield job, sql("DELETE FROM effect_keys WHERE id = ?", key)
            yield job, sql("UPDATE effect_keys SET attempt = attempt + 1 WHERE id = ?", key)
        else:
            yield job, sql("INSERT INTO effect_keys (id, attempt) VALUES (?, 0)", key)


def counts(assignment: Assignment) -> Iterator[tuple[int, Change]]:
    ledger = Ledger.open(assignment.ledger)
    calls = [ledger.calls_of_steps(job).tolist() for job in range(1, SCENARIO.jobs + 1)]
    emails = [ledger.emails(job) for job in range(1, SCENARIO.jobs + 1)]
    ledger.close()
    for job in range(1, SCENARIO.jobs + 1):
        for other in {0, emails[job - 1] - 1, emails[job - 1] + 1, 65_535} - {emails[job - 1], -1}:
            yield job, at(HEADER_BYTES + 2 * (job - 1), "=H", other)
        for step, count in enumerate(calls[job - 1]):
            first = HEADER_BYTES + 2 * SCENARIO.jobs
            for other in {0, count - 1, count + 1, 2**32 - 1} - {count, -1}:
                yield job, at(first + 4 * ((job - 1) * SCENARIO.steps + step), "=I", other)


@pytest.mark.parametrize("stopped", [*DESIGNS, *(f"{name}+" for name in DESIGNS)], indirect=True)
@pytest.mark.parametrize("kind", [states, deliveries, checkpoints, keys, counts])
def test_one_altered_thing_is_found_and_its_job_is_named(
    stopped: Assignment, kind: Callable[[Assignment], Iterator[tuple[int, Change]]]
) -> None:
    look_through(copy_of(stopped, "sound"))
    changes = 0
    for job, change in kind(stopped):
        changes += 1
        altered = copy_of(stopped, f"altered-{changes}")
        change(altered.directory)
        with pytest.raises(Damaged) as caught:
            look_through(altered)
        told = str(caught.value)
        assert f" job {job} has " in told
        assert told.startswith((f"{altered.store}: ", f"{altered.ledger}: "))
        assert told.endswith("the file was written over")
        assert len(told.splitlines()) == 1
    assert changes >= SCENARIO.jobs


@pytest.mark.parametrize("stopped", ["checkpoint"], indirect=True)
@pytest.mark.parametrize("output", [b"", b"\x1b]0;owned\x07", bytes(15), bytes(17), bytes(15) + b"\1"])
def test_an_altered_output_is_found_and_does_not_reach_the_terminal(stopped: Assignment, output: bytes) -> None:
    ((key,),) = rows(stopped, "SELECT max(id) FROM checkpoints")
    sql("UPDATE checkpoints SET output = ? WHERE id = ?", output, key)(stopped.directory)
    with pytest.raises(StoreDamaged) as caught:
        look_through(stopped)
    expected = f"{stopped.store}: 1 checkpoints hold what no step gave them: it was written over"
    assert str(caught.value) == expected


@pytest.mark.parametrize("stopped", ["checkpoint"], indirect=True)
def test_checkpoints_of_no_job_and_jobs_of_no_run_are_found(stopped: Assignment) -> None:
    for name, statement, told in (
        (
            "more",
            "INSERT INTO jobs (id, ticket, state) VALUES (9, 9, 'finished')",
            "has jobs 1 to 9, and its run 1 to 8",
        ),
        ("zero", "INSERT INTO jobs (id, ticket) VALUES (0, 0)", "has jobs 0 to 8, and its run 1 to 8"),
        ("output", "INSERT INTO checkpoints (id, output) VALUES (999 << 8, zeroblob(16))", "1 checkpoints of none"),
    ):
        altered = copy_of(stopped, name)
        sql(statement)(altered.directory)
        with pytest.raises(StoreDamaged, match=told) as caught:
            look_through(altered)
        assert str(altered.store) in str(caught.value)


@pytest.mark.parametrize("stopped", ["checkpoint"], indirect=True)
def test_a_job_that_is_gone_is_found(stopped: Assignment) -> None:
    for job in range(1, SCENARIO.jobs):
        altered = copy_of(stopped, f"without-{job}")
        sql("DELETE FROM jobs WHERE id = ?", job)(altered.directory)
        told = "has jobs 2 to 8, and its run 1 to 8" if job == 1 else rf"job {job} has job {job + 1} after"
        with pytest.raises(StoreDamaged, match=told):
            look_through(altered)


@pytest.mark.parametrize("stopped", ["checkpoint", "checkpoint+"], indirect=True)
def test_what_a_ledger_remembers_of_deploys_is_held_against_the_lane(stopped: Assignment) -> None:
    ledger = Ledger.open(stopped.ledger)
    (began, reach), calls = (ledger.began(), ledger.reach()), ledger.total_calls()
    ledger.close()
    assert (reach > 0) == bool(stopped.interventions)
    for other in {1, max(reach - 1, 1), reach + 1, calls + 1, 2**63} - {reach}:
        altered = copy_of(stopped, f"reach-{other}")
        at(40, "=Q", other)(altered.directory)
        with pytest.raises(Damaged, match="tells of"):
            look_through(altered)
    for other in (0, began - 1, began + 1) if stopped.interventions else ():
        if other in (began, calls + 1):  # of the delivery that comes next nothing is known to be wrong
            continue
        altered = copy_of(stopped, f"began-{other}")
        at(32, "=Q", other)(altered.directory)
        with pytest.raises(Damaged, match="tells of other deliveries"):
            look_through(altered)


@pytest.mark.parametrize("stopped", ["checkpoint+"], indirect=True)
def test_a_lane_is_not_taken_for_one_in_which_something_else_was_done(stopped: Assignment) -> None:
    first, *others = stopped.interventions
    for index, made in enumerate(
        [(), tuple(others), (replace(first, first=4), *others), (*others, replace(first, count=3))]
    ):
        with pytest.raises(Damaged):
            look_through(copy_of(replace(stopped, interventions=made), f"other-{index}"))


@pytest.mark.parametrize("stopped", ["checkpoint"], indirect=True)
def test_a_lane_of_another_seed_or_other_faults_is_not_taken_for_this_one(stopped: Assignment) -> None:
    others = [
        replace(stopped, seed=SEED + 1),
        replace(stopped, design=DESIGNS["whole-job"]),
        replace(stopped, scenario=replace(SCENARIO, transient_rate=0.4)),
        replace(stopped, scenario=replace(SCENARIO, crash_point="before-work")),
    ]
    for index, other in enumerate(others):
        with pytest.raises(Damaged):
            look_through(copy_of(other, f"other-{index}"))


@pytest.mark.parametrize("stopped", ["checkpoint"], indirect=True)
def test_a_mark_that_was_written_over_is_found_or_changes_nothing(stopped: Assignment) -> None:
    """A mark says what a recovery undoes. Undoing what was done is found; of another delivery it undoes nothing."""
    ledger = Ledger.open(stopped.ledger)
    before = [ledger.calls_of_steps(job).tolist() for job in range(1, SCENARIO.jobs + 1)]
    ledger.close()
    found = 0
    for job in range(1, SCENARIO.jobs + 1):
        for bits in range(8):
            altered = copy_of(stopped, f"mark-{job}-{bits}")
            at(24, "=Q", job << 40 | 1 << 24 | 1 << 16 | bits)(altered.directory)
            try:
                look_through(altered)
            except Damaged:
                found += 1
            else:
                ledger = Ledger.open(altered.ledger)
                assert [ledger.calls_of_steps(job).tolist() for job in range(1, SCENARIO.jobs + 1)] == before
                ledger.close()
    assert found
