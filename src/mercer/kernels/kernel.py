"""Kernel: a formula k(x, z), what is known about it, and the operators that combine kernels into new ones.

A kernel knows no data and no device. It defines `_values` (a block of K) and `_diag`; the rest has defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from mercer.kernels.geometry import FeatureSpace
from mercer.kernels.named_parameters import NamedParameters
from mercer.runtime.errors import NotDifferentiableError
from mercer.samples.arrays import Floats, Samples, host, is_sparse, mirror, n_samples
from mercer.samples.engine import PlacedSamples, placed, together
from mercer.samples.matrices import as_matrix

if TYPE_CHECKING:
    from mercer.kernels.recipe import Recipe
    from mercer.kernels.terms import Terms

Answer = Literal["yes", "no", "depends", "unknown"]
# A parameter's name, the place within it (empty for a number), and the derivative of a block or diagonal of K by it.
Slope = tuple[str, tuple[int, ...], Floats]
Domain = Literal["vectors", "sequences", "gram"]
OfSamples = Callable[[Samples], Any]  # a user's function of n samples
OfTwoBlocks = Callable[[Samples, Samples], Any]  # a user's function of two blocks of samples
DOMAINS_OF_FUNCTIONS = ("vectors", "sequences")  # samples of a user's function

# What a class knows of its formula: another formula in a subclass inherits none of it.
_KNOWN_OF_THE_FORMULA = [
    "_diag", "recipe", "terms", "majorant", "positive_definite", "strictly_positive_definite", "universal",
    "unit_diagonal", "positive_values", "differentiable", "lipschitz", "_gradient", "_slopes", "_diagonal_gradient",
    "_diagonal_slopes",
]  # fmt: skip

DIAGONAL_ROWS = 32  # of the square blocks that a diagonal is taken from: few, since the rest of a block is wasted


class Kernel(FeatureSpace, NamedParameters):
    """A function k(x, z) on pairs of samples, evaluated block by block in float64.

    Parameters are visible to scikit-learn (`clone`, `get_params`, ``kernel__gamma`` in a grid). Kernels combine:
    ``2 * k``, ``k1 + k2``, ``k1 * k2``, ``k ** 3``, ``k + 1``, and `exp`, `normalised`, `scaled_by`, `of`, `on`.

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

    # True of what `learn_kernel` returns, and its clones: samples chose the parameters, which no bound takes for fixed.
    learnt: bool = False

    # NumPy scalars leave ``np.float64(2) * kernel`` to the kernel.
    __array_ufunc__ = None

    def __init_subclass__(cls, **options: Any) -> None:
        """Reset what is known of the parent's formula, such as the core's recipe, in a class with other values."""
        super().__init_subclass__(**options)
        if "diag" in vars(cls):
            raise TypeError(
                f"{cls.__name__} overrides diag, which also takes samples of an engine; override _diag(X), the values "
                "k(x, x) of samples on this host, instead"
            )
        if getattr(super(cls, cls), "_values", None) in (None, Kernel._values):
            return
        if "_values" in vars(cls):
            for name in _KNOWN_OF_THE_FORMULA:
                if name not in vars(cls):
                    setattr(cls, name, vars(Kernel)[name])
        elif "__call__" in vars(cls):
            raise TypeError(
                f"{cls.__name__} overrides __call__ of another kernel, which fits and sums of kernels do not ask; "
                "override _values(X, Z) and _diag(X) instead"
            )

    def __sklearn_clone__(self) -> Self:
        made: Self = BaseEstimator.__sklearn_clone__(self)
        if self.learnt:
            made.learnt = True
        return made

    # --- values -----------------------------------------------------------------------------------------------

    def __call__(self, X: Samples, Z: Samples = None) -> Floats:
        """The matrix k(x_i, z_j).

        Parameters
        ----------
        X, Z : array, CSR matrix or sequence of samples
            Without Z the samples are compared with themselves: the result is exactly symmetric, and its
            diagonal is `diag(X)`.

        Returns
        -------
        float64 array of shape (len(X), len(Z)), C-ordered and fresh.
        """
        symmetric = Z is None
        X = self._samples(X)
        Z = X if Z is None else self._samples(Z)
        if n_samples(X) == 0 or n_samples(Z) == 0:
            return np.empty((n_samples(X), n_samples(Z)))
        if isinstance(X, PlacedSamples):
            return X.values(self, None if symmetric else together(X, Z)[1])
        if isinstance(Z, PlacedSamples):
            return Z.engine.samples(X).values(self, Z)
        return self._symmetric(X) if symmetric else self._values(X, Z)

    def _symmetric(self, X: Samples) -> Floats:
        """K of samples with themselves."""
        K = self._values(X, X)
        mirror(K)
        np.fill_diagonal(K, self.diag(X))
        return K

    def diag(self, X: Samples) -> Floats:
        """k(x_i, x_i) for every sample, without the matrix."""
        X = placed(X)
        return X.diagonal(self) if isinstance(X, PlacedSamples) else self._diag(X)

    def _diag(self, X: Samples) -> Floats:
        """k(x_i, x_i) for every sample on this host; a kernel with a unit diagonal need not define it."""
        if self.unit_diagonal != "yes":
            raise NotImplementedError(f"{type(self).__name__} must define _diag(X), the values k(x, x), beside _values")
        return np.ones(n_samples(X))

    def _values(self, X: Samples, Z: Samples) -> Floats:
        """A block of K as a fresh C-ordered float64 array; X may be Z."""
        raise NotImplementedError

    def _samples(self, X: Samples) -> Samples:
        """Samples in the form that `_values` takes."""
        return as_matrix(X) if self.accepts == "vectors" else placed(X)

    def sequence(self, sample: Any, name: str) -> str:
        """Return a sample if it is a string, and raise an error that names it otherwise."""
        if isinstance(sample, str):
            return sample
        raise TypeError(f"this kernel compares strings, but {name} is {type(sample).__name__}: {sample!r:.60}")

    def __post_init__(self) -> None:
        """Check the parameters that a dataclass has stored."""
        self._check()

    def _check(self) -> None:
        """Refuse parameters that cannot be."""

    def bind(self, X: Samples, sample_weight: ArrayLike | None = None) -> Kernel:
        """This kernel with parameters that depend on data ("scale", "auto", "median") replaced by numbers."""
        self._check()
        return self

    @property
    def bound(self) -> bool:
        """Whether no parameter depends on data any more."""
        return True

    def recipe(self) -> Recipe | None:
        """The formula as a plain value for the fused core; None if the core does not know it."""
        return None

    def terms(self, d: int) -> Terms | None:
        """The formula as a sum of products over the d features; None if it is none."""
        return None

    # --- derivatives ------------------------------------------------------------------------------------------

    def gradient(self, X: Samples, Z: Samples = None, weights: ArrayLike | None = None) -> Floats:
        """The derivatives ∂k(x_i, z_j)/∂x_i by the first sample.

        Parameters
        ----------
        X, Z : array or CSR matrix
            Without Z the samples are compared with themselves. The derivative is by the first argument there too.
        weights : array of shape (len(Z),) or (len(X), len(Z)), optional
            Give Σ_j weights_ij ∂k(x_i, z_j)/∂x_i instead, which needs no memory for the single derivatives. With a
            machine's coefficients it is the gradient of its function.

        Returns
        -------
        float64 array of shape (len(X), len(Z), features), or (len(X), features) with weights; dense, as a gradient is.

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
        return self._finite(out)

    def parameter_gradient(self, X: Samples, Z: Samples = None, weights: ArrayLike | None = None) -> dict[str, Any]:
        """The derivatives of k(x_i, z_j) by the kernel's parameters that are real numbers.

        Integers, functions and the order ν of a Matérn or Bessel kernel are left out: k has no derivative by the first
        two, and none in closed form by the last.

        Parameters
        ----------
        X, Z : as in a call
        weights : array of shape (len(Z),) or (len(X), len(Z)), optional
            Give Σ_ij weights_ij ∂k(x_i, z_j)/∂θ instead of the matrices.

        Returns
        -------
        dict from a parameter's name in `get_params` to an array of shape (len(X), len(Z)), or to a number with weights;
        for the matrix M of a Gaussian with two more axes. Its entries count as independent.

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
        given = None if weights is None else _as_weights(weights, n, m)
        found: dict[str, dict[tuple[int, ...], Any]] = {}
        with np.errstate(over="ignore", invalid="ignore"):
            for name, place, slope in self._slopes(X, Z):
                slope = self._finite(slope)
                found.setdefault(name, {})[place] = slope if given is None else float(np.sum(given * slope))
        return {name: _assembled(places) for name, places in found.items()}

    def _pair(self, X: Samples, Z: Samples) -> tuple[Samples, Samples]:
        """Two blocks of samples of this machine: derivatives are computed here."""
        X = self._samples(host(X))
        return X, X if Z is None else self._samples(host(Z))

    def _finite(self, out: Floats) -> Floats:
        if not np.isfinite(out).all():
            raise ValueError(
                f"a derivative of {self!r} is not a finite number: its values overflow float64 for these samples, or "
                "the samples are not finite; scale the features"
            )
        return out

    def _gradients(self, X: Samples, Z: Samples) -> Floats:
        """∂k(x_i, z_j)/∂x_i for all pairs."""
        one = np.ones((n_samples(X), 1))
        try:
            return np.stack([self._gradient(X, Z[j : j + 1], one) for j in range(n_samples(Z))], axis=1)
        except NotDifferentiableError:
            self._gradient(X, Z, np.ones((n_samples(X), n_samples(Z))))  # whose message names the row of Z
            raise

    # Why there is no `_gradient`, in words that follow "because".
    _no_gradient = "its class defines none (a method _gradient)"

    def _gradient(self, X: Samples, Z: Samples, weights: Floats) -> Floats:
        """Σ_j weights_ij ∂k(x_i, z_j)/∂x_i."""
        raise NotDifferentiableError(f"{self!r} has no known derivative by its samples, because {self._no_gradient}")

    def _slopes(self, X: Samples, Z: Samples) -> Iterator[Slope]:
        """The derivative of a block of K by each parameter that is a real number."""
        numbers = [name for name, value in self.get_params(deep=False).items() if isinstance(value, float)]
        if numbers:
            raise NotDifferentiableError(
                f"{self!r} has no known derivative by {', '.join(numbers)}, because its class defines none (a method "
                "_slopes)"
            )
        return iter(())

    def _diagonal_gradient(self, X: Samples, weights: Floats) -> Floats:
        """weights_i · ∂k(x_i, x_i)/∂x_i, in which both arguments move."""
        out = np.zeros(X.shape)
        if self.unit_diagonal != "yes":
            for rows in _diagonal_blocks(X):
                out[rows] = 2 * self._gradient(X[rows], X[rows], np.diag(weights[rows]))  # k is symmetric
        return out

    def _diagonal_slopes(self, X: Samples) -> dict[tuple[str, tuple[int, ...]], Floats]:
        """The derivatives of k(x_i, x_i) by the parameters."""
        out: dict[tuple[str, tuple[int, ...]], Floats] = {}
        for rows in _diagonal_blocks(X):
            for name, place, slope in self._slopes(X[rows], X[rows]):
                out.setdefault((name, place), np.empty(n_samples(X)))[rows] = slope.diagonal()
        return out

    # --- what a kernel says about itself ----------------------------------------------------------------------

    @property
    def accepts(self) -> Domain:
        """What a sample is: the row of an array or CSR matrix, a string, or a row of K itself."""
        return "vectors"

    @property
    def given(self) -> bool:
        """Whether its values are what a user's function returns, so that rounding inside of it is not our error."""
        return False

    @property
    def compares(self) -> Domain:
        """What values are computed from: what a sample is, or what a feature map makes of it."""
        return self.accepts

    def n_terms(self, X: Samples) -> int:
        """How many terms a sum over two samples has at most, but for exact zeros; none where they are whole numbers."""
        if self.accepts != "vectors":
            return 0
        stored = is_sparse(X) and not isinstance(X, PlacedSamples)  # an engine does not say where its zeros are
        return min(X.shape[1], 2 * int(np.diff(X.indptr).max(initial=0))) if stored else int(X.shape[1])

    def majorant(self) -> Kernel:
        """A kernel M such that √(M(x, x) M(z, z)) is at least as large as k(x, z) and as any number it is made from.

        It is the kernel itself if that is positive definite, or a function of the user's.
        """
        return self

    @property
    def n_factors(self) -> int:
        """How many values of simple kernels are multiplied for a value of this one: their relative errors add up."""
        return 1

    @property
    def mergeable(self) -> bool:
        """Whether equal samples have equal kernel values for certain, so that they may be merged."""
        return True

    @property
    def positive_definite(self) -> Answer:
        """Whether ΣΣ c_i c_j k(x_i, x_j) ≥ 0 for all samples and all c."""
        return "unknown"

    @property
    def strictly_positive_definite(self) -> Answer:
        """Whether that sum is > 0 for all distinct samples and c ≠ 0."""
        return "unknown"

    @property
    def universal(self) -> Answer:
        """Whether k is continuous and Σ c_i k(x_i, ·) comes close to every continuous function on a compact set."""
        return "unknown"

    @property
    def unit_diagonal(self) -> Answer:
        """Whether k is normalised: k(x, x) = 1 for every x."""
        return "unknown"

    @property
    def positive_values(self) -> Answer:
        """Whether k(x, z) > 0 for all x and z, so that all φ(x) lie within one orthant: no angle reaches 90°."""
        return "unknown"

    @property
    def differentiable(self) -> Answer:
        """Whether k is differentiable on its whole domain."""
        return "unknown"

    @property
    def lipschitz(self) -> float | None:
        """L with ‖φ(x) − φ(z)‖ ≤ L‖x − z‖ for all x and z; None if there is no such L, or it is not known."""
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
            "a difference of kernels is no kernel in general: it may have negative eigenvalues. Add kernels "
            "instead, or give the matrix itself with kernel='precomputed'"
        )

    __rsub__ = __sub__

    def __neg__(self) -> NoReturn:
        raise TypeError("-k is no kernel: where k has positive eigenvalues, -k has negative ones")

    def exp(self) -> Kernel:
        """exp(k(x, z))."""
        from mercer.kernels.algebra import Exponential

        return Exponential(self)

    def normalised(self) -> Kernel:
        """k(x, z) / √(k(x, x) k(z, z)): the cosine of the angle between φ(x) and φ(z)."""
        from mercer.kernels.composite import Normalised

        return Normalised(self)

    def scaled_by(self, function: OfSamples) -> Kernel:
        """f(x) k(x, z) f(z), where ``function`` maps n samples to n numbers."""
        from mercer.kernels.composite import Weighted

        return Weighted(self, function)

    def of(self, feature_map: OfSamples, accepts: Domain = "vectors") -> Kernel:
        """k(φ(x), φ(z)), where ``feature_map`` maps n samples to n of those that this kernel accepts."""
        from mercer.kernels.composite import PulledBack

        return PulledBack(self, feature_map, accepts)

    def on(self, columns: Sequence[int]) -> Kernel:
        """k of these columns of the samples alone, counted from 0."""
        from mercer.kernels.columns import OnColumns

        return OnColumns(self, columns)


def _diagonal_blocks(X: Samples) -> list[slice]:
    return [slice(start, start + DIAGONAL_ROWS) for start in range(0, n_samples(X), DIAGONAL_ROWS)]


def _number(value: Any) -> float:
    """A plain Python number, so that 2 stays 2 in the kernel's text."""
    plain: float = value.item() if isinstance(value, np.generic) else value
    return plain


def _as_weights(weights: ArrayLike, n: int, m: int) -> Floats:
    """One finite weight per pair of samples."""
    given = np.asarray(weights, dtype=np.float64)
    if given.shape not in ((m,), (n, m)) or not np.isfinite(given).all():
        raise ValueError(
            f"weights must be finite numbers of shape ({m},), one per sample of Z, or ({n}, {m}), one per pair, not of "
            f"shape {given.shape}"
        )
    return np.broadcast_to(given, (n, m))


def _assembled(places: dict[tuple[int, ...], Any]) -> Any:
    """One number or block, or those of all places of a parameter that is an array, the places in the last axes."""
    if set(places) == {()}:
        return places[()]
    shape = tuple(np.max(list(places), axis=0) + 1)
    values = np.stack([places[place] for place in np.ndindex(shape)], axis=-1)
    return values.reshape(*values.shape[:-1], *shape)
