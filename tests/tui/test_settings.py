"""Where a scenario's values come from, who wins, and how a mistake in a source is named: in one line."""

import os
from pathlib import Path

import pytest

from durcore.errors import Mistake
from durcore.scenario import PARAMETERS, Scenario
from durtui.settings import load_scenario


def user_file() -> Path:
    """The settings file of the user, in a configuration directory that exists."""
    path = Path(os.environ["XDG_CONFIG_HOME"]) / "durtui" / "durtui.toml"
    path.parent.mkdir(parents=True)
    return path


def mistake(flags: dict[str, str | None] | None = None, config: Path | None = None) -> str:
    """What a person is told; always one line."""
    with pytest.raises(Mistake) as caught:
        load_scenario(flags or {}, config)
    text = str(caught.value)
    assert "\n" not in text
    assert caught.value.exit_code == 2
    return text


def test_without_any_source_the_scenario_is_the_missions() -> None:
    assert load_scenario({}, None) == Scenario()


def test_a_flag_goes_before_the_environment_before_a_file_before_the_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def jobs(**flags: str) -> int:
        return load_scenario(dict(flags), None).jobs

    assert jobs() == 2000
    Path("durtui.toml").write_text("jobs = 11")
    assert jobs() == 11
    monkeypatch.setenv("DURTUI_JOBS", "22")
    assert jobs() == 22
    assert jobs(jobs="33") == 33


def test_each_field_is_taken_from_the_first_source_that_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("durtui.toml").write_text('jobs = 11\nsteps = 12\ntransient_rate = 0\nsynchronous = "off"')
    monkeypatch.setenv("DURTUI_JOBS", "22")
    monkeypatch.setenv("DURTUI_STEPS", "23")
    assert load_scenario({"jobs": "33", "crash_rate": None}, None) == Scenario(
        jobs=33, steps=23, transient_rate=0, synchronous="off"
    )


def test_every_parameter_can_be_given_by_every_source(monkeypatch: pytest.MonkeyPatch) -> None:
    values = Scenario(jobs=3).resolved()
    flags: dict[str, str | None] = {name: str(value) for name, value in values.items()}
    assert load_scenario(flags, None).resolved() == values
    lines = [f'{name} = "{value}"' if isinstance(value, str) else f"{name} = {value}" for name, value in values.items()]
    Path("durtui.toml").write_text("\n".join(lines))
    assert load_scenario({}, None).resolved() == values
    for name, value in values.items():
        monkeypatch.setenv(f"DURTUI_{name.upper()}", str(value))
    assert load_scenario({}, None).resolved() == values


def test_the_working_directorys_file_goes_before_the_users() -> None:
    user_file().write_text("jobs = 44")
    assert load_scenario({}, None).jobs == 44
    Path("durtui.toml").write_text("jobs = 11")
    assert load_scenario({}, None).jobs == 11


def test_a_file_that_is_named_is_read_in_place_of_the_others() -> None:
    Path("durtui.toml").write_text("jobs = 11\nsteps = 12")
    Path("mine.toml").write_text("jobs = 55")
    assert load_scenario({}, Path("mine.toml")) == Scenario(jobs=55)


def test_the_email_step_follows_the_steps_of_whichever_source(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("durtui.toml").write_text("steps = 4")
    assert load_scenario({}, None).effect_step == 4
    monkeypatch.setenv("DURTUI_STEPS", "9")
    assert load_scenario({}, None).effect_step == 6


# Mistakes


def test_a_file_that_is_named_and_missing_is_named() -> None:
    assert "mine.toml" in mistake(config=Path("mine.toml"))


def test_an_unknown_key_is_named_with_its_file_and_the_keys_there_are() -> None:
    Path("durtui.toml").write_text("job = 11")
    text = mistake()
    assert text.startswith("durtui.toml: unknown key job;")
    assert all(name in text for name in PARAMETERS)


def test_a_table_is_no_key() -> None:
    Path("durtui.toml").write_text("[scenario]\njobs = 11")
    assert "durtui.toml: unknown key scenario" in mistake()


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ('jobs = "many"', "jobs(=many) must be a whole number between 1 and 10,000,000"),
        ("jobs = 2.5", "jobs(=2.5) must be a whole number"),
        ("jobs = 2000.0", "jobs(=2000.0) must be a whole number"),
        ("jobs = true", "jobs(=True) must be a whole number"),
        ("jobs = [1]", "jobs(=[1]) must be a whole number"),
        ("jobs = 0", "jobs(=0) must be a whole number between 1 and 10,000,000"),
        ('transient_rate = "3 %"', "transient_rate(=3 %) must be a number between 0 and 1"),
        ("transient_rate = nan", "transient_rate(=nan) must be a number between 0 and 1"),
        ("cost_per_call_usd = inf", "cost_per_call_usd(=inf) must be a number of at least 0, and finite"),
        ("crash_rate = 1979-05-27", "crash_rate(=1979-05-27) must be a number between 0 and 1"),
        ("synchronous = 1", "synchronous(=1) must be one of off, normal, full"),
        ('locking = "shared"', "locking(=shared) must be one of normal, exclusive"),
        ("email_step = 0", "email_step(=0) must be a whole number between 1 and 100"),
    ],
)
def test_a_value_that_a_file_may_not_have_is_named_with_file_field_and_rule(line: str, named: str) -> None:
    Path("durtui.toml").write_text(line)
    text = mistake()
    assert text.startswith("durtui.toml: ")
    assert named in text


