"""The gap is at least the exact difference of the two values that a certificate states, in fractions."""

from fractions import Fraction

import numpy as np
import pytest

from mercer.certificates.certificate import Certificate
from mercer.certificates.table import CertificateTable

RNG = np.random.default_rng(11)
N = 4000
# Values over many decades, near each other and far apart, of either sign; subnormal ones and the largest.
PRIMAL = RNG.normal(size=N) * 10.0 ** RNG.integers(-12, 12, N)
DUAL = np.where(RNG.random(N) < 0.3, PRIMAL * (1 - 10.0 ** RNG.integers(-16, 1, N)), RNG.normal(size=N))
DUAL = np.minimum(DUAL, PRIMAL)
EXTREME = [(5e-324, -5e-324), (1e-308, -1.7e-323), (1.7e308, 1e292), (1.0, -(2.0**-60)), (0.0, 0.0), (3.0, 3.0)]


def _certificate(primal, dual, gap=0.0):
    return Certificate(primal=primal, dual=dual, gap=gap, violation=0.0, kkt={}, gap_measures="optimality")


def _gaps(primal, dual):
    """Gaps of single certificates and of a table, where nothing else is known of the gap."""
    table = CertificateTable(
        primal.copy(), dual.copy(), np.zeros(len(primal)), np.zeros(len(primal)), {}, "optimality",
        np.zeros(len(primal), dtype=np.intp), np.zeros((len(primal), 0)),
    )  # fmt: skip
    alone = np.array([_certificate(a, b).gap for a, b in zip(primal.tolist(), dual.tolist(), strict=True)])
    np.testing.assert_array_equal(table.gap, alone)
    np.testing.assert_array_equal([one.gap for one in table], alone)
    return alone.tolist()


def test_never_below_the_exact_difference():
    primal, dual = (np.append(PRIMAL, [pair[0] for pair in EXTREME]), np.append(DUAL, [pair[1] for pair in EXTREME]))
    below = 0
    for a, b, gap in zip(primal.tolist(), dual.tolist(), _gaps(primal, dual), strict=True):
        exact = Fraction(a) - Fraction(b)
        assert Fraction(gap) >= exact
        assert Fraction(np.nextafter(gap, -np.inf)) < exact or gap == 0  # the smallest such float64
        below += Fraction(a - b) < exact
    assert below > 500  # of which rounding to the nearest would be too small


@pytest.mark.parametrize(
    ("primal", "dual"),
    [(np.inf, 1.0), (1.0, -np.inf), (np.inf, -np.inf), (np.nan, 1.0), (1.0, np.nan), (1e308, -1e308)],
)
def test_values_beyond_float64_claim_nothing(primal, dual):
    assert _gaps(np.array([primal]), np.array([dual])) == [np.inf]


def test_a_larger_gap_stays():
    assert _certificate(1.0, -(2.0**-60), gap=2.0).gap == 2.0
