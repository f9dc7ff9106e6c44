"""Hyperplanes with as few errors as possible (Mozharovskyi, the soft margin), and soft margins that approximate them.

Finding the smallest number of errors is NP-complete. If no hyperplane separates a set of rows, it contains a small set
that none separates: by Gordan's theorem Σ λ_i y_i(x_i, 1) = 0 with λ ≥ 0, λ ≠ 0, and d + 2 rows suffice for that.

1. Every hyperplane errs on at least one row of every such set. So a smallest set of rows that meets all known sets (a
   hitting set), found by an integer program, is a lower bound.
2. If a hyperplane separates the other rows, it is optimal; otherwise they contain another inseparable set.

Each set is proven inseparable in rational numbers, and each hyperplane is checked with a bound on its rounding error.

Soft margins approximate the problem:

    minimise  ½‖w‖² + C·F(Σ ξ_i^σ),    ξ_i = max(0, 1 − y_i f(x_i))

Σ ξ^σ tends to the number of samples with slack as σ falls to 0. At σ = 1, with F convex and increasing, the minimiser
is the soft margin with the penalty C·F′(Σξ), and since F lies above its tangent at any S, the optimum is at least

    min[½‖w‖² + C·F′(S)Σξ] + C[F(S) − F′(S)S]

For σ < 1 the problem is not convex. Iterative reweighting of the slacks by σξ^(σ−1) leads to a local minimum.
"""

from __future__ import annotations

import math
import time
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, sparse
from sklearn.base import clone

from mercer.estimators import SVC
from mercer.kernels import Kernel
from mercer.kernels.names import KernelLike, as_kernel
from mercer.notes.theory.risks import sample_losses
from mercer.problems.penalties import PENALTIES, Penalty, UserPenalty, check_penalty
from mercer.runtime.parameters import positive, share
from mercer.runtime.shared_docs import shared_docs
from mercer.samples.arrays import Flags, Floats, Indices, freeze, gamma, host
from mercer.samples.engine import on_host
from mercer.samples.labels import read_signs

# Largest number of features: proofs in rational numbers take the square of the dimension per step.
_MOST_FEATURES = 50
# Tolerance for rounding the bound of the integer program.
_INTEGER_TOL = 1e-6
# Largest coefficient of the integer program for a kernel. It multiplies tolerances, which must remain small beside 1.
_LARGEST_M = 1e5
# Largest margin of a hyperplane with |w_k| ≤ 1 that may be a rounding error.
_NO_MARGIN = 1e-9
# Largest slack that counts as 0; smallest slack for computing weights; first slack of the rows in `start`.
_NO_SLACK, _SMALL_SLACK, _START_SLACK = 1e-6, 1e-3, 1e3
# Reweighting ends when the value falls by at most this share; largest number of steps.
_SMALL_FALL, _MOST_STEPS = 1e-6, 100
_TINY = 1e-300


class FewestErrors(NamedTuple):
    """Result of `fewest_errors`: the errors of the best hyperplane, and a lower bound on their number.

    Attributes
    ----------
    rows : array of int
        Indices of the samples on the wrong side of the hyperplane or on it: `SVC` with C=inf separates the others. With
        a kernel, those with y f(x) < 1.
    least : int
        Lower bound on the number of errors of any hyperplane; `len(rows)` if the search was completed.
    """

    rows: Indices
    least: int

    @property
    def proven(self) -> bool:
        """True if no hyperplane makes fewer errors than this one."""
        return len(self.rows) == self.least


