"""The app as a person meets it: lanes that stream, keys, sliders, exports, and any size of terminal."""

import csv
import json
import os
import re
import signal
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from textual.pilot import Pilot
from textual.widgets import Footer, Static, Tabs

from durcore.designs import DEFAULT_DESIGNS, find_designs
from durcore.lab import run_lab
from durcore.scenario import Scenario
from durtui.app import DurtuiApp
from durtui.session import Session
from durtui.view import Phase
from durtui.widgets.lane_panel import LanePanel
from durtui.widgets.rail import Rail
from durtui.widgets.slider import Slider

Lanes = Callable[[], list[int]]
Runs = Callable[[], list[Path]]

REST_S = 0.3
SMALL = Scenario(jobs=60, steps=4, transient_rate=0.2, crash_rate=0.1)
LARGE = Scenario(jobs=100_000)


class Watched(Session):
    """A session that notes when it was started on what."""

    def __init__(self, designs: Sequence[str], calls_per_s: float | None) -> None:
        super().__init__(find_designs(designs), 7, calls_per_s)
        self.starts: list[tuple[float, Scenario]] = []

    def start(self, scenario: Scenario) -> None:
        self.starts.append((time.monotonic(), scenario))
        super().start(scenario)

    @property
    def calls(self) -> list[float]:
        return [view.figures.model_calls for view in self.look()]

    @property
    def phases(self) -> set[Phase]:
        return {view.phase for view in self.look()}


class Opened:
    """The app on a screen that can be read, with a session that can be watched."""

    def __init__(self, app: DurtuiApp, pilot: Pilot[None], session: Watched) -> None:
        self.app = app
        self.pilot = pilot
        self.session = session

    async def until(self, condition: Callable[[], object], within_s: float = 20.0) -> None:
        deadline = time.monotonic() + within_s
        while not condition():
            assert time.monotonic() < deadline, "\n".join(self.rows)
            await self.pilot.pause(0.02)

    @property
    def rows(self) -> list[str]:
        """What stands on the screen."""
        strips = self.app.screen._compositor.render_strips()
        return ["".join(segment.text for segment in strip) for strip in strips][: self.app.size.height]

    @property
    def screen(self) -> str:
        return "\n".join(self.rows)

    @property
    def notices(self) -> list[str]:
        return [notice.message for notice in self.app._notifications]

    def slider(self, name: str) -> Slider:
        return self.app.screen.query_one(f"#{name}", Slider)

    def panel(self, name: str) -> list[str]:
        """The lines of a lane's panel."""
        panel = self.app.screen.query_one(f"#lane-{name}", LanePanel)
        return [panel.render_line(y).text.rstrip() for y in range(panel.content_size.height)]

    async def focus(self, name: str) -> None:
        """Go to a slider."""
        self.slider(name).focus()
        await self.until(lambda: self.slider(name).has_focus)

    async def enter(self, name: str, text: str) -> None:
        """Type a value into a slider."""
        await self.focus(name)
        await self.pilot.press(*["full_stop" if key == "." else key for key in text], "enter")


Open = Callable[..., AbstractAsyncContextManager[Opened]]


@pytest.fixture
def opened(state_home: Path) -> Open:
    """Opens the app on a scenario; everything ends with the context."""

    @asynccontextmanager
    async def open_(
        scenario: Scenario,
        *,
        size: tuple[int, int] = (120, 36),
        calls_per_s: float | None = 2000,
        designs: Sequence[str] = DEFAULT_DESIGNS,
        notifications: bool = True,
    ) -> AsyncIterator[Opened]:
        session = Watched(designs, calls_per_s)
        app = DurtuiApp(session, scenario)
        try:
            async with app.run_test(size=size, notifications=notifications) as pilot:
                yield Opened(app, pilot, session)
        finally:
            session.close()

    return open_


def figures_of(lines: list[str]) -> dict[str, str]:
    """The figures of a panel without big digits: the last word of each labelled line; calls by whose they are."""
    found, last = {}, ""
    for line in lines:
        label, _, value = line.rpartition(" ")
        if value and label.strip():
            last = label.strip() if not label.startswith("  ") else f"{last} {label.strip()}"
            found[last] = value
    return found


# Lanes


