"""``mercer train`` on a LIBSVM text file: the training, output and model file of svm-train."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

import mercer
from mercer.calibration.libsvm_laws import density_marks, laplace_scale
from mercer.cli.data import Data, integer_labels, order_of_appearance, read_data
from mercer.cli.folds import cross_validated_decisions, predict_held_out, select_rows, split_folds
from mercer.cli.libsvm.probability import fit_sigmoid
from mercer.cli.machines import CLASSIFIERS, REGRESSORS, ClassWeight, Estimator, build_estimator, needs_mercer_file
from mercer.cli.terminal import Clock, printable, show_warning
from mercer.estimators.fitting.reports.dual_margins import n_bounded
from mercer.files.libsvm_estimator import libsvm_from_estimator, libsvm_kernel, libsvm_layout, reorder_classes
from mercer.files.libsvm_model import LibsvmModel, write_libsvm_model
from mercer.kernels.names import as_kernel
from mercer.runtime.progress import waiting
from mercer.samples.arrays import freeze
from mercer.samples.labels import planes

if TYPE_CHECKING:
    from mercer.cli.report import Rows


class LibsvmTraining:
    """Training on LIBSVM text as svm-train does it."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._args = args
        name = "standard_input" if args.file == "-" else Path(args.file).name
        self._needs_mercer_file = needs_mercer_file(args)
        self.path = Path(args.output or f"{name}.{'mercer' if self._needs_mercer_file else 'model'}")
        self._saves_mercer = self.path.suffix == ".mercer"
        if self._needs_mercer_file and not self._saves_mercer:
            raise ValueError(
                f"LIBSVM's format cannot store this machine; name a model file that ends in .mercer, not {self.path}"
            )
        if self._needs_mercer_file and args.probability:
            raise ValueError("-b 1 is for LIBSVM's machines; in Python, use model.calibrate(X, y)")
        self._serials: Any = None

    def read(self) -> Data:
        """Read the file; for a precomputed kernel, the rows are those of a kernel matrix."""
        args = self._args
        is_precomputed = args.kernel == "precomputed"
        data = read_data(args.file, args.format, args.target, first_index=0 if is_precomputed else 1)
        if data.X.shape[0] == 0:
            raise ValueError(f"{data.source} holds no rows")
        if is_precomputed:
            data, self._serials = _kernel_matrix(data)
            if self._saves_mercer and not np.array_equal(self._serials, np.arange(1, len(self._serials) + 1)):
                raise ValueError(
                    f"{data.source} contains only some rows of a kernel matrix, or permutes them: only LIBSVM's format "
                    "stores their indices; name a model file that does not end in .mercer"
                )
        return replace(data, y=integer_labels(data.y, data.source)) if args.machine in CLASSIFIERS else data

    def report_unknown_classes(self, names: list[str], data: Data) -> None:
        """Warn, as svm-train does, of weights for classes that no row has."""
        for label in names:
            warning = f"WARNING: class label {label} specified in weight is not found"
            print(printable(warning, sys.stderr), file=sys.stderr)

    def model(self, data: Data, class_weight: ClassWeight) -> Estimator:
        """Return the unfitted estimator that the options describe."""
        args = self._args
        if args.probability and class_weight == "balanced":
            raise ValueError("-b 1 cannot be combined with --class-weight; use --weight")
        if not self._saves_mercer:  # fail now rather than after an hour of training
            libsvm_kernel(as_kernel(args.kernel, degree=args.degree, gamma=1.0, coef0=args.coef0))
        machine = build_estimator(args, _gamma(args, data.X), class_weight)
        return machine.set_params(tol=_tolerance(args.tol, args.machine)) if hasattr(machine, "tol") else machine

    def finish_single_class(self, data: Data) -> bool:
        """If all rows have one class, write svm-train's model for it and return True; otherwise return False."""
        if self._args.machine not in CLASSIFIERS or (data.y != data.y[:1]).any():
            return False
        if self._saves_mercer:
            raise ValueError("all rows have the same class, so that there is no estimator to save as .mercer")
        write_libsvm_model(_single_class_model(self._args, int(data.y[0])), self.path)
        self._say("WARNING: training data in only one class. See README for details.")
        return True

    def split(self, data: Data) -> tuple[Rows, Rows]:
        """Return all rows to train on, and no held-out rows."""
        return (data.X, data.y), (data.X[:0], data.y[:0])

    def fit(self, model: Estimator, train: Rows, **weights: Any) -> None:
        """Train on all rows."""
        model.fit(*train, **weights)

    def conclude(self, model: Estimator, data: Data, train: Rows, test: Rows, clock: Clock) -> None:
        """Save the model, and print svm-train's lines or a report as JSON."""
        facts, lines = self._save_as_mercer(model) if self._needs_mercer_file else self._save(model, data)
        if self._args.json:
            print(json.dumps(_report(model, self.path, clock.total, **facts), indent=2))
        else:
            self._say("\n".join(lines))

    def _save(self, fitted: Estimator, data: Data) -> tuple[dict[str, Any], list[str]]:
        """Save one of LIBSVM's machines; return its facts for JSON and svm-train's lines."""
        args = self._args
        layout = libsvm_layout if self._saves_mercer else libsvm_from_estimator
        order = order_of_appearance(data.y) if args.machine in CLASSIFIERS else None
        model = layout(fitted, label_order=order)
        lines = _solver_lines(args, fitted, model, data.y)
        if args.probability:
            with waiting("cross-validating for probabilities", args.quiet or args.json, verbose=args.verbose):
                model, probability_lines = _with_probabilities(args, fitted, model, data)
            lines += probability_lines
        if self._saves_mercer:
            _save_estimator(model, fitted, self.path)
        else:
            write_libsvm_model(model if self._serials is None else _with_serials(model, self._serials), self.path)
        facts = {
            "machine": model.svm_type,
            "kernel": str(fitted.kernel_),
            "labels": None if model.label is None else list(model.label),
            "rho": model.rho.tolist(),
            "support_vectors": len(model.coefficients),
            "probability": model.has_probabilities,
        }
        return facts, lines

    def _save_as_mercer(self, fitted: Estimator) -> tuple[dict[str, Any], list[str]]:
        """Save a machine that LIBSVM does not have; return its facts for JSON and lines to print."""
        mercer.save(fitted, self.path)
        labels = fitted.classes_.tolist() if hasattr(fitted, "classes_") else None
        count = len(fitted.support_) if hasattr(fitted, "support_") else None
        support = [] if count is None else [f"Total nSV = {count}"]
        lines = [f"{type(fitted).__name__}: {fitted.stop_reason_}", str(fitted.certificate_), *support]
        return {"machine": self._args.machine, "labels": labels, "support_vectors": count}, lines

    def _say(self, text: str) -> None:
        if not self._args.quiet and not self._args.json:
            print(text)


