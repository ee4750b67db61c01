"""A result in sentences, for a screen reader or a voice: no table, no box, no colour, no sign that is not read out."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from durcore.lab import DesignResult, LabResult
from durcore.report import Column, columns, jobs_of_steps, number, summary, write_latency

# What has become of one, and of any other number.
SENTENCES = {
    "finished": ("{} job finished", "{} jobs finished"),
    "lost": ("{} job was lost", "{} jobs were lost"),
    "dead_lettered": ("{} job was dead-lettered", "{} jobs were dead-lettered"),
    "model_calls": ("{} model call was made", "{} model calls were made"),
    "unproductive_calls": ("{} call was unproductive", "{} calls were unproductive"),
    "unproductive_cost_usd": ("the unproductive calls cost {}",) * 2,
    "lost_job_calls": ("{} call went into lost or dead-lettered jobs", "{} calls went into lost or dead-lettered jobs"),
    "wasted_calls": ("{} call was wasted", "{} calls were wasted"),
    "wasted_cost_usd": ("the wasted calls cost {}",) * 2,
    "duplicate_email_jobs": ("{} job sent its email twice or more", "{} jobs sent their email twice or more"),
    "missing_email_jobs": ("{} finished job sent no email", "{} finished jobs sent no email"),
}


def as_plain(result: LabResult) -> str:
    """A sentence a line: what was run, then for each design each figure with what theory expects of one replication."""
    was = "was" if result.scenario.jobs == 1 else "were"
    lines = [f"{jobs_of_steps(result.scenario)} {was} run in each design.", summary(result)]
    if len(result.seeds) > 1 and not result.interventions:
        lines.append("Each expectation is of one replication.")
    shown = columns(result)
    for design in result.designs:
        name = spoken(design.design.title)
        lines += [f"{name}: {_figure(column, design)}." for column in shown]
        lines += [f"{name}: {sentence}." for sentence in _measured_here(result, design)]
    return "\n".join(lines) + "\n"


def spoken(title: str) -> str:
    """A design's title where it is heard by itself, not read beside the one that it adds to."""
    return f"Checkpoint plus {title[2:]}" if title.startswith("+ ") else title


def _figure(column: Column, design: DesignResult) -> str:
    one, many = SENTENCES[column.figure]
    sentence = one if getattr(design.median, column.figure) == 1 else many
    if design.expected is None:  # theory does not apply to a run with interventions
        return sentence.format(column.measured(design.median))
    deviation = column.deviation(design.expected).replace("±", ", plus or minus").replace(" ,", ",")
    return f"{sentence.format(column.measured(design.median))}; expected: {column.mean(design.expected)}{deviation}"


def _measured_here(result: LabResult, design: DesignResult) -> Iterator[str]:
    """What is another on another machine, and so has no expectation."""
    if result.scenario.crash_mode == "sigkill":
        killed = statistics.median(each.workers_killed for each in design.replications)
        yield f"{number(killed)} {'worker was' if killed == 1 else 'workers were'} killed"
    latency = write_latency(design)
    if latency is None:
        yield "no checkpoint was written"
    else:
        median, p99 = latency
        yield f"half of the checkpoint writes took {median:.1f} microseconds or less, and 99 percent {p99:.1f} or less"
