"""Scores of grid points without folds: exact leave-one-out, estimates of it, and a bound on the risk.

Each point has one score, 1 − the share of errors by its criterion, so that larger is better:

    loo             the exact leave-one-out predictions, scored as held-out samples are
    xi-alpha        the ξα estimate of Joachims
    span            the span estimate of Vapnik and Chapelle
    span-bound      the span bound of Vapnik and Chapelle
    radius-margin   4(R² + 1/C)(‖w‖² + 2C Σξ)/n, R the radius of the smallest ball around the samples in feature space;
                    without bias (R₀² + 1/C)(‖w‖² + 2C Σξ)/n, R₀² = max k_ii; with slack="l2" 4R² Σα/n, a bound, where
                    the ball is that of K + I/C
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

# A score, the gap and relative gap of its fit, and a note on what the score assumes.
_Score = tuple[float, float, float, str]


def score_without_folds(search: Search, criterion: str) -> str:
    """Score every cell that is still wanted; return the text of `TuningResult.shared_`."""
    score_point = _CRITERIA[criterion]
    for point in range(len(search.cells.points)):
        if not search.is_needed(point, 0):
            continue
        start_time = time.perf_counter()
        try:
            reason = refusal(search.estimator, criterion, search.cells.points[point])
            if reason is not None:
                raise ValueError(reason)
            score, gap, relative_gap, note = score_point(search, point)
        except Exception as error:  # errors of a user's kernel or scorer belong to their cell
            search.cells.fail(point, 0, error)
        else:
            if note:
                search.cells.notes[point, 0] = note
            search.cells.put(point, 0, score, gap, relative_gap, time.perf_counter() - start_time)
        search.report(point, 0)
    scores = search.cells.scores
    if criterion == "margin-bound" and (scores <= 0).any() and not (scores > 0).any():
        warn_user(
            f"every bound on the probability of error is vacuous: the smallest is {1 - np.nanmax(scores):.3g}, not "
            "below 1. Use criterion='folds' or 'loo', or more samples",
            UserWarning,
        )
    return "nothing: every point is fitted by itself, to all samples"


def _score_leave_one_out(search: Search, point: int) -> _Score:
    """Return the score of the exact leave-one-out predictions of a point, NaN for both gaps, and a note."""
    machine = search.at(point)
    result = leave_one_out(machine, search.X, search.y, search.sample_weight)
    scored_rows = np.flatnonzero(np.isfinite(result.values.reshape(len(result.values), -1)).all(axis=1))
    y, weight = (None if given is None else given[scored_rows] for given in (search.y, search.sample_weight))
    values = result.values[scored_rows].reshape(len(scored_rows), -1)
    classes = np.unique(np.asarray(y)) if is_classifier(machine) else None
    n_ambiguous = int((~result.unique).sum())
    note = f"{n_ambiguous} machines with a sample left out are not unique" if n_ambiguous else ""
    samples = partial(part_of, search.X, scored_rows)
    try:
        score = score_of_values(search.scorer, machine, machine, values, classes, samples, (y, weight))
    except NeedsModel as error:
        raise ValueError(f"{error}, but criterion='loo' has one model for each sample; use criterion='folds'") from None
    return score, math.nan, math.nan, note


def _score_by(estimate: Callable[..., Estimate]) -> Callable[[Search, int], _Score]:
    """Return a function that scores a point by 1 − an estimate of its leave-one-out error."""

    def score_point(search: Search, point: int) -> _Score:
        result = estimate(search.at(point), search.X, search.y, search.sample_weight)
        note = "" if result.proven else f"an upper bound if there is {result.assumes}"
        return 1.0 - result.error, math.nan, math.nan, note

    return score_point


def _score_margin_bound(search: Search, point: int) -> _Score:
    """Return 1 − a bound on the probability of error of a point, the gap and relative gap of its fit, and no note."""
    from mercer.notes.theory.margin_bounds import norm_with_bias, soft_margin_bound

    if search.sample_weight is not None:
        raise ValueError("the margin bound is for samples of equal weight; leave sample_weight out")
    model = search.at(point).fit(search.X, search.y)
    if len(model.classes_) != 2:
        raise ValueError(f"the margin bound is for two classes, but y has {len(model.classes_)}")
    margins = model.margins(search.X, search.y)
    diagonal = np.diagonal(search.X) if model.kernel_.accepts == "gram" else model.kernel_.diag(search.X)
    # The criterion is not allowed with a free bias (`criteria.refusal`).
    bias: Literal["none", "regularized"] = "none" if model.bias is False else "regularized"
    norm, trace = norm_with_bias(margins.rkhs_norm, float(diagonal.sum()), len(diagonal), margins.b, bias)
    # With probability at least 0.95 the bounds on the risk hold for all points of the grid together.
    delta = 0.05 / len(search.cells.points)
    bound = soft_margin_bound(margins.slacks, trace, norm, delta=delta, bias=False)
    proof = model.certificate_
    return 1.0 - bound.value, proof.gap, proof.relative_gap, ""


_CRITERIA: Final = {
    "loo": _score_leave_one_out,
    "xi-alpha": _score_by(xi_alpha),
    "span": _score_by(span_estimate),
    "span-bound": _score_by(span_bound),
    "radius-margin": _score_by(partial(radius_margin, slack=True)),
    "margin-bound": _score_margin_bound,
}
