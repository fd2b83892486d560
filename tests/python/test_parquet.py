"""Parquet traces, compared with pyarrow as a second implementation."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.dataset as dataset  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ftlab
from front import Cli
from ftlab import traces

TYPES = {
    "ts_ns": pa.uint64(),
    "op": pa.uint8(),
    "offset": pa.uint64(),
    "size": pa.uint64(),
    "flags": pa.uint32(),
}
ROW = {"ts_ns": 5, "op": 0, "offset": 4096, "size": 4096}
LETTERS = "RWTF"

rows = st.lists(
    st.tuples(
        st.integers(0, 10**6),
        st.sampled_from(LETTERS),
        st.integers(0, 1 << 40),
        st.integers(1, 1 << 20),
    ),
    min_size=1,
    max_size=50,
)


def table(columns: dict[str, list[Any]], types: dict[str, Any] | None = None) -> pa.Table:
    return pa.table(
        columns, schema=pa.schema(list((types or {name: TYPES[name] for name in columns}).items()))
    )


def write(path: Path, columns: dict[str, list[Any]], types: dict[str, Any] | None = None) -> Path:
    pq.write_table(table(columns, types), path)
    return path


def test_file_as_pyarrow_sees_it(cli: Cli) -> None:
    cli.ok("trace", "convert", "a.csv", "a.parquet")
    path = cli.directory / "a.parquet"
    read = pq.read_table(path)
    assert {field.name: field.type for field in read.schema} == TYPES
    assert read["op"].to_pylist() == [1, 1, 0, 0, 1, 0, 0, 3]
    assert read["ts_ns"].to_pylist()[-2:] == [900_000, 1_000_000]
    assert set(read["flags"].to_pylist()) == {0}
    metadata = pq.read_metadata(path).metadata
    assert metadata[b"source_format"] == b"csv"
    digest = hashlib.sha256((cli.directory / "a.csv").read_bytes()).hexdigest()
    assert metadata[b"source_sha256"] == digest.encode()


@settings(max_examples=30, deadline=None)
@given(rows)
def test_what_pyarrow_wrote_is_read_and_written_back(drawn: list[tuple[int, str, int, int]]) -> None:
    times = sorted(row[0] for row in drawn)
    # A flush has no range.
    expected = [
        (at, op, 0 if op == "F" else offset, 0 if op == "F" else size)
        for at, (_, op, offset, size) in zip(times, drawn, strict=True)
    ]
    columns = {
        "ts_ns": times,
        "op": [LETTERS.index(row[1]) for row in expected],
        "offset": [row[2] for row in expected],
        "size": [row[3] for row in expected],
    }
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "a.parquet", Path(folder) / "b.parquet"
        write(source, columns)
        assert ftlab.read_trace(source).rows() == expected
        ftlab.convert_trace(source, target)
        again = pq.read_table(target).drop_columns("flags")
        assert again.to_pydict() == columns


def test_runs_like_csv_over_several_chunks_and_passes(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    cli.ok("trace", "generate", "g.csv", "--requests", "5000", "--region", "64MiB")
    monkeypatch.setattr(traces, "CHUNK_ROWS", 700)
    ftlab.convert_trace(cli.directory / "g.csv", cli.directory / "g.parquet")
    assert pq.ParquetFile(cli.directory / "g.parquet").metadata.num_row_groups > 5
    options: dict[str, Any] = {"repeat": 2, "out_of_range": "compact", "collect": False}
    both = [
        ftlab.run("map-plus", trace=cli.directory / name, **options).to_dict()
        for name in ("g.csv", "g.parquet")
    ]
    for field in ("trace", "latency", "mapping", "flash", "elapsed_ns"):
        assert both[0][field] == both[1][field]
    infos = [ftlab.trace_info(cli.directory / name) for name in ("g.csv", "g.parquet")]
    assert [info.pop("format") for info in infos] == ["csv", "parquet"]
    assert [info.pop("recognised_by") for info in infos] == ["its header", "its first bytes"]
    assert [info.pop("path") for info in infos]
    assert infos[0] == infos[1]


def test_fua_goes_through_every_layout_of_ftlab(cli: Cli) -> None:
    text = "time_ns,op,offset,size\n0,W,0,4096\n5,WF,4096,4096\n9,F,0,0\n"
    (cli.directory / "fua.csv").write_text(text)
    cli.ok("trace", "convert", "fua.csv", "fua.parquet")
    assert pq.read_table(cli.directory / "fua.parquet")["flags"].to_pylist() == [0, 1, 0]
    cli.ok("trace", "convert", "fua.parquet", "back.csv")
    assert (cli.directory / "back.csv").read_text() == text
    assert cli.ok("trace", "head", "fua.parquet") == text
    block = (
        "8,0 0 1 0.000000000 1 Q W 0 + 8 [a]\n"
        "8,0 0 2 0.000000005 1 Q WFS 8 + 8 [a]\n"
        "8,0 0 3 0.000000009 1 Q FWFS 16 + 8 [a]\n"
    )
    (cli.directory / "a.blkparse").write_text(block)
    cli.ok("trace", "convert", "a.blkparse", "block.parquet")
    table = pq.read_table(cli.directory / "block.parquet")
    assert (table["op"].to_pylist(), table["flags"].to_pylist()) == ([1, 1, 3, 1], [0, 1, 0, 1])
    notes = json.loads(cli.ok("trace", "info", "a.blkparse", "--json", "-"))["notes"]
    assert "2 writes have FUA" in notes
    assert "1 requests ask for a flush before them, which counts as one more request" in notes


@pytest.mark.parametrize("kind", [pa.uint8(), pa.int64(), pa.float64()])
def test_flags_of_others(tmp_path: Path, kind: pa.DataType) -> None:
    """Unknown bits are ignored, and so is FUA on anything but a write. pandas makes floats of a column in which
    a value is missing.
    """
    rows = {"ts_ns": [0, 1, 2], "op": [0, 1, 1], "offset": [0, 0, 0], "size": [512, 512, 512]}
    columns = {name: pa.array(values, pa.int64()) for name, values in rows.items()}
    path = tmp_path / "other.parquet"
    pq.write_table(pa.table({**columns, "flags": pa.array([1, None, 253], kind)}), path)
    assert [row[1] for row in traces.head(traces.trace_config(path), 5)] == ["R", "W", "WF"]


def test_other_integer_types_and_more_columns_are_fine(tmp_path: Path) -> None:
    columns: dict[str, list[Any]] = {name: [value] for name, value in ROW.items()} | {"note": ["x"]}
    types = {
        "size": pa.int32(),
        "offset": pa.int64(),
        "op": pa.int64(),
        "ts_ns": pa.uint32(),
        "note": pa.string(),
    }
    path = write(tmp_path / "a.parquet", columns, types)
    assert ftlab.read_trace(path).rows() == [(5, "R", 4096, 4096)]


def test_named_format_and_odd_names(tmp_path: Path) -> None:
    columns: dict[str, list[Any]] = {name: [value] for name, value in ROW.items()}
    path = write(tmp_path / "a[1]*.bin", columns)
    assert ftlab.read_trace(path).height == 1
    assert ftlab.read_trace(path, format="parquet").height == 1


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"ts_ns": None}, "a.parquet: row 2: ts_ns is empty"),
        ({"op": 256}, "a.parquet: row 2: op is 256; it must be 0 R, 1 W, 2 T or 3 F"),
        ({"op": 4}, "a.parquet: row 2: op is"),
        ({"offset": -1}, "a.parquet: row 2: offset is -1"),
        ({"size": -4096}, "a.parquet: row 2: size is -4096"),
    ],
)
def test_bad_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], what: str) -> None:
    monkeypatch.chdir(tmp_path)
    bad = ROW | change
    columns: dict[str, list[Any]] = {name: [ROW[name], bad[name]] for name in ROW}
    write(Path("a.parquet"), columns, dict.fromkeys(ROW, pa.int64()))
    for call in (ftlab.trace_info, ftlab.read_trace):
        with pytest.raises(ftlab.UserError) as raised:
            call("a.parquet")
        assert str(raised.value).startswith(what)
    with pytest.raises(ftlab.UserError):
        ftlab.run("map-plus", trace="a.parquet")


@pytest.mark.parametrize(
    ("types", "what"),
    [
        (
            {"time": pa.int64()},
            "no column ts_ns, op, offset, size; a Parquet trace has ts_ns, op, offset, size",
        ),
        (
            {**dict.fromkeys(ROW, pa.int64()), "ts_ns": pa.float64()},
            "ts_ns (Float64) must hold whole numbers",
        ),
        ({**dict.fromkeys(ROW, pa.int64()), "op": pa.string()}, "op (String) must hold whole numbers"),
    ],
)
def test_wrong_columns(tmp_path: Path, types: dict[str, Any], what: str) -> None:
    path = write(tmp_path / "a.parquet", {name: [] for name in types}, types)
    with pytest.raises(ftlab.UserError) as raised:
        ftlab.trace_info(path)
    assert what in str(raised.value)
    assert len(str(raised.value).splitlines()) <= 12


def test_no_rows_and_cut_files(tmp_path: Path) -> None:
    empty = write(tmp_path / "e.parquet", {name: [] for name in ROW})
    with pytest.raises(ftlab.UserError, match=r"e\.parquet"):
        ftlab.trace_info(empty)
    columns: dict[str, list[Any]] = {name: [value] * 1000 for name, value in ROW.items()}
    whole = write(tmp_path / "w.parquet", columns).read_bytes()
    for length in (4, 10, len(whole) // 2, len(whole) - 1):
        cut = tmp_path / "c.parquet"
        cut.write_bytes(whole[:length])
        with pytest.raises(ftlab.UserError, match=r"c\.parquet: not a Parquet file"):
            ftlab.trace_info(cut)
    damaged = bytearray(whole)
    damaged[4 : len(whole) // 2] = bytes(len(whole) // 2 - 4)
    (tmp_path / "d.parquet").write_bytes(damaged)
    with pytest.raises(ftlab.UserError, match=r"d\.parquet"):
        ftlab.trace_info(tmp_path / "d.parquet")
    with pytest.raises(ftlab.UserError, match=r"a\.csv: not a Parquet file"):
        (tmp_path / "a.csv").write_text("time_ns,op,offset,size\n0,R,0,512\n")
        ftlab.trace_info(tmp_path / "a.csv", format="parquet")


WAYS = st.fixed_dictionaries(
    {
        "compression": st.sampled_from(["none", "snappy", "gzip", "zstd", "lz4", "brotli"]),
        "data_page_version": st.sampled_from(["1.0", "2.0"]),
        "row_group_size": st.integers(1, 200),
        "data_page_size": st.sampled_from([1, 100, 1 << 20]),
        "dictionary_pagesize_limit": st.sampled_from([8, 1 << 20]),
    }
)
WHOLE = [
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
]


@settings(max_examples=150, deadline=None)
@given(st.data(), WAYS)
def test_every_encoding(data: st.DataObject, ways: dict[str, Any]) -> None:
    """However pyarrow writes whole numbers, they are read correctly."""
    count = data.draw(st.integers(1, 400))
    encodings, columns, fields = {}, {}, []
    for name in ("note", "ts_ns", "op", "offset", "size", "flags"):
        kind = data.draw(st.sampled_from(WHOLE))
        width = kind.bit_width - (not str(kind).startswith("u"))
        most = min(1 << data.draw(st.integers(1, width)), 1 << 62) - 1
        numbers: st.SearchStrategy[Any] = st.integers(0, 3 if name in ("op", "flags") else most)
        if name == "note":
            numbers = st.none() | numbers
        drawn = data.draw(st.lists(numbers, min_size=1, max_size=count))
        columns[name] = pa.array((drawn * count)[:count], kind)
        fields.append(pa.field(name, kind, nullable=name == "note" or data.draw(st.booleans())))
        ways_of_numbers = ["PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT", "dictionary"]
        encodings[name] = data.draw(st.sampled_from(ways_of_numbers))
    if data.draw(st.booleans()) and fields[-1].nullable:
        columns["flags"] = pa.array([None if row % 3 else 1 for row in range(count)], fields[-1].type)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.parquet"
        pq.write_table(
            pa.table(columns, schema=pa.schema(fields)),
            path,
            use_dictionary=[name for name, how in encodings.items() if how == "dictionary"],
            column_encoding={name: how for name, how in encodings.items() if how != "dictionary"},
            **ways,
        )
        requests = expected(pq.read_table(path))
        if requests:
            assert read(path, count) == requests


def read(path: Path, rows: int) -> list[tuple[int, str, int, int]]:
    """Returns the requests of a trace."""
    return traces.head(traces.trace_config(path), 2 * rows)


def expected(table: pa.Table) -> list[tuple[int, str, int, int]]:
    """Returns the requests that a table's rows stand for: in order of their time stamps, without those of
    size 0.
    """
    found: list[tuple[int, str, int, int]] = []
    for row in sorted(table.to_pylist(), key=lambda row: row["ts_ns"]):
        flags = row["flags"] or 0
        op = LETTERS[row["op"]]
        if op != "F" and not row["size"]:
            continue
        at = row["ts_ns"]
        if op == "F":
            found.append((at, "F", 0, 0))
            continue
        if flags & 2:
            found.append((at, "F", 0, 0))
        found.append((at, "WF" if op == "W" and flags & 1 else op, row["offset"], row["size"]))
    return found


@pytest.mark.parametrize("name", ["version-1", "version-2"])
def test_samples(name: str) -> None:
    """The inputs that the campaigns mutate contain every encoding, and are read as pyarrow reads them."""
    path = Path(__file__).parents[2] / "crates/trace/src/parquet" / f"{name}.parquet"
    assert read(path, 24) == expected(pq.read_table(path))
    group = pq.read_metadata(path).row_group(0)
    columns = [group.column(index) for index in range(5)]
    assert {column.compression for column in columns} == {"ZSTD", "SNAPPY", "GZIP", "LZ4", "UNCOMPRESSED"}
    encodings = {encoding for column in columns for encoding in column.encodings}
    assert encodings >= {"PLAIN", "RLE", "RLE_DICTIONARY", "DELTA_BINARY_PACKED"}


def one_row(**more: pa.Array) -> pa.Table:
    """Returns a row of a trace with more columns."""
    return pa.table({name: pa.array([value]) for name, value in ROW.items()} | more)


def converted(path: Path) -> list[str]:
    """Returns the rows of a trace as csv, with latencies."""
    target = path.with_suffix(".csv")
    ftlab.convert_trace(path, target)
    return target.read_text().splitlines()


@pytest.mark.parametrize(
    ("unit", "ns"), [("s", 10**9), ("ms", 10**6), ("us", 1000), ("ns", 1)], ids=["s", "ms", "us", "ns"]
)
def test_a_duration_has_its_unit(tmp_path: Path, unit: str, ns: int) -> None:
    """Regression: Parquet has no durations, so one in microseconds was taken for nanoseconds, without a doubt;
    the unit is in the schema that Arrow notes.
    """
    latency = pa.array([300], pa.duration(unit))
    pq.write_table(one_row(latency_ns=latency), tmp_path / "a.parquet")
    assert converted(tmp_path / "a.parquet") == ["time_ns,op,offset,size,latency_ns", f"5,R,4096,4096,{300 * ns}"]
    pl.DataFrame(one_row(latency_ns=pa.array([300], pa.duration(unit if unit != "s" else "ms")))).write_parquet(
        tmp_path / "b.parquet"
    )
    expected = 300 * (ns if unit != "s" else 10**6)
    assert converted(tmp_path / "b.parquet")[1] == f"5,R,4096,4096,{expected}"
    data = {name: [value] for name, value in ROW.items()} | {"latency_ns": pd.to_timedelta([300], unit=unit)}
    pd.DataFrame(data).to_parquet(tmp_path / "c.parquet")
    assert converted(tmp_path / "c.parquet")[1] == f"5,R,4096,4096,{300 * ns}"


def test_spark_and_pandas_note_units_too(tmp_path: Path) -> None:
    """Without Arrow's schema, the unit is in what Spark or pandas notes about a column."""
    spark = {"type": "struct", "fields": [{"name": "latency_ns", "type": "interval day to second"}]}
    pandas = {"columns": [{"field_name": "latency_ns", "numpy_type": "timedelta64[us]"}]}
    for key, noted in {"org.apache.spark.sql.parquet.row.metadata": spark, "pandas": pandas}.items():
        path = tmp_path / "a.parquet"
        with pq.ParquetWriter(path, one_row(latency_ns=pa.array([300])).schema, store_schema=False) as writer:
            writer.write_table(one_row(latency_ns=pa.array([300])))
            writer.add_key_value_metadata({key: json.dumps(noted)})
        assert converted(path)[1] == "5,R,4096,4096,300000"


