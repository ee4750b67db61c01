"""Completion, in a real shell: what is typed half is completed as the command has declared it."""

import os
import pty
import re
import select
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

Durtui = Callable[..., subprocess.CompletedProcess[str]]


def typed_in_bash(script: Path, command: str, keys: str, wanted: str) -> str:
    """What stands on the line of an interactive bash that has loaded `script`, after `keys`."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash")
    master, slave = pty.openpty()
    path = f"{Path(command).parent}:{os.environ['PATH']}"
    process = subprocess.Popen(
        [bash, "--norc", "--noprofile", "-i"],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        env={**os.environ, "TERM": "dumb", "PS1": "$ ", "PATH": path, "INPUTRC": "/dev/null", "COLUMNS": "200"},
    )
    os.close(slave)
    said = ""
    try:
        os.write(master, f"source '{script}'; echo rea''dy\n".encode())
        deadline = time.monotonic() + 20
        while "ready" not in said or wanted not in said:
            assert time.monotonic() < deadline, said
            if select.select([master], [], [], 0.05)[0]:
                said += os.read(master, 4096).decode(errors="replace")
            if keys and "ready" in said:
                os.write(master, keys.encode())
                keys = ""
    finally:
        process.kill()
        process.wait()
        os.close(master)
    return said


@pytest.mark.parametrize(
    ("keys", "wanted"),
    [
        ("durtui swe\t", "durtui sweep "),
        ("durtui run --transient\t", "durtui run --transient-rate "),
        ("durtui theory --crash-mode sig\t", "durtui theory --crash-mode sigkill "),
        ("durtui --design checkpoint-\t", "durtui --design checkpoint-idempotent "),
        ("durtui completion zs\t", "durtui completion zsh "),
    ],
)
def test_bash_completes_a_command_a_flag_and_a_value(
    keys: str, wanted: str, durtui: Durtui, command: str, tmp_path: Path
) -> None:
    script = tmp_path / "durtui.bash"
    script.write_text(durtui("completion", "bash").stdout)
    assert wanted in typed_in_bash(script, command, keys, wanted)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_a_script_that_it_can_read(shell: str, durtui: Durtui, tmp_path: Path) -> None:
    done = durtui("completion", shell)
    assert (done.returncode, done.stderr) == (0, "")
    for word in ("sweep", "transient-rate", "rerun-damaged"):
        assert word in done.stdout
    script = tmp_path / "script"
    script.write_text(done.stdout)
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"there is no {shell} to read it")
    subprocess.run([program, "--no-execute" if shell == "fish" else "-n", str(script)], check=True, timeout=30)


def test_a_shell_that_is_not_known_is_a_mistake(durtui: Durtui) -> None:
    done = durtui("completion", "tcsh")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "durtui: shell(=tcsh) must be one of bash, zsh, fish\n"


def test_installing_puts_the_script_where_the_shell_finds_it(durtui: Durtui, tmp_path: Path) -> None:
    for _ in range(2):  # the second time changes nothing
        done = durtui("--install-completion", "--shell", "bash", HOME=str(tmp_path))
        assert done.returncode == 0, done.stderr
    script = tmp_path / ".local/share/bash-completion/completions/durtui"
    assert script.read_text() == durtui("completion", "bash").stdout.removesuffix("\n")
    assert len(re.findall(re.escape(str(script)), (tmp_path / ".bashrc").read_text())) == 2  # is it there, then load it


def test_installing_where_nothing_can_be_written_is_told_in_one_line(durtui: Durtui) -> None:
    done = durtui("--install-completion", "--shell", "bash", HOME="/proc/nowhere")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "/proc/nowhere" in line
    assert "cannot be written" in line
