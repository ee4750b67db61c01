"""What a module loads: the core no terminal, a lane no numpy. Import contracts see imports; this sees their effect."""

import pkgutil
import subprocess
import sys

import pytest

import durcore

HEADLESS = sorted(f"durcore.{module.name}" for module in pkgutil.iter_modules(durcore.__path__))


def loaded_by(statement: str) -> set[str]:
    """The top-level packages that a fresh interpreter has loaded after `statement`."""
    code = f"{statement}; import sys; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("module", HEADLESS)
def test_a_core_module_loads_neither_a_terminal_nor_numpy(module: str) -> None:
    assert loaded_by(f"import {module}").isdisjoint({"textual", "rich", "cyclopts", "durtui", "numpy"})


def test_the_public_names_are_there_and_load_no_numpy() -> None:
    statement = "import durcore; [getattr(durcore, name) for name in durcore.__all__]"
    assert "numpy" not in loaded_by(statement)


def test_the_command_loads_the_app_only_when_it_opens() -> None:
    assert "textual" not in loaded_by("import durtui.cli")
