"""Faults on a device: no memory, values that are no numbers, data elsewhere, other threads; then the next fit works."""

import os
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist

import mercer
from mercer.kernels import Gaussian, Laplacian

torch = pytest.importorskip("torch", reason="torch is not installed: python -m pip install 'mercer[torch]'")
from mercer.places.torch import ENGINE  # noqa: E402  # after the skip without torch
from mercer.places.torch import engine as torch_engine  # noqa: E402  # after the skip without torch
from mercer.places.torch import formula as torch_formula  # noqa: E402  # after the skip without torch
from mercer.places.torch import gram as torch_gram  # noqa: E402  # after the skip without torch
from mercer.places.torch import memory as torch_memory  # noqa: E402  # after the skip without torch
from places.engines.allocations import FAILURE, Allocations  # noqa: E402  # after the skip without torch

pytestmark = pytest.mark.filterwarnings("ignore")
rng = np.random.default_rng(0)
X = rng.normal(size=(80, 4))
y = (X[:, 0] + 0.4 * rng.normal(size=80) > 0).astype(int)
MACHINES = {
    "SVC": lambda: mercer.SVC(tol=1e-8),
    "SVC, CSR": lambda: mercer.SVC(tol=1e-8),
    "RLSRegressor": lambda: mercer.RLSRegressor(),
    "LinearSVC": lambda: mercer.LinearSVC(tol=1e-8),
    "NystromRLS": lambda: mercer.NystromRLS(n_landmarks=20, random_state=0),
}


def answers(name):
    given = sp.csr_array(X) if "CSR" in name else X
    model = MACHINES[name]().fit(given, y)
    return np.append(getattr(model, "decision_function", model.predict)(given), model.certificate_.gap < 1e-3)


