"""Regularized least squares on landmarks, for more samples than a kernel matrix has room for."""

from __future__ import annotations

from typing import Any

from sklearn.base import MultiOutputMixin, RegressorMixin

from mercer.arrays import Floats
from mercer.data.targets import outputs
from mercer.fitting.kinds import Flag, fitted
from mercer.fitting.landmark_machine import LandmarkMachine
from mercer.fitting.stream_targets import StreamLabels, StreamNumbers
from mercer.fitting.targets import OneAgainstAll, Targets


class _Parameters(LandmarkMachine):
    """The parameters of both."""

    def __init__(
        self,
        lam: float = 1.0,
        *,
        n_landmarks: int = 1000,
        landmarks: Any = "uniform",
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        bias: bool = True,
        tol: float = 1e-5,
        cache_size: float = 1000,
        verbose: bool = False,
        max_iter: int = -1,
        max_time: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.lam = lam
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.bias = bias
        self.tol = tol
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.max_time = max_time
        self.random_state = random_state
        self.n_jobs = n_jobs


_PARAMETERS = """
    Parameters
    ----------
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
        Print a line a second.
    max_iter : int, default=-1
        Limit on iterations; −1 stands for 1,000.
    max_time : float, optional
        Limit in seconds, looked at between two passes over the samples. A fit that meets a limit warns, returns what it
        has, and says so in `stop_reason_`.
    random_state : int, RandomState or None
        For the choice of landmarks.
    n_jobs : int, optional
        Threads; None uses as many as BLAS would.

    Attributes
    ----------
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
"""


class NystromRLS(MultiOutputMixin, RegressorMixin, _Parameters):  # type: ignore[misc]  # scikit-learn is untyped
    __doc__ = f"""Regularized least squares on landmarks: kernel ridge regression for millions of samples.

    Minimises Σ w_i (y_i − f(x_i))² + λ‖f‖² over f(x) = Σ_j c_j k(z_j, x) + b with M landmarks z_j, exactly, for one or
    several outputs; the kernel matrix between samples and landmarks is never stored. With all samples as landmarks this
    is kernel ridge regression itself.
{_PARAMETERS}
    Examples
    --------
    >>> import numpy as np
    >>> from mercer import NystromRLS
    >>> X = np.linspace(-3, 3, 2000)[:, None]
    >>> y = np.sinc(X[:, 0])
    >>> model = NystromRLS(lam=1e-3, n_landmarks=50, random_state=0).fit(X, y)
    >>> round(model.score(X, y), 3)
    1.0
    >>> model.certificate_.relative_gap <= 1e-5
    True
    """

    FITTED = fitted(_flat_=Flag(required=True))

    _stream_targets = StreamNumbers

    def _targets(self, y: Any) -> Targets:
        return Targets(*outputs(y))

    def _conclude_targets(self, target: Targets) -> None:
        self._flat_ = target.flat

    def predict(self, X: Any) -> Floats:
        """f(x) for every sample; one column per output where y had two dimensions."""
        values = self._decision(X)
        return values[:, 0] if self._flat_ else values


class NystromRLSClassifier(OneAgainstAll, _Parameters):
    __doc__ = f"""Regularized least squares classification on landmarks, one class against all others.

    Minimises Σ w_i (y_i − f(x_i))² + λ‖f‖² with y_i = ±1 over f(x) = Σ_j c_j k(z_j, x) + b with M landmarks z_j: for
    two classes one f, whose sign decides; for more, one per class, of which the largest decides.
{_PARAMETERS}
    classes_ : array of shape (n_classes,)

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mercer import NystromRLSClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = NystromRLSClassifier(lam=0.1, n_landmarks=300, gamma=1e-3, random_state=0).fit(X[:1000], y[:1000])
    >>> model.score(X[1000:], y[1000:]) > 0.95
    True
    """

    _stream_targets = StreamLabels
