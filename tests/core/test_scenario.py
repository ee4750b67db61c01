"""The contract's table of parameters: every default, both ends of every range, and what is said beyond them."""

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from durcore.errors import InvalidScenario, Mistake, NotYet
from durcore.scenario import PARAMETERS, SEED, Scenario, check_seed

# name: default, low, high. From the contract, section Scenario.
COUNTS: dict[str, tuple[int | None, int, int]] = {
    "jobs": (2000, 1, 10_000_000),
    "steps": (10, 1, 100),
    "email_step": (None, 1, 100),
    "job_attempts": (3, 1, 100),
    "step_attempts": (3, 1, 100),
    "redeliveries_max": (10, 0, 1000),
    "output_bytes": (16, 0, 1_048_576),
}
RATES: dict[str, float] = {"transient_rate": 0.03, "crash_rate": 0.01, "poison_rate": 0.0}
CHOICES: dict[str, tuple[str, tuple[str, ...]]] = {
    "crash_point": ("after-work", ("before-work", "after-key", "after-work", "after-checkpoint", "anywhere")),
    "synchronous": ("normal", ("off", "normal", "full")),
    "locking": ("normal", ("normal", "exclusive")),
    "crash_mode": ("raise", ("raise", "sigkill")),
}
ORDER = [
    "jobs",
    "steps",
    "email_step",
    "transient_rate",
    "crash_rate",
    "crash_point",
    "poison_rate",
    "cost_per_call_usd",
    "job_attempts",
    "step_attempts",
    "redeliveries_max",
    "output_bytes",
    "synchronous",
    "locking",
    "crash_mode",
]
NUMBERS = (*COUNTS, *RATES, "cost_per_call_usd")


def made(**values: Any) -> Scenario:
    """A scenario in which nothing stands in the way of `values`: room for the email, no other fault."""
    room = {"email_step": {"steps": 100}, "transient_rate": {"crash_rate": 0}, "crash_rate": {"transient_rate": 0}}
    others = {name: value for field in values for name, value in room.get(field, {}).items()}
    return Scenario(**(others | values))


def refusal(**values: Any) -> str:
    """What a person reads who asks for `values`: always one line."""
    with pytest.raises(InvalidScenario) as caught:
        made(**values)
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    return message


def test_the_parameters_are_the_contracts_in_its_order() -> None:
    assert list(PARAMETERS) == ORDER


@pytest.mark.parametrize("name", ORDER)
def test_every_default_is_the_contracts(name: str) -> None:
    expected = (
        COUNTS[name][0]
        if name in COUNTS
        else CHOICES[name][0]
        if name in CHOICES
        else RATES.get(name, 0.0102)  # the one that is neither a rate nor a count: the price
    )
    assert getattr(Scenario(), name) == expected


@pytest.mark.parametrize("name", COUNTS)
def test_a_count_takes_both_ends_of_its_range(name: str) -> None:
    _, low, high = COUNTS[name]
    assert getattr(made(**{name: low}), name) == low
    assert getattr(made(**{name: high}), name) == high


@pytest.mark.parametrize("name", COUNTS)
def test_a_count_beyond_its_range_is_refused_with_name_value_and_rule(name: str) -> None:
    _, low, high = COUNTS[name]
    for value in (low - 1, high + 1):
        assert refusal(**{name: value}) == f"{name}(={value}) must be a whole number between {low:,} and {high:,}"


@pytest.mark.parametrize("name", ["transient_rate", "crash_rate"])
def test_a_rate_takes_zero_and_one(name: str) -> None:
    assert getattr(made(**{name: 0}), name) == 0
    assert getattr(made(**{name: 1}), name) == 1


@pytest.mark.parametrize("name", RATES)
def test_a_rate_beyond_its_range_is_refused_with_name_value_and_rule(name: str) -> None:
    for value in (-1e-9, 1 + 1e-9, -5, 2):
        assert refusal(**{name: value}) == f"{name}(={value}) must be a number between 0 and 1"


