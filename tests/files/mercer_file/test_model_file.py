"""mercer.save and mercer.load: the same predictions bit for bit, and no way for a file to do harm."""

import dataclasses
import os
import pickle

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import SVC, kernels
from mercer.files.mercer_file.container import write_container
from mercer.files.mercer_file.model_file import describe_model
from mercer.runtime.errors import ModelFormatError
from reference.forgery import forge, taken_apart

X, y = make_classification(60, 5, random_state=0)
X3, y3 = load_iris(return_X_y=True)
WORDS = ["abab", "abba", "baba", "cdcd", "dcdc", "ccdd", "abcd", "aabb"] * 3
WORD_LABELS = ["ab" if word.count("a") else "cd" for word in WORDS]
K = X @ X.T


def strings_kernel():
    return kernels.Spectrum()


MODELS = {
    "two classes": lambda: (SVC(C=2.0).fit(X, y), X),
    "several classes": lambda: (SVC(decision_function_shape="ovo").fit(X3, y3), X3),
    "float32": lambda: (SVC().fit(X.astype(np.float32), y), X.astype(np.float32)),
    "column order": lambda: (SVC().fit(np.asfortranarray(X), y), X),
    "CSR": lambda: (SVC(kernel="linear").fit(sp.csr_matrix(X * (X > 0)), y), sp.csr_matrix(X)),
    "CSR array, int64": lambda: (SVC().fit(sp.csr_array(X * (X > 0)), y), X),
    "precomputed": lambda: (SVC(kernel="precomputed").fit(K, y), K),
    "strings": lambda: (SVC(kernel=strings_kernel()).fit(WORDS, WORD_LABELS), ["abca", "dd", "ab"]),
    "sum and product": lambda: (
        SVC(kernel=2.0 * kernels.Gaussian(gamma=0.3) + kernels.Linear() * kernels.Polynomial(degree=2)).fit(X, y),
        X,
    ),
    "normalised power": lambda: (SVC(kernel=(kernels.Polynomial(degree=2) ** 2).normalised()).fit(X, y), X),
    "matrix of a kernel": lambda: (SVC(kernel=kernels.Gaussian(M=np.diag([1.0, 2, 3, 4, 5]))).fit(X, y), X),
    "names and weights": lambda: (
        SVC(class_weight={"no": 2.0, "yes": 1.0}).fit(X, np.where(y, "yes", "no")),
        X,
    ),
    "weights of numbers": lambda: (SVC(class_weight={0: 2.0, np.int64(1): 1.0}).fit(X, y), X),
    "boolean labels": lambda: (SVC().fit(X, y.astype(bool)), X),
    "object labels": lambda: (SVC().fit(X, np.array(["b", "a"], dtype=object)[y]), X),
    "hard margin": lambda: (SVC(C=np.inf).fit(X, y), X),
    "one against the rest": lambda: (SVC(multiclass="ovr", bias="regularized", slack="l2").fit(X3, y3), X3),
    "NuSVC": lambda: (mercer.NuSVC(nu=0.3).fit(X3, y3), X3),
    "SVR": lambda: (mercer.SVR().fit(X, X[:, 0]), X),
    "SVR, precomputed": lambda: (mercer.SVR(kernel="precomputed").fit(K, X[:, 0]), K),
    "Huber": lambda: (mercer.SVR(loss="huber", bias=False).fit(sp.csr_array(X), X[:, 0]), X),
    "NuSVR": lambda: (mercer.NuSVR().fit(X, X[:, 0]), X),
    "QuantileSVR": lambda: (mercer.QuantileSVR([0.1, 0.9]).fit(X, X[:, 0]), X),
    "RankSVM": lambda: (mercer.RankSVM().fit(X, X[:, 0]), X),
    "SVR, several outputs": lambda: (mercer.SVR().fit(X, X[:, :2]), X),
    "OneClassSVM": lambda: (mercer.OneClassSVM().fit(X), X),
    "SVDD": lambda: (mercer.SVDD(kernel="linear").fit(X), X),
    "joint": lambda: (SVC(multiclass="crammer-singer").fit(X3, y3), X3),
    "PegasosSVC": lambda: (mercer.PegasosSVC(random_state=0).fit(X3, y3), X3),
    "LinearSVC": lambda: (mercer.LinearSVC().fit(X3, y3), X3),
    "LinearSVR": lambda: (mercer.LinearSVR().fit(X, X[:, 0]), X),
    "MKLClassifier": lambda: (mercer.MKLClassifier(kernel=["linear", kernels.Gaussian(1.0)], norm=2.0).fit(X3, y3), X3),
    "MKLRegressor": lambda: (mercer.MKLRegressor().fit(X, X[:, 0]), X),
    "MKL, precomputed": lambda: (mercer.MKLClassifier(kernel="precomputed").fit([K, X @ X.T], y), [K, X @ X.T]),
    "NystromRLS": lambda: (mercer.NystromRLS(random_state=0).fit(X, X[:, :2]), X),
    "NystromRLSClassifier": lambda: (mercer.NystromRLSClassifier(random_state=0).fit(X3, y3), X3),
    "KernelMachineClassifier": lambda: (mercer.KernelMachineClassifier().fit(X3, y3), X3),
    "KernelMachineRegressor": lambda: (mercer.KernelMachineRegressor().fit(X, X[:, 0]), X),
    "RLSClassifier": lambda: (mercer.RLSClassifier(kernel="linear").fit(X3, y3), X3),
    "RLSClassifierCV": lambda: (mercer.RLSClassifierCV().fit(X3, y3), X3),
    "RLSRegressor": lambda: (mercer.RLSRegressor().fit(X, X[:, :2]), X),
    "RLSRegressorCV": lambda: (mercer.RLSRegressorCV().fit(X, X[:, 0]), X),
    "pipeline": lambda: (make_pipeline(StandardScaler(), SVC()).fit(X, y), X),
    "pipeline of CSR": lambda: (
        make_pipeline(StandardScaler(with_mean=False), SVC()).fit(sp.csr_array(X), y),
        X,
    ),
}


