"""Web: textual-serve with bounds. A session is one tab, its app and its lanes, and ends with whichever ends first.

Textual-serve waits for an app without a time-out, leaves one that nobody reads to itself, counts no sessions and
answers any page that knows the port. None of that would do here: an app has processes and files of its own.
"""

from __future__ import annotations

import asyncio
import re
import signal
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from aiohttp import web
from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager
from textual_serve.server import Server, to_int

from durtui.console import complain

SESSIONS = 4  # each has three lanes: more would slow all of them on a laptop
FULL = f"durtui serves {SESSIONS} sessions at a time, and they are open: close a tab of one, then reload this page.\n"
QUIT_WITHIN_S = 3.0  # for an app to end when asked, as its quit key ends it
HANG_UP_WITHIN_S = 5.0  # and then for its own watch to end it, which needs no loop of the app's
ROOM_WITHIN_S = 4.0  # a page that is loaded again comes before its first session has gone
HEARTBEAT_S = 15.0  # a tab that does not answer twice as long has gone without a word
SIZE_MAX = 500  # columns and rows: what a page asks for is drawn, whatever it costs
REMOTE_FONTS = re.compile(r'<link\b[^>]*"https://[^>]*>')  # a page of this machine asks no other for anything
# A page that is opened gives its keys to nobody until something is clicked; a speaker should not have to know.
# When the app has drawn: before, it would not be listening.
FOCUS = """<script>
  new MutationObserver((changes, watch) => {
    if (document.body.classList.contains("-first-byte")) {
      watch.disconnect();
      document.querySelector(".xterm-helper-textarea").focus();
    }
  }).observe(document.body, {attributeFilter: ["class"]});
</script>
</body>"""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Session(AppService):
    """One app in a process of its own, and the tab that it is shown in."""

    def __init__(self, words: Sequence[str], websocket: web.WebSocketResponse, downloads: DownloadManager) -> None:
        super().__init__(
            " ".join(words),
            write_bytes=websocket.send_bytes,
            write_str=websocket.send_str,
            close=self._leave,
            download_manager=downloads,
        )
        self._words = words
        self._websocket = websocket
        self._ending = False

    async def _leave(self) -> None:
        with suppress(ConnectionError):
            await self._websocket.close()

    async def _open_app_process(self, width: int = 80, height: int = 24) -> Process:
        # No shell between us, which would be the one that is told to end.
        self._process = await asyncio.create_subprocess_exec(
            *self._words, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=self._build_environment(width, height)
        )
        self._stdin = self._process.stdin
        return self._process

    async def set_terminal_size(self, width: int, height: int) -> None:
        """Tell the app how large its tab is."""
        await super().set_terminal_size(bounded(width), bounded(height))

    async def on_data(self, payload: bytes) -> None:
        """Show what the app has drawn; once the tab has gone it is read still, so that the app is not held up."""
        if not self._ending:
            with suppress(ConnectionError):
                await super().on_data(payload)

    async def run(self) -> None:
        """Show the app until it ends, and then let its tab say so: not only where the app has taken its leave."""
        await super().run()
        await self._leave()

    async def stop(self) -> None:
        """End the app, by force where it does not answer. It waits for a few seconds at most."""
        shown, self._task = self._task, None
        if self._process is None or shown is None:
            return
        self._ending = True
        await self._download_manager.cancel_app_downloads(app_service_id=self.app_service_id)
        if not await self._ends_within(QUIT_WITHIN_S, self.send_meta({"type": "quit"})):
            self.stdin.close()
            if not await self._ends_within(HANG_UP_WITHIN_S):
                with suppress(ProcessLookupError):
                    self._process.kill()  # its lanes end when they miss it
        self.stdin.close()
        await asyncio.wait([shown], timeout=QUIT_WITHIN_S)
        shown.cancel()

    async def _ends_within(self, seconds: float, *asked: Awaitable[object]) -> bool:
        assert self._process is not None
        try:
            async with asyncio.timeout(seconds):
                for each in asked:
                    await each
                await self._process.wait()
        except TimeoutError:
            return False
        return True


