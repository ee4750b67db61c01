"""Reports for people and spreadsheets: a result as Markdown or CSV, with the command that gives it again."""

from __future__ import annotations

import csv
import io
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from durcore.figures import FIGURE_NAMES, Figures
from durcore.interventions import Intervention
from durcore.lab import DesignResult, LabResult
from durcore.scenario import Scenario
from durcore.snapshot import reproduce
from durcore.theory import Expectation

CRASHES = {  # where a crash lands, as a sentence says it
    "before-work": "before it",
    "after-key": "after recording the key",
    "after-work": "after it",
    "after-checkpoint": "after the checkpoint",
    "anywhere": "anywhere in between",
}


@dataclass(frozen=True, slots=True)
class Column:
    """One figure of a table for people: its heading, its contract name, and how a value of it is written."""

    heading: str
    figure: str
    write: Callable[[float], str]

    def measured(self, figures: Figures) -> str:
        """The figure itself."""
        return self.write(getattr(figures, self.figure))

    def mean(self, expected: Expectation) -> str:
        """What theory expects."""
        return self._expected(getattr(expected, self.figure).mean)

    def deviation(self, expected: Expectation) -> str:
        """The deviation of one replication; empty where the figure is certain, or as good as."""
        text = self._expected(getattr(expected, self.figure).sd)
        return "" if text in ("0", "$0.00") else f"± {text}"

    def _expected(self, value: float) -> str:
        # Rounded in two steps: two means that are equal but for their last bits must not come out a cent apart.
        return self.write(round(round(value, 9), 1 if self.write is number else 2))


def columns(result: LabResult) -> list[Column]:
    """The columns that this result needs, in order.

    The stricter waste leads wherever a job was lost or dead-lettered; jobs dead-lettered or missing their email have
    a column where there are any.
    """
    runs = [replication.figures for design in result.designs for replication in design.replications]
    shown = [Column("finished", "finished", number), Column("lost", "lost", number)]
    if any(f.dead_lettered for f in runs):
        shown.append(Column("dead-lettered", "dead_lettered", number))
    shown.append(Column("model calls", "model_calls", number))
    if any(f.lost or f.dead_lettered for f in runs):
        shown += [
            Column("unproductive calls", "unproductive_calls", number),
            Column("unproductive cost", "unproductive_cost_usd", dollars),
            Column("calls on lost jobs", "lost_job_calls", number),
        ]
    shown += [
        Column("wasted calls", "wasted_calls", number),
        Column("wasted cost", "wasted_cost_usd", dollars),
        Column("duplicate emails", "duplicate_email_jobs", number),
    ]
    if any(f.missing_email_jobs for f in runs):
        shown.append(Column("missing emails", "missing_email_jobs", number))
    return shown


def measured_here(result: LabResult) -> list[tuple[str, list[str]]]:
    """What a table has beside figures: a heading, and a cell a design. It is another on another machine.

    Each is the median of the replications: of the workers that drawn crashes have killed, where crashes kill; and of
    the median and p99 of a checkpoint write.
    """
    columns: list[tuple[str, list[str]]] = []
    if result.scenario.crash_mode == "sigkill":
        killed = [statistics.median(each.workers_killed for each in design.replications) for design in result.designs]
        columns.append(("workers killed", [number(each) for each in killed]))
    latencies = [write_latency(design) for design in result.designs]
    cells = ["none" if each is None else f"{each[0]:.1f} / {each[1]:.1f}" for each in latencies]
    return [*columns, ("write µs, median / p99", cells)]


def write_latency(design: DesignResult) -> tuple[float, float] | None:
    """Median and p99 of a checkpoint write, µs, each the median of the replications. None: no writes."""
    latencies = [r.checkpoint_write_us for r in design.replications if r.checkpoint_write_us is not None]
    if not latencies:
        return None
    return statistics.median(each.median for each in latencies), statistics.median(each.p99 for each in latencies)