def fewest_errors(
    X: ArrayLike,
    y: ArrayLike,
    *,
    kernel: KernelLike | None = None,
    largest: float = 1.0,
    bias: bool = True,
    max_time: float = 10.0,
) -> FewestErrors:
    """Find a hyperplane with as few errors as possible, and a lower bound on their number (Mozharovskyi).

    With a kernel, the search is over f = Σ β_j k(x_j, ·) + b with |β_j| ≤ `largest`, by an integer program. A sample is
    then an error if y f(x) < 1, as for slack: without a limit on β, most kernels fit all labels. The number never rises
    with `largest`.

    Parameters
    ----------
    X : array of shape (n, d)
        Samples, with at most 50 features if there is no kernel.
    y : array of shape (n,)
        Labels of two classes.
    kernel : Kernel or str, optional
        Kernel with its parameters as numbers, such as Gaussian(gamma=0.5); by default hyperplanes of the features.
    largest : float, default=1.0
        Largest |β_j| with a kernel. Proofs take the longer, the larger it is, and no f may exceed about 50,000.
    bias : bool, default=True
        Whether the hyperplane may miss the origin.
    max_time : float, default=10.0
        Time limit in seconds, after which the best result so far is returned.

    Returns
    -------
    FewestErrors
        `rows`, the indices of the samples on the wrong side of the hyperplane or on it; `least`, a lower bound on their
        number; and `proven`, True if both numbers agree.

    Examples
    --------
    >>> from mercer.notes.theory import fewest_errors
    >>> result = fewest_errors([[0.0], [1.0], [2.0], [3.0]], [-1, 1, -1, 1])
    >>> len(result.rows), result.least, result.proven
    (1, 1, True)
    >>> from mercer.kernels import Gaussian
    >>> [fewest_errors([[0.0], [1.0], [2.0]], [1, -1, 1], kernel=Gaussian(gamma=1.0), largest=A).least for A in (1, 9)]
    [1, 0]
    """
    labels, deadline = read_signs(on_host(y)), time.monotonic() + positive("max_time", max_time)
    if kernel is not None:
        return _fewest_errors_of_expansions(
            as_kernel(kernel), host(X), labels, positive("largest", largest), bias, max_time
        )
    samples = np.asarray(host(X), dtype=np.float64)
    if samples.ndim != 2 or not len(samples) or labels.shape != (len(samples),) or not np.isfinite(samples).all():
        raise ValueError(
            f"X must have finite rows, at least one, and a label for each; the shapes are {samples.shape} and "
            f"{labels.shape}"
        )
    if samples.shape[1] > _MOST_FEATURES:
        raise ValueError(
            f"X has {samples.shape[1]} features, but proofs in rational numbers take at most {_MOST_FEATURES}; use "
            "fewer, for example the first components of KernelPCA"
        )
    if bias:
        samples = centre_columns(samples)
    # A constant coordinate gives the bias, and ⟨w, row⟩ > 0 for all rows means separation.
    signed_samples = labels[:, None] * (np.column_stack([samples, np.ones(len(samples))]) if bias else samples)
    rows, least = _Search(scale_columns(signed_samples), deadline).run()
    return FewestErrors(freeze(rows), least)


def _fewest_errors_of_expansions(
    kernel: Kernel, X: Any, y: Floats, largest: float, bias: bool, max_time: float
) -> FewestErrors:
    """Minimise Σz_i subject to y_i f(x_i) ≥ 1 − M_iz_i with z_i in {0, 1}, over the coefficients of f.

    |Σβ_jk(x_j, x_i)| ≤ A_i = largest·Σ_j|k(x_j, x_i)|. A bias beyond 1 + max A gives all samples one label with y f ≥ 1
    or y f ≤ −1, as that limit itself does; so |b| ≤ 1 + max A, and M_i = 1 + A_i + |b| excludes nothing.
    """
    n = len(y)
    K = np.asarray(kernel.bind(X)(X), dtype=np.float64)
    if K.shape != (n, n):
        raise ValueError(f"X must have a sample for each of {n} labels, but its kernel matrix has the shape {K.shape}")
    max_f = largest * np.abs(K).sum(axis=1)
    max_b = 1.0 + float(max_f.max()) if bias else 0.0
    M = 1.0 + max_f + max_b
    if not M.max() <= _LARGEST_M:
        raise ValueError(
            f"largest={largest:g} lets |f| grow to {max_f.max():.2g} on these samples, where an integer program in "
            f"float64 cannot tell whether y f(x) is below 1 (the limit is about {_LARGEST_M / 2:.0e}); pass a smaller "
            "`largest`, or scale the samples"
        )
    # y f(x), from β/largest and b/max_b, which are between −1 and 1.
    values = np.column_stack([largest * y[:, None] * K, max_b * y])
    solution: Any = optimize.milp(
        np.append(np.zeros(n + 1), np.ones(n)),
        integrality=np.append(np.zeros(n + 1), np.ones(n)),
        bounds=optimize.Bounds(np.append(np.full(n + 1, -1.0), np.zeros(n)), 1.0),
        constraints=optimize.LinearConstraint(np.column_stack([values, np.diag(M)]), 1.0, np.inf),
        options={"time_limit": max_time, "mip_rel_gap": 0.0},
    )
    bound = solution.get("mip_dual_bound")
    least = 0 if bound is None or not math.isfinite(bound) else max(0, math.ceil(bound - _INTEGER_TOL))
    if solution.x is None:
        return FewestErrors(freeze(np.arange(n)), least)
    # The program fulfils its constraints to a tolerance that M multiplies. The f with the largest margin on the samples
    # that it has no error on may be needed to fulfil them to rounding.
    has_no_error = solution.x[n + 1 :] < 0.5
    candidates = [np.clip(solution.x[: n + 1], -1.0, 1.0)]
    if has_no_error.any():
        candidates.append(largest_margin(values[has_no_error])[0])
    smallest_value = 1.0 - gamma(n + 4) * M
    errors = min((np.flatnonzero(values @ c < smallest_value) for c in candidates), key=len)
    return FewestErrors(freeze(errors), least)


