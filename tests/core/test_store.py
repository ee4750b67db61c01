"""The store: queue, checkpoints and keys against a plain model, under SIGKILL, and before files that are no store."""

import hashlib
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from durcore import database
from durcore.database import APPLICATION_ID, SCHEMA_VERSION, check
from durcore.designs import CHECKPOINT, CHECKPOINT_IDEMPOTENT
from durcore.errors import Damaged, StoreDamaged, StoreError
from durcore.ledger import ledger_bytes
from durcore.rundir import PAGE_BYTES, WAL_BYTES, bytes_needed
from durcore.scenario import Scenario
from durcore.store import Claim, Store, Trace

# A person at the prompt of sqlite3, in a process of their own.
LOOK = (
    "import sqlite3, sys; connection = sqlite3.connect(sys.argv[1]);"
    "print(connection.execute(sys.argv[2]).fetchall()); connection.close()"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "store").mkdir()
    return tmp_path / "store" / "store.db"


def new_store(path: Path, jobs: int = 0) -> Store:
    """A store with `jobs` queued that does not wait for the disk."""
    store = Store.create(path, synchronous="off")
    if jobs:
        store.enqueue(1, jobs)
    return store


def claimed(store: Store) -> Claim:
    claim = store.claim()
    assert claim is not None
    return claim


# The queue


def test_jobs_are_claimed_in_the_order_of_their_numbers_with_their_first_delivery(path: Path) -> None:
    with new_store(path) as store:
        store.enqueue(1, 3)
        store.enqueue(4, 6)
        claims = [claimed(store) for _ in range(6)]
        assert claims == [Claim(job, 1) for job in range(1, 7)]
        assert store.claim() is None


def test_an_empty_queue_gives_nothing(path: Path) -> None:
    with new_store(path) as store:
        assert store.claim() is None


def test_a_redelivered_job_goes_behind_every_queued_one(path: Path) -> None:
    with new_store(path, jobs=3) as store:
        first, second = claimed(store), claimed(store)
        store.redeliver(second.job)
        store.redeliver(first.job)
        assert [claimed(store) for _ in range(3)] == [Claim(3, 1), Claim(2, 2), Claim(1, 2)]
        assert store.claim() is None


def test_a_job_redelivered_into_an_empty_queue_is_its_head(path: Path) -> None:
    with new_store(path, jobs=1) as store:
        for delivery in range(1, 5):
            assert claimed(store) == Claim(1, delivery)
            store.redeliver(1)


def test_a_job_is_in_the_state_that_the_last_transition_gave_it(path: Path) -> None:
    with new_store(path, jobs=6) as store:
        for _ in range(5):
            claimed(store)
        store.finish(1)
        store.lose(2)
        store.dead_letter(3)
        store.redeliver(4)
        assert store.count_states() == {"finished": 1, "lost": 1, "dead_lettered": 1, "queued": 2, "running": 1}
        states = {state: list(store.jobs_in(state)) for state in store.count_states()}
        assert states == {"finished": [1], "lost": [2], "dead_lettered": [3], "queued": [4, 6], "running": [5]}
        assert list(store.jobs_in("lost", "dead_lettered")) == [2, 3]


def test_redeliveries_are_deliveries_beyond_the_first_and_those_that_wait_for_their_claim(path: Path) -> None:
    with new_store(path, jobs=4) as store:
        assert store.count_redeliveries() == (0, 0)
        for _ in range(4):
            claimed(store)
        assert store.count_redeliveries() == (0, 0)
        store.redeliver(2)
        store.redeliver(3)
        assert store.count_redeliveries() == (2, 0)  # redelivered, and not yet resumed
        assert claimed(store).job == 2
        assert store.count_redeliveries() == (2, 1)
        store.redeliver(2)
        for _ in range(2):
            claimed(store)
        store.finish(2)
        store.dead_letter(3)
        assert store.count_redeliveries() == (3, 2)


def test_the_delivery_under_way_is_that_of_the_job_looked_at_or_else_any(path: Path) -> None:
    with new_store(path, jobs=5) as store:
        assert store.running(1) is None
        for _ in range(3):
            claimed(store)
        store.finish(1)
        assert store.running(3) == Claim(3, 1)
        assert store.running(2) == Claim(2, 1)
        assert store.running(1) in (Claim(2, 1), Claim(3, 1))
        assert store.running(0) in (Claim(2, 1), Claim(3, 1))
        store.redeliver(2)
        assert store.running(2) == Claim(3, 1)
        store.lose(3)
        assert store.running(3) is None


