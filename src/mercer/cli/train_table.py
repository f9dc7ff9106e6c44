"""``mercer train`` on a table or an embedded set: columns standardised, rows held out, a report, a .mercer model."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from mercer.arrays import is_sparse
from mercer.cli.data import Data, embedded, read_data
from mercer.cli.machines import CLASSIFIERS, REGRESSORS, build
from mercer.cli.report import Rows, report_on
from mercer.cli.terminal import Clock, printable
from mercer.files import save


class Table:
    """The way of tables."""

    def __init__(self, args: argparse.Namespace) -> None:
        if args.probability:
            raise ValueError("-b 1 works on LIBSVM text; in Python, sklearn.calibration.CalibratedClassifierCV does it")
        if args.kernel == "precomputed":
            raise ValueError("a precomputed kernel is read from LIBSVM text, whose rows are 0:i 1:K(x_i, x_1) ...")
        self._args = args
        default = "model" if args.file is None else "standard_input" if args.file == "-" else Path(args.file).stem
        self.path = Path(args.output or f"{default}.mercer")

    def read(self) -> Data:
        args = self._args
        if args.file is None:
            return embedded(args.data)
        data = read_data(args.file, args.format, args.target, regression=args.machine in REGRESSORS)
        if args.machine in CLASSIFIERS and data.y.dtype.kind == "f" and (data.y % 1 != 0).any():
            some = data.y[np.argmax(data.y % 1 != 0)]
            raise ValueError(
                f"{data.source}: the target holds numbers such as {some:g}, which are no classes; for regression add "
                "--machine epsilon_svr (-s 3)"
            )
        return data

    def unknown_classes(self, names: list[str], data: Data) -> None:
        raise ValueError(f"--weight names {', '.join(map(repr, names))}, which no row of {data.source} has")

    def model(self, data: Data, class_weight: dict[Any, float] | None) -> Pipeline:
        gamma = "scale" if self._args.gamma is None else self._args.gamma
        machine = ("machine", build(self._args, gamma, class_weight))
        if not self._args.standardise:
            return Pipeline([machine])
        return Pipeline([("standardise", StandardScaler(with_mean=not is_sparse(data.X))), machine])

    def is_settled(self, data: Data) -> bool:
        return False

    def split(self, data: Data) -> tuple[Rows, Rows]:
        classes = self._args.machine in CLASSIFIERS
        if classes:
            _expect_two_of_each(data)
        X_train, X_test, y_train, y_test = train_test_split(
            data.X,
            data.y,
            test_size=self._args.test_size,
            stratify=data.y if classes else None,
            random_state=self._args.seed,
        )
        return (X_train, y_train), (X_test, y_test)

    def conclude(self, model: Pipeline, data: Data, train: Rows, test: Rows, clock: Clock) -> None:
        shown = report_on(model, data, train, test, self._args.seed)
        clock.lap("test")
        if data.names is not None:  # so that a later table may have its columns in another order
            model[0].feature_names_in_ = np.array(data.names, dtype=object)
        save(model, self.path)
        clock.lap("save")
        if self._args.json:
            print(json.dumps(shown.to_dict() | {"seconds": clock.laps, "model_file": str(self.path)}, indent=2))
        elif not self._args.quiet:
            print(printable(shown.text(clock.laps, self.path)))


def _expect_two_of_each(data: Data) -> None:
    labels, counts = np.unique(data.y, return_counts=True)
    if len(labels) > 1 and counts.min() < 2:
        lonely = str(labels[np.argmin(counts)])
        quantity = "; if the target is a quantity, add --machine epsilon_svr" if data.y.dtype.kind in "iuf" else ""
        raise ValueError(
            f"{data.source}: the class {lonely!r} has a single row, which cannot be both trained on and held out; "
            f"leave it out or add rows{quantity}"
        )
