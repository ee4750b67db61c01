"""Flags: the words of a command line, made from the declarations of the core, and what they give."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import mkstemp
from typing import Annotated, Any

from cyclopts import Parameter

from durcore.designs import DEFAULT_DESIGNS, DESIGNS, find_designs
from durcore.errors import DurtuiError, Mistake, advised
from durcore.interventions import KINDS
from durcore.lab import DEFAULT_SEEDS
from durcore.presets import PRESETS
from durcore.scenario import PARAMETERS, SEED, Scenario
from durcore.scenario import Parameter as Field
from durtui.settings import asks_for_a_scenario, load_scenario

REPLICATIONS = Field(
    name="replications", kind=int, default=len(DEFAULT_SEEDS), meaning="seeds to run", low=1, high=1000
)
METAVARS = {int: "N", float: "X", str: "NAME"}


def flag_of(field: Field, group: str) -> Parameter:
    """A field as a flag. What was typed comes through as text, for Field.parse to give every source one voice."""
    default = "" if field.default is None else f" [default: {field.default}]"
    choices = f" ({', '.join(field.choices)})" if field.choices else ""
    return Parameter(
        help=f"{field.meaning}{choices}{default}",
        group=group,
        metavar=METAVARS[field.kind],
        completer=(lambda _context: field.choices) if field.choices else None,
        allow_leading_hyphen=True,
        show_default=False,
    )


PRESET = Parameter(
    help=f"a scenario by name ({', '.join(PRESETS)}); flags, environment and settings file go before it",
    group="Scenario",
    metavar="NAME",
    allow_leading_hyphen=True,
    show_default=False,
)

# The preset stands among the scenario's flags: every command that takes a scenario takes it.
# The module's name is given since Cyclopts takes a class without one for a plain value.
ScenarioFlags: Any = dataclasses.make_dataclass(
    "ScenarioFlags",
    [
        ("preset", Annotated[str | None, PRESET], None),
        *((name, Annotated[str | None, flag_of(field, "Scenario")], None) for name, field in PARAMETERS.items()),
    ],
    namespace={"__module__": __name__},
)
ScenarioWords = Annotated[ScenarioFlags | None, Parameter(name="*")]
Seed = Annotated[str | None, flag_of(SEED, "Run")]
Replications = Annotated[str | None, flag_of(REPLICATIONS, "Run")]
Designs = Annotated[
    list[str] | None,
    Parameter(
        name="--design",
        metavar="NAME",
        completer=lambda _context: tuple(DESIGNS),
        help=f"a design to run, repeatable ({', '.join(DESIGNS)}) [default: all three]",
        group="Run",
        negative=(),
        show_default=False,
    ),
]
Interventions = Annotated[
    list[str] | None,
    Parameter(
        name="--intervention",
        metavar="DESIGN:KIND:FIRST:COUNT",
        help=f"what is done to a lane from its FIRST attempt on, repeatable (KIND: {', '.join(KINDS)})",
        group="Run",
        negative=(),
        show_default=False,
    ),
]
Config = Annotated[
    Path | None, Parameter(help="a settings file to read in place of durtui.toml", group="Run", show_default=False)
]
Fresh = Annotated[
    bool,
    Parameter(
        help="open the app as for the first time: what it kept of its last run is neither read nor written",
        group="Run",
        negative=(),
        show_default=False,
    ),
]
Plain = Annotated[
    bool,
    Parameter(
        help="print sentences instead of a table, for a screen reader: no colours, no boxes",
        group="Output",
        negative=(),
        show_default=False,
    ),
]
Output = Annotated[str | None, Parameter(metavar="FILE", group="Output", allow_leading_hyphen=True, show_default=False)]


def read_scenario(flags: Any, config: Path | None) -> Scenario:
    """The scenario that flags, environment, file and preset give. Raises Mistake."""
    words = {} if flags is None else dataclasses.asdict(flags)
    return load_scenario(words, config, words.pop("preset", None))


def is_scenario_given(flags: Any, config: Path | None) -> bool:
    """Whether flags, environment, file or preset ask for a scenario, be it the default one. Raises Mistake."""
    words = {} if flags is None else dataclasses.asdict(flags)
    return asks_for_a_scenario(words, config, words.pop("preset", None))


def read_whole(field: Field, text: str | None) -> int:
    """The whole number that was typed, or the field's default. Raises Mistake where it is out of range."""
    value = field.default if text is None else field.parse(text)
    field.check(value)
    assert isinstance(value, int)
    return value


def read_designs(names: list[str] | None) -> tuple[str, ...]:
    """The designs that were asked for, or the default three. Raises Mistake for an unknown one."""
    return tuple(design.name for design in find_designs(names or DEFAULT_DESIGNS))


def check_outputs(files: Mapping[str, str | None]) -> None:
    """Refuse a file that cannot be written before the run, not after it."""
    if sum(file == "-" for file in files.values()) > 1:
        raise Mistake(f"only one of {', '.join(f'--{kind}' for kind in files)} may be written to standard output")
    named = [Path(file).absolute() for file in files.values() if file not in (None, "-")]
    if len(set(named)) < len(named):
        raise Mistake(f"{', '.join(f'--{kind}' for kind in files)} must be files of their own")
    for kind, file in files.items():
        if file in (None, "-"):
            continue
        path = Path(str(file))
        if path.is_dir() or not path.parent.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
            raise Mistake(f"{kind}(={file}) must be a file that can be written")


def _write_whole(path: Path, text: str) -> None:
    """Write a file, readable by its owner only, whole or not at all: what stood there stays where there is no room.

    A pipe or a device, and a file in a folder that takes no other, is written as it is.
    """
    if (path.exists() and not path.is_file()) or not os.access(path.parent, os.W_OK):
        path.write_text(text, encoding="utf-8")
        return
    fd, draft = mkstemp(prefix=f".{path.name[:100]}-", dir=path.parent)
    try:
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            file.write(text)
        Path(draft).replace(path)
    except OSError:
        Path(draft).unlink(missing_ok=True)
        raise


def write_outputs(files: Mapping[str, str | None], texts: Mapping[str, Callable[[], str]]) -> bool:
    """Write each file that was asked for, `-` to standard output; tell whether anything went there."""
    for kind, file in files.items():
        if file not in (None, "-"):
            try:
                _write_whole(Path(str(file)).resolve(), texts[kind]())
            except OSError as error:
                raise DurtuiError(f"{kind}(={file}) cannot be written: {advised(error)}") from error
    for kind, file in files.items():
        if file == "-":  # last, since whoever reads it may leave early
            sys.stdout.write(texts[kind]())
    return "-" in files.values()
