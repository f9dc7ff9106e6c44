"""What scikit-learn and users expect of every estimator of the room."""

import inspect
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils import get_tags

import mercer
from contracts import scikit_learn_checks
from mercer import KernelCCA, KernelKMeans, KernelPCA, SpectralClustering

ESTIMATORS = [KernelPCA, KernelKMeans, SpectralClustering, KernelCCA]


def test_scikit_learns_checks():
    scikit_learn_checks.hold(KernelPCA())


# A check gives four different samples to estimators that ask for eight clusters.
@pytest.mark.filterwarnings("ignore:n_clusters=8 is too large for 4 distinct samples")
@pytest.mark.thorough
@pytest.mark.filterwarnings(
    "ignore::mercer.runtime.errors.NonPSDKernelWarning"
)  # one check gives numbers that are no kernel's
@scikit_learn_checks.of_each(
    [
        KernelKMeans(),
        SpectralClustering(),
        KernelCCA(),
        KernelPCA(n_landmarks=5),
        KernelPCA(kernel="precomputed"),
        KernelKMeans(n_landmarks=10),
        SpectralClustering(n_landmarks=10),
        SpectralClustering(affinity="nearest_neighbors"),
        KernelCCA(kernel="precomputed", kernel_y="rbf"),
    ]
)
def test_scikit_learns_checks_of_the_others(estimator):
    scikit_learn_checks.hold(estimator)


@pytest.mark.filterwarnings("ignore:n_clusters=8 is too large for . distinct samples")
@pytest.mark.filterwarnings("ignore::mercer.runtime.errors.NonPSDKernelWarning")
@scikit_learn_checks.of_each([KernelKMeans(kernel="precomputed"), SpectralClustering(kernel="precomputed")])
def test_scikit_learns_checks_of_given_matrices(estimator):
    # One check gives X of shape (50, 2) as the square matrix.
    scikit_learn_checks.hold(estimator, expected=["check_clustering"])


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_parameters_and_attributes_are_documented(estimator):
    text = inspect.getdoc(estimator)
    assert all(f"\n{p} :" in text for p in inspect.signature(estimator).parameters)
    X = np.random.default_rng(0).normal(size=(30, 2))
    model = estimator().fit(X, X[:, 0])
    fitted = [name for name in vars(model) if name.endswith("_") and not name.startswith("_")]
    assert not [name for name in fitted if name not in text]
    assert not get_tags(model).non_deterministic
    for other in (pickle.loads(pickle.dumps(model)), clone(model).fit(X, X[:, 0])):
        ask = "transform" if hasattr(model, "transform") else "predict"
        if estimator not in (KernelKMeans, SpectralClustering):
            np.testing.assert_array_equal(getattr(model, ask)(X), getattr(other, ask)(X))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_callers_samples_are_neither_changed_nor_kept(estimator):
    X = np.random.default_rng(0).normal(size=(30, 2))
    given = X.copy()
    model = estimator(random_state=0).fit(given, X[:, 0])
    np.testing.assert_array_equal(given, X)
    ask = model.predict if hasattr(model, "predict") else model.transform
    before = ask(X)
    given[:] = 7.0
    np.testing.assert_array_equal(ask(X), before)


@pytest.mark.parametrize("name", ["explain", "insight", "compression_", "certificate_", "calibrate"])
def test_what_belongs_to_predictions_of_a_target_is_not_there(name):
    model = KernelPCA(2).fit([[0.0], [1.0], [3.0]])
    assert not hasattr(model, name)
    assert name not in dir(KernelPCA)


def test_they_stand_beside_the_other_names():
    assert {"KernelPCA", "KernelKMeans", "SpectralClustering", "KernelCCA", "mmd_test"} <= set(mercer.__all__)
