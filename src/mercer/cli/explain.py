"""``mercer explain``: what matters to a model, and why it answers rows as it does."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mercer.cli.data import Data
from mercer.cli.formats import add_data, add_flags, asked_for
from mercer.cli.predict import model_beside, read_truths, target_unit, with_answers
from mercer.cli.terminal import Subparsers, add_command, printable
from mercer.files.atomic_write import replacing
from mercer.inspection.easy.importance import Importance, with_numbers
from mercer.inspection.easy.page import Line, page
from mercer.inspection.explain import explain
from mercer.runtime.optional import require
from mercer.runtime.progress import waiting
from mercer.samples.arrays import n_samples
from mercer.tables.dialect import quantity
from mercer.tables.frame import part_of

_SHOWN, _BACKGROUND = 5, 100  # rows that are told one by one, and rows to compare with


def register(commands: Subparsers) -> None:
    parser = add_command(
        commands,
        "explain",
        run,
        ("mercer explain iris.mercer iris.csv", "what matters, and why the first rows are answered as they are"),
        ("mercer explain iris.mercer new.csv --background iris.csv", "compared with other rows"),
        ("mercer explain iris.mercer iris.csv reasons.csv --plot reasons.png", "of every row, and a picture"),
        description="Exact Shapley values of a model's answers: how much each column of a row adds to f, compared with "
        "background rows, in which the column is as it happens to be. Their sum is f at the row less the mean of f "
        "over the background. f is the number predicted; of a classifier what speaks for the class that it answers.",
        computes=True,
    )
    parser.add_argument("model", metavar="MODEL", help="a .mercer file, or a LIBSVM, LIBLINEAR or SVMlight model")
    add_data(parser, "a table's column with the truth, which is no feature; default: the one learnt")
    parser.add_argument(
        "output", nargs="?", metavar="OUTPUT", help="a table with the rows and the values of each column"
    )
    add_flags(parser)
    parser.add_argument("--background", metavar="FILE", help="rows to compare with; default: those of DATA")
    parser.add_argument("--plot", type=Path, metavar="PICTURE", help="draw every row's values: .png, .svg or .pdf")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")


def run(args: argparse.Namespace) -> None:
    model = model_beside(args.model, args.file)
    data = read_truths(model, args, asked_for(args))
    background, told = data, f"{args.file}"
    if args.background is not None:
        other = argparse.Namespace(**{**vars(args), "file": args.background})
        background, told = read_truths(model, other, asked_for(args)), args.background
    X, Z = (model.rows(one.X, one.source, text=one.form == "libsvm") for one in (data, background))
    if n_samples(Z) < 2:
        raise ValueError(
            f"{told} has {n_samples(Z)} row, and a row is explained by comparing it with others: name a table of them, "
            "such as the training table, with --background"
        )
    drawn = np.random.default_rng(0).permutation(n_samples(Z))[:_BACKGROUND]
    Z = part_of(Z, np.sort(drawn))
    estimator = model.estimator(X.shape[1])
    with waiting(f"explaining {n_samples(X):,} rows", args.quiet or args.json):
        found = explain(estimator, X, Z)
        answers = np.asarray(model.predict(X))
    if args.plot is not None:
        _draw(found if model.table is None else with_numbers(found, model.table.columns_), args.plot)
    spoken = _for_answers(found, answers)
    if args.output is not None:
        with replacing(args.output) as file:
            file.write(_table(data, spoken, answers).encode())
    if args.json:
        print(json.dumps(_plain(found, spoken, answers, len(drawn)), indent=2))
    elif not args.quiet:
        unit = target_unit(model, data)
        print(printable("\n".join(_page(data, found, spoken, answers, f"{len(drawn)} rows of {told}", unit))))
        for path in (args.output, args.plot):
            if path is not None:
                print(printable(f"saved {path}"))


def _for_answers(found: Any, answers: Any) -> Any:
    """Values that speak for what each row is answered with; those of a regression are as they are."""
    if found.classes is None:
        return found.output(0) if found.several else found
    of_class = {label: found.of_class(label) for label in dict.fromkeys(answers.tolist())}
    values = np.array([of_class[label].values[row] for row, label in enumerate(answers.tolist())])
    base = np.array([of_class[label].base_values[row] for row, label in enumerate(answers.tolist())])
    return replace(found, values=values, base_values=base, output_names=(found.function,), classes=None, pairs=None)


def _draw(found: Any, path: Path) -> None:
    require("matplotlib", "drawing an explanation").use("Agg")
    shown = found.output(0) if found.several else found
    _save(shown.plot("beeswarm"), path)


def _save(display: Any, path: Path) -> None:
    with replacing(path) as file:
        display.figure_.savefig(file, format=path.suffix.removeprefix(".") or "png", dpi=150)


def _table(data: Data, spoken: Any, answers: Any) -> str:
    """The rows with their answers and, for each column, what it adds."""
    added = {f"because of {name}": spoken.values[:, j].tolist() for j, name in enumerate(spoken.feature_names)}
    base = {"predicted": answers.tolist(), "background": np.broadcast_to(spoken.base_values, len(answers)).tolist()}
    if data.table is not None:
        return with_answers(data, base | added)
    lines = [",".join(["predicted", "background", *spoken.feature_names])]
    columns = [*base.values(), *added.values()]
    return "\n".join([*lines, *(",".join(map(str, row)) for row in zip(*columns, strict=True)), ""])


def _plain(found: Any, spoken: Any, answers: Any, n_background: int) -> dict[str, Any]:
    return {
        "importance": Importance(found, None).shares,
        "background_rows": n_background,
        "columns": list(spoken.feature_names),
        "predictions": answers.tolist(),
        "background": np.broadcast_to(spoken.base_values, len(answers)).tolist(),
        "values": spoken.values.tolist(),
    }


def _page(data: Data, found: Any, spoken: Any, answers: Any, told: str, unit: str) -> list[str]:
    cells = {} if data.table is None else dict(zip(data.table.header, data.table.cells, strict=True))
    lines: list[Line] = [*Importance(found, None).lines(), ("against", told), None]
    lines += [_row_line(row, cells, spoken, answers, unit) for row in range(min(_SHOWN, len(answers)))]
    if len(answers) > _SHOWN:
        lines.append(("", f"and {len(answers) - _SHOWN:,} rows more; OUTPUT has them all"))
    return page(lines)


def _row_line(row: int, cells: dict[str, Any], spoken: Any, answers: Any, unit: str) -> Line:
    """A row's answer, and the five columns that add most to it or take most from it; numbers as reports write them."""
    values = spoken.values[row]
    largest = np.argsort(-np.abs(values), kind="stable")[:5]
    answer = answers[row]
    is_number = isinstance(answer, float | np.floating)
    parts: dict[bool, list[str]] = {True: [], False: []}
    for j in largest:
        name, value = spoken.feature_names[j], float(values[j])
        cell = f" = {cells[name][row]}" if name in cells else ""
        sign = "+" if value >= 0 else "-"
        added = f"{sign}{quantity(abs(value), unit)}" if is_number else f"{value:+.3g}"
        parts[value >= 0].append(f"{added} {name}{cell}")
    sides = ("more", "less") if is_number else ("for it", "against it")
    told = "; ".join(f"{side}: {', '.join(parts[up])}" for side, up in zip(sides, parts, strict=True) if parts[up])
    shown = quantity(float(answer), unit) if is_number else repr(str(answer))
    return f"row {row + 1}", f"{shown}; {told}"
