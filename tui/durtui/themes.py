"""Themes of durtui's own: values, and the list that offers them first. What a colour is for is said by the widgets."""

from __future__ import annotations

from collections.abc import Callable

from textual.theme import Theme, ThemeProvider

# Okabe and Ito, Color Universal Design (2008): seven hues that stay apart for every common colour blindness.
ORANGE, SKY_BLUE, BLUISH_GREEN, YELLOW = "#E69F00", "#56B4E9", "#009E73", "#F0E442"
VERMILLION, REDDISH_PURPLE = "#D55E00", "#CC79A7"

# Textual softens the colours of text to two thirds. Here they are given whole: softened, hues that were chosen to stay
# apart move together.
COLOUR_BLIND = Theme(
    name="colour-blind-safe",
    primary=SKY_BLUE,
    secondary=REDDISH_PURPLE,
    accent=ORANGE,
    warning=YELLOW,
    error=VERMILLION,
    success=BLUISH_GREEN,
    foreground="#F2F2F2",
    background="#101216",
    surface="#181B21",
    panel="#22262E",
    variables={
        "text-primary": SKY_BLUE,
        "text-secondary": REDDISH_PURPLE,
        "text-accent": ORANGE,
        "text-warning": YELLOW,  # not orange, which eyes without green see close to vermillion
        "text-error": "#E86A10",  # vermillion, a little lighter: 5 to 1 on this ground
        "text-success": "#12B286",  # bluish green, a little lighter
        "text-muted": "#B4B8C0",
        "footer-key-foreground": SKY_BLUE,
        "block-cursor-foreground": "#101216",
        "block-cursor-background": SKY_BLUE,
    },
)

# For a projector in a bright hall, which turns light grey into white: nothing on it is lighter than 7 to 1.
PROJECTOR = Theme(
    name="projector-light",
    primary="#003E8A",
    secondary="#5B2A86",
    accent="#6A0DAD",
    warning="#7A4100",
    error="#A8001C",
    success="#005A32",
    foreground="#000000",
    background="#FFFFFF",
    surface="#FFFFFF",
    panel="#E4E8EE",
    dark=False,
    variables={
        "text-primary": "#003E8A",
        "text-secondary": "#5B2A86",
        "text-accent": "#6A0DAD",
        "text-warning": "#7A4100",
        "text-error": "#A8001C",
        "text-success": "#005A32",
        "text": "#000000",
        "text-muted": "#333333",
        "footer-key-foreground": "#003E8A",
        "block-cursor-foreground": "#FFFFFF",
        "block-cursor-background": "#003E8A",
    },
)

THEMES = (COLOUR_BLIND, PROJECTOR)


class Themes(ThemeProvider):
    """The palette's list of themes, durtui's own first: they are the ones that it was looked at in."""

    @property
    def commands(self) -> list[tuple[str, Callable[[], None]]]:
        """A theme's name, and what takes it."""
        own = [theme.name for theme in THEMES]
        return sorted(super().commands, key=lambda command: own.index(command[0]) if command[0] in own else len(own))
