"""The real `durtui` command in a process of its own: exit codes, streams, files, signals, and what it leaves behind."""

import csv
import io
import json
import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

Durtui = Callable[..., subprocess.CompletedProcess[str]]
Lanes = Callable[[], list[int]]
Runs = Callable[[], list[Path]]

PROMPTLY_S = 3.0  # the issue says a second; two more for a loaded machine
LONG = ["run", "--jobs", "300000", "--replications", "1"]  # about a minute of work
DESIGNS = ["whole-job", "checkpoint", "checkpoint-idempotent"]


def told(done: subprocess.CompletedProcess[str], code: int) -> str:
    """The one line that a person is told; nothing on standard output, and no traceback."""
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("durtui: ")
    return line


def wait_for(condition: Callable[[], object], within_s: float = 20.0) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "this did not come to pass"
        time.sleep(0.02)


def facts(snapshot: str) -> Any:
    """A snapshot without what differs from run to run."""
    tree = json.loads(snapshot)
    del tree["environment"]
    for design in tree["designs"]:
        for replication in design["replications"]:
            del replication["elapsed_s"], replication["checkpoint_write_us"], replication["workers_killed"]
    return tree


# Mistakes


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("--jobs 0", "jobs(=0) must be a whole number between 1 and 10,000,000"),
        ("--jobs x", "jobs(=x) must be a whole number between 1 and 10,000,000"),
        ("--jobs -5", "jobs(=-5) must be a whole number between 1 and 10,000,000"),
        ("--email-step 12", "email_step(=12) must be between 1 and steps(=10)"),
        ("--transient-rate .7 --crash-rate .7", "transient_rate(=0.7) + crash_rate(=0.7) must be at most 1"),
        ("--seed -1", "seed(=-1) must be a whole number between 0 and"),
        ("--replications 0", "replications(=0) must be a whole number between 1 and 1,000"),
        ("--crash-mode hope", "crash_mode(=hope) must be one of raise, sigkill"),
        ("--poison-rate 0.1", "poison_rate(=0.1) is not yet built"),
        ("--design foo", "design(=foo) must be one of whole-job, checkpoint, checkpoint-idempotent"),
        ("--json .", "json(=.) must be a file that can be written"),
        ("--csv nowhere/out.csv", "csv(=nowhere/out.csv) must be a file that can be written"),
        ("--json - --csv -", "only one of --json, --markdown, --csv may be written to standard output"),
        ("--bogus 3", "--bogus"),
        ("--jobs", "--jobs"),
        ("--jobs 5 extra", "extra"),
        ("--run-dir file", "run_dir(=file) must be a directory that can be written"),
        ("--run-dir file/below", "run_dir(=file/below) must be a directory that can be written"),
        ("--run-dir full", "run_dir(=full) must be a new or an empty directory"),
        ("--run-dir /proc/durtui", "run_dir(=/proc/durtui) must be a directory that can be written"),
        ("--config missing.toml", "missing.toml cannot be read"),
    ],
)
def test_a_mistake_is_told_in_one_line_with_exit_2_and_nothing_is_started(
    words: str, named: str, durtui: Durtui, runs: Runs
) -> None:
    Path("file").touch()
    Path("full").mkdir()
    Path("full/mine").touch()
    assert named in told(durtui("run", *words.split()), 2)
    assert runs() == []


@pytest.mark.parametrize("words", ["bogus", "--bogus", "run bogus", "verify", "verify missing.json"])
def test_what_is_no_command_is_told_in_one_line_with_exit_2(words: str, durtui: Durtui) -> None:
    assert shlex.split(words)[-1] in told(durtui(*words.split()), 2)


def test_a_malformed_settings_file_is_told_in_one_line_with_exit_2(durtui: Durtui) -> None:
    Path("durtui.toml").write_text("jobs = = 3")
    assert "durtui.toml is not TOML" in told(durtui("run"), 2)
    assert "durtui.toml is not TOML" in told(durtui(), 2)


