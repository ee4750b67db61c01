"""Measure how long a key press takes to its handler while three lanes of 200,000 jobs run as fast as they can.

    python tests/bench/keys.py [presses]

The real app runs on a real pseudo-terminal. A press is the moment before its byte is written to the terminal; the
handler's moment is taken inside the app. Both clocks are the system's monotonic one.
"""

import fcntl
import os
import pty
import random
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from pathlib import Path
from typing import ClassVar

from textual.binding import Binding, BindingType

from durcore.designs import DESIGNS
from durcore.scenario import Scenario
from durtui.app import DurtuiApp
from durtui.session import Session

COLUMNS, ROWS = 120, 36
KEY = b"z"  # bound to nothing else


class Probe(DurtuiApp):
    """The app, which also writes down when a press of the key reached it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding(KEY.decode(), "probe", show=False)]

    def action_probe(self) -> None:
        MOMENTS.write(f"{time.monotonic_ns()}\n")
        MOMENTS.flush()


def press_keys(presses: int) -> tuple[list[float], bool]:
    """Press the key that often at random moments; return the delays, ms, and whether the lanes still ran."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    with tempfile.TemporaryDirectory() as state:
        moments = Path(state) / "moments"
        environment = os.environ | {"XDG_STATE_HOME": state, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        app = subprocess.Popen(
            [sys.executable, __file__, "--app", str(moments)],
            stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True,
        )  # fmt: skip
        os.close(slave)
        threading.Thread(target=drain, args=(master,), daemon=True).start()
        time.sleep(2)
        rng = random.Random(7)  # noqa: S311  # moments, not secrets
        pressed = []
        for _ in range(presses):
            time.sleep(rng.uniform(0.02, 0.06))
            pressed.append(time.monotonic_ns())
            os.write(master, KEY)
        time.sleep(1)
        lanes = subprocess.run(["pgrep", "-P", str(app.pid)], capture_output=True, text=True, check=False)
        os.write(master, b"q")
        app.wait(10)
        handled = [int(line) for line in moments.read_text().split()]
    assert len(handled) == presses, f"{len(handled)} of {presses} presses arrived"
    delays = [(there - here) / 1e6 for here, there in zip(pressed, handled, strict=True)]
    return delays, len(lanes.stdout.split()) == len(DESIGNS)


def drain(master: int) -> None:
    """Read what the app draws, as a terminal does."""
    try:
        while os.read(master, 65536):
            pass
    except OSError:  # the app has gone
        return


def main() -> None:
    """Print the percentiles."""
    presses = int(sys.argv[1]) if len(sys.argv) > 1 else 320
    delays, all_ran = press_keys(presses)
    cuts = statistics.quantiles(delays, n=100, method="inclusive")
    print(f"{presses} presses at {COLUMNS}x{ROWS}, three lanes of 200,000 jobs at unlimited speed: ms to the handler")
    print(f"  median {cuts[49]:.1f}  p90 {cuts[89]:.1f}  p99 {cuts[98]:.1f}  max {max(delays):.1f}")
    print(f"  the lanes ran until the last press: {'yes' if all_ran else 'no'}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--app"]:
        with Path(sys.argv[2]).open("w") as MOMENTS:
            session = Session(tuple(DESIGNS.values()), 7, None)
            Probe(session, Scenario(jobs=200_000)).run()
            session.close()
    else:
        main()
