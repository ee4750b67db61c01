"""The laws of a slider's values: ends, order, progress, round trips, and what a person may type."""

import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from durtui.widgets.scale import Scale, Value, fit_row

SPEED = Scale.logarithmic(10, 100_000, unlimited=True)
RATE = Scale.linear(0, 1, 0.005, percent=True)
STEPS = Scale.linear(1, 100)
COST = Scale.logarithmic(0.0001, 10.0)

WIDTHS = st.integers(2, 200)
REALS = st.floats(-1e6, 1e6, allow_nan=False)


@st.composite
def scales(draw: st.DrawFn) -> Scale:
    kind = draw(st.sampled_from(["whole", "real", "whole log", "real log"]))
    if kind == "whole":
        low, high = sorted(draw(st.tuples(st.integers(-1000, 1000), st.integers(-1000, 1000))))
        return Scale.linear(low, high, draw(st.integers(1, 50)))
    if kind == "real":
        least, most = sorted(draw(st.tuples(st.floats(-10, 10), st.floats(-10, 10))))
        return Scale.linear(least, most, draw(st.sampled_from([0.005, 0.05, 0.1, 0.3, 2.5])))
    unlimited = draw(st.booleans())
    if kind == "whole log":
        low, high = sorted(draw(st.tuples(st.integers(1, 10**7), st.integers(1, 10**7))))
        return Scale.logarithmic(low, high, unlimited=unlimited)
    least, most = sorted(draw(st.tuples(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6))))
    return Scale.logarithmic(least, most, unlimited=unlimited)


@st.composite
def scales_and_values(draw: st.DrawFn) -> tuple[Scale, Value]:
    scale = draw(scales())
    return scale, scale.clamp(draw(st.one_of(st.none(), REALS, st.floats(scale.low, scale.high))))


def rank(value: Value) -> float:
    return math.inf if value is None else value


@given(scales(), WIDTHS)
def test_first_column_is_exactly_low_and_last_exactly_the_top(scale: Scale, width: int) -> None:
    assert scale.at_column(0, width) == scale.low
    assert scale.at_column(width - 1, width) == scale.top
    assert scale.column(scale.top, width) in (0, width - 1)


@given(scales(), WIDTHS, st.integers(1, 1000))
def test_columns_past_an_end_are_that_end(scale: Scale, width: int, past: int) -> None:
    assert scale.at_column(-past, width) == scale.low
    assert scale.at_column(width - 1 + past, width) == scale.top


@given(scales(), WIDTHS)
def test_values_never_fall_along_a_track(scale: Scale, width: int) -> None:
    values = [scale.at_column(column, width) for column in range(width)]
    assert all(rank(before) <= rank(after) for before, after in pairwise(values))


@given(scales_and_values(), REALS, st.integers(0, 200))
def test_a_greater_value_never_stands_further_left(
    scale_and_value: tuple[Scale, Value], other: float, width: int
) -> None:
    scale, value = scale_and_value
    less, more = sorted([value, scale.clamp(other)], key=rank)
    assert 0 <= scale.column(less, width) <= scale.column(more, width) <= max(width - 1, 0)


@given(st.floats(0.001, 1e6), st.floats(1.01, 1e6), st.booleans(), WIDTHS)
def test_on_fine_grids_every_column_gives_a_value_that_stands_in_it(
    low: float, ratio: float, unlimited: bool, width: int
) -> None:
    scale = Scale.logarithmic(low, low * ratio, unlimited=unlimited)
    # A track of two cells has no room for a high end beside the unlimited one.
    columns = range(width) if width > 2 else (0, 1)
    assert [scale.column(scale.at_column(column, width), width) for column in columns] == list(columns)


@given(scales_and_values(), st.integers(4, 200))
def test_the_handle_is_at_an_end_only_for_the_value_of_that_end(
    scale_and_value: tuple[Scale, Value], width: int
) -> None:
    scale, value = scale_and_value
    if scale.low < rank(value) < rank(scale.top):
        assert 0 < scale.column(value, width) < width - 1


@given(scales_and_values())
def test_a_step_always_makes_progress_until_the_end(scale_and_value: tuple[Scale, Value]) -> None:
    scale, value = scale_and_value
    up, down = scale.stepped(value, 1), scale.stepped(value, -1)
    assert rank(up) > rank(value) or value == up == scale.top
    assert rank(down) < rank(value) or value == down == scale.low


@settings(deadline=None)  # thousands of steps
@given(scales())
def test_steps_reach_both_ends(scale: Scale) -> None:
    steps = 200 if scale.step is None else math.ceil((scale.high - scale.low) / scale.step) + 1
    assert scale.stepped(scale.low, steps) == scale.top
    assert scale.stepped(scale.top, -steps) == scale.low


@given(scales_and_values())
def test_a_page_always_makes_progress_and_ten_reach_the_end(scale_and_value: tuple[Scale, Value]) -> None:
    scale, value = scale_and_value
    up, down = scale.paged(value, 1), scale.paged(value, -1)
    assert rank(up) > rank(value) or value == up == scale.top
    assert rank(down) < rank(value) or value == down == scale.low
    assert scale.paged(value, 10) == scale.top
    assert scale.paged(value, -10) == scale.low


@given(scales_and_values(), st.integers(-30, 30), WIDTHS)
def test_whole_scales_give_only_ints_in_range(scale_and_value: tuple[Scale, Value], count: int, width: int) -> None:
    scale, value = scale_and_value
    for result in (value, scale.stepped(value, count), scale.paged(value, count), scale.at_column(count, width)):
        assert result is None or scale.low <= result <= scale.high
        assert result is None or isinstance(result, int) or not scale.whole


