"""Theory is exact: the mission's figures, every path of small jobs by fractions, and the model's scatter."""

import random
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from math import comb, sqrt
from typing import get_args

import pytest

from durcore.designs import CHECKPOINT, DESIGNS, WHOLE_JOB, Design, Policy
from durcore.errors import Mistake
from durcore.figures import FIGURE_NAMES
from durcore.model import simulate
from durcore.scenario import CrashPoint, Scenario
from durcore.theory import Judgement, Moment, expect, judge, z_score
from durcore.theory_tails import Generating, binomial_tail, sum_tail

CRASH_POINTS: tuple[CrashPoint, ...] = get_args(CrashPoint)
EVERY_DESIGN = (*DESIGNS.values(), replace(WHOLE_JOB, name="whole-job-with-key", guard="key"))

# The mission, "The lab to reproduce": mean and deviation to every digit shown there.
MISSION = {
    ("whole-job", "finished"): ("1,924.7", "8.5"),
    ("whole-job", "lost"): ("75.3", "8.5"),
    ("whole-job", "model_calls"): ("24,257.8", "170.2"),
    ("whole-job", "wasted_calls"): ("4,257.8", "170.2"),
    ("whole-job", "duplicate_email_jobs"): ("282.8", "15.6"),
    ("checkpoint", "finished"): ("2,000.0", "0.0"),
    ("checkpoint", "lost"): ("0.0", "0.0"),
    ("checkpoint", "model_calls"): ("20,833.3", "29.5"),
    ("checkpoint", "wasted_calls"): ("833.3", "29.5"),
    ("checkpoint", "duplicate_email_jobs"): ("20.6", "4.5"),
    ("checkpoint-idempotent", "finished"): ("2,000.0", "0.0"),
    ("checkpoint-idempotent", "lost"): ("0.0", "0.0"),
    ("checkpoint-idempotent", "model_calls"): ("20,833.3", "29.5"),
    ("checkpoint-idempotent", "wasted_calls"): ("833.3", "29.5"),
    ("checkpoint-idempotent", "duplicate_email_jobs"): ("0.0", "0.0"),
}


@pytest.mark.parametrize(("design", "figure"), MISSION)
def test_the_missions_exact_column_is_met_to_every_digit(design: str, figure: str) -> None:
    moment = expect(Scenario())[design].as_dict()[figure]
    assert (f"{moment.mean:,.1f}", f"{moment.sd:,.1f}") == MISSION[design, figure]


@pytest.mark.parametrize(("email_step", "whole_job", "checkpoint"), [(10, 0.0077, 0.0103), (1, 0.314, 0.0103)])
def test_the_effects_place_decides_the_duplicates(email_step: int, whole_job: float, checkpoint: float) -> None:
    expected = expect(Scenario(email_step=email_step))
    for design, share in (("whole-job", whole_job), ("checkpoint", checkpoint)):
        assert expected[design].duplicate_email_jobs.mean / 2000 == pytest.approx(share, rel=5e-3)


def test_theory_knows_every_figure_by_the_contracts_name() -> None:
    assert tuple(expect(Scenario())["whole-job"].as_dict()) == FIGURE_NAMES


def test_designs_come_in_the_order_asked_for_and_an_unknown_one_is_told() -> None:
    assert list(expect(Scenario(), ["checkpoint", WHOLE_JOB])) == ["checkpoint", "whole-job"]
    with pytest.raises(Mistake, match="design"):
        expect(Scenario(), ["hope"])


@pytest.fixture(autouse=True)
def sixty_digits() -> Iterator[None]:
    with localcontext() as context:
        context.prec = 60
        yield


# Every path of one job, by sums to 60 digits. Written from the contract alone.


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    step: int = 1
    delivery: int = 1
    failures: int = 0
    calls: int = 0
    effects: int = 0
    keyed: bool = False
    ended: bool = False
    finished: bool = False


def every_fate(scenario: Scenario) -> list[tuple[str, Decimal]]:
    """What an attempt may come to, a crash told by its point, with the exact probability of each."""
    t, c = Decimal(scenario.transient_rate), Decimal(scenario.crash_rate)
    points = [point for point in CRASH_POINTS if point != "anywhere" and scenario.crash_point in (point, "anywhere")]
    fates = [("success", 1 - t - c), ("transient", t), *((point, c / len(points)) for point in points)]
    return [(fate, odds) for fate, odds in fates if odds > 0]


