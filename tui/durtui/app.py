"""The app: it opens the live screen and sees to it that it ends well, whoever ends it."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from textual.app import App, SystemCommand
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.constants import DEFAULT_THEME
from textual.screen import Screen

from durcore.designs import Design, find_designs
from durcore.lab import how_to_resume
from durcore.presets import PRESETS, Preset
from durcore.rundir import RunDirectory
from durcore.scenario import Scenario
from durtui.console import complain
from durtui.hangup import insist, watch_terminal
from durtui.kept import Kept, read_kept, write_kept
from durtui.screens.help import HelpScreen
from durtui.screens.live import LiveScreen
from durtui.session import Session
from durtui.terminal import drop_empty_no_color
from durtui.themes import THEMES, Themes
from durtui.widgets.rail import DEFAULT_CALLS_PER_S, Rail
from durtui.widgets.steady import Palette

REDRAW_S = 0.1  # after the driver has its terminal back
WATCH_FOR_S = 20  # how long a preset's sentence stands: the mission's lab takes about as long


class DurtuiApp(App[None]):
    """The simulator. `open` runs it with everything around it; tests run the bare app."""

    TITLE = "durtui"
    CSS_PATH = Path(__file__).with_name("durtui.tcss")  # whole, for subclasses in other folders
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit", show=False),
        Binding("ctrl+z", "suspend_process", show=False),
        Binding("question_mark", "explain", "Help", show=False),
        Binding("ctrl+c", "quit", "Quit", show=False, priority=True),  # Textual's own only shows a toast
    ]

    def __init__(self, session: Session, scenario: Scenario, kept: Kept | None = None, note: str = "") -> None:
        drop_empty_no_color()
        super().__init__()
        for theme in THEMES:
            self.register_theme(theme)
        self._session = session
        self._scenario = scenario
        self._before = kept
        self._note = note  # about what was kept
        self._live = LiveScreen(session, scenario)
        self.leave: Callable[[], None] = session.interrupt  # what is to be done when no more time is given

    def get_default_screen(self) -> Screen[None]:
        """The live screen."""
        return self._live

    def on_mount(self) -> None:
        """Let a signal end the app as a key does: with the terminal restored."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._end, 128 + number)
        if self._before is not None and self._before.theme in self.available_themes:
            self.theme = self._before.theme
        if self._note:
            self.notify(self._note, severity="warning", timeout=WATCH_FOR_S, markup=False)
        self.call_after_refresh(self._hide_rail)

    def _hide_rail(self) -> None:
        """Hide the rail where it was hidden before; where there is no room it is hidden anyway."""
        if self._before is not None and self._before.rail_hidden and not self._rail_is_a_drawer:
            self._live.action_toggle_rail()

    @property
    def _rail_is_a_drawer(self) -> bool:
        return self._live.has_class("-small") or self._live.has_class("-low")

    @property
    def to_keep(self) -> Kept:
        """What the next run goes on with, also when this one has ended."""
        hidden = self._live.has_class("-rail-toggled")
        if self._rail_is_a_drawer:
            hidden = self._before is not None and self._before.rail_hidden
        return Kept(
            scenario=self._session.scenario,
            theme=None if self.theme == DEFAULT_THEME else self.theme,
            calls_per_s=self._session.calls_per_s,
            rail_hidden=hidden,
        )

    def _end(self, code: int) -> None:
        insist(self.leave, code)
        self.exit(return_code=code)

    def action_suspend_process(self) -> None:
        """Give the shell its terminal, and draw everything anew when it gives it back. The lanes go on meanwhile."""
        super().action_suspend_process()
        self.set_timer(REDRAW_S, self._redraw)

    def _redraw(self) -> None:
        for widget in self.screen.walk_children(with_self=True):
            widget.refresh()

    def action_explain(self) -> None:
        """Say what everything on the screen means."""
        if isinstance(self.screen, LiveScreen):
            self.push_screen(HelpScreen())

    def action_command_palette(self) -> None:
        """Show the palette."""
        if not isinstance(self.screen, Palette):
            self.push_screen(Palette(id="--command-palette"))

    def search_themes(self) -> None:
        """Show the themes."""
        self.push_screen(Palette(providers=[Themes], placeholder="Search for themes…"))

    def pop_screen(self) -> AwaitComplete:
        """Close the palette, once: a second escape may come before the first has taken it away."""
        return super().pop_screen() if len(self.screen_stack) > 1 else AwaitComplete()

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """The presets, and Textual's commands without its screenshot, which overwrites silently: `e` exports."""
        for preset in PRESETS.values():
            yield SystemCommand(f"Preset: {preset.title}", preset.watch, partial(self.take_preset, preset))
        yield from (command for command in super().get_system_commands(screen) if command.title != "Screenshot")

    def take_preset(self, preset: Preset) -> None:
        """Move the sliders to a preset, on which the lanes start anew, and say what to watch for."""
        rail = self.screen_stack[0].query_one(Rail)
        rail.take(preset.over(rail.scenario))
        self.notify(preset.watch, title=preset.title, timeout=WATCH_FOR_S, markup=False)

    @classmethod
    def open(
        cls,
        scenario: Scenario | None,
        *,
        seed: int,
        designs: Sequence[Design | str],
        resumed: RunDirectory | None = None,
        fresh: bool = False,
    ) -> int:
        """Run the app in this terminal until it ends; return its exit code. No process outlives it.

        Without a scenario it goes on with the one that was kept. `fresh`: what was kept is neither read nor written.
        `resumed` is a run to go on with. A run that a person has left by a key goes; one that was ended by a signal
        with work left, or that failed, is kept, and how to go on with it is said.
        """
        before, note = (None, "") if fresh else read_kept()
        session = Session(find_designs(designs), seed, before.calls_per_s if before else DEFAULT_CALLS_PER_S, resumed)
        app = cls(session, scenario or (before.scenario if before else Scenario()), before, note)

        def keep() -> str:
            return "" if fresh else write_kept(app.to_keep)

        def leave() -> None:
            keep()
            session.interrupt()

        app.leave = leave
        assert sys.__stdin__ is not None
        watch_terminal(sys.__stdin__.fileno(), leave)
        code = 1
        try:
            app.run()
            code = app.return_code or 0
            # Not where the app has failed: what was its end once would be so every time.
            if code != 1 and (trouble := keep()):
                complain(trouble)
        finally:
            failed = session.failed
            kept = session.directory if failed or (code and session.unfinished) else None
            session.close(keep=kept is not None)
            if kept is not None:
                said = "a lane failed" if failed else "the app failed" if code == 1 else "interrupted"
                complain(f"{said}; {how_to_resume(kept)}")
        return code or int(failed)
