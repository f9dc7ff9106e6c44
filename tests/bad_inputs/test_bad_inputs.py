"""Every bad or odd input of the tables beside this file, given to every estimator that it concerns."""

import pytest

from bad_inputs import kernels, parameters, samples, sparse_samples, streams, targets, weights
from bad_inputs.judge import judge, parametrised

TABLES = (samples, sparse_samples, targets, weights, parameters, kernels, streams)
CASES = [case for table in TABLES for case in table.CASES]

# Numbers of the first list that no table holds.
ELSEWHERE = {
    39: "regression, which the list was not about",
    40: "regression, which the list was not about",
    55: "torch is no test dependency; tensors belong to the part that adds devices",
    56: "test_too_large.py",
    62: "2**31 stored values do not fit the machines these tests run on",
    65: "test_too_large.py",
    70: "nu, which the list was not about",
    71: "epsilon, which the list was not about",
}


@pytest.mark.parametrize("case", parametrised(CASES))
def test_bad_input(case):
    judge(case)


def test_every_case_is_in_a_table_or_says_why_not():
    numbers = {case.number for case in CASES} - {None}
    assert numbers | ELSEWHERE.keys() == set(range(1, 91))
    assert not numbers & ELSEWHERE.keys()
