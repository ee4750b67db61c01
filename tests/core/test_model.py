"""The model is the lab: the contract's figures, a slow reference of its rules job by job, and what it costs."""

import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from durcore.designs import CHECKPOINT, DEFAULT_DESIGNS, DESIGNS, WHOLE_JOB, Design, Policy
from durcore.errors import InvalidScenario, Mistake
from durcore.faults import Fate, FaultPlan
from durcore.figures import Tally
from durcore.lab import run_lab
from durcore.latency import WORDS, LatencyHistogram
from durcore.ledger import Ledger
from durcore.model import BLOCK_JOBS, ENDINGS, outcomes, simulate
from durcore.scenario import CrashPoint, Scenario
from durcore.store import Store
from durcore.worker import Worker

# design, seed: finished, lost, model_calls, unproductive_calls, lost_job_calls, duplicate_email_jobs,
# emails_delivered, redeliveries, resumed_jobs, checkpoint_writes. From the contract, section Figures.
CONTRACT: dict[tuple[str, int], tuple[float, ...]] = {
    ("whole-job", 7): (1928, 72, 24324, 5044, 1131, 287, 2301, 884, 665, 0),
    ("whole-job", 8): (1920, 80, 24184, 4984, 1197, 285, 2285, 884, 668, 0),
    ("whole-job", 9): (1925, 75, 24456, 5206, 1153, 292, 2312, 916, 690, 0),
    ("checkpoint", 7): (2000, 0, 20820, 820, 0, 20, 2020, 240, 227, 20000),
    ("checkpoint", 8): (2000, 0, 20839, 839, 0, 14, 2015, 209, 194, 20000),
    ("checkpoint", 9): (2000, 0, 20841, 841, 0, 20, 2021, 217, 206, 20000),
    ("checkpoint-idempotent", 7): (2000, 0, 20820, 820, 0, 0, 2000, 240, 227, 20000),
    ("checkpoint-idempotent", 8): (2000, 0, 20839, 839, 0, 0, 2000, 209, 194, 20000),
    ("checkpoint-idempotent", 9): (2000, 0, 20841, 841, 0, 0, 2000, 217, 206, 20000),
}

WHOLE_JOB_WITH_KEY = replace(WHOLE_JOB, name="whole-job-with-key", guard="key")
EVERY_DESIGN = (*DESIGNS.values(), WHOLE_JOB_WITH_KEY)
CRASH_POINTS: tuple[CrashPoint, ...] = get_args(CrashPoint)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    ending: str
    calls: int
    emails: int
    deliveries: int
    saved: int


def run_one_job(policy: Policy, plan: FaultPlan, job: int) -> Ended:
    """The contract's section "An attempt" as a loop over single attempts."""
    attempts = [0] * (policy.steps + 1)
    keyed, emails, saved = False, 0, 0
    for delivery in range(1, policy.deliveries + 1):
        step, failures, alive = saved + 1, 0, True
        while alive and step <= policy.steps and failures < policy.tries:
            n = attempts[step]
            fate = plan.fate(job, step, n)
            alive = fate is not Fate.CRASH
            point = "" if alive else plan.crash_point(job, step, n)
            attempts[step] += 1
            worked = fate is Fate.SUCCESS or point in ("after-work", "after-checkpoint")
            if step == policy.effect_step:
                emails += worked and not keyed
                keyed |= policy.guard == "key" and (worked or point == "after-key")
            if fate is Fate.TRANSIENT:
                failures += 1
            elif fate is Fate.SUCCESS or (point == "after-checkpoint" and policy.checkpoints):
                step, failures = step + 1, 0
                saved = step - 1 if policy.checkpoints else 0
        if alive and step > policy.steps:
            return Ended(ending="finished", calls=sum(attempts), emails=emails, deliveries=delivery, saved=saved)
    ending = "dead_lettered" if policy.checkpoints else "lost"
    return Ended(ending=ending, calls=sum(attempts), emails=emails, deliveries=policy.deliveries, saved=saved)


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    steps = draw(st.integers(1, 12))
    some_rate = st.sampled_from([0.0, 0.01, 0.03, 0.2, 0.5, 1.0]) | st.floats(0, 1)
    transient_rate = draw(some_rate)
    crash_rate = draw(st.just(1 - transient_rate) | some_rate.map(lambda rate: rate * (1 - transient_rate)))
    return Scenario(
        jobs=draw(st.integers(1, 25)),
        steps=steps,
        email_step=draw(st.none() | st.integers(1, steps)),
        transient_rate=transient_rate,
        crash_rate=crash_rate,
        crash_point=draw(st.sampled_from(CRASH_POINTS)),
        job_attempts=draw(st.integers(1, 8)),
        step_attempts=draw(st.integers(1, 5)),
        redeliveries_max=draw(st.integers(0, 12)),
    )


