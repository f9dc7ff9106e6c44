"""Grid search of ``mercer tune`` and ``mercer easy``: powers of two, with the output and results file of grid.py."""

from __future__ import annotations

import argparse
import itertools
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

import mercer
from mercer.cli.data import Data
from mercer.cli.libsvm.grid_file import Cell, format_line
from mercer.cli.machines import Estimator
from mercer.cli.terminal import printable
from mercer.model_selection.grids import prefix_and_machine
from mercer.tables.dialect import format_quantity, units_from_text

# For each machine: the parameters of a grid cell, grid.py's letters for them, the printed name of the score, the
# scoring of held-out rows, and the factor from that score to the printed one.
_MACHINES: dict[str, tuple[tuple[str, ...], str, str, str | None, float]] = {
    "c_svc": (("C", "gamma"), "cg", "rate", None, 100.0),
    "epsilon_svr": (("C", "gamma", "epsilon"), "cgp", "mse", "neg_mean_squared_error", -1.0),
    "one_class": (("nu", "gamma"), "ng", "score", None, 1.0),
}


@dataclass(frozen=True, eq=False)
class GridSearch:
    """Grid of parameters, the data, and how the scores of its cells are printed."""

    args: argparse.Namespace
    estimator: Estimator
    prefix: str  # prefix of the machine's parameters in the estimator
    X: Any
    y: Any
    cells: dict[Cell, dict[str, Any]]  # parameters of each cell, by its exponents
    letters: str  # grid.py's letters for the parameters
    score_name: str
    scoring: str | None
    score_factor: float  # factor from scikit-learn's score to the printed one
    splitter: Any
    is_table: bool  # cells are printed in words; else as grid.py prints them
    target_unit: str = ""  # unit of a table's target

    @classmethod
    def of(
        cls, args: argparse.Namespace, data: Data, estimator: Estimator, machine: str, defaults: dict[str, Any]
    ) -> GridSearch:
        """Set up the search for the parameters of a machine; `defaults` has values for those without a range."""
        parameters, letters, score_name, scoring, score_factor = _MACHINES[machine]
        ranges = [getattr(args, f"log2{letter}") or [None] for letter in letters]
        cells = {
            cell: {p: defaults[p] if e is None else 2.0**e for p, e in zip(parameters, cell, strict=True)}
            for cell in itertools.product(*ranges)
        }
        y = data.y
        if len(y) < args.folds:
            raise ValueError(f"{args.file}: {len(y)} rows cannot be divided into {args.folds} folds; use fewer with -v")
        if machine == "one_class" and len(np.unique(y)) < 2:
            y = None  # a single label: there are no known outliers
        shuffle_options = {"shuffle": True, "random_state": args.seed}
        splitter = (KFold if machine == "epsilon_svr" or y is None else StratifiedKFold)(args.folds, **shuffle_options)
        prefix = prefix_and_machine(estimator)[0]
        scores = letters, score_name, scoring, score_factor
        return cls(args, estimator, prefix, data.X, y, cells, *scores, splitter, *_table_settings(data))

    def run(self, known_scores: dict[Cell, float], out: Path | None) -> tuple[dict[str, Any], float]:
        """Fit every cell without a known score, and return the parameters of the best cell and its score."""
        remaining = [cell for cell in self.cells if cell not in known_scores]
        scores = {cell: known_scores[cell] for cell in self.cells if cell in known_scores}
        by_params = {tuple(self.cells[cell].values()): cell for cell in remaining}
        fold_scores: dict[Cell, list[float]] = {}
        file = None if out is None else out.open("a" if known_scores else "w")

        def record(fit: dict[str, Any]) -> None:
            params = fit["params"]
            cell = by_params[tuple(params[self.prefix + name] for name in self._parameter_names)]
            fold_scores.setdefault(cell, []).append(fit["score"])
            if len(fold_scores[cell]) == self.args.folds:
                scores[cell] = self.score_factor * float(np.mean(fold_scores[cell]))
                self._print_cell(cell, scores)
                if file is not None:
                    file.write(format_line(cell, scores[cell], self.letters, self.score_name) + "\n")
                    file.flush()

        if remaining:
            self._print_header()
        try:
            if remaining:
                self._fit(remaining, record, scores)
        finally:
            if file is not None:
                file.close()
        best = self._best(scores)
        return self.cells[best], scores[best]

    def _fit(self, remaining: list[Cell], callback: Any, scores: dict[Cell, float]) -> None:
        """Fit the cells `remaining`; raise if no cell has a score afterwards."""
        points = [{self.prefix + name: [value] for name, value in self.cells[cell].items()} for cell in remaining]
        result = mercer.tune(
            self.estimator,
            self.X,
            self.y,
            grid=points,
            cv=self.splitter,
            scoring=self.scoring,
            skip=self.args.skip,
            refit=False,
            callback=callback,
        )
        if result.interrupted_:
            raise KeyboardInterrupt
        if not scores:
            raise ValueError(next(reason for reason in result.cv_results_["why"] if reason))

    @property
    def _parameter_names(self) -> list[str]:
        return list(next(iter(self.cells.values())))

    def describe(self, params: dict[str, Any], number: float) -> str:
        """Describe a cell and its score in words: C = 2, gamma = 0.125: accuracy 92.5%."""
        text = ", ".join(f"{name} = {_format(value)}" for name, value in params.items())
        if self.score_name == "rate":
            return f"{text}: accuracy {number:.1f}%"
        if self.score_name == "mse":
            return f"{text}: root mean squared error {format_quantity(math.sqrt(max(number, 0.0)), self.target_unit)}"
        return f"{text}: {self.score_name} {number:.4g}"

    def _best(self, scores: dict[Cell, float]) -> Cell:
        """Return the cell with the best score; among equal scores, that with the smallest C or nu."""
        sign = math.copysign(1.0, self.score_factor)
        return max(scores, key=lambda cell: (sign * scores[cell], -next(iter(self.cells[cell].values()))))

    def _print_header(self) -> None:
        """Print the names of the numbers that follow for each cell of LIBSVM text."""
        if not self.is_table and not self.args.quiet and not getattr(self.args, "json", False):
            exponents = " ".join(f"log2{letter}" for letter in self.letters)
            print(f"[local] {exponents} {self.score_name} (best so far)", flush=True)

    def _print_cell(self, cell: Cell, scores: dict[Cell, float]) -> None:
        """Print the score of a cell, and the best so far: in words for a table, else as grid.py does."""
        if self.args.quiet or getattr(self.args, "json", False):
            return
        best = self._best(scores)
        if self.is_table:
            text = self.describe(self.cells[cell], scores[cell])
            print(printable(f"{text}{', best so far' if best == cell else ''}"), flush=True)
            return
        exponents = " ".join(_format(value, math.log2) for value in self.cells[cell].values())
        best_values = ", ".join(
            f"{letter}={_format(v)}" for letter, v in zip(self.letters, self.cells[best].values(), strict=True)
        )
        print(
            f"[local] {exponents} {scores[cell]:g} (best {best_values}, {self.score_name}={scores[best]:g})", flush=True
        )


def _table_settings(data: Data) -> tuple[bool, str]:
    """Return whether the data are a table, and the unit of its target."""
    return data.form != "libsvm", units_from_text(data.dialect.units).get(str(data.target), "")


def _format(value: Any, transform: Any = float) -> str:
    """Format a parameter, which may be a word, or its logarithm."""
    return value if isinstance(value, str) else f"{transform(value):g}"  # gamma may be "scale"
