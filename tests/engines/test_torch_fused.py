"""Kernels of our own in Triton, on a GPU or in Triton's interpreter, against float64 arithmetic of torch.

TRITON_INTERPRET=1 python -m pytest tests/engines/test_torch_fused.py     needs triton, and numpy < 2.4
"""

import importlib.util
import os

import numpy as np
import pytest

import mercer
from mercer.kernels import Gaussian

torch = pytest.importorskip("torch", reason="torch is not installed: python -m pip install 'mercer[torch]'")
from mercer.engines.torch import ENGINE, fused  # noqa: E402  # after the skip without torch
from mercer.engines.torch.formula import Formula  # noqa: E402  # after the skip without torch

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
