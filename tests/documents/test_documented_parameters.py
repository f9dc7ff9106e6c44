"""Every parameter on a page of the reference has a type and words, and the default that it names is the one it has."""

import importlib.util
import inspect
import re
from pathlib import Path

import pytest

import mercer

spec = importlib.util.spec_from_file_location("api_table", Path(__file__).parents[2] / "docs" / "api_table.py")
api_table = importlib.util.module_from_spec(spec)
spec.loader.exec_module(api_table)
listed, thing = api_table.listed, api_table.thing


def told(text):
    """What a docstring says of each parameter: its type, and words. A record's fields stand under Attributes."""
    out = {}
    for section in ("Parameters", "Attributes"):
        body = re.search(rf"^{section}\n-+\n(.*?)(?=^\w[^\n]*\n-{{3,}}\n|\Z)", text, flags=re.MULTILINE | re.DOTALL)
        for entry in re.finditer(r"^(\S[^\n]*)((?:\n(?: +[^\n]*|))*)", body[1] if body else "", flags=re.MULTILINE):
            names, _, kind = entry[1].partition(" : ")
            for name in names.split(","):
                out.setdefault(name.strip().lstrip("*"), (kind.strip(), entry[2].strip()))
    return out


NAMES = [name for name in listed() if inspect.isfunction(thing(name)) or inspect.isclass(thing(name))]


def test_names_are_found():
    some = {"mercer.SVC", "mercer.kernels.Gaussian", "mercer.libsvm.read_libsvm", "mercer.theory.hoeffding"}
    assert some <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_is_typed_and_explained(name):
    found = thing(name)
    if getattr(found, "_is_protocol", False):
        return  # nobody makes one
    check(name, found)


def test_the_table_of_functions_is_that_of_their_signatures():
    """`python docs/api_table.py` writes it."""
    assert api_table.PAGE.read_text(encoding="utf-8") == api_table.page()


# What may be given by place though it has a default: the number that a call is about, and where a file goes.
BY_PLACE = {
    ("mercer.certify", "alpha"),
    ("mercer.compress", "n_vectors"),
    ("mercer.tune", "X"),  # so that tune(X) can say what is missing
    ("mercer.KernelMachine", "lam"),  # as its two classes
    ("mercer.datasets.location", "n"),
    ("mercer.datasets.location_scale", "n"),
    ("mercer.datasets.interval", "n"),
    ("mercer.datasets.rings", "n"),
}
MODELS = ("model", "estimator", "machine")


# LIBSVM's and kernlab's functions have the parameters that they have there.
THEIRS = ("mercer.libsvm.svm_", "mercer.libsvm.evaluations", "mercer.teaching.ipop")
OURS = [name for name in api_table.functions() if not name.startswith(THEIRS)]


@pytest.mark.parametrize("name", [*OURS, "mercer.rkhs.Function"])
def test_every_function_takes_its_parameters_by_one_rule(name):
    """Model, then X, then y; or K, then y; the kernel and all options by name."""
    by_place, named = api_table.split(thing(name))
    order = [p.name for p in by_place]
    subject = order[1:] if order and order[0] in MODELS else order
    if order and order[0] not in MODELS:
        assert not set(order) & set(MODELS), "a model comes first"
    for first in ("X", "K"):
        if first in order:
            assert subject[0] == first, f"{first} comes first, or after the model"
    if "y" in order:
        assert subject[subject.index("y") - 1] in ("X", "K") or subject[:2] == ["y", "f"], (
            "y follows X or K, or f follows y"
        )
    assert "kernel" not in order or order == ["kernel"], "the kernel is given by name"
    if "kernel" in [p.name for p in named] and name != "mercer.C_from":
        assert subject[0] in ("X", "vectors"), "a kernel belongs to samples"
    for parameter in by_place:
        like_fit = (parameter.name == "y" and "X" in order) or (parameter.name == "sample_weight" and "y" in order)
        first = parameter is by_place[0] and parameter.name == "loss"
        if parameter.default is not parameter.empty and not like_fit and not first:
            assert (name, parameter.name) in BY_PLACE, f"{parameter.name} is an option, to be given by name"


METHODS = ("fit", "predict", "decision_function", "predict_proba", "score_samples", "partial_fit", "forget")


@pytest.mark.parametrize("name", mercer.estimators.__all__)
def test_so_are_those_of_methods(name):
    estimator = getattr(mercer, name)
    for method in METHODS:
        found = getattr(estimator, method, None)
        if callable(found):  # predict_proba of a machine without probabilities is a property that says why
            check(f"{name}.{method}", found)


def check(name, found):
    text = inspect.getdoc(found)
    assert "%(" not in text
    said = told(text)
    for parameter in inspect.signature(found).parameters.values():
        if parameter.name == "self" or parameter.name.startswith("_"):  # only the library gives these
            continue
        assert parameter.name in said, f"{name} does not say what {parameter.name} is"
        kind, words = said[parameter.name]
        assert kind, f"{name} does not say of what type {parameter.name} is"
        assert words, f"{name} does not explain {parameter.name}"
        if stated := re.search(r"default=(.+)$", kind):
            assert eval(stated[1]) == parameter.default, f"{name}: the default of {parameter.name}"