def test_nothing_in_a_settings_file_can_steer_the_terminal(durtui: Durtui) -> None:
    Path("durtui.toml").write_text('"a\\nb\\u001b[31mc" = 1')
    assert told(durtui("run"), 2).isprintable()


def test_a_state_directory_that_cannot_be_written_is_named_with_exit_2(durtui: Durtui) -> None:
    assert "/proc/nobody" in told(durtui("run", "--jobs", "5", XDG_STATE_HOME="/proc/nobody"), 2)


def test_a_run_without_room_is_refused_before_it_begins(durtui: Durtui, runs: Runs) -> None:
    line = told(durtui("run", "--jobs", "10000000", "--output-bytes", "1048576"), 1)  # a hundred terabytes
    assert "MiB" in line
    assert "--run-dir" in line
    assert runs() == []


# What is printed and written


def test_without_a_terminal_the_command_alone_prints_the_missions_table(durtui: Durtui, runs: Runs) -> None:
    done = durtui()
    assert done.returncode == 0
    assert "standard input is not a terminal" in done.stderr
    rows = {line[:12].strip(): line for line in done.stdout.splitlines()}
    for name, figures in {
        "Whole-job re": "1,925 75 24,324 5,044 $51.45 1,153 4,324 $44.10 287",
        "Checkpoint p": "2,000 0 20,839 839 $8.56 0 839 $8.56 20",
        "+ idempotent": "2,000 0 20,839 839 $8.56 0 839 $8.56 0",
    }.items():
        assert figures in " ".join(rows[name].split())
    assert runs() == []


def test_json_on_standard_output_stands_alone_and_comes_out_the_same_twice(durtui: Durtui, runs: Runs) -> None:
    first, second = durtui("run", "--jobs", "50", "--json", "-"), durtui("run", "--jobs", "50", "--json", "-")
    assert (first.returncode, first.stderr) == (0, "")
    assert facts(first.stdout) == facts(second.stdout)
    assert [design["name"] for design in facts(first.stdout)["designs"]] == DESIGNS
    assert runs() == []


def test_the_command_in_a_snapshot_gives_its_figures_again(durtui: Durtui) -> None:
    words = "run --jobs 40 --steps 4 --transient-rate 0.2 --seed 3 --replications 2 --design checkpoint --json -"
    first = facts(durtui(*words.split()).stdout)
    again = durtui(*shlex.split(first["command"])[1:], "--json", "-", DURTUI_JOBS="9", DURTUI_LOCKING="exclusive")
    assert facts(again.stdout) == first


def test_an_intervention_is_told_below_the_table_and_its_command_and_verify_give_it_again(durtui: Durtui) -> None:
    made = ["--intervention", "checkpoint:deploy:50:10", "--intervention", "whole-job:kill:7:1"]
    words = ["run", "--jobs", "50", "--replications", "1", *made]
    table = durtui(*words)
    assert table.returncode == 0, table.stderr
    assert "theory does not apply" in " ".join(table.stdout.split())
    assert "expected" not in table.stdout
    snapshot = durtui(*words, "--json", "-").stdout
    tree = json.loads(snapshot)
    assert [each["kind"] for each in tree["interventions"]] == ["kill", "deploy"]
    assert facts(durtui(*shlex.split(tree["command"])[1:], "--json", "-").stdout) == facts(snapshot)
    Path("run.json").write_text(snapshot)
    assert durtui("verify", "run.json").returncode == 0


@pytest.mark.parametrize(
    ("word", "named"), [("checkpoint:kill", "DESIGN:KIND:FIRST:COUNT"), ("checkpoint:kill:0:1", "first(=0)")]
)
def test_a_word_that_is_no_intervention_is_told_in_one_line_with_exit_2(durtui: Durtui, word: str, named: str) -> None:
    assert named in told(durtui("run", "--intervention", word), 2)


