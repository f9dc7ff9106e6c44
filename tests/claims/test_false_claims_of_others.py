"""Attempts to prove a certificate false that `mercer.certify` gives to a model of scikit-learn's."""

from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

import mercer
from claims.false_claims import REFUSED, Problem, setting
from claims.foreign_claims import CHECKS, KERNELS
from reference.cancelling_data import FAMILIES
from reference.decimals import hundred_digits

_THOROUGH = settings().max_examples > 500  # the profile that tests/conftest.py has loaded

if _THOROUGH:
    pytestmark = [pytest.mark.thorough, pytest.mark.timeout(1800)]


@st.composite
def problems(draw, machine):
    classifier = machine in ("SVC", "LinearSVC")
    # LIBLINEAR's own Newton steps never end on some samples of 1e9 and 1e-9 beside each other.
    families = [one for one in FAMILIES if machine != "LinearSVC" or one != "huge or tiny"]
    return Problem(
        machine=machine,
        options=draw(st.sampled_from(CHECKS[machine][1])),
        kernel="linear" if machine == "LinearSVC" else draw(st.sampled_from(KERNELS)),
        family=draw(st.sampled_from(families)),
        n=draw(st.integers(10, 30)),
        d=draw(st.integers(1, 5)),
        exponent=float(draw(st.integers(0, 15))),
        seed=draw(st.integers(0, 10**6)),
        C=10.0 ** draw(st.integers(-4, 6)),
        tol=10.0 ** draw(st.integers(-8, -1)),
        gamma=10.0 ** draw(st.integers(-2, 1)),
        size=draw(st.sampled_from([1.0, 1e-6, 1e-3, 1e3, 1e6])),
        n_classes=draw(st.integers(2, 4 if classifier else 2)),
        weights=draw(st.sampled_from([None, "mild", "wide"])),
        dtype=draw(st.sampled_from(["f8", "f4"])),
        csr=draw(st.booleans()),
    )


def broken(problem):
    """Every claim that is not true."""
    with hundred_digits():
        return CHECKS[problem.machine][0](setting(problem))


@pytest.mark.parametrize("machine", CHECKS)
def test_no_claim_is_false(machine):
    @seed(0)
    @settings(
        max_examples=100 if _THOROUGH else 25,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(problem=problems(machine))
    def attempt(problem):
        before = len(REFUSED)
        assert not broken(problem)
        tried.append(len(REFUSED) == before)

    tried = []
    attempt()
    assert sum(tried) >= len(tried) / 3, "most problems were refused, so this shows little"


@pytest.mark.parametrize("machine", CHECKS)
@pytest.mark.parametrize(
    ("name", "word", "forge"),
    [
        ("primal", "primal", lambda proof: proof.primal - 1e-6 * abs(proof.primal)),
        ("dual", "dual above a point", lambda proof: proof.primal + 1e-6 * abs(proof.primal)),
        ("gap", "printed", lambda proof: 0.5 * (proof.primal - proof.dual)),
        ("gap", "NaN", lambda proof: np.nan),
    ],
)
def test_a_forged_number_is_noticed(machine, name, word, forge):
    kernel = "linear" if machine == "LinearSVC" else "gaussian"
    problem = Problem(machine, CHECKS[machine][1][-1], kernel=kernel, n=20, tol=0.1)
    assert not broken(problem)
    certify = mercer.certify

    def forged(*args, **options):
        proof = certify(*args, **options)
        lie = SimpleNamespace(**vars(proof), proves=proof.proves)  # a Certificate would repair itself
        setattr(lie, name, forge(proof))
        return lie

    with patch.object(mercer, "certify", forged):
        assert any(word in line for line in broken(problem))
