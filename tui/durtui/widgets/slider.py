"""A slider of two rows: a label and its value, and a track with a handle. Knows no parameter and no scenario."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from durtui.widgets.scale import Scale, Value, fit_row

_TRACK_ROW = 1
_LEFT_BUTTON = 1
_DRAFT_STARTS = frozenset("0123456789")  # not the point: apps bind it, and 0.5 begins with a digit too
_DRAFT_ENDS = frozenset({"enter", "escape", "backspace", "delete"})
# Textual's table from keys to characters does not know what these print.
_UNLISTED = frozenset({"minus", "plus", "slash", "backslash", "at", "underscore"})


class Glyphs(NamedTuple):
    """The characters of a slider, one cell each."""

    filled: str
    rest: str
    handle: str
    cut: str


DRAWN = Glyphs(filled="━", rest="─", handle="●", cut="…")
PLAIN = Glyphs(filled="=", rest="-", handle="O", cut="~")


class Slider(Widget, can_focus=True):
    """A number set by keys, by mouse, or by typing it. Two rows tall, as wide as its container lets it be.

    A digit begins a text in the place of the value: enter takes it, escape or leaving drops it,
    and what the scale refuses is dropped too, and the broken rule stands there until the next key. A double click
    restores `default`.

    Setting `value` or `scale` in code clamps the value and posts nothing; a person's change posts `Changed`.
    """

    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"slider--{part}" for part in ("label", "value", "rule", "cursor", "filled", "rest", "handle")
    }
    DEFAULT_CSS = """
    Slider {
        height: 2;
        width: 1fr;
        & > .slider--label { color: $foreground; }
        & > .slider--value { color: $text-primary; text-style: bold; }
        & > .slider--rule { color: $text-error; text-style: bold; }
        & > .slider--cursor { color: $text-primary; text-style: reverse; }
        & > .slider--filled { color: $primary; }
        & > .slider--handle { color: $primary; text-style: bold; }
        & > .slider--rest { color: $foreground 30%; }
        &:focus > .slider--label { color: $text-accent; text-style: bold reverse; }
        &:focus > .slider--filled, &:focus > .slider--handle { color: $text-accent; }
        &:disabled { opacity: 50%; }
        &:ansi > .slider--rest, &:ansi:disabled > .slider--label { text-style: dim; }
    }
    """
    # Up, down and tab are left to the app: they move the focus, which also drops a text that is being typed.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "step(-1)", "Less", show=False),
        Binding("right", "step(1)", "More", show=False),
        Binding("shift+left", "step(-10)", "Ten steps less", show=False),
        Binding("shift+right", "step(10)", "Ten steps more", show=False),
        Binding("pagedown", "page(-1)", "A tenth of the track less", show=False),
        Binding("pageup", "page(1)", "A tenth of the track more", show=False),
        Binding("home", "page(-10)", "Least", show=False),
        Binding("end", "page(10)", "Most", show=False),
    ]

    scale: reactive[Scale] = reactive(Scale.linear(0, 0))
    """The values there are. A new scale clamps `value` and `default` as they are used, and posts nothing."""
    value: reactive[Value] = reactive[Value](0, init=False)
    """The value shown; whatever is assigned is clamped to the scale."""
    _draft: reactive[str | None] = reactive[str | None](None, init=False)
    _rule: reactive[str] = reactive("", init=False)

    @dataclass
    class Changed(Message):
        """A person changed the value. `final` is False while a drag goes on; every drag that moved ends with True."""

        slider: Slider
        value: Value
        final: bool

        @property
        def control(self) -> Slider:
            """The slider, so that `@on(Slider.Changed, "#id")` works."""
            return self.slider

    def __init__(
        self,
        label: str,
        scale: Scale,
        *,
        value: Value,
        default: Value,
        format_value: Callable[[Value], str],
        plain: bool = False,
        tooltip: str | None = None,
        id: str | None = None,  # noqa: A002  # textual's own name for it
        classes: str | None = None,
        disabled: bool = False,
    ) -> None:
        super().__init__(id=id, classes=classes, disabled=disabled)
        self.label = label
        self.default = default
        self.tooltip = tooltip
        self._format_value = format_value
        self._glyphs = PLAIN if plain else DRAWN
        self._dragging = False
        self._drag_moved = False
        self.set_reactive(Slider.scale, scale)
        self.set_reactive(Slider.value, scale.clamp(value))

    def set_bounds(self, low: float, high: float) -> None:
        """Move the ends of the scale. The value is clamped to them, and nothing is posted."""
        self.scale = replace(self.scale, low=low, high=high)

    # How it is drawn

    def render_line(self, y: int) -> Strip:
        """One of the two rows."""
        width = self.content_size.width
        segments = self._track(width) if y == _TRACK_ROW else self._top_row(width)
        return Strip(segments, width)

    def _top_row(self, width: int) -> list[Segment]:
        label, label_class = (self._rule, "rule") if self._rule else (self.label, "label")
        if self._draft is None:
            label, value = fit_row(label, self._format_value(self.value), width, self._glyphs.cut)
            cursor = ""
        else:
            # The end of a long text is what is being typed, so its beginning is what goes.
            label, value = fit_row(label, self._draft[-(width - 1) :] + " ", width, self._glyphs.cut)
            value, cursor = value[:-1], value[-1:]
        text = label.rstrip()
        gap = Segment(label[len(text) :], self.rich_style)
        return [self._segment(text, label_class), gap, self._segment(value, "value"), self._segment(cursor, "cursor")]

    def _track(self, width: int) -> list[Segment]:
        filled, rest, handle, _ = self._glyphs
        column = self.scale.column(self.value, width)
        return [
            self._segment(filled * column, "filled"),
            self._segment(handle, "handle"),
            self._segment(rest * (width - column - 1), "rest"),
        ]

    def _segment(self, text: str, component: str) -> Segment:
        return Segment(text, self.get_component_rich_style(f"slider--{component}"))

    # What changes it

    def validate_value(self, value: Value) -> Value:
        """Clamp what is assigned."""
        return self.scale.clamp(value)

    def watch_scale(self) -> None:
        """Clamp the value to the new scale."""
        self.value = self.scale.clamp(self.value)

    def action_step(self, steps: int) -> None:
        """Move by that many steps."""
        self._move(self.scale.stepped(self.value, steps))

    def action_page(self, pages: int) -> None:
        """Move by that many tenths of the track."""
        self._move(self.scale.paged(self.value, pages))

    def _move(self, value: Value, *, final: bool = True) -> bool:
        before, self.value = self.value, value
        if self.value == before:
            return False
        self.post_message(self.Changed(self, self.value, final))
        return True

    # Typing

    def check_consume_key(self, key: str, character: str | None) -> bool:
        """Tell textual which keys are a text's and so nobody else's binding."""
        if self._draft is not None:
            prints = key in _UNLISTED or (character is not None and character.isprintable())
            return prints or key in _DRAFT_ENDS or key in self._bindings.key_to_bindings
        return character in _DRAFT_STARTS

    def on_key(self, event: events.Key) -> None:
        """Take the keys of a text that is typed, or that begins."""
        self._rule = ""
        if not self.check_consume_key(event.key, event.character):
            return
        event.stop()
        event.prevent_default()
        draft = self._draft or ""
        if event.key == "enter":
            self._enter(draft)
        elif event.key == "escape":
            self._cancel()
        elif event.key == "backspace":
            self._draft = draft[:-1]
        elif event.is_printable:
            self._draft = draft + (event.character or "")

    def on_paste(self, event: events.Paste) -> None:
        """Take pasted text as if it were typed."""
        event.stop()
        self._rule = ""
        self._draft = (self._draft or "") + " ".join(event.text.split())

    def on_blur(self) -> None:
        """Drop a text that was not entered, and the handle: a slider that is hidden or disabled hears no release."""
        self._cancel()
        self._end_drag()

    def _enter(self, draft: str) -> None:
        try:
            value = self.scale.parse(draft)
        except ValueError as broken:
            # The text does not stay: it would swallow the next keys, which are meant for the app.
            self._draft = None
            self._rule = str(broken)
        else:
            self._cancel()
            self._move(value)

    def _cancel(self) -> None:
        self._draft = None
        self._rule = ""

    def watch__draft(self, before: str | None, now: str | None) -> None:
        """Let footers know that keys became this slider's, or are no longer."""
        if (before is None) != (now is None):
            self.refresh_bindings()

    # The mouse

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Begin a drag, where it is the track that was pressed; textual has given the focus already."""
        column, row = event.get_content_offset_capture(self)
        if event.button != _LEFT_BUTTON or row != _TRACK_ROW:
            return
        event.stop()
        self._cancel()
        self.capture_mouse()
        self._dragging = True
        self._drag_moved = False
        self._drag_to(column)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Follow the pointer, also beyond either end."""
        if self._dragging:
            event.stop()
            self._drag_to(event.get_content_offset_capture(self).x)

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """End a drag."""
        if self._dragging:
            event.stop()
            self._end_drag()

    def on_mouse_release(self) -> None:
        """End a drag that lost the mouse to another widget. Our own release of an earlier drag is not that."""
        if self.app.mouse_captured is not self:
            self._end_drag()

    def on_click(self, event: events.Click) -> None:
        """Restore the default on a double click."""
        if event.button == _LEFT_BUTTON and event.chain == 2:
            self._cancel()
            self._move(self.default)

    def _drag_to(self, column: int) -> None:
        width = self.content_size.width
        column = min(max(column, 0), max(width - 1, 0))
        # Pressing the handle takes hold of it and changes nothing, though its column has a rounder value.
        if column != self.scale.column(self.value, width):
            self._drag_moved |= self._move(self.scale.at_column(column, width), final=False)

    def _end_drag(self) -> None:
        if not self._dragging:
            return
        self._dragging = False
        self.release_mouse()
        if self._drag_moved:
            self.post_message(self.Changed(self, self.value, final=True))
