"""Class labels and codes, ±1 targets, planes between classes, votes, and scikit-learn's layout of `dual_coef_`.

The code of a class is its index in `classes_`. Two classes have one plane, with the second class on its positive side.
More classes have one plane for each class against the rest, or one for each pair in the order 0 1, 0 2, …, 1 2, …, with
the first class of the pair on the positive side (as in scikit-learn and LIBSVM).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from mercer import _core
from mercer.samples.arrays import Floats, Indices, rounded_sum, rounded_sums_by, sums_by
from mercer.samples.checks import check_finite_targets, refuse_masked, single_column
from mercer.samples.coefficient_table import CoefficientTable

REST = -1  # second entry of a pair that stands for all other classes
Pair = tuple[int, int]


# --- labels as users give them ---------------------------------------------------------------------------------------


def read_labels(y: Any) -> tuple[np.ndarray, Indices]:
    """Return the classes in sorted order, and the index of each sample's class."""
    if y is None:
        raise ValueError("This classifier requires y to be passed, but the target y is None.")
    advice = "sklearn.multioutput.MultiOutputClassifier trains one of these machines for each output"
    y = single_column(_to_plain_array(y), advice)
    classes_and_codes = _small_integers(y)
    if classes_and_codes is not None:
        return classes_and_codes
    if y.dtype == object:
        _check_objects(y.tolist())
    if y.dtype.kind == "f":
        check_finite_targets(y)
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"a classifier needs samples of at least 2 classes, but y has only 1 class: {classes.tolist()}"
        )
    return classes, codes


def read_signs(y: Any) -> Floats:
    """Convert two labels to −1 and +1, the larger one positive as in `SVC`; −1 and +1 stay, even if only one occurs."""
    if y is None:
        raise ValueError("y is None, but labels of two classes are needed")
    values = single_column(_to_plain_array(y), "give one label for each sample")
    if values.dtype.kind in "iuf" and len(values) and (np.abs(values) == 1).all():
        return values.astype(np.float64)
    if values.dtype.kind != "O" and len(values) and (values == values[0]).all():
        raise ValueError(
            f"y has only 1 label, {values[:1].tolist()[0]!r}, so that its sign is unknown; give labels of both "
            "classes, or −1 and +1"
        )
    labels, codes = read_labels(values)
    if len(labels) != 2:
        raise ValueError(f"y must have labels of two classes, but it has {len(labels)}: {labels[:5].tolist()}")
    return np.where(codes == 1, 1.0, -1.0)


def trained_codes(classes: np.ndarray, y: Any) -> Indices:
    """Return the index of each label among the classes that a machine was trained on (those of positive weight)."""
    hint = " that were trained on; a class whose samples all had weight 0 is not among them: drop its samples"
    return codes_among(classes, y, hint)


def codes_among(classes: np.ndarray, y: Any, hint: str = "") -> Indices:
    """Return the index of each label among the classes, in any order; `hint` ends the error for an unknown label."""
    y = column_or_1d(_to_plain_array(y), warn=True)
    if y.dtype == object:
        _check_objects(y.tolist())
    check_classification_targets(y)
    if y.dtype.kind != classes.dtype.kind and (y.dtype.kind in "UO") != (classes.dtype.kind in "UO"):
        raise ValueError(f"y holds labels of dtype {y.dtype}, but the classes are {classes.tolist()}")
    order = np.argsort(classes, kind="stable")
    codes = order[np.minimum(np.searchsorted(classes, y, sorter=order), len(classes) - 1)]
    unknown = np.flatnonzero(classes[codes] != y)
    if len(unknown):
        (label,) = y[unknown[:1]].tolist()
        raise ValueError(f"y[{unknown[0]}]={label!r} is not one of the classes {classes.tolist()}{hint}")
    return np.asarray(codes, dtype=np.intp)


def known_classes(classes: Any, known: np.ndarray | None) -> np.ndarray:
    """Return all classes of samples that come in chunks, sorted: `classes`, or those `known` from the first call.

    A chunk need not contain every class, so that the classes must be given with the first chunk.
    """
    if classes is None:
        if known is None:
            raise ValueError(
                "classes must be passed on the first call to partial_fit: a single chunk may lack some of them"
            )
        return known
    all_classes = np.unique(column_or_1d(np.asarray(classes)))
    if len(all_classes) < 2:
        raise ValueError(f"a classifier needs at least 2 classes, but classes={all_classes.tolist()}")
    if known is not None and not np.array_equal(all_classes, known):
        raise ValueError(
            f"`classes={all_classes.tolist()}` is not the same as on last call to partial_fit: they differ from those "
            f"of the first call, {known.tolist()}"
        )
    return all_classes


