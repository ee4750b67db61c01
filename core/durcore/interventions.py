"""Interventions: what a person does to a lane at work, by the ordinal of its attempts, so that it can be done again.

An attempt's ordinal is its place among the lane's model calls, from 1: the ledger's total once it is billed. An attempt
that a kill undoes keeps it, so nothing here depends on when a lane was killed. What comes of an intervention is the
worker's; what theory makes of it is nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Literal, get_args

import msgspec

from durcore.designs import DESIGNS
from durcore.errors import Damaged, Mistake, shown
from durcore.faults import Fate

Kind = Literal["kill", "deploy", "outage"]
KINDS: tuple[Kind, ...] = get_args(Kind)
COUNTS: dict[Kind, int] = {"kill": 1, "deploy": 60, "outage": 500}  # what one key press does
ORDINAL_MAX = 2**53 - 1  # what JSON carries anywhere; no run makes as many calls
INTERVENTIONS_MAX = 1000  # of a lane: each attempt is held against all of them
FILE = "interventions.json"
FILE_BYTES = 1 << 18  # at the most


@dataclass(frozen=True, slots=True, order=True)
class Intervention:
    """One thing done to the lane of one design. Raises Mistake for values out of their range.

    `kill`: the attempt with ordinal `first` crashes. `deploy`: the first `count` deliveries that begin at it or later
    crash in their first attempt. `outage`: `count` attempts from it on fail before any work.
    """

    design: str
    kind: Kind
    first: int
    count: int

    def __post_init__(self) -> None:
        if self.design not in DESIGNS:
            raise Mistake(f"design(={shown(self.design)}) of an intervention must be one of {', '.join(DESIGNS)}")
        if self.kind not in COUNTS:
            raise Mistake(f"kind(={shown(self.kind)}) of an intervention must be one of {', '.join(COUNTS)}")
        for name, value in (("first", self.first), ("count", self.count)):
            if type(value) is not int or not 1 <= value <= ORDINAL_MAX:
                raise Mistake(f"{name}(={shown(value)}) of an intervention must be between 1 and {ORDINAL_MAX:,}")
        if self.kind == "kill" and self.count != 1:
            raise Mistake(f"count(={shown(self.count)}) of a kill must be 1: a worker dies once")

    @classmethod
    def parse(cls, word: str) -> Intervention:
        """The intervention that `DESIGN:KIND:FIRST:COUNT` says. Raises Mistake."""
        design, *rest = word.split(":")
        if len(rest) != 3 or not all(number.isascii() and number.isdigit() for number in rest[1:]):
            raise Mistake(f"intervention(={shown(word)}) must be DESIGN:KIND:FIRST:COUNT, as checkpoint:outage:417:500")
        if max(map(len, rest[1:])) > len(str(ORDINAL_MAX)):
            raise Mistake(f"intervention(={shown(word)}) must have numbers of at most {ORDINAL_MAX:,}")
        return cls(design, rest[0], int(rest[1]), int(rest[2]))  # type: ignore[arg-type]  # refused where it is no kind

    def __str__(self) -> str:
        return f"{self.design}:{self.kind}:{self.first}:{self.count}"


class Disruptions:
    """What is done to one lane, asked attempt by attempt.

    All that must be known of the past is two ordinals: that of the first attempt of the newest delivery, and the
    `reach` of its deploys, below which a delivery that begins is cut. Since a delivery that is cut makes one call,
    those that a deploy cuts begin at consecutive ordinals.
    """

    __slots__ = ("_deploys", "_kills", "_outages")

    def __init__(self, interventions: Iterable[Intervention]) -> None:
        every = tuple(interventions)
        self._kills = frozenset(each.first for each in every if each.kind == "kill")
        self._deploys = tuple((each.first, each.count) for each in every if each.kind == "deploy")
        self._outages = tuple((each.first, each.first + each.count) for each in every if each.kind == "outage")

    def reach(self, ordinal: int, began: int, reach: int) -> int:
        """How far deploys reach once a delivery begins at `ordinal`, where the one before it had begun at `began`.

        Asked again for the same delivery, with the reach that it gave, it gives the same.
        """
        for first, count in self._deploys:
            if began < first <= ordinal:
                reach = max(reach, ordinal + count)
        return reach

    def fate(self, ordinal: int, drawn: Fate, *, cut: bool) -> Fate:
        """What becomes of an attempt: a kill or a deploy's `cut` before an outage, an outage before what was drawn."""
        if cut or ordinal in self._kills:
            return Fate.CRASH
        for first, end in self._outages:
            if first <= ordinal < end:
                return Fate.TRANSIENT
        return drawn


