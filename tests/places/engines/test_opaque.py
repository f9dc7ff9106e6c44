"""Every machine and every tool on an engine whose arrays nobody can read, against this machine's answers."""

import dataclasses
import functools
import inspect
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import mercer
import mercer.estimators
import mercer.inspection.features
from contracts.named import named
from contracts.samples_contract import check_samples_contract, check_that_bad_entries_are_found
from mercer import theory
from mercer.kernels import Gaussian
from mercer.samples.engine import engine_of
from places.engines.opaque import ENGINE, Opaque, OpaqueSamples, show
from test_architecture import CELLS, KINDS, REFERENCES, by_hand, problem, target_of

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize(("name", "kind"), CELLS)
def test_every_machine_reaches_the_reference_value(name, kind):
    reference = REFERENCES[name]
    X, y = problem()
    target = target_of(reference.target, X, y)
    options = {} if kind == "rows" else {"kernel": KINDS[kind]()}
    K = X @ X.T if kind == "rows" else by_hand(X, X) if kind in ("callable", "precomputed") else options["kernel"](X)
    for data in ("dense", "csr", "weighted"):
        given = sp.csr_array(X) if data == "csr" else X
        weight = np.arange(len(y)) % 4 * 0.5 if data == "weighted" else np.ones(len(y))
        used = weight > 0
        with named(data):
            model = reference.model(**options)
            model.fit(Opaque(K if kind == "precomputed" else given), Opaque(target), sample_weight=Opaque(weight))
            value = reference.value(K[np.ix_(used, used)], target[used], weight[used])
            assert reference.right(model.certificate_, value), (model.certificate_, value)
            assert model.converged_


# --- every method that takes samples --------------------------------------------------------------------------------

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
y = (X[:, 0] + 0.4 * rng.normal(size=60) > 0).astype(int)
t = np.sin(X[:, 0]) + 0.1 * rng.normal(size=60)
NEW = rng.normal(size=(9, 3))

MODELS = [mercer.__dict__.get(name) or getattr(mercer, name) for name in mercer.estimators.__all__] + [
    mercer.KernelPCA,
    mercer.KernelKMeans,
    mercer.SpectralClustering,
    mercer.TunedSVC,
    mercer.TunedSVR,
]
SETTINGS = {"tol": 1e-8, "random_state": 0, "n_components": 2, "n_clusters": 2, "cv": 3}
# What a method is given beside X.
MORE = {
    "explain": lambda place: {"background": place(X[:7])},
    "partial_dependence": lambda place: {"features": [0], "grid_resolution": 4},
}


def as_it_is(array):
    return array


def fitted(make, place):
    model = make()
    known = model.get_params(deep=False)
    if "estimator" in known:
        machine = mercer.SVR if make is mercer.TunedSVR else mercer.SVC
        model.set_params(estimator=machine(tol=1e-8), grid={"C": [1.0, 10.0]})
    model.set_params(**{name: value for name, value in SETTINGS.items() if name in known})
    target = t if is_regressor(model) else y
    return model.fit(place(X), place(target)), target


once = functools.cache(fitted)


def copied(make, place):
    """A copy with attributes of its own, since some methods learn: what the attributes hold is read-only."""
    model, target = once(make, place)
    copy = make()
    copy.__dict__ = dict(vars(model))
    return copy, target


def is_regressor(model):
    return (
        getattr(model, "_estimator_type", None) == "regressor" or model.__sklearn_tags__().estimator_type == "regressor"
    )


def called(model, name, place, target):
    parameters = inspect.signature(getattr(model, name)).parameters
    rows = X if "y" in parameters else NEW
    options = {"y": place(target)} if "y" in parameters else {}
    return getattr(model, name)(place(rows), **options, **MORE.get(name, lambda place: {})(place))


