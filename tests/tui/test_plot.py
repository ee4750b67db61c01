"""Curves in braille: where they run, how they are told apart without colour, and that they never leave their place."""

from hypothesis import given
from hypothesis import strategies as st

from durtui.plot import BAND, BRAILLE, DASHES, MARKER, Curve, bounds, dash, plot

FLAT = Curve((0.0, 10.0), (5.0, 5.0), (0.0, 0.0))
RISING = Curve((0.0, 10.0), (0.0, 10.0), (0.0, 0.0))

NUMBERS = st.floats(-1e6, 1e6)


@st.composite
def curves(draw: st.DrawFn) -> list[Curve]:
    xs = tuple(sorted(draw(st.sets(st.floats(0, 100), min_size=2, max_size=8))))

    def one_each(numbers: st.SearchStrategy[float]) -> tuple[float, ...]:
        return tuple(draw(st.lists(numbers, min_size=len(xs), max_size=len(xs))))

    return [Curve(xs, one_each(NUMBERS), one_each(st.floats(0, 1e5))) for _ in range(draw(st.integers(1, 4)))]


@given(curves(), st.integers(0, 60), st.integers(0, 20), NUMBERS)
def test_a_plot_is_exactly_as_large_as_its_place(drawn: list[Curve], width: int, height: int, marker: float) -> None:
    grid = plot(drawn, width, height, marker)
    assert len(grid) == (height if width else 0)
    assert all(len(row) == width and all(len(cell.character) == 1 for cell in row) for row in grid)


@given(curves())
def test_every_curve_and_its_band_and_zero_lie_within_the_bounds(drawn: list[Curve]) -> None:
    low, high = bounds(drawn)
    assert low <= 0 <= high
    assert low < high
    for curve in drawn:
        for mean, deviation in zip(curve.means, curve.deviations, strict=True):
            assert low <= mean - deviation
            assert mean + deviation <= high


def column_of_dots(grid_column: list[str]) -> bool:
    return any(ord(character) > BRAILLE for character in grid_column)


def test_a_rising_curve_goes_from_the_lower_left_to_the_upper_right() -> None:
    grid = plot([RISING], 20, 10, -1)
    assert ord(grid[-1][0].character) > BRAILLE
    assert ord(grid[0][-1].character) > BRAILLE
    assert grid[0][0].character == grid[-1][-1].character == " "
    for column in zip(*grid, strict=True):  # a solid curve has no gap
        assert column_of_dots([cell.character for cell in column])


def test_curves_are_told_apart_by_their_dashes() -> None:
    drawn = {index: [dash(index, dot) for dot in range(48)] for index in range(len(DASHES))}
    assert all(drawn[0])
    assert len({tuple(dots) for dots in drawn.values()}) == len(DASHES)
    assert sum(drawn[0]) > sum(drawn[1]) > sum(drawn[2]) > 0


def test_two_curves_on_one_line_are_both_there() -> None:
    grid = plot([RISING, FLAT, FLAT], 40, 10, -1)
    assert {cell.curve for row in grid for cell in row} >= {0, 1}


def test_the_marker_stands_at_its_value_and_covers_no_curve() -> None:
    grid = plot([FLAT], 21, 9, 5.0)
    column = [row[10].character for row in grid]
    assert column.count(MARKER) == 8
    assert column_of_dots(column)
    assert all(MARKER not in [cell.character for cell in row] for row in plot([FLAT], 21, 9, 11.0))


def test_a_band_is_shaded_on_both_sides_of_its_curve() -> None:
    wide = Curve((0.0, 10.0), (5.0, 5.0), (3.0, 3.0))
    column = [row[5].character for row in plot([wide], 20, 16, -1)]
    band = [y for y, character in enumerate(column) if character == BAND]
    (curve,) = [y for y, character in enumerate(column) if ord(character) > BRAILLE]
    assert min(band) < curve < max(band)
    assert 8 <= len(band) + 1 <= 14  # six eighths of the height from 0 to 8


@given(st.floats(0, 10))
def test_between_two_points_a_curve_is_straight(x: float) -> None:
    assert abs(RISING.at(x)[0] - x) < 1e-9
    assert abs(FLAT.at(x)[0] - 5) < 1e-9
