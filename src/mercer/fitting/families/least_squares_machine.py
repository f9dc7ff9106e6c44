"""Machines of regularized least squares: what a fit of one or several outputs leaves."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.arrays import Floats, Indices, freeze, sums_by
from mercer.certificates.least_squares import EXACT_GAP
from mercer.data.labels import class_weights
from mercer.errors import INDEFINITE, NonPSDKernelWarning, SingularSystemWarning
from mercer.exact_parts import exact_parts, worth_exactness
from mercer.expansion import Expansion
from mercer.fitting.families.targets import OutputsMachine, SeveralOutputs, SignClassifier, Targets
from mercer.fitting.pipeline.attached import RegressorMethods
from mercer.fitting.pipeline.fit import Fit
from mercer.fitting.pipeline.kinds import Array, BoundKernel, Count, Flag, Function, Number, Record, Text, fitted
from mercer.fitting.pipeline.task import Solutions
from mercer.fitting.pipeline.telling import warn_user
from mercer.fitting.reports.coefficients import diagonal_of, expansion_of, weight_vector
from mercer.gram.linear_gram import linear_scale
from mercer.gram.sums import Sums
from mercer.kernels import Kernel
from mercer.parameters import real
from mercer.problems.least_squares import LeastSquares
from mercer.solvers.least_squares.solution import LeastSquaresSolution


class LeastSquaresMachine(OutputsMachine):
    """A machine of least squares; it adds its parameters, its tasks, and how targets are read and predictions made."""

    STEPS = 2000  # of conjugate gradients; all other solvers need a handful

    FITTED = fitted(
        kernel_=BoundKernel(required=True),
        _expansion_=Function(required=True),
        dual_coef_=Array(None, "outputs", flat=True),
        n_iter_=Count(),
        solver_=Text(),
        factor_precision_=Text(),
        rank_=Count(),
        residual_=Number(),
        _sums_=Record(
            Sums.from_parts,
            x=Array("features"),
            y=Array("outputs"),
            xx=Array("features", "features"),
            xy=Array("features", "outputs"),
            yy=Array("outputs"),
            bias=Flag(),
            rest_x=Array("features"),
            rest_y=Array("outputs"),
            error=Array(None),
        ),
    )

    def _check_parameters(self) -> None:
        if not isinstance(self.bias, bool | np.bool_):
            raise TypeError(f"bias={self.bias!r} must be True or False")

    def _problem(self, fit: Fit, lam: float = math.nan) -> LeastSquares:
        merged, same = fit.merged, _distinct(fit)
        Y, member = fit.target.Y[merged.rows][same.first], merged.member[same.first]
        return LeastSquares(Y, same.weight, member, len(merged.weight), bool(self.bias), lam)

    def _record_end(self, solved: Solutions) -> None:
        super()._record_end(solved)
        self.n_iter_ = solved[0].solution.steps
        self.residual_ = self.certificate_.violation

    def _conclude_rows(self, fit: Fit, solution: LeastSquaresSolution, lam: float) -> None:
        """Every attribute of a fit on samples that are at hand."""
        assert fit.kernel is not None
        self._conclude_solution(fit.kernel, solution, lam)
        if solution.C is not None:
            expansion = expansion_of(fit, np.array(solution.C), self.intercept_)
            if fit.merged.X is fit.X and expansion.vectors is not None:  # the caller's own samples
                expansion = replace(expansion, vectors=copy.copy(expansion.vectors))
            self._expansion_ = expansion
        if solution.beta is not None:
            same = _distinct(fit)
            share = fit.merged.own_weight / same.weight[same.group]
            own = solution.beta[same.group] * share[:, None]
            if len(same.weight) < len(share):
                diagonal = diagonal_of(fit)[fit.merged.member[same.first]]
                exact = worth_exactness(diagonal, lam / fit.merged.own_weight, same.group)
                pairs = zip(solution.beta.T, own.T, strict=True)
                own = np.column_stack([exact_parts(total, part, same.group, exact) for total, part in pairs])
            self.dual_coef_ = freeze(self._own_rows(fit, own))
        self._conclude_targets(fit.target)

    def _conclude_solution(self, kernel: Kernel, solution: LeastSquaresSolution, lam: float) -> None:
        """What a solution says without its samples."""
        if solution.indefinite:
            warn_user(INDEFINITE.format(kernel=kernel), NonPSDKernelWarning)
        if solution.dropped:
            warn_user(
                f"the system is singular to rounding at lam={lam:g}: its effective rank is {solution.rank} of "
                f"{solution.rank + solution.dropped}. The solution of least norm was taken through eigenvalues; raise "
                "lam for a unique one",
                SingularSystemWarning,
            )
        self.kernel_ = kernel
        self.solver_ = solution.solver
        self.factor_precision_ = solution.precision
        self.rank_ = solution.rank
        self.intercept_ = freeze(np.array(solution.b, dtype=np.float64))
        if solution.W is not None:  # f(x) = ⟨w, x⟩ + b as an expansion in the weight vectors themselves
            coefficients = np.eye(solution.W.shape[1]) / (linear_scale(kernel) or 1.0)
            self._expansion_ = Expansion(kernel, np.ascontiguousarray(solution.W.T), coefficients, self.intercept_)
        if solution.sums is not None:
            self._sums_ = solution.sums

    def _own_rows(self, fit: Fit, values: Floats) -> Floats:
        """Values of the rows that have weight, as a matrix or a list for all of the caller's rows."""
        own = np.zeros((fit.n, values.shape[1]))
        own[fit.merged.rows] = values
        return own[:, 0] if fit.target.flat else own

    def _own_residuals(self, fit: Fit, residuals: Floats) -> Floats:
        """Residuals of rows of equal samples and targets, for all of the caller's rows."""
        return self._own_rows(fit, residuals[_distinct(fit).group])

    def _unfinished(self, X: Any) -> str:
        if self.stop_reason_ in ("max_iter", "max_time"):
            found = self.certificate_
            return (
                f"{type(self).__name__} stopped early ({self.stop_reason_}): residual {self.residual_:.3g}, gap "
                f"{found.gap:.3g}, {found.relative_gap:.1e} of the dual value. Raise {self.stop_reason_} or lam"
            )
        return (
            f"{type(self).__name__} met the rounding floor: float64 proves its solution to a relative gap of "
            f"{self.certificate_.relative_gap:.1e} here, not of {EXACT_GAP:g} (largest residual {self.residual_:.3g}); "
            "raise lam, scale the features, or leave out what is far from everything else"
        )

    @property
    def coef_(self) -> Any:
        """The weights of the features, one row per output; only for a linear kernel."""
        check_is_fitted(self)
        return weight_vector(self)


