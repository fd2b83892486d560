"""Results and comparisons as a user of Python sees them: types, frames, pickles, notebooks."""

from __future__ import annotations

import copy
import json
import pickle
import re
import subprocess
import sys
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

import ftlab
from ftlab import fields
from ftlab.configs import to_text
from ftlab.fields import Fields
from ftlab.results.section import Section, Settings, _sections
from reports import MEASURED, WORKLOAD

ROOT = Path(__file__).resolve().parents[2]

SCRIPT = """
import polars as pl

import ftlab

result = ftlab.run("map-plus", trace="a.csv", dedup="50ms", seed=3, host__scheduler="map+")
ratio: float = result.mapping.hit_ratio or 0.0
mean: float = result.latency.read.mean_ns
reads: int = result.flash.reads["gc-map"]
peak: int = max(result.series.host_pages) if result.series else 0
scheduler: str = result.config.host.scheduler
frame: pl.DataFrame = result.requests
again = ftlab.run(result["config"], trace=frame.select("op", "offset", "size", ts_ns="arrival_ns"))
comparison = ftlab.compare(
    "map-plus",
    {"host.scheduler": ["noop", "map+"], "ftl.mapping_cache": [4096, "8KiB"]},
    trace="a.csv",
    repeat=2,
)
best = comparison["map+, 8KiB"].waf.total
table: pl.DataFrame = comparison.to_polars()
comparison.plot().save("a.svg")
comparison.plot("a.png")
with ftlab.Simulation("map-plus", ftl__mapping_cache=4096) as device:
    device.submit("W", offset=0, size=4096)
    done = device.run_until_idle()
    print(done[0].complete_ns, device.result().latency.write.max_ns, scheduler, best, table)
print(again, ratio, mean, reads, peak)
"""
"""A script as a user writes it; it is type-checked and run."""

WRONG = {
    "result.latencey": "latencey",
    "result.latency.read.mean": "mean",
    "result.mapping.hits.real_": "real_",
    "result.flash.read": "read",
    'ftlab.run("map-plus", trace=7)': "trace",
    'ftlab.run("map-plus", repeat="twice")': "repeat",
    'ftlab.compare("map-plus")': "vary",
    "result.requests.no_such": "no_such",
    "ftlab.compar": "compar",
}
"""Slips in a user's script, each with the name that a checker must report."""


def checked(script: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *command, str(script)],
        cwd=script.parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.fixture
