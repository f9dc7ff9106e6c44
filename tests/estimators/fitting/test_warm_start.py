"""warm_start and partial_fit: the answer of a cold start, in fewer steps, and what is kept for them."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, make_classification

import mercer
from mercer import SVC, kernels
from mercer.estimators.fitting.pipeline import fit
from mercer.estimators.fitting.pipeline.warm_start import TrainingSet, WarmStart, task_start
from mercer.kernels.names import as_kernel
from mercer.places import gram_for
from mercer.solvers.dual.certified import solve_certified
from mercer.solvers.solution import Stop
from reference.problems import epsilon_svr, machine_problem, machines

X, Y = load_breast_cancer(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
LARGE, LABELS = make_classification(1500, 12, n_informative=6, flip_y=0.1, random_state=0)
IRIS, SPECIES = load_iris(return_X_y=True)
TOL = 1e-6


def assert_same_machine(one, other, data):
    gap = one.certificate_.gap + other.certificate_.gap
    assert one.certificate_.dual == pytest.approx(other.certificate_.dual, abs=gap + 1e-9)
    np.testing.assert_allclose(one.decision_function(data), other.decision_function(data), atol=2e-3)
    np.testing.assert_array_equal(one.classes_, other.classes_)


def steps(model):
    return int(model.n_iter_.sum())


# Numbers of steps vary by a twentieth with rounding alone: what is near saves a third, twice the C no more than that.
@pytest.mark.parametrize("C", [(1.0, 1.03, 1.06), (1.0, 0.97, 0.94)], ids=["rising", "falling"])
def test_another_C(C):
    warm = SVC(warm_start=True, tol=TOL)
    saved = []
    for value in C:
        warm.set_params(C=value).fit(LARGE, LABELS)
        cold = SVC(C=value, tol=TOL).fit(LARGE, LABELS)
        assert_same_machine(warm, cold, LARGE)
        saved.append(steps(cold) - steps(warm))
    assert saved[0] == 0
    assert min(saved[1:]) > 0


def test_the_same_fit_again_takes_no_steps():
    model = SVC(warm_start=True).fit(X, Y)
    before = model.certificate_.dual
    model.fit(X, Y)
    assert steps(model) == 0
    assert model.certificate_.dual == before
    shuffled = np.random.default_rng(0).permutation(len(Y))
    assert steps(model.fit(X[shuffled], Y[shuffled])) == 0
    assert steps(model.fit(sp.csr_array(X), Y)) == 0
    assert steps(model.set_params(warm_start=False).fit(X, Y)) > 0


def test_more_samples_and_fewer():
    warm = SVC(warm_start=True, tol=TOL).fit(LARGE[:1460], LABELS[:1460])
    cold = SVC(tol=TOL).fit(LARGE, LABELS)
    warm.fit(LARGE, LABELS)
    assert_same_machine(warm, cold, LARGE)
    assert steps(warm) < steps(cold)
    warm.fit(LARGE[40:], LABELS[40:])
    cold.fit(LARGE[40:], LABELS[40:])
    assert_same_machine(warm, cold, LARGE)
    assert steps(warm) < steps(cold)


def test_other_weights():
    rng = np.random.default_rng(0)
    weight = np.ones(len(LABELS))
    warm = SVC(warm_start=True, tol=TOL).fit(LARGE, LABELS, weight)
    weight[rng.choice(len(weight), 20, replace=False)] = [0.0, 2.0] * 10
    warm.fit(LARGE, LABELS, weight)
    cold = SVC(tol=TOL).fit(LARGE, LABELS, weight)
    assert_same_machine(warm, cold, LARGE)
    assert steps(warm) < steps(cold)


@pytest.mark.parametrize("kernel", ["linear", kernels.Gaussian(gamma=0.02) + 0.1 * kernels.Linear()])
def test_kernel_values_are_saved(monkeypatch, kernel):
    """Counted in the Gram: what a warm start needs beyond its first product is less than a cold start's.

    Of a small K both compute everything.
    """
    grams = []

    def watched(*args, **options):
        grams.append(gram_for(*args, **options))
        return grams[-1]

    monkeypatch.setattr(fit, "gram_for", watched)
    warm = SVC(kernel=kernel, warm_start=True, C=0.1).fit(X, Y)
    grams.clear()
    warm.fit(X, Y)
    SVC(kernel=kernel, C=0.1).fit(X, Y)
    again, cold = (gram.evaluations for gram in grams)
    assert 0 < again < cold or (again == cold == len(X) ** 2)


def test_several_classes_and_another_kernel():
    warm = SVC(warm_start=True, tol=TOL).fit(IRIS, SPECIES)
    warm.set_params(C=3.0, gamma=0.4).fit(IRIS, SPECIES)
    assert_same_machine(warm, SVC(C=3.0, gamma=0.4, tol=TOL).fit(IRIS, SPECIES), IRIS)
    # A class that goes leaves the pairs of the others.
    two = SPECIES > 0
    warm.fit(IRIS[two], SPECIES[two])
    assert_same_machine(warm, SVC(C=3.0, gamma=0.4, tol=TOL).fit(IRIS[two], SPECIES[two]), IRIS)


def test_a_precomputed_matrix_that_grows():
    K = X @ X.T
    warm = SVC(kernel="precomputed", warm_start=True, tol=TOL).fit(K[:500, :500], Y[:500])
    warm.fit(K, Y)
    cold = SVC(kernel="precomputed", tol=TOL).fit(K, Y)
    assert_same_machine(warm, cold, K)
    assert steps(warm) < steps(cold)


def test_strings():
    words = ["abab", "abba", "baba", "cdcd", "dcdc", "ccdd", "abcd", "aabb"] * 2
    labels = ["ab" if word.count("a") else "cd" for word in words]
    warm = SVC(kernel=kernels.Spectrum(), warm_start=True).fit(words, labels)
    assert steps(warm.fit(words, labels)) == 0
    assert_same_machine(
        warm.partial_fit(["dddd"], ["cd"]), SVC(kernel=kernels.Spectrum()).fit([*words, "dddd"], [*labels, "cd"]), words
    )


# --- partial_fit ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, np.float32], ids=["dense", "csr", "float32"])
def test_batches_add_up_to_one_fit(form):
    data = form(LARGE)
    model = SVC(tol=TOL)
    for begin, end in ((0, 700), (700, 1400), (1400, 1500)):
        model.partial_fit(data[begin:end], LABELS[begin:end], classes=[0, 1])
        cold = SVC(tol=TOL).fit(data[:end], LABELS[:end])
        assert_same_machine(model, cold, data)
    assert steps(model) < steps(cold)
    np.testing.assert_array_equal(model.support_, cold.support_)
    np.testing.assert_allclose(model.dual_coef_, cold.dual_coef_, atol=1e-3)
    assert model.shape_fit_ == (1500, 12)


def test_weights_of_batches():
    weight = np.random.default_rng(1).integers(0, 3, len(Y))
    model = SVC(tol=TOL).partial_fit(X[:300], Y[:300], sample_weight=weight[:300])
    model.partial_fit(X[300:], Y[300:], sample_weight=weight[300:])
    assert_same_machine(model, SVC(tol=TOL).fit(X, Y, weight), X)


def test_a_class_that_comes_later():
    model = SVC(tol=TOL).partial_fit(IRIS[:100], SPECIES[:100])
    assert list(model.classes_) == [0, 1]
    model.partial_fit(IRIS[100:], SPECIES[100:])
    assert_same_machine(model, SVC(tol=TOL).fit(IRIS, SPECIES), IRIS)


def test_mixed_forms_stay_sparse_and_text_stays_text():
    names = np.array(["no", "yes"])
    model = SVC(tol=TOL).partial_fit(X[:300], names[Y[:300]]).partial_fit(sp.csr_array(X[300:]), names[Y[300:]])
    assert sp.issparse(model._memory_.samples.X)
    assert_same_machine(model, SVC(tol=TOL).fit(X, names[Y]), X)
    with pytest.raises(ValueError, match="mixes label types"):
        model.partial_fit(X[:2], [0, 1])


def test_fit_with_warm_start_then_partial_fit():
    model = SVC(tol=TOL, warm_start=True).fit(X[:300], Y[:300]).partial_fit(X[300:], Y[300:])
    assert_same_machine(model, SVC(tol=TOL).fit(X, Y), X)


def test_a_fit_that_kept_nothing_is_not_silently_forgotten():
    model = SVC().fit(X[:300], Y[:300])
    with pytest.warns(UserWarning, match=r"starts again.*warm_start=True"):
        model.partial_fit(X[300:], Y[300:])
    assert model.shape_fit_[0] == len(Y) - 300


def test_names_of_features_are_kept_and_checked():
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"])
    model = SVC().partial_fit(frame[:300], Y[:300]).partial_fit(frame[300:], Y[300:])
    assert list(model.feature_names_in_) == ["a", "b"]
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(frame[["b", "a"]], Y)


@pytest.mark.parametrize(
    ("act", "text"),
    [
        (lambda m: m.partial_fit(X[:, :3], Y), r"3 features.*30"),
        (lambda m: m.partial_fit(X, Y[:-1]), "inconsistent"),
        (lambda m: m.partial_fit(X, np.full(len(Y), 7), classes=[0, 1]), r"\[7\].*classes=\[0, 1\]"),
        (lambda m: m.partial_fit(X, Y, sample_weight=-np.ones(len(Y))), "not negative"),
        (lambda m: SVC().partial_fit(X[:5], np.ones(5)), "at least 2 classes"),
    ],
    ids=["features", "lengths", "classes", "weights", "one class"],
)
def test_bad_batches_leave_the_machine_as_it_was(act, text):
    model = SVC().partial_fit(X[:300], Y[:300])
    before = model.decision_function(X)
    with pytest.raises(ValueError, match=text):
        act(model)
    np.testing.assert_array_equal(model.decision_function(X), before)
    assert len(model._memory_.samples.y) == 300


# --- what is kept -----------------------------------------------------------------------------------------------------


def test_a_plain_fit_keeps_nothing_and_files_never_do(tmp_path):
    assert not hasattr(SVC().fit(X, Y), "_memory_")
    model = SVC(warm_start=True).fit(X, Y)
    assert not hasattr(clone(model), "_memory_")
    mercer.save(model, tmp_path / "model.mercer")
    loaded = mercer.load(tmp_path / "model.mercer")
    assert not hasattr(loaded, "_memory_")
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    assert steps(loaded.fit(X, Y)) > 0
    assert steps(pickle.loads(pickle.dumps(model)).fit(X, Y)) == 0
    assert not hasattr(model.set_params(warm_start=False).fit(X, Y), "_memory_")


def test_what_is_kept_is_not_the_callers_memory():
    data, labels = X.copy(), Y.copy()
    model = SVC().partial_fit(data, labels)
    data[:], labels[:] = 0.0, 0
    model.partial_fit(X[:1], Y[:1])
    assert_same_machine(model, SVC().fit(np.r_[X, X[:1]], np.r_[Y, Y[:1]]), X)


def test_samples_are_kept_once():
    known = TrainingSet.of(X, Y, np.ones(len(Y)))
    together, labels, weight = known.followed_by(X[:3], Y[:3], np.ones(3))
    assert TrainingSet.of(together, labels, weight).X is together


# --- the mapping, on problems of every kind ---------------------------------------------------------------------------


def memory_of(problem, solution, keys):
    rows = np.arange(len(keys))
    kept = task_start(rows, problem, solution)
    return WarmStart(keys, np.zeros(len(keys)), {"task": kept}, TrainingSet(None, None, np.ones(len(keys))))


@pytest.mark.parametrize("maker", machines())
def test_every_machine_starts_at_its_own_solution(maker):
    problem, K = machine_problem(maker, 0)
    stop = Stop(tol=1e-6, max_iter=10**7)
    solution, certificate = solve_certified(problem, gram_for(as_kernel("precomputed"), K), stop)
    keys = np.arange(len(K), dtype=np.uint64) * np.uint64(977)
    start = memory_of(problem, solution, keys).start("task", np.arange(len(K)), problem, keys, np.zeros(len(K)))
    np.testing.assert_allclose(start, solution.beta, atol=1e-12)
    _, again = solve_certified(problem, gram_for(as_kernel("precomputed"), K), stop, start)
    assert again.dual == pytest.approx(certificate.dual, rel=1e-9)


def test_twins_are_told_apart_when_samples_move():
    rng = np.random.default_rng(0)
    t, order = rng.normal(size=30), rng.permutation(30)[:20]
    points = rng.normal(size=(30, 2))
    K = points @ points.T + 1.0
    problem = epsilon_svr(t, 0.1, 1.0)
    solution, _ = solve_certified(problem, gram_for(as_kernel("precomputed"), K), Stop(tol=1e-8, max_iter=10**6))
    keys = rng.integers(1, 2**60, 30).astype(np.uint64)
    fewer = epsilon_svr(t[order], 0.1, 2.0)
    start = memory_of(problem, solution, keys).start("task", np.arange(20), fewer, keys[order], np.zeros(20))
    expected = 2.0 * np.r_[solution.beta[:30][order], solution.beta[30:][order]]
    np.testing.assert_allclose(start, fewer.nearest_feasible(expected))
    assert np.abs(start[:20]).sum() > 0
    assert np.abs(start[20:]).sum() > 0


def test_nothing_in_common_is_a_cold_start():
    problem, K = machine_problem(machines()[0].values[0], 0)
    solution, _ = solve_certified(problem, gram_for(as_kernel("precomputed"), K), Stop(tol=1e-3, max_iter=10**6))
    keys = np.arange(len(K), dtype=np.uint64)
    memory = memory_of(problem, solution, keys)
    assert memory.start("another", np.arange(len(K)), problem, keys, np.zeros(len(K))) is None
    strangers = keys + np.uint64(1000)
    assert memory.start("task", np.arange(len(K)), problem, strangers, np.zeros(len(K))) is None
    assert memory.start("task", np.arange(len(K)), problem, keys, np.ones(len(K))) is None


@pytest.mark.parametrize("first", ["integers", "names", "objects", "bools"])
@pytest.mark.parametrize("then", ["integers", "names", "objects", "bools"])
def test_labels_of_another_type_start_anew(first, then):
    """Another type of label is another problem: the result is that of a cold fit."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(int)
    kinds = {"integers": y, "names": y.astype(str), "objects": y.astype(str).astype(object), "bools": y == 1}
    warm = mercer.SVC(warm_start=True).fit(X, kinds[first]).fit(X, kinds[then])
    cold = mercer.SVC().fit(X, kinds[then])
    assert warm.classes_.tolist() == cold.classes_.tolist()
    np.testing.assert_allclose(warm.decision_function(X), cold.decision_function(X), atol=5e-3)


@pytest.mark.parametrize("name", ["SVC", "NuSVC", "SVR", "OneClassSVM", "PegasosSVC"])
@pytest.mark.parametrize("kernel", ["precomputed", kernels.Precomputed()])
def test_a_precomputed_kernel_has_no_partial_fit(name, kernel):
    machine = getattr(mercer, name)(kernel=kernel)
    assert not hasattr(machine, "partial_fit")
    assert hasattr(getattr(mercer, name)(), "partial_fit")
    with pytest.raises(AttributeError) as raised:
        machine.partial_fit([[1.0]], [1])
    assert "warm_start" in str(raised.value.__cause__)
