"""Help: what every figure, sign and key means, on a screen of its own that scrolls where it does not fit."""

from __future__ import annotations

from typing import ClassVar

from rich.table import Table
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static

from durtui.widgets.steady import SteadyScreen

FIGURES = {
    "finished": "jobs with every step done",
    "lost": "jobs that ran out of deliveries without a checkpoint to show; nobody can bring them back",
    "dead-lettered": "jobs that ran out of deliveries and are parked with their checkpoints",
    "duplicates": "jobs whose customer was emailed twice or more, lost ones too",
    "missing": "finished jobs whose customer was never emailed",
    "unproductive": "the price of all calls that no finished job needed",
    "wasted": "the milder figure: it takes the length of a lost job for useful",
    "made": "model calls that were billed, failed ones too",
    "resume alert": "of the last 1,000 attempts, more deliveries ended in a redelivery than theory allows for",
    "killed": "worker processes that died by SIGKILL, where crashes are real",
    "write": "a checkpoint's write: median, 99th percentile",
    "log": "the store's write-ahead log; ‼ where it grows beyond 16 MiB, as behind a reader that does not let go",
    "expect": "the exact mean ± standard deviation of one run; ‼ where one run in 10,000 would be as far off",
}
SIGNS = {
    "▀ dark to bright": "a job of the wall by the steps it has behind it; green when it has finished",
    "2 · ?": "its customer was emailed twice or more; never",
    "× · †": "it was lost; it is parked",
}
KEYS = {
    "arrows, tab": "choose a slider and move it, with shift by ten steps; or type a number and enter",
    "space · . · r": "pause; one call in each lane; the same run from its beginning",
    "[ · ]": "slower; faster",
    "k · D · o": "in every lane: kill the worker; a deploy cuts 60 deliveries; an outage fails 500 attempts",
    "x · c": "crashes that really kill the worker; go on with a lane that has failed",
    "p · l · v · s": "presenter mode; light or dark; curves; sliders",
    "w · e": "sweep along a parameter; export as JSON, Markdown, CSV and SVG",
    "ctrl+p · q": "every command; quit",
}


def page() -> Table:
    """All of it as one table: what stands on the screen, and what it means."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="bold")
    table.add_column(ratio=1)
    for index, part in enumerate((FIGURES, SIGNS, KEYS)):
        if index:
            table.add_row("", "")
        for name, meaning in part.items():
            table.add_row(name, meaning)
    return table


class HelpScreen(SteadyScreen):
    """The help, over the screen that it explains."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q", "app.pop_screen", "Back"),
    ]
    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen > VerticalScroll {
        width: 100%;
        max-width: 110;
        height: auto;
        max-height: 100%;
        border: round $primary;
        padding: 0 1;
    }
    """

    def compose(self) -> ComposeResult:
        """The page in a box."""
        with VerticalScroll() as box:
            box.border_title = "What it all means"
            box.border_subtitle = "escape"
            yield Static(page())
