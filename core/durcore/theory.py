"""The truth beside a figure: exact expectation and deviation of a replication, and how far off an observed figure is.

Derived from the contract alone; it shares no code with the lab, simulates nothing and iterates nothing to convergence.
Jobs are independent and meet faults of the same law, so a replication's mean and variance are `jobs` times those of one
job. One job is a finite chain (`theory_chain`) that carries the probability and the moments of what it counts
(`theory_weights`) to each of its ends; every figure is read off there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from math import inf, sqrt

from durcore.designs import DEFAULT_DESIGNS, Design, Policy, find_designs
from durcore.scenario import Scenario
from durcore.theory_chain import odds
from durcore.theory_job import Chance, generating, job_law
from durcore.theory_tails import binomial_tail, sum_tail
from durcore.theory_weights import Moments

RARE_JOBS = 30
MOVES_MAX = 5_000_000  # what one tail may cost, in moves of the chain: half a second

# A figure that is another one times a constant, or less a constant, is as likely as that one.
SAME_LAW = {
    "wasted_calls": "model_calls",
    "wasted_cost_usd": "model_calls",
    "unproductive_cost_usd": "unproductive_calls",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Mean and standard deviation of one figure over the fault draws, for one replication.

    `sd` is exactly 0 where the figure is certain. `bearing_jobs` is how many jobs the figure's scatter rests on, and so
    whether a normal law may stand for it: for a count of jobs the smaller of the expected jobs that count and that do
    not; for a sum the jobs divided by the kurtosis of one job's share (a share that is 1 with a small probability p
    has 1/p), and at most the mean.
    """

    mean: float
    sd: float
    bearing_jobs: float

    @property
    def rare(self) -> bool:
        """Whether a z-score would mislead and a tail probability has to stand in its place."""
        return self.sd > 0 and self.bearing_jobs < RARE_JOBS


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """The moments of every figure of one design, by the contract's names."""

    finished: Moment
    lost: Moment
    dead_lettered: Moment
    model_calls: Moment
    wasted_calls: Moment
    wasted_cost_usd: Moment
    unproductive_calls: Moment
    unproductive_cost_usd: Moment
    lost_job_calls: Moment
    duplicate_email_jobs: Moment
    missing_email_jobs: Moment
    emails_delivered: Moment
    redeliveries: Moment
    resumed_jobs: Moment
    checkpoint_writes: Moment
    manual_resumes: Moment

    def as_dict(self) -> dict[str, Moment]:
        """Every moment by its figure's name, in the contract's order."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """How an observed figure stands to its expectation. Only one of `z` and `tail_p` is given; neither where sd is 0.

    `impossible`: the figure is certain and the observed one differs. That is an error of durtui's, not bad luck.
    """

    z: float | None
    tail_p: float | None
    impossible: bool = False


def expect(scenario: Scenario, designs: Iterable[Design | str] = DEFAULT_DESIGNS) -> Mapping[str, Expectation]:
    """The exact expectation of every figure for one replication, by design name in the order asked for.

    Relative precision is 1e-12 or so; a figure that is certain has a deviation of exactly 0. Cost grows with steps x
    deliveries. An unknown design name raises Mistake.
    """
    return {design.name: _expectation(scenario, design.policy(scenario)) for design in find_designs(designs)}


def z_score(observed: float, moment: Moment) -> float | None:
    """How many deviations `observed` lies above its expectation; None where the figure is certain."""
    return (observed - moment.mean) / moment.sd if moment.sd > 0 else None


def judge(
    scenario: Scenario, design: Design | str, figures: Mapping[str, float], expected: Expectation | None = None
) -> dict[str, Judgement]:
    """Each of one replication's figures against its expectation (`expected` saves computing it again).

    A z-score where a normal law may stand for the figure; where it rests on fewer than 30 jobs (`Moment.rare`) the
    exact two-sided tail probability: that of the binomial law for a figure that counts jobs, and for one that sums over
    jobs that of the sum, from its generating function. Only where a sum would cost more than half a second is it twice
    Chernoff's bound: then the truth may be less likely than `tail_p` says, never more. A cost is judged as its calls.
    """
    (design,) = find_designs([design])
    policy = design.policy(scenario)
    expected = expected or _expectation(scenario, policy)
    judged: dict[str, Judgement] = {}
    for name, moment in expected.as_dict().items():
        if moment.sd == 0:
            # A cost is a product of floats: whether it is right is for its calls to say.
            wrong = not name.endswith("_usd") and figures[name] != moment.mean
            judged[name] = Judgement(z=None, tail_p=None, impossible=wrong)
        elif name in SAME_LAW:
            judged[name] = judged[SAME_LAW[name]]
        elif moment.rare:
            judged[name] = Judgement(z=None, tail_p=_tail(name, round(figures[name]), scenario, policy))
        else:
            judged[name] = Judgement(z=z_score(figures[name], moment), tail_p=None)
    return judged


def _tail(figure: str, observed: int, scenario: Scenario, policy: Policy) -> float:
    """The two-sided tail probability of a figure that is not certain and has a law of its own."""
    at = odds(scenario)
    law = job_law(policy, at)
    if figure in law.counts:
        return binomial_tail(observed, scenario.jobs, *law.counts[figure])
    of_one, moves = generating(policy, at, figure)
    mean = scenario.jobs * law.sums[figure].mean
    return sum_tail(of_one, scenario.jobs, observed, mean, points_max=2 * MOVES_MAX // moves)


def _expectation(scenario: Scenario, policy: Policy) -> Expectation:
    """The moments of `jobs` independent jobs, figure by figure."""
    law = job_law(policy, odds(scenario))
    jobs, price = scenario.jobs, scenario.cost_per_call_usd
    of = {name: _of_count(jobs, chance) for name, chance in law.counts.items()}
    of |= {name: _of_sum(jobs, one) for name, one in law.sums.items()}
    # Wasted calls are the model calls less a constant: they rest on the same jobs, whatever the sign of their mean.
    of["wasted_calls"] = replace(of["wasted_calls"], bearing_jobs=of["model_calls"].bearing_jobs)
    for kind in ("wasted", "unproductive"):
        calls = of[f"{kind}_calls"]
        of[f"{kind}_cost_usd"] = replace(calls, mean=calls.mean * price, sd=calls.sd * price)
    return Expectation(**of)


def _of_count(jobs: int, one: Chance) -> Moment:
    """Binomial: mean n p, variance n p q."""
    p, q = one
    return Moment(mean=jobs * p, sd=sqrt(jobs * p * q), bearing_jobs=jobs * min(p, q))


def _of_sum(jobs: int, one: Moments) -> Moment:
    """A sum of independent shares: means and variances add up, and excess kurtosis shrinks by the number of jobs."""
    if one.variance == 0:
        return Moment(mean=jobs * one.mean, sd=0.0, bearing_jobs=0.0)
    kurtosis = one.fourth / one.variance**2 if one.variance > 1e-150 else inf
    mean = jobs * one.mean
    return Moment(mean=mean, sd=sqrt(jobs * one.variance), bearing_jobs=min(jobs / kurtosis, mean))
