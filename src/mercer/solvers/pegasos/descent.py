"""Stochastic subgradient descent: the spaces of samples that the steps work on, and the loop over epochs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from mercer import _core
from mercer.certificates.certificate import Certificate
from mercer.certificates.descent import FeatureSpace, certify_descent
from mercer.places.ball import Ball
from mercer.places.gram import Gram
from mercer.problems.pegasos import PegasosProblem
from mercer.samples.arrays import Flags, Floats, Indices, Samples, gamma, inner, is_sparse, row_blocks, take
from mercer.solvers.deadline import ProofTime
from mercer.solvers.early_stopping import SmoothedRule
from mercer.solvers.pegasos.iterates import Counts, Iterates, ViolationCounts, draw_pass, draw_with_replacement
from mercer.solvers.solution import Stop, StopReason

# Kernel rows computed at a time, and draws searched for rows that will be needed.
_ROWS_PER_FETCH, _DRAWS_AHEAD = 256, 4096

Outputs = Callable[[Floats], Floats]


@dataclass(frozen=True, eq=False)
class StepOptions:
    """Arguments of every call into the core."""

    iterates: Iterates
    lam: float
    project: bool
    counts: Counts | None  # violations per machine and row


class DescentSpace(FeatureSpace, Protocol):
    """Samples for subgradient steps, in the coordinates of w."""

    n: int
    size: int  # number of coordinates of w
    cost: int  # number of entries that a step touches

    def run(self, machine: int, signs: Floats, draws: Indices, options: StepOptions) -> None:
        """Take the steps of lines 3 to 6 for every draw, for one machine."""

    def split(self, rows: Indices, others: Indices) -> tuple[DescentSpace, Outputs]:
        """Return the space of `rows` alone, and the function that computes the outputs of its w on `others`."""


class LinearSpace:
    """Rows of a dense or CSR matrix, followed by a constant 1 where the bias is regularised; w is a plain vector."""

    positive_definite = "yes"

    def __init__(self, X: Samples, *, bias: bool) -> None:
        self.X, self.bias = X, bias
        self.n, d = X.shape
        self.size = d + int(bias)
        self.cost = max(1, X.nnz // max(1, self.n)) if is_sparse(X) else d

    def run(self, machine: int, signs: Floats, draws: Indices, options: StepOptions) -> None:
        """Take the steps of one machine on the samples `draws`, one after another; the iterates change in place."""
        theta, total = options.iterates.theta[machine], options.iterates.total[machine]
        counts = None if options.counts is None else options.counts[machine]
        norm2 = inner(theta, theta) if options.project else 0.0
        arguments = (signs, draws, options.lam, options.iterates.t, options.project, norm2, theta, total, counts)
        if is_sparse(self.X):
            _core.pegasos_csr(self.X.data, self.X.indices, self.X.indptr, self.X.shape[1], *arguments)
        else:
            _core.pegasos_dense(self.X, *arguments)

    def split(self, rows: Indices, others: Indices) -> tuple[LinearSpace, Outputs]:
        """Return the space of the samples `rows`, and the function that computes the outputs of w at the `others`."""
        space, other_space = (LinearSpace(take(self.X, part), bias=self.bias) for part in (rows, others))
        return space, other_space.outputs

    def outputs(self, w: Floats) -> Floats:
        """Return ⟨w, φ(x_i)⟩ for every sample."""
        d = self.X.shape[1]
        f = np.full(self.n, w[d] if self.bias else 0.0)
        for block in self._slices():
            f[block] += self.X[block] @ w[:d]
        return f

    def square(self, w: Floats, outputs: Floats) -> float:
        return inner(w, w)

    def combine(self, beta: Floats) -> Ball:
        """Return Σ β_iφ(x_i) as weights of the features, with bounds on their errors."""
        w, size = np.zeros(self.X.shape[1]), np.zeros(self.X.shape[1])
        for block in self._slices():
            part = self.X[block]
            w += part.T @ beta[block]
            size += abs(part).T @ np.abs(beta[block])
        if self.bias:
            w, size = np.append(w, beta.sum()), np.append(size, np.abs(beta).sum())
        return Ball(w, gamma(2 * self.n + 16) * size)

    def outputs_bound(self, w: Ball) -> Ball:
        """Return ⟨w, φ(x_i)⟩ for every sample, with bounds on the errors."""
        d = self.X.shape[1]
        longest = int(np.diff(self.X.indptr).max(initial=0)) if is_sparse(self.X) else d
        spread = gamma(2 * longest + 16) * np.abs(w.value) + 2 * w.error
        size = np.full(self.n, spread[d] if self.bias else 0.0)
        for block in self._slices():
            size[block] += abs(self.X[block]) @ spread[:d]
        return Ball(self.outputs(w.value), size)

    def square_bound(self, w: Ball, outputs: Ball) -> Ball:
        """Return ‖w‖² with a bound on its error."""
        square, error = inner(w.value, w.value), inner(np.abs(w.value) + w.size, w.error)
        return Ball(square, error + gamma(self.size + 8) * (square + error))

    def _slices(self) -> Iterator[slice]:
        """Return blocks of rows, so that float32 data are not copied to float64 all at once."""
        return row_blocks(self.n, 8 * self.cost)


class KernelSpace:
    """Rows of a Gram matrix; w is given by its coefficients, first those of `n_older` vectors, which are not drawn.

    A row of K is computed when a step first adds its sample to θ, and kept while the budget lasts.
    """

    def __init__(self, gram: Gram, *, bias: bool, n_older: int = 0, u: Floats | None = None) -> None:
        self.gram, self.shift, self._n_older = gram, float(bias), n_older
        self.n, self.size, self.cost = gram.n, n_older + gram.n, gram.n
        self.positive_definite = gram.positive_definite
        self._u = u  # ⟨θ, φ(x_i)⟩ per machine and row; at first for the older vectors alone
        self._slot = np.full(self.n, -1, dtype=np.int64)
        # Half of the budget holds the kept rows, an eighth the rows being fetched, which exist twice.
        rows = gram.budget // (16 * max(1, self.n))
        self._rows = np.empty((max(1, min(self.n, rows)), self.n))
        self._at_a_time = max(1, min(_ROWS_PER_FETCH, rows // 4, len(self._rows)))
        self._n_used = 0

    def run(self, machine: int, signs: Floats, draws: Indices, options: StepOptions) -> None:
        iterates, n_older = options.iterates, self._n_older
        if self._u is None:
            self._u = np.array([self.outputs(theta) for theta in iterates.theta])
        u, theta, total = self._u[machine], iterates.theta[machine], iterates.total[machine]
        counts = None if options.counts is None else options.counts[machine]
        t, n_done = iterates.t, 0
        while True:
            n_taken, scale, mass, norm2 = _core.pegasos_kernel(
                self._rows, self._slot, self.shift, u, signs, draws[n_done:], options.lam, t + n_done, options.project,
                float(iterates.norm2[machine]), theta[n_older:], total[n_older:], counts,
            )  # fmt: skip
            total[:n_older] += mass * theta[:n_older]
            theta[:n_older] *= scale
            iterates.norm2[machine] = norm2
            n_done += n_taken
            if n_done == len(draws):
                return
            self._fetch(draws[n_done : n_done + _DRAWS_AHEAD], signs * u < options.lam * (t + n_done + 1))

    def _fetch(self, draws: Indices, is_violating: Flags) -> None:
        """Compute missing rows of the next draws that will be needed if the present margins do not change."""
        is_needed = is_violating[draws]
        is_needed[0] = True  # the core stopped at this draw
        missing_rows = draws[(self._slot[draws] < 0) & is_needed]
        _, first = np.unique(missing_rows, return_index=True)
        missing_rows = missing_rows[np.sort(first)][: self._at_a_time]
        if self._n_used + len(missing_rows) > len(self._rows):
            self._slot[:] = -1
            self._n_used = 0
        slots = np.arange(self._n_used, self._n_used + len(missing_rows))
        self._rows[slots] = self.gram.block(missing_rows, np.arange(self.n))
        self._slot[missing_rows] = slots
        self._n_used += len(missing_rows)

    def split(self, rows: Indices, others: Indices) -> tuple[KernelSpace, Outputs]:
        """Return the space of the samples `rows`, and the function that computes the outputs of w at the `others`."""
        gram, shift = self.gram, self.shift

        def outputs(w: Floats) -> Floats:
            coefficients = np.zeros(gram.n)
            coefficients[rows] = w
            return np.asarray(gram.product(coefficients, others) + shift * w.sum())

        return KernelSpace(gram.view(rows), bias=bool(shift)), outputs

    def outputs(self, w: Floats) -> Floats:
        """Return ⟨w, φ(x_i)⟩ for every sample; rows of K that the steps have stored are used again."""
        coefficients_of_rows = w[self._n_older :]
        stored_rows = np.flatnonzero(self._slot >= 0)  # rows that the steps have computed
        coefficients = np.zeros(self._n_used)
        coefficients[self._slot[stored_rows]] = coefficients_of_rows[stored_rows]
        u = np.einsum("i,ij->j", coefficients, self._rows[: self._n_used])
        other_coefficients = np.where(self._slot < 0, coefficients_of_rows, 0.0)
        if other_coefficients.any():
            u += self.gram.product(other_coefficients)
        return np.asarray(u + self.shift * w.sum())

    def square(self, w: Floats, outputs: Floats) -> float:
        return inner(w, outputs)

    def combine(self, beta: Floats) -> Ball:
        return Ball(beta, np.zeros_like(beta))

    def outputs_bound(self, w: Ball) -> Ball:
        """Return the outputs with error bounds; `w.error` is left out, since e of the Gram matrix is far larger."""
        u, e = self.gram.proof.product_bound(w.value)
        mass = self.shift * float(np.abs(w.value).sum())
        return Ball(u + self.shift * w.value.sum(), e + gamma(self.n + 8) * mass + gamma(2) * (np.abs(u) + mass))

    def square_bound(self, w: Ball, outputs: Ball) -> Ball:
        """Return ‖w‖² = w·outputs with a bound on its error."""
        size = inner(np.abs(w.value), np.abs(outputs.value))
        error = inner(w.size, outputs.error) + inner(w.error, np.abs(outputs.value))
        return Ball(inner(w.value, outputs.value), error + gamma(self.n + 8) * (size + error))


class EarlyStopping:
    """Early stopping by the validation loss after each epoch: the mean hinge loss, summed over the machines.

    `outputs` computes ⟨w, φ(x_i)⟩ on the validation part, whose problem is `held_out`. Training should stop when the
    loss has not fallen by more than `tol` per machine for `patience` epochs; or, if `rise` is given, when its mean over
    `patience` epochs has risen by that share.
    """

    def __init__(
        self, held_out: PegasosProblem, outputs: Outputs, average: str, tol: float, patience: int, rise: float | None
    ) -> None:
        self._held_out, self._outputs, self._average = held_out, outputs, average
        self._tol, self._patience = tol * len(held_out.signs), patience
        self._lowest_loss, self._epochs_without_fall, self._is_smoothed = math.inf, 0, rise is not None
        self._rule = SmoothedRule(patience, rise or 0.0)
        self.losses = self._rule.errors
        self.best: Iterates | None = None

    def should_stop(self, iterates: Iterates) -> bool:
        """Record the loss after an epoch, and return whether training should stop."""
        w = iterates.output(self._held_out.lam, self._average)
        loss = sum(self._mean_hinge(machine, w[machine]) for machine in range(len(w)))
        has_risen, is_best = self._rule.record(loss)
        if self.best is None or is_best:
            self.best = iterates.copy()
        if self._is_smoothed:
            return has_risen
        has_fallen = loss < self._lowest_loss - self._tol
        self._lowest_loss, self._epochs_without_fall = (
            (loss, 0) if has_fallen else (self._lowest_loss, self._epochs_without_fall + 1)
        )
        return self._epochs_without_fall >= self._patience

    def _mean_hinge(self, machine: int, w: Floats) -> float:
        hinge = np.maximum(0.0, 1.0 - self._held_out.signs[machine] * self._outputs(w))
        return inner(self._held_out.probability, hinge)


# Largest default number of epochs, for few samples.
MOST_EPOCHS = 2000


@dataclass(frozen=True, eq=False)
class PegasosOutcome:
    """Result of descent: the iterates, their mean w, F(w) summed over the machines, and the stop reason.

    `rows` are the rows used for training: the columns of a kernel machine's iterates.
    """

    iterates: Iterates
    w: Floats
    objective: float
    rows: Indices
    epochs: int
    stop_reason: StopReason
    validation_losses: Floats | None = None

    @property
    def steps(self) -> int:
        return self.iterates.t


def solve_pegasos(
    problem: PegasosProblem,
    space: DescentSpace,
    stop: Stop,
    start: Iterates | None = None,
    *,
    seed: int,
    epochs: int | None = None,
    average: str = "suffix",
    sampling: str = "replacement",
    project: bool = False,
    held_out: Indices | None = None,
    patience: int = 5,
    rise: float | None = None,
    dual_from_violations: bool = False,
) -> tuple[PegasosOutcome, Certificate]:
    """Run epochs of n subgradient steps each and return the mean of the iterates; `start` are iterates to continue.

    `epochs` None means at least ten, and more for few samples, up to `stop.max_iter`. `average` chooses the iterates in
    the mean ("suffix", "all", "last"). `sampling` draws samples independently ("replacement"), or visits each sample in
    every epoch as often as its weight says ("passes"). `project` keeps ‖w‖ ≤ 1/√λ.

    The rows `held_out` are not used for training. Descent stops when their loss has not fallen by more than `stop.tol`
    per machine for `patience` epochs, or, if `rise` is given, by the smoothed rule; the best epoch's iterates are
    returned.

    With `dual_from_violations`, the certificate's dual point is computed from the violations in the later steps instead
    of from w alone. The gap is tighter while w has not converged; counting visits takes up to a fifth of the time.
    """
    # 1. Split off the validation part, and start from zero or from earlier iterates.
    rows = np.arange(space.n)
    stopping: EarlyStopping | None = None
    if held_out is not None:
        rows, validation = np.setdiff1d(rows, held_out), problem.part(held_out)
        problem = problem.part(rows)
        space, outputs = space.split(rows, held_out)
        stopping = EarlyStopping(validation, outputs, average, stop.tol, patience, rise)
    iterates = Iterates.zero(len(problem.signs), space.size) if start is None else start.copy()
    deadline = stop.deadline
    if isinstance(space, KernelSpace):  # the certificate may need every row of K; steps get at least half of the time
        deadline -= min(0.5 * stop.seconds, ProofTime(space.gram, stop)(problem.signs)) if deadline < np.inf else 0.0
    violations = ViolationCounts(*problem.signs.shape) if dual_from_violations else None
    options = StepOptions(iterates, problem.lam, project, None if violations is None else violations.counts)
    cumulative_weight, m, n_epochs_done = np.cumsum(problem.weight), space.n, 0
    n_planned = min(_default_epochs(space, len(problem.signs)) if epochs is None else epochs, stop.max_iter)
    reason: StopReason = "all steps"
    while n_epochs_done < n_planned and reason == "all steps":
        # 2. Draw the samples of the next epochs; short epochs are joined, so that Python takes little of the time.
        count = 1 if stopping is not None else min(n_planned - n_epochs_done, max(1, 10_000 // m))
        if sampling == "passes":
            row_share = problem.probability * m
            draws = np.concatenate(
                [draw_pass(seed, number, row_share) for number in range(n_epochs_done, n_epochs_done + count)]
            )
        else:
            draws = draw_with_replacement(seed, cumulative_weight, iterates.t, count * m)
        # 3. Take the steps, and check the validation loss and the deadline.
        n_epochs_done += count
        n_taken = run_steps(space, problem.signs, draws, options, deadline)
        if violations is not None:
            violations.record(draws[:n_taken], iterates.t)
        if stopping is not None and stopping.should_stop(iterates):
            reason = "early stopping"
        elif n_taken < len(draws):
            reason = "max_time"
        stop.report_progress(partial(_progress_line, n_epochs_done, iterates.t, stopping))
    # 4. Average the iterates and certify the mean.
    result = iterates if stopping is None or stopping.best is None else stopping.best
    w = result.finite_output(problem.lam, average)
    f = np.array([space.outputs(row_share) for row_share in w])
    violates_margin = problem.signs * f < 1.0
    share = violates_margin.astype(np.float64) if violations is None else violations.shares(violates_margin)
    certificate = certify_descent(problem, space, w, share)
    objective = sum(problem.objective(k, space.square(w[k], f[k]), f[k]) for k in range(len(w)))
    losses = None if stopping is None else np.array(stopping.losses)
    return PegasosOutcome(result, w, float(objective), rows, n_epochs_done, reason, losses), certificate


def _default_epochs(space: DescentSpace, n_machines: int) -> int:
    """Return the default number of epochs: at least ten, and up to tenths of a second.

    These are a million steps or 300 million entries.
    """
    affordable = min(1_000_000, 300_000_000 // (space.cost * n_machines)) // space.n
    return min(max(affordable, 10), MOST_EPOCHS)


def run_steps(space: DescentSpace, signs: Floats, draws: Indices, options: StepOptions, deadline: float) -> int:
    """Take the steps of these draws for every machine (row of `signs`); return how many the deadline allowed."""
    n_taken = 0
    for part in _parts(space, draws, options.iterates, len(signs)):
        if time.monotonic() >= deadline:
            break
        for machine in range(len(signs)):
            space.run(machine, signs[machine], part, options)
        options.iterates.count_steps(len(part))
        n_taken += len(part)
    return n_taken


def _parts(space: DescentSpace, draws: Indices, iterates: Iterates, n_machines: int) -> Iterator[Indices]:
    """Split the draws where t is a power of two, and into calls of a tenth of a second, to check limits in between."""
    most_draws = max(1, 50_000_000 // (space.cost * n_machines))
    begin = 0
    while begin < len(draws):
        to_power = (1 << iterates.t.bit_length()) - iterates.t
        end = min(len(draws), begin + most_draws, begin + to_power)
        yield draws[begin:end]
        begin = end


def _progress_line(epochs: int, steps: int, stopping: EarlyStopping | None) -> str:
    """Return the progress line after an epoch."""
    loss = "" if stopping is None else f"  validation loss {stopping.losses[-1]:.5f}"
    return f"epoch {epochs:>6,}  {steps:>12,} steps{loss}"
