"""Any increasing penalty, losses that are no sum over samples, and early stopping inside of a fit (Igel 2.2, 4.2.3)."""

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

from mercer import KernelMachine, KernelMachineClassifier, KernelMachineRegressor, kernels
from mercer.certificates.representer import certify_representer
from mercer.places import gram_for
from mercer.places.ball import Ball
from mercer.problems.losses import Huber, Logistic, Pairwise, Squared, SquaredHinge
from mercer.problems.penalties import Norm, SquaredNorm
from mercer.problems.representer import RepresenterProblem
from mercer.samples.arrays import gamma
from reference.losses import LogCosh
from reference.penalties import Fourth, Mixed

rng = np.random.default_rng(8)
N = 40
X = rng.normal(size=(N, 2))
Y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=N)
SIGNS = np.where(Y > 0.2, 1.0, -1.0)
WEIGHT = rng.integers(0, 3, N).astype(float)
GAUSSIAN = kernels.Gaussian(gamma=0.7)
K = GAUSSIAN(X)
VALUES, VECTORS = np.linalg.eigh(K)
ROOT = VECTORS * np.sqrt(np.maximum(VALUES, 0.0))


def least(loss, penalty, lam, y, weight, bias, A=None):
    """The minimum by a general minimiser, in the coordinates of K's square root, from a point beside 0."""
    A = np.eye(len(K)) if A is None else A

    def both(v):
        w, b = v[:-1], v[-1] * bias
        t, r = A @ (ROOT @ w + b), np.sqrt(v[:-1] @ v[:-1])
        g = A.T @ (weight * loss.gradient(y, t))
        slope = np.append(ROOT.T @ g + lam * penalty.derivative(r) * w / r, g.sum() * bias)
        return np.sum(weight * loss.value(y, t)) + lam * penalty.value(r), slope

    start = np.append(0.1 * ROOT.T @ (Y - Y.mean()), 0.0)
    options = {"maxiter": 20000, "maxfun": 50000, "ftol": 1e-16, "gtol": 1e-10}
    return minimize(both, start, jac=True, method="L-BFGS-B", options=options).fun


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    "penalty", ["norm", Fourth(), Mixed()], ids=lambda p: p if isinstance(p, str) else type(p).__name__
)
@pytest.mark.parametrize("loss", [Squared(), Huber(0.3), Logistic(), LogCosh()], ids=lambda loss: type(loss).__name__)
def test_the_value_is_that_of_a_general_minimiser(loss, penalty, bias):
    y = SIGNS if loss.kind == "classification" else Y
    make = KernelMachineClassifier if loss.kind == "classification" else KernelMachineRegressor
    model = make(loss, 0.5, penalty=penalty, kernel=GAUSSIAN, bias=bias, tol=1e-8).fit(X, y, sample_weight=WEIGHT)
    found = least(loss, Norm() if penalty == "norm" else penalty, 0.5, y, WEIGHT, bias)
    proof = model.certificate_
    assert model.converged_
    assert proof.dual <= found * (1 + 1e-9)
    assert proof.primal <= found * (1 + 2e-8)
    assert proof.relative_gap <= 2e-8
    known = penalty == "norm" and not isinstance(loss, LogCosh)
    assert proof.proves == (
        "optimality" if known else "optimality if loss and penalty are convex and the loss is not negative"
    )


def test_the_squared_norm_as_an_object_of_ones_own_is_the_named_one():
    class Own(SquaredNorm):
        """Is not known, but the same."""

    class Plain:
        value, derivative = staticmethod(lambda r: r * r), staticmethod(lambda r: 2 * r)

    expected = KernelMachine("huber", 0.3, kernel=GAUSSIAN, tol=1e-10).fit(X, Y)
    for penalty in (Own(), Plain()):
        model = KernelMachine("huber", 0.3, penalty=penalty, kernel=GAUSSIAN, tol=1e-10).fit(X, Y)
        np.testing.assert_allclose(model.predict(X), expected.predict(X), atol=1e-5)
        assert model.certificate_.dual == pytest.approx(expected.certificate_.dual, rel=1e-9)


def test_the_norm_makes_f_zero_where_its_price_is_large():
    """f = 0 is optimal exactly if ‖Σ g_i k(x_i, ·)‖ ≤ λ at the best constant."""
    g = 2 * (Y.mean() - Y)
    edge = np.sqrt(g @ K @ g)
    above = KernelMachine("squared", 1.001 * edge, penalty="norm", kernel=GAUSSIAN).fit(X, Y)
    assert not above.dual_coef_.any()
    assert above.intercept_[0] == pytest.approx(Y.mean())
    assert above.certificate_.relative_gap < 1e-12
    below = KernelMachine("squared", 0.999 * edge, penalty="norm", kernel=GAUSSIAN).fit(X, Y)
    c = below.dual_coef_[0]
    assert 0 < np.sqrt(c @ K @ c) < 0.01
    assert below.converged_


