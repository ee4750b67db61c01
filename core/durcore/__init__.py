"""The headless core of durtui: scenarios, faults, stores, lanes and figures. No terminal in here.

Names are loaded when they are first used: a lane, which is a program of this package, starts without the lab, and
nothing loads numpy until numpy is needed.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from durcore.errors import DurtuiError
    from durcore.interventions import Intervention
    from durcore.job import Context, JobReport, run_job
    from durcore.lab import LabResult, resume_lab, run_lab
    from durcore.model import simulate
    from durcore.scenario import Scenario
    from durcore.store import Store
    from durcore.theory import expect

__all__ = [
    "Context",
    "DurtuiError",
    "Intervention",
    "JobReport",
    "LabResult",
    "Scenario",
    "Store",
    "expect",
    "resume_lab",
    "run_job",
    "run_lab",
    "simulate",
]

_HOMES = {
    "Context": "durcore.job",
    "DurtuiError": "durcore.errors",
    "Intervention": "durcore.interventions",
    "JobReport": "durcore.job",
    "LabResult": "durcore.lab",
    "Scenario": "durcore.scenario",
    "Store": "durcore.store",
    "expect": "durcore.theory",
    "resume_lab": "durcore.lab",
    "run_job": "durcore.job",
    "run_lab": "durcore.lab",
    "simulate": "durcore.model",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
