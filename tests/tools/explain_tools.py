"""Explanations, against sums over all subsets, finite differences and means that are taken one row at a time."""

import numpy as np

from reference.shapley import by_all_subsets
from tools.answers import asked, explained, pair_sums
from tools.rows import NEW, POINTS, D, fitted, machine_in

BACKGROUND = POINTS[10:15]


def close_to(found, truth, share=1e-8):
    truth = np.asarray(truth, dtype=float)
    np.testing.assert_allclose(np.reshape(found, truth.shape), truth, atol=share * max(1.0, np.abs(truth).max()))


def explain(row):
    found = asked(row).explain(row.given(NEW[:2]), row.given(BACKGROUND))
    assert row.estimator != "GaussianProcessClassifier" or "latent mean" in found.output_names[0]
    for i, x in enumerate(NEW[:2]):
        phi, base = by_all_subsets(lambda points: explained(fitted(row), row, points), x, BACKGROUND)
        close_to(found.values[i], phi)
        close_to(np.atleast_2d(found.base_values.T).T[i], base)


def of_class(row):
    """A class's values add up to its confidence: its own function, or the sum of its pairs'."""
    found = asked(row).explain(row.given(NEW), row.given(BACKGROUND))
    if not row.classifies:
        found.of_class("yes")
    labels = machine_in(fitted(row)).classes_
    f = explained(fitted(row), row, NEW)
    if len(labels) == 2:
        f = np.column_stack([-f[:, 0], f[:, 0]])
    elif row.has("pairs"):
        f = pair_sums(f, len(labels))
    for k, label in enumerate(labels):
        one = found.of_class(label)
        close_to(one.base_values + one.values.sum(axis=1), f[:, k])


def gradient_importance(row):
    found = asked(row).gradient_importance(row.given(NEW))
    slopes = []
    for j in range(D):
        step = 1e-5 * np.eye(D)[j]
        rise = explained(fitted(row), row, NEW + step) - explained(fitted(row), row, NEW - step)
        slopes.append(np.abs(rise / 2e-5).mean(axis=0))
    close_to(found, np.array(slopes), 1e-6)


def partial_dependence(row):
    grid = np.array([-0.5, 0.2, 1.1])
    found = asked(row).partial_dependence(row.given(POINTS), [1], grid=grid)
    truth = []
    for value in grid:
        points = POINTS.copy()
        points[:, 1] = value
        truth.append(explained(fitted(row), row, points).mean(axis=0))
    close_to(found.average, np.array(truth))


def reasons(row):
    """All contributions together are f less b, for the predicted class: differences of rows of one class show it."""
    points = np.concatenate([POINTS, NEW])
    found = asked(row).reasons(row.given(points), n=10**6)
    sums = np.array([one.contributions.sum() for one in found])
    f = explained(fitted(row), row, points)
    if not row.classifies:
        close_to(sums - sums[0], f[:, 0] - f[0, 0])
        return
    model = fitted(row)
    labels = machine_in(model).classes_.tolist()
    decided = (model if not row.has("calibrated") else model.estimator_).predict(row.given(points))
    assert [one.prediction for one in found] == decided.tolist()
    if len(labels) == 2:
        f = np.column_stack([-f[:, 0], f[:, 0]])
    elif row.has("pairs"):
        f = pair_sums(f, len(labels))
    for k, label in enumerate(labels):
        mine = np.flatnonzero(decided == label)
        close_to(sums[mine] - sums[mine[:1]], f[mine, k] - f[mine[:1], k])
    vectors = getattr(machine_in(model), "support_", None)
    if vectors is not None and not row.has("calibrated"):
        told = np.concatenate([one.indices for one in found if one.indices is not None])
        assert set(told) <= set(vectors)
