"""Reports: Markdown that a forge renders, CSV that a spreadsheet reads, and numbers as a person writes them."""

import csv
import io
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from durcore.errors import Mistake
from durcore.figures import FIGURE_NAMES, Figures
from durcore.lab import LabResult, run_lab
from durcore.report import (
    as_csv,
    as_markdown,
    columns,
    dollars,
    measured_here,
    number,
    percent,
    summary,
    write_latency,
)
from durcore.scenario import Scenario
from durcore.snapshot import reproduce


@pytest.fixture(scope="module")
def calm_lab(runs_live_in_a_scratch_directory: None) -> LabResult:
    """A lab in which nothing goes wrong."""
    return run_lab(Scenario(jobs=5, steps=2, transient_rate=0, crash_rate=0), seeds=(7,))


def table(markdown: str) -> list[list[str]]:
    """The rows of the one table in a Markdown text, its rule left out."""
    rows = [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in markdown.splitlines()
        if line.startswith("|")
    ]
    heading, rule, *others = rows
    assert all(re.fullmatch(r":?-{3,}:?", cell) for cell in rule)
    assert {len(row) for row in rows} == {len(heading)}
    return [heading, *others]


def test_markdown_holds_one_table_with_a_cell_for_each_column_in_each_row(small_lab: LabResult) -> None:
    markdown = as_markdown(small_lab)
    blocks = re.findall(r"(?:^\|.*\n)+", markdown, flags=re.MULTILINE)
    assert len(blocks) == 1
    assert markdown.endswith("\n")
    assert len(table(markdown)) >= 1 + len(small_lab)
    assert all(cell for cell in table(markdown)[0])


def test_markdown_shows_the_medians_of_each_design_under_their_headings(small_lab: LabResult) -> None:
    heading, *rows = table(as_markdown(small_lab))
    by_title = {row[0]: dict(zip(heading, row, strict=True)) for row in rows}
    for design in small_lab.values():
        shown, median = by_title[design.design.title], design.median
        assert shown["finished"] == number(median.finished)
        assert shown["lost"] == number(median.lost)
        assert shown["dead-lettered"] == number(median.dead_lettered)
        assert shown["model calls"] == number(median.model_calls)
        assert shown["unproductive calls"] == number(median.unproductive_calls)
        assert shown["unproductive cost"] == dollars(median.unproductive_cost_usd)
        assert shown["calls on lost jobs"] == number(median.lost_job_calls)
        assert shown["wasted calls"] == number(median.wasted_calls)
        assert shown["wasted cost"] == dollars(median.wasted_cost_usd)
        assert shown["duplicate emails"] == number(median.duplicate_email_jobs)
        latency = write_latency(design)
        written = "none" if latency is None else f"{latency[0]:.1f} / {latency[1]:.1f}"
        assert shown["write µs, median / p99"] == written
        assert "workers killed" not in shown  # here a crash unwinds


def with_workers_killed(result: LabResult, *killed: int) -> LabResult:
    """The same figures from workers that really died: so many in each replication of the first design."""
    first, *others = result.designs
    counted = zip(first.replications, killed, strict=True)
    first = replace(first, replications=tuple(replace(each, workers_killed=count) for each, count in counted))
    return replace(result, scenario=replace(result.scenario, crash_mode="sigkill"), designs=(first, *others))


def test_where_crashes_kill_the_median_of_the_workers_killed_is_shown_and_nothing_is_expected_of_it(
    small_lab: LabResult,
) -> None:
    dying = with_workers_killed(small_lab, 1000, 1235)
    heading, *rows = table(as_markdown(dying))
    at = heading.index("workers killed")
    assert [row[at] for row in rows] == ["1,117.5", "", "0", "", "0", ""]
    assert [name for name, _ in measured_here(dying)] == ["workers killed", "write µs, median / p99"]
    assert [name for name, _ in measured_here(small_lab)] == ["write µs, median / p99"]
    assert all(len(cells) == len(small_lab) for _, cells in measured_here(dying))


def test_csv_has_the_workers_killed_of_each_replication_and_their_median_whatever_a_crash_does(
    small_lab: LabResult,
) -> None:
    for result, expected in (
        (small_lab, ["0", "0", "0.0"]),
        (with_workers_killed(small_lab, 1000, 1235), ["1000", "1235", "1117.5"]),
    ):
        rows = list(csv.DictReader(io.StringIO(as_csv(result)), strict=True))
        assert [row["workers_killed"] for row in rows if row["design"] == "whole-job"] == expected
        assert {float(row["workers_killed"]) for row in rows if row["design"] == "checkpoint"} == {0}


def test_the_stricter_waste_leads_where_jobs_were_lost_and_is_not_shown_where_none_was(
    small_lab: LabResult, calm_lab: LabResult
) -> None:
    with_losses = [column.heading for column in columns(small_lab)]
    assert with_losses.index("unproductive calls") < with_losses.index("wasted calls")
    without = [column.heading for column in columns(calm_lab)]
    assert "wasted calls" in without
    assert not {"unproductive calls", "dead-lettered", "missing emails", "calls on lost jobs"} & set(without)


