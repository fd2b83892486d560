"""Layouts in which people have traces and jobs: FIU, binary blktrace, oracleGeneral, io-tracer, fio jobs."""

from __future__ import annotations

import gzip
import json
import struct
from pathlib import Path

import pytest

import ftlab
from front import Cli

FIU = """89966437846610 4892 syslogd 904265560 8 W 6 0 531e779a25eab7b5
89966438846610 4892 syslogd 904265560 16 R 6 0 531e779a25eab7b5
89966439846610 2522 kjournald 8 8 W 8 1
"""

READ, WRITE, FLUSH, SYNC, NOTIFY, DISCARD, FUA = (1 << bit for bit in (0, 1, 2, 3, 10, 13, 15))
QUEUE, ISSUE, COMPLETE = 1, 7, 8


def event(
    time_ns: int, action: int, kind: int, sector: int, size: int, extra: bytes = b"", order: str = "<"
) -> bytes:
    """Returns a record of blktrace, followed by its extra data."""
    packed = (0x65617407, 1, time_ns, sector, size, action | kind << 16, 697, 8 << 20 | 16, 0, 0, len(extra))
    return struct.pack(f"{order}IIQQIIIIIHH", *packed) + extra


def events(order: str = "<") -> bytes:
    """Returns a recording in which requests are queued, issued and completed, with messages in between."""
    made = [event(0, 2, NOTIFY, 0, 0, b"kworker\0", order)]
    for action, delay in ((QUEUE, 0), (ISSUE, 10), (COMPLETE, 5000)):
        made += [
            event(1000 + delay, action, READ, 8, 4096, b"", order),
            event(2000 + delay, action, WRITE | SYNC | FUA, 16, 8192, b"x" * 7, order),
            event(3000 + delay, action, DISCARD | WRITE, 800, 65536, b"", order),
            event(4000 + delay, action, FLUSH | WRITE, 0, 0, b"", order),
        ]
    return b"".join(made)


def head(cli: Cli, *arguments: str) -> list[str]:
    return cli.ok("trace", "head", *arguments).splitlines()[1:]


def test_fiu(cli: Cli) -> None:
    (cli.directory / "homes.blkparse").write_text(FIU)
    found = json.loads(cli.ok("trace", "info", "homes.blkparse", "--json", "-"))
    assert (found["format"], found["reads"], found["writes"]) == ("fiu", 1, 2)
    offset = 904265560 * 512
    rows = [f"0,W,{offset},4096", f"1000000,R,{offset},8192", f"2000000,W,{(1 << 46) + 4096},4096"]
    assert head(cli, "homes.blkparse") == rows
    (cli.directory / "bad").write_text(FIU.replace(" W 8 1", " X 8 1"))
    done = cli("trace", "info", "bad")
    assert (done.returncode, done.stderr.startswith('error: bad:3: operation is "X"')) == (2, True), (
        done.stderr
    )


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_binary_blktrace(cli: Cli, order: str, pack: type[bytes]) -> None:
    (cli.directory / "sda.blktrace.0").write_bytes(pack(events(order)))
    found = json.loads(cli.ok("trace", "info", "sda.blktrace.0", "--json", "-"))
    assert (found["format"], found["requests"], found["dropped"]) == ("blktrace", 4, {"not_issue": 8})
    assert found["notes"][0] == "counted the rows of action Q"
    assert "blkparse -i NAME -d all.bin -O" in found["notes"][1]
    assert head(cli, "sda.blktrace.0") == [
        "0,R,4096,4096",
        "1000,WF,8192,8192",
        "2000,T,409600,65536",
        "3000,F,0,0",
    ]
    cli.ok("run", "map-plus", "--trace", "sda.blktrace.0")


def test_blktrace_of_completions_alone(cli: Cli) -> None:
    (cli.directory / "all.bin").write_bytes(
        event(7, COMPLETE, READ, 8, 512) + event(9, COMPLETE, WRITE, 8, 512)
    )
    assert head(cli, "all.bin") == ["0,R,4096,512", "2,W,4096,512"]


def test_damaged_blktrace(cli: Cli) -> None:
    (cli.directory / "cut").write_bytes(events()[:-5])
    assert cli("trace", "info", "cut").stderr.startswith(
        "error: cut: row 13: the file ends within a record of 48 B"
    )
    (cli.directory / "torn").write_bytes(events()[:56] + b"x" * 60)
    assert cli("trace", "info", "torn").stderr.startswith("error: torn: row 2: no record of blktrace")


