"""Licences and known advisories of what ftlab is built from: the packages in its lock files.

They are Cargo.lock and requirements-tests.lock, which has all of requirements.lock too.

Licences come from the packages themselves and are checked against ALLOWED; this check needs no network,
except for what cargo fetches. Advisories need data that no package registry has: for Python, pip-audit asks
PyPI's own service; for crates, cargo-deny reads RustSec's database, which is a repository. Each tool is run
if it is installed, and the date of its data is printed; if one is missing, the output says so, since "not
checked" is not "nothing found".

Exit status: 1 for a licence that is not allowed or an advisory that applies.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]

ALLOWED = {
    *("Apache-2.0", "Apache-2.0 WITH LLVM-exception", "MIT", "BSD-2-Clause", "BSD-3-Clause", "0BSD", "ISC"),
    *("Zlib", "bzip2-1.0.6", "Unicode-3.0", "PSF-2.0", "CC0-1.0", "Unlicense"),
    # Licences of tools that only tests use: nothing that links them is distributed.
    "MPL-2.0",
}
"""SPDX identifiers of the licences that are allowed."""

CLASSIFIED = {
    "BSD License": "BSD-3-Clause",
    "MIT License": "MIT",
    "Apache Software License": "Apache-2.0",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}
"""SPDX identifiers of licences, by the names that older metadata uses."""

STATED = {
    **dict.fromkeys(("partd", "protobuf", "psutil", "vl-convert-python"), "BSD-3-Clause"),
    **dict.fromkeys(("perfetto", "tzdata"), "Apache-2.0"),
    "pyright": "MIT",
    # The first licence is that of the package itself, the second that of axe, which it contains.
    "axe-playwright-python": "MIT AND MPL-2.0",
    "tqdm": "MPL-2.0 AND MIT",
}
"""Licences of packages whose metadata is free text; they were read by hand in the packages' files."""

ADVISORY_DATABASES = Path.home() / ".cargo" / "advisory-dbs"
"""Where cargo-deny keeps its data."""


def allowed(expression: str) -> bool:
    """Whether the allowed licences satisfy an SPDX expression."""
    terms = re.sub(
        r"\b(?!AND\b|OR\b)[A-Za-z0-9.+-]+(?: WITH [A-Za-z0-9.+-]+)?",
        lambda found: str(found[0] in ALLOWED),
        # A slash is Cargo's old syntax for OR.
        expression.replace("/", " OR "),
    )
    terms = terms.replace("AND", "and").replace("OR", "or")
    if not re.fullmatch(r"(?:True|False|and|or|[() ])+", terms):
        return False
    return bool(eval(terms))


def crates() -> Iterator[tuple[str, str]]:
    """Yields the name and version, and the licence, of each crate that the lock file lists."""
    call = ["cargo", "metadata", "--locked", "--format-version", "1"]
    done = subprocess.run(call, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    for package in json.loads(done.stdout)["packages"]:
        yield f"{package['name']} {package['version']}", package["license"] or "none stated"


def distributions() -> Iterator[tuple[str, str]]:
    """Yields the name and version, and the licence, of each installed Python package that the lock file
    lists.
    """
    for line in (ROOT / "requirements-tests.lock").read_text().splitlines():
        if not line or line.startswith(("#", " ")):
            continue
        # A line that ends in a backslash is continued by lines with hashes.
        requirement = Requirement(line.removesuffix("\\"))
        if requirement.marker is not None and not requirement.marker.evaluate():
            continue
        found = importlib.metadata.distribution(requirement.name).metadata.json
        classified = [
            CLASSIFIED.get(each.split(" :: ")[-1], each)
            for each in found.get("classifier", [])
            if each.startswith("License :: ")
        ]
        licence = found.get("license_expression") or STATED.get(requirement.name) or " AND ".join(classified)
        yield f"{requirement.name} {found['version']}", str(licence or "none stated")


def licences() -> int:
    """Prints the licence of each package; returns how many licences are not allowed."""
    refused = 0
    for what, packages in (("crates", list(crates())), ("Python packages", list(distributions()))):
        counted = Counter(licence for _, licence in packages)
        print(f"licences of {len(packages)} {what}:")
        for licence, number in counted.most_common():
            print(f"  {number:3}  {licence}")
        for name, licence in packages:
            if not allowed(licence):
                print(f"  NOT ALLOWED: {name}: {licence}")
                refused += 1
    return refused


def python_advisories() -> int:
    """Prints what pip-audit finds; returns how many advisories apply."""
    program = shutil.which("pip-audit")
    if program is None:
        print(
            "advisories of Python packages: NOT CHECKED, pip-audit is not installed (pip install pip-audit)"
        )
        return 0
    call = [
        program,
        "--requirement",
        "requirements-tests.lock",
        "--no-deps",
        "--disable-pip",
        "--format",
        "json",
    ]
    done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=False)
    try:
        found = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        print(f"advisories of Python packages: NOT CHECKED, pip-audit says: {done.stderr.strip()[-200:]}")
        return 0
    skipped = [each for each in found if "skip_reason" in each]
    checked = len(found) - len(skipped)
    today = datetime.datetime.now(datetime.UTC).date()
    print(f"advisories of Python packages: PyPI's service, asked on {today}: {checked} of {len(found)} known")
    if skipped:
        print(f"  NOT CHECKED: {len(skipped)}: {skipped[0]['skip_reason']}, and so on")
    holding = [(each, one["id"]) for each in found for one in each.get("vulns", [])]
    for each, advisory in holding:
        print(f"  HOLDS: {each['name']} {each['version']}: {advisory}")
    return len(holding)


def crate_advisories() -> int:
    """Prints what cargo-deny finds; returns 1 if an advisory applies."""
    if shutil.which("cargo-deny") is None:
        print("advisories of crates: NOT CHECKED, cargo-deny is not installed (cargo install cargo-deny)")
        return 0
    subprocess.run(["cargo", "deny", "fetch", "db"], cwd=ROOT, capture_output=True, check=False)
    fetched = max((path.stat().st_mtime for path in ADVISORY_DATABASES.glob("*")), default=None)
    if fetched is None:
        print("advisories of crates: NOT CHECKED, RustSec's database cannot be fetched")
        return 0
    date = datetime.datetime.fromtimestamp(fetched, datetime.UTC).date()
    print(f"advisories of crates: RustSec's database, fetched on {date}")
    call = ["cargo", "deny", "check", "--disable-fetch", "advisories"]
    return int(subprocess.run(call, cwd=ROOT, check=False).returncode != 0)


def main() -> None:
    """Prints licences and advisories; the exit status says whether something is wrong."""
    wrong = licences() + python_advisories() + crate_advisories()
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
