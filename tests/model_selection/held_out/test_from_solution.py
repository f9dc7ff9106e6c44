"""Held-out values of folds that start from the solution on all samples, and their work."""

import functools

import numpy as np
import pytest
from sklearn.model_selection import KFold

from mercer import SVC
from mercer.model_selection.held_out import from_solution
from mercer.model_selection.held_out.machines import out_of_fold


def data(n):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n) > 0).astype(int)


@pytest.mark.parametrize("stored_rows", [0, 6000])
@pytest.mark.parametrize("bias", [True, False])
def test_values_are_those_of_fits_without_the_fold(monkeypatch, stored_rows, bias):
    monkeypatch.setattr(from_solution, "_STORED_ROWS", stored_rows)
    X, y = data(250)
    machine, splits = SVC(C=3.0, gamma=0.5, tol=1e-8, bias=bias), list(KFold(4).split(X))
    values = out_of_fold(machine.fit(X, y), X, y, None, splits)
    for train, test in splits:
        alone = SVC(**machine.get_params()).fit(X[train], y[train])
        np.testing.assert_allclose(values[test, 0], alone.decision_function(X[test]), atol=1e-6)


def test_rows_that_are_not_stored_cost_a_certificate_for_each_fold_and_little_more(monkeypatch):
    """The start's u follows from that of the solution: K is multiplied by the held-out coefficients only."""
    monkeypatch.setattr(from_solution, "_STORED_ROWS", 0)
    X, y = data(3000)
    machine, grams, solve = SVC(C=1.0, gamma=0.5).fit(X, y), [], from_solution.solve_certified

    def solve_and_keep(problem, gram, *rest, **known):
        grams.append(gram)
        return solve(problem, gram, *rest, **known)

    monkeypatch.setattr(from_solution, "solve_certified", solve_and_keep)
    out_of_fold(machine, X, y, None, list(KFold(5).split(X)))
    assert len(grams) == 5
    units = grams[0].evaluations / (len(y) * len(machine.support_))
    assert units < 11.0


def test_certificates_of_all_folds_share_kernel_values(monkeypatch):
    X, y = data(3000)
    machine, values, certify = SVC(C=1.0, gamma=0.5).fit(X, y), [], from_solution.certify_several

    def certify_and_count(problems, gram, betas, *rest):
        before = gram.evaluations
        proofs = certify(problems, gram, betas, *rest)
        used = np.any(betas, axis=0).sum()
        values.append((gram.evaluations - before) / (gram.n * used))
        return proofs

    monkeypatch.setattr(from_solution, "certify_several", certify_and_count)
    out_of_fold(machine, X, y, None, list(KFold(5).split(X)))
    assert len(values) == 1
    assert values[0] <= 1.0


@functools.cache
def exact_values(C):
    """Decision values on each fold's rows, of machines that are fitted to the others alone."""
    X, y = data(1500)
    folds = KFold(5).split(X)
    return [SVC(C=C, gamma=0.5, tol=1e-7).fit(X[train], y[train]).decision_function(X[test]) for train, test in folds]


@pytest.mark.parametrize("C", [0.3, 30.0, 1e4])
@pytest.mark.parametrize("few_rows", [False, True])
def test_rows_with_a_large_margin_that_become_support_vectors_are_found(monkeypatch, few_rows, C):
    """With few stored rows, certificates do not meet tol, and the last steps use all rows."""
    if few_rows:
        monkeypatch.setattr(from_solution, "_large_margin", lambda beta, diagonal: 1.0)
    X, y = data(1500)
    machine, splits, solved = SVC(C=C, gamma=0.5).fit(X, y), list(KFold(5).split(X)), []
    solve = from_solution.solve_certified

    def solve_and_count(problem, gram, stop, start, **known):
        solved.append(problem)
        return solve(problem, gram, stop, start, **known)

    monkeypatch.setattr(from_solution, "solve_certified", solve_and_count)
    values = out_of_fold(machine, X, y, None, splits)
    assert solved or not few_rows
    for (_, test), exact in zip(splits, exact_values(C), strict=True):
        assert np.isfinite(values[test]).all()
        # A solution within tol of an optimum, which may be far from another one where the dual is flat.
        assert np.abs(values[test, 0] - exact).max() <= (0.01 if C < 100 else 0.1)
