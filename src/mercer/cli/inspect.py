"""``mercer inspect``: contents of a model file, its certificate, and the cost of prediction and retraining."""

from __future__ import annotations

import argparse
import json
import os
import time
from inspect import signature
from typing import Any

import numpy as np

from mercer.cli.formats import add_data_arguments
from mercer.cli.predict import read_model_and_place_data, read_rows_for
from mercer.cli.terminal import Subparsers, add_command, printable, round_fractions, show_warning
from mercer.files.model import Facts, Model
from mercer.files.models import read_model
from mercer.inspection.easy.page import MOST_COLUMNS
from mercer.places.expansion import Expansion
from mercer.runtime.threads import effective_n_threads
from mercer.samples.arrays import n_samples
from mercer.tables.frame import part_of
from mercer.tables.reading import known_targets
from mercer.tables.unwrap import unwrap


def register(commands: Subparsers) -> None:
    """Add the command and its options to the parser."""
    parser = add_command(
        commands,
        "inspect",
        run,
        ("mercer inspect iris.mercer", ""),
        ("mercer inspect iris.mercer iris.csv", "also risks and bounds, from the training data"),
        ("mercer inspect heart.model --json | python -m json.tool", "as JSON"),
        description="Show the machine in a model file, its kernel and parameters, support vectors, margin and "
        "certificate, its size, and the time that prediction and retraining take on this computer.",
    )
    parser.add_argument("model", metavar="MODEL", help="model file: .mercer, LIBSVM, LIBLINEAR or SVMlight")
    add_data_arguments(
        parser,
        "column of a table with the true values; default: the target of training",
        "the training data, for risks and bounds",
        "?",
    )
    parser.add_argument("--delta", type=float, default=0.05, help="probability with which a bound may fail (0.05)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> None:
    """Run the command with these options."""
    model = read_model(args.model) if args.file is None else read_model_and_place_data(args)
    facts: Facts = {"file": args.model, "bytes": os.path.getsize(args.model)}
    facts |= model.facts()
    if model.expansion is not None:
        facts |= _prediction_cost(model.expansion)
        facts |= _retraining_cost(model.n_training_rows, facts["prediction"].get("microseconds per row"))
    theory = [] if args.file is None else insights(model, args)
    if args.json:
        if theory:
            facts["insight"] = [_insight_facts(insight) for insight in theory]
        print(json.dumps(facts, indent=2, default=str))
    else:
        lines = [*_lines(_move_parameters_last(facts, model)), *(f"\n{insight}" for insight in theory)]
        print(printable("\n".join(lines)))


def insights(model: Model, args: argparse.Namespace) -> list[Any]:
    """Return risks and bounds of the model on its training data, one insight for each binary problem or output."""
    data = read_rows_for(model, args)
    unwrapped = unwrap(model.estimator(data.X.shape[1] if hasattr(data.X, "shape") else None))
    X = model.rows(data.X, data.source, text=data.form == "libsvm")
    if not hasattr(unwrapped.machine, "insight"):
        raise TypeError(f"{args.model} contains a {type(unwrapped.machine).__name__}, for which there are no bounds")
    y = None
    if model.kind != "one-class":
        if data.y is None:
            raise ValueError(f"{data.source} has no target; name its column with --target")
        rows, y = known_targets(data.y, model.predict(X), model.kind == "regression", data.source, data.target or "y")
        X = part_of(X, rows)
    n_trained, n_rows = model.n_training_rows, n_samples(X)
    if n_trained not in (None, n_rows):
        show_warning(
            f"{args.file} has {n_rows:,} rows, but the model was trained on {n_trained:,}: the figures are for all "
            f"{n_rows:,} rows"
        )
    insight = unwrapped.insight(X, y, delta=args.delta)
    return insight if isinstance(insight, list) else [insight]


def _insight_facts(insight: Any) -> Facts:
    """Return an insight as plain values for JSON."""
    bounds = {
        name: {
            "quantity": bound.quantity,
            "value": bound.value,
            "delta": bound.delta,
            "vacuous": bound.vacuous,
            "applies": bound.applies,
            "terms": dict(bound.terms),
            "assumptions": {each.text: each.holds for each in bound.assumptions},
        }
        for name, bound in insight.bounds.items()
    }
    names = ("name", "n", "n_features", "norm", "b", "bias", "origin_radius", "enclosing_radius", "effective_dimension")
    counts = ("n_support", "least_kernel_values", "kernel_values", "kernel_values_multiple")
    numbers = {name: getattr(insight, name) for name in (*names, *counts)}
    return {**numbers, "risks": dict(insight.risks), "complexity": float(insight.complexity.value), "bounds": bounds}


def _move_parameters_last(facts: Facts, model: Model) -> Facts:
    """Move the parameters to the end, and keep only those that differ from their defaults."""
    parameters = facts.get("parameters")
    if not isinstance(parameters, dict) or facts.get("format") != ".mercer":
        return facts
    machine = unwrap(model.estimator()).machine
    defaults = {name: parameter.default for name, parameter in signature(type(machine)).parameters.items()}
    changed_parameters = {
        name: v for name, v in parameters.items() if name not in defaults or _format(v) != _format(defaults[name])
    }
    other_facts = {name: value for name, value in facts.items() if name != "parameters"}
    return other_facts | {"parameters": changed_parameters or "all at their defaults"}


def _lines(facts: Facts) -> list[str]:
    """Return the facts as lines of text; entries of a dictionary are indented below its name."""
    out = []
    for name, value in facts.items():
        if isinstance(value, dict):
            item_lines = [f"  {key:<30} {_format(item)}" for key, item in value.items()]
            if len(item_lines) > MOST_COLUMNS:
                item_lines = [
                    *item_lines[:MOST_COLUMNS],
                    f"  and {len(item_lines) - MOST_COLUMNS:,} more {name}; --json lists all",
                ]
            out += [f"{name.replace('_', ' ')}:", *item_lines]
        else:
            out.append(f"{name.replace('_', ' '):<24} {_format(value)}")
    return out


def _format(value: Any) -> str:
    """Format a value for the terminal: six digits of a number, yes or no, or the first entries of a list."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if not isinstance(value, list):
        return round_fractions(str(value))
    n_hidden = len(value) - MOST_COLUMNS
    return ", ".join(map(_format, value[:MOST_COLUMNS])) + (f" and {n_hidden:,} more" if n_hidden > 0 else "")


# --- cost ------------------------------------------------------------------------------------------------------------


def _prediction_cost(expansion: Expansion) -> Facts:
    """Return the number of kernel values per predicted row, and the time per row, measured on the support vectors."""
    count = int(expansion.coefficients.shape[0])
    if expansion.vectors is None or count == 0 or expansion.kernel.accepts != "vectors":
        return {"prediction": {"kernel values per row": count}}
    rows = expansion.vectors[np.arange(512) % count]
    n_threads = effective_n_threads(None)
    expansion(rows[:8], n_threads)  # the first call prepares the vectors
    start = time.perf_counter()
    expansion(rows, n_threads)
    microseconds = 1e6 * max(time.perf_counter() - start, 1e-9) / 512
    rounded_microseconds = float(f"{microseconds:.3g}")  # more digits would differ at the next run
    return {
        "prediction": {
            "kernel values per row": count,
            "microseconds per row": rounded_microseconds,
            "threads": n_threads,
        }
    }


def _retraining_cost(n_rows: int | None, microseconds: float | None) -> Facts:
    """Return a lower bound on the time of retraining: predicting every training row once."""
    if n_rows is None or microseconds is None:
        return {}
    return {
        "retraining": {
            "rows": n_rows,
            "seconds at least": float(f"{1e-6 * microseconds * n_rows:.3g}"),
            "grows with rows": "quadratically",
        }
    }
