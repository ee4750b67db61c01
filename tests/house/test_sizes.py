"""Modules and functions stay small enough to hold in the head; what outgrows its measure is named."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULE_LINES = 320
FUNCTION_LINES = 60
SOURCES = [*sorted((ROOT / "core").rglob("*.py")), *sorted((ROOT / "tui").rglob("*.py"))]


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_and_its_functions_fit_the_head(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= MODULE_LINES
    long = {
        f.name: size
        for f in functions(ast.parse(text))
        if (size := (f.end_lineno or 0) - f.lineno + 1) > FUNCTION_LINES
    }
    assert not long, f"functions of more than {FUNCTION_LINES} lines"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_opens_with_its_job(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert not tree.body or ast.get_docstring(tree)
