"""The ε-path: the gap between fits is what is said, and few fits are enough."""

import numpy as np
import pytest
from sklearn.datasets import make_classification

from mercer import SVC, svm_path

X, Y = make_classification(150, 6, n_informative=4, flip_y=0.1, random_state=0)


@pytest.mark.parametrize("bias", [True, False, "regularized"])
def test_every_machine_between_has_the_gap_that_is_proven(bias):
    path = svm_path(X, Y, C_min=0.05, C_max=20, epsilon=1e-3, gamma=0.2, bias=bias)
    assert not path.exact_
    assert path.stop_reason_ == "converged"
    assert (path.gap_ <= 1e-3).all()
    sign = np.where(Y == 1, 1.0, -1.0)
    K = np.exp(-0.2 * ((X[:, None] - X[None]) ** 2).sum(axis=2)) + (bias == "regularized")
    for C in np.geomspace(0.051, 19.9, 25):
        alpha, f = path.alpha(C), path.decision_function(X, [C])[:, 0]
        beta = sign * alpha
        assert (alpha >= 0).all()
        assert (alpha <= C * (1 + 1e-12)).all()
        energy = beta @ K @ beta
        primal = 0.5 * energy + C * np.maximum(0.0, 1 - sign * f).sum()
        dual = alpha.sum() - 0.5 * energy
        assert primal - dual <= 1.001e-3 * dual
        assert dual <= SVC(C=C, gamma=0.2, bias=bias, tol=1e-7).fit(X, Y).certificate_.primal


def test_the_number_of_fits_grows_with_the_root():
    sizes = [len(svm_path(X, Y, C_min=0.05, C_max=20, epsilon=e, gamma=0.2).C_) for e in (1e-2, 1e-4)]
    assert sizes[1] <= 15 * sizes[0]
    assert sizes[1] < 400


def test_at_is_a_fit_of_its_own():
    path = svm_path(X, Y, epsilon=0.1, gamma=0.2)
    assert path.C_range_ == (0.01, 100.0)
    model = path.at(1.3)
    assert model.certificate_.violation <= 1e-8
    assert "0.1" in repr(path)


def test_epsilon_must_be_positive():
    with pytest.raises(ValueError, match="epsilon"):
        svm_path(X, Y, epsilon=0.0)


@pytest.mark.timeout(60)
def test_fits_that_were_cut_short_end_the_path():
    """No number of fits has a small gap where each may take one step only."""
    path = svm_path(X[:40], Y[:40], C_min=0.05, C_max=20, epsilon=1e-3, gamma=0.2, max_iter=1)
    assert path.stop_reason_ == "max_iter"
    assert len(path.C_) <= 3
    assert path.gap_.max() > 1e-3
