"""A lane: one design under way, a program of its own. `python -m durcore.lane` reads commands, one JSON line each.

It works in a directory of its own, prints nothing, and shows how far it is in a memory-mapped page. When its standard
input closes it ends: nothing is orphaned. What it is watched and driven by is lanes.py.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import traceback
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from time import monotonic, perf_counter

import msgspec

from durcore.count import count
from durcore.designs import DESIGNS
from durcore.errors import Contradiction, DurtuiError
from durcore.faults import FaultPlan
from durcore.figures import Tally
from durcore.latency import Latency
from durcore.ledger import Ledger
from durcore.live import LaneState, LiveFigures
from durcore.pace import Pace
from durcore.scenario import Scenario
from durcore.store import Store, explained
from durcore.worker import Worker

STORE, LEDGER, LIVE, RESULT, ERROR, LOG = "store.db", "ledger", "live", "result.json", "error.txt", "lane.log"
QUEUE_BATCH = 10_000  # jobs put into the queue in one transaction: the WAL stays small, a command waits 10 ms
PUBLISH_EVERY_S = 0.02
SLICE = 32  # calls between two looks at the clock
MOMENT_S = 0.01  # a command does not wait longer than this and one slice, however slow the writes are
NICENESS = 10  # below the screen: this, more than being a process, keeps a key fast


class Start(msgspec.Struct, frozen=True, tag="start", tag_field="do"):
    """The first command: what to run, and where."""

    directory: str
    scenario: dict[str, int | float | str | None]
    design: str
    seed: int
    calls_per_s: float | None = None
    paused: bool = False


class SetSpeed(msgspec.Struct, frozen=True, tag="speed", tag_field="do"):
    """Go on at this speed; None: as fast as it can."""

    calls_per_s: float | None


class Pause(msgspec.Struct, frozen=True, tag="pause", tag_field="do"):
    """Stop before the next call, until told to go on."""


class GoOn(msgspec.Struct, frozen=True, tag="go", tag_field="do"):
    """Go on after a pause."""


class Step(msgspec.Struct, frozen=True, tag="step", tag_field="do"):
    """Make this many calls, paused or not."""

    calls: int = 1


Command = Start | SetSpeed | Pause | GoOn | Step


class LaneResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a finished lane leaves behind: its tally, counted from ledger and store, and its timings."""

    tally: Tally
    checkpoint_write_us: Latency | None
    elapsed_s: float


class InboxClosed(Exception):
    """Whoever drove this lane is gone."""


