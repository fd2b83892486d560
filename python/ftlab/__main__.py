"""``ftlab``, and ``python -m ftlab``: the command line."""

import sys

from ftlab import process


def main() -> None:
    """Runs the command line and exits; `--version` by itself is answered without loading the commands."""
    process.begin()
    if sys.argv[1:] in (["--version"], ["-V"]):
        from ftlab._core import __version__

        try:
            sys.stdout.write(f"ftlab {__version__}\n")
            sys.stdout.flush()
            sys.exit(0)
        except OSError:
            # The command line, which is loaded below, meets the same error and reports it.
            pass
    from ftlab.cli import main as run

    run()


if __name__ == "__main__":
    main()
