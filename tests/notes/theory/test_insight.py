"""model.insight: the numbers of a trained machine, against the same numbers computed apart."""

import math
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

import mercer
from mercer import theory
from mercer.kernels import Gaussian

rng = np.random.default_rng(0)
X = rng.normal(size=(70, 3))
Y = np.where(X[:, 0] + 0.4 * rng.normal(size=70) > 0, "yes", "no")
THREE = np.digitize(X[:, 0], [-0.5, 0.5])
REAL = np.sin(X[:, 0])


@pytest.mark.parametrize("bias", [True, False, "regularized"])
def test_a_soft_margin(bias):
    model = mercer.SVC(C=0.7, gamma=0.5, bias=bias, tol=1e-6).fit(X, Y)
    found = model.insight(X, Y, delta=0.1)
    f, s = model.decision_function(X), np.where(Y == "yes", 1, -1)
    assert found.risks["zero_one"] == np.mean(np.where(f >= 0, 1, -1) != s)
    assert found.risks["hinge"] == pytest.approx(np.maximum(0, 1 - s * f).mean())
    assert found.n_support == len(model.support_)
    assert found.least_kernel_values == 70 * len(model.support_)
    assert found.kernel_values == model.n_kernel_values_ >= 70 * len(model.support_)  # nothing less can be a proof
    assert found.kernel_values_multiple == model.n_kernel_values_ / (70 * len(model.support_))
    free = np.abs(model.dual_coef_[0]) < 0.7 * (1 - 1e-9)
    assert found.least_operations == free.sum() ** 3
    assert found.origin_radius == 1.0
    assert found.effective_dimension == pytest.approx(model.rkhs_norm_**2)
    K = Gaussian(gamma=0.5)(X)
    assert found.enclosing_radius == pytest.approx(theory.enclosing_ball(K, kernel="precomputed").radius, abs=1e-7)
    norm, trace = model.rkhs_norm_, 70.0
    if bias == "regularized":
        norm, trace = math.hypot(norm, model.intercept_[0]), 140.0
    expected = theory.soft_margin_bound(np.maximum(0, 1 - s * f), trace, norm, delta=0.1, bias=bias is True)
    bound = found.bounds["soft margin"]
    assert bound.value == pytest.approx(expected.value)
    assert bound.applies is (False if bias is True else None)
    assert bound.vacuous
    assert found.bounds["support vectors"].value <= found.n_support + 1e-9
    assert found.complexity.value <= found.complexity.bound.value + 3 * found.complexity.standard_error
    assert {"soft margin", "support vectors"} == set(found.bounds)
    text = str(found)
    for words in ("yes against no", "samples                 70, 3 features", "(vacuous)", "effective dimension"):
        assert words in text
    assert ("f has no bias, or one that its norm includes: does not hold" in text) == (bias is True)


def test_a_hard_margin_with_a_linear_kernel():
    wide = X[np.abs(X[:, 0]) > 0.3]
    labels = np.where(wide[:, 0] > 0, 1, -1)
    model = mercer.SVC(C=np.inf, kernel="linear", tol=1e-6).fit(wide, labels)
    found = model.insight(wide, labels)
    radius = theory.enclosing_ball(wide, kernel="linear").radius
    bound = found.bounds["leave one out"]
    assert bound.value == pytest.approx(4 * radius**2 * model.rkhs_norm_**2 / len(wide), rel=1e-6)
    assert bound.applies is True
    assert found.bounds["linear rules"].value == theory.linear_rules_bound(0.0, 3, len(wide), bias=True).value


def test_several_classes():
    found = mercer.SVC(gamma=0.5).fit(X, THREE).insight(X, THREE)
    assert [part.name for part in found] == ["0 against 1", "0 against 2", "1 against 2"]
    assert [part.n for part in found] == [np.isin(THREE, pair).sum() for pair in ([0, 1], [0, 2], [1, 2])]
    assert all("support vectors" not in part.bounds for part in found)
    assert all(part.kernel_values_multiple is None for part in found)  # of several problems nobody counts


