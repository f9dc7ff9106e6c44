"""Samples as points of feature space, in one of three representations.

    all         ⟨φ(x_i), φ(x_j)⟩ = K_ij, stored
    landmarks   ⟨φ(x_i), φ(x_j)⟩ ≈ ⟨z_i, z_j⟩ with Z = K_nM V S^(−½), where K_MM = V S V' (Nyström)
    linear      k(x, z) = s⟨x, z⟩ with Z = √s(X − m): the samples themselves, if they have fewer features than samples,
                centred at their mean m, so that an offset does not cause cancellation

With landmarks, the points are projected onto the span of M of them, so that a combination Σ_i c_i φ(x_i) of points is a
combination of landmarks. In all representations x ↦ Σ_i c_i ⟨φ(x_i), φ(x)⟩ is an Expansion. The linear representation
moves the origin of feature space to φ(m), which does not affect any algorithm of this package.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from scipy import linalg

from mercer.estimators.fitting.pipeline.fit import Fit
from mercer.estimators.fitting.pipeline.reporting import warn_user
from mercer.kernels import Kernel
from mercer.places import gram_for
from mercer.places.eigenpairs import fix_signs, leading, n_positive
from mercer.places.expansion import Expansion
from mercer.places.gram import Float64Matrix
from mercer.places.host.linear_gram import linear_scale
from mercer.places.landmarks import draw
from mercer.runtime.errors import NonPSDKernelWarning
from mercer.samples.arrays import (
    Floats,
    Indices,
    add_gram,
    are_strings,
    host,
    is_sparse,
    matrix_columns,
    mirror,
    moments,
    n_samples,
    row_blocks,
    take,
)
from mercer.samples.chunks import Chunk
from mercer.solvers.least_squares.solution import memory_error
from mercer.solvers.solution import ProgressReporter

Pairs = tuple[Floats, Floats]


class Points(Protocol):
    """Interface of the samples for the algorithms of this package; K is the matrix of their inner products."""

    @property
    def n(self) -> int: ...

    @property
    def squares(self) -> Floats:
        """Squared norms ‖φ(x_i)‖²."""
        ...

    def products(self, C: Floats, subset: Indices | None = None) -> Floats:
        """Return K C, or K[:, subset] C."""
        ...

    def column(self, i: int, subset: Indices | None = None) -> Floats:
        """Return column i of K, or its entries in `subset`."""
        ...

    def eigenpairs(self, scale: Floats, k: int | None, centre: Floats | None, subtracted: Floats | None) -> Pairs:
        """Return the k largest eigenvalues (None: all) of S(K̃ − diag(subtracted))S, S = diag(scale), and eigenvectors.

        K̃ is K or, with normalised weights `centre`, the inner products of the points minus their weighted mean; then
        eigenvalues that are zero to rounding are dropped. Points with coordinates always drop them, and ignore
        `subtracted`.
        """
        ...

    def variance(self, p: Floats) -> float:
        """Return Σ p_i ‖φ(x_i) − μ‖² with μ = Σ p_i φ(x_i) and Σp = 1, over directions of positive variance."""
        ...

    def function(self, C: Floats, b: Floats) -> Expansion:
        """Return x ↦ Σ_i C_i ⟨φ(x_i), φ(x)⟩ + b, with a column of C and an entry of b for each output."""
        ...

    def combined(self, C: Floats) -> Floats:
        """Return Σ_i C_i φ(x_i) as coefficients of the vectors of `function`, relative to the origin of φ itself."""
        ...


@dataclass(frozen=True, eq=False)
class KernelMatrixPoints:
    """Points with stored inner products; `columns` are their indices in a precomputed kernel matrix."""

    K: Float64Matrix
    squares: Floats
    kernel: Kernel
    source: Any  # the samples
    columns: Indices | None = None
    n_columns: int = 0
    definite: bool = True

    @property
    def n(self) -> int:
        return len(self.squares)

    @property
    def extremes(self) -> tuple[float, float]:
        """Smallest and largest inner product."""
        return self.K.extremes

    def products(self, C: Floats, subset: Indices | None = None) -> Floats:
        return self.K.products(C, subset)

    def column(self, i: int, subset: Indices | None = None) -> Floats:
        return self.K.column(i, subset)

    def eigenpairs(self, scale: Floats, k: int | None, centre: Floats | None, subtracted: Floats | None) -> Pairs:
        """Return the k largest eigenvalues of S(K̃ − diag(subtracted))S and eigenvectors (`Points.eigenpairs`)."""
        values, vectors = self.K.leading(scale, k, centre, subtracted)
        if centre is None:
            return values, vectors
        nonzero = slice(0, n_positive(values, self.n, float(scale**2 @ np.abs(self.squares))))
        return values[nonzero], vectors[:, nonzero]

    def variance(self, p: Floats) -> float:
        """Return Σ p_i ‖φ(x_i) − μ‖² over the directions of positive variance."""
        if not self.definite:
            return float(self.eigenpairs(np.sqrt(p), None, p, None)[0].sum())
        return float(p @ self.squares) - float(p @ self.products(p[:, None])[:, 0])

    def function(self, C: Floats, b: Floats) -> Expansion:
        """Return x ↦ Σ_i C_i k(x_i, x) + b, with a column of C and an entry of b for each output."""
        C = np.ascontiguousarray(C)
        if self.columns is not None:
            return Expansion(self.kernel, None, C, b, self.columns, self.n_columns)
        return Expansion(self.kernel, take(host(self.source), np.arange(self.n)), C, b)

    def combined(self, C: Floats) -> Floats:
        return C


@dataclass(frozen=True, eq=False)
class EmbeddedPoints:
    """Points with coordinates Z; `map` gives those of new samples, before `origin` is subtracted."""

    Z: Floats
    map: Expansion | None = None
    origin: Floats | None = None

    @property
    def squares(self) -> Floats:
        return np.asarray(np.einsum("ij,ij->i", self.Z, self.Z))

    @property
    def n(self) -> int:
        return len(self.Z)

    def products(self, C: Floats, subset: Indices | None = None) -> Floats:
        """Return K C, or K[:, subset] C, as Z(Z'C)."""
        combination = np.zeros((self.Z.shape[1], C.shape[1]))  # Z'C
        for rows in row_blocks(len(C), self._row_bytes):
            combination += (self.Z[rows] if subset is None else self.Z[subset[rows]]).T @ C[rows]
        out = np.empty((self.n, C.shape[1]))
        for rows in row_blocks(self.n, self._row_bytes):
            out[rows] = self.Z[rows] @ combination
        return out

    @property
    def _row_bytes(self) -> int:
        return 8 * max(1, int(self.Z.shape[1]))

    def column(self, i: int, subset: Indices | None = None) -> Floats:
        return np.asarray((self.Z if subset is None else self.Z[subset]) @ self.Z[i])

    def eigenpairs(self, scale: Floats, k: int | None, centre: Floats | None, subtracted: Floats | None) -> Pairs:
        """Return the k largest eigenvalues of S K̃ S and eigenvectors, from the coordinates (`Points.eigenpairs`)."""
        shift = np.zeros(self.Z.shape[1]) if centre is None else centre @ self.Z
        B, gram = np.empty_like(self.Z), np.zeros((len(shift), len(shift)))
        for rows in row_blocks(self.n, self._row_bytes):
            np.subtract(self.Z[rows], shift, out=B[rows])
            B[rows] *= scale[rows, None]
        add_gram(gram, B)
        mirror(gram)
        values, right_vectors = leading(gram, k)
        # Kernel values have rounding errors relative to their size; samples given directly are exact.
        size = float(scale**2 @ self.squares) if self.origin is None else 0.0
        nonzero = slice(0, n_positive(values, self.n, size))
        values, right_vectors = values[nonzero], right_vectors[:, nonzero] / np.sqrt(values[nonzero])
        vectors = np.empty((self.n, len(values)))
        for rows in row_blocks(self.n, self._row_bytes):
            vectors[rows] = B[rows] @ right_vectors
        return values, fix_signs(vectors)

    def variance(self, p: Floats) -> float:
        """Return Σ p_i ‖φ(x_i) − μ‖² with μ = Σ p_i φ(x_i)."""
        shift, total = p @ self.Z, 0.0
        for rows in row_blocks(self.n, self._row_bytes):
            total += float(p[rows] @ ((self.Z[rows] - shift) ** 2).sum(axis=1))
        return total

    def function(self, C: Floats, b: Floats) -> Expansion:
        """Return x ↦ Σ_i C_i ⟨φ(x_i), φ(x)⟩ + b, with a column of C and an entry of b for each output."""
        assert self.map is not None
        combination = self.Z.T @ C
        if self.origin is not None:
            b = b - self._map_at_origin @ combination
        return replace(self.map, coefficients=self.map.coefficients @ combination, b=b)

    def combined(self, C: Floats) -> Floats:
        """Return Σ_i C_i φ(x_i) as coefficients of the vectors of `map`, relative to the origin of φ itself."""
        assert self.map is not None
        combination = np.asarray(self.map.coefficients @ (self.Z.T @ C))
        return combination if self.origin is None else combination + self.origin[:, None] * C.sum(axis=0)

    @property
    def _map_at_origin(self) -> Floats:
        """Value of `map` at the origin."""
        assert self.map is not None
        assert self.origin is not None
        return np.asarray(self.map(self.origin[None, :], 1)[0])


def sum_to_zero(a: Floats, p: Floats) -> Floats:
    """Return coefficients corrected so that their columns sum to zero, as those of centred points do up to rounding.

    p are normalised weights, which sum to 1. The correction matters for small eigenvalues: the error of an eigenvector
    is that of the matrix divided by the eigenvalue.
    """
    return np.asarray(a - p[:, None] * a.sum(axis=0))


def single_point_message(n: int) -> str:
    """Return the message for samples that are all equal in feature space."""
    subject = "1 sample is" if n == 1 else f"{n:,} samples are"
    return f"the {subject} a single point in feature space (at least two different ones are needed, not 1 sample)"


def points_of(
    fit: Fit, n_landmarks: int | None, n_matrices: int, report: ProgressReporter, affinities: bool = False
) -> Points:
    """Return the merged samples of a fit as points.

    Without landmarks, `n_matrices` n × n matrices have to fit into memory. With `affinities`, the linear representation
    is not used, since the kernel values themselves are needed.
    """
    assert fit.kernel is not None
    X, n = fit.merged.X, len(fit.merged.weight)
    scale = linear_scale(fit.kernel)
    if scale is not None and scale > 0 and not (is_sparse(X) or are_strings(X) or affinities):
        d = X.shape[1]
        if d < n and (n_landmarks is None or n_landmarks >= d):
            return _centred_samples(fit.kernel, host(X), scale)
    if n_landmarks is not None and n_landmarks < n:
        report(lambda: f"{n:,} samples on {n_landmarks:,} landmarks")
        return _landmark_points(fit, fit.kernel, n_landmarks)
    if 8 * n_matrices * n * n > fit.limits.budget:
        raise memory_error(
            f"{n_matrices} matrices of {n:,} × {n:,} kernel values",
            8 * n_matrices * n * n,
            fit.limits.budget,
            "n_landmarks=1000, which projects all samples onto 1000 of them",
        )
    report(lambda: f"kernel values of {n:,} samples")
    return _kernel_matrix_points(fit, fit.kernel)


def _centred_samples(kernel: Kernel, X: Floats, scale: float) -> EmbeddedPoints:
    """Return the points of the kernel scale·⟨x, z⟩: the samples, centred at their mean and scaled."""
    mean, _ = moments(X)
    mean = mean + moments(X - mean)[0]  # a second pass, since a sum of large numbers loses digits
    Z, d = math.sqrt(scale) * (X - mean), X.shape[1]
    with np.errstate(over="ignore", under="ignore"):
        total = float(np.einsum("ij,ij->", Z, Z)) * len(Z)
    if Z.any() and not 1e-300 < total < math.inf:  # smaller sums of squares have lost digits
        verb = "exceed" if total > 1 else "vanish in"
        raise ValueError(
            f"distances of samples {verb} float64: the largest deviation of an entry of X from its column's mean is "
            f"{np.abs(X - mean).max():.3g}. Scale the features"
        )
    coordinates = Expansion(kernel, np.eye(d), np.eye(d) / math.sqrt(scale), np.zeros(d))
    return EmbeddedPoints(Z, coordinates, mean)


def _kernel_matrix_points(fit: Fit, kernel: Kernel) -> KernelMatrixPoints:
    """Return the points with the stored kernel matrix of the merged samples; warn if it is not positive definite."""
    X, columns = fit.merged.X, fit.merged.rows if fit.precomputed else None
    gram = gram_for(
        kernel, X if columns is None else matrix_columns(X, columns), fit.limits.budget, fit.limits.n_threads
    )
    is_definite = gram.looks_positive_definite()
    if not is_definite:
        warn_user(
            f"{kernel!r} is not positive semi-definite on these samples, so they are not points of a feature space: "
            "directions of negative square are dropped, and distances may be wrong; use a positive definite kernel",
            NonPSDKernelWarning,
        )
    return KernelMatrixPoints(
        gram.float64_matrix(fit.limits.n_threads), gram.diagonal, kernel, X, columns, fit.n, is_definite
    )


def _landmark_points(fit: Fit, kernel: Kernel, m: int) -> EmbeddedPoints:
    """Return the samples in coordinates of the span of m landmarks, drawn at random."""
    merged, limits = fit.merged, fit.limits
    rng, n = np.random.default_rng(limits.seed()), len(merged.weight)
    drawn_landmarks = draw([Chunk(merged.X, np.empty((n, 0)), merged.weight)], m, rng)
    columns = merged.rows[drawn_landmarks.index] if fit.precomputed else None
    m = n_samples(drawn_landmarks.X)
    n_bytes = 8 * (3 * m * m + 2 * n * m)
    if n_bytes > limits.budget:
        raise memory_error(f"{n:,} samples on {m:,} landmarks", n_bytes, limits.budget, "fewer landmarks")
    landmarks = drawn_landmarks.X if columns is None else matrix_columns(drawn_landmarks.X, columns)
    values, vectors = linalg.eigh(gram_for(kernel, landmarks, limits.budget, limits.n_threads).full())
    if values[0] < -1e-8 * max(1e-300, float(values[-1])) * m:
        raise ValueError(
            f"{kernel!r} is not positive semi-definite: its matrix on {m} landmarks has the eigenvalue "
            f"{values[0]:.3g}. Use a positive definite kernel, or n_landmarks=None"
        )
    nonzero = slice(m - n_positive(values[::-1], m), m)
    root = np.ascontiguousarray(vectors[:, nonzero] / np.sqrt(values[nonzero]))
    zero = np.zeros(root.shape[1])
    if columns is None:
        coordinates = Expansion(kernel, host(drawn_landmarks.X), root, zero)
    else:
        coordinates = Expansion(kernel, None, root, zero, columns, fit.n)
    return EmbeddedPoints(coordinates(merged.X, limits.n_threads), coordinates)
