"""`mercer.theory.insight`: norms, margins, risks, complexities and bounds of a fitted model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from mercer.estimators.fitting.families.kernel_weights import MultipleKernelMachine
from mercer.estimators.fitting.pipeline.fit import read_samples
from mercer.kernels import Kernel
from mercer.notes.theory.bound import IID, Assumption, Bound
from mercer.notes.theory.complexity import Complexity, ball_complexity, trace_bound
from mercer.notes.theory.margin_bounds import (
    FIXED_KERNEL,
    enclosing_ball,
    leave_one_out_bound,
    norm_with_bias,
    soft_margin_bound,
    squared_ratio,
    support_vectors_bound,
)
from mercer.notes.theory.risks import risk
from mercer.notes.theory.sample_bounds import linear_rules_bound
from mercer.problems.margins import Margins, SeveralMargins
from mercer.runtime.parameters import bias_kind
from mercer.samples.arrays import Floats, matrix_part, n_samples, take
from mercer.samples.engine import on_host, to_engine
from mercer.tables.estimator import Tabular
from mercer.tables.unwrap import Unwrapped, unwrap

# Largest number of rows for which the whole matrix K is computed, for the complexity and the enclosing ball: 32 MB.
_WHOLE_MATRIX_ROWS = 2000
# Parameters that a search may choose without changing the kernel or the features.
_NON_KERNEL_PARAMETERS = ("C", "theta", "lam", "epsilon", "nu", "delta", "tol")
_BiasKind = Literal["none", "regularized", "free"]


@dataclass(frozen=True, eq=False, repr=False)
class Insight:
    """Quantities of learning theory for one function of a fitted model.

    Attributes
    ----------
    name : str
        Classes or output to which the function belongs.
    n, n_features : int
        Numbers of samples and features; 0 features if the samples are not vectors.
    norm, b : float
        Norm ‖w‖ and bias.
    bias : str
        "none", "regularized" (a weight like the others) or "free".
    origin_radius : float
        Radius R₀ = max √k(x, x).
    enclosing_radius : float or None
        Radius R of the smallest enclosing ball; None if there are too many samples for a kernel matrix, or if the
        kernel is not positive definite.
    risks : dict
        Empirical risks by the name of the loss, for the function that `margins.function` names: the latent mean of
        `GaussianProcessClassifier`, not its `decision_function`.
    complexity : Complexity or Bound
        Rademacher complexity R̂ of the ball whose radius is ‖w‖; only a bound on it if there are many samples.
    bounds : dict
        Bounds by name.
    margins : Margins or None
        Margins of a classifier.
    n_support : int or None
        Number of support vectors; None for a model without.
    kernel_values : int or None
        Number of kernel values that the fit computed, if it was counted (for machines with one problem).
    """

    name: str
    n: int
    n_features: int
    norm: float
    b: float
    bias: str
    origin_radius: float
    enclosing_radius: float | None
    risks: Mapping[str, float]
    complexity: Complexity | Bound
    bounds: Mapping[str, Bound]
    margins: Margins | None
    n_support: int | None
    kernel_values: int | None = None

    @property
    def effective_dimension(self) -> float:
        """Effective dimension R₀²‖w‖², on which the sample complexity of a large margin depends."""
        return (self.origin_radius * self.norm) ** 2

    @property
    def least_kernel_values(self) -> int | None:
        """Lower bound n · n_support on the kernel values of a fit, which must check every sample."""
        return None if self.n_support is None else self.n * self.n_support

    @property
    def least_operations(self) -> int | None:
        """Order of magnitude (free vectors)³ of the operations that a fit needs even if its free vectors were known."""
        if self.margins is None or self.margins.standings is None:
            return None
        return len(self.margins.free) ** 3

    @property
    def kernel_values_multiple(self) -> float | None:
        """Kernel values that the fit computed, as a multiple of the lower bound."""
        least = self.least_kernel_values
        return None if self.kernel_values is None or not least else self.kernel_values / least

    def __repr__(self) -> str:
        prefix = f"{self.name}: " if self.name else ""
        return f"Insight({prefix}{self.n} samples, ‖w‖ {self.norm:.4g}, {len(self.bounds)} bounds; print() shows all)"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Show the quantities in a notebook; inside a list, one line."""
        if len(getattr(printer, "stack", ())) > 1:
            printer.text(repr(self))
            return
        bounds = f"bounds                  {', '.join(self.bounds)}; print() shows them" if self.bounds else ""
        printer.text("\n".join([*self._numbers(), bounds]).rstrip())

    def __str__(self) -> str:
        lines = self._numbers()
        for name, bound in self.bounds.items():
            lines += ["", name, *("  " + line for line in str(bound).splitlines())]
        return "\n".join(lines)

    def _numbers(self) -> list[str]:
        """Return the lines of the report, without the bounds."""
        lines = [self.name] if self.name else []
        lines.append(f"samples                 {self.n}, {self.n_features} features")
        if self.margins is not None and self.margins.function != "f":
            lines.append(
                f"function                {self.margins.function}, to which the risks belong; decision_function differs"
            )
        lines.append(f"|w|                     {self.norm:.6g}, bias {self.b:.6g} ({self.bias})")
        if self.margins is not None:
            smallest = self.margins.geometric_margin
            lines.append(f"margins                 rho {self.margins.rho:.6g}, smallest {smallest:.6g}")
        radius = "not computed" if self.enclosing_radius is None else f"{self.enclosing_radius:.6g}"
        lines.append(f"radius                  around the origin {self.origin_radius:.6g}, smallest ball {radius}")
        dimension = f"{self.effective_dimension:.6g} = R²|w|², compared with {self.n_features} features"
        lines.append(f"effective dimension     {dimension}")
        lines += [f"{f'risk, {name}':23} {value:.6g}" for name, value in self.risks.items()]
        if isinstance(self.complexity, Complexity):
            error, limit = self.complexity.standard_error, self.complexity.bound
            bound_text = "" if limit is None else f", at most {limit.value:.6g}"
            lines.append(f"Rademacher complexity   {self.complexity.value:.6g} ± {error:.2g}{bound_text}")
        else:
            lines.append(f"Rademacher complexity   at most {self.complexity.value:.6g}")
        if self.n_support is not None:
            lines.append(f"support vectors         {self.n_support}")
            multiple = self.kernel_values_multiple
            fit_text = "" if multiple is None else f"; the fit computed {self.kernel_values}, {multiple:.3g} times that"
            lines.append(f"kernel values           at least {self.least_kernel_values} = n·support vectors{fit_text}")
        if self.least_operations is not None:
            lines.append(f"operations              at least of order {self.least_operations} = (free vectors)³")
        return lines


