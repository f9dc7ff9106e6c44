"""The error that a compression reports, and the labels that it guarantees, against decimal arithmetic."""

from itertools import product

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_moons

import mercer
from mercer.inspection.compression.distance import distances
from mercer.inspection.compression.report import winner_stays
from mercer.kernels import FromFunction, Gaussian, Laplacian, Linear, Matern, Polynomial
from mercer.places.expansion import Expansion
from mercer.samples.labels import votes
from reference import exact_expansions as exact

X, y = make_moons(50, noise=0.25, random_state=0)
B, c = make_blobs(60, centers=4, cluster_std=2.0, random_state=1)


@pytest.mark.parametrize(
    ("kernel", "C", "shift"),
    [
        (Gaussian(gamma=0.7), 1e6, 0.0),
        pytest.param(Gaussian(gamma=0.7), 1.0, 0.0, marks=pytest.mark.thorough),
        pytest.param(Gaussian(gamma=1e-4), 1e3, 0.0, marks=pytest.mark.thorough),  # nearly dependent vectors
        pytest.param(Gaussian(gamma=0.7), 10.0, 1e5, marks=pytest.mark.thorough),
        pytest.param(Laplacian(gamma=0.5), 10.0, 0.0, marks=pytest.mark.thorough),
        (Polynomial(degree=4, gamma=1.0, coef0=1.0), 1e3, 0.0),
        pytest.param(3.0 * Polynomial(degree=2, gamma=1.0, coef0=1.0) + 2.0, 1.0, 0.0, marks=pytest.mark.thorough),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_error_is_never_less_than_the_truth_and_hardly_more(kernel, C, shift):
    model = mercer.SVC(C=C, kernel=kernel, max_iter=20000).fit(X + shift, y)
    small = mercer.compress(model, 5, X=X + shift)
    true = exact.distance(model._expansion_, small._expansion_)
    assert true <= small.compression_.error <= true * (1 + 1e-8)
    assert small.compression_.b_change >= abs(model.intercept_[0] - small.intercept_[0])


def test_large_coefficients_that_cancel():
    """Nearly dependent vectors: the terms of the square are 10¹⁸ times larger than it."""
    rng = np.random.default_rng(0)
    vectors = 1e-3 * rng.normal(size=(24, 2))
    kernel, c = Gaussian(gamma=1.0), 1e6 * rng.normal(size=(24, 1))
    one = Expansion(kernel, vectors, c, np.zeros(1))
    a = np.linalg.lstsq(kernel(vectors[:12]), kernel(vectors[:12], vectors) @ c, rcond=1e-15)[0]
    other = Expansion(kernel, vectors[:12], a, np.zeros(1))
    true = exact.distance(one, other)
    assert (np.abs(c).sum() + np.abs(a).sum()) ** 2 > 1e18 * true**2
    assert true <= distances(one, other)[0] <= true * (1 + 1e-8)


def squared(P, Q):
    return (1 + P @ Q.T) ** 2


class Vouched(FromFunction):
    positive_definite = "yes"


def test_a_kernel_that_nobody_vouches_for_proves_nothing():
    model = mercer.SVC(kernel=FromFunction(squared)).fit(X, y)
    report = mercer.compress(model, 6).compression_
    assert report.error >= 0
    for ask in (report.bound, report.keeps_label):
        with pytest.raises(ValueError, match="this one is not known to be"):
            ask(X)
    vouched = mercer.SVC(kernel=Vouched(squared)).fit(X, y)
    assert mercer.compress(vouched).compression_.keeps_label(X).any()


def test_rows_of_float32_are_refused_unless_they_are_predicted_in_float64():
    model = mercer.SVC(C=1.0).fit(X, y)
    report = mercer.compress(model, max_error=1e-6).compression_
    with pytest.raises(TypeError, match="float32"):
        report.keeps_label(X.astype(np.float32))
    linear = mercer.compress(mercer.SVC(kernel="linear").fit(X, y))
    rows = X.astype(np.float32)
    kept = linear.compression_.keeps_label(rows)
    assert kept.any()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_vectors_go_only_where_nothing_is_lost():
    """Far from the origin a rounding of k(x, x) is more than all of w."""
    rows = np.sort(np.random.default_rng(0).normal(size=(15, 1)), axis=0) + 1e3
    model = mercer.SVC(kernel=Polynomial(degree=3, gamma=0.1, coef0=0.3)).fit(rows, np.arange(15) % 2)
    small = mercer.compress(model)
    assert small.compression_.error <= 1e-8 * model.rkhs_norm_
    np.testing.assert_array_equal(small.predict(rows), model.predict(rows))


def test_a_linear_machine_is_compared_weight_by_weight():
    rows = np.random.default_rng(0).normal(size=(40, 3))
    one = mercer.SVC(kernel="linear").fit(rows, np.arange(40) % 2)._expansion_
    one = Expansion(one.kernel, one.vectors, 1e8 * one.coefficients, one.b)
    weights = np.asarray(one.coefficients.T @ one.vectors)
    other = Expansion(one.kernel, weights, np.ones((1, 1)), one.b)
    true = exact.distance(one, other)
    assert true <= distances(one, other)[0] <= true * (1 + 1e-8)


@pytest.mark.parametrize("scale", [1e-158, 1e-154, 1e149, 1e150])
def test_features_at_the_ends_of_float64(scale):
    rows = scale * np.random.default_rng(0).normal(size=(14, 2))
    model = mercer.SVC(kernel=Gaussian(gamma=scale**-2 if scale > 1 else 1e300)).fit(rows, np.arange(14) % 2)
    small = mercer.compress(model, 7)
    true = exact.distance(model._expansion_, small._expansion_)
    assert true <= small.compression_.error <= true * (1 + 1e-8)
    if scale < 1:
        linear = mercer.SVC(kernel=3e-10 * Linear()).fit(rows, np.arange(14) % 2)
        with pytest.raises(FloatingPointError, match="scale the features up"):
            mercer.compress(linear)


def test_float32_vectors_and_identical_machines():
    model = mercer.SVC(C=10).fit(X.astype(np.float32), y)
    small = mercer.compress(model, 6)
    true = exact.distance(model._expansion_, small._expansion_)
    assert true <= small.compression_.error <= true * (1 + 1e-8)
    assert distances(model._expansion_, model._expansion_)[0] < 1e-8


@pytest.mark.parametrize(
    "kernel",
    [Matern(nu=1.5), Gaussian(M=[[1.0, 0.2], [0.2, 0.5]]), FromFunction(lambda P, Q: (1 + P @ Q.T) ** 2), "cosine"],
    ids=str,
)
def test_kernels_in_float64_have_a_wider_bound_that_holds(kernel):
    model = mercer.SVC(C=1.0, kernel=kernel).fit(X, y)
    small = mercer.compress(model, 6)
    one, other = model._expansion_, small._expansion_
    V, d = np.vstack([one.vectors, other.vectors]), np.concatenate([one.coefficients, -other.coefficients])[:, 0]
    true = np.sqrt(max(0.0, d @ model.kernel_(V) @ d))
    assert true <= small.compression_.error * (1 + 1e-7)
    assert small.compression_.error <= true + 1e-3 * model.rkhs_norm_


def rows_around(model, vectors, n, rng):
    """Random rows near, far and very far, the vectors themselves, and rows near the boundary."""
    d = vectors.shape[1]
    near = vectors[rng.integers(len(vectors), size=n)] + 0.3 * rng.normal(size=(n, d))
    far = rng.normal(size=(n // 4, d)) * 10.0 ** rng.uniform(0, 12, (n // 4, 1))
    rows = np.vstack([near, far, vectors, vectors[::-1]])
    f = np.abs(np.atleast_2d(model.decision_function(rows).T).T).min(axis=1)
    return np.vstack([rows, rows[np.argsort(f)[: n // 4]] + 1e-9])


def values_of(model, rows):
    """What `bound` is about: decision_function, of pairs of classes one column for each."""
    if hasattr(model, "decision_function_shape"):
        model = model.set_params(decision_function_shape="ovo")
    return model.decision_function(rows)


MACHINES = {
    "two classes": lambda: mercer.SVC(C=10).fit(X, y),
    "polynomial": lambda: mercer.SVC(kernel="poly", degree=3, coef0=1.0, gamma=1.0).fit(X, y),
    "large C": lambda: mercer.SVC(C=1e6, gamma=2.0, max_iter=20000).fit(X, y),
    "float32": lambda: mercer.SVC(C=10).fit(X.astype(np.float32), y),
    "votes": lambda: mercer.SVC(C=5).fit(B, c),
    "ties broken": lambda: mercer.SVC(C=5, break_ties=True).fit(B, c),
    "against the rest": lambda: mercer.SVC(C=5, multiclass="ovr").fit(B, c),
    "joint": lambda: mercer.SVC(C=5, multiclass="crammer-singer").fit(B, c),
    "nu": lambda: mercer.NuSVC(nu=0.3).fit(B, c),
    "one class": lambda: mercer.OneClassSVM(nu=0.2).fit(X),
    "ball": lambda: mercer.SVDD(nu=0.2).fit(X),
    "least squares": lambda: mercer.RLSClassifier(lam=0.1).fit(B, c),
    "logistic": lambda: mercer.KernelMachineClassifier("logistic", lam=0.01).fit(X, y),
    "linear": lambda: mercer.SVC(kernel="linear").fit(B, c),
}


USUAL = ("two classes", "polynomial", "votes", "ball")
CASES = [(name, 500) for name in USUAL]
CASES += [pytest.param(name, 100_000, marks=pytest.mark.thorough) for name in MACHINES]


@pytest.mark.parametrize(("name", "size"), CASES)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_kept_labels_are_the_originals(name, size):
    model, rng, kept_any = MACHINES[name](), np.random.default_rng(3), False
    vectors = np.asarray(model._expansion_.vectors, dtype=np.float64)
    for n_vectors in (3, 0.5):
        small = mercer.compress(
            model, n_vectors, X=B if vectors.shape[0] and hasattr(model, "classes_") and len(model.classes_) > 2 else X
        )
        rows = rows_around(small, vectors, size, rng)
        kept = small.compression_.keeps_label(rows)
        assert (small.predict(rows) == model.predict(rows))[kept].all()
        f, g = (values_of(m, rows) for m in (model, small))
        bound = small.compression_.bound(rows)
        assert bound.shape == f.shape
        assert (np.abs(f - g) <= bound).all()
        kept_any |= kept.any()
    assert kept_any


LONG = {
    "linear": lambda P, Q: P @ Q.T,
    "poly": lambda P, Q: (P @ Q.T + 1) ** 3,
    "rbf": lambda P, Q: np.exp(-2 * ((P[:, None] - Q) ** 2).sum(axis=2)),
    "laplacian": lambda P, Q: np.exp(-2 * np.abs(P[:, None] - Q).sum(axis=2)),
}


@pytest.mark.parametrize("kernel", LONG)
def test_the_bound_of_a_ball_is_in_the_unit_of_its_decision_function(kernel):
    """R² − ‖φ(x) − a‖² from vectors and coefficients in extended precision: f is twice the expansion less k(x, x)."""

    def ball(machine, rows):
        P, Q = rows.astype(np.longdouble), machine._expansion_.vectors.astype(np.longdouble)
        own = np.array([LONG[kernel](p[None], p[None])[0, 0] for p in P])
        return 2 * (LONG[kernel](P, Q) @ machine._expansion_.coefficients[:, 0] + machine._expansion_.b[0]) - own, own

    gamma = 1.0 if kernel == "poly" else 2.0
    model = mercer.SVDD(nu=0.4, kernel=kernel, gamma=gamma, coef0=1.0).fit(X)
    rows = np.vstack([X, np.random.default_rng(0).normal(size=(200, 2))])
    for asked in ({"n_vectors": 1}, {"n_vectors": 4, "X": X}, {"max_error": 0.2}):
        small = mercer.compress(model, **asked)
        (f, own), (g, _), report = ball(model, rows), ball(small, rows), small.compression_
        np.testing.assert_allclose(small.decision_function(rows), g.astype(float), rtol=1e-9, atol=1e-9)
        V = np.vstack([one._expansion_.vectors for one in (model, small)]).astype(np.longdouble)
        c = np.vstack([model._expansion_.coefficients, -small._expansion_.coefficients])[:, 0]
        twice = 2 * np.sqrt(max(0, c @ LONG[kernel](V, V) @ c))
        assert twice * (1 - 1e-6) - 1e-8 <= report.error <= min(twice * (1 + 1e-6) + 1e-8, asked.get("max_error", 1e9))
        assert report.bound(rows).shape == (len(rows),)
        assert (np.abs(f - g) <= report.bound(rows)).all()
        assert (np.abs(f - g) <= report.error * np.sqrt(own) * (1 + 1e-9) + report.b_change + 1e-12).all()


def test_the_bound_has_the_shape_of_predictions_and_allows_for_their_order():
    t = X[:, 0] + np.random.default_rng(0).normal(size=50)
    for machine, target in [
        (mercer.SVR(), t),
        (mercer.RLSRegressor(lam=0.1), t),
        (mercer.RLSRegressor(lam=0.1), t[:, None]),
        (mercer.NystromRLS(n_landmarks=20), t[:, None]),
        (mercer.QuantileSVR([0.5]), t),
        (mercer.QuantileSVR([0.4, 0.45, 0.5], C=100, gamma=3.0), t),  # of which predict sorts what crosses
    ]:
        model = machine.fit(X, target)
        small = mercer.compress(model, 3)
        f, g, bound = model.predict(X), small.predict(X), small.compression_.bound(X)
        assert f.shape == g.shape == bound.shape
        assert (np.abs(f - g) <= bound).all()


def test_exact_arithmetic_agrees_with_what_is_kept():
    """Signs in sixty digits, where a row is within a rounding of the bound as well."""
    model = mercer.SVC(C=1e4, gamma=3.0, max_iter=5000).fit(X, y)
    small = mercer.compress(model, 0.7)
    rows = np.random.default_rng(5).normal(size=(60, 2))
    kept = small.compression_.keeps_label(rows)
    assert 0 < kept.sum() < len(kept)
    for row in rows[kept]:
        assert (exact.decision(model._expansion_, row) >= 0) == (exact.decision(small._expansion_, row) >= 0)


def test_votes_that_are_not_safe_may_go_anywhere():
    """All ways to decide the pairs that are not safe, by brute force."""
    rng = np.random.default_rng(7)
    values, bound = rng.normal(size=(80, 6)), np.abs(rng.normal(size=(80, 6)))
    for ties in (False, True):
        kept = winner_stays(values, bound, 4, ties)
        for row, (v, b) in enumerate(zip(values, bound, strict=True)):
            choices = [[np.sign(a)] if abs(a) > e else [-1.0, 1.0] for a, e in zip(v, b, strict=True)]
            tables = np.array([votes(np.array([way]), 4)[0][0] for way in product(*choices)])
            always = {int(np.argmax(table)) for table in tables}
            tie = any((table == table.max()).sum() > 1 for table in tables)
            assert kept[row] == (len(always) == 1 and not (ties and tie))
        assert kept.any()
        assert not kept.all()
