"""What solvers and certificates ask of K, wherever its values come from.

Solvers see rows and numbers, kernels see blocks of samples, and a Gram translates between them. `places.gram_for`
makes the Gram of the host; tests/contracts/gram_contract.py tests every implementation against these docstrings.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mercer.kernels import Kernel
from mercer.places.ball import Ball
from mercer.places.host.blocks import TakesRounds
from mercer.samples.arrays import Floats, Indices, Precision, Values

if TYPE_CHECKING:
    from mercer.places.host.pair_place import Layout, PairPlace
    from mercer.places.protocols import LinearGram
    from mercer.problems.dual_problem import DualProblem
    from mercer.problems.multiclass import JointProblem


class Provable(Protocol):
    """What a certificate needs: products with K, each row with a bound on its errors, and what is known about K."""

    @property
    def n(self) -> int:
        """The number of rows."""

    @property
    def positive_definite(self) -> str:
        """What the kernel states about itself, or "no" once a counterexample was found."""

    @property
    def diagonal(self) -> Floats:
        """k(x_i, x_i) in float64."""

    @property
    def reach(self) -> Floats:
        """Numbers r with |K_ij| ≤ r_i r_j; of a user's indefinite kernel, for the values that were computed so far."""

    @property
    def levels(self) -> tuple[Precision, ...]:
        """What `product_bound` can be asked for, fastest first: precisions, and "exact" if there is a better way."""

    def product_bound(self, coefficients: Floats, rows: Indices | None = None, level: Precision = np.float64) -> Ball:
        """K[rows] @ coefficients, and for each number a bound on its distance from the true one.

        Coefficients of several sums are columns. Kernel values of the level "exact" are float64 values that do not
        cancel, or values that were given, whose sums err less. The bound counts every rounding of kernel values and
        sums; values that a user's function or matrix gave are taken as they are.
        """

    def errors(self, coefficients: Floats, rows: Indices | None = None, level: Precision = np.float64) -> Floats:
        """Bounds as those of `product_bound` for one vector, without the product: they may be larger.

        They hold for exact sums of the values of `block`, `full` and `kept` too, whatever these are computed with.
        """


