"""``mercer train`` on a LIBSVM text file: what svm-train does, prints and writes."""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import mercer
from mercer.arrays import freeze
from mercer.cli.data import Data, read_data
from mercer.cli.folds import checked, deal, held_out, pair_decisions, squared_correlation
from mercer.cli.machines import CLASSIFIERS, REGRESSORS, build, class_weights, integer_labels, order_of_appearance
from mercer.cli.probability import density_marks, fit_sigmoid, laplace_scale
from mercer.cli.waiting import waiting
from mercer.files import save
from mercer.files.atomic_write import checked_target
from mercer.files.libsvm_estimator import layout_of, libsvm_from_estimator, libsvm_kernel, relabelled
from mercer.files.libsvm_model import LibsvmModel, write_libsvm_model
from mercer.kernels import as_kernel

_PLATT_FOLDS = 5


def run(args: argparse.Namespace) -> None:
    """Train on ``args.file``, or cross-validate."""
    begun = time.perf_counter()
    path = _path(args)
    if args.folds is None:
        checked_target(path)  # better now than after an hour of training
    precomputed = args.kernel == "precomputed"
    data = read_data(args.file, args.format, args.target, first_index=0 if precomputed else 1)
    if data.X.shape[0] == 0:
        raise ValueError(f"{data.source} holds no rows")
    serials = None
    if precomputed:
        data, serials = _kernel_matrix(data)
        if path.suffix == ".mercer" and not np.array_equal(serials, np.arange(1, len(serials) + 1)):
            raise ValueError(
                f"{data.source} holds some rows of a kernel matrix, or in another order: only LIBSVM's format "
                "remembers which; name a model that does not end in .mercer"
            )
    y = integer_labels(data.y, data.source) if args.machine in CLASSIFIERS else data.y
    weights, unknown = class_weights(args.weight, np.unique(y))
    for label in unknown:
        print(f"WARNING: class label {label} specified in weight is not found", file=sys.stderr)
    if path.suffix != ".mercer":  # likewise
        libsvm_kernel(as_kernel(args.kernel, degree=args.degree, gamma=1.0, coef0=args.coef0))
    machine = build(args, _gamma(args, data.X), weights).set_params(tol=_tolerance(args.tol, args.machine))
    if args.folds is not None:
        _cross_validate(args, machine, data.X, y)
        return
    if args.machine in CLASSIFIERS and len(np.unique(y)) == 1:
        _write(_one_label(args, int(y[0])), None, path)
        _say(args, "WARNING: training data in only one class. See README for details.")
        return
    with waiting(f"training on {data.X.shape[0]:,} rows", args.quiet or args.json):
        fitted = machine.fit(data.X, y) if args.machine != "one_class" else machine.fit(data.X)
    layout = layout_of if path.suffix == ".mercer" else libsvm_from_estimator
    model = layout(fitted, order_of_appearance(y) if args.machine in CLASSIFIERS else None)
    lines = _solver_lines(args, fitted, model, y)
    if args.probability:
        with waiting("cross-validating for probabilities", args.quiet or args.json):
            model, line = _with_probabilities(args, machine, fitted, model, data.X, y, weights or {})
        lines += line
    if serials is not None and path.suffix != ".mercer":
        model = _with_serials(model, serials)
    _write(model, fitted, path)
    if args.json:
        print(json.dumps(_report(fitted, model, path, time.perf_counter() - begun), indent=2))
    else:
        _say(args, "\n".join(lines))


def _gamma(args: argparse.Namespace, X: Any) -> float | str:
    """-g, where 0 and nothing stand for 1/(largest index of the file)."""
    if args.gamma is None or args.gamma == 0:
        return 1.0 / X.shape[1] if X.shape[1] else 0.0
    gamma: float | str = args.gamma
    return gamma


def _tolerance(e: float, machine: str) -> float:
    """A tenth of -e, down to 1e-6: two fits to the same tolerance may differ in rho by more than either is off.

    A hundredth for ν-SVC, whose solution is divided by its margin r: what is left of the violation grows by 1/r, and in
    the objective by 1/r².
    """
    share = 100 if machine == "nu_svc" else 10
    return max(e / share, 1e-6) if e > 1e-6 else e