def test_files_are_written_beside_the_table(durtui: Durtui) -> None:
    words = "run --jobs 30 --replications 2 --json out.json --markdown out.md --csv out.csv"
    done = durtui(*words.split())
    assert (done.returncode, done.stderr) == (0, "")
    assert "Whole-job retry" in done.stdout
    tree = json.loads(Path("out.json").read_text())
    assert tree["scenario"]["jobs"] == 30
    rows = list(csv.DictReader(io.StringIO(Path("out.csv").read_text())))
    assert [(row["design"], row["seed"]) for row in rows] == [(d, s) for d in DESIGNS for s in ("7", "8", "median")]
    finished = [str(replication["figures"]["finished"]) for replication in tree["designs"][0]["replications"]]
    assert [row["finished"] for row in rows[:2]] == finished
    table = [line for line in Path("out.md").read_text().splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in table}) == 1
    assert any(line.startswith("| Whole-job retry |") for line in table)


def test_a_run_directory_is_kept_and_can_be_empty_before(durtui: Durtui, runs: Runs) -> None:
    Path("kept").mkdir()
    assert durtui("run", "--jobs", "5", "--replications", "1", "--run-dir", "kept").returncode == 0
    assert json.loads(Path("kept/run.json").read_text())["scenario"]["jobs"] == 5
    assert {path.name for path in Path("kept").iterdir() if path.is_dir()} == {f"{name}-seed-7" for name in DESIGNS}
    assert runs() == []


def test_help_and_version_are_printed_with_exit_0(durtui: Durtui) -> None:
    version = durtui("--version")
    assert (version.returncode, version.stderr) == (0, "")
    assert re.fullmatch(r"durtui \d+\.\d+\.\d+\n", version.stdout)
    for words, named in [(["--help"], "verify"), (["run", "--help"], "--transient-rate"), (["verify", "-h"], "FILE")]:
        shown = durtui(*words)
        assert (shown.returncode, shown.stderr) == (0, "")
        assert named in shown.stdout


