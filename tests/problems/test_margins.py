"""Margins, distances, slacks and hulls against closed forms, scikit-learn's attributes and plain arithmetic."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.svm import SVC as PeerSVC

from mercer import SVC
from mercer.problems.margins import SeveralMargins
from reference.problems import gram_matrix

TOL = 1e-10
IRIS, SPECIES = load_iris(return_X_y=True)
CANCER, BENIGN = load_breast_cancer(return_X_y=True)
CANCER = ((CANCER - CANCER.mean(axis=0)) / CANCER.std(axis=0))[:200]
BENIGN = BENIGN[:200]


# --- closed forms -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("a", [0.5, 1.0, 7.0])
def test_two_points(a):
    """x = ±a: w = 1/a, the margin is a, α = 1/(2a²) each, and the points are their own hulls."""
    X, y = np.array([[-a], [a]]), np.array([0, 1])
    model = SVC(C=1e6, kernel="linear", tol=TOL).fit(X, y)
    margins, hulls = model.margins(X, y), model.nearest_points()
    assert model.rkhs_norm_ == pytest.approx(1 / a)
    assert margins.rho == pytest.approx(a)
    assert margins.geometric_margin == pytest.approx(a)
    assert margins.functional_margin == pytest.approx(1.0)
    assert margins.alpha_sum == pytest.approx(1 / a**2)
    # The two differ by the gap, in which C multiplies the last bits of the slacks.
    values, gap = {"|w|²": 1 / a**2, "Σα − ΣCξ": 1 / a**2}, model.certificate_.gap
    assert gap < 1e-6
    assert margins.inverse_rho_squared == pytest.approx(values, abs=gap)
    np.testing.assert_allclose(margins.signed_distances, [-a, a])
    np.testing.assert_array_equal(margins.free, [0, 1])
    assert len(margins.bounded) == len(margins.other) == margins.n_errors == 0
    assert margins.b_interval is None
    assert hulls.distance == pytest.approx(2 * a)
    np.testing.assert_allclose(hulls.points, [[a], [-a]])
    assert hulls.classes == (1, 0)


def test_four_points_of_a_square_and_one_behind_them():
    """Sides at x₁ = ±1: w = (1, 0), the hulls' nearest points face each other, the point behind is no vector."""
    X = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0], [4.0, 0.5]])
    y = np.array(["right", "right", "left", "left", "right"])
    model = SVC(C=1e6, kernel="linear", tol=TOL).fit(X, y)
    margins, hulls = model.margins(X, y), model.nearest_points()
    np.testing.assert_allclose(margins.geometric_margins, [1, 1, 1, 1, 4])
    np.testing.assert_allclose(model.signed_distance([[0.0, 9.0], [-3.0, 0.0]]), [0.0, -3.0], atol=1e-9)
    assert margins.rho == pytest.approx(1.0)
    assert hulls.distance == pytest.approx(2.0)
    np.testing.assert_allclose(hulls.points[:, 0], [1.0, -1.0])
    assert hulls.points[0, 1] == pytest.approx(hulls.points[1, 1])
    assert 4 in margins.other
    assert margins.classes == ("left", "right")
    assert repr(margins).startswith("Margins('right' against 'left': 5 samples, geometric margin 1")


@pytest.mark.parametrize("C", [0.01, 0.1, 0.4])
def test_b_is_an_interval_where_no_vector_is_free(C):
    """x = ±1 with C < ½: α = C on both, w = 2C, and every b with both points inside the margin costs the same."""
    X, y = np.array([[-1.0], [1.0]]), np.array([-1, 1])
    model = SVC(C=C, kernel="linear", tol=TOL).fit(X, y)
    margins = model.margins(X, y)
    assert margins.b_interval == pytest.approx((-(1 - 2 * C), 1 - 2 * C))
    np.testing.assert_array_equal(margins.bounded, [0, 1])

    def primal(b):
        return 0.5 * (2 * C) ** 2 + C * np.maximum(0, 1 - y * (2 * C * X[:, 0] + b)).sum()

    low, high = margins.b_interval
    for b in (low, margins.b, high):
        assert primal(b) == pytest.approx(model.certificate_.primal)
    assert primal(low - 0.1) > primal(low) + 0.05 * C
    assert primal(high + 0.1) > primal(high) + 0.05 * C
    assert "any in [" in str(margins)