@pytest.mark.parametrize("penalty", [Fourth(), Mixed()], ids=lambda p: type(p).__name__)
@pytest.mark.parametrize("scale", [0.0, 0.01, 0.3, 3.0])
def test_the_dual_value_is_fenchels(penalty, scale):
    """−Σ L*(g) − λΩ*(‖G‖/λ) written out, at any c."""
    c, lam = scale * rng.normal(size=N), 0.4
    problem = RepresenterProblem(Y, WEIGHT, Squared(), lam, False, penalty)
    proof = certify_representer(problem, gram_for(GAUSSIAN, X), c, 0.0)
    g = WEIGHT * 2 * (K @ c - Y)
    used = WEIGHT > 0
    s = g[used] / WEIGHT[used]
    dual = -np.sum(WEIGHT[used] * (s * Y[used] + s**2 / 4)) - lam * penalty.conjugate(np.sqrt(g @ K @ g) / lam)
    slack = 1e-9 * (abs(dual) + proof.primal)
    assert proof.dual >= dual - slack  # the bound on ‖f*‖ may make it better
    best = least(Squared(), penalty, lam, Y, WEIGHT, False)
    assert proof.dual <= best <= proof.primal + slack


@pytest.mark.parametrize("c", [np.zeros(N), 0.3 * rng.normal(size=N)], ids=["zero", "random"])
def test_no_point_is_below_what_an_unfinished_norm_claims(c):
    for lam in (1e-3, 0.1, 10.0):
        problem = RepresenterProblem(Y, WEIGHT, Huber(0.3), lam, False, Norm())
        proof = certify_representer(problem, gram_for(GAUSSIAN, X), c, 0.0)
        best = least(Huber(0.3), Norm(), lam, Y, WEIGHT, False)
        assert proof.dual <= best * (1 + 1e-9)
        assert proof.primal >= best * (1 - 1e-9)


def test_penalties_that_are_refused():
    class Falling:
        value, derivative = staticmethod(lambda r: -r), staticmethod(lambda r: -1.0)

    class Concave:
        value, derivative = staticmethod(np.sqrt), staticmethod(lambda r: 0.5 / np.sqrt(r))

    class Wrong:
        value, derivative = staticmethod(lambda r: r**3), staticmethod(lambda r: 2 * r**2)

    for penalty, message in [
        (Falling(), "must increase"),
        (Concave(), "not convex"),
        (Wrong(), "correct the derivative"),
        ("cubed", "must be one of"),
    ]:
        with pytest.raises(ValueError, match=message):
            KernelMachine("huber", penalty=penalty).fit(X, Y)
    with pytest.raises(TypeError, match="value\\(r\\) and derivative\\(r\\)"):
        KernelMachine("huber", penalty=3).fit(X, Y)


# --- losses that are no sum over samples ---------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", [SquaredNorm(), Norm()], ids=lambda p: type(p).__name__)
@pytest.mark.parametrize("inner", [Logistic(), SquaredHinge()], ids=lambda loss: type(loss).__name__)
def test_pairs_against_every_pair_written_out(inner, penalty):
    i, j = np.nonzero(Y[:, None] > Y)
    A = np.zeros((len(i), N))
    A[np.arange(len(i)), i], A[np.arange(len(i)), j] = 1.0, -1.0
    model = KernelMachine(Pairwise(inner), 2.0, penalty=penalty, kernel=GAUSSIAN, tol=1e-9).fit(X, Y)
    found = least(inner, penalty, 2.0, np.ones(len(i)), np.ones(len(i)), False, A)
    assert model.converged_
    assert model.certificate_.dual <= found * (1 + 1e-9)
    assert model.certificate_.primal <= found * (1 + 1e-8)
    assert model.certificate_.proves == "optimality"
    assert model.intercept_ == [0.0]
    f = model.predict(X)
    assert np.mean(f[i] > f[j]) > 0.8
    # f is in the span of the samples, and 2λc = −A'ℓ′ there, or less of the norm.
    c = model.dual_coef_[0]
    slope = 2 * 2.0 if isinstance(penalty, SquaredNorm) else 2.0 / np.sqrt(c @ K @ c)
    np.testing.assert_allclose(slope * c, -A.T @ inner.gradient(1.0, A @ f), atol=2e-3)


