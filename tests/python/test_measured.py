"""Measured files: what is read from tables and directories, and what is refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from ftlab._core import UserError
from ftlab.calibration import measured
from ftlab.calibration.measured import Row
from test_measured_fio import FIO, read, refused

HEADER = "drive,op,bs,depth,jobs,engine,iops,mean_us,p50_us,p99_us,p999_us,source"
LINE = "d,randread,4096,4,2,io_uring,100000,79,70,160,300,a.json"
TABLE = f"{HEADER}\n{LINE}\nd,write,16384,1,1,spdk,50000,19.5,,,,\n"


def test_a_table(tmp_path: Path) -> None:
    rows, notes = read(tmp_path, TABLE, "a.csv")
    file = str(tmp_path / "a.csv")
    assert rows == [
        Row("d", "randread", 4096, 4, 2, "io_uring", 1e5, 79.0, 70.0, 160.0, 300.0, "a.json", 2, file),
        Row("d", "write", 16384, 1, 1, "spdk", 5e4, 19.5, None, None, None, file, 3, file),
    ]
    assert (notes, rows[0].place) == ([], f"{file}:2")


def test_columns_in_any_order_some_missing_some_unknown(tmp_path: Path) -> None:
    text = (
        "\ufeff jobs ,mean_us,iops,bs,op,drive,depth,p99,p50_us\r\n\r\n1,79,50000.0,4096.0,read,d,4,3,NaN\r\n"
    )
    rows, notes = read(tmp_path, text, "a.csv")
    assert (rows[0].bs, rows[0].depth, rows[0].p50_us, rows[0].engine, rows[0].line) == (4096, 4, None, "", 3)
    assert notes[0].startswith(
        'a.csv:1: skipped columns that nothing here reads: "p99"; there are drive,op,bs'
    )


def test_a_run_in_which_nothing_completed_is_left_out(tmp_path: Path) -> None:
    rows, notes = read(tmp_path, TABLE + "d,write,512,1,1,io_uring,0.0,0.0,,,,\n", "a.csv")
    assert (len(rows), notes) == (2, ["a.csv:4: iops is 0, nothing completed: left out"])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("4096,4,", "4,4096,"), "a.csv:2: bs: 4 is less than a sector; write bytes, such as 4096"),
        (("4096,4,", "4k,4,"), 'a.csv:2: bs: "4k" is not a number; write for example 68.29'),
        (("4096,4,", "4096,4.5,"), 'a.csv:2: depth: "4.5" is not a whole number from 1 to 65536'),
        (("4096,4,2", "4096,0,2"), 'a.csv:2: depth: "0" is not a whole number'),
        (
            ("100000,79", "100000,79000"),
            "makes 7900 outstanding requests, but depth x jobs is 8: is mean_us in nano",
        ),
        (("100000,79", "100000,0.079"), "jobs is 8: is mean_us in milliseconds, or iops in thousands?"),
        # A rate that does not fit its mean; the host's time takes no quarter of a loop.
        (("100000,79", "74000,79"), "makes 5.846 outstanding requests, but depth x jobs is 8: check all"),
        (("100000,79", "50000,79"), "jobs is 8: is iops that of one job? It is the sum of all jobs"),
        (
            ("4096,4,2", "4096,64,2"),
            "jobs is 128: check all four; nothing else limits the rate of a closed loop",
        ),
        (("4096,4,2", "4096,32,8"), "jobs is 256: did the engine keep one"),
        (("70,160", "160,70"), "a.csv:2: p50_us (160) is above p99_us (70): are the columns swapped?"),
        (("160,300", "300,160"), "a.csv:2: p99_us (300) is above p999_us (160): are the columns swapped?"),
        (("70,160,300", "70000,160000,300000"), "p50_us (70000) cannot be above 2 times mean_us (79)"),
        (
            ("70,160,300", "0.07,0.16,0.3"),
            "a.csv:2: p999_us (0.3) is far below mean_us (79): all times are in",
        ),
        (("100000,79", "79,100000"), "a.csv:2: p999_us (300) is far below mean_us (100000)"),
        (("79,70", "0,70"), "a.csv:2: mean_us is 0, but requests completed"),
        (("79,70", "79,0"), "a.csv:2: p50_us: 0 is not a latency; leave the field empty"),
        (("79,70", '"79,5",70'), 'a.csv:2: mean_us: "79,5" is not a number; write for example 68.29'),
        (("79,70", "1_000,70"), 'a.csv:2: mean_us: "1_000" is not a number'),
        (("100000", "1e999"), 'a.csv:2: iops: "1e999" is not a number'),
        (("100000", "-5"), 'a.csv:2: iops: "-5" is not a number'),
        (("randread", "random"), 'a.csv:2: op: "random" is not one of read, randread, write'),
        (("randread", "x" * 5000), f'a.csv:2: op: "{"x" * 60}..." is not one of'),
        (
            ("a.json", "a,json"),
            "a.csv:2: 13 fields, but the first line names 12; put text with a comma in it into",
        ),
        (("a.json", '"a.json'), "a.csv:3: not CSV: unexpected end of data"),
        (
            ("mean_us", "mean_ns"),
            'a.csv:1: no column mean_us; in their place there are "mean_ns"; a table has',
        ),
        (("p99_us", "p50_us"), "a.csv:1: two columns are named p50_us; remove one"),
        ((HEADER, HEADER.replace(",", ";")), "a.csv:1: columns are separated by commas; save the table as"),
        (
            (TABLE, ""),
            "a.csv:1: empty; the first line names the columns: drive,op,bs,depth,jobs,engine,iops,",
        ),
        ((TABLE, HEADER), "a.csv: no measured row is left; measure with the jobs of `ftlab probe`"),
    ],
)
def test_tables_that_cannot_be_true(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    assert said in refused(tmp_path, TABLE.replace(*change, 1), "a.csv")


def test_a_rate_alone_tells_the_mean(tmp_path: Path) -> None:
    """As in a maker's sheet: a closed loop of 4 x 2 requests at 100,000 a second takes 80 us for each."""
    rows, notes = read(tmp_path, TABLE.replace("100000,79,70,160,300", "100000,,,,", 1), "a.csv")
    assert [row.mean_us for row in rows] == [80.0, 19.5]
    assert notes == ["a.csv: rows without mean_us: 1; it is taken as depth x jobs / iops (Little's law)"]


