"""Study and tuning files with a slip are refused before anything runs; the message names the file and the
line, and makes a suggestion.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from front import Cli
from ftlab.studies.toml import line_of

STUDY = """config = "map-plus"

[set]
"workload.synthetic.requests" = 300
flash.blocks_per_plane = 64

[axis.scheduler]
title = "Scheduler"
key = "host.scheduler"
values = ["noop", "map+"]

[axis.cache]
key = "ftl.mapping_cache"
range = ["4KiB", "8KiB", "4KiB"]

[derive]
p99 = "latency.all.percentile_ns.99"
half = "p99 / 2"

[compare]
base = { scheduler = "noop" }

[[panel]]
mark = "bars"
value = "p99"
x = "scheduler"
series = "cache"

[[panel]]
mark = "lines"
value = "half"
x = "cache"
series = "scheduler"
"""

TUNING = """config = "map-plus"
minimize = ["latency.all.mean_ns"]
constraints = ['ftl.mapping_cache <= "64KiB"']
runs = 4

[set]
"flash.blocks_per_plane" = 64

[parameter.scheduler]
key = "host.scheduler"
choices = ["noop", "map+"]

[parameter.deadline]
key = "host.deadline"
range = ["1ms", "100ms"]
when = 'scheduler != "noop"'
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("config =", "confg =", ":1: confg: unknown key; did you mean config?"),
        ("map-plus", "map-pls", ":1: config: noop 4KiB: map-pls: no file and no preset of this name"),
        ("[set]", "[sett]", ":3: sett: unknown key; did you mean set?"),
        (
            "blocks_per_plane",
            "block_per_plane",
            ":5: set.flash.block_per_plane: noop 4KiB: flash.block_per_p",
        ),
        (
            "= 64",
            '= "6x4"',
            ":5: set.flash.blocks_per_plane: noop 4KiB: flash.blocks_per_plane=6x4: expected",
        ),
        ("[axis.scheduler]", "[axes.scheduler]", ":7: axes: unknown key; did you mean axis?"),
        ("title =", "titel =", ":8: axis.scheduler.titel: unknown key; did you mean title?"),
        ("host.sched", "host.shced", ":9: axis.scheduler.key: noop 4KiB: host.shceduler=noop: unknown key"),
        (
            '"map+"]',
            '"mapp"]',
            ":10: axis.scheduler.values: mapp 4KiB: host.scheduler=mapp: unknown name; did",
        ),
        ("range =", "rage =", ":14: axis.cache.rage: unknown key; did you mean range?"),
        ("[derive]", "[derived]", ":16: derived: unknown key; did you mean derive?"),
        ("base =", "bse =", ":21: compare.bse: unknown key; did you mean base?"),
        ('= "noop" }', '= "nop" }', ":21: compare.base: scheduler = 'nop': no such axis or label"),
        ("[[panel]]\nmark", "[[pannel]]\nmark", ":23: pannel: unknown key; did you mean panel?"),
        ('mark = "bars"', 'mark = "bar"', ":24: panel[0].mark: 'bar'; there are: bars"),
        ('mark = "lines"', 'markk = "lines"', ":30: panel[1].markk: unknown key; did you mean mark?"),
        (
            'value = "half"',
            'value = "hlf"',
            ":29: panel[1]: no value 'hlf'; did you mean half? There are: p99, half",
        ),
    ],
)
def test_a_study_with_a_slip(cli: Cli, old: str, new: str, message: str) -> None:
    refused(cli, "sweep", STUDY, old, new, message)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("minimize", "minimise", ":2: minimise: unknown key; did you mean minimize?"),
        ("constraints", "constraint", ":3: constraint: unknown key; did you mean constraints?"),
        ("runs", "rnus", ":4: rnus: unknown key; did you mean runs?"),
        (
            "blocks_per_plane",
            "block_per_plane",
            ":7: set.flash.block_per_plane: flash.block_per_plane=64: unkn",
        ),
        (
            "[parameter.scheduler]",
            "[paramter.scheduler]",
            ":9: paramter: unknown key; did you mean parameter?",
        ),
        (
            "host.sched",
            "host.shced",
            ":10: parameter.scheduler.key: host.shceduler=noop: unknown key host.shce",
        ),
        ("choices", "choises", ":11: parameter.scheduler.choises: unknown key; did you mean choices?"),
        (
            '"map+"]',
            '"mapp"]',
            ":11: parameter.scheduler.choices: host.scheduler=mapp: unknown name; did you me",
        ),
        (
            'dline"\nrange = ["1',
            'dline"\nrange = ["-1',
            ":15: parameter.deadline.range: host.deadline=-1000000n",
        ),
        ("when =", "wen =", ":16: parameter.deadline.wen: unknown key; did you mean when?"),
        (
            "'scheduler !=",
            "'schedler !=",
            ":16: parameter.deadline.when: no parameter 'schedler' comes before",
        ),
    ],
)
def test_a_tuning_with_a_slip(cli: Cli, old: str, new: str, message: str) -> None:
    refused(cli, "tune", TUNING, old, new, message)


def refused(cli: Cli, command: str, text: str, old: str, new: str, message: str) -> None:
    assert old in text
    (cli.directory / "s.toml").write_text(text.replace(old, new, 1))
    done = cli(command, "s.toml", "--out", "out")
    assert done.returncode == 2
    assert f"s.toml{message}" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
    assert not list((cli.directory / "out").glob("json/*")), "something ran"


def test_a_value_that_goes_with_some_of_another_alone(cli: Cli) -> None:
    """A value that fails with the defaults, but not with some value of another parameter, is not a slip."""
    text = """config = "map-plus"
minimize = ["latency.all.mean_ns"]
runs = 2
[set]
"workload.synthetic.requests" = 100
[parameter.blocks]
key = "flash.blocks_per_plane"
choices = [10, 64]
[parameter.spare]
key = "ftl.over_provisioning"
choices = ["7%", "50%"]
"""
    (cli.directory / "s.toml").write_text(text)
    (cli.directory / "s.toml").write_text(text.replace('"50%"', '"8%"'))
    done = cli("tune", "s.toml", "--out", "out")
    assert (done.returncode, "s.toml:8: parameter.blocks.choices: " in done.stderr) == (2, True), done.stderr
    # Once the file is corrected, the same directory can be used.
    (cli.directory / "s.toml").write_text(text)
    cli.ok("tune", "s.toml", "--out", "out")


def test_lines_of_names(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text(STUDY)
    names = (
        "config",
        "set",
        "set.flash.blocks_per_plane",
        "axis",
        "axis.cache",
        "axis.cache.range",
        "panel[1].x",
    )
    assert [line_of(path, name) for name in names] == [1, 3, 5, 7, 12, 14, 32]
    assert line_of(path, "compare.base.scheduler") == 21, "the table around it"
    assert line_of(path, "nothing.of.it") is None
    assert line_of(tmp_path / "b.toml", "config") is None
