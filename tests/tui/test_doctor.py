"""`durtui doctor`, the real command: it tells what is wrong wherever it is run, breaks nowhere and leaves nothing."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

Durtui = Callable[..., subprocess.CompletedProcess[str]]

KNOWS_MOUSE, KNOWS_NO_MOUSE, SILENT = "\x1b[?1006;2$y\x1b[?62c", "\x1b[?1006;0$y\x1b[?62c", ""
GOOD = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LC_ALL": "C.UTF-8"}


def line(name: str, text: str) -> str:
    """The line of one check, its advice with it."""
    found = re.search(rf"^ *\S+  {name} .*(\n +-> .*)?", text, flags=re.MULTILINE)
    assert found, text
    return found[0].strip()


def verdict(name: str, text: str) -> str:
    return line(name, text).split()[0]


def on_terminal(
    command: str, size: tuple[int, int] = (120, 36), answer: str = KNOWS_MOUSE, **environment: str
) -> tuple[int, str, bool]:
    """Runs it on a terminal that answers; its exit code, what it said, and whether the terminal is as it was."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
    before = termios.tcgetattr(slave)
    inherited = {name: value for name, value in os.environ.items() if name not in ("TMUX", "STY", "NO_COLOR")}
    process = subprocess.Popen(
        [command, "doctor"], stdin=slave, stdout=slave, stderr=slave, env={**inherited, **GOOD, **environment}
    )
    said, asked = b"", False
    deadline = time.monotonic() + 30
    while process.poll() is None or select.select([master], [], [], 0)[0]:
        assert time.monotonic() < deadline, said
        if select.select([master], [], [], 0.05)[0]:
            said += os.read(master, 65536)
        if not asked and b"\x1b[c" in said:
            asked = True
            os.write(master, answer.encode())
    same = termios.tcgetattr(slave) == before
    for fd in (master, slave):
        with suppress(OSError):
            os.close(fd)
    plain = re.sub(r"\x1b\[[?\d;$]*[a-z]", "", said.decode(errors="replace")).replace("\r\n", "\n")
    return process.returncode, plain, same


def test_without_a_terminal_it_tells_the_machine_and_which_checks_need_one(durtui: Durtui) -> None:
    done = durtui("doctor", LC_ALL="C.UTF-8")
    assert done.returncode == (1 if "MEND" in done.stdout else 0)
    assert done.stderr == ""
    assert [verdict(name, done.stdout) for name in ("terminal", "size", "colours", "mouse")] == ["?"] * 4
    for name in ("UTF-8", "settings", "Python", "SQLite", "state directory", "processes", "kept runs"):
        assert verdict(name, done.stdout) == "ok", done.stdout
    assert re.search(r"[\d.]+ µs a checkpoint \(median\), p99 [\d.,]+ µs, of [\d,]+", line("disk speed", done.stdout))
    assert "not told here: terminal, size, colours, mouse" in done.stdout


def test_nothing_that_it_writes_stays(durtui: Durtui, state_home: Path) -> None:
    before = sorted(state_home.parent.iterdir())
    durtui("doctor")
    assert not state_home.exists()
    assert sorted(state_home.parent.iterdir()) == before


@pytest.mark.parametrize(
    "environment",
    [
        {"TERM": ""},
        {"TERM": "dumb", "LC_ALL": "C"},
        {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "no-such-locale"},
        {"HOME": "/nowhere", "XDG_STATE_HOME": ""},
        {"XDG_STATE_HOME": "/proc/nowhere"},
        {"XDG_STATE_HOME": "/dev/null"},
        {"XDG_STATE_HOME": "relative"},
        {"COLUMNS": "many", "LINES": "-1", "COLORTERM": "\x1b[31m", "NO_COLOR": "\x07"},
        {"TMUX": "gone", "PATH": ""},
    ],
    ids=str,
)
def test_no_environment_makes_it_crash(environment: dict[str, str], durtui: Durtui) -> None:
    done = durtui("doctor", **environment)
    assert done.returncode in (0, 1)
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert "\x07" not in done.stdout
    assert verdict("processes", done.stdout) == "ok"


