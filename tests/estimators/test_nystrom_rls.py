"""Least squares on landmarks against a stacked least-squares problem, scikit-learn, and exact leverage scores.

Problem and reference value: tests/reference/machines.py, tests/test_architecture.py. Certificate: tests/claims.
scikit-learn's checks: tests/scikit_learn/test_sklearn_checks.py. Bad inputs: tests/bad_inputs. Tools: tests/tools.
Proofs and weights: tests/estimators/test_least_squares_proofs.py. Engines: tests/places/engines.
Draws in folds: tests/calibration/test_symmetry.py. Classes: tests/estimators/test_nystrom_rls_classifier.py.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge

import mercer
from mercer import NystromRLS, NystromRLSClassifier, _core, kernels
from mercer.places.choose import cross_for
from mercer.places.host.prepared import Lowering
from mercer.places.landmarks import draw, leverage_scores
from mercer.problems.least_squares import RidgeProblem
from mercer.samples.chunks import Chunk
from mercer.solvers.least_squares.nystrom import solve_nystrom
from mercer.solvers.solution import Stop
from reference.least_squares import on_landmarks

rng = np.random.default_rng(0)
N, M = 400, 25
X = rng.normal(size=(N, 3))
Y = np.column_stack([np.sin(X[:, 0]) + 3.0, X[:, 1] * X[:, 2]]) + 0.1 * rng.normal(size=(N, 2))
Z = X[rng.choice(N, M, replace=False)] + 0.01
WEIGHT = rng.integers(0, 4, N).astype(float)
T = rng.normal(size=(50, 3))
GAUSSIAN = kernels.Gaussian(gamma=0.3)


def naive(kernel=GAUSSIAN, lam=0.05, weight=None, bias=True, targets=Y):
    weight = np.ones(N) if weight is None else weight
    c, b, value = on_landmarks(kernel(X, Z), kernel(Z), targets, weight, lam, bias)
    return kernel(T, Z) @ c + b, value


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_solution_is_that_of_stacked_least_squares(bias, weighted):
    weight = WEIGHT if weighted else None
    model = NystromRLS(lam=0.05, landmarks=Z, kernel=GAUSSIAN, bias=bias, tol=1e-12).fit(X, Y, sample_weight=weight)
    values, objective = naive(weight=weight, bias=bias)
    np.testing.assert_allclose(model.predict(T), values, atol=1e-5)
    assert [part.primal for part in model.certificate_.parts] == pytest.approx(objective, rel=1e-9)
    assert model.certificate_.relative_gap <= 1e-10  # how far the value can be off is part of it
    assert model.certificate_.kkt["primal value above the optimum"] <= 1e-12 * model.certificate_.dual
    assert model.converged_


def test_all_samples_as_landmarks_is_kernel_ridge_regression():
    model = NystromRLS(lam=0.3, n_landmarks=N, kernel="rbf", gamma=0.3, bias=False, tol=1e-13)
    model.fit(X, Y)
    assert model.stop_reason_ == "rounding floor"  # K_MM is nearly singular, and known to rounding
    assert not model.converged_
    peer = KernelRidge(alpha=0.3, kernel="rbf", gamma=0.3).fit(X, Y)
    np.testing.assert_allclose(model.predict(T), peer.predict(T), atol=1e-6)  # rounding leaves 3e-9


@pytest.mark.parametrize("case", ["line", "sparse"])
def test_nearly_singular_landmarks_are_proven(case):
    """Landmarks of which rounding leaves some almost dependent, by many draws: no luck of a draw or a processor."""
    if case == "line":
        samples, lam, m, seeds = np.linspace(-3, 3, 2000)[:, None], 1e-3, 50, range(8)
        y = np.sinc(samples[:, 0])
    else:  # the data of one of scikit-learn's checks, which leaves the draw to chance
        old = np.random.RandomState(0)
        samples, lam, m, seeds = old.uniform(size=(40, 3)), 1.0, 20, (300, 573, 768, 876, 1064, 1121, 1476)
        samples[samples < 0.6] = 0
        y = old.randint(0, 3, size=40).astype(float)
    for seed in seeds:
        model = NystromRLS(lam=lam, n_landmarks=m, random_state=seed)
        model.fit(sp.csr_array(samples) if case == "sparse" else samples, y)
        assert model.certificate_.relative_gap <= 1e-3
        landmarks, k = samples[model.landmark_indices_], model.kernel_
        jittered = k(landmarks) + model.jitter_ * np.eye(m)
        optimum = on_landmarks(k(samples, landmarks), jittered, y[:, None], np.ones(len(y)), lam, True)[2][0]
        assert model.certificate_.dual <= optimum * (1 + 1e-9)
        assert optimum <= model.certificate_.primal * (1 + 1e-6)  # NumPy's own K_MM has its rounding too


def test_same_landmarks_give_what_nystroem_and_ridge_give():
    peer = Nystroem(kernel="rbf", gamma=0.3, n_components=M, random_state=0).fit(X)
    ridge = Ridge(alpha=0.05).fit(peer.transform(X), Y)
    model = NystromRLS(lam=0.05, landmarks=peer.components_, gamma=0.3, tol=1e-13).fit(X, Y)
    np.testing.assert_allclose(model.predict(T), ridge.predict(peer.transform(T)), atol=1e-5)


def chunks(size, weight=None):
    for start in range(0, N, size):
        part = slice(start, start + size)
        yield (X[part], Y[part]) if weight is None else (X[part], Y[part], weight[part])


@pytest.mark.parametrize("weighted", [True, False])
def test_every_way_to_hand_over_samples_gives_one_answer(weighted, tmp_path):
    weight = WEIGHT if weighted else None
    stored = np.memmap(tmp_path / "X", dtype=np.float64, mode="w+", shape=X.shape)
    stored[:] = X
    stored.flush()
    model = NystromRLS(lam=0.05, landmarks=Z, kernel=GAUSSIAN, tol=1e-12)
    values, _ = naive(weight=weight)
    for given in (X, sp.csr_array(X), np.memmap(tmp_path / "X", dtype=np.float64, mode="r", shape=X.shape)):
        np.testing.assert_allclose(model.fit(given, Y, sample_weight=weight).predict(T), values, atol=1e-5)
    for given in (lambda: chunks(97, weight), chunks(97, weight)):
        np.testing.assert_allclose(model.fit(given).predict(T), values, atol=1e-5)
        assert model.converged_
        assert not hasattr(model, "landmark_indices_")


def test_samples_too_large_to_merge_are_used_where_they_are():
    # A budget of 8 KB, of which X takes more than a quarter; M = 10 landmarks still fit.
    few = NystromRLS(lam=0.05, landmarks=Z[:10], kernel=GAUSSIAN, cache_size=0.008, tol=1e-12)
    many = NystromRLS(lam=0.05, landmarks=Z[:10], kernel=GAUSSIAN, tol=1e-12)
    expected = many.fit(X, Y, sample_weight=WEIGHT).predict(T)
    np.testing.assert_allclose(few.fit(X, Y, sample_weight=WEIGHT).predict(T), expected, atol=1e-6)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("sample", [60, 400])
def test_conjugate_gradients_reach_what_the_normal_equations_give(bias, sample):
    everything = Chunk(X, Y, WEIGHT)
    pool = draw([everything], sample, np.random.default_rng(1))
    seen = Chunk(pool.X, np.zeros((len(pool.index), 2)), pool.represented_weight)
    cross = cross_for(GAUSSIAN, Z, lambda: [everything])
    _, objective = naive(weight=WEIGHT, bias=bias)
    for part, most in ((seen, 100), (None, 3)):
        solution, certificate = solve_nystrom(RidgeProblem(0.05, bias), cross, Stop(1e-11, 200), sample=part)
        assert solution.stop_reason == "converged"
        assert 0 < solution.steps <= most
        assert [c.primal for c in certificate.parts] == pytest.approx(objective, rel=1e-8)


@pytest.mark.parametrize("steps", [0, 1, 2, 4])
def test_the_gap_of_an_unfinished_fit_bounds_its_distance_from_the_optimum(steps):
    everything = Chunk(X, Y, np.ones(N))
    cross = cross_for(GAUSSIAN, Z, lambda: [everything])
    poor = Chunk(X[:40], np.zeros((40, 2)), np.full(40, N / 40))
    solution, proof = solve_nystrom(RidgeProblem(0.05, True), cross, Stop(1e-14, steps), sample=poor)
    _, optimum = naive()
    assert solution.stop_reason == "max_iter"
    for certificate, best in zip(proof.parts, optimum, strict=True):
        assert certificate.dual <= best * (1 + 1e-9)
        assert best * (1 - 1e-9) <= certificate.primal
        assert certificate.gap >= certificate.primal - best - 1e-9 * best
        assert certificate.gap > 1e-8 * best


def test_primal_value_is_the_objective_at_the_coefficients():
    model = NystromRLS(lam=0.05, landmarks=Z, kernel=GAUSSIAN, tol=1e-8).fit(X, Y[:, 0], sample_weight=WEIGHT)
    c = model.dual_coef_[:, 0]
    error = Y[:, 0] - GAUSSIAN(X, Z) @ c - model.intercept_[0]
    value = 0.5 * np.sum(WEIGHT * error**2) + 0.5 * 0.05 * c @ GAUSSIAN(Z) @ c
    assert model.certificate_.primal == pytest.approx(value, rel=1e-9)


# --- landmarks ------------------------------------------------------------------------------------------------------


def test_leverage_scores_are_exact_when_the_pilot_holds_every_sample():
    lam, K = 0.1, GAUSSIAN(X)
    exact = np.diag(K @ np.linalg.inv(K + lam * np.eye(N)))
    score = leverage_scores(GAUSSIAN, X, lam, float(N))
    np.testing.assert_allclose(score(Chunk(X, Y, np.ones(N))), exact, atol=1e-9)
    np.testing.assert_allclose(score(Chunk(X, Y, np.full(N, 2.0))), 2 * exact, atol=1e-9)


@pytest.mark.filterwarnings("ignore:NystromRLS stopped before .*rounding floor")  # 17 landmarks almost in one place
def test_leverage_draws_what_no_other_sample_resembles():
    near = np.random.default_rng(3).normal(size=(2000, 2)) * 0.05
    lonely = np.vstack([near, [[8.0, 8.0], [-8.0, 8.0], [8.0, -8.0]]])
    y = lonely.sum(axis=1)
    found = {
        how: sum(
            np.isin([2000, 2001, 2002], NystromRLS(n_landmarks=20, landmarks=how, gamma=1.0, lam=0.1, random_state=seed)
                    .fit(lonely, y).landmark_indices_).sum()
            for seed in range(5)
        )
        for how in ("uniform", "leverage")
    }  # fmt: skip
    assert found["leverage"] >= 12 > 5 > found["uniform"]


def test_draws_are_in_proportion_to_weight_and_without_replacement():
    weight = np.array([1.0, 2.0, 0.0, 5.0])
    everything = Chunk(np.arange(4.0)[:, None], np.zeros((4, 1)), weight)
    first = [draw([everything], 1, np.random.default_rng(seed)).index[0] for seed in range(2000)]
    np.testing.assert_allclose(np.bincount(first, minlength=4) / 2000, weight / 8, atol=0.04)
    all_of_them = draw([everything], 10, np.random.default_rng(0))
    assert all_of_them.index.tolist() == [0, 1, 3]
    halves = [
        Chunk(everything.X[:2], everything.Y[:2], weight[:2]),
        Chunk(everything.X[2:], everything.Y[2:], weight[2:]),
    ]
    assert draw(halves, 10, np.random.default_rng(0)).index.tolist() == [0, 1, 3]
    assert draw(halves, 2, np.random.default_rng(0)).represented_weight.sum() == pytest.approx(8.0)


# --- the core's product ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [GAUSSIAN, kernels.Linear(), kernels.Polynomial(degree=3, gamma=0.2, coef0=1.0),
                                    kernels.Laplacian(gamma=0.3), kernels.Sigmoid(gamma=0.1, coef0=0.2)])  # fmt: skip
@pytest.mark.parametrize(("n", "m"), [(1, 1), (17, 5), (1100, 37)])
def test_both_ways_at_once_is_two_products(kernel, n, m):
    A, B = rng.normal(size=(n, 3)), rng.normal(size=(m, 3))
    w, c = rng.random(n), rng.normal(size=m)
    lowering = Lowering.of(kernel.recipe(), B)
    totals = []
    for threads in (1, 2):
        samples, others = (lowering.prepare(part, np.float64, threads)[0] for part in (B, A))
        total = np.ones(m)
        samples.add_normal(total, others.columns(np.arange(n)), np.arange(m), c, w)
        totals.append(total)
    K = kernel(A, B)
    np.testing.assert_allclose(totals[0], 1.0 + K.T @ (w * (K @ c)), rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(*totals)


def test_both_ways_at_once_refuses_what_it_cannot_do():
    lowering = Lowering.of(GAUSSIAN.recipe(), X)
    single = lowering.prepare(X, np.float32, 1)[0]
    with pytest.raises(ValueError, match="float64"):
        single.add_normal(np.zeros(N), single.columns(np.arange(N)), np.arange(N), np.zeros(N), np.zeros(N))
    double = lowering.prepare(X, np.float64, 1)[0]
    for wrong in (("weights", np.zeros(N - 1)), ("total", np.zeros(3)), ("coefficients", np.zeros(1))):
        arguments = {"total": np.zeros(N), "coefficients": np.zeros(N), "weights": np.zeros(N)} | dict([wrong])
        with pytest.raises(ValueError, match=wrong[0]):
            double.add_normal(columns=double.columns(np.arange(N)), which=np.arange(N), **arguments)
    assert isinstance(double, _core.Samples)


# --- kernels and data -----------------------------------------------------------------------------------------------


def by_hand(A, B):
    A, B = (part.toarray() if sp.issparse(part) else part for part in (A, B))
    return np.exp(-0.3 * ((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2))


@pytest.mark.parametrize("data", ["dense", "csr", "float32"])
@pytest.mark.parametrize("kernel", [GAUSSIAN, 0.5 * GAUSSIAN + kernels.Laplacian(gamma=0.2), by_hand, "precomputed"],
                         ids=["recipe", "composite", "callable", "precomputed"])  # fmt: skip
def test_every_kind_of_kernel_and_data(kernel, data):
    A = X.astype(np.float32).astype(np.float64)
    f = by_hand if kernel == "precomputed" else kernel
    given = by_hand(A, A) if kernel == "precomputed" else A
    if data != "dense" and kernel != "precomputed":
        given = sp.csr_array(given) if data == "csr" else given.astype(np.float32)
    model = NystromRLS(lam=0.05, n_landmarks=M, kernel=kernel, tol=1e-11, random_state=0).fit(given, Y)
    J = model.landmark_indices_
    c, b, value = on_landmarks(f(A, A[J]), f(A[J], A[J]), Y, np.ones(N), 0.05, True)
    assert model.certificate_.primal == pytest.approx(value.sum(), rel=1e-8)
    np.testing.assert_allclose(model.predict(given), f(A, A[J]) @ c + b, atol=1e-4)


def test_many_outputs_share_blocks_of_kernel_values():
    targets = np.column_stack([np.cos(k * X[:, 0]) for k in range(9)])
    model = NystromRLS(lam=0.05, landmarks=Z, kernel=GAUSSIAN, tol=1e-12).fit(X, targets)
    np.testing.assert_allclose(model.predict(T), naive(targets=targets)[0], atol=1e-5)
    assert model.predict(T).shape == (50, 9)


def test_classes_are_coded_one_against_all():
    digits, labels = load_digits(return_X_y=True)
    signs = np.where(labels[:, None] == np.arange(10), 1.0, -1.0)
    options = {"lam": 0.1, "n_landmarks": 100, "gamma": 1e-3, "random_state": 0, "tol": 1e-10}
    classifier = NystromRLSClassifier(**options).fit(digits, labels)
    regressor = NystromRLS(landmarks=classifier.landmarks_, lam=0.1, gamma=1e-3, tol=1e-10).fit(digits, signs)
    np.testing.assert_allclose(classifier.decision_function(digits), regressor.predict(digits), atol=1e-4)
    assert (classifier.predict(digits) == np.argmax(regressor.predict(digits), axis=1)).mean() > 0.999
    assert classifier.score(digits, labels) > 0.95


def test_a_stream_of_labels_is_surveyed_first():
    digits, labels = load_digits(return_X_y=True)
    order = np.argsort(labels, kind="stable")
    digits, labels = digits[order], labels[order]

    def parts():
        return ((digits[a : a + 300], labels[a : a + 300]) for a in range(0, len(labels), 300))

    own = digits[::20]
    options = {"lam": 0.1, "landmarks": own, "gamma": 1e-3, "n_landmarks": 10}
    streamed = NystromRLSClassifier(**options).fit(parts)
    whole = NystromRLSClassifier(**options).fit(digits, labels)
    np.testing.assert_allclose(streamed.decision_function(digits), whole.decision_function(digits), atol=1e-2)
    surprise = iter([(digits[:400], np.minimum(labels[:400], 1)), (digits[-50:], labels[-50:])])
    with pytest.raises(ValueError, match=r"label .*9.* was not among the first samples.*callable"):
        NystromRLSClassifier(n_landmarks=10).fit(surprise)


# --- limits, files ---------------------------------------------------------------------------------------------------


def test_limits_end_a_fit_with_what_it_has():
    model = NystromRLS(n_landmarks=M, max_iter=0)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model.fit(X, Y)
    assert model.stop_reason_ == "max_iter"
    assert not model.converged_
    assert np.isfinite(model.predict(T)).all()


def test_verbose_tells_where_it_stands(capsys):
    NystromRLS(n_landmarks=M, verbose=True).fit(X, Y)
    assert "iterations" in capsys.readouterr().out


@pytest.mark.parametrize("model", [NystromRLS(n_landmarks=M, random_state=0), NystromRLSClassifier(n_landmarks=M)])
def test_files_bring_back_the_same_predictions(model, tmp_path):
    y = Y if isinstance(model, NystromRLS) else np.digitize(Y[:, 0], [2.5, 3.5])
    mercer.save(model.fit(X, y), tmp_path / "model.mercer")
    again = mercer.load(tmp_path / "model.mercer")
    np.testing.assert_array_equal(again.predict(T), model.predict(T))
    assert again.certificate_ == model.certificate_
    assert again.get_params().keys() == model.get_params().keys()


def test_fitted_arrays_are_read_only():
    model = NystromRLS(n_landmarks=M).fit(X, Y)
    for name in ("landmarks_", "dual_coef_", "intercept_", "landmark_indices_"):
        assert not getattr(model, name).flags.writeable, name


BAD = {
    "lam zero": ({"lam": 0.0}, {}, ValueError, r"lam=0.0 must be .* above 0; lam=0 is least squares"),
    "lam infinite": ({"lam": np.inf}, {}, ValueError, "lam=inf must be a finite number"),
    "lam text": ({"lam": "1"}, {}, TypeError, "lam='1' must be a number"),
    "no landmarks": ({"n_landmarks": 0}, {}, ValueError, "n_landmarks=0 must be at least 1"),
    "landmarks unknown": ({"landmarks": "best"}, {}, ValueError, "landmarks='best' must be one of"),
    "landmarks of other width": ({"landmarks": np.ones((2, 9))}, {}, ValueError, "9 features"),
    "no room": ({"n_landmarks": 300, "cache_size": 0.1}, {}, MemoryError, r"lower n_landmarks to 50 or"),
    "tol": ({"tol": -1}, {}, ValueError, "tol=-1 must be"),
    "NaN in X": ({}, {"X": np.full((4, 3), np.nan), "y": np.ones(4)}, ValueError, "X contains NaN"),
    "NaN in y": ({}, {"y": np.full(N, np.nan)}, ValueError, r"y contains nan at \(0,\)"),
    "three-dimensional y": ({}, {"y": np.ones((N, 1, 1))}, ValueError, "y has shape"),
    "lengths": ({}, {"y": np.ones(N - 1)}, ValueError, "inconsistent numbers of samples"),
    "all weights zero": ({}, {"sample_weight": np.zeros(N)}, ValueError, "all sample weights are zero"),
    "stream and y": ({}, {"X": lambda: iter(()), "y": np.ones(3)}, ValueError, "a stream carries its own targets"),
    "empty stream": ({}, {"X": iter(()), "y": None}, ValueError, "no sample of positive weight"),
    "no iterator": ({}, {"X": lambda: 3, "y": None}, TypeError, "must return a fresh iterator"),
    "no pairs": ({}, {"X": iter([X]), "y": None}, ValueError, "chunk 0 of the stream is ndarray"),
    "chunk of other width": (
        {}, {"X": iter([(X, Y), (X[:, :2], Y)]), "y": None, "n": 1}, ValueError, "chunk 1 .*X has 2 features"),
    "chunk of other length": ({}, {"X": iter([(X, Y[:5])]), "y": None}, ValueError, "X has 400 samples, but y has 5"),
    "leverage of an iterator": ({"landmarks": "leverage"}, {"X": iter([(X, Y)]), "y": None}, ValueError, "callable"),
    "kernel of no stream": ({"kernel": "precomputed"}, {"X": iter([(X, Y)]), "y": None}, ValueError, "stream"),
    "indefinite": ({"kernel": kernels.Sigmoid(gamma=1.0, coef0=-2.0)}, {}, ValueError, "semi-definite"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named(case):
    parameters, data, kind, text = BAD[case]
    data = {"X": X, "y": Y} | {key: value for key, value in data.items() if key != "n"}
    model = NystromRLS(**({"n_landmarks": 2000 if "n" in data else 20} | parameters))
    with pytest.raises(kind, match=text):
        model.fit(**data)
    assert not [name for name in vars(model) if name.endswith("_")]


def test_a_callable_must_open_the_same_samples_each_time():
    calls = []

    def shrinking():
        calls.append(1)
        return iter([(X[: N - len(calls)], Y[: N - len(calls)])])

    with pytest.raises(ValueError, match="same samples for every pass"):
        NystromRLS(n_landmarks=5).fit(shrinking)
