"""The world's own books: calls billed, emails received. No design reads them.

A memory-mapped file beside the store, not in it: a rollback must not erase what a customer saw. A worker adds to it on
behalf of the model provider and the mail server; the fault plan takes its n from it, since it survives the worker.

At its head stands the mark of the attempt in flight, one aligned word that is written in one store, so that a kill at
any instant leaves it whole. It says what the counts were before the attempt, by their parity: whoever comes after a
kill can take back what the attempt added, and nothing else.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections import Counter
from pathlib import Path
from typing import NamedTuple, Self

from durcore.errors import LedgerDamaged, LedgerError, advised
from durcore.scenario import PARAMETERS

MAGIC = b"durledg2"
HEADER = struct.Struct("<8sQQ")  # magic, jobs, steps; behind it the mark, and where deliveries began and deploys reach
MARK_AT = HEADER.size
BEGAN_AT = MARK_AT + 8
HEADER_BYTES = 64
EMAIL_BYTES = 2  # a job's emails: at most one a delivery, and there are at most 1,001
CALL_BYTES = 4  # a step's calls: 100 tries x 1,001 deliveries overflow 16 bits
COUNT_MAX, EMAILS_MAX = 2**32 - 1, 2**16 - 1
CRASHED = 1
NONE_IN_FLIGHT = 0


class Mark(NamedTuple):
    """The attempt in flight: the `failures`-th try (from 0) at a step, in a delivery of a job.

    `odd_calls` and `odd_emails` are the parities of the step's calls and the job's emails before it. `crashed`: the
    attempt is at its end, and it was a drawn crash.
    """

    job: int
    delivery: int
    step: int
    failures: int
    odd_calls: int
    odd_emails: int
    crashed: bool

    @classmethod
    def of(cls, word: int) -> Mark:
        """The mark that `word` packs; job 0 where no attempt is in flight."""
        return cls(
            job=word >> 40,
            delivery=word >> 24 & 0xFFFF,
            step=word >> 16 & 0xFF,
            failures=word >> 8 & 0xFF,
            odd_calls=word >> 2 & 1,
            odd_emails=word >> 1 & 1,
            crashed=bool(word & CRASHED),
        )


class Ledger:
    """What the outside world saw of `jobs` jobs of `steps` steps, both counted from 1."""

    def __init__(self, path: Path, map_: mmap.mmap, jobs: int, steps: int) -> None:
        calls_at = _calls_at(jobs)
        whole = memoryview(map_)
        self.path = path
        self.jobs = jobs
        self.steps = steps
        self._map = map_
        self._mark = whole[MARK_AT : MARK_AT + 8].cast("Q")
        self._deliveries = whole[BEGAN_AT : BEGAN_AT + 16].cast("Q")
        self._emails = whole[HEADER_BYTES : HEADER_BYTES + jobs * EMAIL_BYTES].cast("H")
        self._calls = whole[calls_at : calls_at + jobs * steps * CALL_BYTES].cast("I")

    @classmethod
    def create(cls, path: Path, *, jobs: int, steps: int) -> Self:
        """Make an empty ledger, its file allocated in full: a full disk is an error here, not a SIGBUS later."""
        try:
            with path.open("xb+") as file:
                make_room(path, file.fileno(), ledger_bytes(jobs, steps))
                file.write(HEADER.pack(MAGIC, jobs, steps))
                file.flush()
                return cls(path, mmap.mmap(file.fileno(), 0), jobs, steps)
        except OSError as error:
            raise LedgerError(f"{path} cannot be made: {advised(error)}") from error

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open the ledger at `path`. Raises LedgerDamaged where it is not one or not whole."""
        try:
            with path.open("rb+") as file:
                magic, jobs, steps = HEADER.unpack(file.read(HEADER.size).ljust(HEADER.size, b"\0"))
                size = os.fstat(file.fileno()).st_size
                possible = 0 < jobs <= PARAMETERS["jobs"].high and 0 < steps <= PARAMETERS["steps"].high
                if magic != MAGIC or not possible or size != ledger_bytes(jobs, steps):
                    raise LedgerDamaged(f"{path} is not a durtui ledger, or not a whole one")
                return cls(path, mmap.mmap(file.fileno(), 0), jobs, steps)
        except FileNotFoundError:
            raise LedgerDamaged(f"{path} is gone: it was deleted, or moved") from None
        except OSError as error:
            raise LedgerError(f"{path} cannot be opened: {advised(error)}") from error

    def close(self) -> None:
        """Let go of the file; what was written is in it."""
        self._mark.release()
        self._deliveries.release()
        self._emails.release()
        self._calls.release()
        self._map.close()

    # The attempt in flight: begun, billed, perhaps an email, perhaps a crash. Each method writes one word.

    def begin(self, job: int, delivery: int, step: int, failures: int) -> None:
        """Mark an attempt as in flight, in place of the one before it, which nothing can undo any more."""
        odd_calls = self._calls[(job - 1) * self.steps + step - 1] & 1
        odd_emails = self._emails[job - 1] & 1
        self._mark[0] = job << 40 | delivery << 24 | step << 16 | failures << 8 | odd_calls << 2 | odd_emails << 1

    def bill(self, job: int, step: int) -> int:
        """Bill one call for an attempt; return n, how many were billed for this step of this job before."""
        at = (job - 1) * self.steps + step - 1
        n = self._calls[at]
        if n == COUNT_MAX:
            raise LedgerDamaged(f"{self.path}: job {job} has {n:,} calls at step {step}: the file was written over")
        self._calls[at] = n + 1
        return n

    def deliver_email(self, job: int) -> int:
        """Deliver one email to the job's customer; return how many that customer has now."""
        emails = self._emails[job - 1] + 1
        if emails > EMAILS_MAX:
            raise LedgerDamaged(f"{self.path}: job {job} has {emails:,} emails: the file was written over")
        self._emails[job - 1] = emails
        return emails

    def mark_crashed(self) -> None:
        """Mark the attempt in flight as a drawn crash: it stays done, and ends its delivery."""
        self._mark[0] |= CRASHED

    def clear_mark(self) -> None:
        """No attempt is in flight: its delivery is over."""
        self._mark[0] = NONE_IN_FLIGHT

    # What deploys are told by

    def extend_reach(self, ordinal: int) -> None:
        """Note how far deploys reach, before the delivery begins that they reach further by: it is found again then."""
        self._deliveries[1] = ordinal

    def delivery_begins(self, ordinal: int) -> None:
        """Note that a delivery's first attempt, the lane's `ordinal`-th, comes next; its mark is written afterwards."""
        self._deliveries[0] = ordinal

    def began(self) -> int:
        """The ordinal of the first attempt of the newest delivery, among the lane's calls from 1; 0 before any."""
        return self._deliveries[0]

    def reach(self) -> int:
        """The ordinal below which a delivery that begins is cut by a deploy; 0 where there was none."""
        return self._deliveries[1]

    # After a kill

    def mark(self) -> Mark:
        """The attempt in flight. Raises LedgerDamaged for one that this ledger has no place for."""
        mark = Mark.of(self._mark[0])
        if mark.job > self.jobs or mark.step > self.steps or (mark.job == 0) is not (mark.step == 0):
            raise LedgerDamaged(f"{self.path}: its mark is of no job of this run: it was written over")
        return mark

    def take_call_back(self, mark: Mark) -> int:
        """Undo the bill of the attempt in flight, if it was billed; return n. Done twice it takes nothing twice."""
        at = (mark.job - 1) * self.steps + mark.step - 1
        n = self._taken_back(self._calls[at], mark.odd_calls)
        self._calls[at] = n
        return n

    def take_email_back(self, mark: Mark) -> None:
        """Undo the email of the attempt in flight, if it was delivered. Done twice it takes nothing twice."""
        self._emails[mark.job - 1] = self._taken_back(self._emails[mark.job - 1], mark.odd_emails)

    def _taken_back(self, count: int, odd_before: int) -> int:
        if count & 1 == odd_before:
            return count
        if count == 0:
            raise LedgerDamaged(f"{self.path}: its mark is of an attempt that never was: it was written over")
        return count - 1

    # Counting

    def emails(self, job: int) -> int:
        """Emails that the customer of `job` has received."""
        return self._emails[job - 1]

    def calls(self, job: int) -> int:
        """Calls that were billed for `job`, over all of its steps."""
        return sum(self.calls_of_steps(job))

    def calls_of_steps(self, job: int) -> memoryview[int]:
        """Calls that were billed for each step of `job`."""
        at = (job - 1) * self.steps
        return self._calls[at : at + self.steps]

    def total_calls(self) -> int:
        """Calls that were billed for all jobs."""
        return sum(self._calls)

    def email_counts(self) -> Counter[int]:
        """How many jobs received each number of emails."""
        return Counter(self._emails)


def ledger_bytes(jobs: int, steps: int) -> int:
    """The size of a ledger's file: a header, 2 bytes a job and 4 a step."""
    return _calls_at(jobs) + jobs * steps * CALL_BYTES


def _calls_at(jobs: int) -> int:
    emails = jobs * EMAIL_BYTES
    return HEADER_BYTES + emails + -emails % CALL_BYTES


def make_room(path: Path, fd: int, size: int) -> None:
    """Give a new file its room, or remove it and raise OSError: half a file would take the room of last words."""
    try:
        allocate(fd, size)
    except OSError:
        path.unlink()
        raise


def allocate(fd: int, size: int) -> None:
    """Give a file `size` bytes of real room, or raise OSError. Zeros are written where the system has no better way."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(fd, 0, size)
        return
    block = bytes(1 << 20)
    for at in range(0, size, len(block)):
        os.pwrite(fd, block[: size - at], at)
