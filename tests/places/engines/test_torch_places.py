"""Rows, linear Grams and K between samples and landmarks on torch's devices: contracts, and bounds in rational numbers.

The shares say which part of its bound the worst error exceeds: multiplied by it, the bound must be caught.
"""

import numpy as np
import pytest
import scipy.sparse as sp

from contracts.cross_contract import check_cross_bounds, check_cross_contract
from contracts.gram_contract import exact_numbers
from contracts.named import named
from contracts.rows_contract import (
    check_linear_gram_bounds,
    check_linear_gram_contract,
    check_rows_bounds,
    check_rows_contract,
    check_sums_bounds,
)
from mercer.kernels import Gaussian, Laplacian, Linear, Precomputed
from mercer.places.ball import Ball
from mercer.places.choose import cross_for, gram_for, rows_for
from mercer.samples.chunks import Chunk
from places import test_cross, test_rows
from reference.exact_kernels import Formula

torch = pytest.importorskip("torch", reason="torch is not installed: python -m pip install 'mercer[torch]'")
from mercer.places.torch import ENGINE  # noqa: E402  # after the skip without torch
from mercer.places.torch import cross as torch_cross  # noqa: E402  # after the skip without torch
from mercer.places.torch import memory as torch_memory  # noqa: E402  # after the skip without torch
from mercer.places.torch import rows as torch_rows  # noqa: E402  # after the skip without torch
from mercer.places.torch import sparse as torch_sparse  # noqa: E402  # after the skip without torch
from mercer.places.torch.rows import TorchLinearGram, TorchRows  # noqa: E402  # after the skip without torch

pytestmark = pytest.mark.filterwarnings("ignore")
KINDS = test_rows.LINEAR  # dense and CSR, of float32 and float64


@pytest.fixture
def small_tiles(monkeypatch):
    """Strips of a few rows, and sums of fewer."""
    strips = torch_memory.in_strips
    for module in (torch_rows, torch_cross):
        monkeypatch.setattr(module, "in_strips", lambda n, size, work, **_: strips(n, size, work, 4 * size))
    monkeypatch.setattr(torch_rows, "_SUM_ROWS", 3)
    monkeypatch.setattr(torch_cross, "_PROOF_ROWS", 5)


def rows_there(X, *options):
    return rows_for(ENGINE.samples(X), 1, *options)


def linear_there(X, scale=1.0):
    return gram_for(scale * Linear(), ENGINE.samples(X)).linear


# --- rows -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_rows_keep_their_contract(kind, device, small_tiles):
    X = test_rows.samples()
    rows = rows_there(KINDS[kind](X))
    assert isinstance(rows, TorchRows)
    check_rows_contract(rows, X)
    if "CSR" in kind:
        order = np.random.default_rng(2).permutation(len(X))
        check_rows_contract(rows_there(KINDS[kind](X[np.argsort(order)]), order), X)
    else:
        centre = X[0] / 3
        check_rows_contract(rows_there(KINDS[kind](X), None, centre), X - centre)


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_of_rows_hold_at_every_scale(kind, device, small_tiles):
    rng, single = np.random.default_rng(5), "float32" in kind
    w, c = rng.normal(size=5), rng.normal(size=17) * (rng.random(17) < 0.8)
    with np.errstate(all="ignore"):
        for size in (1e-30, 1.0, 1e30) if single else (1e-170, 1.0, 1e170):
            X = size * test_rows.samples()
            X = X.astype(np.float32).astype(np.float64) if single else X
            rows, exact = rows_there(KINDS[kind](X)), exact_numbers(X)
            for of in ((1.0, 1.0), (1e-150, 1e-150), (1e150, 1e150), (1e-320, 0.0), (0.0, 1e-320)):
                with named(size, of):
                    check_rows_bounds(rows, exact, of[0] * w, of[1] * c, 0.3 * of[0])


def test_bounds_count_what_was_taken_off(device):
    rng = np.random.default_rng(6)
    X = np.concatenate([1.0 + rng.random((20, 3)), 1e5 * rng.random((3, 3))])
    centre = X.mean(axis=0)
    rows = rows_there(X, None, centre)
    assert rows.origin == pytest.approx(np.linalg.norm(centre))
    check_rows_bounds(rows, exact_numbers(X) - exact_numbers(centre), rng.normal(size=3), np.ones(23), 0.0)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("verb", ["product_bound", "combination, float64"])
def test_no_bound_of_rows_can_be_smaller(verb, sparse, device):
    data, share = {"product_bound": (test_rows.near_one, 0.15), "combination, float64": (lost_in_one_sum, 0.1)}[verb]
    X = data()
    rows = rows_there(sp.csr_array(X) if sparse else X)
    found = test_rows.shares_of_rows(rows, X)[verb]
    assert found <= 1
    if device == "torch-cpu":
        assert found > share
        with pytest.raises(AssertionError):
            test_rows.shares_of_rows(test_rows.Scaled(rows, verb.split(",")[0], share), X)


