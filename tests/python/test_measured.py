"""Measured files: what is read from tables and from fio's JSON of all versions, and what is refused.

The samples of fio 2 are made by hand after axboe/fio stat.c of 2.2.10, 2.4 and 2.21; where fio is installed,
its own output is read too.
"""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ftlab._core import UserError
from ftlab.calibration import latencies, measured
from ftlab.calibration.measured import Row

HEADER = "drive,op,bs,depth,jobs,engine,iops,mean_us,p50_us,p99_us,p999_us,source"
LINE = "d,randread,4096,4,2,io_uring,100000,79,70,160,300,a.json"
TABLE = f"{HEADER}\n{LINE}\nd,write,16384,1,1,spdk,50000,19.5,,,,\n"

PERCENTILE = {"50.000000": 70_000, "99.000000": 160_000, "99.900000": 300_000}
READ = {
    "io_bytes": 4_096_000_000,
    "iops": 50_000.0,
    "runtime": 20_000,
    "total_ios": 1_000_000,
    "slat_ns": {"min": 900, "max": 9_000, "mean": 1_000.0, "stddev": 10.0},
    "clat_ns": {"min": 50_000, "max": 900_000, "mean": 78_000.0, "stddev": 9.0, "percentile": PERCENTILE},
    "lat_ns": {"min": 51_000, "max": 901_000, "mean": 79_000.0, "stddev": 9.0},
}
NOTHING = {"io_bytes": 0, "iops": 0.0, "total_ios": 0}
JOB = {
    "jobname": "curve",
    "groupid": 0,
    "error": 0,
    "job options": {"iodepth": "4"},
    "read": READ,
    "write": NOTHING,
    "trim": NOTHING,
}
OPTIONS = {"rw": "randread", "ioengine": "io_uring", "direct": "1", "filename": "/dev/nvme0n1"}
FIO = {"fio version": "fio-3.33", "global options": OPTIONS, "jobs": [JOB], "disk_util": []}


def read(tmp_path: Path, text: str, name: str = "a.json") -> tuple[list[Row], list[str]]:
    """Returns the rows of a file that holds this text, and the notes."""
    (tmp_path / name).write_text(text)
    notes: list[str] = []
    return measured.read([tmp_path / name], notes.append), [
        note.removeprefix(f"{tmp_path}/") for note in notes
    ]


def refused(tmp_path: Path, text: str, name: str = "a.json") -> str:
    with pytest.raises(UserError) as error:
        read(tmp_path, text, name)
    return str(error.value).removeprefix(f"{tmp_path}/")


def fio(*, options: dict[str, str] | None = None, **fields: Any) -> dict[str, Any]:
    """Returns fio's document with some options of its only job, and some of its fields, as given."""
    document = copy.deepcopy(FIO)
    job: Any = document["jobs"][0]  # type: ignore[index]
    job["job options"] |= options or {}
    job |= fields
    return document


def left_out(tmp_path: Path, document: dict[str, Any]) -> str:
    """Returns the note on a document of which no row is left."""
    (tmp_path / "a.json").write_text(json.dumps(document))
    notes: list[str] = []
    with pytest.raises(UserError, match=r"a\.json: no measured row is left; measure with the jobs of"):
        measured.read([tmp_path / "a.json"], notes.append)
    return notes[-1].removeprefix(f"{tmp_path}/")


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


def test_fio_3(tmp_path: Path) -> None:
    rows, notes = read(tmp_path, json.dumps(FIO, indent=2))
    file = str(tmp_path / "a.json")
    line = json.dumps(FIO, indent=2).split('"jobname"')[0].count("\n") + 1
    tail = (70.0, 160.0, 300.0)
    assert rows == [Row("nvme0n1", "randread", 4096, 4, 1, "io_uring", 5e4, 79.0, *tail, file, line, file)]
    assert notes == []


def test_fio_2_counts_in_microseconds(tmp_path: Path) -> None:
    old = {
        **{key: value for key, value in READ.items() if not key.endswith("_ns")},
        "clat": {"mean": 78.0, "percentile": {"50.000000": 70, "99.000000": 160, "0.00": 0}},
        "lat": {"mean": 79.0},
    }
    rows, notes = read(tmp_path, json.dumps(fio(read=old) | {"fio version": "fio-2.21"}))
    assert (rows[0].mean_us, rows[0].p50_us, rows[0].p99_us, rows[0].p999_us) == (79.0, 70.0, 160.0, None)
    assert notes == []


def test_fio_that_does_not_name_options_is_left_out(tmp_path: Path) -> None:
    old = fio()
    del old["global options"], old["jobs"][0]["job options"]
    old["fio version"] = "fio-2.2.10"
    assert left_out(tmp_path, old) == (
        'a.json:1: job "curve": left out: fio-2.2.10 does not say what the job was; measure with a later fio,'
        " or write a table"
    )


def test_several_documents_and_text_before_them(tmp_path: Path) -> None:
    text = json.dumps(FIO, indent=1)
    warned = f"fio: this platform does not support {{x}}\n{text}\nnote: clock\n{text}{text}\nend\n"
    rows, _ = read(tmp_path, warned)
    height = text.count("\n")
    first = rows[0].line or 0
    assert [row.line for row in rows] == [first, first + height + 2, first + 2 * height + 2]
    assert warned.split("\n")[first - 1].strip().startswith('"jobname"')


