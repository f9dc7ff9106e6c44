"""Gaussian values on a GPU, and their sums without a matrix in memory, in Triton where torch brings it.

float32, for solvers and predictions: products, powers of two and sums in one kernel; sums run over a block of columns
in the precision of the weights and over blocks in float64. Products are made of three with TF32's digits each, whose
sum has nearly float32's. float64, for proofs: the polynomial of `numbers.py`, in additions and multiplications alone.

Rows are padded with zeros to a number of features that the kernels know when they are compiled (`padded`).
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
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

# Features up to which rows stay in registers; wider ones are read in steps of so many.
_NARROW, _STEP = 64, 32
# Rows and columns of a tile of wide rows.
_WIDE_TILE = 128, 64
# Columns that one call adds up, in float64 and of wide rows: Ctrl-C waits for it.
_COLUMNS_AT_ONCE, _WIDE_COLUMNS = 32_768, 8_192
# Sums with more columns of weights than this are left to torch: values of a tile serve all of them there.
_MOST_OUTPUTS = 64
# Triton's interpreter runs the kernels on this machine, for tests.
_INTERPRETED = os.environ.get("TRITON_INTERPRET", "0") == "1"


def available(rows: Any) -> bool:
    """Say if there is Triton for the device of these rows.

    torch calls an AMD card "cuda" too. Triton refuses the products in TF32's digits there, and nobody has tried the
    others, so that such a card computes by torch's own functions.
    """
    if triton is None or torch.version.hip is not None:
        return False
    return rows.device.type == "cuda" or _INTERPRETED


def on(x: Any) -> AbstractContextManager[Any]:
    """Triton starts kernels on the current device."""
    return torch.cuda.device(x.device) if x.device.type == "cuda" else nullcontext()


def narrow(x: Any) -> bool:
    """Whether rows are so short that a kernel holds them."""
    return bool(x.shape[1] <= _NARROW)


def multiplies64() -> bool:
    """Whether Triton multiplies float64 matrices."""
    return tuple(int(part) for part in triton.__version__.split(".")[:2]) >= (3, 6)


def padded(x: Any, dtype: Any) -> Any:
    """Rows with zeros behind them, as the kernels take them; wide ones in float64 are multiplied by torch."""
    if dtype == torch.float64 and not narrow(x):
        return x
    d = x.shape[1]
    width = max(16, triton.next_power_of_2(d)) if narrow(x) else -(-d // _STEP) * _STEP
    return x if width == d else torch.nn.functional.pad(x, (0, width - d))


if triton is not None:

    @triton.jit(do_not_specialize=["n", "m"])  # type: ignore[untyped-decorator]  # triton is untyped
    def _sums32(  # type: ignore[no-untyped-def]  # Triton reads it
        X, NX, Z, NZ, C, MOVED, COUNT, OUT, n, m,
        SOME: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    ):  # fmt: skip
        """Of all m columns, or of SOME: places and their number."""
        if SOME:
            m = tl.load(COUNT)
        r = tl.program_id(0) * BM + tl.arange(0, BM)
        k = tl.arange(0, D)
        x = tl.load(X + r[:, None].to(tl.int64) * D + k[None, :], mask=r[:, None] < n, other=0.0)
        nx = tl.load(NX + r, mask=r < n, other=0.0)
        total = tl.zeros([BM], tl.float64)
        for start in range(0, m, BN):
            c = start + tl.arange(0, BN)
            inside = c < m
            if SOME:
                c = tl.load(MOVED + c, mask=inside, other=0)
            z = tl.load(Z + c[None, :] * D + k[:, None], mask=inside[None, :], other=0.0)
            nz = tl.load(NZ + c, mask=inside, other=0.0)
            weight = tl.load(C + c, mask=inside, other=0.0)
            t = tl.dot(x, z, input_precision="tf32x3")
            values = tl.exp2(tl.minimum(t - nx[:, None] - nz[None, :], 0.0))
            total += tl.sum(values.to(weight.dtype) * weight[None, :], 1).to(tl.float64)
        tl.store(OUT + r, total, mask=r < n)

    @triton.jit(do_not_specialize=["n", "m"])  # type: ignore[untyped-decorator]  # triton is untyped
    def _several32(X, NX, Z, NZ, C, OUT, n, m, D: tl.constexpr, P: tl.constexpr, BM: tl.constexpr):  # type: ignore[no-untyped-def]  # Triton reads it
        """P columns of weights in float64."""
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
        SOME: tl.constexpr, APART: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    ):  # fmt: skip
        r = tl.program_id(0) * BM + tl.arange(0, BM)
        column = tl.program_id(1)
        c = column * BN + tl.arange(0, BN)
        if SOME:
            m = tl.load(COUNT)
        inside, width = c < m, d
        if SOME:
            c = tl.load(MOVED + c, mask=inside, other=0)
            width = tl.where(column * BN < m, d, 0)
        k = tl.arange(0, BK)
        t = tl.zeros([BM, BN], tl.float32)
        for start in range(0, width, BK):
            x = tl.load(X + r[:, None].to(tl.int64) * d + (start + k)[None, :], mask=r[:, None] < n, other=0.0)
            z = tl.load(Z + c[None, :].to(tl.int64) * d + (start + k)[:, None], mask=inside[None, :], other=0.0)
            if APART:  # Triton would undo a plain sum, and tensor cores cut digits of what they add to
                t = tl.fma(tl.dot(x, z, input_precision="tf32x3"), one, t)
            else:
                t = tl.dot(x, z, t, input_precision="tf32x3")
        nx = tl.load(NX + r, mask=r < n, other=0.0)
        nz = tl.load(NZ + c, mask=inside, other=0.0)
        weight = tl.load(C + c, mask=inside, other=0.0)
        values = tl.exp2(tl.minimum(t - nx[:, None] - nz[None, :], 0.0))
        total = tl.sum(values.to(weight.dtype) * weight[None, :], 1)
        tl.store(OUT + column.to(tl.int64) * n + r, total, mask=r < n)

    @triton.jit  # type: ignore[untyped-decorator]  # triton is untyped
    def _tile32(X, NX, Z, NZ, OUT, n, m, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):  # type: ignore[no-untyped-def]  # Triton reads it
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
    def _power(e, P, COUNT: tl.constexpr):  # type: ignore[no-untyped-def]  # Triton reads it
        """2^e for e ≤ 0, as `power_of_two` in numbers.py."""
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
        r = tl.program_id(0) * BM + tl.arange(0, BM)
        nx = tl.load(NX + r, mask=r < n, other=0.0)
        total = tl.zeros([BM], tl.float64)
        for start in range(0, m, BN):
            c = start + tl.arange(0, BN)
            inside = (r[:, None] < n) & (c[None, :] < m)
            t = tl.load(T + r[:, None].to(tl.int64) * m + c[None, :], mask=inside, other=0.0)
            nz = tl.load(NZ + c, mask=c < m, other=0.0)
            weight = tl.load(C + c, mask=c < m, other=0.0)
            values = _power(tl.minimum(t - nx[:, None] - nz[None, :], 0.0), P, COUNT)
            total += tl.sum(tl.where(inside, values * weight[None, :], 0.0), 1)
        tl.store(OUT + r, total, mask=r < n)

    @triton.jit(do_not_specialize=["n", "m"])  # type: ignore[untyped-decorator]  # triton is untyped
    def _narrow64(X, NX, Z, NZ, C, P, OUT, n, m, D: tl.constexpr, COUNT: tl.constexpr, BM: tl.constexpr):  # type: ignore[no-untyped-def]  # Triton reads it
        r = tl.program_id(0) * BM + tl.arange(0, BM)
        k = tl.arange(0, D)
        x = tl.load(X + r[:, None].to(tl.int64) * D + k[None, :], mask=r[:, None] < n, other=0.0)
        nx = tl.load(NX + r, mask=r < n, other=0.0)
        total = tl.zeros([BM], tl.float64)
        for start in range(0, m, BM):
            c = start + tl.arange(0, BM)
            z = tl.load(Z + c[None, :] * D + k[:, None], mask=c[None, :] < m, other=0.0)
            nz = tl.load(NZ + c, mask=c < m, other=0.0)
            weight = tl.load(C + c, mask=c < m, other=0.0)
            t = tl.dot(x, z, out_dtype=tl.float64)
            values = _power(tl.minimum(t - nx[:, None] - nz[None, :], 0.0), P, COUNT)
            total += tl.sum(values * weight[None, :], 1)
        tl.store(OUT + r, total, mask=r < n)


def sums(x: Any, x_norms: Any, z: Any, z_norms: Any, weights: Any, moved: Any = None) -> Any:
    """Σ_j w_j 2^−(N_i + N_j − ⟨x_i, z_j⟩) of padded rows, summed in float64; wide float64 rows are a tile at a time.

    Float32 values are added up in the weights' precision over a block of columns. Of those, with one output, all j
    count, or the places and number that have `moved`.
    """
    if x.dtype == torch.float32:
        if weights.ndim > 1:
            return _several(x, x_norms, z, z_norms, weights)
        return _one32(x, x_norms, z, z_norms, weights, moved)
    if adds_all(x):
        return narrow64(x, x_norms, z, z_norms, weights)
    return sums64(products(x, z), x_norms, z_norms, weights)


def adds_all(x: Any) -> bool:
    """Whether one call adds up any number of columns of these padded rows."""
    return x.dtype == torch.float32 or (narrow(x) and multiplies64())


def adds_several(x: Any, outputs: int) -> bool:
    """Whether it does so for several columns of weights at once."""
    return outputs <= _MOST_OUTPUTS and x.dtype == torch.float32 and narrow(x) and multiplies64()


def _several(x: Any, x_norms: Any, z: Any, z_norms: Any, weights: Any) -> Any:
    n, m, outputs = len(x), len(z), weights.shape[1]
    width = max(16, triton.next_power_of_2(outputs))
    weights = torch.nn.functional.pad(weights, (0, width - outputs))
    out = torch.empty((n, width), dtype=torch.float64, device=x.device)
    with on(x):
        _several32[(triton.cdiv(n, 64),)](
            x, x_norms, z, z_norms, weights, out, n, m, D=x.shape[1], P=width, BM=64, num_warps=8 if width > 16 else 4
        )
    return out[:, :outputs]


def _one32(x: Any, x_norms: Any, z: Any, z_norms: Any, weights: Any, moved: Any) -> Any:
    n, m, d = len(x), len(z), x.shape[1]
    some, (places, count) = moved is not None, moved or (weights, weights)
    careful = weights.dtype == torch.float64  # for predictions, whose sums may cancel
    with on(x):
        if narrow(x):
            out = torch.empty(n, dtype=torch.float64, device=x.device)
            rows, columns = 64 if careful else 128, 64
            _sums32[(triton.cdiv(n, rows),)](
                x, x_norms, z, z_norms, weights, places, count, out, n, m,
                SOME=some, D=d, BM=rows, BN=columns, num_warps=4,
            )  # fmt: skip
            return out
        rows, columns = _WIDE_TILE
        out = torch.zeros(n, dtype=torch.float64, device=x.device)
        for start in range(0, m, _WIDE_COLUMNS):  # blocks of which some have moved are smaller
            own = slice(start, start + _WIDE_COLUMNS)
            width = len(z[own])
            parts = torch.empty((triton.cdiv(width, columns), n), dtype=weights.dtype, device=x.device)
            _wide32[(triton.cdiv(n, rows), len(parts))](
                x, x_norms, z[own], z_norms[own], weights[own], places, count, parts, n, width, d, 1.0,
                SOME=some, APART=careful, BM=rows, BN=columns, BK=_STEP, num_warps=8, num_stages=3,
            )  # fmt: skip
            out += parts.sum(dim=0, dtype=torch.float64)
        return out


def tile32(x: Any, x_norms: Any, z: Any, z_norms: Any) -> Any:
    """2^−(N_i + N_j − ⟨x_i, z_j⟩) of narrow padded rows."""
    n, m = len(x), len(z)
    out = torch.empty((n, m), dtype=torch.float32, device=x.device)
    with on(x):
        _tile32[(triton.cdiv(n, 64), triton.cdiv(m, 64))](
            x, x_norms, z, z_norms, out, n, m, D=x.shape[1], BM=64, BN=64, num_warps=4
        )
    return out


def sums64(t: Any, x_norms: Any, z_norms: Any, weights: Any) -> Any:
    """Those sums in float64, from a tile of inner products."""
    n, m = t.shape
    out = torch.empty(n, dtype=torch.float64, device=t.device)
    powers = torch.tensor(POWERS, dtype=torch.float64, device=t.device)
    with on(t):
        _sums64[(triton.cdiv(n, 4),)](t, x_norms, z_norms, weights, powers, out, n, m, COUNT=len(POWERS), BM=4, BN=512)
    return out


def narrow64(x: Any, x_norms: Any, z: Any, z_norms: Any, weights: Any) -> Any:
    """Those sums in float64 from narrow padded rows; what one call adds up is summed in turns of 64 columns."""
    n, d = x.shape
    out = torch.zeros(n, dtype=torch.float64, device=x.device)
    part, powers = torch.empty_like(out), torch.tensor(POWERS, dtype=torch.float64, device=x.device)
    with on(x):
        for start in range(0, len(z), _COLUMNS_AT_ONCE):
            some = slice(start, start + _COLUMNS_AT_ONCE)
            _core.check_stop()
            _narrow64[(triton.cdiv(n, 64),)](
                x, x_norms, z[some], z_norms[some], weights[some], powers, part, n, len(z[some]),
                D=d, COUNT=len(POWERS), BM=64, num_warps=4,
            )  # fmt: skip
            out += part
    return out
