"""The `durtui` command: flags to scenarios, errors to exit codes. The app is imported only when it opens."""

from __future__ import annotations

import dataclasses
import os
import signal
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, NoReturn

from cyclopts import App, CycloptsError, Parameter, UnusedCliTokensError

from durcore.designs import DEFAULT_DESIGNS, DESIGNS, find_designs
from durcore.errors import DurtuiError, Mistake
from durcore.lab import DEFAULT_SEEDS, LabResult, run_lab
from durcore.report import as_csv, as_markdown
from durcore.scenario import PARAMETERS, SEED, Scenario
from durcore.scenario import Parameter as Field
from durcore.snapshot import to_json, verify
from durtui.console import complain, print_result, progress_bar
from durtui.settings import load_scenario
from durtui.terminal import prints_unicode, why_headless

REPLICATIONS = Field(
    name="replications", kind=int, default=len(DEFAULT_SEEDS), meaning="seeds to run", low=1, high=1000
)

app = App(
    name="durtui",
    help="Run three designs of durable agent jobs side by side, on real SQLite, under the same faults.",
    version=lambda: f"durtui {version('durtui')}",
    help_format="plaintext",
    print_error=False,
    exit_on_error=False,
)


METAVARS = {int: "N", float: "X", str: "NAME"}


def _words(field: Field, group: str) -> Parameter:
    """A field as a flag. What was typed comes through as text, for Field.parse to give every source one voice."""
    default = "" if field.default is None else f" [default: {field.default}]"
    choices = f" ({', '.join(field.choices)})" if field.choices else ""
    return Parameter(
        help=f"{field.meaning}{choices}{default}",
        group=group,
        metavar=METAVARS[field.kind],
        allow_leading_hyphen=True,
        show_default=False,
    )


# The module's name is given since Cyclopts takes a class without one for a plain value.
ScenarioFlags: Any = dataclasses.make_dataclass(
    "ScenarioFlags",
    [(name, Annotated[str | None, _words(field, "Scenario")], None) for name, field in PARAMETERS.items()],
    namespace={"__module__": __name__},
)
ScenarioWords = Annotated[ScenarioFlags | None, Parameter(name="*")]
Seed = Annotated[str | None, _words(SEED, "Run")]
Replications = Annotated[str | None, _words(REPLICATIONS, "Run")]
Designs = Annotated[
    list[str] | None,
    Parameter(
        name="--design",
        metavar="NAME",
        help=f"a design to run, repeatable ({', '.join(DESIGNS)}) [default: all three]",
        group="Run",
        negative=(),
        show_default=False,
    ),
]
Config = Annotated[
    Path | None, Parameter(help="a settings file to read in place of durtui.toml", group="Run", show_default=False)
]
Output = Annotated[str | None, Parameter(metavar="FILE", group="Output", allow_leading_hyphen=True, show_default=False)]


@app.default
def open_app(
    *,
    scenario: ScenarioWords = None,
    seed: Seed = None,
    design: Designs = None,
    config: Config = None,
) -> None:
    """Open the app on a scenario. Without a terminal it does what `durtui run` does."""
    chosen = _scenario(scenario, config)
    first = _whole(SEED, seed)
    designs = _designs(design)
    reason = why_headless()
    if reason is not None:
        complain(f"{reason}: running without the app")
        print_result(_run(chosen, first, len(DEFAULT_SEEDS), designs, None))
        return
    if not prints_unicode():
        raise Mistake(
            "this locale cannot print the characters that the app draws; set LC_ALL=C.UTF-8, or use `durtui run`"
        )
    from durtui.app import DurtuiApp  # the app costs a quarter of a second that `durtui run` need not pay

    sys.exit(DurtuiApp.open(chosen, seed=first, designs=designs))


@app.command
def run(
    *,
    scenario: ScenarioWords = None,
    seed: Seed = None,
    replications: Replications = None,
    design: Designs = None,
    config: Config = None,
    run_dir: Annotated[
        Path | None, Parameter(help="keep the run in this new or empty directory", group="Run", show_default=False)
    ] = None,
    json: Annotated[Output, Parameter(help="write the snapshot to this file (- for standard output)")] = None,
    markdown: Annotated[Output, Parameter(help="write a Markdown table to this file")] = None,
    csv: Annotated[Output, Parameter(help="write a CSV table to this file")] = None,
) -> None:
    """Run the lab without the app and print its table."""
    chosen = _scenario(scenario, config)
    files = {"json": json, "markdown": markdown, "csv": csv}
    _check_outputs(files)
    result = _run(chosen, _whole(SEED, seed), _whole(REPLICATIONS, replications), _designs(design), run_dir)
    texts = {
        "json": lambda: to_json(result, run_dir or Path.cwd()).decode(),
        "markdown": lambda: as_markdown(result),
        "csv": lambda: as_csv(result),
    }
    for kind, file in files.items():
        if file == "-":
            sys.stdout.write(texts[kind]())
        elif file is not None:
            Path(file).write_text(texts[kind](), encoding="utf-8")
    if "-" not in files.values():
        print_result(result)


@app.command(name="verify")
def verify_file(file: Annotated[Path, Parameter(help="a snapshot that `durtui run --json` wrote")]) -> None:
    """Run a snapshot's scenario again and compare every figure."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise Mistake(f"{file} cannot be read: {error.strerror}") from error
    with progress_bar("verifying") as on_progress:
        result = verify(data, on_progress)
    lanes = len(result.seeds) * len(result)
    print(f"{file}: every figure of {lanes} lanes is as the snapshot says")


def _scenario(flags: Any, config: Path | None) -> Scenario:
    return load_scenario({} if flags is None else dataclasses.asdict(flags), config)


def _whole(field: Field, text: str | None) -> int:
    value = field.default if text is None else field.parse(text)
    field.check(value)
    assert isinstance(value, int)
    return value


def _designs(names: list[str] | None) -> tuple[str, ...]:
    return tuple(design.name for design in find_designs(names or DEFAULT_DESIGNS))


def _run(scenario: Scenario, seed: int, replications: int, designs: tuple[str, ...], run_dir: Path | None) -> LabResult:
    with progress_bar("running") as on_progress:
        return run_lab(scenario, range(seed, seed + replications), designs, run_dir=run_dir, on_progress=on_progress)


def _check_outputs(files: dict[str, str | None]) -> None:
    """Refuse a file that cannot be written before the run, not after it."""
    if sum(file == "-" for file in files.values()) > 1:
        raise Mistake("only one of --json, --markdown and --csv may be written to standard output")
    for kind, file in files.items():
        if file in (None, "-"):
            continue
        path = Path(str(file))
        if path.is_dir() or not path.parent.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
            raise Mistake(f"{kind}(={file}) must be a file that can be written")


def main() -> NoReturn:
    """Run the command; end with its exit code."""
    sys.exit(_main(sys.argv[1:]))


def _main(words: list[str]) -> int:
    for signal_ in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(signal_, signal.default_int_handler)  # ends the lanes as Ctrl-C does
    try:
        app(words)
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
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody reads; the last flush must not fail
        return 1
    return 0


def _explain(message: str, error: BaseException) -> None:
    complain("; ".join([message, *getattr(error, "__notes__", [])]))


if __name__ == "__main__":
    main()
