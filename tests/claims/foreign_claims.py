"""The claims of `mercer.certify` about models that scikit-learn fitted: the value of each, and a point that is better.

The values are the objectives of the documentation of LIBSVM, LIBLINEAR and scikit-learn, in a hundred digits.
"""

import warnings
from decimal import Decimal
from itertools import combinations

import numpy as np
import sklearn.svm
from sklearn.kernel_ridge import KernelRidge

import mercer
from claims.false_claims import REFUSED, against, fitted, proves_too_much
from reference.decimals import ZERO, decimals, zeros

# The kernels that scikit-learn computes by itself, and under the same names.
KERNELS = ["gaussian", "linear", "polynomial", "homogeneous", "sigmoid"]
_HALF, _ONE = Decimal("0.5"), Decimal(1)


def positive(values):
    return np.where(values > 0, values, ZERO * values)


def certified(model, s, target):
    """The certificate, or None where `certify` refuses the model in words."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return mercer.certify(model, s.given, target, sample_weight=s.sample_weight)
        except (ValueError, FloatingPointError):
            REFUSED.append(s.problem)
            return None


def spread(model, n):
    """β over all rows, a line for each row of dual_coef_, which is sparse where X is."""
    given = model.dual_coef_.toarray() if hasattr(model.dual_coef_, "toarray") else np.atleast_2d(model.dual_coef_)
    out = zeros(len(given), n)
    out[:, model.support_] = decimals(given)
    return out


def checked(model, rival, s, target, value_of):
    """Hold the certificate of a model against its value and that of mercer's own solution of the same problem."""
    if model is None or rival is None:
        return []
    proof = certified(model, s, target)
    if proof is None:
        return []
    return against(proof, value_of(model), [value_of(rival)]) + proves_too_much(proof, s.formula)


def svc(s):
    p = s.problem
    shared = {"C": p.C, "decision_function_shape": "ovo", **s.kernel}
    model = fitted(sklearn.svm.SVC(tol=p.tol, max_iter=2000, **shared), s, s.labels)
    rival = fitted(mercer.SVC(tol=1e-8, max_time=5.0, n_jobs=1, **shared), s, s.labels)
    alive, C = s.weight > 0, decimals(s.weight) * decimals(p.C)

    def value(one):
        beta, total, y, classes = spread(one, p.n), ZERO, s.labels, len(one.classes_)
        for pair, (i, j) in enumerate(combinations(range(classes), 2)):
            rows = np.flatnonzero(alive & ((y == i) | (y == j)))
            own = np.where(y[rows] == i, beta[j - 1][rows], beta[i][rows]) if classes > 2 else beta[0][rows]
            side = decimals(np.where(y[rows] == (i if classes > 2 else j), 1.0, -1.0))
            u = s.K(rows) @ own
            loss = positive(_ONE - side * (u + decimals(float(one.intercept_[pair]))))
            total += _HALF * (own @ u) + C[rows] @ loss
        return total

    return checked(model, rival, s, s.labels, value)


def svr(s):
    p = s.problem
    shared = {"C": p.C, "epsilon": 0.1 * p.size, **s.kernel}
    model = fitted(sklearn.svm.SVR(tol=p.tol, max_iter=2000, **shared), s, s.targets)
    rival = fitted(mercer.SVR(tol=1e-8, max_time=5.0, n_jobs=1, **shared), s, s.targets)
    t, C = decimals(s.targets), decimals(s.weight) * decimals(p.C)

    def value(one):
        beta = spread(one, p.n)[0]
        u = s.K() @ beta
        off = np.abs(t - u - decimals(float(one.intercept_[0])))
        return _HALF * (beta @ u) + C @ positive(off - decimals(shared["epsilon"]))

    return checked(model, rival, s, s.targets, value)


def one_class(s):
    p = s.problem
    model = fitted(sklearn.svm.OneClassSVM(nu=0.3, tol=p.tol, max_iter=2000, **s.kernel), s)
    rival = fitted(mercer.OneClassSVM(nu=0.3, tol=1e-8, max_time=5.0, n_jobs=1, **s.kernel), s)
    w, nu = decimals(s.weight), decimals(0.3)

    def value(one):
        beta = spread(one, p.n)[0]
        u, rho = s.K() @ beta, -decimals(float(one.intercept_[0]))
        return _HALF * (beta @ u) + w @ positive(rho - u) - nu * w.sum() * rho

    return checked(model, rival, s, None, value)


def linear_svc(s):
    p = s.problem
    shared = {"C": min(p.C, 1.0), **p.options}
    model = fitted(sklearn.svm.LinearSVC(tol=p.tol, max_iter=2000, random_state=0, **shared), s, s.labels)
    rival = fitted(mercer.LinearSVC(tol=1e-8, max_time=5.0, **shared), s, s.labels)
    X, C = decimals(s.X), decimals(s.weight) * decimals(shared["C"])

    def value(one):
        total, w, b = ZERO, decimals(np.atleast_2d(one.coef_)), decimals(np.atleast_1d(one.intercept_))
        for k in range(len(w)):
            side = decimals(np.where(s.labels == (1 if len(w) == 1 else k), 1.0, -1.0))
            loss = positive(_ONE - side * (X @ w[k] + b[k]))
            total += _HALF * (w[k] @ w[k] + b[k] * b[k]) + C @ (loss * loss if one.loss == "squared_hinge" else loss)
        return total

    return checked(model, rival, s, s.labels, value)


def kernel_ridge(s):
    p = s.problem
    lam = 1.0 / p.C
    model = fitted(KernelRidge(alpha=lam, **{"coef0": 0.0, **s.kernel}), s, s.targets)
    rival = fitted(mercer.RLSRegressor(lam, bias=False, n_jobs=1, **s.kernel), s, s.targets)
    t, w = decimals(s.targets), decimals(s.weight)

    def value(one):
        beta = decimals(np.ravel(one.dual_coef_))
        u = s.K() @ beta
        return _HALF * (beta @ u) + (w @ (t - u) ** 2) / (2 * decimals(lam))

    return checked(model, rival, s, s.targets, value)


CHECKS = {
    "SVC": (svc, [{}]),
    "SVR": (svr, [{}]),
    "OneClassSVM": (one_class, [{}]),
    "LinearSVC": (linear_svc, [{}, {"loss": "hinge"}]),
    "KernelRidge": (kernel_ridge, [{}]),
}
