"""What every λ would have given."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from importlib import import_module
from typing import TYPE_CHECKING, Any

from mercer.arrays import Floats, freeze
from mercer.solvers.least_squares.path import best_of

if TYPE_CHECKING:
    from mercer.displays import RidgePathDisplay


@dataclass(frozen=True, eq=False)
class RidgePath:
    """Least squares for a whole grid of λ, from one decomposition.

    Attributes
    ----------
    lams : array of shape (n_lams,)
        The values of λ.
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
        return best_of(self.scores)

    @property
    def lam(self) -> float:
        """The chosen λ."""
        return float(self.lams[self.best])

    def plot(self, axes: Any = None) -> RidgePathDisplay:
        """Error, norm and degrees of freedom against λ; needs matplotlib.

        Parameters
        ----------
        axes : three matplotlib axes, optional
            Where to draw; default: a new figure.
        """
        # Pictures are made of estimators: this room lies below theirs.
        display: type[RidgePathDisplay] = import_module("mercer.displays").RidgePathDisplay
        return display(self).plot(axes)
