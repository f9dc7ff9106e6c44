"""CSR samples on torch's devices, held to the contracts; nothing is laid out as dense rows beyond a tile."""

import numpy as np
import pytest
import scipy.sparse as sp

import mercer
from contracts.gram_contract import (
    EvaluatedBy,
    check_evaluation_contract,
    check_field_contract,
    check_gram_contract,
    exact_numbers,
)
from contracts.named import named
from contracts.samples_contract import check_samples_contract, check_that_bad_entries_are_found
from mercer.kernels import Cosine, Gaussian, Laplacian, Linear, Polynomial, Sigmoid
from mercer.places import gram_for
from mercer.samples.arrays import stack
from places.test_bounds import apart, check_bounds_of_all, lost, norms
from reference.exact_kernels import Formula
from reference.problems import machine_problem, machines
from test_architecture import CELLS, KINDS, REFERENCES, problem, target_of

torch = pytest.importorskip("torch", reason="torch is not installed: python -m pip install 'mercer[torch]'")
from mercer.places.torch import ENGINE  # noqa: E402  # after the skip without torch
from mercer.places.torch import sparse as torch_sparse  # noqa: E402  # after the skip without torch

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def small_tiles(monkeypatch):
    """Tiles of a few rows, and few of the columns."""
    monkeypatch.setattr(torch_sparse, "TILE_BYTES", 700)


def data(n=40, d=9, seed=0, share=0.4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < share)
    X[3] = 0.0
    return X


def there(kernel, X, **options):
    return gram_for(kernel, ENGINE.samples(sp.csr_array(X)), **options)


