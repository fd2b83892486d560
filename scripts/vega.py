"""Bundles the charting library of the HTML reports: ``python scripts/vega.py``, which `make` runs once.

Bundling takes seconds of processor time, which each report would otherwise spend again, so the bundle is
stored in the package, as a file that is not in the repository. ``--licences`` writes the licences of its
contents, which each report includes: run it after a change of vl-convert's version. The licences come from
the npm packages of the versions in the bundle, so this needs npm and its registry.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import vl_convert

from ftlab.html.page import bundle

HTML = Path(__file__).resolve().parents[1] / "python" / "ftlab" / "html"
NOT_BUNDLED = ("yargs", "commander", "iconv-lite", "rw", "vega-typings", "@types/geojson", "@types/estree")
"""Dependencies that are not in the bundle: those that only command lines need, and packages of types."""


def licences(modules: Path) -> str:
    """Returns the list of the packages in the bundle, followed by each licence text once."""
    texts: dict[str, list[str]] = {}
    waiting, seen = ["vega-embed", "vega", "vega-lite", "lodash.debounce"], set(NOT_BUNDLED)
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        package = json.loads((modules / name / "package.json").read_text())
        waiting += package.get("dependencies", {})
        (text, *_) = sorted((modules / name).glob("LICEN[CS]E*"))
        texts.setdefault("\n".join(map(str.rstrip, text.read_text().strip().splitlines())), []).append(name)
    ordered = sorted((sorted(names), text) for text, names in texts.items())
    return "\n\n".join(f"--- {', '.join(names)} ---\n\n{text}" for names, text in ordered) + "\n"


def write_licences() -> None:
    """Installs the packages to get their licences, and writes these to a file."""
    wanted = {
        "vega": vl_convert.get_vega_version(),
        "vega-embed": vl_convert.get_vega_embed_version(),
        "vega-lite": f"^{vl_convert.get_vegalite_versions()[-1]}",
    }
    with tempfile.TemporaryDirectory() as folder:
        packages = [f"{name}@{version}" for name, version in wanted.items()]
        call = ["npm", "install", "--ignore-scripts", "--prefix", folder, *packages, "lodash.debounce"]
        subprocess.run(call, check=True, stdout=subprocess.DEVNULL)
        text = licences(Path(folder) / "node_modules")
    (HTML / "vega.licences.txt").write_text(text, encoding="utf-8")


def main() -> None:
    """Writes the bundle, or the licences."""
    if "--licences" in sys.argv[1:]:
        return write_licences()
    (HTML / "vega.js.gz").write_bytes(gzip.compress(bundle().encode(), 9, mtime=0))


if __name__ == "__main__":
    main()
