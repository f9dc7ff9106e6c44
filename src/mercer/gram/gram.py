"""What solvers and certificates ask of K, wherever its values come from.

Solvers see rows and numbers, kernels see blocks of samples, and a Gram translates between them. `mercer.gram.gram_for`
makes the Gram for this machine; tests/contracts/gram_contract.py tests every implementation against these docstrings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from mercer.arrays import Floats, Indices
from mercer.kernels import Kernel

if TYPE_CHECKING:
    from mercer.gram.field import Field
    from mercer.problems.dual_problem import DualProblem


class Products(Protocol):
    """What a certificate needs: products with K, and what is known about K."""

    @property
    def n(self) -> int:
        """The number of rows."""
        ...

    @property
    def positive_definite(self) -> str:
        """What the kernel states about itself, or "no" once a counterexample was found."""
        ...

    @property
    def precisions(self) -> tuple[Any, ...]:
        """The precisions of kernel values that a solver can choose from, fastest first; float64 is the last."""
        ...

    def product(self, coefficients: Floats, rows: Indices | None = None, dtype: Any = np.float64) -> Floats:
        """K[rows] @ coefficients, summed in float64; columns whose coefficient is zero cost nothing.

        `dtype` float32 allows kernel values of that precision; they are float64 if that is as fast.
        """
        ...

    def products(self, C: Floats, dtype: Any = np.float64, *, by_column: bool = False) -> Floats:
        """K @ C for several columns, from fresh kernel values as precise as `dtype`, summed in float64.

        Kernel values are computed once for all columns, or with `by_column` once for each, in the memory of `product`.
        """
        ...


class Gram(Products, Protocol):
    """The kernel matrix of n samples under a bound kernel: diagonal, blocks, products, views and fields."""

    evaluations: int  # kernel values computed so far, counted by the Gram and its fields

    @property
    def kernel(self) -> Kernel:
        """With its data-dependent parameters resolved."""
        ...

    @property
    def X(self) -> Any:
        """The samples: array, CSR matrix or sequence; for a precomputed kernel the matrix as it was given."""
        ...

    @property
    def diagonal(self) -> Floats:
        """k(x_i, x_i) in float64."""
        ...

    @property
    def budget(self) -> int:
        """Bytes that the Gram and its fields may use beyond the samples."""
        ...

    @property
    def n_threads(self) -> int: ...

    @property
    def bytes_per_row(self) -> float:
        """The memory of one sample; an estimate for strings."""
        ...

    @property
    def stored(self) -> bool:
        """Whether blocks are looked up rather than computed."""
        ...

    @property
    def fused(self) -> bool:
        """Whether mercer's core computes the kernel values, so that `prepared` returns samples."""
        ...

    # --- is K positive semi-definite? ---------------------------------------------------------------------------

    def looks_positive_definite(self) -> bool:
        """Whether a principal minor of rows spread over the samples has no negative eigenvalue.

        A kernel that is known to be positive definite is not examined. Any other can only be refuted, never proven.
        """
        ...

    def refute(self) -> None:
        """Remember that a solver found a counterexample: K, its views and its copies are not positive definite."""
        ...

    # --- values -------------------------------------------------------------------------------------------------

    def block(self, I: Indices, J: Indices) -> Floats:
        """K[I, J] in float64, a fresh array."""
        ...

    def full(self, dtype: Any = np.float64) -> Any:
        """K as a fresh array with contiguous rows, which the caller may overwrite.

        Numbers too large for `dtype` are infinite.
        """
        ...

    def prepared(self, rows: Indices, dtype: Any, whole: bool = False) -> tuple[Any, Indices]:
        """The core's samples (of these rows, or of the `whole` data) and the rows' places in them, or (None, rows)."""
        ...

    @property
    def levels(self) -> tuple[Any, ...]:
        """What `product_bound` can be asked for, fastest first: precisions, and "exact" if there are such values."""
        ...

    def product_bound(
        self, coefficients: Floats, rows: Indices | None = None, level: Any = np.float64
    ) -> tuple[Floats, Floats]:
        """K[rows] @ coefficients as `product` computes it, and for each row a bound on its distance from the true one.

        Exact values are float64 values that do not cancel. The bound counts every rounding of kernel values and sums;
        values that a user's function or matrix gave are taken as they are.
        """
        ...

    def errors(
        self, coefficients: Floats, rows: Indices | None = None, level: Any = np.float64, *, in_any_order: int = 0
    ) -> Floats:
        """The bounds of `product_bound` alone, for kernel values of a level, summed in float64.

        `in_any_order=k`: valid for any order of summation with at most k additions in sequence.
        """
        ...

    def unit_errors(self, columns: int) -> Floats:
        """For a fused kernel, each row's error of a float64 product with any β of ‖β‖₁ = 1 on this many columns."""
        ...

    # --- the same matrix, or a part of it, for another use ------------------------------------------------------

    def view(self, rows: Indices) -> Gram:
        """The Gram of a subset of rows, sharing samples and storage."""
        ...

    def streamed(self) -> Gram:
        """This matrix for products only: samples are prepared when needed, never all of them at once."""
        ...

    def copied(self, rows: Indices, budget: int) -> Gram:
        """The Gram of a subset with its own copy of the samples: what it prepares is as large as the subset."""
        ...

    def share(self) -> None:
        """Compute once, as far as memory allows, what overlapping views would each compute again.

        Called before the views are made, such as those of the pairs of a multi-class problem. A view ignores it.
        """
        ...

    # --- the state of a solve -----------------------------------------------------------------------------------

    def field(
        self, problem: DualProblem, beta: Floats | None = None, u: Floats | None = None, dtype: Any = np.float64
    ) -> Field:
        """The state of a solve on this matrix, started at β or at a feasible point; u = Kβ, if it is known."""
        ...


class Evaluation(Protocol):
    """What a trained machine needs: x ↦ Σ_j c_j k(x_j, x), with one column of coefficients per output."""

    def add(self, out: Floats, X: Any, n_threads: int) -> None:
        """out += K(X, vectors) @ coefficients; kernel values are as precise as X."""
        ...
