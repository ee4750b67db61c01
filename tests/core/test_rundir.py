"""A run's directory: what is in it, whose it is, and strangers' ones, which lead nowhere and steer no terminal."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from durcore.designs import DESIGNS, Design
from durcore.errors import Damaged, DurtuiError, InUse, Mistake
from durcore.lock import Lock
from durcore.rundir import RunDirectory, boot_id, kept_runs
from durcore.scenario import PARAMETERS, Scenario

Describe = Callable[..., None]
SCENARIO = Scenario(jobs=20, steps=3, crash_rate=0.125)
ALL = tuple(DESIGNS.values())
SEEDS = (7, 8)
HOSTILE = "\x1b]0;owned\x07\x1b[2J\n\x9b31m\u202e"


def make(where: Path | None, designs: tuple[Design, ...] = ALL) -> RunDirectory:
    return RunDirectory.create(where, SCENARIO, designs, SEEDS)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A run that was begun and let go of, with a lane in it."""
    directory = make(tmp_path / "run")
    lane = directory.lane(DESIGNS["checkpoint"], 7)
    lane.mkdir()
    (lane / "ledger").write_bytes(b"books")
    directory.release()
    return directory.path


def everything(place: Path) -> dict[str, tuple[int, bytes | str | None]]:
    """Every entry below a place, not followed: its kind, and what it holds or leads to. The lock apart."""
    return {
        str(path.relative_to(place)): (
            path.lstat().st_mode,
            str(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else None,
        )
        for path in sorted(place.rglob("*"))
        if path.name != "lock"
    }


def refusal(place: Path, error: type[DurtuiError] = Mistake) -> str:
    """What a person is told who opens `place`: one line that cannot steer a terminal. Nothing in it changes."""
    before = everything(place)
    with pytest.raises(error) as caught:
        RunDirectory.open(place)
    assert str(caught.value).isprintable(), ascii(str(caught.value))
    assert len(str(caught.value)) < 1000
    assert everything(place) == before
    assert not (place / "lock").is_symlink()
    return str(caught.value)


# Ours


def test_a_run_that_was_made_is_opened_as_it_was_made(tmp_path: Path) -> None:
    made = make(tmp_path / "run", ALL[::-1])
    made.release()
    opened = RunDirectory.open(tmp_path / "run")
    assert replace(opened, lock=made.lock) == replace(made, scenario=replace(SCENARIO, email_step=3))
    assert (opened.path, opened.temporary) == (tmp_path / "run", False)
    opened.release()


def test_what_is_run_stands_in_run_json_for_a_person_to_read(place: Path) -> None:
    tree = json.loads((place / "run.json").read_text())
    assert tree["schema"] == "durtui.run/1"
    assert tree["scenario"] == SCENARIO.resolved()
    assert list(tree["scenario"]) == list(PARAMETERS)
    assert (tree["designs"], tree["seeds"]) == (list(DESIGNS), [7, 8])
    assert tree["boot"] == boot_id() != ""
    assert not (place / "run.json.new").exists()


def test_each_lane_has_a_folder_of_its_own_within_the_run(place: Path) -> None:
    directory = RunDirectory.open(place)
    lanes = [directory.lane(design, seed) for design in ALL for seed in SEEDS]
    assert len(set(lanes)) == 6
    assert {lane.parent for lane in lanes} == {place}
    directory.release()


def test_a_new_run_is_for_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        make(tmp_path / "run").release()
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in [tmp_path / "run", *(tmp_path / "run").iterdir()]}
    assert modes == {"run": 0o700, "run.json": 0o600, "lock": 0o600}


def test_a_run_belongs_to_one_at_a_time(tmp_path: Path) -> None:
    directory = make(tmp_path / "run")
    for _ in range(2):
        with pytest.raises(InUse, match=rf"/run is in use by another durtui \(process {os.getpid()}\)"):
            RunDirectory.open(tmp_path / "run")
    directory.release()
    again = RunDirectory.open(tmp_path / "run")
    assert Lock.is_held(tmp_path / "run")
    again.release()
    assert not Lock.is_held(tmp_path / "run")


