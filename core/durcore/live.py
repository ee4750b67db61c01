"""Live figures: a lane's tally in a memory-mapped page, for whoever watches. Streamed, never the last word.

The lane writes, any number of readers look, and neither waits for the other. A sequence number that is odd while the
lane writes tells a reader to look again, so that a tally is never half old and half new. A reader reads the file and
does not map it: a page that somebody cuts short must not kill the screen.

The page has room for a failing lane's last words, since a full disk has none.
"""

from __future__ import annotations

import mmap
import os
from array import array
from dataclasses import dataclass
from enum import IntEnum
from operator import attrgetter
from pathlib import Path
from typing import Self

from durcore.errors import DurtuiError, advised, printable
from durcore.figures import TALLY_FIELDS, Tally
from durcore.latency import WORDS as LATENCY_WORDS
from durcore.latency import Latency, LatencyHistogram
from durcore.ledger import make_room

MAGIC = int.from_bytes(b"durlive2", "little")
SEQUENCE_AT, STATE_AT, QUEUED_AT, ELAPSED_AT, KILLED_AT, TALLY_AT = 1, 2, 3, 4, 5, 6
LATENCY_AT = TALLY_AT + len(TALLY_FIELDS)
WORDS_AT = LATENCY_AT + LATENCY_WORDS
LAST_WORDS_BYTES = 1024
LARGEST_WORD = 2**64 - 1
FILE_WORDS = WORDS_AT + LAST_WORDS_BYTES // 8
FILE_BYTES = FILE_WORDS * 8

_tally_values = attrgetter(*TALLY_FIELDS)


class LaneState(IntEnum):
    """How far a lane has come."""

    STARTING = 0
    QUEUEING = 1  # jobs are being put into the queue
    RUNNING = 2  # deliveries are under way, or paused
    COUNTING = 3  # every job has ended; ledger and store are being counted
    DONE = 4
    CHECKING = 5  # what an earlier life of the lane left is held against the fault plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One consistent look at a lane. `queued` jobs are in its store; `elapsed_s` runs from its first claim."""

    state: LaneState
    queued: int
    elapsed_s: float
    workers_killed: int
    tally: Tally


class LiveFigures:
    """The shared page of one lane, open for writing."""

    def __init__(self, map_: mmap.mmap) -> None:
        self._map = map_
        self._words = memoryview(map_).cast("Q")
        self.writes = LatencyHistogram(self._words[LATENCY_AT:WORDS_AT])

    @classmethod
    def create(cls, path: Path) -> Self:
        """Make the page, all zero: its lane is starting."""
        with path.open("xb+") as file:
            make_room(path, file.fileno(), FILE_BYTES)
            live = cls(mmap.mmap(file.fileno(), FILE_BYTES))
        live._words[0] = MAGIC
        return live

    @classmethod
    def reopen(cls, path: Path) -> Self:
        """The page that an earlier life of the lane left, or a new one where it left none that can be used.

        Only timings are taken over from it. What cannot be right, since somebody has written over it, starts anew.
        Raises DurtuiError where it can be neither.
        """
        look = LiveLook.open(path)
        try:
            if look is None:
                path.unlink(missing_ok=True)
                return cls.create(path)
            look.close()
            with path.open("rb+") as file:
                live = cls(mmap.mmap(file.fileno(), FILE_BYTES))
        except OSError as error:
            raise DurtuiError(f"{path} cannot be made: {advised(error)}") from error
        live._words[SEQUENCE_AT] &= ~1 & LARGEST_WORD  # a life that was killed while it published
        live._map[WORDS_AT * 8 :] = bytes(LAST_WORDS_BYTES)
        return live

    def restart_timings(self) -> None:
        """Forget how long things took: the words cannot be right."""
        first, end = ELAPSED_AT * 8, WORDS_AT * 8
        self._map[first:end] = bytes(end - first)

    def publish(self, state: LaneState, queued: int, elapsed_s: float, workers_killed: int, tally: Tally) -> None:
        """Let readers see how far the lane has come."""
        words = self._words
        words[SEQUENCE_AT] = words[SEQUENCE_AT] + 1 & LARGEST_WORD  # whoever writes over it must not stop the lane
        # Over a store that somebody has written over, a tally can fall below nothing; that is told when it is counted.
        counts = [max(value, 0) for value in _tally_values(tally)]
        values = (state, queued, int(elapsed_s * 1e9), workers_killed, *counts)
        words[STATE_AT:LATENCY_AT] = memoryview(array("Q", values))
        words[SEQUENCE_AT] = words[SEQUENCE_AT] + 1 & LARGEST_WORD

    def timings(self) -> tuple[float, int]:
        """Seconds since the first claim, and workers killed, as an earlier life published them."""
        return self._words[ELAPSED_AT] / 1e9, self._words[KILLED_AT]

    def latency(self) -> Latency | None:
        """How long the checkpoint writes took so far, None before the first."""
        return self.writes.summary()

    def say(self, last_words: str) -> None:
        """Leave the words of a lane that fails."""
        self._map[WORDS_AT * 8 :] = last_words.encode()[:LAST_WORDS_BYTES].ljust(LAST_WORDS_BYTES, b"\0")


class LiveLook:
    """The shared page of one lane, open for looking."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    @classmethod
    def open(cls, path: Path) -> Self | None:
        """Open the page of a lane; None while the lane has not made it yet, or where it is no such page."""
        try:
            look = cls(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW))
        except OSError:
            return None
        if look._whole() and look._words(0, 1)[0] == MAGIC:
            return look
        look.close()
        return None

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._fd)

    def read(self) -> Progress | None:
        """The newest consistent look; None where the page was cut short, or holds what no lane publishes.

        A writer that died half way through a publication leaves its last words.
        """
        for _ in range(100):
            (before,) = self._words(SEQUENCE_AT, 1) or (0,)
            values = self._words(STATE_AT, LATENCY_AT - STATE_AT)
            if before % 2 == 0 and [before] == self._words(SEQUENCE_AT, 1):
                break
        if not values or values[0] > max(LaneState):
            return None
        state, queued, elapsed_ns, killed, *counts = values
        return Progress(
            state=LaneState(state),
            queued=queued,
            elapsed_s=elapsed_ns / 1e9,
            workers_killed=killed,
            tally=Tally(**dict(zip(TALLY_FIELDS, counts, strict=True))),
        )

    def latency(self) -> Latency | None:
        """How long the checkpoint writes took so far, None before the first."""
        words = self._words(LATENCY_AT, LATENCY_WORDS)
        return LatencyHistogram(memoryview(array("Q", words))).summary() if words else None

    def last_words(self) -> str:
        """What a lane that failed has said, in one printable line; empty where it said nothing."""
        said = os.pread(self._fd, LAST_WORDS_BYTES, WORDS_AT * 8) if self._whole() else b""
        return printable(said.rstrip(b"\0").decode("utf-8", "replace"))

    def _whole(self) -> bool:
        return os.fstat(self._fd).st_size == FILE_BYTES

    def _words(self, first: int, count: int) -> list[int]:
        """Some words of the page, none where it was cut short."""
        read = os.pread(self._fd, 8 * count, 8 * first)
        return array("Q", read).tolist() if len(read) == 8 * count else []
