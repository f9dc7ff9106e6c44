"""Rows in chunks: functions mapped over chunks, and sums over chunks in an order that does not depend on the workers.

A verb is a function that runs on one chunk (verbs.py).
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import is_dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.places.chunked import verbs
from mercer.samples.arrays import Flags, Floats, Indices, is_sparse, sums_by

T = TypeVar("T")
# The rows fetched last are kept on the host up to this size: products with a working set need its rows again.
_HELD_BYTES = 1 << 28


class CallStatistics:
    """Statistics of the calls to workers: number, bytes and seconds by verb."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, float]] = {}

    def add(self, verb: str, n_sent: int, n_received: int, seconds: float) -> None:
        """Record one call of a verb, with the bytes sent and received."""
        row = self._rows.setdefault(verb, {"calls": 0, "bytes_sent": 0, "bytes_received": 0, "seconds": 0.0})
        for name, value in zip(row, (1, n_sent, n_received, seconds), strict=True):
            row[name] += value

    def report(self) -> dict[str, dict[str, float]]:
        """Return a copy of the statistics."""
        return {verb: dict(row) for verb, row in self._rows.items()}


class Chunks:
    """Rows in chunks of known sizes; an engine's subclass runs verbs on the worker that has a chunk."""

    statistics: CallStatistics

    def __init__(self, formats: Sequence[tuple[tuple[int, ...], str, bool, int]]) -> None:
        widths = {shape[1] for shape, *_ in formats}
        if len(widths) > 1:
            raise ValueError(f"the chunks of X have {' or '.join(map(str, sorted(widths)))} columns; all need the same")
        self.sizes = [shape[0] for shape, *_ in formats]
        self.ends = np.cumsum([0, *self.sizes])
        self.n, self.d = int(self.ends[-1]), widths.pop() if widths else 0
        self.types = {name for _, name, *_ in formats}
        self.dtype = np.result_type(*map(np.dtype, self.types))
        self.sparse, self.stored = any(sparse for *_, sparse, _ in formats), sum(stored for *_, stored in formats)
        self._held_rows: tuple[Indices, Any] | None = None

    # --- methods of an engine ----------------------------------------------------------------------------------------

    def threads(self, n_threads: int) -> int:
        """Return the threads of a verb if this process has `n_threads`: a worker has one core for each of its tasks."""
        return 1

    @abstractmethod
    def call(
        self,
        verb: Callable[..., T],
        chunk_numbers: Sequence[int],
        chunk_arguments: Sequence[tuple[Any, ...]],
        common: Any,
    ) -> list[T]:
        """Return verb(chunk, *arguments, *common) for the chunks `chunk_numbers`, in this order.

        `chunk_arguments` holds the arguments of each of these chunks; `common` is sent once for all.
        """

    @abstractmethod
    def hold(self, chunk_arguments: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """Keep arguments on the workers for repeated use; return handles that replace them in `call`."""

    @abstractmethod
    def joined(self, others: Chunks) -> Chunks:
        """Return these rows followed by the others, which are on the same engine."""

    def reduce(
        self,
        verb: Callable[..., T],
        chunk_numbers: Sequence[int],
        chunk_arguments: Sequence[tuple[Any, ...]],
        common: Any,
        add: Callable[[T, T], T],
    ) -> T:
        """Return the sum of a verb's results over chunks, added pairwise so that the order is always the same."""
        return tree_sum(self.call(verb, chunk_numbers, chunk_arguments, common), add)

    # --- calls with statistics ---------------------------------------------------------------------------------------

    def map(
        self, verb: Callable[..., T], chunk_arguments: Sequence[tuple[Any, ...] | None], common: tuple[Any, ...] = ()
    ) -> list[tuple[int, T]]:
        """Call the verb on every chunk whose arguments are not None; return pairs of chunk number and result."""
        chunk_numbers = [k for k, arguments in enumerate(chunk_arguments) if arguments is not None]
        results = self._run_and_count(
            verb, chunk_numbers, [chunk_arguments[k] or () for k in chunk_numbers], common, self.call
        )
        return list(zip(chunk_numbers, results, strict=True))

    def sum(
        self,
        verb: Callable[..., T],
        chunk_arguments: Sequence[tuple[Any, ...] | None],
        common: tuple[Any, ...],
        add: Any,
    ) -> T | None:
        """Return the sum of the verb's results over chunks whose arguments are not None; None if all are None."""
        chunk_numbers = [k for k, arguments in enumerate(chunk_arguments) if arguments is not None]
        if not chunk_numbers:
            return None
        total: T = self._run_and_count(
            verb,
            chunk_numbers,
            [chunk_arguments[k] or () for k in chunk_numbers],
            common,
            partial(self.reduce, add=add),
        )
        return total

    def _run_and_count(
        self, verb: Any, chunk_numbers: Any, chunk_arguments: Any, common: Any, run: Callable[..., Any]
    ) -> Any:
        """Return run(verb, chunk_numbers, chunk_arguments, common), and record the call."""
        start = time.perf_counter()
        result = run(verb, chunk_numbers, chunk_arguments, common)
        n_sent, n_received = n_bytes(chunk_arguments) + len(chunk_numbers) * n_bytes(common), n_bytes(result)
        self.statistics.add(verb.__name__, n_sent, n_received, time.perf_counter() - start)
        return result

    # --- rows by their positions -------------------------------------------------------------------------------------

    def selections(self, positions: Indices | None) -> list[tuple[verbs.RowSelection] | None]:
        """Return for each chunk the selection of its rows that are at these positions; None for a chunk without any."""
        if positions is None:
            return [(None,) if size else None for size in self.sizes]
        mask = np.zeros(self.n, dtype=bool)
        mask[positions] = True
        parts: list[Flags] = np.split(mask, self.ends[1:-1])
        return [(verbs.pack_mask(part),) if part.any() else None for part in parts]

    def per_row(self, verb: Callable[..., Any], positions: Indices | None, common: tuple[Any, ...] = ()) -> Any:
        """Return the verb's result for each row at these positions, in their order."""
        selections = self.selections(positions)
        return self.gather(selections, self.map(verb, selections, common), positions)

    def gather(self, selections: Sequence[Any], results: Sequence[tuple[int, Any]], positions: Indices | None) -> Any:
        """Join per-row results that chunks returned for their `selections`, in the order of the positions."""
        if positions is None and results:
            return np.concatenate([part for _, part in results])
        first = results[0][1] if results else np.empty(0)
        all_rows = np.empty((self.n, *first.shape[1:]), first.dtype)
        for k, part in results:
            chunk = all_rows[self.ends[k] : self.ends[k + 1]]
            chunk[verbs.unpack_rows(selections[k][0], len(chunk))] = part
        return all_rows if positions is None else all_rows[positions]

    def members(self, positions: Indices | None) -> list[tuple[Indices, verbs.RowSelection] | None]:
        """Return for each chunk the indices of the positions in it, and their rows within it; None without any."""
        if positions is None:
            return [
                (np.arange(begin, end), None) if end > begin else None
                for begin, end in zip(self.ends[:-1], self.ends[1:], strict=True)
            ]
        parts = group_by_owner(np.searchsorted(self.ends, positions, side="right") - 1, len(self.sizes))
        return [
            (indices, (positions[indices] - begin).astype(np.int32)) if len(indices) else None
            for indices, begin in zip(parts, self.ends[:-1], strict=True)
        ]

    def split(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        """Split an array with an entry for every row into one array per chunk."""
        return np.split(values, self.ends[1:-1])

    def weights(self, positions: Indices | None, weight: Floats) -> list[tuple[Floats] | None]:
        """Return each row's total weight, split by chunk, from weights of the positions; None for a chunk of zeros."""
        total = weight if positions is None else sums_by(positions, weight, self.n)
        return [(part,) if part.any() else None for part in self.split(np.ascontiguousarray(total))]

    def rows(self, positions: Indices) -> Any:
        """Return copies of the rows at these positions, in this order."""
        if self._held_rows is not None:
            held_positions, held_rows = self._held_rows
            indices = np.minimum(np.searchsorted(held_positions, positions), max(0, len(held_positions) - 1))
            if len(held_positions) and np.array_equal(held_positions[indices], positions):
                return held_rows[indices]
        mask = np.zeros(self.n, dtype=bool)
        mask[positions] = True
        sorted_positions = np.flatnonzero(mask)
        parts = [part for _, part in self.map(verbs.rows, self.selections(sorted_positions))]
        if not parts:
            parts = [part for _, part in self.map(verbs.rows, [(np.empty(0, np.int32),)])]
        held_rows = vstack(parts)
        if len(sorted_positions) * self.bytes_per_row <= _HELD_BYTES:
            self._held_rows = sorted_positions, held_rows
        return held_rows[np.searchsorted(sorted_positions, positions)]

    @property
    def bytes_per_row(self) -> int:
        """Approximate memory of a row in bytes."""
        entry_bytes = self.dtype.itemsize + (4 if self.sparse else 0)
        return entry_bytes * self.stored // max(1, self.n) + 8


def group_by_owner(owner: Indices, count: int) -> list[Indices]:
    """Return the indices with owner 0, those with owner 1, …, each in ascending order."""
    return np.split(np.argsort(owner, kind="stable"), np.cumsum(np.bincount(owner, minlength=count))[:-1])


def tree_sum(parts: Sequence[T], add: Callable[[T, T], T]) -> T:
    """Return the sum of the parts, added pairwise in the order that all engines use."""
    parts = list(parts)
    while len(parts) > 1:
        pairs = [add(parts[k], parts[k + 1]) for k in range(0, len(parts) - 1, 2)]
        parts = pairs + parts[2 * len(pairs) :]
    return parts[0]


def vstack(parts: Sequence[Any]) -> Any:
    """Return the rows of arrays, or of CSR matrices, one after another, as a copy."""
    if not any(map(is_sparse, parts)):
        return np.concatenate(parts)
    return sp.csr_array(sp.vstack([sp.csr_array(part) for part in parts]))


def n_bytes(values: Any) -> int:
    """Return the approximate number of bytes of values in a message."""
    if isinstance(values, np.ndarray):
        return values.nbytes
    if isinstance(values, list | tuple):
        return sum(map(n_bytes, values))
    if is_sparse(values):
        return int(values.data.nbytes + values.indices.nbytes + values.indptr.nbytes)
    return sum(map(n_bytes, vars(values).values())) if is_dataclass(values) else 8
