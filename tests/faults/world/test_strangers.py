"""Run directories and snapshots are data from strangers: nothing leads outside, acts, floods, or steers a terminal."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from durcore.job import run_job
from durcore.lab import run_lab
from durcore.rundir import _Description
from durcore.scenario import Scenario
from durcore.store import Store

if TYPE_CHECKING:
    from tests.faults.world.conftest import World

DURTUI = str(Path(sys.executable).with_name("durtui"))
TREASURE = "somebody's own"
STEERING = "\x1b]0;pwned\x07[bold]\x9b2J"


def durtui(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([DURTUI, *words], capture_output=True, text=True, timeout=60, check=False, stdin=-3)


def sign(description: dict[str, Any]) -> bytes:
    """A description as a stranger writes it who has read our source."""
    made = msgspec.convert({"check": "", **description}, _Description)
    made.check = made.sum()
    return msgspec.json.encode(made)


@pytest.fixture
def interrupted(world_in: Callable[..., World], lanes: Callable[[], list[int]]) -> World:
    """A run that waits to be gone on with."""
    world: World = world_in(jobs=100)
    assert world.run().returncode == 0
    (world.lane / "result.json").unlink()
    return world


@pytest.fixture
def treasure(tmp_path: Path) -> Path:
    """A file outside of every run, that nobody may touch."""
    path = tmp_path / "treasure"
    path.write_text(TREASURE)
    return path


def make(kind: str, path: Path, treasure: Path) -> None:
    path.unlink(missing_ok=True)
    match kind:
        case "symlink":
            path.symlink_to(treasure)
        case "hard link":
            path.hardlink_to(treasure)
        case "pipe":
            os.mkfifo(path)


@pytest.mark.parametrize("kind", ["symlink", "hard link", "pipe"])
@pytest.mark.parametrize(
    "where", ["run.json.new", "lock", "LANE/lock", "LANE/store.db", "LANE/store.db-wal", "LANE/ledger", "LANE/live",
              "LANE/lane.log", "LANE/result.json", "LANE/result.new"]
)  # fmt: skip
def test_nothing_in_a_run_directory_leads_outside_or_holds_us_up(
    where: str, kind: str, tmp_path: Path, treasure: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the library, since the command does nothing before it opens the directory."""
    from durcore.errors import Mistake
    from durcore.lab import resume_lab

    run_lab(Scenario(jobs=5), [7], ["checkpoint-idempotent"], run_dir=tmp_path / "run")
    make(kind, tmp_path / "run" / where.replace("LANE", "checkpoint-idempotent-seed-7"), treasure)
    with pytest.raises(Mistake, match="is no file that durtui has made"):
        resume_lab(tmp_path / "run")
    assert treasure.read_text() == TREASURE


def test_a_lane_that_is_a_link_to_a_folder_outside_is_refused(
    interrupted: World, tmp_path: Path, refused: Callable[..., None]
) -> None:
    outside = tmp_path / "outside"
    interrupted.lane.rename(outside)
    before = {path.name: path.read_bytes() for path in outside.iterdir()}
    interrupted.lane.symlink_to(outside)
    refused(interrupted.resume("--rerun-damaged"), interrupted.lane, code=2, saying="is no file that durtui has made")
    assert {path.name: path.read_bytes() for path in outside.iterdir()} == before


