"""Calibrated classifiers against scikit-learn's, and their sets against the law that they promise.

scikit-learn's checks are in this file. Curves: tests/calibration/test_curves.py. Tools: tests/tools.
Weights: tests/calibration/test_weights.py. Fits of folds: tests/calibration/test_learnt_again.py,
tests/calibration/test_which_samples_are_left_out.py. Claims: tests/claims/test_false_claims_of_folds.py.
Files: tests/files/mercer_file/test_calibrated_models.py. Noise: tests/claims/test_calibrated_noise.py.
scikit-learn's own wrappers around machines: tests/estimators/test_calibration.py.
"""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize_scalar
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_blobs, make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import log_loss
from sklearn.model_selection import LeaveOneOut, StratifiedKFold, cross_val_predict, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC as PeerSVC
from sklearn.svm import LinearSVC as PeerLinearSVC

import mercer
from contracts import scikit_learn_checks
from mercer import SVC, KernelMachineClassifier, LinearSVC, NuSVC, RLSClassifier
from mercer.calibration import CalibratedClassifier, CalibratedRegressor
from mercer.model_selection.held_out.machines import out_of_fold


# A check has fewer than five samples of a class; scikit-learn's own is checked with cv=3 too.
def test_scikit_learn_checks() -> None:
    scikit_learn_checks.hold(CalibratedClassifier(cv=3))


@scikit_learn_checks.of_each_in_turns(
    [CalibratedClassifier(method=method, cv=3) for method in ("isotonic", "temperature", "venn-abers")], turns=3
)
def test_scikit_learn_checks_of_other_methods(estimator, share) -> None:
    scikit_learn_checks.hold(estimator, share=share)


def two_classes(n: int = 300, seed: int = 0):
    return make_classification(n, 6, n_informative=3, flip_y=0.15, class_sep=0.8, random_state=seed)


def standardised(load):
    X, y = load(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_two_classes_agree_with_scikit_learn(method: str) -> None:
    X, y = two_classes()
    machine = SVC(C=2.0, gamma=0.2, tol=1e-6).fit(X, y)
    ours = machine.calibrate(X, y, method=method)
    theirs = CalibratedClassifierCV(clone(machine), ensemble=False, method=method, cv=5).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=2e-4)
    assert ours.estimator_.dual_coef_ is machine.dual_coef_


@pytest.mark.parametrize("load", [load_iris, load_digits, load_breast_cancer])
def test_probabilities_lose_no_more_than_scikit_learns(load) -> None:
    X, y = standardised(load)
    losses = []
    for seed in range(3):
        X1, X2, y1, y2 = train_test_split(X, y, test_size=0.4, random_state=seed, stratify=y)
        machine = SVC(C=1.0, gamma=1.0 / X.shape[1]).fit(X1, y1)
        theirs = CalibratedClassifierCV(clone(machine), ensemble=False).fit(X1, y1)
        losses.append(
            [log_loss(y2, machine.calibrate(X1, y1).predict_proba(X2)), log_loss(y2, theirs.predict_proba(X2))]
        )
    ours, theirs = np.mean(losses, axis=0)
    assert ours <= 1.02 * theirs


@pytest.mark.parametrize("method", ["sigmoid", "isotonic", "temperature", "venn-abers"])
@pytest.mark.parametrize("load", [load_iris, load_breast_cancer])
def test_every_method_gives_probabilities_that_predict_agrees_with(method: str, load) -> None:
    X, y = standardised(load)
    model = SVC().fit(X, y).calibrate(X, y, method=method)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert (p >= 0).all()
    chosen = p[np.arange(len(y)), np.searchsorted(model.classes_, model.predict(X))]
    np.testing.assert_array_equal(chosen, p.max(axis=1))
    assert model.score(X, y) > 0.9
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), p)


def test_temperature_leaves_the_decision() -> None:
    X, y = two_classes(seed=3)
    machine = SVC().fit(X, y)
    np.testing.assert_array_equal(machine.calibrate(X, y, method="temperature").predict(X), machine.predict(X))
    three = np.random.default_rng(3).integers(0, 3, len(X))  # with a function for each class too, without votes
    machine = SVC(multiclass="ovr").fit(X, three)
    np.testing.assert_array_equal(machine.calibrate(X, three, method="temperature").predict(X), machine.predict(X))


