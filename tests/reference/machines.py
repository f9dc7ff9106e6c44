"""Each estimator's problem written out for the generic QP, independently of mercer.problems: one table, one entry each.

An entry maps (K, target, weight) to the value that `certificate_.dual` must have, through the primal where it is easy
to write, or the dual as the literature prints it. Targets: `y` ±1 for classifiers, `t` real for regressors.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import clarabel
import numpy as np
from scipy import sparse

from mercer import (
    SVC,
    SVDD,
    SVR,
    KernelMachineClassifier,
    KernelMachineRegressor,
    LinearSVC,
    LinearSVR,
    MKLClassifier,
    MKLRegressor,
    NuSVC,
    NuSVR,
    NystromRLS,
    NystromRLSClassifier,
    OneClassSVM,
    PegasosSVC,
    QuantileSVR,
    RankSVM,
    RLSClassifier,
    RLSClassifierCV,
    RLSRegressor,
    RLSRegressorCV,
)
from reference import least_squares


def minimise(P, q, A_equal, b_equal, A_above, b_above):
    """min ½x'Px + q'x with A_equal x = b_equal and A_above x ≥ b_above, through clarabel."""
    q = np.asarray(q, dtype=np.float64)
    blocks = [np.asarray(A, dtype=np.float64).reshape(-1, len(q)) for A in (A_equal, -np.asarray(A_above))]
    bounds = np.concatenate([np.atleast_1d(b_equal).astype(float), -np.atleast_1d(b_above).astype(float)])
    cones = [clarabel.ZeroConeT(len(blocks[0])), clarabel.NonnegativeConeT(len(blocks[1]))]
    options = clarabel.DefaultSettings()
    options.verbose, options.max_threads, options.max_iter = False, 1, 500
    options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = 1e-11
    P = sparse.triu(sparse.csc_matrix(np.asarray(P, dtype=np.float64)), format="csc")
    found = clarabel.DefaultSolver(P, q, sparse.csc_matrix(np.vstack(blocks)), bounds, cones, options).solve()
    assert found.status == clarabel.SolverStatus.Solved, found.status
    return found.obj_val, np.array(found.x)


def root(K):
    """Φ with ΦΦ' = K: explicit features of the samples, one row each."""
    values, vectors = np.linalg.eigh((K + K.T) / 2)
    keep = values > 1e-14 * values.max()
    return vectors[:, keep] * np.sqrt(values[keep])


def primal(K, hinges, *, bias=True, extra=0, price_of_extra=None):
    """min over (w, b, extra) of ½‖w‖² + price_of_extra·extra + Σ over hinges; with an extra, also where that is.

    A hinge is (sign, target, extra coefficients, linear price, quadratic price): arrays over the samples, and it costs
    linear·ξ + ½·quadratic·ξ² with ξ ≥ 0 and ξ ≥ target − sign·(⟨w, φ⟩ + b) + extra coefficients·extra.
    """
    Phi = root(K)
    n, m = Phi.shape
    b = 1 if bias else 0
    size = m + b + extra + n * len(hinges)
    P, q = np.zeros((size, size)), np.zeros(size)
    P[np.arange(m), np.arange(m)] = 1.0
    q[m + b : m + b + extra] = 0.0 if price_of_extra is None else price_of_extra
    rows, right = [], []
    for k, (sign, target, coefficients, linear, quadratic) in enumerate(hinges):
        at = m + b + extra + k * n + np.arange(n)
        P[at, at] = quadratic
        q[at] = linear
        A = np.zeros((n, size))
        A[:, :m] = sign[:, None] * Phi
        if bias:
            A[:, m] = sign
        if extra:
            A[:, m + b] = -coefficients
        A[np.arange(n), at] = 1.0
        rows += [A, np.eye(size)[at]]
        right += [target, np.zeros(n)]
    if extra:
        rows.append(np.eye(size)[m + b : m + b + extra])
        right.append(np.zeros(extra))
    value, x = minimise(P, q, np.zeros((0, size)), np.zeros(0), np.vstack(rows), np.concatenate(right))
    return (value, x[m + b]) if extra else value


def _soft(K, y, w, *, C, quadratic=False, bias=True):
    zero, price = np.zeros(len(y)), C * w
    return primal(
        K, [(y, np.ones(len(y)), zero, zero if quadratic else price, price if quadratic else zero)], bias=bias
    )


def svc(K, y, w):
    return _soft(K, y, w, C=2.0)


def svc_l2(K, y, w):
    return _soft(K, y, w, C=2.0, quadratic=True)


def svc_without_bias(K, y, w):
    return _soft(K, y, w, C=2.0, bias=False)


def svc_regularised_bias(K, y, w):
    return _soft(K + 1.0, y, w, C=2.0, bias=False)


def nu_svc(K, y, w, nu=0.4):
    """½‖w‖² − νρW + Σw_iξ_i over ξ_i ≥ ρ − y_if(x_i), after w and b are divided by ρ."""
    W, zero = w.sum(), np.zeros(len(y))
    value, rho = primal(K, [(y, zero, np.ones(len(y)), w, zero)], extra=1, price_of_extra=-nu * W)
    return value / rho**2


