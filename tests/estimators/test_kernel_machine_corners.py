"""Losses with corners: clarabel, bounds in a hundred digits, the machines with the same duals, and what is refused."""

import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import settings
from sklearn.exceptions import ConvergenceWarning

import mercer
from mercer import SVR, KernelMachine, KernelMachineClassifier, KernelMachineRegressor, QuantileSVR, kernels
from mercer.certificates.representer import _corner_terms, _enclosing_balls, certify_representer
from mercer.places import gram_for
from mercer.problems.losses import EpsilonInsensitive, Hinge, Pairwise, Pinball
from mercer.problems.penalties import PENALTIES
from mercer.problems.representer import RepresenterProblem
from mercer.solvers.representer import solve_representer
from mercer.solvers.solution import Stop
from reference.corner_losses import (
    CLASSES,
    EPSILON,
    LINES,
    TAU,
    Bent,
    Stairs,
    conjugate,
    enclose,
    primal_value,
    subgradient_range,
    value,
)
from reference.decimals import ONE, decimals, hundred_digits
from reference.exact_kernels import Formula
from reference.penalties import Fourth

_THOROUGH = settings().max_examples > 500  # the profile that tests/conftest.py has loaded
DRAWN = 400 if _THOROUGH else 36
if _THOROUGH:
    pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]

EQUALITY = "dual feasibility: equality"
rng = np.random.default_rng(3)
N = 30
X = rng.normal(size=(N, 2))
Y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=N)
SIGNS = np.where(Y > 0.2, 1.0, -1.0)
WEIGHT = rng.integers(0, 3, N).astype(float)
GAUSSIAN = kernels.Gaussian(gamma=0.7)
K = GAUSSIAN(X)
OWN = {"bent": Bent(), "stairs": Stairs()}
OWN_PENALTY = {"fourth": Fourth()}
OBJECTS = {
    **OWN,
    "hinge": Hinge(),
    "absolute": EpsilonInsensitive(),
    "epsilon_insensitive": EpsilonInsensitive(EPSILON),
    "pinball": Pinball(TAU),
}


# --- the minimum -----------------------------------------------------------------------------------------------------


def drawn_kernel(draws):
    """(the formula, mercer's kernel), for values of a size that float64 keeps."""
    gamma = float(10.0 ** draws.uniform(-1, 0.5))
    return [
        (Formula("gaussian", gamma), kernels.Gaussian(gamma=gamma)),
        (Formula("linear"), kernels.Linear()),
        (Formula("polynomial", 0.1, 3, 1.0), kernels.Polynomial(degree=3, gamma=0.1, coef0=1.0)),
        (Formula("laplacian", gamma), kernels.Laplacian(gamma=gamma)),
        (Formula("gaussian", gamma, constant=0.5), kernels.Gaussian(gamma=gamma) + 0.5),
    ][draws.integers(5)]


