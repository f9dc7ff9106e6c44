"""Linear machines: LinearSVC and LinearSVR, for text and tall data, with an exact bias and a certificate."""

from __future__ import annotations

import copy
import math
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from mercer.arrays import Floats, freeze, is_sparse
from mercer.certificates.certificate import Certificate
from mercer.data import samples
from mercer.data.labels import class_weights, read_labels
from mercer.data.merging import Merged, merge
from mercer.data.targets import numbers
from mercer.fitting.machine import fitted_names
from mercer.fitting.no_probabilities import Deciding
from mercer.fitting.overflow import expect_finite, proven
from mercer.fitting.telling import Progress
from mercer.gram.linear_rows import LinearRows
from mercer.parameters import iterations, not_negative, one_of, positive
from mercer.problems.linear_problem import LinearProblem, epsilon_insensitive, hinge
from mercer.problems.multiclass import JointProblem
from mercer.solution import Stop
from mercer.solvers.linear.choose import METHODS, solve_linear
from mercer.solvers.linear.joint import solve_joint_linear
from mercer.solvers.linear.outcome import LinearSolution
from mercer.threads import effective_n_threads

# Columns whose mean is so many deviations away from zero are centred before training: w is the same, b is moved back.
_FAR = 3.0


class LinearMachine(BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """What the two linear machines share: the pipeline from samples to certified weights."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # --- training --------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on samples X, an array or CSR matrix, with targets y.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
            A weight counts like that many repetitions of its sample; 0 leaves the sample out.

        Returns
        -------
        self
        """
        trained = copy.copy(self)
        for name in fitted_names(trained):
            delattr(trained, name)
        trained._train(X, y, sample_weight)
        expect_finite(trained)
        for name in fitted_names(self):
            delattr(self, name)
        self.__dict__.update(vars(trained))
        return self

    def _problems(self, merged: Merged, target: Any) -> list[LinearProblem]:
        raise NotImplementedError

    def _target(self, y: Any, weight_of: Any) -> tuple[Any, Any]:
        raise NotImplementedError

    def _train(self, X: Any, y: Any, sample_weight: Any) -> None:
        stop, seed, n_threads = self._limits()
        X = samples.vectors(self, X, reset=True)
        check_consistent_length(X, y)
        codes, target = self._target(y, lambda n: samples.weights(sample_weight, n))
        weight = samples.weights(sample_weight, X.shape[0])
        if not (weight > 0).any():
            raise ValueError("every sample_weight is zero, so that no sample is left; give some sample a weight")
        merged = merge(X, codes, weight, identical=True, n_threads=n_threads, copy_rows=not is_sparse(X))
        w, b = self._machines(merged, target, stop, seed, n_threads)
        self.stop_reason_: str = proven(self.stop_reason_, self.certificate_)
        self.converged_ = self.stop_reason_ == "converged"
        self._conclude(w, b, target)
        if not self.converged_:
            warnings.warn(self._unfinished(), ConvergenceWarning, stacklevel=4)

    def _machines(self, merged: Merged, target: Any, stop: Stop, seed: int, n_threads: int) -> tuple[Floats, Floats]:
        """w and b with a row for each output; sets the attributes that tell how they were found."""
        problems = self._problems(merged, target)
        data, centre = _centred(merged.X) if problems[0].exact_bias else (merged.X, None)
        abreast = min(n_threads, len(problems))
        rows = _rows(merged, data, n_threads if abreast == 1 else 1)
        report = Progress(None, True, len(problems), None, None) if self.verbose else None
        solved = _solve(problems, rows, abreast, stop, self.solver, seed, bool(self.shrinking), report)
        solutions = [solution for solution, _ in solved]
        w = np.array([solution.w for solution in solutions])
        b = np.array([solution.b for solution in solutions])
        if centre is not None:
            b = b - w @ centre
        self.certificate_ = Certificate.total([certificate for _, certificate in solved])
        reasons = [solution.stop_reason for solution in solutions]
        self.stop_reason_ = next((reason for reason in reasons if reason != "converged"), "converged")
        self.solver_ = solutions[0].solver
        self.n_iter_ = max(1, *(solution.steps for solution in solutions), 0)
        return w, b

    def _conclude(self, w: Floats, b: Floats, target: Any) -> None:
        raise NotImplementedError

    def _unfinished(self) -> str:
        found = self.certificate_
        text = (
            f"{type(self).__name__} failed to converge ({self.stop_reason_}): violation {found.violation:.3g}, gap "
            f"{found.gap:.3g}, {found.relative_gap:.1e} of the dual value: the objective is at most that far "
            "from its optimum. "
        )
        if self.stop_reason_ in ("max_iter", "max_time"):
            return (
                text + f"Raise {self.stop_reason_}, lower C, or ask for less: a larger tol, or tol=None with a gap_tol"
            )
        return text + "Ask for less (a larger tol, or tol=None with a gap_tol), lower C or scale the features"

    # --- parameters ------------------------------------------------------------------------------------------------

    def _limits(self) -> tuple[Stop, int, int]:
        one_of("solver", self.solver, ("auto", *METHODS))
        try:
            generator = check_random_state(self.random_state)
        except ValueError as error:
            raise ValueError(f"random_state={self.random_state!r} must be None, an integer or a RandomState") from error
        seed = 0 if self.random_state is None else int(generator.randint(2**31 - 1))
        if self.tol is None and self.gap_tol is None:
            raise ValueError("tol and gap_tol are both None, so that nothing would end the fit; give one of them")
        seconds = math.inf if self.max_time is None else positive("max_time", self.max_time, "None means no limit")
        stop = Stop(
            tol=math.inf if self.tol is None else positive("tol", self.tol),
            gap_tol=math.inf if self.gap_tol is None else positive("gap_tol", self.gap_tol, "None asks for no gap"),
            max_iter=iterations("max_iter", self.max_iter, 10_000),
            deadline=time.monotonic() + seconds,
        )
        return stop, seed, effective_n_threads(self.n_jobs)

    def _bias(self) -> float:
        """The value of the bias's own feature: infinite without regularisation, 0 without bias."""
        one_of("bias", self.bias, (True, False, "regularized"))
        if self.bias == "regularized":
            return positive("intercept_scaling", self.intercept_scaling)
        return math.inf if self.bias else 0.0

    # --- prediction ------------------------------------------------------------------------------------------------

    def _values(self, X: Any) -> Floats:
        check_is_fitted(self)
        X = samples.vectors(self, X, reset=False)
        rows = LinearRows(X, effective_n_threads(self.n_jobs))
        w, b = np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_)
        return np.column_stack([rows.product(w[k], float(b[k])) for k in range(len(b))])

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for name in fitted_names(self):
            freeze(getattr(self, name))

    # --- files -----------------------------------------------------------------------------------------------------

    def _state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        check_is_fitted(self)
        fitted: dict[str, Any] = {}
        arrays: dict[str, Any] = {}
        for name in fitted_names(self):
            value = getattr(self, name)
            numeric = isinstance(value, np.ndarray) and value.dtype.kind in "biuf"
            plain = value.to_dict() if isinstance(value, Certificate) else value
            (arrays if numeric else fitted)[name] = plain
        return {"params": self.get_params(deep=False), "fitted": fitted}, arrays

    @classmethod
    def _from_state(cls, header: dict[str, Any], arrays: dict[str, Any]) -> Self:
        model = cls(**header["params"])
        for name, value in {**header["fitted"], **{k: freeze(a) for k, a in arrays.items()}}.items():
            setattr(model, name, Certificate.from_dict(value) if name == "certificate_" else value)
        model._check_state()
        return model

    def _check_state(self) -> None:
        """Whether coef_ and intercept_ could have come from a fit; files call it."""
        w, b, d = self.coef_, self.intercept_, self.n_features_in_
        whole = all(isinstance(a, np.ndarray) and a.dtype == np.float64 and np.isfinite(a).all() for a in (w, b))
        if not (whole and b.ndim == 1 and len(b) > 0 and w.shape in ((len(b), d), (d,))):
            raise ValueError(f"coef_ and intercept_ must be finite numbers for {d} features")
        outputs = len(self.classes_) if hasattr(self, "classes_") else 1
        if len(b) != (1 if outputs == 2 else outputs):
            raise ValueError(f"there are {len(b)} outputs for {outputs} classes")


