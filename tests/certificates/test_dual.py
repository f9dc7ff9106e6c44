"""The certificate against naive loops, at points nobody solved for."""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from mercer import SVC
from mercer.certificates.dual import LastSums, certify_dual, certify_several
from mercer.kernels import Gaussian, Precomputed
from mercer.places import gram_for
from mercer.places.ball import Ball
from mercer.problems.classification import soft_margin
from mercer.solvers.dual.certified import solve_certified
from mercer.solvers.solution import Stop
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
    beta = problem.nearest_feasible(rng.normal(size=len(problem.p)))
    own, _ = certify_dual(problem, gram_for(Precomputed(), K), beta)
    truth = certificate(problem, K, beta)
    for name in ("primal", "dual", "gap", "violation"):
        assert getattr(own, name) == pytest.approx(getattr(truth, name), rel=1e-9, abs=1e-9), name
    assert own.gap > 0
    assert own.violation > 0
    assert set(own.kkt) == set(truth.kkt)
    for name, residual in truth.kkt.items():
        assert own.kkt[name] == pytest.approx(residual, rel=1e-9, abs=1e-9), name


@pytest.mark.parametrize("maker", machines())
@pytest.mark.parametrize("off", [0.0, 1e-13, 1e-4, 0.3, 5.0])
def test_a_sum_that_is_off_claims_no_more_than_the_optimum(maker, off):
    """Whatever a sum misses: no dual value above that of a feasible point nearby, no gap below the true one."""
    problem, K = machine_problem(maker, seed=7, n=30)
    best, proof = solve_certified(problem, gram_for(Precomputed(), K), Stop(tol=1e-10, max_iter=10**6))
    rng = np.random.default_rng(0)
    for _ in range(10):
        beta = np.clip(best.beta + off * rng.random() * rng.normal(size=len(problem.p)), problem.lower, problem.upper)
        own, _ = certify_dual(problem, gram_for(Precomputed(), K), beta)
        truth = certificate(problem, K, beta)
        rounding = 1e-12 * (1 + abs(proof.primal))
        assert own.dual <= proof.primal + rounding
        assert own.gap >= truth.primal - proof.primal - rounding
        assert own.primal >= truth.primal - rounding
        if off <= 1e-13:  # what is missing costs next to nothing
            assert own.gap <= truth.gap + 1e-7 * (1 + abs(proof.primal))


def test_a_sum_that_is_off_may_have_the_larger_dual_value():
    """With any b but the optimal one, |b|·|Σβ| would let an infeasible point claim more than the optimum."""
    x = np.array([-0.4, 0.6, 0.8, -0.3, -0.3, 0.7, 0.0, -1.4, 1.3, 0.5])
    y = np.array([1.0, -1, 1, 1, 1, 1, 1, 1, -1, 1])
    K, problem = np.exp(-((x[:, None] - x) ** 2)), soft_margin(y, np.full(10, 1e4))
    best, proof = solve_certified(problem, gram_for(Precomputed(), K), Stop(tol=1e-9, max_iter=10**6))
    claims = 0
    for i in range(10):
        for step in np.geomspace(1e-3, 1e3, 25):
            beta = best.beta.copy()
            beta[i] = np.clip(beta[i] + step * y[i], problem.lower[i], problem.upper[i])
            truth = certificate(problem, K, beta)
            claims += truth.dual - abs(truth.b[0] * beta.sum()) > proof.primal * (1 + 1e-9)
            own, _ = certify_dual(problem, gram_for(Precomputed(), K), beta)
            assert own.dual <= proof.primal
            assert own.gap >= (truth.primal - proof.primal) * (1 - 1e-9)
    assert claims > 0


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


@pytest.mark.parametrize("n", [300, 4200])  # float64 throughout, and float32 where that is enough
def test_a_certificate_that_goes_on_from_the_last_one_is_a_bound_too(n):
    rng, kernel = np.random.default_rng(0), Gaussian(0.3)
    X, y = rng.normal(size=(n, 4)), np.resize([1.0, -1.0], n)
    problem, gram, last = soft_margin(y, np.full(n, 100.0)), gram_for(kernel, X), LastSums()
    beta = np.zeros(n)
    beta[:100] = rng.uniform(0, 100, size=100) * y[:100]
    _, u = certify_dual(problem, gram, beta, 1e-3, last)
    afresh, before = gram.evaluations, u.copy()
    beta[:10] = rng.uniform(0, 100, size=10) * y[:10]
    beta[10:12] = 0.0
    true = kernel(X, X[:100]) @ beta[:100]
    (moved, e), _ = last.moved_to(beta, gram)
    assert (np.abs(moved - true) <= e).all()
    assert (e < 1e-2).all()
    spent = gram.evaluations
    proof, u = certify_dual(problem, gram, beta, 1e-3, last)
    assert "12 changed coefficients" in proof.precision
    assert gram.evaluations - spent < afresh / 2
    assert np.abs(u - before).max() > 1
    h = problem.p - true
    assert problem.violation(beta, h) <= proof.violation < 1.001 * problem.violation(beta, h)
    beta[:90] *= 0.5
    assert "changed" not in certify_dual(problem, gram, beta, 1e-3, last)[0].precision


