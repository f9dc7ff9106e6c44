"""Base classes of kernel ridge machines with one or several outputs.

With a linear kernel, samples can be added and removed by recursive least squares, which updates sums over the samples.
"""

from __future__ import annotations

import copy
import math
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from mercer.certificates.copies import widen_outputs_for_copies
from mercer.certificates.least_squares import EXACT_GAP, is_exact
from mercer.estimators.fitting.families.targets import OutputsMachine, SeveralOutputs, SignClassifier, Targets
from mercer.estimators.fitting.mixins import RegressorMethods
from mercer.estimators.fitting.pipeline.fit import Fit, Limits, read_samples
from mercer.estimators.fitting.pipeline.machine import ClassWeight, kernel_of
from mercer.estimators.fitting.pipeline.reporting import warn_user
from mercer.estimators.fitting.pipeline.state import (
    Array,
    BoundKernel,
    Count,
    Flag,
    KernelExpansion,
    Number,
    Record,
    Text,
    fitted,
)
from mercer.estimators.fitting.pipeline.task import Solutions, Solved, Task, Tasks
from mercer.estimators.fitting.reports.coefficients import expansion_of, weight_vector
from mercer.kernels import Kernel
from mercer.places.choose import sums_for
from mercer.places.expansion import Expansion
from mercer.places.host.linear_gram import linear_scale
from mercer.places.sums import Sums
from mercer.problems.least_squares import LeastSquares, RidgeProblem
from mercer.runtime.available import available_if
from mercer.runtime.errors import INDEFINITE, NonPSDKernelWarning, SingularSystemWarning
from mercer.runtime.parameters import one_of, real
from mercer.runtime.refitting import fitted_names
from mercer.runtime.shared_docs import shared_docs
from mercer.samples import checks
from mercer.samples.arrays import Data, Floats, Indices, Weights, freeze, rounded_sums_by, take
from mercer.samples.engine import on_host
from mercer.samples.exact_parts import exact_parts, needs_exact_sum
from mercer.samples.labels import class_weights
from mercer.solvers.least_squares.choose import SOLVERS, solve_least_squares
from mercer.solvers.least_squares.linear import solve_sums
from mercer.solvers.least_squares.solution import LeastSquaresSolution, covariance_bytes, memory_error


