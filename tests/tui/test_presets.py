"""Presets as a person asks for them: by a flag of every command that takes a scenario, and in the app's palette."""

import json
import subprocess
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from textual.command import Command, CommandList, CommandPalette
from textual.pilot import Pilot
from textual.widgets import Checkbox

from durcore.designs import DEFAULT_DESIGNS, find_designs
from durcore.presets import DEPLOY_STORM, EMAIL_LAST, LONG_AGENT, PRESETS, Preset
from durcore.scenario import Scenario
from durtui.app import DurtuiApp
from durtui.session import Session
from durtui.widgets.rail import Rail
from durtui.widgets.slider import Slider

Durtui = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["theory"], lambda tree: tree["scenario"]),
        (["run", "--jobs", "5", "--replications", "1"], lambda tree: tree["scenario"]),
        (["--jobs", "5"], None),
        (["sweep", "crash_rate=0.01,0.02"], lambda tree: tree["scenario"]),
    ],
    ids=["theory", "run", "app", "sweep"],
)
def test_every_command_that_takes_a_scenario_takes_a_preset(
    durtui: Durtui, words: list[str], found: Callable[[dict[str, dict[str, object]]], dict[str, object]] | None
) -> None:
    if found is None:  # without a terminal it prints the table
        assert "jobs of 20 steps" in durtui(*words, "--preset", "long-agent").stdout
        return
    tree = json.loads(durtui(*words, "--preset", "long-agent", "--json", "-").stdout)
    assert found(tree)["steps"] == 20


@pytest.mark.parametrize("words", ["", "run", "theory", "sweep steps=5,10"])
def test_an_unknown_preset_is_told_in_one_line_with_exit_2(durtui: Durtui, words: str) -> None:
    done = durtui(*words.split(), "--preset", "bogus\x1b[31m")
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.isprintable()
    assert all(name in line for name in PRESETS)


def test_a_run_that_is_gone_on_with_takes_no_preset(durtui: Durtui) -> None:
    done = durtui("--resume", "kept", "--preset", "mission")
    assert done.returncode == 2
    assert "has a scenario and designs" in done.stderr


def test_the_help_of_a_run_names_every_preset(durtui: Durtui) -> None:
    told = " ".join(durtui("run", "--help").stdout.replace("│", " ").split())
    assert all(name in told for name in PRESETS)


@asynccontextmanager
async def opened(scenario: Scenario) -> AsyncIterator[tuple[DurtuiApp, Pilot[None], Session]]:
    session = Session(find_designs(DEFAULT_DESIGNS), 7, 2000)
    app = DurtuiApp(session, scenario)
    try:
        async with app.run_test(size=(120, 36), notifications=True) as pilot:
            yield app, pilot, session
    finally:
        session.close()


async def until(pilot: Pilot[None], condition: Callable[[], object], within_s: float = 20.0) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "this did not come to pass"
        await pilot.pause(0.02)


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


async def test_a_preset_of_the_palette_moves_the_sliders_restarts_the_lanes_and_says_what_to_watch_for() -> None:
    async with opened(Scenario(jobs=50, transient_rate=0.2)) as (app, pilot, session):
        await pilot.press("ctrl+p")
        await choose(app, pilot, "long agent", f"Preset: {LONG_AGENT.title}")
        await until(pilot, lambda: session.scenario == LONG_AGENT.scenario)
        shown = {slider.id: slider.value for slider in app.screen.query_one(Rail).query(Slider)}
        resolved = LONG_AGENT.scenario.resolved()
        assert {name: shown[name] for name in resolved if name in shown} == {
            name: value for name, value in resolved.items() if name in shown
        }
        assert [notice.message for notice in app._notifications] == [LONG_AGENT.watch]


@pytest.mark.parametrize("preset", [EMAIL_LAST, DEPLOY_STORM], ids=lambda preset: preset.name)
async def test_a_preset_keeps_real_kills_where_they_were_asked_for(preset: Preset) -> None:
    async with opened(Scenario(jobs=50, crash_mode="sigkill", steps=40)) as (app, pilot, session):
        app.take_preset(preset)
        await until(pilot, lambda: session.scenario == preset.over(Scenario(crash_mode="sigkill")))
        assert app.screen.query_one(Checkbox).value is True


async def test_the_palette_offers_every_preset_and_no_screenshot() -> None:
    async with opened(Scenario(jobs=50)) as (app, _, _session):
        titles = {command.title for command in app.get_system_commands(app.screen)}
        assert {f"Preset: {preset.title}" for preset in PRESETS.values()} < titles
        assert "Screenshot" not in titles
        assert {"Theme", "Quit"} < titles
