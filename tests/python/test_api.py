"""`import ftlab`: results as objects, arrays and frames."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ftlab
from front import registered
from ftlab.outputs import json_text

COLUMNS = [
    *("id", "arrival_ns", "dispatch_ns", "complete_ns", "op", "offset", "size"),
    *("mapping_misses", "prioritized", "expired", "batch", "channel_batch"),
]
FIELDS = [
    *("schema", "config", "trace", "latency", "wait", "access", "mapping", "scheduler", "device"),
    *("conflicts", "flash", "merges", "waf", "wear", "health", "precondition", "utilization"),
    *("parallel", "elapsed_ns", "throughput_bytes_per_s", "engine"),
]
SYNTHETIC: dict[str, Any] = {
    "workload.synthetic.requests": 3000,
    "workload.synthetic.interarrival": "300us",
    "workload.synthetic.region": "64MiB",
}


def test_a_generator_runs_at_a_speed_as_a_trace_does() -> None:
    """Regression: for a generator, `workload.speed` was accepted but changed nothing."""
    arrivals = [
        ftlab.run("map-plus", set={**SYNTHETIC, "workload.speed": speed}).column("arrival_ns")
        for speed in ("1.0", "4.0", "0.3")
    ]
    plain, fast, slow = (np.sort(times).astype(np.float64) for times in arrivals)
    np.testing.assert_allclose(fast, plain / 4, atol=0.5)
    np.testing.assert_allclose(slow, plain / 0.3, atol=0.5)


def test_overrides_are_the_same_however_they_are_given(trace: Path) -> None:
    by_keyword = ftlab.run("map-plus", trace=trace, host__scheduler="row", ftl__mapping_cache="8KiB")
    dotted: dict[str, Any] = {"host.scheduler": "row", "ftl.mapping_cache": "8KiB"}
    by_dots = ftlab.run("map-plus", trace=trace, **dotted)
    by_set = ftlab.run(
        "map-plus", trace=trace, set={"host.scheduler": "row", "ftl": {"mapping_cache": "8KiB"}}
    )
    by_mapping = ftlab.run(
        {"preset": "map-plus", "workload": {"trace": str(trace)}, "host.scheduler": "row"},
        ftl__mapping_cache="8KiB",
    )
    again = ftlab.run(by_set["config"].to_dict())
    texts = [without_engine(each) for each in (by_keyword, by_dots, by_set, by_mapping, again)]
    assert by_set.config.host.scheduler == "row"
    assert len(set(texts)) == 1


def without_engine(result: ftlab.Result) -> str:
    return json.dumps({name: value for name, value in result.to_dict().items() if name != "engine"})


def test_file_is_a_configuration_too(trace: Path) -> None:
    path = trace.parent / "c.toml"
    path.write_text('preset = "map-plus"\n[host]\nscheduler = "hp"\n')
    assert ftlab.run(path, trace=trace).config.host.scheduler == "hp"


def test_values_of_all_types(trace: Path) -> None:
    depth: Any = np.int64(3)
    result = ftlab.run(
        "map-plus",
        trace=trace,
        seed=7,
        host__alternate=True,
        max_gap=None,
        speed=2.5,
        host__queue_depth=depth,
    )
    assert result.config.seed == 7
    assert result.config.host.alternate is True
    assert result.config.workload.max_gap == "none"
    assert result.config.workload.speed == 2.5
    assert result.config.host.queue_depth == 3


def test_the_peak_of_memory_is_the_process_s_own() -> None:
    """Regression: a process starts with its parent's peak, so a result reported too much memory."""
    held = b"x" * (400 << 20)
    script = (
        "import ftlab;print(ftlab.run('map-plus', workload__synthetic__requests=9).engine.peak_rss_bytes)"
    )
    used = int(subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout)
    assert used < len(held)


