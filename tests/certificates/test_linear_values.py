"""Primal, dual and gap of linear machines against their values at the published (w, b) and β, in fractions.

Every term of an error in `mercer.certificates.linear` has a case here that fails without it.
"""

import math
from fractions import Fraction

import numpy as np
import pytest

from certificates.test_error_terms_of_rows import DeclaredRows
from mercer import LinearSVC, LinearSVR
from mercer.certificates.linear import certify_linear, row_length_bounds
from mercer.places.choose import rows_for
from mercer.problems.linear_problem import LinearProblem
from mercer.solvers.linear import referee

EQUALITY, COMBINATION = "dual feasibility: equality", "w is the combination Σβ_i x_i"
INF, TINY, LEAST = math.inf, 2.0**-1022, 2.0**-1074


def fractions(values):
    return [Fraction(value) for value in np.ravel(values).tolist()]


def dot(a, b):
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))


def loss(r, lower, upper, d):
    """max over t in [lower, upper] of rt − ½dt², for a fraction r; the bounds are floats, as they may be infinite."""
    t = r / d if d else (upper if r > 0 else lower) if r else Fraction(0)
    t = Fraction(lower) if t < lower else Fraction(upper) if t > upper else Fraction(t)
    return r * t - d * t * t / 2


def primal_value(problem, X, w, b):
    """P(w, b), with a tube's two sides as two losses."""
    w, b = fractions(w), Fraction(b)
    value = dot(w, w) / 2
    if problem.bias and problem.bias < INF:
        value += (b / Fraction(problem.bias)) ** 2 / 2
    for x, p, low, up, d, eps in zip(
        X, *map(fractions, (problem.p,)), problem.lower.tolist(), problem.upper.tolist(),
        *map(fractions, (problem.d, problem.epsilon)), strict=True,
    ):  # fmt: skip
        r = p - dot(fractions(x), w) - b
        sides = [(r - eps, 0.0, up), (r + eps, low, 0.0)] if eps else [(r, low, up)]
        value += sum(loss(*side, d) for side in sides)
    return value


def dual_value(problem, X, beta):
    """D(β) of fractions."""
    columns = [fractions(column) for column in X.T]
    value = dot(fractions(problem.p), beta) - sum(dot(column, beta) ** 2 for column in columns) / 2
    value -= dot(fractions(problem.epsilon), map(abs, beta)) + dot(fractions(problem.d), [c * c for c in beta]) / 2
    return value - (Fraction(problem.bias) * sum(beta)) ** 2 / 2 if problem.bias < INF else value


def best_feasible(problem, X, beta):
    """The largest D of feasible coefficients beside β: one variable takes the sum, or all take parts of it."""
    beta = fractions(beta)
    if problem.bias < INF or not sum(beta):
        return dual_value(problem, X, beta)
    total, found = sum(beta), []
    rooms = [c - low if total > 0 else up - c for c, low, up in zip(beta, problem.lower, problem.upper, strict=True)]
    for j, room in enumerate(rooms):
        if room >= abs(total):
            found.append([c - total * (i == j) for i, c in enumerate(beta)])
    if not found:
        rooms = list(map(Fraction, rooms))
        found.append([c - total * room / sum(rooms) for c, room in zip(beta, rooms, strict=True)])
    return max(dual_value(problem, X, one) for one in found)


def check(proof, problem, X, w, b, beta):
    primal, dual = primal_value(problem, X, w, b), best_feasible(problem, X, beta)
    assert proof.primal == INF or Fraction(proof.primal) >= primal
    assert proof.dual == -INF or Fraction(proof.dual) <= dual
    assert proof.gap == INF or Fraction(proof.gap) >= primal - dual
    return primal, dual