@pytest.mark.parametrize(
    ("model", "target"),
    [
        (mercer.SVR(), REAL),
        (mercer.RLSRegressor(), np.column_stack([REAL, X[:, 1]])),
        (mercer.RLSClassifier(), THREE),
        (mercer.OneClassSVM(), None),
        (mercer.SVDD(), None),
        (mercer.NystromRLS(n_landmarks=20), REAL),
        (mercer.LinearSVC(), Y),
        (mercer.LinearSVR(), REAL),
        (mercer.PegasosSVC(kernel="rbf", random_state=0), Y),
        (mercer.KernelMachineClassifier(), Y),
        (mercer.NuSVC(nu=0.3), Y),
        (mercer.QuantileSVR(quantiles=[0.2, 0.8]), REAL),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_kind_of_machine(model, target):
    found = model.fit(X, target).insight(X, target)
    for one in found if isinstance(found, list) else [found]:
        assert one.n > 0
        assert one.norm > 0
        assert str(one)
    if isinstance(model, mercer.SVR):
        assert found.risks["squared"] == pytest.approx(np.mean((model.predict(X) - REAL) ** 2))
        assert found.n_support == len(model.support_)


def test_a_matrix_of_kernel_values():
    K = Gaussian(gamma=0.5)(X)
    given = mercer.SVC(kernel="precomputed", bias=False, tol=1e-9).fit(K, Y).insight(K, Y)
    known = mercer.SVC(kernel=Gaussian(gamma=0.5), bias=False, tol=1e-9).fit(X, Y).insight(X, Y)
    assert given.bounds["soft margin"].value == pytest.approx(known.bounds["soft margin"].value, rel=1e-6)
    K3 = mercer.SVC(kernel="precomputed").fit(K, THREE).insight(K, THREE)
    assert len(K3) == 3


def test_many_samples_get_the_bound_on_their_complexity(monkeypatch):
    monkeypatch.setattr("mercer.notes.theory.insights._WHOLE_MATRIX_ROWS", 50)
    found = mercer.SVC(gamma=0.5).fit(X, Y).insight(X, Y)
    assert found.enclosing_radius is None
    assert found.complexity.value == pytest.approx(2 * found.norm / 70 * math.sqrt(70))
    assert "not computed" in str(found)


def test_before_training():
    with pytest.raises(ValueError, match="not fitted"):
        mercer.SVC().insight(X, Y)


# --- where the data chose -------------------------------------------------------------------------------------------

FIXED = mercer.SVC(gamma=0.5, bias=False)
LEARNT = {
    "gamma of the samples": mercer.SVC(bias=False),
    "search": mercer.TunedSVC({"gamma": [0.1, 1.0]}, estimator=FIXED, cv=3),
    "scikit-learn's search": GridSearchCV(FIXED, {"gamma": [0.1, 1.0]}, cv=3),
    "weights of kernels": mercer.MKLClassifier(kernel=[Gaussian(gamma=0.1), Gaussian(gamma=1.0)]),
    "scaled": make_pipeline(StandardScaler(), FIXED),
    "scaled within a search": GridSearchCV(make_pipeline(StandardScaler(), FIXED), {"svc__C": [0.1, 1.0]}, cv=3),
    "table": mercer.Tabular(FIXED),
    "likelihood": mercer.GaussianProcessClassifier(kernel=Gaussian(gamma=0.5)),
    "learnt kernel": mercer.SVC(
        kernel=mercer.learn_kernel(X, Y, kernel=Gaussian(gamma=0.5), criterion="radius-margin", max_iter=3).kernel,
        bias=False,
    ),
    "part of the kernel is learnt": mercer.SVC(
        kernel=2 * mercer.learn_kernel(X, Y == "yes", kernel=Gaussian(gamma=0.5), max_iter=3).kernel + 1, bias=False
    ),
}
CHOSEN_BEFORE = {
    "numbers": FIXED,
    "a kernel of numbers": mercer.SVC(kernel=2 * Gaussian(gamma=0.5), bias=False),
    "search of C": mercer.TunedSVC({"C": [0.1, 1.0]}, estimator=FIXED, cv=3),
    "a step without state": make_pipeline(Normalizer(), FIXED),
}


@pytest.mark.parametrize("name", [*LEARNT, *CHOSEN_BEFORE])
@pytest.mark.filterwarnings("ignore:the best score is at the edge")
def test_a_bound_does_not_apply_where_the_data_chose_kernel_or_scale(name):
    model = {**LEARNT, **CHOSEN_BEFORE}[name].fit(X, Y)
    bound = mercer.unwrap(model).insight(X, Y).bounds["soft margin"]
    fixed = next(each for each in bound.assumptions if each.text.startswith("the kernel, its parameters"))
    assert fixed.holds is (False if name in LEARNT else None)
    assert bound.applies is (False if name in LEARNT else None)


def test_a_search_that_finds_nothing_better_returns_a_kernel_of_its_own():
    given = Gaussian(gamma=0.5)
    found = mercer.learn_kernel(X, Y, kernel=given, criterion="alignment", max_iter=1).kernel
    assert found is not given
    assert (given.learnt, found.learnt) == (False, True)


@pytest.mark.filterwarnings("ignore:the best score is at the edge")
def test_clones_and_files_know_that_a_kernel_was_learnt(tmp_path):
    """Pipelines, searches and files copy a machine's kernel; no copy may be taken for one chosen before the samples."""
    found = mercer.learn_kernel(X, Y, kernel=Gaussian(gamma=0.5), criterion="alignment", max_iter=1).kernel
    machine = mercer.SVC(kernel=found, bias=False).fit(X, Y)
    mercer.save(machine, tmp_path / "m.mercer")
    within = mercer.SVC(kernel=2 * found + 1, bias=False)
    mercer.save(clone(within).fit(X, Y), tmp_path / "sum.mercer")
    copies = [
        clone(machine).fit(X, Y),
        clone(clone(within)).fit(X, Y),
        make_pipeline(Normalizer(), clone(machine)).fit(X, Y),
        mercer.load(tmp_path / "m.mercer"),
        mercer.load(tmp_path / "sum.mercer"),
        pickle.loads(pickle.dumps(machine)),
        mercer.TunedSVC({"C": [0.1, 1.0, 10.0]}, estimator=machine, cv=3).fit(X, Y),
    ]
    for model in copies:
        bound = mercer.unwrap(model).insight(X, Y).bounds["soft margin"]
        assert bound.applies is False
    assert mercer.load(tmp_path / "m.mercer").kernel.gamma == found.gamma
    given = clone(Gaussian(gamma=0.5))
    assert not given.learnt


def test_bounds_of_what_a_scaler_made():
    wide = X[np.abs(X[:, 0]) > 0.3]
    labels = np.where(wide[:, 0] > 0, 1, -1)
    model = make_pipeline(StandardScaler(), mercer.SVC(C=np.inf, kernel="linear", tol=1e-6)).fit(wide, labels)
    bounds = mercer.unwrap(model).insight(wide, labels).bounds
    assert bounds["leave one out"].applies is False
    assert bounds["linear rules"].applies is False
    assert "a fit without one sample has the same kernel and features: does not hold" in str(bounds["leave one out"])


# --- names of columns -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "target"),
    [(mercer.SVR(), REAL), (mercer.RLSRegressor(), REAL), (mercer.OneClassSVM(), None), (mercer.LinearSVR(), REAL)],
    ids=lambda value: type(value).__name__,
)
def test_columns_in_another_order_are_refused(model, target):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abc"))
    model = clone(model).fit(frame, target)
    expected = clone(model).fit(X, target).insight(X, target)
    assert model.insight(frame, target).risks == expected.risks
    with pytest.raises(ValueError, match="feature names"):
        model.insight(frame[["b", "a", "c"]], target)


def test_risks_of_a_gaussian_process_name_the_function_that_they_are_of():
    model = mercer.GaussianProcessClassifier(optimise=False).fit(X, Y)
    found, s = model.insight(X, Y), np.where(Y == "yes", 1, -1)
    mean = np.ravel(model.latent_mean_and_variance(X)[0])
    assert found.risks["hinge"] == pytest.approx(np.maximum(0, 1 - s * mean).mean())
    assert found.risks["ramp"] == pytest.approx(np.clip(1 - s * mean, 0, 1).mean())
    assert found.risks["hinge"] != pytest.approx(np.maximum(0, 1 - s * model.decision_function(X)).mean(), rel=1e-3)
    assert "latent mean, to which the risks belong; decision_function differs" in str(found)
    assert "function " not in str(mercer.SVC().fit(X, Y).insight(X, Y)).split("bias")[0]
