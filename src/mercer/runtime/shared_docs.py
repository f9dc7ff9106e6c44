"""What docstrings share: a line `%(name)s` stands for a paragraph of this file."""

from __future__ import annotations

import re
from collections.abc import Callable
from textwrap import dedent, indent
from typing import Any, Final, TypeVar

# However deep: from Python 3.13 on, docstrings lose the indentation that all their lines share.
_PLACE: Final = re.compile(r"^( *)%\((.+?)\)s\n", flags=re.MULTILINE)
_SHARED: Final = {
    "columns": """
    drop : sequence of str, default=()
        Columns to leave out.
    only : sequence of str or None, default=None
        Columns to take, and no others. What is named here is taken, even if it looks like an identifier.
    categorical : sequence of str, default=()
        Columns of categories, such as codes that are written as numbers.
    numeric : sequence of str, default=()
        Columns of numbers, whatever they are called; words among them are missing values.
    text : sequence of str, default=()
        Columns of texts, of which the words are counted.
    missing : {"impute", "drop"}, default="impute"
        "drop" leaves rows with a missing value out of training. In prediction they are filled, since every row has an
        answer.
    standardise : bool, default=True
        False leaves numbers, and y of a regression, as they are.
""",
    "kernel": """
    kernel : str, Kernel or callable, default="rbf"
        A name ("linear", "poly", "rbf", "sigmoid", "laplacian", "precomputed", ...), a kernel object, which may be
        composed with + * ** and exp, or a function (X, Z) -> matrix of kernel values.
    %(named kernel)s
""",
    "named kernel": """
    degree : int, default=3
        Of the kernel named "poly"; a kernel object has parameters of its own.
    gamma : float, "scale", "auto" or "median", default="scale"
        Of the kernels named "rbf", "laplacian", "poly" and "sigmoid". "scale" is 1/(columns · variance of X), "auto"
        1/columns, "median" 1/(2m²) with m the median distance between samples. A sample of weight 2 counts twice in
        the variance; scikit-learn counts it once.
    coef0 : float, default=0.0
        The constant in the kernels named "poly" and "sigmoid".
""",
    "n_jobs": """
    n_jobs : int, optional
        Threads; None uses as many as BLAS would.
""",
    "cache_size": """
    cache_size : float, default=1000
        Memory in MB that a fit may use beyond the data.
""",
    "verbose": """
    verbose : bool, default=False
        Print a line a second; a notebook shows one line that is rewritten.
""",
    "several kernels": """
    kernel : list of kernels, default=("linear", "poly", "rbf")
        Each a name, a kernel object or a function (X, Z) -> matrix. "precomputed": X is a list of kernel matrices, or
        an array of shape (n, n, number of kernels). One kernel alone has the weight 1.
    %(named kernel)s
    norm : float, default=1.0
        p ≥ 1 of the norm that is at most 1. With 1 kernels that do not help get the weight 0; larger ones spread the
        weight; inf gives every kernel the same.
    normalise : bool, default=True
        Whether v_m is the variance of the samples in the feature space of k_m, so that a kernel's scale has no
        influence; otherwise it is 1.
""",
    "weights attributes": """
    weights_ : array of shape (n_kernels,)
        θ, on the kernels as they were given: `kernel_` is Σ θ_m k_m, without those of weight 0.
    scales_ : array of shape (n_kernels,)
        v: ‖(v_mθ_m)‖_p is 1 to rounding.
    n_rounds_ : int
        How many weights were tried.
""",
    "optimise": """
    optimise : bool or list of str, default=True
        Whether the kernel's parameters (and lam, of a regression) are chosen by the marginal likelihood, with a scale
        of the kernel as one more; a list names those to choose, such as ["gamma"].
""",
    "process limits": """
    max_iter : int, default=-1
        The most steps of that search; −1 stands for 100.
    max_time : float, optional
        Limit in seconds of what follows it.
    %(cache_size)s
    %(verbose)s
    %(n_jobs)s
""",
    "class_weight": """
    class_weight : dict or "balanced", optional
        Factors on the weights of the samples of each class. "balanced" makes the classes' sums of weights equal:
        n / (n_classes · sum of the class), where samples count by their `sample_weight`; scikit-learn counts them once.
""",
    "linear bias": """
    bias : {True, "regularized", False}, default=True
        True: b is free, as in SVC(kernel="linear"). "regularized": b is one more weight, ½(b/intercept_scaling)² in the
        objective, as in LIBLINEAR and scikit-learn. False: f passes through the origin.
    intercept_scaling : float, default=1.0
        Only for bias="regularized".
""",
    "linear solver": """
    gap_tol : float, optional
        Go on until the duality gap is at most this share of the dual value.
    solver : {"auto", "newton", "dual", "qp", "qp:…"}, default="auto"
        Newton's method in (w, b), or dual coordinate descent; "auto" takes the first up to 1000 columns, otherwise the
        second and, where that crawls, the first to end with. "qp" is an outside QP solver, as in `SVC`, for few rows.
""",
    "linear limits": """
    shrinking : bool, default=True
        Leave settled samples aside in dual coordinate descent; the answer is the same.
    verbose : bool, default=False
        Print the certificates on the way, a line a second at most.
    max_iter : int, default=-1
        Limit on Newton steps or passes over the data; −1 stands for 10,000, and for "crammer_singer" for as many as
        `tol` takes.
    max_time : float, optional
        Limit in seconds. A fit that meets a limit warns with the gap it has reached.
    random_state : int, RandomState or None, default=None
        Order of the samples in dual coordinate descent; None stands for one fixed order.
    %(n_jobs)s
""",
    "ridge bias": """
    bias : bool, default=True
        Whether f has a constant b, which is not penalised.
""",
    "ridge solver": """
    solver : {"auto", "cholesky", "eigen", "cg", "covariance", "lsqr", "qp", "qp:…"}, default="auto"
        "cholesky" factors K + λW⁻¹ (float32, refined to float64's answer, where that is possible); "eigen" decomposes
        it, also where it is singular; "cg" runs conjugate gradients preconditioned by landmarks and never stores K,
        which "auto" does where the factor would not fit into `cache_size`; "covariance" and "lsqr" are for linear
        kernels: a d × d matrix, or products with X alone. "qp" is an outside QP solver, as in `SVC`, for few samples.
    %(cache_size)s
    verbose : bool, default=False
        Print what is factored and, for "cg", a line a second.
    max_time : float, optional
        Limit in seconds of `fit`. "cg" then warns, returns what it has, and says so in `stop_reason_`. The others have
        nothing to return before their factor is done, and raise a TimeoutError. A decomposition ("eigen", and wherever
        the system is singular) is one call of LAPACK: once begun, it is finished, however long it takes.
    %(n_jobs)s
""",
    "ridge path": """
    %(cache_size)s
    verbose : bool, default=False
        Print what is decomposed.
    max_time : float, optional
        Limit in seconds: a TimeoutError if there is no decomposition by then. Eigenvectors are one call of
        LAPACK: once begun, it is finished, however long it takes.
    %(n_jobs)s
""",
    "ridge grid": """
    lams : array, int or None, default=None
        The values of λ to try, or how many; None means 50. A number of values is spread over the range of K's
        eigenvalues.
    %(kernel)s
    %(ridge bias)s
    grid : dict or list of dicts, optional
        Kernel parameters to try as well, such as {"gamma": [0.1, 1.0]} or {"kernel": [...]}; each point of the grid
        costs one decomposition.
""",
    "dual parameters": """
    shrinking : bool, default=True
        Leave settled samples aside while training; the answer is the same.
    tol : float, default=1e-3
        Largest violation of the optimality conditions that may remain, in the scale of f; LIBSVM's meaning. Where
        everything that f could tell apart is smaller than 1, it is relative to that: to the standard deviation of y for
        regression, to the squared distances of the samples in feature space for machines without C.
    gap_tol : float, optional
        Also go on until the duality gap is at most this share of the dual value.
    %(cache_size)s
    %(verbose)s
    max_iter : int, default=-1
        Limit on steps of the inner solver; −1 stands for max(10⁷, 100·n_samples).
    max_time : float, optional
        Limit in seconds. A fit that meets a limit warns, returns what it has, and says so in `stop_reason_`.
    solver : {"auto", "decomposition", "chunking", "qp", "qp:…"}, default="auto"
        Which way to the same answer: block decomposition, the same on as many samples at a time as `cache_size`
        holds, or an outside QP solver for small problems (extra `qp`): "qp:clarabel", "qp:piqp", "qp:quadprog",
        "qp:osqp", "qp:cvxopt"; "qp" is the first. "auto" is decomposition, and for small pairs of several
        classes the same steps on all pairs at once. Joint multi-class machines know no chunking.
    warm_start : bool, default=False
        Start `fit` from the last solution, and keep a copy of the training samples for `partial_fit`.
    random_state : ignored
        Nothing here is random.
    %(n_jobs)s
""",
    "dual attributes": """
    certificate_ : Certificate
        Primal and dual value, gap, violation and each optimality condition's residual, recomputed after training.
    converged_ : bool
    stop_reason_ : str
        "converged", "rounding floor", "stalled", "max_iter" or "max_time".
    n_kernel_values_ : int
        Kernel values that the fit computed; of machines with one problem.
    rkhs_norm_ : float, or array of one for each output
        ‖w‖ in feature space.
    kernel_ : Kernel
        The kernel with its parameters as numbers.
    support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_, n_iter_, fit_status_, shape_fit_,
    n_features_in_, feature_names_in_
        As in scikit-learn.
""",
    "samples that follow": """
    The result is that of `fit` on all samples in the order in which they came, exact to rounding where there are at
    most 2,000 free support vectors and to the tolerance elsewhere, and `support_` counts in that order. The machine
    must therefore keep a copy of all samples; `fit` keeps one only with warm_start=True, and without it the first
    call of partial_fit starts anew, with a warning.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
        The samples.
""",
    "theta": """
    theta : float, optional
        ϑ of (1/n) Σ loss + ϑ‖w‖², n = Σ weights, in place of C = 1/(2ϑn). See `mercer.C_from`.
""",
    "representer parameters": """
    penalty : {"squared_norm", "norm"} or object, default="squared_norm"
        Ω: ‖f‖², ‖f‖, or an object with value(r) and derivative(r) of r = ‖f‖, increasing and convex (see
        `mercer.penalties`).
    early_stopping : bool, default=False
        Leave a validation part out, and stop when its smoothed loss rises considerably (Igel, section 2.2). The step
        with the least loss is kept, and `certificate_` says how far it is from the minimum on the other samples.
    validation_fraction : float, default=0.1
        Share of the distinct samples in the validation part. Which they are depends on the data alone.
    n_iter_no_change : int, default=2
        How many steps the validation loss is averaged over; Newton's method takes few.
    rise : float, default=0.05
        The share above its least value at which the averaged validation loss ends the steps.
    %(kernel)s
    bias : bool, default=True
        Whether f has a constant b, which is not penalised. A loss of differences has none.
    tol : float, default=1e-6
        How far the objective may be above its minimum, as a share of it.
    cache_size : float, default=1000
        Memory in MB that a fit may use beyond the data. Where three matrices of n_samples² numbers fit, Newton systems
        are factorised; otherwise they are solved by preconditioned conjugate gradients.
    %(verbose)s
    max_iter : int, default=-1
        Limit on Newton steps; −1 stands for 200.
    max_time : float, optional
        Limit in seconds. A fit that meets a limit warns, returns what it has, and says so in `stop_reason_`.
    %(n_jobs)s
""",
    "representer attributes": """
    certificate_ : Certificate
        Primal and dual value of Σ w_i ℓ(y_i, f(x_i)) + λΩ(‖f‖), their gap and the residual of 2λc + wℓ′ = 0, recomputed
        after training. For a loss or penalty of one's own it is a proof if that is convex. Several classes are its
        `parts`.
    converged_ : bool
    stop_reason_ : str
        "converged", "rounding floor", "early stopping", "max_iter" or "max_time"; for the hinge also "stalled".
    validation_loss_ : array of shape (n_outputs, n_steps)
        The mean loss of the validation part before each step, and at the end; with early stopping.
    dual_coef_ : array of shape (n_outputs, n_samples)
        c, with f(x) = Σ_j c_j k(x_j, x) + b.
    intercept_ : array of shape (n_outputs,)
    n_iter_ : array of shape (n_outputs,)
    %(kernel with its numbers)s
""",
    "landmark parameters": """
    lam : float, default=1.0
        λ > 0, the price of ‖f‖²; scikit-learn's alpha.
    n_landmarks : int, default=1000
        M; all samples where there are fewer. Time grows with M·n_samples, memory with M².
    landmarks : {"uniform", "leverage"} or array of shape (M, n_features), default="uniform"
        Drawn without replacement in proportion to the weights, or to approximate ridge leverage scores, which favour
        samples that no others resemble; or given.
    kernel : str, Kernel or callable, default="rbf"
        As for `SVC`. Parameters that depend on data are read off the samples; of a stream, off those first drawn.
    %(named kernel)s
    bias : bool, default=True
        Whether f has a constant b, which is not penalised.
    tol : float, default=1e-5
        Relative duality gap to reach, as computed from the true residual of the normal equations.
    %(cache_size)s
    %(verbose)s
    max_iter : int, default=-1
        Limit on iterations; −1 stands for 1,000.
    max_time : float, optional
        Limit in seconds, looked at between two passes over the samples. A fit that meets a limit warns, returns what it
        has, and says so in `stop_reason_`.
    random_state : int, RandomState or None
        For the choice of landmarks.
    %(n_jobs)s
""",
    "samples of a space": """
    n_landmarks : int, optional
        Project the samples onto the span of this many of them in feature space, drawn in proportion to the weights, for
        more samples than a kernel matrix has room for. None takes all samples, exactly.
    %(cache_size)s
    verbose : bool, default=False
        Print what is being done, a line a second at most.
    random_state : int, RandomState or None, default=None
        For what is drawn: landmarks, permutations, and where a search starts.
    n_jobs : int, optional
        Threads for kernel values; None uses as many as BLAS would.
""",
    "landmark attributes": """
    certificate_ : Certificate
        Primal and dual value and gap, of ½Σw_i(y_i − f(x_i))² + ½λ‖f‖² over the span of the landmarks, from the
        residual recomputed after training; `violation` is the residual of the normal equations relative to their
        right-hand side. Several outputs are its `parts`.
    converged_ : bool
    stop_reason_ : str
        "converged", "rounding floor", "max_iter" or "max_time".
    method_ : str
        "normal equations" (summed over all samples) or "conjugate gradients".
    jitter_ : float
        What was added to the diagonal of the landmarks' kernel matrix so that rounding leaves it definite.
    landmarks_, landmark_indices_
        The landmarks, and which of the samples they were (not for a stream).
    dual_coef_ : array of shape (M, n_outputs)
    intercept_ : array of shape (n_outputs,)
    n_iter_ : int
    %(kernel with its numbers)s
""",
    "leave-one-out estimate": """
    Parameters
    ----------
    model : SVC
        Two classes, slack="l1". Its parameters say what is solved; if it is fitted, its solution is where the exact one
        is looked for.
    X : array or CSR matrix of shape (n_samples, n_features)
        The training samples, as given to `fit`.
    y : array of shape (n_samples,)
        Their classes.
    sample_weight : array of shape (n_samples,), optional
        A sample is left out with all its weight.

    Returns
    -------
    Estimate
        ``error``, the share of samples, by weight, that may be misclassified when left out; ``proven``, True if this
        solution alone proves that it is an upper bound on the leave-one-out error; ``assumes``, what it needs to be
        one; ``suspects``, which samples may be misclassified, or None where only their number is bounded; ``recall``
        and ``precision`` of the second class, as ξα estimates them, NaN for the others.
""",
    "n and delta": """
    n : int
        The number of samples.
    delta : float, default=0.05
        The probability with which the bound may fail.
""",
    "errors of a rule": """
    errors : int
        How many of the samples the rule gets wrong.
    %(n and delta)s
""",
    "trace and n": """
    trace : float
        tr K = Σ k(x_i, x_i).
    n : int
        The number of samples.
""",
    "vectors of signs": """
    n_draws : int, default=1024
        Sign vectors that are drawn; if there are no more than that, all 2^n are taken instead.
    random_state : int or Generator, default=0
        What is drawn by.
""",
    "radius": """
    radius : float
        R: the largest ‖φ(x)‖.
""",
    "cluster of each": """
    labels_ : array of shape (n_samples,)
        The cluster of each sample.
""",
    "kernel with its numbers": """
    kernel_ : Kernel
        The kernel with its parameters as numbers.
    n_features_in_, feature_names_in_
        As in scikit-learn.
""",
    "samples alone": """
    X : array or CSR matrix of shape (n_samples, n_features)
        A list of strings for a string kernel; the square kernel matrix for a precomputed one.
    y : ignored
        There for scikit-learn's pipelines.
    %(repetitions)s
""",
    "repetitions": """
    sample_weight : array of shape (n_samples,), optional
        A weight counts like that many repetitions of its sample; 0 leaves the sample out.

    Returns
    -------
    self
""",
    "more samples": """
    X : array or CSR matrix of shape (n_samples, n_features)
        More samples.
    y : array of shape (n_samples,)
        What to learn of each sample.
""",
    "given twice": """
    sample_weight : array of shape (n_samples,), optional
        A weight of 2 equals the sample given twice.
""",
    "new samples with targets": """
    X : array, CSR matrix or list of samples
        Samples that were not trained on.
    y : array of shape (n_samples,) or (n_samples, n_outputs)
        Their targets.
""",
    "ax": """
    ax : matplotlib axes, optional
        Where to draw; default: a new figure.
""",
    "order of a matrix": """
    y : array of shape (n_samples,), optional
        The classes, or the numbers of a regression, to order the samples by.
    max_samples : int, default=500
        Of more samples, this many at equal steps through the order are shown.
    %(ax)s
""",
    "grid of a search": """
    grid : dict, list of dicts or "quick", optional
        Values to try for each parameter. None makes a grid for the data, "quick" a smaller one; parameters then stay
        as the estimator has them unless the best cell is better by more than one standard error of the difference over
        the folds.
""",
    "options of a search": """
    cv, scoring, criterion, skip, one_standard_error, n_jobs, max_time, verbose : as in `mercer.tune`
        How points are judged, what is skipped, and limits. After max_time the best of the fits that were made is taken.
""",
    "best machine": """
        Trained on all samples with the best parameters. What it learnt can be asked for here too, such as
        `certificate_`, and so can what it knows: `margins`, `insight`, `explain`, `reasons`, `calibrate` and so on.
""",
    "outcome of a search": """
    best_params_, best_score_, best_index_, cv_results_, n_splits_
        As in scikit-learn's GridSearchCV; `cv_results_` also has the gap of each cell and why it was skipped.
    choice_ : str
        Why this cell was chosen, in words.
    search_gap_ : float or None
        No C in the range that was tried can have a mean score more than this above `best_score_`; None where that is
        not known, for the reason in `search_gap_reason_`.
    shared_ : str
        What the fits shared, in words.
    complete_ : bool
        Whether every point has its scores or was skipped with a proof.
""",
    "film": """
    interval_ms : float, default=200.0
        Milliseconds that a frame is shown.
    figure : matplotlib figure, optional
        Where to draw; default: a new one.
""",
}

Documented = TypeVar("Documented", bound=type | Callable[..., Any])


def shared_docs(thing: Documented) -> Documented:
    """Fill in the shared paragraphs of the docstring of a class, function or method, which may name others."""
    while thing.__doc__ and _PLACE.search(thing.__doc__):  # there is none under python -OO
        thing.__doc__ = _PLACE.sub(
            lambda place: indent(dedent(_SHARED[place[2]]).lstrip("\n"), place[1]), thing.__doc__
        )
    return thing
