"""Points of a grid judged without folds: by leaving out each sample, by estimates of that, and by a bound on the risk.

Each point has one score, 1 − the share of errors that its criterion tells, so that larger is better:

    loo             the exact leave-one-out predictions, scored as held-out samples are
    xi-alpha        ξα of Joachims; span, span-bound: Vapnik's and Chapelle's rule and bound
    radius-margin   4(R² + 1/C)(‖w‖² + 2C Σξ)/n; without bias (R₀² + 1/C)(‖w‖² + 2C Σξ)/n; with slack="l2" 4R² Σα/n, R
                    under K + I/C, which is a bound
    margin-bound    structural risk minimisation: mean slack + 4/(nρ)√tr K + 3√(ln(2/δ')/2n), where δ' = δ/N pays for
                    the choice among the N points of the grid (`theory.soft_margin_bound`)
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
from sklearn.base import is_classifier

from mercer.model_selection.criteria import refusal
from mercer.model_selection.held_out.leave_one_out import leave_one_out
from mercer.model_selection.paths.estimates import Estimate, radius_margin, span_bound, span_estimate, xi_alpha
from mercer.model_selection.scoring import NeedsModel, score_of_values
from mercer.runtime.errors import warn_user
from mercer.tables.frame import part_of

if TYPE_CHECKING:
    from mercer.model_selection.search import Search

# A score, the gap and relative gap of the fit behind it, and what the score rests on.
_Judged = tuple[float, float, float, str]


def judge(search: Search, criterion: str) -> str:
    """Put a score into every cell that is wanted; returns what fits shared."""
    way = _WAYS[criterion]
    for point in range(len(search.cells.points)):
        if not search.wanted(point, 0):
            continue
        begun = time.perf_counter()
        try:
            refused = refusal(search.estimator, criterion, search.cells.points[point])
            if refused is not None:
                raise ValueError(refused)
            score, gap, relative, note = way(search, point)
        except Exception as error:  # whatever a user's kernel or score raises belongs to its cell
            search.cells.fail(point, 0, error)
        else:
            if note:
                search.cells.notes[point, 0] = note
            search.cells.put(point, 0, score, gap, relative, time.perf_counter() - begun)
        search.tell(point, 0)
    scores = search.cells.scores
    if criterion == "margin-bound" and (scores <= 0).any() and not (scores > 0).any():
        warn_user(
            f"every bound on the probability of error is vacuous: the smallest is {1 - np.nanmax(scores):.3g}, and "
            "less than 1 would say something. It is no guide then; use criterion='folds' or 'loo', or more samples",
            UserWarning,
        )
    return "nothing: every point is solved by itself, on all samples"


def _left_out(search: Search, point: int) -> _Judged:
    machine = search.at(point)
    found = leave_one_out(machine, search.X, search.y, search.sample_weight)
    counted = np.flatnonzero(np.isfinite(found.values.reshape(len(found.values), -1)).all(axis=1))
    y, weight = (None if part is None else part[counted] for part in (search.y, search.sample_weight))
    values = found.values[counted].reshape(len(counted), -1)
    classes = np.unique(np.asarray(y)) if is_classifier(machine) else None
    note = "" if found.unique.all() else f"{int((~found.unique).sum())} machines with a sample left out are not unique"
    samples = partial(part_of, search.X, counted)
    try:
        score = score_of_values(search.scorer, machine, machine, values, classes, samples, (y, weight))
    except NeedsModel as error:
        raise ValueError(f"{error}, and criterion='loo' has one for each sample; use criterion='folds'") from None
    return score, math.nan, math.nan, note


def _by(estimate: Callable[..., Estimate]) -> Callable[[Search, int], _Judged]:
    def way(search: Search, point: int) -> _Judged:
        found = estimate(search.at(point), search.X, search.y, search.sample_weight)
        note = "" if found.proven else f"an upper bound if there is {found.assumes}"
        return 1.0 - found.error, math.nan, math.nan, note

    return way


def _margin_bound(search: Search, point: int) -> _Judged:
    from mercer.notes.theory.margin_bounds import norm_with_bias, soft_margin_bound

    if search.sample_weight is not None:
        raise ValueError("the margin bound is for samples that all count the same; leave sample_weight out")
    model = search.at(point).fit(search.X, search.y)
    if len(model.classes_) != 2:
        raise ValueError(f"the margin bound is for two classes, but y has {len(model.classes_)}")
    margins = model.margins(search.X, search.y)
    diagonal = np.diagonal(search.X) if model.kernel_.accepts == "gram" else model.kernel_.diag(search.X)
    kind: Literal["none", "regularized"] = "none" if model.bias is False else "regularized"  # no other is let through
    norm, trace = norm_with_bias(margins.rkhs_norm, float(diagonal.sum()), len(diagonal), margins.b, kind)
    # The bounds on the risk fail with a probability of at most 0.05, for all points of the grid together.
    delta = 0.05 / len(search.cells.points)
    bound = soft_margin_bound(margins.slacks, trace, norm, delta=delta, bias=False)
    proof = model.certificate_
    return 1.0 - bound.value, proof.gap, proof.relative_gap, ""


_WAYS: Final = {
    "loo": _left_out,
    "xi-alpha": _by(xi_alpha),
    "span": _by(span_estimate),
    "span-bound": _by(span_bound),
    "radius-margin": _by(partial(radius_margin, slack=True)),
    "margin-bound": _margin_bound,
}
