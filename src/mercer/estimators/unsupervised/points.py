"""Samples as points of feature space, of which only inner products are known: all of them, or through landmarks.

    all         ⟨φ(x_i), φ(x_j)⟩ = K_ij, stored
    landmarks   ⟨φ(x_i), φ(x_j)⟩ ≈ ⟨z_i, z_j⟩ with Z = K_nM V S^(−½), where K_MM = V S V' (Nyström)
    linear      k(x, z) = s⟨x, z⟩ with Z = √s(X − m): the samples themselves, if they have fewer columns than rows,
                around their mean m, so that an offset does not cost digits

The second is what the points become when they are projected onto the span of M landmarks. A combination Σ_i c_i φ(x_i)
of points is then a combination of landmarks, and with all three x ↦ Σ_i c_i ⟨φ(x_i), φ(x)⟩ is an Expansion. The third
moves the origin of feature space to φ(m), which no method of this room can tell.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import linalg

from mercer.estimators.fitting.pipeline.fit import Fit
from mercer.estimators.fitting.pipeline.reporting import warn_user
from mercer.kernels import Kernel
from mercer.places import gram_for
from mercer.places.eigenpairs import leading, n_positive, with_signs
from mercer.places.expansion import Expansion
from mercer.places.gram import Kept
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
from mercer.solvers.solution import Report

Pairs = tuple[Floats, Floats]


class Points(Protocol):
    """What the algorithms of this room ask of the samples."""

    @property
    def n(self) -> int: ...

    @property
    def squares(self) -> Floats:
        """‖φ(x_i)‖²."""
        ...

    def products(self, C: Floats, some: Indices | None = None) -> Floats:
        """K C; of `some` points, K[:, some] C."""
        ...

    def column(self, i: int, some: Indices | None = None) -> Floats:
        """K e_i, or some of it."""
        ...

    def eigenpairs(self, scale: Floats, k: int | None, centre: Floats | None, less: Floats | None) -> Pairs:
        """The k largest eigenvalues, all by default, of S(K̃ − diag(less))S with S = diag(scale), and their vectors.

        K̃ is K, or with `centre` K of the points less their mean under these shares; then eigenvalues that are zero to
        rounding are left out. They are so in any case where points have coordinates, and `less` is not taken off.
        """
        ...

    def variance(self, p: Floats) -> float:
        """Σ p_i ‖φ(x_i) − μ‖² with μ = Σ p_i φ(x_i), for p that sums to 1; directions of negative square left out."""
        ...

    def function(self, C: Floats, b: Floats) -> Expansion:
        """x ↦ Σ_i C_i ⟨φ(x_i), φ(x)⟩ + b, a column of C and a number for each output."""
        ...

    def combined(self, C: Floats) -> Floats:
        """Σ_i C_i φ(x_i) as coefficients of the vectors of such a function, whatever the origin."""
        ...


@dataclass(frozen=True, eq=False)
class Stored:
    """All inner products; `source` are the samples, and `columns` their places in a kernel matrix that was given."""

    kept: Kept
    squares: Floats
    kernel: Kernel
    source: Any
    columns: Indices | None = None
    n_columns: int = 0
    definite: bool = True

    @property
    def n(self) -> int:
        return len(self.squares)

    @property
    def extremes(self) -> tuple[float, float]:
        """The smallest and the largest inner product."""
        return self.kept.extremes

    def products(self, C: Floats, some: Indices | None = None) -> Floats:
        return self.kept.products(C, some)

    def column(self, i: int, some: Indices | None = None) -> Floats:
        return self.kept.column(i, some)

    def eigenpairs(self, scale: Floats, k: int | None, centre: Floats | None, less: Floats | None) -> Pairs:
        values, vectors = self.kept.leading(scale, k, centre, less)
        if centre is None:
            return values, vectors
        some = slice(0, n_positive(values, self.n, float(scale**2 @ np.abs(self.squares))))
        return values[some], vectors[:, some]

    def variance(self, p: Floats) -> float:
        if not self.definite:
            return float(self.eigenpairs(np.sqrt(p), None, p, None)[0].sum())
        return float(p @ self.squares) - float(p @ self.products(p[:, None])[:, 0])

    def function(self, C: Floats, b: Floats) -> Expansion:
        C = np.ascontiguousarray(C)
        if self.columns is not None:
            return Expansion(self.kernel, None, C, b, self.columns, self.n_columns)
        return Expansion(self.kernel, take(host(self.source), np.arange(self.n)), C, b)

    def combined(self, C: Floats) -> Floats:
        return C


@dataclass(frozen=True, eq=False)
class Mapped:
    """Points with coordinates Z; `map` gives those of new samples, but for an `origin` in terms of its vectors."""

    Z: Floats
    map: Expansion | None = None
    origin: Floats | None = None

    @property
    def squares(self) -> Floats:
        return np.asarray(np.einsum("ij,ij->i", self.Z, self.Z))

    @property
    def n(self) -> int:
        return len(self.Z)

    def products(self, C: Floats, some: Indices | None = None) -> Floats:
        inside = np.zeros((self.Z.shape[1], C.shape[1]))
        for rows in row_blocks(len(C), self._row_bytes):
            inside += (self.Z[rows] if some is None else self.Z[some[rows]]).T @ C[rows]
        out = np.empty((self.n, C.shape[1]))
        for rows in row_blocks(self.n, self._row_bytes):
            out[rows] = self.Z[rows] @ inside
        return out

    @property
    def _row_bytes(self) -> int:
        return 8 * max(1, int(self.Z.shape[1]))

    def column(self, i: int, some: Indices | None = None) -> Floats:
        return np.asarray((self.Z if some is None else self.Z[some]) @ self.Z[i])

    def eigenpairs(self, scale: Floats, k: int | None, centre: Floats | None, less: Floats | None) -> Pairs:
        shift = np.zeros(self.Z.shape[1]) if centre is None else centre @ self.Z
        B, gram = np.empty_like(self.Z), np.zeros((len(shift), len(shift)))
        for rows in row_blocks(self.n, self._row_bytes):
            np.subtract(self.Z[rows], shift, out=B[rows])
            B[rows] *= scale[rows, None]
        add_gram(gram, B)
        mirror(gram)
        values, right = leading(gram, k)
        # Kernel values are rounded by a share of their own size; samples are what they are.
        size = float(scale**2 @ self.squares) if self.origin is None else 0.0
        kept = slice(0, n_positive(values, self.n, size))
        values, right = values[kept], right[:, kept] / np.sqrt(values[kept])
        vectors = np.empty((self.n, len(values)))
        for rows in row_blocks(self.n, self._row_bytes):
            vectors[rows] = B[rows] @ right
        return values, with_signs(vectors)

    def variance(self, p: Floats) -> float:
        shift, total = p @ self.Z, 0.0
        for rows in row_blocks(self.n, self._row_bytes):
            total += float(p[rows] @ ((self.Z[rows] - shift) ** 2).sum(axis=1))
        return total

    def function(self, C: Floats, b: Floats) -> Expansion:
        assert self.map is not None
        made, inside = self.map, self.Z.T @ C
        through = made.coefficients @ inside
        if self.origin is not None:
            b = b - self._at_origin @ inside
        return Expansion(made.kernel, made.vectors, through, b, made.columns, made.n_columns)

    def combined(self, C: Floats) -> Floats:
        assert self.map is not None
        through = np.asarray(self.map.coefficients @ (self.Z.T @ C))
        return through if self.origin is None else through + self.origin[:, None] * C.sum(axis=0)

    @property
    def _at_origin(self) -> Floats:
        """What `map` gives for the origin."""
        assert self.map is not None
        assert self.origin is not None
        return np.asarray(self.map(self.origin[None, :], 1)[0])


def balanced(a: Floats, p: Floats) -> Floats:
    """Coefficients whose columns sum to zero, as those of centred points do but for rounding; p sums to 1.

    Eigenvectors of small eigenvalues lose that first: their error is that of the matrix over the eigenvalue.
    """
    return np.asarray(a - p[:, None] * a.sum(axis=0))


def one_point(n: int) -> str:
    """What to say of samples that do not differ."""
    told = "1 sample is" if n == 1 else f"{n:,} samples are"
    return f"the {told} a single point in feature space (at least two different ones are needed, not 1 sample)"


def points_of(fit: Fit, n_landmarks: int | None, matrices: int, report: Report, affinities: bool = False) -> Points:
    """The merged samples of a fit; `matrices` of n × n numbers are in memory at once without landmarks.

    `affinities` says that every kernel value is looked at by itself.
    """
    assert fit.kernel is not None
    X, n = fit.merged.X, len(fit.merged.weight)
    scale = linear_scale(fit.kernel)
    if scale is not None and scale > 0 and not (is_sparse(X) or are_strings(X) or affinities):
        d = X.shape[1]
        if d < n and (n_landmarks is None or n_landmarks >= d):
            return _themselves(fit.kernel, host(X), scale)
    if n_landmarks is not None and n_landmarks < n:
        report(lambda: f"{n:,} samples on {n_landmarks:,} landmarks")
        return _on_landmarks(fit, fit.kernel, n_landmarks)
    if 8 * matrices * n * n > fit.limits.budget:
        raise memory_error(
            f"{matrices} matrices of {n:,} × {n:,} kernel values",
            8 * matrices * n * n,
            fit.limits.budget,
            "n_landmarks=1000, with which some samples represent all",
        )
    report(lambda: f"kernel values of {n:,} samples")
    return _stored(fit, fit.kernel)


def _themselves(kernel: Kernel, X: Floats, scale: float) -> Mapped:
    mean, _ = moments(X)
    mean = mean + moments(X - mean)[0]  # a sum of large numbers has the digits of a large number
    Z, d = math.sqrt(scale) * (X - mean), X.shape[1]
    with np.errstate(over="ignore", under="ignore"):
        total = float(np.einsum("ij,ij->", Z, Z)) * len(Z)
    if Z.any() and not 1e-300 < total < math.inf:  # smaller sums of squares have lost digits
        what = "exceed" if total > 1 else "vanish in"
        raise ValueError(
            f"distances of samples {what} float64: the largest entry of X less its column's mean is "
            f"{np.abs(X - mean).max():.3g}. Scale the features"
        )
    coordinates = Expansion(kernel, np.eye(d), np.eye(d) / math.sqrt(scale), np.zeros(d))
    return Mapped(Z, coordinates, mean)


def _stored(fit: Fit, kernel: Kernel) -> Stored:
    """The kernel matrix of the samples; of a given one, the rows and columns that have weight."""
    X, columns = fit.merged.X, fit.merged.rows if fit.precomputed else None
    gram = gram_for(
        kernel, X if columns is None else matrix_columns(X, columns), fit.limits.budget, fit.limits.n_threads
    )
    definite = gram.looks_positive_definite()
    if not definite:
        warn_user(
            f"{kernel!r} is not positive semi-definite on these samples, which are then no points of a feature space: "
            "directions of negative square are left out, and distances may be wrong; use a positive definite kernel",
            NonPSDKernelWarning,
        )
    return Stored(gram.kept(fit.limits.n_threads), gram.diagonal, kernel, X, columns, fit.n, definite)


def _on_landmarks(fit: Fit, kernel: Kernel, m: int) -> Mapped:
    """Samples in coordinates of the span of m landmarks; of a given matrix, landmarks are columns of it."""
    merged, limits = fit.merged, fit.limits
    rng, n = np.random.default_rng(limits.seed()), len(merged.weight)
    chosen = draw([Chunk(merged.X, np.empty((n, 0)), merged.weight)], m, rng)
    columns = merged.rows[chosen.index] if fit.precomputed else None
    m = n_samples(chosen.X)
    needed = 8 * (3 * m * m + 2 * n * m)
    if needed > limits.budget:
        raise memory_error(f"{n:,} samples on {m:,} landmarks", needed, limits.budget, "fewer landmarks")
    given = chosen.X if columns is None else matrix_columns(chosen.X, columns)
    values, vectors = linalg.eigh(gram_for(kernel, given, limits.budget, limits.n_threads).full())
    if values[0] < -1e-8 * max(1e-300, float(values[-1])) * m:
        raise ValueError(
            f"{kernel!r} is not positive semi-definite: its matrix on {m} landmarks has the eigenvalue "
            f"{values[0]:.3g}. Use a positive definite kernel, or n_landmarks=None"
        )
    kept = slice(m - n_positive(values[::-1], m), m)
    root = np.ascontiguousarray(vectors[:, kept] / np.sqrt(values[kept]))
    zero = np.zeros(root.shape[1])
    if columns is None:
        coordinates = Expansion(kernel, host(chosen.X), root, zero)
    else:
        coordinates = Expansion(kernel, None, root, zero, columns, fit.n)
    return Mapped(coordinates(merged.X, limits.n_threads), coordinates)