def insight(model: Any, X: Any, y: ArrayLike | None = None, *, delta: float = 0.05) -> Insight | list[Insight]:
    """Compute norms, margins, risks, complexities and bounds of a fitted model.

    Parameters
    ----------
    model : estimator
        Fitted kernel or linear machine, or a model that contains one, as for `mercer.unwrap`. The quantities describe
        the machine and its transformed samples; for the regression of a table they have the unit of its standardised
        targets.
    X, y : arrays
        Samples and targets that the model was trained on. For other samples the risks are right, but the bounds and
        the number of support vectors do not apply.
    delta : float, default=0.05
        Probability with which a bound may fail.

    Returns
    -------
    Insight or list of Insight
        `norm`, bias `b`, `origin_radius`, `enclosing_radius`, `effective_dimension` R₀²‖w‖², `risks` and `bounds` by
        name, `complexity`, `margins`, `n_support`, and the least cost of a fit, `least_kernel_values` and
        `least_operations`, with `kernel_values_multiple` for this fit. `print` shows all. For a model with several
        hyperplanes or outputs, a list with an Insight for each.
    """
    unwrapped = unwrap(model)
    model = unwrapped.machine
    check_is_fitted(model)
    X, y = to_engine(unwrapped.rows(X)), unwrapped.target(on_host(y))
    functions = model.function_
    functions = functions if isinstance(functions, list) else [functions]
    kernel: Kernel = functions[0].kernel
    if is_classifier(model):
        margins = model.margins(X, y)
        parts = list(margins) if isinstance(margins, SeveralMargins) else [margins]
        learnt = _Learnt(kernel=_has_learnt_kernel(unwrapped), features=_has_learnt_features(unwrapped))
        insights = [_plane_insight(model, kernel, X, part, delta, learnt) for part in parts]
    else:
        X = read_samples(model, X, kernel, reset=False)  # checks the names of columns
        outputs = [np.asarray(f(X), dtype=np.float64) for f in functions]
        targets: list[Floats | None] = [None] * len(outputs)
        if is_regressor(model) and y is not None:
            table = np.asarray(y, dtype=np.float64)
            targets = list(table.T) if table.ndim == 2 else [table] * len(outputs)
        triples = zip(functions, outputs, targets, strict=True)
        insights = [_output_insight(model, kernel, X, f, values, target) for f, values, target in triples]
    return insights[0] if len(insights) == 1 else insights


