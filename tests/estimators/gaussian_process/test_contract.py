"""What scikit-learn and users expect of every estimator of the room."""

import inspect

import numpy as np
import pytest

from contracts import scikit_learn_checks
from mercer import GaussianProcessClassifier, GaussianProcessRegressor, RelevanceVectorRegressor

ESTIMATORS = [GaussianProcessRegressor, GaussianProcessClassifier, RelevanceVectorRegressor]


@scikit_learn_checks.of_each(
    [
        GaussianProcessRegressor(optimise=False),
        pytest.param(GaussianProcessClassifier(optimise=False), marks=pytest.mark.thorough),
        pytest.param(GaussianProcessRegressor(), marks=pytest.mark.thorough),
        pytest.param(GaussianProcessClassifier(), marks=pytest.mark.thorough),
        pytest.param(RelevanceVectorRegressor(), marks=pytest.mark.thorough),
    ]
)
def test_scikit_learns_checks(estimator):
    scikit_learn_checks.hold(estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_parameters_and_attributes_are_documented(estimator):
    text = inspect.getdoc(estimator)
    assert all(f"\n{p} :" in text for p in inspect.signature(estimator).parameters)
    A = np.random.default_rng(0).normal(size=(20, 2))
    model = estimator().fit(A, A[:, 0] > 0)
    fitted = [name for name in vars(model) if name.endswith("_") and not name.startswith("_")]
    assert not [name for name in fitted if name not in text]


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_callers_samples_are_neither_changed_nor_kept(estimator):
    """Also where rows are not copied by merging, as for a function."""
    A = np.random.default_rng(0).normal(size=(20, 2))
    given = A.copy()
    options = {} if estimator is RelevanceVectorRegressor else {"optimise": False}
    model = estimator(kernel=lambda U, V: np.exp(-((U[:, None] - V) ** 2).sum(axis=2)), **options)
    model.fit(given, A[:, 0] > 0)
    np.testing.assert_array_equal(given, A)

    def answers():
        if hasattr(model, "latent_mean_and_variance"):
            return [model.predict(A), *model.latent_mean_and_variance(A)]
        return list(model.predict(A, return_std=True))

    before = answers()
    given[:] = 7.0
    for one, other in zip(answers(), before, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.filterwarnings("ignore:RelevanceVectorRegressor stopped after max_iter=300")
def test_samples_that_a_linear_kernel_fits_exactly():
    """Without noise the priors never settle, and columns of k are equal to rounding."""
    A = np.abs(np.random.default_rng(3).normal(size=(40, 3))) + 0.1
    model = RelevanceVectorRegressor(kernel="linear", max_iter=300).fit(A, A[:, 0] - A[:, 1])
    np.testing.assert_allclose(model.predict(A), A[:, 0] - A[:, 1], atol=1e-4)