def test_a_weight_of_zero_does_not_narrow_the_interval():
    X, y = np.array([[-1.0], [1.0], [0.1]]), np.array([-1, 1, -1])
    model = SVC(C=0.1, kernel="linear", tol=TOL).fit(X, y, sample_weight=[1, 1, 0])
    assert model.margins(X, y).b_interval == pytest.approx((-0.8, 0.8))


def test_no_plane():
    """One x with both labels: w = 0, every f is b, and nothing has a distance."""
    X, y = np.array([[1.0], [1.0]]), np.array([0, 1])
    model = SVC(kernel="linear").fit(X, y)
    assert model.rkhs_norm_ == 0
    assert model.margins(X, y).rho == np.inf
    assert not np.isfinite(model.signed_distance(X)).any()
    assert model.nearest_points().distance == 0


# --- against scikit-learn's attributes --------------------------------------------------------------------------------

KERNELS = {
    "linear": {"kernel": "linear"},
    "rbf": {"kernel": "rbf", "gamma": 0.1},
    "poly": {"kernel": "poly", "degree": 2, "gamma": 0.2, "coef0": 1.0},
}


def numbers(options):
    return {name: value for name, value in options.items() if name != "kernel"}


@pytest.mark.parametrize("form", ["dense", "csr", "precomputed"])
@pytest.mark.parametrize("name", KERNELS)
def test_two_classes_as_computed_from_scikit_learns_fit(name, form):
    options, C = KERNELS[name], 0.5
    K = gram_matrix(options["kernel"], CANCER, **numbers(options))
    peer = PeerSVC(C=C, tol=1e-9, **options).fit(CANCER, BENIGN)
    beta = np.zeros(len(BENIGN))
    beta[peer.support_] = peer.dual_coef_[0]
    f = K @ beta + peer.intercept_[0]
    norm = np.sqrt(beta @ K @ beta)
    s = np.where(BENIGN == 1, 1, -1)
    slack = np.maximum(0, 1 - s * f)

    given, mine = {
        "dense": (CANCER, SVC(C=C, tol=1e-9, **options)),
        "csr": (sp.csr_array(CANCER), SVC(C=C, tol=1e-9, **options)),
        "precomputed": (K, SVC(C=C, tol=1e-9, kernel="precomputed")),
    }[form]
    model = mine.fit(given, BENIGN)
    margins = model.margins(given, BENIGN)
    assert model.rkhs_norm_ == pytest.approx(norm, rel=1e-5)
    assert margins.rho == pytest.approx(1 / norm, rel=1e-5)
    np.testing.assert_allclose(margins.functional_margins, s * f, atol=1e-4)
    np.testing.assert_allclose(margins.geometric_margins, s * f / norm, atol=1e-4)
    np.testing.assert_allclose(model.signed_distance(given), f / norm, atol=1e-4)
    np.testing.assert_allclose(margins.slacks, slack, atol=1e-4)
    assert margins.functional_margin == pytest.approx((s * f).min(), abs=1e-4)
    assert margins.n_errors == (peer.predict(CANCER) != BENIGN).sum()
    size = np.abs(beta)
    np.testing.assert_array_equal(margins.bounded, np.flatnonzero(size == C))
    np.testing.assert_array_equal(margins.free, np.flatnonzero((size > 0) & (size < C)))
    np.testing.assert_array_equal(margins.other, np.flatnonzero(size == 0))
    # 1/ρ² from α, C and the slacks alone.
    assert margins.inverse_rho_squared["Σα − ΣCξ"] == pytest.approx(size.sum() - C * slack.sum(), rel=1e-4)
    assert margins.inverse_rho_squared["|w|²"] == pytest.approx(norm**2, rel=1e-4)


