"""scikit-learn's own checks, without exceptions; and every keyword of its SVC, whose place ours takes."""

import inspect
import warnings

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC as PeerSVC
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_dataframe_column_names_consistency, estimator_checks_generator

import mercer
import mercer.estimators
from contracts import scikit_learn_checks
from mercer import SVC
from mercer.kernels import Gaussian, Linear

# A value other than the default for every keyword of scikit-learn's SVC; one that a newer scikit-learn adds
# fails the walk below, which is its purpose.
OTHER_VALUES = {
    "C": 0.5,
    "kernel": "poly",
    "degree": 2,
    "gamma": 0.3,
    "coef0": 1.0,
    "shrinking": False,
    "probability": False,
    "tol": 1e-5,
    "cache_size": 100,
    "class_weight": {0: 1.0, 1: 3.0, 2: 1.0},
    "verbose": False,
    "max_iter": 100_000,
    "decision_function_shape": "ovo",
    "break_ties": True,
    "random_state": 0,
}


OUTLIER_CHECKS = ("check_outliers_fit_predict", "check_outliers_train")


def keywords():
    return [name for name in inspect.signature(PeerSVC.__init__).parameters if name != "self"]


# Its labels are unequal, and NuSVC says what it made of that.
@pytest.mark.filterwarnings("ignore:all .* samples end at their bound")  # targets of one check are large
@pytest.mark.filterwarnings("ignore:nu=0.5 is infeasible")
@scikit_learn_checks.of_each(
    [
        getattr(mercer.estimators, name)(
            **({"kernel": ("linear", "rbf")} if name.startswith("MKL") else {})
        )  # not three
        for name in mercer.estimators.__all__
    ]
)
def test_scikit_learns_checks(estimator):
    scikit_learn_checks.hold(estimator)


@scikit_learn_checks.of_each_in_turns(
    [
        SVC(kernel=Gaussian(gamma=0.5) + 0.1 * Linear()),
        SVC(multiclass="ovr", slack="l2", bias="regularized"),
        SVC(multiclass="crammer-singer"),
        mercer.KernelMachineClassifier("hinge", tol=1e-9),
        mercer.KernelMachineClassifier("squared"),
        mercer.KernelMachineRegressor("squared", bias=False),
        mercer.LinearSVC(loss="hinge", solver="dual"),
        mercer.LinearSVR(loss="squared_epsilon_insensitive"),
        mercer.NystromRLS(n_landmarks=20),
        mercer.NystromRLSClassifier(landmarks="leverage", lam=0.1),
        mercer.PegasosSVC(alpha=1e-2, average="last", sampling="passes", project=True),
        mercer.PegasosSVC(alpha=1e-2, kernel="rbf"),
        mercer.RLSClassifier(kernel="linear"),
        mercer.RLSRegressor(bias=False),
        mercer.RLSRegressor(kernel="linear"),
        mercer.RLSRegressorCV(kernel="linear", criterion="gcv"),
    ],
    turns=4,
)
def test_scikit_learns_checks_of_other_forms(estimator, share):
    scikit_learn_checks.hold(estimator, share=share)


@pytest.mark.filterwarnings(
    "ignore::mercer.runtime.errors.NonPSDKernelWarning"
)  # one check gives numbers that are no kernel's
@scikit_learn_checks.of_each_in_turns(
    [
        getattr(mercer, name)(kernel="precomputed")
        for name in ("SVC", "SVR", "NuSVR", "QuantileSVR", "OneClassSVM", "RLSRegressor", "RLSClassifier")
    ],
    turns=2,
)
def test_scikit_learns_checks_of_given_matrices(estimator, share):
    # These give X of shape (300, 2) as the square matrix.
    expected = OUTLIER_CHECKS if isinstance(estimator, mercer.OneClassSVM) else ()
    scikit_learn_checks.hold(estimator, expected, share)


