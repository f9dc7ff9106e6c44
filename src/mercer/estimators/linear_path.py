"""The path of a linear machine over C: each C starts from the solution of the one before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.arrays import Floats, freeze
from mercer.certificates.certificate import Certificate
from mercer.estimators.linear import LinearSVC, hinge_problems
from mercer.fitting.families.linear_machine import linear_solver, warn_of_early_ends
from mercer.fitting.pipeline.fit import Fit
from mercer.fitting.pipeline.telling import Progress
from mercer.parameters import positive
from mercer.solvers.linear.outcome import LinearSolution


@dataclass(frozen=True, eq=False)
class LinearPath:
    """One row for each C, in rising order.

    Attributes
    ----------
    C : array of shape (n_points,)
        The prices of slack.
    coef : array of shape (n_points, n_features)
        w of each.
    intercept : array of shape (n_points,)
        b of each.
    gap : array of shape (n_points,)
        The duality gap as a share of the dual value.
    certificates : tuple of Certificate
        The proof of each.
    stop_reasons : tuple of str
        "converged", or the limit that ended the fit at this C.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from mercer import linear_path
    >>> path = linear_path(*make_classification(random_state=0), Cs=[0.1, 1.0, 10.0])
    >>> path.coef.shape, bool((path.gap < 1e-2).all())
    ((3, 20), True)
    """

    C: Floats
    coef: Floats
    intercept: Floats
    gap: Floats
    certificates: tuple[Certificate, ...]
    stop_reasons: tuple[str, ...] = ()

    def __repr__(self) -> str:
        n, d = self.coef.shape
        values = f"{n} values of C from {self.C[0]:.3g} to {self.C[-1]:.3g}"
        return f"LinearPath({values}, {d} features, gap <= {self.gap.max():.1e})"


def linear_path(X: Any, y: Any, *, Cs: Sequence[float], sample_weight: Any = None, **options: Any) -> LinearPath:
    """LinearSVC of two classes for every C of `Cs`, by warm starts.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
        The samples.
    y : array of shape (n_samples,)
        Two classes.
    Cs : sequence of float
        Taken in rising order: what a small C has settled, a larger one needs to change little.
    sample_weight : array of shape (n_samples,), optional
        A weight of 2 equals the sample given twice.
    **options : parameters of LinearSVC
        All but C.

    Returns
    -------
    LinearPath

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from mercer import linear_path
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> path = linear_path(X, y, Cs=[0.01, 0.1, 1.0])
    >>> path.coef.shape
    (3, 30)
    >>> bool((path.gap < 1e-6).all())
    True
    """
    machine = LinearSVC(**options)
    values = np.unique([positive("Cs", C) for C in Cs])
    if len(values) == 0:
        raise ValueError("Cs is empty; give at least one C")
    fit = Fit.of(machine, X, y, sample_weight)
    if len(fit.target.labels) != 2:
        raise ValueError(
            f"a path is for two classes, but y has {len(fit.target.labels)}; use (y == label) for one of them"
        )
    solve, rows, stop = linear_solver(machine, fit), fit.rows(), fit.limits.stop
    progress = Progress(None, bool(machine.verbose), len(values), fit.X, y)
    found: list[tuple[LinearSolution, Certificate]] = []
    start: LinearSolution | None = None
    for k, C in enumerate(values):
        if found:
            last = found[-1][0]
            # The dual variables grow with C; a bound stays a bound.
            start = replace(last, beta=last.beta * float(C / values[k - 1]))
        (problem,) = hinge_problems(machine, fit, float(C))
        found.append(solve(problem, rows, stop, start, progress.begin(f"C={C:g}")))
        progress.end()
    warn_of_early_ends(values, found)
    return LinearPath(
        C=freeze(values),
        coef=freeze(fit.widened(np.array([solution.w for solution, _ in found]))),
        intercept=freeze(np.array([solution.b for solution, _ in found])),
        gap=freeze(np.array([certificate.relative_gap for _, certificate in found])),
        certificates=tuple(certificate for _, certificate in found),
        stop_reasons=tuple(solution.stop_reason for solution, _ in found),
    )