async def test_lanes_stream_and_end_with_the_contracts_figures(opened: Open) -> None:
    async with opened(Scenario(), size=(150, 16), calls_per_s=None) as durtui:
        seen = set()

        def done() -> bool:
            seen.add(durtui.panel("whole-job")[1])
            return durtui.session.phases == {Phase.DONE}

        await durtui.until(done)
        await durtui.until(lambda: "done" in durtui.rows[0])
        assert len(seen) >= 5
        shown = {name: figures_of(durtui.panel(name)) for name in DEFAULT_DESIGNS}
        common = {"finished": "2,000", "lost": "0", "unproductive": "$8.36", "wasted": "$8.36"}
        for name, figures in {
            "whole-job": {"finished": "1,928", "lost": "72", "duplicates": "287", "unproductive": "$51.45"},
            "checkpoint": {**common, "duplicates": "20"},
            "checkpoint-idempotent": {**common, "duplicates": "0"},
        }.items():
            assert {label: shown[name].get(label) for label in figures} == figures
        assert "5,044" in durtui.screen
        assert "no checkpoints" in durtui.screen
        assert re.search(r"\d µs", durtui.screen)


async def test_lanes_at_the_default_speed_move_many_times_a_second(opened: Open) -> None:
    async with opened(Scenario(), size=(150, 15), calls_per_s=1100) as durtui:
        await durtui.until(lambda: min(durtui.session.calls) > 0)
        seen: dict[str, set[str]] = {name: set() for name in DEFAULT_DESIGNS}
        ends = time.monotonic() + 1
        while time.monotonic() < ends:
            for name, looks in seen.items():
                looks.add("\n".join(durtui.panel(name)))
            await durtui.pilot.pause(0.01)
        assert min(map(len, seen.values())) >= 7


async def test_the_lanes_shown_are_those_that_were_asked_for(opened: Open) -> None:
    async with opened(SMALL, designs=["checkpoint"]) as durtui:
        await durtui.until(lambda: durtui.session.phases == {Phase.DONE})
        assert [panel.id for panel in durtui.app.screen.query(LanePanel)] == ["lane-checkpoint"]
        assert "Checkpoint per step" in durtui.screen


async def test_a_lane_that_is_killed_says_so_and_the_others_go_on(opened: Open, lanes: Lanes) -> None:
    async with opened(Scenario(jobs=400), calls_per_s=2000) as durtui:
        await durtui.until(lambda: min(durtui.session.calls) > 0)
        os.kill(lanes()[0], signal.SIGKILL)
        await durtui.until(lambda: durtui.session.phases == {Phase.DONE, Phase.FAILED})
        await durtui.until(lambda: "failed" in durtui.rows[0])
        assert "killed by signal 9" in " ".join(" ".join(map("\n".join, map(durtui.panel, DEFAULT_DESIGNS))).split())


# Keys


async def test_space_holds_every_figure_and_lets_it_go_on(opened: Open) -> None:
    async with opened(LARGE, size=(150, 15)) as durtui:
        await durtui.until(lambda: min(durtui.session.calls) > 0)
        await durtui.pilot.press("space")
        await durtui.until(lambda: "paused" in durtui.rows[0])
        await durtui.pilot.pause(0.3)
        held = durtui.screen
        await durtui.pilot.pause(0.5)
        assert durtui.screen == held
        calls = durtui.session.calls
        await durtui.pilot.press("space")
        await durtui.until(lambda: min(durtui.session.calls) > max(calls) and "running" in durtui.rows[0])
        assert durtui.screen != held


async def test_a_full_stop_is_exactly_one_call_in_each_lane(opened: Open) -> None:
    async with opened(LARGE, calls_per_s=50) as durtui:
        await durtui.until(lambda: min(durtui.session.calls) > 0)
        await durtui.pilot.press("space")
        await durtui.pilot.pause(0.3)
        before = durtui.session.calls
        for count in (1, 2, 3):
            await durtui.pilot.press("full_stop")
            await durtui.until(lambda count=count: durtui.session.calls == [each + count for each in before])  # type: ignore[misc]  # binds
        await durtui.pilot.pause(0.3)
        assert durtui.session.calls == [each + 3 for each in before]


async def test_r_begins_the_same_scenario_again(opened: Open, lanes: Lanes, runs: Runs) -> None:
    async with opened(SMALL) as durtui:
        await durtui.until(lambda: durtui.session.phases == {Phase.DONE})
        before = [view.figures for view in durtui.session.look()]
        run = durtui.session.directory
        await durtui.pilot.press("r")
        assert [scenario for _, scenario in durtui.session.starts] == [SMALL, SMALL]
        assert durtui.session.directory != run
        await durtui.until(lambda: durtui.session.phases == {Phase.DONE})
        assert [view.figures for view in durtui.session.look()] == before
        await durtui.until(lambda: len(runs()) == 1)
    assert (lanes(), runs()) == ([], [])


