"""What the terminal is: whether the app can open on it, what can be printed on it, and whether it wants colours."""

from __future__ import annotations

import codecs
import locale
import os
import sys

WEB_DRIVER = "textual.drivers.web_driver:WebDriver"


def in_browser() -> bool:
    """Whether `durtui serve` has opened us: a page draws what we write to a pipe, in UTF-8 and in colours."""
    return os.environ.get("TEXTUAL_DRIVER") == WEB_DRIVER


def why_headless() -> str | None:
    """Why there is no terminal to open the app on, or None where there is one.

    All three streams count: Textual starts without a terminal on its input, fills a file with escapes and never ends;
    and a person who sends the output into a pipe wants text there.
    """
    if in_browser():
        return None
    for name, stream in (("input", sys.__stdin__), ("output", sys.__stdout__), ("error", sys.__stderr__)):
        if stream is None or stream.closed or not stream.isatty():
            return f"standard {name} is not a terminal"
    if os.environ.get("TERM", "dumb") in ("dumb", "unknown", ""):
        return "this terminal cannot be drawn on (TERM=dumb)"
    return None


def prints_unicode() -> bool:
    """Whether box drawings and µ can be printed, by the locale (Python may claim UTF-8 on its own) and by Python."""
    if in_browser():
        return True
    encodings = (locale.getencoding(), getattr(sys.stdout, "encoding", None) or "ascii")
    return all(codecs.lookup(encoding).name == "utf-8" for encoding in encodings)


def drop_empty_no_color() -> None:
    """Take an empty NO_COLOR for one that is not set, as no-color.org has it; Textual would take it for a wish."""
    if os.environ.get("NO_COLOR") == "":
        del os.environ["NO_COLOR"]
