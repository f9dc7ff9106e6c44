"""Regularized least squares on landmarks, for more samples than a kernel matrix has room for."""

from __future__ import annotations

import math
import time
import warnings
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length

from mercer.arrays import Floats, freeze, take
from mercer.certificates.certificate import Certificate
from mercer.data import samples
from mercer.data.chunks import Chunk, Opening, Stream, empty_targets, is_stream
from mercer.data.labels import read_labels
from mercer.data.merging import merge
from mercer.data.targets import outputs
from mercer.expansion import Expansion
from mercer.fitting.kinds import (
    Array,
    BoundKernel,
    Count,
    Flag,
    Function,
    Labels,
    Number,
    Places,
    Text,
    Vectors,
    fitted,
)
from mercer.fitting.limits import physical_memory
from mercer.fitting.machine import Machine, Training
from mercer.fitting.no_probabilities import Deciding
from mercer.fitting.overflow import proven
from mercer.fitting.telling import Progress
from mercer.gram.cross import Cross
from mercer.gram.landmarks import Landmarks, draw, leverage_scores
from mercer.kernels import Kernel
from mercer.parameters import iterations, one_of, positive
from mercer.problems.least_squares import LandmarkLeastSquares
from mercer.solution import Stop
from mercer.solvers.least_squares.nystrom import (
    PRECONDITIONER_SAMPLES_PER_LANDMARK,
    LandmarkSolution,
    cheaper_method,
    solve_nystrom,
)
from mercer.threads import effective_n_threads

# Landmarks per pilot sample, where the pilot samples estimate the leverage scores that landmarks are drawn by.
_LANDMARKS_PER_PILOT = 4
# Matrices of M × M numbers that a fit holds at once.
_SQUARES = 5


