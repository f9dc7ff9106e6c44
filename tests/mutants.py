"""Seeded faults: each must be caught by the tests beside it. `python tests/mutants.py [words of a name or file]`.

A mutant is a text of the source and what a slip would have made of it (tests/faults/). The source is copied to a
temporary folder, the slip is made there, and the tests are run against the copy: they must fail. Mutants of the core
are built with CMake and Ninja, where there are both. The whole takes about twenty minutes, so it is not part of the
default suite; `tests/test_mutants.py` is, which asks that every text is still found.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from faults.certificates import CERTIFICATES
from faults.core import CORE
from faults.devices import DEVICES
from faults.files import FILES
from faults.fitting import FITTING
from faults.kernels import KERNELS
from faults.mutant import Mutant
from faults.prediction import PREDICTION
from faults.solvers import SOLVERS

ROOT = Path(__file__).resolve().parent.parent
MUTANTS = [*CERTIFICATES, *SOLVERS, *KERNELS, *FITTING, *PREDICTION, *FILES, *CORE, *DEVICES]

# Runs the tests against PYTHONPATH alone: an editable install would otherwise be imported instead.
_RUN = """
import sys
sys.meta_path[:] = [f for f in sys.meta_path if "ScikitBuild" not in type(f).__name__]
import mercer, pytest
if not mercer.__file__.startswith(sys.argv[1]):
    sys.exit(f"mercer was imported from {mercer.__file__}")
options = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--no-header", "--tb=no", "--timeout=100"]
sys.exit(pytest.main([*options, *sys.argv[2:]]))
"""


def tests_fail(folder: Path, tests: tuple[str, ...]) -> bool:
    """Whether some test fails against the copy; an error of another kind is raised."""
    environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "HYPOTHESIS_PROFILE": "default"}
    command = [sys.executable, "-c", _RUN, str(folder), *tests]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1, 2):  # passed, failed, or could not even be collected
        raise RuntimeError(f"pytest ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    if done.returncode:
        print(
            "".join(f"          {line}\n" for line in done.stdout.splitlines() if "FAILED" in line), end="", flush=True
        )
    return done.returncode != 0


def applied(folder: Path, mutant: Mutant) -> str:
    """Make the slip in the copy; returns the text as it was."""
    path = folder / mutant.file
    text = path.read_text()
    if text.count(mutant.old) != 1:
        raise LookupError(f"the file holds {mutant.old!r} {text.count(mutant.old)} times")
    path.write_text(text.replace(mutant.old, mutant.new))
    return text


def core_of(source: Path) -> Path:
    """The compiled core beside a source tree, or the installed one."""
    found = sorted((source / "mercer").glob("_core*.so")) + sorted((source / "mercer").glob("_core*.pyd"))
    if found:
        return found[0]
    spec = importlib.util.find_spec("mercer._core")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin)


def build(folder: Path) -> None:
    """Compile the copy's core into its package."""
    nanobind = subprocess.run(
        [sys.executable, "-m", "nanobind", "--cmake_dir"], capture_output=True, text=True, check=True
    ).stdout.strip()
    work = folder / "build"
    if not work.exists():
        options = [f"-DPython_EXECUTABLE={sys.executable}", f"-Dnanobind_DIR={nanobind}", "-DCMAKE_BUILD_TYPE=Release"]
        subprocess.run(["cmake", "-S", folder, "-B", work, "-G", "Ninja", *options], check=True, capture_output=True)
    subprocess.run(["ninja", "-C", work], check=True, capture_output=True)
    for made in [*work.glob("_core*.so"), *work.glob("_core*.pyd")]:
        shutil.copy2(made, folder / "src" / "mercer")


def main(words: list[str]) -> int:
    """Try the mutants whose name or file holds one of the words; how many survived or could not be made."""
    chosen = [one for one in MUTANTS if not words or any(word in one.name or word in one.file for word in words)]
    tools = shutil.which("cmake") and shutil.which("ninja") and importlib.util.find_spec("nanobind")
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="mercer-mutants-") as temporary:
        folder = Path(temporary)
        source = Path(os.environ.get("MERCER_MUTANTS_SOURCE", ROOT / "src"))
        shutil.copytree(source, folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
        for extra in ("CMakeLists.txt", "pyproject.toml", "README.md"):
            shutil.copy2(source.parent / extra if (source.parent / extra).exists() else ROOT / extra, folder)
        core = core_of(source)
        shutil.copy2(core, folder / "src" / "mercer" / core.name)
        kept = (folder / "src" / "mercer" / core.name).read_bytes()
        failing: dict[str, bool] = {}  # without any mutant
        for mutant in chosen:
            compiled = mutant.file.startswith("src/core/")
            if compiled and not tools:
                print(f"left out  {mutant.name}: needs cmake, ninja and nanobind", flush=True)
                continue
            for test in mutant.tests:
                if test not in failing:
                    failing[test] = tests_fail(folder, (test,))
            try:
                if any(failing[test] for test in mutant.tests):
                    raise LookupError("its tests fail without it")
                before = applied(folder, mutant)
                if compiled:
                    build(folder)
                verdict = "caught" if tests_fail(folder, mutant.tests) else "SURVIVED"
                (folder / mutant.file).write_text(before)
            except LookupError as error:
                verdict = f"UNTRIED ({error})"
            if compiled:
                (folder / "src" / "mercer" / core.name).write_bytes(kept)
            wrong += verdict != "caught"
            print(f"{verdict:9} {mutant.file}: {mutant.name}", flush=True)
    print(f"{len(chosen)} mutants, {wrong} not caught")
    return wrong


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
