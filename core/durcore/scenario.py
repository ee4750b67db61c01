"""Scenario: what to run. Every parameter is declared here once; flags, files, sliders and exports derive from it."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

from durcore.errors import InvalidScenario, NotYet, shown

CrashPoint = Literal["before-work", "after-key", "after-work", "after-checkpoint", "anywhere"]
Synchronous = Literal["off", "normal", "full"]
Locking = Literal["normal", "exclusive"]
CrashMode = Literal["raise", "sigkill"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of a scenario as a person meets it: its name, kind, range and meaning, never a value."""

    name: str
    kind: type[int] | type[float] | type[str]
    default: int | float | str | None
    meaning: str
    low: float = -math.inf
    high: float = math.inf
    choices: tuple[str, ...] = ()

    @property
    def flag(self) -> str:
        """The parameter on the command line: `--transient-rate`."""
        return "--" + self.name.replace("_", "-")

    @property
    def rule(self) -> str:
        """What a value must be, as an error message says it."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        noun = "a whole number" if self.kind is int else "a number"
        if self.high == math.inf:
            return f"{noun} of at least {self.low:,}, and finite"
        return f"{noun} between {self.low:,} and {self.high:,}"

    def parse(self, text: str) -> int | float | str:
        """The value that `text` writes, from a command line or an environment. Raises InvalidScenario for another."""
        if self.kind is str:
            return text
        try:
            return self.kind(text)
        except ValueError:
            raise InvalidScenario(f"{self.name}(={shown(text)}) must be {self.rule}") from None

    def check(self, value: object) -> None:
        """Raise InvalidScenario with name, value and rule unless `value` is one that this parameter may have."""
        if self.choices:
            ok = value in self.choices
        elif isinstance(value, bool) or not isinstance(value, int if self.kind is int else (int, float)):
            ok = False
        else:
            ok = self.low <= value <= min(self.high, sys.float_info.max)  # neither infinite nor NaN
        if not ok:
            raise InvalidScenario(f"{self.name}(={shown(value)}) must be {self.rule}")


def _count(default: int | None, low: int, high: int, meaning: str) -> Any:
    return field(default=default, metadata={"kind": int, "low": low, "high": high, "meaning": meaning})


def _real(default: float, low: float, high: float, meaning: str) -> Any:
    return field(default=default, metadata={"kind": float, "low": low, "high": high, "meaning": meaning})


def _choice(default: str, kind: Any, meaning: str) -> Any:
    return field(default=default, metadata={"kind": str, "choices": get_args(kind), "meaning": meaning})


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """The parameters of a run: the lab's world, its faults and its store. Holds no seed and no design.

    Raises InvalidScenario, naming field, value and rule, for a value out of range, and NotYet for one that the
    contract knows and this version does not run.
    """

    jobs: int = _count(2000, 1, 10_000_000, "jobs to run, numbered from 1")
    steps: int = _count(10, 1, 100, "steps in a job, one model call an attempt")
    email_step: int | None = _count(
        None, 1, 100, "the step whose work sends the email (unset: step 6, or the last of a shorter job)"
    )
    transient_rate: float = _real(0.03, 0, 1, "probability that an attempt fails before any work")
    crash_rate: float = _real(0.01, 0, 1, "probability that the worker dies in an attempt")
    crash_point: CrashPoint = _choice("after-work", CrashPoint, "where in the attempt the worker dies")
    poison_rate: float = _real(0.0, 0, 1, "probability that one step of a job fails until a person fixes its input")
    cost_per_call_usd: float = _real(0.0102, 0, math.inf, "price of one model call, US dollars")
    job_attempts: int = _count(3, 1, 100, "deliveries that whole-job retry is allowed")
    step_attempts: int = _count(3, 1, 100, "tries at a step within one delivery, in the checkpoint designs")
    redeliveries_max: int = _count(10, 0, 1000, "redeliveries after the first delivery, in the checkpoint designs")
    output_bytes: int = _count(16, 0, 1_048_576, "size of the output that a checkpoint stores, bytes")
    synchronous: Synchronous = _choice(
        "normal",
        Synchronous,
        "SQLite's synchronous setting (only a power loss tells off, normal and full apart)",
    )
    locking: Locking = _choice("normal", Locking, "SQLite's locking mode (exclusive: nobody else can open the store)")
    crash_mode: CrashMode = _choice(
        "raise", CrashMode, "a crash unwinds the worker in its process, or really kills the worker process"
    )

    def __post_init__(self) -> None:
        for parameter in PARAMETERS.values():
            value = getattr(self, parameter.name)
            if value is None and parameter.default is None:
                continue
            parameter.check(value)
        if self.email_step is not None and self.email_step > self.steps:
            raise InvalidScenario(f"email_step(={self.email_step}) must be between 1 and steps(={self.steps})")
        if self.transient_rate + self.crash_rate > 1:
            raise InvalidScenario(
                f"transient_rate(={self.transient_rate}) + crash_rate(={self.crash_rate}) must be at most 1"
            )
        calls = self.jobs * self.steps * max(self.job_attempts, self.step_attempts * (1 + self.redeliveries_max))
        if not math.isfinite(calls * self.cost_per_call_usd):
            raise InvalidScenario(
                f"cost_per_call_usd(={self.cost_per_call_usd}) must be small enough for {calls:,} calls to have a price"
            )
        self._refuse_what_is_not_built()

    def _refuse_what_is_not_built(self) -> None:
        if self.poison_rate > 0:
            raise NotYet(f"poison_rate(={self.poison_rate}) is not yet built; this version runs 0")

    @property
    def effect_step(self) -> int:
        """The step that sends the email: `email_step`, or where that is unset min(6, steps)."""
        return min(6, self.steps) if self.email_step is None else self.email_step

    def resolved(self) -> dict[str, Any]:
        """Every field by name with `email_step` resolved, as an export shows it."""
        values = {name: getattr(self, name) for name in PARAMETERS}
        return values | {"email_step": self.effect_step}

    def flags(self, *, swept: str | None = None) -> list[str]:
        """The command-line words that give this scenario, every field of it but the one that is `swept`.

        None is left to a default: the reader's own settings, or a later version, may have another. Only under a sweep
        an email step that nobody set is left out, since it is derived anew at each point.
        """
        values = self.resolved()
        if swept is not None:
            del values[swept]
            if self.email_step is None:
                values.pop("email_step", None)
        return [word for name, value in values.items() for word in (PARAMETERS[name].flag, str(value))]

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Scenario:
        """A scenario from named values, as a file or a snapshot holds them. An unknown name raises InvalidScenario."""
        for name in values:
            if name not in PARAMETERS:
                raise InvalidScenario(f"{shown(name)} is not a parameter; there are {', '.join(PARAMETERS)}")
        return cls(**values)


PARAMETERS: dict[str, Parameter] = {
    f.name: Parameter(name=f.name, default=f.default, **f.metadata)  # type: ignore[arg-type]  # a field's default
    for f in fields(Scenario)
}


SEED = Parameter(name="seed", kind=int, default=7, meaning="seed of the first replication", low=0, high=2**63 - 1)


def check_seed(seed: int) -> int:
    """Return `seed`, or raise InvalidScenario where it is none."""
    SEED.check(seed)
    return seed
