"""`trace`: a textbook algorithm on a small two-class problem, step by step."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.data.labels import read_labels
from mercer.kernels import as_kernel
from mercer.parameters import integer, one_of, positive
from mercer.teaching.pairs import RULES, run_li, run_smo
from mercer.teaching.record import SmallProblem, Trace
from mercer.teaching.sets import run_active_set, run_decomposition, run_gradient_projection

METHODS = ("smo", "li", "decomposition", "active set", "gradient projection")
_BY_PAIRS = ("smo", "li")
# Every step is kept with its α, and costs a product with K.
_MOST_SAMPLES = 1000


def trace(
    kernel: Any,
    X: Any,
    y: Any,
    C: float = 1.0,
    *,
    method: str = "smo",
    rule: str = "second order",
    working_set_size: int = 10,
    tol: float = 1e-6,
    max_steps: int = 100_000,
) -> Trace:
    """Solve the soft margin as a textbook does, and record every step.

    Parameters
    ----------
    kernel : Kernel, str or callable; "precomputed" if X is the matrix of kernel values
    X, y : at most 1,000 samples of two classes
    C : float
    method : {"smo", "li", "decomposition", "active set", "gradient projection"}
        Igel's algorithm 4.2; Li's form of it, by errors E_i, clipped to [L, H] and with b from the pair; Igel's
        algorithm 4.1 for working sets of any size; and two general methods for quadratic programs (Li, section 2).
    rule : {"second order", "most violating", "maximum gain"}
        How "smo" and "li" choose the pair.
    working_set_size : int
        Of "decomposition".
    tol : float
        It ends when max y_ig_i over I_up exceeds min y_jg_j over I_down by no more.
    max_steps : int

    Returns
    -------
    Trace
        Print it for a table; `to_frame()` is one too.

    Examples
    --------
    >>> from mercer import trace
    >>> X, y = [[-2.0], [-1.0], [1.0], [2.0]], [-1, -1, 1, 1]
    >>> print(trace("linear", X, y, C=10.0))
     step       chosen         size         gain           dual   violation           b
        1          2 1         0.5           0.5            0.5           0           0
    smo, second order: converged after 1 steps
    """
    one_of("method", method, METHODS)
    one_of("rule", rule, RULES)
    integer("working_set_size", working_set_size, 2, "an equality leaves no room for fewer variables")
    integer("max_steps", max_steps, 1, "the number of steps")
    positive("tol", tol)
    labels, codes = read_labels(y)
    if len(labels) != 2:
        raise ValueError(f"trace shows problems of two classes, but y has {len(labels)}: {list(labels)[:5]}")
    bound = as_kernel(kernel).bind(X)
    K = np.asarray(bound(X), dtype=np.float64)
    if len(K) > _MOST_SAMPLES or K.shape != (len(codes), len(codes)):
        raise ValueError(
            f"trace is for at most {_MOST_SAMPLES} samples with a label each, but K has the shape {K.shape} and y "
            f"{len(codes)} labels; mercer.SVC solves larger problems"
        )
    problem = SmallProblem(K, np.where(codes == 1, 1.0, -1.0), positive("C", C))
    found = Trace(method, rule if method in _BY_PAIRS else "", problem)
    if method == "decomposition":
        run_decomposition(found, tol, max_steps, working_set_size)
    else:
        run = {"smo": run_smo, "li": run_li, "active set": run_active_set}.get(method, run_gradient_projection)
        run(found, tol, max_steps)
    return found
