"""Interventions: by ordinal, so that they can be made again; and what each does, held against a lab of ten lines."""

import json
import os
import random
import shutil
import signal
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from durcore.audit import audit
from durcore.count import count
from durcore.designs import DESIGNS, find_designs
from durcore.errors import Damaged, Mistake, NotVerified
from durcore.faults import Fate, FaultPlan
from durcore.figures import Tally
from durcore.interventions import (
    COUNTS,
    FILE,
    INTERVENTIONS_MAX,
    KINDS,
    ORDINAL_MAX,
    Intervention,
    Kind,
    applied,
    read_interventions,
    write_interventions,
)
from durcore.lab import LabResult, resume_lab, run_lab
from durcore.lane import GoOn, Intervene, Step
from durcore.lanes import LaneProcess
from durcore.latency import WORDS, LatencyHistogram
from durcore.ledger import Ledger
from durcore.live import LaneState, LiveFigures
from durcore.remains import Remains
from durcore.replay import TELL_EVERY
from durcore.report import as_csv, as_markdown
from durcore.rundir import RunDirectory
from durcore.scenario import Scenario
from durcore.shift import Assignment, Shift
from durcore.snapshot import to_json, verify
from durcore.store import Store

SMALL = Scenario(
    jobs=7,
    steps=3,
    email_step=2,
    transient_rate=0.15,
    crash_rate=0.15,
    crash_point="anywhere",
    redeliveries_max=3,
    synchronous="off",
)
LAB = Scenario(jobs=80, steps=4, transient_rate=0.1, crash_rate=0.05)
EVERY_DESIGN = pytest.mark.parametrize("design", DESIGNS)
Made = tuple[Intervention, ...]


def random_interventions(rng: random.Random, designs: list[str], upto: int, most: int = 5) -> Made:
    made = []
    for _ in range(rng.randint(1, most)):
        kind = rng.choice(KINDS)
        many = 1 if kind == "kill" else rng.randint(1, 12)
        made.append(Intervention(rng.choice(designs), kind, rng.randint(1, upto), many))
    return tuple(made)


# Values


def test_an_intervention_reads_what_it_writes() -> None:
    for kind in KINDS:
        made = Intervention("checkpoint", kind, 417, COUNTS[kind])
        assert Intervention.parse(str(made)) == made
    assert str(Intervention("whole-job", "deploy", 1, 60)) == "whole-job:deploy:1:60"


@pytest.mark.parametrize(
    ("values", "named"),
    [
        (("no-such", "kill", 1, 1), "design(=no-such) of an intervention must be one of whole-job"),
        (("checkpoint", "meteor", 1, 1), "kind(=meteor) of an intervention must be one of kill"),
        (("checkpoint", "outage", 0, 1), "first(=0) of an intervention must be between 1"),
        (("checkpoint", "outage", True, 1), "first(=True) of an intervention must be between 1"),
        (("checkpoint", "outage", 1.0, 1), "first(=1.0) of an intervention must be between 1"),
        (("checkpoint", "outage", ORDINAL_MAX + 1, 1), "must be between 1 and"),
        (("checkpoint", "deploy", 1, 0), "count(=0) of an intervention must be between 1"),
        (("checkpoint", "kill", 1, 2), "count(=2) of a kill must be 1"),
    ],
    ids=str,
)
def test_a_value_out_of_range_dies_at_construction_with_its_name_and_rule(values: Any, named: str) -> None:
    with pytest.raises(Mistake) as caught:
        Intervention(*values)
    assert named in str(caught.value)


@pytest.mark.parametrize("word", ["", "checkpoint", "checkpoint:kill:1", "checkpoint:kill:x:1", "a:b:c:d:e"])
def test_a_word_that_is_no_intervention_is_refused(word: str) -> None:
    with pytest.raises(Mistake, match="must be DESIGN:KIND:FIRST:COUNT"):
        Intervention.parse(word)
    with pytest.raises(Mistake, match="must have numbers of at most"):
        Intervention.parse(f"checkpoint:outage:{'9' * 5000}:1")


