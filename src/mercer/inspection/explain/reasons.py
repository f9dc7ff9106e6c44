"""Reasons: the support vectors that decide about a sample, those with the largest |β_i k(x, x_i)|.

f(x) = Σ_i β_i k(x, x_i) + b, so that β_i k(x, x_i) is what vector i contributes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier

from mercer.estimators.fitting.families.dual_machine import DualMachine
from mercer.estimators.fitting.pipeline.fit import read_samples
from mercer.inspection.explain.outputs import Outputs, class_signs, outputs_of
from mercer.runtime.optional import require
from mercer.runtime.parameters import integer
from mercer.samples.arrays import Floats, Indices, host, n_samples, row_blocks, rows_between, take
from mercer.samples.engine import placed
from mercer.samples.labels import plane_coefficients, planes
from mercer.samples.matrices import dense
from mercer.tables.unwrap import Asked


@dataclass(frozen=True, eq=False, repr=False)
class Reasons:
    """Why one sample is predicted as it is.

    Attributes
    ----------
    prediction : label or float
        The predicted class of a classifier, or f(x).
    indices : array of int or None
        Which training samples these vectors are, as in `support_`; None for a machine that does not count them.
    labels : array or None
        The vectors' own classes; None where the machine does not know them.
    vectors : array, CSR matrix, list of strings or None
        The vectors themselves, as rows of the user's columns; None for a precomputed kernel, and where a Pipeline's
        steps cannot be undone.
    similarities : array
        k(x, x_i).
    contributions : array
        β_i k(x, x_i), positive where it speaks for the prediction of a classifier, or raises f; in the unit of y.
    shares : array
        The contributions over the sum of the absolute ones of all vectors.
    feature_names : list of str or None
        The columns of the vectors, of a table.
    function : str
        The name of f, which all contributions and b add up to: "latent mean" of `GaussianProcessClassifier`, whose
        `decision_function` is something else; "f".
    """

    prediction: Any
    indices: Indices | None
    labels: np.ndarray | None
    vectors: Any
    similarities: Floats
    contributions: Floats
    shares: Floats
    feature_names: list[str] | None = None
    function: str = "f"

    def __len__(self) -> int:
        return len(self.contributions)

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for each vector; of a table, its cells stand on the right."""
        pandas = require("pandas", "a frame of reasons")
        own = pandas.DataFrame({name: column for name, column in self._columns().items() if column is not None})
        if self.feature_names is None or self.vectors is None:
            return own
        cells = pandas.DataFrame(self.vectors, columns=self.feature_names).infer_objects()
        return pandas.concat([own, cells], axis=1)

    def _columns(self) -> dict[str, np.ndarray | None]:
        return {
            "sample": self.indices,
            "label": self.labels,
            "similarity": self.similarities,
            "contribution": self.contributions,
            "share": self.shares,
        }

    def __repr__(self) -> str:
        return f"Reasons(prediction {self.prediction}, {len(self)} vectors)"

    def __str__(self) -> str:
        shown = {name: column for name, column in self._columns().items() if column is not None}
        # Three digits: a fit to the usual tol has no more.
        cells = [[name, *(f"{v:.3g}" if isinstance(v, float) else str(v) for v in c)] for name, c in shown.items()]
        wide = [max(map(len, column)) for column in cells]
        rows = ["  ".join(cell.rjust(w) for cell, w in zip(row, wide, strict=True)) for row in zip(*cells, strict=True)]
        of = "" if self.function == "f" else f"; contributions to the {self.function}"
        return "\n".join([f"prediction {self.prediction}{of}", *rows])

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """In a notebook the table; of several samples a line for each."""
        printer.text(repr(self) if len(getattr(printer, "stack", ())) > 1 else str(self))


class _Vectors(NamedTuple):
    """The vectors of a machine, with their coefficients in each of its functions."""

    of: Any
    indices: Indices | None
    labels: np.ndarray | None
    coefficients: Floats
    columns: Indices | None
    asked: Asked


