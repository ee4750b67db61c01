"""Serve: `durtui serve`, the app in a browser of this machine. What the web needs is loaded only when asked for."""

from __future__ import annotations

import dataclasses
import errno
import socket
import sys
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App

from durcore.errors import DurtuiError, Mistake, advised
from durcore.scenario import PARAMETERS, SEED
from durcore.scenario import Parameter as Field
from durtui.flags import Config, Designs, ScenarioWords, Seed, flag_of, read_designs, read_scenario, read_whole

HOST = "127.0.0.1"  # nobody but this machine: a session is a program that runs with its owner's rights
PORT = Field(
    name="port", kind=int, default=8717, meaning="port of the loopback address, 0 for any free one", low=0, high=65535
)
Port = Annotated[str | None, flag_of(PORT, "Run")]


def register(app: App) -> None:
    """Add `durtui serve` to the command."""
    app.command(serve)


def serve(
    *,
    scenario: ScenarioWords = None,
    seed: Seed = None,
    design: Designs = None,
    config: Config = None,
    port: Port = None,
) -> None:
    """Open the app in a browser, on the loopback address; Ctrl-C ends it, and every session with it."""
    read_scenario(scenario, config)  # a mistake is told here, not in the browser
    read_whole(SEED, seed)
    read_designs(design)
    words = [sys.executable, "-m", "durtui", *_words(scenario, seed, design, config)]
    with _listen(read_whole(PORT, port)) as listening:
        from durtui.web import serve_app  # aiohttp costs a fifth of a second that no other command need pay

        serve_app(words, listening)


def _words(scenario: Any, seed: str | None, designs: list[str] | None, config: Path | None) -> list[str]:
    """The flags that were typed, to be handed on to each session."""
    typed = {} if scenario is None else dataclasses.asdict(scenario)
    words = [f"{PARAMETERS[name].flag}={text}" for name, text in typed.items() if text is not None]
    words += [f"--seed={seed}"] if seed is not None else []
    words += [f"--design={name}" for name in designs or ()]
    return words + ([f"--config={config}"] if config is not None else [])


def _listen(port: int) -> socket.socket:
    """A socket on the loopback address. Raises Mistake where the port is taken or not ours to take."""
    listening = socket.socket()
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # not kept from us by a server that has ended
        listening.bind((HOST, port))
        listening.listen()
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            raise Mistake(f"port(={port}) is taken; name another with --port, or 0 for any free one") from None
        if error.errno == errno.EACCES:
            raise Mistake(f"port(={port}) may be taken by the system only; name one from 1024 on") from None
        raise DurtuiError(f"port(={port}) cannot be listened to: {advised(error)}") from error
    return listening
