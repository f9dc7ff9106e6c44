"""RidgePath.at(lam): the machine of any λ, which is that of a fit with it."""

import pickle

import numpy as np
import pytest

import mercer
from mercer import RLSClassifier, RLSClassifierCV, RLSRegressor, RLSRegressorCV
from mercer.kernels import Gaussian

rng = np.random.default_rng(0)
X = np.repeat(rng.normal(size=(30, 2)), 2, axis=0)[:50]  # repeated samples are merged
Y = np.sin(X[:, 0]) + 0.2 * rng.normal(size=50)
LABELS = np.where(X[:, 0] + 0.5 * rng.normal(size=50) > 0, "b", "a")
WEIGHT = rng.integers(0, 3, 50).astype(float)
NEW = rng.normal(size=(8, 2))


@pytest.mark.parametrize("lam", [1e-3, 0.37, 20.0])
@pytest.mark.parametrize("bias", [True, False])
def test_it_is_the_machine_of_a_fit(lam, bias):
    before = X.copy()
    path = RLSRegressorCV(bias=bias).fit(before, Y, sample_weight=WEIGHT).path_
    before[:] = 0.0  # what was given may change afterwards
    found, expected = path.at(lam), RLSRegressor(lam=lam, bias=bias).fit(X, Y, sample_weight=WEIGHT)
    assert found.converged_
    assert found.certificate_.primal == pytest.approx(expected.certificate_.primal, rel=1e-9)
    np.testing.assert_allclose(found.predict(NEW), expected.predict(NEW), rtol=1e-8)
    np.testing.assert_allclose(found.dual_coef_, expected.dual_coef_[WEIGHT > 0], rtol=1e-6, atol=1e-9)


def test_on_the_path_it_is_the_path():
    model = RLSRegressorCV(lams=[0.1, 1.0, 10.0]).fit(X, np.column_stack([Y, X[:, 1]]))
    for k, lam in enumerate(model.path_.lams):
        found = model.path_.at(float(lam))
        norms = [f.norm for f in found.function_]
        np.testing.assert_allclose(norms, model.path_.norms[k], rtol=1e-6)
    np.testing.assert_allclose(model.path_.at(model.lam_).predict(NEW), model.predict(NEW), rtol=1e-7)


def test_classifiers_with_weights_of_classes():
    model = RLSClassifierCV(class_weight="balanced").fit(X, LABELS, sample_weight=WEIGHT)
    expected = RLSClassifier(lam=0.5, class_weight="balanced").fit(X, LABELS, sample_weight=WEIGHT)
    np.testing.assert_allclose(model.path_.at(0.5).decision_function(NEW), expected.decision_function(NEW), rtol=1e-7)
    again = model.path_.at(0.5, X, LABELS, WEIGHT)
    np.testing.assert_allclose(again.decision_function(NEW), expected.decision_function(NEW), rtol=1e-7)


def test_every_point_of_a_grid():
    model = RLSRegressorCV(grid={"gamma": [0.1, 2.0]}).fit(X, Y)
    for path, gamma in zip(model.paths_, (0.1, 2.0), strict=True):
        expected = RLSRegressor(lam=0.2, gamma=gamma).fit(X, Y)
        np.testing.assert_allclose(path.at(0.2).predict(NEW), expected.predict(NEW), rtol=1e-7)


def test_linear_and_precomputed_kernels_need_their_samples(tmp_path):
    linear = RLSRegressorCV(kernel="linear").fit(X, Y)
    with pytest.raises(ValueError, match=r"keeps no training samples: call at\(lam, X, y\)"):
        linear.path_.at(1.0)
    expected = RLSRegressor(lam=2.0, kernel="linear").fit(X, Y)
    np.testing.assert_allclose(linear.path_.at(2.0, X, Y).coef_, expected.coef_, rtol=1e-9)
    K = Gaussian(gamma=0.5)(X)
    given = RLSRegressorCV(kernel="precomputed").fit(K, Y).path_
    with pytest.raises(ValueError, match="keeps no training samples"):
        given.at(1.0)
    np.testing.assert_allclose(
        given.at(1.0, K, Y).predict(K[:5]),
        RLSRegressor(lam=1.0, kernel=Gaussian(gamma=0.5)).fit(X, Y).predict(X[:5]),
        rtol=1e-7,
    )


def test_pickles_know_the_samples_and_files_do_not(tmp_path):
    model = RLSRegressorCV().fit(X, Y)
    expected = model.path_.at(0.3).predict(NEW)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).path_.at(0.3).predict(NEW), expected)
    mercer.save(model, tmp_path / "model.mercer")
    loaded = mercer.load(tmp_path / "model.mercer")
    np.testing.assert_array_equal(loaded.path_.lams, model.path_.lams)
    with pytest.raises(ValueError, match="was read from a file"):
        loaded.path_.at(0.3)


def test_names_of_features_are_kept():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["one", "two"])
    found = RLSRegressorCV().fit(frame, Y).path_.at(0.3)
    assert found.feature_names_in_.tolist() == ["one", "two"]
    found.predict(frame[:3])
