"""What every λ would have given, as an object and as a picture."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Self

import numpy as np

from mercer.arrays import Floats, freeze
from mercer.optional import require


@dataclass(frozen=True, eq=False)
class RidgePath:
    """Least squares for a whole grid of λ, from one decomposition.

    Attributes
    ----------
    lams : array of shape (n_lams,)
    loo_errors, gcv, norms : arrays of shape (n_lams, n_outputs)
        Mean squared leave-one-out residual, generalised cross-validation, and ‖f‖ in the kernel's space.
    dof : array of shape (n_lams,)
        Effective degrees of freedom: the trace of the matrix that maps y to f.
    scores : array of shape (n_lams,)
        What was minimised to choose λ.
    criterion : str
        "loo", "gcv" or, for classifiers, "mistakes".
    params : dict
        The kernel's parameters, where a grid of them was searched.
    """

    lams: Floats
    loo_errors: Floats
    gcv: Floats
    norms: Floats
    dof: Floats
    scores: Floats
    criterion: str
    params: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for part in fields(self):
            freeze(getattr(self, part.name))

    @property
    def best(self) -> int:
        """The index of the chosen λ; of equally good ones the largest, which gives the simplest f."""
        return int(np.flatnonzero(self.scores == self.scores.min())[-1])

    @property
    def lam(self) -> float:
        """The chosen λ."""
        return float(self.lams[self.best])

    def plot(self, axes: Any = None) -> RidgePathDisplay:
        """Error, norm and degrees of freedom against λ; needs matplotlib."""
        return RidgePathDisplay(self).plot(axes)


class RidgePathDisplay:
    """The picture of a RidgePath: leave-one-out error, coefficient norm and degrees of freedom against λ.

    Attributes
    ----------
    path : RidgePath
    axes_ : array of three matplotlib axes
    figure_ : matplotlib figure
    lines_ : list of lists of lines, one list per axis
    """

    def __init__(self, path: RidgePath) -> None:
        self.path = path

    @classmethod
    def from_estimator(cls, estimator: Any, axes: Any = None) -> Self:
        """The path of a fitted RLSRegressorCV or RLSClassifierCV, drawn."""
        return cls(estimator.path_).plot(axes)

    def plot(self, axes: Any = None) -> Self:
        """Draw into three axes, or into a new figure."""
        if axes is None:
            _, axes = require("matplotlib.pyplot", "plotting a path").subplots(1, 3, figsize=(12, 3.5), layout="tight")
        axes = np.asarray(axes).ravel()
        if len(axes) != 3:
            raise ValueError(f"a path is drawn into 3 axes, but {len(axes)} were given")
        path = self.path
        shown = (
            (np.sqrt(path.loo_errors), "leave-one-out error (root mean square)"),
            (path.norms, "norm of f"),
            (path.dof[:, None], "effective degrees of freedom"),
        )
        self.lines_ = []
        for axis, (values, title) in zip(axes, shown, strict=True):
            self.lines_.append(axis.semilogx(path.lams, values))
            axis.axvline(path.lam, color="0.6", linestyle=":")
            axis.set(xlabel="λ", title=title)
        self.axes_, self.figure_ = axes, axes[0].figure
        return self
