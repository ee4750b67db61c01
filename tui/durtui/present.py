"""From figures to characters: pure code that widgets call and tests read, without an app."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from rich.segment import Segment
from rich.style import Style
from textual.renderables.digits import Digits

from durcore.figures import Figures
from durcore.latency import Latency
from durcore.report import dollars, number
from durtui.session import LaneView, Phase, Session

UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
EIGHTHS = " ▏▎▍▌▋▊▉█"


Role = Literal["label", "value", "good", "bad", "bar", "rest", "error"]
Line = tuple[tuple[str, Role], ...]

BIG_ROWS = 3
BESIDE = 32  # cells from which a label stands beside its big digits, where it else stands above them


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One figure of a lane's panel: its label, its text in full, and a shorter one for where that does not fit."""

    label: str
    text: str
    short: str
    role: Role = "value"
    lead: bool = False  # to be drawn big, where there is room


def figures_shown(figures: Figures, others: Sequence[Figures]) -> tuple[Shown, ...]:
    """The figures of a panel, in order. `others` are those of every lane, so that all panels have the same rows.

    Where a job was lost or dead-lettered the stricter waste leads.
    """
    shown = [
        _count("finished", figures.finished, role="good", lead=True),
        _count("lost", figures.lost, role=_bad(figures.lost), lead=True),
    ]
    if any(other.dead_lettered for other in others):
        shown.append(_count("dead-lettered", figures.dead_lettered, role=_bad(figures.dead_lettered)))
    duplicates = figures.duplicate_email_jobs
    shown.append(_count("duplicates", duplicates, role=_bad(duplicates), lead=True))
    if any(other.missing_email_jobs for other in others):
        shown.append(_count("missing", figures.missing_email_jobs, role=_bad(figures.missing_email_jobs)))
    strict = any(other.lost or other.dead_lettered for other in others)
    if strict:
        shown.append(_cost("unproductive", figures.unproductive_cost_usd, lead=True))
        shown.append(_count("  calls", figures.unproductive_calls))
    shown.append(_cost("wasted", figures.wasted_cost_usd, lead=not strict))
    shown.append(_count("  calls", figures.wasted_calls))
    return tuple(shown)


def panel(view: LaneView, others: Sequence[Figures], width: int, height: int) -> list[Line]:
    """A lane's panel in at most `height` lines of `width` cells: progress, figures, write latency.

    As many of the leading figures as there is height for are drawn in big digits, from the first on.
    """
    if view.phase is Phase.FAILED:
        lines: list[Line] = [((line, "error"),) for line in textwrap.wrap(f"failed: {view.error}", max(width, 1))]
        return lines[:height]
    shown = figures_shown(view.figures, others)
    block = BIG_ROWS if width >= BESIDE else BIG_ROWS + 1
    spare = height - 2 - len(shown)
    groups = [[_progress_line(view, width)]]
    for figure in shown:
        if figure.lead and spare >= block - 1:
            spare -= block - 1
            groups.append(_big(figure, width))
        elif figure.lead:
            groups.append([_small(figure, width)])
        else:
            groups[-1].append(_small(figure, width))
    groups.append([((write_times(view.latency, width), "label"),)])
    gap: list[Line] = [(("", "label"),)] if spare >= len(groups) - 1 else []
    return [line for group in groups for line in (*group, *gap)][:height]


def _progress_line(view: LaneView, width: int) -> Line:
    done = f" {percent_done(view.share):>5}"
    filled = bar(view.share, max(width - len(done), 0))
    solid = filled.rstrip()
    return ((solid, "bar"), (filled[len(solid) :], "rest"), (done[-width:], "value"))


def _small(figure: Shown, width: int) -> Line:
    text = fit(figure, width - 2)
    room = max(width - len(text) - 1, 0)
    return ((f"{figure.label[:room]:<{room}} ", "label"), (text, figure.role))


def _big(figure: Shown, width: int) -> list[Line]:
    """A figure in digits three rows high, its label beside or above them; small digits where they do not fit."""
    beside = width >= BESIDE
    room = width - len(figure.label) - 1 if beside else width
    text = next((text for text in (figure.text, figure.short) if digits_width(text) <= room), None)
    if text is None:
        blank: Line = (("", "label"),)
        return [_small(figure, width), *[blank] * (BIG_ROWS - 1 if beside else BIG_ROWS)]
    digits = [line.rjust(room) for line in big_digits(text)]
    if not beside:
        return [((figure.label[:width], "label"),), *(((line, figure.role),) for line in digits)]
    labels = [f"{figure.label} ", *[" " * (len(figure.label) + 1)] * (BIG_ROWS - 1)]
    return [((label, "label"), (line, figure.role)) for label, line in zip(labels, digits, strict=True)]


