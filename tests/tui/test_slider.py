"""The laws of the slider: what each key, press, drag and typed text does to the value, and what it posts."""

from typing import Any, ClassVar

import pytest
from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.pilot import Pilot
from textual.widgets import Button

from durtui.widgets.scale import Scale, Value
from durtui.widgets.slider import Slider

SPEED = Scale.logarithmic(10, 100_000, unlimited=True)
RATE = Scale.linear(0, 1, 0.005, percent=True)
STEPS = Scale.linear(1, 100)
LEFT = 5
WIDTH = 30


def written(value: Value) -> str:
    return "unlimited" if value is None else f"{value:,}"


class Rail(VerticalScroll, can_focus=False, inherit_bindings=False):
    """A scrolling container that leaves up and down to the app, as the app's own does."""


class Harness(App[None]):
    """One slider between margins, a button to lose the focus to, and bindings on every key that might leak."""

    CSS = f"""
    Rail {{ padding: 2 {LEFT}; }}
    Slider {{ width: {WIDTH}; }}
    .tall {{ height: 60; }}
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *[
            Binding(key, f"leak('{key}')")
            for key in ("k", "percent_sign", "comma", "space", "enter", "escape", "minus")
        ],
        Binding("m", "leak('m')", priority=True),
        Binding("plus", "leak('plus')", priority=True),
        Binding("up", "leak('up')"),
    ]

    def __init__(self, scale: Scale = STEPS, value: Value = 10, default: Value = 10, **options: Any) -> None:
        super().__init__()
        self.slider = Slider("steps", scale, value=value, default=default, format_value=written, **options)
        self.posted: list[tuple[Value, bool]] = []
        self.leaked: list[str] = []

    def compose(self) -> ComposeResult:
        with Rail():
            yield self.slider
            yield Button("elsewhere", classes="tall")

    def on_slider_changed(self, event: Slider.Changed) -> None:
        assert event.control is self.slider
        self.posted.append((event.value, event.final))

    def action_leak(self, key: str) -> None:
        self.leaked.append(key)

    def row(self, y: int) -> str:
        return self.slider.render_line(y).text

    def label_is_reversed(self) -> bool:
        label = next(iter(self.slider.render_line(0)))
        return label.style is not None and bool(label.style.reverse)


async def press_mouse(pilot: Pilot[None], column: int, row: int = 1, button: int = 1) -> None:
    await pilot.mouse_down(Slider, offset=(column, row), button=button)


async def drag(pilot: Pilot[None], column: int) -> None:
    await pilot.hover(offset=(LEFT + column, 3))


async def let_go(pilot: Pilot[None], column: int) -> None:
    await pilot.mouse_up(offset=(LEFT + column, 3))


# Drawing


async def test_a_slider_is_two_rows_label_left_value_right_handle_on_the_track() -> None:
    app = Harness(value=50)
    async with app.run_test():
        assert app.slider.size.height == 2
        assert app.row(0) == "steps" + " " * 23 + "50"
        assert app.row(1) == "━" * 14 + "●" + "─" * 15


async def test_plain_glyphs_are_ascii() -> None:
    app = Harness(value=50, plain=True)
    async with app.run_test():
        assert app.row(1) == "=" * 14 + "O" + "-" * 15


async def test_focus_shows_without_colour() -> None:
    app = Harness()
    async with app.run_test() as pilot:
        assert app.label_is_reversed()
        app.set_focus(None)
        await pilot.pause()
        assert not app.label_is_reversed()


@pytest.mark.parametrize("scale", [SPEED, RATE, STEPS, Scale.linear(1, 1)])
async def test_narrow_sliders_draw_and_answer(scale: Scale) -> None:
    app = Harness(scale, value=1, default=1)
    async with app.run_test() as pilot:
        for width in (12, 7, 6, 3, 2, 1):
            app.slider.styles.width = width
            await pilot.pause()
            await press_mouse(pilot, 0)
            await let_go(pilot, width)
            assert [len(app.row(y)) for y in (0, 1)] == [width, width]
            app.post_message(events.Paste("1234567"))
            await pilot.press("enter")
            assert [len(app.row(y)) for y in (0, 1)] == [width, width]
            await pilot.press("escape")


# Keys


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("right", 51),
        ("left", 49),
        ("shift+right", 60),
        ("shift+left", 40),
        ("pageup", 60),
        ("pagedown", 40),
        ("home", 1),
        ("end", 100),
    ],
)
async def test_a_key_moves_the_value_and_posts_it_once_as_final(key: str, value: Value) -> None:
    app = Harness(value=50)
    async with app.run_test() as pilot:
        await pilot.press(key)
        assert app.posted == [(value, True)]
        assert app.slider.value == value


async def test_keys_that_change_nothing_post_nothing() -> None:
    app = Harness(value=1)
    async with app.run_test() as pilot:
        await pilot.press("left", "shift+left", "pagedown", "home")
        assert app.posted == []


async def test_the_unlimited_end_is_one_step_above_the_greatest_number() -> None:
    app = Harness(SPEED, value=100_000, default=None)
    async with app.run_test() as pilot:
        await pilot.press("right")
        assert app.posted == [(None, True)]
        assert app.row(0).endswith("unlimited")
        assert app.row(1).endswith("━●")
        await pilot.press("left")
        assert app.slider.value == 100_000


async def test_up_and_down_are_left_to_the_app() -> None:
    app = Harness()
    async with app.run_test() as pilot:
        await pilot.press("up")
        assert app.leaked == ["up"]
        assert app.posted == []


# Typing


async def test_typing_shows_the_text_and_enter_commits_it() -> None:
    app = Harness(SPEED, value=10)
    async with app.run_test() as pilot:
        await pilot.press("2", "k")
        assert app.row(0).endswith("  2k ")
        assert app.slider.value == 10
        await pilot.press("enter")
        assert app.posted == [(2000, True)]
        assert app.row(0).endswith("  2,000")


async def test_a_digit_begins_a_text() -> None:
    app = Harness()
    async with app.run_test() as pilot:
        await pilot.press("7")
        assert app.row(0).endswith(" 7 ")
        assert app.leaked == []


async def test_what_is_no_digit_begins_no_text() -> None:
    app = Harness()
    async with app.run_test() as pilot:
        await pilot.press("k", "x", "full_stop", "minus", "enter", "escape")
        assert app.leaked == ["k", "minus", "enter", "escape"]
        assert app.row(0).endswith(" 10")


async def test_no_key_leaks_to_the_app_while_a_text_is_typed() -> None:
    app = Harness()
    async with app.run_test() as pilot:
        await pilot.press("1", "k", "m", "percent_sign", "comma", "space", "minus", "plus", "left", "home")
        assert app.row(0).endswith("1km%, -+ ")
        await pilot.press("escape")
        assert app.leaked == []
        assert app.posted == []


async def test_backspace_takes_the_last_character_back() -> None:
    app = Harness()
    async with app.run_test() as pilot:
        await pilot.press("4", "2", "backspace", "backspace", "backspace", "7", "enter")
        assert app.posted == [(7, True)]


async def test_a_refused_text_goes_and_its_rule_stays_until_the_next_key() -> None:
    app = Harness()
    async with app.run_test() as pilot:
        await pilot.press("2", "0", "0", "enter")
        assert app.row(0) == "1 to 100" + " " * 20 + "10"
        assert app.posted == []
        await pilot.press("k")  # the app's keys are the app's again
        assert app.leaked == ["k"]
        await pilot.press("2")
        assert app.row(0) == "steps" + " " * 23 + "2 "


async def test_a_typed_value_is_kept_though_it_is_off_the_grid() -> None:
    app = Harness(RATE, value=0.03)
    async with app.run_test() as pilot:
        await pilot.press(*"3.33", "percent_sign", "enter")
        assert app.posted == [(0.0333, True)]


async def test_entering_the_same_value_posts_nothing() -> None:
    app = Harness()
    async with app.run_test() as pilot:
        await pilot.press("1", "0", "enter")
        assert app.posted == []
        assert app.row(0).endswith(" 10")


async def test_escape_cancels_and_only_then_reaches_the_app() -> None:
    app = Harness()
    async with app.run_test() as pilot:
        await pilot.press("4", "escape")
        assert (app.row(0)[-3:], app.leaked) == (" 10", [])
        await pilot.press("escape")
        assert app.leaked == ["escape"]


async def test_losing_the_focus_cancels() -> None:
    app = Harness()
    async with app.run_test() as pilot:
        await pilot.press("4", "tab")
        assert app.focused is not app.slider
        assert app.row(0).endswith(" 10")
        assert app.posted == []


async def test_pressing_the_track_cancels_the_text_and_moves() -> None:
    app = Harness()
    async with app.run_test() as pilot:
        await pilot.press("4")
        await pilot.click(Slider, offset=(29, 1))
        assert app.row(0).endswith(" 100")


async def test_pasted_text_is_typed_text() -> None:
    app = Harness()
    async with app.run_test() as pilot:
        app.post_message(events.Paste(" 42\n"))
        await pilot.press("enter")
        assert app.posted == [(42, True)]


async def test_a_long_text_shows_its_end() -> None:
    app = Harness()
    async with app.run_test() as pilot:
        app.post_message(events.Paste("1234567890" * 4))
        await pilot.pause()
        assert app.row(0) == "234567890" + "1234567890" * 2 + " "


# The mouse


@pytest.mark.parametrize(("column", "value"), [(0, 1), (29, 100), (15, 52)])
async def test_a_click_on_the_track_moves_the_handle_there(column: int, value: Value) -> None:
    app = Harness()
    async with app.run_test() as pilot:
        await pilot.click(Slider, offset=(column, 1))
        assert app.posted == [(value, False), (value, True)]
        assert app.row(1)[column] == "●"


async def test_pressing_the_handle_itself_changes_nothing() -> None:
    app = Harness(value=51)
    async with app.run_test() as pilot:
        await pilot.click(Slider, offset=(app.row(1).index("●"), 1))
        assert app.slider.value == 51
        assert app.posted == []


@pytest.mark.parametrize(("column", "value"), [(-LEFT, 1), (45, 100)])
async def test_a_drag_past_the_widget_reaches_the_end(column: int, value: Value) -> None:
    app = Harness()
    async with app.run_test() as pilot:
        await press_mouse(pilot, 15)
        await drag(pilot, column)
        assert app.posted == [(52, False), (value, False)]
        await let_go(pilot, column)
        assert app.posted[2:] == [(value, True)]
        await drag(pilot, 10)
        assert app.slider.value == value


async def test_a_drag_posts_each_change_once_and_ends_with_one_final() -> None:
    app = Harness(value=50)
    async with app.run_test() as pilot:
        start = app.row(1).index("●")
        await press_mouse(pilot, start)
        for column in (start, start + 1, start + 1, start):
            await drag(pilot, column)
        await let_go(pilot, start)
        assert [final for _, final in app.posted] == [False, False, True]
        assert app.posted[-1][0] == app.slider.value


async def test_a_click_on_the_first_row_only_focuses() -> None:
    app = Harness()
    async with app.run_test() as pilot:
        app.set_focus(None)
        await pilot.click(Slider, offset=(25, 0))
        assert app.focused is app.slider
        assert app.posted == []


async def test_other_buttons_move_nothing() -> None:
    app = Harness()
    async with app.run_test() as pilot:
        await pilot.click(Slider, offset=(25, 1), button=3)
        assert app.posted == []


async def test_a_double_click_restores_the_default() -> None:
    app = Harness(value=50, default=10)
    async with app.run_test() as pilot:
        await pilot.double_click(Slider, offset=(20, 1))
        assert app.posted[-1:] == [(10, True)]
        await pilot.press("end")
        await pilot.double_click(Slider, offset=(2, 0))
        assert app.posted[-2:] == [(100, True), (10, True)]


async def test_the_wheel_scrolls_the_rail_and_moves_no_value() -> None:
    app = Harness()
    async with app.run_test() as pilot:
        x, y = app.slider.region.offset
        app.screen._forward_event(events.MouseScrollDown(app.slider, x, y, 0, 1, 0, False, False, False))
        await pilot.pause(0.3)
        assert app.query_one(Rail).scroll_offset.y > 0
        assert app.posted == []


@pytest.mark.parametrize("loss", ["disabled", "hidden", "focus", "capture"])
async def test_a_drag_that_loses_the_slider_ends_with_one_final_and_frees_the_mouse(loss: str) -> None:
    app = Harness()
    async with app.run_test() as pilot:
        await press_mouse(pilot, 15)
        if loss == "disabled":
            app.slider.disabled = True
        elif loss == "hidden":
            app.slider.display = False
        elif loss == "focus":
            app.set_focus(None)
        else:
            app.query_one(Button).capture_mouse()
            app.capture_mouse(None)
        await pilot.pause()
        await drag(pilot, 25)
        assert app.mouse_captured is None
        assert app.posted == [(52, False), (52, True)]


# Code


async def test_code_sets_the_value_clamped_and_in_silence() -> None:
    app = Harness()
    async with app.run_test() as pilot:
        app.slider.value = 33
        await pilot.pause()
        assert app.row(0).endswith(" 33")
        app.slider.value = 1000
        await pilot.pause()
        assert app.slider.value == 100
        assert app.posted == []


async def test_new_bounds_clamp_the_value_in_silence_and_move_the_handle() -> None:
    app = Harness(value=50, default=90)
    async with app.run_test() as pilot:
        app.slider.set_bounds(1, 20)
        await pilot.pause()
        assert app.slider.value == 20
        assert app.row(1).endswith("━●")
        assert app.posted == []
        await pilot.press("right", "left")
        assert app.posted == [(19, True)]
        await pilot.double_click(Slider, offset=(0, 0))
        assert app.slider.value == 20


async def test_a_scale_can_be_replaced() -> None:
    app = Harness(value=50)
    async with app.run_test() as pilot:
        app.slider.scale = SPEED
        await pilot.press("end")
        assert app.posted == [(None, True)]


async def test_bounds_set_before_the_slider_is_shown_hold() -> None:
    app = Harness(value=50)
    app.slider.set_bounds(1, 20)
    async with app.run_test():
        assert app.slider.value == 20


async def test_a_slider_may_be_born_disabled_and_out_of_range() -> None:
    app = Harness(value=500, disabled=True, tooltip="Steps in a job", id="steps", classes="rail")
    async with app.run_test():
        assert (app.slider.value, app.slider.tooltip, app.posted) == (100, "Steps in a job", [])
