"""Snapshots: a run that someone else can run again, in which any altered value is named, and no file is trusted."""

import copy
import json
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from durcore import snapshot as snapshot_module
from durcore.designs import DESIGNS, find_designs
from durcore.errors import DurtuiError, Mistake, NotVerified
from durcore.figures import FIGURE_NAMES
from durcore.lab import LabResult, run_lab
from durcore.scenario import PARAMETERS, Scenario, check_seed
from durcore.snapshot import (
    MEASURED,
    SCHEMA,
    SIZE_MAX,
    as_snapshot,
    differences,
    filesystem_of,
    reproduce,
    to_json,
    verify,
)

Key = str | int
Tree = dict[str, Any]
TINY = Scenario(jobs=12, steps=2, transient_rate=0.2, crash_rate=0.2, job_attempts=2)


@pytest.fixture(scope="module")
def tree(small_lab: LabResult, tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """The snapshot of the small lab as a reader gets it."""
    loaded: Tree = json.loads(to_json(small_lab, tmp_path_factory.mktemp("run")))
    return loaded


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """The snapshot of a lab that takes no time to run again."""
    result = run_lab(TINY, seeds=(1,), designs=["whole-job"])
    loaded: Tree = json.loads(to_json(result, tmp_path_factory.mktemp("run")))
    return loaded


def leaves(tree: Any, at: tuple[Key, ...] = ()) -> Iterator[tuple[Key, ...]]:
    """The place of every value that holds no other, but for what was measured."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            if key not in MEASURED:
                yield from leaves(value, (*at, key))
    elif isinstance(tree, list) and tree:
        for index, value in enumerate(tree):
            yield from leaves(value, (*at, index))
    else:
        yield at


def path_of(place: tuple[Key, ...]) -> str:
    """A place as an error names it: `designs[0].median.finished`."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in place).removeprefix(".")


def value_at(tree: Any, place: tuple[Key, ...]) -> Any:
    for key in place:
        tree = tree[key]
    return tree


def altered(tree: Tree, place: tuple[Key, ...], value: Any) -> Tree:
    other = copy.deepcopy(tree)
    value_at(other, place[:-1])[place[-1]] = value
    return other


def another(value: Any) -> Any:
    """A value like `value`, and as near to it as a person who tampers would stay."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value * 1.001 + 1 if isinstance(value, int) else value * 1.001 + 1e-4
    return {"str": "x", "list": [1], "NoneType": 0}[type(value).__name__]


def refusal(data: bytes | Tree, error: type[DurtuiError] = Mistake) -> str:
    """What a person reads who verifies `data`: one line that cannot steer a terminal."""
    with pytest.raises(error) as caught:
        verify(data if isinstance(data, bytes) else json.dumps(data).encode())
    message = str(caught.value)
    assert message.isprintable(), ascii(message)
    return message


# What is in one


def test_a_snapshot_has_the_contracts_names(tree: Tree, small_lab: LabResult) -> None:
    assert set(tree) >= {"schema", "scenario", "seeds", "interventions", "designs", "environment"}
    assert tree["schema"] == "durtui.snapshot/1"
    assert tree["scenario"] == small_lab.scenario.resolved()
    assert list(tree["scenario"]) == list(PARAMETERS)
    assert tree["scenario"]["email_step"] == 5  # resolved: the last of five steps
    assert (tree["seeds"], tree["interventions"]) == ([3, 4], [])
    assert set(tree["environment"]) == {"durtui", "python", "sqlite", "platform", "filesystem"}
    assert all(tree["environment"].values())
    assert [design["name"] for design in tree["designs"]] == list(DESIGNS)
    for design in tree["designs"]:
        assert list(design["median"]) == list(FIGURE_NAMES)
        assert [replication["seed"] for replication in design["replications"]] == [3, 4]
        for replication in design["replications"]:
            assert list(replication["figures"]) == list(FIGURE_NAMES)
            assert replication["elapsed_s"] > 0
            assert replication["workers_killed"] == 0  # here a crash unwinds
            writes = replication["checkpoint_write_us"]
            assert (writes is None) == (design["name"] == "whole-job")
            if writes:
                assert set(writes) == {"count", "mean", "median", "p99", "max"}
                assert writes["count"] == replication["figures"]["checkpoint_writes"]


def test_two_runs_of_one_scenario_are_the_same_but_for_timings_and_environment(tmp_path: Path) -> None:
    first, second = (as_snapshot(run_lab(TINY, seeds=(5, 6)), tmp_path) for _ in range(2))
    measured = [each["designs"][1]["replications"][0]["elapsed_s"] for each in (first, second)]

    def without_measured(tree: Any) -> Any:
        if isinstance(tree, dict):
            return {key: without_measured(value) for key, value in tree.items() if key not in MEASURED}
        return [without_measured(value) for value in tree] if isinstance(tree, list) else tree

    assert measured[0] != measured[1]
    assert json.dumps(without_measured(first)) == json.dumps(without_measured(second))


def test_the_command_gives_the_figures_again(tree: Tree, small_lab: LabResult) -> None:
    command = tree["command"]
    assert shlex.split(command) == command.split() == reproduce(small_lab).split()
    program, run, *words = command.split()
    assert (program, run) == ("durtui", "run")
    by_flag = {parameter.flag: parameter for parameter in PARAMETERS.values()}
    values: dict[str, Any] = {}
    designs, numbers = [], {}
    for flag, text in zip(words[::2], words[1::2], strict=True):
        if flag in by_flag:
            values[by_flag[flag].name] = by_flag[flag].parse(text)
        elif flag == "--design":
            designs.append(text)
        else:
            numbers[flag] = int(text)
    assert set(values) == set(PARAMETERS)
    assert designs == list(DESIGNS)
    assert numbers == {"--seed": 3, "--replications": 2}
    again = run_lab(Scenario.from_values(values), range(3, 5), designs)
    assert [each.median for each in again.values()] == [each.median for each in small_lab.values()]


def test_seeds_with_gaps_have_no_command(small_lab: LabResult) -> None:
    for seeds in ((3, 5), (4, 3)):
        with pytest.raises(Mistake, match=r"seeds\(=.*must follow one another"):
            reproduce(replace(small_lab, seeds=seeds))


def test_the_file_system_is_that_of_the_nearest_mount() -> None:
    mounts = {line.split()[1]: line.split()[2] for line in Path("/proc/self/mounts").read_text().splitlines()}
    assert filesystem_of(Path("/")) == mounts["/"]
    assert filesystem_of(Path("/proc/self")) == "proc"


# Verifying


def test_a_snapshot_verifies_and_tells_its_progress(tiny: Tree) -> None:
    told: list[tuple[int, int]] = []
    result = verify(json.dumps(tiny).encode(), on_progress=lambda *at: told.append(at))
    assert told[-1] == (12, 12)
    assert result["whole-job"].median.as_dict() == tiny["designs"][0]["median"]


def test_a_snapshot_of_workers_that_really_died_verifies(tmp_path: Path) -> None:
    result = run_lab(replace(TINY, crash_mode="sigkill"), seeds=(1,), designs=["whole-job"])
    (replication,) = result["whole-job"].replications
    assert replication.workers_killed > 0
    snapshot = as_snapshot(result, tmp_path)
    assert snapshot["designs"][0]["replications"][0]["workers_killed"] == replication.workers_killed
    verify(to_json(result, tmp_path))


def test_an_older_snapshot_without_the_workers_killed_verifies(tiny: Tree) -> None:
    older = copy.deepcopy(tiny)
    del older["designs"][0]["replications"][0]["workers_killed"]
    verify(json.dumps(older).encode())


def test_a_snapshot_of_a_newer_version_with_more_in_it_verifies(tiny: Tree) -> None:
    newer = altered(tiny, ("weather",), "fine")
    newer["designs"][0]["replications"][0]["figures"]["new_figure"] = 1
    verify(json.dumps(newer).encode())


def test_a_snapshot_is_no_different_from_itself(tree: Tree) -> None:
    assert list(differences(copy.deepcopy(tree), tree)) == []


def test_what_was_measured_is_passed_over(tree: Tree) -> None:
    other = copy.deepcopy(tree)
    other["environment"] = {"python": "9.9"}
    for design in other["designs"]:
        for replication in design["replications"]:
            replication["elapsed_s"] += 1
            replication["workers_killed"] += 1
            replication["checkpoint_write_us"] = None
    assert list(differences(other, tree)) == []


def test_any_altered_value_is_named_by_its_path(tree: Tree) -> None:
    places = list(leaves(tree))
    assert len(places) > 16 * 3 * 3  # at the least every figure of every replication and median
    for place in places:
        value = value_at(tree, place)
        other = another(value)
        assert list(differences(altered(tree, place, other), tree)) == [(path_of(place), other, value)]


def test_any_missing_value_is_named_by_its_path(tree: Tree) -> None:
    for place in leaves(tree):
        other = copy.deepcopy(tree)
        del value_at(other, place[:-1])[place[-1]]
        (difference,) = differences(other, tree)
        expected = place if isinstance(place[-1], str) else place[:-1]  # a shorter list is named as a whole
        assert difference[0] == path_of(expected)


def test_a_replication_more_is_named(tree: Tree) -> None:
    other = copy.deepcopy(tree)
    other["designs"][1]["replications"].append(other["designs"][1]["replications"][0])
    assert [path for path, _, _ in differences(other, tree)] == ["designs[1].replications"]


def test_a_figure_is_compared_exactly_and_an_expectation_within_a_billionth() -> None:
    def snapshot(kind: str, value: float) -> Tree:
        return {"designs": [{kind: {"model_calls": {"mean": value}}}]}

    def differ(kind: str, factor: float) -> bool:
        return bool(list(differences(snapshot(kind, 24257.8 * factor), snapshot(kind, 24257.8))))

    assert differ("median", 1 + 1e-15)
    assert not differ("expected", 1 + 1e-10)
    assert differ("expected", 1 + 1e-8)
    assert not differ("expected", 1)


def test_a_truth_value_is_no_number() -> None:
    assert list(differences({"lost": False}, {"lost": 0})) == [("lost", False, 0)]
    assert list(differences({"lost": 0.0}, {"lost": 0})) == []


FIGURE = ("designs", 0, "replications", 0, "figures", "model_calls")


@pytest.mark.parametrize(
    "place",
    [
        FIGURE,
        ("designs", 0, "replications", 0, "figures", "emails_delivered"),
        ("designs", 0, "replications", 0, "seed"),
        ("designs", 0, "median", "lost"),
        ("command",),
    ],
    ids=path_of,
)
def test_verify_names_an_altered_value_with_what_is_there_and_what_should_be(
    tiny: Tree, place: tuple[Key, ...]
) -> None:
    value = value_at(tiny, place)
    message = refusal(altered(tiny, place, another(value)), NotVerified)
    assert message.startswith(f"{path_of(place)} is ")
    if place == FIGURE:
        assert message == f"{path_of(place)} is {another(value)} in the snapshot, and this run gives {value}"


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("scenario", "jobs"), 13),
        (("scenario", "transient_rate"), 0.21),
        (("scenario", "cost_per_call_usd"), 0.02),
        (("scenario", "output_bytes"), 17),
        (("scenario", "locking"), "exclusive"),
        (("scenario", "email_step"), None),
        (("seeds", 0), 2),
        (("designs", 0, "name"), "checkpoint"),
    ],
    ids=str,
)
def test_verify_notices_an_altered_cause_and_shows_two_values_that_differ(
    tiny: Tree, place: tuple[Key, ...], value: Any
) -> None:
    message = refusal(altered(tiny, place, value), NotVerified)
    shown = re.fullmatch(r"(\S+) is (.*) in the snapshot, and this run gives (.*)", message)
    assert shown is not None, message
    assert shown[2] != shown[3], message


# Files from strangers


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"7",
        b'"durtui.snapshot/1"',
        b"# durtui: 2,000 jobs",
        b"\xff\xfe{}",
        b"{'schema': 1}",
        b'{"schema": "durtui.snapshot/1"}',
        b'{"schema": "durtui.snapshot/1", ',
        b'{"a": NaN}',
        b"\x1b[2J\x1b]0;owned\x07",
        b'{"\x1b[2J": "\x1b[2J"}',
        b"[" * 200_000,
        b'{"a": ' * 100_000 + b"1" + b"}" * 100_000,
    ],
    ids=lambda data: repr(data[:20]),
)
def test_what_is_no_snapshot_is_refused_in_one_line(data: bytes) -> None:
    assert refusal(data).startswith("this is not a snapshot: ")


@pytest.mark.parametrize("key", ["schema", "scenario", "seeds", "interventions", "designs"])
def test_a_snapshot_without_what_it_takes_to_run_it_again_is_refused(tiny: Tree, key: str) -> None:
    assert key in refusal({name: value for name, value in tiny.items() if name != key})


@pytest.mark.parametrize(
    ("place", "value", "names"),
    [
        (("schema",), "durtui.snapshot/2", "must be durtui.snapshot/1"),
        (("schema",), 1, "schema"),
        (("complete",), False, "under way"),
        (
            ("interventions",),
            [{"design": "checkpoint", "kind": "kill", "first": 1, "count": 1}],
            "must be in a design that is run",
        ),
        (("interventions",), [{"design": "whole-job", "kind": "kill", "first": 0, "count": 1}], "first(=0)"),
        (("interventions",), [{"design": "whole-job", "kind": "kill", "first": 1}], "count"),
        (("interventions",), ["kill"], "interventions"),
        (("seeds",), "7", "seeds"),
        (("seeds",), [], "seed"),
        (("seeds",), [1.5], "seeds"),
        (("seeds",), [-1], "seed(=-1)"),
        (("seeds",), [2**63], "seed"),
        (("seeds",), [10**30], "seed"),
        (("seeds",), [1, 1], "must differ"),
        (("designs",), [], "design"),
        (("designs",), [{"title": "x"}], "name"),
        (("designs", 0, "name"), "hope", "design(=hope)"),
        (("scenario", "jobs"), 0, "jobs(=0) must be a whole number between 1 and 10,000,000"),
        (("scenario", "jobs"), 10**30, "jobs(="),
        (("scenario", "jobs"), 12.0, "jobs(=12.0)"),
        (("scenario", "jobs"), "12", "jobs(=12)"),
        (("scenario", "jobs"), [12], "scenario"),
        (("scenario", "crash_rate"), 0.9, "at most 1"),
        (("scenario", "stepz"), 1, "stepz is not a parameter"),
    ],
    ids=str,
)
def test_a_snapshot_that_cannot_be_run_again_is_refused_before_anything_is_run(
    tiny: Tree, monkeypatch: pytest.MonkeyPatch, state_home: Path, place: tuple[Key, ...], value: Any, names: str
) -> None:
    monkeypatch.setattr("durcore.lab.LaneProcess", None)
    assert names in refusal(altered(tiny, place, value))


def test_seeds_that_no_command_can_give_are_refused_before_anything_is_run(
    tiny: Tree, monkeypatch: pytest.MonkeyPatch, state_home: Path
) -> None:
    monkeypatch.setattr("durcore.lab.LaneProcess", None)
    assert "must follow one another" in refusal(altered(tiny, ("seeds",), [1, 3]))


def test_a_file_beyond_the_limit_is_refused_by_its_size_and_one_below_is_read(tiny: Tree) -> None:
    assert refusal(b" " * (SIZE_MAX + 1)) == "a snapshot has at most 16,777,216 bytes, this has more"
    data = json.dumps(tiny).encode()
    verify(data + b" " * (SIZE_MAX - len(data)))


HOSTILE = "\x1b]0;owned\x07\x1b[2J\n\x9b31m\u202e" * 3


@pytest.fixture
def runs_nothing(small_lab: LabResult, monkeypatch: pytest.MonkeyPatch) -> None:
    """Verify compares with the small lab's result at once; what would be refused before a run still is."""

    def run_nothing(_: Scenario, seeds: Sequence[int], designs: Sequence[str], **__: object) -> LabResult:
        find_designs(designs)
        for seed in seeds:
            check_seed(seed)
        return small_lab

    monkeypatch.setattr(snapshot_module, "run_lab", run_nothing)


@pytest.mark.usefixtures("runs_nothing")
def test_no_hostile_value_reaches_the_message_raw(tree: Tree) -> None:
    raw = []
    for place in leaves(tree):
        with pytest.raises(DurtuiError) as caught:
            verify(json.dumps(altered(tree, place, HOSTILE)).encode())
        if not str(caught.value).isprintable():
            raw.append(f"{path_of(place)}: {str(caught.value)!a}")
    assert raw == []


@pytest.mark.usefixtures("runs_nothing")
def test_no_hostile_key_reaches_the_message_raw(tree: Tree) -> None:
    def renamed(at: Any, place: tuple[Key, ...]) -> None:
        holder = value_at(at, place[:-1])
        holder[HOSTILE] = holder.pop(place[-1])

    def added(at: Any, place: tuple[Key, ...]) -> None:
        value_at(at, place[:-1])[HOSTILE] = 1

    raw = []
    ways: list[Callable[[Any, tuple[Key, ...]], None]] = [renamed, added]
    for place in leaves(tree):
        for way in ways:
            other = copy.deepcopy(tree)
            if not isinstance(place[-1], str):
                continue
            way(other, place)
            try:
                verify(json.dumps(other).encode())
            except DurtuiError as error:
                if not str(error).isprintable():
                    raw.append(f"{path_of(place)}: {str(error)!a}")
    assert raw == []


def test_the_schema_that_is_written_is_the_one_that_is_read(tree: Tree) -> None:
    assert tree["schema"] == SCHEMA
