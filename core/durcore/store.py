"""Store: queue, checkpoints and effect keys of one lane in SQLite. The only module that talks to SQLite.

It holds what a design remembers, never what the world saw: calls and emails stand in the ledger. It takes no decision:
`Policy.ending` says what becomes of a job.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import apsw

from durcore.errors import StoreError
from durcore.scenario import Locking, Synchronous

APPLICATION_ID = int.from_bytes(b"durt")  # in the file's header, so that a foreign database is told from ours
SCHEMA_VERSION = 1
BUSY_TIMEOUT_MS = 5000
RETRY_MS = 20


class Claim(NamedTuple):
    """A delivery under way: the job and the ordinal of its delivery, both from 1."""

    job: int
    delivery: int


class Store:
    """One open store. Each method that changes something is one transaction, done when it returns.

    Made by `Store.open` or `Store.create`; a context manager that closes itself. One process writes at a time.
    """

    def __init__(self, connection: apsw.Connection, path: Path) -> None:
        self.path = path
        self._connection = connection
        self._execute = connection.cursor().execute

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Open the store at `path`, or make it where nothing is. Raises StoreError; a foreign file is left alone."""
        path = Path(path)
        with explained(path):
            if not _is_there(path):
                _make(path)  # or find that another process has made it meanwhile
            _check(path)
            return cls(_connect(path, "normal", "normal"), path)

    @classmethod
    def create(
        cls, path: str | os.PathLike[str], *, synchronous: Synchronous = "normal", locking: Locking = "normal"
    ) -> Self:
        """Make a new store at `path`. Raises StoreError where that cannot be, or where a store is there already."""
        path = Path(path)
        with explained(path):
            if _is_there(path) or not _make(path):
                raise StoreError(f"{path} exists already")
            return cls(_connect(path, synchronous, locking), path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; what was done stays done."""
        self._connection.close()

    def _rows(self, sql: str, bindings: tuple[int | str | bytes, ...] = ()) -> list[Any]:
        """Every row of a statement, read to its end: that commits it."""
        return self._execute(sql, bindings).fetchall()

    # The queue

    def enqueue(self, first: int, last: int) -> None:
        """Put the jobs numbered `first` to `last` at the back of an untouched queue, in one transaction."""
        self._execute(
            "WITH RECURSIVE numbers (n) AS (VALUES (?) UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)"
            " INSERT INTO jobs (id, ticket) SELECT n, n FROM numbers",
            (first, last),
        )

    def claim(self) -> Claim | None:
        """Take the job at the head of the queue: it is running, with one delivery more. None: nothing is queued."""
        rows = self._rows(
            "UPDATE jobs SET state = 'running', deliveries = deliveries + 1"
            " WHERE id = (SELECT id FROM jobs WHERE state = 'queued' ORDER BY ticket LIMIT 1)"
            " RETURNING id, deliveries"
        )
        return Claim(*rows[0]) if rows else None

    def finish(self, job: int) -> None:
        """End a job that has every step done."""
        self._execute("UPDATE jobs SET state = 'finished' WHERE id = ?", (job,))

    def lose(self, job: int) -> None:
        """End a job that has no delivery left and no checkpoint to show for it."""
        self._execute("UPDATE jobs SET state = 'lost' WHERE id = ?", (job,))

    def dead_letter(self, job: int) -> None:
        """Park a job that has no delivery left; its checkpoints stay."""
        self._execute("UPDATE jobs SET state = 'dead_lettered' WHERE id = ?", (job,))

    def redeliver(self, job: int) -> None:
        """Put a job back into the queue, behind every other."""
        self._execute(
            "UPDATE jobs SET state = 'queued', ticket ="
            " (SELECT coalesce(max(ticket), 0) + 1 FROM jobs WHERE state = 'queued') WHERE id = ?",
            (job,),
        )

    # Checkpoints and effect keys

    def saved_steps(self, job: int) -> int:
        """How many steps of `job` have a checkpoint: the number of its last one, since a job is linear."""
        first = job << 8
        ((last,),) = self._rows("SELECT max(id) FROM checkpoints WHERE id BETWEEN ? AND ?", (first, first | 255))
        return 0 if last is None else last & 255

    def save(self, job: int, step: int, output: bytes) -> None:
        """Write the checkpoint of a step, its output with it."""
        self._execute("INSERT INTO checkpoints (id, output) VALUES (?, ?)", (job << 8 | step, output))

    def output(self, job: int, step: int) -> bytes:
        """The output that the checkpoint of `step` holds. KeyError where there is none."""
        rows = self._rows("SELECT output FROM checkpoints WHERE id = ?", (job << 8 | step,))
        if not rows:
            raise KeyError((job, step))
        output: bytes = rows[0][0]
        return output

    def record_key(self, job: int, step: int, attempt: int) -> bool:
        """Record the idempotency key `job:step`. True: it is new. False: it was there, and nothing was written."""
        self._execute("INSERT OR IGNORE INTO effect_keys (id, attempt) VALUES (?, ?)", (job << 8 | step, attempt))
        return self._connection.changes() == 1

    # Jobs with a name, for run_job

    def named_job(self, name: str) -> int:
        """The number of the job called `name`; an unknown one is taken up, queued, with the next free number."""
        with self._connection:
            rows = self._rows("SELECT job FROM job_names WHERE name = ?", (name,))
            if not rows:
                rows = self._rows("INSERT INTO jobs (ticket) SELECT coalesce(max(id), 0) + 1 FROM jobs RETURNING id")
                self._execute("INSERT INTO job_names (name, job) VALUES (?, ?)", (name, rows[0][0]))
        return int(rows[0][0])

    def begin(self, job: int) -> Claim:
        """Claim one particular job, out of turn: it is running, with one delivery more."""
        ((delivery,),) = self._rows(
            "UPDATE jobs SET state = 'running', deliveries = deliveries + 1 WHERE id = ? RETURNING deliveries", (job,)
        )
        return Claim(job, delivery)

    def progress(self, job: int) -> tuple[str, int]:
        """What has become of `job`, in the words of the schema, and how often it was delivered."""
        ((state, deliveries),) = self._rows("SELECT state, deliveries FROM jobs WHERE id = ?", (job,))
        return state, deliveries

    # Counting, at a lane's end

    def count_states(self) -> dict[str, int]:
        """How many jobs are in each state that any job is in."""
        return dict(self._rows("SELECT state, count(*) FROM jobs GROUP BY state"))

    def count_redeliveries(self) -> tuple[int, int]:
        """Redeliveries over all jobs, and the jobs that were delivered more than once."""
        ((redeliveries, jobs),) = self._rows(
            "SELECT coalesce(sum(deliveries - 1), 0), count(*) FROM jobs WHERE deliveries > 1"
        )
        return redeliveries, jobs

    def count_checkpoints(self) -> int:
        """Checkpoints that are there."""
        ((count,),) = self._rows("SELECT count(*) FROM checkpoints")
        return int(count)

    def jobs_in(self, *states: str) -> Iterator[int]:
        """The numbers of the jobs in any of `states`, in order. Exhaust it before the next call to the store."""
        marks = ", ".join("?" * len(states))
        rows = self._execute(f"SELECT id FROM jobs WHERE state IN ({marks}) ORDER BY id", states)  # noqa: S608  # marks
        return (job for (job,) in rows)


def _connect(path: Path, synchronous: Synchronous, locking: Locking) -> apsw.Connection:
    """A connection in WAL mode. The locking mode comes first: exclusive then keeps the WAL's index in memory."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    connection.transaction_mode = "IMMEDIATE"  # a transaction that will write waits for its turn before it reads
    connection.pragma("locking_mode", locking)
    if (mode := _patiently(lambda: connection.pragma("journal_mode", "wal"))) != "wal":
        raise StoreError(f"{path} cannot have a write-ahead log where it is (SQLite says {mode})")
    connection.pragma("synchronous", synchronous)
    return connection


def _is_there(path: Path) -> bool:
    """Whether anything is at `path`; an empty file is what a process left that was killed before it made a store."""
    return path.exists() and path.stat().st_size > 0


def _make(path: Path) -> bool:
    """Make an empty store at `path`, in one transaction; False where another process has made one meanwhile.

    Before WAL, so that the file is a store or nothing from its first moment.
    """
    connection = apsw.Connection(str(path))
    try:
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        connection.transaction_mode = "IMMEDIATE"
        with connection:
            if connection.pragma("application_id") == APPLICATION_ID:
                return False
            connection.execute(files("durcore").joinpath("schema.sql").read_text())
            connection.pragma("application_id", APPLICATION_ID)
            connection.pragma("user_version", SCHEMA_VERSION)
        return True
    finally:
        connection.close()


def _patiently(act: Callable[[], object]) -> object:
    """Do what SQLite refuses at once while another process is at the file, as often as the busy timeout allows."""
    for _ in range(BUSY_TIMEOUT_MS // RETRY_MS):
        try:
            return act()
        except apsw.BusyError:
            time.sleep(RETRY_MS / 1000)
    return act()


def _check(path: Path) -> None:
    """Raise StoreError unless `path` is a sound store of this version. Reads only.

    It reads by SQLite alone: a process that closes a file of its own gives away every POSIX lock that it has on that
    file, those of an open store included, and acknowledged rows could then be lost.
    """
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        if connection.pragma("application_id") != APPLICATION_ID:
            raise StoreError(f"{path} is not a durtui store; it is left as it is")
        version = connection.pragma("user_version")
        if version != SCHEMA_VERSION:
            age = "a newer" if version > SCHEMA_VERSION else "an older"
            raise StoreError(f"{path} was made by {age} durtui (schema {version}, this one reads {SCHEMA_VERSION})")
        ((verdict,),) = connection.execute("PRAGMA quick_check(1)").fetchall()
        if verdict != "ok":
            raise StoreError(f"{path} is corrupt ({' '.join(str(verdict).split())}); it is left as it is")
    except apsw.NotADBError:
        raise StoreError(f"{path} is not a durtui store; it is left as it is") from None
    finally:
        connection.close()


def sqlite_version() -> str:
    """The version of the SQLite library in use."""
    return apsw.sqlite_lib_version()


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn what SQLite or the system says of the store at `path` into one line that a person can act on."""
    try:
        yield
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise StoreError(f"{path} is corrupt ({error}); it is left as it is") from error
    except apsw.FullError as error:
        raise StoreError(f"{path}: the disk is full; free some room and run again") from error
    except (apsw.BusyError, apsw.LockedError) as error:
        raise StoreError(f"{path} is locked by another process; close it there and run again") from error
    except (apsw.Error, OSError) as error:
        raise StoreError(f"{path} cannot be used: {error}") from error
