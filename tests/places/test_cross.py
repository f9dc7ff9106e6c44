"""K between samples and landmarks keeps its contract, and its bounds hold against rational numbers.

The shares say which part of its bound the worst error exceeds: multiplied by it, the bound must be caught.
"""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from contracts.cross_contract import check_cross_bounds, check_cross_contract
from contracts.gram_contract import exact_numbers
from contracts.named import named
from mercer.kernels import FromFunction, Gaussian, Laplacian, Linear, Polynomial, Precomputed, Spectrum
from mercer.places.choose import cross_for
from mercer.samples.chunks import Chunk
from reference.exact_kernels import Formula

RNG = np.random.default_rng(0)
N, M = 23, 4
X = (RNG.normal(size=(N, 3)) * (RNG.random((N, 3)) < 0.8)).astype(np.float32).astype(np.float64)
X[2], X[5] = 0.0, X[4]
Y, WEIGHT = RNG.normal(size=(N, 2)), RNG.uniform(0.1, 3.0, N)
PLACES = np.array([0, 2, 7, 19])


def by_hand(A, B):
    return np.exp(-0.3 * ((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2))


KERNELS = {
    "Gaussian": Gaussian(0.3),
    "Laplacian": Laplacian(0.3),
    "linear": Linear(),
    "polynomial": Polynomial(2, 0.5, 1.0),
    "composite": 0.5 * Gaussian(0.5) + Linear() * Laplacian(0.2),
    "a function": FromFunction(by_hand),
}
KINDS = {
    "dense": lambda A: A,
    "float32": lambda A: A.astype(np.float32),
    "CSR": sp.csr_array,
    "CSR, float32": lambda A: sp.csr_array(A.astype(np.float32)),
}


def chunks_of(samples, kept=False):
    """All samples in one chunk that stays in memory, or in three that are opened again for every pass."""
    if kept:
        whole = Chunk(samples, Y, WEIGHT, {})
        return lambda: [whole]
    return lambda: (Chunk(samples[part], Y[part], WEIGHT[part]) for part in (slice(9), slice(9, 10), slice(10, N)))


# A function takes arrays only.
PAIRS = [(name, kind) for name in KERNELS for kind in KINDS if name != "a function" or "CSR" not in kind]


@pytest.mark.parametrize(("name", "kind"), PAIRS)
def test_the_contract(name, kind):
    kernel, samples = KERNELS[name].bind(X), KINDS[kind](X)
    K, K_MM = kernel(X, X[PLACES]), kernel(X[PLACES])
    atol = 1e-6 if name == "composite" and "float32" in kind else 1e-12  # NumPy computes that in float32
    for kept, budget in ((False, 0), (True, 10**6)):
        with named(kept):
            cross = cross_for(kernel, samples[PLACES], chunks_of(samples, kept), budget)
            first = Chunk(samples[:6], Y[:6], WEIGHT[:6])
            check_cross_contract(cross, K, K_MM, Y, WEIGHT, atol, first)


def test_the_contract_on_a_matrix_that_was_given():
    K = Gaussian(0.3)(X)
    cross = cross_for(Precomputed(), PLACES, chunks_of(K, kept=True), 10**6, 1, K[np.ix_(PLACES, PLACES)])
    check_cross_contract(cross, K[:, PLACES], K[np.ix_(PLACES, PLACES)], Y, WEIGHT, 1e-12)


def test_the_contract_on_strings():
    texts = ["".join(RNG.choice(list("ab"), 8)) for _ in range(N)]
    kernel, some = Spectrum(2).bind(texts), [texts[k] for k in PLACES]
    cross = cross_for(kernel, some, chunks_of(texts, kept=True))
    check_cross_contract(cross, kernel(texts, some), kernel(some), Y, WEIGHT, 1e-12)


# --- bounds -------------------------------------------------------------------------------------------------------

GAUSSIAN, LINEAR = (Gaussian(0.3), Formula("gaussian", 0.3)), (Linear(), Formula("linear"))
# Kernel and formula, the kind of the samples, and the sizes of samples and coefficients.
CASES = {
    "Gaussian": (*GAUSSIAN, "dense", 1.0, 1.0),
    "Gaussian, CSR": (*GAUSSIAN, "CSR", 1.0, 1.0),
    "Gaussian, float32": (*GAUSSIAN, "float32", 1.0, 1.0),
    "Gaussian, far apart": (*GAUSSIAN, "dense", 1e3, 1.0),
    "linear": (*LINEAR, "dense", 1.0, 1.0),
    "linear, CSR": (*LINEAR, "CSR", 1.0, 1.0),
    "linear, tiny": (*LINEAR, "dense", 1e-150, 1e150),
    "linear, huge": (*LINEAR, "dense", 1e150, 1e-300),
    "linear, huge CSR": (*LINEAR, "CSR", 1e150, 1e-300),
    "polynomial": (Polynomial(2, 0.5, 1.0), Formula("polynomial", 0.5, degree=2, coef0=1.0), "dense", 1.0, 1.0),
    "NumPy blocks": (Gaussian(0.1) + 0.1 * Linear(), Formula("gaussian + linear", gamma=0.1), "dense", 1.0, 1.0),
}


def exact_parts(formula, samples, places):
    """K, k(x, x) and K_MM in exact numbers."""
    K, own = (exact_numbers(formula.matrix(samples, other)) for other in (samples[places], samples[places]))
    diagonal = np.array([exact_numbers(formula.matrix(row[None])).item() for row in samples])
    return K, diagonal, own[places]


@pytest.mark.parametrize("name", CASES)
def test_no_total_is_further_off_than_its_bound(name):
    kernel, formula, kind, size, of_C = CASES[name]
    samples = size * X
    given, C = KINDS[kind](samples), of_C * np.random.default_rng(1).normal(size=(M, 2))
    cross = cross_for(kernel.bind(samples), given[PLACES], chunks_of(given))
    for coefficients, b in ((C, np.array([0.3, -0.2])), (0 * C, np.zeros(2))):
        check_cross_bounds(cross, *exact_parts(formula, samples, PLACES), Y, WEIGHT, coefficients, b)


def test_no_total_of_a_given_matrix_is_further_off_than_its_bound():
    K = Gaussian(0.3)(X)
    cross = cross_for(Precomputed(), PLACES, chunks_of(K), 0, 1, K[np.ix_(PLACES, PLACES)])
    exact, C = exact_numbers(K), np.random.default_rng(1).normal(size=(M, 2))
    parts = exact[:, PLACES], np.diag(exact), exact[np.ix_(PLACES, PLACES)]
    check_cross_bounds(cross, *parts, Y, WEIGHT, C, np.array([0.3, -0.2]))


# --- no bound may be smaller --------------------------------------------------------------------------------------

HALF_ULP = 0.499 * float(np.finfo(float).eps)  # a little less than half an ulp of 1


class Scaled:
    """A cross that claims less error than it has."""

    def __init__(self, cross, name, share):
        self._cross, self._name, self._share = cross, name, share

    def __getattr__(self, name):
        return getattr(self._cross, name)

    @property
    def value_error(self):
        return self._cross.value_error * (self._share if self._name == "value_error" else 1.0)

    def proof(self, C, b):
        totals, doubt = self._cross.proof(C, b)
        if self._name == "residual":
            doubt = replace(doubt, residual=self._share * doubt.residual)
        if self._name == "squares":
            doubt = replace(doubt, squares=self._share**2 * doubt.squares)
        return totals, doubt


def one_at_a_time(samples, targets):
    return lambda: (Chunk(samples[[k]], targets[[k]], np.ones(1)) for k in range(len(samples)))


def lost_over_samples():
    """A sum over samples that come one at a time, which loses one term after another."""
    samples = np.full((1500, 1), HALF_ULP)
    samples[0] = 1.0
    return samples, np.ones((1500, 1)), np.zeros((1, 1))


def lost_over_features():
    """Values that lose one feature after another."""
    samples = np.full((2, 800), np.sqrt(HALF_ULP))
    samples[:, 0] = 1.0
    return samples, np.ones((2, 1)), np.zeros((1, 1))


def lost_in_f():
    """The same values in f: the bound counts a sum over the landmarks as well, as long as that over the features."""
    samples, targets, C = lost_over_features()
    return samples, 0 * targets, C + 1.0


SHARES = {"residual": (lost_over_samples, 0.5), "value_error": (lost_over_features, 0.5), "squares": (lost_in_f, 0.25)}


@pytest.mark.parametrize("name", SHARES)
def test_no_bound_can_be_smaller(name):
    make, share = SHARES[name]
    samples, targets, C = make()
    cross = cross_for(Linear(), samples[:1], one_at_a_time(samples, targets))
    numbers = exact_parts(Formula("linear"), samples, np.array([0])), targets, np.ones(len(samples)), C, np.zeros(1)
    found = check_cross_bounds(cross, *numbers[0], *numbers[1:])
    assert share < found[name] <= 1
    with pytest.raises(AssertionError):
        check_cross_bounds(Scaled(cross, name, share), *numbers[0], *numbers[1:])
