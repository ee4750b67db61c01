"""What the tests of faults share: a home that is nobody's own, and the processes and runs that are left there."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

PROC = Path("/proc")


def processes_of(state_home: Path) -> dict[int, str]:
    """The processes alive that were given `state_home`: those of one test, whoever else runs durtui meanwhile."""
    found = {}
    for process in PROC.glob("[0-9]*"):
        with suppress(OSError):  # it ended while it was being looked at
            if f"XDG_STATE_HOME={state_home}".encode() in (process / "environ").read_bytes().split(b"\0"):
                found[int(process.name)] = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    return found


@pytest.fixture(autouse=True)
def state_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home of this test alone, with no settings, as the place where it runs; no process is left to the next test."""
    home = tmp_path / "state"
    for name in [name for name in os.environ if name.startswith("DURTUI_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_STATE_HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    yield home
    if home.exists():
        for left in set(processes_of(home)) - {os.getpid()}:
            with suppress(ProcessLookupError):
                os.kill(left, signal.SIGKILL)


@pytest.fixture
def processes(state_home: Path) -> Callable[[], dict[int, str]]:
    """Asks for the processes of this test that are alive, each with its command line."""
    if not PROC.exists():
        pytest.skip("tells a test's processes by /proc")
    return lambda: {pid: line for pid, line in processes_of(state_home).items() if pid != os.getpid()}


class Server:
    """`durtui serve` on a port of its own."""

    def __init__(self, words: tuple[str, ...]) -> None:
        command = str(Path(sys.executable).with_name("durtui"))
        self.process = subprocess.Popen(
            [command, "serve", "--port", "0", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert self.process.stdout is not None
        said = self.process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)", said)
        assert found, said
        self.url, self.port = found[0], int(found[1])

    def close(self) -> None:
        """End it, whatever has become of it."""
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def server() -> Iterator[Callable[..., Server]]:
    """Opens `durtui serve` with the words given."""
    opened: list[Server] = []

    def open_(*words: str) -> Server:
        opened.append(Server(words))
        return opened[-1]

    yield open_
    for each in opened:
        each.close()


@pytest.fixture
def lanes(processes: Callable[[], dict[int, str]]) -> Callable[[], list[int]]:
    """Asks for the lanes of this test that are alive."""
    return lambda: sorted(pid for pid, line in processes().items() if "durcore.lane" in line)


@pytest.fixture
def runs(state_home: Path) -> Callable[[], list[Path]]:
    """Asks for the runs that are kept in the state directory of this test."""
    return lambda: sorted((state_home / "durtui" / "runs").glob("*"))
