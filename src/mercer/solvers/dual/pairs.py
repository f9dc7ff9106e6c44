"""The pairs of a one-against-one machine, all of them in one call: many small problems on blocks of samples they share.

Each is a `DualProblem` with one variable per sample, those of one class and then those of another, and at most one
equality, Σβ = 0. One by one they would cost more in Python than in arithmetic, and each would compute its whole matrix.
Here the core computes the kernel values within a class once for all pairs, and between classes only the rows that steps
need (src/core/solve/pairs.hpp). The certificates rest on float64 values that are computed only for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from mercer import _core
from mercer.arrays import Floats, Indices
from mercer.certificates.certificate import Certificate
from mercer.certificates.dual import PROOF
from mercer.certificates.pairs import pair_certificate
from mercer.gram.gram import Gram
from mercer.problems.dual_problem import DualProblem
from mercer.solution import Solution, Stop, StopReason
from mercer.solvers.refine import progressed

# With more variables than this, passes over all of them in every step cost more than working sets.
_MOST_VARIABLES = 2500
# After this many steps per variable of the largest pair, the general solver and its Newton steps take over.
_STEPS_PER_VARIABLE = 20

Blocks = tuple[Indices, Indices]


def fits(problem: DualProblem) -> bool:
    """Whether `solve_pairs` can solve a problem: it is small, and has at most one equality, Σβ = 0."""
    simple = len(problem.totals) <= 1 and not problem.totals.any() and not problem.twins
    return simple and problem.n_variables <= _MOST_VARIABLES


def solve_pairs(
    problems: Sequence[DualProblem], blocks: Sequence[Blocks], gram: Gram, stop: Stop, n_threads: int
) -> list[tuple[Solution, Certificate | None]] | None:
    """A solution of each problem, with a certificate if that meets `stop`; without one it is a start for other solvers.

    Blocks that are the same array are one block; either all problems have an equality, or none has. The result is None
    if the core cannot do this for the kernel and the data.
    """
    layout = _Layout.of(blocks)
    if not layout.affordable(gram, n_threads):
        return None
    samples, exact = (
        gram.prepared(np.arange(gram.n), dtype, whole=True)[0] for dtype in (gram.precisions[0], np.float64)
    )
    if not all(isinstance(form, _core.Samples) and form.dense for form in (samples, exact)):
        return None
    p, lower, upper, d = (
        np.concatenate([getattr(one, name) for one in problems]) for name in ("p", "lower", "upper", "d")
    )
    if (lower > 0).any() or (upper < 0).any():  # they start from β = 0
        return None
    beta, u, paired = np.zeros(len(p)), np.zeros(len(p)), bool(len(problems[0].totals))
    steps, last = np.zeros(len(problems), dtype=np.int64), np.full(len(problems), np.inf)
    proofs: list[Certificate | None] = [None] * len(problems)
    latest = list(proofs)
    which, unit = np.arange(len(problems)), gram.unit_errors(layout.largest)
    while len(which):
        # Iterative refinement: a return starts from the gradient that the certificate found.
        part, v = layout.of_pairs(which), layout.variables(which)
        fixed, now = (lower[v], upper[v], d[v]), beta[v]
        most = min(_STEPS_PER_VARIABLE * part.largest, stop.max_iter - int(steps.max()))
        taken, reasons, values = samples.solve_pairs(
            *part.arrays,
            gram.diagonal,
            p[v] - u[v] - d[v] * now,
            now,
            *fixed,
            paired,
            0.5 * stop.tol,
            most,
            stop.seconds,
            n_threads,
        )
        products = np.zeros(len(now))
        exact.add_pairs(*part.arrays, now, products, n_threads)
        error = part.errors(unit, now) + 4 * np.finfo(float).eps * (np.abs(p[v]) + np.abs(products))
        found = _core.pair_findings(part.offsets, p[v], *fixed, products, error, now, paired, n_threads)
        gram.evaluations += values + int(np.add.reduceat(now != 0, part.offsets[:-1]) @ np.diff(part.offsets))
        beta[v], u[v], steps[which] = now, products, steps[which] + taken
        again = []
        for t, findings, reason in zip(which.tolist(), found, reasons, strict=True):
            latest[t] = certificate = pair_certificate(findings, paired, PROOF[gram.positive_definite])
            if stop.met(certificate):
                proofs[t] = certificate
            elif reason == "converged" and certificate.violation > stop.tol and progressed(certificate, last[t]):
                again.append(t)
            last[t] = certificate.violation
        which = np.array(again if stop.seconds else [], dtype=np.intp)
    over = stop.limit(0)
    if over is not None:  # no time to go on from here: the last certificates say what was reached
        proofs = latest
    cuts = [slice(begin, end) for begin, end in pairwise(layout.offsets.tolist())]
    return [
        (Solution(beta[cut], taken, "stalled" if one is None else _end(stop, one), u=u[cut]), one)
        for cut, taken, one in zip(cuts, steps.tolist(), proofs, strict=True)
    ]


def _end(stop: Stop, certificate: Certificate) -> StopReason:
    return "converged" if stop.met(certificate) else "max_time"


@dataclass(frozen=True, eq=False)
class _Layout:
    """The blocks one after another, the two blocks of each pair, and where the variables of each pair begin."""

    members: Indices
    starts: Indices
    pairs: Indices
    offsets: Indices

    @classmethod
    def of(cls, blocks: Sequence[Blocks]) -> _Layout:
        known: dict[int, tuple[int, Indices]] = {}
        for both in blocks:
            for block in both:
                known.setdefault(id(block), (len(known), block))
        distinct = [block for _, block in known.values()]
        pairs = np.array([[known[id(block)][0] for block in both] for both in blocks])
        starts = np.cumsum([0, *map(len, distinct)])
        return cls(np.concatenate(distinct), starts, pairs.ravel(), _offsets(starts, pairs))

    def of_pairs(self, which: Indices) -> _Layout:
        """The same for some of the pairs."""
        pairs = self.pairs.reshape(-1, 2)[which]
        return _Layout(self.members, self.starts, pairs.ravel(), _offsets(self.starts, pairs))

    def variables(self, which: Indices) -> Any:
        """Where the variables of these pairs are among those of all."""
        if len(which) == len(self.offsets) - 1:
            return slice(None)
        return np.concatenate([np.arange(self.offsets[t], self.offsets[t + 1]) for t in which])

    def errors(self, unit: Floats, beta: Floats) -> Floats:
        """How far each u = Kβ can be from the true one, with what each row errs by for ‖β‖₁ = 1."""
        lengths = np.diff(self.starts)[self.pairs]
        ends = np.cumsum(lengths)
        rows = self.members[np.repeat(self.starts[self.pairs] - (ends - lengths), lengths) + np.arange(len(beta))]
        l1 = np.add.reduceat(np.abs(beta), self.offsets[:-1])
        return np.asarray(unit[rows] * np.repeat(l1, np.diff(self.offsets)))

    @property
    def arrays(self) -> tuple[Indices, ...]:
        return self.members, self.starts, self.pairs, self.offsets

    @property
    def largest(self) -> int:
        return int(np.diff(self.offsets).max())

    def affordable(self, gram: Gram, n_threads: int) -> bool:
        """Whether the prepared samples, in both precisions, and the kernel values that the core keeps fit the budget.

        The core keeps K within each block, and rows of K for the pair that each thread works on.
        """
        edge = 64.0  # rows that padding to whole tiles may add
        kept = float(((np.diff(self.starts) + edge) ** 2).sum()) + n_threads * (self.largest + edge) ** 2
        matrix = kept * np.dtype(gram.precisions[0]).itemsize
        return bool(8 * gram.n * gram.bytes_per_row + 2 * matrix <= gram.budget)


def _offsets(starts: Indices, pairs: Indices) -> Indices:
    return np.cumsum([0, *np.diff(starts)[pairs].sum(axis=1)])
