"""The fewest errors against every labelling, and slack powers against a general minimiser (Mozharovskyi)."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import optimize

from mercer import SVC
from mercer.inspection.features import Monomials
from mercer.kernels import Gaussian, Linear
from mercer.notes.theory import few_errors, fewest_errors, least_slack_power
from mercer.notes.theory.few_errors import inseparable_rows
from reference.penalties import Fourth


def separable(X, y, bias):
    rows = y[:, None] * (np.column_stack([X, np.ones(len(X))]) if bias else X)
    if not len(rows):
        return True
    found = optimize.linprog(np.zeros(rows.shape[1]), A_ub=-rows, b_ub=-np.ones(len(rows)), bounds=(None, None))
    return found.status == 0


def by_enumeration(X, y, bias):
    for size in range(len(X)):
        for out in itertools.combinations(range(len(X)), size):
            if separable(np.delete(X, out, axis=0), np.delete(y, out), bias):
                return size
    return len(X)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_the_fewest_errors_are_those_of_an_enumeration(seed, bias):
    """Also with ties, copies of both labels, and points of a grid, where sums cancel exactly."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(8, 2)) if seed % 2 else rng.integers(-1, 2, (8, 2)).astype(float)
    y = np.where(rng.random(8) < 0.5, 1, -1)
    y[:2] = 1, -1
    found = fewest_errors(X, y, bias=bias)
    assert found.proven
    assert len(found.rows) == found.least == by_enumeration(X, y, bias)
    assert separable(np.delete(X, found.rows, axis=0), np.delete(y, found.rows), bias)
    if bias:  # far from the origin the same planes are there
        assert fewest_errors(X + 2.0**30, y).least <= found.least
        if seed % 2 == 0:
            assert fewest_errors(X + 2.0**30, y).proven


def test_more_rows_than_can_be_enumerated():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(50, 2))
    clean = np.where(X[:, 0] + 2 * X[:, 1] > 0.3, 1, -1)
    y = clean.copy()
    y[:5] *= -1
    found = fewest_errors(X, y)
    assert found.proven
    assert len(found.rows) <= 5
    assert len(found.rows) <= (SVC(kernel="linear", C=100.0).fit(X, y).predict(X) != y).sum()
    # In units that differ by ten powers of ten the same rows are apart.
    assert fewest_errors(X * [1e7, 1e-3], y).least == found.least
    # The planes of a kernel are those of its features: a circle has none in two dimensions.
    inside = np.where(X[:, 0] ** 2 + X[:, 1] ** 2 < 1, 1, -1)
    assert len(fewest_errors(X, inside, max_time=0.3).rows) > 5
    assert len(fewest_errors(Monomials((Linear() + 1) ** 2).fit_transform(X), inside).rows) == 0


def test_a_search_that_ends_early_has_its_bound(monkeypatch):
    ticks = itertools.count(step=0.01)  # a clock that does not depend on how busy the machine is
    monkeypatch.setattr(few_errors, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(150, 4)), np.where(rng.random(150) < 0.5, 1, -1)
    found = fewest_errors(X, y, max_time=1.0)
    assert 0 < found.least < len(found.rows) < 75
    assert not found.proven
    assert separable(np.delete(X, found.rows, axis=0), np.delete(y, found.rows), True)


def test_weights_that_prove_nothing_are_no_set():
    """Three rows in a plane always have a vanishing sum; only one without opposite signs is a proof."""
    apart = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    assert len(inseparable_rows(apart, np.ones(3))) == 0
    assert inseparable_rows(apart * [[1], [1], [-1]], np.ones(3)).tolist() == [0, 1, 2]
    assert inseparable_rows(np.array([[0.1, 0.2], [-0.1, -0.2], [0.3, 0.7]]), np.ones(3)).tolist() == [0, 1]
    # 0.1 + 0.2 is not 0.3: nearly opposite rows are no proof.
    assert len(inseparable_rows(np.array([[0.1 + 0.2, 1.0], [-0.3, -1.0]]), np.ones(2))) == 0


def test_bad_arguments():
    for bad, message in [
        ((np.zeros((3, 60)), [1, -1, 1]), "at most 50"),
        ((np.zeros((3, 2)), [1, -1]), "a label for each"),
        (([[np.nan], [0.0]], [1, -1]), "finite rows"),
    ]:
        with pytest.raises(ValueError, match=message):
            fewest_errors(*bad)
    for options, message in [({"power": 1.5}, "power=1.5"), ({"C": 0.0}, "C=0.0")]:
        with pytest.raises(ValueError, match=message):
            least_slack_power([[0.0], [1.0]], [-1, 1], **options)
    with pytest.raises(TypeError, match="outer"):
        least_slack_power([[0.0], [1.0]], [-1, 1], outer=2.0)


