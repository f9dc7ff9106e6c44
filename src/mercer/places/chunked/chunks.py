"""Rows that lie in chunks: mapping a verb over them, and sums over chunks in one order, whoever the workers are."""

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
# Rows that were brought here last are kept up to this size: a working set's are wanted again for its products.
_HELD_BYTES = 1 << 28


class Account:
    """What was asked of the workers: calls, bytes and seconds by verb."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, float]] = {}

    def add(self, verb: str, sent: int, received: int, seconds: float) -> None:
        row = self._rows.setdefault(verb, {"calls": 0, "bytes_sent": 0, "bytes_received": 0, "seconds": 0.0})
        for name, value in zip(row, (1, sent, received, seconds), strict=True):
            row[name] += value

    def report(self) -> dict[str, dict[str, float]]:
        """A copy of it."""
        return {verb: dict(row) for verb, row in self._rows.items()}


class Chunks:
    """Rows in chunks of these sizes; an engine says how a verb reaches a chunk's worker."""

    account: Account

    def __init__(self, facts: Sequence[tuple[tuple[int, ...], str, bool, int]]) -> None:
        widths = {shape[1] for shape, *_ in facts}
        if len(widths) > 1:
            raise ValueError(f"the chunks of X have {' or '.join(map(str, sorted(widths)))} columns; all need the same")
        self.sizes = [shape[0] for shape, *_ in facts]
        self.ends = np.cumsum([0, *self.sizes])
        self.n, self.d = int(self.ends[-1]), widths.pop() if widths else 0
        self.types = {name for _, name, *_ in facts}
        self.dtype = np.result_type(*map(np.dtype, self.types))
        self.sparse, self.stored = any(sparse for *_, sparse, _ in facts), sum(stored for *_, stored in facts)
        self._held: tuple[Indices, Any] | None = None

    # --- what an engine brings ---------------------------------------------------------------------------------------

    def threads(self, n_threads: int) -> int:
        """Threads of a verb where this process has `n_threads`: a worker has one core for each of its tasks."""
        return 1

    @abstractmethod
    def call(
        self, verb: Callable[..., T], which: Sequence[int], each: Sequence[tuple[Any, ...]], common: Any
    ) -> list[T]:
        """verb(chunk, *own, *common) of these chunks, in this order; `common` is sent once for all of them."""

    @abstractmethod
    def hold(self, each: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """Something to be sent to every chunk again and again: what is returned stands for it in `call`."""

    @abstractmethod
    def joined(self, others: Chunks) -> Chunks:
        """These rows and then the others, of the same engine."""

    def reduce(
        self,
        verb: Callable[..., T],
        which: Sequence[int],
        each: Sequence[tuple[Any, ...]],
        common: Any,
        add: Callable[[T, T], T],
    ) -> T:
        """The sum over chunks: neighbours are added, then neighbours of these, so that the order is always the same."""
        return tree(self.call(verb, which, each, common), add)

    # --- counted -----------------------------------------------------------------------------------------------------

    def map(
        self, verb: Callable[..., T], each: Sequence[tuple[Any, ...] | None], common: tuple[Any, ...] = ()
    ) -> list[tuple[int, T]]:
        """verb on every chunk whose entry of `each` is not None: (its number, what it said)."""
        which = [k for k, own in enumerate(each) if own is not None]
        found = self._counted(verb, which, [each[k] or () for k in which], common, self.call)
        return list(zip(which, found, strict=True))

    def sum(
        self, verb: Callable[..., T], each: Sequence[tuple[Any, ...] | None], common: tuple[Any, ...], add: Any
    ) -> T | None:
        """Its sum over these chunks; None without one."""
        which = [k for k, own in enumerate(each) if own is not None]
        if not which:
            return None
        found: T = self._counted(verb, which, [each[k] or () for k in which], common, partial(self.reduce, add=add))
        return found

    def _counted(self, verb: Any, which: Any, each: Any, common: Any, ask: Callable[..., Any]) -> Any:
        begun = time.perf_counter()
        found = ask(verb, which, each, common)
        sent, received = n_bytes(each) + len(which) * n_bytes(common), n_bytes(found)
        self.account.add(verb.__name__, sent, received, time.perf_counter() - begun)
        return found

    # --- rows by their places ----------------------------------------------------------------------------------------

    def masked(self, places: Indices | None) -> list[tuple[verbs.Some] | None]:
        """For each chunk which of its rows are among these places; None where no row is."""
        if places is None:
            return [(None,) if size else None for size in self.sizes]
        mask = np.zeros(self.n, dtype=bool)
        mask[places] = True
        parts: list[Flags] = np.split(mask, self.ends[1:-1])
        return [(verbs.packed(part),) if part.any() else None for part in parts]

    def per_row(self, verb: Callable[..., Any], places: Indices | None, common: tuple[Any, ...] = ()) -> Any:
        """What the verb says about each of these rows, in their order."""
        each = self.masked(places)
        return self.gathered(each, self.map(verb, each, common), places)

    def gathered(self, each: Sequence[Any], found: Sequence[tuple[int, Any]], places: Indices | None) -> Any:
        """Numbers per row that chunks returned for `masked` rows, in the order of the places."""
        if places is None and found:
            return np.concatenate([part for _, part in found])
        first = found[0][1] if found else np.empty(0)
        whole = np.empty((self.n, *first.shape[1:]), first.dtype)
        for k, part in found:
            own = whole[self.ends[k] : self.ends[k + 1]]
            own[verbs.unpacked(each[k][0], len(own))] = part
        return whole if places is None else whole[places]

    def members(self, places: Indices | None) -> list[tuple[Indices, verbs.Some] | None]:
        """For each chunk which of the samples at these places lie in it, and where there; None where none does."""
        if places is None:
            return [
                (np.arange(begin, end), None) if end > begin else None
                for begin, end in zip(self.ends[:-1], self.ends[1:], strict=True)
            ]
        parts = by_owner(np.searchsorted(self.ends, places, side="right") - 1, len(self.sizes))
        return [
            (some, (places[some] - begin).astype(np.int32)) if len(some) else None
            for some, begin in zip(parts, self.ends[:-1], strict=True)
        ]

    def split(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        """Numbers of all rows, by chunks."""
        return np.split(values, self.ends[1:-1])

    def weights(self, places: Indices | None, weight: Floats) -> list[tuple[Floats] | None]:
        """What rows at these places weigh together, by chunks; None where all is 0."""
        total = weight if places is None else sums_by(places, weight, self.n)
        return [(part,) if part.any() else None for part in self.split(np.ascontiguousarray(total))]

    def rows(self, places: Indices) -> Any:
        """Copies of some rows, in this order."""
        if self._held is not None:
            held, kept = self._held
            at = np.minimum(np.searchsorted(held, places), max(0, len(held) - 1))
            if len(held) and np.array_equal(held[at], places):
                return kept[at]
        wanted = np.zeros(self.n, dtype=bool)
        wanted[places] = True
        sorted_places = np.flatnonzero(wanted)
        found = [part for _, part in self.map(verbs.rows, self.masked(sorted_places))]
        if not found:
            found = [part for _, part in self.map(verbs.rows, [(np.empty(0, np.int32),)])]
        kept = vstack(found)
        if len(sorted_places) * self.bytes_per_row <= _HELD_BYTES:
            self._held = sorted_places, kept
        return kept[np.searchsorted(sorted_places, places)]

    @property
    def bytes_per_row(self) -> int:
        each = self.dtype.itemsize + (4 if self.sparse else 0)
        return each * self.stored // max(1, self.n) + 8


def by_owner(owner: Indices, count: int) -> list[Indices]:
    """Which places have the owner 0, which 1, …, in ascending order."""
    return np.split(np.argsort(owner, kind="stable"), np.cumsum(np.bincount(owner, minlength=count))[:-1])


def tree(parts: Sequence[T], add: Callable[[T, T], T]) -> T:
    """The sum of several things in the one order that all engines have."""
    parts = list(parts)
    while len(parts) > 1:
        pairs = [add(parts[k], parts[k + 1]) for k in range(0, len(parts) - 1, 2)]
        parts = pairs + parts[2 * len(pairs) :]
    return parts[0]


def vstack(parts: Sequence[Any]) -> Any:
    """Rows of arrays, or of CSR matrices, one after another, as a copy."""
    if not any(map(is_sparse, parts)):
        return np.concatenate(parts)
    return sp.csr_array(sp.vstack([sp.csr_array(part) for part in parts]))


def n_bytes(values: Any) -> int:
    """About how many bytes these take on the way."""
    if isinstance(values, np.ndarray):
        return values.nbytes
    if isinstance(values, list | tuple):
        return sum(map(n_bytes, values))
    if is_sparse(values):
        return int(values.data.nbytes + values.indices.nbytes + values.indptr.nbytes)
    return sum(map(n_bytes, vars(values).values())) if is_dataclass(values) else 8
