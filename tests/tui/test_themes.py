"""Themes: told apart by every eye, legible on a projector, offered first; an app without colours still tells."""

import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import combinations
from math import hypot

import pytest
from textual.color import Color, Lab, rgb_to_lab
from textual.command import Command, CommandList, CommandPalette
from textual.pilot import Pilot
from textual.theme import Theme
from textual.widgets import Checkbox

from durcore.designs import DEFAULT_DESIGNS, find_designs
from durcore.scenario import Scenario
from durtui.app import DurtuiApp
from durtui.session import Session
from durtui.terminal import drop_empty_no_color
from durtui.themes import COLOUR_BLIND, PROJECTOR, THEMES, Themes
from durtui.view import Phase

TEXTS = ("primary", "secondary", "accent", "warning", "error", "success", "muted")
# What stands side by side and must not be taken for each other: the figures of a panel, and the curves of a chart.
TOLD_APART = (("text-error", "text-success", "foreground"), ("text-error", "text-warning", "text-success"))
# Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB.
SIGHTS = {
    "full": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}


def colours(theme: Theme) -> dict[str, Color]:
    """The colours of a theme that are plain ones."""
    generated = theme.to_color_system().generate()
    return {name: Color.parse(text) for name, text in generated.items() if text.startswith("#")}


def linear(channel: float) -> float:
    return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4


def shown(channel: float) -> int:
    channel = min(max(channel, 0.0), 1.0)
    return round(255 * (12.92 * channel if channel <= 0.0031308 else 1.055 * channel ** (1 / 2.4) - 0.055))


def seen(colour: Color, sight: str) -> Lab:
    """A colour as eyes of this kind see it."""
    light = [linear(channel) for channel in colour.normalized]
    red, green, blue = (shown(sum(m * c for m, c in zip(row, light, strict=True))) for row in SIGHTS[sight])
    return rgb_to_lab(Color(red, green, blue))


def contrast(one: Color, other: Color) -> float:
    """The contrast of WCAG 2: 1 … 21."""

    def luminance(colour: Color) -> float:
        return sum(part * linear(c) for part, c in zip((0.2126, 0.7152, 0.0722), colour.normalized, strict=True))

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("sight", SIGHTS)
def test_states_stay_apart_in_the_colour_blind_theme_for_every_eye(sight: str) -> None:
    of = colours(COLOUR_BLIND)
    for one, other in (pair for group in TOLD_APART for pair in combinations(group, 2)):
        a, b = seen(of[one], sight), seen(of[other], sight)
        distance = hypot(a.L - b.L, a.a - b.a, a.b - b.b)
        assert distance > 20, f"{one} and {other} are {distance:.1f} apart for {sight} eyes"


@pytest.mark.parametrize(("theme", "least"), [(COLOUR_BLIND, 5), (PROJECTOR, 7)], ids=["colour-blind", "projector"])
def test_every_text_stands_out_from_its_ground(theme: Theme, least: float) -> None:
    of = colours(theme)
    for ground in ("background", "surface"):
        for name in ("foreground", *(f"text-{role}" for role in TEXTS)):
            assert contrast(of[name], of[ground]) >= least, f"{name} on {ground}"


# Without colours


def offered(app: DurtuiApp) -> list[str]:
    """What the palette offers now."""
    lists = app.screen.query(CommandList)
    options = [lists.first().get_option_at_index(index) for index in range(lists.first().option_count)] if lists else []
    return [option.hit.text or "" for option in options if isinstance(option, Command)]


async def choose(app: DurtuiApp, pilot: Pilot[None], words: str, title: str) -> None:
    """What a person does in an open palette: types until one thing is offered, and takes it."""
    await until(pilot, lambda: len(offered(app)) > 1)
    await pilot.press(*["space" if key == " " else key for key in words])
    await until(pilot, lambda: offered(app) == [title])
    await pilot.press("down", "enter")
    await until(pilot, lambda: not isinstance(app.screen, CommandPalette))


@asynccontextmanager
async def opened(scenario: Scenario) -> AsyncIterator[tuple[DurtuiApp, Pilot[None], Session]]:
    session = Session(find_designs(DEFAULT_DESIGNS), 7, None)
    app = DurtuiApp(session, scenario)
    try:
        async with app.run_test(size=(120, 36)) as pilot:
            yield app, pilot, session
    finally:
        session.close()


def test_an_empty_no_color_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "")
    drop_empty_no_color()
    assert "NO_COLOR" not in os.environ
    monkeypatch.setenv("NO_COLOR", "0")
    drop_empty_no_color()
    assert os.environ["NO_COLOR"] == "0"


async def until(pilot: Pilot[None], condition: Callable[[], object], within_s: float = 20.0) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "this did not come to pass"
        await pilot.pause(0.02)


@pytest.mark.parametrize(("value", "grey"), [("1", True), ("", False)], ids=["set", "empty"])
async def test_no_color_makes_the_app_grey_and_an_empty_one_does_not(
    value: str, grey: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", value)
    async with opened(Scenario(jobs=50)) as (app, pilot, _):

        def used() -> set[tuple[int, ...]]:
            strips = app.screen._compositor.render_strips()
            drawn = [s for strip in strips for s in strip.apply_filter(app._filters[-1], Color(0, 0, 0))]
            return {s.style.color.get_truecolor() for s in drawn if s.style and s.style.color and s.text.strip()}

        await until(pilot, lambda: len(used()) > 5)
        assert all(len(set(colour)) == 1 for colour in used()) is grey


async def test_without_colours_every_state_is_told_by_a_word_or_a_glyph(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with opened(Scenario(jobs=60, steps=4, transient_rate=0.3, crash_rate=0.1)) as (app, pilot, session):
        await until(pilot, lambda: {view.phase for view in session.look()} == {Phase.DONE})
        words = ("finished", "lost", "duplicates", "unproductive", "done", "100 %")

        def text() -> str:
            strips = app.screen._compositor.render_strips()
            return "\n".join("".join(segment.text for segment in strip) for strip in strips)

        await until(pilot, lambda: all(word in text() for word in words))
        box = app.screen.query_one(Checkbox)
        assert "X" not in str(box.render())
        await pilot.press("x")
        await pilot.pause()
        assert "X" in str(box.render())


# Where they are offered


async def test_the_palette_offers_our_themes_first_and_takes_the_first() -> None:
    async with opened(Scenario(jobs=50)) as (app, pilot, _):
        names = [name for name, _ in Themes(app.screen).commands]
        assert names[: len(THEMES)] == [theme.name for theme in THEMES]
        assert "textual-dark" in names
        assert app.theme == "textual-dark"
        app.search_themes()
        await until(pilot, lambda: offered(app) == names)
        await pilot.press("down", "enter")
        await until(pilot, lambda: not isinstance(app.screen, CommandPalette))
        app.search_themes()
        await choose(app, pilot, "projector", PROJECTOR.name)
        await until(pilot, lambda: app.theme == PROJECTOR.name)
