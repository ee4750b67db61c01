"""Measure the lab: time of the mission's lab, time and memory a job from a thousand jobs to a million.

    python tests/bench/lab.py [largest number of jobs]

Runs are interleaved and medians reported, since machines are noisy. Lane time runs from a lane's first claim to its
last transition, process start aside; anonymous memory is the lane's own, its mapped files aside.
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

from durcore.designs import DESIGNS, Design
from durcore.lanes import LaneProcess
from durcore.scenario import Scenario

ROUNDS = 5


def run_lane(scenario: Scenario, design: Design) -> tuple[float, int]:
    """Run one lane alone: its lane time in seconds, and the most anonymous memory that it was seen with, in bytes."""
    with tempfile.TemporaryDirectory() as folder:
        lane = LaneProcess(Path(folder) / "lane", scenario, design, 7)
        most = 0
        while lane.running:
            most = max(most, anonymous_bytes(lane.pid))
            time.sleep(0.005)
        elapsed_s = lane.result().elapsed_s
        lane.end()
    return elapsed_s, most


def anonymous_bytes(pid: int) -> int:
    """Resident anonymous memory of a process, 0 where the system does not say or the process has gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))


def print_lab(mode: str, rounds: list[list[float]]) -> None:
    """Print the lane times of the mission's lab, by design and in all."""
    print(f"the mission's lab, one replication, {mode}, {ROUNDS} rounds: seconds of lane time")
    columns = {**dict(zip(DESIGNS, zip(*rounds, strict=True), strict=True)), "in all": tuple(map(sum, rounds))}
    for name, times in columns.items():
        print(f"  {name:24} {statistics.median(times):.3f}  ({min(times):.3f} to {max(times):.3f})", flush=True)


def main() -> None:
    """Print every table."""
    unwinding, dying = Scenario(), Scenario(crash_mode="sigkill")
    both = [[[run_lane(s, d)[0] for d in DESIGNS.values()] for s in (unwinding, dying)] for _ in range(ROUNDS)]
    for index, mode in enumerate(("crashes that unwind", "workers killed")):
        print_lab(mode, [rounds[index] for rounds in both])
    largest = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    print("a lane alone: microseconds a job, and anonymous memory in MiB")
    jobs = 1000
    while jobs <= largest:
        row = [run_lane(Scenario(jobs=jobs), design) for design in DESIGNS.values()]
        print(f"  {jobs:>9,} jobs", *(f"{s / jobs * 1e6:8.1f} µs {b / 2**20:5.1f} MiB" for s, b in row), flush=True)
        jobs *= 10


if __name__ == "__main__":
    main()
