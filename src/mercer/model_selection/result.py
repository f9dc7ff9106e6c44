"""What a search found: scores of all cells, the best of them, how sure that is, and all of it in a few lines."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from mercer.model_selection.parameter_keys import key_of
from mercer.model_selection.score_table import Cells
from mercer.samples.arrays import Floats


def summary(result: TuningResult) -> str:
    """At most 15 lines: the best cell, why it was chosen, what became of the others, and the best of them."""
    results, best = result.cv_results_, result.best_index_
    means = np.asarray(results["mean_test_score"], dtype=np.float64)
    scored, skipped = int(np.isfinite(means).sum()), int(np.sum(results["skipped"]))
    rows = []
    if best is None:
        rows.append(("best", "none: no cell has a score"))
        rows.append(("why", next((why for why in results["why"] if why), "nothing was fitted")))
    else:
        rows.append(("best", params_told(results["params"][best])))
        rows.append(("score", _score(result, best)))
        rows.append(("choice", result.choice_))
    failed = len(means) - scored - skipped
    others = [f"{skipped} skipped"] * bool(skipped) + [f"{failed} without a score"] * bool(failed)
    told = "" if result.complete_ else "; not complete" + ", interrupted" * result.interrupted_
    rows.append(("cells", f"{len(means)}: {', '.join([f'{scored} scored', *others])}{told}"))
    gap = result.search_gap_
    known = (
        f"no C within the range gains more than {gap:.3g}"
        if gap is not None
        else f"not known: {result.search_gap_reason_}"
    )
    rows.append(("search gap", known))
    rows.append(("shared", result.shared_))
    order = np.argsort(np.where(np.isnan(means), np.inf, -means), kind="stable")[:scored]
    for place, k in enumerate(order[order != best][:4].tolist()):
        rows.append(("other cells" if place == 0 else "", f"{means[k]:.4f}  {params_told(results['params'][k])}"))
    return "\n".join(line for name, text in rows if text for line in _lines(name, text))


def params_told(params: dict[str, Any]) -> str:
    """Parameters and their values, in a line."""
    return ", ".join(f"{name}={short(value)}" for name, value in params.items())


def short(value: Any) -> str:
    """A value of a parameter in at most 40 characters."""
    text = f"{value:.4g}" if isinstance(value, float) else " ".join(str(value).split())
    return textwrap.shorten(text, 40, placeholder="…") if len(text) > 40 else text


def _score(result: TuningResult, best: int) -> str:
    if result.n_splits_ < 2:
        return f"{result.best_score_:.4f}"
    scores = [float(result.cv_results_[f"split{k}_test_score"][best]) for k in range(result.n_splits_)]
    error = float(np.std(scores, ddof=1)) / np.sqrt(len(scores))
    return f"{result.best_score_:.4f} ± {error:.4f}, mean and standard error of {len(scores)} folds"


def _lines(name: str, text: str) -> list[str]:
    """At most two lines of 110 characters, of which twelve are the name's."""
    wrapped = textwrap.wrap(text, 110 - 12, max_lines=2, placeholder=" …")
    return [f"{name if k == 0 else '':<12}{line}" for k, line in enumerate(wrapped)]


def _equal(one: Any, other: Any) -> bool:
    """Whether a value of the grid is the one that is asked for; 1 and 1.0 are."""
    if isinstance(one, Real) and isinstance(other, Real):
        return bool(one == other)
    return key_of(one) == key_of(other)


class SearchInterrupted(KeyboardInterrupt):
    """Ctrl-C during a search inside of `fit`, with the `result` that was there."""

    def __init__(self, result: TuningResult) -> None:
        super().__init__("the search was interrupted; .result has the scores so far")
        self.result = result


