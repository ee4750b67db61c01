"""What the app keeps from one run to the next, and the file that holds it. Nothing that changes a figure by itself:

a scenario that is asked for in any way goes before the kept one, and no command but the app reads this file.
"""

from __future__ import annotations

import math
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkstemp
from typing import Any, Literal

import msgspec
from platformdirs import user_state_path

from durcore.errors import InvalidScenario, advised
from durcore.scenario import PARAMETERS, Scenario

SIZE_MAX = 1 << 16  # what is longer is none of ours


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The last scenario and how the app looked. Holds no seed and no design: those are of a run, not of a person.

    `theme` None: the default one; `calls_per_s` None: unlimited. `rail_hidden` is of terminals with room for it.
    """

    scenario: Scenario
    theme: str | None
    calls_per_s: float | None
    rail_hidden: bool


class _File(msgspec.Struct, kw_only=True):
    schema: Literal["durtui.kept/1"]
    scenario: dict[str, Any]
    theme: str | None
    calls_per_s: float | None
    rail_hidden: bool


def kept_path() -> Path:
    """Where it is kept: beside the runs, since it is the app's to write and not a person's to edit."""
    return user_state_path("durtui") / "app.json"


def read_kept() -> tuple[Kept | None, str]:
    """What was kept, None where nothing was; and what a person should be told about it, mostly nothing.

    A file that is not one of ours is set aside under another name, so that the next run keeps again.
    """
    path = kept_path()
    try:
        if not path.is_file():  # also a pipe, on which a reader would wait
            return None, ""
        with path.open("rb") as file:
            return _parse(file.read(SIZE_MAX + 1)), ""
    except OSError as error:
        return None, f"{path} cannot be read, so nothing of the last run is kept: {advised(error)}"
    except (ValueError, RecursionError):  # msgspec's errors and an InvalidScenario are ValueErrors
        broken = path.with_name(path.name + ".broken")
        try:
            path.replace(broken)
        except OSError as error:
            return None, f"{path} is broken and cannot be set aside: {advised(error)}"
        return None, f"{path} was broken and is now {broken.name}; the app opens as for the first time"


def write_kept(kept: Kept) -> str:
    """Keep this, whole or not at all, for its owner alone; return what a person should be told where that failed."""
    path = kept_path()
    values = {name: getattr(kept.scenario, name) for name in PARAMETERS}  # an email step that nobody set stays so
    data = msgspec.json.encode(
        _File(
            schema="durtui.kept/1",
            scenario=values,
            theme=kept.theme,
            calls_per_s=kept.calls_per_s,
            rail_hidden=kept.rail_hidden,
        )
    )
    draft = ""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd, draft = mkstemp(prefix=f".{path.name}-", dir=path.parent)
        with os.fdopen(fd, "wb") as file:
            file.write(data)
        Path(draft).replace(path)
    except OSError as error:
        with suppress(OSError):
            Path(draft).unlink()
        return f"{path} cannot be written, so the next run opens as this one did: {advised(error)}"
    return ""


def _parse(data: bytes) -> Kept:
    """Raises ValueError for whatever this version did not write."""
    if len(data) > SIZE_MAX:
        raise InvalidScenario(f"longer than {SIZE_MAX:,} bytes")
    file = msgspec.json.decode(data, type=_File)
    if file.calls_per_s is not None and not 0 < file.calls_per_s < math.inf:
        raise InvalidScenario(f"calls_per_s(={file.calls_per_s}) must be above 0")
    return Kept(
        scenario=Scenario.from_values(file.scenario),
        theme=file.theme,
        calls_per_s=file.calls_per_s,
        rail_hidden=file.rail_hidden,
    )
