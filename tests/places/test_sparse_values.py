"""Kernel values between sparse samples: wide ones, rows of very many entries, and exact values where others cancel."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from mercer import _core
from mercer.kernels import Chi2, Cosine, Gaussian, Laplacian, Linear, Polynomial, Sigmoid, Tanimoto
from mercer.places import evaluation_for, gram_for
from mercer.places.host.prepared import Lowering, PreparedSamples
from mercer.samples.matrices import drop_shared_empty_columns, positions_among, used_columns
from reference.child import environment, run_python

KERNELS = [Gaussian(0.3), Linear(), Polynomial(3, 0.1, 1.0), Sigmoid(0.1, 0.1), Laplacian(0.2), 2 * Gaussian(0.3) + 1]


def wide_rows(n, d, per_row, seed=0):
    rng = np.random.default_rng(seed)
    indices = np.concatenate([np.sort(rng.choice(min(d, 60_000), per_row, replace=False)) for _ in range(n)])
    indices = (indices.astype(np.int64) * 7919) % d
    X = sp.csr_array((rng.normal(size=n * per_row), indices, np.arange(0, n * per_row + 1, per_row)), shape=(n, d))
    X.sum_duplicates()
    return X


def narrow_copy(*matrices):
    used = np.unique(np.concatenate([X.indices for X in matrices]))
    copies = [np.zeros((X.shape[0], len(used))) for X in matrices]
    for X, copy in zip(matrices, copies, strict=True):
        copy[np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), np.searchsorted(used, X.indices)] = X.data
    return copies


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("d", [5000, 10**6, 10**8])
def test_wide_samples_have_the_values_of_narrow_ones(kernel, d):
    X, Z = wide_rows(70, d, 20), wide_rows(9, d, 25, seed=1)
    Z = sp.csr_array(Z + sp.csr_array(([3.0] * 9, (range(9), range(9))), shape=Z.shape))  # columns that X has not
    x, z = narrow_copy(X, Z)
    everything = np.arange(70)
    np.testing.assert_allclose(gram_for(kernel, X).block(everything, everything), kernel(x, x), atol=1e-12)
    beta, out = np.random.default_rng(2).normal(size=(70, 1)), np.zeros((9, 1))
    evaluation_for(kernel, X, beta, None).add(out, Z, 1)
    np.testing.assert_allclose(out, kernel(z, x) @ beta, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kernel", [Linear(), Gaussian(1e-5), Laplacian(1e-5)], ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_of_more_entries_than_a_strip_holds_take_several_turns(kernel, dtype):
    X = sp.csr_array(wide_rows(5, 10**6, 50_000).astype(dtype))
    rows, (x,) = np.arange(5), narrow_copy(X.astype(np.float64))
    rounding = 1e-5 if dtype == np.float32 else 1e-11
    samples = PreparedSamples.of(kernel, X, 1).all_samples(dtype)
    np.testing.assert_allclose(samples.block(rows, samples.columns(rows)), kernel(x, x), rtol=rounding, atol=1e-2)
    total = np.zeros(5)
    samples.add(total, samples.columns(rows), rows, np.ones(5))
    np.testing.assert_allclose(total, kernel(x, x).sum(axis=1), rtol=rounding, atol=5e-2)
    exact, _ = replace(Lowering.of(kernel.recipe(), X), doubled=True).prepare(X, np.float64, 1)
    np.testing.assert_allclose(exact.block(rows, exact.columns(rows)), kernel(x, x), rtol=1e-11)


def extended(kernel, X):
    """Kernel values in extended precision, by code that shares nothing with mercer."""
    X = X.astype(np.longdouble)
    if isinstance(kernel, Gaussian):
        return np.exp(-np.longdouble(kernel.gamma) * ((X[:, None] - X) ** 2).sum(axis=2))
    if isinstance(kernel, Laplacian):
        return np.exp(-np.longdouble(kernel.gamma) * np.abs(X[:, None] - X).sum(axis=2))
    if isinstance(kernel, Cosine):
        X = X / np.sqrt((X * X).sum(axis=1, keepdims=True))
    exact = [[Fraction(float(value)) for value in row] for row in X]
    dots = np.array([[float(sum(a * b for a, b in zip(x, z, strict=True) if a and b)) for z in exact] for x in exact])
    if isinstance(kernel, Polynomial):
        return (np.longdouble(kernel.gamma) * dots + np.longdouble(kernel.coef0)) ** kernel.degree
    if isinstance(kernel, Sigmoid):
        return np.tanh(np.longdouble(kernel.gamma) * dots + np.longdouble(kernel.coef0))
    return dots


def cancelling_rows(kind):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(50, 40)) * (rng.random((50, 40)) < 0.4)
    if kind == "time stamps":
        X[3:, 0] = 1.7e9 + rng.uniform(0, 3600, 47)
        X[:3, 0] = 0.0
    elif kind == "clusters":
        X[::2, :3] += 1e8
    elif kind == "one far row":
        X[7] *= 1e12
    elif kind == "opposite signs":  # inner products are the small difference of large sums
        X[:, 1], X[:, 2] = 1e9, np.where(np.arange(50) % 2, -1e9, 1e9)
        X[0, 1:3] = 0.0
    return X


@pytest.mark.parametrize(
    "kernel",
    [Gaussian(0.01), Laplacian(0.01), Linear(), Polynomial(2, 1e-12, 1.0), Sigmoid(1e-3, 0.1), Cosine()],
    ids=repr,
)
@pytest.mark.parametrize("kind", ["time stamps", "clusters", "one far row", "opposite signs"])
def test_exact_values_do_not_cancel(kernel, kind):
    X = cancelling_rows(kind)
    lowering = Lowering.of(kernel.recipe(), sp.csr_array(X))
    samples, _ = replace(lowering, doubled=True).prepare(sp.csr_array(X), np.float64, 1)
    rows = np.arange(50)
    truth = extended(kernel, X)
    values = samples.block(rows, samples.columns(rows))
    size = np.abs(truth) if isinstance(kernel, Linear | Polynomial) else 1.0
    assert np.all(np.abs(values - truth) <= 3e-14 * size + 1e-290)
    np.testing.assert_array_equal(values, values.T)
    out = np.empty((64, 64))
    samples.square(rows, out)
    np.testing.assert_array_equal(out[:50, :50], values)
    np.testing.assert_array_equal(samples.table(rows, rows), values)
    total = np.zeros(50)
    samples.add(total, samples.columns(rows), rows, np.ones(50))
    np.testing.assert_allclose(total, values.sum(axis=1), rtol=1e-12, atol=1e-12 * np.abs(values).max())


@pytest.mark.parametrize("level", _core.levels())
def test_exact_values_are_exact_on_every_processor(level):
    code = """
