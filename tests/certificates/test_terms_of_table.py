"""Each error term of a table of certificates decides one of these claims."""

from fractions import Fraction

import numpy as np
import pytest

from mercer.certificates.certificate import kkt_residuals
from mercer.certificates.table import CertificateTable, pair_certificates

NAMES = ["losses", "shares", "total", "worst", "box", "outward", "inward", "top", "bottom", "b"]
NAMES += ["energy", "gain", "curved", "wrong", "to_gap", "to_dual"]
# A sum of 6,000 terms may be off by this share of their sizes.
SUMMED = 6000 * Fraction(1, 2**53)


def table(**found):
    return pair_certificates(np.array([[found.get(name, 0.0) for name in NAMES]]), True, "optimality")


@pytest.mark.parametrize(
    ("found", "primal", "dual"),
    [
        ({"energy": 2.0}, 1 + SUMMED, -1 - SUMMED),
        ({"losses": 3.0}, 3 + 3 * SUMMED, 0),
        ({"gain": 4.0}, 0, 4 - 4 * SUMMED),
        ({"curved": 2.0}, 0, -1 - SUMMED),
        ({"wrong": 2.0}, 1 + SUMMED, -1 - SUMMED),
        ({"gain": 1.0, "b": 2.0**20}, 2**20 * SUMMED, 1),  # |u| is about |b| where nothing is lost, and energy cancels
        ({"to_dual": 0.25}, 0, -0.25),
    ],
)
def test_values(found, primal, dual):
    made = table(**found)
    assert Fraction(made.primal[0]) >= primal
    assert Fraction(made.dual[0]) <= dual


def test_gap_and_violation():
    assert table(shares=0.5, to_gap=0.25).gap[0] >= 0.75
    assert table(top=1.0, bottom=0.5, to_gap=np.inf).violation[0] == np.inf


def test_values_that_are_added_and_totals():
    """1 is lost beside 2⁵³ in each of these."""
    big = 2.0**53
    made = table(losses=big, energy=2.0)
    assert Fraction(made.primal[0]) >= 2**53 + 1
    values = np.array([big, *[1.0] * 99])
    many = CertificateTable(
        values.copy(), -values, 3 * values, np.zeros(100), kkt_residuals(*np.zeros((4, 100))), "optimality",
        np.zeros(100, dtype=np.intp), np.zeros((100, 0)),
    )  # fmt: skip
    total = many.total()
    true = sum(map(Fraction, values.tolist()))
    assert Fraction(total.primal) >= true
    assert Fraction(total.dual) <= -true
    assert Fraction(total.gap) >= 3 * true
