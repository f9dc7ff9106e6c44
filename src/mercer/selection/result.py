"""What a search found: scores of all cells, the best of them, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.selection.cells import Cells
from mercer.selection.grids import price_of


class SearchInterrupted(KeyboardInterrupt):
    """Ctrl-C during a search inside of `fit`, with the `result` that was there."""

    def __init__(self, result: TuningResult) -> None:
        super().__init__("the search was interrupted; .result has the scores so far")
        self.result = result


@dataclass(eq=False)
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
    >>> from sklearn.datasets import load_iris
    >>> import mercer
    >>> X, y = load_iris(return_X_y=True)
    >>> found = mercer.tune(mercer.SVC(), X, y, grid={"C": [0.1, 1, 10]}, refit=False)
    >>> found.complete_, found.n_splits_, len(found.cv_results_["params"])
    (True, 5, 3)
    """

    cv_results_: dict[str, Any]
    n_splits_: int
    complete_: bool = True
    shared_: str = ""
    interrupted_: bool = False
    best_index_: int | None = None
    best_params_: dict[str, Any] | None = None
    best_score_: float | None = None
    best_estimator_: Any = None
    search_gap_: float | None = None
    search_gap_reason_: str = ""

    def at(self, **params: Any) -> dict[str, Any]:
        """What is known of the cell with these parameters; those that tell it from the others are enough.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> import mercer
        >>> X, y = load_iris(return_X_y=True)
        >>> found = mercer.tune(mercer.SVC(), X, y, grid={"C": [0.1, 1]}, refit=False)
        >>> bool(found.at(C=1)["mean_test_score"] > 0.9)
        True
        """
        points = self.cv_results_["params"]
        cells = [
            k for k, point in enumerate(points) if all(name in point and point[name] == v for name, v in params.items())
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
        [10, 100]
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
        from mercer.displays.tuning import TuningDisplay

        return TuningDisplay.from_search(self, **style)


def best_of(cells: Cells, one_standard_error: bool) -> int | None:
    """The cell with the largest mean, of several the one with the smallest price of errors, then the first.

    By the rule of one standard error: the cell with the smallest price whose mean is within that of the best.
    """
    means = cells.means
    finished = np.flatnonzero(np.isfinite(means))
    if len(finished) == 0:
        return None
    top = float(means[finished].max())
    least = top - 1e-12 * max(1.0, abs(top))
    if one_standard_error and cells.n_folds > 1:
        best = _cheapest(cells.points, [k for k in finished if means[k] >= least], means)
        least = top - float(cells.scores[best].std(ddof=1)) / np.sqrt(cells.n_folds)
    return _cheapest(cells.points, [k for k in finished if means[k] >= least], means)


def _cheapest(points: Sequence[dict[str, Any]], among: Sequence[Any], means: Any) -> int:
    return int(min(among, key=lambda k: (price_of(points[k]), -round(float(means[k]), 12), k)))