def _regression(K, t, up, down, bias=True):
    """`up` and `down` price y − f − ε and f − y − ε: (ε, linear, quadratic)."""
    one, zero = np.ones(len(t)), np.zeros(len(t))
    hinges = [(one, t - up[0], zero, up[1], up[2]), (-one, -t - down[0], zero, down[1], down[2])]
    return primal(K, hinges, bias=bias)


def svr(K, t, w):
    side = (0.1, 2.0 * w, 0.0 * w)
    return _regression(K, t, side, side)


def svr_without_bias(K, t, w):
    side = (0.1, 2.0 * w, 0.0 * w)
    return _regression(K, t, side, side, bias=False)


def svr_squared(K, t, w):
    side = (0.1, 0.0 * w, 2.0 * w)
    return _regression(K, t, side, side)


def svr_expectile(K, t, w, tau=0.8):
    return _regression(K, t, (0.0, 0.0 * w, 2.0 * tau * w), (0.0, 0.0 * w, 2.0 * (1 - tau) * w))


def svr_huber(K, t, w, delta=0.3):
    """Huber's loss as the least of r²-part and |r|-part: min over s of s²/2 + δ|r − s|."""
    Phi = root(K)
    n, m = Phi.shape
    size = m + 1 + 3 * n  # w, b, s, and the two parts of r − s
    P, q = np.zeros((size, size)), np.zeros(size)
    P[np.arange(m), np.arange(m)] = 1.0
    P[m + 1 + np.arange(n), m + 1 + np.arange(n)] = 2.0 * w
    q[m + 1 + n :] = 2.0 * delta * np.r_[w, w]
    A = np.hstack([Phi, np.ones((n, 1)), np.eye(n), np.eye(n), -np.eye(n)])
    return minimise(P, q, A, t, np.eye(size)[m + 1 + n :], np.zeros(2 * n))[0]


def quantile(K, t, w, tau=0.3):
    return _regression(K, t, (0.0, 2.0 * tau * w, 0.0 * w), (0.0, 2.0 * (1 - tau) * w, 0.0 * w))


def quantiles(K, t, w):
    return quantile(K, t, w, 0.3) + quantile(K, t, w, 0.8)


def nu_svr(K, t, w, nu=0.4):
    """½‖w‖² + C(νεW + Σw_i(ξ_i + ξ*_i)) over errors beyond ε."""
    one, zero, C = np.ones(len(t)), np.zeros(len(t)), 2.0
    hinges = [(one, t, -one, C * w, zero), (-one, -t, -one, C * w, zero)]
    return primal(K, hinges, extra=1, price_of_extra=C * nu * w.sum())[0]


def one_class(K, t, w, nu=0.3):
    """½‖w‖² − νWρ + Σw_iξ_i over ξ_i ≥ ρ − ⟨w, φ(x_i)⟩."""
    W, one, zero = w.sum(), np.ones(len(w)), np.zeros(len(w))
    return primal(K, [(one, zero, one, w, zero)], bias=False, extra=1, price_of_extra=-nu * W)[0]


def svdd(K, t, w, nu=0.3):
    """Half of max Σα_iK_ii − α'Kα over 0 ≤ α_i ≤ w_i/(νW), Σα = 1 (Tax and Duin, 2004)."""
    n, bound = len(w), w / (nu * w.sum())
    A = np.vstack([np.eye(n), -np.eye(n)])
    return -minimise(K, -0.5 * np.diag(K), np.ones((1, n)), [1.0], A, np.r_[np.zeros(n), -bound])[0]


def linear_svc(K, y, w):
    """LIBLINEAR's squared hinge: C·ξ², not half of it."""
    return _soft(K, y, w, C=4.0, quadratic=True)


def ridge(K, t, w, lam=0.3):
    """Σ w (y − f)² + λ‖f‖² at its minimum, from the bordered system."""
    c, b = least_squares.solve(K, t[:, None], lam, w, bias=True)
    return float(least_squares.objective(K, c, b, t[:, None], lam, w)[0])


def half_ridge(K, t, w):
    return 0.5 * ridge(K, t, w)


def ridge_dual(K, t, w, lam=0.3):
    """y'β − ½β'(K + λW⁻¹)β at its maximum: the same over 2λ."""
    return ridge(K, t, w, lam) / (2 * lam)


def any_loss_squared_hinge(K, y, w, lam=0.3):
    """Σ w max(0, 1 − yf)² + λ‖f‖² is 2λ times ½‖f‖² + Σ (w/2λ)ξ²."""
    return 2 * lam * _soft(K, y, w, C=1 / lam, quadratic=True)


def pegasos(K, y, w, lam=0.05):
    """(λ/2)‖w‖² + Σ (w_i/W) hinge_i over λ, with the bias as a feature."""
    return _soft(K + 1.0, y, w, C=1 / (lam * w.sum()), bias=False)


