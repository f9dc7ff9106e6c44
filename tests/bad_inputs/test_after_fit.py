"""A fitted model is what it was fitted as, whatever happens to its data, its parameters and its next fit."""

import pickle
import warnings
from functools import partial

import numpy as np
import pytest
from scipy import sparse

import mercer.estimators
from bad_inputs.given import (
    CLASSIFIERS,
    EVERY,
    MACHINES,
    THREE,
    K,
    N,
    T,
    X,
    Y,
    changed,
    fit,
    frame,
    made,
    target,
    values,
)
from mercer import QuantileSVR, RLSRegressor, RLSRegressorCV
from mercer.estimators.fitting.pipeline.class_spec import restore, state_of


def raises(act, text, kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(kind, match=text):
            act()


# Read when predicting, as in scikit-learn.
READ_LATER = {"decision_function_shape", "break_ties", "n_jobs", "verbose"}


@pytest.mark.parametrize("name", EVERY)
def test_parameters_set_after_fit_change_no_prediction(name):
    targets = [Y, THREE] if name in CLASSIFIERS else [T]
    starts = [{}, {"multiclass": "ovr"}] if name == "SVC" else [{}]
    starts = [*starts, {"quantiles": [0.2, 0.8]}] if name == "QuantileSVR" else starts
    for y in targets:
        for start in starts:
            model = fit(name, y=y, **start)
            before = model.predict(X)
            kept = pickle.dumps(model)
            for parameter in made(name).get_params().keys() - READ_LATER:
                for value in (object(), -1, "ovo", [0.1, 0.9]):
                    changed = pickle.loads(kept)
                    setattr(changed, parameter, value)
                    np.testing.assert_array_equal(changed.predict(X), before, err_msg=f"{parameter}={value!r}")


@pytest.mark.parametrize("name", EVERY)
def test_parameters_set_after_fit_leave_a_state_that_can_be_loaded(name):
    """What a file holds is what was fitted, whatever is set since."""
    starts = {"SVC": {"multiclass": "ovr"}, "QuantileSVR": {"quantiles": [0.2, 0.8]}, "PegasosSVC": {"bias": False}}
    for start in ({}, starts.get(name)):
        if start is None:
            continue
        model = fit(name, y=THREE if name in CLASSIFIERS else T, **start)
        before, kept = model.predict(X), pickle.dumps(model)
        for parameter in made(name).get_params().keys() - READ_LATER:
            for value in (False, "regularized", "ovo", -1, [0.1, 0.9]):
                changed = pickle.loads(kept)
                setattr(changed, parameter, value)
                again = restore(type(changed), *state_of(changed))
                np.testing.assert_array_equal(again.predict(X), before, err_msg=f"{parameter}={value!r}")


@pytest.mark.parametrize("name", EVERY)
def test_a_failed_fit_changes_nothing(name):
    model = fit(name)
    before, decided = dict(vars(model)), values(model)
    failures = [
        partial(model.fit, np.where(np.eye(N, 3) > 0, np.nan, X), target(name)),
        partial(model.fit, X[:, :2], target(name), sample_weight=np.full(N, np.nan)),
        partial(model.fit, frame(), target(name), sample_weight=np.zeros(N)),
    ]
    for fail in failures:
        raises(fail, "", ValueError)
        after = vars(model)
        assert after.keys() == before.keys()
        assert all(after[key] is before[key] for key in before)
    np.testing.assert_array_equal(values(model), decided)
    fresh = made(name)
    raises(partial(fresh.fit, X, target(name), sample_weight=np.full(N, np.nan)), "sample_weight", ValueError)
    assert not [key for key in vars(fresh) if key.endswith("_") and not key.startswith("__")]


@pytest.mark.parametrize("name", EVERY)
def test_a_model_shares_nothing_with_its_data(name):
    y, weight = target(name).copy(), np.linspace(0.1, 2.0, N)
    for data in (X.copy(), np.asfortranarray(X), sparse.csr_array(X), X.astype(np.float32)):
        parts = [data.data, data.indices, data.indptr] if sparse.issparse(data) else [data]
        copies = [part.copy() for part in (*parts, y, weight)]
        model = fit(name, data, y, weight)
        model.predict(data)
        for part, copy in zip((*parts, y, weight), copies, strict=True):
            np.testing.assert_array_equal(part, copy)
            assert part.flags.writeable
        decided = values(model)
        parts[0][:] = 7
        np.testing.assert_array_equal(values(model), decided)
        for key, value in vars(model).items():
            assert not (isinstance(value, np.ndarray) and value.flags.writeable), key


def test_several_quantiles_stay_several():
    model = QuantileSVR([0.2, 0.8]).fit(X, T)
    before = model.predict(X)
    np.testing.assert_array_equal(model.set_params(quantiles=0.5).predict(X), before)


@pytest.mark.parametrize("name", MACHINES)
def test_fitted_arrays_are_read_only_and_inputs_untouched(name):
    target = Y if name in ("SVC", "NuSVC") else T
    data, copy = X.copy(), X.copy()
    model = getattr(mercer.estimators, name)().fit(data, target)
    np.testing.assert_array_equal(data, copy)
    for attribute in ("dual_coef_", "support_", "support_vectors_", "intercept_", "n_support_"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(model, attribute)[...] = 0


def test_a_failed_fit_leaves_the_estimator_as_it_was():
    for model in (RLSRegressor(0.1), RLSRegressor(0.1, kernel="linear"), RLSRegressorCV(4)):
        before = model.fit(X, T).predict(X)
        with pytest.raises(ValueError, match="NaN"):
            model.fit(changed(X, ((3, 1), np.nan)), T)
        if hasattr(model, "partial_fit"):
            with pytest.raises(ValueError, match="nan"):
                model.partial_fit(X, changed(T, (3, np.nan)))
        np.testing.assert_array_equal(model.predict(X), before)


def test_inputs_are_not_modified():
    X_, y_, w = X.copy(), np.c_[T, T].copy(), np.linspace(0, 2, N)
    K_ = K.copy()
    for model in (RLSRegressor(), RLSRegressor(kernel="linear"), RLSRegressorCV(4), RLSRegressorCV(4, kernel="linear")):
        model.fit(X_, y_, sample_weight=w)
    RLSRegressor(kernel="precomputed").fit(K_, y_)
    RLSRegressorCV(4, kernel="precomputed").fit(K_, y_)
    np.testing.assert_array_equal(X_, X)
    np.testing.assert_array_equal(y_, np.c_[T, T])
    np.testing.assert_array_equal(K_, K)
    np.testing.assert_array_equal(w, np.linspace(0, 2, N))
