"""What the caller passes stays the caller's: a fit neither freezes it nor depends on it afterwards."""

import inspect

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import is_classifier

import mercer

N, D = 40, 3
rng = np.random.default_rng(3)
FEATURES = np.abs(rng.normal(size=(N, D))) + 0.1
NUMBERS = FEATURES[:, 0] - FEATURES[:, 1]
ESTIMATORS = [
    cls for name in sorted(mercer.__all__) if inspect.isclass(cls := getattr(mercer, name)) and hasattr(cls, "fit")
]


def quadratic(A, B):
    return (A @ B.T + 1) ** 2


def kernels_of(cls):
    if "kernel" not in inspect.signature(cls).parameters:
        return [None]
    return [quadratic, "linear", "rbf"]


CASES = [
    pytest.param(cls, kernel, form, id=f"{cls.__name__}, {getattr(kernel, '__name__', kernel)}, {form}")
    for cls in ESTIMATORS
    for kernel in kernels_of(cls)
    for form in ("dense", "F order", "float32", "CSR")
    if not (form == "CSR" and (kernel is quadratic or cls is mercer.Tabular))
]


def arrays_of(value):
    return [value.data, value.indices, value.indptr] if sp.issparse(value) else [value]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("cls", "kernel", "form"), CASES)
def test_nothing_of_the_callers_is_kept_or_frozen(cls, kernel, form):
    make = {
        "dense": np.array,
        "F order": np.asfortranarray,
        "float32": lambda A: A.astype(np.float32),
        "CSR": sp.csr_array,
    }[form]
    X = make(FEATURES.copy())
    new = make(FEATURES[:7] * 1.1)
    parameters = inspect.signature(cls).parameters
    options = {} if kernel is None else {"kernel": kernel}
    given = {
        "landmarks": make(FEATURES[:9].copy()),
        "quantiles": np.array([0.2, 0.5, 0.8]),
        "lams": np.array([0.1, 1.0, 10.0]),
    }
    options |= {name: value for name, value in given.items() if name in parameters}
    if "random_state" in parameters:
        options["random_state"] = 0
    if cls is mercer.Tabular:
        options["estimator"] = mercer.SVR()
    model = cls(**options)
    y = (np.median(NUMBERS) < NUMBERS).astype(int) if is_classifier(model) else NUMBERS.copy()
    weight = rng.uniform(0.5, 1.5, N)
    takes_weight = "sample_weight" in inspect.signature(model.fit).parameters
    model.fit(X, y, **({"sample_weight": weight} if takes_weight else {}))
    passed = [X, y, weight, *(value for name, value in options.items() if name in given)]
    answer = model.predict if hasattr(model, "predict") else model.transform
    before = answer(new)
    for value in passed:
        for array in arrays_of(value):
            assert array.flags.writeable
    for value in passed:
        for array in arrays_of(value):
            if array.dtype.kind == "f":
                array[...] = 1e3
            elif value is y:
                array[...] = 0
    np.testing.assert_array_equal(answer(new), before)
