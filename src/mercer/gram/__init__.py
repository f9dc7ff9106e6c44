"""Gram matrices: kernel values of a data set, evaluated block by block within a memory budget.

The two functions here are the only ones that choose where kernel values come from: `gram_for` for training,
`evaluation_for` for prediction.
"""

from __future__ import annotations

from typing import Any

from mercer.arrays import Indices, host
from mercer.engine import Engine, PlacedSamples
from mercer.gram.evaluation import BlockEvaluation
from mercer.gram.gram import Evaluation, Field, Gram, Provable
from mercer.gram.kernel_matrix import KernelMatrix
from mercer.kernels import Kernel

__all__ = ["Evaluation", "Field", "Gram", "Provable", "evaluation_for", "gram_for"]


def gram_for(kernel: Kernel, X: Any, budget: int = 1_000_000_000, n_threads: int = 1, *, constant: float = 0.0) -> Gram:
    """The Gram of these samples.

    Parameters
    ----------
    kernel : Kernel
        With its data-dependent parameters resolved (`Kernel.bind`).
    X : array, CSR matrix or sequence of samples
        For a precomputed kernel, the matrix itself.
    budget : int
        Bytes that the Gram and its fields may use beyond the samples.
    n_threads : int
    constant : float
        c of k + c. It is added in float64 to every value that is read, so a given matrix is not copied.
    """
    if isinstance(X, PlacedSamples):
        return X.engine.gram(kernel, X, budget, n_threads, constant)
    if constant and kernel.accepts != "gram":
        kernel, constant = kernel + constant, 0.0
    return KernelMatrix.of(kernel, X, budget, n_threads, constant)


def evaluation_for(
    kernel: Kernel, vectors: Any, coefficients: Any, columns: Indices | None = None, engine: Engine | None = None
) -> Evaluation:
    """The evaluation of an expansion at samples of an engine, or of this machine.

    For a precomputed kernel `columns` says which columns of a new K count.
    """
    if engine is not None:
        if vectors is not None and not (isinstance(vectors, PlacedSamples) and vectors.engine is engine):
            vectors = engine.samples(host(vectors))
        return engine.evaluation(kernel, vectors, coefficients, columns)
    return BlockEvaluation(kernel, None if vectors is None else host(vectors), coefficients, columns)