@dataclass(frozen=True)
class _Learnt:
    """Two flags: the kernel's parameters, and the features, were chosen from the samples."""

    kernel: bool
    features: bool


def _plane_insight(model: Any, kernel: Kernel, X: Any, margins: Margins, delta: float, learnt: _Learnt) -> Insight:
    """Return the quantities of one hyperplane of a classifier."""
    rows = X
    if len(margins.rows) < n_samples(X):  # only samples of the two classes
        is_precomputed = kernel.accepts == "gram"
        rows = matrix_part(X, margins.rows) if is_precomputed else take(X, margins.rows)
    n, bias = len(margins.rows), _bias_kind(model, margins.b)
    feature = float(getattr(model, "intercept_scaling", 1.0))
    trace = float(kernel.diag(rows).sum())
    norm, trace_with_bias = norm_with_bias(margins.rkhs_norm, trace, n, margins.b, bias, feature)
    constant = feature if bias == "regularized" else 0.0
    base = _function_insight(model, kernel, rows, margins.rkhs_norm, margins.b, norm, trace_with_bias, constant)
    signs, values = margins.signs, margins.decision_values
    risks = {loss: risk(signs, values, loss=loss) for loss in ("zero_one", "ramp", "hinge")}
    bound = soft_margin_bound(margins.slacks, trace_with_bias, norm, delta=delta, bias=bias == "free")
    bounds = {"soft margin": _check_assumptions(bound, learnt, kernel)}
    # A hard margin meets its constraints to tol, so that smaller slacks count as 0.
    # That of a plane between classes trained jointly depends on all classes, and the bound is not for it.
    is_joint = bool(getattr(model, "_joint_planes", False))
    if margins.slacks.max() <= 1e-3 and margins.rkhs_norm > 0 and not is_joint:
        radius = base.enclosing_radius if bias == "free" else float(np.hypot(base.origin_radius, constant))
        if radius is not None and squared_ratio(radius, 1 / norm) < np.inf:
            same_kernel_assumption = Assumption(
                "a fit without one sample has the same kernel and features", not any(vars(learnt).values())
            )
            leave_one_out = leave_one_out_bound(radius, 1 / norm, n, bias=bias == "free", separable=True)
            bounds["leave one out"] = replace(
                leave_one_out, assumptions=(*leave_one_out.assumptions, same_kernel_assumption)
            )
    recipe = kernel.recipe()
    if recipe is not None and recipe.linear:
        n_features = int(rows.shape[1])
        rules = linear_rules_bound(risks["zero_one"], n_features, n, delta=delta, bias=bias != "none")
        if learnt.features:
            fixed = (
                assumption if assumption is IID else replace(assumption, holds=False)
                for assumption in rules.assumptions
            )
            rules = replace(rules, assumptions=tuple(fixed))
        bounds["linear rules"] = rules
    n_support = None if margins.standings is None else len(margins.free) + len(margins.bounded)
    C = _common_penalty(model)
    if C is not None and n_support is not None:
        gap = float(model.certificate_.gap)
        has_equal_weights = _has_equal_weights(model, C, norm, risks["hinge"] * n, gap)
        bounds["support vectors"] = support_vectors_bound(norm, risks["hinge"], C, n, gap=gap, plain=has_equal_weights)
    name = f"{margins.classes[1]} against {margins.classes[0]}"
    return replace(base, name=name, risks=risks, bounds=bounds, margins=margins, n_support=n_support)


def _output_insight(model: Any, kernel: Kernel, X: Any, f: Any, values: Floats, target: Floats | None) -> Insight:
    """Return the quantities of one output of a regression or a novelty detector."""
    norm = f.norm if kernel.accepts != "gram" else float(np.sqrt(max(0.0, f.coefficients @ (values - f.b))))
    base = _function_insight(model, kernel, X, norm, f.b, norm, float(kernel.diag(X).sum()), 0.0)
    support = getattr(model, "support_", None)
    risks = {} if target is None else {"squared": risk(target, values, loss="squared")}
    return replace(base, risks=risks, n_support=None if support is None else len(support))


def _function_insight(
    model: Any, kernel: Kernel, X: Any, norm: float, b: float, ball_radius: float, trace: float, constant: float
) -> Insight:
    """Return the quantities that every function has.

    R̂ is the complexity of the ball ‖w‖ ≤ `ball_radius`. If `constant` is not 0, samples have one more feature with
    this value.
    """
    diagonal = kernel.diag(X)
    complexity, radius = _complexity_and_radius(kernel, X, len(diagonal), ball_radius, trace, constant)
    return Insight(
        name="",
        n=len(diagonal),
        n_features=int(np.shape(X)[1]) if kernel.accepts == "vectors" and hasattr(X, "shape") else 0,
        norm=norm,
        b=b,
        bias=_bias_kind(model, b),
        origin_radius=float(np.sqrt(max(0.0, float(diagonal.max())))),
        enclosing_radius=radius,
        risks={},
        complexity=complexity,
        bounds={},
        margins=None,
        n_support=None,
        kernel_values=getattr(model, "n_kernel_values_", None),
    )


