"""The contract with the user: what a fit may touch, repeat, share and leave behind."""

import pickle
import re
import time
from itertools import count

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from contracts.same_fit import FITTED_ARRAYS, assert_identical
from mercer import SVC
from mercer.kernels import Gaussian, Linear, Spectrum


def forms(X):
    unsorted = sparse.csr_matrix(X)
    for begin, end in zip(unsorted.indptr[:-1], unsorted.indptr[1:], strict=True):
        unsorted.indices[begin:end] = unsorted.indices[begin:end][::-1].copy()
        unsorted.data[begin:end] = unsorted.data[begin:end][::-1].copy()
    unsorted.has_sorted_indices = False
    return {
        "C order": np.ascontiguousarray(X),
        "F order": np.asfortranarray(X),
        "float32": X.astype(np.float32),
        "strided": np.repeat(X, 2, axis=1)[:, ::2],
        "big-endian": X.astype(">f8"),
        "CSR": sparse.csr_matrix(X),
        "unsorted CSR": unsorted,
        "CSC": sparse.csc_matrix(X),
    }


def arrays_in(X):
    return [X.data, X.indices, X.indptr] if sparse.issparse(X) else [X]


# 1. Always ends


def test_max_time_is_kept():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20_000, 10)), rng.integers(0, 2, 20_000)
    start = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = SVC(C=1e5, gamma=0.05, tol=1e-9, max_time=0.5).fit(X, y)
    # What was reached is certified after the limit, which here takes a fraction of a second.
    assert time.perf_counter() - start < 3
    assert model.stop_reason_ == "max_time"
    assert not model.converged_
    assert model.fit_status_ == 1
    assert np.isfinite(model.decision_function(X[:10])).all()


# 2. Every fit says how it ended


def test_every_fit_says_how_it_ended(two):
    X, y = two
    model = SVC(tol=1e-5).fit(X, y)
    certificate = model.certificate_
    assert model.converged_ is True or model.converged_ == np.True_
    assert model.stop_reason_ == "converged"
    assert (np.asarray(model.n_iter_) > 0).all()
    assert 0 <= certificate.gap <= 1e-5 * len(y)
    assert 0 <= certificate.violation <= 1e-5
    assert certificate.primal - certificate.dual == pytest.approx(certificate.gap, abs=1e-9 * certificate.primal)
    assert certificate.proves == "optimality"
    assert certificate.parts == ()
    assert set(certificate.kkt) == {
        "dual feasibility: box",
        "dual feasibility: equality",
        "primal feasibility",
        "complementary slackness",
    }
    assert max(certificate.kkt.values()) <= 1e-5


def test_gap_tol_asks_for_the_gap(two):
    X, y = two
    loose = SVC(C=10.0, tol=1e-1).fit(X, y).certificate_
    asked = SVC(C=10.0, tol=1e-1, gap_tol=1e-6).fit(X, y)
    assert loose.gap > 1e-6 * loose.dual, "the loose fit is already that good, so this shows nothing"
    assert asked.converged_
    assert asked.certificate_.gap <= 1e-6 * asked.certificate_.dual


# 4. Inputs are not modified and need nothing


@pytest.mark.parametrize(
    "form", ["C order", "F order", "float32", "strided", "big-endian", "CSR", "unsorted CSR", "CSC"]
)
def test_inputs_are_not_modified_and_may_be_read_only(two, form):
    X, y = two
    X, y, weight = forms(X)[form], y.copy(), np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    given = [*arrays_in(X), y, weight]
    copies = [array.copy() for array in given]
    SVC().fit(X, y, sample_weight=weight).decision_function(X)
    for array, copy in zip(given, copies, strict=True):
        np.testing.assert_array_equal(array, copy)
    for array in given:
        array.flags.writeable = False
    frozen = SVC().fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(
        frozen.decision_function(X),
        SVC().fit(two[0], y, sample_weight=weight).decision_function(two[0]),
        atol=5e-3,
    )


def test_precomputed_matrix_is_not_modified(two):
    X, y = two
    K = np.exp(-0.05 * ((X[:, None, :5] - X[None, :, :5]) ** 2).sum(-1))
    copy = K.copy()
    SVC(kernel="precomputed").fit(K, y).predict(K)
    np.testing.assert_array_equal(K, copy)


