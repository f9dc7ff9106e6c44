"""`svm_path`, which computes the solutions for every C of a range, and its result `CPath`."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from mercer.estimators.fitting.pipeline.fit import Fit, deadline_of, read_samples
from mercer.estimators.fitting.pipeline.machine import fit_copy_on
from mercer.estimators.fitting.pipeline.reporting import Progress
from mercer.estimators.fitting.reports.coefficients import expansion_of
from mercer.estimators.svc import SVC
from mercer.model_selection.paths.exact_path import Trace, problem_at, trace_path
from mercer.model_selection.paths.exact_solution import merged_duals
from mercer.model_selection.paths.path_nodes import Nodes, fit_nodes
from mercer.problems.classification import soft_margin
from mercer.problems.dual_problem import DualProblem
from mercer.runtime.parameters import REGULARIZED, positive
from mercer.samples.arrays import Floats, freeze
from mercer.samples.checks import copy_columns

if TYPE_CHECKING:
    from mercer.inspection.displays import PathDisplay


class CPath:
    """Machines for every C of a range, made by `svm_path`.

    Parameters
    ----------
    machine : SVC
        Unfitted machine whose path this is.
    fit : Fit
        Training samples as read.
    trace : Trace or Nodes
        Solutions: exact ones with their breakpoints, or fits with bounds on the gap between them.

    Attributes
    ----------
    C_ : array of shape (n_breakpoints,)
        Breakpoints, between which α is linear in C; for an ε-path, the values of C that were solved.
    C_range_ : tuple of float
        Smallest and largest C of the path.
    n_free_, n_bounded_, n_support_ : arrays of shape (n_breakpoints,)
        Number of merged samples on the margin, inside it, and their sum. At a breakpoint they are those of the segment
        that ends there.
    margin_ : array of shape (n_breakpoints,)
        Margin 1/‖w‖.
    intercept_ : array of shape (n_breakpoints,)
        Bias b; the middle of its interval if no sample is on the margin.
    gap_ : array of shape (n_breakpoints - 1,)
        Largest relative duality gap between each fit and the next; ε-paths only.
    exact_ : bool
        Whether α is exact for every C, or certified to a relative gap of `epsilon_`.
    stop_reason_ : str
        "converged", or the reason why the path ended before C_max: "rounding floor", "max_time", "max_iter" or
        "stalled".
    n_checks_, largest_violation_, n_refactorisations_, n_restarts_
        Number of checks of optimality from scratch, and the largest violation among them (NaN without checks); number
        of new factorisations; and number of restarts from an ordinary solution, where rounding would have decided the
        order of events.

    Examples
    --------
    >>> from mercer import svm_path
    >>> path = svm_path([[-1.0], [1.0]], [0, 1], kernel="linear")
    >>> path.C_.tolist(), path.alpha(0.2).tolist(), path.alpha(7).tolist()
    ([0.5], [0.2, 0.2], [0.5, 0.5])
    """

    def __init__(self, machine: SVC, fit: Fit, trace: Trace | Nodes) -> None:
        self._machine, self._fit, self._trace = machine, fit, trace
        self.exact_ = isinstance(trace, Trace)
        self.epsilon_ = float(trace.epsilon) if isinstance(trace, Nodes) else None
        self.stop_reason_ = trace.stop_reason
        self.C_range_ = (float(trace.start), float(trace.end))
        columns = {name: freeze(values) for name, values in trace.columns().items()}
        self.C_: Floats = columns["C_"]
        self.n_free_, self.n_bounded_ = columns["n_free_"], columns["n_bounded_"]
        self.margin_, self.intercept_ = columns["margin_"], columns["intercept_"]
        if isinstance(trace, Nodes):
            self.gap_ = columns["gap_"]
        if isinstance(trace, Trace):
            self.n_checks_, self.largest_violation_ = trace.n_checks, trace.largest_violation
            self.n_refactorisations_, self.n_restarts_ = trace.n_refactorisations, trace.n_restarts

    def __repr__(self) -> str:
        low, high = self.C_range_
        kind = "exact" if self.exact_ else f"relative gap ≤ {self.epsilon_:g}"
        return f"CPath({len(self.C_)} breakpoints, C from {low:.3g} to {high:.3g}, {kind})"

    @property
    def n_support_(self) -> Any:
        """Number of support vectors at each breakpoint."""
        return self.n_free_ + self.n_bounded_

    def alpha(self, C: float) -> Floats:
        """Return α of every training row at C; copies of a sample share its α in proportion to their weights."""
        beta, _ = self._solution(self._check_C(C))
        merged = self._fit.merged
        alpha = np.zeros(self._fit.n)
        alpha[merged.rows] = np.abs(beta)[merged.member] * merged.share
        return alpha

    def at(self, C: float) -> SVC:
        """Return the fitted machine at C, with its certificate."""
        C = self._check_C(C)
        if C == 0 or math.isinf(C):
            raise ValueError(f"the path has no machine at its end C={C:g}; choose a C between its two ends")
        machine = clone(self._machine).set_params(C=C)
        copy_columns(self._machine, machine)
        start = problem_at(self._trace.problem, C).nearest_feasible(self._trace.at(C)[0])
        limits = self._fit.limits
        limits = replace(limits, stop=replace(limits.stop, deadline=deadline_of(machine.max_time)))
        model: SVC = fit_copy_on(machine, replace(self._fit, limits=limits), [start])
        return model

    def _solution(self, C: float) -> tuple[Floats, float]:
        """Return β of every merged sample and b; fit the machine if β of the path is not optimal to tol."""
        beta, b, optimal = self._trace.at(C)
        if optimal:
            return beta, b
        model = self.at(C)
        return merged_duals(model, self._fit), float(model.intercept_[0])

    def decision_function(self, X: Any, Cs: Any) -> Floats:
        """Return f of every sample (row) at every C (column), with one pass over the kernel values."""
        values = [self._check_C(C) for C in np.atleast_1d(np.asarray(Cs, dtype=np.float64)).tolist()]
        solutions = [self._solution(C) for C in values]
        beta = np.column_stack([beta for beta, _ in solutions]) if solutions else np.empty((len(self._fit.merged.y), 0))
        b = np.array([b for _, b in solutions])
        if self._machine.bias in REGULARIZED:
            b = beta.sum(axis=0)
        used = np.flatnonzero(beta.any(axis=1))
        expansion = expansion_of(self._fit, np.ascontiguousarray(beta[used]), b, used)
        X = read_samples(self._machine, X, expansion.kernel, reset=False)
        return expansion(X, self._fit.limits.n_threads)

    def predict(self, X: Any, Cs: Any) -> np.ndarray:
        """Predict the class of every sample (row) at every C (column)."""
        labels: np.ndarray = self._fit.target.labels
        return np.asarray(labels[(self.decision_function(X, Cs) >= 0).astype(np.intp)])

    def error(self, X: Any, y: Any, Cs: Any) -> Floats:
        """Return the share of misclassified samples at every C."""
        is_wrong = self.predict(X, Cs) != np.asarray(y).reshape(-1, 1)
        return np.asarray(is_wrong.mean(axis=0))

    def _check_C(self, C: float) -> float:
        """Return C as a float; raise ValueError if the path does not reach it."""
        low, high = self.C_range_
        C = positive("C", C)
        if not low <= C <= high:
            end_text = "" if self.stop_reason_ == "converged" else f", where it ended ({self.stop_reason_})"
            raise ValueError(
                f"C={C:g} is outside this path, which goes from {low:g} to {high:g}{end_text}; call svm_path with "
                "C_min and C_max around it, or fit SVC there"
            )
        return C

    def plot(self, *axes: Any, **options: Any) -> PathDisplay:
        """Plot α, margin, support vectors and errors over C; see `mercer.displays.PathDisplay.from_svm_path`."""
        from mercer.inspection.displays import PathDisplay

        return PathDisplay.from_svm_path(self, *axes, **options)


# Maximal number of samples for which the path is exact by default: it has about three events for each sample, and
# each event takes a product with up to that many rows of K.
_MAX_EXACT_SAMPLES = 5000
# Default ε and default range of C of an ε-path.
_EPSILON, _RANGE = 1e-3, (0.01, 100.0)


def svm_path(
    X: Any,
    y: Any,
    *,
    C_min: float | None = None,
    C_max: float | None = None,
    epsilon: float | None = None,
    sample_weight: Any = None,
    **options: Any,
) -> CPath:
    """Fit SVC with two classes for every C: α is piecewise linear in C, and all breakpoints are computed.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
        Samples; a list of strings for a string kernel, or the square kernel matrix for a precomputed one.
    y : array of shape (n_samples,)
        Labels of two classes.
    C_min : float, optional
        Smallest C: by default 0, and 0.01 for an ε-path.
    C_max : float, optional
        Largest C: by default the C from which on nothing changes, or at which rounding exceeds `tol`; 100 for an
        ε-path.
    epsilon : float, optional
        ε of an ε-path: ordinary fits so close together that the machine interpolated between two of them has a proven
        relative duality gap of at most ε. By default the path is exact up to 5,000 distinct samples, and an ε-path with
        ε = 0.001 beyond.
    sample_weight : array of shape (n_samples,), optional
        Weights of the samples, by which C is multiplied.
    **options : parameters of SVC
        Parameters other than C: `kernel`, `gamma`, `bias`, `class_weight`, ... `tol` is 1e-8 unless given.

    Returns
    -------
    CPath
        Machines for every C of the range.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from mercer import svm_path
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> path = svm_path(scale(X), y, C_max=100)
    >>> len(path.C_) > 500, path.at(3.7).certificate_.violation < 1e-8
    (True, True)
    """
    machine = SVC(**{"tol": 1e-8, **options})
    if epsilon is not None:
        positive("epsilon", epsilon, "it is a relative duality gap")
    # 1. Read the parameters and the samples.
    begin = None if C_min is None else positive("C_min", C_min)
    end = math.inf if C_max is None else positive("C_max", C_max)
    if begin is not None and not begin < end:
        raise ValueError(f"C_min={C_min!r} must be below C_max={C_max!r}")
    _check_machine(machine)
    fit = Fit.of(machine, X, y, sample_weight)
    if len(fit.target.labels) != 2:
        raise ValueError(
            f"a path is for two classes, but y has {len(fit.target.labels)}; use (y == label) for one of them against "
            "the rest, or the rows of two of them"
        )
    gram = fit.gram()
    if gram.positive_definite == "no":
        raise ValueError(
            f"{fit.kernel!r} is not positive definite on these samples, so α is no function of C; use another kernel"
        )
    # 2. Follow the exact path, or fit as many machines as an ε-path needs.
    problem = problem_at_unit_C(machine, fit)
    progress = Progress(None, bool(machine.verbose), 1, fit.X, y)
    if epsilon is None and len(fit.merged.y) > _MAX_EXACT_SAMPLES:
        epsilon = _EPSILON
    stop, constant = replace(fit.limits.stop, report=progress.begin("path")), fit.constant
    path: Trace | Nodes
    if epsilon is None:
        path = trace_path(problem, gram, stop, begin, end, constant=constant)
    else:
        begin, end = begin or _RANGE[0], end if math.isfinite(end) else _RANGE[1]
        path = fit_nodes(problem, gram, stop, begin, end, epsilon, constant=constant)
    progress.end()
    return CPath(machine, fit, path)


def problem_at_unit_C(machine: Any, fit: Fit) -> DualProblem:
    """Return the dual problem of a two-class machine at C = 1."""
    (pair,) = fit.target.pairs
    rows, sides = fit.target.sides(pair, fit.merged.y)
    assert np.array_equal(rows, np.arange(len(fit.merged.y)))
    y: Floats = sides
    problem = soft_margin(y, fit.target.factor[fit.merged.y] * fit.merged.weight)
    return problem if machine.bias is True else problem.without_bias()


def _check_machine(machine: SVC) -> None:
    """Raise ValueError for parameters of the machine with which α is not piecewise linear in C."""
    if machine.C != 1.0 or machine.theta is not None:
        raise ValueError("a path covers all C: leave C, theta and lam out, and pass C_min and C_max")
    if machine.slack != "l1":
        raise ValueError(
            f"slack={machine.slack!r} has no exact path: C_i ξ_i² makes α a curve in C; use slack='l1', or fit SVC for "
            "each C with warm_start=True"
        )
    if machine.multiclass not in ("ovo", "ovr"):
        raise ValueError(f"multiclass={machine.multiclass!r} has no path; leave it at 'ovo'")
