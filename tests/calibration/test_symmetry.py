"""Jackknife+ and CV+ are theorems about models that learn the same from samples in any order; no others claim them."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.model_selection import LeaveOneOut
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler, TargetEncoder

import mercer
from mercer import features, losses, unsupervised
from mercer.kernels import Gaussian, Spectrum

pytestmark = pytest.mark.filterwarnings("ignore")  # of searches on grids that are too small, and of kernels

RNG = np.random.default_rng(3)
X = RNG.normal(size=(60, 3))
Y = np.sin(2 * X[:, 0]) + 0.1 * RNG.normal(size=60)
NEW = RNG.normal(size=(8, 3))
ORDER = RNG.permutation(60)
LAST = mercer.RLSRegressor(gamma=0.5)
SKIPPED = ("Tabular", "CalibratedRegressor", "TunedSVR")  # models around others; test_learnt_again has the search


class FirstRow(TransformerMixin, BaseEstimator):
    """Subtract the first training row."""

    def fit(self, X, y=None):
        self.first_ = X[0]
        return self

    def transform(self, X):
        return X - self.first_


def _ours():
    """Every regressor of mercer's."""
    found = []
    for name in mercer.__all__:
        cls = getattr(mercer, name)
        if isinstance(cls, type) and issubclass(cls, BaseEstimator) and name not in SKIPPED:
            model = cls()
            if is_regressor(model):
                found.append(pytest.param(model, id=name))
    return found


SYMMETRIC = {
    "landmarks, seeded": mercer.NystromRLS(n_landmarks=10, random_state=0),
    "scaled": make_pipeline(StandardScaler(), LAST),
    "logarithm": make_pipeline(FunctionTransformer(np.exp), LAST),
    "fourier": make_pipeline(features.RandomFourier(n_components=20, random_state=0), LAST),
    "series": make_pipeline(features.GaussianSeries(), LAST),
    "monomials": make_pipeline(features.Monomials(), LAST),
    "components": make_pipeline(unsupervised.KernelPCA(3, n_landmarks=20, random_state=0), LAST),
    "clusters": make_pipeline(unsupervised.KernelKMeans(4, random_state=0), LAST),
    "table": mercer.tabular(LAST),
    "columns": make_pipeline(ColumnTransformer([("a", StandardScaler(), [0, 1]), ("b", "passthrough", [2])]), LAST),
}
DEPENDENT = {
    "landmarks of many rows": mercer.NystromRLS(n_landmarks=8, random_state=0, cache_size=0.0035),
    "features": make_pipeline(features.Nystrom(n_components=10), LAST),
    "features in a union": make_pipeline(
        FeatureUnion([("a", StandardScaler()), ("b", features.Nystrom(n_components=10))]), LAST
    ),
    "features of columns": make_pipeline(ColumnTransformer([("a", features.Nystrom(n_components=9), [0, 2])]), LAST),
    "views": make_pipeline(unsupervised.KernelCCA(1, n_landmarks=20, random_state=0), LAST),
    "user's": make_pipeline(FirstRow(), mercer.SVR(kernel="poly", gamma=0.5)),
}


def _change(model):
    """How far predictions move when the training rows come in another order."""
    values = [clone(model).fit(X[order], Y[order]).predict(NEW) for order in (np.arange(60), ORDER)]
    return float(np.abs(values[0] - values[1]).max())


def _guarantee(model, cv=3):
    return mercer.CalibratedRegressor(model, cv=cv).fit(X, Y).guarantee_


@pytest.mark.parametrize("model", _ours())
def test_every_regressor_that_claims_a_theorem_is_symmetric(model):
    told = _guarantee(model)
    assert "CV+" in told
    assert _change(model) == 0.0


@pytest.mark.parametrize("name", SYMMETRIC)
def test_models_in_which_order_does_not_count(name):
    assert _change(SYMMETRIC[name]) < 1e-12
    assert "CV+" in _guarantee(SYMMETRIC[name])


@pytest.mark.parametrize("name", DEPENDENT)
def test_models_in_which_order_counts_claim_nothing(name):
    assert _change(DEPENDENT[name]) > 1e-6
    assert _guarantee(DEPENDENT[name]).startswith("none: ")


def test_reasons_and_cures():
    told = _guarantee(make_pipeline(features.Nystrom(n_components=10), LAST))
    assert told.startswith("none: Nystrom draws from the rows in their order with random_state=0")
    assert "use None" in told
    assert "CV+" in _guarantee(make_pipeline(features.Nystrom(n_components=10, random_state=None), LAST))
    many = mercer.NystromRLS(n_landmarks=8, cache_size=0.0035)
    assert "CV+" in _guarantee(many)  # drawn again by every fit
    assert "CV+" in _guarantee(clone(many).set_params(landmarks=NEW, random_state=0))
    assert _guarantee(clone(many).set_params(random_state=1)).startswith("none: NystromRLS draws from the rows")
    assert _guarantee(make_pipeline(PCA(2, random_state=0), LAST)).startswith("none: PCA draws")
    assert "CV+" in _guarantee(make_pipeline(PCA(2), LAST))
    assert "not known" in _guarantee(make_pipeline(FirstRow(), LAST))
    assert "not known" in _guarantee(make_pipeline(FunctionTransformer(lambda X: X - X[0]), LAST))
    assert "jackknife+" in _guarantee(SYMMETRIC["scaled"], LeaveOneOut())
    assert _guarantee(DEPENDENT["features"], LeaveOneOut()).startswith("none: ")
    pairs = mercer.KernelMachineRegressor(losses.Pairwise(), lam=0.1, kernel=Gaussian(0.5))
    assert "may depend on the order of its samples" in _guarantee(pairs)
    codes = np.round(X)
    encoded = make_pipeline(TargetEncoder(target_type="continuous"), LAST)
    assert "not known" in mercer.CalibratedRegressor(encoded, cv=3).fit(codes, Y).guarantee_


def test_models_on_other_samples_need_no_order():
    """Split conformal intervals hold for any function that did not see the samples."""
    model = make_pipeline(features.Nystrom(n_components=10), LAST).fit(X[:30], Y[:30])
    told = mercer.CalibratedRegressor(model, cv="held-out").calibrate_fitted(X[30:], Y[30:]).guarantee_
    assert told.startswith("the target is inside with probability at least 1 − alpha")


def test_strings_in_another_order():
    words = ["".join(RNG.choice(list("ab"), 6)) for _ in range(60)]
    model = mercer.SVR(kernel=Spectrum(2))
    values = [clone(model).fit([words[i] for i in order], Y[order]).predict(words) for order in (np.arange(60), ORDER)]
    np.testing.assert_array_equal(*values)
    assert "CV+" in mercer.CalibratedRegressor(model, cv=3).fit(words, Y).guarantee_


def test_guarantee_survives_a_file(tmp_path):
    for model in (DEPENDENT["landmarks of many rows"], SYMMETRIC["landmarks, seeded"]):
        found = mercer.CalibratedRegressor(clone(model), cv=3).fit(X, Y)
        mercer.save(found, tmp_path / "m.mercer")
        assert mercer.load(tmp_path / "m.mercer").guarantee_ == found.guarantee_


def test_a_seed_that_is_taken_away_later_does_not_name_a_theorem():
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20.0)
    model = make_pipeline(mercer.features.Nystrom(n_components=5, random_state=0), mercer.RLSRegressor())
    found = mercer.CalibratedRegressor(model, cv=4).fit(X, y)
    assert found.guarantee_.startswith("none: Nystrom")
    found.estimator_[0].set_params(random_state=None)
    assert found.guarantee_.startswith("none: Nystrom")
