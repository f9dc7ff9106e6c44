"""Explain a prediction by the support vectors with the largest |β_i k(x, x_i)|.

Since f(x) = Σ_i β_i k(x, x_i) + b, the support vector x_i contributes β_i k(x, x_i).
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
from mercer.samples.engine import to_engine
from mercer.samples.labels import plane_coefficients, planes
from mercer.samples.matrices import dense
from mercer.tables.unwrap import Unwrapped


@dataclass(frozen=True, eq=False, repr=False)
class Reasons:
    """Support vectors that contribute most to the prediction of one sample.

    Attributes
    ----------
    prediction : label or float
        Predicted class of a classifier, or f(x).
    indices : array of int or None
        Indices of the vectors among the training samples, as in `support_`; None for a machine that does not keep them.
    labels : array or None
        Classes of the vectors; None if the machine does not know them.
    vectors : array, CSR matrix, list of strings or None
        The vectors, in the columns of X; None for a precomputed kernel, and if the steps of a Pipeline cannot be
        inverted.
    similarities : array
        Kernel values k(x, x_i).
    contributions : array
        Contributions β_i k(x, x_i), positive if they support the predicted class, or raise f; in the unit of y.
    shares : array
        Contributions divided by the sum of |contributions| of all vectors.
    feature_names : list of str or None
        Names of the vectors' columns, for a table.
    function : str
        Name of f, the sum of all contributions and b: "latent mean" for `GaussianProcessClassifier`, whose
        `decision_function` is another function, otherwise "f".
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
        """Return a pandas DataFrame with a row for each vector; for a table, its cells follow on the right."""
        pandas = require("pandas", "a frame of reasons")
        frame = pandas.DataFrame({name: column for name, column in self._columns().items() if column is not None})
        if self.feature_names is None or self.vectors is None:
            return frame
        cells = pandas.DataFrame(self.vectors, columns=self.feature_names).infer_objects()
        return pandas.concat([frame, cells], axis=1)

    def _columns(self) -> dict[str, np.ndarray | None]:
        """Return the columns of the table of vectors; None for a column that is not known."""
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
        shown_columns = {name: column for name, column in self._columns().items() if column is not None}
        # A fit to the default tol determines about three digits.
        cells = [
            [name, *(f"{v:.3g}" if isinstance(v, float) else str(v) for v in c)] for name, c in shown_columns.items()
        ]
        widths = [max(map(len, column)) for column in cells]
        padded_columns = [[cell.rjust(width) for cell in column] for width, column in zip(widths, cells, strict=True)]
        rows = ["  ".join(row) for row in zip(*padded_columns, strict=True)]
        function = "" if self.function == "f" else f"; contributions to the {self.function}"
        return "\n".join([f"prediction {self.prediction}{function}", *rows])

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Show the table in a notebook; inside a list, one line."""
        printer.text(repr(self) if len(getattr(printer, "stack", ())) > 1 else str(self))


class _Vectors(NamedTuple):
    """Vectors of a machine, with their coefficients in each of its functions."""

    rows: Any
    indices: Indices | None
    labels: np.ndarray | None
    coefficients: Floats
    columns: Indices | None  # columns of a precomputed kernel matrix
    unwrapped: Unwrapped


def reasons(model: Any, X: Any, n: int = 5, output: int = 0) -> list[Reasons]:
    """Return the vectors that contribute most to the prediction of each sample; see the method of the estimators."""
    n = integer("n", n, 1, "the number of vectors to name")
    machine = outputs_of(model)
    model = machine.model
    if not hasattr(model, "_expansion_"):
        raise ValueError(
            f"{type(model).__name__} keeps w and no vectors of samples; model.explain(X, background) shows what each "
            "feature adds"
        )
    output = integer("output", output, 0, "the number of an output")
    if output >= len(machine.names):
        raise ValueError(f"there is no output {output}; this model has {len(machine.names)}, counted from 0")
    kernel = machine.kernel
    X = to_engine(machine.unwrapped.rows(X))
    rows = read_samples(model, X, kernel, reset=False)
    vectors = _vectors(machine)
    labels: Any = None
    if is_classifier(model):
        labels, classes = model.predict(X), model.classes_.tolist()
        # One row of coefficients per class: those of its function, or the signed sum over its pairs.
        class_coefficients = (vectors.coefficients @ class_signs(len(classes), machine.pairs)).T
    out: list[Reasons] = []
    for span in row_blocks(n_samples(rows), 8 * max(1, len(vectors.coefficients))):
        block = rows_between(rows, span)
        K = dense(host(block))[:, vectors.columns] if vectors.columns is not None else kernel(block, vectors.rows)
        if labels is None:
            predictions, weights = machine.f(block)[:, output], vectors.coefficients[None, :, output]
        else:
            predictions = labels[span]
            weights = class_coefficients[[classes.index(label) for label in predictions.tolist()]]
        contributions = K * weights
        out += [_reasons_of_row(vectors, K[i], contributions[i], predictions[i], n) for i in range(len(K))]
    return out


def _vectors(machine: Outputs) -> _Vectors:
    """Return the support vectors one by one if the machine keeps them, otherwise the merged ones of the expansion."""
    model, expansion = machine.model, machine.model._expansion_
    if not (isinstance(model, DualMachine) and hasattr(model, "support_")):  # a compressed machine has none
        table = np.asarray(dense(expansion.coefficients), dtype=np.float64)
        return _Vectors(expansion.vectors, None, None, machine.factor * table, expansion.columns, machine.unwrapped)
    indices = np.asarray(model.support_, dtype=np.intp)
    labels, table = None, np.asarray(model.dual_coef_, dtype=np.float64).T
    if is_classifier(model):
        k = len(model.classes_)
        labels = np.repeat(model.classes_, model.n_support_)
        pairs = machine.pairs or planes(k, against_rest=True)
        columns = [plane_coefficients(model.dual_coef_, model.n_support_, pairs, p) for p in range(len(pairs))]
        table = np.stack(columns, axis=1)
    is_precomputed = machine.vectors is None
    vectors = None if is_precomputed else model.support_vectors_
    matrix_columns = indices if is_precomputed else None
    return _Vectors(vectors, indices, labels, machine.factor * table, matrix_columns, machine.unwrapped)


def _reasons_of_row(support: _Vectors, similarities: Floats, contributions: Floats, prediction: Any, n: int) -> Reasons:
    """Return the `n` vectors with the largest |contribution| to the prediction of one sample."""
    order = np.argsort(-np.abs(contributions), kind="stable")[:n]
    order = order[contributions[order] != 0]
    total = float(np.abs(contributions).sum())
    vectors, unwrapped = None if support.rows is None else take(support.rows, order), support.unwrapped
    if unwrapped.steps and vectors is not None:
        # Compression moves vectors, which then are rows of no table.
        vectors = None if "_compression_" in vars(unwrapped.machine) else unwrapped.cells_of_vectors(vectors)
    return Reasons(
        prediction=prediction,
        indices=None if support.indices is None else unwrapped.trained_rows(support.indices[order]),
        labels=None if support.labels is None else support.labels[order],
        vectors=vectors,
        similarities=similarities[order],
        contributions=contributions[order],
        shares=contributions[order] / total if total > 0 else contributions[order],
        feature_names=unwrapped.names if unwrapped.steps else None,
        function=unwrapped.machine._DECISION_NAME or "f",
    )
