"""Fitted models of other libraries as machines of mercer's: the problem that they solve, and what they found.

| library | models | what they hold |
|---|---|---|
| scikit-learn, scikit-learn-intelex | SVC, NuSVC, SVR, NuSVR, OneClassSVM | β of the support vectors and b |
| | LinearSVC, LinearSVR | w and b |
| | KernelRidge | β of all samples |
| LIBSVM's and LIBLINEAR's files | the same machines | the same, without C, ε, ν and the places of support vectors |
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
from mercer.samples.labels import every_pair, plane_coefficients

# What each machine's problem needs beside its kernel; a file of LIBSVM's or LIBLINEAR's does not hold these.
_NUMBERS: Final[dict[type, tuple[str, ...]]] = {
    SVC: ("C",),
    NuSVC: ("nu",),
    SVR: ("C", "epsilon"),
    NuSVR: ("C", "nu"),
    OneClassSVM: ("nu",),
    LinearSVC: ("C",),
    LinearSVR: ("C", "epsilon"),
}
# The support vectors of a file are found among the samples to this share of a feature's size: files of LIBSVM's older
# versions have eight digits.
_DIGITS_OF_FILES: Final = 1e-7


@dataclass(frozen=True)
class KernelModel:
    """A machine that is not fitted, with signed β of the samples and b: a column and an entry for each problem.

    Where the model's kernel is a function, `K` holds its values on all samples, and the machine's is precomputed.
    """

    machine: Any
    beta: Floats
    b: Floats
    K: Floats | None = None


@dataclass(frozen=True)
class LinearModel:
    """A linear machine that is not fitted, with a row of w and an entry of b for each problem.

    LIBLINEAR's weights of three and more classes are in `class_weight`: each counts in the problem of its own class
    against the rest, and the rest has none there.
    """

    machine: Any
    w: Floats
    b: Floats
    class_weight: dict[Any, float] | None = None


@dataclass(frozen=True)
class RidgeModel:
    """Regularised least squares without bias: a machine, a column of β and an entry of λ for each output."""

    machine: RLSRegressor
    beta: Floats
    lam: Floats


def read_fitted(
    model: Any, X: Any, y: Any, weight: Any, numbers: dict[str, Any]
) -> KernelModel | LinearModel | RidgeModel | None:
    """Read a fitted model of another library, or a file's path; None for a model that is not known.

    `numbers` holds C, epsilon and nu of a file's training, None where the caller said nothing.
    """
    if isinstance(model, str | os.PathLike):
        return _read_file(model, X, y, numbers)
    given = [name for name, value in numbers.items() if value is not None]
    if given:
        raise ValueError(f"{type(model).__name__} holds its own {given[0]}; leave {given[0]}= out")
    for ours, theirs in (
        (SVC, svm.SVC),
        (NuSVC, svm.NuSVC),
        (SVR, svm.SVR),
        (NuSVR, svm.NuSVR),
        (OneClassSVM, svm.OneClassSVM),
    ):
        if isinstance(model, theirs):
            return _from_support_vectors(ours, model, X, y, weight)
    if isinstance(model, svm.LinearSVC):
        return _from_linear_svc(model, X, y, weight)
    if isinstance(model, svm.LinearSVR):
        return _from_linear(LinearSVR, model, X, {})
    return _from_kernel_ridge(model, X) if isinstance(model, kernel_ridge.KernelRidge) else None


def expect_classes(classes: Any, y: Any) -> None:
    """Raise ValueError where y does not have the classes of a fitted model."""
    labels = np.unique(np.asarray(y)) if y is not None else np.sort(classes)
    if not np.array_equal(labels, np.sort(classes)):
        raise ValueError(f"the model was fitted to the classes {np.asarray(classes).tolist()}, y has {labels.tolist()}")


def expect_vectors(model: Any, X: Any, rows: Indices) -> None:
    """Raise ValueError where these samples are not a fitted model's support vectors."""
    given, vectors = _dense(_select(X, rows)), _dense(model.support_vectors_)
    if given.shape != vectors.shape or not (given == vectors).all():
        raise ValueError(
            f"X is not what this {type(model).__name__} was fitted to: its support vectors are other rows. Give X, and "
            "sample_weight, as `fit` had them"
        )


