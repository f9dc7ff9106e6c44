"""Choice of the host or an engine for a computation, by where the samples are; no other module makes this choice.

The functions build a Gram for training, an Evaluation for prediction, the rows of a linear machine, and K between
samples and landmarks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from mercer.kernels import Kernel
from mercer.places.gram import Evaluation, Gram
from mercer.places.host.cross import HostCross
from mercer.places.host.evaluation import BlockEvaluation
from mercer.places.host.kernel_matrix import KernelMatrix
from mercer.places.host.rows import HostRows
from mercer.places.protocols import Cross, Rows
from mercer.places.sums import Sums
from mercer.problems.least_squares import LeastSquares
from mercer.samples.arrays import Floats, Indices, host, norm, row_blocks
from mercer.samples.chunks import Chunk
from mercer.samples.engine import Engine, EngineSamples


def gram_for(kernel: Kernel, X: Any, budget: int = 1_000_000_000, n_threads: int = 1, *, constant: float = 0.0) -> Gram:
    """Build the Gram of these samples.

    Parameters
    ----------
    kernel : Kernel
        Kernel whose data-dependent parameters are resolved (`Kernel.bind`).
    X : array, CSR matrix or sequence of samples
        Samples; for a precomputed kernel, the matrix itself.
    budget : int
        Bytes that the Gram and its fields may use beyond the samples.
    n_threads : int
        Number of host threads.
    constant : float
        Constant c of k + c. It is added in float64 to every value that is read, so that a given matrix is not copied.
    """
    if isinstance(X, EngineSamples):
        return X.engine.gram(kernel, X, budget, n_threads, constant)
    if constant and kernel.accepts != "gram":
        kernel, constant = kernel + constant, 0.0
    return KernelMatrix.of(kernel, X, budget, n_threads, constant)


def evaluation_for(
    kernel: Kernel, vectors: Any, coefficients: Any, columns: Indices | None = None, engine: Engine | None = None
) -> Evaluation:
    """Build the evaluation of an expansion at samples of an engine, or of the host.

    For a precomputed kernel, `columns` are the columns of a new K that belong to the expansion.
    """
    if engine is not None:
        return engine.evaluation(kernel, None if vectors is None else engine.samples(vectors), coefficients, columns)
    return BlockEvaluation(kernel, host(vectors), coefficients, columns)


def rows_for(X: Any, n_threads: int, selected: Indices | None = None, centre: Floats | None = None) -> Rows:
    """Build the rows of a linear machine from samples, with a centre subtracted if there is one.

    `selected` are indices of rows of sparse samples, in any order; sparse samples have no centre.
    """
    if isinstance(X, EngineSamples):
        return X.engine.rows(X, n_threads, selected, centre)
    if centre is None:
        return HostRows(X, n_threads, selected)
    return HostRows(_subtract(X, centre), n_threads, selected, norm(centre))


def sums_for(kernel: Kernel, X: Any, problem: LeastSquares) -> Sums:
    """Compute the sums over samples that linear least squares needs, on the engine that holds the samples."""
    if not isinstance(X, EngineSamples):
        return Sums.of(X, problem)
    linear = gram_for(kernel, X).linear
    assert linear is not None
    return linear.sums(problem)


def _subtract(X: Floats, centre: Floats) -> Floats:
    """Return X − centre in float64."""
    out = np.empty(X.shape)
    for rows in row_blocks(len(X), 8 * X.shape[1]):
        np.subtract(X[rows], centre, out=out[rows])
    return out


def cross_for(
    kernel: Kernel,
    landmarks: Any,
    chunks: Callable[[], Iterable[Chunk]],
    budget: int = 0,
    n_threads: int = 1,
    K_MM: Floats | None = None,
    engine: Engine | None = None,
) -> Cross:
    """Build K between samples that come in chunks and fixed landmarks.

    Parameters
    ----------
    kernel : Kernel
        Kernel whose data-dependent parameters are resolved (`Kernel.bind`).
    landmarks : samples
        Landmarks; for a precomputed kernel, the columns of K that belong to them.
    chunks : callable
        Function that returns an iterator over all samples; called once per pass.
    budget : int
        Bytes for prepared samples that are kept between passes.
    n_threads : int
        Number of host threads.
    K_MM : array of shape (M, M), optional
        Kernel matrix of the landmarks, for a precomputed kernel.
    engine : Engine, optional
        Engine that holds the samples of the chunks; None for the host.
    """
    if engine is not None:
        engine_landmarks = landmarks if kernel.accepts == "gram" else engine.samples(landmarks)
        return engine.cross(kernel, engine_landmarks, chunks, budget, n_threads, K_MM)
    return HostCross(kernel, landmarks, chunks, budget, n_threads, K_MM)
