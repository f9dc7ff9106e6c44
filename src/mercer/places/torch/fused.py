"""Gaussian values on a GPU, and their sums without a matrix in memory, in Triton if torch includes it.

float32, for solvers and predictions: products, powers of two and sums in one kernel; sums over a block of columns have
the precision of the weights, and sums over blocks are float64. Each product is a sum of three TF32 products, which has
nearly the digits of float32. float64, for proofs: the polynomial of `numbers.py`, in additions and multiplications
alone.

Rows are padded with zeros to a number of features that is known when the kernels are compiled (`padded`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib import import_module
from typing import Any

from mercer import _core
from mercer.places.torch.numbers import POWERS, torch
from mercer.places.torch.sparse import products

triton: Any
tl: Any
try:
    triton, tl = import_module("triton"), import_module("triton.language")
except ImportError:  # torch without Triton, as its CPU build
    triton = tl = None

# Number of features up to which rows stay in registers, and number of features per step for wider rows.
_NARROW_FEATURES, _STEP = 64, 32
# Rows and columns of a tile of wide rows.
_WIDE_TILE = 128, 64
# Rows and columns of a tile in float64.
_TILE64 = 64
# Columns that one call sums over, in float64 and for wide rows: Ctrl-C waits until the call ends.
_COLUMNS_AT_ONCE, _WIDE_COLUMNS = 32_768, 8_192
# Programs that occupy a large device, and least number of columns of one program in a float64 sum of few rows.
_PROGRAMS, _LEAST_SPAN = 1024, 256
# Up to these numbers of outputs each is summed by itself, in float32 and in float64.
SINGLE_OUTPUTS, _SINGLE_OUTPUTS64 = 3, 10
# With more columns of weights than this, torch computes the sums, from a tile of values that serves all of them.
_MOST_OUTPUTS = 64
# True if Triton's interpreter runs the kernels on the host, for tests.
_INTERPRETED = os.environ.get("TRITON_INTERPRET", "0") == "1"


def available(rows: Any) -> bool:
    """Return whether Triton supports the device of these rows.

    torch calls an AMD card "cuda" too. Triton refuses TF32 products there, and the other kernels are untested, so that
    such a card uses torch's own functions.
    """
    if triton is None or torch.version.hip is not None:
        return False
    return rows.device.type == "cuda" or _INTERPRETED


def on(x: Any) -> AbstractContextManager[Any]:
    """Return a context that makes x's device current, because Triton starts kernels on the current device."""
    return torch.cuda.device(x.device) if x.device.type == "cuda" else nullcontext()


def narrow(x: Any) -> bool:
    """Return whether rows are short enough for a kernel to hold them in registers."""
    return bool(x.shape[1] <= _NARROW_FEATURES)


def has_float64_products() -> bool:
    """Return whether Triton multiplies float64 matrices."""
    return tuple(int(part) for part in triton.__version__.split(".")[:2]) >= (3, 6)


