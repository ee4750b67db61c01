"""One delivery of one job, without IO: the runner says what happens next and is told what came back.

It neither calls a model, nor writes a row, nor sleeps, nor reads a clock. Whoever drives it does: a lab's worker under
injected faults, or `run_job` with a person's own steps. It is not the queue: what becomes of the job after the delivery
is `Policy.ending`'s to say.
"""

from collections.abc import Generator
from typing import NamedTuple

from durcore.designs import Policy


class Attempt(NamedTuple):
    """Try `step`; answer True when its work is done, False when it failed. `failures` went before in this delivery."""

    step: int
    failures: int


class RecordKey(NamedTuple):
    """Record the effect's idempotency key; answer True when it is new, False when it was there."""

    step: int


class SendEmail(NamedTuple):
    """Do the effect that cannot be taken back."""

    step: int


class Save(NamedTuple):
    """Write the checkpoint of `step`, its output with it."""

    step: int


class Wait(NamedTuple):
    """Back off after the `failures`-th failure of `step` in this delivery."""

    step: int
    failures: int


Request = Attempt | RecordKey | SendEmail | Save | Wait


def deliver(policy: Policy, saved: int) -> Generator[Request, bool, bool]:
    """Run a job from its first step without a checkpoint; return True when every step is done, False when one gave up.

    `saved` is the number of steps with a checkpoint (0: from the start).
    """
    for step in range(saved + 1, policy.steps + 1):
        failures = 0
        while not (yield Attempt(step, failures)):
            failures += 1
            if failures == policy.tries:
                return False
            yield Wait(step, failures)
        if step == policy.effect_step:
            yield from guarded_effect(policy, step)
        if policy.checkpoints:
            yield Save(step)
    return True


def guarded_effect(policy: Policy, step: int) -> Generator[Request, bool, None]:
    """The effect of `step` under the policy's guard: the key goes first, and a key that is there skips the send."""
    if policy.guard == "key" and not (yield RecordKey(step)):
        return
    yield SendEmail(step)