def test_missing_emails_have_a_column_where_there_are_any(calm_lab: LabResult) -> None:
    designs = calm_lab.designs
    one = designs[0].replications[0]
    one = replace(one, figures=replace(one.figures, missing_email_jobs=3))
    missing = replace(designs[0], replications=(one, *designs[0].replications[1:]))  # in one run, and not in the median
    result = replace(calm_lab, designs=(missing, *designs[1:]))
    assert "missing emails" in [column.heading for column in columns(result)]
    heading, first, *_ = table(as_markdown(result))
    assert first[heading.index("missing emails")] == "0"


@pytest.mark.parametrize("report", [as_markdown, as_csv])
def test_every_report_holds_the_one_command_that_gives_it_again(small_lab: LabResult, report: object) -> None:
    assert callable(report)
    assert reproduce(small_lab) in report(small_lab)


def test_csv_has_a_row_for_each_replication_and_one_for_each_median_with_every_figure(small_lab: LabResult) -> None:
    rows = list(csv.DictReader(io.StringIO(as_csv(small_lab)), strict=True))
    assert all(None not in row and None not in row.values() for row in rows)  # as many cells as headings
    by_place = {(row["design"], row["seed"]): row for row in rows}
    for name, design in small_lab.items():
        expected: dict[str, Figures] = {"median": design.median}
        expected |= {str(each.seed): each.figures for each in design.replications}
        for seed, figures in expected.items():
            row = by_place[name, seed]
            assert {figure: float(row[figure]) for figure in FIGURE_NAMES} == figures.as_dict()
            assert row["command"] == reproduce(small_lab)
            assert (
                bool(row["checkpoint_write_us_median"]) == bool(row["checkpoint_write_us_p99"]) == (name != "whole-job")
            )
        for each in design.replications:
            if each.checkpoint_write_us:
                row = by_place[name, str(each.seed)]
                assert float(row["checkpoint_write_us_median"]) == each.checkpoint_write_us.median
                assert float(row["checkpoint_write_us_p99"]) == each.checkpoint_write_us.p99


def test_the_latency_of_a_design_lies_between_those_of_its_replications(small_lab: LabResult) -> None:
    assert write_latency(small_lab["whole-job"]) is None
    for name in ("checkpoint", "checkpoint-idempotent"):
        shown = write_latency(small_lab[name])
        assert shown is not None
        measured = [each.checkpoint_write_us for each in small_lab[name].replications if each.checkpoint_write_us]
        assert min(each.median for each in measured) <= shown[0] <= max(each.median for each in measured)
        assert min(each.p99 for each in measured) <= shown[1] <= max(each.p99 for each in measured)


def test_the_summary_says_what_was_run(small_lab: LabResult, calm_lab: LabResult) -> None:
    text = summary(small_lab)
    for words in ("step 5", "25 % of attempts", "20 % crash after it", "$0.0102", "the median of seeds 3, 4"):
        assert words in text
    assert "seed 7" in summary(calm_lab)
    assert "median" not in summary(calm_lab)
    assert len(text.splitlines()) == 1


def test_a_report_on_a_run_under_way_says_so(calm_lab: LabResult) -> None:
    assert "not final" not in as_markdown(calm_lab)
    assert "not final" in as_markdown(replace(calm_lab, complete=False))


def test_a_report_that_no_command_gives_is_refused(calm_lab: LabResult) -> None:
    for report in (as_markdown, as_csv):
        with pytest.raises(Mistake, match="must follow one another"):
            report(replace(calm_lab, seeds=(1, 3)))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (7, "7"),
        (24324, "24,324"),
        (10_000_000, "10,000,000"),
        (24324.0, "24,324"),
        (0.5, "0.5"),
        (1924.5, "1,924.5"),
        (-12, "-12"),
        (-0.5, "-0.5"),
        (-1234.0, "-1,234"),
    ],
)
def test_a_number_has_its_thousands_apart_and_a_half_only_where_there_is_one(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "$0.00"),
        (42.256, "$42.26"),
        (8.384, "$8.38"),
        (1234567.891, "$1,234,567.89"),
        (0.004, "$0.00"),
        (-0.004, "$0.00"),
        (-0.0, "$0.00"),
        (-0.006, "-$0.01"),
        (-1234.5, "-$1,234.50"),
    ],
)
def test_dollars_have_two_decimals_and_no_negative_nought(value: float, text: str) -> None:
    assert dollars(value) == text


@pytest.mark.parametrize(
    ("rate", "text"),
    [(0, "0 %"), (1, "100 %"), (0.03, "3 %"), (0.07, "7 %"), (0.29, "29 %"), (0.005, "0.5 %"), (0.0125, "1.25 %")],
)
def test_a_rate_is_a_percentage_without_the_noise_of_binary(rate: float, text: str) -> None:
    assert percent(rate) == text


@given(thousandths=st.integers(0, 100_000))
def test_any_rate_of_a_slider_is_written_in_its_own_digits(thousandths: int) -> None:
    text = percent(thousandths / 100_000)
    assert re.fullmatch(r"\d+(\.\d{1,3})? %", text)
    assert float(text.removesuffix(" %")) == thousandths / 1000