class Gram(Provable, Protocol):
    """The kernel matrix of n samples under a bound kernel: diagonal, blocks, products, views and fields."""

    kernel: Kernel  # with its data-dependent parameters resolved
    budget: int  # bytes that the Gram and its fields may use beyond the samples
    evaluations: int  # kernel values computed so far, counted by the Gram and its fields

    @property
    def precisions(self) -> tuple[Precision, ...]:
        """The precisions of kernel values that a solver can choose from, fastest first; float64 is the last."""

    @property
    def recomputes_cheaply(self) -> bool:
        """Whether a kernel value costs little more than reading one from memory."""

    @property
    def concurrent(self) -> bool:
        """Whether solves on its views run side by side on several threads: values are computed without Python."""

    @property
    def outer_rows(self) -> int:
        """How many variables a working set should have, if a pass over all rows has a price beyond its kernel values.

        0 where it has none: working sets are then single blocks. The problem on so many is solved by blocks inside.
        """

    @property
    def chunk_rows(self) -> int:
        """How many samples a part made by `copied` may have, so that it is solved within the budget."""

    @property
    def proof(self) -> Provable:
        """Who certifies solutions on this matrix: itself, where it bounds its errors."""

    @property
    def linear(self) -> LinearGram | None:
        """K = s·XXᵀ through the samples X themselves; None if the kernel is not linear."""

    # --- is K positive semi-definite? ---------------------------------------------------------------------------

    def looks_positive_definite(self) -> bool:
        """Whether a principal minor of rows spread over the samples has no negative eigenvalue.

        A kernel that is known to be positive definite is not examined. Any other can only be refuted, never proven.
        """

    def refute(self) -> None:
        """Remember that a solver found a counterexample: K, its views and its copies are not positive definite."""

    # --- values -------------------------------------------------------------------------------------------------

    def block(self, I: Indices, J: Indices) -> Floats:
        """K[I, J] in float64, a fresh array."""

    def full(self, dtype: Precision = np.float64) -> Any:
        """K as a fresh array with contiguous rows, which the caller may overwrite.

        Numbers too large for `dtype` are infinite.
        """

    def rounded(self) -> Rounded:
        """The values of `block`, all of them, rounded to float32.

        K is symmetric then, and its diagonal is the Gram's. Numbers too large for float32 are infinite.
        """

    def product(self, coefficients: Floats, rows: Indices | None = None, dtype: Precision = np.float64) -> Floats:
        """K[rows] @ coefficients, summed in float64; columns whose coefficient is zero cost nothing.

        `dtype` float32 allows kernel values of that precision; they are float64 if that is as fast.
        """

    def products(self, C: Floats, rows: Indices | None = None, dtype: Precision = np.float64) -> Floats:
        """`product` for several columns of coefficients."""

    # --- the whole matrix, decomposed where it lives; `places/factor.py` does it on this machine -------------------

    def factor(self, d: Floats, dtype: Precision = np.float64, n_threads: int = 1) -> Factor | None:
        """K + diag(d) in factors of this precision; None if rounding leaves it no positive definite matrix."""

    def kept(self, n_threads: int = 1) -> Kept:
        """All values in float64, computed once for many products and factors; that takes 8n² bytes."""

    def eigh(self, scale: Floats, centred: bool, deadline: float = math.inf) -> Eigensystem:
        """SKS = QΛQᵀ with S = diag(scale), or, centred, PSKSP with Pv = v − ss'v/s's, s = scale: without s itself.

        TimeoutError if it would end long after the deadline, which is one of time.monotonic's clock.
        """

    # --- the same matrix, or a part of it, for another use ------------------------------------------------------

    def view(self, rows: Indices) -> Gram:
        """The Gram of a subset of rows, sharing samples and storage."""

    def streamed(self) -> Gram:
        """This matrix for products only: samples are prepared when needed, never all of them at once."""

    def copied(self, rows: Indices, budget: int) -> Gram:
        """The Gram of a subset with its own copy of the samples: what it prepares is as large as the subset."""

    def share(self) -> None:
        """Compute once, as far as memory allows, what overlapping views would each compute again.

        Called before the views are made, such as those of the pairs of a multi-class problem. A view ignores it.
        """

    # --- the state of a solve -----------------------------------------------------------------------------------

    def field(
        self, problem: DualProblem, beta: Floats | None = None, u: Floats | None = None, dtype: Precision = np.float64
    ) -> Field:
        """The state of a solve on this matrix, started at β or at a feasible point; u = Kβ, if it is known.

        A u that differs from Kβ is kept as far from it: p makes up for that where some variables are held.
        """

    def joint_field(self, problem: JointProblem, beta: Floats, u: Floats, dtype: Precision = np.float64) -> JointField:
        """The state of a joint multi-class solve, started at β with u = Kβ."""

    def pairs(self, layout: Layout, n_threads: int) -> PairPlace | None:
        """Where many small problems on pairs of blocks of rows are solved in one call; None where that is no gain."""


class Variables(NamedTuple):
    """What a `DualProblem` says of its variables but for their rows."""

    p: Floats
    lower: Floats
    upper: Floats
    d: Floats
    group: NDArray[np.int32]


class Rounded(Protocol):
    """K with all its values in float32 where it lives, for products and for pair steps on all variables."""

    @property
    def values(self) -> Values:
        """As an array of this machine with contiguous rows."""
        ...

    @property
    def largest(self) -> float:
        """The largest |value|; not finite if one of them is not."""
        ...

    def product(self, coefficients: Floats) -> Floats:
        """K @ coefficients, summed in float64 in any order; columns whose coefficient is zero cost nothing."""
        ...

    def steps(self, box: Variables, beta: Floats, u: Floats, tol: float, most: int, seconds: float) -> tuple[int, str]:
        """Steps from β, whose u = Kβ is given, and why they ended: "converged", "stalled", "max_seconds", or otherwise.

        There is a variable for every row, or two: those of all rows, and then a second one of each. β is changed, and
        to u the product with all that it changed by is added, in one sum; after "nonfinite" and "unbounded" neither is
        of use.
        """
        ...


class Factor(Protocol):
    """A = K + diag(d) = LLᵀ, in float32 or float64, where K lives."""

    @property
    def pivots(self) -> Floats:
        """L's diagonal, the same on every scale but for a factor: 2Σ log(pivots) is the logarithm of det A."""

    def solve(self, R: Floats) -> Floats:
        """A⁻¹R for columns R of any size: |AZ − R| ≤ (4n + 20)u·√a_ii Σ_j √a_jj |z_j| in row i, plus what K is off by.

        u is half an ulp of 1 in the factor's precision.
        """


