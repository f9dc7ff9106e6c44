"""Samples on a torch device: dense or CSR rows of float32 or float64."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mercer.places.torch import fused
from mercer.places.torch.formula import Formula
from mercer.places.torch.memory import explain_shortage, in_strips
from mercer.places.torch.numbers import TILE_BYTES, floats, index_tensor, to_device, to_host, torch
from mercer.places.torch.sparse import SparseRows, squared_lengths
from mercer.samples.arrays import Flags, Floats, Indices, is_sparse, row_blocks
from mercer.samples.engine import EngineSamples

if TYPE_CHECKING:
    from mercer.kernels import Kernel
    from mercer.places.torch.engine import TorchEngine

# Odd multipliers that mix the bits of an entry (Steele, Lea and Flood's SplitMix64), as signed 64-bit integers.
_STEP, _FIRST, _SECOND = (
    int(np.array(number, dtype=np.uint64).view(np.int64))
    for number in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)
# Most host threads that solve on one device at a time: more would wait for Python's lock longer than for the device. A
# search of 50 values of C in 10 folds, 20,000 rows, takes 6.1 s with 4 threads and 9.4 s with 10 (NVIDIA H200).
_MOST_SOLVERS = 4


class TorchSamples(EngineSamples):
    """Samples that are the rows of a tensor, which is never changed."""

    engine: TorchEngine

    def __init__(self, engine: TorchEngine, rows: Any, devices: tuple[Any, ...] | None = None) -> None:
        self.engine, self.rows = engine, rows
        self.devices = devices or (rows.device,)  # devices that share products and predictions; one has the rows
        self.shape = tuple(rows.shape)
        self.dtype = np.dtype(np.float32 if rows.dtype == torch.float32 else np.float64)

    @property
    def most_solvers(self) -> int | None:
        return _MOST_SOLVERS if fused.available(self.rows) else None

    def take(self, rows: Indices) -> TorchSamples:
        return type(self)(self.engine, self.rows[index_tensor(rows, self.rows)], self.devices)

    def joined(self, others: EngineSamples) -> TorchSamples:
        """Return these samples followed by the others, on the device of these."""
        assert isinstance(others, TorchSamples)
        if others.sparse:
            return SparseSamples(self.engine, SparseRows.of_dense(self.rows)).joined(others)
        dtype = torch.promote_types(self.rows.dtype, others.rows.dtype)
        parts = [part.rows.to(self.rows.device, dtype) for part in (self, others)]
        return TorchSamples(self.engine, torch.cat(parts), self.devices)

    def host(self, rows: Indices | None = None) -> Any:
        """Return a copy of all samples, or of the given rows, in host memory."""
        if rows is not None:
            return to_host(self.rows[index_tensor(rows, self.rows)])
        return to_host(self.rows.clone() if self.rows.device.type == "cpu" else self.rows)

    def on(self, device: Any) -> TorchSamples:
        """Return these samples on another device, for that device alone."""
        return type(self)(self.engine, self.rows.to(device))

    def parts(self, factor: int = 1) -> Iterator[tuple[slice, Any]]:
        """Yield blocks of rows of which `factor` float64 copies take no more memory than a tile."""
        step = max(1, TILE_BYTES // (8 * factor * max(1, self.shape[1])))
        for start in range(0, self.shape[0], step):
            block = slice(start, min(self.shape[0], start + step))
            yield block, self.rows[block]

    def first_not_finite(self) -> tuple[int, int, float, int] | None:
        """Return row, column and value of the first entry that is not finite, and their number; None if all are."""
        if all(bool(torch.isfinite(part.sum(dtype=torch.float64))) for _, part in self.parts()):
            return None
        first, count = None, 0
        for block, part in self.parts():
            bad = torch.nonzero(~torch.isfinite(part))
            if len(bad) and first is None:
                row, column = (int(index) for index in bad[0])
                first = (block.start + row, column, float(part[row, column]))
            count += len(bad)
        return None if first is None else (*first, count)

    def hash(self) -> NDArray[np.uint64]:
        """Return a hash of each sample, equal for equal samples, dense or sparse."""
        out = torch.empty(self.shape[0], dtype=torch.int64, device=self.rows.device)
        keys = _keys(torch.arange(self.shape[1], device=self.rows.device))
        for block, part in self.parts(4):
            bits = (part.double() + 0.0).view(torch.int64)  # −0.0 becomes 0.0
            out[block] = _hashes(bits, keys).masked_fill_(bits == 0, 0).sum(dim=1)
        return np.asarray(to_host(_mix_bits(out))).view(np.uint64)

    def equal(self, left: Indices, right: Indices) -> Flags:
        """Return for each k whether sample left[k] equals sample right[k]."""
        out = np.empty(len(left), dtype=bool)
        for block in row_blocks(len(left), 16 * self.shape[1]):
            one, other = (self.rows[index_tensor(rows[block], self.rows)] for rows in (left, right))
            out[block] = to_host((one == other).all(dim=1))
        return out

    def moments(self) -> tuple[Floats, Floats]:
        """Return the mean and the standard deviation of every column."""
        n = self.shape[0]
        mean = sum(part.sum(dim=0, dtype=torch.float64) for _, part in self.parts()) / n
        square = sum(((part - mean) ** 2).sum(dim=0) for _, part in self.parts())
        return floats(mean), np.sqrt(floats(square) / n)

    def sums_about(self, centre: float, weight: Floats) -> tuple[float, float]:
        """Return Σ_i w_i Σ_j (x_ij − centre) and Σ_i w_i Σ_j (x_ij − centre)² over all entries."""
        w, first_moment, second_moment = to_device(weight, self.rows), 0.0, 0.0
        for block, part in self.parts(2):
            centred = part.double() - centre
            first_moment += float(w[block] @ centred.sum(dim=1))
            second_moment += float(w[block] @ (centred * centred).sum(dim=1))
        return first_moment, second_moment

    def extremes(self) -> tuple[float, float]:
        """Return the smallest and the largest entry, zeros included."""
        low, high = torch.aminmax(self.rows)
        return float(low), float(high)

    def squared_lengths(self) -> Floats:
        return np.concatenate([np.empty(0), *(floats(squared_lengths(part)) for _, part in self.parts(2))])

    def values(self, kernel: Kernel, others: EngineSamples | None = None) -> Floats:
        """Return the matrix k(x_i, z_j); without others the matrix k(x_i, x_j), which is exactly symmetric."""
        assert others is None or isinstance(others, TorchSamples)
        formula = Formula.of(kernel, others.rows if others is not None and others.sparse else self.rows)
        left = formula.rows(self.rows, torch.float64)
        right = left if others is None else formula.rows(others.rows.to(self.rows.device), torch.float64)
        out = np.empty((left.n, right.n))

        def work(block: slice) -> None:
            out[block] = to_host(formula.block(left[block], right))

        in_strips(left.n, 8 * right.n, work)
        if others is None:
            out = 0.5 * (out + out.T)
            np.fill_diagonal(out, self.diagonal(kernel))
        return out

    def diagonal(self, kernel: Kernel) -> Floats:
        return floats(Formula.of(kernel, self.rows).diagonal(self.rows))

    def entries(self, rows: Indices, columns: Indices) -> Floats:
        return floats(self.rows[index_tensor(rows, self.rows), index_tensor(columns, self.rows)])

    def columns(self, indices: Indices) -> TorchSamples:
        return TorchSamples(self.engine, self.rows[:, index_tensor(indices, self.rows)].contiguous(), self.devices)

    def asymmetry(self) -> float:
        return max(float((part - self.rows[:, block].T).abs().max()) for block, part in self.parts(3))


class SparseSamples(TorchSamples):
    """Samples that are CSR rows."""

    sparse = True

    @property
    def n_entries(self) -> int:
        return len(self.rows.values)

    @property
    def nbytes(self) -> int:
        return int((self.dtype.itemsize + 8) * self.n_entries + 8 * self.shape[0])

    def joined(self, others: EngineSamples) -> TorchSamples:
        """Return these samples followed by the others, on the device of these."""
        assert isinstance(others, TorchSamples)
        one, other = self.rows, others.rows if others.sparse else SparseRows.of_dense(others.rows)
        dtype = torch.promote_types(one.dtype, other.dtype)
        other = other.to(one.device)
        values = torch.cat([part.values.to(dtype) for part in (one, other)])
        starts = torch.cat([one.starts, other.starts[1:] + one.starts[-1]])
        rows = SparseRows(values, torch.cat([one.columns, other.columns]), starts, self.shape[1])
        return SparseSamples(self.engine, rows, self.devices)

    def host(self, rows: Indices | None = None) -> Any:
        return (self.rows if rows is None else self.rows[index_tensor(rows, self.rows)]).host()

    def first_not_finite(self) -> tuple[int, int, float, int] | None:
        """Return row, column and value of the first entry that is not finite, and their number; None if all are."""
        bad = torch.nonzero(~torch.isfinite(self.rows.values)).ravel()
        if not len(bad):
            return None
        first = bad[0]
        position = (int(self.rows.row_of_entry[first]), int(self.rows.columns[first]))
        return (*position, float(self.rows.values[first]), len(bad))

    def hash(self) -> NDArray[np.uint64]:
        """Return a hash of each sample, equal for equal samples, dense or sparse."""
        bits = self.rows.values.double().view(torch.int64)
        sums = torch.nn.functional.pad(torch.cumsum(_hashes(bits, _keys(self.rows.columns)), 0), (1, 0))  # modulo 2⁶⁴
        return np.asarray(to_host(_mix_bits(sums[self.rows.starts].diff()))).view(np.uint64)

    def equal(self, left: Indices, right: Indices) -> Flags:
        """Return for each k whether sample left[k] equals sample right[k]."""
        one, other = (index_tensor(rows, self.rows) for rows in (left, right))
        counts = self.rows.counts
        out = counts[one] == counts[other]
        same_count = torch.nonzero(out).ravel()
        one, other = self.rows[one[same_count]], self.rows[other[same_count]]
        is_different = (one.columns != other.columns) | (one.values != other.values)
        sums = torch.nn.functional.pad(torch.cumsum(is_different, 0), (1, 0))
        out[same_count] = sums[one.starts].diff() == 0
        return np.asarray(to_host(out))

    def moments(self) -> tuple[Floats, Floats]:
        """Return the mean and the standard deviation of every column."""
        n, values = self.shape[0], self.rows.values.double()
        mean = self.rows.over_columns(values) / n
        squares = self.rows.over_columns((values - mean[self.rows.columns]).square())
        n_zeros = n - torch.bincount(self.rows.columns, minlength=self.shape[1])
        return floats(mean), np.sqrt(floats(squares + n_zeros * mean.square()) / n)

    def sums_about(self, centre: float, weight: Floats) -> tuple[float, float]:
        """Return Σ_i w_i Σ_j (x_ij − centre) and Σ_i w_i Σ_j (x_ij − centre)² over all entries."""
        w, centred = to_device(weight, self.rows), self.rows.values.double() - centre
        n_zeros = (self.shape[1] - self.rows.counts).double()
        first_moment = self.rows.reduce_rows(centred) - centre * n_zeros
        second_moment = self.rows.reduce_rows(centred.square()) + centre**2 * n_zeros
        return float(w @ first_moment), float(w @ second_moment)

    def extremes(self) -> tuple[float, float]:
        """Return the smallest and the largest entry, zeros included."""
        zero = [torch.zeros(1, dtype=self.rows.dtype, device=self.rows.device)]
        has_no_zeros = self.n_entries == self.shape[0] * self.shape[1]
        low, high = torch.aminmax(torch.cat([self.rows.values, *(zero * (not has_no_zeros))]))
        return float(low), float(high)

    def entries(self, rows: Indices, columns: Indices) -> Floats:
        raise TypeError(_NO_MATRIX)

    def columns(self, indices: Indices) -> TorchSamples:
        raise TypeError(_NO_MATRIX)

    def asymmetry(self) -> float:
        raise TypeError(_NO_MATRIX)


_NO_MATRIX = "a sparse precomputed kernel matrix is not supported; give a dense array"


def _keys(columns: Any) -> Any:
    return _mix_bits((columns + 1) * _STEP)


def _hashes(bits: Any, keys: Any) -> Any:
    """Hash of each entry, from its bits and its column's key; zeros are left out, so that dense and CSR rows agree."""
    return _mix_bits(_mix_bits(bits ^ keys) + keys)


