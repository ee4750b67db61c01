"""The wall: a cell is the same job in every lane, shows the worst of several, and needs no colour to complain."""

import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from durcore.designs import DEFAULT_DESIGNS, find_designs
from durcore.figures import Tally, figures_of
from durcore.model import outcomes
from durcore.scenario import Scenario
from durcore.worker import DEAD_LETTERED, DUPLICATED, FINISHED, LOST, MISSING
from durtui.app import DurtuiApp
from durtui.present import failures, pointed_at, verdict
from durtui.session import Session
from durtui.view import LaneView, Phase
from durtui.wall import (
    DONE,
    DUPLICATE,
    GONE,
    MISSED,
    NOTHING,
    PARKED,
    SIGNS,
    WAITING,
    characters,
    jobs_of,
    rows_needed,
    shades_of,
    told,
    wall,
)
from durtui.widgets.lane_panel import LanePanel

ENDINGS = (FINISHED, MISSING, LOST, DEAD_LETTERED)
bytes_of_boards = st.one_of(st.integers(0, 100), st.sampled_from(ENDINGS)).flatmap(
    lambda stands: st.sampled_from([stands, stands | DUPLICATED])
)


def view(name: str, phase: Phase = Phase.RUNNING, board: bytes = b"", **tally: int) -> LaneView:
    (design,) = find_designs([name])
    figures = figures_of(Tally(**{"model_calls": 1, **tally}), Scenario())
    return LaneView(
        design=design,
        phase=phase,
        ended=0,
        jobs=2000,
        figures=figures,
        latency=None,
        elapsed_s=1.0,
        error="",
        steps=10,
        board=board,
    )


# Cells


def test_more_steps_are_never_darker_and_every_ending_is_told_apart() -> None:
    for steps in (1, 3, 10, 100):
        shades = shades_of(steps)
        shown = [shades[behind] for behind in range(steps + 1)]
        assert shown == sorted(shown, reverse=True)  # a smaller state is a brighter one
        assert shown[0] == WAITING
        assert min(shown) > DONE
    assert [shades_of(10)[each] for each in ENDINGS] == [DONE, MISSED, GONE, PARKED]
    assert shades_of(10)[FINISHED | DUPLICATED] == DUPLICATE
    assert shades_of(10)[LOST | DUPLICATED] == GONE  # the worse of the two


@given(
    board=st.binary(min_size=1, max_size=700),
    width=st.integers(1, 60),
    rows=st.integers(1, 20),
)
def test_a_cell_shows_the_worst_of_the_jobs_that_it_stands_for(board: bytes, width: int, rows: int) -> None:
    cells = b"".join(wall(board, 10, width, rows))
    assert len(cells) == 2 * rows * width
    shades = shades_of(10)
    seen = 0
    for cell, shown in enumerate(cells):
        first, end = jobs_of(cell, len(board), len(cells))
        seen += end - first
        assert shown == max((shades[byte] for byte in board[first:end]), default=NOTHING)
    assert seen == len(board)  # each job in one cell


def test_rows_that_are_asked_for_give_each_job_a_cell() -> None:
    for jobs in (1, 53, 54, 55, 2000):
        rows = rows_needed(jobs, 27)
        assert 2 * 27 * (rows - 1) < jobs <= 2 * 27 * rows


def test_whatever_somebody_would_complain_of_is_told_without_colour() -> None:
    fine = [NOTHING, DONE, *range(DONE + 1, WAITING + 1)]
    for complaint, sign in SIGNS.items():
        for other in fine:
            for pair in ((complaint, other), (other, complaint)):
                ((cell, count),) = characters(bytes(pair[:1]), bytes(pair[1:]))
                assert (cell.sign, cell.complains, count) == (sign, True, 1)
                assert cell.ink != cell.ground
        for worse in SIGNS:
            ((cell, _),) = characters(bytes([complaint]), bytes([worse]))
            assert cell.sign == SIGNS[max(complaint, worse)]
            assert cell.ink != cell.ground  # or the sign could not be seen on it
    assert len(set(SIGNS.values())) == len(SIGNS)
    ((cell, count),) = characters(bytes([DONE] * 5), bytes([WAITING] * 5))
    assert (cell.sign, cell.ink, cell.ground, cell.complains, count) == ("▀", DONE, WAITING, False, 5)


@given(byte=bytes_of_boards)
def test_a_job_in_words_says_what_has_become_of_it(byte: int) -> None:
    text = told(byte, 100)
    assert ("emailed twice" in text) is bool(byte & DUPLICATED)
    stands = byte & ~DUPLICATED
    word = {LOST: "lost", DEAD_LETTERED: "dead-lettered", MISSING: "no email", FINISHED: "finished", 0: "waiting"}
    assert word.get(stands, f"{stands} of 100 steps") in text


# The verdict


