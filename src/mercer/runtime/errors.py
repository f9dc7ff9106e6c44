"""Exceptions and warnings of mercer, and the function that issues its warnings."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import FrameType
from typing import Any

__all__ = [
    "GuessWarning",
    "MissingExtraError",
    "ModelFormatError",
    "ModelVersionWarning",
    "NonPSDKernelWarning",
    "NotDifferentiableError",
    "NotSeparableError",
    "SingularSystemWarning",
]


class ModelFormatError(ValueError):
    """Raised for a model file that is damaged, truncated, from a newer version, or not a model file at all."""


class ModelVersionWarning(UserWarning):
    """Issued for a model file whose scikit-learn parts were written by another minor version of scikit-learn."""


class GuessWarning(UserWarning):
    """Issued where the type of a table's column was guessed, and the guess drops values or changes their meaning."""


class NotSeparableError(ValueError):
    """Raised if there is no hard margin: the classes' convex hulls touch in feature space, or were not proven apart.

    Without b the condition is that the origin lies in the convex hull of the points y_i φ(x_i), or could not be proven
    to lie outside.

    Attributes
    ----------
    verdict : {"not separable", "undecided"}
        "not separable" if that is proven, "undecided" if the limits were met before a proof.
    margin_bounds : (float, float)
        Proven lower and upper bound on the geometric margin.
    combinations : ((rows, weights), (rows, weights)) or None
        A convex combination of samples of each class; the distance between these two points in feature space gives the
        upper bound. Without b the weights of both classes together add up to 1.
    rows : list of arrays
        Rows that hold the same sample with both labels, if that is the reason.
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


class NotDifferentiableError(ValueError):
    """Raised if a kernel has no derivative at a pair of samples, or no known one; the message names the pair."""


class NonPSDKernelWarning(UserWarning):
    """Issued if the kernel matrix has a negative eigenvalue: the fit is a stationary point, not a proven optimum."""


class SingularSystemWarning(UserWarning):
    """Issued if K + λI is numerically singular; the fit is the least-norm solution, and its rank is reported."""


class MissingExtraError(ImportError):
    """Raised if an optional dependency is not installed; the message names the extra of mercer that installs it."""


INDEFINITE = (
    "{kernel} is not positive semi-definite on these samples: K has a negative eigenvalue. The fit is a "
    "stationary point, not a proven optimum, and its certificate says so; use a positive definite kernel for a proof"
)

PROBABILITIES = (
    "{name}(...).fit(X, y).calibrate(X, y) learns them from held-out samples, as sklearn.calibration's "
    "CalibratedClassifierCV does fold by fold, and mercer.KernelMachine(loss='logistic') is trained for them"
)

_PACKAGE_FOLDER = str(Path(__file__).parents[1]) + os.sep


Warned = tuple[str, type[Warning]]  # message and category of a warning

# Warnings that a call of many fits, such as a search, collects in order to issue each of them once at its end.
_COLLECTED: ContextVar[dict[Warned, None] | None] = ContextVar("_COLLECTED", default=None)


@contextmanager
def collect_warnings() -> Iterator[dict[Warned, None]]:
    """Collect the warnings that mercer issues in this block instead of showing them, each message and category once."""
    warnings_seen: dict[Warned, None] = {}
    token = _COLLECTED.set(warnings_seen)
    try:
        yield warnings_seen
    finally:
        _COLLECTED.reset(token)


def warn_user(message: str, category: type[Warning]) -> None:
    """Issue a warning at the user's line that called mercer, directly or through scikit-learn's meta-estimators."""
    collected = _COLLECTED.get()
    if collected is not None:
        collected[message, category] = None
        return
    library_files = [sys.modules[name].__file__ for name in ("sklearn", "joblib") if name in sys.modules]
    libraries = (_PACKAGE_FOLDER, *(str(Path(file).parent) + os.sep for file in library_files if file is not None))
    frame: FrameType | None = sys._getframe(1)
    level, first_level_outside = 2, 0
    while frame is not None and frame.f_code.co_filename.startswith(libraries):
        if not first_level_outside and not frame.f_code.co_filename.startswith(_PACKAGE_FOLDER):
            first_level_outside = level
        frame, level = frame.f_back, level + 1
    # In a worker process of joblib no line of the user is on the stack: there the first line outside mercer is named.
    warnings.warn(message, category, stacklevel=level if frame is not None else first_level_outside or 2)