from dataclasses import replace
import numpy as np, scipy.sparse as sp
from mercer.places.host.prepared import Lowering, PreparedSamples
from mercer.kernels import Gaussian, Laplacian
rng = np.random.default_rng(3)
X = rng.normal(size=(50, 40)) * (rng.random((50, 40)) < 0.4)
X[3:, 0] = 1.7e9 + rng.uniform(0, 3600, 47)
for kernel, power in ((Gaussian(0.01), 2), (Laplacian(0.01), 1)):
    truth = np.exp(-np.longdouble(0.01) * (np.abs(X[:, None].astype(np.longdouble) - X) ** power).sum(axis=2))
    lowering = replace(Lowering.of(kernel.recipe(), sp.csr_array(X)), doubled=True)
    samples, _ = lowering.prepare(sp.csr_array(X), np.float64, 1)
    assert np.abs(samples.block(np.arange(50), samples.columns(np.arange(50))) - truth).max() < 3e-14
"""
    run_python(code, env=environment(MERCER_SIMD=level))


def test_columns_are_renumbered_in_order():
    X, Z = wide_rows(30, 10**7, 12), wide_rows(30, 10**7, 12, seed=5)
    used = used_columns(X)
    np.testing.assert_array_equal(used, np.unique(X.indices))
    for d in (10**7, 4):  # by searching, and by a table
        known = used if d > 4 else np.array([1, 3])
        indices = Z.indices if d > 4 else np.array([0, 1, 2, 3, 3, 0])
        wanted = [list(known).index(k) if k in set(known) else len(known) for k in indices]
        np.testing.assert_array_equal(positions_among(known, indices, d), wanted)
    x, z = drop_shared_empty_columns(X, Z)
    assert x.shape[1] == z.shape[1] == len(np.union1d(X.indices, Z.indices))
    np.testing.assert_allclose((x @ z.T).toarray(), (X @ Z.T).toarray())


@pytest.mark.parametrize("kernel", [Chi2(0.1), Laplacian(0.1), Gaussian(0.1) * Linear(), Tanimoto()], ids=repr)
@pytest.mark.parametrize("share", [0.01, 0.5])
def test_kernels_by_numpy_compare_sparse_rows_as_dense_ones(kernel, share):
    X = sp.random_array((40, 3000), density=share, format="csr", rng=np.random.default_rng(0))
    Z = sp.csr_array(sp.vstack([X[:5], sp.random_array((6, 3000), density=share, rng=np.random.default_rng(1))]))
    np.testing.assert_allclose(kernel(X, Z), kernel(X.toarray(), Z.toarray()), rtol=1e-11, atol=1e-13)
    if isinstance(kernel, Chi2 | Laplacian):
        np.testing.assert_array_equal(kernel(X, X).diagonal(), 1.0)


WIDE = """
    import sys, warnings, numpy as np, scipy.sparse as sp, mercer
    from resource import RUSAGE_SELF, getrusage
    peak = lambda: getrusage(RUSAGE_SELF).ru_maxrss / 1024
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    def rows(n, d):
        X = sp.csr_array((rng.random(30 * n), rng.integers(0, d, 30 * n), np.arange(0, 30 * n + 1, 30)), shape=(n, d))
        X.sum_duplicates()
        return X
    machines = [mercer.SVC(cache_size=10, gamma=1.0), mercer.SVC(cache_size=10), mercer.SVC(kernel="laplacian"),
                mercer.SVC(kernel="chi2"), mercer.SVC(kernel="linear"), mercer.RLSRegressor(), mercer.SVR(),
                mercer.NystromRLS(n_landmarks=50), mercer.PegasosSVC(kernel="rbf", max_iter=200),
                mercer.KernelMachineClassifier(lam=1.0), mercer.OneClassSVM()]
    small = rng.normal(size=(100, 3))
    for machine in machines:
        machine.fit(np.abs(small), small[:, 0] > 0)
    for d in (2**20, 10**8):
        before, X, y = peak(), rows(400, d), rng.integers(2, size=400)
        for machine in machines:
            machine.fit(X, y).predict(rows(1000, d))
        mercer.save(machines[0], sys.argv[1])
        mercer.load(sys.argv[1]).predict(X)
        print(peak() - before)
"""


def test_wide_sparse_data_take_no_memory_for_columns_without_entries(tmp_path):
    grown = run_python(WIDE, tmp_path / "wide.mercer").split()
    assert all(float(megabytes) < 40 for megabytes in grown), grown  # one number per column would be 8 or 800 MB
