"""Board: one byte a job, for whoever watches: where it stands. Streamed, never counted from, and no design reads it.

A memory-mapped file beside the lane's page. A kill may leave it a byte ahead of the store, or behind it; whoever goes
on makes it anew.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from pathlib import Path

from durcore.ledger import Ledger, allocate
from durcore.store import Store
from durcore.worker import DEAD_LETTERED, DUPLICATED, FINISHED, LOST, MISSING, Redo

ENDINGS = {"finished": FINISHED, "lost": LOST, "dead_lettered": DEAD_LETTERED}
TELL_EVERY = 1000  # jobs between two looks at whatever else there is to do


def make_board(path: Path, jobs: int) -> memoryview:
    """A board on which every job waits, in the place of whatever was at `path`. Raises OSError."""
    path.unlink(missing_ok=True)
    with path.open("xb+") as file:
        allocate(file.fileno(), jobs)
        return memoryview(mmap.mmap(file.fileno(), jobs))


def fill_board(board: memoryview, store: Store, ledger: Ledger, redo: Redo | None, effect_step: int) -> Iterator[None]:
    """Put every job of a lane that was recovered where store and ledger say that it stands."""
    for trace in store.traces(effect_step):
        emails = ledger.emails(trace.job)
        stands = ENDINGS.get(trace.state, trace.last_checkpoint)
        if stands == FINISHED and emails == 0:
            stands = MISSING
        board[trace.job - 1] = stands | (DUPLICATED if emails >= 2 else 0)
        if trace.job % TELL_EVERY == 0:
            yield
    if redo is not None and redo.step:
        at = redo.claim.job - 1
        board[at] = board[at] & DUPLICATED | redo.step - 1


def read_board(path: Path) -> bytes:
    """The board at `path` as it is now; empty where there is none. A file that is being cut short is read as it is."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return b""
    try:
        return os.pread(fd, os.fstat(fd).st_size, 0)
    finally:
        os.close(fd)
