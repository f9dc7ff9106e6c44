"""Estimator or pipeline of a ``.mercer`` file, as a `Model`."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import OutlierMixin, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from mercer.certificates.certificate import Certificate
from mercer.estimators.fitting.pipeline.state import has_function_per_class
from mercer.estimators.fitting.reports.dual_margins import count_free_and_bounded
from mercer.estimators.unsupervised.learner import UnsupervisedMachine
from mercer.files.liblinear_estimator import MACHINES as LINEAR_MACHINES
from mercer.files.liblinear_estimator import liblinear_from_estimator
from mercer.files.liblinear_model import LiblinearModel
from mercer.files.libsvm_estimator import libsvm_from_estimator, libsvm_layout
from mercer.files.libsvm_model import LibsvmModel
from mercer.files.mercer_file.model_file import machines_in
from mercer.files.model import Estimator, Facts, Model, margin_facts, pair_names
from mercer.places.expansion import Expansion
from mercer.runtime.optional import require
from mercer.runtime.threads import effective_n_threads
from mercer.samples.arrays import Floats, is_sparse
from mercer.tables.estimator import table_in
from mercer.tables.frame import Frame

# Training parameters, which are unknown for a model that another program trained.
_TRAINING_PARAMETERS = (
    "C",
    "nu",
    "epsilon",
    "tol",
    "gap_tol",
    "class_weight",
    "theta",
    "lam",
    "slack",
    "solver",
    "max_iter",
)


class MercerFile(Model):
    """Model of a .mercer file."""

    def __init__(self, model: Estimator, name: str) -> None:
        self._model, self._name = model, name
        self._machines = machines_in(model)
        # In a Pipeline, mercer's feature maps may precede the machine that predicts.
        predicting = [machine for machine in self._machines if not isinstance(machine, UnsupervisedMachine)]
        self._machine = machine = (predicting or self._machines)[0]
        self.native = "liblinear" if type(machine).__name__ in LINEAR_MACHINES else "libsvm"
        self.first_index = 0 if self._is_precomputed else 1
        self.feature_names = getattr(model, "feature_names_in_", None)
        self.table = table_in(model)
        if hasattr(machine, "certificate_") and hasattr(machine, "shape_fit_"):
            self.n_training_rows = int(machine.shape_fit_[0])
        self._has_libsvm_law = hasattr(machine, "probA_") or hasattr(machine, "prob_density_marks_")  # from -b 1
        self.has_probabilities = model is machine and self._has_libsvm_law

    @property
    def kind(self) -> str:
        """Kind of prediction, as `Model.kind` names it."""
        if hasattr(self._model, "classes_"):
            return "classification"
        if isinstance(self._machine, UnsupervisedMachine):
            return "clustering" if hasattr(self._model, "predict") else "features"
        return "one-class" if isinstance(self._machine, OutlierMixin) else "regression"

    @property
    def expansion(self) -> Expansion | None:
        return getattr(self._machine, "_expansion_", None) if len(self._machines) == 1 else None

    @property
    def _is_precomputed(self) -> bool:
        kernel = getattr(self._machines[0], "kernel_", None)  # linear machines have none
        return kernel is not None and kernel.accepts == "gram"

    # --- prediction ------------------------------------------------------------------------------------------------

    def rows(self, X: Any, source: str, text: bool) -> Any:
        """Return the rows of a data file as the model needs them; raise ValueError if their columns do not fit."""
        if isinstance(X, Frame):
            return X
        n_trained_columns = getattr(self._model, "n_features_in_", None)
        # Smallest number of columns for a precomputed kernel from a LIBSVM file; 0 for other models.
        least = 0 if self.expansion is None else self.expansion.n_columns
        if n_trained_columns is None and not least:
            raise ValueError(
                f"{self._name} takes texts, not columns of numbers; use it in Python: "
                f"mercer.load({self._name!r}).predict(texts)"
            )
        if text and self.table is not None and self.feature_names is not None:
            names, n_hidden = ", ".join(map(repr, self.feature_names[:8])), len(self.feature_names) - 8
            more_text = f" and {n_hidden} more" if n_hidden > 0 else ""
            raise ValueError(
                f"{source} is LIBSVM text, whose features have no names, but {self._name} was trained on a table's "
                f"columns and needs them by name: {names}{more_text}; use a table that has them"
            )
        if text and self._is_precomputed:
            X = np.asarray(X.toarray())[:, 1:]  # column 0 holds serial numbers, which prediction does not need
        elif text and X.shape[1] < n_trained_columns:
            X = X.copy()
            X.resize((X.shape[0], n_trained_columns))  # trailing columns of zeros are not in the text
        if n_trained_columns is None and X.shape[1] < least:
            raise ValueError(f"{source} has {X.shape[1]} kernel values per row, but the model needs at least {least}")
        if n_trained_columns is not None and X.shape[1] != n_trained_columns:
            raise ValueError(f"{source} has {X.shape[1]} features, but the model was trained on {n_trained_columns}")
        if self.table is not None:
            return X.toarray() if is_sparse(X) else X
        if self._model is not self._machine and self.feature_names is not None:
            # Steps of the model may select columns by name.
            return require("pandas", "a model of named columns").DataFrame(X, columns=self.feature_names)
        return X

    def decisions(self, X: Any) -> Floats:
        """Return the decision values, one column per output."""
        if self.table is self._model and self.table.estimator_ is self._machine:
            X = self.table.encode(X)
        elif self._model is not self._machine:
            return np.asarray(self._model.decision_function(X), dtype=np.float64)
        if getattr(self._machine, "_DECISION_NAME", ""):  # the decision of this machine is not a sum over vectors
            return np.asarray(self._machine.decision_function(X), dtype=np.float64).reshape(X.shape[0], -1)
        if self.expansion is None:
            return np.asarray(X @ np.atleast_2d(self._machine.coef_).T + self._machine.intercept_, dtype=np.float64)
        return self.expansion(X, effective_n_threads(self._machine.n_jobs))

    def predict(self, X: Any) -> Any:
        """Return labels, numbers, or ±1; raise ValueError for a model that only computes features."""
        if self.kind == "features":
            raise ValueError(
                f"{self._name} holds a {_outline(self._model)}, which computes features and does not predict; in "
                f"Python: mercer.load({self._name!r}).transform(X)"
            )
        with warnings.catch_warnings():
            # The names were checked when the rows were read.
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            return self._model.predict(X)

    def with_probabilities(self) -> LibsvmModel:
        """Return the model with LIBSVM's probability parameters; raise ValueError if it has none."""
        if not self.has_probabilities and hasattr(self._model, "predict_proba"):
            raise ValueError(
                f"-b 1 is for LIBSVM's probabilities; get those of {self._name} in Python: "
                f"mercer.load({self._name!r}).predict_proba(X)"
            )
        if not self.has_probabilities:
            raise ValueError(
                "Model does not support probabiliy estimates: train it with -b 1 on LIBSVM text, or calibrate it in "
                "Python: model.calibrate(X, y)"
            )
        return libsvm_layout(self._machine)

    # --- other formats ---------------------------------------------------------------------------------------------

    def estimator(self, n_features: int | None = None) -> Estimator:
        return self._model

    def as_libsvm(self) -> LibsvmModel:
        return libsvm_from_estimator(self._unscaled("LIBSVM"))

    def as_liblinear(self) -> LiblinearModel:
        return liblinear_from_estimator(self._unscaled("LIBLINEAR"))

    def _unscaled(self, program: str) -> Any:
        """Return the machine if no step of a table or Pipeline precedes it; raise TypeError otherwise."""
        if self.table is not None:
            raise TypeError(
                f"{self._name} first encodes the columns of a table as numbers and standardises them, which a "
                f"{program} file cannot hold; convert to ONNX, or train on LIBSVM text"
            )
        if self._model is self._machine:
            return self._machine
        if isinstance(self._model, Pipeline) and all(type(step) is StandardScaler for step in self._model[:-1]):
            raise TypeError(
                f"{self._name} standardises its columns first, which a {program} file cannot hold; convert to ONNX, or "
                "train with --no-standardise on scaled data"
            )
        raise TypeError(f"{self._name} is a {_outline(self._model)}, but a {program} file holds only a machine")

    # --- facts -----------------------------------------------------------------------------------------------------

    def facts(self) -> Facts:
        """Return the content of the file as plain values, by name."""
        facts: Facts = {"format": ".mercer"}
        names = self.feature_names
        features = list(names) if names is not None else getattr(self._model, "n_features_in_", None)
        if len(self._machines) > 1:
            facts |= {"model": _outline(self._model), "features": features}
            if hasattr(self._model, "classes_"):
                facts["labels"] = [str(label) for label in self._model.classes_]
            for number, machine in enumerate(self._machines, 1):
                facts[f"machine {number}"] = _short_facts(machine)
            return facts
        machine = self._machine
        facts["machine"] = type(machine).__name__
        if self.table is not None:
            facts["columns"] = {column.name: column.description for column in self.table.columns_}
        if isinstance(self._model, Pipeline):
            facts["steps"] = [_outline(step) for _, step in self._model.steps]
        elif self._model is not machine:
            facts["model"] = _outline(self._model)
        if hasattr(machine, "kernel_"):
            facts["kernel"] = str(machine.kernel_)
        is_trained = hasattr(machine, "stop_reason_") or hasattr(machine, "_compression_")
        unknown = () if is_trained or isinstance(machine, UnsupervisedMachine) else _TRAINING_PARAMETERS
        facts["parameters"] = {
            name: "not recorded" if name in unknown else _plain(value)
            for name, value in machine.get_params(deep=False).items()
            if name != "kernel"
        }
        facts["features"] = features if features is not None else "texts"
        labels = [str(label) for label in machine.classes_] if hasattr(machine, "classes_") else None
        if labels is not None:
            facts["labels"] = labels
        if isinstance(machine, UnsupervisedMachine):
            return facts | {"vectors": int(machine._expansion_.coefficients.shape[0])} | _unsupervised_facts(machine)
        facts |= _linear_facts(machine) if self.expansion is None else _vector_facts(machine, self.expansion, labels)
        facts["probabilities"] = hasattr(self._model, "predict_proba") or self._has_libsvm_law
        if is_regressor(self._model):
            facts["intervals"] = hasattr(self._model, "predict_interval")
        facts["certificate"] = _certificate_facts(machine)
        return facts