class LeastSquaresMachine(OutputsMachine):
    """Base class of least squares machines; subclasses add parameters, tasks, targets and predictions."""

    _default_steps = 2000  # steps of conjugate gradients; all other solvers need a handful

    _FITTED = fitted(
        kernel_=BoundKernel(required=True),
        _expansion_=KernelExpansion(required=True),
        dual_coef_=Array(None, "outputs", flat=True),
        n_iter_=Count(),
        solver_=Text(),
        factor_precision_=Text(),
        rank_=Count(),
        residual_=Number(),
        _sums_=Record(
            Sums,
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
        """Return the problem at one λ on the distinct pairs of sample and target."""
        merged, distinct = fit.merged, _group_equal_rows(fit)
        Y, member = fit.target.Y[merged.rows][distinct.first], merged.member[distinct.first]
        return LeastSquares(Y, distinct.weight, member, len(merged.weight), bool(self.bias), lam)

    def _record_end(self, solved: Solutions[Any]) -> None:
        """Set the attributes that say how the fit ended."""
        super()._record_end(solved)
        self.n_iter_ = solved[0].solution.steps
        self.residual_ = self.certificate_.violation

    def _conclude_rows(self, fit: Fit, solution: LeastSquaresSolution, lam: float) -> None:
        """Set the fitted attributes of a fit whose samples are available."""
        assert fit.kernel is not None
        self._conclude_solution(fit.kernel, solution, lam)
        if solution.C is not None:
            expansion = expansion_of(fit, np.array(solution.C), self.intercept_)
            if fit.merged.X is fit.X and expansion.vectors is not None:  # never share the caller's memory
                expansion = replace(expansion, vectors=copy.copy(expansion.vectors))
            self._expansion_ = expansion
        if solution.beta is not None:
            self.dual_coef_ = freeze(self._to_caller_rows(fit, self._share_coefficients(fit, solution, lam)))
        self._conclude_targets(fit.target)

    def _share_coefficients(self, fit: Fit, solution: LeastSquaresSolution, lam: float) -> Floats:
        """Return β of the rows with weight, and widen the certificate to hold for rows that share a coefficient."""
        assert solution.beta is not None
        distinct, weight = _group_equal_rows(fit), fit.merged.input_weight
        if len(distinct.weight) == len(weight):  # the rows are all distinct
            return solution.beta[distinct.group]
        shares = solution.beta[distinct.group] * (weight / distinct.weight[distinct.group])[:, None]
        diagonal = fit.diagonal[fit.merged.member[distinct.first]]
        exact = needs_exact_sum(diagonal, lam / weight, distinct.group)
        pairs = zip(solution.beta.T, shares.T, strict=True)
        beta = np.column_stack([exact_parts(total, part, distinct.group, exact) for total, part in pairs])
        problem, entry_bounds = self._problem(fit, lam), fit.gram().proof.entry_bounds
        self.certificate_ = widen_outputs_for_copies(
            self.certificate_, problem, solution.beta, beta, weight, distinct.group, entry_bounds,
            of_weights=solution.W is not None,
        )  # fmt: skip
        self.residual_ = self.certificate_.violation
        if self.converged_ and not is_exact(problem, self.certificate_):
            self.stop_reason_, self.converged_ = "rounding floor", False
        return beta

    def _conclude_solution(self, kernel: Kernel, solution: LeastSquaresSolution, lam: float) -> None:
        """Set the fitted attributes that need only the solution, not the samples."""
        if solution.indefinite:
            warn_user(INDEFINITE.format(kernel=kernel), NonPSDKernelWarning)
        if solution.dropped:
            warn_user(
                f"the system is singular to rounding at lam={lam:g}: its effective rank is {solution.rank} of "
                f"{solution.rank + solution.dropped}. The solution of least norm was computed by eigendecomposition; "
                "raise lam for a unique one",
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

    def _to_caller_rows(self, fit: Fit, values: Floats) -> Floats:
        """Return values of the rows with weight as an array over all of the caller's rows, with zeros elsewhere."""
        by_row = np.zeros((fit.n, values.shape[1]))
        by_row[fit.merged.rows] = values
        return by_row[:, 0] if fit.target.flat else by_row

    def _residuals_by_row(self, fit: Fit, residuals: Floats) -> Floats:
        """Return residuals of distinct (sample, target) pairs as an array over all of the caller's rows."""
        return self._to_caller_rows(fit, residuals[_group_equal_rows(fit).group])

    def _early_stop_message(self, X: Data) -> str:
        if self.stop_reason_ in ("max_iter", "max_time"):
            proof = self.certificate_
            return (
                f"{type(self).__name__} stopped early ({self.stop_reason_}): residual {self.residual_:.3g}, gap "
                f"{proof.gap:.3g}, {proof.relative_gap:.1e} of the dual value. Raise {self.stop_reason_} or lam"
            )
        return (
            f"{type(self).__name__} met the rounding floor: float64 proves its solution to a relative gap of "
            f"{self.certificate_.relative_gap:.1e} here, not of {EXACT_GAP:g} (largest residual {self.residual_:.3g}); "
            "raise lam, scale the features, or drop samples that are far from all others"
        )

    @property
    def coef_(self) -> Any:
        """Weights w of the features, one row per output, always dense; only for a linear kernel."""
        return weight_vector(self)


class LeastSquaresRegressor(RegressorMethods, SeveralOutputs, LeastSquaresMachine):
    """Base class of least squares regressors with one or several outputs."""

    @property
    def coef_(self) -> Any:
        """Weights of the features, with one row per output if y had two dimensions; only for a linear kernel."""
        w = super().coef_
        return w[0] if self._flat_ else w


@dataclass(eq=False, repr=False)
class LeastSquaresClassifier(SignClassifier, LeastSquaresMachine):
    """Base class of least squares classifiers, with class weights."""

    _FITTED = fitted(class_weight_=Array("classes"))

    _: KW_ONLY
    class_weight: ClassWeight = None

    def _targets(self, y: ArrayLike | None, classes: np.ndarray | None = None) -> Targets:
        """Return the targets; if `classes` are given, with a class weight for each of them."""
        target = super()._targets(y, classes)
        if classes is None:
            return target
        codes = np.arange(len(classes))  # since the samples may lack some classes
        return replace(target, factor=class_weights(self.class_weight, classes, codes, np.ones(len(classes))))

    def _weigh(self, target: Targets, codes: Indices, weight: Floats) -> tuple[Floats, Targets]:
        """Return the sample weights times the class weights, and the targets with these factors."""
        if target.factor is None:
            factor = class_weights(self.class_weight, target.classes, target.codes, weight)
            target = replace(target, factor=factor)
        return weight * target.factor[target.codes], target

    def _conclude_targets(self, target: Targets) -> None:
        """Set the fitted attributes that depend on y alone."""
        super()._conclude_targets(target)
        self.class_weight_ = freeze(target.factor)


@dataclass(frozen=True, eq=False)
class _DistinctRows:
    """Distinct pairs of sample and target, in an order that depends only on their values."""

    first: Indices  # first row of positive weight that belongs to each pair
    weight: Floats
    group: Indices  # pair to which each row of positive weight belongs


def _group_equal_rows(fit: Fit) -> _DistinctRows:
    """Group the rows of positive weight by sample and target.

    A row of integer weight m then gives the same fit, to the last bit, as m copies of it.
    """
    merged = fit.merged
    if len(merged.weight) == len(merged.rows):  # no sample occurs twice
        first = np.empty_like(merged.member)
        first[merged.member] = np.arange(len(first))
        return _DistinctRows(first, merged.weight, merged.member)
    Y = fit.target.Y[merged.rows]
    order = np.lexsort((*Y.T[::-1], merged.member))
    member, Y = merged.member[order], Y[order]
    is_new = np.ones(len(order), dtype=bool)
    is_new[1:] = (member[1:] != member[:-1]) | (Y[1:] != Y[:-1]).any(axis=1)
    group = np.empty(len(order), dtype=np.intp)
    group[order] = np.cumsum(is_new) - 1
    return _DistinctRows(order[is_new], rounded_sums_by(group, merged.input_weight, int(is_new.sum())), group)


def checked_lam(name: str, value: Any, at_zero: str = "") -> float:
    """Return λ as a finite number ≥ 0, or > 0 if `at_zero` is given: what to use instead of 0."""
    lam = real(name, value)
    if lam == math.inf:
        raise ValueError(
            f"{name}=inf leaves only a constant: the weighted mean of y, or 0 without bias. Use a finite {name}, or "
            "sklearn.dummy for the constant itself"
        )
    if not lam >= 0 or (lam == 0 and at_zero):
        least = f"above 0; {at_zero}" if at_zero else "of at least 0"
        raise ValueError(f"{name}={value!r} must be a finite number {least}")
    return lam


def has_linear_kernel(estimator: Any) -> bool:
    """Return True if samples can be added and removed, which needs a linear kernel; otherwise raise AttributeError."""
    kernel = estimator._kernel()
    if not kernel.bound or linear_scale(kernel) is None:  # a parameter to be taken from X is that of no linear kernel
        raise AttributeError(
            f"partial_fit and forget need a linear kernel, not {estimator.kernel!r}; fit all samples at once"
        )
    return True


@dataclass(eq=False, repr=False)
class RecursiveLeastSquares(LeastSquaresMachine):
    """Base class of machines with a given λ, which for linear kernels can be updated through sums over the samples."""

    lam: float = 1.0
    _: KW_ONLY
    solver: str = "auto"

    def _check_parameters(self) -> None:
        one_of("solver", self.solver, SOLVERS)
        super()._check_parameters()
        self._lam()

    def _lam(self) -> float:
        return checked_lam("lam", self.lam)

    def _tasks(self, fit: Fit) -> Tasks[LeastSquares]:
        return Tasks([Task("", self._problem(fit, self._lam()), partial(solve_least_squares, solver=self.solver))])

    def _conclude(self, fit: Fit, solved: Solutions[LeastSquares]) -> None:
        self._conclude_rows(fit, solved[0].solution, self._lam())

    @available_if(has_linear_kernel)
    @shared_docs
    def forget(self, X: Data, y: ArrayLike, sample_weight: Weights = None) -> Self:
        """Remove samples that were learnt before; only for linear kernels.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Samples to remove.
        y : array of shape (n_samples,)
            Target values of these samples.
        %(given twice)s

        Returns
        -------
        self
            Fitted estimator.
        """
        return self._learn(X, y, sample_weight, -1)

    def _learn(
        self, X: Data, y: ArrayLike, sample_weight: Weights, sign: int, classes: ArrayLike | None = None
    ) -> Self:
        """Add samples to the sums (sign 1) or subtract them (−1), and solve again; on an error nothing changes."""
        trained_copy = copy.copy(self)
        trained_copy._refit(X, y, sample_weight, sign, None if classes is None else np.asarray(classes))
        return self._adopt(trained_copy)

    def _refit(self, X: Data, y: ArrayLike, sample_weight: Weights, sign: int, classes: np.ndarray | None) -> None:
        """Add or subtract samples, and set the fitted attributes of the new solution on this estimator."""
        is_first = not hasattr(self, "_expansion_")
        if is_first and sign < 0:
            check_is_fitted(self)
        if not is_first and not hasattr(self, "_sums_"):
            raise ValueError(
                f"this {type(self).__name__} was fitted with solver {self.solver_!r}, which keeps no sums over the "
                "samples; call partial_fit from the start, or fit with solver='covariance'"
            )
        self._check_parameters()
        kernel, y, sample_weight = kernel_of(vars(self)), on_host(y), on_host(sample_weight)
        samples = read_samples(self, X, kernel, reset=is_first)
        limits = Limits.of(self, self._max_steps(0))
        d = samples.shape[1]
        if covariance_bytes(d) > limits.budget:
            raise memory_error(f"the covariance of {d} features", covariance_bytes(d), limits.budget, "fewer features")
        target = self._targets(y, classes)
        check_consistent_length(samples, target.Y)
        weight, target = self._weigh(target, target.codes, checks.weights(sample_weight, len(target.Y)))
        sums = self._sums_with(kernel, samples, target.Y, weight, sign)
        solve = partial(solve_sums, scale=linear_scale(kernel) or 1.0)
        task = Task("", RidgeProblem(self._lam(), sums.bias), solve)
        solved = Solved(task, *task.solve(task.problem, sums, limits.stop))
        for name in fitted_names(self):
            if name not in ("n_features_in_", "feature_names_in_"):
                delattr(self, name)
        self._record_end(Solutions.of([solved]))
        self._conclude_solution(kernel, solved.solution, self._lam())
        self._conclude_targets(target)
        if not self.converged_:
            self._warn_early(self._lost_digits_message() if sign < 0 else self._early_stop_message(samples))

    def _lost_digits_message(self) -> str:
        return (
            f"{type(self).__name__} has forgotten samples so large that the remaining sums have lost digits: its "
            f"certificate proves a relative gap of {self.certificate_.relative_gap:.1e}, not of {EXACT_GAP:g}; fit the "
            "remaining samples again"
        )

    def _sums_with(self, kernel: Kernel, X: Any, Y: Floats, weight: Floats, sign: int) -> Sums:
        """Return the sums over all samples so far, with these samples added (sign 1) or subtracted (−1)."""
        rows = np.flatnonzero(weight > 0)
        sums: Sums | None = getattr(self, "_sums_", None)
        if len(rows):
            if sums is not None and sums.xy.shape[1] != Y.shape[1]:
                raise ValueError(f"y has {Y.shape[1]} outputs, but the samples before had {sums.xy.shape[1]}")
            if sums is not None and sums.bias != bool(self.bias):
                raise ValueError(
                    f"bias={self.bias!r}, but the samples before were learnt with bias={sums.bias}, about "
                    f"{'their mean' if sums.bias else 'zero'}; set it back, or make a new estimator"
                )
            problem = LeastSquares(Y[rows], weight[rows], np.arange(len(rows)), len(rows), bool(self.bias))
            new_sums = sums_for(kernel, take(X, rows) if len(rows) < len(weight) else X, problem)
            sums = new_sums if sums is None else sums.plus(new_sums) if sign > 0 else sums.minus(new_sums)
        if sums is None:
            raise ValueError("all sample weights are zero: there is nothing to learn; give positive weights")
        return sums
