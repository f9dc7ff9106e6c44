"""The state of a joint multi-class solve: β and u = Kβ with one column per class, and the active samples.

A block of kernel values is computed, by the core if the kernel has a recipe, and multiplied by the changes of β in all
columns at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mercer import _core
from mercer.places.host.field import ActiveSet
from mercer.places.host.tiled_field import BlockBuffer
from mercer.samples.arrays import Flags, Floats, Indices, Precision, Values

if TYPE_CHECKING:
    from mercer.places.gram import Gram
    from mercer.places.host.kernel_matrix import KernelMatrix
    from mercer.problems.multiclass import JointProblem

# Number of active samples that are laid out as columns at a time.
_BLOCK_ROWS = 2048

# A shrink must remove at least this fraction of the active samples to be worth the copying.
_SHRINK_SHARE = 0.1


class HostJointField(ActiveSet):
    """A `JointField` on the host for any Gram."""

    problem: JointProblem

    def __init__(self, gram: Gram, problem: JointProblem, beta: Floats, u: Floats, dtype: Precision) -> None:
        super().__init__(gram, beta, u, problem.n)
        self.set_problem(problem)
        self.dtype = dtype

    def set_problem(self, problem: JointProblem) -> None:
        """Continue with a problem that differs from the last one only in its biases."""
        self.problem = problem
        self.b = problem.offsets(self.beta)
        self._violations: Floats | None = None  # violations of the active samples at the present β

    def excess(self, rows: Indices) -> Floats:
        return self.problem.excess(self.u[rows], self.b, rows)

    def violations(self) -> Floats:
        """Return the KKT violation of each active sample."""
        if self._violations is None:
            active = self.active
            self._violations = self.problem.violations(self.beta[active], self.excess(active), active)
        return self._violations

    def violation(self) -> float:
        return float(self.violations().max(initial=0.0))

    def move(self, J: Indices, beta: Floats) -> None:
        """Set β of the samples J, and bring u of the active samples up to date."""
        delta = beta - self.beta[J]
        changed_positions = np.flatnonzero(delta.any(axis=1))
        self.beta[J] = beta
        if len(changed_positions) == 0:
            return
        self.b, self._violations = self.problem.offsets(self.beta), None
        if len(J) == len(self.active):
            self.u[J] += self._block @ delta
        else:
            self._add(self.active, J[changed_positions], delta[changed_positions])

    def shrink(self, violation: float) -> None:
        """Drop samples in a corner of their box that no gradient difference as large as `violation` would move."""
        problem, rows = self.problem, self.active
        beta, e = self.beta[rows], self.excess(rows)
        may_fall, may_rise = problem.movable(beta, rows)
        e_label = e[np.arange(len(rows)), problem.y[rows], None]
        if problem.shared:
            # In a corner only one β may rise. The sample is settled if that β's excess is above all others' by more
            # than the violation.
            is_in_corner = may_rise.sum(axis=1) == 1
            rising_excess = np.where(may_rise, e, np.inf).min(axis=1)
            largest_other = np.where(may_rise, -np.inf, e).max(axis=1)
            is_settled = is_in_corner & (rising_excess - largest_other > violation)
        else:
            is_in_corner = ~(may_fall & may_rise).any(axis=1)
            differences = np.where(may_fall, e_label - e, np.where(may_rise, e - e_label, np.inf))
            is_settled = is_in_corner & (differences.min(axis=1) > violation)
        if is_settled.sum() < max(1.0, _SHRINK_SHARE * len(rows)) or is_settled.all():
            return
        self._dropped_rows.append((rows[is_settled], self.beta.copy()))
        self._activate(rows[~is_settled])
        self._violations = None

    def unshrink(self) -> None:
        """Make all samples active again, and bring their u up to date."""
        super().unshrink()
        self._violations = None

    def _free(self, J: Indices) -> Flags:
        """Return which of the samples J have a multiplier strictly between its bounds."""
        beta, C = self.beta[J], self.problem.C[J, None]
        return np.asarray(((beta < 0) & (beta > -C)).any(axis=1))

    def _worst(self, kept: Indices, size: int) -> Indices:
        """Return the `size` active samples with the largest violations, without the samples `kept`."""
        score = self.violations().copy()
        score[np.searchsorted(self.active, kept)] = -np.inf
        return np.sort(self.active[np.argpartition(score, -size)[-size:]])

    def _rows_of(self, J: Indices) -> Indices:
        return J

    def _square_of(self, rows: Indices) -> Values:
        return self.gram.block(rows, rows)

    def _catch_up(self, rows: Indices, change: Floats) -> None:
        """Add K[rows] times a change of β to u[rows]."""
        sources = np.flatnonzero(change.any(axis=1))
        if len(sources):
            self._add(rows, sources, change[sources])

    def _add(self, rows: Indices, sources: Indices, change: Floats) -> None:
        """Add K[rows, sources] @ change to u[rows]; `change` has a column per class."""
        all_changes = np.zeros_like(self.beta)
        all_changes[sources] = change
        self.u[rows] += self.gram.products(all_changes, rows, self.dtype)


class TiledJointField(HostJointField):
    """A joint field on prepared samples; `origin` holds the positions of this problem's rows in them."""

    def __init__(
        self,
        gram: KernelMatrix,
        problem: JointProblem,
        beta: Floats,
        u: Floats,
        samples: _core.Samples,
        origin: Indices,
    ) -> None:
        super().__init__(gram, problem, beta, u, samples.dtype)
        self._matrix, self._samples, self._origin = gram, samples, origin
        self._square = BlockBuffer(samples)
        self._columns: dict[int, _core.Columns] = {}  # columns of the active samples, by the start of each block

    def _activate(self, active: Indices) -> None:
        """Make these samples the active ones, and forget the columns laid out for the last ones."""
        super()._activate(active)
        self._columns = {}

    def unshrink(self) -> None:
        """Make all samples active again, and bring their u up to date."""
        super().unshrink()
        self._columns = {}

    def _square_of(self, rows: Indices) -> Values:
        """Return K[rows, rows], computed by the core."""
        self._matrix.evaluations += len(rows) ** 2
        return self._square(self._origin[rows], self.gram.diagonal[rows])

    def _add(self, rows: Indices, sources: Indices, change: Floats) -> None:
        """Add K[rows, sources] @ change to u[rows], a block of rows at a time."""
        samples, source_rows, factor = self._samples, self._origin[sources], change.astype(self.dtype)
        columns = self._columns if rows is self.active else {}
        for top in range(0, len(rows), _BLOCK_ROWS):
            block = rows[top : top + _BLOCK_ROWS]
            if top not in columns:
                columns[top] = samples.columns(self._origin[block])
            self.u[block] += samples.block(source_rows, columns[top]).T @ factor
        self._matrix.evaluations += len(rows) * len(sources)
