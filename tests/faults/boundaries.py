"""Kills a lane at every boundary of the in-flight protocol, and says what became of it. It judges nothing by itself.

A program of its own, not a test: it stays small (no numpy, no pytest), so that it forks a lane in a millisecond. It
reads a Task as JSON from its standard input and prints Findings.

A boundary stands after each call that changes ledger, store or a file of the lane, and in a thorough task before it
too, where the files are still as the call before has left them. All processes of a lane's life count the boundaries
that they pass in memory that they share, and the one that comes to the chosen number kills. The lane is the real one,
`durcore.lane.main`, told what its driver would tell it.
"""

from __future__ import annotations

import gc
import mmap
import os
import shutil
import signal
import sqlite3
import struct
import sys
import traceback
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from durcore import database, lane, ledger, live, lock, pace, store
from durcore.designs import DESIGNS
from durcore.faults import Fate, FaultPlan
from durcore.interventions import Intervention
from durcore.remains import RESULT, LaneResult
from durcore.scenario import Scenario

LANE, WORKER, TREE, SUPERVISOR = "lane", "worker", "tree", "supervisor"
CHANGES: dict[type, tuple[str, ...]] = {
    ledger.Ledger: (
        *("create", "begin", "bill", "deliver_email", "mark_crashed", "clear_mark"),
        *("take_call_back", "take_email_back", "extend_reach", "delivery_begins"),
    ),
    store.Store: (
        *("create", "enqueue", "claim", "save", "record_key", "finish", "redeliver", "lose", "dead_letter", "undo"),
    ),
    live.LiveFigures: ("create",),
    Path: ("unlink", "replace"),
}
ENDINGS = ("finish", "lose", "dead_letter")
COUNT, FIRST, SECOND, LEAST_CALLS, CALLED_AFTER_THE_END, TRIED_AGAIN, KEYS_SKIPPED = range(7)
LABELS_AT = 64
LIFE_BYTES = 1 << 16
ENOUGH_FAULTS = 5
CALLS_A_SLICE = 2


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What to run in `directory`, and whom to kill.

    `thorough`: boundaries before each change too, and a second kill at each boundary of each recovery; otherwise at
    each boundary of the first recovery of its kind. `from_nothing`: kills while store and ledger are being made, too.
    `broken` names methods that do nothing: a protocol that is not one, which has to be found out.
    """

    directory: str
    scenario: dict[str, int | float | str | None]
    design: str
    seed: int
    target: str
    interventions: list[Intervention] = []
    thorough: bool = False
    from_nothing: bool = False
    broken: list[str] = []


class Findings(msgspec.Struct, kw_only=True):
    """What was killed, by boundary; which paths the run took; every end that differs from that of the run unkilled."""

    kills: dict[str, int]
    second_kills: dict[str, int]
    lives: int
    paths: list[str]
    faults: list[str]


@dataclass(kw_only=True)
class Life:
    """One life of a lane: what its processes share, and when they are to die."""

    words: memoryview[int]
    labels: mmap.mmap
    ended: mmap.mmap  # a byte a job: it had ended, in this life or an earlier one
    target: str
    lane: int = 0
    code: int = 0  # how it ended; negative: by that signal

    @classmethod
    def new(cls, ended: mmap.mmap, target: str, first: int = 0, second: int = 0) -> Life:
        shared = mmap.mmap(-1, LIFE_BYTES)
        words = memoryview(shared)[:LABELS_AT].cast("Q")
        words[FIRST], words[SECOND], words[LEAST_CALLS] = first, second, 2**63
        return cls(words=words, labels=shared, ended=ended, target=target)

    def passed(self) -> list[str]:
        """The boundaries that were passed, the last one being that of a kill where there was one."""
        return [LABELS[index] for index in self.labels[LABELS_AT : LABELS_AT + self.words[COUNT]]]

    def boundary(self, label: int) -> None:
        """Pass a boundary, or die there."""
        words = self.words
        count = words[COUNT]
        self.labels[LABELS_AT + count] = label
        words[COUNT] = count = count + 1
        if count in (words[FIRST], words[SECOND]):
            self._kill()

    def _kill(self) -> None:
        if os.getpid() != self.lane:
            if self.target == TREE:
                os.killpg(0, signal.SIGKILL)
            if self.target == SUPERVISOR:
                os.kill(self.lane, signal.SIGKILL)
                return  # it works on until it finds that nobody listens
        os.kill(os.getpid(), signal.SIGKILL)


LABELS: list[str] = []
_life: Life | None = None


def watch(owner: Any, name: str, *, thorough: bool, broken: bool = False) -> None:
    """Put a boundary after each call of a function, or before it too, and look at what it does there."""
    original = getattr(owner, name)
    bound = hasattr(original, "__self__")  # a class's own: it makes something
    before, after = len(LABELS), len(LABELS) + 1
    LABELS.extend((f"before {name}", f"after {name}"))

    def watched(*arguments: Any, **named: Any) -> Any:
        life = _life
        if life is None:
            return original(*arguments, **named)
        note(life, name, arguments)
        if thorough:
            life.boundary(before)
        value = None if broken else original(*arguments, **named)
        if broken and name == "take_call_back":
            value = 0
        if name in ENDINGS:
            life.ended[arguments[1]] = 1
        if name == "record_key" and not value:
            life.words[KEYS_SKIPPED] += 1
        if owner is ledger.Ledger and not bound:
            life.words[LEAST_CALLS] = min(life.words[LEAST_CALLS], arguments[0].total_calls())
        life.boundary(after)
        return value

    setattr(owner, name, staticmethod(watched) if bound else watched)


def note(life: Life, name: str, arguments: tuple[Any, ...]) -> None:
    """Remember what the run has come across, and what must never be."""
    if name == "bill":
        life.words[CALLED_AFTER_THE_END] += life.ended[arguments[1]]
    if name == "begin":
        life.words[TRIED_AGAIN] += arguments[4] > 0


def watch_everything(*, thorough: bool, broken: list[str]) -> None:
    """Put every boundary in place. The modules that took a function by its name are given the watched one."""
    for owner, names in CHANGES.items():
        for name in names:
            watch(owner, name, thorough=thorough, broken=name in broken)
    watch(ledger, "allocate", thorough=thorough)
    live.allocate = ledger.allocate  # type: ignore[attr-defined]  # it is there, and not for export
    watch(store, "make", thorough=thorough)
    pace.UNLIMITED_BATCH = CALLS_A_SLICE  # so that a worker reports, and an orphan stops, in the midst of its work
    lane.NICENESS = 0  # this is no time to be polite
    lock.RETRY_S = 0.0005  # an orphan ends within a millisecond or two
    database._our_objects()  # what is imported when it is first needed: once, and not in every life


class Books(msgspec.Struct, frozen=True, kw_only=True):
    """All that a lane holds, job by job: the ledger's calls and emails, and every row of the store."""

    calls: list[list[int]]
    emails: list[int]
    jobs: list[Any]
    checkpoints: list[Any]
    effect_keys: list[Any]
    integrity: str

    @classmethod
    def of(cls, directory: Path, scenario: Scenario) -> Books:
        """Read a lane that has ended, by other code than the lane's."""
        calls, emails = read_ledger(directory / "ledger", scenario)
        with closing(sqlite3.connect(directory / "store.db")) as connection:
            return cls(
                calls=calls,
                emails=emails,
                jobs=connection.execute("SELECT id, state, deliveries, ticket FROM jobs ORDER BY id").fetchall(),
                checkpoints=connection.execute("SELECT id, output FROM checkpoints ORDER BY id").fetchall(),
                effect_keys=connection.execute("SELECT id, attempt FROM effect_keys ORDER BY id").fetchall(),
                integrity=str(connection.execute("PRAGMA integrity_check").fetchone()[0]),
            )

    def difference(self, due: Books) -> str:
        """What is not as it should be, in a line."""
        names = [name for name in self.__struct_fields__ if getattr(self, name) != getattr(due, name)]
        return "; ".join(f"{name} {getattr(self, name)} not {getattr(due, name)}" for name in names)


