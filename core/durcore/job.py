"""run_job: a person's own steps on the same runner and store that the lab tests to destruction.

It is a step runner, not a workflow engine: one linear job, no waits for people, no fan-out. It does not lease: two
processes that run the same job at the same time will both run its steps, so a queue in front must hand it to one.
"""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from durcore.database import explained
from durcore.designs import Policy
from durcore.errors import Mistake, UnstorableOutput
from durcore.runner import Attempt, Save, Wait, deliver
from durcore.store import Claim, Store

STEPS_MAX = 255  # a checkpoint's key keeps eight bits for the step
BACKOFF_CAP_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a step may know beside its state. `key` is the same in every attempt: hand it to whatever has an effect."""

    job: str
    step: int
    attempt: int  # from 1, within this delivery

    @property
    def key(self) -> str:
        """The idempotency key of this step of this job: `invoice-17:1`."""
        return f"{self.job}:{self.step}"


Step = Callable[[Any, Context], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobReport:
    """How a job came to its end. `state` is the last step's output as JSON gives it back."""

    job: str
    state: Any
    delivery: int  # from 1: how often the job was taken up until it finished
    skipped_steps: int  # done in an earlier delivery, and not called again
    attempts: int  # calls of steps in this delivery


def run_job(
    name: str,
    steps: Sequence[Step],
    *,
    store: Store,
    state: Any = None,
    retries: int = 3,
    backoff_s: float = 0.5,
    sleep: Callable[[float], None] = time.sleep,
    jitter: Callable[[], float] = random.random,
) -> JobReport:
    """Run a job to its end, from its first step without a checkpoint; run it again after a crash and it resumes.

    Each step is called with the state that the step before returned (`state` for the first) and a Context. What it
    returns is stored as JSON before the next step begins, and every attempt sees what JSON gives back, so that a run
    that resumed and one that did not see the same. A step that raises is tried up to `retries` times more, after an
    exponential backoff with full jitter from `backoff_s` seconds up; the exception of its last try is raised again and
    the job stays resumable. A finished job calls nothing and reports its stored state.

    Raises Mistake for steps that cannot be run, UnstorableOutput, naming the step, for an output that JSON cannot
    hold, and StoreError where the store fails.
    """
    if not 1 <= len(steps) <= STEPS_MAX:
        raise Mistake(f"steps(={len(steps)} of them) must be between 1 and {STEPS_MAX}")
    if not math.isfinite(retries) or retries < 0 or retries != int(retries):
        raise Mistake(f"retries(={retries}) must be a whole number of at least 0")
    if not 0 <= backoff_s < math.inf:
        raise Mistake(f"backoff_s(={backoff_s}) must be at least 0, and finite")
    given = _stored(state, f"the state that job {name} begins with is")
    with explained(store.path):
        job = store.named_job(name)
        saved = store.saved_steps(job)
        if saved > len(steps):
            raise Mistake(f"job {name} has {saved} steps done, and only {len(steps)} were given")
        stored = store.output(job, saved) if saved else given
        state, deliveries = store.progress(job)
        if state == "finished" and saved == len(steps):
            return JobReport(job=name, state=json.loads(stored), delivery=deliveries, skipped_steps=saved, attempts=0)
        claim = store.begin(job)
    delivery = _Delivery(name, steps, store, claim, stored, sleep=sleep, jitter=jitter, backoff_s=backoff_s)
    return delivery.run(saved, retries)


class _Delivery:
    """One delivery of a named job in real time: it answers the runner with what the person's steps did."""

    def __init__(
        self,
        name: str,
        steps: Sequence[Step],
        store: Store,
        claim: Claim,
        stored: bytes,
        *,
        sleep: Callable[[float], None],
        jitter: Callable[[], float],
        backoff_s: float,
    ) -> None:
        self._name = name
        self._steps = steps
        self._store = store
        self._claim = claim
        self._stored = stored  # what the newest checkpoint holds, as JSON
        self._output = b""  # what the newest attempt returned, as JSON
        self._failure: Exception | None = None
        self._attempts = 0
        self._sleep = sleep
        self._jitter = jitter
        self._backoff_s = backoff_s

    def run(self, saved: int, retries: int) -> JobReport:
        policy = Policy(
            steps=len(self._steps), effect_step=0, deliveries=1, tries=retries + 1, checkpoints=True, guard="none"
        )
        runner = deliver(policy, saved)
        answer = True
        try:
            request = next(runner)
            while True:
                match request:
                    case Attempt(step, failures):
                        answer = self._attempt(step, failures)
                    case Save(step):
                        self._save(step)
                    case Wait(_, failures):
                        self._sleep(backoff(failures, self._backoff_s) * self._jitter())
                request = runner.send(answer)
        except StopIteration as end:
            completed = end.value
        return self._report(saved) if completed else self._give_up()

    def _attempt(self, step: int, failures: int) -> bool:
        self._attempts += 1
        function = self._steps[step - 1]
        try:
            # Made anew for each attempt: one that changed its state and then failed must not be seen by the next.
            output = function(json.loads(self._stored), Context(job=self._name, step=step, attempt=failures + 1))
        except Exception as error:  # noqa: BLE001  # whatever a step raises is a failure of the step, to be tried again
            self._failure = error
            return False
        called = getattr(function, "__name__", repr(function))
        try:
            self._output = _stored(output, f"step {step} ({called}) of job {self._name} returned")
        except UnstorableOutput:  # another try would return the same: the job waits for a better step
            with explained(self._store.path):
                self._store.redeliver(self._claim.job)
            raise
        return True

    def _save(self, step: int) -> None:
        with explained(self._store.path):
            self._store.save(self._claim.job, step, self._output)
        self._stored = self._output

    def _report(self, saved: int) -> JobReport:
        with explained(self._store.path):
            self._store.finish(self._claim.job)
        return JobReport(
            job=self._name,
            state=json.loads(self._stored),
            delivery=self._claim.delivery,
            skipped_steps=saved,
            attempts=self._attempts,
        )

    def _give_up(self) -> NoReturn:
        with explained(self._store.path):
            self._store.redeliver(self._claim.job)
        assert self._failure is not None
        raise self._failure


def _stored(state: Any, whose: str) -> bytes:
    """A state as JSON. UnstorableOutput where JSON cannot hold it."""
    try:
        return json.dumps(state, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise UnstorableOutput(f"{whose} what JSON cannot hold: {error}") from error


def backoff(failures: int, base_s: float) -> float:
    """The longest wait after the `failures`-th failure in a row: base x 2^(failures - 1), at most a minute."""
    return min(base_s * 2.0 ** min(failures - 1, 30), BACKOFF_CAP_S)
