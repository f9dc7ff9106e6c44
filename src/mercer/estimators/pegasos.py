"""Soft-margin classification by stochastic subgradient descent: any number of rows, in memory or as a stream."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from mercer.arrays import Floats, freeze
from mercer.data import samples
from mercer.data.labels import class_weights, read_labels
from mercer.data.merging import merge
from mercer.fitting.machine import Training
from mercer.fitting.no_probabilities import Deciding
from mercer.fitting.pegasos_machine import deadline_of, seed_of
from mercer.fitting.pegasos_stream import StreamLearner
from mercer.fitting.telling import Progress
from mercer.parameters import iterations
from mercer.solution import Stop
from mercer.solvers.pegasos.descent import solve_pegasos
from mercer.threads import effective_n_threads


class PegasosSVC(Deciding, ClassifierMixin, StreamLearner):  # type: ignore[misc]  # scikit-learn is untyped
    """Soft-margin classification by stochastic subgradient descent (Pegasos), linear or with a kernel.

    Minimises (λ/2)‖w‖² + (1/m) Σ max(0, 1 − y_i⟨w, φ(x_i)⟩), one random sample at a time: the t-th step adds y_iφ(x_i)
    to θ if y_i⟨w, φ(x_i)⟩ < 1 at w = θ/(λt), and a mean of the w comes out. It is `SVC` with C = 1/(λm) and without
    its free bias. After T steps the mean of all w is within 2R²(1 + ln T)/(λT) of the optimum in expectation, R =
    max‖φ(x_i)‖, whatever the number of samples; for more than two or three digits use an exact machine. Several
    classes are trained one against the rest.

    Parameters
    ----------
    lam : float, default=1e-4
        λ. Large values converge in few steps; C = 1/(λm), where m is the sum of the sample weights.
    kernel : str, Kernel or callable, default="linear"
        The name "linear" trains w itself, at a cost per step of the row's non-zero entries; everything else, kernel
        objects that are linear included, trains coefficients of samples.
    degree, gamma, coef0
        Parameters of the named kernels; in a stream "scale" and the like are taken from the first chunk.
    bias : {"regularized", False}, default="regularized"
        A constant feature 1 (k + 1 with a kernel), whose weight is part of ‖w‖²; or none, as in the notes.
    average : {"suffix", "all", "last"}, default="suffix"
        The mean of the iterates since the largest power of two up to T/2, which leaves the first, wild ones out; the
        mean of all, as in the notes; or the last one.
    sampling : {"replacement", "passes"}, default="replacement"
        Draw every sample anew, as in the notes, or visit each once per epoch in random order. `partial_fit` always
        makes one pass over its chunk.
    project : bool, default=False
        Keep ‖w‖ ≤ 1/√λ, where the optimum is known to lie.
    max_iter : int, default=-1
        Epochs, each of as many steps as there are distinct samples. −1 stands for 10, or for few samples as many as
        make 10⁶ steps or touch 3·10⁸ entries of the data (kernel values, with a kernel), whatever is less, and no
        more than 2000.
    early_stopping : bool, default=False
        Leave a validation part out and stop when its loss has not fallen for a while; the best epoch's machine is
        kept.
    validation_fraction : float, default=0.1
        Share of the distinct samples in the validation part.
    n_iter_no_change : int, default=5
        Epochs without a fall of more than `tol` after which training stops early.
    tol : float, default=1e-3
        Smallest fall of the validation loss that counts, per class; nothing else uses it.
    class_weight : dict or "balanced", optional
        Multiplies the sample weights; "balanced" is not for streams.
    certificate : bool, default=False
        Count what the steps meet, for a certificate whose gap is tighter as long as the iterates have not settled. It
        takes up to a fifth more time.
    cache_size : float, default=1000
        Memory in MB for kernel values.
    verbose : bool, default=False
        Print a line a second.
    max_time : float, optional
        Limit in seconds, for a fit, a call of `partial_fit` or a whole stream.
    random_state : int, RandomState or None
        An integer makes fits repeatable, to the last bit and on every platform.
    n_jobs : int, optional
        Threads for kernel values.

    Attributes
    ----------
    coef_ : array of shape (n_machines, n_features)
        Only for kernel="linear". One machine for two classes, else one per class.
    intercept_ : array of shape (n_machines,)
    dual_coef_, support_vectors_
        Coefficients and samples of the expansion, with any other kernel.
    kernel_ : Kernel
        The kernel with its numbers.
    classes_, class_weight_, n_features_in_, feature_names_in_
        As in scikit-learn.
    t_ : int
        Steps made.
    n_iter_ : int
        Epochs or chunks begun.
    objective_ : float
        The minimised function at the outcome, summed over the machines; after `fit` only.
    certificate_ : Certificate
        How far the outcome is from the optimum; after `fit` only. Its values are those of ½‖w‖² + Σ C_iξ_i, the
        function above over λ.
    validation_loss_ : array
        Mean hinge loss on the validation part after each epoch, summed over the machines; with early stopping.
    converged_ : bool
        Whether all planned steps were made or early stopping ended them; only `certificate_` proves convergence.
    stop_reason_ : str
        "all steps", "early stopping" or "max_time".

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from mercer import PegasosSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = PegasosSVC(lam=0.01, certificate=True, random_state=0).fit(scale(X), y)
    >>> model.score(scale(X), y) > 0.97
    True
    >>> model.certificate_.relative_gap < 0.1
    True
    """

    def __init__(
        self,
        lam: float = 1e-4,
        *,
        kernel: Any = "linear",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        bias: Any = "regularized",
        average: str = "suffix",
        sampling: str = "replacement",
        project: bool = False,
        max_iter: int = -1,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        tol: float = 1e-3,
        class_weight: Any = None,
        certificate: bool = False,
        cache_size: float = 1000,
        verbose: bool = False,
        max_time: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.lam = lam
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.bias = bias
        self.average = average
        self.sampling = sampling
        self.project = project
        self.max_iter = max_iter
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.class_weight = class_weight
        self.certificate = certificate
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_time = max_time
        self.random_state = random_state
        self.n_jobs = n_jobs

    # --- training -------------------------------------------------------------------------------

    def _train(self, X: Any, y: Any, sample_weight: Any, training: Training) -> None:
        self._check_parameters()
        kernel = self._kernel()
        X = self._samples(X, kernel, reset=True)
        check_consistent_length(X, y)
        labels, codes = read_labels(y)
        weight = samples.weights(sample_weight, len(codes))
        factor = class_weights(self.class_weight, labels, codes, weight)
        merged = merge(X, codes, weight, identical=kernel.mergeable, n_threads=effective_n_threads(self.n_jobs))
        self.kernel_, gram = self._bound(kernel, merged, precomputed=X if kernel.accepts == "gram" else None)
        self._seed_ = seed_of(self.random_state)
        self.classes_, self.class_weight_ = freeze(labels), freeze(factor)
        held_out, space, problem = self._held_out(merged), self._space(merged, gram), self._problem(merged)
        progress = Progress(training.watched_by, bool(self.verbose), 1, X, y)
        stop = Stop(float(self.tol), 2**62, deadline=deadline_of(self.max_time))
        outcome, self.certificate_ = solve_pegasos(
            problem,
            space,
            stop,
            None,
            progress.begin(""),
            seed=self._seed_,
            epochs=None if self.max_iter == -1 else int(self.max_iter),
            average=self.average,
            sampling=self.sampling,
            project=bool(self.project),
            held_out=held_out,
            patience=iterations("n_iter_no_change", self.n_iter_no_change, 5),
            sharp=bool(self.certificate),
        )
        progress.end()
        self._adopt(outcome.iterates, outcome.w, None if gram is None else self._vectors(merged, outcome.rows, X))
        self.n_iter_, self.stop_reason_, self.objective_ = outcome.epochs, outcome.stop_reason, outcome.objective
        self.converged_ = outcome.stop_reason != "max_time"
        if outcome.validation_losses is not None:
            self.validation_loss_ = freeze(outcome.validation_losses)
        if not self.converged_:
            warnings.warn(
                f"PegasosSVC stopped after {self.t_:,} of the planned steps (max_time): objective "
                f"{self.objective_:.6g}. Raise max_time or lam, or lower max_iter",
                ConvergenceWarning,
                stacklevel=4,
            )
        progress.close(X, y)

    # --- prediction ------------------------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Floats:
        """f(x) for two classes; for more, one column per class."""
        check_is_fitted(self)
        if hasattr(self, "_expansion_"):
            values = self._decision(X)
        else:
            values = np.asarray(self._samples(X, self.kernel_, reset=False) @ self.coef_.T) + self.intercept_
        return np.asarray(values[:, 0]) if len(self.classes_) == 2 else values

    def predict(self, X: Any) -> np.ndarray:
        """The class of each sample: the second of two where f(x) ≥ 0, of several the one of largest f."""
        values = self.decision_function(X)
        winner = (values >= 0).astype(np.intp) if values.ndim == 1 else np.argmax(values, axis=1)
        return np.asarray(self.classes_[winner])
