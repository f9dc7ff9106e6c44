"""What a machine computes, for those who explain it: its functions, their names, and f at given rows.

    f = factor · Σ_j β_j k(x_j, x) + a constant

The factor is the machine's `_DECISION_FACTOR`: 2 for the smallest ball, R² − ‖φ(x) − a‖² with k(x, x) constant, 1
elsewhere; times the scale of y where a table standardised it, so that f is in the unit of y.
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
from mercer.samples.labels import Pair, names_of, planes
from mercer.samples.matrices import dense, widened
from mercer.tables.unwrap import Asked, ask


@dataclass(frozen=True, eq=False)
class Outputs:
    """The functions of one machine, by their names; `pairs` are their classes where there is one for each pair.

    `coefficients` have a row for each of the `vectors`, which are None for a precomputed kernel.
    """

    asked: Asked
    names: tuple[str, ...]
    pairs: list[Pair] | None
    kernel: Kernel
    vectors: Any
    coefficients: Any

    @property
    def model(self) -> Any:
        """The machine."""
        return self.asked.machine

    @property
    def function(self) -> str:
        """The name of what is explained: "f", or that of f where `decision_function` answers something else."""
        return self.model._DECISION_NAME or "f"

    @property
    def factor(self) -> Any:
        """One number, or one for each output."""
        return self.model._DECISION_FACTOR * self.asked.unit[1]

    def rows(self, X: Any) -> Any:
        """X as the machine reads it, in float64 on this machine."""
        kernel = None if not hasattr(self.model, "kernel_") else self.kernel
        return widened(host(read_samples(self.model, self.asked.rows(X), kernel, reset=False)))

    def f(self, rows: Any) -> Floats:
        """The functions at rows that were read, one column each."""
        expansion: Expansion | None = getattr(self.model, "_expansion_", None)
        with np.errstate(over="ignore", invalid="ignore"):
            if expansion is None:
                values = np.asarray(rows @ self.vectors.T) + np.atleast_1d(self.model.intercept_)
            else:
                values = expansion(rows, effective_n_threads(getattr(self.model, "n_jobs", None)))
            if self.model._SUBTRACTS_DIAGONAL:
                values = self.model._DECISION_FACTOR * values - self.kernel.diag(rows)[:, None]
            mean, scale = self.asked.unit
            values = values * scale + mean
        if not np.isfinite(values).all():
            raise FloatingPointError(f"{self.kernel!r} overflows float64 for these rows; scale the features")
        return np.asarray(values)

    def parts(self, ranges: Iterable[slice]) -> Iterator[tuple[Floats, Floats]]:
        """Some vectors at a time and their coefficients, both as fresh dense arrays."""
        for some in ranges:
            yield np.array(as_dense(self.vectors[some])), np.array(as_dense(self.coefficients[some]))

    def expect_vectors(self, purpose: str) -> None:
        """Refuse kernels of strings and of precomputed values, which have no features."""
        if self.kernel.accepts != "vectors":
            what = "strings" if self.kernel.accepts == "sequences" else "a matrix of kernel values"
            raise ValueError(
                f"{purpose} needs features, but {self.kernel!r} knows {what} only; model.reasons(X) tells which "
                "support vectors decide about a sample"
            )


def outputs_of(given: Any) -> Outputs:
    """The functions of a trained machine, which may stand in a Pipeline, a table, a search or a calibration."""
    asked = ask(given)
    model = asked.machine
    if not hasattr(model, "explain"):
        raise TypeError(
            f"{type(model).__name__} is none of mercer's machines that predict from f; ask a machine such as SVC or "
            "SVR, or a Pipeline, a Tabular, a search or a calibration of one"
        )
    check_is_fitted(model)
    names, pairs = _names(model)
    expansion: Expansion | None = getattr(model, "_expansion_", None)
    if expansion is None:  # a linear machine: w is its only vector
        w = np.atleast_2d(np.asarray(model.coef_, dtype=np.float64))
        return Outputs(asked, names, pairs, kernel_named("linear"), w, np.eye(len(w)))
    if model._SUBTRACTS_DIAGONAL:
        terms = expansion.kernel.terms(model.n_features_in_) if expansion.kernel.accepts == "vectors" else None
        if expansion.kernel.unit_diagonal != "yes" and not (terms and all(term.of_differences for term in terms)):
            raise ValueError(
                f"{type(model).__name__} with {expansion.kernel!r} cannot be explained: it is not linear in its kernel "
                "values, since k(x, x) is not the same for all samples; use OneClassSVM, or a kernel of differences "
                "such as the Gaussian"
            )
    return Outputs(asked, names, pairs, expansion.kernel, expansion.vectors, expansion.coefficients)


def as_dense(rows: Any) -> Floats:
    """Rows as a C-ordered float64 array."""
    return np.ascontiguousarray(dense(rows), dtype=np.float64)


def class_signs(n_classes: int, pairs: Sequence[Pair] | None) -> Floats:
    """How each output (row) speaks for each class (column): for it with 1, against it with −1, or not at all.

    One against one decides by votes; the sum of a class's decision values is what breaks ties between them.
    """
    if n_classes == 2:
        return np.array([[-1.0, 1.0]])
    if pairs is None:
        return np.eye(n_classes)
    signs = np.zeros((len(pairs), n_classes))
    for place, (first, second) in enumerate(pairs):
        signs[place, first], signs[place, second] = 1.0, -1.0
    return signs


def _names(model: Any) -> tuple[tuple[str, ...], list[Pair] | None]:
    n = len(np.atleast_1d(model.intercept_))
    if is_classifier(model):
        labels = model.classes_.tolist()
        per_class = not hasattr(model, "decision_function_shape") or has_function_per_class(model)
        if len(labels) == 2 or per_class:
            of = f"{model._DECISION_NAME} of " if model._DECISION_NAME else ""
            return tuple(f"{of}{label}" for label in (labels[1:] if len(labels) == 2 else labels)), None
        pairs = planes(len(labels), against_rest=False)
        return tuple("{} against {}".format(*names_of(pair, labels)) for pair in pairs), pairs
    if hasattr(model, "quantiles_"):
        return tuple(f"quantile {tau:g}" for tau in model.quantiles_), None
    return ("f",) if n == 1 else tuple(f"output {k}" for k in range(n)), None