def test_labels_and_parameters_are_not_modified(three):
    X, y = three
    class_weight = {0: 1.0, 1: 2.0, 2: 3.0}
    kernel = Gaussian(gamma="scale")
    model = SVC(kernel=kernel, class_weight=class_weight).fit(X, y)
    assert model.kernel is kernel
    assert kernel.gamma == "scale"
    assert model.kernel_.gamma == pytest.approx(1 / (X.shape[1] * X.var()))
    assert class_weight == {0: 1.0, 1: 2.0, 2: 3.0}


# Samples that are no vectors


def test_strings_with_a_string_kernel():
    words = ["abab", "ababab", "babab", "abba", "cdcd", "dcdcdc", "cddc", "dccd"] * 3
    labels = np.array((["first"] * 4 + ["second"] * 4) * 3)
    kernel = Spectrum(2)
    model = SVC(kernel=kernel, C=10.0, tol=1e-8).fit(words, labels)
    assert model.score(words, labels) == 1.0
    given = SVC(kernel="precomputed", C=10.0, tol=1e-8).fit(kernel(words), labels)
    np.testing.assert_allclose(model.decision_function(words), given.decision_function(kernel(words)), atol=1e-5)
    np.testing.assert_array_equal(model.predict(np.array(words)), labels)
    assert list(model.predict(["abab", "zzz", "cdcdcd"]))[::2] == ["first", "second"]
    with pytest.raises(ValueError, match=r"(?i)string"):
        model.predict([[1.0, 2.0]])
    with pytest.raises(ValueError, match=r"(?i)string"):
        SVC(kernel=kernel).fit(np.ones((4, 2)), [0, 1, 0, 1])


# 9. A failed fit leaves the estimator as it was


def explode(A, B):
    raise RuntimeError("no kernel today")


FAILURES = {
    "bad data": lambda model, X, y: model.fit(np.full_like(X, np.nan), y),
    "bad parameter": lambda model, X, y: model.set_params(C=-1.0).fit(X, y),
    "other width": lambda model, X, y: model.set_params(tol=-1.0).fit(X[:, :2], y),
    "one class": lambda model, X, y: model.fit(X, np.zeros(len(X))),
    "failing kernel": lambda model, X, y: model.set_params(kernel=explode).fit(X, y),
    "bad weights": lambda model, X, y: model.fit(X[:, :2], y, sample_weight=np.full(len(y), np.nan)),
    "weights off a class": lambda model, X, y: model.fit(X[:, :2], y, sample_weight=(y == 0).astype(float)),
}


@pytest.mark.parametrize("fail", FAILURES.values(), ids=FAILURES)
def test_a_failed_fit_leaves_the_previous_state(three, fail):
    X, y = three
    model = SVC(C=2.0).fit(X, y)
    before = {name: value for name, value in vars(model).items() if name.endswith("_")}
    assert len(before) > 10
    decided, parameters = model.decision_function(X), model.get_params()
    with pytest.raises((ValueError, RuntimeError)):
        fail(model, X, y)
    after = {name: value for name, value in vars(model).items() if name.endswith("_")}
    assert after.keys() == before.keys()
    assert all(after[name] is before[name] for name in before)
    model.set_params(**parameters)
    np.testing.assert_array_equal(model.decision_function(X), decided)


@pytest.mark.parametrize("fail", FAILURES.values(), ids=FAILURES)
def test_a_failed_first_fit_leaves_it_unfitted(three, fail):
    X, y = three
    model = SVC()
    with pytest.raises((ValueError, RuntimeError)):
        fail(model, X, y)
    assert not [name for name in vars(model) if name.endswith("_") and not name.startswith("__")]
    with pytest.raises(NotFittedError):
        model.set_params(C=1.0, tol=1e-3, kernel="rbf").predict(X)


def test_a_refit_forgets_the_old_fit(three):
    X, y = three
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = SVC(kernel="linear").fit(frame, y)
    model.set_params(kernel="rbf").fit(X[:, :2], y)
    fresh = SVC(kernel="rbf").fit(X[:, :2], y)
    assert not hasattr(model, "feature_names_in_")
    assert not hasattr(model, "coef_")
    assert vars(model).keys() == vars(fresh).keys()
    assert_identical(model, fresh, X[:, :2])


# What is fitted: read-only, copied, pickled


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("as_csr", [False, True])
def test_fitted_attributes_are_read_only(three, kernel, as_csr):
    X, y = three
    model = SVC(kernel=kernel).fit(sparse.csr_matrix(X) if as_csr else X, y)
    names = (*FITTED_ARRAYS, "coef_") if kernel == "linear" else FITTED_ARRAYS
    for name in names:
        value = getattr(model, name)
        for array in arrays_in(value):
            assert not array.flags.writeable, name
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0
    with pytest.raises((AttributeError, TypeError)):
        model.certificate_.gap = 0.0