def every_end(policy: Policy, scenario: Scenario) -> dict[Job, Decimal]:
    """The law of one job: each end it may come to with its exact probability."""
    law: dict[Job, Decimal] = {}
    under_way = {Job(): Decimal(1)}
    fates = every_fate(scenario)
    while under_way:
        after: dict[Job, Decimal] = {}
        for job, mass in under_way.items():
            for fate, odds in fates:
                to = after_attempt(policy, job, fate)
                into = law if to.ended else after
                into[to] = into.get(to, Decimal(0)) + mass * odds
        under_way = after
    return law


def after_attempt(policy: Policy, job: Job, fate: str) -> Job:
    has_key = policy.guard == "key" and job.step == policy.effect_step
    worked = fate in ("success", "after-work", "after-checkpoint")
    sent = worked and job.step == policy.effect_step and not job.keyed
    keyed = job.keyed or (has_key and (worked or fate == "after-key"))
    job = replace(job, calls=job.calls + 1, effects=job.effects + sent, keyed=keyed)
    if fate == "success" or (fate == "after-checkpoint" and policy.checkpoints):
        job = replace(job, step=job.step + 1, failures=0)
    done = job.step > policy.steps
    if fate == "success":
        return replace(job, ended=done, finished=done)
    if fate == "transient" and job.failures + 1 < policy.tries:
        return replace(job, failures=job.failures + 1)
    if job.delivery == policy.deliveries:
        return replace(job, ended=True)
    job = replace(job, step=job.step if policy.checkpoints else 1, delivery=job.delivery + 1, failures=0)
    return replace(job, ended=done, finished=done)  # where every step is saved, a delivery without a call


def figures_of_one(policy: Policy, job: Job, price: Decimal) -> dict[str, Decimal]:
    finished = job.finished
    wasted, unproductive = job.calls - policy.steps, job.calls - policy.steps * finished
    values: dict[str, int | Decimal] = {
        "finished": finished,
        "lost": not finished and not policy.checkpoints,
        "dead_lettered": not finished and policy.checkpoints,
        "model_calls": job.calls,
        "wasted_calls": wasted,
        "wasted_cost_usd": wasted * price,
        "unproductive_calls": unproductive,
        "unproductive_cost_usd": unproductive * price,
        "lost_job_calls": 0 if finished else job.calls,
        "duplicate_email_jobs": job.effects > 1,
        "missing_email_jobs": finished and job.effects == 0,
        "emails_delivered": job.effects,
        "redeliveries": job.delivery - 1,
        "resumed_jobs": job.delivery > 1,
        "checkpoint_writes": job.step - 1 if policy.checkpoints else 0,
        "manual_resumes": 0,
    }
    return {name: Decimal(value) for name, value in values.items()}


def check_against_every_path(scenario: Scenario, design: Design) -> None:
    policy = design.policy(scenario)
    law = every_end(policy, scenario)
    price = Decimal(scenario.cost_per_call_usd)
    ends = [(figures_of_one(policy, job, price), mass) for job, mass in law.items()]
    assert abs(sum((mass for _, mass in ends), Decimal(0)) - 1) < Decimal("1e-50")
    for name, moment in expect(scenario, [design])[design.name].as_dict().items():
        mean = sum(figures[name] * mass for figures, mass in ends)
        variance = sum((figures[name] - mean) ** 2 * mass for figures, mass in ends)
        assert moment.mean == pytest.approx(float(scenario.jobs * mean), rel=1e-11, abs=1e-300), (name, scenario)
        assert moment.sd == pytest.approx(sqrt(scenario.jobs * variance), rel=1e-11, abs=1e-45), (name, scenario)


SMALL = [
    Scenario(steps=steps, email_step=email_step, job_attempts=a, step_attempts=k, redeliveries_max=r)
    for steps, email_step, a, k, r in [
        (1, 1, 1, 1, 0),
        (1, 1, 4, 2, 3),
        (3, 2, 3, 3, 2),
        (4, 1, 2, 1, 5),
        (3, 3, 5, 2, 1),
    ]
]
RATES = [
    (0.0, 0.0),
    (0.03, 0.01),
    (0.5, 0.25),
    (0.25, 0.75),
    (1.0, 0.0),
    (0.0, 1.0),
    (0.999, 0.0),
    (0.0, 0.999),
    (1e-12, 1e-9),
    (1e-5, 0.0),
    (0.7, 1e-7),
]


