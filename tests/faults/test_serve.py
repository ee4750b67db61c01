"""The app in a browser, by the real command: no session outlives its tab or the server, however these end."""

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import pyte
import pytest

DURTUI = str(Path(sys.executable).with_name("durtui"))
LONG = ("--jobs", "50000")  # half a minute of lanes
ENDS_WITHIN_S = 10.0  # at the worst an app is asked, then hangs up; both have their time

Serve = Callable[..., Any]
Processes = Callable[[], dict[int, str]]
Lanes = Callable[[], list[int]]
Runs = Callable[[], list[Path]]


class Tab:
    """What a page holds: the websocket, and the screen that is drawn by it."""

    def __init__(self, websocket: aiohttp.ClientWebSocketResponse) -> None:
        self._websocket = websocket
        self._screen = pyte.Screen(120, 36)
        self._stream = pyte.ByteStream(self._screen)

    @property
    def rows(self) -> list[str]:
        return [line.rstrip() for line in self._screen.display]

    async def press(self, keys: str) -> None:
        await self._websocket.send_json(["stdin", keys])

    async def say(self, text: str) -> None:
        """Send what no page would."""
        await self._websocket.send_str(text)

    async def until(self, condition: Callable[[], object], within_s: float = 20.0) -> None:
        """Show what comes, until something stands on the screen."""
        async with asyncio.timeout(within_s):
            while not condition():
                message = await self._websocket.receive()
                assert message.type is aiohttp.WSMsgType.BINARY, message
                self._stream.feed(message.data)

    async def until_closed(self, within_s: float = ENDS_WITHIN_S) -> None:
        """Show what comes, until the server closes the connection."""
        async with asyncio.timeout(within_s):
            async for message in self._websocket:
                self._stream.feed(message.data)

    async def close(self) -> None:
        """Close the tab."""
        await self._websocket.close()

    def vanish(self) -> None:
        """Let the connection break, with no word to the server."""
        transport = self._websocket.get_extra_info("socket")
        assert transport is not None
        with suppress(OSError):
            transport.shutdown(socket.SHUT_RDWR)


async def open_tab(client: aiohttp.ClientSession, url: str, **size: int) -> Tab:
    """Load the page and open what it opens."""
    async with client.get(url) as page:
        assert page.status == 200
        assert "data-session-websocket-url" in await page.text()
    query = {"width": 120, "height": 36, **size}
    return Tab(await client.ws_connect(f"{url}/ws", params=query))


async def come_to_pass(condition: Callable[[], object], within_s: float = ENDS_WITHIN_S) -> None:
    async with asyncio.timeout(within_s):
        while not condition():
            await asyncio.sleep(0.05)


def is_running(tab: Tab) -> Callable[[], object]:
    return lambda: "running" in tab.rows[0] and re.search(r"exp\. [\d,]+", "\n".join(tab.rows))


async def test_the_app_is_drawn_obeys_keys_and_is_quit_by_one(server: Serve, processes: Processes, runs: Runs) -> None:
    serving = server("--jobs", "3000", "--seed", "8")
    async with aiohttp.ClientSession() as client:
        tab = await open_tab(client, serving.url)
        await tab.until(is_running(tab))
        assert "seed 8" in tab.rows[0]
        assert re.search(r"Jobs +3,000", "\n".join(tab.rows))
        await tab.press(" ")
        await tab.until(lambda: "paused" in tab.rows[0])
        await tab.press("q")
        await tab.until_closed()
    await come_to_pass(lambda: list(processes()) == [serving.process.pid])
    assert runs() == []


