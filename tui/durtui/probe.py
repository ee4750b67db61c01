"""Probe: what the terminal in front of us is and can do. It asks, and leaves the terminal as it found it; no advice."""

from __future__ import annotations

import os
import re
import select
import shutil
import subprocess
import sys
import termios
import time
import tty
from collections.abc import Mapping

from rich.console import Console

ANSWERS_WITHIN_S = 0.5  # over a slow line too; the terminals that answer at all do so within a frame
SGR_MOUSE, DEVICE_ATTRIBUTES = "\x1b[?1006$p", "\x1b[c"  # every terminal answers the second, so nothing is waited for


def terminal_size() -> tuple[int, int] | None:
    """Columns and rows of the terminal on a standard stream, or None where none is one."""
    for stream in (sys.__stdout__, sys.__stderr__, sys.__stdin__):
        if stream is not None and not stream.closed and stream.isatty():
            size = os.get_terminal_size(stream.fileno())
            return size.columns, size.lines
    return None


def colour_system() -> str | None:
    """What the app would draw with: truecolor, 256, standard (16 colours), or None. Rich decides for Textual too."""
    return Console(force_terminal=True, legacy_windows=False).color_system


def multiplexer(environment: Mapping[str, str]) -> str | None:
    """The name of what stands between us and the terminal: it has a word of its own on mouse and colours."""
    if environment.get("TMUX"):
        return "tmux"
    return "screen" if environment.get("STY") else None


def tmux_takes_mouse() -> bool | None:
    """Whether tmux hands the mouse on to the programs in it; None where it cannot be asked."""
    program = shutil.which("tmux")
    if program is None:
        return None
    try:
        asked = subprocess.run(  # noqa: S603  # our words
            [program, "show-options", "-gqv", "mouse"], capture_output=True, text=True, timeout=2, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return {"on": True, "off": False}.get(asked.stdout.strip())


def knows_mouse() -> bool | None:
    """Whether the terminal reports the mouse as the app asks it to (DEC mode 1006); None where it does not say.

    Raises OSError or termios.error where the terminal cannot be asked. Typed-ahead keys are taken for an answer and
    lost; the terminal's settings are restored.
    """
    assert sys.__stdin__ is not None
    fd = sys.__stdin__.fileno()
    before = termios.tcgetattr(fd)
    try:
        tty.setcbreak(fd, termios.TCSANOW)
        os.write(fd, (SGR_MOUSE + DEVICE_ATTRIBUTES).encode())
        answer = _answer(fd)
    finally:
        termios.tcsetattr(fd, termios.TCSANOW, before)
    said = re.search(r"\x1b\[\?1006;(\d)\$y", answer)
    return None if said is None else said[1] != "0"  # 0: a mode that it does not know


def _answer(fd: int) -> str:
    """What the terminal says until it has told its attributes, or has had its time."""
    answer = b""
    until = time.monotonic() + ANSWERS_WITHIN_S
    while (left := until - time.monotonic()) > 0 and not re.search(rb"\x1b\[\?[\d;]*c", answer):
        if select.select([fd], [], [], left)[0]:
            answer += os.read(fd, 1024) or b"\x1b[?c"  # it has gone: ask no more
    return answer.decode(errors="replace")
