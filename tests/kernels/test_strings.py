"""Kernels of strings equal loops over all parts of them."""

import math
import random
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import SVC
from mercer.kernels import Mismatch, Spectrum, Subsequences, Substrings
from mercer.places.host.source import value_error
from reference import kernels as naive
from reference.address_space import address_space

WORDS = ["", "a", "ab", "abab", "bbbbb", "aabbaab", "baabaa", "abab"]
CASES = [
    (Substrings(), naive.substrings, {"longest": None, "decay": 1.0}),
    (Substrings(longest=2), naive.substrings, {"longest": 2, "decay": 1.0}),
    (Substrings(decay=1 / 1.1), naive.substrings, {"longest": None, "decay": 1 / 1.1}),
    (Substrings(longest=3, decay=2.0), naive.substrings, {"longest": 3, "decay": 2.0}),
    (Mismatch(2, 1, "ab"), naive.mismatch, {"length": 2, "mismatches": 1, "alphabet": "ab"}),
    (Mismatch(3, 2, "abc"), naive.mismatch, {"length": 3, "mismatches": 2, "alphabet": "abc"}),
    (Mismatch(2, 0, "ab"), naive.mismatch, {"length": 2, "mismatches": 0, "alphabet": "ab"}),
    (Subsequences(1, 0.7), naive.subsequences, {"length": 1, "decay": 0.7}),
    (Subsequences(2, 0.5), naive.subsequences, {"length": 2, "decay": 0.5}),
    (Subsequences(4, 1.0), naive.subsequences, {"length": 4, "decay": 1.0}),
]


@pytest.mark.parametrize(("kernel", "formula", "parameters"), CASES, ids=[str(case[0]) for case in CASES])
def test_values_are_the_formulas(kernel, formula, parameters):
    check(kernel, formula, parameters, WORDS, WORDS[3:])


def check(kernel, formula, parameters, words, others):
    expected = naive.matrix(formula, words, words, **parameters)
    between = naive.matrix(formula, words, others, **parameters)
    near = {"rtol": 1e-13, "atol": 1e-300}
    np.testing.assert_allclose(kernel(words), expected, **near)
    np.testing.assert_allclose(kernel(words, list(words)), expected, **near)
    np.testing.assert_allclose(kernel(words, others), between, **near)
    np.testing.assert_allclose(kernel.diag(words), expected.diagonal(), **near)
    lengths = np.sqrt(np.where(expected.diagonal() > 0, expected.diagonal(), 1.0))
    scaled = kernel.set_params(normalise=True)
    np.testing.assert_allclose(scaled(words), expected / np.outer(lengths, lengths), rtol=1e-13)
    np.testing.assert_array_equal(scaled.diag(words), expected.diagonal() > 0)
    kernel.set_params(normalise=False)


texts = st.lists(st.text("abc", max_size=9), min_size=1, max_size=5)


@settings(max_examples=30)
@given(words=texts, others=texts, longest=st.sampled_from([None, 1, 3]), decay=st.sampled_from([1.0, 0.4, 1.5]))
def test_substrings_of_any_strings(words, others, longest, decay):
    check(Substrings(longest, decay), naive.substrings, {"longest": longest, "decay": decay}, words, others)


@settings(max_examples=30)
@given(words=texts, others=texts, length=st.integers(1, 3), decay=st.sampled_from([1.0, 0.4]))
def test_subsequences_of_any_strings(words, others, length, decay):
    check(Subsequences(length, decay), naive.subsequences, {"length": length, "decay": decay}, words, others)


def test_characters_beyond_the_basic_plane():
    words = ["αβ𝄞α", "𝄞α", "\ud800α"]
    for kernel in (Substrings(), Subsequences(2)):
        expected = kernel(
            [text.translate({ord("α"): "a", ord("𝄞"): "b", 0xD800: "c", ord("β"): "d"}) for text in words]
        )
        np.testing.assert_array_equal(kernel(words), expected)


