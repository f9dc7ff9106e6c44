"""Compressed machines: as many vectors as asked, near the original, whole in files and pictures, clear in errors."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_moons
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer.files.libsvm_estimator import libsvm_from_estimator
from mercer.files.models import read_model
from mercer.inspection.compression.reduction import reduce_to_count
from mercer.inspection.compression.target import TargetFunctions
from mercer.kernels import Gaussian, Polynomial, Spectrum
from mercer.runtime.progress import Reporter

X, y = make_moons(50, noise=0.25, random_state=0)
B, c = make_blobs(60, centers=4, cluster_std=2.0, random_state=1)
T = np.sin(X[:, 0]) + X[:, 1]


@pytest.fixture(scope="module")
def model():
    return mercer.SVC(C=10).fit(X, y)


@pytest.fixture(scope="module")
def small(model):
    return mercer.compress(model, 8, X=X, y=y)


def test_so_many_vectors_and_the_same_labels(model, small):
    report = small.compression_
    assert report.n_vectors == small._expansion_.vectors.shape[0] == 8
    assert report.n_vectors_before == len(model.support_)
    assert report.moved
    assert report.retrained
    assert np.mean(small.predict(X) == model.predict(X)) >= 0.95
    assert "8" in repr(report)
    assert report.original_certificate is model.certificate_


def test_the_projection_is_nearest(model):
    """‖w − w'‖ of the projection against least squares on the same vectors."""
    small = mercer.compress(model, 8)
    V, Z = model._expansion_.vectors, small._expansion_.vectors
    K, beta = model.kernel_, model._expansion_.coefficients[:, 0]
    a = np.linalg.solve(K(Z), K(Z, V) @ beta)
    np.testing.assert_allclose(small._expansion_.coefficients[:, 0], a, rtol=1e-5, atol=1e-6 * np.abs(a).max())
    assert small.intercept_ == model.intercept_
    assert not small.compression_.retrained


def test_moving_vectors_lowers_the_error(model):
    target = TargetFunctions(model._expansion_)
    order = np.argsort(-np.abs(model._expansion_.coefficients[:, 0]))[:8]
    K, beta = model.kernel_(target.expansion.vectors), target.expansion.coefficients[:, 0]
    f = K @ beta
    worst = beta @ f - f[order] @ np.linalg.solve(K[np.ix_(order, order)], f[order])
    found = reduce_to_count(target, 8, None, Reporter(verbose=False))
    assert target.squared_error(target.projection(found.span))[0] < 0.7 * worst


def test_what_belongs_to_the_original_says_so(small):
    for name in ("support_", "dual_coef_", "n_support_", "certificate_", "rkhs_norm_"):
        with pytest.raises(AttributeError, match=f"compressed, and {name} belongs to the original"):
            getattr(small, name)
    with pytest.raises(AttributeError, match=r"compression_\.original_certificate"):
        small.certificate_  # noqa: B018  # the access is what raises
    with pytest.raises(AttributeError, match="estimates no probabilities"):
        small.predict_proba(X)
    with pytest.raises(AttributeError, match="is not compressed"):
        mercer.SVC().fit(X, y).compression_  # noqa: B018  # the access is what raises
    with pytest.raises(AttributeError, match="no attribute 'nonsense_'"):
        small.nonsense_  # noqa: B018  # the access is what raises
    assert not hasattr(clone(small), "_compression_")
    assert small.margins(X, y).rkhs_norm > 0


def test_files_and_pickle(small, tmp_path):
    mercer.save(small, tmp_path / "small.mercer")
    for again in (mercer.load(tmp_path / "small.mercer"), pickle.loads(pickle.dumps(small))):
        np.testing.assert_array_equal(again.decision_function(X), small.decision_function(X))
        np.testing.assert_array_equal(again.compression_.error, small.compression_.error)
        np.testing.assert_array_equal(again.compression_.keeps_label(X), small.compression_.keeps_label(X))
        assert again.compression_.original_certificate.gap == small.compression_.original_certificate.gap
    assert read_model(tmp_path / "small.mercer").facts()["vectors"] == 8
    with pytest.raises(TypeError, match="compressed machine has none"):
        libsvm_from_estimator(small)


def test_an_error_that_is_asked_for_is_kept(model):
    small = mercer.compress(model, max_error=1.0, X=X, y=y, retrain="loss")
    assert small.compression_.error <= 1.0
    assert small.compression_.n_vectors < len(model.support_)
    assert mercer.compress(model, max_error=0).compression_.error == 0
    assert mercer.compress(model, max_error=1e300).compression_.n_vectors <= 1
    chained = mercer.compress(small, 6)
    assert chained.compression_.error >= small.compression_.error
    assert chained.compression_.n_vectors_before == len(model.support_)


@pytest.mark.thorough
@pytest.mark.parametrize("samples", [{}, {"X": X}, {"X": X, "y": y, "retrain": "loss"}], ids=str)
@pytest.mark.parametrize("wanted", [10.0, 1.0, 0.01])
def test_any_error_that_is_asked_for_is_kept(model, samples, wanted):
    assert mercer.compress(model, max_error=wanted, **samples).compression_.error <= wanted


