"""The kernel coefficient gamma: its validation, and the rules "scale", "auto" and "median".

    "scale"   1 / (d Var X), with the variance over all entries of X as in scikit-learn; 1 if X is constant
    "auto"    1 / d
    "median"  1 / (2m²), where m is the median distance between two different samples, among at most 1000 rows
              at equal steps through the data; 1 / m with the median L1 distance for kernels of that distance

A sample of weight w counts like w copies of it. The variance is computed in two passes, the second one centred, so that
an offset of the data does not cost accuracy. Implicit zeros of a CSR matrix count, but are never stored.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from mercer.kernels.kernel import Kernel
from mercer.runtime.errors import warn_user
from mercer.runtime.parameters import not_negative, one_of, positive
from mercer.samples.arrays import Floats, PickedRows, Samples, host, inner, is_sparse, row_moments, weighted_median
from mercer.samples.distances import l1_distances, squared_distances
from mercer.samples.engine import EngineSamples
from mercer.samples.matrices import as_float64, as_matrix, reduce_rows, strips

_RULES = ("scale", "auto", "median")
LARGEST = float(np.finfo(np.float64).max)
_SMALLEST_NORMAL = float(np.finfo(np.float64).tiny)


class GammaKernel(Kernel):
    """Kernel with a coefficient gamma, which is a number or a rule that is evaluated on the training data."""

    gamma: float | str
    _l1 = False  # True for kernels of the L1 distance

    def _check(self) -> None:
        if isinstance(self.gamma, str) and self.gamma in _RULES:
            return
        try:
            not_negative("gamma", self.gamma)
        except (TypeError, ValueError):
            raise ValueError(
                f"gamma={self.gamma!r} must be a finite number of at least 0, or one of {', '.join(map(repr, _RULES))}"
            ) from None

    def _gamma(self) -> float:
        """Return gamma as a number, or raise an error if it is a rule."""
        self._check()
        if isinstance(self.gamma, str):
            raise ValueError(
                f"gamma={self.gamma!r} of {type(self).__name__} depends on the training data: use kernel.bind(X), "
                "or set gamma to a number"
            )
        return float(self.gamma)

    @property
    def bound(self) -> bool:
        return not isinstance(self.gamma, str)

    def bind(self, X: Samples, sample_weight: ArrayLike | None = None) -> Kernel:
        self._check()
        if isinstance(self.gamma, str):
            gamma = gamma_from(self.gamma, X, sample_weight, self._l1)
            bound: GammaKernel = object.__new__(type(self))
            bound.__dict__.update(vars(self), gamma=gamma)
            return bound
        if self.gamma == 0:
            warn_user(
                f"gamma=0 makes {type(self).__name__} a constant: all samples look the same to it; "
                "set gamma to a number > 0",
                UserWarning,
            )
        return self


def gamma_from(rule: str, X: Samples, sample_weight: ArrayLike | None = None, l1: bool = False) -> float:
    """Evaluate a rule for gamma on the data X."""
    X = X if isinstance(X, PickedRows) else as_matrix(X)
    n, d = X.shape
    if n == 0 or d == 0:
        raise ValueError(f"gamma={rule!r} cannot be computed from X of shape {X.shape}, which has no entries")
    if rule == "auto":
        return 1.0 / float(d)
    weight = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    largest = weight.max(initial=0.0)
    if weight.shape != (n,) or not largest > 0:
        raise ValueError(f"sample_weight must be {n} numbers ≥ 0, one per sample and not all 0")
    weight = weight if largest == 1.0 else weight / largest
    gamma = gamma_from_variance(X, weight) if rule == "scale" else _gamma_from_median(X, weight, l1)
    if gamma is None:
        reason = "its variance is 0" if rule == "scale" else "all its rows are equal"
        warn_user(
            f"gamma={rule!r} is undefined because X is constant up to rounding ({reason}); gamma=1.0 is used",
            UserWarning,
        )
        return 1.0
    return gamma


def gamma_from_sigma(sigma: float, *, convention: str = "2σ²") -> float:
    """Convert the width σ of a Gaussian, in the convention of a textbook, to γ of exp(−γ‖x − z‖²).

    Parameters
    ----------
    sigma : float > 0
        Width σ.
    convention : "2σ²", "σ²" or "2σ", or in ASCII "2sigma^2", "sigma^2" or "2sigma"
        Denominator of ‖x − z‖² in the textbook. "2σ²" is the convention of `Gaussian(sigma=…)`, Igel, Mozharovskyi and
        Li, "σ²" that of Rosasco; "2σ" is printed by Shalev-Shwartz.

    Returns
    -------
    float
        Coefficient γ.

    Examples
    --------
    >>> from mercer.kernels import gamma_from_sigma
    >>> [gamma_from_sigma(2.0, convention=convention) for convention in ("2σ²", "σ²", "2σ")]
    [0.125, 0.25, 0.25]
    >>> gamma_from_sigma(2.0, convention="2sigma^2")
    0.125
    """
    width = positive("sigma", sigma)
    divisors = {"2σ²": 2.0 * width**2, "σ²": width**2, "2σ": 2.0 * width}
    divisors |= {name.replace("σ", "sigma").replace("²", "^2"): divisor for name, divisor in divisors.items()}
    return 1.0 / divisors[one_of("convention", convention, tuple(divisors))]


def gamma_from_variance(X: Samples, weight: Floats) -> float | None:
    """Return 1/(number of columns · variance over all entries); None if X is constant."""
    total = math.fsum(weight.tolist()) * X.shape[1]
    with np.errstate(over="ignore", invalid="ignore"):
        if isinstance(X, EngineSamples):
            mean = X.sums_about(0.0, weight)[0] / total
            first_moment, second_moment = X.sums_about(mean, weight)
            mean_error, variance = first_moment / total, second_moment / total
        else:
            mean = _mean(X, weight, total)
            mean_error, variance = _moments(X, weight, total, mean) if math.isfinite(mean) else (math.nan, math.nan)
    # The mean is rounded; the mean of the centred data corrects for that (Chan, Golub and LeVeque 1983).
    variance -= mean_error * mean_error
    if not math.isfinite(variance):
        raise ValueError("gamma='scale' overflows: the variance of X exceeds float64. Scale the features")
    # Rounding can give constant data a standard deviation of up to 1e-14 of their size.
    if variance <= 1e-28 * mean * mean or variance < _SMALLEST_NORMAL:
        return None
    return float(min(1.0 / (float(X.shape[1]) * variance), LARGEST))


def _row_sums(block: Samples) -> Floats:
    """Return the sum of each row of an array or a CSR matrix."""
    return reduce_rows(np.add, block.data, block) if is_sparse(block) else np.add.reduce(block, axis=1)


def _row_moments(X: Samples, centre: float) -> tuple[Floats, Floats] | None:
    """Return the sums of x − centre and of (x − centre)² over each row; None if the core does not read X."""
    if isinstance(X, PickedRows):
        return X.row_moments(centre)
    return row_moments(X, centre)


def _mean(X: Samples, weight: Floats, total: float) -> float:
    """Return the weighted mean of all entries of X, including implicit zeros; `total` is the sum of weights."""
    moments = _row_moments(X, 0.0)
    if moments is not None:
        return inner(weight, moments[0]) / total
    return sum(float(weight[rows] @ _row_sums(as_float64(X[rows]))) for rows in strips(X)) / total


def _moments(X: Samples, weight: Floats, total: float, centre: float) -> tuple[float, float]:
    """Return the weighted means of x − centre and (x − centre)² over all entries of X, including implicit zeros."""
    moments = _row_moments(X, centre)
    if moments is not None:
        return inner(weight, moments[0]) / total, inner(weight, moments[1]) / total
    d = X.shape[1]
    first_moment = second_moment = 0.0
    for rows in strips(X):
        block = as_float64(X[rows])
        if is_sparse(block):
            differences = block.data - centre
            zeros = d - np.diff(block.indptr)
            sums = reduce_rows(np.add, differences, block) - zeros * centre
            squares = reduce_rows(np.add, differences**2, block) + zeros * np.square(centre)
        else:
            differences = block - centre
            sums = _row_sums(differences)
            squares = np.einsum("ij,ij->i", differences, differences)
        first_moment += float(weight[rows] @ sums)
        second_moment += float(weight[rows] @ squares)
    return first_moment / total, second_moment / total


def _gamma_from_median(X: Samples, weight: Floats, l1: bool) -> float | None:
    """Return 1/(2m²), or 1/m for the L1 distance, with m the median distance; None if all rows are equal."""
    sampled = np.linspace(0, X.shape[0] - 1, min(X.shape[0], 1000)).round().astype(np.intp)
    rows = host(X, sampled)
    distances = l1_distances(rows, rows) if l1 else np.sqrt(squared_distances(rows, rows))
    first, second = np.tril_indices(len(sampled), -1)
    pair_distances = distances[first, second]
    # Weights are scaled so that their products fit into float64.
    scaled_weight = np.ldexp(weight[sampled], -math.frexp(float(weight.max()))[1])
    pair_weight = scaled_weight[first] * scaled_weight[second]
    distinct = (pair_distances > 0) & (pair_weight > 0)
    if not distinct.any():
        return None
    median = weighted_median(pair_distances[distinct], pair_weight[distinct])
    if not math.isfinite(median):
        raise ValueError("gamma='median' overflows: distances of rows of X exceed float64. Scale the features")
    return min(1.0 / median if l1 else 0.5 / median / median, LARGEST)


def sigest(X: Samples, *, share: float = 0.5, random_state: Any = None) -> Floats:
    """Estimate gamma of the Gaussian: the 10 %, 50 % and 90 % quantiles of 1/‖x − z‖² over random pairs of samples.

    This is kernlab's `sigest` (B. Caputo et al., 2002); any value between the outer two quantiles should work. kernlab
    scales the columns first.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
        Samples.
    share : float, default=0.5
        Number of pairs that are drawn, as a share of the number of samples.
    random_state : int, RandomState or None
        Seed for the draw.

    Returns
    -------
    array of shape (3,)
        Values of gamma in increasing order.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import sigest
    >>> low, middle, high = sigest(np.random.default_rng(0).normal(size=(200, 5)), random_state=0)
    >>> bool(0.02 < low < middle < high < 1)
    True
    """
    X = as_matrix(host(X))
    rng, n = check_random_state(random_state), X.shape[0]
    n_pairs = max(1, math.ceil(positive("share", share) * n))
    first, second = rng.randint(0, n, n_pairs), rng.randint(0, n, n_pairs)
    differences = X[first] - X[second]
    squares = np.asarray(
        (differences.multiply(differences) if is_sparse(differences) else differences * differences).sum(axis=1)
    ).ravel()
    squares = squares[squares > 0]
    if not len(squares):
        raise ValueError("the two samples of every pair that was drawn are equal: there is no distance to estimate")
    return np.asarray(1.0 / np.quantile(squares, [0.9, 0.5, 0.1]))
