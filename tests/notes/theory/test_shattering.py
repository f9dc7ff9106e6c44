"""Dichotomies by machines against hard margins, ranks and Cover's count; growth and VC dimension by brute force."""

import itertools
import math

import numpy as np
import pytest

from mercer import SVC
from mercer.kernels import Gaussian, Linear, Polynomial, Spectrum
from mercer.notes.theory import dichotomies, shattering
from mercer.runtime.errors import NotSeparableError

rng = np.random.default_rng(1)


@pytest.mark.parametrize(("n", "d"), [(5, 1), (6, 2), (7, 3), (5, 5)])
def test_points_in_general_position_have_covers_number(n, d):
    X = rng.normal(size=(n, d))
    assert len(shattering(X, SVC(kernel="linear", bias=False)).dichotomies) == dichotomies(d, n)
    found = shattering(X, SVC(kernel="linear"))
    assert len(found.dichotomies) == dichotomies(d + 1, n)
    assert found.vc_dimension == min(n, d + 1)
    assert found.growth == (1, *(dichotomies(d + 1, m) for m in range(1, n + 1)))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kernel", [Linear(), (Linear() + 1) ** 2, Gaussian(gamma=0.5)])
def test_the_labellings_are_those_that_a_hard_margin_separates(bias, kernel):
    X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [2.0, 2.0], [-1.0, 0.5]])  # (1, 1) and (2, 2) on a ray
    found = {tuple(row) for row in shattering(X, SVC(kernel=kernel, bias=bias)).dichotomies.tolist()}
    for labels in itertools.product((-1.0, 1.0), repeat=5):
        if len(set(labels)) == 1:
            continue  # SVC needs two classes
        try:
            SVC(kernel=kernel, bias=bias, C=np.inf).fit(X, labels)
            separable = True
        except NotSeparableError:
            separable = False
        assert (labels in found) == separable


def test_the_vc_dimension_of_a_machine_is_the_rank_of_its_features():
    """Points are shattered if and only if their features, with a 1 for the bias, are linearly independent."""
    X = rng.integers(-1, 2, size=(8, 2)).astype(float)
    X = np.unique(X[np.abs(X).sum(axis=1) > 0], axis=0)
    for kernel, features in (
        (Linear(), X),
        (Linear() ** 2, np.column_stack([X[:, 0] ** 2, X[:, 1] ** 2, X[:, 0] * X[:, 1]])),
    ):
        with_one = np.column_stack([features, np.ones(len(X))])
        assert shattering(X, SVC(kernel=kernel)).vc_dimension == np.linalg.matrix_rank(with_one)
        assert shattering(X, SVC(kernel=kernel, bias=False)).vc_dimension == np.linalg.matrix_rank(features)


@pytest.mark.parametrize("far", [0.0, 1e9, -3e12])
@pytest.mark.parametrize("unit", [1.0, 1e-9, 1e9])
def test_thresholds_in_any_unit_and_far_from_zero(unit, far):
    found = shattering(unit * (far + np.arange(4.0))[:, None], SVC(kernel="linear"))
    assert found.growth == (1, 2, 4, 6, 8)


def test_a_strictly_positive_definite_kernel_shatters_all_points():
    """Also where its matrix has no digits left: the smallest eigenvalue is 1e-40 times the largest."""
    for kernel in (Gaussian(gamma=1e-3), Gaussian(gamma=1e-8)):
        found = shattering(np.arange(8.0)[:, None], SVC(kernel=kernel))
        assert found.vc_dimension == 8
        assert len(found.dichotomies) == 2**8
    twice = shattering([[0.0], [1.0], [1.0]], SVC(kernel=Gaussian(gamma=0.5)))  # equal points have equal labels
    assert found.vc_dimension == 8
    assert twice.growth == (1, 2, 4, 4)


def test_points_of_a_line_but_for_one():
    """It can have either label between the others, however near to the line it is."""

    def line(off):
        return [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0 + off], [3.0, 3.0]]

    assert shattering(line(0.0), SVC(kernel="linear")).growth == (1, 2, 4, 6, 8)
    for off in (1e-6, 1e-13, -4e-16):
        assert shattering(line(off), SVC(kernel="linear")).growth == (1, 2, 4, 8, 12)
    near = shattering([[0.0], [1.0], [1.0], [1.000001]], SVC(kernel=Gaussian(gamma=0.5)))
    assert near.growth == (1, 2, 4, 8, 8)  # one point is there twice


