"""Bounds hold to the last bit, whatever Gram gives them, on data that make rounding errors add up; none may be halved.

K, the coefficients and their products are rational numbers here, so that nothing is allowed for the truth's own
rounding. Each case says which share of its bound the worst error exceeds: a Gram whose bounds are multiplied by that
share must be caught. Where it is less than a half, the docstring or comment says what else the bound counts. Parts of a
Gram, and what it shares or streams, have the same bounds.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from contracts.gram_contract import check_bounds, check_bounds_of_several, check_bounds_of_values, exact_numbers
from mercer.kernels import FromFunction, Gaussian, Laplacian, Linear, Polynomial, Precomputed, Sigmoid
from mercer.places import Gram, gram_for
from mercer.places.ball import Ball
from mercer.places.host.stored_gram import StoredField, StoredGram
from mercer.problems.classification import soft_margin
from places.engines.opaque import ENGINE
from reference.exact_kernels import Formula

PAGE = Path(__file__).parents[2] / "docs/add_an_engine.md"


def lost(d, precision, n=4):
    """Rows whose inner products lose one term after another, each a little less than half an ulp of their sum."""
    X = np.zeros((n, d))
    X[:, 0], X[:, 1:] = 1.0, np.sqrt(0.499 * float(np.finfo(precision).eps))
    X[1::2] *= -1
    return X.astype(precision).astype(np.float64)


def apart(d, squared=True, far=0.0):
    """Two rows whose distance is summed from one such term after another, and the same two far away."""
    small = 0.499 * float(np.finfo(float).eps)
    X = np.zeros((2, d))
    X[0, 0], X[0, 1:] = 1.0, np.sqrt(small) if squared else small
    return np.vstack([X, X + far]) if far else X


def norms(d=800):
    """Entries just above half an ulp of the sum are rounded up in norms and down in the product."""
    X = np.full((8, d), np.sqrt(0.5000001 * np.spacing(8.001**2)))
    X[:, 0] = 8.001
    X[1::2, 1:] *= -1
    return np.vstack([X, -X])  # the mean is zero


@dataclass
class Case:
    gram: Any
    K: Any
    level: Any = np.float64
    used: float = 0.5
    C: Any = None

    @property
    def coefficients(self):
        return np.eye(len(self.K)) if self.C is None else self.C


def of(kernel, formula, X, level=np.float64, used=0.5):
    gram = gram_for(kernel, X)
    return Case(gram, exact_numbers(formula.matrix(X.toarray() if sp.issparse(X) else X)), level, used)


def given(level, used):
    """One product has one rounding: the others that the bound counts are for sums, whose order is the library's own."""
    values = np.outer(*2 * [1 + np.random.default_rng(0).random(5) / 8])
    C = 1 + np.random.default_rng(1).random((5, 40)) / 1000
    return Case(gram_for(Precomputed(), values), exact_numbers(values), level, used, C)


def of_a_function():
    """What a user's function returns is K: what is left are the roundings of sums, as for a matrix that was given."""
    X = np.random.default_rng(0).random((5, 2))
    kernel = FromFunction(lambda A, B: Gaussian(0.5)(A, B))
    C = 1 + np.random.default_rng(1).random((5, 40)) / 1000
    return Case(gram_for(kernel, X), exact_numbers(kernel(X)), np.float64, 0.1, C)


# NumPy's blocks: distances may lose four digits before they are recomputed from differences, and the bound counts them
# for any kernel. Sums of BLAS are shorter than d terms one after another.
FAR = np.random.default_rng(1).normal(size=(12, 3)) + 70 * (np.arange(12) % 2)[:, None]
NUMPY_SHARE = 1e-7


def of_numpy_blocks():
    return of(Gaussian(0.1) + 0.1 * Linear(), Formula("gaussian + linear", gamma=0.1), FAR, used=NUMPY_SHARE)


def of_an_engine():
    X = FAR[::2]
    return Case(
        ENGINE.gram(Gaussian(0.1), ENGINE.samples(X), 10**6, 1, 0.0),
        exact_numbers(Formula("gaussian", 0.1).matrix(X)),
        used=NUMPY_SHARE,
    )