def test_a_price_takes_zero_and_any_finite_number_and_no_other() -> None:
    assert Scenario(cost_per_call_usd=0).cost_per_call_usd == 0
    assert Scenario(cost_per_call_usd=1e300).cost_per_call_usd == 1e300
    assert "for 660,000 calls to have a price" in refusal(cost_per_call_usd=1e308)
    for value in (-0.01, math.inf):
        message = refusal(cost_per_call_usd=value)
        assert message == f"cost_per_call_usd(={value}) must be a number of at least 0, and finite"


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", [True, False, math.nan, math.inf, -math.inf, "1", b"1", [1], 1j])
def test_what_is_no_number_is_refused_by_every_numeric_parameter(name: str, value: object) -> None:
    assert refusal(**{name: value}).startswith(f"{name}(={value}) must be a")


@pytest.mark.parametrize("name", [name for name in NUMBERS if name != "email_step"])
def test_only_the_email_step_may_be_unset(name: str) -> None:
    assert refusal(**{name: None}).startswith(f"{name}(=None) must be a")


@pytest.mark.parametrize("name", COUNTS)
def test_a_count_is_no_fraction_even_where_the_fraction_is_whole(name: str) -> None:
    low = COUNTS[name][1]
    for value in (low + 1.0, low + 0.5):
        assert refusal(**{name: value}).startswith(f"{name}(={value}) must be a whole number")


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_of_four_hundred_digits_is_refused_like_any_other(name: str) -> None:
    # 10**400 has no float: a check that asks math.isfinite of it fails with an OverflowError of its own.
    assert refusal(**{name: 10**400}).startswith(f"{name}(=1000")


@pytest.mark.parametrize("name", CHOICES)
def test_a_choice_names_its_choices_when_it_refuses(name: str) -> None:
    _, choices = CHOICES[name]
    for value in ("never", "", choices[0].upper(), 1, True, None):
        assert refusal(**{name: value}) == f"{name}(={value}) must be one of {', '.join(choices)}"


@pytest.mark.parametrize("value", ["two\nlines", "\x1b[2J", "\x9b2J", "\u202e"])
@pytest.mark.parametrize("name", ["jobs", "synchronous"])
def test_a_refusal_is_one_printable_line_whatever_was_written(name: str, value: str) -> None:
    assert refusal(**{name: value}).isprintable()


@pytest.mark.parametrize("name", ["synchronous", "locking"])
def test_every_choice_of_the_store_is_taken(name: str) -> None:
    assert [getattr(made(**{name: value}), name) for value in CHOICES[name][1]] == list(CHOICES[name][1])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("poison_rate", 1e-9),
        ("poison_rate", 1),
    ],
)
def test_what_is_not_built_yet_is_refused_and_never_ignored(name: str, value: Any) -> None:
    with pytest.raises(NotYet, match="not yet built") as caught:
        made(**{name: value})
    assert str(caught.value).startswith(f"{name}(={value}) ")


def test_a_refusal_is_the_users_mistake_and_a_value_error() -> None:
    with pytest.raises(Mistake) as caught:
        Scenario(jobs=0)
    assert isinstance(caught.value, ValueError)
    assert caught.value.exit_code == 2


@given(steps=st.integers(1, 100))
def test_an_unset_email_step_is_six_or_the_last_step(steps: int) -> None:
    assert Scenario(steps=steps).effect_step == min(6, steps)


@given(before=st.integers(1, 100), after=st.integers(1, 100))
def test_an_unset_email_step_is_derived_anew_when_the_steps_change(before: int, after: int) -> None:
    assert replace(Scenario(steps=before), steps=after).effect_step == min(6, after)


def test_a_set_email_step_stays_when_the_steps_change() -> None:
    assert replace(Scenario(email_step=3), steps=100).effect_step == 3


@given(steps=st.integers(1, 99), beyond=st.integers(1, 99))
def test_the_email_goes_out_within_the_job(steps: int, beyond: int) -> None:
    assert Scenario(steps=steps, email_step=steps).effect_step == steps
    step = steps + beyond
    if step <= 100:
        assert refusal(email_step=step, steps=steps) == f"email_step(={step}) must be between 1 and steps(={steps})"


