"""Pegasos: soft-margin classification by stochastic subgradient descent, on samples in memory or from a stream."""

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
from mercer.estimators.fitting.families.dual_machine import can_add_samples
from mercer.estimators.fitting.mixins import ClassifierMethods, MachineMethods
from mercer.estimators.fitting.pipeline.fit import Fit, deadline_of, read_samples
from mercer.estimators.fitting.pipeline.machine import CERTIFIED, ClassWeight, KernelChoice, RandomState, kernel_of
from mercer.estimators.fitting.pipeline.state import Array, BoundKernel, Count, KernelExpansion, Number, Vectors, fitted
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
from mercer.samples.engine import EngineSamples
from mercer.samples.labels import Classes, class_weights, codes_among, known_classes, planes, signs
from mercer.samples.matrices import check_column_memory
from mercer.solvers.pegasos.descent import (
    MOST_EPOCHS,
    DescentSpace,
    KernelSpace,
    LinearSpace,
    PegasosOutcome,
    StepOptions,
    run_steps,
    solve_pegasos,
)
from mercer.solvers.pegasos.iterates import Iterates, draw_pass, validation_part


@shared_docs
@dataclass(eq=False, repr=False)
class PegasosSVC(ClassifierMethods, MachineMethods, OneAgainstRest):
    """Support vector classification by stochastic subgradient descent (Pegasos), linear or with a kernel.

    Minimises (λ/2)‖w‖² + (1/m) Σ max(0, 1 − y_i⟨w, φ(x_i)⟩), one random sample at a time: the t-th step adds y_i φ(x_i)
    to θ if y_i⟨w, φ(x_i)⟩ < 1 at w = θ/(λt), and the result is a mean of the iterates w. The problem is that of `SVC`
    with C = 1/(λm) and no unpenalised bias. After T steps the mean of all w is within 2R²(1 + ln T)/(λT) of the optimum
    in expectation, R = max‖φ(x_i)‖, for any number of samples; for more than two or three digits of accuracy use an
    exact machine. Several classes are trained one against the rest.

    Parameters
    ----------
    alpha : float, default=1e-4
        Regularisation strength λ. Large values converge in few steps; C = 1/(λm), where m is the sum of the sample
        weights.
    kernel : str, Kernel or callable, default="linear"
        Kernel. The name "linear" trains w itself, at a cost per step of the non-zero entries of a sample; any other
        value, including a linear kernel object, trains coefficients of the samples. In a stream, data-dependent
        parameters such as gamma="scale" are computed from the first chunk.
    %(named kernel)s
    bias : {"regularized", False}, default="regularized"
        Treatment of the intercept: the weight of a constant feature 1 (the kernel k + 1), which is part of ‖w‖²; or
        absent, as in the notes.
    average : {"suffix", "all", "last"}, default="suffix"
        Iterates that are averaged: those after step 2^k, the largest power of two up to T/2, which leaves out
        the first, inaccurate ones; all of them, as in the notes; or only the last one.
    sampling : {"replacement", "passes"}, default="replacement"
        Order of the samples: drawn with replacement, as in the notes, or each once per epoch in random order.
        `partial_fit` always makes one pass over its chunk.
    project : bool, default=False
        Whether to project w onto the ball ‖w‖ ≤ 1/√λ, which contains the optimum.
    max_iter : int, default=-1
        Number of epochs, each of as many steps as there are distinct samples. −1 means 10, or more, up to 2000, as long
        as this takes no more than 10⁶ steps and 3·10⁸ entries of the data or kernel values.
    early_stopping : bool or "smoothed", default=False
        Whether to hold out a validation set and to stop when its loss has not decreased for `n_iter_no_change` epochs.
        With "smoothed", training stops when the mean of the loss over `n_iter_no_change` epochs has risen by the
        fraction `rise` above its smallest value (Igel, section 2.2). The machine of the best epoch is kept.
    validation_fraction : float, default=0.1
        Fraction of the distinct samples in the validation set.
    n_iter_no_change : int, default=5
        Number of epochs without a decrease of more than `tol` after which training stops, or over which the loss is
        averaged.
    rise : float, default=0.05
        Relative rise of the averaged validation loss that ends training with early_stopping="smoothed".
    tol : float, default=1e-3
        Smallest decrease of the validation loss that counts, per class; used only for early stopping.
    class_weight : dict or "balanced", optional
        Factors on the weights of the samples of each class; "balanced" is not available for streams.
    certificate : bool, default=False
        Whether to record the steps for a certificate with a tighter gap, which helps while the iterates have not
        settled. It takes up to a fifth more time.
    cache_size : float, default=1000
        Memory in MB for kernel values.
    %(verbose)s
    n_jobs : int, optional
        Number of threads for kernel values; None means as many as BLAS would use.
    max_time : float, optional
        Time limit in seconds for a fit, a call of `partial_fit` or a whole stream.
    random_state : int, RandomState or None
        Seed of the sample order. An integer makes fits reproducible to the last bit on every platform.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Class labels.
    class_weight_ : array of shape (n_classes,)
        Factor on the sample weights for each class.
    coef_ : array of shape (n_outputs, n_features)
        Weights of the features; only for kernel="linear". There is one output for two classes, else one per class.
    intercept_ : array of shape (n_outputs,)
        Constants of the decision functions.
    dual_coef_ : array of shape (n_outputs, n_SV)
        Coefficients of the support vectors; only for other kernels.
    support_vectors_ : array or CSR matrix of shape (n_SV, n_features)
        Samples with nonzero coefficients; only for other kernels.
    t_ : int
        Number of steps made.
    n_iter_ : int
        Number of epochs or chunks begun.
    objective_ : float
        Value of the objective at the solution, summed over the outputs; only after `fit`.
    certificate_ : Certificate
        Bound on the distance from the optimum; only after `fit`. Its values are those of ½‖w‖² + Σ C_i ξ_i, the
        objective divided by λ.
    validation_loss_ : array
        Mean hinge loss on the validation set after each epoch, summed over the outputs; only with early stopping.
    converged_ : bool
        Whether all planned steps were made or early stopping ended them; only `certificate_` proves convergence.
    stop_reason_ : str
        Reason why training ended: "all steps", "early stopping" or "max_time".
    %(kernel with its numbers)s

    See Also
    --------
    LinearSVC : Exact linear support vector classification.
    SVC : Exact support vector classification with any kernel.

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
        _expansion_=KernelExpansion(),
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
        integer(
            "n_iter_no_change", self.n_iter_no_change, 1, "training stops after this many epochs without improvement"
        )

    # --- training --------------------------------------------------------------------------------------------------
    # A stream sets the classes and their weights before its first chunk, and keeps the kernel of that chunk.

    def _kernel(self) -> Any:
        return self.kernel_ if hasattr(self, "kernel_") else super()._kernel()

    def _read(self, y: ArrayLike | None) -> tuple[Indices | None, Any]:
        """Return the code of each sample and the classes; the first chunk of a stream has fixed the classes."""
        if not hasattr(self, "classes_"):
            return super()._read(y)
        pairs = planes(len(self.classes_), against_rest=True)
        return codes_among(self.classes_, y), Classes(self.classes_, pairs, self.class_weight_)

    def _weigh(self, target: Any, codes: Indices, weight: Floats) -> tuple[Floats, Any]:
        return (weight, target) if hasattr(self, "class_weight_") else super()._weigh(target, codes, weight)

    @property
    def _constant_feature(self) -> bool:
        return False  # KernelSpace and LinearSpace add the constant feature themselves

    @property
    def _linear(self) -> bool:
        """True if w itself is trained, not coefficients of samples."""
        return not hasattr(self, "_expansion_") if hasattr(self, "_theta_") else bool(self.kernel == "linear")

    def _tasks(self, fit: Fit) -> Tasks[PegasosProblem]:
        """Return the problems to solve, with their solvers."""
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
            dual_from_violations=bool(self.certificate),
        )
        return Tasks([Task("", self._problem(fit), solve, place=lambda n_threads: self._space(fit, n_threads))])

    def _problem(self, fit: Fit) -> PegasosProblem:
        """Return the problem of all outputs, each with its signs y = ±1."""
        merged, target = fit.merged, fit.target
        output_signs = np.ascontiguousarray(signs(merged.y, len(target.labels)).T)
        return PegasosProblem(output_signs, merged.weight * target.factor[merged.y], float(self.alpha))

    def _space(self, fit: Fit, n_threads: int) -> DescentSpace:
        """Return the space in which w is stored: weights of the features, or coefficients of samples."""
        has_bias, X = self.bias in REGULARIZED, fit.merged.X
        if self._linear:
            check_column_memory(X.shape[1], 5 * len(fit.target.pairs))  # θ, Σθ/t, two saved copies of it, w
            return LinearSpace(host(X), bias=has_bias)  # on the host, since a step takes a single row
        if not hasattr(self, "_theta_"):
            return KernelSpace(fit.gram(n_threads), bias=has_bias)
        # Samples of earlier chunks contribute to u = Kθ of the new samples.
        theta = self._theta_
        earlier_expansion = replace(
            self._expansion_, coefficients=theta.T.copy(), b=float(has_bias) * theta.sum(axis=1)
        )
        u = np.ascontiguousarray(earlier_expansion(X, n_threads).T)
        return KernelSpace(fit.gram(n_threads), bias=has_bias, n_older=theta.shape[1], u=u)

    def _held_out(self, fit: Fit) -> Indices:
        """Return the indices of the merged samples in the validation set."""
        codes, labels = fit.merged.y, fit.target.labels
        held_out = validation_part(self._seed_, len(codes), self.validation_fraction)
        missing = np.setdiff1d(np.arange(len(labels)), np.delete(codes, held_out))
        if len(missing):
            raise ValueError(
                f"early_stopping holds out {len(held_out)} of {len(codes)} distinct samples, which leaves none of "
                f"class {labels[missing[0]]!r} to train on; lower validation_fraction"
            )
        return held_out

    def _conclude(self, fit: Fit, solved: Solutions[PegasosProblem]) -> None:
        """Set the fitted attributes after `fit`."""
        outcome: PegasosOutcome = solved[0].solution
        self.classes_, self.class_weight_ = freeze(fit.target.labels), freeze(fit.target.factor)
        self.n_iter_, self.objective_ = outcome.epochs, outcome.objective
        self.converged_ = outcome.stop_reason != "max_time"
        if outcome.validation_losses is not None:
            self.validation_loss_ = freeze(outcome.validation_losses)
        self._set_iterates(fit, outcome.iterates, outcome.w, outcome.rows)

    def _set_iterates(self, fit: Fit, iterates: Iterates, w: Floats, rows: Indices) -> None:
        """Set the fitted attributes and the state from which further steps continue.

        With a kernel, w has a column for each of the merged samples in `rows` or, in a stream, for each stored vector
        and each new sample.
        """
        has_bias = self.bias in REGULARIZED
        if self._linear:
            d = self.n_features_in_
            self.coef_ = freeze(np.ascontiguousarray(w[:, :d]))
            self.intercept_ = freeze(w[:, d].copy() if has_bias else np.zeros(len(w)))
        else:
            used = np.flatnonzero(iterates.theta.any(axis=0))
            iterates, w = iterates.columns(used), w[:, used]
            self.intercept_ = freeze(float(has_bias) * w.sum(axis=1))
            self.dual_coef_ = freeze(np.ascontiguousarray(w))
            coefficients, old_expansion = np.ascontiguousarray(w.T), getattr(self, "_expansion_", None)
            if old_expansion is None:
                self._expansion_ = expansion_of(fit, coefficients, self.intercept_, rows[used])
            else:
                vectors = take(stack(old_expansion.vectors, host(fit.merged.X)), used)
                self._expansion_ = Expansion(old_expansion.kernel, vectors, coefficients, self.intercept_)
            if self._expansion_.vectors is not None:
                self.support_vectors_ = freeze(self._expansion_.vectors)
        self.t_ = iterates.t
        self._theta_, self._total_ = freeze(iterates.theta), freeze(iterates.total)
        self._marks_, self._norm2_ = freeze(iterates.marks), freeze(iterates.norm2)

    def _early_stop_message(self, X: Data) -> str:
        """Return the warning for a fit that reached `max_time`."""
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
            (self.kernel_(X, self.coef_) if isinstance(X, EngineSamples) else X @ self.coef_.T) + self.intercept_
        )

    # --- streams ---------------------------------------------------------------------------------------------------

    @available_if(can_add_samples)
    @shared_docs
    def partial_fit(
        self, X: Data, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: Weights = None
    ) -> Self:
        """Continue training with one pass over a chunk of samples.

        Every sample is visited as often as its weight says.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Samples of the chunk.
        y : array of shape (n_samples,)
            Class labels; a chunk need not contain all classes.
        classes : array, optional
            All class labels; required at the first call unless the machine was fitted before.
        %(given twice)s

        Returns
        -------
        self
            Fitted estimator.
        """
        learner = copy.copy(self)
        learner._learn(X, y, classes, sample_weight, deadline_of(self.max_time))
        return self._adopt(learner)

    def fit_stream(self, chunks: Iterable[Any], classes: Any) -> Self:
        """Fit the machine from scratch in one pass over an iterable of chunks.

        No chunk is kept, except for the vectors that a kernel machine needs. If an error occurs, the machine stays as
        it was.

        Parameters
        ----------
        chunks : iterable of tuples
            Chunks (X, y) or (X, y, sample_weight).
        classes : array
            All class labels that may occur.

        Returns
        -------
        self
            Fitted estimator.
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
        return self._adopt(learner)

    def _learn(self, X: Data, y: ArrayLike, classes: Any, sample_weight: Weights, deadline: float) -> None:
        """Make one pass over a chunk."""
        _check_stream(self)
        is_first = not hasattr(self, "_theta_")
        labels = known_classes(classes, None if is_first else self.classes_)
        if is_first:
            # Class weights are checked against all classes, some of which may be missing from the chunk.
            factor = class_weights(self.class_weight, labels, np.arange(len(labels)), np.ones(len(labels)))
            self.classes_, self.class_weight_, self.n_iter_ = freeze(labels), freeze(factor), 0
        for name in ("objective_", "certificate_", "validation_loss_"):
            self.__dict__.pop(name, None)
        fit = Fit.of(self, X, y, sample_weight, chunk=True)
        self.n_iter_, self.stop_reason_, self.converged_ = self.n_iter_ + 1, "all steps", True
        if not is_first and not len(fit.merged.y):
            return  # a chunk whose samples all have weight 0 changes nothing
        problem, space = self._problem(fit), self._space(fit, fit.limits.n_threads)
        if is_first:
            assert fit.kernel is not None
            self.kernel_, self._seed_ = fit.kernel, fit.limits.seed()
            iterates = Iterates.zero(len(problem.signs), space.size)
        else:
            iterates = Iterates(self._theta_, self._total_, self._marks_, self._norm2_, self.t_)
            iterates = iterates.extended(space.size - len(self._theta_[0]))
        draws = draw_pass(self._seed_, self.n_iter_ - 1, problem.weight)
        n_steps = run_steps(
            space, problem.signs, draws, StepOptions(iterates, problem.lam, bool(self.project), None), deadline
        )
        if n_steps < len(draws):
            self.stop_reason_, self.converged_ = "max_time", False
            visited_text = f"{n_steps:,} of the {len(draws):,} rows of chunk {self.n_iter_}"
            self._warn_early(f"PegasosSVC visited {visited_text} (max_time); raise max_time")
        self._set_iterates(fit, iterates, iterates.finite_output(problem.lam, self.average), np.arange(space.n))


