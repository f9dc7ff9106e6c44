"""Codes, signs, winners, and scikit-learn's layout of dual_coef_ written and read."""

import numpy as np
import pytest
from sklearn.utils.multiclass import _ovr_decision_function

from mercer.samples.coefficient_table import CoefficientTable
from mercer.samples.labels import (
    REST,
    class_pairs,
    class_weights,
    codes_among,
    known_classes,
    plane_coefficients,
    planes,
    read_labels,
    scores,
    signs,
    to_dual_coef,
    votes,
    winner,
    wins,
)


@pytest.mark.parametrize("classes", [np.array([3, -1, 7]), np.array(["b", "a", "c"]), np.array([2.0, 1.0, 0.0])])
def test_codes_among_classes_in_any_order(classes):
    codes = np.array([0, 2, 1, 1, 0])
    np.testing.assert_array_equal(codes_among(classes, classes[codes]), codes)


@pytest.mark.parametrize("dtype", ["i4", "i8", "u1"])
def test_labels_of_any_layout_are_coded(dtype):
    """Labels that arrive in a message are often not aligned."""
    labels = np.random.default_rng(0).integers(3, 6, 60).astype(dtype)
    memory = np.zeros(labels.nbytes + 1, dtype=np.uint8)
    unaligned = np.ndarray(labels.shape, labels.dtype, memory.data, offset=1)
    unaligned[:] = labels
    for given in (unaligned, np.repeat(labels, 2)[::2], labels.astype(np.dtype(dtype).newbyteorder(">"))):
        classes, codes = read_labels(given)
        np.testing.assert_array_equal(classes, [3, 4, 5])
        np.testing.assert_array_equal(codes, labels - 3)


def test_labels_that_are_unknown():
    with pytest.raises(ValueError, match=r"^y\[1\]='d' is not one of the classes \['a', 'b'\]$"):
        codes_among(np.array(["a", "b"]), ["a", "d"])
    with pytest.raises(ValueError, match="not the same as on last call"):
        known_classes([0, 1], np.array([0, 2]))


def test_signs_and_winners():
    np.testing.assert_array_equal(signs(np.array([0, 1]), 2), [[-1], [1]])
    np.testing.assert_array_equal(signs(np.array([2, 0]), 3), [[-1, -1, 1], [1, -1, -1]])
    np.testing.assert_array_equal(winner(np.array([-1.0, 0.0, 1.0])), [0, 1, 1])
    np.testing.assert_array_equal(winner(np.array([[-1.0], [0.0]])), [0, 1])
    np.testing.assert_array_equal(winner(np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 2.0]])), [0, 2])
    for codes in (np.array([0, 1, 1]), np.array([0, 1, 2])):
        np.testing.assert_array_equal(winner(signs(codes, codes.max() + 1)), codes)


def test_votes_are_libsvms():
    """A positive value is a vote for the first of a pair, zero and below for the second."""
    values = np.random.default_rng(0).choice([-1.5, 0.0, 0.25, 2.0], size=(50, 6))
    won, confidence = votes(values, 4)
    for row, value in enumerate(values):
        expected, sure = np.zeros(4), np.zeros(4)
        for v, (i, j) in zip(value, class_pairs(4), strict=True):
            expected[i if v > 0 else j] += 1
            sure[i] += v
            sure[j] -= v
        np.testing.assert_array_equal(won[row], expected)
        np.testing.assert_array_equal(confidence[row], sure)


def test_scores_are_scikit_learns():
    values = 10 * np.random.default_rng(0).normal(size=(50, 6))
    np.testing.assert_allclose(scores(values, 4), _ovr_decision_function(values < 0, -values, 4), atol=1e-13)
    assert (np.abs(scores(values, 4) - votes(values, 4)[0]) < 0.5).all()


def test_balanced_classes_have_the_same_weight():
    codes, weight = np.array([0, 0, 0, 1, 2, 2]), np.array([1.0, 2.0, 0.5, 7.0, 0.0, 0.25])
    factor = class_weights("balanced", np.arange(3), codes, weight)
    np.testing.assert_allclose(np.bincount(codes, weights=factor[codes] * weight), weight.sum() / 3)


def test_planes():
    assert planes(2, against_rest=True) == planes(2, against_rest=False) == [(1, 0)]
    assert planes(3, against_rest=True) == [(0, REST), (1, REST), (2, REST)]
    assert planes(3, against_rest=False) == class_pairs(3) == [(0, 1), (0, 2), (1, 2)]


@pytest.mark.parametrize("counts", [(2, 3), (1, 0, 2), (2, 1, 3, 2)])
@pytest.mark.parametrize("against_rest", [True, False])
def test_the_layout_is_read_as_it_is_written(counts, against_rest):
    rng, codes = np.random.default_rng(1), np.repeat(np.arange(len(counts)), counts)
    pairs = planes(len(counts), against_rest)
    table = np.zeros((len(codes), len(pairs)))
    for k, (first, second) in enumerate(pairs):
        inside = (codes == first) | (codes == second) | (second == REST)
        table[inside, k] = rng.normal(size=inside.sum())
    found = to_dual_coef(CoefficientTable.of_array(table), codes, pairs, len(counts))
    for k in range(len(pairs)):
        np.testing.assert_array_equal(plane_coefficients(found, counts, pairs, k), table[:, k])


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_wins_are_counted_pair_by_pair(n_classes):
    pairs = [(a, b) for a in range(n_classes) for b in range(a + 1, n_classes)]
    values = np.random.default_rng(0).choice([-1.0, 0.0, 0.5, np.nan], (20, len(pairs)))
    truth = np.zeros((20, n_classes))
    for row, won in zip(values, truth, strict=True):
        for value, (first, second) in zip(row, pairs, strict=True):
            won[first if value > 0 else second] += 1
    assert np.array_equal(wins(values, n_classes), truth)
    assert np.array_equal(wins(np.asfortranarray(values), n_classes), truth)
