"""Exact Shapley values against the definition over all subsets."""

import numpy as np
import pytest
import scipy.sparse as sp

import mercer
from mercer import SVC, SVDD, SVR, LinearSVC, LinearSVR, NuSVC, OneClassSVM, QuantileSVR, RLSClassifier, RLSRegressor
from mercer.kernels import Chi2, Cosine, Gaussian, Laplacian, Linear, Matern, Polynomial, RationalQuadratic, Sigmoid
from reference.shapley import by_all_subsets, of_product

D = 6
RNG = np.random.default_rng(5)
X = RNG.uniform(0.1, 2.0, size=(50, D))
Y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] - X[:, 3]
LABELS = np.digitize(Y, np.quantile(Y, [0.2, 0.4, 0.6, 0.8]))
BACKGROUND, ROWS = X[:7], np.vstack([X[10:12], X[0]])  # the last one is a background row

FAMILY = {
    "Gaussian": Gaussian(gamma=0.4),
    "sigma": Gaussian(sigma=1.1),
    "diagonal M": Gaussian(M=np.diag(np.linspace(0.1, 1.0, D))),
    "Matern of infinite smoothness": Matern(nu=np.inf, length_scale=1.3),
    "Laplacian": Laplacian(gamma=0.3),
    "Chi2": Chi2(gamma=0.5),
    "Linear": Linear(),
    "Polynomial": Polynomial(degree=3, gamma=0.3, coef0=0.7),
    "product": Gaussian(gamma=0.3) * Laplacian(gamma=0.2),
    "product with Linear": Linear() * Gaussian(gamma=0.2),
    "constants and scales": 2.5 * (Gaussian(gamma=0.3) + 0.5) + 1.0,
    "sum": Gaussian(gamma=0.5) + 0.3 * Linear() + Laplacian(gamma=0.1),
    "product of sums": (Gaussian(gamma=0.3) + 1.0) * (Laplacian(gamma=0.2) + Linear()),
    "power": (Gaussian(gamma=0.1) + 0.5 * Laplacian(gamma=0.1)) ** 2,
    "power of Linear": (Linear() + 1.0) ** 2,
    "exponential": (0.2 * Linear()).exp(),
    "normalised": (Gaussian(gamma=0.3) + 1.0).normalised(),
}


def outputs(model, rows):
    """What the machine decides by, one column per function: the raw values of pairs or classes."""
    if hasattr(model, "decision_function"):
        shape = {"decision_function_shape": "ovo"} if hasattr(model, "decision_function_shape") else {}
        return np.reshape(model.set_params(**shape).decision_function(rows), (len(rows), -1))
    return np.reshape(model.predict(rows), (len(rows), -1))


def assert_exact(model, rows=ROWS, background=BACKGROUND, weight=None, tolerance=1e-10):
    found = model.explain(rows, background, background_weight=weight)
    values = found.values.reshape(*found.values.shape[:2], -1)
    base = found.base_values.reshape(len(rows), -1)
    f = outputs(model, rows)
    assert values.shape == (*np.shape(rows), f.shape[1])
    for i, row in enumerate(rows):
        expected, at_background = by_all_subsets(lambda mixed: outputs(model, mixed), row, background, weight)
        np.testing.assert_allclose(values[i], expected, atol=tolerance, rtol=0)
        np.testing.assert_allclose(base[i], at_background, atol=tolerance, rtol=0)
    np.testing.assert_allclose(base + values.sum(axis=1), f, atol=tolerance, rtol=0)
    assert found.error < tolerance
    return found


@pytest.mark.parametrize("name", FAMILY)
def test_every_kernel_of_the_family_equals_all_subsets(name):
    assert_exact(SVR(kernel=FAMILY[name], C=5.0).fit(X, Y))


