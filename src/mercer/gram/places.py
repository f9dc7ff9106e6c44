"""Where samples are put that are asked for something else than their Gram: the only functions that choose it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from mercer.arrays import Floats, Indices
from mercer.data.chunks import Chunk
from mercer.gram.host_cross import HostCross
from mercer.gram.host_rows import HostRows
from mercer.gram.protocols import Cross, Rows
from mercer.kernels import Kernel


def rows_for(X: Any, n_threads: int, which: Indices | None = None, origin: float = 0.0) -> Rows:
    """The samples as rows of a linear machine.

    `which` selects rows of a CSR matrix, in any order; `origin` is the length of a vector that was taken off all.
    """
    return HostRows(X, n_threads, which, origin)


def cross_for(
    kernel: Kernel,
    landmarks: Any,
    chunks: Callable[[], Iterable[Chunk]],
    budget: int = 0,
    n_threads: int = 1,
    K_MM: Floats | None = None,
) -> Cross:
    """K between samples that come in chunks and fixed landmarks.

    Parameters
    ----------
    kernel : Kernel
    landmarks : samples; for a precomputed kernel, the columns of K that belong to the landmarks
    chunks : callable
        Returns an iterator over all samples; called once per pass.
    budget : int
        Bytes for what is kept of the samples between passes.
    n_threads : int
    K_MM : array of shape (M, M), optional
        The kernel matrix of the landmarks, for a precomputed kernel.
    """
    return HostCross(kernel, landmarks, chunks, budget, n_threads, K_MM)
