"""Every error a person can meet, one base class; a subclass where the caller would act differently."""

from typing import ClassVar

SHOWN_MAX = 60


def printable(text: str) -> str:
    """`text` in one line, its control characters spelled out."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def shown(value: object) -> str:
    """A value as an error message quotes it: one short line that cannot steer a terminal, whatever was written."""
    text = printable(str(value)[: 2 * SHOWN_MAX])
    return text if len(text) <= SHOWN_MAX else text[: SHOWN_MAX - 3] + "..."


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


class UnstorableOutput(DurtuiError, TypeError):
    """A step returned something that JSON cannot hold, so no later delivery could resume from it."""


class LaneFailed(DurtuiError):
    """A lane ended before its work did."""


class Contradiction(DurtuiError):
    """Two countings of the same run differ. This is a fault of durtui's, never of its user."""


class NotVerified(DurtuiError):
    """A snapshot whose figures are not what its scenario gives."""


class Crash(BaseException):
    """A worker's drawn death.

    Not an `Exception`: no `except Exception` in a step or a library may survive it, as none would survive SIGKILL.
    """
