"""A kernel matrix that was given: its own numbers count, whatever their type, also where a constant joins them."""

import gc
import tracemalloc
import weakref

import numpy as np
import pytest

from mercer import SVC, SVR, QuantileSVR, svm_path
from mercer.estimators.fitting.pipeline.fit import Fit
from mercer.kernels import Gaussian

C = 1e4


def problem(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    return K, (X[:, 0] + rng.normal(size=n) > 0).astype(int), X[:, 0] + 0.1 * rng.normal(size=n)


def as_type(K, kind):
    """K in another type, with a ridge that is larger than what rounding to it does."""
    ridge = {"f4": 0.0, "f8": 0.0}.get(kind, 0.1) * np.eye(len(K))
    return np.round(1000 * (K + ridge)).astype(kind) if np.dtype(kind).kind in "iu" else (K + ridge).astype(kind)


@pytest.mark.parametrize("kind", ["f2", "f4", "f8", "i2", "i8", "u4"])
@pytest.mark.parametrize("slack", ["l1", "l2"])
def test_the_gap_holds_for_the_numbers_that_were_given(kind, slack):
    K, y, _ = problem()
    K = as_type(K, kind)
    model = SVC(kernel="precomputed", C=C, slack=slack, bias="regularized").fit(K, y)
    beta, s = np.zeros(len(y), dtype=np.longdouble), np.where(y, 1.0, -1.0)
    beta[model.support_] = model.dual_coef_[0]
    u = (K.astype(np.longdouble) + 1) @ beta
    slacks = np.maximum(0, 1 - s * u)
    if slack == "l1":
        gap = beta @ u + C * slacks.sum() - s @ beta
    else:
        gap = beta @ u + C / 2 * (slacks**2).sum() - s @ beta + (beta**2).sum() / (2 * C)
    assert gap <= model.certificate_.gap * (1 + 1e-9)


FITS = {
    "SVC": lambda K, y, t: SVC(kernel="precomputed", C=C, bias="regularized").fit(K, y).decision_function(K),
    "SVR": lambda K, y, t: SVR(kernel="precomputed", C=C, bias="regularized").fit(K, t).predict(K),
    "QuantileSVR": lambda K, y, t: QuantileSVR(0.3, kernel="precomputed", C=C, bias="regularized").fit(K, t).predict(K),
    "svm_path": lambda K, y, t: svm_path(K, y, kernel="precomputed", bias="regularized").alpha(C),
}


@pytest.mark.parametrize("name", FITS)
def test_float32_and_the_same_numbers_in_float64_are_one_problem(name):
    K, y, t = problem()
    single = K.astype(np.float32)
    assert np.array_equal(FITS[name](single, y, t), FITS[name](single.astype(np.float64), y, t))


def test_a_constant_copies_no_matrix():
    K, y, _ = problem(n=1200)
    K = K.astype(np.float32)
    tracemalloc.start()
    SVC(kernel="precomputed", bias="regularized", tol=5.0).fit(K, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * K.nbytes  # a sum K + 1 in float64 alone would be as large


def test_gram_matrices_are_kept_by_the_kernels_that_they_are_of():
    """CPython gives the id of an object that is gone to the next one: a fit keeps the kernels of its matrices alive."""
    fit = Fit.of(SVC(), np.linspace(0, 1, 8)[:, None], np.resize([0, 1], 8), None)
    kernel = Gaussian(1.0)
    gone = weakref.ref(kernel)
    fit.gram_of_kernel(kernel)
    fit._places.pop(id(kernel))  # what a Gram refers to is its own affair
    del kernel
    gc.collect()
    assert gone() is not None
