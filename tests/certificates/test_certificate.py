"""The certificate as a value: totals of several, and what they may claim."""

import math
from dataclasses import replace
from fractions import Fraction
from typing import get_args

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import mercer
from mercer import Certificate
from mercer.certificates.certificate import ProvenClaim, bounded_sum

ONE = Certificate(primal=2.0, dual=1.5, gap=0.5, violation=0.1, kkt={"x": 0.1}, gap_measures="optimality")


def test_a_total_claims_no_more_than_its_weakest_part():
    single = "float32 with float64 sums, 306 rows in float64"
    parts = [ONE, replace(ONE, precision=single, violation=0.3), replace(ONE, gap_measures="stationarity", gap=0.7)]
    total = Certificate.total(parts)
    assert total.precision == single
    assert total.gap_measures == "stationarity"
    assert total.violation == 0.3
    assert 1.7 <= total.gap < 1.7 + 1e-14  # the rounding of the sum is in it
    assert Certificate.total([ONE, ONE]).precision == "float64"


def test_sums_of_claims_are_bounds_next_to_the_exact_sum():
    rng = np.random.default_rng(0)
    for _ in range(200):
        values = rng.normal(size=rng.integers(1, 9)) * 10.0 ** rng.integers(-20, 20)
        exact = sum(map(Fraction, values.tolist()))
        low, high = bounded_sum(values, -1), bounded_sum(values, 1)
        assert Fraction(low) <= exact <= Fraction(high)
        assert high - low <= 2 * np.spacing(abs(high))
    assert bounded_sum([0.0, 0.0], 1) == bounded_sum(np.array([1.0, -1.0]), -1) == 0.0
    assert bounded_sum([1e308, 1e308], 1) == bounded_sum([math.inf, 1.0], 1) == bounded_sum([math.inf, -math.inf], 1)
    assert bounded_sum([1e308, 1e308], 1) == math.inf
    assert bounded_sum([1e308, 1e308, -1.0], -1) == -math.inf
    assert math.isnan(bounded_sum([math.nan, 1.0], 1))


@pytest.mark.parametrize(
    ("gap", "dual", "told"),
    [
        (0.001, 1.0, "optimal to within 1.0e-03 of the dual value, in float64"),
        (0.53, 1.0, "not proven optimal: the gap is 53% of the dual value, in float64"),
        (3.0, 1.0, "not proven optimal: the gap exceeds the dual value, in float64"),
        (math.inf, 1.0, "not proven optimal: the gap is inf, in float64"),
        (80.00000000000158, 0.0, "not proven optimal: the gap is 80, in float64"),
        (0.0, 0.0, "optimal to within 0.0e+00 of the dual value, in float64"),
    ],
)
def test_the_verdict_says_how_far_from_optimal_it_may_be(gap, dual, told):
    proof = Certificate(dual + gap, dual, gap, 0.0, {}, "optimality")
    assert str(proof).splitlines()[-1] == told
    weaker = Certificate(dual + gap, dual, gap, 0.0, {}, "optimality if the loss is convex")
    assert str(weaker).splitlines()[-1] == told.replace("optimal to", "optimal if the loss is convex, to")


def test_a_fit_that_was_cut_short_does_not_print_a_proof():
    X = np.random.default_rng(0).normal(size=(200, 3))
    with pytest.warns(ConvergenceWarning):
        model = mercer.SVC(max_iter=1).fit(X, (X[:, 0] > 0).astype(int))
    assert model.certificate_.relative_gap > 1
    assert "not proven optimal" in str(model.certificate_)
    assert model.certificate_.proves == "nothing"


@pytest.mark.parametrize("measured", get_args(ProvenClaim))
def test_what_is_proven_falls_with_the_gap(measured):
    small, large, none = (
        Certificate(1.0 + gap, 1.0, gap, 0.0, {}, measured).proves for gap in (0.001, 0.2, math.nextafter(1.0, 2.0))
    )
    what, _, condition = measured.partition(" ")
    assert small == measured
    assert large == f"{what} to within 20% of the dual value {condition}".strip()
    assert none == "nothing"


def test_coefficients_of_zero_prove_nothing():
    X = np.random.default_rng(0).normal(size=(50, 3))
    proof = mercer.certify(mercer.SVC(C=2.0), X, (X[:, 0] > 0).astype(int), np.zeros(50))
    assert (proof.dual, proof.proves, proof.gap_measures) == (0.0, "nothing", "optimality")


@pytest.mark.parametrize("n_classes", [3, 12])  # a few pairs are objects, many are arrays
def test_a_sum_does_not_hide_an_unsolved_part(n_classes):
    X = np.random.default_rng(1).normal(size=(8 * n_classes, 3))
    proof = mercer.SVC(C=10.0).fit(X, np.arange(len(X)) % n_classes).certificate_
    assert proof.proves == "optimality"
    parts = list(proof.parts)
    parts[1] = replace(parts[1], gap=0.5 * parts[1].dual)
    total = Certificate.total(parts)
    assert total.relative_gap < 0.5
    assert total.proves == "optimality to within 50% of the dual value"
    assert total.verdict == "not proven optimal: the gap is 50% of the dual value of a sub-problem, in float64"
    parts[1] = replace(parts[1], gap=1.5 * parts[1].dual)
    proof = Certificate.total(parts * n_classes)
    assert proof.relative_gap < 1
    assert proof.proves == "nothing"
    assert proof.verdict.startswith("not proven optimal: the gap exceeds the dual value of a sub-problem")


def test_the_verdict_names_the_sub_problem_whose_gap_it_states():
    loose = replace(ONE, primal=1.505, gap=0.005)
    tight = replace(ONE, primal=15.001, dual=15.0, gap=0.001)
    total = Certificate.total([loose, tight])
    assert f"{total.relative_gap:.1e}" == "3.6e-04"  # 0.006 of 16.5
    words = "optimal to within 3.3e-03 of the dual value (worst of 2 sub-problems), in float64"  # 0.005 of 1.5
    assert total.verdict == words
    assert tight.verdict == "optimal to within 6.7e-05 of the dual value, in float64"


def test_rounding_of_an_output_without_error_is_no_unsolved_part():
    X = np.random.default_rng(2).normal(size=(40, 3))
    proof = mercer.RLSRegressor().fit(X, np.column_stack([X[:, 0], np.full(40, 0.1)])).certificate_
    assert proof.parts[1].relative_gap > 1  # of an optimum of 0 no share is reached
    assert proof.proves == "optimality"
