"""FaultPlan: what goes wrong, addressed by job, step and attempt, so that every design meets the same weather.

A draw depends on its address alone: not on the design, the number of jobs or workers, or the order of work. Lanes use
this scalar generator; the model has a vectorised twin of its own, so that a lane never loads numpy.
"""

from enum import IntEnum

from durcore.scenario import CrashPoint, Scenario, check_seed

MASK = 2**64 - 1
GOLDEN_GAMMA = 0x9E3779B97F4A7C15
MIX_1 = 0xBF58476D1CE4E5B9
MIX_2 = 0x94D049BB133111EB

CRASH_POINTS: tuple[CrashPoint, ...] = ("before-work", "after-key", "after-work", "after-checkpoint")


class Purpose(IntEnum):
    """What a draw is for: the top four bits of its address, so that no two purposes share a draw."""

    ATTEMPT = 0
    CRASH_POINT = 1
    POISONED = 2
    POISONED_STEP = 3
    BACKOFF = 4


class Fate(IntEnum):
    """What becomes of one attempt at a step."""

    SUCCESS = 0
    TRANSIENT = 1
    CRASH = 2


def mix64(z: int) -> int:
    """SplitMix64's finaliser (Steele, Lea and Flood, 2014): 64 bits in, 64 well-mixed bits out."""
    z = (z ^ z >> 30) * MIX_1 & MASK
    z = (z ^ z >> 27) * MIX_2 & MASK
    return z ^ z >> 31


class FaultPlan:
    """The faults of one replication: the same for every design that is run with `seed`."""

    __slots__ = ("_crash_from", "_crash_point", "_key", "_transient_below")

    def __init__(self, scenario: Scenario, seed: int) -> None:
        self._key = mix64((check_seed(seed) + 1) * GOLDEN_GAMMA & MASK)
        self._transient_below = scenario.transient_rate
        self._crash_from = 1 - scenario.crash_rate
        self._crash_point = scenario.crash_point

    def draw(self, purpose: Purpose, job: int, step: int, n: int) -> float:
        """The uniform number in [0, 1) at an address; `job` and `step` count from 1, `n` from 0."""
        key = self._key
        address = purpose << 60 | job << 32 | step << 24 | n
        return (mix64(mix64((address * GOLDEN_GAMMA + key) & MASK) ^ key) >> 11) * 2**-53

    def fate(self, job: int, step: int, n: int) -> Fate:
        """What becomes of the attempt at `step` of `job` that `n` earlier attempts at it went before.

        Crashes stand at the top of the unit interval and transient failures at its bottom, so raising either rate
        keeps every fault there was.
        """
        u = self.draw(Purpose.ATTEMPT, job, step, n)
        if u < self._transient_below:
            return Fate.TRANSIENT
        if u >= self._crash_from:
            return Fate.CRASH
        return Fate.SUCCESS

    def crash_point(self, job: int, step: int, n: int) -> CrashPoint:
        """Where in the attempt at this address a crash lands: at the scenario's point, or anywhere among the four."""
        if self._crash_point != "anywhere":
            return self._crash_point
        return CRASH_POINTS[int(len(CRASH_POINTS) * self.draw(Purpose.CRASH_POINT, job, step, n))]
