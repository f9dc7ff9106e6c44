"""Functions f = Σ_j c_j k(·, x_j) of a reproducing kernel Hilbert space: values, algebra, norms and distances.

    ⟨f, g⟩ = Σ_i Σ_j c_i d_j k(x_i, z_j)        ⟨f, k(·, x)⟩ = f(x)

The decision function of a machine is f + b. The bias b is included in values and sums, but it does not belong to the
space: inner products, norms and distances are those of f without it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from mercer.kernels.kernel import Kernel
from mercer.kernels.names import bound_kernel, kernel_named
from mercer.places.expansion import Expansion
from mercer.samples.arrays import Floats, freeze, gamma, is_sparse, n_samples, row_blocks, rows_between, stack, take
from mercer.samples.matrices import as_matrix, dense

__all__ = ["Function", "canonical"]

# With d features, the error of a kernel value is at most (d + 10) √(k(x, x) k(z, z)) times this number. Squared
# distances may lose four digits before they are recomputed (samples/distances.py), and a polynomial kernel multiplies
# the error by its degree; degrees up to some thousands are allowed for.
_VALUE_ERROR = 1e-12


class Function:
    """Function f(x) = Σ_j c_j k(x_j, x) + b of a reproducing kernel Hilbert space (immutable).

    Functions of the same kernel can be added, subtracted, multiplied by numbers and compared.

    Parameters
    ----------
    vectors : array, CSR matrix or list of strings
        Samples x_j.
    coefficients : array
        Coefficients c_j.
    kernel : Kernel or str
        Kernel k, with all parameters as numbers.
    b : float, default=0.0
        Bias, which is not part of the space.

    See Also
    --------
    canonical : Return the canonical feature map k(·, x) of samples.

    Examples
    --------
    >>> from mercer.kernels import Gaussian
    >>> from mercer.inspection.rkhs import Function
    >>> f = Function([[0.0], [1.0]], [1.0, -2.0], kernel=Gaussian(gamma=0.5))
    >>> f([[0.0], [2.0]]).round(4)
    array([-0.2131, -1.0777])
    >>> round(f.norm**2, 4), (f - 2 * f + f).norm
    (2.5739, 0.0)
    """

    # Makes NumPy scalars defer to __rmul__ in ``np.float64(2) * f``.
    __array_ufunc__ = None

    def __init__(self, vectors: Any, coefficients: Any, *, kernel: Any, b: float = 0.0) -> None:
        self.kernel: Kernel = bound_kernel(kernel, vectors)
        self.vectors = as_matrix(vectors) if self.kernel.accepts == "vectors" else vectors
        c = np.array(coefficients, dtype=np.float64)
        if c.shape != (n_samples(self.vectors),) or not np.isfinite(c).all():
            raise ValueError(
                f"coefficients must be a finite number for each of the {n_samples(self.vectors)} vectors, not an array "
                f"of shape {c.shape}"
            )
        self.coefficients: Floats = freeze(c)
        self.b = float(b)

    # --- values ----------------------------------------------------------------------------------------------------

    def __call__(self, X: Any) -> Floats:
        """Evaluate f at samples; for a precomputed kernel, X holds the kernel values with the vectors."""
        if self.kernel.accepts == "gram":
            return np.asarray(np.asarray(X, dtype=np.float64) @ self.coefficients + self.b)
        samples = as_matrix(X) if self.kernel.accepts == "vectors" else X
        return np.asarray(self._expansion(samples)[:, 0])

    @cached_property
    def _expansion(self) -> Expansion:
        return Expansion(self.kernel, self.vectors, self.coefficients[:, None].copy(), np.array([self.b]))

    def gradient(self, X: Any) -> Floats:
        """Compute ∇f at samples, a row for each; raise `NotDifferentiableError` where the kernel has no derivative."""
        return self.kernel.gradient(X, self.vectors, weights=self.coefficients)

    # --- the space -------------------------------------------------------------------------------------------------

    def inner(self, other: Function) -> float:
        """Return the inner product ⟨f, g⟩ with another function g."""
        return self._inner(other)[0]

    @cached_property
    def squared_norm(self) -> float:
        """Squared norm ‖f‖²; negative only if the kernel is not positive definite, or by rounding."""
        return self._inner(self)[0]

    @property
    def norm(self) -> float:
        """Norm ‖f‖.

        Raises
        ------
        ValueError
            If ‖f‖² is negative by more than rounding: then the kernel is not positive definite.
        """
        square, error = self._inner(self)
        if square < -error:
            raise ValueError(
                f"{self.kernel!r} is not positive definite: ⟨f, f⟩ = {square:.6g} is negative, so that f has no norm"
            )
        return math.sqrt(max(square, 0.0))

    @property
    def norm_bounds(self) -> tuple[float, float]:
        """Lower and upper bound on ‖f‖ that include all rounding errors."""
        square, error = self._inner(self)
        return math.sqrt(max(square - error, 0.0)), math.sqrt(max(square + error, 0.0))

    def distance(self, other: Function) -> float:
        """Return the distance ‖f − g‖ to another function g; 0 if it does not exceed its rounding error.

        Equal vectors are merged first, so that their coefficients cancel exactly.
        """
        difference = self - other
        return difference.norm if difference.norm_bounds[0] > 0 else 0.0

    def cosine(self, other: Function) -> float:
        """Return the cosine ⟨f, g⟩/(‖f‖‖g‖) of the angle between f and another function g."""
        lengths = self.norm * other.norm
        if lengths == 0:
            raise ValueError("the function 0 has no direction")
        return max(-1.0, min(1.0, self.inner(other) / lengths))

    def projected_on(self, others: Sequence[Function]) -> Function:
        """Project f onto span{g_1, g_2, …}; the functions g may be linearly dependent.

        The projection has b = 0: constants are not part of the space.
        """
        if isinstance(others, Function):
            raise TypeError("projected_on takes a list of functions; for one function g write projected_on([g])")
        if not others:
            raise ValueError("a projection needs at least one function to project on")
        G = np.array([[g.inner(h) for h in others] for g in others])
        rhs = np.array([self.inner(g) for g in others])
        weights = np.linalg.lstsq(G, rhs, rcond=len(G) * 2.0**-52)[0]
        projection = others[0] * float(weights[0])
        for weight, g in zip(weights[1:].tolist(), others[1:], strict=True):
            projection = projection + g * weight
        return Function(projection.vectors, projection.coefficients, kernel=projection.kernel)

    @property
    def lipschitz(self) -> float | None:
        """Lipschitz constant ‖f‖ c_k, with |f(x) − f(z)| ≤ ‖f‖ c_k ‖x − z‖; None if the kernel has no constant c_k."""
        constant = self.kernel.lipschitz
        return None if constant is None else self.norm_bounds[1] * constant

    # --- algebra ---------------------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Function:
        if isinstance(other, Real):
            return Function(self.vectors, self.coefficients, kernel=self.kernel, b=self.b + float(other))
        if not isinstance(other, Function):
            return NotImplemented
        self._check_same_kernel(other)
        vectors = stack(self.vectors, other.vectors)
        coefficients = np.concatenate([self.coefficients, other.coefficients])
        return Function(*merge_equal(vectors, coefficients), kernel=self.kernel, b=self.b + other.b)

    __radd__ = __add__

    def __mul__(self, factor: Any) -> Function:
        if not isinstance(factor, Real):
            return NotImplemented
        number = float(factor)
        return Function(self.vectors, number * self.coefficients, kernel=self.kernel, b=number * self.b)

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> Function:
        return self * (1.0 / float(divisor)) if isinstance(divisor, Real) else NotImplemented

    def __neg__(self) -> Function:
        return self * -1.0

    def __sub__(self, other: Any) -> Function:
        if not isinstance(other, Function | Real):
            return NotImplemented
        return self + (-other if isinstance(other, Function) else -float(other))

    def __rsub__(self, other: Any) -> Function:
        return (-self).__add__(other)

    def __len__(self) -> int:
        return len(self.coefficients)

    def __repr__(self) -> str:
        bias = f" + {self.b:.6g}" if self.b else ""
        return f"Function({len(self)} terms of {self.kernel!r}{bias})"

    # --- inside ----------------------------------------------------------------------------------------------------

    def _check_same_kernel(self, other: Function) -> None:
        """Raise if `other` is not a function of the same kernel's space."""
        if not isinstance(other, Function):
            raise TypeError(f"{other!r:.60} is no function of a kernel's space: pass a mercer.rkhs.Function")
        if self.kernel.accepts == "gram":
            raise ValueError("for a precomputed kernel only the matrix is known; its functions can only be evaluated")
        if not same_kernel(self.kernel, other.kernel):
            raise ValueError(
                f"functions of different spaces cannot be combined: their kernels are {self.kernel!r} and "
                f"{other.kernel!r}"
            )

    def _inner(self, other: Function) -> tuple[float, float]:
        """Return ⟨f, g⟩ and a bound on its rounding error."""
        self._check_same_kernel(other)
        n, m = len(self), len(other)
        if n == 0 or m == 0:
            return 0.0, 0.0
        products, magnitudes = [], []
        for block in row_blocks(n, 8 * m):
            rows = rows_between(self.vectors, block)
            K = self.kernel(rows, other.vectors)
            weights = self.coefficients[block]
            products.append(float(weights @ (K @ other.coefficients)))
            magnitudes.append(float(np.abs(weights) @ (np.abs(K) @ np.abs(other.coefficients))))
        features = self.vectors.shape[1] if hasattr(self.vectors, "shape") else 0
        lengths = self._length_sum * other._length_sum
        error = gamma(n + m + 2) * math.fsum(magnitudes)
        if not self.kernel.given:
            error += _VALUE_ERROR * (features + 10) * lengths
        return math.fsum(products), error

    @cached_property
    def _length_sum(self) -> float:
        """Upper bound Σ |c_j| √k(x_j, x_j) on ‖f‖."""
        diagonal = np.abs(self.kernel.diag(self.vectors))
        return float(np.abs(self.coefficients) @ np.sqrt(diagonal))


