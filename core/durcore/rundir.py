"""RunDirectory: where a run lives, whether there is room for it, and who may read it."""

from __future__ import annotations

import math
import os
import shutil
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import msgspec
from platformdirs import user_state_path

from durcore.designs import Design
from durcore.errors import DurtuiError, Mistake
from durcore.ledger import ledger_bytes
from durcore.scenario import Scenario

RUN_FILE = "run.json"
PAGE_BYTES = 4096
WAL_BYTES = 16 << 20  # more than a lane's WAL has been seen to take
JOB_ROW_BYTES = 48  # a job's row, its place in the queue's index, and half a page's slack
CHECKPOINT_ROW_BYTES = 20  # a checkpoint's row without its output


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDirectory:
    """A directory that belongs to one run: a file that says what is run, and a folder a lane."""

    path: Path
    temporary: bool  # in the user's state directory, to be removed when the run has ended well

    @classmethod
    def create(
        cls,
        where: str | os.PathLike[str] | None,
        scenario: Scenario,
        designs: Sequence[Design],
        seeds: Sequence[int],
    ) -> Self:
        """Make the directory `where`, or one under the user's state directory, for a run that has not begun.

        Raises Mistake where it cannot be made or holds something, and DurtuiError where the run has no room in it.
        """
        path = Path(where) if where is not None else _fresh_path()
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=where is not None)
            if any(path.iterdir()):
                raise Mistake(f"run_dir(={path}) must be a new or an empty directory")
            directory = cls(path=path.resolve(), temporary=where is None)
            directory._check_room(scenario, designs, len(seeds))
            description = {
                "schema": "durtui.run/1",
                "scenario": scenario.resolved(),
                "designs": [design.name for design in designs],
                "seeds": list(seeds),
            }
            (path / RUN_FILE).write_bytes(msgspec.json.format(msgspec.json.encode(description)) + b"\n")
        except OSError as error:
            raise Mistake(f"run_dir(={path}) must be a directory that can be written: {error.strerror}") from error
        return directory

    def lane(self, design: Design, seed: int) -> Path:
        """The directory of one lane."""
        return self.path / f"{design.name}-seed-{seed}"

    def remove(self) -> None:
        """Remove the run and everything in it."""
        shutil.rmtree(self.path)

    def _check_room(self, scenario: Scenario, designs: Iterable[Design], replications: int) -> None:
        needed = replications * sum(bytes_needed(scenario, design) for design in designs)
        free = shutil.disk_usage(self.path).free
        if needed > free:
            if self.temporary:
                self.path.rmdir()
            raise DurtuiError(
                f"this run needs about {needed / 2**20:,.0f} MiB and {self.path} has {free / 2**20:,.0f} MiB free;"
                " run fewer jobs, or name a roomier place with --run-dir"
            )


def bytes_needed(scenario: Scenario, design: Design) -> int:
    """About how many bytes one lane of `design` takes on disk: its store, its WAL and its ledger."""
    job_bytes = JOB_ROW_BYTES
    if design.checkpoints:
        row = CHECKPOINT_ROW_BYTES + scenario.output_bytes
        # A page holds whole rows; a longer row takes whole pages of its own.
        room = PAGE_BYTES / (PAGE_BYTES // row) if row <= PAGE_BYTES else -(-row // PAGE_BYTES) * PAGE_BYTES
        job_bytes += math.ceil(scenario.steps * room)
    if design.guard != "none":
        job_bytes += CHECKPOINT_ROW_BYTES
    return scenario.jobs * job_bytes * 5 // 4 + WAL_BYTES + ledger_bytes(scenario.jobs, scenario.steps)


def _fresh_path() -> Path:
    stamp = time.strftime("%Y%m%d-%H%M%S")
    return user_state_path("durtui") / "runs" / f"{stamp}-{os.getpid()}-{time.monotonic_ns() % 10**6:06}"
