"""The law of one job, figure by figure, read off the ends of its chain. A replication is `jobs` of these, independent.

Notation: t, c, s are the odds of an attempt's transient failure, crash and success; K tries, D deliveries, S steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from durcore.designs import Policy
from durcore.theory_chain import Course, Odds, course, effect_leg, emails, legs, total
from durcore.theory_tails import Generating
from durcore.theory_weights import IMPOSSIBLE, Moments, moments, several

LEG_COST = 8  # taking a leg, or one try at a step, costs as much as so many moves


class Chance(NamedTuple):
    """The probability that a job counts in a figure, and that it does not: a tiny one cannot be had from the other."""

    happens: float
    does_not: float


def chance(happens: float, does_not: float) -> Chance:
    """A chance from two sums that add up to one but for rounding: the smaller is kept, the larger is what it leaves."""
    if happens < does_not:
        return Chance(happens, 1 - happens)
    return Chance(1 - does_not, does_not)


CERTAINLY_NOT = Chance(0.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLaw:
    """What one job adds to each figure: a chance for a figure that counts jobs, moments for one that sums over them."""

    counts: Mapping[str, Chance]
    sums: Mapping[str, Moments]


def job_law(policy: Policy, at: Odds) -> JobLaw:
    """The law of one job under `policy`; the costs, which follow from the calls, are left out.

    finished, lost, dead_lettered
        The mass that left the last leg, and the mass that no delivery was left for. With checkpoints a visit fails with
        p = 1 - s (1 - t^K) / (1 - t) and the failures before the S-th success are negative binomial, so that is
        P(at most D - 1 failures); without, 1 - (1 - s^S)^D.
    unproductive_calls
        What the chain counts. Jointly with the ending it gives the rest: model_calls are S more if the job finished and
        no more otherwise; wasted_calls are model_calls - S; lost_job_calls are the unproductive calls of a job that did
        not finish, which are all its calls, and 0 of one that did.
    redeliveries, resumed_jobs
        A job that finishes in delivery d was redelivered d - 1 times, one that never does D - 1 times.
    checkpoint_writes
        One a leg that was passed, so S of a finished job. None without checkpoints.
    """
    run = course(policy, at, moments)
    finished, unfinished = total(run.finished, IMPOSSIBLE), total(run.unfinished, IMPOSSIBLE)
    finishes = chance(finished.mass, unfinished.mass)
    fails = Chance(finishes.does_not, finishes.happens)
    in_first = total(run.finished[:1], IMPOSSIBLE).mass + (unfinished.mass if policy.deliveries == 1 else 0.0)
    in_later = total(run.finished[1:], IMPOSSIBLE).mass + (unfinished.mass if policy.deliveries > 1 else 0.0)
    duplicates, mails = _email_law(policy, at, run)
    return JobLaw(
        counts={
            "finished": finishes,
            "lost": CERTAINLY_NOT if policy.checkpoints else fails,
            "dead_lettered": fails if policy.checkpoints else CERTAINLY_NOT,
            "resumed_jobs": chance(in_later, in_first),
            "duplicate_email_jobs": duplicates,
            # Crashes come after the work, so whoever passes the effect's step has done the effect.
            "missing_email_jobs": CERTAINLY_NOT,
        },
        sums={
            "model_calls": finished * moments(1.0, policy.steps) + unfinished,
            "wasted_calls": finished + unfinished * moments(1.0, -policy.steps),
            "unproductive_calls": finished + unfinished,
            "lost_job_calls": moments(finished.mass, 0) + unfinished,
            "emails_delivered": mails,
            "redeliveries": total([moments(p, n) for n, p in _redeliveries(policy, run)], IMPOSSIBLE),
            "checkpoint_writes": total([moments(p, n) for n, p in _writes(policy, run)], IMPOSSIBLE),
            "manual_resumes": moments(1.0, 0),
        },
    )


def _email_law(policy: Policy, at: Odds, run: Course[Moments]) -> tuple[Chance, Moments]:
    """The chance that a job's email arrives twice or more, and the number of times it arrives.

    Plain, it arrives each time the work of its step is done: in every visit to the leg that crashed after it and in the
    visit that passed. Behind a key it arrives once if the work was ever done.
    """
    i = effect_leg(policy)
    leg = legs(policy, at, moments)[i]
    never_there = total(run.unfinished[:i], IMPOSSIBLE).mass
    times = total(emails(policy, leg, run.at_effect, several), several(never_there, 0))
    if policy.guard == "key":
        return CERTAINLY_NOT, moments(times.none, 0) + moments(times.one + times.more, 1)
    counted = total(emails(policy, leg, run.at_effect, moments), moments(never_there, 0))
    return chance(times.more, times.none + times.one), counted


def _redeliveries(policy: Policy, run: Course[Moments]) -> list[tuple[int, float]]:
    finished = [(d, weight.mass) for d, weight in enumerate(run.finished)]
    return [*finished, (policy.deliveries - 1, total(run.unfinished, IMPOSSIBLE).mass)]


def _writes(policy: Policy, run: Course[Moments]) -> list[tuple[int, float]]:
    legs_passed = [(i, weight.mass) for i, weight in enumerate(run.unfinished)]
    legs_passed.append((len(run.unfinished), total(run.finished, IMPOSSIBLE).mass))
    return [(i if policy.checkpoints else 0, mass) for i, mass in legs_passed]


def generating(policy: Policy, at: Odds, figure: str) -> tuple[Generating, int]:
    """The generating function E[z**figure] of one job, and how many moves of a chain it costs to evaluate once.

    For the sums that are at least 0, so for each but `wasted_calls`, whose law is that of `model_calls`.
    """
    run = course(policy, at, moments)
    if figure in ("redeliveries", "checkpoint_writes"):
        law = (_redeliveries if figure == "redeliveries" else _writes)(policy, run)
        return lambda z: sum(mass * z**n for n, mass in law), len(law)
    if figure == "emails_delivered":
        return _generating_emails(policy, at, run)
    finished_mass = total(run.finished, IMPOSSIBLE).mass

    def calls(z: complex) -> complex:
        at_z = course(policy, at, lambda p, n: p * z**n)
        finished, unfinished = total(at_z.finished, 0j), total(at_z.unfinished, 0j)
        if figure == "lost_job_calls":
            return finished_mass + unfinished
        return (finished * z**policy.steps if figure == "model_calls" else finished) + unfinished

    # A whole job is one leg, but its visit is put together step by step.
    return calls, policy.deliveries * len(run.unfinished) + LEG_COST * (policy.steps + policy.tries)


def _generating_emails(policy: Policy, at: Odds, run: Course[Moments]) -> tuple[Generating, int]:
    i = effect_leg(policy)
    leg = legs(policy, at, moments)[i]
    never_there = total(run.unfinished[:i], IMPOSSIBLE).mass
    if policy.guard == "key":
        none, one, more = total(emails(policy, leg, run.at_effect, several), several(never_there, 0))
        return lambda z: none + (one + more) * z, 1

    def plain(z: complex) -> complex:
        return total(emails(policy, leg, run.at_effect, lambda p, n: p * z**n), never_there + 0j)

    return plain, policy.deliveries
