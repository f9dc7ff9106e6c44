"""The certificate of a fitted model, whoever fitted it: how far from the optimum is it?"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils.validation import check_is_fitted

from mercer.certificates import dual
from mercer.certificates.certificate import Certificate
from mercer.certificates.given_bias import certify_with_bias
from mercer.certificates.linear import certify_linear
from mercer.estimators.fitting.families.alpha_proof import certificate_of_alpha, near_feasible, own_alpha
from mercer.estimators.fitting.families.dual_machine import DualMachine
from mercer.estimators.fitting.pipeline.fit import Fit
from mercer.estimators.fitting.pipeline.machine import Machine
from mercer.estimators.fitting.pipeline.task import Solutions, Solved, Task
from mercer.inspection.certification.other_libraries import (
    KernelModel,
    LinearModel,
    RidgeModel,
    expect_classes,
    expect_vectors,
    read_fitted,
)
from mercer.problems.dual_problem import DualProblem
from mercer.problems.least_squares import LeastSquares
from mercer.problems.linear_problem import LinearProblem
from mercer.samples.arrays import Data, Floats, Indices, Weights, gamma, n_samples, rounded_sums_by
from mercer.solvers.solution import Solution
from mercer.tables.unwrap import ask

# For the hinge, w alone does not say which α belong to it: mercer finds them, to this violation.
_TOL_OF_HINGE = 1e-9


def certify(
    model: Any,
    X: Data,
    y: ArrayLike | None = None,
    alpha: Any = None,
    *,
    sample_weight: Weights = None,
    C: float | None = None,
    epsilon: float | None = None,
    nu: float | None = None,
) -> Certificate:
    """Prove how far a fitted model is from the optimum of its own problem, whoever fitted it.

    The certificate is computed from the model's coefficients and the samples alone, with a bound on every rounding
    error. By weak duality the dual value at any feasible α is a lower bound on the optimum, and the objective at the
    model's own function is an upper one: the optimum lies between `dual` and `primal`.

    Parameters
    ----------
    model : estimator or path
        A fitted machine:

        - scikit-learn's SVC, NuSVC, SVR, NuSVR, OneClassSVM, LinearSVC, LinearSVR or KernelRidge, or the class of
          scikit-learn-intelex that takes its place;
        - a machine of mercer's that is found through α (SVC, NuSVC, SVR, NuSVR, QuantileSVR, OneClassSVM, SVDD);
        - the path of a model file of LIBSVM or LIBLINEAR;
        - a Pipeline or a search that ends in one of these, or a TransformedTargetRegressor around one.

        With `alpha`, a machine of mercer's that need not be fitted and names the problem: its kernel, C, slack, bias,
        ν, ε and so on.
    X : array, CSR matrix or list
        The samples that the model was fitted to, as its `fit` had them.
    y : array or None
        Their targets.
    alpha : array of shape (n_samples,) or (n_samples, n_problems), optional
        Dual variables by hand: one number ≥ 0 for each sample; for regression the signed α_i − α_i*. A machine of
        several classes or quantiles has a column for each of its problems, in the order of the classes' pairs; a sample
        that a pair is not about has a 0 there. Where the problem has no scale of its own, as for the hard margin C=inf,
        NuSVC and OneClassSVM, α may have any.
    sample_weight : array, optional
        As `fit` had it.
    C, epsilon, nu : float, optional
        Numbers of the training that a model file does not hold; other models hold their own.

    Returns
    -------
    Certificate
        Its `primal` is the objective at the model's own coefficients and bias; with `alpha`, and for mercer's own
        machines, at the bias that belongs to α. One part for each pair of classes, class or output. Coefficients that
        no feasible point is near prove nothing: the gap is infinite.

    See Also
    --------
    mercer.Certificate : What the numbers mean.

    Notes
    -----
    Solvers leave α beside their bounds, and Σβ beside its total, by rounding. The nearest feasible α is certified, and
    the one in which all that is within 1e-6 of a bound is put onto it; the certificate is that with the smaller gap.
    LinearSVC and LinearSVR hold w alone. For squared losses α follows from w; for the hinge and the tube mercer solves
    the problem itself to have a dual value.

    Examples
    --------
    >>> import sklearn.svm
    >>> from sklearn.datasets import load_iris
    >>> import mercer
    >>> X, y = load_iris(return_X_y=True)
    >>> proof = mercer.certify(sklearn.svm.SVC(tol=1e-10).fit(X, y), X, y)
    >>> proof.relative_gap < 1e-6
    True
    >>> mercer.certify(sklearn.svm.SVC(max_iter=5).fit(X, y), X, y).relative_gap > 0.01
    True

    For α by hand:

    >>> proof = mercer.certify(mercer.SVC(kernel="linear", C=1.0), [[0.0], [2.0]], [0, 1], [0.5, 0.5])
    >>> round(proof.primal, 9), round(proof.dual, 9)
    (0.5, 0.5)
    """
    numbers = {"C": C, "epsilon": epsilon, "nu": nu}
    if alpha is not None:
        if any(value is not None for value in numbers.values()):
            raise ValueError("C=, epsilon= and nu= belong to a model file; with alpha the machine has its own")
        return certificate_of_alpha(model, X, y, alpha, sample_weight=sample_weight)
    if not isinstance(model, str | os.PathLike):
        model, X, y = _unwrapped(model, X, y)
    found = None if isinstance(model, Machine) else read_fitted(model, X, y, sample_weight, numbers)
    if isinstance(found, KernelModel):
        return _certify_kernel_model(found, X, y, sample_weight)
    if isinstance(found, LinearModel):
        return _certify_linear_model(found, X, y, sample_weight)
    if isinstance(found, RidgeModel):
        return _certify_ridge_model(found, X, y, sample_weight)
    if isinstance(model, DualMachine):
        _expect_own_samples(model, X, y)
        trained = clone(model).set_params(kernel=model.kernel_)  # whatever was set after the fit
        return certificate_of_alpha(trained, X, y, own_alpha(model, X), sample_weight=sample_weight)
    if isinstance(model, Machine):
        raise TypeError(f"{type(model).__name__} is not found through α; its proof is in its certificate_")
    raise TypeError(
        f"certify does not know {type(model).__name__}: it takes a fitted SVC, NuSVC, SVR, NuSVR, OneClassSVM, "
        "LinearSVC, LinearSVR or KernelRidge of scikit-learn's, a machine of mercer's that is found through α, or the "
        "path of a model file of LIBSVM or LIBLINEAR"
    )


def _unwrapped(model: Any, X: Any, y: Any) -> tuple[Any, Any, Any]:
    """Take off what is around a machine: the machine, and the rows and targets that it was given."""
    if isinstance(model, TransformedTargetRegressor):
        column = np.asarray(y, dtype=np.float64)
        changed = model.transformer_.transform(column.reshape(len(column), -1))
        return _unwrapped(model.regressor_, X, changed.reshape(column.shape))
    inside = ask(model)
    if isinstance(inside.machine, BaseSearchCV):
        check_is_fitted(inside.machine)
        raise TypeError(
            f"{type(inside.machine).__name__} has refit={inside.machine.refit!r} and so holds no fitted model: fit it "
            "with refit=True, or certify a machine that is fitted with its best_params_"
        )
    machine, X, y = inside.machine, inside.rows(X), inside.target(y)
    return _unwrapped(machine, X, y) if isinstance(machine, TransformedTargetRegressor) else (machine, X, y)


def _expect_own_samples(machine: Any, X: Any, y: Any) -> None:
    """Raise ValueError where the support vectors of a machine of mercer's are other samples, or have other labels."""
    check_is_fitted(machine, "dual_coef_")
    rows = np.asarray(machine.support_)
    if machine.shape_fit_[0] != n_samples(X):
        raise ValueError(f"X has {n_samples(X)} samples, and the model was fitted to {machine.shape_fit_[0]}")
    if hasattr(machine, "classes_"):
        expect_classes(machine.classes_, y)
        if (np.asarray(y)[rows] != np.repeat(machine.classes_, machine.n_support_)).any():
            raise ValueError("y is not what the model was fitted to: its support vectors have other labels")
    if machine.kernel_.accepts == "vectors":
        expect_vectors(machine, X, rows)


