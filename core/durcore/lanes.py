"""Lanes as seen from outside: start one, watch it, tell it what to do, end it. The lane itself is lane.py."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import msgspec

from durcore import lane as program
from durcore.designs import Design
from durcore.errors import LaneFailed
from durcore.figures import Tally
from durcore.lane import Command, LaneResult, Start
from durcore.latency import Latency
from durcore.live import LaneState, LiveFigures, Progress
from durcore.scenario import Scenario

END_WITHIN_S = 1.0
LEAST_BYTES = 1 << 20  # a disk with less is full
NOT_STARTED = Progress(state=LaneState.STARTING, queued=0, elapsed_s=0.0, tally=Tally())


class LaneProcess:
    """One lane in a process of its own, in `directory`, which must not exist yet."""

    def __init__(
        self,
        directory: Path,
        scenario: Scenario,
        design: Design,
        seed: int,
        *,
        calls_per_s: float | None = None,
        paused: bool = False,
    ) -> None:
        self.directory = directory
        self.scenario = scenario
        self.design = design
        self.seed = seed
        self._live: LiveFigures | None = None
        try:
            directory.mkdir(mode=0o700)
            self._process = _spawn(directory / program.LOG)
        except OSError as error:
            raise LaneFailed(f"lane {design.name} cannot be started in {directory}: {error.strerror}") from error
        self.send(
            Start(
                directory=str(directory),
                scenario=scenario.resolved(),
                design=design.name,
                seed=seed,
                calls_per_s=calls_per_s,
                paused=paused,
            )
        )

    @property
    def pid(self) -> int:
        """The lane's process."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process is there still."""
        return self._process.poll() is None

    def send(self, command: Command) -> None:
        """Tell the lane what to do. A lane that has ended is told nothing: `result` says how it ended."""
        stdin = self._process.stdin
        assert stdin is not None
        try:
            stdin.write(msgspec.json.encode(command) + b"\n")
            stdin.flush()
        except (BrokenPipeError, ValueError):
            return

    def progress(self) -> Progress:
        """How far the lane is."""
        live = self._look()
        return NOT_STARTED if live is None else live.read()

    def latency(self) -> Latency | None:
        """How long its checkpoint writes took so far."""
        live = self._look()
        return None if live is None else live.latency()

    def result(self) -> LaneResult:
        """What a lane that has ended left. Raises LaneFailed, with the lane's own words, where that is no result."""
        code = self._process.wait()
        where = f"{self.design.name}, seed {self.seed}"
        if code == 0:
            return msgspec.json.decode((self.directory / program.RESULT).read_bytes(), type=LaneResult)
        error = self.directory / program.ERROR
        if error.exists() and (words := error.read_text()):
            raise LaneFailed(f"lane {where}: {words}")
        if shutil.disk_usage(self.directory).free < LEAST_BYTES:  # it may have had no room for its last words
            raise LaneFailed(f"lane {where}: the disk of {self.directory} is full; free some room and run again")
        how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        raise LaneFailed(f"lane {where} {how}; what it said is in {self.directory / program.LOG}")

    def end(self) -> None:
        """End the process, done or not, and let go of everything. A lane that ignores its closed input is killed."""
        self.close_input()
        try:
            self._process.wait(END_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._live is not None:
            self._live.close()
            self._live = None

    def close_input(self) -> None:
        """Tell the lane that nobody drives it any more: it ends by itself."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
        except BrokenPipeError:
            return

    def _look(self) -> LiveFigures | None:
        if self._live is None:
            self._live = LiveFigures.look(self.directory / program.LIVE)
        return self._live


def _spawn(log: Path) -> subprocess.Popen[bytes]:
    """A lane's process, waiting for its first command.

    Its stdio is explicit: under Textual the standard streams have no file number. -P: a file in the working directory
    of whoever runs durtui must not be imported for a module of ours.
    """
    with log.open("wb") as words:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "durcore.lane"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=words
        )
