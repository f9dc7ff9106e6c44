"""What a notebook shows is short: no object has more than 15 lines, and compound kernels read as Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import mercer
from mercer import SVC, SVR, RLSRegressorCV, TunedSVC, kernels, theory
from mercer.kernels import Gaussian, Linear
from mercer.model_selection.paths import xi_alpha

X = np.random.default_rng(0).normal(size=(40, 30))
Y = (X[:, 0] > 0).astype(int)
THREE = np.digitize(X[:, 0], [-0.5, 0.5])


class Printer:
    """As much of IPython's as objects use."""

    def __init__(self, depth: int) -> None:
        self.stack, self.written = [0] * depth, ""

    def text(self, text: str) -> None:
        self.written += text


def shown(value: Any, depth: int = 1) -> str:
    """What a notebook shows of an object; lists item by item, as IPython does."""
    if isinstance(value, list | tuple):
        return "[" + ",\n ".join(shown(item, depth + 1) for item in value) + "]"
    if not hasattr(type(value), "_repr_pretty_"):
        return repr(value)
    printer = Printer(depth)
    value._repr_pretty_(printer, False)
    return printer.written


def searched(grid: Any = None, **given: Any) -> Any:
    grid = (
        {"C": [0.1, 1.0, 10.0], "kernel": [Gaussian(M=m * np.eye(30)) for m in (0.01, 0.1)]} if grid is None else grid
    )
    return mercer.tune(SVC(), X, Y, grid=grid, refit=False, **given)


OBJECTS = {
    "a search": searched,
    "a search of many names": lambda: searched(
        {"C": [1.0], "tol": [0.1], "coef0": [0.0], "degree": [3], "gamma": [1.0]}
    ),
    "an own search": lambda: mercer.tune(SVC(), X, Y, refit=False),
    "a fitted search": lambda: TunedSVC({"C": [1.0, 2.0]}).fit(X, Y).result_,
    "insight": lambda: SVC().fit(X, Y).insight(X, Y),
    "insight of three": lambda: SVC().fit(X, THREE).insight(X, THREE),
    "insight of numbers": lambda: SVR().fit(X, X[:, 0]).insight(X, X[:, 0]),
    "margins": lambda: SVC().fit(X, THREE).margins(X, THREE),
    "certificate": lambda: SVC().fit(X, THREE).certificate_,
    "parts": lambda: SVC().fit(X, THREE).certificate_.parts,
    "functions": lambda: SVC().fit(X, THREE).function_,
    "explanation": lambda: SVC().fit(X, Y).explain(X[:5], X[:9]),
    "reasons": lambda: SVC().fit(X, Y).reasons(X[:5]),
    "estimate": lambda: xi_alpha(SVC(), X, Y),
    "path": lambda: mercer.svm_path(X, Y),
    "path of lam": lambda: RLSRegressorCV().fit(X, X[:, 0]).path_,
    "steps": lambda: mercer.steps(X, Y, kernel="rbf", C=1.0),
    "compression": lambda: mercer.compress(SVC().fit(X, Y), 5).compression_,
    "leave one out": lambda: mercer.leave_one_out(SVC(), X, Y),
    "kernel check": lambda: mercer.check_kernel(X, kernel=Gaussian()),
    "ball": lambda: theory.enclosing_ball(X, kernel="rbf"),
    "kernel of a matrix": lambda: Gaussian(M=np.eye(30)),
    "machine of a matrix": lambda: SVC(kernel=Gaussian(M=np.eye(30)) + Linear()),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", OBJECTS)
def test_at_most_fifteen_lines(name: str) -> None:
    made = OBJECTS[name]()
    for text in (shown(made), repr(made)):
        lines = text.splitlines()
        assert 1 <= len(lines) <= 15, text
        assert max(map(len, lines)) <= 700, text
    assert "object at 0x" not in shown(made)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_search_tells_what_it_found() -> None:
    found = searched({"C": [0.1, 1.0]}, skip=False)
    text = str(found)
    assert text.splitlines()[0] == f"best        C={found.best_params_['C']:.4g}"
    assert f"score       {found.best_score_:.4f} ±" in text
    assert "cells       2: 2 scored" in text
    assert found.choice_ in text


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (2 * Gaussian(gamma=1.0) + Linear(), "2 * Gaussian(gamma=1.0) + Linear()"),
        ((Gaussian() + 0.1 * Linear()) ** 2, "(Gaussian() + 0.1 * Linear()) ** 2"),
        (kernels.Polynomial(degree=5, coef0=2.0).normalised() * Gaussian(gamma=0.25), None),
    ],
)
def test_compound_kernels_print_as_python(kernel: Any, text: str | None) -> None:
    text = repr(kernel) if text is None else text
    machine = SVC(C=10, kernel=kernel)
    assert repr(SVC(kernel=kernel)) == f"SVC(kernel={text})"
    for whole in (machine, make_pipeline(machine), GridSearchCV(machine, {"C": [1]}), TunedSVC(estimator=machine)):
        assert f"SVC(C=10, kernel={text})" in " ".join(repr(whole).split())  # long ones have a line break
    names = {"SVC": SVC, "Gaussian": Gaussian, "Linear": Linear, "Polynomial": kernels.Polynomial}
    again = eval(repr(machine), names)
    np.testing.assert_array_equal(again.kernel.bind(X)(X[:5]), kernel.bind(X)(X[:5]))
