"""From figures to characters: pure code that widgets call and tests read, without an app."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from durcore.latency import Latency
from durcore.report import percent
from durcore.rundir import WAL_BYTES
from durcore.scenario import Scenario
from durcore.theory import Judgement, Moment
from durtui.view import LaneView, Phase
from durtui.wall import shades_of, told

UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
ODD = "‼"  # marks what is too far from what it should be
EIGHTHS = " ▏▎▍▌▋▊▉█"
COMPACT_CELLS = 6  # what a compact number takes at the most, with its sign
ADVICE = ("checkpoint each step and give the email a key", "checkpoint each step")
ADVISE_BELOW = 0.9  # the share of jobs that survive their first attempt, from which retrying whole jobs grows dear


def compact(value: float) -> str:
    """A number in three digits, and at most five characters below a million millions: 999, 1.17k, 24.3k, 1.00M."""
    value = float(f"{value:.3g}")
    for unit, letter in UNITS:
        if abs(value) >= unit:
            scaled = value / unit
            return f"{scaled:.{max(2 - int(math.log10(abs(scaled))), 0)}f}{letter}"
    return f"{value:.0f}".replace("-0", "0")


def bar(share: float, width: int) -> str:
    """A bar of `width` cells filled to `share`, in eighths of a cell. Full only when the share is 1."""
    whole, part = divmod(int(min(max(share, 0.0), 1.0) * width * 8), 8)
    return ("█" * whole + (EIGHTHS[part] if part else "")).ljust(width)


def percent_done(share: float) -> str:
    """The share as a whole percentage, 100 % only when nothing is left."""
    return f"{int(share * 100 + 1e-9)} %"  # 29 of 100 are 28.999… in binary


def expectation(moment: Moment, *, money: bool, width: int) -> str:
    """What theory expects of a figure, in the fullest form that `width` cells have room for; empty where none has."""
    mean, sd = _rounded(abs(moment.mean), money=money), _rounded(moment.sd, money=money)
    deviation = "" if float(sd.replace(",", "")) == 0 else f" ± {sd}"
    sign = ("-" if moment.mean < 0 else "") + ("$" if money else "")
    short = f"{sign}{compact(abs(moment.mean))}"
    forms = (
        f"expect {sign}{mean}{deviation}",
        f"exp. {sign}{mean}{deviation}",
        f"exp. {sign}{mean}",
        f"exp. {short}",
        short,
    )
    return next((form for form in forms if len(form) <= width), "")


def _rounded(value: float, *, money: bool) -> str:
    value = round(value, 9)  # means that are equal but for their last bits must not come out a cent apart
    return f"{value:,.2f}" if money else f"{value:,.0f}" if abs(value) >= 10 or value == int(value) else f"{value:,.1f}"


def odds_of(judgement: Judgement) -> float:
    """How likely a replication is to be at least as far off its expectation, on either side."""
    if judgement.impossible:
        return 0.0
    if judgement.tail_p is not None:
        return judgement.tail_p
    return 1.0 if judgement.z is None else math.erfc(abs(judgement.z) / math.sqrt(2))


def arithmetic(scenario: Scenario, width: int) -> str:
    """The one line of arithmetic under every design: how a job's survival follows from a step's."""
    step = 1 - scenario.transient_rate - scenario.crash_rate
    job = max(step, 0.0) ** scenario.steps
    tried = 1 - (1 - job) ** scenario.job_attempts
    line = (
        f"one step survives {_share(step)}, a job of {scenario.steps} {_plural('step', scenario.steps)} {_share(job)},"
        f" {scenario.job_attempts} {_plural('attempt', scenario.job_attempts)} {_share(tried)}"
    )
    short = f"a step {_share(step)}, a job {_share(job)}, {scenario.job_attempts} tries {_share(tried)}"
    advised = [f"{text} · {advice}" for text in (line, short) for advice in ADVICE]
    forms = [*(advised if job < ADVISE_BELOW else []), line, short]
    return next((text for text in forms if len(text) <= width), short[: max(width, 0)])


def _share(probability: float) -> str:
    if 0.001 <= probability <= 0.999:
        return f"{probability * 100:.1f} %"
    return percent(float(f"{max(probability, 0.0):.3g}"))


def _plural(noun: str, count: int) -> str:
    return noun if count == 1 else noun + "s"


def write_times(latency: Latency | None, width: int) -> str:
    """Median and 99th percentile of the checkpoint writes, as far as `width` cells have room for them."""
    if latency is None:
        forms = ("no checkpoints", "none")
    else:
        forms = (
            f"write {latency.median:.1f} µs  p99 {latency.p99:.0f}",
            f"{latency.median:.1f}/{latency.p99:.0f} µs",
        )
    return next((form for form in forms if len(form) <= width), "")


def lane_status(view: LaneView, width: int) -> str:
    """A lane's phase behind what matters most: its alert, interventions, or the size of its write-ahead log.

    The log is marked where it is larger than it should grow, and left out where there is no room for it.
    """
    if view.alert_at is not None:
        return f"{ODD} resume alert · {view.phase.value}"
    if view.interventions:
        return f"intervened · {view.phase.value}"
    mark = f" {ODD}" if view.wal_bytes > WAL_BYTES else ""
    full = f"log {view.wal_bytes / 2**20:.1f} MiB{mark} · {view.phase.value}"
    return full if view.wal_bytes and len(full) <= width else f"{view.phase.value}{mark}"


def speed(calls_per_s: float | None) -> str:
    """A lane's speed for a person."""
    return "unlimited" if calls_per_s is None else f"{calls_per_s:,.0f} calls/s"


