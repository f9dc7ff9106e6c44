"""Slips at random sites of the sources: does a test notice?

    python tests/mutants.py --random 150 --seed 7          of all sources, Python and C++
    python tests/mutants.py --random 40 certificates gram  where the path of the file holds one of these words
    python tests/mutants.py --random 20 --language cpp
    python tests/mutants.py --record                       record which tests call which functions, again
    python tests/mutants.py --minutes 60                   begin no slip after an hour, and stop the last one

A slip changes a comparison, an operator or a constant, forgets a term, or leaves a call out (mutation/sites.py). It is
made in a copy of the sources, and tests run against the copy. For Python, these are the tests that call the function
with the slip, those in the folder of the same name first, then the quickest, until --seconds of processor time are
spent; a run of the whole suite records them first (some minutes, kept in build/mutants until the sources change). For
C++, these are the core's own tests and the quickest of the folders in _CORE_TESTS. The core is the one in src/mercer,
if it was built there, or that of the installed mercer. A test that fails without the slip too kills nothing ("void"),
and neither does one that was stopped after _LONGEST seconds or at the end of --minutes ("stopped"): look whether the
slip makes it run forever. Survivors are printed, to be judged: a slip that changes no answer is equivalent, any other
shows that a test is missing.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import math
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from mutation.sites import Site, all_sites

ROOT = Path(__file__).resolve().parent.parent
_KEPT = ROOT / "build" / "mutants"
# Which folders of tests reach a folder of the core.
_CORE_TESTS = {
    "algebra": ["tests/core", "tests/places", "tests/solvers/least_squares", "tests/inspection/compression"],
    "explain": ["tests/core", "tests/inspection/explain"],
    "gram": ["tests/core", "tests/places", "tests/samples", "tests/inspection/compression"],
    "linear": ["tests/core", "tests/solvers/linear", "tests/certificates", "tests/estimators"],
    "simd": [
        "tests/core",
        "tests/places",
        "tests/solvers/dual",
        "tests/inspection/explain",
        "tests/inspection/compression",
    ],
    "solve": [
        "tests/core",
        "tests/solvers/dual",
        "tests/model_selection/held_out",
        "tests/certificates",
        "tests/claims/test_false_claims.py",
    ],
    "text": ["tests/samples", "tests/files", "tests/cli"],
    "threads": ["tests/core", "tests/behaviour/test_interrupt.py"],
}
# Every process, those that tests start too, imports from PYTHONPATH: an editable install would otherwise be first.
_SITE = """
import sys
sys.meta_path[:] = [f for f in sys.meta_path if "ScikitBuild" not in type(f).__name__]
"""
# Runs the tests against the copy.
_RUN = """
import sys
import mercer, pytest
if not mercer.__file__.startswith(sys.argv[1]):
    sys.exit(f"mercer was imported from {mercer.__file__}")

class Failures:
    first = None

    def pytest_runtest_logreport(self, report):
        if report.failed and self.first is None:
            self.first = "stopped" if "Timeout (>" in str(report.longrepr) else report.nodeid

    pytest_collectreport = pytest_runtest_logreport

options = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--no-header", "--tb=no", f"--timeout={sys.argv[2]}"]
failures = Failures()
code = pytest.main([*options, *sys.argv[3:]], plugins=[failures])
print("\\nfirst failure:", failures.first or f"exit {int(code)}")
sys.exit(code)
"""
# What the last line says of a slip, by the first word of what came of it.
_VERDICTS = {
    "killed": "noticed",
    "SURVIVED": "survived",
    "untested": "in functions that no test calls",
    "not": "did not compile",
    "void:": "void",
    "stopped": "stopped",
    "untried": "not tried",
}
# Seconds after which a test is stopped, and after which all tests of a slip are.
_LONGEST, _LONGEST_OF_ALL = 300, 1800
# Tests of a slip in C++ may take so many times as long as those of one in Python: any of many may reach it.
_CORE_TIMES = 4


class Tests:
    """Which tests call a function, and how long each takes."""

    def __init__(self, records: list[dict[str, dict[str, list[str]]]]) -> None:
        self.callers: dict[str, set[str]] = {}
        self.seconds: dict[str, float] = {}
        for record in records:
            self.seconds.update(record["seconds"])  # type: ignore[arg-type]
            for test, functions in record["tests"].items():
                for function in [*functions, *record["shared"].get(test.partition("::")[0], ())]:
                    self.callers.setdefault(function, set()).add(test)

    def chosen(self, site: Site, seconds: float) -> list[str]:
        """Return tests that call the function of a site: mirrored folder first, then the quickest, within a time."""
        folder = site.file.removeprefix("src/mercer/").rpartition("/")[0].split("/")[0]
        name = Path(site.file).stem

        def order(test: str) -> tuple[bool, bool, float]:
            return name not in test, not test.startswith(f"tests/{folder}"), self.seconds[test]

        return self._within(seconds, sorted(self.callers.get(f"{site.file}:{site.function}", ()), key=order))

    def chosen_of_core(self, site: Site, seconds: float) -> list[str]:
        """Return the quickest tests of the folders that reach a site in C++, within a time; the folders if none ran."""
        folders = _CORE_TESTS[site.file.removeprefix("src/core/").split("/")[0]]
        tests = [test for test in self.seconds if any(re.match(rf"{folder}(/|::|$)", test) for folder in folders)]
        return self._within(seconds, sorted(tests, key=self.seconds.__getitem__)) or folders

    def _within(self, seconds: float, tests: list[str]) -> list[str]:
        """Return the tests that fit into a time, in their order."""
        found, spent = [], 0.0
        for test in tests:
            if spent + self.seconds[test] <= seconds:
                spent += self.seconds[test]
                found.append(test)
        return found


def source_key(paths: list[str]) -> str:
    """Name the state of the sources and of the tests, and which of these are run."""
    key = hashlib.sha256(repr(paths).encode())
    for path in sorted([*ROOT.glob("src/mercer/**/*.py"), *ROOT.glob("tests/**/*.py")]):
        key.update(path.read_bytes())
    return key.hexdigest()[:16]


def built_core() -> Path | None:
    """Return the compiled core in src/mercer, where a checkout without an editable install has it."""
    built = [path for path in (ROOT / "src" / "mercer").glob("_core*") if path.suffix in (".so", ".pyd")]
    return built[0] if built else None


def installed_core() -> Path:
    """Return the compiled core of the installed mercer."""
    spec = importlib.util.find_spec("mercer._core") if importlib.util.find_spec("mercer") else None
    if spec is None or spec.origin is None:
        sys.exit("There is no compiled core: build it into src/mercer, or install mercer (CONTRIBUTING.md says how).")
    return Path(spec.origin)


def python_path(*folders: str) -> str:
    """Return a PYTHONPATH of folders of this checkout, with src where the core is built in it."""
    own = [str(ROOT / name) for name in [*folders, *(["src"] if built_core() else [])]]
    return os.pathsep.join([*own, *filter(None, [os.environ.get("PYTHONPATH")])])


def recorded(again: bool, paths: list[str], jobs: str) -> Tests:
    """Return which tests call what, from an earlier run on the same sources or from one that is made now."""
    folder = _KEPT / source_key(paths)
    if again or not any(folder.glob("*.json")):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        print("recording which tests call which functions …", flush=True)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "mutation.record", "--no-header", "--tb=line"]
        environment = {**os.environ, "MERCER_RECORD": str(folder), "PYTHONPATH": python_path("tests")}
        subprocess.run([*command, "-n", jobs, *paths], cwd=ROOT, env=environment, check=False)
        if not any(folder.glob("*.json")):
            sys.exit(f"No test of {' '.join(paths)} was run: see above why. Slips were not tried.")
    return Tests([json.loads(path.read_text()) for path in folder.glob("*.json")])


class Copy:
    """A copy of the sources in which slips are made and tried, one at a time."""

    def __init__(self, folder: Path, deadline: float = math.inf) -> None:
        self.folder, self.deadline = folder, deadline
        for name in ("src", "tests/core"):
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "_core*.so"))
        (folder / "src" / "sitecustomize.py").write_text(_SITE)
        for name in ("CMakeLists.txt", "pyproject.toml", "README.md"):
            shutil.copy2(ROOT / name, folder)
        self.core = Path(shutil.copy2(built_core() or installed_core(), folder / "src" / "mercer"))
        self.kept = self.core.read_bytes()
        self.passing: dict[str, bool] = {}  # whether a test passes without a slip

    def build(self, tests: bool) -> bool:
        """Compile the core into the copy's package, or its own tests; whether it compiles."""
        options = [f"-DMERCER_TESTS={'ON' if tests else 'OFF'}", f"-DPython_EXECUTABLE={sys.executable}"]
        if not tests:
            asked = [sys.executable, "-m", "nanobind", "--cmake_dir"]
            options.append("-Dnanobind_DIR=" + subprocess.run(asked, capture_output=True, text=True).stdout.strip())
        work = self.folder / "build"
        configured = ["cmake", "-S", self.folder, "-B", work, "-G", "Ninja", "-DMERCER_FUZZ_SECONDS=1", *options]
        for command in (configured, ["cmake", "--build", work, *([] if tests else ["--target", "_core"])]):
            if subprocess.run(command, capture_output=True).returncode:
                return False
        for made in [] if tests else work.glob("_core*.so"):
            shutil.copy2(made, self.core)
        return True

    def first_failure(self, tests: list[str]) -> str:
        """Return the first test that fails against the copy, how the run ended otherwise, or "" if all tests pass."""
        environment = {**os.environ, "PYTHONPATH": str(self.folder / "src"), "HYPOTHESIS_PROFILE": "default"}
        command = [sys.executable, "-c", _RUN, str(self.folder), str(_LONGEST), *tests]
        try:
            seconds = max(1.0, min(_LONGEST_OF_ALL, self.deadline - time.monotonic()))
            done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=seconds)
        except subprocess.TimeoutExpired:
            return "stopped"
        if done.returncode == 0:
            return ""
        failed = re.search(r"^first failure: (.+)$", done.stdout, re.MULTILINE)
        return failed[1] if failed else f"exit {done.returncode}"

    def tried(self, site: Site, tests: Tests, seconds: float) -> str:
        """Make a slip, run the tests, take it back; what came of it."""
        if time.monotonic() >= self.deadline:
            return "untried"
        path = self.folder / site.file
        before, in_python = path.read_text(), site.file.startswith("src/mercer/")
        chosen = tests.chosen(site, seconds) if in_python else tests.chosen_of_core(site, _CORE_TIMES * seconds)
        if in_python and not chosen:
            return "untested"
        path.write_text(site.applied(before))
        try:
            failed = self.first_failure(chosen) if in_python else self.first_failure_of_core(chosen)
        finally:
            path.write_text(before)
            self.core.write_bytes(self.kept)
        if not failed:
            return f"SURVIVED {len(chosen)} tests"
        if failed in ("not compiled", "stopped"):
            return failed
        if ".py" in failed and failed not in self.passing:
            self.passing[failed] = not self.first_failure([failed])
        return f"killed by {failed}" if self.passing.get(failed, True) else f"void: {failed} fails without the slip"

    def first_failure_of_core(self, chosen: list[str]) -> str:
        """Return the first test of the core's own, or of the chosen ones, that fails with a slip in C++."""
        if not self.build(tests=True):
            return "not compiled"
        command = ["ctest", "--test-dir", str(self.folder / "build"), "--stop-on-failure", "--timeout", str(_LONGEST)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            return "stopped" if "***Timeout" in done.stdout else "the core's own tests"
        if not self.build(tests=False):
            return "not compiled"
        return self.first_failure(chosen)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="parts of the paths of files to choose from")
    parser.add_argument("--random", type=int, default=40, metavar="N", help="how many slips (default 40)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--language", choices=["python", "cpp", "both"], default="both")
    parser.add_argument("--share", type=float, default=0.2, help="of C++ among both (default 0.2)")
    parser.add_argument(
        "--seconds", type=float, default=30.0, help="processor time of the tests of a slip (default 30)"
    )
    parser.add_argument("--minutes", type=float, default=math.inf, help="for all slips, once the calls are recorded")
    parser.add_argument("--jobs", type=int, default=1, help="slips tried at a time")
    parser.add_argument("--record", action="store_true", help="record the tests' calls again")
    parser.add_argument("--tests", nargs="*", default=["tests"], help="which tests are recorded (default: all)")
    given = parser.parse_args()

    rng = random.Random(given.seed)
    compiled = {"python": 0, "cpp": given.random, "both": round(given.share * given.random)}[given.language]
    sites = []
    for language, count in (("python", given.random - compiled), ("cpp", compiled)):
        found = list(all_sites(ROOT, given.words, language)) if count else []
        sites += rng.sample(found, min(count, len(found)))
    rng.shuffle(sites)  # a run that is ended early has tried a fair share of each
    tests = (
        recorded(given.record, given.tests, str(given.jobs) if given.jobs > 1 else "auto")
        if compiled < given.random
        else Tests([])
    )

    began, counts, copies = time.monotonic(), Counter[str](), SimpleQueue[Copy]()
    with tempfile.TemporaryDirectory(prefix="mercer-mutants-") as temporary:
        for job in range(given.jobs):
            copies.put(Copy(Path(temporary) / str(job), began + 60 * given.minutes))

        def one(site: Site) -> tuple[Site, str]:
            copy = copies.get()
            try:
                return site, copy.tried(site, tests, given.seconds)
            finally:
                copies.put(copy)

        with ThreadPoolExecutor(given.jobs) as pool:
            for site, verdict in pool.map(one, sites):
                counts[_VERDICTS[verdict.split()[0]]] += 1
                print(f"{verdict:22}\n    {site.shown((ROOT / site.file).read_text())}", flush=True)
    found = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
    print(f"{len(sites)} slips: {found}, in {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
