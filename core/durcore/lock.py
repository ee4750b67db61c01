"""Lock: who has a directory under way. The system lets go of it when its holders are gone, however they went."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

from durcore.errors import InUse

LOCK_FILE = "lock"
RETRY_S = 0.01
OWNER_ONLY = 0o600


class Lock:
    """A directory held for this process and those that it forks. A process that is started anew does not hold it."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    @classmethod
    def hold(cls, directory: Path, *, patience_s: float = 0.0) -> Self:
        """Hold `directory`, waiting up to `patience_s` for whoever is about to let go. Raises InUse, and OSError."""
        until = time.monotonic() + patience_s
        fd = os.open(directory / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, OWNER_ONLY)
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() < until:
                    time.sleep(RETRY_S)
                    continue
                holder = os.pread(fd, 20, 0).decode("ascii", "replace")
                os.close(fd)
                who = f" (process {holder})" if holder.isdigit() else ""
                raise InUse(f"{directory} is in use by another durtui{who}; wait until it is done, or end it") from None
            with suppress(OSError):  # a full disk has no room for our number, which is only told to people
                os.truncate(fd, 0)
                os.pwrite(fd, str(os.getpid()).encode(), 0)
            return cls(fd)

    @classmethod
    def is_held(cls, directory: Path) -> bool:
        """Whether anybody holds `directory` now, as far as can be seen without touching it."""
        try:
            fd = os.open(directory / LOCK_FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return False  # nobody has a lock that is not there, or that only its owner may read
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(fd)
        return False

    def release(self) -> None:
        """Let go. Processes that were forked meanwhile hold it still."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
