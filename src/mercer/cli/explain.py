"""``mercer explain``: importance of columns, and Shapley values of the predictions for single rows."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mercer.cli.data import Data
from mercer.cli.formats import add_data_arguments, add_reading_options, dialect_from_options
from mercer.cli.predict import read_model_and_place_data, read_rows_for, table_with_columns, target_unit
from mercer.cli.terminal import Subparsers, add_command, printable
from mercer.files.atomic_write import replacing
from mercer.inspection.displays.drawing import show_unit
from mercer.inspection.easy.importance import Importance, with_numbers
from mercer.inspection.easy.page import Line, page
from mercer.inspection.explain import explain
from mercer.runtime.optional import require
from mercer.runtime.progress import waiting
from mercer.samples.arrays import n_samples
from mercer.tables.cells import is_missing
from mercer.tables.dialect import format_quantity
from mercer.tables.frame import part_of

# Number of rows whose explanation is printed, and of background rows.
_N_PRINTED, _N_BACKGROUND = 5, 100


def register(commands: Subparsers) -> None:
    """Add the command and its options to the parser."""
    parser = add_command(
        commands,
        "explain",
        run,
        ("mercer explain iris.mercer iris.csv", "important columns, and reasons for the first predictions"),
        ("mercer explain iris.mercer new.csv --background iris.csv", "with the training rows as background"),
        ("mercer explain iris.mercer iris.csv reasons.csv --plot reasons.png", "reasons for every row, and a picture"),
        description="Explain predictions by exact Shapley values: how much each column of a row adds to f, compared "
        "with the values that the column has in background rows. For each row they sum to f minus the mean of f over "
        "the background. For a regression f is the predicted number, for a classifier the score of the predicted "
        "class.",
        computes=True,
    )
    parser.add_argument("model", metavar="MODEL", help="model file: .mercer, LIBSVM, LIBLINEAR or SVMlight")
    add_data_arguments(
        parser, "column of a table with the true values, which is not a feature; default: the target of training"
    )
    parser.add_argument(
        "output", nargs="?", metavar="OUTPUT", help="CSV file for the rows and the Shapley values of all columns"
    )
    add_reading_options(parser)
    parser.add_argument("--background", metavar="FILE", help="file with background rows to compare with; default: DATA")
    parser.add_argument(
        "--plot", type=Path, metavar="PICTURE", help="draw the Shapley values of all rows: .png, .svg or .pdf"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")


def run(args: argparse.Namespace) -> None:
    """Run the command with these options."""
    model = read_model_and_place_data(args)
    data = read_rows_for(model, args, dialect_from_options(args))
    background, background_file = data, f"{args.file}"
    if args.background is not None:
        background_args = argparse.Namespace(**{**vars(args), "file": args.background})
        background, background_file = read_rows_for(model, background_args, dialect_from_options(args)), args.background
    X, Z = (model.rows(table.X, table.source, text=table.form == "libsvm") for table in (data, background))
    if n_samples(Z) < 2:
        raise ValueError(
            f"{background_file} has {n_samples(Z)} row, but a row is explained by comparing it with others: name a "
            "file of background rows, such as the training table, with --background"
        )
    drawn = np.random.default_rng(0).permutation(n_samples(Z))[:_N_BACKGROUND]
    Z = part_of(Z, np.sort(drawn))
    estimator = model.estimator(X.shape[1])
    with waiting(f"explaining {n_samples(X):,} rows", args.quiet or args.json):
        explanation = explain(estimator, X, Z)
        answers = np.asarray(model.predict(X))
    if args.plot is not None:
        drawn_values = explanation if model.table is None else with_numbers(explanation, model.table.columns_)
        _draw(drawn_values, args.plot, target_unit(model, data))
    predicted = _explain_predictions(explanation, answers)
    if args.output is not None:
        with replacing(args.output) as file:
            file.write(_table(data, predicted, answers).encode())
    if args.json:
        print(json.dumps(_facts(explanation, predicted, answers, len(drawn)), indent=2))
    elif not args.quiet:
        unit = target_unit(model, data)
        drawn_from = f"{len(drawn)} rows of {background_file}"
        print(printable("\n".join(_page(data, explanation, predicted, answers, drawn_from, unit))))
        for path in (args.output, args.plot):
            if path is not None:
                print(printable(f"saved {path}"))


def _explain_predictions(explanation: Any, answers: Any) -> Any:
    """Return the explanation of each row's predicted class, or of the number that a regression predicts."""
    if explanation.classes is None:
        return explanation.output(0) if explanation.several else explanation
    by_class = {label: explanation.of_class(label) for label in dict.fromkeys(answers.tolist())}
    values = np.array([by_class[label].values[row] for row, label in enumerate(answers.tolist())])
    base = np.array([by_class[label].base_values[row] for row, label in enumerate(answers.tolist())])
    return replace(
        explanation,
        values=values,
        base_values=base,
        output_names=(explanation.function,),
        classes=None,
        pairs=None,
    )


