"""The page that a lane shows itself on: what is published is read, whole, whoever interrupts whom."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from durcore.errors import LaneFailed
from durcore.figures import TALLY_FIELDS, Tally
from durcore.live import FILE_WORDS, LATENCY_AT, SEQUENCE_AT, STATE_AT, LaneState, LiveFigures, Progress


def uniform(value: int) -> Tally:
    """A tally in which half of another would be seen at once."""
    return Tally(**dict.fromkeys(TALLY_FIELDS, value))


def look(path: Path) -> LiveFigures:
    live = LiveFigures.look(path)
    assert live is not None
    return live


@given(
    state=st.sampled_from(LaneState),
    queued=st.integers(0, 10_000_000),
    elapsed_s=st.floats(0, 1e6),
    counts=st.lists(st.integers(0, 2**63), min_size=len(TALLY_FIELDS), max_size=len(TALLY_FIELDS)),
)
@settings(deadline=None, max_examples=60)
def test_what_is_published_is_read(
    tmp_path_factory: pytest.TempPathFactory, state: LaneState, queued: int, elapsed_s: float, counts: list[int]
) -> None:
    path = tmp_path_factory.mktemp("live") / "live"
    lane = LiveFigures.create(path)
    reader = look(path)
    tally = Tally(**dict(zip(TALLY_FIELDS, counts, strict=True)))
    lane.publish(state, queued, elapsed_s, tally)
    progress = reader.read()
    assert (progress.state, progress.queued, progress.tally) == (state, queued, tally)
    assert progress.elapsed_s == pytest.approx(elapsed_s, abs=1e-8)
    reader.close()
    lane.close()


def test_a_lane_that_has_published_nothing_is_starting_with_nothing_done(tmp_path: Path) -> None:
    lane = LiveFigures.create(tmp_path / "live")
    assert look(tmp_path / "live").read() == Progress(state=LaneState.STARTING, queued=0, elapsed_s=0.0, tally=Tally())
    lane.close()


def test_a_page_that_is_not_there_yet_or_not_whole_yet_is_none(tmp_path: Path) -> None:
    path = tmp_path / "live"
    assert LiveFigures.look(path) is None
    path.write_bytes(b"")
    assert LiveFigures.look(path) is None
    path.write_bytes(bytes(FILE_WORDS * 8 - 1))
    assert LiveFigures.look(path) is None


def test_a_page_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "live"
    path.write_bytes(b"x" * FILE_WORDS * 8)
    with pytest.raises(LaneFailed, match="is not the live figures of a lane"):
        LiveFigures.look(path)


def test_a_reader_cannot_write_on_the_page(tmp_path: Path) -> None:
    lane = LiveFigures.create(tmp_path / "live")
    reader = look(tmp_path / "live")
    with pytest.raises(TypeError):
        reader.publish(LaneState.DONE, 1, 1.0, Tally())
    with pytest.raises(TypeError):
        reader.writes.record(1)
    assert reader.read().tally == Tally()
    lane.close()


def test_a_reader_sees_the_latencies_that_the_lane_records(tmp_path: Path) -> None:
    lane = LiveFigures.create(tmp_path / "live")
    reader = look(tmp_path / "live")
    assert reader.latency() is None
    lane.writes.record(4_000)
    lane.writes.record(6_000)
    latency = reader.latency()
    assert latency is not None
    assert (latency.count, latency.mean, latency.max) == (2, 5.0, 6.0)
    assert reader.read().tally == Tally()  # the latencies stand beside the tally, not in it
    lane.close()


class Interrupted:
    """A reader's words, with something else happening before each of its looks at them."""

    def __init__(self, words: Any, between: Callable[[], None]) -> None:
        self._words = words
        self._between = between

    def __getitem__(self, key: int | slice) -> Any:
        self._between()
        return self._words[key]


@pytest.mark.parametrize("publications", range(8))
def test_a_reader_overtaken_by_publications_reads_one_of_them_whole(tmp_path: Path, publications: int) -> None:
    lane = LiveFigures.create(tmp_path / "live")
    reader = look(tmp_path / "live")
    lane.publish(LaneState.RUNNING, 1, 1.0, uniform(1))
    left = list(range(2, 2 + publications))

    def publish() -> None:
        if left:
            value = left.pop(0)
            lane.publish(LaneState.RUNNING, value, float(value), uniform(value))

    reader._words = Interrupted(reader._words, publish)  # type: ignore[assignment]  # words that tell when they are read
    progress = reader.read()
    assert progress.tally == uniform(progress.queued)
    assert progress.elapsed_s == progress.queued
    assert not left  # it looked again until it was left in peace


@pytest.mark.parametrize("phase", range(4))
@pytest.mark.parametrize("half_words", range(1, LATENCY_AT - STATE_AT))
def test_a_reader_during_a_publication_never_sees_half_of_it(tmp_path: Path, half_words: int, phase: int) -> None:
    """The lane's four moves (odd, half of the words, the other half, even) fall one between two looks each."""
    lane = LiveFigures.create(tmp_path / "live")
    reader = look(tmp_path / "live")
    lane.publish(LaneState.RUNNING, 1, 1.0, uniform(1))
    old = lane._words[STATE_AT:LATENCY_AT].tolist()
    lane.publish(LaneState.COUNTING, 2, 2.0, uniform(2))
    new = lane._words[STATE_AT:LATENCY_AT].tolist()
    lane.publish(LaneState.RUNNING, 1, 1.0, uniform(1))
    assert lane._words[STATE_AT:LATENCY_AT].tolist() == old

    def turn() -> None:
        lane._words[SEQUENCE_AT] += 1

    def write(first: int, last: int) -> None:
        for at in range(first, last):
            lane._words[STATE_AT + at] = new[at]

    moves: list[Callable[[], None]] = [
        turn,
        lambda: write(0, half_words),
        lambda: write(half_words, len(new)),
        turn,
    ]
    for move in moves[:phase]:
        move()
    rest = moves[phase:]

    def make_a_move() -> None:
        if rest:
            rest.pop(0)()

    reader._words = Interrupted(reader._words, make_a_move)  # type: ignore[assignment]  # words that tell when they are read
    progress = reader.read()
    assert progress in (
        Progress(state=LaneState.RUNNING, queued=1, elapsed_s=1.0, tally=uniform(1)),
        Progress(state=LaneState.COUNTING, queued=2, elapsed_s=2.0, tally=uniform(2)),
    )
    lane._words.release()


def test_a_lane_that_died_half_way_through_a_publication_can_still_be_looked_at(tmp_path: Path) -> None:
    lane = LiveFigures.create(tmp_path / "live")
    lane.publish(LaneState.RUNNING, 1, 1.0, uniform(1))
    lane._words[SEQUENCE_AT] += 1
    assert look(tmp_path / "live").read().tally == uniform(1)
