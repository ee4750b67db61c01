"""Sweeps: every figure of every design along one parameter, expected and sampled. Common random numbers make it smooth:
a job that failed at 3 % still fails at 4 %."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec

from durcore.designs import DEFAULT_DESIGNS, find_designs
from durcore.errors import InvalidScenario, Mistake, shown
from durcore.figures import FIGURE_NAMES, Figures
from durcore.lab import run_lab
from durcore.model import simulate
from durcore.scenario import PARAMETERS, Scenario, check_seed
from durcore.theory import Expectation, expect

SCHEMA = "durtui.sweep/1"
POINTS_MAX = 10_000
Value = int | float | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """The parameter that a sweep moves, and the values that it takes."""

    name: str
    values: tuple[Value, ...]
    text: str  # as it was asked for: `steps=5:50:5`


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One scenario of a sweep: by design the expectation and the figures of one sampled replication."""

    value: Value
    scenario: Scenario
    expected: Mapping[str, Expectation]
    figures: Mapping[str, Figures]


def parse_axis(text: str) -> Axis:
    """The axis that `steps=5:50:5` or `crash_rate=0.01,0.02` names. Raises Mistake with the rule that is broken.

    LOW:HIGH:STEP is LOW + i x STEP in decimal arithmetic, HIGH included where a step lands on it. `all` stands for
    every choice of a parameter that has choices.
    """
    name, equals, spelled = text.partition("=")
    name = name.strip().removeprefix("--").replace("-", "_")
    if name not in PARAMETERS or not equals:
        raise Mistake(
            f"sweep(={shown(text)}) must be FIELD=LOW:HIGH:STEP or FIELD=A,B,C, FIELD one of {', '.join(PARAMETERS)}"
        )
    parameter = PARAMETERS[name]
    if spelled == "all" and parameter.choices:
        words = list(parameter.choices)
    elif ":" in spelled:
        try:
            words = list(_grid(spelled, text))
        except ArithmeticError:  # out of what decimals can hold
            raise Mistake(f"sweep(={shown(text)}) must have numbers that {name} may have") from None
    else:
        words = [word.strip() for word in spelled.split(",")]
    values = tuple(parameter.parse(word) for word in words)
    for value in values:
        parameter.check(value)
    return Axis(name=name, values=values, text=f"{name}={spelled}")


def _grid(spelled: str, text: str) -> Iterator[str]:
    try:
        low, high, step = (Decimal(word) for word in spelled.split(":"))
        finite = low.is_finite() and high.is_finite() and step.is_finite()
    except (ValueError, InvalidOperation):
        raise Mistake(f"sweep(={shown(text)}) must be three numbers, LOW:HIGH:STEP") from None
    if not finite or step <= 0 or high < low:
        raise Mistake(f"sweep(={shown(text)}) must have a STEP above 0 and a HIGH of at least LOW")
    if (high - low) / step >= POINTS_MAX:
        raise Mistake(f"sweep(={shown(text)}) must have at most {POINTS_MAX:,} points")
    for i in range(int((high - low) / step) + 1):
        point = low + i * step
        yield f"{point.to_integral_value():f}" if point == point.to_integral_value() else str(point)


def sweep(
    scenario: Scenario,
    axis: Axis,
    *,
    seed: int = 7,
    designs: Iterable[str] = DEFAULT_DESIGNS,
    real: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[Point]:
    """Every point of `axis`: its exact expectation, and one replication by the model, or where `real` by the real lab.

    Every scenario is checked before the first runs. Raises Mistake naming the value that makes none.
    """
    check_seed(seed)
    names = tuple(design.name for design in find_designs(designs))
    scenarios = [_moved(scenario, axis, value) for value in axis.values]
    points = []
    for done, (value, moved) in enumerate(zip(axis.values, scenarios, strict=True)):
        if on_progress:
            on_progress(done, len(scenarios))
        points.append(
            Point(
                value=value,
                scenario=moved,
                expected=expect(moved, names),
                figures=_real(moved, seed, names) if real else simulate(moved, seed, names),
            )
        )
    if on_progress:
        on_progress(len(scenarios), len(scenarios))
    return points


def _moved(scenario: Scenario, axis: Axis, value: Value) -> Scenario:
    try:
        changes: dict[str, Any] = {axis.name: value}
        return replace(scenario, **changes)
    except InvalidScenario as error:
        raise Mistake(f"sweep(={axis.text}) at {value}: {error}") from error


def _real(scenario: Scenario, seed: int, designs: Sequence[str]) -> Mapping[str, Figures]:
    result = run_lab(scenario, [seed], designs)
    return {name: design.replications[0].figures for name, design in result.items()}


def sweep_csv(axis: Axis, points: Sequence[Point], seed: int) -> str:
    """One row a point and design: the sampled figures, then the mean and the deviation of each."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    moments = [f"{name}_{kind}" for name in FIGURE_NAMES for kind in ("mean", "sd")]
    writer.writerow([axis.name, "design", "seed", *FIGURE_NAMES, *moments])
    for point in points:
        for name, figures in point.figures.items():
            expected = [number for m in point.expected[name].as_dict().values() for number in (m.mean, m.sd)]
            writer.writerow([point.value, name, seed, *figures.as_dict().values(), *expected])
    return text.getvalue()


def sweep_json(scenario: Scenario, axis: Axis, points: Sequence[Point], seed: int, designs: Sequence[str]) -> bytes:
    """The sweep as one JSON document. The field that is swept stands in `scenario` with its unswept value."""
    tree: dict[str, Any] = {
        "schema": SCHEMA,
        "command": reproduce_sweep(scenario, axis, seed, designs),
        "scenario": scenario.resolved(),
        "field": axis.name,
        "seed": seed,
        "points": [
            {
                "value": point.value,
                "designs": [
                    {
                        "name": name,
                        "figures": figures.as_dict(),
                        "expected": {
                            figure: {"mean": moment.mean, "sd": moment.sd}
                            for figure, moment in point.expected[name].as_dict().items()
                        },
                    }
                    for name, figures in point.figures.items()
                ],
            }
            for point in points
        ],
    }
    return msgspec.json.format(msgspec.json.encode(tree), indent=2) + b"\n"


def reproduce_sweep(scenario: Scenario, axis: Axis, seed: int, designs: Sequence[str]) -> str:
    """The one command that gives the sweep again."""
    words = ["durtui", "sweep", axis.text, *scenario.flags(swept=axis.name), "--seed", str(seed)]
    for name in designs:
        words += ["--design", name]
    return " ".join(words)
