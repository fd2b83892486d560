"""Studies on Dask: rows that equal those on threads, workers that die, engines that differ, traces that are
sent.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from campaign import long
from front import TRACE, Cli
from ftlab._core import UserError
from ftlab.studies import cluster, worker
from test_sweep import FILES, SLOW, STUDY, same, table
from test_tune import RANGES


@contextmanager
def started(*arguments: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", f"distributed.cli.{arguments[0]}", *arguments[1:]]
    log = (folder / f"{arguments[0]}.log").open("ab")
    with log, subprocess.Popen(command, cwd=folder, stdout=log, stderr=log) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)


@contextmanager
def scheduler(folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Starts a scheduler; yields its address and process."""
    said = folder / "scheduler.json"
    arguments = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(said))
    with started("dask_scheduler", *arguments, folder=folder) as process:
        for _ in range(600):
            if said.exists() and said.read_text().strip():
                break
            time.sleep(0.05)
        yield json.loads(said.read_text())["address"], process


def worker_of(address: str, folder: Path, *more: str) -> AbstractContextManager[subprocess.Popen[bytes]]:
    """Starts a worker: a process with one thread."""
    one = (address, "--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1", *more)
    return started("dask_worker", *one, folder=folder)


@contextmanager
def workers(folder: Path, count: int, *more: str) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """Starts a scheduler and workers; yields the address and the worker processes."""
    with ExitStack() as stack:
        address, _ = stack.enter_context(scheduler(folder))
        yield address, [stack.enter_context(worker_of(address, folder, *more)) for _ in range(count)]


@contextmanager
def client_at_work(cli: Cli, *where: str, **how: Any) -> Iterator[subprocess.Popen[str]]:
    """Starts a slow study with results in `out`; yields its process once some of them are there."""
    (cli.directory / "study.toml").write_text(SLOW)
    command = [sys.executable, "-m", "ftlab", "sweep", "study.toml", "--out", "out", "--dask", *where]
    with subprocess.Popen(command, cwd=cli.directory, stderr=subprocess.PIPE, text=True, **how) as client:
        folder = cli.directory / "out" / "json"
        while client.poll() is None and len(list(folder.glob("*.json"))) < 3:
            time.sleep(0.01)
        assert client.poll() is None
        yield client


def test_the_same_rows_on_processes_here(cli: Cli) -> None:
    (cli.directory / "study.toml").write_text(STUDY)
    cli.ok("sweep", "study.toml", "--out", "threads")
    cli.ok("sweep", "study.toml", "--out", "dask", "--dask", "local", "--jobs", "2")
    frames = [table(cli.directory / name) for name in ("threads", "dask")]
    assert same(frames[0]) == same(frames[1])
    assert frames[0].columns == frames[1].columns
    assert set(frames[0]["worker"]).isdisjoint(frames[1]["worker"])
    assert frames[0]["engine.identity"].to_list() == frames[1]["engine.identity"].to_list()


def test_a_worker_killed_in_the_middle(cli: Cli) -> None:
    (cli.directory / "study.toml").write_text(SLOW)
    cli.ok("sweep", "study.toml", "--out", "threads")
    with workers(cli.directory, 2) as (address, running):
        command = [sys.executable, "-m", "ftlab", "sweep", "study.toml", "--out", "dask", "--dask", address]
        with subprocess.Popen(command, cwd=cli.directory, stderr=subprocess.PIPE, text=True) as client:
            folder = cli.directory / "dask" / "json"
            while client.poll() is None and len(list(folder.glob("*.json"))) < 10:
                time.sleep(0.01)
            assert client.poll() is None
            running[0].send_signal(signal.SIGKILL)
            _, errors = client.communicate(timeout=100)
            assert client.returncode == 0, errors
    assert same(table(cli.directory / "dask")) == same(table(cli.directory / "threads"))


def lines(said: str) -> list[str]:
    """Returns the lines that a client prints, without its progress lines."""
    return [line for line in said.splitlines() if not line.startswith("ftlab: ")]


