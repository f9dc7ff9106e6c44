"""torch's devices as an engine, on torch's CPU device; tests with the marker `cuda` need a GPU."""

import pytest

import mercer

torch = pytest.importorskip("torch", reason="torch is not installed: python -m pip install 'mercer[torch]'")
pytestmark = pytest.mark.filterwarnings("ignore")

DEVICES = ["torch-cpu", pytest.param("cuda", marks=pytest.mark.cuda)]


@pytest.fixture(params=DEVICES)
def device(request):
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("there is no GPU here")
    with mercer.config_context(device=request.param):
        yield request.param


def tensor(X, device):
    return torch.as_tensor(X, device="cpu" if device == "torch-cpu" else device)
