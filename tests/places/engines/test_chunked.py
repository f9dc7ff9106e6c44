"""Rows in chunks, whoever the workers are, held to the contracts in three layouts of chunks."""

import numpy as np
import pytest
import scipy.sparse as sp

import mercer
from contracts.cross_contract import check_cross_contract
from contracts.gram_contract import (
    EvaluatedBy,
    check_bounds,
    check_bounds_of_values,
    check_evaluation_contract,
    check_field_contract,
    check_gram_contract,
    check_products_contract,
    exact_numbers,
)
from contracts.rows_contract import (
    check_linear_gram_bounds,
    check_linear_gram_contract,
    check_rows_bounds,
    check_rows_contract,
    check_sums_bounds,
)
from contracts.samples_contract import check_samples_contract, check_that_bad_entries_are_found
from mercer.kernels import Cosine, Gaussian, Laplacian, Linear, Polynomial, Precomputed, Sigmoid
from mercer.places import cross_for, gram_for, rows_for
from mercer.places.ball import Ball
from mercer.places.chunked.gram import ChunkedField, ChunkedGram
from mercer.problems.classification import soft_margin
from mercer.samples.chunks import Chunk
from mercer.solvers.dual.decomposition import decompose
from mercer.solvers.solution import Stop
from places.engines.cluster_claims import GIVEN, check_reference
from places.engines.inline import ENGINE, in_chunks
from places.test_bounds import apart, check_bounds_of_all, lost, norms
from reference.child import environment, run_python
from reference.exact_kernels import Formula
from reference.problems import machine_problem, machines
from test_architecture import CELLS, by_hand

pytestmark = pytest.mark.filterwarnings("ignore")

LAYOUTS = dict(zip(("one chunk", "uneven, some empty", "small"), GIVEN.values(), strict=True))
METRIC = np.array([[1.0, 0.3], [0.3, 0.5]])
KERNELS = {
    "gaussian": Gaussian(0.3),
    "shifted": 2.5 * Gaussian(0.3) + 0.5,
    "metric": Gaussian(M=np.kron(np.eye(3), METRIC)),
    "linear": Linear(),
    "polynomial": Polynomial(3, 0.5, 1.0),
    "sigmoid": Sigmoid(0.2, 0.1),
    "laplacian": Laplacian(0.4),
    "cosine": Cosine(),
    "sum and product": Gaussian(0.3) + Linear() * Laplacian(0.2),
}