@pytest.mark.parametrize("environment", [{"LC_ALL": "C"}, {"LC_ALL": "POSIX"}, {"PYTHONIOENCODING": "ascii"}])
def test_where_only_ascii_can_be_printed_the_table_is_ascii(durtui: Durtui, environment: dict[str, str]) -> None:
    done = durtui("run", "--jobs", "5", "--replications", "1", **environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii()
    assert "Whole-job retry" in done.stdout


def test_a_dumb_terminal_is_sent_no_escapes(durtui: Durtui) -> None:
    done = durtui("run", "--jobs", "5", "--replications", "1", TERM="dumb")
    assert done.returncode == 0
    assert "\x1b" not in done.stdout + done.stderr


def test_workers_that_really_die_give_the_figures_of_those_that_do_not_and_are_counted_in_the_table(
    durtui: Durtui,
) -> None:
    words = ("run", "--jobs", "60", "--crash-rate", "0.05", "--replications", "2")
    killed = durtui(*words, "--crash-mode", "sigkill", "--json", "killed.json")
    unwound = durtui(*words, "--json", "unwound.json")
    assert (killed.returncode, killed.stderr, unwound.returncode, unwound.stderr) == (0, "", 0, "")
    table = durtui(*words, "--crash-mode", "sigkill", COLUMNS="200").stdout
    trees = [json.loads(Path(name).read_text()) for name in ("killed.json", "unwound.json")]
    for design, other in zip(*(tree["designs"] for tree in trees), strict=True):
        assert [each["figures"] for each in design["replications"]] == [
            each["figures"] for each in other["replications"]
        ]
        assert all(each["workers_killed"] > 0 for each in design["replications"])
        assert all(each["workers_killed"] == 0 for each in other["replications"])
    assert "killed" in table
    assert "killed" not in durtui(*words, COLUMNS="200").stdout


# Resuming


def test_a_kept_run_is_listed_and_gone_on_with_and_then_gone(
    under_way: Callable[..., "subprocess.Popen[str]"], durtui: Durtui, runs: Runs
) -> None:
    assert durtui("resume").stdout.startswith("no run is kept")
    process = under_way("--replications", "1", program=("run", "--jobs", "6000", "--steps", "6"))
    process.send_signal(signal.SIGTERM)
    _, complaint = process.communicate(timeout=PROMPTLY_S)
    (kept,) = runs()
    assert f"`durtui resume {kept}`" in complaint
    listed = durtui("resume")
    assert (listed.returncode, listed.stderr) == (0, "")
    assert listed.stdout.splitlines()[0] == str(kept)
    resumed = durtui("resume", str(kept), "--json", "-")
    assert (resumed.returncode, resumed.stderr) == (0, "")
    whole = durtui("run", "--jobs", "6000", "--steps", "6", "--replications", "1", "--json", "-")
    assert facts(resumed.stdout) == facts(whole.stdout)
    assert runs() == []


def test_a_finished_run_tells_its_table_and_its_files_again(durtui: Durtui) -> None:
    first = durtui("run", "--jobs", "20", "--replications", "2", "--run-dir", "kept")
    again = durtui("resume", "kept")
    assert (again.returncode, again.stderr, again.stdout) == (0, "", first.stdout)
    assert durtui("resume", "kept", "--json", "a.json", "--markdown", "a.md", "--csv", "a.csv").returncode == 0
    assert all(Path(name).stat().st_size for name in ("a.json", "a.md", "a.csv"))


def test_without_a_terminal_the_app_goes_on_with_a_run_as_resume_does(durtui: Durtui) -> None:
    first = durtui("run", "--jobs", "20", "--replications", "2", "--run-dir", "kept")
    again = durtui("--resume", "kept")
    assert (again.returncode, again.stdout) == (0, first.stdout)
    assert again.stderr.endswith("resuming without the app\n")
    line = told(durtui("--resume", "kept", "--steps", "5"), 2)
    assert "the run in resume(=kept) has a scenario and designs; leave the flags for them out" in line


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("nowhere", "nowhere holds no run: there is no run.json in it"),
        (".", "holds no run: there is no run.json in it"),
        ("kept --json .", "json(=.) must be a file that can be written"),
        ("kept --jobs 5", "--jobs"),
        ("kept extra", "extra"),
    ],
)
def test_what_cannot_be_resumed_is_told_in_one_line_with_exit_2(words: str, named: str, durtui: Durtui) -> None:
    durtui("run", "--jobs", "5", "--replications", "1", "--design", "checkpoint", "--run-dir", "kept")
    assert named in told(durtui("resume", *words.split()), 2)


def test_a_run_that_another_durtui_has_is_refused_by_its_number_and_goes_on_unharmed(
    under_way: Callable[..., "subprocess.Popen[str]"], durtui: Durtui
) -> None:
    process = under_way("--run-dir", "mine")
    line = told(durtui("resume", "mine"), 1)
    assert f"mine is in use by another durtui (process {process.pid})" in line
    assert process.poll() is None


def test_a_destroyed_lane_is_refused_with_the_words_that_run_it_again(durtui: Durtui) -> None:
    words = ("run", "--jobs", "20", "--replications", "1")
    durtui(*words, "--run-dir", "kept")
    Path("kept/checkpoint-seed-7/ledger").write_bytes(b"noise")
    line = told(durtui("resume", "kept"), 1)
    assert "lane checkpoint, seed 7: " in line
    assert f"`durtui resume {Path('kept').resolve()} --rerun-damaged`" in line
    again = durtui("resume", "kept", "--rerun-damaged", "--json", "-")
    assert again.returncode == 0
    assert "begins again from its seed" in again.stderr
    assert facts(again.stdout) == facts(durtui(*words, "--json", "-").stdout)


def test_whatever_is_written_is_for_its_owner_alone(durtui: Durtui) -> None:
    before = os.umask(0)
    try:
        durtui("run", "--jobs", "5", "--run-dir", "deep/kept", "--json", "a.json", "--csv", "a.csv")
    finally:
        os.umask(before)
    made = [Path("a.json"), Path("a.csv"), Path("deep"), *Path("deep").rglob("*")]
    assert len(made) > 30
    assert [path for path in made if path.stat().st_mode & 0o077] == []


