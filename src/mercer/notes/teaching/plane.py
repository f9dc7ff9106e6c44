"""A hyperplane (w, b) that you choose: its margins and its picture (Igel, section 4.1.1; Li, section 1)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from mercer.problems.margins import Margins
from mercer.runtime.parameters import finite
from mercer.samples.arrays import Floats, freeze, host
from mercer.samples.labels import read_labels, read_signs

if TYPE_CHECKING:
    from mercer.inspection.displays import DecisionDisplay


@dataclass(frozen=True, eq=False)
class Plane:
    """Hyperplane ⟨w, x⟩ + b = 0, with the margins of samples and a picture.

    Parameters
    ----------
    w : array of shape (n_features,)
        Normal vector; it points to the positive side.
    b : float, default=0.0
        Bias.

    Examples
    --------
    >>> from mercer.notes.teaching import Plane
    >>> margins = Plane([3.0, 4.0], b=-5.0).margins([[3.0, 4.0], [1.0, 0.0]], [1, -1])
    >>> margins.functional_margins, margins.geometric_margins, margins.slacks
    (array([20.,  2.]), array([4. , 0.4]), array([0., 0.]))
    """

    w: ArrayLike
    b: float = 0.0

    def __post_init__(self) -> None:
        w = np.array(self.w, dtype=np.float64)
        if w.ndim != 1 or not np.isfinite(w).all() or not w.any():
            raise ValueError(f"w={self.w!r} must be a vector of finite numbers that are not all 0: it is the normal")
        object.__setattr__(self, "w", freeze(w))
        finite("b", self.b)

    def decision_function(self, X: ArrayLike) -> Floats:
        """Compute ⟨w, x⟩ + b for each sample."""
        samples, w = np.asarray(host(X), dtype=np.float64), np.asarray(self.w)
        if samples.ndim != 2 or samples.shape[1] != len(w):
            raise ValueError(f"X must have {len(w)} columns, one for each entry of w, not the shape {samples.shape}")
        return np.asarray(samples @ w + self.b)

    def margins(self, X: ArrayLike, y: ArrayLike) -> Margins:
        """Compute margins, distances and slacks of samples.

        Parameters
        ----------
        X : array of shape (n, n_features)
            Samples.
        y : array of shape (n,)
            Labels of two classes; the larger one belongs on the positive side. Of −1 and +1 one may be missing.

        Returns
        -------
        Margins
            Margins as from `SVC.margins`: `functional_margins`, `geometric_margins`, `slacks`, `errors`, `rho` and so
            on, without what needs α.
        """
        values = self.decision_function(X)
        signs = read_signs(y)
        if signs.shape != values.shape:
            raise ValueError(f"y must have a label for each of {len(values)} samples, but it has {len(signs)}")
        negative, positive = read_labels(y)[0] if len(np.unique(signs)) == 2 else (-1, 1)
        length = math.hypot(*np.asarray(self.w))
        return Margins(
            classes=(negative, positive),
            rows=np.arange(len(values)),
            decision_values=values,
            signs=signs,
            rkhs_norm=length,
            b=float(self.b),
            alpha_sum=None,
            inverse_rho_squared={"|w|²": length * length},
        )

    def plot(self, X: ArrayLike, y: ArrayLike, **options: Any) -> DecisionDisplay:
        """Plot the samples with the lines ⟨w, x⟩ + b = 0 and, dashed, = ±1; see `DecisionDisplay.from_estimator`."""
        from mercer.inspection.displays import DecisionDisplay

        classes, _ = read_labels(y)
        rule = SimpleNamespace(
            classes_=classes,
            decision_function=self.decision_function,
            predict=lambda Z: classes[(self.decision_function(Z) >= 0).astype(np.intp)],
        )
        return DecisionDisplay.from_estimator(rule, X, y, **options)
