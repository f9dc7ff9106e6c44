"""Calibrated machines in a .mercer file: probabilities, sets and intervals come back bit for bit."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import SVC, SVR, CalibratedClassifier, CalibratedRegressor, RLSRegressor
from mercer.files.mercer_file.model_file import describe_model, rebuild_model
from mercer.runtime.errors import ModelFormatError


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


@pytest.mark.parametrize("method", ["sigmoid", "isotonic", "temperature"])
@pytest.mark.parametrize("classes", [2, 3])
def test_scikit_learns_calibration_of_labels_of_text(method, classes, tmp_path):
    """For the temperature, scikit-learn fits its copies of the estimator to the indices of the labels."""
    X, y = samples(classes)
    model = CalibratedClassifierCV(SVC(decision_function_shape="ovr"), method=method, cv=3).fit(X, y)
    found = again(model, tmp_path)
    np.testing.assert_array_equal(found.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(found.predict(X), model.predict(X))


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
    """A good model, described for a file, with something replaced; values that are arrays become some of its own."""
    X, y = samples()
    z = y if machine is None else np.sin(X[:, 0])
    model = (SVC() if machine is None else machine).fit(X, z).calibrate(X, z, **options)
    arrays = {}
    description = describe_model(model, arrays)
    change(description, arrays)
    return rebuild_model(description, arrays)


def replacing(path, value):
    """A change of what stands at a path."""

    def change(place, arrays):
        *outer, last = path
        for name in outer:
            place = place[name]
        if isinstance(value, np.ndarray):
            arrays["forged"] = value
        elif value is not None and hasattr(value, "fit"):
            place[last] = describe_model(value, arrays)
            return
        place[last] = {"$": "array", "name": "forged"} if isinstance(value, np.ndarray) else value

    return change


def test_a_state_is_its_own_inverse():
    assert forged(lambda *_: None).n_features_in_ == 2


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        (("fitted", "estimator_"), None, "must be an estimator"),
        (("fitted", "estimator_"), SVR(), "needs a classifier"),
        (("params", "cv"), [3], "cv must be"),
        (("params", "method"), "guess", "no method"),
        (("fitted", "_own_scores_"), {}, "no known kind"),
        (("fitted", "_own_scores_", "scores"), np.zeros((2, 2)), "scores must be"),
        (("fitted", "_own_scores_", "starts"), np.array([0, 70, 60]), "starts must"),
        (("fitted", "probabilities_", "n_classes"), 3, "must be of 2 classes"),
        (("fitted", "probabilities_", "curves"), None, "no known kind"),
        (("fitted", "probabilities_", "curves", "kind"), "VennAbers", "written with f, W, S"),
        (("fitted", "probabilities_", "curves", "kind"), "Popen", "no known kind"),
        (("fitted", "probabilities_", "curves", "slope"), np.zeros(2), "slope must be"),
        (("fitted", "probabilities_", "curves", "slope"), [1.0], "slope of curves must be Floats"),
    ],
)
def test_forged_classifiers_are_refused(path, value, told):
    with pytest.raises(ModelFormatError, match=told):
        forged(replacing(path, value))


def test_sums_that_do_not_rise_are_refused():
    """The hull of a Venn–Abers curve would be searched for ever."""
    path = ("fitted", "probabilities_", "curves", "W")
    good = forged(lambda *_: None, method="venn-abers").curves_.W
    for bad in (np.zeros(len(good)), np.full(len(good), np.nan), good[::-1].copy()):
        with pytest.raises(ModelFormatError, match="W must"):
            forged(replacing(path, bad), method="venn-abers")


FUNCTIONS = ("fitted", "_functions_")


@pytest.mark.parametrize(
    ("cv", "path", "value", "told"),
    [
        (3, ("fitted", "residuals_"), np.zeros(3), "rows of a fold"),
        (3, ("fitted", "_without_"), np.full(60, 9), "fold of each sample"),
        (3, ("fitted", "_folds_"), [[1, 2]], "a fold is a machine"),
        ("leave-one-out", (*FUNCTIONS, "output"), np.full(60, 10**6), "function of each sample"),
        ("leave-one-out", (*FUNCTIONS, "expansion", "b"), np.zeros(1), "one for each b"),
        ("leave-one-out", (*FUNCTIONS, "expansion", "kernel"), None, "must be Kernel"),
        ("leave-one-out", (*FUNCTIONS, "expansion", "vectors"), np.zeros((1, 2)), "vectors"),
    ],
)
def test_forged_regressors_are_refused(cv, path, value, told):
    with pytest.raises(ModelFormatError, match=told):
        forged(replacing(path, value), SVR(), cv=cv)


def test_a_file_does_not_choose_the_number_of_threads():
    found = forged(replacing((*FUNCTIONS, "n_threads"), 10**6), SVR(), cv="leave-one-out")
    assert found._functions_.n_threads < 10**4


def test_a_forged_inverse_is_refused():
    with pytest.raises(ModelFormatError, match="square"):
        forged(replacing((*FUNCTIONS, "inverse"), np.zeros((3, 3))), RLSRegressor(), cv="leave-one-out")