def test_fitted_attributes_do_not_alias_the_input(two):
    X, y = two
    X, y = X.copy(), y.copy()
    model = SVC().fit(X, y)
    decided, vectors = model.decision_function(two[0]), model.support_vectors_.copy()
    X[:] = 0
    y[:] = 0
    np.testing.assert_array_equal(model.decision_function(two[0]), decided)
    np.testing.assert_array_equal(model.support_vectors_, vectors)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickle_round_trip(two, three, protocol):
    for X, y in (two, three):
        for model in (SVC(C=3.0).fit(X, y), SVC(kernel=2 * Gaussian(gamma=0.1) + Linear() ** 2).fit(X, y)):
            copy = pickle.loads(pickle.dumps(model, protocol=protocol))
            assert_identical(model, copy, X)
            assert not copy.dual_coef_.flags.writeable
            assert str(copy.get_params()) == str(model.get_params())
            copy.fit(X, y)
            np.testing.assert_array_equal(copy.decision_function(X), model.decision_function(X))


def test_joblib_memory_map(two, tmp_path):
    X, y = two
    model = SVC().fit(X, y)
    joblib.dump(model, tmp_path / "model.joblib")
    mapped = joblib.load(tmp_path / "model.joblib", mmap_mode="r")
    np.testing.assert_array_equal(mapped.decision_function(X), model.decision_function(X))


def test_clone_is_unfitted_and_independent(three):
    X, y = three
    model = SVC(C=3.0, kernel=Gaussian(gamma=0.2)).fit(X, y)
    copy = clone(model)
    assert copy.C == 3.0
    assert copy.kernel is not model.kernel
    assert copy.kernel.gamma == 0.2
    with pytest.raises(NotFittedError):
        copy.predict(X)
    copy.set_params(kernel__gamma=5.0)
    assert model.kernel.gamma == 0.2
    assert_identical(clone(model).fit(X, y), model, X)


# Other forms, and what is printed


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "laplacian"])
def test_sparse_and_dense_are_interchangeable(two, kernel):
    X, y = two
    X = np.where(np.abs(X) < 0.7, 0.0, X)
    dense, thin = SVC(kernel=kernel).fit(X, y), SVC(kernel=kernel).fit(sparse.csr_matrix(X), y)
    f = dense.decision_function(X)
    np.testing.assert_allclose(dense.decision_function(sparse.csr_matrix(X)), f, atol=1e-9 * np.abs(f).max())
    np.testing.assert_allclose(
        thin.decision_function(X), thin.decision_function(sparse.csr_matrix(X)), atol=1e-9 * np.abs(f).max()
    )
    np.testing.assert_allclose(thin.decision_function(X), f, atol=5e-3 * max(1.0, np.abs(f).max()))
    np.testing.assert_array_equal(thin.predict(X), dense.predict(X))


def test_verbose_prints_a_line(two, capsys):
    X, y = two
    SVC(verbose=1).fit(X, y)
    printed = capsys.readouterr().out
    for word in ("support", "violation", "gap"):
        assert word in printed
    SVC().fit(X, y)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("machine", [SVC(C=1e3, tol=1e-9, multiclass="crammer-singer")])
def test_steps_of_a_second_pass_go_on_from_the_first(machine, capsys, monkeypatch):
    monkeypatch.setattr(
        "mercer.estimators.fitting.pipeline.reporting.time.monotonic", count(0, 2).__next__
    )  # a line at every report
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 3)), np.arange(80) % 3
    clone(machine).set_params(verbose=True).fit(X, y)
    steps = [int(n.replace(",", "")) for n in re.findall(r"([\d,]+) steps", capsys.readouterr().out)]
    assert steps.count(0) == 1
    assert steps == sorted(steps)
    assert len(steps) > 2


@pytest.mark.parametrize("C", [0.1, 0.7, 1.1, 1.3])
@pytest.mark.parametrize("copies", [3, 5, 6, 7, 10])
def test_a_bounded_coefficient_is_C_for_every_copy(copies, C):
    """To the last bit, though the copies are solved as one sample of weight `copies`, and C·copies is rounded."""
    X, y = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]]), np.array([0, 1, 0, 1, 0, 1])
    model = SVC(C=C, kernel="linear").fit(np.repeat(X, copies, axis=0), np.repeat(y, copies))
    size = np.abs(model.dual_coef_[0])
    assert size.max() == C
    assert (size == C).sum() >= 2 * copies