@pytest.mark.parametrize("name", ["lock", "run.json.new"])
@pytest.mark.parametrize("kind", ["symlink", "hard link", "pipe"])
def test_a_new_run_writes_through_no_link_that_lies_in_its_empty_directory(
    kind: str, name: str, world: World, treasure: Path, refused: Callable[..., None]
) -> None:
    world.directory.mkdir()
    make(kind, world.directory / name, treasure)
    refused(world.run(), world.directory / name, code=2, saying="is no file that durtui has made")
    assert treasure.read_text() == TREASURE


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE more (x)",
        "CREATE TRIGGER t AFTER UPDATE ON jobs BEGIN DELETE FROM checkpoints; END",
        "CREATE VIEW v AS SELECT 1",
        "CREATE INDEX i ON jobs (state)",
        "DROP TABLE job_names",
    ],
)
def test_a_store_with_other_tables_than_ours_is_refused_before_anything_in_it_acts(
    sql: str, interrupted: World, refused: Callable[..., None], came_to_its_figures: Callable[..., None]
) -> None:
    with sqlite3.connect(interrupted.store) as connection:
        connection.execute(sql)
    connection.close()
    before = interrupted.store.read_bytes()
    refused(interrupted.resume(), interrupted.store, "--rerun-damaged", saying="other tables")
    assert interrupted.store.read_bytes() == before
    came_to_its_figures(interrupted, interrupted.resume("--rerun-damaged"))


def a_journal_that_names(victim: Path, page_bytes: int) -> bytes:
    """A rollback journal without pages that says it belongs to a transaction of several files, `victim` its master.

    SQLite plays such a journal back when it opens the file beside it, and removes the master when that is done.
    """
    magic, name = bytes.fromhex("d9d505f920a163d7"), os.fsencode(victim)
    header = magic + struct.pack(">IIIII", 0, 0, 0, 512, page_bytes)
    checksum = sum(name) & 0xFFFFFFFF
    return header.ljust(512, b"\0") + struct.pack(">I", 1 + 0x40000000 // page_bytes) + name + struct.pack(
        ">II", len(name), checksum
    ) + magic  # fmt: skip


def test_a_journal_that_names_a_file_outside_is_not_played_back(
    interrupted: World, treasure: Path, tmp_path: Path, refused: Callable[..., None]
) -> None:
    journal = Path(f"{interrupted.store}-journal")
    journal.write_bytes(a_journal_that_names(treasure, 4096))
    refused(interrupted.resume(), journal, "--rerun-damaged")
    assert treasure.read_text() == TREASURE
    # And it is a real attack: SQLite by itself falls for it.
    victim = tmp_path / "victim"
    victim.write_text("gone in a moment")
    for copy in (tmp_path / "copy", tmp_path / "copy-journal"):
        shutil.copy(interrupted.store, copy)
    (tmp_path / "copy-journal").write_bytes(a_journal_that_names(victim, 4096))
    connection = sqlite3.connect(tmp_path / "copy")
    connection.execute("SELECT count(*) FROM sqlite_schema")
    connection.close()
    assert not victim.exists()


@pytest.mark.parametrize(
    "change",
    [
        {"schema": STEERING},
        {"designs": [STEERING]},
        {"designs": ["../../outside"]},
        {"designs": []},
        {"seeds": []},
        {"seeds": [-1]},
        {"seeds": [10**400]},
        {"scenario": {"jobs": STEERING}},
        {"scenario": {STEERING: 1}},
        {"scenario": {"jobs": 10**12}},
        {"scenario": {"transient_rate": float("nan")}},
    ],
    ids=repr,
)
def test_a_description_from_a_stranger_is_checked_and_never_steers_the_terminal(
    change: dict[str, Any], interrupted: World
) -> None:
    path = interrupted.directory / "run.json"
    description = {**json.loads(path.read_text()), **change}
    try:
        path.write_bytes(sign(description))
    except (msgspec.MsgspecError, OverflowError):  # what no struct of ours can hold cannot be signed either
        path.write_text(json.dumps(description))
    done = interrupted.resume()
    assert done.returncode in (1, 2)
    (line,) = done.stderr.splitlines()
    assert line.isprintable()
    assert "Traceback" not in line


def test_last_words_and_logs_from_a_stranger_never_steer_the_terminal(
    interrupted: World, refused: Callable[..., None]
) -> None:
    (interrupted.lane / "lane.log").write_text(f"durtui: {STEERING}\n{STEERING}")
    with interrupted.live.open("rb+") as page:
        page.seek(-1024, os.SEEK_END)
        page.write(STEERING.encode())
    interrupted.ledger.write_bytes(STEERING.encode())
    done = interrupted.resume()
    refused(done, interrupted.ledger)
    assert done.stderr.rstrip("\n").isprintable()
    assert "pwned" not in done.stderr


