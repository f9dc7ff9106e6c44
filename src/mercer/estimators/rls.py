"""Regularized least squares: one λ, any kernel, several outputs, exact."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from mercer.arrays import Floats, Indices, freeze
from mercer.certificates.certificate import Certificate
from mercer.data import samples
from mercer.data.labels import class_weights, codes_among, read_labels
from mercer.data.merging import Merged, merge
from mercer.data.targets import outputs
from mercer.errors import INDEFINITE, NonPSDKernelWarning, SingularSystemWarning
from mercer.expansion import Expansion
from mercer.fitting.kinds import Array, BoundKernel, Count, Flag, Function, Labels, Number, Record, Text, fitted
from mercer.fitting.limits import physical_memory
from mercer.fitting.machine import Machine, Training
from mercer.fitting.no_probabilities import Deciding
from mercer.fitting.overflow import proven
from mercer.fitting.state import fitted_names
from mercer.fitting.telling import warn_user
from mercer.gram import Gram, gram_for
from mercer.gram.linear_gram import linear_scale
from mercer.gram.sums import Sums
from mercer.kernels import Kernel
from mercer.parameters import one_of, positive, real
from mercer.problems.least_squares import LeastSquares
from mercer.solution import Stop
from mercer.solvers.least_squares.choose import SOLVERS, solve_least_squares
from mercer.solvers.least_squares.covariance import solve_sums
from mercer.solvers.least_squares.memory import covariance_bytes, memory_error
from mercer.solvers.least_squares.solution import LeastSquaresSolution
from mercer.threads import effective_n_threads

# Conjugate gradients end at this relative duality gap, far below what any target is known to, or after so many steps.
EXACT = Stop(tol=1e-10, max_iter=2000)


@dataclass(frozen=True, eq=False)
class Ready:
    """A fit's input, checked."""

    X: Any
    merged: Merged
    problem: LeastSquares
    gram: Gram
    target: Any

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0]) if hasattr(self.X, "shape") else len(self.X)


def checked_lam(name: str, value: Any, at_zero: str = "") -> float:
    """λ as a finite number that is not negative, and positive where `at_zero` says what to use instead of 0."""
    lam = real(name, value)
    if lam == math.inf:
        raise ValueError(
            f"{name}=inf leaves only the constant: the weighted mean of y, or 0 without bias. Use a finite {name}, or "
            "sklearn.dummy for the constant itself"
        )
    if not lam >= 0 or (lam == 0 and at_zero):
        least = f"above 0; {at_zero}" if at_zero else "of at least 0"
        raise ValueError(f"{name}={value!r} must be a finite number {least}")
    return lam


def _linear_expansion(kernel: Kernel, W: Floats, b: Floats) -> Expansion:
    """f(x) = ⟨w, x⟩ + b as an expansion in the weight vectors themselves, one per output."""
    scale = linear_scale(kernel) or 1.0
    return Expansion(kernel, np.ascontiguousarray(W.T), np.eye(W.shape[1]) / scale, b)


def _is_linear(estimator: Any) -> bool:
    if linear_scale(estimator._kernel()) is None:
        raise AttributeError(
            f"partial_fit and forget need a linear kernel, not {estimator.kernel!r}; fit all samples at once"
        )
    return True


