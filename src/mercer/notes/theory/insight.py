"""What theory says about a trained machine and its training samples, in numbers for a person."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from mercer.estimators.fitting.families.kernel_weights import KernelWeights
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
from mercer.samples.engine import on_host, placed
from mercer.tables.estimator import Tabular
from mercer.tables.unwrap import Asked, ask

# Rows. Up to here the whole matrix K is made for the complexity and the enclosing ball: 32 MB, a plain choice.
_WHOLE_MATRIX_ROWS = 2000
# Parameters that a search may choose without a change of the kernel or the features.
_NOT_OF_THE_KERNEL = ("C", "theta", "lam", "epsilon", "nu", "delta", "tol")
_BiasKind = Literal["none", "regularized", "free"]


@dataclass(frozen=True, eq=False, repr=False)
class Insight:
    """The numbers of one function of a machine.

    Attributes
    ----------
    name : str
        Of which classes or which output.
    n, n_features : int
        Samples and features; features of samples that are no vectors are counted as 0.
    norm, b : float
        ‖w‖ and the bias.
    bias : str
        "none", "regularized" (a weight like the others) or "free".
    origin_radius : float
        R₀ = max √k(x, x).
    enclosing_radius : float or None
        R of the smallest ball; None for more samples than a matrix is made for, or a kernel that is not definite.
    risks : dict
        Empirical risks by the name of the loss, of the function that `margins.function` names: the latent mean of
        `GaussianProcessClassifier`, not its `decision_function`.
    complexity : Complexity or Bound
        R̂ of the ball ‖w‖ ≤ ‖w‖ of this machine; only its bound where there are many samples.
    bounds : dict
        Bounds by name.
    margins : Margins or None
        Of a classifier.
    n_support : int or None
        Support vectors; None for a machine without.
    kernel_values : int or None
        How many kernel values the fit computed, where that was counted: for machines of one problem.
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
        """R₀²‖w‖²: what the sample complexity of a large margin depends on, in the place of the dimension."""
        return (self.origin_radius * self.norm) ** 2

    @property
    def least_kernel_values(self) -> int | None:
        """n times the support vectors: no fit can do with fewer kernel values, for it must check every sample."""
        return None if self.n_support is None else self.n * self.n_support

    @property
    def least_operations(self) -> int | None:
        """(free vectors)³: what solving for them costs, up to a factor, even if one knew which vectors are free."""
        if self.margins is None or self.margins.standings is None:
            return None
        return len(self.margins.free) ** 3

    @property
    def kernel_values_multiple(self) -> float | None:
        """The kernel values that the fit computed, as a multiple of the least."""
        least = self.least_kernel_values
        return None if self.kernel_values is None or not least else self.kernel_values / least

    def __repr__(self) -> str:
        named = f"{self.name}: " if self.name else ""
        return f"Insight({named}{self.n} samples, ‖w‖ {self.norm:.4g}, {len(self.bounds)} bounds; print it for all)"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """In a notebook the numbers; of several functions a line for each."""
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
        lines = [self.name] if self.name else []
        lines.append(f"samples                 {self.n}, {self.n_features} features")
        if self.margins is not None and self.margins.function != "f":
            lines.append(
                f"function                {self.margins.function}, whose risks these are, not decision_function's"
            )
        lines.append(f"|w|                     {self.norm:.6g}, bias {self.b:.6g} ({self.bias})")
        if self.margins is not None:
            smallest = self.margins.geometric_margin
            lines.append(f"margins                 rho {self.margins.rho:.6g}, smallest {smallest:.6g}")
        radius = "not computed" if self.enclosing_radius is None else f"{self.enclosing_radius:.6g}"
        lines.append(f"radius                  around the origin {self.origin_radius:.6g}, smallest ball {radius}")
        dimension = f"{self.effective_dimension:.6g} = R²|w|², beside {self.n_features} features"
        lines.append(f"effective dimension     {dimension}")
        lines += [f"{f'risk, {name}':23} {value:.6g}" for name, value in self.risks.items()]
        if isinstance(self.complexity, Complexity):
            error, limit = self.complexity.standard_error, self.complexity.bound
            above = "" if limit is None else f", at most {limit.value:.6g}"
            lines.append(f"Rademacher complexity   {self.complexity.value:.6g} ± {error:.2g}{above}")
        else:
            lines.append(f"Rademacher complexity   at most {self.complexity.value:.6g}")
        if self.n_support is not None:
            lines.append(f"support vectors         {self.n_support}")
            multiple = self.kernel_values_multiple
            used = "" if multiple is None else f"; the fit computed {self.kernel_values}, {multiple:.3g} times as many"
            lines.append(f"kernel values           at least {self.least_kernel_values} = n·support vectors{used}")
        if self.least_operations is not None:
            lines.append(f"operations              of the order of {self.least_operations} = (free vectors)³")
        return lines


