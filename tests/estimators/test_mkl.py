"""Multiple kernel learning: a cone solver's optimum, a gap that is true, and a machine that is SVC with the sum."""

import pickle
import warnings

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import GridSearchCV

from mercer import SVC, SVR, MKLClassifier, MKLRegressor, certify, leave_one_out
from mercer.kernels import Gaussian, Laplacian, Linear, Polynomial, Spectrum
from reference import kernel_weights

rng = np.random.default_rng(3)
X = rng.normal(size=(36, 3))
Y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1]
LABELS = (Y + 0.3 * rng.normal(size=36) > 0).astype(int)
THREE = np.digitize(Y, [-0.5, 0.4])
WEIGHT = rng.integers(1, 4, size=36).astype(float)
KERNELS = [Linear(), Gaussian(gamma=0.3), Gaussian(gamma=3.0), Polynomial(2, 1.0, 1.0)]
MATRICES = [kernel(X) for kernel in KERNELS]
NORMS = [1.0, 4 / 3, 2.0, 5.0, np.inf]


def pairs(y, C, weight=None, against_rest=False):
    """The problems of the classes' machines, as the cone program takes them."""
    weight = np.ones(len(y)) if weight is None else weight
    labels = np.unique(y)
    sides = [(a, b) for i, a in enumerate(labels) for b in labels[i + 1 :]]
    if against_rest and len(labels) > 2:
        sides = [(a, None) for a in labels]
    for a, b in sides:
        rows = np.flatnonzero((y == a) | (y == b) | (b is None))
        sign = np.where(y[rows] == a, 1.0, -1.0)
        bound = C * weight[rows]
        yield sign, np.where(sign > 0, 0.0, -bound), np.where(sign > 0, bound, 0.0), np.zeros(len(rows)), rows


def tube(y, C, epsilon, weight):
    zero, every = np.zeros(len(y)), np.arange(len(y))
    p = np.r_[y - epsilon, y + epsilon]
    return p, np.r_[zero, -C * weight], np.r_[C * weight, zero], np.zeros(2 * len(y)), np.r_[every, every]


def assert_optimal(model, tasks):
    best = kernel_weights.largest_dual(list(tasks), MATRICES, model.norm, model.scales_)
    proof = model.certificate_
    assert model.converged_
    assert model.n_rounds_ < 30  # Newton's steps, not those of a first-order method
    assert 0 <= proof.gap <= 1e-6 * best
    assert proof.dual <= best * (1 + 1e-7)
    assert proof.primal >= best * (1 - 1e-7)
    assert abs(proof.dual - best) <= 2e-6 * best


@pytest.mark.parametrize("norm", NORMS)
def test_two_classes_reach_the_cone_solvers_optimum(norm):
    model = MKLClassifier(C=2.0, kernel=KERNELS, norm=norm, gap_tol=1e-6).fit(X, LABELS, sample_weight=WEIGHT)
    assert_optimal(model, pairs(LABELS, 2.0, WEIGHT))
    size = np.linalg.norm(model.weights_ * model.scales_, norm)
    np.testing.assert_allclose(size, 1.0, rtol=1e-12)


@pytest.mark.parametrize("norm", [1.0, 2.0])
@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_several_classes_share_the_weights(norm, multiclass):
    weights = {0: 1.0, 1: 2.0, 2: 0.5}
    model = MKLClassifier(
        C=1.0, kernel=KERNELS, norm=norm, gap_tol=1e-6, multiclass=multiclass, class_weight=weights
    ).fit(X, THREE)
    own = np.array([weights[label] for label in THREE])
    assert_optimal(model, pairs(THREE, 1.0, own, against_rest=multiclass == "ovr"))
    assert len(model.certificate_.parts) == 3


@pytest.mark.parametrize("norm", [1.0, 2.0])
@pytest.mark.parametrize("normalise", [True, False])
def test_regression_reaches_the_cone_solvers_optimum(norm, normalise):
    model = MKLRegressor(C=3.0, epsilon=0.05, kernel=KERNELS, norm=norm, normalise=normalise, gap_tol=1e-6)
    model.fit(X, Y, sample_weight=WEIGHT)
    assert_optimal(model, [tube(Y, 3.0, 0.05, WEIGHT)])
    if not normalise:
        assert (model.scales_ == 1).all()