def test_a_bare_environment_is_told_too(command: str, tmp_path: Path) -> None:
    paths = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    done = subprocess.run(
        [command, "doctor"],
        env={**paths, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode in (0, 1)
    assert done.stderr == ""
    assert list(tmp_path.iterdir()) == []


def test_a_state_directory_that_cannot_be_written_is_to_be_mended(durtui: Durtui) -> None:
    done = durtui("doctor", XDG_STATE_HOME="/proc/nowhere")
    assert done.returncode == 1
    assert verdict("state directory", done.stdout) == "MEND"
    assert "set XDG_STATE_HOME" in line("state directory", done.stdout)
    assert "to mend before a talk: state directory" in done.stdout


def test_a_locale_that_cannot_print_is_to_be_mended_and_is_told_in_what_it_can(durtui: Durtui) -> None:
    done = durtui("doctor", LC_ALL="C", PYTHONIOENCODING="ascii")
    assert done.returncode == 1
    assert verdict("UTF-8", done.stdout) == "MEND"
    assert "set LC_ALL=C.UTF-8" in line("UTF-8", done.stdout)
    assert done.stdout.isascii()


def test_settings_that_are_none_are_to_be_mended(durtui: Durtui, tmp_path: Path) -> None:
    (tmp_path / "durtui.toml").write_text("jobs = 0\n")
    done = durtui("doctor")
    assert done.returncode == 1
    assert "jobs(=0) must be" in line("settings", done.stdout)


def test_a_run_that_is_kept_is_counted(durtui: Durtui, state_home: Path) -> None:
    kept = state_home / "durtui" / "runs" / "a-run"
    kept.mkdir(parents=True)
    (kept / "run.json").touch()
    told = line("kept runs", durtui("doctor").stdout)
    assert told.startswith("note  kept runs")
    assert f"1, the last {kept}" in told


def test_a_good_terminal_is_fit_and_is_left_as_it_was(command: str, state_home: Path) -> None:
    code, text, same = on_terminal(command)
    assert same
    assert {verdict(name, text) for name in ("terminal", "size", "colours", "UTF-8", "mouse")} == {"ok"}
    assert "120×36" in line("size", text)
    assert "16.7 million" in line("colours", text)
    assert code == (1 if "MEND" in text else 0)
    assert "fit for a talk" in text or verdict("disk speed", text) == "MEND"


@pytest.mark.parametrize(
    ("size", "wanted"), [((79, 24), "MEND"), ((80, 23), "MEND"), ((80, 24), "note"), ((200, 50), "ok")]
)
def test_a_size_is_judged_by_what_the_app_needs(size: tuple[int, int], wanted: str, command: str) -> None:
    code, text, _ = on_terminal(command, size)
    assert verdict("size", text) == wanted
    assert code == 1 or wanted != "MEND"


@pytest.mark.parametrize(
    ("environment", "name", "wanted", "words"),
    [
        ({"TERM": "dumb"}, "terminal", "MEND", "set TERM"),
        ({"TERM": ""}, "terminal", "MEND", "TERM=unset"),
        ({"NO_COLOR": "1"}, "colours", "note", "unset NO_COLOR"),
        ({"NO_COLOR": ""}, "colours", "ok", "16.7 million"),
        ({"COLORTERM": ""}, "colours", "note", "256 (COLORTERM=unset)"),
        ({"COLORTERM": "", "TERM": "vt100"}, "colours", "note", "16 (COLORTERM=unset)"),
        ({"COLUMNS": "40"}, "size", "MEND", "unset COLUMNS=40"),
    ],
)
def test_what_the_environment_says_of_the_terminal_is_judged(
    environment: dict[str, str], name: str, wanted: str, words: str, command: str
) -> None:
    _, text, _ = on_terminal(command, (120, 36), KNOWS_MOUSE, **environment)
    assert verdict(name, text) == wanted
    assert words in line(name, text)


@pytest.mark.parametrize(
    ("answer", "words"), [(KNOWS_NO_MOUSE, "does not report it"), (SILENT, "does not say"), ("\x1b[?62c", "not say")]
)
def test_a_mouse_that_is_not_reported_is_a_note_and_nothing_waits_for_it(answer: str, words: str, command: str) -> None:
    _, text, same = on_terminal(command, answer=answer)
    assert same
    assert verdict("mouse", text) == "note"
    assert words in line("mouse", text)
