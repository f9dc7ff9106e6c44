"""Kernels by name, as functions and as matrices: not symmetric, not definite, not finite, not of this shape."""

import pickle

import numpy as np
from scipy import sparse

from bad_inputs.given import WITH, K, N, T, X, changed, fit, pegasos, rls, svc
from bad_inputs.judge import Case, Raises, Warns, Works, same_as
from mercer import SVR
from mercer.runtime.errors import NonPSDKernelWarning


def asymmetric(by):
    return changed(K, ((0, 1), K[0, 1] + by))


def indefinite():
    return K - 0.7 * np.eye(N) * np.linalg.eigvalsh(K).max()


def spoil(A, B):
    A[:] = 0.0
    return A @ B.T


class Refusal(Exception):
    pass


def refuse(A, B):
    raise Refusal("the kernel's own error")


CASES = [
    Case(
        "kernel of wrong shape",
        lambda: svc(kernel=lambda A, B: np.ones((3, 3))),
        Raises(ValueError, r"shape"),
        number=82,
    ),
    Case(
        "kernel with NaN",
        lambda: svc(kernel=lambda A, B: np.full((len(A), len(B)), np.nan)),
        Raises((ValueError, FloatingPointError), r"(?i)finite|nan"),
        number=82,
    ),
    Case(
        "kernel not symmetric",
        lambda: svc(kernel=lambda A, B: A @ np.triu(np.ones((3, 3))) @ B.T),
        Raises(ValueError, r"(?i)symmetric"),
        number=82,
    ),
    Case("kernel that raises", lambda: svc(kernel=refuse), Raises(Refusal, r"own error"), number=82),
    Case("kernel that writes", lambda: svc(X.copy(), kernel=spoil), Raises(ValueError, r"read-only"), number=82),
    Case(
        "kernel that cannot be pickled",
        lambda: pickle.dumps(svc(kernel=lambda A, B: A @ B.T)),
        Raises((pickle.PicklingError, AttributeError), r"lambda"),
        number=82,
    ),
    Case("unknown kernel", lambda: svc(kernel="gauss"), Raises(ValueError, r"(?s)kernel.*rbf"), number=83),
    Case("not square", lambda: svc(K[:, :-1], kernel="precomputed"), Raises(ValueError, r"(?i)square"), number=85),
    Case(
        "asymmetric by 1e-3",
        lambda: svc(asymmetric(1e-3), kernel="precomputed"),
        Raises(ValueError, r"(?is)not symmetric.*(K \+ K\.T|symmetrise)"),
        number=86,
    ),
    Case(
        "asymmetric by 1e-12",
        lambda: svc(asymmetric(1e-12), kernel="precomputed"),
        Works(same_as(lambda: svc(K, kernel="precomputed"), on=K)),
        number=86,
    ),
    Case(
        "indefinite",
        lambda: svc(indefinite(), kernel="precomputed"),
        Warns(
            NonPSDKernelWarning,
            r"(?i)semi-?definite|eigenvalue",
            lambda m: m.certificate_.proves == "stationarity",
        ),
        number=87,
    ),
    Case(
        "negative diagonal",
        lambda: svc(changed(K, ((2, 2), -1.0)), kernel="precomputed"),
        Warns(NonPSDKernelWarning, r"(?i)diagonal|eigenvalue", lambda m: m.certificate_.proves == "stationarity"),
        number=87,
    ),
    Case(
        "NaN in K",
        lambda: svc(changed(K, ((2, 5), np.nan), ((5, 2), np.nan)), kernel="precomputed"),
        Raises(ValueError, r"NaN"),
        number=88,
    ),
    Case(
        "predict with too few columns",
        lambda: svc(K, kernel="precomputed").predict(K[:, :-1]),
        Raises(ValueError, r"(?s)39.*40"),
        number=89,
    ),
    Case(
        "rank one",
        lambda: svc(np.outer(X[:, 0], X[:, 0]), kernel="precomputed"),
        Works(
            lambda m: np.allclose(
                m.decision_function(np.outer(X[:, 0], X[:, 0])),
                svc(X[:, :1], kernel="linear").decision_function(X[:, :1]),
                atol=5e-3,
            )
        ),
        number=90,
    ),
    Case(
        "SVR: coef_ of a Gaussian",
        lambda: SVR().fit(X, T).coef_,
        Raises((ValueError, TypeError, AttributeError), r"coef_ exists only for a linear kernel"),
    ),
    Case(
        "SVR: sparse precomputed",
        lambda: SVR(kernel="precomputed").fit(sparse.csr_array(X @ X.T), T),
        Raises((ValueError, TypeError, AttributeError), r"sparse precomputed kernel matrix is not supported"),
    ),
    Case("PegasosSVC: kernel", lambda: pegasos(kernel="gauss"), Raises(ValueError, r"(?s)kernel='gauss'.*rbf")),
    Case(
        "RLSRegressor: covariance of a Gaussian",
        lambda: rls(solver="covariance"),
        Raises(ValueError, "linear kernels.*'auto'"),
    ),
    Case("RLSRegressor: lsqr of a Gaussian", lambda: rls(solver="lsqr"), Raises(ValueError, "linear kernels")),
    Case("RLSRegressor: rectangular K", lambda: rls(K[:, :-1], kernel="precomputed"), Raises(ValueError, "square")),
    Case(
        "RLSRegressor: asymmetric K",
        lambda: rls(changed(K, ((0, 1), 7.0)), kernel="precomputed"),
        Raises(ValueError, "not symmetric"),
    ),
    Case(
        "RLSRegressor: sparse K",
        lambda: rls(sparse.csr_array(K), kernel="precomputed"),
        Raises(TypeError, "sparse precomputed"),
    ),
    Case(
        "precomputed: the end of float64",
        lambda name: fit(name, np.full((N, N), 1.7e308), kernel="precomputed"),
        Raises(FloatingPointError, r"1.7e\+308.*scale"),
        to=WITH["kernel"],
    ),
]