def test_stamps_may_be_dates_or_durations(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    further = {name: [value] * 2 for name, value in ROW.items() if name != "ts_ns"}
    at = [1_700_000_000_000_000, 1_700_000_000_000_250]
    for kind, first in ((pa.timestamp("us"), 0), (pa.timestamp("us", "UTC"), 0), (pa.duration("us"), at[0] * 1000)):
        pq.write_table(pa.table({"ts_ns": pa.array(at, kind), **further}), path)
        assert [row[0] for row in read(path, 2)] == [first, first + 250_000]
    pq.write_table(pa.table({"ts_ns": pa.array([5, 9], pa.time64("ns")), **further}), path)
    assert [row[0] for row in read(path, 2)] == [5, 9]


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.int64(), pa.null()])
def test_what_is_missing_is_not_known(tmp_path: Path, kind: pa.DataType) -> None:
    """Regression: a column of floats, which pandas makes where a value is missing, was left out without a word,
    and a null latency was an error where csv takes it for one that is not known.
    """
    count = 3
    latency = [None] * count if kind == pa.null() else [300, None, 1 << 20]
    rows = {name: [value] * count for name, value in ROW.items()}
    stream = pa.array([None if kind == pa.null() else 3, None, None], kind)
    table = pa.table({**rows, "stream": stream, "latency_ns": pa.array(latency, kind)})
    for written in ({}, {"use_dictionary": False}, {"use_dictionary": False, "column_encoding": "BYTE_STREAM_SPLIT"}):
        if kind == pa.null() and "column_encoding" in written:
            continue
        pq.write_table(table, tmp_path / "a.parquet", **written)
        found = [line.split(",")[4:] for line in converted(tmp_path / "a.parquet")[1:]]
        known = [["3", "300"], ["0", ""], ["0", str(1 << 20)]]
        assert found == ([["0", ""]] * 3 if kind == pa.null() else known)


