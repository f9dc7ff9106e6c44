"""``mercer predict``: svm-predict, for LIBSVM's models and mercer's own."""

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
from mercer.cli.folds import errors_of, figures_of
from mercer.cli.formats import add_data, add_flags, asked_for, format_of
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
from mercer.tables.dialect import TIME, UNKNOWN, Dialect, clock, from_text, remembered
from mercer.tables.encodings import Levels, Words
from mercer.tables.frame import Frame
from mercer.tables.reading import known_truth


def register(commands: Subparsers) -> None:
    parser = add_command(
        commands,
        "predict",
        run,
        ("mercer predict new.csv iris.mercer answers.csv", "the rows with their answers; columns are found by name"),
        ("mercer predict iris.csv iris.mercer answers.csv --target species", "and the accuracy"),
        ("mercer predict -b 1 heart heart.model heart.out", "as svm-predict"),
        ("cut -d, -f2- rows.csv | mercer predict --format csv - iris.mercer", "in a pipe"),
        description="Predict every row of a file, and say how often the file's own labels agree. Of a table it "
        "writes a table: the rows' own columns and, beside them, the answer, and its probability or interval if the "
        "model has them. Of LIBSVM text, and with --plain, it writes what svm-predict does. The model is a .mercer "
        "file or one of LIBSVM's. Without OUTPUT, or with -, the predictions go to standard output and the accuracy to "
        "standard error.",
        files="data_file model_file [output_file]",
        computes=True,
    )
    add_data(parser, "a table's column with the truth; default: the one learnt")
    parser.add_argument("model", metavar="MODEL", help="a .mercer file, or a LIBSVM, LIBLINEAR or SVMlight model")
    parser.add_argument("output", nargs="?", metavar="OUTPUT", default="-", help="one line for each row (-)")
    add_flags(parser)
    parser.add_argument(
        "-b",
        "--probability",
        type=int,
        choices=(0, 1),
        default=0,
        help="probabilities too; of a table, of each class (0)",
    )
    parser.add_argument(
        "--plain", action="store_true", help="of a table too, only the answers, as svm-predict has them"
    )
    parser.add_argument("--alpha", type=float, default=0.1, help="share of targets that an interval may miss (0.1)")
    style = parser.add_mutually_exclusive_group()
    style.add_argument("--json", action="store_true", help="print figures, and without OUTPUT predictions, as JSON")
    style.add_argument("-q", "--quiet", action="store_true", help="print nothing but errors")


_NUMBERS = ("predicted", "low", "high")  # in the unit of the target, and so with more digits than probabilities


@dataclass(frozen=True)
class _Answer:
    """One prediction for each row, and the file's lines."""

    kind: str  # classification, regression, one-class or clustering
    values: Any
    lines: list[str]
    remarks: tuple[str, ...] = ()


def run(args: argparse.Namespace) -> None:
    model = model_beside(args.model, args.file)
    data = read_truths(model, args, asked_for(args))
    with waiting(f"predicting {data.X.shape[0]:,} rows", args.quiet or args.json):
        answer = _ask(model, data, bool(args.probability))
    rows, truth = _truth(answer, data)
    framed = data.table is not None and not args.plain
    figures, told = _judge(answer.kind, answer.values[rows], truth)
    if told and framed and answer.kind == "regression":
        errors, line = errors_of(answer.values[rows], truth, target_unit(model, data))
        figures, told = figures | errors, [f"{line} (regression)"]
    remarks = [*answer.remarks, *_unseen(model, data), *_unjudged(args, answer, data, truth)]
    if told and data.digest and getattr(model.table, "reading_", {}).get("digest") == data.digest:
        remarks.append("These are the rows that the model was trained on: new ones are answered less well.")
    text = with_answers(data, _beside(model, data, answer, args)) if framed else "\n".join([*answer.lines, ""])
    if args.output != "-":
        encoding = (data.dialect.encoding or "utf-8") if framed else "utf-8"
        with replacing(args.output) as file:
            file.write(_encoded(text, encoding))
    elif not args.json:
        # A pipe gets the data as they are, and a person what can be shown.
        sys.stdout.write(printable(text) if sys.stdout.isatty() else text)
    if args.json:
        predictions = {"predictions": answer.values.tolist()} if args.output == "-" else {"output": args.output}
        print(json.dumps(figures | predictions))
    elif not args.quiet:
        for line in (*remarks, *told):
            stream = sys.stderr if args.output == "-" else sys.stdout
            print(printable(line, stream), file=stream)


