"""Runs the tests of the core and of the file host against mutants of both: `make mutants`.

In a copy of the workspace below OUT, each place in the two crates that can be mutated gets a switch around it
(ftlab-mutants, in this folder), and the copy is built once. Every test is then run once, by itself, which
shows which mutants it reaches and how long it takes. After that, each mutant of the sample is switched on for
the tests that reach it, the quickest first, until a test fails: the mutant is caught. A mutant that survives
needs a reason in survivors.toml, under its description, which contains no line number; a survivor without a
reason is an error, and so is a share of caught mutants below 95 %.

The sample consists of the mutants whose descriptions, hashed with the seed, give the lowest values: a larger
sample contains the smaller one, and unchanged code keeps its place in it. OUT/outcomes.jsonl holds what was
found; the next run continues there, unless sources or tests have changed (`--again` then tries only those
that survived).
"""

import argparse
import concurrent.futures
import contextlib
import hashlib
import json
import os
import resource
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LEAST_SHARE = 0.95
MEMORY_BYTES = 6 << 30
# Tests that read or build the source are left out, since they would find the switches in it.
OF_THE_SOURCE = {"tidy", "adding_a_part"}
MUTATED = ["core", "files"]
PACKAGES = [*MUTATED, "config"]
# The parts of the workspace that are copied, and the files that its tests read.
COPIED = ["Cargo.toml", "Cargo.lock", "crates", "benches", "tests/mutants", "traces", "workloads", "docs"]

# An object that was read from a line of JSON.
Record = dict[str, Any]


@dataclass
class Mutant:
    number: int
    name: str
    file: str


@dataclass
class Test:
    program: str
    name: str
    folder: str
    seconds: float = 0.0
    reached: set[int] = field(default_factory=set)


def stop(message: str) -> None:
    raise SystemExit(f"make mutants: {message}")


def fingerprint() -> str:
    """Returns a hash of what the outcomes depend on: the sources and the tests of all crates."""
    digest = hashlib.sha256()
    for path in sorted((ROOT / "crates").rglob("*")):
        if path.suffix in {".rs", ".toml"} and "target" not in path.parts:
            digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def copy_tree(tree: Path) -> None:
    """Copies the workspace to ``tree``; files keep their times, so that little is rebuilt."""
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    for name in COPIED:
        source, target = ROOT / name, tree / name
        if source.is_dir():
            ignore = shutil.ignore_patterns("target", "__pycache__")
            shutil.copytree(source, target, ignore=ignore)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)