def test_a_run_refuses_interventions_in_designs_that_it_does_not_run_and_more_than_a_lane_takes() -> None:
    made = Intervention("checkpoint", "kill", 1, 1)
    with pytest.raises(Mistake, match="must be in a design that is run: whole-job"):
        run_lab(LAB, (7,), ["whole-job"], interventions=[made])
    with pytest.raises(Mistake, match="at most 1,000"):
        run_lab(LAB, (7,), ["checkpoint"], interventions=[made] * (INTERVENTIONS_MAX + 1))


# The lab of ten lines


def retold(scenario: Scenario, seed: int, design: str, made: Made) -> Tally:
    """A lane with interventions as a person would tell it: no ordinals remembered, deploys counted down."""
    policy, plan = DESIGNS[design].policy(scenario), FaultPlan(scenario, seed)
    books = {job: {"saved": 0, "delivery": 0, "emails": 0, "key": 0, "n": [0] * (scenario.steps + 1)} for job in range(1, scenario.jobs + 1)}  # fmt: skip  # noqa: E501
    left = {each: each.count for each in made if each.kind == "deploy"}
    tally, queue = Tally(), deque(books)
    while queue:
        job = queue.popleft()
        book: Any = books[job]
        book["delivery"] += 1
        ends, first = False, True
        step = book["saved"] + 1
        failures = 0
        while step <= scenario.steps and not ends:
            tally.model_calls += 1
            ordinal, n = tally.model_calls, book["n"][step]
            book["n"][step] += 1
            fate = plan.fate(job, step, n)
            if any(m.kind == "outage" and m.first <= ordinal < m.first + m.count for m in made):
                fate = Fate.TRANSIENT
            if any(m.kind == "kill" and m.first == ordinal for m in made):
                fate = Fate.CRASH
            if first:
                for deploy in [m for m in left if m.first <= ordinal and left[m]]:
                    left[deploy] -= 1
                    fate = Fate.CRASH
            first = False
            if fate is Fate.TRANSIENT:
                failures += 1
                ends = failures == policy.tries
                continue
            point = plan.crash_point(job, step, n) if fate is Fate.CRASH else None
            ends = point is not None
            guarded = policy.guard == "key" and step == scenario.effect_step
            if point == "before-work" or (point == "after-key" and not guarded):
                continue
            if step == scenario.effect_step:
                skip, book["key"] = guarded and book["key"], 1
                if point == "after-key":
                    continue
                if not skip:
                    book["emails"] += 1
            if point == "after-work":
                continue
            if policy.checkpoints:
                book["saved"] = step
                tally.checkpoint_writes += 1
            step, failures = step + 1, 0
        if not ends:
            tally.finished += 1
            tally.missing_email_jobs += book["emails"] == 0
        elif book["delivery"] < policy.deliveries:
            queue.append(job)
            tally.redeliveries += 1
        else:
            tally.lost_job_calls += sum(book["n"])
            if policy.checkpoints:
                tally.dead_lettered += 1
            else:
                tally.lost += 1
    for book in books.values():
        tally.emails_delivered += book["emails"]
        tally.duplicate_email_jobs += book["emails"] > 1
        tally.resumed_jobs += book["delivery"] > 1
    return tally


# A lane in this process


def assign(directory: Path, design: str, made: Made, scenario: Scenario = SMALL, seed: int = 5) -> Assignment:
    own = tuple(each for each in made if each.design == design)
    return Assignment(directory=directory, scenario=scenario, design=DESIGNS[design], seed=seed, interventions=own)


def begin(assignment: Assignment) -> Ledger:
    assignment.directory.mkdir()
    with Store.create(assignment.store, synchronous="off") as store:
        store.enqueue(1, assignment.scenario.jobs)
    return Ledger.create(assignment.ledger, jobs=assignment.scenario.jobs, steps=assignment.scenario.steps)


def histogram() -> LatencyHistogram:
    return LatencyHistogram(memoryview(bytearray(WORDS * 8)).cast("Q"))


def board(assignment: Assignment) -> memoryview:
    return memoryview(bytearray(assignment.scenario.jobs))


def work(assignment: Assignment, ledger: Ledger) -> Iterator[Shift]:
    """Work a lane from where it stands; stop before each call and at the end, which must be as streamed."""
    with Shift(assignment, ledger, histogram(), board(assignment), None) as shift:
        yield shift
        while shift.more:
            shift.advance(1)
            yield shift
        tally = shift.tally
    with assignment.reopen_store() as store:
        assert count(store, ledger) == tally


