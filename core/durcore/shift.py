"""Shift: one life of a lane's worker, from opening its store and ledger to its end, whatever that is.

A lane in `raise` mode works one shift. In `sigkill` mode each shift is a process, and a drawn crash is its end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import NoReturn, Self

from durcore.count import count
from durcore.database import explained
from durcore.designs import Design
from durcore.faults import FaultPlan
from durcore.figures import Tally
from durcore.interventions import Disruptions, Intervention
from durcore.latency import LatencyHistogram
from durcore.ledger import Ledger
from durcore.scenario import Scenario
from durcore.store import Store
from durcore.worker import Redo, Worker, WorkersLedger, WorkersStore, recover, unwind

STORE, LEDGER, LIVE, BOARD = "store.db", "ledger", "live", "board"
SLICE = 32  # calls between two looks at the clock
MOMENT_S = 0.01  # an advance lasts no longer than this and one slice, however slow the writes are


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """What a lane has to do, and where: one design, under one scenario and seed, in a directory of its own.

    `interventions` are those done to this lane so far.
    """

    directory: Path
    scenario: Scenario
    design: Design
    seed: int
    interventions: tuple[Intervention, ...] = ()

    @property
    def store(self) -> Path:
        """Its store's file."""
        return self.directory / STORE

    @property
    def ledger(self) -> Path:
        """Its ledger's file."""
        return self.directory / LEDGER

    @property
    def board(self) -> Path:
        """The file that shows where each of its jobs stands."""
        return self.directory / BOARD

    @property
    def live(self) -> Path:
        """The page of its live figures."""
        return self.directory / LIVE

    @property
    def wal(self) -> Path:
        """Its store's write-ahead log."""
        return self.directory / f"{STORE}-wal"

    @property
    def shm(self) -> Path:
        """The index of that log, which SQLite maps into memory."""
        return self.directory / f"{STORE}-shm"

    def reopen_store(self) -> Store:
        """Its store, which is there and was found sound."""
        return Store.reopen(self.store, synchronous=self.scenario.synchronous, locking=self.scenario.locking)


class Shift:
    """A worker at work on an assignment, over its open ledger. `tally` is where an earlier shift stopped.

    Where that is not known, None, it is counted anew. A context manager that closes its store. Raises StoreError and
    LedgerError, from every method.
    """

    workers_killed = 0  # a crash unwinds, and the worker goes on

    def __init__(
        self,
        assignment: Assignment,
        ledger: Ledger,
        writes: LatencyHistogram,
        board: memoryview,
        tally: Tally | None,
        die: Callable[[], NoReturn] = unwind,
    ) -> None:
        self._path = assignment.store
        self._store = assignment.reopen_store()
        worker = worker_on(assignment, self._store, ledger, writes, board, tally or Tally(), die)
        with explained(self._path):
            redo = recover(worker, self._store, ledger)
            if tally is None:
                worker.tally = recount(self._store, ledger, redo, checkpoints=assignment.design.checkpoints)
            self._worker = worker
            self._work = worker.work(redo)
            self.more = next(self._work, self) is None  # up to the first call: each advance makes whole ones then
        self.tally = worker.tally

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._store.close()

    def intervene(self, interventions: tuple[Intervention, ...]) -> None:
        """From the next call on, these are what is done to the lane."""
        self._worker.disruptions = Disruptions(interventions)

    def advance(self, calls: int) -> int:
        """Make up to `calls` calls, fewer where a moment has no time for them; return how many.

        `more` tells whether there may be further ones: not when the queue is empty.
        """
        made, until = 0, perf_counter() + MOMENT_S
        with explained(self._path):
            while self.more and made < calls:
                asked = min(SLICE, calls - made)
                here = sum(1 for _ in islice(self._work, asked))
                made += here
                self.more = here == asked
                if perf_counter() > until:
                    break
        return made


def worker_on(
    assignment: Assignment,
    store: WorkersStore,
    ledger: WorkersLedger,
    writes: LatencyHistogram,
    board: memoryview,
    tally: Tally,
    die: Callable[[], NoReturn] = unwind,
) -> Worker:
    """The worker of an assignment over store and ledger."""
    scenario = assignment.scenario
    return Worker(
        policy=assignment.design.policy(scenario),
        plan=FaultPlan(scenario, assignment.seed),
        store=store,
        ledger=ledger,
        tally=tally,
        writes=writes,
        board=board,
        output=bytes(scenario.output_bytes),
        die=die,
        disruptions=Disruptions(assignment.interventions) if assignment.interventions else None,
    )


def recount(store: Store, ledger: Ledger, redo: Redo | None, *, checkpoints: bool) -> Tally:
    """The tally of a lane that was recovered, with what the delivery under way has behind it."""
    tally = count(store, ledger)
    if redo is not None and not checkpoints:
        tally.open_steps = max(redo.step - 1, 0)
    return tally
