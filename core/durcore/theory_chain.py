"""The finite chain that one job runs through: legs, visits and deliveries. It follows the contract, not the lab's code.

A **leg** is the stretch of work that a redelivery begins anew: one step of a design with checkpoints, the whole job of
a design without. A **visit** is one delivery's go at a leg: it passes, or it fails, or it is cut short by a crash after
the checkpoint. One that fails ends the delivery, and the next delivery visits the same leg; one that is cut short ends
the delivery too, but the next begins at the next leg. So a job is at (leg, delivery), moves to (leg + 1, delivery), to
(leg, delivery + 1) or to (leg + 1, delivery + 1), and ends beyond the last leg (finished, in a delivery that may have
no call to make) or beyond the last delivery (lost or dead-lettered): a chain without a cycle, passed through once, in
legs x deliveries moves.

A crash lands at a point that does not depend on what went before, so every visit that crashes is split by the same
shares (`Landing`), of the scenario's one point or of four drawn anew each time. Only three differences matter: whether
the step is recorded (the move, and whether the crash's own call was productive), and, at the effect's step, whether
its work was done or its key committed without it (the emails).

The chain carries weights (see `theory_weights`) that count **unproductive calls**. Useful calls are left out on
purpose: at a rate of 1e-12 a job makes 10 + 1e-11 calls, and only the second part can be had to full precision.

What is still to come are further terms. A poisoned step is a leg whose visits never pass; the poisoned job shares the
chain up to it. An intent or a provider's key is one more guard in `theory_job`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Generic, TypeVar

from durcore.designs import Policy
from durcore.scenario import CrashPoint, Scenario
from durcore.theory_weights import First, Moments, Several, first

W = TypeVar("W", Moments, Several, First, float, complex)

Weigh = Callable[[float, int], W]  # an event's probability and the count it makes for certain -> its weight

POINTS: tuple[CrashPoint, ...] = ("before-work", "after-key", "after-work", "after-checkpoint")
NO_EMAIL, EMAIL, KEY_ONLY = 0, 1, 2  # what a visit to the effect's leg did; KEY_ONLY is never found without a key


@dataclass(frozen=True, slots=True, kw_only=True)
class Odds:
    """The probabilities of what one attempt comes to, and of the point at which a crash lands. Each adds up to one."""

    success: float
    transient: float
    crash: float
    lands: Mapping[CrashPoint, float]


def odds(scenario: Scenario) -> Odds:
    """The odds of an attempt: u < t fails, u >= 1 - c crashes, the rest succeed. `anywhere` is each point by a quarter.

    Success is impossible, not merely improbable, where no draw lies between the two: draws are multiples of 2**-53, so
    0.3 + 0.7 is one although 1 - 0.7 - 0.3 is 6e-17 in binary.
    """
    t, crash_from = scenario.transient_rate, 1 - scenario.crash_rate
    anywhere = scenario.crash_point == "anywhere"
    lands = {point: 0.25 if anywhere else float(point == scenario.crash_point) for point in POINTS}
    draws_between = ceil(crash_from * 2**53) - ceil(t * 2**53)
    if draws_between <= 0:
        return Odds(success=0.0, transient=t, crash=1 - t, lands=lands)
    return Odds(success=crash_from - t, transient=t, crash=scenario.crash_rate, lands=lands)


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """The shares of the crashes at the effect's step by what they leave behind under a policy. They add up to one.

    At any other step `keyed` is as `undone`; there nobody asks.
    """

    undone: float
    keyed: float  # the key without its email
    done: float
    recorded: float


def landing(policy: Policy, at: Odds) -> Landing:
    """Without a key after-key is as before-work, without checkpoints after-checkpoint is as after-work."""
    before_work, after_key, after_work, after_checkpoint = (at.lands[point] for point in POINTS)
    keys, checkpoints = policy.guard == "key", policy.checkpoints
    return Landing(
        undone=before_work + (0.0 if keys else after_key),
        keyed=after_key if keys else 0.0,
        done=after_work + (0.0 if checkpoints else after_checkpoint),
        recorded=after_checkpoint if checkpoints else 0.0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg(Generic[W]):
    """The law of one visit to a leg. A failed visit is told apart by what became of the effect in it."""

    passed: W
    cut_short: W  # recorded, and the delivery is over
    failed_undone: W
    failed_keyed: W
    failed_done: W

    @property
    def failed(self) -> W:
        """The visit fails, any way."""
        return self.failed_undone + self.failed_keyed + self.failed_done


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit(Generic[W]):
    """The law of one delivery's tries at one step. Each of the failed tries is an unproductive call.

    `crashed` and `crashed_behind` are the same crashes: the call of one that leaves the step unrecorded was
    unproductive, that of one behind the record was not.
    """

    passed: W
    crashed: W
    crashed_behind: W
    gave_up: W


def visit(at: Odds, tries: int, weigh: Weigh[W]) -> Visit[W]:
    """Tries at one step in one delivery: k transient failures, then a success or a crash; or K of them.

    P(pass after k failures) = t^k s and P(crash after k failures) = t^k c for k < K, P(give up) = t^K, where K is the
    number of tries.
    """
    passed = crashed = crashed_behind = weigh(0.0, 0)
    so_far = 1.0
    for k in range(tries):
        passed = passed + weigh(so_far * at.success, k)
        crashed = crashed + weigh(so_far * at.crash, k + 1)
        crashed_behind = crashed_behind + weigh(so_far * at.crash, k)
        so_far *= at.transient
    return Visit(passed=passed, crashed=crashed, crashed_behind=crashed_behind, gave_up=weigh(so_far, tries))


def legs(policy: Policy, at: Odds, weigh: Weigh[W]) -> list[Leg[W]]:
    """The legs of a job in order; `effect_leg` says which of them has the effect."""
    step, lands = visit(at, policy.tries, weigh), landing(policy, at)
    if not policy.checkpoints:
        return [_whole_job(policy, step, lands, weigh)]
    # Only in the effect's leg does it matter what a failed visit left behind.
    leg = Leg(
        passed=step.passed,
        cut_short=step.crashed_behind * weigh(lands.recorded, 0),
        failed_undone=step.gave_up + step.crashed * weigh(lands.undone, 0),
        failed_keyed=step.crashed * weigh(lands.keyed, 0),
        failed_done=step.crashed * weigh(lands.done, 0),
    )
    return [leg] * policy.steps


def _whole_job(policy: Policy, step: Visit[W], lands: Landing, weigh: Weigh[W]) -> Leg[W]:
    """A delivery from step 1: it passes every step, or fails at step i after i - 1 successes that were for nothing."""
    productive_call = weigh(1.0, 1)
    arrived = completed = weigh(1.0, 0)
    nothing = undone = keyed = done = weigh(0.0, 0)
    for i in range(1, policy.steps + 1):
        gave_up, crashed = arrived * step.gave_up, arrived * step.crashed
        if i < policy.effect_step:
            undone = undone + gave_up + crashed
        elif i == policy.effect_step:
            undone = undone + gave_up + crashed * weigh(lands.undone, 0)
            keyed = crashed * weigh(lands.keyed, 0)
            done = crashed * weigh(lands.done, 0)
        else:
            done = done + gave_up + crashed
        arrived = arrived * step.passed * productive_call
        completed = completed * step.passed
    return Leg(passed=completed, cut_short=nothing, failed_undone=undone, failed_keyed=keyed, failed_done=done)


def effect_leg(policy: Policy) -> int:
    """The index of the leg that has the effect."""
    return policy.effect_step - 1 if policy.checkpoints else 0


def through(arriving: Sequence[W], leg: Leg[W], nothing: W) -> tuple[list[W], W, W]:
    """Take a leg: the weights of arriving at it in each delivery -> of leaving it in each, and of two ways to end.

    In delivery d the leg is visited by those who arrive in d and by those whose visit failed in d - 1; it is left by
    those whose visit passed in d and by those whose visit was cut short in d - 1. For those whose visit fails in the
    last delivery, and for those whose visit is cut short in it, no delivery is left: the second weight and the third.
    """
    passed, failed, cut_short = leg.passed, leg.failed, leg.cut_short
    leaving = []
    back = ahead = nothing
    if cut_short == nothing:  # no crash lands behind a checkpoint: a move costs a third less
        for new in arriving:
            here = new + back
            leaving.append(here * passed)
            back = here * failed
        return leaving, back, nothing
    for new in arriving:
        here = new + back
        leaving.append(here * passed + ahead)
        back, ahead = here * failed, here * cut_short
    return leaving, back, ahead


@dataclass(frozen=True, slots=True, kw_only=True)
class Course(Generic[W]):
    """What becomes of one job. The weights count unproductive calls; a job that does not finish has no other kind."""

    finished: list[W]  # by delivery: in the first, the second, ...
    unfinished: list[W]  # by the number of legs that are behind it: none, one, ..., all of them
    effect: Leg[W]  # the leg with the effect
    at_effect: list[W]  # arrivals there, by delivery
    never_there: W


def course(policy: Policy, at: Odds, weigh: Weigh[W]) -> Course[W]:
    """Run a job through its chain. Takes legs x deliveries moves: 2 µs each with moments, 0.1 µs with numbers."""
    nothing = weigh(0.0, 0)
    arriving = [weigh(1.0, 0)] + [nothing] * (policy.deliveries - 1)
    at_effect, never_there, unfinished = arriving, nothing, [nothing]
    of_job = legs(policy, at, weigh)
    for i, leg in enumerate(of_job):
        if i == effect_leg(policy):
            at_effect, never_there = arriving, total(unfinished, nothing)
        arriving, failed, cut_short = through(arriving, leg, nothing)
        # The calls of the legs behind it bought nothing either, now that the job is not to finish.
        unfinished[i] = unfinished[i] + failed * weigh(1.0, i)
        unfinished.append(cut_short * weigh(1.0, i + 1))
    return Course(
        finished=arriving,
        unfinished=unfinished,
        effect=of_job[effect_leg(policy)],
        at_effect=at_effect,
        never_there=never_there,
    )


def emails(run: Course[Moments], weigh: Weigh[W]) -> tuple[list[W], W]:
    """What becomes of one job's email: of those who leave the effect's leg, by delivery, and of all the others.

    The effect's work is done in the visit that passes, in one cut short behind the checkpoint, and in each that fails
    after the work. With `weigh` a count these add up; with `first` what committed the key decides.
    """
    of = run.effect
    leg = Leg(
        passed=weigh(of.passed.mass, EMAIL),
        cut_short=weigh(of.cut_short.mass, EMAIL),
        failed_undone=weigh(of.failed_undone.mass, NO_EMAIL),
        failed_keyed=weigh(of.failed_keyed.mass, KEY_ONLY),
        failed_done=weigh(of.failed_done.mass, EMAIL),
    )
    arriving = [weigh(here.mass, NO_EMAIL) for here in run.at_effect]
    leaving, failed, cut_short = through(arriving, leg, weigh(0.0, NO_EMAIL))
    return leaving, weigh(run.never_there.mass, NO_EMAIL) + failed + cut_short


def finishing(policy: Policy, at: Odds, leaving: list[First]) -> First:
    """Of those who leave the effect's leg in each delivery, the ones who finish. What was decided there stays."""
    nobody = first(0.0, 0)
    for leg in legs(policy, at, lambda p, _: first(p, 0))[effect_leg(policy) + 1 :]:
        leaving, _, _ = through(leaving, leg, nobody)
    return total(leaving, nobody)


def total(weights: Sequence[W], nothing: W) -> W:
    """One or another of these events."""
    for weight in weights:
        nothing = nothing + weight
    return nothing
