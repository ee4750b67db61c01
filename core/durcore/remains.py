"""Remains: what an earlier life of a lane has left in its directory, and whether a lane can go on from it.

The order in which a lane makes things decides: ledger, store, every job in the queue, and only then the first call. So
a lane whose queue is not full has called nothing, and begins anew without loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import msgspec

from durcore.database import check, explained, is_there
from durcore.errors import Damaged, LedgerDamaged, LedgerError, Mistake, StoreDamaged
from durcore.figures import Tally
from durcore.interventions import Intervention, applied
from durcore.latency import Latency
from durcore.ledger import Ledger
from durcore.live import LiveFigures
from durcore.shift import Assignment, recount, worker_on
from durcore.store import Store
from durcore.worker import Redo, recover

RESULT = "result.json"
RESULT_BYTES = 1 << 16  # at the most
LONGEST_RUN_S = 1e9  # what claims to have taken longer was written over


class LaneResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a finished lane leaves: its tally, counted from ledger and store, its timings, and what was done to it."""

    tally: Tally
    checkpoint_write_us: Latency | None
    elapsed_s: float
    workers_killed: int
    interventions: tuple[Intervention, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Remains:
    """The directory of an assignment as it was found. `begun`: a call may have been made, so nothing may be lost."""

    assignment: Assignment
    begun: bool

    @classmethod
    def of(cls, assignment: Assignment) -> Self:
        """Look at an assignment's directory. Raises Damaged where calls were made and the store no longer has them."""
        path = assignment.store
        # A rollback journal is only there before the log is, thus before the first call. It is not played back: one
        # that a stranger has written can name any file, and SQLite would remove that.
        journal = Path(f"{path}-journal")
        there = is_there(path) and not journal.exists()
        queued = 0
        if there:
            with explained(path):
                check(path, from_a_stranger=True)
                with assignment.reopen_store() as store:
                    first, queued = store.job_numbers()
            if first != 1 or queued > assignment.scenario.jobs:
                raise StoreDamaged(
                    f"{path} has jobs {first:,} to {queued:,}, and its run 1 to {assignment.scenario.jobs:,}"
                )
        begun = queued == assignment.scenario.jobs
        if not begun and _calls(assignment.ledger):
            if journal.exists():
                raise StoreDamaged(f"{journal} is not of this run, which has a write-ahead log; it is not played back")
            lost = f"has lost its jobs: was {path.name}-wal deleted?" if there else "is gone"
            raise StoreDamaged(f"{path} {lost}")
        return cls(assignment=assignment, begun=begun)

    def clear_away(self) -> None:
        """Remove what was made before the first call."""
        for path in (self.assignment.ledger, self.assignment.directory / RESULT):
            path.unlink(missing_ok=True)
        for suffix in ("", "-wal", "-shm", "-journal"):
            Path(f"{self.assignment.store}{suffix}").unlink(missing_ok=True)

    @contextmanager
    def recovered(self, live: LiveFigures) -> Iterator[tuple[Store, Ledger, Redo | None, Tally]]:
        """Store and ledger at the boundary of an attempt; the delivery to go on with, if any; the tally up to there."""
        assignment, scenario = self.assignment, self.assignment.scenario
        ledger = Ledger.open(assignment.ledger)
        if (ledger.jobs, ledger.steps) != (scenario.jobs, scenario.steps):
            raise LedgerDamaged(f"{assignment.ledger} is of another run")
        with explained(assignment.store), assignment.reopen_store() as store:
            redo = recover(
                worker_on(assignment, store, ledger, live.writes, memoryview(bytearray(scenario.jobs)), Tally()),
                store,
                ledger,
            )
            tally = recount(store, ledger, redo, checkpoints=assignment.design.checkpoints)
            _forget_impossible_timings(live, tally)
            yield store, ledger, redo, tally
        ledger.close()

    def result(self, tally: Tally) -> LaneResult | None:
        """The result of a lane that had finished. Raises Damaged where it is none, or not that of this tally."""
        path = self.assignment.directory / RESULT
        if not path.exists():
            return None
        try:
            with path.open("rb") as file:
                result = msgspec.json.decode(file.read(RESULT_BYTES), type=LaneResult)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError, Mistake):
            raise Damaged(f"{path} is not the result of a lane: it was written over") from None
        if not _possible(result):
            raise Damaged(f"{path} has timings that cannot be: it was written over")
        if result.interventions != applied(self.assignment.interventions, tally.model_calls):
            raise Damaged(f"{path} has other interventions than were made in this lane: it was written over")
        if result.tally != tally or tally.ended != self.assignment.scenario.jobs:
            raise Damaged(f"{path} is not what {self.assignment.ledger} and {self.assignment.store.name} add up to")
        return result


def write_result(assignment: Assignment, result: LaneResult) -> None:
    """Leave the result, whole or not at all."""
    path = assignment.directory / RESULT
    draft = path.with_suffix(".new")
    draft.write_bytes(msgspec.json.encode(result))
    draft.replace(path)


def _calls(path: Path) -> int:
    """Calls that the ledger at `path` has, 0 where there is none that can be read."""
    try:
        ledger = Ledger.open(path)
    except LedgerError:
        return 0
    calls = ledger.total_calls()
    ledger.close()
    return calls


def _forget_impossible_timings(live: LiveFigures, tally: Tally) -> None:
    """Timings are no figures, and are taken as they are, but not where somebody has written over them."""
    elapsed_s, workers_killed = live.timings()
    found = LaneResult(
        tally=tally, checkpoint_write_us=live.latency(), elapsed_s=elapsed_s, workers_killed=workers_killed
    )
    if not _possible(found):
        live.restart_timings()


def _possible(result: LaneResult) -> bool:
    """Whether timings can be those of this tally. A kill may leave a write that was taken back, or was not counted."""
    longest_us = LONGEST_RUN_S * 1e6
    latency, tally = result.checkpoint_write_us, result.tally
    writes = latency is None or (
        0 < latency.count <= 2 * tally.checkpoint_writes + 1000
        and all(0 <= us <= longest_us for us in (latency.mean, latency.median, latency.p99, latency.max))
        and latency.mean * latency.count <= longest_us
    )
    return writes and 0 <= result.elapsed_s <= LONGEST_RUN_S and 0 <= result.workers_killed <= tally.model_calls
