"""Whoever comes from scikit-learn finds every method and attribute of its machines, or a line of the migration page."""

import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import svm
from sklearn.datasets import load_iris
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import chi2_kernel
from sklearn.model_selection import GridSearchCV, cross_val_predict

import mercer
from mercer.kernels import Gaussian, Linear

PAGE = (Path(__file__).parents[2] / "docs" / "migration.md").read_text(encoding="utf-8")
X, species = load_iris(return_X_y=True)
length = X[:, 0]

PEERS = {
    "SVC": (svm.SVC, mercer.SVC, species),
    "SVC, linear": (lambda: svm.SVC(kernel="linear"), lambda: mercer.SVC(kernel="linear"), species),
    "SVC, two classes": (svm.SVC, mercer.SVC, species == 1),
    "NuSVC": (svm.NuSVC, mercer.NuSVC, species),
    "SVR": (svm.SVR, mercer.SVR, length),
    "SVR, linear": (lambda: svm.SVR(kernel="linear"), lambda: mercer.SVR(kernel="linear"), length),
    "NuSVR": (svm.NuSVR, mercer.NuSVR, length),
    "OneClassSVM": (svm.OneClassSVM, mercer.OneClassSVM, None),
    "LinearSVC": (svm.LinearSVC, mercer.LinearSVC, species),
    "LinearSVR": (svm.LinearSVR, mercer.LinearSVR, length),
    "KernelRidge": (KernelRidge, mercer.RLSRegressor, length),
}
# What each lacks; the migration page says where it went.
ELSEWHERE = {
    "SVC": {"probA_", "probB_"},
    "NuSVC": {"probA_", "probB_"},
    "LinearSVC": {"densify", "sparsify"},
    "KernelRidge": {"X_fit_"},
}
SUPPORT = {"support_", "support_vectors_", "dual_coef_"}  # to a tolerance there may be one vector more or less
CONVERTED = {"offset_"}  # an array of one there, a number here: as documented there


def offered(model):
    """Methods, and attributes of a fitted model."""
    found = set()
    for name in dir(model):
        if name.startswith("_") or not hasattr(model, name):
            continue
        if name.endswith("_") or callable(getattr(model, name)):
            found.add(name)
    return found


@pytest.mark.filterwarnings("ignore:Liblinear failed to converge", "ignore:Attribute `prob")
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "CSR"])
@pytest.mark.parametrize("name", PEERS)
def test_methods_and_attributes(name, form):
    peer, own, y = PEERS[name]
    theirs, ours = peer().fit(form(X), y), own().fit(form(X), y)
    missing = offered(theirs) - offered(ours)
    assert missing == ELSEWHERE.get(type(theirs).__name__, set()) & missing
    for attribute in missing:
        assert f"`{attribute}" in PAGE or f".{attribute}" in PAGE, f"where did {attribute} go?"
    for attribute in {name for name in offered(theirs) & offered(ours) if name.endswith("_")} - CONVERTED:
        a, b = getattr(theirs, attribute), getattr(ours, attribute)
        assert np.ndim(a) == np.ndim(b), attribute
        if attribute not in SUPPORT:
            assert np.shape(a) == np.shape(b), attribute
        if hasattr(a, "dtype"):
            assert a.dtype.kind == b.dtype.kind, attribute
        else:
            assert type(a) is type(b), attribute


@pytest.mark.parametrize("machine", [mercer.SVC, mercer.SVR, mercer.OneClassSVM])
def test_weights_of_a_linear_kernel_are_dense_whatever_the_samples(machine):
    for y in (species, species == 1):
        dense, sparse = (machine(kernel=2 * Linear(), tol=1e-9).fit(A, y) for A in (X, sp.csr_matrix(X)))
        assert type(dense.coef_) is type(sparse.coef_) is np.ndarray
        np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-6)
        if machine is mercer.SVC:
            dense.set_params(decision_function_shape="ovo")
        values = np.reshape(dense.predict(X) if machine is mercer.SVR else dense.decision_function(X), (len(X), -1))
        np.testing.assert_allclose(X @ dense.coef_.T + dense.intercept_, values, atol=1e-8)


