"""What to do when the terminal goes away. Textual's input thread would spin on a closed terminal for ever.

A signal asks the app to exit, which restores the terminal. But a terminal that vanished needs no restoring, may have
sent its signal to nobody (nohup), and may leave the app's loop writing into nothing: so a thread of its own polls the
terminal, and ends the process when it hangs up. And a terminal that has stalled takes no more output, on which an app
that was asked to exit would wait: so it is given a little time, and then ended.

In a browser the terminal is a pipe from the server. A killed server closes it, which is told as the same hang-up.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable

POLL_MS = 250
WITHIN_S = 2.0  # for an app to exit when asked, and again for the clean-up when it has not
HANGUP_CODE = 129  # as if SIGHUP had ended the process


def watch_terminal(fd: int, clean_up: Callable[[], None]) -> None:
    """End this process soon after the terminal `fd` hangs up, giving `clean_up` two seconds before."""

    def watch() -> None:
        poll = select.poll()
        poll.register(fd, 0)  # a hang-up is told unasked
        while not (events := poll.poll(POLL_MS)):
            pass
        if events[0][1] & (select.POLLHUP | select.POLLERR):  # not where a system cannot poll a terminal
            _end(clean_up, HANGUP_CODE)

    threading.Thread(target=watch, name="watch-terminal", daemon=True).start()


def insist(clean_up: Callable[[], None], code: int) -> None:
    """End this process with `code` unless it ends by itself within two seconds."""

    def wait() -> None:
        time.sleep(WITHIN_S)
        _end(clean_up, code)

    threading.Thread(target=wait, name="insist-on-exit", daemon=True).start()


def _end(clean_up: Callable[[], None], code: int) -> None:
    cleaner = threading.Thread(target=clean_up, daemon=True)
    cleaner.start()
    cleaner.join(WITHIN_S)
    os._exit(code)
