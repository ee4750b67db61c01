"""Settings: where a scenario's values come from. A flag goes before the environment, that before a file, that before
a preset, that before the default."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from platformdirs import user_config_path

from durcore.errors import InvalidScenario, Mistake, shown
from durcore.presets import find_preset
from durcore.scenario import PARAMETERS, Scenario

FILE_NAME = "durtui.toml"
SIZE_MAX = 1 << 20  # what is longer is no settings file
ENVIRONMENT_PREFIX = "DURTUI_"


def load_scenario(flags: Mapping[str, str | None], config: Path | None, preset: str | None = None) -> Scenario:
    """The scenario that flags, environment, file and the preset of this name give together.

    `flags` maps a parameter's name to what was typed, None where nothing was. `config` names a file; without it the
    first of ./durtui.toml and the user's own is read. Raises Mistake, naming field, value and rule.
    """
    values = _given(flags, config)
    return Scenario.from_values(values if preset is None else find_preset(preset).under(values))


def asks_for_a_scenario(flags: Mapping[str, str | None], config: Path | None, preset: str | None = None) -> bool:
    """Whether any of these sources says anything about the scenario. Raises Mistake."""
    return bool(_given(flags, config)) or config is not None or preset is not None


def _given(flags: Mapping[str, str | None], config: Path | None) -> dict[str, Any]:
    values = _from_file(config) | _from_environment(os.environ)
    return values | {name: PARAMETERS[name].parse(text) for name, text in flags.items() if text is not None}


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    values = {}
    for variable, text in environment.items():
        if not variable.startswith(ENVIRONMENT_PREFIX):
            continue
        name = variable.removeprefix(ENVIRONMENT_PREFIX).lower()
        if name not in PARAMETERS:
            raise Mistake(f"{shown(variable)} is no setting of durtui's; there are {', '.join(PARAMETERS)}")
        with _named(variable):
            values[name] = PARAMETERS[name].parse(text)
            PARAMETERS[name].check(values[name])
    return values


def _from_file(config: Path | None) -> dict[str, Any]:
    path = config or _first_file()
    if path is None:
        return {}
    try:
        with path.open("rb") as file:
            values = tomllib.loads(file.read(SIZE_MAX).decode("utf-8"))
    except OSError as error:
        raise Mistake(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # not UTF-8, not TOML, or beyond what Python reads
        raise Mistake(f"{path} is not TOML: {shown(error)}") from error
    for name, value in values.items():
        if name not in PARAMETERS:
            raise Mistake(f"{path}: unknown key {shown(name)}; there are {', '.join(PARAMETERS)}")
        with _named(str(path)):
            PARAMETERS[name].check(value)
    return values


def _first_file() -> Path | None:
    for path in (Path(FILE_NAME), user_config_path("durtui") / FILE_NAME):
        if path.exists():
            return path
    return None


class _named:  # noqa: N801  # a context manager reads as a verb
    """Say in an InvalidScenario where its value came from."""

    def __init__(self, source: str) -> None:
        self._source = source

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, InvalidScenario):
            raise InvalidScenario(f"{self._source}: {error}") from None
