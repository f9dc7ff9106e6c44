"""Estimates of the leave-one-out error against the error itself."""

from dataclasses import replace

import numpy as np
import pytest
import sklearn.svm
from sklearn.metrics import precision_score, recall_score

from mercer import SVC, SVR, leave_one_out
from mercer.kernels import Gaussian
from mercer.model_selection.paths import estimates, radius_margin, span_bound, span_estimate, xi_alpha
from mercer.model_selection.paths.estimates import ball_square
from mercer.model_selection.paths.exact_solution import exact_solutions
from mercer.solvers.homotopy import FREE, path_at
from reference.path_problems import random_problem


def check(seed):
    X, y, weight, options, rng = random_problem(seed)
    model = SVC(C=10 ** rng.uniform(-1, 3), **options)
    exact = leave_one_out(model, X, y, weight)
    estimates = [xi_alpha(model, X, y, weight)]
    if options["bias"] is True:
        estimates.append(span_bound(model, X, y, weight))
    for one in estimates:
        assert one.proven == (options["bias"] is not True)
        assert not (exact.wrong & ~one.suspects & exact.unique).any()
        if one.proven or exact.unique.all():
            assert exact.error <= one.error + 1e-12
    by_radius = radius_margin(model, X, y, weight)
    if by_radius.proven:
        assert exact.error <= by_radius.error + 1e-12


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("seed", range(24))
def test_bounds_are_bounds(seed):
    check(seed)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("seed", range(24, 200))
def test_bounds_are_bounds_on_many_problems(seed):
    check(seed)


@pytest.mark.parametrize("last", [0.0, 1e-320, 1e-300])
def test_a_free_vector_may_have_no_weight(last, monkeypatch):
    """(−1, 0) and (1, 0) have α = ½. (1, 2) lies on the margin too, and whether it is called free is left to rounding;
    without it nothing changes, so it is no suspect."""
    X, y = np.array([[-1.0, 0.0], [1.0, 0.0], [1.0, 2.0]]), [0, 1, 1]
    model = SVC(kernel="linear", C=10.0)
    fit, (one,) = exact_solutions(model, X, y, None)
    signs, rows = one.problem.p, np.asarray(fit.merged.first)
    alpha = np.array([0.5, 0.5, last])[rows]
    homotopy = path_at(one.problem, one.K, np.full(3, FREE, dtype=np.int8), 1.0)
    one = replace(one, homotopy=homotopy, beta=signs * alpha, h=homotopy.gradient(1.0, signs * alpha))
    monkeypatch.setattr(estimates, "exact_solutions", lambda *_: (fit, [one]))
    assert not span_bound(model, X, y).suspects[2]
    assert not leave_one_out(model, X, y).wrong[2]


@pytest.mark.parametrize("bias", [True, False])
def test_leaving_a_heavy_sample_out_may_turn_the_majority(bias):
    """Classes of weight 4 and 6 on nearly the same x: without a sample of weight 3 of the second, the first wins."""
    rows, y, weight = np.array([[0.0], [0.1], [0.2], [0.3]]), np.array([0, 1, 1, 0]), np.array([3.0, 3.0, 3.0, 1.0])
    model = SVC(C=0.1, gamma=0.05, bias=bias, tol=1e-10)
    wrong = np.zeros(4, dtype=bool)
    for i in range(4):
        part = SVC(C=0.1, gamma=0.05, bias=bias, tol=1e-10).fit(
            np.delete(rows, i, 0), np.delete(y, i), sample_weight=np.delete(weight, i)
        )
        wrong[i] = part.predict(rows[[i]])[0] != y[i]
    assert wrong[[1, 2]].all()
    found = xi_alpha(model, rows, y, weight)
    assert not (wrong & ~found.suspects).any()
    assert found.error >= weight @ wrong / weight.sum()
    assert ("same C for all samples" in found.assumes) == bias
    assert "same C" not in xi_alpha(model, rows, y).assumes


def test_without_free_vectors_the_least_favourable_bias_counts():
    """Six samples of each class, all at C: b is not unique, and without any one of them the other class wins."""
    rows = (
        np.array([7, -12, 0, 13, 10, -6, 10, -10, 3, 8, 8, -10, -7, -15, -7, 9, -4, -17, -18, -5, -11, -7, -4, -5]) / 10
    )
    X, y = rows.reshape(12, 2), np.repeat([1, 0], 6)
    wrong = [
        sklearn.svm.SVC(C=0.01, gamma=3.0, tol=1e-10).fit(np.delete(X, i, 0), np.delete(y, i)).predict(X[[i]])[0]
        != y[i]
        for i in range(12)
    ]
    assert all(wrong)
    assert xi_alpha(SVC(C=0.01, gamma=3.0), X, y).error == 1.0