def test_the_two_rates_together_are_at_most_one() -> None:
    assert refusal(transient_rate=0.7, crash_rate=0.7) == "transient_rate(=0.7) + crash_rate(=0.7) must be at most 1"
    assert refusal(transient_rate=0.5, crash_rate=0.501).endswith("must be at most 1")


def test_decimals_that_make_one_on_paper_are_taken() -> None:
    for digits in (1, 2, 3, 4):
        whole = 10**digits
        for part in range(whole + 1):
            t, c = float(f"{part / whole:.{digits}f}"), float(f"{(whole - part) / whole:.{digits}f}")
            assert Scenario(transient_rate=t, crash_rate=c).crash_rate == c


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    steps = draw(st.integers(1, 100))
    transient = draw(st.floats(0, 1))
    return Scenario(
        jobs=draw(st.integers(1, 10_000_000)),
        steps=steps,
        email_step=draw(st.none() | st.integers(1, steps)),
        transient_rate=transient,
        crash_rate=draw(st.floats(0, 1 - transient)),
        cost_per_call_usd=draw(st.floats(0, 1e290)),
        job_attempts=draw(st.integers(1, 100)),
        step_attempts=draw(st.integers(1, 100)),
        redeliveries_max=draw(st.integers(0, 1000)),
        output_bytes=draw(st.integers(0, 1_048_576)),
        synchronous=draw(st.sampled_from(["off", "normal", "full"])),
        locking=draw(st.sampled_from(["normal", "exclusive"])),
    )


@given(scenario=scenarios())
@settings(deadline=None)
def test_flags_give_the_scenario_again_to_the_last_bit(scenario: Scenario) -> None:
    words = scenario.flags()
    by_flag = {parameter.flag: parameter for parameter in PARAMETERS.values()}
    values = {by_flag[flag].name: by_flag[flag].parse(text) for flag, text in zip(words[::2], words[1::2], strict=True)}
    assert list(values) == ORDER  # nothing is left to a default of the reader's
    assert Scenario.from_values(values) == replace(scenario, email_step=scenario.effect_step)


def test_a_flag_is_the_name_with_dashes() -> None:
    assert Scenario().flags()[:6] == ["--jobs", "2000", "--steps", "10", "--email-step", "6"]
    assert "--cost-per-call-usd" in Scenario().flags()


@given(scenario=scenarios())
@settings(deadline=None)
def test_resolved_values_give_the_scenario_again(scenario: Scenario) -> None:
    values = scenario.resolved()
    assert values["email_step"] == scenario.effect_step
    assert Scenario.from_values(values).resolved() == values


def test_an_unknown_name_is_refused_and_the_known_ones_are_named() -> None:
    with pytest.raises(InvalidScenario, match=r"^stepz is not a parameter; there are jobs, steps, ") as caught:
        Scenario.from_values({"steps": 5, "stepz": 5})
    assert all(name in str(caught.value) for name in ORDER)


def test_an_unknown_name_is_shown_without_what_could_steer_a_terminal() -> None:
    with pytest.raises(InvalidScenario) as caught:
        Scenario.from_values({"\x1b[2J": 5})
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("name", "text"), [("jobs", "x"), ("jobs", "1.5"), ("jobs", ""), ("jobs", "1e3"), ("crash_rate", "half")]
)
def test_text_that_is_no_number_is_refused_with_name_text_and_rule(name: str, text: str) -> None:
    with pytest.raises(InvalidScenario) as caught:
        PARAMETERS[name].parse(text)
    assert str(caught.value) == f"{name}(={text}) must be {PARAMETERS[name].rule}"


def test_a_seed_has_sixty_three_bits() -> None:
    assert check_seed(0) == 0
    assert check_seed(2**63 - 1) == 2**63 - 1
    assert SEED.default == 7


@pytest.mark.parametrize("seed", [-1, 2**63, True, 7.0, "7", None, math.nan, pytest.param(10**400, id="400 digits")])
def test_what_is_no_seed_is_refused_with_the_rule(seed: Any) -> None:
    with pytest.raises(
        InvalidScenario, match=r"^seed\(=.*must be a whole number between 0 and 9,223,372,036,854,775,807"
    ):
        check_seed(seed)