def test_names_of_files_never_steer_the_terminal(tmp_path: Path, state_home: Path) -> None:
    for words in (["verify", f"{STEERING}.json"], ["resume", STEERING], ["run", "--jobs", STEERING], [STEERING]):
        done = durtui(*words)
        assert done.returncode == 2
        assert done.stderr.rstrip("\n").isprintable()
        assert len(done.stderr.splitlines()) == 1
    kept = state_home / "durtui" / "runs" / STEERING
    run_lab(Scenario(jobs=5), [7], ["checkpoint"], run_dir=kept)
    listed = durtui("resume")
    assert all(line.isprintable() for line in listed.stdout.splitlines())
    assert "pwned" in listed.stdout
    snapshot = Path(f"{STEERING}.json")
    assert durtui("run", "--jobs", "5", "--replications", "1", "--json", snapshot).returncode == 0
    assert all(line.isprintable() for line in durtui("verify", snapshot).stdout.splitlines())


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"a":' * 100_000, '{"schema":' + "[" * 100_000 + "]" * 100_000 + "}"],
    ids=["lists", "objects", "closed"],
)
def test_deep_nesting_is_refused_in_every_file_that_is_read(
    text: str, interrupted: World, refused: Callable[..., None]
) -> None:
    snapshot = Path("deep.json")
    snapshot.write_text(text)
    refused(durtui("verify", snapshot), code=2, saying="not a snapshot")
    (interrupted.lane / "result.json").write_text(text)
    refused(interrupted.resume(), interrupted.lane / "result.json", saying="written over")
    (interrupted.directory / "run.json").write_text(text)
    refused(interrupted.resume(), interrupted.directory / "run.json", saying="does not describe a run")


def test_huge_files_are_refused_and_not_read(interrupted: World, refused: Callable[..., None]) -> None:
    for path, size in ((Path("huge.json"), 1 << 36), (interrupted.directory / "run.json", 1 << 36)):
        path.touch()
        os.truncate(path, size)
    refused(durtui("verify", "huge.json"), code=2, saying="at most")
    refused(interrupted.resume(), interrupted.directory / "run.json")


def others_may_read(*roots: Path) -> list[Path]:
    found = [path for root in roots for path in (root, *root.rglob("*"))]
    return [path for path in found if path.lstat().st_mode & 0o077]


def test_every_file_is_its_owners_only_whatever_the_umask(
    world_in: Callable[..., World], held: Callable[..., None], state_home: Path, tmp_path: Path
) -> None:
    """Looked at in the middle of a run too, while its store has a log and its lane works."""
    world, exports = world_in(crash_mode="sigkill"), [tmp_path / name for name in ("a.json", "b.md", "c.csv")]
    exports[0].touch(mode=0o666)
    exports[0].chmod(0o666)
    words = [f"{flag}={path}" for flag, path in zip(("--json", "--markdown", "--csv"), exports, strict=True)]
    seen: list[Path] = []
    world.begin(lambda: os.umask(0), words)
    held(world, lambda: seen.extend(others_may_read(world.directory)))
    assert world.end().returncode == 0
    assert not seen
    assert not others_may_read(world.directory, *exports)


def test_a_program_of_anybodys_leaves_its_runs_and_stores_to_their_owner_whatever_the_umask(
    tmp_path: Path, state_home: Path
) -> None:
    before = os.umask(0)
    try:
        run_lab(Scenario(jobs=5), [7], ["checkpoint"], run_dir=tmp_path / "a" / "run")
        with Store.open(tmp_path / "jobs.db") as store:
            run_job("invoice-17", [lambda state, context: STEERING], store=store)
            left = others_may_read(tmp_path / "a", *tmp_path.glob("jobs.db*"))
    finally:
        os.umask(before)
    assert not left
