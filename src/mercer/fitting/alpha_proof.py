"""The proof of α from anywhere: another library, a file, a calculation by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import Floats, n_samples
from mercer.certificates import dual
from mercer.certificates.certificate import Certificate
from mercer.data.labels import read_labels
from mercer.gram import gram_for
from mercer.kernels import as_kernel
from mercer.kernels.matrices import as_matrix
from mercer.parameters import one_of, real
from mercer.problems.classification import soft_margin, squared_soft_margin
from mercer.problems.dual_problem import DualProblem

# What another solver's α may miss bounds and sums by, as a share of the largest α; it is repaired before the proof.
_MISSED_SHARE = 1e-6


def certificate_of_alpha(
    kernel: Any, X: Any, y: Any, alpha: Any, C: Any = 1.0, *, slack: str = "l1", bias: bool = True
) -> Certificate:
    """The certificate of dual variables α of a soft margin, wherever they come from.

    By weak duality the dual value at any feasible α is a lower bound on the optimum, and the primal value of the
    machine that α gives is an upper one. Solvers leave α beside their bounds and their sum beside 0. The nearest
    feasible α is certified, and the one in which all that is within 1e-6 of a bound is put onto it; the certificate is
    that with the smaller gap.

    Parameters
    ----------
    kernel : Kernel, str or callable
        The kernel; "precomputed" if X is the matrix of kernel values.
    X : array, CSR matrix or list
        Samples.
    y : array
        Their labels, of two classes.
    alpha : array
        One number ≥ 0 per sample.
    C : float or array, default=1.0
        The price of slack, or one for each sample.
    slack : {"l1", "l2"}, default="l1"
        C_iξ_i with 0 ≤ α_i ≤ C_i, or ½C_iξ_i² with 0 ≤ α_i.
    bias : bool, default=True
        With Σα_iy_i = 0, or without bias and equality.

    Returns
    -------
    Certificate
        Its `b` is the bias that belongs to α.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.svm import SVC
    >>> from mercer import certify
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 1, 0, 1]
    >>> other = SVC(kernel="linear", C=1.0, tol=1e-9).fit(X, y)
    >>> alpha = np.zeros(4)
    >>> alpha[other.support_] = np.abs(other.dual_coef_[0])
    >>> certify("linear", X, y, alpha, C=1.0).gap < 1e-6
    True
    """
    one_of("slack", slack, ("l1", "l2"))
    one_of("bias", bias, (True, False))
    labels, codes = read_labels(y)
    n = len(codes)
    if len(labels) != 2:
        raise ValueError(f"α belongs to a problem of two classes, but y has {len(labels)}: {list(labels)[:5]}")
    bound = as_kernel(kernel).bind(X)
    samples = as_matrix(X) if bound.accepts != "sequences" else X
    if n_samples(samples) != n:
        raise ValueError(f"X has {n_samples(samples)} samples, but y has {n} labels")
    signs = np.where(codes == 1, 1.0, -1.0)
    prices = _prices(C, n)
    problem = (squared_soft_margin if slack == "l2" else soft_margin)(signs, prices)
    problem = problem if bias else problem.without_bias()
    given, gram = signs * _numbers("alpha", alpha, n), gram_for(bound, samples)
    proofs = [dual.certify(problem, gram, beta)[0] for beta in _feasible(problem, given)]
    return min(proofs, key=lambda proof: proof.gap)


certify = certificate_of_alpha


def _prices(C: Any, n: int) -> Floats:
    prices = np.full(n, real("C", C)) if np.ndim(C) == 0 else _numbers("C", C, n)
    if not (np.isfinite(prices) & (prices > 0)).all():
        raise ValueError("C must be above 0 and finite: the dual of a hard margin has no bound to be proven against")
    return prices


def _numbers(name: str, values: Any, n: int) -> Floats:
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.shape != (n,) or not np.isfinite(numbers).all():
        raise ValueError(f"{name} must be one finite number for each of the {n} samples, not of shape {numbers.shape}")
    return numbers


def _feasible(problem: DualProblem, beta: Floats) -> tuple[Floats, Floats]:
    """The nearest feasible β, and the same with all that lies beside a bound put onto it; refused if β misses more."""
    near = _MISSED_SHARE * float(np.abs(beta).max(initial=0.0))
    outside = np.maximum(problem.lower - beta, beta - problem.upper)
    if outside.max(initial=0.0) > near:
        i = int(np.argmax(outside))
        end = max(abs(float(problem.lower[i])), abs(float(problem.upper[i])))
        raise ValueError(
            f"alpha[{i}] = {abs(beta[i]):.6g} lies outside of its box by {outside[i]:.3g}: it must be between 0 and "
            f"{end:g}; is C another one, or do the labels have another sign?"
        )
    if len(problem.totals) and abs(float(beta.sum())) > near * np.sqrt(len(beta)):
        raise ValueError(
            f"Σ alpha_i y_i = {float(beta.sum()):.6g} is not 0, which a machine with bias needs; give bias=False for "
            "one without"
        )
    onto = np.where(np.abs(beta - problem.lower) <= near, problem.lower, beta)
    onto = np.where(np.abs(beta - problem.upper) <= near, problem.upper, onto)
    return problem.nearest_feasible(beta), problem.nearest_feasible(onto)
