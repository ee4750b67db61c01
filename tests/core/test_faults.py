"""Draws: the contract's vectors, their uniformity and independence, and what a rate does to the faults there were."""

from collections.abc import Callable, Iterable
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from durcore.errors import InvalidScenario
from durcore.faults import Fate, FaultPlan, Purpose
from durcore.scenario import Scenario

# seed, purpose, job, step, n: u. From the contract, section Draws.
VECTORS = [
    (7, 0, 1, 1, 0, 0.03647736584354011),
    (7, 0, 1, 1, 1, 0.5309759760571818),
    (7, 0, 2000, 10, 0, 0.9745394159359634),
    (1, 0, 417, 6, 2, 0.9169244545158712),
    (7, 1, 1, 6, 0, 0.8551258748701942),
    (7, 2, 1, 0, 0, 0.6068283177796755),
    (2**63 - 1, 3, 10_000_000, 0, 0, 0.49482494778532116),
]
BINS = 256
# A chi-square of 255 degrees of freedom has mean 255 and deviation 22.6; five deviations either way. The draws are
# fixed, so a test that has passed passes for ever; the lower bound catches a sequence too even to be random.
CHI_SQUARE = (255 - 113, 255 + 113)
PAIRS = 100_000

seeds = st.integers(0, 2**63 - 1)
addresses = st.tuples(st.integers(1, 10_000_000), st.integers(1, 100), st.integers(0, 100_100))


def plan_of(seed: int, *, transient: float = 0.03, crash: float = 0.01) -> FaultPlan:
    return FaultPlan(Scenario(transient_rate=transient, crash_rate=crash), seed)


def chi_square(bins: Iterable[int], draws: int) -> float:
    counts = [0] * BINS
    for index in bins:
        counts[index] += 1
    assert sum(counts) == draws
    expected = draws / BINS
    return sum((count - expected) ** 2 for count in counts) / expected


@pytest.mark.parametrize(("seed", "purpose", "job", "step", "n", "u"), VECTORS)
def test_a_draw_is_the_contracts(seed: int, purpose: int, job: int, step: int, n: int, u: float) -> None:
    assert plan_of(seed).draw(Purpose(purpose), job, step, n) == u


@given(seed=seeds, address=addresses, purpose=st.sampled_from(Purpose))
def test_a_draw_lies_in_the_unit_interval_and_depends_on_nothing_but_its_address(
    seed: int, address: tuple[int, int, int], purpose: Purpose
) -> None:
    u = plan_of(seed).draw(purpose, *address)
    assert 0 <= u < 1
    worn = FaultPlan(Scenario(jobs=1, steps=1, transient_rate=0.5, crash_rate=0.5), seed)
    worn.draw(purpose, 1, 1, 0)
    assert worn.draw(purpose, *address) == u


def test_the_numbers_of_the_purposes_are_the_contracts() -> None:
    assert [purpose.value for purpose in Purpose] == [0, 1, 2, 3, 4]
    assert [purpose.name for purpose in Purpose] == ["ATTEMPT", "CRASH_POINT", "POISONED", "POISONED_STEP", "BACKOFF"]


@pytest.mark.parametrize("seed", [-1, 2**63])
def test_a_plan_refuses_what_is_no_seed(seed: int) -> None:
    with pytest.raises(InvalidScenario, match="seed"):
        plan_of(seed)


def test_a_million_draws_are_uniform() -> None:
    seed = 7
    of_seed_7 = plan_of(seed).draw
    bins = (
        int(of_seed_7(Purpose.ATTEMPT, job, step, n) * BINS)
        for job in range(1, 50_001)
        for step in range(1, 11)
        for n in range(2)
    )
    low, high = CHI_SQUARE
    assert low < chi_square(bins, 1_000_000) < high, f"seed {seed}"


draw = plan_of(11).draw
draw_of_next_seed = plan_of(12).draw
Neighbours = Callable[[int, int, int], tuple[float, float]]


def neighbours_in_job(job: int, step: int, n: int) -> tuple[float, float]:
    return draw(Purpose.ATTEMPT, job, step, n), draw(Purpose.ATTEMPT, job + 1, step, n)


def neighbours_in_step(job: int, step: int, n: int) -> tuple[float, float]:
    return draw(Purpose.ATTEMPT, job, step, n), draw(Purpose.ATTEMPT, job, step + 1, n)


def neighbours_in_n(job: int, step: int, n: int) -> tuple[float, float]:
    return draw(Purpose.ATTEMPT, job, step, n), draw(Purpose.ATTEMPT, job, step, n + 1)


