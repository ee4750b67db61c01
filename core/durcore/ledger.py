"""The world's own books: calls billed, emails received. No design reads them.

A memory-mapped file beside the store, not in it: a rollback must not erase what a customer saw. A worker adds to it on
behalf of the model provider and the mail server; the fault plan takes its n from it, since it survives the worker.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections import Counter
from pathlib import Path
from typing import Self

from durcore.errors import LedgerError

MAGIC = b"durledg1"
HEADER = struct.Struct("<8sQQ")  # magic, jobs, steps
HEADER_BYTES = 64
EMAIL_BYTES = 2  # a job's emails: at most one a delivery, and there are at most 1,001
CALL_BYTES = 4  # a step's calls: 100 tries x 1,001 deliveries overflow 16 bits


class Ledger:
    """What the outside world saw of `jobs` jobs of `steps` steps, both counted from 1."""

    def __init__(self, map_: mmap.mmap, jobs: int, steps: int) -> None:
        calls_at = _calls_at(jobs)
        whole = memoryview(map_)
        self._steps = steps
        self._map = map_
        self._emails = whole[HEADER_BYTES : HEADER_BYTES + jobs * EMAIL_BYTES].cast("H")
        self._calls = whole[calls_at : calls_at + jobs * steps * CALL_BYTES].cast("I")

    @classmethod
    def create(cls, path: Path, *, jobs: int, steps: int) -> Self:
        """Make an empty ledger, its file allocated in full: a full disk is an error here, not a SIGBUS later."""
        try:
            with path.open("xb+") as file:
                allocate(file.fileno(), ledger_bytes(jobs, steps))
                file.write(HEADER.pack(MAGIC, jobs, steps))
                file.flush()
                return cls(mmap.mmap(file.fileno(), 0), jobs, steps)
        except OSError as error:
            raise LedgerError(f"{path} cannot be made: {error.strerror}") from error

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open the ledger at `path`. Raises LedgerError where it is not one or not whole."""
        try:
            with path.open("rb+") as file:
                magic, jobs, steps = HEADER.unpack(file.read(HEADER.size).ljust(HEADER.size, b"\0"))
                if magic != MAGIC or path.stat().st_size != ledger_bytes(jobs, steps):
                    raise LedgerError(f"{path} is not a durtui ledger, or not a whole one")
                return cls(mmap.mmap(file.fileno(), 0), jobs, steps)
        except OSError as error:
            raise LedgerError(f"{path} cannot be opened: {error.strerror}") from error

    def close(self) -> None:
        """Let go of the file; what was written is in it."""
        self._emails.release()
        self._calls.release()
        self._map.close()

    def bill(self, job: int, step: int) -> int:
        """Bill one call for an attempt; return n, how many were billed for this step of this job before."""
        at = (job - 1) * self._steps + step - 1
        n = self._calls[at]
        self._calls[at] = n + 1
        return n

    def deliver_email(self, job: int) -> int:
        """Deliver one email to the job's customer; return how many that customer has now."""
        emails = self._emails[job - 1] + 1
        self._emails[job - 1] = emails
        return emails

    def emails(self, job: int) -> int:
        """Emails that the customer of `job` has received."""
        return self._emails[job - 1]

    def calls(self, job: int) -> int:
        """Calls that were billed for `job`, over all of its steps."""
        at = (job - 1) * self._steps
        return sum(self._calls[at : at + self._steps])

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


def allocate(fd: int, size: int) -> None:
    """Give a file `size` bytes of real room, or raise OSError. Zeros are written where the system has no better way."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(fd, 0, size)
        return
    block = bytes(1 << 20)
    for at in range(0, size, len(block)):
        os.pwrite(fd, block[: size - at], at)
