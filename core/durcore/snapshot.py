"""Snapshot: a run as JSON that someone else can run again. It writes, reads with suspicion, and verifies.

It holds facts only; tables for people are report.py's.
"""

from __future__ import annotations

import math
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

from durcore.database import sqlite_version
from durcore.errors import Mistake, NotVerified, shown
from durcore.interventions import Intervention
from durcore.lab import LabResult, Replication, check_seeds, run_lab
from durcore.scenario import Scenario
from durcore.theory import Expectation

SCHEMA = "durtui.snapshot/1"
SIZE_MAX = 16 << 20  # a snapshot from a stranger: ten thousand replications fit
EXPECTATION_TOLERANCE = 1e-9
SCORE_TOLERANCE = 1e-6  # a z-score is a small difference of large numbers
LEAD_IN = 20  # characters shown of what two long texts have in common before they part
DERIVED = (".expected.", ".z.", ".tail_p.")  # of the theory: real numbers, which may differ in their last digits
# Differs from run to run, or from machine to machine, and is not verified.
MEASURED = frozenset({"checkpoint_write_us", "elapsed_s", "environment", "workers_killed"})


class _DesignEntry(msgspec.Struct):
    name: str


class _Entry(msgspec.Struct):
    """What must be there to run a snapshot again; the rest is compared, not trusted."""

    schema: str
    scenario: dict[str, int | float | str | None]
    seeds: list[int]
    interventions: list[Intervention]
    designs: list[_DesignEntry]
    complete: bool = True


def to_json(result: LabResult, directory: Path) -> bytes:
    """The snapshot as a JSON document. `directory` is where the run lived, for the name of its file system."""
    return msgspec.json.format(msgspec.json.encode(as_snapshot(result, directory)), indent=2) + b"\n"


def as_snapshot(result: LabResult, directory: Path) -> dict[str, Any]:
    """The snapshot as plain values, by the contract's names."""
    return {
        "schema": SCHEMA,
        "command": reproduce(result),
        "complete": result.complete,
        "scenario": result.scenario.resolved(),
        "seeds": list(result.seeds),
        "interventions": [asdict(each) for each in result.interventions],
        "designs": [
            {
                "name": design.design.name,
                "median": design.median.as_dict(),
                "expected": None if design.expected is None else _expected(design.expected),
                "replications": [_replication(each) for each in design.replications],
            }
            for design in result.designs
        ],
        "environment": environment(directory),
    }


def theory_json(scenario: Scenario, expected: Mapping[str, Expectation]) -> bytes:
    """The expectations alone: a snapshot without seeds, medians and replications."""
    tree = {
        "schema": SCHEMA,
        "scenario": scenario.resolved(),
        "interventions": [],
        "designs": [{"name": name, "expected": _expected(each)} for name, each in expected.items()],
        "environment": environment(Path()),
    }
    return msgspec.json.format(msgspec.json.encode(tree), indent=2) + b"\n"


def environment(directory: Path) -> dict[str, str]:
    """What a run stood on: versions, platform, and the file system that holds `directory`."""
    return {
        "durtui": version("durtui"),
        "python": platform.python_version(),
        "sqlite": sqlite_version(),
        "platform": platform.platform(),
        "filesystem": filesystem_of(directory),
    }


def _expected(expected: Expectation) -> dict[str, dict[str, float]]:
    return {name: {"mean": moment.mean, "sd": moment.sd} for name, moment in expected.as_dict().items()}


def _replication(replication: Replication) -> dict[str, Any]:
    latency = replication.checkpoint_write_us
    return {
        "seed": replication.seed,
        "figures": replication.figures.as_dict(),
        "z": replication.z,
        "tail_p": replication.tail_p,
        "checkpoint_write_us": None if latency is None else asdict(latency),
        "elapsed_s": replication.elapsed_s,
        "workers_killed": replication.workers_killed,
    }


def reproduce(result: LabResult) -> str:
    """The one command that gives this result again."""
    _check_consecutive(result.seeds)
    first, count = result.seeds[0], len(result.seeds)
    words = ["durtui", "run", *result.scenario.flags(), "--seed", str(first), "--replications", str(count)]
    for name in result:
        words += ["--design", name]
    for each in result.interventions:
        words += ["--intervention", str(each)]
    return " ".join(words)


