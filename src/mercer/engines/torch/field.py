"""The state of a solve on a device: β, u = Kβ, the choice of working sets and dropping stay there.

Blocks of K on the working set come to this machine, where the core takes pair steps on them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.arrays import Floats, Indices, Precision, Values
from mercer.engines.torch.numbers import dtype_of, floats, places, to_device, to_host, torch

if TYPE_CHECKING:
    from mercer.engines.torch.gram import TorchGram
    from mercer.gram.gram import Field
    from mercer.problems.dual_problem import DualProblem

# A shrink must remove at least this share of the active variables, and drops those outside the ends of their group by
# this share of the violation; as in gram/host_field.py.
_SHRINK_SHARE, _SHRINK_MARGIN_SHARE = 0.2, 0.1
_INFINITY = float("inf")


class TorchField:
    """A `Field` on a torch device."""

    def __init__(self, gram: TorchGram, problem: DualProblem, beta: Floats, u: Floats, dtype: Precision) -> None:
        self.gram, self.problem, self.beta = gram, problem, beta.copy()
        self._precision, self._dtype, like = dtype, dtype_of(dtype), gram.like
        self._fixed = [to_device(values, like) for values in (problem.p, problem.lower, problem.upper, problem.d)]
        self._row, self._group = places(problem.row, like), to_device(problem.group, like)
        self._all_beta, self._all_u = to_device(self.beta, like).clone(), to_device(u, like).clone()
        self._dropped: list[tuple[Any, Any]] = []  # rows, and β at the moment they were dropped
        self._pinned: Any = None
        self._everything()

    def _everything(self) -> None:
        """All variables are active."""
        self._activate(torch.arange(self.problem.n_variables, device=self._row.device))

    def _activate(self, which: Any) -> None:
        """These variables are active from now on; u is taken over for their rows."""
        whole = len(which) == self.problem.n_variables
        self._which = which
        self._p, self._lower, self._upper, self._d = (values if whole else values[which] for values in self._fixed)
        self._g = self._group if whole else self._group[which]
        self._b = self._all_beta[which]
        rows = self._row if whole else self._row[which]
        if self.problem.twins:
            self._rows, self._at = torch.unique(rows, return_inverse=True)
        else:
            self._rows, self._at = rows, None
        every = whole and not self.problem.twins
        self._samples = self.gram.prepared_rows(None if every else self._rows, self._dtype)
        self._u = self._all_u[self._rows]
        self._previous = torch.empty(0, dtype=torch.int64, device=which.device)
        self._chosen: Indices | None = None
        self._place: Any = None
        self._positions: Any = None
        self._gradient: Any = None
        self._ends: tuple[float, Floats, Floats] | None = None
        self._n_active = len(which)

    # --- what the loop asks -----------------------------------------------------------------------------------------

    @property
    def active(self) -> Indices:
        return np.asarray(to_host(self._which), dtype=np.intp) if self._n_active < len(self.beta) else self._host_range

    @property
    def _host_range(self) -> Indices:
        return np.arange(len(self.beta))

    @property
    def u(self) -> Floats:
        out = self._all_u.clone()
        out[self._rows] = self._u
        return floats(out)

    @property
    def shrunk(self) -> bool:
        return bool(self._dropped)

    def violation(self) -> tuple[float, Floats, Floats]:
        if self._ends is None:
            u = self._u if self._at is None else self._u[self._at]
            self._gradient = self._p - u - self._d * self._b
            self._up, self._low = self._b < self._upper, self._b > self._lower
            top = torch.where(self._up, self._gradient, -_INFINITY)
            bottom = torch.where(self._low, self._gradient, _INFINITY)
            groups = len(self.problem.totals)
            if groups <= 1:
                tops, bottoms = top.max()[None], bottom.min()[None]
                if groups == 0:
                    tops, bottoms = tops.clamp(min=0.0), bottoms.clamp(max=0.0)
            else:
                tops = torch.stack([torch.where(self._g == g, top, -_INFINITY).max() for g in range(groups)])
                bottoms = torch.stack([torch.where(self._g == g, bottom, _INFINITY).min() for g in range(groups)])
            ends = floats(torch.stack([tops, bottoms]))
            worst = np.max(ends[0] - ends[1]) if groups else max(ends[0, 0], -ends[1, 0])
            self._ends = (max(float(worst), 0.0) if worst == worst else _INFINITY, ends[0], ends[1])
        return self._ends

    def violators(self, q: int, keep: float) -> Indices:
        _, tops, bottoms = self.violation()
        if q >= self._n_active:
            self._place = torch.arange(self._n_active, device=self._which.device)
        else:
            free = self._up[self._previous] & self._low[self._previous]
            kept = self._previous[torch.argsort((~free).to(torch.int8), stable=True)[: int(q * keep)]]
            self._place = torch.cat([self._worst(kept, q - len(kept), tops, bottoms), kept])
            self._previous = self._place  # newest first: which free ones are kept matters
        self._chosen = np.asarray(to_host(self._which[self._place]), dtype=np.intp)
        return self._chosen

    def _at_places(self, J: Indices) -> Any:
        """Where variables stand among the active ones."""
        if J is self._chosen:
            return self._place
        if self._n_active == self.problem.n_variables:
            return places(J, self._which)
        if self._positions is None:
            self._positions = torch.full((self.problem.n_variables,), -1, dtype=torch.int64, device=self._which.device)
            self._positions[self._which] = torch.arange(self._n_active, device=self._which.device)
        return self._positions[places(J, self._which)]

    def inside(self, J: Indices) -> Field:
        rows = np.unique(self.problem.row[J]) if self.problem.twins else np.sort(J)
        at = (
            torch.searchsorted(self._rows, places(rows, self._rows))
            if len(self._rows) < self.gram.n
            else places(rows, self._rows)
        )
        part = self.problem.restricted(J, rows, self.beta, floats(self._u[at]))
        return self.gram.view(rows).field(part, self.beta[J], np.zeros(len(rows)), self._precision)

    def _worst(self, kept: Any, size: int, tops: Floats, bottoms: Floats) -> Any:
        """The worst violators that are active and not kept, of every group and side as many."""
        h, groups = self._gradient, len(self.problem.totals)
        open_ = torch.ones(self._n_active, dtype=torch.bool, device=h.device)
        open_[kept] = False
        up, low = self._up & open_, self._low & open_
        if groups == 0:
            gain = torch.maximum(torch.where(up, h, -_INFINITY), torch.where(low, -h, -_INFINITY))
            found = torch.topk(gain, min(size, len(gain)))
            return found.indices[found.values > 0]
        sides = []
        for g in range(groups):
            own = self._g == g if groups > 1 else open_
            sides.append(torch.where(up & own & (h > float(bottoms[g])), h, -_INFINITY))
            sides.append(torch.where(low & own & (h < float(tops[g])), -h, -_INFINITY))
        share = max(1, size // len(sides))
        parts = []
        for scores in sides:
            found = torch.topk(scores, min(share, len(scores)))
            parts.append(found.indices[found.values > -_INFINITY])
        chosen = torch.cat(parts)
        first = torch.full((self._n_active,), len(chosen), dtype=torch.int64, device=h.device)
        turn = torch.arange(len(chosen), device=h.device)
        first.scatter_reduce_(0, chosen, turn, "amin")
        return chosen[first[chosen] == turn]  # a free variable is on both sides

    def gradient(self, J: Indices) -> Floats:
        if self._gradient is None:
            self.violation()
        return floats(self._gradient[self._at_places(J)])

    def block(self, J: Indices) -> Values:
        place = self._at_places(J)
        at = place if self._at is None else self._at[place]
        own = self._samples[at]
        K = self.gram.device_block(own, own, self._dtype)
        size = len(at)
        if K.device.type == "cpu":
            return np.asarray(to_host(K))
        if self._pinned is None or self._pinned.numel() < size * size:
            self._pinned = torch.empty(size * size, dtype=K.dtype, pin_memory=True)
        held = self._pinned[: size * size].view(size, size)
        held.copy_(K)
        return np.asarray(held.numpy())

    def move(self, J: Indices, beta: Floats) -> None:
        new, place = to_device(beta, self._b), self._at_places(J)
        delta = new - self._b[place]
        self.beta[J] = beta
        self._b[place] = new
        self._all_beta[self._which[place]] = new
        self._ends = self._gradient = None
        changed = torch.nonzero(delta).ravel()
        if len(changed):
            at = place[changed] if self._at is None else self._at[place[changed]]
            self._u += self.gram.device_sums(self._samples, self._samples[at], delta[changed], self._dtype)

    def shrink(self) -> bool:
        violation, tops, bottoms = self.violation()
        margin = _SHRINK_MARGIN_SHARE * violation
        h, groups = self._gradient, max(1, len(self.problem.totals))
        if groups == 1:
            low_end, high_end = float(bottoms[0]) - margin, float(tops[0]) + margin
        else:
            low_end, high_end = (to_device(ends, h)[self._g.long()] for ends in (bottoms - margin, tops + margin))
        stay = (self._up & self._low) | (self._up & (h >= low_end)) | (self._low & (h <= high_end))
        left = int(stay.sum())
        if left > (1 - _SHRINK_SHARE) * self._n_active:
            return False
        previous = self._which[self._previous]
        self._all_u[self._rows] = self._u
        before, which = self._rows, self._which[stay]
        then = self._all_beta.clone()
        self._activate(which)
        gone = torch.ones(self.gram.n, dtype=torch.bool, device=which.device)
        gone[self._rows] = False
        self._dropped.append((before[gone[before]], then))
        place = torch.full((self.problem.n_variables,), -1, dtype=torch.int64, device=which.device)
        place[which] = torch.arange(len(which), device=which.device)
        kept = place[previous]
        self._previous = kept[kept >= 0]
        return True

    def unshrink(self) -> None:
        self._all_u[self._rows] = self._u
        for rows, then in self._dropped:
            change = self._all_beta - then
            moved = torch.nonzero(change).ravel()
            if len(moved) and len(rows):
                own = self.gram.prepared_rows(rows, self._dtype)
                sources = self.gram.prepared_rows(self._row[moved], self._dtype)
                self._all_u[rows] += self.gram.device_sums(own, sources, change[moved], self._dtype)
        self._dropped = []
        self._everything()
