"""Textbook algorithms, step by step: they end where the production solver ends, and do what the notes print."""

import numpy as np
import pytest

from mercer import SVC, certify, steps
from mercer.kernels import Gaussian, Linear, Polynomial, Precomputed
from mercer.notes.datasets import interval, with_paraboloid, with_square
from mercer.notes.teaching.algorithms import METHODS, RULES
from mercer.places import gram_for
from mercer.problems.classification import soft_margin
from mercer.problems.pegasos import PegasosProblem
from mercer.solvers.pegasos.descent import KernelSpace, solve_pegasos
from mercer.solvers.solution import Stop
from reference.qp import by_clarabel

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 2))
Y = np.where(X[:, 0] + 0.5 * rng.normal(size=40) > 0, 1, -1)
EXACT = METHODS[:5]
CASES = [(Gaussian(gamma=0.5), 1.0), (Gaussian(gamma=0.5), 20.0), (Linear(), 0.3)]


def runs(method):
    return RULES if method in ("smo", "li") else ("second order",)


@pytest.mark.parametrize(("kernel", "C"), CASES, ids=str)
@pytest.mark.parametrize(("method", "rule"), [(m, r) for m in EXACT for r in runs(m)])
def test_every_method_reaches_the_production_solver(method, rule, kernel, C):
    found = steps(X, Y, kernel=kernel, C=C, method=method, rule=rule, tol=1e-9)
    assert found.converged
    model = SVC(C=C, kernel=kernel, tol=1e-10).fit(X, Y)
    assert found.dual == pytest.approx(model.certificate_.dual, rel=1e-9)
    assert found.b == pytest.approx(model.intercept_[0], abs=1e-6)
    duals = np.array([0.0, *(step.dual for step in found)])
    assert (np.diff(duals) >= -1e-12 * duals[-1]).all()  # no step loses
    assert sum(step.gain for step in found) == pytest.approx(found.dual)
    for step in found:
        assert step.alpha.min() >= 0
        assert step.alpha.max() <= C
        assert abs(step.alpha @ Y) <= 1e-12 * C * len(Y)
    assert certify(SVC(kernel=kernel, C=C), X, Y, found.alpha).gap <= 1e-6 * found.dual


@pytest.mark.parametrize(("method", "rule"), [(m, r) for m in EXACT for r in runs(m)])
def test_a_start_is_where_the_run_begins(method, rule):
    """From a feasible α, the same optimum; from the optimum, no step; gains add up from the dual at the start."""
    options = {"gamma": 0.5, "C": 2.0, "method": method, "rule": rule, "tol": 1e-8}
    alpha = np.zeros(40)
    pairs = min((Y > 0).sum(), (Y < 0).sum()) // 2
    alpha[np.flatnonzero(Y > 0)[:pairs]] = alpha[np.flatnonzero(Y < 0)[:pairs]] = np.linspace(0.1, 2.0, pairs)
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
    first = alpha.sum() - 0.5 * (Y * alpha) @ K @ (Y * alpha)
    found, plain = steps(X, Y, start=alpha, **options), steps(X, Y, **options)
    assert found.converged
    assert found.dual == pytest.approx(plain.dual, rel=1e-9)
    assert first + sum(step.gain for step in found) == pytest.approx(found.dual)
    again = steps(X, Y, start=plain.alpha, **options)
    assert (len(again), again.converged) == (0, True)
    assert again.dual == plain.dual
    assert (again.alpha == plain.alpha).all()
    one = steps(X, Y, start=alpha, max_iter=1, **options)
    changed = np.flatnonzero(one.alpha != alpha)
    assert set(changed.tolist()) <= set(one.steps[0].chosen)