def _kernel_matrix(data: Data) -> tuple[Data, Any]:
    """K of rows ``0:serial 1:K(x, x_1) 2:K(x, x_2) ...``, and the serial numbers; any rows of the matrix will do."""
    table = np.asarray(data.X.toarray())
    serials = table[:, 0] if table.shape[1] else np.zeros(len(table))
    if (serials % 1 != 0).any() or (serials < 1).any():
        raise ValueError(f"{data.source}: Wrong input format: first column must be 0:sample_serial_number, from 1")
    if (serials >= table.shape[1]).any():
        raise ValueError(f"{data.source}: Wrong input format: sample_serial_number out of range")
    columns = serials.astype(np.intp)
    return replace(data, X=np.ascontiguousarray(table[:, columns])), columns


def _with_serials(model: LibsvmModel, serials: Any) -> LibsvmModel:
    vectors = model.vectors.copy()
    vectors.data = serials[model.serials - 1].astype(np.float64)
    return replace(model, vectors=vectors)


def _one_label(args: argparse.Namespace, label: int) -> LibsvmModel:
    """The model that LIBSVM writes for a single class."""
    empty = np.empty((0, 0))
    vectors = sp.csr_array((0, 1))
    return LibsvmModel(args.machine, "linear", {}, np.empty(0), empty, vectors, (label,), (0,))


def _path(args: argparse.Namespace) -> Path:
    """The file named, or LIBSVM's default: the data file's name in this folder."""
    name = "standard_input" if args.file == "-" else Path(args.file).name
    return Path(args.output or f"{name}.model")


def _write(model: LibsvmModel, fitted: Any, path: Path) -> None:
    """In the format that the name says; LIBSVM's is the default."""
    if path.suffix != ".mercer":
        write_libsvm_model(model, path)
        return
    if fitted is None:
        raise ValueError("a .mercer file holds an estimator, and a single class gives none to train")
    # An estimator's pairs run in its own order of the classes, not in that of their appearance.
    own = model if model.label is None else relabelled(model, list(layout_of(fitted).label or ()))
    learnt = (("probA_", own.prob_a), ("probB_", own.prob_b), ("prob_density_marks_", own.density_marks))
    for attribute, values in learnt:
        if values is not None:
            setattr(fitted, attribute, freeze(values))
    save(fitted, path)


# --- what svm-train prints -------------------------------------------------------------------------------------------


def _say(args: argparse.Namespace, text: str) -> None:
    if not args.quiet and not args.json:
        print(text)


def _solver_lines(args: argparse.Namespace, fitted: Any, model: LibsvmModel, y: Any) -> list[str]:
    lines = []
    parts = fitted.certificate_.parts or (fitted.certificate_,)
    for p, (i, j) in enumerate(model.pairs):
        q = _our_pair(fitted, model, i, j)
        beta = np.abs(model.by_pair[:, [p]].toarray()[:, 0])
        bound, size = _bounds(args, fitted, model, y, i, j)
        objective = -parts[q].dual
        lines += ["*", f"optimization finished, #iter = {np.atleast_1d(fitted.n_iter_)[q]}"]
        if args.machine == "nu_svc":
            # β/r and obj/r², where β sums to nu·size: the solution of C-SVC with C = 1/r.
            C = beta.sum() / (args.nu * size)
            bound, objective = np.full(len(beta), C), objective * C**2
            lines.append(f"C = {C:f}")
        elif args.machine == "nu_svr":
            lines.append(f"epsilon = {fitted.epsilon_:f}")
        elif args.machine != "one_class" and bound.min() == bound.max():
            lines.append(f"nu = {beta.sum() / (bound.max() * size):f}")
        lines.append(f"obj = {objective:f}, rho = {model.rho[p]:f}")
        used = beta > 0
        lines.append(f"nSV = {int(used.sum())}, nBSV = {int((used & (beta >= bound * (1 - 1e-9))).sum())}")
    if args.machine in CLASSIFIERS:
        lines.append(f"Total nSV = {len(model.coefficients)}")
    return lines


def _our_pair(fitted: Any, model: LibsvmModel, i: int, j: int) -> int:
    """Which of the estimator's sub-problems is the file's pair (i, j)."""
    if model.label is None or len(model.label) == 2:
        return 0
    classes: list[int] = fitted.classes_.tolist()
    a, b = sorted((classes.index(model.label[i]), classes.index(model.label[j])))
    k = len(classes)
    return a * k - a * (a + 1) // 2 + b - a - 1