def test_job_numbers_go_from_the_lowest_to_the_highest_whatever_became_of_them(path: Path) -> None:
    with new_store(path) as store:
        assert store.job_numbers() == (1, 0)
        store.enqueue(1, 3)
        store.enqueue(4, 6)
        while claim := store.claim():
            store.finish(claim.job)
        assert store.job_numbers() == (1, 6)


# Checkpoints and effect keys


def test_saved_steps_are_those_of_the_job_itself(path: Path) -> None:
    with new_store(path, jobs=3) as store:
        for step in range(1, 4):
            store.save(2, step, b"%d" % step)
        assert [store.saved_steps(job) for job in (1, 2, 3)] == [0, 3, 0]
        store.save(1, 1, b"")
        store.save(3, 255, b"")
        assert [store.saved_steps(job) for job in (1, 2, 3)] == [1, 3, 255]
        assert store.count_checkpoints() == 5


@pytest.mark.parametrize(
    "output",
    [b"", b"\0" * 16, bytes(range(256)), b"x" * 1_048_576],
    ids=["empty", "zeros", "every byte", "the largest"],
)
def test_an_output_comes_back_byte_for_byte_also_from_a_store_opened_again(path: Path, output: bytes) -> None:
    with new_store(path, jobs=1) as store:
        store.save(1, 7, output)
        assert store.output(1, 7) == output
    with Store.open(path) as store:
        assert store.output(1, 7) == output


def test_a_step_without_a_checkpoint_has_no_output(path: Path) -> None:
    with new_store(path, jobs=2) as store:
        store.save(1, 1, b"one")
        for job, step in ((1, 2), (2, 1)):
            with pytest.raises(KeyError):
                store.output(job, step)


def test_a_checkpoint_is_never_written_over(path: Path) -> None:
    with new_store(path, jobs=1) as store:
        store.save(1, 1, b"first")
        with pytest.raises(Exception, match="UNIQUE"):
            store.save(1, 1, b"second")
        assert store.output(1, 1) == b"first"


def test_a_key_is_new_once_and_its_first_record_stays(path: Path) -> None:
    with new_store(path, jobs=2) as store:
        assert store.record_key(1, 6, 4)
        assert not store.record_key(1, 6, 5)
        assert store.record_key(1, 7, 0)
        assert store.record_key(2, 6, 0)
    with Store.open(path) as store:
        assert not store.record_key(1, 6, 6)
    with sqlite3.connect(path) as connection:
        rows = connection.execute("SELECT job, step, attempt FROM effect_keys ORDER BY id").fetchall()
    connection.close()
    assert rows == [(1, 6, 4), (1, 7, 0), (2, 6, 0)]


def test_an_undone_attempt_leaves_neither_checkpoint_nor_a_key_of_its_own(path: Path) -> None:
    with new_store(path, jobs=2) as store:
        store.save(1, 1, b"before")
        store.record_key(1, 2, 3)
        store.save(1, 2, b"undone")
        store.save(2, 2, b"another job")
        store.record_key(2, 2, 3)
        store.undo(1, 2, 3)
        store.undo(1, 2, 3)  # a kill in the middle of a recovery: it is done again
    assert Books.read(path).checkpoints == {(1, 1): b"before", (2, 2): b"another job"}
    assert Books.read(path).keys == {(2, 2): 3}


def test_undoing_an_attempt_keeps_the_key_that_an_earlier_one_recorded(path: Path) -> None:
    with new_store(path, jobs=1) as store:
        store.record_key(1, 2, 0)
        assert not store.record_key(1, 2, 1)
        store.undo(1, 2, 1)
        assert not store.record_key(1, 2, 2)
    assert Books.read(path).keys == {(1, 2): 0}


def test_open_checkpoints_are_those_of_jobs_that_are_queued_or_running(path: Path) -> None:
    with new_store(path, jobs=6) as store:
        assert store.count_open_checkpoints() == 0
        for _ in range(5):
            claim = claimed(store)
            for step in range(1, claim.job + 1):
                store.save(claim.job, step, b"")
        assert store.count_open_checkpoints() == 1 + 2 + 3 + 4 + 5
        store.redeliver(1)
        store.finish(2)
        store.lose(3)
        store.dead_letter(4)
        assert store.count_open_checkpoints() == 1 + 5
        assert store.count_checkpoints() == 1 + 2 + 3 + 4 + 5


