"""Factors and eigenvectors of K: every Gram has them to the contract, on every scale; a wrong one is seen."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

from contracts.gram_contract import check_eigensystem_contract, check_factor_contract
from mercer.kernels import FromFunction, Gaussian, Laplacian, Linear, Polynomial, Precomputed, Sigmoid, Spectrum
from mercer.places import gram_for
from mercer.places.factor import CholeskyFactor, Eigenvectors, HostFloat64Matrix
from places.engines.opaque import OpaqueGram, plain

rng = np.random.default_rng(0)
X = rng.normal(size=(6, 3))
WORDS = ["".join(rng.choice(list("abc"), 9)) for _ in range(6)]
INDEFINITE = rng.integers(-9, 10, size=(6, 6)).astype(float)
INDEFINITE += INDEFINITE.T

SCALES = [1e-150, 1e-20, 1.0, 1e20, 1e150]
GIVEN = {
    "definite": Gaussian(gamma=0.3)(X),
    "semidefinite": np.round(8 * X) @ np.round(8 * X).T,
    "two samples that are the same": Gaussian(gamma=0.3)(X[np.r_[:4, :2]]),
    "indefinite": INDEFINITE,
    "zero": np.zeros((4, 4)),
    "one sample": np.ones((1, 1)),
}


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", GIVEN)
def test_matrices_that_were_given_are_decomposed_on_every_scale(name, scale):
    K = scale * GIVEN[name]
    check_factor_contract(gram_for(Precomputed(), K), K, 0.0)
    check_eigensystem_contract(gram_for(Precomputed(), K), K, 0.0)


KERNELS = [
    Gaussian(0.3),
    Linear(),
    Polynomial(3, 0.5, 1.0),
    Sigmoid(0.2, 0.1),
    Laplacian(0.4),
    Gaussian(0.3) + Linear(),
]


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array, partial(np.asarray, dtype=np.float32)])
def test_kernels_of_all_kinds_are_decomposed_on_every_scale(kernel, scale, convert):
    made = convert(X)
    exact = np.asarray(made.toarray() if sp.issparse(made) else made, dtype=np.float64)
    kernel = kernel if scale == 1.0 else scale * kernel
    K = kernel(exact)
    check_factor_contract(gram_for(kernel, made, n_threads=2), K, 1e-14 * np.abs(K).max())
    check_eigensystem_contract(gram_for(kernel, made), K, 1e-14 * np.abs(K).max())


def test_strings_functions_and_views_are_decomposed():
    some = np.array([5, 2, 4, 0])
    for kernel, samples in ((Spectrum(2), WORDS), (FromFunction(lambda A, B: Gaussian(0.3)(A, B)), X)):
        K, gram = kernel(samples), gram_for(kernel, samples)
        for part, values in ((gram, K), (gram.view(some), K[np.ix_(some, some)])):
            check_factor_contract(part, values, 1e-14 * np.abs(K).max())
            check_eigensystem_contract(part, values, 1e-14 * np.abs(K).max())


def test_an_engine_of_another_kind_is_held_to_the_same():
    kernel = Gaussian(0.3)
    gram = OpaqueGram(plain(gram_for(kernel, X)))
    check_factor_contract(gram, kernel(X), 1e-14)
    check_eigensystem_contract(gram, kernel(X), 1e-14)
    assert not hasattr(gram.float64_matrix(), "K")
    assert not hasattr(gram.factor(np.ones(len(X))), "L")


def test_a_singular_matrix_of_whole_numbers_has_no_factor():
    v = np.array([1.0, 2.0, -4.0, 8.0])
    assert gram_for(Precomputed(), np.outer(v, v)).factor(np.zeros(4)) is None
    assert gram_for(Precomputed(), np.zeros((3, 3))).factor(np.zeros(3)) is None


def test_many_rows_in_several_threads_give_the_same_numbers():
    samples = np.random.default_rng(1).normal(size=(700, 5))
    K, d, R = (
        Gaussian(0.3)(samples),
        np.random.default_rng(2).random(700),
        np.random.default_rng(3).normal(size=(700, 2)),
    )
    gram = gram_for(Gaussian(0.3), samples)
    one, two = (gram.factor(d, n_threads=n).solve(R) for n in (1, 2))
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(one, gram.float64_matrix(2).factor(d).solve(R))
    np.testing.assert_allclose((K + np.diag(d)) @ one, R, atol=1e-10)
    single = gram.factor(d, np.float32).solve(R)
    np.testing.assert_allclose(single, one, atol=1e-2 * np.abs(one).max())
    assert not np.array_equal(single, one)


def test_values_beyond_float64_are_not_decomposed():
    gram = gram_for(Precomputed(), np.array([[1.0, np.inf], [np.inf, 1.0]]))
    with pytest.raises(FloatingPointError, match="scale the features"):
        gram.eigh(np.ones(2), False)
    assert gram.factor(np.ones(2)) is None


class Wrong:
    """A Gram that decomposes another matrix than its own, or not as precisely as it says."""

    def __init__(self, gram, **members):
        self._gram = gram
        vars(self).update(members)

    def __getattr__(self, name):
        return getattr(self._gram, name)


def made_of(gram, change):
    """The Gram's factors as `change` makes them."""

    def factor(d, dtype=np.float64, n_threads=1):
        return change(gram.factor(d, dtype), d, dtype)

    return Wrong(gram, factor=factor)


