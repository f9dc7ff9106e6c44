"""Certify a fitted model of any library: bound its distance from the optimum."""

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
from mercer.estimators.fitting.families.alpha_proof import certificate_of_alpha, feasible_points_near, fitted_alpha
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
from mercer.tables.unwrap import unwrap

# A linear machine's w does not determine α with the hinge loss: mercer solves the dual problem to this KKT violation.
_HINGE_TOL = 1e-9


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
    """Prove how far a fitted model is from the optimum of its training problem, whichever library fitted it.

    The certificate is computed from the model's coefficients and the samples alone, with a bound on every rounding
    error. By weak duality the dual value at any feasible α is a lower bound on the optimum, and the objective at the
    model's function is an upper bound: the optimum lies between `dual` and `primal`.

    Parameters
    ----------
    model : estimator or path
        Fitted model:

        - SVC, NuSVC, SVR, NuSVR, OneClassSVM, LinearSVC, LinearSVR or KernelRidge of scikit-learn, or the class of
          scikit-learn-intelex that replaces it;
        - an estimator of mercer that is trained through the dual variables α (SVC, NuSVC, SVR, NuSVR, QuantileSVR,
          OneClassSVM, SVDD);
        - the path of a model file of LIBSVM or LIBLINEAR;
        - a Pipeline or a search that ends in one of these, or a TransformedTargetRegressor around one.

        With `alpha`, an estimator of mercer that need not be fitted; its kernel, C, slack, bias, ν, ε and so on define
        the problem.
    X : array, CSR matrix or list
        Samples that the model was fitted to, exactly as passed to `fit`.
    y : array or None
        Targets of the samples.
    alpha : array of shape (n_samples,) or (n_samples, n_problems), optional
        Dual variables to certify: one number ≥ 0 for each sample, or the signed α_i − α_i* for a regression. An
        estimator for several classes or quantiles has a column for each of its problems, in the order of the pairs of
        classes; samples of other classes have a 0 there. For the hard margin C=inf, NuSVC and OneClassSVM, α may be
        given up to a positive factor.
    sample_weight : array, optional
        Sample weights, as passed to `fit`.
    C, epsilon, nu : float, optional
        Training parameters of a model file, which does not contain them. Other models hold their own.

    Returns
    -------
    Certificate
        Bounds on the optimum. `primal` is the objective at the model's coefficients and bias; with `alpha`, and for
        mercer's estimators, at the bias that follows from α: the mean over the free variables, or the middle of its
        interval. `parts` has one certificate for each pair of classes, class or output. If no feasible point is near
        the coefficients, they prove nothing, and the gap is infinite.

    See Also
    --------
    mercer.Certificate : The numbers of a certificate and their meaning.

    Notes
    -----
    By rounding, solvers leave α slightly outside of its bounds and Σβ slightly off its required value. Two feasible
    points are certified, and the one with the smaller gap is returned: the nearest feasible α, and the one in which
    every α within 1e-6 of a bound is moved onto it. LinearSVC and LinearSVR contain w only. For squared losses α
    follows from w; for the hinge and the ε-insensitive loss mercer solves the problem itself to obtain a dual value.

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

    Certify given dual variables:

    >>> proof = mercer.certify(mercer.SVC(kernel="linear", C=1.0), [[0.0], [2.0]], [0, 1], [0.5, 0.5])
    >>> round(proof.primal, 9), round(proof.dual, 9)
    (0.5, 0.5)
    """
    training_parameters = {"C": C, "epsilon": epsilon, "nu": nu}
    if alpha is not None:
        if any(value is not None for value in training_parameters.values()):
            raise ValueError("C=, epsilon= and nu= are for model files; with alpha, set them on the estimator")
        return certificate_of_alpha(model, X, y, alpha, sample_weight=sample_weight)
    if not isinstance(model, str | os.PathLike):
        model, X, y = _unwrap_model(model, X, y)
    fitted = None if isinstance(model, Machine) else read_fitted(model, X, y, sample_weight, training_parameters)
    if isinstance(fitted, KernelModel):
        return _certify_kernel_model(fitted, X, y, sample_weight)
    if isinstance(fitted, LinearModel):
        return _certify_linear_model(fitted, X, y, sample_weight)
    if isinstance(fitted, RidgeModel):
        return _certify_ridge_model(fitted, X, y, sample_weight)
    if isinstance(model, DualMachine):
        _check_training_samples(model, X, y)
        unfitted = clone(model).set_params(kernel=model.kernel_)  # the kernel of the fit, even if set_params came later
        return certificate_of_alpha(unfitted, X, y, fitted_alpha(model, X), sample_weight=sample_weight)
    if isinstance(model, Machine):
        raise TypeError(f"{type(model).__name__} is not trained through dual variables α; see its certificate_")
    raise TypeError(
        f"certify does not know {type(model).__name__}: it takes a fitted SVC, NuSVC, SVR, NuSVR, OneClassSVM, "
        "LinearSVC, LinearSVR or KernelRidge of scikit-learn, an estimator of mercer that is trained through dual "
        "variables α, or the path of a model file of LIBSVM or LIBLINEAR"
    )


