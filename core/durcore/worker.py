"""Worker: claims deliveries, drives the runner, meets its faults. It decides nothing that a design decides.

It acts for the world as well, since somebody must: it bills a call and delivers an email in the ledger at the moment
the runner asks for one.
"""

from collections.abc import Generator
from dataclasses import dataclass
from time import perf_counter_ns

from durcore.designs import Ending, Policy
from durcore.errors import Crash
from durcore.faults import Fate, FaultPlan
from durcore.figures import Tally
from durcore.latency import LatencyHistogram
from durcore.ledger import Ledger
from durcore.runner import Attempt, RecordKey, Request, Save, SendEmail, deliver
from durcore.scenario import CrashPoint
from durcore.store import Claim, Store


@dataclass(slots=True, kw_only=True)
class Worker:
    """One worker of one lane, over an open store and ledger. `output` is what every checkpoint stores."""

    policy: Policy
    plan: FaultPlan
    store: Store
    ledger: Ledger
    tally: Tally
    writes: LatencyHistogram
    output: bytes

    def work(self) -> Generator[None, None, None]:
        """Work until the queue is empty. Yields just before each model call, where a lane may pause or end."""
        while (claim := self.store.claim()) is not None:
            yield from self._deliver(claim)

    def _deliver(self, claim: Claim) -> Generator[None, None, None]:
        saved = self.store.saved_steps(claim.job) if self.policy.checkpoints else 0
        if claim.delivery == 2:
            self.tally.resumed_jobs += 1
        already_open = self.tally.open_steps - saved
        try:
            completed = yield from self._drive(claim.job, deliver(self.policy, saved))
        except Crash:
            completed = False
        ending = self.policy.ending(completed=completed, delivery=claim.delivery)
        if ending != "redelivered" or not self.policy.checkpoints:
            self.tally.open_steps = already_open
        self._end(claim.job, ending)

    def _drive(self, job: int, runner: Generator[Request, bool, bool]) -> Generator[None, None, bool]:
        """Do what the runner asks until its delivery is over; raise Crash where the fault plan says that it dies."""
        tally, checkpoints = self.tally, self.policy.checkpoints
        bill, fate_of = self.ledger.bill, self.plan.fate
        n = 0
        dying: CrashPoint | None = None  # where the present attempt is to end in a crash
        answer = True
        try:
            request = next(runner)
            while True:
                kind = type(request)
                if kind is Attempt:
                    if dying:
                        raise Crash
                    yield
                    n = bill(job, request.step)
                    tally.model_calls += 1
                    fate = fate_of(job, request.step, n)
                    answer = fate is not Fate.TRANSIENT
                    if fate is Fate.CRASH:
                        dying = self._crash_point(job, request.step, n)
                    elif answer and not checkpoints:
                        tally.open_steps += 1
                elif kind is Save:
                    if dying == "after-work":
                        raise Crash
                    self._save(job, request.step)
                    if dying:
                        raise Crash
                elif kind is RecordKey:
                    answer = self.store.record_key(job, request.step, n)
                    if dying == "after-key":
                        raise Crash
                elif kind is SendEmail:
                    self._send_email(job)
                # Wait is for a worker in real time: a lab's clock is the count of its calls.
                request = runner.send(answer)
        except StopIteration as end:
            if dying:
                raise Crash from None
            completed: bool = end.value
            return completed

    def _crash_point(self, job: int, step: int, n: int) -> CrashPoint:
        """Where this attempt crashes, once the work before that point is done; at once where there is none."""
        point = self.plan.crash_point(job, step, n)
        records_key = self.policy.guard == "key" and step == self.policy.effect_step
        if point == "before-work" or (point == "after-key" and not records_key):
            raise Crash
        return point

    def _save(self, job: int, step: int) -> None:
        start = perf_counter_ns()
        self.store.save(job, step, self.output)
        self.writes.record(perf_counter_ns() - start)
        self.tally.checkpoint_writes += 1
        self.tally.open_steps += 1

    def _send_email(self, job: int) -> None:
        self.tally.emails_delivered += 1
        if self.ledger.deliver_email(job) == 2:
            self.tally.duplicate_email_jobs += 1

    def _end(self, job: int, ending: Ending) -> None:
        """Make the transition, then count it: a tally never runs ahead of its store."""
        tally = self.tally
        if ending == "finished":
            self.store.finish(job)
            tally.finished += 1
            if self.ledger.emails(job) == 0:
                tally.missing_email_jobs += 1
        elif ending == "redelivered":
            self.store.redeliver(job)
            tally.redeliveries += 1
        elif ending == "lost":
            self.store.lose(job)
            tally.lost += 1
            tally.lost_job_calls += self.ledger.calls(job)
        else:
            self.store.dead_letter(job)
            tally.dead_lettered += 1
            tally.lost_job_calls += self.ledger.calls(job)