def class_weights(class_weight: Any, classes: np.ndarray, codes: Indices, weight: Floats) -> Floats:
    """Return one positive factor per class; "balanced" gives every class the same total weight."""
    mass = sums_by(codes, weight, len(classes))
    if class_weight is None:
        factor = np.ones(len(classes))
    elif isinstance(class_weight, str) and class_weight == "balanced":
        with np.errstate(divide="ignore"):
            mass = rounded_sums_by(codes, weight, len(classes))
            factor = rounded_sum(mass) / (len(classes) * mass)
    elif isinstance(class_weight, dict):
        index_of_label = {label: k for k, label in enumerate(classes.tolist())}
        factor = np.ones(len(classes))
        for label, value in class_weight.items():
            if not (isinstance(value, Real) and 0.0 <= float(value) < np.inf):
                raise ValueError(f"class_weight[{label!r}]={value!r} must be a number, finite and not negative")
            if label in index_of_label:  # a part of the data, such as a fold, need not hold every class
                factor[index_of_label[label]] = value
    else:
        raise ValueError(f"class_weight={class_weight!r} must be a dict from label to weight, 'balanced' or None")
    for k, label in enumerate(classes.tolist()):
        if not mass[k] * (factor[k] if mass[k] else 0.0) > 0:
            raise ValueError(
                f"class {label!r} has no sample with positive weight (all of them are zero), and a classifier needs "
                "every class; give it weight or drop its samples"
            )
    return factor


def _to_plain_array(y: Any) -> Any:
    """Convert labels of pandas' nullable types and NumPy's strings to arrays that scikit-learn accepts."""
    refuse_masked(y, "y")
    dtype: Any = getattr(y, "dtype", None)
    if hasattr(dtype, "numpy_dtype") and hasattr(y, "isna") and not y.isna().any():  # integers stay integers
        return y.to_numpy(dtype=dtype.numpy_dtype)
    if getattr(dtype, "kind", "") == "T":
        return y.astype(object)
    if isinstance(y, (list, tuple)):
        labels = np.asarray(y)
        if labels.dtype.kind in "US":  # among strings NumPy turns every entry into a string: 1 into '1', NaN into 'nan'
            _check_objects(np.array(y, dtype=object).ravel().tolist())
        return labels
    return y


def check_label_objects(y: Any) -> None:
    """Raise ValueError if y is an array of objects in which a label is missing, or that mixes types of labels."""
    labels = np.asarray(y)
    if y is not None and labels.dtype == object:
        _check_objects(labels.ravel().tolist())


def _check_objects(labels: list[Any]) -> None:
    """Raise an error that names the first label that is missing, or of another type than the first label."""
    missing = next((i for i, label in enumerate(labels) if label is None or _is_nan(label)), None)
    if missing is not None:
        raise ValueError(
            f"Input y contains NaN or None: y[{missing}]={labels[missing]!r}; drop such samples, or give them a label"
        )
    kinds = {str if isinstance(label, str) else type(label) for label in labels}
    if kinds <= {str}:
        return
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    if str not in kinds:
        raise ValueError(f"Unknown label type: y is an array of objects ({names}); give it a dtype, say y.astype(int)")
    other = next(i for i, label in enumerate(labels) if isinstance(label, str) != isinstance(labels[0], str))
    raise ValueError(
        f"y mixes label types ({names}), which have no common order: y[0]={labels[0]!r}, y[{other}]={labels[other]!r}; "
        "use one type for all labels"
    )


def _is_nan(label: Any) -> bool:
    """Return whether a label is NaN, or pandas' NA or NaT, none of which equals itself."""
    return not isinstance(label, str) and (label == label) is not True


