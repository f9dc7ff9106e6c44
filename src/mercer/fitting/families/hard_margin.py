"""What the hard margin adds to a classifier: no slack, so that it may not exist, and then the evidence.

One sample with both labels is found before any kernel is evaluated. Everything else is decided by the bounds that the
solver proves (mercer.solvers.dual.hard_margin).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from mercer.arrays import Floats, Indices, is_sparse, take
from mercer.certificates.hulls import Centring
from mercer.data.merging import Merged, clashes
from mercer.errors import NotSeparableError
from mercer.fitting.pipeline.fit import Fit
from mercer.fitting.pipeline.task import Solutions, Solved
from mercer.fitting.reports.coefficients import merged_table, table_expansion
from mercer.gram import Gram, gram_for


def refuse_both_labels(merged: Merged, n_threads: int) -> None:
    """Raise if one sample carries two labels: no function separates it from itself."""
    groups = clashes(merged.X, merged.y, n_threads)
    if groups:
        rows = [merged.rows[np.isin(merged.member, group)] for group in groups]
        raise NotSeparableError(
            f"C=inf, the hard margin, does not exist: rows {rows[0][:6].tolist()} hold the same sample with different "
            f"labels{f', and so do {len(rows) - 1} other groups of rows' if len(rows) > 1 else ''}. Use a finite C, or "
            "clean the labels",
            rows=rows,
        )


def centred_place(fit: Fit, bias: Any) -> tuple[Callable[[int], Gram] | None, Centring]:
    """Where a linear kernel's hulls are found: around the medians, which no outlier moves, so that offsets cancel.

    With a free bias the hulls may lie anywhere. Any other kernel, and sparse rows, keep the fit's own place.
    """
    X, kernel = fit.merged.X, fit.kernel
    assert kernel is not None
    recipe = None if fit.precomputed else kernel.recipe()
    if bias is not True or recipe is None or not recipe.linear or is_sparse(X):
        return None, Centring()
    X = X.astype(np.float64, copy=False)
    centre = np.median(X, axis=0)
    centred = X - centre
    back = centred - X
    lost = (X - (centred - back)) - (centre + back)  # exactly what rounding took from the difference (Knuth's TwoSum)
    moved = math.sqrt(recipe.scale * float(np.max(np.sum(lost * lost, axis=1), initial=0.0))) * (1 + 1e-9)

    @lru_cache(maxsize=1)
    def place(n_threads: int) -> Gram:
        return gram_for(kernel, centred, fit.limits.budget, n_threads)

    return place, Centring(moved, math.sqrt(recipe.scale) * float(np.linalg.norm(centre)), X.shape[1])


def bias_between(fit: Fit, solved: Solutions) -> Floats:
    """b of each task halfway between its support vectors of both classes, in the arithmetic of prediction.

    The solver's b belongs to centred samples. What moving it to the origin rounds is that of w times an offset.
    """
    table = merged_table(fit.merged, solved)
    used = np.flatnonzero(table.lengths)
    none = np.zeros(len(solved))
    f = table_expansion(fit, table, used, none)(take(fit.merged.X, used), fit.limits.n_threads)
    beta = table.take(used).toarray()
    return np.array([-0.5 * (f[beta[:, k] > 0, k].min() + f[beta[:, k] < 0, k].max()) for k in range(len(solved))])


def refuse_no_margin(fit: Fit, solved: Solutions) -> None:
    """Raise the error that says why there is no margin where one of the tasks has none, or none that is proven.

    Of distinct samples, Gaussian and Laplacian kernels separate any two classes: there hulls that meet to rounding
    leave the question open.
    """
    recipe = None if fit.kernel is None or fit.precomputed else fit.kernel.recipe()
    separates = recipe is not None and recipe.ending in ("gaussian", "laplacian")
    for one in solved:
        proven = math.isfinite(one.certificate.primal) and one.solution.stop_reason != "no margin"
        if not proven:
            raise _no_margin(fit, one, separates)


def _no_margin(fit: Fit, one: Solved, separates: bool) -> NotSeparableError:
    beta, name, reason = one.solution.beta, one.task.name, one.solution.stop_reason
    meet = reason == "no margin" and not separates
    # Of a regularised b the constant feature is part of the space, so that the two sides weigh the same there.
    through_origin = len(one.task.problem.totals) == 0 and not fit.constant
    values = (one.certificate.primal, one.certificate.dual)
    low, high = (math.sqrt(0.5 / value) if value > 0 else math.inf for value in values)
    weights = [np.maximum(side * beta, 0.0) for side in (1.0, -1.0)]
    totals = [float(np.abs(beta).sum())] * 2 if through_origin else [float(weight.sum()) for weight in weights]
    sides = tuple(_combination(fit.merged, one.task.rows, *side) for side in zip(weights, totals, strict=True))
    sizes = " and ".join(str(len(rows)) for rows, _ in sides)
    if meet:
        met = (
            f"Without b a plane passes through the origin of feature space, which lies in the convex hull of {sizes} "
            "samples of the two classes, those of the second mirrored"
            if through_origin
            else f"Convex combinations of {sizes} samples of the two classes meet in feature space"
        )
        text = (
            f"C=inf, the hard margin, does not exist for {name}: no margin above {high:.3g}, which float64 cannot tell "
            f"from zero here. {met} (`combinations` of this error). Use a finite C, "
            f"{'a bias, ' if through_origin else ''}or a richer kernel"
        )
    else:
        cure = {"max_iter": "Raise max_iter", "max_time": "Raise max_time", "stalled": "Use solver='auto'"}
        text = (
            f"C=inf, the hard margin: whether {name} can be separated is undecided "
            f"({reason if reason in cure else 'rounding floor'}): the margin lies between {low:.3g} and {high:.3g}. "
            f"{cure.get(reason, 'Scale the features, raise gamma')}, or use a finite C"
        )
    return NotSeparableError(text, "not separable" if meet else "undecided", (0.0 if meet else low, high), sides)


def _combination(merged: Merged, rows: Indices, weight: Floats, total: float) -> tuple[Indices, Floats]:
    """The caller's first row of each merged sample that takes part, and its weight as a share of the total."""
    part = np.flatnonzero(weight)
    return merged.first[rows[part]], weight[part] / total