def _expect_rows(fitted_to: Any, X: Any, model: Any) -> None:
    if np.shape(fitted_to) != np.shape(X) or not (_dense(fitted_to) == _dense(X)).all():
        raise ValueError(f"X is not what this {type(model).__name__} was fitted to: that has other rows")


def _expect_functions(found: int, wanted: int) -> None:
    if found != wanted:
        raise ValueError(
            f"the model has {found} functions in the place of {wanted}: scikit-learn leaves out classes whose samples "
            "have weight 0, and its model is not complete. Fit it without their samples"
        )


def _from_support_vectors(ours: type, model: Any, X: Any, y: Any, weight: Any) -> KernelModel:
    """Read scikit-learn's SVC, NuSVC, SVR, NuSVR or OneClassSVM."""
    check_is_fitted(model, "dual_coef_")
    if ours in (SVC, NuSVC):
        expect_classes(model.classes_, y)
        _expect_functions(len(model.intercept_), len(every_pair(len(model.classes_))))
    numbers = {name: getattr(model, name) for name in _NUMBERS[ours]}
    kernel = {name: getattr(model, name) for name in ("kernel", "degree", "coef0")}
    gamma = getattr(model, "_gamma", model.gamma)  # the number that "scale" and "auto" became
    if ours is NuSVC and model.class_weight is not None:
        raise ValueError("certify takes NuSVC without class_weight: LIBSVM's ν-machine has no weights of classes")
    if ours is SVC:
        numbers["class_weight"] = dict(zip(model.classes_.tolist(), model.class_weight_.tolist(), strict=True))
    K = None
    if callable(model.kernel):  # called once with all samples, as scikit-learn does it
        _expect_rows(getattr(model, "_BaseLibSVM__Xfit", X), X, model)
        K = np.array(_dense(model.kernel(X, X)), order="C")
        kernel["kernel"] = "precomputed"
    machine = ours(**numbers, **kernel, gamma=gamma)
    coefficients, rows = _dense(model.dual_coef_), _rows_of_vectors(model, X, weight)
    # f is positive for the second of two classes, and for the first of each pair of several: here as there.
    pairs = every_pair(len(getattr(model, "classes_", ())))
    if len(pairs) > 1:
        planes = [plane_coefficients(coefficients, model.n_support_, pairs, k) for k in range(len(pairs))]
        coefficients = np.array(planes)
    beta = np.zeros((_length(X), len(coefficients)))
    beta[rows] = coefficients.T
    return KernelModel(machine, beta, np.asarray(model.intercept_, dtype=np.float64), K)


def _rows_of_vectors(model: Any, X: Any, weight: Any) -> Indices:
    """The samples that are the support vectors; ValueError where X is not what the model was fitted to.

    scikit-learn counts only samples that have weight.
    """
    rows = np.asarray(model.support_, dtype=np.intp)
    kept = np.arange(_length(X)) if weight is None else np.flatnonzero(np.asarray(weight, dtype=np.float64) > 0)
    if model.shape_fit_[0] != _length(X):
        raise ValueError(
            f"X is not what this {type(model).__name__} was fitted to: it has {_length(X)} samples, and the model was "
            f"fitted to {model.shape_fit_[0]}"
        )
    if len(kept) < _length(X) and rows.max(initial=-1) < len(kept):
        rows = kept[rows]
    if model.kernel != "precomputed" and not callable(model.kernel) and np.prod(np.shape(model.support_vectors_)):
        expect_vectors(model, X, rows)
    return rows