def test_no_worker_is_left(cli: Cli) -> None:
    """Regression: the client waited for ever without a message."""
    with workers(cli.directory, 1) as (address, running):
        with client_at_work(cli, address, "--dask-wait", "2") as client:
            running[0].kill()
            _, said = client.communicate(timeout=60)
        assert (client.returncode, lines(said)) == (
            2,
            [
                f"note: --dask {address}: no worker; waiting 2 s for one (--dask-wait)",
                f"error: --dask {address}: no worker for 2 s (--dask-wait); what is done is kept",
            ],
        )
        # Here the scheduler never had a worker.
        done = cli("sweep", "study.toml", "--out", "out", "--dask", address, "--dask-wait", "0")
        assert (done.returncode, len(lines(done.stderr))) == (2, 1), done.stderr
    kept = len(list((cli.directory / "out" / "json").glob("*.json")))
    assert f" runs, {kept} more already existed" in cli.ok("sweep", "study.toml", "--out", "out")


def test_a_worker_comes_back(cli: Cli) -> None:
    with workers(cli.directory, 1) as (address, running), client_at_work(cli, address) as client:
        running[0].kill()
        assert client.stderr and "no worker; waiting 60 s" in client.stderr.readline()
        with worker_of(address, cli.directory):
            _, said = client.communicate(timeout=300)
        assert (client.returncode, lines(said)) == (0, [f"note: --dask {address}: a worker is there"])


def test_a_scheduler_is_killed(cli: Cli) -> None:
    """Regression: the error was preceded by asyncio's tracebacks, and now and then reported as a bug in
    ftlab.
    """
    with (
        scheduler(cli.directory) as (address, process),
        worker_of(address, cli.directory),
        client_at_work(cli, address) as client,
    ):
        process.kill()
        _, said = client.communicate(timeout=60)
    assert (client.returncode, lines(said)) == (2, [f"error: --dask {address}: the scheduler is gone"])


