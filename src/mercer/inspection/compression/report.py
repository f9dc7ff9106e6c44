"""Report of a compression and its guarantees: the error in feature space, and which predictions keep their label.

By the reproducing property |f(x) − f'(x)| ≤ ‖w − w'‖ √k(x, x) + |b − b'| for every x, seen or not. If |f'(x)| is
larger, f(x) has the same sign. If w' is a projection of w, only the part of φ(x) outside of the span counts.

A `CompressionRecord` describes the machine's expansion, a `Compression` its f, which is `_DECISION_FACTOR` times that.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg
from sklearn.base import OutlierMixin

from mercer.certificates.certificate import Certificate
from mercer.estimators.fitting.pipeline.fit import read_samples
from mercer.estimators.fitting.pipeline.machine import CompressionRecord
from mercer.estimators.fitting.pipeline.state import has_function_per_class
from mercer.inspection.compression.distance import VANISHING, norm_bounds
from mercer.inspection.compression.target import cholesky_factor, in_float64
from mercer.places.expansion import Expansion
from mercer.places.host.linear_gram import linear_scale
from mercer.places.host.source import value_error
from mercer.samples.arrays import Flags, Floats, gamma, n_samples, row_blocks, rows_between
from mercer.samples.labels import wins
from mercer.samples.matrices import dense

# Jitter on the diagonal of K, relative to its largest entry: more jitter means a smaller Σ|c_i| but a larger residual.
_JITTER = 1e-10
# Largest number of vectors whose kernel matrix is factored for a sharper bound.
_LARGEST_SPAN = 3000


class Compression:
    """Report of `mercer.compress`, with proven bounds on the change of predictions.

    It is the attribute `compression_` of a compressed model.

    Parameters
    ----------
    machine : estimator
        Model that `compress` returned.

    Attributes
    ----------
    n_vectors_before, n_vectors : int
        Number of vectors of the original, and of the compressed model.
    removed : int
        Number of redundant vectors, which were removed without an error except for rounding.
    moved : bool
        Whether the vectors were moved by gradient descent; otherwise they are vectors of the original.
    retrained : bool
        Whether coefficients and b were fitted to samples; otherwise they are those of the projection, which is nearest
        to the original.
    error : float, or array of shape (n_outputs,)
        Upper bound on ‖w − w'‖ in feature space, rounding included. If the kernel is not known to be positive definite,
        it is the square root of the same quadratic form and proves nothing. For SVDD, f(x) = R² − ‖φ(x) − a‖² has
        w = 2a: twice the distance between the two centres.
    b_change : float, or array of shape (n_outputs,)
        |b − b'|; for SVDD the change of R² − ‖a‖².
    original_certificate : Certificate or None
        Certificate of the original; None if it had none.

    See Also
    --------
    compress : Compress a fitted model.

    Examples
    --------
    See `compress`.
    """

    def __init__(self, machine: Any) -> None:
        self._machine = machine
        record: CompressionRecord = machine._compression_
        self.n_vectors_before, self.removed = record.n_before, record.removed
        self.moved, self.retrained = record.moved, record.retrained
        self.n_vectors = int(machine._expansion_.coefficients.shape[0])
        self.error = _scalar_if_single(machine._DECISION_FACTOR * record.error)
        self.b_change = _scalar_if_single(machine._DECISION_FACTOR * record.b_change)
        self.original_certificate: Certificate | None = vars(machine).get("_original_certificate_")

    def __repr__(self) -> str:
        methods = ["moved by gradient" if self.moved else "chosen from the original's"]
        methods.append("retrained" if self.retrained else "projected")
        largest = float(np.max(self.error, initial=0.0))
        return (
            f"Compression: {self.n_vectors_before} vectors to {self.n_vectors}, {', '.join(methods)}; ‖w − w'‖ at most "
            f"{largest:.6g}"
        )

    def bound(self, X: Any) -> Floats:
        """Compute an upper bound on |f(x) − f'(x)| between the original and the compressed model at each sample.

        The bound is ‖w − w'‖ √k(x, x) + |b − b'|, or less if φ(x) is near the span of the vectors and w' near the
        projection of w. It includes the rounding errors of both evaluations in float64. It needs a kernel that is known
        to be positive definite, and rows of float64: rows of float32 are evaluated in float32 and refused.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            Samples, as for `predict`.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_outputs)
            One number for each sample if the model has one output, in the shape of `decision_function` or `predict`. A
            one-vs-one machine has a column for each pair of classes, as with decision_function_shape="ovo".
        """
        machine, bound = self._machine, self._by_blocks(self._bound, X)
        if hasattr(machine, "quantiles_"):  # predict sorts the quantiles, so the k-th may move as far as any of them
            bound = np.repeat(bound.max(axis=1, keepdims=True), bound.shape[1], axis=1)
        # If y was a matrix with one column, predict returns one as well.
        flat = vars(machine).get("_flat_", True)
        return bound[:, 0] if flat and bound.shape[1] == 1 else bound

    def keeps_label(self, X: Any) -> Flags:
        """Return which samples provably have the label that the original predicts.

        True is a proof; False means that nothing is proven. In a one-vs-one machine the predicted class must win even
        if every pair whose sign is not proven votes against it. Kernels and rows are restricted as in `bound`.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            Samples, as for `predict`.

        Returns
        -------
        array of bool of shape (n_samples,)
            True where the label is proven to be that of the original.
        """
        machine = self._machine
        has_labels = hasattr(machine, "classes_") or isinstance(machine, OutlierMixin)
        if not has_labels:
            raise TypeError(f"{type(machine).__name__} predicts numbers, not labels; use bound(X)")
        return self._by_blocks(self._keeps_label, X)

    def _by_blocks(self, compute: Callable[[Any], np.ndarray], X: Any) -> np.ndarray:
        """Apply `compute` to blocks of rows whose kernel values and bounds fit into memory."""
        X = self._read(X)
        blocks = row_blocks(n_samples(X), 64 * self.n_vectors + 64 * len(self._machine.intercept_))
        return np.concatenate([compute(rows_between(X, block)) for block in blocks])

    @property
    def proves_labels(self) -> bool:
        """True if the kernel is known to be positive definite, which `bound` and `keeps_label` require."""
        return bool(self._machine._expansion_.kernel.positive_definite == "yes")

    def _read(self, X: Any) -> Any:
        """Read samples in float64; raise if nothing can be proven about them."""
        expansion: Expansion = self._machine._expansion_
        kernel = expansion.kernel
        if not self.proves_labels:
            raise ValueError(
                f"nothing can be proven for {kernel!r}: |f − f'| ≤ ‖w − w'‖ √k(x, x) needs a positive definite kernel, "
                "and this one is not known to be. If it is, pass its feature map with FromFeatureMap, or derive a "
                "class from FromFunction with positive_definite = 'yes'"
            )
        X = read_samples(self._machine, X, kernel, reset=False)
        if getattr(X, "dtype", None) == np.float32 and linear_scale(kernel) is None:
            raise TypeError(
                "rows of float32 are predicted in float32, whose rounding may change a label that float64 keeps; pass "
                "X.astype(np.float64), to predict as well"
            )
        return in_float64(X)

    def _bound(self, X: Any) -> Floats:
        """Return an upper bound on |f − f'| at each sample, rounding of both included, one column for each output."""
        machine = self._machine
        expansion, record = machine._expansion_, machine._compression_
        kernel, d = expansion.kernel, X.shape[1] if hasattr(X, "shape") else 0
        lengths = norm_bounds(kernel, expansion.vectors, dense(expansion.coefficients))
        # Both f are sums of kernel values with an error of at most this share of √(k(x, x) k(v, v)); so has k(x, x).
        share = value_error(kernel, expansion.vectors, X) + 2 * gamma(record.n_before + self.n_vectors + d + 64)
        # An underflow is smaller than the rounding error of this root.
        roots = np.sqrt(np.maximum(np.abs(kernel.diag(X)), VANISHING)) * (1 + share + gamma(4 * d + 64))
        b = np.abs(expansion.b) + record.b_change
        difference = np.minimum(np.outer(roots, record.error), self._bound_outside_span(X, roots))
        rounding = np.outer(roots, share * (record.lengths + lengths)) + 2.0**-50 * b
        bound = machine._DECISION_FACTOR * (difference + rounding + record.b_change)
        if machine._SUBTRACTS_DIAGONAL:  # k(x, x) is the same in both; only the rounding of the subtraction counts
            diagonal = np.abs(kernel.diag(X))[:, None]
            bound += gamma(64) * (diagonal + np.outer(roots, record.lengths + lengths) + b)
        return np.asarray(bound) * (1 + 2.0**-50)

    def _bound_outside_span(self, X: Any, roots: Floats) -> Floats:
        """Bound |⟨w − w', φ(x)⟩| from above for each output, by the part of φ(x) outside of the span of all z_i.

        For any c, the bound is ‖w − w'‖ ‖φ(x) − Σ_i c_i φ(z_i)‖ + Σ_i |c_i| max_i |⟨w − w', φ(z_i)⟩|. Here c is
        approximately that of the projection of φ(x). The rounding errors of both terms are added.
        """
        expansion, record = self._machine._expansion_, self._machine._compression_
        kernel, Z, no_bound = expansion.kernel, expansion.vectors, np.full((len(roots), len(record.error)), np.inf)
        if not 0 < self.n_vectors <= _LARGEST_SPAN:
            return no_bound
        values, K = kernel(X, Z), self._vector_matrix
        c = linalg.cho_solve((self._factor, True), values.T, check_finite=False).T
        if not np.isfinite(c).all():
            return no_bound
        sizes = np.abs(c)
        square = kernel.diag(X) - 2 * np.einsum("ij,ij->i", c, values) + np.einsum("ij,ij->i", c @ K, c)
        lengths = roots + sizes @ np.sqrt(np.abs(K.diagonal()) + VANISHING)
        d = X.shape[1] if hasattr(X, "shape") else 0
        rounding = (value_error(kernel, Z, X) + gamma(2 * self.n_vectors + 4 * d + 128)) * lengths**2
        residual = np.sqrt(np.maximum(square, 0.0) + 1.01 * rounding)
        bound = np.outer(residual, record.error) + np.outer(sizes.sum(axis=1), record.at_vectors)
        return np.asarray(bound) * (1 + gamma(self.n_vectors + 64))

    @cached_property
    def _vector_matrix(self) -> Floats:
        """Kernel matrix of the vectors."""
        expansion: Expansion = self._machine._expansion_
        return np.asarray(expansion.kernel(expansion.vectors))

    @cached_property
    def _factor(self) -> Floats:
        """Cholesky factor of the kernel matrix with jitter, which keeps the coefficients c small."""
        K = self._vector_matrix.copy()
        K[np.diag_indices(len(K))] += _JITTER * max(VANISHING, float(np.abs(K.diagonal()).max()))
        return cholesky_factor(K)

    def _keeps_label(self, X: Any) -> Flags:
        """Return which of one block of samples provably keep their label."""
        machine = self._machine
        values, bound = machine._expansion_(X), self._bound(X)
        if machine._SUBTRACTS_DIAGONAL:
            values = machine._DECISION_FACTOR * values - machine._expansion_.kernel.diag(X)[:, None]
        if values.shape[1] == 1:
            return np.asarray(np.abs(values[:, 0]) > bound[:, 0])
        if not hasattr(machine, "break_ties") or has_function_per_class(machine):
            return largest_stays(values, bound)
        return winner_stays(values, bound, len(machine.classes_), bool(machine.break_ties))


