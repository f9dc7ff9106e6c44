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
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer.arrays import is_sparse
from mercer.cli.data import Data
from mercer.cli.libsvm.grid_file import Cell, line_of
from mercer.cli.machines import Estimator
from mercer.estimators import SVC, SVR, OneClassSVM
from mercer.tables.estimator import Tabular

# Of each machine: its class, the parameters of a cell and grid.py's letters for them, what a cell's number is called,
# how held-out rows are scored, and by what a score is multiplied.
_MACHINES: dict[str, tuple[Any, tuple[str, ...], str, str, str | None, float]] = {
    "c_svc": (SVC, ("C", "gamma"), "cg", "rate", None, 100.0),
    "epsilon_svr": (SVR, ("C", "gamma", "epsilon"), "cgp", "mse", "neg_mean_squared_error", -1.0),
    "one_class": (OneClassSVM, ("nu", "gamma"), "ng", "score", None, 1.0),
}


@dataclass(frozen=True, eq=False)
class GridSearch:
    """A grid, the data it is searched on, and what is told of its cells."""

    args: argparse.Namespace
    estimator: Estimator
    prefix: str  # of the machine's parameters in the estimator
    X: Any
    y: Any
    cells: dict[Cell, dict[str, float]]
    letters: str
    word: str
    scoring: str | None
    unit: float
    splitter: Any

    @classmethod
    def of(cls, args: argparse.Namespace, data: Data) -> GridSearch:
        """What the options ask for."""
        name = getattr(args, "machine", "c_svc")
        kind, parameters, letters, word, scoring, unit = _MACHINES[name]
        machine = kind(cache_size=args.cache_size, tol=args.tol, kernel=getattr(args, "kernel", "rbf"))
        text = data.form == "libsvm"
        ranges = [getattr(args, f"log2{letter}") or [None] for letter in letters]
        usual = {"C": 1.0, "epsilon": 0.1, "nu": 0.5, "gamma": 1.0 / max(1, data.X.shape[1])}
        cells = {
            cell: {p: usual[p] if e is None else 2.0**e for p, e in zip(parameters, cell, strict=True)}
            for cell in itertools.product(*ranges)
        }
        estimator, prefix = machine, ""
        if not text:
            sparse = is_sparse(data.X)
            estimator = make_pipeline(StandardScaler(with_mean=False), machine) if sparse else Tabular(machine)
            prefix = "" if sparse else "estimator__"
        y = data.y
        if name == "one_class" and len(np.unique(y)) < 2:
            y = None  # nothing is known of outliers
        shuffled = {"shuffle": True, "random_state": args.seed}
        splitter = (KFold if name == "epsilon_svr" or y is None else StratifiedKFold)(args.folds, **shuffled)
        return cls(args, estimator, prefix, data.X, y, cells, letters, word, scoring, unit, splitter)

    def run(self, known: dict[Cell, float], out: Path | None) -> tuple[tuple[float, ...], float]:
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
        return tuple(self.cells[best].values()), numbers[best]

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

    def _best(self, numbers: dict[Cell, float]) -> Cell:
        """The cell with the best number, of several the one with the smallest C."""
        sign = math.copysign(1.0, self.unit)
        return max(numbers, key=lambda cell: (sign * numbers[cell], -next(iter(self.cells[cell].values()))))

    def _tell(self, cell: Cell, numbers: dict[Cell, float]) -> None:
        if self.args.quiet:
            return
        best = self._best(numbers)
        here = " ".join(f"{math.log2(value):g}" for value in self.cells[cell].values())
        of = ", ".join(f"{letter}={v:g}" for letter, v in zip(self.letters, self.cells[best].values(), strict=True))
        print(f"[local] {here} {numbers[cell]:g} (best {of}, {self.word}={numbers[best]:g})", flush=True)
