"""`trace`: a textbook algorithm on a small two-class problem, step by step."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from mercer.data.labels import read_signs
from mercer.fitting.families.shared_docs import shared_docs
from mercer.kernels import as_kernel
from mercer.parameters import integer, one_of, positive
from mercer.teaching.pairs import RULES, run_li, run_smo
from mercer.teaching.record import SmallProblem, Trace
from mercer.teaching.samples import run_pegasos, run_perceptron
from mercer.teaching.sets import run_active_set, run_decomposition, run_gradient_projection

METHODS = ("smo", "li", "decomposition", "active set", "gradient projection", "perceptron", "pegasos")
_BY_PAIRS, _BY_SAMPLES = ("smo", "li"), ("perceptron", "pegasos")
# Every step is kept with its α, and costs a product with K.
_MOST_SAMPLES = 1000
_MOST_STEPS, _PEGASOS_PASSES = 100_000, 30


@shared_docs
def trace(
    X: Any,
    y: Any,
    *,
    kernel: Any = "rbf",
    degree: Any = 3,
    gamma: Any = "scale",
    coef0: Any = 0.0,
    C: float = 1.0,
    method: str = "smo",
    rule: str = "second order",
    working_set_size: int = 10,
    tol: float = 1e-6,
    max_steps: int | None = None,
    random_state: int = 0,
) -> Trace:
    """Solve the soft margin as a textbook does, and record every step.

    Parameters
    ----------
    X : array, CSR matrix or list
        At most 1,000 samples; the matrix of kernel values for kernel="precomputed".
    y : array
        Their labels, of two classes; the larger one is the positive one, as in `SVC`.
    %(kernel)s
    C : float, default=1.0
        The price of slack; inf is the hard margin, which "pegasos" cannot do. The perceptron has none. Samples that
        cannot be separated have no hard margin: the dual value then grows until `max_steps`.
    method : {"smo", "li", "decomposition", "active set", "gradient projection", "perceptron", "pegasos"}, default="smo"
        Igel's algorithm 4.2; Li's form of it, by errors E_i, clipped to [L, H] and with b from the pair; Igel's
        algorithm 4.1 for working sets of any size; two general methods for quadratic programs (Li, section 2); and two
        that take one sample at a time and have no bias: the perceptron (Igel, section 4.1.1), and stochastic gradients
        (Shalev-Shwartz), which approach the optimum like 1/steps.
    rule : {"second order", "most violating", "maximum gain"}, default="second order"
        How "smo" and "li" choose the pair.
    working_set_size : int, default=10
        Of "decomposition".
    tol : float, default=1e-6
        It ends when max y_ig_i over I_up exceeds min y_jg_j over I_down by no more. The perceptron ends when it makes
        no more mistakes.
    max_steps : int, optional
        By default 100,000, and for "pegasos" 30 for each sample.
    random_state : int, default=0
        What "pegasos" draws by.

    Returns
    -------
    Trace
        Print it for a table; `to_frame()` is one too.

    Examples
    --------
    >>> from mercer import trace
    >>> X, y = [[-2.0], [-1.0], [1.0], [2.0]], [-1, -1, 1, 1]
    >>> print(trace(X, y, kernel="linear", C=10.0))
     step       chosen         size         gain           dual   violation           b
        1          2 1         0.5           0.5            0.5           0           0
    smo, second order: converged after 1 steps
    """
    one_of("method", method, METHODS)
    one_of("rule", rule, RULES)
    integer("working_set_size", working_set_size, 2, "an equality leaves no room for fewer variables")
    if max_steps is not None:
        integer("max_steps", max_steps, 1, "the number of steps")
    integer("random_state", random_state, 0, "it chooses what is drawn")
    positive("tol", tol)
    signs = read_signs(y)
    bound = as_kernel(kernel, degree=degree, gamma=gamma, coef0=coef0).bind(X)
    K = np.asarray(bound(X), dtype=np.float64)
    if len(K) > _MOST_SAMPLES or K.shape != (len(signs), len(signs)):
        raise ValueError(
            f"trace is for at most {_MOST_SAMPLES} samples with a label each, but K has the shape {K.shape} and y "
            f"{len(signs)} labels; mercer.SVC solves larger problems"
        )
    price = np.inf if method == "perceptron" or np.inf == C else positive("C", C)
    if method == "pegasos" and price == np.inf:
        raise ValueError("C=inf is the hard margin, but the steps of pegasos are C·n/t long: give it a finite C")
    problem = SmallProblem(K, signs, price, bias=method not in _BY_SAMPLES)
    found = Trace(method, rule if method in _BY_PAIRS else "", problem)
    most = max_steps or (_PEGASOS_PASSES * problem.n if method == "pegasos" else _MOST_STEPS)
    run: dict[str, Callable[[Trace, float, int], None]] = {
        "smo": run_smo,
        "li": run_li,
        "decomposition": partial(run_decomposition, size=working_set_size),
        "active set": run_active_set,
        "gradient projection": run_gradient_projection,
        "perceptron": run_perceptron,
        "pegasos": partial(run_pegasos, seed=random_state),
    }
    run[method](found, tol, most)
    return found