@given(scales_and_values())
def test_a_value_in_range_is_kept_as_it_is(scale_and_value: tuple[Scale, Value]) -> None:
    scale, value = scale_and_value
    assert scale.clamp(value) == value


def test_linear_steps_land_on_the_grid_without_a_hair() -> None:
    assert RATE.stepped(0.03, 1) == 0.035
    assert RATE.stepped(0.0333, 1) == 0.035
    assert RATE.stepped(0.0333, -1) == 0.03
    assert RATE.stepped(0, 20) == 0.1


def test_logarithmic_steps_are_nice_numbers() -> None:
    walk = [SPEED.stepped(10, steps) for steps in range(8)]
    assert walk == [10, 15, 20, 30, 50, 70, 100, 150]
    assert [COST.stepped(0.0102, steps) for steps in (-1, 1)] == [0.01, 0.015]


def test_whole_logarithmic_steps_skip_what_is_not_whole() -> None:
    jobs = Scale.logarithmic(1, 10)
    assert [jobs.stepped(1, steps) for steps in range(7)] == [1, 2, 3, 5, 7, 10, 10]


def test_the_track_gives_the_roundest_number_of_a_column() -> None:
    assert [SPEED.at_column(column, 30) for column in (1, 10, 16)] == [14, 300, 2000]
    assert [STEPS.at_column(column, 30) for column in (1, 10, 20)] == [5, 35, 70]


def test_beyond_the_greatest_number_is_unlimited() -> None:
    assert SPEED.stepped(100_000, 1) is None
    assert SPEED.stepped(None, -1) == 100_000
    assert (SPEED.at_column(28, 30), SPEED.at_column(29, 30)) == (100_000, None)
    assert STEPS.clamp(None) == 100


@given(st.integers(10, 100_000))
def test_what_is_written_out_is_read_back(number: int) -> None:
    for text in (str(number), f"{number:,}", f" {number:_} ", f"{number}."):
        assert SPEED.parse(text) == number


@pytest.mark.parametrize(
    ("scale", "text", "value"),
    [
        (SPEED, "2k", 2_000),
        (SPEED, "2.5 K", 2_500),
        (SPEED, "0.1m", 100_000),
        (SPEED, "unlimited", None),
        (STEPS, "2.0", 2),
        (COST, ".05", 0.05),
        (RATE, "3%", 0.03),
        (RATE, "3 %", 0.03),
        (RATE, ".05", 0.0005),
        (RATE, "3.33", 0.0333),
        (RATE, "100%", 1),
        (RATE, "0", 0),
    ],
)
def test_typed_texts_are_read(scale: Scale, text: str, value: Value) -> None:
    assert scale.parse(text) == value


@pytest.mark.parametrize(
    ("scale", "text", "rule"),
    [
        (SPEED, "9", "10 to 100,000"),
        (SPEED, "1m", "10 to 100,000"),
        (SPEED, "10.5", "a whole number"),
        (SPEED, "3%", "like 2,000 or 2k"),
        (SPEED, "2,00", "like 2,000 or 2k"),
        (SPEED, "", "like 2,000 or 2k"),
        (STEPS, "unlimited", "like 2,000 or 2k"),
        (STEPS, "-5", "1 to 100"),
        (STEPS, "nan", "like 2,000 or 2k"),
        (COST, ".", "like 2,000 or 2k"),
        (COST, "0,05", "like 2,000 or 2k"),
        (RATE, "3k", "like 3 or 3%"),
        (RATE, "101%", "0% to 100%"),
    ],
)
def test_a_refused_text_names_the_broken_rule(scale: Scale, text: str, rule: str) -> None:
    with pytest.raises(ValueError, match=f"^{rule}$"):
        scale.parse(text)


@pytest.mark.parametrize("text", ["1", "3", "50", "0.5"])
def test_a_bare_number_is_a_percentage_as_the_value_is_shown(text: str) -> None:
    assert RATE.parse(text) == RATE.parse(f"{text}%") == pytest.approx(float(text) / 100)


def test_an_impossible_scale_dies_at_construction_with_name_and_rule() -> None:
    with pytest.raises(ValueError, match=r"high\(=1\) must be at least low\(=2\)"):
        Scale.linear(2, 1)
    with pytest.raises(ValueError, match=r"step\(=0\) must be above 0"):
        Scale.linear(1, 2, 0)
    with pytest.raises(ValueError, match=r"low\(=0\) must be above 0 on a logarithmic scale"):
        Scale.logarithmic(0, 1)
    with pytest.raises(ValueError, match=r"high\(=inf\) must be a finite number"):
        Scale.linear(0, math.inf)
    with pytest.raises(ValueError, match=r"step\(=0.5\) must be a whole number"):
        Scale(low=1, high=2, step=0.5, whole=True)


@given(st.text(max_size=30), st.text(max_size=12), st.integers(0, 40))
def test_a_row_is_exactly_as_wide_as_it_has_room(label: str, value: str, width: int) -> None:
    left, right = fit_row(label, value, width, "…")
    assert cell_len(left) + cell_len(right) == width


def test_the_label_is_cut_before_the_value() -> None:
    assert fit_row("transient", "3.0%", 14, "…") == ("transient ", "3.0%")
    assert fit_row("transient", "3.0%", 10, "…") == ("tran… ", "3.0%")
    assert fit_row("transient", "3.0%", 6, "…") == ("… ", "3.0%")
    assert fit_row("transient", "3.0%", 4, "…") == ("", "3.0%")
    assert fit_row("transient", "3.0%", 3, "~") == ("", "3.~")