def padded(x: Any, dtype: Any) -> Any:
    """Pad rows with zeros to the width that the kernels take; torch multiplies wide float64 rows without padding."""
    if dtype == torch.float64 and not narrow(x):
        return x
    d = x.shape[1]
    width = max(16, triton.next_power_of_2(d)) if narrow(x) else -(-d // _STEP) * _STEP
    return x if width == d else torch.nn.functional.pad(x, (0, width - d))


if triton is not None:

    @triton.jit(do_not_specialize=["n", "m"])  # type: ignore[untyped-decorator]  # triton is untyped
    def _sums32(  # type: ignore[no-untyped-def]  # Triton reads it
        X, NX, Z, NZ, C, MOVED, COUNT, OUT, n, m,
        RESTRICTED: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    ):  # fmt: skip
        """Sum c_j * 2**min(x_i'z_j - nx_i - nz_j, 0) over all columns j < m, or only over the COUNT in MOVED."""
        if RESTRICTED:
            m = tl.load(COUNT)
        r = tl.program_id(0) * BM + tl.arange(0, BM)
        k = tl.arange(0, D)
        x = tl.load(X + r[:, None].to(tl.int64) * D + k[None, :], mask=r[:, None] < n, other=0.0)
        nx = tl.load(NX + r, mask=r < n, other=0.0)
        total = tl.zeros([BM], tl.float64)
        for start in range(0, m, BN):
            c = start + tl.arange(0, BN)
            is_column = c < m
            if RESTRICTED:
                c = tl.load(MOVED + c, mask=is_column, other=0)
            z = tl.load(Z + c[None, :] * D + k[:, None], mask=is_column[None, :], other=0.0)
            nz = tl.load(NZ + c, mask=is_column, other=0.0)
            weight = tl.load(C + c, mask=is_column, other=0.0)
            t = tl.dot(x, z, input_precision="tf32x3")
            values = tl.exp2(tl.minimum(t - nx[:, None] - nz[None, :], 0.0))
            total += tl.sum(values.to(weight.dtype) * weight[None, :], 1).to(tl.float64)
        tl.store(OUT + r, total, mask=r < n)

    @triton.jit(do_not_specialize=["n", "m"])  # type: ignore[untyped-decorator]  # triton is untyped
    def _sums_for_columns32(X, NX, Z, NZ, C, OUT, n, m, D: tl.constexpr, P: tl.constexpr, BM: tl.constexpr):  # type: ignore[no-untyped-def]  # Triton reads it
        """Compute the sums for P columns of float64 weights."""
        r = tl.program_id(0) * BM + tl.arange(0, BM)
        k, p = tl.arange(0, D), tl.arange(0, P)
        x = tl.load(X + r[:, None].to(tl.int64) * D + k[None, :], mask=r[:, None] < n, other=0.0)
        nx = tl.load(NX + r, mask=r < n, other=0.0)
        total = tl.zeros([BM, P], tl.float64)
        for start in range(0, m, BM):
            c = start + tl.arange(0, BM)
            z = tl.load(Z + c[None, :] * D + k[:, None], mask=c[None, :] < m, other=0.0)
            nz = tl.load(NZ + c, mask=c < m, other=0.0)
            weight = tl.load(C + c[:, None] * P + p[None, :], mask=c[:, None] < m, other=0.0)
            t = tl.dot(x, z, input_precision="tf32x3")
            values = tl.exp2(tl.minimum(t - nx[:, None] - nz[None, :], 0.0))
            total = tl.dot(values.to(tl.float64), weight, total, out_dtype=tl.float64)
        tl.store(OUT + r[:, None].to(tl.int64) * P + p[None, :], total, mask=r[:, None] < n)

    @triton.jit  # type: ignore[untyped-decorator]  # triton is untyped
    def _wide32(  # type: ignore[no-untyped-def]  # Triton reads it
        X, NX, Z, NZ, C, MOVED, COUNT, OUT, n, m, d, one,
        RESTRICTED: tl.constexpr, APART: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    ):  # fmt: skip
        """Sum w_j 2^(⟨x_i, z_j⟩ − N_i − N_j) over a block of columns j for a block of rows i too wide for registers."""
        r = tl.program_id(0) * BM + tl.arange(0, BM)
        column = tl.program_id(1)
        c = column * BN + tl.arange(0, BN)
        if RESTRICTED:
            m = tl.load(COUNT)
        is_column, width = c < m, d
        if RESTRICTED:
            c = tl.load(MOVED + c, mask=is_column, other=0)
            width = tl.where(column * BN < m, d, 0)
        k = tl.arange(0, BK)
        t = tl.zeros([BM, BN], tl.float32)
        for start in range(0, width, BK):
            x = tl.load(X + r[:, None].to(tl.int64) * d + (start + k)[None, :], mask=r[:, None] < n, other=0.0)
            z = tl.load(Z + c[None, :].to(tl.int64) * d + (start + k)[:, None], mask=is_column[None, :], other=0.0)
            if APART:  # Triton would merge a plain sum into the dot, whose accumulator tensor cores truncate
                t = tl.fma(tl.dot(x, z, input_precision="tf32x3"), one, t)
            else:
                t = tl.dot(x, z, t, input_precision="tf32x3")
        nx = tl.load(NX + r, mask=r < n, other=0.0)
        nz = tl.load(NZ + c, mask=is_column, other=0.0)
        weight = tl.load(C + c, mask=is_column, other=0.0)
        values = tl.exp2(tl.minimum(t - nx[:, None] - nz[None, :], 0.0))
        total = tl.sum(values.to(weight.dtype) * weight[None, :], 1)
        tl.store(OUT + column.to(tl.int64) * n + r, total, mask=r < n)

    @triton.jit  # type: ignore[untyped-decorator]  # triton is untyped
    def _tile32(X, NX, Z, NZ, OUT, n, m, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):  # type: ignore[no-untyped-def]  # Triton reads it
        """Store 2^(⟨x_i, z_j⟩ − N_i − N_j) for a tile of narrow rows."""
        r = tl.program_id(0) * BM + tl.arange(0, BM)
        c = tl.program_id(1) * BN + tl.arange(0, BN)
        k = tl.arange(0, D)
        x = tl.load(X + r[:, None] * D + k[None, :], mask=r[:, None] < n, other=0.0)
        z = tl.load(Z + c[None, :] * D + k[:, None], mask=c[None, :] < m, other=0.0)
        nx = tl.load(NX + r, mask=r < n, other=0.0)
        nz = tl.load(NZ + c, mask=c < m, other=0.0)
        t = tl.dot(x, z, input_precision="tf32x3")
        values = tl.exp2(tl.minimum(t - nx[:, None] - nz[None, :], 0.0))
        tl.store(OUT + r[:, None].to(tl.int64) * m + c[None, :], values, mask=(r[:, None] < n) & (c[None, :] < m))

    @triton.jit  # type: ignore[untyped-decorator]  # triton is untyped
    def power(e, P, COUNT: tl.constexpr):  # type: ignore[no-untyped-def]  # Triton reads it
        """Return 2^e for e ≤ 0, computed as in `power_of_two` of numbers.py."""
        e = tl.maximum(e, -1100.0)
        whole = tl.floor(e + 0.5)
        rest = e - whole
        value = tl.zeros_like(rest) + tl.load(P + COUNT - 1)
        for k in tl.static_range(1, COUNT):
            value = value * rest + tl.load(P + COUNT - 1 - k)
        value = value * rest + 1.0
        bits = (tl.maximum(whole, -1022.0).to(tl.int64) + 1023) << 52
        return tl.where(whole >= -1021.0, value * bits.to(tl.float64, bitcast=True), 0.0)

    @triton.jit  # type: ignore[untyped-decorator]  # triton is untyped
    def _sums64(  # type: ignore[no-untyped-def]  # Triton reads it
        T, NX, NZ, C, P, OUT, n, m, COUNT: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
    ):
        """Sum w_j 2^(t_ij − N_i − N_j) over all columns j for a block of rows i, in float64."""
        r = tl.program_id(0) * BM + tl.arange(0, BM)
        nx = tl.load(NX + r, mask=r < n, other=0.0)
        total = tl.zeros([BM], tl.float64)
        for start in range(0, m, BN):
            c = start + tl.arange(0, BN)
            is_entry = (r[:, None] < n) & (c[None, :] < m)
            t = tl.load(T + r[:, None].to(tl.int64) * m + c[None, :], mask=is_entry, other=0.0)
            nz = tl.load(NZ + c, mask=c < m, other=0.0)
            weight = tl.load(C + c, mask=c < m, other=0.0)
            values = power(tl.minimum(t - nx[:, None] - nz[None, :], 0.0), P, COUNT)
            total += tl.sum(tl.where(is_entry, values * weight[None, :], 0.0), 1)
        tl.store(OUT + r, total, mask=r < n)

    @triton.jit(do_not_specialize=["n", "m", "span"])  # type: ignore[untyped-decorator]  # triton is untyped
    def _narrow64(X, NX, Z, NZ, C, P, OUT, n, m, span, D: tl.constexpr, COUNT: tl.constexpr, BM: tl.constexpr):  # type: ignore[no-untyped-def]  # Triton reads it
        """Sum w_j 2^(⟨x_i, z_j⟩ − N_i − N_j) over a span of columns j for a block of narrow rows i, in float64."""
        first = tl.program_id(1) * span
        m = tl.minimum(m, first + span)
        r = tl.program_id(0) * BM + tl.arange(0, BM)
        k = tl.arange(0, D)
        x = tl.load(X + r[:, None].to(tl.int64) * D + k[None, :], mask=r[:, None] < n, other=0.0)
        nx = tl.load(NX + r, mask=r < n, other=0.0)
        total = tl.zeros([BM], tl.float64)
        for start in range(first, m, BM):
            c = start + tl.arange(0, BM)
            z = tl.load(Z + c[None, :] * D + k[:, None], mask=c[None, :] < m, other=0.0)
            nz = tl.load(NZ + c, mask=c < m, other=0.0)
            weight = tl.load(C + c, mask=c < m, other=0.0)
            t = tl.dot(x, z, out_dtype=tl.float64)
            values = power(tl.minimum(t - nx[:, None] - nz[None, :], 0.0), P, COUNT)
            total += tl.sum(values * weight[None, :], 1)
        tl.store(OUT + tl.program_id(1).to(tl.int64) * n + r, total, mask=r < n)

    @triton.jit(do_not_specialize=["n", "m", "d", "span"])  # type: ignore[untyped-decorator]  # triton is untyped
    def _differences64(  # type: ignore[no-untyped-def]  # Triton reads it
        X, Z, C, F, P, OUT, n, m, d, span, COUNT: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
    ):
        """Sum w_j 2^(F · ‖x_i − z_j‖²) over a span of columns j, in float64; X and Z hold features row by row.

        F is in memory because Triton rounds floats among the arguments to float32.
        """
        factor = tl.load(F)
        first = tl.program_id(1) * span
        last = tl.minimum(m, first + span)
        r = tl.program_id(0) * BM + tl.arange(0, BM)
        total = tl.zeros([BM], tl.float64)
        for start in range(first, last, BN):
            c = start + tl.arange(0, BN)
            t = tl.zeros([BM, BN], tl.float64)
            x_feature, z_feature = X + r, Z + c
            for _ in range(d):
                x = tl.load(x_feature, mask=r < n, other=0.0)
                z = tl.load(z_feature, mask=c < last, other=0.0)
                difference = x[:, None] - z[None, :]
                t += difference * difference
                x_feature += n
                z_feature += m
            weight = tl.load(C + c, mask=c < last, other=0.0)
            values = power(factor * t, P, COUNT)
            total += tl.sum(values * weight[None, :], 1)
        tl.store(OUT + tl.program_id(1).to(tl.int64) * n + r, total, mask=r < n)


def sums(x: Any, x_norms: Any, z: Any, z_norms: Any, weights: Any, moved: Any = None) -> Any:
    """Return Σ_j w_j 2^−(N_i + N_j − ⟨x_i, z_j⟩) for padded rows, summed in float64; wide float64 rows use a tile.

    Float32 values are summed in the weights' precision over a block of columns. For float32 rows and one output,
    `moved` may restrict the sum: it holds the indices j and their number.
    """
    if weights.ndim > 1:
        single_output = weights.shape[1] <= SINGLE_OUTPUTS and weights.dtype == torch.float32
        if not single_output and adds_several(x, weights.shape[1]):
            return _sums_for_columns(x, x_norms, z, z_norms, weights.double())
        columns = [sums(x, x_norms, z, z_norms, column.contiguous()) for column in weights.T]
        return torch.stack(columns, dim=1)
    if x.dtype == torch.float32:
        return _one32(x, x_norms, z, z_norms, weights, moved)
    if adds_all(x):
        return narrow64(x, x_norms, z, z_norms, weights)
    return sums64(products(x, z), x_norms, z_norms, weights)


def adds_all(x: Any) -> bool:
    """Return whether one call sums over any number of columns of these padded rows."""
    return x.dtype == torch.float32 or (narrow(x) and has_float64_products())


def adds_several(x: Any, n_outputs: int) -> bool:
    """Return whether one call sums over any number of columns for several columns of weights at once."""
    return n_outputs <= _MOST_OUTPUTS and x.dtype == torch.float32 and narrow(x) and has_float64_products()


def adds_fast(dtype: Any, n_features: int, n_outputs: int) -> bool:
    """Return whether `sums` of solvers with so many outputs are faster than products with a tile of values."""
    if n_outputs == 1:
        return True
    if n_features > _NARROW_FEATURES or not has_float64_products():
        return False
    return n_outputs <= (_MOST_OUTPUTS if dtype == torch.float32 else _SINGLE_OUTPUTS64)


def successive_additions(n_features: int, *, of_differences: bool = False) -> int | None:
    """Return a bound on the float64 additions that follow one another within a call that sums over all columns.

    None means that `sums` has no such call for rows of this width; sums of differences always have one.
    """
    if not of_differences and (n_features > _NARROW_FEATURES or not has_float64_products()):
        return None
    return _TILE64 + _COLUMNS_AT_ONCE // _TILE64 + _COLUMNS_AT_ONCE // _LEAST_SPAN


def _sums_for_columns(x: Any, x_norms: Any, z: Any, z_norms: Any, weights: Any) -> Any:
    """Compute `sums` for several columns of weights from float32 values, in one call of a kernel."""
    n, m, outputs = len(x), len(z), weights.shape[1]
    width = max(16, triton.next_power_of_2(outputs))
    weights = torch.nn.functional.pad(weights, (0, width - outputs))
    out = torch.empty((n, width), dtype=torch.float64, device=x.device)
    with on(x):
        _sums_for_columns32[(triton.cdiv(n, 64),)](
            x, x_norms, z, z_norms, weights, out, n, m, D=x.shape[1], P=width, BM=64, num_warps=8 if width > 16 else 4
        )
    return out[:, :outputs]


def _one32(x: Any, x_norms: Any, z: Any, z_norms: Any, weights: Any, moved: Any) -> Any:
    """Compute `sums` for one column of weights from float32 values."""
    n, m, d = len(x), len(z), x.shape[1]
    is_restricted, (indices, count) = moved is not None, moved or (weights, weights)
    in_float64 = weights.dtype == torch.float64  # for predictions, whose sums may cancel
    with on(x):
        if narrow(x):
            out = torch.empty(n, dtype=torch.float64, device=x.device)
            rows, columns = 64 if in_float64 else 128, 64
            _sums32[(triton.cdiv(n, rows),)](
                x, x_norms, z, z_norms, weights, indices, count, out, n, m,
                RESTRICTED=is_restricted, D=d, BM=rows, BN=columns, num_warps=4,
            )  # fmt: skip
            return out
        rows, columns = _WIDE_TILE
        out = torch.zeros(n, dtype=torch.float64, device=x.device)
        for start in range(0, m, _WIDE_COLUMNS):  # with `moved` there is only one such block
            part = slice(start, start + _WIDE_COLUMNS)
            width = len(z[part])
            parts = torch.empty((triton.cdiv(width, columns), n), dtype=weights.dtype, device=x.device)
            _wide32[(triton.cdiv(n, rows), len(parts))](
                x, x_norms, z[part], z_norms[part], weights[part], indices, count, parts,
                n, width, d, 1.0,
                RESTRICTED=is_restricted, APART=in_float64, BM=rows, BN=columns, BK=_STEP, num_warps=8, num_stages=3,
            )  # fmt: skip
            out += parts.sum(dim=0, dtype=torch.float64)
        return out


def tile32(x: Any, x_norms: Any, z: Any, z_norms: Any) -> Any:
    """Return 2^−(N_i + N_j − ⟨x_i, z_j⟩) for narrow padded rows."""
    n, m = len(x), len(z)
    out = torch.empty((n, m), dtype=torch.float32, device=x.device)
    with on(x):
        _tile32[(triton.cdiv(n, 64), triton.cdiv(m, 64))](
            x, x_norms, z, z_norms, out, n, m, D=x.shape[1], BM=64, BN=64, num_warps=4
        )
    return out


def sums64(t: Any, x_norms: Any, z_norms: Any, weights: Any) -> Any:
    """Return Σ_j w_j 2^(t_ij − N_i − N_j) in float64, from a tile t of inner products."""
    n, m = t.shape
    out = torch.empty(n, dtype=torch.float64, device=t.device)
    with on(t):
        _sums64[(triton.cdiv(n, 4),)](
            t, x_norms, z_norms, weights, powers(t.device), out, n, m, COUNT=len(POWERS), BM=4, BN=512
        )
    return out


def narrow64(x: Any, x_norms: Any, z: Any, z_norms: Any, weights: Any) -> Any:
    """Compute `sums` in float64 for narrow padded rows."""

    def add(block: slice, span: int, parts: Any) -> None:
        n, d = x.shape
        _narrow64[(triton.cdiv(n, _TILE64), len(parts))](
            x, x_norms, z[block], z_norms[block], weights[block], powers(x.device), parts, n, len(z[block]), span,
            D=d, COUNT=len(POWERS), BM=_TILE64, num_warps=4,
        )  # fmt: skip

    return _sums_in_spans(x, len(z), add)


def sums_of_differences(x: Any, z: Any, factor: float, weights: Any) -> Any:
    """Return Σ_j w_j 2^(factor · ‖x_i − z_j‖²) in float64, from differences between rows of any width."""
    X = x.T.contiguous()
    F = torch.full((1,), factor, dtype=torch.float64, device=x.device)

    def add(block: slice, span: int, parts: Any) -> None:
        n, d = x.shape
        Z = z[block].T.contiguous()
        _differences64[(triton.cdiv(n, _TILE64), len(parts))](
            X, Z, weights[block], F, powers(x.device), parts, n, Z.shape[1], d, span,
            COUNT=len(POWERS), BM=_TILE64, BN=_TILE64, num_warps=4,
        )  # fmt: skip

    if weights.ndim > 1:
        return torch.stack([sums_of_differences(x, z, factor, w.contiguous()) for w in weights.T], dim=1)
    return _sums_in_spans(x, len(z), add)


def _sums_in_spans(x: Any, m: int, add: Callable[[slice, int, Any], None]) -> Any:
    """Add up what `add` writes for each block of columns, with a row of partial sums for each span of the block.

    Few rows would not occupy a device: the columns of a call are then divided among programs, and their sums added.
    """
    n = len(x)
    out = torch.zeros(n, dtype=torch.float64, device=x.device)
    share = max(1, min(_COLUMNS_AT_ONCE // _LEAST_SPAN, _PROGRAMS // max(1, triton.cdiv(n, _TILE64))))
    span = _COLUMNS_AT_ONCE // share // _TILE64 * _TILE64
    with on(x):
        for start in range(0, m, _COLUMNS_AT_ONCE):
            block = slice(start, min(m, start + _COLUMNS_AT_ONCE))
            parts = torch.empty((triton.cdiv(block.stop - start, span), n), dtype=torch.float64, device=x.device)
            _core.check_stop()
            add(block, span, parts)
            out += parts[0] if len(parts) == 1 else parts.sum(dim=0)
    return out


@cache
def powers(device: Any) -> Any:
    """Return the coefficients of `power` on a device."""
    return torch.tensor(POWERS, dtype=torch.float64, device=device)
