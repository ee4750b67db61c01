"""The resume alert: silent in a run that only has its bad luck, and struck by a deploy and by an outage."""

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from durcore.alert import WINDOW, ResumeAlert, most_calls, redelivery_rate
from durcore.designs import CHECKPOINT, DESIGNS, WHOLE_JOB, Design
from durcore.interventions import COUNTS, Kind
from durcore.scenario import Scenario
from durcore.theory import expect

LAB = Scenario()
UNDER = {
    "the mission's lab": LAB,
    "a flaky provider": replace(LAB, transient_rate=0.3, job_attempts=10),
    "crashes": replace(LAB, crash_rate=0.1, redeliveries_max=100),
}


def sequence(scenario: Scenario, design: Design, seed: int, done: Kind | None = None, at: int = 0) -> Iterator[int]:
    """A lane's attempts, one after the other: how many redeliveries there were after each. Faults of the same law."""
    policy, rng = design.policy(scenario), random.Random(seed)  # noqa: S311
    crash, fails = scenario.crash_rate, scenario.crash_rate + scenario.transient_rate
    queue, again = [(0, 1)] * scenario.jobs, list[tuple[int, int]]()
    calls = redeliveries = cuts = 0
    while queue:
        for saved, delivery in queue:
            step, failures, opens, over = saved, 0, True, False
            while step < policy.steps and not over:
                calls += 1
                u = rng.random()
                cut = done == "deploy" and opens and calls >= at and cuts < COUNTS["deploy"]
                cuts += cut
                opens = False
                if cut or u < crash:
                    over = True
                elif u < fails or (done == "outage" and at <= calls < at + COUNTS["outage"]):
                    failures += 1
                    over = failures == policy.tries
                else:
                    step, failures = step + 1, 0
                if over and delivery < policy.deliveries:
                    redeliveries += 1
                    again.append((step if policy.checkpoints else 0, delivery + 1))
                yield redeliveries
        queue, again = again, []


def strikes(
    scenario: Scenario, design: Design, seed: int, done: Kind | None = None, at: int = 0, every: int = 50
) -> int:
    """How many looks struck the alert, with looks some `every` attempts apart."""
    rng = random.Random(~seed)  # noqa: S311
    alert = ResumeAlert.of(scenario, design.policy(scenario))
    struck, next_look = 0, 0
    for count, redeliveries in enumerate(sequence(scenario, design, seed, done, at), start=1):
        if count >= next_look:
            next_look = count + rng.randint(1, 2 * every)
            struck += alert.look(count, redeliveries)
    return struck


@pytest.mark.parametrize("design", [WHOLE_JOB, CHECKPOINT], ids=lambda design: design.name)
@pytest.mark.parametrize("under", UNDER)
def test_a_run_left_alone_strikes_no_alert(design: Design, under: str) -> None:
    assert [seed for seed in range(6) if strikes(UNDER[under], design, seed)] == []


@pytest.mark.slow
@pytest.mark.parametrize("design", [WHOLE_JOB, CHECKPOINT], ids=lambda design: design.name)
def test_less_than_one_run_in_a_hundred_of_the_missions_lab_has_a_false_alarm(design: Design) -> None:
    struck = [seed for seed in range(500) if strikes(LAB, design, seed, every=10)]
    assert len(struck) < 5, struck


@pytest.mark.parametrize("kind", ["deploy", "outage"])
@pytest.mark.parametrize("design", [WHOLE_JOB, CHECKPOINT], ids=lambda design: design.name)
@pytest.mark.parametrize("at", [1, 5000, 12_000])
def test_a_deploy_and_an_outage_strike_it(design: Design, kind: Kind, at: int) -> None:
    assert all(strikes(LAB, design, seed, kind, at) for seed in range(5))


def test_a_single_kill_strikes_nothing() -> None:
    alert = ResumeAlert(redelivery_rate(LAB, CHECKPOINT.policy(LAB)), 20_000)
    assert not any(alert.look(calls, 1 if calls >= 100 else 0) for calls in range(2000))
    assert alert.struck_at is None


def test_it_remembers_when_it_struck_last_and_forgets_what_a_recovery_took_back() -> None:
    alert = ResumeAlert(0.01, 20_000)
    assert not alert.look(5000, 500)  # what was before its first look is not its own
    assert alert.look(5100, 560)
    assert alert.struck_at == 5100
    assert not alert.look(5099, 560)
    assert not alert.look(5100 + 2 * WINDOW, 560)
    assert alert.struck_at == 5100


def test_where_nothing_can_fail_one_redelivery_strikes_and_where_everything_does_none() -> None:
    certain, hopeless = ResumeAlert(0.0, 100), ResumeAlert(1.0, 100)
    for alert in (certain, hopeless):
        alert.look(0, 0)
    assert certain.look(10, 1)
    assert not hopeless.look(10, 10)


@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize(("t", "c", "tries"), [(0.03, 0.01, 3), (0.3, 0.05, 2), (0.0, 0.1, 1), (0.4, 0.0, 3)])
def test_the_rate_is_what_theory_expects_of_it_while_deliveries_are_left(
    name: str, t: float, c: float, tries: int
) -> None:
    scenario = Scenario(
        jobs=100,
        transient_rate=t,
        crash_rate=c,
        step_attempts=tries,
        redeliveries_max=1000,
        job_attempts=100,
        crash_point="before-work",
        steps=5,
    )
    expected = expect(scenario, [DESIGNS[name]])[name]
    policy = DESIGNS[name].policy(scenario)
    rate = redelivery_rate(scenario, policy)
    assert most_calls(scenario, policy) >= 0.999 * expected.model_calls.mean
    assert rate == pytest.approx(expected.redeliveries.mean / expected.model_calls.mean, rel=1e-4)