@pytest.mark.parametrize("moment", ["starting", "working"])
def test_an_interrupt_from_a_terminal_prints_no_traceback(cli: Cli, moment: str) -> None:
    """Regression: an interrupt goes to all processes of the command, and the workers printed tracebacks."""
    if moment == "working":
        with client_at_work(cli, "local", "--jobs", "2", start_new_session=True) as client:
            os.killpg(client.pid, signal.SIGINT)
            _, said = client.communicate(timeout=60)
            assert (client.returncode, said) == (130, "interrupted\n")
        return
    (cli.directory / "study.toml").write_text(SLOW)
    command = [sys.executable, "-m", "ftlab", "sweep", "study.toml", "--out", "out", "--dask", "local"]
    with subprocess.Popen(
        command, cwd=cli.directory, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as client:
        # There are three processes: the command itself, the process that tracks its locks, and a worker that
        # is loading its modules.
        while client.poll() is None and len(of_session(client.pid)) < 3:
            time.sleep(0.01)
        time.sleep(0.3)
        os.killpg(client.pid, signal.SIGINT)
        _, said = client.communicate(timeout=60)
        assert (client.returncode, said) == (130, "interrupted\n")


def test_traces_that_a_worker_cannot_read_and_runs_that_fail(
    cli: Cli, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Results and failures equal those on threads, although the workers cannot read the traces at the
    client's paths.
    """
    (cli.directory / "volumes").mkdir()
    for place, name in enumerate(("a", "b", "bad")):
        (cli.directory / "volumes" / f"{name}.csv").write_text(TRACE.replace("900000", f"90000{place}"))
    bad = cli.directory / "volumes" / "bad.csv"
    bad.write_text(bad.read_text().replace("150000,R", "150000,Q"))
    (cli.directory / "study.toml").write_text(FILES)
    assert cli("sweep", "study.toml", "--out", "threads").returncode == 1
    elsewhere = tmp_path_factory.mktemp("worker")
    preload = ("--local-directory", str(elsewhere), "--preload", str(hiding(elsewhere)))
    with workers(elsewhere, 1, *preload) as (address, _):
        done = cli("sweep", "study.toml", "--out", "dask", "--dask", address)
    assert done.returncode == 1, done.stderr
    assert "error: 1 of 3 runs failed; the first: bad: " in done.stderr
    names = ("threads", "dask")
    assert len({same(table(cli.directory / name)) for name in names}) == 1
    errors = [table(cli.directory / name, "failures").drop("hash").rows() for name in names]
    assert errors[0] == errors[1]


def hiding(folder: Path, more: str = "") -> Path:
    """Writes a module for a worker to preload, which then sees only the traces that were sent to it."""
    path = folder / "hiding.py"
    path.write_text(
        "import ftlab.studies.worker as c\n"
        f"{more}"
        "of = c.__dict__.setdefault('of_test', c._hash)\n"
        "def hidden(path, changed):\n"
        "    if 'ftlab-traces' not in str(path):\n"
        "        raise OSError('hidden')\n"
        "    return of(path, changed)\n"
        "c._hash = hidden\n"
    )
    return path


ONE_TRACE = """
config = "map-plus"
[set]
"workload.trace" = "a.csv"
[axis.seed]
key = "seed"
range = [1, 8, 1]
"""


def test_a_trace_is_sent_once_to_each_worker(cli: Cli, tmp_path_factory: pytest.TempPathFactory) -> None:
    (cli.directory / "study.toml").write_text(ONE_TRACE)
    elsewhere = tmp_path_factory.mktemp("worker")
    counting = (
        "import os\n"
        "of_receive = c.__dict__.setdefault('of_receive', c.receive)\n"
        "def receive(trace, place, piece, dask_worker=None):\n"
        f"    with open({str(elsewhere / 'sent')!r}, 'a') as file:\n"
        "        file.write(f'{os.getpid()} {trace.sha256} {place}\\n')\n"
        "    return of_receive(trace, place, piece, dask_worker=dask_worker)\n"
        "c.receive = receive\n"
    )
    with workers(elsewhere, 2, "--preload", str(hiding(elsewhere, counting))) as (address, running):
        while_there = cli.ok("sweep", "study.toml", "--out", "dask", "--dask", address)
        # For another command, the worker already has the trace.
        again = cli.ok("sweep", "study.toml", "--out", "again", "--dask", address)
        pids = {process.pid for process in running}
    assert "8 runs" in while_there and "8 runs" in again
    sent = (elsewhere / "sent").read_text().splitlines()
    assert sent and len(sent) == len(set(sent)), "no piece twice to one worker"
    assert {int(line.split()[0]) for line in sent} <= pids


def test_a_trace_that_a_worker_has_no_room_for(cli: Cli, tmp_path_factory: pytest.TempPathFactory) -> None:
    (cli.directory / "study.toml").write_text(ONE_TRACE)
    elsewhere = tmp_path_factory.mktemp("worker")
    full = "import shutil\nshutil.disk_usage = lambda path: shutil._ntuple_diskusage(100, 90, 10)\n"
    with workers(elsewhere, 1, "--preload", str(hiding(elsewhere, full))) as (address, _):
        done = cli("sweep", "study.toml", "--out", "dask", "--dask", address)
    assert done.returncode == 1
    assert "error: 8 of 8 runs failed; the first: 1: " in done.stderr
    size = (cli.directory / "a.csv").stat().st_size
    assert f"a.csv: {size} B are more than the 10 B free on worker tcp://" in done.stderr
    assert table(cli.directory / "dask", "failures").height == 8


def killed_again_and_again(cli: Cli, kills: int, *where: str) -> None:
    """Kills the client at random moments; no finished run is repeated, and the rows are those of an
    undisturbed study.
    """
    cli.ok("sweep", "study.toml", "--out", "whole")
    folder = cli.directory / "out" / "json"
    command = [sys.executable, "-m", "ftlab", "sweep", "study.toml", "--out", "out", *where]
    draw, stamps = random.Random(16), dict[str, int]()
    for kill in range(kills):
        with subprocess.Popen(
            command, cwd=cli.directory, stdout=subprocess.DEVNULL, start_new_session=True
        ) as client:
            left = (len(table(cli.directory / "whole")) - len(stamps)) // (kills - kill)
            wanted = len(stamps) + draw.randint(0, max(left - 1, 0))
            while client.poll() is None and len(list(folder.glob("*.json"))) < wanted:
                time.sleep(0.005)
            time.sleep(draw.random() * 0.1)
            client.send_signal(signal.SIGKILL)
        # The processes that the client started end when it ends.
        for _ in range(400):
            if not (left_behind := of_session(client.pid)):
                break
            time.sleep(0.05)
        assert not left_behind
        now = {path.name: path.stat().st_mtime_ns for path in folder.glob("*.json")}
        assert stamps.items() <= now.items(), "a finished run was done again"
        stamps = now
    total = table(cli.directory / "whole").height
    printed = cli.ok("sweep", "study.toml", "--out", "out", *where)
    assert f"{total - len(stamps)} runs, {len(stamps)} more already existed" in printed
    assert same(table(cli.directory / "out")) == same(table(cli.directory / "whole"))


def of_session(session: int) -> list[int]:
    """Returns the processes of a session that are still running."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = path.read_text().rsplit(")", 1)[1].split()
            if int(fields[3]) == session and fields[0] != "Z":
                found.append(int(path.parent.name))
    return found


def test_a_client_killed_at_any_moment_goes_on(cli: Cli) -> None:
    (cli.directory / "study.toml").write_text(SLOW)
    with workers(cli.directory, 2) as (address, running):
        killed_again_and_again(cli, 20 if long() else 6, "--dask", address)
        assert all(process.poll() is None for process in running)


def test_processes_here_end_with_a_client_that_is_killed(cli: Cli) -> None:
    (cli.directory / "study.toml").write_text(SLOW)
    killed_again_and_again(cli, 3, "--dask", "local", "--jobs", "2")


def test_a_search_on_one_worker_is_that_on_one_thread(cli: Cli) -> None:
    (cli.directory / "tune.toml").write_text(RANGES)
    cli.ok("tune", "tune.toml", "--out", "threads", "--jobs", "1")
    with workers(cli.directory, 1) as (address, _):
        cli.ok("tune", "tune.toml", "--out", "dask", "--dask", address)
    texts = [(cli.directory / name / "trials.csv").read_text() for name in ("threads", "dask")]
    assert texts[0] == texts[1]
    cli.ok("tune", "tune.toml", "--out", "local", "--dask", "local", "--jobs", "2")
    assert (cli.directory / "local" / "trials.csv").read_text().count("\n") == 17


def test_another_engine_is_refused_before_anything_runs(cli: Cli) -> None:
    (cli.directory / "study.toml").write_text(STUDY)
    other = cli.directory / "other.py"
    other.write_text(
        "import ftlab.studies.plan as p\np.content = lambda path: 'another'\np.engine.cache_clear()\n"
    )
    with workers(cli.directory, 1, "--preload", str(other)) as (address, _):
        done = cli("sweep", "study.toml", "--out", "out", "--dask", address)
    assert done.returncode == 2
    assert "the engine of worker tcp://127.0.0.1:" in done.stderr
    assert "another, here it is " in done.stderr
    assert not list((cli.directory / "out" / "json").glob("*.json"))


def deadly(folder: Path, run: str) -> Path:
    """Writes a module for a worker to preload, which then dies of the run for which ``run``, a condition on
    the configuration's JSON ``text``, holds.
    """
    path = folder / "deadly.py"
    path.write_text(
        "import os, ftlab.studies.worker as c\n"
        "of = c.__dict__.setdefault('of_test', c.measure)\n"
        "def measure(how, config, **more):\n"
        "    text = config.json()\n"
        f"    if {run}:\n"
        "        os._exit(1)\n"
        "    return of(how, config, **more)\n"
        "c.measure = measure\n"
    )
    return path


def test_a_run_that_kills_its_workers_is_given_up(cli: Cli) -> None:
    (cli.directory / "study.toml").write_text(STUDY.replace("[1, 5, 1]", "[1, 2, 1]"))
    preload = deadly(cli.directory, """'"seed":2' in text and '"8KiB"' in text and 'map+' in text""")
    with workers(cli.directory, 4, "--preload", str(preload)) as (address, running):
        done = cli("sweep", "study.toml", "--out", "out", "--dask", address)
        time.sleep(0.2)
        left = sum(process.poll() is None for process in running)
    assert done.returncode == 1, done.stderr
    assert (
        "error: 1 of 8 runs failed; the first: map+ 8KiB 2: 3 workers died while they ran it" in done.stderr
    )
    assert table(cli.directory / "out").height == 7
    assert left == 1


def test_a_run_that_waited_behind_a_deadly_one_is_done(cli: Cli) -> None:
    """Regression: with Dask's default settings a worker holds a task more than it has threads, and what
    waited there while three workers died was reported as what they died of: 2 of 6 runs.
    """
    (cli.directory / "study.toml").write_text(ONE_TRACE.replace("[1, 8, 1]", "[1, 6, 1]"))
    preload = ("--preload", str(deadly(cli.directory, "'\"seed\":1' in text")))
    command = [sys.executable, "-m", "ftlab", "sweep", "study.toml", "--out", "out", "--dask"]
    with ExitStack() as stack:
        address, _ = stack.enter_context(scheduler(cli.directory))
        client = stack.enter_context(
            subprocess.Popen([*command, address], cwd=cli.directory, stderr=subprocess.PIPE, text=True)
        )
        # One worker at a time, so that the same run waits behind the deadly one on each.
        for _ in range(4):
            worker = stack.enter_context(worker_of(address, cli.directory, *preload))
            while client.poll() is None and worker.poll() is None:
                time.sleep(0.05)
        _, said = client.communicate(timeout=60)
    assert client.returncode == 1, said
    assert "error: 1 of 6 runs failed; the first: 1: 3 workers died while they ran it" in said
    assert table(cli.directory / "out").height == 5


def test_a_run_that_never_begins_is_not_done_again_for_ever() -> None:
    """Workers may die of a run before it says that it begins."""
    distributed = pytest.importorskip("distributed")
    killed = distributed.scheduler.KilledWorker("ftlab-1-a", None, 2)
    mine = cluster.Cluster.__new__(cluster.Cluster)
    mine._distributed, mine._waited = distributed, Counter()
    mine._client = SimpleNamespace(get_events=lambda topic: ())
    future = SimpleNamespace(key="ftlab-1-a", status="error", exception=lambda: killed)
    answers = [mine._answer(future)[0] for _ in range(cluster.MOST_WAITED + 1)]
    assert answers == ["waited"] * cluster.MOST_WAITED + ["internal"]


def test_a_policy_in_python_is_the_same_on_every_worker(cli: Cli) -> None:
    example = Path(__file__).parents[2] / "examples" / "policies" / "shortest.py"
    own = cli.directory / "own.py"
    own.write_text(example.read_text())

    def study(path: str) -> None:
        name = f"python:{path}:ShortestFirst"
        text = STUDY.replace("[1, 5, 1]", "[1, 1, 1]").replace('"map+"]', f'"{name}"]')
        (cli.directory / "study.toml").write_text(text)

    sweep = ("sweep", "study.toml", "--allow-python")
    study(str(own))
    cli.ok(*sweep, "--out", "threads")
    elsewhere = cli.directory / "elsewhere"
    elsewhere.mkdir()
    with workers(elsewhere, 1) as (address, _):
        cli.ok(*sweep, "--out", "dask", "--dask", address)
        assert same(table(cli.directory / "dask")) == same(table(cli.directory / "threads"))
        study("own.py")
        done = cli(*sweep, "--out", "relative", "--dask", address)
        assert (done.returncode, "own.py:ShortestFirst: not there, or another file" in done.stderr) == (
            1,
            True,
        )
        study(str(own))
        own.write_text(example.read_text() + "# changed\n")
        done = cli(*sweep, "--out", "changed", "--dask", address)
        assert (done.returncode, "changed since it was loaded" in done.stderr) == (1, True), done.stderr


def test_a_scheduler_that_is_not_there(cli: Cli) -> None:
    (cli.directory / "study.toml").write_text(STUDY)
    done = cli("sweep", "study.toml", "--out", "out", "--dask", "tcp://127.0.0.1:9")
    assert (done.returncode, "error: --dask tcp://127.0.0.1:9: " in done.stderr) == (2, True)
    assert "Traceback" not in done.stderr


def test_a_trace_larger_than_what_is_free(tmp_path: Path) -> None:
    class Worker:
        local_directory = str(tmp_path)
        address = "tcp://w"

    trace = worker.Trace("/a/b.csv", 1 << 60, "0" * 64)
    said = worker.receive(trace, 0, b"x", dask_worker=Worker)
    assert said is not None
    assert "/a/b.csv: 1,152,921,504,606,846,976 B are more than the" in said
    assert "free on worker tcp://w" in said


def test_a_piece_of_a_trace_goes_through_no_link(tmp_path: Path) -> None:
    """Regression: a link under the name of an unfinished trace was followed."""

    class Worker:
        local_directory = str(tmp_path)
        address = "tcp://w"

    folder = tmp_path / "ftlab-traces" / ("0" * 64)
    folder.mkdir(parents=True)
    (folder / "b.csv.part").symlink_to(tmp_path / "victim")
    said = worker.receive(worker.Trace("/a/b.csv", 2, "0" * 64), 0, b"x", dask_worker=Worker)
    assert said is not None and not (tmp_path / "victim").exists()


def test_without_dask_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UserError, match=r"pip install 'ftlab\[dask\]'"):
        cluster.Cluster("local")


def test_nothing_of_it_is_imported_otherwise(cli: Cli) -> None:
    (cli.directory / "study.toml").write_text(STUDY.replace("[1, 5, 1]", "[1, 1, 1]"))
    script = (
        "import sys; from ftlab.cli import call;"
        "assert call(['sweep', 'study.toml', '--out', 'out']) == 0;"
        "assert not {'dask', 'distributed', 'optuna'} & sys.modules.keys()"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=cli.directory, check=False, capture_output=True)
    assert done.returncode == 0, done.stderr
