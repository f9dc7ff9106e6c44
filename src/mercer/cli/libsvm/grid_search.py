"""The search of ``mercer tune`` and ``mercer easy``: a grid in powers of two, with grid.py's lines and file."""

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
from mercer.cli.libsvm.grid_file import Cell, line_of
from mercer.cli.machines import Estimator
from mercer.cli.terminal import printable
from mercer.model_selection.grids import prefix_and_machine
from mercer.tables.dialect import from_text, quantity

# Of each machine: the parameters of a cell and grid.py's letters for them, what a cell's number is called, how held-out
# rows are scored, and by what a score is multiplied.
_MACHINES: dict[str, tuple[tuple[str, ...], str, str, str | None, float]] = {
    "c_svc": (("C", "gamma"), "cg", "rate", None, 100.0),
    "epsilon_svr": (("C", "gamma", "epsilon"), "cgp", "mse", "neg_mean_squared_error", -1.0),
    "one_class": (("nu", "gamma"), "ng", "score", None, 1.0),
}


@dataclass(frozen=True, eq=False)
class GridSearch:
    """A grid, the data it is searched on, and what is told of its cells."""

    args: argparse.Namespace
    estimator: Estimator
    prefix: str  # of the machine's parameters in the estimator
    X: Any
    y: Any
    cells: dict[Cell, dict[str, Any]]
    letters: str
    word: str
    scoring: str | None
    unit: float
    splitter: Any
    is_table: bool  # cells are told in words; else as grid.py prints them
    target_unit: str = ""  # of a table's numbers

    @classmethod
    def of(
        cls, args: argparse.Namespace, data: Data, estimator: Estimator, machine: str, usual: dict[str, Any]
    ) -> GridSearch:
        """A search for the parameters of the machine in the estimator; they are as `usual` if they are not searched."""
        parameters, letters, word, scoring, unit = _MACHINES[machine]
        ranges = [getattr(args, f"log2{letter}") or [None] for letter in letters]
        cells = {
            cell: {p: usual[p] if e is None else 2.0**e for p, e in zip(parameters, cell, strict=True)}
            for cell in itertools.product(*ranges)
        }
        y = data.y
        if machine == "one_class" and len(np.unique(y)) < 2:
            y = None  # nothing is known of outliers
        shuffled = {"shuffle": True, "random_state": args.seed}
        splitter = (KFold if machine == "epsilon_svr" or y is None else StratifiedKFold)(args.folds, **shuffled)
        prefix = prefix_and_machine(estimator)[0]
        return cls(args, estimator, prefix, data.X, y, cells, letters, word, scoring, unit, splitter, *_read_as(data))

    def run(self, known: dict[Cell, float], out: Path | None) -> tuple[dict[str, Any], float]:
        """The best cell's parameters and its number; cells that are `known` are not fitted again."""
        left = [cell for cell in self.cells if cell not in known]
        numbers = {cell: known[cell] for cell in self.cells if cell in known}
        by_params = {tuple(self.cells[cell].values()): cell for cell in left}
        scores: dict[Cell, list[float]] = {}
        file = None if out is None else out.open("a" if known else "w")

        def told(fit: dict[str, Any]) -> None:
            params = fit["params"]
            cell = by_params[tuple(params[self.prefix + name] for name in self._names)]
            scores.setdefault(cell, []).append(fit["score"])
            if len(scores[cell]) == self.args.folds:
                numbers[cell] = self.unit * float(np.mean(scores[cell]))
                self._tell(cell, numbers)
                if file is not None:
                    file.write(line_of(cell, numbers[cell], self.letters, self.word) + "\n")
                    file.flush()

        try:
            if left:
                self._fit(left, told, numbers)
        finally:
            if file is not None:
                file.close()
        best = self._best(numbers)
        return self.cells[best], numbers[best]

    def _fit(self, left: list[Cell], told: Any, numbers: dict[Cell, float]) -> None:
        points = [{self.prefix + name: [value] for name, value in self.cells[cell].items()} for cell in left]
        found = mercer.tune(
            self.estimator,
            self.X,
            self.y,
            grid=points,
            cv=self.splitter,
            scoring=self.scoring,
            skip=self.args.skip,
            refit=False,
            callback=told,
        )
        if found.interrupted_:
            raise KeyboardInterrupt
        if not numbers:
            raise ValueError(next(why for why in found.cv_results_["why"] if why))

    @property
    def _names(self) -> list[str]:
        return list(next(iter(self.cells.values())))

    def describe(self, params: dict[str, Any], number: float) -> str:
        """The parameters of a cell and what they reach, in words: C = 2, gamma = 0.125: 92.5% right."""
        shown = ", ".join(f"{name} = {_told(value)}" for name, value in params.items())
        if self.word == "rate":
            return f"{shown}: {number:.1f}% right"
        if self.word == "mse":
            return f"{shown}: root mean squared error {quantity(math.sqrt(max(number, 0.0)), self.target_unit)}"
        return f"{shown}: {self.word} {number:.4g}"

    def _best(self, numbers: dict[Cell, float]) -> Cell:
        """The cell with the best number, of several the one with the smallest C."""
        sign = math.copysign(1.0, self.unit)
        return max(numbers, key=lambda cell: (sign * numbers[cell], -next(iter(self.cells[cell].values()))))

    def _tell(self, cell: Cell, numbers: dict[Cell, float]) -> None:
        if self.args.quiet or getattr(self.args, "json", False):
            return
        best = self._best(numbers)
        if self.is_table:
            told = self.describe(self.cells[cell], numbers[cell])
            print(printable(f"{told}{', the best so far' if best == cell else ''}"), flush=True)
            return
        here = " ".join(_told(value, math.log2) for value in self.cells[cell].values())
        of = ", ".join(
            f"{letter}={_told(v)}" for letter, v in zip(self.letters, self.cells[best].values(), strict=True)
        )
        print(f"[local] {here} {numbers[cell]:g} (best {of}, {self.word}={numbers[best]:g})", flush=True)


def _read_as(data: Data) -> tuple[bool, str]:
    """Return True for the rows of a table, and the unit of its target."""
    return data.form != "libsvm", from_text(data.dialect.units).get(str(data.target), "")


def _told(value: Any, of: Any = float) -> str:
    return value if isinstance(value, str) else f"{of(value):g}"  # gamma may be "scale"
