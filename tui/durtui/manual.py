"""Manual: the man page, made from the command's own declarations. No flag and no range is written in here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

from cyclopts import App

from durcore.errors import DurtuiError, Mistake
from durcore.scenario import PARAMETERS
from durtui.settings import ENVIRONMENT_PREFIX, FILE_NAME

NAME = "run designs of durable agent jobs side by side, on real SQLite, under the same faults"
SHARED = "Scenario"  # the group of flags that every command understands alike; told once
EXIT_CODES = {
    "0": "What was asked is done.",
    str(
        DurtuiError.exit_code
    ): "Figures that contradict each other, a snapshot that does not verify, a lane that failed,"
    " a disk that is full; something that durtui doctor says must be mended.",
    str(Mistake.exit_code): "A mistake in what was asked. One line names field, value and rule; nothing was started.",
    "130": "Interrupted, after saying how to resume. The app, ended by a signal: 128 and the signal's number.",
}
FILES = {
    FILE_NAME: "Settings, in the working directory: a key a parameter, as steps = 20.",
    f"~/.config/durtui/{FILE_NAME}": "The user's own, read where the first is not there"
    " (XDG_CONFIG_HOME; on macOS below ~/Library/Application Support).",
    "~/.local/state/durtui/runs": "Runs under way, and those kept since they were interrupted or failed"
    " (XDG_STATE_HOME; on macOS below ~/Library/Application Support).",
    "durtui-exports": "What the app exports, in the working directory, a folder an export.",
}
ENVIRONMENT = {
    "NO_COLOR": "Where it is set and not empty, the app is drawn in greys.",
    "COLORTERM": "truecolor or 24bit: the terminal has 16.7 million colours.",
    "TERM": "dumb or unset: the app does not open, and the table is printed.",
    "XDG_STATE_HOME": "Where the runs go.",
    "XDG_CONFIG_HOME": "Where the settings file is.",
}


def register(app: App) -> None:
    """Add `durtui man` to the command."""

    def man() -> None:
        """Print the man page of durtui, to be read by `durtui man | man -l -`."""
        print(page(app), end="")

    app.command(man)


def page(app: App) -> str:
    """The man page of `app`, its commands and its flags, in roff."""
    return "\n".join(_lines(app)) + "\n"


def _lines(app: App) -> Iterator[str]:
    name = app.name[0]
    commands = [(name, app), *_commands(app, name)]
    yield f'.TH {name.upper()} 1 "" "{name} {version("durtui")}" "User Commands"'
    yield from (".SH NAME", f"{name} \\- {_text(NAME)}", ".SH SYNOPSIS")
    for number, (words, command) in enumerate(commands):
        yield from ([".br"] if number else [])
        yield from (f".B {_text(words)}", _usage(command))
    yield from (".SH DESCRIPTION", *_paragraphs(app.help), ".SH COMMANDS")
    for words, command in commands:
        yield f".SS {_text(words)}"
        yield from _paragraphs((app.default_command.__doc__ if command is app else command.help) or "")
        for argument in _arguments(command):
            if _group(argument) != SHARED:
                yield from _argument(argument)
        if any(_group(argument) == SHARED for argument in _arguments(command)):
            yield from (".PP", _text("The flags of the scenario, below, say what is run."))
    yield ".SH SCENARIO"
    for argument in _arguments(app):
        if _group(argument) == SHARED:
            yield from _argument(argument)
    yield from (".SH EXIT STATUS", *_entries(EXIT_CODES))
    yield from (".SH ENVIRONMENT", ".TP")
    yield ", ".join(f"\\fB{_text(ENVIRONMENT_PREFIX + field.upper())}\\fR" for field in PARAMETERS)
    yield _text("A parameter of the scenario. Its flag goes before it; it goes before the settings file.")
    yield from _entries(ENVIRONMENT)
    yield from (".SH FILES", *_entries(FILES))


def _commands(app: App, path: str) -> Iterator[tuple[str, App]]:
    """Every command below `app`, with the words that call it; what looks like a flag is one to a reader."""
    for name, command in app.resolved_commands().items():
        if command.show and name not in (*app.help_flags, *app.version_flags):
            yield f"{path} {name}", command
            yield from _commands(command, f"{path} {name}")


def _arguments(command: App) -> list[Any]:
    """The arguments of a command that a person can give, in the order of their declaration."""
    if command.default_command is None:
        return []
    return [each for each in command.assemble_argument_collection(parse_docstring=True) if each.show]


def _group(argument: Any) -> str:
    return str(argument.parameter.group[0].name)


def _usage(command: App) -> str:
    """What may follow a command: its positional arguments, and whether there are flags."""
    words = []
    for argument in _arguments(command):
        if argument.index is not None:
            words.append(argument.names[0] if argument.required else f"[{argument.names[0]}]")
    if any(argument.index is None for argument in _arguments(command)):
        words.insert(0, "[flags]")
    return _text(" ".join(words)) or "\\&"


def _argument(argument: Any) -> Iterator[str]:
    value = "" if argument.hint is bool else argument.parameter.metavar or "PATH"
    names = ", ".join(f"\\fB{_text(name)}\\fR" for name in argument.names)
    yield ".TP"
    yield names if argument.index is not None or not value else f"{names} \\fI{_text(value)}\\fR"
    yield _text(argument.parameter.help or "")


def _entries(entries: dict[str, str]) -> Iterator[str]:
    for name, meaning in entries.items():
        yield from (".TP", f".B {_text(name)}", _text(meaning))


def _paragraphs(text: str) -> Iterator[str]:
    for number, paragraph in enumerate(re.split(r"\n\s*\n", text.strip())):
        if number:
            yield ".PP"
        yield _text(" ".join(paragraph.split()))


def _text(text: str) -> str:
    """Text as roff takes it literally: what a `command` is in bold, characters beyond ASCII by their number."""
    text = (
        text.replace("\\", "\\e").replace("-", "\\-").replace("~", "\\(ti").replace("^", "\\(ha").replace('"', "\\(dq")
    )
    text = re.sub(r"`([^`]+)`", r"\\fB\1\\fR", text).replace("`", "\\(ga").replace("'", "\\(cq")
    text = "".join(c if c.isascii() else f"\\[u{ord(c):04X}]" for c in text)
    return f"\\&{text}" if text.startswith(".") else text
