"""``mercer inspect``: what a model file holds, what it proves, and what using it will cost."""

from __future__ import annotations

import argparse
import json
import os
import time
from inspect import signature
from typing import Any

import numpy as np

from mercer.cli.formats import add_data
from mercer.cli.predict import model_beside, read_truths
from mercer.cli.terminal import Subparsers, add_command, printable, rounded, show_warning
from mercer.files.model import Facts, Model
from mercer.files.models import read_model
from mercer.inspection.easy.page import MOST_COLUMNS
from mercer.places.expansion import Expansion
from mercer.runtime.threads import effective_n_threads
from mercer.samples.arrays import n_samples
from mercer.tables.frame import part_of
from mercer.tables.reading import known_truth
from mercer.tables.unwrap import ask


def register(commands: Subparsers) -> None:
    parser = add_command(
        commands,
        "inspect",
        run,
        ("mercer inspect iris.mercer", ""),
        ("mercer inspect iris.mercer iris.csv", "and what theory says, with the data it was trained on"),
        ("mercer inspect heart.model --json | python -m json.tool", "for a program"),
        description="Tell what kind of machine a model file holds, its kernel and parameters, its support vectors, "
        "margin and certificate, its size, and what prediction and retraining will cost on this computer.",
    )
    parser.add_argument("model", metavar="MODEL", help="a .mercer, LIBSVM, LIBLINEAR or SVMlight model")
    add_data(
        parser,
        "a table's column with the truth; default: the one learnt",
        "the data it was trained on, for risks and bounds",
        "?",
    )
    parser.add_argument("--delta", type=float, default=0.05, help="the probability with which a bound may fail (0.05)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> None:
    model = read_model(args.model) if args.file is None else model_beside(args.model, args.file)
    facts: Facts = {"file": args.model, "bytes": os.path.getsize(args.model)}
    facts |= model.facts()
    if model.expansion is not None:
        facts |= _prediction(model.expansion)
        facts |= _retraining(model.n_training_rows, facts["prediction"].get("microseconds per row"))
    found = [] if args.file is None else insights(model, args)
    if args.json:
        if found:
            facts["insight"] = [_plain(one) for one in found]
        print(json.dumps(facts, indent=2, default=str))
    else:
        print(printable("\n".join([*_lines(_parameters_last(facts, model)), *(f"\n{one}" for one in found)])))


def insights(model: Model, args: argparse.Namespace) -> list[Any]:
    """What theory says about the model and the data it was trained on, one for each plane or output."""
    data = read_truths(model, args)
    asked = ask(model.estimator(data.X.shape[1] if hasattr(data.X, "shape") else None))
    X = model.rows(data.X, data.source, text=data.form == "libsvm")
    if not hasattr(asked.machine, "insight"):
        raise TypeError(f"{args.model} holds a {type(asked.machine).__name__}, of which theory has nothing to say")
    y = None
    if model.kind != "one-class":
        if data.y is None:
            raise ValueError(f"{data.source} does not say what is to be predicted; name its column by --target")
        rows, y = known_truth(data.y, model.predict(X), model.kind == "regression", data.source, data.target or "y")
        X = part_of(X, rows)
    seen, here = model.n_training_rows, n_samples(X)
    if seen not in (None, here):
        show_warning(
            f"{args.file} has {here:,} rows, and the model was trained on {seen:,}: what follows is of all {here:,}"
        )
    found = asked.insight(X, y, delta=args.delta)
    return found if isinstance(found, list) else [found]


def _plain(one: Any) -> Facts:
    """An insight as plain numbers."""
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
        for name, bound in one.bounds.items()
    }
    names = ("name", "n", "n_features", "norm", "b", "bias", "origin_radius", "enclosing_radius", "effective_dimension")
    counts = ("n_support", "least_kernel_values", "kernel_values", "kernel_values_multiple")
    numbers = {name: getattr(one, name) for name in (*names, *counts)}
    return {**numbers, "risks": dict(one.risks), "complexity": float(one.complexity.value), "bounds": bounds}


def _parameters_last(facts: Facts, model: Model) -> Facts:
    """The facts as a person wants them: parameters below the others, and only those that are not at their defaults."""
    given = facts.get("parameters")
    if not isinstance(given, dict) or facts.get("format") != ".mercer":
        return facts
    machine = ask(model.estimator()).machine
    usual = {name: one.default for name, one in signature(type(machine)).parameters.items()}
    own = {name: value for name, value in given.items() if name not in usual or _told(value) != _told(usual[name])}
    rest = {name: value for name, value in facts.items() if name != "parameters"}
    return rest | {"parameters": own or "all at their defaults"}


def _lines(facts: Facts) -> list[str]:
    out = []
    for name, value in facts.items():
        if isinstance(value, dict):
            shown = [f"  {key:<30} {_told(item)}" for key, item in value.items()]
            if len(shown) > MOST_COLUMNS:
                shown = [*shown[:MOST_COLUMNS], f"  and {len(shown) - MOST_COLUMNS:,} {name} more; --json has them all"]
            out += [f"{name.replace('_', ' ')}:", *shown]
        else:
            out.append(f"{name.replace('_', ' '):<24} {_told(value)}")
    return out


def _told(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if not isinstance(value, list):
        return rounded(str(value))
    hidden = len(value) - MOST_COLUMNS
    return ", ".join(map(_told, value[:MOST_COLUMNS])) + (f" and {hidden:,} more" if hidden > 0 else "")


# --- what it costs ---------------------------------------------------------------------------------------------------


def _prediction(expansion: Expansion) -> Facts:
    """Kernel values for each row, and how fast this computer makes them: measured on the support vectors themselves."""
    count = int(expansion.coefficients.shape[0])
    if expansion.vectors is None or count == 0 or expansion.kernel.accepts != "vectors":
        return {"prediction": {"kernel values per row": count}}
    rows = expansion.vectors[np.arange(512) % count]
    n_threads = effective_n_threads(None)
    expansion(rows[:8], n_threads)  # the first call prepares the vectors
    begun = time.perf_counter()
    expansion(rows, n_threads)
    seconds = max(time.perf_counter() - begun, 1e-9) / 512
    return {"prediction": {"kernel values per row": count, "microseconds per row": 1e6 * seconds, "threads": n_threads}}


def _retraining(rows: int | None, microseconds: float | None) -> Facts:
    """At least one pass of all rows over the support vectors; what prediction measured says how long that takes."""
    if rows is None or microseconds is None:
        return {}
    return {
        "retraining": {"rows": rows, "seconds at least": 1e-6 * microseconds * rows, "grows with rows": "quadratically"}
    }
