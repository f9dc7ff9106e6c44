"""What kernels say about themselves: a table, derived for composites, and each "no" with a counterexample."""

import math

import numpy as np
import pytest

from mercer import SVC
from mercer.kernels import (
    ANOVA,
    Bessel,
    Categorical,
    Chi2,
    Cosine,
    FromFeatureMap,
    FromFunction,
    Gaussian,
    Gower,
    Intersection,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Precomputed,
    RationalQuadratic,
    Sigmoid,
    Spectrum,
    Spline,
    Subsequences,
    Substrings,
    Tanimoto,
    check_kernel,
)

STATEMENTS = ("positive_definite", "strictly_positive_definite", "universal", "unit_diagonal", "differentiable")
WORDS = {"y": "yes", "n": "no", "d": "depends", "u": "unknown"}
function = FromFunction(lambda a, b: a @ b.T)
gauss, linear, sigmoid, cosine = Gaussian(gamma=2.0), Linear(), Sigmoid(), Cosine()

# The letters answer positive definite, strictly, universal, unit diagonal, differentiable; then the Lipschitz constant.
TABLE = [
    (linear, "ynnny", 1.0),
    (Polynomial(), "ynnny", None),
    (Polynomial(degree=1, gamma=4.0, coef0=1.0), "ynnny", 2.0),
    (Polynomial(degree=1), "ynnny", None),
    (Polynomial(coef0=-1.0), "nnnny", None),
    (Polynomial(degree=2, coef0=-1.0), "nnnny", None),
    (Polynomial(degree=0, coef0=-1.0), "ynnyy", 0.0),
    (Polynomial(degree=2, gamma=0, coef0=-1.0), "ynnyy", 0.0),
    (sigmoid, "nnnny", None),
    (cosine, "ynndn", None),
    (Gaussian(), "yyyyy", None),
    (gauss, "yyyyy", 2.0),
    (Gaussian(sigma=0.5), "yyyyy", 2.0),
    (Gaussian(M=np.diag([1.0, 8.0])), "yyyyy", 4.0),
    (Gaussian(gamma=0), "ynnyy", 0.0),
    (Laplacian(), "yyyyn", None),
    (Laplacian(gamma=0), "ynnyy", 0.0),
    (Matern(), "yyyyy", math.sqrt(3)),
    (Matern(nu=0.5), "yyyyn", None),
    (Matern(nu=0.8), "yyyyy", None),
    (Matern(nu=2.5, length_scale=2.0), "yyyyy", math.sqrt(5 / 3) / 2),
    (Matern(nu=math.inf, length_scale=2.0), "yyyyy", 0.5),
    (RationalQuadratic(length_scale=4.0), "yyyyy", 0.25),
    (Chi2(), "yyyyn", None),
    (Chi2(gamma=0), "ynnyn", None),
    (Tanimoto(), "yynyn", None),
    (Spectrum(), "ynnnn", None),
    (Substrings(), "ynnnn", None),
    (Subsequences(normalise=True), "ynndn", None),
    (Intersection(), "ynndn", None),
    (ANOVA(gamma=2.0), "ydddy", 2.0),
    (ANOVA(order=2), "ydddy", None),
    (Spline(), "yyyny", None),
    (Bessel(), "dddyy", None),
    (Bessel(order=1, n_features=3, sigma=4.0), "yyyyy", 2.0),
    (Bessel(order=1, n_features=4), "yuuyy", 0.5),
    (Categorical(), "ynnyn", None),
    (Categorical("data"), "ynnnn", None),
    (Gower(), "yyyyn", None),
    (Gower([0]), "yynyn", None),
    (Gower(gamma=0), "ynnyn", None),
    (gauss.on([0]), "yddyy", 2.0),
    (sigmoid.on([0]), "nnnny", None),
    (cosine.on([0]), "ynndn", None),
    (gauss.on([0]) + linear.on([1]), "yuuuy", math.sqrt(5)),
    (Spectrum(normalise=True), "ynndn", None),
    (Precomputed(), "uuuuu", None),
    (function, "uuuuu", None),
    (FromFeatureMap(np.asarray), "yuuuu", None),
    (4 * gauss, "yyyny", 4.0),
    (1 * gauss, "yyyyy", 2.0),
    (4 * linear, "ynnuy", 2.0),
    (4 * sigmoid, "nnnuy", None),
    (gauss + linear, "yyyuy", math.sqrt(5)),
    (gauss + gauss, "yyyny", math.sqrt(8)),
    (linear + Polynomial(), "yuuuy", None),
    (gauss + sigmoid, "uuuuy", None),
    (gauss + cosine, "yyuuu", None),
    (gauss + Laplacian(), "yyynu", None),
    (gauss + function, "uuuuu", None),
    (gauss + 3, "yyyny", 2.0),
    (linear + 1, "ynnuy", 1.0),
    (gauss * gauss, "yyyyy", math.sqrt(8)),
    (gauss * linear, "yuuny", None),
    (gauss * Gaussian(gamma=0), "yyuyy", 2.0),
    (gauss * cosine, "yuudu", None),
    (gauss * sigmoid, "uuuny", None),
    (gauss**4, "yyyyy", 4.0),
    (linear**2, "yuuny", None),
    (linear**1, "yuuny", 1.0),
    (sigmoid**2, "uuuuy", None),
    (gauss.exp(), "yyyny", 2 * math.sqrt(math.e)),
    (linear.exp(), "yuuuy", None),
    (sigmoid.exp(), "uuuuy", None),
    (gauss.normalised(), "yyyyy", 2.0),
    ((2 * gauss).normalised(), "yyyyy", None),
    (Polynomial(coef0=1.0).normalised(), "yuuyy", None),
    (sigmoid.normalised(), "uuuyy", None),
    (gauss.scaled_by(len), "ydddd", None),
    (sigmoid.scaled_by(len), "uuudd", None),
    (gauss.of(np.asarray), "yddyd", None),
    (linear.of(np.asarray), "yuudd", None),
    (cosine.of(np.asarray), "yuudu", None),
]