def cargo(tree: Path, *arguments: str) -> tuple[int, list[Record]]:
    """Runs cargo in the copy; returns its exit status and its messages."""
    environment = os.environ | {
        "CARGO_TARGET_DIR": str(tree.parent / "target"),
        "RUSTFLAGS": "-Awarnings",
        # At this level of optimisation, building takes no longer than running.
        "CARGO_PROFILE_TEST_OPT_LEVEL": "1",
        "CARGO_PROFILE_TEST_DEBUG": "0",
        "CARGO_PROFILE_DEV_DEBUG": "0",
        "CARGO_INCREMENTAL": "0",
    }
    command = ["cargo", *arguments, "--locked", "--message-format=json"]
    done = subprocess.run(command, cwd=tree, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def spans(message: Record) -> list[Record]:
    """Returns all places that a compiler's message mentions: its own, with the primary ones first, then those
    of each note.
    """
    found = sorted(message["spans"], key=lambda span: not span["is_primary"])
    for child in message["children"]:
        found += spans(child)
    return found


def blame(mutants: list[Record], error: Record) -> set[int]:
    """Returns the mutants that an error concerns: those whose branch contains it, or else those whose switch
    contains it.
    """
    for span in spans(error):
        file = span["file_name"].removeprefix("crates/")
        at = span["byte_start"]
        for part in ["branch", "whole"]:
            around = [
                (mutant[part][1] - mutant[part][0], number)
                for number, mutant in enumerate(mutants, 1)
                if mutant["file"] == file and mutant[part][0] <= at < mutant[part][1]
            ]
            if around:
                least = min(around)[0]
                return {number for length, number in around if length == least}
    return set()


def generate(out: Path, chosen: set[int]) -> list[Record]:
    """Writes the copy's source with switches for the mutants ``chosen``; returns all possible mutants."""
    numbers = out / "chosen.txt"
    numbers.write_text("".join(f"{number}\n" for number in sorted(chosen)))
    command = ["cargo", "run", "--quiet", "--locked", "--package", "ftlab-mutants", "--"]
    command += [str(out / "source"), str(out / "tree/crates"), str(numbers)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    found: list[Record] = json.loads(done.stdout)
    return found


def named(found: list[Record]) -> list[Mutant]:
    """Names mutants by what they change, without the file, so that they keep their names if their function
    moves.
    """
    counts: Counter[str] = Counter()
    mutants = []
    for number, mutant in enumerate(found, 1):
        name = f"{mutant['function']}: {mutant['what']}"
        counts[name] += 1
        if counts[name] > 1:
            name += f" (number {counts[name]})"
        mutants.append(Mutant(number, name, mutant["file"]))
    return mutants


def instrument(out: Path, choose: Callable[[list[Mutant]], list[Mutant]]) -> tuple[int, list[Mutant]]:
    """Writes the copy with switches for the mutants that `choose` takes from those that compile.

    Returns how many mutants compile, and the chosen ones.
    """
    tree = out / "tree"
    copy_tree(tree)
    # The generator reads a copy of the source, so that edits made meanwhile have no effect.
    shutil.rmtree(out / "source", ignore_errors=True)
    for crate in MUTATED:
        shutil.copytree(tree / "crates" / crate / "src", out / "source" / crate / "src")
    mutants = named(generate(out, set()))
    broken: set[int] = set()
    while True:
        sample = choose([mutant for mutant in mutants if mutant.number not in broken])
        found = generate(out, {mutant.number for mutant in sample})
        code, messages = cargo(tree, "check", "--package", "ftlab-files", "--profile", "test")
        if code == 0:
            return len(mutants) - len(broken), sample
        errors = [at["message"] for at in messages if at["reason"] == "compiler-message"]
        errors = [error for error in errors if error["level"] == "error" and error["spans"]]
        blamed = set().union(*(blame(found, error) for error in errors)) - broken
        if not blamed:
            first = "".join(error["rendered"] for error in errors[:1])
            stop(f"the copy does not compile, and no mutant is to blame:\n{first}")
        print(f"  {len(blamed)} mutants do not compile", flush=True)
        broken |= blamed


def run_test(test: Test, switch: str, seconds: float) -> bool:
    """Whether a test passes in time with this switch on. The test's random cases are always the same."""
    environment = os.environ | {
        "FTLAB_MUTANT": switch,
        "PROPTEST_RNG_SEED": "1",
        "PROPTEST_MAX_SHRINK_ITERS": "0",
        "PROPTEST_DISABLE_FAILURE_PERSISTENCE": "1",
        "RUST_BACKTRACE": "0",
        "FTLAB_CUTS": "100",
    }
    process = subprocess.Popen(
        [test.program, "--exact", test.name, "--test-threads=1"],
        cwd=test.folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(process.pid, resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        return process.wait(seconds) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def build_tests(out: Path) -> list[Test]:
    """Builds the tests of the copy; returns them."""
    chosen = [part for package in PACKAGES for part in ("--package", f"ftlab-{package}")] + ["--lib"]
    for package in PACKAGES:
        manifest = tomllib.loads((out / "tree/crates" / package / "Cargo.toml").read_text())
        names = [program["name"] for program in manifest["test"]]
        chosen += [part for name in names if name not in OF_THE_SOURCE for part in ("--test", name)]
    code, messages = cargo(out / "tree", "test", "--no-run", *chosen)
    if code != 0:
        rendered = [at["message"]["rendered"] for at in messages if at["reason"] == "compiler-message"]
        stop("the tests of the copy do not build:\n" + "".join(rendered))
    tests = []
    for message in messages:
        if message["reason"] != "compiler-artifact" or not message["executable"]:
            continue
        program, folder = message["executable"], str(Path(message["manifest_path"]).parent)
        listed = subprocess.run(
            [program, "--list", "--format=terse"], stdout=subprocess.PIPE, text=True, check=True
        ).stdout
        names = [line.removesuffix(": test") for line in listed.splitlines() if line.endswith(": test")]
        tests += [Test(program, name, folder) for name in names]
    return tests


def survey(out: Path, tests: list[Test], workers: int) -> list[Test]:
    """Runs each test without a mutant and notes which mutants it reaches; returns the tests that pass, the
    quickest first.
    """

    def one(at: int) -> bool:
        log = out / f"reached-{at}"
        log.unlink(missing_ok=True)
        start = time.monotonic()
        passed = run_test(tests[at], str(log), 900)
        tests[at].seconds = time.monotonic() - start
        if log.exists():
            tests[at].reached = {number for (number,) in struct.iter_unpack("<I", log.read_bytes())}
            log.unlink()
        return passed

    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        passed = list(pool.map(one, range(len(tests))))
    for test, whole in zip(tests, passed, strict=True):
        if not whole:
            print(f"  left out, as it fails without a mutant: {Path(test.program).stem} {test.name}")
    kept = [test for test, whole in zip(tests, passed, strict=True) if whole]
    return sorted(kept, key=lambda test: test.seconds)


def try_mutant(mutant: Mutant, tests: list[Test], budget: float) -> Record:
    """Runs tests against a mutant until one fails, or ``budget`` seconds are used up; returns the outcome."""
    start = time.monotonic()
    reaching = [test for test in tests if mutant.number in test.reached]
    by = None
    for test in reaching:
        if test.seconds > budget:
            break
        budget -= test.seconds
        if not run_test(test, str(mutant.number), 20 + 10 * test.seconds):
            by = f"{Path(test.program).stem.rsplit('-', 1)[0]} {test.name}"
            break
    seconds = round(time.monotonic() - start, 1)
    return {
        "name": mutant.name,
        "file": mutant.file,
        "caught": by,
        "reaching": len(reaching),
        "seconds": seconds,
    }


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--sample", type=int, help="mutants to try, 0: all (200, or none with --name)")
    add("--seed", type=int, default=1, help="of the sample (%(default)s)")
    add("--name", action="append", default=[], help="mutants whose name contains this")
    add("--workers", type=int, default=os.cpu_count() or 1, help="tests at a time (%(default)s)")
    add("--budget", type=float, default=300, help="seconds of tests for a mutant (%(default)s)")
    add("--minutes", type=float, help="stop after so long; the next run goes on")
    add("--again", action="store_true", help="keep what was caught though the source has changed")
    add("--out", type=Path, default=ROOT / "out/mutants", help="folder to work in (%(default)s)")
    return parser.parse_args()


def earlier(outcomes: Path, stamp: str, again: bool) -> dict[str, Record]:
    """Returns the outcomes of earlier runs, by the mutants' names."""
    if not outcomes.exists():
        return {}
    known: dict[str, Record] = {}
    with outcomes.open() as lines:
        head = json.loads(next(lines, "{}"))
        for line in lines:
            found = json.loads(line)
            known[found["name"]] = found
    if head.get("fingerprint") == stamp:
        return known
    return {name: found for name, found in known.items() if again and found["caught"]}


def try_all(
    todo: list[Mutant],
    tests: list[Test],
    outcomes: Path,
    known: dict[str, Record],
    options: argparse.Namespace,
) -> None:
    """Tries the mutants, and stores each outcome as soon as it is known."""
    end = time.monotonic() + 60 * options.minutes if options.minutes else None
    lock = threading.Lock()
    count = 0

    def one(mutant: Mutant) -> None:
        nonlocal count
        if end and time.monotonic() > end:
            return
        found = try_mutant(mutant, tests, options.budget)
        with lock, outcomes.open("a") as file:
            file.write(json.dumps(found) + "\n")
            known[mutant.name] = found
            count += 1
            if not found["caught"]:
                print(f"  survived {found['reaching']} tests, {mutant.file}: {mutant.name}", flush=True)
            elif count % 50 == 0:
                print(f"  {count} of {len(todo)}", flush=True)

    with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
        list(pool.map(one, todo))


def report(sample: list[Mutant], known: dict[str, Record]) -> int:
    """Prints what was found; returns the exit code."""
    tried = [known[mutant.name] for mutant in sample if mutant.name in known]
    survived = {found["name"]: found["file"] for found in tried if not found["caught"]}
    with (HERE / "survivors.toml").open("rb") as file:
        reasons = {entry["mutant"]: entry["reason"] for entry in tomllib.load(file).get("survivor", [])}
    share = 1 - len(survived) / max(1, len(tried))
    print(f"mutants: {len(tried)} of {len(sample)} tried, {len(tried) - len(survived)} caught ({share:.1%})")
    for name, file in survived.items():
        reason = reasons.get(name, "NO REASON in tests/mutants/survivors.toml")
        print(f"  survived, in {file}: {name}\n    {reason}")
    for name in sorted(reasons.keys() & {found["name"] for found in tried if found["caught"]}):
        print(f"  caught now, to be taken out of survivors.toml: {name}")
    if share < LEAST_SHARE or any(name not in reasons for name in survived):
        return 1
    return 0 if len(tried) == len(sample) else 75


def main() -> int:
    options = arguments()
    out: Path = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    outcomes, stamp = out / "outcomes.jsonl", fingerprint()
    start = time.monotonic()
    known = earlier(outcomes, stamp, options.again)

    def choose(mutants: list[Mutant]) -> list[Mutant]:
        def draw(mutant: Mutant) -> bytes:
            return hashlib.sha256(f"{options.seed} {mutant.name}".encode()).digest()

        size = (0 if options.name else 200) if options.sample is None else options.sample or len(mutants)
        drawn = sorted(mutants, key=draw)
        by_name = [mutant for mutant in drawn if any(part in mutant.name for part in options.name)]
        return drawn[:size] + [mutant for mutant in by_name if mutant not in drawn[:size]]

    print("mutants: switches into a copy of the core", flush=True)
    count, sample = instrument(out, choose)
    part = outcomes.with_suffix(".part")
    part.write_text("".join(json.dumps(line) + "\n" for line in [{"fingerprint": stamp}, *known.values()]))
    part.replace(outcomes)
    todo = [mutant for mutant in sample if mutant.name not in known]
    print(f"mutants: {count} in the core, {len(sample)} sampled, {len(todo)} to try", flush=True)
    if todo:
        tests = build_tests(out)
        print(f"mutants: {len(tests)} tests built; what each reaches", flush=True)
        tests = survey(out, tests, options.workers)
        total = sum(test.seconds for test in tests)
        print(f"mutants: {len(tests)} tests, {total:.0f} s in all; trying", flush=True)
        try_all(todo, tests, outcomes, known, options)
    code = report(sample, known)
    print(f"mutants: {time.monotonic() - start:.0f} s")
    return code


if __name__ == "__main__":
    sys.exit(main())
