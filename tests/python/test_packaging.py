"""What packages are made from names what the project itself has and needs."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from ftlab._core import __version__

ROOT = Path(__file__).resolve().parents[2]
RECIPE = (ROOT / "packaging/recipe.yaml").read_text()


def listed(section: str) -> set[str]:
    """Returns the entries of a list in the recipe, without blanks."""
    found = re.search(rf"^  {section}:\n((?:    - .*\n)+)", RECIPE, re.MULTILINE)
    assert found, section
    return {line.removeprefix("    - ").replace(" ", "") for line in found[1].splitlines()}


def test_the_recipe_needs_what_the_package_needs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    python = "python" + project["project"]["requires-python"]
    assert listed("run") == {python, *project["project"]["dependencies"]}
    assert {python, *project["build-system"]["requires"]} <= listed("host")
    assert f'version: "{__version__}"' in RECIPE
    assert all(f"- {name}\n" in RECIPE for name in project["project"]["license-files"])


def test_the_container_has_the_clients_that_the_tests_use() -> None:
    """What continuous integration installs for the live device is in the container too."""
    needed = (ROOT / ".ci/run").read_text()
    live = needed[needed.index("# Clients of the live device.") : needed.index("need sqlite3")]
    packages = set(re.findall(r"^need \S+ (\S+)$", live, re.MULTILINE)) - {"mount"}
    container = (ROOT / "packaging/Containerfile").read_text()
    assert packages >= {"libnbd-bin", "fuse3", "xfsprogs"}
    assert all(f" {package} " in container for package in packages), packages


def test_debian_packages_are_named_after_the_interface_and_take_its_files() -> None:
    """Debian's policy: the package of a shared library carries the number of its soname."""
    build = (ROOT / "crates/capi/build.rs").read_text()
    abi = re.search(r"const ABI: u32 = (\d+);", build)
    assert abi is not None
    control = (ROOT / "packaging/debian/control").read_text()
    packages = re.findall(r"^Package: (.*)$", control, re.MULTILINE)
    assert packages == [f"libftlab{abi[1]}", "libftlab-dev"]
    assert all((ROOT / f"packaging/debian/{package}.install").exists() for package in packages)
    rust = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["rust-version"]
    assert f"cargo (>= {rust}), rustc (>= {rust})" in control
