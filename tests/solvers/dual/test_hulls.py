"""When hulls are proven apart, and when they meet."""

import numpy as np
import pytest

from mercer.certificates.certificate import Certificate
from mercer.kernels import Linear
from mercer.places import gram_for
from mercer.solvers.dual.hulls import _hull_relation

GRAM = gram_for(Linear(), np.array([[1.0], [-1.0]]))


@pytest.mark.parametrize(
    ("dual", "gap", "apart", "meet"),
    [
        (-0.5, 0.1, True, False),
        (-0.5, 0.6, False, False),  # ‖w‖² may be anything from 0 to 1
        (-1e-17, 1e-17, False, True),
    ],
)
def test_only_the_lower_bound_on_the_distance_proves_hulls_apart(dual, gap, apart, meet):
    certificate = Certificate(dual + gap, dual, gap, 0.0, {}, "optimality")
    assert _hull_relation(GRAM, np.array([0.5, -0.5]), certificate)[:2] == (apart, meet)
