"""A run that is gone on with: what it gives, what it refuses, whom it tells, and that nobody else gets in meanwhile."""

import json
import os
import shlex
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from durcore.designs import DESIGNS
from durcore.errors import InUse, LaneDamaged, LaneFailed, Mistake
from durcore.lab import LabResult, Replication, how_to_resume, resume_lab, run_lab
from durcore.lock import Lock
from durcore.rundir import RunDirectory
from durcore.scenario import Scenario

SCENARIO = Scenario(jobs=40, steps=4, transient_rate=0.2, crash_rate=0.2, redeliveries_max=3)
SEEDS = (3, 4)
LONG = Scenario(jobs=1500, steps=4)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "run"


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, LabResult]:
    """A run that came to its end and was kept, and its result."""
    place = tmp_path_factory.mktemp("kept") / "run"
    return place, run_lab(SCENARIO, SEEDS, run_dir=place)


@pytest.fixture
def finished(kept: tuple[Path, LabResult], place: Path) -> LabResult:
    """The result of a run that came to its end in `place`, which knows nothing of having been elsewhere."""
    there, result = kept
    shutil.copytree(there, place)
    return result


def replications(result: LabResult) -> dict[tuple[str, int], Replication]:
    return {(name, each.seed): each for name, design in result.items() for each in design.replications}


def figures(result: LabResult) -> dict[tuple[str, int], dict[str, float]]:
    return {place: each.figures.as_dict() for place, each in replications(result).items()}


def notes(error: BaseException) -> str:
    return "\n".join(getattr(error, "__notes__", []))


def interrupted(place: Path | None) -> str:
    """Interrupt a long run when some of its jobs have ended; what its person is told."""

    def interrupt(ended: int, _: int) -> None:
        if ended:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        run_lab(LONG, (7,), run_dir=place, on_progress=interrupt)
    return notes(caught.value)


def test_an_interrupted_run_ends_with_the_figures_of_one_that_was_not(place: Path) -> None:
    assert interrupted(place) == f"the run is kept: `durtui resume {place}` goes on with it"
    told: list[tuple[int, int]] = []
    result = resume_lab(place, on_progress=lambda *at: told.append(at))
    assert figures(result) == figures(run_lab(LONG, (7,)))
    assert (result.scenario, result.seeds, tuple(result), result.complete) == (
        replace(LONG, email_step=4),
        (7,),
        tuple(DESIGNS),
        True,
    )
    assert told[-1] == (4500, 4500)
    assert all(each.judged is not None for each in replications(result).values())


def test_a_run_without_a_directory_of_its_own_is_removed_once_it_was_resumed_to_its_end(state_home: Path) -> None:
    interrupted(None)
    (kept,) = (state_home / "durtui" / "runs").iterdir()
    assert figures(resume_lab(kept)) == figures(run_lab(LONG, (7,)))
    assert list((state_home / "durtui" / "runs").iterdir()) == []


def test_a_finished_run_gives_its_result_again_with_its_timings(finished: LabResult, place: Path) -> None:
    before = {path: path.read_bytes() for path in place.rglob("ledger")}
    again = resume_lab(place)
    assert replications(again) == replications(finished)
    assert {path: path.read_bytes() for path in place.rglob("ledger")} == before
    assert len(before) == 6


@pytest.mark.usefixtures("finished")
@pytest.mark.parametrize("lost", ["store.db", "ledger", "result.json", "all of it"])
def test_a_lane_that_lost_files_ends_as_it_would_have_or_is_refused_and_named(
    finished: LabResult, place: Path, lost: str
) -> None:
    """Without its store or its ledger it is damaged; without its result it is counted; without anything it begins."""
    lane = place / "checkpoint-seed-4"
    if lost == "all of it":
        shutil.rmtree(lane)
    else:
        (lane / lost).unlink()
    if lost in ("store.db", "ledger"):
        with pytest.raises(LaneDamaged, match=rf"lane checkpoint, seed 4: {lane / lost} is gone") as caught:
            resume_lab(place)
        assert f"`durtui resume {place} --rerun-damaged`" in notes(caught.value)
    told: list[str] = []
    result = resume_lab(place, rerun_damaged=True, on_note=told.append)
    assert figures(result) == figures(finished)
    assert len(told) == (lost in ("store.db", "ledger"))
    assert all(f"{lane / lost} is gone" in each and "begins again from its seed" in each for each in told)