class RegularizedLeastSquares(Machine):
    """The fit and predict pipeline of least squares; what differs is how targets are read and predictions made."""

    FITTED = fitted(
        kernel_=BoundKernel(required=True),
        _expansion_=Function(required=True),
        dual_coef_=Array(None, "outputs", flat=True),
        solver_=Text(),
        factor_precision_=Text(),
        rank_=Count(),
        residual_=Number(),
        _sums_=Record(
            Sums,
            x=Array("features"),
            y=Array("outputs"),
            xx=Array("features", "features"),
            xy=Array("features", "outputs"),
            yy=Array("outputs"),
            bias=Flag(),
        ),
    )

    def _outputs(self, y: Any, labels: Any = None) -> tuple[Floats, Any]:
        """One column of numbers per output, and what else was learnt from y; `labels` are classes known before."""
        raise NotImplementedError

    def _row_weights(self, target: Any, weight: Floats) -> tuple[Floats, Any]:
        """The weights of the rows, and the target with what they add to it."""
        return weight, target

    def _remember(self, target: Any) -> None:
        """Fitted attributes that come from y alone."""
        raise NotImplementedError

    # --- training --------------------------------------------------------------------------------------------------

    def _train(self, X: Any, y: Any, sample_weight: Any, training: Training) -> None:
        ready = self._prepare(X, y, sample_weight)
        self._adopt(ready, *solve_least_squares(ready.problem, ready.gram, EXACT, solver=self.solver))

    def _lam(self) -> float:
        return checked_lam("lam", self.lam)

    def _prepare(self, X: Any, y: Any, sample_weight: Any) -> Ready:
        kernel = self._kernel()
        X = self._samples(X, kernel, reset=True)
        self._check_parameters()
        budget, n_threads = self._resources()
        check_consistent_length(X, y)
        Y, target = self._outputs(y)
        weight, target = self._row_weights(target, samples.weights(sample_weight, len(Y)))
        if not (weight > 0).any():
            raise ValueError("all sample weights are zero: there is nothing to fit; give some samples weight")
        merged = merge(X, np.zeros(len(Y), np.intp), weight, identical=kernel.mergeable, n_threads=n_threads)
        problem = LeastSquares(
            Y[merged.rows], merged.own_weight, merged.member, len(merged.weight), bool(self.bias), self._lam()
        )
        K = merged.X
        if kernel.accepts != "gram":
            kernel = kernel.bind(merged.X, merged.weight)
            if linear_scale(kernel) is not None and not np.isfinite(kernel.diag(merged.X)).all():
                raise FloatingPointError("the squares of the features overflow float64; scale the features")
        elif len(merged.rows) < len(X):
            K = K[:, merged.rows]
        gram = gram_for(kernel, K, budget, n_threads)
        if not gram.looks_positive_definite():
            warn_user(INDEFINITE.format(kernel=kernel), NonPSDKernelWarning)
        return Ready(X, merged, problem, gram, target)

    def _resources(self) -> tuple[int, int]:
        megabytes = positive("cache_size", self.cache_size, "it is the memory for a fit in MB")
        return int(min(megabytes * 1e6, physical_memory() / 2)), effective_n_threads(self.n_jobs)

    def _check_parameters(self) -> None:
        one_of("solver", self.solver, SOLVERS)
        if not isinstance(self.bias, bool | np.bool_):
            raise TypeError(f"bias={self.bias!r} must be True or False")
        self._lam()

    def _adopt(self, ready: Ready, solution: LeastSquaresSolution, certificate: Certificate) -> None:
        """Every fitted attribute."""
        merged, kernel = ready.merged, ready.gram.kernel
        precomputed = kernel.accepts == "gram"
        self._adopt_solution(kernel, solution, certificate, self._lam())
        if solution.C is not None:
            self._expansion_ = Expansion(
                kernel=kernel,
                vectors=None if precomputed else merged.X,
                coefficients=np.array(solution.C),
                b=self.intercept_,
                columns=merged.rows if precomputed else None,
                n_columns=ready.n_rows if precomputed else 0,
            )
        if solution.beta is not None:
            own = np.zeros((ready.n_rows, solution.beta.shape[1]))
            own[merged.rows] = solution.beta
            self.dual_coef_ = freeze(own)
        self._remember(ready.target)
        if not self.converged_:
            warn_user(
                f"{type(self).__name__} left a residual of {self.residual_:.3g}, more than rounding explains; "
                f"scale the features, raise lam, or choose solver='eigen'",
                ConvergenceWarning,
            )

    def _adopt_solution(
        self, kernel: Kernel, solution: LeastSquaresSolution, certificate: Certificate, lam: float
    ) -> None:
        """What a solution says without its samples."""
        if solution.indefinite:
            warn_user(INDEFINITE.format(kernel=kernel), NonPSDKernelWarning)
        if solution.dropped:
            warn_user(
                f"the system is singular to rounding at lam={lam:g}: its effective rank is {solution.rank} of "
                f"{solution.rank + solution.dropped}. The solution of least norm was taken through eigenvalues; raise "
                "lam for a unique one",
                SingularSystemWarning,
            )
        self.kernel_ = kernel
        self.certificate_ = certificate
        self.stop_reason_ = proven(solution.stop_reason, certificate)
        self.converged_ = self.stop_reason_ == "converged"
        self.n_iter_ = solution.steps
        self.solver_ = solution.solver
        self.factor_precision_ = solution.precision
        self.rank_ = solution.rank
        self.residual_ = certificate.violation
        self.intercept_ = freeze(np.array(solution.b, dtype=np.float64))
        if solution.W is not None:
            self._expansion_ = _linear_expansion(kernel, solution.W, self.intercept_)
        if solution.sums is not None:
            self._sums_ = solution.sums

    # --- recursive least squares -----------------------------------------------------------------------------------

    def _learn(self, X: Any, y: Any, sample_weight: Any, sign: int, labels: Any = None) -> Self:
        """Add samples to the sums (sign 1) or take them out (−1), and solve again; all or nothing."""
        trained = copy.copy(self)
        first = not hasattr(self, "_expansion_")
        if not first and not hasattr(self, "_sums_"):
            raise ValueError(
                f"this {type(self).__name__} was fitted with solver {self.solver_!r}, which keeps no sums over the "
                "samples; call partial_fit from the start, or fit with solver='covariance'"
            )
        if first and sign < 0:
            check_is_fitted(self)
        kernel = trained._kernel()
        X = trained._samples(X, kernel, reset=first)
        trained._check_parameters()
        budget, n_threads = trained._resources()
        d = X.shape[1]
        if covariance_bytes(d) > budget:
            raise memory_error(f"the covariance of {d} features", covariance_bytes(d), budget, "fewer features")
        Y, target = trained._outputs(y, labels)
        check_consistent_length(X, Y)
        weight, target = trained._row_weights(target, samples.weights(sample_weight, len(Y)))
        rows = np.flatnonzero(weight > 0)
        sums = None if first else self._sums_
        if len(rows):
            if sums is not None and sums.xy.shape[1] != Y.shape[1]:
                raise ValueError(f"y has {Y.shape[1]} outputs, but the samples before had {sums.xy.shape[1]}")
            problem = LeastSquares(Y[rows], weight[rows], np.arange(len(rows)), len(rows), bool(self.bias))
            fresh = Sums.of(X[rows] if len(rows) < len(Y) else X, problem)
            sums = fresh if sums is None else sums.plus(fresh) if sign > 0 else sums.minus(fresh)
        if sums is None:
            raise ValueError("all sample weights are zero: there is nothing to learn; give some samples weight")
        if sums.weight == 0:
            raise ValueError("nothing would be left: forget fewer samples, or make a new estimator")
        solution, certificate = solve_sums(sums, self._lam() / (linear_scale(kernel) or 1.0), n_threads)
        for name in fitted_names(trained):
            if name not in ("n_features_in_", "feature_names_in_"):
                delattr(trained, name)
        trained._adopt_solution(kernel, solution, certificate, self._lam())
        trained._remember(target)
        return self._become(trained)

    # --- what is known ---------------------------------------------------------------------------------------------

    @property
    def coef_(self) -> Any:
        """The weights of the features, one row per output; only for a linear kernel."""
        check_is_fitted(self)
        scale = linear_scale(self.kernel_)
        if scale is None:
            raise AttributeError(f"coef_ exists only for a linear kernel, and this one is {self.kernel_!r}")
        expansion = self._expansion_
        w = np.asarray(expansion.coefficients.T @ expansion.vectors) * scale
        return freeze(w[0] if self._one_row() else w)

    def _one_row(self) -> bool:
        """Whether coef_ is a list rather than a matrix."""
        return False


