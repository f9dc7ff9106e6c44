"""The certificate against naive loops, at points nobody solved for."""

from fractions import Fraction

import numpy as np
import pytest

from mercer.certificates.dual import certify
from mercer.gram import gram_for
from mercer.kernels import Precomputed
from reference.certificate import certificate
from reference.problems import (
    machine_problem,
    machines,
)


@pytest.mark.parametrize("maker", machines())
def test_certificate_far_from_the_optimum(maker):
    """At a point nobody solved for, every number of the certificate equals the naive loops'."""
    problem, K = machine_problem(maker, seed=7, n=30)
    rng = np.random.default_rng(0)
    beta = np.clip(rng.normal(size=len(problem.p)), problem.lower, problem.upper)
    own, _ = certify(problem, gram_for(Precomputed(), K), beta)
    truth = certificate(problem, K, beta)
    for name in ("primal", "dual", "gap", "violation"):
        assert getattr(own, name) == pytest.approx(getattr(truth, name), rel=1e-9, abs=1e-9), name
    assert own.gap > 0
    assert own.violation > 0
    assert set(own.kkt) == set(truth.kkt)
    for name, residual in truth.kkt.items():
        assert own.kkt[name] == pytest.approx(residual, rel=1e-9, abs=1e-9), name


def test_rounding_is_bounded_where_the_diagonal_is_small():
    """The values of an indefinite matrix may be far above those on its diagonal."""
    rng = np.random.default_rng(0)
    K = rng.normal(size=(40, 40)) * 1e9
    K = K + K.T
    np.fill_diagonal(K, 1e-3)
    beta = rng.normal(size=40)
    u, e = gram_for(Precomputed(), K).product_bound(beta)
    exact = [sum(Fraction(k) * Fraction(b) for k, b in zip(row, beta, strict=True)) for row in K]
    assert all(abs(Fraction(a) - t) <= Fraction(b) for a, b, t in zip(u, e, exact, strict=True))
