"""Supervisor: works an assignment through worker processes that really die. A drawn crash is SIGKILL to one of them.

It forks, which is cheap from a small process without threads, and holds no connection to the store while it does:
SQLite forbids taking one across a fork. What a worker has counted so far comes with each of its reports.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
import traceback
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import NoReturn, Self

import msgspec

from durcore.errors import Damaged, LaneDamaged, LaneFailed, Mistake, told
from durcore.figures import Tally
from durcore.interventions import Intervention
from durcore.latency import LatencyHistogram
from durcore.ledger import Ledger, ledger_bytes
from durcore.live import FILE_BYTES
from durcore.scenario import Scenario
from durcore.shift import Assignment, Shift

END_WITHIN_S = 0.5
SHM_BYTES = 32768  # the least that the index of a write-ahead log has
LIVES_WITHOUT_A_WORD = 10  # a worker that somebody kills again and again before it has done anything is given up


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker says at its birth, after each advance, and with its last breath.

    `dying`: its crash was drawn, and SIGKILL follows. `error`: why it cannot go on; empty else.
    """

    tally: Tally
    more: bool
    dying: bool = False
    error: str = ""
    damaged: bool = False


class Supervisor:
    """A row of worker processes, one at a time, in the place of a shift: see `Shift` for what it is asked.

    `workers_killed` counts the workers whose crash was drawn and that were seen to die by SIGKILL. One that somebody
    else killed is replaced too, and its attempt undone.
    """

    def __init__(
        self,
        assignment: Assignment,
        ledger: Ledger,
        writes: LatencyHistogram,
        board: memoryview,
        tally: Tally,
        workers_killed: int,
    ) -> None:
        self._assignment = assignment
        self._open = (ledger, writes, board)  # what a worker inherits
        self._mute_lives = 0
        self._pid = 0
        self.tally = tally
        self.more = True
        self.workers_killed = workers_killed
        self._begin_life(tally)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._channel.close()  # the worker's input: it ends by itself, unless it waits for something
        self._lines.close()
        until = time.monotonic() + END_WITHIN_S
        while self._pid and os.waitpid(self._pid, os.WNOHANG) == (0, 0):
            if time.monotonic() > until:
                os.kill(self._pid, signal.SIGKILL)
            time.sleep(0.001)

    def intervene(self, interventions: tuple[Intervention, ...]) -> None:
        """From the next call on, these are what is done to the lane. A dead worker's successor is born with them."""
        self._assignment = replace(self._assignment, interventions=interventions)
        with suppress(BrokenPipeError, ConnectionResetError):
            self._channel.sendall(msgspec.json.encode(interventions) + b"\n")

    def advance(self, calls: int) -> int:
        """Have up to `calls` calls made; return how many. A worker that died on the way has a successor by then."""
        before = self.tally.model_calls
        report = self._ask(calls)
        if report is None or report.dying:
            self._replace(report)
        return max(self.tally.model_calls - before, 0)

    def _ask(self, calls: int) -> Report | None:
        """Tell the worker to go on and hear what came of it; None where it died without a word."""
        try:
            self._channel.sendall(b"%d\n" % calls)
        except (BrokenPipeError, ConnectionResetError):
            return None
        return self._hear()

    def _hear(self) -> Report | None:
        try:
            line = self._lines.readline()
        except ConnectionResetError:
            return None
        if not line.endswith(b"\n"):
            return None
        report = msgspec.json.decode(line, type=Report)
        if report.error:
            raise LaneDamaged(report.error) if report.damaged else LaneFailed(report.error)
        self.tally, self.more = report.tally, report.more
        return report

    def _replace(self, last: Report | None) -> None:
        """Bury a worker and begin the life of its successor. Raises LaneFailed unless SIGKILL was what it died of."""
        code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        self._pid = 0
        self._channel.close()
        self._lines.close()
        self._mute_lives = self._mute_lives + 1 if last is None else 0
        if code != -signal.SIGKILL or self._mute_lives > LIVES_WITHOUT_A_WORD:
            raise death(self._assignment, code)
        self.workers_killed += last is not None
        self._begin_life(None if last is None else last.tally)

    def _begin_life(self, tally: Tally | None) -> None:
        """Fork a worker and hear its first word. None: whoever died left no count, and it counts anew."""
        self._channel, there = socket.socketpair()
        self._lines = self._channel.makefile("rb")
        self._pid = os.fork()
        if self._pid == 0:
            self._channel.close()
            self._lines.close()
            _live(self._assignment, *self._open, tally, there)
        there.close()
        if self._hear() is None:
            self._replace(None)


def _live(
    assignment: Assignment,
    ledger: Ledger,
    writes: LatencyHistogram,
    board: memoryview,
    tally: Tally | None,
    channel: socket.socket,
) -> NoReturn:
    """A worker's life, in a process of its own. It never returns: what stands above it on the stack is its parent's."""
    code = 0

    def say(report: Report) -> None:
        channel.sendall(msgspec.json.encode(report) + b"\n")

    def die() -> NoReturn:
        say(Report(tally=shift.tally, more=True, dying=True))
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("a process outlived SIGKILL")

    try:
        with Shift(assignment, ledger, writes, board, tally, die) as shift, channel.makefile("rb") as lines:
            say(Report(tally=shift.tally, more=shift.more))
            for line in lines:  # until its supervisor is gone
                if line.startswith(b"["):
                    shift.intervene(msgspec.json.decode(line, type=tuple[Intervention, ...]))
                    continue
                shift.advance(int(line))
                say(Report(tally=shift.tally, more=shift.more))
    except (BrokenPipeError, ConnectionResetError):
        code = 3  # nobody listens
    except Exception as error:  # noqa: BLE001  # whatever it is, the supervisor must learn of it
        say(Report(tally=Tally(), more=False, error=told(error), damaged=isinstance(error, Damaged)))
        with suppress(OSError):  # a full disk has no room for a log
            traceback.print_exc()
        code = 1
    finally:
        os._exit(code)


def death(assignment: Assignment, code: int) -> LaneFailed:
    """What to say of a lane's process that ended with `code` (negative: by that signal) and without a word."""
    if code == -signal.SIGBUS:
        whole = ledger_bytes(assignment.scenario.jobs, assignment.scenario.steps)
        mapped = {
            assignment.ledger: whole,
            assignment.live: FILE_BYTES,
            assignment.board: assignment.scenario.jobs,
            assignment.shm: SHM_BYTES,
        }
        for path, size in mapped.items():
            if path.exists() and path.stat().st_size < size:
                # The others are made anew by whoever goes on.
                kind = LaneDamaged if path == assignment.ledger else LaneFailed
                return kind(f"died: {path} was cut short while it was at work")
        return LaneFailed("died: its memory-mapped files could not be read or written: see whether the disk is failing")
    if code >= 0:
        return LaneFailed(f"ended with code {code}")
    return LaneFailed(f"was killed by signal {-code}")


def check_can_fork(scenario: Scenario) -> None:
    """Raise Mistake where the scenario asks for workers that die, and this system has no way to make them."""
    if scenario.crash_mode == "sigkill" and not hasattr(os, "fork"):
        raise Mistake(f"crash_mode(=sigkill) needs a system that can fork, and {sys.platform} cannot; use raise")
