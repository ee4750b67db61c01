"""The laws of figures turned into characters: what fits, what leads, and what stands across from what."""

import re
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from durcore.designs import CHECKPOINT, DEFAULT_DESIGNS, DESIGNS, WHOLE_JOB, Design
from durcore.figures import Figures, Tally, figures_of
from durcore.interventions import Intervention
from durcore.latency import Latency
from durcore.scenario import Scenario
from durcore.theory import Moment, expect
from durtui.panel import Line, panel, rows_shown
from durtui.present import (
    EIGHTHS,
    ODD,
    arithmetic,
    bar,
    compact,
    compact_table,
    expectation,
    headline,
    lane_status,
    percent_done,
    speed,
    status,
    write_times,
)
from durtui.view import LaneView, Phase

EXPECTED = expect(Scenario())
LATENCY = Latency(count=1000, mean=7.1, median=6.8, p99=27.0, max=900.0)
LABELS = ("finished", "lost", "dead-lettered", "duplicates", "missing", "unproductive", "wasted", "  calls")

COUNTS = st.integers(0, 10**9) | st.integers(0, 3)
WIDTHS = st.integers(1, 80)
HEIGHTS = st.integers(1, 40)


@st.composite
def tallies(draw: st.DrawFn) -> Tally:
    finished, lost, dead, calls, duplicates, missing = (draw(COUNTS) for _ in range(6))
    return Tally(
        finished=finished,
        lost=lost,
        dead_lettered=dead,
        model_calls=calls,
        duplicate_email_jobs=duplicates,
        missing_email_jobs=missing,
    )


@st.composite
def views(draw: st.DrawFn) -> LaneView:
    tally = draw(tallies())
    latency = st.builds(
        Latency,
        count=COUNTS,
        mean=st.floats(0, 1e9),
        median=st.floats(0, 1e9),
        p99=st.floats(0, 1e9),
        max=st.floats(0, 1e9),
    )
    return LaneView(
        design=draw(st.sampled_from(list(DESIGNS.values()))),
        phase=draw(st.sampled_from(Phase)),
        ended=tally.ended,
        jobs=max(tally.ended, 1) + draw(COUNTS),
        figures=figures_of(tally, Scenario()),
        latency=draw(st.none() | latency),
        elapsed_s=1.0,
        error=draw(st.text(max_size=200)),
    )


def a_view(
    design: Design = WHOLE_JOB, phase: Phase = Phase.RUNNING, error: str = "", jobs: int = 2000, **tally: int
) -> LaneView:
    counted = Tally(**tally)
    return LaneView(
        design=design,
        phase=phase,
        ended=counted.ended,
        jobs=jobs,
        figures=figures_of(counted, Scenario()),
        latency=LATENCY if design.checkpoints else None,
        elapsed_s=1.0,
        error=error,
    )


def mission() -> list[LaneView]:
    """The three lanes of the mission's lab at their end, seed 7."""
    return [
        a_view(WHOLE_JOB, Phase.DONE, finished=1928, lost=72, model_calls=24324, duplicate_email_jobs=287),
        a_view(CHECKPOINT, Phase.DONE, finished=2000, model_calls=20820, duplicate_email_jobs=20),
        a_view(DESIGNS["checkpoint-idempotent"], Phase.DONE, finished=2000, model_calls=20820),
    ]


def drawn(view: LaneView, others: list[Figures], width: int, height: int) -> list[Line]:
    return panel(view, rows_shown(others, list(EXPECTED.values())), EXPECTED[view.design.name], width, height)


def texts(lines: list[Line]) -> list[str]:
    return ["".join(text for text, _ in line) for line in lines]


def labels_of(lines: list[Line]) -> list[str]:
    """The label of each line, in full though it may have been cut for want of room; empty for a line without one."""
    shown = [line[0][0].rstrip().removesuffix(".") for line in lines]  # "unprod." is short for unproductive
    return [next((label for label in LABELS if label.startswith(text or "-")), "") for text in shown]


# Numbers


@given(st.floats(0, 1), st.floats(0, 1), WIDTHS)
def test_a_bar_never_shrinks_as_more_is_done(one: float, other: float, width: int) -> None:
    less, more = (sum(map(EIGHTHS.index, bar(share, width))) for share in sorted((one, other)))
    assert less <= more