class RLSRegressor(MultiOutputMixin, RegressorMixin, RegularizedLeastSquares):  # type: ignore[misc]  # untyped
    """Regularized least squares with any kernel (kernel ridge regression), exact and certified.

    Minimises Σ w_i (y_i − f(x_i))² + λ‖f‖² over f(x) = Σ c_j k(x_j, x) + b, that is, solves (K + λW⁻¹)c + 1b = y. The
    bias b is not regularised. Several outputs share one factor.

    Parameters
    ----------
    lam : float, default=1.0
        λ, on the sum of squares: scikit-learn's `KernelRidge(alpha)`; see `mercer.estimators.ridge_conventions` for
        others. 0 gives the interpolant of least norm.
    kernel : str, Kernel or callable, default="rbf"
        A name ("linear", "poly", "rbf", "laplacian", "precomputed", ...), a kernel object, which may be composed with
        + * ** and exp, or a function (X, Z) -> matrix of kernel values.
    degree, gamma, coef0
        Parameters of the named kernels; a kernel object has its own.
    bias : bool, default=True
        Whether f has a constant b.
    solver : {"auto", "cholesky", "eigen", "cg", "covariance", "lsqr"}, default="auto"
        "cholesky" factors K + λW⁻¹ (float32, refined to float64's answer, where that is possible); "eigen" decomposes
        it, also where it is singular; "cg" runs conjugate gradients preconditioned by landmarks and never stores K,
        which "auto" does where the factor would not fit into `cache_size`; "covariance" and "lsqr" are for linear
        kernels: a d × d matrix, or products with X alone.
    cache_size : float, default=1000
        Memory in MB that a fit may use beyond the data.
    verbose : ignored
        A fit is one factorisation.
    n_jobs : int, optional
        Threads; None uses as many as BLAS would.

    Attributes
    ----------
    certificate_ : Certificate
        Primal and dual value and the residuals of the optimality conditions on the given rows, from fresh kernel
        values.
    dual_coef_ : array of shape (n_samples,) or (n_samples, n_outputs)
        β of the given rows; absent after partial_fit and for lam=0.
    coef_ : array of shape (n_features,) or (n_outputs, n_features)
        For linear kernels.
    intercept_ : array of shape (n_outputs,)
    solver_ : str
        The solver that was used.
    factor_precision_ : str
        "float32" where that factor led to float64's answer, "float64" otherwise.
    rank_ : int
        Directions that are more than rounding: all of them, unless K + λI is singular.
    residual_ : float
        The largest residual of the linear system, the certificate's violation.
    kernel_, converged_, stop_reason_, n_iter_, n_features_in_, feature_names_in_
        The kernel with its parameters as numbers; whether the residual is that of rounding; corrections made.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RLSRegressor
    >>> X = np.linspace(0, 3, 30)[:, None]
    >>> model = RLSRegressor(lam=1e-3).fit(X, np.sin(X[:, 0]))
    >>> bool(abs(model.predict([[1.5]])[0] - np.sin(1.5)) < 1e-3)
    True
    """

    FITTED = fitted(_one_output_=Flag(required=True))

    def __init__(
        self,
        lam: float = 1.0,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        bias: bool = True,
        solver: str = "auto",
        cache_size: float = 1000,
        verbose: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.lam = lam
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.bias = bias
        self.solver = solver
        self.cache_size = cache_size
        self.verbose = verbose
        self.n_jobs = n_jobs

    def _outputs(self, y: Any, labels: Any = None) -> tuple[Floats, Any]:
        return outputs(y)

    def _remember(self, target: Any) -> None:
        self._one_output_ = bool(target)
        if hasattr(self, "dual_coef_") and target:
            self.dual_coef_ = freeze(self.dual_coef_[:, 0])

    def _one_row(self) -> bool:
        return bool(self._one_output_)

    def predict(self, X: Any) -> Floats:
        """f(x) for each sample, one column per output if there were several."""
        values = self._decision(X)
        return values[:, 0] if self._one_output_ else values

    @available_if(_is_linear)  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from more samples; for linear kernels, the result is that of fitting all samples so far at once."""
        return self._learn(X, y, sample_weight, 1)

    @available_if(_is_linear)  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Take back samples that were learnt before; for linear kernels."""
        return self._learn(X, y, sample_weight, -1)


@dataclass(frozen=True, eq=False)
class _Coded:
    """The classes, each sample's class, and each class's factor on the weights."""

    labels: np.ndarray
    codes: Indices
    factor: Floats
    known_before: bool


class OneVersusAll(Deciding, ClassifierMixin, RegularizedLeastSquares):  # type: ignore[misc]  # untyped
    """Targets ±1, one output per class (one in all for two classes), the largest output wins."""

    FITTED = fitted(
        classes_=Labels(required=True),
        class_weight_=Array("classes"),
    )

    def _outputs(self, y: Any, labels: Any = None) -> tuple[Floats, Any]:
        if labels is None:
            found, codes = read_labels(y)
        else:
            found, codes = labels, codes_among(labels, y)
        return _signs(codes, len(found)), _Coded(found, codes, np.ones(len(found)), labels is not None)

    def _row_weights(self, target: _Coded, weight: Floats) -> tuple[Floats, Any]:
        codes, mass = target.codes, weight
        if target.known_before:  # a batch need not hold every class
            codes, mass = np.r_[codes, np.arange(len(target.labels))], np.r_[weight, np.ones(len(target.labels))]
        factor = class_weights(self.class_weight, target.labels, codes, mass)
        return weight * factor[target.codes], replace(target, factor=factor)

    def _remember(self, target: _Coded) -> None:
        self.classes_ = freeze(target.labels)
        self.class_weight_ = freeze(target.factor)

    def decision_function(self, X: Any) -> Floats:
        """f(x) for two classes, positive for the second; one column per class for more."""
        values = self._decision(X)
        return np.asarray(values[:, 0]) if len(self.classes_) == 2 else values

    def predict(self, X: Any) -> np.ndarray:
        """The class of each sample: the one with the largest score, the first of them in a tie."""
        scores = self.decision_function(X)
        winner = (scores >= 0).astype(np.intp) if scores.ndim == 1 else np.argmax(scores, axis=1)
        return np.asarray(self.classes_[winner])


def _signs(codes: Indices, count: int) -> Floats:
    if count == 2:
        return np.where(codes == 1, 1.0, -1.0)[:, None]
    return np.where(codes[:, None] == np.arange(count), 1.0, -1.0)


class RLSClassifier(OneVersusAll):
    """Regularized least squares classification: ±1 targets, one against all for several classes.

    Minimises Σ w_i (±1 − f(x_i))² + λ‖f‖² for each class; all classes share one factor. For f(x) = 0 the second of
    two classes is predicted.

    Parameters
    ----------
    lam : float, default=1.0
        λ, on the sum of squares.
    kernel, degree, gamma, coef0, bias, solver, cache_size, verbose, n_jobs
        As in RLSRegressor.
    class_weight : dict or "balanced", optional
        Factors on the samples' weights.

    Attributes
    ----------
    classes_ : array
    class_weight_ : array
    certificate_, dual_coef_, coef_, intercept_, solver_, factor_precision_, rank_, residual_, kernel_, converged_,
    stop_reason_, n_iter_, n_features_in_, feature_names_in_
        As in RLSRegressor, with one output per class, or one in all for two classes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import RLSClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> round(RLSClassifier(lam=0.1).fit(X, y).score(X, y), 2)
    0.99
    """

    def __init__(
        self,
        lam: float = 1.0,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        bias: bool = True,
        class_weight: Any = None,
        solver: str = "auto",
        cache_size: float = 1000,
        verbose: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.lam = lam
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.bias = bias
        self.class_weight = class_weight
        self.solver = solver
        self.cache_size = cache_size
        self.verbose = verbose
        self.n_jobs = n_jobs

    @available_if(_is_linear)  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more samples; for linear kernels. The first call must name all `classes` that will come."""
        return self._learn_classes(X, y, classes, sample_weight, 1)

    @available_if(_is_linear)  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Take back samples that were learnt before; for linear kernels."""
        return self._learn_classes(X, y, None, sample_weight, -1)

    def _learn_classes(self, X: Any, y: Any, classes: Any, sample_weight: Any, sign: int) -> Self:
        known = getattr(self, "classes_", None)
        if known is None and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit: all that will ever come")
        if isinstance(self.class_weight, str):
            raise ValueError(
                "class_weight='balanced' needs all samples at once; give partial_fit a dict of class weights instead"
            )
        labels = np.unique(classes) if known is None else known
        if classes is not None and not np.array_equal(np.unique(classes), labels):
            raise ValueError(f"classes={classes!r} differ from those of the first call, {labels.tolist()}")
        if len(labels) < 2:
            raise ValueError(f"a classifier needs at least 2 classes, but classes holds {labels.tolist()}")
        return self._learn(X, y, sample_weight, sign, labels)
