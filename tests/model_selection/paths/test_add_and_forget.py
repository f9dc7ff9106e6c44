"""partial_fit and forget are exact after every call."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from mercer import SVC, SVR
from reference.path_problems import random_problem

SEEDS = [s for s in range(40) if random_problem(s)[3]["kernel"] != "precomputed" and len(random_problem(s)[1]) > 12]


@pytest.mark.parametrize("seed", SEEDS[:14])
def test_adding_and_forgetting_gives_the_model_back(seed):
    X, y, _, options, rng = random_problem(seed)
    n, k, C = len(y), len(y) // 3, 10 ** rng.uniform(-1, 2)
    y[:2] = [1, -1]
    model = SVC(C=C, **options).partial_fit(X[: n - k], y[: n - k])
    before = model.decision_function(X)
    assert model.certificate_.violation < 1e-9
    model.partial_fit(X[n - k :], y[n - k :])
    assert model.certificate_.violation < 1e-9
    whole = SVC(C=C, tol=1e-10, **options).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), whole.decision_function(X), atol=1e-7)
    model.forget(np.arange(n - k, n))
    assert model.certificate_.violation < 1e-9
    np.testing.assert_allclose(model.decision_function(X), before, atol=1e-9)


def test_several_classes_and_targets():
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(150)
    X, y = X[order], y[order]
    for machine, target in ((SVC(C=3.0, gamma=0.5), y), (SVR(C=3.0, gamma=0.5), X[:, 0] + y)):
        model = machine.partial_fit(X[:120], target[:120])
        before = model.predict(X) if isinstance(machine, SVR) else model.decision_function(X)
        assert model.certificate_.violation < 1e-9
        model.partial_fit(X[120:], target[120:]).forget(range(120, 150))
        after = model.predict(X) if isinstance(machine, SVR) else model.decision_function(X)
        np.testing.assert_allclose(after, before, atol=1e-9)


def test_a_matrix_forgets_rows_and_columns():
    X, y, _, _, _ = random_problem(3)
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
    model = SVC(kernel="precomputed", warm_start=True).fit(K, y)
    model.forget([1, 2])
    kept = np.delete(np.arange(len(y)), [1, 2])
    fresh = SVC(kernel="precomputed", tol=1e-10).fit(K[np.ix_(kept, kept)], y[kept])
    np.testing.assert_allclose(model.decision_function(K[:, kept]), fresh.decision_function(K[:, kept]), atol=1e-8)
    assert not hasattr(model, "partial_fit")


def test_what_cannot_be_forgotten():
    X, y = np.arange(6.0)[:, None], np.array([0, 0, 0, 1, 1, 1])
    with pytest.raises(ValueError, match="none were kept"):
        SVC().fit(X, y).forget([0])
    model = SVC().partial_fit(X, y)
    before = model.decision_function(X)
    with pytest.raises(IndexError, match="no sample 6"):
        model.forget([6])
    with pytest.raises(TypeError, match="integers"):
        model.forget([0.5])
    with pytest.raises(ValueError, match="all samples"):
        model.forget(range(6))
    with pytest.raises(ValueError, match="2 classes"):
        model.forget([0, 1, 2])
    np.testing.assert_array_equal(model.decision_function(X), before)
    with pytest.raises(IndexError, match=r"no sample -1 to forget: 6 are known, counted from 0; the last is 5"):
        model.forget([-1])
    with pytest.raises(ValueError, match="sample 2 occurs 3 times in indices"):
        model.forget([2, 1, 2, 0, 0, 2])
    assert model.shape_fit_ == (6, 1)
    assert model.forget([5]).shape_fit_ == (5, 1)
