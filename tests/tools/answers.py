"""What a model answers in public, and comparisons of two models by these answers."""

import numpy as np
from sklearn.base import is_classifier, is_outlier_detector

import mercer
from tools.rows import NEW, POINTS, fitted, machine_in

METHODS = (
    *("predict", "decision_function", "predict_proba", "predict_log_proba", "transform", "score_samples"),
    *("p_values", "predict_set", "predict_interval"),
)
ROWS = np.concatenate([POINTS[:6], NEW])


class NoSuchTool(AttributeError):
    """The estimator has no such method or parameter, and no function of the package is about it."""


def asked(row):
    """The fitted model, with the methods of the machine inside also where scikit-learn's class has none."""
    model = fitted(row)
    return mercer.unwrap(model) if row.has("pipeline") or row.has("foreign search") else model


def answers(model, row, points=ROWS, among=None):
    """Every public answer about some points, by the name of the method."""
    given, found = row.given(points, among), {}
    for name in METHODS:
        if hasattr(model, name):
            try:
                found[name] = np.asarray(getattr(model, name)(given))
            except ValueError as error:
                if "venn-abers" not in str(error):  # its intervals are for that method alone
                    raise
    if not found:  # spectral clustering knows its own samples alone
        found["labels_"] = np.asarray(model.labels_)
    return found


def expect_same_answers(model, other, row, **where):
    """Two models answer alike, to the last bit."""
    one, two = answers(model, row, **where), answers(other, row, **where)
    assert one.keys() == two.keys(), (one.keys(), two.keys())
    for name in one:
        assert one[name].dtype.kind == two[name].dtype.kind, name
        np.testing.assert_array_equal(two[name], one[name], err_msg=name)


def values(model, row, points, among=None):
    """f of the public method, a column for each output: decision values of classes and novelties, else predictions."""
    given = row.given(points, among)
    machine = machine_in(model)
    if is_classifier(machine) or is_outlier_detector(machine):
        decides = model if hasattr(model, "decision_function") else model.estimator_
        found = decides.decision_function(given)
    elif row.has("clusters"):
        labels = model.labels_ if not hasattr(model, "predict") else model.predict(given)
        found = (labels[:, None] == labels).astype(float)  # clusters have no order
    elif row.has("transforms"):
        found = np.abs(model.transform(given))  # nor have components a sign
    else:
        found = model.predict(given)
    return np.asarray(found, dtype=float).reshape(len(points), -1)


def explained(model, row, points):
    """The f that tools speak of: the public one, but of a Gaussian process classifier the mean of the process."""
    if row.estimator == "GaussianProcessClassifier":
        return np.asarray(model.latent_mean_and_variance(row.given(points))[0]).reshape(len(points), -1)
    return values(model, row, points)


def expect_same_function(model, other, row, points=ROWS, *, close=1e-6, among=None):
    """Two trainings of one problem give the same f, up to their precision; `other` was trained on rows `among`."""
    one, two = values(model, row, points), values(other, row, points, among)
    np.testing.assert_allclose(two, one, atol=close * max(1.0, np.abs(one).max()))


def pair_sums(f, k):
    """Of one function for each pair (i, j), i < j, positive for i: the sum over the pairs of each class."""
    pairs = [(i, j) for i in range(k) for j in range(i + 1, k)]
    out = np.zeros((len(f), k))
    for p, (i, j) in enumerate(pairs):
        out[:, i] += f[:, p]
        out[:, j] -= f[:, p]
    return out