def test_the_temperature_of_two_classes_is_scikit_learns_but_for_platts_targets() -> None:
    X, y = two_classes()
    machine = SVC(C=2.0, gamma=0.2, tol=1e-6).fit(X, y)
    ours = machine.calibrate(X, y, method="temperature")
    peer = CalibratedClassifierCV(clone(machine), ensemble=False, method="temperature", cv=5).fit(X, y)
    f = cross_val_predict(machine, X, y, cv=StratifiedKFold(5), method="decision_function")
    positive = y == 1
    n = positive.sum()

    def likeliest(target: np.ndarray) -> float:
        return minimize_scalar(lambda s: np.sum(np.logaddexp(0, s * f) - target * s * f), bounds=(0, 50)).x

    soft = np.where(positive, (n + 1) / (n + 2), 1 / (len(y) - n + 2))
    np.testing.assert_allclose(ours.curves_.slope[0], likeliest(soft), rtol=1e-4)
    theirs = 2 * peer.calibrated_classifiers_[0].calibrators[0].beta_  # of the two functions −f and f
    np.testing.assert_allclose(theirs, likeliest(positive), rtol=1e-4)
    assert 0 < np.abs(ours.predict_proba(X) - peer.predict_proba(X)).max() < 0.03


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_the_temperature_of_one_function_for_each_class_is_scikit_learns(load) -> None:
    X, y = standardised(load)
    learn, rest, codes, truth = train_test_split(X, y, random_state=0, stratify=y)
    mine = CalibratedClassifier(LinearSVC(bias="regularized"), "temperature").fit(learn, codes)
    peer = CalibratedClassifierCV(PeerLinearSVC(), method="temperature", ensemble=False).fit(learn, codes)
    theirs = peer.calibrated_classifiers_[0].calibrators[0].beta_
    np.testing.assert_allclose(mine.curves_.slope, theirs, rtol=0.01)  # the machines have a tol of their own
    np.testing.assert_allclose(mine.predict_proba(rest), peer.predict_proba(rest), atol=0.01)
    assert log_loss(truth, mine.predict_proba(rest)) < 1.02 * log_loss(truth, peer.predict_proba(rest))
    np.testing.assert_array_equal(mine.predict(rest), mine.estimator_.predict(rest))


def test_classes_that_are_far_apart_do_not_make_a_temperature_of_zero() -> None:
    X, y = make_blobs(60, centers=[[0, 0], [50, 0], [0, 50]], random_state=0)
    model = CalibratedClassifier(LinearSVC(), "temperature").fit(X, y)
    p = model.predict_proba(X).max(axis=1)
    assert p.min() < 1 - 1e-3  # of 60 samples without an error: 1/61 for the nearest


@pytest.mark.parametrize("cv", [5, StratifiedKFold(3)], ids=str)
def test_fewer_samples_of_a_class_than_folds_are_refused(cv) -> None:
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = np.where(np.arange(40) < 2, "rare", "often")
    with pytest.raises(ValueError, match=r"folds, but class 'rare' has 2 samples; use fewer folds"):
        CalibratedClassifier(SVC(), cv=cv).fit(X, y)
    weight = np.ones(40)
    weight[2:38] = 0.0  # two members of the other class are left
    with pytest.raises(ValueError, match=r"folds, but class .* has 2 samples"):
        SVC().fit(X, y).calibrate(X, y, cv=cv, sample_weight=weight)
    CalibratedClassifier(SVC(), cv=2).fit(X, y)


def test_steps_before_the_machine_are_fitted_in_every_fold() -> None:
    X, y = load_wine(return_X_y=True)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    pipeline = make_pipeline(StandardScaler(), SVC(decision_function_shape="ovo"))
    model = CalibratedClassifier(pipeline).fit(X, y, weight)
    splits = list(StratifiedKFold(5).split(X, y))
    found = out_of_fold(model.estimator_, X, y, weight, splits)
    for train, test in splits:
        scaler = StandardScaler().fit(X[train])
        machine = clone(pipeline[-1]).fit(scaler.transform(X[train]), y[train], weight[train])
        np.testing.assert_array_equal(found[test], machine.decision_function(scaler.transform(X[test])))
    assert log_loss(y, model.predict_proba(X)) < 0.2
    # NumPy rounds exp by where a number stands in its array.
    np.testing.assert_allclose(model.predict_proba(X[::2]), model.predict_proba(X)[::2], rtol=1e-12)
    assert clone(model).set_params(estimator__svc__C=3.0).estimator[-1].C == 3.0


