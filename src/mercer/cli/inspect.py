"""``mercer inspect``: what a model file holds, what it proves, and what using it will cost."""

from __future__ import annotations

import argparse
import json
import os
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.cli.terminal import WithExamples, examples, printable, rounded
from mercer.expansion import Expansion
from mercer.files.models import read_model
from mercer.threads import effective_n_threads

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

_TRIAL_ROWS = 512
Facts = dict[str, Any]


def register(commands: Subparsers) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "inspect",
        allow_abbrev=False,
        description="Tell what kind of machine a model file holds, its kernel and parameters, its support vectors, "
        "margin and certificate, its size, and what prediction and retraining will cost on this computer.",
        formatter_class=WithExamples,
        epilog=examples(
            ("mercer inspect iris.mercer", ""),
            ("mercer inspect heart.model --json | python -m json.tool", "for a program"),
        ),
    )
    parser.add_argument("model", metavar="MODEL", help="a .mercer, LIBSVM, LIBLINEAR or SVMlight model")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run, parser=parser)


def run(args: argparse.Namespace) -> None:
    """Carry out the subcommand."""
    model = read_model(args.model)
    facts: Facts = {"file": args.model, "bytes": os.path.getsize(args.model)}
    facts |= model.facts()
    if model.expansion is not None:
        facts |= _prediction(model.expansion)
        facts |= _retraining(model.n_training_rows, facts["prediction"].get("microseconds per row"))
    if args.json:
        print(json.dumps(facts, indent=2, default=str))
    else:
        print(printable("\n".join(_lines(facts))))


def _lines(facts: Facts) -> list[str]:
    out = []
    for name, value in facts.items():
        if isinstance(value, dict):
            out += [f"{name.replace('_', ' ')}:"] + [f"  {key:<30} {_told(item)}" for key, item in value.items()]
        else:
            out.append(f"{name.replace('_', ' '):<24} {_told(value)}")
    return out


def _told(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return ", ".join(_told(item) for item in value) if isinstance(value, list) else rounded(str(value))


# --- what it costs ---------------------------------------------------------------------------------------------------


def _prediction(expansion: Expansion) -> Facts:
    """Kernel values for each row, and how fast this computer makes them: measured on the support vectors themselves."""
    count = int(expansion.coefficients.shape[0])
    if expansion.vectors is None or count == 0 or expansion.kernel.accepts != "vectors":
        return {"prediction": {"kernel values per row": count}}
    rows = expansion.vectors[np.arange(_TRIAL_ROWS) % count]
    n_threads = effective_n_threads(None)
    expansion(rows[:8], n_threads)  # the first call prepares the vectors
    begun = time.perf_counter()
    expansion(rows, n_threads)
    seconds = max(time.perf_counter() - begun, 1e-9) / _TRIAL_ROWS
    return {
        "prediction": {
            "kernel values per row": count,
            "microseconds per row": 1e6 * seconds,
            "threads": n_threads,
        }
    }


def _retraining(rows: int | None, microseconds: float | None) -> Facts:
    """At least one pass of all rows over the support vectors; what prediction measured says how long that takes."""
    if rows is None or microseconds is None:
        return {}
    return {
        "retraining": {"rows": rows, "seconds at least": 1e-6 * microseconds * rows, "grows with rows": "quadratically"}
    }