def replay(scenario: Scenario, seed: int) -> str:
    return " ".join(["durtui run", *scenario.flags(), "--seed", str(seed)])


def check_job_by_job(scenario: Scenario, seed: int, first_job: int = 1, last_job: int | None = None) -> None:
    plan = FaultPlan(scenario, seed)
    last_job = scenario.jobs if last_job is None else last_job
    for design in EVERY_DESIGN:
        seen = outcomes(scenario, seed, design, first_job, last_job)
        assert seen.first_job == first_job
        policy = design.policy(scenario)
        for i, job in enumerate(range(first_job, last_job + 1)):
            ended = Ended(
                ending=ENDINGS[seen.ending[i]],
                calls=int(seen.calls[i]),
                emails=int(seen.emails[i]),
                deliveries=int(seen.deliveries[i]),
                saved=int(seen.saved[i]),
            )
            assert ended == run_one_job(policy, plan, job), f"{design.name}, job {job} of {replay(scenario, seed)}"


def check_figures(scenario: Scenario, seed: int) -> None:
    plan = FaultPlan(scenario, seed)
    for name, figures in simulate(scenario, seed).items():
        policy = DESIGNS[name].policy(scenario)
        jobs = [run_one_job(policy, plan, job) for job in range(1, scenario.jobs + 1)]
        finished = [job for job in jobs if job.ending == "finished"]
        calls = sum(job.calls for job in jobs)
        wasted, unproductive = calls - scenario.jobs * scenario.steps, calls - scenario.steps * len(finished)
        expected = {
            "finished": len(finished),
            "lost": sum(job.ending == "lost" for job in jobs),
            "dead_lettered": sum(job.ending == "dead_lettered" for job in jobs),
            "model_calls": calls,
            "wasted_calls": wasted,
            "wasted_cost_usd": wasted * scenario.cost_per_call_usd,
            "unproductive_calls": unproductive,
            "unproductive_cost_usd": unproductive * scenario.cost_per_call_usd,
            "lost_job_calls": sum(job.calls for job in jobs if job.ending != "finished"),
            "duplicate_email_jobs": sum(job.emails > 1 for job in jobs),
            "missing_email_jobs": sum(job.emails == 0 for job in finished),
            "emails_delivered": sum(job.emails for job in jobs),
            "redeliveries": sum(job.deliveries - 1 for job in jobs),
            "resumed_jobs": sum(job.deliveries > 1 for job in jobs),
            "checkpoint_writes": sum(job.saved for job in jobs),
            "manual_resumes": 0,
        }
        assert figures.as_dict() == expected, f"{name} of {replay(scenario, seed)}"


@pytest.mark.parametrize("seed", [7, 8, 9])
def test_the_missions_lab_gives_the_contracts_figures(seed: int) -> None:
    for design, f in simulate(Scenario(), seed).items():
        first = (f.finished, f.lost, f.model_calls, f.unproductive_calls, f.lost_job_calls, f.duplicate_email_jobs)
        seen = (*first, f.emails_delivered, f.redeliveries, f.resumed_jobs, f.checkpoint_writes)
        assert seen == CONTRACT[design, seed], f"seed {seed}"


SEEDS = st.integers(0, 2**63 - 1)