def big_digits(text: str) -> list[str]:
    """`text`, of digits and the signs of money, in characters three rows high."""
    segments = [part for part in Digits(text).render(Style()) if isinstance(part, Segment)]
    return ["".join(segment.text for segment in line) for line in Segment.split_lines(segments)]


def digits_width(text: str) -> int:
    """How many cells `text` takes in big digits."""
    return Digits.get_width(text)


def _bad(value: float) -> Role:
    return "bad" if value else "value"


def _count(label: str, value: float, *, role: Role = "value", lead: bool = False) -> Shown:
    return Shown(label=label, text=number(value), short=compact(value), role=role, lead=lead)


def _cost(label: str, value: float, *, lead: bool = False) -> Shown:
    sign = "-" if value < 0 else ""
    return Shown(label=label, text=dollars(value), short=f"{sign}${compact(abs(value))}", lead=lead)


def compact(value: float) -> str:
    """A number in at most five characters below a million millions: 999, 1.17k, 24.3k, 1.00M."""
    for unit, letter in UNITS:
        if abs(value) >= unit:
            scaled = value / unit
            return f"{scaled:.{max(0, 2 - int(math.log10(abs(scaled))))}f}{letter}"
    return f"{value:.0f}"


def fit(shown: Shown, width: int) -> str:
    """The text that `width` cells have room for: in full, or short."""
    return shown.text if len(shown.text) <= width else shown.short


def bar(share: float, width: int) -> str:
    """A bar of `width` cells filled to `share`, in eighths of a cell. Full only when the share is 1."""
    whole, part = divmod(int(min(max(share, 0.0), 1.0) * width * 8), 8)
    return ("█" * whole + (EIGHTHS[part] if part else "")).ljust(width)


def percent_done(share: float) -> str:
    """The share as a whole percentage, 100 % only when nothing is left."""
    return f"{int(share * 100)} %"


def write_times(latency: Latency | None, width: int) -> str:
    """Median and 99th percentile of the checkpoint writes."""
    if latency is None:
        return "no checkpoints" if width >= len("no checkpoints") else "none"
    full = f"write {latency.median:.1f} µs  p99 {latency.p99:.0f}"
    return full if len(full) <= width else f"{latency.median:.1f}/{latency.p99:.0f} µs"


def speed(calls_per_s: float | None) -> str:
    """A lane's speed for a person."""
    return "unlimited" if calls_per_s is None else f"{calls_per_s:,.0f} calls/s"


def headline(views: Sequence[LaneView], session: Session) -> str:
    """What is going on, in one line."""
    state = status(views) if views else "nothing runs"
    return f"seed {session.seed} · {state} · {speed(session.calls_per_s)}"


def status(views: Sequence[LaneView]) -> str:
    """The phase of the run: of the lane that is furthest behind, and how far all have come."""
    failed = [view for view in views if view.phase is Phase.FAILED]
    if failed:
        return f"{len(failed)} of {len(views)} lanes failed"
    share = sum(view.ended for view in views) / sum(view.jobs for view in views)
    if all(view.phase is Phase.DONE for view in views):
        return "done"
    order = list(Phase)
    phase = min((view.phase for view in views), key=order.index)
    return f"{phase.value} {percent_done(share)}"


def compact_table(views: Sequence[LaneView], width: int, height: int) -> list[str]:
    """Every lane in a few columns of a small terminal: a figure a line, a lane a column; or what fits of it."""
    if not views or width < 1 or height < 1:
        return []
    label_width = 10 if width >= 40 else 5 if width >= 24 else 0
    cell = max((width - label_width) // len(views), 1)
    picks: list[tuple[str, Callable[[LaneView], str]]] = [
        ("", lambda view: view.design.short),
        ("done", lambda view: view.phase.value if view.phase is Phase.FAILED else percent_done(view.share)),
        ("lost", lambda view: compact(view.figures.lost + view.figures.dead_lettered)),
        ("duplicate", lambda view: compact(view.figures.duplicate_email_jobs)),
        ("finished", lambda view: compact(view.figures.finished)),
        ("wasted $", lambda view: compact(view.figures.wasted_cost_usd)),
        ("calls", lambda view: compact(view.figures.model_calls)),
    ]
    lines = []
    for label, text in picks[:height]:
        cells = "".join(f" {text(view)[: cell - 1]:>{cell - 1}}" for view in views)
        lines.append(f"{label[:label_width]:<{label_width}}{cells}"[:width])
    return lines