def _unwrap_model(model: Any, X: Any, y: Any) -> tuple[Any, Any, Any]:
    """Return the machine inside a model, and the transformed samples and targets that it was fitted to."""
    if isinstance(model, TransformedTargetRegressor):
        column = np.asarray(y, dtype=np.float64)
        transformed_y = model.transformer_.transform(column.reshape(len(column), -1))
        return _unwrap_model(model.regressor_, X, transformed_y.reshape(column.shape))
    unwrapped = unwrap(model)
    if isinstance(unwrapped.machine, BaseSearchCV):
        check_is_fitted(unwrapped.machine)
        raise TypeError(
            f"{type(unwrapped.machine).__name__} has refit={unwrapped.machine.refit!r} and so holds no fitted model: "
            "fit it with refit=True, or certify an estimator fitted with its best_params_"
        )
    machine, X, y = unwrapped.machine, unwrapped.rows(X), unwrapped.target(y)
    return _unwrap_model(machine, X, y) if isinstance(machine, TransformedTargetRegressor) else (machine, X, y)


def _check_training_samples(machine: Any, X: Any, y: Any) -> None:
    """Raise ValueError if the support vectors of a machine are not samples of X with their labels in y."""
    check_is_fitted(machine, "dual_coef_")
    rows = np.asarray(machine.support_)
    if machine.shape_fit_[0] != n_samples(X):
        raise ValueError(f"X has {n_samples(X)} samples, and the model was fitted to {machine.shape_fit_[0]} samples")
    if hasattr(machine, "classes_"):
        expect_classes(machine.classes_, y)
        if (np.asarray(y)[rows] != np.repeat(machine.classes_, machine.n_support_)).any():
            raise ValueError("y is not what the model was fitted to: its support vectors have other labels")
    if machine.kernel_.accepts == "vectors":
        expect_vectors(machine, X, rows)


# --- models with support vectors --------------------------------------------------------------------------------------


def _certify_kernel_model(fitted: KernelModel, X: Data, y: Any, weight: Weights) -> Certificate:
    """Certify a model with support vectors, one part for each of its problems."""
    if not (np.isfinite(fitted.beta).all() and np.isfinite(fitted.b).all()):
        raise ValueError("the model has coefficients or biases that are not finite, and so no objective")
    machine = clone(fitted.machine)
    fit = Fit.of(machine, X if fitted.K is None else fitted.K, y, weight)
    tasks = machine._tasks(fit)
    if len(tasks) != fitted.beta.shape[1]:
        raise ValueError(
            f"the model has {fitted.beta.shape[1]} functions, but y needs {len(tasks)}: is it the y of the fit?"
        )
    solved = [_certify_problem(task, fit, fitted.beta[:, k], float(fitted.b[k])) for k, task in enumerate(tasks)]
    if any(np.isinf(problem.certificate.gap) for problem in solved):
        return Certificate.total([problem.certificate for problem in solved])
    machine._record_end(Solutions.of(solved))  # sets certificate_ in the scale that this machine reports
    certificate: Certificate = machine.certificate_
    return certificate


