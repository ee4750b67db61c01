"""A lane's panel as lines of characters with roles: pure code. How a role is coloured is the widget's to say."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from rich.segment import Segment
from rich.style import Style
from textual.renderables.digits import Digits

from durcore.figures import Figures
from durcore.report import dollars, number
from durcore.theory import Expectation
from durtui.present import ODD, bar, compact, expectation, percent_done, write_times
from durtui.view import LaneView, Phase

Role = Literal["label", "value", "good", "bad", "bar", "rest", "error", "wall"]
Line = tuple[tuple[str, Role], ...]

BLANK: Line = (("", "label"),)
WALL: Line = (("", "wall"),)  # a line that the wall of jobs has for itself
WALL_ROWS_LEAST = 2
HUGE = ("lost", "duplicate_email_jobs")  # a presenter shows these, also where they are 0
BIG_ROWS = 3
BESIDE = 32  # cells from which a label stands beside its big digits, where it else stands above them
LABEL_CELLS = 5  # what a label keeps beside a figure in full; with less room the figure is written short
FIGURE_CELLS = 9  # what a figure in full may take beside its whole label


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure of every panel: its label and contract name. A leading row has its expectation, and big digits."""

    label: str
    figure: str
    short: str = ""  # the label where it would be cut
    lead: bool = False
    harm: bool = False  # anything above 0 is a failure that a customer or an operator sees

    @property
    def money(self) -> bool:
        """Whether it is a figure in US dollars."""
        return self.figure.endswith("_usd")


def rows_shown(
    figures: Sequence[Figures], expected: Sequence[Expectation], *, presenting: bool = False
) -> tuple[Row, ...]:
    """The rows of all panels, the same in each so that the eye can go across; a presenter has three, or four.

    Where a job was lost or dead-lettered, or is expected to be, the stricter waste leads.
    """

    def any_of(figure: str) -> bool:
        return any(getattr(each, figure) for each in figures) or any(
            getattr(each, figure).mean >= 0.5 for each in expected
        )

    rows = [Row(label="finished", figure="finished", lead=True), Row(label="lost", figure="lost", lead=True, harm=True)]
    if any_of("dead_lettered"):
        rows.append(Row(label="dead-lettered", figure="dead_lettered", lead=True, harm=True))
    rows.append(Row(label="duplicates", figure="duplicate_email_jobs", lead=True, harm=True))
    if any_of("missing_email_jobs"):
        rows.append(Row(label="missing", figure="missing_email_jobs", lead=True, harm=True))
    if any_of("lost") or any_of("dead_lettered"):
        rows.append(Row(label="unproductive", short="unprod.", figure="unproductive_cost_usd", lead=True))
        rows.append(Row(label="  calls", figure="unproductive_calls"))
    rows.append(Row(label="wasted", figure="wasted_cost_usd", lead=True))
    rows.append(Row(label="  calls", figure="wasted_calls"))
    rows.append(Row(label="calls made", short="made", figure="model_calls"))
    if presenting:
        money = next(row for row in rows if row.money)
        return (*(row for row in rows if row.harm and (any_of(row.figure) or row.figure in HUGE)), money)
    return tuple(rows)


def panel(
    view: LaneView,
    rows: Sequence[Row],
    expected: Expectation | None,
    width: int,
    height: int,
    odd: Collection[str] = (),
    wall_rows: int = 0,
    *,
    big_first: bool = False,
) -> list[Line]:
    """A lane's panel in at most `height` lines of `width` cells: progress, figures, the wall, write latency.

    Room goes first to the expectations, all or none; then to the wall, up to the `wall_rows` that it has a use for;
    then to big digits for as many leading rows as it does for, from the first on. A presenter has them `big_first`,
    before the wall. `odd` names the figures that are too far from their expectation; `expected` is None where theory
    does not apply.
    """
    if view.phase is Phase.FAILED:
        lines: list[Line] = [((line, "error"),) for line in textwrap.wrap(f"failed: {view.error}", max(width, 1))]
        return lines[:height]
    beside = width >= BESIDE
    leads = sum(row.lead for row in rows)
    store = _store_lines(view, width)
    spare = height - 1 - len(store) - len(rows)
    expecting = expected is not None and spare >= leads
    spare -= leads if expecting else 0
    grown = BIG_ROWS - 1 if beside else BIG_ROWS  # how many lines more a row takes in big digits
    if expecting and beside:
        grown -= 1  # its expectation finds room below its label
    kept = min(grown * leads, max(spare - WALL_ROWS_LEAST, 0)) if big_first else 0
    walled = min(wall_rows, spare - kept)
    walled = walled if walled >= WALL_ROWS_LEAST else 0
    spare -= walled
    groups = [[_progress_line(view, width)]]
    for row in rows:
        hint = _expected(row, expected, width, odd) if expected and expecting and row.lead else None
        if not row.lead:
            groups[-1].append(_minor(row, view.figures, expected, width, odd))
        elif spare >= grown:
            spare -= grown
            groups.append(_big(row, view.figures, width, hint))
        else:
            groups.append([_small(row, view.figures, width), *([hint] if hint else [])])
    if walled:
        groups.append([WALL] * walled)
    groups.append(store)
    gap = [BLANK] if spare >= len(groups) - 1 else []
    return [line for group in groups for line in (*group, *gap)][:height]


