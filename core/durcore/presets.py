"""Presets: scenarios with a name, each with what to watch for. What goes before a preset is for its reader to say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from durcore.errors import Mistake, shown
from durcore.scenario import PARAMETERS, Scenario

HOW_IT_IS_RUN = ("output_bytes", "synchronous", "locking", "crash_mode")


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A scenario under a name, as what it changes of the mission's lab; it says nothing of the other fields.

    `watch` is one sentence that holds for the exact expectation of `scenario`, and for no other.
    """

    name: str
    title: str
    watch: str
    changes: tuple[tuple[str, int | float], ...] = ()
    email_last: bool = False  # wherever the last step is: a number would stay where it was when the job grows

    def under(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The values of this preset with `values`, by a parameter's name, before its own."""
        merged = dict(self.changes) | dict(values)
        if self.email_last and "email_step" not in merged:
            merged["email_step"] = merged.get("steps", PARAMETERS["steps"].default)
        return merged

    def over(self, present: Scenario) -> Scenario:
        """The scenario of this preset with the store and the crashes of the `present` one, which change no figure."""
        return replace(self.scenario, **{name: getattr(present, name) for name in HOW_IT_IS_RUN})

    @property
    def scenario(self) -> Scenario:
        """The whole scenario, where nothing else is asked for."""
        return Scenario.from_values(self.under({}))


MISSION = Preset(
    name="mission",
    title="Mission lab",
    watch="Whole-job retry loses 75 of 2,000 jobs and sends 283 customers a duplicate; checkpoints lose none and still"
    " send 21; the idempotent email has neither.",
)
LONG_AGENT = Preset(
    name="long-agent",
    title="Long agent (20 steps)",
    watch="With twice the steps whole-job retry loses 347 jobs where it lost 75, while the waste of the checkpoint"
    " designs only doubles.",
    changes=(("steps", 20),),
)
EMAIL_LAST = Preset(
    name="email-last",
    title="Email last (trap 1)",
    watch="With the email at the last step whole-job retry sends fewer duplicates (15) than a checkpoint per step (21),"
    " and loses 75 jobs as before.",
    email_last=True,
)
EMAIL_FIRST = Preset(
    name="email-first",
    title="Email first",
    watch="With the email at the first step 628 of the 670 jobs that whole-job retry delivers again have sent it"
    " already, while checkpoints alone still send 21 duplicates.",
    changes=(("email_step", 1),),
)
FLAKY_PROVIDER = Preset(
    name="flaky-provider",
    title="Flaky provider (10 % transient)",
    watch="One attempt in ten fails: whole-job retry loses 652 of 2,000 jobs, the checkpoint designs none, for 12 %"
    " more calls than the work needs.",
    changes=(("transient_rate", 0.1),),
)
DEPLOY_STORM = Preset(
    name="deploy-storm",
    title="Deploy storm (10 % crashes)",
    watch="One attempt in ten crashes, evenly, where real deploys come in bursts: checkpoints alone lose no job and"
    " send 206 duplicates, ten times the mission's; the key sends none.",
    changes=(("crash_rate", 0.1),),
)

PRESETS: dict[str, Preset] = {
    preset.name: preset for preset in (MISSION, LONG_AGENT, EMAIL_LAST, EMAIL_FIRST, FLAKY_PROVIDER, DEPLOY_STORM)
}


def find_preset(name: str) -> Preset:
    """The preset of this name. An unknown one raises Mistake."""
    if name not in PRESETS:
        raise Mistake(f"preset(={shown(name)}) must be one of {', '.join(PRESETS)}")
    return PRESETS[name]
