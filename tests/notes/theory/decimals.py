"""Formulas in 40 digits, for the tests of this folder."""

from decimal import Decimal, getcontext

import pytest

getcontext().prec = 40


def ln(x):
    return Decimal(x).ln()


def near(value, expected, rel=1e-12):
    assert value == pytest.approx(float(expected), rel=rel)
