"""Measure what the app itself costs: its first paint, and its share of a core while lanes stream and while they pause.

    python tests/bench/app.py [rounds]

The real command runs on a real pseudo-terminal of 120x36, at its own speed of 1,100 calls a second in each lane. Its
first paint is the first panel's title on the terminal, from before the process is started. The share of a core is
that of the app's own process, by the ticks in /proc, and the bytes are what it writes to the terminal.
"""

import fcntl
import os
import pty
import select
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

COLUMNS, ROWS = 120, 36
FIRST = b"Whole-job"
SETTLE_S, WATCH_S = 3.0, 6.0
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Watched:
    """The app on a terminal that is read as fast as it writes."""

    def __init__(self, home: str) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        environment = os.environ | {"TERM": "xterm-256color", "XDG_STATE_HOME": home, "XDG_CONFIG_HOME": home}
        self._began_s = time.monotonic()
        self.process = subprocess.Popen(
            [str(Path(sys.executable).with_name("durtui")), "--fresh"],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            env=environment,
        )
        os.close(slave)
        self.written = b""
        self.painted_s = 0.0

    def read_for(self, seconds: float) -> int:
        """Read for so long; return how many bytes came."""
        before, end = len(self.written), time.monotonic() + seconds
        while time.monotonic() < end:
            if not select.select([self._master], [], [], 0.02)[0]:
                continue
            try:
                self.written += os.read(self._master, 65536)
            except OSError:  # the app has gone
                break
            if not self.painted_s and FIRST in self.written:
                self.painted_s = time.monotonic() - self._began_s
        return len(self.written) - before

    def press(self, key: bytes) -> None:
        """Press a key, and let it take its effect."""
        os.write(self._master, key)
        self.read_for(1.0)

    def share_of_a_core(self) -> tuple[float, float]:
        """The share of a core, in per cent, over a while; and the bytes a second that it wrote meanwhile."""
        before = self._ticks()
        written = self.read_for(WATCH_S)
        return (self._ticks() - before) / TICKS_PER_S / WATCH_S * 100, written / WATCH_S

    def _ticks(self) -> int:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])


def main() -> None:
    """Print the medians."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    rows = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as home:
            app = Watched(home)
            app.read_for(SETTLE_S)
            streaming, written = app.share_of_a_core()
            app.press(b" ")
            paused, _ = app.share_of_a_core()
            app.press(b"q")
            app.process.wait(10)
            rows.append((app.painted_s, streaming, paused, written / 1024))
    print(f"the app at {COLUMNS}x{ROWS}, {rounds} rounds: median (least to most)")
    for name, values in zip(
        ("first paint, s", "streaming, %", "paused, %", "KiB/s"), zip(*rows, strict=True), strict=True
    ):
        print(f"  {name:16} {statistics.median(values):.2f}  ({min(values):.2f} to {max(values):.2f})")


if __name__ == "__main__":
    main()
