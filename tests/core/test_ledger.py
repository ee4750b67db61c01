"""The world's books: what is billed stays billed, in a file of a known size that survives whoever wrote it."""

import signal
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from durcore.errors import Damaged, LedgerDamaged, LedgerError
from durcore.ledger import HEADER, HEADER_BYTES, MAGIC, MARK_AT, Ledger, Mark, allocate, ledger_bytes

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


# The attempt in flight


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    ledger = Ledger.create(tmp_path / "ledger", jobs=JOBS, steps=STEPS)
    yield ledger
    ledger.close()


def counts(ledger: Ledger) -> list[tuple[int, list[int]]]:
    return [(ledger.emails(job), ledger.calls_of_steps(job).tolist()) for job in range(1, ledger.jobs + 1)]


def written(path: Path, word: int) -> Path:
    """Write a mark's word over the one in a ledger's file."""
    data = bytearray(path.read_bytes())
    data[MARK_AT : MARK_AT + 8] = word.to_bytes(8, sys.byteorder)
    path.write_bytes(data)
    return path


@given(
    job=st.sampled_from((1, 417, 10_000_000)) | st.integers(1, 10_000_000),
    delivery=st.sampled_from((1, 1001)) | st.integers(1, 1001),
    step=st.integers(1, 100),
    failures=st.integers(0, 99),
    odd_calls=st.integers(0, 1),
    odd_emails=st.integers(0, 1),
    crashed=st.booleans(),
)
def test_a_mark_has_room_for_every_attempt_that_a_scenario_allows(
    job: int, delivery: int, step: int, failures: int, odd_calls: int, odd_emails: int, crashed: bool
) -> None:
    mark = Mark(job, delivery, step, failures, odd_calls, odd_emails, crashed)
    word = job << 40 | delivery << 24 | step << 16 | failures << 8 | odd_calls << 2 | odd_emails << 1 | crashed
    assert word < 2**64
    assert Mark.of(word) == mark


def test_the_mark_is_an_aligned_word_that_a_kill_leaves_whole() -> None:
    assert MARK_AT % 8 == 0
    assert HEADER.size <= MARK_AT <= HEADER_BYTES - 8


def test_a_new_ledger_has_no_attempt_in_flight(ledger: Ledger) -> None:
    assert (ledger.mark().job, ledger.mark().step) == (0, 0)


def test_a_mark_says_which_attempt_is_in_flight_and_whether_it_crashed_until_it_is_cleared(ledger: Ledger) -> None:
    ledger.bill(3, 4)
    ledger.begin(3, 11, 4, 2)
    assert ledger.mark() == Mark(3, 11, 4, 2, odd_calls=1, odd_emails=0, crashed=False)
    ledger.deliver_email(3)
    ledger.bill(3, 4)
    assert ledger.mark() == Mark(3, 11, 4, 2, odd_calls=1, odd_emails=0, crashed=False)
    ledger.mark_crashed()
    assert ledger.mark() == Mark(3, 11, 4, 2, odd_calls=1, odd_emails=0, crashed=True)
    ledger.begin(3, 12, 4, 0)  # the crash was the one before's
    assert ledger.mark() == Mark(3, 12, 4, 0, odd_calls=0, odd_emails=1, crashed=False)
    ledger.clear_mark()
    assert (ledger.mark().job, ledger.mark().crashed) == (0, False)


