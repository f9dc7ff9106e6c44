"""The vocabulary of a model file: values, kernels and arrays as JSON and back, and what is not in it."""

import json
import math

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler

from mercer import kernels
from mercer.files.mercer_file.description import describe, rebuild
from mercer.runtime.errors import ModelFormatError


def round_trip(value):
    arrays = {}
    description = json.loads(json.dumps(describe(value, arrays, "value"), allow_nan=False))
    return rebuild(description, arrays, "value")


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -3,
        2**70,
        0.1,
        math.inf,
        -math.inf,
        "ß$",
        [],
        [1, [2.5, "a"]],
        (1, (2, [3])),
        {"a": 1, "b": {"c": (1,)}},
        {0: 1.0, "a": 2.0, (1, 2): 3.0},
        {"$": "kernel"},
        np.float32(0.1),
        np.int64(-1),
        np.bool_(True),
        np.float64("-inf"),
    ],
    ids=repr,
)
def test_values(value):
    back = round_trip(value)
    assert back == value
    assert type(back) is type(value)


def test_nan():
    assert math.isnan(round_trip(math.nan))


@pytest.mark.parametrize(
    "value", [np.arange(3.0), np.array(["a", "bc"]), np.array(["x", "yz"], dtype=object), np.zeros((2, 0))]
)
def test_arrays(value):
    back = round_trip([value, value])
    for array in back:
        np.testing.assert_array_equal(array, value)
        assert array.dtype == value.dtype


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix])
def test_csr(kind):
    value = kind(np.array([[0, 1.5, 0], [0, 0, 0], [2, 0, 3]]))
    back = round_trip(value)
    assert type(back) is type(value)
    assert (back != value).nnz == 0


def no_argument_kernels():
    found = [getattr(kernels, name) for name in kernels.__all__]
    for item in found:
        if isinstance(item, type) and issubclass(item, kernels.Kernel) and item is not kernels.Kernel:
            try:
                yield item()
            except TypeError:  # it has a parameter without a default
                continue


def composed_kernels():
    k = kernels.Gaussian(gamma=0.5)
    yield from (2 * k, k + k, k * k, k**3, k + 1, k.exp(), k.normalised(), kernels.Gaussian(M=np.eye(2)))


@pytest.mark.parametrize("kernel", [*no_argument_kernels(), *composed_kernels()], ids=repr)
def test_kernels(kernel):
    back = round_trip(kernel)
    assert type(back) is type(kernel)
    assert repr(back) == repr(kernel)


