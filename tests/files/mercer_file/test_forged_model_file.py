"""Model files that somebody wrote with care, checksums and all: refused, or a model that behaves."""

import copy
from contextlib import suppress

import numpy as np
import pytest
from sklearn.datasets import make_classification

import mercer
from mercer.runtime.errors import ModelFormatError
from reference.address_space import address_space
from reference.forgery import forge, places, put, size_of, taken_apart

X, y = make_classification(60, 5, random_state=0)


def test_forging_nothing_changes_nothing(path, small):
    content, model = small
    path.write_bytes(forge(content, lambda header: None))
    point = np.array([[0.0, 1.0]])
    np.testing.assert_array_equal(mercer.load(path).decision_function(point), model.decision_function(point))


HOSTILE_VALUES = [
    None,
    -1,
    2**70,
    0.5,
    "os.system",
    [],
    {},
    {"$": "kernel", "name": "Kernel", "params": {}},
    {"$": "code"},
]


def test_a_header_somebody_wrote_never_crashes(path, small):
    """Every value of the header, replaced by many others: ModelFormatError, or a model that behaves."""
    content, _ = small
    header, _ = taken_apart(content)
    refused = predicted = 0
    for at in places(header["content"]):
        if not at:
            continue
        for value in HOSTILE_VALUES:
            path.write_bytes(forge(content, lambda h, at=at, value=value: put(h["content"], at, copy.deepcopy(value))))
            try:
                with address_space(2**26 + 32 * len(content)):
                    model = mercer.load(path)
            except ModelFormatError:
                refused += 1
                continue
            with suppress(ValueError, TypeError):
                predicted += model.predict(np.array([[0.0, 1.0]])).shape == (1,)
    assert refused > predicted > 0


@pytest.mark.parametrize(
    "attribute",
    [
        "predict",
        "__dict__",
        "coef_",
        "C",
        "_samples",
        "not an identifier_",
        "expansion.kernel",
        "_memory_",
        "quantiles_",
    ],
)
def test_only_what_a_fit_learns_is_set(path, small, attribute):
    """A file that could name `predict` would replace a method by a number."""
    content, _ = small
    path.write_bytes(forge(content, lambda h: h["content"]["model"]["state"]["fitted"].update({attribute: {}})))
    with pytest.raises(ModelFormatError, match="not an attribute that a fitted SVC has"):
        mercer.load(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kkt", 0.5),
        ("kkt", {"stationarity": "none"}),
        ("gap", None),
        ("b", ["0"]),
        ("gap_measures", "everything"),
        ("precision", 64),
        ("worst", 0.5),
        ("worst", True),
        ("parts", [{}]),
    ],
)
def test_a_certificate_that_is_none(path, small, name, value):
    content, _ = small

    def change(header):
        header["content"]["model"]["state"]["fitted"]["certificate_"][name] = value

    path.write_bytes(forge(content, change))
    with pytest.raises(ModelFormatError):
        mercer.load(path)


@pytest.mark.parametrize(
    ("kind", "message"), [(mercer.LinearSVC, "not an attribute"), (mercer.PegasosSVC, "kernel_ must be a kernel")]
)
@pytest.mark.parametrize("value", ["rbf", {}])
def test_a_kernel_that_is_none(path, kind, message, value):
    mercer.save(kind(random_state=0).fit(X, y), path)
    content = path.read_bytes()
    path.write_bytes(forge(content, lambda h: h["content"]["model"]["state"]["fitted"].update({"kernel_": value})))
    with pytest.raises(ModelFormatError, match=message):
        mercer.load(path)


def test_shapes_somebody_changed_never_crash(path, small):
    """An array of the right size in another shape or dtype must not reach the core as it is."""
    content, _ = small
    header, _ = taken_apart(content)
    tried = refused = 0
    for number, entry in enumerate(header["arrays"]):
        size = size_of(entry)
        for dtype in ("<f8", "<i8", "<f4", "|u1"):
            count = size // np.dtype(dtype).itemsize
            for shape in ([count], [1, count], [count, 1], [count, 1, 1]):
                changed = {"dtype": dtype, "shape": shape}
                path.write_bytes(forge(content, lambda h, n=number, c=changed: h["arrays"][n].update(c)))
                tried += 1
                try:
                    with address_space(2**26 + 32 * len(content)):
                        mercer.load(path).predict(np.array([[0.0, 1.0]]))
                except ModelFormatError:
                    refused += 1
    assert 0.5 * tried < refused < tried  # the shape that it had is among them


@pytest.mark.parametrize(
    "name", ["os.system", "__builtins__", "kernel_named", "check_kernel", "Kernel", "BaseEstimator", ""]
)
def test_only_mercers_own_kernels(path, small, name):
    content, _ = small

    def change(header):
        for at in places(header["content"]):
            if at and at[-1] == "$":
                value = header["content"]
                for key in at[:-1]:
                    value = value[key]
                if value.get("$") == "kernel":
                    value["name"] = name

    path.write_bytes(forge(content, change))
    with pytest.raises(ModelFormatError, match="not a kernel"):
        mercer.load(path)


@pytest.mark.parametrize("name", ["LogisticRegression", "Machine", "__doc__", "Pipeline", "StandardScaler"])
def test_only_mercers_own_estimators(path, small, name):
    content, _ = small
    path.write_bytes(forge(content, lambda header: header["content"]["model"].update({"class": name})))
    with pytest.raises(ModelFormatError):
        mercer.load(path)