def folder(tmp_path: Path, trace: Path, checker: str) -> Path:
    settings = {"typeCheckingMode": "strict", "extraPaths": [str(ROOT / "python")]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    assert trace.parent == tmp_path and checker
    return tmp_path


CHECKERS = {
    "mypy": ["mypy", "--strict"],
    "pyright": ["pyright", "--pythonpath", sys.executable],
}


@pytest.mark.parametrize("checker", CHECKERS)
def test_a_users_script_is_clean_and_slips_in_it_are_found(folder: Path, checker: str) -> None:
    """One test checks both scripts: for the second, mypy knows the packages from its cache in the folder."""
    (folder / "script.py").write_text(SCRIPT)
    done = checked(folder / "script.py", *CHECKERS[checker])
    assert done.returncode == 0, done.stdout + done.stderr
    ran = subprocess.run(
        [sys.executable, "script.py"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert (folder / "a.svg").read_text().startswith("<svg") and (folder / "a.png").stat().st_size > 0

    slips(folder, checker)


def slips(folder: Path, checker: str) -> None:
    """Checks that every slip is found, each in its line."""
    head = 'import ftlab\n\nresult = ftlab.run("map-plus", trace="a.csv")\n'
    lines = [f"print({line})" for line in WRONG]
    (folder / "script.py").write_text(head + "\n".join(lines) + "\n")
    done = checked(folder / "script.py", *CHECKERS[checker])
    assert done.returncode == 1, done.stderr
    for number, (line, named) in enumerate(WRONG.items(), head.count("\n") + 1):
        said = re.findall(rf"script\.py:{number}(?::\d+)*(?: -)?:? error: (.*(?:\n +.*)*)", done.stdout)
        assert any(named in each for each in said), f"{line}: {said} of {done.stdout}"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[ftlab.Result]:
    """Returns results that together have every field."""
    asked = {f"results.{key}": True for key in ("histograms", "series", "erase_map", "miss_curve")}
    own = f"python:{ROOT}/examples/policies/shortest.py:ShortestFirst"
    controller = {"device.link": "300MB/s", "device.command_time": "10us", "device.write_buffer": "64KiB"}
    controller |= {"ftl.placement": "gc-apart", "energy.read": "10uJ"}
    folded = {"flash.cell": "tlc", "ftl.slc_cache": "64KiB", "flash.blocks_per_plane": 128}
    folded |= {"ftl.over_provisioning": "30%"}
    worn = {"flash.errors.process": "tlc-72-layer", "flash.pe_cycles": 3000, "flash.age": "300d"}
    worn |= {"ftl.refresh": 1, "device.precondition": "fill", "flash.blocks_per_plane": 64}
    worn |= {"workload.synthetic.interarrival": "50ms", "ftl.over_provisioning": "20%"}
    noted = tmp_path_factory.mktemp("noted") / "notimes.csv"
    noted.write_text("offset,size,type 2\n8,4096,1\n8,4096,0\n")
    return [
        ftlab.run("map-plus", trace=noted, replay="closed"),
        ftlab.run("map-plus", set={"workload.synthetic.requests": 300, "host.scheduler": own, **asked}),
        ftlab.run(ROOT / "workloads" / "coop" / "dbench-1.toml", set=asked),
        ftlab.run("map-plus", set={"workload.synthetic.requests": 300, **controller}),
        ftlab.run("map-plus", set={"workload.synthetic.requests": 300, **folded}),
        ftlab.run("map-plus", set={"workload.synthetic.requests": 300, **worn}),
        ftlab.run("map-plus", set={f"tenant.{name}.synthetic.requests": 50 for name in "ab"}, alone=True),
    ]


def declared(kind: type[Section]) -> set[str]:
    return set(typing.get_type_hints(kind))


def inside(section: Section) -> Iterator[Section]:
    """Yields a section and all sections below it, except the configuration's."""
    if not isinstance(section, Settings):
        yield section
        for value in section.values():
            if isinstance(value, Section):
                yield from inside(value)


def test_fields_are_declared_as_results_have_them(whole: list[ftlab.Result]) -> None:
    there: dict[type[Section], set[str]] = {}
    for result in whole:
        for section in inside(result):
            there.setdefault(type(section), set()).update(section)
    del there[Section]  # the sections by cause, by reason and by percentile
    for kind, names in there.items():
        # Every mapping has a method of this name.
        also = {"items"} if kind is fields.MissCurve else set()
        assert sorted(declared(kind) - {"_data"} | also) == sorted(names), kind
    # Every class of a section is the class of some field.
    classes = {each for each in vars(fields).values() if isinstance(each, type) and issubclass(each, Section)}
    used = {Section, Fields, *(each for kind in classes for each in _sections(kind).values())}
    assert classes == used


def of_type(value: Any, hint: Any) -> bool:
    union = typing.get_origin(hint) in (types.UnionType, typing.Union)
    options = typing.get_args(hint) if union else (hint,)
    for each in options:
        origin = typing.get_origin(each) or each
        inner = typing.get_args(each)
        if origin is list and isinstance(value, list):
            return all(of_type(item, inner[0]) for item in value[:20])
        if origin is dict and isinstance(value, dict):
            return True
        if origin is typing.Literal and value in inner:
            return True
        if each is Any or (isinstance(origin, type) and isinstance(value, origin) and not inner):
            return True
        if each is float and isinstance(value, int) and not isinstance(value, bool):
            return True
        if getattr(origin, "__name__", "") == "Mapping" and isinstance(value, Section):
            return inner[-1] is Any or all(of_type(item, inner[-1]) for item in value.values())
    return False


def test_values_are_of_the_declared_types(whole: list[ftlab.Result]) -> None:
    waiting: list[Section] = [*whole]
    seen = 0
    while waiting:
        section = waiting.pop()
        hints = typing.get_type_hints(type(section))
        for name, value in section.items():
            if name in hints:
                assert of_type(value, hints[name]), (type(section), name, value, hints[name])
                seen += 1
            if isinstance(value, Section) and not isinstance(value, Settings):
                waiting.append(value)
    assert seen > 300


def test_what_was_not_asked_for_is_none(trace: Path) -> None:
    result = ftlab.run("map-plus", trace=trace)
    assert (result.series, result.erase_map, result.benchmark, result.latency.read.histogram) == (None,) * 4
    assert "series" not in result and not hasattr(result, "latencey")


@pytest.fixture(scope="module")
def comparison() -> ftlab.Comparison:
    vary: dict[str, list[str | int]] = {
        "host.scheduler": ["noop", "map+"],
        "ftl.mapping_cache": ["1KiB", 4096],
    }
    return ftlab.compare("map-plus", vary, set={**WORKLOAD, **MEASURED}, collect=True)


def test_pickles_and_copies_are_the_same(comparison: ftlab.Comparison) -> None:
    for again in (pickle.loads(pickle.dumps(comparison)), copy.deepcopy(comparison)):
        assert again.to_json() == comparison.to_json() and again.vary == comparison.vary
        assert again[3].requests.equals(comparison[3].requests)
        assert type(again[0].latency.read) is fields.Summary
        assert again[0].histogram("wait", "read").percentile(99) == comparison[0].histogram(
            "wait", "read"
        ).percentile(99)
    without = ftlab.run(comparison[0]["config"], collect=False)
    with pytest.raises(ftlab.UserError, match="did not keep its requests"):
        _ = pickle.loads(pickle.dumps(without)).requests
    section = pickle.loads(pickle.dumps(comparison[0].flash))
    assert section == comparison[0].flash and type(section) is fields.Flash


def test_short_texts_have_units(comparison: ftlab.Comparison) -> None:
    result = comparison[0]
    assert re.fullmatch(r"<ftlab\.Result noop: 4,000 requests, mean [\d.]+ (us|ms)>", repr(result))
    times = repr(result.latency.read)
    assert re.match(r"Summary\(count=1,\d\d\d, mean=[\d.]+ us, stddev=[\d.]+ us, min=35\.", times), times
    assert " MiB" in repr(result.trace)
    for section in (result.latency, result.flash, result.config, result.utilization, result.health):
        assert "\n" not in repr(section) and len(repr(section)) < 130
    assert repr(comparison) == "<ftlab.Comparison of 4 variants over host.scheduler, ftl.mapping_cache>"


def test_notebooks_show_tables(comparison: ftlab.Comparison) -> None:
    table = comparison._repr_html_()
    assert table.count("<tr>") == 5 and "<b>" in table and "<td>map+</td>" in table
    assert comparison[0]._repr_html_().count("<tr>") == 2
    hostile = ftlab.Comparison(comparison.config, {"seed": ["<script>"]}, [])
    hostile.variants = [ftlab.Variant("x", {"seed": "<script>"}, comparison[0])]
    assert "<script>" not in hostile._repr_html_()


def test_a_frame_of_the_variants(comparison: ftlab.Comparison) -> None:
    frame = comparison.to_polars()
    assert frame.shape[0] == 4 and frame.columns[:2] == ["host.scheduler", "ftl.mapping_cache"]
    assert frame["ftl.mapping_cache"].to_list() == ["1KiB", "4KiB"] * 2
    means = [variant.result.latency.all.mean_ns for variant in comparison.variants]
    assert frame["latency.all.mean_ns"].to_list() == means


def test_variants_are_found(comparison: ftlab.Comparison) -> None:
    wanted = comparison.variants[3].result
    assert comparison["map+, 4KiB"] is comparison[-1] is wanted
    assert comparison[{"ftl.mapping_cache": 4096, "host.scheduler": "map+"}] is wanted
    with pytest.raises(KeyError, match=r"2 variants have .*: map\+, 1KiB, map\+, 4KiB"):
        _ = comparison[{"host.scheduler": "map+"}]
    with pytest.raises(KeyError, match=r"no variant 'rb'; there are: noop, 1KiB, noop, 4KiB"):
        _ = comparison["rb"]
    with pytest.raises(IndexError):
        _ = comparison[4]
    assert [result.scheduler.name for result in comparison] == ["noop", "noop", "map+", "map+"]


def test_charts_are_altairs(comparison: ftlab.Comparison) -> None:
    import altair as alt

    for chart in (comparison.plot(), comparison[0].plot()):
        assert isinstance(chart, alt.VConcatChart)
        assert "waiting in the queue" in chart.to_json()


def test_requests_go_to_arrow_without_other_packages(comparison: ftlab.Comparison) -> None:
    table = pa.table(comparison[0])
    assert table.num_rows == 4000 and table.column("complete_ns").null_count == 0
    assert table.column("arrival_ns").to_numpy().tolist() == comparison[0].column("arrival_ns").tolist()
    # The result can be exported without pyarrow and without pandas.
    code = (
        "import sys\n"
        "for name in ('pyarrow', 'pandas'): sys.modules[name] = None\n"
        "import ftlab, polars\n"
        "result = ftlab.run('map-plus', set={'workload.synthetic.requests': 50})\n"
        "capsule = result.__arrow_c_stream__()\n"
        "assert type(capsule).__name__ == 'PyCapsule'\n"
        "class Stream:\n"
        "    def __arrow_c_stream__(self, schema=None): return capsule\n"
        "frame = polars.DataFrame(polars.Series(values=Stream()).struct.unnest())\n"
        "assert len(frame) == 50 and 'complete_ns' in frame.columns\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


class Exported:
    """A table that can only export an Arrow stream, as the tables of many libraries can."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self.frame = frame

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.frame.__arrow_c_stream__(requested_schema)


@pytest.fixture(scope="module")
def mix() -> pl.DataFrame:
    return ftlab.read_trace(ROOT / "traces" / "phone-mix.csv.gz").head(3000)


def measured(result: ftlab.Result) -> dict[str, Any]:
    plain = copy.deepcopy(result.to_dict())
    del plain["engine"], plain["config"]["workload"]["trace"]
    return plain


@pytest.mark.parametrize("kind", ["polars", "arrow", "pandas", "batches", "exported", "codes", "parts"])
def test_a_frame_is_a_trace(mix: pl.DataFrame, tmp_path: Path, kind: str) -> None:
    columns = {name: mix[name].to_list() for name in mix.columns}
    codes = mix.with_columns(op=pl.Series(["RWTF".index(letter) for letter in mix["op"]]))
    frame: Any = {
        "polars": mix,
        "arrow": pa.table(columns),
        "pandas": pd.DataFrame(columns),
        "batches": pa.RecordBatch.from_pydict(columns),
        "exported": Exported(mix),
        "codes": codes.rename({"ts_ns": "time_ns"})
        .cast({"offset": pl.UInt32})
        .with_columns(flags=pl.lit(0), other=pl.lit("x")),
        "parts": pl.concat([mix.head(10), mix.tail(len(mix) - 10)], rechunk=False),
    }[kind]
    mix.with_columns(op=codes["op"]).write_parquet(tmp_path / "a.parquet")
    expected = ftlab.run("map-plus", trace=tmp_path / "a.parquet", max_gap="1s")
    assert measured(ftlab.run("map-plus", trace=frame, max_gap="1s")) == measured(expected)


def test_frames_are_compared_on_all_threads(mix: pl.DataFrame) -> None:
    compared = ftlab.compare("map-plus", {"host.scheduler": ["noop", "map+"]}, trace=mix, jobs=2)
    alone = [ftlab.run("map-plus", trace=mix, host__scheduler=name) for name in ("noop", "map+")]
    assert [measured(result) for result in compared] == [measured(result) for result in alone]
    assert compared[0].config.workload.trace == "data frame" and "data frame" in str(compared)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.drop("op", "size"), "no column op, size; a trace has ts_ns, op, offset, size"),
        (lambda f: f.with_columns(op=pl.lit("X")), "row 1: op is 'X'; it is one of R, W, T and F"),
        (lambda f: f.with_columns(size=pl.lit(1.5)), r"size \(Float64\) must hold whole numbers"),
        (lambda f: f.with_columns(offset=pl.lit(-4096)), "offset is -4096: it must not be negative"),
        (lambda f: f.with_columns(offset=pl.lit(None, pl.Int64)), "row 1: offset is empty"),
        (
            lambda f: f.with_columns(ts_ns=pl.lit(2**64 - 1, pl.UInt64)),
            "ts_ns is 18446744073709551615",
        ),
        (lambda f: 7, "trace: a file's name or a data frame is needed, not int '7'"),
    ],
)
def test_a_wrong_frame_is_the_users_fault(mix: pl.DataFrame, change: Any, message: str) -> None:
    with pytest.raises(ftlab.UserError, match=message):
        ftlab.run("map-plus", trace=change(mix))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (16384, "16KiB"),
        (4097, "4097B"),
        (0, "0B"),
        (3 << 40, "3TiB"),
        (np.int64(1 << 20), "1MiB"),
        ("8kB", "8kB"),
    ],
)
def test_a_size_may_be_a_number_of_bytes(value: Any, text: str) -> None:
    assert to_text(value, "ftl.mapping_cache") == text
    # For keys that are not sizes, a number is written as it is.
    assert to_text(value, "host.queue_depth") == str(value)


def test_sizes_as_numbers_mean_the_same(trace: Path) -> None:
    keys = {"flash.page": 4096, "ftl": {"mapping_cache": 8192}}
    numbers = ftlab.run("map-plus", trace=trace, set=keys, results__histograms=True)
    texts = ftlab.run("map-plus", trace=trace, ftl__mapping_cache="8KiB", results__histograms=True)
    assert measured(numbers) == measured(texts)
    with pytest.raises(ftlab.UserError, match="no unit"):
        ftlab.run("map-plus", trace=trace, host__deadline=1000)


def test_every_keyword_of_the_command_line_is_an_argument() -> None:
    import inspect

    from ftlab.configs import SHORTHANDS

    for function in (ftlab.run, ftlab.compare):
        arguments, doc = inspect.signature(function).parameters, function.__doc__ or ""
        for name in SHORTHANDS:
            assert name in arguments, name
            assert re.search(rf"\n {{8}}(\w+, )*{name}[:,]", doc), name
