"""``ftlab``, and ``python -m ftlab``: the command line."""

import sys
from contextlib import suppress
from typing import NoReturn


def main() -> NoReturn:
    """Runs the command line and exits; what asks for the version alone loads nothing else."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from ftlab._core import __version__

        # Where it cannot be written, the command line knows what to say.
        with suppress(OSError):
            sys.stdout.write(f"ftlab {__version__}\n")
            sys.stdout.flush()
            sys.exit(0)
    from ftlab.cli import main as run

    run()


if __name__ == "__main__":
    main()