def test_an_infeasible_start_is_refused_with_the_reason():
    for alpha, reason in (
        (np.full(40, 1.5), "α_0 = 1.5 is not between 0 and C = 1"),
        (np.eye(40)[0] * Y[0] * Y[0], "Σ y_iα_i = "),
        (np.zeros(39), "for each of 40 samples"),
        (np.full(40, np.nan), "finite"),
    ):
        with pytest.raises(ValueError, match=reason):
            steps(X, Y, start=alpha)
    with pytest.raises(ValueError, match="starts from w = 0"):
        steps(X, Y, start=np.zeros(40), method="perceptron")


@pytest.mark.parametrize(("method", "rule"), [(m, r) for m in EXACT for r in runs(m)])
def test_the_hard_margin(method, rule):
    """½‖w‖² as clarabel finds it, and no end where there is no margin."""
    apart = np.abs(X[:, 0]) > 0.1
    Z, y = X[apart], np.where(X[apart, 0] > 0, "right", "left")
    K, signs = Gaussian(gamma=0.5)(Z), np.where(y == "right", 1.0, -1.0)
    value, _ = by_clarabel(soft_margin(signs, np.full(len(y), np.inf)), K)
    found = steps(Z, y, gamma=0.5, C=np.inf, method=method, rule=rule, tol=1e-9)
    assert found.converged
    assert found.dual == pytest.approx(value, rel=1e-7)
    assert np.isfinite(found.alpha).all()
    for samples, y in (([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]], [0, 0, 1, 1]), ([[0.0], [0.0]], [0, 1])):
        endless = steps(samples, y, kernel="linear", C=np.inf, method=method, rule=rule, max_iter=50)
        assert not endless.converged
        assert np.isfinite(endless.dual)


def test_li_takes_the_same_steps_as_igel():
    for rule in RULES:
        igel = steps(X, Y, kernel="rbf", C=2.0, rule=rule, tol=1e-4)
        li = steps(X, Y, kernel="rbf", C=2.0, method="li", rule=rule, tol=1e-4)
        assert [step.chosen for step in igel][:30] == [step.chosen for step in li][:30]
        np.testing.assert_allclose([s.dual for s in igel][:30], [s.dual for s in li][:30], rtol=1e-9)


def test_gains_and_steps_are_those_of_the_formulas():
    """Gain (y_ig_i − y_jg_j)²/2(K_ii + K_jj − 2K_ij) where the box does not cut the step short."""
    K = Gaussian(gamma=0.5)(X)
    found = steps(K, Y, kernel="precomputed", C=5.0, rule="most violating", tol=1e-6)
    before = np.zeros(len(Y))
    unclipped = 0
    for step in found:
        i, j = step.chosen
        g = 1 - Y * (K @ (Y * before))
        ahead, curvature = Y[i] * g[i] - Y[j] * g[j], K[i, i] + K[j, j] - 2 * K[i, j]
        rises = Y * g
        highest = max(rises[k] for k in range(len(Y)) if (before[k] < 5 if Y[k] > 0 else before[k] > 0))
        assert rises[i] == pytest.approx(highest, abs=1e-12)
        if not step.clipped:
            unclipped += 1
            assert step.size == pytest.approx(ahead / curvature, rel=1e-6)
            assert step.gain == pytest.approx(ahead**2 / (2 * curvature), rel=1e-4, abs=1e-13)
        else:
            assert step.size < ahead / curvature
        # Exercise 4.4: D(α + εu) − D(α) = ε(y_ig_i − y_jg_j) + O(ε²)
        moved = before.copy()
        epsilon = 1e-6
        moved[i] += epsilon * Y[i]
        moved[j] -= epsilon * Y[j]
        slope = (found.problem.dual(moved) - found.problem.dual(before)) / epsilon
        assert slope == pytest.approx(ahead, abs=1e-4)
        before = step.alpha
    assert unclipped > 5