def test_frozen_models_are_asked_as_they_are() -> None:
    X, y = load_wine(return_X_y=True)
    fitted = make_pipeline(StandardScaler(), SVC()).fit(X[::2], y[::2])
    model = CalibratedClassifier(FrozenEstimator(fitted)).fit(X[1::2], y[1::2])
    seen = fitted[0].transform(X)
    same = fitted[-1].calibrate(seen[1::2], y[1::2], cv="held-out")
    np.testing.assert_array_equal(model.predict_proba(X), same.predict_proba(seen))
    with pytest.raises(TypeError, match="SVC is not a classifier of mercer"):
        CalibratedClassifier(make_pipeline(StandardScaler(), PeerSVC())).fit(X, y)


@pytest.mark.parametrize(
    "model", [CalibratedClassifier(cv=3), CalibratedRegressor(cv=3)], ids=lambda m: type(m).__name__
)
def test_names_of_features_are_compared_once(model) -> None:
    frame, y = load_iris(return_X_y=True, as_frame=True)
    model.fit(frame, y)
    ask = "predict_proba" if hasattr(model, "predict_proba") else "predict_interval"
    want = getattr(model, ask)(frame)
    with pytest.warns(UserWarning, match="does not have valid feature names, but Calibrated") as told:
        np.testing.assert_array_equal(getattr(model, ask)(frame.to_numpy()), want)
    assert len(told) == 1
    without = copy.deepcopy(model)
    without.feature_names_in_ = None  # as shap does
    np.testing.assert_array_equal(getattr(without, ask)(frame.to_numpy()), want)  # any warning would be an error
    with pytest.raises(ValueError, match="feature names should match"):
        getattr(model, ask)(frame.iloc[:, ::-1])


def test_a_larger_decision_value_never_has_a_smaller_probability() -> None:
    X, y = two_classes(seed=4)
    for flipped in (y, np.random.default_rng(0).permutation(y)):  # labels without any meaning too
        model = SVC(C=100.0).fit(X, flipped).calibrate(X, flipped)
        order = np.argsort(model.estimator_.decision_function(X))
        assert (np.diff(model.predict_proba(X)[order, 1]) >= 0).all()


@pytest.mark.parametrize(
    "machine",
    [
        SVC(multiclass="ovr"),
        SVC(multiclass="crammer-singer"),
        SVC(kernel="linear"),
        NuSVC(nu=0.2),
        LinearSVC(),
        RLSClassifier(),
        KernelMachineClassifier("squared_hinge", lam=0.1),
        KernelMachineClassifier("logistic", lam=0.1),
    ],
    ids=lambda machine: (
        f"{type(machine).__name__} {getattr(machine, 'multiclass', '')} {getattr(machine, 'kernel', '')}"
    ),
)
def test_every_classifier_can_be_calibrated(machine) -> None:
    X, y = standardised(load_iris)
    model = machine.fit(X, y).calibrate(X, y, cv=3)
    assert log_loss(y, model.predict_proba(X)) < 0.5


def test_sparse_and_precomputed_samples_and_weights_give_the_same_answer() -> None:
    X, y = two_classes(120)
    rng = np.random.default_rng(0)
    weight = rng.integers(1, 3, 120).astype(float)
    machine = SVC(gamma=0.3, tol=1e-7).fit(X, y, weight)
    dense = machine.calibrate(X, y, sample_weight=weight).predict_proba(X)
    sparse = (
        SVC(gamma=0.3, tol=1e-7).fit(sp.csr_array(X), y, weight).calibrate(sp.csr_array(X), y, sample_weight=weight)
    )
    np.testing.assert_allclose(sparse.predict_proba(sp.csr_array(X)), dense, atol=1e-5)
    K = machine.kernel_(X, X)
    given = SVC(kernel="precomputed", tol=1e-7).fit(K, y, weight).calibrate(K, y, sample_weight=weight)
    np.testing.assert_allclose(given.predict_proba(K), dense, atol=1e-5)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("classes", [2, 4])