@given(st.floats(0, 1), WIDTHS)
def test_a_bar_is_as_wide_as_it_should_be_and_full_only_at_the_end(share: float, width: int) -> None:
    assert cell_len(bar(share, width)) == width
    assert (bar(share, width) == "█" * width) == (share == 1)
    assert bar(0, width) == " " * width


@given(st.integers(0, 10**7), st.integers(1, 10**7))
def test_a_hundred_percent_is_said_only_when_nothing_is_left(ended: int, jobs: int) -> None:
    ended = min(ended, jobs)
    assert (percent_done(ended / jobs) == "100 %") == (ended == jobs)


@pytest.mark.parametrize("ended", range(101))
def test_a_hundredth_of_the_jobs_is_one_percent(ended: int) -> None:
    assert percent_done(ended / 100) == f"{ended} %"


@given(st.floats(0, 999e9))
@example(9_999)
@example(99_960)
@example(999_600)
def test_a_compact_number_takes_at_most_five_characters_and_keeps_its_size(value: float) -> None:
    text = compact(value)
    assert len(text) <= 5
    unit = {"k": 1e3, "M": 1e6, "G": 1e9}.get(text[-1], 1.0)
    assert float(text.rstrip("kMG")) * unit == pytest.approx(value, rel=0.006, abs=0.5)


@given(st.lists(st.integers(0, 10**12), min_size=2, max_size=20))
def test_compact_numbers_rise_with_their_values(values: list[int]) -> None:
    def back(text: str) -> float:
        return float(text.rstrip("kMG")) * {"k": 1e3, "M": 1e6, "G": 1e9}.get(text[-1], 1.0)

    shown = [back(compact(value)) for value in sorted(values)]
    assert all(less <= more for less, more in pairwise(shown))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (-0.2, "0"),
        (-10, "-10"),
        (-0.9, "-1"),
        (999, "999"),
        (1170, "1.17k"),
        (24_324, "24.3k"),
        (1e6, "1.00M"),
    ],
)
def test_compact_numbers_read_like_this(value: float, text: str) -> None:
    assert compact(value) == text


@given(st.floats(-1e9, 1e9), st.floats(0, 1e9), st.booleans(), WIDTHS)
def test_an_expectation_never_exceeds_its_room(mean: float, sd: float, money: bool, width: int) -> None:
    text = expectation(Moment(mean=mean, sd=sd, bearing_jobs=100), money=money, width=width)
    assert cell_len(text) <= width
    assert text.count("$") <= 1


def test_an_expectation_says_all_that_there_is_room_for() -> None:
    lost = EXPECTED["whole-job"].lost
    assert expectation(lost, money=False, width=40) == "expect 75 ± 8.5"
    assert expectation(EXPECTED["checkpoint"].lost, money=False, width=40).endswith("0")
    assert expectation(lost, money=False, width=1) == ""


@given(st.integers(1, 100), st.floats(0, 0.5), st.floats(0, 0.5), st.integers(1, 100), st.integers(1, 200))
def test_the_line_of_arithmetic_fits_and_shows_percentages_only(
    steps: int, transient: float, crash: float, attempts: int, width: int
) -> None:
    scenario = Scenario(steps=steps, transient_rate=transient, crash_rate=crash, job_attempts=attempts)
    line = arithmetic(scenario, width)
    assert cell_len(line) <= width
    assert all(0 <= float(share) <= 100 for share in re.findall(r"([\d.]+(?:e-?\d+)?) %", line))


def test_the_line_of_arithmetic_is_the_missions() -> None:
    line = arithmetic(Scenario(), 200)
    assert "96.0 %" in line
    assert "66.5 %" in line
    assert "96.2 %" in line


@pytest.mark.parametrize("width", [10, 18, 40])
def test_write_times_name_median_and_p99(width: int) -> None:
    text = write_times(LATENCY, width)
    assert "6.8" in text
    assert "27" in text
    assert "µs" in text
    assert len(text) <= width


def test_speeds_are_told_as_a_person_says_them() -> None:
    assert speed(1100) == "1,100 calls/s"
    assert speed(None) == "unlimited"


