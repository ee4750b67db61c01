"""The law of one job, figure by figure, read off the ends of its chain. A replication is `jobs` of these, independent.

Notation: t, c, s are the odds of an attempt's transient failure, crash and success; K tries, D deliveries, S steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from durcore.designs import Policy
from durcore.theory_chain import Course, Odds, course, emails, finishing, landing, total
from durcore.theory_tails import Generating
from durcore.theory_weights import IMPOSSIBLE, First, Moments, first, moments, several

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
        The mass that left the last leg, and the mass that no delivery was left for. With checkpoints a visit that does
        not pass uses up a delivery. Without crashes behind the checkpoint it does not pass with
        p = 1 - s (1 - t^K) / (1 - t) and the failures before the S-th success are negative binomial, so that is
        P(at most D - 1 failures); with them each leg may end by one more of these. Without checkpoints 1 - (1 - s^S)^D.
    unproductive_calls
        What the chain counts. Jointly with the ending it gives the rest: model_calls are S more if the job finished and
        no more otherwise; wasted_calls are model_calls - S; lost_job_calls are the unproductive calls of a job that did
        not finish, which are all its calls, and 0 of one that did.
    redeliveries, resumed_jobs
        A job that finishes in delivery d was redelivered d - 1 times, one that never does D - 1 times.
    checkpoint_writes
        One a leg that is behind the job, so S of a finished one. None without checkpoints.
    duplicate_email_jobs, missing_email_jobs, emails_delivered
        See `_email_law`.
    """
    run = course(policy, at, moments)
    finished, unfinished = total(run.finished, IMPOSSIBLE), total(run.unfinished, IMPOSSIBLE)
    finishes = chance(finished.mass, unfinished.mass)
    fails = Chance(finishes.does_not, finishes.happens)
    in_first = total(run.finished[:1], IMPOSSIBLE).mass + (unfinished.mass if policy.deliveries == 1 else 0.0)
    in_later = total(run.finished[1:], IMPOSSIBLE).mass + (unfinished.mass if policy.deliveries > 1 else 0.0)
    duplicates, missing, mails = _email_law(policy, at, run)
    return JobLaw(
        counts={
            "finished": finishes,
            "lost": CERTAINLY_NOT if policy.checkpoints else fails,
            "dead_lettered": fails if policy.checkpoints else CERTAINLY_NOT,
            "resumed_jobs": chance(in_later, in_first),
            "duplicate_email_jobs": duplicates,
            "missing_email_jobs": missing,
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


def _email_law(policy: Policy, at: Odds, run: Course[Moments]) -> tuple[Chance, Chance, Moments]:
    """The chances that a job's email arrives twice or more and that the job finishes without, and the times it arrives.

    Plain, it arrives each time the work of its step is done: in every visit to the leg that crashed after it and in the
    visit that left it. Whoever leaves the leg has done the work, so no finished job is without.

    Behind a key it arrives once if whoever committed the key first sent it, and never if that one died in between: of
    the attempts at the step that commit it, c k among s + c k + c (w + p) with k, w, p the shares of crashes after-key,
    after-work and after-checkpoint. The job misses its email if it finishes all the same.
    """
    if policy.guard == "key":
        leaving, others = emails(run, first)
        none, one = _key_law(total(leaving, others))
        return CERTAINLY_NOT, _missing(policy, at, run, leaving), moments(none, 0) + moments(one, 1)
    leaving_times, others_times = emails(run, several)
    times = total(leaving_times, others_times)
    leaving_counted, others_counted = emails(run, moments)
    return chance(times.more, times.none + times.one), CERTAINLY_NOT, total(leaving_counted, others_counted)


def _key_law(decided: First) -> tuple[float, float]:
    """The probabilities of no email and of one, behind a key."""
    return decided.neither + decided.other, decided.one


def _missing(policy: Policy, at: Odds, run: Course[Moments], leaving: list[First]) -> Chance:
    """The chance that a job whose key was committed without its email goes on from the effect's leg and finishes."""
    if landing(policy, at).keyed == 0:
        return CERTAINLY_NOT
    finished = finishing(policy, at, leaving)
    return chance(finished.other, finished.one + total(run.unfinished, IMPOSSIBLE).mass)


def _redeliveries(policy: Policy, run: Course[Moments]) -> list[tuple[int, float]]:
    finished = [(d, weight.mass) for d, weight in enumerate(run.finished)]
    return [*finished, (policy.deliveries - 1, total(run.unfinished, IMPOSSIBLE).mass)]


def _writes(policy: Policy, run: Course[Moments]) -> list[tuple[int, float]]:
    legs_behind = [(i, weight.mass) for i, weight in enumerate(run.unfinished)]
    legs_behind.append((len(run.unfinished) - 1, total(run.finished, IMPOSSIBLE).mass))
    return [(i if policy.checkpoints else 0, mass) for i, mass in legs_behind]


def generating(policy: Policy, at: Odds, figure: str) -> tuple[Generating, int]:
    """The generating function E[z**figure] of one job, and how many moves of a chain it costs to evaluate once.

    For the sums that are at least 0, so for each but `wasted_calls`, whose law is that of `model_calls`.
    """
    run = course(policy, at, moments)
    if figure in ("redeliveries", "checkpoint_writes"):
        law = (_redeliveries if figure == "redeliveries" else _writes)(policy, run)
        return lambda z: sum(mass * z**n for n, mass in law), len(law)
    if figure == "emails_delivered":
        return _generating_emails(policy, run)
    finished_mass = total(run.finished, IMPOSSIBLE).mass

    def calls(z: complex) -> complex:
        at_z = course(policy, at, lambda p, n: p * z**n)
        finished, unfinished = total(at_z.finished, 0j), total(at_z.unfinished, 0j)
        if figure == "lost_job_calls":
            return finished_mass + unfinished
        return (finished * z**policy.steps if figure == "model_calls" else finished) + unfinished

    # A whole job is one leg, but its visit is put together step by step.
    return calls, policy.deliveries * len(run.unfinished) + LEG_COST * (policy.steps + policy.tries)


def _generating_emails(policy: Policy, run: Course[Moments]) -> tuple[Generating, int]:
    if policy.guard == "key":
        decided, undecided = emails(run, first)
        none, one = _key_law(total(decided, undecided))
        return lambda z: none + one * z, 1

    def plain(z: complex) -> complex:
        leaving, others = emails(run, lambda p, n: p * z**n)
        return total(leaving, others)

    return plain, policy.deliveries
