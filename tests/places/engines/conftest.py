"""The devices that tests of torch run on."""

import pytest

import mercer


@pytest.fixture(params=["torch-cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def device(request):
    """The device that data of this machine go to during a test."""
    torch = pytest.importorskip("torch")
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("there is no GPU here")
    with mercer.config_context(device=request.param):
        yield request.param