async def test_brackets_change_the_speed_and_restart_nothing(opened: Open, lanes: Lanes) -> None:
    async with opened(LARGE, calls_per_s=500) as durtui:
        await durtui.until(lambda: min(durtui.session.calls) > 0)
        processes = lanes()
        assert "500 calls/s" in durtui.rows[0]
        await durtui.pilot.press("right_square_bracket", "right_square_bracket")
        await durtui.until(lambda: "1,000 calls/s" in durtui.rows[0])
        await durtui.pilot.press("left_square_bracket")
        await durtui.until(lambda: "700 calls/s" in durtui.rows[0])
        await durtui.pilot.press(*["right_square_bracket"] * 14)
        await durtui.until(lambda: "unlimited" in durtui.rows[0])
        before = durtui.session.calls
        await durtui.until(lambda: min(durtui.session.calls) > max(before) + 2000)
        await durtui.pilot.pause(2 * REST_S)
        assert lanes() == processes
        assert len(durtui.session.starts) == 1


@pytest.mark.parametrize(("key", "told"), [("k", "crashes"), ("D", "60 deliveries"), ("o", "500 attempts")])
async def test_a_key_intervenes_in_every_lane_and_theory_falls_silent(opened: Open, key: str, told: str) -> None:
    async with opened(LARGE, size=(150, 36), calls_per_s=500) as durtui:
        await durtui.until(lambda: min(durtui.session.calls) > 0 and "expect" in durtui.screen)
        await durtui.pilot.press(key)
        assert any(told in notice for notice in durtui.notices)
        await durtui.until(lambda: all(len(view.interventions) == 1 for view in durtui.session.look()))
        await durtui.until(lambda: "theory does not apply" in durtui.rows[0])
        await durtui.until(lambda: "expect" not in durtui.screen)
        await durtui.until(lambda: re.search("intervened|resume alert", durtui.screen))


async def test_a_key_that_comes_after_the_end_changes_nothing_and_says_so(opened: Open) -> None:
    async with opened(SMALL, calls_per_s=None) as durtui:
        await durtui.until(lambda: durtui.session.phases == {Phase.DONE})
        await durtui.pilot.press("k")
        assert any("every lane has ended" in notice for notice in durtui.notices)
        assert durtui.session.result().interventions == ()


async def test_s_hides_the_sliders_and_shows_them(opened: Open) -> None:
    async with opened(SMALL) as durtui:
        for shown in (False, True):
            await durtui.pilot.press("s")
            await durtui.until(lambda shown=shown: ("Transient" in durtui.screen) == shown)  # type: ignore[misc]  # binds
        await durtui.pilot.resize_terminal(60, 20)
        for shown in (False, True, False):
            await durtui.until(lambda shown=shown: ("Transient" in durtui.screen) == shown)  # type: ignore[misc]  # binds
            await durtui.pilot.press("s")


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
async def test_a_key_quits(key: str, opened: Open) -> None:
    async with opened(LARGE) as durtui:
        await durtui.pilot.press(key)
        await durtui.until(lambda: not durtui.app.is_running)
        assert not durtui.app.return_code


# Sliders


async def test_a_slider_moved_by_key_restarts_the_lanes_when_it_has_rested_and_not_before(opened: Open) -> None:
    async with opened(LARGE) as durtui:
        await durtui.focus("steps")
        moved: list[float] = []
        durtui.app.screen.watch(durtui.slider("steps"), "value", lambda: moved.append(time.monotonic()), init=False)
        await durtui.pilot.press("right", "right", "right", "right")
        await durtui.until(lambda: durtui.session.starts[-1][1].steps == 14)
        assert len(moved) == 4
        for started, _ in durtui.session.starts[1:]:
            rested = started - max(moment for moment in moved if moment <= started)
            assert REST_S - 0.01 <= rested <= REST_S + 2
        count = len(durtui.session.starts)
        await durtui.pilot.pause(2 * REST_S)
        assert len(durtui.session.starts) == count