# Streams that fail


@pytest.mark.parametrize(
    "words", ["run --jobs 50", "run --jobs 50 --json -", "--jobs 50", "--help"], ids=lambda words: words
)
def test_a_closed_pipe_gives_no_traceback(words: str, command: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as closed:
        done = subprocess.run(
            [command, *words.split()],
            stdin=subprocess.DEVNULL,
            stdout=closed,
            stderr=subprocess.PIPE,
            text=True,
            timeout=30,
            check=False,
        )
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


def test_a_reader_that_takes_one_line_gets_it_and_nobody_complains(command: str) -> None:
    line = f"{command} run --jobs 50 --replications 1 | head -1"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == "50 jobs of 10 steps in each design\n"
    assert done.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("kind", ["--json", "--markdown", "--csv"])
def test_a_file_on_a_full_disk_is_one_line_with_exit_1_and_the_run_can_be_told_again(
    kind: str, durtui: Durtui, runs: Runs
) -> None:
    line = told(durtui("run", "--jobs", "5", "--replications", "1", kind, "/dev/full"), 1)
    assert "/dev/full" in line
    assert "the disk is full; free some room" in line
    (kept,) = runs()
    assert f"`durtui resume {kept}`" in line
    assert durtui("resume", str(kept), kind, "out").returncode == 0
    assert Path("out").stat().st_size
    assert runs() == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("output", [[], ["--json", "-"]], ids=["table", "json"])
def test_standard_output_on_a_full_disk_is_one_line_with_exit_1(output: list[str], command: str) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [command, "run", "--jobs", "5", "--replications", "1", *output],
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=30,
            check=False,
        )
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1


# Verify


@pytest.fixture
def snapshot(durtui: Durtui) -> Any:
    """A small snapshot, as a tree; it lies in run.json too."""
    words = "run --jobs 30 --replications 2 --seed 4 --json run.json"
    assert durtui(*words.split()).returncode == 0
    return json.loads(Path("run.json").read_text())


def test_a_snapshot_verifies_until_one_figure_is_altered_which_is_named(durtui: Durtui, snapshot: Any) -> None:
    done = durtui("verify", "run.json")
    assert (done.returncode, done.stderr) == (0, "")
    assert "run.json" in done.stdout
    figures = snapshot["designs"][1]["replications"][1]["figures"]
    figures["emails_delivered"] += 1
    Path("altered.json").write_text(json.dumps(snapshot))
    line = told(durtui("verify", "altered.json"), 1)
    assert "designs[1].replications[1].figures.emails_delivered" in line
    assert f"{figures['emails_delivered']}" in line


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "no JSON", '{"schema": "durtui.snapshot/1"}', "[" * 100_000], ids=lambda text: text[:30]
)
def test_a_file_that_is_no_snapshot_is_told_so_in_one_line_with_exit_2(text: str, durtui: Durtui) -> None:
    Path("strange.json").write_text(text)
    told(durtui("verify", "strange.json"), 2)


# Interrupted


