"""What the app keeps between its runs: what is kept, what goes before it, and that no file of it is ever fatal."""

import json
import os
import signal
import stat
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.app import App
from textual.pilot import Pilot

from durcore.designs import DEFAULT_DESIGNS, find_designs
from durcore.scenario import Scenario
from durtui.app import DurtuiApp
from durtui.cli import main
from durtui.kept import Kept, kept_path, read_kept, write_kept
from durtui.session import Session
from durtui.themes import PROJECTOR
from durtui.widgets.rail import Rail
from durtui.widgets.slider import Slider

SOME = Kept(
    scenario=Scenario(jobs=40, steps=7, transient_rate=0.2, crash_mode="sigkill"),
    theme=PROJECTOR.name,
    calls_per_s=None,
    rail_hidden=True,
)


def broken(text: str | bytes) -> Path:
    """What stands where the settings stand, and is none."""
    path = kept_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def changed(**changes: object) -> str:
    """The file as it would be, but for something."""
    write_kept(SOME)
    return json.dumps(json.loads(kept_path().read_text()) | changes)


BROKEN: dict[str, Callable[[], str | bytes]] = {
    "empty": lambda: "",
    "no JSON": lambda: "no json",
    "another shape": lambda: "[]",
    "no text": lambda: b"\xff\xfe\x00",
    "too deep": lambda: "[" * 50_000,
    "too long": lambda: " " * 100_000 + "{}",
    "of another version": lambda: changed(schema="durtui.kept/99"),
    "a scenario out of range": lambda: changed(scenario={"jobs": 0}),
    "an unknown parameter": lambda: changed(scenario={"bogus\x1b[31m": 1}),
    "a word for a number": lambda: changed(scenario={"jobs": "many"}),
    "a speed below 0": lambda: changed(calls_per_s=-1),
    "a word for a speed": lambda: changed(calls_per_s="fast"),
    "a number for a switch": lambda: changed(rail_hidden=3),
}


# The file


def test_what_is_kept_comes_back(state_home: Path) -> None:
    assert read_kept() == (None, "")
    assert write_kept(SOME) == ""
    assert read_kept() == (SOME, "")
    assert kept_path().is_relative_to(state_home)


def test_an_email_step_that_nobody_set_stays_so() -> None:
    write_kept(SOME)
    kept, _ = read_kept()
    assert kept is not None
    assert kept.scenario.email_step is None


def test_it_is_its_owners_alone_and_nothing_lies_beside_it() -> None:
    before = os.umask(0)
    try:
        write_kept(SOME)
        write_kept(SOME)
    finally:
        os.umask(before)
    assert stat.S_IMODE(kept_path().stat().st_mode) == 0o600
    assert stat.S_IMODE(kept_path().parent.stat().st_mode) == 0o700
    assert [path.name for path in kept_path().parent.iterdir()] == [kept_path().name]


@pytest.mark.parametrize(
    "make",
    BROKEN.values(),
    ids=BROKEN,
)
def test_a_broken_file_is_set_aside_whole_with_one_message(make: Callable[[], str | bytes]) -> None:
    path = broken(make())
    held = path.read_bytes()
    kept, note = read_kept()
    assert kept is None
    assert "app.json.broken" in note
    assert note.isprintable()
    assert not path.exists()
    assert path.with_name("app.json.broken").read_bytes() == held
    assert read_kept() == (None, "")


def test_a_second_broken_file_takes_the_place_of_the_first() -> None:
    broken("first")
    read_kept()
    path = broken("second")
    assert read_kept()[0] is None
    assert path.with_name("app.json.broken").read_text() == "second"


def test_what_is_no_file_is_left_alone_and_not_waited_on() -> None:
    kept_path().parent.mkdir(parents=True)
    os.mkfifo(kept_path())
    assert read_kept() == (None, "")


def test_where_nothing_can_be_written_that_is_told_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/nobody")
    assert read_kept() == (None, "")
    note = write_kept(SOME)
    assert "/proc/nobody" in note
    assert "cannot be written" in note


# The app


@asynccontextmanager
async def opened(
    kept: Kept | None, *, note: str = "", size: tuple[int, int] = (120, 36)
) -> AsyncIterator[tuple[DurtuiApp, Pilot[None]]]:
    session = Session(find_designs(DEFAULT_DESIGNS), 7, kept.calls_per_s if kept else 1100)
    app = DurtuiApp(session, kept.scenario if kept else Scenario(jobs=40), kept, note)
    try:
        async with app.run_test(size=size, notifications=True) as pilot:
            await pilot.pause(0.2)
            yield app, pilot
    finally:
        session.close()


async def until(pilot: Pilot[None], condition: Callable[[], object], within_s: float = 20.0) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "this did not come to pass"
        await pilot.pause(0.02)


async def test_the_app_opens_as_it_was_left() -> None:
    async with opened(SOME) as (app, pilot):
        assert app.theme == PROJECTOR.name
        await until(pilot, lambda: not app.screen.query_one(Rail).display)
        assert app.screen.query_one("#steps", Slider).value == 7
        assert app.screen.query_one("#speed", Slider).value is None
        assert app.to_keep == SOME
    assert app.to_keep == SOME  # also when it has ended