class Inbox:
    """Commands from a pipe, whole lines only. No thread: a lane may fork, and its work is never interleaved."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._rest = b""
        self._decoder = msgspec.json.Decoder(Command)

    def poll(self, timeout_s: float | None) -> list[Command]:
        """The commands that have come, after waiting up to `timeout_s` for the first (None: for ever)."""
        if not select.select([self._fd], [], [], timeout_s)[0]:
            return []
        read = os.read(self._fd, 65536)
        if not read:
            raise InboxClosed
        *lines, self._rest = (self._rest + read).split(b"\n")
        return [self._decoder.decode(line) for line in lines]

    def first(self) -> tuple[Start, list[Command]]:
        """Wait for the command that starts the lane; return it with those that came behind it."""
        commands: list[Command] = []
        while not commands:
            commands = self.poll(None)
        start, *rest = commands
        if not isinstance(start, Start):
            raise DurtuiError("a lane's first command is `start`")
        return start, rest


class Lane:
    """One replication of one design, from an empty directory to its result."""

    def __init__(self, start: Start, inbox: Inbox, live: LiveFigures) -> None:
        self._inbox = inbox
        self._live = live
        self._directory = Path(start.directory)
        self._scenario = Scenario.from_values(start.scenario)
        self._design = DESIGNS[start.design]
        self._plan = FaultPlan(self._scenario, start.seed)
        self._pace = Pace(start.calls_per_s, paused=start.paused, now_s=monotonic())
        self._tally = Tally()
        self._queued = 0
        self._elapsed_s = 0.0

    def run(self) -> None:
        """Do the work, count it, and leave the result."""
        scenario = self._scenario
        path = self._directory / STORE
        ledger = Ledger.create(self._directory / LEDGER, jobs=scenario.jobs, steps=scenario.steps)
        with (
            explained(path),
            Store.create(path, synchronous=scenario.synchronous, locking=scenario.locking) as store,
        ):
            self._fill(store)
            self._work(store, ledger)
            self._publish(LaneState.COUNTING)
            counted = count(store, ledger)
        if counted != self._tally or counted.ended != scenario.jobs:
            raise Contradiction(f"the streamed figures {self._tally} are not the counted ones {counted}")
        result = LaneResult(tally=counted, checkpoint_write_us=self._live.latency(), elapsed_s=self._elapsed_s)
        (self._directory / RESULT).write_bytes(msgspec.json.encode(result))
        self._publish(LaneState.DONE)

    def obey(self, commands: list[Command]) -> None:
        """Carry out commands."""
        for command in commands:
            match command:
                case SetSpeed(calls_per_s):
                    self._pace.set_speed(calls_per_s)
                case Pause():
                    self._pace.paused = True
                case GoOn():
                    self._pace.paused = False
                case Step(calls):
                    self._pace.add_steps(calls)
                case Start():
                    raise DurtuiError("a lane starts once")

    def _fill(self, store: Store) -> None:
        for first in range(1, self._scenario.jobs + 1, QUEUE_BATCH):
            last = min(first + QUEUE_BATCH - 1, self._scenario.jobs)
            store.enqueue(first, last)
            self._queued = last
            self._publish(LaneState.QUEUEING)
            self.obey(self._inbox.poll(0))

    def _work(self, store: Store, ledger: Ledger) -> None:
        worker = Worker(
            policy=self._design.policy(self._scenario),
            plan=self._plan,
            store=store,
            ledger=ledger,
            tally=self._tally,
            writes=self._live.writes,
            output=bytes(self._scenario.output_bytes),
        )
        began = perf_counter()
        work = worker.work()
        _, more = _advance(work, 1)  # up to the first call, so that each later advance makes exactly one
        published = 0.0
        while more:
            if calls := self._pace.due(monotonic()):
                made, more = _advance(work, calls)
                self._pace.give_back(calls - made)
                self._elapsed_s = perf_counter() - began
            wait_s = self._pace.wait_s()
            if wait_s != 0 or perf_counter() - published > PUBLISH_EVERY_S:
                self._publish(LaneState.RUNNING)
                published = perf_counter()
            if more:
                self.obey(self._inbox.poll(wait_s))

    def _publish(self, state: LaneState) -> None:
        self._live.publish(state, self._queued, self._elapsed_s, self._tally)


def _advance(work: Iterator[None], calls: int) -> tuple[int, bool]:
    """Let the worker make up to `calls` calls, fewer where a moment has no time for them.

    Return how many it made, and whether there may be more: False when its queue is empty.
    """
    made, until = 0, perf_counter() + MOMENT_S
    while made < calls:
        asked = min(SLICE, calls - made)
        here = sum(1 for _ in islice(work, asked))
        made += here
        if here < asked:
            return made, False
        if perf_counter() > until:
            break
    return made, True


def main() -> int:
    """Run one lane as its commands say. 0: done. 1: failed, with error.txt. 3: told to end by a closed input."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever drives the lanes
    os.umask(0o077)
    os.nice(NICENESS)
    inbox = Inbox(sys.stdin.fileno())
    try:
        start, rest = inbox.first()
    except InboxClosed:
        return 3
    directory = Path(start.directory)
    try:
        lane = Lane(start, inbox, LiveFigures.create(directory / LIVE))
        lane.obey(rest)
        lane.run()
    except InboxClosed:
        return 3
    except Exception as error:  # noqa: BLE001  # whatever it is, the one who watches this lane must learn of it
        traceback.print_exc()
        message = str(error) if isinstance(error, DurtuiError) else f"{type(error).__name__}: {error}"
        (directory / ERROR).write_text(message)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
