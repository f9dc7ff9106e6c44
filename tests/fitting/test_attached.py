"""Methods from rooms above the machines: a class has them as its own, and no ancestor more."""

import copy
import inspect
import pickle
import pydoc

import numpy as np
import pytest
from sklearn.base import clone

import mercer
from mercer import methods
from mercer.fitting.pipeline.machine import attach

X = np.random.default_rng(0).normal(size=(40, 3))
Y = (X[:, 0] > 0).astype(int)
EVERY = ["explain", "gradient_importance", "partial_dependence", "reasons", "insight", "compression_"]


@pytest.mark.parametrize("name", mercer.estimators.__all__)
def test_every_machine_has_them(name):
    machine = getattr(mercer, name)
    for method in EVERY:
        assert getattr(machine, method) is getattr(methods.MachineMethods, method)
        assert method in dir(machine)


@pytest.mark.parametrize(
    ("machines", "given"),
    [
        (["SVC", "NuSVC", "LinearSVC", "PegasosSVC", "RLSClassifierCV", "NystromRLSClassifier"], "ClassifierMethods"),
        (["SVR", "NuSVR", "QuantileSVR", "LinearSVR", "RLSRegressor", "KernelMachineRegressor"], "RegressorMethods"),
        (["OneClassSVM", "SVDD"], "NoveltyMethods"),
    ],
)
def test_calibrate_is_that_of_the_kind(machines, given):
    for name in machines:
        assert getattr(mercer, name).calibrate is getattr(methods, given).calibrate
        assert inspect.signature(getattr(mercer, name).calibrate).parameters["cv"].default == 5


def test_they_are_documented_with_the_machine():
    # Since Python 3.13 pydoc writes a parameter a line where a signature is long.
    page = " ".join(pydoc.plain(pydoc.render_doc(mercer.SVC)).replace("|", " ").replace("(self", "( self").split())
    for method in ("explain( self, X: 'Data', background", "calibrate( self, X", "insight( self, X", "compression_"):
        assert method in page


def test_they_add_no_ancestor():
    ours = [cls for cls in mercer.SVC.__mro__ if cls.__module__.startswith("mercer")]
    families = ["SVC", "PairwiseClassifier", "Classifier", "DualMachine", "Machine", "DeclaresState"]
    assert [cls.__name__ for cls in ours] == families


def test_copies_have_them_too():
    model = mercer.SVC().fit(X, Y)
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), clone(model).fit(X, Y)):
        assert other.explain(X[:2], X).values.shape == (2, 3)


def test_a_class_keeps_what_it_defines_itself():
    class Methods:
        def one(self):
            return 1

        def two(self):
            return 2

    class Own:
        def two(self):
            return "own"

    attach(Own, Methods)
    assert (Own().one(), Own().two()) == (1, "own")
