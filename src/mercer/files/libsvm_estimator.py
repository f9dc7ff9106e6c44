"""Conversion of LIBSVM's models to mercer's estimators and back.

LIBSVM's decision function is Σ coef k − rho, so b = −rho. It orders the classes by their first appearance in the
training file, and a positive decision value is a vote for the first class of a pair. For two classes scikit-learn's
convention is the opposite, so `classes_` is then the file's labels reversed. For more classes `classes_` keeps the
file's order, which decides ties. Nothing is negated or rounded: a file that is read, converted to an estimator and
written again is the same file.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from mercer import estimators
from mercer.estimators.fitting.pipeline.state import has_function_per_class
from mercer.files.libsvm_model import CLASSIFIERS, KERNELS, LibsvmModel
from mercer.files.model import Estimator
from mercer.kernels import Kernel
from mercer.samples.arrays import freeze
from mercer.samples.coefficient_table import CoefficientTable
from mercer.samples.labels import to_dual_coef

# LIBSVM's name of a machine: mercer's estimator.
MACHINES: Final = {
    "c_svc": "SVC",
    "nu_svc": "NuSVC",
    "one_class": "OneClassSVM",
    "epsilon_svr": "SVR",
    "nu_svr": "NuSVR",
}
# Kernel recipe (inner function, outer function): LIBSVM's name of the kernel.
_KERNEL_TYPES: Final = {
    ("dot", "identity"): "linear",
    ("dot", "polynomial"): "polynomial",
    ("sqdist", "gaussian"): "rbf",
    ("dot", "sigmoid"): "sigmoid",
}


# --- from LIBSVM -----------------------------------------------------------------------------------------------------


def estimator_from_libsvm(model: LibsvmModel, *, n_features: int | None = None) -> Any:
    """Return a fitted estimator that predicts as LIBSVM does.

    Parameters that the file does not store, such as C, have their default values; `support_` numbers the support
    vectors, and there is no `certificate_`.

    Parameters
    ----------
    model : LibsvmModel
        Model from `read_libsvm_model`.
    n_features : int, optional
        Number of columns of the data to predict, if the support vectors use fewer; for a precomputed kernel, the number
        of training rows. Without it, rows of a precomputed kernel need as many columns as the largest serial number in
        the file, or more, as in LIBSVM, and the machine has no `n_features_in_`.
    """
    if model.nr_class < 2:
        raise ValueError("this model has a single class, and so nothing that an estimator could decide")
    name, keys = KERNELS[model.kernel_type]
    parameters = {key: int(model.numbers[key]) if key == "degree" else model.numbers[key] for key in keys}
    machine = getattr(estimators, MACHINES[model.svm_type])(kernel=name, **parameters)
    machine.kernel_ = model.kernel
    _set_vectors(machine, model, n_features)
    for attribute, values in (("probA_", model.prob_a), ("probB_", model.prob_b)):
        if values is not None:
            setattr(machine, attribute, freeze(values))
    if model.density_marks is not None:
        machine.prob_density_marks_ = freeze(model.density_marks)
    return machine


def _set_vectors(machine: Estimator, model: LibsvmModel, n_features: int | None) -> None:
    """Set the support vectors in scikit-learn's order: class by class, in the order of `classes_`."""
    n, is_binary = len(model.coefficients), model.nr_class == 2
    order = np.arange(n, dtype=np.int32)  # rows of the file in mercer's order
    if is_binary and model.nr_sv is not None:
        order = np.concatenate([order[model.nr_sv[0] :], order[: model.nr_sv[0]]])
    expansion = model.function(n_features)
    is_precomputed = model.kernel_type == "precomputed"
    machine._expansion_ = expansion
    width = expansion.n_columns if is_precomputed else expansion.vectors.shape[1]
    if not is_precomputed or n_features is not None:  # the file does not store the number of rows of K
        machine.n_features_in_ = width
    machine.intercept_ = freeze(-model.rho)
    machine.support_ = freeze((model.serials[order] - 1).astype(np.int32) if is_precomputed else order)
    machine.support_vectors_ = freeze(np.empty((0, 0)) if is_precomputed else expansion.vectors[order])
    machine.dual_coef_ = freeze(np.ascontiguousarray(model.coefficients[order].T))
    machine.shape_fit_ = (width if is_precomputed else n, width)
    machine.fit_status_ = 0
    if model.label is not None and model.nr_sv is not None:
        machine.classes_ = freeze(np.array(model.label[::-1] if is_binary else model.label))
        machine.n_support_ = freeze(np.array(model.nr_sv[::-1] if is_binary else model.nr_sv, dtype=np.int32))
        machine.class_weight_ = freeze(np.ones(model.nr_class))
        machine._per_class_ = False
    else:
        machine.n_support_ = freeze(np.array([n], dtype=np.int32))
        if model.svm_type == "one_class":
            machine.offset_ = float(model.rho[0])