@pytest.fixture
def under_way(command: str, lanes: Lanes) -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Starts a long run in a session of its own, and waits until its lanes are at work."""
    started: list[subprocess.Popen[str]] = []

    def start(*words: str, wrapper: tuple[str, ...] = (), program: Sequence[str] = LONG) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [*wrapper, command, *program, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        wait_for(lambda: process.poll() is not None or len(lanes()) >= min(2, os.cpu_count() or 1))
        time.sleep(0.3)
        assert process.poll() is None
        return process

    yield start
    for process in started:
        process.kill()
        with process:
            pass


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda how: how.name)
def test_an_interrupted_run_ends_at_once_and_says_where_it_is_kept(
    how: signal.Signals, under_way: Callable[..., "subprocess.Popen[str]"], lanes: Lanes, runs: Runs
) -> None:
    process = under_way()
    if how is signal.SIGINT:
        os.killpg(process.pid, how)  # as the terminal does
    else:
        process.send_signal(how)
    output, complaint = process.communicate(timeout=PROMPTLY_S)
    assert process.returncode == 130
    assert output == ""
    (line,) = complaint.splitlines()
    assert "interrupted" in line
    (kept,) = runs()
    assert f"`durtui resume {kept}`" in line
    assert (kept / "run.json").exists()
    assert lanes() == []


def test_an_interrupted_run_names_the_directory_that_it_was_given(
    under_way: Callable[..., "subprocess.Popen[str]"],
) -> None:
    process = under_way("--run-dir", "mine")
    os.killpg(process.pid, signal.SIGINT)
    _, complaint = process.communicate(timeout=PROMPTLY_S)
    assert str(Path("mine").resolve()) in complaint
    assert Path("mine/run.json").exists()


@pytest.mark.parametrize("library", ["msgspec", "apsw"])
def test_ctrl_c_while_the_command_is_still_loading_gives_no_traceback(library: str, command: str, lanes: Lanes) -> None:
    with subprocess.Popen(
        [command, *LONG], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        loaded = Path(f"/proc/{process.pid}/maps")
        wait_for(lambda: f"/{library}/" in loaded.read_text())
        process.send_signal(signal.SIGINT)
        _, complaint = process.communicate(timeout=PROMPTLY_S)
    assert len(complaint.splitlines()) == 1
    assert process.returncode == 130
    assert lanes() == []


def test_a_run_that_was_started_to_survive_a_hang_up_survives_it(
    under_way: Callable[..., "subprocess.Popen[str]"], lanes: Lanes
) -> None:
    process = under_way(wrapper=("nohup",))
    process.send_signal(signal.SIGHUP)
    time.sleep(1)
    assert process.poll() is None
    assert lanes() != []
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PROMPTLY_S)


def test_lanes_end_by_themselves_when_the_command_is_killed(
    under_way: Callable[..., "subprocess.Popen[str]"], lanes: Lanes
) -> None:
    process = under_way()
    process.kill()
    process.communicate(timeout=PROMPTLY_S)
    wait_for(lambda: lanes() == [], within_s=PROMPTLY_S)


def test_a_lane_that_is_killed_ends_the_run_with_exit_1_and_is_named(
    under_way: Callable[..., "subprocess.Popen[str]"], lanes: Lanes, runs: Runs
) -> None:
    process = under_way()
    os.kill(lanes()[0], signal.SIGKILL)
    output, complaint = process.communicate(timeout=PROMPTLY_S)
    assert (process.returncode, output) == (1, "")
    (line,) = complaint.splitlines()
    assert "killed by signal 9" in line
    assert any(name in line for name in DESIGNS)
    (kept,) = runs()
    assert str(kept) in line
    assert lanes() == []


# Theory and sweeps


def test_theory_prints_the_missions_exact_column(durtui: Durtui) -> None:
    rows = {
        line.split()[0]: " ".join(line.split()[1:]) for line in durtui("theory").stdout.splitlines() if line.strip()
    }
    assert rows["finished"] == "1,924.7 ± 8.5 2,000 2,000"
    assert rows["lost"] == "75.3 ± 8.5 0 0"
    assert rows["model_calls"] == "24,257.8 ± 170.2 20,833.3 ± 29.5 20,833.3 ± 29.5"
    assert rows["wasted_calls"] == "4,257.8 ± 170.2 833.3 ± 29.5 833.3 ± 29.5"
    assert rows["duplicate_email_jobs"] == "282.8 ± 15.6 20.6 ± 4.5 0"


def test_theory_as_json_is_a_snapshot_without_a_run(durtui: Durtui) -> None:
    tree = json.loads(durtui("theory", "--design", "checkpoint", "--json", "-").stdout)
    assert tree["schema"] == "durtui.snapshot/1"
    assert {"seeds", "median", "replications"}.isdisjoint({*tree, *tree["designs"][0]})
    (design,) = tree["designs"]
    assert design["name"] == "checkpoint"
    assert round(design["expected"]["duplicate_email_jobs"]["mean"], 1) == 20.6


def test_a_sweep_prints_a_table_a_figure_and_writes_csv_and_json(durtui: Durtui) -> None:
    done = durtui("sweep", "steps=5:15:5", "--jobs", "200", "--csv", "s.csv", "--json", "s.json")
    assert done.returncode == 0
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert "lost" in lines
    assert "dead_lettered" not in lines  # nothing to see
    assert len(Path("s.csv").read_text().splitlines()) == 1 + 3 * 3
    assert [point["value"] for point in json.loads(Path("s.json").read_text())["points"]] == [5, 10, 15]


@pytest.mark.parametrize("axis", ["steps", "steps=1:2", "nothing=1:2:1", "email_step=1:12:1"])
def test_a_sweep_that_cannot_be_is_one_line_with_exit_2(durtui: Durtui, axis: str) -> None:
    assert "sweep" in told(durtui("sweep", axis), 2)


def test_where_the_email_stands_decides_the_duplicates(durtui: Durtui) -> None:
    """The first trap of docs/reading-the-figures.md: email last, whole-job retry looks the better one."""
    done = durtui("sweep", "email_step=1:10:1", "--json", "-")
    points = {point["value"]: point["designs"] for point in json.loads(done.stdout)["points"]}
    duplicates = {
        step: [design["expected"]["duplicate_email_jobs"]["mean"] / 2000 for design in designs[:2]]
        for step, designs in points.items()
    }
    assert [round(share, 4) for share in duplicates[10]] == [0.0077, 0.0103]
    assert round(duplicates[1][0], 3) == 0.314
    assert duplicates[10][0] < duplicates[10][1] < duplicates[6][0]


def test_key_first_is_at_most_once(durtui: Durtui) -> None:
    """The second trap: a crash between the key and the send loses the email for good, and only the ledger knows."""
    done = durtui("run", "--crash-point", "after-key", "--replications", "1", "--json", "-")
    keyed = json.loads(done.stdout)["designs"][2]
    assert keyed["name"] == "checkpoint-idempotent"
    assert keyed["median"]["duplicate_email_jobs"] == 0
    assert keyed["median"]["missing_email_jobs"] == 20
    assert keyed["median"]["finished"] == 2000


def test_the_cap_is_never_reached_at_one_percent(durtui: Durtui) -> None:
    """The third trap: the dead-letter queue stays empty until crashes are far more frequent."""
    done = durtui("sweep", "crash_rate=0.01,0.1,0.2,0.3,0.4", "--json", "-")
    means = [point["designs"][1]["expected"]["dead_lettered"]["mean"] for point in json.loads(done.stdout)["points"]]
    assert means[0] < 1e-12
    assert means[-1] > 300


@pytest.mark.parametrize("words", [["steps=5,10"], ["crash_rate=0.01,0.02", "--email-step", "3"], ["crash_point=all"]])
def test_the_command_of_a_sweep_gives_it_again(durtui: Durtui, words: list[str]) -> None:
    first = durtui("sweep", *words, "--jobs", "50", "--json", "-").stdout
    again = durtui(*shlex.split(json.loads(first)["command"])[1:], "--json", "-").stdout
    assert json.loads(again) == json.loads(first)


def test_a_flag_that_a_sweep_would_ignore_is_refused(durtui: Durtui) -> None:
    assert "--steps would do nothing" in told(durtui("sweep", "steps=5,10", "--steps", "7"), 2)


def test_an_unknown_variable_is_refused_as_an_unknown_key_is(durtui: Durtui) -> None:
    assert "DURTUI_STEP is no setting" in told(durtui("theory", DURTUI_STEP="3"), 2)


def test_a_snapshot_is_verified_from_standard_input(command: str, durtui: Durtui) -> None:
    snapshot = durtui("run", "--jobs", "20", "--json", "-").stdout
    done = subprocess.run([command, "verify", "-"], input=snapshot, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "every figure of 9 lanes" in done.stdout
