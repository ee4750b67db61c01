"""Export: a run as JSON, Markdown, CSV and a picture of the screen, in a folder of its own that nothing overwrites."""

from __future__ import annotations

import time
from html import escape
from itertools import count
from pathlib import Path

from durcore.errors import DurtuiError, advised
from durcore.lab import LabResult
from durcore.report import as_csv, as_markdown
from durcore.snapshot import reproduce, to_json

FOLDER = "durtui-exports"


def export(result: LabResult, svg: str, run_directory: Path, under: Path) -> Path:
    """Write the four files into a new folder below `under`; return it. Raises DurtuiError where that cannot be."""
    try:
        folder = _new_folder(under / FOLDER).absolute()
        (folder / "snapshot.json").write_bytes(to_json(result, run_directory))
        (folder / "table.md").write_text(as_markdown(result), encoding="utf-8")
        (folder / "figures.csv").write_text(as_csv(result), encoding="utf-8")
        (folder / "screen.svg").write_text(_described(svg, reproduce(result)), encoding="utf-8")
    except OSError as error:
        raise DurtuiError(f"{error.filename or under} cannot be written: {advised(error)}") from error
    return folder


def _new_folder(parent: Path) -> Path:
    parent.mkdir(parents=True, exist_ok=True)
    stamp = time.strftime("%Y%m%d-%H%M%S")
    for attempt in count(1):
        folder = parent / (stamp if attempt == 1 else f"{stamp}-{attempt}")
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            continue
        return folder
    raise AssertionError("count() has no end")


def _described(svg: str, command: str) -> str:
    """The picture with the command in it, where a reader of the file and a screen reader find it."""
    start = svg.index(">", svg.index("<svg")) + 1
    return f"{svg[:start]}<desc>{escape(command)}</desc>{svg[start:]}"