def test_a_working_set_of_ones_own():
    """Igel's algorithm 4.1 with any working set: every step solves the problem restricted to it."""
    model, draws = SVC(C=1.0, kernel=Gaussian(gamma=0.5), tol=1e-10).fit(X, Y), np.random.default_rng(3)
    seen = []

    def some(alpha, gradient, step):
        np.testing.assert_allclose(gradient, 1 - Y * (Gaussian(gamma=0.5)(X) @ (Y * alpha)))
        seen.append(step)
        return draws.choice(40, 6, replace=False)

    options = {"kernel": Gaussian(gamma=0.5), "C": 1.0, "method": "decomposition"}
    found = steps(X, Y, working_set=some, tol=1e-6, **options)
    assert found.converged
    assert found.dual == pytest.approx(model.certificate_.dual, rel=1e-6)
    assert seen == list(range(len(found)))
    before = np.zeros(40)
    for step in list(found)[:20]:
        assert len(step.chosen) == 6
        outside = np.setdiff1d(np.arange(40), step.chosen)
        np.testing.assert_array_equal(step.alpha[outside], before[outside])
        inside = list(step.chosen)  # its optimality condition: no pair of the set can gain
        h = Y[inside] * (1 - Y * (Gaussian(gamma=0.5)(X) @ (Y * step.alpha)))[inside]
        up = np.where(Y[inside] > 0, step.alpha[inside] < 1, step.alpha[inside] > 0)
        down = np.where(Y[inside] > 0, step.alpha[inside] > 0, step.alpha[inside] < 1)
        assert max(h[up], default=-np.inf) - min(h[down], default=np.inf) <= 1e-6
        before = step.alpha
    # Sets that never mix cannot reach the optimum, and the limit ends them.
    apart = steps(X, Y, working_set=lambda alpha, g, k: np.arange(k % 2, 40, 2), max_iter=50, **options)
    assert not apart.converged
    assert len(apart) == 50
    for wrong in ([], [0, 0], [40], [-1], [0.5]):
        with pytest.raises(ValueError, match="different rows between 0 and 39"):
            steps(X, Y, working_set=lambda alpha, g, k, wrong=wrong: wrong, **options)
    with pytest.raises(ValueError, match="method='decomposition'"):
        steps(X, Y, working_set=lambda alpha, g, k: [0, 1], method="smo")


def test_maximum_gain_gains_most():
    K = Gaussian(gamma=0.5)(X)
    first = {rule: steps(K, Y, kernel="precomputed", C=1e6, rule=rule, max_iter=1) for rule in RULES}
    best = first["maximum gain"].steps[0].gain
    assert all(best >= found.steps[0].gain - 1e-12 for found in first.values())


def test_numbers_by_hand():
    """x from −3 to 3, class +1 where |x| ≤ 1: with x → (x, x²) the margin is 1.5."""
    X, y = interval()
    mapped = with_square(X)
    for method in EXACT:
        found = steps(mapped, y, kernel="linear", C=1e3, method=method, tol=1e-11)
        w = mapped.T @ (y * found.alpha)
        assert 1 / np.linalg.norm(w) == pytest.approx(1.5, abs=1e-9)
        assert found.alpha.sum() == pytest.approx(1 / 1.5**2, abs=1e-9)
        assert found.dual == pytest.approx(1 / (2 * 1.5**2), abs=1e-9)
        assert found.b == pytest.approx(2.5 / 1.5, abs=1e-9)  # the plane x² = 2.5
        # Data times 2 double the margin: with C/4, α is a quarter and f the same.
        twice = steps(2 * mapped, y, kernel="linear", C=1e3 / 4, method=method, tol=1e-11)
        assert twice.dual == pytest.approx(found.dual / 4, abs=1e-9)
        assert twice.b == pytest.approx(found.b, abs=1e-9)