def test_result_has_the_fixed_names_in_their_order(trace: Path) -> None:
    result = ftlab.run("map-plus", trace=trace)
    assert list(result) == FIELDS
    assert json.loads(result.to_json()) == result.to_dict()
    assert result.schema == "ftlab.result.v1"
    assert (result.trace.requests, result.trace.reads, result.trace.writes) == (8, 4, 3)
    assert result["latency"]["all"]["count"] == 7
    assert result.latency.read.percentile_ns["99.000000"] >= result.latency.read.min_ns
    assert result.engine.requests_per_s == pytest.approx(8 / result.engine.wall_s, rel=0.01)
    assert (result.engine.peak_rss_bytes or 0) > 1 << 20
    assert "latency" in dir(result)
    assert repr(result).startswith("<ftlab.Result map+: 8 requests, mean ")
    with pytest.raises(AttributeError, match="no field 'latencies'; there are: schema, config"):
        _ = result.latencies  # type: ignore[attr-defined]
    with pytest.raises(KeyError):
        _ = result["latencies"]


def test_columns_are_the_rows_of_the_file(trace: Path) -> None:
    result = ftlab.run("map-plus", trace=trace)
    assert result.requests.columns == COLUMNS
    assert result.column("id").tolist() == list(range(1, 9))
    assert result.column("op").tolist() == ["W", "W", "R", "R", "W", "R", "R", "F"]
    assert result.column("arrival_ns").dtype == np.uint64
    assert result.column("prioritized").dtype == np.bool_
    assert result.requests["op"].to_list() == result.column("op").tolist()
    assert result.requests["expired"].dtype == pl.Boolean
    assert set(result.requests["batch"].drop_nulls()) == set(result.column("batch")) - {0}
    latency = result.column("complete_ns") - result.column("arrival_ns")
    reads = result.column("op") == "R"
    assert latency[reads].mean() == pytest.approx(result.latency.read.mean_ns)
    with pytest.raises(ftlab.UserError, match="no column 'latency'; there are: id, arrival_ns"):
        result.column("latency")


def test_columns_outlive_the_result_and_cannot_be_changed() -> None:
    ids = ftlab.run("map-plus", set=SYNTHETIC).column("id")
    gc.collect()
    assert ids.sum() == 3000 * 3001 // 2
    with pytest.raises(ValueError, match="read-only"):
        ids[0] = 1


def test_requests_are_kept_only_if_asked(trace: Path) -> None:
    with pytest.raises(ftlab.UserError, match="collect=True"):
        _ = ftlab.run("map-plus", trace=trace, collect=False).requests


@pytest.mark.parametrize("scheduler", registered("host.scheduler", "map-plus"))
def test_check_mode_finds_nothing(scheduler: str) -> None:
    result = ftlab.run("map-plus", set=SYNTHETIC, host__scheduler=scheduler, check=True)
    assert result.trace.requests == 3000
    assert without_engine(result) == without_engine(
        ftlab.run("map-plus", set=SYNTHETIC, host__scheduler=scheduler, collect=False)
    )


def test_errors_name_the_argument(trace: Path) -> None:
    with pytest.raises(ftlab.UserError, match=r"^argument host__scheduler=mapp: host\.scheduler: .*map"):
        ftlab.run("map-plus", trace=trace, host__scheduler="mapp")
    with pytest.raises(ftlab.UserError, match=r"^set host\.schduler=row: .*host\.scheduler"):
        ftlab.run("map-plus", trace=trace, set={"host.schduler": "row"})
    with pytest.raises(ftlab.UserError, match="no workload"):
        ftlab.run("map-plus")
    with pytest.raises(ftlab.UserError, match="a trace is given as well as a generator"):
        ftlab.run("map-plus", trace=trace, set=SYNTHETIC)
    with pytest.raises(ftlab.UserError, match=r"^vary host\.scheduler: the values must be a list"):
        ftlab.compare("map-plus", {"host.scheduler": "noop"}, trace=trace)
    with pytest.raises(ftlab.UserError, match=r"^vary host\.scheduler: no values"):
        ftlab.compare("map-plus", {"host.scheduler": []}, trace=trace)
    with pytest.raises(ftlab.UserError, match="nothing to compare"):
        ftlab.compare("map-plus", {}, trace=trace)


def test_progress_is_called_and_can_stop_a_run() -> None:
    seen: list[int] = []

    def stop(requests: int) -> bool:
        seen.append(requests)
        return len(seen) < 3

    with pytest.raises(KeyboardInterrupt):
        ftlab.run(
            "map-plus", set=SYNTHETIC | {"workload.synthetic.requests": 10**9}, progress=stop, collect=False
        )
    assert len(seen) == 3
    assert seen == sorted(seen)


