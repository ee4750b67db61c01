"""Durations come from monotonic clocks: the wall clock names folders, and is never subtracted from itself."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = [*sorted((ROOT / "core").rglob("*.py")), *sorted((ROOT / "tui").rglob("*.py"))]
WALL_CLOCKS = {"time", "time_ns", "now", "utcnow", "today", "localtime", "gmtime", "CLOCK_REALTIME"}
MODULES = {"time", "datetime", "date"}


def readings_of_the_wall_clock(tree: ast.AST) -> list[int]:
    """The lines that read it, as `time.time` or `from time import time`. (`strftime` gives names only.)"""
    lines = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in WALL_CLOCKS:
            owner = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
            if owner in MODULES:
                lines.append(node.lineno)
        if isinstance(node, ast.ImportFrom) and node.module in MODULES:
            lines += [node.lineno for name in node.names if name.name in WALL_CLOCKS]
    return lines


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_reads_a_clock_that_can_jump(path: Path) -> None:
    assert not readings_of_the_wall_clock(ast.parse(path.read_text()))


@pytest.mark.parametrize("code", ["time.time()", "from time import time_ns", "datetime.datetime.now()", "date.today()"])
def test_a_reading_of_the_wall_clock_is_found(code: str) -> None:
    assert readings_of_the_wall_clock(ast.parse(code))