def _check_assumptions(bound: Bound, learnt: _Learnt, kernel: Kernel) -> Bound:
    """Mark the assumptions that are known to hold or to fail: a fixed kernel, and its definiteness."""
    assumptions = tuple(
        replace(assumption, holds=False)
        if assumption is FIXED_KERNEL and (learnt.kernel or learnt.features)
        else assumption
        for assumption in bound.assumptions
    )
    is_definite = {"yes": True, "no": False}.get(kernel.positive_definite)
    return replace(bound, assumptions=(*assumptions, Assumption("the kernel is positive semi-definite", is_definite)))


def _has_learnt_features(unwrapped: Unwrapped) -> bool:
    """Return True if a step before the machine was fitted to samples, such as a scaler or a table's encoding."""
    return any(isinstance(step, Tabular) or get_tags(step).requires_fit for step in unwrapped.steps)


def _has_learnt_kernel(unwrapped: Unwrapped) -> bool:
    """Return True if samples chose the kernel or its parameters: gamma="scale", a search, learnt weights or scales."""
    model = unwrapped.machine
    for search in (*unwrapped.layers, model):
        chosen_params = getattr(search, "best_params_", {})
        if any(name.rpartition("__")[2] not in _NON_KERNEL_PARAMETERS for name in chosen_params):
            return True
    if isinstance(model, MultipleKernelMachine) or getattr(model, "optimise", False):
        return True
    kernel, gamma = getattr(model, "kernel", None), getattr(model, "gamma", None)
    if isinstance(kernel, Kernel):
        inner_kernels = [value for value in kernel.get_params().values() if isinstance(value, Kernel)]
        return not kernel.bound or any(part.learnt for part in (kernel, *inner_kernels))
    return (
        isinstance(kernel, str)
        and kernel not in ("linear", "precomputed")
        and isinstance(gamma, str)
        and gamma != "auto"
    )


def _has_equal_weights(model: Any, C: float, norm: float, slack: float, gap: float) -> bool:
    """Return whether Σα = ‖w‖² + CΣξ − gap and every α ≤ C, which fails with sample weights."""
    alpha = np.abs(np.asarray(model.dual_coef_))
    alpha_sum = norm * norm + C * slack - gap
    return bool(
        alpha.max(initial=0.0) <= C * (1 + 1e-9) and abs(alpha.sum() - alpha_sum) <= 1e-6 * (norm * norm + C * slack)
    )


def _complexity_and_radius(
    kernel: Kernel, X: Any, n: int, norm: float, trace: float, constant: float
) -> tuple[Complexity | Bound, float | None]:
    """Return R̂ of the ball ‖w‖ ≤ `norm`, and the radius of the smallest enclosing ball if it is computed.

    A `constant` other than 0 is the value of one more feature, which counts for R̂ only.
    """
    if n > _WHOLE_MATRIX_ROWS:
        return trace_bound(trace, n, norm=norm), None
    K = kernel(X)
    complexity = ball_complexity(K + constant**2, norm=norm, n_draws=256)
    # A more negative eigenvalue is not rounding: the kernel has no feature space, and so no ball.
    if kernel.positive_definite != "yes" and np.linalg.eigvalsh(K)[0] < -1e-10 * np.abs(K.diagonal()).max():
        return complexity, None
    return complexity, enclosing_ball(K, kernel="precomputed").radius


def _bias_kind(model: Any, b: float) -> _BiasKind:
    """Return the kind of bias for the bounds: free unless the model says otherwise or b is 0."""
    kind = bias_kind(getattr(model, "bias", None))
    if kind == "regularized":
        return "regularized"
    return "none" if kind is False or b == 0 else "free"


def _common_penalty(model: Any) -> float | None:
    """Return C of a 1-norm soft margin with the same C for all samples; None for other machines."""
    C = getattr(model, "C", None)
    is_plain = getattr(model, "slack", None) == "l1" and getattr(model, "class_weight", None) is None
    uses_C = getattr(model, "theta", None) is None and getattr(model, "lam", None) is None
    return float(C) if C is not None and is_plain and uses_C and np.isfinite(C) and len(model.classes_) == 2 else None