def _check_consecutive(seeds: Sequence[int]) -> None:
    if not seeds or list(seeds) != list(range(seeds[0], seeds[0] + len(seeds))):
        raise Mistake(f"seeds(={shown(list(seeds))}) must follow one another for a command to give them")


def read_snapshot(path: Path) -> bytes:
    """The bytes of a snapshot's file, never more than one may have. Raises Mistake where it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(SIZE_MAX + 1)
    except OSError as error:
        raise Mistake(f"{path} cannot be read: {error.strerror}") from error


def verify(data: bytes, on_progress: Callable[[int, int], None] | None = None) -> LabResult:
    """Run a snapshot's scenario again and compare every figure.

    Raises Mistake for data that is no snapshot of a finished run, and NotVerified, naming the first value that
    differs by its path, where the figures are not what the scenario gives.
    """
    tree, entry = _parse(data)
    result = run_lab(
        Scenario.from_values(entry.scenario),
        entry.seeds,
        [design.name for design in entry.designs],
        interventions=entry.interventions,
        on_progress=on_progress,
    )
    for path, there, here in differences(tree, as_snapshot(result, Path())):
        raise NotVerified("{} is {} in the snapshot, and this run gives {}".format(path, *_shown_apart(there, here)))
    return result


def _parse(data: bytes) -> tuple[dict[str, Any], _Entry]:
    if len(data) > SIZE_MAX:
        raise Mistake(f"a snapshot has at most {SIZE_MAX:,} bytes, this has more")
    try:
        tree = msgspec.json.decode(data, type=dict[str, Any])
        entry = msgspec.convert(tree, _Entry)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise Mistake(f"this is not a snapshot: {error}") from error
    if entry.schema != SCHEMA:
        raise Mistake(f"schema(={entry.schema!r}) must be {SCHEMA}")
    if not entry.complete:
        raise Mistake(
            "this snapshot was taken while its run was under way, so its figures are not final; run its command"
        )
    check_seeds(entry.seeds)
    _check_consecutive(entry.seeds)
    return tree, entry


def differences(there: Any, here: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Walk two snapshots: the path of each value in which `there` is not as `here`, with both values.

    What was measured is passed over, and so is what only `there` has: a newer version may have added it.
    """
    if isinstance(here, dict) and isinstance(there, dict):
        # The command follows from the rest: where it differs, its cause is the better thing to name.
        for key, value in sorted(here.items(), key=lambda item: item[0] == "command"):
            if key in MEASURED:
                continue
            inner = f"{path}.{key}" if path else key
            yield from differences(there.get(key, "missing"), value, inner)
    elif isinstance(here, list) and isinstance(there, list) and len(here) == len(there):
        for index, value in enumerate(here):
            yield from differences(there[index], value, f"{path}[{index}]")
    elif not _same(there, here, path):
        yield path, there, here


def _same(there: Any, here: Any, path: str) -> bool:
    numbers = isinstance(there, (int, float)) and isinstance(here, (int, float))
    if numbers and any(part in path for part in DERIVED):
        return math.isclose(there, here, rel_tol=EXPECTATION_TOLERANCE, abs_tol=SCORE_TOLERANCE if ".z." in path else 0)
    return bool(there == here) and isinstance(there, bool) == isinstance(here, bool)


def _shown_apart(there: Any, here: Any) -> tuple[str, str]:
    """Two values that differ, each as one short line that shows where. Nothing of a file can steer a terminal."""
    texts = ascii(there), ascii(here)
    pairs = zip(*texts, strict=False)
    same = next((i for i, (a, b) in enumerate(pairs) if a != b), min(map(len, texts)))
    if same > 2 * LEAD_IN:
        texts = tuple(f"'...{text[same - LEAD_IN :]}" for text in texts)  # type: ignore[assignment]  # two again
    return shown(texts[0]), shown(texts[1])


def filesystem_of(path: Path) -> str:
    """The type of the file system that holds `path`, `unknown` where the system does not say."""
    mounts = Path("/proc/self/mounts")
    try:
        path = path.resolve(strict=True)
    except OSError:
        return "unknown"
    if not mounts.exists():
        return "unknown"
    best, kind = "", "unknown"
    for line in mounts.read_text().splitlines():
        _, mount, type_, *_ = line.split()
        if path.is_relative_to(mount) and len(mount) >= len(best):
            best, kind = mount, type_
    return kind