METRIC = np.diag([1.0, 0.5, 2.0, 1.0, 0.1, 1.0, 1.0, 3.0, 1.0])
KERNELS = {
    "gaussian": Gaussian(0.3),
    "metric": Gaussian(M=METRIC),
    "linear": Linear(),
    "polynomial": Polynomial(3, 0.5, 1.0),
    "sigmoid": Sigmoid(0.2, 0.1),
    "laplacian": Laplacian(0.4),
    "cosine": Cosine(),
    "composite": Gaussian(0.3) + Linear() * Laplacian(0.2),
    "some columns": Gaussian(0.3).on([7, 1]) + Linear().on([0, 5, 8]),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_samples_answer_as_arrays_do(dtype, device, small_tiles):
    X = data(40, 4).astype(dtype)
    check_samples_contract(ENGINE.samples(sp.csr_array(X)), X)
    check_that_bad_entries_are_found(lambda X: ENGINE.samples(sp.csr_array(X)), X)
    full = data(30, 3, share=1.0)
    full[3] = 1.0
    assert ENGINE.samples(sp.csr_array(full)).extremes() == (full.min(), full.max())


def test_dense_and_sparse_samples_are_merged_alike(device):
    X = data()
    dense, csr = ENGINE.samples(X), ENGINE.samples(sp.csr_array(X))
    np.testing.assert_array_equal(dense.hash(), csr.hash())
    for one, other in ((dense, csr), (csr, dense)):
        both = stack(one, other)
        assert both.sparse
        np.testing.assert_array_equal(both.host().toarray(), np.vstack([X, X]))
        np.testing.assert_allclose(one.values(Gaussian(0.3), other), Gaussian(0.3)(X, X), atol=1e-12)
        np.testing.assert_allclose(one.values(Laplacian(0.3), other), Laplacian(0.3)(X, X), atol=1e-12)


def test_tensors_of_every_sparse_layout_are_taken(device):
    X = data()
    tensor = torch.as_tensor(X, device="cpu" if device == "torch-cpu" else device)
    for given in (tensor.to_sparse(), tensor.to_sparse_csr(), tensor.to_sparse_csc()):
        np.testing.assert_array_equal(ENGINE.samples(given).host().toarray(), X)
    twice = torch.sparse_coo_tensor([[0, 0, 1], [1, 1, 2]], [1.0, 2.0, 0.0], (2, 3), device=tensor.device)
    found = ENGINE.samples(twice.double()).host()
    np.testing.assert_array_equal(found.toarray(), [[0, 3, 0], [0, 0, 0]])
    assert found.nnz == 1
    with pytest.raises(TypeError, match="to_sparse_csr"):
        ENGINE.samples(tensor[:, :8].to_sparse_bsr((2, 2)))
    with pytest.raises(TypeError, match="give float32 or float64"):
        ENGINE.samples(tensor.half().to_sparse())


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_gram_contract(name, dtype, device, small_tiles):
    X = data().astype(dtype)
    check_gram_contract(there(KERNELS[name], X), KERNELS[name](X.astype(np.float64)), atol=1e-11)


def test_columns_that_a_tile_does_not_use_are_left_out(device, small_tiles, monkeypatch):
    """Of a thousand columns a tile of three rows uses a few, which others may not have."""
    X = sp.random_array((30, 1000), density=0.005, rng=np.random.default_rng(1), format="csr")
    X = X + sp.csr_array((np.ones(30), (np.arange(30), np.zeros(30, dtype=int))), shape=X.shape)
    widths, dense = [], torch_sparse.SparseRows.dense
    monkeypatch.setattr(
        torch_sparse.SparseRows, "dense", lambda self, used=None: widths.append(used) or dense(self, used)
    )
    for kernel in (Linear(), Gaussian(0.3), Laplacian(0.3)):
        np.testing.assert_allclose(ENGINE.samples(X).values(kernel), kernel(X.toarray()), atol=1e-12)
    assert all(used is not None and len(used) < 100 for used in widths)


@pytest.mark.parametrize("maker", machines()[:2])
def test_the_field_contract(maker, device, monkeypatch):
    problem, K, X = machine_problem(maker, seed=3, n=60, with_data=True)
    for dtype, atol in ((np.float64, 1e-12), (np.float32, 2e-6)):
        check_field_contract(there(Gaussian(gamma=0.5), X), problem, K, dtype, atol)


@pytest.mark.parametrize("name", KERNELS)
def test_the_evaluation_contract(name, device, small_tiles):
    kernel, V, X = KERNELS[name], data(), data(21, seed=6).astype(np.float32)
    C = np.random.default_rng(5).normal(size=(40, 3))
    values = kernel(X.astype(np.float64), V) @ C
    single = 1e-5 * np.abs(kernel(X.astype(np.float64), V)).max() * np.abs(C).sum(axis=0).max()
    for vectors, given in ((sp.csr_array(V), sp.csr_array), (sp.csr_array(V), np.asarray), (V, sp.csr_array)):
        found = EvaluatedBy(ENGINE, kernel, vectors, C)
        check_evaluation_contract(found, given(X.astype(np.float64)), values, 1e-11)
        check_evaluation_contract(found, given(X), values, single)


def test_samples_far_away_keep_their_digits(device, small_tiles):
    X = data()
    X[:, 2] = 1e7
    for kernel in (Gaussian(0.3), Gaussian(M=METRIC)):
        gram = there(kernel, X)
        assert gram.precisions == (np.float64,)
        np.testing.assert_allclose(gram.full(), kernel(X - np.eye(9)[2] * 1e7), atol=1e-9)


# --- bounds, in rational arithmetic ---------------------------------------------------------------------------------

THIRD = 1 / (2 * np.log2(np.e))
SPARSE = data(8, 6, share=0.5)
BOUNDS = {
    "linear": (Linear(), Formula("linear"), lost(3000, float), 0.01),
    "polynomial": (Polynomial(2, 1.0, 0.0), Formula("polynomial", degree=2), lost(3000, float), 0.01),
    "Gaussian": (Gaussian(THIRD), Formula("gaussian", gamma=THIRD), norms(), 0.02),
    "Gaussian, few entries": (Gaussian(0.5), Formula("gaussian", 0.5), SPARSE, 1e-4),
    "Gaussian, cancelling": (Gaussian(1.0), Formula("gaussian"), apart(3000, far=1e7), 0.01),
    "Gaussian, metric": (
        Gaussian(M=METRIC[:6, :6]),
        Formula("mahalanobis", M=tuple(map(tuple, METRIC[:6, :6].tolist()))),
        SPARSE,
        1e-4,
    ),
    "Laplacian": (Laplacian(1.0), Formula("laplacian"), apart(3000, squared=False), 0.01),
    "cosine": (Cosine(), Formula("cosine"), SPARSE, 1e-4),
    "small": (Linear(), Formula("linear"), 1e-160 * SPARSE, 1e-4),
    "large": (Linear(), Formula("linear"), 1e150 * SPARSE, 1e-4),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_no_error_exceeds_its_bound(name, device, small_tiles):
    kernel, formula, X, share = BOUNDS[name]
    exact = exact_numbers(formula.matrix(X))
    check_bounds_of_all(there(kernel, X), exact, share if device == "torch-cpu" else None)


# --- machines -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "kind"), [cell for cell in CELLS if cell[1] in ("recipe", "composite", "rows")])
def test_every_machine_reaches_the_reference_value(name, kind, device):
    reference = REFERENCES[name]
    X, y = problem()
    target = target_of(reference.target, X, y)
    options = {} if kind == "rows" else {"kernel": KINDS[kind]()}
    K = X @ X.T if kind == "rows" else options["kernel"](X)
    tensor = torch.as_tensor(X, device="cpu" if device == "torch-cpu" else device).to_sparse_csr()
    for given in (tensor, sp.csr_array(X)):
        with named(type(given)):
            model = reference.model(**options).fit(given, target)
            value = reference.value(K, target, np.ones(len(y)))
            assert reference.right(model.certificate_, value), (model.certificate_, value)
            assert model.converged_


def test_answers_about_sparse_tensors_are_tensors_beside_them(device):
    X, y = problem()
    tensor = torch.as_tensor(X, device="cpu" if device == "torch-cpu" else device).to_sparse_csr()
    model = mercer.SVC(tol=1e-8).fit(tensor, y)
    assert sp.issparse(model.support_vectors_)
    f = model.decision_function(tensor)
    assert isinstance(f, torch.Tensor)
    assert f.device == tensor.device
    with mercer.config_context(device="cpu"):
        core = mercer.SVC(tol=1e-8).fit(sp.csr_array(X), y).decision_function(sp.csr_array(X))
    np.testing.assert_allclose(f.cpu().numpy(), core, atol=1e-6)


def test_rows_without_entries(device):
    """Some of them, or all."""
    X = np.zeros((30, 5))
    samples = ENGINE.samples(sp.csr_array(X))
    for kernel in (Gaussian(0.3), Linear(), Laplacian(0.3), Cosine()):
        np.testing.assert_array_equal(samples.values(kernel), kernel(X))
    assert samples.extremes() == (0.0, 0.0)
    assert len(np.unique(samples.hash())) == 1
    X[::3, 2] = 1.0
    y = (X[:, 2] > 0).astype(int)
    for machine in (mercer.SVC(), mercer.LinearSVC(), mercer.NystromRLSClassifier(), mercer.RLSClassifier()):
        assert machine.fit(sp.csr_array(X), y).score(sp.csr_array(X), y) == 1.0


def test_the_same_bits_twice(device):
    X, y = problem()
    fits = [mercer.SVC().fit(sp.csr_array(X), y) for _ in range(2)]
    np.testing.assert_array_equal(*(fit.dual_coef_ for fit in fits))
    np.testing.assert_array_equal(*(fit.decision_function(sp.csr_array(X)) for fit in fits))
