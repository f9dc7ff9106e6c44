"""Codes of targets, which decide what merges."""

import numpy as np

from mercer import SVR
from mercer.samples.checks import numbers, target_codes


def test_codes_are_equal_exactly_where_targets_are():
    y = numbers([0.0, -0.0, 1.0, -1.0, 1.0, np.nextafter(1.0, 2.0), 5e-324, -1e308])
    codes = target_codes(y)
    assert ((codes[:, None] == codes) == (y[:, None] == y)).all()


def test_equal_samples_with_equal_targets_merge_whatever_the_sign_of_zero():
    X, y = np.array([[0.0], [0.0], [1.0], [1.0], [2.0]]), np.array([0.0, -0.0, -1.0, 1.0, 0.5])
    twice, heavy = SVR(C=3.0).fit(X, y), SVR(C=3.0).fit(X[1:], y[1:], [2.0, 1.0, 1.0, 1.0])
    assert twice.certificate_ == heavy.certificate_
    back = SVR(C=3.0).fit(X[::-1], y[::-1])
    assert np.array_equal(twice.predict(X), heavy.predict(X))
    assert np.array_equal(twice.predict(X), back.predict(X))
