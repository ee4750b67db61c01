"""The rail: sliders of a scenario and of the speed. It composes a scenario, and starts nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from textual import on
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.message import Message
from textual.widgets import Checkbox

from durcore.errors import InvalidScenario
from durcore.report import percent
from durcore.scenario import PARAMETERS, Scenario
from durtui.present import speed
from durtui.widgets.scale import Scale, Value
from durtui.widgets.slider import Slider

SPEED = "speed"
SPEED_SCALE = Scale.logarithmic(10, 100_000, unlimited=True)
DEFAULT_CALLS_PER_S = 1_100  # the mission's lab then takes about twenty seconds to watch
LABELS = {
    "jobs": "Jobs",
    "steps": "Steps",
    "email_step": "Email at step",
    "transient_rate": "Transient",
    "crash_rate": "Crash",
    "cost_per_call_usd": "Price a call",
}


def _scale(name: str, scenario: Scenario) -> Scale:
    """The range of a slider: handy, but wide enough for the scenario that the app was opened with."""
    value: Any = scenario.resolved()[name]
    if name == "jobs":
        return Scale.logarithmic(min(10, value), max(1_000_000, value))
    if name == "steps":
        return Scale.linear(1, int(PARAMETERS[name].high))
    if name == "email_step":
        return Scale.linear(1, scenario.steps)
    if name == "cost_per_call_usd":
        if value < 0.0001:
            return Scale.linear(0.0, 0.1, 0.0001)
        return Scale.logarithmic(0.0001, max(10.0, value))
    return Scale.linear(0.0, 0.5 if value <= 0.5 else 1.0, 0.001, percent=True)


def value_text(name: str, value: Value) -> str:
    """A parameter's value, or the speed's, as a person reads it."""
    if name == SPEED:
        return speed(value)
    assert value is not None
    if name.endswith("_rate"):
        return percent(round(value, 6))
    return f"${value:.4g}" if name == "cost_per_call_usd" else f"{value:,.0f}"


class KillBox(Checkbox):
    """A check box that tells by its mark whether it is set; Textual's own shows the mark always and colours it."""

    @property
    def BUTTON_INNER(self) -> str:  # type: ignore[override]  # noqa: N802  # textual's constant
        """A mark for each of the two."""
        return "X" if self.value else "-"


class Rail(VerticalScroll, can_focus=False, inherit_bindings=False):
    """Sliders from top to bottom. Posts ScenarioChanged with a whole scenario, and SpeedChanged.

    It does not scroll by keys: up and down move from slider to slider, which scrolls as far as is needed.
    """

    DEFAULT_CSS = """
    Rail {
        width: 26;
        border: round $primary 50%;
        border-title-color: $foreground;
        border-title-style: bold;
        padding: 0 1;
        scrollbar-size-vertical: 1;
        & Slider { margin: 0; }
        & Checkbox { width: 1fr; background: transparent; }
        & Checkbox > .toggle--button { color: $text-muted; }
        & Checkbox.-on > .toggle--button { color: $text-success; }
    }
    """

    @dataclass
    class ScenarioChanged(Message):
        """A slider gave a new scenario. `final` is False while it is being dragged."""

        scenario: Scenario
        final: bool

    @dataclass
    class SpeedChanged(Message):
        """The speed slider was moved; None is unlimited."""

        calls_per_s: float | None

    def __init__(self, scenario: Scenario, calls_per_s: float | None) -> None:
        super().__init__(id="rail")
        self.border_title = "Scenario"
        self.scenario = scenario
        self._calls_per_s = calls_per_s

    def compose(self) -> ComposeResult:
        """A slider a parameter, and one for the speed."""
        defaults = Scenario().resolved()
        for name, label in LABELS.items():
            yield Slider(
                label,
                _scale(name, self.scenario),
                value=self.scenario.resolved()[name],
                default=defaults[name],
                format_value=lambda value, name=name: value_text(name, value),  # type: ignore[misc]  # binds the name
                tooltip=f"{PARAMETERS[name].meaning}. Arrows, drag, or type a number; double click: the default.",
                id=name,
            )
        yield KillBox(
            "Real SIGKILL",
            self.scenario.crash_mode == "sigkill",
            compact=True,
            tooltip="a crash really kills the worker's process, and another takes its place: slower, the same figures",
            id="crash_mode",
        )
        yield Slider(
            "Speed",
            SPEED_SCALE,
            value=self._calls_per_s,
            default=DEFAULT_CALLS_PER_S,
            format_value=lambda value: value_text(SPEED, value),
            tooltip="calls a second in each lane; changing it restarts nothing",
            id=SPEED,
        )

    @on(Slider.Changed)
    def _take(self, event: Slider.Changed) -> None:
        event.stop()
        name = event.slider.id
        if name == SPEED:
            self.post_message(self.SpeedChanged(event.value))
            return
        assert name is not None
        changes: dict[str, Any] = {name: event.value}
        # A job that became shorter keeps its email: at its last step, if the step that it had is gone.
        if name == "steps" and (self.scenario.email_step or 0) > (event.value or 0):
            changes["email_step"] = event.value
        try:
            self.scenario = replace(self.scenario, **changes)
        except InvalidScenario as broken:
            self.notify(str(broken), severity="warning", markup=False)
            event.slider.value = self.scenario.resolved()[name]
            return
        email = self.query_one("#email_step", Slider)
        email.set_bounds(1, self.scenario.steps)
        email.value = self.scenario.effect_step
        self.post_message(self.ScenarioChanged(self.scenario, event.final))

    @on(Checkbox.Changed)
    def _take_crash_mode(self, event: Checkbox.Changed) -> None:
        event.stop()
        self.scenario = replace(self.scenario, crash_mode="sigkill" if event.value else "raise")
        self.post_message(self.ScenarioChanged(self.scenario, final=True))

    def take(self, scenario: Scenario) -> None:
        """Move every slider to a scenario that came from elsewhere, and post it as one that a person has set."""
        self.scenario = scenario
        for name in LABELS:
            slider = self.query_one(f"#{name}", Slider)
            slider.scale = _scale(name, scenario)
            slider.value = scenario.resolved()[name]
        with self.prevent(Checkbox.Changed):
            self.query_one("#crash_mode", Checkbox).value = scenario.crash_mode == "sigkill"
        self.post_message(self.ScenarioChanged(scenario, final=True))

    def toggle_crash_mode(self) -> None:
        """From crashes that unwind to workers that are killed, or back."""
        self.query_one("#crash_mode", Checkbox).toggle()

    def nudge_speed(self, steps: int) -> None:
        """Move the speed by so many steps of its slider."""
        self.query_one(f"#{SPEED}", Slider).action_step(steps)
