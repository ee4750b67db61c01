"""Pictures of the app's main states, from the real app on real runs: `make screenshots` writes them, a test compares.

    python tests/tui/pictures.py FOLDER

What differs from machine to machine is held still: a lane stops after so many calls instead of after so much time, and
the times of its writes and the size of its log are set. Every other figure was counted.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from durcore.designs import DEFAULT_DESIGNS, find_designs
from durcore.lane import Step
from durcore.lanes import LaneProcess
from durcore.latency import Latency
from durcore.scenario import Scenario
from durtui.app import DurtuiApp
from durtui.session import Session
from durtui.view import LaneView, Phase

PATIENCE_S = 60.0
STILL = Latency(count=20_000, mean=7.4, median=6.8, p99=27.0, max=1500.0)
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")


class Still(Session):
    """A session whose lanes are shown without what their machine gives them."""

    def _look(self, lane: LaneProcess) -> LaneView:
        view = super()._look(lane)
        return replace(view, latency=None if view.latency is None else STILL, wal_bytes=0)

    def make(self, calls: int) -> None:
        """Have every lane make so many calls more."""
        for lane in self._lanes:
            lane.send(Step(calls))


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """One state: how large the terminal is, how far the lanes are (None: to their end), and the keys pressed then."""

    size: tuple[int, int] = (120, 36)
    calls: int | None = None
    keys: tuple[str, ...] = ()
    scenario: Scenario = Scenario()


PICTURES = {
    "live": Picture(calls=20_300),
    "finished": Picture(),
    "presenter": Picture(keys=("p",)),
    "sweep": Picture(keys=("w",)),
    "small": Picture(size=(80, 24)),
    "large": Picture(size=(200, 50), keys=("v",)),  # the curves go through looks, which are as the clock has it
    "light": Picture(keys=("l",)),
    "after-key": Picture(scenario=Scenario(crash_point="after-key")),
}


async def take(picture: Picture) -> str:
    """The screen in that state, as SVG."""
    session = Still(find_designs(DEFAULT_DESIGNS), 7, None)
    app = DurtuiApp(session, picture.scenario)
    try:
        async with app.run_test(size=picture.size) as pilot:

            async def until(condition: Callable[[tuple[LaneView, ...]], bool]) -> None:
                deadline = time.monotonic() + PATIENCE_S
                while not condition(session.look()):
                    if time.monotonic() > deadline:
                        raise TimeoutError(f"the lanes did not come to {picture}")
                    await pilot.pause(0.02)

            if picture.calls is None:
                await until(lambda views: all(view.phase is Phase.DONE for view in views))
            else:
                session.pause(True)
                session.start(picture.scenario)
                await until(lambda views: all(view.phase is Phase.PAUSED for view in views))
                session.make(picture.calls)
                await until(lambda views: all(view.figures.model_calls == picture.calls for view in views))
            await pilot.press(*picture.keys)
            await pilot.pause(1.5)  # the slowest of what follows by itself: boards, curves, the sweep's thread
            app.clear_notifications()
            await pilot.pause(0.5)
            return app.export_screenshot(title="durtui")
    finally:
        session.close()


def render(svg: Path) -> None:
    """Make a PNG beside an SVG, by the browser that is there."""
    browser = next((path for name in CHROMIUM if (path := shutil.which(name))), None)
    if browser is None:
        print(f"no Chromium is here to make {svg.with_suffix('.png').name}", file=sys.stderr)
        return
    words = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1480,1000"]
    subprocess.run(
        [browser, *words, f"--screenshot={svg.with_suffix('.png')}", svg.as_uri()],
        check=True,
        capture_output=True,
        timeout=60,
    )


def main(folder: Path) -> None:
    """Write every picture into a folder."""
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {"XDG_STATE_HOME": home, "XDG_CONFIG_HOME": home}
        for name, picture in PICTURES.items():
            svg = (folder / f"{name}.svg").absolute()
            svg.write_text(asyncio.run(take(picture)), encoding="utf-8")
            render(svg)
            print(svg.name)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
