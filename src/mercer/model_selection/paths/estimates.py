"""Leave-one-out errors estimated from one solution: ξα, the span of support vectors, radius and margin.

With k_ii = k(x_i, x_i), slacks ξ_i and, for a machine with a free bias, R² = max k_ii − min k_ij:

    ξα              a sample is suspect if 2α_iR² + ξ_i ≥ 1 (Joachims, 2000), or with different C if the others of its
                    class have no room for α_i below theirs; without bias, if α_ik_ii + ξ_i ≥ 1
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

# Slack that is rounding, in units of f.
_NO_SLACK = 1e-7
_FREE_VECTORS = "a free support vector in each of the machines with one sample left out, so that their b is unique"
# What a combination's coefficients may be at most where the box says nothing: their sum must not overflow.
_ANYWHERE = 1e300
_SOLVED = Stop(tol=1e-6, max_iter=10_000_000)


@dataclass(frozen=True, eq=False)
class Estimate:
    """An estimate of the leave-one-out error.

    Attributes
    ----------
    error : float
        The share of samples, by weight, that may be misclassified when left out.
    proven : bool
        Whether this solution alone proves that it is an upper bound on the leave-one-out error.
    assumes : str
        What it needs to be one.
    suspects : array of bool of shape (n_samples,), or None
        Which samples may be misclassified; None where only their number is bounded.
    recall : float
        The share of the second class that is found, as ξα estimates it; NaN for the others.
    precision : float
        The share of what is found that is of the second class, as ξα estimates it; NaN for the others.
    """

    error: float
    proven: bool
    assumes: str
    suspects: Flags | None = field(default=None, repr=False)
    recall: float = np.nan
    precision: float = np.nan


@shared_docs
def xi_alpha(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Estimate:
    """Joachims' ξα estimates of error, recall and precision.

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
    # One of several copies is left out alone.
    handed = alpha[merged.member] * merged.share
    suspect = (handed * size[merged.member] + solved.slack[merged.member] >= 1) & (handed > 0)
    if solved.biased:
        room = _room_of_others(solved)
        suspect |= handed > room
        if np.isfinite(room).any():
            assumes = f"{assumes}, and the same C for all samples, which is not so here"
    weight, second = merged.own_weight, solved.signs[merged.member] > 0
    missed, found = float(weight @ (suspect & second)), float(weight @ (suspect & ~second))
    kept = float(weight @ second) - missed
    precision = kept / (kept + found) if kept + found else np.nan
    estimate = solved.estimate(suspect, assumes, proven=not solved.biased)
    return replace(estimate, recall=kept / float(weight @ second), precision=precision)


