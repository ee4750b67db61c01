"""The sweep of the app: values that hold the present scenario between them, and curves that are the theory."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from durcore.designs import DESIGNS
from durcore.scenario import PARAMETERS, Scenario
from durcore.theory import expect
from durtui.along import CHARTS, SWEEPABLE, curves_along, values_along

SCENARIOS = [
    Scenario(),
    Scenario(steps=1),
    Scenario(steps=100, email_step=100),
    Scenario(transient_rate=0.9, crash_rate=0.1),
    Scenario(transient_rate=0, crash_rate=0, cost_per_call_usd=0),
    Scenario(job_attempts=100, step_attempts=100, redeliveries_max=1000),
    Scenario(redeliveries_max=0),
]


@pytest.mark.parametrize("name", SWEEPABLE)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_present_value_lies_between_the_first_and_the_last_and_all_may_be_had(
    scenario: Scenario, name: str
) -> None:
    values = values_along(scenario, name)
    assert values == sorted(set(values))
    assert values[0] <= scenario.resolved()[name] <= values[-1]
    for value in values:
        PARAMETERS[name].check(value)


@given(st.integers(0, 1000), st.integers(0, 1000))
def test_every_value_of_a_rate_goes_with_the_other_rate(transient: int, crash: int) -> None:
    if transient + crash > 1000:
        return
    scenario = Scenario(transient_rate=transient / 1000, crash_rate=crash / 1000)
    for name in ("transient_rate", "crash_rate"):
        for value in values_along(scenario, name):
            changes: dict[str, Any] = {name: value}
            replace(scenario, **changes)


@pytest.mark.parametrize("name", SWEEPABLE)
def test_every_value_makes_a_scenario_with_its_own_theory(name: str) -> None:
    scenario = Scenario(steps=8, email_step=7)
    charts = curves_along(scenario, name, list(DESIGNS.values()))
    assert charts is not None
    assert [chart for chart, _ in charts] == list(CHARTS)
    assert all(len(curves) == len(DESIGNS) for _, curves in charts)


def test_a_curve_at_the_present_value_is_what_theory_expects_of_the_present_scenario() -> None:
    scenario = Scenario(steps=20)
    charts = curves_along(scenario, "steps", list(DESIGNS.values()))
    assert charts is not None
    expected = expect(scenario)
    for chart, curves in charts:
        for name, curve in zip(DESIGNS, curves, strict=True):
            index = min(range(len(curve.xs)), key=lambda i: abs(curve.xs[i] - 20))
            if curve.xs[index] == 20:
                assert (curve.means[index], curve.deviations[index]) == chart.moment(expected[name])


def test_a_sweep_that_nobody_waits_for_is_given_up() -> None:
    assert curves_along(Scenario(), "steps", list(DESIGNS.values()), lambda: True) is None
