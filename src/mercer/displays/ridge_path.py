"""The picture of a path over λ."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from mercer.displays.drawing import colours, frame, panels_for
from mercer.estimators.ridge_path import RidgePath


class RidgePathDisplay:
    """The picture of a RidgePath: leave-one-out error, coefficient norm and degrees of freedom against λ.

    Parameters
    ----------
    path : RidgePath
        What to draw.

    Attributes
    ----------
    axes_ : array of three matplotlib axes
    figure_ : matplotlib figure
    lines_ : list of lists of lines
        One list per axis.
    """

    def __init__(self, path: RidgePath) -> None:
        self.path = path

    @classmethod
    def from_estimator(cls, estimator: Any, axes: Any = None) -> Self:
        """The path of a fitted machine, drawn.

        Parameters
        ----------
        estimator : RLSRegressorCV or RLSClassifierCV
            Fitted.
        axes : three matplotlib axes, optional
            Where to draw; default: a new figure.
        """
        return cls(estimator.path_).plot(axes)

    def plot(self, axes: Any = None) -> Self:
        """Draw into three axes, or into a new figure.

        Parameters
        ----------
        axes : three matplotlib axes, optional
            Where to draw; default: a new figure.
        """
        axes = panels_for(axes, "a path", (1, 3), (12, 3.5))
        path = self.path
        shown = (
            (np.sqrt(path.loo_errors), "leave-one-out error (rms)"),
            (path.norms, "norm of f"),
            (path.dof[:, None], "effective degrees of freedom"),
        )
        self.lines_ = []
        for axis, (values, title) in zip(axes, shown, strict=True):
            self.lines_.append(axis.semilogx(path.lams, values))
            for line, colour in zip(self.lines_[-1], colours(values.shape[1]), strict=True):
                line.set_color(colour)
            chosen = axis.axvline(path.lam, color="0.6", linestyle=":", label=f"λ = {path.lam:.3g}")
            axis.set(xlabel="λ", title=title)
        axes[0].legend(handles=[chosen], fontsize="small")
        self.axes_, self.figure_ = axes, axes[0].figure
        return self

    def to_frame(self) -> Any:
        """A pandas DataFrame with one line per λ; of several outputs, errors and norms have a column each."""
        path = self.path
        columns: dict[str, Any] = {"lam": path.lams, "dof": path.dof, "score": path.scores}
        for name, table in (("loo_error", path.loo_errors), ("gcv", path.gcv), ("norm", path.norms)):
            outputs = table.shape[1]
            columns |= {name if outputs == 1 else f"{name} {k}": table[:, k] for k in range(outputs)}
        return frame("RidgePathDisplay.to_frame", columns)
