"""A SQLite file that is a durtui store: made, opened, checked, and what goes wrong with it explained. No rows in here.

What its tables mean is store.py's to say; these two modules alone talk to SQLite.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.resources import files
from pathlib import Path

import apsw

from durcore.errors import WHAT_TO_DO, WRITABLE, StoreDamaged, StoreError, advised
from durcore.scenario import Locking, Synchronous

APPLICATION_ID = int.from_bytes(b"durt")  # in the file's header, so that a foreign database is told from ours
SCHEMA_VERSION = 1
BUSY_TIMEOUT_MS = 5000
RETRY_MS = 20
OWNER_ONLY = 0o600


def connect(path: Path, synchronous: Synchronous, locking: Locking) -> apsw.Connection:
    """A connection in WAL mode. The locking mode comes first: exclusive then keeps the WAL's index in memory."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    connection.transaction_mode = "IMMEDIATE"  # a transaction that will write waits for its turn before it reads
    connection.pragma("locking_mode", locking)
    if (mode := _patiently(lambda: connection.pragma("journal_mode", "wal"))) != "wal":
        raise StoreError(f"{path} cannot have a write-ahead log where it is (SQLite says {mode})")
    connection.pragma("synchronous", synchronous)
    return connection


def is_there(path: Path) -> bool:
    """Whether anything is at `path`; an empty file is what a process left that was killed before it made a store."""
    return path.exists() and path.stat().st_size > 0


def make(path: Path) -> bool:
    """Make an empty store at `path`, in one transaction; False where another process has made one meanwhile.

    Before WAL, so that the file is a store or nothing from its first moment. SQLite gives its log the rights of the
    file, so nobody but the owner reads either.
    """
    with suppress(FileExistsError):  # it is empty, or was made meanwhile: SQLite tells which
        os.close(os.open(path, os.O_CREAT | os.O_EXCL, OWNER_ONLY))
    connection = apsw.Connection(str(path))
    try:
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        connection.transaction_mode = "IMMEDIATE"
        with connection:
            if connection.pragma("application_id") == APPLICATION_ID:
                return False
            connection.execute(_schema())
            connection.pragma("application_id", APPLICATION_ID)
            connection.pragma("user_version", SCHEMA_VERSION)
        return True
    finally:
        connection.close()


def check(path: Path, *, from_a_stranger: bool = False) -> None:
    """Raise StoreError unless `path` is a sound store of this version. Reads only.

    A store that is `from_a_stranger`, as any run directory may be, has to have our tables and nothing else (a trigger
    or a view could act when we write), and its indexes are held against their tables.

    It reads by SQLite alone: a process that closes a file of its own gives away every POSIX lock that it has on that
    file, those of an open store included, and acknowledged rows could then be lost.
    """
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        connection.pragma("trusted_schema", "off")
        if connection.pragma("application_id") != APPLICATION_ID:
            raise StoreDamaged(f"{path} is not a durtui store; it is left as it is")
        version = connection.pragma("user_version")
        if version != SCHEMA_VERSION:
            age = "a newer" if version > SCHEMA_VERSION else "an older"
            kind = StoreDamaged if from_a_stranger else StoreError  # a run says in run.json which durtui made it
            raise kind(f"{path} was made by {age} durtui (schema {version}, this one reads {SCHEMA_VERSION})")
        if from_a_stranger and _objects(connection) != _our_objects():
            raise StoreDamaged(f"{path} has other tables than a store of durtui's; it is left as it is")
        pragma = "integrity_check(1)" if from_a_stranger else "quick_check(1)"
        ((verdict,),) = connection.execute(f"PRAGMA {pragma}").fetchall()
        if verdict != "ok":
            raise StoreDamaged(f"{path} is corrupt ({' '.join(str(verdict).split())}); it is left as it is")
    except apsw.NotADBError:
        raise StoreDamaged(f"{path} is not a durtui store; it is left as it is") from None
    except apsw.SQLError as error:  # a header that promises what no SQLite can read
        raise StoreDamaged(f"{path} is corrupt ({error}); it is left as it is") from None
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
        raise StoreDamaged(f"{path} is corrupt ({error}); it is left as it is") from error
    except apsw.FullError as error:
        raise StoreError(f"{path}: the disk is full; free some room") from error
    except (apsw.BusyError, apsw.LockedError) as error:
        raise StoreError(f"{path} is locked by another process; close it there") from error
    except apsw.ReadOnlyError as error:
        raise StoreError(f"{path} cannot be written: it is read-only; {WRITABLE}") from error
    except (apsw.IOError, apsw.CantOpenError) as error:
        if not path.exists():
            raise StoreDamaged(f"{path} was deleted, or moved, while it was in use") from error
        raise StoreError(f"{path} cannot be read or written ({error}){_hint(path)}") from error
    except OSError as error:
        raise StoreError(f"{path} cannot be used: {advised(error)}") from error
    except apsw.Error as error:
        raise StoreError(f"{path} cannot be used: {error}") from error


def _hint(path: Path) -> str:
    """What may stand behind an input or output that failed, where it can be told."""
    if not os.access(path, os.R_OK | os.W_OK):  # asked, not tried: see `check` on opening and closing the file
        return f": {WHAT_TO_DO[errno.EACCES]}"
    return "; see whether its disk is full or failing, and the largest file that may be written (ulimit -f)"


def _patiently(act: Callable[[], object]) -> object:
    """Do what SQLite refuses at once while another process is at the file, as often as the busy timeout allows."""
    until = time.monotonic() + BUSY_TIMEOUT_MS / 1000
    while time.monotonic() < until:  # no count of tries: some are refused only when SQLite has waited itself
        try:
            return act()
        except apsw.BusyError:
            time.sleep(RETRY_MS / 1000)
    return act()


def _schema() -> str:
    return files("durcore").joinpath("schema.sql").read_text()


def _our_objects() -> frozenset[tuple[str, str, str]]:
    connection = apsw.Connection(":memory:")
    try:
        connection.execute(_schema())
        return _objects(connection)
    finally:
        connection.close()


def _objects(connection: apsw.Connection) -> frozenset[tuple[str, str, str]]:
    rows = connection.execute("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL")
    return frozenset((str(kind), str(name), str(sql)) for kind, name, sql in rows)
