"""Interfaces to K for solvers and certificates, independent of where its values are computed.

Solvers work with rows and numbers, kernels with blocks of samples, and a Gram translates between them.
`places.gram_for` builds the Gram; tests/contracts/gram_contract.py tests every implementation against these docstrings.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mercer.kernels import Kernel
from mercer.places.ball import Ball
from mercer.places.host.blocks import DeviceSolve
from mercer.samples.arrays import Floats, Indices, Precision, Values

if TYPE_CHECKING:
    from mercer.places.host.pair_place import Layout, PairPlace
    from mercer.places.protocols import LinearGram
    from mercer.problems.dual_problem import DualProblem
    from mercer.problems.multiclass import JointProblem


class BoundedProducts(Protocol):
    """Products with K, with a bound on the error of each row, and facts about K: all that a certificate needs."""

    @property
    def n(self) -> int:
        """Number of rows."""

    @property
    def positive_definite(self) -> str:
        """The kernel's `positive_definite`, or "no" once a counterexample was found."""

    @property
    def diagonal(self) -> Floats:
        """Diagonal k(x_i, x_i) in float64."""

    @property
    def entry_bounds(self) -> Floats:
        """Numbers r with |K_ij| ≤ r_i r_j; for a user's indefinite kernel they cover the values computed so far."""

    @property
    def levels(self) -> tuple[Precision, ...]:
        """Levels that `product_bound` accepts, fastest first: precisions, and "exact" if there is a better method."""

    def product_bound(self, coefficients: Floats, rows: Indices | None = None, level: Precision = np.float64) -> Ball:
        """Return K[rows] @ coefficients with a bound on the error of each number.

        Coefficients of several sums are columns. Kernel values of the level "exact" are float64 values computed without
        cancellation, or given values whose sums are more accurate. The bound counts every rounding of kernel values and
        sums; values from a user's function or matrix count as exact.
        """

    def errors(self, coefficients: Floats, rows: Indices | None = None, level: Precision = np.float64) -> Floats:
        """Return error bounds as in `product_bound`, for one vector, without computing the product; they may be larger.

        They also hold for exact sums of the values that `block`, `full` and `float64_matrix` return.
        """


