"""Estimators that nobody told files/ about: their declaration is enough to save, load, check and pickle them."""

import copy
import pickle
import random
import warnings
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer.estimators.fitting.pipeline.class_spec import DeclaresState
from mercer.estimators.fitting.pipeline.dataclass_spec import OneOf
from mercer.estimators.fitting.pipeline.state import (
    Array,
    BoundKernel,
    Count,
    IndexArray,
    ListOf,
    NestedEstimator,
    Unsaved,
    expect,
    fitted,
)
from mercer.kernels import Gaussian
from mercer.runtime.errors import ModelFormatError
from mercer.tables.encodings import Numbers
from reference.address_space import address_space
from reference.forgery import forge
from reference.mutations import mutate_container

RNG = np.random.default_rng(5)
X = RNG.normal(size=(30, 3))
Y = (X[:, 0] + 0.5 * X[:, 1] > 0).astype(int)


class NearestMean(ClassifierMixin, DeclaresState, BaseEstimator):
    """The nearer of two class means in feature space, with a machine to ask where both are as near."""

    _FITTED = fitted(
        kernel_=BoundKernel(required=True),
        means_=Array(2, "features", required=True),
        nearest_=IndexArray("n_rows_", required=True),
        n_rows_=Count(required=True),
        machine_=NestedEstimator(methods=("predict",), required=True),
        columns_=ListOf(OneOf(Numbers), "features", required=True),
        distances_=Unsaved(pickled=False),
        classes_=Unsaved(),
    )

    def __init__(self, gamma=0.5, machine=None):
        self.gamma, self.machine = gamma, machine

    def fit(self, X, y):
        self.n_features_in_, self.n_rows_ = X.shape[1], len(X)
        self.kernel_ = Gaussian(gamma=self.gamma)
        self.means_ = np.array([X[y == side].mean(axis=0) for side in (0, 1)])
        self.machine_ = clone(mercer.SVC() if self.machine is None else self.machine).fit(X, y)
        self.columns_ = [Numbers(f"x{j}", 0.0, float(X[:, j].mean()), 1.0, 0, True) for j in range(X.shape[1])]
        self.distances_ = self.kernel_(X, self.means_)
        self.nearest_ = self.distances_.argmax(axis=0)
        self.classes_ = self.machine_.classes_
        return self

    def predict(self, X):
        near = self.kernel_(X, self.means_)
        return np.where(np.abs(near[:, 0] - near[:, 1]) < 0.1, self.machine_.predict(X), near.argmax(axis=1))

    def _check_fitted(self):
        expect(hasattr(self.machine_, "classes_"), "machine_ must be a classifier")

    def _complete_fitted(self):
        self.classes_ = self.machine_.classes_


class Shifted(mercer.SVC):
    """A machine of mercer's with a fitted attribute more."""

    _FITTED = fitted(shift_=Array("features", required=True))

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.shift_ = X.mean(axis=0)
        return self


class Stacked(mercer.SVC):
    """A machine of mercer's that holds another one."""

    _FITTED = fitted(first_=NestedEstimator(methods=("decision_function",), required=True))

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.first_ = mercer.LinearSVC().fit(X, y)
        return self

    def decision_function(self, X):
        return super().decision_function(X) + self.first_.decision_function(X)


CASES = {
    "alone": lambda: NearestMean().fit(X, Y),
    "of scikit-learn's": lambda: NearestMean(machine=make_pipeline(StandardScaler(), mercer.SVC())).fit(X, Y),
    "in a Pipeline": lambda: make_pipeline(StandardScaler(), NearestMean(0.3)).fit(X, Y),
    "a machine": lambda: Shifted(C=2.0).fit(X, Y),
    "a machine around a machine": lambda: Stacked(C=2.0).fit(X, Y),
}
CLASSES = (NearestMean, Shifted, Stacked)


@pytest.mark.parametrize("case", CASES)
def test_it_is_saved_and_loaded(case, path):
    model = CASES[case]()
    mercer.save(model, path)
    for mmap in (False, True):
        again = mercer.load(path, classes=CLASSES, mmap=mmap)
        assert type(again) is type(model)
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        assert vars(again).keys() == vars(model).keys() - {"distances_"}
    mercer.save(again, path)
    np.testing.assert_array_equal(mercer.load(path, classes=CLASSES).predict(X), model.predict(X))


def test_values_come_back_bit_for_bit(path):
    model = CASES["alone"]()
    mercer.save(model, path)
    again = mercer.load(path, classes=CLASSES)
    assert again.means_.tobytes() == model.means_.tobytes()
    assert again.kernel_.get_params() == model.kernel_.get_params()
    assert again.columns_ == model.columns_
    assert again.nearest_.tolist() == model.nearest_.tolist()
    np.testing.assert_array_equal(again.machine_.decision_function(X), model.machine_.decision_function(X))
    np.testing.assert_array_equal(again.classes_, [0, 1])


@pytest.mark.parametrize("case", CASES)
def test_a_class_that_the_caller_does_not_name_is_not_made(case, path):
    mercer.save(CASES[case](), path)
    with pytest.raises(ModelFormatError, match=r"is not an estimator of this mercer.*classes="):
        mercer.load(path)