@pytest.mark.parametrize("bias", [True, False, "regularized"])
@pytest.mark.parametrize(("slack", "C"), [("l1", 0.7), ("l2", 0.7), ("l1", np.inf)])
def test_the_margin_by_every_formula_that_holds(slack, C, bias):
    """1/ρ² from α, the weights and the slacks alone is ‖w‖², or ‖w‖² + b² in the space of k + 1."""
    rng = np.random.default_rng(2)
    X, weight = rng.normal(size=(40, 2)), rng.uniform(0.2, 3.0, 40)
    s = np.where(X[:, 0] + (0.7 if np.isfinite(C) else 0.0) * rng.normal(size=40) > 0, 1, -1)
    K = np.exp(-0.4 * ((X[:, None] - X) ** 2).sum(axis=2))
    model = SVC(C=C, slack=slack, bias=bias, kernel="rbf", gamma=0.4, tol=TOL).fit(X, s, sample_weight=weight)
    alpha, b = np.zeros(40), model.intercept_[0]
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    square = (alpha * s) @ K @ (alpha * s)
    xi = np.maximum(0, 1 - s * (K @ (alpha * s) + b))
    form, value = {
        ("l1", 0.7): ("Σα − ΣCξ", alpha.sum() - 0.7 * (weight * xi).sum()),
        ("l2", 0.7): ("Σα − Σα²/C", alpha.sum() - (alpha**2 / (0.7 * weight)).sum()),
        ("l1", np.inf): ("Σα", alpha.sum()),
    }[slack, C]
    expected = {"|w|²": square, form: value}
    if bias == "regularized":
        expected["|w|² + b²"] = square + b**2
    found = model.margins(X, s).inverse_rho_squared
    assert found == pytest.approx(expected, rel=1e-7)
    assert value == pytest.approx(square + (bias == "regularized") * b**2, rel=1e-7)


@pytest.mark.parametrize("bias", [True, False, "regularized"])
@pytest.mark.parametrize("multiclass", ["crammer_singer", "weston_watkins"])
def test_two_classes_of_a_joint_machine_have_the_margin_of_the_binary_machine_at_twice_the_penalty(multiclass, bias):
    X, y = CANCER[:80, :4], BENIGN[:80]
    joint = SVC(C=0.4, kernel="linear", multiclass=multiclass, bias=bias, tol=TOL).fit(X, y)
    binary = SVC(C=0.8, kernel="linear", bias=bias, tol=TOL).fit(X, y)
    found, expected = joint.margins(X, y).inverse_rho_squared, binary.margins(X, y).inverse_rho_squared
    assert list(found.values()) == pytest.approx(list(expected.values()), rel=1e-6)
    assert list(found)[-1] == "Σα − 2ΣCξ"


def test_each_pair_of_several_classes_as_the_machine_of_these_two():
    options = {"C": 2.0, "gamma": 0.3, "tol": 1e-9}
    model = SVC(**options).fit(IRIS, SPECIES)
    margins, hulls = model.margins(IRIS, SPECIES), model.nearest_points()
    assert isinstance(margins, SeveralMargins)
    assert len(margins) == len(hulls) == len(model.rkhs_norm_) == 3
    smallest = np.full(len(SPECIES), np.inf)
    for part, hull, norm, (a, b) in zip(margins, hulls, model.rkhs_norm_, [(0, 1), (0, 2), (1, 2)], strict=True):
        keep = np.flatnonzero((a == SPECIES) | (b == SPECIES))
        pair = SVC(**options).fit(IRIS[keep], SPECIES[keep] == a)
        alone = pair.margins(IRIS[keep], SPECIES[keep] == a)
        assert part.classes == (b, a)
        assert norm == pytest.approx(pair.rkhs_norm_, rel=1e-6)
        assert hull.distance == pytest.approx(pair.nearest_points().distance, rel=1e-6)
        np.testing.assert_array_equal(part.rows, keep)
        np.testing.assert_array_equal(part.free, keep[alone.free])
        np.testing.assert_array_equal(part.bounded, keep[alone.bounded])
        np.testing.assert_allclose(part.functional_margins, alone.functional_margins, atol=1e-6)
        for form, value in part.inverse_rho_squared.items():
            assert value == pytest.approx(alone.inverse_rho_squared[form], rel=1e-6)
        smallest[keep] = np.minimum(smallest[keep], alone.geometric_margins)
    np.testing.assert_allclose(margins.geometric_margins, smallest, atol=1e-6)
    assert margins.geometric_margin == pytest.approx(smallest.min(), abs=1e-6)
    assert margins.n_errors == (model.predict(IRIS) != SPECIES).sum()
    # A class that wins against every other one is predicted.
    assert not margins.errors[margins.functional_margins > 0].any()
    assert model.signed_distance(IRIS).shape == (150, 3)
    distances = model.set_params(decision_function_shape="ovo").decision_function(IRIS) / model.rkhs_norm_
    np.testing.assert_allclose(model.signed_distance(IRIS), distances)
    with pytest.raises(AttributeError, match=r"rho belongs to one plane.*margins\[0\].rho"):
        _ = margins.rho
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = margins.nothing