# Panels


@given(views(), st.lists(tallies(), max_size=2), WIDTHS, HEIGHTS)
def test_a_panel_never_exceeds_its_place(view: LaneView, others: list[Tally], width: int, height: int) -> None:
    figures = [view.figures, *(figures_of(other, Scenario()) for other in others)]
    lines = texts(drawn(view, figures, width, height))
    assert len(lines) <= height
    assert max(map(cell_len, lines), default=0) <= width


@given(st.lists(tallies(), min_size=3, max_size=3), st.integers(12, 80), HEIGHTS)
def test_the_panels_of_all_lanes_have_the_same_rows_at_the_same_height(
    counted: list[Tally], width: int, height: int
) -> None:
    figures = [figures_of(tally, Scenario()) for tally in counted]
    shown = []
    for name, tally, own in zip(DEFAULT_DESIGNS, counted, figures, strict=True):
        view = LaneView(
            design=DESIGNS[name],
            phase=Phase.RUNNING,
            ended=tally.ended,
            jobs=max(tally.ended, 1),
            figures=own,
            latency=LATENCY,
            elapsed_s=1.0,
            error="",
        )
        shown.append(labels_of(drawn(view, figures, width, height)))
    assert shown[0] == shown[1] == shown[2]


@pytest.mark.parametrize("width", [10, 12, 14, 24, 40, 80])
@pytest.mark.parametrize("height", [9, 10, 16, 24, 40])
def test_every_lane_of_the_mission_shows_every_figure_whole(width: int, height: int) -> None:
    lanes = mission()
    others = [view.figures for view in lanes]
    for view, small in zip(lanes, ("1,928", "2,000", "2,000"), strict=True):
        lines = drawn(view, others, width, height)
        labels = [label for label in labels_of(lines) if label]
        assert labels == ["finished", "lost", "duplicates", "unproductive", "  calls", "wasted", "  calls"]
        if height < 11:  # nothing is drawn big: the finished jobs can be read off
            assert any(line.startswith("finished"[: width - 6]) and line.endswith(small) for line in texts(lines))


def test_the_stricter_waste_leads_where_something_was_lost() -> None:
    rows = rows_shown([view.figures for view in mission()], [])
    figures = [row.figure for row in rows]
    assert figures.index("unproductive_cost_usd") < figures.index("wasted_cost_usd")
    assert next(row for row in rows if row.figure == "unproductive_cost_usd").lead


@pytest.mark.parametrize("ended", ["lost", "dead_lettered"])
def test_one_job_lost_or_dead_lettered_is_enough(ended: str) -> None:
    figures = [figures_of(Tally(finished=5, model_calls=60), Scenario()), figures_of(Tally(**{ended: 1}), Scenario())]
    shown = [row.figure for row in rows_shown(figures, [])]
    assert ended in shown
    assert shown.index("unproductive_cost_usd") < shown.index("wasted_cost_usd")


def test_where_nothing_is_lost_there_is_one_waste() -> None:
    rows = rows_shown([figures_of(Tally(finished=2000, model_calls=20820), Scenario())], [])
    assert [row.figure for row in rows if row.money] == ["wasted_cost_usd"]


@pytest.mark.parametrize(("width", "height"), [(10, 12), (24, 8), (40, 30)])
def test_a_failed_lane_shows_its_error(width: int, height: int) -> None:
    view = a_view(phase=Phase.FAILED, error="the disk of store.db is full")
    lines = texts(drawn(view, [view.figures], width, height))
    assert " ".join(" ".join(lines).split()) == "failed: the disk of store.db is full"


def test_harm_is_red_and_the_absence_of_harm_is_not() -> None:
    whole, checkpoint, _ = mission()
    rows = rows_shown([whole.figures, checkpoint.figures], [])

    def role_of(view: LaneView, label: str) -> str:
        lines = panel(view, rows, EXPECTED[view.design.name], 24, 9)
        return next(line[1][1] for line in lines if line[0][0].startswith(label))

    assert role_of(whole, "lost") == "bad"
    assert role_of(checkpoint, "lost") == "value"
    assert role_of(whole, "finished") == "good"


# The table of small terminals