def read_ledger(path: Path, scenario: Scenario) -> tuple[list[list[int]], list[int]]:
    """Calls by job and step, and emails by job, as design.md lays them out; nothing where there is no ledger yet."""
    data = path.read_bytes() if path.exists() else b""
    if len(data) < 64:
        return [], []
    jobs, steps = scenario.jobs, scenario.steps
    calls = struct.unpack_from(f"<{jobs * steps}I", data, 64 + (jobs * 2 + 3) // 4 * 4)
    return [list(calls[job * steps : (job + 1) * steps]) for job in range(jobs)], list(
        struct.unpack_from(f"<{jobs}H", data, 64)
    )


class Exhaustion:
    """Every kill of a task, one history after the other."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._scenario = Scenario.from_values(task.scenario)
        self._place = Path(task.directory)
        self._start = msgspec.json.encode(
            lane.Start(
                directory=str(self._place / "lane"),
                scenario=task.scenario,
                design=task.design,
                seed=task.seed,
                interventions=tuple(task.interventions),
            )
        )
        self._kinds: set[tuple[str, ...]] = set()
        self._kills: Counter[str] = Counter()
        self._second_kills: Counter[str] = Counter()
        self._lives = 0
        self._faults: list[str] = []
        self._ended = mmap.mmap(-1, self._scenario.jobs + 1)
        self._due: Books | None = None
        self._due_killed = 0

    def run(self) -> Findings:
        """Run the lane unkilled, then kill it at its first boundary, at its second, until a life has no further one."""
        self._begin_history()
        unkilled = self._live()
        self._expect_the_end("unkilled", unkilled)
        self._due = Books.of(self._lane, self._scenario)
        self._due_killed = self._result().workers_killed
        boundaries = unkilled.words[COUNT]
        before_work = 0 if self._task.from_nothing else unkilled.passed().index("after enqueue")
        first = before_work
        while len(self._faults) < ENOUGH_FAULTS:
            first += 1
            if not self._kill_at(first):
                break
        if not self._faults and first != boundaries + 1:
            self._faults.append(f"{boundaries} boundaries unkilled, and kills up to the {first - 1}th")
        return Findings(
            kills=self._kills,
            second_kills=self._second_kills,
            lives=self._lives,
            paths=self._paths(unkilled, self._due),
            faults=self._faults,
        )

    @property
    def _lane(self) -> Path:
        return self._place / "lane"

    def _paths(self, unkilled: Life, books: Books) -> list[str]:
        """What the run unkilled has come across, in words."""
        plan, last, design = (
            FaultPlan(self._scenario, self._task.seed),
            self._scenario.steps,
            DESIGNS[self._task.design],
        )
        at_the_end = [
            plan.crash_point(job, last, n)
            for job, calls in enumerate(books.calls, start=1)
            for n in range(calls[last - 1])
            if plan.fate(job, last, n) is Fate.CRASH
        ]
        found = {
            "a step tried again": unkilled.words[TRIED_AGAIN] > 0,
            "an email skipped": unkilled.words[KEYS_SKIPPED] > 0,
            "an email sent twice": max(books.emails) > 1,
            "every step saved and the job not finished": "after-checkpoint" in at_the_end and design.checkpoints,
        }
        return [path for path, there in found.items() if there] + sorted({state for _, state, *_ in books.jobs})

    def _begin_history(self) -> None:
        self._ended = mmap.mmap(-1, self._scenario.jobs + 1)
        shutil.rmtree(self._lane, ignore_errors=True)
        self._lane.mkdir()

    def _kill_at(self, first: int) -> bool:
        """Kill at one boundary, and then again in every recovery from that; False where there is no such boundary."""
        if self._task.target == WORKER:
            return self._kill_worker_at(first)
        self._begin_history()
        killed = self._live(first)
        if killed.code == 0:
            return False
        label = killed.passed()[first - 1]
        story = f"killed at boundary {first} ({label})"
        if killed.code != -signal.SIGKILL:
            self._faults.append(f"{story}: ended with code {killed.code}: {self._last_words()}")
            return True
        self._kills[label] += 1
        self._await_orphan()
        image, ended = self._place / "image", bytes(self._ended)
        shutil.rmtree(image, ignore_errors=True)
        shutil.copytree(self._lane, image)
        recovery = self._go_on(story)
        for second in self._seconds(label, recovery):
            shutil.rmtree(self._lane)
            shutil.copytree(image, self._lane)
            self._ended[:] = ended
            again = f"{story}, then at boundary {second} of the recovery ({recovery[second - 1]})"
            least = self._calls()
            killed = self._live(second)
            self._check_calls(again, least, killed)
            if killed.code != -signal.SIGKILL:
                self._faults.append(f"{again}: ended with code {killed.code}: {self._last_words()}")
                continue
            self._second_kills[recovery[second - 1]] += 1
            self._await_orphan()
            self._go_on(again)
        return True

    def _kill_worker_at(self, first: int) -> bool:
        """As above, where its supervisor outlives the worker and replaces it. What it does itself it dies of itself."""
        self._begin_history()
        life = self._live(first)
        if life.words[COUNT] < first:
            return False
        passed = life.passed()
        label = passed[first - 1]
        story = f"worker killed at boundary {first} ({label})"
        if life.code == -signal.SIGKILL:  # a boundary of the lane itself, of which TREE tells
            self._go_on(story)
            return True
        self._kills[label] += 1
        self._expect_the_end(story, life, self._due_killed - (label == "after mark_crashed"))
        recovery = upto_first_call(passed[first:])
        for second in self._seconds(label, recovery):
            self._begin_history()
            again = f"{story}, then {second} boundaries on ({recovery[second - 1]})"
            life = self._live(first, first + second)
            if life.code == -signal.SIGKILL:  # the first kill left nothing to do but count
                self._go_on(again)
                continue
            self._second_kills[recovery[second - 1]] += 1
            self._expect_the_end(again, life, self._due_killed - (label == "after mark_crashed"))
        return True

    def _seconds(self, label: str, recovery: list[str]) -> list[int]:
        """The boundaries of a recovery at which to kill again."""
        kind = (label, *recovery)
        new = kind not in self._kinds
        self._kinds.add(kind)
        return list(range(1, len(recovery) + 1)) if self._task.thorough or new else []

    def _go_on(self, story: str) -> list[str]:
        """Live from what a kill has left to the end; return the boundaries of the recovery, up to the first call."""
        least = self._calls()
        life = self._live()
        self._check_calls(story, least, life)
        self._expect_the_end(story, life)
        return upto_first_call(life.passed())

    def _check_calls(self, story: str, before: int, life: Life) -> None:
        if life.words[LEAST_CALLS] < before - 1:
            self._faults.append(f"{story}: calls fell from {before} to {life.words[LEAST_CALLS]}")

    def _expect_the_end(self, story: str, life: Life, workers_killed: int | None = None) -> None:
        """Note whatever is not as in the life that nobody killed.

        A worker that somebody else kills between its mark and its death by its own hand does not count as killed.
        """
        if life.code != 0:
            self._faults.append(f"{story}: ended with code {life.code}: {self._last_words()}")
            return
        if life.words[CALLED_AFTER_THE_END]:
            self._faults.append(f"{story}: a job that had ended was called again")
        if self._due is None:
            return
        if difference := Books.of(self._lane, self._scenario).difference(self._due):
            self._faults.append(f"{story}: {difference}")
        killed = self._result().workers_killed
        if workers_killed is not None and killed != workers_killed:
            self._faults.append(f"{story}: {killed} workers killed, not {workers_killed}")

    def _live(self, first: int = 0, second: int = 0) -> Life:
        """One life of the lane, with its kills; whoever killed it, it is over."""
        global _life
        self._lives += 1
        life = Life.new(self._ended, self._task.target, first, second)
        commands, driver = os.pipe()
        os.write(driver, self._start + b"\n")
        pid = os.fork()
        if pid == 0:
            code = 70
            try:
                os.close(driver)
                os.dup2(commands, 0)
                os.setsid()
                life.lane = os.getpid()
                _life = life
                code = lane.main()
            except BaseException:  # noqa: BLE001  # nothing may climb into the parent's stack
                traceback.print_exc()
            finally:
                os._exit(code)
        os.close(commands)
        life.code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        os.close(driver)
        return life

    def _await_orphan(self) -> None:
        """Wait until nobody writes any more: a worker outlives its supervisor by a slice."""
        if self._task.target == SUPERVISOR and self._lane.exists():
            lock.Lock.hold(self._lane, patience_s=2.0).release()

    def _calls(self) -> int:
        return sum(map(sum, read_ledger(self._lane / "ledger", self._scenario)[0]))

    def _result(self) -> LaneResult:
        return msgspec.json.decode((self._lane / RESULT).read_bytes(), type=LaneResult)

    def _last_words(self) -> str:
        look = live.LiveLook.open(self._lane / "live")
        return "" if look is None else look.last_words()


def upto_first_call(passed: list[str]) -> list[str]:
    """The boundaries of a recovery: it is over when a call has been billed again."""
    return passed[: passed.index("after bill") + 1] if "after bill" in passed else passed


def main() -> None:
    task = msgspec.json.decode(sys.stdin.buffer.read(), type=Task)
    watch_everything(thorough=task.thorough, broken=task.broken)
    gc.disable()
    gc.freeze()
    sys.stdout.buffer.write(msgspec.json.encode(Exhaustion(task).run()))


if __name__ == "__main__":
    main()
