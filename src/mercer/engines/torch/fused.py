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
from mercer.engines.torch.numbers import POWERS, torch
from mercer.engines.torch.sparse import products

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
    """Whether there is Triton for the device of these rows."""
    return triton is not None and (rows.device.type == "cuda" or _INTERPRETED)


def _on(x: Any) -> AbstractContextManager[Any]:
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

    @triton.jit  # type: ignore[untyped-decorator]  # triton is untyped
    def _sums32(X, NX, Z, NZ, C, OUT, n, m, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):  # type: ignore[no-untyped-def]  # Triton reads it
        r = tl.program_id(0) * BM + tl.arange(0, BM)
        k = tl.arange(0, D)
        x = tl.load(X + r[:, None].to(tl.int64) * D + k[None, :], mask=r[:, None] < n, other=0.0)
        nx = tl.load(NX + r, mask=r < n, other=0.0)
        total = tl.zeros([BM], tl.float64)
        for start in range(0, m, BN):
            c = start + tl.arange(0, BN)
            z = tl.load(Z + c[None, :] * D + k[:, None], mask=c[None, :] < m, other=0.0)
            nz = tl.load(NZ + c, mask=c < m, other=0.0)
            weight = tl.load(C + c, mask=c < m, other=0.0)
            t = tl.dot(x, z, input_precision="tf32x3")
            values = tl.exp2(tl.minimum(t - nx[:, None] - nz[None, :], 0.0))
            total += tl.sum(values.to(weight.dtype) * weight[None, :], 1).to(tl.float64)
        tl.store(OUT + r, total, mask=r < n)

    @triton.jit  # type: ignore[untyped-decorator]  # triton is untyped
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
        X, NX, Z, NZ, C, OUT, n, m, d, one, APART: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
    ):
        r = tl.program_id(0) * BM + tl.arange(0, BM)
        column = tl.program_id(1)
        c = column * BN + tl.arange(0, BN)
        k = tl.arange(0, BK)
        t = tl.zeros([BM, BN], tl.float32)
        for start in range(0, d, BK):
            x = tl.load(X + r[:, None].to(tl.int64) * d + (start + k)[None, :], mask=r[:, None] < n, other=0.0)
            z = tl.load(Z + c[None, :].to(tl.int64) * d + (start + k)[:, None], mask=c[None, :] < m, other=0.0)
            if APART:  # Triton would undo a plain sum, and tensor cores cut digits of what they add to
                t = tl.fma(tl.dot(x, z, input_precision="tf32x3"), one, t)
            else:
                t = tl.dot(x, z, t, input_precision="tf32x3")
        nx = tl.load(NX + r, mask=r < n, other=0.0)
        nz = tl.load(NZ + c, mask=c < m, other=0.0)
        weight = tl.load(C + c, mask=c < m, other=0.0)
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

    @triton.jit  # type: ignore[untyped-decorator]  # triton is untyped
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

    @triton.jit
    def _first_of(h1, i1, room1, d1, low1, h2, i2, room2, d2, low2):  # type: ignore[no-untyped-def]  # Triton reads it
        """Of two that may grow the one with the larger gradient, and the larger of two minus those that may fall."""
        one = (h1 > h2) | ((h1 == h2) & (i1 < i2))
        return (
            tl.where(one, h1, h2), tl.where(one, i1, i2), tl.where(one, room1, room2), tl.where(one, d1, d2),
            tl.maximum(low1, low2),
        )  # fmt: skip

    @triton.jit
    def _partner_of(g1, i1, room1, h1, c1, g2, i2, room2, h2, c2):  # type: ignore[no-untyped-def]  # Triton reads it
        """Of two partners the one with the larger gain."""
        one = (g1 > g2) | ((g1 == g2) & (i1 < i2))
        return (
            tl.where(one, g1, g2), tl.where(one, i1, i2), tl.where(one, room1, room2), tl.where(one, h1, h2),
            tl.where(one, c1, c2),
        )  # fmt: skip

    @triton.jit  # type: ignore[untyped-decorator]  # triton is untyped
    def _pair_steps(K, H, B, LOWER, UPPER, D, ENDS, OUT, TOLD, q, share, least, most, Q: tl.constexpr):  # type: ignore[no-untyped-def]  # Triton reads it
        k = tl.arange(0, Q)
        own = k < q
        top, bottom = tl.load(ENDS), -tl.load(ENDS + 1)
        goal = tl.maximum(share * (top - bottom), least).to(tl.float32)
        # Gradients about the middle of the ends, as in the core: float32 resolves small differences there.
        h = (tl.load(H + k, mask=own, other=0.0) - (0.5 * top + 0.5 * bottom)).to(tl.float32)
        b, d = tl.load(B + k, mask=own, other=0.0), tl.load(D + k, mask=own, other=0.0)
        lower, upper = tl.load(LOWER + k, mask=own, other=0.0), tl.load(UPPER + k, mask=own, other=0.0)
        diagonal = (tl.load(K + k * q + k, mask=own, other=1.0) + d).to(tl.float32)
        steps = 0
        going = True
        while going:
            grows, falls = own & (b < upper), own & (b > lower)
            high, i, room_i, d_i, low = tl.reduce(
                (tl.where(grows, h, -float("inf")), k, upper - b, diagonal, tl.where(falls, -h, -float("inf"))),
                0, _first_of,
            )  # fmt: skip
            going = (high + low > goal) & (steps < most)
            if going:
                k_i = tl.load(K + i * q + k, mask=own, other=0.0)
                curve = tl.maximum(d_i + diagonal - 2.0 * k_i, 1e-7 * (d_i + diagonal))
                above = high - h
                gain = tl.where(falls & (above > 0), above * above / curve, -1.0)
                best, j, room_j, h_j, c_j = tl.reduce((gain, k, b - lower, h, curve), 0, _partner_of)
                k_j = tl.load(K + j * q + k, mask=own, other=0.0)
                step = (high - h_j).to(tl.float64) / c_j.to(tl.float64)
                step = tl.minimum(tl.minimum(step, room_i), room_j)
                # A variable that rounding leaves beside its bound is on it.
                beside = 8.9e-16 * tl.maximum(tl.abs(b), step)
                at_i, at_j = k == i, k == j
                up = tl.where(upper - b - step <= beside, upper, b + step)
                down = tl.where(b - lower - step <= beside, lower, b - step)
                b = tl.where(at_i, up, tl.where(at_j, down, b))
                change = step.to(tl.float32)
                own_d = tl.where(at_i, d, tl.where(at_j, -d, 0.0)).to(tl.float32)
                h -= change * (k_i - k_j + own_d)
                going = (step > 0) & (best > 0)
                steps += 1
        tl.store(OUT + k, b, mask=own)
        tl.store(TOLD, tl.load(TOLD) + steps)


