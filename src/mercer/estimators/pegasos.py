"""Soft-margin classification by stochastic subgradient descent: any number of rows, in memory or as a stream."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from mercer.arrays import Floats, freeze
from mercer.certificates.descent import Trail, certify_descent
from mercer.data import samples
from mercer.data.labels import class_weights, read_labels
from mercer.data.merging import merge
from mercer.fitting.early_stopping import Judge
from mercer.fitting.machine import Training
from mercer.fitting.no_probabilities import Deciding
from mercer.fitting.pegasos_machine import Part, deadline_of, seed_of
from mercer.fitting.pegasos_stream import StreamLearner
from mercer.fitting.telling import Progress
from mercer.parameters import iterations
from mercer.solvers import pegasos
from mercer.solvers.pegasos import Call, Iterates
from mercer.threads import effective_n_threads

# Epochs of a fit whose max_iter is −1: at least the first number, and up to the second where samples are few, as long
# as they make no more steps than the third and touch no more entries than the fourth: some tenths of a second.
_EPOCHS, _MOST_EPOCHS, _STEPS, _ENTRIES = 10, 2000, 1_000_000, 300_000_000

# Short epochs are made several at a time, of so many steps together.
_ROUND = 10_000


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
        Prove how far the outcome is from the optimum: a duality gap, at the price of two passes over the data.
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
        Where it was asked for. Its values are those of ½‖w‖² + Σ C_iξ_i, the function above over λ.
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
        rows, held_out = self._split(merged)
        part = self._part(merged, gram, rows)
        iterates = Iterates.zero(len(part.signs), part.space.size)
        watch = Progress(training.watched_by, False, 1, X, y)
        trail = Trail(part.space.n, len(part.signs)) if self.certificate else None
        iterates = self._descend(part, iterates, trail, Judge.of(self, merged, gram, rows, held_out), watch)

        w = self._output(iterates)
        self._adopt(iterates, w, None if gram is None else self._vectors(merged, rows, X))
        self.objective_ = float(
            sum(
                pegasos.objective(part.space, signs, part.probability, w[k], float(self.lam))
                for k, signs in enumerate(part.signs)
            )
        )
        if trail is not None:
            known = "yes" if gram is None else gram.positive_definite
            self.certificate_ = certify_descent(
                part.space, part.signs, part.probability, w, trail, float(self.lam), known
            )
        if not self.converged_:
            warnings.warn(
                f"PegasosSVC stopped after {self.t_:,} of the planned steps (max_time): objective "
                f"{self.objective_:.6g}. Raise max_time or lam, or lower max_iter",
                ConvergenceWarning,
                stacklevel=4,
            )
        watch.close(X, y)

    def _descend(
        self, part: Part, iterates: Iterates, trail: Trail | None, judge: Judge | None, watch: Progress
    ) -> Iterates:
        """Epoch after epoch, until the planned steps are made or a limit or the validation part ends them."""
        m = part.space.n
        default = min(_STEPS, _ENTRIES // (part.space.cost * len(part.signs))) // m
        default = min(max(default, _EPOCHS), _MOST_EPOCHS)
        epochs = iterations("max_iter", self.max_iter, default)
        deadline, begun = deadline_of(self.max_time), time.monotonic()
        cumulative = np.cumsum(part.weight)
        call = Call(iterates, float(self.lam), bool(self.project), None if trail is None else trail.counts)
        self.n_iter_, self.stop_reason_, next_line = 0, "all steps", begun
        while self.n_iter_ < epochs:
            some = min(epochs - self.n_iter_, max(1, _ROUND // m if judge is None else 1))
            watch.begin(f"epoch {self.n_iter_ + 1}")
            if self.sampling == "passes":
                numbers = range(self.n_iter_, self.n_iter_ + some)
                draws = np.concatenate([pegasos.one_pass(self._seed_, k, part.probability * m) for k in numbers])
            else:
                draws = pegasos.draw(self._seed_, cumulative, iterates.t, some * m)
            self.n_iter_ += some
            made = pegasos.advance(part.space, part.signs, draws, call, deadline)
            if trail is not None:
                trail.visit(draws[:made], iterates.t)
            watch.end()
            tired = judge is not None and judge.is_tired_of(iterates)
            if self.verbose and time.monotonic() >= next_line:
                next_line = time.monotonic() + 1.0
                seen = "" if judge is None else f"  validation loss {judge.losses[-1]:.5f}"
                seconds = time.monotonic() - begun
                print(f"[mercer] {seconds:7.1f} s  epoch {self.n_iter_:>6,}  {iterates.t:>12,} steps{seen}", flush=True)
            if made < len(draws) or tired:
                self.stop_reason_ = "early stopping" if tired else "max_time"
                break
        self.converged_ = self.stop_reason_ != "max_time"
        if judge is not None:
            self.validation_loss_ = freeze(np.array(judge.losses))
            return judge.best if judge.best is not None else iterates
        return iterates

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
