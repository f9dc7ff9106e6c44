"""Least squares as the most likely function: the squared loss is a likelihood, the penalty ‖f‖² a prior.

With targets y_i normal around f(x_i) with variance σ², and a prior density of f proportional to exp(−‖f‖²/2s),

    log likelihood   −1/(2σ²) Σ (y_i − f(x_i))² − n/2 log 2πσ²
    log posterior    log likelihood − ‖f‖²/(2s) + a number that does not depend on f

so that the most likely function is the minimiser of Σ (y_i − f(x_i))² + λ‖f‖² with λ = σ²/s (Igel, sections 2.1, 2.2).
"""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from mercer.parameters import not_negative, positive
from mercer.theory.risks import losses


def most_likely_variance(y: ArrayLike, f: ArrayLike) -> float:
    """σ² for which the targets y are most likely around the values f: the mean of the squared residuals.

    Parameters
    ----------
    y : array
        Targets.
    f : array
        The function at their samples.

    Examples
    --------
    >>> from mercer.theory import most_likely_variance
    >>> most_likely_variance([1.0, 2.0], [1.5, 2.5])
    0.25
    """
    return float(losses(y, f, loss="squared").mean())


def log_likelihood(y: ArrayLike, f: ArrayLike, *, variance: float) -> float:
    """The log density of targets y that are normal around the values f, with this variance each.

    Parameters
    ----------
    y, f : arrays of n numbers
        Targets, and the function at their samples.
    variance : float > 0
        σ² of the noise.

    Examples
    --------
    >>> from mercer.theory import log_likelihood
    >>> round(log_likelihood([1.0, 2.0], [1.5, 2.5], variance=0.25), 4)
    -1.4516
    """
    spread = positive("variance", variance)
    squares = losses(y, f, loss="squared")
    return -0.5 * (float(squares.sum()) / spread + len(squares) * math.log(2.0 * math.pi * spread))


def log_posterior(y: ArrayLike, f: ArrayLike, *, norm: float, variance: float, scale: float = 1.0) -> float:
    """The log of likelihood times prior, exp(−‖f‖²/2s), without the part that is the same for every f.

    Parameters
    ----------
    y, f : arrays of n numbers
        Targets, and the function at their samples.
    norm : float
        ‖f‖ in the kernel's space.
    variance : float > 0
        σ² of the noise.
    scale : float > 0
        s: a priori f has the covariance s·k. The maximum is the fit of least squares with λ = σ²/s.

    Examples
    --------
    >>> from mercer.theory import log_likelihood, log_posterior
    >>> y, f = [1.0, 2.0], [1.5, 2.5]
    >>> round(log_posterior(y, f, norm=2.0, variance=0.25) - log_likelihood(y, f, variance=0.25), 9)
    -2.0
    """
    return log_likelihood(y, f, variance=variance) - not_negative("norm", norm) ** 2 / (2.0 * positive("scale", scale))
