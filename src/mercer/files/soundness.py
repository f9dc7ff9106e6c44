"""Whether a state read from a file could have come from a fit: every count and shape prediction relies on.

Checksums tell damage from health, not an honest writer from a dishonest one; these checks are for the second.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier

from mercer.errors import ModelFormatError
from mercer.expansion import Expansion
from mercer.kernels import Kernel

_EXPANSION: Final = tuple(f"expansion.{part}" for part in ("vectors", "coefficients", "b", "columns", "n_columns"))
# Whether f of a regression that may have several outputs is told as a vector or as a matrix.
_SHAPES: Final = {"RLSRegressor": "_one_output_", "RLSRegressorCV": "_one_output_", "NystromRLS": "_flat_"}


def check_machine(model: Any) -> None:
    """Raise ModelFormatError if the parts of a fitted machine contradict each other."""
    kernel = getattr(model, "kernel_", None)
    without = kernel is None and not hasattr(model, "kernel")  # a linear machine
    _expect(without or isinstance(kernel, Kernel), f"its kernel_ is {kernel!r:.60}")
    if is_classifier(model):
        classes = getattr(model, "classes_", None)
        whole = isinstance(classes, np.ndarray) and classes.ndim == 1 and len(classes) > 1
        _expect(whole, "there must be two classes")
    shape = _SHAPES.get(type(model).__name__)
    _expect(shape is None or isinstance(getattr(model, shape, None), bool), f"{shape} must be true or false")
    if hasattr(model, "_theta_"):
        _check_iterates(model)
        return
    if without:
        _check_weights(model)
        return
    expansion: Expansion = model._expansion_
    _check_expansion(expansion, getattr(model, "n_features_in_", None))
    n_outputs = len(expansion.b)
    for name, count in (("probA_", n_outputs), ("probB_", n_outputs), ("prob_density_marks_", 10)):
        _expect(not hasattr(model, name) or _has_shape(getattr(model, name), count), f"{name} must be {count} numbers")
    _expect(hasattr(model, "probA_") or not hasattr(model, "probB_"), "there is no probB_ without probA_")
    if hasattr(model, "solver_"):
        _check_least_squares(model, expansion)
    elif hasattr(model, "classes_"):
        _check_classes(model, n_outputs)
    else:
        _check_outputs(model, n_outputs)


def check_names(found: type, names: Iterable[Any]) -> None:
    """Raise ModelFormatError if a file would set anything but what a fit learns: names that end in ``_``."""
    for name in names:
        learnt = isinstance(name, str) and name.isidentifier() and name.endswith("_") and not name.startswith("__")
        if name not in _EXPANSION and not (learnt and not hasattr(found, name)):
            raise ModelFormatError(f"{name!r:.60} is not an attribute that a fitted {found.__name__} has")


def _check_least_squares(model: Any, expansion: Expansion) -> None:
    n_outputs = len(expansion.b)
    if hasattr(model, "classes_"):
        k = len(model.classes_)
        _expect(n_outputs == (1 if k == 2 else k), f"{k} classes do not go with {n_outputs} outputs")
    sums = getattr(model, "_sums_", None)
    if sums is not None:
        d = model.n_features_in_
        _expect(_is_numbers(sums.xx, 2) and sums.xx.shape == (d, d), f"the sums of products must be {d} × {d}")
        _expect(_is_numbers(sums.xy, 2) and sums.xy.shape == (d, n_outputs), f"they must be {d} × {n_outputs}")
        _expect(_is_numbers(sums.x, 1) and len(sums.x) == d, f"there must be {d} means")
        for values in (sums.y, sums.yy):
            _expect(
                _is_numbers(values, 1) and len(values) == n_outputs, f"there must be {n_outputs} of each output's sums"
            )


def _check_expansion(expansion: Expansion, n_features: Any) -> None:
    b, coefficients, vectors, columns = (
        getattr(expansion, name) for name in ("b", "coefficients", "vectors", "columns")
    )
    _expect(_is_numbers(b, 1) and len(b) > 0, "b must be a list of finite numbers")
    _expect(_is_numbers(coefficients, 2), "the coefficients must be a matrix of finite numbers")
    n_vectors, n_outputs = coefficients.shape
    _expect(n_outputs == len(b), f"there are {n_outputs} columns of coefficients, but {len(b)} values of b")
    accepts = expansion.kernel.accepts
    if accepts == "gram":
        _expect(vectors is None, "a precomputed kernel has no support vectors")
        _expect(_is_indices(columns, expansion.n_columns), "columns must be indices of training samples")
        _expect(len(columns) == n_vectors, f"there are {len(columns)} columns for {n_vectors} coefficients")
        return
    _expect(columns is None, "only a precomputed kernel has columns")
    if accepts == "sequences":
        _expect(all(isinstance(text, str) for text in vectors), "the support vectors must be strings")
        _expect(len(vectors) == n_vectors, f"there are {len(vectors)} vectors for {n_vectors} coefficients")
    else:
        _expect(_is_numbers(vectors, 2), "the support vectors must be a matrix of finite numbers")
        _expect(
            vectors.shape == (n_vectors, n_features),
            f"the support vectors must be {n_vectors} × {n_features}",
        )


def _check_weights(model: Any) -> None:
    """A linear machine: w of each output, which a regressor has as a vector, and b."""
    k, d = len(model.classes_) if hasattr(model, "classes_") else 1, model.n_features_in_
    outputs = 1 if k == 2 else k
    shape = (outputs, d) if hasattr(model, "classes_") else (d,)
    for name, wanted in (("coef_", shape), ("intercept_", (outputs,))):
        value = getattr(model, name)
        whole = _has_shape(value, *wanted) and value.dtype == np.float64
        _expect(whole, f"{name} must be {' × '.join(map(str, wanted))} finite numbers")


def _check_classes(model: Any, n_outputs: int) -> None:
    k = len(model.classes_)
    if not hasattr(model, "support_"):  # one class against all others
        _expect(n_outputs == (1 if k == 2 else k), f"{k} classes do not make {n_outputs} outputs")
        return
    rest = k > 2 and bool(getattr(model, "_function_per_class", False))
    wanted = k if rest else k * (k - 1) // 2
    _expect(n_outputs == wanted, f"{k} classes make {wanted} machines, not {n_outputs}")
    n = _check_support(model, k)
    _expect(model.dual_coef_.shape == (k if rest else k - 1, n), f"dual_coef_ must be {k if rest else k - 1} × {n}")
    _expect(_is_numbers(model.class_weight_, 1) and len(model.class_weight_) == k, f"{k} class weights are needed")
    for name in ("nu_", "equivalent_C_"):
        value = getattr(model, name, model.intercept_)
        _expect(_is_numbers(value, 1) and len(value) == n_outputs, f"{name} must hold one number per machine")


def _check_outputs(model: Any, n_outputs: int) -> None:
    if not hasattr(model, "support_"):
        return
    n = _check_support(model, 1)
    _expect(model.dual_coef_.shape == (n_outputs, n), f"dual_coef_ must be {n_outputs} × {n}")
    quantiles = getattr(model, "quantiles_", model.intercept_)
    _expect(_is_numbers(quantiles, 1) and len(quantiles) == n_outputs, "there must be as many quantiles as outputs")
    if not hasattr(model, "quantiles_"):
        _expect(n_outputs == 1, f"this machine has one output, not {n_outputs}")
    for name in ("offset_", "radius_", "epsilon_"):
        value = getattr(model, name, 0.0)
        _expect(isinstance(value, float) and np.isfinite(value), f"{name} must be a finite number")
    diagonal = getattr(model, "diagonal_", None)
    _expect(diagonal is None or isinstance(diagonal, float), "diagonal_ must be a number")


def _check_support(model: Any, groups: int) -> int:
    """How many support vectors there are; the counts that speak of them must agree."""
    _expect(_is_indices(model.support_, model.shape_fit_[0]), "support_ must be indices of training samples")
    n = len(model.support_)
    _expect(_is_indices(model.n_support_, n + 1), "n_support_ must count support vectors")
    _expect(model.n_support_.shape == (groups,), f"n_support_ must have one count for each of {groups} classes")
    _expect(int(model.n_support_.sum()) == n, f"n_support_ must add up to the {n} entries of support_")
    _expect(_is_numbers(model.dual_coef_, 2), "dual_coef_ must be a matrix of finite numbers")
    return n


def _check_iterates(model: Any) -> None:
    """A machine that can go on training: its iterates belong to its classes, and to its features or vectors."""
    classes = model.classes_
    machines = 1 if len(classes) == 2 else len(classes)
    _expect(
        _is_numbers(model.class_weight_, 1) and len(model.class_weight_) == len(classes),
        f"{len(classes)} class weights are needed",
    )
    if hasattr(model, "_expansion_"):
        _check_expansion(model._expansion_, getattr(model, "n_features_in_", None))
        _expect(len(model._expansion_.b) == machines, f"{len(classes)} classes make {machines} outputs")
        size = model._expansion_.coefficients.shape[0]
        _expect(_has_shape(model.dual_coef_, machines, size), f"dual_coef_ must be {machines} × {size}")
    else:
        d = model.n_features_in_
        _expect(_has_shape(model.coef_, machines, d), f"coef_ must be {machines} × {d}")
        size = d + int(model.bias == "regularized")
    _expect(_has_shape(model.intercept_, machines), f"intercept_ must have {machines} numbers")
    for name, shape in (("_theta_", ()), ("_total_", ()), ("_marks_", (2,))):
        whole = _has_shape(getattr(model, name), *shape, machines, size)
        _expect(whole, f"{name} must be {machines} × {size} finite numbers")
    _expect(_has_shape(model._norm2_, machines), f"_norm2_ must have {machines} numbers")
    for name in ("t_", "n_iter_", "_seed_"):
        value = getattr(model, name)
        _expect(type(value) is int and 0 <= value < 2**63, f"{name} must be a count")


def _has_shape(value: Any, *shape: int) -> bool:
    return _is_numbers(value, len(shape)) and bool(value.shape == shape)


def _is_numbers(value: Any, ndim: int) -> bool:
    is_sparse = bool(sp.issparse(value))
    data = value.data if is_sparse else value
    whole = isinstance(data, np.ndarray) and data.dtype.kind == "f"
    return whole and value.ndim == ndim and bool(np.isfinite(data).all())


def _is_indices(value: Any, end: Any) -> bool:
    if not (isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind == "i" and isinstance(end, int)):
        return False
    return bool(((value >= 0) & (value < end)).all())


def _expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ModelFormatError(f"this is no fitted machine: {otherwise}")