@pytest.mark.parametrize("design", EVERY_DESIGN, ids=lambda design: design.name)
@pytest.mark.parametrize("rates", RATES)
def test_every_figure_is_exact_by_every_path_of_a_small_job(design: Design, rates: tuple[float, float]) -> None:
    for small in SMALL:
        for point in CRASH_POINTS:
            scenario = replace(small, transient_rate=rates[0], crash_rate=rates[1], crash_point=point, jobs=3)
            check_against_every_path(scenario, design)


@pytest.mark.parametrize(
    ("scenario", "certain"),
    [
        (Scenario(transient_rate=0, crash_rate=0), set(FIGURE_NAMES)),
        (Scenario(transient_rate=1, crash_rate=0), set(FIGURE_NAMES)),
        (Scenario(transient_rate=0, crash_rate=1, email_step=1), set(FIGURE_NAMES)),
        (Scenario(transient_rate=0, crash_rate=1, email_step=1, crash_point="before-work"), set(FIGURE_NAMES)),
        (Scenario(transient_rate=0, crash_rate=1, email_step=1, crash_point="after-key"), set(FIGURE_NAMES)),
        # Every crash saves a step: finished in the last delivery, or dead-lettered with every step saved.
        (Scenario(transient_rate=0, crash_rate=1, crash_point="after-checkpoint"), set(FIGURE_NAMES)),
        (
            Scenario(transient_rate=0, crash_rate=1, crash_point="after-checkpoint", redeliveries_max=9),
            set(FIGURE_NAMES),
        ),
        # 1 - 0.7 - 0.3 is not 0 in binary, and yet no draw succeeds.
        (Scenario(transient_rate=0.3, crash_rate=0.7, step_attempts=1), set(FIGURE_NAMES) - {"emails_delivered"}),
        (Scenario(transient_rate=0.9, crash_rate=0.1, step_attempts=1), set(FIGURE_NAMES) - {"emails_delivered"}),
    ],
)
def test_what_is_certain_has_a_deviation_of_exactly_nothing(scenario: Scenario, certain: set[str]) -> None:
    for design, expected in expect(scenario).items():
        for name in certain:
            assert expected.as_dict()[name].sd == 0, (design, name)
        for name, judgement in judge(scenario, design, simulate(scenario, 1)[design].as_dict()).items():
            assert not judgement.impossible, (design, name)


def test_a_figure_that_differs_from_a_certain_one_is_impossible() -> None:
    calm = Scenario(transient_rate=0, crash_rate=0)
    figures = simulate(calm, 7)["checkpoint"].as_dict() | {"model_calls": 20_001}
    assert judge(calm, "checkpoint", figures)["model_calls"] == Judgement(z=None, tail_p=None, impossible=True)


def test_z_counts_deviations_and_has_none_to_count_where_there_is_none() -> None:
    assert z_score(7, Moment(mean=5, sd=4, bearing_jobs=100)) == 0.5
    assert z_score(7, Moment(mean=5, sd=0, bearing_jobs=0)) is None


def test_a_z_for_common_figures_and_a_tail_for_rare_ones() -> None:
    seen = judge(Scenario(), "checkpoint", simulate(Scenario(), 7)["checkpoint"].as_dict())
    for name in ("model_calls", "wasted_cost_usd", "redeliveries", "resumed_jobs"):
        assert seen[name].z is not None
        assert seen[name].tail_p is None
    for name in ("finished", "dead_lettered", "lost_job_calls", "duplicate_email_jobs", "emails_delivered"):
        assert seen[name].z is None
        assert seen[name].tail_p is not None
    assert seen["lost"] == seen["missing_email_jobs"] == Judgement(z=None, tail_p=None)
    assert seen["dead_lettered"].tail_p == pytest.approx(1)