@given(st.lists(views(), max_size=3), WIDTHS, HEIGHTS)
def test_a_compact_table_never_exceeds_its_place(lanes: list[LaneView], width: int, height: int) -> None:
    lines = compact_table(lanes, width, height)
    assert len(lines) <= height
    assert max(map(cell_len, lines), default=0) <= width


def test_twenty_by_four_cells_tell_the_lanes_apart_and_what_they_lose() -> None:
    names, done, lost, duplicates = (line.split() for line in compact_table(mission(), 20, 4))
    assert len(set(names)) >= 3
    assert done == ["100", "%", "100", "%", "100", "%"]
    assert lost == ["72", "0", "0"]
    assert duplicates == ["287", "20", "0"]


@given(st.lists(tallies(), min_size=3, max_size=3), st.integers(20, 80))
def test_a_number_in_a_compact_table_is_never_cut(counted: list[Tally], width: int) -> None:
    designs = list(DESIGNS.values())
    lanes = [
        LaneView(
            design=design,
            phase=Phase.RUNNING,
            ended=tally.ended,
            jobs=max(tally.ended, 1),
            figures=figures_of(tally, Scenario()),
            latency=None,
            elapsed_s=1.0,
            error="",
        )
        for design, tally in zip(designs, counted, strict=True)
    ]
    lines = compact_table(lanes, width, 12)
    for line, figure in ((lines[4], "finished"), (lines[-2], "wasted_cost_usd"), (lines[-1], "model_calls")):
        assert line.split()[-3:] == [compact(getattr(view.figures, figure)) for view in lanes]


def test_a_compact_table_shows_the_stricter_waste_where_something_was_lost() -> None:
    cells = "\n".join(compact_table(mission(), 60, 12)).split()
    assert compact(mission()[0].figures.unproductive_cost_usd) in cells


def test_a_failed_lane_is_told_in_a_compact_table() -> None:
    assert "fail" in "\n".join(compact_table([a_view(phase=Phase.FAILED), *mission()[1:]], 20, 4))


# The headline


def test_the_status_is_that_of_the_lane_furthest_behind() -> None:
    lanes = [a_view(phase=Phase.DONE, jobs=100, finished=100), a_view(phase=Phase.QUEUEING, jobs=100)]
    assert status(lanes) == "queueing jobs 50 %"
    assert status(mission()) == "done"
    assert status([*mission(), a_view(phase=Phase.FAILED)]) == "1 of 4 lanes failed"


@pytest.mark.parametrize("width", [27, 40])
def test_every_figure_of_a_panel_has_its_expectation(width: int) -> None:
    lanes = mission()
    expected = list(EXPECTED.values())
    rows = rows_shown([view.figures for view in lanes], expected)
    for view in lanes:
        lines = texts(panel(view, rows, EXPECTED[view.design.name], width, 40))
        assert sum("exp" in line for line in lines) == len(rows)


# Interventions and the alert


def test_the_headline_says_that_theory_does_not_apply_as_soon_as_anybody_has_intervened() -> None:
    views = mission()
    assert "theory" not in headline(views, 7, None)
    views[1] = replace(views[1], interventions=(Intervention("checkpoint", "kill", 3, 1),))
    assert headline(views, 7, None).endswith(" · theory does not apply")


def test_a_lanes_status_tells_its_alert_before_its_interventions_and_those_before_its_log() -> None:
    view = replace(a_view(CHECKPOINT), wal_bytes=1 << 20)
    assert "log 1.0 MiB" in lane_status(view, 40)
    assert lane_status(view, 12) == "running"
    view = replace(view, interventions=(Intervention("checkpoint", "kill", 3, 1),))
    assert lane_status(view, 40) == "intervened · running"
    view = replace(view, alert_at=1234)
    assert lane_status(view, 40) == f"{ODD} resume alert · running"


def test_a_panel_of_which_theory_knows_nothing_expects_nothing() -> None:
    view = a_view(WHOLE_JOB, finished=10, lost=2, model_calls=150)
    rows = rows_shown([view.figures], [])
    for width in (20, 40, 80):
        text = "\n".join("".join(part for part, _ in line) for line in panel(view, rows, None, width, 40))
        assert "exp" not in text