async def test_a_slider_moved_by_mouse_restarts_the_lanes_when_it_has_rested(opened: Open) -> None:
    async with opened(LARGE) as durtui:
        slider = durtui.slider("transient_rate")
        pressed = time.monotonic()
        await durtui.pilot.click("#transient_rate", offset=(slider.size.width - 1, 1))
        await durtui.until(lambda: slider.value == 0.5)
        await durtui.until(lambda: len(durtui.session.starts) == 2)
        started, scenario = durtui.session.starts[-1]
        assert scenario.transient_rate == 0.5
        assert started - pressed >= REST_S - 0.01
        await durtui.until(lambda: min(durtui.session.calls) > 0)


async def test_a_typed_value_restarts_the_lanes_on_exactly_it(opened: Open) -> None:
    async with opened(LARGE) as durtui:
        await durtui.enter("jobs", "123")
        await durtui.until(lambda: len(durtui.session.starts) == 2)
        assert durtui.session.starts[-1][1] == Scenario(jobs=123)
        await durtui.until(lambda: durtui.session.phases == {Phase.DONE})
        assert {view.ended for view in durtui.session.look()} == {123}


async def test_the_figures_after_a_slider_moved_are_those_of_its_scenario(opened: Open) -> None:
    async with opened(SMALL) as durtui:
        await durtui.focus("crash_rate")
        await durtui.pilot.press("2", "0", "percent_sign", "enter")
        await durtui.until(lambda: len(durtui.session.starts) == 2)
        await durtui.until(lambda: durtui.session.phases == {Phase.DONE})
        scenario = Scenario(jobs=60, steps=4, transient_rate=0.2, crash_rate=0.2)
        assert [view.figures for view in durtui.session.look()] == [
            design.median for design in run_lab(scenario, seeds=(7,)).designs
        ]


async def test_moving_the_speed_slider_restarts_nothing(opened: Open, lanes: Lanes) -> None:
    async with opened(LARGE, calls_per_s=100) as durtui:
        await durtui.until(lambda: min(durtui.session.calls) > 0)
        processes = lanes()
        await durtui.enter("speed", "500")
        await durtui.until(lambda: "500 calls/s" in durtui.rows[0])
        await durtui.pilot.pause(2 * REST_S)
        assert lanes() == processes


async def test_the_steps_bound_the_email_step_and_derive_it_anew(opened: Open) -> None:
    async with opened(LARGE) as durtui:
        email = durtui.slider("email_step")
        assert email.value == 6
        await durtui.enter("steps", "3")
        await durtui.until(lambda: email.value == 3)
        await durtui.focus("email_step")
        await durtui.pilot.press("home")
        await durtui.until(lambda: email.value == 1)
        await durtui.pilot.press("end")
        await durtui.until(lambda: email.value == 3)
        await durtui.enter("steps", "20")
        await durtui.enter("email_step", "15")
        await durtui.enter("steps", "30")
        await durtui.until(lambda: email.value == 15)
        await durtui.enter("steps", "12")
        await durtui.until(lambda: email.value == 12)
        await durtui.until(lambda: durtui.session.starts[-1][1] == Scenario(jobs=100_000, steps=12, email_step=12))


async def test_an_email_step_that_nobody_set_comes_back_when_the_steps_do(opened: Open) -> None:
    async with opened(LARGE) as durtui:
        await durtui.enter("steps", "3")
        await durtui.enter("steps", "10")
        await durtui.until(lambda: durtui.slider("email_step").value == 6)


async def test_rates_that_do_not_go_together_are_refused_with_the_rule_and_restart_nothing(opened: Open) -> None:
    async with opened(Scenario(jobs=50_000, transient_rate=0.6, crash_rate=0.3)) as durtui:
        await durtui.focus("transient_rate")
        await durtui.pilot.press("9", "0", "percent_sign", "enter")
        await durtui.until(lambda: durtui.notices)
        assert "must be at most 1" in durtui.notices[-1]
        assert durtui.slider("transient_rate").value == 0.6
        await durtui.pilot.pause(2 * REST_S)
        assert len(durtui.session.starts) == 1


async def test_every_slider_can_be_reached_by_keys(opened: Open) -> None:
    async with opened(SMALL, size=(80, 24)) as durtui:
        reached = set()
        for _ in range(10):
            await durtui.pilot.press("down")
            await durtui.pilot.pause()
            slider = durtui.app.focused
            if isinstance(slider, Slider):
                reached.add(slider.id)
                assert durtui.app.screen.query_one(Rail).region.contains_region(slider.region)
        assert reached == {
            "jobs",
            "steps",
            "email_step",
            "transient_rate",
            "crash_rate",
            "cost_per_call_usd",
            "speed",
        }