def _certify_problem(task: Task[DualProblem], fit: Fit, sample_beta: Floats, bias: float) -> Solved[DualProblem]:
    """Certify one problem at the model's bias and its signed coefficients β, one for each sample."""
    problem, gram = task.problem, fit.gram().view(task.rows).proof
    # 1. Find the row of each sample in this problem; −1 if it has none.
    position = np.full(len(fit.merged.weight), -1)
    position[task.rows] = np.arange(len(task.rows))
    row = np.full(len(sample_beta), -1)
    row[fit.merged.rows] = position[fit.merged.member]
    if sample_beta[row < 0].any():
        sample = int(np.flatnonzero((row < 0) & (sample_beta != 0))[0])
        raise ValueError(
            f"sample {sample} has a coefficient in a problem that does not "
            "contain it: are y and sample_weight those of the fit?"
        )
    # 2. Sum β over equal samples and split it into the variables of the problem.
    sums, roundings = _sum_equal_samples(row[row >= 0], sample_beta[row >= 0], len(task.rows))
    beta = sums[problem.row]
    if problem.twins:  # the positive and the negative part are the two variables of a sample
        n_samples = len(beta) // 2
        beta = np.r_[np.maximum(beta[:n_samples], 0.0), np.minimum(beta[n_samples:], 0.0)]
    if len(problem.totals) == 2 and not problem.p.any() and beta.any():  # NuSVC divides β and b by ρ
        scale = float(np.abs(problem.totals).sum() / np.abs(beta).sum())
        beta, bias, roundings = scale * beta, scale * bias, roundings + 1
    # 3. Choose the biases, and certify the problem at β and these biases.
    b = np.full(len(problem.totals), bias)
    if len(b) == 2:  # ν-machines have b ∓ ρ or b ± ε: take the best ρ or ε for the given b
        half_width = _best_half_width(problem, dual.certify_dual(problem, gram, beta)[1], bias)
        b, roundings = np.array([bias - half_width, bias + half_width]), roundings + 1
    feasible_start = _restore_sums_of_alpha(problem, beta) if problem.twins and len(b) == 2 else beta
    proof = certify_with_bias(problem, gram, beta, b, feasible_points_near(problem, feasible_start), gamma(roundings))
    return Solved(task, Solution(beta, 0, "converged"), proof)


def _sum_equal_samples(sample: Indices, sample_beta: Floats, n: int) -> tuple[Floats, int]:
    """Sum β over samples with the same index in `sample`; return the n sums and the roundings of each, 1 or 0."""
    return rounded_sums_by(sample, sample_beta, n), int(np.bincount(sample, minlength=1).max() > 1)


def _restore_sums_of_alpha(problem: DualProblem, beta: Floats) -> Floats:
    """Return β of a NuSVR whose sums Σα and Σα* have the values that ν prescribes, if that is possible.

    A model contains only the differences α_i − α_i*. If ε = 0, α_i and α_i* may both be positive, and adding the same
    number to both changes nothing but the two sums.
    """
    n_samples = len(beta) // 2
    shortfall = float(problem.totals[0] - beta[:n_samples].sum())
    slack = np.minimum(problem.upper[:n_samples] - beta[:n_samples], beta[n_samples:] - problem.lower[n_samples:])
    if not 0 < shortfall <= slack.sum():
        return beta
    increase = shortfall / slack.sum() * slack
    return np.asarray(beta + np.r_[increase, -increase])


