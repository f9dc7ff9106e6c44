"""The result of a search: scores of all cells, the chosen cell with the reason, and a summary."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from mercer.model_selection.parameter_keys import key_of
from mercer.model_selection.score_table import ScoreTable
from mercer.samples.arrays import Floats


def summary(result: TuningResult) -> str:
    """Summarise a search in at most 15 lines: the chosen cell and why, the state of all cells, and the next best."""
    results, best = result.cv_results_, result.best_index_
    means = np.asarray(results["mean_test_score"], dtype=np.float64)
    n_scored, n_skipped = int(np.isfinite(means).sum()), int(np.sum(results["skipped"]))
    rows = []
    if best is None:
        rows.append(("best", "none: no cell has a score"))
        rows.append(("why", next((reason for reason in results["why"] if reason), "nothing was fitted")))
    else:
        rows.append(("best", describe_params(results["params"][best])))
        rows.append(("score", _describe_score(result, best)))
        rows.append(("choice", result.choice_))
    n_failed = len(means) - n_scored - n_skipped
    others = [f"{n_skipped} skipped"] * bool(n_skipped) + [f"{n_failed} without a score"] * bool(n_failed)
    state = "" if result.complete_ else "; not complete" + ", interrupted" * result.interrupted_
    rows.append(("cells", f"{len(means)}: {', '.join([f'{n_scored} scored', *others])}{state}"))
    gap = result.search_gap_
    gap_text = (
        f"no C within the range scores more than {gap:.3g} higher"
        if gap is not None
        else f"unknown: {result.search_gap_reason_}"
    )
    rows.append(("search gap", gap_text))
    rows.append(("shared", result.shared_))
    order = np.argsort(np.where(np.isnan(means), np.inf, -means), kind="stable")[:n_scored]
    for rank, k in enumerate(order[order != best][:4].tolist()):
        rows.append(("other cells" if rank == 0 else "", f"{means[k]:.4f}  {describe_params(results['params'][k])}"))
    return "\n".join(line for name, text in rows if text for line in _lines(name, text))


def describe_params(params: dict[str, Any]) -> str:
    """Write parameters and their values on one line."""
    return ", ".join(f"{name}={short(value)}" for name, value in params.items())


def short(value: Any) -> str:
    """Write the value of a parameter in at most 40 characters."""
    text = f"{value:.4g}" if isinstance(value, float) else " ".join(str(value).split())
    return textwrap.shorten(text, 40, placeholder="…") if len(text) > 40 else text


def _describe_score(result: TuningResult, best: int) -> str:
    """Write the best score and, if there are several folds, its standard error."""
    if result.n_splits_ < 2:
        return f"{result.best_score_:.4f}"
    scores = [float(result.cv_results_[f"split{k}_test_score"][best]) for k in range(result.n_splits_)]
    error = float(np.std(scores, ddof=1)) / np.sqrt(len(scores))
    return f"{result.best_score_:.4f} ± {error:.4f}, mean and standard error of {len(scores)} folds"


def _lines(name: str, text: str) -> list[str]:
    """Write a name in a column of twelve characters and wrap its text beside it, in at most two lines of 110."""
    wrapped_lines = textwrap.wrap(text, 110 - 12, max_lines=2, placeholder=" …")
    return [f"{name if k == 0 else '':<12}{line}" for k, line in enumerate(wrapped_lines)]


def _equal(first: Any, second: Any) -> bool:
    """Return whether two values of a parameter are equal; 1 and 1.0 are."""
    if isinstance(first, Real) and isinstance(second, Real):
        return bool(first == second)
    return key_of(first) == key_of(second)


class SearchInterrupted(KeyboardInterrupt):
    """Ctrl-C during a search inside `fit`; `result` has the scores so far."""

    def __init__(self, result: TuningResult) -> None:
        super().__init__("the search was interrupted; .result has the scores so far")
        self.result = result


@dataclass(eq=False, repr=False)
class TuningResult:
    """The outcome of `mercer.tune`.

    Attributes
    ----------
    cv_results_ : dict
        Results as in scikit-learn, with one entry per cell: `params`, `split0_test_score` …, `mean_test_score`,
        `std_test_score`, `rank_test_score`; also `gap` and `relative_gap`, the largest over the folds, `skipped`, and
        the reason `why`.
    n_splits_ : int
        Number of folds; 1 if the criterion has none.
    best_index_ : int or None
        Index of the chosen cell; None if no cell is complete.
    best_params_ : dict or None
        Parameters of the chosen cell.
    best_score_ : float or None
        Mean score of the chosen cell.
    choice_ : str
        Reason why this cell was chosen.
    best_estimator_ : estimator or None
        Estimator refitted to all samples, with its own certificate; None without refit.
    search_gap_ : float or None
        Proven bound: no C between the smallest and the largest tried has a mean score that exceeds `best_score_` by
        more than this, for any of the kernels tried, at the exact optima. None if there is no such bound.
    search_gap_reason_ : str
        Reason why `search_gap_` is None.
    complete_ : bool
        Whether every cell has its scores or was skipped with a proof; False after Ctrl-C or a time limit.
    interrupted_ : bool
        Whether Ctrl-C ended the search.
    shared_ : str
        Description of what the fits shared.

    Examples
    --------
    See `tune`.
    """

    cv_results_: dict[str, Any]
    n_splits_: int
    complete_: bool = True
    shared_: str = ""
    interrupted_: bool = False
    best_index_: int | None = None
    best_params_: dict[str, Any] | None = None
    best_score_: float | None = None
    choice_: str = ""
    best_estimator_: Any = None
    search_gap_: float | None = None
    search_gap_reason_: str = ""

    def __repr__(self) -> str:
        if self.best_index_ is None:
            return f"TuningResult({len(self.cv_results_['params'])} cells, none with a score)"
        best = describe_params(self.best_params_ or {})
        return f"TuningResult({len(self.cv_results_['params'])} cells, best {self.best_score_:.4f} at {best})"

    def __str__(self) -> str:
        return summary(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))  # in notebooks and IPython

    def at(self, **params: Any) -> dict[str, Any]:
        """Return the entries of `cv_results_` for the only cell that has these parameters."""
        points = self.cv_results_["params"]
        cells = [
            k for k, point in enumerate(points) if all(n in point and _equal(point[n], v) for n, v in params.items())
        ]
        if len(cells) != 1:
            raise KeyError(f"{len(cells)} cells have {params}; the grid begins with {points[:3]}")
        return {name: values[cells[0]] for name, values in self.cv_results_.items()}

    def within_one_standard_error(self) -> list[dict[str, Any]]:
        """Return the points of the grid whose mean score is within one standard error of the best.

        If there are many such points, the choice of parameters matters little.

        Raises
        ------
        ValueError
            If there is one fold only, or a cell lacks a score: a skipped cell is not the best, but its mean may be
            within one standard error of the best.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> import mercer
        >>> X, y = load_iris(return_X_y=True)
        >>> found = mercer.tune(mercer.SVC(), X, y, grid={"C": [0.001, 1, 10, 100]}, refit=False, skip=False)
        >>> [point["C"] for point in found.within_one_standard_error()]
        [1, 10, 100]
        """
        means = np.asarray(self.cv_results_["mean_test_score"], dtype=np.float64)
        unknown = int(np.isnan(means).sum())
        if unknown or self.n_splits_ < 2:
            raise ValueError(
                f"a standard error needs all scores of at least two folds, but {unknown} of {len(means)} cells lack "
                f"scores of {self.n_splits_} folds: search with skip=False, without a time limit, and with at "
                "least two folds"
            )
        best = int(means.argmax())
        scores = [float(self.cv_results_[f"split{k}_test_score"][best]) for k in range(self.n_splits_)]
        lowest = means[best] - float(np.std(scores, ddof=1)) / np.sqrt(self.n_splits_)
        return [point for point, mean in zip(self.cv_results_["params"], means.tolist(), strict=True) if mean >= lowest]

    def plot(self, **style: Any) -> Any:
        """Plot the scores over the grid; see `mercer.displays.TuningDisplay`."""
        from mercer.inspection.displays.tuning import TuningDisplay

        return TuningDisplay.from_search(self, **style)


def best_cell(cells: ScoreTable) -> int | None:
    """Return the first cell with the largest mean, as GridSearchCV does; None if no cell has a mean."""
    means = cells.means
    return None if np.isnan(means).all() else int(np.nanargmax(means))


def smallest_penalty_cell(cells: ScoreTable, best: int, penalties: Sequence[float]) -> int:
    """Return the cell with the smallest penalty whose mean is within one standard error of the best cell's."""
    means = cells.means
    lowest = means[best] - _standard_error(cells.scores[best])
    candidates = [best, *(k for k in range(len(means)) if means[k] >= lowest)]
    return min(candidates, key=lambda k: (penalties[k], -means[k], k))


