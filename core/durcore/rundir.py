"""RunDirectory: where a run lives, whose it is, whether there is room for it, and what may be in it."""

from __future__ import annotations

import math
import os
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Self

import msgspec
from platformdirs import user_state_path

from durcore.designs import Design, find_designs
from durcore.errors import FAILS_BY_ITSELF, WRITABLE, Damaged, DurtuiError, Mistake, advised, printable
from durcore.interventions import FILE as INTERVENTIONS_FILE
from durcore.interventions import Intervention, check_interventions, read_interventions
from durcore.ledger import ledger_bytes
from durcore.lock import LOCK_FILE, OWNER_ONLY, Lock
from durcore.remains import RESULT
from durcore.scenario import Scenario, check_seed

RUN_FILE = "run.json"
DRAFT_FILE = "run.json.new"
SCHEMA = "durtui.run/1"
ANEW = "what is to be run is not known any more: run it anew, in another directory"
RUN_FILE_BYTES = 1 << 20  # at the most: a hundred thousand seeds
PAGE_BYTES = 4096
WAL_BYTES = 16 << 20  # more than a lane's WAL has been seen to take
JOB_ROW_BYTES = 49  # a job's byte on the board, its row, its place in the queue's index, and half a page's slack
CHECKPOINT_ROW_BYTES = 20  # a checkpoint's row without its output