def test_a_binomial_tail_is_exact() -> None:
    chosen = random.Random(5)  # noqa: S311  # a fixed choice of cases
    for _ in range(60):
        n, p = chosen.choice([1, 2, 5, 17, 40, 200]), chosen.choice([1e-12, 1e-3, 0.01, 0.3, 0.5, 0.9, 1 - 1e-6])
        k, exact = chosen.randint(0, n), Fraction(p)
        law = [comb(n, i) * exact**i * (1 - exact) ** (n - i) for i in range(n + 1)]
        tail = float(min(1, 2 * min(sum(law[: k + 1]), sum(law[k:]))))
        assert binomial_tail(k, n, p, float(1 - exact)) == pytest.approx(tail, rel=1e-11, abs=1e-300), (n, p, k)


def test_a_binomial_tail_of_ten_million_jobs_is_quick_and_right() -> None:
    start = time.process_time()
    # By the normal law with continuity correction 2.5446e-10; by the exact one a hair more.
    assert binomial_tail(5_010_000, 10_000_000, 0.5, 0.5) == pytest.approx(2.5448e-10, rel=1e-4)
    assert binomial_tail(3, 10_000_000, 1e-9, 1 - 1e-9) == pytest.approx(2 * 1.654e-7, rel=1e-3)
    assert time.process_time() - start < 0.1


def test_a_sums_tail_is_that_of_the_convolved_law() -> None:
    chosen = random.Random(6)  # noqa: S311  # a fixed choice of cases
    for _ in range(100):
        jobs, size = chosen.choice([1, 3, 20, 64]), chosen.choice([2, 3, 8])
        raw = [chosen.random() ** chosen.choice([1, 6, 20]) + 1e-9 for _ in range(size)]
        raw[0] += chosen.choice([0, 30])
        one = [weight / sum(raw) for weight in raw]
        law = convolved(dict(enumerate(one)), jobs)
        mean = jobs * sum(i * p for i, p in enumerate(one))
        y = chosen.randrange(len(law))
        tail = sum_tail(polynomial(one), jobs, y, mean, 4096)
        assert tail == pytest.approx(two_sided(law, y), rel=1e-6), (jobs, one, y)


def polynomial(one: Sequence[float]) -> Generating:
    return lambda z: sum(p * z**i for i, p in enumerate(one))


def convolved(one: dict[int, float], jobs: int) -> dict[int, float]:
    law = {0: 1.0}
    for _ in range(jobs):
        more: dict[int, float] = {}
        for i, p in law.items():
            for j, q in one.items():
                more[i + j] = more.get(i + j, 0.0) + p * q
        law = more
    return law


def two_sided(law: dict[int, float], y: int) -> float:
    lower, upper = sum(p for i, p in law.items() if i <= y), sum(p for i, p in law.items() if i >= y)
    return min(1.0, 2 * min(lower, upper))


@pytest.mark.parametrize("rates", [(0.03, 0.01), (0.4, 0.2), (1e-4, 1e-4)])
@pytest.mark.parametrize("design", EVERY_DESIGN, ids=lambda design: design.name)
@pytest.mark.parametrize("point", CRASH_POINTS)
def test_the_tail_of_a_rare_figure_is_exact_by_every_path(
    design: Design, rates: tuple[float, float], point: CrashPoint
) -> None:
    small = Scenario(jobs=3, steps=3, email_step=2, step_attempts=2, redeliveries_max=2, crash_point=point)
    scenario = replace(small, transient_rate=rates[0], crash_rate=rates[1])
    policy = design.policy(scenario)
    law_of_one = every_end(policy, scenario)
    ends = [(figures_of_one(policy, job, Decimal(0)), float(mass)) for job, mass in law_of_one.items()]
    expected = expect(scenario, [design])[design.name]
    usual = {name: float(round(moment.mean)) for name, moment in expected.as_dict().items()}
    for name, moment in expected.as_dict().items():
        if moment.sd == 0 or name.endswith("_usd"):
            continue
        one: dict[int, float] = {}
        for figures, mass in ends:
            one[int(figures[name])] = one.get(int(figures[name]), 0.0) + mass
        law = convolved(one, scenario.jobs)
        for y in sorted(law)[::2]:
            observed = usual | {name: y}
            if name == "wasted_calls":
                observed["model_calls"] = y + scenario.jobs * scenario.steps
            seen = judge(scenario, design, observed, expected)[name]
            assert seen.z is None
            assert seen.tail_p == pytest.approx(two_sided(law, y), rel=1e-6, abs=1e-20), (name, y)