@pytest.mark.parametrize("method", EXACT)
def test_rings_by_hand(method):
    """Radii 1 and 2: the margin is 1.5/√2 under ⟨x, z⟩², and 1.5 with x₁² + x₂² as a third coordinate."""
    angles = np.arange(8) * np.pi / 4
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    X, y = np.vstack([circle, 2 * circle]), np.repeat([1, -1], 8)
    for kernel, samples, margin in (
        (Polynomial(2, 1.0, 0.0), X, 1.5 / np.sqrt(2)),
        (Linear(), with_paraboloid(X), 1.5),
    ):
        found = steps(samples, y, kernel=kernel, C=100.0, method=method, tol=1e-11)
        assert found.dual == pytest.approx(1 / (2 * margin**2), abs=1e-9)
        assert found.alpha.sum() == pytest.approx(1 / margin**2, abs=1e-9)
        assert found.b == pytest.approx(5 / 3, abs=1e-9)  # the circle of radius √2.5


@pytest.mark.parametrize(("kernel", "C"), CASES[::2], ids=str)
def test_pegasos_takes_the_steps_of_the_production_solver(kernel, C):
    K, n = kernel(X), len(Y)
    count = 5 * n
    found = steps(X, Y, kernel=kernel, C=C, method="pegasos", max_iter=count, random_state=3)
    problem = PegasosProblem(Y[None].astype(float), np.ones(n), 1 / (C * n))
    space = KernelSpace(gram_for(Precomputed(), K), bias=False)
    stop = Stop(tol=0.0, max_iter=5)
    outcome, certificate = solve_pegasos(problem, space, stop, seed=3, epochs=5, average="all")
    assert len(found) == count
    np.testing.assert_allclose(Y * found.alpha, outcome.w[0], rtol=1e-12, atol=1e-14)
    # The production certificate encloses what the steps say.
    assert found.dual <= certificate.primal
    f = K @ (Y * found.alpha)
    objective = 0.5 * found.alpha @ (Y * f) + C * np.maximum(0, 1 - Y * f).sum()
    assert objective == pytest.approx(outcome.objective * C * n, rel=1e-9)


def test_pegasos_approaches_the_machine():
    """Within 2R²(1 + ln T)/(λT) of the optimum after T steps, and the dual below it at every step."""
    C, n = 0.5, len(Y)
    best = SVC(C=C, kernel=Gaussian(gamma=0.5), bias=False, tol=1e-10).fit(X, Y).certificate_.dual
    K = Gaussian(gamma=0.5)(X)
    found = steps(K, Y, kernel="precomputed", C=C, method="pegasos", max_iter=1500)
    assert max(step.dual for step in found) <= best * (1 + 1e-9)
    assert found.dual > 0.9 * best
    for T in (500, 1500):
        alpha = found.steps[T - 1].alpha
        f = K @ (Y * alpha)
        value = 0.5 * alpha @ (Y * f) + C * np.maximum(0, 1 - Y * f).sum()
        assert 0 <= value - best <= C * n * 2 * (1 + np.log(T)) / (T / (C * n))
    assert not found.converged
    assert steps([[1.0], [-1.0]], [1, -1], kernel="linear", C=0.1, method="pegasos", tol=10.0).converged


def test_the_perceptron_as_printed():
    wide = X[np.abs(X[:, 0]) > 0.2]
    y = np.where(wide[:, 0] > 0, 1, -1)
    found = steps(wide, y, kernel="linear", method="perceptron")
    w, alpha, mistakes = np.zeros(wide.shape[1]), np.zeros(len(wide)), -1
    while mistakes < alpha.sum():
        mistakes = alpha.sum()
        for i, x in enumerate(wide):
            if y[i] * (w @ x) <= 0:
                w, alpha[i] = w + y[i] * x, alpha[i] + 1
    np.testing.assert_array_equal(found.alpha, alpha)
    assert found.converged
    assert len(found) == mistakes
    machine = SVC(C=np.inf, kernel="linear", bias=False, tol=1e-9).fit(wide, y)
    radius = np.linalg.norm(wide, axis=1).max()
    for k, step in enumerate(found, 1):
        w = wide.T @ (y * step.alpha)
        assert step.dual == pytest.approx(k**2 / (2 * w @ w), rel=1e-12)
        assert step.dual <= 0.5 * machine.rkhs_norm_**2 * (1 + 1e-9)
        assert w @ w <= k * radius**2 * (1 + 1e-12)  # so that k ≤ (R/ρ)²
    xor = np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]])
    assert not steps(xor, [1, 1, -1, -1], kernel="linear", method="perceptron", max_iter=50).converged