def _encoded(text: str, encoding: str) -> bytes:
    """As the table was, if that has all letters of the answers."""
    try:
        return text.encode(encoding)
    except UnicodeEncodeError:
        return text.encode()


def _beside(model: Model, data: Data, answer: _Answer, args: argparse.Namespace) -> dict[str, Any]:
    """New columns for a table: the answers, and their probabilities or the ends of intervals."""
    found: dict[str, Any] = {}
    values = np.asarray(answer.values)
    for k, column in enumerate(values.T if values.ndim > 1 else [values]):
        found["predicted" if values.ndim < 2 else f"predicted {k + 1}"] = column.tolist()
    estimator = model.estimator()
    X = model.rows(data.X, data.source, text=False)
    if model.kind == "classification" and hasattr(estimator, "predict_proba"):
        p, labels = np.asarray(estimator.predict_proba(X)), [str(label) for label in estimator.classes_]
        place = {label: k for k, label in enumerate(labels)}
        found["probability"] = [float(row[place[str(value)]]) for row, value in zip(p, values.tolist(), strict=True)]
        if args.probability:
            found |= {f"p({label})": p[:, k].tolist() for k, label in enumerate(labels)}
    elif model.kind == "regression" and hasattr(estimator, "predict_interval"):
        low, high = estimator.predict_interval(X, args.alpha)
        found |= {"low": low.tolist(), "high": high.tolist()}
    elif args.probability:
        raise ValueError(
            f"{args.model} has no probabilities or intervals: train it with -b 1, or with mercer easy; in Python, "
            "model.calibrate(X, y)"
        )
    if target_unit(model, data) == TIME:
        found = {name: list(map(clock, column)) if name in _NUMBERS else column for name, column in found.items()}
    return found


def target_unit(model: Model, data: Data) -> str:
    """The unit that the numbers to predict had in the training table; empty where they had none."""
    reading = getattr(model.table, "reading_", {})
    return from_text(reading.get("units")).get(str(data.target or reading.get("target")), "")


def with_answers(data: Data, found: dict[str, Any]) -> str:
    """The table as it stands in its file, with new columns; written as the file is."""
    assert data.table is not None
    table, mark = data.table, data.dialect.decimal == ","
    header = list(table.header)
    for name in found:
        while name in header:
            name += "_"
        header.append(name)
    out = io.StringIO()
    writer = csv.writer(out, delimiter=data.dialect.separator or ",", lineterminator="\n")
    writer.writerow(header)
    new = [[_cell(value, mark, 10 if name in _NUMBERS else 6) for value in column] for name, column in found.items()]
    old = [column if isinstance(column, list) else map(_own_cell, column.tolist()) for column in table.cells]
    writer.writerows(zip(*old, *new, strict=True))
    return out.getvalue()


def _own_cell(value: Any) -> Any:
    return "" if is_missing(value) else value  # of a Parquet file


def _cell(value: Any, comma: bool, digits: int) -> str:
    if not isinstance(value, float):
        return str(value)
    text = f"{value:.15g}" if value % 1 == 0 else f"{value:.{digits}g}"
    return text.replace(".", ",") if comma else text


def model_beside(path: str, data: str) -> Model:
    """The model in a file; the error says so where it is the other file that holds one."""
    try:
        return read_model(path)
    except ModelFormatError as error:
        try:
            read_model(data)
        except (ModelFormatError, OSError):
            raise error from None
        raise ValueError(f"{path} is no model, but {data} is: give the two in the other order") from None


def read_truths(model: Model, args: argparse.Namespace, asked: Dialect = UNKNOWN) -> Data:
    """The data file that is named, as the model takes it, with the column that it has learnt, where there is one."""
    read = getattr(model.table, "reading_", {})
    is_table = format_of(args.file, args.format) in ("csv", "tsv", "parquet")
    target = args.target or (read.get("target") if is_table else None)
    return read_data(
        *(args.file, args.format, target),
        training=False,
        first_index=model.first_index,
        wanted=model.feature_names,
        as_frame=model.table is not None,
        asked=asked,
        before=remembered(read),
        texts=[one.name for one in getattr(model.table, "columns_", ()) if isinstance(one, Levels | Words)],
    )


def _ask(model: Model, data: Data, probability: bool) -> _Answer:
    X = model.rows(data.X, data.source, text=data.form == "libsvm")
    if probability and (data.table is None or model.has_probabilities):
        return _with_probabilities(model.with_probabilities(), model.decisions(X))
    try:
        values = model.predict(X)
    except ValueError as error:
        raise ValueError(f"{data.source}: {error}") from None
    remarks = ("Model supports probability estimates, but disabled in prediction.",) if model.has_probabilities else ()
    return _Answer(model.kind, values, [_line(value) for value in values.tolist()], remarks)