# --- machines with support vectors ------------------------------------------------------------------------------------


def _certify_kernel_model(found: KernelModel, X: Data, y: Any, weight: Weights) -> Certificate:
    if not (np.isfinite(found.beta).all() and np.isfinite(found.b).all()):
        raise ValueError("the model has coefficients or biases that are not finite, and so no objective")
    machine = clone(found.machine)
    fit = Fit.of(machine, X if found.K is None else found.K, y, weight)
    tasks = machine._tasks(fit)
    if len(tasks) != found.beta.shape[1]:
        raise ValueError(
            f"the model has {found.beta.shape[1]} functions, but y asks for {len(tasks)}: is y another one?"
        )
    solved = [_certify_plane(task, fit, found.beta[:, k], float(found.b[k])) for k, task in enumerate(tasks)]
    if any(np.isinf(one.certificate.gap) for one in solved):
        return Certificate.total([one.certificate for one in solved])
    machine._record_end(Solutions.of(solved))  # in the scale in which such a machine gives its certificate
    certificate: Certificate = machine.certificate_
    return certificate


def _certify_plane(task: Task[DualProblem], fit: Fit, given: Floats, bias: float) -> Solved[DualProblem]:
    """One problem with the model's signed β of all samples and its b."""
    problem, gram = task.problem, fit.gram().view(task.rows).proof
    place = np.full(len(fit.merged.weight), -1)
    place[task.rows] = np.arange(len(task.rows))
    row = np.full(len(given), -1)
    row[fit.merged.rows] = place[fit.merged.member]
    if given[row < 0].any():
        raise ValueError(
            f"sample {int(np.flatnonzero((row < 0) & (given != 0))[0])} has a coefficient in a problem that it has no "
            "part in: are y and sample_weight those of the fit?"
        )
    sums, roundings = _sums_of_equal(row[row >= 0], given[row >= 0], len(task.rows))
    beta = sums[problem.row]
    if problem.twins:  # the positive and the negative part are the two variables of a sample
        half = len(beta) // 2
        beta = np.r_[np.maximum(beta[:half], 0.0), np.minimum(beta[half:], 0.0)]
    if len(problem.totals) == 2 and not problem.p.any() and beta.any():  # NuSVC has divided β and b by ρ
        scale = float(np.abs(problem.totals).sum() / np.abs(beta).sum())
        beta, bias, roundings = scale * beta, scale * bias, roundings + 1
    b = np.full(len(problem.totals), bias)
    if len(b) == 2:  # ν-machines have b ∓ ρ or b ± ε, and get the best ρ or ε for their b
        apart = _best_half(problem, dual.certify_dual(problem, gram, beta)[1], bias)
        b, roundings = np.array([bias - apart, bias + apart]), roundings + 1
    complete = _with_both_sides(problem, beta) if problem.twins and len(b) == 2 else beta
    proof = certify_with_bias(problem, gram, beta, b, near_feasible(problem, complete), gamma(roundings))
    return Solved(task, Solution(beta, 0, "converged"), proof)