MACHINES = {
    "SVC": lambda: SVC(C=5.0).fit(X, LABELS > 2),
    "SVC of five classes": lambda: SVC(C=5.0).fit(X, LABELS),
    "SVC against the rest": lambda: SVC(C=5.0, multiclass="ovr").fit(X, LABELS),
    "joint SVC": lambda: SVC(C=5.0, multiclass="crammer-singer").fit(X, LABELS),
    "NuSVC": lambda: NuSVC(nu=0.3).fit(X, LABELS > 2),
    "OneClassSVM": lambda: OneClassSVM(nu=0.2).fit(X),
    "SVDD": lambda: SVDD(nu=0.2, kernel=2.0 * Gaussian(gamma=0.5)).fit(X),
    "QuantileSVR": lambda: QuantileSVR(quantiles=0.3, C=5.0).fit(X, Y),
    "RLSRegressor": lambda: RLSRegressor(lam=0.1).fit(X, np.stack([Y, Y**2], axis=1)),
    "RLSClassifier": lambda: RLSClassifier(lam=0.1).fit(X, LABELS),
    "NystromRLS": lambda: mercer.NystromRLS(lam=0.1, n_landmarks=20).fit(X, Y),
    "KernelMachine": lambda: mercer.KernelMachineClassifier(lam=0.1).fit(X, LABELS > 2),
    "LinearSVC": lambda: LinearSVC().fit(X, LABELS),
    "LinearSVR": lambda: LinearSVR().fit(X, Y),
    "PegasosSVC": lambda: mercer.PegasosSVC(random_state=0).fit(X, LABELS > 2),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", MACHINES)
def test_every_machine_equals_all_subsets(name):
    assert_exact(MACHINES[name]())


def test_twelve_features():
    rng = np.random.default_rng(1)
    Z = rng.normal(size=(30, 12))
    model = SVR(C=3.0, gamma=0.1).fit(Z, Z[:, 0] * Z[:, 1])
    assert_exact(model, Z[:1], Z[5:8])


# --- inputs ----------------------------------------------------------------------------------------------------------

MODEL = SVC(C=5.0).fit(X, LABELS > 2)


def test_weights_count_like_repetitions():
    weight = np.array([2.0, 0.0, 1.0, 1.0, 3.0, 1.0, 0.0])
    found = assert_exact(MODEL, weight=weight)
    repeated = MODEL.explain(ROWS, np.repeat(BACKGROUND, weight.astype(int), axis=0))
    np.testing.assert_allclose(found.values, repeated.values, atol=1e-14)


def test_sparse_and_single_precision_rows():
    expected = MODEL.explain(ROWS, BACKGROUND).values
    sparse = MODEL.explain(sp.csr_array(ROWS), sp.csr_array(BACKGROUND))
    np.testing.assert_array_equal(sparse.values, expected)
    rounded = ROWS.astype(np.float32)
    np.testing.assert_array_equal(
        MODEL.explain(rounded, BACKGROUND).values, MODEL.explain(rounded.astype(np.float64), BACKGROUND).values
    )
    of_sparse = SVC(C=5.0, gamma=MODEL.kernel_.gamma).fit(sp.csr_array(X), LABELS > 2)
    np.testing.assert_allclose(of_sparse.explain(ROWS, BACKGROUND).values, expected, atol=1e-6)


@pytest.mark.parametrize("model", [SVC(C=5.0), SVR(kernel=Polynomial(degree=2, gamma=0.5))], ids=["SVC", "SVR"])
def test_the_number_of_threads_changes_no_bit(model):
    model.fit(X, LABELS)
    found = [model.set_params(n_jobs=n).explain(X[:20], BACKGROUND).values for n in (1, 2, 3)]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_rows_do_not_depend_on_one_another():
    together = MODEL.explain(X[:20], BACKGROUND).values
    np.testing.assert_array_equal(MODEL.explain(X[13:14], BACKGROUND).values[0], together[13])


def test_features_in_common_are_worth_nothing():
    row = BACKGROUND[3].copy()
    row[2] += 1.0
    values = MODEL.explain([row], BACKGROUND[3:4]).values[0]
    assert values[2] != 0
    assert not np.delete(values, 2).any()
    assert not MODEL.explain(BACKGROUND[:1], BACKGROUND[:1]).values.any()


def test_one_feature():
    model = SVR(C=5.0).fit(X[:, :1], Y)
    found = model.explain(ROWS[:, :1], BACKGROUND[:, :1])
    np.testing.assert_allclose(found.values[:, 0], model.predict(ROWS[:, :1]) - found.base_values, atol=1e-13)


def test_far_rows_whose_kernel_values_vanish():
    far = np.vstack([BACKGROUND[:2], BACKGROUND[:2] + 1e3, np.where(np.arange(D) == 1, 1e150, BACKGROUND[:2])])
    assert_exact(MODEL, np.vstack([ROWS, ROWS[:1] - 1e3]), far)


def test_equal_features_are_worth_the_same():
    Z = np.column_stack([X, X[:, 0]])
    values = SVR(C=5.0).fit(Z, Y).explain(Z[:5], Z[20:30]).values
    np.testing.assert_allclose(values[:, 0], values[:, D], atol=1e-13)


@pytest.mark.parametrize("d", [31, 200])
def test_many_features_in_200_digits(d):
    rng = np.random.default_rng(d)
    Z, x, z = rng.normal(size=(2, d)), rng.normal(size=d), rng.normal(size=d)
    model = SVR(C=1.0, kernel=Gaussian(gamma=0.05), epsilon=0.0).fit(Z, [0.0, 1.0])
    vectors, coefficients = model.support_vectors_, model.dual_coef_[0]
    factors = [[np.exp(-0.05 * (row - s) ** 2) for row in (x, z)] for s in vectors]
    shown = np.arange(0, d, max(1, d // 4)) if d > 100 else np.arange(d)
    expected = sum(c * np.array(of_product(*pair, only=shown)) for c, pair in zip(coefficients, factors, strict=True))
    np.testing.assert_allclose(model.explain([x], [z]).values[0, shown], expected, rtol=1e-11, atol=1e-18)


@pytest.mark.parametrize("gamma", [0.01, 1.0, 5.0])
@pytest.mark.parametrize("d", [13, 30])
def test_factors_far_apart_that_fall_and_rise_together(d, gamma):
    # What is multiplied first falls from G to F for half of the features, and rises for the others.
    rng = np.random.default_rng(d)
    x, z = rng.uniform(0.5, 2.0, size=d), rng.uniform(-0.4, 0.4, size=d)
    s = np.where(np.arange(d) < d // 2, 0.0, x + 0.1)
    model = SVR(C=1.0, kernel=Gaussian(gamma=gamma), epsilon=0.0).fit([s, s + 50.0], [0.0, 1.0])
    factors = [np.exp(-gamma * (row - s) ** 2) for row in (x, z)]
    expected = np.array(of_product(*factors, only=range(d))) * model.dual_coef_[0, list(model.support_).index(0)]
    found = model.explain([x], [z]).values[0]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


def test_any_number_of_features_in_common():
    rng = np.random.default_rng(2)
    d = 9
    Z = rng.normal(size=(20, d))
    model = SVR(C=3.0, gamma=0.2).fit(Z, Z[:, 0] * Z[:, 1])
    rows = np.where(np.arange(d) < np.arange(d + 1)[:, None], Z[3], Z[4])
    assert_exact(model, rows, Z[3:4])


@pytest.mark.parametrize("name", ["sum", "Chi2", "product of sums", "Polynomial", "exponential"])
def test_columns_of_zeros(name):
    rows, background = ROWS.copy(), BACKGROUND.copy()
    rows[:, [1, 4]] = background[:, [1, 4]] = 0.0
    found = assert_exact(SVR(kernel=FAMILY[name], C=5.0).fit(X, Y), rows, background)
    assert not found.values[:, [1, 4]].any()
    assert not SVR(kernel=FAMILY[name]).fit(X, Y).explain(0 * rows, 0 * background).values.any()


# --- refusals --------------------------------------------------------------------------------------------------------

OUTSIDE = {
    "Sigmoid": Sigmoid(gamma=0.1),
    "Cosine": Cosine(),
    "RationalQuadratic": RationalQuadratic(),
    "full M": Gaussian(M=np.eye(D) + 0.1),
    "Matern": Matern(nu=1.5),
    "exponential of a Gaussian": Gaussian(gamma=0.5).exp(),
    "degree 17": Polynomial(degree=17, gamma=0.01),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OUTSIDE)
def test_other_kernels_are_refused_with_what_would_do(name):
    model = SVC(kernel=OUTSIDE[name]).fit(X, LABELS > 2)
    with pytest.raises(ValueError, match=r"no sum of products.*Gaussian.*partial_dependence"):
        model.explain(ROWS, BACKGROUND)


def test_kernels_without_features_are_refused():
    K = Gaussian(gamma=0.5)(X)
    with pytest.raises(ValueError, match="matrix of kernel values"):
        SVC(kernel="precomputed").fit(K, LABELS > 2).explain(K[:2], K)
    strings = SVC(kernel=mercer.kernels.Spectrum(2)).fit(["abab", "baba", "cdcd", "dcdc"], [0, 0, 1, 1])
    with pytest.raises(ValueError, match="strings"):
        strings.explain(["ab"], ["cd"])
    with pytest.raises(ValueError, match="use OneClassSVM"):
        SVDD(kernel="linear").fit(X).explain(ROWS, BACKGROUND)


def test_a_background_is_needed():
    with pytest.raises(TypeError, match="background is missing"):
        MODEL.explain(ROWS)


@pytest.mark.parametrize(
    ("rows", "background", "weight", "message"),
    [
        (ROWS[:, :3], BACKGROUND, None, "3 features"),
        (ROWS, BACKGROUND[:, :3], None, "3 features"),
        (np.where(ROWS > 1, np.nan, ROWS), BACKGROUND, None, "NaN"),
        (ROWS, np.where(BACKGROUND > 1, np.inf, BACKGROUND), None, "infinity"),
        (ROWS, BACKGROUND[:0], None, "0 sample"),
        (ROWS, BACKGROUND, np.ones(3), "each of the 7 rows"),
        (ROWS, BACKGROUND, np.zeros(7), "not all of them 0"),
        (ROWS, BACKGROUND, -np.ones(7), "≥ 0"),
    ],
)
def test_bad_rows_are_refused(rows, background, weight, message):
    with pytest.raises(ValueError, match=message):
        MODEL.explain(rows, background, background_weight=weight)


def test_overflow_is_told():
    model = SVR(kernel=(1.0 * Linear()).exp(), C=1e-3).fit(X, Y)
    with pytest.raises((FloatingPointError, ValueError), match="overflow"):
        model.explain(ROWS * 1e5, BACKGROUND)


def test_errors_name_the_background():
    with pytest.raises(ValueError, match="background: X has 5 features"):
        MODEL.explain(ROWS, BACKGROUND[:, :5])
    with pytest.raises(ValueError, match=r"each of the 7 rows.*shape is \(2,\)"):
        MODEL.explain(ROWS, BACKGROUND, background_weight=[1.0, 2.0])
    with pytest.raises(ValueError, match="'balanced' is not"):
        MODEL.explain(ROWS, BACKGROUND, background_weight="balanced")
