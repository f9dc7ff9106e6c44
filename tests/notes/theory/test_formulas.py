"""Every number of mercer.theory against its formula, computed in another way."""

import itertools
import math
from decimal import Decimal

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import linprog, minimize

from mercer import SVC, KernelMachine, losses, steps, theory
from mercer.kernels import (
    Chi2,
    Cosine,
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    Tanimoto,
    rank_one,
)
from notes.theory.decimals import ln, near

# --- a bound -----------------------------------------------------------------------------------------------------


def test_what_a_bound_says():
    bound = theory.soft_margin_bound(np.zeros(100), trace=100.0, norm=2.0, margin=0.5, delta=0.05)
    near(sum(bound.terms.values()), bound.value)
    assert bound.vacuous
    assert bound.applies is None
    assert float(bound) == bound.value
    text = str(bound)
    assert text.startswith("the probability of error ≤ ")
    assert "(vacuous)" in text
    assert "drawn independently from one distribution: assumed" in text
    assert "f has no bias, or one that its norm includes: holds" in text


@pytest.mark.parametrize(
    ("changed", "why"),
    [({"bias": True}, "f has no bias"), ({"margin": 0.6}, "1/ρ")],
)
def test_assumptions_that_do_not_hold(changed, why):
    options = {"margin": 0.5, "delta": 0.05} | changed
    bound = theory.soft_margin_bound(np.zeros(10**6), 1e6, 2.0, **options)
    assert bound.applies is False
    assert why in next(a.text for a in bound.assumptions if a.holds is False)
    assert not bound.vacuous


# --- risks -------------------------------------------------------------------------------------------------------


def test_risks():
    rng = np.random.default_rng(0)
    y, f = rng.choice((-1.0, 1.0), 200), rng.normal(size=200)
    f[:5] = 0.0
    weight = rng.random(200)
    for gamma in (0.3, 1.0, 2.0):
        hinge = [max(0.0, gamma - yi * fi) / gamma for yi, fi in zip(y, f, strict=True)]
        near(theory.risk(y, f, loss="hinge", target_margin=gamma), math.fsum(hinge) / 200)
        ramp = [min(1.0, h) for h in hinge]
        near(
            theory.risk(y, f, loss="ramp", target_margin=gamma, sample_weight=weight),
            np.dot(ramp, weight) / weight.sum(),
        )
        # sgn(0) is +1, and the ramp counts both signs as errors there
        for one in zip(y[:40, None], f[:40, None], strict=True):
            wrong = theory.risk(*one, loss="zero_one")
            least = theory.risk(*one, loss="ramp", target_margin=gamma)
            assert wrong <= least <= theory.risk(*one, loss="hinge", target_margin=gamma)
    near(theory.risk(y, f, loss="zero_one"), np.mean(np.where(f >= 0, 1, -1) != y))
    near(theory.risk(y, f, loss="squared"), np.mean([(a - b) ** 2 for a, b in zip(y, f, strict=True)]))


def test_risks_of_any_loss():
    """Names and objects of mercer.losses, losses of your own, and of pairs."""
    rng = np.random.default_rng(3)
    y, f, t, weight = rng.choice((0, 1), 50), rng.normal(size=50), rng.normal(size=50), rng.random(50)
    signs, far = 2 * y - 1, np.abs(t - f)
    near(theory.risk(y, f, loss="logistic"), np.mean(np.log1p(np.exp(-signs * f))))
    near(theory.risk(y, f, loss=losses.SquaredHinge()), theory.risk(y, f, loss="hinge", power=2.0))
    near(theory.risk(y, f, loss="squared_hinge"), np.mean(np.maximum(0, 1 - signs * f) ** 2))
    huber = np.where(far <= 0.5, far**2 / 2, 0.5 * (far - 0.25))
    near(theory.risk(t, f, loss=losses.Huber(0.5), sample_weight=weight), np.average(huber, weights=weight))
    near(theory.risk(t, f, loss="huber"), theory.risk(t, f, loss=losses.Huber(1.0)))
    pairs = [np.log1p(np.exp(f[j] - f[i])) for i in range(50) for j in range(50) if t[i] > t[j]]
    near(theory.risk(t, f, loss=losses.Pairwise()), np.mean(pairs))

    class Absolute:
        kind = "regression"

        def value(self, y, f):
            return np.abs(y - f)

    near(theory.risk(t, f, loss=Absolute(), norm=3.0, theta=0.5), np.mean(far) + 4.5)
    slacks = [max(0.0, 1 - s * v) for s, v in zip(signs, f, strict=True)]
    for power in (1e-9, 0.5, 1.0):
        near(50 * theory.risk(y, f, loss="hinge", power=power), sum(xi**power for xi in slacks if xi > 0))


