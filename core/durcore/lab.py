"""The lab: a lane for each design and seed, as many at a time as there are cores, and medians at the end."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from durcore.designs import DEFAULT_DESIGNS, Design, find_designs
from durcore.errors import Contradiction, Mistake, shown
from durcore.figures import Figures, figures_of, median_figures
from durcore.lanes import LaneProcess
from durcore.latency import Latency
from durcore.rundir import RunDirectory
from durcore.scenario import Scenario, check_seed
from durcore.theory import Expectation, Judgement, expect, judge

DEFAULT_SEEDS = (7, 8, 9)  # 7 because its medians stand where the expectation does
POLL_S = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Replication:
    """One design run once, with one seed. `checkpoint_write_us` is None for a design that writes none.

    `judged` is how far each figure is off its expectation; None while the run is under way.
    """

    seed: int
    figures: Figures
    checkpoint_write_us: Latency | None
    elapsed_s: float
    judged: Mapping[str, Judgement] | None = None

    @property
    def z(self) -> dict[str, float | None] | None:
        """Deviations from the expectation, by figure; None for one that is certain, or that rests on few jobs."""
        return None if self.judged is None else {name: each.z for name, each in self.judged.items()}

    @property
    def tail_p(self) -> dict[str, float | None] | None:
        """The exact two-sided tail probability, for the figures that rest on few jobs; None for the others."""
        return None if self.judged is None else {name: each.tail_p for name, each in self.judged.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignResult:
    """A design's replications, by seed, the median of each figure over them, and what theory expects of one."""

    design: Design
    median: Figures
    expected: Expectation
    replications: tuple[Replication, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabResult(Mapping[str, DesignResult]):
    """What a lab found: `result["whole-job"].median.finished`."""

    scenario: Scenario
    seeds: tuple[int, ...]
    designs: tuple[DesignResult, ...]
    complete: bool = True  # False: a look at a run under way

    def __getitem__(self, name: str) -> DesignResult:
        for result in self.designs:
            if result.design.name == name:
                return result
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return (result.design.name for result in self.designs)

    def __len__(self) -> int:
        return len(self.designs)


def run_lab(
    scenario: Scenario | None = None,
    seeds: Sequence[int] = DEFAULT_SEEDS,
    designs: Iterable[str] = DEFAULT_DESIGNS,
    *,
    run_dir: str | os.PathLike[str] | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> LabResult:
    """Run every design with every seed, each in a lane with a store of its own, as many at a time as there are cores.

    `on_progress` is told how many jobs have ended and how many there are in all, about ten times a second. Without
    `run_dir` the run lives under the user's state directory and is removed when it has ended well; a note on the error
    names it when not. Raises Mistake for what cannot be run, LaneFailed for a lane that did not get to its end.
    """
    scenario = scenario or Scenario()
    chosen = find_designs(designs)
    if not chosen:
        raise Mistake("a lab needs at least one design")
    check_seeds(seeds)
    directory = RunDirectory.create(run_dir, scenario, chosen, seeds)
    try:
        replications = _run_lanes(scenario, chosen, seeds, directory, on_progress)
        result = collect(scenario, seeds, chosen, replications)
    except BaseException as error:
        error.add_note(f"the run so far is kept in {directory.path}")
        raise
    if directory.temporary:
        directory.remove()
    return result


def check_seeds(seeds: Sequence[int]) -> None:
    """Raise Mistake unless there is a seed, each is one, and all differ."""
    if not seeds:
        raise Mistake("a lab needs at least one seed")
    if len(set(map(check_seed, seeds))) < len(seeds):
        raise Mistake(f"seeds(={shown(list(seeds))}) must differ: a replication with the same seed is the same run")


def collect(
    scenario: Scenario,
    seeds: Sequence[int],
    designs: Sequence[Design],
    replications: Mapping[tuple[str, int], Replication],
    *,
    complete: bool = True,
) -> LabResult:
    """Put replications, by name of design and seed, together to a result with its medians and its expectations.

    Raises Contradiction where a figure that is certain has another value: that is no bad luck.
    """
    expected = expect(scenario, designs)
    results = []
    for design in designs:
        own = [replications[design.name, seed] for seed in seeds]
        if complete:
            own = [_judged(scenario, design, replication, expected[design.name]) for replication in own]
        median = median_figures([replication.figures for replication in own])
        results.append(
            DesignResult(design=design, median=median, expected=expected[design.name], replications=tuple(own))
        )
    return LabResult(scenario=scenario, seeds=tuple(seeds), designs=tuple(results), complete=complete)


def _judged(scenario: Scenario, design: Design, replication: Replication, expected: Expectation) -> Replication:
    figures = replication.figures.as_dict()
    judged = judge(scenario, design, figures, expected)
    for name, judgement in judged.items():
        if judgement.impossible:
            certain = getattr(expected, name).mean
            raise Contradiction(f"{design.name}, seed {replication.seed}: {name} is {figures[name]}, not {certain}")
    return replace(replication, judged=judged)


def _run_lanes(
    scenario: Scenario,
    designs: Sequence[Design],
    seeds: Sequence[int],
    directory: RunDirectory,
    on_progress: Callable[[int, int], None] | None,
) -> dict[tuple[str, int], Replication]:
    """Run the lanes, a core each, until all have ended or one has failed. No lane outlives the call."""
    waiting = [(design, seed) for seed in seeds for design in designs]
    total_jobs = len(waiting) * scenario.jobs
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    under_way: list[LaneProcess] = []
    done: dict[tuple[str, int], Replication] = {}
    told = 0.0
    try:
        while waiting or under_way:
            while waiting and len(under_way) < cores:
                design, seed = waiting.pop(0)
                under_way.append(LaneProcess(directory.lane(design, seed), scenario, design, seed))
            for lane in [lane for lane in under_way if not lane.running]:
                done[lane.design.name, lane.seed] = _replication(lane)
                lane.end()
                under_way.remove(lane)
            if on_progress and time.monotonic() - told > 0.1:
                told = time.monotonic()
                ended = sum(lane.progress().tally.ended for lane in under_way)
                on_progress(len(done) * scenario.jobs + ended, total_jobs)
            if under_way:
                time.sleep(POLL_S)
    finally:
        for lane in under_way:
            lane.close_input()
        for lane in under_way:
            lane.end()
    if on_progress:
        on_progress(total_jobs, total_jobs)
    return done


def _replication(lane: LaneProcess) -> Replication:
    result = lane.result()
    return Replication(
        seed=lane.seed,
        figures=figures_of(result.tally, lane.scenario),
        checkpoint_write_us=result.checkpoint_write_us,
        elapsed_s=result.elapsed_s,
    )