def test_wrong_outputs_are_those_that_differ_in_any_byte_or_in_length(path: Path) -> None:
    with new_store(path, jobs=1) as store:
        for step, output in enumerate((bytes(4), b"\0\0\0\1", bytes(3), bytes(5), b"", bytes(4)), start=1):
            store.save(1, step, output)
        assert store.count_wrong_outputs(bytes(4)) == 4
        assert store.count_wrong_outputs(b"") == 5


def test_a_trace_tells_what_each_job_has_left(path: Path) -> None:
    with new_store(path, jobs=4) as store:
        for _ in range(3):
            claimed(store)
        for step in (1, 2, 3):
            store.save(1, step, b"")
        store.record_key(1, 3, 7)
        store.record_key(2, 2, 5)
        store.save(2, 3, b"")  # a hole: no lane leaves one
        store.dead_letter(1)
        store.redeliver(2)
        claimed(store)
        claimed(store)
        store.finish(2)
        assert list(store.traces(3)) == [
            Trace(1, "dead_lettered", 1, 3, 3, 7),
            Trace(2, "finished", 2, 1, 3, None),
            Trace(3, "running", 1, 0, 0, None),
            Trace(4, "running", 1, 0, 0, None),
        ]
        assert [trace.key for trace in store.traces(2)] == [None, 5, None, None]


# Jobs with a name


def test_a_name_keeps_its_number_also_in_a_store_opened_again(path: Path) -> None:
    with new_store(path) as store:
        numbers = [store.named_job(name) for name in ("invoice-17", "invoice-18", "", "Ünïcode 'quoted'")]
        assert numbers == [1, 2, 3, 4]
    with Store.open(path) as store:
        assert store.named_job("invoice-17") == 1
        assert store.named_job("Ünïcode 'quoted'") == 4
        assert store.named_job("invoice-19") == 5
        assert store.count_states() == {"queued": 5}


def test_a_named_job_begins_out_of_turn_with_one_delivery_more(path: Path) -> None:
    with new_store(path) as store:
        store.named_job("first")
        second = store.named_job("second")
        assert store.begin(second) == Claim(second, 1)
        store.redeliver(second)
        assert store.begin(second) == Claim(second, 2)
        assert list(store.jobs_in("running")) == [second]


# Durability: what was acknowledged is there

VICTIM = textwrap.dedent(
    """
    import random, sys
    from durcore.store import Store

    path, seed, kind, jobs = sys.argv[1], int(sys.argv[2]), sys.argv[3], 40
    random = random.Random(seed)
    store = Store.open(path)
    if kind == "numbered" and not store.count_states():
        print("try", "enqueue", jobs, flush=True)
        store.enqueue(1, jobs)
        print("did", flush=True)
    while True:
        running = list(store.jobs_in("running"))
        others = list(store.jobs_in("queued", "finished"))
        ways = ["claim"] if kind == "numbered" else ["name"] + ["begin"] * bool(others)
        ways += ["save", "key", "redeliver", "finish", "lose", "dead_letter"] * bool(running)
        way = random.choice(ways)
        job = random.choice(others if way == "begin" else running) if way not in ("claim", "name") else 0
        step = store.saved_steps(job) + 1
        if way == "name":
            step = random.randrange(1000)
        print("try", way, job, step, seed, flush=True)
        if way == "claim":
            store.claim()
        elif way == "save":
            store.save(job, step, b"%d of %d" % (step, job))
        elif way == "key":
            store.record_key(job, step, seed)
        elif way == "name":
            store.named_job(f"job-{step}")
        else:
            getattr(store, way)(job)
        print("did", flush=True)
    """
)


