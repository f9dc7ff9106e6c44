"""Transduction and Laplacian machines against their definitions; f of a whole path of λ on other samples."""

import itertools
import pickle
import warnings

import numpy as np
import pytest

from mercer import SVC, RLSClassifierCV, RLSRegressor, RLSRegressorCV
from mercer.estimators.transduction import transduce
from mercer.estimators.unsupervised import manifold_kernel
from mercer.kernels import Gaussian, sigest
from mercer.solvers.ipop import ipop

RNG = np.random.default_rng(0)
X = np.vstack([RNG.normal(size=(12, 2)), RNG.normal([3.0, 0.0], 1.0, size=(12, 2))])


def objective(labels):
    return SVC(C=1.0, kernel="linear", tol=1e-8).fit(X, labels).certificate_.primal


def test_transduction_ends_where_no_exchange_helps():
    y = np.full(24, -1)
    y[[0, 1, 12, 13]] = [0, 0, 1, 1]
    found = transduce(SVC(C=1.0, kernel="linear", tol=1e-8), X, y)
    assert (found.labels[y >= 0] == y[y >= 0]).all()
    assert (found.labels == 1).sum() == 12  # the share of the labelled ones
    assert found.model.converged_
    best = found.model.certificate_.primal
    free = np.flatnonzero(y < 0)
    first, second = free[found.labels[free] == 0], free[found.labels[free] == 1]
    for a, b in itertools.product(first[:4], second[:4]):
        other = found.labels.copy()
        other[[a, b]] = 1, 0
        assert objective(other) >= best - 1e-6


@pytest.mark.parametrize("seed", [6, 13, 17])
def test_labels_are_exchanged_where_that_lowers_the_objective(seed):
    rng = np.random.default_rng(seed)
    samples = np.vstack([rng.normal(size=(15, 2)), rng.normal([2.5, 0.0], 1.0, size=(15, 2))])
    y = np.full(30, -1)
    y[[0, 15]] = 0, 1
    machine = SVC(C=1.0, kernel="linear", tol=1e-6)
    found = transduce(machine, samples, y, positive_share=0.5)
    assert found.switches > 0
    f = machine.fit(samples[[0, 15]], [0, 1]).decision_function(samples)  # what it started from
    first = y.copy()
    first[y < 0] = 0
    first[np.flatnonzero(y < 0)[np.argsort(-f[y < 0])[:14]]] = 1
    assert found.model.certificate_.primal < machine.fit(samples, first).certificate_.dual


def test_transduction_helps_and_keeps_the_share_that_is_given():
    y = np.full(24, -1)
    y[[0, 23]] = [0, 1]
    truth = np.repeat([0, 1], 12)
    found = transduce(SVC(C=1.0, kernel="linear"), X, y, positive_share=0.5)
    assert (found.labels == truth).mean() >= 0.95
    third = transduce(SVC(C=1.0, kernel="linear"), X, y, positive_share=7 / 22, price=0.1)
    assert (third.labels[y < 0] == 1).sum() == 7
    names = np.where(y == 0, "no", np.where(y == 1, "yes", "?"))
    np.testing.assert_array_equal(
        transduce(SVC(C=1.0, kernel="linear"), X, names, unlabelled="?", positive_share=0.5).labels == "yes",
        found.labels == 1,
    )


def test_transduction_says_what_it_needs():
    with pytest.raises(ValueError, match="two classes"):
        transduce(SVC(), X, np.repeat([0, 1], 12))
    with pytest.raises(ValueError, match="give another `unlabelled`"):
        transduce(SVC(), X, np.repeat([-1, 1], 12))
    with pytest.raises(TypeError, match="SVC"):
        transduce(RLSRegressor(), X, np.repeat([-1, 1], 12))


def test_laplacian_least_squares_has_its_closed_form():
    """α = (JK + γ_A I + γ_I LK)⁻¹Jy (Belkin, Niyogi, Sindhwani 2006, eq. 8, without their factors of n)."""
    kernel, known = Gaussian(gamma=0.5), np.arange(0, 24, 4)
    y = np.sin(X[:, 0])
    W = (np.linalg.norm(X[:, None] - X[None], axis=2) < 1.5) - np.eye(24)
    L, J, K = np.diag(W.sum(axis=1)) - W, np.zeros((24, 24)), kernel(X)
    J[known, known] = 1.0
    gamma_a, gamma_i = 0.3, 0.8
    alpha = np.linalg.solve(J @ K + gamma_a * np.eye(24) + gamma_i * L @ K, J @ y)
    bent = manifold_kernel(X, kernel=kernel, tau=gamma_i / gamma_a, graph=W)
    model = RLSRegressor(lam=gamma_a, kernel=bent, bias=False).fit(X[known], y[known])
    np.testing.assert_allclose(model.predict(X), K @ alpha, atol=1e-8)
    new = X + 0.1
    np.testing.assert_allclose(model.predict(new), kernel(new, X) @ alpha, atol=1e-8)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(new), model.predict(new))
    assert np.linalg.eigvalsh(bent(new)).min() > -1e-10
    with pytest.raises(ValueError, match="symmetric"):
        manifold_kernel(X, kernel=kernel, graph=np.triu(W))


