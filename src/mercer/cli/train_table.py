"""``mercer train`` on a table or an embedded set: columns as they come, rows held out, a report, a .mercer model."""

from __future__ import annotations

import argparse
import json
import warnings
from difflib import get_close_matches
from pathlib import Path

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from mercer.arrays import is_sparse
from mercer.cli.data import Data, embedded, read_data
from mercer.cli.formats import asked_for, plain_name
from mercer.cli.machines import CLASSIFIERS, REGRESSORS, ClassWeight, Estimator, build
from mercer.cli.report import Rows, report_on
from mercer.cli.terminal import Clock, printable, show_warning
from mercer.files import save
from mercer.tables.encodings import LeftOut, Wishes, encodings_for
from mercer.tables.estimator import Tabular
from mercer.tables.frame import Frame


class Table:
    """Training on a table."""

    def __init__(self, args: argparse.Namespace) -> None:
        if args.probability:
            raise ValueError("-b 1 works on LIBSVM text; in Python, model.calibrate(X, y) does it")
        if args.kernel == "precomputed":
            raise ValueError("a precomputed kernel is read from LIBSVM text, whose rows are 0:i 1:K(x_i, x_1) ...")
        self._args = args
        default = "model" if args.file is None else "standard_input" if args.file == "-" else plain_name(args.file).stem
        self.path = Path(args.output or f"{default}.mercer")

    def read(self) -> Data:
        args = self._args
        if args.file is None:
            return embedded(args.data)
        data = read_data(
            *(args.file, args.format, args.target),
            regression=args.machine in REGRESSORS,
            as_frame=True,
            asked=asked_for(args),
        )
        if args.machine in CLASSIFIERS and data.y.dtype.kind == "f" and (data.y % 1 != 0).any():
            some = data.y[np.argmax(data.y % 1 != 0)]
            raise ValueError(
                f"{data.source}: the target holds numbers such as {some:g}, which are no classes; for regression add "
                "--machine epsilon_svr (-s 3)"
            )
        return data

    def unknown_classes(self, names: list[str], data: Data) -> None:
        raise ValueError(f"--weight names {', '.join(map(repr, names))}, which no row of {data.source} has")

    def model(self, data: Data, class_weight: ClassWeight) -> Estimator:
        args = self._args
        gamma = "scale" if args.gamma is None else args.gamma
        machine = build(args, gamma, class_weight)
        if data.form == "embedded" or is_sparse(data.X):
            scaler = ("standardise", StandardScaler(with_mean=not is_sparse(data.X)))
            return Pipeline([*([scaler] if args.standardise else []), ("machine", machine)])
        warnings.filterwarnings("ignore", "the column .* is left out:")  # it is told here or in the report
        known = [] if data.names is None else data.names
        wishes = {name: _columns(getattr(args, name), known, data) for name in ("drop", "only", "categorical", "text")}
        only = wishes.pop("only") or None
        model = Tabular(machine, only=only, **wishes, missing=args.missing, standardise=args.standardise)
        if isinstance(data.X, Frame):
            guessed = _left_out(data, model.wishes())
            if args.quiet or args.folds is not None:
                for one in guessed:
                    show_warning(f"the column {one.name!r} is {one.description}")
        return model

    def is_settled(self, data: Data) -> bool:
        return False

    def split(self, data: Data) -> tuple[Rows, Rows]:
        classes = self._args.machine in CLASSIFIERS
        if classes:
            _expect_two_of_each(data)
        rows = train_test_split(
            np.arange(len(data.y)),
            test_size=self._args.test_size,
            stratify=data.y if classes else None,
            random_state=self._args.seed,
        )
        X = data.X.rows if isinstance(data.X, Frame) else data.X.__getitem__
        train, test = ((X(part), data.y[part]) for part in rows)
        return train, test

    def conclude(self, model: Estimator, data: Data, train: Rows, test: Rows, clock: Clock) -> None:
        shown = report_on(model, data, train, test, self._args.seed)
        clock.lap("test")
        if isinstance(data.X, Frame):  # the next table is likely to be written as this one
            model.reading_ = data.dialect.to_dict() | {"target": str(data.target)}
        save(model, self.path)
        clock.lap("save")
        if self._args.json:
            print(json.dumps(shown.to_dict() | {"seconds": clock.laps, "model_file": str(self.path)}, indent=2))
        elif not self._args.quiet:
            print(printable(shown.text(clock.laps, self.path)))


def _left_out(data: Data, wishes: Wishes) -> list[LeftOut]:
    """Columns left out on a guess. An error tells the rows as the file counts them, before training shuffles them."""
    try:
        found = encodings_for(data.X, wishes, np.ones(len(data.X)))
    except ValueError as error:
        raise ValueError(f"{data.source}: {error}") from None
    return [one for one in found if isinstance(one, LeftOut) and one.guessed]


def _columns(words: list[str], known: list[str], data: Data) -> list[str]:
    """Names of columns, each by itself or several between commas."""
    found = [name for word in words for name in ([word] if word in known else word.split(","))]
    unknown = [name for name in found if name not in known]
    if unknown:
        close = get_close_matches(unknown[0], known, n=1)
        meant = f" (did you mean {close[0]!r}?)" if close else ""
        told = ", ".join(map(repr, known)) if known else "no names"
        raise ValueError(f"{data.source} has no column {unknown[0]!r}{meant}; it has {told}")
    return found


def _expect_two_of_each(data: Data) -> None:
    labels, counts = np.unique(data.y, return_counts=True)
    if len(labels) > 1 and counts.min() < 2:
        lonely = str(labels[np.argmin(counts)])
        quantity = "; if the target is a quantity, add --machine epsilon_svr" if data.y.dtype.kind in "iuf" else ""
        raise ValueError(
            f"{data.source}: the class {lonely!r} has a single row, which cannot be both trained on and held out; "
            f"leave it out or add rows{quantity}"
        )
