"""The lab: the contract's table from real lanes, what it refuses and keeps, how lanes obey and end, and a reference."""

import os
import resource
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from durcore import lab as lab_module
from durcore.count import count
from durcore.designs import DESIGNS, Design
from durcore.errors import DurtuiError, LaneDamaged, LaneFailed, Mistake
from durcore.faults import FaultPlan
from durcore.figures import FIGURE_NAMES, Figures, Tally, figures_of, median_figures
from durcore.lab import LabResult, run_lab
from durcore.lane import GoOn, Pause, SetSpeed, Step
from durcore.lanes import LaneProcess
from durcore.latency import WORDS, LatencyHistogram
from durcore.ledger import Ledger
from durcore.live import LaneState
from durcore.scenario import Scenario
from durcore.store import Store
from durcore.worker import Worker

SMALL = Scenario(jobs=20, steps=3)
LONG = Scenario(jobs=100_000)  # a lane that is under way for as long as a test looks at it
ENDS_WITHIN_S = 2.0  # the contract's second, and one more for a machine that is busy with other tests
PATIENCE_S = 20.0

# design, seed: the columns of the contract's table, in its order.
COLUMNS = (
    "finished",
    "lost",
    "model_calls",
    "unproductive_calls",
    "lost_job_calls",
    "duplicate_email_jobs",
    "emails_delivered",
    "redeliveries",
    "resumed_jobs",
    "checkpoint_writes",
)
CONTRACT: dict[tuple[str, int], tuple[int, ...]] = {
    ("whole-job", 7): (1928, 72, 24324, 5044, 1131, 287, 2301, 884, 665, 0),
    ("whole-job", 8): (1920, 80, 24184, 4984, 1197, 285, 2285, 884, 668, 0),
    ("whole-job", 9): (1925, 75, 24456, 5206, 1153, 292, 2312, 916, 690, 0),
    ("checkpoint", 7): (2000, 0, 20820, 820, 0, 20, 2020, 240, 227, 20000),
    ("checkpoint", 8): (2000, 0, 20839, 839, 0, 14, 2015, 209, 194, 20000),
    ("checkpoint", 9): (2000, 0, 20841, 841, 0, 20, 2021, 217, 206, 20000),
    ("checkpoint-idempotent", 7): (2000, 0, 20820, 820, 0, 0, 2000, 240, 227, 20000),
    ("checkpoint-idempotent", 8): (2000, 0, 20839, 839, 0, 0, 2000, 209, 194, 20000),
    ("checkpoint-idempotent", 9): (2000, 0, 20841, 841, 0, 0, 2000, 217, 206, 20000),
}


def until(condition: Callable[[], bool], within_s: float = PATIENCE_S) -> None:
    """Wait until `condition` holds, and fail where it does not come to."""
    end = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < end, f"waited {within_s} s in vain"
        time.sleep(0.005)


def notes(error: BaseException) -> str:
    return "\n".join(getattr(error, "__notes__", []))


# The mission's table


def test_the_missions_lab_gives_the_contracts_table_in_every_column() -> None:
    result = run_lab()
    found = {
        (name, replication.seed): tuple(getattr(replication.figures, column) for column in COLUMNS)
        for name, design in result.items()
        for replication in design.replications
    }
    assert found == CONTRACT
    for (name, seed), row in CONTRACT.items():
        (replication,) = (each for each in result[name].replications if each.seed == seed)
        figures = replication.figures
        assert (figures.dead_lettered, figures.missing_email_jobs, figures.manual_resumes) == (0, 0, 0)
        assert figures.wasted_calls == row[2] - 20_000
        assert figures.wasted_cost_usd == pytest.approx((row[2] - 20_000) * 0.0102)
        assert figures.unproductive_cost_usd == pytest.approx(row[3] * 0.0102)
        writes = replication.checkpoint_write_us
        assert (0 if writes is None else writes.count) == row[9]
        assert replication.elapsed_s > 0
    for name in DESIGNS:
        rows = [CONTRACT[name, seed] for seed in (7, 8, 9)]
        for index, column in enumerate(COLUMNS):
            assert getattr(result[name].median, column) == sorted(row[index] for row in rows)[1]