@pytest.mark.parametrize("seed", range(DRAWN))
def test_the_gap_closes_around_the_minimum(seed):
    draws = np.random.default_rng(seed)
    name, kind = list(LINES)[seed % 6], ["squared_norm", "norm", "fourth"][seed // 6 % 3]
    bias, weighted = bool(seed // 18 % 2), bool(seed // 36 % 2) or not _THOROUGH
    n, d = int(draws.integers(8, 41)), int(draws.integers(1, 4))
    samples = draws.normal(size=(n, d))
    if draws.random() < 0.2:
        samples[n // 2 :] = samples[: n - n // 2]
    f = np.sin(2 * samples[:, 0]) + 0.3 * draws.normal(size=n)
    y = np.where(f > np.median(f), 1.0, -1.0) if name in CLASSES else 10.0 ** draws.integers(-1, 2) * f
    weight = draws.uniform(0.2, 3.0, n) * (draws.random(n) < 0.8) if weighted else np.ones(n)
    weight[[np.argmin(y), np.argmax(y)]] = 1.0
    lam = float(10.0 ** (draws.uniform(-2, 1) + (kind == "fourth")))
    formula, kernel = drawn_kernel(draws)
    own = {"epsilon_insensitive": {"epsilon": EPSILON}, "pinball": {"tau": TAU}}.get(name, {})
    options = {"penalty": OWN_PENALTY.get(kind, kind), "kernel": kernel, "bias": bias, "tol": 1e-8, **own}
    with warnings.catch_warnings():  # 1e-8 may be below rounding; what has to be reached is 1e-6
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = KernelMachine(OWN.get(name, name), lam, **options).fit(samples, y, sample_weight=weight)
    proof = model.certificate_
    with hundred_digits():
        exact = formula.matrix(samples)
        lower, upper, found = enclose(name, kind, lam, y, weight, exact, bias)
        c, b = decimals(model.dual_coef_[0]), decimals(float(model.intercept_[0]))
        own_value = primal_value(name, kind, decimals(lam), decimals(y), decimals(weight), exact, c, b)
        rounding = Decimal("1e-10") * max(ONE, abs(decimals(y)).max())
        primal, dual, gap = map(decimals, (proof.primal, proof.dual, proof.gap))
        # The claims: bounds on both sides of the minimum, and on the value of this solution.
        assert dual <= min(own_value, upper)
        assert primal >= max(own_value, lower)
        assert own_value - min(own_value, upper) <= gap
        assert proof.gap >= proof.primal - proof.dual  # as floats: near 0 they have more than a hundred digits
        # The quality: clarabel's minimum to 1e-7, or as far as its own bounds determine it, and a gap of 1e-6.
        assert abs(primal - decimals(found)) <= Decimal("1e-7") * upper + (upper - lower) + rounding
        assert gap <= Decimal("1e-6") * primal or gap <= Decimal("1e-200")


def test_the_machines_with_the_same_dual_are_the_same():
    options = {"kernel": GAUSSIAN, "tol": 1e-9}
    peers = {
        "absolute": (QuantileSVR([0.5], C=1 / 0.1, kernel=GAUSSIAN, tol=1e-9), {}),
        "pinball": (QuantileSVR([0.2], C=1 / 0.2, kernel=GAUSSIAN, tol=1e-9), {"tau": 0.2}),
        "epsilon_insensitive": (SVR(C=1 / 0.2, epsilon=0.3, kernel=GAUSSIAN, tol=1e-9), {"epsilon": 0.3}),
    }
    for name, (peer, own) in peers.items():
        ours = KernelMachine(name, 0.1, **own, **options).fit(X, Y, sample_weight=1.0 + WEIGHT)
        expected = peer.fit(X, Y, sample_weight=1.0 + WEIGHT).predict(X).reshape(N)
        np.testing.assert_allclose(ours.predict(X), expected, atol=1e-5)
        assert isinstance(ours, KernelMachineRegressor)
        assert ours.certificate_.proves == "optimality"


def test_a_large_norm_penalty_makes_f_zero():
    """f = 0 exactly if a subgradient at the best constant has a norm of at most λ; for ±½ around the median it has."""
    median = np.median(Y[:-1])
    g = np.sign(median - Y[:-1])
    edge = np.sqrt(g @ K[:-1, :-1] @ g)
    for loss in ("absolute", Bent()):
        model = KernelMachine(loss, 1.5 * edge, penalty="norm", kernel=GAUSSIAN).fit(X[:-1], Y[:-1])
        assert not model.dual_coef_.any()
        assert model.converged_
        assert model.certificate_.relative_gap <= 1e-6
    assert KernelMachine("absolute", 0.2 * edge, penalty="norm", kernel=GAUSSIAN).fit(X, Y).dual_coef_.any()


def test_a_hinge_with_the_norm_is_regularised_as_igel_writes():
    """Several classes, each against the rest: the sum of both parts is the certificate's."""
    classes = np.digitize(Y, [-0.3, 0.5])
    model = KernelMachineClassifier("hinge", 0.5, penalty="norm", kernel=GAUSSIAN).fit(X, classes)
    assert model.converged_
    f = model.decision_function(X)
    total = 0.0
    for k in range(3):
        y, c = np.where(classes == k, 1.0, -1.0), model.dual_coef_[k]
        total += np.maximum(0.0, 1 - y * f[:, k]).sum() + 0.5 * np.sqrt(c @ K @ c)
    assert model.certificate_.primal == pytest.approx(total, rel=1e-7)
    assert model.score(X, classes) > 0.7


# --- the proof -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", ["squared_norm", "norm", "fourth"])
@pytest.mark.parametrize("name", list(LINES))
def test_any_point_and_any_dual_point_have_true_bounds(name, kind, bias):
    """Far from the optimum, and with subgradients that the loss does not have."""
    y = SIGNS if name in CLASSES else Y
    problem = RepresenterProblem(y, WEIGHT, OBJECTS[name], 0.4, bias, {**PENALTIES, **OWN_PENALTY}[kind])
    with hundred_digits():
        exact = Formula("gaussian", 0.7).matrix(X)
        _, upper, _ = enclose(name, kind, 0.4, y, WEIGHT, exact, bias)
        for scale in (0.0, 0.01, 1.0, 30.0):
            c, b = scale * rng.normal(size=N), scale * bias
            reached = primal_value(
                name, kind, decimals(0.4), decimals(y), decimals(WEIGHT), exact, decimals(c), decimals(b)
            )
            for g in (None, np.zeros(N), -0.8 * c, 3 * rng.normal(size=N)):
                proof = certify_representer(problem, gram_for(GAUSSIAN, X), c, float(b), 0.0, g)
                assert decimals(proof.primal) >= reached
                assert not decimals(proof.dual) > min(reached, upper)
                assert np.isfinite(proof.gap)
                assert decimals(proof.gap) >= reached - upper
                assert proof.kkt["Fenchel–Young inequality"] >= 0


@pytest.mark.parametrize("kind", ["squared_norm", "norm", "fourth"])
@pytest.mark.parametrize("name", list(LINES))
def test_the_equality_residual_bounds_the_exact_sum_of_the_dual_point(name, kind):
    """With a bias, Σg = 0 holds for a point within the errors of g, inside the range of the subgradients."""
    y = SIGNS if name in CLASSES else Y
    weight = WEIGHT + rng.uniform(0.1, 1.0, N)  # no integers, whose sums would have no rounding
    penalty = {**PENALTIES, **OWN_PENALTY}[kind]
    problem, free = (RepresenterProblem(y, weight, OBJECTS[name], 0.4, bias, penalty) for bias in (True, False))
    low, high = (side.astype(float) * weight for side in subgradient_range(name, y))
    gram, reach, residuals = gram_for(GAUSSIAN, X), np.full(N, 1e-12), []
    for scale in (0.0, 0.01, 1.0):
        c, b = scale * rng.normal(size=N), scale
        t = gram.proof.product_bound(c).value + b
        slopes = _enclosing_balls(problem.gradient(t - reach), problem.gradient(t + reach))
        for g in (None, np.zeros(N), -0.8 * c, 3 * rng.normal(size=N)):
            residual = certify_representer(problem, gram.proof, c, float(b), 0.0, g).kkt[EQUALITY]
            dual, _ = _corner_terms(problem, t, reach, slopes, g)
            exact_sum = abs(sum(map(Fraction, dual.value.tolist())))
            error_sum = sum(map(Fraction, dual.error.tolist()))
            assert exact_sum <= error_sum
            assert Fraction(residual) >= exact_sum + error_sum  # the sum of any point within the errors
            assert residual <= 1e-13 * weight.sum() * max(1.0, np.abs(dual.value).max())
            assert (low <= dual.value - dual.error + 1e-13 * weight).all()
            assert (dual.value + dual.error <= high + 1e-13 * weight).all()
            assert certify_representer(free, gram.proof, c, float(b), 0.0, g).kkt[EQUALITY] == 0.0
            residuals.append(residual)
    assert max(residuals) > 0


def test_the_equality_residual_of_a_fit_is_that_of_its_coefficients():
    """With λ‖f‖² the dual point is −2λc, so that a bias makes Σc = 0."""
    for name, y in (("hinge", SIGNS), ("absolute", Y), ("epsilon_insensitive", Y), ("pinball", Y)):
        model = KernelMachine(name, 0.1, kernel=GAUSSIAN, tol=1e-9).fit(X, y)
        coefficients = model.dual_coef_[0].tolist()
        exact_sum, size = abs(sum(map(Fraction, coefficients))), sum(map(abs, coefficients))
        assert 2 * 0.1 * float(exact_sum) <= 1e-13 * size
        assert model.certificate_.kkt[EQUALITY] <= 1e-12 * size
        without = KernelMachine(name, 0.1, kernel=GAUSSIAN, bias=False, tol=1e-9).fit(X, y)
        assert without.certificate_.kkt[EQUALITY] <= 1e-12 * size  # the rounding of α − α* at most
        assert abs(without.dual_coef_.sum()) > 1e-3  # nothing else makes the sum 0


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("lam", [1e-4, 0.1, 100.0])
@pytest.mark.parametrize("penalty", ["squared_norm", "norm"])
def test_a_derivative_that_overflows_far_away_has_a_finite_gap(lam, bias, penalty):
    """exp(−yf) as a loss with subgradients only: the bounds enclose those of the same loss with its curvature."""

    class Exponential:
        kind = "classification"

        def value(self, y, f):
            return np.exp(-y * f)

        def gradient(self, y, f):
            return -y * np.exp(-y * f)

    class Smooth(Exponential):
        def curvature(self, y, f):
            return np.exp(-y * f)

    options = {"kernel": GAUSSIAN, "bias": bias, "penalty": penalty}
    proof, peer = (
        KernelMachineClassifier(loss, lam, **options).fit(X, SIGNS).certificate_ for loss in (Exponential(), Smooth())
    )
    assert proof.gap <= 1e-5 * proof.primal
    assert peer.gap <= 1e-5 * peer.primal
    assert proof.dual <= peer.primal
    assert peer.dual <= proof.primal


def test_the_bounds_of_an_unfinished_fit_are_true():
    best = KernelMachine(Bent(), 0.01, penalty="norm", kernel=GAUSSIAN).fit(X, Y).certificate_
    for steps in (1, 3, 8):
        model = KernelMachine(Bent(), 0.01, penalty="norm", kernel=GAUSSIAN, max_iter=steps)
        with pytest.warns(ConvergenceWarning, match="max_iter"):
            model.fit(X, Y)
        assert model.certificate_.dual <= best.primal
        assert model.certificate_.primal >= best.dual
        assert not model.certificate_.gap <= 1e-6 * best.primal


def test_a_loss_that_nothing_determines_has_a_minimum_of_zero():
    for penalty in ("squared_norm", "norm", Fourth()):
        model = KernelMachine("epsilon_insensitive", penalty=penalty, epsilon=5.0, kernel=GAUSSIAN).fit(X, Y)
        assert model.converged_
        assert not model.dual_coef_.any()
        assert 0 <= model.certificate_.gap <= 1e-200


@pytest.mark.parametrize("loss", [Bent(), EpsilonInsensitive(0.1)])
def test_a_solve_goes_on_from_an_earlier_solution(loss):
    problem, gram = RepresenterProblem(Y, WEIGHT, loss, 0.1, True), gram_for(GAUSSIAN, X)
    solution, certificate = solve_representer(problem, gram, Stop(1e-9, 100))
    again, same = solve_representer(problem, gram, Stop(1e-7, 100), solution)
    assert again.steps < solution.steps or again.steps == 0
    assert same.primal == pytest.approx(certificate.primal, rel=1e-7)


def test_the_proof_of_a_loss_of_ones_own_assumes_what_it_cannot_check():
    assert KernelMachine(Bent(), kernel=GAUSSIAN).fit(X, Y).certificate_.proves == "optimality if the loss is convex"
    assert KernelMachine("pinball", penalty="norm", kernel=GAUSSIAN).fit(X, Y).certificate_.proves == "optimality"


# --- what is refused, and files --------------------------------------------------------------------------------------


def test_losses_that_are_refused():
    class Falling(Bent):
        def gradient(self, y, f):
            return -np.sign(f - y)

    class Concave(Bent):
        def value(self, y, f):
            return np.sqrt(1 + np.abs(f - y))

        def gradient(self, y, f):
            return 0.5 * np.sign(f - y) / np.sqrt(1 + np.abs(f - y))

    class OneSided(Bent):
        def value(self, y, f):
            return np.maximum(0.0, f - y) + np.maximum(0.0, f - y - 1) + f

        def gradient(self, y, f):
            return 1.0 + (f > y) + (f > y + 1)

    class WithoutGradient:
        kind, value = "regression", Bent().value

    class Sums(Bent):
        def combine(self, y):
            return sp.eye_array(N), y

    for loss, message in [
        (Falling(), "correct the derivative"),
        (Concave(), "not convex"),
        (OneSided(), "set bias=False"),
        (Sums(), "needs a curvature"),
        (Pairwise(Hinge()), "RankSVM"),
    ]:
        with pytest.raises(ValueError, match=message):
            KernelMachine(loss, kernel=GAUSSIAN).fit(X, Y)
    assert KernelMachine(OneSided(), bias=False, kernel=GAUSSIAN).fit(X, Y).converged_
    with pytest.raises(TypeError, match="no gradient"):
        KernelMachine(WithoutGradient()).fit(X, Y)
    with pytest.raises(ValueError, match="early_stopping"):
        KernelMachine("absolute", early_stopping=True).fit(X, Y)
    for own in ({"loss": "pinball", "tau": 1.0}, {"loss": "epsilon_insensitive", "epsilon": -1.0}):
        with pytest.raises(ValueError, match=next(reversed(own))):
            KernelMachine(**own).fit(X, Y)


@pytest.mark.parametrize("own", [{"loss": "pinball", "tau": 0.3}, {"loss": "epsilon_insensitive", "epsilon": 0.2},
                                 {"loss": "absolute", "penalty": "norm"}])  # fmt: skip
def test_files_bring_back_the_same_predictions(own, tmp_path):
    model = KernelMachine(**own, lam=0.1, kernel=GAUSSIAN).fit(X, Y)
    mercer.save(model, tmp_path / "model.mercer")
    again = mercer.load(tmp_path / "model.mercer")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert str(again) == str(model)
    assert again.certificate_ == model.certificate_


def test_the_reference_agrees_with_the_losses():
    """The lines and conjugates that `enclose` uses, against values on a grid."""
    t = np.linspace(-3, 3, 2001)
    for name, loss in OBJECTS.items():
        for y in (-1.0, 1.0):
            values = loss.value(np.full(len(t), y), t)
            with hundred_digits():
                np.testing.assert_allclose(value(name, decimals(y), decimals(t)).astype(float), values, atol=1e-14)
                low, high = (float(side[0]) for side in subgradient_range(name, np.array([y])))
                for s in np.linspace(low, min(high, 1.5), 7):
                    expected = (s * t - values).max()
                    got = float(np.asarray(conjugate(name, decimals(y), decimals(np.array([s])))).ravel()[0])
                    assert got == pytest.approx(expected, abs=5e-3)
