"""Two-sample test with the maximum mean discrepancy, by permutation (Gretton et al. 2012).

    MMD² = ‖E φ(x) − E φ(y)‖², which for a characteristic kernel, such as a Gaussian, is 0 only for equal distributions

    biased     Σ k(x_i, x_j)/n² + Σ k(y_i, y_j)/m² − 2 Σ k(x_i, y_j)/nm, the squared distance of the two means
    unbiased   the same without the terms i = j, with denominators n(n − 1) and m(m − 1)

If the distributions are equal, the assignment of points to samples is random. The statistic is therefore computed again
for B random permutations, and p = (1 + number of permutations with a statistic at least as large)/(1 + B): under equal
distributions p ≤ α has probability at most α, for all sample sizes, kernels and B (Phipson and Smyth 2010).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from mercer.estimators.fitting.pipeline.fit import Fit
from mercer.estimators.fitting.pipeline.reporting import Progress, warn_user
from mercer.estimators.unsupervised.learner import SampleReader
from mercer.estimators.unsupervised.points import Points, points_of
from mercer.kernels import Kernel
from mercer.kernels.names import KernelLike, kernel_accepts
from mercer.runtime.parameters import integer
from mercer.runtime.shared_docs import shared_docs
from mercer.samples.arrays import BLOCK_BYTES, Floats, freeze, is_sparse, n_samples, row_blocks, stack
from mercer.samples.engine import EngineSamples, to_engine

# Statistics that differ by less than this fraction of the largest k(x, x) count as equal, since rounding may decide.
_ROUNDING_SHARE = 1e-12
# If that difference is this fraction of the range of the statistics, the test has lost power.
_DECIDING_SHARE = 0.01
# Maximum number of permutations between two progress reports and checks for interrupts.
_MAX_BLOCK = 64


@dataclass(frozen=True, eq=False)
class MMDTest:
    """Result of a two-sample test.

    Attributes
    ----------
    statistic : float
        Unbiased estimate of MMD², which may be negative.
    biased : float
        Biased estimate of MMD²: the squared distance of the sample means in feature space.
    p_value : float
        p-value: (1 + number of permutations with an unbiased statistic at least as large)/(1 + n_permutations).
    permuted : array of shape (n_permutations,)
        Unbiased statistics of the permutations.
    kernel : Kernel
        Kernel with numerical parameters.
    """

    statistic: float
    biased: float
    p_value: float
    permuted: Floats = field(repr=False)
    kernel: Kernel

    def __str__(self) -> str:
        return (
            f"MMD² {self.statistic:.6g} (unbiased), {self.biased:.6g} (biased) with {self.kernel!r}\n"
            f"p = {self.p_value:.4g} by {len(self.permuted):,} permutations"
        )

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))  # called by IPython and notebooks


@shared_docs
def mmd_test(
    X: Any,
    Y: Any,
    *,
    kernel: KernelLike = "rbf",
    degree: int = 3,
    gamma: float | str = "median",
    coef0: float = 0.0,
    n_permutations: int = 1000,
    n_landmarks: int | None = None,
    cache_size: float = 1000,
    verbose: bool = False,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> MMDTest:
    """Test whether two samples come from the same distribution, by the maximum mean discrepancy.

    The test is exact for any sample sizes, and also with landmarks: under equal distributions p ≤ α has probability at
    most α.

    Parameters
    ----------
    X, Y : arrays or CSR matrices of shapes (n, n_features) and (m, n_features), or lists of strings
        The two samples, of at least two points each.
    kernel : str, Kernel or callable, default="rbf"
        Kernel, as in `SVC`. With enough points, a Gaussian detects any difference between distributions; a linear
        kernel detects only a difference of means.
    degree : int, default=3
        Degree of the kernel named "poly"; ignored by all other kernels.
    gamma : float, "median", "scale" or "auto", default="median"
        Kernel coefficient of a kernel given by name. "median" is 1/(2m²) with m the median distance between points of
        both samples.
    coef0 : float, default=0.0
        Constant term of the kernels named "poly" and "sigmoid".
    n_permutations : int, default=1000
        Number B of permutations. The smallest possible p-value is 1/(1 + B).
    %(samples of a space)s

    Returns
    -------
    MMDTest
        Result with the attributes ``p_value``, (1 + number of permutations with an unbiased statistic at least as
        large)/(1 + n_permutations); ``statistic``, the unbiased estimate of MMD², which may be negative; ``biased``,
        the biased estimate: the squared distance of the sample means in feature space; ``permuted``, the unbiased
        statistics of the permutations; and ``kernel``, with numerical parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import mmd_test
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(80, 2)), rng.laplace(scale=np.sqrt(0.5), size=(80, 2))  # equal means and variances
    >>> mmd_test(X, rng.normal(size=(80, 2)), random_state=0).p_value > 0.05
    True
    >>> mmd_test(X, 2 * Y, random_state=0).p_value
    0.000999000999000999
    """
    integer("n_permutations", n_permutations, 1, "the number of permutations that the test compares with")
    reader = SampleReader(
        kernel=kernel,
        degree=degree,
        gamma=gamma,
        coef0=coef0,
        n_landmarks=n_landmarks,
        cache_size=cache_size,
        random_state=random_state,
        n_jobs=n_jobs,
    )
    X, Y = to_engine(X), to_engine(Y)
    n, m = _checked_size(X, "X"), _checked_size(Y, "Y")
    report = Progress(reader, verbose, 1, X, Y).begin("")
    fit = Fit.of(reader, _stack_samples(X, Y, kernel_accepts(kernel)), None, None)
    points = points_of(fit, n_landmarks, 1, report)
    assert fit.kernel is not None
    rng = np.random.default_rng(fit.limits.seed())
    partitions = _PartitionStatistics(points, n, m)
    is_in_X = np.zeros((n + m, 1))
    is_in_X[:n] = 1.0
    observed_statistic, biased_statistic = (float(statistic[0]) for statistic in partitions.statistics(is_in_X))
    permuted_statistics = np.empty(n_permutations)
    for block in row_blocks(n_permutations, max(16 * (n + m), BLOCK_BYTES // _MAX_BLOCK)):
        report(partial("{:,} of {:,} permutations".format, block.start, n_permutations))
        is_in_first = np.zeros((block.stop - block.start, n + m))
        for row in is_in_first:
            row[rng.permutation(n + m)[:n]] = 1.0
        permuted_statistics[block] = partitions.statistics(is_in_first.T)[0]
    if not (math.isfinite(observed_statistic) and np.isfinite(permuted_statistics).all()):
        raise ValueError(f"values of {fit.kernel!r} exceed float64 on these samples; scale them")
    slack = _ROUNDING_SHARE * float(np.abs(points.squares).max())
    n_as_large = int(np.sum(permuted_statistics >= observed_statistic - slack))
    if np.ptp(points.squares) > slack > _DECIDING_SHARE * np.ptp([observed_statistic, *permuted_statistics]):
        warn_user(
            f"values of {fit.kernel!r} are so large compared with their differences that rounding decides this test "
            "and p is too large; subtract the mean of all samples from X and Y, or use a Gaussian",
            UserWarning,
        )
    return MMDTest(
        observed_statistic,
        biased_statistic,
        (1 + n_as_large) / (1 + n_permutations),
        freeze(permuted_statistics),
        fit.kernel,
    )


class _PartitionStatistics:
    """Statistics of partitions of the points into two samples of sizes n and m."""

    def __init__(self, points: Points, n: int, m: int) -> None:
        self._points, self._n, self._m = points, n, m
        self._rows = points.products(np.ones((points.n, 1)))[:, 0]
        self._squares = points.squares

    def statistics(self, is_in_first: Floats) -> tuple[Floats, Floats]:
        """Return the unbiased and biased statistics for each column of ones (first sample) and zeros (second)."""
        n, m = self._n, self._m
        within_x = np.einsum("ib,ib->b", is_in_first, self._points.products(is_in_first))
        sum_from_first, diagonal_x = self._rows @ is_in_first, self._squares @ is_in_first
        sum_between = sum_from_first - within_x
        within_y = float(self._rows.sum()) - sum_from_first - sum_between
        diagonal_y = float(self._squares.sum()) - diagonal_x
        cross = 2 * sum_between / (n * m)
        unbiased = (within_x - diagonal_x) / (n * (n - 1)) + (within_y - diagonal_y) / (m * (m - 1)) - cross
        return unbiased, within_x / n**2 + within_y / m**2 - cross


def _checked_size(X: Any, name: str) -> int:
    """Return the number of points of a sample; raise ValueError if there are fewer than two."""
    n = n_samples(X)
    if n < 2:
        raise ValueError(f"{name} has {n} sample{'s' * (n != 1)}, but a two-sample test needs at least two")
    return n


def _stack_samples(X: Any, Y: Any, accepts: str) -> Any:
    """Return the points of both samples as one array or list; raise ValueError if their features differ."""
    if accepts == "gram":
        raise ValueError(
            "kernel='precomputed' is not available here; give the samples, and the kernel as a function (X, Z) -> "
            "matrix"
        )
    if accepts == "sequences" or isinstance(X, EngineSamples) or isinstance(Y, EngineSamples):
        return stack(X, Y)
    if hasattr(X, "columns") and hasattr(Y, "columns") and list(X.columns) != list(Y.columns):
        raise ValueError(
            f"X has the columns {list(X.columns)!r:.200} and Y {list(Y.columns)!r:.200}: both samples must have the "
            "same columns in the same order"
        )
    if is_sparse(X) or is_sparse(Y):
        return stack(X, Y)
    X, Y = np.asarray(X), np.asarray(Y)
    if X.ndim == 2 and Y.ndim == 2 and X.shape[1] != Y.shape[1]:
        raise ValueError(f"X has {X.shape[1]} features, but Y has {Y.shape[1]}: both samples must have the same ones")
    return np.concatenate([X, Y])