def test_figures_that_fio_does_not_have(tmp_path: Path) -> None:
    text = json.dumps(FIO).replace('"stddev": 9.0', '"stddev": -nan').replace("300000", "nan")
    assert read(tmp_path, text)[0][0].p999_us is None


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (fio(error=5), 'job "curve" ended with error 5'),
        (fio(read=NOTHING), "no request completed"),
        (fio(write=READ), "a job of reads and writes; a row has one operation"),
        (fio(read=READ | {"lat_ns": {"mean": 0}}), "fio kept no latencies (gtod_reduce, disable_lat)"),
        (fio(options={"rate_iops": "50k"}), "rate_iops=50k makes it another load than a plain closed loop"),
        (fio(options={"bssplit": "4k/60:8k/40"}), "bssplit=4k/60:8k/40 makes it another load"),
        (fio(options={"bs": "x"}), "bs=x is not a size from 512 to 1073741824"),
        (fio(options={"iodepth": "many"}), "iodepth=many is not a number of requests"),
        (fio(options={"rw": "randrw"}), "rw=randrw is not one of read, randread"),
        (fio(options={"iodepth": "64"}), "outstanding requests, but depth x jobs is 64: check all four"),
    ],
)
def test_jobs_that_cannot_be_a_row(tmp_path: Path, document: dict[str, Any], said: str) -> None:
    note = left_out(tmp_path, document)
    assert note.startswith('a.json:1: job "curve": left out: ')
    assert said in note


def test_only_the_group_of_a_failed_job_is_left_out(tmp_path: Path) -> None:
    document = fio()
    document["jobs"] += [JOB | {"groupid": 1, "error": 28, "jobname": "full"}, JOB | {"groupid": 1}]
    rows, notes = read(tmp_path, json.dumps(document))
    assert len(rows) == 1
    assert notes == ['a.json:1: job "full": left out: job "full" ended with error 28']


def test_jobs_reported_apart_are_added_up(tmp_path: Path) -> None:
    """As group_reporting does; percentiles need the histograms of json+."""
    document = fio(options={"numjobs": "2"})
    slow = READ | {"iops": 25_000.0, "total_ios": 500_000, "lat_ns": {"mean": 158_000.0}}
    document["jobs"].append(document["jobs"][0] | {"read": slow})
    rows, notes = read(tmp_path, json.dumps(document))
    row = rows[0]
    assert (len(rows), row.jobs, row.iops, row.mean_us, row.p50_us) == (
        1,
        2,
        75_000.0,
        (79 * 2 + 158) / 3,
        None,
    )
    assert "percentiles of 2 jobs cannot be added up, they are left out; measure with group" in notes[0]
    bins = ({"60000": 600_000, "90000": 400_000}, {"90000": 300_000, "200000": 199_000, "400000": 1_000})
    for job, held in zip(document["jobs"], bins, strict=True):
        job["read"] = copy.deepcopy(job["read"])
        job["read"].setdefault("clat_ns", {})["bins"] = held
    rows, notes = read(tmp_path, json.dumps(document))
    assert (rows[0].p50_us, rows[0].p99_us, rows[0].p999_us, notes) == (90.0, 200.0, 200.0, [])


def test_jobs_reported_together_count_as_all(tmp_path: Path) -> None:
    together = READ | {"iops": 200_000.0}
    row = read(tmp_path, json.dumps(fio(options={"numjobs": "4"}, read=together)))[0][0]
    assert (row.jobs, row.iops) == (4, 200_000.0)


def test_different_jobs_at_the_same_time_are_left_out(tmp_path: Path) -> None:
    document = fio()
    document["jobs"].append(fio(options={"bs": "8k"}, jobname="other")["jobs"][0])
    assert left_out(tmp_path, document).endswith(
        'the jobs "curve", "other" ran at the same time; give each section a stonewall'
    )


def test_a_server_lists_its_clients_and_their_sum(tmp_path: Path) -> None:
    document = fio()
    document["client_stats"] = [*document.pop("jobs"), JOB | {"jobname": "All clients"}]
    assert [row.jobs for row in read(tmp_path, json.dumps(document))[0]] == [1]


def test_engines_that_wait_have_depth_one(tmp_path: Path) -> None:
    one = READ | {"iops": 12_500.0}
    document = fio(options={"ioengine": "psync", "direct": "0"}, read=one)
    rows, notes = read(tmp_path, json.dumps(document))
    assert rows[0].depth == 1
    assert "engine psync keeps one request outstanding, not iodepth=4: depth is 1" in notes[0]
    assert "direct=1 is not among its options; are the figures those of the page cache?" in notes[1]


@pytest.mark.parametrize(
    ("given", "direction", "size"),
    [("4k,8K,", "read", 4096), ("4k,8K", "write", 8192), ("1m", "write", 1 << 20), ("512,", "write", 512)],
)
def test_sizes_of_requests(tmp_path: Path, given: str, direction: str, size: int) -> None:
    document = fio(options={"bs": given, "rw": direction}, read=NOTHING)
    document["jobs"][0][direction] = READ
    assert read(tmp_path, json.dumps(document))[0][0].bs == size