def _bounds(args: argparse.Namespace, fitted: Any, model: LibsvmModel, y: Any, i: int, j: int) -> tuple[Any, int]:
    """Each support vector's box, and how many rows the sub-problem has."""
    n = len(model.coefficients)
    if args.machine == "one_class":
        return np.ones(n), len(y)
    if model.label is None or model.nr_sv is None:
        return np.full(n, args.C), len(y)
    if args.machine == "nu_svc":
        return np.ones(n), int(np.isin(y, [model.label[i], model.label[j]]).sum())
    factor = dict(zip(fitted.classes_.tolist(), fitted.class_weight_.tolist(), strict=True))
    box = np.repeat([args.C * factor[label] for label in model.label], model.nr_sv)
    in_pair = np.repeat([c in (i, j) for c in range(len(model.label))], model.nr_sv)
    box[~in_pair] = args.C * factor[model.label[i]]
    return box, int(np.isin(y, [model.label[i], model.label[j]]).sum())


def _report(fitted: Any, model: LibsvmModel, path: Path, seconds: float) -> dict[str, Any]:
    """The same for a program."""
    return {
        "mercer": mercer.__version__,
        "machine": model.svm_type,
        "kernel": str(fitted.kernel_),
        "labels": None if model.label is None else list(model.label),
        "rho": model.rho.tolist(),
        "support_vectors": len(model.coefficients),
        "converged": bool(fitted.converged_),
        "stop_reason": fitted.stop_reason_,
        "certificate": fitted.certificate_.to_dict(),
        "probability": model.has_probabilities,
        "seconds": seconds,
        "model_file": str(path),
    }


# --- cross-validation and probabilities ------------------------------------------------------------------------------


def _cross_validate(args: argparse.Namespace, machine: Any, X: Any, y: Any) -> None:
    k = checked(args.folds, len(y))
    splits = deal(len(y), k, args.seed, y if args.machine in CLASSIFIERS else None)
    with waiting(f"{k}-fold cross-validation", args.quiet or args.json, k) as counted:
        answer = held_out(machine, X, y, counted(splits), lambda fitted, rows: fitted.predict(rows))
    print(cross_validation_text(args, k, y, answer))


def cross_validation_text(args: argparse.Namespace, k: int, y: Any, answer: Any) -> str:
    """svm-train's line or two, or JSON."""
    if args.machine in REGRESSORS:
        error, correlation = float(np.mean((answer - y) ** 2)), squared_correlation(y, answer)
        figures = {"mean_squared_error": error, "squared_correlation": correlation}
        text = (
            f"Cross Validation Mean squared error = {error:g}\n"
            f"Cross Validation Squared correlation coefficient = {correlation:g}"
        )
    else:
        share = float(np.mean(answer == y))
        figures, text = {"accuracy": share}, f"Cross Validation Accuracy = {100 * share:g}%"
    return json.dumps({"folds": k, "seed": args.seed, **figures}) if args.json else text


def _with_probabilities(
    args: argparse.Namespace,
    machine: Any,
    fitted: Any,
    model: LibsvmModel,
    X: Any,
    y: Any,
    weights: dict[Any, float],
) -> tuple[LibsvmModel, list[str]]:
    """The model with what -b 1 adds, and the line that svm-train prints for it."""
    if args.machine in REGRESSORS:
        answer = held_out(machine, X, y, deal(len(y), _PLATT_FOLDS, args.seed), lambda m, rows: m.predict(rows))
        sigma = laplace_scale(y - answer)
        return replace(model, prob_a=np.array([sigma])), [
            "Prob. model for test data: target value = predicted value + z,",
            f"z: Laplace distribution e^(-|z|/sigma)/(2sigma),sigma= {sigma:g}",
        ]
    if args.machine == "one_class":
        return replace(model, density_marks=density_marks(fitted.decision_function(X))), []
    assert model.label is not None
    sigmoids = []
    for i, j in model.pairs:
        first, second = model.label[i], model.label[j]
        rows = np.flatnonzero((y == first) | (y == second))
        part = X[np.ix_(rows, rows)] if args.kernel == "precomputed" else X[rows]
        own = (weights.get(first, 1.0), weights.get(second, 1.0))
        f = pair_decisions(machine, part, y[rows] == first, own, _PLATT_FOLDS, args.seed)
        sigmoids.append(fit_sigmoid(f, y[rows] == first))
    A, B = np.array(sigmoids).T
    return replace(model, prob_a=A, prob_b=B), []
