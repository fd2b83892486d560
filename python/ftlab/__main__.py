"""``python -m ftlab`` is the command line."""

from ftlab.cli import main

main()
