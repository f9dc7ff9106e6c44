"""The pairs of a one-against-one machine, all of them in one call: many small problems on blocks of samples they share.

Each is a `DualProblem` with one variable per sample, those of one class and then those of another, and at most one
equality, Σβ = 0. One by one they would cost more in Python than in arithmetic, and each would compute its whole matrix.
Here the core computes the kernel values within a class once for all pairs, and between classes only the rows that steps
need (src/core/solve/pairs.hpp). The certificates rest on float64 values that are computed
only for them. Sparse samples give all float64 values between two classes at once, which serve for both
(src/core/solve/sparse_pairs.cpp).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mercer import _core
from mercer.arrays import Flags, Floats, Indices, is_sparse
from mercer.certificates.dual import PROOF
from mercer.certificates.pairs import pair_certificates
from mercer.certificates.reach import roots
from mercer.certificates.table import CertificateTable
from mercer.gram.gram import Gram
from mercer.problems.dual_problem import DualProblem
from mercer.solution import Stop
from mercer.solvers.refine import progressed

# With more variables than this, passes over all of them in every step cost more than working sets. Working sets of
# sparse samples compute more values again (ten classes of Reuters: 0.7 s with this limit, 1.0 s with the other).
_MOST_VARIABLES, _MOST_SPARSE_VARIABLES = 2500, 6000
# After this many steps per variable of the largest pair, the general solver and its Newton steps take over.
_STEPS_PER_VARIABLE = 20
# Folds have no other solver than an ordinary fit of each.
_FOLD_STEPS_PER_VARIABLE = 200

Blocks = tuple[Indices, Indices]


@dataclass(frozen=True, eq=False)
class Together:
    """What one call for all pairs has reached: the variables of one pair after another, and which pairs are solved."""

    beta: Floats
    u: Floats
    steps: Indices
    certificates: CertificateTable
    solved: Flags
    over: bool = False  # whether the time is over: then the others ended here

    def among(self, layout: Layout, which: Indices) -> Together:
        """What was reached for all pairs of a layout, of which these are the pairs `which`; zeros for the others."""
        v, k = layout.variables(which), len(layout.offsets) - 1
        beta, u, steps = np.zeros(layout.offsets[-1]), np.zeros(layout.offsets[-1]), np.zeros(k, np.int64)
        solved = np.zeros(k, dtype=bool)
        beta[v], u[v], steps[which], solved[which] = self.beta, self.u, self.steps, self.solved
        return Together(beta, u, steps, self.certificates.among(k, which), solved, self.over)


def fitting_pairs(problem: DualProblem, layout: Layout, sparse: bool = False) -> Indices:
    """Which pairs `solve_together` can solve, of problems whose variables come one after another."""
    small = np.diff(layout.offsets) <= (_MOST_SPARSE_VARIABLES if sparse else _MOST_VARIABLES)
    return np.flatnonzero(small & _is_simple(problem))


def _is_simple(problem: DualProblem) -> bool:
    return len(problem.totals) <= 1 and not problem.totals.any() and not problem.twins


def solve_together(problem: DualProblem, layout: Layout, gram: Gram, stop: Stop, n_threads: int) -> Together | None:
    """A solution of each problem, and its certificate; one that is not `solved` is a start for other solvers.

    The problems are one after another, and each has the same equality, or none has. The result is None if the core
    cannot do this for the kernel and the data.
    """
    p, lower, upper, d, paired = problem.p, problem.lower, problem.upper, problem.d, bool(len(problem.totals))
    prepared = _prepared(layout, gram, n_threads)
    if prepared is None or (lower > 0).any() or (upper < 0).any():  # they start from β = 0
        return None
    (samples, exact), single = prepared, gram.precisions[0] == np.float32
    beta, u = np.zeros(len(p)), np.zeros(len(p))
    which, unit = np.arange(layout.n), gram.unit_errors(layout.largest)
    if not exact.dense:  # values within a class are added one after another
        unit = unit + layout.largest * np.finfo(float).eps * float(roots(gram).max()) ** 2
    steps, last = np.zeros(layout.n, dtype=np.int64), np.full(layout.n, np.inf)
    proofs, solved = None, np.zeros(layout.n, dtype=bool)
    while len(which):
        # Iterative refinement: a return starts from the gradient that the certificate found.
        part, v = layout.of_pairs(which), layout.variables(which)
        fixed, now = (lower[v], upper[v], d[v]), beta[v]
        most = min(_STEPS_PER_VARIABLE * part.largest, stop.max_iter - int(steps.max()))
        given = (*part.arrays, gram.diagonal, p[v] - u[v] - d[v] * now, now, *fixed)
        limits = (paired, 0.5 * stop.tol, most, stop.seconds, n_threads)
        products = np.zeros(len(now))
        if exact.dense:
            taken, reasons, values = samples.solve_pairs(*given, *limits)
            exact.add_pairs(*part.arrays, now, products, n_threads)
            values += int(np.add.reduceat(now != 0, part.offsets[:-1]) @ np.diff(part.offsets))
        else:
            taken, reasons, values = exact.solve_sparse_pairs(*given, products, single, *limits)
        error = part.errors(unit, now) + 4 * np.finfo(float).eps * (np.abs(p[v]) + np.abs(products))
        findings = _core.pair_findings(part.offsets, p[v], *fixed, products, error, now, paired, n_threads)
        gram.evaluations += values
        beta[v], u[v], steps[which] = now, products, steps[which] + taken
        found = pair_certificates(findings, paired, PROOF[gram.positive_definite])
        if proofs is None:
            proofs = found
        else:
            proofs.take(which, found)
        solved[which] = met = _met(stop, found)
        ended = np.array([reason == "converged" for reason in reasons])
        again = ~met & ended & (found.violation > stop.tol) & progressed(found.violation, last[which])
        last[which] = found.violation
        which = which[again & (stop.seconds > 0)]
    assert proofs is not None
    # Where no time is left to go on from here, the last certificates say what was reached.
    return Together(beta, u, steps, proofs, solved, over=stop.limit(0) is not None)


def solve_folds_together(
    problem: DualProblem, bounds: tuple[Floats, Floats], layout: Layout, gram: Gram, beta: Floats, stop: Stop, n: int
) -> Floats | None:
    """f = Kβ + b of all variables for problems that differ from `problem` in their bounds: a row for each of these.

    They start from what their bounds leave of β, are solved to `stop.tol` in the steps' own precision, on n threads,
    and have no proof. None where one of them was not solved.
    """
    prepared = _prepared(layout, gram, n)
    if prepared is None:
        return None
    (samples, exact), (lower, upper), values = prepared, bounds, np.empty_like(bounds[0])
    reasons, computed = (samples if exact.dense else exact).solve_folds(
        *layout.arrays,
        gram.diagonal,
        problem.p,
        beta,
        lower.ravel(),
        upper.ravel(),
        problem.d,
        values.ravel(),
        single=gram.precisions[0] == np.float32,
        paired=bool(len(problem.totals)),
        tol=stop.tol,
        max_steps=_FOLD_STEPS_PER_VARIABLE * layout.largest,
        max_seconds=stop.seconds,
        n_threads=n,
    )
    gram.evaluations += computed
    return values if all(reason == "converged" for reason in reasons) else None


def _prepared(layout: Layout, gram: Gram, n_threads: int) -> tuple[_core.Samples, _core.Samples] | None:
    """The samples for steps and those for certificates, or None if the core cannot do this for them."""
    if not layout.affordable(gram, n_threads):
        return None
    rows = np.arange(gram.n)
    exact = gram.prepared(rows, np.float64, whole=True)[0]
    if not isinstance(exact, _core.Samples):
        return None
    samples = gram.prepared(rows, gram.precisions[0], whole=True)[0] if exact.dense else exact
    if not isinstance(samples, _core.Samples) or samples.dense != exact.dense:
        return None
    # Where norms cancel, values of sparse samples do not come from plain inner products.
    return (samples, exact) if exact.dense or (_has_bounded_products(gram) and not exact.doubled) else None


def _has_bounded_products(gram: Gram) -> bool:
    """Whether values of sparse samples come from inner products, and none is larger than K's diagonal."""
    recipe = gram.kernel.recipe()
    return gram.positive_definite == "yes" and recipe is not None and recipe.ending != "laplacian"


