"""What coefficients of a ranking miss of the sums of its multipliers is taken off the dual value, by both its terms."""

import numpy as np
import pytest

from certificates.test_error_terms import Declared
from certificates.test_rounding_terms import pair
from mercer.certificates.ranking import certify_ranking
from mercer.problems.ranking import RankDual


@pytest.mark.parametrize("missed", [0.5, 2.0**-10])
def test_coefficients_that_are_not_the_sums(missed):
    """D(α) = α − 2α² at α = ½ is 0 for K = 2I, whatever β is: ½ and −½, less what they miss."""
    beta = np.array([0.5 - missed, missed - 0.5])
    dual = RankDual(np.array([0.2, -0.2]), -9.0, np.array([0.5]))
    assert certify_ranking(pair(), Declared(2 * np.eye(2), 0.0, "up"), beta, dual).dual <= 0.0