def test_risks_of_several_outputs():
    """ℓ = ‖y − f(x)‖², as Igel has it for y in R^m; other losses of numbers are summed too."""
    rng = np.random.default_rng(4)
    y, f, weight = rng.normal(size=(30, 3)), rng.normal(size=(30, 3)), rng.random(30)
    squares = [math.fsum((a - b) ** 2 for a, b in zip(*row, strict=True)) for row in zip(y, f, strict=True)]
    near(theory.risk(y, f, loss="squared"), math.fsum(squares) / 30)
    near(theory.risk(y, f, loss="squared", sample_weight=weight), np.average(squares, weights=weight))
    far = np.abs(y - f)
    near(theory.risk(y, f, loss="huber"), np.where(far <= 1, far**2 / 2, far - 0.5).sum() / 30)
    density = stats.multivariate_normal(np.zeros(3), 0.7 * np.eye(3)).logpdf(y - f).sum()
    near(theory.log_likelihood(y, f, variance=0.7), density)
    near(theory.log_posterior(y, f, variance=0.7, norm=2.0, scale=0.5), density - 4.0)
    best = theory.risk(y, f, loss="squared") / 3
    for other in (0.97 * best, 1.03 * best):
        assert theory.log_likelihood(y, f, variance=best) > theory.log_likelihood(y, f, variance=other)
    for loss, message in (("hinge", "single column|1d|2"), (losses.Pairwise(), "one number per sample, at least one")):
        with pytest.raises(ValueError, match=message):
            theory.risk(y, f, loss=loss)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"loss": "absolute"}, ValueError, "loss='absolute'"),
        ({"loss": 3.0}, TypeError, "mercer.losses.Huber"),
        ({"loss": losses.Huber}, TypeError, "must be a name, or an object"),
        ({"loss": "squared", "target_margin": 0.5}, ValueError, "target_margin=0.5 is for the losses"),
        ({"loss": "hinge", "norm": 1.0}, ValueError, "needs both"),
        ({"loss": "hinge", "theta": 1.0}, ValueError, "needs both"),
        ({"loss": "hinge", "power": 0.0}, ValueError, "power=0.0"),
        ({"loss": losses.Pairwise(), "sample_weight": [1.0, 2.0]}, ValueError, "cannot have weights"),
    ],
)
def test_risks_that_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        theory.risk([1, -1], [0.5, 2.0], **options)
    with pytest.raises(ValueError, match="has no combinations for these targets"):
        theory.risk([1.0, 1.0], [0.5, 2.0], loss=losses.Pairwise())


def test_regularised_risk_is_what_a_machine_minimises():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 2))
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=60) > 0, 1, -1)
    model = SVC(C=2.0, tol=1e-8).fit(X, y)
    theta = 1 / (2 * 2.0 * 60)
    value = theory.risk(y, model.decision_function(X), loss="hinge", norm=model.rkhs_norm_, theta=theta)
    near(value, model.certificate_.primal / (2.0 * 60), rel=1e-9)


# --- complexities ------------------------------------------------------------------------------------------------

KERNELS = [Linear(), Gaussian(gamma=0.5), Gaussian(gamma=50.0), Polynomial(degree=2, gamma=1.0, coef0=1.0)]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("n", [1, 5, 9, 60])
def test_complexity_of_a_ball_below_its_trace_bound(kernel, n):
    X = np.random.default_rng(n).normal(size=(n, 3))
    found = theory.ball_complexity(kernel(X), norm=1.7, n_draws=512)
    assert found.value <= found.bound.value + 3 * found.standard_error + 1e-12
    near(found.bound.value, 2 * 1.7 / n * math.sqrt(sum(kernel.diag(X))))
    assert found.value >= found.bound.value / math.sqrt(2) - 3 * found.standard_error  # Khintchine and Kahane


