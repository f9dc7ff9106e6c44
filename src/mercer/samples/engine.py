"""Engines: samples are in host memory, or belong to an engine, which computes on them where they are stored.

Samples in host memory are an array, a CSR matrix or a list of strings. Those of an engine are `EngineSamples`, whose
entries the rest of the library does not read: it calls their methods. The functions that all folders apply to samples
(`take`, `n_samples`, `stack`, `moments`, a kernel's call and `diag`, `gram_for`, …) accept both.

The engine is chosen by the type of X, and for samples in host memory by the configured device.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from mercer.runtime.config import get_config

__all__ = ["Engine", "EngineSamples", "register"]

if TYPE_CHECKING:
    from mercer.kernels import Kernel
    from mercer.places import Cross, Evaluation, Gram, Rows
    from mercer.samples.arrays import Flags, Floats, Indices
    from mercer.samples.chunks import Chunk


class EngineSamples:
    """Samples that an engine stores. Results, one or a few numbers per sample, are returned as arrays in host memory.

    A sample is a row of a matrix, a string if `shape` has one dimension, or a row of a kernel matrix.
    """

    engine: Engine
    shape: tuple[int, ...]
    dtype: np.dtype[Any]  # float32 or float64; object for strings
    sparse: bool = False  # True if zeros are not stored
    names: tuple[str, ...] | None = None  # column names, if there are any

    def __init_subclass__(cls) -> None:
        """Raise an error if a subclass lacks an abstract method; an ABC would slow down every `isinstance`."""
        missing = [name for name in dir(cls) if getattr(getattr(cls, name), "__isabstractmethod__", False)]
        if missing:
            raise TypeError(f"{cls.__name__} must define {', '.join(missing)}")

    @property
    def n_entries(self) -> int:
        """Number of stored entries."""
        return int(np.prod(self.shape))

    @property
    def nbytes(self) -> int:
        """Approximate size in bytes."""
        return self.n_entries * self.dtype.itemsize

    @property
    def most_solvers(self) -> int | None:
        """Maximum number of threads that should solve on a stored K at the same time; None for no limit."""
        return None

    @property
    def report(self) -> dict[str, dict[str, float]] | None:
        """Statistics of the requests to the workers so far, by kind of request; None if there are no workers."""
        return None

    # --- subsets, unions and copies of the samples -------------------------------------------------------------------

    @abstractmethod
    def take(self, rows: Indices) -> EngineSamples:
        """Return the samples at these indices, in this order."""

    @abstractmethod
    def joined(self, others: EngineSamples) -> EngineSamples:
        """Return these samples followed by the others."""

    @abstractmethod
    def host(self, rows: Indices | None = None) -> Any:
        """Return a copy of all samples, or of the given rows, in host memory."""

    # --- properties of the samples ------------------------------------------------------------------------------------

    @abstractmethod
    def first_not_finite(self) -> tuple[int, int, float, int] | None:
        """Return row, column and value of the first entry that is not finite, and how many there are; None if none."""

    @abstractmethod
    def hash(self) -> NDArray[np.uint64]:
        """Return a hash of each sample, equal for equal samples; −0.0 counts as 0.0."""

    @abstractmethod
    def equal(self, left: Indices, right: Indices) -> Flags:
        """Return for each k whether sample left[k] equals sample right[k]."""

    @abstractmethod
    def moments(self) -> tuple[Floats, Floats]:
        """Return the mean and the standard deviation of every column."""

    @abstractmethod
    def sums_about(self, centre: float, weight: Floats) -> tuple[float, float]:
        """Return Σ_i w_i Σ_j (x_ij − centre) and Σ_i w_i Σ_j (x_ij − centre)² over all entries, including zeros."""

    @abstractmethod
    def extremes(self) -> tuple[float, float]:
        """Return the smallest and the largest entry."""

    @abstractmethod
    def squared_lengths(self) -> Floats:
        """Return the squared norms ‖x_i‖² of all samples."""

    # --- kernel values ----------------------------------------------------------------------------------------------

    @abstractmethod
    def values(self, kernel: Kernel, others: EngineSamples | None = None) -> Floats:
        """Return the matrix k(x_i, z_j); without others the matrix k(x_i, x_j), which is exactly symmetric."""

    @abstractmethod
    def diagonal(self, kernel: Kernel) -> Floats:
        """Return k(x_i, x_i) for every sample."""

    # --- if the samples are a kernel matrix ---------------------------------------------------------------------------

    @abstractmethod
    def entries(self, rows: Indices, columns: Indices) -> Floats:
        """Return the entries K[rows[k], columns[k]]."""

    @abstractmethod
    def columns(self, indices: Indices) -> EngineSamples:
        """Return the columns K[:, indices]."""

    @abstractmethod
    def asymmetry(self) -> float:
        """Return the largest |K_ij − K_ji|."""

    # --- no implicit conversion to NumPy ------------------------------------------------------------------------------

    __array_ufunc__ = None

    def __array__(self, *options: Any, **more: Any) -> NDArray[Any]:
        raise TypeError(
            f"samples of the engine {type(self.engine).__name__} are not copied to the host implicitly; use host()"
        )


class Engine(Protocol):
    """Interface of a backend that computes kernel values. docs/add_an_engine.md shows how to add one."""

    @property
    def devices(self) -> tuple[str, ...]:
        """Device names of the engine, such as "cuda"; users select one of several devices by "cuda:1"."""

    def accepts(self, X: Any) -> bool:
        """Return whether X is of the engine's array type."""

    def samples(self, X: Any) -> EngineSamples:
        """Return samples of the engine's array type, or in host memory, as samples of the engine."""

    def vector(self, values: Any) -> Any:
        """Return targets or weights of the engine's array type as an array in host memory."""

    def given(self, values: NDArray[Any], like: Any) -> Any:
        """Return an array in host memory as the engine's array type, on the device of `like`."""

    def gram(self, kernel: Kernel, X: EngineSamples, budget: int, n_threads: int, constant: float) -> Gram:
        """Return the Gram matrix of the samples; see `mercer.places.gram_for` for the parameters."""

    def rows(self, X: EngineSamples, n_threads: int, selected: Indices | None, centre: Floats | None) -> Rows:
        """Return the samples, or a subset of sparse samples, minus a centre, as the rows of a linear machine."""

    def cross(
        self,
        kernel: Kernel,
        landmarks: Any,
        chunks: Callable[[], Iterable[Chunk]],
        budget: int,
        n_threads: int,
        K_MM: Floats | None,
    ) -> Cross:
        """Return K between samples in chunks and a few landmarks, which are column indices if K is precomputed."""

    def evaluation(
        self, kernel: Kernel, vectors: EngineSamples | None, coefficients: Any, columns: Indices | None
    ) -> Evaluation:
        """Return the evaluator of f on new samples of this engine."""


