"""The contract with the user: what a fit may touch, repeat, share and leave behind."""

import os
import pickle
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

from mercer import SVC
from mercer.kernels import Gaussian, Linear, Polynomial, Spectrum
from reference.child import MEASURABLE, run_python

FITTED_ARRAYS = (
    "support_",
    "support_vectors_",
    "dual_coef_",
    "intercept_",
    "n_support_",
    "classes_",
    "class_weight_",
    "n_iter_",
)


@pytest.fixture(scope="module")
def two():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), y


@pytest.fixture(scope="module")
def three():
    X, y = load_iris(return_X_y=True)
    return scale(X), y


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


def state(model):
    """Everything fitted, as comparable values."""
    out = {}
    for name in (*FITTED_ARRAYS, "stop_reason_", "converged_", "shape_fit_", "n_features_in_"):
        value = getattr(model, name)
        out[name] = value.toarray() if sparse.issparse(value) else value
    return out


def assert_identical(one, other, X):
    for name, value in state(one).items():
        np.testing.assert_array_equal(state(other)[name], value, err_msg=name)
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))
    assert one.certificate_ == other.certificate_


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


# 5. Run to run and thread to thread


@pytest.mark.parametrize("as_csr", [False, True])
def test_same_result_every_time(two, three, as_csr):
    for X, y in (two, three):
        given = sparse.csr_matrix(X) if as_csr else X
        models = [SVC(C=3.0).fit(given, y) for _ in range(3)]
        for model in models[1:]:
            assert_identical(models[0], model, X)


def test_same_result_in_another_process(two):
    X, y = two
    code = """
        import sys, numpy as np
        from sklearn.datasets import load_breast_cancer
        from sklearn.preprocessing import scale
        from mercer import SVC
        X, y = load_breast_cancer(return_X_y=True); X = scale(X)
        print(SVC(C=3.0).fit(X, y).decision_function(X).tobytes().hex())
    """
    results = {run_python(code) for _ in range(2)}
    assert results == {SVC(C=3.0).fit(X, y).decision_function(X).tobytes().hex() + "\n"}


def test_same_result_for_any_number_of_threads():
    # Large enough that there is work to share; kernels, products and hashes are all parallel.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 10))
    y = (X[:, 0] * X[:, 1] + rng.normal(scale=0.3, size=5000) > 0).astype(int)
    one = SVC(n_jobs=1).fit(X, y)
    for n in (2, 4, -1):
        other = SVC(n_jobs=n).fit(X, y)
        np.testing.assert_array_equal(other.support_, one.support_)
        np.testing.assert_array_equal(other.dual_coef_, one.dual_coef_)
        np.testing.assert_array_equal(other.intercept_, one.intercept_)
        np.testing.assert_array_equal(other.decision_function(X[:300]), one.decision_function(X[:300]))


def test_eight_fits_at_once_on_one_matrix(two):
    X, y = two
    alone = SVC(C=3.0).fit(X, y)
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda _: SVC(C=3.0).fit(X, y), range(16)))
    for model in together:
        assert_identical(alone, model, X)


def test_predict_from_many_threads(three):
    X, y = three
    model = SVC(C=3.0).fit(X, y)
    parts = [X[i::7] for i in range(7)] * 10
    alone = [model.decision_function(part) for part in parts]
    with ThreadPoolExecutor(8) as pool:
        for expected, found in zip(alone, pool.map(model.decision_function, parts), strict=True):
            np.testing.assert_array_equal(found, expected)
    with ThreadPoolExecutor(8) as pool:
        for part, found in zip(parts, pool.map(model.predict, parts), strict=True):
            np.testing.assert_array_equal(found, model.predict(part))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_fork_after_fit_then_fit_in_the_child():
    done = run_python(
        """
        import os, sys, warnings, numpy as np
        warnings.simplefilter("ignore")
        from mercer import SVC
        rng = np.random.default_rng(0)
        X = rng.normal(size=(6000, 10)); y = (X[:, 0] * X[:, 1] > 0).astype(int)
        parent = SVC(n_jobs=2).fit(X, y).decision_function(X[:100])
        pid = os.fork()
        if pid == 0:
            same = np.array_equal(SVC(n_jobs=2).fit(X, y).decision_function(X[:100]), parent)
            os._exit(0 if same else 3)
        _, status = os.waitpid(pid, 0)
        # The parent's own threads must have survived the fork too.
        assert np.array_equal(SVC(n_jobs=2).fit(X, y).decision_function(X[:100]), parent)
        print("child", os.waitstatus_to_exitcode(status))
        """,
        timeout=60,
    )
    assert done.strip() == "child 0"


def test_joblib_workers_give_the_same(three):
    X, y = three
    alone = cross_val_score(SVC(), X, y, cv=5, n_jobs=1)
    np.testing.assert_array_equal(cross_val_score(SVC(), X, y, cv=5, n_jobs=2), alone)
    with joblib.parallel_config(backend="threading"):
        np.testing.assert_array_equal(cross_val_score(SVC(), X, y, cv=5, n_jobs=2), alone)


# 7. Memory


needs_proc = pytest.mark.skipif(not MEASURABLE, reason="memory is measured through Linux's /proc")


@needs_proc
def test_three_hundred_fits_leave_no_memory_behind():
    grown = run_python(
        """
        import gc
        from reference.child import resident
        from sklearn.datasets import load_iris
        from mercer import SVC
        X, y = load_iris(return_X_y=True)
        def fits(k):
            for i in range(k):
                SVC(C=1.0 + i % 7, kernel=("rbf", "linear", "poly")[i % 3]).fit(X, y).predict(X)
            gc.collect()
        fits(60)
        before = resident()
        fits(300)
        print(resident() - before)
        """
    )
    assert float(grown) < 5


