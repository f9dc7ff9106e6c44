"""What the steps work on: samples, and w in coordinates of some kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from mercer import _core
from mercer.arrays import Flags, Floats, Indices, gamma, inner, is_sparse, row_blocks, take
from mercer.certificates.descent import FeatureSpace
from mercer.gram.ball import Ball
from mercer.gram.gram import Gram
from mercer.solvers.pegasos.iterates import Counts, Iterates

# Kernel rows that are computed at a time, and draws that are searched for rows that will be needed.
_ROWS_PER_FETCH, _DRAWS_AHEAD = 256, 4096

Outputs = Callable[[Floats], Floats]


@dataclass(frozen=True, eq=False)
class Call:
    """What every call into the core is told."""

    iterates: Iterates
    lam: float
    project: bool
    counts: Counts | None  # violations per machine and row


class Space(FeatureSpace, Protocol):
    """Samples to descend on."""

    n: int
    size: int  # coordinates of w
    cost: int  # entries that a step touches

    def run(self, machine: int, signs: Floats, draws: Indices, call: Call) -> None:
        """Lines 3 to 6 for every draw."""

    def split(self, rows: Indices, others: Indices) -> tuple[Space, Outputs]:
        """The space of some rows alone, and the outputs of its w on the others."""


class LinearSpace:
    """Rows of a dense or CSR matrix, followed by a constant 1 where the bias is regularised; w is a plain vector."""

    positive_definite = "yes"

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

    def split(self, rows: Indices, others: Indices) -> tuple[LinearSpace, Outputs]:
        return LinearSpace(take(self.X, rows), bias=self.bias), LinearSpace(
            take(self.X, others), bias=self.bias
        ).outputs

    def outputs(self, w: Floats) -> Floats:
        d = self.X.shape[1]
        f = np.full(self.n, w[d] if self.bias else 0.0)
        for some in self._slices():
            f[some] += self.X[some] @ w[:d]
        return f

    def square(self, w: Floats, outputs: Floats) -> float:
        return inner(w, w)

    def combine(self, beta: Floats) -> Ball:
        w, size = np.zeros(self.X.shape[1]), np.zeros(self.X.shape[1])
        for some in self._slices():
            part = self.X[some]
            w += part.T @ beta[some]
            size += abs(part).T @ np.abs(beta[some])
        if self.bias:
            w, size = np.append(w, beta.sum()), np.append(size, np.abs(beta).sum())
        return Ball(w, gamma(2 * self.n + 16) * size)

    def outputs_bound(self, w: Ball) -> Ball:
        d = self.X.shape[1]
        spread = gamma(2 * self.cost + 16) * np.abs(w.value) + 2 * w.error
        size = np.full(self.n, spread[d] if self.bias else 0.0)
        for some in self._slices():
            size[some] += abs(self.X[some]) @ spread[:d]
        return Ball(self.outputs(w.value), size)

    def square_bound(self, w: Ball, outputs: Ball) -> Ball:
        square, off = inner(w.value, w.value), inner(np.abs(w.value) + w.size, w.error)
        return Ball(square, off + gamma(self.size + 8) * (square + off))

    def _slices(self) -> Iterator[slice]:
        """Some rows at a time, so that float32 data are not copied to float64 as a whole."""
        return row_blocks(self.n, 8 * self.cost)


class KernelSpace:
    """Rows of a Gram matrix; w is given by its coefficients, those of older vectors first, which no draw meets.

    A row of K is computed when a step first adds its sample to θ, and kept while the budget lasts.
    """

    def __init__(self, gram: Gram, *, bias: bool, older: int = 0, u: Floats | None = None) -> None:
        self.gram, self.shift, self._older = gram, float(bias), older
        self.n, self.size, self.cost = gram.n, older + gram.n, gram.n
        self.positive_definite = gram.positive_definite
        self._u = u  # ⟨θ, φ(x_i)⟩ per machine and row, of the older vectors to begin with
        self._slot = np.full(self.n, -1, dtype=np.int64)
        # Half of the budget is for the rows that are kept, an eighth for those on their way, which exist twice.
        rows = gram.budget // (16 * max(1, self.n))
        self._rows = np.empty((max(1, min(self.n, rows)), self.n))
        self._at_a_time = max(1, min(_ROWS_PER_FETCH, rows // 4, len(self._rows)))
        self._used = 0

    def run(self, machine: int, signs: Floats, draws: Indices, call: Call) -> None:
        iterates, old = call.iterates, self._older
        if self._u is None:
            self._u = np.array([self.outputs(theta) for theta in iterates.theta])
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
            self._fetch(draws[done : done + _DRAWS_AHEAD], signs * u < call.lam * (t + done + 1))

    def _fetch(self, draws: Indices, violating: Flags) -> None:
        """Compute the rows of the next draws that are missing and, as things stand, will be needed."""
        needed = violating[draws]
        needed[0] = True  # this one has stopped the core
        wanted = draws[(self._slot[draws] < 0) & needed]
        _, first = np.unique(wanted, return_index=True)
        wanted = wanted[np.sort(first)][: self._at_a_time]
        if self._used + len(wanted) > len(self._rows):
            self._slot[:] = -1
            self._used = 0
        places = np.arange(self._used, self._used + len(wanted))
        self._rows[places] = self.gram.block(wanted, np.arange(self.n))
        self._slot[wanted] = places
        self._used += len(wanted)

    def split(self, rows: Indices, others: Indices) -> tuple[KernelSpace, Outputs]:
        gram, shift = self.gram, self.shift

        def outputs(w: Floats) -> Floats:
            coefficients = np.zeros(gram.n)
            coefficients[rows] = w
            return np.asarray(gram.product(coefficients, others) + shift * w.sum())

        return KernelSpace(gram.view(rows), bias=bool(shift)), outputs

    def outputs(self, w: Floats) -> Floats:
        new = w[self._older :]
        kept = np.flatnonzero(self._slot >= 0)  # rows that the steps have computed
        coefficients = np.zeros(self._used)
        coefficients[self._slot[kept]] = new[kept]
        u = np.einsum("i,ij->j", coefficients, self._rows[: self._used])
        rest = np.where(self._slot < 0, new, 0.0)
        if rest.any():
            u += self.gram.product(rest)
        return np.asarray(u + self.shift * w.sum())

    def square(self, w: Floats, outputs: Floats) -> float:
        return inner(w, outputs)

    def combine(self, beta: Floats) -> Ball:
        return Ball(beta, np.zeros_like(beta))

    def outputs_bound(self, w: Ball) -> Ball:
        """Of coordinates that are right up to a few roundings: the bounds of the Gram are far above these."""
        u, e = self.gram.product_bound(w.value)
        mass = self.shift * float(np.abs(w.value).sum())
        return Ball(u + self.shift * w.value.sum(), e + gamma(self.n + 8) * mass + gamma(2) * (np.abs(u) + mass))

    def square_bound(self, w: Ball, outputs: Ball) -> Ball:
        size = inner(np.abs(w.value), np.abs(outputs.value))
        off = inner(w.size, outputs.error) + inner(w.error, np.abs(outputs.value))
        return Ball(inner(w.value, outputs.value), off + gamma(self.n + 8) * (size + off))
