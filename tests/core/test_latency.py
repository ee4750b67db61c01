"""The histogram of latencies: its buckets, how far a percentile may be off, and that nothing grows."""

import math
import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from durcore.latency import BUCKETS, LARGEST_NS, WORDS, Latency, LatencyHistogram, bucket, middle_ns

TOLERANCE = 1 / 64  # half of a bucket's width: 1.6 %

durations = st.integers(0, LARGEST_NS)


def histogram_of(durations_ns: list[int]) -> LatencyHistogram:
    histogram = LatencyHistogram(memoryview(bytearray(WORDS * 8)).cast("Q"))
    for ns in durations_ns:
        histogram.record(ns)
    return histogram


def summary_of(durations_ns: list[int]) -> Latency:
    summary = histogram_of(durations_ns).summary()
    assert summary is not None
    return summary


def exact(durations_ns: list[int], percent: int) -> int:
    """The duration of rank ceil(percent / 100 x count), in whole numbers."""
    rank = -(-percent * len(durations_ns) // 100)
    return sorted(durations_ns)[rank - 1]


def test_every_bucket_holds_its_own_middle() -> None:
    assert [bucket(int(middle_ns(index))) for index in range(BUCKETS)] == list(range(BUCKETS))


def test_the_middles_rise_and_buckets_below_64_ns_are_one_wide() -> None:
    middles = [middle_ns(index) for index in range(BUCKETS)]
    assert middles == sorted(set(middles))
    assert middles[:64] == list(range(64))


@given(ns=durations)
@example(ns=63)
@example(ns=64)
@example(ns=LARGEST_NS)
def test_a_duration_is_within_two_percent_of_the_middle_of_its_bucket(ns: int) -> None:
    assert 0 <= bucket(ns) < BUCKETS
    assert abs(middle_ns(bucket(ns)) - ns) <= TOLERANCE * ns


@given(ns=st.integers(0, LARGEST_NS - 1))
def test_a_longer_duration_is_in_no_lower_bucket(ns: int) -> None:
    assert bucket(ns) <= bucket(ns + 1) <= bucket(ns) + 1


@given(durations_ns=st.lists(durations, min_size=1, max_size=300))
@settings(deadline=None)
def test_percentiles_are_within_two_percent_and_mean_and_maximum_exact(durations_ns: list[int]) -> None:
    summary = summary_of(durations_ns)
    assert summary.count == len(durations_ns)
    assert summary.max == max(durations_ns) / 1000
    assert math.isclose(summary.mean, sum(durations_ns) / len(durations_ns) / 1000, rel_tol=1e-12)
    for found, percent in ((summary.median, 50), (summary.p99, 99)):
        expected = exact(durations_ns, percent) / 1000
        assert abs(found - expected) <= TOLERANCE * expected


@pytest.mark.parametrize("seed", range(5))
def test_percentiles_of_many_writes_like_a_stores_are_within_two_percent(seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311  # reproducible, not secret
    durations_ns = [int(draw.lognormvariate(math.log(7_000), 0.6)) for _ in range(20_000)]
    summary = summary_of(durations_ns)
    for found, percent in ((summary.median, 50), (summary.p99, 99)):
        expected = exact(durations_ns, percent) / 1000
        assert abs(found - expected) <= TOLERANCE * expected, f"seed {seed}"


def test_the_median_and_the_99th_percentile_are_the_events_of_those_ranks() -> None:
    assert summary_of([10, 20, 30, 40]).median == 0.02
    assert summary_of([10, 20, 30]).median == 0.02
    assert summary_of([1] * 99 + [50]).p99 == 0.001
    assert summary_of([1] * 98 + [50] * 2).p99 == 0.05


def test_what_takes_longer_than_the_last_bucket_is_counted_there_and_its_true_length_told() -> None:
    summary = summary_of([LARGEST_NS * 10])
    assert summary.max == summary.mean == LARGEST_NS * 10 / 1000
    assert math.isclose(summary.median, LARGEST_NS / 1000, rel_tol=TOLERANCE)


def test_no_events_have_no_summary() -> None:
    assert histogram_of([]).summary() is None


def test_a_histogram_takes_nine_kilobytes_however_much_it_counts() -> None:
    words = memoryview(bytearray(WORDS * 8)).cast("Q")
    histogram = LatencyHistogram(words)
    for ns in range(0, LARGEST_NS, LARGEST_NS // 5000):
        histogram.record(ns)
    assert words.nbytes == WORDS * 8 < 10_000
    assert sum(words[2:]) == len(range(0, LARGEST_NS, LARGEST_NS // 5000))
