"""The plain output: sentences that a screen reader reads well, with the figures and expectations of the table."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from durcore.lab import LabResult, run_lab
from durcore.report import columns
from durcore.scenario import Scenario
from durtui.console import progress_bar
from durtui.plain import SENTENCES, as_plain, spoken

Durtui = Callable[..., subprocess.CompletedProcess[str]]
NAMES = ("Whole-job retry", "Checkpoint per step", "Checkpoint plus idempotent email")


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> LabResult:
    """Jobs of each ending, and one that is alone in its ending or not."""
    scenario = Scenario(jobs=60, steps=5, transient_rate=0.25, crash_rate=0.2, redeliveries_max=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        return run_lab(scenario, seeds=(3, 4))


def of(name: str, text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(f"{name}: ")]


def test_every_figure_of_the_table_is_a_sentence_of_its_design_with_its_expectation(result: LabResult) -> None:
    text = as_plain(result)
    for name, design in zip(NAMES, result.designs, strict=True):
        lines = of(name, text)
        assert design.expected is not None
        for column, line in zip(columns(result), lines, strict=False):
            assert column.measured(design.median) in line
            assert f"; expected: {column.mean(design.expected)}" in line
        assert len(lines) == len(columns(result)) + 1  # the store's own line


def test_every_line_is_one_sentence_that_is_read_out_whole(result: LabResult) -> None:
    for line in as_plain(result).splitlines():
        assert line.isascii()
        assert line.isprintable()
        assert re.search(r"[^.]\.$", line), line
        assert not re.search(r"[|+*#_]|  |--", line), line


def test_a_deviation_is_said_in_words_and_left_out_where_there_is_none(result: LabResult) -> None:
    text = as_plain(result)
    (lost,) = [line for line in of("Whole-job retry", text) if "lost;" in line]
    assert re.search(r"; expected: [\d.]+, plus or minus [\d.]+\.$", lost)
    (certain,) = [line for line in of("Checkpoint per step", text) if "lost;" in line]
    assert certain == "Checkpoint per step: 0 jobs were lost; expected: 0."


def test_one_job_is_one_job_and_not_one_jobs() -> None:
    result = run_lab(Scenario(jobs=1, steps=1, transient_rate=0, crash_rate=0), seeds=(7,), designs=("checkpoint",))
    assert as_plain(result).splitlines()[0] == "1 job of 1 step was run in each design."
    assert "Checkpoint per step: 1 job finished; expected: 1." in as_plain(result)
    assert "Each expectation is of one replication." not in as_plain(result)


def test_the_missions_lab_reads_as_the_contract_has_it(durtui: Durtui) -> None:
    done = durtui("run", "--plain", "--replications", "1")
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split("; ")[0] for line in of("Whole-job retry", done.stdout)][:3] == [
        "Whole-job retry: 1,928 jobs finished",
        "Whole-job retry: 72 jobs were lost",
        "Whole-job retry: 24,324 model calls were made",
    ]
    assert (
        "Whole-job retry: 287 jobs sent their email twice or more; expected: 282.8, plus or minus 15.6." in done.stdout
    )
    assert "Checkpoint plus idempotent email: 0 jobs sent their email twice or more; expected: 0." in done.stdout


def test_a_run_that_is_gone_on_with_reads_the_same(durtui: Durtui) -> None:
    first = durtui("run", "--jobs", "20", "--replications", "2", "--run-dir", "kept", "--plain")
    again = durtui("resume", "kept", "--plain")
    assert (again.returncode, again.stderr, again.stdout) == (0, "", first.stdout)


def test_files_are_written_beside_the_sentences_and_only_one_of_all_may_be_printed(durtui: Durtui) -> None:
    words = ("run", "--jobs", "5", "--replications", "1", "--plain", "--json")
    done = durtui(*words, "out.json")
    assert done.stdout.startswith("5 jobs of 10 steps were run")
    assert json.loads(Path("out.json").read_text())["scenario"]["jobs"] == 5
    refused = durtui(*words, "-")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--plain may be written to standard output" in refused.stderr


def test_a_killed_worker_is_told_where_workers_are_killed(durtui: Durtui) -> None:
    words = ("run", "--plain", "--jobs", "30", "--crash-rate", "0.05", "--replications", "1")
    assert re.search(r"\d workers? (was|were) killed\.", durtui(*words, "--crash-mode", "sigkill").stdout)
    assert "killed" not in durtui(*words).stdout


def test_every_figure_that_a_table_may_show_has_its_sentence() -> None:
    stormy = Scenario(jobs=200, crash_rate=0.2, crash_point="after-key", redeliveries_max=2)
    shown = {column.figure for column in columns(run_lab(stormy, seeds=(7,)))}
    assert {"dead_lettered", "missing_email_jobs", "lost_job_calls"} <= shown <= set(SENTENCES)


def test_a_design_that_adds_to_another_is_named_by_itself() -> None:
    assert spoken("+ idempotent email") == "Checkpoint plus idempotent email"
    assert spoken("Whole-job retry") == "Whole-job retry"


def test_progress_is_a_line_a_quarter_and_no_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich then takes standard error for a terminal
    with progress_bar("running", plain=True) as tell:
        for done in range(0, 1001, 10):
            tell(done, 1000)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        f"running: {percent} percent done, {done:,} of 1,000 jobs"
        for percent, done in [(25, 250), (50, 500), (75, 750), (100, 1000)]
    ]
