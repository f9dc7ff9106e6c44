"""``mercer inspect``: what a model file holds, what it proves, and what using it will cost."""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.pipeline import Pipeline

from mercer.certificates.certificate import Certificate
from mercer.cli.examples import WithExamples, examples
from mercer.cli.models import machine_of, names_of, read_model
from mercer.cli.printable import printable
from mercer.expansion import Expansion
from mercer.files.liblinear_model import LiblinearModel
from mercer.files.libsvm_model import LibsvmModel
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
        help="tell what a model file holds",
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
    if isinstance(model, LiblinearModel):
        facts |= _linear(model)
    elif isinstance(model, LibsvmModel):
        facts |= _libsvm(model)
    else:
        facts |= _estimator(model)
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
    return ", ".join(_told(item) for item in value) if isinstance(value, list) else str(value)


# --- one function for each kind of file ------------------------------------------------------------------------------


def _linear(model: LiblinearModel) -> Facts:
    return {
        "format": "LIBLINEAR",
        "machine": model.solver_type,
        "labels": None if model.label is None else list(model.label),
        "features": model.n_features,
        "bias": model.bias,
        "non_zero_weights": int(np.count_nonzero(model.weights)),
        "norm_of_w": float(np.linalg.norm(model.weights)),
    }


def _libsvm(model: LibsvmModel) -> Facts:
    facts: Facts = {"format": "LIBSVM", "machine": model.svm_type, "kernel": str(model.kernel)}
    if model.label is not None:
        facts["labels"] = list(model.label)
        facts["support_vectors"] = {str(c): n for c, n in zip(model.label, model.nr_sv or (), strict=True)}
    facts["total_support_vectors"] = len(model.coefficients)
    facts["probabilities"] = model.has_probabilities
    facts["certificate"] = "none: LIBSVM's format has no place for one, nor for C and the tolerance"
    if not len(model.rho):
        return facts
    expansion = model.expansion()
    return facts | _margins(expansion, _pair_names(model.label)) | _prediction(expansion)


def _estimator(model: Any) -> Facts:
    machine = machine_of(model)
    facts: Facts = {"format": ".mercer", "machine": type(machine).__name__}
    if isinstance(model, Pipeline):
        facts["steps"] = [type(step).__name__ for _, step in model.steps]
    if hasattr(machine, "kernel_"):
        facts["kernel"] = str(machine.kernel_)
    facts["parameters"] = {
        name: {str(key): item for key, item in value.items()} if isinstance(value, dict) else value
        for name, value in machine.get_params(deep=False).items()
        if name != "kernel"
    }
    names = names_of(model)
    facts["features"] = list(names) if names is not None else getattr(machine, "n_features_in_", None)
    labels = [str(label) for label in machine.classes_] if hasattr(machine, "classes_") else None
    if labels is not None:
        facts["labels"] = labels
    expansion = getattr(machine, "_expansion_", None)
    facts |= _weights(machine) if expansion is None else _vectors(machine, expansion, labels)
    facts["probabilities"] = hasattr(machine, "probA_") or hasattr(machine, "prob_density_marks_")
    facts["certificate"] = _certificate(machine)
    if expansion is None:
        return facts
    facts |= _prediction(expansion)
    return facts | _retraining(machine, facts)


def _weights(machine: Any) -> Facts:
    """Of a linear machine that keeps w and no vectors."""
    w = np.atleast_2d(machine.coef_)
    norms = np.linalg.norm(w, axis=1).tolist()
    facts: Facts = {"non_zero_weights": int(np.count_nonzero(w)), "norm_of_w": norms[0] if len(norms) == 1 else norms}
    facts["b"] = machine.intercept_.tolist()[0] if len(norms) == 1 else machine.intercept_.tolist()
    if len(norms) == 1 and norms[0] > 0 and hasattr(machine, "classes_"):
        facts["margin"] = 1 / norms[0]
    return facts


def _vectors(machine: Any, expansion: Expansion, labels: list[str] | None) -> Facts:
    facts: Facts = {}
    if labels is not None and hasattr(machine, "n_support_"):
        facts["support_vectors"] = dict(zip(labels, [int(n) for n in machine.n_support_], strict=True))
        facts["free_support_vectors"], facts["bounded_support_vectors"] = _free_and_bounded(machine)
    sparse = hasattr(machine, "support_")
    if sparse:
        facts["total_support_vectors"] = len(machine.support_)
    else:
        facts["vectors"] = int(expansion.coefficients.shape[0])
    if labels is None or not sparse or len(expansion.b) not in (1, len(labels) * (len(labels) - 1) // 2):
        names = labels if labels is not None and len(labels) == len(expansion.b) else None
        names = names or [f"output {k}" for k in range(len(expansion.b))]
    else:  # with two classes f > 0 means the second
        names = _pair_names(labels[::-1] if len(labels) == 2 else labels)
    return facts | _margins(expansion, names)


def _certificate(machine: Any) -> Any:
    found = getattr(machine, "certificate_", None)
    if not isinstance(found, Certificate):
        return "none: this model was not trained by mercer" if found is None else str(found)
    return {
        "primal": found.primal,
        "dual": found.dual,
        "gap": found.gap,
        "violation": found.violation,
        **found.kkt,
        "proves": found.proves,
        "precision": found.precision,
        "stopped": getattr(machine, "stop_reason_", "converged"),
    }


def _free_and_bounded(machine: Any) -> tuple[Any, Any]:
    """Support vectors inside their box in some pair's machine, and those at its end in all."""
    if not isinstance(getattr(machine, "C", None), (int, float)) or not hasattr(machine, "certificate_"):
        return "unknown", "unknown"
    size = np.abs(machine.dual_coef_)
    box = np.repeat(machine.C * np.asarray(machine.class_weight_), machine.n_support_)
    free = ((size > 0) & (size < box * (1 - 1e-9))).any(axis=0)
    return int(free.sum()), int((~free).sum())


def _pair_names(labels: Any) -> list[str]:
    if labels is None:
        return [""]
    return [f"{a} against {b}" for i, a in enumerate(labels) for b in labels[i + 1 :]]


def _margins(expansion: Expansion, names: list[str]) -> Facts:
    """1/‖w‖ of each pair, ‖w‖² = β'Kβ, where the vectors are there to compute K."""
    if expansion.vectors is None:
        return {}
    K = expansion.kernel(expansion.vectors)
    table = expansion.coefficients.toarray() if hasattr(expansion.coefficients, "toarray") else expansion.coefficients
    squares = np.einsum("ip,ij,jp->p", table, K, table, optimize=True)
    widths = [1 / math.sqrt(s) if s > 0 else None for s in squares.tolist()]
    if len(widths) == 1:
        return {"margin": widths[0]}
    return {"margins": dict(zip(names, widths, strict=True))}


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


def _retraining(machine: Any, facts: Facts) -> Facts:
    """At least one pass of all rows over the support vectors; what prediction measured says how long that takes."""
    rows = getattr(machine, "shape_fit_", (None,))[0]
    each = facts["prediction"].get("microseconds per row")
    if not hasattr(machine, "certificate_") or each is None or rows is None:
        return {}
    return {
        "retraining": {"rows": int(rows), "seconds at least": 1e-6 * each * rows, "grows with rows": "quadratically"}
    }
