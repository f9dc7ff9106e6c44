"""torch's devices as an engine, held to the contracts, on torch's CPU device; tests marked `cuda` need a GPU."""

import numpy as np
import pytest
import scipy.sparse as sp

import mercer
from contracts.gram_contract import (
    EvaluatedBy,
    check_bounds,
    check_bounds_of_several,
    check_evaluation_contract,
    check_field_contract,
    check_gram_contract,
    check_products_contract,
    exact_numbers,
)
from mercer.kernels import Cosine, Gaussian, Laplacian, Linear, Matern, Polynomial, Precomputed, Sigmoid
from mercer.places import gram_for
from places.test_bounds import apart, check_bounds_of_all, lost, norms
from reference.decimals import decimals, hundred_digits, tanh
from reference.exact_kernels import Formula
from reference.problems import machine_problem, machines

torch = pytest.importorskip("torch", reason="torch is not installed: python -m pip install 'mercer[torch]'")
from mercer.places.torch import ENGINE  # noqa: E402  # after the skip without torch
from mercer.places.torch import field as torch_field  # noqa: E402  # after the skip without torch
from mercer.places.torch import numbers as torch_numbers  # noqa: E402  # after the skip without torch
from mercer.places.torch.field import TorchField  # noqa: E402  # after the skip without torch
from mercer.places.torch.numbers import hyperbolic_tangent, power_of_two, to_device, to_host  # noqa: E402  # after the skip without torch

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def rows_are_dropped(monkeypatch):
    """Of few rows too, and a device with Triton takes rounds by itself."""
    monkeypatch.setattr(torch_field, "_FEWEST_NUMBERS", 0)
    monkeypatch.setattr(torch_field, "_FEWEST_VARIABLES", 1)


