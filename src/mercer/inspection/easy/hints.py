"""What to try next where a model is of little use, or could be better: in Python's words, which the command turns."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.inspection.easy.figures import ClassFigures, NumberFigures
from mercer.model_selection.tune import tune
from mercer.runtime.errors import held_warnings
from mercer.tables.encodings import LeftOut
from mercer.tables.frame import part_of

_SEARCHED = 600  # rows, on which three values of C are compared in a fraction of a second


def hints_on(
    figures: ClassFigures | NumberFigures, y: Any, target: str, columns: list[Any], *, weighed: bool, ratio: float = 1.0
) -> list[str]:
    """Sentences, the most helpful first.

    `y` are the targets in the order of the table and `columns` what became of the others; `weighed` tells whether
    classes count alike already, and `ratio` how many times larger one column's spread is than another's.
    """
    found = []
    if ratio > 1e3:
        found.append(
            f"the largest column varies {ratio:.0e} times as much as the smallest, which then counts for nothing: "
            "standardise the columns"
        )
    rare = isinstance(figures, ClassFigures) and not weighed and _rare_is_lost(figures)
    if isinstance(figures, ClassFigures) and rare:
        lost = figures.classes[int(np.nanargmin(figures.recall))]
        found.append(f"{lost!r} is hardly ever answered: class_weight='balanced' makes it count as much as the others")
    texts = [one.name for one in columns if isinstance(one, LeftOut) and "different texts" in one.reason]
    if texts:
        shown = " and ".join(map(repr, texts[:2])) + (" and others" if len(texts) > 2 else "")
        found.append(f"{shown} {'is' if len(texts) == 1 else 'are'} not used: name texts in text to count their words")
    if figures.is_useless and not rare and not texts:
        found.append(f"these columns say hardly anything about {target!r}; others may, such as {_others(columns)}")
    if in_order(y):
        found.append(
            f"the rows stand in the order of {target!r}, and were shuffled before some were held out; if that order is "
            "one in time, later rows may be harder"
        )
    return found


def search_gains(model: Any, train: tuple[Any, Any], seed: int) -> str | None:
    """That a search for C would gain, if it does in three folds of some rows; None where it does not, or has no C."""
    names = [name for name in model.get_params() if name.rpartition("__")[2] == "C"]
    if not names:
        return None
    X, y = train
    order = np.random.default_rng(seed).permutation(len(y))[:_SEARCHED]
    with held_warnings():
        try:
            found = tune(model, part_of(X, order), y[order], grid={names[0]: [1.0, 10.0, 100.0]}, cv=3, refit=False)
        except ValueError:  # a class with too few rows for three folds
            return None
    scores = np.array([found.cv_results_[f"split{k}_test_score"] for k in range(3)])
    means, best, params = scores.mean(axis=0), found.best_index_, found.best_params_
    if best is None or params is None or best == 0 or np.isnan(means[[0, best]]).any():
        return None
    gain = scores[:, best] - scores[:, 0]
    if not gain.mean() > gain.std(ddof=1):
        return None
    return (
        f"C = 1 is a guess: in three folds of {len(order)} rows C = {params[names[0]]:g} has "
        f"{means[best]:.3f} and C = 1 {means[0]:.3f}; easy and tune search"
    )


def _rare_is_lost(figures: ClassFigures) -> bool:
    """Whether of a class with fewer rows than its share less than a quarter is recognised."""
    rows = figures.matrix.sum(axis=1)
    rare = (rows > 0) & (rows < rows.sum() / (2 * len(rows)))
    return bool((figures.recall[rare] < 0.25).any())


def _others(columns: list[Any]) -> str:
    left = [one.name for one in columns if isinstance(one, LeftOut) and one.guessed and "identifier" not in one.reason]
    return f"{left[0]!r}, which is left out" if left else "what happened before, or who decided"


def in_order(y: Any) -> bool:
    """Whether neighbouring rows are much more alike in y than rows at random are: a tenth as many changes."""
    values = np.asarray(y)
    if len(values) < 20:
        return False
    if values.dtype.kind == "f":
        spread = float(values.var())
        return spread > 0 and float((np.diff(values) ** 2).mean()) < 0.1 * 2 * spread
    shares = np.unique(values, return_counts=True)[1] / len(values)
    return float(np.mean(values[1:] != values[:-1])) < 0.1 * (1 - float((shares**2).sum()))


def spread_ratio(X: Any) -> float:
    """The largest standard deviation of a column over the smallest; columns that never change do not count."""
    n = X.shape[0]
    mean = np.asarray(X.mean(axis=0)).ravel()
    square = np.asarray((X.power(2) if hasattr(X, "power") else X**2).mean(axis=0)).ravel()
    spread = np.sqrt(np.maximum(square - mean**2, 0.0))
    some = spread[spread > 1e-7 * np.sqrt(square)] if n else spread
    return float(some.max() / some.min()) if len(some) else 1.0