class _Nystrom(Machine):
    """What the regressor and the classifier share: landmarks, the solve, its proof."""

    FITTED = fitted(
        kernel_=BoundKernel(required=True),
        _expansion_=Function(required=True),
        dual_coef_=Array("vectors", "outputs"),
        landmarks_=Vectors("vectors"),
        landmark_indices_=Places(),
        method_=Text(),
        jitter_=Number(),
    )

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

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Train on samples X with targets y, or on a stream of them.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features), memory-map, callable or iterator
            A callable must return, each time it is called, a fresh iterator over the same chunks: tuples (X, y) or
            (X, y, sample_weight). An iterator of such chunks is read once: its landmarks come from its first samples,
            and the normal equations are summed up on the way. With either, y and sample_weight stay away.
        y : array of shape (n_samples,) or, for regression, (n_samples, n_outputs)
        sample_weight : array of shape (n_samples,), optional
            A weight counts like that many repetitions of its sample; 0 leaves the sample out.

        Returns
        -------
        self
        """
        super().fit(X, y, sample_weight)
        return self

    # --- what each of the two provides -----------------------------------------------------------------------------

    def _learn(self, y: Any) -> Any:
        """What must be known of the targets: nothing, or the classes."""
        raise NotImplementedError

    def _encode(self, y: Any) -> Floats:
        """Targets as numbers, one column per output."""
        raise NotImplementedError

    # --- training --------------------------------------------------------------------------------------------------

    def _train(self, X: Any, y: Any, sample_weight: Any, training: Training) -> None:
        kernel = self._kernel()
        stop, budget, n_threads = self._limits(0)
        lam = positive("lam", self.lam, "lam=0 is least squares without a ridge, which landmarks make singular")
        m = self._count()
        rng = np.random.default_rng(self._generator().randint(2**31))
        progress = Progress(training.watched_by, bool(self.verbose), 1, X, y)
        if is_stream(X):
            if y is not None or sample_weight is not None:
                raise ValueError("a stream carries its own targets and weights: y and sample_weight must be None")
            if kernel.accepts != "vectors":
                raise ValueError(
                    f"a stream holds vectors, but {kernel!r} takes {kernel.accepts}; give all samples at once"
                )
            solution, certificate = self._from_stream(X, kernel, lam, m, stop, budget, n_threads, rng, progress)
        else:
            solution, certificate = self._from_arrays(
                X, y, sample_weight, kernel, lam, m, stop, budget, n_threads, rng, progress
            )
        progress.end()
        self.certificate_ = certificate
        self.stop_reason_ = proven(solution.stop_reason, self.certificate_)
        self.converged_ = self.stop_reason_ == "converged"
        self.n_iter_ = solution.steps
        self.method_ = solution.method
        self.jitter_ = solution.jitter
        self.intercept_ = freeze(solution.b)
        self.dual_coef_ = freeze(solution.C)
        if not self.converged_:
            warnings.warn(self._unfinished(X), ConvergenceWarning, stacklevel=5)
        progress.close(X, y)

    def _from_arrays(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        kernel: Kernel,
        lam: float,
        m: int,
        stop: Stop,
        budget: int,
        n_threads: int,
        rng: np.random.Generator,
        progress: Progress,
    ) -> tuple[LandmarkSolution, Certificate]:
        X = self._samples(X, kernel, reset=True)
        check_consistent_length(X, y)
        self._learn(y)
        Y = self._encode(y)
        weight = samples.weights(sample_weight, len(Y))
        if not weight.any():
            raise ValueError("all sample weights are zero; at least one sample must count")
        n_columns = len(Y)
        rows = np.arange(n_columns)
        # Merging copies the samples; what is large beside the budget stays where it is, on disk perhaps.
        if getattr(X, "nbytes", 0) <= budget // 4:
            codes = np.unique(Y[:, 0] if Y.shape[1] == 1 else Y, axis=0, return_inverse=True)[1].reshape(-1)
            merged = merge(X, codes, weight, identical=kernel.mergeable, n_threads=n_threads)
            first = np.full(len(merged.weight), -1, dtype=np.intp)
            first[merged.member[::-1]] = merged.rows[::-1]
            X, Y, weight, rows = merged.X, Y[first], merged.weight, first
        given = kernel.accepts == "gram"
        kernel = kernel if given else kernel.bind(X, weight)
        everything = Chunk(X, Y, weight, {})
        pool = draw([everything], PRECONDITIONER_SAMPLES_PER_LANDMARK * m, rng)
        chosen = self._choose(kernel, [everything], pool, lam, m, rng, n_threads, float(weight.sum()), rows)
        landmarks: Any = rows[chosen.index] if given else chosen.X
        K = np.asarray(chosen.X[:, landmarks], dtype=np.float64) if given else None
        cross = Cross(kernel, landmarks, lambda: [everything], budget // 4, n_threads, K)
        self._expect_room(cross.m, budget)
        self._refuse_indefinite(cross)
        sample = None
        if cheaper_method(cross, len(weight)) == "conjugate gradients":
            sample = empty_targets(pool.X, pool.stands_for, Y.shape[1])
        problem = LandmarkLeastSquares(lam, bool(self.bias))
        solution, certificate = solve_nystrom(problem, cross, stop, report=progress.begin(""), sample=sample)
        self._remember(kernel, landmarks, solution, n_columns)
        if not given or isinstance(self.landmarks, str):
            self.landmark_indices_ = freeze(rows[chosen.index] if len(chosen.index) else chosen.index)
        return solution, certificate

    def _from_stream(
        self,
        source: Any,
        kernel: Kernel,
        lam: float,
        m: int,
        stop: Stop,
        budget: int,
        n_threads: int,
        rng: np.random.Generator,
        progress: Progress,
    ) -> tuple[LandmarkSolution, Certificate]:
        stream = Stream(self, source, self._survey)
        if stream.once:
            if isinstance(self.landmarks, str) and self.landmarks == "leverage":
                raise ValueError(
                    "landmarks='leverage' needs a second look at the samples, and an iterator gives only one; give a "
                    "callable that returns a fresh iterator, or landmarks='uniform'"
                )
            opening = Opening(stream, PRECONDITIONER_SAMPLES_PER_LANDMARK * m)
            pool = draw(opening.chunks, PRECONDITIONER_SAMPLES_PER_LANDMARK * m, rng)
            raw = opening.all()
        else:
            pool = draw(stream.chunks(), PRECONDITIONER_SAMPLES_PER_LANDMARK * m, rng)
        n, total = stream._seen or (0, 0.0)
        kernel = kernel.bind(pool.X)
        self._settle()

        def encoded() -> Any:
            for chunk in raw if stream.once else stream.chunks():
                yield Chunk(chunk.X, self._recode(chunk.Y), chunk.weight)

        chosen = self._choose(
            kernel, stream.chunks() if not stream.once else [], pool, lam, m, rng, n_threads, total, None
        )
        cross = Cross(kernel, chosen.X, encoded, 0, n_threads)
        self._expect_room(cross.m, budget)
        self._refuse_indefinite(cross)
        sample = None
        if not stream.once and cheaper_method(cross, n) == "conjugate gradients":
            sample = empty_targets(pool.X, pool.stands_for, self._n_outputs())
        problem, report = LandmarkLeastSquares(lam, bool(self.bias)), progress.begin("")
        solution, certificate = solve_nystrom(problem, cross, stop, report=report, sample=sample, once=stream.once)
        self._remember(kernel, chosen.X, solution, 0)
        return solution, certificate

    def _choose(
        self,
        kernel: Kernel,
        chunks: Any,
        pool: Landmarks,
        lam: float,
        m: int,
        rng: np.random.Generator,
        n_threads: int,
        total: float,
        rows: Any,
    ) -> Landmarks:
        """The landmarks: some of the uniformly drawn pool, drawn by leverage, or the user's own."""
        if not isinstance(self.landmarks, str):
            if kernel.accepts == "gram":
                raise ValueError("with a precomputed kernel, landmarks are drawn; give 'uniform', not samples")
            own = self._samples(self.landmarks, kernel, reset=False)
            count = own.shape[0] if hasattr(own, "shape") else len(own)
            return Landmarks(own, np.empty(0, dtype=np.intp), np.ones(count))
        count = len(pool.index)
        some = np.sort(rng.choice(count, min(m, count), replace=False))
        uniform = Landmarks(take(pool.X, some), pool.index[some], pool.stands_for[some])
        if self.landmarks == "uniform" or count <= m:
            return uniform
        if kernel.accepts == "gram":
            raise ValueError("landmarks='leverage' is not available with a precomputed kernel; use 'uniform'")
        pilot = take(uniform.X, np.arange(0, len(some), _LANDMARKS_PER_PILOT))
        return draw(chunks, m, rng, leverage_scores(kernel, pilot, lam, total, n_threads))

    def _remember(self, kernel: Kernel, landmarks: Any, solution: LandmarkSolution, n_columns: int) -> None:
        given = kernel.accepts == "gram"
        self.kernel_ = kernel
        self.landmarks_ = None if given else freeze(landmarks)
        self._expansion_ = Expansion(
            kernel=kernel,
            vectors=None if given else landmarks,
            coefficients=np.ascontiguousarray(solution.C),
            b=solution.b,
            columns=landmarks if given else None,
            n_columns=n_columns if given else 0,
        )

    # --- parameters ------------------------------------------------------------------------------------------------

    def _limits(self, n: int) -> tuple[Stop, int, int]:
        seconds = math.inf if self.max_time is None else positive("max_time", self.max_time, "None means no limit")
        stop = Stop(
            tol=positive("tol", self.tol),
            max_iter=iterations("max_iter", self.max_iter, 1000),
            deadline=time.monotonic() + seconds,
        )
        megabytes = positive("cache_size", self.cache_size, "it is the memory for a fit in MB")
        return stop, int(min(megabytes * 1e6, physical_memory() / 2)), effective_n_threads(self.n_jobs)

    def _generator(self) -> Any:
        try:
            return check_random_state(self.random_state)
        except ValueError as error:
            raise ValueError(f"random_state={self.random_state!r} must be None, an integer or a RandomState") from error

    def _count(self) -> int:
        m = iterations("n_landmarks", self.n_landmarks, 1000)
        if m < 1:
            raise ValueError(f"n_landmarks={self.n_landmarks!r} must be at least 1")
        if isinstance(self.landmarks, str):
            one_of("landmarks", self.landmarks, ("uniform", "leverage"))
        return m

    def _expect_room(self, m: int, budget: int) -> None:
        needed = _SQUARES * 8 * m * m
        if needed > budget:
            raise MemoryError(
                f"{m} landmarks need {needed / 1e6:.0f} MB for their matrices, but cache_size={self.cache_size!r} "
                f"allows {budget / 1e6:.0f} MB; lower n_landmarks to {math.isqrt(budget // (_SQUARES * 8))} or raise "
                "cache_size"
            )

    def _refuse_indefinite(self, cross: Cross) -> None:
        if cross.kernel.positive_definite == "yes":
            return
        some = cross.K_MM[:200, :200]
        if float(np.linalg.eigvalsh(some)[0]) < -1e-8 * max(1e-300, float(np.abs(some).max())) * len(some):
            raise ValueError(
                f"{cross.kernel!r} is not positive semi-definite on these samples, and without that least squares on "
                "landmarks has no minimum; use a positive definite kernel"
            )

    def _unfinished(self, X: Any) -> str:
        certificate = self.certificate_
        text = (
            f"{type(self).__name__} stopped before tol={self.tol:g} ({self.stop_reason_}): gap {certificate.gap:.3g}, "
            f"{certificate.relative_gap:.1e} of the dual value, residual of the normal equations "
            f"{certificate.violation:.1e} of the right-hand side. "
        )
        if self.stop_reason_ == "rounding floor":
            return text + "float64 cannot resolve less here; raise tol or lam"
        return text + f"Raise {self.stop_reason_}, or help convergence: raise lam or tol, or scale the features"


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


