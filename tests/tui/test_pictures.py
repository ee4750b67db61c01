"""The pictures in the repository are what the app looks like: `make screenshots` takes them anew."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "screenshots"
SPEC = importlib.util.spec_from_file_location("pictures", Path(__file__).with_name("pictures.py"))
assert SPEC is not None
assert SPEC.loader is not None
pictures = importlib.util.module_from_spec(SPEC)
sys.modules["pictures"] = pictures  # as dataclasses ask for
SPEC.loader.exec_module(pictures)
ALWAYS = ("live", "presenter", "small")


def words(svg: str) -> list[str]:
    """What stands on a picture, for a difference that a person can read."""
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg)


@pytest.mark.parametrize(
    "name", [name if name in ALWAYS else pytest.param(name, marks=pytest.mark.slow) for name in pictures.PICTURES]
)
async def test_a_picture_is_what_the_app_looks_like(name: str, state_home: Path) -> None:
    svg = await pictures.take(pictures.PICTURES[name])
    there = (FOLDER / f"{name}.svg").read_text(encoding="utf-8")
    assert words(svg) == words(there)
    assert svg == there, "only colours or places differ; `make screenshots` takes the pictures anew"


def test_every_picture_is_taken_and_none_is_left_over() -> None:
    assert {path.stem for path in FOLDER.glob("*.svg")} == set(pictures.PICTURES)
    assert {path.stem for path in FOLDER.glob("*.png")} == set(pictures.PICTURES)
