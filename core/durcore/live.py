"""Live figures: a lane's tally in a memory-mapped file, for whoever watches. Streamed, never the last word.

The lane writes, any number of readers look, and neither waits for the other. A sequence number that is odd while the
lane writes tells a reader to look again, so that a tally is never half old and half new.
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

from durcore.errors import LaneFailed
from durcore.figures import TALLY_FIELDS, Tally
from durcore.latency import WORDS as LATENCY_WORDS
from durcore.latency import Latency, LatencyHistogram
from durcore.ledger import allocate

MAGIC = int.from_bytes(b"durlive1", "little")
SEQUENCE_AT, STATE_AT, QUEUED_AT, ELAPSED_AT, TALLY_AT = 1, 2, 3, 4, 5
LATENCY_AT = TALLY_AT + len(TALLY_FIELDS)
FILE_WORDS = LATENCY_AT + LATENCY_WORDS

_tally_values = attrgetter(*TALLY_FIELDS)


class LaneState(IntEnum):
    """How far a lane has come."""

    STARTING = 0
    QUEUEING = 1  # jobs are being put into the queue
    RUNNING = 2  # deliveries are under way, or paused
    COUNTING = 3  # every job has ended; ledger and store are being counted
    DONE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One consistent look at a lane. `queued` jobs are in its store; `elapsed_s` runs from its first claim."""

    state: LaneState
    queued: int
    elapsed_s: float
    tally: Tally


class LiveFigures:
    """The shared page of one lane, open for writing (the lane) or for looking."""

    def __init__(self, map_: mmap.mmap) -> None:
        self._map = map_
        self._words = memoryview(map_).cast("Q")
        self._latency = self._words[LATENCY_AT:FILE_WORDS]
        self.writes = LatencyHistogram(self._latency)

    @classmethod
    def create(cls, path: Path) -> Self:
        """Make the page, all zero: its lane is starting."""
        with path.open("xb+") as file:
            allocate(file.fileno(), FILE_WORDS * 8)
            live = cls(mmap.mmap(file.fileno(), FILE_WORDS * 8))
        live._words[0] = MAGIC
        return live

    @classmethod
    def look(cls, path: Path) -> Self | None:
        """Open the page of a lane for reading; None while the lane has not made it yet."""
        try:
            with path.open("rb") as file:
                if os.fstat(file.fileno()).st_size < FILE_WORDS * 8:
                    return None
                live = cls(mmap.mmap(file.fileno(), FILE_WORDS * 8, access=mmap.ACCESS_READ))
        except FileNotFoundError:
            return None
        if live._words[0] not in (0, MAGIC):
            raise LaneFailed(f"{path} is not the live figures of a lane")
        return live

    def close(self) -> None:
        """Let go of the file."""
        self._latency.release()
        self._words.release()
        self._map.close()

    def publish(self, state: LaneState, queued: int, elapsed_s: float, tally: Tally) -> None:
        """Let readers see how far the lane has come."""
        words = self._words
        words[SEQUENCE_AT] += 1
        words[STATE_AT:LATENCY_AT] = memoryview(
            array("Q", (state, queued, int(elapsed_s * 1e9), *_tally_values(tally)))
        )
        words[SEQUENCE_AT] += 1

    def read(self) -> Progress:
        """The newest consistent look. A writer that died half way through a publication leaves its last words."""
        for _ in range(100):
            before = self._words[SEQUENCE_AT]
            state, queued, elapsed_ns, *counts = self._words[STATE_AT:LATENCY_AT].tolist()
            if before % 2 == 0 and before == self._words[SEQUENCE_AT]:
                break
        return Progress(
            state=LaneState(state),
            queued=queued,
            elapsed_s=elapsed_ns / 1e9,
            tally=Tally(**dict(zip(TALLY_FIELDS, counts, strict=True))),
        )

    def latency(self) -> Latency | None:
        """How long the checkpoint writes took so far, None before the first."""
        return self.writes.summary()