class Books:
    """What a store must hold after the transitions that were acknowledged."""

    def __init__(self) -> None:
        self.jobs: dict[int, tuple[str, int]] = {}
        self.queue: list[int] = []
        self.checkpoints: dict[tuple[int, int], bytes] = {}
        self.keys: dict[tuple[int, int], int] = {}
        self.names: dict[str, int] = {}

    def copy(self) -> "Books":
        other = Books()
        for field, value in vars(self).items():
            setattr(other, field, value.copy())
        return other

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Books) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]  # mutable

    def do(self, way: str, job: int = 0, step: int = 0, seed: int = 0) -> None:
        match way:
            case "enqueue":
                self.queue = list(range(1, job + 1))
                self.jobs = dict.fromkeys(self.queue, ("queued", 0))
            case "claim":
                if self.queue:
                    head = self.queue.pop(0)
                    self.jobs[head] = ("running", self.jobs[head][1] + 1)
            case "save":
                self.checkpoints[job, step] = b"%d of %d" % (step, job)
            case "key":
                self.keys.setdefault((job, step), seed)
            case "name":
                if f"job-{step}" not in self.names:
                    number = max(self.jobs, default=0) + 1
                    self.names[f"job-{step}"] = number
                    self.jobs[number] = ("queued", 0)
                    self.queue.append(number)
            case "begin":
                self.queue = [queued for queued in self.queue if queued != job]
                self.jobs[job] = ("running", self.jobs[job][1] + 1)
            case _:
                state = {"redeliver": "queued", "finish": "finished", "lose": "lost", "dead_letter": "dead_lettered"}
                self.jobs[job] = (state[way], self.jobs[job][1])
                if way == "redeliver":
                    self.queue.append(job)

    @classmethod
    def read(cls, path: Path) -> "Books":
        """The store's tables by another library than its own."""
        books = cls()
        connection = sqlite3.connect(path)
        try:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            rows = connection.execute("SELECT id, state, deliveries FROM jobs").fetchall()
            books.jobs = {job: (state, deliveries) for job, state, deliveries in rows}
            queue = connection.execute("SELECT id FROM jobs WHERE state = 'queued' ORDER BY ticket").fetchall()
            books.queue = [job for (job,) in queue]
            outputs = connection.execute("SELECT job, step, output FROM checkpoints").fetchall()
            books.checkpoints = {(job, step): output for job, step, output in outputs}
            keys = connection.execute("SELECT job, step, attempt FROM effect_keys").fetchall()
            books.keys = {(job, step): attempt for job, step, attempt in keys}
            books.names = dict(connection.execute("SELECT name, job FROM job_names").fetchall())
        finally:
            connection.close()
        return books


def kill_after(path: Path, seed: int, kind: str) -> list[str]:
    """Let a victim work on the store, kill it at a moment that `seed` gives, and return every line that it wrote."""
    moment = random.Random(seed)  # noqa: S311  # reproducible, not secret
    with subprocess.Popen(
        [sys.executable, "-c", VICTIM, str(path), str(seed), kind], stdout=subprocess.PIPE, text=True
    ) as victim:
        assert victim.stdout is not None
        lines = [victim.stdout.readline() for _ in range(moment.randrange(1, 120))]
        time.sleep(moment.random() * 0.001)
        victim.send_signal(signal.SIGKILL)
        lines += victim.stdout.readlines()
        assert victim.wait() == -signal.SIGKILL, f"seed {seed}"
    return [line for line in lines if line.endswith("\n")]  # a line that was cut off was not heard


@pytest.mark.parametrize("kind", ["numbered", "named"])
@pytest.mark.parametrize("first_seed", [100, 200])
def test_nothing_acknowledged_is_missing_after_a_sigkill_and_nothing_half_done_is_there(
    path: Path, first_seed: int, kind: str
) -> None:
    Store.create(path).close()
    books = Books()
    for seed in range(first_seed, first_seed + 15):
        unheard: Books | None = None
        for line in kill_after(path, seed, kind):
            word, *rest = line.split()
            if word == "try":
                way, *numbers = rest
                unheard = books.copy()
                unheard.do(way, *map(int, numbers))
            else:
                assert unheard is not None
                books, unheard = unheard, None
        # The tables are read from a copy: the next victim must find what the killed one left, WAL and all.
        there = Books.read(shutil.copytree(path.parent, path.parent.parent / f"{kind}-{seed}") / path.name)
        if kind == "named":  # where they stand in the queue is nobody's business: they are begun out of turn
            for each in (there, books, unheard):
                if each is not None:
                    each.queue.sort()
        assert there in (books, unheard), f"seed {seed}"
        books = there