def _mix_bits(bits: Any) -> Any:
    """Mix integers so that every bit of the result depends on every bit of the input."""
    bits = (bits ^ ((bits >> 30) & 0x3FFFFFFFF)) * _FIRST
    bits = (bits ^ ((bits >> 27) & 0x1FFFFFFFFF)) * _SECOND
    return bits ^ ((bits >> 31) & 0x1FFFFFFFF)


_SPARSE = (torch.sparse_csr, torch.sparse_coo, torch.sparse_csc)


def samples_on_device(engine: TorchEngine, X: Any, devices: tuple[Any, ...]) -> TorchSamples:
    """Return host samples or a tensor as float32 or float64 rows on the first of these devices."""
    device = devices[0]
    if isinstance(X, list):
        raise TypeError(
            f"strings cannot be compared on {device}; compute on the host: mercer.config_context(device='cpu')"
        )
    is_tensor = isinstance(X, torch.Tensor)
    if is_tensor:
        _check_type(X.dtype)
    if is_sparse(X) or (is_tensor and X.layout in _SPARSE):
        if len(X.shape) != 2:
            raise ValueError(f"sparse samples have two dimensions, but these have the shape {tuple(X.shape)}")
        rows = SparseRows.of(X, device)
        return SparseSamples(engine, rows if rows.dtype in _FLOAT_TYPES else rows.double(), devices)
    if is_tensor and X.layout is not torch.strided:
        raise TypeError(f"X has the layout {X.layout}, which is not supported; give X.to_sparse_csr()")
    # torch warns of read-only memory, such as that of a pandas frame.
    rows = X.detach() if is_tensor else torch.from_numpy(np.require(X, requirements=["C", "W"]))
    with explain_shortage("the sample array", 8 * rows.numel(), device, "give fewer samples, or float32"):
        rows = rows if rows.dtype in _FLOAT_TYPES else rows.to(torch.float64)
        return TorchSamples(engine, rows.to(device).contiguous(), devices)


_FLOAT_TYPES = (torch.float32, torch.float64)


def _check_type(dtype: Any) -> None:
    if dtype.is_complex or (dtype.is_floating_point and dtype not in _FLOAT_TYPES):
        raise TypeError(f"X has the dtype {dtype}; give float32 or float64")