@pytest.mark.parametrize("emails_before", range(3))
@pytest.mark.parametrize("calls_before", range(3))
@pytest.mark.parametrize("done", ["nothing", "billed", "billed and sent"])
def test_a_killed_attempt_is_taken_back_once_and_nothing_else_is(
    tmp_path: Path, ledger: Ledger, calls_before: int, emails_before: int, done: str
) -> None:
    for job in range(1, JOBS + 1):
        for step in range(1, STEPS + 1):
            for _ in range(calls_before):
                ledger.bill(job, step)
        for _ in range(emails_before):
            ledger.deliver_email(job)
    before = counts(ledger)
    ledger.begin(2, 5, 3, 1)
    if done != "nothing":
        ledger.bill(2, 3)
    if done == "billed and sent":
        ledger.deliver_email(2)
    for _ in range(3):  # a recovery that is killed is made again, from what it has left in the file
        again = Ledger.open(tmp_path / "ledger")
        assert again.take_call_back(again.mark()) == calls_before
        again.take_email_back(again.mark())
        assert counts(again) == before
        again.close()


def test_an_attempt_that_never_was_is_not_taken_back(ledger: Ledger) -> None:
    before = counts(ledger)
    never = Mark(2, 1, 3, 0, odd_calls=1, odd_emails=1, crashed=False)
    with pytest.raises(LedgerDamaged, match="its mark is of an attempt that never was: it was written over"):
        ledger.take_call_back(never)
    with pytest.raises(LedgerDamaged, match="its mark is of an attempt that never was: it was written over"):
        ledger.take_email_back(never)
    assert counts(ledger) == before


@pytest.mark.parametrize(
    ("job", "step"), [(JOBS + 1, 1), (1, STEPS + 1), (1, 0), (0, 1), (2**24 - 1, 255)], ids=lambda n: str(n)
)
def test_a_mark_of_no_job_of_this_ledger_is_damage_and_is_named(tmp_path: Path, job: int, step: int) -> None:
    path = tmp_path / "ledger"
    Ledger.create(path, jobs=JOBS, steps=STEPS).close()
    ledger = Ledger.open(written(path, job << 40 | step << 16))
    with pytest.raises(LedgerDamaged, match="its mark is of no job of this run: it was written over") as caught:
        ledger.mark()
    assert str(path) in str(caught.value)
    ledger.close()


def test_the_calls_of_a_job_are_told_step_by_step(ledger: Ledger) -> None:
    for step, bills_ in ((1, 2), (3, 1), (4, 5)):
        for _ in range(bills_):
            ledger.bill(2, step)
    assert [ledger.calls_of_steps(job).tolist() for job in (1, 2, 3)] == [[0] * 4, [2, 0, 1, 5], [0] * 4]
    assert ledger.calls(2) == 8


# The file


def test_a_ledger_is_never_made_over_another(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    ledger = Ledger.create(path, jobs=2, steps=2)
    ledger.bill(1, 1)
    ledger.close()
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="cannot be made"):
        Ledger.create(path, jobs=2, steps=2)
    assert path.read_bytes() == before


@pytest.mark.parametrize("damage", ["empty", "text", "short", "long", "header", "no jobs", "absurd"])
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
            "no jobs": HEADER.pack(MAGIC, 0, 3) + bytes(HEADER_BYTES - HEADER.size),
            "absurd": HEADER.pack(MAGIC, 2**64 - 1, 2**64 - 1) + bytes(1000),
        }[damage]
    )
    before = path.read_bytes()
    with pytest.raises(LedgerDamaged, match="is not a durtui ledger, or not a whole one") as caught:
        Ledger.open(path)
    assert len(str(caught.value).splitlines()) == 1
    assert path.read_bytes() == before


def test_a_ledger_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(LedgerDamaged, match=r"nowhere is gone"):
        Ledger.open(tmp_path / "nowhere")
    with pytest.raises(LedgerError, match=r"cannot be opened: Is a directory$") as caught:
        Ledger.open(tmp_path)
    assert not isinstance(caught.value, Damaged)


def test_allocation_gives_a_file_room_without_a_fallocate_of_the_systems_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("os.posix_fallocate", raising=False)
    size = (1 << 20) + 17  # beyond one block, and no multiple of it
    with (tmp_path / "room").open("xb+") as file:
        allocate(file.fileno(), size)
    assert (tmp_path / "room").read_bytes() == bytes(size)
