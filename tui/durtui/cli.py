"""The `durtui` command: flags to scenarios, errors to exit codes. The app is imported only when it opens."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

from cyclopts import App, CycloptsError, Parameter, UnusedCliTokensError

from durcore.designs import Design
from durcore.errors import DurtuiError, Mistake, advised, printable
from durcore.interventions import Intervention
from durcore.lab import DEFAULT_SEEDS, open_run, resume_lab
from durcore.rundir import RunDirectory, kept_runs
from durcore.scenario import PARAMETERS, SEED, Scenario
from durcore.snapshot import SIZE_MAX, read_snapshot, theory_json, verify
from durcore.sweep import parse_axis, sweep, sweep_csv, sweep_json
from durcore.theory import expect
from durtui import completion, doctor, manual, serve
from durtui.console import complain, print_kept, print_sweep, print_theory, progress_bar
from durtui.flags import (
    REPLICATIONS,
    Config,
    Designs,
    Fresh,
    Interventions,
    Output,
    Plain,
    Replications,
    ScenarioWords,
    Seed,
    check_outputs,
    is_scenario_given,
    read_designs,
    read_scenario,
    read_whole,
    write_outputs,
)
from durtui.headless import run_and_tell, run_seeds
from durtui.terminal import prints_unicode, why_headless

Json = Annotated[Output, Parameter(help="write the snapshot to this file (- for standard output)")]
Markdown = Annotated[Output, Parameter(help="write a Markdown table to this file")]
Csv = Annotated[Output, Parameter(help="write a CSV table to this file")]

app = App(
    name="durtui",
    help="Run three designs of durable agent jobs side by side, on real SQLite, under the same faults.",
    version=lambda: f"durtui {version('durtui')}",
    help_format="plaintext",
    print_error=False,
    exit_on_error=False,
    suppress_keyboard_interrupt=False,
)


@app.default
def open_app(
    *,
    scenario: ScenarioWords = None,
    seed: Seed = None,
    design: Designs = None,
    config: Config = None,
    resume: Annotated[
        Path | None, Parameter(help="go on with the run in this directory", group="Run", show_default=False)
    ] = None,
    fresh: Fresh = False,
) -> None:
    """Open the app on a scenario, or on a run to go on with. Without a terminal it does what `durtui run` does."""
    reason = why_headless()
    if resume is not None:
        if (scenario, design, config) != (None, None, None):
            raise Mistake(f"the run in resume(={resume}) has a scenario and designs; leave the flags for them out")
        if reason is not None:
            complain(f"{reason}: resuming without the app")
            resume_run(resume)
            return
        sys.exit(_open_app(read_whole(SEED, seed) if seed else None, resumed=open_run(resume, complain), fresh=fresh))
    chosen = read_scenario(scenario, config)
    first = read_whole(SEED, seed)
    designs = read_designs(design)
    if reason is not None:
        complain(f"{reason}: running without the app")
        run_seeds(chosen, first, len(DEFAULT_SEEDS), designs, None, {})
        return
    sys.exit(_open_app(first, chosen if is_scenario_given(scenario, config) else None, designs, fresh=fresh))


@app.command
def run(
    *,
    scenario: ScenarioWords = None,
    seed: Seed = None,
    replications: Replications = None,
    design: Designs = None,
    intervention: Interventions = None,
    config: Config = None,
    run_dir: Annotated[
        Path | None, Parameter(help="keep the run in this new or empty directory", group="Run", show_default=False)
    ] = None,
    json: Json = None,
    markdown: Markdown = None,
    csv: Csv = None,
    plain: Plain = False,
) -> None:
    """Run the lab without the app and print its table."""
    chosen = read_scenario(scenario, config)
    files = {"json": json, "markdown": markdown, "csv": csv, **({"plain": "-"} if plain else {})}
    check_outputs(files)
    count = read_whole(REPLICATIONS, replications)
    made = [Intervention.parse(word) for word in intervention or ()]
    run_seeds(chosen, read_whole(SEED, seed), count, read_designs(design), run_dir, files, made)


@app.command(name="resume")
def resume_run(
    run_dir: Annotated[
        Path | None, Parameter(help="the directory of the run (none: list the runs that are kept)", show_default=False)
    ] = None,
    /,
    *,
    rerun_damaged: Annotated[
        bool,
        Parameter(
            help="run a lane of which a file was destroyed again from its seed",
            group="Run",
            negative=(),
            show_default=False,
        ),
    ] = False,
    json: Json = None,
    markdown: Markdown = None,
    csv: Csv = None,
    plain: Plain = False,
) -> None:
    """Go on with a run that was interrupted, failed or killed, and end as `durtui run` does."""
    files = {"json": json, "markdown": markdown, "csv": csv, **({"plain": "-"} if plain else {})}
    check_outputs(files)
    if run_dir is None:
        print_kept(kept_runs())
        return
    run = partial(resume_lab, run_dir, rerun_damaged=rerun_damaged, on_note=complain)
    run_and_tell(run, "resuming", files, run_dir)


@app.command
def theory(
    *,
    scenario: ScenarioWords = None,
    design: Designs = None,
    config: Config = None,
    json: Annotated[Output, Parameter(help="write the expectations to this file (- for standard output)")] = None,
) -> None:
    """Print the exact expectation and deviation of every figure, for one replication."""
    chosen = read_scenario(scenario, config)
    check_outputs({"json": json})
    expected = expect(chosen, read_designs(design))
    if not write_outputs({"json": json}, {"json": lambda: theory_json(chosen, expected).decode()}):
        print_theory(chosen, expected)


@app.command(name="sweep")
def sweep_parameter(
    axis: Annotated[str, Parameter(help="FIELD=LOW:HIGH:STEP or FIELD=A,B,C: the parameter to move, and its values")],
    /,
    *,
    scenario: ScenarioWords = None,
    seed: Seed = None,
    design: Designs = None,
    config: Config = None,
    real: Annotated[
        bool, Parameter(help="sample by the real lab, not by the model", group="Run", negative=(), show_default=False)
    ] = False,
    json: Annotated[Output, Parameter(help="write every figure of every point to this file")] = None,
    csv: Annotated[Output, Parameter(help="write a row a point and design to this file")] = None,
) -> None:
    """Every figure of every design along one parameter: expected, and sampled by one replication."""
    along, first, names = parse_axis(axis), read_whole(SEED, seed), read_designs(design)
    if scenario is not None and getattr(scenario, along.name) is not None:
        raise Mistake(f"{along.name} is swept, so {PARAMETERS[along.name].flag} would do nothing; leave it out")
    chosen = read_scenario(scenario, config)
    files = {"json": json, "csv": csv}
    check_outputs(files)
    with progress_bar("sweeping", "points") as on_progress:
        points = sweep(chosen, along, seed=first, designs=names, real=real, on_progress=on_progress)
    texts = {
        "json": lambda: sweep_json(chosen, along, points, first, names).decode(),
        "csv": lambda: sweep_csv(along, points, first),
    }
    if not write_outputs(files, texts):
        print_sweep(along, points)


@app.command(name="verify")
def verify_file(
    file: Annotated[
        str,
        Parameter(help="a snapshot that `durtui run --json` wrote (- for standard input)", allow_leading_hyphen=True),
    ],
    /,
) -> None:
    """Run a snapshot's scenario again and compare every figure."""
    data = sys.stdin.buffer.read(SIZE_MAX + 1) if file == "-" else read_snapshot(Path(file))
    with progress_bar("verifying") as on_progress:
        result = verify(data, on_progress)
    lanes = len(result.seeds) * len(result)
    print(f"{printable(file)}: every figure of {lanes} lanes is as the snapshot says")


