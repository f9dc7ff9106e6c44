"""The pairs of a one-against-one machine, all of them in one call: many small problems on blocks of samples they share.

Each is the problem of `mercer.problems.dual_problem` with one variable per sample, the samples of one class and then those
of another, and at most one equality, Σβ = 0. One by one they would cost more in Python than in arithmetic, and each would
compute its whole matrix: here the core keeps what a class has to do with itself once for all pairs, and computes across
classes only the rows that steps ask for (src/core/pairs.hpp). The certificates rest on fresh float64 values of their own.

What the certificate does not yet accept is for the general solver, which starts from what was reached.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer import _core
from mercer.arrays import Floats, Indices
from mercer.certificate import Certificate, Proves, proof
from mercer.gram.gram import Gram
from mercer.problems.dual_problem import DualProblem
from mercer.solution import Solution, Stop

# Beyond so many variables a step's passes over all of them cost more than a working set does.
_LARGEST = 2500
# Steps per variable before the general solver looks at a pair: it has more than pair steps.
_STEPS = 20

Blocks = tuple[Indices, Indices]


def fits(problem: DualProblem, blocks: Blocks | None) -> bool:
    """Whether a problem may be one for `solve_pairs`: it is small, and has no more than one equality, Σβ = 0."""
    return (
        blocks is not None
        and problem.n_variables <= _LARGEST
        and not problem.twins
        and len(problem.totals) <= 1
        and not problem.totals.any()
    )


def solve_pairs(
    problems: Sequence[DualProblem], blocks: Sequence[Blocks], gram: Gram, stop: Stop, n_threads: int
) -> list[tuple[Solution, Certificate | None]] | None:
    """A solution for each problem, with its certificate where that says that `stop` is met.

    Blocks that are the same array are the same block. None where the core cannot do this for the kernel and the data.
    """
    layout = _Layout.of(blocks)
    if not layout.affordable(gram, n_threads):
        return None
    everything, single = np.arange(gram.n), gram.precisions[0]
    samples, exact = (gram.prepared(everything, dtype, whole=True)[0] for dtype in (single, np.float64))
    if not all(isinstance(form, _core.Samples) and form.dense for form in (samples, exact)):
        return None
    p, lower, upper, d = (np.concatenate([getattr(one, name) for one in problems]) for name in ("p", "lower", "upper", "d"))
    if (lower > 0).any() or (upper < 0).any():  # they start from β = 0
        return None
    beta, u, paired = np.zeros(len(p)), np.zeros(len(p)), bool(len(problems[0].totals))
    seconds = max(0.0, stop.deadline - time.monotonic())
    most = min(_STEPS * max(one.n_variables for one in problems), stop.max_iter)
    steps, reasons = samples.solve_pairs(
        *layout.arrays, gram.diagonal, p, beta, lower, upper, d, paired, 0.5 * stop.tol, most, seconds, n_threads
    )
    exact.add_pairs(*layout.arrays, beta, u, n_threads)
    findings = _core.pair_findings(layout.offsets, p, lower, upper, d, u, beta, paired, n_threads)
    gram.evaluations += layout.evaluations(beta)
    proves, out = proof(gram.positive_definite), []
    for t, (found, begin, end) in enumerate(zip(findings, layout.offsets, layout.offsets[1:], strict=False)):
        certificate = _certificate(found, paired, proves)
        close = stop.gap_tol == np.inf or certificate.gap <= stop.gap_tol * abs(certificate.dual)
        reached = certificate.violation <= stop.tol and close
        solution = Solution(beta[begin:end], steps[t], "converged" if reached else "stalled", u=u[begin:end])
        out.append((solution, certificate if reached else None))
    return out


@dataclass(frozen=True, eq=False)
class _Layout:
    """The blocks one after another, which two of them each pair is about, and where its variables begin."""

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
        sizes = np.diff(starts)[pairs].sum(axis=1)
        return cls(np.concatenate(distinct), starts, pairs.ravel(), np.cumsum([0, *sizes]))

    @property
    def arrays(self) -> tuple[Indices, ...]:
        return self.members, self.starts, self.pairs, self.offsets

    def affordable(self, gram: Gram, n_threads: int) -> bool:
        """Whether what the core keeps, in float32 or float64, is within half of the budget."""
        sizes, largest = np.diff(self.starts), int(np.diff(self.offsets).max()) + 64
        kept = float(((sizes + 64.0) ** 2).sum()) + n_threads * float(largest) ** 2
        return kept * np.dtype(gram.precisions[0]).itemsize <= gram.budget / 2

    def evaluations(self, beta: Floats) -> int:
        return 0


def _certificate(found: Any, paired: bool, proves: Proves) -> Certificate:
    losses, shares, total, worst, box, outward, inward, top, bottom, b, energy, gain, curved = found
    return Certificate(
        primal=0.5 * energy + losses,
        dual=gain - 0.5 * energy - 0.5 * curved,
        gap=shares,
        violation=max(0.0, top - bottom) if paired else max(0.0, top, -bottom),
        kkt={
            "dual feasibility: box": box,
            "dual feasibility: equality": abs(total) if paired else 0.0,
            "primal feasibility": outward,
            "complementary slackness": inward,
        },
        proves=proves,
        worst=worst,
        b=(b,) if paired else (),
    )
