"""Doctor: whether this machine and this terminal are fit for a talk, and what to change before. It changes nothing.

Each check is a value; none of them may stop the others, whatever the environment is like.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from tempfile import mkdtemp

from cyclopts import App
from platformdirs import user_state_path

from durcore.database import sqlite_version
from durcore.designs import DEFAULT_DESIGNS, find_designs
from durcore.errors import DurtuiError, advised, printable, told
from durcore.latency import WORDS, Latency, LatencyHistogram
from durcore.rundir import bytes_needed, kept_runs
from durcore.scenario import Scenario
from durcore.store import Store
from durtui import probe
from durtui.settings import load_scenario
from durtui.terminal import prints_unicode, why_headless

SIZE_MIN, SIZE_GOOD = (80, 24), (120, 36)  # columns, rows
BURST_CHECKPOINTS = 2000
BURST_S = 1.0  # at the most: on a disk this slow the rest would tell nothing new
WRITE_SLOW_US = 300.0  # three such writes a call, and a lane falls behind the app's own speed
ROOM_RUNS = 10  # of the mission's lab: a talk restarts it again and again
COLOURS = {"truecolor": "16.7 million", "256": "256", "standard": "16"}


class Verdict(Enum):
    """How a check came out; the value stands in front of its line."""

    FIT = "ok"
    ADVICE = "note"
    MEND = "MEND"
    UNKNOWN = "?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing looked at: what it is, whether that will do, and what to change where it will not quite."""

    name: str
    found: str
    verdict: Verdict = Verdict.FIT
    advice: str = ""


def register(app: App) -> None:
    """Add `durtui doctor` to the command."""
    app.command(doctor)


def doctor() -> None:
    """Tell whether this terminal and this machine are fit for a talk, and what to change before it."""
    checks = list(examine())
    width = max(len(check.name) for check in checks)
    for check in checks:
        _say(f"{check.verdict.value:>4}  {check.name:{width}}  {check.found}")
        if check.advice:
            _say(f"{'':>4}  {'':{width}}  -> {check.advice}")
    mend = [check.name for check in checks if check.verdict is Verdict.MEND]
    unknown = [check.name for check in checks if check.verdict is Verdict.UNKNOWN]
    _say("")
    if unknown:
        _say(f"not told here: {', '.join(unknown)}; run `durtui doctor` in the terminal of the talk")
    fit = "nothing to mend in what was told" if unknown else "fit for a talk"
    _say(f"to mend before a talk: {', '.join(mend)}" if mend else fit)
    sys.exit(1 if mend else 0)


def examine() -> Iterator[Check]:
    """Every check, in the order in which a speaker would mend them. None raises."""
    for name, look in (
        ("terminal", _terminal),
        ("size", _size),
        ("colours", _colours),
        ("UTF-8", _utf8),
        ("mouse", _mouse),
        ("settings", _settings),
        ("Python", _python),
        ("SQLite", _sqlite),
        ("state directory", _state_directory),
        ("processes", _processes),
        ("kept runs", _kept),
    ):
        yield from _survive(name, look)


def _survive(name: str, look: Callable[[str], Iterator[Check]]) -> Iterator[Check]:
    try:
        yield from look(name)
    except Exception as error:  # noqa: BLE001  # a doctor that dies of what it looks for helps nobody
        yield Check(name=name, found=told(error), verdict=Verdict.MEND, advice="mend what this line names")


def _say(line: str) -> None:
    """Print a line, whatever the stream can print: what it cannot is what the line is about."""
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    plain = printable(line) if prints_unicode() else printable(line).replace("×", "x").replace("µ", "u")
    print(plain.encode(encoding, "backslashreplace").decode(encoding))


# The terminal


def _terminal(name: str) -> Iterator[Check]:
    reason, kind = why_headless(), os.environ.get("TERM") or "unset"
    if reason is None:
        through = probe.multiplexer(os.environ)
        yield Check(name=name, found=f"TERM={kind}" + (f", in {through}" if through else ""))
    elif "TERM" in reason:
        advice = "set TERM to what the terminal is, as xterm-256color; the app does not open without"
        yield Check(name=name, found=f"TERM={kind}: it cannot be drawn on", verdict=Verdict.MEND, advice=advice)
    else:
        yield Check(name=name, found=reason, verdict=Verdict.UNKNOWN)


