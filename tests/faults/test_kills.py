"""Kills that are real: at every boundary of the protocol, at random instants of real runs, and by drawn crashes."""

import json
import os
import random
import re
import shlex
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from durcore.faults import Fate, FaultPlan
from durcore.model import ENDINGS, outcomes, simulate
from durcore.scenario import Scenario

DURTUI = str(Path(sys.executable).with_name("durtui"))
BOUNDARIES = Path(__file__).with_name("boundaries.py")
DESIGNS = ("whole-job", "checkpoint", "checkpoint-idempotent")
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  # a directory of our own in it: a file system that needs no disk
ALL_GONE_WITHIN_S = 4.0  # the lab promises two seconds; this machine may have more to do than the lab

# A kill at every boundary

PATHS = {
    "whole-job": {"an email sent twice", "finished", "lost"},
    "checkpoint": {
        *("a step tried again", "an email sent twice", "every step saved and the job not finished"),
        *("finished", "dead_lettered"),
    },
    "checkpoint-idempotent": {
        *("a step tried again", "an email skipped", "every step saved and the job not finished"),
        *("finished", "dead_lettered"),
    },
}
ALWAYS = {"claim", "begin", "bill", "deliver_email", "mark_crashed", "clear_mark", "redeliver", "finish", "replace"}
CHANGES = {
    "whole-job": ALWAYS | {"lose"},
    "checkpoint": ALWAYS | {"save", "dead_letter"},
    "checkpoint-idempotent": ALWAYS | {"save", "dead_letter", "record_key"},
}
MAKING = {"create", "allocate", "make", "enqueue"}
RECOVERY = {"take_call_back", "take_email_back", "undo", "clear_mark"}
TRANSITIONS_OF_A_RECOVERY = {"lose", "dead_letter", "redeliver"}
# Three jobs under which everything happens that can happen to a job: PATHS.
EVERYTHING = {
    "jobs": 3,
    "steps": 2,
    "email_step": 1,
    "transient_rate": 0.3,
    "crash_rate": 0.35,
    "crash_point": "anywhere",
    "redeliveries_max": 2,
    "step_attempts": 2,
    "job_attempts": 2,
    "synchronous": "off",
}
SEED_OF_EVERYTHING = 54
TARGETS = ("lane", "worker", "tree", "supervisor")


@pytest.fixture
def scratch(tmp_path: Path) -> Iterator[Path]:
    """A directory that a thousand lives of a lane cost no disk in, where the system has one."""
    if not SHARED_MEMORY.is_dir():
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=SHARED_MEMORY) as directory:
        yield Path(directory)


def kill_everywhere(
    scratch: Path, design: str, target: str, scenario: dict[str, Any] = EVERYTHING, **task: Any
) -> dict[str, Any]:
    """Kill a lane at every boundary; return what came of it. A lane that dies in one process is `raise`'s."""
    mode = "raise" if target == "lane" else "sigkill"
    task = {"seed": SEED_OF_EVERYTHING, **task, "design": design, "target": target}
    asked = json.dumps({**task, "scenario": {**scenario, "crash_mode": mode}, "directory": str(scratch)})
    done = subprocess.run(
        [sys.executable, str(BOUNDARIES)], input=asked, capture_output=True, text=True, check=False, timeout=3600
    )
    replay = f"mkdir -p {scratch}; echo {shlex.quote(asked)} | {sys.executable} {BOUNDARIES}"
    assert done.returncode == 0, f"{done.stderr}\n{replay}"
    found: dict[str, Any] = json.loads(done.stdout)
    found["replay"] = replay
    print(target, design, f"{sum(found['kills'].values())} kills,", sum(found["second_kills"].values()), "second kills")
    return found


def expect_equal_ends(found: dict[str, Any], design: str, recovery: set[str] = RECOVERY) -> None:
    """Whoever was killed, wherever: every change was killed at, and every end is that of the run unkilled."""
    assert not found["faults"], "\n".join([*found["faults"], found["replay"]])
    killed_at, killed_again_at = ({label.split()[1] for label in found[kills]} for kills in ("kills", "second_kills"))
    assert killed_at >= CHANGES[design] - {"replace"}
    assert killed_again_at >= recovery
    assert killed_again_at & TRANSITIONS_OF_A_RECOVERY


