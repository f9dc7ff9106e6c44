"""The pairs of a one-against-one machine, all of them in one call: many small problems on blocks of samples they share.

Each is a `DualProblem` with one variable per sample, those of one class and then those of another, and at most one
equality, Σβ = 0. One by one they would cost more in Python than in arithmetic, and each would compute its whole matrix.
Here they are solved where the Gram has a place for them (mercer.places.host.pair_place).
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
from mercer.solvers.refine import progressed
from mercer.solvers.solution import Stop

# With more variables than this, passes over all of them in every step cost more than working sets. Working sets of
# sparse samples compute more values again (ten classes of Reuters: 0.7 s with this limit, 1.0 s with the other).
_MOST_VARIABLES, _MOST_SPARSE_VARIABLES = 2500, 6000
# After this many steps per variable of the largest pair, the general solver and its Newton steps take over.
_STEPS_PER_VARIABLE = 20
# Folds have no other solver than an ordinary fit of each.
_FOLD_STEPS_PER_VARIABLE = 200


@dataclass(frozen=True, eq=False)
class PairResults:
    """What one call for all pairs has reached: the variables of one pair after another, and which pairs are solved."""

    beta: Floats
    u: Floats
    steps: Indices
    certificates: CertificateTable
    solved: Flags
    over: bool = False  # whether the time is over: then the others ended here

    def among(self, layout: Layout, which: Indices) -> PairResults:
        """These solutions among all pairs of a layout, of which these are the pairs `which`; zeros for the others."""
        v, k = layout.variables(which), len(layout.offsets) - 1
        beta, u, steps = np.zeros(layout.offsets[-1]), np.zeros(layout.offsets[-1]), np.zeros(k, np.int64)
        solved = np.zeros(k, dtype=bool)
        beta[v], u[v], steps[which], solved[which] = self.beta, self.u, self.steps, self.solved
        return PairResults(beta, u, steps, self.certificates.among(k, which), solved, self.over)


def fitting_pairs(problem: DualProblem, layout: Layout, sparse: bool = False) -> Indices:
    """Which pairs `solve_together` can solve, of problems whose variables come one after another."""
    small = np.diff(layout.offsets) <= (_MOST_SPARSE_VARIABLES if sparse else _MOST_VARIABLES)
    simple = len(problem.totals) <= 1 and not problem.totals.any() and not problem.twins
    return np.flatnonzero(small & simple)


def solve_together(problem: DualProblem, layout: Layout, gram: Gram, stop: Stop, n_threads: int) -> PairResults | None:
    """A solution of each problem, and its certificate; one that is not `solved` is a start for other solvers.

    The problems are one after another, and each has the same equality, or none has. The result is None if the core
    cannot do this for the kernel and the data.
    """
    place = gram.pairs(layout, n_threads)
    if place is None or (problem.lower > 0).any() or (problem.upper < 0).any():  # they start from β = 0
        return None
    return _refined(problem, layout, gram, place, stop, np.zeros(problem.n_variables))


def _refined(
    problem: DualProblem, layout: Layout, gram: Gram, place: PairPlace, stop: Stop, beta: Floats, begun: bool = False
) -> PairResults:
    """Steps and certificates in turn from β on, until these are good; what has `begun` is certified first.

    A return to the steps starts from the gradient that the certificate found (iterative refinement).
    """
    p, paired, reach = problem.p, bool(len(problem.totals)), gram.proof.reach
    u, which = np.zeros(len(p)), np.arange(layout.n)
    steps, last = np.zeros(layout.n, dtype=np.int64), np.full(layout.n, np.inf)
    proofs, solved = None, np.zeros(layout.n, dtype=bool)
    while len(which):
        part, v = layout.of_pairs(which), layout.variables(which)
        box, now = Box(problem.lower[v], problem.upper[v], problem.d[v]), beta[v]
        taken, ended = np.zeros(len(which), dtype=np.int64), np.ones(len(which), dtype=bool)
        if begun:
            products, begun = place.products(part, now), False
        else:
            most = min(_STEPS_PER_VARIABLE * part.largest, stop.max_iter - int(steps.max()))
            h = p[v] - u[v] - box.d * now
            counts, reasons, products = place.solve(part, h, now, box, paired, 0.5 * stop.tol, most, stop.seconds)
            taken, ended = np.asarray(counts), np.array([reason == "converged" for reason in reasons])
        error = place.errors(part, now) + 4 * np.finfo(float).eps * (np.abs(p[v]) + np.abs(products))
        findings = _core.pair_findings(
            part.offsets, p[v], *box, products, error, reach[part.rows], now, paired, place.n_threads
        )
        beta[v], u[v], steps[which] = now, products, steps[which] + taken
        found = pair_certificates(findings, paired, PROOF[gram.positive_definite])
        if proofs is None:
            proofs = found
        else:
            proofs.take(which, found)
        solved[which] = met = _met(stop, found)
        again = ~met & ended & (found.violation > stop.tol) & progressed(found.violation, last[which])
        last[which] = found.violation
        which = which[again & (stop.seconds > 0)]
    assert proofs is not None
    # Where no time is left to go on from here, the last certificates say what was reached.
    return PairResults(beta, u, steps, proofs, solved, over=stop.limit(0) is not None)


def solve_folds_together(
    problem: DualProblem, bounds: tuple[Floats, Floats], layout: Layout, gram: Gram, beta: Floats, stop: Stop, n: int
) -> list[PairResults] | None:
    """Solutions of all pairs, with their certificates, for each of several problems that differ in their bounds only.

    They start from what their bounds leave of β. None where steps on n threads did not solve one of them, or its
    certificate does not meet `stop`.
    """
    place = gram.pairs(layout, n)
    if place is None:
        return None
    box, most = Box(*bounds, problem.d), min(_FOLD_STEPS_PER_VARIABLE * layout.largest, stop.max_iter)
    limits = bool(len(problem.totals)), 0.5 * stop.tol, most, stop.seconds
    solutions = place.solve_folds(layout, problem.p, beta, box, *limits)
    if solutions is None:
        return None
    results = []
    for lower, upper, own in zip(*bounds, solutions, strict=True):
        fold = replace(problem, lower=lower, upper=upper)
        results.append(_refined(fold, layout, gram, place, stop, own, begun=True))
        if not results[-1].solved.all():
            return None
    return results


def _met(stop: Stop, found: CertificateTable) -> Flags:
    """Which certificates prove what was asked for (`Stop.met` for many)."""
    met = found.violation / stop.tol <= 1
    return np.asarray(met & (found.gap <= stop.gap_tol * np.abs(found.dual)) if stop.gap_tol < np.inf else met)