# --- to LIBSVM -------------------------------------------------------------------------------------------------------


def libsvm_from_estimator(machine: Any, *, label_order: Any = None) -> LibsvmModel:
    """Return the content of the LIBSVM file for a fitted estimator.

    Parameters
    ----------
    machine : estimator
        Fitted estimator with one of LIBSVM's five kernels and, for classification, integer classes.
    label_order : sequence of labels, optional
        Order of the classes in the file; LIBSVM's is that of first appearance. By default two classes are written in
        reverse order of `classes_`, so that decision values keep their sign, and more classes in that order.
    """
    svm_type = _svm_type(machine)
    if getattr(machine, "break_ties", False) and len(machine.classes_) > 2:
        raise TypeError(
            f"this {type(machine).__name__} has break_ties=True, but LIBSVM resolves a tie of votes in favour of the "
            "first class; set break_ties=False, or save it as .mercer, ONNX or C"
        )
    return _to_model(machine, svm_type, label_order, *libsvm_kernel(machine.kernel_))


def libsvm_layout(machine: Estimator, *, label_order: Any = None) -> LibsvmModel:
    """Return the content of the LIBSVM file for a fitted estimator with any kernel, as if the kernel were precomputed.

    In place of support vectors it has the serial numbers of training rows.
    """
    return _to_model(machine, _svm_type(machine), label_order, "precomputed", {})


def _svm_type(machine: Estimator) -> str:
    """Return LIBSVM's name of a fitted machine; raise TypeError with a remedy for any other machine."""
    check_is_fitted(machine)
    name = type(machine).__name__
    svm_type = next((svm_type for svm_type, class_name in MACHINES.items() if class_name == name), None)
    if svm_type is not None:
        check_from_mercer(machine, "LIBSVM")
        return svm_type
    from mercer.tables.unwrap import unwrap  # imported here because training on LIBSVM text needs no tables

    machine_inside = unwrap(machine).machine
    if machine_inside is not machine:
        raise TypeError(
            f"a LIBSVM file stores only a machine, not the {name} around a {type(machine_inside).__name__}; save the "
            "machine, mercer.unwrap(model).machine, and transform rows with mercer.unwrap(model).rows(X) before you "
            "predict them"
        )
    linear = "use LIBLINEAR's format" if name in ("LinearSVC", "LinearSVR") else "save it as .mercer"
    raise TypeError(f"LIBSVM has no model for {name}, only for {', '.join(MACHINES.values())}; {linear}")


def check_from_mercer(machine: Estimator, program: str) -> None:
    """Raise TypeError for another library's machine with the same name as one of mercer."""
    name, module = type(machine).__name__, type(machine).__module__
    if not module.startswith("mercer."):
        raise TypeError(
            f"a {program} file is written from a {name} of mercer, but this one comes from {module.partition('.')[0]}; "
            f"train a mercer.{name}, or use pickle for this one"
        )


def _to_model(
    machine: Estimator, svm_type: str, label_order: Any, kernel_type: str, numbers: dict[str, float]
) -> LibsvmModel:
    """Return the content of the LIBSVM file, with the classes in `label_order` if given."""
    name = type(machine).__name__
    if hasattr(machine, "_compression_"):
        raise TypeError(
            "a LIBSVM file lists training samples by class, but a compressed machine has none; save it as .mercer, "
            "ONNX or C, or convert the original machine"
        )
    vectors = _vectors(machine, kernel_type)
    coefficients = np.asarray(machine.dual_coef_, dtype=np.float64).T
    rho = -np.asarray(machine.intercept_, dtype=np.float64)
    model_without_labels = LibsvmModel(svm_type, kernel_type, numbers, rho, coefficients, vectors)
    marks = getattr(machine, "prob_density_marks_", None)
    prob_a, prob_b = getattr(machine, "probA_", None), getattr(machine, "probB_", None)
    if svm_type not in CLASSIFIERS:
        if len(rho) > 1:
            raise ValueError(f"a LIBSVM file stores one output, but this {name} has {len(rho)}; fit a machine for each")
        return replace(model_without_labels, prob_a=prob_a, density_marks=marks)
    labels = integer_classes(machine.classes_, "LIBSVM")
    if len(labels) > 2 and has_function_per_class(machine):
        raise TypeError(
            f"a LIBSVM file stores a machine for each pair of classes, but this {name} has a function for each of its "
            f"{len(labels)} classes; fit it with multiclass='ovo', or save it as .mercer, ONNX or C"
        )
    counts = [int(n) for n in machine.n_support_]
    if len(labels) == 2:
        # LIBSVM's order: the second class first, with its support vectors.
        rows = np.concatenate([np.arange(counts[0], sum(counts)), np.arange(counts[0])])
        model = replace(
            model_without_labels,
            label=(labels[1], labels[0]),
            nr_sv=(counts[1], counts[0]),
            coefficients=coefficients[rows],
            vectors=vectors[rows],
            prob_a=prob_a,
            prob_b=prob_b,
        )
    else:
        model = replace(model_without_labels, label=tuple(labels), nr_sv=tuple(counts), prob_a=prob_a, prob_b=prob_b)
    return model if label_order is None else reorder_classes(model, [int(label) for label in label_order])