def test_special_cases():
    np.testing.assert_array_equal(Substrings(longest=1)(WORDS), Spectrum(1)(WORDS))
    np.testing.assert_array_equal((Substrings(longest=2))(WORDS), (Spectrum(1) + Spectrum(2))(WORDS))
    np.testing.assert_array_equal(Mismatch(3, 0, "ab")(WORDS), Spectrum(3)(WORDS))
    long = ["ab" * 50, "ab" * 50, "ba" * 49]  # repeated parts, up to the whole string: n of a length, half begin with a
    assert Substrings()(long)[0, 1] == sum((n // 2) ** 2 + ((n + 1) // 2) ** 2 for n in range(1, 101))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Substrings(longest=0), "longest=0 must be an integer of at least 1"),
        (lambda: Substrings(decay=0.0), "decay=0.0 must be a finite number above 0"),
        (lambda: Substrings(decay=1e-200), "at least 1e-100"),
        (lambda: Subsequences(decay=1.5), "at most 1"),
        (lambda: Subsequences(length=60, decay=0.1), "would lose digits"),
        (lambda: Mismatch(3, 3), "mismatches=3 must be below length=3"),
        (lambda: Mismatch(alphabet="AAC"), "different letters"),
        (lambda: Mismatch()(["ACGT", "ACNT"]), "'N', in 'ACNT', is not a letter"),
        (lambda: Mismatch(25, 24, "abcdefgh"), "more than 10,000; lower the mismatches or the length"),
        (lambda: Mismatch(10**9, 10**8), "more than 10,000"),
        (lambda: Mismatch(10**300, 1), "more than 10,000"),
        (lambda: Mismatch(12, 4), "more than 10,000"),  # 4⁴·C(12, 4) = 126,720
    ],
)
def test_what_cannot_be(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_the_ceiling_of_mismatches_is_the_count_of_strings():
    """letters^mismatches·C(length, mismatches), counted: as many ways to choose places and letters."""
    for length, mismatches, alphabet in ((6, 2, "ACDEFGHIKLMNPQRSTVWY"), (10, 3, "ACGT"), (5, 1, "ab"), (14, 13, "a")):
        ways = len(alphabet) ** mismatches * sum(1 for _ in combinations(range(length), mismatches))
        assert ways <= 10_000
        assert Mismatch(length, mismatches, alphabet)._n_neighbours() == ways
    assert Mismatch(10, 3)(["ACGTACGTAC"])[0, 0] == sum(3**k * math.comb(10, k) for k in range(4))


@pytest.mark.timeout(20)
def test_subsequences_longer_than_any_string_are_none_at_once():
    for normalise in (False, True):
        kernel = Subsequences(10**12, decay=1.0, normalise=normalise)
        np.testing.assert_array_equal(kernel(["abc", "ab"], ["abcd"]), np.zeros((2, 1)))
        np.testing.assert_array_equal(kernel.diag(["abc", "ab"]), np.zeros(2))
        assert value_error(kernel, ["abc", "ab"]) < 1e-12
    np.testing.assert_array_equal(Subsequences(3, decay=1.0)(["abc"], ["abc", "ab"]), [[1.0, 0.0]])


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "values",
    [
        lambda: Spectrum(10**7)(["ab" * 10**7]),  # 10⁷ substrings of 10 MB each
        lambda: Mismatch(10, 3)(["".join(random.Random(0).choices("ACGT", k=10**6))]),
        lambda: Subsequences(10**6, decay=1.0)(["a" * 10**6] * 3),
        lambda: Subsequences(10**6, decay=1.0).diag(["a" * 10**6] * 3),
    ],
)
def test_what_needs_more_than_the_memory_is_refused_first(values):
    with address_space(1 << 30), pytest.raises(ValueError, match="more than half of this computer's memory; compare"):
        values()


def test_bounds_count_every_rounding():
    words = ["ab" * 20, "ba" * 15]
    assert value_error(Substrings(), words) == value_error(Spectrum(), words) < 1e-14
    for kernel in (Substrings(decay=0.3), Subsequences(3, 0.9), Spectrum(2, normalise=True)):
        single = value_error(kernel, words)
        assert value_error(Spectrum(), words) < single < 1e-12
        assert value_error(kernel**50, words) >= 50 * single  # a power has the roundings of all its factors


def test_a_machine_on_subsequences():
    rng = np.random.default_rng(0)
    X = ["".join(rng.choice(list("ab"), 12)) + ("a" if i % 2 else "b") * 3 for i in range(60)]
    y = np.arange(60) % 2
    model = SVC(kernel=Subsequences(2, 0.6, normalise=True), C=10.0).fit(X, y)
    assert model.certificate_.proves == "optimality"
    assert model.score(X, y) > 0.9
