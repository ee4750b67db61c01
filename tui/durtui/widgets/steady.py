"""Screens that hold still under hands that are faster than they draw. Each method here mends one fault of Textual's.

They were found by ten thousand random keys and clicks; each ended the app.
"""

from __future__ import annotations

from typing import Any

from textual.command import CommandList, CommandPalette
from textual.geometry import Offset
from textual.screen import Screen
from textual.widget import Widget

Place = tuple[Widget | None, Offset | None]


class SteadyScreen(Screen[Any]):
    """A screen that may be pressed on where something has just been taken away, and is drawn still."""

    def get_widget_and_offset_at(self, x: int, y: int) -> Place:
        """What stands at a cell, and where in its content."""
        return _attached(super().get_widget_and_offset_at(x, y))


class Palette(CommandPalette):
    """The command palette, of which a key may come before its list does, or after it has gone."""

    def get_widget_and_offset_at(self, x: int, y: int) -> Place:
        """What stands at a cell, and where in its content."""
        return _attached(super().get_widget_and_offset_at(x, y))

    def _action_command_list(self, action: str) -> None:
        if self.query_one(CommandList).size.height:  # page up and down need lines
            super()._action_command_list(action)

    # A last letter may be read, and a search may end, when the palette has been dismissed and its list is gone.

    def _gather_commands(self, search_value: str) -> Any:
        return super()._gather_commands(search_value) if self.query(CommandList) else None

    def _watch__list_visible(self) -> None:
        if self.query(CommandList):
            super()._watch__list_visible()

    async def _watch__show_busy(self) -> None:
        if self.query(CommandList):
            await super()._watch__show_busy()


def _attached(place: Place) -> Place:
    """Nothing for what is no longer there."""
    widget, _ = place
    return place if widget is not None and widget.is_attached else (None, None)
