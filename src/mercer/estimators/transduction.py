"""Transductive support vector classification: the labels of unlabelled samples are found together with the machine.

    minimise  ½‖w‖² + C Σ_labelled ξ_i + C* Σ_unlabelled ξ_i   over w, b and the unlabelled y_i = ±1

with a given fraction of positive labels among the unlabelled samples. The algorithm is that of T. Joachims
("Transductive inference for text classification using support vector machines", 1999) and of SVMlight: C* grows from
almost nothing to its value, and two labels are exchanged wherever that lowers the objective. The search over labels is
discrete and ends in a local minimum; the certificate is that of w and b for the final labels.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from mercer.estimators.svc import SVC
from mercer.runtime.parameters import positive, share
from mercer.samples.arrays import Data, Flags, Floats, freeze, n_samples
from mercer.samples.engine import on_host

# First C* relative to C (Joachims, Alg. 3.1).
_FIRST_RATIO = 1e-5


class Transduction(NamedTuple):
    """Result of `transduce`.

    Attributes
    ----------
    model : SVC
        Machine fitted to all samples.
    labels : array of shape (n_samples,)
        Labels of all samples, given or chosen by the search.
    switches : int
        Number of pairs of labels that were exchanged.
    """

    model: SVC
    labels: Any
    switches: int


def transduce(
    model: SVC,
    X: Data,
    y: ArrayLike,
    *,
    unlabelled: Any = -1,
    positive_share: float | None = None,
    price: float = 1.0,
) -> Transduction:
    """Fit a two-class `SVC` to labelled and unlabelled samples (transductive SVM).

    Parameters
    ----------
    model : SVC
        Machine whose parameters are used; it is not changed.
    X : array, CSR matrix or sequence of samples
        Samples, labelled and unlabelled.
    y : array of shape (n_samples,)
        Class labels; `unlabelled` marks samples without a label.
    unlabelled : label, default=-1
        Value of y that marks unlabelled samples, as in scikit-learn.
    positive_share : float, optional
        Fraction of the unlabelled samples that belong to the second class; by default that of the labelled samples.
    price : float, default=1.0
        Ratio C*/C of the penalties of unlabelled and labelled samples.

    Returns
    -------
    Transduction
        Result with the attributes ``model``, the `SVC` fitted to all samples; ``labels`` of all samples, given or
        chosen by the search; and ``switches``, the number of pairs of labels that were exchanged.

    See Also
    --------
    SVC : Support vector classification of labelled samples.

    Examples
    --------
    >>> from mercer import SVC, transduce
    >>> X = [[0.0], [0.5], [1.0], [4.0], [4.5], [5.0]]
    >>> transduce(SVC(kernel="linear"), X, [0, -1, -1, -1, -1, 1]).labels
    array([0, 0, 0, 1, 1, 1])
    """
    if not isinstance(model, SVC):
        raise TypeError(f"transduce takes an SVC, not {type(model).__name__}")
    positive("price", price)
    # 1. Read the labels.
    labels = np.array(on_host(y))
    labelled: Flags = labels != unlabelled
    classes = np.unique(labels[labelled])
    if labels.ndim != 1 or len(labels) != n_samples(X) or len(classes) != 2 or labelled.all():
        raise ValueError(
            f"transduce needs one label per sample, two classes, and {unlabelled!r} for samples without a label; "
            f"y has shape {labels.shape}, the classes {classes.tolist()} and {int((~labelled).sum())} without a label. "
            "If that is the label of a class, give another `unlabelled`"
        )
    is_second = labels == classes[1]
    fraction = is_second[labelled].mean() if positive_share is None else share("positive_share", positive_share)
    unlabelled_rows = np.flatnonzero(~labelled)
    count = (
        min(max(round(fraction * len(unlabelled_rows)), 1), len(unlabelled_rows) - 1)
        if len(unlabelled_rows) > 1
        else round(fraction)
    )
    # 2. Label the `count` samples with the largest f of a machine without them as positive.
    machine = clone(model).set_params(warm_start=True)
    weight = labelled.astype(float)
    f = _decision(machine.fit(X, np.where(is_second, classes[1], classes[0]), sample_weight=weight), X)
    is_second[unlabelled_rows[np.argsort(-f[unlabelled_rows], kind="stable")[:count]]] = True
    # 3. Raise C* of each class (as weights C*/C) from almost 0 to `price`, and exchange labels until none improves.
    negative_ratio = min(_FIRST_RATIO, price)
    positive_ratio = min(_FIRST_RATIO * max(1, count) / max(1, len(unlabelled_rows) - count), price)
    switches = 0
    while True:
        weight[unlabelled_rows] = np.where(is_second[unlabelled_rows], positive_ratio, negative_ratio)
        visited_labellings = {is_second.tobytes()}
        while True:
            f = _decision(machine.fit(X, np.where(is_second, classes[1], classes[0]), sample_weight=weight), X)
            positives, negatives = _pairs_to_exchange(f, is_second, unlabelled_rows)
            after_exchange = is_second.copy()
            after_exchange[positives], after_exchange[negatives] = False, True
            # There is no pair to exchange, or a cycle, since the machine is accurate to tol only.
            if after_exchange.tobytes() in visited_labellings:
                break
            is_second = after_exchange
            visited_labellings.add(is_second.tobytes())
            weight[positives], weight[negatives] = negative_ratio, positive_ratio
            switches += len(positives)
        if negative_ratio >= price and positive_ratio >= price:
            machine.set_params(warm_start=model.warm_start)
            return Transduction(machine, freeze(np.where(is_second, classes[1], classes[0])), switches)
        negative_ratio, positive_ratio = min(2 * negative_ratio, price), min(2 * positive_ratio, price)


def _decision(machine: SVC, X: Data) -> Floats:
    """Return the decision values f of a machine on the host."""
    return np.asarray(machine.decision_function(X))


def _pairs_to_exchange(f: Floats, is_second: Flags, unlabelled_rows: Any) -> tuple[Any, Any]:
    """Return the indices of positive and of negative samples whose labels to exchange, pair by pair.

    Both slacks of a pair are positive and add up to more than 2: exchanging the labels lowers the sum of both.
    """
    slack = np.maximum(0.0, 1.0 - np.where(is_second, f, -f))[unlabelled_rows]
    is_positive = is_second[unlabelled_rows] & (slack > 0)
    is_negative = ~is_second[unlabelled_rows] & (slack > 0)
    positives = unlabelled_rows[is_positive][np.argsort(-slack[is_positive], kind="stable")]
    negatives = unlabelled_rows[is_negative][np.argsort(-slack[is_negative], kind="stable")]
    m = min(len(positives), len(negatives))
    positives, negatives = positives[:m], negatives[:m]
    sums = np.maximum(0.0, 1.0 - f[positives]) + np.maximum(0.0, 1.0 + f[negatives])
    # Slacks are accurate to the machine's tol: a pair whose sum is within tol of 2 would be exchanged back and forth.
    is_improvement = sums > 2.0 + 1e-2
    return positives[is_improvement], negatives[is_improvement]
