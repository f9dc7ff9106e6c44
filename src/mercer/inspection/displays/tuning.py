"""Plot of a parameter search: scores over one or two parameters, and skipped points of the grid."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np

from mercer.inspection.displays.drawing import COLOURS, Picture, frame, shorten
from mercer.inspection.displays.types import Axes, DataFrame, MaybeAxes
from mercer.model_selection.parameter_keys import key_of
from mercer.tables.unwrap import unwrap


class TuningDisplay(Picture):
    """Plot the scores of a search: a surface over two parameters, or a curve over one with standard errors.

    Parameters
    ----------
    results : dict
        `cv_results_` of the search.
    best_index : int or None
        Index of the grid point to mark.
    parameters : tuple of str
        Names of the one or two parameters on the axes.
    """

    _purpose = "plotting a search"
    _inches = (6.0, 4.2)

    def __init__(self, results: dict[str, Any], best_index: int | None, parameters: tuple[str, ...]) -> None:
        self.results, self.best_index, self.parameters = results, best_index, parameters

    @classmethod
    def from_search(cls, search: Any, parameters: Sequence[str] | None = None, ax: MaybeAxes = None) -> Self:
        """Plot a `TuningResult`, a fitted `TunedSVC` or similar, or a GridSearchCV of scikit-learn.

        Parameters
        ----------
        search : TuningResult or estimator
            Completed search, or a model that contains one, such as a `Tabular`.
        parameters : list of str, optional
            Names of the one or two parameters on the axes; by default those that vary, if there are at most two. Among
            grid points that differ in other parameters only, the best is drawn.
        ax : matplotlib axes, optional
            Axes to draw on; by default those of a new figure.
        """
        if not hasattr(search, "cv_results_"):
            searches = [layer for layer in unwrap(search).layers if hasattr(layer, "cv_results_")]
            if not searches:
                raise TypeError(
                    f"{type(search).__name__} has searched nothing: pass the result of `tune`, or a TunedSVC"
                )
            search = searches[0]
        results = search.cv_results_
        varied_names = _varying_names(results["params"])
        drawn_names = tuple(varied_names if parameters is None else parameters)
        if not 1 <= len(drawn_names) <= 2:
            raise ValueError(
                f"the grid varies {', '.join(varied_names) or 'nothing'}; name one or two of them in parameters"
            )
        grid_parameters = {name for point in results["params"] for name in point}
        if unknown := [name for name in drawn_names if name not in grid_parameters]:
            raise ValueError(
                f"{unknown[0]!r} is not a parameter of the grid, which has {', '.join(sorted(grid_parameters))}"
            )
        return cls(results, getattr(search, "best_index_", None), drawn_names).plot(ax)

    def to_frame(self) -> DataFrame:
        """Return a pandas DataFrame with a row per grid point: parameters, mean and standard deviation of the score."""
        cells = self.results["params"]
        columns: dict[str, object] = {name: [point.get(name) for point in cells] for name in self.parameters}
        columns |= {name: np.asarray(self.results[name]) for name in ("mean_test_score", "std_test_score")}
        return frame("TuningDisplay.to_frame", columns)

    def _draw(self, ax: Axes) -> None:
        (self._plot_curve if len(self.parameters) == 1 else self._plot_surface)(ax)

    def _plot_curve(self, ax: Axes) -> None:
        """Plot mean scores with standard errors over one parameter."""
        (name,) = self.parameters
        values, cells = self._best_by([name])
        are_numbers = all(isinstance(value[0], int | float | np.number) for value in values)
        x = np.array([value[0] for value in values], dtype=float) if are_numbers else np.arange(float(len(values)))
        means, spread = (np.asarray(self.results[key])[cells] for key in ("mean_test_score", "std_test_score"))
        n_folds = sum(key.startswith("split") and key.endswith("_test_score") for key in self.results)
        style: dict[str, object] = {"fmt": "o-" if are_numbers else "o", "color": COLOURS[0], "capsize": 3}
        ax.errorbar(x, means, spread / np.sqrt(n_folds), label="mean, with its standard error", **style)
        if (is_skipped := np.isnan(means)).any():
            bottom = np.full(int(is_skipped.sum()), np.nanmin(np.asarray(self.results["mean_test_score"])))
            ax.plot(x[is_skipped], bottom, "x", color="0.5", label="skipped or not scored")
        best = {} if self.best_index is None else self.results["params"][self.best_index]
        if name in best:
            ax.axvline(
                float(x[_index_of(best[name], [v for (v,) in values])]), color="0.6", linestyle=":", label="best"
            )
        if not are_numbers:
            ax.set_xticks(x, [shorten(_text(value[0]), 24) for value in values])
        elif (x > 0).all():
            ax.set_xscale("log")
        ax.set(xlabel=name, ylabel="score on held-out samples")
        ax.legend(fontsize="small")

    def _plot_surface(self, ax: Axes) -> None:
        """Plot mean scores as colours over two parameters."""
        x_name, y_name = self.parameters
        values, cells = self._best_by([x_name, y_name])
        columns, rows = (_sorted({key_of(value[k]): value[k] for value in values}.values()) for k in (0, 1))
        scores = np.full((len(rows), len(columns)), np.nan)
        means, unscored_cells = np.asarray(self.results["mean_test_score"]), []
        for (a, b), cell in zip(values, cells, strict=True):
            row, column = _index_of(b, rows), _index_of(a, columns)
            scores[row, column] = means[cell]
            if np.isnan(means[cell]):
                unscored_cells.append((row, column))
        image = ax.imshow(scores, origin="lower", aspect="auto")
        ax.figure.colorbar(image, ax=ax, label="score on held-out samples")
        for row, column in unscored_cells:  # combinations that are not in the grid remain empty cells
            ax.plot(column, row, "x", color="0.4")
        if self.best_index is not None:
            best = self.results["params"][self.best_index]
            point = _index_of(best[x_name], columns), _index_of(best[y_name], rows)
            ax.plot(*point, "o", mfc="none", mec="red", ms=14, mew=2)
        ax.set_xticks(range(len(columns)), [shorten(_text(value), 24) for value in columns], rotation=45, ha="right")
        ax.set_yticks(range(len(rows)), [shorten(_text(value), 24) for value in rows])
        ax.set(xlabel=x_name, ylabel=y_name, title="○ best, × skipped")

    def _best_by(self, names: list[str]) -> tuple[list[tuple[object, ...]], list[int]]:
        """Return each combination of values of the parameters `names`, and the index of its best point of the grid."""
        means = np.asarray(self.results["mean_test_score"])
        best: dict[object, int] = {}
        for cell, params in enumerate(self.results["params"]):
            if all(name in params for name in names):
                key = tuple(key_of(params[name]) for name in names)
                if key not in best or (not means[best[key]] >= means[cell] and not np.isnan(means[cell])):
                    best[key] = cell
        values = {cell: tuple(self.results["params"][cell][name] for name in names) for cell in best.values()}
        keys = sorted(values, key=lambda cell: [_sort_key(value) for value in values[cell]])
        return [values[cell] for cell in keys], keys


def _varying_names(points: list[dict[str, object]]) -> list[str]:
    """Return the names of the parameters that vary over the grid; the first one if none does."""
    names = list(dict.fromkeys(name for point in points for name in point))
    return [name for name in names if len({key_of(point.get(name)) for point in points}) > 1] or names[:1]


def _sorted(values: Iterable[object]) -> list[object]:
    return sorted(values, key=_sort_key)


def _index_of(value: object, values: list[object]) -> int:
    """Return the index of a parameter value in a list."""
    return [key_of(other) for other in values].index(key_of(value))


def _sort_key(value: object) -> tuple[int, float, str]:
    """Return a sort key that orders numbers by size, and other values after them by their text."""
    return (0, float(value), "") if isinstance(value, int | float | np.number) else (1, 0.0, _text(value))


def _text(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, int | float | np.number) else str(value)