@shared_docs
def span_estimate(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Estimate:
    """Vapnik's and Chapelle's rule, exact if no support vector becomes free or bounded when another one is left out.

    %(leave-one-out estimate)s
    """
    solved = _solved(model, X, y, sample_weight)
    suspect = (solved.alpha * _span_squares(solved.one) >= solved.signs * solved.f) & (solved.alpha > 0)
    same = "the same free and bounded support vectors whichever sample is left out; then it is the error itself"
    return solved.estimate(suspect[solved.fit.merged.member], same)


@shared_docs
def span_bound(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Estimate:
    """Vapnik's and Chapelle's bound.

    %(leave-one-out estimate)s
    """
    solved = _solved(model, X, y, sample_weight)
    if not solved.biased:
        raise ValueError(f"the span bound is for bias=True, not {model.bias!r}; use xi_alpha, which bounds both")
    one, alpha = solved.one, solved.alpha
    bounds = np.maximum(one.problem.upper, -one.problem.lower)
    reach = max(2 * np.sqrt(ball_square(one.K.gram)), 1 / np.sqrt(float(bounds.min())))
    suspect = alpha > 0
    near = _span_squares(one)
    for v in np.flatnonzero(suspect & (one.homotopy.side == FREE)).tolist():  # a free vector may have α = 0
        inside = alpha[v] * np.sqrt(near[v]) * reach < 1
        suspect[v] = not inside or alpha[v] * np.sqrt(_handed_over_square(one, v)) * reach >= 1
    return solved.estimate(suspect[solved.fit.merged.member], _FREE_VECTORS)


def radius_margin(model: Any, X: Any, y: Any, sample_weight: Any = None, *, slack: bool = False) -> Estimate:
    """4R²/ρ² with a free bias, R₀²/ρ² without, as a share of the samples.

    With ``slack=True`` the form for machines with slack, a criterion for C and the kernel: 4(R² + 1/C)(‖w‖² + 2C Σξ)
    (Chung, Kao, Sun, Wang and Lin, 2003); without bias (R₀² + 1/C)(‖w‖² + 2C Σξ). As C grows it becomes the other one.
    It may exceed 1.

    A machine with ``slack="l2"`` is the hard margin of K + I/C, in which a sample that is left out has the same f as in
    K. Its 4R²/ρ² = 4R² Σα, R the radius of the smallest ball under K + I/C, bounds the leave-one-out errors; without
    bias max(k_ii + 1/C_i) Σα. It may exceed 1, and is the same for both values of `slack`.

    Parameters
    ----------
    model : SVC
        Two classes. Its parameters say what is solved; if it is fitted, its solution is where the exact one is looked
        for.
    X : array or CSR matrix of shape (n_samples, n_features)
        The training samples, as given to `fit`.
    y : array of shape (n_samples,)
        Their classes.
    sample_weight : array of shape (n_samples,), optional
        A sample is left out with all its weight.
    slack : bool, default=False
        Count the slacks of a machine with slack="l1", instead of assuming that there are none.

    Returns
    -------
    Estimate
        ``error``, the share of samples, by weight, that may be misclassified when left out; ``proven``, True if this
        solution alone proves that it is an upper bound on the leave-one-out error; ``assumes``, what it needs to be
        one; ``suspects``, which samples may be misclassified, or None where only their number is bounded; ``recall``
        and ``precision`` of the second class, as ξα estimates them, NaN for the others.
    """
    solved = _solved(model, X, y, sample_weight, ("l1", "l2"))
    if model.slack == "l2":
        return _of_hard_margin(solved)
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


def _of_hard_margin(solved: _Solved) -> Estimate:
    """The bound on the errors of the hard margin of K + I/C: every copy of a sample has a coordinate of its own."""
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
    """R² of the smallest ball around the samples in feature space, from above.

    With `rows` of the Gram matrix and a `ridge`, that of K + ridge·I on these rows, of which some may be the same.
    """
    rows = np.arange(gram.n) if rows is None else rows
    n, squares = len(rows), gram.diagonal[rows] + ridge
    box, d = (np.zeros(n), np.full(n, 2.0)), np.broadcast_to(np.asarray(ridge, dtype=np.float64), n).copy()
    problem = DualProblem(0.5 * squares, *box, d, np.asarray(rows), np.zeros(n, dtype=np.int32), np.ones(1))
    return 2 * solve_certified(problem, gram, replace(_SOLVED, tol=1e-6 * float(squares.max())))[1].primal


@dataclass(frozen=True, eq=False)
class _Solved:
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
        """The share of the samples, by weight, that one error can be."""
        weight = self.fit.merged.own_weight
        return float(weight.max() / weight.sum())

    def estimate(self, suspect: Flags, assumes: str, proven: bool = False) -> Estimate:
        """From the rows, of those that were merged, that may be misclassified."""
        merged, rows = self.fit.merged, np.zeros(self.fit.n, dtype=np.bool_)
        rows[merged.rows] = suspect
        error = float(merged.own_weight @ suspect / merged.own_weight.sum())
        return Estimate(error, proven, assumes, freeze(rows))


def _solved(model: Any, X: Any, y: Any, sample_weight: Any, slacks: tuple[str, ...] = ("l1",)) -> _Solved:
    if getattr(model, "slack", None) not in slacks:
        wanted = " or ".join(map(repr, slacks))
        instead = "leave_one_out takes any machine"
        if hasattr(model, "best_estimator_"):
            instead = "give the machine that the search chose, its best_estimator_"
        elif getattr(model, "slack", None) == "l2":
            instead = "radius_margin and leave_one_out take slack='l2'"
        raise ValueError(f"this estimate is for SVC with slack={wanted}, not {model!r}; {instead}")
    fit, found = exact_solutions(model, X, y, sample_weight)
    if len(found) != 1:
        raise ValueError(
            f"the estimates are for two classes, but y has {len(fit.target.labels)}; leave_one_out takes several"
        )
    problem = found[0].problem
    return _Solved(fit, found[0], len(problem.totals) == 1, np.sign(problem.p))


def _room_of_others(solved: _Solved) -> Floats:
    """Return how much α the others of its class can take over, for each row that was merged.

    Infinite where C is the same for all samples, as Joachims' theorem has it. With different C, leaving a heavy sample
    out may turn the majority, and b with it. Rounding counts as room.
    """
    merged, alpha = solved.fit.merged, solved.alpha
    bounds = np.maximum(solved.one.problem.upper, -solved.one.problem.lower)
    if np.ptp(bounds[merged.member] * merged.share) <= 1e-12 * bounds.max():
        return np.full(len(merged.member), np.inf)
    second = solved.signs > 0
    total = np.where(second, float((bounds - alpha) @ second), float((bounds - alpha) @ ~second))
    own = (bounds - alpha)[merged.member] * merged.share
    return np.asarray(total[merged.member] - own + 1e-9 * bounds.max())


def _range_of_values(gram: Gram) -> float:
    """max k(x, x) − min k(x, z)."""
    everything, least = np.arange(gram.n), np.inf
    for rows in row_blocks(gram.n, 8 * gram.n):
        least = min(least, float(gram.block(everything[rows], everything).min()))
    return float(gram.diagonal.max()) - least


def _span_squares(one: ExactSolution) -> Floats:
    """S² of every support vector: the squared distance from the affine hull of the other free ones; else zero."""
    homotopy, squares = one.homotopy, np.zeros(one.problem.n_variables)
    squares[homotopy.order] = homotopy.distances()
    bounded = np.flatnonzero((homotopy.side != FREE) & (one.beta != 0))
    for v in bounded.tolist():
        squares[v] = homotopy.distance(v)
    return squares


def _handed_over_square(one: ExactSolution, v: int) -> float:
    """S² of a free vector, with the hull's points that keep every α in its bounds when α_v is handed over; infinite
    where there is none."""
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
    own = float(one.K.diagonal[v])
    return max(0.0, own - 2 * solve_certified(hull, gram, replace(_SOLVED, tol=1e-6 * own))[1].dual)
