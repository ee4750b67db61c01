"""Latencies in a fixed-size histogram with logarithmic buckets: nothing here grows with the run."""

from __future__ import annotations

from dataclasses import dataclass

SUB_BITS = 5  # 32 buckets an octave: a bucket is at most 3.1 % wide, so a percentile is within 1.6 %
LARGEST_WORD = 2**64 - 1
LARGEST_NS = 2**40 - 1  # 18 minutes; what takes longer is counted there, and `max` tells its true length
BUCKETS = (41 - SUB_BITS) << SUB_BITS
WORDS = 2 + BUCKETS  # the sum, the maximum, the buckets


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """How long `count` events took, microseconds. Mean and maximum are exact, the percentiles within 1.6 %."""

    count: int
    mean: float
    median: float
    p99: float
    max: float


class LatencyHistogram:
    """A histogram over `words`, a view of WORDS unsigned 64-bit integers that may be shared with another process."""

    __slots__ = ("_words",)

    def __init__(self, words: memoryview) -> None:
        self._words = words

    def record(self, ns: int) -> None:
        """Count one event of `ns` nanoseconds."""
        words = self._words
        words[0] = words[0] + ns & LARGEST_WORD  # a page that somebody has written over must not stop the lane
        if ns > words[1]:
            words[1] = ns
        at = 2 + bucket(ns)
        words[at] = words[at] + 1 & LARGEST_WORD

    def summary(self) -> Latency | None:
        """What was counted so far, or None where nothing was."""
        total, longest, *counts = self._words.tolist()
        count = sum(counts)
        if count == 0:
            return None
        return Latency(
            count=count,
            mean=total / count / 1000,
            median=_percentile(counts, count, 0.5) / 1000,
            p99=_percentile(counts, count, 0.99) / 1000,
            max=longest / 1000,
        )


def bucket(ns: int) -> int:
    """The bucket of a duration: linear below 64 ns, then 32 to an octave."""
    ns = min(ns, LARGEST_NS)
    shift = max(ns.bit_length() - SUB_BITS - 1, 0)
    return (shift << SUB_BITS) + (ns >> shift)


def middle_ns(index: int) -> float:
    """The middle of a bucket's durations: `bucket`'s inverse."""
    shift = max((index >> SUB_BITS) - 1, 0)
    low = (index - (shift << SUB_BITS)) << shift
    return low + ((1 << shift) - 1) / 2


def _percentile(counts: list[int], count: int, share: float) -> float:
    """The middle of the bucket that holds the event of rank ceil(share x count), nanoseconds."""
    left = share * count
    for index, here in enumerate(counts):
        left -= here
        if left <= 0 and here:
            return middle_ns(index)
    raise AssertionError("a histogram's counts add up to its count")