def to_the_end(assignment: Assignment, ledger: Ledger) -> Tally:
    tally = Tally()
    for shift in work(assignment, ledger):
        tally = shift.tally
    ledger.close()
    return tally


@given(seed=st.integers(0, 2**32), design=st.sampled_from(list(DESIGNS)), data=st.data())
@settings(max_examples=40, deadline=None)
def test_a_lane_with_any_interventions_is_as_told_and_the_same_again(
    tmp_path_factory: pytest.TempPathFactory, seed: int, design: str, data: st.DataObject
) -> None:
    made = random_interventions(random.Random(data.draw(st.integers(0, 2**32))), [design], 60)  # noqa: S311
    place = tmp_path_factory.mktemp("lane")
    assignment = assign(place / "one", design, made, seed=seed)
    tally = to_the_end(assignment, begin(assignment))
    assert tally == retold(SMALL, seed, design, made), [str(each) for each in made]
    other = replace(assignment, directory=place / "two", interventions=made[::-1])
    assert to_the_end(other, begin(other)) == tally
    shutil.rmtree(place)


@EVERY_DESIGN
def test_interventions_beyond_the_end_change_nothing(tmp_path: Path, design: str) -> None:
    plain = assign(tmp_path / "plain", design, ())
    tally = to_the_end(plain, begin(plain))
    beyond = tuple(Intervention(design, kind, tally.model_calls + 1, COUNTS[kind]) for kind in KINDS)
    assignment = assign(tmp_path / "beyond", design, beyond)
    assert to_the_end(assignment, begin(assignment)) == tally
    assert applied(beyond, tally.model_calls) == ()
    first = Intervention(design, "kill", tally.model_calls, 1)
    assert applied((*beyond, first), tally.model_calls) == (first,)


