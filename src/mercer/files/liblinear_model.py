"""LIBLINEAR's model file: the weights of a linear machine.

    solver_type L2R_L2LOSS_SVC_DUAL
    nr_class 2
    label 1 -1                    classification only
    nr_feature 13
    bias -1                       B: if B ≥ 0, every row has one more feature of value B, whose weights come last
    rho 0.5                       one-class only
    w
    0.25                          a line for each feature: one weight for two classes, else one for each class

f(x) = ⟨w, x⟩ + B·w_last; for two classes f > 0 means the first label, for more the largest f wins.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from mercer.files.atomic_write import replacing
from mercer.files.model import Estimator, Facts, Model, check_model
from mercer.files.model_text import as_float, header_line, split_header
from mercer.runtime.errors import ModelFormatError
from mercer.samples.arrays import Floats

if TYPE_CHECKING:
    from mercer.files.libsvm_model import LibsvmModel

CLASSIFIERS: Final = (
    *("L2R_LR", "L2R_L2LOSS_SVC_DUAL", "L2R_L2LOSS_SVC", "L2R_L1LOSS_SVC_DUAL", "MCSVM_CS"),
    *("L1R_L2LOSS_SVC", "L1R_LR", "L2R_LR_DUAL"),
)
REGRESSORS: Final = ("L2R_L2LOSS_SVR", "L2R_L2LOSS_SVR_DUAL", "L2R_L1LOSS_SVR_DUAL")
SOLVERS: Final = (*CLASSIFIERS, *REGRESSORS, "ONECLASS_SVM")
_KEYS: Final = ("solver_type", "nr_class", "label", "nr_feature", "bias", "rho")


@dataclass(frozen=True, eq=False)
class LiblinearModel(Model):
    """Content of a LIBLINEAR model file; `weights` has a row for each feature, and the bias, if any, in the last."""

    solver_type: str
    nr_class: int
    bias: float
    weights: Floats
    label: tuple[int, ...] | None = None
    rho: float | None = None
    name: str = "the model"  # name of the file
    native = "liblinear"

    @property
    def n_features(self) -> int:
        """Number of features without the bias."""
        return len(self.weights) - int(self.bias >= 0)

    @property
    def kind(self) -> str:
        if self.label is not None:
            return "classification"
        return "one-class" if self.rho is not None else "regression"

    def facts(self) -> Facts:
        return {
            "format": "LIBLINEAR",
            "machine": self.solver_type,
            "labels": None if self.label is None else list(self.label),
            "features": self.n_features,
            "bias": self.bias,
            "non_zero_weights": int(np.count_nonzero(self.weights)),
            "norm_of_w": float(np.linalg.norm(self.weights)),
        }

    def decisions(self, X: Any) -> Floats:
        """Return f at every row, one column for each weight vector; columns without a weight are ignored."""
        n = min(X.shape[1], self.n_features)
        values = np.asarray(X[:, :n] @ self.weights[:n], dtype=np.float64)
        if self.bias >= 0:
            values = values + self.bias * self.weights[-1]
        return values if self.rho is None else values - self.rho

    def predict(self, X: Any) -> Any:
        """Return labels, numbers for a regression, or ±1 for one-class."""
        values = self.decisions(X)
        if self.solver_type == "ONECLASS_SVM":
            return np.where(values[:, 0] > 0, 1, -1)
        if self.label is None:
            return values[:, 0]
        if values.shape[1] == 1:
            return np.array(self.label)[np.where(values[:, 0] > 0, 0, 1)]
        return np.array(self.label)[np.argmax(values, axis=1)]

    def with_probabilities(self) -> LibsvmModel:
        raise ValueError(
            "-b 1 is not available for LIBLINEAR's models; predict without it. In Python the probabilities of logistic "
            "regression are scipy.special.expit(model.decisions(X)), divided by their sum if there are several classes"
        )

    def estimator(self, n_features: int | None = None) -> Estimator:
        from mercer.files.liblinear_estimator import estimator_from_liblinear

        return estimator_from_liblinear(self, n_features=n_features)

    def as_libsvm(self) -> LibsvmModel:
        raise TypeError(
            f"{self.name} is a LIBLINEAR model, which stores only w, but LIBSVM's format needs support vectors"
        )

    def as_liblinear(self) -> LiblinearModel:
        return self


def read_liblinear_model(path: str | os.PathLike[str]) -> LiblinearModel:
    """Read a model that LIBLINEAR's ``train`` wrote, or raise ModelFormatError.

    Parameters
    ----------
    path : str or path-like
        File to read.
    """
    return parse_liblinear_model(Path(path).read_bytes(), os.fspath(path))


def parse_liblinear_model(content: bytes, name: str = "the model") -> LiblinearModel:
    """Parse the bytes of a LIBLINEAR model file; see `read_liblinear_model`."""
    header, body = split_header("w", content, name, "LIBLINEAR", _KEYS)
    solver = header.word("solver_type", SOLVERS)
    (nr_class,), (n_features,) = header.integers("nr_class", 1), header.integers("nr_feature", 1)
    (bias,) = header.floats("bias", 1).tolist()
    label = None
    if solver in CLASSIFIERS:
        if nr_class < 2:
            raise ModelFormatError(f"{name}: nr_class {nr_class} must be at least 2")
        label = header.labels(nr_class)
    rho = header.floats("rho", 1).tolist()[0] if solver == "ONECLASS_SVM" else None
    header.finish()
    width = 1 if label is None or (nr_class == 2 and solver != "MCSVM_CS") else nr_class
    n_lines = n_features + (bias >= 0)
    if n_features < 0 or len(body) != n_lines:
        raise ModelFormatError(
            f"{name} is truncated or damaged: the header announces {n_lines} lines of weights, but {len(body)} follow"
        )
    weights = np.empty((n_lines, width))
    for i, line in enumerate(body):
        where, words = f"{name}:{header.end + 1 + i}", line.decode("ascii", "backslashreplace").split()
        if len(words) != width:
            raise ModelFormatError(f"{where}: expected {width} weights, found {len(words)}")
        weights[i] = [as_float(word, where) for word in words]
    return LiblinearModel(solver, nr_class, bias, weights, label, rho, name)


def write_liblinear_model(model: LiblinearModel, path: str | os.PathLike[str]) -> None:
    """Write the file that LIBLINEAR's ``predict`` reads; it appears only when it is complete.

    Parameters
    ----------
    model : LiblinearModel
        Model from `liblinear_from_estimator`.
    path : str or path-like
        File to write.
    """
    check_model(model, LiblinearModel, "mercer.files.liblinear_estimator.liblinear_from_estimator")
    with replacing(path) as file:
        file.write(format_liblinear_model(model))


def format_liblinear_model(model: LiblinearModel) -> bytes:
    """Return the bytes of the file, as LIBLINEAR 2.50 writes it."""
    lines = [f"solver_type {model.solver_type}", f"nr_class {model.nr_class}"]
    if model.label is not None:
        lines.append(header_line("label", model.label))
    lines += [f"nr_feature {model.n_features}", f"bias {model.bias:.17g}"]
    if model.rho is not None:
        lines.append(f"rho {model.rho:.17g}")
    lines.append("w")
    lines += ["".join(f"{weight:.17g} " for weight in row) for row in model.weights.tolist()]
    return ("\n".join(lines) + "\n").encode("ascii")
