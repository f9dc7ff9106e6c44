"""A table of certificates claims no more than its rows would one by one."""

import math

import numpy as np

from mercer.certificates.certificate import kkt_residuals
from mercer.certificates.table import CertificateTable

NAN, INF = math.nan, math.inf


def column(*values):
    return np.array(values)


def test_what_overflow_left_undefined_claims_nothing():
    table = CertificateTable(
        primal=column(NAN, 3.0, INF, 3.0),
        dual=column(2.0, NAN, 1.0, 1.0),
        gap=column(0.5, 0.5, NAN, 0.5),
        violation=column(0.0, 0.0, 0.0, NAN),
        kkt=kkt_residuals(column(NAN, 0.0, 0.0, 0.0), *(np.zeros(4) for _ in range(3))),
        gap_measures="optimality",
        worst=np.zeros(4, dtype=np.intp),
        b=np.zeros((4, 1)),
    )
    np.testing.assert_array_equal(table.primal, [INF, 3.0, INF, 3.0])
    np.testing.assert_array_equal(table.dual, [2.0, -INF, 1.0, 1.0])
    np.testing.assert_array_equal(table.gap, [INF, INF, INF, 2.0])
    np.testing.assert_array_equal(table.violation, [0.0, 0.0, 0.0, INF])
    np.testing.assert_array_equal(table.kkt["dual feasibility: box"], [INF, 0.0, 0.0, 0.0])