RNG = np.random.default_rng(1)
X = RNG.normal(size=(14, 2))
Y = np.where(X[:, 0] + 0.8 * RNG.normal(size=14) > 0, 1.0, -1.0)


class Square:
    def value(self, u):
        return u * u

    def derivative(self, u):
        return 2 * u


@pytest.mark.parametrize("C", [0.05, 1.0, 30.0])
@pytest.mark.parametrize("F", [Square(), Fourth()], ids=lambda F: type(F).__name__)
def test_the_least_value_of_a_convex_function_of_the_slacks(F, C):
    """In the variables w, b and ξ, by a general solver."""

    def value(v):
        return 0.5 * v[:2] @ v[:2] + C * F.value(v[3:].sum())

    def slope(v):
        return np.concatenate([v[:2], [0.0], np.full(14, C * F.derivative(v[3:].sum()))])

    rows = np.column_stack([Y[:, None] * X, Y, np.eye(14)])
    limits = [optimize.LinearConstraint(rows, 1, np.inf)]
    # From the soft margin, in units of its value: the solver is lost far from the optimum.
    first = SVC(kernel="linear", C=C, tol=1e-8).fit(X, Y)
    slack = np.maximum(0, 1 - Y * first.decision_function(X))
    start = np.concatenate([first.coef_[0], first.intercept_, slack])
    unit = value(start)
    peer = optimize.minimize(
        lambda v: value(v) / unit, start, jac=lambda v: slope(v) / unit, constraints=limits, method="SLSQP",
        bounds=[(None, None)] * 3 + [(0, None)] * 14, options={"ftol": 1e-14, "maxiter": 2000},
    )  # fmt: skip
    peer.fun *= unit
    found = least_slack_power(X, Y, kernel="linear", C=C, outer=F)
    assert found.value == pytest.approx(peer.fun, rel=1e-4)
    assert found.bound <= peer.fun * (1 + 1e-7)
    assert found.bound >= found.value * (1 - 1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_the_value_is_never_below_the_bound(seed):
    """All slacks count, also those of rounding: without them the value was 3e-8 below the optimum."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(30, 2))
    y = np.where(A[:, 0] + 0.6 * rng.normal(size=30) > 0, 1.0, -1.0)
    found = least_slack_power(A, y, kernel="linear", C=2.0)
    w, b = found.model.coef_[0], found.model.intercept_[0]
    assert found.value == pytest.approx(0.5 * w @ w + 2.0 * np.maximum(0, 1 - y * (A @ w + b)).sum(), rel=1e-12)
    assert found.bound <= found.value


def test_without_an_outer_function_it_is_the_soft_margin():
    found, peer = least_slack_power(X, Y, kernel="linear", C=2.0), SVC(kernel="linear", C=2.0, tol=1e-8).fit(X, Y)
    assert found.value == pytest.approx(peer.certificate_.primal, rel=1e-6)
    assert found.bound <= peer.certificate_.primal


@pytest.mark.parametrize("F", [None, Square()], ids=["F(u) = u", "F(u) = u²"])
@pytest.mark.parametrize("power", [0.5, 0.1])
@pytest.mark.parametrize("kernel", ["linear", Gaussian(gamma=0.3)], ids=str)
def test_below_one_the_value_is_no_more_than_that_of_the_sum(kernel, power, F):
    found = least_slack_power(X, Y, kernel=kernel, C=3.0, power=power, outer=F)

    def value(model):
        slack = np.maximum(0, 1 - Y * model.decision_function(X))
        total = np.sum(slack[slack > 1e-6] ** power)
        return 0.5 * float(np.ravel(model.rkhs_norm_)[0]) ** 2 + 3.0 * (total if F is None else F.value(total))

    assert found.value == pytest.approx(value(found.model))
    assert found.value <= value(least_slack_power(X, Y, kernel=kernel, C=3.0, outer=F).model)
    assert found.bound == -np.inf
    again = least_slack_power(X, Y, kernel=kernel, C=3.0, power=power, outer=F, start=[0, 1])
    assert again.value == pytest.approx(value(again.model))


def test_few_errors_by_a_small_power():
    """One far outlier costs a small power little, and the sum of slacks much."""
    x, y = np.array([[0.0], [1.0], [2.0], [3.0], [9.0]]), np.array([-1, -1, 1, 1, -1])
    fewest = fewest_errors(x, y)
    found = least_slack_power(x, y, kernel="linear", C=10.0, power=0.1, start=fewest.rows)
    assert (found.model.predict(x) != y).sum() == fewest.least == 1
    assert found.value < least_slack_power(x, y, kernel="linear", C=10.0, power=0.1).value
    # The rest is separated with the largest margin: 1 and 2 are nearest to the plane between them.
    assert found.model.decision_function([[1.5]])[0] == pytest.approx(0.0, abs=1e-2)
    assert found.model.decision_function([[2.0]])[0] == pytest.approx(1.0, abs=1e-2)


@pytest.mark.parametrize("columns", [[[1e300, 1e-300, -2e-300]], [[1e300, 1e-300, -2e-300], [1.0, 0.0, 0.0]]])
def test_no_digit_of_a_wide_column_is_lost(columns):
    found = fewest_errors(np.array(columns).T, [1, 1, -1], bias=False)  # w = 1 errs nowhere
    assert found.least == 0


class AlmostStraight:
    def value(self, u):
        return u + 2e-8 * u**2

    def derivative(self, u):
        return 1 + 4e-8 * u


class Steep:
    def value(self, u):
        return math.expm1(u)

    def derivative(self, u):
        return math.exp(u)


def test_the_bound_is_of_a_tangent():
    """Of an F that is nearly straight, the slope at 0 belongs to the value at 0."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 2)), np.where(rng.random(20) < 0.5, 1, -1)
    found = least_slack_power(X, y, kernel="linear", outer=AlmostStraight())
    assert found.bound <= found.value
    assert found.bound == pytest.approx(found.value, rel=1e-6)


def test_an_outer_function_without_a_slope_is_refused():
    X, y = np.arange(800.0)[:, None], np.arange(800) % 2
    with pytest.raises(ValueError, match="needs a finite slope"):
        least_slack_power(X, y, kernel="linear", outer=Steep())


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("seed", "largest"), [(0, 0.5), (1, 1.0), (2, 4.0), (3, 2000.0)])
def test_fewest_errors_of_an_expansion_by_brute_force(bias, seed, largest):
    """A set of rows can be right if a linear program finds |β| ≤ A with y f ≥ 1 on them."""
    rng = np.random.default_rng(seed)
    Z, y = rng.normal(size=(8, 1)), rng.choice([-1.0, 1.0], 8)
    y[:2] = 1.0, -1.0
    K = np.exp(-0.7 * (Z - Z.T) ** 2)
    signed = y[:, None] * (np.column_stack([K, np.ones(8)]) if bias else K)
    bounds = [(-largest, largest)] * 8 + [(None, None)] * bias

    def can_be_right(rows):
        A = -signed[list(rows)]
        return optimize.linprog(np.zeros(8 + bias), A_ub=A, b_ub=-np.ones(len(rows)), bounds=bounds).status == 0

    sizes = range(8, -1, -1)
    most = next(m for m in sizes if any(can_be_right(rows) for rows in itertools.combinations(range(8), m)))
    found = fewest_errors(Z, y, kernel=Gaussian(gamma=0.7), largest=largest, bias=bias)
    assert (len(found.rows), found.least) == (8 - most, 8 - most)
    assert can_be_right(np.setdiff1d(range(8), found.rows))


