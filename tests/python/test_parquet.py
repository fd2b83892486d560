"""Parquet traces, compared with pyarrow as a second implementation."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
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
    """Unknown bits are ignored, and so is FUA on anything but a write. pandas makes floats of a column in
    which a value is missing.
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