def centre_columns(X: Floats) -> Floats:
    """Centre the columns of X at their medians, if the subtraction is exact."""
    centre = np.median(X, axis=0)
    difference = X - centre
    minus_centre = difference - X
    rounding = (X - (difference - minus_centre)) - (centre + minus_centre)  # exact rounding error (Knuth's TwoSum)
    return np.where(rounding.any(axis=0), X, difference)


def scale_columns(rows: Floats) -> Floats:
    """Scale the columns by powers of two to at most 1, except those that would underflow: the result is exact."""
    scale = np.exp2(-np.ceil(np.log2(np.maximum(np.abs(rows).max(axis=0), 1e-300))))
    return np.asarray(rows * np.where((rows * scale / scale == rows).all(axis=0), scale, 1.0))


def is_positive(rows: Floats, w: Floats) -> Flags:
    """Mark the rows with ⟨w, row⟩ > 0, except those in which rounding may hide it."""
    return np.asarray(rows @ w > gamma(len(w) + 4) * (np.abs(rows) @ np.abs(w)) + _TINY)


class _Search:
    """Search that alternates between inseparable sets of rows and smallest sets that meet all of them."""

    def __init__(self, signed: Floats, deadline: float) -> None:
        self._signed_rows, self._deadline = signed, deadline
        self._sets: list[Indices] = []
        self._best_rows: Indices = np.arange(len(signed))

    def run(self) -> tuple[Indices, int]:
        """Return the errors of the best hyperplane and a lower bound on their number."""
        least = 0
        while time.monotonic() < self._deadline:
            removed, bound = self._smallest_hitting_set()
            least = max(least, bound)
            n_known = len(self._sets)
            self._add_inseparable_sets(np.flatnonzero(~removed))
            if len(self._best_rows) <= least or len(self._sets) == n_known:
                break
        return self._best_rows, least

    def _smallest_hitting_set(self) -> tuple[Flags, int]:
        """Return a smallest set of rows that meets all known sets, and a lower bound on its size."""
        n = len(self._signed_rows)
        if not self._sets:
            return np.zeros(n, dtype=bool), 0
        columns = np.concatenate(self._sets)
        starts = np.concatenate([[0], np.cumsum([len(rows) for rows in self._sets])])
        meets = sparse.csr_array((np.ones(len(columns)), columns, starts), (len(self._sets), n))
        solution = optimize.milp(
            np.ones(n),
            integrality=np.ones(n, dtype=np.int64),
            bounds=optimize.Bounds(0, 1),
            constraints=optimize.LinearConstraint(meets, 1, np.inf),
            options={"time_limit": max(0.1, self._deadline - time.monotonic()), "mip_rel_gap": 0.0},
        )
        bound = solution.get("mip_dual_bound")
        least = 0 if bound is None or not math.isfinite(bound) else math.ceil(bound - _INTEGER_TOL)
        return (np.zeros(n, dtype=bool) if solution.x is None else solution.x > 0.5), least

    def _add_inseparable_sets(self, rows: Indices) -> None:
        """Add disjoint inseparable sets of these rows until a hyperplane separates the remaining ones."""
        while len(rows) and time.monotonic() < self._deadline:
            w, weights, margin = largest_margin(self._signed_rows[rows])
            self._keep_if_better(w)
            if margin > _NO_MARGIN:
                return
            inseparable = rows[inseparable_rows(self._signed_rows[rows], weights)]
            if not len(inseparable):
                return
            self._sets.append(inseparable)
            rows = np.setdiff1d(rows, inseparable)

    def _keep_if_better(self, w: Floats) -> None:
        """Keep the errors of the hyperplane w if they are fewer; rows that rounding may misplace count as errors."""
        wrong_rows = np.flatnonzero(~is_positive(self._signed_rows, w))
        if len(wrong_rows) < len(self._best_rows):
            self._best_rows = wrong_rows


