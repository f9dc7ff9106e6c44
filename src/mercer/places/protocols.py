"""Interfaces to samples without a Gram: rows of a linear machine, X in K = s·XXᵀ, and K_nM.

Samples may be on any engine. Vectors over samples, features and landmarks are arrays of the host. `places.choose`
builds the implementations; tests/contracts/rows_contract.py and cross_contract.py test each of them against these
docstrings. Bounds count every rounding, including underflow; an infinite bound claims nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from mercer import _core
from mercer.kernels import Kernel
from mercer.places.ball import Ball
from mercer.samples.arrays import Floats, Indices

if TYPE_CHECKING:
    from mercer.places.sums import Sums
    from mercer.problems.least_squares import LeastSquares
    from mercer.samples.chunks import Chunk


class Rows(Protocol):
    """Samples of a linear machine as n rows of d numbers: products and sums are float64 for data of any type.

    A centre may have been subtracted from all rows, which rounded every number once: bounds are for the true
    difference.
    """

    n: int  # number of rows
    d: int  # number of columns
    stored: int  # entries that a product visits: n·d, or the non-zero entries of sparse rows
    origin: float  # length of the centre that was subtracted from all rows; 0 if there was none

    @property
    def squared_lengths(self) -> Floats:
        """Squared length of every row."""

    @property
    def descent(self) -> _core.LinearRows | None:
        """The core's coordinate descent on these rows; None if single steps would cost too much, and Newton is used."""

    def first(self, m: int) -> Rows:
        """Return the first m rows."""

    def take(self, rows: Indices) -> Rows:
        """Return the given rows."""

    def product(self, w: Floats, shift: float = 0.0) -> Floats:
        """Return Xw + shift."""

    def transposed(self, c: Floats) -> Floats:
        """Return X'c; rows whose c is 0 cost nothing."""

    def gram(self, rows: Indices, others: Indices) -> Floats:
        """Return the inner products of the given rows with the rows `others`."""

    def outer(self, rows: Indices, c: Floats) -> Floats:
        """Return Σ c z z' over the given rows, z = (x, 1) and c ≥ 0; only the lower triangle is valid."""

    # --- proofs -------------------------------------------------------------------------------------------------

    def product_bound(self, w: Floats, shift: float = 0.0) -> Ball:
        """Return Xw + shift with a bound on the error of each number."""

    def precise_product(self, w: Floats) -> Ball:
        """Return Xw with the tightest available bounds: on the host it is rounded once."""

    def combination(self, c: Floats, tolerance: float = 0.0) -> tuple[Floats, Floats, float]:
        """Return X'c as the sum of two vectors, and a bound on the length of its error.

        An error of a length up to `tolerance` is accepted. The second vector is small compared with the first, and may
        be 0.
        """

    def gram_product(self, c: Floats) -> Ball:
        """Return XX'c with the tightest available bounds."""


class LinearGram(Protocol):
    """K = scale·XXᵀ through the n × d samples X alone: a product with K is two products with X, for any n.

    A centre c of floats may be subtracted from the samples: X − 1c' below is the true difference.
    """

    n: int  # number of samples
    d: int  # number of features
    scale: float  # s of K = s·XXᵀ
    sparse: bool  # True if X stores its non-zero entries only: then the centre is zero, passed as None

    @property
    def norm_bound(self) -> float:
        """Upper bound on √k(x, x) over all samples."""

    def times(self, W: Floats, centre: Floats | None = None) -> Floats:
        """Return (X − 1c')W for several columns, or one vector."""

    def transposed(self, C: Floats, centre: Floats | None = None) -> Floats:
        """Return (X − 1c')ᵀC for several columns, or one vector."""

    def times_bound(self, W: Ball, centre: Floats | None = None) -> Ball:
        """Return (X − 1c')W with a bound on the error of each number."""

    def transposed_bound(self, C: Ball, size: Floats, centre: Floats | None = None) -> Ball:
        """Return (X − 1c')ᵀC with a bound on the error of each number, where `size` ≥ |C|."""

    def transposed_squares(self, weight: Floats, centre: Floats | None = None) -> Floats:
        """Return Σ w_i (x_ij − c_j)² for each feature."""

    def sums(self, problem: LeastSquares) -> Sums:
        """Return the sums over the samples, each with its weight and targets."""

    def dense_blocks(self, centre: Floats | None = None) -> Iterator[tuple[slice, Floats]]:
        """Yield X − 1c' as dense host arrays, a block of rows at a time, for factorisations.

        A centre is subtracted from sparse samples too.
        """

    def without_empty_columns(self) -> tuple[LinearGram, Indices | None]:
        """Return K from the non-empty features, and their indices, if that is faster; otherwise itself and None."""


@dataclass
class Totals:
    """Sums of one pass over the samples."""

    residual: Floats  # K_nMᵀW(Y − f)
    bias_column: Floats  # K_nMᵀw, the column of the bias in the normal equations
    weight: float = 0.0  # Σ w
    error_sum: Any = 0.0  # Σ w(y − f), an array with one number per output
    squares: Any = 0.0  # Σ w(y − f)², an array with one number per output
    n: int = 0  # number of samples

    def add(self, weight: Floats, E: Floats, weighted: Floats) -> None:
        """Add samples with these weights and errors E = y − f; `weighted` holds each weight times its errors."""
        self.weight += float(weight.sum())
        self.error_sum = weighted.sum(axis=0) + self.error_sum
        self.squares = (weighted * E).sum(axis=0) + self.squares
        self.n += len(weight)


@dataclass
class ErrorTotals:
    """Bounds on the rounding errors of each entry of `Totals.residual`, and of f(x)."""

    residual: Floats  # bounds on the errors of `Totals.residual`
    squares: Floats  # Σ w e², where e bounds the error of f(x)
    trace: float = 0.0  # Σ w k(x, x)
    terms: int = 0  # number of roundings of a sum over all samples


class Cross(Protocol):
    """K_nM: kernel values between n samples, which come in chunks, and M landmarks.

    W holds the weights of the samples and Y their targets; Y and C have one column per output.
    """

    kernel: Kernel  # with its data-dependent parameters resolved
    m: int  # number of landmarks, M

    @property
    def K_MM(self) -> Floats:
        """Kernel matrix of the landmarks."""

    @property
    def value_error(self) -> float:
        """Bound on the error of a value of K_MM, in units of √(k_ii k_jj); given values count as exact."""

    @property
    def recomputes_cheaply(self) -> bool:
        """True if computing a kernel value costs little more than reading one from memory."""

    def normal(self, C: Floats) -> Floats:
        """Return K_nMᵀ W K_nM C."""

    def residual(self, C: Floats, b: Floats) -> Totals:
        """Return K_nMᵀ W (Y − K_nM C − b) and the other totals.

        `bias_column` depends on neither C nor b; it is computed only if C = 0.
        """

    def proof(self, C: Floats, b: Floats) -> tuple[Totals, ErrorTotals]:
        """Return the totals of `residual`, and bounds on their rounding errors."""

    def gather(self, sample: Chunk | None = None) -> tuple[Floats, Totals]:
        """Return K_nMᵀ W K_nM over one chunk or all of them, and the totals of the same pass at C = 0 and b = 0."""