class NystromRLS(MultiOutputMixin, RegressorMixin, _Nystrom):  # type: ignore[misc]  # scikit-learn is untyped
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

    FITTED = fitted(
        _flat_=Flag(required=True),
        _width_=Count(),
    )

    def predict(self, X: Any) -> Floats:
        """f(x) for every sample; one column per output where y had two dimensions."""
        values = self._decision(X)
        return values[:, 0] if self._flat_ else values

    def _learn(self, y: Any) -> None:
        self._flat_ = outputs(y)[1]

    def _encode(self, y: Any) -> Floats:
        return outputs(y)[0]

    def _survey(self, y: Any) -> Floats:
        Y = self._encode(y)
        flat = np.asarray(y).ndim == 1
        if getattr(self, "_flat_", flat) != flat or getattr(self, "_width_", Y.shape[1]) != Y.shape[1]:
            raise ValueError(f"y has shape {np.shape(y)}, unlike the chunks before it")
        self._flat_, self._width_ = flat, Y.shape[1]
        return Y

    def _settle(self) -> None:
        pass

    def _recode(self, Y: Floats) -> Floats:
        return Y

    def _n_outputs(self) -> int:
        return int(self._width_)


class NystromRLSClassifier(Deciding, ClassifierMixin, _Nystrom):  # type: ignore[misc]  # scikit-learn is untyped
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

    FITTED = fitted(classes_=Labels(required=True))

    def decision_function(self, X: Any) -> Floats:
        """f(x) for two classes; for more, one column per class."""
        values = self._decision(X)
        return values[:, 0] if len(self.classes_) == 2 else values

    def predict(self, X: Any) -> np.ndarray:
        """The class of each sample; for f(x) = 0 the second of two."""
        values = self._decision(X)
        winner = (values[:, 0] >= 0).astype(np.intp) if len(self.classes_) == 2 else np.argmax(values, axis=1)
        return np.asarray(self.classes_[winner])

    def _learn(self, y: Any) -> None:
        self.classes_ = freeze(read_labels(y)[0])

    def _encode(self, y: Any) -> Floats:
        return self._signs(read_labels(y)[1])

    def _signs(self, codes: Any) -> Floats:
        k = len(self.classes_)
        if k == 2:
            return np.where(codes == 1, 1.0, -1.0)[:, None]
        return np.where(codes[:, None] == np.arange(k), 1.0, -1.0)

    # A stream's classes are known after its first pass, so that its labels travel as numbers until then.

    def _survey(self, y: Any) -> Floats:
        labels = np.asarray(y)
        if labels.ndim != 1:
            raise ValueError(f"y has shape {labels.shape}; labels must be one-dimensional")
        if labels.dtype.kind not in "biuf" or not np.isfinite(labels).all():
            raise ValueError("the labels of a stream must be finite numbers; encode strings first")
        if hasattr(self, "classes_"):
            unknown = labels[~np.isin(labels, self.classes_)]
            if len(unknown):
                raise ValueError(
                    f"label {unknown[0]!r} was not among the first samples, whose classes are {self.classes_.tolist()}"
                    "; give a callable that returns a fresh iterator, so that all labels can be seen first"
                )
        else:
            self._labels_ = np.union1d(getattr(self, "_labels_", labels[:0]), labels)
        return labels.astype(np.float64)[:, None]

    def _settle(self) -> None:
        self.classes_ = freeze(read_labels(self._labels_)[0])
        del self._labels_

    def _recode(self, Y: Floats) -> Floats:
        return self._signs(np.searchsorted(self.classes_, Y[:, 0]))

    def _n_outputs(self) -> int:
        return 1 if len(self.classes_) == 2 else len(self.classes_)
