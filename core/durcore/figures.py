"""Figures: what a lane did, by the contract's names. Derived from a tally of counted events, never set by hand.

A tally is counted twice: streamed by the worker as events happen, and counted anew from ledger and store at the end.
The two must agree; nothing here trusts either.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields

from durcore.scenario import Scenario


@dataclass(slots=True, kw_only=True)
class Tally:
    """Counted events of one lane, so far. The one mutable value of the house: a worker adds to it as events happen.

    `open_steps` are the steps that jobs still under way have behind them: checkpointed, or done in the present
    delivery. It is 0 when every job has ended.
    """

    finished: int = 0
    lost: int = 0
    dead_lettered: int = 0
    model_calls: int = 0
    lost_job_calls: int = 0
    duplicate_email_jobs: int = 0
    missing_email_jobs: int = 0
    emails_delivered: int = 0
    redeliveries: int = 0
    resumed_jobs: int = 0
    checkpoint_writes: int = 0
    manual_resumes: int = 0
    open_steps: int = 0

    @property
    def ended(self) -> int:
        """Jobs that have finished, or were lost or dead-lettered."""
        return self.finished + self.lost + self.dead_lettered


TALLY_FIELDS: tuple[str, ...] = tuple(f.name for f in fields(Tally))


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """One replication of one design, or the median of each figure over several (whole numbers, or halves then).

    `wasted_calls` is the mission's definition, model calls less jobs x steps: it takes a lost job's length for useful
    and can be negative. `unproductive_calls` is the stricter one, model calls less steps x finished jobs.
    """

    finished: float
    lost: float
    dead_lettered: float
    model_calls: float
    wasted_calls: float
    wasted_cost_usd: float
    unproductive_calls: float
    unproductive_cost_usd: float
    lost_job_calls: float
    duplicate_email_jobs: float
    missing_email_jobs: float
    emails_delivered: float
    redeliveries: float
    resumed_jobs: float
    checkpoint_writes: float
    manual_resumes: float

    def as_dict(self) -> dict[str, float]:
        """Every figure by name, in the contract's order."""
        return asdict(self)


FIGURE_NAMES: tuple[str, ...] = tuple(f.name for f in fields(Figures))


def figures_of(tally: Tally, scenario: Scenario) -> Figures:
    """The figures of a lane that has got as far as `tally`. Costs are US dollars.

    While jobs are open, calls are wasted beyond the steps of ended jobs and the steps that open jobs have behind them;
    when all have ended that is model_calls - jobs x steps.
    """
    wasted = tally.model_calls - scenario.steps * tally.ended - tally.open_steps
    unproductive = tally.model_calls - scenario.steps * tally.finished - tally.open_steps
    return Figures(
        finished=tally.finished,
        lost=tally.lost,
        dead_lettered=tally.dead_lettered,
        model_calls=tally.model_calls,
        wasted_calls=wasted,
        wasted_cost_usd=wasted * scenario.cost_per_call_usd,
        unproductive_calls=unproductive,
        unproductive_cost_usd=unproductive * scenario.cost_per_call_usd,
        lost_job_calls=tally.lost_job_calls,
        duplicate_email_jobs=tally.duplicate_email_jobs,
        missing_email_jobs=tally.missing_email_jobs,
        emails_delivered=tally.emails_delivered,
        redeliveries=tally.redeliveries,
        resumed_jobs=tally.resumed_jobs,
        checkpoint_writes=tally.checkpoint_writes,
        manual_resumes=tally.manual_resumes,
    )


def median_figures(replications: Sequence[Figures]) -> Figures:
    """The median of each figure by itself; of an even number, the mean of the middle two."""
    rows = [figures.as_dict() for figures in replications]
    return Figures(**{name: statistics.median(row[name] for row in rows) for name in FIGURE_NAMES})
