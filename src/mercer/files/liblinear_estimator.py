"""LIBLINEAR's models as LinearSVC and LinearSVR, and back.

    solver_type                              estimator
    L2R_L2LOSS_SVC, …_DUAL                   LinearSVC(loss="squared_hinge", solver="newton", "dual")
    L2R_L1LOSS_SVC_DUAL                      LinearSVC(loss="hinge", solver="dual")
    MCSVM_CS                                 LinearSVC(multiclass="crammer-singer")
    L2R_L2LOSS_SVR, …_DUAL                   LinearSVR(loss="squared_epsilon_insensitive", solver="newton", "dual")
    L2R_L1LOSS_SVR_DUAL                      LinearSVR(loss="epsilon_insensitive", solver="dual")

Logistic regression, the 1-norm of w and the linear one-class machine have no counterpart here and are refused by name.

With B ≥ 0 the last weight belongs to a feature of value B: b = B·w_last, `bias="regularized"`, `intercept_scaling=B`.
Of two classes LIBLINEAR writes one w, and f > 0 means its first label; here a positive f means the second of
`classes_`, so that these are the file's labels reversed and no sign changes. More classes keep the file's order, which
decides ties.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer import estimators
from mercer.files.liblinear_model import LiblinearModel
from mercer.files.libsvm_estimator import expect_own, integer_classes
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
_WHY_NOT: Final = {
    **dict.fromkeys(("L2R_LR", "L1R_LR", "L2R_LR_DUAL"), "logistic regression, which is no machine of mercer's"),
    "L1R_L2LOSS_SVC": "a machine with the 1-norm of w, which mercer does not train",
    "ONECLASS_SVM": "a linear one-class machine, of which mercer has only the kind with support vectors",
}


def estimator_from_liblinear(model: LiblinearModel, *, n_features: int | None = None) -> Any:
    """A fitted LinearSVC or LinearSVR with the file's weights.

    What the file does not hold cannot be known: C, epsilon and class weights are defaults, there is no `certificate_`,
    and a bias that was trained with -R, free, looks like a regularized one.

    Parameters
    ----------
    model : LiblinearModel
        As `read_liblinear_model` returns it.
    n_features : int, optional
        Columns of the data to come, where they have more than the model; their weights are 0.

    Raises
    ------
    TypeError
        For logistic regression, L1R_L2LOSS_SVC and ONECLASS_SVM, which have no counterpart.
    """
    if model.solver_type in _WHY_NOT:
        raise TypeError(
            f"{model.solver_type} is {_WHY_NOT[model.solver_type]}; such a model can be inspected and can predict, "
            "but not become an estimator"
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
        if len(w) == 2:  # Crammer and Singer's machine of two classes keeps both; only their difference decides
            w, b = w[:1] - w[1:], b[:1] - b[1:]
        two = model.nr_class == 2
        machine.classes_ = freeze(np.array(model.label[::-1] if two else model.label))
        machine.class_weight_ = freeze(np.ones(model.nr_class))
        machine.coef_, machine.intercept_ = freeze(w), freeze(b + 0.0)
    machine.n_features_in_ = d
    return machine


def liblinear_from_estimator(machine: Any) -> LiblinearModel:
    """Make the content of LIBLINEAR's file of a fitted LinearSVC or LinearSVR.

    A free bias is written as LIBLINEAR writes one, as the weight of a feature of value 1; its ``predict`` then adds the
    same b. Two classes of a Crammer-Singer machine, of which an estimator keeps f_1 − f_0, get half of it each.

    Parameters
    ----------
    machine : LinearSVC or LinearSVR
        Fitted.
    """
    check_is_fitted(machine)
    name = type(machine).__name__
    if name not in MACHINES:
        raise TypeError(
            f"LIBLINEAR's files hold w and b of LinearSVC and LinearSVR, not a {name}; save it as .mercer, or, with "
            "one of LIBSVM's kernels, as LIBSVM's model"
        )
    expect_own(machine, "LIBLINEAR")
    w, b = np.atleast_2d(machine.coef_), np.atleast_1d(machine.intercept_)
    label, kinds = None, _REGRESSORS
    joint = getattr(machine, "multiclass", "ovr") != "ovr"
    if name == "LinearSVC":
        labels = integer_classes(machine.classes_, "LIBLINEAR")
        label, kinds = tuple(labels[::-1] if len(labels) == 2 else labels), _CLASSIFIERS
        if joint and len(labels) == 2:
            w, b = np.concatenate([w / 2, -w / 2]), np.concatenate([b / 2, -b / 2])
    solver = "dual" if machine.solver == "dual" or machine.loss in ("hinge", "epsilon_insensitive") else "newton"
    kind = "MCSVM_CS" if joint else _named(kinds, machine.loss, solver)
    B = float(machine.intercept_scaling) if machine.bias in REGULARIZED else 1.0
    if machine.bias is False and not b.any():  # what was set since the fit does not take its b away
        B = -1.0
    rows: list[Floats] = [w.T] if B < 0 else [w.T, (b / B)[None]]
    return LiblinearModel(kind, 2 if label is None else len(label), B, np.concatenate(rows), label)


def _named(kinds: dict[str, dict[str, Any]], loss: str, solver: str) -> str:
    return next(name for name, kind in kinds.items() if kind == {"loss": loss, "solver": solver})
