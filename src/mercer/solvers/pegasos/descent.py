"""Epoch after epoch of steps, until the planned ones are made or a limit or the validation part ends them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from mercer.arrays import Floats, Indices, inner
from mercer.certificates.certificate import Certificate
from mercer.certificates.descent import certify_descent
from mercer.problems.pegasos import PegasosProblem
from mercer.solution import Report, Stop, StopReason
from mercer.solvers.deadline import ProofTime
from mercer.solvers.pegasos.draws import draw, one_pass
from mercer.solvers.pegasos.iterates import Iterates, Trail
from mercer.solvers.pegasos.spaces import Call, KernelSpace, Space


class EarlyStopping:
    """The validation loss after each epoch: the mean hinge, summed over the machines.

    `outputs` computes ⟨w, φ(x_i)⟩ on the validation part, whose problem is `held_out`. Training should stop when the
    loss has not fallen by more than `tol` per machine for `patience` epochs.
    """

    def __init__(
        self,
        held_out: PegasosProblem,
        outputs: Callable[[Floats], Floats],
        average: str,
        tol: float,
        patience: int,
    ) -> None:
        self._held_out, self._outputs, self._average = held_out, outputs, average
        self._tol, self._patience = tol * len(held_out.signs), patience
        self._lowest, self._since = math.inf, 0
        self.losses: list[float] = []
        self.best: Iterates | None = None

    def should_stop(self, iterates: Iterates) -> bool:
        """Take an epoch's loss; whether it has not fallen for too long."""
        w = iterates.output(self._held_out.lam, self._average)
        loss = sum(self._mean_hinge(machine, w[machine]) for machine in range(len(w)))
        if self.best is None or loss < min(self.losses, default=math.inf):
            self.best = iterates.copy()
        self.losses.append(loss)
        fallen = loss < self._lowest - self._tol
        self._lowest, self._since = (loss, 0) if fallen else (self._lowest, self._since + 1)
        return self._since >= self._patience

    def _mean_hinge(self, machine: int, w: Floats) -> float:
        hinge = np.maximum(0.0, 1.0 - self._held_out.signs[machine] * self._outputs(w))
        return inner(self._held_out.probability, hinge)


# Where nobody says how many epochs: at least this many, and more where samples are few, as long as all of them together
# make no more steps and touch no more entries than this (some tenths of a second on one core).
_LEAST_EPOCHS, MOST_EPOCHS = 10, 2000
_MOST_STEPS, _MOST_ENTRIES = 1_000_000, 300_000_000

# Short epochs are made several at a time, up to this many steps, so that Python costs nothing beside them.
_STEPS_PER_ROUND = 10_000

# One call into the core touches about this many entries: a tenth of a second, after which limits are looked at.
_ENTRIES_PER_CALL = 50_000_000


