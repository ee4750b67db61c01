"""What to do when the terminal goes away. Textual's input thread would spin on a closed terminal for ever.

A signal asks the app to exit, which restores the terminal. But a terminal that vanished needs no restoring, may have
sent its signal to nobody (nohup), and may leave the app's loop writing into nothing: so a thread of its own polls the
terminal, and ends the process when it hangs up.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable

POLL_MS = 250
CLEAN_UP_WITHIN_S = 2.0
EXIT_CODE = 129  # as if SIGHUP had ended the process


def watch_terminal(fd: int, clean_up: Callable[[], None]) -> None:
    """End this process soon after the terminal `fd` hangs up, giving `clean_up` two seconds before."""
    threading.Thread(target=_watch, args=(fd, clean_up), name="watch-terminal", daemon=True).start()


def _watch(fd: int, clean_up: Callable[[], None]) -> None:
    poll = select.poll()
    poll.register(fd, 0)  # a hang-up is told unasked
    while not poll.poll(POLL_MS):
        pass
    cleaner = threading.Thread(target=clean_up, daemon=True)
    cleaner.start()
    cleaner.join(CLEAN_UP_WITHIN_S)
    os._exit(EXIT_CODE)