@pytest.mark.parametrize("largest", [0.01, 0.3, 5.0])
def test_a_bias_may_give_all_samples_the_label_of_most(largest):
    """All f are constant on equal samples, and b = ±1 is best, however small the coefficients must be."""
    found = fewest_errors(np.zeros((5, 1)), [1, -1, 1, 1, -1], kernel=Gaussian(gamma=1.0), largest=largest)
    assert found.rows.tolist() == [1, 4]
    assert found.proven


@pytest.mark.parametrize("unit", [1.0, 1e3])
def test_fewest_errors_of_lines_that_may_be_steep(unit):
    """No line is right on alternating labels; with |β| up to 10⁶ the program's tolerances said 0 errors, proven."""
    rng = np.random.default_rng(7)
    Z, y = unit * rng.normal(size=(7, 2)), np.array([1, -1, 1, -1, 1, -1, 1])
    truth = fewest_errors(Z, y)
    assert truth.proven
    assert truth.least > 0
    with pytest.raises(ValueError, match=r"pass a smaller `largest`, or scale the samples"):
        fewest_errors(Z, y, kernel=Linear(), largest=1e6 / unit)
    found = fewest_errors(Z, y, kernel=Linear(), largest=500.0 / unit**2)
    assert len(found.rows) >= found.least >= truth.least