async def test_what_a_person_changes_is_what_is_kept() -> None:
    async with opened(None) as (app, pilot):
        assert app.to_keep == Kept(scenario=Scenario(jobs=40), theme=None, calls_per_s=1100, rail_hidden=False)
        app.theme = "nord"
        await pilot.press("s", "left_square_bracket", "x")
        await until(pilot, lambda: app.to_keep.scenario.crash_mode == "sigkill")
        kept = app.to_keep
        assert (kept.theme, kept.rail_hidden) == ("nord", True)
        assert kept.calls_per_s is not None
        assert kept.calls_per_s < 1100


@pytest.mark.parametrize("size", [(60, 20), (120, 12)], ids=str)
async def test_a_drawer_is_not_opened_by_a_rail_that_was_hidden_and_says_nothing_of_it(size: tuple[int, int]) -> None:
    async with opened(SOME, size=size) as (app, pilot):
        assert not app.screen.query_one(Rail).display
        await pilot.press("s")
        await until(pilot, lambda: app.screen.query_one(Rail).display)
        assert app.to_keep.rail_hidden


async def test_a_theme_that_is_not_there_any_more_is_passed_over() -> None:
    gone = Kept(scenario=SOME.scenario, theme="gone", calls_per_s=None, rail_hidden=False)
    async with opened(gone) as (app, _):
        assert app.theme == "textual-dark"


async def test_a_broken_file_is_told_in_the_app() -> None:
    async with opened(None, note="it was broken") as (app, _):
        assert [notice.message for notice in app._notifications] == ["it was broken"]


# Which scenario the command opens on


@pytest.fixture
def opens_on(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Scenario]]:
    """Runs the command as on a terminal; gives the scenario that the app was opened on. Nothing is drawn."""
    seen: list[DurtuiApp] = []

    def run(app: App[None]) -> None:
        assert isinstance(app, DurtuiApp)
        seen.append(app)
        app._session.scenario = app._scenario

    def open_(*words: str) -> Scenario:
        handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
        umask = os.umask(0o077)
        try:
            with pytest.raises(SystemExit) as ended:
                main([*words])
        finally:
            os.umask(umask)
            for number, handler in handlers.items():
                signal.signal(number, handler)
        assert not ended.value.code
        return seen[-1]._scenario

    monkeypatch.setattr(DurtuiApp, "run", run)
    monkeypatch.setattr("durtui.cli.why_headless", lambda: None)
    monkeypatch.setattr("durtui.cli.prints_unicode", lambda: True)
    monkeypatch.setattr("durtui.app.watch_terminal", lambda fd, clean_up: None)
    with Path(os.devnull).open() as nothing:
        monkeypatch.setattr("sys.__stdin__", nothing)
        yield open_


def test_the_app_opens_on_the_scenario_that_it_was_left_on(opens_on: Callable[..., Scenario]) -> None:
    assert opens_on() == Scenario()
    assert opens_on("--steps", "4") == Scenario(steps=4)
    assert opens_on() == Scenario(steps=4)


def test_whatever_asks_for_a_scenario_goes_before_the_kept_one_as_a_whole(
    opens_on: Callable[..., Scenario], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_kept(SOME)
    assert opens_on("--jobs", "9") == Scenario(jobs=9)
    write_kept(SOME)
    assert opens_on("--preset", "mission") == Scenario()
    write_kept(SOME)
    monkeypatch.setenv("DURTUI_JOBS", "8")
    assert opens_on() == Scenario(jobs=8)
    monkeypatch.delenv("DURTUI_JOBS")
    write_kept(SOME)
    Path("durtui.toml").write_text("jobs = 7")
    assert opens_on() == Scenario(jobs=7)


def test_a_scenario_that_is_asked_for_leaves_theme_and_speed_as_they_were(opens_on: Callable[..., Scenario]) -> None:
    write_kept(SOME)
    opens_on("--jobs", "9")
    kept, _ = read_kept()
    assert kept is not None
    assert (kept.scenario, kept.calls_per_s) == (Scenario(jobs=9), None)


def test_fresh_neither_reads_nor_writes_what_is_kept(opens_on: Callable[..., Scenario]) -> None:
    write_kept(SOME)
    assert opens_on("--fresh") == Scenario()
    assert opens_on("--fresh", "--steps", "3") == Scenario(steps=3)
    assert read_kept() == (SOME, "")
    path = broken("no json")
    assert opens_on("--fresh") == Scenario()
    assert path.read_text() == "no json"


def test_a_broken_file_does_not_keep_the_app_from_opening(opens_on: Callable[..., Scenario]) -> None:
    broken("no json")
    assert opens_on() == Scenario()
    assert read_kept()[0] is not None


def test_where_nothing_can_be_kept_one_line_says_so_and_the_app_ends_well(
    opens_on: Callable[..., Scenario], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/nobody")
    assert opens_on() == Scenario()
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("durtui: /proc/nobody/durtui/app.json cannot be written")


def test_without_the_app_nothing_that_was_kept_counts(
    durtui: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    write_kept(SOME)
    assert "5 jobs of 10 steps" in durtui("--jobs", "5").stdout
    assert "2,000 jobs of 10 steps" in durtui("theory").stdout
    assert read_kept() == (SOME, "")
