"""Triton kernels of a round of the decomposition: selection of a block, pair steps, and sums with a stored K.

No two programs of a kernel write to the same address, so that results are reproducible bit by bit. The host reads one
array, `STATUS`: the two ends of the violation, the steps and the gain of all rounds so far, and the number of free
variables of the last block.
"""

from __future__ import annotations

from typing import Any

from mercer.places.torch.fused import on, tl, triton
from mercer.places.torch.numbers import torch

# Number of variables that one program of the first kernel examines at a time.
_SCAN_WIDTH = 1024
# Number of warps of the pair-step kernel (benchmarks/compare_gpu.py --kernels).
WARPS = 8
# Number of pair steps between two comparisons of the violation with its goal.
STEPS_UNCHECKED = 8
# Whether barriers beside those of the reductions order the reads and writes of β in large blocks too.
APART = True
# Columns and rows of a tile of a stored K.
_TILE = 64, 32

if triton is not None:

    @triton.jit
    def _larger(v1, i1, v2, i2):  # type: ignore[no-untyped-def]  # Triton reads it
        one = (v1 > v2) | ((v1 == v2) & (i1 < i2))
        return tl.where(one, v1, v2), tl.where(one, i1, i2)

    @triton.jit(do_not_specialize=["n", "width", "G"])  # type: ignore[untyped-decorator]  # triton is untyped
    def _worst(  # type: ignore[no-untyped-def]  # Triton reads it
        P, LOWER, UPPER, D, B, U, ROW, KEPT, ENDS, VALUES, PLACES, n, width, G,
        TWINS: tl.constexpr, W: tl.constexpr,
    ):  # fmt: skip
        """Find the ends of a group of variables, and the worst violator on both sides that is not kept; else n."""
        g = tl.program_id(0)
        lane = tl.arange(0, W)
        top = tl.full([W], -float("inf"), tl.float64)
        low, best_top, best_low = top, top, top
        at_top = tl.full([W], 0, tl.int32) + n
        at_low = at_top
        for start in range(0, width, W):
            i = g * width + start + lane
            is_variable = (start + lane < width) & (i < n)
            row = i
            if TWINS:
                row = tl.load(ROW + i, mask=is_variable, other=0)
            b = tl.load(B + i, mask=is_variable, other=0.0)
            h = tl.load(P + i, mask=is_variable, other=0.0) - tl.load(U + row, mask=is_variable, other=0.0)
            h -= tl.load(D + i, mask=is_variable, other=0.0) * b
            is_kept = tl.load(KEPT + i, mask=is_variable, other=1) != 0
            up = is_variable & (b < tl.load(UPPER + i, mask=is_variable, other=0.0))
            down = is_variable & (b > tl.load(LOWER + i, mask=is_variable, other=0.0))
            is_nan = h != h  # NaN counts as an infinite violation, which ends the rounds
            grows = tl.where(up, tl.where(is_nan, float("inf"), h), -float("inf"))
            falls = tl.where(down, tl.where(is_nan, float("inf"), -h), -float("inf"))
            top, low = tl.maximum(top, grows), tl.maximum(low, falls)
            is_larger_top, is_larger_low = (grows > best_top) & ~is_kept, (falls > best_low) & ~is_kept
            best_top, at_top = tl.where(is_larger_top, grows, best_top), tl.where(is_larger_top, i, at_top)
            best_low, at_low = tl.where(is_larger_low, falls, best_low), tl.where(is_larger_low, i, at_low)
        tl.store(ENDS + g, tl.max(top, 0))
        tl.store(ENDS + G + g, tl.max(low, 0))
        value, place = tl.reduce((best_top, at_top), 0, _larger)
        tl.store(VALUES + g, value)
        tl.store(PLACES + g, place)
        value, place = tl.reduce((best_low, at_low), 0, _larger)
        tl.store(VALUES + G + g, value)
        tl.store(PLACES + G + g, place)

    @triton.jit(do_not_specialize=["n"])  # type: ignore[untyped-decorator]  # triton is untyped
    def _choose(ENDS, VALUES, PLACES, OLD, ROW, J, ROWS, STATUS, n, TWINS: tl.constexpr, G: tl.constexpr):  # type: ignore[no-untyped-def]  # Triton reads it
        """Choose the block: from both sides the variables of violating pairs, then the kept ones; n fills gaps."""
        g = tl.arange(0, G)
        top, low = tl.max(tl.load(ENDS + g), 0), tl.max(tl.load(ENDS + G + g), 0)
        tl.store(STATUS, top)
        tl.store(STATUS + 1, low)
        up = tl.where(tl.load(VALUES + g) > -low, tl.load(PLACES + g), n)
        down = tl.load(PLACES + G + g)
        down = tl.where((tl.load(VALUES + G + g) > -top) & (down != up), down, n)  # a free variable is on both sides
        tl.store(J + g, up)
        tl.store(J + G + g, down)
        k = tl.arange(0, 2 * G)
        old = tl.load(OLD + k)
        tl.store(J + 2 * G + k, old)
        if TWINS:
            up, down = tl.load(ROW + up), tl.load(ROW + down)
            old = tl.load(ROW + old)
        else:
            up, down = tl.minimum(up, n - 1), tl.minimum(down, n - 1)
            old = tl.minimum(old, n - 1)
        tl.store(ROWS + g, up.to(tl.int64))
        tl.store(ROWS + G + g, down.to(tl.int64))
        tl.store(ROWS + 2 * G + k, old.to(tl.int64))

    @triton.jit
    def _order_bits(bits):  # type: ignore[no-untyped-def]  # Triton reads it
        """The bits of a float32 as an integer with the same order, and back."""
        return bits ^ ((bits >> 31) & 0x7FFFFFFF)

    @triton.jit  # type: ignore[untyped-decorator]  # triton is untyped
    def _pack_positions(values, k, Q: tl.constexpr):  # type: ignore[no-untyped-def]  # Triton reads it
        """Return values as integers of the same order, with positions in their last log₂ Q bits.

        A warp finds the largest of 32 such integers in one instruction. Values that differ in the last bits alone count
        as equal, and the first of them is the largest.
        """
        return (_order_bits(values.to(tl.int32, bitcast=True)) & -Q) | (Q - 1 - k)

    @triton.jit  # type: ignore[untyped-decorator]  # triton is untyped
    def _unpack_positions(best, Q: tl.constexpr):  # type: ignore[no-untyped-def]  # Triton reads it
        return _order_bits(best & -Q).to(tl.float32, bitcast=True), Q - 1 - (best & (Q - 1))

    @triton.jit
    def _larger_of(x, y):  # type: ignore[no-untyped-def]  # Triton reads it
        """The larger number, or NaN if one is NaN."""
        return tl.maximum(x, y, tl.PropagateNan.ALL)

    @triton.jit  # type: ignore[untyped-decorator]  # triton is untyped
    def _pair_steps(  # type: ignore[no-untyped-def]  # Triton reads it
        K, P, LOWER, UPPER, D, B, U, J, ROWS, OLD, KEPT, CHANGE, MOVED, COUNT, WORK, CURVES, STATUS, share, least, most,
        Q: tl.constexpr, EACH: tl.constexpr, APART: tl.constexpr,
    ):  # fmt: skip
        """Take pair steps on a block; WORK holds β and both bounds, and CURVES the diagonal of K + diag d, and d.

        A pair's β is read from WORK after the second reduction of a step, and written after the first reduction of the
        next one: the barriers inside of the reductions keep the two apart. With APART there are more barriers, because
        reductions inside of one warp contain none.
        """
        k = tl.arange(0, Q)
        j_k = tl.load(J + k)
        top, bottom = tl.load(STATUS), -tl.load(STATUS + 1)
        goal = tl.maximum(share * (top - bottom), least).to(tl.float32)
        before, d = tl.load(B + j_k), tl.load(D + j_k)
        lower, upper = tl.load(LOWER + j_k), tl.load(UPPER + j_k)
        # Gradients relative to the middle of the ends, as in the core, so that float32 resolves small differences.
        h = tl.load(P + j_k) - tl.load(U + tl.load(ROWS + k)) - d * before
        h = (h - (0.5 * top + 0.5 * bottom)).to(tl.float32)
        h_before = h
        diagonal = (tl.load(K + k * Q + k) + d).to(tl.float32)
        tl.store(WORK + k, before)
        tl.store(WORK + Q + k, lower)
        tl.store(WORK + 2 * Q + k, upper)
        tl.store(CURVES + k, diagonal)
        tl.store(CURVES + Q + k, d.to(tl.float32))
        tl.debug_barrier()
        has_ridge = tl.max(d, 0) > 0
        # Limits on what a variable can be chosen with: it may not grow, or it may not fall.
        never = -2147483648
        most_up = tl.where(before < upper, 2147483647, never)
        most_down = tl.where(before > lower, float("inf"), 0.0)
        steps, i, j = 0, 0, 0
        b_i = tl.load(WORK)
        b_j = b_i
        goes_on = True
        while goes_on:
            high = tl.max(tl.where(most_up > 0, h, -float("inf")), 0)
            low = tl.max(tl.where(most_down > 0, -h, -float("inf")), 0)
            goes_on = (high + low > goal) & (steps < most)
            if goes_on:
                step = tl.zeros([], tl.float32)
                for _ in range(tl.minimum(EACH, most - steps)):
                    first = tl.max(tl.minimum(_pack_positions(h, k, Q), most_up), 0)
                    tl.store(WORK + i, b_i)
                    tl.store(WORK + j, b_j)
                    if APART:
                        tl.debug_barrier()
                    high, i = _unpack_positions(first, Q)
                    k_i = tl.load(K + i * Q + k)
                    diagonal_i = tl.load(CURVES + i)
                    least_curve = tl.maximum(2e-7 * diagonal_i, 1e-30)
                    above = _larger_of(tl.minimum(high - h, most_down, tl.PropagateNan.ALL), 0.0)
                    root = above * tl.rsqrt(_larger_of((diagonal - 2.0 * k_i) + diagonal_i, least_curve))
                    second = tl.max((root.to(tl.int32, bitcast=True) & -Q) | (Q - 1 - k), 0)  # no root is negative
                    best, j = (second & -Q).to(tl.float32, bitcast=True), Q - 1 - (second & (Q - 1))
                    k_j = tl.load(K + j * Q + k)
                    curve = tl.load(CURVES + j) - 2.0 * tl.load(K + i * Q + j) + diagonal_i
                    b_i, upper_i, lower_i = tl.load(WORK + i), tl.load(WORK + 2 * Q + i), tl.load(WORK + Q + i)
                    b_j, upper_j, lower_j = tl.load(WORK + j), tl.load(WORK + 2 * Q + j), tl.load(WORK + Q + j)
                    if APART:
                        tl.debug_barrier()
                    at_end = (b_i <= lower_i) | (b_j >= upper_j)
                    room_i, room_j = upper_i - b_i, b_j - lower_j
                    # best² is the gain, (h_i − h_j)²/curve; NaN, as zero, ends the steps.
                    exact_step = tl.where(best > 0, best * tl.rsqrt(tl.maximum(curve, least_curve)), 0.0).to(tl.float64)
                    exact_step = tl.minimum(tl.minimum(exact_step, room_i), room_j)
                    step = exact_step.to(tl.float32)
                    # A variable within rounding of its bound is set to the bound.
                    reaches_bound = room_i - exact_step <= 8.9e-16 * tl.maximum(tl.abs(b_i), exact_step)
                    b_i = tl.where(reaches_bound, upper_i, b_i + exact_step)
                    at_end |= reaches_bound
                    reaches_bound = room_j - exact_step <= 8.9e-16 * tl.maximum(tl.abs(b_j), exact_step)
                    b_j = tl.where(reaches_bound, lower_j, b_j - exact_step)
                    at_end |= reaches_bound
                    h -= step * (k_i - k_j)
                    if at_end:  # the two may move in other directions than before
                        up_i = tl.where(b_i < upper_i, 2147483647, never)
                        up_j = tl.where(b_j < upper_j, 2147483647, never)
                        most_up = tl.where(k == i, up_i, tl.where(k == j, up_j, most_up))
                        down_i = tl.where(b_i > lower_i, float("inf"), 0.0)
                        down_j = tl.where(b_j > lower_j, float("inf"), 0.0)
                        most_down = tl.where(k == i, down_i, tl.where(k == j, down_j, most_down))
                    if has_ridge:
                        d_i, d_j = tl.load(CURVES + Q + i), tl.load(CURVES + Q + j)
                        h -= step * tl.where(k == i, d_i, tl.where(k == j, -d_j, 0.0))
                    steps += (step > 0).to(tl.int32)
                goes_on = step > 0
        tl.debug_barrier()
        tl.store(WORK + i, b_i)
        tl.store(WORK + j, b_j)
        tl.debug_barrier()
        # Read again, so that the steps have more registers.
        j_k = tl.load(J + k)
        b, before = tl.load(WORK + k), tl.load(B + j_k)
        lower, upper = tl.load(WORK + Q + k), tl.load(WORK + 2 * Q + k)
        change = b - before
        tl.store(CHANGE + k, change)
        has_moved = (change != 0).to(tl.int32)
        tl.store(MOVED + tl.cumsum(has_moved, 0) - 1, k, mask=has_moved > 0)
        tl.store(COUNT, tl.sum(has_moved, 0))
        tl.store(B + j_k, b)  # variable n, which fills gaps, stays zero
        # Half of the block is kept, free variables first and the newest first.
        is_free = ((b < upper) & (b > lower)).to(tl.int32)
        count = tl.sum(is_free, 0)
        rank = tl.where(is_free > 0, tl.cumsum(is_free, 0) - 1, count + tl.cumsum(1 - is_free, 0) - 1)
        is_kept = rank < Q // 2
        tl.store(OLD + rank, j_k, mask=is_kept)
        tl.store(KEPT + j_k, is_kept.to(tl.int8))
        # The dual is quadratic: it grows by the step times the mean of the gradients before and after.
        gained = tl.sum(change * (0.5 * (h_before + h)).to(tl.float64), 0)
        tl.store(STATUS + 2, tl.load(STATUS + 2) + steps)
        tl.store(STATUS + 3, tl.load(STATUS + 3) + gained)
        tl.store(STATUS + 4, count.to(tl.float64))

    @triton.jit  # type: ignore[untyped-decorator]  # triton is untyped
    def _add_rows(  # type: ignore[no-untyped-def]  # Triton reads it
        K, ROWS, C, MOVED, COUNT, OUT, n, m, RESTRICTED: tl.constexpr, BN: tl.constexpr, BJ: tl.constexpr
    ):
        c = tl.program_id(0) * BN + tl.arange(0, BN)
        total = tl.load(OUT + c, mask=c < n, other=0.0)
        if RESTRICTED:
            m = tl.load(COUNT)
        for start in range(0, m, BJ):
            j = start + tl.arange(0, BJ)
            is_source = j < m
            if RESTRICTED:
                j = tl.load(MOVED + j, mask=is_source, other=0)
            row = tl.load(ROWS + j, mask=is_source, other=0)
            weight = tl.load(C + j, mask=is_source, other=0.0)
            values = tl.load(K + row[:, None] * n + c[None, :], mask=is_source[:, None] & (c[None, :] < n), other=0.0)
            total += tl.sum(values.to(tl.float64) * weight[:, None], 0)
        tl.store(OUT + c, total, mask=c < n)


