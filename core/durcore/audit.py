"""Audit: hold what a lane has left on disk against the fault plan, job by job, and name what was written over.

The same faults give the same books. So each job is worked again in memory, by the worker that a lane uses, for as many
deliveries as the store says that it had; then store and ledger must say of it what this memory does. Where somebody has
intervened, which goes by the order of the lane's attempts, it is the whole lane that is worked again (replay.py).
"""

from __future__ import annotations

from collections.abc import Iterator

from durcore.errors import Damaged, LedgerDamaged, StoreDamaged
from durcore.figures import Tally
from durcore.latency import WORDS, LatencyHistogram
from durcore.ledger import Ledger
from durcore.replay import LaneMemory, Standstill, replay
from durcore.shift import Assignment, worker_on
from durcore.store import Claim, Store, Trace
from durcore.worker import Redo, Worker

OVER = "the file was written over"
TELL_EVERY = 256  # jobs between two looks at whatever else there is to do


def audit(assignment: Assignment, store: Store, ledger: Ledger, redo: Redo | None) -> Iterator[int]:
    """Check every job of a lane that was recovered, up to the attempt that it goes on with; yield how many are done.

    Raises StoreDamaged or LedgerDamaged, naming file, job and the first thing that is wrong with it.
    """
    scenario = assignment.scenario
    if wrong := store.count_wrong_outputs(bytes(scenario.output_bytes)):
        raise StoreDamaged(
            f"{assignment.store}: {wrong:,} checkpoints hold what no step gave them: it was written over"
        )
    if assignment.interventions:
        yield from _audit_in_order(assignment, store, ledger, redo)
        return
    if ledger.reach():
        raise LedgerDamaged(f"{assignment.ledger} tells of a deploy, and nothing was done to this lane: {OVER}")
    unseen = store.count_checkpoints()
    memory = _Memory(scenario.steps, scenario.effect_step)
    writes = LatencyHistogram(memoryview(bytearray(WORDS * 8)).cast("Q"))
    board = memoryview(bytearray(scenario.jobs))
    worker = worker_on(assignment, memory, memory, writes, board, Tally())
    job = 0
    for job, trace in enumerate(store.traces(scenario.effect_step), start=1):
        memory.live_through(worker, job, trace.deliveries, redo)
        unseen -= trace.checkpoints
        if damage := _damage(assignment, ledger, trace, memory.trace(), memory.calls_of_steps, memory.emails_delivered):
            raise damage
        if job % TELL_EVERY == 0:
            yield job
    _check_nothing_is_left(assignment, job, unseen)


def _audit_in_order(assignment: Assignment, store: Store, ledger: Ledger, redo: Redo | None) -> Iterator[int]:
    """As above, of a lane in which somebody has intervened. Memory grows with the jobs.

    Where something was written over, it may be what says how far the lane has come. The replay is then stopped where
    other things say that it is, and the one that the fewest jobs contradict tells what was written over.
    """
    traces = list(store.traces(assignment.scenario.effect_step))
    calls = ledger.total_calls()
    by_deliveries = Standstill(deliveries=sum(trace.deliveries for trace in traces))
    stops = [Standstill(redo=redo) if redo else by_deliveries, by_deliveries]
    stops += [Standstill(calls=calls, between=between) for between in (False, True)]
    least: list[Damaged] | None = None
    for until in stops:
        memory = LaneMemory(assignment, until)
        yield from replay(memory, assignment)
        found = [
            damage
            for trace in traces
            if trace.job <= assignment.scenario.jobs
            and (
                damage := _damage(
                    *(assignment, ledger, trace, memory.trace(trace.job)),
                    *(memory.calls_of_steps(trace.job), memory.emails(trace.job)),
                )
            )
        ]
        if not found and not memory.may_have_noted(ledger.began(), ledger.reach()):
            found = [LedgerDamaged(f"{assignment.ledger} tells of other deliveries than its lane has begun: {OVER}")]
        least = found if least is None or len(found) < len(least) else least
        if not least:
            break
    if least:
        raise least[0]
    _check_nothing_is_left(assignment, len(traces), store.count_checkpoints() - sum(t.checkpoints for t in traces))


