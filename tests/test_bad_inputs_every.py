"""What every estimator must refuse or stand, as tables: a row is run for each of them that it concerns."""

import math
import pickle
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import is_classifier, is_regressor
from sklearn.exceptions import ConvergenceWarning

import mercer.estimators
from mercer import (
    SVC,
    SVR,
    KernelMachineRegressor,
    LinearSVC,
    LinearSVR,
    NuSVC,
    NystromRLS,
    OneClassSVM,
    PegasosSVC,
    QuantileSVR,
    RLSRegressorCV,
)

NAMES = mercer.estimators.__all__
rng = np.random.default_rng(0)
N = 40
Y = np.repeat([0, 1], N // 2)
X = rng.normal(size=(N, 3)) + 1.5 * Y[:, None]
T = X[:, 0] + 0.1 * rng.normal(size=N)
THREE = np.arange(N) % 3
for shared in (X, Y, T):
    shared.flags.writeable = False

MASK = np.arange(N) == 3
PEGASOS = {"max_iter": 20}


def made(name, **parameters):
    estimator = getattr(mercer.estimators, name)()
    own = estimator.get_params()
    chosen = (PEGASOS if name == "PegasosSVC" else {}) | ({"random_state": 0} if "random_state" in own else {})
    return estimator.set_params(**chosen | parameters)


def target(name):
    return Y if is_classifier(made(name)) else T


def kind_of(name):
    estimator = made(name)
    return "classifier" if is_classifier(estimator) else "regressor" if is_regressor(estimator) else "detector"


def fit(name, data=X, y=None, weight=None, **parameters):
    return made(name, **parameters).fit(data, target(name) if y is None else y, sample_weight=weight)


def values(model, data=X):
    return model.decision_function(data) if hasattr(model, "decision_function") else model.predict(data)


def damaged(form, attribute, change):
    broken = getattr(sparse, f"{form}_array")(X)
    setattr(broken, attribute, change(np.array(getattr(broken, attribute))))
    return broken


def put(place, value):
    def change(array):
        array[place] = value
        return array

    return change


def frame(**columns):
    return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]} | columns)


