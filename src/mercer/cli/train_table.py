"""``mercer train`` on a table or a built-in data set: hold out rows, fit, report, and save a .mercer model."""

from __future__ import annotations

import argparse
import json
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from mercer.cli.data import Data, load_embedded, read_data
from mercer.cli.formats import dialect_from_options, strip_compression
from mercer.cli.machines import AUTO, CLASSIFIERS, REGRESSORS, ClassWeight, Estimator, build_estimator
from mercer.cli.report import Rows, evaluate_model
from mercer.cli.terminal import Clock, printable, show_warning
from mercer.files.mercer_file.model_file import write_mercer_file
from mercer.files.models import read_model
from mercer.inspection.easy.target import check_class_sizes
from mercer.runtime.errors import GuessWarning, ModelFormatError, collect_warnings
from mercer.runtime.progress import waiting
from mercer.samples.arrays import is_sparse
from mercer.samples.column_names import column_suggestion
from mercer.tables.choice import COLUMN_OPTIONS, guesses_in, target_guesses
from mercer.tables.estimator import Tabular, table_in
from mercer.tables.frame import Frame


class TableTraining:
    """Training on a table or a built-in data set."""

    def __init__(self, args: argparse.Namespace) -> None:
        if args.kernel == "precomputed":
            raise ValueError("a precomputed kernel is read from LIBSVM text, whose rows are 0:i 1:K(x_i, x_1) ...")
        self._args = args
        self.path = model_path(args)
        if args.folds is None:
            check_overwrite(args, self.path)

    def read(self) -> Data:
        """Read the table; check that the default model file does not hold a model of another target."""
        data = read_table(self._args)
        if self._args.folds is None:
            check_same_target(self._args, self.path)
        return data

    def report_unknown_classes(self, names: list[str], data: Data) -> None:
        raise ValueError(f"--weight names {', '.join(map(repr, names))}, but no row of {data.source} has that class")

    def model(self, data: Data, class_weight: ClassWeight) -> Estimator:
        """Return the unfitted estimator that the options describe, behind the preprocessing of its columns."""
        args = self._args
        machine = build_estimator(args, "scale" if args.gamma is None else args.gamma, class_weight)
        return wrap_machine(machine, data, args)

    def finish_single_class(self, data: Data) -> bool:
        return False

    def split(self, data: Data) -> tuple[Rows, Rows]:
        """Return the training rows and the held-out rows, each with their targets."""
        has_classes = self._args.machine in CLASSIFIERS
        if has_classes:
            check_class_sizes(data.y, data.source)
        rows = train_test_split(
            np.arange(len(data.y)),
            test_size=self._args.test_size,
            stratify=data.y if has_classes else None,
            random_state=self._args.seed,
        )
        train, test = ((_rows(data.X, part), data.y[part]) for part in rows)
        return train, test

    def fit(self, model: Estimator, train: Rows, **weights: Any) -> None:  # always empty: see `read_weights`
        """Train on the training rows; warnings are suppressed if training on all rows will repeat them."""
        with nullcontext() if self._args.keep_split else collect_warnings():
            model.fit(*train)

    def conclude(self, model: Estimator, data: Data, train: Rows, test: Rows, clock: Clock) -> None:
        """Test the model, train the one that is saved, and print the report."""
        args = self._args
        report = evaluate_model(model, data, train, test, args)
        clock.lap("test")
        rows = train if args.keep_split else (data.X, data.y)
        n = len(rows[1])
        with waiting(f"training on {n:,} rows", args.quiet or args.json, verbose=args.verbose):
            last = fit_final_model(model, rows, args)
        clock.lap("train")
        report = report.with_saved_model(last, n, clock)
        save_with_dialect(last, data, self.path)
        clock.lap("save")
        if args.json:
            print(json.dumps(report.to_dict() | {"seconds": clock.laps, "model_file": str(self.path)}, indent=2))
        elif not args.quiet:
            print(printable(report.text(self.path)))


def model_path(args: argparse.Namespace) -> Path:
    """Return the file in which the model of a table is saved."""
    default = (
        "model" if args.file is None else "standard_input" if args.file == "-" else strip_compression(args.file).stem
    )
    return Path(args.output or f"{default}.mercer")


def check_same_target(args: argparse.Namespace, path: Path) -> None:
    """Raise if the default file holds a model of another target, which the new model would overwrite."""
    if args.output is not None or not path.exists():
        return
    try:
        table = read_model(str(path)).table
    except (ModelFormatError, ValueError):  # not a model
        return
    target = getattr(table, "reading_", {}).get("target")
    if target is not None and args.target is not None and target != args.target:
        raise ValueError(
            f"{path} contains a model that predicts {target!r}, and the new model, which predicts {args.target!r}, "
            "would overwrite it: name another file with -o"
        )


def check_overwrite(args: argparse.Namespace, path: Path) -> None:
    """Raise if the default file exists with probabilities or intervals that the new model would lack."""
    if args.output is not None or args.probability or not path.exists():
        return
    try:
        old_model = read_model(str(path)).estimator()
    except (ModelFormatError, ValueError):
        # The file is not a model, or it is one without probabilities whose number of columns is unknown.
        return
    methods = [name for name in ("predict_proba", "predict_interval") if hasattr(old_model, name)]
    if methods:
        lost = "probabilities" if methods[0] == "predict_proba" else "intervals"
        raise ValueError(
            f"{path} contains a model with {lost}, as mercer easy saves it, and the new model would overwrite it "
            f"without them: name another file with -o, or learn {lost} with -b 1"
        )