async def test_a_page_draws_whatever_the_terminal_of_the_server_is_like(
    server: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    monkeypatch.setenv("TERM", "dumb")
    serving = server(*LONG)
    async with aiohttp.ClientSession() as client:
        tab = await open_tab(client, serving.url)
        await tab.until(is_running(tab))
        assert "╭" in "\n".join(tab.rows)


@pytest.mark.parametrize("end", ["closed", "vanished"])
async def test_a_session_ends_with_its_tab_and_its_run_goes(
    end: str, server: Serve, processes: Processes, runs: Runs
) -> None:
    serving = server(*LONG)
    async with aiohttp.ClientSession() as client:
        tab = await open_tab(client, serving.url)
        await tab.until(is_running(tab))
        assert len(processes()) >= 5  # the server, the app, three lanes
        if end == "closed":
            await tab.close()
        else:
            tab.vanish()
        await come_to_pass(lambda: list(processes()) == [serving.process.pid])
    assert runs() == []


async def test_a_session_whose_tab_takes_nothing_any_more_ends_with_it(server: Serve, processes: Processes) -> None:
    serving = server(*LONG)
    async with aiohttp.ClientSession() as client:
        tab = await open_tab(client, serving.url, width=300, height=100)
        await tab.until(lambda: any(tab.rows))
        await asyncio.sleep(4)  # what the app draws fills every buffer on the way
        tab.vanish()
        await come_to_pass(lambda: list(processes()) == [serving.process.pid])


async def test_a_reload_leaves_one_session_and_never_finds_the_place_full(
    server: Serve, processes: Processes, lanes: Lanes
) -> None:
    serving = server(*LONG)
    async with aiohttp.ClientSession() as client:
        others = [await open_tab(client, serving.url) for _ in range(3)]
        tab = await open_tab(client, serving.url)
        for _ in range(2):
            await tab.until(is_running(tab))
            tab.vanish()
            tab = await open_tab(client, serving.url)
        await tab.until(is_running(tab))
        for each in others:
            each.vanish()
        await come_to_pass(lambda: len(lanes()) == 3 and len(processes()) == 5)


async def test_a_session_too_many_is_told_so_and_opens_when_another_has_gone(server: Serve, lanes: Lanes) -> None:
    serving = server(*LONG)
    async with aiohttp.ClientSession() as client:
        tabs = [await open_tab(client, serving.url) for _ in range(4)]
        async with client.get(serving.url) as page:
            assert page.status == 503
            assert "durtui serves 4 sessions at a time" in await page.text()
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await client.ws_connect(f"{serving.url}/ws")
        assert refused.value.status == 503
        await tabs[0].close()
        tab = await open_tab(client, serving.url)
        await tab.until(is_running(tab))
        await come_to_pass(lambda: len(lanes()) == 12)


async def test_when_the_server_is_killed_every_app_and_lane_ends(server: Serve, processes: Processes) -> None:
    serving = server(*LONG)
    async with aiohttp.ClientSession() as client:
        tabs = [await open_tab(client, serving.url) for _ in range(2)]
        for tab in tabs:
            await tab.until(is_running(tab))
        serving.process.kill()
        serving.process.wait()
        await come_to_pass(lambda: processes() == {})


async def test_when_the_server_is_killed_an_app_that_has_not_opened_yet_ends(
    server: Serve, processes: Processes
) -> None:
    serving = server(*LONG)
    async with aiohttp.ClientSession() as client:
        await open_tab(client, serving.url)
        await come_to_pass(lambda: len(processes()) > 1)
        serving.process.kill()
        serving.process.wait()
        await come_to_pass(lambda: processes() == {})


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_ends_the_server_and_every_session(
    number: signal.Signals, server: Serve, processes: Processes, runs: Runs
) -> None:
    serving = server(*LONG)
    async with aiohttp.ClientSession() as client:
        tab = await open_tab(client, serving.url)
        await tab.until(is_running(tab))
        serving.process.send_signal(number)
        await come_to_pass(lambda: serving.process.poll() is not None)
    said, _ = serving.process.communicate()
    assert (serving.process.returncode, said) == (0, "")
    assert processes() == {}
    assert runs() == []


async def test_an_app_that_is_killed_closes_its_tab(server: Serve, processes: Processes) -> None:
    serving = server(*LONG)
    async with aiohttp.ClientSession() as client:
        tab = await open_tab(client, serving.url)
        await tab.until(is_running(tab))
        (app,) = (pid for pid, line in processes().items() if "-m durtui" in line)
        os.kill(app, signal.SIGKILL)
        await tab.until_closed()
    await come_to_pass(lambda: list(processes()) == [serving.process.pid])


@pytest.mark.parametrize("said", ["no JSON", "{}", "[]", '["resize", {}]', '["resize", 5]', '["stdin", 7]', "[1, 2]"])
async def test_a_tab_that_says_what_no_page_says_ends_at_most_itself(
    said: str, server: Serve, processes: Processes
) -> None:
    serving = server(*LONG)
    async with aiohttp.ClientSession() as client:
        strange = await open_tab(client, serving.url)
        await strange.until(is_running(strange))
        await strange.say(said)
        tab = await open_tab(client, serving.url, width=10**9, height=-1)
        await strange.close()
        await come_to_pass(lambda: sum("-m durtui" in line for line in processes().values()) == 1)
        await tab.close()
    await come_to_pass(lambda: list(processes()) == [serving.process.pid])


@pytest.mark.parametrize(
    "headers", [{"Origin": "http://evil.example"}, {"Origin": "null"}, {"Host": "evil.example"}], ids=str
)
async def test_a_strange_page_in_the_same_browser_is_not_answered(
    headers: dict[str, str], server: Serve, processes: Processes
) -> None:
    serving = server()
    async with aiohttp.ClientSession(headers=headers) as client:
        async with client.get(serving.url) as page:
            assert page.status == 403
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await client.ws_connect(f"{serving.url}/ws")
        assert refused.value.status == 403
    assert list(processes()) == [serving.process.pid]


async def test_the_page_asks_no_other_machine_for_anything(server: Serve) -> None:
    serving = server()
    async with aiohttp.ClientSession() as client, client.get(serving.url) as page:
        text = await page.text()
    assert "xterm.css" in text
    for address in re.findall(r'(?:href|src)="(\w+://[^"]*)"', text):
        assert address.startswith(serving.url)


def test_nobody_but_this_machine_is_listened_to(server: Serve) -> None:
    table = Path("/proc/net/tcp")
    if not table.exists():
        pytest.skip("reads who listens from /proc")
    port = server().port
    listening = [line.split()[1] for line in table.read_text().splitlines() if f":{port:04X} 00000000:0000" in line]
    assert listening == [f"0100007F:{port:04X}"]


def test_a_port_that_is_taken_is_told_in_one_line(server: Serve) -> None:
    port = server().port
    done = subprocess.run(
        [DURTUI, "serve", "--port", str(port)], capture_output=True, text=True, timeout=20, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"durtui: port(={port}) is taken; name another with --port, or 0 for any free one\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--port 70000", "port(=70000) must be a whole number between 0 and 65,535"),
        ("--port x", "port(=x) must be"),
        ("--jobs 0", "jobs(=0) must be"),
        ("--design foo", "design(=foo) must be one of"),
        ("--seed -1", "seed(=-1) must be"),
    ],
)
def test_a_mistake_is_told_before_anything_is_served(words: str, told: str) -> None:
    done = subprocess.run([DURTUI, "serve", *words.split()], capture_output=True, text=True, timeout=20, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert told in line
