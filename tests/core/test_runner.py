"""One delivery as a pure function: a script of answers in, a sequence of requests out, and the laws between them."""

import re
from dataclasses import dataclass, replace
from itertools import chain, repeat

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from durcore.designs import (
    CHECKPOINT,
    CHECKPOINT_IDEMPOTENT,
    DEFAULT_DESIGNS,
    DESIGNS,
    WHOLE_JOB,
    Ending,
    Policy,
    find_designs,
)
from durcore.errors import Mistake
from durcore.runner import Attempt, RecordKey, Request, Save, SendEmail, Wait, deliver
from durcore.scenario import Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A delivery that has been played: what was asked and answered, in order, and whether the job was completed."""

    asked: tuple[tuple[Request, bool], ...]
    completed: bool

    @property
    def requests(self) -> list[Request]:
        return [request for request, _ in self.asked]


def play(policy: Policy, saved: int, answers: list[bool], *, key_is_new: bool = True) -> Delivery:
    """Answer each attempt from `answers` (then with success), and the key with `key_is_new`."""
    script = chain(answers, repeat(True))
    asked: list[tuple[Request, bool]] = []
    runner = deliver(policy, saved)
    try:
        request = next(runner)
        while True:
            answer = next(script) if isinstance(request, Attempt) else key_is_new
            asked.append((request, answer))
            request = runner.send(answer)
    except StopIteration as end:
        return Delivery(asked=tuple(asked), completed=end.value)


def policy_of(design_name: str, **values: int) -> Policy:
    return DESIGNS[design_name].policy(Scenario(**values))  # type: ignore[arg-type]  # whole numbers, all of them


THREE_STEPS = Policy(steps=3, effect_step=2, deliveries=3, tries=2, checkpoints=True, guard="key")


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    steps = draw(st.integers(1, 8))
    return Policy(
        steps=steps,
        effect_step=draw(st.integers(0, steps)),
        deliveries=draw(st.integers(1, 4)),
        tries=draw(st.integers(1, 4)),
        checkpoints=draw(st.booleans()),
        guard=draw(st.sampled_from(["none", "key"])),
    )


@st.composite
def deliveries(draw: st.DrawFn) -> tuple[Policy, int, Delivery]:
    policy = draw(policies())
    saved = draw(st.integers(0, policy.steps)) if policy.checkpoints else 0
    answers = draw(st.lists(st.sampled_from([True, True, False]), max_size=24))
    return policy, saved, play(policy, saved, answers, key_is_new=draw(st.booleans()))


def test_a_job_without_faults_is_one_attempt_a_step_with_the_key_before_the_send_and_the_save_after() -> None:
    assert play(THREE_STEPS, 0, []) == Delivery(
        asked=(
            (Attempt(1, 0), True),
            (Save(1), True),
            (Attempt(2, 0), True),
            (RecordKey(2), True),
            (SendEmail(2), True),
            (Save(2), True),
            (Attempt(3, 0), True),
            (Save(3), True),
        ),
        completed=True,
    )


def test_a_design_without_checkpoints_saves_nothing_and_sends_once_a_delivery() -> None:
    policy = replace(THREE_STEPS, checkpoints=False, guard="none")
    assert play(policy, 0, []).requests == [Attempt(1, 0), Attempt(2, 0), SendEmail(2), Attempt(3, 0)]


def test_a_failed_attempt_is_waited_out_and_tried_again_and_the_last_failure_ends_the_delivery() -> None:
    delivery = play(THREE_STEPS, 0, [True, False, True, False, False])
    assert delivery.requests == [
        Attempt(1, 0),
        Save(1),
        Attempt(2, 0),
        Wait(2, 1),
        Attempt(2, 1),
        RecordKey(2),
        SendEmail(2),
        Save(2),
        Attempt(3, 0),
        Wait(3, 1),
        Attempt(3, 1),
    ]
    assert not delivery.completed


def test_a_key_that_is_there_skips_the_send_and_still_saves_the_step() -> None:
    delivery = play(THREE_STEPS, 1, [], key_is_new=False)
    assert delivery.requests == [Attempt(2, 0), RecordKey(2), Save(2), Attempt(3, 0), Save(3)]


def test_a_job_with_every_step_saved_is_completed_without_a_request() -> None:
    assert play(THREE_STEPS, 3, []) == Delivery(asked=(), completed=True)


@given(delivery=deliveries())
@settings(deadline=None, max_examples=300)
def test_every_delivery_has_the_grammar_of_its_policy(delivery: tuple[Policy, int, Delivery]) -> None:
    policy, saved, played = delivery
    words = []
    for request, answer in played.asked:
        sign = "+" if answer else "-"
        words.append(
            f"{type(request).__name__}{request.step}{sign if isinstance(request, Attempt | RecordKey) else ''} "
        )
    sentence = "".join(words)

    def step_done(step: int) -> str:
        failures = rf"(?:Attempt{step}- Wait{step} ){{0,{policy.tries - 1}}}"
        send = f"SendEmail{step} "
        guarded = rf"(?:RecordKey{step}\+ {send}|RecordKey{step}- )" if policy.guard == "key" else send
        effect = guarded if step == policy.effect_step else ""
        return rf"{failures}Attempt{step}\+ {effect}" + (f"Save{step} " if policy.checkpoints else "")

    def given_up(step: int) -> str:
        return rf"(?:Attempt{step}- Wait{step} ){{{policy.tries - 1}}}Attempt{step}- "

    remaining = range(saved + 1, policy.steps + 1)
    if played.completed:
        assert re.fullmatch("".join(map(step_done, remaining)), sentence), sentence
    else:
        endings = ["".join(map(step_done, range(saved + 1, step))) + given_up(step) for step in remaining]
        assert any(re.fullmatch(ending, sentence) for ending in endings), sentence


@given(delivery=deliveries())
@settings(deadline=None, max_examples=300)
def test_a_saved_step_is_never_attempted_and_a_step_never_more_often_than_allowed(
    delivery: tuple[Policy, int, Delivery],
) -> None:
    policy, saved, played = delivery
    attempted = [request.step for request in played.requests if isinstance(request, Attempt)]
    assert all(saved < step <= policy.steps for step in attempted)
    assert all(attempted.count(step) <= policy.tries for step in attempted)
    assert attempted == sorted(attempted)


@given(delivery=deliveries())
@settings(deadline=None, max_examples=300)
def test_an_attempt_and_a_wait_say_how_many_failures_went_before(delivery: tuple[Policy, int, Delivery]) -> None:
    _, _, played = delivery
    failures: dict[int, int] = {}
    for request, answer in played.asked:
        if isinstance(request, Attempt | Wait):
            assert request.failures == failures.get(request.step, 0)
        if isinstance(request, Attempt) and not answer:
            failures[request.step] = failures.get(request.step, 0) + 1


@given(delivery=deliveries())
@settings(deadline=None, max_examples=300)
def test_a_delivery_sends_at_most_one_email_and_only_at_the_effect_step(
    delivery: tuple[Policy, int, Delivery],
) -> None:
    policy, saved, played = delivery
    sends = [request.step for request in played.requests if isinstance(request, SendEmail)]
    assert sends in ([], [policy.effect_step])
    if played.completed and policy.guard == "none":
        assert bool(sends) == (policy.effect_step > saved)


@pytest.mark.parametrize(
    ("completed", "delivery", "checkpoints", "ending"),
    [
        (True, 1, True, "finished"),
        (True, 3, False, "finished"),
        (False, 1, True, "redelivered"),
        (False, 2, False, "redelivered"),
        (False, 3, True, "dead_lettered"),
        (False, 3, False, "lost"),
    ],
)
def test_a_job_ends_as_the_contract_says(completed: bool, delivery: int, checkpoints: bool, ending: Ending) -> None:
    policy = replace(THREE_STEPS, checkpoints=checkpoints)
    assert policy.ending(completed=completed, delivery=delivery) == ending


@given(
    job_attempts=st.integers(1, 100),
    step_attempts=st.integers(1, 100),
    redeliveries_max=st.integers(0, 1000),
    steps=st.integers(1, 100),
)
def test_a_design_takes_its_caps_from_the_scenario(
    job_attempts: int, step_attempts: int, redeliveries_max: int, steps: int
) -> None:
    scenario = Scenario(
        steps=steps, job_attempts=job_attempts, step_attempts=step_attempts, redeliveries_max=redeliveries_max
    )
    assert WHOLE_JOB.policy(scenario) == Policy(
        steps=steps,
        effect_step=min(6, steps),
        deliveries=job_attempts,
        tries=1,
        checkpoints=False,
        guard="none",
    )
    assert CHECKPOINT.policy(scenario) == Policy(
        steps=steps,
        effect_step=min(6, steps),
        deliveries=1 + redeliveries_max,
        tries=step_attempts,
        checkpoints=True,
        guard="none",
    )
    assert CHECKPOINT_IDEMPOTENT.policy(scenario) == replace(CHECKPOINT.policy(scenario), guard="key")


def test_the_three_designs_stand_in_the_contracts_order() -> None:
    assert DEFAULT_DESIGNS == ("whole-job", "checkpoint", "checkpoint-idempotent")


def test_designs_are_found_by_name_each_once_in_the_order_asked_for() -> None:
    names = ["checkpoint", "whole-job", "checkpoint"]
    assert [design.name for design in find_designs(names)] == ["checkpoint", "whole-job"]


def test_an_unknown_design_is_refused_and_the_known_ones_are_named() -> None:
    with pytest.raises(Mistake) as caught:
        find_designs(["whole-job", "hope"])
    assert str(caught.value) == "design(=hope) must be one of whole-job, checkpoint, checkpoint-idempotent"


def test_a_whole_job_gives_up_at_its_first_failure() -> None:
    assert play(policy_of("whole-job", steps=3), 0, [True, False]).requests == [Attempt(1, 0), Attempt(2, 0)]
