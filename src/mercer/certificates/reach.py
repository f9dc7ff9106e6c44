"""How large kernel values can be: for bounds on sums of which only the coefficients are known."""

from __future__ import annotations

import numpy as np

from mercer.arrays import Floats
from mercer.gram.gram import Gram

# Roundings of each value that the bound of a product with K counts at least.
_COUNTED = 4 * 2.0**-53


def roots(gram: Gram) -> Floats:
    """Numbers with |K_ij| ≤ roots_i·roots_j: √K_ii where K is positive semi-definite.

    Of any other K the diagonal says nothing. There the bound on a row's rounding tells how large its values can be.
    """
    if gram.positive_definite == "yes":
        return np.sqrt(np.abs(gram.diagonal))
    one = np.zeros(gram.n)
    one[:1] = 1.0
    return np.sqrt((gram.unit_errors(1) if gram.fused else gram.errors(one)) / _COUNTED)