def ordered(interventions: Iterable[Intervention]) -> tuple[Intervention, ...]:
    """Interventions by design and ordinal, each once: in which order they were asked for makes no difference."""
    places = {name: place for place, name in enumerate(DESIGNS)}
    return tuple(sorted(set(interventions), key=lambda each: (places[each.design], each.first, each.kind, each.count)))


def pressed(made: tuple[Intervention, ...], design: str, kinds: Iterable[Kind], first: int) -> tuple[Intervention, ...]:
    """What was made, and with it what was asked for by key from the `first` attempt on, as far as a lane takes it."""
    return (*made, *(Intervention(design, kind, first, COUNTS[kind]) for kind in kinds))[:INTERVENTIONS_MAX]


def applied(interventions: Iterable[Intervention], calls: int) -> tuple[Intervention, ...]:
    """Those whose first attempt is among the lane's `calls`: the others change nothing."""
    return ordered(each for each in interventions if each.first <= calls)


def check_interventions(interventions: Sequence[Intervention], designs: Iterable[str]) -> tuple[Intervention, ...]:
    """Interventions as a run takes them. Raises Mistake for one in a design that it does not run, or for too many."""
    run = set(designs)
    for each in interventions:
        if each.design not in run:
            raise Mistake(f"intervention(={each}) must be in a design that is run: {', '.join(run)}")
    if len(interventions) > INTERVENTIONS_MAX:
        raise Mistake(f"interventions must be at most {INTERVENTIONS_MAX:,}, and these are {len(interventions):,}")
    return ordered(interventions)


class _File(msgspec.Struct, frozen=True, kw_only=True):
    """What a lane's directory remembers. `check` is of the rest: a file that was written over is no list of its."""

    interventions: list[Intervention]
    check: str

    def sum(self) -> str:
        return sha256(msgspec.json.encode(self.interventions)).hexdigest()


def write_interventions(directory: Path, interventions: Iterable[Intervention]) -> tuple[Intervention, ...]:
    """Leave the interventions of a lane in its directory, on the disk when this returns; return them in order."""
    kept = ordered(interventions)
    file = _File(interventions=list(kept), check="")
    draft = directory / f"{FILE}.new"
    with draft.open("wb") as out:
        out.write(msgspec.json.encode(msgspec.structs.replace(file, check=file.sum())))
        out.flush()
        os.fsync(out.fileno())
    draft.replace(directory / FILE)
    return kept


def read_interventions(directory: Path, design: str) -> tuple[Intervention, ...]:
    """The interventions that a lane's directory remembers, none where it has none. Raises Damaged."""
    path = directory / FILE
    try:
        with path.open("rb") as file:
            found = msgspec.json.decode(file.read(FILE_BYTES), type=_File)
    except FileNotFoundError:
        return ()
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError, Mistake):
        raise Damaged(f"{path} is not a list of interventions: it was written over") from None
    strange = any(each.design != design for each in found.interventions)
    if found.check != found.sum() or strange or len(found.interventions) > INTERVENTIONS_MAX:
        raise Damaged(f"{path} is not what this lane has written: it was written over")
    return ordered(found.interventions)
