"""‖w‖ of every kind of machine against √(β'Kβ) written out from its coefficients."""

import numpy as np
import pytest

import mercer

rng = np.random.default_rng(4)
X = rng.normal(size=(60, 2))
Y = np.where(X[:, 0] + 0.3 * rng.normal(size=60) > 0, 1, 0)
THREE = np.digitize(X[:, 0], [-0.5, 0.5])
K = np.exp(-0.7 * ((X[:, None] - X[None]) ** 2).sum(axis=2))

MACHINES = {
    "1-norm": (mercer.SVC(), Y),
    "2-norm": (mercer.SVC(slack="l2"), Y),
    "without bias": (mercer.SVC(bias=False), Y),
    "regularised bias": (mercer.SVC(bias="regularized"), Y),
    "one against the rest": (mercer.SVC(multiclass="ovr", bias="regularized"), THREE),
    "joint": (mercer.SVC(multiclass="weston-watkins", bias="regularized"), THREE),
    "joint, two classes": (mercer.SVC(multiclass="crammer-singer"), Y),
    "hard margin": (mercer.SVC(C=np.inf), Y),
    "NuSVC": (mercer.NuSVC(nu=0.4), Y),
    "SVR": (mercer.SVR(bias="regularized"), X[:, 1]),
    "OneClassSVM": (mercer.OneClassSVM(nu=0.3), None),
}


@pytest.mark.parametrize("name", MACHINES)
def test_it_is_the_length_of_the_coefficients(name):
    model, target = MACHINES[name]
    model.set_params(gamma=0.7, tol=1e-6).fit(X, target)
    beta = np.zeros((len(model.dual_coef_), len(X)))
    beta[:, model.support_] = model.dual_coef_
    expected = np.sqrt(np.einsum("ki,ij,kj->k", beta, K, beta))
    np.testing.assert_allclose(np.atleast_1d(model.rkhs_norm_), expected, rtol=1e-8)