@pytest.mark.parametrize("machine", [MKLClassifier, MKLRegressor])
def test_it_is_the_machine_with_the_weighted_sum(machine):
    plain, y = (SVC, LABELS) if machine is MKLClassifier else (SVR, Y)
    learnt = machine(kernel=KERNELS, norm=2.0, tol=1e-7).fit(X, y)
    total = sum(float(w) * k for w, k in zip(learnt.weights_[1:], KERNELS[1:], strict=True))
    same = plain(kernel=float(learnt.weights_[0]) * KERNELS[0] + total, tol=1e-7).fit(X, y)
    Z = rng.normal(size=(20, 3))
    decide = "decision_function" if machine is MKLClassifier else "predict"
    np.testing.assert_allclose(getattr(learnt, decide)(Z), getattr(same, decide)(Z), atol=1e-5)
    np.testing.assert_allclose(learnt.kernel_(X), same.kernel(X), rtol=1e-12)


def test_one_kernel_is_svc():
    one, plain = MKLClassifier(kernel=[Gaussian(0.5)]).fit(X, THREE), SVC(kernel=Gaussian(0.5)).fit(X, THREE)
    np.testing.assert_array_equal(one.decision_function(X), plain.decision_function(X))
    assert one.weights_.tolist() == [1.0]


def test_matrices_csr_and_arrays_agree():
    options = {"C": 2.0, "gap_tol": 1e-6}
    plain = MKLClassifier(kernel=KERNELS, **options).fit(X, LABELS)
    sparse = MKLClassifier(kernel=KERNELS, **options).fit(sp.csr_array(X), LABELS)
    listed = MKLClassifier(kernel="precomputed", **options).fit(MATRICES, LABELS)
    stacked = MKLClassifier(kernel="precomputed", **options).fit(np.stack(MATRICES, axis=-1), LABELS)
    Z = rng.normal(size=(9, 3))
    new = [kernel(Z, X) for kernel in KERNELS]
    wanted = plain.decision_function(Z)
    np.testing.assert_allclose(sparse.decision_function(Z), wanted, atol=1e-3)
    np.testing.assert_allclose(listed.decision_function(new), wanted, atol=1e-3)
    np.testing.assert_array_equal(listed.decision_function(new), stacked.decision_function(np.stack(new, axis=-1)))
    np.testing.assert_allclose(listed.weights_, plain.weights_, atol=1e-3)
    weighted = MKLClassifier(kernel="precomputed", **options).fit(MATRICES, LABELS, sample_weight=np.arange(36) % 3)
    kept = np.arange(36) % 3 > 0
    some = [K[np.ix_(kept, kept)] for K in MATRICES]
    fewer = MKLClassifier(kernel="precomputed", **options).fit(
        some, LABELS[kept], sample_weight=np.arange(36)[kept] % 3
    )
    np.testing.assert_allclose(weighted.weights_, fewer.weights_, atol=1e-9)


def test_matrices_go_through_a_search():
    search = GridSearchCV(MKLClassifier(kernel="precomputed"), {"C": [0.1, 1.0]}, cv=3)
    search.fit(np.stack(MATRICES, axis=-1), LABELS)
    assert search.best_score_ > 0.5


def test_a_weight_is_a_repetition():
    model = MKLClassifier(kernel=KERNELS).fit(X, THREE, sample_weight=WEIGHT)
    times = WEIGHT.astype(int)
    again = MKLClassifier(kernel=KERNELS).fit(np.repeat(X, times, axis=0), np.repeat(THREE, times))
    np.testing.assert_array_equal(model.weights_, again.weights_)
    np.testing.assert_array_equal(model.decision_function(X), again.decision_function(X))


def test_strings_pickles_and_names():
    words = ["abab", "abba", "aabb", "cdcd", "ccdd", "dccd"]
    model = MKLClassifier(kernel=[Spectrum(1), Spectrum(2)]).fit(words, [0, 0, 0, 1, 1, 1])
    assert (pickle.loads(pickle.dumps(model)).predict(words) == [0, 0, 0, 1, 1, 1]).all()
    named = MKLClassifier(kernel=["linear", "rbf", lambda A, B: (A @ B.T) ** 2]).fit(X, LABELS)
    assert named.score(X, LABELS) > 0.8


def test_a_kernel_of_low_rank_whose_best_weight_is_one():
    """There β is not unique, and most of the optimal ones do not prove the weights."""
    A = np.repeat([[1.0, 3.0], [2.0, 1.0], [3.0, 3.0], [4.0, 1.0]], 4, axis=0)
    model = MKLClassifier(gap_tol=1e-6).fit(A, np.repeat([1, 2, 1, 2], 4))
    assert model.converged_
    assert model.weights_[1:].tolist() == [0.0, 0.0]


