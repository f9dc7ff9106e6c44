"""What the caller stated of a machine of one class may differ from bounds and totals by 16 roundings."""

from dataclasses import replace
from fractions import Fraction

import numpy as np

from certificates.test_error_terms import Declared
from mercer.certificates.certificate import Certificate, kkt_residuals
from mercer.certificates.novelty import with_best_bias
from mercer.problems.novelty import one_class

STATED = 16 * Fraction(1, 2**53)
UNKNOWN = Certificate(np.inf, -1e300, np.inf, 0.0, kkt_residuals(0.0, 0.0, 0.0, 0.0), "optimality")


def proof_at(p, upper, beta, total):
    """Without a kernel."""
    problem = replace(one_class(np.array(upper), 1.0), p=np.array(p), totals=np.array([total]))
    return with_best_bias(problem, Declared(np.zeros((len(p),) * 2), 0.0, "up"), np.array(beta), UNKNOWN)


def test_a_bound_that_is_larger_than_it_seems():
    """Sample 1 is outside by 10⁶, and its weight is 0.1."""
    proof = proof_at([0.0, 1e6], [9.0, 0.1], [0.3, 0.0], 0.3)
    assert abs(proof.b[0]) < 1e-300
    assert Fraction(proof.primal) >= Fraction(0.1) * (1 + STATED) * 10**6


def test_a_total_that_is_larger_than_it_seems():
    """b = 10⁶ times the total."""
    proof = proof_at([1e6], [9.0], [0.3], 0.3)
    assert Fraction(proof.primal) >= Fraction(proof.b[0]) * Fraction(0.3) * (1 + STATED)
