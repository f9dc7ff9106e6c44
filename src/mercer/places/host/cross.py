"""K_nM on the host: kernel values between samples in chunks and landmarks, never stored as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any

import numpy as np

from mercer.kernels import Kernel
from mercer.places.host.prepared import CHUNK_ROWS, EXACT, PreparedSamples
from mercer.places.host.source import check_finite_values, value_error
from mercer.places.protocols import ErrorTotals, Totals
from mercer.samples.arrays import Floats, Indices, add_gram, gamma, mirror, n_samples
from mercer.samples.chunks import Chunk

# Up to this many outputs, kernel values are computed and summed once for each; with more, one block serves all outputs.
_FEW_OUTPUTS = 6
# Rows of one partial sum of a proof: the number of rows plus the number of partial sums bounds the rounding.
_PROOF_ROWS = 256
# Roundings of one term, in addition to those of the sums.
_FEW_ROUNDINGS = 12
# Landmarks up to this size stay in the second-level cache.
_CACHE_BYTES = 1 << 20


class HostCross:
    """`Cross` of samples and landmarks on the host; `places.choose.cross_for` documents the parameters.

    It takes memory for one chunk, for prepared rows that are kept between passes, and for M numbers per output; only
    `gather`, which computes K_nMᵀ W K_nM itself, needs M².
    """

    def __init__(
        self,
        kernel: Kernel,
        landmarks: Any,
        chunks: Callable[[], Iterable[Chunk]],
        budget: int = 0,
        n_threads: int = 1,
        K_MM: Floats | None = None,
    ) -> None:
        self.kernel, self._points, self._chunks = kernel, landmarks, chunks
        self._K_MM = K_MM
        self.m = n_samples(landmarks)
        self._cache_bytes_left = budget
        self._prepared = PreparedSamples.of(kernel, landmarks, n_threads)
        self._landmarks: tuple[Any, Indices, Any] | None = None
        self._in_one_pass = False
        if self._prepared is not None:
            samples, lowering = self._prepared.all_samples(np.float64), self._prepared.lowering
            if samples is not None:
                all_landmarks = np.arange(self.m)
                self._landmarks = (samples, all_landmarks, samples.columns(all_landmarks))
            # K_nM c and K_nMᵀ(…) in one pass over the landmarks is faster if they fit the processor's cache. It is made
            # for dense rows and kernels without an added constant.
            has_one_pass = not lowering.sparse and lowering.recipe.constant == 0
            self._in_one_pass = has_one_pass and 8 * self.m * landmarks.shape[1] <= _CACHE_BYTES

    @property
    def K_MM(self) -> Floats:
        """Kernel matrix of the landmarks, computed at the first access."""
        if self._K_MM is None:
            if self._landmarks is None:
                self._K_MM = self.kernel(self._points)
            else:
                samples, all_landmarks = self._landmark_samples[0], self._landmarks[1]
                self._K_MM = np.asarray(samples.block(all_landmarks, samples.columns(all_landmarks)), dtype=np.float64)
                check_finite_values(self._K_MM, self.kernel)
        return self._K_MM

    @cached_property
    def _landmark_samples(self) -> tuple[Any, Any]:
        """Samples that compute K_MM, and their level: exact if available, since K_MM is inverted and has few values."""
        prepared, landmarks = self._prepared, self._landmarks
        assert prepared is not None
        assert landmarks is not None
        samples = prepared.all_samples(EXACT) if prepared.has_exact else None
        return (landmarks[0], np.float64) if samples is None else (samples, EXACT)

    @property
    def recomputes_cheaply(self) -> bool:
        return self._landmarks is not None

    def normal(self, C: Floats) -> Floats:
        """Return K_nMᵀ W K_nM C."""
        out = np.zeros(C.shape)
        for _, rows, weight in self._blocks():
            rows.normal(C, weight, out)
        return out

    def residual(self, C: Floats, b: Floats) -> Totals:
        """Return K_nMᵀ W (Y − K_nM C − b) and the other totals of the pass; `bias_column` only if C = 0."""
        out = Totals(np.zeros(C.shape), np.zeros(self.m))
        C_is_zero = not C.any()
        for Y, rows, weight in self._blocks():
            E = Y - b if C_is_zero else Y - rows.forward(C) - b
            weighted = weight[:, None] * E
            rows.backward(weighted, out.residual)
            if C_is_zero:
                rows.backward(weight[:, None], out.bias_column[:, None])
            out.add(weight, E, weighted)
        return out

    def proof(self, C: Floats, b: Floats) -> tuple[Totals, ErrorTotals]:
        """Return the totals of `residual`, from kernel values in short sums, and bounds on their rounding errors.

        A sum of k products has an error of at most γ_k times the sum of their absolute values (Higham, 3.1).
        """
        out, errors = Totals(np.zeros(C.shape), np.zeros(self.m)), ErrorTotals(np.zeros(C.shape), np.zeros(C.shape[1]))
        sums = np.zeros(C.shape)
        n_features = int(self._points.shape[-1]) if hasattr(self._points, "shape") else 1
        share, size = gamma(self.m + n_features + _FEW_ROUNDINGS), np.abs(C)
        for chunk in self._chunks():
            for start in range(0, chunk.n, CHUNK_ROWS):
                part = slice(start, start + CHUNK_ROWS)
                # 1. Bounds on the errors of f and of K_nMᵀc that errors of kernel values cause.
                rows, Y, weight = self._rows(chunk, part), chunk.Y[part], chunk.weight[part]
                forward_error, transposed_error = self._value_errors(chunk.X[part])
                f_error, weighted = forward_error(C), np.empty_like(Y)
                # 2. Totals, and the sizes that bound the rounding of their sums, in short partial sums.
                for begin in range(0, len(weight), _PROOF_ROWS):
                    block = slice(begin, begin + _PROOF_ROWS)
                    K, w = rows.values(block), weight[block]
                    E = Y[block] - K @ C - b
                    weighted[block] = w[:, None] * E
                    out.residual += K.T @ weighted[block]
                    out.add(w, E, weighted[block])
                    K = np.abs(K)
                    f_error[block] += share * (K @ size + np.abs(Y[block]) + np.abs(b))
                    sums += K.T @ np.abs(weighted[block])
                    errors.terms += 1
                # 3. The errors of kernel values, and the error of f in the squares.
                errors.residual += transposed_error(weighted)
                errors.squares += np.sum(weight[:, None] * f_error * f_error, axis=0)
                errors.trace += float(weight @ self._diagonal(chunk.X[part]))
        errors.terms += _PROOF_ROWS
        errors.residual += gamma(errors.terms + n_features + _FEW_ROUNDINGS) * sums
        return out, errors

    def _value_errors(self, X: Any) -> tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]]:
        """Return two functions of C that bound the errors of K @ C and Kᵀ @ C due to errors in K = K(X, landmarks)."""
        prepared = self._prepared
        if prepared is not None and self._landmarks is not None:
            level = EXACT if prepared.cancels else np.float64
            sizes_X, sizes_Z = prepared.sizes_of(X), prepared.sizes
            pairs = ((sizes_X, sizes_Z), (sizes_Z, sizes_X))
            forward_error, transposed_error = (
                lambda C, a=a, b=b: np.column_stack([prepared.rounding.errors(a, b, c, level) for c in C.T])
                for a, b in pairs
            )
            return forward_error, transposed_error
        a, b = np.sqrt(self._diagonal(X)), np.sqrt(np.abs(self.K_MM.diagonal()))
        relative_error = self.value_error
        return (
            lambda C: relative_error * np.outer(a, b @ np.abs(C)),
            lambda C: relative_error * np.outer(b, a @ np.abs(C)),
        )

    @property
    def value_error(self) -> float:
        """Bound on the error of a value of K_MM, in units of √(k_ii k_jj); given values count as exact."""
        prepared = self._prepared
        if prepared is not None and self._landmarks is not None:
            root, level = np.sqrt(np.abs(self.K_MM.diagonal())), self._landmark_samples[1]
            sizes = prepared.exact_sizes if level == EXACT else prepared.sizes
            longest = int(np.argmax(sizes))
            errors = prepared.rounding.errors(sizes, sizes[[longest]], np.ones(1), level)
            shares = np.divide(errors, root * root[longest], out=np.zeros(self.m), where=root * root[longest] > 0)
            return float(shares.max())
        return 0.0 if self.kernel.accepts == "gram" else value_error(self.kernel, self._points)

    def _diagonal(self, X: Any) -> Floats:
        """Return |k(x, x)| of each sample; for a precomputed kernel, where it is unknown, the largest of landmarks."""
        if self.kernel.accepts == "gram":
            return np.full(n_samples(X), float(np.abs(self.K_MM.diagonal()).max()))
        return np.abs(self.kernel.diag(X))

    def gather(self, sample: Chunk | None = None) -> tuple[Floats, Totals]:
        """Return K_nMᵀ W K_nM over one chunk or all of them, and the totals of this pass at C = 0 and b = 0."""
        G = np.zeros((self.m, self.m))
        out = Totals(np.zeros((self.m, 0)), np.zeros(self.m))
        for Y, rows, weight in self._blocks(None if sample is None else [sample]):
            K = rows.values()
            scaled = np.sqrt(weight)[:, None] * K
            add_gram(G, scaled)
            weighted = weight[:, None] * Y
            out.residual = K.T @ weighted + (out.residual if out.n else 0.0)
            out.bias_column += K.T @ weight
            out.add(weight, Y, weighted)
        mirror(G)
        return G, out

    # --- one chunk at a time -----------------------------------------------------------------------------------

    def _blocks(self, chunks: Iterable[Chunk] | None = None) -> Iterator[tuple[Floats, _Rows, Floats]]:
        """Yield targets, rows of K_nM and weights of all chunks, a block of samples at a time."""
        for chunk in self._chunks() if chunks is None else chunks:
            for start in range(0, chunk.n, CHUNK_ROWS):
                part = slice(start, start + CHUNK_ROWS)
                weight = chunk.weight[part]
                yield chunk.Y[part], self._rows(chunk, part), weight

    def _rows(self, chunk: Chunk, part: slice) -> _Rows:
        """Return the rows of K_nM for a part of a chunk, and keep them with the chunk if the budget allows."""
        key = part.start
        if chunk.kept is not None and key in chunk.kept:
            rows: _Rows = chunk.kept[key]
            return rows
        X = chunk.X[part]
        landmarks, prepared = self._landmarks, self._prepared
        samples = None if landmarks is None or prepared is None else prepared.prepare(X, np.float64)
        if landmarks is None or samples is None:
            rows = _StoredRows(self.kernel, X, self._points)
            size = 8 * n_samples(X) * self.m
        else:
            rows = _ComputedRows(samples, X.shape[0], landmarks, self._in_one_pass)
            size = 8 * (X.nnz if hasattr(X, "nnz") else 2 * X.shape[0] * X.shape[1])
        if chunk.kept is not None and size <= self._cache_bytes_left:
            self._cache_bytes_left -= size
            chunk.kept[key] = rows
        return rows


class _Rows:
    """A block K of rows of K_nM, and products with it."""

    def values(self, block: slice = slice(None)) -> Floats:
        """Return these rows, or a part of them, in float64."""
        raise NotImplementedError

    def forward(self, C: Floats) -> Floats:
        """Return K C."""
        return self.values() @ C

    def backward(self, U: Floats, out: Floats) -> None:
        """Add Kᵀ U to `out`."""
        out += self.values().T @ U

    def normal(self, C: Floats, weight: Floats, out: Floats) -> None:
        """Add Kᵀ W K C to `out`."""
        self.backward(weight[:, None] * self.forward(C), out)


class _ComputedRows(_Rows):
    """Rows whose kernel values the core computes each time they are needed."""

    def __init__(self, samples: Any, n: int, landmarks: tuple[Any, Indices, Any], in_one_pass: bool) -> None:
        self._in_one_pass = in_one_pass
        self._samples, self._rows, self._landmarks = samples, np.arange(n), landmarks
        self._columns = samples.columns(self._rows)

    def values(self, block: slice = slice(None)) -> Floats:
        return np.asarray(self._samples.block(self._rows[block], self._landmarks[2]), dtype=np.float64)

    def forward(self, C: Floats) -> Floats:
        """Return K C; for few outputs the core sums each of them without storing K."""
        if C.shape[1] > _FEW_OUTPUTS:
            return super().forward(C)
        landmarks, all_landmarks, _ = self._landmarks
        out = np.zeros((C.shape[1], len(self._rows)))
        for k in range(C.shape[1]):
            landmarks.add(out[k], self._columns, all_landmarks, np.ascontiguousarray(C[:, k]))
        return out.T

    def backward(self, U: Floats, out: Floats) -> None:
        """Add Kᵀ U to `out`; for few outputs the core sums each of them without storing K."""
        if U.shape[1] > _FEW_OUTPUTS:
            super().backward(U, out)
            return
        for k in range(U.shape[1]):
            total = np.zeros(len(out))
            self._samples.add(total, self._landmarks[2], self._rows, np.ascontiguousarray(U[:, k]))
            out[:, k] += total

    def normal(self, C: Floats, weight: Floats, out: Floats) -> None:
        """Add Kᵀ W K C to `out`, in a single pass over the kernel values where that is faster."""
        if C.shape[1] > _FEW_OUTPUTS or not self._in_one_pass:
            super().normal(C, weight, out)
            return
        landmarks, all_landmarks, _ = self._landmarks
        for k in range(C.shape[1]):
            total = np.zeros(len(out))
            landmarks.add_normal(total, self._columns, all_landmarks, np.ascontiguousarray(C[:, k]), weight)
            out[:, k] += total


class _StoredRows(_Rows):
    """Rows of a kernel that the core does not compute: evaluated once, and stored as long as this object exists."""

    def __init__(self, kernel: Kernel, X: Any, landmarks: Any) -> None:
        self._kernel, self._X, self._landmarks = kernel, X, landmarks
        self._values: Floats | None = None

    def values(self, block: slice = slice(None)) -> Floats:
        """Return these rows, or a part of them, in float64; the kernel is evaluated at the first call."""
        if self._values is None:
            if self._kernel.accepts == "gram":
                self._values = np.asarray(self._X[:, self._landmarks], dtype=np.float64)
            else:
                self._values = self._kernel(self._X, self._landmarks)
            check_finite_values(self._values, self._kernel)
        return self._values[block]
