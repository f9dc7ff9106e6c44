"""Machines of one class at every ν: tol is measured in values of f, which shrink with ν.

The truth is a quadratic program in the scale in which coefficients add up to 1, solved by clarabel.
"""

import clarabel
import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.model_selection import KFold

import mercer
from mercer import SVDD, OneClassSVM
from mercer.kernels import Gaussian, Laplacian, Linear
from mercer.model_selection.held_out.fold_fits import fit_folds
from mercer.model_selection.held_out.folds import SharedFolds

NUS = [1e-8, 1e-6, 1e-4, 1e-3, 0.01, 0.1, 0.5, 0.9]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3)) + np.array([6.0, 0.0, 0.0])
KERNELS = {
    "wide": Gaussian(gamma=0.01),
    "middle": Gaussian(gamma=0.5),
    "narrow": Gaussian(gamma=50.0),  # nearly orthogonal
    "Laplacian": Laplacian(gamma=0.3),
    "linear": Linear(),
}


def optimum(K, p, nu):
    """The dual value of min ½a'Ka − p'a over 0 ≤ a ≤ 1/(νn), Σa = 1."""
    n = len(K)
    A = scipy.sparse.vstack([np.ones((1, n)), scipy.sparse.eye(n), -scipy.sparse.eye(n)]).tocsc()
    b = np.concatenate([[1.0], np.full(n, min(1.0, 1 / (nu * n))), np.zeros(n)])
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.tol_gap_abs, settings.tol_gap_rel, settings.tol_feas = False, 1e-12, 1e-12, 1e-12
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(2 * n)]
    P = scipy.sparse.triu(scipy.sparse.csc_matrix(K)).tocsc()
    found = clarabel.DefaultSolver(P, -p, A, b, cones, settings).solve()
    return -found.obj_val


@pytest.mark.parametrize("nu", NUS)
@pytest.mark.parametrize("name", KERNELS)
def test_every_nu_is_solved(name, nu):
    kernel = KERNELS[name]
    K = kernel(X)
    one, ball = OneClassSVM(nu=nu, kernel=kernel).fit(X), SVDD(nu=nu, kernel=kernel).fit(X)
    for model, scale, p in ((one, (nu * len(X)) ** 2, np.zeros(len(K))), (ball, 1.0, 0.5 * K.diagonal())):
        proof, value = model.certificate_, scale * optimum(K, p, nu)
        assert model.converged_
        assert proof.proves == "optimality"
        assert proof.relative_gap <= 3e-3
        assert proof.dual <= value + 1e-7 * abs(value)
        assert proof.primal >= value - 1e-7 * abs(value)
        if nu * len(X) < 1:
            f = model.decision_function(X)
            assert f.min() >= -2e-3 * np.abs(f).max()  # the nearest ones lie on the boundary, up to tol


@pytest.mark.parametrize("n", [50, 200, 2000])
def test_a_small_nu_leaves_hardly_anything_outside(n):
    Z = np.random.default_rng(n).random((n, 4))
    for nu in (1e-8, 1e-6, 1e-5, 1e-3):
        model = OneClassSVM(nu=nu).fit(Z)
        assert (model.predict(Z) == -1).sum() <= nu * n
        assert model.certificate_.proves == "optimality"


def test_below_one_sample_only_the_scale_depends_on_nu():
    f, g = (OneClassSVM(nu=nu).fit(X).decision_function(X) / nu for nu in (1e-3, 1e-7))
    np.testing.assert_allclose(f, g, atol=2e-3 * np.abs(f).max())


def test_weights_scale_f_and_its_tolerance():
    plain, light = (OneClassSVM(nu=0.2).fit(X, sample_weight=np.full(len(X), w)) for w in (1.0, 1e-7))
    assert light.certificate_.proves == "optimality"
    np.testing.assert_allclose(light.decision_function(X) / 1e-7, plain.decision_function(X), atol=2e-2)


def test_samples_around_the_origin_converge():
    """The linear machine's optimum is w = 0: a relative gap cannot be reached."""
    for machine in (OneClassSVM(nu=0.3, kernel="linear"), OneClassSVM(nu=1e-4, kernel="linear")):
        model = machine.fit(X - X.mean(axis=0))
        assert model.converged_
        assert np.linalg.norm(model.coef_) <= 0.03 * model.dual_coef_.sum() * np.linalg.norm(X, axis=1).max()


@pytest.mark.parametrize("machine", [OneClassSVM(nu=1e-4, tol=1e-4), SVDD(nu=0.03), OneClassSVM(nu=0.03, gamma=1e-4)])
def test_neither_the_order_of_the_rows_nor_the_device_sets_the_tolerance(machine):
    pytest.importorskip("torch")
    order = RNG.permutation(len(X))
    fits = [clone(machine).fit(X), clone(machine).fit(X[order])]
    precomputed = Gaussian(gamma=fits[0].kernel_.gamma)(X)
    fits += [
        clone(machine).set_params(kernel="precomputed").fit(K) for K in (precomputed, precomputed[order][:, order])
    ]
    with mercer.config_context(device="torch-cpu"):
        fits.append(clone(machine).fit(X))
    for model in fits:
        beta, mass = model.dual_coef_[0], model.dual_coef_.sum()
        K = precomputed[np.ix_(*2 * [order[model.support_] if model in (fits[1], fits[3]) else model.support_])]
        energy = beta @ K @ beta / mass
        unit = min(1.0, mass - energy, energy if isinstance(model, OneClassSVM) else np.inf)
        assert model.certificate_.violation <= model.tol * unit * (1 + 1e-6)


class Listener:
    """Listener that keeps every fit of every fold."""

    def __init__(self):
        self.found = {}

    def is_needed(self, name, fold):
        return True

    def finished(self, name, fold, fit):
        self.found[name, fold] = fit

    def failed(self, name, fold, error):
        raise error


@pytest.mark.parametrize("gamma", [1e-4, 0.5])
def test_the_fits_of_folds_are_solved_as_well(gamma):
    machines = [OneClassSVM(nu=nu, gamma=gamma) for nu in (1e-6, 1e-3, 0.1, 0.5)]
    splits = list(KFold(3).split(X))
    fits = Listener()
    fit_folds(SharedFolds.of(machines[0], X, None, splits, None), [list(enumerate(machines))], fits, 1, 10**8)
    for (name, fold), fit in fits.found.items():
        train, test = splits[fold]
        truth = clone(machines[name]).set_params(tol=1e-9).fit(X[train])
        f = truth.decision_function(X[test])
        np.testing.assert_allclose(fit.values[:, 0], f, atol=1e-2 * np.ptp(truth.decision_function(X)))
