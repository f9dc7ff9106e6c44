"""Suggestions of ``mercer train``, written with Python parameter names; the CLI translates them to its options."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.inspection.easy.advice import other_columns
from mercer.inspection.easy.figures import ClassFigures, NumberFigures
from mercer.model_selection.tune import tune
from mercer.runtime.errors import collect_warnings
from mercer.tables.encodings import DroppedColumn
from mercer.tables.frame import part_of

_SEARCH_ROWS = 600  # rows on which three values of C are compared, in a fraction of a second


def suggest_next(
    figures: ClassFigures | NumberFigures, y: Any, target: str, columns: list[Any], *, weighed: bool, ratio: float = 1.0
) -> list[str]:
    """Return suggestions, the most helpful first.

    `y` are the targets in the order of the table and `columns` the encodings of the other columns. `weighed` says
    whether class weights are balanced already; `ratio` is the largest ratio of two columns' standard deviations.
    """
    hints = []
    if ratio > 1e3:
        hints.append(
            f"the standard deviation of one column is {ratio:.0e} times that of another, whose effect is then lost; "
            "standardise the columns"
        )
    has_lost_class = isinstance(figures, ClassFigures) and not weighed and _rare_is_lost(figures)
    if isinstance(figures, ClassFigures) and has_lost_class:
        lost_class = figures.classes[int(np.nanargmin(figures.recall))]
        hints.append(
            f"{lost_class!r} is hardly ever predicted; class_weight='balanced' gives all classes the same weight"
        )
    texts = [
        encoding.name
        for encoding in columns
        if isinstance(encoding, DroppedColumn) and "different texts" in encoding.reason
    ]
    if texts:
        shown_texts = " and ".join(map(repr, texts[:2])) + (" and others" if len(texts) > 2 else "")
        verb, it, its = ("is", "it", "its") if len(texts) == 1 else ("are", "them", "their")
        hints.append(f"{shown_texts} {verb} not used; name {it} in the parameter text to use {its} words")
    if isinstance(figures, NumberFigures) and figures.outlying.any():
        far_off = f"{figures.truth[figures.outlying][0]:,.6g}"
        hints.append(
            f"check {target!r} where it is far off, such as {far_off}: a misplaced decimal point, another unit? easy "
            "names such rows"
        )
    if figures.is_useless and not has_lost_class and not texts:
        hints.append(f"these columns hardly predict {target!r}; {other_columns(columns)}")
    if is_ordered(y):
        hints.append(
            f"neighbouring rows have similar values of {target!r}; the split shuffled the rows, so if they are "
            "in order of time, later rows may be harder to predict"
        )
    return hints


def suggest_search(model: Any, train: tuple[Any, Any], seed: int) -> str | None:
    """Suggest a search for C if a larger C scores clearly better in three folds; None if not, or if there is no C."""
    names = [name for name in model.get_params() if name.rpartition("__")[2] == "C"]
    if not names:
        return None
    X, y = train
    order = np.random.default_rng(seed).permutation(len(y))[:_SEARCH_ROWS]
    with collect_warnings():
        try:
            result = tune(model, part_of(X, order), y[order], grid={names[0]: [1.0, 10.0, 100.0]}, cv=3, refit=False)
        except ValueError:  # a class has too few rows for three folds
            return None
    scores = np.array([result.cv_results_[f"split{k}_test_score"] for k in range(3)])
    means, best, params = scores.mean(axis=0), result.best_index_, result.best_params_
    if best is None or params is None or best == 0 or np.isnan(means[[0, best]]).any():
        return None
    gain = scores[:, best] - scores[:, 0]
    if not gain.mean() > gain.std(ddof=1):
        return None
    return (
        f"C = 1 is only the default: in three folds of {len(order)} rows C = {params[names[0]]:g} scores "
        f"{means[best]:.3f} and C = 1 scores {means[0]:.3f}; easy and tune search for C"
    )


def _rare_is_lost(figures: ClassFigures) -> bool:
    """Return whether a small class, with less than half of its equal share of rows, has a recall below a quarter."""
    rows = figures.matrix.sum(axis=1)
    is_rare = (rows > 0) & (rows < rows.sum() / (2 * len(rows)))
    return bool((figures.recall[is_rare] < 0.25).any())


def is_ordered(y: Any) -> bool:
    """Return whether neighbouring rows differ in y less than a tenth as much as random pairs of rows do."""
    values = np.asarray(y)
    if len(values) < 20:
        return False
    if values.dtype.kind == "f":
        spread = float(values.var())
        return spread > 0 and float((np.diff(values) ** 2).mean()) < 0.1 * 2 * spread
    shares = np.unique(values, return_counts=True)[1] / len(values)
    return float(np.mean(values[1:] != values[:-1])) < 0.1 * (1 - float((shares**2).sum()))


def spread_ratio(X: Any) -> float:
    """Ratio of the largest to the smallest standard deviation of a column; constant columns are ignored."""
    n = X.shape[0]
    mean = np.asarray(X.mean(axis=0)).ravel()
    square = np.asarray((X.power(2) if hasattr(X, "power") else X**2).mean(axis=0)).ravel()
    spread = np.sqrt(np.maximum(square - mean**2, 0.0))
    varying_spreads = spread[spread > 1e-7 * np.sqrt(square)] if n else spread
    return float(varying_spreads.max() / varying_spreads.min()) if len(varying_spreads) else 1.0
