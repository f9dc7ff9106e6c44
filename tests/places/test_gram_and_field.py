"""Every kind of Gram matrix passes the same contract, and so does every kind of Field and of Evaluation."""

import inspect
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import mercer
from contracts import cross_contract, gram_contract, rows_contract
from contracts.gram_contract import (
    check_evaluation_contract,
    check_field_contract,
    check_gram_contract,
    check_joint_field_contract,
    check_products_contract,
)
from mercer import _core
from mercer.kernels import FromFunction, Gaussian, Laplacian, Linear, Polynomial, Precomputed, Sigmoid, Spectrum
from mercer.places import BoundedProducts, Evaluation, Gram, evaluation_for, gram_for
from mercer.places.gram import JointField, State
from mercer.places.host.field import HostField
from mercer.places.host.prepared import PreparedSamples
from mercer.places.host.tiled_field import TiledField
from mercer.places.protocols import Cross, LinearGram, Rows
from mercer.problems.classification import soft_margin
from mercer.problems.dual_problem import violation
from mercer.problems.multiclass import JointProblem
from reference.problems import machine_problem, machines
from reference.working_set import working_set

KERNELS = [Gaussian(0.3), Linear(), Polynomial(3, 0.5, 1.0), Sigmoid(0.2, 0.1), Laplacian(0.4), 2 * Gaussian(0.3)]


