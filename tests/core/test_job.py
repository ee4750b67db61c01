"""run_job: a person's own steps, run once each, tried again, resumed after any death, on a state that is never lost."""

import json
import math
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from durcore.errors import DurtuiError, Mistake, StoreError, UnstorableOutput
from durcore.job import BACKOFF_CAP_S, Context, Step, backoff, run_job
from durcore.store import Store


class Died(BaseException):
    """What kills a process in these tests, where a real SIGKILL would end them too."""


class StepFailed(Exception):
    """What a step raises that failed."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.create(tmp_path / "jobs.db", synchronous="off") as store:
        yield store


def no_sleep(_: float) -> None:
    """Steps that fail in these tests are tried again at once."""


class Script:
    """A step that does one thing after the other: it raises an exception, and returns anything else. It notes calls."""

    def __init__(self, *acts: Any) -> None:
        self.acts = list(acts)
        self.calls: list[tuple[Any, Context]] = []

    def __call__(self, state: Any, context: Context) -> Any:
        self.calls.append((state, context))
        act = self.acts.pop(0) if len(self.acts) > 1 else self.acts[0]
        if isinstance(act, BaseException):
            raise act
        return act

    @property
    def states(self) -> list[Any]:
        return [state for state, _ in self.calls]


def run(store: Store, *steps: Step, name: str = "invoice-17", **options: Any) -> Any:
    return run_job(name, steps, store=store, sleep=no_sleep, **options)


# What a step is told


def test_each_step_is_called_once_with_what_the_one_before_returned(store: Store) -> None:
    plan, search, write = Script({"plan": 1}), Script(["hit"]), Script("letter")
    report = run(store, plan, search, write, state="order")
    assert (plan.states, search.states, write.states) == (["order"], [{"plan": 1}], [["hit"]])
    assert (report.job, report.state, report.delivery, report.skipped_steps, report.attempts) == (
        "invoice-17",
        "letter",
        1,
        0,
        3,
    )


def test_the_key_of_a_step_is_the_jobs_name_and_its_number_from_one(store: Store) -> None:
    first, second = Script(1), Script(2)
    run(store, first, second)
    assert [context.key for _, context in first.calls + second.calls] == ["invoice-17:1", "invoice-17:2"]
    context = first.calls[0][1]
    assert (context.job, context.step, context.attempt) == ("invoice-17", 1, 1)


def test_the_key_is_the_same_in_every_attempt_and_delivery(store: Store) -> None:
    flaky = Script(StepFailed(), StepFailed(), Died(), StepFailed(), "sent")
    with pytest.raises(Died):
        run(store, flaky)
    run(store, flaky)
    assert {context.key for _, context in flaky.calls} == {"invoice-17:1"}
    assert [context.attempt for _, context in flaky.calls] == [1, 2, 3, 1, 2]  # anew in each delivery


def test_without_a_state_the_first_step_is_given_none(store: Store) -> None:
    first = Script("done")
    run(store, first)
    assert first.states == [None]


def test_jobs_of_one_store_do_not_meet(store: Store) -> None:
    one, other = Script("one"), Script("other")
    assert run(store, one, name="a").state == "one"
    assert run(store, other, name="b").state == "other"
    assert run(store, Script(StepFailed()), name="a").state == "one"


# Tries and waits


def test_a_step_is_tried_up_to_three_times_more_and_its_last_exception_is_raised_again(store: Store) -> None:
    failures = [StepFailed(str(number)) for number in range(4)]
    flaky = Script(*failures)
    with pytest.raises(StepFailed) as caught:
        run(store, flaky)
    assert caught.value is failures[3]
    assert len(flaky.calls) == 4


@pytest.mark.parametrize("retries", [0, 1, 5])
def test_retries_are_tries_beyond_the_first(store: Store, retries: int) -> None:
    flaky = Script(StepFailed())
    with pytest.raises(StepFailed):
        run(store, flaky, retries=retries)
    assert len(flaky.calls) == 1 + retries
    report = run(store, Script(*[StepFailed()] * retries, "done"), retries=retries)
    assert (report.state, report.attempts) == ("done", 1 + retries)


def test_the_tries_of_each_step_count_by_themselves(store: Store) -> None:
    flaky = [Script(StepFailed(), StepFailed(), number) for number in range(3)]
    assert run(store, *flaky, retries=2).attempts == 9


def test_the_wait_doubles_with_each_failure_and_is_drawn_from_nought_up(store: Store) -> None:
    waits: list[float] = []
    draws = iter([1.0, 0.5, 0.0, 0.25])
    steps = (Script(StepFailed(), StepFailed(), StepFailed(), "a"), Script(StepFailed(), "b"))
    run_job("job", steps, store=store, retries=3, backoff_s=2.0, sleep=waits.append, jitter=lambda: next(draws))
    assert waits == [2.0, 4.0 * 0.5, 0.0, 2.0 * 0.25]  # the second step begins at the base again


def test_nothing_is_waited_for_after_the_last_failure(store: Store) -> None:
    waits: list[float] = []
    with pytest.raises(StepFailed):
        run_job("job", [Script(StepFailed())], store=store, retries=2, sleep=waits.append, jitter=lambda: 1.0)
    assert waits == [0.5, 1.0]


@given(failures=st.integers(1, 10_000), base_s=st.floats(0, 1000))
def test_a_wait_is_the_base_times_a_power_of_two_and_never_above_a_minute(failures: int, base_s: float) -> None:
    assert backoff(1, base_s) == min(base_s, BACKOFF_CAP_S)
    assert backoff(failures, base_s) <= backoff(failures + 1, base_s) <= BACKOFF_CAP_S == 60
    assert backoff(failures + 1, base_s) == pytest.approx(min(2 * backoff(failures, base_s), 60)) or failures > 30


# Deaths


def test_a_job_resumes_behind_its_last_checkpoint_with_the_state_that_it_holds(store: Store) -> None:
    first, second, third = Script({"a": [1, 2]}), Script(Died(), {"b": None}), Script("end")
    with pytest.raises(Died):
        run(store, first, second, third)
    report = run(store, first, second, third, state="ignored: the job has one of its own")
    assert len(first.calls) == 1
    assert second.states == [{"a": [1, 2]}, {"a": [1, 2]}]
    assert (report.state, report.delivery, report.skipped_steps, report.attempts) == ("end", 2, 1, 2)


def test_a_job_whose_step_gave_up_stays_resumable(store: Store) -> None:
    first, second = Script("one"), Script(StepFailed())
    for delivery in range(3):
        with pytest.raises(StepFailed):
            run(store, first, second, retries=1)
        assert len(second.calls) == 2 * (delivery + 1)
    report = run(store, first, Script("two"))
    assert (report.state, report.delivery, report.skipped_steps) == ("two", 4, 1)
    assert len(first.calls) == 1


@pytest.mark.parametrize("death", [Died(), KeyboardInterrupt(), SystemExit(3), GeneratorExit()])
def test_what_is_no_exception_passes_at_once_and_is_not_tried_again(store: Store, death: BaseException) -> None:
    waits: list[float] = []
    step = Script(death, "done")
    with pytest.raises(type(death)) as caught:
        run_job("job", [step], store=store, sleep=waits.append)
    assert caught.value is death
    assert (len(step.calls), waits) == (1, [])
    assert run_job("job", [step], store=store).state == "done"


def test_a_death_while_waiting_leaves_the_job_resumable(store: Store) -> None:
    def die(_: float) -> None:
        raise Died

    step = Script(StepFailed(), "done")
    with pytest.raises(Died):
        run_job("job", [Script("one"), step], store=store, sleep=die)
    assert run(store, Script(StepFailed()), step, name="job").state == "done"


@pytest.mark.parametrize("surprise", [StopIteration("x"), StopAsyncIteration(), RecursionError(), MemoryError()])
def test_no_exception_of_a_step_is_mistaken_for_an_end(store: Store, surprise: Exception) -> None:
    with pytest.raises(type(surprise)) as caught:
        run(store, Script(surprise), retries=1)
    assert caught.value is surprise
    assert run(store, Script("done")).state == "done"


def test_a_finished_job_calls_nothing_and_reports_its_state(store: Store) -> None:
    run(store, Script({"n": 1}), Script({"n": 2}))
    untouched = Script(StepFailed())
    for _ in range(2):
        report = run(store, untouched, untouched)
        assert (report.state, report.skipped_steps, report.attempts, report.delivery) == ({"n": 2}, 2, 0, 1)
    assert untouched.calls == []
    assert store.count_states() == {"finished": 1}


def test_the_store_says_what_became_of_each_job(store: Store) -> None:
    run(store, Script(1), name="done")
    with pytest.raises(StepFailed):
        run(store, Script(StepFailed()), name="gave up")
    with pytest.raises(Died):
        run(store, Script(Died()), name="died")
    assert store.count_states() == {"finished": 1, "queued": 1, "running": 1}


def test_a_job_resumes_from_a_store_opened_again(tmp_path: Path) -> None:
    second = Script(Died(), "two")
    with Store.open(tmp_path / "jobs.db") as store, pytest.raises(Died):
        run(store, Script("one"), second)
    with Store.open(tmp_path / "jobs.db") as store:
        assert run(store, Script(StepFailed()), second).skipped_steps == 1
    assert second.states == ["one", "one"]


VICTIM = textwrap.dedent(
    """
    import os, sys, time
    from durcore import Store, run_job

    def step(number, state, context):
        with open(sys.argv[2], "a") as diary:
            diary.write(context.key + " " + repr(state) + "\\n")
        if number == int(sys.argv[3]):
            print("in the middle", flush=True)
            time.sleep(60)
        return {"sum": state["sum"] + number}

    steps = [lambda state, context, number=number: step(number, state, context) for number in range(1, 5)]
    with Store.open(sys.argv[1]) as store:
        report = run_job("invoice-17", steps, store=store, state={"sum": 0})
    print(report.state["sum"], report.delivery, report.skipped_steps, report.attempts, flush=True)
    """
)


def test_a_sigkill_in_the_middle_of_any_step_costs_that_attempt_and_nothing_else(tmp_path: Path) -> None:
    arguments = [sys.executable, "-c", VICTIM, str(tmp_path / "jobs.db"), str(tmp_path / "diary")]
    for number in range(1, 5):
        with subprocess.Popen([*arguments, str(number)], stdout=subprocess.PIPE, text=True) as victim:
            assert victim.stdout is not None
            assert victim.stdout.readline() == "in the middle\n"
            victim.kill()
        assert victim.returncode == -signal.SIGKILL
    last = subprocess.run([*arguments, "0"], capture_output=True, text=True, check=True)
    assert last.stdout == "10 5 3 1\n"
    sums = [0, 1, 3, 6]
    assert (tmp_path / "diary").read_text().splitlines() == [
        f"invoice-17:{number} {{'sum': {sums[number - 1]}}}" for number in range(1, 5) for _ in range(2)
    ]


# State

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
# Values that JSON takes and gives back as something else.
json_likes = json_values | st.tuples(json_values, json_values) | st.dictionaries(st.integers(), json_values, max_size=3)


@given(outputs=st.lists(json_likes, min_size=1, max_size=4), deaths=st.sets(st.integers(0, 3)))
@settings(deadline=None, max_examples=40)
def test_a_run_that_died_anywhere_and_one_that_did_not_see_the_same(
    tmp_path_factory: pytest.TempPathFactory, outputs: list[Any], deaths: set[int]
) -> None:
    def seen(path: Path, dying: set[int]) -> tuple[list[Any], Any]:
        steps = [Script(Died(), out) if index in dying else Script(out) for index, out in enumerate(outputs)]
        with Store.create(path, synchronous="off") as store:
            while True:
                try:
                    report = run_job("job", steps, store=store)
                except Died:
                    continue
                return [step.states[-1] for step in steps], report.state

    directory = tmp_path_factory.mktemp("jobs")
    straight, resumed = seen(directory / "straight.db", set()), seen(directory / "resumed.db", deaths)
    assert repr(straight) == repr(resumed)  # by their text: 1, 1.0 and True are not the same state
    assert straight[1] == json.loads(json.dumps(outputs[-1]))


@pytest.mark.parametrize("number", [1, 2])
def test_a_step_that_changed_its_state_and_failed_is_tried_again_on_the_state_it_was_first_given(
    store: Store, number: int
) -> None:
    """A resumed delivery would read the checkpoint; a second try must not see what the first one left behind."""
    seen: list[str] = []

    def appends_and_fails_once(state: Any, context: Context) -> Any:
        seen.append(repr(state))
        state["lines"].append("charged")
        if context.attempt == 1:
            raise StepFailed
        return state

    steps: list[Step] = [lambda state, _: state, lambda state, _: state]
    steps[number - 1] = appends_and_fails_once
    report = run(store, *steps, state={"lines": []})
    assert seen == ["{'lines': []}"] * 2
    assert report.state == {"lines": ["charged"]}


def recursive() -> Any:
    around: list[Any] = []
    around.append(around)
    return around


def deep() -> Any:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    return value


@pytest.mark.parametrize(
    "make",
    [
        object,
        set,
        lambda: b"bytes",
        lambda: math.nan,
        lambda: math.inf,
        lambda: {"deep": [{"inside": {1, 2}}]},
        lambda: {("a", "tuple"): 1},
        lambda: 10**10_000,
        recursive,
        deep,
    ],
    ids=["object", "set", "bytes", "nan", "inf", "inside", "key", "digits", "recursive", "deep"],
)
def test_an_output_that_json_cannot_hold_is_refused_in_one_line_that_names_the_step(
    store: Store, make: Callable[[], Any]
) -> None:
    calls = 0

    def search(_: Any, __: Context) -> Any:
        nonlocal calls
        calls += 1
        return make()

    with pytest.raises(UnstorableOutput, match=r"^step 2 \(search\) of job invoice-17 returned what JSON") as caught:
        run(store, Script("one"), search)
    assert isinstance(caught.value, DurtuiError)
    assert len(str(caught.value).splitlines()) == 1
    assert calls == 1  # it would return the same again: a mistake is not tried three times more
    report = run(store, Script(StepFailed()), Script("two"))
    assert (report.state, report.skipped_steps) == ("two", 1)


# Mistakes


@pytest.mark.parametrize(
    ("steps", "options", "names"),
    [
        (0, {}, "steps"),
        (256, {}, "steps"),
        (1, {"retries": -1}, "retries"),
        (1, {"backoff_s": -0.1}, "backoff_s"),
        (1, {"backoff_s": math.nan}, "backoff_s"),
        (1, {"retries": 2.5}, "retries"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_is(
    store: Store, steps: int, options: dict[str, Any], names: str
) -> None:
    step = Script(*[StepFailed()] * 50, Died())  # tries without an end would reach the death
    with pytest.raises(Mistake, match=names) as caught:
        run(store, *[step] * steps, **options)
    assert caught.value.exit_code == 2
    assert step.calls == []
    assert store.count_states() == {}


def test_as_many_steps_as_a_checkpoint_can_number_are_run_and_resumed(store: Store) -> None:
    def add(state: int, _: Context) -> int:
        return state + 1

    last = Script(Died(), "end")
    with pytest.raises(Died):
        run(store, *[add] * 254, last, state=0)
    report = run(store, *[add] * 254, last)
    assert last.states == [254, 254]
    assert (report.skipped_steps, report.state) == (254, "end")


def test_fewer_steps_than_are_done_already_are_refused(store: Store) -> None:
    run(store, Script(1), Script(2), Script(3))
    with pytest.raises(Mistake, match="job invoice-17 has 3 steps done, and only 2 were given"):
        run(store, Script(1), Script(2))
    assert store.count_states() == {"finished": 1}


def test_a_step_added_to_a_finished_job_is_run_on_its_state(store: Store) -> None:
    run(store, Script("one"))
    added = Script("two")
    assert run(store, Script(StepFailed()), added).state == "two"
    assert added.states == ["one"]


def test_a_store_that_is_locked_for_long_is_named_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("durcore.database.BUSY_TIMEOUT_MS", 50)
    path = tmp_path / "jobs.db"
    holder = (
        "import sqlite3, sys; connection = sqlite3.connect(sys.argv[1]); connection.execute('BEGIN IMMEDIATE');"
        "print('held', flush=True); input()"
    )
    step = Script("done")
    with Store.create(path) as store:
        with subprocess.Popen(
            [sys.executable, "-c", holder, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == "held\n"
            with pytest.raises(StoreError, match=r"jobs.db is locked by another process"):
                run(store, step)
            other.communicate("\n")
        assert step.calls == []
        assert run(store, step).state == "done"