def _met(stop: Stop, found: CertificateTable) -> Flags:
    """Which certificates prove what was asked for (`Stop.met` for many)."""
    met = found.violation / stop.tol <= 1
    return np.asarray(met & (found.gap <= stop.gap_tol * np.abs(found.dual)) if stop.gap_tol < np.inf else met)


@dataclass(frozen=True, eq=False)
class Layout:
    """The blocks one after another, the two blocks of each pair, and where the variables of each pair begin."""

    members: Indices
    starts: Indices
    pairs: Indices
    offsets: Indices

    @classmethod
    def of(cls, blocks: Sequence[Indices], pairs: Indices) -> Layout:
        """From blocks and, in each row of `pairs`, the places of a pair's two."""
        starts = np.cumsum([0, *map(len, blocks)])
        return cls(np.concatenate(blocks), starts, pairs.ravel(), _offsets(starts, pairs))

    def of_pairs(self, which: Indices) -> Layout:
        """The layout of some of the pairs."""
        if len(which) == self.n:
            return self
        pairs = self.pairs.reshape(-1, 2)[which]
        return Layout(self.members, self.starts, pairs.ravel(), _offsets(self.starts, pairs))

    def variables(self, which: Indices) -> Any:
        """Where the variables of these pairs are among those of all."""
        if len(which) == self.n:
            return slice(None)
        lengths = np.diff(self.offsets)[which]
        return np.arange(lengths.sum()) + np.repeat(self.offsets[which] - np.cumsum(lengths) + lengths, lengths)

    @cached_property
    def rows(self) -> Indices:
        """The sample of each variable."""
        sizes, starts = np.diff(self.starts)[self.pairs], self.starts[self.pairs]
        rows: Indices = self.members[np.arange(sizes.sum()) + np.repeat(starts - np.cumsum(sizes) + sizes, sizes)]
        return rows

    @property
    def n(self) -> int:
        return len(self.offsets) - 1

    def errors(self, unit: Floats, beta: Floats) -> Floats:
        """How far each u = Kβ can be from the true one, with what each row errs by for ‖β‖₁ = 1."""
        l1 = np.add.reduceat(np.abs(beta), self.offsets[:-1])
        return np.asarray(unit[self.rows] * np.repeat(l1, np.diff(self.offsets)))

    @property
    def arrays(self) -> tuple[Indices, Indices, Indices, Indices]:
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
        matrix = kept * max(np.dtype(gram.precisions[0]).itemsize, 8 if is_sparse(gram.X) else 0)
        return bool(8 * gram.n * gram.bytes_per_row + 2 * matrix <= gram.budget)


def _offsets(starts: Indices, pairs: Indices) -> Indices:
    return np.concatenate([[0], np.cumsum(np.diff(starts)[pairs].sum(axis=1))])