class Off(CholeskyFactor):
    @property
    def pivots(self):
        return super().pivots * (1 + 1e-10)


GRAM = gram_for(Precomputed(), GIVEN["definite"])
FACTORS = {
    "forgets d": made_of(GRAM, lambda found, d, dtype: found and GRAM.factor(np.ones(6), dtype)),
    "is float32 whatever was asked for": made_of(GRAM, lambda found, d, dtype: found and GRAM.factor(d, np.float32)),
    "takes another diagonal for its own": made_of(
        GRAM, lambda found, d, dtype: found and replace(found, diagonal=found.diagonal * (1 + 1e-12))
    ),
    "errs in its pivots": made_of(GRAM, lambda found, d, dtype: found and Off(found.L, found.diagonal, 1)),
    "factors what has no factor": made_of(GRAM, lambda found, d, dtype: found or GRAM.factor(np.abs(d))),
    "keeps another matrix": Wrong(
        GRAM, float64_matrix=lambda: HostFloat64Matrix(GIVEN["definite"] + 1e-13, GRAM.diagonal, 1)
    ),
    "keeps another diagonal": Wrong(
        GRAM, float64_matrix=lambda: HostFloat64Matrix(GIVEN["definite"], GRAM.diagonal + 1e-9, 1)
    ),
}


def test_a_wrong_factor_is_seen():
    check_factor_contract(GRAM, GIVEN["definite"], 0.0)
    for wrong in FACTORS.values():
        with pytest.raises(AssertionError):
            check_factor_contract(wrong, GIVEN["definite"], 0.0)


def rotated(found):
    """Two eigenvectors mixed a little: orthonormal still."""
    Q = found.Q.copy()
    Q[:, :2] @= np.array([[1.0, 1e-11], [-1e-11, 1.0]])
    return Eigenvectors(found.values, Q)


SYSTEMS = {
    "is not centred": lambda s, centred: GRAM.eigh(s, False),
    "forgets the scale": lambda s, centred: GRAM.eigh(np.ones(6), centred),
    "mixes eigenvectors": lambda s, centred: rotated(GRAM.eigh(s, centred)),
    "errs in its values": lambda s, centred: replace(found := GRAM.eigh(s, centred), values=found.values * (1 + 1e-12)),
    "has longer vectors": lambda s, centred: replace(found := GRAM.eigh(s, centred), Q=found.Q * (1 + 1e-12)),
}


def led(change):
    """The Gram with leading eigenvectors as `change` makes them of those of its own K."""
    own = GRAM.float64_matrix()
    leading = partial(change, own.leading)
    return Wrong(GRAM, float64_matrix=lambda: Wrong(own, leading=leading))


LEADING = {
    "takes nothing off": led(lambda own, scale, k, centre=None, subtracted=None: own(scale, k, centre)),
    "does not centre": led(lambda own, scale, k, centre=None, subtracted=None: own(scale, k, None, subtracted)),
    "takes the smallest": led(
        lambda own, scale, k, *rest: tuple(part[..., -k if k else 0 :] for part in own(scale, None, *rest))
    ),
    "has any signs": led(lambda own, *given: (lambda values, U: (values, -U))(*own(*given))),
}


def test_a_wrong_eigensystem_is_seen():
    check_eigensystem_contract(GRAM, GIVEN["definite"], 0.0)
    for wrong in (*(Wrong(GRAM, eigh=eigh) for eigh in SYSTEMS.values()), *LEADING.values()):
        with pytest.raises(AssertionError):
            check_eigensystem_contract(wrong, GIVEN["definite"], 0.0)
