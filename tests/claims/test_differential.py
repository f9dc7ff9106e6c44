"""The library against others: LIBSVM through scikit-learn, two interior-point solvers, plain references.

Both sides of a comparison are judged by the same function, the reference certificate on a matrix from scipy.
"""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC as PeerSVC

import mercer
from reference.certificate import certificate, dual_value, rounding
from reference.problems import (
    Case,
    c_svc,
    gram_matrix,
    machine_problem,
    machines,
    noisy_labels,
    random_case,
    standardised,
)
from reference.qp import by_every_solver
from reference.smo import smo

TOL = 1e-8


def full_beta(model, n):
    """The signed duals of a two-class model on all n samples."""
    beta = np.zeros(n)
    beta[model.support_] = (
        model.dual_coef_[0] if not sparse.issparse(model.dual_coef_) else model.dual_coef_.toarray()[0]
    )
    return beta


def ours(case: Case, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = mercer.SVC(C=case.C, kernel=case.kernel, tol=TOL, **case.numbers, **options)
        return model.fit(case.data(), case.y, sample_weight=case.weight)


def peer(case: Case, max_iter):
    """LIBSVM on the same problem, and whether it finished."""
    named = case.kernel != "laplacian"
    model = PeerSVC(
        C=case.C,
        tol=TOL,
        max_iter=max_iter,
        cache_size=500,
        **({"kernel": case.kernel, **case.numbers} if named else {"kernel": "precomputed"}),
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(case.data() if named else case.gram(), case.y, sample_weight=case.weight)
    return model, not any(issubclass(w.category, ConvergenceWarning) for w in caught)


def assert_certified(case: Case, model, K):
    """The model's numbers are the reference's; its gap is as asked for, or float64 allows no better."""
    problem, beta = case.problem(), full_beta(model, len(case.y))
    truth = certificate(problem, K, beta)
    own = model.certificate_
    noise = rounding(problem, K, beta)
    scale = np.abs(beta).sum()
    assert truth.kkt["dual feasibility: box"] <= 1e-12 * case.C, str(case)
    assert truth.kkt["dual feasibility: equality"] <= 1e-10 * scale, str(case)
    assert own.dual == pytest.approx(truth.dual, rel=1e-9, abs=10 * noise * scale), str(case)
    width = (problem.upper - problem.lower).sum()
    assert own.gap >= 0, str(case)
    assert truth.gap >= -1e-12 * abs(truth.dual), str(case)
    if model.stop_reason_ == "rounding floor":
        # The claim itself is checked: what is left must be explained by rounding.
        assert truth.violation <= TOL + 1000 * noise, f"{case}: violation {truth.violation}, rounding {noise}"
    else:
        assert model.stop_reason_ == "converged", f"{case}: {model.stop_reason_}"
        assert model.converged_
        assert own.gap <= TOL * width, str(case)
        assert own.violation <= TOL, str(case)
        assert truth.gap <= (TOL + 10 * noise) * width, str(case)
    np.testing.assert_allclose(model.intercept_[0], truth.b[0], rtol=1e-7, atol=1e-6 + 1000 * noise)
    return truth


def assert_as_good(case: Case, truth, peer_model, K):
    """Our dual value is not below the peer's by more than 1e-6 relative."""
    theirs = dual_value(case.problem(), K, full_beta(peer_model, len(case.y)))
    assert truth.dual >= theirs - 1e-6 * abs(theirs), f"{case}: ours {truth.dual!r}, LIBSVM {theirs!r}"


@pytest.mark.parametrize("seed", range(40))
def test_against_libsvm_and_two_qp_solvers(seed):
    case = random_case(seed, n=(20, 100), C=(1e-3, 1e3))
    model, K = ours(case), case.gram()
    truth = assert_certified(case, model, K)
    assert_as_good(case, truth, peer(case, max_iter=1_000_000)[0], K)
    for name, (value, _) in by_every_solver(case.problem(), K).items():
        assert value == pytest.approx(truth.dual, rel=1e-6, abs=1e-9), f"{name} on {case}"


@pytest.mark.thorough
@pytest.mark.timeout(3600)
def test_two_hundred_problems_never_below_libsvm():
    unfinished, floors, n_problems = [], [], 240
    for seed in range(1000, 1000 + n_problems):
        case = random_case(seed)
        model, K = ours(case), case.gram()
        truth = assert_certified(case, model, K)
        peer_model, finished = peer(case, max_iter=10_000_000)
        assert_as_good(case, truth, peer_model, K)
        if not finished:
            unfinished.append(seed)
        if model.stop_reason_ == "rounding floor":
            floors.append(seed)
        for name, (value, _) in by_every_solver(case.problem(), K, at_least=0).items():
            # The optimum lies between our dual and primal values; a QP solver may miss it by its tolerance.
            slack = 1e-5 * max(1.0, abs(truth.primal))
            assert truth.dual - slack <= value <= truth.primal + slack, f"{name} on {case}"
    print(f"{n_problems} problems, LIBSVM unfinished on {len(unfinished)}, rounding floor on {len(floors)}")
    assert len(unfinished) < 0.1 * n_problems, unfinished


@pytest.mark.parametrize("maker", machines())
def test_the_references_agree_with_each_other(maker):
    """The plain SMO and the interior-point solvers are each other's check."""
    problem, K = machine_problem(maker, seed=3, n=25)
    K = K + 0.1 * np.eye(len(K))
    value = dual_value(problem, K, smo(problem, K, tol=1e-7)[0])
    for name, (other, _) in by_every_solver(problem, K).items():
        assert value == pytest.approx(other, rel=1e-6, abs=1e-8), name


# Several classes, and what a scikit-learn user reads off a fitted model.
def iris():
    return load_iris(return_X_y=True)


def digits():
    X, y = load_digits(return_X_y=True)
    keep = np.random.default_rng(0).permutation(len(y))[:300]
    return X[keep] / 16, y[keep]


def named_iris():
    data = load_iris()
    return data.data, data.target_names[data.target]


def two_names():
    X, y = named_iris()
    keep = y != "setosa"
    return X[keep], y[keep]


def objects():
    X, y = iris()
    return X, np.array(["b", "a", "c"], dtype=object)[y]


SETS = {"iris": iris, "digits": digits, "names": named_iris, "two names": two_names, "objects": objects}
OPTIONS = {
    "rbf": {"C": 2.0, "gamma": 0.3},
    "scale": {"C": 5.0},
    "auto": {"C": 5.0, "gamma": "auto"},
    "linear": {"kernel": "linear", "C": 0.7},
    "poly": {"kernel": "poly", "degree": 2, "coef0": 1.0, "gamma": 0.1, "C": 1.0},
}


def both(options, X, y, **fit_options):
    mine = mercer.SVC(**options, tol=1e-9).fit(X, y, **fit_options)
    return mine, PeerSVC(**options, tol=1e-9).fit(X, y, **fit_options)


def assert_same_model(mine, other, X):
    """Everything public agrees: order, signs, shapes, values."""
    np.testing.assert_array_equal(mine.classes_, other.classes_)
    np.testing.assert_array_equal(mine.support_, other.support_)
    np.testing.assert_array_equal(mine.n_support_, other.n_support_)
    assert mine.support_.dtype.kind == "i"
    assert mine.n_support_.dtype.kind == "i"
    np.testing.assert_allclose(mine.support_vectors_, other.support_vectors_)
    assert mine.dual_coef_.shape == other.dual_coef_.shape
    # LIBSVM keeps its matrix in float32, which shows in the duals long before it shows in f.
    np.testing.assert_allclose(mine.dual_coef_, other.dual_coef_, atol=2e-3 * mine.C)
    assert mine.intercept_.shape == other.intercept_.shape
    np.testing.assert_allclose(mine.intercept_, other.intercept_, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(mine.class_weight_, other.class_weight_, rtol=1e-12)
    assert mine.shape_fit_ == other.shape_fit_
    assert mine.fit_status_ == other.fit_status_ == 0
    assert mine.n_features_in_ == other.n_features_in_
    assert np.shape(mine.n_iter_) == np.shape(other.n_iter_)
    for shape in ("ovo", "ovr"):
        mine.set_params(decision_function_shape=shape)
        other.set_params(decision_function_shape=shape)
        theirs = other.decision_function(X)
        assert mine.decision_function(X).shape == theirs.shape
        np.testing.assert_allclose(mine.decision_function(X), theirs, rtol=1e-4, atol=1e-3)
    np.testing.assert_array_equal(mine.predict(X), other.predict(X))
    assert mine.score(X, other.predict(X)) == 1.0
    assert hasattr(mine, "coef_") == hasattr(other, "coef_")
    if hasattr(other, "coef_"):
        assert mine.coef_.shape == other.coef_.shape
        np.testing.assert_allclose(mine.coef_, other.coef_, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("data", SETS.values(), ids=SETS)
def test_fitted_attributes_are_scikit_learns(data, options):
    X, y = data()
    mine, other = both(options, X, y)
    assert_same_model(mine, other, X)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_every_pair_of_classes_reaches_its_own_optimum(options):
    X, y = digits()
    mine, other = both(options, X, y)
    numbers = {name: value for name, value in options.items() if name in ("degree", "coef0")}
    gamma = {"scale": 1 / (X.shape[1] * X.var()), "auto": 1 / X.shape[1]}.get(
        options.get("gamma", "scale"), options.get("gamma")
    )
    K = gram_matrix(options.get("kernel", "rbf"), X, gamma=gamma, **numbers)
    pairs = [(i, j) for i in range(10) for j in range(i + 1, 10)]
    assert len(mine.certificate_.parts) == len(pairs)
    total = 0.0
    for part, (i, j) in zip(mine.certificate_.parts, pairs, strict=True):
        rows = np.flatnonzero((y == i) | (y == j))
        problem = c_svc(np.where(y[rows] == i, 1.0, -1.0), options["C"])
        values = [
            dual_value(problem, K[np.ix_(rows, rows)], pair_beta(model, y, i, j)[rows]) for model in (mine, other)
        ]
        assert values[0] >= values[1] - 1e-6 * abs(values[1]), (i, j)
        assert part.dual == pytest.approx(values[0], rel=1e-9)
        assert 0 <= part.gap <= 1e-9 * options["C"] * len(rows) + 1e-9 * abs(part.dual)
        total += values[0]
    assert mine.certificate_.dual == pytest.approx(total, rel=1e-9)
    assert mine.certificate_.violation == max(part.violation for part in mine.certificate_.parts)


def pair_beta(model, y, i, j):
    """The duals of the pair (i, j) out of LIBSVM's packed layout: class i's row j−1, class j's row i."""
    beta = np.zeros(len(y))
    starts = np.r_[0, np.cumsum(model.n_support_)]
    for mine, row in ((i, j - 1), (j, i)):
        part = slice(starts[mine], starts[mine + 1])
        beta[model.support_[part]] = model.dual_coef_[row, part]
    return beta


def test_break_ties_chooses_by_confidence():
    # On a grid around overlapping blobs some votes tie, and break_ties decides differently.
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 2)) + np.repeat([[0, 0], [1, 0], [0, 1]], 20, axis=0)
    y = np.repeat([0, 1, 2], 20)
    grid = np.stack(np.meshgrid(np.linspace(-4, 4, 80), np.linspace(-4, 4, 80)), axis=-1).reshape(-1, 2)
    options = {"C": 1.0, "gamma": 0.5, "decision_function_shape": "ovr"}
    mine, other = both(options, X, y)
    tied = mercer.SVC(**options, tol=1e-9, break_ties=True).fit(X, y)
    np.testing.assert_array_equal(tied.predict(grid), tied.decision_function(grid).argmax(axis=1))
    np.testing.assert_array_equal(mine.predict(grid), other.predict(grid))
    assert (mine.predict(grid) != tied.predict(grid)).any(), "the grid holds no tie, so this test shows nothing"


def test_break_ties_needs_ovr():
    X, y = iris()
    with pytest.raises(ValueError, match="break_ties must be False"):
        mercer.SVC(break_ties=True, decision_function_shape="ovo").fit(X, y).predict(X)


@pytest.mark.parametrize("class_weight", [{0: 1.0, 1: 5.0, 2: 0.3}, {1: 10.0}, "balanced"])
def test_class_weights(class_weight):
    X, y = iris()
    X, y = X[:120], y[:120]
    mine, other = both({"C": 0.5, "gamma": 0.5, "class_weight": class_weight}, X, y)
    assert_same_model(mine, other, X)


def test_sample_weights_and_class_weights_multiply():
    X, y = iris()
    weight = np.random.default_rng(0).uniform(0.1, 4.0, len(y))
    mine, other = both({"C": 0.5, "gamma": 0.5, "class_weight": {0: 2.0, 1: 1.0, 2: 0.5}}, X, y, sample_weight=weight)
    assert_same_model(mine, other, X)


def test_balanced_class_weights_count_sample_weights():
    """A weight counts like repetitions here too; scikit-learn's SVC balances the number of rows instead."""
    X, y = two_names()
    times = 1 + np.arange(len(y)) % 3 * (y == "virginica")
    options = {"C": 0.5, "gamma": 0.5, "class_weight": "balanced", "tol": 1e-9}
    weighted = mercer.SVC(**options).fit(X, y, sample_weight=times)
    repeated = mercer.SVC(**options).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    other = PeerSVC(**options).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(weighted.class_weight_, other.class_weight_)
    np.testing.assert_allclose(repeated.class_weight_, other.class_weight_)
    assert weighted.class_weight_[0] > 1.2
    np.testing.assert_allclose(weighted.decision_function(X), other.decision_function(X), atol=1e-3)
    np.testing.assert_allclose(repeated.decision_function(X), other.decision_function(X), atol=1e-3)


def test_float32_input_gives_the_same_machine():
    X, y = digits()
    mine = mercer.SVC(C=2.0, tol=1e-6).fit(X, y)
    single = mercer.SVC(C=2.0, tol=1e-6).fit(X.astype(np.float32), y)
    np.testing.assert_array_equal(single.predict(X.astype(np.float32)), mine.predict(X))
    # The pixels are multiples of 1/16, exact in float32, so both solve one problem.
    np.testing.assert_allclose(
        single.decision_function(X.astype(np.float32)), mine.decision_function(X), rtol=0, atol=2e-4
    )
    assert single.certificate_.dual == pytest.approx(mine.certificate_.dual, rel=1e-6)


def test_precomputed_equals_rbf():
    X, y = digits()
    gamma = 0.05
    mine = mercer.SVC(C=2.0, gamma=gamma, tol=1e-9).fit(X[:200], y[:200])
    K = gram_matrix("rbf", X, X[:200], gamma=gamma)
    given = mercer.SVC(C=2.0, kernel="precomputed", tol=1e-9).fit(K[:200], y[:200])
    np.testing.assert_array_equal(given.support_, mine.support_)
    np.testing.assert_allclose(given.dual_coef_, mine.dual_coef_, atol=1e-5)
    np.testing.assert_allclose(given.decision_function(K), mine.decision_function(X), atol=1e-6)
    other = PeerSVC(C=2.0, kernel="precomputed", tol=1e-9).fit(K[:200], y[:200])
    assert given.support_vectors_.shape == other.support_vectors_.shape
    assert given.shape_fit_ == other.shape_fit_


def test_callable_equals_named():
    X, y = digits()
    mine = mercer.SVC(C=2.0, gamma=0.05, tol=1e-9).fit(X, y)
    given = mercer.SVC(C=2.0, kernel=lambda A, B: gram_matrix("rbf", A, B, gamma=0.05), tol=1e-9).fit(X, y)
    np.testing.assert_array_equal(given.support_, mine.support_)
    np.testing.assert_allclose(given.decision_function(X), mine.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csr_array])
def test_csr_equals_dense(options, container):
    X, y = digits()
    dense = mercer.SVC(**options, tol=1e-8).fit(X, y)
    thin = mercer.SVC(**options, tol=1e-8).fit(container(X), y)
    np.testing.assert_array_equal(thin.support_, dense.support_)
    coefficients = thin.dual_coef_.toarray() if sparse.issparse(thin.dual_coef_) else thin.dual_coef_
    np.testing.assert_allclose(coefficients, dense.dual_coef_, atol=1e-6)
    np.testing.assert_allclose(thin.intercept_, dense.intercept_, atol=1e-6)
    np.testing.assert_allclose(thin.decision_function(container(X)), dense.decision_function(X), atol=1e-6)
    np.testing.assert_array_equal(thin.predict(container(X)), dense.predict(X))
    assert sparse.issparse(thin.support_vectors_)
    np.testing.assert_array_equal(thin.support_vectors_.toarray(), dense.support_vectors_)


def test_a_problem_of_several_blocks_matches_libsvm():
    """Above the size that is solved as one block, so that the outer loop and shrinking do their work."""
    rng = np.random.default_rng(0)
    X = standardised(rng, 4000, 5)
    y = noisy_labels(rng, X, flips=0.05)
    mine = mercer.SVC(C=10.0, tol=1e-6, cache_size=100).fit(X, y)
    plain = mercer.SVC(C=10.0, tol=1e-6, cache_size=20, shrinking=False).fit(X, y)
    other = PeerSVC(C=10.0, tol=1e-6, cache_size=500).fit(X, y)
    K = gram_matrix("rbf", X, gamma=1 / (X.shape[1] * X.var()))
    values = []
    for model in (mine, plain, other):
        beta = full_beta(model, len(y))
        values.append(beta @ y - beta @ (K @ beta) / 2)
    assert values[0] == pytest.approx(values[2], rel=1e-7)
    assert values[1] == pytest.approx(values[2], rel=1e-7)
    np.testing.assert_allclose(mine.decision_function(X[:500]), other.decision_function(X[:500]), atol=1e-3)
    assert mine.certificate_.violation <= 1e-6
    assert mine.certificate_.dual == pytest.approx(values[0], rel=1e-9)
