"""The lock of a directory: one holder at a time, known by number, and none once its process is gone however it went."""

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from durcore.errors import InUse, Mistake
from durcore.lock import LOCK_FILE, Lock

HOLDER = """
import sys
from pathlib import Path
from durcore.lock import Lock
lock = Lock.hold(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.readline()
lock.release()
print("released", flush=True)
sys.stdin.readline()
"""

Holder = Callable[[], "subprocess.Popen[str]"]


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[Holder]:
    """Starts another process that holds the directory until it is told a line."""
    started: list[subprocess.Popen[str]] = []

    def start() -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        assert heard(process) == "held"
        return process

    yield start
    for process in started:
        process.kill()
        with process:
            pass


def heard(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def tell(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def refusal(directory: Path) -> str:
    with pytest.raises(InUse) as caught:
        Lock.hold(directory)
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


def test_a_directory_that_another_process_holds_is_refused_and_its_holder_is_named(
    tmp_path: Path, holder: Holder
) -> None:
    other = holder()
    assert Lock.is_held(tmp_path)
    words = f"{tmp_path} is in use by another durtui (process {other.pid}); wait until it is done, or end it"
    assert refusal(tmp_path) == words
    assert refusal(tmp_path) == words  # whoever was refused has changed nothing
    tell(other)
    assert heard(other) == "released"
    Lock.hold(tmp_path).release()  # though that process is alive still


def test_in_use_is_no_mistake_and_exits_with_1() -> None:
    assert not issubclass(InUse, Mistake)
    assert InUse.exit_code == 1


def test_a_lock_left_by_a_killed_process_is_not_taken_for_a_living_one(tmp_path: Path, holder: Holder) -> None:
    other = holder()
    other.send_signal(signal.SIGKILL)
    other.wait()
    assert (tmp_path / LOCK_FILE).read_text() == str(other.pid)  # its number is there, and binds nobody
    assert not Lock.is_held(tmp_path)
    Lock.hold(tmp_path).release()


def test_one_process_holds_a_directory_once(tmp_path: Path) -> None:
    lock = Lock.hold(tmp_path)
    assert str(os.getpid()) in refusal(tmp_path)
    lock.release()
    lock.release()  # as often as one likes
    again = Lock.hold(tmp_path)
    lock.release()  # which lets go of nothing that somebody else has got meanwhile
    assert Lock.is_held(tmp_path)
    again.release()
    assert not Lock.is_held(tmp_path)


def test_two_directories_are_held_apart(tmp_path: Path) -> None:
    places = [tmp_path / "a", tmp_path / "b"]
    for place in places:
        place.mkdir()
    locks = [Lock.hold(place) for place in places]
    locks[0].release()
    assert [Lock.is_held(place) for place in places] == [False, True]
    locks[1].release()


def test_a_forked_process_holds_it_still_when_its_parent_has_let_go(tmp_path: Path) -> None:
    program = """
        import os, sys
        from pathlib import Path
        from durcore.lock import Lock
        lock = Lock.hold(Path(sys.argv[1]))
        child = os.fork()
        if child == 0:
            sys.stdin.readline()
            os._exit(0)
        lock.release()
        print(Lock.is_held(Path(sys.argv[1])), flush=True)
        os.waitpid(child, 0)
        print(Lock.is_held(Path(sys.argv[1])))
    """
    arguments = [sys.executable, "-c", textwrap.dedent(program), str(tmp_path)]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert heard(parent) == "True"
        tell(parent)
        assert heard(parent) == "False"


def test_a_program_that_is_started_does_not_hold_what_its_starter_holds(tmp_path: Path) -> None:
    lock = Lock.hold(tmp_path)
    program = [sys.executable, "-c", "print('here', flush=True); input()"]
    with subprocess.Popen(
        program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, close_fds=False
    ) as started:
        assert heard(started) == "here"
        lock.release()
        assert not Lock.is_held(tmp_path)
        assert started.poll() is None
        started.kill()


def test_who_is_patient_gets_it_as_soon_as_it_is_let_go(tmp_path: Path, holder: Holder) -> None:
    other = holder()
    tell(other)
    lock = Lock.hold(tmp_path, patience_s=30)
    assert (tmp_path / LOCK_FILE).read_text() == str(os.getpid())
    lock.release()


def test_patience_has_an_end(tmp_path: Path, holder: Holder) -> None:
    holder()
    with pytest.raises(InUse):
        Lock.hold(tmp_path, patience_s=0.05)


def test_the_number_of_a_holder_replaces_a_longer_one(tmp_path: Path) -> None:
    (tmp_path / LOCK_FILE).write_text("9" * 30)
    lock = Lock.hold(tmp_path)
    assert (tmp_path / LOCK_FILE).read_text() == str(os.getpid())
    lock.release()


@pytest.mark.parametrize("text", ["", "\x1b[2J", "12 and more", "9" * 30, "\xff"])
def test_what_somebody_wrote_into_a_lock_reaches_nobody_unless_it_is_a_number(tmp_path: Path, text: str) -> None:
    lock = Lock.hold(tmp_path)
    (tmp_path / LOCK_FILE).write_text(text, encoding="latin-1")
    number = f" (process {text[:20]})" if text.isdigit() else ""
    assert refusal(tmp_path) == f"{tmp_path} is in use by another durtui{number}; wait until it is done, or end it"
    lock.release()


def test_a_lock_is_for_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        Lock.hold(tmp_path).release()
    finally:
        os.umask(before)
    assert (tmp_path / LOCK_FILE).stat().st_mode & 0o777 == 0o600


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("dear diary")
    (tmp_path / LOCK_FILE).symlink_to(tmp_path / "mine")
    with pytest.raises(OSError, match="symbolic links"):
        Lock.hold(tmp_path)
    assert (tmp_path / "mine").read_text() == "dear diary"


def test_a_directory_that_is_not_there_is_an_error_and_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Lock.hold(tmp_path / "gone")
    assert not (tmp_path / "gone").exists()


def test_a_refused_lock_leaves_no_file_open(tmp_path: Path, holder: Holder) -> None:
    holder()
    refusal(tmp_path)
    lowest = os.open(tmp_path, os.O_RDONLY)  # the system gives the lowest number that is free
    os.close(lowest)
    refusal(tmp_path)
    after = os.open(tmp_path, os.O_RDONLY)
    os.close(after)
    assert after == lowest
