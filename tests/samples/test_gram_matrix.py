"""Precomputed kernel matrices: how large their entries may be."""

from fractions import Fraction

import numpy as np
import pytest

from mercer.samples.checks import check_gram_matrix

LARGEST = Fraction(float(np.finfo(np.float64).max))


@pytest.mark.parametrize("n", [1, 2, 4, 7, 64])
def test_entries_whose_sums_overflow_are_refused_and_no_others(n):
    """Twice a row's sum must be a float64, in rational arithmetic: the first number above and the last one below."""
    below = float(LARGEST / (2 * n))
    while 2 * n * Fraction(below) > LARGEST:
        below = float(np.nextafter(below, 0.0))
    above = float(np.nextafter(below, np.inf))
    while 2 * n * Fraction(above) <= LARGEST or not np.isinf(2.0 * above * n):  # as far as rounding to float64 hides it
        above = float(np.nextafter(above, np.inf))
    for sign in (1.0, -1.0):
        check_gram_matrix(np.full((n, n), sign * below))
        with pytest.raises(FloatingPointError, match="whose sums overflow float64; scale it"):
            check_gram_matrix(np.full((n, n), sign * above))