def public_state(model):
    return {name: value for name, value in vars(model).items() if name.endswith("_") and not name.startswith("_")}


def assert_same(a, b):
    assert type(a) is type(b)
    if sp.issparse(a):
        assert a.shape == b.shape
        for part in ("data", "indices", "indptr"):
            assert_same(getattr(a, part), getattr(b, part))
    elif isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        assert (a == b).all() if a.dtype == object else a.tobytes() == b.tobytes()
    elif isinstance(a, kernels.Kernel):
        assert_same(a.get_params(deep=False), b.get_params(deep=False))
    elif dataclasses.is_dataclass(a):
        # What is private is made when it is needed, and not saved, and so is a Lagrangian.
        assert_same(
            *(
                {name: value for name, value in vars(c).items() if name[0] != "_" and name != "lagrangian"}
                for c in (a, b)
            )
        )
    elif isinstance(a, (tuple, list)):
        assert len(a) == len(b)
        for one, other in zip(a, b, strict=True):
            assert_same(one, other)
    elif isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            assert_same(a[key], b[key])
    else:
        assert a == b


@pytest.mark.parametrize("case", MODELS)
def test_round_trip(path, case):
    model, inputs = MODELS[case]()
    mercer.save(model, path)
    loaded = mercer.load(path)
    assert type(loaded) is type(model)
    steps = zip(model, loaded, strict=True) if hasattr(model, "steps") else [(model, loaded)]
    for before, after in steps:
        assert_same(public_state(before), public_state(after))
        assert_same(before.get_params(deep=False), after.get_params(deep=False))
    decide = "decision_function" if hasattr(model, "decision_function") else "predict"
    assert_same(getattr(model, decide)(inputs), getattr(loaded, decide)(inputs))
    assert_same(model.predict(inputs), loaded.predict(inputs))
    mercer.save(loaded, path)
    assert_same(getattr(mercer.load(path), decide)(inputs), getattr(model, decide)(inputs))


def test_every_estimator_is_saved_by_some_case():
    saved = {type(make()[0]).__name__ for make in MODELS.values()}
    assert saved >= set(mercer.estimators.__all__)


def test_an_infinite_C(path):
    model = SVC(C=1e9, kernel="linear", gap_tol=0.5).fit([[0.0], [1.0]], [0, 1]).set_params(C=np.inf)
    mercer.save(model, path)
    assert np.isinf(mercer.load(path).C)


def test_a_loaded_model_can_be_cloned_and_fitted_again(path):
    model = SVC(kernel=kernels.Gaussian(gamma="scale") + kernels.Linear()).fit(X, y)
    mercer.save(model, path)
    again = mercer.load(path).fit(X, y)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_feature_names_survive(path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("vwxyz"))
    model = make_pipeline(StandardScaler().set_output(transform="pandas"), SVC()).fit(frame, y)
    mercer.save(model, path)
    assert list(mercer.load(path).feature_names_in_) == list("vwxyz")


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (lambda: SVC(), NotFittedError, "not fitted"),
        (lambda: SVC(kernel=lambda a, b: a @ b.T).fit(X, y), TypeError, "Python function.*pickle"),
        (lambda: LogisticRegression().fit(X, y), TypeError, "LogisticRegression.*pickle"),
        (
            lambda: SVC(random_state=np.random.RandomState(0)).fit(X, y),
            TypeError,
            "random_state.*RandomState.*pickle",
        ),
        (lambda: type("Mine", (SVC,), {})().fit(X, y), TypeError, "Mine.*pickle"),
    ],
)
def test_what_cannot_be_saved(path, model, error, message):
    with pytest.raises(error, match=message):
        mercer.save(model(), path)
    assert not path.exists()


def refused_with_damage_at(path, case, places):
    """A file of this kind, cut off and with a bit flipped at each of the places."""
    model, _ = MODELS[case]()
    mercer.save(model, path)
    content = path.read_bytes()
    for at in places(len(content)):
        damaged = bytearray(content)
        damaged[at] ^= 1 << (at % 8)
        for bad in (content[:at], damaged):
            path.write_bytes(bad)
            with pytest.raises(ModelFormatError):
                mercer.load(path)