DECIDING = [
    mercer.SVC(),
    mercer.NuSVC(),
    mercer.LinearSVC(),
    mercer.PegasosSVC(),
    mercer.RLSClassifier(),
    mercer.RLSClassifierCV(),
    mercer.NystromRLSClassifier(n_landmarks=20),
    mercer.MKLClassifier(),
]


@pytest.mark.parametrize("model", DECIDING, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("method", ["predict_proba", "predict_log_proba"])
def test_who_asks_for_probabilities_is_told_where_they_are(model, method):
    assert not hasattr(model, method)
    told = rf"{type(model).__name__} has no {method}: .*CalibratedClassifierCV.*KernelMachine\(loss='logistic'\)"
    with pytest.raises(AttributeError, match=told):
        cross_val_predict(model, X, species, method=method)


def test_every_classifier_either_gives_probabilities_or_says_where_they_are():
    classifiers = {name for name in mercer.__all__ if re.search("SV(C)$|Classifier", name)}
    with_probabilities = {"KernelMachineClassifier", "CalibratedClassifier", "GaussianProcessClassifier"}
    tuned = {"TunedSVC"}  # it has what its best estimator has
    assert classifiers - with_probabilities - tuned <= {type(model).__name__ for model in DECIDING}


def test_compiled_kernel_functions_that_ask_for_writeable_arrays():
    """scikit-learn's chi2_kernel is compiled so, and only reads."""
    values = mercer.SVC(kernel=chi2_kernel, tol=1e-8).fit(X, species).decision_function(X)
    expected = svm.SVC(kernel=chi2_kernel, tol=1e-8).fit(X, species).decision_function(X)
    np.testing.assert_allclose(values, expected, atol=1e-5)


@pytest.mark.parametrize("model", [*DECIDING, mercer.SVR(), mercer.LinearSVR(), mercer.KernelMachine("logistic")])
def test_a_y_of_another_length_is_told_as_that(model):
    """Its first rows may all be of one class, which is not what is wrong."""
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[150, 10\]"):
        model.fit(X, species[:10])


def test_several_outputs():
    with pytest.raises(ValueError, match=r"1d array, got .*\(150, 3\).*MultiOutputClassifier"):
        mercer.SVC().fit(X, np.eye(3)[species])


def test_parameters_of_a_kernel_that_is_a_name():
    told = r"kernel__gamma is a parameter of a kernel object, but kernel='rbf' is a name: set gamma itself, or"
    with pytest.raises(ValueError, match=told):
        mercer.SVC().set_params(kernel__gamma=1.0)
    with pytest.raises(ValueError, match=told):
        GridSearchCV(mercer.SVC(), {"kernel__gamma": [1.0]}).fit(X, species)
    assert mercer.SVC().set_params(kernel=Gaussian(), kernel__gamma=3.0).kernel.gamma == 3.0
    with pytest.raises(ValueError, match="Invalid parameter 'gama'"):
        mercer.SVC(kernel=Gaussian()).set_params(kernel__gama=1.0)


def test_a_column_of_dates():
    frame = pytest.importorskip("pandas").DataFrame({"a": X[:, 0], "day": np.datetime64("2020-01-01", "ns")})
    with pytest.raises(ValueError, match="column 'day' of X does not hold numbers"):
        mercer.SVC().fit(frame, species)


def test_class_weights_of_a_linear_machine_for_three_classes():
    """mercer weighs every sample by its class; LIBLINEAR weighs a class only in the problem of it against the rest."""
    weight = {0: 3.0, 1: 0.2, 2: 1.0}
    of_rows = np.array([weight[label] for label in species])
    ours = mercer.LinearSVC(bias="regularized", class_weight=weight, tol=1e-9).fit(X, species)
    theirs = svm.LinearSVC(class_weight=weight, tol=1e-9, max_iter=10**6).fit(X, species)
    for k in range(3):
        binary = svm.LinearSVC(tol=1e-9, max_iter=10**6)
        np.testing.assert_allclose(ours.coef_[k], binary.fit(X, species == k, of_rows).coef_[0], atol=1e-4)
        only_its_own = np.where(species == k, weight[k], 1.0)
        np.testing.assert_allclose(theirs.coef_[k], binary.fit(X, species == k, only_its_own).coef_[0], atol=1e-4)
    assert np.abs(ours.coef_ - theirs.coef_).max() > 0.1
    assert "`LinearSVC(class_weight=…)` with three or more classes" in PAGE