class Kept(Protocol):
    """K with all its values in float64, each computed once, where it lives. They are as close as `errors` says."""

    @property
    def extremes(self) -> tuple[float, float]:
        """The smallest and the largest value."""

    def column(self, j: int, rows: Indices | None = None) -> Floats:
        """K[rows, j]."""

    def products(self, C: Floats, columns: Indices | None = None) -> Floats:
        """K[:, columns] @ C, summed in float64 in any order."""

    def factor(self, d: Floats, rows: Indices | None = None) -> Factor | None:
        """`Gram.factor` of some rows and columns, with an entry of d for each."""

    def leading(
        self, scale: Floats, k: int | None, centre: Floats | None = None, less: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """The k largest eigenvalues, or all, of S(K̃ − diag(less))S, S = diag(scale), and a column for each; descending.

        K̃ is K, or (I − 1c')K(I − c1') with c = `centre`. They err like an Eigensystem with 1e-12 in place of 40nu. The
        largest entry of each column, the first of those as large, is positive.
        """


class Eigensystem(Protocol):
    """Eigenvalues Λ and orthonormal eigenvectors Q, which stay where they are.

    With u half an ulp of 1 and the matrix S, no entry of SQ − QΛ is larger than 40nu max_i Σ_j |S_ij|, S's largest sum
    of sizes in a row before it was centred, and none of QᵀQ − I larger than 40nu.
    """

    @property
    def values(self) -> Floats:
        """Λ, in increasing order."""

    def coordinates(self, R: Floats) -> Floats:
        """QᵀR."""

    def combined(self, A: Floats) -> Floats:
        """QA."""

    def squared(self, A: Floats) -> Floats:
        """(Q∘Q)A: sums of the squares in each row of Q."""


class State(Protocol):
    """What the states of all solves have: β, u = Kβ, and the variables, or samples, that are active."""

    beta: Floats
    u: Floats  # Kβ of all rows, of which the active ones' are current
    active: Indices  # what can be chosen

    @property
    def gram(self) -> Gram:
        """K."""

    @property
    def shrunk(self) -> bool:
        """Whether some were dropped: then u is current in the rows of the active ones alone."""

    def violators(self, q: int, keep: float) -> Indices:
        """At most q active ones: up to q·keep of the previous set, free ones first, then the worst violators."""

    def block(self, J: Indices) -> Values:
        """K between the rows of J, in the precision of the solve; the next block may overwrite it."""

    def move(self, J: Indices, beta: Floats) -> None:
        """Set β on J and bring u of the active rows up to date; the block of J was asked for last, mostly or, of a
        joint solve, always."""

    def unshrink(self) -> None:
        """Make everything active again, with its u."""


class Field(State, TakesRounds, Protocol):
    """The state of one solve: β of all variables, u = Kβ of the active rows, and the variables that are active.

    The decomposition loop asks it for the worst violators and for K on the working set, and tells it to move and to
    shrink. It does not know which machine is solved.
    """

    problem: DualProblem  # what is solved

    def violation(self) -> tuple[float, Floats, Floats]:
        """Over the active variables: the largest violation, and each group's two ends."""

    def gradient(self, J: Indices) -> Floats:
        """h on the variables J, which must be active."""

    def inside(self, J: Indices) -> Field:
        """The state of the problem on J, active and in ascending order, with all other variables held where they are.

        Its variables are those of J in this order. Nothing that it does moves this field.
        """

    def shrink(self) -> bool:
        """Drop bounded variables that no pair would choose, if there are enough of them; whether any were dropped."""


class JointField(State, Protocol):
    """The state of a joint multi-class solve: β and u = Kβ with a column per class, and the samples that are active."""

    problem: JointProblem
    b: Floats

    def set_problem(self, problem: JointProblem) -> None:
        """Continue with this problem, which differs from the last one only in its biases."""

    def violation(self) -> float:
        """The largest over the active samples."""

    def excess(self, rows: Indices) -> Floats:
        """e on some active samples."""

    def shrink(self, violation: float) -> None:
        """Drop samples in a corner of their box, if no gradient difference as large as the violation moves them."""


class Evaluation(Protocol):
    """What a trained machine needs: x ↦ Σ_j c_j k(x_j, x), with one column of coefficients per output."""

    def add(self, out: Floats, X: Any, n_threads: int) -> None:
        """out += K(X, vectors) @ coefficients; kernel values are as precise as X."""
