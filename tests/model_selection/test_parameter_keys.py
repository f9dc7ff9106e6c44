"""What prints alike need not be the same: kernels, functions, masks and steps that a search must not confuse."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import KernelPCA
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, StandardScaler

import mercer
from mercer import SVC, SVR, TunedSVC
from mercer.kernels import FromFeatureMap, Gaussian, Kernel, Linear
from mercer.model_selection.grids import group_points_by_kernel
from mercer.model_selection.parameter_keys import group_equal_keys, key_of, key_of_params

FOLDS = {"cv": StratifiedKFold(4, shuffle=True, random_state=0)}


@functools.cache
def data(n: int = 80, d: int = 40):  # type: ignore[no-untyped-def]
    X = np.random.default_rng(0).normal(size=(n, d))
    return X, (X[:, 20] > 0).astype(int)


def matrix(entry: float) -> Any:
    M = 0.02 * np.eye(40)
    M[20, 20] = entry
    return M


def columns(k: int):  # type: ignore[no-untyped-def]
    return lambda A: np.asarray(A)[:, k : k + 1]


def weight(k: int):  # type: ignore[no-untyped-def]
    return lambda A: 1.0 + 9.0 * (np.asarray(A)[:, k] > 0)


KERNELS = {
    "matrices": [Gaussian(M=matrix(0.02)), Gaussian(M=matrix(5.0))],
    "of": [Gaussian(gamma=0.5).of(columns(0)), Gaussian(gamma=0.5).of(columns(20))],
    "feature maps": [FromFeatureMap(columns(k)) for k in (0, 10, 20)],
    "scaled by": [(Linear() + 1).scaled_by(weight(k)) for k in (0, 20)],
    "sums": [Gaussian(gamma=0.5).of(columns(k)) + 0.01 * Linear() for k in (0, 20)],
    "names": ["rbf", "laplacian"],
}


def same_cells(estimator: Any, X: Any, y: Any, grid: Any, folds: Any = FOLDS) -> None:
    """Every cell as GridSearchCV has it, and the same choice; the cells do differ."""
    found = mercer.tune(estimator, X, y, grid=grid, skip=False, **folds)
    truth = GridSearchCV(estimator, grid, **folds).fit(X, y)
    for fold in range(4):
        own, other = (one.cv_results_[f"split{fold}_test_score"] for one in (found, truth))
        np.testing.assert_allclose(own, other, atol=2e-3)
    assert found.best_index_ == truth.best_index_
    assert len(set(truth.cv_results_["mean_test_score"].round(6))) > 1


@pytest.mark.parametrize("which", KERNELS)
def test_kernels_that_print_alike(which: str) -> None:
    kernels = KERNELS[which]
    assert which == "names" or len({repr(kernel) for kernel in kernels}) == 1
    same_cells(SVC(), *data(), {"C": [0.1, 1.0], "kernel": kernels})


def test_a_regression() -> None:
    X, _ = data()
    folds = {"cv": KFold(4, shuffle=True, random_state=0)}
    same_cells(SVR(tol=1e-6), X, X[:, 20], {"kernel": KERNELS["of"]}, folds)


def test_an_estimator_that_tunes_itself() -> None:
    X, y = data()
    model = TunedSVC({"C": [1.0], "kernel": KERNELS["of"]}, skip=False, **FOLDS).fit(X, y)
    truth = GridSearchCV(SVC(), {"kernel": KERNELS["of"]}, **FOLDS).fit(X, y)
    np.testing.assert_allclose(model.cv_results_["mean_test_score"], truth.cv_results_["mean_test_score"])
    assert model.best_index_ == truth.best_index_ == 1


def test_the_search_gap_is_about_every_kernel() -> None:
    X, y = data()
    prices = np.geomspace(1, 1.02, 4)
    for kernels in (KERNELS["of"], KERNELS["of"][::-1]):
        found = mercer.tune(SVC(), X, y, grid={"C": prices, "kernel": kernels}, refit=False, **FOLDS)
        truth = GridSearchCV(SVC(), {"C": prices, "kernel": kernels}, **FOLDS).fit(X, y)
        assert found.search_gap_ is not None
        assert truth.best_score_ <= found.best_score_ + found.search_gap_ + 1e-12


def test_no_search_gap_where_some_kernels_keep_no_values() -> None:
    """A linear kernel is fitted fold by fold: what the other kernels prove says nothing about it."""
    X, y = data()
    grid = {"C": [1.0, 1.1], "kernel": ["rbf", "linear"]}
    found = mercer.tune(SVC(), X, y, grid=grid, refit=False, skip=False)
    assert found.search_gap_ is None
    assert "fold by fold" in found.search_gap_reason_


# --- steps -----------------------------------------------------------------------------------------------------------


def take(X: Any, mask: Any) -> Any:
    return X[:, mask]


class Times(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """A multiple of the samples, with names that a machine has too."""

    def __init__(self, C: float = 1.0, epsilon: float = 1.0) -> None:
        self.C, self.epsilon = C, epsilon

    def fit(self, X: Any, y: Any = None) -> Times:
        return self

    def transform(self, X: Any) -> Any:
        return self.C * self.epsilon * X


class Columns(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """Some of the columns."""

    def __init__(self, mask: Any = None) -> None:
        self.mask = mask

    def fit(self, X: Any, y: Any = None) -> Columns:
        return self

    def transform(self, X: Any) -> Any:
        return X[:, self.mask]


def masks() -> list[Any]:
    found = []
    for first in (600, 699):
        mask = np.zeros(1500, dtype=bool)
        mask[first : first + 3] = True
        found.append(mask)
    assert repr(found[0]) == repr(found[1])
    return found


@pytest.mark.parametrize("step", ["keywords", "own", "objects"])
def test_steps_that_print_alike(step: str) -> None:
    X = np.random.default_rng(0).normal(size=(60, 1500))
    y = (X[:, 700] > 0).astype(int)
    if step == "keywords":
        grid: Any = {"functiontransformer__kw_args": [{"mask": mask} for mask in masks()]}
        same_cells(make_pipeline(FunctionTransformer(take), SVC()), X, y, grid)
    elif step == "own":
        same_cells(make_pipeline(Columns(), SVC()), X, y, {"columns__mask": masks()})
    else:
        same_cells(make_pipeline(Columns(masks()[0]), SVC()), X, y, {"columns": [Columns(mask) for mask in masks()]})


@pytest.mark.parametrize(
    ("step", "grid"),
    [
        (PolynomialFeatures(), {"polynomialfeatures__degree": [1, 2], "svc__C": [0.1, 1.0]}),
        (KernelPCA(kernel="rbf"), {"kernelpca__gamma": [1e-4, 3.0], "svc__gamma": [0.1, 1.0]}),
        (KernelPCA(degree=2), {"kernelpca__kernel": ["linear", "poly"]}),
        (Times(), {"times__C": [0.01, 3.0]}),
        (Times(), {"times__epsilon": [0.01, 3.0], "svc__C": [0.1, 1.0]}),
    ],
    ids=["degree", "gamma", "kernel", "C", "epsilon"],
)
def test_parameters_of_steps_with_names_of_the_machines(step: Any, grid: Any) -> None:
    X = np.random.default_rng(0).normal(size=(80, 3))
    y = (X[:, 0] * X[:, 1] + 0.3 * X[:, 2] > 0).astype(int)
    same_cells(make_pipeline(step, SVC(gamma=0.05)), X, y, grid)


def test_steps_in_the_grid_stay_unfitted() -> None:
    X, y = data()
    scaler = StandardScaler()
    grid = {"standardscaler": [scaler, "passthrough"]}
    mercer.tune(make_pipeline(StandardScaler(), SVC()), X, y, grid=grid)
    assert not hasattr(scaler, "mean_")


# --- keys ------------------------------------------------------------------------------------------------------------


class Remembers(Gaussian):
    """A kernel with more than its parameters."""


def test_values_that_are_not_the_same() -> None:
    first, second = Remembers(0.5), Remembers(0.5)
    assert key_of(first) == key_of(second)
    second.secret = 1
    frame = pd.DataFrame({"a": [1.0]})
    values = [
        *(1, 1.0, True, "1", b"1", None, np.float32(1), np.float64(1), 0.0, -0.0, 0, False),
        *(
            np.array([1.0, 2.0]),
            np.array([1.0, 2.0], np.float32),
            np.array([[1.0, 2.0]]),
            np.array([0.0]),
            np.array([-0.0]),
        ),
        *([1, 2], (1, 2), [1, True], {"a": 1}, {"b": 1}, {"a": 1.0}, [[1, 2]], np.array([1, 2], dtype=object)),
        *(columns(0), columns(0), frame, frame.copy(), {1, 2}, float, int),
        *(Gaussian(gamma=0.5), Gaussian(gamma=1.0), Gaussian(M=matrix(0.1)), Gaussian(M=matrix(0.2)), Linear()),
        *(first, second, Gaussian(gamma=0.5).of(columns(0)), Gaussian(gamma=0.5).of(columns(0))),
    ]
    assert group_equal_keys(map(key_of, values)) == [[k] for k in range(len(values))]
    assert group_equal_keys(map(key_of, values * 2)) == [[k, k + len(values)] for k in range(len(values))]


@pytest.mark.parametrize(
    "make",
    [
        lambda: float("nan"),
        lambda: np.array([1.0, np.nan]),
        lambda: {"mask": np.arange(3000), "words": ["a", "b"]},
        lambda: Gaussian(gamma=0.3) + 2 * Linear(),
        lambda: StandardScaler(with_mean=False),
        lambda: np.asfortranarray(matrix(0.3)),
    ],
)
def test_equal_values_of_different_objects_are_the_same(make: Any) -> None:
    assert key_of(make()) == key_of(make())
    assert key_of_params({"a": make(), "b": 1}) == key_of_params({"b": 1, "a": make()})


def test_points_are_grouped_by_kernel_and_rise_in_price() -> None:
    points = [{"C": C, "epsilon": e, "gamma": g} for C in (2.0, 1.0) for e in (0.1, 0.2) for g in (1.0, 2.0)]
    groups = group_points_by_kernel(points)
    assert [sorted({points[k]["gamma"] for k in group}) for group in groups] == [[1.0], [2.0]]
    assert [(points[k]["epsilon"], points[k]["C"]) for k in groups[0]] == [(0.1, 1), (0.1, 2), (0.2, 1), (0.2, 2)]
    behind = group_points_by_kernel([{"svc__C": 1.0, "pick__C": C} for C in (1.0, 2.0)], "svc__")
    assert behind == [[0], [1]]


def test_kernels_are_shared_where_they_are_the_same() -> None:
    """One group for the folds of gamma="auto", which is the same number in each of them."""
    calls = []

    class Counted(Kernel):
        accepts = "vectors"
        unit_diagonal = positive_definite = "yes"

        def _values(self, X: Any, Z: Any) -> Any:
            calls.append(1)
            return np.exp(-((X[:, None] - Z[None]) ** 2).sum(axis=2))

    X, y = data()
    mercer.tune(SVC(kernel=Counted()), X[:, :2], y, grid={"C": [1.0, 2.0]}, refit=False, **FOLDS)
    once = len(calls)
    mercer.tune(SVC(kernel=Counted()), X[:, :2], y, grid={"C": [1.0, 2.0]}, refit=False, cv=8)
    assert len(calls) - once <= once + 8
