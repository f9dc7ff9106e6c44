"""The exceptions and warnings that only mercer raises, and the one way to warn; all else is a ValueError or
scikit-learn's own."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from types import FrameType
from typing import Any

import joblib
import sklearn


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
    "stationary point, not a proven optimum, and its certificate says so; use a positive definite kernel for a proof"
)

_OWN = str(Path(__file__).parent) + os.sep
_LIBRARIES = (_OWN, *(str(Path(module.__file__).parent) + os.sep for module in (sklearn, joblib)))


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the line of whoever called mercer, straight or through scikit-learn's pipelines and searches."""
    frame: FrameType | None = sys._getframe(1)
    level, outside = 2, 0
    while frame is not None and frame.f_code.co_filename.startswith(_LIBRARIES):
        if not outside and not frame.f_code.co_filename.startswith(_OWN):
            outside = level
        frame, level = frame.f_back, level + 1
    # A worker of joblib's has no such line: there the first one outside of mercer stands for it.
    warnings.warn(message, category, stacklevel=level if frame is not None else outside or 2)
