"""Run to run, thread to thread, process to process: the same data give the same model, bit for bit."""

import os
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import cross_val_score

from contracts.same_fit import assert_identical
from mercer import SVC
from reference.child import run_python


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
    assert run_python(code) == SVC(C=3.0).fit(X, y).decision_function(X).tobytes().hex() + "\n"


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
        X = rng.normal(size=(3000, 10)); y = (X[:, 0] * X[:, 1] > 0).astype(int)
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
