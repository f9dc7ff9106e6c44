"""``mercer predict``: svm-predict for models of mercer, LIBSVM, LIBLINEAR and SVMlight, and for tables."""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.calibration.libsvm_laws import normal_probabilities
from mercer.cli.data import Data, read_data
from mercer.cli.folds import libsvm_scores, regression_scores
from mercer.cli.formats import (
    add_data_arguments,
    add_reading_options,
    check_text_output,
    dialect_from_options,
    format_of,
    given_options,
    parse_share,
)
from mercer.cli.libsvm.probability import class_probabilities, pair_probabilities
from mercer.cli.terminal import Subparsers, add_command, printable
from mercer.files.atomic_write import replacing
from mercer.files.libsvm_model import LibsvmModel
from mercer.files.model import Model
from mercer.files.models import read_model
from mercer.runtime.errors import ModelFormatError
from mercer.runtime.progress import waiting
from mercer.samples.arrays import Floats
from mercer.tables.cells import is_missing
from mercer.tables.dialect import TABLE_FORMATS, TIME, UNKNOWN, Dialect, format_clock, stored_dialect, units_from_text
from mercer.tables.encodings import Levels, Words
from mercer.tables.frame import Frame
from mercer.tables.reading import known_targets


def register(commands: Subparsers) -> None:
    """Add the command and its options to the parser."""
    parser = add_command(
        commands,
        "predict",
        run,
        (
            "mercer predict new.csv iris.mercer answers.csv",
            "the rows with a column of predictions; columns are matched by name",
        ),
        ("mercer predict iris.csv iris.mercer answers.csv --target species", "also prints the accuracy"),
        ("mercer predict -b 1 heart heart.model heart.out", "same as svm-predict"),
        ("cut -d, -f2- rows.csv | mercer predict --format csv - iris.mercer", "reads from a pipe"),
        description="Predict every row of a file, and print the accuracy if the file contains the true values. For a "
        "table it writes the same table with new columns: the prediction, and its probability or interval if the "
        "model has them. For LIBSVM text, and with --plain, it writes what svm-predict writes. Without OUTPUT, or "
        "with -, the predictions go to standard output and the accuracy to standard error.",
        files="data_file model_file [output_file]",
        computes=True,
    )
    add_data_arguments(parser, "column of a table with the true values; default: the target of training")
    parser.add_argument("model", metavar="MODEL", help="model file: .mercer, LIBSVM, LIBLINEAR or SVMlight")
    parser.add_argument(
        "output", nargs="?", metavar="OUTPUT", default="-", help="file for the predictions, one line per row (-)"
    )
    add_reading_options(parser)
    parser.add_argument(
        "-b",
        "--probability",
        type=int,
        choices=(0, 1),
        default=0,
        help="1: write probabilities too; for a table, those of every class (0)",
    )
    parser.add_argument(
        "--plain", action="store_true", help="write only the predictions, as svm-predict does, also for a table"
    )
    parser.add_argument(
        "--alpha", type=parse_share, default=0.1, help="share of true values that may lie outside the intervals (0.1)"
    )
    style = parser.add_mutually_exclusive_group()
    style.add_argument(
        "--json", action="store_true", help="print the scores as JSON, and without OUTPUT the predictions too"
    )
    style.add_argument("-q", "--quiet", action="store_true", help="print nothing but errors")


_QUANTITIES = ("predicted", "low", "high")  # in the unit of the target, written with more digits than probabilities


@dataclass(frozen=True)
class _Predictions:
    """Predictions for all rows, and the lines that svm-predict writes for them."""

    kind: str  # classification, regression, one-class or clustering
    values: Any
    lines: list[str]
    remarks: tuple[str, ...] = ()