def data(n=60, d=6, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


@pytest.fixture(params=LAYOUTS)
def layout(request):
    with in_chunks(LAYOUTS[request.param], outer_rows=1):
        yield request.param


@pytest.fixture
def uneven():
    with in_chunks(LAYOUTS["uneven, some empty"], outer_rows=1):
        yield


def there(kernel, X, **options):
    return gram_for(kernel, ENGINE.samples(X), **options)


# --- contracts --------------------------------------------------------------------------------------------------------


SOME = {("gaussian", "float64"), ("linear", "csr")}
PAIRS = [
    pytest.param(name, kind, marks=[] if (name, kind) in SOME else pytest.mark.thorough)
    for name in KERNELS
    for kind in ("float64", "float32", "csr")
]


@pytest.mark.parametrize(("name", "kind"), PAIRS)
def test_the_gram_contract(name, kind, uneven):
    X = data(30) * (np.random.default_rng(9).random((30, 6)) < 0.6) if kind == "csr" else data(30)
    X = X.astype(np.float32) if kind == "float32" else X
    gram = there(KERNELS[name], sp.csr_array(X) if kind == "csr" else X)
    assert isinstance(gram, ChunkedGram)
    check_gram_contract(gram, KERNELS[name](X.astype(np.float64)), atol=1e-11)


@pytest.mark.thorough
def test_the_gram_contract_in_every_layout(layout):
    check_gram_contract(there(Gaussian(0.3), data(30)), Gaussian(0.3)(data(30)), atol=1e-12)


def test_given_matrices_and_functions(uneven):
    X = data(30)
    K = Gaussian(0.3)(X)
    check_products_contract(there(Precomputed(), K), K, atol=0)
    check_gram_contract(there(mercer.kernels.FromFunction(by_hand).bind(X), X), by_hand(X, X), atol=0)


@pytest.mark.parametrize(("dtype", "atol"), [(np.float64, 1e-12), (np.float32, 2e-6)])
@pytest.mark.parametrize("maker", machines())
def test_the_field_contract(maker, dtype, atol, uneven):
    problem, K, X = machine_problem(maker, seed=3, n=60, with_data=True)
    gram = there(Gaussian(gamma=0.5), X)
    assert isinstance(gram.field(problem, dtype=dtype), ChunkedField)
    check_field_contract(gram, problem, K, dtype, atol)


def test_dropped_rows_are_brought_up_to_date():
    X = data(400)
    y = np.where(X[:, 0] + X[:, 1] > 0, 1.0, -1.0)
    with in_chunks((150, 70), outer_rows=60):
        field = there(Gaussian(0.3), X).field(soft_margin(y, np.full(400, 10.0)))
        decompose(field, Stop(tol=1e-3, max_iter=10**6))
        assert field.shrunk
        field.unshrink()
    np.testing.assert_allclose(field.u, Gaussian(0.3)(X) @ field.beta, atol=1e-10)


def test_small_problems_are_solved_here():
    problem, K, X = machine_problem(machines()[0].values[0], seed=3, n=60, with_data=True)
    with in_chunks((7,)):
        gram = there(Gaussian(gamma=0.5), X)
        assert not isinstance(gram.field(problem), ChunkedField)
        check_field_contract(gram, problem, K, np.float64, 1e-12)


def test_large_matrices_are_offered_in_float32_too():
    with in_chunks((400,), outer_rows=1):
        gram = there(Gaussian(0.3), data(1100))
        assert gram.precisions == (np.float32, np.float64)
        check_products_contract(gram, Gaussian(0.3)(data(1100)), atol=1e-11)


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_samples_answer_as_arrays_do(precision, layout):
    rows = data(40, 3).astype(precision)
    rows[::3, 1] = 0.0
    check_samples_contract(ENGINE.samples(rows), rows)
    check_samples_contract(ENGINE.samples(sp.csr_array(rows)), rows)
    check_that_bad_entries_are_found(ENGINE.samples, rows)
    check_that_bad_entries_are_found(lambda X: ENGINE.samples(sp.csr_array(X)), rows)


def test_the_evaluation_contract(layout):
    V, X, C = data(30), data(41, seed=6), np.random.default_rng(5).normal(size=(30, 3))
    for kernel in (Gaussian(0.3), Linear(), KERNELS["sum and product"]):
        check_evaluation_contract(EvaluatedBy(ENGINE, kernel, V, C), X, kernel(X, V) @ C, 1e-11)


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_the_rows_contract(kind, centred, layout):
    X = data(40, 3)
    centre = np.array([0.5, 0.0, -3.0]) if centred and kind == "dense" else None
    rows = rows_for(ENGINE.samples(sp.csr_array(X) if kind == "csr" else X), 1, None, centre)
    assert rows.descent is None
    check_rows_contract(rows, X if centre is None else X - centre)
    linear = there(2.0 * Linear(), sp.csr_array(X) if kind == "csr" else X).linear
    check_linear_gram_contract(linear, X, 2.0)


def test_the_cross_contract(layout):
    X, Y, weight = data(40), data(40, 2, seed=1), 0.5 + np.arange(40) % 3
    for kernel in (Gaussian(0.3), KERNELS["sum and product"]):
        samples = ENGINE.samples(X)
        chunk, few = Chunk(samples, Y, weight, {}), Chunk(samples.take(np.arange(9)), Y[:9], weight[:9])
        cross = cross_for(kernel, samples.take(np.arange(0, 40, 5)), lambda c=chunk: [c], engine=ENGINE)
        check_cross_contract(cross, kernel(X, X[::5]), kernel(X[::5]), Y, weight, 1e-13, few)


# --- bounds, in rational arithmetic -----------------------------------------------------------------------------------

THIRD = 1 / (2 * np.log2(np.e))
RANDOM, FAR = data(8, 3), data(8, 2, seed=1) + 1e3 * (np.arange(8) % 2)[:, None]
# A kernel, its formula, samples, and a share of the bound that the worst error exceeds.
BOUNDS = {
    "linear": (Linear(), Formula("linear"), lost(3000, float), 0.4),
    "polynomial": (Polynomial(2, 1.0, 0.0), Formula("polynomial", degree=2), lost(3000, float), 0.3),
    "sigmoid": (Sigmoid(0.3, 0.0), Formula("sigmoid", gamma=0.3), lost(3000, float), 0.3),
    "Gaussian": (Gaussian(THIRD), Formula("gaussian", gamma=THIRD), norms(), 0.2),
    "Gaussian, shifted": (Gaussian(0.5) + 0.5, Formula("gaussian", 0.5, constant=0.5), RANDOM, 0.001),
    "Gaussian, cancelling": (Gaussian(1.0), Formula("gaussian"), apart(3000, far=1e7), 0.2),
    "Gaussian, clusters": (Gaussian(1.0), Formula("gaussian"), FAR, 1e-4),
    "Laplacian": (Laplacian(1.0), Formula("laplacian"), apart(3000, squared=False), 0.2),
    "large": (Linear(), Formula("linear"), 1e150 * data(8, 9), 0.001),
}


@pytest.mark.parametrize("sizes", [(100,), (3, 0, 1)], ids=str)
@pytest.mark.parametrize("name", BOUNDS)
def test_no_error_exceeds_its_bound(name, sizes):
    kernel, formula, X, share = BOUNDS[name]
    with in_chunks(sizes, outer_rows=1):
        K, gram = exact_numbers(formula.matrix(X)), there(kernel, X)
        C = check_bounds_of_all(gram, K, share)
        check_bounds_of_values(gram, K)
        gram.refute()
        check_bounds(gram, K, C)


def test_sources_that_are_sent_in_parts_have_true_bounds(monkeypatch, uneven):
    monkeypatch.setattr("mercer.places.chunked.gram._SENT_BYTES", 100)
    K, gram = exact_numbers(Formula("gaussian", 0.5).matrix(RANDOM)), there(Gaussian(0.5), RANDOM)
    check_bounds(gram, K, data(8, 3, seed=4))


@pytest.mark.parametrize("size", [1.0, 1e-150, 1e140])
def test_no_bound_of_rows_is_exceeded(size, uneven):
    X = size * np.vstack([data(30, 3), 1e8 + data(10, 3)])
    exact, rng = exact_numbers(X), np.random.default_rng(1)
    rows, linear = rows_for(ENGINE.samples(X), 1), there(Linear(), X).linear
    w, c = rng.normal(size=3), rng.normal(size=40)
    c[30:] -= c[30:].mean()  # so that sums over chunks cancel
    check_rows_bounds(rows, exact, w, c, 0.3)
    check_linear_gram_bounds(
        linear, exact, Ball(data(3, 2), 1e-9 * np.ones((3, 2))), Ball(data(40, 2), 1e-9 * np.ones((40, 2)))
    )
    if size == 1.0:
        for bias in (False, True):
            check_sums_bounds(linear, exact, data(40, 2, seed=2), 0.5 + rng.random(40), bias)


# --- machines ---------------------------------------------------------------------------------------------------------


MATRIX = [
    pytest.param(*cell, given, marks=[] if (i + j) % 3 == 0 and cell[1] in ("recipe", "rows") else pytest.mark.thorough)
    for i, cell in enumerate(CELLS)
    for j, given in enumerate(GIVEN)
]


@pytest.mark.parametrize(("name", "kind", "given"), MATRIX)
def test_every_machine_reaches_the_reference_value(name, kind, given):
    def fit(machine, X, y, weight, sizes):
        with in_chunks(sizes, outer_rows=16):
            return machine.fit(X, y, sample_weight=weight)

    check_reference(name, kind, given, fit)


def test_a_model_does_not_depend_on_the_layout_of_chunks():
    X = data(400, 5)
    y = (X[:, 0] + 0.5 * data(400, 1, seed=3)[:, 0] > 0).astype(int)
    found = []
    for sizes in ((400,), (31, 0, 77), (50,)):
        with in_chunks(sizes, outer_rows=60):
            model = mercer.SVC(kernel=Gaussian(0.2), C=5.0).fit(X, y)
            found.append((model.certificate_.gap, model.decision_function(X[:9]).tolist()))
    assert found[0] == found[1] == found[2]


def test_sums_are_added_and_taken_away(layout):
    """Recursive least squares against a fit of what is left."""
    X, rng = data(90), np.random.default_rng(1)
    y, weight = X @ rng.normal(size=6) + rng.normal(size=90), np.where(np.arange(90) % 4, 1.5, 0.0)
    model = mercer.RLSRegressor(kernel="linear", lam=0.1)
    model.partial_fit(X[:40], y[:40], weight[:40]).partial_fit(X[40:], y[40:], weight[40:])
    model.forget(X[20:60], y[20:60], weight[20:60])
    left = np.r_[0:20, 60:90]
    with mercer.config_context(device="cpu"):
        here = mercer.RLSRegressor(kernel="linear", lam=0.1).fit(X[left], y[left], weight[left])
        np.testing.assert_allclose(model.predict(X), here.predict(X), rtol=1e-9, atol=1e-9)
    assert model.converged_


def test_the_last_task_restores_the_threads():
    """Tasks of a worker with several threads overlap, and each would restore what the one before it had set."""
    code = """
        import threading
        from threadpoolctl import threadpool_info
        from mercer.places.chunked import verbs

        def threads_now():
            return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]

        def task(event):
            inside.wait(30)
            assert event.wait(30)

        before = threads_now()
        assert {"mercer", "openblas", "mkl"} & {one["internal_api"] for one in threadpool_info()}
        for order in ([0, 1], [1, 0]):
            inside, leave = threading.Barrier(3), [threading.Event() for _ in range(2)]
            running = [threading.Thread(target=verbs.on_one_thread, args=(task, event)) for event in leave]
            for one in running:
                one.start()
            inside.wait(30)
            during = threads_now()
            for k in order:
                leave[k].set()
                running[k].join()
            print(*before, "|", *during, "|", *threads_now())
    """
    two = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "MERCER_NUM_THREADS"), "2")
    told = run_python(code, env=environment(**two))
    for line in told.splitlines():
        before, during, after = (part.split() for part in line.split(" | "))
        assert set(during) == {"1"}
        assert before == after
        assert set(before) != {"1"}
    assert len(told.splitlines()) == 2
