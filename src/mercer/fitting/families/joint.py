"""What the joint multi-class machines add to the classifier: their task, and their coefficients as it shows them."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import Floats, freeze
from mercer.data.merging import Merged
from mercer.data.table import Table
from mercer.fitting.pipeline.task import Solved
from mercer.problems.multiclass import JointProblem

# Whether the multipliers of a sample share its bound.
_SHARED = {"crammer-singer": True, "weston-watkins": False, "crammer_singer": True, "weston_watkins": False}
JOINT = tuple(_SHARED)


def joint_problem(merged: Merged, C: Floats, n_classes: int, multiclass: str, bias: Any) -> JointProblem:
    """One problem over all samples and classes; `C` holds one bound per merged sample."""
    return JointProblem(
        y=merged.y.astype(np.intp),
        C=C,
        n_classes=n_classes,
        shared=_SHARED[multiclass],
        shift=float(bias == "regularized"),
        balanced=bias is True,
    )


def joint_table(solved: Solved) -> Table:
    """β of every merged sample (row) for every class (column)."""
    return Table.of_array(solved.solution.beta)


def joint_norms(solved: Solved) -> Any:
    """‖w_k‖ of each class; of f_2 − f_1 for two classes."""
    assert solved.solution.u is not None
    energy = np.sum(outputs(solved.solution.beta.T) * outputs(solved.solution.u.T), axis=1)
    norms = np.sqrt(np.maximum(energy, 0.0))
    return float(norms[0]) if len(norms) == 1 else freeze(norms)


def outputs(values: Any) -> Any:
    """A column per class, of coefficients or biases; for two classes the one of f = f_2 − f_1, whose sign decides."""
    if isinstance(values, Table):
        return values if values.n_columns > 2 else Table.of_array(outputs(values.toarray().T).T)
    values = np.asarray(values)
    return values if len(values) > 2 else values[[1]] - values[[0]]