def numbers(found):
    """All numbers that an answer holds, in a fixed order."""
    found = show(found) if isinstance(found, Opaque) else found
    if found is None or isinstance(found, str | bytes):
        return []
    if sp.issparse(found):
        return numbers(found.toarray())
    if isinstance(found, np.ndarray):
        return found.astype(np.float64).ravel().tolist() if found.dtype.kind in "fiub" else []
    if isinstance(found, int | float | np.number):
        return [float(found)]
    if isinstance(found, dict):
        return [value for key in sorted(found, key=str) for value in numbers(found[key])]
    if isinstance(found, list | tuple):
        return [value for item in found for value in numbers(item)]
    if dataclasses.is_dataclass(found):
        names = {field.name for field in dataclasses.fields(found)} - {"kernel_values"}  # which are the engine's own
        return numbers({name: getattr(found, name) for name in names})
    return []


def with_samples(make):
    """The public methods of an estimator that take samples."""
    found = set()
    for name in dir(make):
        method = None if name.startswith("_") else getattr(make, name, None)
        if callable(method) and "X" in inspect.signature(method).parameters:
            found.add(name)
    return sorted(found - {"fit", "fit_predict", "fit_transform"})


METHODS = [(make, name) for make in MODELS for name in with_samples(make)]


@pytest.mark.parametrize(("make", "name"), METHODS)
def test_every_method_gives_this_machines_answer(make, name):
    (here, target), (there, _) = copied(make, as_it_is), copied(make, Opaque)
    if not hasattr(here, name):
        pytest.skip("not with these parameters")
    try:
        expected = called(here, name, as_it_is, target)
    except (ValueError, TypeError) as error:  # what a machine refuses, it refuses everywhere
        with pytest.raises(type(error)):
            called(there, name, Opaque, target)
        return
    found = called(there, name, Opaque, target)
    for answer in ("predict", "predict_proba", "p_values") if name == "calibrate" else ():
        if hasattr(expected, answer):
            one, other = getattr(expected, answer)(NEW), getattr(found, answer)(Opaque(NEW))
            np.testing.assert_allclose(numbers(other), numbers(one), atol=1e-4)
    answered = isinstance(expected, np.ndarray)
    assert type(found) is (Opaque if answered and name != "gradient_importance" else type(expected))
    found = show(found) if isinstance(found, Opaque) else found
    if make in (mercer.KernelKMeans, mercer.SpectralClustering) and name == "predict":  # clusters have no order
        found, expected = found[:, None] == found, expected[:, None] == expected
    np.testing.assert_allclose(numbers(found), numbers(expected), rtol=1e-3, atol=1e-3)


# --- functions of samples -------------------------------------------------------------------------------------------


def machine(place, tol=1e-8):
    return mercer.SVC(tol=tol).fit(place(X), place(y))


def small(model):
    """How near it is to the original, to three digits: the search for positions has many ends."""
    return round(float(np.max(model.compression_.error)), 3)


def compressed(place):
    """Number of vectors, and whether f is as near as is stated: last bits decide among the ends of the search."""
    model = machine(place, 1e-6)
    less = mercer.compress(model, n_vectors=9)
    apart = model.decision_function(NEW) - less.decision_function(NEW)
    stated = less.compression_.error + less.compression_.b_change
    return [less.compression_.n_vectors, bool(np.abs(apart).max() <= (1 + 1e-9) * np.max(stated))]


def bounded(place, kernel, samples):
    """Whether what a smaller machine states about new samples holds for them."""
    model = mercer.SVC(tol=1e-8, kernel=kernel).fit(place(samples(X)), y)
    less = mercer.compress(model, n_vectors=9, X=place(samples(X)))
    apart = np.subtract(*(numbers(one.decision_function(place(samples(NEW)))) for one in (model, less)))
    return bool((np.abs(apart) <= numbers(less.compression_.bound(place(samples(NEW))))).all())


def restarted(place):
    model = mercer.SVC(tol=1e-8, warm_start=True).fit(place(X), place(y))
    return model.partial_fit(place(NEW), place(np.arange(9) % 2)).decision_function(place(NEW))


