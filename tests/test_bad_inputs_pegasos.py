"""Bad and odd inputs of PegasosSVC and its streams: refused with a reason, or handled; never a crash."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from mercer import PegasosSVC, _core
from mercer.errors import ModelFormatError, NonPSDKernelWarning
from mercer.fitting.state import check_state

rng = np.random.default_rng(0)
Y = np.repeat([0, 1], 20)
X = rng.normal(size=(40, 3)) + 1.5 * Y[:, None]
for shared in (X, Y):
    shared.flags.writeable = False


def fit(X=X, y=Y, sample_weight=None, **parameters):
    return PegasosSVC(**{"max_iter": 5, "random_state": 0, **parameters}).fit(X, y, sample_weight=sample_weight)


def stream(X=X, y=Y, classes=(0, 1), sample_weight=None, **parameters):
    return PegasosSVC(**{"random_state": 0, **parameters}).partial_fit(X, y, classes, sample_weight)


def changed(array, where, value):
    array = np.array(array, dtype=np.float64)
    array[where] = value
    return array


def damaged(attribute, position, value):
    broken = sp.csr_matrix(X)
    getattr(broken, attribute)[position] = value
    return broken


REFUSED = {
    "no rows": (lambda: fit(X[:0], Y[:0]), r"0 sample"),
    "one class": (lambda: fit(X, 0 * Y), r"2 classes"),
    "y too short": (lambda: fit(X, Y[:-1]), r"(?s)40.*39"),
    "NaN": (lambda: fit(changed(X, (3, 1), np.nan)), r"NaN: X\[3, 1\]"),
    "infinity": (lambda: fit(changed(X, (3, 1), np.inf)), r"infinity: X\[3, 1\]"),
    "NaN in CSR": (lambda: fit(sp.csr_array(changed(X, (3, 1), np.nan))), r"NaN: X\[3, 1\]"),
    "column out of range": (lambda: fit(damaged("indices", 4, 1000)), r"(?s)damaged CSR.*1000"),
    "negative column": (lambda: fit(damaged("indices", 4, -1)), r"(?s)damaged CSR.*-1"),
    "indptr falls": (lambda: fit(damaged("indptr", 4, 2)), r"damaged CSR"),
    "stream: column out of range": (lambda: stream(damaged("indices", 4, 1000)), r"(?s)damaged CSR.*1000"),
    "stream: NaN": (lambda: stream(changed(X, (3, 1), np.nan)), r"NaN: X\[3, 1\]"),
    "stream: no classes": (lambda: stream(classes=None), r"classes must be passed on the first call"),
    "stream: one class": (lambda: stream(classes=[0]), r"at least 2 classes"),
    "stream: unknown label": (lambda: stream(y=Y + 1), r"y\[20\]=.*2.*not one of the classes \[0, 1\]"),
    "stream: labels of another type": (lambda: stream(y=Y.astype(str)), r"(?s)labels of dtype.*\[0, 1\]"),
    "stream: y too short": (lambda: stream(y=Y[:-1]), r"(?s)40.*39"),
    "stream: other classes": (lambda: stream().partial_fit(X, Y, [0, 2]), r"not the same as on last call"),
    "stream: other columns": (lambda: stream().partial_fit(X[:, :2], Y), r"2 features"),
    "stream: balanced": (lambda: stream(class_weight="balanced"), r"(?s)balanced.*all labels at once"),
    "stream: early stopping": (lambda: stream(early_stopping=True), r"early_stopping.*all samples at once"),
    "stream: certificate": (lambda: stream(certificate=True), r"certificate.*all samples at once"),
    "stream: precomputed": (lambda: stream(X @ X.T, kernel="precomputed"), r"precomputed.*stream"),
    "stream: too heavy": (lambda: stream(sample_weight=np.full(40, 1e9)), r"(?s)add up to 4e\+10.*visits"),
    "stream: empty": (lambda: PegasosSVC().fit_stream([], classes=[0, 1]), r"no chunk"),
    "stream: not tuples": (lambda: PegasosSVC().fit_stream([X], classes=[0, 1]), r"chunk 0 .*ndarray.*tuples"),
    "negative weight": (lambda: fit(sample_weight=changed(np.ones(40), 3, -1.0)), r"sample_weight\[3\]"),
    "no weight": (lambda: fit(sample_weight=np.zeros(40)), r"no sample with positive weight"),
    "unknown class weight": (lambda: fit(class_weight={7: 1.0}), r"class_weight names \[7\]"),
    "alpha=0": (lambda: fit(alpha=0.0), r"alpha=0.0 must be"),
    "alpha=nan": (lambda: fit(alpha=np.nan), r"alpha=nan must be"),
    "lam=0": (lambda: fit(lam=0.0), r"lam=0.0 must be"),
    "bias=True": (lambda: fit(bias=True), r"bias=True must be one of False, 'regularized'"),
    "average": (lambda: fit(average="mean"), r"average='mean' must be one of"),
    "sampling": (lambda: fit(sampling="uniform"), r"sampling='uniform' must be one of"),
    "max_iter": (lambda: fit(max_iter=-2), r"max_iter=-2"),
    "max_time": (lambda: fit(max_time=0), r"max_time=0"),
    "tol": (lambda: fit(tol=0.0), r"tol=0.0"),
    "cache_size": (lambda: fit(cache_size=0), r"cache_size=0"),
    "validation_fraction": (lambda: fit(validation_fraction=1.0), r"validation_fraction=1.0"),
    "n_iter_no_change": (lambda: fit(n_iter_no_change=0), r"n_iter_no_change=0"),
    "n_iter_no_change=-1": (lambda: fit(n_iter_no_change=-1), r"n_iter_no_change=-1 must be an integer of at least 1"),
    "random_state": (lambda: fit(random_state="x"), r"random_state='x'"),
    "n_jobs": (lambda: fit(n_jobs=0), r"n_jobs=0"),
    "kernel": (lambda: fit(kernel="gauss"), r"(?s)kernel='gauss'.*rbf"),
    "validation takes a class": (
        lambda: fit(X[15:22], np.array([0, 0, 0, 0, 0, 0, 1]), early_stopping=True, validation_fraction=0.9),
        r"(?s)early_stopping.*validation_fraction",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_a_reason(name):
    act, text = REFUSED[name]
    with pytest.raises(ValueError, match=text):
        act()


def test_not_fitted_says_so():
    with pytest.raises(NotFittedError):
        PegasosSVC().predict(X)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_odd_matrices_are_the_same_as_plain_ones(kernel):
    expected = fit(kernel=kernel).decision_function(X)
    unsorted = sp.csr_matrix((X[:, ::-1].ravel(), np.tile([2, 1, 0], 40), np.arange(0, 121, 3)), shape=X.shape)
    wide = sp.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    forms = [unsorted, wide, sp.csc_array(X), sp.coo_array(X), np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2]]
    for form in forms:
        np.testing.assert_allclose(fit(form, kernel=kernel).decision_function(X), expected, rtol=1e-9, atol=1e-12)


def test_empty_rows_and_empty_matrices():
    holes = np.array(X)
    holes[::4] = 0.0
    np.testing.assert_allclose(
        fit(sp.csr_array(holes)).decision_function(X), fit(holes).decision_function(X), rtol=1e-9
    )
    nothing = fit(sp.csr_array((40, 3)), max_iter=1000)
    assert np.ptp(nothing.decision_function(X)) == 0.0
    assert not fit(np.zeros((40, 3)), bias=False).decision_function(X).any()


def test_two_thousand_million_columns_need_no_more_than_their_own_index_type():
    """Indices beyond 2**31 are not cut, and w for columns that no computer holds is refused before it is allocated."""
    far = sp.csr_array((np.ones(2), np.array([5, 2**45], dtype=np.int64), np.array([0, 1, 2])), shape=(2, 2**45 + 1))
    with pytest.raises(MemoryError, match=r"X has 35,184,372,088,833 columns.*hash them"):
        PegasosSVC(max_iter=1).fit(far, [0, 1])


def test_overflow_is_an_error_and_not_a_model():
    with pytest.raises(FloatingPointError, match=r"overflowed.*scale the features"):
        fit(X * 1e200)
    with pytest.raises(FloatingPointError, match=r"overflowed"):
        stream(X * 1e200)
    with pytest.raises(FloatingPointError, match=r"overflowed"):
        fit(alpha=1e-308)


def test_an_indefinite_kernel_is_told():
    with pytest.warns(NonPSDKernelWarning):
        model = fit(X @ X.T - 3 * np.eye(40), kernel="precomputed", certificate=True)
    assert model.certificate_.proves == "stationarity"


CORE = {
    "draws": ({"draws": np.array([40])}, "draws holds an index"),
    "negative draw": ({"draws": np.array([-1])}, "draws holds an index"),
    "y": ({"y": np.ones(39)}, "y has 39 elements"),
    "theta": ({"theta": np.zeros(5), "total": np.zeros(5)}, "theta must have one element per feature"),
    "total": ({"total": np.zeros(4)}, "total has 4 elements"),
    "t": ({"t": -1}, "t must not be negative"),
    "counts": ({"counts": np.zeros(3, dtype=np.int64)}, "counts has 3 elements"),
}


@pytest.mark.parametrize("name", CORE)
@pytest.mark.parametrize("form", ["dense", "csr", "kernel"])
def test_the_core_checks_what_memory_safety_needs(form, name):
    change, text = CORE[name]
    n = 40 if form == "kernel" else 3
    call = {"y": np.ones(40), "draws": np.arange(40), "lam": 1.0, "t": 0, "project": False, "norm2": 0.0}
    call |= {"theta": np.zeros(n), "total": np.zeros(n), "counts": None, **change}
    S = sp.csr_array(X)
    run = {
        "dense": lambda: _core.pegasos_dense(np.array(X), **call),
        "csr": lambda: _core.pegasos_csr(S.data, S.indices, S.indptr, 3, **call),
        "kernel": lambda: _core.pegasos_kernel(np.eye(40), np.arange(40), 0.0, np.zeros(40), **call),
    }
    with pytest.raises(ValueError, match=re.escape(text)):
        run[form]()


def test_the_core_refuses_broken_matrices():
    S = sp.csr_array(X)
    call = (np.ones(40), np.arange(40), 1.0, 0, False, 0.0, np.zeros(3), np.zeros(3), None)
    few = (np.ones(40), np.array([1, 2]), *call[2:])
    for rest in (call, few):
        with pytest.raises(ValueError, match="indices holds a feature"):
            _core.pegasos_csr(S.data, np.where(S.indices == 2, 3, S.indices).astype(np.int32), S.indptr, 3, *rest)
    with pytest.raises(ValueError, match="indptr must not decrease"):
        _core.pegasos_csr(S.data, S.indices, S.indptr[::-1].copy(), 3, *call)
    with pytest.raises(ValueError, match="slot points beyond"):
        _core.pegasos_kernel(
            np.eye(40)[:5], np.arange(40), 0.0, np.zeros(40), *call[:6], np.zeros(40), np.zeros(40), None
        )


CONTRADICTIONS = {
    "_theta_": np.zeros((1, 2)),
    "_total_": np.full((1, 4), np.nan),
    "_marks_": np.zeros((1, 4)),
    "intercept_": np.zeros(2),
    "t_": -1,
    "n_iter_": 1.5,
    "classes_": np.array([0]),
    "class_weight_": np.ones(3),
}


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        *((kernel, name) for kernel in ("linear", "rbf") for name in CONTRADICTIONS),
        ("linear", "coef_"),
        ("rbf", "dual_coef_"),
    ],
)
def test_a_file_that_contradicts_itself_is_refused(kernel, name):
    model = fit(kernel=kernel)
    check_state(model)
    setattr(model, name, CONTRADICTIONS.get(name, np.zeros((1, 7))))
    with pytest.raises(ModelFormatError):
        check_state(model)
