"""Kernels for tables with numbers and categories: kernels of some columns, categorical kernels, Gower's distance.

Categories are numbers that are only compared for equality, such as those of scikit-learn's OrdinalEncoder.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mercer.kernels import terms
from mercer.kernels.composite import Composite, in_brackets
from mercer.kernels.kernel import Answer, Kernel, Slope
from mercer.kernels.over_features import DistanceKernel
from mercer.kernels.terms import Term, Terms
from mercer.runtime.parameters import not_negative
from mercer.samples.arrays import Floats, Indices, PickedRows, Samples, host, is_sparse, n_samples
from mercer.samples.engine import EngineSamples
from mercer.samples.matrices import as_float64, as_matrix, check_same_width, dense, row_by_row, rows_with_blocks, strips


@dataclass(eq=False, repr=False)
class OnColumns(Composite):
    """Kernel k restricted to some columns of the samples, as ``kernel.on(columns)`` returns it.

    Parameters
    ----------
    kernel : Kernel
        Kernel k of vectors.
    columns : sequence of int
        Columns that k compares, counted from 0.

    Examples
    --------
    >>> from mercer.kernels import Gaussian, Linear
    >>> kernel = Gaussian(gamma=1.0).on([0, 1]) + 2 * Linear().on([2])
    >>> kernel([[0.0, 0.0, 1.0]], [[0.0, 0.0, 3.0], [0.0, 1.0, 0.0]]).round(4)  # 1 + 2·3, exp(−1)
    array([[7.    , 0.3679]])
    """

    kernel: Kernel
    columns: Sequence[int]

    def _check(self) -> None:
        super()._check()
        if self.kernel.accepts != "vectors":
            raise TypeError(f"{self.kernel!r} compares {self.kernel.accepts}, which have no columns")
        self._indices()

    def _indices(self) -> Indices:
        """Return the checked columns as an array."""
        return column_indices("columns", self.columns)

    combines = True

    def combined(self, parts: list[list[Any]]) -> list[Any]:
        return parts[0]

    @property
    def part_columns(self) -> Indices:
        return self._indices()

    def _samples(self, X: Samples) -> Samples:
        self._check()
        X, last = as_matrix(X), int(self._indices().max())
        if X.shape[1] <= last:
            raise ValueError(
                f"{self!r} compares column {last}, but the samples have {X.shape[1]} columns, 0 to {X.shape[1] - 1}"
            )
        return X

    def _select_columns(self, X: Samples) -> Samples:
        """Return the columns in the form that the inner kernel takes."""
        indices = self._indices()
        if isinstance(X, PickedRows):
            return PickedRows(np.ascontiguousarray(X.X[:, indices]), X.rows, X.n_threads)
        X = host(X)[:, indices]
        return self.kernel._samples(X if is_sparse(X) else np.ascontiguousarray(X))

    def bind(self, X: Samples, sample_weight: ArrayLike | None = None) -> Kernel:
        X = X if isinstance(X, PickedRows) else self._samples(X)
        return self._with_parts({"kernel": self.kernel.bind(self._select_columns(X), sample_weight)})

    def _values(self, X: Samples, Z: Samples) -> Floats:
        check_same_width(X, Z)
        part = self._select_columns(X)
        return self.kernel._values(part, part if Z is X else self._select_columns(Z))

    def _diag(self, X: Samples) -> Floats:
        return self.kernel.diag(self._select_columns(self._samples(X)))

    def n_terms(self, X: Samples) -> int:
        return len(self._indices()) if isinstance(X, EngineSamples) else self.kernel.n_terms(self._select_columns(X))

    def majorant(self) -> Kernel:
        return OnColumns(self.kernel.majorant(), self.columns)

    def terms(self, d: int) -> Terms | None:
        indices = self._indices()
        return terms.on_columns(self.kernel.terms(len(indices)), indices, d)

    def _gradient(self, X: Samples, Z: Samples, weights: Floats) -> Floats:
        """Compute Σ_j weights_ij ∂k(x_i, z_j)/∂x_i."""
        out = np.zeros(X.shape)
        out[:, self._indices()] = self.kernel._gradient(self._select_columns(X), self._select_columns(Z), weights)
        return out

    def _slopes(self, X: Samples, Z: Samples) -> Iterator[Slope]:
        return self._slopes_of("kernel", self.kernel._slopes(self._select_columns(X), self._select_columns(Z)))

    def _answer_from_parts(self, statement: str) -> Answer:
        """Return the answer of the kernel inside; "yes" becomes "depends" for statements about distinct samples."""
        answer: Answer = getattr(self.kernel, statement)
        if answer == "yes" and statement in ("strictly_positive_definite", "universal"):
            return "depends"  # samples may differ only in the other columns
        return answer

    @property
    def unit_diagonal(self) -> Answer:
        return self._answer_from_parts("unit_diagonal")

    @property
    def lipschitz(self) -> float | None:
        return self.kernel.lipschitz

    def _text(self) -> str:
        return f"{in_brackets(self.kernel)}.on({self._indices().tolist()})"


def column_indices(name: str, columns: Any) -> Indices:
    """Return column numbers as an array of integers; raise ValueError unless they are different and ≥ 0."""
    indices = np.asarray(columns)
    are_integers = indices.ndim == 1 and (indices.dtype.kind in "iu" or len(indices) == 0)
    if not are_integers or (len(indices) and indices.min() < 0) or len(np.unique(indices)) < len(indices):
        raise ValueError(
            f"{name}={columns!r} must be a list of different columns, counted from 0; for a table with names, "
            "table.columns.get_indexer(names) returns them"
        )
    if name == "columns" and len(indices) == 0:
        raise ValueError(f"{name}={columns!r} is empty, so that there is nothing to compare")
    return indices.astype(np.intp)


# Share p of the samples that have a category, by category, for each column.
Frequencies = Sequence[dict[float, float]]


@dataclass(eq=False, repr=False)
class Categorical(Kernel):
    """Share of the columns in which two samples have the same category; rare categories may count more.

    With frequencies a match counts 1 − p, where p is the share of the samples that have the category (Belanche and
    Villegas 2013); a category that does not occur in the training data counts 1.

    Parameters
    ----------
    frequencies : None, "data" or list of dict
        Frequencies p of the categories. None: all matches count alike. "data": p is computed from the training data. Or
        a dictionary from category to p for each column.

    Examples
    --------
    >>> from mercer.kernels import Categorical
    >>> Categorical()([[0, 2, 1]], [[0, 2, 2], [1, 1, 1]]).round(4)
    array([[0.6667, 0.3333]])
    >>> Categorical("data").bind([[0], [0], [0], [1]])([[0], [1]])  # ¾ of the samples have a 0
    array([[0.25, 0.  ],
           [0.  , 0.75]])
    """

    frequencies: str | Frequencies | None = None

    # The kernel is an inner product of indicators of the categories.
    positive_definite = "yes"
    strictly_positive_definite = universal = differentiable = positive_values = "no"
    _no_gradient = "a category cannot be changed by a small step"

    def _check(self) -> None:
        shares = self.frequencies
        if shares is None or (isinstance(shares, str) and shares == "data"):
            return
        has_tables = isinstance(shares, Sequence) and all(isinstance(table, dict) for table in shares)
        if not has_tables or any(not 0 <= p <= 1 for table in shares for p in table.values()):  # type: ignore[union-attr]
            raise ValueError(
                f"frequencies={shares!r} must be None, 'data', or for each column a dictionary from category to a "
                "share between 0 and 1"
            )

    @property
    def bound(self) -> bool:
        return not isinstance(self.frequencies, str)

    def bind(self, X: Samples, sample_weight: ArrayLike | None = None) -> Kernel:
        self._check()
        if self.bound:
            return self
        X = as_matrix(host(X))
        weight = np.ones(n_samples(X)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        weight = weight / weight.sum()
        frequencies = []
        for f in range(X.shape[1]):
            values, codes = np.unique(as_float64(dense(X[:, f : f + 1])).ravel(), return_inverse=True)
            shares = np.minimum(np.bincount(codes, weights=weight, minlength=len(values)), 1.0)
            frequencies.append(dict(zip(values.tolist(), shares.tolist(), strict=True)))
        return Categorical(frequencies)

    def _match_weights(self, X: Floats) -> Floats:
        """Return for each entry what a match counts: 1, or 1 − p with the frequency p of its category."""
        if self.frequencies is None:
            return np.ones(X.shape)
        if isinstance(self.frequencies, str):
            raise ValueError("frequencies='data' depends on the training data: use kernel.bind(X)")
        if len(self.frequencies) != X.shape[1]:
            raise ValueError(
                f"there are frequencies for {len(self.frequencies)} columns, but the samples have {X.shape[1]} columns"
            )
        pairs = zip(self.frequencies, X.T, strict=True)
        return 1.0 - np.array([[table.get(value, 0.0) for value in column.tolist()] for table, column in pairs]).T

    def _values(self, X: Samples, Z: Samples) -> Floats:
        check_same_width(X, Z)
        out, match_weights = np.zeros((X.shape[0], Z.shape[0])), self._match_weights(as_float64(dense(X)))
        for i, rows, x, z in rows_with_blocks(X, Z):
            out[i, rows] = (x == z) @ match_weights[i]
        out /= max(1, X.shape[1])
        return out

    def _diag(self, X: Samples) -> Floats:
        X = as_matrix(X)
        if self.frequencies is None:
            return np.ones(X.shape[0])
        blocks = [self._match_weights(as_float64(dense(X[rows]))).sum(axis=1) for rows in strips(X)]
        return np.asarray(np.concatenate([*blocks, np.zeros(0)]) / max(1, X.shape[1]))

    @property
    def unit_diagonal(self) -> Answer:
        return "yes" if self.frequencies is None else "no"


@dataclass(eq=False, repr=False)
class Gower(DistanceKernel):
    """Kernel exp(−γ D) of Gower's distance D: the mean over columns of |x_f − z_f|, or of [x_f ≠ z_f] for categories.

    It is a product over the columns. Scale numbers to a range of 1 (`MinMaxScaler`), as Gower's distance requires.

    Parameters
    ----------
    categorical : sequence of int
        Columns that hold categories, counted from 0. The other columns hold numbers.
    gamma : float ≥ 0
        Coefficient γ.

    Examples
    --------
    >>> from mercer.kernels import Gower
    >>> table = [[0.0, 0], [1.0, 1], [0.5, 1]]  # an age, scaled, and a category
    >>> Gower(categorical=[1], gamma=2.0)(table).round(4)  # exp(−2), exp(−1.5), exp(−0.5)
    array([[1.    , 0.1353, 0.2231],
           [0.1353, 1.    , 0.6065],
           [0.2231, 0.6065, 1.    ]])
    """

    categorical: Sequence[int] = ()
    gamma: float = 1.0

    # Each factor is strictly positive definite on its column, and so is their product: on the grid of all values of the
    # columns, which contains all samples, its matrix is a Kronecker product.
    differentiable = "no"
    _no_gradient = "it has a kink where two samples share a number, and a category cannot be changed by a small step"

    def _check(self) -> None:
        column_indices("categorical", self.categorical)
        not_negative("gamma", self.gamma)

    def _distances(self, X: Samples, Z: Samples) -> Floats:
        self._check()
        check_same_width(X, Z)
        categories, d = column_indices("categorical", self.categorical), X.shape[1]
        if len(categories) and categories.max() >= d:
            raise ValueError(f"categorical names column {categories.max()}, but there are {d}, 0 to {d - 1}")

        def mean(x: Floats, z: Floats) -> Floats:
            terms_of_columns = np.abs(x - z)
            terms_of_columns[:, categories] = terms_of_columns[:, categories] > 0
            return np.asarray(terms_of_columns.mean(axis=1))

        return row_by_row(mean, X, Z)

    def terms(self, d: int) -> Terms | None:
        return None if len(self.categorical) else (Term(absolute=float(self.gamma) / d),)

    @property
    def universal(self) -> Answer:
        return "no" if len(self.categorical) else self.strictly_positive_definite
