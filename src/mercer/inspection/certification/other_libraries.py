"""Read fitted models of other libraries: the mercer estimator with the same problem, and the fitted coefficients.

| library | models | contents |
|---|---|---|
| scikit-learn, scikit-learn-intelex | SVC, NuSVC, SVR, NuSVR, OneClassSVM | β of the support vectors and b |
| | LinearSVC, LinearSVR | w and b |
| | KernelRidge | β of all samples |
| files of LIBSVM and LIBLINEAR | all but KernelRidge | as above, without C, ε, ν and the indices of support vectors |
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np
import scipy.sparse as sp
from sklearn import kernel_ridge, svm
from sklearn.base import clone
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import check_is_fitted

from mercer.estimators.linear import LinearSVC, LinearSVR
from mercer.estimators.novelty import OneClassSVM
from mercer.estimators.nu_svc import NuSVC
from mercer.estimators.rls import RLSRegressor
from mercer.estimators.svc import SVC
from mercer.estimators.svr import SVR, NuSVR
from mercer.samples.arrays import Floats, Indices, is_sparse
from mercer.samples.labels import check_label_objects, class_pairs, plane_coefficients

# Parameters that each problem needs besides its kernel; model files of LIBSVM and LIBLINEAR do not contain them.
_TRAINING_PARAMETERS: Final[dict[type, tuple[str, ...]]] = {
    SVC: ("C",),
    NuSVC: ("nu",),
    SVR: ("C", "epsilon"),
    NuSVR: ("C", "nu"),
    OneClassSVM: ("nu",),
    LinearSVC: ("C",),
    LinearSVR: ("C", "epsilon"),
}
# Relative tolerance for matching a file's support vectors with samples: older versions of LIBSVM write eight digits.
_FILE_TOLERANCE: Final = 1e-7


@dataclass(frozen=True)
class KernelModel:
    """Unfitted kernel machine with fitted β and b: a column of signed β over all samples and a number b per problem.

    If the model's kernel is a Python function, `K` holds its values on all samples, and the machine's kernel is
    precomputed.
    """

    machine: Any
    beta: Floats
    b: Floats
    K: Floats | None = None


@dataclass(frozen=True)
class LinearModel:
    """Unfitted linear machine with fitted w and b: a row of w and a number b per problem.

    `class_weight` holds LIBLINEAR's weights of three and more classes: each applies to the positive class in the
    problem of that class against the rest, in which the rest has weight 1.
    """

    machine: Any
    w: Floats
    b: Floats
    class_weight: dict[Any, float] | None = None


@dataclass(frozen=True)
class RidgeModel:
    """Unfitted kernel ridge regression without bias, with fitted β: a column of β and a number λ per output."""

    machine: RLSRegressor
    beta: Floats
    lam: Floats


def read_fitted(
    model: Any, X: Any, y: Any, weight: Any, numbers: dict[str, Any]
) -> KernelModel | LinearModel | RidgeModel | None:
    """Read a fitted model of another library or a model file; return None for a model of an unsupported class.

    `numbers` holds C, epsilon and nu as passed to `certify`, for model files; None means not given.
    """
    if isinstance(model, str | os.PathLike):
        return _read_file(model, X, y, numbers)
    given_names = [name for name, value in numbers.items() if value is not None]
    if given_names:
        raise ValueError(f"{type(model).__name__} holds its own {given_names[0]}; omit {given_names[0]}=")
    for mercer_class, sklearn_class in (
        (SVC, svm.SVC),
        (NuSVC, svm.NuSVC),
        (SVR, svm.SVR),
        (NuSVR, svm.NuSVR),
        (OneClassSVM, svm.OneClassSVM),
    ):
        if isinstance(model, sklearn_class):
            return _from_support_vectors(mercer_class, model, X, y, weight)
    if isinstance(model, svm.LinearSVC):
        return _from_linear_svc(model, X, y, weight)
    if isinstance(model, svm.LinearSVR):
        return _from_linear(LinearSVR, model, X, {})
    return _from_kernel_ridge(model, X) if isinstance(model, kernel_ridge.KernelRidge) else None


def expect_classes(classes: Any, y: Any) -> None:
    """Raise ValueError if y does not have the classes of a fitted model."""
    check_label_objects(y)
    labels = np.unique(np.asarray(y)) if y is not None else np.sort(classes)
    if not np.array_equal(labels, np.sort(classes)):
        raise ValueError(f"the model was fitted to the classes {np.asarray(classes).tolist()}, y has {labels.tolist()}")


def expect_vectors(model: Any, X: Any, rows: Indices) -> None:
    """Raise ValueError if these rows of X are not the support vectors of a fitted model."""
    samples, vectors = _dense(_select(X, rows)), _dense(model.support_vectors_)
    if samples.shape != vectors.shape or not (samples == vectors).all():
        raise ValueError(
            f"X is not what this {type(model).__name__} was fitted to: its support vectors are other rows. Pass the X "
            "and sample_weight of its `fit`"
        )


def _expect_rows(fitted_X: Any, X: Any, model: Any) -> None:
    """Raise ValueError if X is not the matrix that the model was fitted to."""
    if np.shape(fitted_X) != np.shape(X) or not (_dense(fitted_X) == _dense(X)).all():
        raise ValueError(f"X is not what this {type(model).__name__} was fitted to: its rows differ")


def _expect_functions(n_functions: int, n_needed: int) -> None:
    """Raise ValueError if a model has fewer functions than its classes need."""
    if n_functions != n_needed:
        raise ValueError(
            f"the model has {n_functions} functions instead of {n_needed}: scikit-learn leaves out classes whose "
            "samples have weight 0, so the model is incomplete. Fit it without these samples"
        )


def _from_support_vectors(mercer_class: type, model: Any, X: Any, y: Any, weight: Any) -> KernelModel:
    """Read scikit-learn's SVC, NuSVC, SVR, NuSVR or OneClassSVM."""
    check_is_fitted(model, "dual_coef_")
    if mercer_class in (SVC, NuSVC):
        expect_classes(model.classes_, y)
        _expect_functions(len(model.intercept_), len(class_pairs(len(model.classes_))))
    training = {name: getattr(model, name) for name in _TRAINING_PARAMETERS[mercer_class]}
    kernel = {name: getattr(model, name) for name in ("kernel", "degree", "coef0")}
    gamma = getattr(model, "_gamma", model.gamma)  # the number behind "scale" and "auto"
    if mercer_class is NuSVC and model.class_weight is not None:
        raise ValueError("certify takes NuSVC without class_weight: LIBSVM's ν-SVC has no class weights")
    if mercer_class is SVC:
        training["class_weight"] = dict(zip(model.classes_.tolist(), model.class_weight_.tolist(), strict=True))
    K = None
    if callable(model.kernel):  # called once with all samples, as scikit-learn does
        _expect_rows(getattr(model, "_BaseLibSVM__Xfit", X), X, model)
        K = np.array(_dense(model.kernel(X, X)), order="C")
        kernel["kernel"] = "precomputed"
    machine = mercer_class(**training, **kernel, gamma=gamma)
    coefficients, rows = _dense(model.dual_coef_), _rows_of_vectors(model, X, weight)
    # In both libraries f is positive for the second of two classes; with more classes, for the first of each pair.
    pairs = class_pairs(len(getattr(model, "classes_", ())))
    if len(pairs) > 1:
        planes = [plane_coefficients(coefficients, model.n_support_, pairs, k) for k in range(len(pairs))]
        coefficients = np.array(planes)
    beta = np.zeros((_length(X), len(coefficients)))
    beta[rows] = coefficients.T
    return KernelModel(machine, beta, np.asarray(model.intercept_, dtype=np.float64), K)