class BlockSelector:
    """Selection of blocks among a problem's variables on a device, and pair steps on them; variable n fills gaps."""

    def __init__(self, p: Any, lower: Any, upper: Any, d: Any, row: Any) -> None:
        self._constants, self._row, self._n = (p, lower, upper, d), row, len(p) - 1
        self._is_kept = torch.zeros(len(p), dtype=torch.int8, device=p.device)
        self.status = torch.zeros(5, dtype=torch.float64, device=p.device)
        self.size, self._block = 0, torch.empty(0, dtype=torch.int32, device=p.device)

    def resize(self, size: int) -> None:
        """Set the block size, a power of two of at least 16; if it doubles, the next block contains the last one."""
        device, groups = self.status.device, size // 4
        if 2 * self.size == size:
            self._last_block = self._block
            self._is_kept.index_fill_(0, self._last_block.long(), 1)
        else:
            self._last_block = torch.full((size // 2,), self._n, dtype=torch.int32, device=device)
            self._is_kept.zero_()
        self.size, self._groups = size, groups
        self._ends, self._values = (torch.empty(2 * groups, dtype=torch.float64, device=device) for _ in range(2))
        self._places = torch.empty(2 * groups, dtype=torch.int32, device=device)
        self._block = torch.empty(size, dtype=torch.int32, device=device)
        self.rows = torch.empty(size, dtype=torch.int64, device=device)
        self.change = torch.empty(size, dtype=torch.float64, device=device)
        self.moved = (
            torch.empty(size, dtype=torch.int32, device=device),
            torch.empty(1, dtype=torch.int32, device=device),
        )
        self._work = torch.empty(3 * size, dtype=torch.float64, device=device)
        self._curves = torch.empty(2 * size, dtype=torch.float32, device=device)

    def choose(self, beta: Any, u: Any) -> Any:
        """Select the next block and return its rows."""
        n, groups, row = self._n, self._groups, self.rows if self._row is None else self._row
        width = triton.cdiv(n, groups)
        looked_at = min(_SCAN_WIDTH, triton.next_power_of_2(width))
        with on(u):
            _worst[(groups,)](
                *self._constants, beta, u, row, self._is_kept, self._ends, self._values, self._places, n, width, groups,
                TWINS=self._row is not None, W=looked_at, num_warps=max(1, min(4, looked_at // 128)),
            )  # fmt: skip
            _choose[(1,)](
                self._ends, self._values, self._places, self._last_block, row, self._block, self.rows, self.status, n,
                TWINS=self._row is not None, G=groups, num_warps=4,
            )  # fmt: skip
        return self.rows

    def count_survivors(self, beta: Any, u: Any, margin_share: float) -> int:
        """Count the variables that are free, or whose gradient could still make them part of a violating pair.

        A variable at a bound does not count if its gradient is beyond the extreme gradients by more than the share
        `margin_share` of the violation. The count overwrites the current block, which the next `choose` selects again.
        """
        self.choose(beta, u)
        p, lower, upper, d = (values[: self._n] for values in self._constants)
        beta, top, bottom = beta[: self._n], self.status[0], -self.status[1]
        h = p - (u if self._row is None else u[self._row[: self._n]]) - d * beta
        margin = margin_share * (top - bottom)
        up, low = beta < upper, beta > lower
        return int(((up & low) | (up & (h >= bottom - margin)) | (low & (h <= top + margin))).sum())

    def step(self, K: Any, beta: Any, u: Any, share: float, least: float, max_steps: int) -> Any:
        """Take pair steps on the block, whose K is given, and return the change of β; `moved` holds what changed.

        Steps end when the violation in the block is at most `share` times the violation of all variables, or `least`,
        or after `max_steps` steps per variable. `moved` is the indices of changed variables, and their number.
        """
        with on(K):
            _pair_steps[(1,)](
                K, *self._constants, beta, u, self._block, self.rows, self._last_block, self._is_kept, self.change,
                *self.moved, self._work, self._curves, self.status, share, least, max_steps * self.size,
                Q=self.size, EACH=STEPS_UNCHECKED, APART=APART or self.size < 1024, num_warps=WARPS,
            )  # fmt: skip
        return self.change


def add_rows(out: Any, K: Any, rows: Any, weights: Any, moved: Any = None) -> None:
    """Add Σ_j w_j K[rows_j] to `out`, summed in float64; `moved` may hold the indices j and their number."""
    n, m = K.shape[1], len(rows)
    columns, tile_rows = _TILE
    indices, count = (rows, rows) if moved is None else moved
    with on(K):
        _add_rows[(triton.cdiv(n, columns),)](
            K,
            rows,
            weights,
            indices,
            count,
            out,
            n,
            m,
            RESTRICTED=moved is not None,
            BN=columns,
            BJ=tile_rows,
            num_warps=4,
        )
