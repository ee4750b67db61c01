"""Replay: a whole lane worked again in memory, in its order, up to where it stands on disk.

What is done to a lane goes by the ordinals of its attempts, so a job cannot be worked by itself any more, as the audit
of a lane left alone does. It is the lane's own worker that works, over a store and a ledger that are arrays.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from durcore.figures import Tally
from durcore.interventions import Disruptions
from durcore.latency import WORDS, LatencyHistogram
from durcore.shift import Assignment, worker_on
from durcore.store import Claim, Trace
from durcore.worker import Redo

TELL_EVERY = 4096  # calls between two looks at whatever else there is to do


@dataclass(frozen=True, slots=True, kw_only=True)
class Standstill:
    """Where a replay stops: at the attempt that the lane goes on with, or after so many deliveries, or calls.

    After `calls` it stops before the next attempt, or where `between` deliveries before the next claim. -1: never.
    """

    redo: Redo | None = None
    deliveries: int = -1
    calls: int = -1
    between: bool = False


class _Reached(Exception):
    """The standstill: what is further on has not happened yet."""


class LaneMemory:
    """Store and ledger of a lane in memory: just what a worker asks of them, and what an audit asks of it."""

    def __init__(self, assignment: Assignment, until: Standstill) -> None:
        jobs, self._steps = assignment.scenario.jobs, assignment.scenario.steps
        self._until = until
        self._queue = deque(range(1, jobs + 1))
        self._states = ["queued"] * jobs
        self._deliveries = array("I", bytes(4 * jobs))
        self._saved = bytearray(jobs)
        self._keys: dict[int, int] = {}
        self._calls = array("I", bytes(4 * jobs * self._steps))
        self._emails = array("I", bytes(4 * jobs))
        self._claims = 0
        self._began = self._reach = 0
        self._before = (0, 0)  # what began and reach were before the newest delivery
        self.total_calls = 0
        self._disruptions = Disruptions(assignment.interventions)

    def trace(self, job: int) -> Trace:
        """What a job has left in a store."""
        saved = self._saved[job - 1]
        return Trace(job, self._states[job - 1], self._deliveries[job - 1], saved, saved, self._keys.get(job))

    def calls_of_steps(self, job: int) -> list[int]:
        """Calls that were billed for each step of a job."""
        return self._calls[(job - 1) * self._steps : job * self._steps].tolist()

    def may_have_noted(self, began: int, reach: int) -> bool:
        """Whether a ledger may say so of its newest delivery: a kill may leave it noted, half or not at all."""
        following = self.total_calls + 1
        at, to = self._before if self._began == following else (self._began, self._reach)
        noted = self._disruptions.reach(following, at, to)
        return began in (at, following) and reach in (to, noted)

    # As a store

    def claim(self) -> Claim | None:
        until = self._until
        if not self._queue or self._claims == until.deliveries:
            return None
        if until.between and self.total_calls == until.calls:
            return None
        job = self._queue.popleft()
        self._claims += 1
        self._states[job - 1] = "running"
        self._deliveries[job - 1] += 1
        claim = Claim(job, self._deliveries[job - 1])
        if until.redo == (claim, 0, 0):
            raise _Reached
        return claim

    def finish(self, job: int) -> None:
        self._states[job - 1] = "finished"

    def redeliver(self, job: int) -> None:
        self._states[job - 1] = "queued"
        self._queue.append(job)

    def lose(self, job: int) -> None:
        self._states[job - 1] = "lost"

    def dead_letter(self, job: int) -> None:
        self._states[job - 1] = "dead_lettered"

    def saved_steps(self, job: int) -> int:
        return self._saved[job - 1]

    def save(self, job: int, step: int, output: bytes) -> None:
        self._saved[job - 1] = step

    def record_key(self, job: int, step: int, attempt: int) -> bool:
        if job in self._keys:
            return False
        self._keys[job] = attempt
        return True

    # As a ledger

    def begin(self, job: int, delivery: int, step: int, failures: int) -> None:
        if self._until.redo == (Claim(job, delivery), step, failures) or self.total_calls == self._until.calls:
            raise _Reached

    def bill(self, job: int, step: int) -> int:
        at = (job - 1) * self._steps + step - 1
        n = self._calls[at]
        self._calls[at] = n + 1
        self.total_calls += 1
        return n

    def deliver_email(self, job: int) -> int:
        self._emails[job - 1] += 1
        return self._emails[job - 1]

    def extend_reach(self, ordinal: int) -> None:
        self._before = (self._began, self._reach)
        self._reach = ordinal

    def delivery_begins(self, ordinal: int) -> None:
        self._began = ordinal

    def began(self) -> int:
        return self._began

    def reach(self) -> int:
        return self._reach

    def mark_crashed(self) -> None: ...

    def clear_mark(self) -> None: ...

    def emails(self, job: int) -> int:
        return self._emails[job - 1]

    def calls(self, job: int) -> int:
        return sum(self.calls_of_steps(job))


def replay(memory: LaneMemory, assignment: Assignment) -> Iterator[int]:
    """Work a lane in memory up to its standstill; yield how many calls it has made, now and then."""
    writes = LatencyHistogram(memoryview(bytearray(WORDS * 8)).cast("Q"))
    worker = worker_on(assignment, memory, memory, writes, memoryview(bytearray(assignment.scenario.jobs)), Tally())
    try:
        for _ in worker.work():
            if memory.total_calls % TELL_EVERY == 0:
                yield memory.total_calls
    except _Reached:
        return