def _rows_of_vectors(model: Any, X: Any, weight: Any) -> Indices:
    """Return the indices of the support vectors in X; raise ValueError if the model was not fitted to X.

    scikit-learn's `support_` may count only the samples of positive weight.
    """
    rows = np.asarray(model.support_, dtype=np.intp)
    rows_with_weight = (
        np.arange(_length(X)) if weight is None else np.flatnonzero(np.asarray(weight, dtype=np.float64) > 0)
    )
    if model.shape_fit_[0] != _length(X):
        raise ValueError(
            f"X is not what this {type(model).__name__} was fitted to: it has {_length(X)} samples, and the model was "
            f"fitted to {model.shape_fit_[0]}"
        )
    if len(rows_with_weight) < _length(X) and rows.max(initial=-1) < len(rows_with_weight):
        rows = rows_with_weight[rows]
    if model.kernel != "precomputed" and not callable(model.kernel) and np.prod(np.shape(model.support_vectors_)):
        expect_vectors(model, X, rows)
    return rows


def _from_linear_svc(model: Any, X: Any, y: Any, weight: Any) -> LinearModel:
    """Read scikit-learn's LinearSVC, with class weights."""
    check_is_fitted(model, "coef_")
    expect_classes(model.classes_, y)
    if model.penalty != "l2" or model.multi_class != "ovr":
        raise ValueError(
            f"LinearSVC with penalty={model.penalty!r} and multi_class={model.multi_class!r} cannot be "
            "certified: certify takes penalty='l2' and multi_class='ovr'"
        )
    if model.class_weight is None or len(model.classes_) == 2:
        return _from_linear(LinearSVC, model, X, {"class_weight": model.class_weight})
    _expect_functions(len(model.coef_), len(model.classes_))
    factors = compute_class_weight(model.class_weight, classes=model.classes_, y=np.asarray(y), sample_weight=weight)
    class_weight = dict(zip(model.classes_.tolist(), factors.tolist(), strict=True))
    return replace(_from_linear(LinearSVC, model, X, {}), class_weight=class_weight)


