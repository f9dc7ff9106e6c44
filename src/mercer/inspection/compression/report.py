"""What a compression did and guarantees: the error in the kernel's space, and which predictions keep their label.

By the reproducing property |f(x) − f'(x)| ≤ ‖w − w'‖ √k(x, x) + |b − b'| for every x, seen or not. Where |f'(x)| is
larger, f(x) has the same sign. If w' is a projection of w, only the part of φ(x) outside the span counts.

A record speaks of the machine's expansion, a report of f, which is `_DECISION_FACTOR` times that.
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
from mercer.inspection.compression.distance import VANISHING, lengths_of
from mercer.inspection.compression.target import factor_of, in_float64
from mercer.places.expansion import Expansion
from mercer.places.host.linear_gram import linear_scale
from mercer.places.host.source import value_error
from mercer.samples.arrays import Flags, Floats, gamma, n_samples, row_blocks, rows_between
from mercer.samples.labels import wins
from mercer.samples.matrices import dense

# What is added to the diagonal of K, as a share, where φ(x) is projected: a trade of Σ|c_i| against what is left.
_JITTER = 1e-10
# Vectors up to which their kernel matrix is factored for a sharper bound.
_LARGEST_SPAN = 3000


class Compression:
    """What `mercer.compress` did to a machine, and what it proves.

    A compressed machine makes it as `compression_`.

    Parameters
    ----------
    machine : estimator
        A machine that `compress` made.

    Attributes
    ----------
    n_vectors_before, n_vectors : int
        Of the original, and now.
    removed : int
        How many vectors were removed without an error but rounding.
    moved : bool
        Whether positions were found by gradient; else vectors were chosen from those of the original.
    retrained : bool
        Whether coefficients and b were fitted again, to samples; else they are those of the projection, which is
        nearest to the original.
    error : float, or array of shape (n_outputs,)
        ‖w − w'‖ in the kernel's space, rounding included: never less than it is. Under a kernel that nobody says is
        positive definite, the root of the same quadratic form, which proves nothing. SVDD's f, R² − ‖φ(x) − a‖², has
        w = 2a: twice the distance of the two centres.
    b_change : float, or array of shape (n_outputs,)
        |b − b'|; of SVDD the change of R² − ‖a‖².
    original_certificate : Certificate or None
        What the original proved about itself; None where it had none.

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
        self.error = _one_or_all(machine._DECISION_FACTOR * record.error)
        self.b_change = _one_or_all(machine._DECISION_FACTOR * record.b_change)
        self.original_certificate: Certificate | None = vars(machine).get("_original_certificate_")

    def __repr__(self) -> str:
        ways = ["moved by gradient" if self.moved else "chosen from the original's"]
        ways.append("retrained" if self.retrained else "projected")
        largest = float(np.max(self.error, initial=0.0))
        return (
            f"Compression: {self.n_vectors_before} vectors to {self.n_vectors}, {', '.join(ways)}; ‖w − w'‖ at most "
            f"{largest:.6g}"
        )

    def bound(self, X: Any) -> Floats:
        """How far the original's f can be from this machine's at every sample.

        ‖w − w'‖ √k(x, x) + |b − b'|, or less where φ(x) is near the span of the vectors and w' near the projection of
        w, and what rounding may do to the two evaluations in float64. It holds for kernels
        that are known to be positive definite; others, and rows of float32, which are evaluated in float32, are
        refused.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            As in `predict`.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_outputs)
            One number a sample where the machine has one output, as `decision_function` or `predict` has. Of pairs of
            classes there is a column for each pair, as in decision_function_shape="ovo".
        """
        machine, bound = self._machine, self._by_blocks(self._bound, X)
        if hasattr(machine, "quantiles_"):  # predict sorts them, and the k-th then moves as far as any of them
            bound = np.repeat(bound.max(axis=1, keepdims=True), bound.shape[1], axis=1)
        # Of a single column asked for as a column, predict gives one.
        flat = vars(machine).get("_flat_", True)
        return bound[:, 0] if flat and bound.shape[1] == 1 else bound

    def keeps_label(self, X: Any) -> Flags:
        """Which samples have, provably, the label that the original gives them.

        Of pairs of classes all must be safe, or the winner must win whatever the others' votes are. True is a proof;
        False is none. Kernels and rows are refused as in `bound`.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            As in `predict`.

        Returns
        -------
        array of bool of shape (n_samples,)
        """
        machine = self._machine
        labelled = hasattr(machine, "classes_") or isinstance(machine, OutlierMixin)
        if not labelled:
            raise TypeError(f"{type(machine).__name__} predicts numbers, not labels; use bound(X)")
        return self._by_blocks(self._kept, X)

    def _by_blocks(self, ask: Callable[[Any], np.ndarray], X: Any) -> np.ndarray:
        """What is true of every sample, from as many at a time as kernel values and bounds are held of."""
        X = self._read(X)
        blocks = row_blocks(n_samples(X), 64 * self.n_vectors + 64 * len(self._machine.intercept_))
        return np.concatenate([ask(rows_between(X, some)) for some in blocks])

    @property
    def proves_labels(self) -> bool:
        """Whether the kernel is known to be positive definite, which `bound` and `keeps_label` ask for."""
        return bool(self._machine._expansion_.kernel.positive_definite == "yes")

    def _read(self, X: Any) -> Any:
        expansion: Expansion = self._machine._expansion_
        kernel = expansion.kernel
        if not self.proves_labels:
            raise ValueError(
                f"nothing is proven under {kernel!r}: |f − f'| ≤ ‖w − w'‖ √k(x, x) needs a positive definite kernel, "
                "and nobody says that this one is. If it is, say so: give its feature map by FromFeatureMap, or make a "
                "class of FromFunction with positive_definite = 'yes'"
            )
        X = read_samples(self._machine, X, kernel, reset=False)
        if getattr(X, "dtype", None) == np.float32 and linear_scale(kernel) is None:
            raise TypeError(
                "rows of float32 are predicted in float32, whose rounding may change a label that is kept in float64; "
                "give X.astype(np.float64), to predict as well"
            )
        return in_float64(X)

    def _bound(self, X: Any) -> Floats:
        """At least |f − f'|, with what rounding does to both, one column for each output."""
        machine = self._machine
        expansion, record = machine._expansion_, machine._compression_
        kernel, d = expansion.kernel, X.shape[1] if hasattr(X, "shape") else 0
        own_lengths = lengths_of(kernel, expansion.vectors, dense(expansion.coefficients))
        # Both machines' values are sums of kernel values, each right to a share of √k(x, x) k(v, v); and k(x, x) is.
        share = value_error(kernel, expansion.vectors, X) + 2 * gamma(record.n_before + self.n_vectors + d + 64)
        # What underflows is below the rounding of such a root.
        roots = np.sqrt(np.maximum(np.abs(kernel.diag(X)), VANISHING)) * (1 + share + gamma(4 * d + 64))
        b = np.abs(expansion.b) + record.b_change
        apart = np.minimum(np.outer(roots, record.error), self._beyond_span(X, roots))
        rounded = np.outer(roots, share * (record.lengths + own_lengths)) + 2.0**-50 * b
        bound = machine._DECISION_FACTOR * (apart + rounded + record.b_change)
        if machine._SUBTRACTS_DIAGONAL:  # k(x, x) is the same number in both, and a difference is rounded
            own = np.abs(kernel.diag(X))[:, None]
            bound += gamma(64) * (own + np.outer(roots, record.lengths + own_lengths) + b)
        return np.asarray(bound) * (1 + 2.0**-50)

    def _beyond_span(self, X: Any, roots: Floats) -> Floats:
        """At least |⟨w − w', φ(x)⟩| for every output, from what of φ(x) lies outside the span of the vectors z_i.

        For any c it is at most ‖w − w'‖ ‖φ(x) − Σ_i c_i φ(z_i)‖ + Σ_i |c_i| max_i |⟨w − w', φ(z_i)⟩|. Here c is about
        that of the projection of φ(x). It need not be exact, and what rounding does to the two terms is added.
        """
        expansion, record = self._machine._expansion_, self._machine._compression_
        kernel, Z, nothing = expansion.kernel, expansion.vectors, np.full((len(roots), len(record.error)), np.inf)
        if not 0 < self.n_vectors <= _LARGEST_SPAN:
            return nothing
        values, K = kernel(X, Z), self._among_vectors
        c = linalg.cho_solve((self._factor, True), values.T, check_finite=False).T
        if not np.isfinite(c).all():
            return nothing
        sizes = np.abs(c)
        square = kernel.diag(X) - 2 * np.einsum("ij,ij->i", c, values) + np.einsum("ij,ij->i", c @ K, c)
        lengths = roots + sizes @ np.sqrt(np.abs(K.diagonal()) + VANISHING)
        d = X.shape[1] if hasattr(X, "shape") else 0
        lost = (value_error(kernel, Z, X) + gamma(2 * self.n_vectors + 4 * d + 128)) * lengths**2
        rest = np.sqrt(np.maximum(square, 0.0) + 1.01 * lost)
        found = np.outer(rest, record.error) + np.outer(sizes.sum(axis=1), record.at_vectors)
        return np.asarray(found) * (1 + gamma(self.n_vectors + 64))

    @cached_property
    def _among_vectors(self) -> Floats:
        """k between the vectors."""
        expansion: Expansion = self._machine._expansion_
        return np.asarray(expansion.kernel(expansion.vectors))

    @cached_property
    def _factor(self) -> Floats:
        """Cholesky's factor of about that, so conditioned that c is not much larger than it must be."""
        K = self._among_vectors.copy()
        K[np.diag_indices(len(K))] += _JITTER * max(VANISHING, float(np.abs(K.diagonal()).max()))
        return factor_of(K)

    def _kept(self, X: Any) -> Flags:
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
    """Whether the largest value is so by more than the bounds allow."""
    rows, best = np.arange(len(values)), np.argmax(values, axis=1)
    least = (values - bound)[rows, best]
    others = values + bound
    others[rows, best] = -np.inf
    return np.asarray(least > others.max(axis=1))


def winner_stays(values: Floats, bound: Floats, k: int, break_ties: bool) -> Flags:
    """Whether the class with most votes has most even if every pair that is not safe votes against it.

    A tie goes to the first class, unless it is broken by the values.
    """
    safe = np.abs(values) > bound
    rows = np.arange(len(values))
    won = wins(values, k)
    best = np.argmax(won, axis=1)
    first, second = (np.eye(k)[classes] for classes in np.triu_indices(k, 1))  # a row for each pair
    sure = (safe & (values > 0)) @ first + (safe & (values <= 0)) @ second
    least, most = sure[rows, best][:, None], sure + ~safe @ (first + second)
    after = np.arange(k) > best[:, None]
    beaten = (least > most) | ((least == most) & after & (not break_ties))
    beaten[rows, best] = True
    return np.asarray(beaten.all(axis=1))


def _one_or_all(values: Floats) -> Any:
    return float(values[0]) if len(values) == 1 else values
