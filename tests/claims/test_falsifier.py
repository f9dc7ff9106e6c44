"""The falsifier itself: it agrees with honest certificates of clean data, and notices every forged number."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from claims.dual_claims import binary_parts
from claims.false_claims import Claim, Problem, compare, fitted, setting
from mercer import SVC
from reference import exact_machines as exact
from reference.decimals import decimals, hundred_digits, solve, zeros
from reference.exact_duals import findings


def claim_of(seed):
    """A loose fit of clean data: nothing in its certificate is rounding."""
    s = setting(Problem("SVC", n=30, seed=seed, weights="mild"))
    model = fitted(SVC(tol=0.1, **s.kernel), s, s.labels)
    rows, signs, beta = binary_parts(model, s)[0]
    truth = findings(exact.soft_margin(signs, s.weight), s.K(), beta[rows], decimals(np.array(model.certificate_.b)))
    return Claim(model.certificate_, truth)


@pytest.mark.parametrize("seed", range(3))
def test_the_reference_has_the_numbers_of_an_honest_certificate(seed):
    with hundred_digits():
        claim = claim_of(seed)
    proof, truth = claim.certificate, claim.truth
    assert float(truth.primal) == pytest.approx(proof.primal, rel=3e-12)  # an upper bound, for sums in any order
    assert float(truth.dual) == pytest.approx(proof.dual, rel=1e-12)
    assert float(truth.violation) == pytest.approx(proof.violation, rel=1e-9)
    assert float(truth.gap) == pytest.approx(proof.gap, rel=1e-9)


@pytest.mark.parametrize(
    ("forged", "word"),
    [
        ({"violation": 0.99}, "violation"),
        ({"gap": 0.99}, "gap"),
        ({"primal": 1.5}, "primal's error"),
        ({"dual": 1.5}, "dual's error"),
        ({"gap": np.nan}, "NaN"),
    ],
)
def test_a_forged_number_is_noticed(forged, word):
    with hundred_digits():
        claim = claim_of(0)
        name, factor = next(iter(forged.items()))
        lie = SimpleNamespace(**vars(claim.certificate))  # a Certificate would repair itself
        setattr(lie, name, factor * getattr(lie, name))
        assert any(word in line for line in compare(replace(claim, certificate=lie)))


def test_elimination_solves_to_hundred_digits():
    rng = np.random.default_rng(0)
    A, x = rng.normal(size=(8, 8)), rng.normal(size=8)
    with hundred_digits():
        A, x = decimals(A), decimals(x)
        assert max(np.abs(solve(A, A @ x) - x)) < decimals(1e-36)
        A[3] = A[2]  # singular: a solution nevertheless
        assert max(np.abs(A @ solve(A, A @ x) - A @ x)) < decimals(1e-33)
        assert (solve(zeros(2, 2), zeros(2)) == 0).all()
