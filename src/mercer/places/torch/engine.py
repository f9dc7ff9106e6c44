"""The engine for torch devices: the arrays that it accepts, and the Grams, rows and evaluations it builds from them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from mercer.kernels import Kernel
from mercer.places import Cross, Evaluation, Gram, Rows
from mercer.places.torch.cross import TorchCross
from mercer.places.torch.evaluation import TorchEvaluation
from mercer.places.torch.gram import TorchGram
from mercer.places.torch.memory import is_out_of_memory
from mercer.places.torch.numbers import refuse_emulation, to_host, torch
from mercer.places.torch.rows import TorchRows
from mercer.places.torch.samples import TorchSamples, samples_on_device
from mercer.runtime.config import get_config
from mercer.samples.arrays import Floats, Indices
from mercer.samples.chunks import Chunk
from mercer.samples.engine import EngineSamples, is_on_a_device

# Device name that selects torch's own CPU device; "cpu" selects the core on the host.
ON_CPU = "torch-cpu"
_NO_FLOAT64 = "mercer proves its results in float64, which torch's device 'mps' does not have; use 'cpu'"


class TorchEngine:
    """The engine for tensors on a device, and for host data that `config_context` sends to one."""

    devices = ("cuda", "xpu", "mps", ON_CPU)

    def accepts(self, X: Any) -> bool:
        """Return whether X is an array on a device or, if torch's CPU device is selected, any array but NumPy's."""
        if type(X).__module__ == "numpy" or not hasattr(type(X), "__dlpack_device__"):
            return False
        torch_cpu: bool = get_config()["device"] == ON_CPU
        if isinstance(X, torch.Tensor):
            return torch_cpu or X.device.type != "cpu"
        return torch_cpu or is_on_a_device(X)

    def samples(self, X: Any) -> EngineSamples:
        """Return an array, or samples of another engine, as samples on its device or the configured one."""
        if isinstance(X, TorchSamples):
            return X
        X = _as_tensor(X) if self.accepts(X) else X
        device = X.device if isinstance(X, torch.Tensor) and X.device.type != "cpu" else self._configured()
        if device.type == "mps":
            raise ValueError(_NO_FLOAT64)
        refuse_emulation(device)
        return samples_on_device(self, X.host() if isinstance(X, EngineSamples) else X, all_visible(device))

    def _configured(self) -> Any:
        """Return the device that the user configured, CUDA or the CPU by default; raise if torch cannot use it."""
        name = get_config()["device"]
        name = name if name.partition(":")[0] in self.devices else "cuda" if torch.cuda.is_available() else ON_CPU
        if name.partition(":")[0] == "mps":
            raise ValueError(_NO_FLOAT64)
        device = torch.device("cpu" if name == ON_CPU else name)
        try:
            torch.empty(0, device=device)
        except (RuntimeError, AssertionError) as error:  # not compiled in, no driver, or no device with this number
            if is_out_of_memory(error):
                raise
            raise ValueError(f"device={name!r}: torch finds no such device ({error})") from error
        return device

    def vector(self, values: Any) -> Any:
        return to_host(_as_tensor(values))

    def given(self, values: Any, like: Any) -> Any:
        """Return an array of the host in the array type of `like`, on its device."""
        tensor = torch.as_tensor(np.require(values, requirements="W"), device=_as_tensor(like).device)
        if isinstance(like, torch.Tensor):
            return tensor
        library: Any = sys.modules.get(type(like).__module__.partition(".")[0])
        library = like.__array_namespace__() if hasattr(like, "__array_namespace__") else library
        return library.from_dlpack(tensor) if hasattr(library, "from_dlpack") else tensor

    def gram(self, kernel: Kernel, X: EngineSamples, budget: int, n_threads: int, constant: float) -> Gram:
        assert isinstance(X, TorchSamples)
        return TorchGram.of(kernel, X, budget, n_threads, constant)

    def rows(self, X: EngineSamples, n_threads: int, selected: Indices | None, centre: Floats | None) -> Rows:
        assert isinstance(X, TorchSamples)
        return TorchRows(X if selected is None else X.take(selected), n_threads, centre)

    def cross(
        self,
        kernel: Kernel,
        landmarks: Any,
        chunks: Callable[[], Iterable[Chunk]],
        budget: int,
        n_threads: int,
        K_MM: Floats | None,
    ) -> Cross:
        return TorchCross(kernel, landmarks, chunks, budget, n_threads, K_MM)

    def evaluation(
        self, kernel: Kernel, vectors: EngineSamples | None, coefficients: Any, columns: Indices | None
    ) -> Evaluation:
        assert vectors is None or isinstance(vectors, TorchSamples)
        return TorchEvaluation(kernel, vectors, coefficients, columns)


def all_visible(device: Any) -> tuple[Any, ...]:
    """Return all visible GPUs for a CUDA device without a number, and otherwise the device itself."""
    if device.type != "cuda" or device.index is not None or torch.cuda.device_count() < 2:
        return (device,)
    first = torch.cuda.current_device()
    others = (k for k in range(torch.cuda.device_count()) if k != first)
    return tuple(torch.device("cuda", k) for k in (first, *others))


def _as_tensor(X: Any) -> Any:
    """Return an array that supports DLPack as a tensor that shares its memory."""
    return X if isinstance(X, torch.Tensor) else torch.from_dlpack(X)
