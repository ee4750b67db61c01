"""What a screen needs to know of a lane: a frozen look at it. No process and no widget in here."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from durcore.designs import Design
from durcore.figures import Figures
from durcore.interventions import Intervention
from durcore.latency import Latency


class Phase(Enum):
    """What a lane is doing, in a person's words."""

    STARTING = "starting"
    QUEUEING = "queueing jobs"
    CHECKING = "checking"
    RUNNING = "running"
    PAUSED = "paused"
    COUNTING = "counting"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneView:
    """One look at one lane: all that a screen needs to draw it. `error` says why it failed, or is empty.

    `workers_killed` is None where crashes unwind; `wal_bytes` is the size of the store's write-ahead log;
    `interventions` were made in it so far; `alert_at` is how many calls there were when its resume alert last struck,
    None where it has not.
    """

    design: Design
    phase: Phase
    ended: int
    jobs: int
    figures: Figures
    latency: Latency | None
    elapsed_s: float
    error: str
    workers_killed: int | None = None
    wal_bytes: int = 0
    steps: int = 1  # of a job
    board: bytes = b""  # a byte a job, as worker.py tells
    interventions: tuple[Intervention, ...] = ()
    alert_at: int | None = None

    @property
    def share(self) -> float:
        """The share of its jobs that have ended, 0 … 1."""
        return self.ended / self.jobs
