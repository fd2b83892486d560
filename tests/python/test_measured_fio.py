"""Measured files: what is read from fio's JSON of all versions, and what is left out or refused.

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
    (note,) = notes
    assert note.startswith('a.json:1: job "curve": without the percentiles 99.9; ')


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


def test_interim_reports_of_one_run_are_not_rows(tmp_path: Path) -> None:
    """fio --status-interval=1 reports all jobs again and again; two runs in one file are both read."""

    def report(end_ms: int, elapsed: int, **fields: Any) -> str:
        document = fio(elapsed=elapsed, **fields)
        return json.dumps(document | {"timestamp": end_ms // 1000, "timestamp_ms": end_ms})

    first = [report(1_001_300, 2), report(1_002_300, 3), report(1_003_100, 4)]
    again = [report(1_004_400, 2), report(1_005_200, 2, read=READ | {"iops": 50_500.0})]
    rows, notes = read(tmp_path, "\n".join(first + again))
    assert ([row.iops for row in rows], [row.line for row in rows], notes) == ([5e4, 50_500.0], [3, 5], [])


def test_figures_that_fio_does_not_have(tmp_path: Path) -> None:
    text = json.dumps(FIO).replace('"stddev": 9.0', '"stddev": -nan').replace("300000", "nan")
    assert read(tmp_path, text)[0][0].p999_us is None


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (fio(error=5), 'job "curve" ended with error 5'),
        (fio(read=NOTHING), "no request completed"),
        (fio(read=READ | {"iops": -1.0}), "its rate is not a number above 0 (iops of read)"),
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
    slow = READ | {
        "iops": 25_000.0,
        "total_ios": 500_000,
        "io_bytes": 2_048_000_000,
        "lat_ns": {"mean": 158_000.0},
    }
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
    larger = READ | {"io_bytes": 8_192_000_000}
    document["jobs"].append(fio(options={"bs": "8k"}, jobname="other", read=larger)["jobs"][0])
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
    [
        ("4k,8K,", "read", 4096),
        ("4k,8K", "write", 8192),
        ("1m", "write", 1 << 20),
        # The sizes that fio 3.33 reports of these, io_bytes / total_ios of its null engine.
        ("512,", "write", 4096),
        (",8k", "write", 8192),
        ("8k,,64k", "write", 4096),
        ("4k:8k", "write", 8192),
        ("16KiB", "write", 16_000),
        ("16kb", "write", 16_384),
        ("0x4000", "write", 16_384),
    ],
)
def test_sizes_of_requests(tmp_path: Path, given: str, direction: str, size: int) -> None:
    document = fio(options={"bs": given, "rw": direction}, read=NOTHING)
    document["jobs"][0][direction] = READ | {"io_bytes": size * 1_000_000}
    (row,), notes = read(tmp_path, json.dumps(document))
    # A note would say that the options are not believed.
    assert (row.bs, notes) == (size, [])


def test_a_client_that_does_not_name_options(tmp_path: Path) -> None:
    """Regression: writes of 16 KiB without `job options`, as of some fio servers, were a row "read 4096"."""
    document = fio(read=NOTHING, write=READ | {"io_bytes": 16_384_000_000})
    del document["jobs"][0]["job options"], document["global options"]["rw"]
    document["global options"]["iodepth"] = "4"
    document["client_stats"] = document.pop("jobs")
    (row,), notes = read(tmp_path, json.dumps(document))
    assert (row.op, row.bs, row.depth, row.written) == ("write", 16_384, 4, 16_384_000_000.0)
    assert notes == [
        'a.json:1: job "curve": does not say whether at random (rw): it is taken for writes in order',
        'a.json:1: job "curve": bs=unknown, but its requests are of 16384 B (io_bytes / total_ios): bs is'
        " 16384",
    ]


def test_options_are_believed_where_figures_agree(tmp_path: Path) -> None:
    """The direction, and the size; the last request of a job may be shorter."""
    (row,), notes = read(tmp_path, json.dumps(fio(read=NOTHING, write=READ)))
    assert (row.op, row.bs) == ("write", 4096)
    assert notes == ['a.json:1: job "curve": rw=randread is not what it did: it is taken for writes in order']
    (row,), notes = read(tmp_path, json.dumps(fio(options={"bs": "64k"})))
    assert row.bs == 4096 and notes[0].endswith(
        "bs=64k, but its requests are of 4096 B (io_bytes / total_ios): bs is 4096"
    )
    (row,), notes = read(tmp_path, json.dumps(fio(read=READ | {"io_bytes": 4_095_990_000})))
    assert row.bs == 4096 and not notes
    mixed = fio(read=READ | {"io_bytes": 6_400_000_000})
    assert "its requests are of 6,400.0 B in the mean; a row has one size" in left_out(tmp_path, mixed)
    # fio 2 counted KiB.
    old = {key: value for key, value in READ.items() if not key.endswith("_ns")} | {"io_bytes": 4_000_000}
    assert read(tmp_path, json.dumps(fio(read=old | {"lat": {"mean": 79.0}})))[0][0].bs == 4096


def test_units_of_a_job_with_a_kb_base_of_1000(tmp_path: Path) -> None:
    for bs, size in ("16KiB", 16_384), ("16k", 16_000):
        options = {"bs": bs, "rw": "write", "kb_base": "1000"}
        document = fio(options=options, read=NOTHING, write=READ | {"io_bytes": size * 1_000_000})
        (row,), notes = read(tmp_path, json.dumps(document))
        assert (row.bs, notes) == (size, [])


def test_percentiles_that_cannot_be_true_are_left_out(tmp_path: Path) -> None:
    """A fio 3.32 wrote 17.1 s as every percentile of reads of 9 us."""
    broken = dict.fromkeys(PERCENTILE, 17_112_760_320)
    rows, notes = read(tmp_path, json.dumps(fio(read=READ | {"clat_ns": {"percentile": broken}})))
    assert (rows[0].mean_us, rows[0].p50_us, rows[0].p99_us, rows[0].p999_us) == (79.0, None, None, None)
    assert notes == [
        'a.json:1: job "curve": its percentiles are left out: p50_us (1.71128e+07) cannot be above 2 times'
        " mean_us (79)"
    ]


def test_percentiles_are_those_that_fio_was_asked_for(tmp_path: Path) -> None:
    """--percentile_list=50:90, --clat_percentiles=0, and --lat_percentiles=1 in its place."""
    few = READ | {"clat_ns": {"percentile": {"50.000000": 70_000, "90.000000": 120_000}}}
    whole = READ | {"clat_ns": {}, "lat_ns": {"mean": 79_000.0, "percentile": PERCENTILE}}
    found, said = [], []
    for fields in (few, READ | {"clat_ns": {}}, whole):
        (row,), notes = read(tmp_path, json.dumps(fio(read=fields)))
        found.append((row.p50_us, row.p99_us, row.p999_us))
        said.append([note.partition("; measure without clat_percentiles=0")[0] for note in notes])
    assert found == [(70.0, None, None), (None, None, None), (70.0, 160.0, 300.0)]
    without = 'a.json:1: job "curve": without the percentiles '
    assert said == [[f"{without}99, 99.9"], [f"{without}50, 99, 99.9"], []]


def test_no_name_in_a_file_steers_the_terminal(tmp_path: Path) -> None:
    """Control characters, a line end and half of a surrogate pair are written out; an accent stays."""
    assert left_out(tmp_path, fio(jobname="\x1b[2J\a\n\ud800\u00e9", error=5)) == (
        'a.json:1: job "\\x1b[2J\\x07\\n\\ud800\u00e9": left out: job'
        ' "\\x1b[2J\\x07\\n\\ud800\u00e9" ended with error 5'
    )
    assert "rw=rand\\x1bread is not one of" in left_out(tmp_path, fio(options={"rw": "rand\x1bread"}))


def test_appends_are_writes_with_an_option(tmp_path: Path) -> None:
    document = fio(options={"rw": "write", "zone_append": "1"}, read=NOTHING, write=READ)
    assert read(tmp_path, json.dumps(document))[0][0].op == "append"


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
                at[key] = copy.deepcopy(draw(odd))
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
def test_the_output_of_fio_itself(tmp_path: Path, plus: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    # On a busy machine fio waits between requests, which would leave its rows out by Little's law.
    monkeypatch.setattr("ftlab.calibration.row.LEAST_BUSY", 0.0)
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
