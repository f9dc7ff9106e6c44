"""Kernels of the Euclidean distance r = ‖x − z‖: Gaussian, Matérn, rational quadratic."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from mercer.kernels.bandwidth import LARGEST, GammaKernel
from mercer.kernels.kernel import Answer, Kernel, Slope
from mercer.kernels.recipe import Recipe, exp_of_minus
from mercer.kernels.terms import Term, Terms
from mercer.runtime.errors import NotDifferentiableError
from mercer.runtime.parameters import SuggestsParameters, positive
from mercer.samples.arrays import Floats, Samples, row_blocks
from mercer.samples.distances import distances, squared_distances
from mercer.samples.matrices import as_float64, dense, ordinary, strips, weighted_differences


@dataclass(eq=False, repr=False)
class Gaussian(SuggestsParameters, GammaKernel):
    """Gaussian kernel exp(−γ‖x − z‖²), also called radial basis function (RBF) or squared exponential kernel.

    Parameters
    ----------
    gamma : float ≥ 0, "scale", "auto" or "median"
        Coefficient γ, or the rule for it: 1/(columns · variance of X), 1/columns, or from the median distance.
    sigma : float > 0, optional
        Width σ instead of gamma: γ = 1 / (2σ²).
    M : symmetric positive definite matrix, optional
        Matrix of the kernel exp(−(x − z)ᵀM(x − z)), instead of gamma.

    Examples
    --------
    >>> from mercer.kernels import Gaussian
    >>> Gaussian(gamma=0.5)([[0.0, 0.0]], [[1.0, 1.0]]).round(4)
    array([[0.3679]])
    >>> Gaussian(sigma=1.0)([[0.0, 0.0]], [[1.0, 1.0]]).round(4)
    array([[0.3679]])
    >>> Gaussian(gamma="scale").bind([[0.0, 0.0], [2.0, 4.0]])  # a rule becomes a number
    Gaussian(gamma=0.18181818181818182)
    """

    gamma: float | str = "scale"
    sigma: float | None = None
    M: ArrayLike | None = None

    positive_definite = unit_diagonal = differentiable = positive_values = "yes"

    def __post_init__(self) -> None:
        self._check()
        if self.M is not None:
            self._factor()  # raises an error if M is not positive definite

    def _check(self) -> None:
        gamma_is_set = not isinstance(self.gamma, str) or self.gamma != "scale"
        if gamma_is_set + (self.sigma is not None) + (self.M is not None) > 1:
            settings = {"gamma": gamma_is_set, "sigma": self.sigma is not None, "M": self.M is not None}
            names = [name for name, is_given in settings.items() if is_given]
            raise ValueError(f"{' and '.join(names)} are given, but each alone sets the width of a Gaussian; give one")
        super()._check()
        if self.sigma is not None:
            positive("sigma", self.sigma)

    def _factor(self) -> Floats | None:
        """Return the factor L of M = L Lᵀ, so that (x − z)ᵀM(x − z) = ‖(x − z)ᵀL‖²; None without M."""
        if self.M is None:
            return None
        M = np.asarray(self.M, dtype=np.float64)
        if M.ndim != 2 or M.shape[0] != M.shape[1] or not np.isfinite(M).all():
            raise ValueError(f"M must be a finite square matrix, one row per feature, not of shape {M.shape}")
        if np.abs(M - M.T).max(initial=0.0) > 1e-10 * np.abs(M).max(initial=0.0):
            raise ValueError("M must be symmetric; (M + M.T) / 2 gives the same kernel")
        try:
            return np.asarray(np.linalg.cholesky((M + M.T) / 2), dtype=np.float64)
        except np.linalg.LinAlgError:
            raise ValueError(
                f"M must be positive definite, but its smallest eigenvalue is {np.linalg.eigvalsh(M)[0]:.3g}; "
                "add a multiple of the identity"
            ) from None

    def _gamma(self) -> float:
        if self.sigma is None and self.M is None:
            return super()._gamma()
        self._check()
        return 1.0 if self.sigma is None else _half_inverse_square(self.sigma)

    def bind(self, X: Samples, sample_weight: ArrayLike | None = None) -> Kernel:
        if self.sigma is None and self.M is None:
            return super().bind(X, sample_weight)
        self._check()
        return self

    @property
    def bound(self) -> bool:
        return self.sigma is not None or self.M is not None or super().bound

    def _values(self, X: Samples, Z: Samples) -> Floats:
        gamma, factor = self._gamma(), self._factor()
        if factor is not None and factor.shape[0] != X.shape[1]:
            raise ValueError(f"M has shape {factor.shape}, but the samples have {X.shape[1]} features")
        if self.sigma is not None and not _has_square(self.sigma):
            return _gaussian_of_width(self.sigma, X, Z)
        if factor is None and not ordinary(X, Z):
            return _gaussian(distances(X, Z) * math.sqrt(gamma))
        return exp_of_minus(gamma, squared_distances(X, Z, factor))

    def _gradient(self, X: Samples, Z: Samples, weights: Floats) -> Floats:
        """Compute Σ_j weights_ij ∂k(x_i, z_j)/∂x_i."""
        if self.sigma is not None:
            out = weighted_differences(-weights * self._values(X, Z), X, Z)
            return out / float(self.sigma) / float(self.sigma)
        out = weighted_differences(-2.0 * self._gamma() * weights * self._values(X, Z), X, Z)
        factor = self._factor()
        return out if factor is None else out @ factor @ factor.T

    def _slopes(self, X: Samples, Z: Samples) -> Iterator[Slope]:
        """Yield the derivative of a block of K by each real-valued parameter."""
        values = self._values(X, Z)
        if self.M is not None:
            yield from self._slopes_by_matrix(X, Z, values)
            return
        if self.sigma is None:
            yield "gamma", (), -_product_or_zero(squared_distances(X, Z), values)
        else:
            t = distances(X, Z) / float(self.sigma)
            yield "sigma", (), _product_or_zero(t * t, values) / float(self.sigma)

    def _slopes_by_matrix(self, X: Samples, Z: Samples, values: Floats) -> Iterator[Slope]:
        """Yield the derivative −(x − z)_a (x − z)_b k by each entry M_ab."""
        x, z = (as_float64(dense(samples)) for samples in (X, Z))
        for a in range(x.shape[1]):
            slope_of_row = -(x[:, a, None] - z[:, a]) * values
            for b in range(x.shape[1]):
                yield "M", (a, b), slope_of_row * (x[:, b, None] - z[:, b])

    def recipe(self) -> Recipe | None:
        if not _has_square(self.sigma):
            return None
        return Recipe("sqdist", "gaussian", (self._gamma(),), factor=self._factor())

    def terms(self, d: int) -> Terms | None:
        if not _has_square(self.sigma):
            return None
        if self.M is None:
            return (Term(square=self._gamma()),)
        M = np.asarray(self.M, dtype=np.float64)
        rates = M.diagonal().copy()
        return (Term(square=rates),) if np.array_equal(M, np.diag(rates)) else None

    @property
    def strictly_positive_definite(self) -> Answer:
        return "no" if self.bound and self._gamma() == 0 else "yes"

    @property
    def universal(self) -> Answer:
        return self.strictly_positive_definite

    @property
    def lipschitz(self) -> float | None:
        if not self.bound:
            return None
        largest_eigenvalue = (
            1.0 if self.M is None else float(np.linalg.eigvalsh(np.asarray(self.M, dtype=np.float64))[-1])
        )
        return math.sqrt(2) * math.sqrt(self._gamma()) * math.sqrt(largest_eigenvalue)


@dataclass(eq=False, repr=False)
class Matern(SuggestsParameters, Kernel):
    """Matérn kernel 2^(1−ν)/Γ(ν) · t^ν K_ν(t) with t = √(2ν) ‖x − z‖ / length_scale.

    Parameters
    ----------
    nu : float > 0, or inf
        Smoothness ν: 0.5 is exp(−t), 1.5 and 2.5 have closed forms, inf is the Gaussian with σ = length_scale.
    length_scale : float > 0
        Distance over which values change.

    Examples
    --------
    >>> from mercer.kernels import Matern
    >>> Matern(nu=0.5, length_scale=2.0)([[0.0]], [[2.0]]).round(4)  # exp(−1)
    array([[0.3679]])
    """

    nu: float = 1.5
    length_scale: float = 1.0

    positive_definite = strictly_positive_definite = universal = unit_diagonal = positive_values = "yes"

    def _check(self) -> None:
        if not isinstance(self.nu, Real) or isinstance(self.nu, bool) or not self.nu > 0:
            raise ValueError(f"nu={self.nu!r} must be a number > 0, or inf for the Gaussian")
        positive("length_scale", self.length_scale)

    def _gaussian(self) -> Gaussian | None:
        """Return the Gaussian that this kernel is for infinite ν; None otherwise."""
        self._check()
        return Gaussian(sigma=self.length_scale) if self.nu == math.inf else None

    def _scaled(self, X: Samples, Z: Samples) -> Floats:
        """Return the scaled distances t = √(2ν) ‖x − z‖ / length_scale."""
        t = distances(X, Z)
        with np.errstate(over="ignore"):
            t /= float(self.length_scale)
            t *= math.sqrt(2 * self.nu)
        return t

    def _values(self, X: Samples, Z: Samples) -> Floats:
        gaussian = self._gaussian()
        return matern(float(self.nu), self._scaled(X, Z)) if gaussian is None else gaussian._values(X, Z)

    def _gradient(self, X: Samples, Z: Samples, weights: Floats) -> Floats:
        """Compute Σ_j weights_ij ∂k(x_i, z_j)/∂x_i."""
        gaussian = self._gaussian()
        if gaussian is not None:
            return gaussian._gradient(X, Z, weights)
        t = self._scaled(X, Z)
        if self.nu <= 0.5 and ((t == 0) & (weights != 0)).any():
            i, j = np.argwhere((t == 0) & (weights != 0))[0]
            raise NotDifferentiableError(
                f"a Matérn kernel with nu={self.nu} has no derivative where its two samples are equal, as row {i} of X "
                f"and row {j} of Z are; drop such pairs, or set nu to a number above 0.5"
            )
        slope, length = matern_slope_over_t(float(self.nu), t), float(self.length_scale)
        return weighted_differences(weights * slope * (2 * float(self.nu)), X, Z) / length / length

    def _slopes(self, X: Samples, Z: Samples) -> Iterator[Slope]:
        """Yield the derivative of a block of K by each real-valued parameter."""
        gaussian = self._gaussian()
        if gaussian is not None:
            slopes = gaussian._slopes(X, Z)
            yield from (("length_scale", entry, slope) for _, entry, slope in slopes)
            return
        t = self._scaled(X, Z)
        slope = matern_slope_over_t(float(self.nu), t)
        yield "length_scale", (), -_product_or_zero(t * t, slope) / float(self.length_scale)

    def recipe(self) -> Recipe | None:
        gaussian = self._gaussian()
        return None if gaussian is None else gaussian.recipe()

    def terms(self, d: int) -> Terms | None:
        gaussian = self._gaussian()
        return None if gaussian is None else gaussian.terms(d)

    @property
    def differentiable(self) -> Answer:
        return "yes" if self.nu > 0.5 else "no"  # 1 − k behaves like r^(2ν) near 0, or like r² if that is smaller

    @property
    def lipschitz(self) -> float | None:
        # k(r) is an average of cosines, so 1 − k(r) ≤ −k''(0) r²/2, and −k''(0) = ν/(ν − 1)/length_scale².
        if self.nu <= 1:
            return None
        return (1.0 if self.nu == math.inf else math.sqrt(self.nu / (self.nu - 1))) / float(self.length_scale)


@dataclass(eq=False, repr=False)
class RationalQuadratic(SuggestsParameters, Kernel):
    """Rational quadratic kernel (1 + ‖x − z‖² / (2α length_scale²))^(−α), a mixture of Gaussians of all widths.

    Parameters
    ----------
    alpha : float > 0
        Mixture parameter α: the smaller α, the wider the range of widths; the limit α → ∞ is the Gaussian.
    length_scale : float > 0
        Distance over which values change.

    Examples
    --------
    >>> from mercer.kernels import RationalQuadratic
    >>> RationalQuadratic(alpha=1.0)([[0.0]], [[1.0], [2.0]]).round(4)
    array([[0.6667, 0.3333]])
    """

    alpha: float = 1.0
    length_scale: float = 1.0

    positive_definite = strictly_positive_definite = universal = unit_diagonal = differentiable = "yes"
    positive_values = "yes"

    def _check(self) -> None:
        positive("alpha", self.alpha)
        positive("length_scale", self.length_scale)

    def _values(self, X: Samples, Z: Samples) -> Floats:
        self._check()
        return exp_of_minus(float(self.alpha), self._logarithms(distances(X, Z)))

    def _logarithms(self, r: Floats) -> Floats:
        """Compute log(1 + r² / (2α length_scale²)), even if the square overflows; overwrites r."""
        alpha, length = float(self.alpha), float(self.length_scale)
        for rows in strips(r):
            with np.errstate(over="ignore"):
                u = (r[rows] / length) ** 2 * min(0.5 / alpha, LARGEST)
            is_infinite = np.isinf(u)
            logarithms = 2.0 * (np.log(r[rows][is_infinite]) - math.log(length)) - math.log(2.0) - math.log(alpha)
            np.log1p(u, out=r[rows])
            r[rows][is_infinite] = logarithms
        return r

    def _gradient(self, X: Samples, Z: Samples, weights: Floats) -> Floats:
        """Compute Σ_j weights_ij ∂k(x_i, z_j)/∂x_i."""
        u, length = self._relative_squares(X, Z), float(self.length_scale)
        return weighted_differences(-weights * (1.0 + u) ** (-float(self.alpha) - 1.0), X, Z) / length / length

    def _slopes(self, X: Samples, Z: Samples) -> Iterator[Slope]:
        """Yield the derivative of a block of K by each real-valued parameter."""
        alpha, u = float(self.alpha), self._relative_squares(X, Z)
        values = (1.0 + u) ** -alpha
        share = u / (1.0 + u)
        yield "alpha", (), values * (share - np.log1p(u))
        yield "length_scale", (), values * share * (2.0 * alpha / float(self.length_scale))

    def _relative_squares(self, X: Samples, Z: Samples) -> Floats:
        """Compute u = ‖x − z‖² / (2α length_scale²)."""
        self._check()
        with np.errstate(over="ignore"):
            return (distances(X, Z) / float(self.length_scale)) ** 2 * min(0.5 / float(self.alpha), LARGEST)

    @property
    def lipschitz(self) -> float | None:
        return 1.0 / float(self.length_scale)


def _half_inverse_square(length: float) -> float:
    """Compute 1 / (2 length²), limited to finite numbers because 0 · inf is NaN."""
    return min(0.5 / float(length) / float(length), LARGEST)


def _has_square(length: float | None) -> bool:
    """Return whether a width's square is representable in float64; if not, distances are divided by the width."""
    return length is None or ordinary(np.array([[float(length)]]))


