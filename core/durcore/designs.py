"""The designs as small frozen values: how often a job is delivered and a step tried, what is saved, what is guarded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from durcore.errors import Mistake, shown
from durcore.scenario import Scenario

Guard = Literal["none", "key"]
Ending = Literal["finished", "redelivered", "lost", "dead_lettered"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """How a design treats failure, not how often failure comes: the caps are the scenario's."""

    name: str
    title: str
    short: str  # where there is no room for the title
    checkpoints: bool
    guard: Guard

    def policy(self, scenario: Scenario) -> Policy:
        """This design under the caps of `scenario`."""
        return Policy(
            steps=scenario.steps,
            effect_step=scenario.effect_step,
            deliveries=1 + scenario.redeliveries_max if self.checkpoints else scenario.job_attempts,
            tries=scenario.step_attempts if self.checkpoints else 1,
            checkpoints=self.checkpoints,
            guard=self.guard,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What the runner follows: a design with its caps and its job's shape. `effect_step` 0: no step has an effect."""

    steps: int
    effect_step: int
    deliveries: int
    tries: int
    checkpoints: bool
    guard: Guard

    def ending(self, *, completed: bool, delivery: int) -> Ending:
        """What becomes of a job after its `delivery`-th delivery (from 1), which did or did not complete it."""
        if completed:
            return "finished"
        if delivery < self.deliveries:
            return "redelivered"
        return "dead_lettered" if self.checkpoints else "lost"


WHOLE_JOB = Design(name="whole-job", title="Whole-job retry", short="whole job", checkpoints=False, guard="none")
CHECKPOINT = Design(name="checkpoint", title="Checkpoint per step", short="checkpoint", checkpoints=True, guard="none")
CHECKPOINT_IDEMPOTENT = Design(
    name="checkpoint-idempotent", title="+ idempotent email", short="+ key", checkpoints=True, guard="key"
)

DESIGNS: dict[str, Design] = {d.name: d for d in (WHOLE_JOB, CHECKPOINT, CHECKPOINT_IDEMPOTENT)}
DEFAULT_DESIGNS: tuple[str, ...] = tuple(DESIGNS)


def find_designs(designs: Iterable[Design | str]) -> tuple[Design, ...]:
    """These designs, given themselves or by name, in this order and each once. An unknown name raises Mistake."""
    found: dict[str, Design] = {}
    for design in designs:
        if isinstance(design, str):
            if design not in DESIGNS:
                raise Mistake(f"design(={shown(design)}) must be one of {', '.join(DESIGNS)}")
            design = DESIGNS[design]  # the value that was named
        found[design.name] = design
    return tuple(found.values())
