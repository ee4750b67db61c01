"""Session: the lanes that one app has under way, and the runs behind them. It knows processes, not widgets."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from durcore.designs import Design
from durcore.errors import LaneFailed
from durcore.figures import figures_of
from durcore.lab import LabResult, Replication, collect
from durcore.lane import GoOn, Pause, SetSpeed, Step
from durcore.lanes import LaneProcess
from durcore.live import LaneState
from durcore.rundir import RunDirectory
from durcore.scenario import Scenario
from durtui.view import LaneView, Phase

PHASES = {
    LaneState.STARTING: Phase.STARTING,
    LaneState.QUEUEING: Phase.QUEUEING,
    LaneState.RUNNING: Phase.RUNNING,
    LaneState.COUNTING: Phase.COUNTING,
    LaneState.DONE: Phase.COUNTING,  # done only when its result has been read
}


class Session:
    """A run of each design under one scenario and seed, restarted whenever the scenario changes.

    Not for several threads. `close` ends every process that it started, also of the runs that were restarted.
    """

    def __init__(self, designs: Sequence[Design], seed: int, calls_per_s: float | None) -> None:
        self.designs = tuple(designs)
        self.seed = seed
        self.paused = False
        self.calls_per_s = calls_per_s
        self.scenario = Scenario()
        self.directory: RunDirectory | None = None
        self._lanes: list[LaneProcess] = []
        self._views: dict[str, LaneView] = {}  # of lanes that have ended: nothing about them changes any more
        self._retiring: list[threading.Thread] = []

    def start(self, scenario: Scenario) -> None:
        """Leave the present run, if there is one, and begin `scenario` from its first job.

        Raises Mistake or DurtuiError, with the present run gone, where the new one has no place.
        """
        self._retire()
        self.scenario = scenario
        self.directory = RunDirectory.create(None, scenario, self.designs, [self.seed])
        try:
            for design in self.designs:
                place = self.directory.lane(design, self.seed)
                lane = LaneProcess(place, scenario, design, self.seed, calls_per_s=self.calls_per_s, paused=self.paused)
                self._lanes.append(lane)
        except LaneFailed:
            self._retire()
            raise

    def pause(self, paused: bool) -> None:
        """Hold every lane before its next call, or let it go on."""
        self.paused = paused
        for lane in self._lanes:
            lane.send(Pause() if paused else GoOn())

    def step(self) -> None:
        """Pause, and let every lane make one call."""
        if not self.paused:
            self.pause(True)
        for lane in self._lanes:
            lane.send(Step())

    def set_speed(self, calls_per_s: float | None) -> None:
        """Set the calls a second of each lane, None for unlimited."""
        self.calls_per_s = calls_per_s
        for lane in self._lanes:
            lane.send(SetSpeed(calls_per_s))

    def look(self) -> tuple[LaneView, ...]:
        """How far each lane is, in the order of the designs."""
        return tuple(self._look(lane) for lane in self._lanes)

    @property
    def failed(self) -> bool:
        """Whether a lane of the present run ended before its work did."""
        return any(view.phase is Phase.FAILED for view in self._views.values())

    def result(self) -> LabResult:
        """The figures as they are now, as a result of one replication; complete only when every lane is done."""
        views = self.look()
        replications = {
            (view.design.name, self.seed): Replication(
                seed=self.seed,
                figures=view.figures,
                checkpoint_write_us=view.latency,
                elapsed_s=view.elapsed_s,
            )
            for view in views
        }
        complete = all(view.phase is Phase.DONE for view in views)
        return collect(self.scenario, [self.seed], self.designs, replications, complete=complete)

    def close(self, *, keep: bool = False) -> None:
        """End every process; remove the runs, unless `keep` is asked for the present one."""
        self._retire(keep=keep)
        for thread in self._retiring:
            thread.join()
        self._retiring.clear()

    def _look(self, lane: LaneProcess) -> LaneView:
        name = lane.design.name
        if name in self._views:
            return self._views[name]
        ended = not lane.running  # asked first: whatever it published before it ended is then seen
        progress = lane.progress()
        phase, error = PHASES[progress.state], ""
        tally, latency, elapsed_s = progress.tally, lane.latency(), progress.elapsed_s
        if phase is Phase.RUNNING and self.paused:
            phase = Phase.PAUSED
        if ended:
            try:
                result = lane.result()
                phase, tally, latency, elapsed_s = (
                    Phase.DONE,
                    result.tally,
                    result.checkpoint_write_us,
                    result.elapsed_s,
                )
            except LaneFailed as failure:
                phase, error = Phase.FAILED, str(failure)
        view = LaneView(
            design=lane.design,
            phase=phase,
            ended=tally.ended,
            jobs=lane.scenario.jobs,
            figures=figures_of(tally, lane.scenario),
            latency=latency,
            elapsed_s=elapsed_s,
            error=error,
        )
        if ended:
            self._views[name] = view
        return view

    def _retire(self, *, keep: bool = False) -> None:
        """Let go of the present run. Its lanes end and its files go in the background: the next run need not wait."""
        lanes, self._lanes = self._lanes, []
        directory, self.directory = self.directory, None
        self._views.clear()
        self._retiring = [thread for thread in self._retiring if thread.is_alive()]
        for lane in lanes:
            lane.close_input()
        if directory is not None:
            thread = threading.Thread(target=_bury, args=(lanes, None if keep else directory), name="retire-run")
            thread.start()
            self._retiring.append(thread)


def _bury(lanes: list[LaneProcess], directory: RunDirectory | None) -> None:
    for lane in lanes:
        lane.end()
    if directory is not None:
        directory.remove()
