"""Monomials of a polynomial kernel (γ⟨x, z⟩ + c)^d, whose inner product is exactly the kernel.

√(d!/(a! (d − |a|)!) γ^|a| c^(d−|a|)) x^a  for all exponents |a| ≤ d

The constant c adds one coordinate, √c, to every sample, which makes w coordinates. The monomials are the index tuples
i_1 ≤ … ≤ i_d in lexicographic order; T(v, r) = C(w − v + r − 1, r) tuples of length r have no entry below v. So the
column of a monomial follows from its factors, and sparse samples need no list of all monomials.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from mercer.estimators.fitting.pipeline.state import Unsaved, fitted
from mercer.inspection.features.feature_map import MOST_COLUMNS, FeatureMap
from mercer.kernels.names import KernelLike
from mercer.samples.arrays import Floats, Indices, Samples, is_sparse

# Largest number of stored entries of sparse features, 12 bytes each.
_MOST_STORED = 10**8
_HIGHEST_DEGREE = 1000


@dataclass(eq=False, repr=False)
class Monomials(FeatureMap):
    """Map samples to the monomials of a polynomial kernel, weighted so that their inner product is exactly the kernel.

    Sparse samples have sparse features: only products of stored entries are computed, so the number of columns may be
    very large.

    Parameters
    ----------
    kernel : Kernel or str, default="linear"
        Polynomial kernel, such as Polynomial(degree=2), (Linear() + 1) ** 3 or Linear().
    ordered : bool, default=False
        Whether to return every ordered product x_i x_j … as a column of its own, without weights, instead of each
        monomial once with the weight √(number of orderings).
    weighted : bool, default=True
        Whether the inner product of the features is the kernel. False returns the monomials x^a themselves, such as
        1, x, …, x^d for one feature and the kernel (Linear() + 1) ** d.

    Attributes
    ----------
    kernel_ : Kernel
        Kernel with all parameters as numbers.
    n_features_in_ : int
        Number of features of X.
    feature_names_in_ : array of str
        Names of the features of X, if it has names.

    Examples
    --------
    >>> from mercer.inspection.features import Monomials
    >>> from mercer.kernels import Polynomial
    >>> Monomials(Polynomial(degree=2, gamma=1.0, coef0=0.0)).fit_transform([[1.0, 3.0]]).round(4)
    array([[1.    , 4.2426, 9.    ]])
    >>> from mercer.kernels import Linear
    >>> plain = Monomials((Linear() + 1) ** 3, weighted=False).fit([[2.0]])
    >>> plain.get_feature_names_out().tolist(), plain.transform([[2.0]]).tolist()
    (['x0^3', 'x0^2', 'x0', '1'], [[8.0, 4.0, 2.0, 1.0]])
    """

    _FITTED = fitted(_constants=Unsaved(), _size=Unsaved(), _degree=Unsaved(), _ordered=Unsaved())

    kernel: KernelLike = "linear"
    ordered: bool = False
    weighted: bool = True

    def _check_fitted(self) -> None:
        super()._check_fitted()
        self._check_prepared(sp.csr_array((0, self.n_features_in_)))

    def _prepare(self, X: Samples) -> None:
        """Store the constants and the degree of the kernel; raise if it has no monomials, or too many."""
        recipe = self.kernel_.recipe()
        if (
            recipe is None
            or recipe.inner != "dot"
            or recipe.ending not in ("identity", "polynomial")
            or recipe.normalise
        ):
            raise ValueError(f"{self.kernel_!r} is no polynomial of ⟨x, z⟩ and has no monomials")
        gamma, coef0, degree = recipe.numbers or (1.0, 0.0, 1.0)
        if coef0 < 0:
            raise ValueError(f"coef0={coef0:g} is negative: the kernel is not positive definite and has no features")
        if degree > _HIGHEST_DEGREE:
            raise ValueError(f"degree={degree:g} is above {_HIGHEST_DEGREE}: too many monomials; use the kernel itself")
        scale, constant = recipe.scale, recipe.constant
        if not self.weighted:  # the monomial 1 is a column once
            constant = float(constant > 0 and not coef0)
            scale, gamma, coef0 = 1.0, 1.0, float(coef0 > 0)
        self._constants = (scale, gamma, coef0, constant)
        self._size, self._degree, self._ordered = X.shape[1] + (coef0 > 0), int(degree), bool(self.ordered)
        if not is_sparse(X) and self._n_monomials() > MOST_COLUMNS:
            raise ValueError(
                f"{self._n_monomials()} monomials are too many to list; use the kernel itself, or sparse samples"
            )
        if self._n_monomials() >= 2**62:
            raise ValueError(f"{self._n_monomials()} monomials are too many to number; use the kernel itself")

    def _n_monomials(self) -> int:
        """Return the number of monomials, without the column of an added constant."""
        w, d = self._size, self._degree
        return w**d if self._ordered else math.comb(w + d - 1, d)

    def _width(self) -> int:
        return self._n_monomials() + (self._constants[3] > 0)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the monomials as names, such as "x0^2 x1", without their weights.

        Parameters
        ----------
        input_features : array of str, optional
            Names of the features of X; by default `feature_names_in_`, or x0, x1, ….

        Returns
        -------
        array of str
            Names.
        """
        check_is_fitted(self)
        fitted_names = getattr(self, "feature_names_in_", [f"x{k}" for k in range(self.n_features_in_)])
        names = list(fitted_names if input_features is None else input_features)
        if len(names) != self.n_features_in_ or (hasattr(self, "feature_names_in_") and names != list(fitted_names)):
            raise ValueError(
                f"input_features is not equal to feature_names_in_, or should have length equal to number of features "
                f"({self.n_features_in_}), got {len(names)}"
            )
        if self._n_monomials() > MOST_COLUMNS:
            raise ValueError(f"{self._n_monomials()} monomials are too many to name")
        products = _products(self._size, self._degree, self._ordered).tolist()  # an index beyond X is the constant
        return np.array([_name(row, [*names, ""]) for row in products] + ["1"] * (self._constants[3] > 0), dtype=object)

    def _features(self, X: Samples) -> Samples:
        """Compute the weighted monomials, and the column of an added constant."""
        scale, gamma, coef0, constant = self._constants
        if not is_sparse(X) and self._n_monomials() > MOST_COLUMNS:
            raise ValueError(
                f"{self._n_monomials()} monomials of dense samples are too many; pass sparse samples, as in fit"
            )
        Z = math.sqrt(gamma) * X
        stack: Any = sp.hstack if is_sparse(X) else np.hstack
        if coef0 > 0:
            Z = stack([Z, np.full((Z.shape[0], 1), math.sqrt(coef0))])
        out = math.sqrt(scale) * (self._sparse(sp.csr_array(Z)) if is_sparse(X) else self._dense(Z))
        if constant:
            out = stack([out, np.full((Z.shape[0], 1), math.sqrt(constant))])
        return sp.csr_array(out) if is_sparse(X) else np.asarray(out)

    def _dense(self, Z: Floats) -> Floats:
        """Compute the monomials of dense samples."""
        factors = _products(self._size, self._degree, self._ordered)
        return np.asarray(np.prod(Z[:, factors], axis=2) * self._weights(factors))

    def _sparse(self, Z: Samples) -> Any:
        """Compute the monomials of sparse samples: all rows with the same number of stored entries at a time."""
        Z.sum_duplicates()
        Z.eliminate_zeros()
        n_stored = np.diff(Z.indptr)
        counts = [_n_products(int(z), self._degree, self._ordered) for z in n_stored.tolist()]
        if sum(counts) > _MOST_STORED:
            raise ValueError(
                f"the monomials of these samples are {sum(counts)} numbers, more than {_MOST_STORED}; use the kernel"
            )
        starts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        data, columns = np.empty(starts[-1]), np.empty(starts[-1], dtype=np.int64)
        numbering = self._numbering()
        for z in np.unique(n_stored).tolist():
            rows = np.flatnonzero(n_stored == z)
            factors = _products(z, self._degree, self._ordered)
            entries = Z.indptr[rows][:, None] + np.arange(z)
            target = starts[rows][:, None] + np.arange(len(factors))
            data[target] = np.prod(Z.data[entries][:, factors], axis=2) * self._weights(factors)
            columns[target] = numbering(Z.indices[entries].astype(np.int64)[:, factors])
        return sp.csr_array((data, columns, starts), shape=(Z.shape[0], self._n_monomials()))

    def _weights(self, factors: Indices) -> Floats | float:
        """Return the weight of each monomial, √(number of orderings); 1 for ordered products and unweighted ones."""
        return 1.0 if self._ordered or not self.weighted else np.sqrt([_orderings(row) for row in factors.tolist()])

    def _numbering(self) -> Callable[[Indices], Indices]:
        """Return a function from factors i_1, …, i_d, in the last axis of an array, to the column of their monomial."""
        w, d = self._size, self._degree
        if self._ordered:
            powers = np.array([w ** (d - 1 - k) for k in range(d)], dtype=np.int64)
            return lambda factors: factors @ powers
        # T(v, r) of the formula at the top of this file is n_tuples[r][v].
        n_tuples = [
            np.array([_n_products(w - v, r, False) for v in range(w + 1)], dtype=np.int64) for r in range(d + 1)
        ]

        def number(factors: Indices) -> Indices:
            out = np.zeros(factors.shape[:-1], dtype=np.int64)
            for k in range(d):
                previous = factors[..., k - 1] if k else 0
                out += n_tuples[d - k][previous] - n_tuples[d - k][factors[..., k]]
            return out

        return number


def _name(factors: list[int], names: list[str]) -> str:
    """Return the name of a product, such as "x0^2 x1"; "1" if it has no feature."""
    powers = [(names[i], len(list(repeats))) for i, repeats in itertools.groupby(factors)]
    return " ".join(name if k == 1 else f"{name}^{k}" for name, k in powers if name) or "1"


def _n_products(size: int, degree: int, ordered: bool) -> int:
    """Return the number of products of `degree` factors out of `size`."""
    return size**degree if ordered else math.comb(size + degree - 1, degree) if size else int(degree == 0)


def _products(size: int, degree: int, ordered: bool) -> Indices:
    """Return all products of `degree` factors out of `size`, a row of indices for each."""
    sequences = itertools.product(range(size), repeat=degree)
    products = sequences if ordered else itertools.combinations_with_replacement(range(size), degree)
    return np.array(list(products), dtype=np.intp).reshape(_n_products(size, degree, ordered), degree)


def _orderings(factors: list[int]) -> int:
    """Return the number of orderings of a monomial's factors, which are given in sorted order."""
    counts = [len(list(repeats)) for _, repeats in itertools.groupby(factors)]
    return math.factorial(len(factors)) // math.prod(map(math.factorial, counts))