def _sums_of_equal(sample: Indices, given: Floats, n: int) -> tuple[Floats, int]:
    """The given β summed over equal samples, and how often each sum was rounded: once, or not at all."""
    return rounded_sums_by(sample, given, n), int(np.bincount(sample, minlength=1).max() > 1)


def _with_both_sides(problem: DualProblem, beta: Floats) -> Floats:
    """β of NuSVR, of whose α_i and α_i* a model keeps the difference: where ε = 0 both may be positive.

    Adding the same number to both changes the two sums and nothing else, so that they can be what ν asks for.
    """
    half = len(beta) // 2
    missing = float(problem.totals[0] - beta[:half].sum())
    room = np.minimum(problem.upper[:half] - beta[:half], beta[half:] - problem.lower[half:])
    if not 0 < missing <= room.sum():
        return beta
    added = missing / room.sum() * room
    return np.asarray(beta + np.r_[added, -added])


def _best_half(problem: DualProblem, u: Floats, bias: float) -> float:
    """The h that minimises Σ c_i max(0, q_i + h) − h(total_0 − total_1), the primal value at biases b − h and b + h.

    It is a weighted quantile of the −q_i = ∓(p_i − u_i − b); c_i is the size of a variable's box.
    """
    q = np.where(problem.group == 0, 1.0, -1.0) * (problem.p - u[problem.row] - bias)
    order = np.argsort(-q)
    reached = np.cumsum((problem.upper - problem.lower)[order])
    place = int(np.searchsorted(reached, problem.totals[0] - problem.totals[1]))
    return -float(q[order[min(place, len(q) - 1)]])