def canonical(X: Any, *, kernel: Any) -> list[Function]:
    """Return the canonical feature map φ(x) = k(·, x) of each sample, for which ⟨f, φ(x)⟩ = f(x).

    Parameters
    ----------
    X : array, CSR matrix or list of strings
        Samples.
    kernel : Kernel or str
        Kernel k, with all parameters as numbers.

    Returns
    -------
    list of Function
        The function k(·, x) of each sample x.

    Examples
    --------
    >>> from mercer.kernels import Gaussian
    >>> from mercer.inspection.rkhs import canonical
    >>> first, second = canonical([[0.0], [1.0]], kernel=Gaussian(gamma=0.5))
    >>> round(first.inner(second), 4), first.norm  # k(x, z), √k(x, x)
    (0.6065, 1.0)
    """
    bound = bound_kernel(kernel, X)
    samples = as_matrix(X) if bound.accepts == "vectors" else X
    return [Function(take(samples, np.array([i])), [1.0], kernel=bound) for i in range(n_samples(samples))]


def functions_of(model: Any) -> Function | list[Function]:
    """Return the decision function f + b of a fitted machine, or a list of functions if it has several outputs."""
    expansion: Expansion | None = getattr(model, "_expansion_", None)
    if expansion is None:
        table, biases = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
        functions = [
            Function(w[None].copy(), [1.0], kernel=kernel_named("linear"), b=b)
            for w, b in zip(table, biases, strict=True)
        ]
        return functions[0] if len(functions) == 1 else functions
    table, vectors = dense(expansion.coefficients), expansion.vectors
    if expansion.columns is not None:  # a precomputed kernel, with one column per training sample
        table = np.zeros((expansion.n_columns, table.shape[1]))
        table[expansion.columns] = dense(expansion.coefficients)
        vectors = np.empty((expansion.n_columns, 0))
    functions = [
        _function_of_output(expansion, vectors, c, float(b)) for c, b in zip(table.T, expansion.b, strict=True)
    ]
    return functions[0] if len(functions) == 1 else functions


