"""Soft-margin classification by stochastic subgradient descent: any number of rows, in memory or as a stream."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from mercer.estimators.fitting.families.classifier import OneAgainstRest
from mercer.estimators.fitting.families.dual_machine import takes_samples
from mercer.estimators.fitting.mixins import ClassifierMethods, MachineMethods
from mercer.estimators.fitting.pipeline.fit import Fit, deadline_of, read_samples
from mercer.estimators.fitting.pipeline.machine import CERTIFIED, ClassWeight, KernelChoice, RandomState, kernel_of
from mercer.estimators.fitting.pipeline.state import Array, BoundKernel, Count, Function, Number, Vectors, fitted
from mercer.estimators.fitting.pipeline.task import Solutions, Task, Tasks
from mercer.estimators.fitting.reports.coefficients import expansion_of
from mercer.kernels import Kernel
from mercer.places.expansion import Expansion
from mercer.problems.pegasos import PegasosProblem
from mercer.runtime.available import available_if
from mercer.runtime.parameters import REGULARIZED, bias_kind, integer, not_negative, one_of, positive, share
from mercer.runtime.refitting import blank_copy
from mercer.runtime.shared_docs import shared_docs
from mercer.samples.arrays import Data, Floats, Indices, Weights, freeze, host, stack, take
from mercer.samples.chunks import unpack
from mercer.samples.column_names import adopt_names
from mercer.samples.engine import PlacedSamples
from mercer.samples.labels import Classes, class_weights, codes_among, known_classes, planes, signs
from mercer.samples.matrices import expect_room
from mercer.solvers.pegasos.descent import (
    MOST_EPOCHS,
    Call,
    KernelSpace,
    LinearSpace,
    PegasosOutcome,
    Space,
    advance,
    solve_pegasos,
)
from mercer.solvers.pegasos.iterates import Iterates, one_pass, validation_part


@shared_docs
@dataclass(eq=False, repr=False)
class PegasosSVC(ClassifierMethods, MachineMethods, OneAgainstRest):
    """Soft-margin classification by stochastic subgradient descent (Pegasos), linear or with a kernel.

    Minimises (λ/2)‖w‖² + (1/m) Σ max(0, 1 − y_i⟨w, φ(x_i)⟩), one random sample at a time: the t-th step adds y_i φ(x_i)
    to θ if y_i⟨w, φ(x_i)⟩ < 1 at w = θ/(λt), and a mean of the w comes out. It is `SVC` with C = 1/(λm) and without
    its free bias. After T steps the mean of all w is within 2R²(1 + ln T)/(λT) of the optimum in expectation, R =
    max‖φ(x_i)‖, whatever the number of samples; for more than two or three digits use an exact machine. Several
    classes are trained one against the rest.

    Parameters
    ----------
    alpha : float, default=1e-4
        λ. Large values converge in few steps; C = 1/(λm), where m is the sum of the sample weights.
    kernel : str, Kernel or callable, default="linear"
        The name "linear" trains w itself, at a cost per step of the row's non-zero entries; everything else, kernel
        objects that are linear included, trains coefficients of samples.
        In a stream, "scale" and the like are taken from the first chunk.
    %(named kernel)s
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
        Epochs, each of as many steps as there are distinct samples. −1 stands for 10, or for more, up to 2000, as long
        as they make no more than 10⁶ steps and touch no more than 3·10⁸ entries of the data or kernel values.
    early_stopping : bool or "smoothed", default=False
        Leave a validation part out and stop when its loss has not fallen for a while; or, "smoothed", when its mean
        over `n_iter_no_change` epochs has risen by the share `rise` above its least (Igel, section 2.2). The best
        epoch's machine is kept.
    validation_fraction : float, default=0.1
        Share of the distinct samples in the validation part.
    n_iter_no_change : int, default=5
        Epochs without a fall of more than `tol` after which training stops early, or over which the loss is smoothed.
    rise : float, default=0.05
        How much the smoothed loss has to rise, as a share.
    tol : float, default=1e-3
        Smallest fall of the validation loss that counts, per class; nothing else uses it.
    class_weight : dict or "balanced", optional
        Multiplies the sample weights; "balanced" is not for streams.
    certificate : bool, default=False
        Count what the steps meet, for a certificate whose gap is tighter as long as the iterates have not settled. It
        takes up to a fifth more time.
    cache_size : float, default=1000
        Memory in MB for kernel values.
    %(verbose)s
    n_jobs : int, optional
        Threads that compute kernel values; None uses as many as BLAS would.
    max_time : float, optional
        Limit in seconds, for a fit, a call of `partial_fit` or a whole stream.
    random_state : int, RandomState or None
        An integer makes fits repeatable, to the last bit and on every platform.

    Attributes
    ----------
    coef_ : array of shape (n_machines, n_features)
        Only for kernel="linear". One machine for two classes, else one per class.
    intercept_ : array of shape (n_machines,)
    dual_coef_, support_vectors_
        Coefficients and samples of the expansion, with any other kernel.
    kernel_, classes_, class_weight_, n_features_in_, feature_names_in_
        The kernel with its numbers; the rest as in scikit-learn.
    t_, n_iter_ : int
        Steps made, and epochs or chunks begun.
    objective_ : float
        The minimised function at the outcome, summed over the machines; after `fit` only.
    certificate_ : Certificate
        How far the outcome is from the optimum; after `fit` only. Its values are those of ½‖w‖² + Σ C_i ξ_i, the
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
    >>> model = PegasosSVC(alpha=0.01, certificate=True, random_state=0).fit(scale(X), y)
    >>> model.score(scale(X), y) > 0.97
    True
    >>> model.certificate_.relative_gap < 0.1
    True
    """

    _default_steps = MOST_EPOCHS

    _FITTED = fitted(
        CERTIFIED,
        kernel_=BoundKernel(required=True),
        _expansion_=Function(),
        class_weight_=Array("classes", required=True),
        coef_=Array("outputs", "features", required=True, unless="_expansion_"),
        dual_coef_=Array("outputs", "vectors", needs="_expansion_"),
        support_vectors_=Vectors("vectors"),
        objective_=Number(),
        validation_loss_=Array(None),
        n_iter_=Count(required=True),
        t_=Count(required=True),
        _seed_=Count(required=True),
        _theta_=Array("outputs", "directions", required=True),
        _total_=Array("outputs", "directions", required=True),
        _marks_=Array(2, "outputs", "directions", required=True),
        _norm2_=Array("outputs", required=True),
    )

    alpha: float = 1e-4
    _: KW_ONLY
    kernel: KernelChoice = "linear"
    degree: int = 3
    gamma: float | str = "scale"
    coef0: float = 0.0
    bias: bool | str = "regularized"
    average: str = "suffix"
    sampling: str = "replacement"
    project: bool = False
    max_iter: int = -1
    early_stopping: bool | str = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 5
    rise: float = 0.05
    tol: float = 1e-3
    class_weight: ClassWeight = None
    certificate: bool = False
    cache_size: float = 1000
    verbose: bool = False
    max_time: float | None = None
    random_state: RandomState = None
    n_jobs: int | None = None

    def _check_parameters(self) -> None:
        positive("alpha", self.alpha)
        one_of("bias", bias_kind(self.bias), (False, "regularized"))
        one_of("average", self.average, ("all", "suffix", "last"))
        one_of("sampling", self.sampling, ("replacement", "passes"))
        one_of("early_stopping", self.early_stopping, (False, True, "smoothed"))
        not_negative("rise", self.rise)
        share("validation_fraction", self.validation_fraction)
        integer("n_iter_no_change", self.n_iter_no_change, 1, "training stops after this many epochs without a fall")

    # --- training --------------------------------------------------------------------------------------------------
    # A stream sets the classes and their factors before its first chunk, and keeps the kernel of that chunk.

    def _kernel(self) -> Any:
        return self.kernel_ if hasattr(self, "kernel_") else super()._kernel()

    def _read(self, y: ArrayLike | None) -> tuple[Indices | None, Any]:
        if not hasattr(self, "classes_"):
            return super()._read(y)
        every = planes(len(self.classes_), against_rest=True)
        return codes_among(self.classes_, y), Classes(self.classes_, every, self.class_weight_)

    def _weigh(self, target: Any, codes: Indices, weight: Floats) -> tuple[Floats, Any]:
        return (weight, target) if hasattr(self, "class_weight_") else super()._weigh(target, codes, weight)

    @property
    def _constant_feature(self) -> bool:
        return False  # the space has it

    @property
    def _linear(self) -> bool:
        """Whether w itself is trained."""
        return not hasattr(self, "_expansion_") if hasattr(self, "_theta_") else bool(self.kernel == "linear")

    def _tasks(self, fit: Fit) -> Tasks[PegasosProblem]:
        self._seed_ = fit.limits.seed()
        solve = partial(
            solve_pegasos,
            seed=self._seed_,
            epochs=None if self.max_iter == -1 else fit.limits.stop.max_iter,
            average=self.average,
            sampling=self.sampling,
            project=bool(self.project),
            held_out=self._held_out(fit) if self.early_stopping else None,
            patience=int(self.n_iter_no_change),
            rise=float(self.rise) if self.early_stopping == "smoothed" else None,
            sharp=bool(self.certificate),
        )
        return Tasks([Task("", self._problem(fit), solve, place=lambda n_threads: self._space(fit, n_threads))])

    def _problem(self, fit: Fit) -> PegasosProblem:
        merged, target = fit.merged, fit.target
        machines = np.ascontiguousarray(signs(merged.y, len(target.labels)).T)
        return PegasosProblem(machines, merged.weight * target.factor[merged.y], float(self.alpha))

    def _space(self, fit: Fit, n_threads: int) -> Space:
        bias, X = self.bias in REGULARIZED, fit.merged.X
        if self._linear:
            expect_room(X.shape[1], 5 * len(fit.target.pairs))  # θ, Σθ/t, two marks of it, w
            return LinearSpace(host(X), bias=bias)  # its steps take a row at a time
        if not hasattr(self, "_theta_"):
            return KernelSpace(fit.gram(n_threads), bias=bias)
        theta = self._theta_
        before = replace(self._expansion_, coefficients=theta.T.copy(), b=float(bias) * theta.sum(axis=1))
        u = np.ascontiguousarray(before(X, n_threads).T)
        return KernelSpace(fit.gram(n_threads), bias=bias, older=theta.shape[1], u=u)

    def _held_out(self, fit: Fit) -> Indices:
        """The validation part of the merged samples."""
        codes, labels = fit.merged.y, fit.target.labels
        held_out = validation_part(self._seed_, len(codes), self.validation_fraction)
        missing = np.setdiff1d(np.arange(len(labels)), np.delete(codes, held_out))
        if len(missing):
            raise ValueError(
                f"with early_stopping {len(held_out)} of {len(codes)} distinct samples are left out, and then class "
                f"{labels[missing[0]]!r} has none to learn from; lower validation_fraction"
            )
        return held_out

    def _conclude(self, fit: Fit, solved: Solutions[PegasosProblem]) -> None:
        end: PegasosOutcome = solved[0].solution
        self.classes_, self.class_weight_ = freeze(fit.target.labels), freeze(fit.target.factor)
        self.n_iter_, self.objective_, self.converged_ = end.epochs, end.objective, end.stop_reason != "max_time"
        if end.validation_losses is not None:
            self.validation_loss_ = freeze(end.validation_losses)
        self._adopt(fit, end.iterates, end.w, end.rows)

    def _adopt(self, fit: Fit, iterates: Iterates, w: Floats, rows: Indices) -> None:
        """The machine, and what further steps go on from.

        A kernel machine's w has a column for each of `rows`, or, in a stream, for each old vector and new sample.
        """
        biased = self.bias in REGULARIZED
        if self._linear:
            d = self.n_features_in_
            self.coef_ = freeze(np.ascontiguousarray(w[:, :d]))
            self.intercept_ = freeze(w[:, d].copy() if biased else np.zeros(len(w)))
        else:
            used = np.flatnonzero(iterates.theta.any(axis=0))
            iterates, w = iterates.columns(used), w[:, used]
            self.intercept_ = freeze(float(biased) * w.sum(axis=1))
            self.dual_coef_ = freeze(np.ascontiguousarray(w))
            coefficients, old = np.ascontiguousarray(w.T), getattr(self, "_expansion_", None)
            if old is None:
                self._expansion_ = expansion_of(fit, coefficients, self.intercept_, rows[used])
            else:
                vectors = take(stack(old.vectors, host(fit.merged.X)), used)
                self._expansion_ = Expansion(old.kernel, vectors, coefficients, self.intercept_)
            if self._expansion_.vectors is not None:
                self.support_vectors_ = freeze(self._expansion_.vectors)
        self.t_ = iterates.t
        self._theta_, self._total_ = freeze(iterates.theta), freeze(iterates.total)
        self._marks_, self._norm2_ = freeze(iterates.marks), freeze(iterates.norm2)

    def _unfinished(self, X: Data) -> str:
        return (
            f"PegasosSVC stopped after {self.t_:,} of the planned steps (max_time): objective {self.objective_:.6g}. "
            "Raise max_time or alpha, or lower max_iter"
        )

    def _decision(self, X: Data) -> Floats:
        check_is_fitted(self)
        if not self._linear:
            return super()._decision(X)
        X = read_samples(self, X, self.kernel_, reset=False)
        return np.asarray(
            (self.kernel_(X, self.coef_) if isinstance(X, PlacedSamples) else X @ self.coef_.T) + self.intercept_
        )

    # --- streams ---------------------------------------------------------------------------------------------------

    @available_if(takes_samples)
    @shared_docs
    def partial_fit(
        self, X: Data, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: Weights = None
    ) -> Self:
        """Go on training with one pass over a chunk: every row is visited as often as its weight says.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            The samples.
        y : array of shape (n_samples,)
            Classes may be missing from a chunk.
        classes : array, optional
            All classes there are; required at the first call unless the machine was fitted before.
        %(given twice)s

        Returns
        -------
        self
        """
        learner = copy.copy(self)
        learner._learn(X, y, classes, sample_weight, deadline_of(self.max_time))
        return self._become(learner)

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
        learner, deadline, number = blank_copy(self), deadline_of(self.max_time), -1
        for number, chunk in enumerate(chunks):
            X, y, sample_weight = unpack(chunk, number)
            learner._learn(X, y, classes, sample_weight, deadline)
            if not learner.converged_:
                break
        if number < 0:
            raise ValueError("the stream holds no chunk: there is nothing to train on")
        adopt_names(learner, chunks)
        return self._become(learner)

    def _learn(self, X: Data, y: ArrayLike, classes: Any, sample_weight: Weights, deadline: float) -> None:
        """One pass over a chunk."""
        _check_stream(self)
        first = not hasattr(self, "_theta_")
        labels = known_classes(classes, None if first else self.classes_)
        if first:
            # Factors are checked against all classes, which the chunk need not show.
            factor = class_weights(self.class_weight, labels, np.arange(len(labels)), np.ones(len(labels)))
            self.classes_, self.class_weight_, self.n_iter_ = freeze(labels), freeze(factor), 0
        for name in ("objective_", "certificate_", "validation_loss_"):
            self.__dict__.pop(name, None)
        fit = Fit.of(self, X, y, sample_weight, chunk=True)
        self.n_iter_, self.stop_reason_, self.converged_ = self.n_iter_ + 1, "all steps", True
        if not first and not len(fit.merged.y):
            return  # a chunk without weight changes nothing
        problem, space = self._problem(fit), self._space(fit, fit.limits.n_threads)
        if first:
            assert fit.kernel is not None
            self.kernel_, self._seed_ = fit.kernel, fit.limits.seed()
            iterates = Iterates.zero(len(problem.signs), space.size)
        else:
            iterates = Iterates(self._theta_, self._total_, self._marks_, self._norm2_, self.t_)
            iterates = iterates.extended(space.size - len(self._theta_[0]))
        draws = one_pass(self._seed_, self.n_iter_ - 1, problem.weight)
        made = advance(space, problem.signs, draws, Call(iterates, problem.lam, bool(self.project), None), deadline)
        if made < len(draws):
            self.stop_reason_, self.converged_ = "max_time", False
            visited = f"{made:,} of the {len(draws):,} rows of chunk {self.n_iter_}"
            self._warn_early(f"PegasosSVC visited {visited} (max_time); raise max_time")
        self._adopt(fit, iterates, iterates.finite_output(problem.lam, self.average), np.arange(space.n))


def _check_stream(machine: PegasosSVC) -> None:
    """Refuse parameters that a chunk alone cannot serve, and such as were changed since the first one."""
    kernel = kernel_of(vars(machine))
    for name in ("early_stopping", "certificate"):
        if getattr(machine, name):
            raise ValueError(
                f"{name}={getattr(machine, name)!r} needs all samples at once: use fit, or set it to False for a stream"
            )
    if isinstance(machine.class_weight, str):
        raise ValueError(
            f"class_weight={machine.class_weight!r} needs all labels at once; give a dict from label to weight"
        )
    if kernel.accepts == "gram":
        raise ValueError("a precomputed kernel matrix cannot come as a stream: use fit, or another kernel")
    if not hasattr(machine, "_theta_"):
        return
    linear = not hasattr(machine, "_expansion_")
    if (machine.kernel == "linear") != linear or _is_another(kernel, machine.kernel_):
        _refuse("kernel", machine.kernel, machine.kernel_)
    biased = machine.bias in REGULARIZED
    if biased is not _had_bias(machine, linear, biased):
        _refuse("bias", machine.bias, "'regularized'" if machine.bias is False else False)


def _is_another(asked: Kernel, used: Kernel) -> bool:
    """Whether a kernel is of another kind, or has other numbers; "scale" and the like stand for any number."""
    now, then = asked.get_params(), used.get_params()
    numbers = [name for name, value in now.items() if isinstance(value, Real)]
    return type(asked) is not type(used) or now.keys() != then.keys() or any(now[k] != then[k] for k in numbers)


def _had_bias(machine: PegasosSVC, linear: bool, otherwise: bool) -> bool:
    """Whether the machine learnt a bias; `otherwise` where all of its functions happen to pass through the origin."""
    if linear:
        return bool(machine._theta_.shape[1] > machine.n_features_in_)
    if machine.intercept_.any():
        return True
    return otherwise and not machine.dual_coef_.sum(axis=1).any()


def _refuse(name: str, now: Any, then: Any) -> None:
    raise ValueError(
        f"{name}={now!r} was set after training began with {name}={then}, and steps cannot go on as another machine; "
        f"set {name} back, or start anew with fit or fit_stream"
    )
