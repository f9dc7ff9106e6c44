"""Errors of the squares s_m decide these claims about kernel weights."""

import numpy as np

from mercer.certificates.certificate import Certificate, kkt_residuals
from mercer.certificates.kernel_weights import WeightsProblem, certify_kernel_weights
from mercer.places.ball import Ball

MACHINES = Certificate(1.0, 1.0, 0.0, 0.0, kkt_residuals(0.0, 0.0, 0.0, 0.0), "optimality")


def test_a_square_that_is_smaller_than_it_seems():
    """s = (4, 2), of which 3 is known up to 1, and the second kernel has all weight: ½(4 − 2) is lost."""
    s = Ball(np.array([4.0, 3.0]), np.array([0.0, 1.0]))
    proof = certify_kernel_weights(MACHINES, WeightsProblem(1.0, np.ones(2)), np.array([0.0, 1.0]), s)
    assert proof.dual <= 0.0
    assert proof.gap >= 1.0


def test_a_square_that_is_larger_than_it_seems():
    """s = 4 that seems to be 3, and a weight of 2: ½(2 − 1)·2·4 more."""
    proof = certify_kernel_weights(
        MACHINES, WeightsProblem(1.0, np.ones(1)), np.full(1, 2.0), Ball(np.full(1, 3.0), np.ones(1))
    )
    assert proof.primal >= 5.0
    assert proof.gap >= 4.0