def test_a_tail_that_would_cost_too_much_is_bounded_from_above() -> None:
    def one(z: complex) -> complex:
        return 0.9 + 0.1 * z**7

    exact, bound = sum_tail(one, 50, 105, 35, 4096), sum_tail(one, 50, 105, 35, 1)
    assert exact < bound < 10 * exact


# Where a crash lands.


@pytest.mark.parametrize("point", CRASH_POINTS)
def test_a_key_never_duplicates_and_without_one_no_email_is_missing(point: CrashPoint) -> None:
    chosen = random.Random(7)  # noqa: S311  # a fixed choice of cases
    for _ in range(20):
        scenario = replace(random_scenario(chosen, 1000), crash_point=point, redeliveries_max=chosen.randint(0, 20))
        for design in EVERY_DESIGN:
            expected = expect(scenario, [design])[design.name]
            never = expected.duplicate_email_jobs if design.guard == "key" else expected.missing_email_jobs
            assert never == Moment(mean=0, sd=0, bearing_jobs=0), (design.name, scenario.flags())


def test_a_key_before_its_email_misses_the_share_that_dies_between_them() -> None:
    t, c = 0.03, 0.01
    # Of the attempts that commit the key, those that crash before the email is sent.
    shares = {"after-key": c / (1 - t), "anywhere": c / 4 / (1 - t - c / 4)}
    for point in CRASH_POINTS:
        expected = expect(Scenario(crash_point=point))["checkpoint-idempotent"]
        assert expected.missing_email_jobs.mean / 2000 == pytest.approx(shares.get(point, 0), rel=1e-9), point
        assert expected.emails_delivered.mean / 2000 == pytest.approx(1 - shares.get(point, 0), rel=1e-9), point


@pytest.mark.parametrize("point", ["before-work", "after-key", "after-checkpoint"])
def test_with_checkpoints_no_crash_between_work_and_record_means_no_duplicate(point: CrashPoint) -> None:
    chosen = random.Random(8)  # noqa: S311  # a fixed choice of cases
    for _ in range(20):
        scenario = replace(random_scenario(chosen, 1000), crash_point=point, redeliveries_max=chosen.randint(0, 20))
        expected = expect(scenario, [CHECKPOINT])["checkpoint"]
        assert expected.duplicate_email_jobs == Moment(mean=0, sd=0, bearing_jobs=0), scenario.flags()


def test_a_crash_behind_the_checkpoint_wastes_no_call() -> None:
    expected = expect(Scenario(crash_point="after-checkpoint"))
    # Each step fails t / (1 - t) times before it is recorded.
    assert expected["checkpoint"].unproductive_calls.mean == pytest.approx(2000 * 10 * 0.03 / 0.97, rel=1e-9)
    assert expected["whole-job"] == expect(Scenario(crash_point="after-work"))["whole-job"]


def test_a_job_that_dies_behind_its_last_checkpoint_and_has_no_delivery_left_is_dead_lettered_whole() -> None:
    scenario = Scenario(steps=1, transient_rate=0, crash_rate=0.25, crash_point="after-checkpoint", redeliveries_max=0)
    expected = expect(scenario)["checkpoint"]
    assert expected.dead_lettered.mean == 500
    for certain in (expected.checkpoint_writes, expected.emails_delivered, expected.model_calls):
        assert (certain.mean, certain.sd) == (2000, 0)


# Theory against the model.


def random_scenario(chosen: random.Random, jobs: int) -> Scenario:
    """Any scenario: long and short jobs, calm and stormy, certain and nearly so, tight and loose caps."""
    steps = chosen.randint(1, chosen.choice([1, 2, 5, 10, 20, 50, 100]))
    t = chosen.choice([0, 0.03, 10 ** chosen.uniform(-6, -1), chosen.uniform(0, 0.5), chosen.random(), 1])
    c = chosen.choice([0, 0.01, 10 ** chosen.uniform(-6, -1), chosen.uniform(0, 0.3), chosen.random(), 1])
    if t + c > 1:
        t, c = chosen.choice([(t, 1 - t), (t / (t + c) * 0.9, c / (t + c) * 0.9)])
    return Scenario(
        jobs=jobs,
        steps=steps,
        email_step=chosen.choice([None, chosen.randint(1, steps)]),
        transient_rate=t,
        crash_rate=c,
        crash_point=chosen.choice(CRASH_POINTS),
        job_attempts=chosen.choice([1, 2, 3, 10, chosen.randint(1, 100)]),
        step_attempts=chosen.choice([1, 2, 3, 10, chosen.randint(1, 100)]),
        redeliveries_max=chosen.choice([0, 1, 3, 10, chosen.randint(0, 1000)]),
    )


