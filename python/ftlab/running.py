"""The options of a run besides its configuration, and the only function that starts a run."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ftlab import _core
from ftlab.results.result import Result

if TYPE_CHECKING:
    from ftlab._core import Config, Device, MakeChunks, Preconditioning, Progress, RunResult


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The keywords of the core's `run`, declared once; `ftlab.run` documents them."""

    collect: bool = False
    check: bool = False
    progress: Progress | None = None
    preconditioning: Preconditioning | None = None
    requests_csv: str | os.PathLike[str] | None = None
    timeline: str | os.PathLike[str] | None = None
    timeline_window: str | None = None
    save_state: str | os.PathLike[str] | None = None
    load_state: str | os.PathLike[str] | None = None
    device: Device | None = None
    """A device in memory, of whose state at time 0 the run gets a copy."""
    chunks: MakeChunks | None = None
    """The requests to run, in place of the configuration's trace."""
    only: str | None = None
    """The only tenant that sends requests; with None all of them do."""


PLAIN = RunOptions()


def run_core(config: Config, options: RunOptions = PLAIN) -> RunResult:
    """Runs a resolved configuration."""
    return _core.run(config, **vars(options))


def run_config(config: Config, options: RunOptions = PLAIN) -> Result:
    """Runs a resolved configuration and returns what `ftlab.run` returns."""
    return Result.of_run(run_core(config, options))
