"""Kernels of our own in Triton, on a GPU or in Triton's interpreter, against float64 arithmetic of torch.

TRITON_INTERPRET=1 python -m pytest tests/places/engines/test_torch_fused.py     needs triton, and numpy < 2.4
"""

import importlib.util
import itertools
import os
import time
from dataclasses import replace

import numpy as np
import pytest

import mercer
from mercer.kernels import Gaussian
from mercer.places.gram import BoxVariables
from mercer.places.host.blocks import INNER_STEPS, BlockSize, run_device_rounds
from mercer.places.host.prepared import EXACT
from mercer.problems.dual_problem import DualProblem
from mercer.solvers.dual import certified

torch = pytest.importorskip("torch", reason="torch is not installed: python -m pip install 'mercer[torch]'")
from mercer.places.torch import ENGINE, device_rounds, fused, square_sums, stored  # noqa: E402  # after the skip without torch
from mercer.places.torch import field as torch_field  # noqa: E402  # after the skip without torch
from mercer.places.torch import gram as torch_gram  # noqa: E402  # after the skip without torch
from mercer.places.torch.device_rounds import DeviceRounds, StoredBlocks  # noqa: E402  # after the skip without torch
from mercer.places.torch.formula import Formula  # noqa: E402  # after the skip without torch
from mercer.places.torch.numbers import floats  # noqa: E402  # after the skip without torch
from mercer.places.torch.rounds import BlockSelector, add_rows  # noqa: E402  # after the skip without torch

INTERPRETED = os.environ.get("TRITON_INTERPRET", "0") == "1"
HERE = "cpu" if INTERPRETED else "cuda"
if not importlib.util.find_spec("triton") or not (INTERPRETED or torch.cuda.is_available()):
    pytest.skip("needs Triton, and a GPU or TRITON_INTERPRET=1", allow_module_level=True)
if not INTERPRETED:
    pytestmark = pytest.mark.cuda


@pytest.fixture(autouse=True)
def where():
    with mercer.config_context(device="torch-cpu" if INTERPRETED else "cuda"):
        yield


def data(n, d, seed=0):
    return torch.tensor(np.random.default_rng(seed).normal(size=(n, d)), device=HERE)


def prepared(X, kernel, dtype):
    return Formula.of(kernel, X, fuses=True).rows(X, dtype).parts[0]


def truth(x, x_norms, z, z_norms):
    """K of prepared rows in float64."""
    t = x.double() @ z.double().T - x_norms.double()[:, None] - z_norms.double()
    return torch.exp2(t.clamp(max=0.0))


@pytest.mark.parametrize("d", [3, 40, 100])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("outputs", [0, 1, 3, 17])
def test_sums_are_those_of_float64(d, dtype, outputs):
    X, Z = data(150, d), data(130, d, seed=1)
    left, right = (prepared(rows, Gaussian(0.3 / d), dtype) for rows in (X, Z))
    weights = data(130, outputs or 1, seed=2)
    single = dtype == torch.float32
    if outputs and not fused.adds_several(left[0], outputs):
        pytest.skip("left to torch")
    found = fused.sums(*left, *right, weights if outputs else weights[:, 0])
    wanted = truth(*left, *right) @ weights
    assert found.dtype == torch.float64
    wanted = wanted if outputs else wanted[:, 0]
    np.testing.assert_allclose(found.cpu(), wanted.cpu(), atol=2e-5 if single else 1e-12)


@pytest.mark.parametrize("n", [5, 70, 400])
def test_columns_of_few_rows_are_divided_among_programs(n, monkeypatch):
    """Blocks of columns that no span divides, in several calls; every column is in one program."""
    monkeypatch.setattr(fused, "_COLUMNS_AT_ONCE", 320)
    monkeypatch.setattr(fused, "_LEAST_SPAN", 64)
    monkeypatch.setattr(fused, "_PROGRAMS", 12)
    left, right = (prepared(data(m, 6, m), Gaussian(0.1), torch.float64) for m in (n, 1010))
    if not fused.adds_all(left[0]):
        pytest.skip("this Triton does not multiply float64 matrices")
    weights = data(1010, 2, seed=2)
    wanted = truth(*left, *right) @ weights
    np.testing.assert_allclose(
        fused.narrow64(*left, *right, weights[:, 0].contiguous()).cpu(), wanted[:, 0].cpu(), atol=1e-11
    )
    np.testing.assert_allclose(fused.sums(*left, *right, weights).cpu(), wanted.cpu(), atol=1e-11)