class Gram(BoundedProducts, Protocol):
    """Kernel matrix of n samples under a bound kernel: diagonal, blocks, products, views and fields."""

    kernel: Kernel  # with its data-dependent parameters resolved
    budget: int  # bytes that the Gram and its fields may use beyond the samples
    evaluations: int  # kernel values computed so far, counted by the Gram and its fields

    @property
    def precisions(self) -> tuple[Precision, ...]:
        """Precisions of kernel values that a solver can choose from, fastest first; float64 is the last."""

    @property
    def recomputes_cheaply(self) -> bool:
        """True if computing a kernel value costs little more than reading one from memory."""

    @property
    def concurrent(self) -> bool:
        """True if solves on views can run in several threads at once: values are computed without Python's lock."""

    @property
    def outer_rows(self) -> int:
        """Number of variables of an outer working set, solved in smaller blocks; 0 if working sets are not nested.

        Nesting pays if selecting variables from all rows costs much compared with the kernel values.
        """

    @property
    def chunk_rows(self) -> int:
        """Largest number of samples for which a part made by `copied` can be solved within the budget."""

    @property
    def proof(self) -> BoundedProducts:
        """Products that certify solutions on this matrix: the Gram itself if it bounds its errors."""

    @property
    def linear(self) -> LinearGram | None:
        """K = s·XXᵀ as products with the samples X; None if the kernel is not linear."""

    # --- is K positive semi-definite? ---------------------------------------------------------------------------

    def looks_positive_definite(self) -> bool:
        """Return whether a principal minor of rows spread over the samples has no negative eigenvalue.

        A kernel that is known to be positive definite is not examined. For any other kernel, positive definiteness can
        be refuted, never proven.
        """

    def refute(self) -> None:
        """Record that a solver found a counterexample: K, its views and its copies are not positive definite."""

    # --- values -------------------------------------------------------------------------------------------------

    def block(self, I: Indices, J: Indices) -> Floats:
        """Return K[I, J] in float64 as a new array."""

    def full(self, dtype: Precision = np.float64) -> Any:
        """Return K as a new array with contiguous rows, which the caller may overwrite.

        Numbers too large for `dtype` are infinite.
        """

    def float32_matrix(self) -> Float32Matrix:
        """Return all values of `block`, rounded to float32.

        The result is symmetric, and its diagonal is the Gram's. Numbers too large for float32 are infinite.
        """

    def product(self, coefficients: Floats, rows: Indices | None = None, dtype: Precision = np.float64) -> Floats:
        """Return K[rows] @ coefficients, summed in float64; columns whose coefficient is zero cost nothing.

        With `dtype` float32, kernel values may have that precision; they are float64 if that is as fast.
        """

    def products(self, C: Floats, rows: Indices | None = None, dtype: Precision = np.float64) -> Floats:
        """Return `product` for several columns of coefficients."""

    # --- the whole matrix and its decompositions; `places/factor.py` computes them on the host ---------------------

    def factor(self, d: Floats, dtype: Precision = np.float64, n_threads: int = 1) -> Factor | None:
        """Factor K + diag(d) in this precision; None if it is not positive definite after rounding."""

    def landmark_factor(self, landmarks: Indices, weight: Floats, n_threads: int = 1) -> LandmarkFactor:
        """Factor K_JJ + K_nJᵀ diag(weight) K_nJ for the rows J = `landmarks` and weights ≥ 0 of all rows.

        The smallest jitter that makes the computed K_JJ positive definite is added to it. Raise ValueError if a
        thousandth of its diagonal does not, and FloatingPointError if values are not finite.
        """

    def float64_matrix(self, n_threads: int = 1) -> Float64Matrix:
        """Return all values in float64, computed once for many products and factors; that takes 8n² bytes."""

    def eigh(self, scale: Floats, centred: bool, deadline: float = math.inf) -> Eigensystem:
        """Decompose SKS = QΛQᵀ with S = diag(scale).

        If `centred`, decompose PSKSP with Pv = v − ss'v/s's and s = scale, and leave out its eigenvector s. Raise
        TimeoutError if it would end long after the deadline on time.monotonic's clock.
        """

    # --- views and copies ---------------------------------------------------------------------------------------

    def view(self, rows: Indices) -> Gram:
        """Return the Gram of a subset of rows, which shares samples and storage."""

    def streamed(self) -> Gram:
        """Return this matrix for products only: samples are prepared when needed, never all of them at once."""

    def copied(self, rows: Indices, budget: int) -> Gram:
        """Return the Gram of a subset with its own copy of the samples, so that it prepares only the subset."""

    def share(self) -> None:
        """Compute once, as far as memory allows, values that overlapping views would each compute again.

        Solvers call it before they make views, such as those of the pairs of a multi-class problem. It has no effect on
        a view.
        """

    # --- the state of a solve -----------------------------------------------------------------------------------

    def field(
        self, problem: DualProblem, beta: Floats | None = None, u: Floats | None = None, dtype: Precision = np.float64
    ) -> Field:
        """Return the state of a solve on this matrix, started at β or at a feasible point; u = Kβ if it is known.

        u may differ from Kβ by a vector that stays constant, and is then part of p: the contribution of variables that
        are held fixed.
        """

    def joint_field(self, problem: JointProblem, beta: Floats, u: Floats, dtype: Precision = np.float64) -> JointField:
        """Return the state of a joint multi-class solve, started at β with u = Kβ."""

    def pairs(self, layout: Layout, n_threads: int) -> PairPlace | None:
        """Return the solver of many small problems on pairs of blocks of rows; None if it would not be faster."""


class BoxVariables(NamedTuple):
    """Arrays of a `DualProblem` that have one entry per variable, without `row`."""

    p: Floats
    lower: Floats
    upper: Floats
    d: Floats
    group: NDArray[np.int32]


class Float32Matrix(Protocol):
    """All of K in float32 on its engine, for products and for pair steps on all variables."""

    @property
    def values(self) -> Values:
        """K as an array of the host with contiguous rows."""
        ...

    @property
    def largest(self) -> float:
        """Largest |value|; not finite if one of the values is not."""
        ...

    def product(self, coefficients: Floats) -> Floats:
        """Return K @ coefficients, summed in float64 in any order; columns whose coefficient is zero cost nothing."""
        ...

    def steps(
        self, box: BoxVariables, beta: Floats, u: Floats, tol: float, max_steps: int, max_seconds: float
    ) -> tuple[int, str]:
        """Take pair steps from β with u = Kβ; return their number and the reason why they ended, such as "converged".

        Other reasons are "stalled", "max_seconds", "nonfinite" and "unbounded". Every row has one
        variable, or two: first come the first variables of all rows, then the second ones. β is changed in place, and K
        times the whole change is added to u in one sum; after "nonfinite" and "unbounded", neither β nor u is valid.
        """
        ...


class Factor(Protocol):
    """Cholesky factor of A = K + diag(d) = LLᵀ, in float32 or float64, on the engine of K."""

    @property
    def pivots(self) -> Floats:
        """Diagonal of L, which scales with A: 2Σ log(pivots) is the logarithm of det A."""

    def solve(self, R: Floats) -> Floats:
        """Return Z = A⁻¹R: |AZ − R| ≤ (4n + 20)u·√a_ii Σ_j √a_jj |z_j| in row i, plus the error of K.

        R has columns of any size, and u is half an ulp of 1 in the factor's precision.
        """