def neighbours_in_purpose(job: int, step: int, n: int) -> tuple[float, float]:
    return draw(Purpose.ATTEMPT, job, step, n), draw(Purpose.CRASH_POINT, job, step, n)


def neighbours_in_seed(job: int, step: int, n: int) -> tuple[float, float]:
    return draw(Purpose.ATTEMPT, job, step, n), draw_of_next_seed(Purpose.ATTEMPT, job, step, n)


@pytest.mark.parametrize(
    "pair",
    [neighbours_in_job, neighbours_in_step, neighbours_in_n, neighbours_in_purpose, neighbours_in_seed],
)
def test_neighbouring_addresses_draw_independently(pair: Neighbours) -> None:
    places = ((job, step, n) for job in range(1, 10**6) for step in (1, 6, 10) for n in (0, 3))
    pairs = (pair(*place) for place in islice(places, PAIRS))
    low, high = CHI_SQUARE
    assert low < chi_square((int(a * 16) * 16 + int(b * 16) for a, b in pairs), PAIRS) < high


def test_neighbouring_seeds_are_not_one_anothers_neighbouring_jobs() -> None:
    one, other = plan_of(7), plan_of(8)
    own = {one.draw(Purpose.ATTEMPT, job, step, 0) for job in range(1, 2001) for step in range(1, 11)}
    others = {other.draw(Purpose.ATTEMPT, job, step, 0) for job in range(1, 2001) for step in range(1, 11)}
    assert len(own) == len(others) == 20_000
    assert not own & others


rates = st.floats(0, 1)


@st.composite
def raised_rates(choose: st.DrawFn) -> tuple[tuple[float, float], tuple[float, float]]:
    """Two pairs of transient and crash rate, the second nowhere below the first."""
    transient, crash = choose(rates), choose(rates)
    high = (transient, min(crash, 1 - transient))
    return (high[0] * choose(rates), high[1] * choose(rates)), high


@given(seed=seeds, address=addresses, raised=raised_rates())
@settings(max_examples=500)
def test_raising_either_rate_keeps_every_fault_there_was(
    seed: int, address: tuple[int, int, int], raised: tuple[tuple[float, float], tuple[float, float]]
) -> None:
    low, high = raised
    before = plan_of(seed, transient=low[0], crash=low[1]).fate(*address)
    if before is not Fate.SUCCESS:
        assert plan_of(seed, transient=high[0], crash=high[1]).fate(*address) is before


@given(seed=seeds, address=addresses, transient=rates, share=rates)
@settings(max_examples=500)
def test_transient_failures_lie_at_the_bottom_of_the_unit_interval_and_crashes_at_the_top(
    seed: int, address: tuple[int, int, int], transient: float, share: float
) -> None:
    crash = (1 - transient) * share
    plan = plan_of(seed, transient=transient, crash=crash)
    u = plan.draw(Purpose.ATTEMPT, *address)
    expected = Fate.TRANSIENT if u < transient else Fate.CRASH if u >= 1 - crash else Fate.SUCCESS
    assert plan.fate(*address) is expected


@given(seed=seeds, address=addresses)
def test_a_rate_of_zero_never_strikes_and_a_rate_of_one_always_does(seed: int, address: tuple[int, int, int]) -> None:
    assert plan_of(seed, transient=0, crash=0).fate(*address) is Fate.SUCCESS
    assert plan_of(seed, transient=1, crash=0).fate(*address) is Fate.TRANSIENT
    assert plan_of(seed, transient=0, crash=1).fate(*address) is Fate.CRASH


@given(seed=seeds, address=addresses, hundredths=st.integers(0, 100))
def test_nothing_succeeds_where_the_rates_make_one(seed: int, address: tuple[int, int, int], hundredths: int) -> None:
    plan = plan_of(seed, transient=hundredths / 100, crash=(100 - hundredths) / 100)
    assert plan.fate(*address) is not Fate.SUCCESS


def test_faults_come_as_often_as_their_rates_say() -> None:
    seed, attempts = 7, 200_000
    plan = plan_of(seed)
    fates = [plan.fate(job, step, 0) for job in range(1, attempts // 10 + 1) for step in range(1, 11)]
    for fate, rate in ((Fate.TRANSIENT, 0.03), (Fate.CRASH, 0.01)):
        deviation = (attempts * rate * (1 - rate)) ** 0.5
        assert abs(fates.count(fate) - attempts * rate) < 4 * deviation, f"seed {seed}, {fate.name}"
