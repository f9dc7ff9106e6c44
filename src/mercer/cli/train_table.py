"""``mercer train`` on a table or an embedded set: columns as they come, rows held out, a report, a .mercer model."""

from __future__ import annotations

import argparse
import json
import warnings
from contextlib import nullcontext
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from mercer.cli.data import Data, embedded, read_data
from mercer.cli.formats import asked_for, plain_name
from mercer.cli.machines import AUTO, CLASSIFIERS, REGRESSORS, ClassWeight, Estimator, build
from mercer.cli.report import Rows, judged
from mercer.cli.terminal import Clock, printable, show_warning
from mercer.files.mercer_file.model_file import write_mercer_file
from mercer.files.models import read_model
from mercer.inspection.easy.target import expect_two_of_each
from mercer.runtime.errors import GuessWarning, ModelFormatError, held_warnings
from mercer.runtime.progress import waiting
from mercer.samples.arrays import is_sparse
from mercer.tables.choice import WISHES, guesses_in
from mercer.tables.estimator import Tabular, table_in
from mercer.tables.frame import Frame


class Table:
    """Training on a table."""

    def __init__(self, args: argparse.Namespace) -> None:
        if args.kernel == "precomputed":
            raise ValueError("a precomputed kernel is read from LIBSVM text, whose rows are 0:i 1:K(x_i, x_1) ...")
        self._args = args
        self.path = model_path(args)
        if args.folds is None:
            expect_no_loss(args, self.path)

    def read(self) -> Data:
        return read_table(self._args)

    def unknown_classes(self, names: list[str], data: Data) -> None:
        raise ValueError(f"--weight names {', '.join(map(repr, names))}, which no row of {data.source} has")

    def model(self, data: Data, class_weight: ClassWeight) -> Estimator:
        args = self._args
        machine = build(args, "scale" if args.gamma is None else args.gamma, class_weight)
        return around(machine, data, args)

    def is_settled(self, data: Data) -> bool:
        return False

    def split(self, data: Data) -> tuple[Rows, Rows]:
        classes = self._args.machine in CLASSIFIERS
        if classes:
            expect_two_of_each(data.y, data.source)
        rows = train_test_split(
            np.arange(len(data.y)),
            test_size=self._args.test_size,
            stratify=data.y if classes else None,
            random_state=self._args.seed,
        )
        train, test = ((_rows(data.X, part), data.y[part]) for part in rows)
        return train, test

    def fit(self, model: Estimator, train: Rows, **weights: Any) -> None:  # none: see `weights_in`
        """Train on a part; what is to be warned of is warned of when it is trained on all rows."""
        with nullcontext() if self._args.keep_split else held_warnings():
            model.fit(*train)

    def conclude(self, model: Estimator, data: Data, train: Rows, test: Rows, clock: Clock) -> None:
        args = self._args
        found = judged(model, data, train, test, args)
        clock.lap("test")
        rows, told = (train, len(train[1])) if args.keep_split else ((data.X, data.y), len(data.y))
        with waiting(f"training on {told:,} rows", args.quiet or args.json, verbose=args.verbose):
            last = trained(model, rows, args)
        clock.lap("train")
        shown = found.saved(last, told, clock)
        save_table(last, data, self.path)
        clock.lap("save")
        if args.json:
            print(json.dumps(shown.to_dict() | {"seconds": clock.laps, "model_file": str(self.path)}, indent=2))
        elif not args.quiet:
            print(printable(shown.text(self.path)))


def model_path(args: argparse.Namespace) -> Path:
    """Where the model of a table goes."""
    default = "model" if args.file is None else "standard_input" if args.file == "-" else plain_name(args.file).stem
    return Path(args.output or f"{default}.mercer")


def expect_no_loss(args: argparse.Namespace, path: Path) -> None:
    """Raise where a file that nobody named holds probabilities or intervals, and the new model would have none."""
    if args.output is not None or args.probability or not path.exists():
        return
    try:
        before = read_model(str(path)).estimator()
    except (ModelFormatError, ValueError):  # no model, or one that needs the number of columns and has no probabilities
        return
    had = [name for name in ("predict_proba", "predict_interval") if hasattr(before, name)]
    if had:
        told = "probabilities" if had[0] == "predict_proba" else "intervals"
        raise ValueError(
            f"{path} holds a model with {told}, such as mercer easy saves, and this one would have none: name another "
            f"file with -o, or learn {told} with -b 1"
        )