EVERY = [
    Laplacian(gamma=0.3),
    Matern(nu=0.5),
    Matern(nu=2.5),
    RationalQuadratic(alpha=0.5),
    Cosine(),
    Chi2(gamma=0.5),
    Tanimoto(),
    2 * Gaussian(gamma=0.2) + Linear() ** 2,
    Linear() * Gaussian(gamma=0.1) + 1.0,
    (0.1 * Linear()).exp(),
    (Linear() + 1.0).normalised(),
    Gaussian(gamma=1.0).scaled_by(lambda X: X[:, 0]),
    rank_one(lambda X: X[:, 0]),
]
SETS = {
    "spread": lambda n: np.random.default_rng(n).uniform(0.1, 3.0, size=(n, 2)),
    "repeated": lambda n: np.tile([[1.0, 2.0]], (n, 1)),
    "two clumps": lambda n: np.where(np.arange(n)[:, None] % 2, 0.5, 2.5) + np.zeros((n, 2)),
    "tiny": lambda n: 1e-100 * np.random.default_rng(n).uniform(0.1, 3.0, size=(n, 2)),
}


@pytest.mark.parametrize("kernel", EVERY, ids=repr)
@pytest.mark.parametrize("samples", SETS)
def test_complexity_below_its_trace_bound_on_every_kernel(kernel, samples):
    for n in (1, 4, 8, 40):
        found = theory.ball_complexity(kernel(SETS[samples](n)), norm=0.7, n_draws=256)
        assert found.value <= found.bound.value * (1 + 1e-12) + 3 * found.standard_error


def test_complexity_of_a_ball_by_enumeration():
    X = np.random.default_rng(3).normal(size=(6, 2))
    signs = np.array(list(itertools.product((-1, 1), repeat=6)))
    expected = np.mean([2 * 0.5 / 6 * np.linalg.norm(s @ X) + 2 * 0.3 / 6 * abs(s.sum()) for s in signs])
    found = theory.ball_complexity(X @ X.T, norm=0.5, bias=0.3)
    near(found.value, expected)
    assert found.standard_error == 0.0
    drawn = theory.ball_complexity(X @ X.T, norm=0.5, bias=0.3, n_draws=63)
    assert abs(drawn.value - expected) <= 4 * drawn.standard_error


def test_monte_carlo_has_the_error_it_states():
    K = Gaussian(gamma=1.0)(np.random.default_rng(4).normal(size=(30, 2)))
    truth = theory.ball_complexity(K, n_draws=200_000, random_state=1).value
    found = [theory.ball_complexity(K, n_draws=100, random_state=seed) for seed in range(300)]
    scores = [(one.value - truth) / one.standard_error for one in found]
    assert 0.85 < np.std(scores) < 1.15


@pytest.mark.parametrize(("n_functions", "n"), [(1, 5), (7, 5), (30, 8), (2, 200)])
def test_finite_classes(n_functions, n):
    table = np.random.default_rng(n).choice((-1.0, 1.0), (n_functions, n))
    found = theory.finite_complexity(table)
    assert found.value <= theory.finite_complexity_bound(n_functions, n).value + 3 * found.standard_error
    near(found.bound.value, theory.finite_complexity_bound(n_functions, n).value)  # values ±1 have the mean square 1
    assert found.bound.applies is True
    half = theory.finite_complexity(0.5 * table)
    near(half.bound.value, 0.5 * found.bound.value)
    near(theory.finite_complexity_bound(n_functions, n).value, 2 * (2 * ln(2 * n_functions) / n).sqrt())


def test_bounds_with_complexities():
    three = 3 * (ln(2 / Decimal("0.05")) / 200).sqrt()
    near(theory.expectation_bound(0.1, 0.2, 100, delta=0.05).value, Decimal("0.3") + three)
    near(theory.expectation_bound(0.1, 0.2, 100, delta=0.05, empirical=False).value, Decimal("0.3") + three / 3)
    near(theory.true_complexity_bound(0.2, 100, delta=0.05).value, Decimal("0.2") + 2 * (ln(20) / 200).sqrt())


# --- counting ----------------------------------------------------------------------------------------------------


def separable(X, y):
    """Whether some w has y⟨w, x⟩ ≥ 1 for all rows, by linear programming."""
    found = linprog(np.zeros(X.shape[1]), A_ub=-y[:, None] * X, b_ub=-np.ones(len(y)), bounds=(None, None))
    return found.status == 0


@pytest.mark.parametrize(("d", "n"), [(1, 3), (2, 4), (2, 5), (3, 4), (3, 5), (4, 3)])
def test_dichotomies_by_enumeration(d, n):
    X = np.random.default_rng(d * 10 + n).normal(size=(n, d))
    found = sum(separable(X, np.array(y)) for y in itertools.product((-1.0, 1.0), repeat=n))
    assert theory.dichotomies(d, n) == found
    with_bias = np.column_stack([X[:, : d - 1], np.ones(n)]) if d > 1 else None
    if with_bias is not None:
        found = sum(separable(with_bias, np.array(y)) for y in itertools.product((-1.0, 1.0), repeat=n))
        assert theory.dichotomies(d, n) == found  # d − 1 dimensions and a bias


