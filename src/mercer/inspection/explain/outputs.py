"""Decision functions of a fitted machine as kernel expansions, with names for their outputs.

    f = factor · Σ_j β_j k(x_j, x) + a constant

The factor is the machine's `_DECISION_FACTOR`: 2 for the smallest enclosing ball, where f(x) = R² − ‖φ(x) − a‖² and
k(x, x) is constant, otherwise 1. If a table standardised y, it is multiplied by the scale of y, so that f has y's unit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from mercer.estimators.fitting.pipeline.fit import read_samples
from mercer.estimators.fitting.pipeline.state import has_function_per_class
from mercer.kernels import Kernel
from mercer.kernels.names import kernel_named
from mercer.places.expansion import Expansion
from mercer.runtime.threads import effective_n_threads
from mercer.samples.arrays import Floats, host
from mercer.samples.labels import Pair, planes, side_labels
from mercer.samples.matrices import as_float64, dense
from mercer.tables.unwrap import Unwrapped, unwrap


@dataclass(frozen=True, eq=False)
class Outputs:
    """Decision functions of one machine.

    `names` has a name for each function. `pairs` holds the two classes of each function of a one-vs-one machine, and is
    None for others. `coefficients` has a row for each vector; `vectors` is None for a precomputed kernel.
    """

    unwrapped: Unwrapped
    names: tuple[str, ...]
    pairs: list[Pair] | None
    kernel: Kernel
    vectors: Any
    coefficients: Any

    @property
    def model(self) -> Any:
        """The fitted machine."""
        return self.unwrapped.machine

    @property
    def function(self) -> str:
        """Name of the explained function: "f", or another name if `decision_function` returns something else."""
        return self.model._DECISION_NAME or "f"

    @property
    def factor(self) -> Any:
        """Factor of the kernel expansion: one number, or one for each output."""
        return self.model._DECISION_FACTOR * self.unwrapped.unit[1]

    def rows(self, X: Any) -> Any:
        """Return X as the machine reads it, in float64 on the host."""
        kernel = None if not hasattr(self.model, "kernel_") else self.kernel
        return as_float64(host(read_samples(self.model, self.unwrapped.rows(X), kernel, reset=False)))

    def f(self, rows: Any) -> Floats:
        """Evaluate the functions at rows that the method `rows` returned, one column for each function."""
        expansion: Expansion | None = getattr(self.model, "_expansion_", None)
        with np.errstate(over="ignore", invalid="ignore"):
            if expansion is None:
                values = np.asarray(rows @ self.vectors.T) + np.atleast_1d(self.model.intercept_)
            else:
                values = expansion(rows, effective_n_threads(getattr(self.model, "n_jobs", None)))
            if self.model._SUBTRACTS_DIAGONAL:
                values = self.model._DECISION_FACTOR * values - self.kernel.diag(rows)[:, None]
            mean, scale = self.unwrapped.unit
            values = values * scale + mean
        if not np.isfinite(values).all():
            raise FloatingPointError(f"{self.kernel!r} overflows float64 for these rows; scale the features")
        return np.asarray(values)

    def vector_blocks(self, ranges: Iterable[slice]) -> Iterator[tuple[Floats, Floats]]:
        """Yield blocks of vectors with their coefficients, both as new dense arrays."""
        for block in ranges:
            yield np.array(as_dense(self.vectors[block])), np.array(as_dense(self.coefficients[block]))

    def expect_vectors(self, purpose: str) -> None:
        """Raise ValueError for kernels on strings and for precomputed kernels, which have no features."""
        if self.kernel.accepts != "vectors":
            input_kind = "strings" if self.kernel.accepts == "sequences" else "a matrix of kernel values"
            raise ValueError(
                f"{purpose} needs features, but {self.kernel!r} takes {input_kind} only; model.reasons(X) shows which "
                "support vectors decide about a sample"
            )


def outputs_of(model: Any) -> Outputs:
    """Return the decision functions of a fitted model: a machine, or a Pipeline, Tabular, search or calibration."""
    unwrapped = unwrap(model)
    machine = unwrapped.machine
    if not hasattr(machine, "explain"):
        raise TypeError(
            f"{type(machine).__name__} is not a mercer estimator that predicts from a function f; pass one such as SVC "
            "or SVR, or a Pipeline, a Tabular, a search or a calibration of one"
        )
    check_is_fitted(machine)
    names, pairs = _names(machine)
    expansion: Expansion | None = getattr(machine, "_expansion_", None)
    if expansion is None:  # a linear machine, whose only vector is w
        w = np.atleast_2d(np.asarray(machine.coef_, dtype=np.float64))
        return Outputs(unwrapped, names, pairs, kernel_named("linear"), w, np.eye(len(w)))
    if machine._SUBTRACTS_DIAGONAL:
        terms = expansion.kernel.terms(machine.n_features_in_) if expansion.kernel.accepts == "vectors" else None
        if expansion.kernel.unit_diagonal != "yes" and not (terms and all(term.of_differences for term in terms)):
            raise ValueError(
                f"{type(machine).__name__} with {expansion.kernel!r} cannot be explained: f is not linear in the "
                "kernel values, since k(x, x) differs between samples; use OneClassSVM, or a kernel of "
                "differences such as the Gaussian"
            )
    return Outputs(unwrapped, names, pairs, expansion.kernel, expansion.vectors, expansion.coefficients)


def as_dense(rows: Any) -> Floats:
    """Return rows as a dense C-ordered float64 array."""
    return np.ascontiguousarray(dense(rows), dtype=np.float64)


def class_signs(n_classes: int, pairs: Sequence[Pair] | None) -> Floats:
    """Return the sign with which each output (row) supports each class (column): 1, −1, or 0 for no effect.

    One-vs-one machines decide by votes; the sum of a class's decision values breaks ties between votes.
    """
    if n_classes == 2:
        return np.array([[-1.0, 1.0]])
    if pairs is None:
        return np.eye(n_classes)
    signs = np.zeros((len(pairs), n_classes))
    for output, (first, second) in enumerate(pairs):
        signs[output, first], signs[output, second] = 1.0, -1.0
    return signs


def _names(model: Any) -> tuple[tuple[str, ...], list[Pair] | None]:
    """Return a name for each output, and the classes of each output if there is one for each pair of classes."""
    n = len(np.atleast_1d(model.intercept_))
    if is_classifier(model):
        labels = model.classes_.tolist()
        per_class = not hasattr(model, "decision_function_shape") or has_function_per_class(model)
        if len(labels) == 2 or per_class:
            prefix = f"{model._DECISION_NAME} of " if model._DECISION_NAME else ""
            return tuple(f"{prefix}{label}" for label in (labels[1:] if len(labels) == 2 else labels)), None
        pairs = planes(len(labels), against_rest=False)
        return tuple("{} against {}".format(*side_labels(pair, labels)) for pair in pairs), pairs
    if hasattr(model, "quantiles_"):
        return tuple(f"quantile {tau:g}" for tau in model.quantiles_), None
    return ("f",) if n == 1 else tuple(f"output {k}" for k in range(n)), None