def _best_half_width(problem: DualProblem, u: Floats, bias: float) -> float:
    """Return the h that minimises Σ c_i max(0, q_i + h) − h(total_0 − total_1), the primal value at biases b ∓ h.

    h is a weighted quantile of the −q_i = ∓(p_i − u_i − b). The weight c_i is the width of the box of variable i.
    """
    q = np.where(problem.group == 0, 1.0, -1.0) * (problem.p - u[problem.row] - bias)
    order = np.argsort(-q)
    weight = np.cumsum((problem.upper - problem.lower)[order])
    position = int(np.searchsorted(weight, problem.totals[0] - problem.totals[1]))
    return -float(q[order[min(position, len(q) - 1)]])


# --- linear machines --------------------------------------------------------------------------------------------------


def _certify_linear_model(fitted: LinearModel, X: Data, y: Any, weight: Weights) -> Certificate:
    """Certify a linear model, one part for each of its problems."""
    if fitted.class_weight is not None:
        parts = []
        for k, (label, factor) in enumerate(fitted.class_weight.items()):
            machine = clone(fitted.machine).set_params(class_weight={True: factor, False: 1.0})
            class_model = LinearModel(machine, fitted.w[k : k + 1], fitted.b[k : k + 1])
            parts.append(_certify_linear_model(class_model, X, np.asarray(y) == label, weight))
        return Certificate.total(parts)
    machine = clone(fitted.machine).set_params(tol=_HINGE_TOL)
    fit = Fit.of(machine, X, y, weight)
    tasks = machine._tasks(fit)
    if len(tasks) != len(fitted.w):
        raise ValueError(f"the model has {len(fitted.w)} functions, but y needs {len(tasks)}: is it the y of the fit?")
    rows = fit.rows_of_all_columns()
    parts = []
    for task, w, b in zip(tasks, fitted.w, fitted.b.tolist(), strict=True):
        problem: LinearProblem = task.problem
        if problem.d.all():
            beta = _best_beta(problem, rows.product(w, b))
        else:
            assert task.place is not None
            beta = task.solve(problem, task.place(fit.limits.n_threads), fit.limits.stop, None)[0].beta
        parts.append(certify_linear(problem, rows, w, b, beta))
    return Certificate.total(parts)


def _best_beta(problem: LinearProblem, f: Floats) -> Floats:
    """Return each sample's dual variable β for a squared loss, which maximises (p − f)β − ε|β| − dβ²/2 in its box."""
    residual = problem.p - f
    beta = np.sign(residual) * np.maximum(np.abs(residual) - problem.epsilon, 0.0) / problem.d
    return np.asarray(np.clip(beta, problem.lower, problem.upper))


# --- least squares ----------------------------------------------------------------------------------------------------


def _certify_ridge_model(fitted: RidgeModel, X: Data, y: Any, weight: Weights) -> Certificate:
    """Certify kernel ridge regression, one part for each output."""
    fit = Fit.of(clone(fitted.machine), X, y, weight)
    merged, gram = fit.merged, fit.gram().proof
    unweighted = np.setdiff1d(np.flatnonzero(fitted.beta.any(axis=1)), merged.rows)
    if len(unweighted):
        raise ValueError(f"sample {unweighted[0]} has a coefficient and no weight: is sample_weight that of the fit?")
    Y = fit.target.Y[merged.rows]
    if Y.shape[1] != fitted.beta.shape[1]:
        raise ValueError(
            f"the model has {fitted.beta.shape[1]} outputs, but y has {Y.shape[1]}: is it the y of the fit?"
        )
    parts = []
    for k, lam in enumerate(fitted.lam.tolist()):
        problem = LeastSquares(Y, merged.input_weight, merged.member, len(merged.weight), False, lam)
        parts.append(dual.certify_dual(problem.dual(k), gram, np.ascontiguousarray(fitted.beta[merged.rows, k]))[0])
    return Certificate.total(parts)