def _draw(explanation: Any, path: Path, unit: str) -> None:
    """Save a beeswarm of the Shapley values in a unit; of several outputs, the first one is drawn."""
    require("matplotlib", "drawing an explanation").use("Agg")
    one_output = explanation.output(0) if explanation.several else explanation
    display = one_output.plot("beeswarm")
    if unit:
        show_unit(display.ax_.xaxis, unit)
    _save(display, path)


def _save(display: Any, path: Path) -> None:
    """Write a plot in the format of the file's suffix, by default PNG."""
    with replacing(path) as file:
        display.figure_.savefig(file, format=path.suffix.removeprefix(".") or "png", dpi=150)


def _table(data: Data, predicted: Any, answers: Any) -> str:
    """Return the rows as CSV text with their predictions and the Shapley value of each column."""
    added = {f"because of {name}": predicted.values[:, j].tolist() for j, name in enumerate(predicted.feature_names)}
    base = {"predicted": answers.tolist(), "background": np.broadcast_to(predicted.base_values, len(answers)).tolist()}
    if data.table is not None:
        return table_with_columns(data, base | added)
    lines = [",".join(["predicted", "background", *predicted.feature_names])]
    columns = [*base.values(), *added.values()]
    return "\n".join([*lines, *(",".join(map(_cell, row)) for row in zip(*columns, strict=True)), ""])


def _cell(value: Any) -> str:
    """Return a number with six significant digits, and a class as it is."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _facts(explanation: Any, predicted: Any, answers: Any, n_background: int) -> dict[str, Any]:
    """Return the explanation as plain values for JSON."""
    return {
        "importance": Importance(explanation, None).shares,
        "background_rows": n_background,
        "columns": list(predicted.feature_names),
        "predictions": answers.tolist(),
        "background": np.broadcast_to(predicted.base_values, len(answers)).tolist(),
        "values": predicted.values.tolist(),
    }


def _page(data: Data, explanation: Any, predicted: Any, answers: Any, background: str, unit: str) -> list[str]:
    """Return the printed lines: importance of columns, the background, and reasons for the first predictions."""
    cells = {} if data.table is None else dict(zip(data.table.header, data.table.cells, strict=True))
    lines: list[Line] = [*Importance(explanation, None).lines(), ("background", background), None]
    lines += [_row_line(row, cells, predicted, answers, unit) for row in range(min(_N_PRINTED, len(answers)))]
    if len(answers) > _N_PRINTED:
        lines.append(("", f"and {len(answers) - _N_PRINTED:,} more rows; name an OUTPUT file to get them all"))
    return page(lines)


def _row_line(row: int, cells: dict[str, Any], predicted: Any, answers: Any, unit: str) -> Line:
    """Return the prediction for a row, and the five columns that contribute most to it."""
    values = predicted.values[row]
    largest = [j for j in np.argsort(-np.abs(values), kind="stable")[:5] if values[j] != 0]
    predicted_value = answers[row]
    is_number = isinstance(predicted_value, float | np.floating)
    contributions: dict[bool, list[str]] = {True: [], False: []}
    for j in largest:
        name, value = predicted.feature_names[j], float(values[j])
        cell = f" {_describe_cell(cells[name][row])}" if name in cells else ""
        sign = "+" if value >= 0 else "-"
        added = f"{sign}{format_quantity(abs(value), unit)}" if is_number else f"{value:+.3g}"
        contributions[value >= 0].append(f"{added} from {name}{cell}")
    sides = ("raised by", "lowered by") if is_number else ("for it", "against it")
    labelled = zip(sides, contributions.values(), strict=True)
    reasons = "; ".join(f"{label}: {', '.join(texts)}" for label, texts in labelled if texts) or "no column changes it"
    prediction = format_quantity(float(predicted_value), unit) if is_number else repr(str(predicted_value))
    return f"row {row + 1}", f"{prediction}; {reasons}"


def _describe_cell(cell: Any) -> str:
    """Return what a table holds in a cell, such as "= 31", and "(missing)" if it is empty."""
    return "(missing)" if is_missing(cell) or not str(cell).strip() else f"= {cell}"