def test_the_chain_of_bounds():
    for n in range(3, 30):
        for d in range(1, n + 1):
            second, third = (theory.dichotomies(d, n, bound=bound) for bound in ("factorial", "power"))
            assert theory.dichotomies(d, n) <= second <= third == n**d
            near(second, Decimal(3 * n ** (d - 1)) / math.factorial(d - 1))
    with pytest.raises(ValueError, match="d ≤ n dimensions, not for d=10, n=3"):
        theory.dichotomies(10, 3, bound="power")
    with pytest.raises(ValueError, match="overflows float64 for d=900, n=2000"):
        theory.dichotomies(900, 2000, bound="factorial")
    assert theory.dichotomies(900, 2000) <= theory.dichotomies(900, 2000, bound="power")
    assert 3 * 3**9 / math.factorial(9) < theory.dichotomies(10, 3)  # why not
    assert theory.dichotomies(1, 2) > 3 * 2**0 / math.factorial(0) - 2  # and n^d needs n ≥ 3 for d = 1
    assert theory.dichotomies(1, 2) <= 3


def test_vapnik_and_chervonenkis():
    near(theory.finite_rules_bound(0.1, 20, 50, delta=0.05).value, Decimal("0.1") + ((ln(20) + ln(20)) / 100).sqrt())
    valid = theory.linear_rules_bound(0.1, 2, 50, delta=0.05, bias=True)
    near(valid.value, Decimal("0.1") + (8 * ln(4 * theory.dichotomies(3, 100) * 20) / 50).sqrt())
    through_origin = theory.linear_rules_bound(0.1, 2, 50, delta=0.05)
    near(through_origin.value, Decimal("0.1") + (8 * ln(4 * (1 + 100 + 100 * 99 // 2) * 20) / 50).sqrt())
    printed = theory.linear_rules_bound(0.1, 3, 50, delta=0.05, heuristic=True)
    near(
        printed.value, Decimal("0.1") + ((3 * ln(50) + ln(20)) / 100).sqrt()
    )  # with n^d for Φ(d, n), as the notes have it
    assert printed.applies is False


@pytest.mark.parametrize("d", [1, 2])
def test_a_zero_counts_as_the_second_class(d):
    """sgn⟨w, x⟩ with sgn 0 = 1 labels ±e₁, ±e_d in 3^d ways, more than points in general position."""
    points = np.vstack([np.eye(d), -np.eye(d)])
    labellings = {tuple(points @ w >= 0) for w in itertools.product((-1, 0, 1), repeat=d)}
    assert len(labellings) == 3**d > theory.dichotomies(d, 2 * d)
    term = theory.linear_rules_bound(0.0, d, d, delta=0.05).value  # 2n = 2d points
    assert math.exp(d * term**2 / 8) * 0.05 / 4 >= len(labellings) * (1 - 1e-9)


# --- concentration -----------------------------------------------------------------------------------------------


def test_concentration():
    near(theory.hoeffding(0.2, 100, delta=0.05, width=3.0).value, Decimal("0.2") + 3 * (ln(20) / 200).sqrt())
    near(theory.hoeffding(0.2, 100, delta=0.05, sides=2).value, Decimal("0.2") + (ln(40) / 200).sqrt())
    # Igel, theorem A.2: Pr{|S − E S| ≥ ε} ≤ 2 exp(−2ε²/Σ(b − a)²), solved for ε and divided by n.
    unequal = theory.hoeffding(0.2, 3, delta=0.05, width=[1.0, 2.0, 0.0], sides=2)
    near(unequal.value, Decimal("0.2") + (5 * ln(40) / 2).sqrt() / 3)
    near(theory.hoeffding(0.2, 4, width=[2.0] * 4).value, theory.hoeffding(0.2, 4, width=2.0).value)
    with pytest.raises(ValueError, match="width has 2 entries, but n=3"):
        theory.hoeffding(0.2, 3, width=[1.0, 2.0])
    c = np.array([0.1, 0.2, 0.3])
    near(theory.mcdiarmid(1.0, c, delta=0.05).value, 1 + (Decimal("0.14") * ln(20) / 2).sqrt())
    near(theory.mcdiarmid(0.2, np.full(100, 0.01), delta=0.05).value, theory.hoeffding(0.2, 100, delta=0.05).value)
    near(theory.glivenko_cantelli(100, delta=0.05).value, (ln(40) / 200).sqrt())


@pytest.mark.parametrize(("errors", "n"), [(0, 20), (3, 20), (20, 20), (5, 1000)])
def test_bounds_from_counts(errors, n):
    exact, chernoff = theory.test_set_bound(errors, n, delta=0.05).value, theory.chernoff(errors, n, delta=0.05).value
    assert exact <= chernoff <= theory.hoeffding(errors / n, n, delta=0.05).value
    if errors < n:
        near(stats.binom.cdf(errors, n, exact), 0.05, rel=1e-9)
        a = Decimal(errors) / n
        p = Decimal(chernoff)
        entropy = (a * (a / p).ln() if errors else 0) + (1 - a) * ((1 - a) / (1 - p)).ln()
        near(float(entropy * n), ln(20), rel=1e-9)
    if errors == 0:
        near(exact, 1 - Decimal("0.05") ** (Decimal(1) / n))


# --- the rest ----------------------------------------------------------------------------------------------------


def test_sample_complexities():
    enough = 8 / Decimal("0.01") * (2 * 16 + ln(40))
    assert theory.hard_margin_samples(0.1, 2.0, 0.5, delta=0.05) == math.ceil(enough)
    R, B, n = 3.0, 2.0, 500
    theta = theory.best_theta(R, B, n)
    near(theta, math.sqrt(2 * R * R / (B * B * n)))
    bound = theory.soft_margin_expectation(0.1, B, R, n, theta=theta)
    near(bound.terms["ϑ‖u‖²"], bound.terms["2R²/(ϑn)"])
    assert theory.soft_margin_expectation(0.1, B, R, n).terms == bound.terms  # the best ϑ is the default
    near(bound.value - 0.1, math.sqrt(8 * R * R * B * B / n))
    other = theory.soft_margin_expectation(0.1, B, R, n, theta=0.1)
    near(other.value, 0.1 + 0.1 * B * B + 2 * R * R / (0.1 * n))
    least = theory.soft_margin_samples(0.05, R, B)
    at, before = (theory.soft_margin_expectation(0.0, B, R, enough).value for enough in (least, least - 1))
    assert at <= 0.05 * (1 + 1e-12) < before
    # The hinge of w and of another differ by at most R‖w − v‖.
    rng = np.random.default_rng(7)
    X, w, v = rng.normal(size=(50, 3)), rng.normal(size=3), rng.normal(size=3)
    apart = np.abs(np.maximum(0, 1 - X @ w) - np.maximum(0, 1 - X @ v)).max()
    assert apart <= theory.enclosing_ball(X, kernel=Linear(), centre="origin").radius * np.linalg.norm(w - v)


def test_the_machine_of_best_theta_minimises_the_objective_of_the_theorem():
    """L_S(w) + ϑ‖w‖² of SVC(theta=best_theta) is the least, by SciPy; λ of a sum of losses would be another machine."""
    rng, B = np.random.default_rng(11), 3.0
    X = rng.normal(size=(200, 3))
    y = np.where(X[:, 0] + rng.normal(size=200) > 0, 1, -1)
    theta = theory.best_theta(np.linalg.norm(X, axis=1).max(), B, len(y))

    def objective(w):
        return np.maximum(0, 1 - y * (X @ w)).mean() + theta * (w @ w)

    model = SVC(theta=theta, kernel="linear", bias=False, tol=1e-9).fit(X, y)
    found = objective(model.coef_[0])
    searched = minimize(objective, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12})
    assert found == pytest.approx(searched.fun, rel=1e-6)
    other = KernelMachine("hinge", kernel="linear", lam=theta, bias=False).fit(X, y)
    assert theory.risk(y, other.decision_function(X), loss="hinge") + theta * other.rkhs_norm_**2 > 1.1 * found


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("tol", [1e-1, 1e-6])
def test_support_vectors(C, tol):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(80, 2))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=80) > 0, 1, -1)
    model = SVC(C=C, tol=tol).fit(X, y)
    hinge = theory.risk(y, model.decision_function(X), loss="hinge")
    bound = theory.support_vectors_bound(model.rkhs_norm_, hinge, C, 80, gap=model.certificate_.gap)
    assert len(model.support_) >= bound.value - 1e-9
    near(bound.value, np.abs(model.dual_coef_).sum() / C, rel=1e-6)
    near(bound.terms["2nϑ‖f‖²"] + bound.terms["n·hinge risk"], model.rkhs_norm_**2 / C + 80 * hinge)


