"""What the docstrings of estimators share: a line `%(name)s` stands for a paragraph of this file."""

from __future__ import annotations

from typing import Final, TypeVar

_SHARED: Final = {
    "dual parameters": """
    shrinking : bool, default=True
        Leave settled samples aside while training; the answer is the same.
    tol : float, default=1e-3
        Largest violation of the optimality conditions that may remain, in the scale of f; LIBSVM's meaning. Where
        everything that f could tell apart is smaller than 1, it is relative to that: to the standard deviation of y for
        regression, to the squared distances of the samples in feature space for machines without C.
    gap_tol : float, optional
        Also go on until the duality gap is at most this share of the dual value.
    cache_size : float, default=1000
        Memory in MB that a fit may use beyond the data.
    verbose : bool, default=False
        Print a line a second; a notebook shows one line that is rewritten.
    max_iter : int, default=-1
        Limit on steps of the inner solver; −1 stands for max(10⁷, 100·n_samples).
    max_time : float, optional
        Limit in seconds. A fit that meets a limit warns, returns what it has, and says so in `stop_reason_`.
    solver : {"auto", "decomposition", "chunking", "qp"}, default="auto"
        Which way to the same answer: block decomposition, the same on as many samples at a time as `cache_size`
        holds, or an outside interior-point solver for small problems (extra `qp`). "auto" is decomposition, and for
        small pairs of several classes the same steps on all pairs at once. Joint multi-class machines have no other.
    warm_start : bool, default=False
        Start `fit` from the last solution, and keep a copy of the training samples for `partial_fit`.
    random_state : ignored
        Nothing here is random.
    n_jobs : int, optional
        Threads; None uses as many as BLAS would.
""",
    "dual attributes": """
    certificate_ : Certificate
        Primal and dual value, gap, violation and each optimality condition's residual, recomputed after training.
    converged_ : bool
    stop_reason_ : str
        "converged", "rounding floor", "stalled", "max_iter" or "max_time".
    rkhs_norm_ : float, or array of one for each output
        ‖w‖ in feature space.
    kernel_ : Kernel
        The kernel with its parameters as numbers.
    support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_, n_iter_, fit_status_, shape_fit_,
    n_features_in_, feature_names_in_
        As in scikit-learn.
""",
    "theta": """
    theta : float, optional
        ϑ of (1/n) Σ loss + ϑ‖w‖², n = Σ weights, in place of C = 1/(2ϑn). See `mercer.estimators.regularisation`.
    lam : float, optional
        The old spelling of `theta`.
""",
    "representer parameters": """
    kernel : str, Kernel or callable, default="rbf"
        As for `SVC`.
    degree, gamma, coef0
        Parameters of the named kernels; a kernel object has its own.
    bias : bool, default=True
        Whether f has a constant b, which is not penalised.
    tol : float, default=1e-6
        How far the objective may be above its minimum, as a share of it.
    cache_size : float, default=1000
        Memory in MB that a fit may use beyond the data. Where three matrices of n_samples² numbers fit, Newton systems
        are factorised; otherwise they are solved by preconditioned conjugate gradients.
    verbose : bool, default=False
        Print a line a second; a notebook shows one line that is rewritten.
    max_iter : int, default=-1
        Limit on Newton steps; −1 stands for 200.
    max_time : float, optional
        Limit in seconds. A fit that meets a limit warns, returns what it has, and says so in `stop_reason_`.
    n_jobs : int, optional
        Threads; None uses as many as BLAS would.
""",
    "representer attributes": """
    certificate_ : Certificate
        Primal and dual value of Σ w_i ℓ(y_i, f(x_i)) + λ‖f‖², their gap and the residual of 2λc + wℓ′ = 0, recomputed
        after training. For a loss of one's own it is a proof if that is convex. Several classes are its `parts`.
    converged_ : bool
    stop_reason_ : str
        "converged", "rounding floor", "max_iter" or "max_time"; for the hinge also "stalled".
    dual_coef_ : array of shape (n_outputs, n_samples)
        c, with f(x) = Σ_j c_j k(x_j, x) + b.
    intercept_ : array of shape (n_outputs,)
    n_iter_ : array of shape (n_outputs,)
    kernel_ : Kernel
        The kernel with its parameters as numbers.
    n_features_in_, feature_names_in_
        As in scikit-learn.
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
    degree, gamma, coef0
        Parameters of the named kernels; a kernel object has its own.
    bias : bool, default=True
        Whether f has a constant b, which is not penalised.
    tol : float, default=1e-5
        Relative duality gap to reach, as computed from the true residual of the normal equations.
    cache_size : float, default=1000
        Memory in MB that a fit may use beyond the data.
    verbose : bool, default=False
        Print a line a second; a notebook shows one line that is rewritten.
    max_iter : int, default=-1
        Limit on iterations; −1 stands for 1,000.
    max_time : float, optional
        Limit in seconds, looked at between two passes over the samples. A fit that meets a limit warns, returns what it
        has, and says so in `stop_reason_`.
    random_state : int, RandomState or None
        For the choice of landmarks.
    n_jobs : int, optional
        Threads; None uses as many as BLAS would.
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
    kernel_ : Kernel
        The kernel with its parameters as numbers.
    n_features_in_, feature_names_in_
        As in scikit-learn.
""",
}

Estimator = TypeVar("Estimator", bound=type)


def shared_docs(estimator: Estimator) -> Estimator:
    """Fill in the shared paragraphs of a class's docstring."""
    if estimator.__doc__:  # there is none under python -OO
        for name, text in _SHARED.items():
            estimator.__doc__ = estimator.__doc__.replace(f"    %({name})s\n", text.lstrip("\n"))
    return estimator