def _from_linear(mercer_class: type, model: Any, X: Any, options: dict[str, Any]) -> LinearModel:
    """Read scikit-learn's LinearSVC or LinearSVR, whose bias is the weight of a feature of value intercept_scaling."""
    check_is_fitted(model, "coef_")
    bias = {"bias": "regularized", "intercept_scaling": model.intercept_scaling} if model.fit_intercept else {}
    training = {name: getattr(model, name) for name in _TRAINING_PARAMETERS[mercer_class]}
    machine = mercer_class(**training, loss=model.loss, **(bias or {"bias": False}), **options)
    w = np.atleast_2d(np.array(model.coef_, dtype=np.float64, order="C"))
    b = np.broadcast_to(np.asarray(model.intercept_, dtype=np.float64), len(w)).copy()
    if b.any() and not model.fit_intercept:
        raise ValueError(f"fit_intercept=False says that there is no bias, but intercept_ = {b.tolist()}")
    if w.shape[1] != np.shape(X)[1]:
        raise ValueError(f"the model has weights for {w.shape[1]} features, and X has {np.shape(X)[1]}")
    return LinearModel(machine, w, b)


def _from_kernel_ridge(model: Any, X: Any) -> RidgeModel:
    """Read scikit-learn's KernelRidge."""
    check_is_fitted(model, "dual_coef_")
    kernel = {name: getattr(model, name) for name in ("kernel", "degree", "coef0")}
    gamma = model.gamma if model.gamma is not None else 1.0 / np.shape(X)[1]  # as in scikit-learn's pairwise kernels
    if callable(model.kernel):  # a function of two single samples
        kernel["kernel"] = partial(pairwise_kernels, metric=model.kernel, **(model.kernel_params or {}))
    beta = np.asarray(model.dual_coef_, dtype=np.float64).reshape(len(model.dual_coef_), -1)
    _expect_rows(model.X_fit_, X, model)
    lam = np.broadcast_to(np.asarray(model.alpha, dtype=np.float64), beta.shape[1])
    return RidgeModel(RLSRegressor(bias=False, **kernel, gamma=gamma), beta, lam)


# --- files of LIBSVM and LIBLINEAR --------------------------------------------------------------------------------


def _read_file(path: Any, X: Any, y: Any, numbers: dict[str, Any]) -> KernelModel | LinearModel:
    """Read a model file of LIBSVM or LIBLINEAR."""
    from mercer.files.liblinear_model import LiblinearModel
    from mercer.files.libsvm_estimator import reorder_classes
    from mercer.files.libsvm_model import LibsvmModel
    from mercer.files.models import read_model

    model = read_model(path)
    if isinstance(model, LiblinearModel):
        if model.solver_type == "MCSVM_CS":
            raise ValueError(f"{path} is Crammer and Singer's multiclass machine, which certify does not support")
        if model.n_features > np.shape(X)[1]:
            raise ValueError(f"{path} has weights for {model.n_features} features, and X has {np.shape(X)[1]}")
        if model.label is not None:
            expect_classes(model.label, y)
        fitted = model.estimator(np.shape(X)[1])
        machine = _unfitted_machine(fitted, path, numbers)
        w, b = np.atleast_2d(fitted.coef_), np.atleast_1d(fitted.intercept_)
        if hasattr(fitted, "classes_") and len(w) == 1 and fitted.classes_[0] > fitted.classes_[1]:
            w, b = -w, -b  # make f positive for the larger label
        elif len(w) > 1:
            order = np.argsort(fitted.classes_)
            w, b = w[order], b[order]
        return LinearModel(machine, w, b)
    if not isinstance(model, LibsvmModel):
        raise ValueError(f"{path} is not a model of LIBSVM or LIBLINEAR; load it, and pass the model to certify")
    if model.label is not None:
        expect_classes(model.label, y)
        model = reorder_classes(model, sorted(model.label))
    machine = _unfitted_machine(model.estimator(np.shape(X)[1]), path, numbers)
    rows = model.serials - 1 if model.kernel_type == "precomputed" else _match_rows(model.vectors, X, y, model)
    if rows.max(initial=-1) >= _length(X):
        raise ValueError(f"{path} refers to row {rows.max() + 1}, but X has {_length(X)} rows")
    # LIBSVM's f is positive for the first class of a pair; mercer's f of two classes is positive for the second.
    sign = -1.0 if model.label is not None and len(model.label) == 2 else 1.0
    columns = model.coefficients if model.label is None else model.by_pair.toarray()
    beta = np.zeros((_length(X), len(model.rho)))
    beta[rows] = sign * columns
    return KernelModel(machine, beta, -sign * model.rho)