def run(args: argparse.Namespace) -> None:
    """Run the command with these options."""
    check_text_output(args.output)
    model = read_model_and_place_data(args)
    data = read_rows_for(model, args, dialect_from_options(args))
    with waiting(f"predicting {data.X.shape[0]:,} rows", args.quiet or args.json):
        answer = _predict(model, data, bool(args.probability))
    rows, truth = _truth(answer, data)
    writes_table = data.table is not None and not args.plain
    scores, score_lines = _score(answer.kind, answer.values[rows], truth)
    if score_lines and writes_table and answer.kind == "regression":
        errors, line = regression_scores(answer.values[rows], truth, target_unit(model, data))
        scores, score_lines = scores | errors, [f"{line} (regression)"]
    remarks = [*answer.remarks, *_unseen_levels(model, data), *_scoring_remarks(args, answer, data, truth)]
    if score_lines and data.digest and getattr(model.table, "reading_", {}).get("digest") == data.digest:
        remarks.append("The model was trained on these rows: its predictions for new rows will be less accurate.")
    columns = _prediction_columns(model, data, answer, args) if writes_table else {}
    if "low" not in columns and given_options(args, ("alpha",)):
        raise ValueError(
            "--alpha is for the intervals of a regression on a table, but no intervals are written here: leave it out"
        )
    if writes_table:
        text = table_with_columns(data, columns)
        if "low" in columns and args.output != "-":
            remarks.append(f"low and high enclose the true values of about {100 * (1 - args.alpha):.4g}% of new rows.")
    else:
        text = "\n".join([*answer.lines, ""])
    if args.output != "-":
        encoding = (data.dialect.encoding or "utf-8") if writes_table else "utf-8"
        with replacing(args.output) as file:
            file.write(_encode(text, encoding))
    elif not args.json:
        # A terminal gets only characters that it can show, a pipe the text unchanged.
        sys.stdout.write(printable(text) if sys.stdout.isatty() else text)
    if args.json:
        predictions = {"predictions": answer.values.tolist()} if args.output == "-" else {"output": args.output}
        print(json.dumps(scores | predictions))
    elif not args.quiet:
        for line in (*remarks, *score_lines):
            stream = sys.stderr if args.output == "-" else sys.stdout
            print(printable(line, stream), file=stream)


def _encode(text: str, encoding: str) -> bytes:
    """Encode the text as the table was encoded, or as UTF-8 if that encoding lacks a character."""
    try:
        return text.encode(encoding)
    except UnicodeEncodeError:
        return text.encode()


def _prediction_columns(model: Model, data: Data, answer: _Predictions, args: argparse.Namespace) -> dict[str, Any]:
    """Return the new columns of a table: predictions, and their probabilities or the ends of intervals."""
    new_columns: dict[str, Any] = {}
    values = np.asarray(answer.values)
    for k, column in enumerate(values.T if values.ndim > 1 else [values]):
        new_columns["predicted" if values.ndim < 2 else f"predicted {k + 1}"] = column.tolist()
    estimator = model.estimator()
    X = model.rows(data.X, data.source, text=False)
    if model.kind == "classification" and hasattr(estimator, "predict_proba"):
        p, labels = np.asarray(estimator.predict_proba(X)), [str(label) for label in estimator.classes_]
        index = {label: k for k, label in enumerate(labels)}
        new_columns["probability"] = [
            float(row[index[str(value)]]) for row, value in zip(p, values.tolist(), strict=True)
        ]
        if args.probability:
            new_columns |= {f"p({label})": p[:, k].tolist() for k, label in enumerate(labels)}
    elif model.kind == "regression" and hasattr(estimator, "predict_interval"):
        low, high = estimator.predict_interval(X, args.alpha)
        new_columns |= {"low": low.tolist(), "high": high.tolist()}
    elif args.probability:
        raise ValueError(
            f"{args.model} has no probabilities or intervals: train it with -b 1, or with mercer easy; in Python, "
            "model.calibrate(X, y)"
        )
    if target_unit(model, data) == TIME:
        new_columns = {
            name: list(map(format_clock, column)) if name in _QUANTITIES else column
            for name, column in new_columns.items()
        }
    return new_columns