def _from_linear_svc(model: Any, X: Any, y: Any, weight: Any) -> LinearModel:
    check_is_fitted(model, "coef_")
    expect_classes(model.classes_, y)
    if model.penalty != "l2" or model.multi_class != "ovr":
        raise ValueError(
            f"LinearSVC with penalty={model.penalty!r} and multi_class={model.multi_class!r} is a problem that "
            "certify does not know: it takes penalty='l2' and multi_class='ovr'"
        )
    if model.class_weight is None or len(model.classes_) == 2:
        return _from_linear(LinearSVC, model, X, {"class_weight": model.class_weight})
    _expect_functions(len(model.coef_), len(model.classes_))
    factors = compute_class_weight(model.class_weight, classes=model.classes_, y=np.asarray(y), sample_weight=weight)
    own = dict(zip(model.classes_.tolist(), factors.tolist(), strict=True))
    return replace(_from_linear(LinearSVC, model, X, {}), class_weight=own)


def _from_linear(ours: type, model: Any, X: Any, more: dict[str, Any]) -> LinearModel:
    """Read scikit-learn's LinearSVC or LinearSVR, whose bias is the weight of a feature of value intercept_scaling."""
    check_is_fitted(model, "coef_")
    bias = {"bias": "regularized", "intercept_scaling": model.intercept_scaling} if model.fit_intercept else {}
    numbers = {name: getattr(model, name) for name in _NUMBERS[ours]}
    machine = ours(**numbers, loss=model.loss, **(bias or {"bias": False}), **more)
    w = np.atleast_2d(np.array(model.coef_, dtype=np.float64, order="C"))
    b = np.broadcast_to(np.asarray(model.intercept_, dtype=np.float64), len(w)).copy()
    if b.any() and not model.fit_intercept:
        raise ValueError(f"fit_intercept=False says that there is no bias, but intercept_ is {b.tolist()}")
    if w.shape[1] != np.shape(X)[1]:
        raise ValueError(f"the model has weights of {w.shape[1]} features, and X has {np.shape(X)[1]}")
    return LinearModel(machine, w, b)


def _from_kernel_ridge(model: Any, X: Any) -> RidgeModel:
    check_is_fitted(model, "dual_coef_")
    kernel = {name: getattr(model, name) for name in ("kernel", "degree", "coef0")}
    gamma = model.gamma if model.gamma is not None else 1.0 / np.shape(X)[1]  # scikit-learn's pairwise kernels
    if callable(model.kernel):  # a function of two single samples
        kernel["kernel"] = partial(pairwise_kernels, metric=model.kernel, **(model.kernel_params or {}))
    beta = np.asarray(model.dual_coef_, dtype=np.float64).reshape(len(model.dual_coef_), -1)
    _expect_rows(model.X_fit_, X, model)
    lam = np.broadcast_to(np.asarray(model.alpha, dtype=np.float64), beta.shape[1])
    return RidgeModel(RLSRegressor(bias=False, **kernel, gamma=gamma), beta, lam)


# --- files of LIBSVM and LIBLINEAR --------------------------------------------------------------------------------


def _read_file(path: Any, X: Any, y: Any, numbers: dict[str, Any]) -> KernelModel | LinearModel:
    from mercer.files.liblinear_model import LiblinearModel
    from mercer.files.libsvm_estimator import relabelled
    from mercer.files.libsvm_model import LibsvmModel
    from mercer.files.models import read_model

    model = read_model(path)
    if isinstance(model, LiblinearModel):
        if model.solver_type == "MCSVM_CS":
            raise ValueError(f"{path} is Crammer and Singer's joint machine, a problem that certify does not know")
        if model.n_features > np.shape(X)[1]:
            raise ValueError(f"{path} has weights of {model.n_features} features, and X has {np.shape(X)[1]}")
        if model.label is not None:
            expect_classes(model.label, y)
        fitted = model.estimator(np.shape(X)[1])
        machine = _with_numbers(fitted, path, numbers)
        w, b = np.atleast_2d(fitted.coef_), np.atleast_1d(fitted.intercept_)
        if hasattr(fitted, "classes_") and len(w) == 1 and fitted.classes_[0] > fitted.classes_[1]:
            w, b = -w, -b  # positive for the larger label
        elif len(w) > 1:
            order = np.argsort(fitted.classes_)
            w, b = w[order], b[order]
        return LinearModel(machine, w, b)
    if not isinstance(model, LibsvmModel):
        raise ValueError(f"{path} is not a model of LIBSVM or LIBLINEAR; load it, and give certify the model")
    if model.label is not None:
        expect_classes(model.label, y)
        model = relabelled(model, sorted(model.label))
    machine = _with_numbers(model.estimator(np.shape(X)[1]), path, numbers)
    rows = model.serials - 1 if model.kernel_type == "precomputed" else _found_rows(model.vectors, X, y, model)
    if rows.max(initial=-1) >= _length(X):
        raise ValueError(f"{path} has the support vector {rows.max() + 1}, and X has {_length(X)} rows")
    # LIBSVM's f is positive for the first of a pair; here that of two classes is positive for the second.
    sign = -1.0 if model.label is not None and len(model.label) == 2 else 1.0
    columns = model.coefficients if model.label is None else model.by_pair.toarray()
    beta = np.zeros((_length(X), len(model.rho)))
    beta[rows] = sign * columns
    return KernelModel(machine, beta, -sign * model.rho)