@pytest.mark.parametrize("far", [0.0, 99999.5, -1e8])
@pytest.mark.parametrize("bias", [True, False])
def test_polynomials_far_from_the_origin(bias, far):
    """Polynomials of degree 2 shatter three numbers, and change their sign twice at most, wherever these are."""
    X = far + np.array([0.0, 0.25, 1.0, 1.5, 4.0])[:, None]
    for kernel in (Polynomial(degree=2, gamma=1.0, coef0=0.5), 3 * (Linear() + 1) ** 2 + 1):
        found = shattering(X, SVC(kernel=kernel, bias=bias)).dichotomies
        signs = itertools.product((-1.0, 1.0), repeat=5)
        few = {labels for labels in signs if sum(a != b for a, b in itertools.pairwise(labels)) <= 2}
        assert {tuple(row) for row in found.tolist()} == few
    parabolas = shattering(X, SVC(kernel=Polynomial(degree=2, gamma=1.0, coef0=0.0), bias=True)) if far else None
    assert parabolas is None or len(parabolas.dichotomies) == 10  # x² + b is monotone here: thresholds


def test_words_by_their_letters():
    """The spectrum kernel of length 1 counts letters: "ab" and "ba" are the same point, and "aabb" is twice it."""
    with_bias = shattering(["ab", "ba", "aabb", "b"], SVC(kernel=Spectrum(1)))
    assert with_bias.vc_dimension == 3
    assert with_bias.growth == (1, 2, 4, 8, 8)
    through_the_origin = shattering(["ab", "ba", "aabb", "b"], SVC(kernel=Spectrum(1), bias=False))
    assert through_the_origin.growth == (1, 2, 4, 4, 4)


def test_kernel_values_that_rounding_may_make_dependent_are_refused():
    X = [[1.0, 0.1], [2.0, 0.2], [0.3, 1.0]]
    with pytest.raises(ValueError, match="may be linearly dependent"):
        shattering(X, SVC(kernel=Linear().normalised(), bias=False))
    assert shattering(X[1:], SVC(kernel=Linear().normalised(), bias=False)).vc_dimension == 2


def test_growth_and_vc_dimension_of_random_rules_by_brute_force():
    for n, n_rules in ((4, 3), (6, 20), (7, 90)):
        table = rng.integers(0, 2, size=(n_rules, n)).astype(bool)
        found = shattering(np.arange(n)[:, None], [lambda X, row=row: row for row in table])
        distinct = {tuple(row) for row in table.tolist()}
        assert len(found.dichotomies) == len(distinct)
        largest = 0
        for m in range(n + 1):
            counts = [
                len({tuple(row[i] for i in rows) for row in distinct}) for rows in itertools.combinations(range(n), m)
            ]
            assert found.growth[m] == max(counts)
            largest = m if max(counts) == 2**m else largest
        assert found.vc_dimension == len(found.shattered) == largest
        assert len({tuple(row[i] for i in found.shattered) for row in distinct}) == 2**largest
        assert found.sauer == tuple(sum(math.comb(m, i) for i in range(largest + 1)) for m in range(n + 1))
        assert all(a <= b for a, b in zip(found.growth, found.sauer, strict=True))


def test_intervals_have_vc_dimension_two():
    ends = np.arange(-0.5, 6.0)
    rules = [lambda X, a=a, b=b: (X[:, 0] - a) * (b - X[:, 0]) for a in ends for b in ends if a <= b]
    found = shattering(np.arange(6.0)[:, None], rules)
    assert found.vc_dimension == 2
    assert found.growth == tuple(1 + math.comb(m + 1, 2) for m in range(7))


def test_what_cannot_be_enumerated_is_refused():
    with pytest.raises(ValueError, match="13 points"):
        shattering(np.zeros((13, 1)), SVC(kernel="linear"))
    with pytest.raises(ValueError, match="φ"):
        shattering([[0.0], [1.0]], SVC(kernel="linear", bias=False))
    with pytest.raises(TypeError, match="list of functions"):
        shattering([[0.0]], [])
    with pytest.raises(TypeError, match="list of functions"):
        shattering([[0.0]], [np.sign, 1.0])
    with pytest.raises(ValueError, match="a number for each of 2 points"):
        shattering([[0.0], [1.0]], [lambda X: 1.0])
