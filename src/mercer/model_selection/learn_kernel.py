"""Learn the parameters of a kernel by gradient search on a criterion that needs one fit.

    "likelihood"     log p(y) of the Gaussian process with noise lam (`GaussianProcessRegressor`), maximised
    "loo"            the exact leave-one-out error of least squares, Σ w_i r_i²/Σw with r_i = c_i/G_ii, c = GY, where
                     G = A⁻¹, or A⁻¹ − A⁻¹11'A⁻¹/1'A⁻¹1 with a bias, and A = K + lam W⁻¹
    "radius-margin"  R²‖w‖² of SVC(slack="l2"): at most 4R²‖w‖² training samples are errors when left out (Vapnik;
                     Chapelle and others, 2002), in the feature space of K + diag(1/C_i), which separates them
    "alignment"      the alignment of the kernel with the targets, maximised

The chain rule gives the derivatives by the kernel's parameters from those by the entries of K. With a_i =
2w_ir_i/(ΣwG_ii) and b_i = a_ir_i, the derivative of "loo" by K is G diag(b)G − Gac'. That of "radius-margin" is
‖w‖²(diag β − ββ') − R²αα', where w = Σα_iφ(x_i), and Σβ_iφ(x_i) is the centre of the smallest ball.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from mercer.estimators.gaussian_process.process import GaussianProcess
from mercer.kernels import Kernel
from mercer.kernels.names import KernelLike, as_kernel
from mercer.model_selection.alignment import alignment, target_columns
from mercer.places import gram_for
from mercer.problems.classification import squared_soft_margin
from mercer.problems.dual_problem import DualProblem
from mercer.runtime.parameters import one_of, positive
from mercer.runtime.threads import effective_n_threads
from mercer.samples.arrays import Floats
from mercer.samples.checks import check_same_length, outputs, refuse_no_weight, weights
from mercer.samples.engine import on_host
from mercer.samples.labels import read_signs
from mercer.samples.matrices import as_matrix
from mercer.solvers.dual.certified import solve_certified
from mercer.solvers.parameter_search import search_parameters
from mercer.solvers.solution import Stop

LEARN_CRITERIA: Final = ("likelihood", "loo", "radius-margin", "alignment")
_STOP = Stop(tol=1e-7, max_iter=10_000_000)


@dataclass(frozen=True, eq=False)
class LearntKernel:
    """A kernel whose parameters were learnt by gradient search.

    Attributes
    ----------
    kernel : Kernel
        Kernel with the learnt parameters.
    numbers : dict
        lam or C, learnt or as given.
    criterion : str
        Name of the criterion.
    value : float
        Criterion at the end: log p(y), the mean squared error, R²‖w‖² or the alignment.
    start : float
        Criterion at the given parameters.
    """

    kernel: Kernel
    numbers: dict[str, float]
    criterion: str
    value: float
    start: float


def learn_kernel(
    X: Any,
    y: ArrayLike,
    *,
    kernel: KernelLike = "rbf",
    criterion: str = "likelihood",
    lam: float = 0.1,
    C: float = 1.0,
    bias: bool = False,
    names: Sequence[str] | None = None,
    max_iter: int = 100,
    sample_weight: ArrayLike | None = None,
) -> LearntKernel:
    """Learn the parameters of a kernel: search for a local optimum of a criterion, starting from the given kernel.

    Parameters
    ----------
    X : array, CSR matrix or sequence of samples
        Training samples.
    y : array
        Numbers for "likelihood" and "loo" (±1 for two classes), labels of two classes for "radius-margin", numbers or
        labels for "alignment".
    kernel : str, Kernel or callable, default="rbf"
        Kernel with the initial parameters.
    criterion : {"likelihood", "loo", "radius-margin", "alignment"}, default="likelihood"
        Criterion to optimise.
    lam : float, default=0.1
        Initial λ of "likelihood" and "loo"; learnt too.
    C : float, default=1.0
        Initial C of "radius-margin"; learnt too.
    bias : bool, default=False
        Whether the Gaussian process or least squares has a bias; "radius-margin" always has one.
    names : list of str, optional
        Parameters to learn: names in `kernel.get_params()`, "lam" or "C". By default all that are positive numbers.
    max_iter : int, default=100
        Maximal number of steps.
    sample_weight : array, optional
        Weights of the samples.

    Returns
    -------
    LearntKernel
        Result with the attributes ``kernel``, the kernel with its learnt parameters; ``numbers``, a dict with lam or C,
        learnt or as given; ``criterion``; ``value``, the criterion at the end: log p(y), the mean squared error, R²‖w‖²
        or the alignment; and ``start``, the criterion at the given parameters.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from mercer import SVC, learn_kernel
    >>> from mercer.kernels import Gaussian
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X, y = scale(X)[:200], y[:200]
    >>> found = learn_kernel(X, y, kernel=Gaussian(gamma=1.0), criterion="radius-margin", max_iter=10)
    >>> found.value < found.start, found.kernel.gamma < 0.3
    (True, True)
    >>> SVC(slack="l2", kernel=found.kernel, **found.numbers).fit(X, y).score(X, y) > 0.95
    True
    """
    one_of("criterion", criterion, LEARN_CRITERIA)
    y, sample_weight = on_host(y), on_host(sample_weight)
    bound_kernel = as_kernel(kernel).bind(X)
    if bound_kernel.accepts == "gram":
        raise ValueError("a precomputed matrix has no parameters to learn; pass the kernel and the samples")
    samples = as_matrix(X) if bound_kernel.accepts == "vectors" else X
    problem = _LearningProblem(samples, y, weights(sample_weight, len(np.asarray(y))), bool(bias))
    objective = {
        "likelihood": problem.likelihood,
        "loo": problem.leave_one_out,
        "radius-margin": problem.radius_margin,
        "alignment": problem.target_alignment,
    }[criterion]
    numbers = {"radius-margin": {"C": positive("C", C)}, "alignment": {}}.get(criterion, {"lam": positive("lam", lam)})
    best, learnt_kernel = search_parameters(objective, bound_kernel, numbers, names, max_iter)
    best = clone(best)  # `best` may be the caller's object
    best.learnt = True
    sign = 1.0 if criterion in ("likelihood", "alignment") else -1.0
    value, start = sign * objective(best, learnt_kernel)[0], sign * objective(bound_kernel, numbers)[0]
    return LearntKernel(best, learnt_kernel, criterion, value, start)


@dataclass(frozen=True, eq=False)
class _LearningProblem:
    """Samples, targets and weights. Each method returns a criterion to maximise, and its derivatives by parameter."""

    X: Any
    y: Any
    weight: Floats
    bias: bool

    def __post_init__(self) -> None:
        check_same_length(self.X, self.y)
        refuse_no_weight(self.weight)
        if not self.weight.all():
            raise ValueError("samples of weight 0 are not allowed; remove them from X, y and sample_weight")

    def likelihood(self, kernel: Kernel, numbers: dict[str, float]) -> tuple[float, dict[str, Any]]:
        """Return log p(y) of the Gaussian process, and its derivatives."""
        Y = outputs(self.y)[0]
        process = GaussianProcess(self.X, Y, self.weight, kernel=kernel, lam=numbers["lam"], bias=self.bias)
        return process.log_likelihood, process.log_likelihood_gradient

    def leave_one_out(self, kernel: Kernel, numbers: dict[str, float]) -> tuple[float, dict[str, Any]]:
        """Return minus the leave-one-out error of least squares, and its derivatives."""
        Y, n_threads = outputs(self.y)[0], effective_n_threads(None)
        factor = gram_for(kernel, self.X, n_threads=n_threads).factor(numbers["lam"] / self.weight, n_threads=n_threads)
        if factor is None:
            raise ValueError(f"K + {numbers['lam']:g}·W⁻¹ is not positive definite to rounding; raise lam")
        G = factor.solve(np.eye(len(Y)))
        if self.bias:
            inverse_sums = G.sum(axis=1)
            G -= np.outer(inverse_sums, inverse_sums) / inverse_sums.sum()
        g, c, share = G.diagonal()[:, None], G @ Y, (self.weight / self.weight.sum())[:, None]
        r = c / g
        a = 2 * share * r / g
        by_K = (G * (a * r).sum(axis=1)) @ G - (G @ a) @ c.T
        by_lam = float(by_K.diagonal() @ (1.0 / self.weight))
        slopes = {"lam": -by_lam, **kernel.parameter_gradient(self.X, weights=-by_K)}
        return -float((share * r * r).sum()), slopes

    def radius_margin(self, kernel: Kernel, numbers: dict[str, float]) -> tuple[float, dict[str, Any]]:
        """Return −R²‖w‖² of SVC(slack="l2"), and its derivatives."""
        gram = gram_for(kernel, self.X, n_threads=effective_n_threads(None))
        C = numbers["C"] * self.weight
        n = len(C)
        margin = squared_soft_margin(read_signs(self.y), C)
        group = np.zeros(n, dtype=np.int32)
        half_diagonal = 0.5 * (gram.diagonal + 1.0 / C)
        # The upper bound 2 exceeds the total 1, so that a single vector at the surface of the ball determines b.
        ball = DualProblem.of_rows(half_diagonal, np.zeros(n), np.full(n, 2.0), 1.0 / C, group, np.ones(1))
        margin_solution, margin_proof = solve_certified(margin, gram, _STOP)
        ball_solution, ball_proof = solve_certified(ball, gram, _STOP)
        radius_square, norm_square = 2.0 * ball_proof.dual, 2.0 * margin_proof.dual
        alpha, beta = margin_solution.beta, ball_solution.beta
        by_K = norm_square * (np.diag(beta) - np.outer(beta, beta)) - radius_square * np.outer(alpha, alpha)
        by_C = -float(by_K.diagonal() @ (1.0 / C)) / numbers["C"]
        if not math.isfinite(radius_square * norm_square):
            raise FloatingPointError("R²‖w‖² overflows")
        return -radius_square * norm_square, {"C": -by_C, **kernel.parameter_gradient(self.X, weights=-by_K)}

    def target_alignment(self, kernel: Kernel, numbers: dict[str, float]) -> tuple[float, dict[str, Any]]:
        """Return the centred alignment of the kernel with the targets, and its derivatives."""
        value, by_K = alignment(kernel(self.X), target_columns(self.y), self.weight, centred=True)
        return value, kernel.parameter_gradient(self.X, weights=by_K)