class LabServer(Server):
    """The page and its websocket, for this machine only, and for as many sessions as are allowed."""

    def __init__(self, words: Sequence[str], host: str, port: int) -> None:
        super().__init__(" ".join(words), host=host, port=port, title="durtui")
        self._words = words
        self._sessions: set[Session] = set()
        self._addresses = {f"{name}:{port}" for name in (host, "localhost")}

    async def make_app(self) -> web.Application:
        """The application that aiohttp runs."""
        app = await self._make_app()
        app.middlewares.append(self._check_caller)
        return app

    @web.middleware
    async def _check_caller(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer our own page only: any other that is open in the same browser could drive the app."""
        caller = request.headers.get("Origin", f"http://{request.host}")
        if request.host not in self._addresses or caller.removeprefix("http://") not in self._addresses:
            raise web.HTTPForbidden(text="durtui answers its own page only\n")
        return await handler(request)

    async def handle_index(self, request: web.Request) -> web.Response:
        """The page, or why there is none."""
        if not await self._has_room():
            return web.Response(status=503, text=FULL)
        page = await super().handle_index(request)
        assert isinstance(page, web.Response)
        page.text = REMOTE_FONTS.sub("", page.text or "").replace("</body>", FOCUS)
        return page

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """One session, from its page's connection to its end."""
        if not await self._has_room():
            raise web.HTTPServiceUnavailable(text=FULL)
        websocket = web.WebSocketResponse(heartbeat=HEARTBEAT_S)
        session = Session(self._words, websocket, self.download_manager)
        self._sessions.add(session)
        try:
            await websocket.prepare(request)
            size = [
                bounded(to_int(request.query.get(side, ""), usual)) for side, usual in (("width", 80), ("height", 24))
            ]
            await session.start(*size)
            await self._process_messages(websocket, session)
        except (ValueError, LookupError, TypeError, AttributeError, AssertionError) as error:
            complain(f"a page has sent what no page of ours sends ({type(error).__name__}); its session ends")
        except OSError as error:
            complain(f"a session could not be opened or held: {error}")
        finally:
            await session.stop()
            self._sessions.discard(session)
            with suppress(ConnectionError):
                await websocket.close()
        return websocket

    async def _has_room(self) -> bool:
        until = asyncio.get_running_loop().time() + ROOM_WITHIN_S
        while len(self._sessions) >= SESSIONS and asyncio.get_running_loop().time() < until:
            await asyncio.sleep(0.05)
        return len(self._sessions) < SESSIONS

    async def end(self) -> None:
        """End every session."""
        await asyncio.gather(*(session.stop() for session in self._sessions))

    async def on_startup(self, app: web.Application) -> None:
        """Say where the app is."""
        print(f"durtui is at {self.public_url} for {SESSIONS} sessions at a time; Ctrl-C ends it, and them", flush=True)


def bounded(cells: int) -> int:
    """Columns or rows that can be drawn."""
    return min(max(cells, 1), SIZE_MAX)


def serve_app(words: Sequence[str], listening: socket.socket) -> None:
    """Serve the app that `words` open to browsers of this machine, until a signal ends it and every session."""
    asyncio.run(_serve(words, listening))


async def _serve(words: Sequence[str], listening: socket.socket) -> None:
    host, port = listening.getsockname()
    server = LabServer(words, host, port)
    runner = web.AppRunner(await server.make_app(), handle_signals=False, access_log=None, shutdown_timeout=1.0)
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            asyncio.get_running_loop().add_signal_handler(number, ended.set)
    try:
        await runner.setup()
        await web.SockSite(runner, listening).start()
        await ended.wait()
    finally:
        await server.end()
        await runner.cleanup()
        sys.stdout.flush()
