"""Shared docstring paragraphs: a line `%(name)s` in a docstring stands for the paragraph of that name in this file."""

from __future__ import annotations

import re
from collections.abc import Callable
from textwrap import dedent, indent
from typing import Any, Final, TypeVar

# Any indentation matches, because Python 3.13 and later strip the common indentation of docstrings.
_PLACEHOLDER: Final = re.compile(r"^( *)%\((.+?)\)s\n", flags=re.MULTILINE)
_SHARED: Final = {
    "columns": """
    drop : sequence of str, default=()
        Columns to drop.
    only : sequence of str or None, default=None
        Columns to use; all others are dropped. A column named here is used even if it looks like an identifier.
    categorical : sequence of str, default=()
        Columns to treat as categories, such as codes that are written as numbers.
    numeric : sequence of str, default=()
        Columns to treat as numbers; words among their entries count as missing values.
    text : sequence of str, default=()
        Columns of free text, whose words are counted.
    missing : {"impute", "drop"}, default="impute"
        Treatment of missing values. "drop" drops rows with a missing value from training; in prediction such values
        are imputed, so that every row gets an answer.
    standardise : bool, default=True
        Whether numeric columns, and y in regression, are scaled to mean 0 and variance 1.
""",
    "kernel": """
    kernel : str, Kernel or callable, default="rbf"
        Kernel: a name ("linear", "poly", "rbf", "sigmoid", "laplacian", "precomputed", ...), a kernel object, which may
        be composed with + * ** and exp, or a function (X, Z) -> matrix of kernel values.
    %(named kernel)s
""",
    "named kernel": """
    degree : int, default=3
        Degree of the kernel named "poly"; ignored by all other kernels.
    gamma : float, "scale", "auto" or "median", default="scale"
        Kernel coefficient of the kernels named "rbf", "laplacian", "poly" and "sigmoid". "scale" is
        1/(n_features · variance of X), "auto" is 1/n_features, and "median" is 1/(2m²) with m the median distance
        between samples. A sample of weight 2 counts twice in the variance; scikit-learn counts it once.
    coef0 : float, default=0.0
        Constant term of the kernels named "poly" and "sigmoid".
""",
    "n_jobs": """
    n_jobs : int, optional
        Number of threads; None means as many as BLAS would use.
""",
    "cache_size": """
    cache_size : float, default=1000
        Memory in MB that a fit may use in addition to the data.
""",
    "verbose": """
    verbose : bool, default=False
        Whether to print progress, at most one line a second; in a notebook a single line is updated.
""",
    "several kernels": """
    kernel : list of kernels, default=("linear", "poly", "rbf")
        Kernels to combine: each a name, a kernel object or a function (X, Z) -> matrix. With "precomputed", X is a list
        of kernel matrices or an array of shape (n_samples, n_samples, n_kernels). A single kernel has the weight 1.
    %(named kernel)s
    norm : float, default=1.0
        Exponent p ≥ 1 of the norm constraint on the kernel weights. With 1, kernels that do not help get the weight 0;
        larger values spread the weight; inf gives all kernels the same weight.
    normalise : bool, default=True
        Whether v_m is the variance of the samples in the feature space of k_m, so that the scale of a kernel has no
        influence. If False, v_m = 1.
""",
    "weights attributes": """
    weights_ : array of shape (n_kernels,)
        Weights θ of the given kernels: `kernel_` is Σ θ_m k_m, without the kernels of weight 0.
    scales_ : array of shape (n_kernels,)
        Scales v of the kernels: ‖(v_mθ_m)‖_p is 1 to rounding.
    n_rounds_ : int
        Number of weight vectors that were tried.
""",
    "optimise": """
    optimise : bool or list of str, default=True
        Whether to maximise the marginal likelihood over the kernel's parameters, a factor on the kernel and, in
        regression, lam. A list names the parameters to optimise, such as ["gamma"].
""",
    "process limits": """
    max_iter : int, default=-1
        Maximum number of steps of the likelihood optimisation; −1 means 100.
    max_time : float, optional
        Time limit in seconds for the fit that follows the optimisation.
    %(cache_size)s
    %(verbose)s
    %(n_jobs)s
""",
    "class_weight": """
    class_weight : dict or "balanced", optional
        Factors on the weights of the samples of each class. "balanced" makes the total weights of the classes equal:
        the factor is n / (n_classes · weight of the class), where samples count by their `sample_weight`; scikit-learn
        counts every sample once.
""",
    "linear bias": """
    bias : {True, "regularized", False}, default=True
        Treatment of the intercept b. True: b is not penalised, as in SVC(kernel="linear"). "regularized": b is the
        weight of a constant feature and adds ½(b/intercept_scaling)² to the objective, as in LIBLINEAR and
        scikit-learn. False: b = 0.
    intercept_scaling : float, default=1.0
        Value of the constant feature; used only with bias="regularized".
""",
    "linear solver": """
    gap_tol : float, optional
        Relative duality gap to reach in addition to `tol`; None means no such requirement.
    solver : {"auto", "newton", "dual", "qp", "qp:…"}, default="auto"
        Algorithm: Newton's method in (w, b), or dual coordinate descent. "auto" uses Newton's method for up to 1000
        features; otherwise it uses coordinate descent and finishes with Newton's method if that converges slowly. "qp"
        is an external QP solver, as in `SVC`, for few samples.
""",
    "linear limits": """
    shrinking : bool, default=True
        Whether dual coordinate descent skips samples that are settled; the solution is the same.
    verbose : bool, default=False
        Whether to print the certificates reached so far, at most one line a second.
    max_iter : int, default=-1
        Maximum number of Newton steps or passes over the data; −1 means 10,000, and no limit for "crammer-singer".
    max_time : float, optional
        Time limit in seconds. A fit that reaches a limit issues a warning with the gap reached.
    random_state : int, RandomState or None, default=None
        Seed of the sample order in dual coordinate descent; None means one fixed order.
    %(n_jobs)s
""",
    "ridge bias": """
    bias : bool, default=True
        Whether f has an intercept b, which is not penalised.
""",
    "ridge solver": """
    solver : {"auto", "cholesky", "eigen", "cg", "covariance", "lsqr", "qp", "qp:…"}, default="auto"
        Algorithm. "cholesky" factorises K + λW⁻¹, in float32 with refinement to float64 where that is possible; "eigen"
        uses an eigendecomposition, also if the matrix is singular; "cg" runs conjugate gradients preconditioned by
        landmarks and never stores K; "covariance" (a d × d matrix) and "lsqr" (only products with X) are for linear
        kernels. "qp" is an external QP solver, as in `SVC`, for few samples. "auto" uses "cg" if the Cholesky factor
        does not fit into `cache_size`.
    %(cache_size)s
    verbose : bool, default=False
        Whether to print what is factorised and, with "cg", progress once a second.
    max_time : float, optional
        Time limit in seconds for `fit`. If "cg" reaches it, a warning is issued, the current solution is kept, and
        `stop_reason_` says so. Direct solvers have no solution before their factorisation is complete and raise a
        TimeoutError. An eigendecomposition ("eigen", or any singular system) is a single LAPACK call and is not
        interrupted.
    %(n_jobs)s
""",
    "ridge path": """
    %(cache_size)s
    verbose : bool, default=False
        Whether to print what is decomposed.
    max_time : float, optional
        Time limit in seconds; a TimeoutError is raised if the decomposition is not complete by then. The computation of
        eigenvectors is a single LAPACK call and is not interrupted.
    %(n_jobs)s
""",
    "ridge grid": """
    lams : array, int or None, default=None
        Values of λ to try, or their number; None means 50. A number of values is spread over the range of the
        eigenvalues of K.
    %(kernel)s
    %(ridge bias)s
    grid : dict or list of dicts, optional
        Grid of kernel parameters to try as well, such as {"gamma": [0.1, 1.0]} or {"kernel": [...]}; each point of the
        grid takes one decomposition.
""",
    "dual parameters": """
    shrinking : bool, default=True
        Whether the solver sets settled samples aside during training; the solution is the same.
    tol : float, default=1e-3
        Largest remaining violation of the optimality conditions, in units of f, as in LIBSVM. If the natural scale of f
        is below 1, `tol` is relative to that scale: the standard deviation of y in regression, or the squared distances
        between samples in feature space for machines without C.
    gap_tol : float, optional
        Relative duality gap to reach in addition to `tol`; None means no such requirement.
    %(cache_size)s
    %(verbose)s
    max_iter : int, default=-1
        Maximum number of steps of the inner solver; −1 means max(10⁷, 100·n_samples).
    max_time : float, optional
        Time limit in seconds. A fit that reaches a limit warns and keeps its current solution; see `stop_reason_`.
    solver : {"auto", "decomposition", "chunking", "chunking:…", "qp", "qp:…"}, default="auto"
        Algorithm; all reach the same solution. "decomposition" is block decomposition; "chunking" runs it on as many
        samples at a time as fit into `cache_size`, and "chunking:500" on 500; "qp" is an external QP solver for small
        problems (extra `qp`), with "qp:clarabel", "qp:piqp", "qp:quadprog", "qp:osqp" or "qp:cvxopt" as a specific one.
        "auto" is decomposition, in one batch for many small problems. Joint machines do not support chunking.
    warm_start : bool, default=False
        Whether `fit` starts from the previous solution and keeps a copy of the training samples for `partial_fit`.
    random_state : ignored
        Not used, since training is deterministic; present for API consistency.
    %(n_jobs)s
""",
    "dual attributes": """
    certificate_ : Certificate
        Primal and dual value, duality gap, violation and the residual of each optimality condition, recomputed after
        training.
    converged_ : bool
        Whether the requested accuracy was reached.
    stop_reason_ : str
        Reason why training ended: "converged", "rounding floor", "stalled", "max_iter" or "max_time".
    support_ : array of shape (n_SV,)
        Indices of the support vectors.
    support_vectors_ : array or CSR matrix of shape (n_SV, n_features)
        Support vectors; empty if the kernel is precomputed.
    n_support_ : array of int
        Number of support vectors of each class; a single number for machines without classes.
    dual_coef_ : array of shape (n_outputs, n_SV)
        Coefficients of the support vectors in the decision function; for several classes in scikit-learn's layout.
    intercept_ : array of shape (n_outputs,)
        Constants b of the decision functions.
    coef_ : array of shape (n_outputs, n_features)
        Weights of the features; only for a linear kernel.
    rkhs_norm_ : float or array of shape (n_outputs,)
        Norm ‖w‖ in feature space.
    n_iter_ : int or array of int
        Number of solver steps, for each binary problem if there are several.
    n_kernel_values_ : int
        Number of kernel values that the fit computed; only for machines with a single problem.
    fit_status_ : int
        0 if the fit converged, 1 otherwise.
    shape_fit_ : tuple of int
        Shape of the training samples.
    %(kernel with its numbers)s
""",
    "samples that follow": """
    The result is that of `fit` on all samples in the order in which they were given: exact to rounding if there are at
    most 2,000 free support vectors, and to the tolerance otherwise. `support_` refers to that order. The machine keeps
    a copy of all samples for this. `fit` keeps one only with warm_start=True; without it the first call of partial_fit
    starts from scratch, with a warning.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
        Samples to add.
""",
    "theta": """
    theta : float, optional
        Regularisation parameter ϑ of (1/n) Σ loss + ϑ‖w‖², n = Σ weights, instead of C = 1/(2ϑn). See `mercer.C_from`.
""",
    "representer parameters": """
    penalty : {"squared_norm", "norm"} or object, default="squared_norm"
        Penalty Ω: ‖f‖², ‖f‖, or an object with methods value(r) and derivative(r) of r = ‖f‖, increasing and convex
        (see `mercer.penalties`).
    early_stopping : bool, default=False
        Whether to hold out a validation set and to stop when its smoothed loss rises considerably (Igel, section 2.2).
        The step with the smallest loss is kept, and `certificate_` bounds its distance from the minimum on the other
        samples.
    validation_fraction : float, default=0.1
        Fraction of the distinct samples in the validation set; the choice of samples depends only on the data.
    n_iter_no_change : int, default=2
        Number of steps over which the validation loss is averaged; Newton's method takes few steps.
    rise : float, default=0.05
        Training ends when the averaged validation loss is above its smallest value by this fraction.
    %(kernel)s
    bias : bool, default=True
        Whether f has an intercept b, which is not penalised. For a loss of differences it must be False.
    tol : float, default=1e-6
        Largest distance of the objective from its minimum, relative to the minimum.
    cache_size : float, default=1000
        Memory in MB that a fit may use in addition to the data. If three matrices of n_samples² numbers fit, Newton
        systems are factorised; otherwise they are solved by preconditioned conjugate gradients.
    %(verbose)s
    max_iter : int, default=-1
        Maximum number of Newton steps or, for a loss with corners, of duals that are solved; −1 means 200.
    max_time : float, optional
        Time limit in seconds. A fit that reaches a limit warns and keeps its current solution; see `stop_reason_`.
    %(n_jobs)s
""",
    "representer attributes": """
    certificate_ : Certificate
        Primal and dual value of Σ w_i ℓ(y_i, f(x_i)) + λΩ(‖f‖), their gap and the residual of 2λc + wℓ′ = 0, recomputed
        after training. For a user-defined loss or penalty it is a proof only if that is convex. With several classes,
        `parts` has one certificate for each.
    converged_ : bool
        Whether the requested accuracy was reached, or early stopping ended training.
    stop_reason_ : str
        Reason why training ended: "converged", "rounding floor", "early stopping", "max_iter" or "max_time"; for a
        named loss with corners also "stalled".
    validation_loss_ : array of shape (n_outputs, n_steps)
        Mean loss on the validation set before each step and at the end; only with early stopping.
    dual_coef_ : array of shape (n_outputs, n_samples)
        Coefficients c of f(x) = Σ_j c_j k(x_j, x) + b.
    intercept_ : array of shape (n_outputs,)
        Constants b.
    n_iter_ : array of shape (n_outputs,)
        Number of Newton steps or, for a loss with corners, of duals; steps of the dual solver if there is only one.
    %(kernel with its numbers)s
""",
    "landmark parameters": """
    lam : float, default=1.0
        Regularisation strength λ > 0, the factor of ‖f‖²; scikit-learn's alpha.
    n_landmarks : int, default=1000
        Number M of landmarks; all samples if there are fewer. Time grows with M·n_samples, memory with M².
    landmarks : {"uniform", "leverage"} or array of shape (M, n_features), default="uniform"
        Landmarks, or the way to draw them without replacement: in proportion to the sample weights, or to approximate
        ridge leverage scores, which favour samples that are unlike the others.
    kernel : str, Kernel or callable, default="rbf"
        Kernel, as in `SVC`. Data-dependent parameters are computed from the samples; in a stream, from the samples that
        are drawn first.
    %(named kernel)s
    %(ridge bias)s
    tol : float, default=1e-5
        Relative duality gap to reach, computed from the true residual of the normal equations.
    %(cache_size)s
    %(verbose)s
    max_iter : int, default=-1
        Maximum number of iterations; −1 means 1,000.
    max_time : float, optional
        Time limit in seconds, checked between passes over the samples. A fit that reaches a limit warns and keeps its
        current solution; see `stop_reason_`.
    random_state : int, RandomState or None
        Seed of the choice of landmarks.
    %(n_jobs)s
""",
    "samples of a space": """
    n_landmarks : int, optional
        Number of landmarks: samples, drawn in proportion to the weights, onto whose span in feature space all samples
        are projected. For data whose kernel matrix does not fit into memory. None means no projection.
    %(cache_size)s
    verbose : bool, default=False
        Whether to print progress, at most one line a second.
    random_state : int, RandomState or None, default=None
        Seed of all random choices: landmarks, permutations and initialisations.
    n_jobs : int, optional
        Number of threads for kernel values; None means as many as BLAS would use.
""",
    "landmark attributes": """
    certificate_ : Certificate
        Primal and dual value and gap of ½Σw_i(y_i − f(x_i))² + ½λ‖f‖² over the span of the landmarks, from the residual
        recomputed after training; `violation` is the residual of the normal equations relative to their right-hand
        side. With several outputs, `parts` has one certificate for each.
    converged_ : bool
        Whether the requested accuracy was reached.
    stop_reason_ : str
        Reason why training ended: "converged", "rounding floor", "max_iter" or "max_time".
    method_ : str
        Algorithm used: "normal equations" (summed over all samples) or "conjugate gradients".
    jitter_ : float
        Constant added to the diagonal of the landmarks' kernel matrix to keep it positive definite in floating point.
    landmarks_ : array of shape (M, n_features)
        Landmarks; None for a precomputed kernel.
    landmark_indices_ : array of int
        Indices of the samples that are landmarks; absent for a stream.
    dual_coef_ : array of shape (M, n_outputs)
        Coefficients of the landmarks.
    intercept_ : array of shape (n_outputs,)
        Constants b.
    n_iter_ : int
        Number of iterations.
    %(kernel with its numbers)s
""",
    "leave-one-out estimate": """
    Parameters
    ----------
    model : SVC
        Machine for two classes with slack="l1". Its parameters define the problem; if it is fitted, its solution is the
        starting point of the search for the exact one.
    X : array or CSR matrix of shape (n_samples, n_features)
        Training samples, as given to `fit`.
    y : array of shape (n_samples,)
        Class labels.
    sample_weight : array of shape (n_samples,), optional
        Sample weights; a sample is left out with all its weight.

    Returns
    -------
    Estimate
        Estimate with these attributes: ``error``, the weighted fraction of samples that may be misclassified when left
        out; ``proven``, True if this solution alone proves that it is an upper bound on the leave-one-out error;
        ``assumes``, the assumption under which it is one; ``suspects``, the samples that may be misclassified, or None
        if only their number is bounded; ``recall`` and ``precision`` of the second class as ξα estimates them, NaN for
        the other estimates.
""",
    "n and delta": """
    n : int
        Number of samples.
    delta : float, default=0.05
        Probability with which the bound may fail.
""",
    "errors of a rule": """
    errors : int
        Number of samples that the rule misclassifies.
    %(n and delta)s
""",
    "trace and n": """
    trace : float
        Trace of the kernel matrix, tr K = Σ k(x_i, x_i).
    n : int
        Number of samples.
""",
    "vectors of signs": """
    n_draws : int, default=1024
        Number of sign vectors to draw; if 2^n is not larger, all sign vectors are used instead.
    random_state : int or Generator, default=0
        Seed or generator of the draws.
""",
    "radius": """
    radius : float
        Radius R of the data in feature space: the largest ‖φ(x)‖.
""",
    "cluster of each": """
    labels_ : array of shape (n_samples,)
        Cluster of each sample.
""",
    "kernel with its numbers": """
    kernel_ : Kernel
        Kernel with numerical parameters.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the features seen during `fit`, if they are all strings.
""",
    "samples alone": """
    X : array or CSR matrix of shape (n_samples, n_features)
        Training samples: a list of strings for a string kernel, the square kernel matrix for a precomputed one.
    y : ignored
        Not used; present for API consistency.
    %(repetitions)s
""",
    "repetitions": """
    sample_weight : array of shape (n_samples,), optional
        Sample weights. A weight is equivalent to that many repetitions of the sample; 0 leaves the sample out.

    Returns
    -------
    self
        Fitted estimator.
""",
    "more samples": """
    X : array or CSR matrix of shape (n_samples, n_features)
        Samples to add.
    y : array of shape (n_samples,)
        Target values.
""",
    "given twice": """
    sample_weight : array of shape (n_samples,), optional
        Sample weights; a weight of 2 is equivalent to giving the sample twice.
""",
    "new samples with targets": """
    X : array, CSR matrix or list of samples
        Samples that were not used for training.
    y : array of shape (n_samples,) or (n_samples, n_outputs)
        Target values.
""",
    "ax": """
    ax : matplotlib axes, optional
        Axes to draw on; None means a new figure.
""",
    "order of a matrix": """
    y : array of shape (n_samples,), optional
        Class labels or target values by which the samples are ordered.
    max_samples : int, default=500
        Maximum number of samples shown; of more, this many are taken at equal steps through the order.
    %(ax)s
""",
    "grid of a search": """
    grid : dict, list of dicts or "quick", optional
        Values to try for each parameter. None makes a grid for the data, "quick" a smaller one; the parameters then
        stay as the estimator has them unless the best cell is better by more than one standard error of the difference
        over the folds.
""",
    "options of a search": """
    cv, scoring, criterion, skip, one_standard_error, n_jobs, max_time, verbose : as in `mercer.tune`
        Cross-validation, scores, skipping and limits. After max_time the best of the completed fits is used.
""",
    "best machine": """
        Estimator fitted on all samples with the best parameters. Its fitted attributes, such as `certificate_`, and its
        methods, such as `margins`, `insight`, `explain`, `reasons` and `calibrate`, are also available here.
""",
    "outcome of a search": """
    best_params_, best_score_, best_index_, cv_results_, n_splits_
        As in scikit-learn's GridSearchCV; `cv_results_` also has the gap of each cell and why it was skipped.
    choice_ : str
        Explanation of why this cell was chosen.
    search_gap_ : float or None
        Bound on the search error: no C in the range tried can have a mean score more than this above `best_score_`.
        None if it is unknown, for the reason in `search_gap_reason_`.
    shared_ : str
        Description of the work that the fits shared.
    complete_ : bool
        Whether every point was scored or was skipped with a proof.
""",
    "film": """
    interval_ms : float, default=200.0
        Duration of a frame in milliseconds.
    figure : matplotlib figure, optional
        Figure to draw on; None means a new one.
""",
}

Documented = TypeVar("Documented", bound=type | Callable[..., Any])


def shared_docs(documented: Documented) -> Documented:
    """Replace the placeholders in a docstring by the shared paragraphs, which may contain placeholders themselves."""
    while documented.__doc__ and _PLACEHOLDER.search(documented.__doc__):  # python -OO removes docstrings
        documented.__doc__ = _PLACEHOLDER.sub(
            lambda match: indent(dedent(_SHARED[match[2]]).lstrip("\n"), match[1]), documented.__doc__
        )
    return documented