class LandmarkFactor(Protocol):
    """Factors of A = K_JJ + K_nJᵀ diag(weight) K_nJ, m × m, on the engine of K.

    With K_JJ = LLᵀ they are L and the Cholesky factor of I + L⁻¹(A − K_JJ)L⁻ᵀ, so that directions of K_JJ with small
    eigenvalues keep their digits beside large weights.
    """

    def solve(self, R: Floats) -> Floats:
        """Return A⁻¹R for columns R."""


class Float64Matrix(Protocol):
    """All of K in float64 on its engine, each value computed once, with the errors that `Gram.errors` bounds."""

    @property
    def extremes(self) -> tuple[float, float]:
        """Smallest and largest value."""

    def column(self, j: int, rows: Indices | None = None) -> Floats:
        """Return K[rows, j]."""

    def products(self, C: Floats, columns: Indices | None = None) -> Floats:
        """Return K[:, columns] @ C, summed in float64 in any order."""

    def factor(self, d: Floats, rows: Indices | None = None) -> Factor | None:
        """Factor K[rows, rows] + diag(d), as `Gram.factor` does for all rows."""

    def leading(
        self, scale: Floats, k: int | None, centre: Floats | None = None, subtracted: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Return the k largest eigenvalues, or all, of S(K̃ − diag(subtracted))S in descending order, and eigenvectors.

        S is diag(scale), and K̃ is K, or (I − 1c')K(I − c1') with c = `centre`. Errors are those of an Eigensystem with
        1e-12 in place of 40nu. The largest entry of each column, or the first of several as large, is positive.
        """


class Eigensystem(Protocol):
    """Eigenvalues Λ and orthonormal eigenvectors Q, which stay on their engine.

    With u half an ulp of 1 and the matrix S, no entry of SQ − QΛ is larger than 40nu max_i Σ_j |S_ij|, the largest sum
    of absolute values in a row of S before centring, and no entry of QᵀQ − I is larger than 40nu.
    """

    @property
    def values(self) -> Floats:
        """Eigenvalues Λ, in increasing order."""

    def coordinates(self, R: Floats) -> Floats:
        """Return QᵀR."""

    def combined(self, A: Floats) -> Floats:
        """Return QA."""

    def squared(self, A: Floats) -> Floats:
        """Return (Q∘Q)A: sums of the squares in each row of Q."""


class State(Protocol):
    """State of any solve: β, u = Kβ, and the active variables or samples."""

    beta: Floats
    u: Floats  # Kβ of all rows; only the active rows are up to date
    active: Indices  # variables, or samples, that can be chosen

    @property
    def gram(self) -> Gram:
        """The Gram of K."""

    @property
    def shrunk(self) -> bool:
        """True if variables were dropped: then u is up to date in the active rows only."""

    def violators(self, q: int, keep: float) -> Indices:
        """Return at most q active variables: up to q·keep of the last set, free ones first, and the worst violators."""

    def block(self, J: Indices) -> Values:
        """Return K between the rows of J, in the precision of the solve; the next block may overwrite it."""

    def move(self, J: Indices, beta: Floats) -> None:
        """Set β on J and bring u of the active rows up to date.

        `block` was last called for J: always in a joint solve, usually in others.
        """

    def unshrink(self) -> None:
        """Make all variables or samples active again, and bring u up to date in all rows."""


class Field(State, DeviceSolve, Protocol):
    """State of one solve: β of all variables, u = Kβ of the active rows, and the active variables.

    The decomposition loop asks it for the worst violators and for K on the working set, then to move β and to shrink. A
    field does not depend on the machine that is solved.
    """

    problem: DualProblem

    def violation(self) -> tuple[float, Floats, Floats]:
        """Return the largest violation of active variables, and for each group the largest and smallest h behind it."""

    def gradient(self, J: Indices) -> Floats:
        """Return the gradient h of the variables J, which must be active."""

    def inner_field(self, J: Indices) -> Field:
        """Return the state of the problem on J, active and in ascending order, with all other variables held fixed.

        Its variables are those of J in this order. Steps on it do not change this field.
        """

    def shrink(self) -> bool:
        """Drop variables at a bound that no pair would choose, if there are enough of them; return whether it did."""


class JointField(State, Protocol):
    """State of a joint multi-class solve: β and u = Kβ with a column per class, and the active samples."""

    problem: JointProblem
    b: Floats

    def set_problem(self, problem: JointProblem) -> None:
        """Continue with this problem, which differs from the last one only in its biases."""

    def violation(self) -> float:
        """Return the largest violation of the active samples."""

    def excess(self, rows: Indices) -> Floats:
        """Return the excess e of the given active samples."""

    def shrink(self, violation: float) -> None:
        """Drop samples in a corner of their box that no gradient difference as large as the violation would move."""


class Evaluation(Protocol):
    """Evaluation of a trained machine: x ↦ Σ_j c_j k(x_j, x), with one column of coefficients per output."""

    def add(self, out: Floats, X: Any, n_threads: int) -> None:
        """Add K(X, vectors) @ coefficients to `out`; kernel values have the precision of X."""
