"""Files of a run deleted, cut short or overwritten: refused and named, or harmless; never silently wrong figures."""

from __future__ import annotations

import random
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.faults.world.conftest import World

LANE_FILES = ["store.db", "store.db-wal", "store.db-shm", "ledger", "live", "result.json"]
HARMLESS = {"store.db-shm", "live"}  # nothing but an index that is made anew, and timings
DAMAGES = ["deleted", "emptied", "halved", "noise", "noise-in-its-middle", "ones"]
each_damage = pytest.mark.parametrize("damages", [["halved", "noise"], pytest.param(DAMAGES, marks=pytest.mark.slow)])


def damage(path: Path, how: str, write_noise: Callable[..., None]) -> None:
    size = path.stat().st_size
    match how:
        case "deleted":
            path.unlink()
        case "emptied":
            path.write_bytes(b"")  # the same file, for whoever has it open
        case "halved":
            with path.open("rb+") as file:
                file.truncate(size // 2)
        case "noise":
            write_noise(path, seed=1)
        case "noise-in-its-middle":
            write_noise(path, seed=2, first=0.4, bytes_max=64)
        case "ones":
            with path.open("rb+") as file:
                file.write(b"\xff" * size)


@pytest.fixture
def in_the_end_right(
    refused: Callable[..., None], came_to_its_figures: Callable[..., None]
) -> Callable[[World, subprocess.CompletedProcess[str]], None]:
    """Asserts that a command came to the right figures, or refused the lane and `--rerun-damaged` comes to them."""

    def check(world: World, done: subprocess.CompletedProcess[str]) -> None:
        if done.returncode:
            refused(done, world.lane, "durtui resume")
            done = world.resume("--rerun-damaged")
        came_to_its_figures(world, done)

    return check


@pytest.fixture
def copies_of_a_killed_run(
    world_in: Callable[..., World], lanes: Callable[[], list[int]], tmp_path: Path
) -> Callable[[], World]:
    """Makes copies of a run that was killed in its middle."""
    killed = world_in(jobs=300)
    killed.kill(lanes)
    kept = tmp_path / "killed"
    killed.directory.rename(kept)

    def copy() -> World:
        shutil.rmtree(killed.directory, ignore_errors=True)
        shutil.copytree(kept, killed.directory)
        return killed

    return copy


@each_damage
@pytest.mark.parametrize("name", [name for name in LANE_FILES if name != "result.json"])
def test_what_is_destroyed_before_a_resume_is_refused_by_name_or_harmless_and_can_be_run_again(
    name: str,
    damages: list[str],
    copies_of_a_killed_run: Callable[[], World],
    write_noise: Callable[..., None],
    refused: Callable[..., None],
    in_the_end_right: Callable[..., None],
) -> None:
    for how in damages:
        world = copies_of_a_killed_run()
        damage(world.lane / name, how, write_noise)
        done = world.resume()
        if name == "ledger" or (name == "store.db" and how not in ("noise-in-its-middle",)):
            refused(done, world.lane / name, "--rerun-damaged")
        elif name in HARMLESS:
            assert done.returncode == 0, (how, done)
        in_the_end_right(world, done)


@each_damage
@pytest.mark.parametrize("name", ["store.db", "ledger", "result.json", "live"])
def test_what_is_destroyed_of_a_finished_lane_is_refused_by_name_or_harmless_and_can_be_run_again(
    name: str,
    damages: list[str],
    world_in: Callable[..., World],
    tmp_path: Path,
    write_noise: Callable[..., None],
    in_the_end_right: Callable[..., None],
) -> None:
    world = world_in(jobs=100)
    assert world.run().returncode == 0
    world.directory.rename(tmp_path / "finished")
    for how in damages:
        shutil.rmtree(world.directory, ignore_errors=True)
        shutil.copytree(tmp_path / "finished", world.directory)
        damage(world.lane / name, how, write_noise)
        in_the_end_right(world, world.resume())


@pytest.mark.parametrize("how", ["emptied", "halved", "noise", "noise-in-its-middle"])
def test_a_description_that_was_destroyed_is_refused_by_name(
    how: str, world_in: Callable[..., World], write_noise: Callable[..., None], refused: Callable[..., None]
) -> None:
    world = world_in(jobs=20)
    assert world.run().returncode == 0
    damage(world.directory / "run.json", how, write_noise)
    refused(world.resume(), world.directory / "run.json", saying="run it anew")


@pytest.mark.parametrize(("here", "there"), [('"jobs":20', '"jobs":21'), ("0.03", "0.08"), ("[7]", "[8]")])
def test_a_description_of_another_run_is_refused_though_it_is_one(
    here: str, there: str, world_in: Callable[..., World], refused: Callable[..., None]
) -> None:
    """Noise that leaves valid JSON: the figures would be right for a run that nobody asked for."""
    world = world_in(jobs=20)
    assert world.run().returncode == 0
    description = world.directory / "run.json"
    text = description.read_text().replace(": ", ":").replace("[\n    7\n  ]", "[7]")
    assert here in text
    description.write_text(text.replace(here, there))
    refused(world.resume(), description, saying="written over")


@each_damage
@pytest.mark.parametrize(
    ("name", "crash_mode"),
    [
        *((name, "raise") for name in LANE_FILES[:5]),
        *((name, "sigkill") for name in ("store.db", "ledger")),
        *(pytest.param(name, "sigkill", marks=pytest.mark.slow) for name in ("store.db-wal", "store.db-shm", "live")),
    ],
)
def test_what_is_destroyed_in_the_middle_of_a_run_never_gives_wrong_figures(
    name: str,
    damages: list[str],
    crash_mode: str,
    world_in: Callable[..., World],
    held: Callable[..., None],
    write_noise: Callable[..., None],
    in_the_end_right: Callable[..., None],
) -> None:
    for how in damages:
        world = world_in(jobs=300, crash_mode=crash_mode)
        shutil.rmtree(world.directory, ignore_errors=True)
        world.begin()
        held(world, partial(damage, world.lane / name, how, write_noise))
        in_the_end_right(world, world.end())


@pytest.mark.parametrize("at", [18, 47, 60, 68])
def test_a_store_whose_header_was_written_over_can_be_run_again(
    at: int, world_in: Callable[..., World], in_the_end_right: Callable[..., None]
) -> None:
    world = world_in(jobs=20)
    assert world.run().returncode == 0
    with world.store.open("rb+") as file:
        file.seek(at)
        file.write(b"\xfe")
    in_the_end_right(world, world.resume())


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE jobs SET deliveries = deliveries + 1 WHERE id = 1",
        "UPDATE jobs SET state = 'finished' WHERE id = 300",
        "UPDATE jobs SET state = 'queued' WHERE id = 1",
        "DELETE FROM checkpoints WHERE id = (SELECT min(id) FROM checkpoints)",
        "DELETE FROM effect_keys WHERE id = (SELECT min(id) FROM effect_keys)",
        "UPDATE effect_keys SET attempt = attempt + 1 WHERE id = (SELECT min(id) FROM effect_keys)",
        "UPDATE checkpoints SET output = x'00' WHERE id = (SELECT min(id) FROM checkpoints)",
        "INSERT INTO checkpoints (id, output) VALUES ((301 << 8) + 1, zeroblob(16))",
        "INSERT INTO jobs (ticket) VALUES (301)",
        "DELETE FROM jobs WHERE id = 300",
    ],
)
def test_a_row_that_the_fault_plan_did_not_write_is_refused(
    sql: str,
    copies_of_a_killed_run: Callable[[], World],
    refused: Callable[..., None],
    came_to_its_figures: Callable[..., None],
) -> None:
    """Noise that SQLite finds nothing wrong with."""
    world = copies_of_a_killed_run()
    with sqlite3.connect(world.store) as connection:
        connection.execute(sql)
    connection.close()
    refused(world.resume(), world.store, "--rerun-damaged")
    came_to_its_figures(world, world.resume("--rerun-damaged"))


@pytest.mark.slow
@pytest.mark.parametrize("crash_mode", ["raise", "sigkill"])
@pytest.mark.parametrize("seed", range(60))
def test_noise_anywhere_at_any_time_never_gives_wrong_figures(
    seed: int,
    crash_mode: str,
    world_in: Callable[..., World],
    held: Callable[..., None],
    write_noise: Callable[..., None],
    in_the_end_right: Callable[..., None],
) -> None:
    draw = random.Random(seed)  # noqa: S311  # no secret
    world = world_in(jobs=300, crash_mode=crash_mode)
    name, first = draw.choice(LANE_FILES[:5]), draw.random()
    bytes_max = draw.choice([1, 4, 64, 4096, 100_000])
    world.begin()
    held(world, lambda: write_noise(world.lane / name, seed, first, bytes_max=bytes_max), draw.uniform(0.1, 0.9))
    in_the_end_right(world, world.end())