def test_a_broken_rule_is_told():
    """A guard on the guard: every check in its turn, and what fails, or no longer fails, by its name."""

    class Meddling(SVC):
        def fit(self, X, y, sample_weight=None):
            self.C = 2.0
            return super().fit(X, y, sample_weight)

    name = "check_estimators_overwrite_params"
    names = [check.func.__name__ for _, check in estimator_checks_generator(Meddling())]
    only = (names.index(name), len(names))
    with pytest.raises(AssertionError, match=name):
        scikit_learn_checks.hold(Meddling(), share=only)
    scikit_learn_checks.hold(Meddling(), [name], only)
    scikit_learn_checks.hold(SVC(), share=only)
    with pytest.raises(AssertionError, match=f"{name} .*expected to fail"):
        scikit_learn_checks.hold(SVC(), [name], only)


@pytest.mark.parametrize("name", mercer.estimators.__all__)
def test_no_tag_skips_a_check_of_any_estimator(name):
    tags = get_tags(getattr(mercer.estimators, name)())
    assert not tags._skip_test
    assert not tags.no_validation
    assert not tags.non_deterministic
    assert not tags.input_tags.allow_nan
    assert tags.classifier_tags is None or not tags.classifier_tags.poor_score
    assert tags.regressor_tags is None or not tags.regressor_tags.poor_score
    assert tags.input_tags.sparse


def test_no_tag_skips_a_check():
    tags = get_tags(SVC())
    assert not tags._skip_test
    assert not tags.no_validation
    assert not tags.non_deterministic
    assert not tags.classifier_tags.poor_score
    assert tags.classifier_tags.multi_class
    assert tags.input_tags.sparse
    assert not tags.input_tags.pairwise
    assert not tags.input_tags.allow_nan
    assert tags.target_tags.required
    assert is_classifier(SVC())
    assert get_tags(SVC(kernel="precomputed")).input_tags.pairwise


def test_data_frames_pass_scikit_learns_check():
    """Not among the generated checks, and skipped silently where pandas is missing: so it must be there."""
    import pandas as pd

    check_dataframe_column_names_consistency("SVC", SVC())
    X = pd.DataFrame(load_iris().data, columns=["a", "b", "c", "d"])
    assert list(SVC().fit(X, load_iris().target).feature_names_in_) == ["a", "b", "c", "d"]


def test_the_checks_that_run_are_many():
    """A guard on the guard: the generator must yield the checks that kernel machines usually trip on."""
    names = {check.func.__name__ for _, check in estimator_checks_generator(SVC())}
    assert len(names) > 40
    assert {
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
        "check_methods_subset_invariance",
        "check_methods_sample_order_invariance",
        "check_readonly_memmap_input",
        "check_fit_idempotent",
    } <= names


def test_every_keyword_of_scikit_learns_svc_is_known_here():
    assert set(keywords()) <= set(OTHER_VALUES)
    assert set(keywords()) <= set(inspect.signature(SVC.__init__).parameters)
    assert set(keywords()) <= set(SVC().get_params())


@pytest.mark.parametrize("name", keywords())
def test_every_keyword_is_accepted_with_its_meaning(name):
    X, y = load_iris(return_X_y=True)
    value = OTHER_VALUES[name]
    options = {"gamma": 0.3, "tol": 1e-6} | {name: value}
    mine = SVC(**options).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # scikit-learn is about to drop `probability`
        other = PeerSVC(**options).fit(X, y)
    assert mine.get_params()[name] == value
    np.testing.assert_allclose(mine.decision_function(X), other.decision_function(X), atol=0.02)


@pytest.mark.parametrize("name", [n for n in keywords() if n not in ("cache_size", "probability", "gamma")])
def test_defaults_are_scikit_learns(name):
    """All but cache_size, which is the whole budget here, and probability, which is refused."""
    theirs = inspect.signature(PeerSVC.__init__).parameters[name].default
    assert inspect.signature(SVC.__init__).parameters[name].default == theirs


