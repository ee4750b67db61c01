"""The disk is full, or a file may not grow: one line says so, nothing is corrupted, and with room the run goes on."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.faults.world.conftest import World

MIB = 1 << 20
DURTUI = str(Path(sys.executable).with_name("durtui"))


def largest_file(bytes_max: int) -> Callable[[], None]:
    """Lets a process about to be write no file beyond a size: SIGXFSZ is ignored by Python, so a write fails."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_max, resource.RLIM_INFINITY))


def fill(disk: Path) -> Path:
    """Leave no room at all on a disk; return the file to be removed for some."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (MIB, 4096, 1):
            with suppress(OSError):
                while True:
                    file.write(bytes(size))
    return ballast


@pytest.mark.parametrize("crash_mode", ["raise", "sigkill"])
def test_a_disk_that_fills_up_ends_the_run_and_room_lets_it_go_on(
    crash_mode: str,
    small_disk: Callable[[int], Path],
    world_in: Callable[..., World],
    held: Callable[..., None],
    refused: Callable[..., None],
    came_to_its_figures: Callable[..., None],
) -> None:
    disk = small_disk(64)
    world = world_in(disk, crash_mode=crash_mode, output_bytes=1000)
    world.begin()
    held(world, lambda: fill(disk))
    refused(world.end(), world.lane, "durtui resume", saying="the disk is full; free some room")
    still = world.resume()
    refused(still, world.lane, "durtui resume", saying="free some room")
    (disk / "ballast").unlink()
    came_to_its_figures(world, world.resume())


@pytest.mark.parametrize("limit", [0, 1000, 20_000, 100_000, 1_000_000])
def test_a_file_that_may_not_grow_ends_the_run_wherever_that_is(
    limit: int,
    world: World,
    refused: Callable[..., None],
    came_to_its_figures: Callable[..., None],
) -> None:
    refused(world.run(largest_file(limit)), world.directory, saying="ulimit -f")
    if (world.directory / "run.json").exists():
        came_to_its_figures(world, world.resume())
    else:
        came_to_its_figures(world, world.run())


def test_an_export_without_room_leaves_the_old_file_whole_and_the_run_to_be_told_again(
    small_disk: Callable[[int], Path],
    world_in: Callable[..., World],
    state_home: Path,
    refused: Callable[..., None],
) -> None:
    world, disk = world_in(jobs=20), small_disk(1)
    export = disk / "export"
    export.write_text("what stood there")
    ballast = fill(disk)
    words = ["run", *world.scenario.flags(), "--json", str(export)]
    done = subprocess.run([DURTUI, *words], capture_output=True, text=True, check=False, env=dict(os.environ))
    refused(done, f"json(={export})", "durtui resume", saying="the disk is full; free some room")
    assert export.read_text() == "what stood there"
    assert set(disk.iterdir()) == {export, ballast}
    ballast.unlink()
    (kept,) = (state_home / "durtui" / "runs").iterdir()
    again = subprocess.run([DURTUI, "resume", str(kept), "--json", str(export)], check=False, capture_output=True)
    assert again.returncode == 0
    assert "whole-job" in export.read_text()
    assert not kept.exists()


def test_a_full_standard_output_leaves_the_run_to_be_told_again(
    world: World, refused: Callable[..., None], came_to_its_figures: Callable[..., None]
) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("needs a device that is always full")
    with full.open("w") as nowhere:
        words = ["run", *world.scenario.flags(), "--replications", "1", "--design", "checkpoint-idempotent"]
        done = subprocess.run(
            [DURTUI, *words, "--json", "-", "--run-dir", str(world.directory)],
            stdout=nowhere, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    done.stdout = ""
    refused(done, "standard output", "durtui resume", saying="free some room")
    came_to_its_figures(world, world.resume())


def test_mapped_files_without_room_are_refused_by_name_and_never_kill(
    small_disk: Callable[[int], Path],
    world_in: Callable[..., World],
    refused: Callable[..., None],
    came_to_its_figures: Callable[..., None],
) -> None:
    """Page by page, so that each mapped file in turn is the one that has no room."""
    disk = small_disk(64)
    world = world_in(disk, jobs=300)
    world.begin()
    world.until(1)
    assert world.process is not None
    world.process.terminate()
    assert world.end().returncode == 130
    named = set()
    for pages in (2, 4, 9):
        for path in (world.live, world.ledger, world.lane / "lane.log", *world.lane.glob("store.db*")):
            path.unlink(missing_ok=True)
        ballast = fill(disk)
        os.truncate(ballast, ballast.stat().st_size - pages * 4096)
        done = world.resume()
        refused(done, world.lane, "durtui resume", saying="free some room")
        named |= {path.name for path in (world.live, world.ledger, world.store) if str(path) in done.stderr}
        ballast.unlink()
    assert named == {"live", "ledger", "store.db"}
    came_to_its_figures(world, world.resume())