def test_a_latency_may_have_a_fraction_and_a_stream_may_not(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    for latency, expected in ((300.5, "301"), (float("nan"), ""), (0.25, "0")):
        pq.write_table(one_row(latency_ns=pa.array([latency])), path)
        assert converted(path)[1] == f"5,R,4096,4096,{expected}"
    pq.write_table(one_row(stream=pa.array([3.5])), path)
    with pytest.raises(ftlab.UserError, match=r"a\.parquet: cannot be read: column stream: 3.5 is not a whole"):
        ftlab.trace_info(path)


@pytest.mark.parametrize(
    ("name", "array", "what"),
    [
        ("latency_ns", pa.array(["3"]), "latency_ns (String) must hold numbers"),
        ("flags", pa.array([True]), "flags (Boolean) must hold numbers"),
        ("stream", pa.array([3], pa.duration("us")), "stream (a time) must hold numbers"),
        ("latency_ns", pa.array([3], pa.timestamp("us")), "latency_ns (a time) must hold numbers"),
        ("latency_ns", pa.array([3], pa.date32()), "latency_ns (Date) must hold numbers"),
        ("latency_ns", pa.array([3], pa.decimal128(9, 2)), "latency_ns ("),
        ("offset", pa.array([4096], pa.duration("us")), "offset (a time) must hold whole numbers"),
    ],
)
def test_a_column_of_another_type_is_named(tmp_path: Path, name: str, array: pa.Array, what: str) -> None:
    """Regression: a column of text or of booleans was left out without a word."""
    pq.write_table(one_row(**{name: array}), tmp_path / "a.parquet")
    with pytest.raises(ftlab.UserError) as raised:
        ftlab.trace_info(tmp_path / "a.parquet")
    assert what in str(raised.value)


@pytest.mark.parametrize(
    "ways",
    [
        {"compression": "brotli"},
        {"use_dictionary": False, "column_encoding": {"offset": "BYTE_STREAM_SPLIT"}},
        {"compression": "lz4"},
    ],
)
def test_brotli_and_split_bytes(tmp_path: Path, ways: dict[str, Any]) -> None:
    pq.write_table(one_row(), tmp_path / "a.parquet", **ways)
    assert read(tmp_path / "a.parquet", 1) == [(5, "R", 4096, 4096)]


def test_a_page_may_be_as_large_as_a_row_group(tmp_path: Path) -> None:
    """Regression: a page of more than 64 MiB was refused; fastparquet makes one of 8.39 million rows and more."""
    rows = (64 << 20) // 8 + 1
    path = tmp_path / "a.parquet"
    stamps = pa.array(np.arange(rows, dtype=np.int64))
    columns = {name: pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int8)), [value]) for name, value in ROW.items()}
    table = pa.table(columns | {"ts_ns": stamps})
    for compression in ("snappy", "zstd", "none"):
        pq.write_table(
            table,
            path,
            compression=compression,
            row_group_size=rows,
            use_dictionary=["op", "offset", "size"],
            data_page_size=1 << 30,
            max_rows_per_page=rows,
        )
        assert read(path, 1) == [(0, "R", 4096, 4096), (1, "R", 4096, 4096)]