def test_linear_machines_take_what_scikit_learns_are_told_and_ours_do_anyway():
    X, y = load_iris(return_X_y=True)
    plain = mercer.LinearSVC(bias=False).fit(X, y)
    same = clone(mercer.LinearSVC(penalty="l2", dual=False, bias=False)).fit(X, y)
    np.testing.assert_array_equal(plain.coef_, same.coef_)
    np.testing.assert_array_equal(same.set_params(dual=True).fit(X, y).coef_, plain.coef_)
    search = GridSearchCV(mercer.LinearSVC(), {"dual": [True, False, "auto"], "penalty": ["l2"]}, cv=3).fit(X, y)
    assert len(set(search.cv_results_["mean_test_score"])) == 1
    assert mercer.LinearSVR().set_params(dual=False).fit(X, y).dual is False
    with pytest.raises(ValueError, match=r"penalty='l1'.*½‖w‖²"):
        mercer.LinearSVC(penalty="l1").fit(X, y)
    for machine in (mercer.LinearSVC, mercer.LinearSVR):
        with pytest.raises(ValueError, match="dual='no' must be one of"):
            machine(dual="no").fit(X, y)
        for given, told in (
            ({"fit_intercept": False}, r"fit_intercept=False.*bias=False"),
            ({"fit_intercept": True}, r"bias='regularized'"),
            ({"gama": 1}, "unexpected parameter gama=1"),
        ):
            with pytest.raises(TypeError, match=told):
                machine(**given)


def test_ties_matter_to_predict_alone():
    """As in scikit-learn: what cannot be broken is refused where it is asked for."""
    X, y = load_iris(return_X_y=True)
    model = SVC(break_ties=True, decision_function_shape="ovo").fit(X, y)
    assert model.decision_function(X).shape == (150, 3)
    with pytest.raises(ValueError, match="break_ties must be False"):
        model.predict(X)


@pytest.mark.parametrize("name", mercer.estimators.__all__)
def test_values_are_float64_whatever_comes_in(name):
    """As of scikit-learn's machines: what was proven in float64 is not rounded."""
    X = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    model = getattr(mercer.estimators, name)().fit(X, X[:, 0] > 0 if is_classifier(model_of(name)) else X[:, 0])
    values = model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)
    assert values.dtype == np.float64


def model_of(name):
    return getattr(mercer.estimators, name)()


def test_only_C_is_positional():
    parameters = list(inspect.signature(SVC).parameters.values())
    assert parameters[0].name == "C"
    assert parameters[0].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert all(p.kind is inspect.Parameter.KEYWORD_ONLY for p in parameters[1:])
    assert SVC(3.0).C == 3.0


def test_probability_names_the_way_out():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=r"(?s)probability.*CalibratedClassifierCV"):
        SVC(probability=True).fit(X, y)
    assert not hasattr(SVC().fit(X, y), "predict_proba")


@pytest.mark.parametrize("ensemble", [True, False])
def test_calibration_works_and_agrees_with_scikit_learns(ensemble):
    X, y = load_iris(return_X_y=True)
    keep = y > 0
    X, y = X[keep], y[keep]
    mine = CalibratedClassifierCV(SVC(tol=1e-8), ensemble=ensemble).fit(X, y).predict_proba(X)
    other = CalibratedClassifierCV(PeerSVC(tol=1e-8), ensemble=ensemble).fit(X, y).predict_proba(X)
    assert mine.shape == (len(y), 2)
    np.testing.assert_allclose(mine, other, atol=2e-3)
    if not ensemble:
        # One sigmoid of one score is monotone, so the order of the probabilities is the order of f.
        f = SVC(tol=1e-8).fit(X, y).decision_function(X)
        order = np.argsort(f)
        assert (np.diff(mine[order, 1]) >= -1e-12).all()


def test_version_is_public():
    assert isinstance(mercer.__version__, str)
    assert callable(mercer.show_versions)