def test_a_run_is_not_made_where_another_is_being_made(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    lock = Lock.hold(tmp_path / "run")
    with pytest.raises(InUse):
        make(tmp_path / "run")
    lock.release()
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["lock"]
    make(tmp_path / "run").release()


def test_what_a_killed_maker_left_does_not_keep_the_directory_from_being_used(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    Lock.hold(tmp_path / "run").release()
    (tmp_path / "run" / "run.json.new").write_text('{"schema": "durt')
    make(tmp_path / "run").release()
    RunDirectory.open(tmp_path / "run").release()


def test_a_run_is_never_made_over_another_and_the_way_to_go_on_with_that_is_told(place: Path) -> None:
    before = everything(place)
    with pytest.raises(Mistake) as caught:
        make(place)
    assert str(caught.value) == (
        f"run_dir(={place}) must be a new or an empty directory; durtui resume {place} goes on with the run in it"
    )
    assert everything(place) == before
    assert not Lock.is_held(place)


def test_a_removed_run_is_gone_and_nobody_holds_it(place: Path) -> None:
    directory = RunDirectory.open(place)
    directory.remove()
    assert not place.exists()
    make(place).release()


def test_a_run_is_finished_when_every_lane_has_left_its_result(place: Path) -> None:
    directory = RunDirectory.open(place)
    for design in ALL:
        for seed in SEEDS:
            assert not directory.finished
            lane = directory.lane(design, seed)
            lane.mkdir(exist_ok=True)
            (lane / "result.json").touch()
    assert directory.finished
    directory.release()


# Kept runs


def test_kept_runs_are_those_that_nobody_has_oldest_first(state_home: Path) -> None:
    assert kept_runs() == []
    directories = [make(None) for _ in range(3)]
    assert all(directory.temporary for directory in directories)
    assert {directory.path.parent for directory in directories} == {state_home / "durtui" / "runs"}
    (state_home / "durtui" / "runs" / "notes").mkdir()
    assert kept_runs() == []
    directories[0].release()
    directories[2].release()
    assert kept_runs() == sorted([directories[0].path, directories[2].path])
    opened = RunDirectory.open(directories[0].path)
    assert opened.temporary
    assert kept_runs() == [directories[2].path]
    opened.release()
    directories[1].release()


# Another life of the machine


def test_lanes_that_a_restart_cut_short_begin_again_and_finished_ones_stay(
    place: Path, describe_anew: Describe
) -> None:
    finished = place / "checkpoint-seed-8"
    finished.mkdir()
    (finished / "result.json").write_text("{}")
    describe_anew(place, boot="another life")
    directory = RunDirectory.open(place)
    assert directory.clear_lanes_of_another_boot() == 1
    assert {path.name for path in place.iterdir() if path.is_dir()} == {finished.name}
    assert directory.clear_lanes_of_another_boot() == 0
    directory.release()
    RunDirectory.open(place).release()


def test_lanes_of_this_life_of_the_machine_stay(place: Path) -> None:
    directory = RunDirectory.open(place)
    before = everything(place)
    assert directory.clear_lanes_of_another_boot() == 0
    assert everything(place) == before
    directory.release()


# Strangers' ones: what is in them


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """What is somebody's own: it must be as it was, whatever was opened."""
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "diary").write_text("dear diary")
    yield mine
    assert everything(mine) == {"diary": ((mine / "diary").stat().st_mode, b"dear diary")}


def link(path: Path, target: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def hard_link(path: Path, target: Path) -> None:
    path.unlink(missing_ok=True)
    path.hardlink_to(target)


STRANGE: dict[str, Callable[[Path, Path], Any]] = {
    "a link to a file": lambda place, mine: link(place / "checkpoint-seed-7" / "ledger", mine / "diary"),
    "a link in place of run.json": lambda place, mine: link(place / "run.json", copied(place, mine)),
    "a link in place of the draft": lambda place, mine: link(place / "run.json.new", mine / "diary"),
    "a link in place of the lock": lambda place, mine: link(place / "lock", mine / "diary"),
    "a link that leads nowhere": lambda place, mine: link(place / "checkpoint-seed-7" / "store.db", mine / "nothing"),
    "a link in place of a lane": lambda place, mine: link(place / "checkpoint-seed-8", mine),
    "a link within the run": lambda place, _: link(place / "checkpoint-seed-8", place / "checkpoint-seed-7"),
    "a hard link": lambda place, mine: hard_link(place / "checkpoint-seed-7" / "live", mine / "diary"),
    "a hard link as lock": lambda place, mine: hard_link(place / "lock", mine / "diary"),
    "a pipe": lambda place, _: os.mkfifo(place / "checkpoint-seed-7" / "live"),
    "a pipe beside the lanes": lambda place, _: os.mkfifo(place / "note"),
    "a folder in a lane": lambda place, _: (place / "checkpoint-seed-7" / "store.db-wal").mkdir(),
    "a folder with a hostile name": lambda place, _: (place / "checkpoint-seed-7" / HOSTILE).mkdir(),
    "a deep folder": lambda place, _: (place / "/".join("abcdefghij")).mkdir(parents=True),
}


def copied(place: Path, mine: Path) -> Path:
    shutil.copy(place / "run.json", mine.parent / "copy.json")
    return mine.parent / "copy.json"


@pytest.mark.parametrize("kind", STRANGE)
def test_what_leads_out_of_a_run_or_would_hold_us_up_is_refused_and_named(
    place: Path, elsewhere: Path, kind: str
) -> None:
    STRANGE[kind](place, elsewhere)
    before = everything(place)
    with pytest.raises(
        Mistake, match=r"is no file that durtui has made \(a link, or not a file\); remove it$"
    ) as caught:
        RunDirectory.open(place)
    assert str(caught.value).startswith(f"{place}/")
    assert str(caught.value).isprintable()
    assert everything(place) == before


@pytest.fixture
def abyss(place: Path) -> Iterator[Path]:
    """Folders in a lane's, deeper than a stack. They are removed by a program that does not call itself."""
    here = os.open(place / "checkpoint-seed-7", os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    yield place / "checkpoint-seed-7" / "d"
    subprocess.run(["rm", "-rf", place], check=True)


def test_folders_nested_deeper_than_a_stack_are_refused_like_any_other(place: Path, abyss: Path) -> None:
    """A stranger's archive holds them at no cost; a program that follows them by calling itself ends in a traceback."""
    with pytest.raises(Mistake, match="is no file that durtui has made") as caught:
        RunDirectory.open(place)
    assert str(caught.value).startswith(f"{abyss} is no file")


def test_an_empty_directory_with_a_link_in_it_is_no_place_for_a_new_run(tmp_path: Path, elsewhere: Path) -> None:
    for name in ("lock", "run.json.new", "run.json"):
        run = tmp_path / f"of {name}"
        run.mkdir()
        (run / name).symlink_to(elsewhere / "diary")
        with pytest.raises(Mistake):
            make(run)
        assert [path.name for path in run.iterdir()] == [name]


@pytest.mark.parametrize("kind", ["nothing", "a file", "an empty folder", "a folder of other things"])
def test_a_place_that_holds_no_run_is_told_so_and_left_as_it_is(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "place"
    if kind == "a file":
        place.write_text("mine")
    elif kind != "nothing":
        place.mkdir()
        if kind == "a folder of other things":
            (place / "run.json").mkdir()
            (place / "diary").write_text("mine")
    assert refusal(place) == f"{place} holds no run: there is no run.json in it"


# Strangers' ones: what they say


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"7",
        b"\xff\xfe{}",
        b"not JSON",
        b'{"schema": "durtui.run/1"',
        b'{"schema": "durtui.run/1"}',
        b"[" * 200_000,
        b'{"a": ' * 100_000 + b"1" + b"}" * 100_000,
        b'{"scenario": ' + b"[" * 200_000,
        b'{"\x1b[2J": "\x1b[2J"}',
        b"\x1b[2J\x1b]0;owned\x07",
        b'{"seeds": [' + b"7," * 2_000_000,
        b" " * 3_000_000 + b"{}",
        b'{"seeds": [1e999], "a": NaN}',
    ],
    ids=lambda text: repr(text[:16]),
)
def test_a_description_that_is_none_is_refused_in_one_line(place: Path, text: bytes) -> None:
    (place / "run.json").write_bytes(text)
    assert refusal(place, Damaged).startswith(f"{place}/run.json does not describe a run (")
    assert not Lock.is_held(place)


def test_a_description_of_more_than_a_mebibyte_is_not_read_to_its_end(place: Path, describe_anew: Describe) -> None:
    describe_anew(place, seeds=list(range(300_000)))
    assert (place / "run.json").stat().st_size > 1 << 20
    refusal(place, Damaged)


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("schema", 1),
        ("scenario", []),
        ("scenario", {"jobs": [20]}),
        ("scenario", {"jobs": {"x": 1}}),
        ("designs", "checkpoint"),
        ("designs", [1]),
        ("seeds", 7),
        ("seeds", ["7"]),
        ("seeds", [7.5]),
        ("boot", 1),
        ("boot", None),
    ],
    ids=str,
)
def test_a_part_of_another_kind_is_refused_and_named(
    place: Path, describe_anew: Describe, part: str, value: object
) -> None:
    describe_anew(place, **{part: value})
    assert f"$.{part}" in refusal(place, Damaged)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"schema": "durtui.run/2"}, "run.json: schema(=durtui.run/2) must be durtui.run/1"),
        ({"designs": ["hope"]}, "run.json: design(=hope) must be one of"),
        ({"designs": ["../../mine"]}, "run.json: design(=../../mine) must be one of"),
        ({"seeds": [-1]}, "run.json: seed(=-1) must be"),
        ({"seeds": [10**30]}, "run.json: seed(=1000000000000000000000000000000) must be"),
        ({"seeds": [2**63]}, "run.json: seed(=9223372036854775808) must be"),
        ({"scenario": {"jobz": 1}}, "run.json: jobz is not a parameter"),
        ({"scenario": {"jobs": 0}}, "run.json: jobs(=0) must be a whole number between 1 and 10,000,000"),
        ({"scenario": {"jobs": 10**9}}, "run.json: jobs(=1000000000) must be"),
        ({"scenario": {"jobs": 20.0}}, "run.json: jobs(=20.0) must be"),
        ({"scenario": {"jobs": "20"}}, "run.json: jobs(=20) must be"),
        ({"scenario": {"jobs": None}}, "run.json: jobs(=None) must be"),
        ({"scenario": {"crash_point": "never"}}, "run.json: crash_point(=never) must be one of"),
        ({"scenario": {"poison_rate": 0.5}}, "run.json: poison_rate(=0.5) is not yet built"),
        ({"scenario": {"email_step": 9, "steps": 3}}, "run.json: email_step(=9) must be between 1 and steps(=3)"),
    ],
    ids=str,
)
def test_a_run_that_cannot_be_is_refused_by_what_it_says_and_its_rule(
    place: Path, describe_anew: Describe, changes: dict[str, Any], named: str
) -> None:
    describe_anew(place, **changes)
    assert refusal(place).startswith(f"{place}/{named}")
    assert not Lock.is_held(place)