def lost_in_one_sum():
    """A column of few numbers, of which a sum in any order loses some."""
    return test_rows.lost_in_rows()[:9]


# --- K = scale·XXᵀ through X ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_linear_grams_keep_their_contract(kind, device, small_tiles):
    X = test_rows.samples(40)
    linear = linear_there(KINDS[kind](X), 0.7)
    assert isinstance(linear, TorchLinearGram)
    check_linear_gram_contract(linear, X, 0.7)
    rows = np.array([3, 1, 30])
    view = gram_for(Linear(), ENGINE.samples(KINDS[kind](X))).view(rows)
    check_linear_gram_contract(view.linear, X[rows], 1.0)


def test_columns_that_no_sample_has_are_left_out(device):
    X = np.zeros((2, 40))
    X[0, 7], X[1, [7, 30]] = 1.0, [2.0, 3.0]
    linear = linear_there(sp.csr_array(X), 2.0)
    check_linear_gram_contract(linear, X, 2.0)
    assert linear.without_empty_columns()[0].d == 2


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_of_linear_grams_hold_at_every_scale(kind, device, small_tiles):
    rng, single = np.random.default_rng(5), "float32" in kind
    with np.errstate(all="ignore"):
        for size in (1e-30, 1.0, 1e30) if single else (1e-170, 1.0, 1e170):
            X = size * test_rows.samples()
            X = X.astype(np.float32).astype(np.float64) if single else X
            linear = TorchLinearGram(ENGINE.samples(KINDS[kind](X)), 0.7)
            for of in (1.0, 1e-150, 1e150, 1e-320):
                W, C = (of * rng.normal(size=(count, 2)) for count in (5, 17))
                W, C = (Ball(part, 1e-10 * np.abs(part)) for part in (W, C))
                for centre in (None,) if linear.sparse else (None, 0.4 * X[0]):
                    with named(size, of, centre is not None):
                        check_linear_gram_bounds(linear, exact_numbers(X), W, C, centre)
    Y, weight = rng.normal(size=(17, 2)), rng.random(17)
    for size in (1e-15, 1.0, 1e15):
        X = size * (test_rows.samples() + (0.0 if "CSR" in kind else 3.0))
        X = X.astype(np.float32).astype(np.float64) if single else X
        for bias in (False, True):
            check_sums_bounds(linear_there(KINDS[kind](X)), exact_numbers(X), Y, weight, bias)


@pytest.mark.parametrize(("verb", "data", "sparse", "centre", "share"), test_rows.LINEAR_SHARES)
def test_no_bound_of_a_linear_gram_can_be_smaller(verb, data, sparse, centre, share, device):
    X, rng = data(), np.random.default_rng(3)
    linear = linear_there(sp.csr_array(X) if sparse else X)
    about = None if centre is None else centre * X[0]
    W, C = (np.column_stack([np.ones(count), 1 + rng.random((count, 8)) / 8]) for count in (X.shape[1], len(X)))
    W[:, 0] = X[0]
    W, C = (Ball(part, np.zeros_like(part)) for part in (W, C))
    found = check_linear_gram_bounds(linear, exact_numbers(X), W, C, about)[verb]
    assert found <= 1
    if device == "torch-cpu":
        assert found > share
        with pytest.raises(AssertionError):
            check_linear_gram_bounds(test_rows.Scaled(linear, verb, share), exact_numbers(X), W, C, about)


# --- landmarks ------------------------------------------------------------------------------------------------------

X, Y, WEIGHT, PLACES = test_cross.X, test_cross.Y, test_cross.WEIGHT, test_cross.PLACES


def cross_there(kernel, X, K_MM=None):
    samples = ENGINE.samples(X)
    parts = [np.arange(9), np.array([9]), np.arange(10, len(WEIGHT))]

    def chunks():
        return (Chunk(samples.take(rows), Y[rows], WEIGHT[rows]) for rows in parts)

    landmarks = PLACES if K_MM is not None else samples.take(PLACES)
    return cross_for(kernel, landmarks, chunks, 0, 1, K_MM, ENGINE), Chunk(
        samples.take(np.arange(6)), Y[:6], WEIGHT[:6]
    )


@pytest.mark.parametrize("name", [name for name in test_cross.KERNELS if name != "a function"])
@pytest.mark.parametrize("kind", KINDS)
def test_crosses_keep_their_contract(name, kind, device, small_tiles):
    kernel = test_cross.KERNELS[name].bind(X)
    cross, sample = cross_there(kernel, KINDS[kind](X))
    # This machine's NumPy computes the K_MM of a composite in float32 where the samples are.
    atol = 1e-6 if name == "composite" and "float32" in kind else 1e-12
    check_cross_contract(cross, kernel(X, X[PLACES]), kernel(X[PLACES]), Y, WEIGHT, atol, sample)


