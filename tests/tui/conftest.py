"""What the tests of the terminal face share: a home that is nobody's own, the real command, and what it left behind."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

PROC = Path("/proc")


def lanes_of(state_home: Path) -> list[int]:
    """The lanes alive whose runs live under `state_home`: those of one test, whoever else runs lanes meanwhile."""
    found = []
    for process in PROC.glob("[0-9]*"):
        with suppress(OSError):  # it ended while it was being looked at
            ours = f"XDG_STATE_HOME={state_home}".encode() in (process / "environ").read_bytes().split(b"\0")
            if ours and b"durcore.lane" in (process / "cmdline").read_bytes().split(b"\0"):
                found.append(int(process.name))
    return sorted(found)


@pytest.fixture(autouse=True)
def state_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home of this test alone, with no settings, as the place where it runs; no lane is left to the next test."""
    home = tmp_path / "state"
    for name in [name for name in os.environ if name.startswith("DURTUI_") or name in ("COLUMNS", "LINES")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_STATE_HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    yield home
    if home.exists():
        for lane in lanes_of(home):
            with suppress(ProcessLookupError):
                os.kill(lane, signal.SIGKILL)


@pytest.fixture
def lanes(state_home: Path) -> Callable[[], list[int]]:
    """Asks for the lanes of this test that are alive."""
    if not PROC.exists():
        pytest.skip("tells a test's lanes by /proc")
    return lambda: lanes_of(state_home)


@pytest.fixture
def runs(state_home: Path) -> Callable[[], list[Path]]:
    """Asks for the runs that are kept in the state directory of this test."""
    return lambda: sorted((state_home / "durtui" / "runs").glob("*"))


@pytest.fixture
def command() -> str:
    """The `durtui` command, as it was installed."""
    return str(Path(sys.executable).with_name("durtui"))


@pytest.fixture
def durtui(command: str) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the real command without a terminal, in a process of its own."""

    def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [command, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env={**os.environ, **environment},
            timeout=60,
            check=False,
        )

    return run
