"""Parquet traces as today's programs write them: types, units, encodings, folders of parts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from pyarrow import dataset

import ftlab
from ftlab import traces
from ftlab.cli.options import check_alone

ROW = {"ts_ns": 5, "op": 0, "offset": 4096, "size": 4096}


def read(path: Path, rows: int) -> list[tuple[Any, ...]]:
    """Returns the requests of a trace."""
    return traces.head(traces.trace_config(path), 2 * rows)


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
    """Regression: Parquet has no durations, so one in microseconds was taken for nanoseconds, without a
    doubt; the unit is in the schema that Arrow notes.
    """
    latency = pa.array([300], pa.duration(unit))
    pq.write_table(one_row(latency_ns=latency), tmp_path / "a.parquet")
    assert converted(tmp_path / "a.parquet") == [
        "time_ns,op,offset,size,latency_ns",
        f"5,R,4096,4096,{300 * ns}",
    ]
    pl.DataFrame(
        one_row(latency_ns=pa.array([300], pa.duration(unit if unit != "s" else "ms")))
    ).write_parquet(tmp_path / "b.parquet")
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
    for kind, first in (
        (pa.timestamp("us"), 0),
        (pa.timestamp("us", "UTC"), 0),
        (pa.duration("us"), at[0] * 1000),
    ):
        pq.write_table(pa.table({"ts_ns": pa.array(at, kind), **further}), path)
        assert [row[0] for row in read(path, 2)] == [first, first + 250_000]
    pq.write_table(pa.table({"ts_ns": pa.array([5, 9], pa.time64("ns")), **further}), path)
    assert [row[0] for row in read(path, 2)] == [5, 9]


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.int64(), pa.null()])
def test_what_is_missing_is_not_known(tmp_path: Path, kind: pa.DataType) -> None:
    """Regression: a column of floats, which pandas makes where a value is missing, was left out without a
    word, and a null latency was an error where csv takes it for one that is not known.
    """
    count = 3
    latency = [None] * count if kind == pa.null() else [300, None, 1 << 20]
    rows = {name: [value] * count for name, value in ROW.items()}
    stream = pa.array([None if kind == pa.null() else 3, None, None], kind)
    table = pa.table({**rows, "stream": stream, "latency_ns": pa.array(latency, kind)})
    for written in (
        {},
        {"use_dictionary": False},
        {"use_dictionary": False, "column_encoding": "BYTE_STREAM_SPLIT"},
    ):
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
    with pytest.raises(
        ftlab.UserError, match=r"a\.parquet: cannot be read: column stream: 3.5 is not a whole"
    ):
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
    """Regression: a page of more than 64 MiB was refused; fastparquet makes one of 8.39 million rows."""
    rows = (64 << 20) // 8 + 1
    path = tmp_path / "a.parquet"
    stamps = pa.array(np.arange(rows, dtype=np.int64))
    columns = {
        name: pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int8)), [value])
        for name, value in ROW.items()
    }
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
    whole = tmp_path / "whole.parquet"
    pq.write_table(pa.Table.from_pylist(rows), whole)
    expected = read(whole, 24)

    def part(folder: Path, name: str, begin: int) -> None:
        folder.mkdir(exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows[begin : begin + 2]), folder / name)

    spark = tmp_path / "spark"
    for at in range(12):
        part(tmp_path / "parts", f"part-{at}.parquet", 2 * at)
        # An empty partition of Spark has no file.
        part(spark, f"part-{at + at // 6:05}-9d2f-c000.snappy.parquet", 2 * at)
    (spark / "_SUCCESS").touch()
    (spark / ".part-00000-9d2f-c000.snappy.parquet.crc").write_bytes(b"crc")
    dataset.write_dataset(
        pq.read_table(whole), tmp_path / "arrow", format="parquet", max_rows_per_file=2, max_rows_per_group=2
    )
    names = ["parts", "spark", "arrow", "parts/part-*.parquet", "spark/*.parquet"]
    for name in names:
        assert read(tmp_path / name, 24) == expected, name
        assert ftlab.trace_info(tmp_path / name)["requests"] == 24
        # What reads a trace again for each tenant takes several files too.
        check_alone(traces.trace_config(tmp_path / name), alone=True)
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
        one_row(stream=pa.array([3])),
        folder,
        format="parquet",
        partitioning=["stream"],
        partitioning_flavor="hive",
    )
    with pytest.raises(ftlab.UserError, match="the folder stream=3 holds a column that its files lack"):
        ftlab.trace_info(folder)
    (tmp_path / "none").mkdir()
    with pytest.raises(ftlab.UserError, match="is a directory, not a trace file"):
        ftlab.trace_info(tmp_path / "none")