def test_a_linear_kernel_needs_one_vector_and_dependent_ones_go():
    linear = mercer.SVC(kernel="linear").fit(X, y)
    small = mercer.compress(linear)
    assert small.compression_.n_vectors == 1
    assert small.compression_.error < 1e-10 * linear.rkhs_norm_
    several = mercer.compress(mercer.SVC(kernel="linear").fit(B, c))
    assert several.compression_.n_vectors == 2  # features, fewer than the six pairs
    cubic = mercer.SVC(kernel=Polynomial(degree=2, gamma=1.0, coef0=1.0), C=0.1).fit(X, y)
    small = mercer.compress(cubic)
    assert small.compression_.n_vectors == 6  # monomials of degree up to 2 in two variables
    assert small.compression_.error < 1e-6 * cubic.rkhs_norm_
    np.testing.assert_array_equal(small.predict(X), cubic.predict(X))


MACHINES = [
    (mercer.SVC(C=5), B, c),
    (mercer.SVC(C=5, slack="l2", bias="regularized"), B, c),
    (mercer.NuSVC(nu=0.3), X, y),
    (mercer.SVR(C=5), X, T),
    (mercer.NuSVR(), X, T),
    (mercer.QuantileSVR([0.2, 0.8]), X, T),
    (mercer.OneClassSVM(nu=0.2), X, None),
    (mercer.RLSClassifier(lam=0.1), B, c),
    (mercer.RLSRegressor(lam=0.1), X, np.c_[T, T**2]),
    (mercer.RLSRegressorCV(), X, T),
    (mercer.KernelMachineClassifier("logistic", lam=0.01), X, y),
    (mercer.KernelMachineRegressor("huber", lam=0.01), X, T),
    (mercer.NystromRLS(n_landmarks=30), X, T),
    (mercer.SVDD(nu=0.2), X, None),
]


USUAL = {("SVC(C=5)", "values"), ("SVR(C=5)", "loss"), ("OneClassSVM(nu=0.2)", "values"), ("RLSRegressorCV()", "loss")}
CASES = [
    pytest.param(*case, retrain, id=f"{case[0]}-{retrain}", marks=[pytest.mark.thorough] * (len(USUAL & {key}) == 0))
    for case in MACHINES
    for retrain in ("values", "loss")
    for key in [(str(case[0]), retrain)]
]


@pytest.mark.parametrize(("machine", "rows", "target", "retrain"), CASES)
def test_every_machine(machine, rows, target, retrain, tmp_path):
    model = clone(machine).fit(rows, target)
    small = mercer.compress(model, 0.4, X=rows, y=target, retrain=retrain)
    assert type(small) is type(model)
    f, g = (m._decision(rows) for m in (model, small))
    assert np.abs(f - g).mean() < (0.1 if retrain == "values" else 0.35) * np.std(f)
    bound = small.compression_.bound(rows).reshape(f.shape)
    assert (small._DECISION_FACTOR * np.abs(f - g) <= bound).all()
    mercer.save(small, tmp_path / "m.mercer")
    np.testing.assert_array_equal(mercer.load(tmp_path / "m.mercer").predict(rows), small.predict(rows))
    if hasattr(small, "offset_"):
        np.testing.assert_allclose(small.score_samples(rows) - small.offset_, small.decision_function(rows), atol=1e-9)


def test_strings_sparse_rows_and_pipelines():
    texts = ["abab", "abba", "baba", "aabb", "bbaa", "abcc"] * 3
    model = mercer.SVC(kernel=Spectrum(2), C=10).fit(texts, [0, 1, 0, 1, 1, 0] * 3)
    small = mercer.compress(model, 3)
    assert small.compression_.n_vectors == 3
    assert small.compression_.keeps_label(texts).shape == (18,)
    sparse = sp.csr_array(np.where(np.abs(B) > 3, B, 0.0))
    small = mercer.compress(mercer.SVC(kernel=Gaussian(gamma=0.1)).fit(sparse, c), 0.2, X=sparse)
    assert sp.issparse(small._expansion_.vectors)
    pipe = make_pipeline(StandardScaler(), mercer.SVC()).fit(B, c)
    small = mercer.compress(pipe, 0.2, X=B, y=c)
    assert small[0] is pipe[0]
    assert small.score(B, c) > pipe.score(B, c) - 0.05


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_vectors": 0}, "number of vectors, at least 1"),
        ({"n_vectors": 1.5}, "share between 0 and 1"),
        ({"n_vectors": True}, "share between 0 and 1"),
        ({"n_vectors": 3, "max_error": 1.0}, "both say when to stop"),
        ({"max_error": -1.0}, "finite number of at least 0"),
        ({"n_vectors": 3, "y": y}, "y was passed without X"),
        ({"n_vectors": 3, "X": X, "retrain": "loss"}, "needs y"),
        ({"n_vectors": 3, "X": X, "retrain": "other"}, "retrain"),
        ({"n_vectors": 3, "X": X, "y": y[:5]}, "inconsistent"),
        ({"n_vectors": 3, "X": X, "sample_weight": np.ones(50)}, "retrain='values' ignores it"),
        ({"n_vectors": 3, "X": X[:, :1]}, "features"),
    ],
    ids=str,
)
def test_what_is_refused(model, given, message):
    with pytest.raises(ValueError, match=message):
        mercer.compress(model, **given)


def test_machines_that_have_nothing_to_compress(model):
    for other in (mercer.LinearSVC().fit(X, y), StandardScaler().fit(X)):
        with pytest.raises(TypeError, match="cannot be compressed"):
            mercer.compress(other, 3)
    with pytest.raises(TypeError, match="precomputed"):
        mercer.compress(mercer.SVC(kernel="precomputed").fit(X @ X.T, y), 3)
    small = mercer.compress(mercer.SVR().fit(X, T), 5)
    with pytest.raises(TypeError, match="numbers, not labels"):
        small.compression_.keeps_label(X)