# --- linear machines --------------------------------------------------------------------------------------------------


def _certify_linear_model(found: LinearModel, X: Data, y: Any, weight: Weights) -> Certificate:
    if found.class_weight is not None:
        parts = []
        for k, (label, factor) in enumerate(found.class_weight.items()):
            machine = clone(found.machine).set_params(class_weight={True: factor, False: 1.0})
            one = LinearModel(machine, found.w[k : k + 1], found.b[k : k + 1])
            parts.append(_certify_linear_model(one, X, np.asarray(y) == label, weight))
        return Certificate.total(parts)
    machine = clone(found.machine).set_params(tol=_TOL_OF_HINGE)
    fit = Fit.of(machine, X, y, weight)
    tasks = machine._tasks(fit)
    if len(tasks) != len(found.w):
        raise ValueError(f"the model has {len(found.w)} functions, but y asks for {len(tasks)}: is y another one?")
    rows = fit.rows_of_all_columns()
    parts = []
    for task, w, b in zip(tasks, found.w, found.b.tolist(), strict=True):
        problem: LinearProblem = task.problem
        if problem.d.all():
            beta = _best_beta(problem, rows.product(w, b))
        else:
            assert task.place is not None
            beta = task.solve(problem, task.place(fit.limits.n_threads), fit.limits.stop, None)[0].beta
        parts.append(certify_linear(problem, rows, w, b, beta))
    return Certificate.total(parts)


def _best_beta(problem: LinearProblem, f: Floats) -> Floats:
    """The t at which each squared loss is attained: r t − ε|t| − d t²/2 is largest there."""
    r = problem.p - f
    t = np.sign(r) * np.maximum(np.abs(r) - problem.epsilon, 0.0) / problem.d
    return np.asarray(np.clip(t, problem.lower, problem.upper))


# --- least squares ----------------------------------------------------------------------------------------------------


def _certify_ridge_model(found: RidgeModel, X: Data, y: Any, weight: Weights) -> Certificate:
    fit = Fit.of(clone(found.machine), X, y, weight)
    merged, gram = fit.merged, fit.gram().proof
    apart = np.setdiff1d(np.flatnonzero(found.beta.any(axis=1)), merged.rows)
    if len(apart):
        raise ValueError(f"sample {apart[0]} has a coefficient and no weight: is sample_weight that of the fit?")
    Y = fit.target.Y[merged.rows]
    if Y.shape[1] != found.beta.shape[1]:
        raise ValueError(f"the model has {found.beta.shape[1]} outputs, and y has {Y.shape[1]}: is y another one?")
    parts = []
    for k, lam in enumerate(found.lam.tolist()):
        problem = LeastSquares(Y, merged.own_weight, merged.member, len(merged.weight), False, lam)
        parts.append(dual.certify_dual(problem.dual(k), gram, np.ascontiguousarray(found.beta[merged.rows, k]))[0])
    return Certificate.total(parts)