def of_products_that_cancel():
    """An indefinite kernel's values are small beside the numbers they are made from."""
    X = 1e6 * np.random.default_rng(0).normal(size=(8, 4))
    X[1:4] -= np.outer(X[1:4] @ X[0] / (X[0] @ X[0]), X[0])
    K = exact_numbers(Formula("sigmoid").matrix(X)) + exact_numbers(Formula("polynomial", 1e-9, 1, -1.0).matrix(X))
    return Case(gram_for(Sigmoid(1.0, 0.0) + Polynomial(1, 1e-9, -1.0), X), K, used=NUMPY_SHARE)


def of_strings_with_features():
    words = [letter * 3 for letter in "abcdefghijkl"]
    kernel = Gaussian(0.1).of(lambda some: FAR[[ord(word[0]) - 97 for word in some]], accepts="sequences")
    return Case(gram_for(kernel, words), exact_numbers(Formula("gaussian", 0.1).matrix(FAR)), used=NUMPY_SHARE)


def stored(gram, K, store):
    """One coefficient: its rows have the errors of values rounded to float32, or those of a Gram that are kept."""
    field, beta = StoredField(store(gram), np.arange(gram.n)), np.zeros(gram.n)
    beta[1] = 1.0
    field.move(soft_margin(np.ones(gram.n), np.ones(gram.n)), beta)
    return Case(field, K, field.levels[0], 0.5, beta[:, None])


def stored_rounded():
    """Values just above 1, where float32 rounds by the largest share."""
    near = of(1.01 * Gaussian(0.3), Formula("gaussian", 0.3, scale=1.01), np.random.default_rng(0).random((12, 1)) / 9)
    return stored(near.gram, near.K, StoredGram.of)


def stored_as_computed():
    case = of(Linear(), Formula("linear"), lost(800, float))
    return stored(case.gram, case.K, StoredGram.plain)


def packed():
    """Sums of BLAS are shorter than n and d terms one after another, which the bound counts."""
    names: dict[str, Any] = {}
    exec(PAGE.read_text(encoding="utf-8").split("```python\n")[1].split("```")[0], names)
    features = 1 + np.random.default_rng(0).random((2, 1)) / 8
    exact = exact_numbers(features)
    return Case(
        names["PackedGram"](Linear(), names["ENGINE"].samples(features), 10**9),
        exact @ exact.T,
        np.float64,
        0.1,
        1 + np.random.default_rng(1).random((2, 40)) / 99,
    )


F32 = np.float32
CASES = {
    "linear": lambda: of(Linear(), Formula("linear"), lost(800, float)),
    "linear, float32": lambda: of(Linear(), Formula("linear"), lost(65, F32), F32),
    "linear, CSR": lambda: of(Linear(), Formula("linear"), sp.csr_array(lost(800, float))),
    "linear, CSR, float32": lambda: of(Linear(), Formula("linear"), sp.csr_array(lost(800, F32)), F32),
    # Sums in twice the precision are rounded once, and four roundings are counted.
    "linear, exact": lambda: of(Linear(), Formula("linear"), np.random.default_rng(0).random((16, 3)), "exact", 0.15),
    "polynomial": lambda: of(Polynomial(2, 1.0, 0.0), Formula("polynomial", degree=2), lost(800, float)),
    "sigmoid": lambda: of(Sigmoid(0.3, 0.0), Formula("sigmoid", gamma=0.3), lost(800, float)),
    "Gaussian, norms": lambda: of(
        Gaussian(1 / (2 * np.log2(np.e))), Formula("gaussian", gamma=1 / (2 * np.log2(np.e))), norms()
    ),
    "Gaussian, exact": lambda: of(Gaussian(1.0), Formula("gaussian"), apart(800), "exact"),
    "Gaussian, cancelling": lambda: of(Gaussian(1.0), Formula("gaussian"), apart(800, far=1e7)),
    "Gaussian, CSR, cancelling": lambda: of(Gaussian(1.0), Formula("gaussian"), sp.csr_array(apart(800, far=1e7))),
    "Laplacian": lambda: of(Laplacian(1.0), Formula("laplacian"), apart(800, squared=False)),
    "given": lambda: given(np.float64, 0.15),
    "given, exact": lambda: given("exact", 0.1),
    "a function": of_a_function,
    "NumPy blocks": of_numpy_blocks,
    "products that cancel": of_products_that_cancel,
    "strings with features": of_strings_with_features,
    "an engine": of_an_engine,
    "stored, rounded": stored_rounded,
    "stored as computed": stored_as_computed,
    "an engine of its own": packed,
}