def test_the_median_of_an_even_number_is_the_mean_of_the_middle_two(small_lab: LabResult) -> None:
    halves = 0
    for design in small_lab.values():
        first, second = (replication.figures.as_dict() for replication in design.replications)
        for name, value in design.median.as_dict().items():
            assert value == (first[name] + second[name]) / 2
            halves += value % 1 == 0.5 and not name.endswith("_usd")
    assert halves  # or this small lab would prove nothing


@given(columns=st.lists(st.lists(st.integers(-1000, 1000), min_size=16, max_size=16), min_size=1, max_size=6))
def test_each_figure_has_its_own_median(columns: list[list[int]]) -> None:
    replications = [Figures(**dict(zip(FIGURE_NAMES, column, strict=True))) for column in columns]
    expected = [statistics.median(column[index] for column in columns) for index in range(16)]
    assert list(median_figures(replications).as_dict().values()) == expected


def test_jobs_end_in_every_way_and_the_endings_add_up(small_lab: LabResult) -> None:
    for design in small_lab.values():
        for replication in design.replications:
            figures = replication.figures
            assert figures.finished + figures.lost + figures.dead_lettered == small_lab.scenario.jobs
            assert figures.model_calls > 0
    assert small_lab["whole-job"].median.lost > 0
    assert small_lab["whole-job"].median.dead_lettered == 0
    assert small_lab["checkpoint"].median.dead_lettered > 0
    assert small_lab["checkpoint"].median.lost == 0


def test_a_design_alone_gives_what_it_gives_beside_others_whatever_the_store_is_set_to(small_lab: LabResult) -> None:
    scenario = replace(small_lab.scenario, synchronous="off", locking="exclusive", output_bytes=0)
    alone = run_lab(scenario, seeds=(4,), designs=["checkpoint-idempotent"])
    beside = small_lab["checkpoint-idempotent"].replications[1]
    assert alone["checkpoint-idempotent"].replications[0].figures == beside.figures
    assert alone["checkpoint-idempotent"].median == beside.figures


def test_a_result_is_a_mapping_from_designs_in_the_order_asked_for(small_lab: LabResult) -> None:
    assert list(small_lab) == ["whole-job", "checkpoint", "checkpoint-idempotent"]
    assert len(small_lab) == 3
    assert small_lab.seeds == (3, 4)
    with pytest.raises(KeyError):
        small_lab["hope"]
    assert list(run_lab(SMALL, seeds=(1,), designs=["checkpoint", "whole-job"])) == ["checkpoint", "whole-job"]


def test_progress_counts_ended_jobs_up_to_all_of_them() -> None:
    told: list[tuple[int, int]] = []
    run_lab(Scenario(jobs=3000, steps=4), seeds=(1, 2), designs=["checkpoint"], on_progress=lambda *at: told.append(at))
    assert {total for _, total in told} == {6000}
    ended = [each for each, _ in told]
    assert ended == sorted(ended)
    assert ended[-1] == 6000
    assert any(0 < each < 6000 for each in ended)


# What is refused, and what is left


@pytest.mark.parametrize(
    ("seeds", "designs", "message"),
    [
        ((7, 8, 7), ["checkpoint"], r"seeds\(=\[7, 8, 7\]\) must differ"),
        ((), ["checkpoint"], "needs at least one seed"),
        ((7,), [], "needs at least one design"),
        ((7,), ["hope"], r"design\(=hope\) must be one of"),
        ((-1,), ["checkpoint"], r"seed\(=-1\) must be"),
        ((2**63,), ["checkpoint"], r"seed\(=9223372036854775808\) must be"),
        (("7",), ["checkpoint"], r"seed\(=7\) must be"),
        ((True,), ["checkpoint"], r"seed\(=True\) must be"),
    ],
)
def test_a_lab_that_cannot_be_run_is_refused_and_leaves_nothing(
    state_home: Path, seeds: Any, designs: list[str], message: str
) -> None:
    with pytest.raises(Mistake, match=message):
        run_lab(SMALL, seeds=seeds, designs=designs)
    assert not state_home.exists()


