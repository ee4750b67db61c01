"""What the tests of the core share: a place for runs that is nobody's own, and one run of the mission's lab."""

from collections.abc import Iterator
from pathlib import Path

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