def as_markdown(result: LabResult) -> str:
    """A table of medians that renders on a code forge."""
    shown = columns(result)
    here = measured_here(result)
    headings = ["design", *(column.heading for column in shown), *(heading for heading, _ in here)]
    rows = []
    for index, design in enumerate(result.designs):
        measured = [column.measured(design.median) for column in shown]
        rows.append([design.design.title, *measured, *(cells[index] for _, cells in here)])
        if design.expected is not None:
            moments = [(column.mean(design.expected), column.deviation(design.expected)) for column in shown]
            expected = [f"{mean} {deviation}".strip() for mean, deviation in moments]
            rows.append(["*expected of one*", *expected, *([""] * len(here))])
    scenario = result.scenario
    lines = [
        f"# durtui: {jobs_of_steps(scenario)}",
        "",
        summary(result),
        "",
        "| " + " | ".join(headings) + " |",
        "| --- |" + " ---: |" * (len(headings) - 1),
        *("| " + " | ".join(row) + " |" for row in rows),
        "",
        "The same figures again:" if result.complete else "The run to its end:",
        "",
        "```sh",
        reproduce(result),
        "```",
        "",
    ]
    return "\n".join(lines)


def as_csv(result: LabResult) -> str:
    """One row a replication and one for the median of each design, every figure by its contract name."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        [
            "design",
            "seed",
            *FIGURE_NAMES,
            "workers_killed",
            "checkpoint_write_us_median",
            "checkpoint_write_us_p99",
            "interventions",
            "command",
        ]
    )
    told = [" ".join(map(str, result.interventions)), reproduce(result)]
    for design in result.designs:
        for replication in design.replications:
            latency = replication.checkpoint_write_us
            writes = ["", ""] if latency is None else [latency.median, latency.p99]
            row = replication.figures.as_dict().values()
            writer.writerow([design.design.name, replication.seed, *row, replication.workers_killed, *writes, *told])
        medians = design.median.as_dict().values()
        killed = statistics.median(each.workers_killed for each in design.replications)
        latencies = write_latency(design) or ("", "")
        writer.writerow([design.design.name, "median", *medians, killed, *latencies, *told])
    return text.getvalue()


def summary(result: LabResult) -> str:
    """What was run, in one sentence."""
    scenario = result.scenario
    seeds = ", ".join(map(str, result.seeds))
    run = "the median of seeds " if len(result.seeds) > 1 else "that of seed "
    state = "" if result.complete else " The run had not ended: these figures are not final."
    return (
        f"The email goes out at step {scenario.effect_step}; {percent(scenario.transient_rate)} of attempts fail"
        f" before any work and {percent(scenario.crash_rate)} crash {CRASHES[scenario.crash_point]}; a call costs"
        f" ${scenario.cost_per_call_usd:g}; each figure is {run}{seeds}.{state}{intervened(result.interventions)}"
    )


def intervened(interventions: Sequence[Intervention]) -> str:
    """That somebody has intervened, in a sentence that goes behind others; empty where nobody has."""
    if not interventions:
        return ""
    counts = Counter(each.kind for each in interventions)
    made = [f"{count} {kind}{'' if count == 1 else 's'}" for kind, count in sorted(counts.items())]
    return f" Interventions were made ({', '.join(made)}), so theory does not apply."


def jobs_of_steps(scenario: Scenario) -> str:
    """How many jobs of how many steps, in words."""
    jobs, steps = scenario.jobs, scenario.steps
    return f"{jobs:,} {'job' if jobs == 1 else 'jobs'} of {steps} {'step' if steps == 1 else 'steps'}"


def number(value: float) -> str:
    """A count for a person: thousands apart, a half only in a median of an even number."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def writer_of(figure: str) -> Callable[[float], str]:
    """How a value of this figure is written."""
    return dollars if figure.endswith("_usd") else number


def dollars(value: float) -> str:
    """US dollars and cents."""
    return f"-${-value:,.2f}" if round(value, 2) < 0 else f"${abs(value):,.2f}"


def percent(rate: float) -> str:
    """A probability for a person."""
    return f"{rate * 100:.10g} %"