for tool in (doctor, completion, manual, serve):
    tool.register(app)


def _open_app(
    seed: int | None,
    scenario: Scenario | None = None,
    designs: Sequence[Design | str] = (),
    resumed: RunDirectory | None = None,
    fresh: bool = False,
) -> int:
    """Open the app, on a scenario, the one that it kept, or a run to go on with; return its exit code."""
    if not prints_unicode():
        raise Mistake(
            "this locale cannot print the characters that the app draws; set LC_ALL=C.UTF-8, or use `durtui run`"
        )
    if resumed is not None:
        scenario, designs = resumed.scenario, resumed.designs
        if seed not in (None, *resumed.seeds):
            raise Mistake(f"seed(={seed}) must be one of this run's: {', '.join(map(str, resumed.seeds))}")
        seed = resumed.seeds[0] if seed is None else seed
        if len(resumed.seeds) > 1:
            complain(f"the app goes on with seed {seed}; `durtui resume` with all {len(resumed.seeds)}")
    assert seed is not None
    from durtui.app import DurtuiApp  # the app costs a quarter of a second that `durtui run` need not pay

    return DurtuiApp.open(scenario, seed=seed, designs=designs, resumed=resumed, fresh=fresh)


def main(words: list[str]) -> int:
    """Run the command; return its exit code."""
    os.umask(0o077)  # what a run or an export holds is its owner's to show
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup: who started it wants it to survive
            signal.signal(number, signal.default_int_handler)  # ends the lanes as Ctrl-C does
    try:
        app(words)
        sys.stdout.flush()
    except UnusedCliTokensError as error:
        complain(f"{(error.unused_tokens or words)[0]} is no command of durtui; see durtui --help")
        return Mistake.exit_code
    except CycloptsError as error:
        complain(" ".join(str(error).split()))
        return Mistake.exit_code
    except DurtuiError as error:
        _explain(str(error), error)
        return error.exit_code
    except KeyboardInterrupt as error:
        _explain("interrupted", error)
        return 130
    except OSError as error:
        _abandon_stdout()
        if not isinstance(error, BrokenPipeError):
            _explain(f"{error.filename or 'standard output'} cannot be written: {advised(error)}", error)
        return 1
    return 0


def _abandon_stdout() -> None:
    """Let the interpreter's last flush go nowhere: what it would say has been said."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _explain(message: str, error: BaseException) -> None:
    complain("; ".join([message, *getattr(error, "__notes__", [])]))