@pytest.mark.parametrize(
    "value",
    [
        len,
        lambda x: x,
        StandardScaler(),
        kernels.FromFunction(lambda x, z: x @ z.T),
        kernels.Linear().scaled_by(lambda x: np.ones(len(x))),
        kernels.Linear().of(lambda x: x),
        type("Mine", (kernels.Linear,), {})(),
        np.array([object()]),
        np.array([1 + 2j]),
        np.array([["a"], ["b"]]),
        1 + 2j,
        {"a": {1, 2}},
        b"bytes",
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_a_file_cannot_hold(value):
    with pytest.raises(TypeError, match=r"a \.mercer file"):
        describe(value, {}, "the kernel")


@pytest.mark.parametrize(
    ("description", "message"),
    [
        ({"$": "code", "source": "1"}, "'code' is not a kind"),
        ({"$": ["kernel"]}, "not a kind"),
        ({"$": "float", "value": "1e5"}, "none of 'inf'"),
        ({"$": "float", "value": "inf", "more": 1}, "must have"),
        ({"$": "scalar", "dtype": "|O", "value": 1}, "not a number of dtype"),
        ({"$": "scalar", "dtype": "<f8", "value": "x"}, "not a number"),
        ({"$": "scalar", "dtype": "|i1", "value": 1000}, "value"),
        ({"$": "tuple", "items": 3}, "must be a list"),
        ({"$": "dict", "items": [[1]]}, "pairs"),
        ({"$": "dict", "items": [[[], 1]]}, "unhashable"),
        ({"$": "array", "name": "missing"}, "no array named 'missing'"),
        ({"$": "array", "name": []}, "no array named"),
        ({"$": "strings", "object": True, "items": [1]}, "must be a string"),
        ({"$": "kernel", "name": "eval", "params": {}}, "'eval' is not a kernel"),
        ({"$": "kernel", "name": ["Linear"], "params": {}}, "is not a kernel"),
        ({"$": "kernel", "name": "Linear", "params": {"__class__": 1}}, "not parameters of Linear"),
        ({"$": "kernel", "name": "Linear", "params": []}, "not parameters of Linear"),
    ],
)
def test_what_is_not_in_the_vocabulary(description, message):
    with pytest.raises(ModelFormatError, match=message):
        rebuild(description, {}, "value")


CSR = {"data": np.array([1.0, 2.0]), "indices": np.array([0, 1]), "indptr": np.array([0, 1, 2])}


@pytest.mark.parametrize(
    ("shape", "changes", "message"),
    [
        ([2, 2], {"indptr": np.array([0, 2, 1])}, "indptr must rise"),
        ([2, 2], {"indptr": np.array([0, 1])}, "indptr must rise"),
        ([2, 2], {"indptr": np.array([1, 1, 2])}, "indptr must rise"),
        ([2, 2], {"indptr": np.array([0, 1, 9])}, "indptr must rise"),
        ([2, 2], {"indices": np.array([0, 2])}, "between 0 and 1"),
        ([2, 2], {"indices": np.array([-1, 0])}, "between 0 and 1"),
        ([2, 2], {"indices": np.array([0])}, "must be 2 columns"),
        ([2, 2], {"indices": np.array([0.0, 1.0])}, "integers expected"),
        ([2, 2], {"data": np.array([[1.0, 2.0]])}, "one-dimensional"),
        ([2, 2], {"data": np.array([1, 2])}, "numbers expected"),
        ([2, -2], {}, "shape of a matrix"),
        ([2], {}, "shape of a matrix"),
        ([2**62, 2], {}, "shape of a matrix"),
    ],
)
def test_csr_is_checked(shape, changes, message):
    arrays = CSR | changes
    parts = {name: {"$": "array", "name": name} for name in arrays}
    with pytest.raises(ModelFormatError, match=message):
        rebuild({"$": "csr", "shape": shape, "matrix": False, **parts}, arrays, "value")


@pytest.mark.parametrize(
    "value", [np.float32, float, object, np.number, np.dtype("i4"), np.log1p, slice(1, None), slice("a", "b")]
)
def test_types_functions_and_slices(value):
    assert round_trip(value) == value
    assert type(round_trip(value)) is type(value)


def test_arrays_of_strings_numbers_and_none():
    mixed = np.array([["a", None], [2, np.float32(0.5)]], dtype=object)
    back = round_trip(mixed)
    assert back.dtype == object
    assert back.shape == (2, 2)
    assert [type(item) for item in back.flat] == [type(item) for item in mixed.flat]
    assert back.tolist() == mixed.tolist()
    holes = round_trip(np.array(["a", math.nan], dtype=object))
    assert holes[0] == "a"
    assert math.isnan(holes[1])


@pytest.mark.parametrize(
    "description",
    [
        {"$": "function", "name": "system"},
        {"$": "function", "name": ["log"]},
        {"$": "type", "name": "Popen", "instance": False},
        {"$": "slice", "items": [1, 2]},
        {"$": "slice", "items": [[], 2, 1]},
        {"$": "objects", "shape": [3], "items": ["a"]},
        {"$": "objects", "shape": [0, 2**62], "items": []},
        {"$": "objects", "shape": [1], "items": [[]]},
        {"$": "estimator", "class": "SVC", "params": {}},
    ],
    ids=str,
)
def test_other_names_and_shapes_are_refused(description):
    with pytest.raises(ModelFormatError):
        rebuild(description, {}, "value")
