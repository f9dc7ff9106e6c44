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
    text = estimator.__doc__
    assert all(f"    {p} :" in text for p in inspect.signature(estimator).parameters)
    A = np.random.default_rng(0).normal(size=(20, 2))
    model = estimator().fit(A, A[:, 0] > 0)
    fitted = [name for name in vars(model) if name.endswith("_") and not name.startswith("_")]
    assert not [name for name in fitted if name not in text]


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_callers_samples_are_neither_changed_nor_kept(estimator):
    A = np.random.default_rng(0).normal(size=(20, 2))
    given = A.copy()
    model = estimator().fit(given, A[:, 0] > 0)
    np.testing.assert_array_equal(given, A)
    before = model.predict(A)
    given[:] = 7.0
    np.testing.assert_array_equal(model.predict(A), before)
    if hasattr(model, "latent_mean_and_variance"):
        assert np.isfinite(model.latent_mean_and_variance(A)[1]).all()
    else:
        np.testing.assert_array_equal(model.predict(A, return_std=True)[0], before)