def sums(x: Any, x_norms: Any, z: Any, z_norms: Any, weights: Any) -> Any:
    """Σ_j w_j 2^−(N_i + N_j − ⟨x_i, z_j⟩) of padded rows, summed in float64; wide float64 rows are a tile at a time.

    Float32 values are added up in the weights' precision over a block of columns.
    """
    if x.dtype == torch.float32:
        return (
            _sums_of32(x, x_norms, z, z_norms, weights)
            if weights.ndim == 1
            else _several(x, x_norms, z, z_norms, weights)
        )
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
    with _on(x):
        _several32[(triton.cdiv(n, 64),)](
            x, x_norms, z, z_norms, weights, out, n, m, D=x.shape[1], P=width, BM=64, num_warps=4
        )
    return out[:, :outputs]


def _sums_of32(x: Any, x_norms: Any, z: Any, z_norms: Any, weights: Any) -> Any:
    n, m, d = len(x), len(z), x.shape[1]
    careful = weights.dtype == torch.float64  # for predictions, whose sums may cancel
    with _on(x):
        if narrow(x):
            out = torch.empty(n, dtype=torch.float64, device=x.device)
            rows, columns = 64 if careful else 128, 64
            _sums32[(triton.cdiv(n, rows),)](
                x, x_norms, z, z_norms, weights, out, n, m, D=d, BM=rows, BN=columns, num_warps=4
            )
            return out
        rows, columns = _WIDE_TILE
        out = torch.zeros(n, dtype=torch.float64, device=x.device)
        for start in range(0, m, _WIDE_COLUMNS):
            some = slice(start, start + _WIDE_COLUMNS)
            count = len(z[some])
            parts = torch.empty((triton.cdiv(count, columns), n), dtype=weights.dtype, device=x.device)
            _wide32[(triton.cdiv(n, rows), len(parts))](
                x, x_norms, z[some], z_norms[some], weights[some], parts, n, count, d, 1.0,
                APART=careful, BM=rows, BN=columns, BK=_STEP, num_warps=4, num_stages=3,
            )  # fmt: skip
            out += parts.sum(dim=0, dtype=torch.float64)
        return out