@pytest.mark.parametrize(
    ("variable", "value", "named"),
    [
        ("DURTUI_JOBS", "0", "jobs(=0) must be a whole number between 1 and 10,000,000"),
        ("DURTUI_JOBS", "", "jobs(=) must be a whole number"),
        ("DURTUI_CRASH_RATE", "1 %", "crash_rate(=1 %) must be a number between 0 and 1"),
        ("DURTUI_LOCKING", "shared", "locking(=shared) must be one of normal, exclusive"),
    ],
)
def test_a_value_that_a_variable_may_not_have_is_named_with_it(
    variable: str, value: str, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    text = mistake()
    assert text.startswith(f"{variable}: ")
    assert named in text


def test_two_sources_that_contradict_each_other_are_told_with_both_fields_and_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Path("durtui.toml").write_text("transient_rate = 0.7")
    monkeypatch.setenv("DURTUI_CRASH_RATE", "0.7")
    text = mistake()
    assert "transient_rate(=0.7)" in text
    assert "crash_rate(=0.7)" in text


@pytest.mark.parametrize("text", ["jobs = ", "jobs 11", "jobs = 1\njobs = 2", '"jobs', "jobs = 011", "\x00"])
def test_a_file_that_does_not_parse_is_named(text: str) -> None:
    Path("durtui.toml").write_text(text)
    assert mistake().startswith("durtui.toml is not TOML: ")


def test_a_file_that_is_not_text_is_named() -> None:
    Path("durtui.toml").write_bytes(b"\xff\xfe\x00jobs")
    assert "durtui.toml" in mistake()


@pytest.mark.parametrize(
    "line",
    ["jobs = " + "9" * 400, "transient_rate = " + "9" * 400, "jobs = " + "9" * 5000, "jobs = " + "[" * 5000],
    ids=["beyond floats", "a rate beyond floats", "beyond what Python reads", "deeply nested"],
)
def test_an_absurd_value_in_a_file_is_a_mistake_like_any_other(line: str) -> None:
    Path("durtui.toml").write_text(line)
    assert "durtui.toml" in mistake()


@pytest.mark.parametrize("name", ["jobs", "transient_rate", "cost_per_call_usd"])
@pytest.mark.parametrize("digits", [400, 5000])
def test_an_absurd_value_of_a_flag_is_a_mistake_like_any_other(name: str, digits: int) -> None:
    assert f"{name}(=" in mistake({name: "9" * digits})


def test_a_file_that_cannot_be_read_is_named_with_the_reason() -> None:
    Path("durtui.toml").mkdir()
    assert mistake() == "durtui.toml cannot be read: Is a directory"


def test_a_file_whose_reading_fails_is_named_with_the_reason() -> None:
    memory = Path("/proc/self/mem")  # opens for anyone, and its first page cannot be read
    if not memory.exists():
        pytest.skip("no such file here")
    assert mistake(config=memory) == "/proc/self/mem cannot be read: Input/output error"


def test_what_is_not_yet_built_is_refused_wherever_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "poison_rate(=0.2) is not yet built" in mistake({"poison_rate": "0.2"})
    monkeypatch.setenv("DURTUI_POISON_RATE", "0.1")
    assert "poison_rate(=0.1) is not yet built" in mistake()


# Presets


def test_a_preset_goes_before_the_default_and_behind_every_other_source(monkeypatch: pytest.MonkeyPatch) -> None:
    def steps(**flags: str) -> int:
        return load_scenario(dict(flags), None, "long-agent").steps

    assert steps() == 20
    Path("durtui.toml").write_text("steps = 11")
    assert steps() == 11
    monkeypatch.setenv("DURTUI_STEPS", "12")
    assert steps() == 12
    assert steps(steps="13") == 13


def test_a_preset_leaves_alone_what_it_does_not_name() -> None:
    Path("durtui.toml").write_text("jobs = 11")
    assert load_scenario({}, None, "long-agent") == Scenario(jobs=11, steps=20)


def test_email_last_follows_the_steps_of_whichever_source() -> None:
    Path("durtui.toml").write_text("steps = 4")
    assert load_scenario({}, None, "email-last").effect_step == 4
    assert load_scenario({"steps": "30"}, None, "email-last").effect_step == 30
    assert load_scenario({"steps": "30", "email_step": "2"}, None, "email-last").effect_step == 2