# --- no memory ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MACHINES)
def test_an_allocation_that_fails_ends_in_an_error_or_the_right_answer(name, device):
    """Every tenth allocation of a fit and its predictions, one fit for each."""
    expected = answers(name)
    with Allocations() as seen:
        answers(name)
    assert seen.count > 40
    errors, step = 0, max(10, seen.count // 250 * 10)
    for number in range(10, seen.count + 1, step):
        try:
            with Allocations(fail=[number]):
                found = answers(name)
        except (MemoryError, FAILURE):
            errors += 1
        else:
            np.testing.assert_allclose(found, expected, atol=1e-5)
    assert errors < seen.count / step  # tiles are tried again
    np.testing.assert_array_equal(answers(name), expected)


def test_tiles_become_smaller_until_there_is_room(device, monkeypatch):
    # Sums of a Gaussian have a GPU kernel of their own, which stores no tile.
    kernel, samples, c = Laplacian(0.3), ENGINE.samples(X), rng.normal(size=80)
    gram = ENGINE.gram(kernel, samples, 10**9, 1, 0.0)
    expected, steps = gram.product(c), []
    made, block = [], torch_gram.TorchGram.device_block

    def with_little_room(self, left, right, *rest):
        steps.append(left.n)
        if left.n > 6:
            raise FAILURE("no room")
        made.append(left.n)
        return block(self, left, right, *rest)

    monkeypatch.setattr(torch_gram.TorchGram, "device_block", with_little_room)
    np.testing.assert_allclose(gram.product(c), expected, atol=1e-13)
    assert steps[:3] == [80, 20, 5]
    assert sum(made) == 80


def test_what_has_no_room_at_all_is_named_with_the_numbers(device, monkeypatch):
    def refuse(*arguments, **options):
        raise FAILURE("no room")

    gram = ENGINE.gram(Laplacian(0.3), ENGINE.samples(X), 10**9, 1, 0.0)
    monkeypatch.setattr(torch.linalg, "cholesky_ex", refuse)
    with pytest.raises(MemoryError, match=r"K of 80 samples and its factor needs 0\.0001 GB on .*; use fewer samples"):
        gram.factor(np.ones(80))
    monkeypatch.setattr(torch_gram.TorchGram, "device_block", refuse)
    with pytest.raises(FAILURE, match="no room"):
        gram.product(np.ones(80))
    assert torch_memory.is_out_of_memory(RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried 8 bytes"))
    assert not torch_memory.is_out_of_memory(RuntimeError("something else"))


def test_copies_of_samples_that_are_larger_than_the_budget_are_not_kept(device):
    many, c = ENGINE.samples(rng.normal(size=(3000, 100))), rng.normal(size=3000)
    roomy, narrow = (ENGINE.gram(Gaussian(0.01), many, budget, 1, 0.0) for budget in (10**9, 10**6))
    for dtype in (np.float64, np.float32):
        with Allocations() as seen:
            found = narrow.product(c, dtype=dtype)
        assert seen.largest < many.nbytes
        np.testing.assert_allclose(found, roomy.product(c, dtype=dtype), atol=1e-9 if dtype is np.float64 else 1e-3)
        np.testing.assert_allclose(narrow.block(np.arange(9), np.arange(5, 90)), roomy.full()[:9, 5:90], atol=1e-12)


def test_cache_size_is_the_budget_on_the_device(device):
    """Nothing larger than a tile is allocated, and the answer is the same."""
    many = rng.normal(size=(3000, 40))
    labels = (many[:, 0] > 0).astype(int)
    expected = mercer.SVC(tol=1e-6).fit(many, labels)
    with Allocations() as roomy:
        mercer.SVC(tol=1e-3).fit(many, labels)
    with Allocations() as narrow:
        model = mercer.SVC(tol=1e-3, cache_size=1).fit(many, labels)
    assert narrow.largest <= min(2 << 20, roomy.largest)
    assert model.certificate_.gap < 1e-3 * model.certificate_.primal * 10
    np.testing.assert_allclose(model.certificate_.dual, expected.certificate_.dual, rtol=1e-3)


# --- numbers that are none ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MACHINES)
def test_values_that_are_no_numbers_are_an_error(name, device, monkeypatch):
    if name == "LinearSVC":
        pytest.skip("a linear machine has no kernel values")
    expected, block = answers(name), torch_formula.Formula.block

    def broken(self, *rows, **options):
        values = block(self, *rows, **options)
        values[0, 0] = float("nan")
        return values

    with monkeypatch.context() as patch:
        patch.setattr(torch_formula.Formula, "block", broken)
        try:
            found = MACHINES[name]().fit(sp.csr_array(X) if "CSR" in name else X, y)
        except (FloatingPointError, ValueError, ArithmeticError):
            pass
        else:  # nothing is claimed
            assert not found.converged_
            assert not found.certificate_.gap < np.inf
    np.testing.assert_array_equal(answers(name), expected)


# --- data on another device, a busy stream --------------------------------------------------------------------------


def test_labels_and_weights_may_be_anywhere(device):
    place = "cpu" if device == "torch-cpu" else device
    there = [torch.tensor(part, device=place) for part in (X, y, np.ones(80))]
    here = [torch.tensor(part) for part in (X, y, np.ones(80))]
    for labels, weight in ((there[1], there[2]), (here[1], here[2]), (y, None)):
        model = mercer.SVC().fit(there[0], labels, sample_weight=weight)
        assert isinstance(model.predict(there[0]), torch.Tensor)
        assert model.predict(X).shape == (80,)
    both = mercer.mmd_test(there[0], X[:30] + 1.0, random_state=0)
    assert both.p_value < 0.05


@pytest.mark.cuda
def test_samples_on_two_gpus_are_brought_together():
    if torch.cuda.device_count() < 2:
        pytest.skip("there are no two GPUs here")
    first, second = (torch.tensor(X, device=f"cuda:{k}") for k in (0, 1))
    model = mercer.SVC().fit(first, y)
    np.testing.assert_array_equal(model.predict(first).cpu(), model.predict(second).cpu())
    assert model.predict(second).device == second.device


@pytest.mark.cuda
def test_every_visible_gpu_shares_the_work():
    if torch.cuda.device_count() < 2:
        pytest.skip("there are no two GPUs here")
    with mercer.config_context(device="cuda"):
        assert len(ENGINE.samples(X).devices) == torch.cuda.device_count()
    with mercer.config_context(device="cuda:1"):
        assert ENGINE.samples(X).devices == (torch.device("cuda:1"),)


@pytest.mark.parametrize("name", ["SVC", "SVC, CSR", "precomputed"])
def test_rows_are_shared_among_several_devices(name, device, monkeypatch):
    """Two that are the same device stand for two."""
    given = X @ X.T if name == "precomputed" else sp.csr_array(X) if "CSR" in name else X

    def run():
        model = mercer.SVC(kernel="precomputed" if name == "precomputed" else "rbf", tol=1e-8).fit(given, y)
        return np.append(model.decision_function(given), model.certificate_.primal)

    expected, seen = run(), []
    monkeypatch.setattr(torch_engine, "all_visible", lambda device: (device, device))
    product = torch_gram.TorchGram.device_product
    monkeypatch.setattr(
        torch_gram.TorchGram,
        "device_product",
        lambda self, C, J, rows, *rest: seen.append((id(self._source), len(rows))) or product(self, C, J, rows, *rest),
    )
    np.testing.assert_allclose(run(), expected, atol=1e-5)
    if name != "precomputed":  # which is proven here
        assert len({source for source, _ in seen}) == 2
        assert {rows for _, rows in seen} == {40}


def test_views_and_exact_products_are_shared_among_several_devices(device, monkeypatch):
    monkeypatch.setattr(torch_engine, "all_visible", lambda device: (device, device))
    rows = np.arange(len(X))[::-3]
    gram = ENGINE.gram(Gaussian(gamma=0.3), ENGINE.samples(X), 10**9, 1, 0.0)
    K = np.exp(-0.3 * cdist(X[rows], X[rows], "sqeuclidean"))
    C = np.random.default_rng(0).normal(size=(len(rows), 2))
    C[1] = 0.0
    view = gram.view(rows)
    product = view.product_bound(C, level=view.levels[-1])
    np.testing.assert_allclose(product.value, K @ C, rtol=0, atol=1e-13)
    assert (np.abs(product.value - K @ C) <= product.error + 1e-14).all()
    np.testing.assert_allclose(view.products(C), K @ C, rtol=0, atol=1e-12)
    exact = gram._source.exact
    assert [source.formula.differences for source in (exact, *exact.on_other_devices)] == [True, True]


@pytest.mark.cuda
def test_a_stream_that_a_user_left_busy():
    """Samples that are still being computed on the current stream, which may be one of the user's own."""
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU here")
    expected = mercer.SVC(tol=1e-8).fit(torch.tensor(X, device="cuda"), y).decision_function(X)
    busy = torch.randn(4000, 4000, device="cuda")
    for stream in (torch.cuda.current_stream(), torch.cuda.Stream()):
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(40):
                busy = torch.tanh(busy @ busy)
            late = torch.tensor(X, device="cuda") + 0.0 * busy[0, 0]
            found = mercer.SVC(tol=1e-8).fit(late, y).decision_function(X)
        np.testing.assert_allclose(found, expected, atol=1e-6)


# --- several threads ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["SVC", "RLSRegressor", "LinearSVC"])
def test_estimators_from_several_threads_at_once(name, device):
    """Each in a context of its own, as a new thread starts without one."""
    expected, begin = answers(name), threading.Barrier(4)

    def run(_):
        begin.wait()
        with mercer.config_context(device=device):
            return [answers(name) for _ in range(3)]

    with ThreadPoolExecutor(4) as pool:
        for found in (each for several in pool.map(run, range(4)) for each in several):
            np.testing.assert_array_equal(found, expected)


# --- torch's own settings -------------------------------------------------------------------------------------------

SETTINGS = """
    import numpy as np, torch, mercer
    from mercer.places.torch import gram
    gram._FLOAT64_ROWS = 1
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 40)).astype(np.float32)
    y, t = (X[:, 0] > 0).astype(int), X[:, 1]

    def numbers():
        with mercer.config_context(device=DEVICE):
            models = [mercer.SVC(gamma=0.01).fit(X, y), mercer.RLSRegressor().fit(X, t), mercer.LinearSVC().fit(X, y)]
            return np.array([[model.certificate_.gap, *model.predict(X)] for model in models])

    before = numbers()
    for context in (
        torch.inference_mode(),
        torch.device("meta"),
        torch.autocast(DEVICE.removeprefix("torch-"), dtype=torch.bfloat16),
    ):
        with context:
            np.testing.assert_allclose(numbers(), before, atol=1e-3)
    for dtype in (torch.float64, torch.float16):
        torch.set_default_dtype(dtype)
        np.testing.assert_allclose(numbers(), before, atol=1e-3)
"""


def test_settings_of_torch_change_no_number(device):
    """In a process of its own, which keeps them."""
    child = textwrap.dedent(SETTINGS).replace("DEVICE", repr(device))
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", child], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


def test_emulated_float64_is_refused(monkeypatch):
    from mercer.places.torch.numbers import refuse_emulation

    monkeypatch.setitem(os.environ, "CUBLAS_EMULATE_DOUBLE_PRECISION", "1")
    refuse_emulation(torch.device("cpu"))
    with pytest.raises(ValueError, match="CUBLAS_EMULATE_DOUBLE_PRECISION is set"):
        refuse_emulation(torch.device("cuda:0"))
    monkeypatch.setitem(os.environ, "CUBLAS_EMULATE_DOUBLE_PRECISION", "0")
    refuse_emulation(torch.device("cuda:0"))