def objects(*labels):
    return np.array(labels * (N // len(labels)), dtype=object)


# --- refused: what is given to fit beside the estimator, and a pattern for what is said -----------------------------

DATA = {
    "masked X": ({"data": np.ma.masked_array(X, mask=X > 1)}, r"X is a masked array.*fill or drop"),
    "text that spells numbers": ({"data": X.astype(str)}, r"X must hold numbers, but its dtype is <U.*astype\(float\)"),
    "bytes that spell numbers": ({"data": X.astype("S")}, r"X must hold numbers, but its dtype is \|S"),
    "dates": ({"data": (1000 * X).astype("M8[D]")}, r"X must hold numbers, but its dtype is datetime64"),
    "a column of dates": (
        {"data": frame(b=pd.date_range("2020", periods=N))},
        r"column 'b' of X does not hold numbers",
    ),
    "a column of categories": ({"data": frame(b=pd.Categorical(["u", "v"] * 20))}, r"column 'b' of X does not hold"),
    "a column with NA": ({"data": frame(b=pd.array([1, None] * 20, dtype="Int64"))}, r"X contains NaN: X\[1, 1\]"),
    "infinities of both signs": (
        {"data": np.where(np.eye(N, 3) > 0, [np.inf, -np.inf, 0.0], X)},
        r"X contains infinity: X\[0, 0\]=inf, and 2 such",
    ),
    "COO row outside": ({"data": damaged("coo", "row", put(3, 1000))}, r"damaged COO.*row holds 1000.*0 to 39"),
    "COO column outside": ({"data": damaged("coo", "col", put(3, 1000))}, r"damaged COO.*col holds 1000.*0 to 2"),
    "COO column negative": ({"data": damaged("coo", "col", put(3, -1))}, r"damaged COO.*col holds -1"),
    "COO without a value": ({"data": damaged("coo", "data", lambda a: a[:-1])}, r"damaged COO.*differ in length"),
    "CSR index outside": ({"data": damaged("csr", "indices", put(3, 1000))}, r"damaged CSR.*indices holds 1000"),
    "CSR without a value": ({"data": damaged("csr", "data", lambda a: a[:-1])}, r"damaged CSR.*120 entries.*119"),
    "CSR indices of floats": ({"data": damaged("csr", "indices", lambda a: a * 1.0)}, r"damaged CSR.*integers"),
    "CSR ends beyond": ({"data": damaged("csr", "indptr", put(-1, 10**6))}, r"damaged CSR.*indptr must rise"),
    "CSC index outside": ({"data": damaged("csc", "indices", put(3, 1000))}, r"damaged CSC.*indices holds 1000"),
    "BSR index outside": ({"data": damaged("bsr", "indices", put(0, 1000))}, r"damaged BSR.*indices holds 1000"),
    "DIA without an offset": ({"data": damaged("dia", "offsets", lambda a: a[:-1])}, r"damaged DIA.*one row for each"),
    "masked weights": ({"weight": np.ma.masked_array(np.ones(N), mask=MASK)}, r"sample_weight is a masked array"),
    "complex weights": ({"weight": np.ones(N) + 1j}, r"sample_weight must hold real numbers.*complex128"),
    "weights of text": ({"weight": ["1"] * N}, r"sample_weight must hold real numbers"),
    "weights of objects": ({"weight": [[1]] + [1] * (N - 1)}, r"inhomogeneous|sample_weight"),
    "weights as a matrix": ({"weight": sparse.csr_array(np.ones((N, 1)))}, r"sample_weight"),
    "weights of NA": ({"weight": pd.Series([None] + [1.0] * (N - 1), dtype="Float64")}, r"sample_weight\[0\]=nan"),
    "two columns of one name": ({"data": pd.DataFrame(X, columns=["a", "a", "b"])}, r"(?i)unique column names|column"),
    "weights that overflow": ({"weight": np.full(N, 1e308)}, r"sample_weight adds up to more.*1e\+308: divide"),
    "no finite weight": ({"weight": math.inf}, r"sample_weight\[0\]=inf"),
}
LABELS = {
    "masked labels": (np.ma.masked_array(Y, mask=MASK), r"y is a masked array"),
    "objects that are integers": (Y.astype(object), r"y is an array of objects \(int\).*astype"),
    "str and None": (objects("a", None), r"y mixes label types \(NoneType, str\)"),
    "str and int": (objects("a", 1), r"y mixes label types \(int, str\)"),
    "NaN": (np.where(MASK, np.nan, Y), r"y contains NaN: y\[3\]"),
    "infinity": (np.where(MASK, np.inf, Y), r"y contains infinity: y\[3\]"),
    "NA": (pd.Series([None, *Y[1:]], dtype="Int64"), r"y contains NaN: y\[0\]"),
    "complex": (Y + 1j, r"(?i)complex"),
}
TARGETS = {
    "masked targets": (np.ma.masked_array(T, mask=MASK), r"y is a masked array"),
    "text": (T.astype(str), r"y must hold real numbers.*<U.*Convert"),
    "text as objects": (objects("1.5"), r"y must hold real numbers.*object.*'1.5'"),
    "bytes": (T.astype("S"), r"y must hold real numbers"),
    "dates": (T.astype("M8[D]"), r"y must hold real numbers.*datetime64"),
    "NaN": (np.where(MASK, np.nan, T), r"(?i)y contains nan.*3"),
    "infinity": (np.where(MASK, np.inf, T), r"(?i)y contains inf.*3"),
    "missing": (objects(None), r"(?i)y contains nan.*0"),
}
CLASS_WEIGHTS = {"nothing": None, "a list": [1], "a complex number": 1j, "text": "a", "NaN": np.nan, "negative": -1}


def refused(act, text, kind=(ValueError, TypeError)):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(kind, match=text):
            act()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("case", DATA)
def test_data_and_weights_that_cannot_be(name, case):
    given, text = DATA[case]
    refused(lambda: fit(name, **given), f"(?s){text}")


@pytest.mark.parametrize("name", [name for name in NAMES if kind_of(name) != "detector"])
def test_targets_that_cannot_be(name):
    for y, text in (LABELS if kind_of(name) == "classifier" else TARGETS).values():
        refused(lambda y=y: fit(name, y=y), f"(?s){text}")


@pytest.mark.parametrize("name", [name for name in NAMES if "class_weight" in made(name).get_params()])
def test_class_weights_that_cannot_be(name):
    for value in CLASS_WEIGHTS.values():
        refused(
            lambda value=value: fit(name, class_weight={0: value}), r"class_weight\[0\]=.*must be a number", ValueError
        )


@pytest.mark.parametrize("name", NAMES)
def test_what_predict_is_given_is_checked_too(name):
    model = fit(name)
    for data in (DATA["COO row outside"], DATA["DIA without an offset"], DATA["masked X"], DATA["dates"]):
        refused(lambda data=data: model.predict(data[0]["data"]), f"(?s){data[1]}")


# --- stood: as good as the plain array ------------------------------------------------------------------------------


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


@pytest.mark.parametrize("name", NAMES)
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


@pytest.mark.parametrize("name", [name for name in NAMES if kind_of(name) == "classifier"])
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


# --- a fit says what it is worth ------------------------------------------------------------------------------------


def worth(act):
    """What a fit came to: a model that is finite, and proven where it says so, or an error that says what to scale."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = act()
        except (FloatingPointError, ValueError) as error:
            return str(error)
    finite = np.isfinite(model.intercept_).all() and np.isfinite(values(model)).all()
    proven = not model.converged_ or not hasattr(model, "certificate_") or math.isfinite(model.certificate_.gap)
    return "good" if finite and proven else "not finite" if not finite else "unproven"


@pytest.mark.parametrize("scale", [1e-300, 1e30, 1e100, 1e200, 1e307])
@pytest.mark.parametrize("name", NAMES)
def test_no_scale_of_the_features_makes_a_model_of_nan(name, scale):
    parameters = {"kernel": "linear"} if "kernel" in made(name).get_params() else {}
    found = worth(lambda: fit(name, scale * np.tanh(X), **parameters))
    assert found == "good" or any(word in found for word in ("scale", "Scale", "semi-definite", "hulls meet"))


@pytest.mark.parametrize("weight", [1e-320, 1e-300, 1e-8, 1e8, 1e300])
@pytest.mark.parametrize("name", NAMES)
def test_no_scale_of_the_weights_makes_a_model_of_nan(name, weight):
    found = worth(lambda: fit(name, weight=np.full(N, weight)))
    assert found == "good" or (not 1e-9 < weight < 1e9 and any(word in found for word in ("scale", "too small")))


@pytest.mark.parametrize("machine", [OneClassSVM, NuSVC])
@pytest.mark.parametrize("factor", [1e-9, 1e-4, 1e4, 1e9])
def test_nu_machines_know_only_the_proportions_of_the_weights(machine, factor):
    """Their problem, and its violations, scale with the weights: a tolerance that does not would stop anywhere."""
    weight = 1.0 + rng.uniform(size=N)
    one, other = (machine(0.3).fit(X, Y, sample_weight=w) for w in (weight, factor * weight))
    assert one.converged_
    assert other.converged_
    assert other.certificate_.relative_gap <= 5 * one.certificate_.relative_gap + 1e-9
    f, g = one.decision_function(X), other.decision_function(X)
    scale = factor if machine is OneClassSVM else 1.0
    np.testing.assert_allclose(g, scale * f, atol=5e-3 * scale)


@pytest.mark.parametrize("solver", ["newton", "dual"])
@pytest.mark.parametrize("steps", [0, 1, 2])
def test_a_linear_machine_cut_short_says_so(solver, steps):
    """β may fit f = Xw + b while w is nowhere near X'β: with no step taken all other conditions hold."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LinearSVC(solver=solver, max_iter=steps).fit(X, Y)
    optimum = LinearSVC(tol=1e-10).fit(X, Y).certificate_.primal
    assert not model.converged_
    assert model.stop_reason_ == "max_iter"
    assert model.certificate_.violation > 1e-4
    assert model.certificate_.primal - optimum <= model.certificate_.gap + 1e-9


@pytest.mark.parametrize("solver", ["newton", "dual"])
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_targets_that_are_all_zero(solver, loss):
    model = LinearSVR(solver=solver, loss=loss).fit(X, np.zeros(N))
    assert model.converged_
    np.testing.assert_allclose(model.predict(X), 0.0, atol=1e-12)


@pytest.mark.parametrize("scale", [1.0, 1e2, 1e4, 1e8])
def test_the_huber_loss_far_from_its_targets(scale):
    """Where no sample has curvature, only a search finds b; and a gap counts on the b that balances the gradients."""
    model = KernelMachineRegressor("huber", lam=1.0, tol=1e-9).fit(X, scale * T)
    other = SVR(0.5, loss="huber", tol=1e-9).fit(X, scale * T)
    assert model.converged_
    assert model.certificate_.primal == pytest.approx(2 * other.certificate_.primal, rel=1e-8)
    assert model.certificate_.kkt["dual feasibility: equality"] <= 1e-6


def test_a_gap_of_nan_proves_nothing():
    with pytest.warns(ConvergenceWarning, match="gap nan"), np.errstate(all="ignore"):
        assert not KernelMachineRegressor().fit(X, T, sample_weight=np.full(N, 1e300)).converged_


@pytest.mark.parametrize("bias", [True, False])
def test_a_path_over_a_matrix_of_zeros(bias):
    with np.errstate(divide="raise", invalid="raise", over="raise"):
        model = RLSRegressorCV(kernel="precomputed", bias=bias).fit(np.zeros((N, N)), T)
    np.testing.assert_allclose(model.predict(np.zeros((2, N))), T.mean() if bias else 0.0)


def test_a_matrix_of_zeros_ends():
    with pytest.raises(ValueError, match="reduced hulls meet"):
        NuSVC(kernel="precomputed").fit(np.zeros((N, N)), Y)


@pytest.mark.parametrize("name", [name for name in NAMES if "kernel" in made(name).get_params()])
def test_a_matrix_at_the_end_of_float64(name):
    refused(lambda: fit(name, np.full((N, N), 1.7e308), kernel="precomputed"), "1.7e\\+308.*scale", FloatingPointError)


@pytest.mark.parametrize("name", [name for name in NAMES if "cache_size" in made(name).get_params()])
def test_next_to_no_memory_is_enough_or_an_error(name):
    """A block of two variables gains too little to be told from a stall."""
    try:
        model = fit(name, cache_size=1e-6)
    except MemoryError as error:
        assert "cache_size" in str(error)  # noqa: PT017  # a fit may succeed; only its error is judged
        return
    assert model.converged_
    np.testing.assert_allclose(values(model), values(fit(name)), atol=5e-3)


def test_numbers_of_numpy_are_parameters():
    for kind in (np.int8, np.float32, np.float64):
        one = PegasosSVC(kind(1), max_iter=20, random_state=0).fit(X, Y)
        np.testing.assert_array_equal(one.coef_, PegasosSVC(1.0, max_iter=20, random_state=0).fit(X, Y).coef_)


def test_parameters_are_named():
    refused(lambda: LinearSVR(epsilon=None).fit(X, T), "epsilon=None must be a number", TypeError)
    refused(lambda: LinearSVR(epsilon=True).fit(X, T), "epsilon=True must be a number", TypeError)
    refused(lambda: NystromRLS(random_state="x").fit(X, T), "random_state='x' must be None", ValueError)


# --- a fitted model is what it was fitted as ------------------------------------------------------------------------

# Read when predicting, as in scikit-learn.
READ_LATER = {"decision_function_shape", "break_ties", "n_jobs", "verbose"}


@pytest.mark.parametrize("name", NAMES)
def test_parameters_set_after_fit_change_no_prediction(name):
    targets = [Y, THREE] if kind_of(name) == "classifier" else [T]
    starts = [{}, {"multiclass": "ovr"}] if name == "SVC" else [{}]
    starts = [*starts, {"quantiles": [0.2, 0.8]}] if name == "QuantileSVR" else starts
    for y in targets:
        for start in starts:
            model = fit(name, y=y, **start)
            before = model.predict(X)
            kept = pickle.dumps(model)
            for parameter in made(name).get_params().keys() - READ_LATER:
                for value in (object(), -1, "ovo", [0.1, 0.9]):
                    changed = pickle.loads(kept)
                    setattr(changed, parameter, value)
                    np.testing.assert_array_equal(changed.predict(X), before, err_msg=f"{parameter}={value!r}")


@pytest.mark.parametrize("name", NAMES)
def test_a_failed_fit_changes_nothing(name):
    model = fit(name)
    before, decided = dict(vars(model)), values(model)
    failures = [
        partial(model.fit, np.where(np.eye(N, 3) > 0, np.nan, X), target(name)),
        partial(model.fit, X[:, :2], target(name), sample_weight=np.full(N, np.nan)),
        partial(model.fit, frame(), target(name), sample_weight=np.zeros(N)),
    ]
    for fail in failures:
        refused(fail, "", ValueError)
        after = vars(model)
        assert after.keys() == before.keys()
        assert all(after[key] is before[key] for key in before)
    np.testing.assert_array_equal(values(model), decided)
    fresh = made(name)
    refused(partial(fresh.fit, X, target(name), sample_weight=np.full(N, np.nan)), "sample_weight", ValueError)
    assert not [key for key in vars(fresh) if key.endswith("_") and not key.startswith("__")]


@pytest.mark.parametrize("name", NAMES)
def test_a_model_shares_nothing_with_its_data(name):
    y, weight = target(name).copy(), np.linspace(0.1, 2.0, N)
    for data in (X.copy(), np.asfortranarray(X), sparse.csr_array(X), X.astype(np.float32)):
        parts = [data.data, data.indices, data.indptr] if sparse.issparse(data) else [data]
        copies = [part.copy() for part in (*parts, y, weight)]
        model = fit(name, data, y, weight)
        model.predict(data)
        for part, copy in zip((*parts, y, weight), copies, strict=True):
            np.testing.assert_array_equal(part, copy)
            assert part.flags.writeable
        decided = values(model)
        parts[0][:] = 7
        np.testing.assert_array_equal(values(model), decided)
        for key, value in vars(model).items():
            assert not (isinstance(value, np.ndarray) and value.flags.writeable), key


def test_several_quantiles_stay_several():
    model = QuantileSVR([0.2, 0.8]).fit(X, T)
    before = model.predict(X)
    np.testing.assert_array_equal(model.set_params(quantiles=0.5).predict(X), before)
