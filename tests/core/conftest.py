"""What the tests of the core share: a place for runs that is nobody's own, and one run of the mission's lab."""

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from durcore.lab import LabResult, run_lab
from durcore.scenario import Scenario


@pytest.fixture(autouse=True, scope="session")
def runs_live_in_a_scratch_directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test leaves a run in the state directory of whoever runs it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture
def state_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's state directory of this test alone, so that a test can tell what a run left there."""
    home = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(home))
    return home


@pytest.fixture(scope="session")
def small_lab(runs_live_in_a_scratch_directory: None) -> LabResult:
    """Every design, an even number of seeds, and jobs of each ending, in half a second."""
    scenario = Scenario(jobs=60, steps=5, transient_rate=0.25, crash_rate=0.2, redeliveries_max=2)
    return run_lab(scenario, seeds=(3, 4))


@pytest.fixture
def describe_anew() -> Callable[..., None]:
    """Changes what a run directory says of its run, its check sum with it, as a stranger can who reads our source."""

    def describe_anew(place: Path, **changes: Any) -> None:
        tree = json.loads((place / "run.json").read_text()) | changes | {"check": ""}
        unsigned = json.dumps(tree, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        tree["check"] = hashlib.sha256(unsigned.encode()).hexdigest()
        (place / "run.json").write_text(json.dumps(tree))

    return describe_anew
