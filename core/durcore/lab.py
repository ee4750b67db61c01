"""The lab: a lane for each design and seed, as many at a time as there are cores, and medians at the end."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from durcore.designs import DEFAULT_DESIGNS, Design, find_designs
from durcore.errors import Contradiction, LaneDamaged, Mistake, shown
from durcore.figures import Figures, figures_of, median_figures
from durcore.interventions import Intervention, check_interventions, ordered
from durcore.lanes import LaneProcess, end_all
from durcore.latency import Latency
from durcore.rundir import RUN_FILE, RunDirectory, clear_lane
from durcore.scenario import Scenario, check_seed
from durcore.supervisor import check_can_fork
from durcore.theory import Expectation, Judgement, expect, judge

DEFAULT_SEEDS = (7, 8, 9)  # 7 because its medians stand where the expectation does
POLL_S = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Replication:
    """One design run once, with one seed. `checkpoint_write_us` is None for a design that writes none.

    `judged` is how far each figure is off its expectation; None while the run is under way, and where anybody has
    intervened. `workers_killed` counts the worker processes that a crash has killed: none where crashes unwind.
    """

    seed: int
    figures: Figures
    checkpoint_write_us: Latency | None
    elapsed_s: float
    workers_killed: int = 0
    judged: Mapping[str, Judgement] | None = None
    interventions: tuple[Intervention, ...] = ()

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
    """A design's replications, by seed, the median of each figure over them, and what theory expects of one.

    It expects nothing, None, of a run in which anybody has intervened.
    """

    design: Design
    median: Figures
    expected: Expectation | None
    replications: tuple[Replication, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabResult(Mapping[str, DesignResult]):
    """What a lab found: `result["whole-job"].median.finished`. `interventions` are those that came before the end."""

    scenario: Scenario
    seeds: tuple[int, ...]
    designs: tuple[DesignResult, ...]
    complete: bool = True  # False: a look at a run under way
    interventions: tuple[Intervention, ...] = ()

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
    interventions: Sequence[Intervention] = (),
    run_dir: str | os.PathLike[str] | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    on_result: Callable[[LabResult], None] | None = None,
) -> LabResult:
    """Run every design with every seed, each in a lane with a store of its own, as many at a time as there are cores.

    `on_progress` is told how many jobs have ended and how many there are in all, about ten times a second; `on_result`
    the result, before anything is removed: where it raises, the run is kept, and can be resumed to tell it again.
    Each intervention is made in its design's lane of every seed; theory then knows nothing of the run.
    Without `run_dir` the run lives under the user's state directory and is removed when it has ended well; a note on
    the error names it when not. Raises Mistake for what cannot be run, LaneFailed for a lane that did not get
    to its end.
    """
    scenario = scenario or Scenario()
    chosen = find_designs(designs)
    if not chosen:
        raise Mistake("a lab needs at least one design")
    check_seeds(seeds)
    made = check_interventions(interventions, [design.name for design in chosen])
    check_can_fork(scenario)
    return _run_to_its_end(RunDirectory.create(run_dir, scenario, chosen, seeds, made), on_progress, on_result)


def resume_lab(
    run_dir: str | os.PathLike[str],
    *,
    rerun_damaged: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
    on_result: Callable[[LabResult], None] | None = None,
    on_note: Callable[[str], None] = lambda _: None,
) -> LabResult:
    """Go on with a run that was interrupted, failed or killed, and end as `run_lab` does, with the same figures.

    A lane of which a file was destroyed is refused with LaneDamaged, or with `rerun_damaged` run again from its seed.
    What was run again, and why, is told to `on_note`. Raises Mistake for a directory that holds no run, InUse for one
    that another process has under way.
    """
    directory = open_run(run_dir, on_note)
    return _run_to_its_end(directory, on_progress, on_result, on_note if rerun_damaged else None)


def open_run(run_dir: str | os.PathLike[str], on_note: Callable[[str], None]) -> RunDirectory:
    """Take up a run that was interrupted, ready for its lanes to go on. Raises as `resume_lab` does."""
    directory = RunDirectory.open(run_dir)
    if not directory.designs:
        directory.release()
        raise Mistake("a lab needs at least one design")
    try:
        check_seeds(directory.seeds)
        check_can_fork(directory.scenario)
        if lost := directory.clear_lanes_of_another_boot():
            on_note(f"this machine has been restarted since, or it is another one: {lost} lanes begin again")
    except BaseException:
        directory.release()
        raise
    return directory


def _run_to_its_end(
    directory: RunDirectory,
    on_progress: Callable[[int, int], None] | None,
    on_result: Callable[[LabResult], None] | None,
    on_rerun: Callable[[str], None] | None = None,
) -> LabResult:
    try:
        replications = _run_lanes(directory, on_progress, on_rerun)
        result = collect(directory.scenario, directory.seeds, directory.designs, replications)
        if on_result:
            on_result(result)
    except BaseException as error:
        directory.release()
        error.add_note(how_to_resume(directory, error))
        raise
    if directory.temporary:
        directory.remove()
    directory.release()
    return result


def how_to_resume(directory: RunDirectory, error: BaseException | None = None) -> str:
    """What to tell a person whose run has not come to its end."""
    if not (directory.path / RUN_FILE).exists():
        return f"nothing of the run is left in {directory.path}; run it again"
    command = f"durtui resume {shlex.quote(str(directory.path))}"
    if isinstance(error, LaneDamaged):
        return f"`{command} --rerun-damaged` runs what was destroyed again from its seed, and goes on with the rest"
    return f"the run is kept: `{command}` goes on with it"


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
    made = ordered(each for replication in replications.values() for each in replication.interventions)
    expected = {} if made else expect(scenario, designs)
    results = []
    for design in designs:
        own = [replications[design.name, seed] for seed in seeds]
        if complete and not made:
            own = [_judged(scenario, design, replication, expected[design.name]) for replication in own]
        median = median_figures([replication.figures for replication in own])
        results.append(
            DesignResult(design=design, median=median, expected=expected.get(design.name), replications=tuple(own))
        )
    return LabResult(
        scenario=scenario, seeds=tuple(seeds), designs=tuple(results), complete=complete, interventions=made
    )


def _judged(scenario: Scenario, design: Design, replication: Replication, expected: Expectation) -> Replication:
    figures = replication.figures.as_dict()
    judged = judge(scenario, design, figures, expected)
    for name, judgement in judged.items():
        if judgement.impossible:
            certain = getattr(expected, name).mean
            raise Contradiction(f"{design.name}, seed {replication.seed}: {name} is {figures[name]}, not {certain}")
    return replace(replication, judged=judged)


def _run_lanes(
    directory: RunDirectory,
    on_progress: Callable[[int, int], None] | None,
    on_rerun: Callable[[str], None] | None,
) -> dict[tuple[str, int], Replication]:
    """Run the lanes, a core each, until all have ended or one has failed. No lane outlives the call.

    A damaged lane begins again, and `on_rerun` is told, where there is one to be told.
    """
    scenario = directory.scenario
    waiting = [(design, seed) for seed in directory.seeds for design in directory.designs]
    total_jobs = len(waiting) * scenario.jobs
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    under_way: list[LaneProcess] = []
    done: dict[tuple[str, int], Replication] = {}
    told = 0.0
    try:
        while waiting or under_way:
            while waiting and len(under_way) < cores:
                design, seed = waiting.pop(0)
                place = directory.lane(design, seed)
                under_way.append(LaneProcess(place, scenario, design, seed, interventions=directory.interventions))
            for lane in [lane for lane in under_way if not lane.running]:
                under_way.remove(lane)
                try:
                    done[lane.design.name, lane.seed] = _replication(lane)
                except LaneDamaged as damage:
                    if on_rerun is None:
                        raise
                    on_rerun(f"{damage}: it begins again from its seed")
                    clear_lane(lane.directory, lane.design)
                    waiting.append((lane.design, lane.seed))
                finally:
                    lane.end()
            if on_progress and time.monotonic() - told > 0.1:
                told = time.monotonic()
                ended = sum(lane.progress().tally.ended for lane in under_way)
                on_progress(len(done) * scenario.jobs + ended, total_jobs)
            if under_way:
                time.sleep(POLL_S)
    finally:
        end_all(under_way)
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
        workers_killed=result.workers_killed,
        interventions=result.interventions,
    )
