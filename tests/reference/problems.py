"""Random problems to try the library on: data, labels, weights, kernels, C, and the duals they make.

Matrices come from scipy's distances, never from the library's own kernels.
"""

from dataclasses import dataclass, field

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from mercer.problems.dual_problem import DualProblem

KERNELS = ("linear", "rbf", "poly", "laplacian")


def gram_matrix(kernel, X, Z=None, *, gamma=1.0, degree=3, coef0=0.0):
    """The dense float64 matrix of a kernel by name, from its formula."""
    X = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
    Z = X if Z is None else np.asarray(Z.toarray() if sparse.issparse(Z) else Z, dtype=np.float64)
    match kernel:
        case "linear":
            return X @ Z.T
        case "rbf":
            return np.exp(-gamma * cdist(X, Z, "sqeuclidean"))
        case "poly":
            return (gamma * (X @ Z.T) + coef0) ** degree
        case "laplacian":
            return np.exp(-gamma * cdist(X, Z, "cityblock"))
    raise ValueError(kernel)


def problem_of(p, lower, upper, totals=(0.0,), *, d=None, row=None, group=None) -> DualProblem:
    """A DualProblem from what differs from the default: no ridge, one row per variable, one group."""
    p = np.asarray(p, dtype=np.float64)
    m = len(p)
    default_group = np.zeros(m) if len(totals) else np.full(m, -1)
    return DualProblem(
        p=p,
        lower=np.broadcast_to(np.asarray(lower, dtype=np.float64), (m,)).copy(),
        upper=np.broadcast_to(np.asarray(upper, dtype=np.float64), (m,)).copy(),
        d=np.zeros(m) if d is None else np.broadcast_to(np.asarray(d, dtype=np.float64), (m,)).copy(),
        row=np.arange(m, dtype=np.int64) if row is None else np.asarray(row, dtype=np.int64),
        group=np.asarray(default_group if group is None else group, dtype=np.int32),
        totals=np.asarray(totals, dtype=np.float64),
    )


def c_svc(y, C):
    """1-norm soft margin: y ∈ {−1,+1}, one C or one per sample."""
    C = np.broadcast_to(np.asarray(C, dtype=np.float64), y.shape)
    return problem_of(y, np.where(y > 0, 0.0, -C), np.where(y > 0, C, 0.0))


def two_norm_svc(y, C):
    """2-norm soft margin: half-infinite boxes and the ridge 1/C."""
    C = np.broadcast_to(np.asarray(C, dtype=np.float64), y.shape)
    return problem_of(y, np.where(y > 0, 0.0, -np.inf), np.where(y > 0, np.inf, 0.0), d=1 / C)


def epsilon_svr(t, epsilon, C):
    """Twins: variables i and n+i share row i."""
    n = len(t)
    C = np.broadcast_to(np.asarray(C, dtype=np.float64), (n,))
    zero, row = np.zeros(n), np.arange(n)
    return problem_of(np.r_[t - epsilon, t + epsilon], np.r_[zero, -C], np.r_[C, zero], row=np.r_[row, row])


def nu_svr(t, nu, C):
    """Twins in two groups, one per copy."""
    n = len(t)
    row = np.arange(n)
    return problem_of(
        np.r_[t, t],
        np.r_[np.zeros(n), np.full(n, -C)],
        np.r_[np.full(n, C), np.zeros(n)],
        totals=(nu * C * n / 2, -nu * C * n / 2),
        row=np.r_[row, row],
        group=np.r_[np.zeros(n), np.ones(n)],
    )


def nu_svc(y, nu, weight):
    """Two groups, the classes; nu is a fraction of its largest feasible value."""
    total = weight.sum()
    nu = nu * 2 * min(weight[y > 0].sum(), weight[y < 0].sum()) / total
    return problem_of(
        np.zeros(len(y)),
        np.where(y > 0, 0.0, -weight),
        np.where(y > 0, weight, 0.0),
        totals=(nu * total / 2, -nu * total / 2),
        group=np.where(y > 0, 0, 1),
    )


def one_class(weight, nu):
    """A group whose total is not zero."""
    return problem_of(np.zeros(len(weight)), 0.0, weight, totals=(nu * weight.sum(),))


def huber(t, delta, C):
    """A box on both sides of zero with a ridge."""
    return problem_of(t, -C * delta, C * delta, d=1 / C)


def least_squares(t, lam):
    """No box at all."""
    return problem_of(t, -np.inf, np.inf, d=lam)


def without_bias(problem):
    """The same boxes without any equality."""
    return problem_of(
        problem.p,
        problem.lower,
        problem.upper,
        totals=(),
        d=problem.d,
        row=problem.row,
        group=np.full(len(problem.p), -1),
    )


