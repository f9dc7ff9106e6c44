"""Fits of all folds on one stored matrix are those of the estimators, fold by fold."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import KFold

from mercer import SVC, SVR, OneClassSVM
from mercer.kernels import Gaussian, Laplacian
from mercer.model_selection.held_out.fold_fits import FoldFit, fit_folds
from mercer.model_selection.held_out.folds import SharedFolds, reason_not_shared

TIGHT = {"tol": 1e-7}


def data(n: int = 90, classes: int = 2):  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 4))
    X[-20:] = X[:20]  # the same samples in several folds
    y = np.digitize(X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.5 * rng.normal(size=n), [0.4, 1.0][: classes - 1])
    return X, y


class Fits:
    """Want every fit except some, and keep the results."""

    def __init__(self, unwanted: tuple[int, int] | None = None) -> None:
        self.unwanted, self.found = unwanted, {}  # type: tuple[int, int] | None, dict[tuple[int, int], FoldFit]

    def is_needed(self, name: int, fold: int) -> bool:
        return (name, fold) != self.unwanted

    def finished(self, name: int, fold: int, fit: FoldFit) -> None:
        self.found[name, fold] = fit

    def failed(self, name: int, fold: int, error: Exception) -> None:
        raise error


def fits_of(machines, X, y, splits, weight=None, n_threads=2, budget=10**9, several=False):  # type: ignore[no-untyped-def]
    shared, fits = SharedFolds.of(machines[0], X, y, splits, weight), Fits()
    batch = list(enumerate(machines))
    fit_folds(shared, [batch, batch] if several else [batch], fits, n_threads, budget)
    return [[fits.found.get((c, f)) for f in range(len(splits))] for c in range(len(machines))]


def check(machines, X, y, weight=None, several=False, atol=2e-5):  # type: ignore[no-untyped-def]
    splits = list(KFold(3, shuffle=True, random_state=0).split(X))
    found = fits_of(machines, X, y, splits, weight, several=several)
    square = isinstance(machines[0].kernel, str) and machines[0].kernel == "precomputed"
    for machine, fits in zip(machines, found, strict=True):
        for (train, test), fit in zip(splits, fits, strict=True):
            part = X[np.ix_(train, train)] if square else X[train]
            new = X[np.ix_(test, train)] if square else X[test]
            own_y = None if y is None else y[train]
            model = clone(machine).fit(part, own_y, None if weight is None else weight[train])
            truth = model.set_params(decision_function_shape="ovo") if hasattr(model, "classes_") else model
            values = truth.decision_function(new) if hasattr(truth, "decision_function") else truth.predict(new)
            np.testing.assert_allclose(fit.values, values.reshape(len(test), -1), atol=atol)
            assert fit.stop_reason == "converged"
            assert fit.certificate.violation <= 1e-7 * 10
            # K is stored in float32: what that may have done to β'Kβ is taken off this dual value, and is in its gap.
            assert fit.certificate.dual <= model.certificate_.primal
            assert model.certificate_.dual - fit.certificate.dual <= fit.certificate.gap


MACHINES = {
    "two classes": [SVC(C=C, gamma=0.3, **TIGHT) for C in (0.1, 1.0, 10.0, 1000.0)],
    "falling C": [SVC(C=C, gamma=0.3, **TIGHT) for C in (10.0, 1.0)],
    "balanced": [SVC(C=C, gamma=0.3, class_weight="balanced", **TIGHT) for C in (0.1, 1.0)],
    "squared slack": [SVC(C=C, gamma=0.3, slack="l2", **TIGHT) for C in (0.1, 1.0)],
    "no bias": [SVC(C=C, gamma=0.3, bias=False, **TIGHT) for C in (0.1, 1.0)],
    "regularized bias": [SVC(C=C, gamma=0.3, bias="regularized", **TIGHT) for C in (0.1, 1.0)],
    "polynomial": [SVC(C=C, kernel="poly", coef0=1.0, degree=2, **TIGHT) for C in (0.1, 1.0)],
    "from the data": [SVC(C=C, gamma="scale", **TIGHT) for C in (0.1, 1.0)],
    "a sum": [SVC(C=C, kernel=Gaussian(0.2) + 0.5 * Laplacian(0.1), **TIGHT) for C in (0.1, 1.0)],
    "a function": [SVC(C=C, kernel=lambda A, B: (1.0 + 0.3 * A @ B.T) ** 2, **TIGHT) for C in (0.1, 1.0)],
    "theta": [SVC(theta=t, gamma=0.3, **TIGHT) for t in (0.1, 0.01)],
}


@pytest.mark.parametrize("machines", MACHINES.values(), ids=MACHINES.keys())
def test_two_classes(machines: list[SVC]) -> None:
    check(machines, *data())


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_several_kernels_at_once(sparse: bool, kernel: str) -> None:
    X, y = data()
    machines = [SVC(C=C, kernel=kernel, gamma=0.3, coef0=1.0, **TIGHT) for C in (0.1, 10.0)]
    check(machines, sp.csr_matrix(X) if sparse else X, y, several=True)


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_several_classes_with_weights(multiclass: str) -> None:
    X, y = data(classes=3)
    weight = np.random.default_rng(0).integers(0, 3, size=len(y)).astype(float)
    machines = [SVC(C=C, gamma=0.3, multiclass=multiclass, **TIGHT) for C in (0.1, 1.0)]
    check(machines, X, np.array(["a", "b", "c"])[y], weight)


def test_a_precomputed_kernel() -> None:
    X, y = data()
    check([SVC(C=C, kernel="precomputed", **TIGHT) for C in (0.1, 1.0)], Gaussian(0.3)(X, X), y)


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive", "huber"])
def test_regression(loss: str) -> None:
    X, y = data()
    machines = [SVR(C=C, epsilon=e, gamma=0.3, loss=loss, **TIGHT) for C in (0.1, 10.0) for e in (0.05, 0.2)]
    check(machines, X, np.sin(X[:, 0]) + 0.3 * y)


def test_novelty() -> None:
    check([OneClassSVM(nu=nu, gamma=0.3, **TIGHT) for nu in (0.1, 0.5)], data()[0], None)


@pytest.mark.parametrize("C", [1.0, 1000.0])
def test_the_gap_is_true(C: float) -> None:
    """β loses no more of the dual value than its gap says, in float64 and from the kernel itself."""
    X, y = data()
    splits = list(KFold(3, shuffle=True, random_state=0).split(X))
    (fits,) = fits_of([SVC(C=C, gamma=0.3, tol=1e-2)], X, y, splits)
    shared = SharedFolds.of(SVC(gamma=0.3), X, y, splits)
    points, labels = shared.whole.merged.X, 2.0 * shared.whole.merged.y - 1.0
    for (train, _), fit in zip(splits, fits, strict=True):
        (task,) = fit.tasks
        beta, p = task.coefficients, labels[task.rows]
        dual = p @ beta - 0.5 * beta @ Gaussian(0.3)(points[task.rows], points[task.rows]) @ beta
        best = SVC(C=C, gamma=0.3, tol=1e-9).fit(X[train], y[train]).certificate_.primal
        assert 0 < best - dual <= task.certificate.gap
        assert abs(beta.sum()) <= 1e-12 * C


def test_a_fold_without_a_class_is_told() -> None:
    X, y = data()
    order = np.argsort(y, kind="stable")
    zeros = order[: int((y == 0).sum())]
    splits = [(zeros, order[len(zeros) :]), (order[::2], order[1::2])]
    shared = SharedFolds.of(SVC(gamma=0.3), X, y, splits)
    assert "only 1 class" in str(shared.folds[0].error)
    fits = Fits()
    fit_folds(shared, [[(0, SVC(gamma=0.3))]], fits, 1, 10**9)
    assert list(fits.found) == [(0, 1)]


def test_a_class_that_a_fold_does_not_know() -> None:
    X, y = data(classes=3)
    train, test = np.flatnonzero((y < 2) | (np.arange(len(y)) % 5 == 0)), np.flatnonzero(np.arange(len(y)) % 3 == 0)
    (fits,) = fits_of([SVC(gamma=0.3, **TIGHT)], X, y, [(np.flatnonzero(y < 2), test), (train, test)])
    assert fits[0].classes.tolist() == [0, 1]
    model = SVC(gamma=0.3, **TIGHT).fit(X[y < 2], y[y < 2])
    np.testing.assert_allclose(fits[0].values[:, 0], model.decision_function(X[test]), atol=1e-5)


def test_what_is_not_wanted_is_not_fitted() -> None:
    X, y = data()
    splits = list(KFold(3).split(X))
    shared = SharedFolds.of(SVC(gamma=0.3), X, y, splits)
    fits = Fits(unwanted=(1, 2))
    fit_folds(shared, [[(c, SVC(C=C, gamma=0.3)) for c, C in enumerate((0.1, 1.0))]], fits, 1, 10**9)
    assert sorted(fits.found) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]


def test_a_budget_for_one_matrix_keeps_one_at_a_time() -> None:
    """Five kernels on four threads, each with its K, where there is room for one."""
    X, y = data()
    splits, room = list(KFold(3).split(X)), 4 * len(np.unique(X, axis=0)) ** 2
    fits, machines = Fits(), [SVC(gamma=gamma, **TIGHT) for gamma in (0.1, 0.2, 0.3, 0.4, 0.5)]
    shared = SharedFolds.of(machines[0], X, y, splits)
    fit_folds(shared, [[(c, machine)] for c, machine in enumerate(machines)], fits, 4, room)
    for c, machine in enumerate(machines):
        for f, (train, test) in enumerate(splits):
            truth = clone(machine).fit(X[train], y[train]).decision_function(X[test])
            np.testing.assert_allclose(fits.found[c, f].values[:, 0], truth, atol=2e-5)


def test_a_large_price_leaves_no_wide_gap() -> None:
    """K in float32 alone would leave gaps a hundred times as wide as those of ordinary fits."""
    X, y = data(300)
    y = np.where(np.random.default_rng(1).random(300) < 0.2, 1 - y, y)
    splits, machine = list(KFold(3, shuffle=True, random_state=0).split(X)), SVC(C=100, gamma=0.01)
    (fits,) = fits_of([machine], X, y, splits)
    for (train, _), fit in zip(splits, fits, strict=True):
        whole = clone(machine).fit(X[train], y[train]).certificate_
        assert fit.certificate.gap <= 10 * whole.gap
        assert fit.certificate.dual <= whole.primal
        assert whole.dual <= fit.certificate.primal


@pytest.mark.parametrize(
    ("machine", "word"),
    [(SVC(kernel="linear"), "linear"), (SVC(C=np.inf), "hard"), (SVC(solver="qp"), "qp"), (SVC(), None)],
)
def test_who_shares(machine: SVC, word: str | None) -> None:
    reason = reason_not_shared(machine)
    assert reason is None if word is None else word in str(reason)
