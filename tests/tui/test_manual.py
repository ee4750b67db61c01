"""The man page: sound roff that holds every command and every flag, as they are declared."""

import re
import shutil
import subprocess
from collections.abc import Callable

import pytest

from durcore.scenario import PARAMETERS
from durtui.cli import app
from durtui.manual import page

Durtui = Callable[..., subprocess.CompletedProcess[str]]

PAGE = page(app)
SECTIONS = ["NAME", "SYNOPSIS", "DESCRIPTION", "COMMANDS", "SCENARIO", "EXIT STATUS", "ENVIRONMENT", "FILES"]
REQUESTS = {".TH", ".SH", ".SS", ".TP", ".PP", ".B", ".br"}
ESCAPES = r"\\(?:e|&|-|f[BIR]|\(ti|\(ha|\(dq|\(ga|\(cq|\[u[0-9A-F]{4,6}\])"


def plain(roff: str) -> str:
    return re.sub(r"\\f[BIR]|\\&", "", roff).replace("\\-", "-")


def test_the_command_prints_the_page(durtui: Durtui) -> None:
    done = durtui("man")
    assert (done.returncode, done.stderr, done.stdout) == (0, "", PAGE)


def test_every_section_stands_in_the_order_of_man_pages() -> None:
    assert re.findall(r"^\.SH (.+)$", PAGE, flags=re.MULTILINE) == SECTIONS


def test_the_page_is_roff_in_ascii_with_no_request_or_escape_but_those_meant() -> None:
    assert PAGE.isascii()
    for line in PAGE.splitlines():
        assert line
        if line.startswith("."):
            assert line.split()[0] in REQUESTS
        assert not line.startswith("'")
        assert "\\" not in re.sub(ESCAPES, "", line), line


def test_every_command_and_every_flag_is_in_it(durtui: Durtui) -> None:
    text = plain(PAGE)
    for name, command in app.resolved_commands().items():
        if name in ("-h", "--help", "--version"):
            continue
        assert f".SS durtui {name}\n" in text
        section = text.partition(f".SS durtui {name}\n")[2].partition("\n.S")[0] + text.partition(".SH SCENARIO")[2]
        told = durtui(name, "--help", COLUMNS="200").stdout
        for flag in set(re.findall(r"│ (--[a-z-]+)", told)) - {"--help", "--version"}:
            assert f"{flag} " in section or f"{flag}\n" in section, (name, flag)
        assert command.help is not None


def test_every_parameter_has_its_flag_its_meaning_and_its_variable() -> None:
    text = plain(PAGE)
    for name, parameter in PARAMETERS.items():
        assert f"\n{parameter.flag} " in text
        assert parameter.meaning.partition("'")[0] in text
        assert f"DURTUI_{name.upper()}" in text


@pytest.mark.parametrize(
    ("program", "words"), [("groff", ["-man", "-Tutf8", "-ww", "-z"]), ("mandoc", ["-T", "lint", "-W", "error"])]
)
def test_a_typesetter_has_nothing_to_say_against_it(program: str, words: list[str]) -> None:
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"there is no {program}")
    done = subprocess.run([found, *words], input=PAGE, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_man_shows_it(tmp_path: object) -> None:
    if shutil.which("man") is None:
        pytest.skip("there is no man")
    words = ["man", "-P", "cat", "-l", "-"]
    done = subprocess.run(words, input=PAGE, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode and "option" in done.stderr:
        pytest.skip("this man reads no standard input")
    assert done.returncode == 0, done.stderr
    shown = re.sub(r".\x08", "", done.stdout)
    assert "EXIT STATUS" in shown
    assert "--transient-rate X" in shown
