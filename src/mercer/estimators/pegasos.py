"""Soft-margin classification by stochastic subgradient descent: any number of rows, in memory or as a stream."""

from __future__ import annotations

import copy
import math
import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from mercer.arrays import Floats, Indices, freeze, is_sparse, take
from mercer.certificate import Certificate
from mercer.errors import NonPSDKernelWarning
from mercer.estimators import samples
from mercer.estimators.early_stopping import Judge
from mercer.estimators.machine import _INDEFINITE, Machine, Training, _fitted, _physical_memory
from mercer.estimators.merging import Merged, merge
from mercer.estimators.parameters import iterations, one_of, positive
from mercer.estimators.progress import Progress
from mercer.expansion import Expansion
from mercer.gram.gram import Gram
from mercer.kernels import Kernel
from mercer.solvers import pegasos
from mercer.solvers.pegasos import Call, Iterates, KernelSpace, LinearSpace, Space
from mercer.solvers.pegasos_dual import Trail, certify_descent
from mercer.threads import effective_n_threads

# Epochs of a fit whose max_iter is −1: at least the first number, and up to the second where samples are few, as long
# as they make no more steps than the third and touch no more entries than the fourth: some tenths of a second.
_EPOCHS, _MOST_EPOCHS, _STEPS, _ENTRIES = 10, 2000, 1_000_000, 300_000_000

# Short epochs are made several at a time, of so many steps together.
_ROUND = 10_000


@dataclass(frozen=True, eq=False)
class _Part:
    """Merged samples to learn from: signs per machine, and the weight with which each is drawn."""

    space: Space
    signs: Floats
    weight: Floats

    @property
    def probability(self) -> Floats:
        return np.asarray(self.weight / self.weight.sum())


