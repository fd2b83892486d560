"""Policies in Python: the shipped policies compared with the built-in ones, and errors in policies."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ftlab
from front import Cli, wait_until_busy
from ftlab import Request
from test_simulation import load, write_trace

EXAMPLES = Path(__file__).parents[2] / "examples/policies"
COLLECTS = {"flash.blocks_per_plane": 96, "device.precondition": "fill", "ftl.over_provisioning": "20%"}


def example(name: str) -> str:
    """Returns the name of a shipped policy, `file:class`."""
    return f"python:{EXAMPLES}/{name}"


def measured(config: str, trace: Path, **options: Any) -> tuple[dict[str, Any], Any]:
    result = ftlab.run(config, trace=trace, check=True, workload__out_of_range="wrap", **options)
    values = result.to_dict()
    del values["engine"], values["config"], values["scheduler"]["name"]
    return values, result.requests


@pytest.mark.parametrize(
    ("key", "own", "built_in", "settings"),
    [
        ("host.scheduler", "schedulers.py:Noop", "noop", {"host.deadline": "none"}),
        ("host.scheduler", "schedulers.py:Row", "row", {}),
        ("host.scheduler", "schedulers.py:Rb", "rb", {"host.late": "request"}),
        (
            "host.scheduler",
            "schedulers.py:Rb",
            "rb",
            {"host.late": "request", "host.deadline": "1ms", "host.merge_limit": "64KiB"},
        ),
        ("ftl.gc", "victims.py:Greedy", "greedy", COLLECTS),
        ("ftl.gc", "victims.py:Fifo", "fifo", COLLECTS),
        ("ftl.gc", "victims.py:Greedy", "greedy", {**COLLECTS, "flash.channels": 2, "ftl.kind": "page"}),
        ("ftl.placement", "placements.py:GcApart", "gc-apart", COLLECTS),
        (
            "ftl.placement",
            "placements.py:GcApart",
            "gc-apart",
            {**COLLECTS, "ftl.kind": "page", "device.precondition": "random:100%"},
        ),
        ("ftl.translation_gc", "victims.py:Greedy", "greedy", {**COLLECTS, "ftl.mapping_cache": "2KiB"}),
        ("ftl.cache_policy", "replacements.py:Lru", "lru", {"ftl.mapping_cache": "2KiB"}),
        (
            "ftl.cache_policy",
            "replacements.py:Lru",
            "lru",
            {**COLLECTS, "ftl.mapping_cache": "2KiB", "device.precondition": "random:100%"},
        ),
    ],
)
def test_a_shipped_policy_is_the_built_in_one(
    tmp_path: Path, key: str, own: str, built_in: str, settings: dict[str, Any]
) -> None:
    """A shipped policy leads to the same result, except for its name, and to the same per-request rows."""
    trace = write_trace(tmp_path / "a.csv", load(7, 3000))
    (expected, rows), (found, own_rows) = (
        measured("map-plus", trace, set={**settings, key: name}) for name in (built_in, example(own))
    )
    assert found == expected
    assert own_rows.equals(rows)
    if key.endswith(("gc", "placement")):
        assert sum(expected["flash"]["erases"].values()) > 0


@pytest.mark.parametrize(
    ("parameters", "keys"),
    [
        ("", {}),
        (
            ":read_expire=2ms:write_expire=10ms:writes_starved=1:fifo_batch=4",
            {
                **{"host.read_expire": "2ms", "host.write_expire": "10ms"},
                **{"host.writes_starved": 1, "host.fifo_batch": 4},
            },
        ),
        (":fifo_batch=3", {"host.fifo_batch": 3, "host.merge_limit": "64KiB"}),
    ],
)
def test_mq_deadline_in_python_has_the_order_of_the_built_in_one(
    tmp_path: Path, parameters: str, keys: dict[str, Any]
) -> None:
    """A scheduler that needs the time, parameters and merged requests; only `expired` is not its to say."""
    trace = write_trace(tmp_path / "a.csv", load(7, 3000))
    shared = {"host.deadline": "none", **keys}
    (expected, rows), (found, own) = (
        measured("map-plus", trace, set={**shared, "host.scheduler": name})
        for name in ("mq-deadline", example("deadline.py:MqDeadline") + parameters)
    )
    for part in ("latency", "wait", "access", "elapsed_ns", "flash", "mapping"):
        assert found[part] == expected[part], part
    assert own.drop("expired").equals(rows.drop("expired"))
    assert (
        not keys
        or rows["dispatch_ns"].to_list()
        != measured("map-plus", trace, set={"host.deadline": "none", "host.scheduler": "noop"})[1][
            "dispatch_ns"
        ].to_list()
    )


@pytest.mark.parametrize("depth", [1, 3])
def test_a_scheduler_that_counts_completions_limits_what_is_in_the_device(tmp_path: Path, depth: int) -> None:
    trace = write_trace(tmp_path / "a.csv", load(7, 1000))
    name = f"{example('deadline.py:Limited')}:depth={depth}"
    set_ = {"host.scheduler": name, "host.deadline": "none", "flash.blocks_per_plane": 64}
    _, rows = measured("vios", trace, set=set_)
    changes = sorted(
        [(at, -1) for at in rows["complete_ns"].to_list()] + [(at, 1) for at in rows["dispatch_ns"].to_list()]
    )
    outstanding, most = 0, 0
    for _, change in changes:
        outstanding += change
        most = max(most, outstanding)
    assert most == depth


class Clocked(ftlab.HostScheduler):
    """Notes the times that it is told, and that they never go back."""

    def __init__(self, least: float = 0, word: str = "no") -> None:
        self.queue: list[int] = []
        self.seen = [0]
        self.least, self.word = least, word

    def note(self) -> None:
        assert self.now_ns >= self.seen[-1]
        self.seen.append(self.now_ns)

    def admit(self, request: Request) -> None:
        self.note()
        assert self.now_ns >= request.arrival_ns
        self.queue.append(request.id)

    def choose(self) -> int | None:
        self.note()
        return self.queue.pop(0) if self.queue else None

    def completed(self, id: int) -> None:  # noqa: A002 - as above
        self.note()

    def stats(self) -> list[ftlab.Stat]:
        times = len(set(self.seen))
        return [
            ftlab.Stat("times", times, "", "different times"),
            ftlab.Stat("least", self.least, "ns", self.word),
        ]


def test_time_and_parameters_reach_the_object(trace: Path) -> None:
    policy = Clocked.using(least="2.5ms", word="yes")
    result = ftlab.run("map-plus", trace=trace, host__scheduler=policy, host__deadline="none")
    own, legend = result.to_dict()["own"]["scheduler"], result.to_dict()["own_legend"]
    assert own["times"] > 2
    assert own["least"] == 2_500_000
    assert legend[1]["doc"] == "yes"
    assert result.scheduler.name == "python:Clocked:least=2.5ms:word=yes"


def test_parameters_that_do_not_exist_are_named(trace: Path) -> None:
    name = example("deadline.py:MqDeadline:fifo=1")
    expected = r"unexpected keyword argument 'fifo'; its parameters are: read_expire, .*fifo_batch"
    with pytest.raises(ftlab.UserError, match=expected):
        ftlab.run("map-plus", trace=trace, set={"host.scheduler": name})
    with pytest.raises(ftlab.UserError, match=r"Oldest: .* its parameters are: none"):
        Oldest.using(depth=2)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("fifo_batch=1:fifo_batch=2", "fifo_batch is there twice; remove one"),
        ("fifo_batch=", "fifo_batch= has no"),
    ],
)
def test_a_parameter_has_one_value(more: str, said: str) -> None:
    """Regression: the last of two won, and no value was an empty text."""
    with pytest.raises(ftlab.UserError, match=said):
        ftlab.run("map-plus", set={"host.scheduler": example(f"deadline.py:MqDeadline:{more}")})


def test_a_class_that_lacks_a_parameter_is_refused_alike_with_and_without_others(tmp_path: Path) -> None:
    file = tmp_path / "p.py"
    file.write_text(
        "import ftlab\nclass P(ftlab.HostScheduler):\n    def __init__(self, need, more=1): pass\n"
    )
    said = set()
    for more in ("", ":more=2"):
        with pytest.raises(ftlab.UserError) as refused:
            ftlab.run("map-plus", set={"host.scheduler": f"python:{file}:P{more}"})
        said.add(str(refused.value).removeprefix(f"python:{file}:P{more}: "))
    assert said == {"P: missing a required argument: 'need'; its parameters are: need, more"}
    with pytest.raises(ftlab.UserError, match=r"No such file .*; write .*:NAME=VALUE"):
        ftlab.run("map-plus", set={"host.scheduler": f"python:{file}:P:need"})


class Oldest(ftlab.HostScheduler):
    """Chooses in the order of arrival."""

    def __init__(self) -> None:
        self.queue: list[int] = []

    def admit(self, request: Request) -> None:
        self.queue.append(request.id)

    def choose(self) -> int | None:
        return self.queue.pop(0) if self.queue else None

    def remove(self, id: int) -> None:  # noqa: A002 - what it is called everywhere
        self.queue.remove(id)


def test_a_class_stands_for_its_name(trace: Path) -> None:
    comparison = ftlab.compare(
        "map-plus", {"host.scheduler": ["noop", Oldest, "map+"]}, trace=trace, host__deadline="none"
    )
    assert [variant.label for variant in comparison.variants] == ["noop", "python:Oldest", "map+"]
    noop, oldest, _ = (variant.result for variant in comparison.variants)
    assert oldest.scheduler.name == "python:Oldest"
    assert oldest.latency.to_dict() == noop.latency.to_dict()


def test_classes_of_one_name_are_told_apart(trace: Path) -> None:
    def another(says: int) -> type:
        class Policy(Oldest):
            def admit(self, request: Request) -> None:
                super().admit(request)
                assert says >= 0, f"the one of {says}"

        return Policy

    with pytest.raises(ftlab.UserError, match="the one of -2"):
        ftlab.compare("map-plus", {"host.scheduler": [another(1), another(-2)]}, trace=trace)


def test_what_a_class_is_must_be_a_policy(trace: Path) -> None:
    with pytest.raises(ftlab.UserError, match=r"derived from one of ftlab.HostScheduler"):
        ftlab.run("map-plus", set={"host.scheduler": dict}, trace=trace)
    with pytest.raises(ftlab.UserError, match=r"Oldest is a HostScheduler.*takes a Vic"):
        ftlab.run("map-plus", set={"ftl.gc": Oldest}, trace=trace)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("def choose(self): return 99", r"choose\(\) at \d+ ns: request 99 is not pending"),
        ("def choose(self): return [1, 1]", r"request 1 is not pending"),
        ("def choose(self): return 'x'", r"gave 'x'; it gives the id of a request, a list of ids, or None"),
        ("def choose(self): return (n for n in iter(int, 1))", "gave <generator"),
        ("def choose(self): return None", r"chooses none of the \d+ requests that are pending"),
        ("def choose(self): return []", r"chooses none of the \d+ requests that are pending"),
        ("def choose(self): return 1 / 0", r"choose\(\) at \d+ ns: ZeroDivisionError: division by zero"),
        ("def admit(self, request): return -1", "admit.*a batch's number is a whole number from 1"),
        ("def admit(self, request): request.nothing", r"admit\(\) at 0 ns, request 1: AttributeError"),
        ("def __init__(self): raise OSError('no')", r"__init__\(\) at 0 ns: OSError: no"),
    ],
)
def test_what_goes_wrong_in_a_policy_is_the_users_error(cli: Cli, body: str, says: str) -> None:
    text = f"""
        import ftlab

        class Wrong(ftlab.HostScheduler):
            def __init__(self): self.queue = []
            def admit(self, request): self.queue.append(request.id)
            def choose(self): return self.queue.pop(0) if self.queue else None
            def remove(self, id): self.queue.remove(id)
            {body}
    """
    (cli.directory / "wrong.py").write_text(textwrap.dedent(text))
    done = cli("run", "map-plus", "--trace", "a.csv", "--set", "host.scheduler=python:wrong.py:Wrong")
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith(("error: python:wrong.py:Wrong: ", "error: host.scheduler "))
    assert re.search(says, done.stderr), done.stderr
    if "Error: " in done.stderr:
        assert 'wrong.py", line' in done.stderr
        assert "ftlab/" not in done.stderr


@pytest.mark.parametrize(
    ("key", "text", "says"),
    [
        (
            "ftl.gc",
            "class P(ftlab.VictimPolicy):\n    def choose(self, candidates): return 10**6",
            "row of a cand",
        ),
        (
            "ftl.gc",
            "class P(ftlab.VictimPolicy):\n    def choose(self, candidates): return None",
            "gave None",
        ),
        (
            "ftl.gc",
            "class P(ftlab.VictimPolicy):\n    def choose(self, candidates):\n"
            "        return int(candidates.valid.argmax())",
            "in succession had no page to gain",
        ),
        (
            "ftl.placement",
            "class P(ftlab.Placement):\n    fronts = 2\n    def front(self, *page): return 2",
            r"gave 2 for page \d+; it gives the number of a front, from 0 to 1",
        ),
        (
            "ftl.placement",
            "class P(ftlab.Placement):\n    fronts = 64",
            "fronts is 64; it is a whole number from 1 to 63",
        ),
        (
            "ftl.cache_policy",
            "class P(ftlab.Replacement):\n    def insert(self, key): pass\n"
            "    def victim(self): return 10**6",
            "gave 1000000, which is not a key in the cache",
        ),
    ],
)
def test_a_wrong_choice_below_the_host_is_the_users_error(
    tmp_path: Path, key: str, text: str, says: str
) -> None:
    trace = write_trace(tmp_path / "a.csv", load(7, 3000))
    (tmp_path / "p.py").write_text(f"import ftlab\n{text}\n")
    settings = {**COLLECTS, "ftl.mapping_cache": "1KiB", key: f"python:{tmp_path}/p.py:P"}
    with pytest.raises(ftlab.UserError, match=says):
        measured("map-plus", trace, set=settings)


def test_a_policys_file_and_class_must_be_there(cli: Cli) -> None:
    (cli.directory / "some.py").write_text("import ftlab\nclass Mine(ftlab.HostScheduler): pass\nother = 1\n")
    (cli.directory / "bad.py").write_text("import ftlab\nraise ValueError('at once')\n")
    for name, says in {
        "python:none.py:Mine": "none.py: No such file or directory",
        "python:some.py:Min": "has no class Min; its policies are: Mine",
        "python:some.py:other": "a policy is a class derived from",
        "python:some.py": 'write "python:FILE.py:CLASS"',
        "python:bad.py:Mine": "cannot be loaded: ValueError: at once",
    }.items():
        done = cli("run", "map-plus", "--trace", "a.csv", "--set", f"host.scheduler={name}")
        assert (done.returncode, says in done.stderr) == (2, True), done.stderr


LEAVES_A_MARK = """
import pathlib, ftlab
pathlib.Path("mark").touch()
class P(ftlab.HostScheduler): pass
"""
BY_NAME = 'preset = "map-plus"\n[host]\nscheduler = "python:p.py:P"\n'
STUDY = """
title = "t"
kind = "bars"
metric = "latency.all.mean_ns"
unit = "ms"
config = "map-plus"
[[axis]]
key = "host.scheduler"
values = ["noop", "python:p.py:P"]
"""
TUNING = """
config = "map-plus"
minimize = ["latency.all.mean_ns"]
runs = 2
[parameter.scheduler]
key = "host.scheduler"
choices = ["noop", "python:p.py:P"]
"""


@pytest.mark.parametrize(
    ("text", "command"),
    [
        (BY_NAME, "run"),
        (BY_NAME, "compare --vary ftl.kind=dftl,page"),
        (BY_NAME, "crash"),
        (BY_NAME, "serve --nbd unix:s"),
        (BY_NAME + '[workload]\ntrace = "a.csv"\n', "run --set ftl.kind=page"),
        (STUDY, "sweep --out out"),
        (TUNING, "tune --out out"),
        ('[config]\npreset = "map-plus"\nhost.scheduler = "python:p.py:P"\n', "trace fit --out out"),
        (BY_NAME, "trace fit a.csv --out out.toml --config"),
        ('[paper]\ntitle = "python:p.py:P"\n', "reproduce vios --root ."),
    ],
)
def test_what_a_file_names_does_not_run_unasked(cli: Cli, text: str, command: str) -> None:
    """Regression: a configuration from elsewhere ran code, though SECURITY.md promises that none does."""
    (cli.directory / "p.py").write_text(LEAVES_A_MARK)
    (cli.directory / "papers/vios").mkdir(parents=True)
    for name in ("papers/traces.toml", "papers/vios/paper.toml", "c.toml"):
        (cli.directory / name).write_text(text)
    words = command.split()
    # The file is the argument after the command's name or, if it is an option's value, the last word.
    at = len(words) if words[-1] in ("--config", ".") else 2 if words[0] == "trace" else 1
    if words[-1] != ".":
        words.insert(at, "c.toml")
    done = cli(*words)
    assert done.returncode == 2, done
    assert "python:p.py:P is code that would run, and a file names it" in done.stderr
    assert "--allow-python" in done.stderr
    assert not (cli.directory / "mark").exists(), "it ran"
    cli(*words, "--allow-python", "--help")
    assert not (cli.directory / "mark").exists(), "it ran"


def test_a_configuration_in_python_is_asked_about_too(tmp_path: Path, trace: Path) -> None:
    """Classes in a mapping need permission, as the mapping may come from a file; only those in `set` are the
    caller's own.
    """
    (tmp_path / "own.py").write_text((EXAMPLES / "schedulers.py").read_text())
    name = f"python:{tmp_path}/own.py:Rb"
    configuration = {"preset": "map-plus", "host": {"scheduler": name}}
    with pytest.raises(ftlab.UserError, match="allow_python"):
        ftlab.run(configuration, trace=trace)
    result = ftlab.run("map-plus", set={"host.scheduler": name}, trace=trace)
    again = ftlab.run(result.config, trace=trace)
    assert again.latency == result.latency, "a name that was given is known from then on"


def test_a_configuration_file_names_a_policy(cli: Cli) -> None:
    (cli.directory / "c.toml").write_text(
        f'preset = "map-plus"\n[host]\nscheduler = "{example("schedulers.py:Rb")}"\n'
    )
    cli.ok("run", "c.toml", "--trace", "a.csv", "--allow-python", "--json", "out.json")
    assert "schedulers.py:Rb" in (cli.directory / "out.json").read_text()
    (cli.directory / "out.json").unlink()
    own = ("--set", f"host.scheduler={example('schedulers.py:Rb')}")
    cli.ok("run", "c.toml", "--trace", "a.csv", *own, "--json", "out.json")


def test_an_interrupt_ends_a_policy_that_never_answers(cli: Cli) -> None:
    (cli.directory / "hang.py").write_text(
        "import ftlab\nclass P(ftlab.HostScheduler):\n"
        "    def admit(self, request):\n        while True: pass\n"
    )
    command = [sys.executable, "-m", "ftlab", "run", "map-plus", "--trace", "a.csv"]
    process = subprocess.Popen(
        [*command, "--set", "host.scheduler=python:hang.py:P"],
        cwd=cli.directory,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until_busy(process)
    process.send_signal(signal.SIGINT)
    assert (process.communicate(timeout=20)[1], process.returncode) == ("interrupted\n", 130)


def test_a_simulation_that_a_policy_ended_says_why(trace: Path) -> None:
    class Once(Oldest):
        def choose(self) -> int | None:
            raise RuntimeError("enough")

    device = ftlab.Simulation("map-plus", set={"host.scheduler": Once})
    device.submit("W", 0, 4096)
    with pytest.raises(ftlab.UserError, match="enough") as raised:
        device.run_until_idle()
    assert isinstance(raised.value.__cause__, RuntimeError)
    with pytest.raises(ftlab.InternalError, match=r"ended early: .*enough"):
        device.submit("W", 0, 4096)


def test_a_changed_file_is_another_policy(tmp_path: Path, trace: Path) -> None:
    file = tmp_path / "p.py"
    name = f"python:{os.fspath(file)}:P"
    body = "import ftlab\nclass P(ftlab.HostScheduler):\n    def admit(self, request): raise OSError('{}')\n"
    for says in ("the first", "the second"):
        file.write_text(body.format(says))
        with pytest.raises(ftlab.UserError, match=says):
            ftlab.run("map-plus", set={"host.scheduler": name}, trace=trace)


def test_the_idea_of_the_docs_lies_between_noop_and_map_plus() -> None:
    """Measures the latencies that docs/try-an-idea.md states."""
    names = ["noop", example("shortest.py:ShortestFirst"), "map+"]
    trace = EXAMPLES.parents[1] / "traces/phone-mix.csv.gz"
    variants = ftlab.compare("map-plus", {"host.scheduler": names}, trace=trace).variants
    means = [round(variant.result.latency.all.mean_ns / 1e6, 2) for variant in variants]
    assert means == [16.57, 14.56, 9.92]
    page = (EXAMPLES.parents[1] / "docs/try-an-idea.md").read_text()
    assert all(f"{mean} ms" in page for mean in means)
    assert variants[1].result.to_dict()["own"]["scheduler"]["passed"] == 25_437


class Counting(Oldest):
    """A scheduler that reports how many requests it chose."""

    def __init__(self) -> None:
        super().__init__()
        self.chosen = 0

    def choose(self) -> int | None:
        self.chosen += 1
        return super().choose()

    def stats(self) -> Iterator[ftlab.Stat]:
        yield ftlab.Stat("chosen", self.chosen, "requests", "taken out by choice")
        yield ftlab.Stat("per_page", 0.25, "", "a ratio")


class Turning(ftlab.VictimPolicy):
    """A victim policy that reports how many victims it chose."""

    def __init__(self) -> None:
        self.named = 0

    def choose(self, candidates: ftlab.Candidates) -> int:
        self.named += 1
        return int(candidates.valid.argmin())

    def stats(self) -> list[ftlab.Stat]:
        return [ftlab.Stat("named", self.named, "blocks", "victims")]


def test_figures_of_ones_own_are_in_the_result_and_all_that_shows_it(trace: Path, tmp_path: Path) -> None:
    comparison = ftlab.compare(
        "map-plus", {"host.scheduler": ["noop", Counting]}, trace=trace, host__deadline="none"
    )
    noop, counting = (variant.result for variant in comparison.variants)
    assert "own" not in noop and "own_legend" not in noop and noop.own is None
    assert counting.own is not None and counting.own_legend is not None
    assert counting.own["scheduler"] == {"chosen": counting.trace.requests, "per_page": 0.25}
    legend = {"part": "scheduler", "name": "chosen", "unit": "requests", "doc": "taken out by choice"}
    assert counting.own_legend[0] == legend
    chosen = f"{counting.trace.requests:,}"
    assert f"    scheduler chosen: {chosen} requests (taken out by choice)\n" in str(counting)
    assert "    scheduler per_page: 0.2500 (a ratio)\n" in str(counting) and "own" not in str(noop)
    assert re.search(rf"^  scheduler chosen, requests +- +{chosen}", str(comparison), re.MULTILINE)
    frame = comparison.to_polars()
    assert frame["own.scheduler.chosen"].to_list() == [None, counting.trace.requests]
    comparison.html(tmp_path / "a.html")
    assert '"own":{"scheduler":{"chosen":' in (tmp_path / "a.html").read_text()


def test_a_victim_policy_and_a_simulation_report_their_figures() -> None:
    load = {"workload.synthetic.requests": 3000, "workload.synthetic.read_share": "10%"}
    result = ftlab.run("map-plus", set={"ftl.gc": Turning, **COLLECTS, **load})
    device = ftlab.Simulation("map-plus", set={"host.scheduler": Counting})
    device.submit("W", 0, 4096)
    device.run_until_idle()
    own = device.result().own
    assert own is not None and own["scheduler"]["chosen"] == 1
    assert result.own is not None and result.own["gc"]["named"] == result.flash.erases["gc"] > 0


def test_a_study_has_a_column_for_a_figure(cli: Cli) -> None:
    import polars as pl

    policy = example("shortest.py:ShortestFirst")
    (cli.directory / "study.toml").write_text(
        'config = "map-plus"\n[set]\n"workload.synthetic.requests" = 300\n'
        f'[axis.scheduler]\nkey = "host.scheduler"\nvalues = ["noop", "{policy}"]\n'
    )
    cli.ok("sweep", "study.toml", "--out", "out", "--allow-python")
    frame = pl.read_parquet(cli.directory / "out" / "runs.parquet")
    passed = frame["own.scheduler.passed"].to_list()
    assert passed[0] is None and passed[1] >= 0
    assert not [name for name in frame.columns if "legend" in name]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("return 3", r"stats\(\) at \d+ ns: TypeError"),
        ("return [('a', 'many', '', '')]", r"gave \[\('a', 'many', '', ''\)\]; it gives ftlab.Stat"),
        ("yield 1 / 0", r"stats\(\) at \d+ ns: ZeroDivisionError"),
        ("yield ftlab.Stat('A b', 1, '', '')", 'named a figure "A b"; a name is of small letters'),
    ],
)
def test_a_wrong_figure_is_the_users_error(
    cli: Cli, trace: Path, tmp_path: Path, body: str, says: str
) -> None:
    file = tmp_path / "p.py"
    shipped = (EXAMPLES / "shortest.py").read_text()
    file.write_text(re.sub(r"return \[ftlab\.Stat.*", lambda _: body, shipped))
    policy = f"host.scheduler=python:{file}:ShortestFirst"
    done = cli("run", "map-plus", "--trace", str(trace), "--set", policy)
    assert done.returncode == 2 and re.search(says, done.stderr), done.stderr


def test_a_placement_is_told_and_kept_with_a_saved_device(tmp_path: Path) -> None:
    """The shipped placement estimates lifetimes, and on a saved device it goes on where it was."""
    load = {"workload.synthetic.requests": 4000, "workload.synthetic.read_share": "0%"}
    own = {"ftl.placement": example("placements.py:ByLifetime"), "ftl.kind": "page"}
    common = {**COLLECTS, **load, **own, "device.precondition": "random:100%"}
    state = tmp_path / "device"
    first, again = (
        ftlab.run("map-plus", set=common, save_state=state),
        ftlab.run("map-plus", set=common, load_state=state),
    )
    assert first.placement is not None and first.own is not None and again.own is not None
    fronts: list[Any] = list(first.placement.fronts)
    short, long, copies = fronts
    assert [front["name"] for front in (short, long, copies)] == ["short-lived", "long-lived", "copies"]
    programs = first.flash.programs
    assert short["written"] + long["written"] == programs["host"] and copies["written"] == 0
    assert (short["moved"], long["moved"]) == (0, 0) and copies["moved"] == programs["gc"] > 0
    assert (again.placement, again.flash) == (first.placement, first.flash)
    median = first.own["placement"]["median"]
    assert median is not None and median > 1
    assert again.own["placement"]["median"] == median
