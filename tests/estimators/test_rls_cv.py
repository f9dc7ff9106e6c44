"""The λ of least squares by exact leave-one-out: against scikit-learn, refits, and a grid of kernels."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import RidgeCV

from mercer import RLSClassifier, RLSClassifierCV, RLSRegressorCV
from mercer.kernels import Gaussian, Linear

rng = np.random.default_rng(5)


def test_it_is_scikit_learns_ridge_cv():
    X, y = load_diabetes(return_X_y=True)
    lams = np.geomspace(1e-4, 10, 12)
    theirs = RidgeCV(lams, store_cv_results=True).fit(X, y)
    mine = RLSRegressorCV(lams, kernel="linear").fit(X, y)
    assert mine.lam_ == theirs.alpha_
    np.testing.assert_allclose(mine.path_.loo_errors[:, 0], theirs.cv_results_.mean(axis=0), rtol=1e-8)
    np.testing.assert_allclose(mine.coef_, theirs.coef_, rtol=1e-7)
    assert mine.certificate_.relative_gap < 1e-12


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_choice_is_the_best_of_the_refits(n_classes):
    X, y = load_iris(return_X_y=True)
    X, y = X[y > 2 - n_classes][::3], y[y > 2 - n_classes][::3]
    lams = [1e-3, 0.1, 10.0]
    mistakes = []
    for lam in lams:
        wrong = 0
        for i in range(len(y)):
            rest = np.arange(len(y)) != i
            model = RLSClassifier(lam, gamma=0.5).fit(X[rest], y[rest])
            wrong += model.predict(X[[i]])[0] != y[i]
        mistakes.append(wrong / len(y))
    chosen = RLSClassifierCV(lams, gamma=0.5).fit(X, y)
    np.testing.assert_allclose(chosen.path_.scores, mistakes, atol=0.5 / len(y))
    assert chosen.path_.scores.argmin() == chosen.path_.best
    assert mistakes[chosen.path_.best] == min(mistakes)
    direct = RLSClassifier(chosen.lam_, gamma=0.5).fit(X, y)
    np.testing.assert_allclose(chosen.decision_function(X), direct.decision_function(X), atol=1e-8)


def test_a_grid_of_kernels_that_read_samples_differently():
    X = rng.normal(size=(30, 30))
    X = X @ X.T
    with pytest.raises(ValueError, match="different kinds of samples; search them separately"):
        RLSRegressorCV(3, grid={"kernel": ["rbf", "precomputed"]}).fit(X, X[:, 0])
    mixed = RLSRegressorCV(3, grid={"kernel": [Gaussian(gamma=0.1), lambda A, B: A @ B.T]}).fit(X, X[:, 0])
    assert len(mixed.paths_) == 2


def test_a_grid_of_kernels():
    X = rng.uniform(-3, 3, size=(80, 1))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=80)
    grid = {"gamma": [1e-4, 0.5, 500.0]}
    model = RLSRegressorCV(15, grid=grid).fit(X, y)
    assert model.best_params_ == {"gamma": 0.5}
    assert model.kernel_.gamma == 0.5
    assert len(model.paths_) == 3
    single = RLSRegressorCV(15, gamma=0.5).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), single.predict(X))
    assert model.path_.scores.min() == min(path.scores.min() for path in model.paths_)
    by_kernel = RLSRegressorCV(15, grid={"kernel": [Linear(), Gaussian(0.5)]}).fit(X, y)
    assert isinstance(by_kernel.kernel_, Gaussian)
    gcv = RLSRegressorCV(15, gamma=0.5, criterion="gcv").fit(X, y)
    assert gcv.path_.gcv[gcv.path_.best, 0] == gcv.path_.gcv.min()


def test_of_equal_scores_the_largest_lam_is_taken():
    path = RLSRegressorCV([0.1, 1.0]).fit(np.eye(4), np.ones(4)).path_
    from dataclasses import replace

    assert replace(path, scores=np.array([1.0, 1.0])).lam == 1.0


def test_the_picture():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    X, y = rng.normal(size=(30, 2)), rng.normal(size=(30, 2))
    model = RLSRegressorCV(8).fit(X, y)
    display = model.path_.plot()
    assert [len(lines) for lines in display.lines_] == [2, 2, 1]
    np.testing.assert_allclose(display.lines_[0][1].get_ydata(), np.sqrt(model.path_.loo_errors[:, 1]))
    np.testing.assert_allclose(display.lines_[2][0].get_ydata(), model.path_.dof)
    assert display.axes_[0].get_xscale() == "log"
    with pytest.raises(ValueError, match="3 axes"):
        model.path_.plot([display.axes_[0]])
    plt.close(display.figure_)


def test_a_grid_of_a_kernel_object_leaves_the_callers_alone_and_paths_have_their_own():
    X = np.random.default_rng(0).normal(size=(40, 2))
    kernel = Gaussian(1.0)
    model = RLSRegressorCV(5, kernel=kernel, grid={"kernel__gamma": [0.1, 1.0, 10.0]}).fit(X, X[:, 0])
    assert kernel.gamma == 1.0
    for path in model.paths_:
        assert path.at(1.0).kernel_.gamma == path.params["kernel__gamma"]
    with pytest.raises(ValueError, match="kernel__gamma is a parameter of a kernel object"):
        RLSRegressorCV(5, grid={"kernel__gamma": [0.1]}).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="it holds \\['gamma__x'\\]"):
        RLSRegressorCV(5, grid={"gamma__x": [0.1]}).fit(X, X[:, 0])
