"""A run's directory deleted or made read-only, its store locked: one line says so, and the run goes on afterwards."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.faults.world.conftest import World

HOLD = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA busy_timeout = 20000")
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def somebody_holding(store: Path) -> Iterator[None]:
    """Another process that has begun to write a store, and does not come to an end."""
    words = [sys.executable, "-c", HOLD, str(store)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == "held\n"
        yield
        holder.stdin.close()


@pytest.mark.parametrize("crash_mode", ["raise", "sigkill"])
def test_a_store_that_somebody_locks_ends_the_run_until_it_is_let_go(
    crash_mode: str,
    world_in: Callable[..., World],
    refused: Callable[..., None],
    came_to_its_figures: Callable[..., None],
) -> None:
    world = world_in(jobs=2000, crash_mode=crash_mode)
    world.begin()
    world.until(world.middle // 2)
    with somebody_holding(world.store):
        refused(world.end(), world.store, "durtui resume", saying="is locked by another process; close it there")
    came_to_its_figures(world, world.resume())


def test_a_store_that_is_locked_before_a_resume_is_refused_and_not_waited_for_without_end(
    world: World,
    lanes: Callable[[], list[int]],
    refused: Callable[..., None],
    came_to_its_figures: Callable[..., None],
) -> None:
    world.kill(lanes)
    with somebody_holding(world.store):
        refused(world.resume(), world.store, "durtui resume", saying="is locked by another process; close it there")
    came_to_its_figures(world, world.resume())


def test_a_run_whose_directory_vanishes_says_so_and_promises_nothing(
    world: World, held: Callable[..., None], refused: Callable[..., None], came_to_its_figures: Callable[..., None]
) -> None:
    world.begin()
    held(world, lambda: shutil.rmtree(world.directory))
    done = world.end()
    refused(done, world.directory, saying="deleted")
    assert "durtui resume" not in done.stderr
    refused(world.resume(), world.directory, code=2, saying="holds no run")
    came_to_its_figures(world, world.run())


def test_a_lane_whose_directory_vanishes_can_be_run_again(
    world: World, held: Callable[..., None], refused: Callable[..., None], came_to_its_figures: Callable[..., None]
) -> None:
    world.begin()
    held(world, lambda: shutil.rmtree(world.lane))
    refused(world.end(), world.lane, "--rerun-damaged", saying="deleted")
    came_to_its_figures(world, world.resume("--rerun-damaged"))


def test_a_file_that_a_running_lane_has_mapped_is_named_when_it_is_cut_short(
    world: World, held: Callable[..., None], refused: Callable[..., None], came_to_its_figures: Callable[..., None]
) -> None:
    """Whoever touches a page behind the end of a mapped file dies by SIGBUS, and can say nothing any more."""
    world.begin()
    held(world, lambda: os.truncate(world.ledger, 0))
    refused(world.end(), world.ledger, "--rerun-damaged", saying="cut short")
    came_to_its_figures(world, world.resume("--rerun-damaged"))


def test_a_place_that_cannot_be_written_is_refused_before_anything_is_run(
    world: World, without_roots_rights: Callable[[], None], refused: Callable[..., None]
) -> None:
    world.directory.mkdir(mode=0o500)
    refused(world.run(without_roots_rights), world.directory, code=2, saying="must be a directory that can be written")
    assert not list(world.directory.iterdir())


@pytest.mark.parametrize(
    ("what", "crash_mode"),
    [
        *((what, "raise") for what in ("lane", "store", "ledger", "live", "directory")),
        *((what, "sigkill") for what in ("lane", "store")),
        *(pytest.param(what, "sigkill", marks=pytest.mark.slow) for what in ("ledger", "live", "directory")),
    ],
)
def test_what_turns_read_only_is_refused_by_name_and_goes_on_when_it_can_be_written_again(
    what: str,
    crash_mode: str,
    world_in: Callable[..., World],
    lanes: Callable[[], list[int]],
    held: Callable[..., None],
    without_roots_rights: Callable[[], None],
    refused: Callable[..., None],
    came_to_its_figures: Callable[..., None],
) -> None:
    world = world_in(jobs=500, crash_mode=crash_mode)
    world.begin(without_roots_rights)
    path: Path = getattr(world, what)
    mode = 0o700 if what in ("lane", "directory") else 0o600
    held(world, lambda: path.chmod(mode & 0o555))
    for done in (world.end(), world.resume(prepare=without_roots_rights)):
        if done.returncode == 0:  # what was open could be written still, and to count it again it is only read
            came_to_its_figures(world, done)
        else:
            refused(done, path, "durtui resume" * (what != "directory"), saying="right to write it")
    assert not lanes()
    path.chmod(mode)
    came_to_its_figures(world, world.resume(prepare=without_roots_rights))


def test_a_lane_that_is_killed_says_by_which_signal(
    world: World, lanes: Callable[[], list[int]], refused: Callable[..., None], came_to_its_figures: Callable[..., None]
) -> None:
    world.begin()
    world.until(world.middle)
    for lane in lanes():
        os.kill(lane, signal.SIGKILL)
    refused(world.end(), world.lane, "durtui resume", saying="signal 9")
    came_to_its_figures(world, world.resume())
