"""The estimator or Pipeline of a ``.mercer`` file, as a `Model`."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.pipeline import Pipeline

from mercer.arrays import Floats, is_sparse
from mercer.certificates.certificate import Certificate
from mercer.expansion import Expansion
from mercer.files.facts import margins_told, pair_names
from mercer.files.liblinear_estimator import MACHINES as LINEAR_MACHINES
from mercer.files.liblinear_estimator import liblinear_from_estimator
from mercer.files.liblinear_model import LiblinearModel
from mercer.files.libsvm_estimator import layout_of, libsvm_from_estimator
from mercer.files.libsvm_model import LibsvmModel
from mercer.fitting.dual_status import free_and_bounded
from mercer.tables.estimator import Tabular
from mercer.tables.frame import Frame
from mercer.threads import effective_n_threads

Facts = dict[str, Any]

# Parameters of a training, of which a model that another program trained says nothing.
_OF_TRAINING = ("C", "nu", "epsilon", "tol", "gap_tol", "class_weight", "theta", "lam", "slack", "solver", "max_iter")


class MercerFile:
    """What mercer saved."""

    def __init__(self, model: Any, name: str) -> None:
        self._model, self._name = model, name
        inner = model.estimator_ if isinstance(model, Tabular) else model
        self._machine = inner[-1] if isinstance(inner, Pipeline) else inner

    @property
    def kind(self) -> str:
        if hasattr(self._machine, "classes_"):
            return "classification"
        return "one-class" if isinstance(self._machine, OutlierMixin) else "regression"

    @property
    def native(self) -> str:
        return "liblinear" if type(self._machine).__name__ in LINEAR_MACHINES else "libsvm"

    @property
    def first_index(self) -> int:
        return 0 if self._is_precomputed else 1

    @property
    def feature_names(self) -> Any:
        first = self._model[0] if isinstance(self._model, Pipeline) else self._model
        return getattr(first, "feature_names_in_", None)

    @property
    def table(self) -> Tabular | None:
        return self._model if isinstance(self._model, Tabular) else None

    @property
    def expansion(self) -> Expansion | None:
        return getattr(self._machine, "_expansion_", None)

    @property
    def n_training_rows(self) -> int | None:
        if not hasattr(self._machine, "certificate_") or not hasattr(self._machine, "shape_fit_"):
            return None
        return int(self._machine.shape_fit_[0])

    @property
    def has_probabilities(self) -> bool:
        machine = self._machine
        return self._model is machine and (hasattr(machine, "probA_") or hasattr(machine, "prob_density_marks_"))

    @property
    def _is_precomputed(self) -> bool:
        kernel = getattr(self._machine, "kernel_", None)  # linear machines have none
        return kernel is not None and kernel.accepts == "gram"

    # --- prediction ------------------------------------------------------------------------------------------------

    def rows(self, X: Any, source: str, text: bool) -> Any:
        if isinstance(X, Frame):
            return X
        known = self._machine.n_features_in_ if self.table is None else self.table.n_features_in_
        if text and self._is_precomputed:
            X = np.asarray(X.toarray())[:, 1:]  # column 0 holds serial numbers, of no use here
        elif text and X.shape[1] < known:
            X = X.copy()
            X.resize((X.shape[0], known))  # the last columns may all be zero here
        if X.shape[1] != known:
            raise ValueError(f"{source} has {X.shape[1]} features, but the model was trained on {known}")
        return X if self.table is None or not is_sparse(X) else X.toarray()

    def decisions(self, X: Any) -> Floats:
        X = X if self.table is None else self.table.encode(X)
        X = self._model[:-1].transform(X) if isinstance(self._model, Pipeline) else X
        if self.expansion is None:
            return np.asarray(X @ np.atleast_2d(self._machine.coef_).T + self._machine.intercept_, dtype=np.float64)
        return self.expansion(X, effective_n_threads(self._machine.n_jobs))

    def predict(self, X: Any) -> Any:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X does not have valid feature names")  # the reader compared them
            return self._model.predict(X)

    def with_probabilities(self) -> LibsvmModel:
        if not self.has_probabilities:
            raise ValueError(
                "Model does not support probabiliy estimates: train it with -b 1 on LIBSVM text, or calibrate it in "
                "Python with sklearn.calibration.CalibratedClassifierCV"
            )
        return layout_of(self._machine)

    # --- other formats ---------------------------------------------------------------------------------------------

    def estimator(self, n_features: int | None = None) -> Any:
        return self._model

    def as_libsvm(self) -> LibsvmModel:
        return libsvm_from_estimator(self._unscaled("LIBSVM"))

    def as_liblinear(self) -> LiblinearModel:
        return liblinear_from_estimator(self._unscaled("LIBLINEAR"))

    def _unscaled(self, program: str) -> Any:
        if self.table is not None:
            raise TypeError(
                f"{self._name} turns the columns of a table into numbers first (it standardises, for one), which a "
                f"{program} file cannot hold; convert to ONNX, or train with --no-standardise on LIBSVM text"
            )
        if self._model is not self._machine:
            raise TypeError(
                f"{self._name} standardises its columns first, which a {program} file cannot hold; convert to ONNX, or "
                "train with --no-standardise on scaled data"
            )
        return self._machine

    # --- facts -----------------------------------------------------------------------------------------------------

    def facts(self) -> Facts:
        machine = self._machine
        facts: Facts = {"format": ".mercer", "machine": type(machine).__name__}
        if self.table is not None:
            facts["columns"] = {one.name: one.told for one in self.table.columns_}
        if isinstance(self._model, Pipeline):
            facts["steps"] = [type(step).__name__ for _, step in self._model.steps]
        if hasattr(machine, "kernel_"):
            facts["kernel"] = str(machine.kernel_)
        unknown = () if hasattr(machine, "stop_reason_") else _OF_TRAINING
        facts["parameters"] = {
            name: "not recorded" if name in unknown else _plain(value)
            for name, value in machine.get_params(deep=False).items()
            if name != "kernel"
        }
        names = self.feature_names
        facts["features"] = list(names) if names is not None else getattr(machine, "n_features_in_", None)
        labels = [str(label) for label in machine.classes_] if hasattr(machine, "classes_") else None
        if labels is not None:
            facts["labels"] = labels
        facts |= _weights(machine) if self.expansion is None else _vectors(machine, self.expansion, labels)
        facts["probabilities"] = hasattr(machine, "probA_") or hasattr(machine, "prob_density_marks_")
        facts["certificate"] = _certificate(machine)
        return facts


def _plain(value: Any) -> Any:
    return {str(key): item for key, item in value.items()} if isinstance(value, dict) else value


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
        counts = free_and_bounded(machine) or ("unknown", "unknown")
        facts["free_support_vectors"], facts["bounded_support_vectors"] = counts
    if hasattr(machine, "support_"):
        facts["total_support_vectors"] = len(machine.support_)
    else:
        facts["vectors"] = int(expansion.coefficients.shape[0])
    n_outputs = len(expansion.b)
    names = [f"output {k}" for k in range(n_outputs)]
    if labels is not None and hasattr(machine, "support_") and getattr(machine, "multiclass", "ovo") == "ovo":
        names = pair_names(labels)
    elif labels is not None and len(labels) == n_outputs:
        names = labels
    if hasattr(machine, "rkhs_norm_"):
        return facts | margins_told(np.atleast_1d(machine.rkhs_norm_), names)
    return facts if expansion.vectors is None else facts | margins_told(expansion.norms(), names)


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
        "verdict": found.verdict,
        "stopped": getattr(machine, "stop_reason_", "converged"),
    }