def test_a_figure_that_was_altered_in_a_result_is_refused_and_named(finished: LabResult, place: Path) -> None:
    result = place / "whole-job-seed-3" / "result.json"
    tree = json.loads(result.read_text())
    tree["tally"]["finished"] += 1
    result.write_text(json.dumps(tree))
    with pytest.raises(LaneDamaged, match=rf"{result} is not what .*ledger and store\.db add up to"):
        resume_lab(place)
    assert figures(resume_lab(place, rerun_damaged=True)) == figures(finished)


def test_lanes_under_way_when_the_machine_went_down_begin_again_and_finished_ones_are_kept(
    finished: LabResult, place: Path, describe_anew: Callable[..., None]
) -> None:
    (place / "checkpoint-seed-4" / "result.json").unlink()
    description = json.loads((place / "run.json").read_text())
    assert description["boot"]
    describe_anew(place, boot="another")
    told: list[str] = []
    again = resume_lab(place, on_note=told.append)
    assert told == ["this machine has been restarted since, or it is another one: 1 lanes begin again"]
    assert figures(again) == figures(finished)
    ran_again = {at for at, each in replications(again).items() if each != replications(finished)[at]}
    assert ran_again == {("checkpoint", 4)}
    assert json.loads((place / "run.json").read_text()) == description
    resume_lab(place, on_note=told.append)
    assert len(told) == 1


@pytest.mark.usefixtures("finished")
def test_a_run_that_somebody_has_is_refused_to_everybody_else_and_left_alone(place: Path) -> None:
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file() and path.name != "lock"}
    lock = Lock.hold(place)
    with pytest.raises(InUse, match=rf"{place} is in use by another durtui \(process {os.getpid()}\)"):
        resume_lab(place)
    lock.release()
    assert {path: path.read_bytes() for path in before} == before
    resume_lab(place)


@pytest.mark.parametrize("how", ["its end", "a failure", "a refusal"])
def test_whatever_becomes_of_a_run_somebody_else_can_have_its_directory(
    finished: LabResult, place: Path, describe_anew: Callable[..., None], how: str
) -> None:
    if how == "a failure":
        (place / "checkpoint-seed-4" / "ledger").write_bytes(b"noise")
        with pytest.raises(LaneFailed):
            resume_lab(place)
    elif how == "a refusal":
        describe_anew(place, seeds=[3, 3])
        with pytest.raises(Mistake, match="must differ"):
            resume_lab(place)
    assert not Lock.is_held(place)


@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        ("seeds", [], "needs at least one seed"),
        ("seeds", [3, 3], r"seeds\(=\[3, 3\]\) must differ"),
        ("designs", [], "needs at least one design"),
    ],
)
@pytest.mark.usefixtures("finished")
def test_a_run_of_nothing_is_refused(
    place: Path, describe_anew: Callable[..., None], part: str, value: object, message: str
) -> None:
    describe_anew(place, **{part: value})
    with pytest.raises(Mistake, match=message):
        resume_lab(place)


def test_workers_that_really_die_are_refused_where_no_process_can_fork(
    place: Path, state_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dying = replace(SCENARIO, crash_mode="sigkill")
    run_lab(replace(dying, jobs=5), (3,), ["checkpoint"], run_dir=place)
    monkeypatch.delattr(os, "fork")
    message = r"crash_mode\(=sigkill\) needs a system that can fork, .*; use raise$"
    with pytest.raises(Mistake, match=message):
        run_lab(dying, SEEDS)
    with pytest.raises(Mistake, match=message):
        resume_lab(place)
    assert not state_home.exists()
    assert not Lock.is_held(place)


def test_the_words_to_resume_a_run_are_words_that_a_shell_takes(tmp_path: Path) -> None:
    place = tmp_path / "it's here; rm -rf"
    directory = RunDirectory.create(place, SCENARIO, tuple(DESIGNS.values()), SEEDS)
    for error, words in ((None, []), (LaneFailed("x"), []), (LaneDamaged("x"), ["--rerun-damaged"])):
        (command,) = how_to_resume(directory, error).split("`")[1::2]
        assert shlex.split(command) == ["durtui", "resume", str(place), *words]
    directory.release()


def test_workers_that_die_are_refused_where_a_system_cannot_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "fork")
    with pytest.raises(
        Mistake, match=r"^crash_mode\(=sigkill\) needs a system that can fork, and \w+ cannot; use raise$"
    ):
        run_lab(Scenario(jobs=2, crash_mode="sigkill"), seeds=(1,))
    run_lab(Scenario(jobs=2), seeds=(1,))
