"""All pairs in one call reach the optima of the general solver, with correct certificates."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, make_blobs, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC as Peer

from mercer import SVC, _core
from mercer.certificates.dual import certify_dual
from mercer.certificates.table import pair_certificates
from mercer.estimators.fitting.pipeline import task
from mercer.kernels import Gaussian, Linear, Precomputed
from mercer.places import gram_for
from mercer.places.host.pair_place import Layout
from mercer.problems.classification import hulls, soft_margin, squared_soft_margin
from mercer.problems.dual_problem import DualProblem
from mercer.runtime.errors import NonPSDKernelWarning
from mercer.solvers import SOLVERS
from mercer.solvers.dual import pairs
from mercer.solvers.dual.certified import solve_certified
from mercer.solvers.dual.pairs import solvable_pairs, solve_pairs_together
from mercer.solvers.solution import Solution, Stop
from reference.certificate import certificate as truth

STOP = Stop(tol=1e-3, max_iter=10**7)


def classes(n=400, k=5, d=6, seed=0):
    X, y = make_classification(
        n, d, n_informative=d, n_redundant=0, n_classes=k, n_clusters_per_class=1, flip_y=0.1, random_state=seed
    )
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def all_pairs(X, y, make):
    """Return the blocks and the problem of every pair."""
    members = [np.flatnonzero(y == k) for k in range(y.max() + 1)]
    blocks = [(members[a], members[b]) for a in range(len(members)) for b in range(a + 1, len(members))]
    return blocks, [make(np.repeat([1.0, -1.0], [len(a), len(b)])) for a, b in blocks]


def solve_pairs(problems, blocks, gram, stop, n_threads):
    """Return the solution of each problem, and its certificate if it is solved."""
    p, lower, upper, d, group = (
        np.concatenate([getattr(one, name) for one in problems]) for name in ("p", "lower", "upper", "d", "group")
    )
    known = {id(block): block for both in blocks for block in both}
    layout = Layout.of(list(known.values()), np.array([[list(known).index(id(block)) for block in b] for b in blocks]))
    whole = DualProblem(p, lower, upper, d, np.arange(len(p)), group, problems[0].totals)
    found = solve_pairs_together(whole, layout, gram, stop, n_threads)
    if found is None:
        return None
    reasons = np.where(found.solved, "converged", "stalled").tolist()
    cuts = [slice(begin, end) for begin, end in pairwise(layout.offsets)]
    return [
        (Solution(found.beta[cut], int(found.steps[k]), reasons[k], u=found.u[cut]), found.certificates[k])
        if found.solved[k]
        else (Solution(found.beta[cut], int(found.steps[k]), reasons[k], u=found.u[cut]), None)
        for k, cut in enumerate(cuts)
    ]


def made(slack, bias):
    def make(y):
        C = np.where(y > 0, 3.0, 2.0)
        problem = soft_margin(y, C) if slack == "l1" else squared_soft_margin(y, C)
        return problem if bias else problem.without_bias()

    return make


@pytest.fixture
def alone(monkeypatch):
    """Disable the general solver: every solution comes from the one call."""

    def broken(*arguments, **options):
        raise AssertionError("the general solver was asked")

    monkeypatch.setitem(SOLVERS, "auto", broken)


@pytest.fixture
def asked(monkeypatch):
    """Count the calls for all pairs."""
    calls = []

    def watched(*arguments):
        calls.append(arguments[1].n)
        return solve_pairs_together(*arguments)

    monkeypatch.setattr(task, "solve_pairs_together", watched)
    return calls


# --- what is found ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("slack", ["l1", "l2"])
def test_each_certificate_is_the_naive_one(slack, bias):
    X, y = classes(150)
    gram = gram_for(Gaussian(gamma=0.2), X)
    blocks, problems = all_pairs(X, y, made(slack, bias))
    for (solution, found), problem, both in zip(
        solve_pairs(problems, blocks, gram, STOP, 2), problems, blocks, strict=True
    ):
        rows = np.concatenate(both)
        expected = truth(problem, Gaussian(gamma=0.2)(X[rows]), solution.beta)
        assert expected.violation - 1e-14 <= found.violation <= expected.violation + 1e-9
        assert found.violation <= STOP.tol
        assert expected.primal * (1 - 1e-13) <= found.primal <= expected.primal * (1 + 1e-9)
        assert expected.dual * (1 - 1e-9) <= found.dual <= expected.dual * (1 + 1e-13)
        assert expected.gap - 1e-12 <= found.gap <= expected.gap + 1e-7
        assert found.b == pytest.approx(tuple(expected.b), abs=1e-12)
        assert expected.terms[found.worst] == pytest.approx(expected.terms.max(), abs=1e-12)
        assert found.kkt == pytest.approx(expected.kkt, abs=1e-9)
        assert found.proves == "optimality"
        np.testing.assert_allclose(solution.u, expected.u, atol=1e-12)


def test_a_certificate_says_what_a_wrong_answer_is_worth():
    """At arbitrary points: feasible ones, and those outside their bounds or with a wrong sum."""
    X, y = classes(60, 3)
    blocks, problems = all_pairs(X, y, made("l1", True))
    drawn = np.random.default_rng(0).choice([-3.5, 0.0, 2.0], problems[0].n_variables)
    K = Gaussian(gamma=0.2)(X[np.concatenate(blocks[0])])
    problem, offsets, reach = problems[0], np.array([0, len(drawn)]), np.ones(len(drawn))
    feasible, inside = problem.nearest_feasible(drawn), np.clip(drawn, problem.lower, problem.upper)
    slightly = feasible.copy()
    slightly[np.argmax(np.abs(slightly))] *= 0.9
    for beta in (feasible, slightly, inside, drawn):
        box = problem.p, problem.lower, problem.upper, problem.d
        rows, sizes = np.arange(len(beta)), np.abs(beta).sum(keepdims=True)
        found = _core.pair_findings(offsets, *box, K @ beta, beta, rows, sizes, 0 * reach, reach, True, 1)
        certificate, expected = pair_certificates(found, True, "optimality")[0], truth(problem, K, beta)
        assert certificate.kkt == pytest.approx(expected.kkt, rel=1e-12, abs=1e-12)
        assert certificate.b == pytest.approx(tuple(expected.b))
        assert certificate.primal == pytest.approx(expected.primal)
        if beta is feasible:
            assert certificate.violation == pytest.approx(expected.violation)
            assert (certificate.dual, certificate.gap) == pytest.approx((expected.dual, expected.gap))
        elif beta is slightly:  # the best feasible point that one variable away from it has
            off, costs = beta.sum(), []
            for j in range(len(beta)):
                moved = beta.copy()
                moved[j] -= off
                if problem.lower[j] <= moved[j] <= problem.upper[j]:
                    costs.append(truth(problem, K, moved, expected.b).dual)
            assert certificate.dual <= max(costs) + 1e-9
            assert expected.primal - max(costs) - 1e-9 <= certificate.gap < np.inf
        elif beta is inside:
            optimum = solve_certified(problem, gram_for(Precomputed(), K), replace(STOP, tol=1e-10))[1].primal
            assert certificate.dual <= optimum + 1e-9
            assert expected.primal - optimum - 1e-9 <= certificate.gap < np.inf
        else:
            assert (certificate.dual, certificate.gap, certificate.violation) == (-np.inf, np.inf, np.inf)


@pytest.mark.parametrize("slack", ["l1", "l2"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear", "laplacian"])
@pytest.mark.parametrize("n", [300, 1300])  # in float64, and in float32
@pytest.mark.filterwarnings("ignore::mercer.runtime.errors.NonPSDKernelWarning")
def test_one_call_agrees_with_the_general_solver(n, kernel, bias, slack, asked):
    X, y = classes(n)
    weight = np.random.default_rng(1).integers(1, 4, n).astype(float)
    setting = {"kernel": kernel, "C": 2.0, "gamma": 0.1, "coef0": 1.0, "bias": bias, "slack": slack, "tol": 1e-6}
    ours = SVC(**setting, class_weight={0: 2.0, 3: 0.5}).fit(X, y, weight)
    assert asked == [10]
    other = SVC(**setting, class_weight={0: 2.0, 3: 0.5}, solver="decomposition").fit(X, y, weight)
    assert ours.converged_
    for a, b in zip(ours.certificate_.parts, other.certificate_.parts, strict=True):
        assert a.violation <= 1e-6
        assert a.dual == pytest.approx(b.dual, rel=1e-7)
    ours, other = (model.set_params(decision_function_shape="ovo") for model in (ours, other))
    np.testing.assert_allclose(ours.decision_function(X), other.decision_function(X), atol=2e-5)
    np.testing.assert_allclose(ours.rkhs_norm_, other.rkhs_norm_, rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_call_agrees_with_libsvm(dtype, alone):
    X, y = load_digits(return_X_y=True)
    X = X.astype(dtype) + dtype(0.01)  # no zeros: digits would otherwise count as sparse
    ours = SVC(C=5, tol=1e-5, decision_function_shape="ovo").fit(X, y)
    peer = Peer(C=5, tol=1e-5, decision_function_shape="ovo", gamma=ours.kernel_.gamma).fit(X, y)
    np.testing.assert_array_equal(ours.predict(X), peer.predict(X))
    np.testing.assert_allclose(ours.decision_function(X), peer.decision_function(X), atol=2e-4)
    assert ours.dual_coef_.shape == peer.dual_coef_.shape


def test_float32_is_refined_to_what_float64_reaches(alone):
    X, y = classes(1500, 4)
    model = SVC(C=10, gamma=0.3, tol=1e-9).fit(X, y)
    assert model.converged_
    assert model.certificate_.violation <= 1e-9


def test_a_weight_is_a_repetition_to_the_last_bit(alone):
    X, y = classes(300, 4)
    weight = np.random.default_rng(2).integers(0, 3, len(y))
    weighted = SVC(C=2).fit(X, y, weight.astype(float))
    repeated = SVC(C=2).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_array_equal(weighted.decision_function(X), repeated.decision_function(X))


def test_the_result_does_not_depend_on_the_number_of_threads(alone):
    X, y = classes(1200, 6)
    one, two = (SVC(C=10, n_jobs=n).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)
    np.testing.assert_array_equal(one.intercept_, two.intercept_)
    assert one.certificate_ == two.certificate_


def test_pairs_ask_for_few_rows():
    """The unit of work is the size of the result: every support vector of a pair with every sample of it."""
    X, y = make_blobs(3000, centers=6, n_features=8, cluster_std=3.5, random_state=0)
    gram = gram_for(Gaussian(gamma=0.01), X)
    blocks, problems = all_pairs(X, y, lambda signs: soft_margin(signs, np.full(len(signs), 1.0)))
    found = solve_pairs(problems, blocks, gram, STOP, 1)
    unit = sum(np.count_nonzero(solution.beta) * len(solution.beta) for solution, _ in found)
    assert unit < 0.3 * sum(len(solution.beta) ** 2 for solution, _ in found)
    assert gram.evaluations <= 2.4 * unit  # solving and certifying; whole matrices would take 8.4


# --- when it is not for one call --------------------------------------------------------------------------------------


def test_what_one_call_leaves_open_the_general_solver_closes(monkeypatch):
    X, y = classes(400, 4)
    whole = SVC(C=100, tol=1e-6).fit(X, y)
    general, starts, steps = SOLVERS["auto"], [], []

    def watched(problem, gram, stop, beta, **options):
        solution, certificate = general(problem, gram, stop, beta, **options)
        starts.append(beta)
        steps.append(solution.steps)
        return solution, certificate

    monkeypatch.setitem(SOLVERS, "auto", watched)
    monkeypatch.setattr(pairs, "_STEPS_PER_VARIABLE", 1)
    begun = SVC(C=100, tol=1e-6, n_jobs=1).fit(X, y)
    assert begun.converged_
    assert begun.certificate_.dual == pytest.approx(whole.certificate_.dual, rel=1e-8)
    assert len(starts) == 6
    assert all(start.any() for start in starts)
    before = begun.n_iter_ - steps  # the steps of both count
    assert (before == before[0]).all()
    assert before[0] == max(len(start) for start in starts)


def test_steps_are_limited_over_both_solvers():
    X, y = classes(400, 4)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = SVC(C=100, max_iter=30).fit(X, y)
    assert model.stop_reason_ == "max_iter"
    np.testing.assert_array_equal(model.n_iter_, 30)


def test_a_gap_can_be_asked_for(asked):
    X, y = classes(300, 4)
    model = SVC(C=10, gap_tol=1e-6).fit(X, y)
    assert asked == [6]
    assert all(part.gap <= 1e-6 * part.dual for part in model.certificate_.parts)


def test_time_is_limited():
    X, y = classes(400, 4)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = SVC(C=100, max_time=1e-9).fit(X, y)
    assert model.stop_reason_ == "max_time"


@pytest.mark.parametrize(
    ("parameters", "form"),
    [
        ({"solver": "decomposition"}, np.asarray),
        ({"multiclass": "ovr"}, np.asarray),
        ({"C": math.inf}, np.asarray),
        ({"kernel": "precomputed"}, lambda X: X @ X.T),
        ({"kernel": Gaussian(gamma=0.5) + Gaussian(gamma=0.1)}, np.asarray),
    ],
)
def test_other_ways_are_not_for_one_call(parameters, form, monkeypatch):
    X, y = make_blobs(90, centers=3, random_state=0)

    def broken(*arguments):
        raise AssertionError("asked for in one call")

    monkeypatch.setattr(task, "solve_pairs_together", broken)
    assert SVC(**parameters).fit(form(X), y).converged_


@pytest.mark.parametrize("parameters", [{"cache_size": 0.1}, {"bias": "regularized"}])
def test_what_the_core_does_not_do_at_once_is_done_one_by_one(parameters, asked):
    X, y = classes(300, 4)
    model = SVC(**parameters).fit(X, y)
    assert asked == [6]
    assert model.converged_
    other = SVC(**parameters, solver="decomposition").fit(X, y)
    np.testing.assert_array_equal(model.dual_coef_, other.dual_coef_)


@pytest.mark.parametrize("parameters", [{"gamma": 0.1}, {"kernel": "linear"}, {"kernel": "poly", "degree": 2}])
def test_sparse_samples_are_solved_together(parameters, asked):
    X, y = classes(300, 4)
    X[np.abs(X) < 1.2] = 0.0
    model = SVC(**parameters, tol=1e-6).fit(sp.csr_array(X), y)
    assert asked == [6]
    assert model.converged_
    alone = SVC(**parameters, tol=1e-6, solver="decomposition").fit(sp.csr_array(X), y)
    np.testing.assert_allclose(model.decision_function(X), alone.decision_function(X), atol=1e-4)
    for found, expected in zip(model.certificate_.parts, alone.certificate_.parts, strict=True):
        assert found.violation <= 1e-6
        assert found.primal == pytest.approx(expected.primal, rel=1e-5)
        assert found.dual == pytest.approx(expected.dual, rel=1e-5)


def test_sparse_pairs_are_certified_from_the_values_of_the_kernel():
    X, y = classes(240, 3)
    X[np.abs(X) < 1.2] = 0.0
    rows = [np.flatnonzero(y == label) for label in np.unique(y)]
    layout = Layout.of(rows, np.array([[0, 1], [2, 0], [1, 2]]))
    kernel = Gaussian(gamma=0.1)
    gram = gram_for(kernel, sp.csr_array(X))
    parts = [(rows[a], rows[b]) for a, b in layout.pairs.reshape(-1, 2)]
    signs = np.concatenate([np.r_[np.ones(len(a)), -np.ones(len(b))] for a, b in parts])
    problem, stop = soft_margin(signs, np.full(len(signs), 2.0)), Stop(tol=1e-4, max_iter=10**6)
    found = solve_pairs_together(problem, layout, gram, stop, 2)
    assert found.solved.all()
    K = kernel(X)
    for k, (a, b) in enumerate(parts):
        cut, members = slice(*layout.offsets[k : k + 2]), np.r_[a, b]
        np.testing.assert_allclose(found.u[cut], K[np.ix_(members, members)] @ found.beta[cut], rtol=0, atol=1e-12)
    once = solve_pairs_together(problem, layout, gram, stop, 1)
    np.testing.assert_array_equal(once.beta, found.beta)
    np.testing.assert_array_equal(once.u, found.u)


@pytest.mark.parametrize("seed", range(8))
def test_the_rounding_of_a_large_ridge_is_in_the_violation(seed):
    """Samples at the origin have u = 0 without an error: h = p − dβ is rounded twice, relative to dβ."""
    rng = np.random.default_rng(seed)
    n, y = 8, np.repeat([1.0, -1.0], 4)
    problem = squared_soft_margin(y, 10.0 ** -rng.uniform(3, 12, n))
    gram, layout = gram_for(Linear(), np.zeros((n, 1))), Layout.of(np.split(np.arange(n), 2), np.array([[0, 1]]))
    beta = y * rng.random(n)
    found = pairs._refine_pairs(
        problem, layout, gram, gram.pairs(layout, 1), Stop(1e15, 100), beta.copy(), certify_first=True
    )
    np.testing.assert_array_equal(found.beta, beta)
    h = [Fraction(p) - Fraction(d) * Fraction(b) for p, d, b in zip(y, problem.d, beta, strict=True)]
    assert Fraction(found.certificates.violation[0]) >= max(h) - min(h)


def test_sparse_pairs_of_a_kernel_that_may_be_indefinite_are_solved_one_by_one(asked):
    X, y = classes(200, 3)
    X[np.abs(X) < 1.2] = 0.0
    with pytest.warns(NonPSDKernelWarning):
        model = SVC(kernel="sigmoid", gamma=0.01).fit(sp.csr_array(X), y)
    assert asked == [3]
    assert model.converged_


def test_large_pairs_are_left_to_working_sets():
    y = np.repeat([1.0, -1.0], 1300)

    def fits(problem):
        n = problem.n_variables
        return len(solvable_pairs(problem, Layout.of([np.arange(1), np.arange(n - 1)], np.array([[0, 1]])))) == 1

    assert not fits(soft_margin(y, np.ones(2600)))
    assert fits(soft_margin(y[::2].copy(), np.ones(1300)))
    assert not fits(hulls(y[::2].copy()))


def test_the_general_certificate_is_the_same():
    """`certify` on a view of the samples, term by term another route to the same numbers."""
    X, y = classes(1200, 3)
    gram = gram_for(Gaussian(gamma=0.2), X)
    blocks, problems = all_pairs(X, y, made("l1", True))
    for (solution, found), problem, both in zip(
        solve_pairs(problems, blocks, gram, STOP, 2), problems, blocks, strict=True
    ):
        other, u = certify_dual(problem, gram.view(np.concatenate(both)), solution.beta)
        np.testing.assert_allclose(solution.u, u, atol=1e-11)
        assert (found.primal, found.dual) == pytest.approx((other.primal, other.dual), rel=1e-9)
        assert found.gap == pytest.approx(other.gap, rel=1e-5)
        assert found.kkt == pytest.approx(other.kkt, abs=1e-8)


def test_sparse_samples_whose_norms_cancel_are_solved_in_another_way() -> None:
    rng = np.random.default_rng(0)
    X = sp.csr_array(np.where(rng.random((60, 30)) < 0.2, 1e6 * rng.normal(size=(60, 30)), 0.0))
    machine = SVC(gamma=1e-3).fit(X, np.arange(60) % 3)
    assert machine.converged_
    assert machine.certificate_.violation <= machine.tol
