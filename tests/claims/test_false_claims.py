"""Attempts to prove a certificate false: data that cancel, every machine, kernel and engine, in a hundred digits.

470 problems by default, 20,000 with `-m thorough`, which also shrinks what it finds. A problem that was found is added
to FOUND, so that it is tried for ever.
"""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

import mercer.estimators
from claims import dual_claims, rival_claims
from claims.false_claims import ENGINES, KERNELS, REFUSED, Problem, computed_by, setting
from claims.found_claims import FOUND
from mercer import SVDD, SVR
from reference.cancelling_data import FAMILIES
from reference.decimals import hundred_digits
from reference.given_matrices import MATRICES

CHECKS = {**dual_claims.CHECKS, **rival_claims.CHECKS}
LINEAR = ("LinearSVC", "LinearSVR")  # have no kernel
_NO_KERNEL = [(machine, "blocks") for machine in LINEAR]
OF_SAMPLES = ("NystromRLS", "NystromRLSClassifier", "PegasosSVC")  # are read through their vectors

_THOROUGH = settings().max_examples > 500  # the profile that tests/conftest.py has loaded
_SHARDS = 10 if _THOROUGH else 1
# 20 machines, of which two have no kernel: (20 + 18 + 20) · 10 · 35 = 20,300 problems, or 20 · 16 + (18 + 20) · 4.
_EXAMPLES = dict.fromkeys(ENGINES, 35) if _THOROUGH else {"core": 16, "blocks": 4, "opaque": 4, "chunks": 4}
CELLS = [(machine, engine) for engine in ENGINES for machine in CHECKS if (machine, engine) not in _NO_KERNEL]


if _THOROUGH:
    pytestmark = [pytest.mark.thorough, pytest.mark.timeout(1800)]


# Certified machines whose claims are attacked elsewhere: a problem over kernels, and one over pairs of samples.
ATTACKED_ELSEWHERE = {
    "MKLClassifier": "tests/estimators/test_mkl.py",
    "MKLRegressor": "tests/estimators/test_mkl.py",
    "RankSVM": "tests/estimators/test_rank_svm.py",
}


def test_every_certified_machine_is_attacked():
    missing = set(mercer.estimators.__all__) - set(CHECKS) - set(ATTACKED_ELSEWHERE)
    assert not missing, f"{sorted(missing)} need an entry in CHECKS of tests/claims/dual_claims.py"


def powers(low, high):
    return st.integers(low, high).map(lambda k: 10.0**k)


@st.composite
def problems(draw, machine, engine, known=tuple(KERNELS)):
    classifier = ("SV" in machine or "Classifier" in machine) and machine != "hard SVC"  # which is read for two classes
    precomputed = draw(st.integers(0, 4)) == 0 and machine not in (*LINEAR, *OF_SAMPLES)
    kernel = "linear" if machine in LINEAR else "precomputed" if precomputed else draw(st.sampled_from(known))
    return Problem(
        machine=machine,
        options=draw(st.sampled_from(CHECKS[machine][1])),
        kernel=kernel,
        family=draw(st.sampled_from(FAMILIES)),
        n=draw(st.integers(10, 60 if _THOROUGH else 30)),
        d=draw(st.integers(1, 5)),
        exponent=float(draw(st.integers(0, 15))),
        seed=draw(st.integers(0, 10**6)),
        C=draw(powers(-4, 6)),
        tol=draw(powers(-8, -1)),
        gamma=draw(powers(-2, 1)),
        size=draw(st.sampled_from([1.0, 1e-6, 1e-3, 1e3, 1e6])),
        n_classes=draw(st.integers(3, 4)) if machine == "joint SVC" else draw(st.integers(2, 4 if classifier else 2)),
        weights=draw(st.sampled_from([None, "mild", "wide", "repetitions"])),
        dtype=draw(st.sampled_from(MATRICES if precomputed else ["f8", "f4"])),
        csr=not precomputed and draw(st.booleans()),
        engine=engine,
    )


def broken(problem):
    """Every claim that is not true."""
    with hundred_digits(), computed_by(problem.engine):
        return CHECKS[problem.machine][0](setting(problem))


@pytest.mark.parametrize("shard", range(_SHARDS))
@pytest.mark.parametrize(("machine", "engine"), CELLS)
def test_no_claim_is_false(machine, engine, shard):
    @seed(len(ENGINES) * shard + ENGINES.index(engine))
    @settings(max_examples=_EXAMPLES[engine], deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(problem=problems(machine, engine))
    def attempt(problem):
        before = len(REFUSED)
        assert not broken(problem)
        tried.append(len(REFUSED) == before)

    tried = []
    attempt()
    assert sum(tried) >= len(tried) / 3, "most problems were refused, so this shows little"


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found_once(name):
    before = len(REFUSED)
    assert not broken(FOUND[name])
    assert len(REFUSED) == before


@pytest.mark.parametrize("unit", [0.03, 0.01, 0.001])
def test_a_change_of_units_changes_nothing_else(unit):
    """Tolerances were absolute once: with small numbers, nonsense was within them."""
    X = np.random.default_rng(0).normal(size=(100, 3)) + np.array([5.0, 0.0, 0.0])
    ball, small = (SVDD(nu=0.1, kernel="linear").fit(X * scale) for scale in (1.0, unit))
    assert small.radius_ / unit == pytest.approx(ball.radius_, rel=0.01)
    assert SVR(epsilon=0, kernel="linear", C=1e3).fit(X, 1e-3 * unit * X[:, 0]).score(X, 1e-3 * unit * X[:, 0]) > 0.99
