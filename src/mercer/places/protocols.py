"""What solvers and certificates ask of samples where they ask for no Gram: of their rows, of X in K = s·XXᵀ, of K_nM.

Samples may live anywhere. Vectors over samples, features and landmarks are arrays of the host. `places.choose`
makes the places; tests/contracts/rows_contract.py and cross_contract.py test every implementation against these
docstrings. Bounds count every rounding, those below the normal numbers too; an infinite one claims nothing.
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
    """The samples of a linear machine as n rows of d numbers: products and sums in float64, whatever they are.

    A vector may have been taken off all of them, which rounded every number once: bounds are for the true difference.
    """

    n: int  # the number of rows
    d: int  # the number of columns
    stored: int  # the entries that a product visits: n·d, or the non-zero ones of sparse rows
    origin: float  # the length of the vector that was taken off all rows; 0 if there was none

    @property
    def lengths(self) -> Floats:
        """The squared length of every row."""

    @property
    def descent(self) -> _core.LinearRows | None:
        """The core's steps on one row after another; None where each would cost too much: then there is Newton."""

    def first(self, m: int) -> Rows:
        """The first m rows."""

    def some(self, which: Indices) -> Rows:
        """The rows `which`."""

    def product(self, w: Floats, shift: float = 0.0) -> Floats:
        """Xw + shift."""

    def transposed(self, c: Floats) -> Floats:
        """X'c; rows whose c is 0 cost nothing."""

    def gram(self, which: Indices, others: Indices) -> Floats:
        """The inner products of the rows `which` with the rows `others`."""

    def outer(self, which: Indices, c: Floats) -> Floats:
        """Σ c z z' over the rows `which`, z = (x, 1) and c ≥ 0; only the lower triangle is valid."""

    # --- proofs -------------------------------------------------------------------------------------------------

    def product_bound(self, w: Floats, shift: float = 0.0) -> Ball:
        """Xw + shift, and for each number a bound on its distance from the true one."""

    def precise_product(self, w: Floats) -> Ball:
        """Xw with the best bounds that can be had: on this machine it is rounded once."""

    def combination(self, c: Floats, enough: float = 0.0) -> tuple[Floats, Floats, float]:
        """X'c as the sum of two vectors, and a bound on the length of its error.

        An error of the length `enough` will do. The second vector may be 0; the first alone is nearly as good.
        """

    def gram_product(self, c: Floats) -> Ball:
        """XX'c with the best bounds that can be had."""


class LinearGram(Protocol):
    """K = scale·XXᵀ through the n × d samples X alone: a product with K is two with X, however many samples there are.

    Samples may be taken about a centre of floats: X − 1c' in what follows, where the true difference is meant.
    """

    n: int  # the number of samples
    d: int  # the number of features
    scale: float  # s of K = s·XXᵀ
    sparse: bool  # whether X has stored entries only: then there is no centre but zero, which is None

    @property
    def reach(self) -> float:
        """A bound on √k(x, x)."""

    def times(self, W: Floats, centre: Floats | None = None) -> Floats:
        """(X − 1c')W for several columns, or one vector."""

    def transposed(self, C: Floats, centre: Floats | None = None) -> Floats:
        """(X − 1c')ᵀC, likewise."""

    def times_bound(self, W: Ball, centre: Floats | None = None) -> Ball:
        """(X − 1c')W, and for each number a bound on its distance from the true one."""

    def transposed_bound(self, C: Ball, size: Floats, centre: Floats | None = None) -> Ball:
        """(X − 1c')ᵀC, likewise; `size` is at least |C|."""

    def transposed_squares(self, weight: Floats, centre: Floats | None = None) -> Floats:
        """Σ w_i (x_ij − c_j)² of each feature."""

    def sums(self, problem: LeastSquares) -> Sums:
        """The sums over the samples, each with its weight and targets."""

    def pieces(self, centre: Floats | None = None) -> Iterator[tuple[slice, Floats]]:
        """X − 1c' as arrays of this machine, some rows at a time, for factorisations; sparse samples get a centre."""

    def without_empty_columns(self) -> tuple[LinearGram, Indices | None]:
        """The same K from the features that occur, and which these are, where it pays; else itself and None."""


@dataclass
class Totals:
    """The sums of one pass over the samples."""

    residual: Floats  # K_nMᵀW(Y − f)
    pull: Floats  # K_nMᵀw, what a bias adds to the normal equations
    weight: float = 0.0
    mean: Any = 0.0  # Σ w(y − f), an array with one number per output
    squares: Any = 0.0  # Σ w(y − f)², likewise
    n: int = 0

    def add(self, weight: Floats, E: Floats, weighted: Floats) -> None:
        """Count samples of these weights with errors E; `weighted` is their product."""
        self.weight += float(weight.sum())
        self.mean = weighted.sum(axis=0) + self.mean
        self.squares = (weighted * E).sum(axis=0) + self.squares
        self.n += len(weight)


@dataclass
class Doubt:
    """What bounds the rounding of Totals: entry by entry of `residual`, and of f itself."""

    residual: Floats  # of sums over the samples
    squares: Floats  # Σ w e², where f(x) is off by at most e
    trace: float = 0.0  # Σ w k(x, x)
    terms: int = 0  # roundings of a sum over all samples


class Cross(Protocol):
    """K_nM: kernel values between n samples, which come in chunks, and M landmarks.

    W holds the weights of the samples and Y their targets, one column per output, as C has.
    """

    kernel: Kernel  # with its data-dependent parameters resolved
    m: int  # M, the number of landmarks

    @property
    def K_MM(self) -> Floats:
        """The kernel matrix of the landmarks."""

    @property
    def value_error(self) -> float:
        """What bounds the error of a value of K_MM, in units of √(k_ii k_jj); given values are taken as they are."""

    @property
    def recomputes_cheaply(self) -> bool:
        """Whether a kernel value costs little more than reading one from memory."""

    def normal(self, C: Floats) -> Floats:
        """K_nMᵀ W K_nM C."""

    def residual(self, C: Floats, b: Floats) -> Totals:
        """K_nMᵀ W (Y − K_nM C − b) and the other totals; `pull` only at C = 0, as it never changes."""

    def proof(self, C: Floats, b: Floats) -> tuple[Totals, Doubt]:
        """The totals of `residual` again, and what rounding can have done to them."""

    def gather(self, sample: Chunk | None = None) -> tuple[Floats, Totals]:
        """K_nMᵀ W K_nM over one chunk or all of them, and the totals of the same pass at C = 0 and b = 0."""
