"""Presets: each is a scenario, and what it says to watch for holds for the exact theory of that scenario."""

import re

import pytest

from durcore.errors import Mistake
from durcore.presets import (
    DEPLOY_STORM,
    EMAIL_FIRST,
    EMAIL_LAST,
    FLAKY_PROVIDER,
    LONG_AGENT,
    MISSION,
    PRESETS,
    Preset,
    find_preset,
)
from durcore.scenario import Scenario
from durcore.theory import expect

WHOLE, CHECKPOINT, KEYED = "whole-job", "checkpoint", "checkpoint-idempotent"


def mean(preset: Preset, design: str, figure: str) -> float:
    return float(expect(preset.scenario, [design])[design].as_dict()[figure].mean)


def numbers(preset: Preset) -> list[int]:
    """The whole numbers that the sentence of a preset names, in its order."""
    return [int(text.replace(",", "")) for text in re.findall(r"\d[\d,]*", preset.watch)]


def expected(preset: Preset, *figures: tuple[str, str]) -> list[int]:
    return [round(mean(preset, design, figure)) for design, figure in figures]


@pytest.mark.parametrize("preset", PRESETS.values(), ids=lambda preset: preset.name)
def test_a_preset_has_a_title_and_one_sentence(preset: Preset) -> None:
    assert preset.title
    assert preset.watch.endswith(".")
    assert not re.search(r"[.!?] ", preset.watch)
    assert preset.name == find_preset(preset.name).name


def test_the_mission_is_the_default_scenario_and_comes_first() -> None:
    assert MISSION.scenario == Scenario()
    assert next(iter(PRESETS.values())) is MISSION


def test_no_two_presets_are_the_same_scenario() -> None:
    assert len({preset.scenario for preset in PRESETS.values()}) == len(PRESETS)


def test_what_was_asked_for_goes_before_a_preset() -> None:
    assert Scenario(**LONG_AGENT.under({"jobs": 5})) == Scenario(jobs=5, steps=20)
    assert LONG_AGENT.under({"steps": 7}) == {"steps": 7}


def test_email_last_is_at_the_last_step_of_whatever_job() -> None:
    assert EMAIL_LAST.scenario.effect_step == 10
    assert EMAIL_LAST.under({"steps": 20})["email_step"] == 20
    assert EMAIL_LAST.under({"steps": 20, "email_step": 3})["email_step"] == 3


def test_an_unknown_preset_is_named_with_those_there_are() -> None:
    with pytest.raises(Mistake, match=r"^preset\(=bogus\) must be one of mission, long-agent, email-last, "):
        find_preset("bogus")


# What to watch for, held against the theory


def test_the_mission_loses_and_duplicates_what_its_sentence_says() -> None:
    lost, duplicates, of_checkpoints = expected(
        MISSION, (WHOLE, "lost"), (WHOLE, "duplicate_email_jobs"), (CHECKPOINT, "duplicate_email_jobs")
    )
    assert numbers(MISSION) == [lost, MISSION.scenario.jobs, duplicates, of_checkpoints]
    assert mean(MISSION, CHECKPOINT, "lost") == 0
    assert expected(MISSION, (KEYED, "lost"), (KEYED, "duplicate_email_jobs"), (KEYED, "dead_lettered")) == [0, 0, 0]


def test_a_long_agent_loses_more_jobs_while_the_waste_of_checkpoints_doubles() -> None:
    (lost,), (before,) = expected(LONG_AGENT, (WHOLE, "lost")), expected(MISSION, (WHOLE, "lost"))
    assert numbers(LONG_AGENT) == [lost, before]
    assert LONG_AGENT.scenario.steps == 2 * MISSION.scenario.steps
    for design in (CHECKPOINT, KEYED):
        for figure in ("wasted_calls", "unproductive_calls"):
            assert mean(LONG_AGENT, design, figure) == pytest.approx(2 * mean(MISSION, design, figure), rel=1e-9)


def test_with_the_email_last_whole_job_retry_duplicates_less_than_checkpoints() -> None:
    whole, checkpoint, lost = expected(
        EMAIL_LAST, (WHOLE, "duplicate_email_jobs"), (CHECKPOINT, "duplicate_email_jobs"), (WHOLE, "lost")
    )
    assert whole < checkpoint
    assert numbers(EMAIL_LAST) == [whole, checkpoint, lost]
    assert mean(EMAIL_LAST, WHOLE, "lost") == mean(MISSION, WHOLE, "lost")


def test_with_the_email_first_nearly_every_redelivered_job_sends_it_again() -> None:
    figures = [(WHOLE, "duplicate_email_jobs"), (WHOLE, "resumed_jobs"), (CHECKPOINT, "duplicate_email_jobs")]
    assert numbers(EMAIL_FIRST) == expected(EMAIL_FIRST, *figures)
    assert expected(EMAIL_FIRST, (CHECKPOINT, "duplicate_email_jobs")) == expected(
        MISSION, (CHECKPOINT, "duplicate_email_jobs")
    )


def test_a_flaky_provider_costs_checkpoints_calls_and_no_job() -> None:
    work = FLAKY_PROVIDER.scenario.jobs * FLAKY_PROVIDER.scenario.steps
    (lost,) = expected(FLAKY_PROVIDER, (WHOLE, "lost"))
    more = round(100 * (mean(FLAKY_PROVIDER, CHECKPOINT, "model_calls") / work - 1))
    assert numbers(FLAKY_PROVIDER) == [lost, FLAKY_PROVIDER.scenario.jobs, more]
    assert FLAKY_PROVIDER.scenario.transient_rate == 0.1
    for design in (CHECKPOINT, KEYED):
        assert mean(FLAKY_PROVIDER, design, "lost") == 0
        assert mean(FLAKY_PROVIDER, design, "dead_lettered") < 1e-3


def test_a_deploy_storm_gives_checkpoints_ten_times_the_duplicates_and_the_key_none() -> None:
    assert DEPLOY_STORM.scenario.crash_rate == 0.1
    assert numbers(DEPLOY_STORM) == expected(DEPLOY_STORM, (CHECKPOINT, "duplicate_email_jobs"))
    ratio = mean(DEPLOY_STORM, CHECKPOINT, "duplicate_email_jobs") / mean(MISSION, CHECKPOINT, "duplicate_email_jobs")
    assert ratio == pytest.approx(10, abs=0.05)
    assert mean(DEPLOY_STORM, CHECKPOINT, "lost") == 0
    assert mean(DEPLOY_STORM, CHECKPOINT, "dead_lettered") < 0.01
    assert mean(DEPLOY_STORM, KEYED, "duplicate_email_jobs") == 0


def test_a_preset_over_a_scenario_keeps_how_it_is_run_and_so_what_is_expected() -> None:
    present = Scenario(jobs=7, transient_rate=0.5, synchronous="full", crash_mode="sigkill", output_bytes=0)
    over = LONG_AGENT.over(present)
    assert over == Scenario(steps=20, synchronous="full", crash_mode="sigkill", output_bytes=0)
    assert expect(over) == expect(LONG_AGENT.scenario)
