"""The world's books: what is billed stays billed, in a file of a known size that survives whoever wrote it."""

import signal
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from durcore.errors import LedgerError
from durcore.ledger import Ledger, allocate, ledger_bytes

JOBS, STEPS = 3, 4

bills = st.lists(st.tuples(st.integers(1, JOBS), st.integers(1, STEPS)), max_size=60)
deliveries = st.lists(st.integers(1, JOBS), max_size=30)


@given(billed=bills, delivered=deliveries)
@settings(deadline=None, max_examples=60)
def test_the_books_hold_what_was_billed_and_delivered_also_when_they_are_opened_again(
    tmp_path_factory: pytest.TempPathFactory, billed: list[tuple[int, int]], delivered: list[int]
) -> None:
    path = tmp_path_factory.mktemp("ledger") / "ledger"
    ledger = Ledger.create(path, jobs=JOBS, steps=STEPS)
    for index, place in enumerate(billed):
        assert ledger.bill(*place) == billed[:index].count(place)
    for index, job in enumerate(delivered):
        assert ledger.deliver_email(job) == delivered[: index + 1].count(job)
    ledger.close()

    ledger = Ledger.open(path)
    assert ledger.total_calls() == len(billed)
    for job in range(1, JOBS + 1):
        assert ledger.calls(job) == [j for j, _ in billed].count(job)
        assert ledger.emails(job) == delivered.count(job)
    assert ledger.email_counts() == Counter(delivered.count(job) for job in range(1, JOBS + 1))
    assert [ledger.bill(job, step) for job in range(1, JOBS + 1) for step in range(1, STEPS + 1)] == [
        billed.count((job, step)) for job in range(1, JOBS + 1) for step in range(1, STEPS + 1)
    ]
    ledger.close()


@pytest.mark.parametrize(("jobs", "steps"), [(1, 1), (2, 1), (3, 7), (1000, 10), (7, 100)])
def test_the_file_has_its_full_size_at_once_and_it_is_four_bytes_a_step_and_two_a_job(
    tmp_path: Path, jobs: int, steps: int
) -> None:
    path = tmp_path / "ledger"
    Ledger.create(path, jobs=jobs, steps=steps).close()
    size = path.stat().st_size
    assert size == ledger_bytes(jobs, steps)
    assert 0 <= size - (4 * jobs * steps + 2 * jobs) <= 66  # a header, and two bytes to align the calls
    assert path.stat().st_blocks * 512 >= size  # real room: no hole that a full disk would turn into a SIGBUS


def test_the_last_job_and_step_have_room_of_their_own(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger", jobs=3, steps=7)
    for _ in range(5):
        ledger.bill(3, 7)
        ledger.deliver_email(3)
    assert [ledger.calls(job) for job in (1, 2, 3)] == [0, 0, 5]
    assert [ledger.emails(job) for job in (1, 2, 3)] == [0, 0, 5]
    ledger.close()


def test_the_most_emails_and_more_calls_than_sixteen_bits_hold_are_counted(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger", jobs=1, steps=1)
    for _ in range(70_000):
        ledger.bill(1, 1)
    for _ in range(1001):  # one a delivery: the first and a thousand redeliveries
        ledger.deliver_email(1)
    assert ledger.bill(1, 1) == 70_000
    assert ledger.emails(1) == 1001
    ledger.close()


def test_what_was_billed_survives_a_sigkill(tmp_path: Path) -> None:
    program = """
        import os, signal, sys
        from pathlib import Path
        from durcore.ledger import Ledger
        ledger = Ledger.create(Path(sys.argv[1]), jobs=2, steps=2)
        for _ in range(1000):
            ledger.bill(2, 1)
        ledger.deliver_email(1)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    path = tmp_path / "ledger"
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(program), str(path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    ledger = Ledger.open(path)
    assert (ledger.calls(1), ledger.calls(2), ledger.emails(1), ledger.emails(2)) == (0, 1000, 1, 0)
    ledger.close()


def test_a_ledger_is_never_made_over_another(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    ledger = Ledger.create(path, jobs=2, steps=2)
    ledger.bill(1, 1)
    ledger.close()
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="cannot be made"):
        Ledger.create(path, jobs=2, steps=2)
    assert path.read_bytes() == before


@pytest.mark.parametrize("damage", ["empty", "text", "short", "long", "header"])
def test_a_file_that_is_no_whole_ledger_is_refused_in_one_line_and_left_as_it_is(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "ledger"
    Ledger.create(path, jobs=5, steps=3).close()
    whole = path.read_bytes()
    path.write_bytes(
        {
            "empty": b"",
            "text": b"dear diary\n" * 20,
            "short": whole[:-1],
            "long": whole + b"\0",
            "header": whole[:40],
        }[damage]
    )
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="is not a durtui ledger, or not a whole one") as caught:
        Ledger.open(path)
    assert len(str(caught.value).splitlines()) == 1
    assert path.read_bytes() == before


def test_a_ledger_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"nowhere cannot be opened: No such file"):
        Ledger.open(tmp_path / "nowhere")


def test_allocation_gives_a_file_room_without_a_fallocate_of_the_systems_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("os.posix_fallocate", raising=False)
    size = (1 << 20) + 17  # beyond one block, and no multiple of it
    with (tmp_path / "room").open("xb+") as file:
        allocate(file.fileno(), size)
    assert (tmp_path / "room").read_bytes() == bytes(size)