def test_what_is_acknowledged_stays_though_the_store_was_opened_twice_and_a_person_looked_in(path: Path) -> None:
    """A lock of POSIX's is the process's: whoever closes any file of that name gives all of its locks away."""
    program = """
        import sys
        from durcore.store import Store
        store = Store.create(sys.argv[1])
        store.enqueue(1, 3)
        Store.open(sys.argv[1]).close()
        print("look", flush=True)
        input()
        for job in (1, 2, 3):
            store.finish(job)
        print("finished", flush=True)
        input()
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as service:
        assert service.stdout is not None
        assert service.stdin is not None
        assert service.stdout.readline() == "look\n"
        subprocess.run([sys.executable, "-c", LOOK, str(path), "SELECT * FROM jobs"], check=True, capture_output=True)
        service.stdin.write("\n")
        service.stdin.flush()
        assert service.stdout.readline() == "finished\n"
        service.kill()
    with Store.open(path) as store:
        assert store.count_states() == {"finished": 3}


# Opening: what is a store, and what is not


def test_a_store_is_opened_again_with_everything_in_it(path: Path) -> None:
    with new_store(path, jobs=2) as store:
        claimed(store)
        store.save(1, 1, b"one")
        store.record_key(1, 1, 0)
    for _ in range(2):
        with Store.open(path) as store:
            assert store.count_states() == {"queued": 1, "running": 1}
            assert store.output(1, 1) == b"one"
    assert Books.read(path).keys == {(1, 1): 0}


@pytest.mark.parametrize(("setting", "number"), [("off", 0), ("full", 2)])
def test_a_store_is_reopened_with_everything_in_it_and_the_settings_asked_for(
    path: Path, setting: Any, number: int
) -> None:
    with new_store(path, jobs=2) as store:
        claimed(store)
    with Store.reopen(path, synchronous=setting, locking="exclusive") as store:
        assert store.count_states() == {"queued": 1, "running": 1}
        assert store._connection.pragma("synchronous") == number
        assert store._connection.pragma("locking_mode") == "exclusive"


def test_a_store_that_is_gone_is_not_made_anew_by_reopening_it(path: Path) -> None:
    with pytest.raises(StoreError, match="was deleted, or moved") as caught:
        Store.reopen(path, synchronous="normal", locking="normal")
    assert str(path) in str(caught.value)
    assert not path.exists()


@pytest.mark.parametrize("way", [Store.create, Store.open])
def test_a_new_store_and_its_log_are_for_their_owner_alone(path: Path, way: Callable[[Path], Store]) -> None:
    before = os.umask(0)
    try:
        with way(path) as store:
            store.enqueue(1, 3)
            modes = {entry.name: entry.stat().st_mode & 0o777 for entry in path.parent.iterdir()}
    finally:
        os.umask(before)
    assert modes == {"store.db": 0o600, "store.db-wal": 0o600, "store.db-shm": 0o600}


def test_where_nothing_is_a_store_is_made(path: Path) -> None:
    with Store.open(path) as store:
        assert store.count_states() == {}
    assert path.exists()


def test_an_empty_file_is_nothing_and_becomes_a_store(path: Path) -> None:
    path.touch()
    with Store.open(path) as store:
        assert store.named_job("first") == 1


def test_a_store_is_never_made_over_another(path: Path) -> None:
    new_store(path, jobs=3).close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="exists already"):
        Store.create(path)
    assert path.read_bytes() == before


def test_a_place_that_cannot_hold_a_store_is_named(tmp_path: Path) -> None:
    for place in (tmp_path / "no" / "such" / "folder.db", tmp_path):
        with pytest.raises(StoreError) as caught:
            Store.open(place)
        assert str(place) in str(caught.value)
        assert len(str(caught.value).splitlines()) == 1


def full_store(path: Path) -> bytes:
    """The bytes of a closed store of many pages in which every table and index has rows."""
    with new_store(path, jobs=2000) as store:
        for job in range(1, 501):
            claimed(store)
            store.save(job, 1, b"x" * 100)
            store.record_key(job, 1, 0)
    return path.read_bytes()


def write_header(path: Path, at: int, value: int) -> None:
    data = bytearray(full_store(path))
    data[at : at + 4] = value.to_bytes(4)
    path.write_bytes(data)


def foreign(path: Path, journal: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA journal_mode = {journal}")
    connection.execute("CREATE TABLE jobs (id INTEGER PRIMARY KEY, state TEXT)")
    connection.execute("INSERT INTO jobs VALUES (1, 'queued')")
    connection.commit()
    connection.close()


def noise(path: Path, seed: int) -> None:
    """Keep the first page, with its header, and destroy a stretch of those behind it."""
    data = full_store(path)
    draw = random.Random(seed)  # noqa: S311  # reproducible, not secret
    pages = len(data) // PAGE_BYTES
    first = draw.randrange(1, pages - 4)
    last = draw.randrange(first + 1, pages)
    path.write_bytes(
        data[: first * PAGE_BYTES] + draw.randbytes((last - first) * PAGE_BYTES) + data[last * PAGE_BYTES :]
    )


NO_STORES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "a text": (lambda path: path.write_text("Dear diary\n" * 100), "is not a durtui store"),
    "a short text": (lambda path: path.write_text("hello"), "is not a durtui store"),
    "zeros": (lambda path: path.write_bytes(bytes(20_000)), "is not a durtui store"),
    "a foreign database": (lambda path: foreign(path, "delete"), "is not a durtui store"),
    "a foreign database in WAL mode": (lambda path: foreign(path, "wal"), "is not a durtui store"),
    "the magic of SQLite and no more": (lambda path: path.write_bytes(b"SQLite format 3\0"), "is not a durtui store"),
    "a newer schema": (lambda path: write_header(path, 60, SCHEMA_VERSION + 1), "was made by a newer durtui"),
    "an older schema": (lambda path: write_header(path, 60, SCHEMA_VERSION - 1), "was made by an older durtui"),
    "another application's": (lambda path: write_header(path, 68, APPLICATION_ID + 1), "is not a durtui store"),
    "a store cut at a page": (lambda path: path.write_bytes(full_store(path)[: 5 * PAGE_BYTES]), "is corrupt"),
    "a store cut in a page": (lambda path: path.write_bytes(full_store(path)[:-1000]), "is corrupt"),
    "a store cut in its first page": (lambda path: path.write_bytes(full_store(path)[:2000]), "is corrupt|is not a"),
    **{f"a store with noise in it (seed {seed})": (partial(noise, seed=seed), "is corrupt") for seed in range(8)},
}


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("kind", NO_STORES)
def test_what_is_no_sound_store_is_refused_in_one_line_and_left_as_it_is(path: Path, kind: str) -> None:
    make, reason = NO_STORES[kind]
    make(path)
    before = digest(path)
    with pytest.raises(StoreError, match=reason) as caught:
        Store.open(path)
    assert digest(path) == before
    assert str(path) in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1, str(caught.value)


def test_what_a_file_is_not_is_damage_and_another_version_is_none(path: Path) -> None:
    diary = path.with_name("diary")
    diary.write_text("Dear diary")
    with pytest.raises(StoreDamaged):
        check(diary)
    write_header(path, 60, SCHEMA_VERSION + 1)
    with pytest.raises(StoreError) as caught:
        check(path)
    assert not isinstance(caught.value, Damaged)


def alter(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = delete")  # no log beside the file, whose bytes are then all there is
    connection.executescript(statement)
    connection.close()


STRANGE_SCHEMAS = {
    "a table more": "CREATE TABLE loot (x)",
    "a trigger": "CREATE TRIGGER t AFTER UPDATE ON jobs BEGIN DELETE FROM checkpoints; END",
    "a view": "CREATE VIEW v AS SELECT 1",
    "an index more": "CREATE INDEX i ON jobs (state)",
    "a table less": "DROP TABLE effect_keys",
    "an index less": "DROP INDEX queue",
    "a column more": "ALTER TABLE jobs ADD COLUMN note TEXT",
    "a view in a table's place": "DROP TABLE effect_keys; CREATE VIEW effect_keys AS SELECT 1 AS id, 2 AS attempt",
    "a rule less": (
        "PRAGMA writable_schema = on;"
        "UPDATE sqlite_schema SET sql = replace(sql, ') STRICT', ')') WHERE name = 'checkpoints'"
    ),
}


@pytest.mark.parametrize("kind", STRANGE_SCHEMAS)
def test_a_strangers_store_with_other_tables_than_ours_is_refused_and_left_as_it_is(path: Path, kind: str) -> None:
    new_store(path, jobs=3).close()
    alter(path, "SELECT 1")
    check(path, from_a_stranger=True)
    alter(path, STRANGE_SCHEMAS[kind])
    before = digest(path)
    with pytest.raises(StoreDamaged, match="has other tables than a store of durtui's; it is left as it is") as caught:
        check(path, from_a_stranger=True)
    assert str(path) in str(caught.value)
    assert digest(path) == before


def test_a_strangers_store_whose_index_is_not_that_of_its_table_is_refused(path: Path) -> None:
    """Every page is well formed, so a quick check passes; and a claim would find no job though three are queued."""
    new_store(path, jobs=3).close()
    alter(path, "DROP INDEX queue; CREATE INDEX queue ON jobs (ticket) WHERE state = 'finished'")
    ours = "sql = replace(sql, 'finished', 'queued') WHERE name = 'queue'"
    alter(path, f"PRAGMA writable_schema = on; UPDATE sqlite_schema SET {ours}")  # noqa: S608  # our words
    check(path)
    with pytest.raises(StoreDamaged, match="is corrupt"):
        check(path, from_a_stranger=True)


def test_a_store_with_its_every_table_full_is_sound_to_a_stranger_too(path: Path) -> None:
    full_store(path)
    check(path, from_a_stranger=True)


@pytest.mark.parametrize("schema", [SCHEMA_VERSION - 1, SCHEMA_VERSION + 1])
def test_another_schema_is_named_beside_ours(path: Path, schema: int) -> None:
    write_header(path, 60, schema)
    with pytest.raises(StoreError, match=rf"\(schema {schema}, this one reads {SCHEMA_VERSION}\)"):
        Store.open(path)


def test_a_store_that_another_process_has_for_itself_is_named_as_locked(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = """
        import sys
        from durcore.store import Store
        with Store.create(sys.argv[1], locking="exclusive") as store:
            store.enqueue(1, 3)
            print("ready", flush=True)
            input()
            store.finish(1)
    """
    monkeypatch.setattr(database, "BUSY_TIMEOUT_MS", 50)
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "ready\n"
        with pytest.raises(StoreError, match=r"is locked by another process; close it there$"):
            Store.open(path)
        holder.communicate("\n")
    assert holder.returncode == 0
    with Store.open(path) as store:
        assert store.count_states() == {"queued": 2, "finished": 1}


def test_a_person_can_look_into_a_live_store_and_change_nothing(path: Path) -> None:
    with new_store(path, jobs=2) as store:
        claimed(store)
        store.save(1, 1, b"one")
        query = "SELECT job, step, length(output) FROM checkpoints"
        seen = subprocess.run(
            [sys.executable, "-c", LOOK, str(path), query], capture_output=True, text=True, check=True
        )
        assert seen.stdout == "[(1, 1, 3)]\n"
        store.finish(1)
    assert Books.read(path).jobs == {1: ("finished", 1), 2: ("queued", 0)}


@pytest.mark.parametrize(("setting", "number"), [("off", 0), ("normal", 1), ("full", 2)])
def test_a_store_is_in_wal_mode_with_the_setting_that_was_asked_for(path: Path, setting: Any, number: int) -> None:
    with Store.create(path, synchronous=setting) as store:
        assert store._connection.pragma("journal_mode") == "wal"
        assert store._connection.pragma("synchronous") == number


# The room that is asked for


@pytest.mark.parametrize("output_bytes", [0, 16, 500, 1000, 1400, 2100, 3000, 4030, 5000, 9000, 20_000])
@pytest.mark.parametrize("design", [CHECKPOINT, CHECKPOINT_IDEMPOTENT], ids=lambda design: design.name)
def test_a_store_takes_no_more_room_than_was_estimated(path: Path, output_bytes: int, design: Any) -> None:
    jobs = 60 if output_bytes > 500 else 400
    scenario = Scenario(jobs=jobs, steps=10, output_bytes=output_bytes)
    with new_store(path, jobs=jobs) as store:
        while claim := store.claim():
            for step in range(1, 11):
                store.save(claim.job, step, bytes(output_bytes))
            if design.guard == "key":
                store.record_key(claim.job, 6, 0)
            if claim.delivery == 1 and claim.job % 3 == 0:
                store.dead_letter(claim.job)
            else:
                store.finish(claim.job)
    empty_tables = 10 * PAGE_BYTES  # the part that does not grow with the jobs
    estimated = bytes_needed(scenario, design) - WAL_BYTES - ledger_bytes(jobs, 10)
    assert path.stat().st_size <= estimated + empty_tables


# The whole store against a plain model of it


class StoreMachine(RuleBasedStateMachine):
    """Random transitions, made on a store and on the books, with the store closed and opened again now and then."""

    directory: Path
    count = 0

    @initialize(jobs=st.integers(1, 6))
    def fill(self, jobs: int) -> None:
        StoreMachine.count += 1
        self.path = self.directory / f"{StoreMachine.count}.db"
        self.store = new_store(self.path, jobs=jobs)
        self.books = Books()
        self.books.do("enqueue", jobs)

    def running(self) -> list[int]:
        return [job for job, (state, _) in self.books.jobs.items() if state == "running"]

    def saved(self, job: int) -> int:
        return max((step for other, step in self.books.checkpoints if other == job), default=0)

    @rule()
    def claim(self) -> None:
        head = self.books.queue[:1]
        self.books.do("claim")
        assert self.store.claim() == (Claim(head[0], self.books.jobs[head[0]][1]) if head else None)

    @precondition(lambda self: bool(self.running()))
    @rule(data=st.data(), way=st.sampled_from(["redeliver", "redeliver", "redeliver", "finish", "lose", "dead_letter"]))
    def end_delivery(self, data: st.DataObject, way: str) -> None:
        job = data.draw(st.sampled_from(self.running()))
        self.books.do(way, job)
        getattr(self.store, way)(job)

    @precondition(lambda self: bool(self.running()))
    @rule(data=st.data())
    def save(self, data: st.DataObject) -> None:
        job = data.draw(st.sampled_from(self.running()))
        step = self.saved(job) + 1
        self.books.do("save", job, step)
        self.store.save(job, step, b"%d of %d" % (step, job))

    @precondition(lambda self: bool(self.running()))
    @rule(data=st.data(), step=st.integers(1, 3), attempt=st.integers(0, 9))
    def record_key(self, data: st.DataObject, step: int, attempt: int) -> None:
        job = data.draw(st.sampled_from(self.running()))
        new = (job, step) not in self.books.keys
        self.books.do("key", job, step, attempt)
        assert self.store.record_key(job, step, attempt) is new

    @rule()
    def open_again(self) -> None:
        self.store.close()
        self.store = Store.open(self.path)

    @invariant()
    def the_counts_are_the_books(self) -> None:
        if not hasattr(self, "store"):
            return
        states = [state for state, _ in self.books.jobs.values()]
        assert self.store.count_states() == {state: states.count(state) for state in set(states)}
        ended = [deliveries - (state != "queued") for state, deliveries in self.books.jobs.values() if deliveries]
        again = [deliveries for _, deliveries in self.books.jobs.values() if deliveries > 1]
        assert self.store.count_redeliveries() == (sum(ended), len(again))
        assert self.store.count_checkpoints() == len(self.books.checkpoints)
        under_way = [job for job, (state, _) in self.books.jobs.items() if state in ("queued", "running")]
        assert self.store.count_open_checkpoints() == sum(job in under_way for job, _ in self.books.checkpoints)
        assert list(self.store.traces(2)) == [
            Trace(job, state, deliveries, self.saved(job), self.saved(job), self.books.keys.get((job, 2)))
            for job, (state, deliveries) in sorted(self.books.jobs.items())
        ]
        for job in self.books.jobs:
            assert self.store.saved_steps(job) == self.saved(job)

    def teardown(self) -> None:
        if not hasattr(self, "store"):
            return
        for (job, step), output in self.books.checkpoints.items():
            assert self.store.output(job, step) == output
        self.store.close()
        assert Books.read(self.path) == self.books
        with Store.open(self.path) as store:
            order = []
            while claim := store.claim():
                order.append(claim.job)
        assert order == self.books.queue


def test_a_store_behaves_as_its_plain_model(tmp_path: Path) -> None:
    class Machine(StoreMachine):
        directory = tmp_path

    run_state_machine_as_test(Machine, settings=settings(max_examples=40, stateful_step_count=25, deadline=None))


def test_processes_that_open_one_new_store_together_all_get_it(path: Path) -> None:
    program = "import sys; from durcore.store import Store; Store.open(sys.argv[1]).named_job(sys.argv[2])"
    for round_ in range(4):
        fresh = path.with_name(f"together-{round_}.db")
        services = [subprocess.Popen([sys.executable, "-c", program, str(fresh), f"job-{n}"]) for n in range(4)]
        assert [service.wait(30) for service in services] == [0] * 4
        with Store.open(fresh) as store:
            assert store.count_states() == {"queued": 4}
