"""Slips are drawn where they say, one at a time, and what is recorded of tests is what they call."""

import ast
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

import mutants
from mutation.sites import all_sites, cpp_sites, python_sites

ROOT = Path(__file__).resolve().parent.parent

MODULE = '''"""A module."""
LIMIT = 3


def largest(values: list[int], limit: int = 5) -> int:
    """Return one."""
    total = 0
    for value in values:
        if value < limit and value is not None:
            total += max(value, 2 * limit - 1)
    if total > 9:
        raise ValueError(f"{total + 1} is too much" + "!")
    return total
'''


def slips(find, text, tmp_path, name):
    path = tmp_path / name
    path.write_text(text)
    return {site.applied(text).splitlines()[site.line - 1].strip() for site in find(path, tmp_path)}


def test_every_kind_of_slip_is_made_in_python(tmp_path):
    made = slips(python_sites, MODULE, tmp_path, "module.py")
    assert {
        "if value <= limit and value is not None:",
        "if value < limit or value is not None:",
        "if value < limit and value is None:",
        "if not (value < limit and value is not None):",
        "if (value < limit):",
        "total += min(value, 2 * limit - 1)",
        "total += max(value, 2 * limit + 1)",
        "total += max(value, (2 * limit))",
        "total += max(value, 2 / limit - 1)",
        "total += max(value, 3 * limit - 1)",
        "pass",
        "total = 1",
        "if total >= 9:",
        "if total > 10:",
        "def largest(values: list[int], limit: int = 6) -> int:",
    } <= made
    assert not [line for line in made if "too much" in line or "LIMIT" in line]  # messages and constants of the module


def test_absolute_values_become_signed_ones_without_an_error(tmp_path):
    text = "import numpy as np\n\n\ndef f(x):\n    return np.abs(x), abs(-1.5)\n"
    made = slips(python_sites, text, tmp_path, "module.py")
    assert {"return np.positive(x), abs(-1.5)", "return np.abs(x), float(-1.5)"} <= made


def test_every_kind_of_slip_is_made_in_cpp(tmp_path):
    text = (
        "// a < b\ntemplate <class T>\nint f(int a, int b) {\n    return a < b && true ? std::max(a, b) : a - b;\n}\n"
    )
    assert slips(cpp_sites, text, tmp_path, "file.cpp") == {
        "return a <= b && true ? std::max(a, b) : a - b;",
        "return a < b || true ? std::max(a, b) : a - b;",
        "return a < b && false ? std::max(a, b) : a - b;",
        "return a < b && true ? std::min(a, b) : a - b;",
        "return a < b && true ? std::max(a, b) : a + b;",
    }


def test_every_slip_in_certificates_is_python():
    sites = list(all_sites(ROOT, ["certificates/"], "python"))
    assert len(sites) > 500
    for site in sites[::7]:
        text = (ROOT / site.file).read_text()
        assert site.applied(text) != text
        ast.parse(site.applied(text))
        starts = [getattr(node, "lineno", 0) for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
        assert site.function <= site.line
        assert any(start >= site.function for start in starts)


def test_what_tests_call_is_recorded(tmp_path):
    (tmp_path / "test_small.py").write_text(
        "import pytest\nfrom mercer.problems.losses import Squared\nfrom mercer.samples.arrays import gamma\n\n"
        "@pytest.fixture(scope='module')\ndef loss():\n    return Squared()\n\n"
        "def test_one(loss):\n    gamma(3)\n\ndef test_two():\n    pass\n"
    )
    environment = {
        **os.environ,
        "MERCER_RECORD": str(tmp_path),
        "PYTHONPATH": os.pathsep.join([str(ROOT / "tests"), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "mutation.record", "-p", "no:cacheprovider"]
    subprocess.run([*command, "-c", os.devnull, "--rootdir", tmp_path, tmp_path], env=environment, check=True)
    record = json.loads(next(tmp_path.glob("*.json")).read_text())
    text = (ROOT / "src/mercer/samples/arrays.py").read_text().splitlines()
    called = {test.partition("::")[2]: functions for test, functions in record["tests"].items()}
    lines = [int(place.split(":")[1]) for place in called["test_one"] if "mercer/samples/arrays.py" in place]
    assert any(text[line - 1].startswith("def gamma(") for line in lines)
    assert not [place for place in called["test_two"] if "mercer/samples/arrays.py" in place]


def test_a_checkout_without_an_installed_mercer_records_calls(tmp_path, monkeypatch):
    """The core in src/mercer is found without PYTHONPATH."""
    monkeypatch.setattr(mutants, "_KEPT", tmp_path / "kept")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    test = tmp_path / "test_small.py"
    test.write_text("def test_one():\n    from mercer.samples.arrays import gamma\n    assert gamma(3) < 1e-3\n")
    tests = mutants.recorded(False, [str(test)], "0")
    assert [place for place in tests.callers if place.startswith("src/mercer/samples/arrays.py:")]
    with pytest.raises(SystemExit, match=r"No test of .*missing\.py was run"):
        mutants.recorded(False, [str(tmp_path / "missing.py")], "0")


def test_a_slip_in_the_core_is_tried_by_the_quickest_tests_of_its_folders():
    site = next(site for site in all_sites(ROOT, ["core/text/"], "cpp"))
    seconds = {"tests/cli/test_a.py::b": 3.0, "tests/files/test_c.py::d[1]": 1.0, "tests/client/test_e.py::f": 0.5}
    tests = mutants.Tests([{"seconds": seconds, "tests": {}, "shared": {}}])
    assert tests.chosen_of_core(site, 9.0) == ["tests/files/test_c.py::d[1]", "tests/cli/test_a.py::b"]
    assert tests.chosen_of_core(site, 3.5) == ["tests/files/test_c.py::d[1]"]
    assert mutants.Tests([]).chosen_of_core(site, 9.0) == ["tests/samples", "tests/files", "tests/cli"]


def test_no_slip_is_tried_after_the_last_minute(tmp_path):
    copy = mutants.Copy(tmp_path / "copy", deadline=time.monotonic())
    site = next(all_sites(ROOT, ["mercer/samples/arrays.py"], "python"))
    nothing_is_run = SimpleNamespace(chosen=lambda site, seconds: pytest.fail("tests were chosen"))
    assert copy.tried(site, nothing_is_run, 1.0) == "untried"


@pytest.mark.thorough
def test_only_a_test_that_passes_without_the_slip_kills_it(tmp_path, monkeypatch):
    """γ_k gains a factor: one test notices, one notices nothing, one fails anyway, and one never ends with it."""
    monkeypatch.setattr(mutants, "_LONGEST", 3)
    copy = mutants.Copy(tmp_path / "copy")
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    site = next(site for site in all_sites(ROOT, ["mercer/samples/arrays.py"], "python") if site.new == "(roundings)")
    bodies = {
        "killed by": "assert gamma(4) < 1e-3",
        "SURVIVED": "pass",
        "void:": "assert False",
        "stopped": "while gamma(4) > 1e-3: pass",
    }
    for k, (verdict, body) in enumerate(bodies.items()):
        test = tmp_path / f"test_{k}.py"
        test.write_text(f"from mercer.samples.arrays import gamma\n\ndef test_one():\n    {body}\n")
        chosen = SimpleNamespace(chosen=lambda site, seconds, test=test: [str(test)])
        assert copy.tried(site, chosen, 1.0).startswith(verdict)
