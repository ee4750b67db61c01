"""The app on a real terminal: however it ends, the terminal is itself again and no process and no run stays behind."""

import fcntl
import json
import os
import pty
import random
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pyte
import pytest

from durcore.lab import run_lab
from durcore.scenario import Scenario

DURTUI = str(Path(sys.executable).with_name("durtui"))
# Takes the terminal for its own, as a login does (or leaves it, and is then told of no hang-up), ignores the signals
# that it is told to, and becomes the command.
LAUNCHER = """
import fcntl, os, signal, sys, termios
if sys.argv[1] == "own":
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
for number in sys.argv[2].split():
    signal.signal(int(number), signal.SIG_IGN)
os.execv(sys.argv[3], sys.argv[3:])
"""
ALTERNATE_SCREEN, MOUSE_MODES, CURSOR = 1049, (1000, 1002, 1003, 1006, 1015), 25


class Terminal:
    """A command on a pseudo-terminal of its own; its screen as a person sees it."""

    def __init__(
        self, words: Sequence[str], size: tuple[int, int], ignored: Sequence[signal.Signals], *, own: bool
    ) -> None:
        columns, rows = size
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self._lock = threading.Lock()
        self._take = True
        self._open = True
        self.written = b""
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        numbers = " ".join(str(number.value) for number in ignored)
        self.process = subprocess.Popen(
            [sys.executable, "-c", LAUNCHER, "own" if own else "", numbers, *words],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            env=dict(os.environ),  # without the LINES and COLUMNS that readline slips into the process's own
        )
        os.close(slave)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with suppress(OSError):  # the other side has gone
            while self._open:
                # Never blocked in a read: that would hold the terminal open when it is to vanish.
                if not self._take or not select.select([self._master], [], [], 0.05)[0]:
                    time.sleep(0.005)
                    continue
                data = os.read(self._master, 65536)
                with self._lock:
                    self.written += data
                    self._stream.feed(data)

    @property
    def rows(self) -> list[str]:
        """What stands on the screen."""
        with self._lock:
            return [line.rstrip() for line in self._screen.display]

    @property
    def screen(self) -> str:
        return "\n".join(self.rows)

    @property
    def plain(self) -> str:
        """All that was written, without what steers the terminal."""
        text = self.written.decode(errors="replace").replace("\r\n", "\n")
        return re.sub(r"\x1b(\[[0-9;?<>=$]*[a-zA-Z]|\][^\x07\x1b]*(\x07|\x1b\\)|[()].|[=>78])", "", text)

    def press(self, keys: str) -> None:
        """Type."""
        os.write(self._master, keys.encode())

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal another size, as dragging the corner of its window does."""
        with self._lock:
            self._screen.resize(rows, columns)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def stall(self) -> None:
        """Take nothing from the command any more, as a hung connection does."""
        self._take = False

    def vanish(self) -> None:
        """Close the terminal, as closing its window does."""
        self._open = False
        self._reader.join()
        os.close(self._master)
        self._master = -1

    def until(self, condition: Callable[[], object], within_s: float = 20.0) -> None:
        """Wait until something has come to pass."""
        deadline = time.monotonic() + within_s
        while not condition():
            assert time.monotonic() < deadline, "\n".join([f"exit code {self.process.poll()}", *self.rows])
            time.sleep(0.03)

    def ends_within(self, seconds: float) -> int:
        """The exit code of the command, which ends soon; what it wrote is then complete."""
        code = self.process.wait(seconds)
        time.sleep(0.2)
        return code

    def mode(self, number: int) -> bool:
        """Whether a mode of the terminal, by its DEC number, was left on; a cursor is on from the start."""
        switched = re.findall(rb"\x1b\[\?(?:\d+;)*%d(?:;\d+)*([hl])" % number, self.written)
        return bool(switched[-1] == b"h") if switched else number == CURSOR

    def is_itself_again(self) -> bool:
        """Whether a shell finds it as it was: main screen, no mouse, a cursor, and lines that echo."""
        flags = termios.tcgetattr(self._master)[3]
        cooked = bool(flags & termios.ECHO) and bool(flags & termios.ICANON) and bool(flags & termios.ISIG)
        on = [number for number in (ALTERNATE_SCREEN, *MOUSE_MODES) if self.mode(number)]
        return cooked and on == [] and self.mode(CURSOR)

    def close(self) -> None:
        """End everything, whatever has become of it."""
        self.process.kill()
        self.process.wait()
        self._open = False
        self._reader.join()
        if self._master >= 0:
            os.close(self._master)


Open = Callable[..., Terminal]
Processes = Callable[[], dict[int, str]]
Lanes = Callable[[], list[int]]
Runs = Callable[[], list[Path]]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Opens `durtui`, or another command, on a terminal of its own."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    for name in ("COLUMNS", "LINES"):  # they go before the terminal's own size
        monkeypatch.delenv(name, raising=False)
    opened: list[Terminal] = []

    def open_(
        *words: str,
        size: tuple[int, int] = (120, 36),
        command: Sequence[str] = (DURTUI,),
        ignored: Sequence[signal.Signals] = (),
        own: bool = True,
    ) -> Terminal:
        opened.append(Terminal([*command, *words], size, ignored, own=own))
        return opened[-1]

    yield open_
    for each in opened:
        each.close()


@pytest.fixture
def app(terminal: Open, lanes: Lanes) -> Callable[..., Terminal]:
    """Opens the app on a scenario of half a minute, and waits until its lanes stream."""

    def open_(*words: str, **options: object) -> Terminal:
        window = terminal("--jobs", "50000", *words, **options)
        window.until(lambda: "running" in window.rows[0] and len(lanes()) == 3)
        assert window.mode(ALTERNATE_SCREEN)
        return window

    return open_


# Leaving


@pytest.mark.parametrize("key", ["q", "\x03"], ids=["q", "ctrl-c"])
def test_a_key_quits_and_leaves_nothing_behind(key: str, app: Open, processes: Processes, runs: Runs) -> None:
    window = app()
    assert not window.is_itself_again()
    window.press(key)
    assert window.ends_within(4) == 0
    assert window.is_itself_again()
    assert (processes(), runs()) == ({}, [])
    assert "Traceback" not in window.plain


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_the_app_as_a_key_does_but_keeps_its_run_and_says_how_to_go_on(
    number: signal.Signals, code: int, app: Open, processes: Processes, runs: Runs
) -> None:
    window = app()
    window.process.send_signal(number)
    assert window.ends_within(4) == code
    assert window.is_itself_again()
    assert processes() == {}
    (kept,) = runs()
    assert f"durtui: interrupted; the run is kept: `durtui resume {kept}`" in window.plain.replace("\n", "")


def test_the_app_opens_on_a_run_whose_every_process_was_killed_and_goes_on_with_it(
    app: Open, terminal: Open, processes: Processes, runs: Runs
) -> None:
    killed = app()
    killed.until(lambda: re.search(r"running [1-9]", killed.rows[0]))
    for process in processes():
        os.kill(process, signal.SIGKILL)
    killed.process.wait(5)
    (kept,) = runs()
    window = terminal("--resume", str(kept))
    window.until(lambda: re.search(r"running [1-9]", window.rows[0]) and "50,000" in window.screen)
    second = terminal("--resume", str(kept))
    second.until(lambda: second.process.poll() is not None)
    assert second.ends_within(1) == 1
    assert f"{kept} is in use by another durtui (process {window.process.pid})" in second.plain.replace("\n", "")
    window.press("q")
    assert window.ends_within(4) == 0
    assert processes() == {}
    assert runs() == [kept]  # it was there before this app, and has work left


def test_the_shell_has_its_terminal_back_on_ctrl_z_and_the_app_is_drawn_whole_when_it_returns(
    terminal: Open, lanes: Lanes
) -> None:
    shell = shutil.which("bash")
    if shell is None:
        pytest.skip("needs a shell with job control, bash")
    window = terminal("--norc", "-i", command=(shell,))
    window.press(f"{DURTUI} --jobs 50000\r")
    window.until(lambda: "running" in window.rows[0])
    window.press("\x1a")
    window.until(lambda: "Stopped" in window.screen)
    assert not window.mode(ALTERNATE_SCREEN)
    assert len(lanes()) == 3  # they go on
    window.press("fg\r")
    window.until(lambda: window.rows[0].startswith(" durtui") and window.mode(ALTERNATE_SCREEN))
    window.until(lambda: "Price a call" in window.screen and window.screen.count("╭─") == 4)
    window.press("q")
    window.until(lambda: not window.mode(ALTERNATE_SCREEN) and not lanes())
    window.press("exit\r")
    assert window.ends_within(5) == 0


def test_quitting_while_paused_or_done_leaves_nothing_behind(app: Open, processes: Processes, runs: Runs) -> None:
    window = app()
    window.press(" ")
    window.until(lambda: "paused" in window.rows[0])
    window.press("q")
    assert window.ends_within(4) == 0
    assert (processes(), runs()) == ({}, [])


# The terminal vanishes


@pytest.mark.parametrize(
    "options",
    [{}, {"ignored": [signal.SIGHUP]}, {"own": False}],
    ids=["SIGHUP as it is", "SIGHUP ignored", "nobody sends SIGHUP"],
)
@pytest.mark.parametrize("stalled", [False, True], ids=["reading", "stalled"])
def test_when_the_terminal_vanishes_app_and_lanes_end(
    options: dict[str, object], stalled: bool, app: Open, processes: Processes, runs: Runs
) -> None:
    window = app(**options)
    if stalled:
        window.stall()
        time.sleep(1)  # what the app draws fills the terminal's buffer
    window.vanish()
    deadline = time.monotonic() + 4
    while left := processes():
        assert time.monotonic() < deadline, left
        time.sleep(0.05)
    window.process.wait(1)
    (kept,) = runs()  # what nobody chose to end can be gone on with
    assert (kept / "run.json").exists()


def test_lanes_end_by_themselves_when_the_app_is_killed(app: Open, lanes: Lanes) -> None:
    window = app()
    window.process.kill()
    window.process.wait()
    deadline = time.monotonic() + 2
    while left := lanes():
        assert time.monotonic() < deadline, left
        time.sleep(0.05)


def test_a_signal_ends_an_app_whose_terminal_has_stalled(app: Open, processes: Processes) -> None:
    window = app()
    window.stall()
    time.sleep(1.5)
    window.process.send_signal(signal.SIGTERM)
    window.process.wait(6)
    assert processes() == {}


# Errors

FAILING = """
import sys
from durcore.scenario import Scenario
from durtui.app import DurtuiApp
from durtui.screens.live import LiveScreen

