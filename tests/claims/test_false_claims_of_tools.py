"""Attempts to prove false what tune, svm_path and compress promise, against formulas and loops of our own."""

import warnings

import numpy as np
import pytest
from sklearn.svm import SVC as Peer

import mercer
from mercer.kernels import FromFeatureMap, Gaussian, Linear

WIDE = np.longdouble


# --- tune: the scores and the choice of an exhaustive search, for kernels that print alike ----------------------------


def squares(A, B):
    return ((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2)


def metrics(rng, d, column):
    """Two metrics that print alike: they differ in the middle of a large matrix."""
    far = np.eye(d) * 0.02
    near = far.copy()
    near[column, column] = 5.0

    def formula(M):
        return lambda A, B: np.exp(-np.einsum("ijk,kl,ijl->ij", A[:, None] - B, M, A[:, None] - B))

    return [(Gaussian(M=M), formula(M)) for M in (far, near)]


def columns(rng, d, column):
    def one(k):
        return Gaussian(gamma=0.5).of(lambda A: A[:, k : k + 1]), lambda A, B: np.exp(
            -0.5 * squares(A[:, k : k + 1], B[:, k : k + 1])
        )

    return [one(0), one(column)]


def feature_maps(rng, d, column):
    def one(k):
        def phi(A):
            return np.tanh(np.asarray(A)[:, k : k + 2])

        return FromFeatureMap(phi), lambda A, B: phi(A) @ phi(B).T

    return [one(k) for k in (0, d // 2, column)]


def weightings(rng, d, column):
    def one(k):
        def weight(A):
            return 1.0 + 9.0 * (np.asarray(A)[:, k] > 0)

        return (Linear() + 1).scaled_by(weight), lambda A, B: np.outer(weight(A), weight(B)) * (A @ B.T + 1)

    return [one(0), one(column)]


@pytest.mark.parametrize("draw", [metrics, columns, feature_maps, weightings])
def test_kernels_that_print_alike_are_tuned_apart(draw):
    for seed in range(2):
        rng = np.random.default_rng(seed)
        n, d = 90, 40
        X = rng.normal(size=(n, d))
        column = int(rng.integers(8, d - 8))
        y = (X[:, column] > 0).astype(int)
        fold = rng.permutation(n) % 3
        folds = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(3)]
        drawn = draw(rng, d, column)
        own = np.zeros(len(drawn))
        for i, (_, formula) in enumerate(drawn):
            for train, test in folds:
                peer = Peer(kernel="precomputed", tol=1e-6).fit(formula(X[train], X[train]), y[train])
                own[i] += peer.score(formula(X[test], X[train]), y[test]) / 3
        grid = {"C": [1.0], "kernel": [kernel for kernel, _ in drawn]}
        found = mercer.tune(mercer.SVC(), X, y, grid=grid, cv=folds, skip=False)
        # A row with f = 0 to tol may count either way.
        np.testing.assert_allclose(found.cv_results_["mean_test_score"], own, atol=0.03)
        assert own[found.best_index_] >= own.max() - 0.03


# --- svm_path: the Karush–Kuhn–Tucker conditions at its own breakpoints -----------------------------------------------


@pytest.mark.skipif(np.finfo(WIDE).eps > 1e-18, reason="needs an extended precision")
@pytest.mark.parametrize("bias", [False, True, "regularized"])
@pytest.mark.parametrize("seeds", [(1, 4, 7, 29, 37), pytest.param(range(150), marks=pytest.mark.thorough)])
def test_a_path_is_optimal_at_its_own_breakpoints(seeds, bias):
    """One smooth feature: free vectors are nearly dependent, and rounding moves α along what f does not feel."""
    worst = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(15, 1))
        s = np.where(x[:, 0] + rng.normal(size=15) > 0, 1.0, -1.0)
        if len(set(s)) < 2:
            continue
        gamma = float(rng.choice([0.05, 0.3, 2.0]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            path = mercer.svm_path(x, s, gamma=gamma, bias=bias)
        K = np.exp(-WIDE(gamma) * (x.astype(WIDE) - x.T) ** 2) + (bias == "regularized")
        for C in path.C_:
            alpha = path.alpha(C)
            assert (alpha >= 0).all()
            assert (alpha <= C).all()
            beta = (s * alpha).astype(WIDE)
            h = s - K @ beta
            # y(f − b) may rise, or fall, with α
            up, low = (alpha < C) & (s > 0) | (alpha > 0) & (s < 0), (alpha > 0) & (s > 0) | (alpha < C) & (s < 0)
            top, bottom = h[up].max(initial=-np.inf), h[low].min(initial=np.inf)
            violation = top - bottom if bias is True else max(top, -bottom)
            f = np.ravel(path.decision_function(x, [C]))
            off = np.ptp(f - K @ beta) if bias is True else np.abs(f - K @ beta).max()
            balance = abs(beta.sum()) if bias is True else 0
            worst.append((max(violation, off, balance), seed, C))
    assert len(worst) > 20 * len(seeds)
    assert max(worst)[0] <= 1e-6, sorted(worst, reverse=True)[:5]


# --- compress: no f is further from the original's than `bound` -------------------------------------------------------


BALLS = {
    "rbf": lambda A, B, gamma: np.exp(-gamma * squares(A, B)),
    "laplacian": lambda A, B, gamma: np.exp(-gamma * np.abs(A[:, None] - B).sum(axis=2)),
    "linear": lambda A, B, gamma: A @ B.T,
}


@pytest.mark.parametrize("kernel", BALLS)
def test_the_bound_of_a_compressed_ball_holds(kernel):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, gamma = rng.normal(size=(32, 1 + seed % 2)), float(10.0 ** rng.uniform(-1, 0.5))
        model = mercer.SVDD(nu=float(rng.uniform(0.1, 0.6)), kernel=kernel, gamma=gamma).fit(X)
        small = mercer.compress(model, 3 if kernel != "linear" else 1)
        T = np.r_[X, 3 * rng.normal(size=(300, X.shape[1]))]

        vectors, beta = X[model.support_], model.dual_coef_[0]
        # f is R² − ‖φ(x) − c‖², and so 2⟨c, φ(x)⟩ − k(x, x) up to a constant.
        own = 2 * BALLS[kernel](T, vectors, gamma) @ beta - ((T * T).sum(axis=1) if kernel == "linear" else 1.0)
        f = model.decision_function(T)
        np.testing.assert_allclose(f - f[0], own - own[0], atol=1e-9 * max(1.0, np.abs(own).max()))
        off = np.abs(f - small.decision_function(T))
        assert (off <= np.ravel(small.compression_.bound(T)) * (1 + 1e-9) + 1e-12).all()