MACHINES = [
    *((LinearSVC, {"loss": loss, "C": C}) for loss in ("hinge", "squared_hinge") for C in (0.01, 3.0, 1e4)),
    *(
        (LinearSVR, {"loss": loss, "C": C, "epsilon": epsilon})
        for loss in ("epsilon_insensitive", "squared_epsilon_insensitive")
        for C in (0.01, 1e4)
        for epsilon in (0.0, 0.3)
    ),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("bias", [True, "regularized", False])
@pytest.mark.parametrize(("machine", "options"), MACHINES)
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_values_at_what_a_machine_publishes(monkeypatch, offset, machine, options, bias):
    """The certificate is that of the (w, b) and β that it was made from; X and b are those before centring."""
    made = []

    def certify(problem, rows, w, b, beta):
        proof = certify_linear(problem, rows, w, b, beta)
        order = np.argsort(np.argsort(rows.product(np.array([1.0, 0.0]))))  # rows may be in any order
        made.append((proof, problem, w, beta, order))
        return proof

    monkeypatch.setattr(referee, "certify_linear", certify)
    rng = np.random.default_rng(3)
    X = rng.normal(size=(14, 2)) + offset
    values = X[:, 0] - offset + 0.7 * rng.normal(size=14)
    for max_iter in (2, 1000):
        made.clear()
        model = machine(bias=bias, max_iter=max_iter, **options).fit(X, values > 0 if machine is LinearSVC else values)
        w, b = model.coef_.ravel(), float(np.ravel(model.intercept_)[0])
        same = [one for one in made if one[0].primal == model.certificate_.primal and np.array_equal(one[2], w)]
        assert same
        _, problem, _, beta, order = same[-1]
        primal, dual = check(model.certificate_, problem, X[np.argsort(X[:, 0])][order], w, b, beta)
        assert primal >= dual


def drawn(seed):
    """A random problem whose numbers are whole, ordinary, large beside each other or tiny, and a point of it."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    size = float(rng.choice([1.0, 1e-3, 1e8, 1e-60, 1e-150]))
    X, w = size * rng.normal(size=(n, d)), rng.normal(size=d) * rng.choice([0.0, 1.0, 1e9, 1e-155])
    p, C = rng.normal(size=n) * rng.choice([0.0, 1.0, 1e9, 1e-150]), rng.uniform(0.5, 3.0, n)
    squared, tube = rng.random() < 0.4, rng.random() < 0.4
    sides = rng.random() < 0.5
    lower = np.where((p > 0) & sides, 0.0, -INF if squared else -C)
    upper = np.where((p < 0) & sides, 0.0, INF if squared else C)
    curved = rng.uniform(0.1, 2.0, n) * rng.choice([1.0, 1e6]) if squared else np.zeros(n)
    epsilon = np.full(n, rng.uniform(0.1, 1.0) * rng.choice([1.0, 1e9])) if tube else np.zeros(n)
    bias = float(rng.choice([INF, INF, 0.7, 0.0]))
    beta = np.clip(rng.normal(size=n) * rng.choice([1.0, 1e-5, 1e-160, 0.0]), lower, upper)
    if rng.random() < 0.5 and n > 1:  # a sum that is nearly zero
        beta[-1] = np.clip(-beta[:-1].sum() * (1 + rng.integers(-1, 2) * 2.0**-50), lower[-1], upper[-1])
    if rng.random() < 0.5:
        w = X.T @ beta
    b = float(rng.normal() * rng.choice([1.0, 1e6])) if bias else 0.0
    return LinearProblem(p, lower, upper, curved, epsilon, bias), X, w, b, beta


@pytest.mark.parametrize("part", range(8))
def test_values_of_random_problems(part):
    for seed in range(150 * part, 150 * (part + 1)):
        problem, X, w, b, beta = drawn(seed)
        proof = certify_linear(problem, rows_for(X, 1), w, b, beta)
        check(proof, problem, X, w, b, beta)
        total = abs(sum(fractions(beta)))
        assert Fraction(proof.kkt[EQUALITY]) >= total * (bias_is_free := problem.bias == INF)
        assert bias_is_free or proof.kkt[EQUALITY] == 0
        missed = [
            Fraction(v) - dot(fractions(column), fractions(beta)) for v, column in zip(w.tolist(), X.T, strict=True)
        ]
        assert Fraction(proof.kkt[COMBINATION]) >= max(map(abs, missed))


def problem_of(p, C, *, d=0.0, epsilon=0.0, bias=INF):
    p = np.array(p, dtype=float)
    bound = np.broadcast_to(np.array(C, dtype=float), p.shape)
    full = [np.full(len(p), float(value)) for value in (d, epsilon)]
    return LinearProblem(p, -bound, +bound, *full, bias)


BIG = 2.0**54  # where 1 is lost beside it
RESIDUALS = {
    "p": (problem_of([BIG, BIG], 9.0), [[-1.0], [1.0]], 0.0),
    "f": (problem_of([-1.0, 1.0], 9.0), [[0.0], [0.0]], BIG),
    "ε": (problem_of([-1.0, 1.0], 9.0, epsilon=BIG), [[0.0], [0.0]], 0.0),
    "dβ": (problem_of([-1.0, 1.0], INF, d=BIG), [[0.0], [0.0]], 0.0),
}


@pytest.mark.parametrize("name", RESIDUALS)
def test_every_number_of_a_residual_may_hide_the_others(name):
    """p − ε − f − dβ of two samples with β = 1 differ by 2, of which float64 has nothing."""
    problem, X, b = RESIDUALS[name]
    proof = certify_linear(problem, DeclaredRows(np.array(X)), np.ones(1), b, np.ones(2))
    assert proof.violation >= 2.0


def test_an_error_of_f_that_hides_the_residual():
    """f = −2⁵⁴ is known as 0 ± 2⁵⁴, and p − f = 2⁵⁴ + 1."""
    rows = DeclaredRows(np.full((1, 1), -BIG), shift=BIG, told=BIG)
    proof = certify_linear(problem_of([1.0], 9.0, bias=0.0), rows, np.ones(1), 0.0, np.ones(1))
    assert Fraction(proof.violation) >= Fraction(BIG) + 1


class TwoParts(DeclaredRows):
    """Rows whose combination X'β = 1 is the sum of two numbers, of which `away` is the second."""

    def combination(self, beta, limit=0.0):
        return self.X.T @ beta - self.away, np.full(self.d, self.away), 0.0


@pytest.mark.parametrize(
    ("w", "low"), [(0.75, 0.25), (2.0**-54, 1.0 - 2.0**-53), (2.0**54, 2.0**54), (-(2.0**54), -3.0)]
)
def test_both_parts_of_the_combination_count(w, low):
    problem = problem_of([1.0], 9.0, bias=0.0)
    rows, w = TwoParts(np.ones((1, 1)), away=low), np.array([w])
    proof = certify_linear(problem, rows, w, 0.0, np.ones(1))
    check(proof, problem, rows.X, w, 0.0, np.ones(1))
    assert Fraction(proof.kkt[COMBINATION]) >= abs(Fraction(w[0]) - 1)


def test_a_difference_that_a_second_part_cancels():
    """w − hi = 1 + 2⁻⁵⁴ is 1 in float64, and lo = 1."""
    rows = TwoParts(np.full((1, 1), 1 - 2.0**-53), away=1.0)
    w = np.array([1.0])
    proof = certify_linear(problem_of([1.0], 9.0, bias=0.0), rows, w, 0.0, np.ones(1))
    assert Fraction(proof.kkt[COMBINATION]) >= Fraction(2) ** -53


@pytest.mark.parametrize("beta", [[1e16, 1.0, -1e16], [1e308, 1e308, -1e308], [-1e308, 1e308, 1e308, -1e308, -1e308]])
def test_the_rounding_of_the_sum_that_a_penalised_bias_multiplies_is_in_the_dual_value(beta):
    problem, X = problem_of(np.zeros(len(beta)), INF, d=1e-300, bias=1e4), np.zeros((len(beta), 1))
    proof = certify_linear(problem, rows_for(X, 1), np.zeros(1), 0.0, np.array(beta))
    assert proof.dual == -INF or Fraction(proof.dual) <= dual_value(problem, X, fractions(beta))


def test_a_bias_that_is_not_the_combination_is_in_the_violation():
    """w = X'β = 0 and b = 1, but B²Σβ = 0: ½ of a primal value of ½."""
    proof = certify_linear(
        problem_of([1.0], 9.0, bias=1.0), rows_for(np.zeros((1, 1)), 1), np.zeros(1), 1.0, np.zeros(1)
    )
    assert proof.violation >= 1 - 1e-12


def test_coefficients_outside_of_their_box_prove_nothing():
    proof = certify_linear(problem_of([1.0], 0.5, bias=0.0), rows_for(np.ones((1, 1)), 1), np.ones(1), 0.0, np.ones(1))
    assert (proof.dual, proof.gap, proof.violation) == (-INF, INF, INF)


def test_curvatures_whose_products_underflow():
    """½dβ² is about 1e-299, but dβ has only a few digits."""
    for k in range(1, 40):
        beta = np.array([(1 + k / 41) * 1e12])
        problem = problem_of([0.0], INF, d=3 * LEAST, bias=0.0)
        proof = certify_linear(problem, rows_for(np.zeros((1, 1)), 1), np.zeros(1), 0.0, beta)
        check(proof, problem, np.zeros((1, 1)), np.zeros(1), 0.0, beta)


@pytest.mark.parametrize("f", [math.nan, INF, -INF])
def test_outputs_that_are_no_numbers_prove_nothing(f):
    rows = DeclaredRows(np.ones((1, 1)), shift=f, told=INF)
    proof = certify_linear(problem_of([1.0], 9.0, bias=0.0), rows, np.ones(1), 0.0, np.ones(1))
    assert (proof.primal, proof.gap, proof.violation) == (INF, INF, INF)


@pytest.mark.parametrize("beta", [[1e308, 1e308], [math.nan, 1.0], [INF, -INF]])
def test_sums_that_are_not_known(beta):
    problem = problem_of([0.0, 0.0], INF)
    proof = certify_linear(problem, DeclaredRows(np.zeros((2, 1))), np.zeros(1), 0.0, np.array(beta))
    assert (proof.kkt[EQUALITY], proof.dual) == (INF, -INF)


# A sum that is not zero: (problem, X, w, β). The feasible coefficients nearby have dual values far below that of β.
SUMS = {
    "a side of the tube": (problem_of([10.0, 0.0], [1.0, 2.0], epsilon=1.0), [[0.0]] * 2, 0.0, [1.0, -0.6]),
    "both sides of the tube": (
        problem_of([-10.0, -1.0, 10.0], [1.0, 5.0, 0.7], epsilon=1.0), [[0.0]] * 3, 0.0, [-1.0, -0.1, 0.7],
    ),
    "parts of the sum": (
        problem_of([10.0, 0.0, 0.0], [1.0, 0.5, 0.5], epsilon=1.0), [[0.0]] * 3, 0.0, [1.0, -0.3, -0.3],
    ),
    "w far from X'β": (problem_of([1.0], 5.0), [[1.0]], 1.0, [1e-3]),
    "w far from X'β, no room": (problem_of([1.0], 1.5), [[1.0]], 1.0, [1.0 + 2.0**-20]),
    "w far from X'β, squares that underflow": (problem_of([1e-25], 5.0), [[1e-165]], 1e140, [1.0]),
    "squares that underflow, no room": (problem_of([1e-25], 1.5), [[1e-165]], 1e140, [1.0]),
    "curvature": (problem_of([0.0, 0.0], INF, d=1e3), [[0.0]] * 2, 0.0, [1.0, -0.5]),
    "lengths": (problem_of([0.0, 0.0], 9.0), [[30.0], [31.0]], 0.0, [0.0, 1e-3]),
}  # fmt: skip


@pytest.mark.parametrize("name", SUMS)
def test_what_moving_a_sum_takes(name):
    problem, X, w, beta = SUMS[name]
    X, w, beta = np.array(X), np.array([w]), np.array(beta)
    for b in (0.0, 2.0, -3.0):
        proof = certify_linear(problem, DeclaredRows(X), w, b, beta)
        check(proof, problem, X, w, b, beta)


def test_lengths_of_rows_are_upper_bounds():
    rng = np.random.default_rng(0)
    for size in (1.0, 1e-160, 1e-170):
        X = size * rng.normal(size=(50, 3))
        for x, length in zip(X, row_length_bounds(rows_for(X, 1)).tolist(), strict=True):
            assert Fraction(length) ** 2 >= dot(fractions(x), fractions(x))
