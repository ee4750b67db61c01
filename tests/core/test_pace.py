"""How many calls a lane may make: credit by the clock that it is given, pauses, single steps and the cap on bursts."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from durcore.pace import BURST_S, TICK_S, UNLIMITED_BATCH, Pace

speeds = st.floats(0.5, 100_000)


def running(calls_per_s: float | None) -> Pace:
    return Pace(calls_per_s, paused=False, now_s=0.0)


def drive(pace: Pace, seconds: float, oversleep_s: float = 0.0) -> tuple[int, float]:
    """Do as a lane does whose work takes no time: ask, wait as told, ask again. The calls, and when it asked last."""
    calls, now = pace.due(0.0), 0.0
    while now < seconds:
        wait_s = pace.wait_s()
        assert wait_s is not None
        now += wait_s + oversleep_s
        calls += pace.due(now)
    return calls, now


@given(speed=speeds, shares=st.lists(st.floats(0, 1), max_size=200))
@settings(deadline=None)
def test_over_any_time_the_calls_are_speed_times_time_within_one(speed: float, shares: list[float]) -> None:
    longest_s = min(BURST_S, 2000 / speed)  # no more is asked for at once than a lane may do between two looks
    pace, now, calls = running(speed), 0.0, 0
    for share in shares:
        now += share * longest_s
        calls += pace.due(now)
        assert math.isclose(calls, speed * now, abs_tol=1 + 1e-6)


@given(speed=speeds)
@settings(deadline=None)
def test_a_lane_that_waits_as_it_is_told_keeps_its_speed(speed: float) -> None:
    calls, now = drive(running(speed), 20)
    assert abs(calls - speed * now) <= 1 + 1e-6


@pytest.mark.parametrize("speed", [1, 5, 10, 20, 100, 1000])
def test_a_lane_that_wakes_a_millisecond_late_keeps_its_speed(speed: float) -> None:
    # No sleep ends on time, and a lane is niced: at 5 calls a second, 1 % of 100 s is 5 calls.
    calls, now = drive(running(speed), 100, oversleep_s=0.001)
    assert abs(calls - speed * now) <= 1 + 1e-6


@given(speed=speeds, held_up_s=st.floats(BURST_S, 1e6))
def test_a_lane_that_was_held_up_makes_up_for_a_tenth_of_a_second_and_no_more(speed: float, held_up_s: float) -> None:
    assert running(speed).due(held_up_s) <= speed * BURST_S


@given(speed=speeds, ticks=st.lists(st.floats(0, 10), max_size=50))
def test_a_paused_lane_makes_no_call_however_long_it_waits(speed: float, ticks: list[float]) -> None:
    pace, now = Pace(speed, paused=True, now_s=0.0), 0.0
    for tick in ticks:
        now += tick
        assert pace.due(now) == 0
    assert pace.wait_s() is None  # for ever, until a command comes


@given(speed=speeds, pause_s=st.floats(0, 1e6))
def test_a_pause_earns_no_more_than_a_burst(speed: float, pause_s: float) -> None:
    pace = running(speed)
    before = pace.due(1.0)
    pace.paused = True
    assert pace.due(1.0) == 0
    pace.paused = False
    assert before + pace.due(1.0 + pause_s) <= speed * (BURST_S + min(pause_s, BURST_S)) + 1


@pytest.mark.parametrize("paused", [True, False])
@given(asked=st.lists(st.integers(1, 50), min_size=1, max_size=10))
def test_single_steps_are_made_once_each_paused_or_not(paused: bool, asked: list[int]) -> None:
    pace = Pace(10, paused=paused, now_s=0.0)
    for calls in asked:
        pace.add_steps(calls)
    assert pace.wait_s() == 0  # a step does not wait for the next tick
    assert pace.due(0.0) == sum(asked)
    assert pace.due(0.0) == 0


def test_steps_in_a_pause_leave_it_paused() -> None:
    pace = Pace(1000, paused=True, now_s=0.0)
    pace.add_steps(1)
    assert pace.due(5.0) == 1
    assert pace.due(10.0) == 0
    assert pace.wait_s() is None


def test_an_unlimited_lane_works_in_batches_and_never_waits() -> None:
    pace = running(None)
    assert [pace.due(now) for now in (0.0, 0.0, 50.0)] == [UNLIMITED_BATCH] * 3
    assert pace.wait_s() == 0


@pytest.mark.parametrize("speed", [10_000, 100_000, 1_000_000])
def test_no_speed_keeps_a_lane_from_its_inbox_for_longer_than_unlimited_does(speed: float) -> None:
    # A call takes a lane some 30 µs: what is allowed at once is how long pause, step and the screen wait.
    pace, now = running(speed), 0.0
    for _ in range(20):
        now += BURST_S
        assert pace.due(now) <= 10 * UNLIMITED_BATCH


@given(speed=speeds)
def test_what_is_not_allowed_at_once_is_allowed_at_the_next_look(speed: float) -> None:
    pace = running(speed)
    batches = [pace.due(BURST_S)]
    while pace.wait_s() == 0:
        batches.append(pace.due(BURST_S))
    assert sum(batches) == math.floor(BURST_S * speed)


def test_a_new_speed_counts_from_now_on() -> None:
    pace = running(1000)
    pace.due(0.05)
    pace.set_speed(10)
    assert sum(pace.due(0.05 + tick / 100) for tick in range(1, 101)) == pytest.approx(10, abs=1)
    pace.set_speed(None)
    assert pace.due(2.0) == UNLIMITED_BATCH


@given(speed=st.floats(0.01, 1e6), ticks=st.lists(st.floats(0, 1), max_size=20))
@settings(deadline=None)
def test_a_running_lane_waits_long_enough_to_stream_and_not_longer_than_a_burst(
    speed: float, ticks: list[float]
) -> None:
    pace, now = running(speed), 0.0
    for tick in ticks:
        now += tick
        pace.due(now)
        wait_s = pace.wait_s()
        assert wait_s is not None
        if wait_s == 0:  # for no more than to look at the inbox between two batches
            assert pace.due(now) > 0
        else:
            assert TICK_S <= wait_s <= BURST_S


def test_what_was_due_and_not_made_is_due_again() -> None:
    pace = Pace(1000, paused=False, now_s=0.0)
    assert pace.due(0.05) == 50
    pace.give_back(20)
    assert pace.due(0.05) == 20
    pace.paused = True
    pace.add_steps(5)
    assert pace.due(0.05) == 5
    pace.give_back(4)
    assert pace.due(0.05) == 4