def test_histograms_of_fio_2_number_their_buckets() -> None:
    """Every bucket of fio 2.4 (6 bits) is where plat_idx_to_val puts it: worked out by hand for some."""
    found = {index: latencies._bucket(index, 6) for index in (5, 127, 128, 191, 192)}
    assert found == {5: 5.0, 127: 127.0, 128: 129.0, 191: 255.0, 192: 258.0}
    old = {"FIO_IO_U_PLAT_BITS": 6, "FIO_IO_U_PLAT_VAL": 64, "FIO_IO_U_PLAT_NR": 1216, "5": 9, "128": 1}
    fields = {"iops": 10.0, "lat": {"mean": 20.0}, "clat": {"bins": old}}
    tail = {"p50_us": 5.0, "p99_us": 129.0, "p999_us": 129.0}
    assert latencies.latencies(fields) == latencies.Latencies(10.0, 20.0, 1.0, tail, {5.0: 9.0, 129.0: 1.0})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "a.json: holds no JSON; measure with fio --output-format=json+"),
        ("job: (g=0): rw=read\n", "a.json: holds no JSON"),
        ("warning\n{\n", "a.json:3: the JSON that begins in line 2 is damaged or cut short"),
        (
            json.dumps(FIO, indent=1)[:900],
            "a.json:53: the JSON that begins in line 1 is damaged or cut short",
        ),
        ("{}", "a.json:1: not the JSON of fio, it holds no jobs; name the files that fio wrote"),
        ('{"jobs": [3]}', "a.json:1: not the JSON of fio, it holds no jobs"),
        ('{"a":' * 100_000, "a.json:1: not the JSON of fio; name a file that fio wrote"),
        ('{"a": ' + "9" * 5000 + "}", "a.json:1: not the JSON of fio; name a file that fio wrote"),
    ],
)
def test_files_that_are_not_of_fio(tmp_path: Path, text: str, said: str) -> None:
    assert refused(tmp_path, text).startswith(said)


@st.composite
def changed(draw: st.DrawFn) -> dict[str, Any]:
    """Returns fio's document with values anywhere in it replaced by others."""
    odd: st.SearchStrategy[Any] = st.sampled_from(
        [None, -1, 0, 1e308, True, "", "4k", [], {}, 10**400, {"a": {}}]
    )
    document = copy.deepcopy(FIO) | {"jobs": [copy.deepcopy(JOB), copy.deepcopy(JOB)]}
    for _ in range(draw(st.integers(1, 4))):
        at: Any = document
        while True:
            keys = sorted(at) if isinstance(at, dict) else range(len(at))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            inner = at[key]
            if not isinstance(inner, dict | list) or draw(st.integers(0, 5)) == 0:
                at[key] = draw(odd)
                break
            at = inner
    return document


@settings(max_examples=200, deadline=None)
@given(document=changed())
def test_no_document_is_more_than_a_users_error(
    tmp_path_factory: pytest.TempPathFactory, document: dict[str, Any]
) -> None:
    path = tmp_path_factory.getbasetemp() / "changed.json"
    path.write_text(json.dumps(document))
    try:
        rows = measured.read([path], lambda note: len(note) < 1000 or pytest.fail(note))
    except UserError as error:
        assert len(str(error)) < 1000
    else:
        assert all(row.iops > 0 and row.mean_us > 0 and row.depth > 0 and row.jobs > 0 for row in rows)


@pytest.mark.skipif(not shutil.which("fio"), reason="fio is not installed")
@pytest.mark.parametrize("plus", [False, True])
def test_the_output_of_fio_itself(tmp_path: Path, plus: bool) -> None:
    # Requests of 1 MiB take far longer than what fio does between them, whatever holds the file.
    job = (
        "[global]\nfilename=data\nsize=8m\nbs=1m\nrw=randread\nioengine=psync\nio_size=400m\n[alone]\n"
        "[together]\nstonewall\nnumjobs=2\ngroup_reporting=1\n[apart]\nstonewall\nnumjobs=2\n"
        "[mixed]\nstonewall\nrw=randrw\n"
    )
    (tmp_path / "a.fio").write_text(job)
    layout = "json+" if plus else "json"
    command = ["fio", f"--output-format={layout}", "--output=a.json", "a.fio"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    notes: list[str] = []
    rows = measured.read([tmp_path / "a.json"], notes.append)
    loads = [(row.op, row.bs, row.depth, row.jobs) for row in rows]
    assert loads == [("randread", 1 << 20, 1, jobs) for jobs in (1, 2, 2)], notes
    assert any("left out: a job of reads and writes" in note for note in notes)
    assert (rows[2].p99_us is not None) == plus
    written = json.loads((tmp_path / "a.json").read_text())["jobs"][0]["read"]
    assert rows[0].mean_us == written["lat_ns"]["mean"] / 1000
    assert rows[0].p99_us == written["clat_ns"]["percentile"]["99.000000"] / 1000
