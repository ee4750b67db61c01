"""A lane: one design under way, a program of its own. `python -m durcore.lane` reads commands, one JSON line each.

It works in a directory of its own and goes on from whatever an earlier life of it left there. It prints nothing, and
shows how far it is in a memory-mapped page. When its standard input closes it ends: nothing is orphaned. What it is
watched and driven by is lanes.py.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import sys
import traceback
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from time import monotonic, perf_counter

import msgspec

from durcore.audit import audit
from durcore.board import fill_board, make_board
from durcore.count import count
from durcore.database import explained
from durcore.designs import DESIGNS
from durcore.errors import Contradiction, Damaged, DurtuiError, InUse, told
from durcore.figures import Tally
from durcore.interventions import Intervention, Kind, applied, pressed, read_interventions, write_interventions
from durcore.ledger import Ledger
from durcore.live import LaneState, LiveFigures
from durcore.lock import Lock
from durcore.pace import Pace
from durcore.remains import LaneResult, Remains, write_result
from durcore.scenario import Scenario
from durcore.shift import LIVE, Assignment, Shift
from durcore.store import Store
from durcore.supervisor import Supervisor

LOG = "lane.log"
LAST_WORDS = "durtui: "  # how the line begins that ends the log of a lane that failed
QUEUE_BATCH = 10_000  # jobs put into the queue in one transaction: the WAL stays small, a command waits 10 ms
PUBLISH_EVERY_S = 0.02
LOOK_EVERY_S = 0.5  # whether the files are there still
ORPHANS_END_WITHIN_S = 2.0  # a worker may outlive its killed supervisor by the slice that it is in
NICENESS = 10  # below the screen: this, more than being a process, keeps a key fast
FAILED, CLOSED, DAMAGED, BUSY = 1, 3, 4, 5  # how a lane ends that does not get to its end


class Start(msgspec.Struct, frozen=True, tag="start", tag_field="do"):
    """The first command: what to run, and where. `interventions`: what a run that is run again is to meet."""

    directory: str
    scenario: dict[str, int | float | str | None]
    design: str
    seed: int
    calls_per_s: float | None = None
    paused: bool = False
    interventions: tuple[Intervention, ...] = ()


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


class Intervene(msgspec.Struct, frozen=True, tag="intervene", tag_field="do"):
    """Kill the worker, deploy, or have an outage, from the next attempt on."""

    kind: Kind


Command = Start | SetSpeed | Pause | GoOn | Step | Intervene


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
    """One replication of one design, from wherever its directory stands to its result."""

    def __init__(self, start: Start, inbox: Inbox, live: LiveFigures) -> None:
        self._inbox = inbox
        self._live = live
        self._assignment = Assignment(
            directory=Path(start.directory),
            scenario=Scenario.from_values(start.scenario),
            design=DESIGNS[start.design],
            seed=start.seed,
            interventions=read_interventions(Path(start.directory), start.design) or start.interventions,
        )
        self._board = make_board(self._assignment.board, self._assignment.scenario.jobs)
        self._asked: list[Kind] = []
        self._pace = Pace(start.calls_per_s, paused=start.paused, now_s=monotonic())
        self._tally = Tally()
        self._queued = 0
        self._elapsed_s = 0.0
        self._workers_killed = 0

    def run(self) -> None:
        """Do the work, count it, and leave the result."""
        remains = Remains.of(self._assignment)
        if remains.begun:
            finished = self._take_up(remains)
        else:
            finished = False
            remains.clear_away()
            self._keep(self._assignment.interventions)
            self._begin()
        if not finished:
            self._work()
            self._finish()
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
                case Intervene(kind):
                    self._asked.append(kind)
                case Start():
                    raise DurtuiError("a lane starts once")

    def _begin(self) -> None:
        """Make store and ledger, and put every job into the queue."""
        assignment, scenario = self._assignment, self._assignment.scenario
        Ledger.create(assignment.ledger, jobs=scenario.jobs, steps=scenario.steps).close()
        with (
            explained(assignment.store),
            Store.create(assignment.store, synchronous=scenario.synchronous, locking=scenario.locking) as store,
        ):
            for first in range(1, scenario.jobs + 1, QUEUE_BATCH):
                self._queued = min(first + QUEUE_BATCH - 1, scenario.jobs)
                store.enqueue(first, self._queued)
                self._publish(LaneState.QUEUEING)
                self.obey(self._inbox.poll(0))

    def _take_up(self, remains: Remains) -> bool:
        """Go on where an earlier life stopped, once that is known to be sound; True where it had finished."""
        self._queued = self._assignment.scenario.jobs
        with remains.recovered(self._live) as (store, ledger, redo, tally):
            self._tally = tally
            self._elapsed_s, self._workers_killed = self._live.timings()
            self._publish(LaneState.CHECKING)
            for _ in fill_board(self._board, store, ledger, redo, self._assignment.scenario.effect_step):
                self.obey(self._inbox.poll(0))
            if remains.result(tally) is not None:
                return True
            for _ in audit(self._assignment, store, ledger, redo):
                self.obey(self._inbox.poll(0))
        return False

    def _work(self) -> None:
        """Work until the queue is empty, by a worker in this process or by workers that die."""
        assignment, writes, board, tally = self._assignment, self._live.writes, self._board, self._tally
        ledger = Ledger.open(assignment.ledger)
        if assignment.scenario.crash_mode == "raise":
            with Shift(assignment, ledger, writes, board, tally) as shift:
                self._drive(shift)
        else:
            gc.freeze()  # what is here stays: a forked worker need not copy it to look at it
            with Supervisor(assignment, ledger, writes, board, tally, self._workers_killed) as supervisor:
                self._drive(supervisor)
        ledger.close()

    def _drive(self, crew: Shift | Supervisor) -> None:
        began = perf_counter() - self._elapsed_s
        published = looked = 0.0
        while crew.more:
            self._intervene(crew)
            if calls := self._pace.due(monotonic()):
                self._pace.give_back(calls - crew.advance(calls))
                self._elapsed_s = perf_counter() - began
            wait_s = self._pace.wait_s()
            now = perf_counter()
            if wait_s != 0 or now - published > PUBLISH_EVERY_S:
                published = now
                self._tally, self._workers_killed = crew.tally, crew.workers_killed
                self._publish(LaneState.RUNNING)
            if now - looked > LOOK_EVERY_S:
                looked = now
                self._look_for_files()
            if crew.more:
                self.obey(self._inbox.poll(wait_s))
        self._tally, self._workers_killed = crew.tally, crew.workers_killed

    def _intervene(self, crew: Shift | Supervisor) -> None:
        """Have what was asked for happen from the next attempt on, once it is on the disk for whoever comes after."""
        if self._asked:
            made, design = self._assignment.interventions, self._assignment.design.name
            self._keep(pressed(made, design, self._asked, crew.tally.model_calls + 1))
            self._asked.clear()
            crew.intervene(self._assignment.interventions)

    def _keep(self, interventions: tuple[Intervention, ...]) -> None:
        if interventions:
            kept = write_interventions(self._assignment.directory, interventions)
            self._assignment = replace(self._assignment, interventions=kept)

    def _finish(self) -> None:
        """Count what store and ledger hold, which must be what was streamed, and write it down."""
        assignment = self._assignment
        self._publish(LaneState.COUNTING)
        ledger = Ledger.open(assignment.ledger)
        with explained(assignment.store), assignment.reopen_store() as store:
            counted = count(store, ledger)
            if counted != self._tally or counted.ended != assignment.scenario.jobs:
                for _ in audit(assignment, store, ledger, None):  # which names the row that somebody wrote over
                    self.obey(self._inbox.poll(0))
                raise Contradiction(f"the streamed figures {self._tally} are not the counted ones {counted}")
        result = LaneResult(
            tally=counted,
            checkpoint_write_us=self._live.latency(),
            elapsed_s=self._elapsed_s,
            workers_killed=self._workers_killed,
            interventions=applied(assignment.interventions, counted.model_calls),
        )
        write_result(assignment, result)

    def _look_for_files(self) -> None:
        """Find out soon that the files were taken away: an open one can be written for ever, and nobody will see it."""
        for path in (self._assignment.store, self._assignment.ledger):
            if not path.exists():
                raise Damaged(f"{path} was deleted, or moved, while the lane was at work")

    def _publish(self, state: LaneState) -> None:
        self._live.publish(state, self._queued, self._elapsed_s, self._workers_killed, self._tally)


def main() -> int:
    """Run one lane as its commands say; return how it ended.

    0: done. FAILED, DAMAGED: its last words are in its page. CLOSED: nobody drives it. BUSY: another lane is there.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever drives the lanes
    os.umask(0o077)
    os.nice(NICENESS)
    inbox = Inbox(sys.stdin.fileno())
    live: LiveFigures | None = None
    try:
        start, rest = inbox.first()
        directory = Path(start.directory)
        lock = Lock.hold(directory, patience_s=ORPHANS_END_WITHIN_S)
        live = LiveFigures.reopen(directory / LIVE)
        lane = Lane(start, inbox, live)
        lane.obey(rest)
        lane.run()
        lock.release()
    except InboxClosed:
        return CLOSED
    except InUse:
        return BUSY
    except Exception as error:  # noqa: BLE001  # whatever it is, the one who watches this lane must learn of it
        if live is not None:
            live.say(told(error))
        with suppress(OSError):  # a full disk has no room for a log
            if not isinstance(error, (DurtuiError, OSError)):
                traceback.print_exc()
            print(f"{LAST_WORDS}{told(error)}", file=sys.stderr)
        return DAMAGED if isinstance(error, Damaged) else FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())
