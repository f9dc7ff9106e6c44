"""Sums of Gaussian values on a GPU without a matrix in memory, in Triton where torch brings it.

float32, for solvers: products, powers of two and sums in one kernel; sums run over a block of columns in float32 and
over blocks in float64. float64, for proofs: from a tile of products that torch made, by the polynomial of `numbers.py`,
in additions and multiplications alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from mercer.engines.torch.numbers import POWERS, torch

triton: Any
tl: Any
try:
    triton, tl = import_module("triton"), import_module("triton.language")
except ImportError:  # torch without Triton, as its CPU build
    triton = tl = None

# Rows and columns of a block, and features up to which rows stay in registers.
_ROWS, _COLUMNS, _MOST_FEATURES = 128, 64, 64
_TILE_ROWS, _TILE_COLUMNS = 4, 512


def available(rows: Any) -> bool:
    """Whether there is Triton for the device of these rows."""
    return triton is not None and rows.device.type == "cuda"


def takes(x: Any) -> bool:
    """Whether rows are narrow enough for one kernel to do it all."""
    return available(x) and x.dtype == torch.float32 and x.shape[1] <= _MOST_FEATURES


if triton is not None:

    @triton.jit  # type: ignore[untyped-decorator]  # triton is untyped
    def _sums32(X, NX, Z, NZ, C, OUT, n, m, d, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):  # type: ignore[no-untyped-def]  # Triton reads it
        r = tl.program_id(0) * BM + tl.arange(0, BM)
        k = tl.arange(0, D)
        x = tl.load(X + r[:, None] * d + k[None, :], mask=(r[:, None] < n) & (k[None, :] < d), other=0.0)
        nx = tl.load(NX + r, mask=r < n, other=0.0)
        total = tl.zeros([BM], tl.float64)
        for start in range(0, m, BN):
            c = start + tl.arange(0, BN)
            z = tl.load(Z + c[None, :] * d + k[:, None], mask=(c[None, :] < m) & (k[:, None] < d), other=0.0)
            nz = tl.load(NZ + c, mask=c < m, other=0.0)
            weight = tl.load(C + c, mask=c < m, other=0.0)
            t = tl.dot(x, z, input_precision="ieee")
            values = tl.exp2(tl.minimum(t - nx[:, None] - nz[None, :], 0.0))
            total += tl.sum(values * weight[None, :], 1).to(tl.float64)
        tl.store(OUT + r, total, mask=r < n)

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
            t = tl.load(T + r[:, None] * m + c[None, :], mask=inside, other=0.0)
            nz = tl.load(NZ + c, mask=c < m, other=0.0)
            weight = tl.load(C + c, mask=c < m, other=0.0)
            e = tl.minimum(t - nx[:, None] - nz[None, :], 0.0)
            e = tl.maximum(e, -1100.0)
            whole = tl.floor(e + 0.5)
            rest = e - whole
            value = tl.zeros_like(rest) + tl.load(P + COUNT - 1)
            for k in tl.static_range(1, COUNT):
                value = value * rest + tl.load(P + COUNT - 1 - k)
            value = value * rest + 1.0
            bits = (tl.maximum(whole, -1022.0).to(tl.int64) + 1023) << 52
            value = tl.where(whole >= -1021.0, value * bits.to(tl.float64, bitcast=True), 0.0)
            total += tl.sum(tl.where(inside, value * weight[None, :], 0.0), 1)
        tl.store(OUT + r, total, mask=r < n)


def sums32(x: Any, x_norms: Any, z: Any, z_norms: Any, weights: Any) -> Any:
    """Σ_j w_j 2^−(N_i + N_j − ⟨x_i, z_j⟩) in float32 values, summed in float64."""
    out = torch.empty(len(x), dtype=torch.float64, device=x.device)
    width = max(16, triton.next_power_of_2(x.shape[1]))
    with torch.cuda.device(x.device):
        _sums32[(triton.cdiv(len(x), _ROWS),)](
            x,
            x_norms,
            z,
            z_norms,
            weights,
            out,
            len(x),
            len(z),
            x.shape[1],
            D=width,
            BM=_ROWS,
            BN=_COLUMNS,
            num_warps=4,
        )
    return out


def sums64(products: Any, x_norms: Any, z_norms: Any, weights: Any) -> Any:
    """Those sums in float64, from a tile of inner products."""
    n, m = products.shape
    out = torch.empty(n, dtype=torch.float64, device=products.device)
    powers = torch.tensor(POWERS, dtype=torch.float64, device=products.device)
    with torch.cuda.device(products.device):
        _sums64[(triton.cdiv(n, _TILE_ROWS),)](
            products, x_norms, z_norms, weights, powers, out, n, m, COUNT=len(POWERS), BM=_TILE_ROWS, BN=_TILE_COLUMNS
        )
    return out