def test_a_run_without_a_directory_lives_under_the_users_state_and_is_removed_when_it_ended_well(
    state_home: Path,
) -> None:
    seen: set[str] = set()
    run_lab(
        Scenario(jobs=2000, steps=2),
        seeds=(1,),
        designs=["whole-job"],
        on_progress=lambda *_: seen.update(path.name for path in (state_home / "durtui" / "runs").iterdir()),
    )
    assert len(seen) == 1
    assert list((state_home / "durtui" / "runs").iterdir()) == []


@pytest.mark.parametrize("there_already", [True, False])
def test_a_run_with_a_directory_is_kept_there_for_its_owner_alone(
    tmp_path: Path, state_home: Path, there_already: bool
) -> None:
    place = tmp_path / "deep" / "runs"
    if there_already:
        place.mkdir(parents=True)
    run_lab(SMALL, seeds=(1, 2), designs=["checkpoint"], run_dir=place)
    assert {path.name for path in place.iterdir()} == {"run.json", "lock", "checkpoint-seed-1", "checkpoint-seed-2"}
    lane = place / "checkpoint-seed-1"
    assert {"store.db", "ledger", "result.json"} <= {path.name for path in lane.iterdir()}
    made = list(place.rglob("*")) if there_already else [place, *place.rglob("*")]
    # The log alone is made before the lane has its own say about rights; the command has set them by then.
    assert not [path for path in made if path.name != "lane.log" and path.stat().st_mode & 0o077]
    assert not state_home.exists()


def test_a_place_that_cannot_take_a_run_is_named_and_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    for place, rule in ((tmp_path, "must be a new or an empty directory"), (file, "must be a directory")):
        with pytest.raises(Mistake) as caught:
            run_lab(SMALL, seeds=(1,), run_dir=place)
        assert str(caught.value).startswith(f"run_dir(={place}) {rule}")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert file.read_text() == "mine"


@pytest.mark.parametrize("own_directory", [True, False])
def test_a_run_without_room_is_refused_before_anything_is_written(
    tmp_path: Path, state_home: Path, monkeypatch: pytest.MonkeyPatch, own_directory: bool
) -> None:
    place = tmp_path / "run"
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9 - 10**7, 10**7))
    with pytest.raises(DurtuiError, match=r"needs about [\d,]+ MiB and .* has 10 MiB free; .*--run-dir") as caught:
        run_lab(SMALL, seeds=(1,), run_dir=place if own_directory else None)
    assert caught.value.exit_code == 1
    assert [path for path in [*tmp_path.rglob("*"), *state_home.rglob("*")] if path.is_file()] == []
    if not own_directory:
        assert list((state_home / "durtui" / "runs").iterdir()) == []


class Recorded(LaneProcess):
    """A lane whose process the test can find again."""

    made: list["Recorded"]
    doomed = False

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.made.append(self)
        if self.doomed and self.design.name == "checkpoint":
            os.kill(self.pid, signal.SIGKILL)


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[Recorded]:
    monkeypatch.setattr(Recorded, "made", [], raising=False)
    monkeypatch.setattr(lab_module, "LaneProcess", Recorded)
    return Recorded.made


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_killed_lane_fails_the_run_which_is_kept_and_named_and_leaves_no_process(
    state_home: Path, recorded: list[Recorded], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Recorded, "doomed", True)
    with pytest.raises(
        LaneFailed, match=r"^lane checkpoint, seed 7 was killed by signal 9; what it said is in "
    ) as caught:
        run_lab(LONG, seeds=(7,))
    (kept,) = (state_home / "durtui" / "runs").iterdir()
    assert notes(caught.value) == f"the run is kept: `durtui resume {kept}` goes on with it"
    assert (kept / "run.json").exists()
    assert caught.value.exit_code == 1
    assert recorded
    assert all(gone(lane.pid) for lane in recorded)


