"""Calibrated machines in a .mercer file: probabilities, sets and intervals come back bit for bit."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import SVC, SVR, CalibratedClassifier, CalibratedRegressor, RLSRegressor
from mercer.errors import ModelFormatError
from mercer.files.calibrated_state import calibrated_model, calibrated_state


def samples(classes=2):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    return X, np.array(["a", "b", "c"])[np.arange(60) % classes]


def again(model, tmp_path):
    mercer.save(model, tmp_path / "model.mercer")
    return mercer.load(tmp_path / "model.mercer")


@pytest.mark.parametrize("method", ["sigmoid", "isotonic", "temperature", "venn-abers"])
@pytest.mark.parametrize("machine", [SVC(), SVC(multiclass="ovr")], ids=["pairs", "rest"])
@pytest.mark.parametrize("classes", [2, 3])
def test_classifiers(method, machine, classes, tmp_path):
    X, y = samples(classes)
    model = machine.fit(X, y).calibrate(X, y, method=method, cv=KFold(4))
    found = again(model, tmp_path)
    assert type(found) is CalibratedClassifier
    for name in ("predict", "predict_proba", "p_values"):
        np.testing.assert_array_equal(getattr(found, name)(X), getattr(model, name)(X))
    if method == "venn-abers" and classes == 2:
        np.testing.assert_array_equal(found.predict_interval(X), model.predict_interval(X))
    assert found.method == method
    assert found.n_features_in_ == 2
    np.testing.assert_array_equal(found.classes_, model.classes_)
    found.fit(X, y)  # its parameters are whole


@pytest.mark.parametrize("cv", [3, "leave-one-out", "held-out"])
@pytest.mark.parametrize("machine", [SVR(), RLSRegressor(bias=False)], ids=["tube", "least squares"])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_regressors(cv, machine, kind, tmp_path):
    X, _ = samples()
    z, X = np.sin(X[:, 0]), kind(X)
    model = machine.fit(X, z).calibrate(X, z, cv=cv)
    found = again(model, tmp_path)
    assert type(found) is CalibratedRegressor
    np.testing.assert_array_equal(found.predict_interval(X), model.predict_interval(X))
    np.testing.assert_array_equal(found.predict(X), model.predict(X))
    np.testing.assert_array_equal(found.residuals_, model.residuals_)


@pytest.mark.parametrize("around", [FrozenEstimator, mercer.tabular, lambda m: make_pipeline(StandardScaler(), m)])
def test_what_is_around_a_machine(around, tmp_path):
    X, y = samples(3)
    inner = around(SVC().fit(X, y))
    model = CalibratedClassifier(inner, cv=3).fit(X, y)
    np.testing.assert_array_equal(again(model, tmp_path).predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("cv", [3, "leave-one-out"])
def test_precomputed_kernels(cv, tmp_path):
    X, _ = samples()
    K, z = X @ X.T + 1, np.sin(X[:, 0])
    model = SVR(kernel="precomputed").fit(K, z).calibrate(K, z, cv=cv)
    np.testing.assert_array_equal(again(model, tmp_path).predict_interval(K), model.predict_interval(K))


def test_inside_a_pipeline(tmp_path):
    X, y = samples()
    model = make_pipeline(StandardScaler(), CalibratedClassifier(SVC())).fit(X, y)
    np.testing.assert_array_equal(again(model, tmp_path).predict_proba(X), model.predict_proba(X))


def forged(change, machine=None, **options):
    """The state of a good model with something replaced."""
    X, y = samples()
    z = y if machine is None else np.sin(X[:, 0])
    model = (SVC() if machine is None else machine).fit(X, z).calibrate(X, z, **options)
    state = calibrated_state(model)
    change(state)
    return calibrated_model(type(model).__name__, state)


def test_a_state_is_its_own_inverse():
    assert forged(lambda state: None).n_features_in_ == 2


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        (("machine",), None, "no machine"),
        (("machine",), SVR(), "needs a classifier"),
        (("cv",), [3], "cv must be"),
        (("method",), "guess", "no method"),
        (("own",), {}, "no scores"),
        (("own", "scores"), np.zeros((2, 2)), "scores must be"),
        (("own", "starts"), np.array([0, 70, 60]), "starts must"),
        (("curves",), None, "no curves"),
        (("curves", "kind"), "VennAbers", "have f, W, S"),
        (("curves", "slope"), np.zeros(2), "slope must be"),
    ],
)
def test_forged_classifiers_are_refused(path, value, told):
    def change(state):
        *outer, last = path
        for name in outer:
            state = state[name]
        state[last] = value

    with pytest.raises(ModelFormatError, match=told):
        forged(change)


@pytest.mark.parametrize(
    ("cv", "path", "value", "told"),
    [
        (3, ("residuals",), np.zeros(3), "rows of a fold"),
        (3, ("without",), np.full(60, 9), "fold of each sample"),
        (3, ("folds",), [[1, 2]], "a fold is a machine"),
        ("leave-one-out", ("functions", "output"), np.full(60, 10**6), "function of each sample"),
        ("leave-one-out", ("functions", "b"), np.zeros(1), "coefficients and its b"),
        ("leave-one-out", ("functions", "kernel"), None, "have a kernel"),
        ("leave-one-out", ("functions", "vectors"), np.zeros((1, 2)), "vectors"),
    ],
)
def test_forged_regressors_are_refused(cv, path, value, told):
    def change(state):
        *outer, last = path
        for name in outer:
            state = state[name]
        state[last] = value

    with pytest.raises(ModelFormatError, match=told):
        forged(change, SVR(), cv=cv)


def test_a_forged_inverse_is_refused():
    with pytest.raises(ModelFormatError, match="square"):
        forged(lambda state: state["functions"].update(inverse=np.zeros((3, 3))), RLSRegressor(), cv="leave-one-out")
