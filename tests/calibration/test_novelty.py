"""How normal samples are, and the law of errors: as LIBSVM has them, and from samples left out."""

from __future__ import annotations

import numpy as np
import pytest
from libsvm import svmutil
from sklearn.base import clone
from sklearn.model_selection import KFold

import mercer
from mercer import SVDD, SVR, OneClassSVM
from mercer.files.libsvm_estimator import estimator_from_libsvm
from mercer.files.libsvm_model import read_libsvm_model

X = np.random.default_rng(0).normal(size=(120, 2))


def test_on_the_training_samples_the_marks_are_libsvms(tmp_path) -> None:
    options = "-s 2 -n 0.3 -g 0.5 -b 1 -e 1e-7 -q"
    svmutil.svm_save_model(str(tmp_path / "theirs"), svmutil.svm_train(np.ones(120), X, options))
    theirs = estimator_from_libsvm(read_libsvm_model(tmp_path / "theirs"))
    machine = OneClassSVM(nu=0.3, gamma=0.5, tol=1e-7).fit(X)
    assert not hasattr(machine, "predict_proba")
    model = machine.calibrate(X, cv="held-out")
    # On which side of 0 a free vector lies is rounding, and moves LIBSVM's marks: these follow from our values.
    f = np.sort(machine.decision_function(X))
    below = int((f < 0).sum())
    ends = [f[i * below // 5] for i in range(5)] + [0.0] + [f[below - 1 + i * (120 - below) // 5] for i in range(1, 6)]
    np.testing.assert_array_equal(model.prob_density_marks_, (np.array(ends[1:]) + ends[:-1]) / 2)
    new = np.random.default_rng(1).normal(size=(300, 2)) * 1.5
    _, _, values = svmutil.svm_predict([], new, svmutil.svm_load_model(str(tmp_path / "theirs")), "-b 1 -q")
    np.testing.assert_allclose(theirs.predict_proba(new)[:, ::-1], values)
    np.testing.assert_allclose(model.predict_proba(new)[:, 1], np.array(values)[:, 0], atol=0.1 + 1e-9)
    assert not hasattr(machine, "predict_proba")  # it stays as it is
    mercer.save(model, tmp_path / "own.mercer")
    np.testing.assert_array_equal(mercer.load(tmp_path / "own.mercer").predict_proba(new), model.predict_proba(new))
    assert not hasattr(model.fit(X), "predict_proba")


@pytest.mark.parametrize("machine", [OneClassSVM(nu=0.3), SVDD(nu=0.3, kernel="linear")], ids=["plane", "ball"])
def test_folds_mark_samples_that_were_left_out(machine) -> None:
    weight = np.ones(120)
    weight[:20] = 0.0
    model = machine.fit(X, sample_weight=weight).calibrate(X, cv=KFold(3), sample_weight=weight)
    f = np.empty(120)
    for train, test in KFold(3).split(X):
        part = clone(machine)  # the kernel's gamma is read off the fold's own samples
        f[test] = part.fit(X[train], sample_weight=weight[train]).decision_function(X[test])
    f = np.sort(f[20:])
    below = int((f < 0).sum())
    first = (f[0] + f[below // 5]) / 2  # half way between the two first of eleven marks
    assert model.prob_density_marks_[0] == pytest.approx(first, rel=1e-6)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    order = np.argsort(model.decision_function(X))
    assert (np.diff(p[order, 1]) >= 0).all()
    assert set(np.round(p[:, 1], 3)) <= {0.001, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.999}


def test_too_few_samples_are_refused() -> None:
    with pytest.raises(ValueError, match="probabilities of a one-class machine need 5 negative"):
        OneClassSVM(nu=0.1).fit(X[:8]).calibrate(X[:8], cv="held-out")
    with pytest.raises(ValueError, match="hold out every sample exactly once"):
        OneClassSVM().fit(X).calibrate(X, cv=[(np.arange(60), np.arange(60, 120))])


def test_the_laplace_law_of_a_regression() -> None:
    rng = np.random.default_rng(0)
    T = rng.uniform(-3, 3, (2000, 1))
    y = np.sin(T[:, 0]) + rng.laplace(0, 0.3, 2000)
    model = SVR(C=10, gamma=0.5).fit(T[:1000], y[:1000]).calibrate(T[:1000], y[:1000])
    assert model.laplace_scale_ == pytest.approx(0.3, rel=0.1)
    size = np.sort(model.residuals_)
    kept = size[size <= 5 * np.sqrt(2) * size.mean()]
    assert model.laplace_scale_ == pytest.approx(kept.mean())
    low, high = model.predict_interval(T[1000:], alpha=0.2, method="laplace")
    np.testing.assert_allclose((low + high) / 2, model.predict(T[1000:]))
    np.testing.assert_allclose((high - low) / 2, model.laplace_scale_ * np.log(5))
    assert 0.75 < np.mean((low <= y[1000:]) & (y[1000:] <= high)) < 0.85
    with pytest.raises(ValueError, match="method='normal' must be one of"):
        model.predict_interval(T, method="normal")
