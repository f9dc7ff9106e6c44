"""The certificate as a value: totals of several, and what they may claim."""

from dataclasses import replace

from mercer import Certificate

ONE = Certificate(primal=2.0, dual=1.5, gap=0.5, violation=0.1, kkt={"x": 0.1}, proves="optimality")


def test_a_total_claims_no_more_than_its_weakest_part():
    single = "float32 with float64 sums, 306 rows in float64"
    parts = [ONE, replace(ONE, precision=single, violation=0.3), replace(ONE, proves="stationarity", gap=0.7)]
    total = Certificate.total(parts)
    assert total.precision == single
    assert total.proves == "stationarity"
    assert total.violation == 0.3
    assert total.gap == 1.7
    assert Certificate.total([ONE, ONE]).precision == "float64"
