"""Where samples live: in this machine's memory, or with an engine, which computes on them where they are.

Samples of this machine are plain: an array, a CSR matrix, a list of strings. An engine's are `PlacedSamples`: nothing
above the engine reads their numbers, it asks them. The functions that every room uses on samples (`take`, `n_samples`,
`stack`, `moments`, a kernel's call and `diag`, `gram_for`, …) take both.

An engine is chosen by the type of X; for samples of this machine by the configured device.
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

__all__ = ["Engine", "PlacedSamples", "register"]

if TYPE_CHECKING:
    from mercer.kernels import Kernel
    from mercer.places import Cross, Evaluation, Gram, Rows
    from mercer.samples.arrays import Flags, Floats, Indices
    from mercer.samples.chunks import Chunk


class PlacedSamples:
    """Samples that live with an engine. Numbers come back as arrays of this machine, one or a few per sample.

    A sample is the row of a matrix; a string, where `shape` has one dimension; or a row of a kernel matrix.
    """

    engine: Engine
    shape: tuple[int, ...]
    dtype: np.dtype[Any]  # float32 or float64; object for strings
    sparse: bool = False  # whether zeros are not stored
    names: tuple[str, ...] | None = None  # of the columns, where they have some

    def __init_subclass__(cls) -> None:
        """As an abstract class would, which every `isinstance` would pay for."""
        missing = [name for name in dir(cls) if getattr(getattr(cls, name), "__isabstractmethod__", False)]
        if missing:
            raise TypeError(f"{cls.__name__} must define {', '.join(missing)}")

    @property
    def n_entries(self) -> int:
        """How many numbers are stored."""
        return int(np.prod(self.shape))

    @property
    def nbytes(self) -> int:
        """About how many bytes they take."""
        return self.n_entries * self.dtype.itemsize

    @property
    def most_solvers(self) -> int | None:
        """How many threads should solve on a stored K at a time; None for as many as there are."""
        return None

    @property
    def report(self) -> dict[str, dict[str, float]] | None:
        """What their workers were asked so far, by verb; None where there are none."""
        return None

    # --- the same samples, some of them, or others beside them ----------------------------------------------------

    @abstractmethod
    def take(self, rows: Indices) -> PlacedSamples:
        """Some of the samples, in this order."""

    @abstractmethod
    def joined(self, others: PlacedSamples) -> PlacedSamples:
        """These samples and then the others."""

    @abstractmethod
    def host(self, rows: Indices | None = None) -> Any:
        """A copy of some or all of them as samples of this machine."""

    # --- facts ------------------------------------------------------------------------------------------------------

    @abstractmethod
    def first_not_finite(self) -> tuple[int, int, float, int] | None:
        """Row, column and value of the first entry that is not finite, and how many such there are; else None."""

    @abstractmethod
    def hash(self) -> NDArray[np.uint64]:
        """A number per sample, equal for equal samples; −0.0 is 0.0."""

    @abstractmethod
    def equal(self, left: Indices, right: Indices) -> Flags:
        """Whether sample left[k] equals sample right[k]."""

    @abstractmethod
    def moments(self) -> tuple[Floats, Floats]:
        """The mean and the standard deviation of every column."""

    @abstractmethod
    def sums_about(self, centre: float, weight: Floats) -> tuple[float, float]:
        """Σ_i w_i Σ_j (x_ij − centre), and the sum of the squares, over all entries, zeros included."""

    @abstractmethod
    def extremes(self) -> tuple[float, float]:
        """The smallest and the largest entry."""

    @abstractmethod
    def squared_lengths(self) -> Floats:
        """‖x_i‖² of every sample."""

    # --- kernel values ----------------------------------------------------------------------------------------------

    @abstractmethod
    def values(self, kernel: Kernel, others: PlacedSamples | None = None) -> Floats:
        """The matrix k(x_i, z_j); without others between the samples themselves, exactly symmetric."""

    @abstractmethod
    def diagonal(self, kernel: Kernel) -> Floats:
        """k(x_i, x_i) of every sample."""

    # --- where they are a kernel matrix -----------------------------------------------------------------------------

    @abstractmethod
    def entries(self, rows: Indices, columns: Indices) -> Floats:
        """K[rows[k], columns[k]]."""

    @abstractmethod
    def columns(self, which: Indices) -> PlacedSamples:
        """K[:, which]."""

    @abstractmethod
    def asymmetry(self) -> float:
        """The largest |K_ij − K_ji|."""

    # --- what NumPy would do behind the engine's back ---------------------------------------------------------------

    __array_ufunc__ = None

    def __array__(self, *options: Any, **more: Any) -> NDArray[Any]:
        raise TypeError(
            f"samples of the engine {type(self.engine).__name__} are not copied to this machine unasked; use host()"
        )


class Engine(Protocol):
    """A place where kernel values are computed. docs/add_an_engine.md shows how to add one."""

    @property
    def devices(self) -> tuple[str, ...]:
        """The names by which it is asked for, such as "cuda"; one device of several is "cuda:1"."""

    def accepts(self, X: Any) -> bool:
        """Whether X is of the engine's own type of array."""

    def samples(self, X: Any) -> PlacedSamples:
        """Samples of the engine's own type, or of this machine, where they are computed on."""

    def vector(self, values: Any) -> Any:
        """Targets or weights of the engine's own type as an array of this machine."""

    def given(self, values: NDArray[Any], like: Any) -> Any:
        """Numbers of this machine as the engine's own type of array, where another one is."""

    def gram(self, kernel: Kernel, X: PlacedSamples, budget: int, n_threads: int, constant: float) -> Gram:
        """K of these samples; `mercer.places.gram_for` says what the parameters mean."""

    def rows(self, X: PlacedSamples, n_threads: int, which: Indices | None, centre: Floats | None) -> Rows:
        """The samples, or some of sparse ones, as the rows of a linear machine, less a centre."""

    def cross(
        self,
        kernel: Kernel,
        landmarks: Any,
        chunks: Callable[[], Iterable[Chunk]],
        budget: int,
        n_threads: int,
        K_MM: Floats | None,
    ) -> Cross:
        """K between samples that come in chunks and a few landmarks; of a kernel matrix these are columns."""

    def evaluation(
        self, kernel: Kernel, vectors: PlacedSamples | None, coefficients: Any, columns: Indices | None
    ) -> Evaluation:
        """f of new samples of this engine."""


