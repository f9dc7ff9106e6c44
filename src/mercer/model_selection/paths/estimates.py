"""Leave-one-out errors estimated from one solution: ξα, the span of support vectors, radius and margin.

With k_ii = k(x_i, x_i), slacks ξ_i and, for a machine with a free bias, R² = max k_ii − min k_ij:

    ξα              A sample is suspect if 2α_iR² + ξ_i ≥ 1 (Joachims, 2000). If samples have different C, it is suspect
                    too if the other samples of its class cannot take over α_i within their bounds. If no vector is
                    free, b may be anywhere in an interval, and ξ_i is the largest slack in it. Without bias, a sample
                    is suspect if α_ik_ii + ξ_i ≥ 1 (Jaakkola and Haussler, 1999).
    span estimate   A support vector is suspect if α_iS_i² ≥ y_if(x_i), where S_i is the distance of φ(x_i) from the
                    affine hull of the other free support vectors (Vapnik and Chapelle, 2000).
    span bound      A bounded support vector is suspect. A free one is suspect if α_iS_i·max(D, 1/√C) ≥ 1, where D is
                    the diameter of the smallest ball around the samples, and S_i the distance of φ(x_i) from those
                    points of the hull to which α_i can be moved within the bounds (Vapnik and Chapelle, 2000).
    radius–margin   At most 4R²/ρ² errors, R the radius of the smallest ball; R₀²/ρ² without bias, R₀² = max k_ii.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mercer.estimators.fitting.pipeline.fit import Fit
from mercer.model_selection.paths.exact_solution import ExactSolution, b_interval, exact_solutions
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
# Bound on the coefficients of an affine combination that has no bounds of its own: their sum must not overflow.
_LARGEST_COEFFICIENT = 1e300
_STOP = Stop(tol=1e-6, max_iter=10_000_000)


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
    solved = _solve_machine(model, X, y, sample_weight)
    alpha, merged = solved.alpha, solved.fit.merged
    if solved.biased:
        size = np.full(len(alpha), 2 * _range_of_values(solved.solution.K.gram))
        assumption = _FREE_VECTORS
    else:
        size, assumption = solved.solution.K.diagonal, "no free bias, as here"
    # Copies of a sample are left out one at a time.
    alpha_rows = alpha[merged.member] * merged.share
    may_be_wrong = (alpha_rows * size[merged.member] + solved.largest_slack[merged.member] >= 1) & (alpha_rows > 0)
    if solved.biased:
        capacity = _capacity_of_others(solved)
        may_be_wrong |= alpha_rows > capacity
        if np.isfinite(capacity).any():
            assumption = f"{assumption}, and the same C for all samples, which is not so here"
    weight, in_second_class = merged.input_weight, solved.signs[merged.member] > 0
    false_negatives, false_positives = (
        float(weight @ (may_be_wrong & in_second_class)),
        float(weight @ (may_be_wrong & ~in_second_class)),
    )
    true_positives = float(weight @ in_second_class) - false_negatives
    positives = true_positives + false_positives
    precision = true_positives / positives if positives else np.nan
    estimate = solved.estimate(may_be_wrong, assumption, proven=not solved.biased)
    return replace(estimate, recall=true_positives / float(weight @ in_second_class), precision=precision)


@shared_docs
def span_estimate(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Estimate:
    """Compute the span estimate of Vapnik and Chapelle.

    It is exact if no support vector becomes free or bounded when another one is left out.

    %(leave-one-out estimate)s
    """
    solved = _solve_machine(model, X, y, sample_weight)
    may_be_wrong = (solved.alpha * _span_squares(solved.solution) >= solved.signs * solved.f) & (solved.alpha > 0)
    assumption = "the same free and bounded support vectors whichever sample is left out; then it is the error itself"
    return solved.estimate(may_be_wrong[solved.fit.merged.member], assumption)


@shared_docs
def span_bound(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Estimate:
    """Compute the span bound of Vapnik and Chapelle.

    %(leave-one-out estimate)s
    """
    solved = _solve_machine(model, X, y, sample_weight)
    if not solved.biased:
        raise ValueError(f"the span bound is for bias=True, not {model.bias!r}; use xi_alpha, which bounds both")
    solution, alpha = solved.solution, solved.alpha
    bounds = np.maximum(solution.problem.upper, -solution.problem.lower)
    diameter = max(2 * np.sqrt(ball_square(solution.K.gram)), 1 / np.sqrt(float(bounds.min())))
    may_be_wrong = alpha > 0
    span_squares = _span_squares(solution)
    for v in np.flatnonzero(may_be_wrong & (solution.homotopy.side == FREE)).tolist():  # a free vector may have α = 0
        # The span without bounds is at most that within them, and costs less.
        may_be_wrong[v] = not alpha[v] * np.sqrt(span_squares[v]) * diameter < 1
        if not may_be_wrong[v]:
            may_be_wrong[v] = alpha[v] * np.sqrt(_constrained_span_square(solution, v)) * diameter >= 1
    return solved.estimate(may_be_wrong[solved.fit.merged.member], _FREE_VECTORS)


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
    solved = _solve_machine(model, X, y, sample_weight, ("l1", "l2"))
    if model.slack == "l2":
        return _hard_margin_estimate(solved)
    gram, largest = solved.solution.K.gram, float(solved.slack.max())
    ball_term = 4 * ball_square(gram) if solved.biased else float(gram.diagonal.max())
    if slack:
        bounds = np.maximum(solved.solution.problem.upper, -solved.solution.problem.lower)
        square = ball_term + (4 if solved.biased else 1) / float(bounds.max())
        objective = solved.norm_square + 2 * float(bounds @ solved.slack)
        return Estimate(square * objective * solved.largest_share, False, "no slack, whichever sample is left out")
    return Estimate(
        error=min(1.0, ball_term * solved.norm_square * solved.largest_share),
        proven=largest <= _NO_SLACK and not solved.biased,
        assumes=f"no slack, whichever sample is left out; the largest slack of this solution is {largest:.1g}",
    )


def _hard_margin_estimate(solved: _SolvedMachine) -> Estimate:
    """Bound the leave-one-out errors of the hard margin of K + I/C, in which copies of a sample are distinct rows."""
    gram, merged = solved.solution.K.gram, solved.fit.merged
    ridge = solved.solution.problem.d[merged.member] / merged.share
    if solved.biased:
        square = 4 * ball_square(gram, merged.member, ridge)
    else:
        square = float((gram.diagonal[merged.member] + ridge).max())
    has_single_member = int(np.bincount(merged.y[merged.member]).min()) < 2  # in one of the classes
    return Estimate(
        error=square * float(solved.alpha.sum()) * solved.largest_share,
        proven=not (solved.biased and has_single_member),
        assumes="two samples of each class, so that both are left whichever sample is left out",
    )


def ball_square(gram: Gram, rows: Any = None, ridge: Any = 0.0) -> float:
    """Return an upper bound on R², where R is the radius of the smallest ball around the samples in feature space.

    With `rows` of the Gram matrix and a `ridge`, the ball is that of K + ridge·I on these rows, which may repeat.
    """
    rows = np.arange(gram.n) if rows is None else rows
    n, squares = len(rows), gram.diagonal[rows] + ridge
    box, d = (np.zeros(n), np.full(n, 2.0)), np.broadcast_to(np.asarray(ridge, dtype=np.float64), n).copy()
    problem = DualProblem(0.5 * squares, *box, d, np.asarray(rows), np.zeros(n, dtype=np.int32), np.ones(1))
    return 2 * solve_certified(problem, gram, replace(_STOP, tol=1e-6 * float(squares.max())))[1].primal


@dataclass(frozen=True, eq=False)
class _SolvedMachine:
    """The exact solution of a two-class machine; arrays have an entry for each merged sample."""

    fit: Fit
    solution: ExactSolution
    biased: bool  # whether b is free
    signs: Floats  # +1 for the second class

    @property
    def alpha(self) -> Floats:
        return np.abs(self.solution.beta)

    @property
    def f(self) -> Floats:
        return self.solution.f

    @property
    def slack(self) -> Floats:
        return np.maximum(0.0, 1 - self.signs * self.f)

    @property
    def largest_slack(self) -> Floats:
        """Slacks for the least favourable of the optimal b; a machine without free vectors has an interval of them."""
        slack = self.slack
        if self.biased:
            for b in b_interval(self.solution.problem, self.solution.beta, self.solution.h):
                slack = np.maximum(slack, 1 - self.signs * (self.f - self.solution.b + b))
        return slack

    @property
    def norm_square(self) -> float:
        """‖w‖²."""
        beta = self.solution.beta
        return float(beta @ self.solution.K.product(beta))

    @property
    def largest_share(self) -> float:
        """Largest share of the total weight that one sample has."""
        weight = self.fit.merged.input_weight
        return float(weight.max() / weight.sum())

    def estimate(self, may_be_wrong: Flags, assumption: str, proven: bool = False) -> Estimate:
        """Make an estimate from a mask of the weighted rows that may be misclassified."""
        merged, rows = self.fit.merged, np.zeros(self.fit.n, dtype=np.bool_)
        rows[merged.rows] = may_be_wrong
        error = float(merged.input_weight @ may_be_wrong / merged.input_weight.sum())
        return Estimate(error, proven, assumption, freeze(rows))


def _solve_machine(model: Any, X: Any, y: Any, sample_weight: Any, slacks: tuple[str, ...] = ("l1",)) -> _SolvedMachine:
    """Solve a two-class SVC exactly; raise ValueError for other machines, and for a `slack` not in `slacks`."""
    if getattr(model, "slack", None) not in slacks:
        allowed_slacks = " or ".join(map(repr, slacks))
        hint = "leave_one_out takes any machine"
        if hasattr(model, "best_estimator_"):
            hint = "pass the machine that the search chose, its best_estimator_"
        elif getattr(model, "slack", None) == "l2":
            hint = "radius_margin and leave_one_out take slack='l2'"
        raise ValueError(f"this estimate is for SVC with slack={allowed_slacks}, not {model!r}; {hint}")
    if getattr(model, "C", None) == np.inf:
        raise ValueError(
            f"this estimate is for a finite C, not for {model!r}; a large C gives the same machine, and "
            "insight(X, y).bounds['leave one out'] of a fitted hard margin has its R²/ρ²"
        )
    fit, solutions = exact_solutions(model, X, y, sample_weight)
    if len(solutions) != 1:
        raise ValueError(
            f"the estimates are for two classes, but y has {len(fit.target.labels)}; leave_one_out takes several"
        )
    problem = solutions[0].problem
    return _SolvedMachine(fit, solutions[0], len(problem.totals) == 1, np.sign(problem.p))


def _capacity_of_others(solved: _SolvedMachine) -> Floats:
    """Return, for each weighted row, how much α the other samples of its class can take over within their bounds.

    The capacity is infinite if C is the same for all samples, as Joachims' theorem assumes. With different C, leaving a
    heavy sample out may make its class the smaller one, and change b. The capacity includes a tolerance for rounding.
    """
    merged, alpha = solved.fit.merged, solved.alpha
    bounds = np.maximum(solved.solution.problem.upper, -solved.solution.problem.lower)
    if np.ptp(bounds[merged.member] * merged.share) <= 1e-12 * bounds.max():
        return np.full(len(merged.member), np.inf)
    in_second_class = solved.signs > 0
    class_capacity = np.where(
        in_second_class, float((bounds - alpha) @ in_second_class), float((bounds - alpha) @ ~in_second_class)
    )
    own_capacity = (bounds - alpha)[merged.member] * merged.share
    return np.asarray(class_capacity[merged.member] - own_capacity + 1e-9 * bounds.max())


def _range_of_values(gram: Gram) -> float:
    """Return max k(x, x) − min k(x, z)."""
    all_rows, smallest = np.arange(gram.n), np.inf
    for rows in row_blocks(gram.n, 8 * gram.n):
        smallest = min(smallest, float(gram.block(all_rows[rows], all_rows).min()))
    return float(gram.diagonal.max()) - smallest


def _span_squares(solution: ExactSolution) -> Floats:
    """Return S² of each support vector, its squared distance from the affine hull of the other free ones, else 0."""
    homotopy, squares = solution.homotopy, np.zeros(solution.problem.n_variables)
    squares[homotopy.order] = homotopy.distances()
    bounded = np.flatnonzero((homotopy.side != FREE) & (solution.beta != 0))
    for v in bounded.tolist():
        squares[v] = homotopy.distance(v)
    return squares


def _constrained_span_square(solution: ExactSolution, v: int) -> float:
    """Return S² of a free vector, its squared distance from the points of the hull to which α_v can be moved.

    Such a point Σλ_jφ(x_j) keeps every β_j + β_vλ_j within its bounds. S² is infinite if there is no such point.
    """
    problem, beta, free = solution.problem, solution.beta, solution.homotopy.order
    others = free[free != v]
    if len(others) == 0:
        return np.inf
    # Bounds of λ_j.
    with np.errstate(over="ignore"):
        ends = np.stack([problem.lower[others] - beta[others], problem.upper[others] - beta[others]]) / beta[v]
    ends = np.clip(ends, -_LARGEST_COEFFICIENT, _LARGEST_COEFFICIENT)
    lower, upper = ends.min(axis=0), ends.max(axis=0)
    if not lower.sum() <= 1 <= upper.sum():
        return np.inf
    gram = solution.K.gram.view(others)
    p = solution.K.rows(np.array([v]))[0][others]
    m = len(others)
    hull = DualProblem(p, lower, upper, np.zeros(m), np.arange(m), np.zeros(m, dtype=np.int32), np.ones(1))
    square = float(solution.K.diagonal[v])
    return max(0.0, square - 2 * solve_certified(hull, gram, replace(_STOP, tol=1e-6 * square))[1].dual)