def largest_margin(signed_samples: Floats) -> tuple[Floats, Floats, float]:
    """Return the w with |w_k| ≤ 1 that maximises the smallest ⟨w, row⟩, the dual weights of rows, and that margin."""
    n, d = signed_samples.shape
    solution: Any = optimize.linprog(
        np.append(np.zeros(d), -1.0),
        A_ub=np.column_stack([-signed_samples, np.ones(n)]),
        b_ub=np.zeros(n),
        bounds=[(-1, 1)] * d + [(None, None)],
        method="highs-ds",  # dual simplex: its weights are those of a vertex, so that few are nonzero
    )
    if solution.status != 0:
        return np.zeros(d), np.zeros(n), 0.0
    return solution.x[:d], -solution.ineqlin.marginals, -float(solution.fun)


def inseparable_rows(signed_samples: Floats, weights: Floats) -> Indices:
    """Return rows with positive weight for which Σ λ_i row_i = 0 exactly, for some λ > 0; no rows if unproven."""
    rows = np.flatnonzero(weights > 1e-9 * weights.max(initial=0.0))
    if not 0 < len(rows) <= signed_samples.shape[1] + 1:
        return rows[:0]
    null_vector = _null_vector(
        [[Fraction(x) for x in signed_samples[rows, k].tolist()] for k in range(signed_samples.shape[1])], len(rows)
    )
    if null_vector is None or (min(null_vector) < 0 < max(null_vector)):
        return rows[:0]
    return rows[[value != 0 for value in null_vector]]


def _null_vector(A: list[list[Fraction]], k: int) -> list[Fraction] | None:
    """Return an x ≠ 0 with Ax = 0, by Gauss–Jordan elimination: its last free entry is 1. None if x must be 0."""
    pivots: list[int] = []
    for column in range(k):
        row = next((r for r in range(len(pivots), len(A)) if A[r][column]), None)
        if row is None:
            continue
        top = len(pivots)
        A[top], A[row] = A[row], A[top]
        A[top] = [value / A[top][column] for value in A[top]]
        for r in range(len(A)):
            if r != top and A[r][column]:
                A[r] = [a - A[r][column] * b for a, b in zip(A[r], A[top], strict=True)]
        pivots.append(column)
    free_columns = [column for column in range(k) if column not in pivots]
    if not free_columns:
        return None
    x = [Fraction(0)] * k
    x[free_columns[-1]] = Fraction(1)
    for r, column in enumerate(pivots):
        x[column] = -A[r][free_columns[-1]]
    return x


class SlackPower(NamedTuple):
    """Result of `least_slack_power`.

    Attributes
    ----------
    model : SVC
        Fitted model.
    value : float
        Objective ½‖w‖² + C·F(Σ ξ^σ) of the model. For σ < 1, slacks below 10⁻⁶, which solvers leave by rounding, count
        as 0.
    bound : float
        Lower bound on the optimum; −∞ for σ < 1.
    """

    model: Any
    value: float
    bound: float


