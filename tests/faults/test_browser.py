"""The app in a real browser: Chromium loads the page, a person's click and key reach the app, its figures come back."""

import asyncio
import base64
import json
import os
import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import pyte
import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
COLUMNS_MAX, ROWS_MAX = 500, 200

Serve = Callable[..., Any]
Processes = Callable[[], dict[int, str]]


class Page:
    """A page in Chromium, by its DevTools protocol: what is typed and clicked, and what its terminal was sent."""

    def __init__(self, devtools: aiohttp.ClientWebSocketResponse) -> None:
        self._devtools = devtools
        self._commands = 0
        self._answers: dict[int, dict[str, Any]] = {}
        self._screen = pyte.Screen(COLUMNS_MAX, ROWS_MAX)
        self._stream = pyte.ByteStream(self._screen)
        self.asked: list[str] = []  # the addresses that the page asked for something

    @property
    def text(self) -> str:
        """What its terminal shows, line by line."""
        return "\n".join(line.rstrip() for line in self._screen.display)

    async def do(self, method: str, **parameters: object) -> dict[str, Any]:
        """Give Chromium a command; return its answer."""
        self._commands += 1
        number = self._commands
        await self._devtools.send_json({"id": number, "method": method, "params": parameters})
        await self.until(lambda: number in self._answers)
        return self._answers.pop(number)

    async def until(self, condition: Callable[[], object], within_s: float = 30.0) -> None:
        """Take in what Chromium tells, until something has come to pass."""
        try:
            async with asyncio.timeout(within_s):
                while not condition():
                    self._take(json.loads(await self._devtools.receive_str()))
        except TimeoutError:
            pytest.fail(f"this did not come to pass; the screen:\n{self.text.strip()}")

    def _take(self, told: dict[str, Any]) -> None:
        if "id" in told:
            assert "error" not in told, told
            self._answers[told["id"]] = told["result"]
        elif told["method"] == "Network.requestWillBeSent":
            self.asked.append(told["params"]["request"]["url"])
        elif told["method"] == "Network.webSocketFrameReceived":
            frame = told["params"]["response"]
            if frame["opcode"] == 2:
                self._stream.feed(base64.b64decode(frame["payloadData"]))

    async def value(self, expression: str) -> Any:
        """What a piece of JavaScript gives in the page."""
        return (await self.do("Runtime.evaluate", expression=expression))["result"].get("value")

    async def click(self, column: int, row: int) -> None:
        """Click a cell of the terminal, both from 0."""
        shape = "JSON.stringify(document.querySelector('.xterm-screen').getBoundingClientRect())"
        screen = json.loads(await self.value(shape))
        lines = self.text.rstrip().splitlines()
        x = screen["x"] + screen["width"] * (column + 0.5) / max(map(len, lines))
        y = screen["y"] + screen["height"] * (row + 0.5) / len(lines)
        for kind in ("mousePressed", "mouseReleased"):
            await self.do("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    async def press(self, key: str, code: str, number: int) -> None:
        """Press a key and let it go."""
        keys: dict[str, Any] = {"key": key, "code": code, "windowsVirtualKeyCode": number}
        text = {"text": key} if len(key) == 1 else {}
        await self.do("Input.dispatchKeyEvent", type="keyDown", **keys, **text)
        await self.do("Input.dispatchKeyEvent", type="keyUp", **keys)


def jobs_on(page: Page) -> int:
    """What the slider of the jobs shows; 0 before it does."""
    return int("".join(re.findall(r"Jobs +([\d,]+)", page.text)[:1]).replace(",", "") or 0)


@pytest.fixture
async def page(server: Serve, tmp_path: Path) -> AsyncIterator[Page]:
    """The page of `durtui serve` in a Chromium of its own."""
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        pytest.skip(f"there is no Chromium here ({', '.join(BROWSERS)})")
    profile = tmp_path / "profile"
    flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
    words = [program, *flags, "--window-size=1300,900", "--remote-debugging-port=0", f"--user-data-dir={profile}"]
    away = {"XDG_STATE_HOME": str(tmp_path / "browser")}  # so that it is not counted among durtui's processes
    browser = subprocess.Popen(
        [*words, "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **away}
    )
    try:
        async with asyncio.timeout(60):
            while not (profile / "DevToolsActivePort").exists():
                assert browser.poll() is None
                await asyncio.sleep(0.1)
        port = (profile / "DevToolsActivePort").read_text().split()[0]
        async with aiohttp.ClientSession() as client:
            async with client.get(f"http://127.0.0.1:{port}/json") as listed:
                address = next(each["webSocketDebuggerUrl"] for each in await listed.json() if each["type"] == "page")
            async with client.ws_connect(address, max_msg_size=0) as devtools:
                yield Page(devtools)
                with suppress(ConnectionError):
                    await devtools.close()
    finally:
        browser.kill()
        browser.wait()


async def test_a_browser_loads_the_app_moves_a_slider_and_reads_a_figure(
    page: Page, server: Serve, processes: Processes
) -> None:
    serving = server("--jobs", "3000")
    await page.do("Network.enable")
    await page.do("Emulation.setFocusEmulationEnabled", enabled=True)  # as a window in front of a person has it
    await page.do("Page.navigate", url=serving.url)
    await page.until(lambda: jobs_on(page) == 3000 and re.search(r"running +\d", page.text))
    assert await page.value("document.body.classList.contains('-first-byte')")
    assert "expect 2,887 ± 10" in page.text

    await page.until(lambda: "q Quit" in page.text)  # the keys are the app's, before anything is clicked
    await page.press("ArrowRight", "ArrowRight", 39)
    await page.until(lambda: jobs_on(page) > 3000)
    pressed = jobs_on(page)

    track = next(row for row, line in enumerate(page.text.splitlines()) if "Jobs" in line) + 1
    await page.click(18, track)
    await page.until(lambda: jobs_on(page) > pressed)
    clicked = jobs_on(page)
    await page.press("ArrowLeft", "ArrowLeft", 37)
    await page.until(lambda: 3000 < jobs_on(page) < clicked)
    await page.until(lambda: f"expect {jobs_on(page):,}" in page.text)  # of finished jobs, where none can be lost
    await page.press(" ", "Space", 32)
    await page.until(lambda: "paused" in page.text)

    assert all(address.startswith((serving.url, "data:", "blob:")) for address in page.asked), page.asked
    await page.do("Page.navigate", url="about:blank")  # the tab goes elsewhere
    await page.until(lambda: True)
    async with asyncio.timeout(10):
        while list(processes()) != [serving.process.pid]:
            await asyncio.sleep(0.1)