def read_table(args: argparse.Namespace) -> Data:
    """The table, or the embedded set; settles which machine "auto" is."""
    if args.file is None:
        args.machine = "c_svc" if args.machine == AUTO else args.machine
        return embedded(args.data)
    data = read_frame(args, None if args.machine == AUTO else args.machine in REGRESSORS)
    if args.machine == AUTO:
        args.machine = "epsilon_svr" if data.kind is not None and data.kind.is_regression else "c_svc"
        if args.class_weight and args.machine != "c_svc":
            raise ValueError(
                f"--class-weight is for classes, but {data.target!r} is {data.kind.told if data.kind else ''}"
            )
    if args.machine in CLASSIFIERS and data.y.dtype.kind == "f" and (data.y % 1 != 0).any():
        some = data.y[np.argmax(data.y % 1 != 0)]
        raise ValueError(
            f"{data.source}: the target holds numbers such as {some:g}, which are no classes; for regression add "
            "--machine svr (-s 3)"
        )
    return data


def read_frame(args: argparse.Namespace, regression: bool | None) -> Data:
    """The table as the options say it is written; None lets its target decide whether it is a regression."""
    texts = [name for word in (*args.categorical, *args.text) for name in (word, *word.split(","))]
    where, asked = (args.file, args.format, args.target), asked_for(args)
    return read_data(*where, regression=regression, as_frame=True, asked=asked, texts=texts)


def of_columns(args: argparse.Namespace, data: Data) -> dict[str, Any]:
    """The parameters of `Tabular` that the options ask for."""
    known = [] if data.names is None else data.names
    wishes: dict[str, Any] = {name: columns_named(getattr(args, name), known, data) for name in WISHES}
    return {**wishes, "only": wishes["only"] or None, "missing": args.missing, "standardise": args.standardise}


def around(machine: Estimator, data: Data, args: argparse.Namespace) -> Estimator:
    """The machine with what it needs to learn from these data."""
    if data.form == "embedded" or is_sparse(data.X):
        scaler = ("standardise", StandardScaler(with_mean=not is_sparse(data.X)))
        return Pipeline([*([scaler] if args.standardise else []), ("machine", machine)])
    model = Tabular(machine, **of_columns(args, data))
    warnings.filterwarnings("ignore", category=GuessWarning)  # they are told here or in the report
    if isinstance(data.X, Frame):
        asked = guesses_in(data.X, model.wishes(), data.source)
        if args.quiet or getattr(args, "folds", None) is not None:
            for told in asked.values():
                show_warning(told)
    return model


def trained(model: Estimator, rows: Rows, args: argparse.Namespace) -> Estimator:
    """The model of these rows, with probabilities or intervals if they are asked for."""
    if not args.probability:
        return model if len(rows[1]) == _n_trained(model) else clone(model).fit(*rows)
    from mercer.calibration import CalibratedClassifier, CalibratedRegressor

    if args.machine in CLASSIFIERS:
        folds = min(5, int(np.unique(rows[1], return_counts=True)[1].min()))
        return CalibratedClassifier(clone(model), cv=folds, decides="machine").fit(*rows)
    if args.machine in REGRESSORS:
        return CalibratedRegressor(clone(model)).fit(*rows)
    raise ValueError(f"-b 1 on a table is for classes and numbers, not for {args.machine}")


def _n_trained(model: Estimator) -> int:
    from mercer.cli.machines import machine_of

    shape = getattr(machine_of(model), "shape_fit_", (0,))
    return int(shape[0]) + int(getattr(model, "n_rows_dropped_", 0))


def save_table(model: Estimator, data: Data, path: Path) -> None:
    """Save it, with how its table was written: the next one is likely to be like that."""
    table = table_in(model)
    if table is not None and isinstance(data.X, Frame):
        table.reading_ = data.dialect.to_dict() | {"target": str(data.target), "digest": data.digest}
    write_mercer_file(model, path)


def _rows(X: Any, rows: Any) -> Any:
    return X.rows(rows) if isinstance(X, Frame) else X[rows]


def columns_named(words: list[str], known: list[str], data: Data) -> list[str]:
    """Names of columns, each by itself or several between commas."""
    found = [name for word in words for name in ([word] if word in known else word.split(","))]
    unknown = [name for name in found if name not in known]
    if unknown:
        close = get_close_matches(unknown[0], known, n=1)
        meant = f" (did you mean {close[0]!r}?)" if close else ""
        told = ", ".join(map(repr, known)) if known else "no names"
        raise ValueError(f"{data.source} has no column {unknown[0]!r}{meant}; it has {told}")
    return found