def _check_stream(machine: PegasosSVC) -> None:
    """Raise ValueError for parameters that need all samples at once, or that were changed since the first chunk."""
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
    is_linear = not hasattr(machine, "_expansion_")
    if (machine.kernel == "linear") != is_linear or _kernels_differ(kernel, machine.kernel_):
        _refuse_changed_parameter("kernel", machine.kernel, machine.kernel_)
    has_bias = machine.bias in REGULARIZED
    if has_bias is not _had_bias(machine, is_linear, has_bias):
        _refuse_changed_parameter("bias", machine.bias, "'regularized'" if machine.bias is False else False)


def _kernels_differ(present_kernel: Kernel, fitted_kernel: Kernel) -> bool:
    """Return whether two kernels differ in class or in a number; a parameter such as "scale" matches any number."""
    params, fitted_params = present_kernel.get_params(), fitted_kernel.get_params()
    if type(present_kernel) is not type(fitted_kernel) or params.keys() != fitted_params.keys():
        return True
    return any(value != fitted_params[name] for name, value in params.items() if isinstance(value, Real))


def _had_bias(machine: PegasosSVC, linear: bool, default: bool) -> bool:
    """Return whether the machine was trained with a bias, or `default` if its coefficients do not show it."""
    if linear:
        return bool(machine._theta_.shape[1] > machine.n_features_in_)
    if machine.intercept_.any():
        return True
    return default and not machine.dual_coef_.sum(axis=1).any()


def _refuse_changed_parameter(name: str, value: Any, first_value: Any) -> None:
    """Raise ValueError because a parameter has changed since the first chunk."""
    raise ValueError(
        f"{name}={value!r} was set after training began with {name}={first_value}, and training cannot continue with "
        f"another {name}; set it back, or start again with fit or fit_stream"
    )