def test_everything_inside_the_tube_proves_itself():
    with pytest.warns(UserWarning, match="inside the tube"):
        model = MKLRegressor(epsilon=0.5).fit(X, 1e-3 * Y)
    assert model.converged_
    assert model.certificate_.gap < 1e-12


def hinges(sign, bound):
    return lambda f: mpmath.fsum(
        mpmath.mpf(float(c)) * max(mpmath.mpf(0), 1 - int(s) * x) for s, c, x in zip(sign, bound, f, strict=True)
    )


@pytest.mark.parametrize("seed", range(6))
def test_the_gap_is_true_in_a_hundred_digits(seed):
    """Whatever the tolerance, for data that cancel and kernels of very different size."""
    rng = np.random.default_rng(seed)
    n, norm = 14, [1.0, 1.5, 2.0, 30.0, np.inf, 1.05][seed]
    A = np.round(rng.normal(size=(n, 2)), 1)
    A[:, 1] += 1e3 * (seed % 2)
    y = np.where(np.arange(n) < 7, 1, 2)
    A[3], y[3] = A[2], y[2]  # merged, and split again
    K = [A @ A.T, (A @ A.T) ** 2 * 1e-6, 1e4 * (1.0 + np.minimum(A, 5) @ np.minimum(A, 5).T)]
    C = 10.0 ** (seed - 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = MKLClassifier(C=C, kernel="precomputed", norm=norm, tol=[1e-1, 1e-4][seed % 2]).fit(K, y)
        merging = MKLClassifier(C=C, kernel=["linear", Laplacian(0.1)], norm=norm, max_iter=40).fit(A, y)
    sign = np.where(y == 1, 1.0, -1.0)
    for model, matrices in ((given, K), (merging, None)):
        if matrices is None:  # in a hundred digits
            with mpmath.workdps(100):
                rows = [[mpmath.mpf(float(a)) for a in row] for row in A]
                gamma = mpmath.mpf(0.1)
                linear = [[mpmath.fsum(a * b for a, b in zip(r, q, strict=True)) for q in rows] for r in rows]
                absolute = [
                    [mpmath.exp(-gamma * mpmath.fsum(abs(a - b) for a, b in zip(r, q, strict=True))) for q in rows]
                    for r in rows
                ]
                matrices = [np.array(linear, dtype=object), np.array(absolute, dtype=object)]
        beta = np.zeros(n)
        beta[model.support_] = model.dual_coef_[0]
        task = (
            lambda c: mpmath.fsum(int(s) * x for s, x in zip(-sign, c, strict=True)),
            hinges(-sign, np.full(n, C)),
            range(n),
        )
        weights, scales = model.weights_, model.scales_
        primal, dual = kernel_weights.values([task], matrices, norm, scales, [beta], model.intercept_, weights)
        proof = model.certificate_
        assert primal <= proof.primal
        assert dual >= proof.dual
        assert primal - dual <= proof.gap


def test_what_is_not_offered_says_so():
    for options, message in (
        ({"norm": 0.5}, "norm=0.5 must be at least 1"),
        ({"kernel": []}, "is empty; give one or more kernels"),
        ({"kernel": ["linear", "precomputed"]}, "combine"),
        ({"bias": False}, "unpenalised b"),
        ({"C": np.inf}, "finite C"),
        ({"multiclass": "crammer-singer"}, "'ovo' or 'ovr'"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            MKLClassifier(**options).fit(X, LABELS)
    with pytest.raises(TypeError, match="normalise=2"):
        MKLRegressor(normalise=2).fit(X, Y)
    fitted = MKLClassifier(kernel="precomputed").fit(MATRICES, LABELS)
    with pytest.raises(ValueError, match="3 matrices, but the machine was fitted on 4"):
        fitted.predict(MATRICES[:3])
    with pytest.raises(TypeError, match="weights of several kernels"):
        certify(MKLClassifier(kernel=KERNELS), X, LABELS, np.zeros(36))
    with pytest.raises(TypeError, match="leave_one_out does not support MKLClassifier"):
        leave_one_out(MKLClassifier(kernel=KERNELS), X, LABELS)
    with pytest.raises(TypeError, match="leave_one_out does not support MKLClassifier"):
        leave_one_out(MKLClassifier(kernel=KERNELS).fit(X, LABELS), X, LABELS)