def _centred(X: Any) -> tuple[Any, Floats | None]:
    """X minus its column means where those are far from zero: with a free bias the same problem, better conditioned."""
    if is_sparse(X) or len(X) < 2:
        return X, None
    mean, spread = X.mean(axis=0, dtype=np.float64), X.std(axis=0, dtype=np.float64)
    far = np.abs(mean) > _FAR * spread
    if not far.any():
        return X, None
    centre = np.where(far, mean, 0.0)
    return np.ascontiguousarray(X - centre), centre


def _rows(merged: Merged, X: Any, n_threads: int) -> LinearRows:
    """The merged samples; those of a CSR matrix were left where they are."""
    return LinearRows(X, n_threads, merged.first if is_sparse(X) else None)


def _solve(
    problems: list[LinearProblem],
    rows: LinearRows,
    abreast: int,
    stop: Stop,
    solver: str,
    seed: int,
    shrinking: bool,
    progress: Progress | None,
) -> list[tuple[LinearSolution, Certificate]]:
    """Every problem on the same rows; several at a time where there are several."""

    def solve(number: int) -> tuple[LinearSolution, Certificate]:
        report = None if progress is None else progress.begin(f"machine {number + 1} of {len(problems)}")
        return solve_linear(problems[number], rows, stop, solver=solver, seed=seed, shrinking=shrinking, report=report)

    if abreast == 1:
        return [solve(number) for number in range(len(problems))]
    with ThreadPoolExecutor(abreast) as threads:
        try:
            return list(threads.map(solve, range(len(problems))))
        except BaseException:
            threads.shutdown(cancel_futures=True)
            raise