@pytest.mark.parametrize("bias", [True, False])
def test_a_path_predicts_what_its_machines_do(bias):
    X2 = np.vstack([X, X[:3]])
    Y = np.column_stack([np.sin(X2[:, 0]), X2[:, 1]])
    weight = 0.5 + np.arange(27) % 3
    for target in (Y, Y[:, 0]):
        path = RLSRegressorCV([0.01, 1.0, 30.0], gamma=0.3, bias=bias).fit(X2, target, sample_weight=weight).path_
        found = path.predict(X + 0.2)
        for k, lam in enumerate(path.lams):
            np.testing.assert_allclose(found[k], path.at(lam).predict(X + 0.2), atol=1e-8)
    for labels in (np.repeat([0, 1], 12), np.arange(24) % 3):
        path = RLSClassifierCV([0.1, 2.0], gamma=0.3, bias=bias).fit(X, labels).path_
        np.testing.assert_allclose(path.predict(X)[1], path.at(2.0).decision_function(X), atol=1e-8)
    with pytest.raises(ValueError, match="keeps no training samples"):
        RLSRegressorCV(kernel="linear").fit(X2, Y[:, 0]).path_.predict(X)


def test_sigest_is_the_quantiles_of_inverse_squares():
    low, middle, high = sigest(X, share=400.0, random_state=0)
    squares = np.array([np.sum((a - b) ** 2) for a, b in itertools.combinations(X, 2)])
    np.testing.assert_allclose([low, middle, high], 1 / np.quantile(squares, [0.9, 0.5, 0.1]), rtol=0.1)
    with pytest.raises(ValueError, match="no distance"):
        sigest(np.ones((5, 2)))


def test_ipop_solves_and_bounds():
    rng = np.random.default_rng(3)
    B = rng.normal(size=(5, 6))
    H, c, A = B.T @ B, rng.normal(size=6), rng.normal(size=(2, 6))
    found = ipop(c, H, A, [-0.2, 0.1], -1.0, 1.0, [0.5, 0.0])
    assert found.outside < 1e-8
    assert -1e-9 <= found.value - found.bound < 1e-7
    for _ in range(200):  # no feasible point is better
        z = np.clip(found.x + 0.3 * rng.normal(size=6), -1, 1)
        z = z - np.linalg.pinv(A) @ (A @ z - np.clip(A @ z, [-0.2, 0.1], [0.3, 0.1]))
        if (np.abs(z) <= 1).all():
            assert c @ z + 0.5 * z @ H @ z >= found.bound - 1e-9
    above = ipop([-1.0, -1.0], 0.1 * np.eye(2), [[1.0, 1.0]], [0.0], 0.0, 5.0, [1.0])  # Ax at its upper end
    np.testing.assert_allclose(above.x, [0.5, 0.5], atol=1e-7)
    assert -1e-9 <= above.value - above.bound < 1e-7
    with pytest.raises(ValueError, match="symmetric"):
        ipop(c, B, A, [0, 0], 0, 1, [0, 0])


@pytest.mark.timeout(60)
def test_a_search_for_labels_ends():
    one = transduce(SVC(kernel="linear"), [[0.0], [1.0], [2.0], [5.0]], [0, 0, -1, 1])  # none of the second class
    assert one.labels.tolist() == [0, 0, 0, 1]
    rng = np.random.default_rng(6)
    n = int(rng.integers(6, 40))
    X, y = rng.normal(size=(n, 2)), rng.integers(0, 2, n)
    y[rng.random(n) < 0.7] = -1
    y[:3] = 0, 1, -1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an indefinite kernel has no minimum, and labels would go to and fro
        found = transduce(SVC(kernel="sigmoid", gamma=1.0), X, y)
    assert (found.labels[y >= 0] == y[y >= 0]).all()


def test_a_small_price_of_transduction_is_that_price():
    """At 1e-9 of C the unlabelled samples pull by at most that: β of each is at most 1e-9."""
    X, y = np.array([[0.0], [0.4], [0.6], [1.0]]), np.array([0, -1, -1, 1])
    found = transduce(SVC(kernel="linear", tol=1e-12), X, y, price=1e-9)
    beta = np.zeros(4)
    beta[found.model.support_] = found.model.dual_coef_[0]
    assert np.abs(beta[1:3]).max() <= 1e-9
    assert np.abs(beta[1:3]).max() > 0