_engines: list[Engine] = []
# Engines of the library that are imported on first use: by the package of an array's type, or by the device name.
_ON_DEMAND = {"torch": "mercer.places.torch", "dask": "mercer.places.chunked.dask"}
# DLPack device types that are host memory: CPU, and memory pinned for CUDA or ROCm.
_HOST_MEMORY = (1, 3, 11)
_DEVICES_ON_DEMAND = dict.fromkeys(("cuda", "xpu", "mps", "torch-cpu"), "mercer.places.torch") | {
    "dask": "mercer.places.chunked.dask"
}


def register(engine: Engine) -> None:
    """Register an engine for X of its array type, and for any X under ``config_context(device=...)`` with its name."""
    if engine not in _engines:
        _engines.append(engine)


def engine_of(X: Any) -> Engine | None:
    """Return the engine that X belongs to, as its samples or its array type; None for data in host memory."""
    if isinstance(X, EngineSamples):
        return X.engine
    if isinstance(X, np.ndarray):
        return None
    module = _ON_DEMAND.get(type(X).__module__.partition(".")[0])
    if module is None and is_on_a_device(X):
        module = _ON_DEMAND["torch"]
    if module is not None:
        import_module(module)
    return next((engine for engine in _engines if engine.accepts(X)), None)


def is_on_a_device(X: Any) -> bool:
    """Return whether X is a DLPack array outside of host memory, such as CuPy's or JAX's on a GPU."""
    return hasattr(type(X), "__dlpack_device__") and int(X.__dlpack_device__()[0]) not in _HOST_MEMORY


def configured_engine() -> Engine | None:
    """Return the engine that computes data in host memory, by the configured device; None for the host itself."""
    device = get_config()["device"]
    if device == "cpu":
        return None
    name = device.partition(":")[0]
    if name == "processes":
        raise ValueError(
            f"device={device!r}: the engine of processes was removed. Rows in files (mercer.stored_rows) are "
            "computed in this process, by all its threads; for more processes start a Dask cluster with "
            "distributed.Client(), and use device='dask'"
        )
    if name in _DEVICES_ON_DEMAND:
        import_module(_DEVICES_ON_DEMAND[name])
    for engine in _engines:
        if name in engine.devices:
            return engine
    device_names = {name for engine in _engines for name in engine.devices} | _DEVICES_ON_DEMAND.keys()
    raise ValueError(
        f"device={device!r} is not known; use 'cpu', which is this host, or one of "
        + ", ".join(map(repr, sorted(device_names)))
    )


def to_engine(X: Any) -> Any:
    """Return an array of an engine's type as samples of that engine, and anything else unchanged."""
    engine = None if isinstance(X, np.ndarray | EngineSamples) else engine_of(X)
    return X if engine is None else engine.samples(X)


Method = TypeVar("Method", bound=Callable[..., Any])


def like_input(method: Method) -> Method:
    """Make a method of samples X return an array of X's type: for a tensor, a tensor on the same device.

    For a lazy array X, the result is lazy too.
    """

    @wraps(method)
    def answer(self: Any, X: Any, *options: Any, **keywords: Any) -> Any:
        engine = None if isinstance(X, np.ndarray | EngineSamples) else engine_of(X)
        lazy_result = getattr(engine, "lazy_result", None)
        if lazy_result is not None:
            return lazy_result(X, lambda rows: method(self, rows, *options, **keywords))
        values = method(self, X if engine is None else engine.samples(X), *options, **keywords)
        are_numbers = isinstance(values, np.ndarray) and values.dtype.kind in "biuf"
        return engine.given(values, X) if engine is not None and are_numbers else values

    return cast(Method, answer)


def report_of(X: Any) -> dict[str, Any]:
    """Return the fitted attribute `fit_report_`, statistics of the workers, by name; empty if X has no workers."""
    return {"fit_report_": X.report} if isinstance(X, EngineSamples) and X.report is not None else {}


def on_host(values: Any) -> Any:
    """Return targets or weights in host memory, copied from an engine if necessary."""
    if values is None or isinstance(values, np.ndarray):
        return values
    engine = engine_of(values)
    return values if engine is None else engine.vector(values)


def in_same_place(X: Any, Z: Any) -> tuple[Any, Any]:
    """Return two sets of samples in one place: on the engine of the first one, or in host memory."""
    if not isinstance(X, EngineSamples):
        return X, Z.host() if isinstance(Z, EngineSamples) else Z
    if isinstance(Z, EngineSamples):
        return X, Z if Z.engine is X.engine else X.engine.samples(Z.host())
    return X, X.engine.samples(Z)
