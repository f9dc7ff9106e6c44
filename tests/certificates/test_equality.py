"""The residual of Σβ bounds what a machine's own coefficients sum to."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest

from mercer import SVR
from mercer.certificates.certificate import EQUALITY


@pytest.mark.parametrize("seed", range(60))
def test_sums_of_two_variables_are_rounded(seed):
    """A falsified bound: the sum of a sample's two variables, which `dual_coef_` holds, is rounded once more."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 16))
    X, y = rng.normal(size=(n, 1)), rng.normal(size=n)
    for C in (1.0, 1e3, 1e6):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = SVR(C=C, kernel="linear", epsilon=0.0, max_iter=50, tol=1e-9).fit(X, y)
        true = abs(sum(map(Fraction, np.ravel(model.dual_coef_).tolist()), Fraction(0)))
        assert true <= Fraction(model.certificate_.kkt[EQUALITY])
