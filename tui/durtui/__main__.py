"""The entry of the `durtui` command: small, so that Ctrl-C is answered before the rest is loaded."""

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command; end with its exit code."""
    try:
        from durtui.cli import main as run_command

        sys.exit(run_command(sys.argv[1:]))
    except KeyboardInterrupt:
        print("durtui: interrupted", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