def headline(views: Sequence[LaneView], seed: int, calls_per_s: float | None) -> str:
    """What is going on, in one line."""
    state = status(views) if views else "nothing runs"
    made = " · theory does not apply" if any(view.interventions for view in views) else ""
    return f"seed {seed} · {state} · {speed(calls_per_s)}{made}"


def status(views: Sequence[LaneView]) -> str:
    """The phase of the run: of the lane that is furthest behind, and how far all have come."""
    failed = [view for view in views if view.phase is Phase.FAILED]
    if failed:
        return f"{len(failed)} of {len(views)} lanes failed"
    done = percent_done(sum(view.ended for view in views) / sum(view.jobs for view in views))
    if all(view.phase is Phase.DONE for view in views):
        return "done"
    order = list(Phase)
    phase = min((view.phase for view in views), key=order.index)
    return f"{phase.value} {done}"


def verdict(views: Sequence[LaneView]) -> str:
    """Which designs have had no failure that a customer sees, by what the ledger shows so far.

    A dead-lettered job is such a failure until a person resumes it.
    """
    if not any(view.figures.model_calls for view in views):
        return ""
    so_far = "" if all(view.phase is Phase.DONE for view in views) else " so far"
    good = [view.design.title for view in views if not failures(view)]
    if not good:
        return f"Every design has had customer-visible failures{so_far}."
    if len(good) == len(views):
        return f"No design has had a customer-visible failure{so_far}."
    names = " and ".join([", ".join(good[:-1]), good[-1]] if len(good) > 1 else good)
    return f"Only {names} {'has' if len(good) == 1 else 'have'} had no customer-visible failure{so_far}."


def pointed_at(views: Sequence[LaneView], first: int, last: int) -> str:
    """Where the jobs that a cell of the wall stands for are, in each design: the worst of several."""
    lanes = []
    for view in views:
        shades = shades_of(view.steps)
        worst = max(view.board[first - 1 : last], key=shades.__getitem__, default=None)
        lanes.append(f"{view.design.short}: {'not begun' if worst is None else told(worst, view.steps)}")
    who = f"job {first:,}" if first == last else f"jobs {first:,} to {last:,}, the worst"
    return f"{who} · {' · '.join(lanes)}"


def failures(view: LaneView) -> float:
    """Jobs that were lost, parked, or ended with another number of emails than one; some may count twice."""
    figures = view.figures
    return figures.lost + figures.dead_lettered + figures.duplicate_email_jobs + figures.missing_email_jobs


def compact_table(views: Sequence[LaneView], width: int, height: int) -> list[str]:
    """Every lane in a few columns of a small terminal: a figure a line, a lane a column; or what fits of it.

    Where a job was lost or dead-lettered the stricter waste stands before the other.
    """
    if not views or width < 1 or height < 1:
        return []
    count = len(views)
    label_width = min(10, width - count * (COMPACT_CELLS + 1))
    label_width = label_width if label_width >= 4 else 0
    # Columns stand one cell apart, the labels too where there is room for them.
    cell = max((width - label_width - count) // count if label_width else (width - count + 1) // count, 1)
    picks: list[tuple[str, Callable[[LaneView], str]]] = [
        ("", lambda view: view.design.short),
        ("done", lambda view: view.phase.value if view.phase is Phase.FAILED else percent_done(view.share)),
        ("lost", lambda view: compact(view.figures.lost + view.figures.dead_lettered)),
        ("duplicate", lambda view: compact(view.figures.duplicate_email_jobs)),
        ("finished", lambda view: compact(view.figures.finished)),
        ("wasted $", lambda view: compact(view.figures.wasted_cost_usd)),
        ("calls", lambda view: compact(view.figures.model_calls)),
    ]
    if any(view.workers_killed is not None for view in views):
        picks.append(("killed", lambda view: compact(view.workers_killed or 0)))
    if any(view.figures.lost or view.figures.dead_lettered for view in views):
        picks.insert(5, ("unprod. $", lambda view: compact(view.figures.unproductive_cost_usd)))
    lines = []
    for label, text in picks[:height]:
        cells = " ".join(f"{text(view)[:cell]:>{cell}}" for view in views)
        lines.append(f"{label[:label_width]:<{label_width}} {cells}"[:width] if label_width else cells[:width])
    return lines
