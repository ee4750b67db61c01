"""The finite chain that one job runs through: legs, visits and deliveries. It follows the contract, not the lab's code.

A **leg** is the stretch of work that a redelivery begins anew: one step of a design with checkpoints, the whole job of
a design without. A **visit** is one delivery's go at a leg; it passes or it fails. A visit that fails ends the
delivery, and the next delivery visits the same leg. So a job is at (leg, delivery), moves to (leg + 1, delivery) or to
(leg, delivery + 1), and ends beyond the last leg (finished) or beyond the last delivery (lost or dead-lettered): a
chain without a cycle, passed through once, in legs x deliveries moves.

The chain carries weights (see `theory_weights`) that count **unproductive calls**. Useful calls are left out on
purpose: at a rate of 1e-12 a job makes 10 + 1e-11 calls, and only the second part can be had to full precision.

What is still to come are further terms. A crash after the checkpoint is a third outcome of a visit, to (leg + 1,
delivery + 1), with one more leg that has no call at the end. A poisoned step is a leg whose visits never pass; the
poisoned job shares the chain up to it. A key that is recorded before its email is sent is a second leg for the same
step. A crash point drawn anew each time is the mean of the laws of a visit, an intent or a provider's key one more
guard in `theory_job`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Generic, TypeVar

from durcore.designs import Policy
from durcore.scenario import Scenario
from durcore.theory_weights import Moments, Several

W = TypeVar("W", Moments, Several, float, complex)

Weigh = Callable[[float, int], W]  # an event's probability and the count it makes for certain -> its weight


@dataclass(frozen=True, slots=True, kw_only=True)
class Odds:
    """The probabilities of what one attempt comes to. They add up to one."""

    success: float
    transient: float
    crash: float


def odds(scenario: Scenario) -> Odds:
    """The odds of an attempt: u < t fails, u >= 1 - c crashes, the rest succeed.

    Success is impossible, not merely improbable, where no draw lies between the two: draws are multiples of 2**-53, so
    0.3 + 0.7 is one although 1 - 0.7 - 0.3 is 6e-17 in binary.
    """
    t, crash_from = scenario.transient_rate, 1 - scenario.crash_rate
    draws_between = ceil(crash_from * 2**53) - ceil(t * 2**53)
    if draws_between <= 0:
        return Odds(success=0.0, transient=t, crash=1 - t)
    return Odds(success=crash_from - t, transient=t, crash=scenario.crash_rate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg(Generic[W]):
    """The law of one visit to a leg. A failed visit is told apart by whether the effect's work was done in it."""

    passed: W
    failed_undone: W
    failed_done: W

    @property
    def failed(self) -> W:
        """The visit fails, either way."""
        return self.failed_undone + self.failed_done


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit(Generic[W]):
    """The law of one delivery's tries at one step. Each of the failed tries is an unproductive call."""

    passed: W
    crashed: W
    gave_up: W


def visit(at: Odds, tries: int, weigh: Weigh[W]) -> Visit[W]:
    """Tries at one step in one delivery: k transient failures, then a success or a crash; or K of them.

    P(pass after k failures) = t^k s and P(crash after k failures) = t^k c for k < K, P(give up) = t^K, where K is the
    number of tries. A crash's own call is unproductive too: the step was not recorded.
    """
    passed = crashed = weigh(0.0, 0)
    so_far = 1.0
    for k in range(tries):
        passed = passed + weigh(so_far * at.success, k)
        crashed = crashed + weigh(so_far * at.crash, k + 1)
        so_far *= at.transient
    return Visit(passed=passed, crashed=crashed, gave_up=weigh(so_far, tries))


def legs(policy: Policy, at: Odds, weigh: Weigh[W]) -> list[Leg[W]]:
    """The legs of a job in order; `effect_leg` says which of them has the effect."""
    step = visit(at, policy.tries, weigh)
    if policy.checkpoints:
        # Only in the effect's leg does it matter that a crash comes after the work.
        return [Leg(passed=step.passed, failed_undone=step.gave_up, failed_done=step.crashed)] * policy.steps
    return [_whole_job(policy, step, weigh)]


def _whole_job(policy: Policy, step: Visit[W], weigh: Weigh[W]) -> Leg[W]:
    """A delivery from step 1: it passes every step, or fails at step i after i - 1 successes that were for nothing."""
    productive_call = weigh(1.0, 1)
    arrived = completed = weigh(1.0, 0)
    undone = done = weigh(0.0, 0)
    for i in range(1, policy.steps + 1):
        gave_up, crashed = arrived * step.gave_up, arrived * step.crashed
        undone = undone + gave_up if i <= policy.effect_step else undone
        undone = undone + crashed if i < policy.effect_step else undone
        done = done + gave_up if i > policy.effect_step else done
        done = done + crashed if i >= policy.effect_step else done
        arrived = arrived * step.passed * productive_call
        completed = completed * step.passed
    return Leg(passed=completed, failed_undone=undone, failed_done=done)


def effect_leg(policy: Policy) -> int:
    """The index of the leg that has the effect."""
    return policy.effect_step - 1 if policy.checkpoints else 0


def through(arriving: Sequence[W], passed: W, failed: W, nothing: W) -> tuple[list[W], W]:
    """Take a leg: the weights of arriving at it in each delivery -> of leaving it in each, and of leaving it never.

    In delivery d the leg is visited by those who arrive in d and by those whose visit failed in d - 1.
    """
    leaving = []
    back = nothing
    for new in arriving:
        here = new + back
        leaving.append(here * passed)
        back = here * failed
    return leaving, back


@dataclass(frozen=True, slots=True, kw_only=True)
class Course(Generic[W]):
    """What becomes of one job. The weights count unproductive calls; a job that does not finish has no other kind."""

    finished: list[W]  # by delivery: in the first, the second, ...
    unfinished: list[W]  # by the number of legs that were passed
    at_effect: list[W]  # arrivals at the leg with the effect, by delivery


def course(policy: Policy, at: Odds, weigh: Weigh[W]) -> Course[W]:
    """Run a job through its chain. Takes legs x deliveries moves: 2 µs each with moments, 0.1 µs with numbers."""
    nothing = weigh(0.0, 0)
    arriving = [weigh(1.0, 0)] + [nothing] * (policy.deliveries - 1)
    at_effect, unfinished = arriving, []
    for i, leg in enumerate(legs(policy, at, weigh)):
        if i == effect_leg(policy):
            at_effect = arriving
        arriving, never = through(arriving, leg.passed, leg.failed, nothing)
        # The calls of the legs that were passed bought nothing either, now that the job is not to finish.
        unfinished.append(never * weigh(1.0, i))
    return Course(finished=arriving, unfinished=unfinished, at_effect=at_effect)


def emails(policy: Policy, leg: Leg[Moments], at_effect: Sequence[Moments], weigh: Weigh[W]) -> tuple[W, W]:
    """The number of times the effect's work is done for one job: if the leg is left at last, and if it never is.

    It is done in the visit that passes, and in each that fails after the work. Jobs that never arrive are not counted.
    """
    passed = weigh(leg.passed.mass, 1)
    failed = weigh(leg.failed_undone.mass, 0) + weigh(leg.failed_done.mass, 1)
    arriving = [weigh(here.mass, 0) for here in at_effect]
    leaving, never = through(arriving, passed, failed, weigh(0.0, 0))
    return total(leaving, weigh(0.0, 0)), never


def total(weights: Sequence[W], nothing: W) -> W:
    """One or another of these events."""
    for weight in weights:
        nothing = nothing + weight
    return nothing