def test_values_of_samples_left_out_are_those_of_a_fit_without_them(classes: int, sparse: bool, bias) -> None:
    X, y = make_classification(160, 6, n_informative=4, n_classes=classes, flip_y=0.1, random_state=3)
    X[100:110], y[100:110] = X[:10], y[:10]  # copies in other folds
    X = sp.csr_array(np.where(np.abs(X) > 0.3, X, 0.0)) if sparse else X
    weight = np.random.default_rng(0).choice([1.0, 2.0, 0.5], size=160)
    machine = SVC(C=5.0, gamma=0.2, tol=1e-7, bias=bias).fit(X, y, weight)
    splits = list(StratifiedKFold(7, shuffle=True, random_state=1).split(y, y))  # more than are summed together
    found = out_of_fold(machine, X, y, weight, splits)
    for train, test in splits:
        alone = clone(machine).fit(X[train], y[train], weight[train])
        true = alone._decision(X[test])
        told = np.isfinite(found[test])
        assert told.sum() == len(test) * (classes - 1)
        np.testing.assert_allclose(found[test][told], true[told], atol=1e-5)


def test_without_memory_for_the_kernel_matrix_the_answer_is_the_same() -> None:
    X, y = two_classes(400)
    machine = SVC(tol=1e-7).fit(X, y)
    small = SVC(tol=1e-7, cache_size=0.2).fit(X, y)
    np.testing.assert_allclose(
        small.calibrate(X, y).predict_proba(X), machine.calibrate(X, y).predict_proba(X), atol=1e-5
    )


def coverage(n_splits: int, alpha: float, cv) -> tuple[np.ndarray, float]:
    """How often each class's true label is in the set, over fresh draws, and the standard error of that share."""
    inside: list[list[bool]] = [[], []]
    for seed in range(n_splits):
        X, y = two_classes(260, seed)
        X1, X2, X3, y1, y2, y3 = X[:80], X[80:160], X[160:], y[:80], y[80:160], y[160:]
        machine = SVC().fit(X1, y1) if cv == "held-out" else SVC().fit(X[:160], y[:160])
        known = (X2, y2) if cv == "held-out" else (X[:160], y[:160])
        sets = machine.calibrate(*known, cv=cv).predict_set(X3, alpha)
        for k in (0, 1):
            inside[k].append(sets[y3 == k, k].mean())
    means = np.array([np.mean(part) for part in inside])
    return means, float(max(np.std(part) for part in inside) / np.sqrt(n_splits))