def standardised(rng, n, n_features):
    """Points of two or three clouds, standardised column by column."""
    centres = rng.normal(scale=1.5, size=(rng.integers(1, 4), n_features))
    X = centres[rng.integers(len(centres), size=n)] + rng.normal(size=(n, n_features))
    deviation = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)


def noisy_labels(rng, X, flips=0.1):
    """Labels in {−1,+1}, both present, by a random quadratic rule with some flipped."""
    n, n_features = X.shape
    score = X @ rng.normal(size=n_features) + 0.5 * (X**2) @ rng.normal(size=n_features)
    y = np.where(score > np.quantile(score, rng.uniform(0.2, 0.8)), 1.0, -1.0)
    y[rng.random(n) < flips] *= -1
    if abs(y.sum()) == n:
        y[0] = -y[0]
    return y


@dataclass(frozen=True)
class Case:
    """One random two-class problem with everything an estimator and the references need."""

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None
    kernel: str
    C: float
    as_csr: bool
    numbers: dict = field(default_factory=dict)

    def data(self):
        return sparse.csr_matrix(self.X) if self.as_csr else self.X

    def gram(self):
        return gram_matrix(self.kernel, self.X, **self.numbers)

    def problem(self):
        return c_svc(self.y, self.C * (np.ones(len(self.y)) if self.weight is None else self.weight))

    def __str__(self):
        n, n_features = self.X.shape
        form = "csr" if self.as_csr else "dense"
        weights = "weighted" if self.weight is not None else "plain"
        return f"{self.kernel} {n}x{n_features} C={self.C:.3g} {form} {weights} {self.numbers}"


def random_case(seed, *, n=(20, 150), C=(1e-3, 1e6)) -> Case:
    """The seed cycles through the kernels, dense and CSR, weights and none; the rest is drawn."""
    rng = np.random.default_rng(seed)
    size, n_features = int(rng.integers(*n, endpoint=True)), int(rng.integers(2, 11))
    X = standardised(rng, size, n_features)
    as_csr = seed // 4 % 2 == 1
    if as_csr:
        X = np.where(rng.random(X.shape) < 0.5, 0.0, X)
    kernel = KERNELS[seed % 4]
    gamma = float(10 ** rng.uniform(-1, 1) / n_features)
    numbers = {
        "linear": {},
        "rbf": {"gamma": gamma},
        "laplacian": {"gamma": gamma},
        "poly": {"gamma": gamma, "degree": int(rng.integers(2, 4)), "coef0": 1.0},
    }[kernel]
    return Case(
        X=X,
        y=noisy_labels(rng, X, flips=rng.choice([0.0, 0.05, 0.2])),
        weight=rng.uniform(0.2, 3.0, size) if seed // 8 % 2 == 1 else None,
        kernel=kernel,
        C=float(10 ** rng.uniform(np.log10(C[0]), np.log10(C[1]))),
        as_csr=as_csr,
        numbers=numbers,
    )


def machines():
    makers = {
        "C-SVC": lambda y, t, w: c_svc(y, 3.0 * w),
        "C-SVC without bias": lambda y, t, w: without_bias(c_svc(y, 3.0 * w)),
        "2-norm": lambda y, t, w: two_norm_svc(y, 2.0 * w),
        "2-norm without bias": lambda y, t, w: without_bias(two_norm_svc(y, 2.0 * w)),
        "epsilon-SVR": lambda y, t, w: epsilon_svr(t, 0.1, 2.0 * w),
        "epsilon-SVR, no tube": lambda y, t, w: epsilon_svr(t, 0.0, 2.0),
        "epsilon-SVR without bias": lambda y, t, w: without_bias(epsilon_svr(t, 0.1, 2.0 * w)),
        "nu-SVC": lambda y, t, w: nu_svc(y, 0.5, w),
        "nu-SVR": lambda y, t, w: nu_svr(t, 0.4, 2.0),
        "one-class": lambda y, t, w: one_class(w, 0.3),
        "Huber": lambda y, t, w: huber(t, 0.5, 2.0),
        "RLS": lambda y, t, w: least_squares(t, 0.3 / w),
        "RLS without bias": lambda y, t, w: without_bias(least_squares(t, 0.3 / w)),
    }
    return [pytest.param(maker, id=name) for name, maker in makers.items()]


def machine_problem(maker, seed, n=60, with_data=False):
    rng = np.random.default_rng(seed)
    X = standardised(rng, n, 3)
    y = noisy_labels(rng, X)
    t = np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.normal(size=n)
    kernel, numbers = [
        ("rbf", {"gamma": 0.5}),
        ("linear", {}),
        ("poly", {"gamma": 0.3, "degree": 2, "coef0": 1.0}),
    ][seed % 3]
    problem, K = maker(y, t, rng.uniform(0.5, 2.0, n)), gram_matrix(kernel, X, **numbers)
    return (problem, K, X) if with_data else (problem, K)