def _gaussian_of_width(width: float, X: Samples, Z: Samples) -> Floats:
    """Compute exp(−r²/(2 width²)) for distances and widths of any size."""
    with np.errstate(over="ignore"):
        return _gaussian(distances(X, Z) / float(width) * math.sqrt(0.5))


def _gaussian(t: Floats) -> Floats:
    """Compute exp(−t²); overwrites t."""
    with np.errstate(over="ignore", under="ignore"):
        t *= t
    return exp_of_minus(1.0, t)


def _product_or_zero(squares: Floats, values: Floats) -> Floats:
    """Return squares · values, which is 0 where the values are 0, even for infinite squares."""
    return np.where(values == 0, 0.0, squares * values)


def matern_slope_over_t(nu: float, t: Floats) -> Floats:
    """Compute k'(t)/t of the Matérn function, from (t^ν K_ν)' = −t^ν K_{ν−1} (DLMF 10.29.4); does not overwrite t.

    For ν ≤ 1, k'(t)/t is infinite at t = 0; the result there is 0, since it is multiplied by the difference x − z = 0.
    """
    if nu > 1:
        return matern(nu - 1.0, t.copy()) / (-2.0 * (nu - 1.0))
    out = np.zeros_like(t)
    nonzero = (t > 0) & (t < 1e3)  # for larger t, the exponential is 0
    s = t[nonzero]
    if nu == 0.5:
        out[nonzero] = -np.exp(-s) / s
    else:
        size = (1 - nu) * math.log(2) - special.gammaln(nu) + (nu - 1) * np.log(s)
        out[nonzero] = -np.exp(size + np.log(special.kve(1.0 - nu, s)) - s)
    return out


