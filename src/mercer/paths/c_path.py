"""Every solution between the smallest C and the largest."""

from __future__ import annotations

import math
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from mercer.arrays import Floats, freeze, sums_by
from mercer.estimators.svc import SVC
from mercer.fitting.pipeline.fit import Fit, deadline_of, read_samples
from mercer.fitting.pipeline.machine import trained_on
from mercer.fitting.reports.coefficients import expansion_of
from mercer.parameters import positive

if TYPE_CHECKING:
    from mercer.displays import CPathDisplay


class CPath:
    """The machines of `svm_path` for every C of a range; `svm_path` makes it.

    Parameters
    ----------
    machine : SVC
        The machine whose path it is, not fitted.
    fit : Fit
        What was read.
    found : Trace or Nodes
        The solutions: exact ones with their breakpoints, or fits with a gap between them.

    Attributes
    ----------
    C_ : array of shape (n_breakpoints,)
        Where α stops being linear in C; for an ε-path the C that were solved.
    C_range_ : tuple of float
        The C that the path answers for.
    n_free_, n_bounded_, n_support_ : arrays of shape (n_breakpoints,)
        How many merged samples are on the margin, inside it, and either. At a breakpoint, those of the segment that
        ends there.
    margin_ : array of shape (n_breakpoints,)
        1/‖w‖.
    intercept_ : array of shape (n_breakpoints,)
        b; in the middle of its interval where no sample is on the margin.
    gap_ : array of shape (n_breakpoints - 1,)
        Of an ε-path, the largest relative duality gap between each fit and the next.
    exact_ : bool
        Whether α is exact for every C, or certified to a relative gap of `epsilon_`.
    stop_reason_ : str
        "converged", or what ended the path before C_max: "rounding floor", "max_time", "max_iter" or "stalled".
    n_checks_, largest_violation_, n_refactorisations_, n_restarts_
        How often optimality was checked from scratch on the way and at the end, and the worst of these (NaN: none);
        how often the factor was computed afresh; and how often the path went on from an ordinary solution, where
        rounding had decided the order of events.

    Examples
    --------
    >>> from mercer import svm_path
    >>> path = svm_path([[-1.0], [1.0]], [0, 1], kernel="linear")
    >>> path.C_.tolist(), path.alpha(0.2).tolist(), path.alpha(7).tolist()
    ([0.5], [0.2, 0.2], [0.5, 0.5])
    """

    C_: Floats
    n_free_: Any
    n_bounded_: Any
    margin_: Floats
    intercept_: Floats

    def __init__(self, machine: SVC, fit: Fit, found: Any) -> None:
        self._machine, self._fit, self._found = machine, fit, found
        self.exact_ = bool(found.exact)
        self.epsilon_ = None if self.exact_ else float(found.epsilon)
        self.stop_reason_ = found.stop_reason
        self.C_range_ = (float(found.start), float(found.end))
        for name, values in found.columns().items():
            setattr(self, name, freeze(values))
        for name in ("n_checks", "largest_violation", "n_refactorisations", "n_restarts"):
            if hasattr(found, name):
                setattr(self, f"{name}_", getattr(found, name))

    def __repr__(self) -> str:
        low, high = self.C_range_
        kind = "exact" if self.exact_ else f"relative gap ≤ {self.epsilon_:g}"
        return f"CPath({len(self.C_)} breakpoints, C from {low:.3g} to {high:.3g}, {kind})"

    @property
    def n_support_(self) -> Any:
        return self.n_free_ + self.n_bounded_

    def alpha(self, C: float) -> Floats:
        """α of every training row at C; copies of a sample share its α by their weights."""
        beta, _ = self._solution(self._inside(C))
        merged = self._fit.merged
        alpha = np.zeros(self._fit.n)
        alpha[merged.rows] = np.abs(beta)[merged.member] * merged.share
        return alpha

    def at(self, C: float) -> SVC:
        """The fitted machine at C, concluded by the estimator itself and with its certificate."""
        C = self._inside(C)
        if C == 0 or math.isinf(C):
            raise ValueError(f"C={C:g} is an end of the path that is not reached; a machine needs a C between them")
        machine = clone(self._machine).set_params(C=C)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self._machine, name):
                setattr(machine, name, getattr(self._machine, name))
        start = self._found.problem_at(C).nearest_feasible(self._found.at(C)[0])
        limits = self._fit.limits
        limits = replace(limits, stop=replace(limits.stop, deadline=deadline_of(machine.max_time)))
        model: SVC = trained_on(machine, replace(self._fit, limits=limits), [start])
        return model

    def _solution(self, C: float) -> tuple[Floats, float]:
        """β of every merged sample and b; solved for where the path's own β is not optimal to tol."""
        beta, b, optimal = self._found.at(C)
        if optimal:
            return beta, b
        model, merged, own = self.at(C), self._fit.merged, np.zeros(self._fit.n)
        own[model.support_] = model.dual_coef_[0]
        return sums_by(merged.member, own[merged.rows], len(merged.y)), float(model.intercept_[0])

    def decision_function(self, X: Any, Cs: Any) -> Floats:
        """f of every sample (row) at every C (column), with one pass over the kernel values."""
        values = [self._inside(C) for C in np.atleast_1d(np.asarray(Cs, dtype=np.float64)).tolist()]
        found = [self._solution(C) for C in values]
        beta = np.column_stack([beta for beta, _ in found]) if found else np.empty((len(self._fit.merged.y), 0))
        b = np.array([b for _, b in found])
        if self._machine.bias == "regularized":
            b = beta.sum(axis=0)
        used = np.flatnonzero(beta.any(axis=1))
        expansion = expansion_of(self._fit, np.ascontiguousarray(beta[used]), b, used)
        X = read_samples(self._machine, X, expansion.kernel, reset=False)
        return expansion(X, self._fit.limits.n_threads)

    def predict(self, X: Any, Cs: Any) -> np.ndarray:
        """The class of every sample (row) at every C (column)."""
        labels: np.ndarray = self._fit.target.labels
        return np.asarray(labels[(self.decision_function(X, Cs) >= 0).astype(np.intp)])

    def error(self, X: Any, y: Any, Cs: Any) -> Floats:
        """The share of these samples that are misclassified at every C."""
        wrong = self.predict(X, Cs) != np.asarray(y).reshape(-1, 1)
        return np.asarray(wrong.mean(axis=0))

    def plot(self, axes: Any = None) -> CPathDisplay:
        """α, margin, support vectors and error against C; needs matplotlib."""
        display: type[CPathDisplay] = import_module("mercer.displays").CPathDisplay
        return display(self).plot(axes)

    def _inside(self, C: float) -> float:
        low, high = self.C_range_
        C = positive("C", C)
        if not low <= C <= high:
            ended = "" if self.stop_reason_ == "converged" else f", where it ended ({self.stop_reason_})"
            raise ValueError(
                f"C={C:g} is outside of this path, which goes from {low:g} to {high:g}{ended}; call svm_path with "
                "C_min and C_max around it, or fit SVC there"
            )
        return C