def choose_cell(cells: ScoreTable, best: int, current: int, overlap: float) -> tuple[int, str]:
    """Choose the best cell or the current one, and return the chosen cell and the reason.

    The current cell has the estimator's own parameters. The best cell is chosen only if its mean is larger by more than
    one standard error of the differences over the folds. Folds train on mostly the same samples, so that their scores
    vary less than those of independent sets: Nadeau and Bengio (2003) add n_test/n_train, `overlap`, to 1/n_folds.
    """
    if best == current:
        return current, "the estimator's own parameters have the largest mean score"
    if np.isnan(cells.means[current]):
        return best, f"the largest mean score; the estimator's own parameters have none: {cells.reason(current)}"
    differences = cells.scores[best] - cells.scores[current]
    gain = float(differences.mean())
    error = float(np.std(differences, ddof=1) * np.sqrt(1 / cells.n_folds + overlap))
    margin = f"{gain:.3g} (standard error over {cells.n_folds} folds: {error:.3g})"
    if gain > error:
        return best, f"the largest mean score: it exceeds that of the estimator's own parameters by {margin}"
    other = describe_params(cells.points[best])
    return current, f"the estimator's own parameters are kept: the best other cell, {other}, is better only by {margin}"


def _standard_error(values: Floats) -> float:
    """Return the standard error of the mean of the values; 0 for a single value."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0
