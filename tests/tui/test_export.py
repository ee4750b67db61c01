"""An export is four files that others can read and run again; it overwrites nothing, and fails in one clear line."""

import csv
import json
import re
import shlex
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from durcore.errors import DurtuiError
from durcore.lab import LabResult, run_lab
from durcore.scenario import Scenario
from durcore.snapshot import reproduce
from durtui.export import export

FILES = {"snapshot.json", "table.md", "figures.csv", "screen.svg"}
DESIGNS = ["whole-job", "checkpoint", "checkpoint-idempotent"]
SVG = '<svg class="rich-terminal" viewBox="0 0 9 9" xmlns="http://www.w3.org/2000/svg"><text>2 &lt; 3</text></svg>'


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> LabResult:
    """A small lab of one replication, as the app has it."""
    return run_lab(Scenario(jobs=30, steps=3), seeds=(7,), run_dir=tmp_path_factory.mktemp("run"))


def test_an_export_is_four_files_that_parse(result: LabResult, tmp_path: Path) -> None:
    folder = export(result, SVG, tmp_path, tmp_path)
    assert {path.name for path in folder.iterdir()} == FILES
    assert folder.parent == tmp_path / "durtui-exports"

    tree = json.loads((folder / "snapshot.json").read_text())
    assert tree["schema"] == "durtui.snapshot/1"
    assert [design["name"] for design in tree["designs"]] == DESIGNS

    with (folder / "figures.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["design"], row["seed"]) for row in rows] == [(d, s) for d in DESIGNS for s in ("7", "median")]
    for row, design in zip(rows[::2], tree["designs"], strict=True):
        figures = design["replications"][0]["figures"]
        assert {name: float(row[name]) for name in figures} == pytest.approx(figures)

    lines = [line for line in (folder / "table.md").read_text().splitlines() if line.startswith("|")]
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1
    assert re.fullmatch(r"\| --- \|( ---: \|)+", lines[1])
    assert [line.split("|")[1].strip() for line in lines[2::2]] == [d.design.title for d in result.designs]

    root = ET.fromstring((folder / "screen.svg").read_text())  # noqa: S314  # our own file
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert root.findtext("{http://www.w3.org/2000/svg}text") == "2 < 3"


def test_every_file_holds_the_command_that_gives_it_again(result: LabResult, tmp_path: Path) -> None:
    folder = export(result, SVG, tmp_path, tmp_path)
    command = reproduce(result)
    assert shlex.split(command)[:4] == ["durtui", "run", "--jobs", "30"]
    for name in FILES:
        assert command in (folder / name).read_text(), name


def test_a_second_export_stands_beside_the_first(result: LabResult, tmp_path: Path) -> None:
    folders = []
    for count in range(5):
        folder = export(result, SVG.replace("2 &lt; 3", f"export {count}"), tmp_path, tmp_path)
        folders.append(folder)
    assert len(set(folders)) == 5
    for count, folder in enumerate(folders):
        assert f"export {count}<" in (folder / "screen.svg").read_text()
        assert {path.name for path in folder.iterdir()} == FILES


def test_what_stands_in_the_folder_of_exports_is_left_alone(result: LabResult, tmp_path: Path) -> None:
    mine = tmp_path / "durtui-exports" / "mine.txt"
    mine.parent.mkdir()
    mine.write_text("mine")
    export(result, SVG, tmp_path, tmp_path)
    assert mine.read_text() == "mine"


def test_a_place_that_is_a_file_is_named_in_one_line(result: LabResult, tmp_path: Path) -> None:
    (tmp_path / "durtui-exports").touch()
    with pytest.raises(DurtuiError) as caught:
        export(result, SVG, tmp_path, tmp_path)
    assert str(tmp_path / "durtui-exports") in str(caught.value)
    assert "cannot be written" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(not Path("/proc").exists(), reason="needs a place where nothing can be made")
def test_a_place_that_cannot_be_written_is_named_in_one_line(result: LabResult, tmp_path: Path) -> None:
    with pytest.raises(DurtuiError, match=r"^/proc/durtui-exports cannot be written: [^\n]+$"):
        export(result, SVG, tmp_path, Path("/proc"))


def test_a_place_that_is_not_there_yet_is_made_though_the_run_has_gone(result: LabResult, tmp_path: Path) -> None:
    folder = export(result, SVG, tmp_path / "gone", tmp_path / "new" / "place")
    assert {path.name for path in folder.iterdir()} == FILES
