"""Worker: claims deliveries, drives the runner, meets its faults. It decides nothing that a design decides.

It acts for the world as well, since somebody must: it bills a call and delivers an email in the ledger at the moment
the runner asks for one.

A worker can be killed at any instant, and another takes its place. What must be known then stands in the ledger's mark,
written before each attempt; `recover` is all that anyone does after a kill, whoever was killed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from time import perf_counter_ns
from typing import NamedTuple, NoReturn, Protocol

from durcore.designs import Ending, Policy
from durcore.errors import Crash
from durcore.faults import Fate, FaultPlan
from durcore.figures import Tally
from durcore.interventions import Disruptions
from durcore.latency import LatencyHistogram
from durcore.ledger import Ledger
from durcore.runner import Attempt, RecordKey, Request, Save, SendEmail, deliver
from durcore.scenario import CrashPoint
from durcore.store import Claim, Store

# Where a job stands, as a byte: the steps that it has behind it, 0 to 100, or how it ended; and a bit beside either.
FINISHED, MISSING, LOST, DEAD_LETTERED, DUPLICATED = 101, 102, 103, 104, 128


class WorkersStore(Protocol):
    """What a worker at work asks of a store; `Store` says what each does."""

    def claim(self) -> Claim | None: ...
    def finish(self, job: int) -> None: ...
    def redeliver(self, job: int) -> None: ...
    def lose(self, job: int) -> None: ...
    def dead_letter(self, job: int) -> None: ...
    def saved_steps(self, job: int) -> int: ...
    def save(self, job: int, step: int, output: bytes) -> None: ...
    def record_key(self, job: int, step: int, attempt: int) -> bool: ...


class WorkersLedger(Protocol):
    """What a worker at work asks of a ledger; `Ledger` says what each does."""

    def begin(self, job: int, delivery: int, step: int, failures: int) -> None: ...
    def bill(self, job: int, step: int) -> int: ...
    def deliver_email(self, job: int) -> int: ...
    def mark_crashed(self) -> None: ...
    def clear_mark(self) -> None: ...
    def extend_reach(self, ordinal: int) -> None: ...
    def delivery_begins(self, ordinal: int) -> None: ...
    def began(self) -> int: ...
    def reach(self) -> int: ...
    def emails(self, job: int) -> int: ...
    def calls(self, job: int) -> int: ...


class Redo(NamedTuple):
    """A delivery that a kill cut short: to be gone on with at the `failures`-th try (from 0) of a step.

    Step 0: from its beginning.
    """

    claim: Claim
    step: int
    failures: int


def unwind() -> NoReturn:
    """Die within the process: whatever the worker was doing is left as it stands."""
    raise Crash


@dataclass(slots=True, kw_only=True)
class Worker:
    """One worker of one lane, over an open store and ledger. `output` is what every checkpoint stores.

    `board` has a byte a job, where it writes down for whoever watches where that job stands.

    `die` ends a worker whose crash was drawn; it may raise Crash, or kill the process. `disruptions` is what is done to
    the lane, None for nothing; it may be another from one call to the next.
    """

    policy: Policy
    plan: FaultPlan
    store: WorkersStore
    ledger: WorkersLedger
    tally: Tally
    writes: LatencyHistogram
    board: memoryview
    output: bytes
    die: Callable[[], NoReturn] = unwind
    disruptions: Disruptions | None = None

    def work(self, redo: Redo | None = None) -> Generator[None, None, None]:
        """Work until the queue is empty. Yields just before each model call, where a lane may pause or end."""
        if redo is not None:
            yield from self._deliver(*redo)
        while (claim := self.store.claim()) is not None:
            if claim.delivery == 2:
                self.tally.resumed_jobs += 1
            yield from self._deliver(claim)

    def _deliver(self, claim: Claim, step: int = 0, failures: int = 0) -> Generator[None, None, None]:
        saved = self.store.saved_steps(claim.job) if self.policy.checkpoints else 0
        runner = deliver(self.policy, saved)
        try:
            completed = yield from self._drive(claim, runner, step, failures)
        except Crash:
            completed = False
        self.end(claim, completed=completed)

    def _drive(
        self, claim: Claim, runner: Generator[Request, bool, bool], step: int, failures: int
    ) -> Generator[None, None, bool]:
        """Do what the runner asks, from this try on, until its delivery is over; die where the fault plan says so."""
        job, delivery = claim
        tally, checkpoints = self.tally, self.policy.checkpoints
        begin, bill, fate_of = self.ledger.begin, self.ledger.bill, self.plan.fate
        n = 0
        # The first attempt of a delivery that a kill took back keeps its ordinal, so the ledger has noted it already.
        opening = step == 0 or self.ledger.began() == tally.model_calls + 1
        cut = False  # by a deploy, in its first attempt
        dying: CrashPoint | None = None  # where the present attempt is to end in a crash
        answer = True
        try:
            request = _replayed(runner, step, failures)
            while True:
                kind = type(request)
                if kind is Attempt:
                    if dying:
                        self._crash()
                    yield
                    if opening:
                        opening, cut = False, self._open_delivery()
                    begin(job, delivery, *request)
                    n = bill(job, request.step)
                    tally.model_calls += 1
                    fate = fate_of(job, request.step, n)
                    if self.disruptions is not None:
                        fate = self.disruptions.fate(tally.model_calls, fate, cut=cut)
                    answer = fate is not Fate.TRANSIENT
                    if fate is Fate.CRASH:
                        dying = self._crash_point(job, request.step, n)
                    elif answer and not checkpoints:
                        tally.open_steps += 1
                        self._stands(job, request.step)
                elif kind is Save:
                    if dying == "after-work":
                        self._crash()
                    self._save(job, request.step)
                    if dying:
                        self._crash()
                elif kind is RecordKey:
                    answer = self.store.record_key(job, request.step, n)
                    if dying == "after-key":
                        self._crash()
                elif kind is SendEmail:
                    self._send_email(job)
                # Wait is for a worker in real time: a lab's clock is the count of its calls.
                request = runner.send(answer)
        except StopIteration as end:
            if dying:
                self._crash()
            completed: bool = end.value
            return completed

    def _open_delivery(self) -> bool:
        """Note that a delivery begins with the next attempt; tell whether a deploy cuts it there."""
        ledger, ordinal = self.ledger, self.tally.model_calls + 1
        reach = ledger.reach()
        if self.disruptions is not None:
            reach = self.disruptions.reach(ordinal, min(ledger.began(), ordinal - 1), reach)
            ledger.extend_reach(reach)
        ledger.delivery_begins(ordinal)
        return ordinal < reach

    def _crash_point(self, job: int, step: int, n: int) -> CrashPoint:
        """Where this attempt crashes, once the work before that point is done; at once where there is none."""
        point = self.plan.crash_point(job, step, n)
        records_key = self.policy.guard == "key" and step == self.policy.effect_step
        if point == "before-work" or (point == "after-key" and not records_key):
            self._crash()
        return point

    def _crash(self) -> NoReturn:
        self.ledger.mark_crashed()
        self.die()

    def _save(self, job: int, step: int) -> None:
        start = perf_counter_ns()
        self.store.save(job, step, self.output)
        self.writes.record(perf_counter_ns() - start)
        self.tally.checkpoint_writes += 1
        self.tally.open_steps += 1
        self._stands(job, step)

    def _send_email(self, job: int) -> None:
        self.tally.emails_delivered += 1
        if self.ledger.deliver_email(job) == 2:
            self.tally.duplicate_email_jobs += 1
            self.board[job - 1] |= DUPLICATED

    def _stands(self, job: int, state: int) -> None:
        self.board[job - 1] = self.board[job - 1] & DUPLICATED | state

    def end(self, claim: Claim, *, completed: bool) -> None:
        """End a delivery: make the transition, then count it. A tally never runs ahead of its store."""
        job, tally = claim.job, self.tally
        ending: Ending = self.policy.ending(completed=completed, delivery=claim.delivery)
        behind = self._steps_behind(job, ending)
        if ending == "finished":
            self.store.finish(job)
            tally.finished += 1
            missing = self.ledger.emails(job) == 0
            tally.missing_email_jobs += missing
            self._stands(job, MISSING if missing else FINISHED)
        elif ending == "redelivered":
            self.store.redeliver(job)
            tally.redeliveries += 1
            if not self.policy.checkpoints:
                self._stands(job, 0)
        elif ending == "lost":
            self.store.lose(job)
            tally.lost += 1
            tally.lost_job_calls += self.ledger.calls(job)
            self._stands(job, LOST)
        else:
            self.store.dead_letter(job)
            tally.dead_lettered += 1
            tally.lost_job_calls += self.ledger.calls(job)
            self._stands(job, DEAD_LETTERED)
        tally.open_steps -= behind
        self.ledger.clear_mark()

    def _steps_behind(self, job: int, ending: Ending) -> int:
        """How many steps this job no longer has behind it as an open one, when its delivery ends so."""
        if not self.policy.checkpoints:
            return self.tally.open_steps  # all of them: a lane has one delivery under way
        if ending == "redelivered":
            return 0
        return self.policy.steps if ending == "finished" else self.store.saved_steps(job)


def recover(worker: Worker, store: Store, ledger: Ledger) -> Redo | None:
    """Bring store and ledger to where the attempt in flight began; return the delivery that it belongs to, if any.

    A drawn crash is not undone: its delivery has ended, and the worker makes the transition. A kill within this
    function is recovered from by calling it again.
    """
    mark = ledger.mark()
    claim = store.running(mark.job)
    if claim is None or claim != (mark.job, mark.delivery):
        ledger.clear_mark()  # of a delivery that is over
        return None if claim is None else Redo(claim, 0, 0)
    if mark.crashed:
        worker.end(claim, completed=False)
        return None
    n = ledger.take_call_back(mark)
    ledger.take_email_back(mark)
    store.undo(mark.job, mark.step, n)
    return Redo(claim, mark.step, mark.failures)


def _replayed(runner: Generator[Request, bool, bool], step: int, failures: int) -> Request:
    """The runner's request from which this delivery goes on: its first, or the `failures`-th try of `step`.

    What went before is answered as it was when it happened, and not done again: a smaller step's work was done, a
    smaller try of the same step had failed. (A skipped or repeated answer about a key changes no later request.)
    """
    request = next(runner)
    while step and not (isinstance(request, Attempt) and request == (step, failures)):
        request = runner.send(request.step < step)
    return request
