"""A soak: a million jobs in three lanes at once, watched from outside. Nothing grows but what was to grow."""

import time
from pathlib import Path

import pytest

from durcore.designs import DEFAULT_DESIGNS, find_designs
from durcore.figures import figures_of
from durcore.lanes import LaneProcess
from durcore.live import LaneState
from durcore.model import simulate
from durcore.scenario import Scenario

MIB = 1 << 20
WAL_MOST = 16 * MIB
LEEWAY = MIB  # what an allocator may keep more or less of


def anonymous_bytes(pid: int) -> int:
    """Resident anonymous memory of a process, 0 when it has gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))


@pytest.mark.slow
def test_a_million_jobs_leave_memory_and_log_as_they_were_after_the_first_tenth(tmp_path: Path) -> None:
    if not Path("/proc/self/status").exists():
        pytest.skip("sees a lane's memory by /proc")
    scenario = Scenario(jobs=1_000_000)
    lanes = [LaneProcess(tmp_path / d.name, scenario, d, 7) for d in find_designs(DEFAULT_DESIGNS)]
    early: dict[str, int] = dict.fromkeys(DEFAULT_DESIGNS, 0)
    late, log = dict(early), dict(early)
    try:
        while any(lane.running for lane in lanes):
            for lane in lanes:
                name = lane.design.name
                progress = lane.progress()
                if progress.state is LaneState.RUNNING:  # whoever counts at the end opens the store anew
                    seen = early if progress.tally.ended < scenario.jobs / 10 else late
                    seen[name] = max(seen[name], anonymous_bytes(lane.pid))
                log[name] = max(log[name], lane.wal_bytes())
            time.sleep(0.05)
        figures = {lane.design.name: figures_of(lane.result().tally, scenario) for lane in lanes}
    finally:
        for lane in lanes:
            lane.end()
    assert figures == simulate(scenario, 7)
    print({name: (early[name] / MIB, late[name] / MIB, log[name] / MIB) for name in DEFAULT_DESIGNS})
    for name in DEFAULT_DESIGNS:
        assert 0 < late[name] <= early[name] + LEEWAY, name
        assert 0 < log[name] < WAL_MOST, name