@settings(max_examples=30, deadline=None)
@given(scenarios(), SEEDS)
def test_every_job_ends_as_the_contract_says(scenario: Scenario, seed: int) -> None:
    check_job_by_job(scenario, seed)
    check_figures(scenario, seed)


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(scenarios(), SEEDS)
def test_every_job_ends_as_the_contract_says_in_500_scenarios(scenario: Scenario, seed: int) -> None:
    check_job_by_job(scenario, seed)
    check_figures(scenario, seed)


@pytest.mark.parametrize("point", ["after-work", "after-checkpoint", "anywhere"])
@pytest.mark.parametrize(
    ("transient_rate", "crash_rate"), [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (0.5, 0.5), (0.3, 0.7), (0.6, 0.2)]
)
def test_long_jobs_at_the_largest_caps_end_as_the_contract_says(
    transient_rate: float, crash_rate: float, point: CrashPoint
) -> None:
    scenario = Scenario(
        jobs=1,
        steps=100,
        email_step=1,
        transient_rate=transient_rate,
        crash_rate=crash_rate,
        crash_point=point,
        job_attempts=100,
        step_attempts=7,
        redeliveries_max=1000,
    )
    check_job_by_job(scenario, 3)


def test_the_last_of_ten_million_jobs_meets_its_own_faults_at_the_last_seed() -> None:
    scenario = Scenario(jobs=10_000_000, transient_rate=0.2, crash_rate=0.1, crash_point="anywhere")
    check_job_by_job(scenario, 2**63 - 1, first_job=9_999_981)


# The real lab: stores, ledgers and workers.


def work_through(design: Design, scenario: Scenario, seed: int, directory: Path) -> list[Ended]:
    """What became of every job in a real store and ledger."""
    directory.mkdir()
    ledger = Ledger.create(directory / "ledger", jobs=scenario.jobs, steps=scenario.steps)
    with Store.create(directory / "store.db", synchronous="off") as store:
        store.enqueue(1, scenario.jobs)
        worker = Worker(
            policy=design.policy(scenario),
            plan=FaultPlan(scenario, seed),
            store=store,
            ledger=ledger,
            tally=Tally(),
            writes=LatencyHistogram(memoryview(bytearray(8 * WORDS)).cast("Q")),
            board=memoryview(bytearray(scenario.jobs)),
            output=b"",
        )
        for _ in worker.work():
            pass
        saved = [store.saved_steps(job) for job in range(1, scenario.jobs + 1)]
    with closing(apsw.Connection(str(directory / "store.db"))) as connection:
        rows: list[Any] = connection.execute("SELECT id, state, deliveries FROM jobs ORDER BY id").fetchall()
    with closing(ledger):
        return [
            Ended(ending=state, calls=ledger.calls(job), emails=ledger.emails(job), deliveries=n, saved=saved[job - 1])
            for job, state, n in rows
        ]


@pytest.mark.parametrize("point", CRASH_POINTS)
def test_every_job_of_a_real_store_ends_as_in_the_model(point: CrashPoint, tmp_path: Path) -> None:
    scenario = Scenario(
        jobs=120, steps=5, email_step=3, transient_rate=0.2, crash_rate=0.2, crash_point=point, redeliveries_max=2
    )
    for design in EVERY_DESIGN:
        seen = outcomes(scenario, 7, design)
        columns = (seen.ending, seen.calls, seen.emails, seen.deliveries, seen.saved)
        model = [
            Ended(ending=ENDINGS[ending], calls=calls, emails=emails, deliveries=deliveries, saved=saved)
            for ending, calls, emails, deliveries, saved in zip(*(column.tolist() for column in columns), strict=True)
        ]
        assert model == work_through(design, scenario, 7, tmp_path / design.name), f"{design.name} {point}"


def check_against_the_lab(scenario: Scenario, seeds: Sequence[int]) -> None:
    result = run_lab(scenario, seeds=seeds)
    for i, seed in enumerate(seeds):
        for design, figures in simulate(scenario, seed).items():
            real = result[design].replications[i]
            assert real.seed == seed
            assert real.figures == figures, f"{design} of {replay(scenario, seed)}"