def _outline(model: Estimator) -> str:
    """Return the class of a model and of its parts, in one line."""
    part_values = [vars(model).get(name) for name in _PARTS]
    all_parts = [part for value in part_values for part in (value if isinstance(value, list) else [value])]
    parts = [part[1] if isinstance(part, tuple) else part for part in all_parts]
    inner = ", ".join(_outline(part) for part in parts if hasattr(part, "get_params"))
    return f"{type(model).__name__}({inner})" if inner else type(model).__name__


_PARTS = ("steps", "transformer_list", "transformers", "estimators", "estimator", "regressor", "transformer")


def _short_facts(machine: Estimator) -> Facts:
    """Return short facts about one machine among several."""
    facts: Facts = {"class": type(machine).__name__}
    if hasattr(machine, "kernel_"):
        facts["kernel"] = str(machine.kernel_)
    if hasattr(machine, "support_"):
        facts["support_vectors"] = len(machine.support_)
    certificate = getattr(machine, "certificate_", None)
    if isinstance(certificate, Certificate):
        facts |= {"gap": certificate.gap, "violation": certificate.violation}
    return facts


def _plain(value: Any) -> Any:
    """Return a value for JSON: an array as a list, a dictionary with text keys."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    return {str(key): item for key, item in value.items()} if isinstance(value, dict) else value


def _linear_facts(machine: Estimator) -> Facts:
    """Return facts about a linear machine, which stores w and no vectors."""
    w = np.atleast_2d(machine.coef_)
    norms = np.linalg.norm(w, axis=1).tolist()
    facts: Facts = {"non_zero_weights": int(np.count_nonzero(w)), "norm_of_w": norms[0] if len(norms) == 1 else norms}
    facts["b"] = machine.intercept_.tolist()[0] if len(norms) == 1 else machine.intercept_.tolist()
    if len(norms) == 1 and norms[0] > 0 and hasattr(machine, "classes_"):
        facts["margin"] = 1 / norms[0]
    return facts


def _vector_facts(machine: Estimator, expansion: Expansion, labels: list[str] | None) -> Facts:
    """Return facts about the support vectors and the margin of a machine."""
    facts: Facts = {}
    if labels is not None and hasattr(machine, "n_support_"):
        facts["support_vectors"] = dict(zip(labels, [int(n) for n in machine.n_support_], strict=True))
        counts = count_free_and_bounded(machine) or ("unknown", "unknown")
        facts["free_support_vectors"], facts["bounded_support_vectors"] = counts
    if hasattr(machine, "support_"):
        facts["total_support_vectors"] = len(machine.support_)
    else:
        facts["vectors"] = int(expansion.coefficients.shape[0])
    if hasattr(machine, "_compression_"):
        facts["compressed_from"], facts["error"] = machine.compression_.n_vectors_before, machine.compression_.error
    n_outputs = len(expansion.b)
    names = [f"output {k}" for k in range(n_outputs)]
    if labels is not None and n_outputs > 1:
        has_pairs = hasattr(machine, "break_ties") and not has_function_per_class(machine)
        names = pair_names(labels) if has_pairs else labels
    if hasattr(machine, "rkhs_norm_"):
        return facts | margin_facts(np.atleast_1d(machine.rkhs_norm_), names)
    return facts if expansion.vectors is None else facts | margin_facts(expansion.norms(), names)


def _unsupervised_facts(machine: Estimator) -> Facts:
    """Return fitted quantities of an unsupervised machine."""
    names = ("eigenvalues_", "explained_variance_ratio_", "correlations_", "inertia_", "n_iter_", "converged_")
    facts: Facts = {name.rstrip("_"): _plain(getattr(machine, name)) for name in names if hasattr(machine, name)}
    if hasattr(machine, "labels_"):
        clusters, counts = np.unique(machine.labels_, return_counts=True)
        facts["cluster_sizes"] = dict(zip(map(str, clusters), counts.tolist(), strict=True))
    return facts


def _certificate_facts(machine: Estimator) -> Any:
    """Return facts about the certificate of a machine, or the reason why it has none."""
    certificate = getattr(machine, "certificate_", None)
    if certificate is None and hasattr(machine, "_compression_"):
        return "none: this model was compressed"
    if not isinstance(certificate, Certificate):
        return "none: this model was not trained by mercer" if certificate is None else str(certificate)
    return {
        "primal": certificate.primal,
        "dual": certificate.dual,
        "gap": certificate.gap,
        "violation": certificate.violation,
        **certificate.kkt,
        "verdict": certificate.verdict,
        "stopped": getattr(machine, "stop_reason_", "converged"),
    }