def data(n=90, d=7, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("kind", ["dense", "csr", "float32", "mostly zero"])
def test_fused_matrices(kernel, kind):
    X = data(d=20 if kind == "mostly zero" else 7)
    if kind in ("csr", "mostly zero"):
        X *= np.random.default_rng(1).random(X.shape) < 0.2
    given = {"csr": sp.csr_array, "float32": lambda A: A.astype(np.float32)}.get(kind, lambda A: A)(X)
    exact = np.asarray(given.toarray() if kind == "csr" else given, dtype=np.float64)
    gram = gram_for(kernel, given, n_threads=2)
    assert gram.concurrent
    check_gram_contract(gram, kernel(exact), atol=1e-11)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
def test_large_matrices_are_offered_in_float32_too(kernel, convert):
    X = data(n=1100, d=4)
    gram = gram_for(kernel, convert(X))
    assert gram.precisions == (np.float32, np.float64)
    check_products_contract(gram, kernel(X), atol=1e-11)


def test_generic_matrices():
    X = data()
    kernel = Gaussian(0.3) + Linear() * Laplacian(0.2)
    gram = gram_for(kernel, X)
    assert not gram.recomputes_cheaply
    check_gram_contract(gram, kernel(X), atol=1e-12)


def words(n=60):
    rng = np.random.default_rng(4)
    return ["".join(rng.choice(list("abc"), 9)) for _ in range(n)]


def test_functions_strings_and_stored_matrices():
    X = data()
    K = Gaussian(0.3)(X)
    check_gram_contract(gram_for(FromFunction(lambda A, B: Gaussian(0.3)(A, B)), X), K, atol=1e-12)
    check_gram_contract(gram_for(Spectrum(2), words()), Spectrum(2)(words()), atol=1e-12)
    check_gram_contract(gram_for(Precomputed(), K), K, atol=0)
    check_gram_contract(gram_for(Precomputed(), K.astype(np.float32)), K.astype(np.float32).astype(float), atol=0)
    gram = gram_for(Gaussian(0.3) + Linear(), X)
    gram.share()
    assert gram.recomputes_cheaply
    before = gram.evaluations
    check_gram_contract(gram, K + X @ X.T, atol=1e-12)
    assert gram.evaluations == before


def test_an_indefinite_matrix_is_refuted():
    K = np.diag(np.r_[np.ones(30), -1.0])
    gram = gram_for(Precomputed(), K)
    view = gram.view(np.arange(20))
    assert not gram.looks_positive_definite()
    assert gram.positive_definite == view.positive_definite == "no"
    assert not gram.looks_positive_definite()


def test_a_view_shares_nothing_of_its_own():
    gram = gram_for(Gaussian(0.3) + Linear(), data())
    view = gram.view(np.arange(5, 40))
    view.share()
    assert not view.recomputes_cheaply
    gram.share()
    assert view.recomputes_cheaply
    np.testing.assert_array_equal(view.block(np.arange(3), np.arange(4)), gram.block(np.arange(5, 8), np.arange(5, 9)))


PROTOCOLS = [
    (gram_contract, (Gram, BoundedProducts, Evaluation, State, JointField)),
    (rows_contract, (Rows, LinearGram)),
    (cross_contract, (Cross,)),
]


@pytest.mark.parametrize(("contract", "protocols"), PROTOCOLS, ids=lambda value: getattr(value, "__name__", ""))
def test_the_contract_asks_for_everything_in_the_protocol(contract, protocols):
    """Whatever a place must have, some implementation of it was seen to have right."""
    text = inspect.getsource(contract)
    members = {name for kind in protocols for name in (*vars(kind), *kind.__annotations__) if not name.startswith("_")}
    assert len(members) > 8
    assert not {name for name in members if f".{name}" not in text}


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
def test_joint_fields(convert, shared):
    """More samples than one block of columns, in both precisions and on a view."""
    X = data(n=2200, d=3)
    for kernel, size in ((Gaussian(0.3), 2200), (Gaussian(0.3) + Linear() * Laplacian(0.2), 120)):
        problem = JointProblem(np.arange(size) % 4, np.linspace(0.5, 2.0, size), 4, shared=shared, shift=1.0)
        K, gram = kernel(X[:size]), gram_for(kernel, convert(X[:size]))
        for dtype in gram.precisions:
            check_joint_field_contract(gram, problem, K, dtype, 1e-11)
    rows = np.arange(0, 2200, 20)
    problem = JointProblem(np.arange(110) % 4, np.ones(110), 4, shared=shared)
    view = gram_for(Gaussian(0.3), convert(X)).view(rows)
    check_joint_field_contract(view, problem, Gaussian(0.3)(X[rows]), np.float64, 1e-11)


@pytest.mark.parametrize("name", ["KernelMatrix", "BlockEvaluation", "HostCross"])
def test_one_file_chooses_where_kernel_values_come_from(name):
    source = Path(mercer.__file__).parent
    made = re.compile(rf"\b{name}(\.of)?\(|class {name}\b")
    users = {p.relative_to(source).as_posix() for p in source.rglob("*.py") if made.search(p.read_text())}
    users = {
        name for name in users if not name.startswith(("places/torch/", "places/chunked/"))
    }  # an engine's workers have a place of their own
    assert len(users) == 2  # where it is defined, and:
    assert "places/choose.py" in users


COEFFICIENTS = np.random.default_rng(5).normal(size=(90, 3))


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("kernel", [*KERNELS, Gaussian(0.3) + Linear() * Laplacian(0.2)], ids=repr)
@pytest.mark.parametrize("kind", ["dense", "csr", "float32"])
def test_evaluations(kernel, kind, n_outputs):
    V, X, C = data(), data(41, seed=6).astype(np.float32).astype(np.float64), COEFFICIENTS[:, :n_outputs]
    given = {"csr": sp.csr_array, "float32": lambda A: A.astype(np.float32)}.get(kind, np.asarray)(X)
    vectors = sp.csr_array(V) if kind == "csr" else V
    values = kernel(X, V) @ C
    atol = 1e-11 if kind != "float32" else 1e-5 * np.abs(kernel(X, V)).max() * np.abs(C).sum(axis=0).max()
    for coefficients in (C, sp.csr_array(C))[: 1 if n_outputs == 1 else 2]:
        check_evaluation_contract(evaluation_for(kernel, vectors, coefficients), given, values, atol)


def test_evaluations_of_strings_of_columns_and_of_nothing():
    C = COEFFICIENTS[:60]
    values = Spectrum(2)(words(25), words()) @ C
    check_evaluation_contract(evaluation_for(Spectrum(2), words(), C), words(25), values, 1e-11)
    K, columns = data(30, 70), np.arange(0, 70, 7)
    check_evaluation_contract(
        evaluation_for(Precomputed(), None, C[:10], columns), K, K[:, columns] @ C[:10], atol=1e-12
    )
    check_evaluation_contract(evaluation_for(Gaussian(0.3), data(0), C[:0]), data(), np.zeros((90, 3)), atol=0)


@pytest.mark.parametrize(("dtype", "atol"), [(np.float64, 1e-12), (np.float32, 2e-6)])
@pytest.mark.parametrize("maker", machines())
def test_fields_on_the_core(maker, dtype, atol):
    problem, K, X = machine_problem(maker, seed=3, n=80, with_data=True)
    gram = gram_for(Gaussian(gamma=0.5), X, n_threads=2)
    assert isinstance(gram.field(problem, dtype=dtype), TiledField)
    check_field_contract(gram, problem, K, dtype, atol)


@pytest.mark.parametrize("maker", machines())
def test_fields_in_numpy(maker):
    problem, K, _ = machine_problem(maker, seed=3, n=80, with_data=True)
    gram = gram_for(Precomputed(), K)
    assert type(gram.field(problem)) is HostField
    check_field_contract(gram, problem, K, np.float64, 1e-12)


@pytest.mark.parametrize("maker", machines())
def test_the_core_chooses_as_the_rule_says(maker):
    """_core.Active is the NumPy rule, faster: the same sets in the same order."""
    problem, K, _ = machine_problem(maker, seed=5, n=60, with_data=True)
    rng = np.random.default_rng(2)
    n = problem.n_variables
    for _ in range(10):
        beta = np.clip(rng.normal(size=n), problem.lower, problem.upper)
        at = rng.random(n)
        beta = np.where((at < 0.3) & np.isfinite(problem.lower), problem.lower, beta)
        beta = np.where((at > 0.7) & np.isfinite(problem.upper), problem.upper, beta)
        u = K @ problem.row_coefficients(beta, len(K))
        active = np.sort(rng.permutation(n)[: n - 7])
        kept = active[:5]
        fixed = (problem.p, problem.lower, problem.upper, problem.d, problem.row, problem.group, len(problem.totals))
        up, low = problem.movable(beta)
        h = problem.gradient(beta, u)

        def view(J, up=up, low=low, h=h):
            return h[J], up[J], low[J], problem.group[J], len(problem.totals)

        seen = _core.Active(*fixed, beta, u)
        seen.choose(active)
        ends = seen.ends()
        for got, wanted in zip(ends, violation(*view(active)), strict=True):
            np.testing.assert_array_equal(got, wanted)
        # The ends over all active variables decide who is a candidate, kept or not.
        others = np.setdiff1d(active, kept)
        chosen = seen.working_set(*ends[1:], kept, 12)
        assert set(chosen) <= set(others)
        for size in (1, 12, 30, 2 * n):
            full = seen.working_set(*ends[1:], np.empty(0, dtype=np.intp), size)
            np.testing.assert_array_equal(full, active[working_set(*view(active), size)])


def test_many_variables_are_chosen_in_chunks_on_any_number_of_threads():
    n, rng = 50_000, np.random.default_rng(3)
    beta, p = rng.integers(0, 3, size=n) / 2, np.round(rng.normal(size=n), 2)  # many ties
    zeros, group = np.zeros(n), np.zeros(n, dtype=np.int32)
    up, low = beta < 1, beta > 0
    wanted = violation(p, up, low, group, 1)
    for threads in (1, 3):
        seen = _core.Active(p, zeros, np.ones(n), zeros, np.arange(n), group, 1, beta, zeros, threads)
        seen.choose(np.arange(n))
        ends = seen.ends()
        for got, right in zip(ends, wanted, strict=True):
            np.testing.assert_array_equal(got, right)
        for size in (10, 1000):
            chosen = seen.working_set(*ends[1:], np.empty(0, dtype=np.intp), size)
            np.testing.assert_array_equal(chosen, working_set(p, up, low, group, 1, size))
        stay = (up & low) | (up & (p >= 0.5)) | (low & (p <= -0.5))
        np.testing.assert_array_equal(seen.survivors(np.array([-0.5]), np.array([0.5])), np.flatnonzero(stay))


def test_broken_arguments_are_refused():
    problem, _K, _ = machine_problem(machines()[0].values[0], seed=5, n=20, with_data=True)
    n = problem.n_variables
    good = [problem.p, problem.lower, problem.upper, problem.d, problem.row, problem.group, 1, np.zeros(n), np.zeros(n)]
    with pytest.raises(ValueError, match="active"):
        _core.Active(*good).choose(np.array([n]))
    with pytest.raises(ValueError, match="row"):
        _core.Active(*good[:4], problem.row + 1, *good[5:])
    samples = PreparedSamples.of(Gaussian(1.0), data(20), 1).all_samples(np.float64)
    with pytest.raises(ValueError, match="which"):
        samples.columns(np.array([20]))
    with pytest.raises(ValueError, match="total"):
        samples.add(np.zeros(3), samples.columns(np.arange(20)), np.arange(2), np.ones(2))
    other = PreparedSamples.of(Gaussian(1.0), sp.csr_array(data(20)), 1).all_samples(np.float64)
    with pytest.raises(ValueError, match="columns"):
        samples.block(np.arange(3), other.columns(np.arange(3)))


def test_numbers_too_large_for_float32_are_left_to_float64():
    X = data() * 1e20
    gram = gram_for(Linear(), X)
    assert PreparedSamples.of(Linear(), X, 1).all_samples(np.float32) is None
    np.testing.assert_allclose(gram.block(np.arange(3), np.arange(90)), X[:3] @ X.T, rtol=1e-12)


def test_results_do_not_depend_on_the_number_of_threads():
    X = data(n=3000)
    coefficients = np.random.default_rng(0).normal(size=3000)
    one, two = (gram_for(Gaussian(0.3), X, n_threads=k) for k in (1, 2))
    for dtype in (np.float32, np.float64):
        np.testing.assert_array_equal(one.product(coefficients, dtype=dtype), two.product(coefficients, dtype=dtype))


def test_blocks_of_dear_kernels_come_from_kept_rows():
    X = data(n=300, d=130) / 8
    y = np.where(X @ np.arange(130) > 0, 1.0, -1.0)
    kernel = Gaussian(0.3)
    gram, K = gram_for(kernel, X, n_threads=2), kernel(X)
    field = gram.field(soft_margin(y, np.full(300, 10.0)), np.zeros(300), None, np.float64)
    rng, computed = np.random.default_rng(0), []
    for _ in range(6):
        J = field.violators(40, 0.5)
        before = gram.evaluations
        np.testing.assert_allclose(field.block(J), K[np.ix_(J, J)], rtol=0, atol=1e-13)
        computed.append(gram.evaluations - before)
        sides = [np.flatnonzero(y[J] == s) for s in (1, -1)]
        after = field.beta[J]
        for side in sides:
            after[side] += rng.uniform(0, 0.1) / len(side) * y[J[side]]
        field.move(J, after)
        np.testing.assert_allclose(field.u, K @ field.beta, rtol=0, atol=1e-12)
    assert computed[0] == 40**2
    assert max(computed[1:]) <= 20**2


@pytest.mark.parametrize("generic", [False, True])
def test_a_variable_is_dropped_only_when_it_is_outside_by_a_margin(generic):
    y = np.array([1.0, 1.0, 1.0, -1.0, -1.0, -1.0])
    h = np.array([1.0, -1.1, -1.4, -1.0, 1.1, 1.4])  # the ends are 1 and -1, the violation 2
    gram = gram_for(Gaussian(0.3) + Linear() if generic else Gaussian(0.3), data(n=6))
    field = gram.field(soft_margin(y, np.ones(6)), np.zeros(6), y - h, np.float64)
    assert isinstance(field, TiledField) is not generic
    assert field.shrink()
    assert field.active.tolist() == [0, 1, 3, 4]


@pytest.mark.parametrize("generic", [False, True])
def test_u_stays_right_after_a_shrink(generic, monkeypatch):
    """Rows of K that were kept over all samples serve the samples that are left."""
    X, y = data(n=40), np.resize([1.0, -1.0], 40)
    kernel = Gaussian(0.3) + Linear() if generic else Gaussian(0.3)
    K, field = kernel(X), gram_for(kernel, X).field(soft_margin(y, np.ones(40)))
    stay = np.r_[1:6, 20:40]
    monkeypatch.setattr(type(field), "_survivors", lambda _: stay)
    J = np.r_[1, 3, 25, 30]
    for value in (0.25, 0.75):
        field.block(J)
        field.move(J, value * y[J])
        np.testing.assert_allclose(field.u[stay], (K @ field.beta)[stay], rtol=0, atol=1e-5)
        field.shrink()
    assert field.active.tolist() == stay.tolist()