# Export


async def test_e_exports_four_files_that_parse_and_shows_where(opened: Open, tmp_path: Path) -> None:
    async with opened(SMALL, size=(120, 36)) as durtui:
        await durtui.until(lambda: durtui.session.phases == {Phase.DONE})
        await durtui.until(lambda: "done" in durtui.rows[0])
        folders: list[Path] = []
        for _ in range(2):
            await durtui.pilot.press("e")
            await durtui.until(lambda: [n for n in durtui.notices if not any(str(f) == n.split()[-1] for f in folders)])
            folders.append(Path(durtui.notices[-1].split()[-1]))
        assert sorted(folders) == sorted((tmp_path / "durtui-exports").iterdir())
        for folder in folders:
            assert len(list(folder.iterdir())) == 4
            tree = json.loads((folder / "snapshot.json").read_text())
            assert tree["complete"]
            assert tree["scenario"] == SMALL.resolved()
            whole = tree["designs"][0]["replications"][0]["figures"]
            assert whole == durtui.session.look()[0].figures.as_dict()
            rows = list(csv.DictReader((folder / "figures.csv").read_text().splitlines()))
            assert float(rows[0]["model_calls"]) == whole["model_calls"]
            assert "| Whole-job retry |" in (folder / "table.md").read_text()
            picture = ET.fromstring((folder / "screen.svg").read_text())  # noqa: S314  # our own file
            shown = "".join(picture.itertext()).replace("\xa0", " ")
            assert tree["command"] in shown
            assert "Whole-job retry" in shown
            assert "Exported" not in shown  # what was told of the export before is no part of this one
        durtui.app.clear_notifications()


async def test_an_export_of_a_run_under_way_says_that_it_is_not_final(opened: Open, tmp_path: Path) -> None:
    async with opened(LARGE, calls_per_s=100) as durtui:
        await durtui.until(lambda: min(durtui.session.calls) > 0)
        await durtui.pilot.press("e")
        await durtui.until(lambda: durtui.notices)
        (folder,) = (tmp_path / "durtui-exports").iterdir()
        assert json.loads((folder / "snapshot.json").read_text())["complete"] is False
        assert "not final" in (folder / "table.md").read_text()


