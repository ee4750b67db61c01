"""The page that a lane shows itself on: what is published is read, whole, whoever interrupts whom or cuts it short."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from durcore.errors import printable
from durcore.figures import TALLY_FIELDS, Tally
from durcore.live import (
    FILE_BYTES,
    LAST_WORDS_BYTES,
    LATENCY_AT,
    SEQUENCE_AT,
    STATE_AT,
    WORDS_AT,
    LaneState,
    LiveFigures,
    LiveLook,
    Progress,
)

NOTHING_DONE = Progress(state=LaneState.STARTING, queued=0, elapsed_s=0.0, workers_killed=0, tally=Tally())
HOSTILE = "\x1b]0;owned\x07\x1b[2J\n\x9b31m"


def uniform(value: int) -> Tally:
    """A tally in which half of another would be seen at once."""
    return Tally(**dict.fromkeys(TALLY_FIELDS, value))


@pytest.fixture
def page(tmp_path: Path) -> Path:
    return tmp_path / "live"


def look_at(page: Path, kind: type[LiveLook] = LiveLook) -> LiveLook:
    reader = kind.open(page)
    assert reader is not None
    return reader


def seen(page: Path) -> Progress:
    reader = look_at(page)
    progress = reader.read()
    reader.close()
    assert progress is not None
    return progress


@given(
    state=st.sampled_from(LaneState),
    queued=st.integers(0, 10_000_000),
    elapsed_s=st.floats(0, 1e6),
    killed=st.integers(0, 2**40),
    counts=st.lists(st.integers(0, 2**63), min_size=len(TALLY_FIELDS), max_size=len(TALLY_FIELDS)),
)
@settings(deadline=None, max_examples=60)
def test_what_is_published_is_read(
    tmp_path_factory: pytest.TempPathFactory,
    state: LaneState,
    queued: int,
    elapsed_s: float,
    killed: int,
    counts: list[int],
) -> None:
    page = tmp_path_factory.mktemp("live") / "live"
    lane = LiveFigures.create(page)
    tally = Tally(**dict(zip(TALLY_FIELDS, counts, strict=True)))
    lane.publish(state, queued, elapsed_s, killed, tally)
    progress = seen(page)
    assert (progress.state, progress.queued, progress.workers_killed, progress.tally) == (state, queued, killed, tally)
    assert progress.elapsed_s == pytest.approx(elapsed_s, abs=1e-8)


def test_a_lane_that_has_published_nothing_is_starting_with_nothing_done(page: Path) -> None:
    LiveFigures.create(page)
    assert seen(page) == NOTHING_DONE


def test_a_page_is_never_made_over_another(page: Path) -> None:
    LiveFigures.create(page).publish(LaneState.RUNNING, 1, 1.0, 1, uniform(1))
    with pytest.raises(FileExistsError):
        LiveFigures.create(page)
    assert seen(page).tally == uniform(1)


def test_a_page_has_its_full_size_and_real_room_at_once(page: Path) -> None:
    LiveFigures.create(page)
    assert page.stat().st_size == FILE_BYTES
    assert page.stat().st_blocks * 512 >= FILE_BYTES  # no hole that a full disk would turn into a SIGBUS


@pytest.mark.parametrize(
    "content",
    [b"", bytes(FILE_BYTES - 1), bytes(FILE_BYTES), b"x" * FILE_BYTES],
    ids=["empty", "short", "zeros", "noise"],
)
def test_what_is_no_page_is_none_and_a_lane_makes_a_new_one_in_its_place(page: Path, content: bytes) -> None:
    page.write_bytes(content)
    assert LiveLook.open(page) is None
    LiveFigures.reopen(page)
    assert seen(page) == NOTHING_DONE


@pytest.mark.parametrize("change", [lambda page: page[:-1], lambda page: page + b"\0"], ids=["short", "long"])
def test_a_page_of_another_size_is_none(page: Path, change: Callable[[bytes], bytes]) -> None:
    LiveFigures.create(page).publish(LaneState.RUNNING, 1, 1.0, 1, uniform(1))
    page.write_bytes(change(page.read_bytes()))
    assert LiveLook.open(page) is None


def test_a_page_that_is_not_there_or_is_a_link_or_a_folder_is_none(page: Path) -> None:
    assert LiveLook.open(page) is None
    elsewhere = page.with_name("elsewhere")
    LiveFigures.create(elsewhere)
    page.symlink_to(elsewhere)
    assert LiveLook.open(page) is None
    page.unlink()
    page.mkdir()
    assert LiveLook.open(page) is None


def test_a_look_that_is_refused_leaves_no_file_open(page: Path) -> None:
    page.write_bytes(b"x" * FILE_BYTES)
    before = os.open(page, os.O_RDONLY)
    os.close(before)
    assert LiveLook.open(page) is None
    after = os.open(page, os.O_RDONLY)  # the system gives the lowest number that is free
    os.close(after)
    assert after == before


def test_what_a_page_cut_short_under_its_reader_has_lost_is_none_and_kills_nobody(page: Path) -> None:
    lane = LiveFigures.create(page)
    lane.publish(LaneState.RUNNING, 1, 1.0, 1, uniform(1))
    lane.writes.record(1000)
    lane.say("the disk is full")
    reader = look_at(page)

    def there() -> tuple[bool, bool, bool]:
        return reader.read() is not None, reader.latency() is not None, reader.last_words() != ""

    assert there() == (True, True, True)
    for size, expected in (
        (FILE_BYTES - 1, (True, True, False)),
        (WORDS_AT * 8 - 1, (True, False, False)),
        (LATENCY_AT * 8 - 1, (False, False, False)),
        (STATE_AT * 8, (False, False, False)),
        (0, (False, False, False)),
    ):
        os.truncate(page, size)
        assert there() == expected
    reader.close()


@pytest.mark.parametrize("state", [len(LaneState), 2**64 - 1])
def test_a_state_that_no_lane_publishes_is_none(page: Path, state: int) -> None:
    lane = LiveFigures.create(page)
    reader = look_at(page)
    lane._words[STATE_AT] = state
    assert reader.read() is None
    reader.close()


def test_a_look_changes_no_byte_of_the_page(page: Path) -> None:
    lane = LiveFigures.create(page)
    lane.publish(LaneState.RUNNING, 1, 1.0, 1, uniform(1))
    before = page.read_bytes()
    reader = look_at(page)
    reader.read()
    reader.latency()
    reader.last_words()
    reader.close()
    assert page.read_bytes() == before


def test_a_reader_sees_the_latencies_that_the_lane_records(page: Path) -> None:
    lane = LiveFigures.create(page)
    reader = look_at(page)
    assert reader.latency() is None
    lane.writes.record(4_000)
    lane.writes.record(6_000)
    latency = reader.latency()
    assert latency is not None
    assert (latency.count, latency.mean, latency.max) == (2, 5.0, 6.0)
    assert lane.latency() == latency
    assert seen(page) == NOTHING_DONE  # the latencies stand beside the tally, not in it
    reader.close()


# Last words


def test_a_lane_that_fails_leaves_its_words(page: Path) -> None:
    lane = LiveFigures.create(page)
    reader = look_at(page)
    assert reader.last_words() == ""
    lane.say("store.db: the disk is full — free some room")
    assert reader.last_words() == "store.db: the disk is full — free some room"
    reader.close()


@pytest.mark.parametrize("words", [HOSTILE, "x" * 5000, "é" * 5000, HOSTILE * 500, ""], ids=lambda words: words[:9])
def test_last_words_are_one_printable_line_however_long_and_touch_nothing_else(page: Path, words: str) -> None:
    lane = LiveFigures.create(page)
    lane.publish(LaneState.RUNNING, 1, 1.0, 1, uniform(1))
    lane.say(words)
    reader = look_at(page)
    said = reader.last_words()
    assert said.isprintable()
    assert said.startswith(printable(words)[:100])
    assert page.stat().st_size == FILE_BYTES
    assert reader.read() == Progress(
        state=LaneState.RUNNING, queued=1, elapsed_s=1.0, workers_killed=1, tally=uniform(1)
    )
    reader.close()


def test_shorter_words_leave_nothing_of_longer_ones(page: Path) -> None:
    lane = LiveFigures.create(page)
    lane.say("x" * LAST_WORDS_BYTES)
    lane.say("short")
    reader = look_at(page)
    assert reader.last_words() == "short"
    reader.close()


# A lane's next life


def test_the_next_life_takes_over_timings_and_not_the_last_words(page: Path) -> None:
    lane = LiveFigures.create(page)
    lane.writes.record(4_000)
    lane.publish(LaneState.RUNNING, 9, 12.5, 3, uniform(7))
    lane.say("the disk is full")
    again = LiveFigures.reopen(page)
    assert again.timings() == (12.5, 3)
    latency = again.latency()
    assert latency is not None
    assert (latency.count, latency.mean) == (1, 4.0)
    reader = look_at(page)
    assert reader.last_words() == ""
    reader.close()


def test_restarted_timings_forget_everything_but_that_a_lane_is_there(page: Path) -> None:
    lane = LiveFigures.create(page)
    lane.writes.record(4_000)
    lane.publish(LaneState.RUNNING, 9, 12.5, 3, uniform(7))
    lane.restart_timings()
    assert (lane.timings(), lane.latency()) == ((0.0, 0), None)
    lane.writes.record(1_000)
    lane.publish(LaneState.RUNNING, 9, 1.0, 0, uniform(8))
    assert seen(page).tally == uniform(8)
    latency = lane.latency()
    assert latency is not None
    assert latency.count == 1


def test_where_no_page_is_the_next_life_makes_one(page: Path) -> None:
    lane = LiveFigures.reopen(page)
    assert (lane.timings(), lane.latency()) == ((0.0, 0), None)
    lane.publish(LaneState.RUNNING, 1, 1.0, 0, uniform(1))
    assert seen(page).tally == uniform(1)


def test_a_life_that_died_half_way_through_a_publication_can_be_looked_at_and_followed_by_another(page: Path) -> None:
    lane = LiveFigures.create(page)
    lane.publish(LaneState.RUNNING, 1, 1.0, 0, uniform(1))
    lane._words[SEQUENCE_AT] += 1
    assert seen(page).tally == uniform(1)
    again = LiveFigures.reopen(page)
    again.publish(LaneState.RUNNING, 2, 2.0, 0, uniform(2))
    assert again._words[SEQUENCE_AT] % 2 == 0  # or readers would take each publication for half of one
    assert seen(page).tally == uniform(2)


# Interrupted looks


class Interrupted(LiveLook):
    """A look with something else happening before each of its reads."""

    between: Callable[[], None] = staticmethod(lambda: None)

    def _words(self, first: int, count: int) -> list[int]:
        self.between()
        return super()._words(first, count)


def interrupted(page: Path, between: Callable[[], None]) -> Progress:
    reader = look_at(page, Interrupted)
    assert isinstance(reader, Interrupted)
    reader.between = between
    progress = reader.read()
    reader.close()
    assert progress is not None
    return progress


@pytest.mark.parametrize("publications", range(8))
def test_a_reader_overtaken_by_publications_reads_one_of_them_whole(page: Path, publications: int) -> None:
    lane = LiveFigures.create(page)
    lane.publish(LaneState.RUNNING, 1, 1.0, 1, uniform(1))
    left = list(range(2, 2 + publications))

    def publish() -> None:
        if left:
            value = left.pop(0)
            lane.publish(LaneState.RUNNING, value, float(value), value, uniform(value))

    progress = interrupted(page, publish)
    assert progress.tally == uniform(progress.queued)
    assert progress.elapsed_s == progress.queued == progress.workers_killed
    assert not left  # it looked again until it was left in peace


@pytest.mark.parametrize("phase", range(4))
@pytest.mark.parametrize("half_words", range(1, LATENCY_AT - STATE_AT))
def test_a_reader_during_a_publication_never_sees_half_of_it(page: Path, half_words: int, phase: int) -> None:
    """The lane's four moves (odd, half of the words, the other half, even) fall one between two looks each."""
    lane = LiveFigures.create(page)
    lane.publish(LaneState.RUNNING, 1, 1.0, 1, uniform(1))
    old = lane._words[STATE_AT:LATENCY_AT].tolist()
    lane.publish(LaneState.COUNTING, 2, 2.0, 2, uniform(2))
    new = lane._words[STATE_AT:LATENCY_AT].tolist()
    lane.publish(LaneState.RUNNING, 1, 1.0, 1, uniform(1))
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

    assert interrupted(page, make_a_move) in (
        Progress(state=LaneState.RUNNING, queued=1, elapsed_s=1.0, workers_killed=1, tally=uniform(1)),
        Progress(state=LaneState.COUNTING, queued=2, elapsed_s=2.0, workers_killed=2, tally=uniform(2)),
    )
