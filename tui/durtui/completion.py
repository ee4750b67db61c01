"""Completion: scripts by which a shell completes commands, flags and values. Cyclopts writes them; we say for whom."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from cyclopts import App, Parameter

from durcore.errors import Mistake, shown

Shell = Literal["bash", "zsh", "fish"]
SHELLS: tuple[Shell, ...] = get_args(Shell)


def register(app: App) -> None:
    """Add `durtui completion SHELL`, which prints a script, and `durtui --install-completion`, which installs it."""

    def completion(
        shell: Annotated[str, Parameter(help=f"the shell ({', '.join(SHELLS)})", completer=lambda _context: SHELLS)],
        /,
    ) -> None:
        """Print the script by which a shell completes durtui's commands, flags and values."""
        print(app.generate_completion(shell=_known(shell)))

    app.command(completion)
    app.register_install_completion_command(
        help="Install the completion script where the shell finds it, and load it in the shell's start-up file."
    )


def _known(name: str) -> Shell:
    for shell in SHELLS:
        if shell == name:
            return shell
    raise Mistake(f"shell(={shown(name)}) must be one of {', '.join(SHELLS)}")
