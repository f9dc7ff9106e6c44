"""Solve all pairs of a one-against-one machine in one call: many small problems that share blocks of samples.

Each pair is a `DualProblem` with one variable per sample, first those of one class and then those of the other, and at
most one equality, Σβ = 0. Solved one by one, they would spend more time in Python than in arithmetic, and each would
compute its whole matrix. Here they are solved together on kernel values that they share
(mercer.places.host.pair_place).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mercer import _core
from mercer.certificates.dual import PROOF
from mercer.certificates.table import CertificateTable, pair_certificates
from mercer.places.gram import Gram
from mercer.places.host.pair_place import Box, Layout, PairPlace
from mercer.problems.dual_problem import DualProblem
from mercer.samples.arrays import Flags, Floats, Indices
from mercer.solvers.refine import has_progressed
from mercer.solvers.solution import Stop

# With more variables than this, passes over all of them in every step cost more than working sets. For sparse samples
# working sets have to compute more values again, so the limit is higher (ten classes of Reuters: 0.7 s with the second
# limit, 1.0 s with the first).
_MOST_VARIABLES, _MOST_SPARSE_VARIABLES = 2500, 6000
# After this many steps per variable of the largest pair, the general solver and its Newton steps take over.
_STEPS_PER_VARIABLE = 20
# Limit of steps per variable for folds, where the only alternative is an ordinary fit of each.
_FOLD_STEPS_PER_VARIABLE = 200


@dataclass(frozen=True, eq=False)
class PairResults:
    """Solutions and certificates of all pairs; arrays hold the variables of one pair after another."""

    beta: Floats
    u: Floats
    steps: Indices
    certificates: CertificateTable
    solved: Flags
    out_of_time: bool = False  # True if the deadline has passed

    def scatter(self, layout: Layout, solvable: Indices) -> PairResults:
        """Return results for all pairs of a layout: these results at the pairs `solvable`, zeros at the others."""
        v, k = layout.variables(solvable), len(layout.offsets) - 1
        beta, u, steps = np.zeros(layout.offsets[-1]), np.zeros(layout.offsets[-1]), np.zeros(k, np.int64)
        solved = np.zeros(k, dtype=bool)
        beta[v], u[v], steps[solvable], solved[solvable] = self.beta, self.u, self.steps, self.solved
        return PairResults(beta, u, steps, self.certificates.scatter(k, solvable), solved, self.out_of_time)


def solvable_pairs(problem: DualProblem, layout: Layout, sparse: bool = False) -> Indices:
    """Return the indices of the pairs that `solve_pairs_together` can solve."""
    is_small = layout.lengths <= (_MOST_SPARSE_VARIABLES if sparse else _MOST_VARIABLES)
    has_simple_totals = len(problem.totals) <= 1 and not problem.totals.any() and not problem.twins
    return is_small.nonzero()[0] if has_simple_totals else np.empty(0, dtype=np.intp)


def solve_pairs_together(
    problem: DualProblem, layout: Layout, gram: Gram, stop: Stop, n_threads: int
) -> PairResults | None:
    """Solve and certify every pair; the β of a pair that is not `solved` is a start for other solvers.

    `problem` holds the variables of one pair after another; either every pair has the equality Σβ = 0 or none has. The
    result is None if the core cannot do this for the kernel and the data.
    """
    place = gram.pairs(layout, n_threads)
    if place is None or (problem.lower > 0).any() or (problem.upper < 0).any():  # all pairs start from β = 0
        return None
    return _refine_pairs(problem, layout, gram, place, stop, np.zeros(problem.n_variables))


def _refine_pairs(
    problem: DualProblem,
    layout: Layout,
    gram: Gram,
    place: PairPlace,
    stop: Stop,
    beta: Floats,
    certify_first: bool = False,
) -> PairResults:
    """Alternate steps and certificates, starting from β, until the certificates are good (iterative refinement).

    Steps after a certificate start from its gradient. With `certify_first`, the first round only certifies β.
    """
    p, has_equality, entry_bounds = problem.p, bool(len(problem.totals)), gram.proof.entry_bounds
    n_pairs = layout.n
    u, pairs = np.zeros(len(p)), np.arange(n_pairs)
    steps, last_violation = np.zeros(n_pairs, dtype=np.int64), np.full(n_pairs, np.inf)
    proofs, solved = None, np.zeros(n_pairs, dtype=bool)
    while len(pairs):
        part, variables = layout.of_pairs(pairs), layout.variables(pairs)
        box, pair_beta = Box(problem.lower[variables], problem.upper[variables], problem.d[variables]), beta[variables]
        steps_taken, converged = np.zeros(len(pairs), dtype=np.int64), np.ones(len(pairs), dtype=bool)
        # 1. Take pair steps, or compute u = Kβ only.
        if certify_first:
            products, certify_first = place.products(part, pair_beta), False
        else:
            most_steps = min(_STEPS_PER_VARIABLE * part.largest, stop.max_iter - int(steps.max()))
            h = p[variables] - u[variables] - box.d * pair_beta
            counts, reasons, products = place.solve(
                part, h, pair_beta, box, has_equality, 0.5 * stop.tol, most_steps, stop.seconds
            )
            steps_taken, converged = np.asarray(counts), np.array([reason == "converged" for reason in reasons])
        # 2. Certify the pairs with bounds on the rounding errors of u.
        findings = _core.pair_findings(
            part.offsets,
            p[variables],
            *box,
            products,
            pair_beta,
            part.rows,
            np.add.reduceat(np.abs(pair_beta), part.offsets[:-1]),
            place.row_errors,
            entry_bounds,
            has_equality,
            place.n_threads,
        )
        certificates = pair_certificates(findings, has_equality, PROOF[gram.positive_definite])
        beta[variables], u[variables], steps[pairs] = pair_beta, products, steps[pairs] + steps_taken
        if proofs is None:
            proofs = certificates
        else:
            proofs.overwrite(pairs, certificates)
        # 3. Continue with the pairs that made progress and are not solved.
        solved[pairs] = meets_stop = _meets_tol(stop, certificates)
        if meets_stop.all():
            break
        violation = certificates.violation
        is_continued = (
            ~meets_stop & converged & (violation > stop.tol) & has_progressed(violation, last_violation[pairs])
        )
        last_violation[pairs] = violation
        pairs = pairs[is_continued & (stop.seconds > 0)]
    assert proofs is not None
    # At the deadline, the certificates are those of the last β.
    return PairResults(beta, u, steps, proofs, solved, out_of_time=stop.limit(0) is not None)


def solve_pair_folds(
    problem: DualProblem,
    bounds: tuple[Floats, Floats],
    layout: Layout,
    gram: Gram,
    beta: Floats,
    stop: Stop,
    n_threads: int,
) -> list[PairResults] | None:
    """Solve and certify all pairs for each of several folds, which differ only in their bounds.

    Each fold starts from β, clipped to its bounds. The result is None if some fold is not solved, or its certificate
    does not meet `stop`.
    """
    place = gram.pairs(layout, n_threads)
    if place is None:
        return None
    box, max_steps = Box(*bounds, problem.d), min(_FOLD_STEPS_PER_VARIABLE * layout.largest, stop.max_iter)
    limits = bool(len(problem.totals)), 0.5 * stop.tol, max_steps, stop.seconds
    solutions = place.solve_folds(layout, problem.p, beta, box, *limits)
    if solutions is None:
        return None
    results = []
    for lower, upper, start in zip(*bounds, solutions, strict=True):
        fold = replace(problem, lower=lower, upper=upper)
        results.append(_refine_pairs(fold, layout, gram, place, stop, start, certify_first=True))
        if not results[-1].solved.all():
            return None
    return results


def _meets_tol(stop: Stop, table: CertificateTable) -> Flags:
    """Mark the certificates that meet the stopping rule (`Stop.met` for a table)."""
    meets = table.violation / stop.tol <= 1
    return np.asarray(meets & (table.gap <= stop.gap_tol * np.abs(table.dual)) if stop.gap_tol < np.inf else meets)
