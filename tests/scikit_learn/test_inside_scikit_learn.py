"""Inside scikit-learn: routing, searches, pipelines, data frames."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import SVC
from mercer.kernels import Gaussian, Polynomial


def test_sample_weights_are_routed(two):
    X, y = two
    weight = np.where(y == 1, 0.01, 1.0) * np.random.default_rng(0).uniform(0.5, 1.5, len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        model = SVC(C=0.5).set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        search = GridSearchCV(model, {"C": [0.5]}, cv=3).fit(X, y, sample_weight=weight)
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError):
            GridSearchCV(SVC(), {"C": [0.5]}, cv=3).fit(X, y, sample_weight=weight)
    direct = SVC(C=0.5).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(search.best_estimator_.decision_function(X), direct.decision_function(X))
    unweighted = SVC(C=0.5).fit(X, y)
    assert np.abs(direct.decision_function(X) - unweighted.decision_function(X)).max() > 0.1


def test_precomputed_kernels_are_sliced_by_cross_validation(three):
    X, y = three
    kernel = Gaussian(gamma=0.3)
    folds = KFold(5, shuffle=True, random_state=0)
    given = cross_val_score(SVC(kernel="precomputed"), kernel(X), y, cv=folds)
    np.testing.assert_array_equal(given, cross_val_score(SVC(kernel=kernel), X, y, cv=folds))
    f_given = cross_val_predict(SVC(kernel="precomputed", tol=1e-7), kernel(X), y, cv=folds, method="decision_function")
    f = cross_val_predict(SVC(kernel=kernel, tol=1e-7), X, y, cv=folds, method="decision_function")
    np.testing.assert_allclose(f_given, f, atol=1e-4)
    search = GridSearchCV(SVC(kernel="precomputed"), {"C": [0.1, 1.0]}, cv=folds).fit(kernel(X), y)
    assert search.best_score_ > 0.9


def test_grid_search_over_a_kernel_object(three):
    X, y = three
    search = GridSearchCV(SVC(kernel=Gaussian(gamma=1.0)), {"kernel__gamma": [1e-4, 0.3], "C": [1.0]}, cv=5).fit(X, y)
    assert search.best_params_ == {"kernel__gamma": 0.3, "C": 1.0}
    assert search.best_estimator_.kernel_.gamma == 0.3
    by_name = GridSearchCV(SVC(), {"gamma": [1e-4, 0.3], "C": [1.0]}, cv=5).fit(X, y)
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], by_name.cv_results_["mean_test_score"])


def test_pipeline_and_composite_kernel(three):
    X, y = three
    kernel = 0.5 * Gaussian(gamma=0.3) + Polynomial(degree=2, gamma=0.1, coef0=1.0)
    model = make_pipeline(StandardScaler(), SVC(kernel=kernel)).fit(X, y)
    assert model.score(X, y) > 0.95
    K = kernel(StandardScaler().fit_transform(X))
    given = SVC(kernel="precomputed", tol=1e-6).fit(K, y)
    again = SVC(kernel=kernel, tol=1e-6).fit(StandardScaler().fit_transform(X), y)
    np.testing.assert_allclose(
        again.decision_function(StandardScaler().fit_transform(X)), given.decision_function(K), atol=1e-4
    )


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_data_frames(three, frame):
    X, y = three
    names = ["sepal length", "sepal width", "petal length", "petal width"]
    table = frame({name: X[:, k] for k, name in enumerate(names)})
    model = SVC().fit(table, y)
    assert list(model.feature_names_in_) == names
    assert model.n_features_in_ == 4
    plain = SVC().fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(model.decision_function(table), plain.decision_function(X))
    with pytest.warns(UserWarning, match="feature names"):
        np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(X))
    labels = (
        pd.Series(np.array(["a", "b", "c"])[y]) if frame is pd.DataFrame else pl.Series(np.array(["a", "b", "c"])[y])
    )
    assert SVC().fit(table, labels).predict(table).tolist() == [["a", "b", "c"][k] for k in plain.predict(X)]