def matern(nu: float, t: Floats) -> Floats:
    """Compute the Matérn function of t = √(2ν) r / length_scale; overwrites t."""
    if nu == 0.5:
        return exp_of_minus(1.0, t)
    if nu in (1.5, 2.5):
        np.minimum(t, 1e3, out=t)  # the exponential is 0 there, and ∞ · 0 would be NaN
        polynomial = 1.0 + t if nu == 1.5 else 1.0 + t + t**2 / 3.0
        polynomial *= exp_of_minus(1.0, t)
        return polynomial
    # From ν = 50 on Debye's expansion is exact to rounding; below it the Bessel function hardly ever overflows.
    return _matern_by_debye(nu, t) if nu >= 50 else _matern_by_bessel(nu, t)


def _matern_by_bessel(nu: float, t: Floats) -> Floats:
    """Compute the Matérn function from the Bessel function K_ν."""
    out = np.ones_like(t)
    out[t > 1e3 + 10 * nu] = 0.0  # less than the smallest float64, and kve fails for very large arguments
    needs_bessel = (t > 0) & (out > 0)
    values = t[needs_bessel]
    # A Bessel function takes about a microsecond, as long as other kernels take for half a kilobyte of values: blocks
    # are correspondingly smaller, so that Ctrl-C and max_time take effect in time.
    for block in row_blocks(len(values), 512):
        s = values[block]
        scaled = special.kve(nu, s)
        with np.errstate(over="ignore"):
            matern_values = np.exp((1 - nu) * math.log(2) - special.gammaln(nu) + nu * np.log(s) + np.log(scaled) - s)
        # K_ν overflows only near 0, where the first term of 1 − k, t²/(4(ν − 1)), is at the level of rounding.
        is_infinite = np.isinf(scaled)
        matern_values[is_infinite] = 1.0 - s[is_infinite] ** 2 / (4 * (nu - 1))
        values[block] = np.minimum(matern_values, 1.0)
    out[needs_bessel] = values
    return out