def data(n=90, d=7, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def there(kernel, X, **options):
    """The Gram on the configured device."""
    return gram_for(kernel, ENGINE.samples(X), **options)


# --- contracts --------------------------------------------------------------------------------------------------------

METRIC = np.array([[1.0, 0.3], [0.3, 0.5]])
RECIPES = {
    "gaussian": Gaussian(0.3),
    "scaled": 2.5 * Gaussian(0.3),
    "shifted": Gaussian(0.3) + 0.5,
    "metric": Gaussian(M=np.kron(np.eye(3), METRIC)),
    "linear": Linear(),
    "polynomial": Polynomial(3, 0.5, 1.0),
    "sigmoid": Sigmoid(0.2, 0.1),
    "laplacian": Laplacian(0.4),
    "cosine": Cosine(),
}
COMPOSITES = {
    "sum and product": Gaussian(0.3) + Linear() * Laplacian(0.2),
    "power": (0.5 * Gaussian(0.3) + 1.0) ** 3,
    "exponential": (0.1 * Cosine() + Gaussian(0.1)).exp(),
    "normalised": Polynomial(2, 0.5, 1.0).normalised(),
    "normalised sum": 2 * (Gaussian(0.3) + Linear()).normalised() * Laplacian(0.2),
    "some columns": Gaussian(0.3).on([4, 1]) + Linear().on([0, 5]) * Laplacian(0.2).on([1]).on([2, 3]),
    "limit": Matern(nu=np.inf) + Gaussian(0.3).normalised(),
}


@pytest.mark.parametrize("name", [*RECIPES, *COMPOSITES])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_gram_contract(name, dtype, device):
    kernel, X = {**RECIPES, **COMPOSITES}[name], data(d=6).astype(dtype)
    gram = there(kernel, X)
    check_gram_contract(gram, kernel(X.astype(np.float64)), atol=1e-11)


def test_the_gram_contract_of_given_matrices(device):
    K = Gaussian(0.3)(data())
    check_gram_contract(there(Precomputed(), K), K, atol=0)
    check_gram_contract(there(Precomputed(), K.astype(np.float32)), K.astype(np.float32).astype(float), atol=0)
    check_gram_contract(there(Precomputed(), K, constant=0.5), K + 0.5, atol=0)
    gram = there(Precomputed(), np.diag(np.r_[np.ones(30), -1.0]))
    view = gram.view(np.arange(20))
    assert not gram.looks_positive_definite()
    assert gram.positive_definite == view.positive_definite == "no"


@pytest.mark.parametrize("name", RECIPES)
def test_large_matrices_are_offered_in_float32_too(name, device):
    X = data(n=1100, d=6)
    gram = there(RECIPES[name], X)
    assert gram.precisions == (np.float32, np.float64)
    check_products_contract(gram, RECIPES[name](X), atol=1e-11)


@pytest.mark.parametrize(("dtype", "atol"), [(np.float64, 1e-12), (np.float32, 4e-6)])
@pytest.mark.parametrize("maker", machines())
def test_the_field_contract(maker, dtype, atol, device, rows_are_dropped):
    problem, K, X = machine_problem(maker, seed=3, n=80, with_data=True)
    gram = there(Gaussian(gamma=0.5), X)
    assert isinstance(gram.field(problem, dtype=dtype), TorchField)
    check_field_contract(gram, problem, K, dtype, atol)
    rows = np.random.default_rng(0).permutation(100)[:80]
    more = np.vstack([X, data(20, X.shape[1])])
    more[rows] = X
    check_field_contract(there(Gaussian(gamma=0.5), more).view(rows), problem, K, dtype, atol)


@pytest.mark.parametrize("maker", machines())
def test_the_field_contract_of_given_and_composite_matrices(maker, device, rows_are_dropped):
    problem, K, X = machine_problem(maker, seed=3, n=80, with_data=True)
    check_field_contract(there(Precomputed(), K), problem, K, np.float64, 1e-12)
    check_field_contract(there(Precomputed(), K - 0.5, constant=0.5), problem, K, np.float64, 1e-12)
    kernel = Gaussian(0.5) + 0.1 * Linear()
    check_field_contract(there(kernel, X), problem, K + 0.1 * X @ X.T, np.float64, 1e-12)


@pytest.mark.parametrize("name", [*RECIPES, *COMPOSITES])
def test_the_evaluation_contract(name, device):
    kernel = {**RECIPES, **COMPOSITES}[name]
    V, X = data(d=6), data(41, 6, seed=6).astype(np.float32)
    C = np.random.default_rng(5).normal(size=(90, 3))
    values = kernel(X.astype(np.float64), V) @ C
    single = 1e-5 * np.abs(kernel(X.astype(np.float64), V)).max() * np.abs(C).sum(axis=0).max()
    for coefficients in (C, C[:, :1], sp.csr_array(C)):
        found = EvaluatedBy(ENGINE, kernel, V, coefficients)
        check_evaluation_contract(found, X.astype(np.float64), values[:, : coefficients.shape[1]], 1e-11)
        check_evaluation_contract(found, X, values[:, : coefficients.shape[1]], single)


def test_evaluations_of_columns_and_of_nothing(device):
    K, columns, C = data(30, 70), np.arange(0, 70, 7), np.random.default_rng(5).normal(size=(10, 3))
    check_evaluation_contract(EvaluatedBy(ENGINE, Precomputed(), None, C, columns), K, K[:, columns] @ C, atol=1e-12)
    check_evaluation_contract(EvaluatedBy(ENGINE, Gaussian(0.3), data(0), C[:0]), data(), np.zeros((90, 3)), atol=0)


# --- bounds, in rational arithmetic -----------------------------------------------------------------------------------

THIRD = 1 / (2 * np.log2(np.e))
RANDOM, FAR = data(8, 3), data(8, 2, seed=1) + 1e3 * (np.arange(8) % 2)[:, None]
# A kernel, its formula, samples, and a share of the bound that the worst error exceeds on every processor. Sums on a
# device run in an order that nobody states: a bound counts a term after another, 2,048 columns at least, even where
# there is one. So these shares are small where few terms are summed.
BOUNDS = {
    "linear": (Linear(), Formula("linear"), lost(3000, float), 0.01),
    "polynomial": (Polynomial(2, 1.0, 0.0), Formula("polynomial", degree=2), lost(3000, float), 0.01),
    "sigmoid": (Sigmoid(0.3, 0.0), Formula("sigmoid", gamma=0.3), lost(3000, float), 0.005),
    "cosine": (Cosine(), Formula("cosine"), lost(800, float), 1e-4),
    "Gaussian": (Gaussian(THIRD), Formula("gaussian", gamma=THIRD), norms(), 0.02),
    "Gaussian, scaled": (2.5 * Gaussian(0.5), Formula("gaussian", 0.5, scale=2.5), RANDOM, 1e-4),
    "Gaussian, shifted": (Gaussian(0.5) + 0.5, Formula("gaussian", 0.5, constant=0.5), RANDOM, 1e-4),
    "Gaussian, metric": (
        Gaussian(M=METRIC),
        Formula("mahalanobis", M=tuple(map(tuple, METRIC.tolist()))),
        RANDOM[:, :2],
        1e-4,
    ),
    "Gaussian, cancelling": (Gaussian(1.0), Formula("gaussian"), apart(3000, far=1e7), 0.02),
    "Gaussian, clusters": (Gaussian(1.0), Formula("gaussian"), FAR, 5e-5),
    "Laplacian": (Laplacian(1.0), Formula("laplacian"), apart(3000, squared=False), 0.02),
    "large degree": (Polynomial(9, 0.5, 1.0), Formula("polynomial", 0.5, 9, 1.0), RANDOM, 1e-4),
    "small": (Linear(), Formula("linear"), 1e-160 * data(8, 9), 1e-4),
    "large": (Linear(), Formula("linear"), 1e150 * data(8, 9), 1e-4),
    "small cosine": (Cosine(), Formula("cosine"), 1e-310 * RANDOM, 1e-4),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_no_error_exceeds_its_bound(name, device):
    kernel, formula, X, share = BOUNDS[name]
    K, gram = exact_numbers(formula.matrix(X)), there(kernel, X)
    C = check_bounds_of_all(gram, K, share if device == "torch-cpu" else None)
    rows = np.arange(len(X))[::-1].copy()
    for level in gram.levels:
        check_bounds(gram.copied(rows, 10**6), K[np.ix_(rows, rows)], C, level)
    gram.refute()
    check_bounds_of_several(gram, K, C)
    check_bounds(gram, K, C)


@pytest.mark.parametrize("name", ["composite", "given"])
def test_this_machine_proves_what_the_device_cannot(name, device):
    X = data(12, 3)
    kernel = Gaussian(0.1) + 0.1 * Linear() if name == "composite" else Precomputed()
    K = Formula("gaussian + linear", gamma=0.1).matrix(X) if name == "composite" else kernel_matrix(X)
    gram = there(kernel, X if name == "composite" else np.asarray(K))
    C = data(12, 3, seed=4)
    for level in gram.levels:
        check_bounds(gram, exact_numbers(K), C, level)
        check_bounds(gram.proof, exact_numbers(K), C, level)
        check_bounds_of_several(gram.proof, exact_numbers(K), C, level)


def kernel_matrix(X):
    return Gaussian(0.3)(X)


def test_bounds_of_sums_over_many_columns(device):
    """K = xxᵀ of numbers whose sum loses one term after another, over several partial sums."""
    n = 5000
    x, c = np.ones(n), np.full(n, 0.499 * np.finfo(float).eps)
    c[::2048] = 1.0
    gram = there(Linear(), x[:, None])
    u, error = gram.product_bound(c)
    off = np.abs(exact_numbers(u) - exact_numbers(c).sum())
    assert (off <= exact_numbers(error)).all()
    assert off.max() > 0
    np.testing.assert_array_equal(error, gram.errors(c))


# --- functions whose errors are proven --------------------------------------------------------------------------------


def on(device, values):
    return torch.tensor(values, device="cpu" if device == "torch-cpu" else device)  # a copy


def exponents():
    rng = np.random.default_rng(0)
    whole = np.arange(-1021.0, 1.0)
    near = np.nextafter(whole[1:], -np.inf)
    halves = np.arange(-1020.5, 0.0, 7.0)
    tiny = -(2.0 ** -np.arange(1.0, 1075.0, 13))
    grids = [np.linspace(-1, 0, 801), rng.uniform(-60, 0, 800), rng.uniform(-1021, 0, 800)]
    return np.concatenate([whole[::9], near[::11], halves, np.nextafter(halves, 0), tiny, [-0.0, 0.0], *grids])


def test_powers_of_two_are_as_near_as_is_proven(device):
    e = exponents()
    found = to_host(power_of_two(on(device, e), proven=True))
    with hundred_digits():
        true = np.array([decimals(2.0) ** x for x in decimals(e)])
        share = np.abs(decimals(found) - true) / true
    assert share.max() <= decimals(4 * 2.0**-53)
    assert (found[e == 0] == 1).all()
    whole = e == np.floor(e)
    np.testing.assert_array_equal(found[whole], 2.0 ** e[whole])
    below = on(device, np.array([-1021.75, -1022.0, -1074.0, -1075.0, -1e4, -1e300, -np.inf]))
    assert not to_host(power_of_two(below, proven=True)).any()


def test_hyperbolic_tangents_are_as_near_as_is_proven(device):
    rng = np.random.default_rng(1)
    t = np.concatenate(
        [
            np.linspace(-3, 3, 801),
            rng.normal(size=500) * 10.0 ** rng.integers(-20, 2, 500),
            2.0**-7 * np.linspace(0.99, 1.01, 99),
            [0.0, -0.0, 5e-324, 19.0, 22.0, 400.0, 1e300, np.inf, -np.inf],
        ]
    )
    found = to_host(hyperbolic_tangent(on(device, t), proven=True))
    with hundred_digits():
        true = np.array([decimals(1.0 if x > 300 else -1.0) if abs(x) > 300 else tanh_of(x) for x in t])
        off = np.abs(decimals(found) - true)
    assert off.max() <= decimals(16 * 2.0**-53)
    assert (np.abs(found) <= 1).all()
    small = np.abs(t) < 2.0**-7
    with hundred_digits():
        share = [a / abs(b) for a, b in zip(off[small], true[small], strict=True) if b]
        assert max(share) <= decimals(16 * 2.0**-53)


def tanh_of(x):
    with hundred_digits():
        return tanh(decimals(np.array([x])))[0]


# --- samples ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_samples_answer_as_numpy_does(dtype, device):
    X = (data(40, 5, seed=2) + 3).astype(dtype)
    X[7], X[9, 2], X[11, 2] = X[3], 0.0, -0.0
    wide, samples = X.astype(np.float64), ENGINE.samples(X)
    rows = np.array([5, 3, 3, 39])
    assert (samples.shape, samples.dtype, samples.n_entries) == (X.shape, X.dtype, 200)
    for got, wanted in (
        (samples.host(), X),
        (samples.host(rows), X[rows]),
        (samples.take(rows).host(), X[rows]),
        (samples.joined(samples.take(rows)).host(), np.vstack([X, X[rows]])),
        (samples.columns(rows % 5).host(), X[:, rows % 5]),
        (samples.entries(rows, rows % 5), wide[rows, rows % 5]),
        (samples.extremes(), (wide.min(), wide.max())),
        (samples.equal(np.array([3, 3]), np.array([7, 8])), [True, False]),
    ):
        np.testing.assert_array_equal(got, wanted)
        assert np.asarray(got).dtype == np.asarray(wanted).dtype
    weight = np.arange(40.0)
    first, second = samples.sums_about(3.0, weight)
    np.testing.assert_allclose(samples.squared_lengths(), (wide**2).sum(axis=1), rtol=1e-14)
    np.testing.assert_allclose(samples.moments(), (wide.mean(axis=0), wide.std(axis=0)), rtol=1e-13)
    np.testing.assert_allclose(first, weight @ (wide - 3).sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(second, weight @ ((wide - 3) ** 2).sum(axis=1), rtol=1e-12)
    for kernel in RECIPES.values():
        if kernel is not RECIPES["metric"]:
            np.testing.assert_allclose(samples.values(kernel), kernel(wide), rtol=1e-11, atol=1e-13)
            np.testing.assert_array_equal(samples.values(kernel), samples.values(kernel).T)
            other = samples.values(kernel, samples.take(rows))
            np.testing.assert_allclose(other, kernel(wide, wide[rows]), rtol=1e-11, atol=1e-13)
            np.testing.assert_allclose(samples.diagonal(kernel), kernel.diag(wide), rtol=1e-13)


def test_equal_samples_have_equal_hashes(device):
    X = data(300, 4)
    X[17], X[5, 0], X[6] = X[3], 0.0, X[5]
    X[6, 0] = -0.0
    hashes = ENGINE.samples(X).hash()
    assert hashes.dtype == np.uint64
    assert hashes[17] == hashes[3]
    assert hashes[5] == hashes[6]
    assert len(np.unique(hashes)) == 298
    single = X.astype(np.float32)
    np.testing.assert_array_equal(ENGINE.samples(single).hash(), ENGINE.samples(single.astype(np.float64)).hash())
    swapped = ENGINE.samples(X[:, [1, 0, 2, 3]]).hash()
    assert not np.isin(swapped[:3], hashes).any()


def test_numbers_that_are_not_finite_are_found(device):
    X = data(30, 4)
    assert ENGINE.samples(X).first_not_finite() is None
    assert ENGINE.samples(X / np.abs(X).max() * 1e308).first_not_finite() is None  # their sum is not finite
    X[4, 1], X[9, 0], X[9, 2] = np.nan, np.inf, -np.inf
    row, column, value, count = ENGINE.samples(X).first_not_finite()
    assert (row, column, count) == (4, 1, 3)
    assert np.isnan(value)


def test_how_far_a_matrix_is_from_its_mirror(device):
    K = data(30, 30)
    assert ENGINE.samples(K).asymmetry() == np.abs(K - K.T).max()


def test_samples_are_not_read_unasked(device):
    with pytest.raises(TypeError, match="not copied to the host implicitly"):
        np.asarray(ENGINE.samples(data()))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.bool_])
@pytest.mark.parametrize("shape", [(0, 3), (1,), (64,), (257, 3)])
def test_transfers_keep_every_number(dtype, shape, device, monkeypatch):
    monkeypatch.setattr(torch_numbers, "_CHUNKED_BYTES", 1)
    monkeypatch.setattr(torch_numbers, "_CHUNK_BYTES", 512)
    values = (10 * np.random.default_rng(0).normal(size=shape)).astype(dtype)
    like = ENGINE.samples(data()).rows
    sent = to_device(values, like)
    again = to_device(values, like, torch.float64)
    kept = values.copy()
    if like.device.type == "cuda":
        values[:] = 0  # what is sent is copied at once
    np.testing.assert_array_equal(to_host(sent), kept)
    np.testing.assert_array_equal(to_host(sent.T), kept.T)
    assert to_host(sent).dtype == dtype
    assert again.dtype == torch.float64
    np.testing.assert_array_equal(to_host(again), kept.astype(np.float64))


def test_samples_do_not_follow_what_the_user_writes_later(device):
    X = torch.as_tensor(data())
    model = mercer.SVC().fit(X, np.arange(90) % 2)
    before = model.decision_function(data(5))
    X.zero_()
    np.testing.assert_array_equal(model.decision_function(data(5)), before)


@pytest.mark.parametrize("name", ["gaussian", "metric", "sum"])
def test_values_of_samples_far_apart_keep_their_digits(name, device):
    """Norms a million times the distances: values come from differences then."""
    X = data(40, 6) + 1e7 * (np.arange(40) % 2)[:, None]
    kernel = RECIPES.get(name, Gaussian(0.3) + Gaussian(0.1))
    K, gram = kernel(X), there(kernel, X)
    assert gram.precisions == (np.float64,)
    np.testing.assert_allclose(gram.full(), K, rtol=0, atol=1e-8)  # of a metric the kernel's own values lose as much
    np.testing.assert_allclose(ENGINE.samples(X).values(kernel), K, rtol=0, atol=1e-8)
    c = data(40, 1)
    check_evaluation_contract(EvaluatedBy(ENGINE, kernel, X, c), X[::-1] + 0.5, kernel(X[::-1] + 0.5, X) @ c, atol=1e-6)


def test_float32_samples_are_predicted_in_float64_where_float32_is_too_coarse(device):
    X, c = 30 * data(90, 6).astype(np.float32), 1e3 * data(90, 1)
    for kernel in (Gaussian(0.01), Polynomial(3, 1.0, 1.0), Gaussian(0.01) + Linear()):
        values = kernel(X.astype(np.float64), X.astype(np.float64)) @ c
        check_evaluation_contract(EvaluatedBy(ENGINE, kernel, X, c), X, values, 1e-12 * np.abs(values).max())
    near = 0.3 * data(200, 6).astype(np.float32)  # like values, of which large sums cancel
    c = 100.0 * np.repeat([1.0, -1.0], 100)[:, None]
    values = Gaussian(0.01)(near.astype(np.float64)) @ c
    check_evaluation_contract(EvaluatedBy(ENGINE, Gaussian(0.01), near, c), near, values, 2e-4)
    c = 1e3 * data(90, 1)
    values = Gaussian(0.01)(X.astype(np.float64), X.astype(np.float64)) @ (1e-6 * c)
    check_evaluation_contract(EvaluatedBy(ENGINE, Gaussian(0.01), X, 1e-6 * c), X, values, 1e-4)