class PegasosSVC(ClassifierMixin, Machine):  # type: ignore[misc]  # scikit-learn is untyped
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

    # --- training on samples at hand -------------------------------------------------------------------------------

    def _train(self, X: Any, y: Any, sample_weight: Any, training: Training) -> None:
        self._check_parameters()
        kernel = self._kernel()
        X = self._samples(X, kernel, reset=True)
        labels, codes = samples.labels(y)
        check_consistent_length(X, codes)
        weight = samples.weights(sample_weight, len(codes))
        factor = samples.class_weights(self.class_weight, labels, codes, weight)
        merged = merge(X, codes, weight, identical=kernel.mergeable, n_threads=effective_n_threads(self.n_jobs))
        self.kernel_, gram = self._bound(kernel, merged, precomputed=X if kernel.accepts == "gram" else None)
        self._seed_ = _seed(self.random_state)
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
                pegasos.objective(part.space, signs, part.probability, w[k], self.lam)
                for k, signs in enumerate(part.signs)
            )
        )
        if trail is not None:
            known = "yes" if gram is None else gram.positive_definite
            self.certificate_ = certify_descent(part.space, part.signs, part.probability, w, trail, self.lam, known)
        if not self.converged_:
            warnings.warn(
                f"PegasosSVC stopped after {self.t_:,} of the planned steps (max_time): objective "
                f"{self.objective_:.6g}. Raise max_time or lam, or lower max_iter",
                ConvergenceWarning,
                stacklevel=4,
            )
        watch.close(X, y)

    def _descend(
        self, part: _Part, iterates: Iterates, trail: Trail | None, judge: Judge | None, watch: Progress
    ) -> Iterates:
        """Epoch after epoch, until the planned steps are made or a limit or the validation part ends them."""
        m = part.space.n
        default = min(_STEPS, _ENTRIES // (part.space.cost * len(part.signs))) // m
        default = min(max(default, _EPOCHS), _MOST_EPOCHS)
        epochs = iterations("max_iter", self.max_iter, default)
        deadline, begun = _deadline(self.max_time), time.monotonic()
        cumulative = np.cumsum(part.weight)
        call = Call(iterates, self.lam, bool(self.project), None if trail is None else trail.counts)
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

    # --- training on a stream --------------------------------------------------------------------------------------

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Go on training with one pass over a chunk: every row is visited as often as its weight says.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Classes may be missing from a chunk.
        classes : array, optional
            All classes there are; required at the first call unless the machine was fitted before.
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        self
        """
        learner = copy.copy(self)
        learner._learn(X, y, classes, sample_weight, _deadline(self.max_time))
        self._take_over(learner)
        return self

    def fit_stream(self, chunks: Iterable[Any], classes: Any) -> Self:
        """Train from the start in one pass over an iterable of chunks (X, y) or (X, y, sample_weight).

        No chunk is kept, except for the vectors that a kernel machine needs. If a chunk fails, or the iterable does,
        the machine is left as it was.

        Parameters
        ----------
        chunks : iterable of tuples
        classes : array
            All classes that may occur.

        Returns
        -------
        self
        """
        learner = copy.copy(self)
        for name in _fitted(learner):
            delattr(learner, name)
        deadline, chunk = _deadline(self.max_time), None
        for number, chunk in enumerate(chunks):
            if not isinstance(chunk, tuple) or len(chunk) not in (2, 3):
                raise ValueError(
                    f"chunk {number} of the stream is {type(chunk).__name__}; give tuples (X, y) or "
                    "(X, y, sample_weight)"
                )
            learner._learn(chunk[0], chunk[1], classes, chunk[2] if len(chunk) == 3 else None, deadline)
            if not learner.converged_:
                break
        if chunk is None:
            raise ValueError("the stream holds no chunk: there is nothing to train on")
        self._take_over(learner)
        return self

    def _take_over(self, learner: Self) -> None:
        for name in _fitted(self):
            delattr(self, name)
        self.__dict__.update(vars(learner))

    def _learn(self, X: Any, y: Any, classes: Any, sample_weight: Any, deadline: float) -> None:
        """One pass over a chunk."""
        self._check_parameters()
        for name, value in (("early_stopping", self.early_stopping), ("certificate", self.certificate)):
            if value:
                raise ValueError(f"{name}=True needs all samples at once: use fit, or set it to False for a stream")
        if isinstance(self.class_weight, str):
            raise ValueError(
                f"class_weight={self.class_weight!r} needs all labels at once; give a dict from label to weight"
            )
        first = not hasattr(self, "_theta_")
        kernel = self._kernel() if first else self.kernel_
        if kernel.accepts == "gram":
            raise ValueError("a precomputed kernel matrix cannot come as a stream: use fit, or another kernel")
        X = self._samples(X, kernel, reset=first)
        labels = _known_classes(classes, None if first else self.classes_)
        codes = _codes(y, labels)
        check_consistent_length(X, codes)
        weight = samples.weights(sample_weight, len(codes))
        if first:
            # Factors are checked against all classes, which the chunk need not show.
            every = np.arange(len(labels))
            factor = samples.class_weights(self.class_weight, labels, every, np.ones(len(labels)))
            self.classes_, self.class_weight_ = freeze(labels), freeze(factor)
            self._seed_, self.n_iter_ = _seed(self.random_state), 0
        for name in ("objective_", "certificate_", "validation_loss_"):
            self.__dict__.pop(name, None)
        self.stop_reason_, self.converged_ = "all steps", True
        number = self.n_iter_
        self.n_iter_ = number + 1
        if not weight.any():
            weight = weight[:0]
        merged = merge(X, codes, weight, identical=kernel.mergeable, n_threads=effective_n_threads(self.n_jobs))
        self.kernel_, gram = self._bound(kernel, merged)
        older = 0 if first or gram is None else len(self._theta_[0])
        part = self._part(merged, gram, np.arange(len(merged.y)), older)
        if first:
            iterates = Iterates.zero(len(part.signs), part.space.size)
        else:
            arrays = (self._theta_, self._total_, self._marks_, self._norm2_)
            iterates = Iterates(*arrays, self.t_).extended(part.space.size - len(self._theta_[0]))
        if len(merged.y):
            draws = pegasos.one_pass(self._seed_, number, part.weight)
            call = Call(iterates, self.lam, bool(self.project), None)
            made = pegasos.advance(part.space, part.signs, draws, call, deadline)
            if made < len(draws):
                self.stop_reason_, self.converged_ = "max_time", False
                warnings.warn(
                    f"PegasosSVC visited {made:,} of the {len(draws):,} rows of chunk {number + 1} (max_time); "
                    "raise max_time",
                    ConvergenceWarning,
                    stacklevel=3,
                )
        vectors = None
        if gram is not None:
            new = merged.X
            vectors = new if first else _stack(self._expansion_.vectors, new)
        self._adopt(iterates, self._output(iterates), vectors)

    # --- what both have in common ----------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        positive("lam", self.lam)
        one_of("bias", self.bias, (False, "regularized"))
        one_of("average", self.average, ("all", "suffix", "last"))
        one_of("sampling", self.sampling, ("replacement", "passes"))
        positive("tol", self.tol)
        if positive("validation_fraction", self.validation_fraction) >= 1:
            raise ValueError(f"validation_fraction={self.validation_fraction!r} must be below 1")
        if iterations("n_iter_no_change", self.n_iter_no_change, 5) < 1:
            raise ValueError(f"n_iter_no_change={self.n_iter_no_change!r} must be at least 1")
        iterations("max_iter", self.max_iter, 0)
        _deadline(self.max_time)
        _budget(self.cache_size)

    def _bound(self, kernel: Kernel, merged: Merged, precomputed: Any = None) -> tuple[Kernel, Gram | None]:
        """The kernel with its numbers, and the Gram matrix that its steps need; the linear form needs none."""
        if self.kernel == "linear":
            return kernel, None
        n_threads = effective_n_threads(self.n_jobs)
        if precomputed is not None:
            K = merged.X if len(merged.rows) == len(precomputed) else merged.X[:, merged.rows]
            gram = Gram(kernel, K, _budget(self.cache_size))
        else:
            kernel = kernel.bind(merged.X, merged.weight)
            gram = Gram(kernel, merged.X, _budget(self.cache_size), n_threads)
        if not gram.looks_positive_definite():
            warnings.warn(_INDEFINITE.format(kernel=kernel), NonPSDKernelWarning, stacklevel=5)
        return kernel, gram

    def _part(self, merged: Merged, gram: Gram | None, rows: Indices, older: int = 0) -> _Part:
        everything = len(rows) == len(merged.y)
        bias = self.bias == "regularized"
        space: Space
        if gram is None:
            self._check_memory(merged.X.shape[1])
            space = LinearSpace(merged.X if everything else take(merged.X, rows), bias=bias)
        else:
            u = None
            if older:
                theta = self._theta_
                before = replace(self._expansion_, coefficients=theta.T.copy(), b=float(bias) * theta.sum(axis=1))
                u = np.ascontiguousarray(before(merged.X, gram.n_threads).T)
            space = KernelSpace(gram if everything else gram.view(rows), bias=bias, older=older, u=u)
        return _Part(space, self._signs(merged.y[rows]), (merged.weight * self.class_weight_[merged.y])[rows])

    def _check_memory(self, d: int) -> None:
        """Refuse more features than the iterates of all machines, five numbers for each, have room for."""
        machines = 1 if len(self.classes_) == 2 else len(self.classes_)
        needed, present = 40.0 * d * machines, _physical_memory()
        if needed > present:
            raise MemoryError(
                f"X has {d:,} columns, for which {machines} machines need {needed / 1e9:.0f} GB, but this computer has "
                f"{present / 1e9:.0f} GB; number the features that occur anew, or hash them into fewer columns"
            )

    def _signs(self, codes: Indices) -> Floats:
        """+1 and −1 per machine: the second class against the first, or each of several against the rest."""
        positive_codes = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        return np.array([np.where(codes == code, 1.0, -1.0) for code in positive_codes])

    def _split(self, merged: Merged) -> tuple[Indices, Indices]:
        """Rows to learn from, and rows of the validation part."""
        n = len(merged.y)
        if not self.early_stopping:
            return np.arange(n), np.arange(0)
        held_out = pegasos.validation_part(self._seed_, n, self.validation_fraction)
        rows = np.setdiff1d(np.arange(n), held_out)
        missing = np.setdiff1d(np.arange(len(self.classes_)), merged.y[rows])
        if len(missing):
            raise ValueError(
                f"with early_stopping {len(held_out)} of {n} distinct samples are left out, and then class "
                f"{self.classes_[missing[0]]!r} has none to learn from; lower validation_fraction"
            )
        return rows, held_out

    def _vectors(self, merged: Merged, rows: Indices, X: Any) -> Any:
        """What an expansion needs of the learnt rows: the samples, or their columns of a precomputed matrix."""
        return merged.rows[rows] if self.kernel_.accepts == "gram" else take(merged.X, rows)

    def _output(self, iterates: Iterates) -> Floats:
        """w of every machine, in numbers whose squares are finite too."""
        with np.errstate(over="ignore", invalid="ignore"):
            w = iterates.output(self.lam, self.average)
            finite = np.isfinite((w * w).sum()) and np.isfinite((iterates.theta * iterates.theta).sum())
        if not finite:
            raise FloatingPointError(
                f"the iterates overflowed after {iterates.t} steps with lam={self.lam!r}; scale the features or "
                "raise lam"
            )
        return w

    def _adopt(self, iterates: Iterates, w: Floats, vectors: Any) -> None:
        """Fitted attributes of both ways to train."""
        bias = self.bias == "regularized"
        if vectors is None:
            d = self.n_features_in_
            self.coef_ = freeze(np.ascontiguousarray(w[:, :d]))
            self.intercept_ = freeze(w[:, d].copy() if bias else np.zeros(len(w)))
        else:
            used = np.flatnonzero(iterates.theta.any(axis=0))
            iterates, w = iterates.resized(used), w[:, used]
            self.intercept_ = freeze(float(bias) * w.sum(axis=1))
            self.dual_coef_ = freeze(np.ascontiguousarray(w))
            precomputed = self.kernel_.accepts == "gram"
            self._expansion_ = Expansion(
                kernel=self.kernel_,
                vectors=None if precomputed else take(vectors, used),
                coefficients=np.ascontiguousarray(w.T),
                b=self.intercept_,
                columns=vectors[used] if precomputed else None,
                n_columns=self.n_features_in_ if precomputed else 0,
            )
            if not precomputed:
                self.support_vectors_ = freeze(self._expansion_.vectors)
        self.t_ = iterates.t
        self._theta_, self._total_ = freeze(iterates.theta), freeze(iterates.total)
        self._marks_, self._norm2_ = freeze(iterates.marks), freeze(iterates.norm2)

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

    # --- files -----------------------------------------------------------------------------------------------------

    @classmethod
    def _from_state(cls, header: dict[str, Any], arrays: dict[str, Any]) -> Self:
        if "expansion.b" in arrays:
            return super()._from_state(header, arrays)
        model = cls(**header["params"])
        for name, value in {**header["fitted"], **arrays}.items():
            setattr(model, name, Certificate.from_dict(value) if name == "certificate_" else freeze(value))
        return model


# --- plain values ---------------------------------------------------------------------------------------------------


def _seed(random_state: Any) -> int:
    try:
        return int(check_random_state(random_state).randint(0, 2**63 - 1, dtype=np.int64))
    except ValueError as error:
        raise ValueError(f"random_state={random_state!r} must be None, an integer or a RandomState") from error


def _deadline(max_time: Any) -> float:
    seconds = math.inf if max_time is None else positive("max_time", max_time, "None means no limit")
    return time.monotonic() + seconds


def _budget(cache_size: Any) -> int:
    return int(min(positive("cache_size", cache_size, "it is the memory for kernel values in MB") * 1e6, 2**62))


def _known_classes(classes: Any, known: Any) -> np.ndarray:
    """All classes of a stream, in sorted order."""
    if classes is None:
        if known is None:
            raise ValueError(
                "classes must be passed on the first call to partial_fit: a chunk need not show all of them"
            )
        return np.asarray(known)
    given = np.unique(column_or_1d(np.asarray(classes)))
    if len(given) < 2:
        raise ValueError(f"a classifier needs at least 2 classes, but classes={given.tolist()}")
    if known is not None and not np.array_equal(given, known):
        raise ValueError(f"`classes={given.tolist()}` is not the same as on last call to partial_fit: {known.tolist()}")
    return given


def _codes(y: Any, classes: np.ndarray) -> Indices:
    """Each label's position among the classes."""
    y = column_or_1d(y, warn=True)
    check_classification_targets(y)
    if y.dtype.kind != classes.dtype.kind and (y.dtype.kind in "UO") != (classes.dtype.kind in "UO"):
        raise ValueError(f"y holds labels of dtype {y.dtype}, but the classes are {classes.tolist()}")
    codes = np.searchsorted(classes, y)
    unknown = np.flatnonzero(classes[np.minimum(codes, len(classes) - 1)] != y)
    if len(unknown):
        i = int(unknown[0])
        raise ValueError(f"y[{i}]={y[i]!r} is not one of the classes {classes.tolist()} of this stream")
    return np.asarray(codes)


def _stack(old: Any, new: Any) -> Any:
    """Vectors of an expansion and those of a chunk, sparse where either is."""
    if not hasattr(new, "shape"):
        return [*old, *new]
    if is_sparse(old) or is_sparse(new):
        return sp.csr_array(sp.vstack([old, new]))
    return np.vstack([old, new])