def reorder_classes(model: LibsvmModel, order: list[int]) -> LibsvmModel:
    """Return a classifier with its classes in another order; pairs that change direction change sign."""
    if model.label is None or model.nr_sv is None or sorted(order) != sorted(model.label):
        raise ValueError(f"{order} is not an order of the labels {model.label}")
    old_indices = [model.label.index(label) for label in order]
    if old_indices == list(range(len(old_indices))):
        return model
    ends = np.cumsum(model.nr_sv)
    rows = np.concatenate([np.arange(ends[c] - model.nr_sv[c], ends[c]) for c in old_indices])
    class_of_row = np.repeat(np.arange(len(old_indices)), [model.nr_sv[c] for c in old_indices])
    is_reversed = np.array([old_indices[i] > old_indices[j] for i, j in model.pairs])
    source = [
        model.pairs.index((min(old_indices[i], old_indices[j]), max(old_indices[i], old_indices[j])))
        for i, j in model.pairs
    ]
    sign = np.where(is_reversed, -1.0, 1.0)
    table = CoefficientTable.of_array(sign * model.by_pair.toarray()[rows][:, source])
    return replace(
        model,
        label=tuple(order),
        nr_sv=tuple(model.nr_sv[c] for c in old_indices),
        rho=sign * model.rho[source],
        coefficients=to_dual_coef(table, class_of_row, model.pairs, len(old_indices)).T,
        vectors=model.vectors[rows],
        # 1/(1 + exp(Af + B)) is the first class's probability; that of the other is 1/(1 + exp(A(−f) − B)).
        prob_a=None if model.prob_a is None else model.prob_a[source],
        prob_b=None if model.prob_b is None else sign * model.prob_b[source],
    )


def libsvm_kernel(kernel: Kernel) -> tuple[str, dict[str, float]]:
    """Return LIBSVM's name and parameters of a kernel; raise TypeError if LIBSVM does not have it."""
    if kernel.accepts == "gram":
        return "precomputed", {}
    recipe = kernel.recipe()
    kind = None if recipe is None else _KERNEL_TYPES.get((recipe.inner, recipe.ending))
    is_altered = recipe is not None and (
        recipe.scale != 1 or recipe.factor is not None or recipe.normalise or recipe.constant != 0
    )
    if recipe is None or kind is None or is_altered:
        raise TypeError(
            f"a LIBSVM file cannot store the kernel {kernel}, only {', '.join(KERNELS)}; save as .mercer instead"
        )
    if kind == "polynomial":
        gamma, coef0, degree = recipe.numbers
        return kind, {"degree": int(degree), "gamma": gamma, "coef0": coef0}
    return kind, dict(zip(KERNELS[kind][1], recipe.numbers, strict=True))


def _vectors(machine: Estimator, kernel_type: str) -> sp.csr_array:
    """Return the support vectors as CSR rows; for a precomputed kernel, their serial numbers from 1."""
    if kernel_type == "precomputed":
        serials = np.asarray(machine.support_, dtype=np.float64) + 1
        n = len(serials)
        return sp.csr_array((serials, np.zeros(n, dtype=np.int32), np.arange(n + 1, dtype=np.int32)), shape=(n, 1))
    rows = sp.csr_array(machine.support_vectors_.astype(np.float64))
    rows.sort_indices()
    return rows


def integer_classes(classes: Any, program: str) -> list[int]:
    """Return the classes as integers, as LIBSVM's and LIBLINEAR's files need them; raise TypeError for others."""
    are_integers = classes.dtype.kind in "biuf" and (np.asarray(classes, dtype=np.float64) % 1 == 0).all()
    if not are_integers or np.abs(np.asarray(classes, dtype=np.float64)).max() >= 2**31:
        raise TypeError(f"{program}'s labels are 32-bit integers, not {classes.tolist()}; save as .mercer instead")
    return [int(label) for label in classes]