def test_a_loss_of_means_of_groups():
    """Only the mean of each group of rows is known."""

    class Means:
        kind, value, gradient, curvature = "regression", Squared().value, Squared().gradient, Squared().curvature

        def combine(self, y):
            groups = np.arange(N) // 10
            A = sp.csr_array((np.full(N, 0.1), (groups, np.arange(N))), shape=(4, N))
            return A, A @ y

    model = KernelMachine(Means(), 0.5, kernel=GAUSSIAN, bias=False, tol=1e-12).fit(X, Y)
    A, z = Means().combine(Y)
    A = A.toarray()
    expected = A.T @ np.linalg.solve(A @ K @ A.T + 0.5 * np.eye(4), z)
    np.testing.assert_allclose(model.dual_coef_[0], expected, atol=1e-8)
    with pytest.raises(ValueError, match="set bias=False"):
        KernelMachine(Means(), 0.5).fit(X, Y)
    with pytest.raises(ValueError, match="sample_weight"):
        KernelMachine(Means(), 0.5, bias=False).fit(X, Y, sample_weight=WEIGHT)
    with pytest.raises(ValueError, match="early_stopping"):
        KernelMachine(Means(), 0.5, bias=False, early_stopping=True).fit(X, Y)
    with pytest.raises(ValueError, match="cache_size"):
        KernelMachine(Means(), 0.5, bias=False, cache_size=0.01).fit(X, Y)

    class Wide(Means):
        def combine(self, y):
            return sp.eye_array(3), np.ones(3)

    with pytest.raises(ValueError, match="column for each of the 40 samples"):
        KernelMachine(Wide(), 0.5, bias=False).fit(X, Y)


def test_sums_of_values_have_true_bounds():
    """Af of every x within its error, in rational numbers."""
    draws = np.random.default_rng(2)
    for scale in (1.0, 1e8):
        A = sp.csr_array(np.where(draws.random((6, 9)) < 0.5, draws.normal(size=(6, 9)), 0.0))
        x, error = scale + draws.normal(size=9), 1e-9 * draws.random(9)
        got, off = Ball(x, error).transformed(A)
        for _ in range(20):
            moved = [Fraction(v) + Fraction(e) * int(draws.choice([-1, 0, 1])) for v, e in zip(x, error, strict=True)]
            for i, row in enumerate(A.toarray()):
                true = sum(Fraction(a) * v for a, v in zip(row.tolist(), moved, strict=True))
                assert abs(true - Fraction(got[i])) <= Fraction(off[i])
        assert (off[np.diff(A.indptr) > 1] > gamma(2) * (abs(A) @ np.abs(x))[np.diff(A.indptr) > 1]).all()


def test_errors_that_a_sum_in_floats_drops_are_counted():
    """1 + 2⁻⁵³ + … + 2⁻⁵³ is 1 in floats, added from the left, and 1 + 8·2⁻⁵³ in fractions."""
    error = np.array([1.0, *[2.0**-53] * 8])
    off = Ball(np.zeros(9), error).transformed(sp.csr_array(np.ones((1, 9)))).error
    assert Fraction(off[0]) >= sum(map(Fraction, error.tolist()))


