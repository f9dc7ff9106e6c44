"""``mercer explain``: importance of columns, and Shapley values of the predictions for single rows."""

from __future__ import annotations

import argparse
import json
import textwrap
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from mercer.cli.data import Data
from mercer.cli.formats import add_data_arguments, add_reading_options, check_text_output, dialect_from_options
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
from mercer.tables.reading import is_number

# Number of rows whose explanation is printed, and of background rows.
_N_PRINTED, _N_BACKGROUND = 5, 100
# Characters of a cell that are printed: longer numbers are rounded, and longer texts cut.
_LONGEST_NUMBER, _LONGEST_TEXT = 12, 60


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
        "with the values that the column has in background rows. The Shapley values of a row add up to its f minus the "
        "mean of f over the background. For a regression f is the predicted number, for a classifier the score of the "
        "predicted class, and for a one-class machine a number that is positive for normal rows.",
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
    if args.output is not None:
        check_text_output(args.output)
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
    drawn_rows = np.random.default_rng(0).permutation(n_samples(Z))[:_N_BACKGROUND]
    Z = part_of(Z, np.sort(drawn_rows))
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
        print(json.dumps(_facts(explanation, predicted, answers, len(drawn_rows)), indent=2))
    elif not args.quiet:
        unit = target_unit(model, data)
        drawn_from = f"{len(drawn_rows)} rows of {background_file}"
        rows = _Rows(data, predicted, answers, model.kind, unit)
        print(printable("\n".join(_page(explanation, drawn_from, rows))))
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
    contribution_columns = {
        f"because of {name}": predicted.values[:, j].tolist() for j, name in enumerate(predicted.feature_names)
    }
    base = {"predicted": answers.tolist(), "background": np.broadcast_to(predicted.base_values, len(answers)).tolist()}
    if data.table is not None:
        return table_with_columns(data, base | contribution_columns)
    lines = [",".join(["predicted", "background", *predicted.feature_names])]
    columns = [*base.values(), *contribution_columns.values()]
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


def _page(explanation: Any, background: str, rows: _Rows) -> list[str]:
    """Return the printed lines: importance of columns, the background, and reasons for the first predictions."""
    lines: list[Line] = [*Importance(explanation, None).lines(), ("background", background), None]
    lines += [rows.line(row) for row in range(min(_N_PRINTED, len(rows.answers)))]
    if len(rows.answers) > _N_PRINTED:
        lines.append(("", f"and {len(rows.answers) - _N_PRINTED:,} more rows; name an OUTPUT file to get them all"))
    return page(lines)


@dataclass(frozen=True)
class _Rows:
    """Predictions for the rows of a file, and the Shapley values behind each."""

    data: Data
    predicted: Any  # an Explanation with one output
    answers: Any
    kind: str  # kind of the model, as in `Model.kind`
    unit: str

    def line(self, row: int) -> Line:
        """Return the prediction for a row, and the five columns that contribute most to it."""
        values = self.predicted.values[row]
        largest = [j for j in np.argsort(-np.abs(values), kind="stable")[:5] if values[j] != 0]
        contributions: dict[bool, list[str]] = {True: [], False: []}
        for j in largest:
            contributions[values[j] >= 0].append(self._contribution(row, j))
        prediction, *sides = self._prediction(row)
        labelled = zip(sides, contributions.values(), strict=True)
        reasons = "; ".join(f"{side}: {', '.join(texts)}" for side, texts in labelled if texts)
        return f"row {row + 1}", f"{prediction}; {reasons or 'no column changes it'}"

    @cached_property
    def _has_numbers(self) -> bool:
        return self.kind == "regression" and self.answers.ndim == 1

    @cached_property
    def _cells(self) -> dict[str, Any]:
        """Cells of the table by column name; empty for data without names."""
        table = self.data.table
        return {} if table is None else dict(zip(table.header, table.cells, strict=True))

    def _prediction(self, row: int) -> tuple[str, str, str]:
        """Return the prediction for a row in words, and the words for columns that raise f and that lower it."""
        answer = self.answers[row]
        if self.kind == "one-class":
            return "normal (1)" if answer > 0 else "unusual (-1)", "more normal by", "less normal by"
        if self._has_numbers:
            return format_quantity(float(answer), self.unit), "raised by", "lowered by"
        return repr(str(answer)), "for it", "against it"

    def _contribution(self, row: int, j: int) -> str:
        """Return what a column adds to f in a row, with the cell that the column has there."""
        name, value = self.predicted.feature_names[j], float(self.predicted.values[row, j])
        amount = format_quantity(abs(value), self.unit) if self._has_numbers else f"{abs(value):.3g}"
        cell = f" {describe_cell(self._cells[name][row])}" if name in self._cells else ""
        return f"{'+' if value >= 0 else '-'}{amount} from {name}{cell}"


def describe_cell(cell: Any) -> str:
    """Describe a cell of a table: "= 31", "= 'two words'", or "(missing)"."""
    text = str(cell).strip()
    if is_missing(cell) or not text:
        return "(missing)"
    if len(text) > _LONGEST_NUMBER and is_number(cell) and not text.lstrip("-").isdigit():
        return f"= {float(cell):.6g}"  # a reader has no use for the 17 digits of a float
    if " " not in text:
        return f"= {text}"
    return f"= {textwrap.shorten(text, _LONGEST_TEXT, placeholder=' …')!r}"
