"""No combination of machine, kernel kind and data kind is forgotten: each solves one problem as a plain solve does."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp

import mercer.estimators
from contracts.named import named
from mercer import kernels
from reference import least_squares as plain

MACHINES = [name for name in mercer.estimators.__all__ if name.startswith("RLS")]
LAM = 0.3


def data():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(40, 3)) * (rng.random((40, 3)) < 0.7)
    X[7] = X[3]
    return X.astype(np.float32).astype(np.float64), rng


def by_hand(X, Z):
    X, Z = (A.toarray() if sp.issparse(A) else A for A in (X, Z))
    return np.exp(-0.3 * ((X[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2))


KINDS = {
    "recipe": lambda: kernels.Gaussian(gamma=0.3),
    "linear": lambda: 2.0 * kernels.Linear(),
    "composite": lambda: 0.5 * kernels.Gaussian(gamma=0.5) + kernels.Linear() * kernels.Laplacian(gamma=0.2),
    "callable": lambda: by_hand,
    "precomputed": lambda: "precomputed",
}


def test_the_machines_are_there():
    assert set(MACHINES) >= {"RLSClassifier", "RLSClassifierCV", "RLSRegressor", "RLSRegressorCV"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MACHINES)
def test_every_combination_is_a_plain_solve(name, kind):
    for form, bias, weighted in product(["dense", "csr", "float32"], [False, True], [False, True]):
        with named(form, bias, weighted):
            check_plain_solve(name, kind, form, bias, weighted)


def check_plain_solve(name, kind, form, bias, weighted):
    X, rng = data()
    kernel = KINDS[kind]()
    K = by_hand(X, X) if kind in ("callable", "precomputed") else kernel(X)
    given = K if kind == "precomputed" else X
    if form == "float32":
        given = given.astype(np.float32)
        K = K.astype(np.float32).astype(np.float64) if kind == "precomputed" else K
    if form == "csr" and kind != "precomputed":
        given = sp.csr_array(given)
    if "Classifier" in name:
        y = rng.integers(0, 3, size=40)
        Y = np.where(y[:, None] == np.arange(3), 1.0, -1.0)
    else:
        Y = y = rng.normal(size=(40, 2)) + 5.0
    weight = rng.integers(0, 3, size=40) + rng.choice([0.0, 0.5], size=40) if weighted else np.ones(40)
    parameters = {"lams": [LAM]} if name.endswith("CV") else {"lam": LAM}
    model = getattr(mercer.estimators, name)(kernel=kernel, bias=bias, **parameters)
    model.fit(given, y, sample_weight=weight if weighted else None)

    keep = weight > 0
    c, b = plain.solve(K[np.ix_(keep, keep)], Y[keep], LAM, weight[keep], bias)
    np.testing.assert_allclose(model.dual_coef_[keep], c, atol=1e-8 * np.abs(c).max())
    assert not model.dual_coef_[~keep].any()
    np.testing.assert_allclose(model.intercept_, b, atol=1e-8)
    values = model.decision_function(given) if "Classifier" in name else model.predict(given)
    # Float32 input is predicted in float32.
    np.testing.assert_allclose(values, K[:, keep] @ c + b, atol=1e-5 if form == "float32" else 1e-8)
    objective = plain.objective(K[np.ix_(keep, keep)], c, b, Y[keep], LAM, weight[keep]).sum() / (2 * LAM)
    # Values that NumPy computes are taken to err by 3·10⁻¹¹ (`generic_error`): less than ten digits of P are then sure.
    # The sums of all others are sure to about (n + d)·2⁻⁵³ times a condition number of a few hundred.
    doubt = 2e-8 if kind == "composite" else 1e-11
    assert model.certificate_.primal == pytest.approx(objective, rel=doubt)
    assert model.certificate_.dual == pytest.approx(objective, rel=doubt)
    assert 0 <= model.certificate_.gap <= doubt * objective
    assert len(model.certificate_.parts) == Y.shape[1]