def ranking(K, t, w):
    """Every pair written out: ½‖w‖² + Σ 0.1·w_i·w_j ξ_ij with ξ_ij ≥ 1 − ⟨w, φ_i − φ_j⟩."""
    i, j = np.nonzero(t[:, None] > t[None, :])
    Phi = root(K)
    D, m = Phi[i] - Phi[j], Phi.shape[1]
    P = np.diag(np.r_[np.ones(m), np.zeros(len(i))])
    A = np.vstack([np.hstack([D, np.eye(len(i))]), np.eye(m + len(i))[m:]])
    price = np.r_[np.zeros(m), 0.1 * w[i] * w[j]]
    return minimise(P, price, np.zeros((0, len(P))), np.zeros(0), A, np.r_[np.ones(len(i)), np.zeros(len(i))])[0]


def equals(certificate, value):
    """The dual value is right to six digits, and the gap proves as much."""
    return abs(certificate.dual - value) <= 1e-6 * abs(value) and 0 <= certificate.gap <= 1e-6 * abs(value)


def brackets(certificate, value):
    """Descent that never converges: its two values enclose the optimum, and not by chance."""
    return certificate.dual <= value <= certificate.primal and 0 < certificate.gap <= 0.2 * abs(value)


@dataclass(frozen=True)
class Reference:
    """An estimator at some parameters, what target it takes, and the value its dual must have."""

    estimator: type
    value: Callable[[np.ndarray, np.ndarray, np.ndarray], float]
    target: str = "y"
    parameters: dict[str, Any] = field(default_factory=dict)
    right: Callable[[Any, float], bool] = equals

    @property
    def takes_kernels(self):
        return "kernel" in self.estimator().get_params()

    def model(self, **more):
        """The estimator, as precise as it can be asked to be."""
        precise = {"tol": 1e-8} if "tol" in self.estimator().get_params() else {}
        return self.estimator(**{**precise, **self.parameters, **more})

    def __str__(self):
        return f"{self.estimator.__name__}({', '.join(f'{k}={v}' for k, v in self.parameters.items())})"


REFERENCES = [
    Reference(SVC, svc, "y", {"C": 2.0}),
    Reference(SVC, svc_l2, "y", {"C": 2.0, "slack": "l2"}),
    Reference(SVC, svc_without_bias, "y", {"C": 2.0, "bias": False}),
    Reference(SVC, svc_regularised_bias, "y", {"C": 2.0, "bias": "regularized"}),
    Reference(NuSVC, nu_svc, "y", {"nu": 0.4}),
    Reference(SVR, svr, "t", {"C": 2.0, "epsilon": 0.1}),
    Reference(SVR, svr_without_bias, "t", {"C": 2.0, "epsilon": 0.1, "bias": False}),
    Reference(SVR, svr_squared, "t", {"C": 2.0, "epsilon": 0.1, "loss": "squared_epsilon_insensitive"}),
    Reference(SVR, svr_huber, "t", {"C": 2.0, "delta": 0.3, "loss": "huber"}),
    Reference(SVR, svr_expectile, "t", {"C": 2.0, "tau": 0.8, "loss": "expectile"}),
    Reference(MKLClassifier, svc, "y", {"C": 2.0}),
    Reference(MKLRegressor, svr, "t", {"C": 2.0, "epsilon": 0.1}),
    Reference(NuSVR, nu_svr, "t", {"C": 2.0, "nu": 0.4}),
    Reference(QuantileSVR, quantiles, "t", {"C": 2.0, "quantiles": (0.3, 0.8)}),
    Reference(RankSVM, ranking, "t", {"C": 0.1}),
    Reference(OneClassSVM, one_class, "t", {"nu": 0.3}),
    Reference(SVDD, svdd, "t", {"nu": 0.3}),
    Reference(LinearSVC, linear_svc, "y", {"C": 2.0}),
    Reference(LinearSVC, svc, "y", {"C": 2.0, "loss": "hinge"}),
    Reference(LinearSVR, svr, "t", {"C": 2.0, "epsilon": 0.1}),
    Reference(RLSRegressor, ridge_dual, "t", {"lam": 0.3}),
    Reference(RLSClassifier, ridge_dual, "y", {"lam": 0.3}),
    Reference(RLSRegressorCV, ridge_dual, "t", {"lams": [0.3]}),
    Reference(RLSClassifierCV, ridge_dual, "y", {"lams": [0.3]}),
    Reference(NystromRLS, half_ridge, "t", {"lam": 0.3, "random_state": 0}),
    Reference(NystromRLSClassifier, half_ridge, "y", {"lam": 0.3, "random_state": 0}),
    Reference(KernelMachineClassifier, any_loss_squared_hinge, "y", {"lam": 0.3, "loss": "squared_hinge"}),
    Reference(KernelMachineRegressor, ridge, "t", {"lam": 0.3, "loss": "squared"}),
    Reference(PegasosSVC, pegasos, "y", {"alpha": 0.05, "certificate": True, "random_state": 0, "tol": 1e-3}, brackets),
]