def two_clouds():
    rng = np.random.default_rng(3)
    y = np.repeat([0, 1], 40)
    return rng.normal(size=(80, 2)) + 1.2 * y[:, None], y


def test_span_is_exact_where_the_sets_stay():
    """One margin pair more or less does not move the others of a regular polygon's worth of support vectors."""
    X, y = two_clouds()
    model = SVC(C=1e4, gamma=5.0)
    exact, span = leave_one_out(model, X, y), span_estimate(model, X, y)
    assert abs(exact.error - span.error) <= 0.05
    assert not span.proven


@pytest.mark.parametrize("weighted", [False, True])
def test_recall_and_precision_are_those_of_labels_wrong_at_the_suspects(weighted):
    X, y = two_clouds()
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(X)) if weighted else None
    found = xi_alpha(SVC(C=1.0, gamma=0.2, bias=False), X, y, weight)
    labels = np.where(found.suspects, 1 - y, y)
    assert 0.1 < found.error < 0.9
    assert found.recall == pytest.approx(recall_score(y, labels, sample_weight=weight))
    assert found.precision == pytest.approx(precision_score(y, labels, sample_weight=weight))


@pytest.mark.parametrize("estimate", [xi_alpha, span_estimate, span_bound])
def test_suspects_do_not_depend_on_the_unit_of_the_kernel(estimate):
    """f is the same for k/s and Cs."""
    X, y = two_clouds()
    suspects = estimate(SVC(kernel=Gaussian(1.0), C=10.0), X, y).suspects
    assert 0 < suspects.sum() < len(X)
    for s in (2.0**-12, 2.0**12):
        np.testing.assert_array_equal(
            estimate(SVC(kernel=Gaussian(1.0) * (1 / s), C=10.0 * s), X, y).suspects, suspects
        )


def test_suspects_by_hand():
    """x = −1, 1, linear: α = ½, k(x, x') from −1 to 1, so that 2αR² = 2 ≥ 1 for both; without bias αk = ½ < 1."""
    X, y = np.array([[-1.0], [1.0]]), [0, 1]
    both = xi_alpha(SVC(kernel="linear", C=10.0), X, y)
    assert both.error == 1.0
    assert (both.recall, both.precision) == (0.0, 0.0)
    X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    none = xi_alpha(SVC(kernel="linear", C=10.0, bias=False), X, [0, 0, 1, 1])
    assert none.error <= 0.5
    assert none.proven


def test_radius_and_margin_by_hand():
    """Two points at distance 2: R = 1, ρ = 1, so that 4R²/ρ² = 4 errors of 2 samples; with no bias 1 of 2."""
    X, y = np.array([[-1.0], [1.0]]), [0, 1]
    assert radius_margin(SVC(kernel="linear", C=10.0), X, y).error == 1.0
    without = radius_margin(SVC(kernel="linear", C=10.0, bias=False), X, y)
    assert without.error == pytest.approx(0.5)
    assert without.proven
    # Five points on either side, the closest at a distance of 1 and the farthest at 2: R₀²/ρ² = 4 errors of 10.
    X = np.concatenate([-np.linspace(1.0, 1.9, 5), np.linspace(1.1, 2.0, 5)])[:, None]
    y = np.repeat([0, 1], 5)
    assert radius_margin(SVC(kernel="linear", C=10.0, bias=False), X, y).error == pytest.approx(0.4)
    hard = SVC(kernel="linear", slack="l2", C=1e8, bias=False)  # of K + I/C
    assert radius_margin(hard, X, y).error == pytest.approx(0.4, rel=1e-6)
    X, y = np.array([[-1.0], [1.0]]), [0, 1]
    slack = radius_margin(SVC(kernel="linear", C=0.1), X, y)
    assert not slack.proven
    assert "slack" in slack.assumes


def test_the_smallest_ball():
    from mercer.kernels.names import as_kernel
    from mercer.places import gram_for

    corners = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0], [1.0, 1.5]])
    found = ball_square(gram_for(as_kernel("linear"), corners, 10**7, 1))
    assert found == pytest.approx(2.0, rel=1e-5)
    assert found >= 2.0


def test_what_is_refused():
    X, y = two_clouds()
    with pytest.raises(ValueError, match="slack='l1'"):
        xi_alpha(SVC(slack="l2"), X, y)
    with pytest.raises(ValueError, match="slack='l1'"):
        xi_alpha(SVR(), X, y)
    with pytest.raises(ValueError, match="two classes"):
        xi_alpha(SVC(), X, np.arange(80) % 3)
    with pytest.raises(ValueError, match="bias=True"):
        span_bound(SVC(bias=False), X, y)
