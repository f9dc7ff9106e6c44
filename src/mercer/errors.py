"""The exceptions and warnings that only mercer raises; everything else is a ValueError or scikit-learn's own."""

from __future__ import annotations

from typing import Any


class ModelFormatError(ValueError):
    """A model file that is damaged, truncated, from a newer version, or no model file at all."""


class NotSeparableError(ValueError):
    """No hard margin: the classes' convex hulls meet in feature space, or nothing else could be proven in time.

    Attributes
    ----------
    verdict : "not separable" or "undecided"
    margin_bounds : (float, float)
        The geometric margin is proven to lie between these.
    combinations : ((rows, weights), (rows, weights)) or None
        A convex combination of samples of each class; the two points they make in feature space are as close as
        the upper bound says.
    rows : list of arrays
        Rows that hold the same sample with both labels, where that is the reason.
    """

    def __init__(
        self,
        message: str,
        verdict: str = "not separable",
        margin_bounds: tuple[float, float] = (0.0, 0.0),
        combinations: Any = None,
        rows: Any = (),
    ) -> None:
        super().__init__(message)
        self.verdict = verdict
        self.margin_bounds = margin_bounds
        self.combinations = combinations
        self.rows = list(rows)


class NonPSDKernelWarning(UserWarning):
    """The kernel matrix has a negative eigenvalue: the fit is a stationary point, not a proven optimum."""


class SingularSystemWarning(UserWarning):
    """K + λI is singular to rounding: the solution of least norm was taken, and the effective rank is reported."""


class MissingExtraError(ImportError):
    """An optional dependency is not installed; the message names the extra that brings it."""


INDEFINITE = (
    "{kernel} is not positive semi-definite on these samples: K has a negative eigenvalue. The fit is a "
    "stationary point, not a "
    "proven optimum, and its certificate says so; use a positive definite kernel for a proof"
)
