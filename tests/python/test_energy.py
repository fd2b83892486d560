"""Energy in everything that shows results: reports, tables, pages, studies and metrics."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import ftlab
from front import Cli
from ftlab.studies.expression import Expression
from ftlab.studies.rows import names_of

ENERGIES = {
    "energy.read": "10uJ",
    "energy.program": "100uJ",
    "energy.erase": "1mJ",
    "energy.transfer": "12pJ/B",
    "energy.link": "20pJ",
    "energy.command": "1uJ",
    "energy.idle": "50mW",
    "energy.active": "1.2W",
}
LOAD = {"workload.synthetic.requests": 3000, "workload.synthetic.read_share": "20%"}
PARTS = ("read", "program", "erase", "transfer", "link", "command", "active", "idle")


@pytest.fixture(scope="module")
def comparison() -> ftlab.Comparison:
    """Returns a run without energies and one with them."""
    vary = {"energy.read": ["0pJ", "10uJ"]}
    on = {key: value for key, value in ENERGIES.items() if key != "energy.read"}
    plain = ftlab.compare("map-plus", vary, set={**LOAD, **on})
    return plain


def test_the_parts_are_what_the_counts_say(comparison: ftlab.Comparison) -> None:
    data = comparison[1].to_dict()
    energy, flash, trace = data["energy"], data["flash"], data["trace"]
    page = 4096
    reads, programs, erases = (sum(flash[kind].values()) for kind in ("reads", "programs", "erases"))
    expected = {
        "read_mj": reads * 0.010,
        "program_mj": programs * 0.100,
        "erase_mj": erases * 1.0,
        "transfer_mj": (reads + programs) * page * 12e-9,
        "link_mj": (trace["bytes_read"] + trace["bytes_written"]) * 20e-9,
        "command_mj": trace["requests"] * 1e-3,
    }
    assert {name: energy[name] for name in expected} == pytest.approx(expected, rel=1e-12)
    assert energy["total_mj"] == pytest.approx(sum(energy[f"{part}_mj"] for part in PARTS), rel=1e-12)
    time_ns = energy["active_mj"] / 1.2e-6 + energy["idle_mj"] / 50e-9
    assert time_ns == pytest.approx(data["elapsed_ns"], rel=1e-12)
    host = flash["reads"]["host"] * 0.010 + flash["programs"]["host"] * 0.100
    host += (flash["reads"]["host"] + flash["programs"]["host"]) * page * 12e-9
    assert energy["by_cause"]["host"] == pytest.approx(host, rel=1e-12)


def test_reports_tables_and_pages_show_energy(comparison: ftlab.Comparison, tmp_path: Path) -> None:
    energy = comparison[1].to_dict()["energy"]
    text = str(comparison[1])
    assert re.search(r"^energy: [0-9.,]+ mJ, [0-9.,]+ uJ for each request$", text, re.MULTILINE)
    share = f"{energy['read_mj'] / energy['total_mj'] * 100:.1f}"
    assert re.search(rf"^    of it .*read {share} %", text, re.MULTILINE)
    assert re.search(r"^    of the flash: .*host [0-9.]+ %", text, re.MULTILINE)
    assert comparison.to_polars()["energy.total_mj"][1] == energy["total_mj"]
    assert re.search(r"^  energy, mJ ", str(comparison), re.MULTILINE)
    comparison.html(tmp_path / "a.html")
    assert f'"energy":{{"total_mj":{energy["total_mj"]!r}' in (tmp_path / "a.html").read_text()


def test_without_energies_nothing_shows_any(tmp_path: Path) -> None:
    result = ftlab.run("map-plus", set=LOAD)
    assert result.energy is None and "energy:" not in str(result)
    off = ftlab.compare("map-plus", {"host.scheduler": ["noop", "map+"]}, set=LOAD)
    assert "energy" not in str(off) and not [name for name in off.to_polars().columns if "energy" in name]


def test_a_study_names_energy(comparison: ftlab.Comparison) -> None:
    data = comparison[1].to_dict()
    found = Expression("energy.per_request_uj * trace.requests / 1000", "here").number(names_of(data))
    assert found == pytest.approx(data["energy"]["total_mj"])


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("energy.read", "10", "no unit; write 10nJ or 10uJ"),
        ("energy.idle", "3", "no unit; write 3mW or 3W"),
        ("energy.transfer", "12uJ/s", "unknown unit uJ/s"),
        ("energy.read", "1uJ/2uJ", "2 energies for the 1 page types of flash.cell"),
        ("energy.program", "2J", "must be at most 1J"),
    ],
)
def test_slips_are_named(cli: Cli, key: str, value: str, says: str) -> None:
    done = cli("run", "map-plus", "--set", f"{key}={value}")
    assert done.returncode == 2 and says in done.stderr, done.stderr


def test_values_are_shown_as_people_write_them(cli: Cli) -> None:
    (cli.directory / "a.toml").write_text(
        'preset = "map-plus"\n[energy]\nread = "58000nJ"\ntransfer = "0.012 nJ"\nidle = "0.35W"\n'
    )
    result = ftlab.run(cli.directory / "a.toml", set={"workload.synthetic.requests": 10})
    shown = result.to_dict()["config"]["energy"]
    assert (shown["read"], shown["transfer"], shown["idle"]) == ("58uJ", "12pJ/B", "350mW")