def test_mistakes_of_the_perceptron():
    rng = np.random.default_rng(9)
    for _ in range(20):
        X = rng.normal(size=(30, 3))
        w = rng.normal(size=3)
        X = X[np.abs(X @ w) > 0.3]
        y = np.where(X @ w > 0, 1, -1)
        found = steps(X, y, kernel="linear", method="perceptron")
        rho = 1 / SVC(kernel="linear", C=np.inf, bias=False, tol=1e-6).fit(X, y).rkhs_norm_
        assert found.converged
        radius = theory.enclosing_ball(X, kernel=Linear(), centre="origin").radius
        assert len(found) == found.alpha.sum() <= theory.mistake_bound(radius, rho)
        assert (y * (X @ (X.T @ (found.alpha * y))) > 0).all()
    xor = np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]])
    assert steps(xor, [1, 1, -1, -1], kernel=Linear() ** 2, method="perceptron").converged


def test_no_free_lunch():
    def machine(x_train, y_train, x_test):
        if len(set(y_train)) < 2:
            return np.full(len(x_test), y_train[0])
        return SVC(C=1.0, gamma=0.3).fit(x_train[:, None], y_train).predict(x_test[:, None])

    def contrary(x_train, y_train, x_test):
        return np.full(len(x_test), -1 if sum(y_train) > 0 else 1)

    for learner in (machine, contrary):
        assert theory.off_training_error(learner, 6, 4) == theory.off_training_error(learner, 5, 3) == 0.5