def test_an_interrupt_ends_every_lane_at_once_and_names_what_is_kept(
    state_home: Path, recorded: list[Recorded]
) -> None:
    interrupted = 0.0

    def interrupt(_: int, __: int) -> None:
        nonlocal interrupted
        if all(lane.progress().state == LaneState.RUNNING for lane in recorded):
            interrupted = time.monotonic()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        run_lab(LONG, seeds=(7,), on_progress=interrupt)
    assert time.monotonic() - interrupted < ENDS_WITHIN_S
    (kept,) = (state_home / "durtui" / "runs").iterdir()
    assert f"`durtui resume {kept}`" in notes(caught.value)
    assert recorded
    assert all(gone(lane.pid) for lane in recorded)


def test_a_lane_imports_nothing_from_the_directory_it_is_started_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("msgspec", "select", "apsw", "json"):
        (tmp_path / f"{module}.py").write_text("raise SystemExit('imported from the working directory')")
    monkeypatch.chdir(tmp_path)
    assert run_lab(SMALL, seeds=(1,), designs=["checkpoint"])["checkpoint"].median.finished == 20


# A lane by itself

StartLane = Callable[..., LaneProcess]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[StartLane]:
    """Start a lane; whatever becomes of the test, it ends with it."""
    lanes: list[LaneProcess] = []

    def start(
        scenario: Scenario = LONG, design: str = "checkpoint", directory: Path | None = None, **options: Any
    ) -> LaneProcess:
        lane = LaneProcess(directory or tmp_path / f"lane-{len(lanes)}", scenario, DESIGNS[design], 7, **options)
        lanes.append(lane)
        return lane

    yield start
    for lane in lanes:
        lane.end()


def running(lane: LaneProcess) -> LaneProcess:
    until(lambda: lane.progress().state == LaneState.RUNNING)
    return lane


def calls(lane: LaneProcess) -> int:
    return lane.progress().tally.model_calls


@pytest.mark.parametrize("options", [{}, {"calls_per_s": 500}, {"calls_per_s": 1}, {"paused": True}], ids=str)
def test_a_lane_ends_when_its_input_closes(start: StartLane, options: dict[str, Any]) -> None:
    lane = running(start(**options))
    closed = time.monotonic()
    lane.close_input()
    until(lambda: not lane.running)
    assert time.monotonic() - closed < ENDS_WITHIN_S
    assert not (lane.directory / "error.txt").exists()
    with pytest.raises(LaneFailed, match="ended with code 3"):
        lane.result()


