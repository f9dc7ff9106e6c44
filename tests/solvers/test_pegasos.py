"""Pegasos against the algorithm as printed, in both forms, and the draws it is given."""

import time
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from mercer import _core
from mercer.kernels import Gaussian, Linear
from mercer.places import gram_for
from mercer.places.ball import Ball
from mercer.problems.pegasos import PegasosProblem
from mercer.solvers.pegasos.descent import KernelSpace, LinearSpace, StepOptions, run_steps, solve_pegasos
from mercer.solvers.pegasos.iterates import Iterates, draw_pass, draw_with_replacement
from mercer.solvers.solution import Stop
from reference import pegasos as printed
from reference.pegasos import noisy

LAM = 0.03


def steps(space, y, draws, lam=LAM, project=False, cuts=()):
    iterates = Iterates.zero(1, space.size)
    counts = np.zeros((1, space.n), dtype=np.int64)
    for part in np.split(np.asarray(draws), cuts):
        run_steps(space, y[None, :], part, StepOptions(iterates, lam, project, counts), np.inf)
    return iterates, counts[0]


@pytest.mark.parametrize("average", ["all", "suffix", "last"])
@pytest.mark.parametrize("project", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("form", [np.asarray, np.float32, sp.csr_array, "int64 csr"])
def test_the_linear_form_makes_the_printed_steps(form, bias, project, average):
    X, y = noisy()
    X = X.astype(np.float32).astype(np.float64)
    draws = np.random.default_rng(1).integers(len(X), size=3001)
    if form == "int64 csr":
        given = sp.csr_array(X)
        given.indices, given.indptr = given.indices.astype(np.int64), given.indptr.astype(np.int64)
    else:
        given = form(X)
    iterates, counts = steps(LinearSpace(given, bias=bias), y, draws, project=project, cuts=(17, 1000))
    plain = np.c_[X, np.ones(len(X))] if bias else X
    expected, violations = printed.linear(plain, y, LAM, draws, project)
    np.testing.assert_allclose(iterates.output(LAM, average)[0], printed.output(expected, average), rtol=1e-10)
    np.testing.assert_array_equal(counts, violations)


@pytest.mark.parametrize("budget", [10**9, 5000])
@pytest.mark.parametrize("average", ["all", "suffix", "last"])
def test_the_kernel_form_makes_the_printed_steps(average, budget):
    """Also where only ten rows of K fit into memory at once."""
    X, y = noisy()
    kernel = Gaussian(gamma=0.2)
    draws = np.random.default_rng(1).integers(len(X), size=2000)
    iterates, _ = steps(KernelSpace(gram_for(kernel, X, budget), bias=False), y, draws, cuts=(100,))
    expected = printed.with_kernel(kernel(X), y, LAM, draws)
    np.testing.assert_allclose(iterates.output(LAM, average)[0], printed.output(expected, average), rtol=1e-10)


@pytest.mark.parametrize("project", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_the_kernel_form_with_the_linear_kernel_is_the_linear_form(bias, project):
    X, y = noisy()
    draws = np.random.default_rng(2).integers(len(X), size=4000)
    linear, counts = steps(LinearSpace(X, bias=bias), y, draws, project=project)
    dual, dual_counts = steps(KernelSpace(gram_for(Linear(), X), bias=bias), y, draws, project=project)
    np.testing.assert_array_equal(counts, dual_counts)
    for average in ("all", "suffix", "last"):
        alpha = dual.output(LAM, average)[0]
        w = np.r_[X.T @ alpha, alpha.sum()] if bias else X.T @ alpha
        np.testing.assert_allclose(linear.output(LAM, average)[0], w, rtol=1e-9)
    assert dual.norm2[0] == pytest.approx(linear.theta[0] @ linear.theta[0], rel=1e-9)


def test_projected_iterates_stay_in_their_ball():
    X, y = noisy()
    draws = np.random.default_rng(2).integers(len(X), size=300)
    longest = 0.0
    for T in (1, 2, 3, 10, 299):
        iterates, _ = steps(LinearSpace(X, bias=False), y, draws[:T], lam=1e-3, project=True)
        longest = max(longest, np.linalg.norm(iterates.output(1e-3, "last")))
    assert longest == pytest.approx(1 / np.sqrt(1e-3), rel=1e-9)  # reached, never exceeded
    free, _ = steps(LinearSpace(X, bias=False), y, draws[:3], lam=1e-3)
    assert np.linalg.norm(free.output(1e-3, "last")) > 100


def test_lazy_sums_do_not_drift_over_many_steps():
    """Ten million steps in one piece and in many: the same machine, and the same as plain sums say."""
    X, y = noisy(20, 3)
    T = 10_000_000
    draws = draw_with_replacement(5, np.arange(1.0, 21.0), 0, T)
    for project in (False, True):
        one, counts = steps(LinearSpace(X, bias=True), y, draws, lam=1e-3, project=project)
        many, _ = steps(LinearSpace(X, bias=True), y, draws, lam=1e-3, project=project, cuts=range(0, T, 300_007))
        for average in ("all", "suffix", "last"):
            np.testing.assert_allclose(one.output(1e-3, average), many.output(1e-3, average), rtol=1e-9)
        if not project:
            np.testing.assert_allclose(one.theta[0], np.c_[X, np.ones(20)].T @ (y * counts), rtol=1e-9)


@pytest.mark.parametrize(
    "weight", [np.ones(7), np.array([1e-9, 3.0, 1e9, 0.5, 2.0]), np.random.default_rng(0).random(400)]
)
def test_draws_invert_the_cumulative_weights(weight):
    cumulative = np.cumsum(weight)
    uniform = (_core.random_bits(11, 0, 0, 5000) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    expected = np.searchsorted(cumulative, uniform * cumulative[-1], side="right")
    np.testing.assert_array_equal(_core.draw_rows(11, 0, 0, 5000, cumulative), expected)
    np.testing.assert_array_equal(_core.draw_rows(11, 0, 1234, 100, cumulative), expected[1234:1334])


def test_the_generator_is_the_same_everywhere_and_looks_uniform():
    assert _core.random_bits(1, 2, 3, 2).tolist() == [0x8E1E6EACAA45F47F, 0x716D1413A629E76B]
    u = _core.random_bits(0, 0, 0, 200_000).astype(np.float64) / 2.0**64
    counts = np.bincount((u * 50).astype(int), minlength=50)
    assert ((counts - 4000) ** 2 / 4000).sum() < 100  # chi squared with 49 degrees of freedom
    assert abs(np.corrcoef(u[:-1], u[1:])[0, 1]) < 0.01
    other = _core.random_bits(0, 1, 0, 200_000).astype(np.float64)
    assert abs(np.corrcoef(u, other)[0, 1]) < 0.01


def test_a_pass_visits_every_row_as_often_as_its_weight():
    weight = np.array([1.0, 3.0, 0.5, 2.0, 0.25])
    visits = np.array([np.bincount(draw_pass(3, k, weight), minlength=5) for k in range(400)])
    assert (visits[:, [0, 1, 3]].max(axis=0) <= [2, 4, 3]).all()
    np.testing.assert_allclose(visits.mean(axis=0), weight, atol=0.1)
    whole = np.bincount(draw_pass(3, 0, np.array([2.0, 1.0, 5.0])), minlength=3)
    assert whole.tolist() == [2, 1, 5]
    assert draw_pass(3, 0, np.ones(50)).tolist() != draw_pass(3, 1, np.ones(50)).tolist()


# --- the contract of solvers: limits, starts, reports ----------------------------------------------------------------


def spaces(X):
    return [LinearSpace(X, bias=True), KernelSpace(gram_for(Gaussian(gamma=0.2), X), bias=True)]


class Abandoned(Exception):
    pass


@pytest.mark.parametrize("form", [0, 1], ids=["linear", "kernel"])
def test_limits_end_the_descent_and_its_proof_is_true(form):
    X, y = noisy()
    problem = PegasosProblem(y[None, :], np.ones(len(y)), LAM)
    best = solve_pegasos(problem, spaces(X)[form], Stop(1e-3, 3000), seed=0, epochs=3000, dual_from_violations=True)[1]
    cases = {
        "all steps": [Stop(1e-3, 0), Stop(1e-3, 2)],
        "max_time": [Stop(1e-3, 10, deadline=time.monotonic())],
    }
    for reason, stops in cases.items():
        for stop in stops:
            outcome, certificate = solve_pegasos(problem, spaces(X)[form], stop, seed=0)
            assert outcome.stop_reason == reason
            assert outcome.steps == (0 if reason == "max_time" else stop.max_iter * len(y))
            assert certificate.dual <= best.primal
            assert certificate.primal >= best.dual
            assert certificate.gap == pytest.approx(certificate.primal - certificate.dual)


@pytest.mark.parametrize("form", [0, 1], ids=["linear", "kernel"])
def test_descent_goes_on_from_earlier_iterates(form):
    X, y = noisy()
    problem, stop = PegasosProblem(np.stack([y, -y]), np.ones(len(y)), LAM), Stop(1e-3, 10)
    at_once, _ = solve_pegasos(problem, spaces(X)[form], stop, seed=3, epochs=5)
    half, _ = solve_pegasos(problem, spaces(X)[form], stop, seed=3, epochs=2)
    before = half.iterates.theta.copy()
    whole, _ = solve_pegasos(problem, spaces(X)[form], stop, half.iterates, seed=3, epochs=3)
    np.testing.assert_array_equal(half.iterates.theta, before)  # a start is only read
    np.testing.assert_allclose(whole.w, at_once.w, rtol=1e-9, atol=1e-12)


def test_a_progress_callback_can_abandon_the_descent_and_changes_nothing():
    X, y = noisy(200)
    problem, stop = PegasosProblem(y[None, :], np.ones(len(y)), LAM), Stop(1e-3, 100)
    silent, _ = solve_pegasos(problem, LinearSpace(X, bias=True), stop, seed=0, epochs=100)
    lines = []
    listened = replace(stop, report=lambda words, _: lines.append(words()))
    reported, _ = solve_pegasos(problem, LinearSpace(X, bias=True), listened, seed=0)
    np.testing.assert_array_equal(reported.w, silent.w)
    assert lines == ["epoch     50        10,000 steps", "epoch    100        20,000 steps"]

    def abandon(words, _):
        raise Abandoned

    with pytest.raises(Abandoned):
        solve_pegasos(problem, LinearSpace(X, bias=True), replace(stop, report=abandon), seed=0)


def test_the_bound_of_a_row_counts_its_own_entries():
    """One row of many entries among short ones: its sum loses one term after another."""
    long = np.full(800, np.sqrt(0.499 * np.finfo(float).eps))
    long[0] = 1.0
    X = sp.csr_array(np.vstack([long, np.eye(1, 800).repeat(400, axis=0)]))
    space = LinearSpace(X, bias=False)
    f, error = space.outputs_bound(Ball(long, np.zeros(800)))
    true = sum(Fraction(x) ** 2 for x in long.tolist())
    assert abs(Fraction(f[0]) - true) <= Fraction(error[0])