@pytest.mark.parametrize("design", DESIGNS)
def test_a_lane_killed_at_any_boundary_and_again_in_its_recovery_ends_as_the_lane_unkilled(
    scratch: Path, design: str
) -> None:
    found = kill_everywhere(scratch, design, "lane")
    assert PATHS[design] <= set(found["paths"])
    expect_equal_ends(found, design)
    assert "after replace" in found["kills"]


@pytest.mark.parametrize(
    ("design", "target"), [("checkpoint-idempotent", "lane"), ("whole-job", "worker"), ("checkpoint", "tree")]
)
def test_a_lane_in_which_somebody_has_intervened_ends_as_the_one_unkilled_wherever_it_is_killed(
    scratch: Path, design: str, target: str
) -> None:
    done = [("deploy", 2, 2), ("outage", 5, 2), ("kill", 9, 1), ("deploy", 10, 1)]
    made = [{"design": design, "kind": kind, "first": first, "count": count} for kind, first, count in done]
    found = kill_everywhere(scratch, design, target, interventions=made)
    assert not found["faults"], "\n".join([*found["faults"], found["replay"]])
    killed_at = {label.split()[1] for label in found["kills"]}
    assert killed_at >= {"extend_reach", "delivery_begins", "begin", "mark_crashed"}


def test_a_lane_killed_while_it_is_being_made_begins_anew(scratch: Path) -> None:
    found = kill_everywhere(scratch, "checkpoint", "lane", {**EVERYTHING, "jobs": 1, "steps": 1}, from_nothing=True)
    assert not found["faults"], "\n".join([*found["faults"], found["replay"]])
    assert {label.split()[1] for label in found["kills"]} >= MAKING
    assert {label.split()[1] for label in found["second_kills"]} >= MAKING


@pytest.mark.parametrize("design", ["whole-job", "checkpoint-idempotent"])
def test_a_worker_that_somebody_kills_at_any_boundary_is_replaced_and_its_attempt_undone(
    scratch: Path, design: str
) -> None:
    expect_equal_ends(kill_everywhere(scratch, design, "worker"), design)


@pytest.mark.parametrize(("design", "target"), [("checkpoint", "tree"), ("whole-job", "supervisor")])
def test_a_supervisor_killed_at_any_boundary_with_or_without_its_worker_ends_as_the_one_unkilled(
    scratch: Path, design: str, target: str
) -> None:
    undone = RECOVERY if target == "tree" else {"clear_mark"}  # an orphan gets to the end of its slice, or to a crash
    expect_equal_ends(kill_everywhere(scratch, design, target), design, undone)


@pytest.mark.parametrize("broken", ["take_call_back", "take_email_back", "undo"])
def test_a_protocol_with_a_step_left_out_is_found_out(scratch: Path, broken: str) -> None:
    assert kill_everywhere(scratch, "checkpoint-idempotent", "lane", broken=[broken])["faults"]


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("crash_point", ["before-work", "after-key", "after-work", "after-checkpoint"])
@pytest.mark.parametrize("design", DESIGNS)
def test_kills_at_every_boundary_leave_no_trace_at_any_crash_point(
    scratch: Path, design: str, crash_point: str, target: str
) -> None:
    found = kill_everywhere(scratch, design, target, {**EVERYTHING, "crash_point": crash_point})
    assert not found["faults"], "\n".join([*found["faults"], found["replay"]])
    assert {label.split()[1] for label in found["kills"]} >= {"claim", "begin", "bill", "mark_crashed", "redeliver"}


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("design", DESIGNS)
def test_every_pair_of_kills_before_and_after_every_change_leaves_no_trace(
    scratch: Path, design: str, target: str
) -> None:
    scenario = {**EVERYTHING, "email_step": 2}
    found = kill_everywhere(scratch, design, target, scenario, thorough=True, from_nothing=target == "lane")
    assert not found["faults"], "\n".join([*found["faults"], found["replay"]])
    labels = {f"{when} {change}" for when in ("before", "after") for change in ("claim", "begin", "bill")}
    assert labels <= set(found["kills"])


# Real runs, and what they leave