@pytest.mark.parametrize(
    ("lanes", "sentence"),
    [
        ([view("whole-job", model_calls=0), view("checkpoint", model_calls=0)], ""),
        ([view("whole-job"), view("checkpoint")], "No design has had a customer-visible failure so far."),
        (
            [view("whole-job", lost=1), view("checkpoint", duplicate_email_jobs=1)],
            "Every design has had customer-visible failures so far.",
        ),
        (
            [view("whole-job", lost=1), view("checkpoint"), view("checkpoint-idempotent", missing_email_jobs=1)],
            "Only Checkpoint per step has had no customer-visible failure so far.",
        ),
        (
            [view("whole-job", lost=1), view("checkpoint"), view("checkpoint-idempotent")],
            "Only Checkpoint per step and + idempotent email have had no customer-visible failure so far.",
        ),
        (
            [view("whole-job", Phase.DONE, lost=1), view("checkpoint", Phase.DONE, dead_lettered=1)],
            "Every design has had customer-visible failures.",
        ),
    ],
)
def test_the_verdict_says_which_designs_customers_have_no_reason_to_complain_of(
    lanes: list[LaneView], sentence: str
) -> None:
    assert verdict(lanes) == sentence


def test_a_cell_that_is_pointed_at_is_named_in_every_design() -> None:
    lanes = [
        view("whole-job", board=bytes([FINISHED, LOST | DUPLICATED, 3])),
        view("checkpoint", board=bytes([FINISHED, FINISHED | DUPLICATED, 0])),
    ]
    assert pointed_at(lanes, 1, 1) == "job 1 · whole job: finished · checkpoint: finished"
    assert pointed_at(lanes, 1, 3) == (
        "jobs 1 to 3, the worst · whole job: lost, emailed twice or more · checkpoint: finished, emailed twice or more"
    )
    assert pointed_at([view("whole-job")], 5, 5) == "job 5 · whole job: not begun"


# From the lane to the screen


def until(condition: Callable[[], bool], within_s: float = 20.0) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("mode", ["raise", "sigkill"])
@pytest.mark.parametrize("interrupted", [False, True])
def test_a_lanes_board_is_the_models_job_by_job_also_after_a_kill(
    mode: str, interrupted: bool, state_home: object
) -> None:
    scenario = Scenario(
        jobs=150, steps=4, transient_rate=0.2, crash_rate=0.2, redeliveries_max=2, crash_point="anywhere",
        crash_mode=mode,  # type: ignore[arg-type]  # one of the two
    )  # fmt: skip
    session = Session(find_designs(DEFAULT_DESIGNS), 5, 500 if interrupted else None)
    try:
        session.start(scenario)
        if interrupted:
            until(lambda: all(view.figures.model_calls > 50 for view in session.look()))
            for lane in session._lanes:
                lane._process.kill()
            until(lambda: all(view.phase is Phase.FAILED for view in session.look()))
            session.set_speed(None)
            session.go_on()
        until(lambda: all(view.phase is Phase.DONE for view in session.look()))
        for seen in session.look():
            model = outcomes(scenario, 5, seen.design)
            for job, byte in enumerate(seen.board):
                ending = (FINISHED, LOST, DEAD_LETTERED)[int(model.ending[job])]
                emails = int(model.emails[job])
                if ending == FINISHED and emails == 0:
                    ending = MISSING
                assert byte == ending | (DUPLICATED if emails >= 2 else 0), (seen.design.name, job + 1)
            complaints = sum(byte != FINISHED for byte in seen.board)
            assert bool(complaints) is bool(failures(seen))
    finally:
        session.close()


async def test_a_presenter_has_the_figures_that_matter_and_the_wall_without_the_sliders(state_home: object) -> None:
    session = Session(find_designs(DEFAULT_DESIGNS), 7, None)
    app = DurtuiApp(session, Scenario(jobs=300, transient_rate=0.1))
    try:
        async with app.run_test(size=(120, 36)) as pilot:
            deadline = time.monotonic() + 20
            while not all(view.phase is Phase.DONE for view in session.look()):
                assert time.monotonic() < deadline
                await pilot.pause(0.05)
            await pilot.pause(0.3)
            panels = list(app.screen.query(LanePanel))
            before = panels[0].wall_rows
            assert before > 0
            await pilot.press("p")
            await pilot.pause(0.3)
            text = ["".join(part.text for part in strip) for strip in app.screen._compositor.render_strips()]
            assert not any("Price a call" in line for line in text)
            assert any(line.startswith(" Only + idempotent email") or "No design" in line for line in text)
            assert {panel.wall_rows for panel in panels} == {panels[0].wall_rows}
            assert sum("duplicates" in line for line in text) == 1
            assert panels[0].jobs_at(2, 1) is None  # the progress bar
            top = next(y for y, line in enumerate(text) if "▀" in line) - 1  # below the headline
            assert panels[0].jobs_at(2, top) == panels[2].jobs_at(2, top)
            assert panels[0].jobs_at(2, top)[0] == 1  # type: ignore[index]  # there is one
            dark = app.theme
            await pilot.press("l")
            assert app.theme != dark
            await pilot.press("l", "p")
            await pilot.pause(0.3)
            assert panels[0].wall_rows == before
    finally:
        session.close()
