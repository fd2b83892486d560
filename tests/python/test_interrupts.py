"""An interrupt stops a command at once, even while nothing completes for a long time."""

from __future__ import annotations

import gzip
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from front import Cli, wait_until_busy

YEARS = ("--set", "workload.benchmark.kind=postmark", "--set", "host.operation_time=8760h")
STEADY = ("--set", "device.precondition=steady", "--set", "device.precondition_bound=0.0001%")


def stopped(cli: Cli, *arguments: str) -> float:
    """Returns how many seconds a command takes to end when it is interrupted at work."""
    command = [sys.executable, "-m", "ftlab", *arguments]
    with subprocess.Popen(command, cwd=cli.directory, stderr=subprocess.PIPE, text=True) as process:
        wait_until_busy(process)
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
        assert (process.returncode, errors) == (130, "interrupted\n")
    return time.monotonic() - sent


@pytest.mark.parametrize(
    "arguments",
    [
        # Regression: for simulated years nothing but timers expired, and signals were checked only on
        # completions.
        ("run", "coop-fast", *YEARS),
        ("crash", "crash", "--cuts", "1", "--operations", "4294967296"),
        ("crash", "crash", "--cuts", "1", *STEADY, "--set", "device.precondition_rounds=1000000"),
    ],
    ids=["timers", "a-leg-of-a-life", "preconditioning-before-cuts"],
)
def test_nothing_completes_for_long(cli: Cli, arguments: tuple[str, ...]) -> None:
    assert stopped(cli, *arguments) < 10


IMPORTED = """
import os, signal, sys
class Interrupted:
    def find_spec(self, name, *_):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupted())
sys.argv[1:] = ["trace", "generate", "out.parquet", "--requests", "10"]
from ftlab.__main__ import main
main()
"""


@pytest.mark.parametrize("module", ["ftlab._core", "ftlab.cli", "click", "ftlab.traces", "polars"])
def test_an_import_is_interrupted(tmp_path: Path, module: str) -> None:
    """Regression: until the command line was loaded, an interrupt caused a traceback."""
    command = [sys.executable, "-c", IMPORTED.format(module=module)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")
    assert not list(tmp_path.iterdir())


def repeated(path: Path, line: bytes) -> None:
    """Writes ten gigabytes of one repeated line, compressed to sixty megabytes."""
    member = gzip.compress(line * ((64 << 20) // len(line)), 1)
    path.write_bytes(gzip.compress(b"time_ns,op,offset,size\n") + member * 160)


@pytest.mark.parametrize("command", ["run", "info"])
def test_a_trace_that_holds_nothing_new_for_long(cli: Cli, command: str) -> None:
    """Regression: dropped lines did not count as progress, so signals were never checked while they were
    read.
    """
    repeated(cli.directory / "same.csv.gz", b"0,R,0,4096\n")
    window = ("--set", "workload.dedup=1h")
    arguments: tuple[str, ...]
    if command == "run":
        arguments = ("run", "map-plus", "--trace", "same.csv.gz", *window)
    else:
        arguments = ("trace", "info", "same.csv.gz", *window)
    assert stopped(cli, *arguments) < 10


def test_polars_does_not_take_the_interrupt() -> None:
    """Regression: polars' threads panicked under load, and reported it, before the process had ended."""
    script = """
import ctypes, signal
def handler():
    action = (ctypes.c_void_p * 32)()
    ctypes.CDLL(None).sigaction(signal.SIGINT, None, action)
    return action[0]
signal.signal(signal.SIGINT, lambda *_: None)
own = handler()
import polars
assert handler() != own, "polars takes none: _take_back_interrupts may go"
from ftlab.traces import interruptibly
interruptibly(lambda: None)
assert handler() == own
"""
    subprocess.run([sys.executable, "-c", script], check=True)