def test_rounding_of_rows_with_a_coefficient_does_not_widen_the_gap():
    """Terms of 1e12 cancel in rows far beyond the margin: nothing is undecided there, but β'Kβ has their errors."""
    rng = np.random.default_rng(51)
    X, y = rng.normal(size=(22, 4)) * [1e5, 1.0, 1e-5, 1e-5], np.resize([1.0, -1.0], 22)
    model = SVC(C=11.7, kernel="linear", tol=1e-4).fit(X, y)
    assert model.converged_
    assert model.certificate_.gap <= 1e-4 * 11.7 * 22


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("C", [1.0, 1e6])
def test_certificates_of_several_problems_claim_no_more_than_extended_precision(sparse, C):
    rng = np.random.default_rng(4)
    n, gamma, folds = 700, 0.25, 7
    X = rng.normal(size=(n, 30)) * (rng.random((n, 30)) < 0.2)
    y = np.where(X[:, 0] * X[:, 1] + 0.2 * rng.normal(size=n) > 0, 1.0, -1.0)
    gram = gram_for(Gaussian(gamma), sp.csr_array(X) if sparse else X)
    K = np.exp(-np.longdouble(gamma) * ((X.astype(np.longdouble)[:, None] - X) ** 2).sum(axis=2))
    problems, betas = [], []
    for k in range(folds):
        problem = soft_margin(y, np.where(np.arange(n) % folds == k, 0.0, C))
        # Multiples of a power of two, whose sum is exactly 0.
        beta = np.where(rng.random(n) < 0.3, y * problem.upper.max() * rng.integers(0, 1025, size=n) / 1024, 0.0)
        beta = np.clip(beta, problem.lower, problem.upper)
        for i in np.flatnonzero(beta * beta.sum() > 0):
            beta[i] -= np.sign(beta[i]) * min(abs(beta[i]), abs(beta.sum())) if beta[i] * beta.sum() > 0 else 0.0
        assert beta.sum() == 0
        problems.append(problem)
        betas.append(beta)
    proofs = certify_several(problems, gram, betas, 1e-3)
    assert len(proofs) == folds
    for problem, beta, (proof, u) in zip(problems, betas, proofs, strict=True):
        exact_u = K @ beta
        np.testing.assert_allclose(u, exact_u.astype(float), rtol=0, atol=1e-11 * np.abs(beta).sum())
        h = problem.p - exact_u
        r = h - np.longdouble(proof.b[0])
        energy = beta @ exact_u
        primal = energy / 2 + np.maximum(r * problem.lower, r * problem.upper).sum()
        dual = problem.p @ beta.astype(np.longdouble) - energy / 2
        violation = h[beta < problem.upper].max() - h[beta > problem.lower].min()
        assert proof.primal >= primal
        assert proof.dual <= dual
        assert proof.gap >= primal - dual
        assert proof.violation >= violation
        alone, _ = certify_dual(problem, gram, beta, 1e-3)
        for name in ("primal", "dual", "gap", "violation"):
            assert getattr(proof, name) == pytest.approx(getattr(alone, name), rel=1e-9), name


def test_errors_of_shared_sums_enter_every_certificate():
    """Sums that may be off by 1e-3 leave each end of the violation uncertain by as much, as for a single problem."""
    problem, K = machine_problem(machines()[0].values[0], seed=3, n=30)
    gram = gram_for(Precomputed(), K)
    rng = np.random.default_rng(0)
    betas = [problem.nearest_feasible(rng.normal(size=len(problem.p))) for _ in range(3)]

    def uncertain(coefficients, rows=None, level=np.float64):
        u, error = gram.product_bound(coefficients, rows, level)
        return Ball(u, error + 1e-3)

    facts = {name: getattr(gram, name) for name in ("n", "entry_bounds", "positive_definite")}
    off = SimpleNamespace(**facts, levels=(np.float64,), product_bound=uncertain)
    sure, unsure = (certify_several([problem] * 3, grams, betas) for grams in (gram, off))
    for beta, (plain, _), (wide, _) in zip(betas, sure, unsure, strict=True):
        assert wide.violation >= plain.violation + 1.9e-3
        assert wide.gap > plain.gap
        alone, _ = certify_dual(problem, off, beta)
        for name in ("primal", "dual", "gap", "violation"):
            assert getattr(wide, name) == pytest.approx(getattr(alone, name), rel=1e-9), name