def _progress_line(view: LaneView, width: int) -> Line:
    done = f" {percent_done(view.share):>5}"
    filled = bar(view.share, max(width - len(done), 0))
    solid = filled.rstrip()
    return ((solid, "bar"), (filled[len(solid) :], "rest"), (done[-width:], "value"))


def _store_lines(view: LaneView, width: int) -> list[Line]:
    """What belongs to the store and its workers, not to the design: workers killed, and how long writes take."""
    times: Line = ((write_times(view.latency, width), "label"),)
    if view.workers_killed is None:
        return [times]
    label = "workers killed" if width >= BESIDE else "killed"
    return [_aligned(label, number(view.workers_killed), width), times]


def _aligned(label: str, text: str, width: int) -> Line:
    room = max(width - len(text) - 1, 0)
    return ((f"{label[:room]:<{room}} ", "label"), (text[:width], "value"))


def _texts(row: Row, figures: Figures) -> tuple[str, str]:
    """The figure in full and short."""
    value = getattr(figures, row.figure)
    if row.money:
        return dollars(value), f"{'-' if value < 0 else ''}${compact(abs(value))}"
    return number(value), compact(value)


def _role(row: Row, figures: Figures) -> Role:
    if row.harm:
        return "bad" if getattr(figures, row.figure) else "value"
    return "good" if row.figure == "finished" else "value"


def _expected(row: Row, expected: Expectation, width: int, odd: Collection[str]) -> Line:
    mark = f" {ODD}" if row.figure in odd else ""
    text = expectation(getattr(expected, row.figure), money=row.money, width=width - len(mark)) + mark
    return ((text.rjust(width), "bad" if mark else "label"),)


def _small(row: Row, figures: Figures, width: int) -> Line:
    full, short = _texts(row, figures)
    text = full if len(full) <= width - LABEL_CELLS else short
    room = width - len(text) - 1
    if room < 1:
        return ((text[:width].rjust(width), _role(row, figures)),)
    # By the width and not by this figure, so that a row has one label in all lanes.
    label = row.short if row.short and width < len(row.label) + FIGURE_CELLS else row.label
    return ((f"{label[:room]:<{room}} ", "label"), (text, _role(row, figures)))


def _minor(row: Row, figures: Figures, expected: Expectation | None, width: int, odd: Collection[str]) -> Line:
    """A row that does not lead: its expectation stands before the figure, where both and the label have room."""
    mark = f" {ODD}" if row.figure in odd else ""
    text, _ = _texts(row, figures)
    label = row.short if row.short and width < BESIDE else row.label
    room = width - len(label) - len(text) - len(mark) - 4
    hint = "" if expected is None else expectation(getattr(expected, row.figure), money=row.money, width=room)
    if not hint.startswith("exp"):
        return _small(row, figures, width)
    role: Role = "bad" if mark else "label"
    return ((f"{label}  ", "label"), (f"{hint:>{room}}{mark}  ", role), (text, _role(row, figures)))


def _big(row: Row, figures: Figures, width: int, hint: Line | None) -> list[Line]:
    """A figure in digits three rows high; small digits where they do not fit. The lines are as many either way.

    The label stands beside the digits with the expectation below it, or above them with the expectation last.
    """
    beside = width >= BESIDE
    left = max(len(row.label), len(hint[0][0].strip()) if hint else 0) + 1 if beside else 0
    text = next((text for text in _texts(row, figures) if digits_width(text) <= width - left), None)
    if text is None:
        fill = BIG_ROWS - 1 if beside else BIG_ROWS
        lines = [_small(row, figures, width), *([hint] if hint else [])]
        return [*lines, *[BLANK] * (fill - (1 if beside and hint else 0))]
    role = _role(row, figures)
    digits = [line.rjust(width - left) for line in big_digits(text)]
    if not beside:
        return [((row.label[:width], "label"),), *(((line, role),) for line in digits), *([hint] if hint else [])]
    labels: list[tuple[str, Role]] = [(row.label, "label"), ("", "label"), ("", "label")]
    if hint:
        labels[1] = (hint[0][0].strip(), hint[0][1])
    return [
        ((label.ljust(left), label_role), (line, role))
        for (label, label_role), line in zip(labels, digits, strict=True)
    ]


def big_digits(text: str) -> list[str]:
    """`text`, of digits and the signs of money, in characters three rows high."""
    segments = [part for part in Digits(text).render(Style()) if isinstance(part, Segment)]
    return ["".join(segment.text for segment in line) for line in Segment.split_lines(segments)]


def digits_width(text: str) -> int:
    """How many cells `text` takes in big digits."""
    return Digits.get_width(text)
