"""A run that the world fails, for the tests of this folder: begun for real, held in its middle, and gone on with."""

from __future__ import annotations

import ctypes
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from durcore.lab import run_lab
from durcore.live import LiveLook
from durcore.scenario import Scenario

DURTUI = str(Path(sys.executable).with_name("durtui"))
DESIGN, SEED = "checkpoint-idempotent", 7
ONE_LANE = ("--seed", str(SEED), "--replications", "1", "--design", DESIGN)
PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 24, 1, 2
PATIENCE_S = 60.0
LIBC = ctypes.CDLL(None)


@cache
def figures_of_the_undisturbed(scenario: Scenario) -> dict[str, float]:
    """The figures of a run that nothing happens to."""
    return run_lab(scenario, [SEED], [DESIGN])[DESIGN].replications[0].figures.as_dict()


class World:
    """One run of one lane, in the directory `run` of a place; what can be done to it is up to the test.

    Enough jobs that the run can be held in its middle, wherever that is.
    """

    def __init__(self, place: Path, jobs: int = 1200, **fields: int | float | str) -> None:
        self.scenario = Scenario.from_values({"jobs": jobs, **fields})
        self.directory = place / "run"
        self.lane = self.directory / f"{DESIGN}-seed-{SEED}"
        self.store = self.lane / "store.db"
        self.ledger = self.lane / "ledger"
        self.live = self.lane / "live"
        self.process: subprocess.Popen[str] | None = None

    @property
    def due(self) -> dict[str, float]:
        """The figures that the run must come to."""
        return figures_of_the_undisturbed(self.scenario)

    @property
    def middle(self) -> int:
        """Calls after which the run is about half done."""
        return self.scenario.jobs * self.scenario.steps // 2

    def begin(
        self,
        prepare: Callable[[], object] | None = None,
        words: Sequence[str] = ("--json", "-"),
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.Popen[str]:
        """Start `durtui run` on it; `prepare` is called in the new process before it is the command."""
        self.process = subprocess.Popen(
            [DURTUI, "run", *self.scenario.flags(), *ONE_LANE, "--run-dir", str(self.directory), *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(environment or {})},
            preexec_fn=prepare,  # nothing but system calls: no thread of ours holds a lock meanwhile
        )
        return self.process

    def end(self) -> subprocess.CompletedProcess[str]:
        """Wait for the end of what was begun."""
        assert self.process is not None
        out, err = self.process.communicate(timeout=PATIENCE_S)
        return subprocess.CompletedProcess(self.process.args, self.process.returncode, out, err)

    def run(self, prepare: Callable[[], None] | None = None) -> subprocess.CompletedProcess[str]:
        """`durtui run` from its beginning to its end."""
        self.begin(prepare)
        return self.end()

    def resume(self, *words: str, prepare: Callable[[], None] | None = None) -> subprocess.CompletedProcess[str]:
        """`durtui resume`."""
        return subprocess.run(
            [DURTUI, "resume", str(self.directory), *words, "--json", "-"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
            preexec_fn=prepare,  # as above
        )

    def calls(self) -> int:
        """Calls that the lane has published."""
        look = LiveLook.open(self.live)
        seen = None if look is None else look.read()
        if look is not None:
            look.close()
        return 0 if seen is None else seen.tally.model_calls

    def until(self, calls: int) -> None:
        """Wait until so many calls are made."""
        assert self.process is not None
        deadline = time.monotonic() + PATIENCE_S
        while self.calls() < calls:
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.002)

    def kill(self, lanes: Callable[[], list[int]]) -> None:
        """Kill the command and its lane in the middle of their work."""
        self.begin()
        self.until(self.middle)
        assert self.process is not None
        self.process.kill()
        for lane in lanes():
            with suppress(ProcessLookupError):
                os.kill(lane, signal.SIGKILL)
        self.end()
        while lanes():
            time.sleep(0.005)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def world_in(tmp_path: Path) -> Callable[..., World]:
    """Makes a run of other parameters, or elsewhere."""

    def make(place: Path = tmp_path, **fields: Any) -> World:
        return World(place, **fields)

    return make


@pytest.fixture
def held(lanes: Callable[[], list[int]]) -> Callable[..., None]:
    """Does something to a run in its middle while its lane stands still, so that it lands where it is meant to."""

    def hold(world: World, act: Callable[[], object], share: float = 0.5) -> None:
        world.until(int(2 * world.middle * share))
        for signal_ in (signal.SIGSTOP, signal.SIGCONT):
            # The lane first, since its workers come and go: what stands still forks no other.
            for _ in range(3):
                for lane in lanes():
                    with suppress(ProcessLookupError):
                        os.kill(lane, signal_)
            if signal_ == signal.SIGSTOP:
                assert lanes(), "the run was over before it could be held"
                assert not (world.lane / "result.json").exists()
                act()

    return hold


@pytest.fixture
def without_roots_rights() -> Callable[[], None]:
    """Makes permissions bind a process about to be: root ignores them by two capabilities, which it gives up here.

    A capability that has left the bounding set is not given back by exec, and a test run by anyone else has none.
    """

    def give_up() -> None:
        if os.geteuid() == 0:
            for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
                LIBC.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)

    if os.geteuid() == 0 and not sys.platform.startswith("linux"):
        pytest.skip("root ignores permissions, and only Linux lets it give that up")
    return give_up


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """Mounts disks of so many MiB."""
    if os.geteuid() != 0 or not sys.platform.startswith("linux"):
        pytest.skip("only root on Linux may mount a small disk")
    disks: list[Path] = []

    def mount(mebibytes: int) -> Path:
        disk = tmp_path / f"disk-{len(disks)}"
        disk.mkdir()
        words = ["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "tmpfs", str(disk)]
        if (done := subprocess.run(words, capture_output=True, text=True, check=False)).returncode:
            pytest.skip(f"this place lets nobody mount a disk: {done.stderr.strip()}")
        disks.append(disk)
        return disk

    yield mount
    for disk in disks:
        subprocess.run(["umount", "-l", str(disk)], check=False)


@pytest.fixture
def refused() -> Callable[..., None]:
    """Asserts that a command said in one line what is wrong and where, and ended so."""

    def check(done: subprocess.CompletedProcess[str], *naming: Path | str, code: int = 1, saying: str = "") -> None:
        assert done.returncode == code, done
        assert done.stdout == ""
        (line,) = done.stderr.splitlines()
        assert line.startswith("durtui: ")
        assert all(str(name) in line for name in naming), line
        assert saying in line
        assert not any(word in line for word in ("Traceback", "Error:", "Errno")), line

    return check


@pytest.fixture
def came_to_its_figures() -> Callable[..., None]:
    """Asserts that a command has printed the snapshot of a run, and that its figures are those of one undisturbed."""

    def check(world: World, done: subprocess.CompletedProcess[str]) -> None:
        assert done.returncode == 0, done
        (design,) = json.loads(done.stdout)["designs"]
        assert design["replications"][0]["figures"] == world.due

    return check


@pytest.fixture
def write_noise() -> Callable[..., None]:
    """Overwrites part of a file with noise, from a seed, and leaves the rest and its size."""

    def write(path: Path, seed: int, first: float = 0.0, last: float = 1.0, bytes_max: int = 1 << 30) -> None:
        size = path.stat().st_size
        start = int(size * first)
        count = min(int(size * last) - start, bytes_max)
        with path.open("rb+") as file:
            file.seek(start)
            file.write(random.Random(seed).randbytes(count))  # noqa: S311  # noise, no secret

    return write