# A law is pooled once: lost and dead-lettered jobs are those not finished, wasted calls and costs are calls, and behind
# a key all but the emails are as without one. Figures of one run that are merely correlated stay: each has a variance
# of one by itself, so the pool has too; it only holds fewer independent numbers than it has entries.
POOLED = {
    "whole-job": {"finished", "model_calls", "unproductive_calls", "lost_job_calls", "redeliveries", "resumed_jobs"}
    | {"duplicate_email_jobs", "emails_delivered"},
    "checkpoint": {"finished", "model_calls", "unproductive_calls", "lost_job_calls", "redeliveries", "resumed_jobs"}
    | {"duplicate_email_jobs", "emails_delivered", "checkpoint_writes"},
    "checkpoint-idempotent": {"emails_delivered"},
}


def judged(scenario: Scenario, seed: int) -> Iterable[tuple[str, str, Judgement]]:
    expected, seen = expect(scenario), simulate(scenario, seed)
    for design in expected:
        for name, judgement in judge(scenario, design, seen[design].as_dict(), expected[design]).items():
            yield design, name, judgement


def check_theory_against_model(scenarios: int, jobs: int) -> tuple[list[float], list[float]]:
    """No figure beyond belief; the pooled z-scores and every tail."""
    chosen = random.Random(2024)  # noqa: S311  # a fixed choice of cases
    pool: list[float] = []
    tails: list[float] = []
    for seed in range(scenarios):
        scenario = random_scenario(chosen, jobs)
        for design, name, seen in judged(scenario, seed):
            where = f"{name} of {design}: {seen}; durtui run {' '.join(scenario.flags())} --seed {seed}"
            assert not seen.impossible, where
            assert seen.z is None or abs(seen.z) <= 5, where
            assert seen.tail_p is None or seen.tail_p >= 1e-7, where
            if seen.z is not None and name in POOLED[design]:
                pool.append(seen.z)
            if seen.tail_p is not None:
                tails.append(seen.tail_p)
    return pool, tails


def test_theory_and_model_agree_over_random_scenarios() -> None:
    check_theory_against_model(scenarios=15, jobs=1000)


@pytest.mark.slow
def test_theory_and_model_agree_over_500_scenarios_of_20000_jobs() -> None:
    pool, tails = check_theory_against_model(scenarios=500, jobs=20_000)
    mean, variance = sum(pool) / len(pool), sum(z * z for z in pool) / len(pool)
    early = sum(p <= 0.05 for p in tails) / len(tails)
    print(f"{len(pool)} z-scores: mean {mean:+.3f}, variance {variance:.3f}, largest {max(map(abs, pool)):.2f}")
    print(f"{len(tails)} tails: {early:.1%} below 5 %, smallest {min(tails):.1e}")
    assert abs(mean) < 0.2
    assert variance == pytest.approx(1, abs=0.2)
    assert early <= 0.06  # a discrete law's tail is below 5 % at most 5 % of the time


# Costs and layering.


def best_of(times: int, scenario: Scenario) -> float:
    def once() -> float:
        start = time.process_time()
        expect(scenario)
        return time.process_time() - start

    return min(once() for _ in range(times))


def test_a_hundred_steps_take_less_than_a_screens_frame() -> None:
    assert best_of(5, Scenario(steps=100)) < 0.020


def test_the_largest_caps_take_no_more_than_a_second_or_two() -> None:
    rough = Scenario(steps=100, transient_rate=0.4, crash_rate=0.4, job_attempts=100, step_attempts=100)
    assert best_of(1, replace(rough, redeliveries_max=1000)) < 2


def test_theory_needs_neither_numpy_nor_the_lab() -> None:
    code = (
        "import sys, durcore.theory as t; from durcore.scenario import Scenario; t.expect(Scenario()); "
        "mine = {'errors', 'scenario', 'designs', 'theory'}; "
        "print([m for m in sys.modules if m == 'numpy' or m.startswith('durcore.') "
        "and m.split('.')[1].split('_')[0] not in mine])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