def _unfitted_machine(fitted: Any, path: Any, numbers: dict[str, Any]) -> Any:
    """Return the file's machine, unfitted, with the training parameters that the file does not contain."""
    needed_parameters = _TRAINING_PARAMETERS[type(fitted)]
    missing = [name for name in needed_parameters if numbers[name] is None]
    if missing:
        raise ValueError(
            f"{path} does not say {' and '.join(missing)}, with which it was trained and which certify needs: pass "
            f"{missing[0]}="
        )
    unknown = [name for name, value in numbers.items() if value is not None and name not in needed_parameters]
    if unknown:
        raise ValueError(
            f"{unknown[0]}= is not a parameter of {type(fitted).__name__}, which has {', '.join(needed_parameters)}"
        )
    return clone(fitted).set_params(**{name: numbers[name] for name in needed_parameters})


def _match_rows(vectors: Any, X: Any, y: Any, model: Any) -> Indices:
    """Return the row of X for each support vector of a file: the nearest unmatched sample with its label.

    Among equal samples of a regression, larger coefficients are matched with larger targets.
    """
    samples, support_vectors = _dense(X), _dense(vectors)
    padded_vectors = np.zeros((len(support_vectors), samples.shape[1]))
    if support_vectors.shape[1] > samples.shape[1] and support_vectors[:, samples.shape[1] :].any():
        raise ValueError(
            f"the file's support vectors have {support_vectors.shape[1]} features, and X has {samples.shape[1]}"
        )
    padded_vectors[:, : support_vectors.shape[1]] = support_vectors[:, : samples.shape[1]]
    if y is None and model.kind != "one-class":
        raise ValueError(f"y is None, but the file holds a model of {model.kind}: pass the y that it was trained on")
    labels = None if model.label is None else np.repeat(model.label, model.nr_sv)
    target = np.asarray(y, dtype=np.float64) if model.kind == "regression" else np.zeros(len(samples))
    is_unmatched, rows = np.ones(len(samples), dtype=bool), np.empty(len(padded_vectors), dtype=np.intp)
    for k in np.argsort(-np.abs(model.coefficients[:, 0]), kind="stable").tolist():
        vector, sign = padded_vectors[k], np.sign(model.coefficients[k, 0])
        is_candidate = is_unmatched if labels is None else is_unmatched & (np.asarray(y) == labels[k])
        difference = np.abs(samples - vector)
        matches = np.flatnonzero(is_candidate & (difference <= _FILE_TOLERANCE * np.abs(vector)).all(axis=1))
        if len(matches) == 0:
            raise ValueError(
                f"the file's support vector {k + 1} is none of the samples of X: is X what it was trained on?"
            )
        distance = difference[matches].sum(axis=1)
        matches = matches[distance == distance.min()]
        rows[k] = matches[np.argmax(sign * target[matches])]
        is_unmatched[rows[k]] = False
    return rows


# --- arrays ---------------------------------------------------------------------------------------------------------


def _length(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _dense(values: Any) -> Floats:
    return np.asarray(values.toarray() if is_sparse(values) else values, dtype=np.float64)


def _select(X: Any, rows: Indices) -> Any:
    return sp.csr_array(X)[rows] if is_sparse(X) else np.asarray(X)[rows]
