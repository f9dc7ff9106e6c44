"""Coefficients and b trained again on fewer vectors, with the machine's own loss (Tang and Mazzoni 2006).

In the coordinates L⁻¹k(Z, x) of the span of Z the machine is a linear one, whose ½‖w'‖² is that of the kernel's space:
the estimator itself, with a linear kernel, trains it and proves it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from mercer.arrays import Floats
from mercer.compression.matching import Samples
from mercer.compression.span import Span
from mercer.compression.target import Target
from mercer.errors import NotSeparableError
from mercer.expansion import Expansion
from mercer.gram.linear_rows import weight_vectors


def retrained(machine: Any, target: Target, span: Span, samples: Samples) -> tuple[Floats, Floats] | None:
    """Coordinates of w' (a column for each output) and b'; None where the loss cannot be minimised in the span."""
    # Another problem in these coordinates: f asks for k(x, x) itself, or landmarks would be chosen again.
    if machine.F_LESS_OWN or "n_landmarks" in machine.get_params(deep=False):
        return None
    linear = clone(machine).set_params(kernel="linear", **_settings(machine))
    features = span.coordinates(samples.X)
    try:
        linear.fit(features, samples.y, sample_weight=samples.weight)
    except NotSeparableError:  # the hard margin is lost with the vectors
        return None
    if hasattr(machine, "classes_") and not np.array_equal(linear.classes_, machine.classes_):
        raise ValueError(
            f"y holds the classes {linear.classes_.tolist()}, but the machine was trained on "
            f"{machine.classes_.tolist()}; give the samples that it was trained on"
        )
    found: Expansion = linear._expansion_
    if len(found.b) != len(machine.intercept_):
        raise ValueError(f"y has {len(found.b)} outputs, but the machine has {len(machine.intercept_)}")
    return weight_vectors(found.vectors, found.coefficients), np.asarray(found.b)


def _settings(machine: Any) -> dict[str, Any]:
    """What else has to change: the solver, which may be for matrices only, and λ, which was chosen before."""
    known = machine.get_params(deep=False)
    settings: dict[str, Any] = {"solver": "auto"} if "solver" in known else {}
    if "warm_start" in known:
        settings["warm_start"] = False
    if "lams" in known:
        settings |= {"lams": [machine.lam_], "grid": None}
    return settings
