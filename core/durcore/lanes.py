"""Lanes as seen from outside: start one, watch it, tell it what to do, end it. The lane itself is lane.py."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from durcore import lane as program
from durcore.board import read_board
from durcore.designs import Design
from durcore.errors import Damaged, LaneDamaged, LaneFailed, Mistake, advised, printable
from durcore.figures import Tally
from durcore.interventions import Intervention, read_interventions
from durcore.lane import Command, Start
from durcore.latency import Latency
from durcore.live import LaneState, LiveLook, Progress
from durcore.lock import OWNER_ONLY
from durcore.remains import RESULT, LaneResult
from durcore.scenario import Scenario
from durcore.shift import Assignment
from durcore.supervisor import death

END_WITHIN_S = 0.8
LEAST_BYTES = 1 << 20  # a disk with less is full
LOG_TAIL_BYTES = 2000
NOT_STARTED = Progress(state=LaneState.STARTING, queued=0, elapsed_s=0.0, workers_killed=0, tally=Tally())


class LaneProcess:
    """One lane in a process of its own. It begins in a `directory` that is not there, and goes on in one that is."""

    def __init__(
        self,
        directory: Path,
        scenario: Scenario,
        design: Design,
        seed: int,
        *,
        calls_per_s: float | None = None,
        paused: bool = False,
        interventions: Iterable[Intervention] = (),
    ) -> None:
        self.directory = directory
        self.scenario = scenario
        self.design = design
        self.seed = seed
        self._assignment = Assignment(directory=directory, scenario=scenario, design=design, seed=seed)
        self._live: LiveLook | None = None
        self._seen = NOT_STARTED
        try:
            directory.mkdir(mode=0o700, exist_ok=True)
            log = directory / program.LOG
            self._said_before = log.stat().st_size if log.exists() else 0
            self._process = _spawn(log)
        except OSError as error:
            raise LaneFailed(f"lane {design.name} cannot be started in {directory}: {advised(error)}") from error
        self.send(
            Start(
                directory=str(directory),
                scenario=scenario.resolved(),
                design=design.name,
                seed=seed,
                calls_per_s=calls_per_s,
                paused=paused,
                interventions=tuple(each for each in interventions if each.design == design.name),
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
        """How far the lane is, or was when that could last be seen."""
        live = self._look()
        seen = None if live is None else live.read()
        self._seen = seen or self._seen
        return self._seen

    def latency(self) -> Latency | None:
        """How long its checkpoint writes took so far."""
        live = self._look()
        return None if live is None else live.latency()

    def board(self) -> bytes:
        """Where each of its jobs stands, a byte a job as worker.py tells; empty before there is one."""
        return read_board(self._assignment.board)

    def interventions(self) -> tuple[Intervention, ...]:
        """What was done to it so far, as it has written down; nothing where that was written over."""
        try:
            return read_interventions(self.directory, self.design.name)
        except (OSError, Damaged):  # the lane says so itself
            return ()

    def wal_bytes(self) -> int:
        """How large its store's write-ahead log is now: what was written and is not yet in the store's own file."""
        try:
            return self._assignment.wal.stat().st_size
        except OSError:
            return 0

    def result(self) -> LaneResult:
        """What a lane that has ended left.

        Raises LaneFailed, with the lane's own words, where that is no result; LaneDamaged where a file was destroyed.
        """
        code = self._process.wait()
        where = f"lane {self.design.name}, seed {self.seed}"
        if code == 0:
            try:
                return msgspec.json.decode((self.directory / RESULT).read_bytes(), type=LaneResult)
            except (OSError, msgspec.MsgspecError, Mistake) as error:
                raise LaneDamaged(f"{where}: {self.directory / RESULT} cannot be read: {error}") from error
        if code == program.BUSY:
            raise LaneFailed(f"{where}: {self.directory} is in use by another durtui; wait until it is done, or end it")
        log = self.directory / program.LOG
        said, live = _last_line(log, self._said_before), self._look()
        words = said.removeprefix(program.LAST_WORDS) if said.startswith(program.LAST_WORDS) else ""
        if not words and live is not None:  # there was no room for a log
            words = live.last_words()
        if words and code in (program.FAILED, program.DAMAGED):
            raise (LaneDamaged if code == program.DAMAGED else LaneFailed)(f"{where}: {words}")
        if not self.directory.exists():
            raise LaneDamaged(f"{where}: {self.directory} was deleted, or moved, while the lane was at work")
        if shutil.disk_usage(self.directory).free < LEAST_BYTES:  # it may not even have had room for its page
            raise LaneFailed(f"{where}: {self.directory}: the disk is full; free some room")
        failure = death(self._assignment, code)
        raise type(failure)(f"{where} {failure}; {said}{said and '; '}what it said is in {log}")

    def end(self, within_s: float = END_WITHIN_S) -> None:
        """End the process, done or not, and let go of everything. A lane that ignores its closed input is killed."""
        self.close_input()
        try:
            self._process.wait(within_s)
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

    def _look(self) -> LiveLook | None:
        if self._live is None:
            self._live = LiveLook.open(self._assignment.live)
        return self._live


def end_all(lanes: Sequence[LaneProcess]) -> None:
    """End lanes together, so that it takes no longer than to end one."""
    until = time.monotonic() + END_WITHIN_S
    for lane in lanes:
        lane.close_input()
    for lane in lanes:
        lane.end(max(until - time.monotonic(), 0.0))


def _last_line(log: Path, begin: int) -> str:
    """The last line of a log from `begin` on, where an earlier life ended; empty where there is none."""
    try:
        with log.open("rb") as file:
            file.seek(max(log.stat().st_size - LOG_TAIL_BYTES, begin))
            lines = file.read(LOG_TAIL_BYTES).decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    return printable(lines[-1]) if lines else ""


def _spawn(log: Path) -> subprocess.Popen[bytes]:
    """A lane's process, waiting for its first command.

    Its stdio is explicit: under Textual the standard streams have no file number. -P: a file in the working directory
    of whoever runs durtui must not be imported for a module of ours.
    """
    with open(log, "ab", opener=lambda name, flags: os.open(name, flags, OWNER_ONLY)) as words:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "durcore.lane"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=words
        )