def _size(name: str) -> Iterator[Check]:
    size = probe.terminal_size()
    if size is None:
        yield Check(name=name, found="needs a terminal", verdict=Verdict.UNKNOWN)
        return
    override = [f"{variable}={os.environ[variable]}" for variable in ("COLUMNS", "LINES") if os.environ.get(variable)]
    found = f"{size[0]}×{size[1]}"
    good = f"{SIZE_GOOD[0]}×{SIZE_GOOD[1]} shows sliders, lanes and curves at once"
    if override:
        advice = f"unset {' and '.join(override)}: the app would believe it, and not the window"
        yield Check(name=name, found=found, verdict=Verdict.MEND, advice=advice)
    elif any(have < need for have, need in zip(size, SIZE_MIN, strict=True)):
        advice = f"enlarge the window or take a smaller font: at least {SIZE_MIN[0]}×{SIZE_MIN[1]}; {good}"
        yield Check(name=name, found=found, verdict=Verdict.MEND, advice=advice)
    elif any(have < need for have, need in zip(size, SIZE_GOOD, strict=True)):
        yield Check(name=name, found=found, verdict=Verdict.ADVICE, advice=good)
    else:
        yield Check(name=name, found=found)


def _colours(name: str) -> Iterator[Check]:
    if os.environ.get("NO_COLOR"):  # an empty one counts as unset
        found, advice = f"none: NO_COLOR={os.environ['NO_COLOR']}", "unset NO_COLOR for a talk"
        yield Check(name=name, found=found, verdict=Verdict.ADVICE, advice=advice)
        return
    if why_headless() is not None:
        yield Check(name=name, found="needs a terminal", verdict=Verdict.UNKNOWN)
        return
    system = probe.colour_system()
    found = f"{COLOURS.get(system or '', 'none')} (COLORTERM={os.environ.get('COLORTERM') or 'unset'})"
    if system == "truecolor":
        yield Check(name=name, found=found)
    else:
        advice = "where the terminal has true colour, set COLORTERM=truecolor; ssh and sudo do not hand it on"
        yield Check(name=name, found=found, verdict=Verdict.ADVICE, advice=advice)


def _utf8(name: str) -> Iterator[Check]:
    encoding = getattr(sys.stdout, "encoding", None) or "unknown"
    if prints_unicode():
        yield Check(name=name, found=f"the locale prints {encoding.upper()}")
    else:
        where = next(
            (f"{name}={os.environ[name]}" for name in ("LC_ALL", "LC_CTYPE", "LANG") if name in os.environ), ""
        )
        found = f"the locale cannot print what the app draws ({where or 'none is set'})"
        yield Check(name=name, found=found, verdict=Verdict.MEND, advice="set LC_ALL=C.UTF-8")


def _mouse(name: str) -> Iterator[Check]:
    if why_headless() is not None:
        yield Check(name=name, found="needs a terminal", verdict=Verdict.UNKNOWN)
        return
    if probe.multiplexer(os.environ) == "tmux" and probe.tmux_takes_mouse() is False:
        advice = "`tmux set -g mouse on` hands the mouse on to the app; every slider has keys as well"
        yield Check(name=name, found="tmux keeps it to itself", verdict=Verdict.ADVICE, advice=advice)
        return
    knows = probe.knows_mouse()
    if knows:
        yield Check(name=name, found="the terminal reports it")
    else:
        found = "the terminal does not say" if knows is None else "the terminal does not report it"
        advice = "click a slider in the app to see; every slider has keys as well"
        yield Check(name=name, found=found, verdict=Verdict.ADVICE, advice=advice)


# The machine


def _settings(name: str) -> Iterator[Check]:
    try:
        changed = load_scenario({}, None).resolved()
    except DurtuiError as error:
        yield Check(name=name, found=str(error), verdict=Verdict.MEND, advice="mend it, or put it aside")
        return
    default = Scenario().resolved()
    differing = [f"{field}={value}" for field, value in changed.items() if value != default[field]]
    if differing:
        advice = "durtui opens on these; flags go before them"
        yield Check(name=name, found=", ".join(differing), verdict=Verdict.ADVICE, advice=advice)
    else:
        yield Check(name=name, found="none: durtui opens on the mission's lab")


