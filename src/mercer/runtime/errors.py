"""The exceptions and warnings that only mercer raises, and the function through which it warns."""

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
    """A model file that is damaged, truncated, from a newer version, or not a model file at all."""


class ModelVersionWarning(UserWarning):
    """A model file holds parts of scikit-learn that another minor version of it wrote."""


class GuessWarning(UserWarning):
    """What a column of a table holds was guessed, and the guess leaves something out or changes what it means."""


class NotSeparableError(ValueError):
    """No hard margin: the convex hulls of the classes touch in feature space, or could not be proven apart in time.

    Without b it is the origin that lies in, or could not be proven outside of, the hull of y_i φ(x_i).

    Attributes
    ----------
    verdict : "not separable" or "undecided"
    margin_bounds : (float, float)
        The geometric margin is proven to lie between these.
    combinations : ((rows, weights), (rows, weights)) or None
        A convex combination of samples of each class; the distance of these two points in feature space gives the
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
    """A kernel has no derivative at these samples, or none that is known; the message says which and where."""


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

PROBABILITIES = (
    "{name}(...).fit(X, y).calibrate(X, y) learns them from samples left out, as sklearn.calibration's "
    "CalibratedClassifierCV does fold by fold, and mercer.KernelMachine(loss='logistic') is trained for them"
)

_OWN = str(Path(__file__).parent) + os.sep


# Warnings that wait for the end of what calls many fits, which then tells each of them once.
_HELD: ContextVar[dict[tuple[str, type[Warning]], None] | None] = ContextVar("_HELD", default=None)


@contextmanager
def held_warnings() -> Iterator[dict[tuple[str, type[Warning]], None]]:
    """Collect what mercer would warn of in this block, each text and category once."""
    held: dict[tuple[str, type[Warning]], None] = {}
    token = _HELD.set(held)
    try:
        yield held
    finally:
        _HELD.reset(token)


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the user's line that called mercer, directly or through scikit-learn's pipelines and searches."""
    held = _HELD.get()
    if held is not None:
        held[message, category] = None
        return
    loaded = [sys.modules[name].__file__ for name in ("sklearn", "joblib") if name in sys.modules]
    libraries = (_OWN, *(str(Path(file).parent) + os.sep for file in loaded if file is not None))
    frame: FrameType | None = sys._getframe(1)
    level, outside = 2, 0
    while frame is not None and frame.f_code.co_filename.startswith(libraries):
        if not outside and not frame.f_code.co_filename.startswith(_OWN):
            outside = level
        frame, level = frame.f_back, level + 1
    # A worker process of joblib has no such line: there the first line outside mercer is shown.
    warnings.warn(message, category, stacklevel=level if frame is not None else outside or 2)
