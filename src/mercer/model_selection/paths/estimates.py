"""Leave-one-out errors estimated from one solution: ξα, the span of support vectors, radius and margin.

With k_ii = k(x_i, x_i), slacks ξ_i and, for a machine with a free bias, R² = max k_ii − min k_ij:

    ξα              a sample is suspect if 2α_iR² + ξ_i ≥ 1 (Joachims, 2000), or with different C if the others of its
                    class cannot take over α_i within their C; without bias, if α_ik_ii + ξ_i ≥ 1
                    (Jaakkola and Haussler, 1999)
    span            if α_iS_i² ≥ y_if(x_i), S_i the distance of φ(x_i) from the affine hull of the other free vectors;
                    a bounded vector always, and a free one also if α_iS_i·max(D, 1/√C) ≥ 1, where S_i keeps to those
                    points of the hull that α_i can be handed over to, and D is the diameter of the smallest ball
                    (Vapnik and Chapelle, 2000)
    radius–margin   4R²/ρ² errors at most, R the radius of the smallest ball; R₀²/ρ² without bias, R₀² = max k_ii
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mercer.estimators.fitting.pipeline.fit import Fit
from mercer.model_selection.paths.exact_solution import ExactSolution, exact_solutions
from mercer.places.gram import Gram
from mercer.problems.dual_problem import DualProblem
from mercer.runtime.shared_docs import shared_docs
from mercer.samples.arrays import Flags, Floats, freeze, row_blocks
from mercer.solvers.dual.certified import solve_certified
from mercer.solvers.homotopy import FREE
from mercer.solvers.solution import Stop

# Slack up to which it counts as rounding, in units of f.
_NO_SLACK = 1e-7
_FREE_VECTORS = "a free support vector in each of the machines with one sample left out, so that their b is unique"
# Bound on the coefficients of a combination without a box: their sum must not overflow.
_ANYWHERE = 1e300
_SOLVED = Stop(tol=1e-6, max_iter=10_000_000)


@dataclass(frozen=True, eq=False)
class Estimate:
    """An estimate of the leave-one-out error.

    Attributes
    ----------
    error : float
        Weighted share of samples that may be misclassified when left out.
    proven : bool
        Whether this solution alone proves that `error` is an upper bound on the leave-one-out error.
    assumes : str
        Assumption under which `error` is an upper bound.
    suspects : array of bool of shape (n_samples,), or None
        Mask of the samples that may be misclassified; None if only their number is bounded.
    recall : float
        Recall of the second class by ξα; NaN for the other estimates.
    precision : float
        Precision of the second class by ξα; NaN for the other estimates.
    """

    error: float
    proven: bool
    assumes: str
    suspects: Flags | None = field(default=None, repr=False)
    recall: float = np.nan
    precision: float = np.nan


@shared_docs
def xi_alpha(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Estimate:
    """Compute Joachims' ξα estimates of error, recall and precision.

    %(leave-one-out estimate)s

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from mercer import SVC, leave_one_out
    >>> from mercer.model_selection.paths import xi_alpha
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> bool(leave_one_out(SVC(), scale(X), y).error <= xi_alpha(SVC(), scale(X), y).error)
    True
    """
    solved = _solved(model, X, y, sample_weight)
    alpha, merged = solved.alpha, solved.fit.merged
    if solved.biased:
        size = np.full(len(alpha), 2 * _range_of_values(solved.one.K.gram))
        assumes = _FREE_VECTORS
    else:
        size, assumes = solved.one.K.diagonal, "no free bias, as here"
    # Copies of a sample are left out one at a time.
    handed = alpha[merged.member] * merged.share
    suspect = (handed * size[merged.member] + solved.slack[merged.member] >= 1) & (handed > 0)
    if solved.biased:
        capacity = _capacity_of_others(solved)
        suspect |= handed > capacity
        if np.isfinite(capacity).any():
            assumes = f"{assumes}, and the same C for all samples, which is not so here"
    weight, second = merged.input_weight, solved.signs[merged.member] > 0
    missed, false_alarms = float(weight @ (suspect & second)), float(weight @ (suspect & ~second))
    kept = float(weight @ second) - missed
    precision = kept / (kept + false_alarms) if kept + false_alarms else np.nan
    estimate = solved.estimate(suspect, assumes, proven=not solved.biased)
    return replace(estimate, recall=kept / float(weight @ second), precision=precision)


@shared_docs
def span_estimate(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Estimate:
    """Compute the span estimate of Vapnik and Chapelle.

    It is exact if no support vector becomes free or bounded when another one is left out.

    %(leave-one-out estimate)s
    """
    solved = _solved(model, X, y, sample_weight)
    suspect = (solved.alpha * _span_squares(solved.one) >= solved.signs * solved.f) & (solved.alpha > 0)
    same = "the same free and bounded support vectors whichever sample is left out; then it is the error itself"
    return solved.estimate(suspect[solved.fit.merged.member], same)


@shared_docs
def span_bound(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Estimate:
    """Compute the span bound of Vapnik and Chapelle.

    %(leave-one-out estimate)s
    """
    solved = _solved(model, X, y, sample_weight)
    if not solved.biased:
        raise ValueError(f"the span bound is for bias=True, not {model.bias!r}; use xi_alpha, which bounds both")
    one, alpha = solved.one, solved.alpha
    bounds = np.maximum(one.problem.upper, -one.problem.lower)
    diameter = max(2 * np.sqrt(ball_square(one.K.gram)), 1 / np.sqrt(float(bounds.min())))
    suspect = alpha > 0
    near = _span_squares(one)
    for v in np.flatnonzero(suspect & (one.homotopy.side == FREE)).tolist():  # a free vector may have α = 0
        inside = alpha[v] * np.sqrt(near[v]) * diameter < 1
        suspect[v] = not inside or alpha[v] * np.sqrt(_constrained_span_square(one, v)) * diameter >= 1
    return solved.estimate(suspect[solved.fit.merged.member], _FREE_VECTORS)


def radius_margin(model: Any, X: Any, y: Any, sample_weight: Any = None, *, slack: bool = False) -> Estimate:
    """Compute the radius–margin bound as a share of the samples: 4R²/ρ² with a free bias, R₀²/ρ² without.

    ``slack=True`` gives the form for machines with slack, a criterion for C and the kernel: 4(R² + 1/C)(‖w‖² + 2C Σξ)
    (Chung, Kao, Sun, Wang and Lin, 2003); without bias (R₀² + 1/C)(‖w‖² + 2C Σξ). As C grows it tends to the form
    without slack. It may exceed 1.

    A machine with ``slack="l2"`` is the hard margin of K + I/C, in which a sample that is left out has the same f as in
    K. Its 4R²/ρ² = 4R² Σα, R the radius of the smallest ball under K + I/C, bounds the leave-one-out errors; without
    bias the bound is max(k_ii + 1/C_i) Σα. It may exceed 1, and is the same for both values of `slack`.

    Parameters
    ----------
    model : SVC
        Machine for two classes, whose parameters define the problem; if it is fitted, its solution is the starting
        point.
    X : array or CSR matrix of shape (n_samples, n_features)
        Training samples, as given to `fit`.
    y : array of shape (n_samples,)
        Class labels.
    sample_weight : array of shape (n_samples,), optional
        Weights; a sample is left out with all its weight.
    slack : bool, default=False
        Whether to include the slacks of a machine with slack="l1", instead of assuming that there are none.

    Returns
    -------
    Estimate
        Estimate with the attributes ``error``, the weighted share of samples that may be misclassified when left out;
        ``proven``, True if this solution alone proves that it is an upper bound on the leave-one-out error;
        ``assumes``, the assumption under which it is one; ``suspects``, a mask of the samples that may be
        misclassified, or None if only their number is bounded; ``recall`` and ``precision`` of the second class, which
        only ξα has.
    """
    solved = _solved(model, X, y, sample_weight, ("l1", "l2"))
    if model.slack == "l2":
        return _hard_margin_estimate(solved)
    gram, largest = solved.one.K.gram, float(solved.slack.max())
    spread = 4 * ball_square(gram) if solved.biased else float(gram.diagonal.max())
    if slack:
        bounds = np.maximum(solved.one.problem.upper, -solved.one.problem.lower)
        radius = spread + (4 if solved.biased else 1) / float(bounds.max())
        square = solved.square + 2 * float(bounds @ solved.slack)
        return Estimate(radius * square * solved.largest_share, False, "no slack, whichever sample is left out")
    return Estimate(
        error=min(1.0, spread * solved.square * solved.largest_share),
        proven=largest <= _NO_SLACK and not solved.biased,
        assumes=f"no slack, whichever sample is left out; the largest slack of this solution is {largest:.1g}",
    )


def _hard_margin_estimate(solved: _SolvedMachine) -> Estimate:
    """Bound the errors of the hard margin of K + I/C, where every copy of a sample has its own coordinate."""
    gram, merged = solved.one.K.gram, solved.fit.merged
    ridge = solved.one.problem.d[merged.member] / merged.share
    if solved.biased:
        radius = 4 * ball_square(gram, merged.member, ridge)
    else:
        radius = float((gram.diagonal[merged.member] + ridge).max())
    lonely = int(np.bincount(merged.y[merged.member]).min()) < 2
    return Estimate(
        error=radius * float(solved.alpha.sum()) * solved.largest_share,
        proven=not (solved.biased and lonely),
        assumes="two samples of each class, so that both are left whichever sample is left out",
    )


def ball_square(gram: Gram, rows: Any = None, ridge: Any = 0.0) -> float:
    """Upper bound on R² of the smallest ball around the samples in feature space.

    With `rows` of the Gram matrix and a `ridge`, the ball is that of K + ridge·I on these rows, which may repeat.
    """
    rows = np.arange(gram.n) if rows is None else rows
    n, squares = len(rows), gram.diagonal[rows] + ridge
    box, d = (np.zeros(n), np.full(n, 2.0)), np.broadcast_to(np.asarray(ridge, dtype=np.float64), n).copy()
    problem = DualProblem(0.5 * squares, *box, d, np.asarray(rows), np.zeros(n, dtype=np.int32), np.ones(1))
    return 2 * solve_certified(problem, gram, replace(_SOLVED, tol=1e-6 * float(squares.max())))[1].primal


@dataclass(frozen=True, eq=False)
class _SolvedMachine:
    """The exact solution of a two-class machine, by merged sample."""

    fit: Fit
    one: ExactSolution
    biased: bool
    signs: Floats

    @property
    def alpha(self) -> Floats:
        return np.abs(self.one.beta)

    @property
    def f(self) -> Floats:
        return self.one.f

    @property
    def slack(self) -> Floats:
        return np.maximum(0.0, 1 - self.signs * self.f)

    @property
    def square(self) -> float:
        """‖w‖²."""
        beta = self.one.beta
        return float(beta @ self.one.K.product(beta))

    @property
    def largest_share(self) -> float:
        """Largest share of the total weight that one sample has."""
        weight = self.fit.merged.input_weight
        return float(weight.max() / weight.sum())

    def estimate(self, suspect: Flags, assumes: str, proven: bool = False) -> Estimate:
        """Make an estimate from a mask of the weighted rows that may be misclassified."""
        merged, rows = self.fit.merged, np.zeros(self.fit.n, dtype=np.bool_)
        rows[merged.rows] = suspect
        error = float(merged.input_weight @ suspect / merged.input_weight.sum())
        return Estimate(error, proven, assumes, freeze(rows))


def _solved(model: Any, X: Any, y: Any, sample_weight: Any, slacks: tuple[str, ...] = ("l1",)) -> _SolvedMachine:
    if getattr(model, "slack", None) not in slacks:
        wanted = " or ".join(map(repr, slacks))
        instead = "leave_one_out takes any machine"
        if hasattr(model, "best_estimator_"):
            instead = "pass the machine that the search chose, its best_estimator_"
        elif getattr(model, "slack", None) == "l2":
            instead = "radius_margin and leave_one_out take slack='l2'"
        raise ValueError(f"this estimate is for SVC with slack={wanted}, not {model!r}; {instead}")
    fit, solutions = exact_solutions(model, X, y, sample_weight)
    if len(solutions) != 1:
        raise ValueError(
            f"the estimates are for two classes, but y has {len(fit.target.labels)}; leave_one_out takes several"
        )
    problem = solutions[0].problem
    return _SolvedMachine(fit, solutions[0], len(problem.totals) == 1, np.sign(problem.p))


def _capacity_of_others(solved: _SolvedMachine) -> Floats:
    """Return, for each weighted row, how much α the other samples of its class can take over.

    It is infinite if C is the same for all samples, as Joachims' theorem assumes. With different C, leaving a heavy
    sample out may change the majority, and b with it. The capacity includes a tolerance for rounding.
    """
    merged, alpha = solved.fit.merged, solved.alpha
    bounds = np.maximum(solved.one.problem.upper, -solved.one.problem.lower)
    if np.ptp(bounds[merged.member] * merged.share) <= 1e-12 * bounds.max():
        return np.full(len(merged.member), np.inf)
    second = solved.signs > 0
    total = np.where(second, float((bounds - alpha) @ second), float((bounds - alpha) @ ~second))
    own_capacity = (bounds - alpha)[merged.member] * merged.share
    return np.asarray(total[merged.member] - own_capacity + 1e-9 * bounds.max())


def _range_of_values(gram: Gram) -> float:
    """Return max k(x, x) − min k(x, z)."""
    everything, least = np.arange(gram.n), np.inf
    for rows in row_blocks(gram.n, 8 * gram.n):
        least = min(least, float(gram.block(everything[rows], everything).min()))
    return float(gram.diagonal.max()) - least


def _span_squares(one: ExactSolution) -> Floats:
    """Return S² of every support vector, its squared distance from the affine hull of the other free ones; else 0."""
    homotopy, squares = one.homotopy, np.zeros(one.problem.n_variables)
    squares[homotopy.order] = homotopy.distances()
    bounded = np.flatnonzero((homotopy.side != FREE) & (one.beta != 0))
    for v in bounded.tolist():
        squares[v] = homotopy.distance(v)
    return squares


def _constrained_span_square(one: ExactSolution, v: int) -> float:
    """Return S² of a free vector, restricted to points of the hull to which α_v can be moved within all bounds.

    It is infinite if there are none.
    """
    problem, beta, free = one.problem, one.beta, one.homotopy.order
    others = free[free != v]
    if len(others) == 0:
        return np.inf
    # β_j + β_vλ_j must stay in the box.
    with np.errstate(over="ignore"):
        ends = np.stack([problem.lower[others] - beta[others], problem.upper[others] - beta[others]]) / beta[v]
    ends = np.clip(ends, -_ANYWHERE, _ANYWHERE)
    lower, upper = ends.min(axis=0), ends.max(axis=0)
    if not lower.sum() <= 1 <= upper.sum():
        return np.inf
    gram = one.K.gram.view(others)
    p = one.K.rows(np.array([v]))[0][others]
    m = len(others)
    hull = DualProblem(p, lower, upper, np.zeros(m), np.arange(m), np.zeros(m, dtype=np.int32), np.ones(1))
    square = float(one.K.diagonal[v])
    return max(0.0, square - 2 * solve_certified(hull, gram, replace(_SOLVED, tol=1e-6 * square))[1].dual)