def largest_stays(values: Floats, bound: Floats) -> Flags:
    """Return whether the largest value of each row stays the largest under any change within the bounds."""
    rows, best = np.arange(len(values)), np.argmax(values, axis=1)
    least = (values - bound)[rows, best]
    others = values + bound
    others[rows, best] = -np.inf
    return np.asarray(least > others.max(axis=1))


def winner_stays(values: Floats, bound: Floats, k: int, break_ties: bool) -> Flags:
    """Return whether the class with most votes wins even if every pair whose sign may change votes against it.

    A tie goes to the first class, unless it is broken by the values.
    """
    is_certain = np.abs(values) > bound
    rows = np.arange(len(values))
    n_wins = wins(values, k)
    best = np.argmax(n_wins, axis=1)
    first, second = (np.eye(k)[classes] for classes in np.triu_indices(k, 1))  # a row for each pair
    certain_votes = (is_certain & (values > 0)) @ first + (is_certain & (values <= 0)) @ second
    least_votes, most_votes = certain_votes[rows, best][:, None], certain_votes + ~is_certain @ (first + second)
    is_later_class = np.arange(k) > best[:, None]
    is_beaten = (least_votes > most_votes) | ((least_votes == most_votes) & is_later_class & (not break_ties))
    is_beaten[rows, best] = True
    return np.asarray(is_beaten.all(axis=1))


def _scalar_if_single(values: Floats) -> Any:
    """Return the number in an array of length 1, or a longer array as it is."""
    return float(values[0]) if len(values) == 1 else values
