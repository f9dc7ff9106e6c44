"""Functions of an RKHS: the axioms on all kinds of kernels, and the functions of trained machines."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import is_classifier, is_regressor

import mercer
from mercer.inspection.rkhs import Function, canonical
from mercer.kernels import Gaussian, Laplacian, Linear, Matern, Polynomial, Sigmoid, Spectrum
from mercer.runtime.errors import NotDifferentiableError

KERNELS = [
    Linear(),
    Gaussian(gamma=0.5),
    Laplacian(gamma=0.3),
    Matern(nu=1.5),
    Polynomial(degree=3, gamma=0.5, coef0=1.0),
    0.5 * Gaussian(gamma=2.0) + Linear() ** 2,
    (Linear() + 1.0).normalised(),
]
quarters = st.integers(-12, 12).map(lambda i: i / 4)


@st.composite
def functions(draw, kernel, rows=5):
    n = draw(st.integers(1, rows))
    vectors = draw(hnp.arrays(np.float64, (n, 2), elements=quarters))
    coefficients = draw(hnp.arrays(np.float64, n, elements=st.floats(-8, 8, width=32)))
    return Function(vectors, coefficients, kernel=kernel)


def by_hand(f, g):
    return math.fsum(
        c * d * f.kernel(f.vectors[[i]], g.vectors[[j]])[0, 0]
        for i, c in enumerate(f.coefficients)
        for j, d in enumerate(g.coefficients)
    )


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@settings(max_examples=15)
@given(data=st.data())
def test_the_axioms(kernel, data):
    f, g = data.draw(functions(kernel)), data.draw(functions(kernel))
    a = data.draw(st.floats(-5, 5, width=32))
    size = float(np.abs(f.coefficients).sum() * np.abs(g.coefficients).sum()) * max(
        kernel.diag(f.vectors).max(), kernel.diag(g.vectors).max()
    )
    close = lambda x, y: abs(x - y) <= 1e-10 * (1 + abs(a)) * (size + 1e-300)  # noqa: E731
    assert close(f.inner(g), by_hand(f, g))
    assert close(f.inner(g), g.inner(f))
    assert close((a * f).inner(g), a * f.inner(g))
    # Cauchy and Schwarz (Igel, exercise 4.1), and the triangle
    assert abs(f.inner(g)) <= f.norm_bounds[1] * g.norm_bounds[1] * (1 + 1e-12) + 1e-300
    assert (f + g).norm <= f.norm_bounds[1] + g.norm_bounds[1] + 1e-12 * size
    # ⟨f, φ(x)⟩ = f(x), and |f(x)| ≤ ‖f‖√k(x, x)
    X = data.draw(hnp.arrays(np.float64, (3, 2), elements=quarters))
    values = f(X)
    for value, x, diagonal in zip(values, canonical(X, kernel=kernel), kernel.diag(X), strict=True):
        assert abs(f.inner(x) - value) <= 1e-10 * (np.abs(f.coefficients).sum() * (1 + f.norm) + 1) * max(1, diagonal)
        assert abs(value) <= f.norm_bounds[1] * math.sqrt(diagonal) + 1e-9 * (1 + abs(value))
    np.testing.assert_allclose((f + a * g - 1.5)(X), f(X) + a * g(X) - 1.5, rtol=1e-9, atol=1e-9 * (1 + size))


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@settings(max_examples=15)
@given(data=st.data())
def test_expansions_of_the_same_function_have_distance_zero(kernel, data):
    f = data.draw(functions(kernel))
    order = data.draw(st.permutations(range(len(f))))
    again = np.concatenate([np.array(order), np.array(order[:1])]).astype(int)
    halves = f.coefficients[again].copy()
    halves[0] /= 2
    halves[-1] /= 2
    g = Function(f.vectors[again] - 0.0, halves, kernel=kernel)
    assert f.distance(g) == 0.0
    assert f.distance(f * 3.0 / 3.0) <= (f - f * 3.0 / 3.0).norm_bounds[1]
    low, high = f.norm_bounds
    assert low <= f.norm <= high
    moved = f + canonical(f.vectors + 1.0, kernel=kernel)[0]
    assert moved.distance(f) == pytest.approx(math.sqrt(kernel.diag(f.vectors[:1] + 1.0)[0]), rel=1e-6)


def test_equal_functions_with_other_vectors():
    """⟨x, ·⟩ for x = 3 from the vector 1 three times over: no merging sees that, but the bound on rounding does."""
    f, g = (
        Function([[3.0, 0.3]], [1.0], kernel=Linear()),
        Function([[1.0, 0.1], [2.0, 0.2]], [1.0, 1.0], kernel=Linear()),
    )
    assert f.distance(g) == 0.0
    assert (f - g).norm_bounds[1] < 1e-4


def test_a_function_that_is_zero():
    """⟨f, f⟩ = 0 only for f = 0 (Igel, exercise 4.2)."""
    f = Function([[0.0], [1.0]], [1.0, -1.0], kernel=Gaussian(gamma=1.0))
    zero = f - f
    assert len(zero) == 0
    assert zero.norm == zero.inner(f) == 0.0
    assert zero([[0.5]]).tolist() == [0.0]
    assert (zero + f).distance(f) == 0.0
    with pytest.raises(ValueError, match="has no direction"):
        zero.cosine(f)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_projections(kernel):
    rng = np.random.default_rng(1)
    f = Function(rng.normal(size=(8, 2)), rng.normal(size=8), kernel=kernel, b=0.3)
    basis = [Function(rng.normal(size=(4, 2)), rng.normal(size=4), kernel=kernel) for _ in range(3)]
    g = f.projected_on([*basis, basis[0] + basis[1]])
    rest = f - g
    for one in basis:
        assert abs(rest.inner(one)) <= 1e-7 * f.norm * one.norm
    assert g.norm**2 + rest.norm**2 == pytest.approx(f.norm**2, rel=1e-7)
    assert g.b == 0.0
    again = g.projected_on(basis)
    assert (g - again).norm <= 1e-7 * f.norm
    nearer = min((f - g - 0.01 * one).norm for one in basis)
    assert rest.norm <= nearer + 1e-12
    w = basis[0]
    onto = f.projected_on([w])
    assert (onto - w * (f.inner(w) / w.norm**2)).norm <= 1e-9 * f.norm


@pytest.mark.parametrize("kernel", [kernel for kernel in KERNELS if kernel.lipschitz is not None], ids=repr)
def test_lipschitz_constants(kernel):
    rng = np.random.default_rng(2)
    f = Function(rng.normal(size=(6, 2)), rng.normal(size=6), kernel=kernel)
    X, Z = rng.normal(size=(200, 2)), rng.normal(size=(200, 2))
    slopes = np.abs(f(X) - f(Z)) / np.linalg.norm(X - Z, axis=1)
    assert slopes.max() <= f.lipschitz
    assert slopes.max() > 0.02 * f.lipschitz
    assert Function(X, np.ones(200), kernel=Polynomial(gamma=1.0)).lipschitz is None


def test_gradients():
    rng = np.random.default_rng(3)
    f = Function(rng.normal(size=(7, 3)), rng.normal(size=7), kernel=Gaussian(gamma=0.4) + 0.1 * Linear(), b=2.0)
    X, h = rng.normal(size=(4, 3)), 1e-5
    for k in range(3):
        step = h * np.eye(3)[k]
        np.testing.assert_allclose(f.gradient(X)[:, k], (f(X + step) - f(X - step)) / (2 * h), rtol=1e-7, atol=1e-9)
    with pytest.raises(NotDifferentiableError, match="agree in a feature"):
        Function(X, np.ones(4), kernel=Laplacian(gamma=1.0)).gradient(X[:1])


def test_sparse_vectors_and_strings():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(9, 5)) * (rng.random((9, 5)) < 0.4)
    c = rng.normal(size=9)
    for kernel in (Gaussian(gamma=0.3), Linear()):
        thin, thick = Function(sp.csr_array(X), c, kernel=kernel), Function(X, c, kernel=kernel)
        assert thin.norm == pytest.approx(thick.norm, rel=1e-12)
        np.testing.assert_allclose(thin(X), thick(X), rtol=1e-12, atol=1e-12)
        assert thin.distance(thick) == 0.0
        assert len(thin - Function(sp.csr_array(X[::-1]), c[::-1], kernel=kernel)) == 0
        np.testing.assert_allclose(thin.gradient(sp.csr_array(X)), thick.gradient(X), rtol=1e-9, atol=1e-12)
    words = ["banana", "bandana", "cabana"]
    f = Function(words, [1.0, -2.0, 0.5], kernel=Spectrum(2))
    g = Function(words[::-1], [0.5, -2.0, 1.0], kernel=Spectrum(2))
    assert f.inner(canonical(["ban"], kernel=Spectrum(2))[0]) == f(["ban"])[0]
    assert len(f - g) == 0


def test_a_kernel_that_is_not_positive_definite():
    f = Function([[0.1], [0.2]], [1.0, 1.0], kernel=Sigmoid(gamma=1.0, coef0=-1.0))
    assert f.squared_norm < 0
    with pytest.raises(ValueError, match="not positive definite: ⟨f, f⟩ = -"):
        f.norm  # noqa: B018


def test_what_does_not_fit_together():
    f = Function([[1.0]], [1.0], kernel=Gaussian(gamma=1.0))
    with pytest.raises(ValueError, match=r"different spaces.*Gaussian\(gamma=1.0\) and Gaussian\(gamma=2.0\)"):
        f + Function([[1.0]], [1.0], kernel=Gaussian(gamma=2.0))
    with pytest.raises(ValueError, match="for each of the 1 vectors"):
        Function([[1.0]], [1.0, 2.0], kernel=Gaussian(gamma=1.0))
    with pytest.raises(ValueError, match="at least one function"):
        f.projected_on([])
    with pytest.raises(TypeError):
        f + "a"
    M = np.eye(1)
    assert (
        Function([[1.0]], [1.0], kernel=Gaussian(M=M)) - Function([[1.0]], [1.0], kernel=Gaussian(M=M.copy()))
    ).norm == 0.0


rng = np.random.default_rng(5)
X = rng.normal(size=(50, 2))
Y = np.where(X[:, 0] + 0.3 * rng.normal(size=50) > 0, 1, 0)
THREE = np.digitize(X[:, 0], [-0.5, 0.5])
REAL = np.sin(X[:, 0])

MACHINES = {
    "SVC": (mercer.SVC(), Y),
    "regularised bias": (mercer.SVC(bias="regularized"), Y),
    "SVC, three classes": (mercer.SVC(), THREE),
    "joint": (mercer.SVC(multiclass="weston-watkins"), THREE),
    "NuSVC": (mercer.NuSVC(nu=0.4), Y),
    "SVR": (mercer.SVR(), REAL),
    "NuSVR": (mercer.NuSVR(), REAL),
    "QuantileSVR": (mercer.QuantileSVR(quantiles=[0.2, 0.8]), REAL),
    "OneClassSVM": (mercer.OneClassSVM(), None),
    "SVDD": (mercer.SVDD(), None),
    "RLSRegressor": (mercer.RLSRegressor(), REAL),
    "RLSRegressorCV": (mercer.RLSRegressorCV(), REAL),
    "RLSClassifier": (mercer.RLSClassifier(), THREE),
    "RLSClassifierCV": (mercer.RLSClassifierCV(), Y),
    "linear RLS": (mercer.RLSRegressor(kernel="linear"), REAL),
    "NystromRLS": (mercer.NystromRLS(n_landmarks=10), REAL),
    "NystromRLSClassifier": (mercer.NystromRLSClassifier(n_landmarks=10), Y),
    "KernelMachineRegressor": (mercer.KernelMachineRegressor(), REAL),
    "KernelMachineClassifier": (mercer.KernelMachineClassifier(), Y),
    "PegasosSVC": (mercer.PegasosSVC(kernel="rbf"), Y),
    "linear PegasosSVC": (mercer.PegasosSVC(), Y),
    "LinearSVC": (mercer.LinearSVC(), THREE),
    "LinearSVR": (mercer.LinearSVR(), REAL),
    "MKLClassifier": (mercer.MKLClassifier(), Y),
    "MKLRegressor": (mercer.MKLRegressor(), REAL),
    "RankSVM": (mercer.RankSVM(), REAL),
}
for name in sorted(set(mercer.estimators.__all__) - set(MACHINES)):  # a new one, with its defaults
    model = getattr(mercer, name)()
    MACHINES[name] = (model, Y if is_classifier(model) else REAL if is_regressor(model) else None)


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_function_of_a_machine(name):
    model, target = MACHINES[name]
    with pytest.raises(AttributeError):
        mercer.SVC().function_  # noqa: B018
    model.fit(X, target)
    found = model.function_
    found = found if isinstance(found, list) else [found]
    values = np.column_stack([f(X[:7]) for f in found])
    if isinstance(model, mercer.SVDD):
        expected = (model.decision_function(X[:7]) + 1) / 2
    elif isinstance(model, mercer.SVC | mercer.NuSVC) and len(found) > 1:
        expected = model.set_params(decision_function_shape="ovo" if model.multiclass == "ovo" else "ovr")
        expected = expected.decision_function(X[:7])
    elif hasattr(model, "decision_function"):
        expected = model.decision_function(X[:7])
    else:
        expected = model.predict(X[:7])
    np.testing.assert_allclose(values, np.reshape(expected, values.shape), rtol=1e-9, atol=1e-9)
    if hasattr(model, "rkhs_norm_"):
        np.testing.assert_allclose([f.norm for f in found], np.atleast_1d(model.rkhs_norm_), rtol=1e-8)


def test_the_function_of_a_precomputed_kernel():
    K = Gaussian(gamma=0.5)(X)
    model = mercer.SVC(kernel="precomputed").fit(K, Y)
    np.testing.assert_allclose(model.function_(K[:5]), model.decision_function(K[:5]), rtol=1e-12)
    with pytest.raises(ValueError, match="only the matrix is known"):
        model.function_.norm  # noqa: B018


def test_functions_tell_how_far_two_machines_can_differ():
    one, other = mercer.SVC(C=1.0, gamma=0.5).fit(X, Y), mercer.SVC(C=1.2, gamma=0.5).fit(X, Y)
    f, g = one.function_, other.function_
    apart = f.distance(g) + abs(f.b - g.b)
    points = rng.normal(size=(300, 2)) * 3
    assert np.abs(one.decision_function(points) - other.decision_function(points)).max() <= apart
    assert 0.9 < f.cosine(g) <= 1.0