@pytest.mark.parametrize("mean", ["", "1e-300"])
def test_a_mean_below_a_nanosecond_is_refused(tmp_path: Path, mean: str) -> None:
    """Regression: such a rate was taken. A mean of a nanosecond still is."""
    text = f"drive,op,bs,depth,jobs,iops,mean_us\nd,randread,4096,1,1,RATE,{mean}\n"
    table = text.replace("RATE", "1e306" if mean else "1e300")
    assert refused(tmp_path, table, "a.csv").startswith("a.csv:2: iops: too large: the mean latency of 1e-")
    rows, _ = read(tmp_path, text.replace("RATE", "1e9").replace("1e-300", "1e-3"), "a.csv")
    assert [row.mean_us for row in rows] == [0.001]


def test_a_rate_and_a_latency_that_may_be_swapped_are_noted(tmp_path: Path) -> None:
    """Their product tells nothing, and without percentiles nothing else does."""
    swapped = "drive,op,bs,depth,jobs,mean_us,iops\nd,randread,4096,4,2,100000,80\n"
    rows, notes = read(tmp_path, swapped, "a.csv")
    assert (len(rows), len(notes)) == (1, 1)
    assert notes[0].startswith("a.csv:2: 80 requests a second of 100000 us each are slow for flash")
    assert read(tmp_path, swapped.replace("mean_us,iops", "iops,mean_us"), "a.csv")[1] == []
    slow = "drive,op,bs,depth,jobs,iops,mean_us\nd,write,131072,32,1,950,33554\n"
    assert read(tmp_path, slow, "a.csv")[1] == [], "an eMMC writes so"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path, said in (
        (tmp_path / "none.csv", "cannot read: No such file or directory"),
        (tmp_path, "no .csv or .json file in it; name the directory of fio's output, or files"),
        (Path("a\0b.csv"), "not the name of a file"),
    ):
        with pytest.raises(UserError, match=said):
            measured.read([path])
    with pytest.raises(UserError, match="no file: no measured row is left"):
        measured.read([])
    (tmp_path / "a.csv").write_bytes(f"{TABLE}\xe9".encode("latin-1"))
    with pytest.raises(UserError, match=r"a\.csv:4: not UTF-8; save the file as UTF-8 text"):
        measured.read([tmp_path])


def test_a_directory_stands_for_the_files_below_it(tmp_path: Path) -> None:
    (tmp_path / "b" / "c").mkdir(parents=True)
    (tmp_path / "b" / "c" / "1.json").write_text(json.dumps(FIO))
    (tmp_path / "b" / "2.CSV").write_text(TABLE)
    (tmp_path / "b" / "fill_bw.1.log").write_text("1000, 2000, 1, 0, 0\n")
    (tmp_path / "README.md").write_text("figures")
    rows = measured.read([tmp_path])
    assert [row.place.removeprefix(f"{tmp_path}/b/") for row in rows] == ["2.CSV:2", "2.CSV:3", "c/1.json:1"]


def test_files_that_gzip_has_compressed(tmp_path: Path) -> None:
    """By their first bytes, whatever they are called; in a directory by their names."""
    whole = gzip.compress(json.dumps(FIO).encode())
    for name, data in (("1.json.gz", whole), ("2.CSV.GZ", gzip.compress(TABLE.encode())), ("3.json", whole)):
        (tmp_path / name).write_bytes(data)
    (tmp_path / "fill_bw.1.log.gz").write_bytes(whole)
    rows = measured.read([tmp_path])
    places = [row.place.removeprefix(f"{tmp_path}/") for row in rows]
    assert places == ["1.json.gz:1", "2.CSV.GZ:2", "2.CSV.GZ:3", "3.json:1"]
    packed = tmp_path / "3.json"
    nameless = tmp_path / "t.gz"
    nameless.write_bytes(gzip.compress(TABLE.encode()))
    with pytest.raises(UserError, match=r"t\.gz: holds no JSON; .*; name a table \.csv or \.csv\.gz"):
        measured.read([nameless])
    for data in (whole[:-4], whole[:40], b"\x1f\x8bno header", whole[:20] + b"\xff" * 8 + whole[28:]):
        packed.write_bytes(data)
        with pytest.raises(UserError, match=r"3\.json: the gzip file is damaged or cut short; copy it again"):
            measured.read([packed])
    # What expands beyond the bound is refused before it is expanded.
    packed.write_bytes(gzip.compress(b" " * (measured.MOST_BYTES + 2)))
    with pytest.raises(UserError, match=r"3\.json: larger than 256 MiB"):
        measured.read([packed])


def test_a_file_that_is_there_plain_and_compressed_is_read_once(tmp_path: Path) -> None:
    """Regression: each of its rows was there twice."""
    (tmp_path / "a.csv").write_text(TABLE)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(TABLE.encode()))
    notes: list[str] = []
    assert len(measured.read([tmp_path], notes.append)) == 2
    assert notes == [f"{tmp_path}/a.csv.gz: left out, as a.csv is there too"]
    assert len(measured.read([tmp_path / "a.csv", tmp_path / "a.csv.gz"])) == 4, "they were asked for"