def _python(name: str) -> Iterator[Check]:
    yield Check(name=name, found=f"{platform.python_version()} on {platform.system()} {platform.machine()}")


def _sqlite(name: str) -> Iterator[Check]:
    yield Check(name=name, found=sqlite_version())


def _state_directory(name: str) -> Iterator[Check]:
    """Where the runs go: whether it can be written, how fast it takes checkpoints, and the room there."""
    state = user_state_path("durtui")
    there = next(folder for folder in (state, *state.parents) if folder.exists())
    elsewhere = "set XDG_STATE_HOME to a directory on a local disk"
    try:
        burst = Path(mkdtemp(prefix=".durtui-doctor-", dir=there))  # nothing has to be made above it, or removed
    except OSError as error:
        advice = f"mend that, or {elsewhere} that can be written; `durtui run --run-dir` goes elsewhere too"
        yield Check(
            name=name, found=f"{state} cannot be made or written: {advised(error)}", verdict=Verdict.MEND, advice=advice
        )
        return
    try:
        yield Check(name=name, found=str(state))
        write = measure_writes(burst / "store.db")
        slow = write.median > WRITE_SLOW_US
        yield Check(
            name="disk speed",
            found=f"{write.median:,.1f} µs a checkpoint (median), p99 {write.p99:,.1f} µs, of {write.count:,}",
            verdict=Verdict.MEND if slow else Verdict.FIT,
            advice=f"too slow for the app's own pace: {elsewhere}, or in memory (/dev/shm)" if slow else "",
        )
        yield _room(there, elsewhere)
    finally:
        shutil.rmtree(burst, ignore_errors=True)


def measure_writes(path: Path) -> Latency:
    """Commit checkpoints to a new store at `path` for at most a second; how long each took. Raises StoreError."""
    histogram = LatencyHistogram(memoryview(bytearray(8 * WORDS)).cast("Q"))
    scenario = Scenario()
    output = bytes(scenario.output_bytes)
    with Store.create(path, synchronous=scenario.synchronous, locking=scenario.locking) as store:
        until = time.monotonic() + BURST_S
        for number in range(BURST_CHECKPOINTS):
            before = time.perf_counter_ns()
            store.save(1 + number // scenario.steps, 1 + number % scenario.steps, output)
            histogram.record(time.perf_counter_ns() - before)
            if time.monotonic() > until:
                break
    measured = histogram.summary()
    assert measured is not None
    return measured


def _room(there: Path, elsewhere: str) -> Check:
    free = shutil.disk_usage(there).free
    needed = sum(bytes_needed(Scenario(), design) for design in find_designs(DEFAULT_DESIGNS))
    found = f"{free / 2**20:,.0f} MiB; a run of the mission's lab takes {needed / 2**20:,.0f}"
    if free >= ROOM_RUNS * needed:
        return Check(name="free room", found=found)
    verdict = Verdict.ADVICE if free >= needed else Verdict.MEND
    return Check(name="free room", found=found, verdict=verdict, advice=f"free some room, or {elsewhere}")


def _processes(name: str) -> Iterator[Check]:
    advice = "`--crash-mode sigkill` will not run here; the default, raise, gives the same figures"
    if not hasattr(os, "fork"):
        yield Check(name=name, found=f"{sys.platform} cannot fork them", verdict=Verdict.ADVICE, advice=advice)
        return
    try:
        child = os.fork()
    except OSError as error:
        mend = "raise the limit of processes (ulimit -u), or end some"
        yield Check(name=name, found=f"cannot be forked: {error.strerror}", verdict=Verdict.MEND, advice=mend)
        return
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    yield Check(name=name, found="can be forked, and really killed (--crash-mode sigkill)")


def _kept(name: str) -> Iterator[Check]:
    kept = kept_runs()
    if kept:
        advice = "`durtui resume` lists them; remove those that nobody wants"
        yield Check(name=name, found=f"{len(kept)}, the last {kept[-1]}", verdict=Verdict.ADVICE, advice=advice)
    else:
        yield Check(name=name, found="none")