def test_pickles_leave_out_what_the_declaration_says():
    model = CASES["alone"]()
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert vars(again).keys() == vars(model).keys() - {"distances_"}
        np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("where", "value", "told"),
    [
        (("fitted", "means_"), None, "means_ must be 2 × 3 numbers"),
        (("fitted", "means_"), [[0.0, 0.0, 0.0]] * 2, "means_ must be 2 × 3 numbers"),
        (("fitted", "n_features_in_"), 10**9, "means_ must be 2 × 1000000000 numbers"),
        (("fitted", "n_rows_"), 1, "nearest_ must be indices below 1"),
        (("fitted", "n_rows_"), -3, "n_rows_ must be a count|nearest_ must be indices"),
        (("fitted", "kernel_"), "rbf", "kernel_ must be a kernel"),
        (("fitted", "kernel_"), {"$": "kernel", "name": "os.system", "params": {}}, "not a kernel of this mercer"),
        (("fitted", "machine_"), None, "machine_ must be an estimator"),
        (("fitted", "machine_"), {"$": "estimator", "class": "Popen", "params": {}}, "'Popen' is not an estimator"),
        (("fitted", "machine_", "state", "params", "C"), [[1]] * 20_000, "'C' holds more than 10000 values"),
        (("fitted", "columns_"), [], "columns_ must be a list of 3"),
        (("fitted", "columns_", 0, "kind"), "Levels", "no known kind"),
        (("fitted", "columns_", 0, "scale"), 0.0, "scale of 'x0' must be positive"),
        (("fitted", "columns_", 0, "scale"), "1", "scale of columns_ must be float"),
        (("fitted", "columns_", 0, "code"), "import os", "is written with name, fill"),
        (("fitted", "__class__"), "SVC", "'__class__' is not an attribute that a fitted NearestMean has"),
        (("fitted", "distances_"), 1.0, "'distances_' is not an attribute"),
        (("params", "gamma"), [0] * 20_000, "'gamma' holds more than 10000 values"),
        (("params", "gamma"), {"$": "slice", "items": [0, 1, 2]}, "'gamma' is no number, word"),
        (("params", "code"), 1, "unexpected keyword"),
    ],
)
@pytest.mark.timeout(20)
def test_a_forged_file_is_refused(where, value, told, path):
    mercer.save(CASES["alone"](), path)

    def change(document):
        place = document["content"]["model"]
        for key in where[:-1]:
            place = place[key]
        place[where[-1]] = value

    path.write_bytes(forge(path.read_bytes(), change))
    with pytest.raises(ModelFormatError, match=told):
        mercer.load(path, classes=CLASSES)


@pytest.mark.parametrize("name", ["kernel_", "means_", "nearest_", "n_rows_", "machine_", "columns_"])
def test_a_required_attribute_is_missed(name, path):
    mercer.save(CASES["alone"](), path)
    path.write_bytes(forge(path.read_bytes(), lambda document: document["content"]["model"]["fitted"].pop(name)))
    with pytest.raises(ModelFormatError, match=f"it has no {name}"):
        mercer.load(path, classes=CLASSES)


def test_a_machine_without_estimators_takes_none_from_a_file(path):
    """SVC declares no estimator, so that a file cannot put one anywhere into it."""
    mercer.save(Shifted().fit(X, Y), path)
    inner = {"$": "estimator", "class": "SVC", "params": {}}
    for part in ("params", "fitted"):
        forged = forge(
            path.read_bytes(),
            lambda document, part=part: document["content"]["model"]["state"][part].update(kernel=inner),
        )
        path.with_name("forged").write_bytes(forged)
        with pytest.raises(ModelFormatError, match="'estimator' is not a kind of value"):
            mercer.load(path.with_name("forged"), classes=CLASSES)


def test_what_a_fit_left_must_be_what_the_class_declares(path):
    model = CASES["alone"]()
    model.means_ = model.means_[:, :2]
    with pytest.raises(TypeError, match="means_ must be 2 × 3 numbers"):
        mercer.save(model, path)
    for wrong, told in (
        (["x0", "x1", "x2"], r"columns_\[0\] is of no known kind"),
        (
            [replace(one, scale=np.float32(1.0)) for one in CASES["alone"]().columns_],
            "scale of columns_.* must be float",
        ),
    ):
        model = CASES["alone"]()
        model.columns_ = wrong
        with pytest.raises(TypeError, match=told):
            mercer.save(model, path)
    model = CASES["alone"]()
    model.notes_ = "mine"
    with pytest.raises(TypeError, match=r"NearestMean\.notes_ is not a fitted attribute"):
        mercer.save(model, path)
    assert not path.exists()


def test_classes_that_cannot_be_named(path):
    mercer.save(mercer.SVC().fit(X, Y), path)
    silent = type("Silent", (mercer.SVC,), {})
    clash = type("StandardScaler", (NearestMean,), {"_FITTED": fitted()})
    for wrong in (silent, clash, int, "NearestMean", mercer.SVC):
        with pytest.raises(TypeError, match=r"classes contains .*_FITTED"):
            mercer.load(path, classes=[wrong])
    for model in (silent(), clash()):
        with pytest.raises(TypeError, match=r"classes that define _FITTED.*pickle"):
            mercer.save(model.fit(X, Y), path)


def test_mutants_are_refused_or_harmless(path):
    """Files of a class that files/ does not know, with random changes whose checksums are right."""
    mercer.save(CASES["of scikit-learn's"](), path)
    content, rng, refused, used = path.read_bytes(), random.Random(4), 0, 0
    with address_space(1 << 30):
        for _ in range(150):
            path.write_bytes(mutate_container(rng, content, [content]))
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                try:
                    model = mercer.load(path, classes=CLASSES)
                except ModelFormatError:
                    refused += 1
                    continue
                with suppress(ValueError, TypeError):  # what is said of rows that a model cannot take
                    model.predict(X)
            used += 1
    assert refused > 40
    assert used > 5