def test_a_complexity_prints_what_it_is():
    K = np.eye(3)
    few = str(theory.ball_complexity(K))
    assert few == f"Rademacher complexity R̂ = 1.1547, from 8 vectors of signs\n{theory.trace_bound(3.0, 3)}"
    drawn = theory.ball_complexity(np.diag(np.arange(12.0)) + 1.0, n_draws=64)
    assert f"± {drawn.standard_error:.2g}, from 64 vectors" in str(drawn)


def test_any_two_labels():
    """0 and 1, names and booleans say the same as −1 and +1."""
    f = np.array([2.0, 0.5, -3.0, 1.0])
    signs = np.array([1, 1, -1, -1])
    for y in ((signs + 1) // 2, signs > 0, np.where(signs > 0, "b", "a"), signs + 7.0):
        for loss in ("zero_one", "hinge", "ramp"):
            assert theory.risk(y, f, loss=loss) == theory.risk(signs, f, loss=loss)
        assert theory.risk(y, f, loss="hinge", power=0.5) == theory.risk(signs, f, loss="hinge", power=0.5)
        np.testing.assert_array_equal(
            theory.fewest_errors(f[:, None], y).rows, theory.fewest_errors(f[:, None], signs).rows
        )
    assert theory.risk([0, 1, 1], [-1.0, -1.0, 1.0], loss="zero_one") == 1 / 3
    assert theory.risk([1, 1], [2.0, -1.0], loss="zero_one") == 0.5  # −1 and +1 may stand alone
    for alone in ([0, 0], ["a", "a"], [2.0, 2.0]):
        with pytest.raises(ValueError, match="only 1 label"):
            theory.risk(alone, [1.0, 2.0], loss="hinge")


def test_bad_arguments():
    for call, message in [
        (lambda: theory.risk([0, 1, 2], [1.0, 2.0, 0.0], loss="hinge"), "two classes, but it has 3"),
        (lambda: theory.risk([1], [1.0], loss="log"), "must be one of"),
        (lambda: theory.ball_complexity(np.ones((2, 3))), "square matrix"),
        (lambda: theory.finite_complexity([1.0]), "a row per function"),
        (lambda: theory.soft_margin_bound([-1.0], 1.0, 1.0), "slacks must have"),
        (lambda: theory.test_set_bound(3, 2, delta=0.1), "cannot be more errors than samples"),
        (lambda: theory.hoeffding(0.1, 10, delta=1.5), "strictly between 0 and 1"),
        (lambda: theory.linear_rules_bound(1.2, 2, 10), "between 0 and 1"),
        (lambda: theory.off_training_error(len, 30, 2), "at most"),
        (lambda: theory.off_training_error(lambda *_: [0], 3, 2), "a label of -1 or"),
        (lambda: theory.enclosing_ball(np.empty((0, 2)), kernel="linear"), "at least one sample"),
        (lambda: theory.mcdiarmid(1.0, [-0.1], delta=0.1), "one finite number ≥ 0"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