def _gamma(args: argparse.Namespace, X: Any) -> float | str:
    """Return -g; 0 and None stand for 1/(largest index of the file)."""
    if args.gamma is None or args.gamma == 0:
        return 1.0 / X.shape[1] if X.shape[1] else 0.0
    gamma: float | str = args.gamma
    return gamma


def _tolerance(e: float, machine: str) -> float:
    """Return a tenth of -e, but at least 1e-6, since two fits to the same tolerance may differ noticeably in rho.

    ν-SVC needs a hundredth: its solution is divided by its margin r, so that the violation grows by 1/r and its effect
    on the objective by 1/r².
    """
    divisor = 100 if machine == "nu_svc" else 10
    return max(e / divisor, 1e-6) if e > 1e-6 else e


def _kernel_matrix(data: Data) -> tuple[Data, Any]:
    """Return the kernel matrix between the rows of a file, and their serial numbers.

    A row of the file is ``0:serial 1:K(x, x_1) 2:K(x, x_2) ...``; the file may have any rows of the complete matrix.
    """
    table = np.asarray(data.X.toarray())
    serials = table[:, 0] if table.shape[1] else np.zeros(len(table))
    if (serials % 1 != 0).any() or (serials < 1).any():
        raise ValueError(f"{data.source}: Wrong input format: first column must be 0:sample_serial_number, from 1")
    if (serials >= table.shape[1]).any():
        raise ValueError(f"{data.source}: Wrong input format: sample_serial_number out of range")
    columns = serials.astype(np.intp)
    return replace(data, X=np.ascontiguousarray(table[:, columns])), columns


def _with_serials(model: LibsvmModel, serials: Any) -> LibsvmModel:
    """Return the model with the file's serial numbers of its support vectors in place of their row numbers."""
    vectors = model.vectors.copy()
    vectors.data = serials[model.serials - 1].astype(np.float64)
    return replace(model, vectors=vectors)


def _single_class_model(args: argparse.Namespace, label: int) -> LibsvmModel:
    """Return the model that LIBSVM writes for a single class."""
    empty = np.empty((0, 0))
    vectors = sp.csr_array((0, 1))
    return LibsvmModel(args.machine, "linear", {}, np.empty(0), empty, vectors, (label,), (0,))


