"""The whole path of a two-class machine in C."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mercer.arrays import Floats
from mercer.estimators.svc import SVC
from mercer.fitting.pipeline.fit import Fit
from mercer.fitting.pipeline.telling import Progress
from mercer.parameters import positive
from mercer.paths.between import nodes_of
from mercer.paths.c_path import CPath
from mercer.paths.trace import trace
from mercer.problems.classification import soft_margin
from mercer.problems.dual_problem import DualProblem

# The most samples whose path is exact unless told otherwise: it takes some three events for each of them, and an event
# a product with up to that many rows of K.
_MOST_EXACT = 5000
# What an ε-path is unless told.
_EPSILON, _RANGE = 1e-3, (0.01, 100.0)


def svm_path(
    X: Any,
    y: Any,
    *,
    C_min: float | None = None,
    C_max: float | None = None,
    epsilon: float | None = None,
    sample_weight: Any = None,
    **options: Any,
) -> CPath:
    """SVC of two classes for every C: α is piecewise linear in C, and every breakpoint is found.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
        A list of strings for a string kernel; the square kernel matrix for a precomputed one.
    y : array of shape (n_samples,)
        Two classes.
    C_min : float, optional
        Where the range of C begins: by default at 0, that of an ε-path at 0.01.
    C_max : float, optional
        Where it ends: by default where nothing changes any more, or where float64 cannot tell `tol` from its rounding;
        that of an ε-path at 100.
    epsilon : float, optional
        Ask for an ε-path: ordinary fits so near to one another that the machine interpolated between two of them has a
        relative duality gap of at most ε, which is proven. By default the path is exact up to 5,000 distinct samples,
        and an ε-path with ε = 0.001 beyond.
    sample_weight : array of shape (n_samples,), optional
        Weights of the samples, by which C is multiplied.
    **options : parameters of SVC
        Those besides C: `kernel`, `gamma`, `bias`, `class_weight`, ... `tol` is 1e-8 unless given.

    Returns
    -------
    CPath

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from mercer import svm_path
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> path = svm_path(scale(X), y, C_max=100)
    >>> len(path.C_) > 500, path.at(3.7).certificate_.violation < 1e-8
    (True, True)
    """
    machine = SVC(**{"tol": 1e-8, **options})
    if epsilon is not None:
        positive("epsilon", epsilon, "it is a relative duality gap")
    begin = None if C_min is None else positive("C_min", C_min)
    end = math.inf if C_max is None else positive("C_max", C_max)
    if begin is not None and not begin < end:
        raise ValueError(f"C_min={C_min!r} is not below C_max={C_max!r}; give a range")
    _check_machine(machine)
    fit = Fit.of(machine, X, y, sample_weight)
    if len(fit.target.labels) != 2:
        raise ValueError(
            f"a path is for two classes, but y has {len(fit.target.labels)}; use (y == label) for one of them against "
            "the rest, or the rows of two of them"
        )
    gram = fit.gram()
    if gram.positive_definite == "no":
        raise ValueError(
            f"{fit.kernel!r} is not positive definite on these samples, and only then is α a function of C; use "
            "another kernel"
        )
    problem = problem_of(machine, fit)
    progress = Progress(None, bool(machine.verbose), 1, fit.X, y)
    if epsilon is None and len(fit.merged.y) > _MOST_EXACT:
        epsilon = _EPSILON
    if epsilon is not None:
        begin, end = begin or _RANGE[0], end if math.isfinite(end) else _RANGE[1]
        nodes = nodes_of(
            problem, gram, fit.limits.stop, begin, end, epsilon, constant=fit.constant, report=progress.begin("path")
        )
        progress.end()
        return CPath(machine, fit, nodes)
    found = trace(problem, gram, fit.limits.stop, begin, end, constant=fit.constant, report=progress.begin("path"))
    progress.end()
    return CPath(machine, fit, found)


def problem_of(machine: Any, fit: Fit) -> DualProblem:
    """The problem of a two-class machine at C = 1."""
    (pair,) = fit.target.pairs
    rows, sides = fit.target.sides(pair, fit.merged.y)
    assert np.array_equal(rows, np.arange(len(fit.merged.y)))
    y: Floats = sides
    problem = soft_margin(y, fit.target.factor[fit.merged.y] * fit.merged.weight)
    return problem if machine.bias is True else problem.without_bias()


def _check_machine(machine: SVC) -> None:
    if machine.C != 1.0 or machine.theta is not None:
        raise ValueError("the path is that of all C: leave C, theta and lam out, and give C_min and C_max")
    if machine.slack != "l1":
        raise ValueError(
            f"slack={machine.slack!r} has no exact path: C_i ξ_i² makes α a curve in C; use slack='l1', or fit SVC for "
            "each C with warm_start=True"
        )
    if machine.multiclass not in ("ovo", "ovr"):
        raise ValueError(f"multiclass={machine.multiclass!r} has no path; leave it at 'ovo'")