class Scaled:
    """A Gram that claims less error than it has."""

    def __init__(self, gram, share):
        self._gram, self._share = gram, share

    def __getattr__(self, name):
        return getattr(self._gram, name)

    def product_bound(self, coefficients, rows=None, level=np.float64):
        u = self._gram.product_bound(coefficients, rows, level)
        return Ball(u.value, self._share * u.error)


def check_bounds_of_all(gram, K, share=None):
    """No error of K exceeds its bound, at any level or in a view; the worst exceeds this share of it. Returns the C."""
    C = np.random.default_rng(3).normal(size=(len(K), 3))
    C[0] = 0.0
    unit, rows = np.eye(len(K)), np.arange(len(K))[::-1].copy()
    used = check_bounds(gram, K, unit)
    assert used <= 1
    if share is not None:
        assert used > share
        with pytest.raises(AssertionError):
            check_bounds(Scaled(gram, share), K, unit)
    for level in gram.levels:
        check_bounds_of_several(gram, K, C, level)
        check_bounds(gram.view(rows), K[np.ix_(rows, rows)], C, level)
    return C


GRAMS = [name for name in CASES if not name.startswith("stored")]
FORMS = {
    "view": lambda gram, rows: gram.view(rows),
    "view of a view": lambda gram, rows: gram.view(rows[::-1].copy()).view(np.arange(len(rows))[::-1].copy()),
    "copied": lambda gram, rows: gram.copied(rows, 10**6),
    "copy of a view": lambda gram, rows: gram.view(rows).copied(np.arange(len(rows)), 10**6),
    "streamed": lambda gram, rows: gram.view(rows).streamed(),
}


@pytest.mark.parametrize("name", CASES)
def test_no_error_exceeds_its_bound_and_no_bound_can_be_smaller(name):
    case = CASES[name]()
    check = partial(check_bounds, K=case.K, C=case.coefficients, level=case.level)
    assert case.used < check(case.gram) <= 1
    with pytest.raises(AssertionError):
        check(Scaled(case.gram, case.used))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", GRAMS)
def test_parts_have_the_bounds_of_the_whole(name, form):
    case = CASES[name]()
    rows = np.arange(len(case.K))[::-1].copy()
    gram, K, C = FORMS[form](case.gram, rows), case.K[np.ix_(rows, rows)], case.coefficients[rows]
    assert case.used < check_bounds(gram, K, C, case.level) <= 1
    with pytest.raises(AssertionError):
        check_bounds(Scaled(gram, case.used), K, C, case.level)
    check_bounds_of_values(gram, K)


@pytest.mark.parametrize("name", GRAMS)
def test_bounds_of_several_products_and_of_values_hold_too(name):
    case = CASES[name]()
    gram: Gram = case.gram
    C = np.random.default_rng(3).normal(size=(len(case.K), 4))
    C[0] = 0.0
    for shared in (False, True):
        if shared:
            gram.share()
        for level in gram.levels:
            check_bounds_of_several(gram, case.K, C, level)
            check_bounds(gram, case.K, case.coefficients, level)
        check_bounds_of_values(gram, case.K)
    gram.refute()  # then the diagonal says nothing of the values
    check_bounds_of_several(gram, case.K, C)
    check_bounds(gram, case.K, C)
    check_bounds_of_values(gram, case.K)