def _function_of_output(expansion: Expansion, vectors: Any, coefficients: Floats, b: float) -> Function:
    """Return the function of one output, without the vectors whose coefficient is 0."""
    support = np.flatnonzero(coefficients)
    if expansion.columns is not None or len(support) == len(coefficients):
        return Function(vectors, coefficients, kernel=expansion.kernel, b=b)
    return Function(take(vectors, support), coefficients[support], kernel=expansion.kernel, b=b)


def merge_equal(vectors: Any, coefficients: Floats) -> tuple[Any, Floats]:
    """Merge equal vectors and sum their coefficients with one rounding; drop vectors whose sum is 0."""
    groups: dict[Any, list[int]] = {}
    for i, key in enumerate(row_keys(vectors)):
        groups.setdefault(key, []).append(i)
    sums = np.array([math.fsum(coefficients[rows].tolist()) for rows in groups.values()])
    nonzero = np.flatnonzero(sums)
    first = np.array([rows[0] for rows in groups.values()], dtype=np.intp)
    return take(vectors, first[nonzero]), sums[nonzero]


def row_keys(vectors: Any) -> list[Any]:
    """Return a hashable key for each vector; equal vectors have equal keys."""
    if is_sparse(vectors):
        rows = [slice(*vectors.indptr[i : i + 2]) for i in range(vectors.shape[0])]
        data = vectors.data + 0.0  # −0.0 is 0.0
        is_nonzero = [data[row] != 0 for row in rows]
        return [
            (vectors.indices[row][u].astype(np.int64).tobytes(), data[row][u].tobytes())
            for row, u in zip(rows, is_nonzero, strict=True)
        ]
    if hasattr(vectors, "shape"):
        return [row.tobytes() for row in np.ascontiguousarray(vectors) + 0.0]
    return list(vectors)


def same_kernel(one: Kernel, other: Kernel) -> bool:
    """Return whether two kernels have the same formula and parameters."""
    if one is other:
        return True
    own_params, other_params = one.get_params(deep=False), other.get_params(deep=False)
    if type(one) is not type(other) or own_params.keys() != other_params.keys():
        return False
    return all(_equal_values(own_params[name], other_params[name]) for name in own_params)


def _equal_values(one: Any, other: Any) -> bool:
    """Return whether two parameters of kernels are equal."""
    if isinstance(one, Kernel) and isinstance(other, Kernel):
        return same_kernel(one, other)
    if isinstance(one, np.ndarray | list) or isinstance(other, np.ndarray | list):
        return bool(np.array_equal(one, other))
    return bool(one == other)
