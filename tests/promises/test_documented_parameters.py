"""Every parameter on a page of the reference has a type and words, and the default that it names is the one it has."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

import mercer

API = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")


def listed():
    """The names that `docs/api.md` lists, in full."""
    module = "mercer"
    for line in API.splitlines():
        if found := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = found[1]
        elif found := re.match(r"   ([\w.]+)$", line):
            yield f"{module}.{found[1]}"


def thing(name):
    parts = name.split(".")
    for k in range(len(parts) - 1, 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:k]))
        except ImportError:
            continue
        for part in parts[k:]:
            found = getattr(found, part)
        return found
    raise AssertionError(f"{name} cannot be imported")


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
    some = {"mercer.SVC", "mercer.kernels.Gaussian", "mercer.files.libsvm_text.read_libsvm", "mercer.theory.hoeffding"}
    assert some <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_is_typed_and_explained(name):
    found = thing(name)
    if getattr(found, "_is_protocol", False):
        return  # nobody makes one
    check(name, found)


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
        if parameter.name == "self":
            continue
        assert parameter.name in said, f"{name} does not say what {parameter.name} is"
        kind, words = said[parameter.name]
        assert kind, f"{name} does not say of what type {parameter.name} is"
        assert words, f"{name} does not explain {parameter.name}"
        if stated := re.search(r"default=(.+)$", kind):
            assert eval(stated[1]) == parameter.default, f"{name}: the default of {parameter.name}"
