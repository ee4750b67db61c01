"""A run without the app: progress while it goes on, and then what was asked for, a table where nothing was."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from durcore.errors import Mistake
from durcore.interventions import Intervention
from durcore.lab import LabResult, run_lab
from durcore.report import as_csv, as_markdown
from durcore.scenario import SEED, Scenario
from durcore.snapshot import to_json
from durtui.console import print_result, progress_bar
from durtui.flags import write_outputs
from durtui.plain import as_plain


def run_seeds(
    scenario: Scenario,
    seed: int,
    replications: int,
    designs: tuple[str, ...],
    run_dir: Path | None,
    files: Mapping[str, str | None],
    made: Sequence[Intervention] = (),
) -> None:
    """Run the lab with so many seeds from one on, and tell the result. Raises Mistake beyond the last seed."""
    last = seed + replications - 1
    if last > SEED.high:
        raise Mistake(f"seed(={seed}) with replications(={replications}) must not pass {SEED.high:,}")
    seeds = range(seed, seed + replications)
    run = partial(run_lab, scenario, seeds, designs, interventions=made, run_dir=run_dir)
    run_and_tell(run, "running", files, run_dir or Path())


def run_and_tell(run: Callable[..., LabResult], label: str, files: Mapping[str, str | None], run_dir: Path) -> None:
    """Run, and tell the result before the run is removed: one that found no room can then be told again."""
    left: list[BrokenPipeError] = []
    with ExitStack() as bar:
        on_progress = bar.enter_context(progress_bar(label, plain="plain" in files))

        def tell(result: LabResult) -> None:
            bar.close()
            try:
                _tell(result, files, run_dir)
                sys.stdout.flush()
            except BrokenPipeError as error:  # whoever read it has had enough: that is no reason to keep the run
                left.append(error)

        run(on_progress=on_progress, on_result=tell)
    if left:
        raise left[0]


def _tell(result: LabResult, files: Mapping[str, str | None], run_dir: Path) -> None:
    """Write a result to the files that were asked for, or print its table."""
    texts = {
        "json": lambda: to_json(result, run_dir).decode(),
        "markdown": lambda: as_markdown(result),
        "csv": lambda: as_csv(result),
        "plain": lambda: as_plain(result),
    }
    if not write_outputs(files, texts):
        print_result(result)
