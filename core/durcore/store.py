"""Store: queue, checkpoints and effect keys of one lane in SQLite. All SQL on its tables stands here.

It holds what a design remembers, never what the world saw: calls and emails stand in the ledger. It takes no decision:
`Policy.ending` says what becomes of a job.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import apsw

from durcore.database import check, connect, explained, is_there, make
from durcore.errors import StoreError
from durcore.scenario import Locking, Synchronous


class Claim(NamedTuple):
    """A delivery under way: the job and the ordinal of its delivery, both from 1."""

    job: int
    delivery: int


class Trace(NamedTuple):
    """What one job has left in a store: where it stands, its checkpoints, and the attempt that recorded its key."""

    job: int
    state: str
    deliveries: int
    checkpoints: int
    last_checkpoint: int  # the step of the last one, 0 where there is none
    key: int | None


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
            if not is_there(path):
                make(path)  # or find that another process has made it meanwhile
            check(path)
            return cls(connect(path, "normal", "normal"), path)

    @classmethod
    def create(
        cls, path: str | os.PathLike[str], *, synchronous: Synchronous = "normal", locking: Locking = "normal"
    ) -> Self:
        """Make a new store at `path`. Raises StoreError where that cannot be, or where a store is there already."""
        path = Path(path)
        with explained(path):
            if is_there(path) or not make(path):
                raise StoreError(f"{path} exists already")
            return cls(connect(path, synchronous, locking), path)

    @classmethod
    def reopen(cls, path: Path, *, synchronous: Synchronous, locking: Locking) -> Self:
        """Open a store that was made and checked before, for a worker's next life. Raises StoreError."""
        with explained(path):
            return cls(connect(path, synchronous, locking), path)

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

    def running(self, job: int) -> Claim | None:
        """The delivery that is under way, of `job` if there is one: it is looked at first, since that costs nothing."""
        columns = "SELECT id, deliveries FROM jobs WHERE state = 'running'"
        rows = self._rows(f"{columns} AND id = ?", (job,)) or self._rows(f"{columns} LIMIT 1")
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

    def undo(self, job: int, step: int, attempt: int) -> None:
        """Take back what the attempt with this number at a step has written: its checkpoint, the key if it was new."""
        with self._connection:
            self._execute("DELETE FROM checkpoints WHERE id = ?", (job << 8 | step,))
            self._execute("DELETE FROM effect_keys WHERE id = ? AND attempt = ?", (job << 8 | step, attempt))

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

    # Counting and looking through

    def job_numbers(self) -> tuple[int, int]:
        """The lowest and the highest number of a job that was put into the queue; 1 and 0 where none was."""
        ((first, last),) = self._rows("SELECT coalesce(min(id), 1), coalesce(max(id), 0) FROM jobs")
        return int(first), int(last)

    def count_states(self) -> dict[str, int]:
        """How many jobs are in each state that any job is in."""
        return dict(self._rows("SELECT state, count(*) FROM jobs GROUP BY state"))

    def count_redeliveries(self) -> tuple[int, int]:
        """Redeliveries over all jobs, those that wait for their claim among them, and jobs delivered more than once."""
        ((redeliveries, jobs),) = self._rows(
            "SELECT coalesce(sum(deliveries - (state <> 'queued')), 0), coalesce(sum(deliveries > 1), 0)"
            " FROM jobs WHERE deliveries > 0"
        )
        return redeliveries, jobs

    def count_checkpoints(self) -> int:
        """Checkpoints that are there."""
        ((count,),) = self._rows("SELECT count(*) FROM checkpoints")
        return int(count)

    def count_open_checkpoints(self) -> int:
        """Checkpoints of jobs that have not ended."""
        ((count,),) = self._rows(
            "SELECT coalesce(sum("
            "(SELECT count(*) FROM checkpoints WHERE id BETWEEN jobs.id << 8 AND jobs.id << 8 | 255)), 0)"
            " FROM jobs WHERE state IN ('queued', 'running')"
        )
        return int(count)

    def count_wrong_outputs(self, output: bytes) -> int:
        """Checkpoints that hold anything but `output`."""
        ((count,),) = self._rows("SELECT count(*) FROM checkpoints WHERE output <> ?", (output,))
        return int(count)

    def traces(self, step: int) -> Iterator[Trace]:
        """What every job has left in here, by number. Exhaust it before the next call to the store.

        `step` is the one whose effect key is told, from 1.
        """
        rows = self._execute(
            "SELECT id, state, deliveries,"
            " (SELECT count(*) FROM checkpoints WHERE id BETWEEN jobs.id << 8 AND jobs.id << 8 | 255),"
            " coalesce((SELECT max(id) FROM checkpoints"
            " WHERE id BETWEEN jobs.id << 8 AND jobs.id << 8 | 255) & 255, 0),"
            " (SELECT attempt FROM effect_keys WHERE id = jobs.id << 8 | ?)"
            " FROM jobs ORDER BY id",
            (step,),
        )
        return (Trace(*row) for row in rows)

    def jobs_in(self, *states: str) -> Iterator[int]:
        """The numbers of the jobs in any of `states`, in order. Exhaust it before the next call to the store."""
        marks = ", ".join("?" * len(states))
        rows = self._execute(f"SELECT id FROM jobs WHERE state IN ({marks}) ORDER BY id", states)  # noqa: S608  # marks
        return (job for (job,) in rows)