@EVERY_DESIGN
@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_does_what_its_key_says(tmp_path: Path, design: str, kind: Kind) -> None:
    calm = replace(SMALL, jobs=200, transient_rate=0, crash_rate=0, crash_point="after-work", redeliveries_max=1000)
    made = Intervention(design, kind, 5, COUNTS[kind])
    assignment = assign(tmp_path / "lane", design, (made,), calm)
    tally = to_the_end(assignment, begin(assignment))
    checkpoints = DESIGNS[design].checkpoints
    ended_by_failure = {"kill": 1, "deploy": 60, "outage": 500 // 3 if checkpoints else 500}[kind]
    assert tally.redeliveries + tally.lost + tally.dead_lettered == ended_by_failure
    if kind == "kill":
        # The fifth attempt is the second step of the second job, the email: sent, and not known of.
        assert tally.duplicate_email_jobs == (0 if DESIGNS[design].guard == "key" else 1)


@EVERY_DESIGN
def test_a_lane_stopped_anywhere_is_sound_and_ends_the_same_also_with_more_done_to_it_there(
    tmp_path: Path, design: str
) -> None:
    """Stopped before each call, with the last attempt in flight: it is undone and made again with its ordinal."""
    rng = random.Random(7)  # noqa: S311
    made = (
        Intervention(design, "deploy", 9, 4),
        Intervention(design, "outage", 16, 5),
        Intervention(design, "deploy", 19, 3),
        Intervention(design, "kill", 30, 1),
    )
    whole = assign(tmp_path / "whole", design, made)
    stops, due = 0, retold(SMALL, 5, design, made)
    for stops, _ in enumerate(work(whole, begin(whole)), start=1):
        there = replace(whole, directory=tmp_path / f"stop-{stops}")
        shutil.copytree(whole.directory, there.directory)
        live = LiveFigures.reopen(there.live)
        with Remains.of(there).recovered(live) as (store, ledger, redo, tally):
            list(audit(there, store, ledger, redo))
            first = tally.model_calls + 1
        more = replace(there, directory=tmp_path / f"more-{stops}")
        shutil.copytree(there.directory, more.directory)
        assert to_the_end(there, Ledger.open(there.ledger)) == due
        new = tuple(Intervention(design, kind, first, 1 if kind == "kill" else 3) for kind in rng.sample(KINDS, 2))
        ledger = Ledger.open(more.ledger)
        with Shift(more, ledger, histogram(), board(more), None) as shift:
            shift.intervene((*made, *new))
            while shift.more:
                shift.advance(rng.randint(1, 20))
            assert shift.tally == retold(SMALL, 5, design, (*made, *new)), (first, new)
        ledger.close()
    assert stops > 25


@pytest.mark.parametrize("mode", ["raise", "sigkill"])
def test_any_interventions_give_the_same_figures_in_the_lab_again_and_by_real_kills(mode: str) -> None:
    rng = random.Random(11)  # noqa: S311
    for _ in range(3):
        made = random_interventions(rng, list(DESIGNS), 250, most=8)
        seed = rng.randrange(1000)
        result = run_lab(replace(LAB, crash_mode=mode), (seed,), interventions=made)  # type: ignore[arg-type]
        for name, design in result.items():
            own = tuple(each for each in made if each.design == name)
            told = retold(LAB, seed, name, own)
            figures = design.replications[0].figures
            assert {field: getattr(figures, field) for field in asdict(told) if hasattr(figures, field)} == {
                field: value for field, value in asdict(told).items() if hasattr(figures, field)
            }, [str(each) for each in own]
            if mode == "sigkill" and any(each.kind == "kill" for each in own):
                assert design.replications[0].workers_killed > 0


# Snapshots and reports


@pytest.fixture(scope="module")
def disturbed(runs_live_in_a_scratch_directory: None) -> LabResult:
    made = [
        Intervention("checkpoint", "outage", 100, 40),
        Intervention("whole-job", "deploy", 50, 10),
        Intervention("whole-job", "kill", 10**6, 1),
    ]
    return run_lab(LAB, (3, 4), ["whole-job", "checkpoint"], interventions=made)


def test_a_result_lists_what_came_before_its_end_and_theory_is_silent(disturbed: LabResult) -> None:
    assert [str(each) for each in disturbed.interventions] == ["whole-job:deploy:50:10", "checkpoint:outage:100:40"]
    for design in disturbed.values():
        assert design.expected is None
        assert all((each.z, each.tail_p, each.judged) == (None, None, None) for each in design.replications)


def test_a_snapshot_with_interventions_verifies_and_an_altered_one_is_named(disturbed: LabResult) -> None:
    data = to_json(disturbed, Path())
    tree = json.loads(data)
    assert tree["interventions"][0] == {"design": "whole-job", "kind": "deploy", "first": 50, "count": 10}
    assert tree["designs"][0]["expected"] is None
    assert tree["designs"][0]["replications"][0]["z"] is None
    assert verify(data).interventions == disturbed.interventions
    for change in ({"first": 51}, {"count": 39}, {"kind": "deploy"}):
        altered = json.loads(data)
        altered["interventions"][1].update(change)
        with pytest.raises(NotVerified, match=r"^(designs|interventions)"):
            verify(json.dumps(altered).encode())
    del tree["interventions"][0]
    with pytest.raises(NotVerified):
        verify(json.dumps(tree).encode())


def test_reports_say_that_somebody_has_intervened_and_that_theory_does_not_apply(disturbed: LabResult) -> None:
    markdown, table = as_markdown(disturbed), as_csv(disturbed)
    assert "Interventions were made (1 deploy, 1 outage), so theory does not apply." in markdown
    assert "expected of one" not in markdown
    assert "--intervention whole-job:deploy:50:10 --intervention checkpoint:outage:100:40" in markdown
    assert ",whole-job:deploy:50:10 checkpoint:outage:100:40," in table


# A lane that is told while it is at work


def wait_for(lane: LaneProcess, state: LaneState, calls: int) -> None:
    until = time.monotonic() + 20
    while (seen := lane.progress()).state is not state or seen.tally.model_calls < calls:
        assert lane.running, lane.result()
        assert time.monotonic() < until, seen
        time.sleep(0.005)


@pytest.mark.parametrize("mode", ["raise", "sigkill"])
@EVERY_DESIGN
def test_a_lane_that_is_told_and_killed_goes_on_with_what_it_was_told(tmp_path: Path, design: str, mode: Any) -> None:
    scenario = replace(LAB, crash_mode=mode)
    directory = tmp_path / "lane"
    lane = LaneProcess(directory, scenario, DESIGNS[design], 7, paused=True)
    for step, kind in ((20, "kill"), (30, "deploy"), (1, "outage")):
        lane.send(Step(step))
        lane.send(Intervene(kind))  # type: ignore[arg-type]
    lane.send(Step(7))
    wait_for(lane, LaneState.RUNNING, 58)
    os.kill(lane.pid, signal.SIGKILL)
    lane.end()
    made = read_interventions(directory, design)
    assert sorted(each.kind for each in made) == sorted(KINDS)
    again = LaneProcess(directory, scenario, DESIGNS[design], 7)
    again.send(GoOn())
    result = again.result()
    again.end()
    assert result.interventions == made
    assert result.tally == retold(scenario, 7, design, made)
    once_more = LaneProcess(directory, scenario, DESIGNS[design], 7)
    assert once_more.result() == result
    once_more.end()


def test_what_was_done_survives_a_reboot_and_a_destroyed_store(
    tmp_path: Path, describe_anew: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "run"
    directory = RunDirectory.create(place, LAB, find_designs(["checkpoint"]), [7])
    lane_place = directory.lane(DESIGNS["checkpoint"], 7)
    lane = LaneProcess(lane_place, LAB, DESIGNS["checkpoint"], 7, paused=True)
    lane.send(Step(50))
    lane.send(Intervene("deploy"))
    lane.send(Step(10))
    wait_for(lane, LaneState.RUNNING, 60)
    lane.end()
    directory.release()
    made = read_interventions(lane_place, "checkpoint")
    assert len(made) == 1
    due = retold(LAB, 7, "checkpoint", made)
    shutil.copytree(place, tmp_path / "destroyed")
    describe_anew(place, boot="another")
    rebooted = resume_lab(place)
    (tmp_path / "destroyed" / lane_place.name / "ledger").write_bytes(b"")
    destroyed = resume_lab(tmp_path / "destroyed", rerun_damaged=True)
    for result in (rebooted, destroyed):
        assert result.interventions == made
        assert result["checkpoint"].median.model_calls == due.model_calls
        assert result["checkpoint"].expected is None


def test_a_run_that_is_run_again_keeps_its_interventions_across_an_interruption(tmp_path: Path) -> None:
    made = [Intervention("checkpoint", "outage", 100, 40)]
    place = tmp_path / "run"
    RunDirectory.create(place, LAB, find_designs(["checkpoint"]), [7], made).release()
    assert list(resume_lab(place).interventions) == made


# What is on disk


def test_a_list_that_was_written_over_is_no_list(tmp_path: Path) -> None:
    made = (Intervention("checkpoint", "outage", 3, 4), Intervention("checkpoint", "kill", 2, 1))
    assert write_interventions(tmp_path, made) == made[::-1]
    assert read_interventions(tmp_path, "checkpoint") == made[::-1]
    whole = (tmp_path / FILE).read_bytes()
    for at in range(len(whole)):
        (tmp_path / FILE).write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(Damaged, match=FILE):
            read_interventions(tmp_path, "checkpoint")
    (tmp_path / FILE).write_bytes(whole)
    with pytest.raises(Damaged):
        read_interventions(tmp_path, "whole-job")
    assert read_interventions(tmp_path / "nowhere", "checkpoint") == ()


def test_a_long_audit_lets_its_lane_be_told_things(tmp_path: Path) -> None:
    scenario = replace(LAB, jobs=TELL_EVERY // 2, steps=4, synchronous="off")
    assignment = assign(tmp_path / "lane", "whole-job", (Intervention("whole-job", "kill", 1, 1),), scenario)
    ledger = begin(assignment)
    with Shift(assignment, ledger, histogram(), board(assignment), None) as shift:
        while shift.more:
            shift.advance(10_000)
    with assignment.reopen_store() as store:
        assert list(audit(assignment, store, ledger, None))[:3] == [0, TELL_EVERY, 2 * TELL_EVERY]
    ledger.close()