def test_encrypted_files_are_called_so(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PARE" + bytes(40) + (20).to_bytes(4, "little") + b"PARE")
    with pytest.raises(ftlab.UserError, match=r"a\.parquet: it is encrypted, which ftlab does not read"):
        ftlab.trace_info(path)


def test_a_folder_of_parts_is_one_trace(tmp_path: Path) -> None:
    """Regression: what Spark, polars and pyarrow write into a folder was read file by file only."""
    rows = [ROW | {"ts_ns": 10 * at, "offset": 4096 * at} for at in range(24)]
    whole = write(tmp_path / "whole.parquet", {name: [row[name] for row in rows] for name in ROW})
    expected = read(whole, 24)

    def part(folder: Path, name: str, begin: int) -> None:
        folder.mkdir(exist_ok=True)
        write(folder / name, {key: [row[key] for row in rows[begin : begin + 2]] for key in ROW})

    spark = tmp_path / "spark"
    for at in range(12):
        part(tmp_path / "parts", f"part-{at}.parquet", 2 * at)
        # An empty partition of Spark has no file.
        part(spark, f"part-{at + at // 6:05}-9d2f-c000.snappy.parquet", 2 * at)
    (spark / "_SUCCESS").touch()
    (spark / ".part-00000-9d2f-c000.snappy.parquet.crc").write_bytes(b"crc")
    dataset.write_dataset(pq.read_table(whole), tmp_path / "arrow", format="parquet", max_rows_per_file=2, max_rows_per_group=2)
    names = ["parts", "spark", "arrow", "parts/part-*.parquet", "spark/*.parquet"]
    for name in names:
        assert read(tmp_path / name, 24) == expected, name
        assert ftlab.trace_info(tmp_path / name)["requests"] == 24
    ftlab.run("map-plus", trace=tmp_path / "parts", repeat=2, out_of_range="compact")
    ftlab.convert_trace(tmp_path / "spark", tmp_path / "out.parquet")
    assert read(tmp_path / "out.parquet", 24) == expected


def test_parts_must_have_the_same_columns(tmp_path: Path) -> None:
    for name, table in (("a", one_row()), ("b", one_row(stream=pa.array([3])))):
        pq.write_table(table, tmp_path / f"{name}.parquet")
    with pytest.raises(ftlab.UserError, match=r"b\.parquet: its column stream is not as in .*a\.parquet"):
        ftlab.trace_info(tmp_path)
    folder = tmp_path / "d"
    dataset.write_dataset(
        one_row(stream=pa.array([3])), folder, format="parquet", partitioning=["stream"], partitioning_flavor="hive"
    )
    with pytest.raises(ftlab.UserError, match="the folder stream=3 holds a column that its files lack"):
        ftlab.trace_info(folder)
    (tmp_path / "none").mkdir()
    with pytest.raises(ftlab.UserError, match="is a directory, not a trace file"):
        ftlab.trace_info(tmp_path / "none")


def test_beyond_what_is_signed(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.parquet", {name: [value] for name, value in (ROW | {"offset": 1 << 63}).items()}
    )
    with pytest.raises(
        ftlab.UserError, match=r"a\.parquet: row 1: offset is 9223372036854775808; it must be"
    ):
        ftlab.trace_info(path)


MEMORY = """
import sys, ftlab
from ftlab._core import peak_rss_bytes
ftlab.convert_trace(sys.argv[1], "out.parquet")
ftlab.run("map-plus", trace=sys.argv[1], collect=False, out_of_range="wrap", ftl__kind="page")
print(peak_rss_bytes() >> 10)
"""

RUN = """
import sys, ftlab
from ftlab._core import peak_rss_bytes
ftlab.run("map-plus", trace=sys.argv[1], collect=False, out_of_range="wrap", ftl__kind="page")
assert "polars" not in sys.modules and "numpy" not in sys.modules
print(peak_rss_bytes() >> 10)
"""


def test_memory_does_not_grow_with_the_trace(cli: Cli) -> None:
    """Three million more rows are 75 MB as columns; reading and converting them takes a fraction of that
    memory.
    """

    def peak_kib(requests: int) -> int:
        cli.ok("trace", "generate", "some.parquet", "--requests", str(requests), "--region", "16MiB")
        command = [sys.executable, "-c", MEMORY, "some.parquet"]
        return int(subprocess.run(command, cwd=cli.directory, capture_output=True, check=True).stdout)

    least = peak_kib(1_000_000)
    assert peak_kib(4_000_000) - least < 40_000
    info = json.loads(cli.ok("trace", "info", "out.parquet", "--json", "-"))
    assert info["requests"] == 4_000_000


def test_a_run_takes_as_much_memory_as_of_csv(cli: Cli) -> None:
    """A run on Parquet takes as much memory as on csv, even if all rows are in one row group, as many
    programs write them; polars is not loaded.
    """
    cli.ok("trace", "generate", "a.csv", "--requests", "1000000", "--region", "16MiB")
    ftlab.convert_trace(cli.directory / "a.csv", cli.directory / "a.parquet")
    rows = pq.read_table(cli.directory / "a.parquet")
    pq.write_table(rows, cli.directory / "one.parquet", row_group_size=len(rows), compression="zstd")

    def peak_kib(name: str) -> int:
        command = [sys.executable, "-c", RUN, name]
        return int(subprocess.run(command, cwd=cli.directory, capture_output=True, check=True).stdout)

    csv = peak_kib("a.csv")
    for name in ("a.parquet", "one.parquet"):
        assert peak_kib(name) < csv + 15_000, name