_engines: list[Engine] = []
# Engines of the library that are imported when they are met: by the package of an array's type, or by a device's name.
_ON_DEMAND = {"torch": "mercer.places.torch", "dask": "mercer.places.chunked.dask"}
# What memory of this machine is called in DLPack: the CPU's, and what is pinned for CUDA or ROCm.
_HOST_MEMORY = (1, 3, 11)
_DEVICES_ON_DEMAND = dict.fromkeys(("cuda", "xpu", "mps", "torch-cpu"), "mercer.places.torch") | {
    "dask": "mercer.places.chunked.dask"
}


def register(engine: Engine) -> None:
    """Offer an engine: for X of its own type, and for any X under ``config_context(device=...)`` with its name."""
    if engine not in _engines:
        _engines.append(engine)


def engine_of(X: Any) -> Engine | None:
    """The engine whose samples, or whose own type of array, X is; None for data of this machine."""
    if isinstance(X, PlacedSamples):
        return X.engine
    if isinstance(X, np.ndarray):
        return None
    home = _ON_DEMAND.get(type(X).__module__.partition(".")[0])
    if home is None and is_on_a_device(X):
        home = _ON_DEMAND["torch"]
    if home is not None:
        import_module(home)
    return next((engine for engine in _engines if engine.accepts(X)), None)


def is_on_a_device(X: Any) -> bool:
    """Whether X is an array that speaks DLPack and does not live in this machine's memory, such as CuPy's or JAX's."""
    return hasattr(type(X), "__dlpack_device__") and int(X.__dlpack_device__()[0]) not in _HOST_MEMORY


def configured() -> Engine | None:
    """The engine that data of this machine go to; None if they stay."""
    device = get_config()["device"]
    if device == "cpu":
        return None
    name = device.partition(":")[0]
    if name == "processes":
        raise ValueError(
            f"device={device!r}: there is no engine of processes any more. Rows in files (mercer.stored_rows) are "
            "computed in this process, by all its threads; for more processes start a Dask cluster with "
            "distributed.Client(), and use device='dask'"
        )
    if name in _DEVICES_ON_DEMAND:
        import_module(_DEVICES_ON_DEMAND[name])
    for engine in _engines:
        if name in engine.devices:
            return engine
    known = {name for engine in _engines for name in engine.devices} | _DEVICES_ON_DEMAND.keys()
    raise ValueError(
        f"device={device!r} is not known here; there is 'cpu', which is this machine, and "
        + ", ".join(map(repr, sorted(known)))
    )


def placed(X: Any) -> Any:
    """An engine's own array as its samples; anything else as it is."""
    engine = None if isinstance(X, np.ndarray | PlacedSamples) else engine_of(X)
    return X if engine is None else engine.samples(X)


Method = TypeVar("Method", bound=Callable[..., Any])


def like_input(method: Method) -> Method:
    """Let a method of samples X return the kind of array that X is: a tensor for a tensor, on its device.

    Where such arrays are computed later, so is the answer.
    """

    @wraps(method)
    def answer(self: Any, X: Any, *options: Any, **named: Any) -> Any:
        engine = None if isinstance(X, np.ndarray | PlacedSamples) else engine_of(X)
        later = getattr(engine, "later", None)
        if later is not None:
            return later(X, lambda rows: method(self, rows, *options, **named))
        values = method(self, X if engine is None else engine.samples(X), *options, **named)
        numbers = isinstance(values, np.ndarray) and values.dtype.kind in "biuf"
        return engine.given(values, X) if engine is not None and numbers else values

    return cast(Method, answer)


def report_of(X: Any) -> dict[str, Any]:
    """What a fit on samples X says about the workers that had them."""
    return {"fit_report_": X.report} if isinstance(X, PlacedSamples) and X.report is not None else {}


def on_host(values: Any) -> Any:
    """Targets or weights as they are, or brought here from an engine."""
    if values is None or isinstance(values, np.ndarray):
        return values
    engine = engine_of(values)
    return values if engine is None else engine.vector(values)


def together(X: Any, Z: Any) -> tuple[Any, Any]:
    """Two sets of samples in one place: where the first one lives."""
    if not isinstance(X, PlacedSamples):
        return X, Z.host() if isinstance(Z, PlacedSamples) else Z
    if isinstance(Z, PlacedSamples):
        return X, Z if Z.engine is X.engine else X.engine.samples(Z.host())
    return X, X.engine.samples(Z)