def read_table(args: argparse.Namespace) -> Data:
    """Read the table or the built-in data set, and replace the machine "auto" by the one that suits the target."""
    if args.file is None:
        args.machine = "c_svc" if args.machine == AUTO else args.machine
        return load_embedded(args.data)
    data = read_frame(args, None if args.machine == AUTO else args.machine in REGRESSORS)
    if args.machine == AUTO:
        args.machine = "epsilon_svr" if data.kind is not None and data.kind.is_regression else "c_svc"
        if args.class_weight and args.machine != "c_svc":
            raise ValueError(
                f"--class-weight is for classes, but learning {data.target!r} is "
                f"{data.kind.reason if data.kind else ''}"
            )
    if args.machine in CLASSIFIERS and data.y.dtype.kind == "f" and (data.y % 1 != 0).any():
        fraction = data.y[np.argmax(data.y % 1 != 0)]
        raise ValueError(
            f"{data.source}: the target contains numbers such as {fraction:g}, which are not classes; for regression "
            "add --machine svr (-s 3)"
        )
    return data


def read_frame(args: argparse.Namespace, regression: bool | None) -> Data:
    """Read the table with the settings that the options give; ``regression=None`` lets its target decide."""
    texts = [name for word in (*args.categorical, *args.text) for name in (word, *word.split(","))]
    where, dialect = (args.file, args.format, args.target), dialect_from_options(args)
    return read_data(*where, regression=regression, as_frame=True, dialect=dialect, texts=texts, sheet=args.sheet)


def column_parameters(args: argparse.Namespace, data: Data) -> dict[str, Any]:
    """Return the parameters of `Tabular` that the options give."""
    column_names = [] if data.names is None else data.names
    columns: dict[str, Any] = {name: parse_columns(getattr(args, name), column_names, data) for name in COLUMN_OPTIONS}
    return {**columns, "only": columns["only"] or None, "missing": args.missing, "standardise": args.standardise}


def wrap_machine(machine: Estimator, data: Data, args: argparse.Namespace) -> Estimator:
    """Return the machine with the preprocessing that these data need."""
    if data.form == "embedded" or is_sparse(data.X):
        scaler = ("standardise", StandardScaler(with_mean=not is_sparse(data.X)))
        return Pipeline([*([scaler] if args.standardise else []), ("machine", machine)])
    model = Tabular(machine, **column_parameters(args, data))
    warnings.filterwarnings("ignore", category=GuessWarning)  # shown below or in the report
    if isinstance(data.X, Frame):
        guess_messages = guesses_in(data.X, model.column_options(), data.source) | target_guesses(
            data.y, data.target or "y"
        )
        if args.quiet or getattr(args, "folds", None) is not None:
            for guess in guess_messages.values():
                show_warning(guess)
    return model


def fit_final_model(model: Estimator, rows: Rows, args: argparse.Namespace) -> Estimator:
    """Return the model fitted to these rows, with probabilities or intervals if -b 1 is given."""
    if not args.probability:
        return model if len(rows[1]) == _n_training_rows(model) else clone(model).fit(*rows)
    from mercer.calibration import CalibratedClassifier, CalibratedRegressor

    if args.machine in CLASSIFIERS:
        folds = min(5, int(np.unique(rows[1], return_counts=True)[1].min()))
        return CalibratedClassifier(clone(model), cv=folds, decides="machine").fit(*rows)
    if args.machine in REGRESSORS:
        return CalibratedRegressor(clone(model)).fit(*rows)
    raise ValueError(f"-b 1 on a table is for classification and regression, not for {args.machine}")


def _n_training_rows(model: Estimator) -> int:
    """Return the number of rows that a model was trained on, those with missing values included."""
    from mercer.cli.machines import machine_of

    shape = getattr(machine_of(model), "shape_fit_", (0,))
    return int(shape[0]) + int(getattr(model, "n_rows_dropped_", 0))


def save_with_dialect(model: Estimator, data: Data, path: Path) -> None:
    """Save the model with the CSV settings of its table, which are the defaults for tables to predict."""
    table = table_in(model)
    if table is not None and isinstance(data.X, Frame):
        table.reading_ = data.dialect.to_dict() | {"target": str(data.target), "digest": data.digest}
    write_mercer_file(model, path)


def _rows(X: Any, rows: Any) -> Any:
    return X.rows(rows) if isinstance(X, Frame) else X[rows]


def parse_columns(words: list[str], column_names: list[str], data: Data) -> list[str]:
    """Return the column names in `words`, each of which may hold several names separated by commas."""
    named = [name for word in words for name in ([word] if word in column_names else word.split(","))]
    unknown = [name for name in named if name not in column_names]
    if unknown and unknown[0] == data.target:
        raise ValueError(
            f"{data.source}: the column {unknown[0]!r} is the target; these options are for the other columns"
        )
    if unknown:
        suggestion = column_suggestion(unknown[0], column_names)
        known_names = ", ".join(map(repr, column_names)) if column_names else "no column names"
        raise ValueError(f"{data.source} has no column {unknown[0]!r}{suggestion}; it has {known_names}")
    return named
