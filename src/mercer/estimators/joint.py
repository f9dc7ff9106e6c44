"""What the joint multi-class machines add to the classifier: their task, and their coefficients as it shows them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.arrays import Floats
from mercer.estimators.machine import Solved, Task
from mercer.estimators.merging import Merged
from mercer.problems.multiclass import JointProblem
from mercer.solvers.joint import solve_joint

# Whether the multipliers of a sample share its bound.
_SHARED = {"crammer-singer": True, "weston-watkins": False}
JOINT = tuple(_SHARED)


def joint_task(merged: Merged, C: Floats, n_classes: int, multiclass: str, bias: Any) -> Task:
    """One problem over all samples and classes; `C` holds one bound per merged sample."""
    problem = JointProblem(
        y=merged.y.astype(np.intp),
        C=C,
        n_classes=n_classes,
        shared=_SHARED[multiclass],
        shift=float(bias == "regularized"),
        balanced=bias is True,
    )
    return Task("all classes", np.arange(problem.n), problem, solve_joint)


def joint_table(solved: Solved) -> sp.csr_array:
    """β of every merged sample (row) for every class (column)."""
    return sp.csr_array(solved.solution.beta)


def outputs(coefficients: Any) -> Any:
    """One column per class; for two classes the one column f = f_2 − f_1, whose sign decides."""
    return coefficients if coefficients.shape[-1] > 2 else coefficients[..., [1]] - coefficients[..., [0]]
