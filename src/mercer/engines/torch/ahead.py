"""Rounds of the decomposition that a device takes by itself: choosing, blocks, pair steps and sums.

A round of the loop on this machine waits for the device several times, and a device is idle while the core takes pair
steps. Here rounds follow each other there without a wait, and this machine looks once in a while how far they are. What
they do is the loop's (solvers/dual/decomposition.py): half of a block is kept, free variables first, and the rest are
the worst violators of both sides. It needs one equality, and Triton for the pair steps. A step costs about as much as
the core's while blocks are small; where free variables crowd them, the loop goes on with larger ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer import _core
from mercer.arrays import Floats
from mercer.engines.torch import fused
from mercer.engines.torch.numbers import floats, places, to_device, torch
from mercer.problems.dual_problem import DualProblem

# Variables of a block, and of one that free variables crowd: more than the share of it. Of so many variables in all the
# loop's own rounds, with still larger blocks, would take longer (mixture of a million: 25 ms instead of 8).
_BLOCK, _LARGEST, _CROWDED_SHARE, _MANY = 1024, 2048, 0.6, 150_000
# A block is solved to this share of the violation; to the second one where it is crowded.
_INNER_SHARE, _CROWDED_INNER_SHARE = 0.3, 0.1
# Rounds between two looks.
_ROUNDS = 8
# They go on while they gain this share of what they have gained.
_LEAST_GAIN = 1e-9
_INFINITY = float("inf")


class Ahead:
    """β, u = Kβ and the last block of a problem, on a device; one more variable, which never moves, fills gaps."""

    def __init__(self, gram: Any, samples: Any, problem: DualProblem, dtype: Any) -> None:
        self._gram, self._samples, self._dtype, self._n = gram, samples, dtype, problem.n_variables
        self._p, self._lower, self._upper, self._d = (
            to_device(np.append(values, 0.0), gram.like)
            for values in (problem.p, problem.lower, problem.upper, problem.d)
        )
        self._curved = bool(problem.d.any())
        self._row = places(np.append(problem.row, 0), gram.like) if problem.twins else None
        self._size, self._share = min(_BLOCK, self._n), _INNER_SHARE
        self._previous = torch.empty(0, dtype=torch.int64, device=gram.like.device)
        self._ends = torch.empty(2, dtype=torch.float64, device=gram.like.device)
        self._told = torch.zeros(1, dtype=torch.int32, device=gram.like.device)
        self._gain, self._gained = torch.zeros(1, dtype=torch.float64, device=gram.like.device), 0.0
        self.over = False  # whether the loop had better go on

    def run(self, beta: Floats, u: Floats, tol: float, most: int, until: Any) -> int:
        """Rounds from here until a violation, a number of steps or `until()`; β and u are overwritten."""
        self._b, self._u = to_device(np.append(beta, 0.0), self._p).clone(), to_device(u, self._p).clone()
        taken = 0
        while True:
            for _ in range(_ROUNDS):
                self._round(0.5 * tol)
            _core.check_stop()
            free = self._movable(self._previous).all(dim=0).sum()
            top, bottom, steps, crowd, gain = floats(torch.cat([self._ends, self._told, free[None], self._gain]))
            self._told.zero_()
            self._gain.zero_()
            taken += int(steps)
            violation, self._gained = top + bottom, self._gained + gain
            if crowd > _CROWDED_SHARE * self._size:
                self.over = self._size >= min(_LARGEST, self._n) and self._n < _MANY
                self._size, self._share = min(2 * self._size, _LARGEST, self._n), _CROWDED_INNER_SHARE
            self.over |= not (steps > 0 and violation < _INFINITY and gain > _LEAST_GAIN * self._gained)
            if self.over or violation <= tol or taken >= most or until():
                break
        beta[:], u[:] = floats(self._b)[:-1], floats(self._u)
        return taken

    def _movable(self, J: Any) -> Any:
        b = self._b[J]
        return torch.stack([b < self._upper[J], b > self._lower[J]])

    def _round(self, least: float) -> None:
        n = self._n
        h = self._p.clone()
        h[:n] -= self._u if self._row is None else self._u[self._row[:n]]
        if self._curved:
            h -= self._d * self._b
        sides = torch.stack([h, -h])
        sides.masked_fill_(~torch.stack([self._b < self._upper, self._b > self._lower]), -_INFINITY)
        self._ends = sides.amax(dim=1)
        kept = self._previous
        if len(kept):
            free = self._movable(kept).all(dim=0)
            kept = kept[torch.argsort(free.to(torch.int8), descending=True, stable=True)[: self._size // 2]]
            sides.index_fill_(1, kept, -_INFINITY)
        worst = torch.topk(sides, (self._size - len(kept)) // 2, dim=1)
        chosen = torch.where(worst.values > -self._ends.flip(0)[:, None], worst.indices, n)
        seen = torch.zeros(n + 1, dtype=torch.bool, device=h.device)
        seen[chosen[0]] = True
        chosen[1].masked_fill_(seen[chosen[1]], n)  # a free variable is on both sides
        J = torch.cat([chosen[0], chosen[1], kept])
        rows = J.clamp(max=n - 1) if self._row is None else self._row[J]
        own, before = self._samples[rows], self._b[J]
        K = self._gram.device_block(own, own, self._dtype)
        after = fused.pair_steps(
            K, h[J], before, self._lower[J], self._upper[J], self._d[J], self._ends, self._told, self._share, least
        )
        change = after - before
        curved = torch.mv(K, change.to(self._dtype)).double() + self._d[J] * change
        self._gain += change @ (h[J] - 0.5 * curved)
        self._b[J] = after  # what fills gaps stays zero
        self._u += self._gram.device_sums(self._samples, own, change, self._dtype)
        self._previous = J