@dataclass(frozen=True, eq=False)
class PegasosOutcome:
    """The iterates and their mean w, with F(w) summed over the machines, and how the steps ended.

    `rows` are those learnt from: the columns of a kernel machine's iterates.
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
    place: Space,
    stop: Stop,
    start: Iterates | None = None,
    report: Report | None = None,
    *,
    seed: int,
    epochs: int | None = None,
    average: str = "suffix",
    sampling: str = "replacement",
    project: bool = False,
    held_out: Indices | None = None,
    patience: int = 5,
    sharp: bool = False,
) -> tuple[PegasosOutcome, Certificate]:
    """The mean of the iterates of some epochs, each of as many steps as there are samples.

    Parameters
    ----------
    stop : Stop
        `tol` belongs to early stopping; the certificate only says what was reached.
    epochs : int, optional
        How many, if `stop.max_iter` allows them; None plans at least ten, and more where samples are few.
    start : Iterates, optional
        Steps to go on from.
    average : {"suffix", "all", "last"}
        Which iterates the mean is of.
    sampling : {"replacement", "passes"}
        Draw every sample anew, or visit each as often as its weight says in every epoch.
    project : bool
        Keep ‖w‖ ≤ 1/√λ.
    held_out : array of rows, optional
        The validation part: not learnt from. Descent stops when the loss there has not fallen by more than `stop.tol`
        per machine for `patience` epochs, and the best epoch's iterates come out.
    sharp : bool
        Make the certificate's dual point of what the later steps have met rather than of w alone. The gap is tighter
        as long as w has not settled; counting visits takes up to a fifth of the time.
    """
    rows = np.arange(place.n)
    stopping: EarlyStopping | None = None
    if held_out is not None:
        rows, validation = np.setdiff1d(rows, held_out), problem.part(held_out)
        problem = problem.part(rows)
        place, outputs = place.split(rows, held_out)
        stopping = EarlyStopping(validation, outputs, average, stop.tol, patience)
    iterates = Iterates.zero(len(problem.signs), place.size) if start is None else start.copy()
    deadline = stop.deadline
    if isinstance(place, KernelSpace):  # the certificate may meet every sample; but half of the time is for steps
        deadline -= min(0.5 * stop.seconds, ProofTime(place.gram, stop)(problem.signs)) if deadline < np.inf else 0.0
    trail = Trail(*problem.signs.shape) if sharp else None
    call = Call(iterates, problem.lam, project, None if trail is None else trail.counts)
    cumulative, m, done = np.cumsum(problem.weight), place.n, 0
    planned = min(_default_epochs(place, len(problem.signs)) if epochs is None else epochs, stop.max_iter)
    reason: StopReason = "all steps"
    while done < planned and reason == "all steps":
        some = 1 if stopping is not None else min(planned - done, max(1, _STEPS_PER_ROUND // m))
        if sampling == "passes":
            each = problem.probability * m
            draws = np.concatenate([one_pass(seed, number, each) for number in range(done, done + some)])
        else:
            draws = draw(seed, cumulative, iterates.t, some * m)
        done += some
        made = advance(place, problem.signs, draws, call, deadline)
        if trail is not None:
            trail.visit(draws[:made], iterates.t)
        if stopping is not None and stopping.should_stop(iterates):
            reason = "early stopping"
        elif made < len(draws):
            reason = "max_time"
        if report is not None:
            report(partial(_words, done, iterates.t, stopping))
    chosen = iterates if stopping is None or stopping.best is None else stopping.best
    w = chosen.finite_output(problem.lam, average)
    f = np.array([place.outputs(each) for each in w])
    violating = problem.signs * f < 1.0
    share = violating.astype(np.float64) if trail is None else trail.shares(violating)
    certificate = certify_descent(problem, place, w, share)
    objective = sum(problem.objective(k, place.square(w[k], f[k]), f[k]) for k in range(len(w)))
    losses = None if stopping is None else np.array(stopping.losses)
    return PegasosOutcome(chosen, w, float(objective), rows, done, reason, losses), certificate


def _default_epochs(place: Space, machines: int) -> int:
    affordable = min(_MOST_STEPS, _MOST_ENTRIES // (place.cost * machines)) // place.n
    return min(max(affordable, _LEAST_EPOCHS), MOST_EPOCHS)


def advance(place: Space, signs: Floats, draws: Indices, call: Call, deadline: float) -> int:
    """Make the steps of these draws for every machine (row of `signs`); how many there was time for."""
    made = 0
    for part in _parts(place, draws, call.iterates, len(signs)):
        if time.monotonic() >= deadline:
            break
        for machine in range(len(signs)):
            place.run(machine, signs[machine], part, call)
        call.iterates.moved(len(part))
        made += len(part)
    return made


def _parts(place: Space, draws: Indices, iterates: Iterates, machines: int) -> Iterator[Indices]:
    """The draws cut where t is a power of two, and into calls of bounded work."""
    most = max(1, _ENTRIES_PER_CALL // (place.cost * machines))
    begin = 0
    while begin < len(draws):
        to_power = (1 << iterates.t.bit_length()) - iterates.t
        end = min(len(draws), begin + most, begin + to_power)
        yield draws[begin:end]
        begin = end


def _words(epochs: int, steps: int, stopping: EarlyStopping | None) -> str:
    loss = "" if stopping is None else f"  validation loss {stopping.losses[-1]:.5f}"
    return f"epoch {epochs:>6,}  {steps:>12,} steps{loss}"