@pytest.mark.parametrize(
    ("kernel", "answers", "lipschitz"), TABLE, ids=lambda case: repr(case) if hasattr(case, "diag") else ""
)
def test_statements(kernel, answers, lipschitz):
    given = {statement: getattr(kernel, statement) for statement in STATEMENTS}
    assert given == dict(zip(STATEMENTS, (WORDS[letter] for letter in answers), strict=True))
    assert kernel.lipschitz == (lipschitz if lipschitz is None else pytest.approx(lipschitz, rel=1e-12))


@pytest.mark.parametrize(
    "kernel", [kernel for kernel, answers, _ in TABLE if answers[0] == "n" and kernel.accepts == "vectors"], ids=repr
)
def test_every_no_has_a_counterexample(kernel):
    kernel = kernel.bind(np.array([[1.0], [2.0]]))
    points = np.linspace(-1.5, 1.5, 9).reshape(-1, 1)
    check = check_kernel(points, kernel=kernel)
    assert check.witness is not None
    assert check.witness @ kernel(points) @ check.witness < 0


@pytest.mark.parametrize(
    ("kernel", "X"),
    [
        (Linear(), [[1.0], [2.0]]),
        (Polynomial(degree=2, gamma=1.0, coef0=1.0), [[0.0], [1.0], [2.0], [3.0]]),
        (Cosine(), [[1.0], [2.0]]),
        (Spectrum(), ["a", "b"]),
        (Intersection(), [[0.0], [1.0]]),
        (ANOVA(), [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]),
        (Categorical(), [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]),
        (Substrings(), ["", "a"]),
        (Gaussian(gamma=0), [[1.0], [2.0]]),
    ],
)
def test_kernels_that_are_not_strictly_positive_definite(kernel, X):
    assert abs(np.linalg.eigvalsh(kernel(X))[0]) < 1e-12


def test_what_is_not_differentiable_has_a_kink():
    step = 1e-6
    for kernel in (Laplacian(gamma=1.0), Matern(nu=0.5)):
        left, right = kernel([[0.0]], [[-step], [step]])[0]
        assert (left - 1) / step == pytest.approx(-1, rel=1e-3)
        assert (right - 1) / step == pytest.approx(-1, rel=1e-3)
    left, right = Matern(nu=0.8)([[0.0]], [[-step], [step]])[0]
    assert abs(right - 1) / step < 1e-2


def test_lipschitz_constants_are_tight():
    for kernel in (
        Linear(),
        gauss,
        Matern(2.5, 2.0),
        RationalQuadratic(2.0, 3.0),
        gauss + linear,
        gauss * gauss,
        gauss**3,
    ):
        h = 1e-3
        K = kernel([[0.0], [h]])
        assert math.sqrt(K[0, 0] + K[1, 1] - 2 * K[0, 1]) / h == pytest.approx(kernel.lipschitz, rel=1e-3)


class Ninth(Gaussian):
    """Another formula than its parent's, which the core computes."""

    def _values(self, X, Z):
        return super()._values(X, Z) ** 9

    def _diag(self, X):
        return np.ones(len(X))


def test_another_formula_inherits_no_statement_of_its_parent():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)
    assert Ninth().recipe() is None
    assert Ninth().terms(3) is None
    assert Ninth().positive_definite == "unknown"
    model = SVC(kernel=Ninth(gamma=0.5), C=10.0).fit(X, y)
    beta = np.zeros(60)
    beta[model.support_] = model.dual_coef_[0]
    K = np.exp(-4.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    gap = beta @ K @ beta + 10 * np.maximum(0, 1 - y * (K @ beta + model.intercept_)).sum() - y @ beta
    assert gap <= model.certificate_.gap
    assert model.certificate_.proves == "optimality if K is positive semi-definite"


def test_values_are_changed_where_all_ask_for_them():
    with pytest.raises(TypeError, match=r"overrides __call__ .*override _values\(X, Z\) and _diag\(X\)"):
        type("Louder", (Gaussian,), {"__call__": lambda self, X, Z=None: 2.0})
    with pytest.raises(NotImplementedError, match=r"must define _diag\(X\)"):
        type("Louder", (Gaussian,), {"_values": lambda self, X, Z: 2.0})().diag(np.ones((1, 1)))
    with pytest.raises(TypeError, match=r"overrides diag, .*override _diag\(X\)"):
        type("Longer", (Gaussian,), {"diag": lambda self, X: 2.0 * np.ones(len(X))})
