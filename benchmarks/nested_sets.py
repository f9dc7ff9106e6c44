"""Nested working sets: rounds, kernel values and seconds of one SVC, for several sizes of the outer set in turns.

    python benchmarks/nested_sets.py [--rows 200000] [--sets 0,8192] [--threads 16] [--repeats 3]
    python benchmarks/nested_sets.py --data FOLDER --name letter --C 10

A set of 0 is the loop of single blocks. A round is a pass over all active rows; kernel values are counted in n × nSV,
without the certificate's. Prints Markdown: the least seconds of the loop, its values and its seconds by those of the
first set; on a busy machine only CPU seconds compare. Ends with an error if two dual values differ by more than their
gaps.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from typing import Any
from unittest import mock

import harness
import numpy as np
import tasks

from mercer.certificates.certificate import Certificate
from mercer.certificates.dual import certify_dual
from mercer.kernels import Gaussian
from mercer.places import gram_for
from mercer.places.host.field import HostField
from mercer.places.host.kernel_matrix import KernelMatrix
from mercer.places.host.tiled_field import TiledField
from mercer.problems.classification import soft_margin
from mercer.solvers.dual.decomposition import decompose
from mercer.solvers.solution import Stop

Data = tuple[Any, np.ndarray]


@dataclass(frozen=True)
class Outcome:
    """One solve: its certificate, support vectors and pair steps, and what it cost."""

    certificate: Certificate
    vectors: int
    steps: int
    rounds: int
    values: int  # kernel values of the loop
    seconds: float  # of the loop
    cpu_seconds: float  # of all its threads
    proof_seconds: float


def mixture(n: int, d: int = 20, clouds: int = 40) -> Data:
    """Gaussian clouds of two classes in turn, 5 % of the labels wrong, standardised."""
    rng = np.random.default_rng(0)
    centres, cloud = 1.5 * rng.normal(size=(clouds, d)), rng.integers(clouds, size=n)
    X = centres[cloud] + rng.normal(size=(n, d))
    y = np.where((cloud % 2 == 0) ^ (rng.random(n) < 0.05), 1.0, -1.0)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def solve(data: Data, C: float, gamma: float, tol: float, threads: int, outer: int) -> Outcome:
    """The loop in the fastest precision, and the certificate of what it found."""
    X, y = data
    problem, rounds, begun = soft_margin(y, np.full(len(y), C)), 0, (time.perf_counter(), time.process_time())

    def counted(move: Any) -> Any:
        def call(field: HostField, *given: Any) -> None:
            nonlocal rounds
            rounds += field.problem is problem  # not the problem on a working set
            move(field, *given)

        return call

    with (
        mock.patch.object(KernelMatrix, "outer_rows", outer),
        mock.patch.object(HostField, "move", counted(HostField.move)),
        mock.patch.object(TiledField, "move", counted(TiledField.move)),
    ):
        gram = gram_for(Gaussian(gamma=gamma), X, 4_000_000_000, threads)
        field = gram.field(problem, dtype=gram.precisions[0])
        solution = decompose(field, Stop(tol, 10**9, n_threads=threads))
    values, solved = gram.evaluations, (time.perf_counter(), time.process_time())
    certificate = certify_dual(problem, gram, solution.beta, tol)[0]
    times = solved[0] - begun[0], solved[1] - begun[1], time.perf_counter() - solved[0]
    return Outcome(certificate, int(np.count_nonzero(solution.beta)), solution.steps, rounds, values, *times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=None, help="samples; by default 200,000, or all of a data set")
    parser.add_argument("--sets", default="0,8192", help="variables of an outer set")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--data", help="folder with the data sets")
    parser.add_argument("--name", default="mixture")
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--tol", type=float, default=1e-3)
    given = parser.parse_args()
    harness.same_threads_for_all(given.threads)
    if given.name == "mixture":
        data, gamma = mixture(given.rows or 200_000), 0.05
    else:
        task = tasks.load(given.data, given.name, given.rows).dense().binary()
        data, gamma = (task.X, np.where(task.y == task.y.max(), 1.0, -1.0)), task.gamma()
    sets = [int(size) for size in given.sets.split(",")]
    outcomes: dict[int, Outcome] = {}
    for turn in range(given.repeats):
        for size in sets:
            one = solve(data, given.C, gamma, given.tol, given.threads, size)
            outcomes[size] = min(outcomes.get(size, one), one, key=lambda outcome: outcome.seconds)
            harness.progress(f"turn {turn + 1}: set {size}, {one.rounds} rounds, {one.seconds:.2f} s")
    n, d = data[0].shape
    print(f"{given.name}, {n:,} × {d}, C = {given.C:g}, {given.threads} threads\n")
    first = outcomes[sets[0]]
    lines = [
        (
            size,
            one.rounds,
            f"{one.steps:,}",
            f"{one.vectors:,}",
            f"{one.values / (n * one.vectors):.2f}",
            f"{one.seconds:.2f}",
            f"{one.cpu_seconds:.2f}",
            f"{one.proof_seconds:.2f}",
            f"{one.values / first.values:.2f}",
            f"{one.seconds / first.seconds:.2f}",
            f"{one.cpu_seconds / first.cpu_seconds:.2f}",
        )
        for size, one in outcomes.items()
    ]
    header = "set, rounds, steps, nSV, values, loop s, its CPU s, proof s, values ÷, loop ÷, CPU ÷"
    print(harness.table(header.split(", "), lines))
    check(outcomes)


def check(outcomes: dict[int, Outcome]) -> None:
    """Each dual value is at most the optimum, and at most its gap below it: two that differ by more are wrong."""
    for size, one in outcomes.items():
        for other in outcomes.values():
            if one.certificate.dual - other.certificate.dual > other.certificate.gap:
                raise SystemExit(f"a set of {size} ends at {one.certificate}, another at {other.certificate}")


if __name__ == "__main__":
    main()