class FailingScreen(LiveScreen):
    def on_mount(self) -> None:
        super().on_mount()
        self.set_timer(1.5, self.fail)

    def fail(self) -> None:
        raise RuntimeError("a fault of our own")

class FailingApp(DurtuiApp):
    def get_default_screen(self) -> LiveScreen:
        return FailingScreen(self._session, self._scenario)

sys.exit(FailingApp.open(Scenario(jobs=50_000), seed=7, designs=["whole-job", "checkpoint"]))
"""


def test_an_error_in_the_app_restores_the_terminal_and_names_the_run_that_is_kept(
    terminal: Open, lanes: Lanes, runs: Runs, tmp_path: Path
) -> None:
    script = tmp_path / "failing.py"
    script.write_text(FAILING)
    window = terminal(str(script), command=(sys.executable,))
    assert window.ends_within(20) not in (0, None)
    assert window.is_itself_again()
    assert lanes() == []
    (kept,) = runs()
    assert json.loads((kept / "run.json").read_text())["scenario"]["jobs"] == 50_000
    after = window.written[window.written.rindex(b"\x1b[?1049l") :].decode(errors="replace")
    assert "a fault of our own" in after
    assert str(kept) in after.replace("\r\n", "")


# What is shown


def test_the_panels_stream_real_figures_and_end_with_the_labs(terminal: Open) -> None:
    window = terminal("--jobs", "200", size=(150, 15))
    window.until(lambda: "running" in window.rows[0])
    seen = set()

    def done() -> bool:
        seen.add(window.screen)
        return "done" in window.rows[0] and window.screen.count("100 %") == 3

    window.until(done)
    assert len(seen) >= 10
    for design in run_lab(Scenario(jobs=200), seeds=(7,)).designs:
        figures = design.median
        for label, value in (("finished", figures.finished), ("lost", figures.lost)):
            assert re.search(rf"{label} +{value:,.0f}\b", window.screen), (label, value)
        assert f"${figures.wasted_cost_usd:,.2f}" in window.screen
    window.press("q")
    assert window.ends_within(4) == 0


def test_a_window_can_be_dragged_to_any_size_while_the_lanes_run(app: Open) -> None:
    window = app()
    for columns, rows in ((20, 6), (200, 50), (37, 11), (80, 24)):
        window.resize(columns, rows)
        window.until(lambda: "seed 7" in window.rows[0])
        window.until(lambda rows=rows: any(window.rows[1 : rows - 1]))  # type: ignore[misc]  # binds the rows
    window.until(lambda: "whole job" in window.screen and "Price" in window.screen)
    window.press("q")
    assert window.ends_within(4) == 0


@pytest.mark.parametrize("seconds", [2, pytest.param(10, marks=pytest.mark.slow)])
def test_fifty_sizes_a_second_leave_an_app_that_draws_and_obeys(seconds: int, app: Open) -> None:
    window = app()
    chance = random.Random(7)  # noqa: S311  # no secret
    for _ in range(50 * seconds):
        window.resize(chance.randint(1, 220), chance.randint(1, 60))
        time.sleep(0.02)
    window.resize(120, 36)
    window.until(lambda: "running" in window.rows[0] and "Whole-job retry" in window.screen)
    window.press(" ")
    window.until(lambda: "paused" in window.rows[0])
    window.press("q")
    assert window.ends_within(4) == 0
    assert window.is_itself_again()


KEYS = (
    *"abcdefghijklmnoprstuvwxyz0123456789 .,[]-+/'?!;:()",  # all but the one that quits
    *("\t", "\r", "\x1b", "\x7f", "\x10", "\x0c", "\x1b[Z"),  # back-tab and the palette among them
    *(f"\x1b[{key}" for key in ("A", "B", "C", "D", "H", "F", "5~", "6~", "3~", "1;2C", "1;2D", "1;5A", "15~")),
    *("é", "漢", "\x1b[200~3\x1b[201~", "\x1b[I", "\x1b[O"),
)


def random_event(chance: random.Random) -> str:
    """A key, or something that a mouse does, also off the edge of the screen."""
    if chance.random() < 0.6:
        return str(chance.choice(KEYS))
    column, row = chance.randint(1, 125), chance.randint(1, 40)
    button = chance.choice((0, 0, 0, 1, 2, 32, 35, 64, 65, 4, 16))
    return f"\x1b[<{button};{column};{row}M" + (f"\x1b[<{button};{column};{row}m" if chance.random() < 0.8 else "")


@pytest.mark.parametrize("events", [600, pytest.param(10_000, marks=pytest.mark.slow)])
def test_random_keys_and_a_mad_mouse_neither_stop_nor_break_the_app(
    events: int, terminal: Open, processes: Processes, runs: Runs
) -> None:
    """A click on the footer, or a command of the palette, may quit: then it has to have quit well, and opens again."""
    seed = 7
    chance = random.Random(seed)  # noqa: S311  # no secret

    def open_app() -> Terminal:
        opened = terminal("--jobs", "3000")
        opened.until(lambda: "seed 7" in opened.rows[0])
        return opened

    window = open_app()
    for sent in range(events):
        if window.process.poll() is not None:
            assert window.ends_within(1) == 0, f"seed {seed}, after {sent} events: {window.plain[-6000:]}"
            assert window.is_itself_again()
            window = open_app()
        with suppress(OSError):  # it has just quit
            window.press(random_event(chance))
        if sent % 20 == 0:
            time.sleep(0.05)
    with suppress(OSError):
        window.press("\x03")
    # What was typed faster than it could be answered is answered first.
    assert window.ends_within(240) == 0, f"seed {seed}: {window.plain[-6000:]}"
    assert "Traceback" not in window.plain
    assert window.is_itself_again()
    assert (processes(), runs()) == ({}, [])


def test_a_mouse_on_a_slider_moves_it(app: Open) -> None:
    window = app()
    window.until(lambda: "Steps" in window.screen)
    row = next(y for y, line in enumerate(window.rows) if "Steps" in line) + 2
    window.press(f"\x1b[<0;24;{row}M\x1b[<0;24;{row}m")  # pressed and let go at the end of the track
    window.until(lambda: re.search(r"Steps +100", window.screen))
    window.until(lambda: re.search(r"job of 100 steps", window.screen))


# Where the app does not open


def test_a_locale_without_the_characters_is_refused_in_one_clear_line(
    terminal: Open, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    window = terminal(size=(200, 24))
    assert window.ends_within(5) == 2
    (line,) = window.plain.splitlines()
    assert "locale" in line
    assert "\x1b" not in window.written.decode()
    assert runs() == []


def test_a_dumb_terminal_is_given_the_table(terminal: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    window = terminal("--jobs", "5")
    assert window.ends_within(20) == 0
    assert "TERM=dumb" in window.plain
    assert "Whole-job retry" in window.plain
    assert "\x1b[?1049h" not in window.written.decode()


def test_output_into_a_pipe_is_the_table_though_the_rest_is_a_terminal(terminal: Open, tmp_path: Path) -> None:
    window = terminal("-c", f"{DURTUI} --jobs 5 > table.txt", command=("/bin/sh",))
    assert window.ends_within(20) == 0
    assert "standard output is not a terminal" in window.plain
    table = (tmp_path / "table.txt").read_text()
    assert "Whole-job retry" in table
    assert "\x1b" not in table


def test_a_run_on_a_terminal_shows_a_bar_with_rate_and_time_left_and_then_the_table(terminal: Open) -> None:
    window = terminal("run", "--jobs", "3000", "--replications", "1", size=(160, 60))
    window.until(lambda: re.search(r"running .*\d/9000 [\d,]+ jobs/s \d+:\d\d:\d\d", window.screen))
    assert window.ends_within(30) == 0
    assert window.is_itself_again()
    assert "Whole-job retry" in window.screen
    assert "jobs/s" not in window.screen


def test_ctrl_c_on_a_run_gives_the_terminal_back(terminal: Open, lanes: Lanes, runs: Runs) -> None:
    window = terminal("run", "--jobs", "300000", size=(200, 24))
    window.until(lambda: "jobs/s" in window.screen and lanes())
    window.press("\x03")
    assert window.ends_within(3) == 130
    assert window.is_itself_again()
    assert lanes() == []
    (kept,) = runs()
    assert str(kept) in window.screen.replace("\n", "")


def test_a_lane_that_died_is_told_at_the_end_and_its_run_is_kept(terminal: Open, lanes: Lanes) -> None:
    window = terminal("--jobs", "50000")
    window.until(lambda: len(lanes()) == 3)
    window.until(lambda: "running" in window.screen)
    os.kill(lanes()[0], signal.SIGKILL)
    window.until(lambda: "1 of 3 lanes failed" in window.screen)
    window.press("q")
    assert window.ends_within(5) == 1
    (kept,) = re.findall(r"a lane failed; the run is kept: `durtui resume (\S+)`", window.plain.replace("\n", ""))
    assert Path(kept, "run.json").exists()
    assert window.is_itself_again()


# What is kept


@pytest.mark.parametrize("how", ["q", "a signal", "a window that is closed"])
def test_the_app_opens_on_the_scenario_that_it_was_left_on_however_it_was_left(
    how: str, app: Open, terminal: Open, lanes: Lanes
) -> None:
    window = app("--steps", "4")
    if how == "q":
        window.press("q")
    elif how == "a signal":
        window.process.send_signal(signal.SIGTERM)
    else:
        window.vanish()
    window.process.wait(10)
    again = terminal()
    again.until(lambda: len(lanes()) == 3 and "50,000" in again.screen)
    assert any(re.search(r"Steps +4 ", row) for row in again.rows)
    again.press("q")
    again.ends_within(10)
