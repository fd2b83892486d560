"""Streams of requests: from traces, frames and submissions, and the files that keep them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ftlab
from front import Cli

APART: dict[str, Any] = {"ftl.placement": "stream", "ftl.fronts": 5}

STREAMS = """time_ns,op,offset,size,stream
0,W,0,4096,1
1000,WF,4096,8192,3
2000,R,0,4096,1
3000,W,8192,4096,
4000,F,0,0,65535
"""


def written(result: ftlab.Result) -> dict[str, int]:
    """Returns how many pages of each stream were written."""
    fronts = result["placement"]["fronts"]
    return {front["name"]: front["written"] for front in fronts if front["written"]}


def test_conversions_keep_streams(cli: Cli) -> None:
    (cli.directory / "s.csv").write_text(STREAMS)
    head = cli.ok("trace", "head", "s.csv")
    assert head == STREAMS.replace("4096,\n", "4096,0\n")
    cli.ok("trace", "convert", "s.csv", "s.parquet")
    assert pl.read_parquet(cli.directory / "s.parquet")["stream"].to_list() == [1, 3, 1, 0, 65535]
    cli.ok("trace", "convert", "s.parquet", "again.csv")
    assert (cli.directory / "again.csv").read_text() == head
    assert cli.ok("trace", "head", "s.parquet") == head
    # Without streams there is no column of them, in whichever file.
    cli.ok("trace", "convert", "a.csv", "a.parquet")
    assert "stream" not in pl.read_parquet(cli.directory / "a.parquet").columns
    assert "stream" not in ftlab.read_trace(cli.directory / "a.parquet").columns


def test_volumes_keep_streams(cli: Cli) -> None:
    (cli.directory / "s.csv").write_text(STREAMS + f"5000,W,{2**46 + 4096},512,2\n")
    cli.ok("trace", "split", "s.csv", "--by", "volume", "--out", "volumes")
    files = [cli.directory / "volumes" / f"volume-0000{number}.parquet" for number in (0, 1)]
    assert [pl.read_parquet(file)["stream"].to_list() for file in files] == [[1, 3, 1, 0, 65535], [2]]
    cli.ok("trace", "split", "a.csv", "--by", "volume", "--out", "volumes")
    assert "stream" not in pl.read_parquet(files[0]).columns


def test_a_stream_that_is_none_is_named_with_its_line(cli: Cli) -> None:
    (cli.directory / "s.csv").write_text(STREAMS + "5000,W,0,512,65536\n")
    done = cli("run", "map-plus", "--trace", "s.csv")
    assert done.returncode == 2
    assert "s.csv:7: stream is " in done.stderr or "s.csv:7: stream " in done.stderr
    frame = pl.DataFrame({"ts_ns": [0], "op": ["W"], "offset": [0], "size": [512], "stream": [65536]})
    with pytest.raises(ftlab.UserError, match="data frame: row 1: stream is 65536"):
        ftlab.run("map-plus", trace=frame)


def test_rows_have_streams_if_the_trace_has(cli: Cli) -> None:
    (cli.directory / "s.csv").write_text(STREAMS)
    for name in ("rows.csv", "rows.parquet"):
        for trace, there in (("s.csv", True), ("a.csv", False)):
            cli.ok("run", "map-plus", "--trace", trace, "--requests", name)
            path = cli.directory / name
            rows = pl.read_csv(path) if name.endswith("csv") else pl.read_parquet(path)
            assert rows.columns[-1] == ("stream" if there else "channel_batch")
            if there:
                assert rows["stream"].to_list() == [1, 3, 1, 0, 65535]
    result = ftlab.run("map-plus", trace=cli.directory / "s.csv", collect=True, set=APART)
    assert result.column("stream").tolist() == [1, 3, 1, 0, 65535]
    assert written(result) == {"stream 0": 1, "stream 1": 1, "stream 3": 2}
    # A frame as a trace, from the rows of a result.
    rows = result.requests.rename({"arrival_ns": "ts_ns"})
    again = ftlab.run("map-plus", trace=rows, collect=True, set=APART)
    assert again.requests["stream"].to_list() == [1, 3, 1, 0, 65535]
    assert written(again) == written(result)
    plain = ftlab.run("map-plus", trace=cli.directory / "a.csv", collect=True)
    assert "stream" not in plain.requests.columns


def test_submissions_have_streams() -> None:
    with ftlab.Simulation("map-plus", set=APART, collect=True) as device:
        device.submit("W", 0, 4096)
        device.run_until_idle()
        device.submit("W", 4096, 4096, stream=3)
        device.submit_many({"op": [1, 0], "offset": [8192, 0], "size": [4096, 4096], "stream": [3, 1]})
        for stream in (65536, 2**40):
            with pytest.raises(ftlab.UserError, match=f"stream is {stream}; it is a number from 0 to 65535"):
                device.submit("W", 0, 4096, stream=stream)
            with pytest.raises(ftlab.UserError, match=f"row 0: stream is {stream}"):
                device.submit_many({"op": [1], "offset": [0], "size": [4096], "stream": [stream]})
        done = device.run_until_idle()
        assert sorted((each.id, each.stream) for each in done) == [(2, 3), (3, 3), (4, 1)]
        result = device.result()
        assert result.column("stream").tolist() == [0, 3, 3, 1]
        assert written(result) == {"stream 0": 1, "stream 3": 2}
    with ftlab.Simulation("map-plus", collect=True) as device:
        device.submit("W", 0, 4096)
        assert device.run_until_idle()[0].stream == 0
        assert "stream" not in device.result().requests.columns


def test_streams_alone_change_no_result(tmp_path: Path) -> None:
    """Where nothing looks at streams, a trace gives the same result with them as without."""
    path = tmp_path / "s.csv"
    path.write_text(STREAMS)
    rows = [line.rsplit(",", 1)[0] for line in STREAMS.splitlines()]
    plain = tmp_path / "plain" / "s.csv"
    plain.parent.mkdir()
    plain.write_text("\n".join(rows) + "\n")
    results = [ftlab.run("map-plus", trace=trace, collect=True) for trace in (path, plain)]
    kept = [{name: result[name] for name in ("trace", "latency", "flash", "mapping")} for result in results]
    assert kept[0] == kept[1]
    assert results[0].requests.drop("stream").equals(results[1].requests)
