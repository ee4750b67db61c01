"""The same lab vectorised over jobs in numpy: same addressed draws, same figures to the job. No store, no ledger.

It shares values with the lab (scenario, policy, figures) and no behaviour: the draws and the course of a job are
written a second time here, so that lab and model check each other. Only + - * ^ >> of 64-bit integers and comparisons
decide, so figures are the same on every machine. numpy is imported when a function is called, not with this module.

How it goes fast: most attempts are a step's first (n = 0) and succeed. Those draws are made once for all designs, and a
job then jumps from one first failure to the next; only what is tried again is drawn attempt by attempt, for all jobs
under way at once. Memory is bounded by taking the jobs in blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any

from durcore.designs import DEFAULT_DESIGNS, Design, Policy, find_designs
from durcore.errors import InvalidScenario
from durcore.faults import CRASH_POINTS, GOLDEN_GAMMA, MASK, MIX_1, MIX_2, Purpose, mix64
from durcore.figures import Figures, Tally, figures_of
from durcore.scenario import Scenario, check_seed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Words = NDArray[np.uint64]
    Whole = NDArray[np.int64]
    Bytes = NDArray[np.uint8]

BLOCK_JOBS = 1 << 15  # one step's draws of a block stay in the processor's cache

TRANSIENT, CRASH = 1, 2  # an attempt's fate as a bit; 0 is success
_, AFTER_KEY, AFTER_WORK, AFTER_CHECKPOINT = range(4)  # in the contract's order, which is the order of time
FINISHED, LOST, DEAD_LETTERED, UNDER_WAY = 0, 1, 2, 3
ENDINGS = ("finished", "lost", "dead_lettered")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """What became of each job of a range, as arrays by job, the first of them job number `first_job`.

    `ending` indexes ENDINGS (uint8); the others are int64: calls billed, emails the customer received, deliveries, and
    steps whose checkpoint was saved.
    """

    first_job: int
    ending: Bytes
    calls: Whole
    emails: Whole
    deliveries: Whole
    saved: Whole


def simulate(scenario: Scenario, seed: int, designs: Iterable[Design | str] = DEFAULT_DESIGNS) -> Mapping[str, Figures]:
    """The figures of one replication, by design name in the order asked for: exactly those of the lab.

    Raises InvalidScenario for a seed out of range and Mistake for an unknown design name.
    """
    weather = _Weather(scenario, seed)
    lanes = find_designs(designs)
    tallies = {design.name: Tally() for design in lanes}
    for first_job in range(1, scenario.jobs + 1, BLOCK_JOBS):
        last_job = min(first_job + BLOCK_JOBS - 1, scenario.jobs)
        for design, outcomes in _block(scenario, weather, lanes, first_job, last_job):
            _count(tallies[design.name], outcomes, scenario.steps)
    return {name: figures_of(tally, scenario) for name, tally in tallies.items()}


def outcomes(
    scenario: Scenario, seed: int, design: Design | str, first_job: int = 1, last_job: int | None = None
) -> Outcomes:
    """What becomes of the jobs `first_job` to `last_job` (None: the scenario's last), both included, job by job.

    Takes some 100 bytes a job and 6 a step while it works, so ask for ranges. Raises InvalidScenario for an empty range
    or one beyond the scenario's jobs.
    """
    last_job = scenario.jobs if last_job is None else last_job
    if not 1 <= first_job <= last_job <= scenario.jobs:
        raise InvalidScenario(f"jobs(={first_job} to {last_job}) must be a range within 1 and {scenario.jobs:,}")
    ((_, result),) = _block(scenario, _Weather(scenario, seed), find_designs([design]), first_job, last_job)
    return result


def _count(tally: Tally, seen: Outcomes, steps: int) -> None:
    """Add a block of jobs to a lane's tally."""
    finished = seen.ending == FINISHED
    tally.finished += int(finished.sum())
    tally.lost += int((seen.ending == LOST).sum())
    tally.dead_lettered += int((seen.ending == DEAD_LETTERED).sum())
    tally.model_calls += int(seen.calls.sum())
    tally.lost_job_calls += int(seen.calls[~finished].sum())
    tally.duplicate_email_jobs += int((seen.emails >= 2).sum())
    tally.missing_email_jobs += int((finished & (seen.emails == 0)).sum())
    tally.emails_delivered += int(seen.emails.sum())
    tally.redeliveries += int(seen.deliveries.sum()) - len(seen.deliveries)
    tally.resumed_jobs += int((seen.deliveries > 1).sum())
    tally.checkpoint_writes += int(seen.saved.sum())


class _Weather:
    """The contract's draws for whole arrays of addresses: fates as uint8, 0, TRANSIENT or CRASH, and crash points."""

    def __init__(self, scenario: Scenario, seed: int) -> None:
        import numpy as np

        key = mix64((check_seed(seed) + 1) * GOLDEN_GAMMA & MASK)
        self._key = np.uint64(key)
        # u is k / 2**53 for a whole k, so comparing k with thresholds rounded up is comparing u, without a float.
        transient_below = ceil(scenario.transient_rate * 2**53)
        self._transient_below = np.uint64(transient_below)
        self._crash_from = np.uint64(max(transient_below, ceil((1 - scenario.crash_rate) * 2**53)))
        purpose = Purpose.ATTEMPT << 60
        # An address times G is a sum of its parts times G, and the parts of a step are few: they wait in a table.
        self.of_step = np.array(
            [(purpose | step << 24) * GOLDEN_GAMMA + key & MASK for step in range(1, scenario.steps + 1)], np.uint64
        )
        point = scenario.crash_point
        self._crash_point = None if point == "anywhere" else np.array([CRASH_POINTS.index(point)], np.uint8)
        self._to_crash_point = np.uint64((Purpose.CRASH_POINT << 60) * GOLDEN_GAMMA & MASK)
        self._shifts = tuple(np.uint64(n) for n in (30, 27, 31, 11, 62))
        self._gamma, self._mix_1, self._mix_2 = (np.uint64(n) for n in (GOLDEN_GAMMA, MIX_1, MIX_2))

    def of_jobs(self, first_job: int, last_job: int) -> Words:
        """The part of an address that is the job's, times G."""
        import numpy as np

        return np.arange(first_job, last_job + 1, dtype=np.uint64) * np.uint64((GOLDEN_GAMMA << 32) & MASK)

    def of_tries(self, n: NDArray[np.uint32]) -> Words:
        """The part of an address that is the attempt's number, times G."""
        return n * self._gamma

    def fates(self, z: Words) -> Bytes:
        """The fates at these addresses, each the sum of a job's, a step's and an attempt's part. Overwrites `z`."""
        import numpy as np

        self._draw(z)
        z >>= self._shifts[3]
        fates = (z >= self._crash_from).view(np.uint8)
        fates <<= 1
        fates |= (z < self._transient_below).view(np.uint8)
        return fates

    def crash_points(self, z: Words) -> Bytes:
        """Where crashes of the attempts at these addresses land. Overwrites `z`."""
        if self._crash_point is not None:
            return self._crash_point.repeat(len(z))
        z += self._to_crash_point
        self._draw(z)
        z >>= self._shifts[4]  # the quarter of the unit interval that v is in
        return z.astype("uint8")

    def _draw(self, z: Words) -> None:
        """From addresses times G plus the key to 64 drawn bits, in place; u is the upper 53 of them."""
        import numpy as np

        self._mix(z, scratch := np.empty_like(z))
        z ^= self._key
        self._mix(z, scratch)

    def _mix(self, z: Words, scratch: Words) -> None:
        """SplitMix64's finaliser, in place."""
        import numpy as np

        a, b, c, *_ = self._shifts
        z ^= np.right_shift(z, a, out=scratch)
        z *= self._mix_1
        z ^= np.right_shift(z, b, out=scratch)
        z *= self._mix_2
        z ^= np.right_shift(z, c, out=scratch)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """A range of jobs with every step's first attempt drawn. Steps are counted from 0 in here.

    first: [step, job] the fate of the first attempt; ahead: [step, job] the nearest step from this one on whose first
    attempt fails, or the number of steps where there is none.
    """

    of_jobs: Words
    first: Bytes
    ahead: Bytes


def _draw_block(weather: _Weather, first_job: int, last_job: int) -> _Block:
    import numpy as np

    of_jobs = weather.of_jobs(first_job, last_job)
    steps, jobs = len(weather.of_step), len(of_jobs)
    first = np.empty((steps, jobs), np.uint8)
    for step, of_step in enumerate(weather.of_step):
        first[step] = weather.fates(of_jobs + of_step)
    ahead = np.empty((steps + 1, jobs), np.uint8)
    ahead[steps] = steps
    for step in reversed(range(steps)):
        ahead[step] = np.where(first[step], np.uint8(step), ahead[step + 1])
    return _Block(of_jobs=of_jobs, first=first, ahead=ahead)


def _block(
    scenario: Scenario, weather: _Weather, designs: Iterable[Design], first_job: int, last_job: int
) -> Iterator[tuple[Design, Outcomes]]:
    """Each design's outcomes for a range of jobs. Designs that differ in their guard alone run once."""
    import numpy as np

    block = _draw_block(weather, first_job, last_job)
    runs: dict[Any, _Run] = {}
    for design in designs:
        policy = design.policy(scenario)
        shape = (policy.checkpoints, policy.deliveries, policy.tries)
        run = runs.get(shape)
        if run is None:
            run = runs[shape] = _Run(weather, block, policy)
            run.to_the_end()
        seen = Outcomes(
            first_job=first_job,
            ending=run.ending,
            calls=run.calls,
            # The key lets the effect through for whoever commits it first, and outlives deliveries.
            emails=np.minimum(run.effects, ~run.key_first) if policy.guard == "key" else run.effects,
            deliveries=run.deliveries,
            saved=run.step if policy.checkpoints else np.zeros_like(run.step),
        )
        yield design, seen


class _Run:
    """One design over one block of jobs: the state of every job, moved on by whole arrays of job indices (`who`)."""

    def __init__(self, weather: _Weather, block: _Block, policy: Policy) -> None:
        import numpy as np

        steps, jobs = block.first.shape
        self._weather, self._block, self._policy = weather, block, policy
        self._effect = policy.effect_step - 1
        self.step = np.zeros(jobs, np.int64)  # the step to attempt next; the number of steps when all are done
        self._reached = np.full(jobs, -1, np.int64)  # the last step that was ever attempted
        self._again = np.zeros((steps, jobs), np.uint32)  # attempts at a step after its first
        self._failures = np.zeros(jobs, np.int64)  # of the present step in the present delivery
        self.ending = np.full(jobs, UNDER_WAY, np.uint8)
        self.calls = np.zeros(jobs, np.int64)
        self.effects = np.zeros(jobs, np.int64)  # times the effect's work was done
        self.key_first = np.zeros(jobs, np.bool_)  # a crash between key and effect came before any effect
        self.deliveries = np.ones(jobs, np.int64)

    def to_the_end(self) -> None:
        """Run every job until it has ended: one attempt of each job under way at a time, first successes in a jump."""
        import numpy as np

        under_way = np.arange(len(self.step))
        while len(under_way):
            new = self._reached[under_way] < self.step[under_way]
            self._jump(under_way[new])
            self._attempt_again(under_way[~new])
            under_way = under_way[self.ending[under_way] == UNDER_WAY]

    def _jump(self, who: Whole) -> None:
        """Attempt steps that never were attempted, up to the first that fails; finish where none is left."""
        block = self._block
        start = self.step[who]
        end = block.ahead[start, who].astype(start.dtype)
        self.calls[who] += end - start
        self.effects[who] += (start <= self._effect) & (self._effect < end)
        self.step[who] = end
        failed = end < len(block.first)
        self.ending[who[~failed]] = FINISHED
        who, at = who[failed], end[failed]
        self.calls[who] += 1
        self._reached[who] = at
        self._fail(who, at, block.first[at, who] == CRASH)

    def _attempt_again(self, who: Whole) -> None:
        """Attempt a step that was attempted before."""
        at = self.step[who]
        self._again[at, who] += 1
        self.calls[who] += 1
        fates = self._weather.fates(self._addresses(who, at))
        failed = fates != 0
        passed, after = who[~failed], at[~failed]
        self.effects[passed] += after == self._effect
        self._failures[passed] = 0
        self.step[passed] = after + 1
        self._fail(who[failed], at[failed], fates[failed] == CRASH)

    def _addresses(self, who: Whole, at: Whole) -> Words:
        """The addresses, times G, of the latest attempts at steps `at`."""
        return self._block.of_jobs[who] + self._weather.of_step[at] + self._weather.of_tries(self._again[at, who])

    def _fail(self, who: Whole, at: Whole, crashed: NDArray[np.bool_]) -> None:
        """Settle failed attempts at steps `at`: try again, deliver again, or end."""
        policy = self._policy
        self._crash(who[crashed], at[crashed])
        failures = self._failures[who] + 1
        over = crashed | (failures == policy.tries)
        failures[over] = 0
        self._failures[who] = failures
        last = over & (self.deliveries[who] == policy.deliveries)
        self.ending[who[last]] = DEAD_LETTERED if policy.checkpoints else LOST
        back = who[over & ~last]
        self.deliveries[back] += 1
        if not policy.checkpoints:
            self.step[back] = 0

    def _crash(self, who: Whole, at: Whole) -> None:
        """Leave behind what attempts at steps `at` had done when they crashed."""
        point = self._weather.crash_points(self._addresses(who, at))
        effect = at == self._effect
        self.key_first[who] |= effect & (point == AFTER_KEY) & (self.effects[who] == 0)
        self.effects[who] += effect & (point >= AFTER_WORK)
        if self._policy.checkpoints:
            self.step[who] += point == AFTER_CHECKPOINT
