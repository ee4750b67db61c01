"""Along one parameter: the values that a sweep in the app takes, and the curves of every chart. Pure code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from durcore.designs import Design
from durcore.scenario import Scenario
from durcore.theory import Expectation, expect
from durtui.plot import Curve

POINTS = 41


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """What one chart shows: its title, and mean and deviation of the figure in an expectation."""

    title: str
    money: bool
    moment: Callable[[Expectation], tuple[float, float]]


def _figure(title: str, *figures: str) -> Chart:
    """A chart of a figure, or of two of which a design has only one."""

    def moment(expected: Expectation) -> tuple[float, float]:
        moments = [getattr(expected, figure) for figure in figures]
        return sum(each.mean for each in moments), sum(each.sd for each in moments)

    return Chart(title=title, money=figures[0].endswith("_usd"), moment=moment)


CHARTS = (
    _figure("finished", "finished"),
    _figure("lost + dead letters", "lost", "dead_lettered"),
    _figure("duplicate emails", "duplicate_email_jobs"),
    _figure("model calls", "model_calls"),
    _figure("unproductive cost", "unproductive_cost_usd"),
    _figure("wasted cost", "wasted_cost_usd"),
)

KEY_CHARTS = CHARTS[1:3]  # what a small screen shows

SWEEPABLE = {  # the parameters that can be chosen, and what a tab calls them
    "steps": "Steps",
    "email_step": "Email at step",
    "transient_rate": "Transient",
    "crash_rate": "Crash",
    "job_attempts": "Job attempts",
    "step_attempts": "Step attempts",
    "redeliveries_max": "Redeliveries",
    "cost_per_call_usd": "Price",
}


def values_along(scenario: Scenario, name: str) -> list[int | float]:
    """The values that the parameter takes, rising: the present scenario's lies between the first and the last."""
    now = scenario.resolved()[name]
    if name == "steps":
        return _whole(1, min(max(50, now * 3 // 2), 100))
    if name == "email_step":
        return _whole(1, scenario.steps)
    if name in ("transient_rate", "crash_rate"):
        other = scenario.crash_rate if name == "transient_rate" else scenario.transient_rate
        return _real(max(min(max(0.1, 2 * now), 1 - other), now))  # 1 - 0.9 is a hair less than 0.1
    if name == "cost_per_call_usd":
        return _real(max(2 * now, 0.001))
    return _whole(
        0 if name == "redeliveries_max" else 1, min(max(10, 2 * now), 100 if name != "redeliveries_max" else 1000)
    )


def _whole(low: int, high: int) -> list[int | float]:
    return sorted({low + round((high - low) * i / (POINTS - 1)) for i in range(POINTS)})


def _real(high: float) -> list[int | float]:
    # Never past the end, not by the last bit: two rates of a scenario may add up to exactly 1.
    return [*(min(high * i / (POINTS - 1), high) for i in range(POINTS - 1)), high]


def curves_along(
    scenario: Scenario,
    name: str,
    designs: Sequence[Design],
    cancelled: Callable[[], bool] = lambda: False,
) -> list[tuple[Chart, list[Curve]]] | None:
    """Every chart with a curve a design; None when `cancelled` says that nobody waits for it any more."""
    values = values_along(scenario, name)
    expected: list[Mapping[str, Expectation]] = []
    for value in values:
        if cancelled():
            return None
        expected.append(expect(_moved(scenario, name, value), designs))
    xs = tuple(float(value) for value in values)
    charts = []
    for chart in CHARTS:
        curves = []
        for design in designs:
            moments = [chart.moment(point[design.name]) for point in expected]
            curves.append(Curve(xs, tuple(mean for mean, _ in moments), tuple(sd for _, sd in moments)))
        charts.append((chart, curves))
    return charts


def _moved(scenario: Scenario, name: str, value: float) -> Scenario:
    changes: dict[str, Any] = {name: value}
    if name == "steps" and scenario.email_step is not None:
        changes["email_step"] = min(scenario.email_step, int(value))
    return replace(scenario, **changes)