def insight(model: Any, X: Any, y: ArrayLike | None = None, *, delta: float = 0.05) -> Insight | list[Insight]:
    """What theory says about a trained machine; a list with one entry per plane or output, if it has several.

    Parameters
    ----------
    model : estimator
        A trained kernel machine or linear machine, or what `mercer.ask` takes: the machine inside is told of, and the
        numbers are about its own samples and, of a table's regression, in the unit of its standardised targets.
    X, y : the samples and targets that it was trained on
        Of other samples the risks are right, but the bounds and the count of support vectors are not about them.
    delta : float, default=0.05
        The probability with which a bound may fail.

    Returns
    -------
    Insight
        The `norm`, bias `b`, `origin_radius`, `enclosing_radius` and `effective_dimension` R₀²‖w‖² of a function, its
        `risks` and `bounds` by name, `complexity`, `margins`, `n_support`, and what a fit costs at least:
        `least_kernel_values` and `least_operations`, with `kernel_values_multiple` for this one. Print it for all.
    """
    asked = ask(model)
    model = asked.machine
    check_is_fitted(model)
    X, y = placed(asked.rows(X)), asked.target(on_host(y))
    functions = model.function_
    functions = functions if isinstance(functions, list) else [functions]
    kernel: Kernel = functions[0].kernel
    if is_classifier(model):
        margins = model.margins(X, y)
        parts = list(margins) if isinstance(margins, SeveralMargins) else [margins]
        origin = _Origin(kernel=_has_learnt_kernel(asked), features=_has_learnt_features(asked))
        found = [_of_plane(model, kernel, X, part, delta, origin) for part in parts]
    else:
        X = read_samples(model, X, kernel, reset=False)  # which compares the names of columns
        outputs = [np.asarray(f(X), dtype=np.float64) for f in functions]
        targets: list[Floats | None] = [None] * len(outputs)
        if is_regressor(model) and y is not None:
            table = np.asarray(y, dtype=np.float64)
            targets = list(table.T) if table.ndim == 2 else [table] * len(outputs)
        each = zip(functions, outputs, targets, strict=True)
        found = [_of_output(model, kernel, X, f, values, target) for f, values, target in each]
    return found[0] if len(found) == 1 else found


@dataclass(frozen=True)
class _Origin:
    """True for what was chosen by looking at samples: the kernel's parameters, and the features that it is given."""

    kernel: bool
    features: bool


def _of_plane(model: Any, kernel: Kernel, X: Any, margins: Margins, delta: float, origin: _Origin) -> Insight:
    rows = X
    if len(margins.rows) < n_samples(X):  # of a matrix of kernel values, their part of it
        gram = kernel.accepts == "gram"
        rows = matrix_part(X, margins.rows) if gram else take(X, margins.rows)
    n, bias = len(margins.rows), _bias_kind(model, margins.b)
    feature = float(getattr(model, "intercept_scaling", 1.0))
    trace = float(kernel.diag(rows).sum())
    norm, whole_trace = norm_with_bias(margins.rkhs_norm, trace, n, margins.b, bias, feature)
    constant = feature if bias == "regularized" else 0.0
    base = _of_function(model, kernel, rows, margins.rkhs_norm, margins.b, norm, whole_trace, constant)
    signs, values = margins.signs, margins.decision_values
    risks = {loss: risk(signs, values, loss=loss) for loss in ("zero_one", "ramp", "hinge")}
    known = soft_margin_bound(margins.slacks, whole_trace, norm, delta=delta, bias=bias == "free")
    bounds = {"soft margin": _with_knowledge(known, origin, kernel)}
    # A hard margin meets its constraints to tol: smaller slacks count as none.
    if margins.slacks.max() <= 1e-3 and margins.rkhs_norm > 0:
        one = base.enclosing_radius if bias == "free" else float(np.hypot(base.origin_radius, constant))
        if one is not None and squared_ratio(one, 1 / norm) < np.inf:
            same = Assumption(
                "a fit without one sample has the same kernel and features", not any(vars(origin).values())
            )
            left_out = leave_one_out_bound(one, 1 / norm, n, bias=bias == "free", separable=True)
            bounds["leave one out"] = replace(left_out, assumptions=(*left_out.assumptions, same))
    recipe = kernel.recipe()
    if recipe is not None and recipe.linear:
        wide = int(rows.shape[1])
        rules = linear_rules_bound(risks["zero_one"], wide, n, delta=delta, bias=bias != "none")
        if origin.features:
            fixed = (each if each is IID else replace(each, holds=False) for each in rules.assumptions)
            rules = replace(rules, assumptions=tuple(fixed))
        bounds["linear rules"] = rules
    n_support = None if margins.standings is None else len(margins.free) + len(margins.bounded)
    C = _soft_price(model)
    if C is not None and n_support is not None:
        gap = float(model.certificate_.gap)
        plain = _has_one_price(model, C, norm, risks["hinge"] * n, gap)
        bounds["support vectors"] = support_vectors_bound(norm, risks["hinge"], C, n, gap=gap, plain=plain)
    name = f"{margins.classes[1]} against {margins.classes[0]}"
    return replace(base, name=name, risks=risks, bounds=bounds, margins=margins, n_support=n_support)