def _save_estimator(model: LibsvmModel, fitted: Estimator, path: Path) -> None:
    """Save as .mercer, with the probability parameters in the estimator's order of classes, not LIBSVM's."""
    ordered_model = model if model.label is None else reorder_classes(model, list(libsvm_layout(fitted).label or ()))
    attributes = (
        ("probA_", ordered_model.prob_a),
        ("probB_", ordered_model.prob_b),
        ("prob_density_marks_", ordered_model.density_marks),
    )
    for attribute, values in attributes:
        if values is not None:
            setattr(fitted, attribute, freeze(values))
    mercer.save(fitted, path)


# --- what svm-train prints -------------------------------------------------------------------------------------------


def _solver_lines(args: argparse.Namespace, fitted: Estimator, model: LibsvmModel, y: Any) -> list[str]:
    """Return svm-train's lines on the solution of each binary problem."""
    lines = []
    parts = fitted.certificate_.parts or (fitted.certificate_,)
    pairs = planes(model.nr_class, against_rest=False)  # in the estimator's order
    for p, (i, j) in enumerate(model.pairs):
        q, size = 0, len(y)
        if model.label is not None:
            labels = [model.label[i], model.label[j]]
            size = int(np.isin(y, labels).sum())
            first, second = np.flatnonzero(np.isin(fitted.classes_, labels)).tolist()
            q = pairs.index((first, second)) if len(pairs) > 1 else 0
        beta = np.abs(model.by_pair[:, [p]].toarray()[:, 0])
        objective = -parts[q].dual
        lines += ["*", f"optimization finished, #iter = {np.atleast_1d(fitted.n_iter_)[q]}"]
        if args.machine == "nu_svc":
            # The solution is divided by the margin r; it is that of C-SVC with C = 1/r, which the certificate is for.
            lines.append(f"C = {beta.sum() / (args.nu * size):f}")
        elif args.machine == "nu_svr":
            lines.append(f"epsilon = {fitted.epsilon_:f}")
        elif args.machine != "one_class":
            penalties = _class_penalties(args.C, fitted, model, (i, j))
            if min(penalties) == max(penalties):
                lines.append(f"nu = {beta.sum() / (penalties[0] * size):f}")
        lines.append(f"obj = {objective:f}, rho = {model.rho[p]:f}")
        lines.append(f"nSV = {int((beta > 0).sum())}, nBSV = {n_bounded(fitted, q)}")
    if args.machine in CLASSIFIERS:
        lines.append(f"Total nSV = {len(model.coefficients)}")
    return lines


def _class_penalties(C: float, fitted: Estimator, model: LibsvmModel, pair: tuple[int, int]) -> list[float]:
    """Return C times the class weight for both classes of a pair."""
    if model.label is None:
        return [C]
    factor = dict(zip(fitted.classes_.tolist(), fitted.class_weight_.tolist(), strict=True))
    return [C * factor[model.label[c]] for c in pair]


def _report(fitted: Estimator, path: Path, seconds: float, **facts: Any) -> dict[str, Any]:
    """Return the report on a machine for JSON."""
    return {
        "mercer": mercer.__version__,
        **facts,
        "converged": bool(fitted.converged_),
        "stop_reason": fitted.stop_reason_,
        "certificate": fitted.certificate_.to_dict(),
        "seconds": seconds,
        "model_file": str(path),
    }


# --- probabilities ---------------------------------------------------------------------------------------------------


def _with_probabilities(
    args: argparse.Namespace, fitted: Any, model: LibsvmModel, data: Data
) -> tuple[LibsvmModel, list[str]]:
    """Return the model with the probability parameters of -b 1, and the lines that svm-train prints for them."""
    X, y = data.X, data.y
    if args.machine in REGRESSORS:
        sigma = laplace_scale(y - predict_held_out(fitted, X, y, split_folds(len(y), 5, args.seed)))
        return replace(model, prob_a=np.array([sigma])), [
            "Prob. model for test data: target value = predicted value + z,",
            f"z: Laplace distribution e^(-|z|/sigma)/(2sigma),sigma= {sigma:g}",
        ]
    if args.machine == "one_class":
        try:
            return replace(model, density_marks=density_marks(fitted.decision_function(X))), []
        except ValueError as error:  # the model is written without them, as svm-train does
            show_warning(str(error))
            return model, []
    assert model.label is not None
    weights = getattr(fitted, "class_weight", None) or {}
    sigmoids = []
    for i, j in model.pairs:
        first, second = model.label[i], model.label[j]
        rows = np.flatnonzero((y == first) | (y == second))
        pair_weights = (weights.get(first, 1.0), weights.get(second, 1.0))
        f = cross_validated_decisions(
            fitted, select_rows(X, rows, rows, fitted), y[rows] == first, pair_weights, args.seed
        )
        sigmoids.append(fit_sigmoid(f, y[rows] == first))
    A, B = np.array(sigmoids).T
    return replace(model, prob_a=A, prob_b=B), []