def test_crosses_of_given_matrices(device, small_tiles):
    K = Gaussian(0.3)(X)
    cross, sample = cross_there(Precomputed(), K, K[np.ix_(PLACES, PLACES)])
    check_cross_contract(cross, K[:, PLACES], K[np.ix_(PLACES, PLACES)], Y, WEIGHT, 1e-12, sample)


CASES = {**test_cross.CASES, "Laplacian": (Laplacian(0.3), Formula("laplacian", 0.3), "dense", 1.0, 1.0)}


@pytest.mark.parametrize("name", CASES)
def test_no_total_is_further_off_than_its_bound(name, device, small_tiles):
    kernel, formula, kind, size, of_C = CASES[name]
    samples = size * X
    cross, _ = cross_there(kernel.bind(samples), KINDS[kind](samples))
    C = of_C * np.random.default_rng(1).normal(size=(len(PLACES), 2))
    exact = test_cross.exact_parts(formula, samples, PLACES)
    for coefficients, b in ((C, np.array([0.3, -0.2])), (0 * C, np.zeros(2))):
        check_cross_bounds(cross, *exact, Y, WEIGHT, coefficients, b)


SHARES = {"residual": 0.4, "value_error": 0.5, "squares": 0.25}


def one_term_after_another(A, B):
    """A @ B with a rounding for each term, the worst order that a bound has to allow."""
    total = torch.zeros((A.shape[0], B.shape[1]), dtype=A.dtype, device=A.device)
    for k in range(A.shape[1]):
        total = total + A[:, k : k + 1] * B[k]
    return total


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", SHARES)
def test_no_bound_of_crosses_can_be_smaller(name, sparse, device, monkeypatch):
    """The share of a bound that a library's product needs depends on the processor, which adds lanes, then their sums.

    The bound holds for that order and for the worst one, and the worst one needs nearly all of it.
    """
    monkeypatch.setattr(torch_cross, "_PROOF_ROWS", 4)
    share, (samples, targets, C) = SHARES[name], (part[:800] for part in test_cross.SHARES[name][0]())
    placed = ENGINE.samples(sp.csr_array(samples) if sparse else samples)

    def one_at_a_time():
        return (Chunk(placed.take(np.array([k])), targets[[k]], np.ones(1)) for k in range(len(samples)))

    def make_cross():
        return cross_for(Linear(), placed.take(np.array([0])), one_at_a_time, 0, 1, None, ENGINE)

    exact = test_cross.exact_parts(Formula("linear"), samples, np.array([0]))
    rest = (targets, np.ones(len(samples)), C, np.zeros(1))
    assert check_cross_bounds(make_cross(), *exact, *rest)[name] <= 1
    monkeypatch.setattr(torch_sparse, "matmul", one_term_after_another)
    cross = make_cross()
    found = check_cross_bounds(cross, *exact, *rest)[name]
    assert found <= 1
    if device == "torch-cpu":
        assert found > share
        with pytest.raises(AssertionError):
            check_cross_bounds(test_cross.Scaled(cross, name, share), *exact, *rest)


def test_values_of_landmarks_that_are_near_each_other(device):
    """Far from the origin: K_MM comes from differences, and so do values between samples and landmarks."""
    near = X + 1e6
    cross, _ = cross_there(Gaussian(0.3), near)
    exact = exact_numbers(Formula("gaussian", 0.3).matrix(near))
    C, b = np.random.default_rng(4).normal(size=(len(PLACES), 2)), np.zeros(2)
    check_cross_bounds(cross, exact[:, PLACES], exact.diagonal(), exact[np.ix_(PLACES, PLACES)], Y, WEIGHT, C, b)
    assert cross.value_error < 1e-14


def test_sums_of_differences_have_the_smaller_bounds(device):
    """Norms lose the digits that differences keep, and each level counts its own roundings."""
    X = np.random.default_rng(0).normal(size=(40, 3)) + 300 * np.eye(40, 3)
    coefficients = np.random.default_rng(1).normal(size=40)
    gram = gram_for(Gaussian(0.02), ENGINE.samples(X))
    rows = X.astype(np.longdouble)
    K = np.exp(-np.longdouble(0.02) * np.sum((rows[:, None, :] - rows) ** 2, axis=2))
    exact = K @ coefficients.astype(np.longdouble)
    from_norms, from_differences = (gram.product_bound(coefficients, level=level) for level in gram.levels)
    for found in (from_norms, from_differences):
        assert (np.abs(found.value - exact) <= found.error).all()
    assert (from_differences.error[:3] < 0.05 * from_norms.error[:3]).all()
