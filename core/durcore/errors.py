"""Every error a person can meet, one base class; a subclass where the caller would act differently."""

import errno
from typing import ClassVar

SHOWN_MAX = 60
WRITABLE = "give yourself the right to write it"
WHAT_TO_DO = {  # about a file that the system does not let us write
    errno.ENOSPC: "the disk is full; free some room",
    errno.EDQUOT: "your quota is used up; free some room",
    errno.EFBIG: "it would be larger than a file may be here; raise that limit (ulimit -f)",
    errno.EIO: "its disk is failing; move the run to another",
    errno.EROFS: "its disk is read-only; have it mounted to be written",
    errno.EACCES: f"permission denied; {WRITABLE}",
    errno.EPERM: f"it is not permitted; {WRITABLE}",
}
FAILS_BY_ITSELF = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})  # nobody asked for the wrong thing


def printable(text: str) -> str:
    """`text` in one line, its control characters spelled out."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def shown(value: object) -> str:
    """A value as an error message quotes it: one short line that cannot steer a terminal, whatever was written."""
    text = printable(str(value)[: 2 * SHOWN_MAX])
    return text if len(text) <= SHOWN_MAX else text[: SHOWN_MAX - 3] + "..."


def told(error: BaseException) -> str:
    """An error as it is told: its text where it was written for a person, and else its kind or its file as well."""
    if isinstance(error, OSError) and error.errno is not None:
        return f"{error.filename or 'a file'} cannot be read or written: {advised(error)}"
    return str(error) if isinstance(error, DurtuiError) else f"{type(error).__name__}: {error}"


def advised(error: OSError) -> str:
    """Why the system has refused a file, and what can be done about it."""
    return WHAT_TO_DO.get(error.errno or 0) or error.strerror or str(error)


class DurtuiError(Exception):
    """Something a person should read. Its text is one line that names what is wrong and what would be right."""

    exit_code: ClassVar[int] = 1


class Mistake(DurtuiError):
    """What was asked cannot be done as asked: the person mends the request."""

    exit_code: ClassVar[int] = 2


class InvalidScenario(Mistake, ValueError):
    """A field of a scenario is out of its range, or two of them contradict each other."""


class NotYet(InvalidScenario):
    """A value that the contract knows and this version does not run."""


class StoreError(DurtuiError):
    """A store that cannot be used: not one, newer than this program, corrupt, locked, or out of room."""


class LedgerError(DurtuiError):
    """A ledger that cannot be used: of another run, cut short, or without room."""


class Damaged(DurtuiError):
    """A file of a run was destroyed, so what it held is not to be trusted. Its lane can be run again from its seed."""


class StoreDamaged(StoreError, Damaged):
    """A store that is not one, or not a sound one."""


class LedgerDamaged(LedgerError, Damaged):
    """A ledger that is not one, not whole, or not what the fault plan says it must be."""


class InUse(DurtuiError):
    """A run that another durtui has under way."""


class UnstorableOutput(DurtuiError, TypeError):
    """A step returned something that JSON cannot hold, so no later delivery could resume from it."""


class LaneFailed(DurtuiError):
    """A lane ended before its work did."""


class LaneDamaged(LaneFailed, Damaged):
    """A lane that cannot go on, since a file of it was destroyed."""


class Contradiction(DurtuiError):
    """Two countings of the same run differ. This is a fault of durtui's, never of its user."""


class NotVerified(DurtuiError):
    """A snapshot whose figures are not what its scenario gives."""


class Crash(BaseException):
    """A worker's drawn death.

    Not an `Exception`: no `except Exception` in a step or a library may survive it, as none would survive SIGKILL.
    """