class LinearSVC(Deciding, ClassifierMixin, LinearMachine):  # type: ignore[misc]  # scikit-learn is untyped
    """Linear support vector classification, exact and certified; several classes one against the rest.

    Minimises ½‖w‖² + Σ C_i loss(y_i f(x_i)) with f(x) = w'x + b and loss = max(0, 1 − y f), or its square. The squared
    hinge costs C·Σξ², as in LIBLINEAR and scikit-learn's LinearSVC, twice what C/2·Σξ² would.

    Parameters
    ----------
    C : float, default=1.0
        Price of slack. A sample's own C_i is C times its weight times its class's weight.
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
    bias : {True, "regularized", False}, default=True
        True: b is free, as in SVC(kernel="linear"). "regularized": b is one more weight, ½(b/intercept_scaling)² in the
        objective, as in LIBLINEAR and scikit-learn's LinearSVC. False: f passes through the origin.
    intercept_scaling : float, default=1.0
        Only for bias="regularized".
    tol : float or None, default=1e-4
        Largest violation of the optimality conditions that may remain; None asks for none.
    gap_tol : float, optional
        Go on until the duality gap is at most this share of the dual value.
    solver : {"auto", "newton", "dual"}, default="auto"
        Newton's method in (w, b), or dual coordinate descent; "auto" takes the first up to 1000 columns, otherwise the
        second and, where that crawls, the first to end with.
    multi_class : {"ovr", "crammer_singer"}, default="ovr"
        Several classes one against the rest, or as Crammer and Singer's joint machine, which minimises
        ½Σ‖w_k‖² + Σ C_i max_k (1 − [k = y_i] + f_k(x_i) − f_{y_i}(x_i)). That one has no free bias (say "regularized"
        or False), knows no other loss (`loss` is not used) and is always solved by dual coordinate descent; of two
        classes f_1 − f_0 is kept.
    class_weight : dict or "balanced", optional
    shrinking : bool, default=True
        Leave settled samples aside in dual coordinate descent; the answer is the same.
    verbose : bool, default=False
        Print the certificates on the way, a line a second at most.
    max_iter : int, default=-1
        Limit on Newton steps or passes over the data; −1 stands for 10,000.
    max_time : float, optional
        Limit in seconds. A fit that meets a limit warns with the gap it has reached.
    random_state : int, RandomState or None, default=None
        Order of the samples in dual coordinate descent; None stands for one fixed order.
    n_jobs : int, optional
        Threads; None uses as many as BLAS would.

    Attributes
    ----------
    coef_ : array of shape (1 or n_classes, n_features)
    intercept_ : array of shape (1 or n_classes,)
    classes_, class_weight_, n_features_in_, feature_names_in_
    certificate_ : Certificate
        Primal and dual value, gap and violation, recomputed in float64 after training; `parts` has one for each class.
    converged_ : bool
    stop_reason_ : str
    solver_ : str
        The method, and why it was chosen.
    n_iter_ : int
        Newton steps, or passes over the data; the most of all classes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import LinearSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LinearSVC().fit(X, y)
    >>> model.coef_.shape
    (3, 4)
    >>> model.certificate_.relative_gap < 1e-6
    True
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: str = "squared_hinge",
        bias: Any = True,
        intercept_scaling: float = 1.0,
        tol: float | None = 1e-4,
        gap_tol: float | None = None,
        solver: str = "auto",
        multi_class: str = "ovr",
        class_weight: Any = None,
        shrinking: bool = True,
        verbose: bool = False,
        max_iter: int = -1,
        max_time: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.C = C
        self.loss = loss
        self.bias = bias
        self.intercept_scaling = intercept_scaling
        self.tol = tol
        self.gap_tol = gap_tol
        self.solver = solver
        self.multi_class = multi_class
        self.class_weight = class_weight
        self.shrinking = shrinking
        self.verbose = verbose
        self.max_iter = max_iter
        self.max_time = max_time
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _target(self, y: Any, weight_of: Any) -> tuple[Any, Any]:
        labels, codes = read_labels(y)
        return codes, (labels, class_weights(self.class_weight, labels, codes, weight_of(len(codes))))

    def _problems(self, merged: Merged, target: Any) -> list[LinearProblem]:
        labels, factor = target
        squared = one_of("loss", self.loss, ("squared_hinge", "hinge")) == "squared_hinge"
        C, bias = positive("C", self.C) * factor[merged.y] * merged.weight, self._bias()
        against = [1] if len(labels) == 2 else range(len(labels))
        return [hinge(np.where(merged.y == k, 1.0, -1.0), C, bias, squared) for k in against]

    def _machines(self, merged: Merged, target: Any, stop: Stop, seed: int, n_threads: int) -> tuple[Floats, Floats]:
        if one_of("multi_class", self.multi_class, ("ovr", "crammer_singer")) == "ovr":
            return super()._machines(merged, target, stop, seed, n_threads)
        B = self._bias()
        if math.inf == B:
            raise ValueError(
                f"bias={self.bias!r}, a free bias, cannot be had with multi_class='crammer_singer'; "
                "use bias='regularized' or bias=False"
            )
        labels, factor = target
        C = positive("C", self.C) * factor[merged.y] * merged.weight
        problem = JointProblem(merged.y, C, len(labels), shared=True, shift=B * B)
        report = Progress(None, True, 1, None, None).begin("") if self.verbose else None
        rows = _rows(merged, merged.X, n_threads)
        found, self.certificate_ = solve_joint_linear(problem, rows, stop, report=report, seed=seed)
        self.n_iter_, self.stop_reason_, self.solver_ = found.steps, found.stop_reason, found.solver
        w, b = found.w, np.asarray(found.b)
        return (w[1:] - w[:1], b[1:] - b[:1]) if len(labels) == 2 else (w, b)

    def _conclude(self, w: Floats, b: Floats, target: Any) -> None:
        self.classes_ = freeze(target[0])
        self.class_weight_ = freeze(target[1])
        self.coef_, self.intercept_ = freeze(w), freeze(b)

    def decision_function(self, X: Any) -> Floats:
        """f(x): one value for two classes, otherwise one for each class."""
        values = self._values(X)
        return values[:, 0] if values.shape[1] == 1 else values

    def predict(self, X: Any) -> np.ndarray:
        """The class of each sample: the second of two where f(x) ≥ 0, or the one with the largest f(x)."""
        values = self._values(X)
        winner = (values[:, 0] >= 0).astype(np.intp) if values.shape[1] == 1 else np.argmax(values, axis=1)
        return np.asarray(self.classes_[winner])


class LinearSVR(RegressorMixin, LinearMachine):  # type: ignore[misc]  # scikit-learn is untyped
    """Linear support vector regression, exact and certified.

    Minimises ½‖w‖² + Σ C_i max(0, |y_i − f(x_i)| − ε), or with the squares of these errors, f(x) = w'x + b. The squared
    loss costs C·Σξ², as in LIBLINEAR and scikit-learn's LinearSVR.

    Parameters
    ----------
    epsilon : float, default=0.0
        Half-width of the tube in which errors cost nothing.
    C : float, default=1.0
        Price of an error. A sample's own C_i is C times its weight.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}, default="epsilon_insensitive"
    bias, intercept_scaling, tol, gap_tol, solver, shrinking, verbose, max_iter, max_time, random_state, n_jobs
        As in LinearSVC.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    intercept_ : array of shape (1,)
    certificate_, converged_, stop_reason_, solver_, n_iter_, n_features_in_, feature_names_in_
        As in LinearSVC.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from mercer import LinearSVR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = LinearSVR(C=100).fit(X, y)
    >>> round(model.score(X, y), 2)
    0.48
    """

    def __init__(
        self,
        *,
        epsilon: float = 0.0,
        C: float = 1.0,
        loss: str = "epsilon_insensitive",
        bias: Any = True,
        intercept_scaling: float = 1.0,
        tol: float | None = 1e-4,
        gap_tol: float | None = None,
        solver: str = "auto",
        shrinking: bool = True,
        verbose: bool = False,
        max_iter: int = -1,
        max_time: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.C = C
        self.loss = loss
        self.bias = bias
        self.intercept_scaling = intercept_scaling
        self.tol = tol
        self.gap_tol = gap_tol
        self.solver = solver
        self.shrinking = shrinking
        self.verbose = verbose
        self.max_iter = max_iter
        self.max_time = max_time
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _target(self, y: Any, weight_of: Any) -> tuple[Any, Any]:
        distinct, codes = np.unique(numbers(y), return_inverse=True)
        return codes, distinct

    def _problems(self, merged: Merged, target: Any) -> list[LinearProblem]:
        choices = ("epsilon_insensitive", "squared_epsilon_insensitive")
        squared = one_of("loss", self.loss, choices) == choices[1]
        epsilon = not_negative("epsilon", self.epsilon, "it is half the width of the tube")
        C = positive("C", self.C) * merged.weight
        return [epsilon_insensitive(target[merged.y], C, epsilon, self._bias(), squared)]

    def _conclude(self, w: Floats, b: Floats, target: Any) -> None:
        self.coef_, self.intercept_ = freeze(w[0]), freeze(b)

    def predict(self, X: Any) -> Floats:
        """f(x) of each sample."""
        return np.asarray(self._values(X)[:, 0])