@pytest.mark.parametrize(
    "changes",
    [
        {"schema": HOSTILE},
        {"schema": HOSTILE * 500},
        {"designs": [HOSTILE]},
        {"designs": [HOSTILE * 500]},
        {"scenario": {HOSTILE: 1}},
        {"scenario": {HOSTILE * 500: 1}},
        {"scenario": {"jobs": HOSTILE}},
        {"scenario": {"crash_point": HOSTILE}},
        {"scenario": {"crash_point": HOSTILE * 500}},
    ],
    ids=lambda changes: ascii(changes)[:40],
)
def test_no_text_of_a_stranger_reaches_the_terminal_as_it_is_nor_at_its_length(
    place: Path, describe_anew: Describe, changes: dict[str, Any]
) -> None:
    describe_anew(place, **changes)
    assert "\\x1b]0;owned" in refusal(place)


@pytest.mark.parametrize(
    "changes", [{"seeds": [9]}, {"designs": ["whole-job"]}, {"scenario": {"jobs": 21}}, {"boot": "x"}], ids=str
)
def test_a_description_in_which_a_value_was_written_over_is_damaged(place: Path, changes: dict[str, Any]) -> None:
    """Without its check it would be that of another run, and give other figures without a word."""
    tree = json.loads((place / "run.json").read_text())
    (place / "run.json").write_text(json.dumps(tree | changes))
    assert refusal(place, Damaged).startswith(f"{place}/run.json is not what durtui wrote: it was written over")


def test_the_same_description_in_another_hand_is_that_of_the_same_run(place: Path, describe_anew: Describe) -> None:
    describe_anew(place)
    tree = json.loads((place / "run.json").read_text())
    (place / "run.json").write_text(json.dumps(tree, indent=7, ensure_ascii=True))
    directory = RunDirectory.open(place)
    assert directory.seeds == SEEDS
    directory.release()
