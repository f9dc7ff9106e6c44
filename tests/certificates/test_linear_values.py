"""Primal, dual and gap of linear machines against their values at the published (w, b) and β, in fractions.

Every term of an error in `mercer.certificates.linear` has a case here that fails without it.
"""

import math
from fractions import Fraction

import numpy as np
import pytest

from mercer import LinearSVC, LinearSVR
from mercer.certificates.linear import certify_linear
from mercer.gram.places import rows_for
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