def _line(value: Any) -> str:
    """A prediction as text; several outputs stand side by side."""
    if isinstance(value, list):
        return " ".join(_line(item) for item in value)
    if isinstance(value, float):
        return f"{value:.17g}"
    text = str(value)
    return text if len(text.splitlines()) < 2 else json.dumps(text)  # one line for each row, whatever a class is called


def _with_probabilities(model: LibsvmModel, decisions: Floats) -> _Answer:
    """svm-predict's lines with -b 1, from the decision values of all pairs."""
    if model.prob_a is not None and model.prob_b is not None and model.label is not None:
        p = class_probabilities(pair_probabilities(decisions, model.prob_a, model.prob_b), model.nr_class)
        values = np.array(model.label)[np.argmax(p, axis=1)]
        lines = [" ".join(["labels", *map(str, model.label)])]
        lines += [" ".join([f"{v:g}", *(f"{q:g}" for q in row)]) for v, row in zip(values, p, strict=True)]
        return _Answer("classification", values, lines)
    values = model.answers(decisions)
    if model.density_marks is not None:
        pairs = zip(values, normal_probabilities(decisions[:, 0], model.density_marks), strict=True)
        lines = ["label normal outlier", *(f"{value:g} {p:g} {1 - p:g}" for value, p in pairs)]
        return _Answer("one-class", values, lines)
    assert model.prob_a is not None
    remark = (
        "Prob. model for test data: target value = predicted value + z,\n"
        f"z: Laplace distribution e^(-|z|/sigma)/(2sigma),sigma={model.prob_a[0]:g}"
    )
    return _Answer("regression", values, [_line(value) for value in values.tolist()], (remark,))


# --- how good it is --------------------------------------------------------------------------------------------------


def _truth(answer: _Answer, data: Data) -> tuple[Any, Any]:
    """The rows whose truth the file tells, and it; several outputs have no single truth, and clusters no names."""
    if data.y is None or np.ndim(answer.values) > 1 or answer.kind == "clustering":
        return np.empty(0, dtype=np.intp), None
    return known_truth(data.y, answer.values, answer.kind == "regression", data.source, data.target or "y")


def _unseen(model: Model, data: Data) -> list[str]:
    """Levels of a table's categories that training had not: such rows are told apart by their other columns alone."""
    if model.table is None or not isinstance(data.X, Frame):
        return []
    told = []
    for one in model.table.columns_:
        new = one.unseen(data.X[one.name]) if isinstance(one, Levels) else []
        if new:
            shown = ", ".join(map(repr, new[:3])) + (f" and {len(new) - 3} more" if len(new) > 3 else "")
            told.append(f"The column {one.name!r} holds {shown}, which training did not have: it counts as no level.")
    return told


def _unjudged(args: argparse.Namespace, answer: _Answer, data: Data, truth: Any) -> list[str]:
    """Of a table: why there are no figures, or of fewer rows, or none that mean much."""
    rows = f"{len(answer.values)} rows predicted."
    if data.y is None and args.target is not None:
        return [f"{data.source} has no column {args.target!r} to compare with: {rows}"]
    if data.y is None:
        return [rows] if args.output != "-" else []
    if truth is None:
        return []
    untold = len(answer.values) - len(truth)
    told = []
    if untold:
        told.append(f"{untold} of {len(answer.values)} rows do not tell the truth, and are left out of what follows.")
    known = set(truth.tolist())
    if data.target is None or answer.kind == "regression" or not known or known & set(answer.values.tolist()):
        return told
    return [
        *told,
        f"WARNING: {data.target!r} holds {str(truth[0])!r:.40} and others that are never predicted: is it the truth?",
    ]


def _judge(kind: str, answers: Any, truth: Any) -> tuple[dict[str, Any], list[str]]:
    """svm-predict's figures, where the file holds the truth."""
    if truth is None or len(truth) == 0:
        return {}, []
    figures, told = figures_of(answers, truth, kind == "regression")
    if kind == "regression":
        return figures, [f"{line} (regression)" for line in told]
    right = int(np.sum(answers == truth))
    told = [f"{told[0]} ({right}/{len(truth)}) (classification)"]
    return {**figures, "correct": right, "rows": len(truth)}, told
