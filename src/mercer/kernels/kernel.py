"""The base class of kernels: a formula k(x, z), its known properties, and the operators that combine kernels.

A kernel holds no data and is independent of devices. It defines `_values` (a block of K) and `_diag`; all other methods
have defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from mercer.kernels.geometry import FeatureGeometry
from mercer.kernels.named_parameters import NamedParameters
from mercer.runtime.errors import NotDifferentiableError
from mercer.samples.arrays import Floats, Samples, host, is_sparse, mirror, n_samples
from mercer.samples.engine import EngineSamples, in_same_place, to_engine
from mercer.samples.matrices import as_matrix

if TYPE_CHECKING:
    from mercer.kernels.recipe import Recipe
    from mercer.kernels.terms import Terms

# Answer to a question about a kernel: "depends" on samples or unset parameters, "unknown" if nothing is proven.
Answer = Literal["yes", "no", "depends", "unknown"]
# Name of a parameter, index of an entry of it (empty for a number), and derivative of a block or diagonal of K by it.
Slope = tuple[str, tuple[int, ...], Floats]
Domain = Literal["vectors", "sequences", "gram"]
SampleFunction = Callable[[Samples], Any]  # a user's function of n samples
BlockFunction = Callable[[Samples, Samples], Any]  # a user's function of two blocks of samples
FUNCTION_DOMAINS = ("vectors", "sequences")  # kinds of samples that a user's function may take

# Facts about the formula of a class: a subclass with another formula must not inherit them.
_FORMULA_FACTS = [
    "_diag", "recipe", "terms", "majorant", "positive_definite", "strictly_positive_definite", "universal",
    "unit_diagonal", "positive_values", "differentiable", "lipschitz", "_gradient", "_slopes", "_diagonal_gradient",
    "_diagonal_slopes",
]  # fmt: skip

DIAGONAL_ROWS = 32  # rows of the square blocks whose diagonals are used: few, since the rest of a block is wasted


class Kernel(FeatureGeometry, NamedParameters):
    """Base class of kernels: functions k(x, z) of two samples, evaluated block by block in float64.

    Parameters are visible to scikit-learn (`clone`, `get_params`, ``kernel__gamma`` in a grid). Kernels are combined by
    ``2 * k``, ``k1 + k2``, ``k1 * k2``, ``k ** 3``, ``k + 1``, and by `exp`, `normalised`, `scaled_by`, `of` and `on`.

    Examples
    --------
    >>> from mercer.kernels import Gaussian, Linear
    >>> kernel = Gaussian(gamma=0.5) + 0.1 * Linear()
    >>> kernel([[0.0, 1.0]], [[0.0, 1.0], [1.0, 1.0]]).round(4)
    array([[1.1   , 0.7065]])
    >>> kernel.positive_definite, kernel.universal
    ('yes', 'yes')
    >>> kernel.set_params(left__gamma=2.0)
    Gaussian(gamma=2.0) + 0.1 * Linear()
    """

    # True for results of `learn_kernel` and their clones: the parameters depend on the samples, so that bounds for a
    # fixed kernel do not apply.
    learnt: bool = False

    # NumPy scalars leave ``np.float64(2) * kernel`` to the kernel.
    __array_ufunc__ = None

    def __init_subclass__(cls, **options: Any) -> None:
        """Drop inherited facts about the parent's formula, such as its recipe, if the class has another formula."""
        super().__init_subclass__(**options)
        if "diag" in vars(cls):
            raise TypeError(
                f"{cls.__name__} overrides diag, which also handles samples of an engine; override _diag(X), which "
                "returns k(x, x) for samples in host memory, instead"
            )
        if getattr(super(cls, cls), "_values", None) in (None, Kernel._values):
            return
        if "_values" in vars(cls):
            for name in _FORMULA_FACTS:
                if name not in vars(cls):
                    setattr(cls, name, vars(Kernel)[name])
        elif "__call__" in vars(cls):
            raise TypeError(
                f"{cls.__name__} overrides __call__ of another kernel, which fits and sums of kernels do not call; "
                "override _values(X, Z) and _diag(X) instead"
            )

    def __sklearn_clone__(self) -> Self:
        clone: Self = BaseEstimator.__sklearn_clone__(self)
        if self.learnt:
            clone.learnt = True
        return clone

    # --- values -----------------------------------------------------------------------------------------------

    def __call__(self, X: Samples, Z: Samples = None) -> Floats:
        """Compute the matrix k(x_i, z_j).

        Parameters
        ----------
        X, Z : array, CSR matrix or sequence of samples
            Samples to compare. Without Z the samples X are compared with themselves: the result is exactly symmetric,
            and its diagonal is `diag(X)`.

        Returns
        -------
        array of shape (len(X), len(Z))
            Kernel values, as a new C-ordered float64 array.
        """
        symmetric = Z is None
        X = self._samples(X)
        Z = X if Z is None else self._samples(Z)
        if n_samples(X) == 0 or n_samples(Z) == 0:
            return np.empty((n_samples(X), n_samples(Z)))
        if isinstance(X, EngineSamples):
            return X.values(self, None if symmetric else in_same_place(X, Z)[1])
        if isinstance(Z, EngineSamples):
            return Z.engine.samples(X).values(self, Z)
        return self._symmetric(X) if symmetric else self._values(X, Z)

    def _symmetric(self, X: Samples) -> Floats:
        """Compute the symmetric matrix k(x_i, x_j)."""
        K = self._values(X, X)
        mirror(K)
        np.fill_diagonal(K, self.diag(X))
        return K

    def diag(self, X: Samples) -> Floats:
        """Compute k(x_i, x_i) for every sample of X, without the matrix."""
        X = to_engine(X)
        return X.diagonal(self) if isinstance(X, EngineSamples) else self._diag(X)

    def _diag(self, X: Samples) -> Floats:
        """Compute k(x_i, x_i) for samples in host memory; a kernel with a unit diagonal need not define it."""
        if self.unit_diagonal != "yes":
            raise NotImplementedError(f"{type(self).__name__} must define _diag(X), the values k(x, x), beside _values")
        return np.ones(n_samples(X))

    def _values(self, X: Samples, Z: Samples) -> Floats:
        """Compute a block of K as a new C-ordered float64 array; X may be Z."""
        raise NotImplementedError

    def _samples(self, X: Samples) -> Samples:
        """Convert samples to the form that `_values` takes."""
        return as_matrix(X) if self.accepts == "vectors" else to_engine(X)

    def sequence(self, sample: Any, name: str) -> str:
        """Return a sample if it is a string, otherwise raise an error that names it."""
        if isinstance(sample, str):
            return sample
        raise TypeError(f"this kernel compares strings, but {name} is {type(sample).__name__}: {sample!r:.60}")

    def __post_init__(self) -> None:
        """Check the parameters that a dataclass has stored."""
        self._check()

    def _check(self) -> None:
        """Raise an error if a parameter is invalid."""

    def bind(self, X: Samples, sample_weight: ArrayLike | None = None) -> Kernel:
        """Return this kernel with parameters that depend on data ("scale", "auto", "median") computed from X."""
        self._check()
        return self

    @property
    def bound(self) -> bool:
        """True if no parameter depends on data."""
        return True

    def recipe(self) -> Recipe | None:
        """Return the formula as a plain value for the compiled core; None if the core has no such formula."""
        return None

    def terms(self, d: int) -> Terms | None:
        """Return the formula as a sum of products over d features; None if it has no such form."""
        return None

    # --- derivatives ------------------------------------------------------------------------------------------

    def gradient(self, X: Samples, Z: Samples = None, weights: ArrayLike | None = None) -> Floats:
        """Compute the derivatives ∂k(x_i, z_j)/∂x_i with respect to the first sample.

        Parameters
        ----------
        X, Z : array or CSR matrix
            Samples. Without Z the samples X are compared with themselves; the derivative is still with respect to the
            first argument only.
        weights : array of shape (len(Z),) or (len(X), len(Z)), optional
            If given, the sums Σ_j weights_ij ∂k(x_i, z_j)/∂x_i are returned, which need no memory for the single
            derivatives. With the coefficients of a machine this is the gradient of its function.

        Returns
        -------
        array of shape (len(X), len(Z), n_features), or (len(X), n_features) with weights
            Derivatives, as a dense float64 array.

        Raises
        ------
        NotDifferentiableError
            If the kernel has no derivative at a pair of samples (the message names it), or none that is known.

        Examples
        --------
        >>> from mercer.kernels import Gaussian
        >>> Gaussian(gamma=0.5).gradient([[1.0, 2.0]], [[0.0, 1.0]]).round(4)  # −2γ(x − z)k
        array([[[-0.3679, -0.3679]]])
        """
        X, Z = self._pair(X, Z)
        n, m = n_samples(X), n_samples(Z)
        with np.errstate(over="ignore", invalid="ignore"):
            if weights is not None:
                out = self._gradient(X, Z, _as_weights(weights, n, m)) if n and m else np.zeros(X.shape)
            elif n and m:
                out = self._gradients(X, Z)
            else:
                out = np.zeros((n, m, X.shape[1] if hasattr(X, "shape") else 0))
        return self._expect_finite(out)

    def parameter_gradient(self, X: Samples, Z: Samples = None, weights: ArrayLike | None = None) -> dict[str, Any]:
        """Compute the derivatives of k(x_i, z_j) with respect to the real-valued parameters of the kernel.

        Integers, functions and the order ν of a Matérn or Bessel kernel are left out: for the first two there is no
        derivative, and for the last none in closed form.

        Parameters
        ----------
        X, Z : array, CSR matrix or sequence of samples
            Samples, as in a call of the kernel.
        weights : array of shape (len(Z),) or (len(X), len(Z)), optional
            If given, the sums Σ_ij weights_ij ∂k(x_i, z_j)/∂θ are returned instead of the matrices.

        Returns
        -------
        dict
            Derivatives by the names of the parameters in `get_params`: arrays of shape (len(X), len(Z)), or numbers
            with weights. For the matrix M of a Gaussian, whose entries count as independent, there are two more axes.

        Examples
        --------
        >>> from mercer.kernels import Gaussian, Linear
        >>> (Gaussian(gamma=0.5) + 2 * Linear()).parameter_gradient([[1.0]], [[2.0]])
        {'left__gamma': array([[-0.60653066]]), 'right__factor': array([[2.]])}
        """
        X, Z = self._pair(X, Z)
        n, m = n_samples(X), n_samples(Z)
        if n == 0 or m == 0:
            raise ValueError(f"derivatives of k(x, z) need samples, but there are {n} and {m}")
        pair_weights = None if weights is None else _as_weights(weights, n, m)
        slopes: dict[str, dict[tuple[int, ...], Any]] = {}
        with np.errstate(over="ignore", invalid="ignore"):
            for name, entry, slope in self._slopes(X, Z):
                slope = self._expect_finite(slope)
                total = slope if pair_weights is None else float(np.sum(pair_weights * slope))
                slopes.setdefault(name, {})[entry] = total
        return {name: _assemble(entries) for name, entries in slopes.items()}

    def _pair(self, X: Samples, Z: Samples) -> tuple[Samples, Samples]:
        """Return two blocks of samples in host memory, where derivatives are computed."""
        X = self._samples(host(X))
        return X, X if Z is None else self._samples(host(Z))

    def _expect_finite(self, out: Floats) -> Floats:
        """Return these derivatives; raise ValueError if one is not finite."""
        if not np.isfinite(out).all():
            raise ValueError(
                f"a derivative of {self!r} is not a finite number: its values overflow float64 for these samples, or "
                "the samples are not finite; scale the features"
            )
        return out

    def _gradients(self, X: Samples, Z: Samples) -> Floats:
        """Compute ∂k(x_i, z_j)/∂x_i for all pairs."""
        ones = np.ones((n_samples(X), 1))
        try:
            return np.stack([self._gradient(X, Z[j : j + 1], ones) for j in range(n_samples(Z))], axis=1)
        except NotDifferentiableError:
            self._gradient(X, Z, np.ones((n_samples(X), n_samples(Z))))  # raises with the correct row of Z
            raise

    # Reason why there is no `_gradient`; follows "because" in the error message.
    _no_gradient = "its class defines none (a method _gradient)"

    def _gradient(self, X: Samples, Z: Samples, weights: Floats) -> Floats:
        """Compute Σ_j weights_ij ∂k(x_i, z_j)/∂x_i."""
        raise NotDifferentiableError(f"{self!r} has no known derivative by its samples, because {self._no_gradient}")

    def _slopes(self, X: Samples, Z: Samples) -> Iterator[Slope]:
        """Yield the derivative of a block of K by each real-valued parameter."""
        numbers = [name for name, value in self.get_params(deep=False).items() if isinstance(value, float)]
        if numbers:
            raise NotDifferentiableError(
                f"{self!r} has no known derivative by {', '.join(numbers)}, because its class defines none (a method "
                "_slopes)"
            )
        return iter(())

    def _diagonal_gradient(self, X: Samples, weights: Floats) -> Floats:
        """Compute weights_i · d k(x_i, x_i)/d x_i, the total derivative by both arguments."""
        out = np.zeros(X.shape)
        if self.unit_diagonal != "yes":
            for rows in _diagonal_blocks(X):
                out[rows] = 2 * self._gradient(X[rows], X[rows], np.diag(weights[rows]))  # k is symmetric
        return out

    def _diagonal_slopes(self, X: Samples) -> dict[tuple[str, tuple[int, ...]], Floats]:
        """Compute the derivatives of k(x_i, x_i) by the parameters."""
        out: dict[tuple[str, tuple[int, ...]], Floats] = {}
        for rows in _diagonal_blocks(X):
            for name, entry, slope in self._slopes(X[rows], X[rows]):
                out.setdefault((name, entry), np.empty(n_samples(X)))[rows] = slope.diagonal()
        return out

    # --- properties of the kernel -----------------------------------------------------------------------------

    @property
    def accepts(self) -> Domain:
        """Kind of samples: rows of an array or CSR matrix ("vectors"), strings ("sequences"), or rows of K ("gram")."""
        return "vectors"

    @property
    def given(self) -> bool:
        """True if a user's function returns the values: certificates do not count rounding errors inside of it."""
        return False

    @property
    def compares(self) -> Domain:
        """Kind of objects that values are computed from: the samples, or the features that a map returns for them."""
        return self.accepts

    def n_terms(self, X: Samples) -> int:
        """Return the largest number of non-zero terms in a sum over two samples; 0 if all terms are whole numbers."""
        if self.accepts != "vectors":
            return 0
        counts_entries = is_sparse(X) and not isinstance(X, EngineSamples)  # an engine's zeros are not known
        return min(X.shape[1], 2 * int(np.diff(X.indptr).max(initial=0))) if counts_entries else int(X.shape[1])

    def majorant(self) -> Kernel:
        """Return a kernel M such that √(M(x, x) M(z, z)) bounds |k(x, z)| and all intermediate results of its value.

        This is the kernel itself if it is positive definite, or if a user's function computes it.
        """
        return self

    @property
    def n_factors(self) -> int:
        """Number of simple kernel values that are multiplied for one value: their relative errors add up."""
        return 1

    @property
    def mergeable(self) -> bool:
        """True if equal samples certainly have equal kernel values, so that they may be merged."""
        return True

    @property
    def positive_definite(self) -> Answer:
        """Answer "yes" if Σ_ij c_i c_j k(x_i, x_j) ≥ 0 for all samples and all c."""
        return "unknown"

    @property
    def strictly_positive_definite(self) -> Answer:
        """Answer "yes" if Σ_ij c_i c_j k(x_i, x_j) > 0 for all distinct samples and c ≠ 0."""
        return "unknown"

    @property
    def universal(self) -> Answer:
        """Answer "yes" if k is continuous, and functions Σ c_i k(x_i, ·) are dense in C(S) for every compact set S."""
        return "unknown"

    @property
    def unit_diagonal(self) -> Answer:
        """Answer "yes" if k is normalised: k(x, x) = 1 for every x."""
        return "unknown"

    @property
    def positive_values(self) -> Answer:
        """Answer "yes" if k(x, z) > 0 for all x and z: all φ(x) lie within one orthant, and no angle reaches 90°."""
        return "unknown"

    @property
    def differentiable(self) -> Answer:
        """Answer "yes" if k is differentiable on its whole domain."""
        return "unknown"

    @property
    def lipschitz(self) -> float | None:
        """Constant L with ‖φ(x) − φ(z)‖ ≤ L‖x − z‖ for all x and z; None if there is none, or it is not known."""
        return None

    # --- combinations -----------------------------------------------------------------------------------------

    def __add__(self, other: Kernel | float) -> Kernel:
        from mercer.kernels.algebra import Shifted, Sum

        if isinstance(other, Kernel):
            return Sum(self, other)
        if isinstance(other, Real):
            return self if other == 0 else Shifted(self, _number(other))
        return NotImplemented

    __radd__ = __add__

    def __mul__(self, other: Kernel | float) -> Kernel:
        from mercer.kernels.algebra import Product, Scaled

        if isinstance(other, Kernel):
            return Product(self, other)
        if isinstance(other, Real):
            return Scaled(self, _number(other))
        return NotImplemented

    __rmul__ = __mul__

    def __pow__(self, exponent: int) -> Kernel:
        from mercer.kernels.algebra import Power

        return Power(self, exponent)

    def __sub__(self, other: object) -> NoReturn:
        raise TypeError(
            "a difference of kernels is not a kernel in general: it may have negative eigenvalues. Add kernels "
            "instead, or give the matrix itself with kernel='precomputed'"
        )

    __rsub__ = __sub__

    def __neg__(self) -> NoReturn:
        raise TypeError("-k is not a kernel: where k has positive eigenvalues, -k has negative ones")

    def exp(self) -> Kernel:
        """Return the kernel exp(k(x, z))."""
        from mercer.kernels.algebra import Exponential

        return Exponential(self)

    def normalised(self) -> Kernel:
        """Return the kernel k(x, z) / √(k(x, x) k(z, z)), the cosine of the angle between φ(x) and φ(z)."""
        from mercer.kernels.composite import Normalised

        return Normalised(self)

    def scaled_by(self, function: SampleFunction) -> Kernel:
        """Return the kernel f(x) k(x, z) f(z), where f = ``function`` maps n samples to n numbers."""
        from mercer.kernels.composite import Weighted

        return Weighted(self, function)

    def of(self, feature_map: SampleFunction, accepts: Domain = "vectors") -> Kernel:
        """Return the kernel k(φ(x), φ(z)), where φ = ``feature_map`` maps n samples to n samples for this kernel.

        ``accepts`` is the kind of samples that φ takes, "vectors" or "sequences".
        """
        from mercer.kernels.composite import PulledBack

        return PulledBack(self, feature_map, accepts)

    def on(self, columns: Sequence[int]) -> Kernel:
        """Return this kernel restricted to the given columns of the samples, counted from 0."""
        from mercer.kernels.columns import OnColumns

        return OnColumns(self, columns)