@pytest.mark.parametrize("case", MODELS)
def test_damage_to_a_file_of_every_kind(path, case):
    refused_with_damage_at(path, case, lambda size: [*range(0, 120, 7), *range(120 + size % 211, size, 211), size - 1])


@pytest.mark.thorough
@pytest.mark.parametrize("case", MODELS)
def test_damage_to_every_byte_of_a_file_of_every_kind(path, case):
    refused_with_damage_at(path, case, range)


def refused_on_both_ways(model, path, message):
    """Neither is the model saved, nor is a file loaded that somebody else wrote of it."""
    with pytest.raises(TypeError, match=message):
        mercer.save(model, path)
    assert not path.exists()
    arrays = {}
    write_container(path, {"model": describe_model(model, arrays)}, arrays)
    with pytest.raises(ModelFormatError, match=message):
        mercer.load(path)


@pytest.mark.parametrize(
    ("learnt", "message"),
    [
        ({"probA_": [1.0, 2.0], "probB_": [0.0]}, "probA_ must be 1 numbers"),
        ({"probA_": [1.0], "probB_": [np.nan]}, "probB_ must be 1 numbers"),
        ({"probB_": [1.0]}, "no probB_ without probA_"),
        ({"prob_density_marks_": [1.0]}, "prob_density_marks_ must be 10 numbers"),
    ],
)
def test_probabilities_that_are_none(path, learnt, message):
    model = SVC().fit(X, y)
    for name, value in learnt.items():
        setattr(model, name, np.array(value))
    refused_on_both_ways(model, path, message)


@pytest.mark.parametrize(
    ("machine", "learnt"),
    [
        (mercer.LinearSVC(), {"coef_": np.zeros((2, X.shape[1]))}),
        (mercer.LinearSVC(), {"coef_": np.full((1, X.shape[1]), np.nan)}),
        (mercer.LinearSVC(), {"coef_": np.zeros((1, X.shape[1]), dtype=np.float32)}),
        (mercer.LinearSVC(), {"intercept_": np.zeros(2)}),
        (mercer.LinearSVR(), {"coef_": np.zeros((1, X.shape[1]))}),
    ],
)
def test_weights_that_are_none(path, machine, learnt):
    model = clone(machine).fit(X, y)
    for name, value in learnt.items():
        setattr(model, name, value)
    refused_on_both_ways(model, path, r"(coef_|intercept_) must be .* numbers")


def test_what_no_fit_leaves_is_not_saved(path):
    model = SVC().fit(X, y)
    model.notes_ = "mine"
    with pytest.raises(TypeError, match=r"SVC\.notes_ is not a fitted attribute.*pickle"):
        mercer.save(model, path)


@pytest.mark.parametrize("case", [case for case in MODELS if not case.startswith("pipeline")])
def test_a_state_with_something_missing(path, case):
    """Each learnt attribute in turn: ModelFormatError, or a model that predicts as before."""
    model, samples = MODELS[case]()
    mercer.save(model, path)
    content, answer = path.read_bytes(), model.predict(samples)
    described = taken_apart(content)[0]["content"]["model"]
    refused = 0
    for part in (("state", "fitted"), ("arrays",)):
        names = described[part[0]][part[1]] if len(part) == 2 else described[part[0]]
        for name in names:

            def change(header, part=part, name=name):
                holder = header["content"]["model"]
                for key in part:
                    holder = holder[key]
                del holder[name]

            path.write_bytes(forge(content, change))
            try:
                loaded = mercer.load(path)
            except ModelFormatError:
                refused += 1
                continue
            np.testing.assert_array_equal(loaded.predict(samples), answer)
    assert refused > 2


def test_errors_name_the_file_and_the_writer(path, small):
    content, _ = small

    def change(header):
        header["content"]["mercer"] = "9.9"
        header["content"]["model"]["class"] = "Oracle"

    path.write_bytes(forge(content, change))
    with pytest.raises(ModelFormatError, match=r"model\.mercer', written by mercer '9\.9'.*'Oracle' is not"):
        mercer.load(path)


def test_files_that_hold_no_model(path):
    path.write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(ModelFormatError, match="not a mercer model file"):
        mercer.load(path)
    with pytest.raises(FileNotFoundError):
        mercer.load(path.with_name("missing"))


def test_pickle_and_joblib_work_too(path):
    model = SVC().fit(X, y)
    joblib.dump(model, path)
    copies = [pickle.loads(pickle.dumps(model)), joblib.load(path), joblib.load(path, mmap_mode="r")]
    for loaded in copies:
        np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))


def test_a_failed_save_leaves_the_old_model(path, small, monkeypatch):
    content, _ = small
    path.write_bytes(content)

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        mercer.save(SVC().fit(X, y), path)
    assert path.read_bytes() == content