@pytest.mark.parametrize("n_splits", [25, pytest.param(200, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("cv", ["held-out", 5])
def test_sets_miss_the_true_class_as_often_as_they_say(cv, n_splits: int) -> None:
    for alpha in (0.1, 0.3):
        means, error = coverage(n_splits, alpha, cv)
        assert (np.abs(means - (1 - alpha)) <= 3 * error + 0.015).all(), (alpha, means, error)  # 1/(n_k + 1) in steps


def test_sets_of_several_classes() -> None:
    X, y = standardised(load_wine)
    model = SVC().fit(X, y).calibrate(X, y)
    own = model.predict_set(X, 0.05)[np.arange(len(y)), y]
    assert own.mean() >= 0.93
    np.testing.assert_array_equal(model.p_values(X) > 0.05, model.predict_set(X, 0.05))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_p_values_of_several_classes_by_their_definition(multiclass: str, weighted: bool) -> None:
    X, y = standardised(load_wine)
    weight = np.random.default_rng(0).integers(1, 4, len(y[::2])) if weighted else np.ones(len(y[::2]))
    machine = SVC(multiclass=multiclass, decision_function_shape="ovo").fit(X[1::2], y[1::2])
    model = machine.calibrate(X[::2], y[::2], cv="held-out", sample_weight=weight)

    def scores(rows: np.ndarray) -> np.ndarray:
        """How well each row fits each class: its least probability against another one, or that against the rest."""
        P = 1 / (1 + np.exp(-(model.curves_.slope * machine.decision_function(rows) + model.curves_.offset)))
        if multiclass == "ovr":
            return P
        first, second, third = P.T  # of 0 against 1, 0 against 2, 1 against 2
        return np.stack([np.minimum(first, second), np.minimum(1 - first, third), np.minimum(1 - second, 1 - third)], 1)

    known, new = scores(X[::2]), scores(X[1::4])
    expected = np.empty_like(new)
    for k in range(3):
        own, mass = known[y[::2] == k, k], weight[y[::2] == k]
        expected[:, k] = [(1 + mass[own <= one].sum()) / (1 + mass.sum()) for one in new[:, k]]
    np.testing.assert_allclose(model.p_values(X[1::4]), expected, rtol=1e-12)
    assert len(np.unique(expected)) > 20


def test_p_values_of_two_classes_by_their_definition() -> None:
    X, y = two_classes(120)
    machine = SVC().fit(X[:40], y[:40])
    found = machine.calibrate(X[40:80], y[40:80], cv="held-out").p_values(X[80:])
    known, new = machine.decision_function(X[40:80]), machine.decision_function(X[80:])
    for k, sign in enumerate((-1.0, 1.0)):
        own = sign * known[y[40:80] == k]
        expected = [(1 + (own <= sign * one).sum()) / (1 + len(own)) for one in new]
        np.testing.assert_allclose(found[:, k], expected, rtol=1e-12)


def test_venn_abers_gives_both_ends() -> None:
    X, y = two_classes()
    model = SVC().fit(X, y).calibrate(X, y, method="venn-abers")
    low, high = model.predict_interval(X)
    p = model.predict_proba(X)[:, 1]
    assert (low <= p).all()
    assert (p <= high).all()
    with pytest.raises(ValueError, match="venn-abers"):
        SVC().fit(X, y).calibrate(X, y).predict_interval(X)


def test_bad_requests_are_answered() -> None:
    X, y = two_classes(60)
    machine = SVC().fit(X, y)
    with pytest.raises(ValueError, match="method='plat' must be"):
        machine.calibrate(X, y, method="plat")
    with pytest.raises(ValueError, match="holds out sample"):
        machine.calibrate(X, y, cv=[(np.arange(30), np.arange(30, 60))])
    with pytest.raises(ValueError, match="no sample of class 1"):
        machine.calibrate(X[y == 0], y[y == 0], cv="held-out")
    with pytest.raises(ValueError, match="alpha=0 must be between"):
        machine.calibrate(X, y).predict_set(X, 0)
    with pytest.raises(ValueError, match="is for fitted machines"):
        CalibratedClassifier(cv="held-out").fit(X, y)
    labels = np.append(y[:-1], 7)
    with pytest.raises(ValueError, match="trains on no sample of class 7, which has 1"):
        SVC().fit(X, labels).calibrate(X, labels, cv=LeaveOneOut())


@pytest.mark.parametrize(
    "machine", [SVC(), SVC(multiclass="ovr"), RLSClassifier()], ids=["pairs", "planes", "fold by fold"]
)
def test_folds_are_told(machine, capsys) -> None:  # type: ignore[no-untyped-def]  # fixtures and several kinds
    X, y = load_iris(return_X_y=True)
    machine.fit(X, y).calibrate(X, y, cv=4)
    assert capsys.readouterr().out == ""
    machine.calibrate(X, y, cv=4, verbose=True)
    assert "4 of 4 folds of the calibration" in capsys.readouterr().out


def test_the_machine_may_decide(tmp_path):
    """With class weights, a rare class wins that is rarely the more probable one."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = np.where(X[:, 0] + rng.normal(size=200) > 2, "rare", "usual")
    machine = mercer.SVC(class_weight="balanced")
    model = mercer.CalibratedClassifier(machine, decides="machine").fit(X, y)
    other = mercer.CalibratedClassifier(machine).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), other.predict_proba(X))
    np.testing.assert_array_equal(model.predict(X), model.estimator_.predict(X))
    assert np.sum(model.predict(X) == "rare") > np.sum(other.predict(X) == "rare")
    mercer.save(model, tmp_path / "m.mercer")
    np.testing.assert_array_equal(mercer.load(tmp_path / "m.mercer").predict(X), model.predict(X))
    with pytest.raises(ValueError, match="decides='me' must be"):
        mercer.CalibratedClassifier(machine, decides="me").fit(X, y)
