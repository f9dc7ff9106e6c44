"""The engine that docs/add_an_engine.md writes down works, passes the contracts, and is complete to a type checker."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import mercer
from contracts.samples_contract import check_samples_contract, check_that_bad_entries_are_found

PAGE = Path(__file__).parents[2] / "docs/add_an_engine.md"
CLAIMS = """
from mercer.samples.engine import Engine
from mercer.places import BoundedProducts

engine: Engine = ENGINE
samples = ENGINE.samples(Packed(np.eye(2)))
gram: Gram = PackedGram(Kernel(), samples, 1)
proof: BoundedProducts = gram
"""


@pytest.fixture(scope="module")
def page():
    """What the page's code has made, run from top to bottom."""
    names = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        exec(block, names)
    return names


def test_the_page_runs_from_top_to_bottom(page):
    model, X = page["model"], page["X"]
    assert model.certificate_.proves == "optimality"
    np.testing.assert_array_equal(model.predict(page["Packed"](X)), page["here"].predict(X))


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_its_samples_answer_as_arrays_do(page, precision):
    X = np.random.default_rng(0).normal(size=(40, 3)).astype(precision)
    check_samples_contract(page["ENGINE"].samples(X), X)
    check_that_bad_entries_are_found(page["ENGINE"].samples, X)


MACHINES = {
    "linear": lambda: mercer.SVC(kernel="linear", tol=1e-7),
    "l2": lambda: mercer.SVC(kernel="linear", slack="l2", tol=1e-7),
    "regularised bias": lambda: mercer.SVC(kernel="linear", bias="regularized", tol=1e-7),
    "joint": lambda: mercer.SVC(kernel="linear", multiclass="crammer-singer", tol=1e-7),
    "hard margin": lambda: mercer.SVC(kernel="linear", C=np.inf, tol=1e-7),
    "Gaussian": lambda: mercer.SVC(tol=1e-7),
    "polynomial": lambda: mercer.SVR(kernel="poly", degree=2, tol=1e-7),
    "rows": lambda: mercer.LinearSVC(tol=1e-7),
    "ridge": mercer.RLSRegressor,
    "linear ridge": lambda: mercer.RLSRegressor(kernel="linear"),
    "landmarks": lambda: mercer.NystromRLS(n_landmarks=10, random_state=0, tol=1e-7),
}


@pytest.mark.parametrize("name", MACHINES)
def test_machines_on_it_give_this_machines_answers(page, name):
    packed = page["Packed"]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.argmax(X, axis=1) if name == "joint" else np.sign(X[:, 0] + 0.1 * X[:, 1])
    here, there = MACHINES[name]().fit(X, y), MACHINES[name]().fit(packed(X), packed(y))
    answer = "decision_function" if hasattr(here, "decision_function") else "predict"
    expected = getattr(here, answer)(X)
    for found in (getattr(there, answer)(packed(X)), getattr(here, answer)(packed(X)), getattr(there, answer)(X)):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_it_refuses_what_it_cannot_hold(page):
    engine = page["ENGINE"]
    for given in (np.eye(2, dtype=int), ["a", "b"], sp.csr_array(np.eye(2))):
        with pytest.raises(ValueError, match="rows of float32 or float64, but was given"):
            engine.samples(given)


@pytest.mark.thorough
def test_the_example_is_complete_to_a_type_checker(tmp_path):
    pytest.importorskip("mypy")
    example = PAGE.read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
    (tmp_path / "example.py").write_text(example + CLAIMS, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "example.py"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout
