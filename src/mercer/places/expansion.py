"""A trained machine as a function f(x) = Σ_j β_j k(x_j, x) + b, evaluated on the engine that holds the samples.

An Expansion is immutable and holds nothing that only training needs. Several outputs, such as the pairs of a
multi-class machine, share the vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from mercer.kernels.kernel import Kernel
from mercer.places import Evaluation, evaluation_for
from mercer.samples.arrays import Floats, Indices, freeze, is_sparse, n_samples
from mercer.samples.engine import Engine, engine_of


@dataclass(frozen=True, eq=False)
class Expansion:
    """A kernel expansion: kernel, vectors, and for each output one column of coefficients and one b.

    For a precomputed kernel there are no vectors: `columns` are the indices of the columns of K that are used, out of
    `n_columns`.
    """

    kernel: Kernel
    vectors: Any
    coefficients: Any  # float64 array, or CSR if each vector is used by few outputs
    b: Floats
    columns: Indices | None = None
    n_columns: int = 0

    def __post_init__(self) -> None:
        for array in (self.coefficients, self.b, self.columns):
            freeze(array)

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __call__(self, X: Any, n_threads: int = 1) -> Floats:
        """Evaluate f at every sample of X, one column per output; kernel values have the precision of X."""
        out = np.empty((n_samples(X), len(self.b)))
        out[:] = self.b
        self._evaluation(engine_of(X)).add(out, X, n_threads)
        return out

    def norms(self, n_threads: int = 1, differences: Sequence[tuple[int, int]] | None = None) -> Floats:
        """Return the norm ‖f − b‖ = √(β'Kβ) of each output; 0 if an indefinite kernel makes β'Kβ negative.

        With `differences`, return the norm of the difference of the two outputs of each pair instead.
        """
        values = np.zeros((self.coefficients.shape[0], len(self.b)))
        self._evaluation(engine_of(self.vectors)).add(values, self.vectors, n_threads)
        coefficients = self.coefficients.toarray() if is_sparse(self.coefficients) else self.coefficients
        if differences is None:
            squares = np.sum(coefficients * values, axis=0)
        else:
            beta, u = coefficients.T, values.T
            squares = np.array([(beta[i] - beta[j]) @ (u[i] - u[j]) for i, j in differences])
        return np.asarray(np.sqrt(np.maximum(squares, 0.0)))

    def _evaluation(self, engine: Engine | None) -> Evaluation:
        """Return the evaluation at samples of this engine, which is built once."""
        if engine not in self._evaluations:
            evaluation = evaluation_for(self.kernel, self.vectors, self.coefficients, self.columns, engine)
            self._evaluations[engine] = evaluation
        return self._evaluations[engine]

    @cached_property
    def _evaluations(self) -> dict[Engine | None, Evaluation]:
        """Evaluations built so far, by engine."""
        return {}