class _Description(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What `run.json` holds. `boot`: while which life of the machine the run was last under way.

    `check` is of all the rest: a description that was written over could be of another run, whose figures are others.
    """

    schema: str
    scenario: dict[str, int | float | str | None]
    designs: list[str]
    seeds: list[int]
    boot: str
    check: str
    interventions: list[Intervention] = []

    def sum(self) -> str:
        """What `check` must be."""
        return sha256(msgspec.json.encode(msgspec.structs.replace(self, check=""))).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDirectory:
    """A directory that belongs to one run: a file that says what is run, and a folder a lane.

    This process holds it until `release` or `remove`. It is `temporary` in the user's state directory: removed when
    the run has ended well. `interventions` are those that the run was begun with; what is done to a lane at work
    stands in its folder.
    """

    path: Path
    temporary: bool
    scenario: Scenario
    designs: tuple[Design, ...]
    seeds: tuple[int, ...]
    lock: Lock
    interventions: tuple[Intervention, ...] = ()

    @classmethod
    def create(
        cls,
        where: str | os.PathLike[str] | None,
        scenario: Scenario,
        designs: Sequence[Design],
        seeds: Sequence[int],
        interventions: Sequence[Intervention] = (),
    ) -> Self:
        """Make the directory `where`, or one under the user's state directory, for a run that has not begun.

        Raises Mistake where it cannot be made or holds something, and DurtuiError where the run has no room in it.
        """
        path = Path(where) if where is not None else _fresh_path()
        lock: Lock | None = None
        try:
            for parent in reversed(path.parents):  # each with the mode: mkdir's own `parents` takes the umask's
                parent.mkdir(mode=0o700, exist_ok=True)
            path.mkdir(mode=0o700, exist_ok=where is not None)
            if any(entry.name not in (LOCK_FILE, DRAFT_FILE) for entry in path.iterdir()):
                hint = f"; durtui resume {path} goes on with the run in it" if (path / RUN_FILE).exists() else ""
                raise Mistake(f"run_dir(={path}) must be a new or an empty directory{hint}")
            _refuse_strange_files(path)
            _check_room(path, scenario, designs, len(seeds), temporary=where is None)
            lock = Lock.hold(path)
            directory = cls(
                path=path.resolve(),
                temporary=where is None,
                scenario=scenario,
                designs=tuple(designs),
                seeds=tuple(seeds),
                lock=lock,
                interventions=tuple(interventions),
            )
            directory._describe()
        except OSError as error:
            if lock is not None:
                lock.release()
            if where is None:
                shutil.rmtree(path, ignore_errors=True)
            if error.errno in FAILS_BY_ITSELF:
                raise DurtuiError(f"{path} cannot be made a run's directory: {advised(error)}") from error
            raise Mistake(f"run_dir(={path}) must be a directory that can be written: {error.strerror}") from error
        return directory

    @classmethod
    def open(cls, where: str | os.PathLike[str]) -> Self:
        """Open a run that was begun, perhaps by a stranger, to go on with it.

        Raises Mistake where no run is, or one holds what durtui would not have put there; Damaged where its description
        was destroyed; DurtuiError where it cannot be written; InUse while another process has it.
        """
        path = Path(where).resolve()
        if not (path / RUN_FILE).is_file():
            raise Mistake(f"{path} holds no run: there is no {RUN_FILE} in it")
        _refuse_strange_files(path)
        description = _read(path / RUN_FILE)
        try:
            directory = cls(
                path=path,
                temporary=path.parent == _runs_path().resolve(),
                scenario=Scenario.from_values(description.scenario),
                designs=find_designs(description.designs),
                seeds=tuple(check_seed(seed) for seed in description.seeds),
                interventions=check_interventions(description.interventions, description.designs),
                lock=Lock.hold(path),
            )
        except OSError as error:
            raise DurtuiError(f"{path / LOCK_FILE} cannot be written: {advised(error)}") from error
        except Mistake as error:
            raise Mistake(f"{path / RUN_FILE}: {error}") from None
        if not os.access(path, os.W_OK):
            directory.release()
            raise DurtuiError(f"{path} is a read-only directory; {WRITABLE}")
        return directory

    def lane(self, design: Design, seed: int) -> Path:
        """The directory of one lane."""
        return self.path / f"{design.name}-seed-{seed}"

    @property
    def finished(self) -> bool:
        """Whether every lane has left its result."""
        return all((self.lane(design, seed) / RESULT).exists() for design in self.designs for seed in self.seeds)

    def clear_lanes_of_another_boot(self) -> int:
        """Make sure that no lane goes on across a power loss; return how many have to be run again from their seeds.

        What the machine had not yet written down then is gone, and may be gone from the ledger and not from the store.
        A lane with a result is kept: it is counted again, and a loss would show.
        """
        boot = _read(self.path / RUN_FILE).boot
        if boot == boot_id():
            return 0
        lost = [
            (lane, design)
            for design in self.designs
            for seed in self.seeds
            if (lane := self.lane(design, seed)).exists() and not (lane / RESULT).exists()
        ]
        for lane, design in lost:
            clear_lane(lane, design)
        self._describe()
        return len(lost)

    def release(self) -> None:
        """Let somebody else have the directory."""
        self.lock.release()

    def remove(self) -> None:
        """Remove the run and everything in it."""
        shutil.rmtree(self.path, ignore_errors=True)  # somebody may have removed it before us
        self.release()

    def _describe(self) -> None:
        description = _Description(
            schema=SCHEMA,
            scenario=self.scenario.resolved(),
            designs=[design.name for design in self.designs],
            seeds=list(self.seeds),
            boot=boot_id(),
            check="",
            interventions=list(self.interventions),
        )
        description.check = description.sum()
        draft = self.path / DRAFT_FILE
        draft.unlink(missing_ok=True)
        with open(draft, "xb", opener=lambda name, flags: os.open(name, flags, OWNER_ONLY)) as file:
            file.write(msgspec.json.format(msgspec.json.encode(description)) + b"\n")
        draft.replace(self.path / RUN_FILE)


def clear_lane(directory: Path, design: Design) -> None:
    """Have a lane begin again from its seed: what was done to it stays known, unless that was destroyed as well."""
    try:
        kept = [directory / INTERVENTIONS_FILE] if read_interventions(directory, design.name) else []
    except (OSError, Damaged):
        kept = []
    if not kept:
        shutil.rmtree(directory, ignore_errors=True)
        return
    for entry in directory.iterdir():
        if entry not in kept:
            entry.unlink()


def _read(path: Path) -> _Description:
    """The description of a run, whoever wrote it."""
    try:
        with path.open("rb") as file:
            description = msgspec.json.decode(file.read(RUN_FILE_BYTES + 1)[:RUN_FILE_BYTES], type=_Description)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError, Mistake) as error:
        raise Damaged(f"{path} does not describe a run ({printable(str(error))}); {ANEW}") from None
    except OSError as error:
        raise DurtuiError(f"{path} cannot be read: {advised(error)}") from error
    if description.schema != SCHEMA:
        raise Mistake(f"{path}: schema(={printable(description.schema[:60])}) must be {SCHEMA}")
    if description.check != description.sum():
        raise Damaged(f"{path} is not what durtui wrote: it was written over; {ANEW}")
    return description


def _refuse_strange_files(path: Path) -> None:
    """Raise Mistake for whatever would lead out of a run's directory, or hold us up: links, pipes, deeper folders."""
    # Level by level: a link is refused before it is followed, and folders as deep as a stack are not climbed down.
    for entry in (entry for level in ("*", "*/*") for entry in sorted(path.glob(level))):
        kind = entry.lstat()
        depth = len(entry.relative_to(path).parts)
        folder = stat.S_ISDIR(kind.st_mode) and depth == 1
        if not folder and not (stat.S_ISREG(kind.st_mode) and kind.st_nlink == 1):
            raise Mistake(f"{printable(str(entry))} is no file that durtui has made (a link, or not a file); remove it")


def _check_room(
    path: Path, scenario: Scenario, designs: Iterable[Design], replications: int, *, temporary: bool
) -> None:
    needed = replications * sum(bytes_needed(scenario, design) for design in designs)
    free = shutil.disk_usage(path).free
    if needed > free:
        if temporary:
            path.rmdir()
        raise DurtuiError(
            f"this run needs about {needed / 2**20:,.0f} MiB and {path} has {free / 2**20:,.0f} MiB free;"
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


def boot_id() -> str:
    """What names this life of the machine, from its start to its end; empty where the system has no name for it."""
    linux = Path("/proc/sys/kernel/random/boot_id")
    if linux.exists():
        return linux.read_text().strip()
    if sys.platform == "darwin":
        words = ["/usr/sbin/sysctl", "-n", "kern.bootsessionuuid"]
        return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()  # noqa: S603  # our words
    return ""


def kept_runs() -> list[Path]:
    """The runs in the user's state directory that were interrupted or failed, oldest first: nobody has them now."""
    return sorted(path for path in _runs_path().glob("*") if (path / RUN_FILE).is_file() and not Lock.is_held(path))


def _runs_path() -> Path:
    return user_state_path("durtui") / "runs"


def _fresh_path() -> Path:
    stamp = time.strftime("%Y%m%d-%H%M%S")
    return _runs_path() / f"{stamp}-{os.getpid()}-{time.monotonic_ns() % 10**6:06}"
