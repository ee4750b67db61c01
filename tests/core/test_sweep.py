"""Sweeps: the points that were asked for, the same faults at each, exports that hold everything."""

import csv
import io
import json
from typing import get_args

import pytest

from durcore.designs import DEFAULT_DESIGNS
from durcore.errors import Mistake
from durcore.figures import FIGURE_NAMES
from durcore.model import simulate
from durcore.scenario import CrashPoint, Scenario
from durcore.sweep import Point, parse_axis, sweep, sweep_csv, sweep_json
from durcore.theory import expect

SMALL = Scenario(jobs=300)


@pytest.mark.parametrize(
    ("text", "name", "values"),
    [
        ("steps=5:50:15", "steps", (5, 20, 35, 50)),
        ("steps=1:10:4", "steps", (1, 5, 9)),
        ("transient-rate=0:0.3:0.1", "transient_rate", (0.0, 0.1, 0.2, 0.3)),
        ("--crash-rate=0.01,0.5", "crash_rate", (0.01, 0.5)),
        ("crash_point=before-work,after-work", "crash_point", ("before-work", "after-work")),
        ("crash_point=all", "crash_point", get_args(CrashPoint)),
        ("steps=7:7:1", "steps", (7,)),
    ],
)
def test_an_axis_has_the_points_of_decimal_arithmetic_its_high_end_included(
    text: str, name: str, values: tuple[object, ...]
) -> None:
    axis = parse_axis(text)
    assert (axis.name, axis.values) == (name, values)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("steps", "FIELD=LOW:HIGH:STEP"),
        ("colour=1:2:1", "FIELD one of"),
        ("steps=1:2", "three numbers"),
        ("steps=a:b:c", "three numbers"),
        ("steps=1:10:0", "STEP above 0"),
        ("steps=10:1:1", "HIGH of at least LOW"),
        ("steps=1:inf:1", "STEP above 0"),
        ("crash_rate=0:1:0.00001", "at most 10,000 points"),
        ("steps=0:5:1", r"steps\(=0\) must be"),
        ("steps=1:5:0.5", r"steps\(=1.5\) must be a whole number"),
        ("steps=all", r"steps\(=all\) must be a whole number"),
        ("steps=", r"steps\(=\) must be"),
    ],
)
def test_an_axis_that_is_none_is_refused_with_its_rule(text: str, rule: str) -> None:
    with pytest.raises(Mistake, match=rule):
        parse_axis(text)


def test_a_scenario_that_cannot_be_is_refused_before_any_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("durcore.sweep.simulate", None)
    with pytest.raises(Mistake, match=r"email_step=1:12:1\) at 11"):
        sweep(SMALL, parse_axis("email_step=1:12:1"))


def test_each_point_is_the_theory_and_the_model_of_its_own_scenario() -> None:
    points = sweep(SMALL, parse_axis("steps=2:8:3"), seed=11)
    for point in points:
        scenario = Scenario(jobs=300, steps=int(point.value))
        assert point.scenario == scenario
        assert point.expected == expect(scenario)
        assert point.figures == simulate(scenario, 11)


def test_the_real_lab_samples_the_same_figures_as_the_model() -> None:
    axis = parse_axis("crash_rate=0.01,0.2")
    model, real = (sweep(Scenario(jobs=60), axis, real=real) for real in (False, True))
    assert [dict(point.figures) for point in real] == [dict(point.figures) for point in model]


@pytest.mark.parametrize("text", ["transient_rate=0:0.2:0.01", "crash_rate=0:0.2:0.01"])
def test_a_job_that_is_lost_stays_lost_when_a_rate_rises(text: str) -> None:
    lost = [point.figures["whole-job"].lost for point in sweep(SMALL, parse_axis(text))]
    assert lost == sorted(lost)
    assert lost[0] < lost[-1]


def test_an_email_step_that_nobody_set_follows_the_steps() -> None:
    points = sweep(SMALL, parse_axis("steps=3:9:3"))
    assert [point.scenario.effect_step for point in points] == [3, 6, 6]


def test_progress_counts_the_points() -> None:
    told: list[tuple[int, int]] = []
    sweep(SMALL, parse_axis("steps=2:6:2"), on_progress=lambda done, total: told.append((done, total)))
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]


@pytest.fixture(scope="module")
def points() -> list[Point]:
    return sweep(SMALL, parse_axis("steps=2:6:2"))


def test_the_csv_has_every_figure_with_its_mean_and_deviation(points: list[Point]) -> None:
    rows = list(csv.DictReader(io.StringIO(sweep_csv(parse_axis("steps=2:6:2"), points, 7))))
    assert len(rows) == 3 * len(DEFAULT_DESIGNS)
    for row, (point, name) in zip(rows, [(p, n) for p in points for n in DEFAULT_DESIGNS], strict=True):
        assert (float(row["steps"]), row["design"], row["seed"]) == (point.value, name, "7")
        for figure in FIGURE_NAMES:
            assert float(row[figure]) == getattr(point.figures[name], figure)
            moment = getattr(point.expected[name], figure)
            assert (float(row[f"{figure}_mean"]), float(row[f"{figure}_sd"])) == (moment.mean, moment.sd)


def test_the_json_has_everything_and_the_command_that_gives_it_again(points: list[Point]) -> None:
    tree = json.loads(sweep_json(SMALL, parse_axis("steps=2:6:2"), points, 7, DEFAULT_DESIGNS))
    assert tree["schema"] == "durtui.sweep/1"
    assert tree["command"].startswith("durtui sweep steps=2:6:2 --jobs 300")
    assert tree["field"] == "steps"
    assert [point["value"] for point in tree["points"]] == [2, 4, 6]
    for shown, point in zip(tree["points"], points, strict=True):
        for design in shown["designs"]:
            assert design["figures"] == point.figures[design["name"]].as_dict()
            assert set(design["expected"]) == set(FIGURE_NAMES)
