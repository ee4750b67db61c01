"""Pace: how many calls a lane may make now. It holds no clock; whoever asks says what time it is."""

from __future__ import annotations

import math

UNLIMITED_BATCH = 256  # calls between two looks at the inbox: some 3 ms; the lane itself bounds the time
PACED_BATCH = 10 * UNLIMITED_BATCH
TICK_S = 0.02  # how long a paced lane sleeps at the least: 50 small batches a second look like a stream
BURST_S = 0.1  # a lane that was held up does not make up for more than this


class Pace:
    """A lane's permission to work: running or paused, with a speed in calls a second (None: as fast as it can)."""

    def __init__(self, calls_per_s: float | None, *, paused: bool, now_s: float) -> None:
        self.paused = paused
        self._calls_per_s = calls_per_s
        self._now_s = now_s
        self._credit = 0.0  # calls allowed and not made; it keeps the fraction between two ticks
        self._steps = 0

    def set_speed(self, calls_per_s: float | None) -> None:
        """Go on at another speed."""
        self._calls_per_s = calls_per_s
        self._credit = 0.0

    def add_steps(self, calls: int) -> None:
        """Allow `calls` calls, paused or not."""
        self._steps += calls

    def due(self, now_s: float) -> int:
        """How many calls to make now. What it allows counts as made."""
        passed_s = min(now_s - self._now_s, BURST_S)
        self._now_s = now_s
        calls, self._steps = self._steps, 0
        if self.paused:
            return calls
        if self._calls_per_s is None:
            return calls + UNLIMITED_BATCH
        self._credit += passed_s * self._calls_per_s
        whole = min(math.floor(self._credit), PACED_BATCH)
        self._credit = min(self._credit - whole, max(BURST_S * self._calls_per_s, 1.0))
        return calls + whole

    def give_back(self, calls: int) -> None:
        """Take back calls that were due and not made, for the next time."""
        if self.paused:
            self._steps += calls
        elif self._calls_per_s is not None:
            self._credit = min(self._credit + calls, max(BURST_S * self._calls_per_s, 1.0))

    def wait_s(self) -> float | None:
        """How long to wait for a command before asking again. None: until one comes."""
        if self._steps:
            return 0
        if self.paused:
            return None
        if self._calls_per_s is None:
            return 0
        if self._credit >= 1:
            return 0
        # Half a burst at the most: what is slept too long beyond it would be lost.
        return max(TICK_S, min(BURST_S / 2, (1 - self._credit) / self._calls_per_s))