def _with_numbers(fitted: Any, path: Any, numbers: dict[str, Any]) -> Any:
    """A machine as a file says, not fitted, with the numbers of its training that the file does not hold."""
    needed = _NUMBERS[type(fitted)]
    missing = [name for name in needed if numbers[name] is None]
    if missing:
        raise ValueError(
            f"{path} does not say {' and '.join(missing)} of its training, which certify needs: give {missing[0]}="
        )
    more = [name for name, value in numbers.items() if value is not None and name not in needed]
    if more:
        raise ValueError(f"{more[0]}= is no number of {type(fitted).__name__}, whose problem has {', '.join(needed)}")
    return clone(fitted).set_params(**{name: numbers[name] for name in needed})


def _found_rows(vectors: Any, X: Any, y: Any, model: Any) -> Indices:
    """The sample that each of a file's support vectors is: the nearest one with its label that no other has taken.

    Of equal samples of a regression machine those with the largest targets have the largest coefficients.
    """
    samples, wanted = _dense(X), _dense(vectors)
    wide = np.zeros((len(wanted), samples.shape[1]))
    if wanted.shape[1] > samples.shape[1] and wanted[:, samples.shape[1] :].any():
        raise ValueError(f"the file's support vectors have {wanted.shape[1]} features, and X has {samples.shape[1]}")
    wide[:, : wanted.shape[1]] = wanted[:, : samples.shape[1]]
    if y is None and model.kind != "one-class":
        raise ValueError(f"y is None, but the file's machine is one of {model.kind}: give the y that it was trained on")
    labels = None if model.label is None else np.repeat(model.label, model.nr_sv)
    target = np.asarray(y, dtype=np.float64) if model.kind == "regression" else np.zeros(len(samples))
    free, rows = np.ones(len(samples), dtype=bool), np.empty(len(wide), dtype=np.intp)
    for k in np.argsort(-np.abs(model.coefficients[:, 0]), kind="stable").tolist():
        vector, sign = wide[k], np.sign(model.coefficients[k, 0])
        able = free if labels is None else free & (np.asarray(y) == labels[k])
        apart = np.abs(samples - vector)
        places = np.flatnonzero(able & (apart <= _DIGITS_OF_FILES * np.abs(vector)).all(axis=1))
        if len(places) == 0:
            raise ValueError(
                f"the file's support vector {k + 1} is none of the samples of X: is X what it was trained on?"
            )
        distance = apart[places].sum(axis=1)
        places = places[distance == distance.min()]
        rows[k] = places[np.argmax(sign * target[places])]
        free[rows[k]] = False
    return rows


# --- arrays ---------------------------------------------------------------------------------------------------------


def _length(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _dense(values: Any) -> Floats:
    return np.asarray(values.toarray() if is_sparse(values) else values, dtype=np.float64)


def _select(X: Any, rows: Indices) -> Any:
    return sp.csr_array(X)[rows] if is_sparse(X) else np.asarray(X)[rows]