def target_unit(model: Model, data: Data) -> str:
    """Return the unit of the target in the training table; empty if it had none."""
    reading = getattr(model.table, "reading_", {})
    return units_from_text(reading.get("units")).get(str(data.target or reading.get("target")), "")


def table_with_columns(data: Data, columns: dict[str, Any]) -> str:
    """Return the table as CSV text with further columns, in the separator and decimal mark of its file."""
    assert data.table is not None
    table, has_decimal_comma = data.table, data.dialect.decimal == ","
    header = list(table.header)
    for name in columns:
        while name in header:
            name += "_"
        header.append(name)
    out = io.StringIO()
    writer = csv.writer(out, delimiter=data.dialect.separator or ",", lineterminator="\n")
    writer.writerow(header)
    new_cells = [
        [_cell(value, has_decimal_comma, 10 if name in _QUANTITIES else 6) for value in column]
        for name, column in columns.items()
    ]
    old_cells = [column if isinstance(column, list) else map(_stored_cell, column.tolist()) for column in table.cells]
    writer.writerows(zip(*old_cells, *new_cells, strict=True))
    return out.getvalue()


def _stored_cell(value: Any) -> Any:
    """Return a cell of a Parquet or Excel file for CSV, in which a missing value is empty."""
    return "" if is_missing(value) else value


def _cell(value: Any, comma: bool, digits: int) -> str:
    """Return a predicted value as the text of a cell, with a decimal comma if the table has one."""
    if not isinstance(value, float):
        return str(value)
    text = f"{value:.15g}" if value % 1 == 0 else f"{value:.{digits}g}"
    return text.replace(".", ",") if comma else text


def read_model_and_place_data(args: argparse.Namespace) -> Model:
    """Read the model file; if DATA and MODEL were named in the other order, exchange them in `args`."""
    try:
        return read_model(args.model)
    except ModelFormatError as error:
        try:
            model = read_model(args.file)
        except (ModelFormatError, OSError):
            raise error from None
        args.model, args.file = args.file, args.model
        return model


def read_rows_for(model: Model, args: argparse.Namespace, dialect: Dialect = UNKNOWN) -> Data:
    """Read the data file as the model needs it, with the target column if there is one."""
    reading = getattr(model.table, "reading_", {})
    is_table = format_of(args.file, args.format) in TABLE_FORMATS.values()
    target = args.target or (reading.get("target") if is_table else None)
    return read_data(
        *(args.file, args.format, target),
        training=False,
        first_index=model.first_index,
        wanted=model.feature_names,
        as_frame=model.table is not None,
        dialect=dialect,
        sheet=getattr(args, "sheet", None),
        training_dialect=stored_dialect(reading),
        texts=[column.name for column in getattr(model.table, "columns_", ()) if isinstance(column, Levels | Words)],
    )


def _predict(model: Model, data: Data, probability: bool) -> _Predictions:
    """Predict all rows, with probabilities as svm-predict -b 1 writes them if `probability`."""
    X = model.rows(data.X, data.source, text=data.form == "libsvm")
    if probability and (data.table is None or model.has_probabilities):
        return _with_probabilities(model.with_probabilities(), model.decisions(X))
    try:
        values = model.predict(X)
    except ValueError as error:
        raise ValueError(f"{data.source}: {error}") from None
    remarks = ("Model supports probability estimates, but disabled in prediction.",) if model.has_probabilities else ()
    return _Predictions(model.kind, values, [_line(value) for value in values.tolist()], remarks)


def _line(value: Any) -> str:
    """Return a prediction as one line of text; several outputs are separated by blanks."""
    if isinstance(value, list):
        return " ".join(_line(item) for item in value)
    if isinstance(value, float):
        return f"{value:.17g}"
    text = str(value)
    return text if len(text.splitlines()) < 2 else json.dumps(text)  # a class name may contain a line break


