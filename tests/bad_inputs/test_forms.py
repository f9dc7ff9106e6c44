"""Data in another form, and data that only look odd: as good as the plain array."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from bad_inputs.given import CLASSIFIERS, EVERY, N, T, X, Y, csr, fit, pegasos, svc, values
from bad_inputs.sparse_samples import damaged_csr
from mercer import (
    SVC,
    SVDD,
    SVR,
    LinearSVC,
    NuSVC,
    NuSVR,
    OneClassSVM,
    PegasosSVC,
    QuantileSVR,
    RLSClassifierCV,
    RLSRegressor,
    RLSRegressorCV,
)


def unaligned():
    return np.frombuffer(b"x" + X.tobytes(), dtype=np.uint8)[1:].view(np.float64).reshape(X.shape)


FORMS = {
    "unaligned": unaligned,
    "masked nowhere": lambda: np.ma.masked_array(X),
    "Fortran order": lambda: np.asfortranarray(X),
    "objects": lambda: X.astype(object),
    "lists": X.tolist,
    "big-endian": lambda: X.astype(">f8"),
}


@pytest.mark.parametrize("name", EVERY)
def test_forms_of_the_same_data(name):
    plain = values(fit(name))
    for form in FORMS.values():
        np.testing.assert_array_equal(values(fit(name, form())), plain)
    for form in ("coo", "csc", "bsr", "dia", "lil", "dok"):
        thin = values(fit(name, getattr(sparse, f"{form}_array")(X)))
        np.testing.assert_allclose(thin, plain, atol=5e-3)


LARGE = (2**53 + 1) + (10 * X).astype(np.int64) * 10**6


@pytest.mark.parametrize("form", [np.asarray, pd.DataFrame, sparse.csr_array, np.ndarray.tolist])
def test_integers_that_no_float_holds_are_told(form):
    with pytest.warns(UserWarning, match=r"integers up to 9007199\d+, beyond 2\*\*53"):
        SVC().fit(form(LARGE), Y)


def test_large_floats_and_small_integers_are_no_news():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for data in (
            LARGE.astype(float),
            (10 * X).astype(int),
            (10 * X).astype(int).tolist(),
            sparse.csr_array(1e20 * X),
        ):
            SVC().fit(data, Y)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_labels_keep_their_type(name):
    classes = {
        "pandas integers": (pd.Series(Y, dtype="Int64"), [0, 1], np.int64),
        "pandas booleans": (pd.Series(Y == 1, dtype="boolean"), [False, True], np.bool_),
        "numpy strings": (np.array(["no", "yes"])[Y].astype(np.dtypes.StringDType()), ["no", "yes"], object),
        "categories": (pd.Series(pd.Categorical(np.array(["no", "yes"])[Y])), ["no", "yes"], object),
    }
    expected = fit(name).predict(X)
    for y, labels, dtype in classes.values():
        model = fit(name, y=y)
        assert model.classes_.tolist() == labels
        assert model.classes_.dtype == dtype
        np.testing.assert_array_equal(model.predict(X), np.array(labels)[expected])


def test_numbers_of_numpy_are_parameters():
    for kind in (np.int8, np.float32, np.float64):
        one = PegasosSVC(kind(1), max_iter=20, random_state=0).fit(X, Y)
        np.testing.assert_array_equal(one.coef_, PegasosSVC(1.0, max_iter=20, random_state=0).fit(X, Y).coef_)


@pytest.mark.parametrize("solver", ["newton", "dual"])
def test_unsorted_and_repeated_indices_mean_their_sum(solver):
    given = damaged_csr([1.0, 2.0, 0.5, 3.0, 1.0], [2, 0, 0, 1, 2], [0, 3, 3, 5], (3, 3))
    before = given.indices.copy()
    plain = np.array([[2.5, 0, 1.0], [0, 0, 0], [0, 3.0, 1.0]])
    options = {"solver": solver, "tol": 1e-8}
    a, b = (LinearSVC(**options).fit(data, [0, 1, 1]) for data in (given, plain))
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-6)
    np.testing.assert_array_equal(given.indices, before)


@pytest.mark.parametrize("solver", ["newton", "dual"])
@pytest.mark.parametrize("bias", [True, False, "regularized"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_rows_of_zeros_only(solver, bias, loss):
    model = LinearSVC(solver=solver, bias=bias, loss=loss).fit(sparse.csr_array((6, 4)), [0, 1, 1, 1, 0, 1])
    assert model.converged_
    np.testing.assert_array_equal(model.coef_, 0.0)


def test_wide_indices_beyond_32_bits_stay_whole():
    # Two stored rows of int64 indices: the core must not squeeze them into 32 bits on the way.
    indices = np.array([5, 70_000, 17, 3], dtype=np.int64)
    wide = sparse.csr_array((np.ones(4), indices, np.arange(5, dtype=np.int64)), shape=(4, 70_001))
    model = LinearSVC(tol=1e-8).fit(wide, [0, 1, 0, 1])
    narrow = LinearSVC(tol=1e-8).fit(wide[:, [5, 70_000, 17, 3]], [0, 1, 0, 1])
    np.testing.assert_allclose(model.coef_[0, [5, 70_000, 17, 3]], narrow.coef_[0], atol=1e-6)
    assert np.count_nonzero(model.coef_) == 4


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_odd_matrices_are_the_same_as_plain_ones(kernel):
    expected = pegasos(kernel=kernel).decision_function(X)
    unsorted = sparse.csr_matrix((X[:, ::-1].ravel(), np.tile([2, 1, 0], 40), np.arange(0, 121, 3)), shape=X.shape)
    wide = sparse.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    forms = [
        unsorted,
        wide,
        sparse.csc_array(X),
        sparse.coo_array(X),
        np.asfortranarray(X),
        np.repeat(X, 2, axis=1)[:, ::2],
    ]
    for form in forms:
        np.testing.assert_allclose(pegasos(form, kernel=kernel).decision_function(X), expected, rtol=1e-9, atol=1e-12)


def test_empty_rows_and_empty_matrices():
    holes = np.array(X)
    holes[::4] = 0.0
    np.testing.assert_allclose(
        pegasos(sparse.csr_array(holes)).decision_function(X), pegasos(holes).decision_function(X), rtol=1e-9
    )
    nothing = pegasos(sparse.csr_array((40, 3)), max_iter=1000)
    assert np.ptp(nothing.decision_function(X)) == 0.0
    assert not pegasos(np.zeros((40, 3)), bias=False).decision_function(X).any()


def test_constant_targets_and_single_samples():
    assert SVR().fit(X, np.full(N, 3.0)).predict(X) == pytest.approx(3.0)
    assert SVR(epsilon=0.0).fit(X[:1], [2.0]).predict(X[:1]) == pytest.approx(2.0)
    assert QuantileSVR(0.9).fit(X, np.full(N, 3.0)).predict(X) == pytest.approx(3.0)
    assert NuSVR().fit(X, np.full(N, 3.0)).predict(X) == pytest.approx(3.0)
    ball = SVDD().fit(X[:1])
    assert ball.radius_ == pytest.approx(0.0, abs=1e-6)
    assert OneClassSVM().fit(np.repeat(X[:1], 5, axis=0)).offset_ > 0


def test_nu_of_one():
    assert (OneClassSVM(nu=1.0).fit(X).dual_coef_ == 1.0).all()
    assert NuSVR(nu=1.0).fit(X, T).epsilon_ == pytest.approx(0.0, abs=1e-2)
    balanced = np.arange(N) % 2
    assert len(NuSVC(nu=1.0).fit(X, balanced).support_) == 40


def test_odd_but_right():
    duplicates = np.repeat(X, 3, axis=0)
    model = RLSRegressor(0.0, gamma=5.0).fit(duplicates, np.repeat(T, 3))  # duplicates do not make K singular here
    np.testing.assert_allclose(model.predict(X), T, atol=1e-6)
    constant = RLSRegressor(gamma=1.0).fit(np.ones((5, 2)), np.arange(5.0))
    np.testing.assert_allclose(constant.predict([[1.0, 1.0]]), 2.0)
    assert RLSRegressor(gamma=1.0).fit([[1.0]], [3.0]).predict([[9.0]])[0] == pytest.approx(3.0)
    zero = RLSRegressor(kernel="linear").fit(np.zeros((5, 2)), np.arange(5.0))
    np.testing.assert_allclose(zero.coef_, 0.0)
    integers = RLSRegressor().fit(np.arange(10)[:, None], np.arange(10))
    assert integers.predict([[3]]).dtype == np.float64
    assert RLSRegressorCV(3, gamma=1.0).fit(np.ones((4, 1)), np.ones(4)).predict([[0.0]])[0] == pytest.approx(1.0)
    boolean = RLSClassifierCV(3).fit(X, Y == 1)
    assert boolean.predict(X).dtype == bool


def test_gamma_scale_is_one_number_for_dense_and_sparse():
    """Finding 4: E[x²] − E[x]² cancels; the centred variance does not."""
    for offset in (0.0, 0.3, 1e8):
        data = offset + 1e-3 * X
        expected = 1 / (data.shape[1] * (data - data.mean()).var())
        for given in (data, csr(data)):
            assert svc(given).kernel_.gamma == pytest.approx(expected, rel=1e-6)


def test_gamma_scale_respects_weights():
    weight = 1.0 + np.arange(N) % 3
    repeated = svc(np.repeat(X, weight.astype(int), axis=0), np.repeat(Y, weight.astype(int)))
    assert svc(sample_weight=weight).kernel_.gamma == pytest.approx(repeated.kernel_.gamma, rel=1e-12)