def test_weights_copies_and_left_out_samples_keep_their_standing():
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 120, 200)
    X, y, weight = CANCER[rows], BENIGN[rows], rng.integers(0, 3, 200)
    model = SVC(C=0.3, gamma=0.05, tol=1e-8).fit(X, y, sample_weight=weight)
    margins = model.margins(X, y)
    size = np.zeros(200)
    size[model.support_] = np.abs(model.dual_coef_[0])
    np.testing.assert_array_equal(margins.bounded, np.flatnonzero((weight > 0) & (size == 0.3 * weight)))
    np.testing.assert_array_equal(margins.free, np.flatnonzero((size > 0) & (size < 0.3 * weight)))
    assert len(margins.free) + len(margins.bounded) + len(margins.other) == 200


# --- properties -------------------------------------------------------------------------------------------------------


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 30),
    exponent=st.floats(-3, 3),
    kernel=st.sampled_from(sorted(KERNELS)),
)
def test_forms_and_hulls_of_drawn_problems(seed, n, exponent, kernel):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.r_[0, 1, rng.integers(0, 2, n - 2)]
    C, options = 10.0**exponent, KERNELS[kernel]
    model = SVC(C=C, tol=1e-9, **options).fit(X, y)
    margins, hulls = model.margins(X, y), model.nearest_points()
    beta = np.zeros(n)
    beta[model.support_] = model.dual_coef_[0]
    K = gram_matrix(options["kernel"], X, **numbers(options))
    noise = 1e-12 * np.abs(beta).sum() * (1 + np.abs(K).max() * np.abs(beta).sum())
    square = margins.inverse_rho_squared["|w|²"]
    assert square == pytest.approx(beta @ K @ beta, abs=noise)
    # The two forms differ by the duality gap, no more.
    assert abs(margins.inverse_rho_squared["Σα − ΣCξ"] - square) <= model.certificate_.gap + noise
    by_hand = np.abs(beta).sum() - C * margins.slacks.sum()
    assert by_hand == pytest.approx(square, abs=2 * model.certificate_.gap + 10 * noise)

    coefficients = np.zeros((2, n))
    coefficients[:, hulls.rows] = hulls.coefficients
    np.testing.assert_allclose(coefficients.sum(axis=1), 1.0)
    assert (coefficients >= 0).all()
    assert (coefficients[0, y == 0] == 0).all()
    assert (coefficients[1, y == 1] == 0).all()
    assert coefficients.max() <= 2 * C / np.abs(beta).sum() * (1 + 1e-9)  # the hulls are reduced by that much
    apart = coefficients[0] - coefficients[1]
    assert hulls.distance**2 == pytest.approx(apart @ K @ apart, abs=1e-7 * (1 + np.abs(K).max()))
    if kernel == "linear":
        np.testing.assert_allclose(hulls.points, coefficients @ X, atol=1e-12)
        assert (model.coef_**2).sum() == pytest.approx(square, abs=noise)
    if margins.b_interval is not None:
        low, high = margins.b_interval
        assert low <= margins.b <= high


def test_reduced_hulls_have_no_nearer_points():
    """Against projected gradient steps: no pair of points of the reduced hulls is nearer."""
    model = SVC(C=0.05, gamma=0.05, tol=1e-9).fit(CANCER, BENIGN)
    hulls = model.nearest_points()
    K = gram_matrix("rbf", CANCER, gamma=0.05)
    bound = 2 * 0.05 / np.abs(model.dual_coef_).sum()
    best = np.zeros((2, len(BENIGN)))
    best[:, hulls.rows] = hulls.coefficients
    gradient = K @ (best[0] - best[1])
    # The distance falls towards a vertex of the hulls only if this linear problem has a smaller value.
    for side, label, sign in ((0, 1, 1.0), (1, 0, -1.0)):
        values = np.sort(sign * gradient[label == BENIGN])
        whole = int(1 / bound)
        smallest = bound * values[:whole].sum() + (1 - whole * bound) * values[whole]
        assert sign * gradient @ best[side] <= smallest + 1e-6