def _matern_by_debye(nu: float, t: Floats) -> Floats:
    """Compute the Matérn function by Debye's expansion of K_ν, uniform in t (DLMF 10.41.4), divided by its value at 0.

    With z = t/ν, s = √(1 + z²) and p = 1/s:  log k = −ν(s − 1 − log((1 + s)/2)) − ½ log s + log Σ(p) − log Σ(1),
    where Σ(p) = Σ_k (−1)^k U_k(p)/ν^k.
    """
    with np.errstate(over="ignore"):
        z = np.minimum(t / nu, 1e150)
        s = np.sqrt(1.0 + z**2)
        s_minus_1 = z**2 / (1.0 + s)  # s − 1 without cancellation
        series = sum(((-1 / nu) ** k * u for k, u in enumerate(_debye_polynomials())), np.polynomial.Polynomial([0.0]))
        logarithm = -nu * (s_minus_1 - np.log1p(s_minus_1 / 2)) - 0.5 * np.log1p(s_minus_1)
        logarithm += np.log(series(1.0 / s) / series(1.0))
    return np.exp(logarithm)


@cache
def _debye_polynomials() -> tuple[np.polynomial.Polynomial, ...]:
    """Return U_0 to U_10 by their recurrence (DLMF 10.41.9); for ν ≥ 50 further terms are below rounding."""
    Polynomial = np.polynomial.Polynomial
    polynomials = [Polynomial([1.0])]
    for _ in range(10):
        last = polynomials[-1]
        integral = (Polynomial([1.0, 0.0, -5.0]) * last).integ()
        polynomials.append(Polynomial([0.0, 0.0, 0.5, 0.0, -0.5]) * last.deriv() + integral / 8)
    return tuple(polynomials)