def test_exception_of_progress_is_passed_on() -> None:
    def fail(requests: int) -> None:
        raise LookupError(requests)

    with pytest.raises(LookupError):
        ftlab.run(
            "map-plus", set=SYNTHETIC | {"workload.synthetic.requests": 10**9}, progress=fail, collect=False
        )


def test_comparison(trace: Path, tmp_path: Path) -> None:
    vary = {"host.scheduler": ["noop", "map+"], "ftl.mapping_cache": ["8KiB", "16KiB"]}
    comparison = ftlab.compare("map-plus", vary, trace=trace, collect=True)
    labels = [variant.label for variant in comparison.variants]
    assert labels == ["noop, 8KiB", "noop, 16KiB", "map+, 8KiB", "map+, 16KiB"]
    assert comparison["map+, 8KiB"].config.ftl.mapping_cache == "8KiB"
    assert comparison[1].config.host.scheduler == "noop"
    assert len(comparison) == 4
    assert comparison.variants[3].set == {"host.scheduler": "map+", "ftl.mapping_cache": "16KiB"}
    alone = ftlab.run("map-plus", trace=trace, host__scheduler="map+", ftl__mapping_cache="8KiB")
    assert without_engine(comparison["map+, 8KiB"]) == without_engine(alone)
    assert comparison["map+, 8KiB"].requests.equals(alone.requests)
    assert "map+" in str(comparison)
    comparison.plot(tmp_path / "c.svg")
    assert (tmp_path / "c.svg").read_text().startswith("<svg")
    with pytest.raises(KeyError, match="no variant 'mapp'; there are: noop, 8KiB"):
        _ = comparison["mapp"]
    with pytest.raises(ftlab.UserError, match=r"plot .*c\.gif: the name must end in"):
        comparison.plot(tmp_path / "c.gif")


def test_catalogue() -> None:
    assert "map-plus" in ftlab.presets()
    assert set(registered("host.scheduler")) > {"noop", "row", "map+", "coop"}
    assert "padding" not in registered("host.scheduler", "map-plus"), "it refuses an FTL that merges nothing"
    assert "`host.scheduler`" in ftlab.reference()


def test_schema_accepts_a_resolved_configuration_and_refuses_a_typo(trace: Path) -> None:
    schema = ftlab.schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    config = ftlab.run("map-plus", trace=trace).config.to_dict()
    jsonschema.validate(config, schema)
    config["host"]["schduler"] = "noop"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(config, schema)


LIGHT = """
import sys, ftlab
heavy = {"polars", "altair", "rich", "numpy", "vl_convert", "click"} & set(sys.modules)
assert not heavy, heavy
if len(sys.argv) > 1:
    ftlab.run("map-plus", trace=sys.argv[1], collect=False).to_json()
    heavy = {"polars", "altair", "rich", "numpy", "vl_convert", "click"} & set(sys.modules)
    assert not heavy, heavy
"""


def test_import_and_run_stay_light(trace: Path) -> None:
    for arguments in ([], [str(trace)]):
        done = subprocess.run(
            [sys.executable, "-c", LIGHT, *arguments], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_files_hold_lists_of_numbers_on_one_line(value: Any) -> None:
    """Regression: a map of 4,096 blocks took 4,096 lines. The values in the JSON stay the same."""
    text = json_text({"value": value, "numbers": [1, 2.5e-9, None, -3]})
    assert json.loads(text) == {"value": value, "numbers": [1, 2.5e-9, None, -3]}
    assert '  "numbers": [1, 2.5e-09, null, -3]\n' in text


def test_one_underscore_for_the_dot_is_named() -> None:
    with pytest.raises(ftlab.UserError, match=r"host_scheduler=map: .*: host__scheduler=map"):
        ftlab.run("map-plus", set=SYNTHETIC, host_scheduler="map")
    with pytest.raises(ftlab.UserError, match=r"workload__synthetic__read_share=10%"):
        ftlab.run("map-plus", set=SYNTHETIC, workload_synthetic_read_share="10%")
    # The shorthand names have an underscore of their own.
    assert ftlab.run("map-plus", set=SYNTHETIC, out_of_range="wrap").trace.requests == 3000