KERNELS = [Gaussian(0.3), Gaussian(0.3).normalised(), Gaussian(0.2) + mercer.kernels.Linear()]
FEATURES = [mercer.features.RandomFourier(random_state=0), mercer.features.Nystrom(random_state=0)]
FEATURES += [mercer.features.Monomials(), mercer.features.GaussianSeries()]
TOOLS = {
    "tune": lambda place: (
        mercer.tune(mercer.SVC(), place(X), place(y), grid={"C": [1, 10], "gamma": [0.1, 1]}).best_score_
    ),
    "tune, its own grid": lambda place: mercer.tune(mercer.SVR(), place(X), place(t), cv=3).best_params_,
    "tune, precomputed": lambda place: (
        mercer.tune(mercer.SVC(kernel="precomputed"), place(by_hand(X, X)), place(y), grid={"C": [1, 10]}).best_score_
    ),
    "tune, weights": lambda place: (
        mercer.tune(mercer.SVC(), place(X), place(y), grid={"C": [1, 10]}, sample_weight=place(1.0 + y)).best_score_
    ),
    "svm_path": lambda place: mercer.svm_path(place(X), place(y), C_max=4.0).C_,
    "linear_path": lambda place: mercer.linear_path(place(X), place(y), Cs=[0.1, 1.0]).coef,
    "leave_one_out": lambda place: mercer.leave_one_out(machine(place), place(X), place(y)).values,
    "certify": lambda place: (
        mercer.certify(mercer.SVC(), place(X), place(y), np.where(y == 1, 1 / y.sum(), 1 / (60 - y.sum()))).gap
    ),
    "compress": compressed,
    "compress to samples": lambda place: mercer.compress(machine(place), n_vectors=9, X=place(X)).predict(place(NEW)),
    "distance after compression": lambda place: [
        bounded(place, kernel, samples)
        for kernel, samples in ((Gaussian(0.4), sp.csr_array), (Gaussian(0.4).of(lambda rows: rows[:, :2]), np.asarray))
    ],
    "retrain": lambda place: small(
        mercer.compress(machine(np.asarray, 1e-6), n_vectors=9, X=place(X), y=place(y), retrain="loss")
    ),
    "mmd_test": lambda place: mercer.mmd_test(place(X), place(NEW), random_state=0),
    "KernelCCA": lambda place: (
        mercer.KernelCCA(n_components=1).fit(place(X), np.column_stack([t, t**2])).transform(place(NEW))
    ),
    "enclosing_ball": lambda place: theory.enclosing_ball(place(X)).radius,
    "ball around the origin": lambda place: theory.enclosing_ball(place(X), kernel="linear", centre="origin").radius,
    "iteration_path": lambda place: theory.iteration_path(place(X), place(t), max_iter=9).errors_on(place(X), place(t)),
    "GaussianProcessRegressor": lambda place: (
        mercer.GaussianProcessRegressor(optimise=False).fit(place(X), place(t)).predict(place(NEW), return_std=True)[1]
    ),
    "xi_alpha": lambda place: mercer.paths.xi_alpha(machine(place), place(X), place(y)),
    "span_estimate": lambda place: mercer.paths.span_estimate(machine(place), place(X), place(y)),
    "radius_margin": lambda place: mercer.paths.radius_margin(machine(place), place(X), place(y)),
    "a restart": restarted,
    "hard margin, about its medians": lambda place: (
        mercer.SVC(kernel="linear", C=np.inf, tol=1e-8).fit(place(X), place(X[:, 0] > 0)).decision_function(place(NEW))
    ),
    "kernel": lambda place: Gaussian(gamma=0.5)(place(X), place(NEW)),
    "diagonal": lambda place: [kernel.diag(place(X)) for kernel in KERNELS],
    "kernel on strings": lambda place: mercer.kernels.Spectrum(2)(place(["abab", "bb"]), place(["ab"])),
    "features": lambda place: [make.fit(place(X)).transform(place(NEW)) for make in FEATURES],
    "gradient": lambda place: Gaussian(gamma=0.5).gradient(place(X), place(NEW)),
    "function": lambda place: machine(place).function_(place(NEW)),
    "strings": lambda place: (
        mercer.SVC(kernel="spectrum")
        .fit(place(["".join("ab"[(i >> k) & 1] for k in range(6)) for i in range(60)]), place(y))
        .decision_function(place(["abab", "bbbb"]))
    ),
}


