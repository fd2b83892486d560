"""What the shells offer to complete a line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ftlab
from front import Cli

SHELLS = [shell for shell in ("bash", "zsh", "fish") if shutil.which(shell)]


def completed(cli: Cli, line: str) -> list[str]:
    """Returns what bash offers for a line, with the words as bash would pass them to the function."""
    ftlab_itself = cli.directory / "ftlab"
    ftlab_itself.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ftlab "$@"\n')
    ftlab_itself.chmod(0o755)
    # Readline also splits words at = and :.
    broken = [part for word in line.split(" ") for part in word.replace("=", " = ").split(" ") if part]
    words = broken + ([""] if line.endswith((" ", "=")) else [])
    quoted = " ".join(f"'{word}'" for word in words)
    script = (
        'compopt() { :; }; eval "$(ftlab completion bash)"\n'
        f"COMP_LINE='{line}' COMP_POINT={len(line)} COMP_CWORD={len(words) - 1} COMP_WORDS=({quoted})\n"
        '_ftlab_completion; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=cli.directory,
        env={**os.environ, "PATH": f"{cli.directory}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_commands_and_options(cli: Cli) -> None:
    assert completed(cli, "ftlab comp") == ["compare", "completion", "components"]
    assert completed(cli, "ftlab run map-plus --out-of") == ["--out-of-range"]


def test_presets(cli: Cli) -> None:
    assert completed(cli, "ftlab run ") == list(ftlab.presets())
    assert completed(cli, "ftlab compare coop-") == ["coop-bast", "coop-fast"]


def test_keys_and_their_values(cli: Cli) -> None:
    assert completed(cli, "ftlab run map-plus --set ftl.mapping") == ["ftl.mapping_cache="]
    assert completed(cli, "ftlab run map-plus --set ftl.kind=c") == ["cdftl"]
    assert completed(cli, "ftlab run map-plus --set ftl.gc_background=") == ["true", "false"]
    assert completed(cli, "ftlab run map-plus --set ftl.mapping_cache=") == ["unlimited"]
    assert completed(cli, "ftlab compare map-plus --vary ftl.kind=dftl,mi") == ["dftl,minipage"]
    assert "noop,noop" not in completed(cli, "ftlab compare map-plus --vary host.scheduler=noop,")


def test_layouts_and_papers(cli: Cli) -> None:
    assert completed(cli, "ftlab trace info --format fi") == ["fio-iolog", "fiu"]
    assert completed(cli, "ftlab run map-plus --out-of-range ") == ["error", "wrap", "compact"]
    assert completed(cli, "ftlab reproduce ") == [
        "beyond",
        "coop",
        "devices",
        "flin",
        "map-plus",
        "msftl",
        "vios",
        "all",
    ]
    assert completed(cli, "ftlab reproduce map-plus fig8") == [
        "fig8",
        "fig8-shared",
        "fig8-recorded",
        "fig8-shared-recorded",
    ]
    assert completed(cli, "ftlab reproduce vios fig5 fig5") == ["fig5-recorded"]
    assert completed(cli, "ftlab reproduce vios --set ftl.mapping") == ["ftl.mapping_cache="]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_what_is_printed_is_a_script_of_the_shell(cli: Cli, shell: str, tmp_path: Path) -> None:
    script = cli.ok("completion", shell)
    assert f"{shell}_complete" in script
    if shell in SHELLS:
        (tmp_path / "script").write_text(script)
        subprocess.run([shell, "-n", str(tmp_path / "script")], check=True)
    assert cli("completion", "csh").returncode == 2
