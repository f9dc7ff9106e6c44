"""The vectors that decide about a sample, against sums over the fitted attributes."""

import numpy as np
import pytest

import mercer
from mercer import SVC, SVR, LinearSVC, NuSVC, OneClassSVM, RLSClassifier
from mercer.kernels import Gaussian, Spectrum

RNG = np.random.default_rng(8)
X = RNG.normal(size=(60, 3))
LABELS = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + X[:, 1] * X[:, 2], [-0.5, 0.5])]
NEW = RNG.normal(size=(6, 3))


@pytest.mark.parametrize("model", [SVC(C=3.0, gamma=0.5), NuSVC(nu=0.3, gamma=0.5)], ids=["SVC", "NuSVC"])
def test_all_contributions_add_up_to_f(model):
    model.fit(X, LABELS == "a")
    f = model.decision_function(NEW)
    for found, value in zip(model.reasons(NEW, n=60), f, strict=True):
        sign = 1.0 if value >= 0 else -1.0
        assert found.prediction == (value >= 0)
        np.testing.assert_allclose(sign * found.contributions.sum() + model.intercept_[0], value, atol=1e-12)
        np.testing.assert_array_equal(X[found.indices], found.vectors)
        np.testing.assert_array_equal((LABELS == "a")[found.indices], found.labels)
        assert (np.diff(np.abs(found.contributions)) <= 0).all()
        np.testing.assert_allclose(np.abs(found.shares).sum(), 1.0)
        # A vector speaks for its own class, since the kernel is positive.
        np.testing.assert_array_equal(found.contributions > 0, found.labels == found.prediction)


def test_several_classes_by_the_sum_of_their_pairs():
    model = SVC(C=3.0, gamma=0.5, decision_function_shape="ovo").fit(X, LABELS)
    ab, ac, bc = model.decision_function(NEW).T
    b_ab, b_ac, b_bc = model.intercept_
    sums = {"a": ab + ac - b_ab - b_ac, "b": bc - ab - b_bc + b_ab, "c": b_ac + b_bc - ac - bc}
    for i, found in enumerate(model.reasons(NEW, n=60)):
        np.testing.assert_allclose(found.contributions.sum(), sums[found.prediction][i], atol=1e-12)
        np.testing.assert_array_equal(LABELS[found.indices], found.labels)


def test_one_function_per_class_and_merged_samples():
    for model in (SVC(C=3.0, multiclass="ovr"), RLSClassifier(lam=0.1)):
        model.fit(X, LABELS)
        f, classes = model.decision_function(NEW), model.classes_.tolist()
        for i, found in enumerate(model.reasons(NEW, n=60)):
            k = classes.index(found.prediction)
            np.testing.assert_allclose(found.contributions.sum() + model.intercept_[k], f[i, k], atol=1e-10)


def test_a_compressed_machine_names_its_own_vectors():
    model = mercer.compress(SVC(C=3.0).fit(X, LABELS == "a"), n_vectors=8)
    found = model.reasons(NEW, n=60)[0]
    assert found.indices is None
    np.testing.assert_allclose(
        np.abs(found.contributions.sum() + (1 if found.prediction else -1) * model.intercept_[0]),
        np.abs(model.decision_function(NEW[:1])[0]),
        atol=1e-12,
    )


def test_regression_novelties_strings_and_matrices():
    model = SVR(C=3.0).fit(X, X[:, 0])
    found = model.reasons(NEW, n=60)[0]
    np.testing.assert_allclose(found.contributions.sum() + model.intercept_[0], found.prediction, atol=1e-12)
    assert found.labels is None
    assert len(OneClassSVM(nu=0.5).fit(X).reasons(NEW, n=2)[0]) == 2
    strings = SVC(kernel=Spectrum(2)).fit(["abab", "baba", "cdcd", "dcdc"], [0, 0, 1, 1])
    assert strings.reasons(["abba"], n=1)[0].vectors[0] in ("abab", "baba")
    kernel = Gaussian(gamma=0.5)
    given = SVC(C=3.0, tol=1e-10, kernel="precomputed").fit(kernel(X), LABELS).reasons(kernel(NEW, X), n=4)
    for one, other in zip(given, SVC(C=3.0, tol=1e-10, kernel=kernel).fit(X, LABELS).reasons(NEW, n=4), strict=True):
        np.testing.assert_array_equal(one.indices, other.indices)
        np.testing.assert_allclose(one.contributions, other.contributions, atol=1e-6)


def test_what_is_shown():
    found = SVC(C=3.0).fit(X, LABELS).reasons(NEW, n=3)[0]
    assert list(found.to_frame()) == ["sample", "label", "similarity", "contribution", "share"]
    lines = str(found).splitlines()
    assert lines[0] == f"prediction {found.prediction}"
    assert len(lines) == 5
    assert f"{found.contributions[0]:.3g}" in lines[2]


def test_bad_questions_are_refused():
    model = SVR().fit(X, X[:, 0])
    with pytest.raises(ValueError, match="no output 1"):
        model.reasons(NEW, output=1)
    with pytest.raises(ValueError, match="n=0"):
        model.reasons(NEW, n=0)
    with pytest.raises(ValueError, match="keeps w"):
        LinearSVC().fit(X, LABELS).reasons(NEW)