def test_oracle_general(cli: Cli) -> None:
    rows = [(100, 8, 4096, 3), (100, 16, 512, -1), (102, 8, 4096, -1)]
    data = b"".join(struct.pack("<IQIq", *row) for row in rows)
    (cli.directory / "w01.oracleGeneral.bin").write_bytes(data)
    found = json.loads(cli.ok("trace", "info", "w01.oracleGeneral.bin", "--json", "-"))
    assert (found["format"], found["reads"], found["span_ns"]) == ("oracle-general", 3, 2_000_000_000)
    assert head(cli, "w01.oracleGeneral.bin")[:2] == ["0,R,4096,4096", "500000000,R,8192,512"]
    (cli.directory / "other").write_bytes(data)
    assert cli("trace", "info", "other").returncode == 2
    assert len(head(cli, "other", "--format", "oracle-general")) == 3
    (cli.directory / "keys").write_bytes(struct.pack("<IQIq", 1, 2**63, 100, -1))
    done = cli("trace", "info", "keys", "--format", "oracle-general")
    assert done.stderr.startswith("error: keys: row 1: object 9223372036854775808 is not a sector")


IO_TRACER = """timestamp,operation,pid,tid,command,sector,size,latency_ms,device,flags
2024-01-15 10:30:45.5,write,12,12,sh,8,4096,0,8:0,sync
2024-01-15 10:30:45.6,read,7,7,"a, b",16,512,0,8:0,
2024-01-15 10:30:45.7,read,12,12,sh,16,512,0,8:0,
"""


def test_streams_are_listed_and_kept(cli: Cli) -> None:
    (cli.directory / "ds.csv.gz").write_bytes(gzip.compress(IO_TRACER.encode()))
    lines = cli.ok("trace", "info", "ds.csv.gz").splitlines()
    at = lines.index("streams: 2")
    assert lines[at + 1 : at + 3] == [
        "    1 (12 sh): 2 requests (66.67 %), 512 B read, 4 KiB written",
        "    2 (7 a, b): 1 requests (33.33 %), 512 B read, 0 B written",
    ]
    named = json.loads(cli.ok("trace", "info", "ds.csv.gz", "--json", "-"))
    counts = [
        {key: value for key, value in each.items() if key not in ("name", "share")}
        for each in named["streams"]
    ]
    assert named["format"] == "io-tracer"
    assert [each["name"] for each in named["streams"]] == ["12 sh", "7 a, b"]
    for target in ("out.csv", "out.parquet"):
        cli.ok("trace", "convert", "ds.csv.gz", target)
        found = json.loads(cli.ok("trace", "info", target, "--json", "-"))["streams"]
        assert [{**each, "share": None} for each in found] == [
            {**each, "name": None, "share": None} for each in counts
        ]
        assert head(cli, target) == head(cli, "ds.csv.gz")


def test_the_streams_with_most_requests_are_listed(cli: Cli) -> None:
    rows = [f"{at},W,{at * 512},512,{at % 20}" for at in range(50)]
    (cli.directory / "many.csv").write_text("\n".join(["time_ns,op,offset,size,stream", *rows]) + "\n")
    lines = cli.ok("trace", "info", "many.csv").splitlines()
    at = lines.index("streams: 20")
    assert [line.split(":")[0].strip() for line in lines[at + 1 : at + 17]] == [str(n) for n in range(16)]
    assert lines[at + 17] == "    and 4 with fewer requests (--json has all)"


def test_a_fio_job_as_people_have_them(cli: Cli) -> None:
    job = "[global]\nioengine=libaio\nthread\nfilename=/dev/nvme0n1\ndirect=1\n"
    job += "[a]\nrw=randwrite\nsize=1m\n"
    (cli.directory / "a.fio").write_text(job)
    done = cli("run", "map-plus", "--set", "workload.fio_job=a.fio")
    assert done.returncode == 0, done.stderr
    assert done.stderr == "note: the fio job's thread: skipped, nothing here depends on it\n"
    (cli.directory / "b.fio").write_text(job + "verify_only\nexec_prerun=x\nspeed=2\n")
    done = cli("run", "map-plus", "--set", "workload.fio_job=b.fio")
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    assert lines[:3] == [
        "error: b.fio:9: verify_only: write a job that reads",
        "  line 10: exec_prerun=x: commands are not run here; leave it out",
        "  line 11: option speed is not read by ftlab",
    ]
    assert Path(cli.directory / "a.fio").read_text() == job


def test_a_named_vscsi_trace_may_begin_with_any_command(tmp_path: Path) -> None:
    """Recognition asks for reads and writes at the beginning; a trace that is named may have others there."""

    def record(command: int, at: int) -> bytes:
        return struct.pack("<IIIHHQQ", at, 4096, 1, command, 1 << 8, 8 * at, 1000 * at)

    trace = tmp_path / "unmap.vscsi"
    trace.write_bytes(record(0x42, 0) + record(0x2A, 1) + record(0x28, 2))
    rows = ftlab.read_trace(trace, format="vscsi")
    assert rows["op"].to_list() == ["W", "R"]


def test_alicloud_that_begins_at_offset_0_is_not_taken_for_bpftrace(cli: Cli) -> None:
    """Its line is then also one of bpftrace's, a request of 0 bytes in 0 sectors."""
    (cli.directory / "alibaba.csv").write_text(
        "1,W,0,4096,1577808144360767\n1,R,4096,4096,1577808144361767\n"
    )
    assert "alicloud" in cli.ok("trace", "info", "alibaba.csv")