@dataclass(eq=False, repr=False)
class TuningResult:
    """The outcome of `mercer.tune`.

    Attributes
    ----------
    cv_results_ : dict
        scikit-learn's, one entry per cell: `params`, `split0_test_score` …, `mean_test_score`, `std_test_score`,
        `rank_test_score`; and `gap` and `relative_gap`, the largest of the cell's fits, `skipped`, and `why`, in words.
    n_splits_ : int
        The number of folds; 1 where the criterion has none.
    best_index_ : int or None
        The chosen cell; None where no cell is complete.
    best_params_ : dict or None
        Its parameters.
    best_score_ : float or None
        Its mean score.
    choice_ : str
        Why this cell was chosen, in words.
    best_estimator_ : estimator or None
        Refitted on all samples by the estimator itself, with its own certificate; None without refit.
    search_gap_ : float or None
        No price between the smallest and the largest that were tried has a mean score that is more than this above
        `best_score_`, for any of the kernels that were tried: proven, for the exact optima. None where that is not
        known.
    search_gap_reason_ : str
        Why it is not known.
    complete_ : bool
        Whether every cell has its scores or was skipped with a proof; False after Ctrl-C or a time limit.
    interrupted_ : bool
        Whether Ctrl-C ended it.
    shared_ : str
        What the fits shared, in words.

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
            return f"TuningResult({len(self.cv_results_['params'])} cells, none of them with a score)"
        best = params_told(self.best_params_ or {})
        return f"TuningResult({len(self.cv_results_['params'])} cells, best {self.best_score_:.4f} at {best})"

    def __str__(self) -> str:
        return summary(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))  # in a notebook, and at IPython's prompt

    def at(self, **params: Any) -> dict[str, Any]:
        """What is known of the cell with these parameters; those that tell it from the others are enough."""
        points = self.cv_results_["params"]
        cells = [
            k for k, point in enumerate(points) if all(n in point and _equal(point[n], v) for n, v in params.items())
        ]
        if len(cells) != 1:
            raise KeyError(f"{len(cells)} cells have {params}; the grid has {points[:3]} and so on")
        return {name: values[cells[0]] for name, values in self.cv_results_.items()}

    def within_one_standard_error(self) -> list[dict[str, Any]]:
        """The points of the grid whose mean score is within one standard error of the best.

        How many they are, of all, says how little the choice of parameters matters here.

        Raises
        ------
        ValueError
            If cells were skipped: they cannot be the best, but they may be near it.

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
                f"{unknown} of {len(means)} cells have no mean over all {self.n_splits_} folds, and a standard error "
                "needs two: search with skip=False, without a time limit, and with two folds or more"
            )
        best = int(means.argmax())
        scores = [float(self.cv_results_[f"split{k}_test_score"][best]) for k in range(self.n_splits_)]
        least = means[best] - float(np.std(scores, ddof=1)) / np.sqrt(self.n_splits_)
        return [point for point, mean in zip(self.cv_results_["params"], means.tolist(), strict=True) if mean >= least]

    def plot(self, **style: Any) -> Any:
        """The scores over the grid; see `mercer.displays.TuningDisplay`."""
        from mercer.inspection.displays.tuning import TuningDisplay

        return TuningDisplay.from_search(self, **style)


def best_of(cells: Cells) -> int | None:
    """The cell with the largest mean, of several the first, as in GridSearchCV; None where no cell has a mean."""
    means = cells.means
    return None if np.isnan(means).all() else int(np.nanargmax(means))


def cheapest_of(cells: Cells, best: int, prices: Sequence[float]) -> int:
    """The cell with the smallest price of errors whose mean is within one standard error of the best cell's."""
    means = cells.means
    least = means[best] - _standard_error(cells.scores[best])
    near = [best, *(k for k in range(len(means)) if means[k] >= least)]
    return min(near, key=lambda k: (prices[k], -means[k], k))


def chosen(cells: Cells, best: int, own: int, overlap: float) -> tuple[int, str]:
    """The estimator's own parameters, unless the best cell is better by more than a standard error; and why.

    It is that of the differences in each fold. Folds train on mostly the same samples, so that their scores vary less
    than those of independent sets: Nadeau and Bengio (2003) add n_test/n_train, `overlap`, to 1/n_folds.
    """
    if best == own:
        return own, "the estimator's own parameters have the largest mean score"
    if np.isnan(cells.means[own]):
        return best, f"the largest mean score; the estimator's own parameters have none: {cells.why(own)}"
    differences = cells.scores[best] - cells.scores[own]
    gain = float(differences.mean())
    error = float(np.std(differences, ddof=1) * np.sqrt(1 / cells.n_folds + overlap))
    told = f"{gain:.3g}, and one standard error of this difference over {cells.n_folds} folds is {error:.3g}"
    if gain > error:
        return best, f"the largest mean score: it is above that of the estimator's own parameters by {told}"
    other = params_told(cells.points[best])
    return own, f"the estimator's own parameters stay: the best other cell, {other}, is better by {told}"


def _standard_error(values: Floats) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0
