"""K @ w of a Gaussian for all rows of a matrix on a GPU, in Triton: K is symmetric, and half of its values suffice.

Rows are taken in blocks. The values between a block and all rows after it add to the sums of both: along rows, and
along columns, where each program stores what its rows add. Blocks on the diagonal are summed by `fused.sums`.
"""

from __future__ import annotations

from typing import Any

from mercer import _core
from mercer.places.torch import fused
from mercer.places.torch.fused import tl, triton
from mercer.places.torch.numbers import POWERS, torch

# Rows of a block, and rows and columns of a tile, in float32 and in float64.
_BLOCK_ROWS, _TILES = 16_384, {4: (128, 64), 8: (64, 64)}
# Columns of one program, and bytes of what programs store along columns.
_SPAN, _STORED_BYTES = 8192, 64 << 20

if triton is not None:
    power = fused.power

    @triton.jit(do_not_specialize=["first_row", "end_row", "first_column", "end_column", "span"])  # type: ignore[untyped-decorator]  # triton is untyped
    def _both_sums(  # type: ignore[no-untyped-def]  # Triton reads it
        X, N, C, P, ALONG_ROWS, ALONG_COLUMNS, first_row, end_row, first_column, end_column, span,
        D: tl.constexpr, COUNT: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    ):  # fmt: skip
        """Sum values 2^(⟨x_i, x_j⟩ − N_i − N_j) times c_j along a span of columns, and times c_i along BM rows."""
        r = first_row + tl.program_id(0) * BM + tl.arange(0, BM)
        k = tl.arange(0, D)
        is_row = r < end_row
        x = tl.load(X + r[:, None].to(tl.int64) * D + k[None, :], mask=is_row[:, None], other=0.0)
        row_norms = tl.load(N + r, mask=is_row, other=0.0)
        row_weights = tl.load(C + r, mask=is_row, other=0.0)
        begin = first_column + tl.program_id(1) * span
        end = tl.minimum(end_column, begin + span)
        total = tl.zeros([BM], tl.float64)
        stored = ALONG_COLUMNS + tl.program_id(0).to(tl.int64) * (end_column - first_column) - first_column
        for start in range(begin, end, BN):
            c = start + tl.arange(0, BN)
            is_column = c < end
            z = tl.load(X + c[None, :].to(tl.int64) * D + k[:, None], mask=is_column[None, :], other=0.0)
            norms = tl.load(N + c, mask=is_column, other=0.0)
            weights = tl.load(C + c, mask=is_column, other=0.0)
            if COUNT:
                t = tl.dot(x, z, out_dtype=tl.float64)
                values = power(tl.minimum(t - row_norms[:, None] - norms[None, :], 0.0), P, COUNT)
            else:
                t = tl.dot(x, z, input_precision="tf32x3")
                values = tl.exp2(tl.minimum(t - row_norms[:, None] - norms[None, :], 0.0))
            total += tl.sum(values * weights[None, :], 1).to(tl.float64)
            tl.store(stored + c, tl.sum(values * row_weights[:, None], 0), mask=is_column)
        rows_apart = tl.program_id(1).to(tl.int64) * (end_row - first_row) - first_row
        tl.store(ALONG_ROWS + rows_apart + r, total, mask=is_row)


def halves(x: Any, weights: Any) -> bool:
    """Return whether `square_sums` computes fewer values than `fused.sums` for all of these padded rows."""
    single_output = weights.ndim == 1 or weights.shape[1] <= fused.SINGLE_OUTPUTS
    return len(x) > 2 * _BLOCK_ROWS and fused.narrow(x) and fused.adds_all(x) and single_output


def square_sums(x: Any, norms: Any, weights: Any) -> Any:
    """Return Σ_j w_j 2^−(N_i + N_j − ⟨x_i, x_j⟩) for all narrow padded rows x_i, in float64."""
    if weights.ndim > 1:
        return torch.stack([square_sums(x, norms, column.contiguous()) for column in weights.T], dim=1)
    (n, d), (rows, columns) = x.shape, _TILES[x.element_size()]
    powers, count = (fused.powers(x.device), len(POWERS)) if x.dtype == torch.float64 else (norms, 0)
    out = torch.zeros(n, dtype=torch.float64, device=x.device)
    width = _STORED_BYTES // (x.element_size() * triton.cdiv(_BLOCK_ROWS, rows)) // _SPAN * _SPAN
    with fused.on(x):
        for first in range(0, n, _BLOCK_ROWS):
            block = slice(first, min(n, first + _BLOCK_ROWS))
            here = x[block], norms[block]
            out[block] += fused.sums(*here, *here, weights[block])
            for begin in range(block.stop, n, width):
                end = min(n, begin + width)
                grid = triton.cdiv(block.stop - first, rows), triton.cdiv(end - begin, _SPAN)
                along_rows = torch.empty((grid[1], block.stop - first), dtype=torch.float64, device=x.device)
                along_columns = torch.empty((grid[0], end - begin), dtype=x.dtype, device=x.device)
                _core.check_stop()
                _both_sums[grid](
                    x, norms, weights, powers, along_rows, along_columns, first, block.stop, begin, end, _SPAN,
                    D=d, COUNT=count, BM=rows, BN=columns, num_warps=4,
                )  # fmt: skip
                out[block] += along_rows.sum(dim=0)
                out[begin:end] += along_columns.sum(dim=0, dtype=torch.float64)
    return out