def _check_nothing_is_left(assignment: Assignment, jobs: int, checkpoints: int) -> None:
    due = assignment.scenario.jobs
    if checkpoints or jobs != due:
        raise StoreDamaged(f"{assignment.store}: {jobs:,} jobs of {due:,}, and {checkpoints:,} checkpoints of none")


def _damage(
    assignment: Assignment, ledger: Ledger, found: Trace, due: Trace, calls_due: list[int], emails_due: int
) -> Damaged | None:
    """What is wrong with what store and ledger say of a job, None where it is what is due."""
    if found != due:
        return StoreDamaged(f"{assignment.store}: {_difference(found, due, assignment.seed)}")
    job = due.job
    calls, emails = ledger.calls_of_steps(job).tolist(), ledger.emails(job)
    if (calls, emails) == (calls_due, emails_due):
        return None
    return LedgerDamaged(
        f"{assignment.ledger}: job {job} has {sum(calls):,} calls and {emails:,} emails, and the faults of seed"
        f" {assignment.seed} give it {sum(calls_due):,} and {emails_due:,} by now: {OVER}"
    )


def _difference(found: Trace, due: Trace, seed: int) -> str:
    name, here, there = next(
        (name, here, there) for name, here, there in zip(Trace._fields, found, due, strict=True) if here != there
    )
    return (
        f"job {due.job} has {name} {here} after {due.deliveries} deliveries, and the faults of seed {seed} give it"
        f" {there}: {OVER}"
    )


class _Reached(Exception):
    """The attempt that the lane goes on with: what is further on has not happened yet."""


class _Memory:
    """Store and ledger of a single job, in memory: just what a worker asks of them."""

    def __init__(self, steps: int, effect_step: int) -> None:
        self._steps = steps
        self._effect_step = effect_step
        self.live_through_none(0)

    def live_through_none(self, job: int) -> None:
        """Be the memory of a job to which nothing has happened."""
        self._job = job
        self._state = "queued"
        self._deliveries = 0
        self._saved = 0
        self._key: int | None = None
        self.calls_of_steps = [0] * self._steps
        self.emails_delivered = 0

    def live_through(self, worker: Worker, job: int, deliveries: int, redo: Redo | None) -> None:
        """Have a job delivered so many times, in its last delivery only up to where a lane goes on with it."""
        self.live_through_none(job)
        self._due = deliveries
        self._redo = redo if redo is not None and redo.claim.job == job else None
        if deliveries:
            try:
                for _ in worker.work():
                    pass
            except _Reached:
                return

    def trace(self) -> Trace:
        """What the job has left in a store."""
        return Trace(self._job, self._state, self._deliveries, self._saved, self._saved, self._key)

    # As a store

    def claim(self) -> Claim | None:
        if self._state != "queued" or self._deliveries == self._due:
            return None
        self._state = "running"
        self._deliveries += 1
        claim = Claim(self._job, self._deliveries)
        if self._redo == (claim, 0, 0):
            raise _Reached
        return claim

    def finish(self, job: int) -> None:
        self._state = "finished"

    def redeliver(self, job: int) -> None:
        self._state = "queued"

    def lose(self, job: int) -> None:
        self._state = "lost"

    def dead_letter(self, job: int) -> None:
        self._state = "dead_lettered"

    def saved_steps(self, job: int) -> int:
        return self._saved

    def save(self, job: int, step: int, output: bytes) -> None:
        self._saved = step

    def record_key(self, job: int, step: int, attempt: int) -> bool:
        if self._key is not None:
            return False
        self._key = attempt
        return True

    # As a ledger

    def begin(self, job: int, delivery: int, step: int, failures: int) -> None:
        if self._redo == (Claim(job, delivery), step, failures):
            raise _Reached

    def bill(self, job: int, step: int) -> int:
        n = self.calls_of_steps[step - 1]
        self.calls_of_steps[step - 1] = n + 1
        return n

    def deliver_email(self, job: int) -> int:
        self.emails_delivered += 1
        return self.emails_delivered

    def delivery_begins(self, ordinal: int) -> None: ...

    def extend_reach(self, ordinal: int) -> None: ...

    def began(self) -> int:
        return 0

    def reach(self) -> int:
        return 0

    def mark_crashed(self) -> None: ...

    def clear_mark(self) -> None: ...

    def emails(self, job: int) -> int:
        return self.emails_delivered

    def calls(self, job: int) -> int:
        return sum(self.calls_of_steps)