@pytest.mark.parametrize("name", ["plain", "[/red] [bold"], ids=["plain", "like markup"])
async def test_an_export_that_cannot_be_written_is_told_and_the_app_lives_on(
    name: str, opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / name
    place.mkdir(parents=True)
    (place / "durtui-exports").touch()
    monkeypatch.chdir(place)
    async with opened(SMALL) as durtui:
        await durtui.pilot.press("e")
        await durtui.until(lambda: durtui.notices)
        assert "cannot be written" in durtui.notices[-1]
        await durtui.pilot.pause(0.3)
        await durtui.until(lambda: durtui.session.phases == {Phase.DONE})
        assert "Nothing was exported" in durtui.screen


# Sizes and misfortune

SIZES = [(20, 6), (200, 50), (33, 7), (80, 24), (70, 14), (20, 50), (201, 6), (111, 20)]


async def test_no_size_crashes_the_app_while_it_runs_or_with_the_sliders_shown(opened: Open) -> None:
    async with opened(LARGE, size=(20, 6)) as durtui:
        await durtui.until(lambda: min(durtui.session.calls) > 0)
        for key in ("s", "w"):
            for width, height in SIZES:
                await durtui.pilot.resize_terminal(width, height)
                await durtui.pilot.pause()
                assert durtui.app.size == (width, height)
                assert durtui.app.is_running
            await durtui.pilot.press(key)


@pytest.mark.parametrize("size", [(20, 6), (40, 10), (69, 24), (80, 13)])
async def test_a_small_terminal_shows_every_lane_in_one_table(size: tuple[int, int], opened: Open) -> None:
    async with opened(Scenario(), size=size, calls_per_s=None) as durtui:
        await durtui.until(lambda: durtui.session.phases == {Phase.DONE})
        table = durtui.app.screen.query_one("#compact", Static)
        await durtui.until(lambda: str(table.content).count("100 %") == 3)
        lines = str(table.content).splitlines()
        assert [line.split()[-3:] for line in lines[2:4]] == [["72", "0", "0"], ["287", "20", "0"]]
        shown = [row.strip() for row in durtui.rows]
        assert all(line.strip() in shown for line in lines[:4])


async def test_80_by_24_shows_headline_lanes_sliders_and_keys(opened: Open) -> None:
    async with opened(SMALL, size=(80, 24)) as durtui:
        await durtui.until(lambda: durtui.session.phases == {Phase.DONE})
        await durtui.until(lambda: "done" in durtui.rows[0])
        bounds = durtui.app.screen.region
        for panel in durtui.app.screen.query(LanePanel):
            assert panel.display
            assert bounds.contains_region(panel.region)
            assert panel.content_size.width >= 10
        assert "seed 7" in durtui.rows[0]
        footer = durtui.app.screen.query_one(Footer)
        assert bounds.contains_region(footer.region)
        await durtui.until(lambda: "Export" in durtui.rows[footer.region.y])
        for key in ("Pause", "Step", "Restart", "Export", "Quit"):
            assert key in durtui.rows[footer.region.y], key


async def test_a_scenario_without_room_is_told_and_the_app_lives_on(opened: Open, runs: Runs) -> None:
    huge = Scenario(jobs=1_000_000, steps=100, output_bytes=1_048_576)  # a hundred terabytes a lane
    async with opened(huge, size=(120, 36)) as durtui:
        await durtui.until(lambda: durtui.notices)
        assert "MiB" in durtui.notices[-1]
        assert "nothing runs" in durtui.rows[0]
        await durtui.pilot.press("space", "space", "full_stop", "space", "e", "left_square_bracket", "r")
        await durtui.pilot.pause(0.2)
        await durtui.enter("steps", "1")
        await durtui.enter("jobs", "10")
        await durtui.until(lambda: durtui.session.phases == {Phase.DONE})
        assert len(runs()) == 1


async def test_figures_of_another_scenario_do_not_stay_on_the_screen(opened: Open) -> None:
    async with opened(Scenario(jobs=10, output_bytes=1_048_576), size=(150, 15)) as durtui:
        await durtui.until(lambda: durtui.session.phases == {Phase.DONE})
        await durtui.until(lambda: "100 %" in durtui.panel("checkpoint")[0])
        await durtui.enter("jobs", "1000000")
        await durtui.until(lambda: "nothing runs" in durtui.rows[0])
        assert "100 %" not in durtui.panel("checkpoint")[0]


# Expectations and the sweep


async def test_each_leading_figure_has_its_expectation_below_it(opened: Open) -> None:
    async with opened(Scenario(jobs=2000), size=(120, 36)) as durtui:
        await durtui.until(lambda: "expect 75 ± 8.5" in durtui.screen)
        assert "expect 283 ± 16" in durtui.screen


async def test_the_expectation_follows_a_slider_before_any_lane_restarts(opened: Open) -> None:
    async with opened(Scenario(jobs=2000), size=(120, 36)) as durtui:
        await durtui.until(lambda: "expect 75 ± 8.5" in durtui.screen)
        slider = durtui.slider("steps")
        slider.post_message(Slider.Changed(slider, 20, final=False))
        await durtui.until(lambda: "expect 347 ± 17" in durtui.screen)
        followed = time.monotonic()
        assert "a job of 20 steps 44.2 %" in durtui.screen
        await durtui.pilot.pause(2 * REST_S)
        assert len(durtui.session.starts) == 1  # a drag that is held still is a drag
        slider.post_message(Slider.Changed(slider, 20, final=True))
        await durtui.until(lambda: len(durtui.session.starts) == 2)
        assert durtui.session.starts[-1][0] > followed


async def test_w_shows_the_sweep_and_the_lanes_again(opened: Open) -> None:
    async with opened(SMALL, size=(120, 36)) as durtui:
        await durtui.pilot.press("w")
        await durtui.until(lambda: "duplicate emails" in durtui.screen and "│ Steps" in durtui.screen)
        await durtui.pilot.press("w")
        await durtui.until(lambda: "Whole-job retry ─" in durtui.screen)


async def test_the_sweep_is_of_the_tab_that_was_chosen_and_of_the_sliders_scenario(opened: Open) -> None:
    async with opened(SMALL, size=(120, 36)) as durtui:
        await durtui.pilot.press("w")
        durtui.app.screen.query_one(Tabs).active = "crash_rate"
        await durtui.until(lambda: "Crash 10 %" in durtui.screen)
        await durtui.enter("crash_rate", "2%")
        await durtui.until(lambda: "Crash 2 %" in durtui.screen)
