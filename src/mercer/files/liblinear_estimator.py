"""Conversion of LIBLINEAR's models to LinearSVC and LinearSVR and back.

    solver_type                              estimator
    L2R_L2LOSS_SVC, …_DUAL                   LinearSVC(loss="squared_hinge", solver="newton", "dual")
    L2R_L1LOSS_SVC_DUAL                      LinearSVC(loss="hinge", solver="dual")
    MCSVM_CS                                 LinearSVC(multiclass="crammer-singer")
    L2R_L2LOSS_SVR, …_DUAL                   LinearSVR(loss="squared_epsilon_insensitive", solver="newton", "dual")
    L2R_L1LOSS_SVR_DUAL                      LinearSVR(loss="epsilon_insensitive", solver="dual")

Logistic regression, the 1-norm of w and the linear one-class machine have no counterpart here and are refused by name.

With B ≥ 0 the last weight belongs to a feature of value B: b = B·w_last, `bias="regularized"`, `intercept_scaling=B`.
For two classes LIBLINEAR writes one w, and f > 0 means its first label; here a positive f means the second of
`classes_`, which are therefore the file's labels reversed, and no sign changes. More classes keep the file's order,
which decides ties.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer import estimators
from mercer.files.liblinear_model import LiblinearModel
from mercer.files.libsvm_estimator import check_from_mercer, integer_classes
from mercer.runtime.parameters import REGULARIZED
from mercer.samples.arrays import Floats, freeze

MACHINES: Final = ("LinearSVC", "LinearSVR")
_CLASSIFIERS: Final[dict[str, dict[str, Any]]] = {
    "L2R_L2LOSS_SVC_DUAL": {"loss": "squared_hinge", "solver": "dual"},
    "L2R_L2LOSS_SVC": {"loss": "squared_hinge", "solver": "newton"},
    "L2R_L1LOSS_SVC_DUAL": {"loss": "hinge", "solver": "dual"},
    "MCSVM_CS": {"loss": "hinge", "solver": "dual", "multiclass": "crammer-singer"},
}
_REGRESSORS: Final[dict[str, dict[str, Any]]] = {
    "L2R_L2LOSS_SVR": {"loss": "squared_epsilon_insensitive", "solver": "newton"},
    "L2R_L2LOSS_SVR_DUAL": {"loss": "squared_epsilon_insensitive", "solver": "dual"},
    "L2R_L1LOSS_SVR_DUAL": {"loss": "epsilon_insensitive", "solver": "dual"},
}
_UNSUPPORTED: Final = {
    **dict.fromkeys(("L2R_LR", "L1R_LR", "L2R_LR_DUAL"), "logistic regression, which mercer does not have"),
    "L1R_L2LOSS_SVC": "a machine with the 1-norm of w, which mercer does not train",
    "ONECLASS_SVM": "a linear one-class machine; mercer has only the one with support vectors",
}


def estimator_from_liblinear(model: LiblinearModel, *, n_features: int | None = None) -> Any:
    """Return a fitted LinearSVC or LinearSVR with the file's weights.

    Parameters that the file does not store (C, epsilon, class weights) have their default values, there is no
    `certificate_`, and a bias that was trained with -R, unregularised, counts as regularised.

    Parameters
    ----------
    model : LiblinearModel
        Model from `read_liblinear_model`.
    n_features : int, optional
        Number of columns of the data to predict, if the model has fewer; further weights are 0.

    Raises
    ------
    TypeError
        If the model is logistic regression, L1R_L2LOSS_SVC or ONECLASS_SVM, which have no counterpart.
    """
    if model.solver_type in _UNSUPPORTED:
        raise TypeError(
            f"{model.solver_type} is {_UNSUPPORTED[model.solver_type]}; such a model can be inspected and can predict, "
            "but cannot become an estimator"
        )
    d = max(n_features or 0, model.n_features)
    w = np.zeros((model.weights.shape[1], d))
    w[:, : model.n_features] = model.weights[: model.n_features].T
    b = model.bias * model.weights[-1] if model.bias >= 0 else np.zeros(len(w))
    bias: dict[str, Any] = (
        {"bias": "regularized", "intercept_scaling": model.bias} if model.bias > 0 else {"bias": False}
    )
    if model.label is None:
        machine: Any = estimators.LinearSVR(**_REGRESSORS[model.solver_type], **bias)
        machine.coef_, machine.intercept_ = freeze(w[0]), freeze(b[:1] + 0.0)
    else:
        machine = estimators.LinearSVC(**_CLASSIFIERS[model.solver_type], **bias)
        if len(w) == 2:  # Crammer and Singer's machine has a w for both classes; only the difference counts
            w, b = w[:1] - w[1:], b[:1] - b[1:]
        is_binary = model.nr_class == 2
        machine.classes_ = freeze(np.array(model.label[::-1] if is_binary else model.label))
        machine.class_weight_ = freeze(np.ones(model.nr_class))
        machine.coef_, machine.intercept_ = freeze(w), freeze(b + 0.0)
    machine.n_features_in_ = d
    return machine


def liblinear_from_estimator(machine: Any) -> LiblinearModel:
    """Return the content of the LIBLINEAR file for a fitted LinearSVC or LinearSVR.

    A free bias is written as LIBLINEAR does, as the weight of a feature of value 1; its ``predict`` then adds the same
    b. For two classes of a Crammer-Singer machine the estimator stores f_1 − f_0; each class gets half of it.

    Parameters
    ----------
    machine : LinearSVC or LinearSVR
        Fitted machine.
    """
    check_is_fitted(machine)
    name = type(machine).__name__
    if name not in MACHINES:
        raise TypeError(
            f"a LIBLINEAR file stores w and b of LinearSVC and LinearSVR, not a {name}; save it as .mercer, or, if it "
            "has one of LIBSVM's kernels, in LIBSVM's format"
        )
    check_from_mercer(machine, "LIBLINEAR")
    w, b = np.atleast_2d(machine.coef_), np.atleast_1d(machine.intercept_)
    label, kinds = None, _REGRESSORS
    is_joint = getattr(machine, "multiclass", "ovr") != "ovr"
    if name == "LinearSVC":
        labels = integer_classes(machine.classes_, "LIBLINEAR")
        label, kinds = tuple(labels[::-1] if len(labels) == 2 else labels), _CLASSIFIERS
        if is_joint and len(labels) == 2:
            w, b = np.concatenate([w / 2, -w / 2]), np.concatenate([b / 2, -b / 2])
    solver = "dual" if machine.solver == "dual" or machine.loss in ("hinge", "epsilon_insensitive") else "newton"
    kind = "MCSVM_CS" if is_joint else _solver_type(kinds, machine.loss, solver)
    B = float(machine.intercept_scaling) if machine.bias in REGULARIZED else 1.0
    if machine.bias is False and not b.any():  # bias may have been changed after the fit
        B = -1.0
    rows: list[Floats] = [w.T] if B < 0 else [w.T, (b / B)[None]]
    return LiblinearModel(kind, 2 if label is None else len(label), B, np.concatenate(rows), label)


def _solver_type(kinds: dict[str, dict[str, Any]], loss: str, solver: str) -> str:
    """Return LIBLINEAR's name of the machine with this loss and solver."""
    return next(name for name, kind in kinds.items() if kind == {"loss": loss, "solver": solver})