@dataclass(frozen=True)
class Real:
    """A real run: its scenario and seeds, and the words that start it."""

    scenario: Scenario
    seed: int = 3
    replications: int = 1
    designs: tuple[str, ...] = DESIGNS

    @property
    def words(self) -> list[str]:
        designs = [word for design in self.designs for word in ("--design", design)]
        seeds = ["--seed", str(self.seed), "--replications", str(self.replications)]
        return [*self.scenario.flags(), *seeds, *designs]

    def run(self, directory: Path) -> subprocess.Popen[str]:
        return start("run", *self.words, "--run-dir", str(directory), "--json", "-")

    @property
    def lanes(self) -> list[tuple[str, int]]:
        return [(design, self.seed + n) for design in self.designs for n in range(self.replications)]


def start(*words: str) -> subprocess.Popen[str]:
    """The real command in a session of its own, so that its processes are known and can be killed at once."""
    return subprocess.Popen(
        [DURTUI, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@dataclass(frozen=True)
class Process:
    """One process of a run, as /proc tells of it."""

    pid: int
    parent: int
    state: str
    command: str

    @property
    def lane(self) -> bool:
        return "durcore.lane" in self.command


def processes_of(run: subprocess.Popen[str]) -> list[Process]:
    """The living processes of a run, whoever adopted them."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended while it was being looked at
            state, parent, _, session, *_ = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(session) == run.pid and state not in "ZX":
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                found.append(Process(int(entry.name), int(parent), state, command))
    return found


def victims(run: subprocess.Popen[str], kind: str) -> list[int]:
    """The processes of a run that are of a kind. A supervisor is a lane whose workers die."""
    living = processes_of(run)
    lanes = {process.pid for process in living if process.lane and process.parent == run.pid}
    if kind in ("lane", "supervisor"):
        return sorted(lanes)
    if kind == "worker":
        return sorted(process.pid for process in living if process.parent in lanes)
    return [run.pid] if run.poll() is None else []


def wait_until(condition: Callable[[], Any], within_s: float = 20.0) -> Any:
    deadline = time.monotonic() + within_s
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    return found


def calls_were_made(directory: Path) -> bool:
    """Whether every lane that has begun has called a model: it is in the midst of its work."""
    ledgers = list(directory.glob("*/ledger"))
    return bool(ledgers) and all(any(path.read_bytes()[64:]) for path in ledgers)


def finish(run: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Wait for a run to end; return its exit code and what it has written."""
    out, err = run.communicate(timeout=120)
    return run.returncode, out, err


def replications(snapshot: str) -> dict[tuple[str, int], dict[str, Any]]:
    """The replications of a snapshot by design and seed."""
    return {
        (design["name"], replication["seed"]): replication
        for design in json.loads(snapshot)["designs"]
        for replication in design["replications"]
    }


def figures(snapshot: str) -> dict[tuple[str, int], Any]:
    return {lane: replication["figures"] for lane, replication in replications(snapshot).items()}


def books(directory: Path, design: str, seed: int) -> dict[str, Any]:
    """All that a lane has left, job by job: the ledger's counts and every row of the store."""
    lane = directory / f"{design}-seed-{seed}"
    with closing(sqlite3.connect(lane / "store.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        tables = {
            "jobs": "SELECT id, state, deliveries, ticket FROM jobs ORDER BY id",
            "checkpoints": "SELECT id, output FROM checkpoints ORDER BY id",
            "effect_keys": "SELECT id, attempt FROM effect_keys ORDER BY id",
        }
        rows = {name: connection.execute(query).fetchall() for name, query in tables.items()}
    return {"ledger": (lane / "ledger").read_bytes()[64:], **rows}


def calls_and_emails(books: dict[str, Any], scenario: Scenario) -> tuple[list[list[int]], list[int]]:
    """A ledger's calls by job and step, and its emails by job."""
    jobs, steps, ledger = scenario.jobs, scenario.steps, books["ledger"]
    calls = struct.unpack_from(f"<{jobs * steps}I", ledger, (jobs * 2 + 3) // 4 * 4)
    emails = struct.unpack_from(f"<{jobs}H", ledger, 0)
    return [list(calls[job * steps : (job + 1) * steps]) for job in range(jobs)], list(emails)


def drawn_crashes(books: dict[str, Any], scenario: Scenario, seed: int) -> int:
    """How many of the attempts that a ledger tells of were to crash: the fault plan says so, and nobody else."""
    plan = FaultPlan(scenario, seed)
    calls, _ = calls_and_emails(books, scenario)
    return sum(
        plan.fate(job, step, n) is Fate.CRASH
        for job, of_steps in enumerate(calls, start=1)
        for step, count in enumerate(of_steps, start=1)
        for n in range(count)
    )


def expect_the_models_outcomes(books: dict[str, Any], real: Real, design: str, seed: int) -> None:
    """Job by job, as the model has it."""
    due = outcomes(real.scenario, seed, design)
    calls, emails = calls_and_emails(books, real.scenario)
    assert [sum(of_steps) for of_steps in calls] == due.calls.tolist()
    assert emails == due.emails.tolist()
    jobs = [(state, deliveries) for _, state, deliveries, _ in books["jobs"]]
    assert jobs == list(zip((ENDINGS[ending] for ending in due.ending), due.deliveries.tolist(), strict=True))
    assert len(books["checkpoints"]) == due.saved.sum()


@dataclass(frozen=True)
class Unkilled:
    """What a run leaves that nobody kills."""

    real: Real
    figures: dict[tuple[str, int], Any]
    books: dict[tuple[str, int], dict[str, Any]]
    seconds: float  # from the moment at which it can be resumed to its end


def run_unkilled(real: Real, directory: Path) -> Unkilled:
    run = real.run(directory)
    wait_until((directory / "run.json").exists)
    began = time.monotonic()
    code, out, err = finish(run)
    seconds = time.monotonic() - began
    assert code == 0, err
    left = {lane: books(directory, *lane) for lane in real.lanes}
    for lane, mine in left.items():
        expect_the_models_outcomes(mine, real, *lane)
    return Unkilled(real, figures(out), left, seconds)


# Kills at random instants

HARSH = Scenario(
    jobs=300, steps=5, transient_rate=0.2, crash_rate=0.1, crash_point="anywhere", step_attempts=2, redeliveries_max=2
)
HARSH_AND_KILLING = Scenario.from_values({**HARSH.resolved(), "crash_mode": "sigkill", "jobs": 80})
KINDS = (
    *(("tree", HARSH), ("lane", HARSH), ("driver", HARSH)),
    *(("tree", HARSH_AND_KILLING), ("supervisor", HARSH_AND_KILLING), ("worker", HARSH_AND_KILLING)),
)
TRIES_TO_LAND = 20


@pytest.fixture(scope="module")
def unkilled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Scenario], Unkilled]:
    """The run of a scenario that nobody kills, run once."""
    known: dict[Scenario, Unkilled] = {}

    def of(scenario: Scenario) -> Unkilled:
        if scenario not in known:
            known[scenario] = run_unkilled(Real(scenario), tmp_path_factory.mktemp("unkilled") / "run")
        return known[scenario]

    return of


def kill_at_random(run: subprocess.Popen[str], kind: str, rng: random.Random, within_s: float) -> tuple[bool, str]:
    """Kill somebody at some instant; return whether that has landed, and what the run has written.

    A kill has landed where its victim was alive, and the run did not get to its end (but for that of a worker).
    """
    time.sleep(rng.uniform(0, within_s))
    found = wait_until(lambda: victims(run, kind) or run.poll() is not None)
    if isinstance(found, list):
        with suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL) if kind == "tree" else os.kill(rng.choice(found), signal.SIGKILL)
    code, out, err = finish(run)
    due = {"tree": -signal.SIGKILL, "driver": -signal.SIGKILL, "lane": 1, "supervisor": 1, "worker": 0}[kind]
    assert code in (0, due), f"exit code {code}: {err}"
    return isinstance(found, list) and code == due, out


def kill_and_resume(directory: Path, kind: str, due: Unkilled, rng: random.Random) -> None:
    """Kill a run, and sometimes its resumption; it ends as the run that nobody killed."""
    for _ in range(TRIES_TO_LAND):
        shutil.rmtree(directory, ignore_errors=True)
        run = due.real.run(directory)
        wait_until((directory / "run.json").exists)
        landed, out = kill_at_random(run, kind, rng, due.seconds)
        if landed:
            break
    assert landed, f"no kill has landed in {TRIES_TO_LAND} runs"
    if not out and rng.random() < 0.5:
        run = start("resume", str(directory), "--json", "-")
        kill_at_random(run, kind, rng, 0.3 + due.seconds)
    if not out:
        code, out, err = finish(start("resume", str(directory), "--json", "-"))
        assert code == 0, err
    assert figures(out) == due.figures
    for lane, theirs in due.books.items():
        assert books(directory, *lane) == theirs


def expect_a_kill_to_leave_no_trace(
    case: int, seed: int, directory: Path, unkilled: Callable[[Scenario], Unkilled]
) -> None:
    kind, scenario = KINDS[case % len(KINDS)]
    due = unkilled(scenario)
    try:
        kill_and_resume(directory, kind, due, random.Random(f"{seed} {case}"))  # noqa: S311  # no secret: a replay
    except AssertionError as error:
        error.add_note(f"case {case} (kill of a {kind}), seed {seed}: durtui run {shlex.join(due.real.words)}")
        raise


@pytest.mark.parametrize("case", range(6))
def test_a_run_killed_at_a_random_instant_and_resumed_ends_as_the_run_unkilled(
    case: int, tmp_path: Path, unkilled: Callable[[Scenario], Unkilled]
) -> None:
    expect_a_kill_to_leave_no_trace(case, 4, tmp_path / "run", unkilled)


@pytest.mark.slow
@pytest.mark.parametrize("case", range(300))
def test_three_hundred_kills_at_random_instants_leave_no_trace(
    case: int, tmp_path: Path, unkilled: Callable[[Scenario], Unkilled]
) -> None:
    expect_a_kill_to_leave_no_trace(case, 2026, tmp_path / "run", unkilled)


# Drawn crashes that kill


def expect_sigkill_to_equal_raise(scenario: Scenario, seed: int, seeds: int, place: Path) -> None:
    """In every figure and job by job; and the workers killed are the crashes drawn."""
    snapshots, runs = {}, {}
    for mode in ("raise", "sigkill"):
        runs[mode] = Real(Scenario.from_values({**scenario.resolved(), "crash_mode": mode}), seed, seeds)
        code, snapshots[mode], err = finish(runs[mode].run(place / mode))
        assert code == 0, err
    assert figures(snapshots["sigkill"]) == figures(snapshots["raise"])
    killed = {lane: each["workers_killed"] for lane, each in replications(snapshots["sigkill"]).items()}
    drawn = {}
    for lane in runs["raise"].lanes:
        unwound, really_killed = (books(place / mode, *lane) for mode in ("raise", "sigkill"))
        assert really_killed == unwound
        drawn[lane] = drawn_crashes(really_killed, scenario, lane[1])
    assert killed == drawn
    assert all(drawn.values())
    assert not any(each["workers_killed"] for each in replications(snapshots["raise"]).values())


def test_workers_that_are_killed_give_the_books_of_workers_that_unwind(tmp_path: Path) -> None:
    expect_sigkill_to_equal_raise(Scenario(jobs=60, steps=4, crash_rate=0.1, crash_point="anywhere"), 1, 2, tmp_path)


@pytest.mark.slow
def test_workers_that_are_killed_give_the_books_of_the_missions_lab(tmp_path: Path) -> None:
    expect_sigkill_to_equal_raise(Scenario(), 1, 5, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("crash_point", ["before-work", "after-key", "after-checkpoint", "anywhere"])
def test_workers_that_are_killed_give_the_books_of_every_crash_point(tmp_path: Path, crash_point: str) -> None:
    values = {**Scenario().resolved(), "jobs": 500, "crash_point": crash_point, "crash_rate": 0.05}
    expect_sigkill_to_equal_raise(Scenario.from_values(values), 1, 2, tmp_path)


def test_a_trace_of_system_calls_shows_a_kill_for_each_crash_drawn(tmp_path: Path) -> None:
    log = tmp_path / "calls"
    strace = ["strace", "-f", "-qq", "-e", "trace=kill", "-e", "signal=none", "-o", str(log)]
    if shutil.which("strace") is None or subprocess.run([*strace, "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs strace, and the right to trace")
    real = Real(Scenario(jobs=20, steps=3, crash_rate=0.1, crash_mode="sigkill"), designs=("checkpoint",))
    directory = tmp_path / "run"
    subprocess.run([*strace, DURTUI, "run", *real.words, "--run-dir", str(directory)], capture_output=True, check=True)
    kills = re.findall(r"^(\d+) +kill\((\d+), SIGKILL", log.read_text(), re.MULTILINE)
    assert all(killer == killed for killer, killed in kills)  # each by its own hand, at its crash point
    drawn = drawn_crashes(books(directory, "checkpoint", 3), real.scenario, 3)
    assert len(kills) == drawn > 0


# No orphan, and a run belongs to one

LONG = Scenario(jobs=3000, crash_point="anywhere")
LONG_AND_KILLING = Scenario.from_values({**LONG.resolved(), "crash_mode": "sigkill", "jobs": 1000})
TWO = ("whole-job", "checkpoint-idempotent")


def started(real: Real, directory: Path) -> subprocess.Popen[str]:
    """A run in the midst of its work."""
    run = real.run(directory)
    wait_until(lambda: calls_were_made(directory) or run.poll() is not None)
    assert run.poll() is None, run.communicate()
    return run


def expect_nobody(run: subprocess.Popen[str]) -> None:
    wait_until(lambda: not processes_of(run), ALL_GONE_WITHIN_S)


def expect_the_right_figures(real: Real, directory: Path) -> None:
    """A resumed run ends with the figures that the model has."""
    code, out, err = finish(start("resume", str(directory), "--json", "-"))
    assert code == 0, err
    due = {
        (design, real.seed): figures.as_dict()
        for design, figures in simulate(real.scenario, real.seed, real.designs).items()
    }
    assert figures(out) == due


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT], ids=lambda number: number.name)
def test_a_signal_ends_everything_at_once_and_says_how_to_go_on(tmp_path: Path, number: signal.Signals) -> None:
    real = Real(LONG_AND_KILLING if number is signal.SIGTERM else LONG, designs=TWO)
    run = started(real, tmp_path / "run")
    sent = time.monotonic()
    run.send_signal(number)
    code, out, err = finish(run)
    assert time.monotonic() - sent < 2.0  # a second, on a machine that has nothing else to do
    assert processes_of(run) == []
    assert (code, out) == (130, "")
    (last,) = err.strip().splitlines()[-1:]
    assert f"durtui resume {tmp_path / 'run'}" in last
    assert "Traceback" not in err
    expect_the_right_figures(real, tmp_path / "run")


@pytest.mark.parametrize(
    ("kind", "scenario"),
    [("driver", LONG), ("driver", LONG_AND_KILLING), ("lane", LONG), ("supervisor", LONG_AND_KILLING)],
)
def test_whoever_is_killed_leaves_no_orphan(tmp_path: Path, kind: str, scenario: Scenario) -> None:
    run = started(Real(scenario, designs=TWO), tmp_path / "run")
    if scenario is LONG_AND_KILLING:
        wait_until(lambda: victims(run, "worker"))
    os.kill(victims(run, kind)[0], signal.SIGKILL)
    expect_nobody(run)
    code, _, err = finish(run)
    assert code == (-signal.SIGKILL if kind == "driver" else 1)
    if kind != "driver":
        assert "was killed by signal 9" in err
        assert f"durtui resume {tmp_path / 'run'}" in err


def test_a_run_belongs_to_one_durtui_at_a_time_and_a_dead_one_holds_it_no_longer(tmp_path: Path) -> None:
    directory = tmp_path / "run"
    real = Real(LONG, designs=TWO)
    first = started(real, directory)
    code, out, err = finish(start("resume", str(directory), "--json", "-"))
    assert (code, out) == (1, "")
    assert err.splitlines() == [
        f"durtui: {directory} is in use by another durtui (process {first.pid}); wait until it is done, or end it"
    ]
    assert first.poll() is None
    first.kill()  # its lanes may be alive still when the next one comes: it waits for them
    first.wait()
    (directory / "lock").write_text(str(os.getpid()))  # as if the dead one's number had been given to a living process
    expect_the_right_figures(real, directory)
    finish(first)