def reasons(model: Any, X: Any, n: int = 5, output: int = 0) -> list[Reasons]:
    """The vectors that decide about each sample; see the method of the machines."""
    n = integer("n", n, 1, "the number of vectors to name")
    machine = outputs_of(model)
    model = machine.model
    if not hasattr(model, "_expansion_"):
        raise ValueError(
            f"{type(model).__name__} keeps w and no vectors that a sample could resemble; model.explain(X, background) "
            "tells what each feature adds"
        )
    output = integer("output", output, 0, "the number of an output")
    if output >= len(machine.names):
        raise ValueError(f"there is no output {output}; there are {len(machine.names)}, counted from 0")
    kernel = machine.kernel
    X = placed(machine.asked.rows(X))
    rows = read_samples(model, X, kernel, reset=False)
    own = _vectors(machine)
    labels: Any = None
    if is_classifier(model):
        labels, classes = model.predict(X), model.classes_.tolist()
        # One row of coefficients per class: of its own function, or the sum over its pairs.
        for_classes = (own.coefficients @ class_signs(len(classes), machine.pairs)).T
    out: list[Reasons] = []
    for some in row_blocks(n_samples(rows), 8 * max(1, len(own.coefficients))):
        block = rows_between(rows, some)
        K = dense(host(block))[:, own.columns] if own.columns is not None else kernel(block, own.of)
        if labels is None:
            predictions, weights = machine.f(block)[:, output], own.coefficients[None, :, output]
        else:
            predictions = labels[some]
            weights = for_classes[[classes.index(label) for label in predictions.tolist()]]
        contributions = K * weights
        out += [_one(own, K[i], contributions[i], predictions[i], n) for i in range(len(K))]
    return out


def _vectors(machine: Outputs) -> _Vectors:
    """Each training sample by itself where the machine counts them, else the merged samples of the expansion."""
    model, expansion = machine.model, machine.model._expansion_
    if not (isinstance(model, DualMachine) and hasattr(model, "support_")):  # a compressed one has none
        table = np.asarray(dense(expansion.coefficients), dtype=np.float64)
        return _Vectors(expansion.vectors, None, None, machine.factor * table, expansion.columns, machine.asked)
    indices = np.asarray(model.support_, dtype=np.intp)
    labels, table = None, np.asarray(model.dual_coef_, dtype=np.float64).T
    if is_classifier(model):
        k = len(model.classes_)
        labels = np.repeat(model.classes_, model.n_support_)
        pairs = machine.pairs or planes(k, against_rest=True)
        columns = [plane_coefficients(model.dual_coef_, model.n_support_, pairs, p) for p in range(len(pairs))]
        table = np.stack(columns, axis=1)
    precomputed = machine.vectors is None
    vectors = None if precomputed else model.support_vectors_
    own = indices if precomputed else None
    return _Vectors(vectors, indices, labels, machine.factor * table, own, machine.asked)


def _one(own: _Vectors, similarities: Floats, contributions: Floats, prediction: Any, n: int) -> Reasons:
    order = np.argsort(-np.abs(contributions), kind="stable")[:n]
    order = order[contributions[order] != 0]
    whole = float(np.abs(contributions).sum())
    vectors, asked = None if own.of is None else take(own.of, order), own.asked
    if asked.steps and vectors is not None:
        # The vectors of a compressed machine were moved, and are rows of no table.
        vectors = None if "_compression_" in vars(asked.machine) else asked.cells_of_vectors(vectors)
    return Reasons(
        prediction=prediction,
        indices=None if own.indices is None else asked.trained_rows(own.indices[order]),
        labels=None if own.labels is None else own.labels[order],
        vectors=vectors,
        similarities=similarities[order],
        contributions=contributions[order],
        shares=contributions[order] / whole if whole > 0 else contributions[order],
        feature_names=asked.names if asked.steps else None,
        function=asked.machine._DECISION_NAME or "f",
    )