def test_a_lane_ends_when_its_input_closes_before_it_was_told_anything() -> None:
    lane = subprocess.Popen([sys.executable, "-P", "-m", "durcore.lane"], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    _, said = lane.communicate(timeout=ENDS_WITHIN_S + 3)  # an interpreter has to start, too
    assert (lane.returncode, said) == (3, b"")


def test_a_lane_ends_when_whoever_drives_it_is_killed(tmp_path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from durcore.lanes import LaneProcess;"
        "from durcore.designs import CHECKPOINT; from durcore.scenario import Scenario;"
        "lane = LaneProcess(Path(sys.argv[1]), Scenario(jobs=100_000), CHECKPOINT, 7);"
        "print(lane.pid, flush=True); time.sleep(60)"
    )
    arguments = [sys.executable, "-c", program, str(tmp_path / "lane")]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        pid = int(driver.stdout.readline())
        until((tmp_path / "lane" / "live").exists)
        driver.kill()
        killed = time.monotonic()

        def ended() -> bool:  # an orphan may stay a zombie where nobody reaps it
            stat = Path(f"/proc/{pid}/stat")
            return not stat.exists() or stat.read_text().rsplit(")", 1)[1].split()[0] == "Z"

        until(ended)
    assert time.monotonic() - killed < ENDS_WITHIN_S


def test_a_lane_is_nicer_than_its_driver_and_does_not_hear_ctrl_c(start: StartLane) -> None:
    lane = running(start(SMALL, paused=True))
    assert os.getpriority(os.PRIO_PROCESS, lane.pid) == min(19, os.getpriority(os.PRIO_PROCESS, 0) + 10)
    for _ in range(3):
        os.kill(lane.pid, signal.SIGINT)
        time.sleep(0.01)
    lane.send(GoOn())
    assert lane.result().tally.ended == 20


def test_a_step_makes_exactly_as_many_calls_as_it_says_and_a_paused_lane_none(start: StartLane) -> None:
    lane = running(start(paused=True))
    time.sleep(0.1)
    assert calls(lane) == 0
    made = 0
    for step in (1, 1, 5, 1, 40):
        lane.send(Step(step))
        made += step
        until(lambda made=made: calls(lane) >= made)  # type: ignore[misc]  # bound now, not when it is called
        time.sleep(0.05)
        assert calls(lane) == made
    assert lane.progress().state == LaneState.RUNNING


def test_a_lane_goes_on_pauses_and_changes_its_speed_as_told(start: StartLane) -> None:
    lane = running(start(paused=True, calls_per_s=1))
    lane.send(SetSpeed(300))
    lane.send(GoOn())
    began = time.monotonic()
    time.sleep(1.5)
    lane.send(Pause())
    waited = time.monotonic() - began
    time.sleep(0.3)
    made = calls(lane)
    assert 0.4 * 300 * waited < made < 1.3 * 300 * waited  # the exact credit is test_pace's
    time.sleep(0.3)
    assert calls(lane) == made
    lane.send(SetSpeed(None))
    lane.send(GoOn())
    until(lambda: calls(lane) > made + 3000)


def test_steps_one_by_one_give_the_figures_of_a_run_at_full_speed(start: StartLane) -> None:
    scenario = Scenario(jobs=8, steps=4, transient_rate=0.2, crash_rate=0.2)
    stepped, at_once = start(scenario, paused=True), start(scenario)
    while stepped.running:
        stepped.send(Step())
        time.sleep(0.001)
    assert stepped.result().tally == at_once.result().tally


def tamper_with_an_email(directory: Path) -> None:
    ledger = Ledger.open(directory / "ledger")
    ledger.deliver_email(1)
    ledger.close()


def tamper_with_a_call(directory: Path) -> None:
    ledger = Ledger.open(directory / "ledger")
    ledger.bill(1, 1)
    ledger.close()


def tamper_with_a_checkpoint(directory: Path) -> None:
    with sqlite3.connect(directory / "store.db") as connection:
        connection.execute("DELETE FROM checkpoints WHERE job = 1")
    connection.close()


def tamper_with_a_state(directory: Path) -> None:
    with sqlite3.connect(directory / "store.db") as connection:
        connection.execute("UPDATE jobs SET state = 'dead_lettered' WHERE id = 1")
    connection.close()


TAMPERED = [
    (tamper_with_an_email, "ledger: job 1 has 2 calls and 2 emails, and the faults of seed 7 give it 2 and 1"),
    (tamper_with_a_call, "ledger: job 1 has 3 calls and 1 emails, and the faults of seed 7 give it 2 and 1"),
    (tamper_with_a_checkpoint, r"store\.db: job 1 has checkpoints 0 after 1 deliveries, .* give it 2"),
    (tamper_with_a_state, r"store\.db: job 1 has state dead_lettered after 1 deliveries, .* give it finished"),
]


@pytest.mark.parametrize(("tamper", "named"), TAMPERED)
def test_what_somebody_wrote_over_under_a_lane_is_found_and_named_and_is_no_result(
    start: StartLane, tamper: Callable[[Path], None], named: str
) -> None:
    lane = running(start(Scenario(jobs=5, steps=2, transient_rate=0, crash_rate=0), paused=True))
    lane.send(Step(5))
    until(lambda: lane.progress().tally.finished == 2)  # job 1 among them: nothing will touch it any more
    tamper(lane.directory)
    lane.send(GoOn())
    with pytest.raises(LaneDamaged, match=rf"^lane checkpoint, seed 7: .*{named}.*: the file was written over$"):
        lane.result()
    assert not (lane.directory / "result.json").exists()


def test_a_lane_that_was_not_tampered_with_is_done(start: StartLane) -> None:
    lane = running(start(Scenario(jobs=5, steps=2, transient_rate=0, crash_rate=0), paused=True))
    lane.send(GoOn())
    assert lane.result().tally == Tally(finished=5, model_calls=10, emails_delivered=5, checkpoint_writes=10)
    assert lane.progress().state == LaneState.DONE
    assert lane.progress().tally == lane.result().tally


def test_a_lane_in_a_directory_that_is_there_goes_on_and_makes_at_most_its_last_call_again(start: StartLane) -> None:
    scenario = Scenario(jobs=8, steps=4, transient_rate=0.2, crash_rate=0.2)
    at_once, stopped = start(scenario), start(scenario, paused=True)
    made = 0
    for step in (2, 3, 7, 11, 5):
        lane = start(scenario, directory=stopped.directory, paused=True) if made else running(stopped)
        lane.send(Step(step))
        until(lambda lane=lane, due=made + step - 1: calls(lane) >= due)  # type: ignore[misc]  # bound now
        lane.end()
        ledger = Ledger.open(lane.directory / "ledger")
        assert made + step - 1 <= ledger.total_calls() <= made + step
        made = ledger.total_calls()
        ledger.close()
    assert start(scenario, directory=stopped.directory).result().tally == at_once.result().tally


def test_a_lane_that_had_finished_gives_its_result_again_and_makes_no_call(start: StartLane) -> None:
    first = start(SMALL)
    result = first.result()
    before = (first.directory / "ledger").read_bytes()
    again = start(SMALL, directory=first.directory)
    assert again.result() == result
    assert (again.progress().state, again.progress().tally) == (LaneState.DONE, result.tally)
    assert (first.directory / "ledger").read_bytes() == before


def test_two_lanes_never_work_in_one_directory(start: StartLane) -> None:
    first = running(start(SMALL, paused=True))
    second = start(SMALL, directory=first.directory)
    with pytest.raises(LaneFailed, match=r"^lane checkpoint, seed 7: .*lane-0 is in use by another durtui") as caught:
        second.result()
    assert not isinstance(caught.value, LaneDamaged)
    first.send(GoOn())
    assert first.result().tally.ended == 20


def test_the_size_of_the_write_ahead_log_is_seen_from_outside_while_there_is_one(start: StartLane) -> None:
    lane = running(start(SMALL, paused=True))
    assert lane.wal_bytes() == (lane.directory / "store.db-wal").stat().st_size > 0
    lane.send(GoOn())
    lane.result()
    assert lane.wal_bytes() == 0
    shutil.rmtree(lane.directory)
    assert lane.wal_bytes() == 0


def test_workers_are_killed_only_where_crashes_kill_and_then_one_for_each_drawn_crash(start: StartLane) -> None:
    scenario = Scenario(jobs=10, steps=3, transient_rate=0, crash_rate=0.3, redeliveries_max=1000)
    unwound, killed = start(scenario), start(replace(scenario, crash_mode="sigkill"))
    assert unwound.result().tally == killed.result().tally
    assert unwound.result().workers_killed == 0
    # Without transient failures a delivery is redelivered for one reason only.
    assert killed.result().workers_killed == killed.progress().workers_killed == killed.result().tally.redeliveries > 0


def test_a_lane_killed_under_way_fails_with_its_signal_and_is_told_nothing_more(start: StartLane) -> None:
    lane = running(start())
    os.kill(lane.pid, signal.SIGKILL)
    until(lambda: not lane.running)
    lane.send(Step())
    with pytest.raises(
        LaneFailed, match=r"^lane checkpoint, seed 7 was killed by signal 9; what it said is in .*lane\.log$"
    ):
        lane.result()


def test_a_lane_whose_disk_fails_says_so_in_its_own_words(start: StartLane) -> None:
    lane = running(start(Scenario(jobs=2000, output_bytes=100_000), paused=True))
    # A limit on the size of its files is to a lane what a full disk is: the write fails.
    resource.prlimit(lane.pid, resource.RLIMIT_FSIZE, (2_000_000, 2_000_000))
    lane.send(GoOn())
    with pytest.raises(LaneFailed, match=r"^lane checkpoint, seed 7: .*store\.db") as caught:
        lane.result()
    assert len(str(caught.value).splitlines()) == 1


# The contract's semantics, written down once more


def draw(seed: int, purpose: int, job: int, step: int, n: int) -> float:
    """The contract's section Draws."""
    mask, gamma = 2**64 - 1, 0x9E3779B97F4A7C15

    def mix64(z: int) -> int:
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & mask
        z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
        return z ^ z >> 31

    key = mix64((seed + 1) * gamma & mask)
    address = purpose << 60 | job << 32 | step << 24 | n
    return (mix64(mix64((address * gamma + key) & mask) ^ key) >> 11) / 2**53


@dataclass(slots=True)
class Job:
    """What became of one job, as the contract's section "An attempt" tells it."""

    result: str = ""
    calls: int = 0
    emails: int = 0
    deliveries: int = 0
    saved: int = 0


CRASH_POINTS = ("before-work", "after-key", "after-work", "after-checkpoint")


def job_by_the_contract(scenario: Scenario, seed: int, design: str, number: int) -> Job:
    checkpoints, keyed = design != "whole-job", design == "checkpoint-idempotent"
    deliveries_allowed = 1 + scenario.redeliveries_max if checkpoints else scenario.job_attempts
    tries_allowed = scenario.step_attempts if checkpoints else 1
    email_step = min(6, scenario.steps) if scenario.email_step is None else scenario.email_step
    earlier = [0] * (scenario.steps + 1)  # attempts at each step, over all deliveries
    key_recorded = False
    job = Job()
    while job.deliveries < deliveries_allowed:
        job.deliveries += 1
        step, failures = job.saved + 1, 0
        while step <= scenario.steps:
            u = draw(seed, 0, number, step, n := earlier[step])
            earlier[step] += 1
            job.calls += 1
            if u < scenario.transient_rate:
                failures += 1
                if failures == tries_allowed:
                    break
                continue
            point = len(CRASH_POINTS)  # beyond them all: no crash
            if u >= 1 - scenario.crash_rate:
                anywhere = scenario.crash_point == "anywhere"
                point = (
                    int(4 * draw(seed, 1, number, step, n)) if anywhere else CRASH_POINTS.index(scenario.crash_point)
                )
            if step == email_step:
                if point >= 2 and not (keyed and key_recorded):
                    job.emails += 1
                key_recorded = key_recorded or point >= 1
            if checkpoints and point >= 3:
                job.saved = step
            if point < len(CRASH_POINTS):
                break
            step, failures = step + 1, 0
        else:
            job.result = "finished"
            return job
    job.result = "dead_lettered" if checkpoints else "lost"
    return job


@st.composite
def small_scenarios(choose: st.DrawFn) -> Scenario:
    steps = choose(st.integers(1, 6))
    transient = choose(st.sampled_from([0.0, 0.1, 0.3, 0.5, 1.0]))
    return Scenario(
        jobs=choose(st.integers(1, 8)),
        steps=steps,
        email_step=choose(st.none() | st.integers(1, steps)),
        transient_rate=transient,
        crash_rate=(1 - transient) * choose(st.sampled_from([0.0, 0.1, 0.3, 1.0])),
        job_attempts=choose(st.integers(1, 4)),
        step_attempts=choose(st.integers(1, 4)),
        redeliveries_max=choose(st.integers(0, 4)),
        output_bytes=choose(st.sampled_from([0, 16])),
        crash_point=choose(st.sampled_from(["after-work", *CRASH_POINTS, "anywhere"])),
    )


@given(scenario=small_scenarios(), seed=st.integers(0, 2**63 - 1), design=st.sampled_from(list(DESIGNS.values())))
@settings(deadline=None, max_examples=100)
def test_every_job_of_a_random_lab_ends_as_the_contract_says(
    tmp_path_factory: pytest.TempPathFactory, scenario: Scenario, seed: int, design: Design
) -> None:
    jobs = {number: job_by_the_contract(scenario, seed, design.name, number) for number in range(1, scenario.jobs + 1)}
    directory = tmp_path_factory.mktemp("lane")
    tally = Tally()

    class Watched(Ledger):
        """Books that look at the figures before each call that they bill."""

        def bill(self, job: int, step: int) -> int:
            if design.checkpoints:
                ended = {job for state in ("finished", "dead_lettered") for job in store.jobs_in(state)}
                behind = sum(store.saved_steps(job) for job in jobs if job not in ended)
            else:
                behind = step - 1  # done in the present delivery; what others did is of no use to anybody
            figures = figures_of(tally, scenario)
            assert tally.open_steps == behind
            assert figures.wasted_calls == tally.model_calls - scenario.steps * tally.ended - behind
            assert figures.unproductive_calls == tally.model_calls - scenario.steps * tally.finished - behind
            return super().bill(job, step)

    ledger = Watched.create(directory / "ledger", jobs=scenario.jobs, steps=scenario.steps)
    with Store.create(directory / "store.db", synchronous="off") as store:
        store.enqueue(1, scenario.jobs)
        worker = Worker(
            policy=design.policy(scenario),
            plan=FaultPlan(scenario, seed),
            store=store,
            ledger=ledger,
            tally=tally,
            writes=LatencyHistogram(memoryview(bytearray(WORDS * 8)).cast("Q")),
            board=memoryview(bytearray(scenario.jobs)),
            output=bytes(scenario.output_bytes),
        )
        for calls_made, _ in enumerate(worker.work()):
            # A look before each call: all that were made are counted.
            assert tally.model_calls == ledger.total_calls() == calls_made
        state_of = {job: state for state in store.count_states() for job in store.jobs_in(state)}
        found = {
            job: Job(
                result=state_of[job],
                calls=ledger.calls(job),
                emails=ledger.emails(job),
                deliveries=jobs[job].deliveries,  # of all jobs together below: a store tells their sum
                saved=store.saved_steps(job),
            )
            for job in jobs
        }
        assert found == jobs
        assert tally == count(store, ledger)
    results = [job.result for job in jobs.values()]
    model_calls = sum(job.calls for job in jobs.values())
    finished = results.count("finished")
    assert figures_of(tally, scenario) == Figures(
        finished=finished,
        lost=results.count("lost"),
        dead_lettered=results.count("dead_lettered"),
        model_calls=model_calls,
        wasted_calls=model_calls - scenario.jobs * scenario.steps,
        wasted_cost_usd=(model_calls - scenario.jobs * scenario.steps) * 0.0102,
        unproductive_calls=model_calls - scenario.steps * finished,
        unproductive_cost_usd=(model_calls - scenario.steps * finished) * 0.0102,
        lost_job_calls=sum(job.calls for job in jobs.values() if job.result != "finished"),
        duplicate_email_jobs=sum(job.emails >= 2 for job in jobs.values()),
        missing_email_jobs=sum(job.result == "finished" and job.emails == 0 for job in jobs.values()),
        emails_delivered=sum(job.emails for job in jobs.values()),
        redeliveries=sum(job.deliveries - 1 for job in jobs.values()),
        resumed_jobs=sum(job.deliveries > 1 for job in jobs.values()),
        checkpoint_writes=sum(job.saved for job in jobs.values()),
        manual_resumes=0,
    )
    ledger.close()