def test_the_proof_of_pairs_counts_rounding():
    """Values of 10⁹ leave differences that are known to 10⁻⁷ only; the claims must allow for that."""
    far = kernels.Linear()
    samples = 2.0**20 + np.arange(12.0)[:, None] / 64
    y = np.arange(12.0)
    model = KernelMachine(Pairwise(), 1e-3, kernel=far, tol=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(samples, y)
    proof = model.certificate_
    # The truth: only w counts, and differences of samples are exact.
    i, j = np.nonzero(y[:, None] > y)
    d = (samples[i] - samples[j])[:, 0]
    found = minimize(lambda w: np.logaddexp(0, -w * d).sum() + 1e-3 * w * w, 1.0, tol=1e-14, method="Nelder-Mead").fun
    assert proof.dual <= found * (1 + 1e-9)
    assert proof.primal >= found * (1 - 1e-9)


# --- early stopping -------------------------------------------------------------------------------------------


def test_a_fit_stops_when_the_smoothed_validation_loss_rises():
    options = {"lam": 1e-9, "kernel": kernels.Gaussian(gamma=3.0)}
    early = KernelMachineClassifier("logistic", early_stopping=True, validation_fraction=0.3, **options).fit(X, SIGNS)
    assert early.stop_reason_ == "early stopping"
    assert early.converged_
    losses = early.validation_loss_[0]
    assert np.argmin(losses) < len(losses) - 1
    left_out = early.dual_coef_[0] == 0
    assert left_out.sum() == round(0.3 * N)
    f = early.decision_function(X[left_out])
    assert Logistic().value(SIGNS[left_out], f).mean() == pytest.approx(losses.min(), rel=1e-9)
    smoothed = np.convolve(losses, [0.5, 0.5], "valid")
    assert smoothed[-1] > 1.05 * smoothed.min()
    assert (smoothed[:-1] <= 1.05 * np.minimum.accumulate(smoothed)[:-1]).all()
    # What is certified is the function that was kept, on the other samples.
    rest = ~left_out
    full = KernelMachineClassifier("logistic", **options).fit(X[rest], SIGNS[rest])
    assert early.certificate_.dual <= full.certificate_.primal
    assert early.certificate_.primal > 10 * full.certificate_.primal


def test_early_stopping_of_several_classes_and_of_none():
    y = np.digitize(Y, [-0.4, 0.4])
    model = KernelMachineClassifier("squared_hinge", 1e-6, early_stopping=True, kernel=GAUSSIAN).fit(X, y)
    assert model.validation_loss_.shape[0] == 3
    # One step solves least squares: nothing is left to stop, and the last step is kept where it is the best.
    one = KernelMachineRegressor("squared", 0.5, early_stopping=True, kernel=GAUSSIAN).fit(X, Y)
    assert one.stop_reason_ == "converged"
    with pytest.raises(ValueError, match="PegasosSVC"):
        KernelMachine("hinge", early_stopping=True).fit(X, SIGNS)
    with pytest.raises(ValueError, match="lower validation_fraction"):
        KernelMachine("logistic", early_stopping=True, validation_fraction=0.9).fit(X[:6], [1, -1, 1, 1, 1, 1])
    with pytest.raises(ValueError, match="lower validation_fraction"):
        KernelMachine("squared", early_stopping=True, validation_fraction=0.9).fit(X[:3], Y[:3])
    with pytest.raises(ValueError, match="other penalties than"):
        KernelMachine("logistic", penalty="norm", early_stopping=True).fit(X, SIGNS)
    with pytest.raises(ValueError, match="validation_fraction"):
        KernelMachine("logistic", validation_fraction=1.0).fit(X, SIGNS)


@pytest.mark.parametrize("penalty", ["squared_norm", "norm"])
@pytest.mark.parametrize(("offset", "lam"), [(1e6, 1e-2), (1e9, 1e-2), (0.0, 1e-10)])
def test_a_large_loss_at_the_start_does_not_make_a_wide_gap_good_enough(penalty, offset, lam):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = KernelMachine("squared", lam, penalty=penalty, kernel=GAUSSIAN, tol=1e-8).fit(X, Y + offset)
    proof = model.certificate_
    assert proof.gap <= 2e-8 * proof.primal or not model.converged_
    if offset:
        plain = KernelMachine("squared", lam, penalty=penalty, kernel=GAUSSIAN, tol=1e-8).fit(X, Y)
        assert proof.primal == pytest.approx(plain.certificate_.primal, rel=1e-3)  # only b follows the offset


def test_zero_and_equal_classes_have_a_finite_gap():
    signs = np.repeat([-1.0, 1.0], N // 2)
    model = KernelMachine("logistic", 1e3, penalty="norm", kernel=GAUSSIAN).fit(X, signs)
    assert not model.dual_coef_.any()
    assert model.converged_
    assert 0 <= model.certificate_.gap < 1e-10


class Exponential:
    def value(self, r):
        return math.expm1(r)  # raises OverflowError above 709

    def derivative(self, r):
        return math.exp(r)


def test_a_penalty_that_overflows_at_first_has_its_minimum_found():
    y = 1e4 * Y
    model = KernelMachine("squared", 0.1, penalty=Exponential(), kernel=GAUSSIAN, bias=False).fit(X, y)
    proof = model.certificate_
    assert model.converged_
    c = model.dual_coef_.ravel()
    r = math.sqrt(c @ K @ c)
    assert 1 < r < 100
    # 2μr = λ exp(r) at the price μ of the squared norm with the same minimiser.
    price = 0.1 * math.exp(r) / (2 * r)
    np.testing.assert_allclose(c, np.linalg.solve(K + price * np.eye(N), y), rtol=1e-4, atol=1e-6 * np.abs(c).max())
    assert proof.primal == pytest.approx(np.sum((y - K @ c) ** 2) + 0.1 * math.expm1(r))