@pytest.mark.parametrize("method", ["li", "perceptron"])
def test_pictures(method):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    found = steps(X[:6] + np.array([3.0, 0.0]), Y[:6], kernel="linear", C=0.2, method=method, max_iter=6)
    shown = found.plot()
    np.testing.assert_array_equal(shown.axes_[0].lines[0].get_ydata()[1:], [step.dual for step in found])
    assert shown.to_frame()["dual"].tolist() == [step.dual for step in found]
    with pytest.raises(ValueError, match="2 axes, but 1"):
        found.plot(shown.axes_[:1])
    film = found.film()
    film._init_draw()
    film._draw_frame(len(found) - 1)
    bars = film._fig.axes[0].patches
    np.testing.assert_array_equal([bar.get_height() for bar in bars], found.alpha)
    matplotlib.pyplot.close("all")
    nothing = steps([[0.0], [0.0]], [-1, 1], kernel="linear", C=1.0, tol=10.0)
    with pytest.raises(ValueError, match="no steps to show"):
        nothing.film()


def test_two_samples_take_one_step():
    found = steps([[0.0], [2.0]], [-1, 1], kernel="linear", C=10.0)
    (step,) = found.steps
    assert (step.chosen, step.size, step.clipped, step.gain, step.b) == ((1, 0), 0.5, False, 0.5, -1.0)
    np.testing.assert_array_equal(step.alpha, [0.5, 0.5])
    cut = steps([[0.0], [2.0]], [-1, 1], kernel="linear", C=0.25)
    assert cut.steps[0].clipped
    assert cut.steps[0].size == 0.25
    assert cut.dual == 0.5 - 0.5 * 0.25**2 * 4


def test_equal_samples_with_both_labels():
    """A direction without curvature ends at the box."""
    for method in EXACT:
        found = steps([[1.0], [1.0], [2.0]], [-1, 1, 1], kernel="linear", C=3.0, method=method, tol=1e-9)
        model = SVC(C=3.0, kernel="linear", tol=1e-10).fit([[1.0], [1.0], [2.0]], [-1, 1, 1])
        assert found.dual == pytest.approx(model.certificate_.dual, rel=1e-9)


def test_tables():
    found = steps(X, Y, kernel="rbf", max_iter=3)
    assert not found.converged
    assert len(str(found).splitlines()) == 5
    assert str(found).endswith("smo, second order: stopped before tol after 3 steps")
    assert list(found.to_frame()["dual"]) == [step.dual for step in found]
    nothing = steps([[0.0], [0.0]], [-1, 1], kernel="linear", C=1.0, tol=10.0)
    assert (len(nothing), nothing.dual, nothing.alpha.tolist(), nothing.b) == (0, 0.0, [0.0, 0.0], 0.0)


def test_bad_arguments():
    for options, message in [
        ({"method": "newton"}, "must be one of"),
        ({"rule": "random"}, "must be one of"),
        ({"working_set_size": 1}, "at least 2"),
        ({"tol": 0.0}, "above 0"),
        ({"C": -1.0}, "above 0"),
        ({"C": np.inf, "method": "pegasos"}, "use a finite C"),
    ]:
        with pytest.raises(ValueError, match=message):
            steps(X, Y, kernel="linear", **options)
    with pytest.raises(ValueError, match="two classes, but it has 3"):
        steps(X, np.arange(40) % 3, kernel="linear")
    with pytest.raises(ValueError, match="at most 1000 samples"):
        steps(np.zeros((1001, 1)), np.arange(1001) % 2, kernel="linear")