def _of_output(model: Any, kernel: Kernel, X: Any, f: Any, values: Floats, target: Floats | None) -> Insight:
    norm = f.norm if kernel.accepts != "gram" else float(np.sqrt(max(0.0, f.coefficients @ (values - f.b))))
    base = _of_function(model, kernel, X, norm, f.b, norm, float(kernel.diag(X).sum()), 0.0)
    support = getattr(model, "support_", None)
    risks = {} if target is None else {"squared": risk(target, values, loss="squared")}
    return replace(base, risks=risks, n_support=None if support is None else len(support))


def _of_function(
    model: Any, kernel: Kernel, X: Any, norm: float, b: float, ball: float, trace: float, constant: float
) -> Insight:
    """What can be said of every function; R̂ is that of ‖w‖ ≤ `ball`, with a `constant` feature where there is one."""
    diagonal = kernel.diag(X)
    complexity, radius = _complexity_and_radius(kernel, X, len(diagonal), ball, trace, constant)
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


def _with_knowledge(bound: Bound, origin: _Origin, kernel: Kernel) -> Bound:
    """The bound with what is known of its assumptions here: parameters that came from the data, and the kernel."""
    assumptions = tuple(
        replace(each, holds=False) if each is FIXED_KERNEL and (origin.kernel or origin.features) else each
        for each in bound.assumptions
    )
    definite = {"yes": True, "no": False}.get(kernel.positive_definite)
    return replace(bound, assumptions=(*assumptions, Assumption("the kernel is positive semi-definite", definite)))


def _has_learnt_features(asked: Asked) -> bool:
    """Return True if a step before the machine was fitted to samples, such as a scaler or a table's encoding."""
    return any(isinstance(step, Tabular) or get_tags(step).requires_fit for step in asked.steps)


def _has_learnt_kernel(asked: Asked) -> bool:
    """Return True if samples chose the kernel or its parameters: gamma="scale", a search, learnt weights or scales."""
    model = asked.machine
    for search in (*asked.layers, model):
        chosen = getattr(search, "best_params_", {})
        if any(name.rpartition("__")[2] not in _NOT_OF_THE_KERNEL for name in chosen):
            return True
    if isinstance(model, KernelWeights) or getattr(model, "optimise", False):
        return True
    kernel, gamma = getattr(model, "kernel", None), getattr(model, "gamma", None)
    if isinstance(kernel, Kernel):
        inside = [value for value in kernel.get_params().values() if isinstance(value, Kernel)]
        return not kernel.bound or any(each.learnt for each in (kernel, *inside))
    return (
        isinstance(kernel, str)
        and kernel not in ("linear", "precomputed")
        and isinstance(gamma, str)
        and gamma != "auto"
    )


def _has_one_price(model: Any, C: float, norm: float, slack: float, gap: float) -> bool:
    """Whether Σα = ‖w‖² + CΣξ − gap with no α above C, which weights of samples would spoil."""
    alpha = np.abs(np.asarray(model.dual_coef_))
    expected = norm * norm + C * slack - gap
    return bool(
        alpha.max(initial=0.0) <= C * (1 + 1e-9) and abs(alpha.sum() - expected) <= 1e-6 * (norm * norm + C * slack)
    )


def _complexity_and_radius(
    kernel: Kernel, X: Any, n: int, norm: float, trace: float, constant: float
) -> tuple[Complexity | Bound, float | None]:
    """R̂ of the ball, with a constant feature where there is one, and the radius of the smallest ball without it."""
    if n > _WHOLE_MATRIX_ROWS:
        return trace_bound(trace, n, norm=norm), None
    K = kernel(X)
    complexity = ball_complexity(K + constant**2, norm=norm, n_draws=256)
    # An eigenvalue as negative as this is more than rounding: the samples lie in no space with balls.
    if kernel.positive_definite != "yes" and np.linalg.eigvalsh(K)[0] < -1e-10 * np.abs(K.diagonal()).max():
        return complexity, None
    return complexity, enclosing_ball(K, kernel="precomputed").radius


def _bias_kind(model: Any, b: float) -> _BiasKind:
    """What the bias is to a bound; anything but a machine that says otherwise has a free one, unless it is 0."""
    said = bias_kind(getattr(model, "bias", None))
    if said == "regularized":
        return "regularized"
    return "none" if said is False or b == 0 else "free"


def _soft_price(model: Any) -> float | None:
    """C of a 1-norm soft margin that all samples share; None for other machines."""
    C = getattr(model, "C", None)
    plain = getattr(model, "slack", None) == "l1" and getattr(model, "class_weight", None) is None
    given = getattr(model, "theta", None) is None and getattr(model, "lam", None) is None
    return float(C) if C is not None and plain and given and np.isfinite(C) and len(model.classes_) == 2 else None