def tile32(x: Any, x_norms: Any, z: Any, z_norms: Any) -> Any:
    """2^−(N_i + N_j − ⟨x_i, z_j⟩) of narrow padded rows."""
    n, m = len(x), len(z)
    out = torch.empty((n, m), dtype=torch.float32, device=x.device)
    with _on(x):
        _tile32[(triton.cdiv(n, 64), triton.cdiv(m, 64))](
            x, x_norms, z, z_norms, out, n, m, D=x.shape[1], BM=64, BN=64, num_warps=4
        )
    return out


def sums64(t: Any, x_norms: Any, z_norms: Any, weights: Any) -> Any:
    """Those sums in float64, from a tile of inner products."""
    n, m = t.shape
    out = torch.empty(n, dtype=torch.float64, device=t.device)
    powers = torch.tensor(POWERS, dtype=torch.float64, device=t.device)
    with _on(t):
        _sums64[(triton.cdiv(n, 4),)](t, x_norms, z_norms, weights, powers, out, n, m, COUNT=len(POWERS), BM=4, BN=512)
    return out


def narrow64(x: Any, x_norms: Any, z: Any, z_norms: Any, weights: Any) -> Any:
    """Those sums in float64 from narrow padded rows; what one call adds up is summed in turns of 64 columns."""
    n, d = x.shape
    out = torch.zeros(n, dtype=torch.float64, device=x.device)
    part, powers = torch.empty_like(out), torch.tensor(POWERS, dtype=torch.float64, device=x.device)
    with _on(x):
        for start in range(0, len(z), _COLUMNS_AT_ONCE):
            some = slice(start, start + _COLUMNS_AT_ONCE)
            _core.check_stop()
            _narrow64[(triton.cdiv(n, 64),)](
                x, x_norms, z[some], z_norms[some], weights[some], powers, part, n, len(z[some]),
                D=d, COUNT=len(POWERS), BM=64, num_warps=4,
            )  # fmt: skip
            out += part
    return out


def pair_steps(
    K: Any, h: Any, beta: Any, lower: Any, upper: Any, d: Any, ends: Any, told: Any, share: float, least: float
) -> Any:
    """β after pair steps on one equality whose K is stored, at most twenty for each; `told` counts them.

    `ends` are the largest gradient that may grow and minus the smallest that may fall, over all variables; steps end
    where a share of their distance is left, or `least`.
    """
    q = len(K)
    out = torch.empty_like(beta)
    with _on(K):
        _pair_steps[(1,)](
            K, h, beta, lower, upper, d, ends, out, told, q, share, least, 20 * q,
            Q=triton.next_power_of_2(q), num_warps=8,
        )  # fmt: skip
    return out
