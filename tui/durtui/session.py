"""Session: the lanes that one app has under way, and the runs behind them. It knows processes, not widgets."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence

from durcore.alert import ResumeAlert
from durcore.designs import Design
from durcore.errors import LaneFailed
from durcore.figures import Tally, figures_of
from durcore.interventions import Kind, applied
from durcore.lab import LabResult, Replication, collect
from durcore.lane import GoOn, Intervene, Pause, SetSpeed, Step
from durcore.lanes import LaneProcess, end_all
from durcore.latency import Latency
from durcore.live import LaneState
from durcore.rundir import RunDirectory
from durcore.scenario import Scenario
from durcore.supervisor import check_can_fork
from durtui.view import LaneView, Phase

PHASES = {
    LaneState.STARTING: Phase.STARTING,
    LaneState.QUEUEING: Phase.QUEUEING,
    LaneState.RUNNING: Phase.RUNNING,
    LaneState.CHECKING: Phase.CHECKING,
    LaneState.COUNTING: Phase.COUNTING,
    LaneState.DONE: Phase.COUNTING,  # done only when its result has been read
}


BOARD_EVERY_S = 0.12
BOARD_JOB_S = 5e-7  # half a second more for a million jobs


class Session:
    """A run of each design under one scenario and seed, restarted whenever the scenario changes.

    It begins a run of its own, or goes on with `resumed`, whose lanes of this seed it takes up. Not for several
    threads. `close` ends every process that it started, also of the runs that were restarted.
    """

    def __init__(
        self,
        designs: Sequence[Design],
        seed: int,
        calls_per_s: float | None,
        resumed: RunDirectory | None = None,
    ) -> None:
        self.designs = tuple(designs)
        self.seed = seed
        self.paused = False
        self.calls_per_s = calls_per_s
        self.scenario = Scenario() if resumed is None else resumed.scenario
        self.directory: RunDirectory | None = None
        self._resumed = resumed
        self._own = True
        self._lanes: list[LaneProcess] = []
        self._alerts: dict[str, ResumeAlert] = {}
        self._views: dict[str, LaneView] = {}  # of lanes that have ended: nothing about them changes any more
        self._latencies: dict[str, tuple[int, Latency | None]] = {}  # of how many writes
        self._boards: dict[str, tuple[float, bytes]] = {}  # when it was read, and what it was
        self._retiring: list[threading.Thread] = []

    def start(self, scenario: Scenario) -> None:
        """Leave the present run, if there is one, and begin `scenario` from its first job; or go on with `resumed`.

        Raises Mistake or DurtuiError, with the present run gone, where the new one has no place.
        """
        self._retire()
        self.scenario = scenario
        check_can_fork(scenario)
        self._own = self._resumed is None
        self.directory = self._resumed or RunDirectory.create(None, scenario, self.designs, [self.seed])
        self._resumed = None
        try:
            for design in self.designs:
                self._alerts[design.name] = ResumeAlert.of(scenario, design.policy(scenario))
                self._lanes.append(self._lane(self.directory, design))
        except LaneFailed:
            self._retire()
            raise

    def go_on(self) -> None:
        """Start the lanes that have failed once more, from where they stopped: whoever asks has mended the cause."""
        assert self.directory is not None
        for index, lane in enumerate(self._lanes):
            if self._look(lane).phase is Phase.FAILED:
                lane.end()
                del self._views[lane.design.name]
                self._lanes[index] = self._lane(self.directory, lane.design)

    def _lane(self, directory: RunDirectory, design: Design) -> LaneProcess:
        return LaneProcess(
            directory.lane(design, self.seed),
            self.scenario,
            design,
            self.seed,
            calls_per_s=self.calls_per_s,
            paused=self.paused,
            interventions=directory.interventions,
        )

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

    def intervene(self, kind: Kind) -> int:
        """Kill the worker, deploy, or have an outage in every lane from its next call on; return how many that met."""
        at_work = [lane for lane in self._lanes if self._look(lane).phase not in (Phase.DONE, Phase.FAILED)]
        for lane in at_work:
            lane.send(Intervene(kind))
        return len(at_work)

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
                workers_killed=view.workers_killed or 0,
                interventions=applied(view.interventions, int(view.figures.model_calls)),
            )
            for view in views
        }
        complete = all(view.phase is Phase.DONE for view in views)
        return collect(self.scenario, [self.seed], self.designs, replications, complete=complete)

    @property
    def unfinished(self) -> bool:
        """Whether there is a run with work left, which could be gone on with."""
        return self.directory is not None and any(view.phase is not Phase.DONE for view in self.look())

    def interrupt(self) -> None:
        """End every process; keep the present run where there is work left in it."""
        self.close(keep=self.unfinished)

    def close(self, *, keep: bool = False) -> None:
        """End every process; remove the runs of this session's own, unless `keep` is asked for the present one."""
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
        phase, error, made = PHASES[progress.state], "", lane.interventions()
        tally, latency, elapsed_s = progress.tally, self._latency(lane, progress.tally), progress.elapsed_s
        if phase is Phase.RUNNING and self.paused:
            phase = Phase.PAUSED
        if ended:
            try:
                result = lane.result()
                phase, tally, latency, elapsed_s, made = (
                    Phase.DONE,
                    result.tally,
                    result.checkpoint_write_us,
                    result.elapsed_s,
                    result.interventions,
                )
            except LaneFailed as failure:
                phase, error = Phase.FAILED, str(failure)
        alert = self._alerts[name]
        alert.look(tally.model_calls, tally.redeliveries)
        view = LaneView(
            design=lane.design,
            phase=phase,
            ended=tally.ended,
            jobs=lane.scenario.jobs,
            figures=figures_of(tally, lane.scenario),
            latency=latency,
            elapsed_s=elapsed_s,
            error=error,
            workers_killed=progress.workers_killed if lane.scenario.crash_mode == "sigkill" else None,
            wal_bytes=lane.wal_bytes(),
            steps=lane.scenario.steps,
            board=self._board(lane),
            interventions=made,
            alert_at=alert.struck_at,
        )
        if ended:
            self._views[name] = view
        return view

    def _latency(self, lane: LaneProcess, tally: Tally) -> Latency | None:
        """How long a lane's writes took: read and added up only when there were more of them."""
        writes, latency = self._latencies.get(lane.design.name, (-1, None))
        if tally.checkpoint_writes != writes:
            latency = lane.latency()
            self._latencies[lane.design.name] = (tally.checkpoint_writes, latency)
        return latency

    def _board(self, lane: LaneProcess) -> bytes:
        """The board of a lane, read as often as the eye asks for; a large one less often than that."""
        now, name = time.monotonic(), lane.design.name
        read_at, board = self._boards.get(name, (-math.inf, b""))
        if lane.running and now - read_at < BOARD_EVERY_S + BOARD_JOB_S * lane.scenario.jobs:
            return board
        self._boards[name] = (now, lane.board())
        return self._boards[name][1]

    def _retire(self, *, keep: bool = False) -> None:
        """Let go of the present run. Its lanes end and its files go in the background: the next run need not wait."""
        lanes, self._lanes = self._lanes, []
        directory, self.directory = self.directory, None
        self._views.clear()
        self._boards.clear()
        self._latencies.clear()
        self._retiring = [thread for thread in self._retiring if thread.is_alive()]
        for lane in lanes:
            lane.close_input()
        if directory is not None:
            removed = directory.temporary and not keep and (self._own or directory.finished)
            thread = threading.Thread(target=_bury, args=(lanes, directory, removed), name="retire-run")
            thread.start()
            self._retiring.append(thread)


def _bury(lanes: list[LaneProcess], directory: RunDirectory, removed: bool) -> None:
    end_all(lanes)
    if removed:
        directory.remove()
    directory.release()