@shared_docs
def least_slack_power(
    X: Any,
    y: ArrayLike,
    *,
    kernel: KernelLike = "rbf",
    degree: int = 3,
    gamma: float | str = "scale",
    coef0: float = 0.0,
    C: float = 1.0,
    power: float = 1.0,
    outer: Penalty | None = None,
    start: ArrayLike | None = None,
) -> SlackPower:
    """Minimise ½‖w‖² + C·F(Σ ξ_i^σ): globally for σ = 1, to a local minimum for σ < 1.

    Parameters
    ----------
    X : array, CSR matrix or list
        Samples.
    y : array of shape (n,)
        Labels of two classes.
    %(kernel)s
    C : float, default=1.0
        Penalty of slack.
    power : float, default=1.0
        Power σ, 0 < σ ≤ 1. For σ = 2 use `SVC` with slack="l2"; for other powers use `KernelMachine` with a loss.
    outer : object, optional
        Function F with the methods value(u) and derivative(u), increasing and convex for u ≥ 0; by default F(u) = u.
    start : array of int, optional
        Indices of samples that start as errors if σ < 1, such as those of `fewest_errors`; by default those of σ = 1.

    Returns
    -------
    SlackPower
        `model`, an `SVC`; `value`, its objective, for which slacks below 10⁻⁶ count as 0 if σ < 1; and `bound`, a lower
        bound on the optimum, −∞ for σ < 1. Σ ξ^σ is n times ``risk(y, f, loss="hinge", power=σ)``.

    Examples
    --------
    >>> from mercer.notes.theory import fewest_errors, least_slack_power
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [9.0]], [-1, -1, 1, 1, -1]
    >>> result = least_slack_power(X, y, kernel="linear", C=10.0, power=0.1, start=fewest_errors(X, y).rows)
    >>> (result.model.predict(X) != y).sum()
    np.int64(1)
    """
    penalty, sigma = positive("C", C), share("power", power, whole=True)
    F: Penalty = PENALTIES["norm"] if outer is None else outer  # F(u) = u
    if not isinstance(F, Penalty):
        raise TypeError(f"outer={outer!r} must be an object with value(u) and derivative(u)")
    if outer is not None:
        F = UserPenalty(F)
        check_penalty(F)
    labels = read_signs(on_host(y))
    machine = SVC(kernel=kernel, degree=degree, gamma=gamma, coef0=coef0, C=1.0, tol=1e-7, gap_tol=1e-8)

    def fit(penalties: Any) -> tuple[Any, Floats]:
        """Fit the soft margin with a penalty for each sample; return the model and its slacks."""
        model = clone(machine).fit(X, labels, sample_weight=np.broadcast_to(penalties, labels.shape))
        return model, sample_losses(labels, model.decision_function(X), loss="hinge")

    def power_sum(slack: Floats) -> float:
        """Return Σ ξ^σ. For σ < 1 small slacks, which rounding leaves, do not count, since their powers are large."""
        return float(np.sum(slack[slack >= (_NO_SLACK if sigma < 1 else 0.0)] ** sigma))

    def value(model: Any, slack: Floats) -> float:
        return 0.5 * float(np.ravel(model.rkhs_norm_)[0]) ** 2 + penalty * float(F.value(power_sum(slack)))

    best, slack, bound = _minimise_convex(fit, F, penalty, 2.0 * min((labels > 0).sum(), (labels < 0).sum()))
    least = value(best, slack)
    if sigma == 1:
        return SlackPower(best, least, bound)
    if start is not None:
        slack, least = np.zeros(len(labels)), math.inf
        slack[np.asarray(start, dtype=np.intp)] = _START_SLACK
    for _ in range(_MOST_STEPS):
        slope = float(F.derivative(power_sum(slack)))
        model, slack = fit(penalty * slope * sigma * np.maximum(slack, _SMALL_SLACK) ** (sigma - 1))
        last, new = least, value(model, slack)
        if new < least:
            best, least = model, new
        if not new < last * (1 - _SMALL_FALL):
            break
    return SlackPower(best, least, -math.inf)


def _minimise_convex(fit: Any, F: Penalty, C: float, slack_at_zero: float) -> tuple[Any, Floats, float]:
    """Minimise ½‖w‖² + C·F(Σξ); return the model, its slacks and a lower bound on the minimum.

    `slack_at_zero` is Σξ at w = 0, above which no minimiser has Σξ.

    The minimiser is the soft margin with the penalty C·F′(Σξ). As the penalty grows, Σξ and F′(Σξ) fall, so that the
    equation for the penalty has one root.
    """

    def residual(x: float) -> float:
        return x - math.log(C * max(float(F.derivative(float(fit(math.exp(x))[1].sum()))), _TINY))

    high = C * float(F.derivative(slack_at_zero))
    if not math.isfinite(high):
        raise ValueError(
            f"outer.derivative({slack_at_zero:g}) is {high / C:g}, but Σξ = {slack_at_zero:g} at w = 0, where F needs "
            "a finite slope; use a flatter F, such as a function of a fraction of u"
        )
    low = max(C * float(F.derivative(0.0)), 1e-12 * high)
    penalty, total = low, 0.0
    if low < high * (1 - _INTEGER_TOL):  # the bracket is widened, since slacks are known to some digits only
        x = optimize.brentq(residual, math.log(low) - 1e-3, math.log(high) + 1e-3, xtol=1e-9, rtol=1e-12)
        total = float(fit(math.exp(x))[1].sum())
        penalty = C * max(float(F.derivative(total)), _TINY)
    model, slack = fit(penalty)
    outer_value, slope = C * float(F.value(total)), C * float(F.derivative(total)) * total
    dual = model.certificate_.dual
    return model, slack, dual + outer_value - slope - 1e-14 * (abs(dual) + abs(outer_value) + abs(slope))