def _diagonal_blocks(X: Samples) -> list[slice]:
    """Split the samples into blocks, of which k(x, x) is the diagonal."""
    return [slice(start, start + DIAGONAL_ROWS) for start in range(0, n_samples(X), DIAGONAL_ROWS)]


def _number(value: Any) -> float:
    """Return a plain Python number, so that 2 is written as 2 in the kernel's repr."""
    python_number: float = value.item() if isinstance(value, np.generic) else value
    return python_number


def _as_weights(weights: ArrayLike, n: int, m: int) -> Floats:
    """Return finite weights, one per pair of samples."""
    checked = np.asarray(weights, dtype=np.float64)
    if checked.shape not in ((m,), (n, m)) or not np.isfinite(checked).all():
        raise ValueError(
            f"weights must be finite numbers of shape ({m},), one per sample of Z, or ({n}, {m}), one per pair, not of "
            f"shape {checked.shape}"
        )
    return np.broadcast_to(checked, (n, m))


def _assemble(entries: dict[tuple[int, ...], Any]) -> Any:
    """Return the derivative by a number, or stack those by the entries of an array, whose axes become the last ones."""
    if set(entries) == {()}:
        return entries[()]
    shape = tuple(np.max(list(entries), axis=0) + 1)
    values = np.stack([entries[entry] for entry in np.ndindex(shape)], axis=-1)
    return values.reshape(*values.shape[:-1], *shape)