@needs_proc
def test_budget_is_kept():
    """The matrix of 20,000 rows takes 3.2 GB; a fit with cache_size=50 stays near 50 MB beyond the data."""
    grown = run_python(
        """
        import numpy as np
        from reference.child import growth
        from mercer import SVC
        rng = np.random.default_rng(0)
        X = rng.normal(size=(20_000, 5)); y = (X[:, 0] + 0.5 * rng.normal(size=20_000) > 0).astype(int)
        SVC(cache_size=50).fit(X[:3500], y[:3500])
        model = SVC(cache_size=50, tol=1e-2)
        print(growth(lambda: model.fit(X, y)))
        assert model.converged_
        """
    )
    assert float(grown) < 80


@needs_proc
def test_float32_data_are_never_float64_as_a_whole():
    """The same fit on float32 data takes less memory, by the difference of a copy: none of theirs is float64."""

    def megabytes(kind):
        return float(
            run_python(
                """
                import sys, warnings
                import numpy as np
                from reference.child import growth
                from mercer import SVC
                warnings.simplefilter("ignore")
                rng = np.random.default_rng(0)
                X = rng.normal(size=(80_000, 100)).astype(sys.argv[1]); y = rng.integers(0, 2, len(X))
                SVC().fit(X[:4000], y[:4000])
                print(growth(lambda: SVC(cache_size=20, max_time=1.0).fit(X, y)))
                """,
                kind,
            )
        )

    one_copy = 80_000 * 100 * 4 / 2**20
    assert megabytes("float32") + 0.5 * one_copy < megabytes("float64")


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


# Inside scikit-learn


def test_sample_weights_are_routed(two):
    X, y = two
    weight = np.where(y == 1, 0.01, 1.0) * np.random.default_rng(0).uniform(0.5, 1.5, len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        model = SVC(C=0.5).set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        search = GridSearchCV(model, {"C": [0.5]}, cv=3).fit(X, y, sample_weight=weight)
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError):
            GridSearchCV(SVC(), {"C": [0.5]}, cv=3).fit(X, y, sample_weight=weight)
    direct = SVC(C=0.5).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(search.best_estimator_.decision_function(X), direct.decision_function(X))
    unweighted = SVC(C=0.5).fit(X, y)
    assert np.abs(direct.decision_function(X) - unweighted.decision_function(X)).max() > 0.1


def test_precomputed_kernels_are_sliced_by_cross_validation(three):
    X, y = three
    kernel = Gaussian(gamma=0.3)
    folds = KFold(5, shuffle=True, random_state=0)
    given = cross_val_score(SVC(kernel="precomputed"), kernel(X), y, cv=folds)
    np.testing.assert_array_equal(given, cross_val_score(SVC(kernel=kernel), X, y, cv=folds))
    f_given = cross_val_predict(SVC(kernel="precomputed", tol=1e-7), kernel(X), y, cv=folds, method="decision_function")
    f = cross_val_predict(SVC(kernel=kernel, tol=1e-7), X, y, cv=folds, method="decision_function")
    np.testing.assert_allclose(f_given, f, atol=1e-4)
    search = GridSearchCV(SVC(kernel="precomputed"), {"C": [0.1, 1.0]}, cv=folds).fit(kernel(X), y)
    assert search.best_score_ > 0.9


def test_grid_search_over_a_kernel_object(three):
    X, y = three
    search = GridSearchCV(SVC(kernel=Gaussian(gamma=1.0)), {"kernel__gamma": [1e-4, 0.3], "C": [1.0]}, cv=5).fit(X, y)
    assert search.best_params_ == {"kernel__gamma": 0.3, "C": 1.0}
    assert search.best_estimator_.kernel_.gamma == 0.3
    by_name = GridSearchCV(SVC(), {"gamma": [1e-4, 0.3], "C": [1.0]}, cv=5).fit(X, y)
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], by_name.cv_results_["mean_test_score"])


def test_pipeline_and_composite_kernel(three):
    X, y = three
    kernel = 0.5 * Gaussian(gamma=0.3) + Polynomial(degree=2, gamma=0.1, coef0=1.0)
    model = make_pipeline(StandardScaler(), SVC(kernel=kernel)).fit(X, y)
    assert model.score(X, y) > 0.95
    K = kernel(StandardScaler().fit_transform(X))
    given = SVC(kernel="precomputed", tol=1e-6).fit(K, y)
    again = SVC(kernel=kernel, tol=1e-6).fit(StandardScaler().fit_transform(X), y)
    np.testing.assert_allclose(
        again.decision_function(StandardScaler().fit_transform(X)), given.decision_function(K), atol=1e-4
    )


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_data_frames(three, frame):
    X, y = three
    names = ["sepal length", "sepal width", "petal length", "petal width"]
    table = frame({name: X[:, k] for k, name in enumerate(names)})
    model = SVC().fit(table, y)
    assert list(model.feature_names_in_) == names
    assert model.n_features_in_ == 4
    plain = SVC().fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(model.decision_function(table), plain.decision_function(X))
    with pytest.warns(UserWarning, match="feature names"):
        np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(X))
    labels = (
        pd.Series(np.array(["a", "b", "c"])[y]) if frame is pd.DataFrame else pl.Series(np.array(["a", "b", "c"])[y])
    )
    assert SVC().fit(table, labels).predict(table).tolist() == [["a", "b", "c"][k] for k in plain.predict(X)]


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
