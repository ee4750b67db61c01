"""The lab without the app: progress on standard error, a table on standard output."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from durcore.designs import DESIGNS
from durcore.errors import printable
from durcore.figures import FIGURE_NAMES
from durcore.lab import LabResult
from durcore.report import Column, columns, jobs_of_steps, measured_here, summary, writer_of
from durcore.scenario import Scenario
from durcore.sweep import Axis, Point
from durcore.theory import Expectation
from durtui.terminal import prints_unicode

PIPE_WIDTH = 120  # at the least, so that the sentence below the table is not broken early


class _Rate(ProgressColumn):
    """How many of something are done in a second."""

    def __init__(self, unit: str) -> None:
        super().__init__()
        self._unit = unit

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed or 0:,.0f} {self._unit}/s", style="progress.data.speed")


@contextmanager
def progress_bar(label: str, unit: str = "jobs", *, plain: bool = False) -> Iterator[Callable[[int, int], None]]:
    """A bar with rate and time left on standard error, or where it is to be plain a line a quarter.

    Where standard error is no terminal, nothing.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _done, _total: None
        return
    if plain:
        yield _quarters(label, unit)
        return
    columns_ = (TextColumn(label), BarColumn(), MofNCompleteColumn(), _Rate(unit), TimeRemainingColumn())
    with Progress(*columns_, console=console, transient=True) as progress:
        task = progress.add_task(label, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def _quarters(label: str, unit: str) -> Callable[[int, int], None]:
    """Says on standard error how much is done, whenever another quarter is."""
    told = 0

    def tell(done: int, total: int) -> None:
        nonlocal told
        quarter = 4 * done // max(total, 1)
        if quarter > told:
            told = quarter
            print(f"{label}: {25 * quarter} percent done, {done:,} of {total:,} {unit}", file=sys.stderr)

    return tell


def print_result(result: LabResult) -> None:
    """Print a result as the mission's table: a design a row, a figure a column, medians of the replications."""
    table = _wide(result)
    console = _console(_width(table))
    tables = [_table(table)] if _width(table) <= console.width else [_table(table) for table in _narrow(result)]
    title = f"{jobs_of_steps(result.scenario)} in each design"
    console.print(*_apart(title, *tables, summary(result)), sep="\n")


def print_theory(scenario: Scenario, expected: Mapping[str, Expectation]) -> None:
    """Print every figure's exact expectation: a figure a row, a design a column."""
    rows = [("", *(DESIGNS[name].title for name in expected))]
    for figure in FIGURE_NAMES:
        column = Column(figure, figure, writer_of(figure))
        rows.append((figure, *(_moment(column, each) for each in expected.values())))
    table = list(zip(*rows, strict=True))
    title = f"{jobs_of_steps(scenario)}: mean ± standard deviation of one replication"
    _console(_width(table)).print(*_apart(_printable(title), _table(table)), sep="\n")


def print_kept(runs: Sequence[Path]) -> None:
    """Print the runs that are kept, and how to go on with them or be rid of them."""
    if not runs:
        print("no run is kept: whatever was run under the state directory has ended well")
        return
    for run in runs:
        print(printable(str(run)))
    print("\n`durtui resume` with one of these directories goes on with it; remove the directory to be rid of it")


def print_sweep(axis: Axis, points: Sequence[Point]) -> None:
    """Print a table of each figure that is not zero throughout: a value a row, what was sampled and what is expected.

    Where a terminal is too narrow for deviations, the expected mean stands alone.
    """
    names = list(points[0].figures)
    shown = [
        figure for figure in FIGURE_NAMES if any(getattr(p.figures[name], figure) for p in points for name in names)
    ]
    for figure in shown:
        column = Column(figure, figure, writer_of(figure))
        full = _along(axis, points, column, _moment)
        console = _console(_width(full))
        fits = _width(full) <= console.width
        table = full if fits else _along(axis, points, column, lambda column, expected: column.mean(expected))
        console.print(*_apart(figure, _table(table), ""), sep="\n")


def _along(
    axis: Axis, points: Sequence[Point], column: Column, expectation: Callable[[Column, Expectation], str]
) -> list[tuple[str, ...]]:
    """The columns of one figure along an axis."""
    names = list(points[0].figures)
    rows = [(axis.name, *(text for name in names for text in (DESIGNS[name].short, "expected")))]
    for point in points:
        pairs = [(column.measured(point.figures[n]), expectation(column, point.expected[n])) for n in names]
        rows.append((str(point.value), *(text for pair in pairs for text in pair)))
    return list(zip(*rows, strict=True))


def _moment(column: Column, expected: Expectation) -> str:
    return _printable(f"{column.mean(expected)} {column.deviation(expected)}".rstrip())


def _console(needed: int) -> Console:
    """Standard output; a pipe has no width of its own and is given what is needed."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=max(PIPE_WIDTH, needed))


def _apart(*parts: str | Table) -> Iterator[str | Table]:
    for part in parts[:-1]:
        yield from (part, "")
    yield parts[-1]


def _wide(result: LabResult) -> list[tuple[str, ...]]:
    """The columns of one table: a design a row, with what theory expects of one replication below it."""
    shown, here = columns(result), measured_here(result)
    blank = [""] * len(here)
    rows = [("", *(column.heading for column in shown), *(_printable(heading) for heading, _ in here))]
    for index, design in enumerate(result.designs):
        measured = [column.measured(design.median) for column in shown]
        rows.append((design.design.title, *measured, *(cells[index] for _, cells in here)))
        if design.expected is not None:
            rows.append(("  expected", *(c.mean(design.expected) for c in shown), *blank))
            rows.append(("", *(_printable(c.deviation(design.expected)) for c in shown), *blank))
    return list(zip(*rows, strict=True))


def _narrow(result: LabResult) -> Iterator[list[tuple[str, ...]]]:
    """The columns of a table a design: a figure a row."""
    shown, here = columns(result), measured_here(result)
    for index, design in enumerate(result.designs):
        rows = [(design.design.title, "measured", "" if design.expected is None else "expected of one")]
        for c in shown:
            expected = "" if design.expected is None else _moment(c, design.expected)
            rows.append((c.heading, c.measured(design.median), expected))
        rows += [(_printable(heading), cells[index], "") for heading, cells in here]
        yield list(zip(*rows, strict=True))


def _table(columns_: list[tuple[str, ...]]) -> Table:
    """A table of these columns, each its heading and its cells: the first to the left, the others to the right."""
    table = Table(
        box=box.SIMPLE_HEAD if prints_unicode() else box.ASCII,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        show_edge=False,
    )
    for index, (heading, *cells) in enumerate(columns_):
        table.add_column(heading, justify="right" if index else "left", width=_narrowest(heading, *cells))
    for row in zip(*[cells for _, *cells in columns_], strict=True):
        table.add_row(*row)
    return table


def _narrowest(heading: str, *cells: str) -> int:
    """How many characters a column takes at the least: headings wrap between words, cells do not."""
    return max(map(len, [*cells, *heading.split()]))


def _width(columns_: list[tuple[str, ...]]) -> int:
    return sum(_narrowest(*column) + 2 for column in columns_)


def _printable(text: str) -> str:
    return text if prints_unicode() else text.replace("µ", "u").replace("±", "+-")


def complain(message: str) -> None:
    """One line on standard error, whatever is in it: text from a file must not steer the terminal."""
    print(f"durtui: {printable(message)}", file=sys.stderr)