@pytest.mark.parametrize("d", [3, 40, 100])
@pytest.mark.parametrize("n", [5, 400])
def test_sums_of_differences_keep_the_digits_of_samples_far_from_their_mean(d, n, monkeypatch):
    monkeypatch.setattr(fused, "_COLUMNS_AT_ONCE", 320)
    monkeypatch.setattr(fused, "_LEAST_SPAN", 64)
    X, Z = data(n, d) + 1e6, data(1010, d, seed=1) + 1e6
    factor = -0.7 / d
    values = torch.exp2(factor * (X[:, None, :] - Z[None, :, :]).square().sum(dim=2))
    for weights in (data(1010, 1, seed=2)[:, 0], data(1010, 3, seed=3)):
        found = fused.sums_of_differences(X, Z, factor, weights)
        np.testing.assert_allclose(found.cpu(), (values @ weights).cpu(), rtol=0, atol=1e-13 * 1010)


@pytest.mark.parametrize("outputs", [0, 1, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_square_sums_are_those_of_all_values(dtype, outputs, monkeypatch):
    """Blocks of rows and spans of columns that do not divide their number, in several calls."""
    monkeypatch.setattr(square_sums, "_BLOCK_ROWS", 192)
    monkeypatch.setattr(square_sums, "_SPAN", 64)
    monkeypatch.setattr(square_sums, "_STORED_BYTES", 128 * 8 * 3)
    x, norms = prepared(data(901, 5), Gaussian(0.1), dtype)
    weights = data(901, outputs or 1, seed=2).to(dtype)
    assert square_sums.halves(x, weights) == (dtype == torch.float32 or fused.adds_all(x))
    if not fused.adds_all(x):
        pytest.skip("this Triton does not multiply float64 matrices")
    wanted = truth(x, norms, x, norms) @ weights.double()
    found = square_sums.square_sums(x, norms, weights if outputs else weights[:, 0])
    assert found.dtype == torch.float64
    tolerance = 1e-4 if dtype == torch.float32 else 1e-11
    np.testing.assert_allclose(found.cpu(), (wanted if outputs else wanted[:, 0]).cpu(), atol=tolerance)


@pytest.mark.parametrize("level", [np.float64, EXACT])
def test_bounds_of_fused_sums_hold_in_higher_precision(level, monkeypatch):
    """Products with all of K, which use its symmetry, with a half of it, and sums of differences (the exact level)."""
    monkeypatch.setattr(square_sums, "_BLOCK_ROWS", 192)
    monkeypatch.setattr(square_sums, "_SPAN", 64)
    X, coefficients = data(700, 3), np.random.default_rng(0).normal(size=700)
    gram = ENGINE.gram(Gaussian(0.2), ENGINE.samples(X), 10**9, 1, 0.0)
    rows = floats(X).astype(np.longdouble)
    K = np.exp(-np.longdouble(0.2) * np.sum((rows[:, None, :] - rows) ** 2, axis=2))
    for used in (np.ones(700), np.arange(700) % 2):
        found = gram.product_bound(used * coefficients, level=level)
        exact = K @ (used * coefficients).astype(np.longdouble)
        assert (np.abs(found.value - exact) <= found.error).all()
        assert found.error.max() < 1e-9


def test_conjugate_gradients_on_fused_sums(monkeypatch):
    """float32 products, float64 ones of few rows and columns, and the proof, with the bound of fused sums."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 3))
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1], X[:, 2] ** 2, X.sum(axis=1)])
    monkeypatch.setattr(torch_gram, "_FLOAT64_ROWS", 100)
    for outputs in (1, 4):
        model = mercer.RLSRegressor(gamma=0.3, lam=0.1, solver="cg").fit(torch.tensor(X, device=HERE), Y[:, :outputs])
        assert model.converged_
        with mercer.config_context(device="cpu"):
            there = mercer.RLSRegressor(gamma=0.3, lam=0.1, solver="cholesky").fit(X, Y[:, :outputs])
        np.testing.assert_allclose(model.dual_coef_, there.dual_coef_, atol=1e-4 * np.abs(there.dual_coef_).max())
        assert model.certificate_.dual <= there.certificate_.primal


def test_sums_of_solvers_have_float32_weights():
    for d in (20, 100):
        left, right = (prepared(data(n, d, n), Gaussian(0.3 / d), torch.float32) for n in (70, 90))
        weights = data(90, 1, seed=2)[:, 0].float()
        wanted = truth(*left, *right) @ weights.double()
        np.testing.assert_allclose(fused.sums(*left, *right, weights).cpu(), wanted.cpu(), atol=1e-5)


def test_sums_of_predictions_may_cancel():
    """All values are 1, and float64 weights are added up as such."""
    for d, outputs in ((6, 0), (70, 0), (6, 5)):
        rows = prepared(torch.zeros((200, d), device=HERE), Gaussian(0.01), torch.float32)
        weights = 1e6 * data(200, outputs or 1)
        weights -= weights.mean(dim=0)
        weights = weights if outputs else weights[:, 0]
        assert float(fused.sums(*rows, *rows, weights).abs().max()) < 1e-7


@pytest.mark.parametrize("outputs", [1, 3, 70])
@pytest.mark.parametrize("d", [6, 80])
def test_predictions_by_our_own_kernels(d, outputs):
    X, V = data(140, d).float(), data(90, d, seed=1).float()
    C = data(90, outputs, seed=2).cpu().numpy()
    kernel = 2.5 * Gaussian(0.5 / d)
    evaluation = ENGINE.evaluation(kernel, ENGINE.samples(V), C, None)
    assert evaluation._formula.fuses
    wanted = kernel(X.double().cpu().numpy(), V.double().cpu().numpy()) @ C
    out = np.ones((140, outputs))
    evaluation.add(out, ENGINE.samples(X), 1)
    np.testing.assert_allclose(out - 1, wanted, atol=5e-5)


# --- rounds -----------------------------------------------------------------------------------------------------------


def there(values, dtype=torch.float64):
    return torch.tensor(np.asarray(values), dtype=dtype, device=HERE)


def box_problem(n, seed=0, d=0.0):
    """A C-SVC with bounds of several sizes."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 3)), np.where(rng.random(n) < 0.5, 1.0, -1.0)
    C = rng.uniform(0.5, 2.0, n)
    same = np.zeros(n, dtype=np.int32)
    problem = DualProblem(y, np.minimum(0, C * y), np.maximum(0, C * y), np.full(n, d), np.arange(n), same, np.zeros(1))
    return problem, Gaussian(0.5)(X)


def stored_rounds(problem, K):
    fixed = (problem.p, problem.lower, problem.upper, problem.d)
    return DeviceRounds(StoredBlocks(there(K, torch.float32)), fixed, None, there([0.0]), stay_on_device=True)


def run(rounds, beta, u, tol, deadline=np.inf, size=16):
    """Rounds with blocks of a size that stays: the steps, and the violation before the last round."""
    rounds.start(beta, u)
    return run_device_rounds(rounds, BlockSize(size, size), tol, 10**6, deadline)


def dual(problem, K, beta):
    return problem.p @ beta - 0.5 * beta @ (K[np.ix_(problem.row, problem.row)] @ beta) - 0.5 * problem.d @ beta**2


@pytest.mark.parametrize("twins", [False, True])
def test_a_block_has_both_ends_and_nobody_twice(twins):
    n, rng = 300, np.random.default_rng(3)
    p, beta, u = rng.normal(size=n), rng.uniform(-1, 1, n), rng.normal(size=n // 2 if twins else n)
    beta[rng.random(n) < 0.4], beta[rng.random(n) < 0.3] = -1.0, 1.0
    row = np.arange(n) % (n // 2) if twins else np.arange(n)
    fixed = [there(np.append(values, 0.0)) for values in (p, -np.ones(n), np.ones(n), np.full(n, 0.1))]
    selector = BlockSelector(*fixed, there(np.append(row, 0), torch.int64) if twins else None)
    selector.resize(32)
    kept = rng.permutation(n)[:12]
    selector._last_block[:12] = there(kept, torch.int32)
    selector._is_kept[there(kept, torch.int64)] = 1
    rows = selector.choose(there(np.append(beta, 0.0)), there(u)).cpu().numpy()
    J = selector._block.cpu().numpy()
    h = p - u[row] - 0.1 * beta
    top, low = h[beta < 1].max(), -h[beta > -1].min()
    np.testing.assert_array_equal(selector.status[:2].cpu(), [top, low])
    real = J[n > J]
    assert len(np.unique(real)) == len(real)
    np.testing.assert_array_equal(J[16:28], kept)
    assert (J[28:] == n).all()
    np.testing.assert_array_equal(rows[n > J], row[real])
    up, down = J[:8], J[8:16]
    for g in range(8):  # the worst of a part of all variables that is not kept, if a step could choose it
        part = np.setdiff1d(np.arange(38 * g, min(n, 38 * (g + 1))), kept)
        grow, fall = part[beta[part] < 1], part[beta[part] > -1]
        first, last = grow[np.argmax(h[grow])], fall[np.argmin(h[fall])]
        assert up[g] == (first if h[first] > -low else n)
        assert down[g] == (last if h[last] < top and last != up[g] else n)


@pytest.mark.parametrize("twins", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.1])
def test_the_device_counts_the_variables_that_a_host_would_keep(twins, share):
    n, rng = 300, np.random.default_rng(5)
    p, beta, u = rng.normal(size=n), rng.uniform(-1, 1, n), rng.normal(size=n // 2 if twins else n)
    beta[:150], beta[150:280] = -1.0, 1.0
    p[:150], p[150:280] = p[:150] - 2, p[150:280] + 2
    row = np.arange(n) % (n // 2) if twins else np.arange(n)
    fixed = [there(np.append(values, 0.0)) for values in (p, -np.ones(n), np.ones(n), np.full(n, 0.1))]
    selector = BlockSelector(*fixed, there(np.append(row, 0), torch.int64) if twins else None)
    selector.resize(32)
    h, up, low = p - u[row] - 0.1 * beta, beta < 1, beta > -1
    top, bottom = h[up].max(), h[low].min()
    margin = share * (top - bottom)
    stay = (up & low) | (up & (h >= bottom - margin)) | (low & (h <= top + margin))
    assert 20 < stay.sum() < n
    assert selector.count_survivors(there(np.append(beta, 0.0)), there(u), share) == stay.sum()


@pytest.mark.parametrize("d", [0.0, 0.3])
def test_rounds_reach_the_optimum_of_a_stored_matrix(d, monkeypatch):
    reads, looks, take = [], [], DeviceRounds.run_rounds
    monkeypatch.setattr(device_rounds, "floats", lambda values: reads.append(len(values)) or floats(values))
    monkeypatch.setattr(DeviceRounds, "run_rounds", lambda *asked: looks.append(asked[1]) or take(*asked))
    problem, K = box_problem(24, d=d)
    K = K.astype(np.float32).astype(np.float64)
    rounds = stored_rounds(problem, K)
    beta, u = np.zeros(24), np.zeros(24)
    taken, violation = run(rounds, beta, u, 1e-2)
    assert taken > 0
    assert violation <= 1e-2
    assert not rounds.finished
    assert reads == [5] * len(looks) + [25, 24]  # five numbers for up to eight rounds; β and u at the end
    np.testing.assert_allclose(u, K @ beta, atol=1e-12)
    assert abs(beta.sum()) < 1e-12
    assert (beta >= problem.lower).all()
    assert (beta <= problem.upper).all()
    h = problem.p - K @ beta - problem.d * beta
    assert h[beta < problem.upper].max() - h[beta > problem.lower].min() < 2e-2
    assert rounds._total_gain == pytest.approx(dual(problem, K, beta), rel=1e-3)


def test_numbers_that_are_lost_end_rounds():
    problem, K = box_problem(24)
    K[3, 5] = K[5, 3] = np.nan
    rounds = stored_rounds(problem, K)
    run(rounds, np.zeros(24), np.zeros(24), 1e-2)
    assert rounds.finished
    assert rounds.run_rounds(1, 16, 0.3, 5e-3, INNER_STEPS) is None


def test_the_loop_decides_how_large_blocks_are(monkeypatch):
    """Free variables crowd a block of 16, and it is doubled; a device whose blocks end there leaves larger ones."""
    problem, K = box_problem(40, seed=2)
    problem = replace(problem, lower=20 * problem.lower, upper=20 * problem.upper)  # so that most are free
    monkeypatch.setattr(device_rounds, "_LARGEST_BLOCK", 32)
    fixed, source = (problem.p, problem.lower, problem.upper, problem.d), StoredBlocks(there(K, torch.float32))
    for stays in (False, True):
        rounds, block = DeviceRounds(source, fixed, None, there([0.0]), stay_on_device=stays), BlockSize(16, 64)
        rounds.start(beta := np.zeros(40), u := np.zeros(40))
        _, violation = run_device_rounds(rounds, block, 0.1, 10**6)
        assert block.size == 64
        assert block.share < 0.3
        assert rounds._selector.size == 32
        assert rounds.finished != stays
        assert (violation <= 0.1) == stays
        np.testing.assert_allclose(u, K.astype(np.float32).astype(float) @ beta, atol=1e-9)


def test_a_variable_that_is_on_both_sides_is_chosen_once():
    n = 8  # one in each part
    fixed = [there(np.append(values, 0.0)) for values in (np.arange(8.0), -np.ones(n), np.ones(n), np.zeros(n))]
    selector = BlockSelector(*fixed, None)
    selector.resize(32)
    selector.choose(there(np.zeros(n + 1)), there(np.zeros(n)))
    np.testing.assert_array_equal(selector._block.cpu(), [n, *range(1, 8), 0, *[n] * 23])


def test_half_of_a_block_is_kept_and_all_of_it_in_a_larger_one():
    problem, K = box_problem(30)
    rounds = stored_rounds(problem, K)
    selector, source = rounds._selector, rounds._source
    selector.resize(16)
    beta, u = there(np.zeros(31)), there(np.zeros(30))
    for _ in range(2):
        rows = selector.choose(beta, u)
        before = beta.cpu().numpy().copy()
        change = selector.step(source.block(rows), beta, u, 0.5, 1e-2, INNER_STEPS)
        source.add(u, rows, change, selector.moved)
        last, b = selector._block.cpu().numpy().copy(), beta.cpu().numpy()
        places, count = (found.cpu().numpy() for found in selector.moved)
        np.testing.assert_array_equal(places[: count[0]], np.flatnonzero(b[last] != before[last]))
        np.testing.assert_allclose(u.cpu(), K @ b[:30], atol=1e-6)
        free = (b < np.append(problem.upper, 0.0)) & (b > np.append(problem.lower, 0.0))
        order = last[np.argsort(~free[last], kind="stable")]
        np.testing.assert_array_equal(selector._last_block.cpu(), order[:8])
        np.testing.assert_array_equal(
            np.flatnonzero(selector._is_kept[:30].cpu()), np.unique(order[:8][order[:8] < 30])
        )
        assert selector.status[4] == free[last].sum()
    selector.resize(32)
    selector.choose(beta, u)
    np.testing.assert_array_equal(selector._block.cpu().numpy()[16:], last)
    real = selector._block[selector._block < 30].cpu().numpy()
    assert len(np.unique(real)) == len(real)


@pytest.mark.parametrize("m", [1, 70])
def test_rows_of_a_stored_matrix_are_added_up_in_float64(m):
    K, rows, weights = data(130, 130).float(), there(np.arange(m) * 3 % 130, torch.int64), data(m, 1, seed=4)[:, 0]
    out = data(130, 1, seed=5)[:, 0]
    wanted = out + weights @ K[rows].double()
    add_rows(out, K, rows, weights)
    np.testing.assert_allclose(out.cpu(), wanted.cpu(), atol=1e-13)


@pytest.mark.parametrize("count", [0, 1, 65, 70])
def test_only_rows_that_moved_are_added_up(count):
    """What stands behind them is not read: it may be anything."""
    K, rows, weights = data(130, 130).float(), there(np.arange(70) * 3 % 130, torch.int64), data(70, 1, seed=4)[:, 0]
    moved = np.random.default_rng(count).permutation(70)
    some = there(moved[:count], torch.int64)
    places = there(np.append(moved[:count], np.full(70 - count, 10**6)), torch.int32), there([count], torch.int32)
    out = torch.zeros(130, dtype=torch.float64, device=HERE)
    add_rows(out, K, rows, weights, places)
    np.testing.assert_allclose(out.cpu(), (weights[some] @ K[rows[some]].double()).cpu(), atol=1e-13)
    for d in (5, 70):
        X = data(130, d, seed=d).float()
        x, norms = Formula.of(Gaussian(0.5 / d), X, fuses=True).rows(X, torch.float32).parts[0]
        parts = x, norms, x[:70], norms[:70], weights.float()
        wanted = fused.sums(x, norms, x[some], norms[some], weights.float()[some])
        np.testing.assert_allclose(fused.sums(*parts, places).cpu(), wanted.cpu(), atol=1e-5)


def test_steps_on_a_stored_matrix(monkeypatch):
    """On the device, and by the core where rounds there have not ended it."""
    monkeypatch.setattr(stored, "_FEWEST_ROWS", 10)
    problem, K = box_problem(20, seed=1)
    table = stored.TorchFloat32Matrix(there(K, torch.float32))
    box = BoxVariables(problem.p, problem.lower, problem.upper, problem.d, problem.group)
    values = table.values.astype(np.float64)
    for most in (1, 10**6):
        beta, u = np.zeros(20), np.zeros(20)
        taken, reason = table.steps(box, beta, u, 1e-2, most, 100.0)
        assert reason == ("max_steps" if most == 1 else "converged")
        assert taken >= 1
        np.testing.assert_allclose(u, values @ beta, atol=1e-12)
    h = problem.p - u
    assert h[beta < problem.upper].max() - h[beta > problem.lower].min() < 2e-2

    def astray(rounds, *_):
        rounds._host_arrays[0][[np.argmax(problem.p), np.argmin(problem.p)]] = 0.4, -0.4
        return 5, np.inf

    monkeypatch.setattr(stored, "run_device_rounds", astray)
    again, v = np.zeros(20), np.zeros(20)
    assert table.steps(box, again, v, 1e-2, 10**6, 100.0)[1] == "converged"
    np.testing.assert_array_equal(v, table.product(again))  # one sum, whatever happened on the way
    assert dual(problem, values, again) == pytest.approx(dual(problem, values, beta), rel=1e-2)
    c = np.where(np.arange(20) % 3 == 0, problem.p, 0.0)
    np.testing.assert_allclose(table.product(c), values @ c, atol=1e-12)
    assert table.largest == np.abs(values).max()


@pytest.mark.parametrize("machine", [mercer.SVC(gamma=0.5, tol=0.05), mercer.SVR(gamma=0.5, tol=0.05)])
def test_a_fit_takes_rounds_of_its_own(machine, monkeypatch):
    monkeypatch.setattr(torch_field, "_FEWEST_VARIABLES", 1)
    monkeypatch.setattr(torch_gram, "_FLOAT64_ROWS", 1)
    taken, take = [], DeviceRounds.run_rounds
    monkeypatch.setattr(DeviceRounds, "run_rounds", lambda *args: taken.append(take(*args)) or taken[-1])
    X = np.random.default_rng(0).normal(size=(14, 3)).astype(np.float32)
    y = (X[:, 0] > 0) * 1.0
    found = machine.fit(X, y).certificate_
    assert sum(found.steps for found in taken if found) > 0
    with mercer.config_context(device="cpu"):
        here = machine.fit(X, y).certificate_
    assert abs(found.dual - here.dual) <= found.gap + here.gap
    assert found.violation <= 0.05


@pytest.mark.parametrize("machine", [mercer.SVC(gamma=0.5, tol=0.01, C=0.3), mercer.SVR(gamma=0.5, tol=0.01)])
def test_rounds_go_on_with_fewer_variables(machine, monkeypatch):
    monkeypatch.setattr(torch_field, "_FEWEST_VARIABLES", 1)
    monkeypatch.setattr(torch_field, "_FEWEST_NUMBERS", 1)
    monkeypatch.setattr(torch_field, "_FEWEST_ROUNDS", 1)  # one round at a time
    monkeypatch.setattr(torch_field, "_VARIABLES_ALONE", 1)
    monkeypatch.setattr(torch_gram, "_FLOAT64_ROWS", 1)
    monkeypatch.setattr(certified, "is_one_block", lambda *_: False)
    active, take = [], torch_field.TorchField.run_rounds

    def run_rounds(self, *asked):
        active.append((self.shrunk, len(self.active), found := take(self, *asked)))
        return found

    monkeypatch.setattr(torch_field.TorchField, "run_rounds", run_rounds)
    X = np.random.default_rng(0).normal(size=(60, 2)).astype(np.float32)
    y = (X[:, 0] > 0) * 1.0
    found = machine.fit(X, y).certificate_
    assert any(shrunk and found and found.steps for shrunk, _, found in active), active
    with mercer.config_context(device="cpu"):
        here = machine.fit(X, y).certificate_
    assert abs(found.dual - here.dual) <= found.gap + here.gap
    assert found.violation <= 0.01


@pytest.mark.parametrize("counts", [1, 2])
def test_rounds_stay_on_the_device_while_nothing_can_be_dropped(counts, monkeypatch):
    monkeypatch.setattr(torch_field, "_FEWEST_VARIABLES", 1)
    monkeypatch.setattr(torch_field, "_FEWEST_NUMBERS", 1)
    monkeypatch.setattr(torch_field, "_FEWEST_ROUNDS", 1)
    monkeypatch.setattr(torch_field, "_VARIABLES_ALONE", 1)
    monkeypatch.setattr(torch_field, "_MOST_COUNTS", counts)
    monkeypatch.setattr(torch_gram, "_FLOAT64_ROWS", 1)
    monkeypatch.setattr(certified, "is_one_block", lambda *_: False)
    monkeypatch.setattr(DeviceRounds, "count_survivors", lambda self, _: self._selector._n)
    runs, copies, take, copy = [], [], DeviceRounds.run_rounds, DeviceRounds.copy_to_host
    monkeypatch.setattr(DeviceRounds, "run_rounds", lambda *asked: runs.append(asked[1]) or take(*asked))
    monkeypatch.setattr(DeviceRounds, "copy_to_host", lambda self: copies.append(len(runs)) or copy(self))
    X = np.random.default_rng(0).normal(size=(60, 2)).astype(np.float32)
    certificate = mercer.SVC(gamma=0.5, tol=0.01).fit(X, (X[:, 0] > 0) * 1.0).certificate_
    assert certificate.violation <= 0.01
    assert len(runs) > counts
    assert copies[0] == counts


@pytest.mark.parametrize("rounds", [1, 15])
def test_the_same_fit_has_the_same_bits_however_fast_the_clock_runs(rounds, monkeypatch):
    """On a busy host a round takes longer: neither what is dropped nor where the fit ends may depend on it."""
    monkeypatch.setattr(torch_field, "_FEWEST_VARIABLES", 1)
    monkeypatch.setattr(torch_field, "_FEWEST_NUMBERS", 1)
    monkeypatch.setattr(torch_field, "_VARIABLES_ALONE", 1)
    monkeypatch.setattr(torch_field, "_FEWEST_ROUNDS", rounds)
    monkeypatch.setattr(torch_gram, "_FLOAT64_ROWS", 1)
    monkeypatch.setattr(certified, "is_one_block", lambda *_: False)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2)).astype(np.float32)
    y = (X[:, 0] + 0.3 * rng.normal(size=120) > 0) * 1.0
    found = set()
    for seconds in (0.0, 0.05, 1e6):  # between two looks at the clock
        ticks = itertools.count()
        monkeypatch.setattr(time, "monotonic", lambda: seconds * next(ticks))  # noqa: B023  # called before the next
        model = mercer.SVC(gamma=0.5, tol=1e-3).fit(X, y)
        found.add((str(model.certificate_), float(np.max(model.n_iter_)), model.dual_coef_.tobytes()))
    assert len(found) == 1


def test_a_deadline_ends_the_rounds(monkeypatch):
    problem, K = box_problem(24)
    taken = []
    for deadline in (5.0, np.inf):
        ticks = itertools.count()
        monkeypatch.setattr(time, "monotonic", lambda: 3.0 * next(ticks))  # noqa: B023  # called before the next
        steps, _ = run(stored_rounds(problem, K), np.zeros(24), np.zeros(24), 1e-9, deadline, size=32)
        taken.append((steps, next(ticks)))
    assert taken[0][0] < taken[1][0]
    assert [looks for _, looks in taken] == [3, 0]  # 0, 3 and 6 s; and never without a deadline


def test_a_build_for_rocm_does_without_them(monkeypatch):
    """Triton's backend for AMD takes no TF32: torch's own functions compute the values there."""
    X = data(60, 3).float()
    y = (X[:, 0] > 0).cpu().numpy() * 1.0
    by_kernels = mercer.SVC(gamma=0.5).fit(X, y).certificate_
    assert fused.available(X)
    monkeypatch.setattr(torch.version, "hip", "6.4.0")
    assert not fused.available(X)
    monkeypatch.setattr(fused, "triton", None)  # whoever asks it all the same fails
    monkeypatch.setattr(fused, "tl", None)
    found = mercer.SVC(gamma=0.5).fit(X, y).certificate_
    assert abs(found.dual - by_kernels.dual) <= found.gap + by_kernels.gap
    assert found.proves == "optimality"
