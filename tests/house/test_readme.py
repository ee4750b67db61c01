"""The README tells the truth: its code runs, its table comes out, its commands and links are there."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
COMMAND = str(Path(sys.executable).with_name("durtui"))
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(language: str) -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)
    return [text for name, text in found if name == language]


def without_latency(table: str) -> list[list[str]]:
    """The rows of designs: everything before the last column, which is the machine's."""
    rows = [line for line in table.splitlines() if re.match(r"Whole-job|Checkpoint per|\+ idempotent", line)]
    return [re.sub(r"none$|[\d.]+ / [\d.]+$", "", row.rstrip()).split() for row in rows]


def test_the_table_is_what_the_command_prints(tmp_path: Path) -> None:
    (shown,) = [block for block in blocks("") if block.startswith("$ durtui run")]
    printed = subprocess.run([COMMAND, "run"], capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    assert len(without_latency(shown)) == 3
    assert without_latency(shown) == without_latency(printed)


def test_the_python_example_runs(tmp_path: Path) -> None:
    (code,) = blocks("python")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == "{'query': 'unpaid invoices', 'key': 'invoice-17:1', 'hits': 3}\n"


def test_every_make_target_named_in_the_documents_is_there() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    named = {name for page in DOCUMENTS for name in re.findall(r"`make ([a-z-]+)`", page.read_text())}
    assert named
    assert named <= targets


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert target.startswith("https://") or (page.parent / target).exists(), target


def test_every_command_line_in_the_readme_is_understood(tmp_path: Path) -> None:
    lines = set(re.findall(r"`(durtui(?: [^`]*)?)`", README))
    for line in lines:
        words = shlex.split(line)[1:]
        verb = words[:1] if words and not words[0].startswith("-") else []
        told = subprocess.run([COMMAND, *verb, "--help"], capture_output=True, text=True, check=True, cwd=tmp_path)
        flags = {word.partition("=")[0] for word in words if word.startswith("--")} - {"--help"}
        assert flags <= set(re.findall(r"--[a-z-]+", told.stdout)), line
