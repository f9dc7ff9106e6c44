"""Stochastic subgradient descent for the soft margin, linear and with kernels.

Shalev-Shwartz, "SGD for solving Soft-SVM" and "with Kernels":

    minimise  F(w) = (λ/2)‖w‖² + Σ p_i max(0, 1 − y_i⟨w, φ(x_i)⟩),    p_i = weight_i / Σ weights

    1  θ = 0                             in the kernel form θ = Σ β_jφ(x_j): the coefficients β = 0
    2  for t = 1, …, T
    3      w = θ / (λt)
    4      choose i with probability p_i
    5      if y_i⟨w, φ(x_i)⟩ < 1
    6          θ ← θ + y_iφ(x_i)         in the kernel form β_i ← β_i + y_i
    7  output: the mean of the w of line 3

Lines 2 to 6 are src/core/solve/pegasos.cpp; here are what they work on, and line 7. Line 3 is a subgradient step of
length 1/(λ(t + 1)), so after T steps the mean w̄ has E F(w̄) − min F ≤ 2R²(1 + ln T)/(λT), where R bounds ‖φ(x_i)‖.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mercer import _core
from mercer.arrays import Floats, Indices, inner, is_sparse
from mercer.gram.gram import Gram

Counts = NDArray[np.int64]

# Streams of the counter-based generator: draws with replacement, offsets of passes, validation parts, and from the last
# on the order of each pass.
_DRAWS, _OFFSETS, _PARTS, _ORDERS = range(4)

# One call into the core touches about this many entries, so that limits are looked at ten times a second.
_WORK = 50_000_000

# Entries of the data that are multiplied at a time outside of the core.
_SLICE = 2_000_000

# Kernel rows that are computed at a time, and how many draws are searched for those that will be needed.
_ROWS, _AHEAD = 256, 4096

_MOST_VISITS = 2**31


@dataclass(eq=False)
class Iterates:
    """θ of several machines (rows) after t common steps, and Σ θ/t over these steps."""

    theta: Floats
    total: Floats
    marks: Floats  # `total` at the last two powers of two up to t
    norm2: Floats  # ‖θ‖² of each, where the steps kept it
    t: int

    @classmethod
    def zero(cls, machines: int, size: int) -> Iterates:
        shape = (machines, size)
        return cls(np.zeros(shape), np.zeros(shape), np.zeros((2, *shape)), np.zeros(machines), 0)

    def resized(self, columns: Any) -> Iterates:
        """A copy with these columns."""
        parts = (self.theta[:, columns], self.total[:, columns], self.marks[:, :, columns])
        theta, total, marks = (np.array(part, order="C") for part in parts)
        return Iterates(theta, total, marks, self.norm2.copy(), self.t)

    def extended(self, count: int) -> Iterates:
        """A copy with more columns of zeros."""
        theta, total = (np.pad(part, ((0, 0), (0, count))) for part in (self.theta, self.total))
        return Iterates(theta, total, np.pad(self.marks, ((0, 0), (0, 0), (0, count))), self.norm2.copy(), self.t)

    def moved(self, steps: int) -> None:
        """The steps were made."""
        self.t += steps
        if _is_power_of_two(self.t):
            self.marks[0] = self.marks[1]
            self.marks[1] = self.total

    def output(self, lam: float, average: str) -> Floats:
        """Line 7: the mean of all w, of those since `suffix_start`, or the w that the next step would start from."""
        if self.t == 0:
            return np.zeros_like(self.theta)
        if average == "last":
            return np.asarray(self.theta / (lam * (self.t + 1)))
        if average == "all":
            return np.asarray(self.total / (lam * self.t))
        return np.asarray((self.total - self.marks[0]) / (lam * (self.t - suffix_start(self.t))))


def suffix_start(t: int) -> int:
    """The largest power of two up to t/2: the mean since then covers between half and three quarters of the steps.

    A power of two rather than half, so that a stream need not know its length.
    """
    return 1 << (t.bit_length() - 2) if t > 1 else 0


# --- line 4 ---------------------------------------------------------------------------------------------------------


def draw(seed: int, cumulative: Floats, t: int, count: int) -> Indices:
    """Rows for the steps after t, by inverse CDF over the cumulative weights, with replacement."""
    return _core.draw_rows(seed, _DRAWS, t, count, cumulative)


def one_pass(seed: int, number: int, weight: Floats) -> Indices:
    """Every row as often as its weight says, in random order; the fractions of weights by systematic sampling.

    The points s + offset, s = 0, 1, …, that lie below the total weight each choose the row whose stretch of the
    cumulative weights they fall into.
    """
    cumulative = np.cumsum(weight)
    if cumulative[-1] > _MOST_VISITS:
        raise ValueError(
            f"the weights add up to {cumulative[-1]:g}, and in a pass a weight is the number of visits: "
            f"at most {_MOST_VISITS} are made at once. Scale the weights down, or give smaller chunks"
        )
    # 20 bits of offset: s + offset is exact, and an integer weight that many visits.
    offset = float(_core.random_bits(seed, _OFFSETS, number, 1)[0] >> np.uint64(44)) * 2.0**-20
    points = offset + np.arange(int(np.ceil(cumulative[-1])))
    rows = np.searchsorted(cumulative, points[points < cumulative[-1]], side="right")
    order = np.argsort(_core.random_bits(seed, _ORDERS + number, 0, len(rows)), kind="stable")
    return np.asarray(rows[order])


def validation_part(seed: int, n: int, fraction: float) -> Indices:
    """A random part of n rows."""
    order = np.argsort(_core.random_bits(seed, _PARTS, 0, n), kind="stable")
    return np.sort(order[: max(1, round(fraction * n))])


# --- what the steps work on -----------------------------------------------------------------------------------------


class Space(Protocol):
    """Samples, and w in coordinates of some kind."""

    n: int
    size: int  # coordinates of w
    cost: int  # entries that a step touches

    def run(self, machine: int, signs: Floats, draws: Indices, call: Call) -> None:
        """Lines 3 to 6 for every draw."""

    def outputs(self, w: Floats) -> Floats:
        """⟨w, φ(x_i)⟩ for every row."""

    def square(self, w: Floats, outputs: Floats) -> float:
        """‖w‖²."""

    def combine(self, beta: Floats) -> Floats:
        """Σ β_iφ(x_i) in coordinates."""


@dataclass(frozen=True, eq=False)
class Call:
    """What every call into the core is told."""

    iterates: Iterates
    lam: float
    project: bool
    counts: Counts | None  # violations per machine and row


class LinearSpace:
    """Rows of a dense or CSR matrix, followed by a constant 1 where the bias is regularised; w is a plain vector."""

    def __init__(self, X: Any, *, bias: bool) -> None:
        self.X, self.bias = X, bias
        self.n, d = X.shape
        self.size = d + int(bias)
        self.cost = max(1, X.nnz // max(1, self.n)) if is_sparse(X) else d

    def run(self, machine: int, signs: Floats, draws: Indices, call: Call) -> None:
        theta, total = call.iterates.theta[machine], call.iterates.total[machine]
        counts = None if call.counts is None else call.counts[machine]
        norm2 = inner(theta, theta) if call.project else 0.0
        rest = (signs, draws, call.lam, call.iterates.t, call.project, norm2, theta, total, counts)
        if is_sparse(self.X):
            _core.pegasos_csr(self.X.data, self.X.indices, self.X.indptr, self.X.shape[1], *rest)
        else:
            _core.pegasos_dense(self.X, *rest)

    def outputs(self, w: Floats) -> Floats:
        d = self.X.shape[1]
        f = np.full(self.n, w[d] if self.bias else 0.0)
        for some in self._slices():
            f[some] += self.X[some] @ w[:d]
        return f

    def square(self, w: Floats, outputs: Floats) -> float:
        return inner(w, w)

    def combine(self, beta: Floats) -> Floats:
        w = np.zeros(self.X.shape[1])
        for some in self._slices():
            w += self.X[some].T @ beta[some]
        return np.append(w, beta.sum()) if self.bias else w

    def _slices(self) -> Iterator[slice]:
        """Some rows at a time, so that float32 data are not copied to float64 as a whole."""
        step = max(1, _SLICE // self.cost)
        return (slice(start, start + step) for start in range(0, self.n, step))


class KernelSpace:
    """Rows of a Gram matrix; w is given by its coefficients, those of older vectors first, which no draw meets.

    A row of K is computed when a step first adds its sample to θ, and kept while the budget lasts.
    """

    def __init__(self, gram: Gram, *, bias: bool, older: int = 0, u: Floats | None = None) -> None:
        self.gram, self.shift, self._older = gram, float(bias), older
        self.n, self.size, self.cost = gram.n, older + gram.n, gram.n
        self._u = u  # ⟨θ, φ(x_i)⟩ per machine and row, of the older vectors to begin with
        self._slot = np.full(self.n, -1, dtype=np.int64)
        self._rows = np.empty((max(1, min(self.n, gram.budget // (8 * self.n))), self.n))
        self._used = 0

    def run(self, machine: int, signs: Floats, draws: Indices, call: Call) -> None:
        iterates, old = call.iterates, self._older
        if self._u is None:
            self._u = np.zeros((len(iterates.theta), self.n))
        u, theta, total = self._u[machine], iterates.theta[machine], iterates.total[machine]
        counts = None if call.counts is None else call.counts[machine]
        t, done = iterates.t, 0
        while True:
            made, scale, mass, norm2 = _core.pegasos_kernel(
                self._rows,
                self._slot,
                self.shift,
                u,
                signs,
                draws[done:],
                call.lam,
                t + done,
                call.project,
                float(iterates.norm2[machine]),
                theta[old:],
                total[old:],
                counts,
            )
            total[:old] += mass * theta[:old]
            theta[:old] *= scale
            iterates.norm2[machine] = norm2
            done += made
            if done == len(draws):
                return
            self._fetch(draws[done : done + _AHEAD], signs * u < call.lam * (t + done + 1))

    def _fetch(self, draws: Indices, violating: NDArray[np.bool_]) -> None:
        """Compute the rows of the next draws that are missing and, as things stand, will be needed."""
        needed = violating[draws]
        needed[0] = True  # this one has stopped the core
        wanted = draws[(self._slot[draws] < 0) & needed]
        _, first = np.unique(wanted, return_index=True)
        wanted = wanted[np.sort(first)][: min(_ROWS, len(self._rows))]
        if self._used + len(wanted) > len(self._rows):
            self._slot[:] = -1
            self._used = 0
        places = np.arange(self._used, self._used + len(wanted))
        self._rows[places] = self.gram.block(wanted, np.arange(self.n))
        self._slot[wanted] = places
        self._used += len(wanted)

    def outputs(self, w: Floats) -> Floats:
        return np.asarray(self.gram.product(w[self._older :]) + self.shift * w.sum())

    def square(self, w: Floats, outputs: Floats) -> float:
        return inner(w, outputs)

    def combine(self, beta: Floats) -> Floats:
        return beta


def advance(space: Space, signs: Floats, draws: Indices, call: Call, deadline: float) -> int:
    """Make the steps of these draws for every machine (row of `signs`); how many there was time for."""
    made = 0
    for part in _parts(space, draws, call.iterates, len(signs)):
        if time.monotonic() >= deadline:
            break
        for machine in range(len(signs)):
            space.run(machine, signs[machine], part, call)
        call.iterates.moved(len(part))
        made += len(part)
    return made


def _parts(space: Space, draws: Indices, iterates: Iterates, machines: int) -> Iterator[Indices]:
    """The draws cut where t is a power of two, and into calls of bounded work."""
    most = max(1, _WORK // (space.cost * machines))
    begin = 0
    while begin < len(draws):
        to_power = (1 << iterates.t.bit_length()) - iterates.t
        end = min(len(draws), begin + most, begin + to_power)
        yield draws[begin:end]
        begin = end


def _is_power_of_two(t: int) -> bool:
    return t > 0 and t & (t - 1) == 0


def objective(space: Space, signs: Floats, probability: Floats, w: Floats, lam: float) -> float:
    """F(w) for one machine."""
    f = space.outputs(w)
    return 0.5 * lam * space.square(w, f) + inner(probability, np.maximum(0.0, 1.0 - signs * f))
