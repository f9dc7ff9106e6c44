"""Rows and linear Grams keep their contracts, on samples of every kind and scale; no bound of theirs may be smaller.

The shares say which part of its bound the worst error exceeds: multiplied by it, the bound must be caught. A sum in the
core or in BLAS is made of several shorter ones, of which a bound for sums in any order knows nothing: where shares are
below a half, samples are so few that nothing is left but the roundings of a term, beside which the bound counts others
(of a shift, of a centre that was taken off, of lengths).
"""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from contracts.gram_contract import exact_numbers
from contracts.named import named
from contracts.rows_contract import (
    check_descent_contract,
    check_linear_gram_bounds,
    check_linear_gram_contract,
    check_rows_bounds,
    check_rows_contract,
    check_sums_bounds,
)
from mercer.places.ball import Ball
from mercer.places.choose import rows_for
from mercer.places.host.linear_gram import HostLinearGram
from reference.plain_rows import PlainRows

HALF_ULP = 0.499 * float(np.finfo(float).eps)  # a little less than half an ulp of 1


def samples(n=17, d=5):
    """With a row and a column of zeros, and entries missing; float32 holds them all."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)
    X[3], X[:, 1] = 0.0, 0.0
    return X.astype(np.float32).astype(np.float64)


ORDER = np.random.default_rng(2).permutation(17)
KINDS = {
    "dense": lambda X: rows_for(X, 1),
    "dense, two threads": lambda X: rows_for(X, 2),
    "float32": lambda X: rows_for(X.astype(np.float32), 1),
    "CSR": lambda X: rows_for(sp.csr_array(X), 1),
    "CSR, float32": lambda X: rows_for(sp.csr_array(X.astype(np.float32)), 2),
    "CSR, int64": lambda X: rows_for(with_int64(sp.csr_array(X)), 1),
    "CSR, some of its rows": lambda X: rows_for(sp.csr_array(X[np.argsort(ORDER)]), 1, ORDER),
    "plain": PlainRows,
}


def with_int64(X):
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


@pytest.mark.parametrize("kind", KINDS)
def test_rows_keep_their_contract(kind):
    rows = KINDS[kind](samples())
    check_rows_contract(rows, samples())
    if rows.descent is not None:
        check_descent_contract(rows, samples())


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_of_rows_hold_at_every_scale(kind):
    """Where squares of the samples or all products underflow, too, and where they overflow."""
    rng = np.random.default_rng(5)
    single = "float32" in kind
    w, c = rng.normal(size=5), rng.normal(size=17) * (rng.random(17) < 0.8)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for size in (1e-30, 1.0, 1e30) if single else (1e-170, 1e-150, 1.0, 1e150, 1e170):
            X = size * samples()
            X = X.astype(np.float32).astype(np.float64) if single else X
            rows, exact = KINDS[kind](X), exact_numbers(X)
            for of_w, of_c in ((1.0, 1.0), (1e-150, 1e-150), (1e150, 1e150), (1e-320, 0.0), (0.0, 1e-320)):
                with named(size, of_w, of_c):
                    check_rows_bounds(rows, exact, of_w * w, of_c * c, 0.3 * of_w)


def test_bounds_count_what_was_taken_off():
    """The true rows are those before rounding: columns that were centred far from some of their samples."""
    rng = np.random.default_rng(6)
    X = np.concatenate([1.0 + rng.random((20, 3)), 1e5 * rng.random((3, 3))])
    centre = X.mean(axis=0)
    rows = rows_for(X, 1, centre=centre)
    assert rows.origin == pytest.approx(np.linalg.norm(centre))
    exact = exact_numbers(X) - exact_numbers(centre)
    found = check_rows_bounds(rows, exact, rng.normal(size=3), np.ones(23), 0.0)
    assert found["combination"] > 1e-3  # without that rounding the bound would be a thousand times too small


# --- no bound may be smaller --------------------------------------------------------------------------------------


def near_one():
    """One number in each row: what is left of a bound are the roundings of a term."""
    return 1 + np.random.default_rng(0).random((300, 1)) / 8


def lost_in_columns():
    """Rows whose inner product with the first loses one term after another."""
    X = np.full((4, 800), np.sqrt(HALF_ULP))
    X[:, 0] = 1.0
    return X


def lost_in_rows():
    """A column whose sum loses one term after another."""
    X = np.full((800, 1), HALF_ULP)
    X[0] = 1.0
    return X


SHARES = {
    "product_bound": (near_one, 0.2),  # of seven roundings that are counted there are two
    "precise_product": (near_one, 0.2),  # one of four
    "gram_product": (near_one, 0.2),
    # In twice the precision: sums of the lost parts are longer than what they lose in the worst case.
    "combination": (lost_in_rows, 0.1),
    "combination, float64": (lost_in_rows, 0.5),
}


class Scaled:
    """Rows, or a linear Gram, that claim less error than one verb has."""

    def __init__(self, place, verb, share):
        self._place, self._verb, self._share = place, verb, share

    def __getattr__(self, name):
        member = getattr(self._place, name)
        if name != self._verb:
            return member

        def scaled(*given):
            *value, error = member(*given)
            return *value, self._share * error

        return scaled


def shares_of_rows(rows, X):
    rng, exact = np.random.default_rng(3), exact_numbers(X)
    given = [(np.ones(rows.d), np.ones(rows.n), 0.0)]
    given += [(rng.normal(size=rows.d), rng.normal(size=rows.n), 1e-3) for _ in range(8)]
    found = [check_rows_bounds(rows, exact, *one) for one in given]
    return {verb: max(shares[verb] for shares in found) for verb in found[0]}


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("verb", SHARES)
def test_no_bound_of_rows_can_be_smaller(verb, sparse):
    data, share = SHARES[verb]
    X = data()
    rows = rows_for(sp.csr_array(X) if sparse else X, 1)
    assert share < shares_of_rows(rows, X)[verb] <= 1
    with pytest.raises(AssertionError):
        shares_of_rows(Scaled(rows, verb.split(",")[0], share), X)


# --- K = scale·XXᵀ through X --------------------------------------------------------------------------------------

LINEAR = {
    "dense": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "CSR": sp.csr_array,
    "CSR, float32": lambda X: sp.csr_array(X.astype(np.float32)),
}


@pytest.mark.parametrize("kind", LINEAR)
def test_linear_grams_keep_their_contract(kind):
    for n in (17, 5000):  # more than one partial sum
        check_linear_gram_contract(HostLinearGram(LINEAR[kind](samples(n)), 0.7), samples(n), 0.7)


def test_columns_that_no_sample_has_are_left_out():
    X = np.zeros((2, 40))
    X[0, 7], X[1, [7, 30]] = 1.0, [2.0, 3.0]
    linear = HostLinearGram(sp.csr_array(X), 2.0)
    check_linear_gram_contract(linear, X, 2.0)
    assert linear.without_empty_columns()[0].d == 2


@pytest.mark.parametrize("kind", LINEAR)
def test_bounds_of_linear_grams_hold_at_every_scale(kind):
    rng = np.random.default_rng(5)
    single = "float32" in kind
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for size in (1e-30, 1.0, 1e30) if single else (1e-170, 1e-150, 1.0, 1e150, 1e170):
            X = size * samples()
            X = X.astype(np.float32).astype(np.float64) if single else X
            linear = HostLinearGram(LINEAR[kind](X), 0.7)
            for of in (1.0, 1e-150, 1e150, 1e-320):
                W, C = (of * rng.normal(size=(count, 2)) for count in (5, 17))
                W, C = (Ball(part, 1e-10 * np.abs(part)) for part in (W, C))
                for centre in (None,) if linear.sparse else (None, 0.4 * X[0]):
                    with named(size, of, centre is not None):
                        check_linear_gram_bounds(linear, exact_numbers(X), W, C, centre)


def one_row():
    return near_one().T.copy()


# Verb, samples, whether they are sparse or have a centre, and the share.
LINEAR_SHARES = [
    ("times_bound", lost_in_columns, True, None, 0.5),
    ("times_bound", near_one, False, None, 0.25),  # one of three roundings
    ("times_bound", near_one, False, 0.3, 0.3),  # two of three, which seldom add up
    ("transposed_bound", lost_in_rows, True, None, 0.5),
    ("transposed_bound", one_row, False, None, 0.1),  # one of six roundings
    ("transposed_bound", one_row, False, 0.3, 0.15),  # two
]


@pytest.mark.parametrize(("verb", "data", "sparse", "centre", "share"), LINEAR_SHARES)
def test_no_bound_of_a_linear_gram_can_be_smaller(verb, data, sparse, centre, share):
    X, rng = data(), np.random.default_rng(3)
    linear = HostLinearGram(sp.csr_array(X) if sparse else X)
    about = None if centre is None else centre * X[0]
    W, C = (np.column_stack([np.ones(count), 1 + rng.random((count, 8)) / 8]) for count in (X.shape[1], len(X)))
    W[:, 0] = X[0]
    W, C = (Ball(part, np.zeros_like(part)) for part in (W, C))
    assert share < check_linear_gram_bounds(linear, exact_numbers(X), W, C, about)[verb] <= 1
    with pytest.raises(AssertionError):
        check_linear_gram_bounds(Scaled(linear, verb, share), exact_numbers(X), W, C, about)


@pytest.mark.parametrize("kind", LINEAR)
def test_bounds_of_sums_hold_at_every_scale(kind):
    rng, single = np.random.default_rng(7), "float32" in kind
    Y, weight = rng.normal(size=(17, 2)), rng.random(17)
    for size in (1e-15, 1.0, 1e15) if single else (1e-150, 1.0, 1e150):
        X = size * (samples() + (0.0 if "CSR" in kind else 3.0))
        X = X.astype(np.float32).astype(np.float64) if single else X
        for bias in (False, True):
            with named(size, bias):
                check_sums_bounds(HostLinearGram(LINEAR[kind](X)), exact_numbers(X), Y, weight, bias)


def test_no_bound_of_sums_can_be_smaller():
    X = np.sqrt(lost_in_rows())  # whose squares are lost
    linear, rest = HostLinearGram(sp.csr_array(X)), (np.zeros((800, 1)), np.ones(800), False)
    assert check_sums_bounds(linear, exact_numbers(X), *rest) > 0.5

    class Halved:
        d = linear.d

        def sums(self, problem):
            sums = linear.sums(problem)
            return replace(sums, error=np.sqrt(0.5) * sums.error)

    with pytest.raises(AssertionError):
        check_sums_bounds(Halved(), exact_numbers(X), *rest)