def _with_probabilities(model: LibsvmModel, decisions: Floats) -> _Predictions:
    """Return the predictions that svm-predict -b 1 writes, from the decision values of all pairs of classes."""
    if model.prob_a is not None and model.prob_b is not None and model.label is not None:
        p = class_probabilities(pair_probabilities(decisions, model.prob_a, model.prob_b), model.nr_class)
        values = np.array(model.label)[np.argmax(p, axis=1)]
        lines = [" ".join(["labels", *map(str, model.label)])]
        lines += [" ".join([f"{v:g}", *(f"{q:g}" for q in row)]) for v, row in zip(values, p, strict=True)]
        return _Predictions("classification", values, lines)
    values = model.answers(decisions)
    if model.density_marks is not None:
        pairs = zip(values, normal_probabilities(decisions[:, 0], model.density_marks), strict=True)
        lines = ["label normal outlier", *(f"{value:g} {p:g} {1 - p:g}" for value, p in pairs)]
        return _Predictions("one-class", values, lines)
    assert model.prob_a is not None
    remark = (
        "Prob. model for test data: target value = predicted value + z,\n"
        f"z: Laplace distribution e^(-|z|/sigma)/(2sigma),sigma={model.prob_a[0]:g}"
    )
    return _Predictions("regression", values, [_line(value) for value in values.tolist()], (remark,))


# --- scores ----------------------------------------------------------------------------------------------------------


def _truth(answer: _Predictions, data: Data) -> tuple[Any, Any]:
    """Return the rows with a true value, and the values; none for several outputs or for clusters."""
    if data.y is None or np.ndim(answer.values) > 1 or answer.kind == "clustering":
        return np.empty(0, dtype=np.intp), None
    return known_targets(data.y, answer.values, answer.kind == "regression", data.source, data.target or "y")


def _unseen_levels(model: Model, data: Data) -> list[str]:
    """Return remarks on categories that did not occur in training, which the model cannot tell apart."""
    if model.table is None or not isinstance(data.X, Frame):
        return []
    remarks = []
    for column in model.table.columns_:
        new_levels = column.unseen(data.X[column.name]) if isinstance(column, Levels) else []
        if new_levels:
            names = ", ".join(map(repr, new_levels[:3])) + (
                f" and {len(new_levels) - 3} more" if len(new_levels) > 3 else ""
            )
            remarks.append(
                f"Column {column.name!r} contains {names}, which did not occur in training: such cells belong to no "
                "category."
            )
    return remarks


def _scoring_remarks(args: argparse.Namespace, answer: _Predictions, data: Data, truth: Any) -> list[str]:
    """Return remarks on why a table's scores are missing, partial or doubtful."""
    rows = f"{len(answer.values)} rows predicted."
    if data.y is None and args.target is not None:
        return [f"{data.source} has no column {args.target!r} to compare with: {rows}"]
    if data.y is None:
        return [rows] if args.output != "-" else []
    if truth is None:
        return []
    n_unknown = len(answer.values) - len(truth)
    remarks = []
    if n_unknown:
        remarks.append(f"{n_unknown} of {len(answer.values)} rows have no target value and are not scored.")
    labels = set(truth.tolist())
    if data.target is None or answer.kind == "regression" or not labels or labels & set(answer.values.tolist()):
        return remarks
    return [
        *remarks,
        f"WARNING: {data.target!r} contains {str(truth[0])!r:.40} and other values that the model never predicts: is "
        "it the right column?",
    ]


def _score(kind: str, answers: Any, truth: Any) -> tuple[dict[str, Any], list[str]]:
    """Return svm-predict's scores by name and as its lines; nothing without true values."""
    if truth is None or len(truth) == 0:
        return {}, []
    scores, lines = libsvm_scores(answers, truth, kind == "regression")
    if kind == "regression":
        return scores, [f"{line} (regression)" for line in lines]
    right = int(np.sum(answers == truth))
    lines = [f"{lines[0]} ({right}/{len(truth)}) (classification)"]
    return {**scores, "correct": right, "rows": len(truth)}, lines