class LeastSquaresRegressor(RegressorMethods, SeveralOutputs, LeastSquaresMachine):
    """Least squares for numbers: one output or several."""

    @property
    def coef_(self) -> Any:
        """The weights of the features, one row per output if there were several; only for a linear kernel."""
        w = super().coef_
        return w[0] if self._flat_ else w


class LeastSquaresClassifier(SignClassifier, LeastSquaresMachine):
    """Least squares for ±1, with weights of the classes."""

    FITTED = fitted(class_weight_=Array("classes"))

    def _targets(self, y: Any, classes: Any = None) -> Targets:
        target = super()._targets(y, classes)
        if classes is None:
            return target
        every = np.arange(len(classes))  # a part of the samples need not hold every class
        return replace(target, factor=class_weights(self.class_weight, classes, every, np.ones(len(classes))))

    def _weigh(self, target: Targets, codes: Indices, weight: Floats) -> tuple[Floats, Targets]:
        if target.factor is None:
            factor = class_weights(self.class_weight, target.classes, target.codes, weight)
            target = replace(target, factor=factor)
        return weight * target.factor[target.codes], target

    def _conclude_targets(self, target: Targets) -> None:
        super()._conclude_targets(target)
        self.class_weight_ = freeze(target.factor)


@dataclass(frozen=True, eq=False)
class _Distinct:
    """Rows of equal samples and targets as one, in an order that depends on their values alone."""

    first: Indices  # of the kept rows that each was joined from
    weight: Floats
    group: Indices  # for each kept row, the one it went into


def _distinct(fit: Fit) -> _Distinct:
    """The kept rows by sample and target, so that an integer weight is a repetition to the last bit."""
    merged = fit.merged
    if len(merged.weight) == len(merged.rows):  # every sample by itself
        first = np.empty_like(merged.member)
        first[merged.member] = np.arange(len(first))
        return _Distinct(first, merged.weight, merged.member)
    Y = fit.target.Y[merged.rows]
    order = np.lexsort((*Y.T[::-1], merged.member))
    member, Y = merged.member[order], Y[order]
    fresh = np.ones(len(order), dtype=bool)
    fresh[1:] = (member[1:] != member[:-1]) | (Y[1:] != Y[:-1]).any(axis=1)
    group = np.empty(len(order), dtype=np.intp)
    group[order] = np.cumsum(fresh) - 1
    return _Distinct(order[fresh], sums_by(group, merged.own_weight, int(fresh.sum())), group)


def checked_lam(name: str, value: Any, at_zero: str = "") -> float:
    """λ as a finite number that is not negative, and positive where `at_zero` says what to use instead of 0."""
    lam = real(name, value)
    if lam == math.inf:
        raise ValueError(
            f"{name}=inf leaves only the constant: the weighted mean of y, or 0 without bias. Use a finite {name}, or "
            "sklearn.dummy for the constant itself"
        )
    if not lam >= 0 or (lam == 0 and at_zero):
        least = f"above 0; {at_zero}" if at_zero else "of at least 0"
        raise ValueError(f"{name}={value!r} must be a finite number {least}")
    return lam