@pytest.mark.parametrize("name", TOOLS)
def test_every_tool_gives_this_machines_answer(name):
    expected, found = TOOLS[name](lambda array: array), TOOLS[name](Opaque)
    assert numbers(expected)
    np.testing.assert_allclose(numbers(found), numbers(expected), rtol=1e-4, atol=1e-4)


# --- where things live ----------------------------------------------------------------------------------------------


def test_a_trained_machine_lives_here_and_predicts_anywhere(tmp_path):
    model = machine(Opaque)
    expected = show(model.decision_function(Opaque(NEW)))
    assert isinstance(model.support_vectors_, np.ndarray)
    mercer.save(model, tmp_path / "model.mercer")
    for other in (
        model,
        pickle.loads(pickle.dumps(model)),
        mercer.load(tmp_path / "model.mercer"),
        machine(np.asarray),
    ):
        np.testing.assert_allclose(other.decision_function(NEW), expected, atol=1e-6)
        np.testing.assert_allclose(show(other.decision_function(Opaque(NEW))), expected, atol=1e-6)


def test_data_of_this_machine_go_where_the_configuration_says(monkeypatch):
    seen, gram = [], ENGINE.gram
    monkeypatch.setattr(type(ENGINE), "gram", lambda self, *given: seen.append(1) or gram(*given))
    with mercer.config_context(device="opaque"):
        assert mercer.get_config() == {"device": "opaque", "client": None}
        inside = machine(np.asarray)
    assert len(seen) == 1
    np.testing.assert_allclose(inside.decision_function(NEW), machine(np.asarray).decision_function(NEW), atol=1e-6)
    assert len(seen) == 1
    mercer.set_config(device="opaque")
    try:
        machine(np.asarray)
    finally:
        mercer.set_config(device="cpu")
    assert len(seen) == 2


def test_a_device_that_is_not_there_is_named():
    with (
        mercer.config_context(device="abacus"),
        pytest.raises(ValueError, match=r"device='abacus' is not known.*'cpu'"),
    ):
        machine(np.asarray)
    with pytest.raises(ValueError, match="must be the name of a device"):
        mercer.set_config(device=3)


def test_bad_samples_are_refused_where_they_live():
    broken = X.copy()
    broken[4, 1] = np.nan
    with pytest.raises(ValueError, match=r"contains NaN: X\[4, 1\]"):
        mercer.SVC().fit(Opaque(broken), y)
    with pytest.raises(ValueError, match="its shape is"):
        mercer.SVC().fit(Opaque(t), y)
    with pytest.raises(ValueError, match="expecting 3 features"):
        machine(Opaque).predict(Opaque(X[:, :2]))
    with pytest.raises(ValueError, match="not symmetric"):
        mercer.SVC(kernel="precomputed").fit(Opaque(rng.normal(size=(60, 60))), y)


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_samples_answer_as_arrays_do(precision):
    rows = X[:40].astype(precision)
    rows[::3, 1] = 0.0
    check_samples_contract(ENGINE.samples(rows), rows)
    check_samples_contract(ENGINE.samples(sp.csr_array(rows)), rows)
    check_that_bad_entries_are_found(ENGINE.samples, rows)


def test_nothing_reads_them_unasked():
    samples = engine_of(Opaque(X)).samples(Opaque(X))
    assert isinstance(samples, OpaqueSamples)
    for read in (np.asarray, len, list, np.sum, lambda array: array[0], lambda array: array + 1, np.sqrt):
        for array in (samples, Opaque(X)):
            with pytest.raises(TypeError):
                read(array)


def test_parameters_know_nothing_of_it():
    assert clone(machine(Opaque)).get_params() == mercer.SVC(tol=1e-8).get_params()