def _small_integers(y: np.ndarray) -> tuple[np.ndarray, Indices] | None:
    """Return classes and codes by counting if y holds integers of a small range, else None.

    Sorting the labels would take as long as a linear fit.
    """
    if y.dtype.kind not in "iu" or y.dtype == np.uint64:
        return None
    classes, codes = _core.class_codes(np.require(y, np.int64, ["C", "A"]), min(1000, len(y) // 2))
    return (classes.astype(y.dtype, copy=False), codes) if len(classes) > 1 else None


# --- one class against all others ------------------------------------------------------------------------------------


def signs(codes: Indices, n_classes: int) -> Floats:
    """Return ±1 targets, one column per output: the second class against the first, or each class against the rest.

    Least squares, landmarks and kernel machines use the columns as they are. Machines that need one contiguous row per
    output (LinearSVC, PegasosSVC) use ``np.ascontiguousarray(signs(codes, n_classes).T)``.
    """
    positive = np.array([1]) if n_classes == 2 else np.arange(n_classes)
    return np.where(codes[:, None] == positive, 1.0, -1.0)


def winner(values: Floats) -> Indices:
    """Return the class with the largest score, the first one in a tie; for two classes, the second class if f ≥ 0.

    A single score per sample (an array with one dimension or one column) means two classes.
    """
    if values.ndim == 1 or values.shape[1] == 1:
        return (values.reshape(-1) >= 0).astype(np.intp)
    return np.asarray(np.argmax(values, axis=1))


# --- planes between classes ------------------------------------------------------------------------------------------


def class_pairs(n_classes: int) -> list[Pair]:
    """Return all pairs of classes, in the order of the outputs, of `dual_coef_` and of LIBSVM's files."""
    return list(combinations(range(n_classes), 2))


def planes(n_classes: int, against_rest: bool) -> list[Pair]:
    """Return for each plane the class on its positive side, and the class on its negative side or REST."""
    if n_classes == 2:
        return [(1, 0)]
    return [(k, REST) for k in range(n_classes)] if against_rest else class_pairs(n_classes)


def n_planes(n_classes: int, against_rest: bool) -> int:
    """Return the number of binary problems for `n_classes` classes, one against the rest or one against one."""
    if n_classes == 2:
        return 1
    return n_classes if against_rest else n_classes * (n_classes - 1) // 2


def pair_members(pair: Pair, codes: Indices) -> tuple[Indices, Floats]:
    """Return the samples that a plane separates, and +1 for samples of its first class, −1 for the others."""
    first, second = pair
    rows = np.flatnonzero((codes == first) | (codes == second) | (second == REST))
    return rows, np.where(codes[rows] == first, 1.0, -1.0)


def side_labels(pair: Pair, labels: Any) -> tuple[Any, Any]:
    """Return the labels on the positive and the negative side of a plane."""
    first, second = pair
    return labels[first], "the rest" if second == REST else labels[second]


@dataclass(frozen=True, eq=False)
class Classes:
    """Classes of a classification problem, the pairs of classes that are trained, and the factors on C."""

    labels: np.ndarray
    pairs: list[Pair]
    factor: Floats  # factor on C, one per class

    def sides(self, pair: Pair, codes: Indices) -> tuple[Indices, Floats]:
        """Return the samples of a pair, and +1 for those of its first class, −1 for the others."""
        return pair_members(pair, codes)

    def sorted_samples(self, codes: Indices) -> tuple[Indices, Indices]:
        """Return the samples sorted by class, and where each class begins among them; the last entry is their end."""
        starts = np.zeros(len(self.labels) + 1, dtype=np.intp)
        np.add.accumulate(np.bincount(codes, minlength=len(self.labels)), out=starts[1:])
        return codes.argsort(kind="stable"), starts

    def name(self, pair: Pair) -> str:
        """Return the name of a plane, such as "1 against the rest"."""
        first, second = side_labels(pair, self.labels)
        return f"{first} against {second}"


def wins(values: Floats, n_classes: int) -> Floats:
    """Return the number of pairs that each class wins, from the decision values of all pairs."""
    n_wins = np.empty((len(values), n_classes))
    _core.count_wins(np.ascontiguousarray(values, dtype=np.float64), n_wins)
    return n_wins


def votes(values: Floats, n_classes: int) -> tuple[Floats, Floats]:
    """Return the number of pairs that each class wins, and the sum of its decision values over its pairs."""
    columns = np.ascontiguousarray(values.T)
    confidence = np.zeros((n_classes, len(values)))
    begin = 0
    for first in range(n_classes - 1):
        value = columns[begin : begin + n_classes - 1 - first]
        confidence[first] += value.sum(axis=0)
        confidence[first + 1 :] -= value
        begin += len(value)
    return wins(values, n_classes), confidence.T


def scores(values: Floats, n_classes: int) -> Floats:
    """Return the votes of each class plus its confidence, scaled to less than half a vote, so that it breaks ties."""
    n_wins, confidence = votes(values, n_classes)
    return np.asarray(n_wins + confidence / (3 * (np.abs(confidence) + 1)))


# --- scikit-learn's and LIBSVM's layout of coefficients --------------------------------------------------------------
# Support vectors are sorted by class. For k classes one against one, a vector of class c has k − 1 coefficients: row r
# of `dual_coef_` has the coefficient against the r-th of the other classes. For two classes, and for one against the
# rest, there is a row per plane.


def to_dual_coef(table: CoefficientTable, codes: Indices, pairs: list[Pair], n_classes: int) -> Floats:
    """Return `dual_coef_` for coefficients with a row for each support vector and a column for each plane."""
    if len(pairs) == 1 or pairs[0][1] == REST:
        return np.asarray(table.toarray().T, order="C")
    out = np.zeros((n_classes - 1, table.shape[0]))
    first, second = np.array(pairs).T
    vector, pair = table.rows, table.indices
    row = np.where(codes[vector] == first[pair], second[pair] - 1, first[pair])
    out[row, vector] = table.data
    return out


def plane_coefficients(dual_coef: Floats, n_support: Any, pairs: list[Pair], k: int) -> Floats:
    """Return the coefficients of all support vectors in plane k, from `dual_coef_` and `n_support_`."""
    first, second = pairs[k]
    if len(pairs) == 1 or second == REST:
        return np.asarray(dual_coef[k])
    codes = np.repeat(np.arange(len(n_support)), n_support)
    beta = np.zeros(len(codes))
    beta[codes == first] = dual_coef[second - 1, codes == first]
    beta[codes == second] = dual_coef[first, codes == second]
    return beta
