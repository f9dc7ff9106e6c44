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

# Machine: parameters of a grid cell, grid.py's letters for them, name of the score, scoring of held-out rows, and the
# factor by which that score is multiplied.
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
    cells: dict[Cell, dict[str, Any]]
    letters: str
    word: str
    scoring: str | None
    unit: float
    splitter: Any
    is_table: bool  # cells are printed in words; else as grid.py prints them
    target_unit: str = ""  # unit of a table's target

    @classmethod
    def of(
        cls, args: argparse.Namespace, data: Data, estimator: Estimator, machine: str, defaults: dict[str, Any]
    ) -> GridSearch:
        """Set up the search for the parameters of a machine; those without a range keep their value in `defaults`."""
        parameters, letters, word, scoring, unit = _MACHINES[machine]
        ranges = [getattr(args, f"log2{letter}") or [None] for letter in letters]
        cells = {
            cell: {p: defaults[p] if e is None else 2.0**e for p, e in zip(parameters, cell, strict=True)}
            for cell in itertools.product(*ranges)
        }
        y = data.y
        if machine == "one_class" and len(np.unique(y)) < 2:
            y = None  # a single label: there are no known outliers
        shuffled = {"shuffle": True, "random_state": args.seed}
        splitter = (KFold if machine == "epsilon_svr" or y is None else StratifiedKFold)(args.folds, **shuffled)
        prefix = prefix_and_machine(estimator)[0]
        return cls(args, estimator, prefix, data.X, y, cells, letters, word, scoring, unit, splitter, *_read_as(data))

    def run(self, known: dict[Cell, float], out: Path | None) -> tuple[dict[str, Any], float]:
        """Return the best parameters and their score; cells with a `known` score are not fitted again."""
        left = [cell for cell in self.cells if cell not in known]
        numbers = {cell: known[cell] for cell in self.cells if cell in known}
        by_params = {tuple(self.cells[cell].values()): cell for cell in left}
        scores: dict[Cell, list[float]] = {}
        file = None if out is None else out.open("a" if known else "w")

        def record(fit: dict[str, Any]) -> None:
            params = fit["params"]
            cell = by_params[tuple(params[self.prefix + name] for name in self._names)]
            scores.setdefault(cell, []).append(fit["score"])
            if len(scores[cell]) == self.args.folds:
                numbers[cell] = self.unit * float(np.mean(scores[cell]))
                self._print_cell(cell, numbers)
                if file is not None:
                    file.write(format_line(cell, numbers[cell], self.letters, self.word) + "\n")
                    file.flush()

        try:
            if left:
                self._fit(left, record, numbers)
        finally:
            if file is not None:
                file.close()
        best = self._best(numbers)
        return self.cells[best], numbers[best]

    def _fit(self, left: list[Cell], callback: Any, numbers: dict[Cell, float]) -> None:
        points = [{self.prefix + name: [value] for name, value in self.cells[cell].items()} for cell in left]
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
        if not numbers:
            raise ValueError(next(why for why in result.cv_results_["why"] if why))

    @property
    def _names(self) -> list[str]:
        return list(next(iter(self.cells.values())))

    def describe(self, params: dict[str, Any], number: float) -> str:
        """Describe a cell and its score in words: C = 2, gamma = 0.125: accuracy 92.5%."""
        shown = ", ".join(f"{name} = {_format(value)}" for name, value in params.items())
        if self.word == "rate":
            return f"{shown}: accuracy {number:.1f}%"
        if self.word == "mse":
            return f"{shown}: root mean squared error {format_quantity(math.sqrt(max(number, 0.0)), self.target_unit)}"
        return f"{shown}: {self.word} {number:.4g}"

    def _best(self, numbers: dict[Cell, float]) -> Cell:
        """Return the cell with the best score; among equals, that with the smallest C or nu."""
        sign = math.copysign(1.0, self.unit)
        return max(numbers, key=lambda cell: (sign * numbers[cell], -next(iter(self.cells[cell].values()))))

    def _print_cell(self, cell: Cell, numbers: dict[Cell, float]) -> None:
        if self.args.quiet or getattr(self.args, "json", False):
            return
        best = self._best(numbers)
        if self.is_table:
            text = self.describe(self.cells[cell], numbers[cell])
            print(printable(f"{text}{', best so far' if best == cell else ''}"), flush=True)
            return
        exponents = " ".join(_format(value, math.log2) for value in self.cells[cell].values())
        best_values = ", ".join(
            f"{letter}={_format(v)}" for letter, v in zip(self.letters, self.cells[best].values(), strict=True)
        )
        print(f"[local] {exponents} {numbers[cell]:g} (best {best_values}, {self.word}={numbers[best]:g})", flush=True)


def _read_as(data: Data) -> tuple[bool, str]:
    """Return True for the rows of a table, and the unit of its target."""
    return data.form != "libsvm", units_from_text(data.dialect.units).get(str(data.target), "")


def _format(value: Any, transform: Any = float) -> str:
    return value if isinstance(value, str) else f"{transform(value):g}"  # gamma may be "scale"
