"""The certificate as a value: totals of several, and what they may claim."""

import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import mercer
from mercer import Certificate

ONE = Certificate(primal=2.0, dual=1.5, gap=0.5, violation=0.1, kkt={"x": 0.1}, proves="optimality")


def test_a_total_claims_no_more_than_its_weakest_part():
    single = "float32 with float64 sums, 306 rows in float64"
    parts = [ONE, replace(ONE, precision=single, violation=0.3), replace(ONE, proves="stationarity", gap=0.7)]
    total = Certificate.total(parts)
    assert total.precision == single
    assert total.proves == "stationarity"
    assert total.violation == 0.3
    assert 1.7 <= total.gap < 1.7 + 1e-14  # the rounding of the sum is in it
    assert Certificate.total([ONE, ONE]).precision == "float64"


@pytest.mark.parametrize(
    ("gap", "dual", "told"),
    [
        (0.001, 1.0, "proves optimality, in float64"),
        (0.53, 1.0, "proves optimality to within 53% of the dual value, in float64"),
        (3.0, 1.0, "does not prove optimality: the gap exceeds the dual value, in float64"),
        (math.inf, 1.0, "proves nothing: the gap is inf, in float64"),
        (0.0, 0.0, "proves optimality, in float64"),
    ],
)
def test_the_verdict_says_how_far_from_optimal_it_may_be(gap, dual, told):
    proof = Certificate(dual + gap, dual, gap, 0.0, {}, "optimality")
    assert str(proof).splitlines()[-1] == told
    weaker = Certificate(dual + gap, dual, gap, 0.0, {}, "optimality if the loss is convex")
    assert str(weaker).endswith(told.replace("value, in", "value if the loss is convex, in")) or "within" not in told


def test_a_fit_that_was_cut_short_does_not_print_a_proof():
    X = np.random.default_rng(0).normal(size=(200, 3))
    with pytest.warns(ConvergenceWarning):
        model = mercer.SVC(max_iter=1).fit(X, (X[:, 0] > 0).astype(int))
    assert model.certificate_.relative_gap > 1
    assert "does not prove optimality" in str(model.certificate_)
