"""Notes on results whose figures do not mean what they seem to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ftlab
from front import Cli
from ftlab import html

SMALL = {
    "flash.blocks_per_plane": 64,
    "workload.synthetic.requests": 4000,
    "workload.synthetic.size": "4KiB",
    "workload.synthetic.read_share": "30%",
    "device.precondition": "fill",
    "ftl.mapping_cache": "1KiB",
}

ROOMY: dict[str, Any] = {"flash__blocks_per_plane": 512, "ftl__over_provisioning": "80%"}
"""What leaves so much room that no garbage is collected."""


def notes(**changed: Any) -> str:
    """Returns the notes on a run that would have none, but for the keys that are changed."""
    changed = {key.replace("__", "."): value for key, value in changed.items()}
    return "\n".join(ftlab.run("map-plus", set={**SMALL, **changed}).notes)


def test_a_run_whose_figures_mean_what_they_say_has_no_note() -> None:
    assert notes() == ""


def test_nothing_was_collected() -> None:
    roomy = notes(**ROOMY)
    assert "no block was erased" in roomy and "the write amplification of 1." in roomy
    # Without writes there is no write amplification to be taken for another.
    assert "erased" not in notes(**ROOMY, workload__synthetic__read_share="100%")


def test_a_trial_has_no_notes() -> None:
    assert notes(**ROOMY, workload__synthetic__requests=900) == ""


def test_the_mapping_cache_was_never_short() -> None:
    large = notes(ftl__mapping_cache="64KiB")
    assert "the mapping cache of 64 KiB has room for the entries of all" in large
    # A cache without a limit, and an FTL without a mapping cache, are chosen as such.
    assert notes(ftl__mapping_cache="unlimited") == ""
    assert notes(ftl__kind="page", ftl__mapping_cache="unlimited") == ""


def test_pages_were_read_that_nothing_had_written() -> None:
    empty = notes(device__precondition="none", workload__synthetic__requests=1000)
    assert "reads of logical pages found nothing written there (the device was empty at time 0)" in empty
    half = notes(device__precondition="mapped", device__precondition_share="50%")
    assert "(precondition mapped did not write them)" in half
    hybrid = {"ftl__kind": "bast", "host__scheduler": "noop", "ftl__mapping_cache": "unlimited"}
    hybrid["ftl__over_provisioning"] = "15%"
    assert "found nothing written" not in notes(**hybrid)
    assert "found nothing written" in notes(**hybrid, device__precondition="none")


def test_notes_are_said_and_shown_but_not_in_the_result(cli: Cli, tmp_path: Path) -> None:
    keys = [f"--set={key.replace('__', '.')}={value}" for key, value in {**SMALL, **ROOMY}.items()]
    done = cli("run", "map-plus", *keys, "--json", "a.json", "--html", "a.html")
    assert done.returncode == 0 and done.stderr.startswith("note: no block was erased"), done.stderr
    assert "no block was erased" not in done.stdout
    assert "no block was erased" not in (cli.directory / "a.json").read_text()
    assert '<p class="note">No block was erased' in (cli.directory / "a.html").read_text()


def test_a_page_of_several_runs_says_whose_note_it_is(tmp_path: Path) -> None:
    varied = {"ftl.over_provisioning": ["7%", "80%"]}
    keys = {**SMALL, "flash.blocks_per_plane": 512}
    ftlab.compare("map-plus", varied, set=keys).html(tmp_path / "a.html")
    text = (tmp_path / "a.html").read_text()
    assert '<p class="note">80%: no block was erased' in text and "7%: no block was erased" not in text


def test_a_page_says_what_only_the_run_knew_if_the_run_makes_it(tmp_path: Path) -> None:
    """A page of results from files leaves out what the results do not hold."""
    result = ftlab.run("map-plus", set={**SMALL, "device.precondition": "none"})
    result.html(tmp_path / "a.html")
    assert "found nothing written there" in (tmp_path / "a.html").read_text()
    assert "found nothing written there" not in html.render(title="x", runs=[({"a": "b"}, result)])


SSD: dict[str, Any] = {
    "flash__channels": 8,
    "flash__chips_per_channel": 2,
    "flash__blocks_per_plane": 32,
    "workload__synthetic__interarrival": "1ms",
    "workload__synthetic__read_share": "50%",
    "host__scheduler": "noop",
    "host__queue_depth": 64,
    "device__scheduler": "direct",
    "device__queue_depth": 64,
    "ftl__mapping_cache": "unlimited",
    "ftl__kind": "page",
}


def test_reads_of_an_ssd_wait_for_collection() -> None:
    waiting = notes(**SSD)
    assert "longer than an erasure: reads wait until programs and collection are done" in waiting
    assert (
        '(flash.suspend = "program-erase", flash.out_of_order = true, ftl.allocation = "dynamic")' in waiting
    )
    some = SSD | {"ftl__allocation": "dynamic"}
    assert '(flash.suspend = "program-erase", flash.out_of_order = true)' in notes(**some)
    assert notes(**some, flash__suspend="program-erase", flash__out_of_order=True) == ""
    # A card of few LUNs, or a load of reads alone, has nothing to suspend.
    assert "erasure" not in notes(**SSD | {"flash__channels": 4})
    assert "erasure" not in notes(**SSD | {"workload__synthetic__read_share": "97%"})