@pytest.mark.parametrize("point", CRASH_POINTS)
def test_the_lab_and_the_model_give_the_same_figures_at_every_crash_point(point: CrashPoint) -> None:
    check_against_the_lab(
        Scenario(jobs=300, steps=6, transient_rate=0.1, crash_rate=0.15, crash_point=point, redeliveries_max=4), (7, 8)
    )


@pytest.mark.slow
@pytest.mark.parametrize("point", CRASH_POINTS)
def test_the_missions_lab_and_the_model_give_the_same_figures_for_twenty_seeds(point: CrashPoint) -> None:
    check_against_the_lab(Scenario(crash_point=point), range(1, 21))


# Where a crash lands, to the job.


@settings(max_examples=30, deadline=None)
@given(scenarios(), SEEDS)
def test_a_key_never_duplicates_and_a_finished_job_without_one_has_its_email(scenario: Scenario, seed: int) -> None:
    guards = {design.name: design.guard for design in EVERY_DESIGN}
    for name, figures in simulate(scenario, seed, EVERY_DESIGN).items():
        never = figures.duplicate_email_jobs if guards[name] == "key" else figures.missing_email_jobs
        assert never == 0, f"{name} of {replay(scenario, seed)}"


@pytest.mark.parametrize("point", CRASH_POINTS)
def test_only_a_crash_between_work_and_record_duplicates_and_only_one_between_key_and_email_misses(
    point: CrashPoint,
) -> None:
    figures = simulate(Scenario(crash_point=point), 7)
    assert (figures["checkpoint"].duplicate_email_jobs > 0) == (point in ("after-work", "anywhere"))
    assert (figures["checkpoint-idempotent"].missing_email_jobs > 0) == (point in ("after-key", "anywhere"))
    if point == "after-key":
        assert 8 <= figures["checkpoint-idempotent"].missing_email_jobs <= 35  # 1 % of 2,000, give or take


def test_a_jobs_outcome_does_not_depend_on_the_block_it_is_taken_in() -> None:
    scenario = Scenario(jobs=BLOCK_JOBS + 10, steps=3, transient_rate=0.3)
    everybody = outcomes(scenario, 7, "whole-job")
    a_few = outcomes(scenario, 7, "whole-job", BLOCK_JOBS - 5, BLOCK_JOBS + 5)
    for name in ("ending", "calls", "emails", "deliveries", "saved"):
        assert (getattr(everybody, name)[BLOCK_JOBS - 6 : BLOCK_JOBS + 5] == getattr(a_few, name)).all()
    assert simulate(scenario, 7)["whole-job"].model_calls == everybody.calls.sum()


def test_designs_come_in_the_order_asked_for_by_name_or_value() -> None:
    few = Scenario(jobs=3)
    assert tuple(simulate(few, 7)) == DEFAULT_DESIGNS
    assert list(simulate(few, 7, ["checkpoint-idempotent", CHECKPOINT])) == ["checkpoint-idempotent", "checkpoint"]
    assert simulate(few, 7, ["checkpoint", CHECKPOINT])["checkpoint"].finished == 3


def test_a_wrong_seed_range_or_design_is_told_by_name() -> None:
    with pytest.raises(InvalidScenario, match="seed"):
        simulate(Scenario(), -1)
    with pytest.raises(InvalidScenario, match=r"jobs\(=5 to 4\)"):
        outcomes(Scenario(), 7, "checkpoint", 5, 4)
    with pytest.raises(Mistake, match="design"):
        simulate(Scenario(), 7, ["hope"])


def test_numpy_is_imported_when_it_is_needed_and_not_before() -> None:
    code = (
        "import sys, durcore.model as m; from durcore.scenario import Scenario; early = 'numpy' in sys.modules; "
        "m.simulate(Scenario(jobs=1), 7); sys.exit(early or 'numpy' not in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow
def test_a_million_jobs_in_three_designs_take_a_second() -> None:
    def once() -> float:
        start = time.process_time()
        simulate(Scenario(jobs=1_000_000), 7)
        return time.process_time() - start

    assert min(once() for _ in range(3)) < 1.0
