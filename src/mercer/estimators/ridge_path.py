"""Kernel ridge estimators that choose λ by exact leave-one-out; one decomposition serves all values of λ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from mercer.estimators.fitting.families.least_squares_machine import (
    LeastSquaresClassifier,
    LeastSquaresMachine,
    LeastSquaresRegressor,
    checked_lam,
)
from mercer.estimators.fitting.pipeline.fit import Fit, read_samples
from mercer.estimators.fitting.pipeline.machine import kernel_of, refuse_kernel_parameters
from mercer.estimators.fitting.pipeline.state import Array, Number, Parameters, Record, fitted
from mercer.estimators.fitting.pipeline.task import Solutions, Solved, Task, Tasks
from mercer.estimators.fitting.reports.coefficients import expansion_of
from mercer.estimators.rls import RLSClassifier, RLSRegressor
from mercer.kernels import Kernel
from mercer.places import Gram
from mercer.problems.least_squares import LeastSquares
from mercer.runtime.parameters import one_of
from mercer.runtime.shared_docs import shared_docs
from mercer.samples.arrays import Data, Floats, Indices, Weights, freeze, take
from mercer.solvers.least_squares.spectrum import (
    PathValues,
    ResidualCriterion,
    SpectralFit,
    best_lam_index,
    solve_path,
    spectrum_of,
)

if TYPE_CHECKING:
    from mercer.inspection.displays import PathDisplay


@dataclass(frozen=True, eq=False)
class PathSource:
    """Everything that a `RidgePath` needs to fit a machine at any λ."""

    machine: Any  # unfitted
    params: dict[str, Any]  # at this point of the grid
    X: Any  # distinct training samples; None if they are not stored
    member: Indices  # index into X for each training row
    y: Any  # target of each training row
    weight: Floats  # weight of each training row, times the weight of its class
    names: Any = None  # names of the features

    def predict_path(self, lams: Floats, X: Data) -> Floats:
        """Return f at new samples for each λ, from one decomposition of K and one pass over the kernel values."""
        machine = self._machine(float(lams[-1]))
        fit = Fit.of(machine, take(self.X, self.member), self.y, self.weight)
        if self.names is not None:
            machine.feature_names_in_ = self.names
        (task,) = machine._tasks(fit)
        problem, gram = task.problem, fit.gram()
        spectral = SpectralFit(problem, spectrum_of(gram, problem))
        C = np.hstack([spectral.coefficients(lam) for lam in lams.tolist()])
        b = np.zeros(C.shape[1])
        if problem.bias:
            b = problem.total @ (np.tile(problem.mean, len(lams)) - gram.products(C)) / problem.mass
        expansion = expansion_of(fit, C, b)
        f = expansion(read_samples(machine, X, expansion.kernel, reset=False), fit.limits.n_threads)
        out = f.reshape(len(f), len(lams), problem.n_outputs).transpose(1, 0, 2)
        return np.ascontiguousarray(out[:, :, 0] if np.ndim(self.y) == 1 and problem.n_outputs == 1 else out)

    def _machine(self, lam: float) -> Any:
        """Return the unfitted machine at one λ, for the stored samples."""
        model = clone(self.machine).set_params(lam=lam, **self.params)
        if "class_weight" in model.get_params(deep=False):  # already included in the sample weights
            model.set_params(class_weight=None)
        return model

    def fit_machine(self, lam: float, X: Data | None, y: ArrayLike | None, sample_weight: Weights) -> Any:
        """Return the machine at one λ, fitted to the given samples or, if X is None, to the stored ones."""
        if X is not None:
            return clone(self.machine).set_params(lam=lam, **self.params).fit(X, y, sample_weight=sample_weight)
        model = self._machine(lam).fit(take(self.X, self.member), self.y, sample_weight=self.weight)
        if self.names is not None:
            model.feature_names_in_ = self.names
        return model


@dataclass(frozen=True, eq=False, repr=False)
class RidgePath:
    """Path of kernel ridge regression over a grid of λ, computed from one decomposition.

    Attributes
    ----------
    lams : array of shape (n_lams,)
        Values of λ.
    loo_errors : array of shape (n_lams, n_outputs)
        Mean squared leave-one-out residuals.
    gcv : array of shape (n_lams, n_outputs)
        Generalised cross-validation scores.
    norms : array of shape (n_lams, n_outputs)
        Norms ‖f‖ in the function space of the kernel.
    dof : array of shape (n_lams,)
        Effective degrees of freedom: the trace of the matrix that maps y to f.
    scores : array of shape (n_lams,)
        Values of the criterion, which is minimised to choose λ.
    criterion : str
        Criterion: "loo", "gcv" or, for classifiers, "mistakes".
    params : dict
        Kernel parameters of this path, if a grid of them was searched.
    """

    lams: Floats
    loo_errors: Floats
    gcv: Floats
    norms: Floats
    dof: Floats
    scores: Floats
    criterion: str
    params: dict[str, Any] = field(default_factory=dict)
    _source: PathSource | None = field(default=None, repr=False)  # None if the path was read from a file

    def __post_init__(self) -> None:
        for part in fields(self):
            freeze(getattr(self, part.name))

    def __repr__(self) -> str:
        ends = f"{self.lams.min():.3g} to {self.lams.max():.3g}"
        return f"RidgePath({len(self.lams)} λ from {ends}, best {self.lam:.3g} by {self.criterion!r})"

    @property
    def best(self) -> int:
        """Index of the chosen λ: the largest of equally good ones, which gives the simplest f."""
        return best_lam_index(self.scores)

    @property
    def lam(self) -> float:
        """Chosen λ."""
        return float(self.lams[self.best])

    def at(self, lam: float, X: Data | None = None, y: ArrayLike | None = None, sample_weight: Weights = None) -> Any:
        """Return the machine at any λ, fitted and certified.

        Parameters
        ----------
        lam : float
            Regularisation strength λ, which need not be on the grid.
        X : array, CSR matrix or list, optional
            Training samples. They are required for a linear or precomputed kernel, whose machines keep no samples; the
            path of any other machine has them.
        y : array, optional
            Target values, if X is given.
        sample_weight : array, optional
            Sample weights, if X is given.

        Returns
        -------
        RLSRegressor or RLSClassifier
            Fitted estimator, with coefficients `dual_coef_`, `coef_` and `intercept_`.
        """
        if self._source is None:
            raise ValueError(
                "this path was read from a file, which does not contain the training samples: fit "
                "RLSRegressor(lam=...) or RLSClassifier(lam=...) on them"
            )
        if X is None and self._source.X is None:
            raise ValueError(
                "a machine with a linear or a precomputed kernel keeps no training samples: call at(lam, X, y)"
            )
        return self._source.fit_machine(lam, X, y, sample_weight)

    def predict(self, X: Data) -> Floats:
        """Predict with the machine of each λ; all of them together take one eigendecomposition of the kernel matrix.

        With one output, `np.argmin(((path.predict(X) - y) ** 2).mean(axis=1))` is the index of the best λ on held-out
        samples. For a classifier the values are those of f.

        Parameters
        ----------
        X : array, CSR matrix or list
            Samples, as in `fit`. Not available for a linear or precomputed kernel, whose machines keep no training
            samples.

        Returns
        -------
        array of shape (n_lams, n_samples), or (n_lams, n_samples, n_outputs)
            Predictions f(x) for each λ.
        """
        if self._source is None or self._source.X is None:
            raise ValueError(
                "a path from a file, or with a linear or a precomputed kernel, keeps no training samples: predict with "
                "at(lam, X, y) for each λ"
            )
        return self._source.predict_path(self.lams, X)

    def plot(self, *axes: Any, **options: Any) -> PathDisplay:
        """Plot errors, degrees of freedom and norms over λ; see `mercer.displays.PathDisplay.from_ridge_path`."""
        from mercer.inspection.displays import PathDisplay

        return PathDisplay.from_ridge_path(self, *axes, **options)


_GRID = ("kernel", "degree", "gamma", "coef0")


@dataclass(eq=False, repr=False)
class _RidgePathSearch(LeastSquaresMachine):
    """Base class of ridge estimators that search over λ and, optionally, over a grid of kernel parameters."""

    _FITTED = fitted(
        path_=Record(RidgePath),
        paths_=Record(RidgePath, is_tuple=True),
        lam_=Number(),
        best_params_=Parameters(),
        loo_residuals_=Array(None, "outputs", flat=True),
    )

    lams: ArrayLike | None = None
    _: KW_ONLY
    grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]] | None = None
    criterion: str = "loo"

    _criteria: ClassVar[tuple[str, ...]] = ("loo", "gcv")
    _one_lam: ClassVar[type[RLSRegressor | RLSClassifier]]

    def _check_parameters(self) -> None:
        super()._check_parameters()
        one_of("criterion", self.criterion, self._criteria)
        self._read_lams()

    def _kernel(self) -> Kernel:
        """Return the kernel that decides how samples are read: one that forbids merging them if the grid has one."""
        return min(self._kernels(), key=lambda kernel: kernel.mergeable)

    def _kernels(self) -> list[Kernel]:
        """Return the kernel of each point of the grid; raise ValueError if they take different kinds of samples."""
        points = self._points()
        for params in points:
            refuse_kernel_parameters(params.get("kernel", self.kernel), params)
        kernels = [kernel_of(vars(self) | params) for params in points]
        if len({kernel.accepts for kernel in kernels}) > 1:
            raise ValueError(
                f"the kernels in grid={self.grid!r} take different kinds of samples; search them separately"
            )
        return kernels

    def _points(self) -> list[dict[str, Any]]:
        """Return the kernel parameters of each point of the grid."""
        if self.grid is None:
            return [{}]
        points = list(ParameterGrid(self.grid))
        names = {name for params in points for name in params}
        unknown = sorted(name for name in names if name not in _GRID and not name.startswith("kernel__"))
        if unknown or not points:
            raise ValueError(
                f"grid may hold kernel, degree, gamma, coef0 and kernel__ parameters, each with values to try; "
                f"it holds {unknown or 'nothing'}"
            )
        return points

    def _tasks(self, fit: Fit) -> Tasks[LeastSquares]:
        """Return the problems to solve, with their solvers."""
        problem = self._problem(fit)
        if len(problem.weight) == 1 and problem.mass <= 1:
            raise ValueError("leaving one out needs at least 2 samples with positive weight, but n_samples = 1")
        solve = partial(
            solve_path, lams=self._read_lams(), score=self._scores, criterion=self._residual_criterion(problem)
        )
        if self.grid is None:
            return Tasks([Task("", problem, solve)])
        kernels = [k if fit.precomputed else k.bind(fit.merged.X, fit.merged.weight) for k in self._kernels()]
        return Tasks(
            Task(repr(kernel), problem, solve, place=partial(fit.gram_of_kernel, kernel)) for kernel in kernels
        )

    def _side_by_side(self, fit: Fit, n_tasks: int) -> int:
        return 1  # a decomposition takes the whole memory budget

    def _record_end(self, solved: Solutions[LeastSquares]) -> None:
        super()._record_end(Solutions.of([_best(solved)]))

    def _conclude(self, fit: Fit, solved: Solutions[LeastSquares]) -> None:
        """Set the fitted attributes at the best point of the grid, and the path of every point."""
        chosen_fit, best = fit, _best(solved)
        if best.task.place is not None:
            chosen_fit = replace(fit, kernel=cast(Gram, best.task.place(fit.limits.n_threads)).kernel)
        self.lam_ = float(best.solution.lams[best_lam_index(best.solution.scores)])
        self.loo_residuals_ = freeze(self._residuals_by_row(fit, best.solution.loo))
        self._conclude_rows(chosen_fit, best.solution.best, self.lam_)
        # The path stores the samples only if the fitted expansion stores them anyway.
        samples = self._expansion_.vectors if best.solution.best.C is not None else None
        model = self._machine_without_lam()
        self.paths_ = tuple(
            RidgePath(
                lams=s.solution.lams,
                loo_errors=s.solution.values.loo_errors,
                gcv=s.solution.values.gcv,
                norms=s.solution.values.norms,
                dof=s.solution.values.dof,
                scores=s.solution.scores,
                criterion=self.criterion,
                params=params,
                _source=PathSource(
                    model,
                    params,
                    samples,
                    fit.merged.member,
                    np.asarray(fit.y)[fit.merged.rows],
                    fit.merged.input_weight,
                    getattr(self, "feature_names_in_", None),
                ),
            )
            for params, s in zip(self._points(), solved, strict=True)
        )
        self.path_ = self.paths_[list(solved).index(best)]
        self.best_params_ = self.path_.params

    def _machine_without_lam(self) -> Any:
        """Return the unfitted estimator of a single λ, at its default, with copies of all other parameters."""
        params = vars(self)
        model = self._one_lam()
        shared_params = {name: params[name] for name in model.get_params(deep=False) if name in params}
        return clone(model.set_params(**shared_params))

    # --- λ -----------------------------------------------------------------------------------------------------------

    def _read_lams(self) -> int | Floats:
        """Return the values of λ from the parameter `lams`, or their number."""
        if self.lams is None:
            return 50
        if isinstance(self.lams, int | np.integer) and not isinstance(self.lams, bool):
            if self.lams < 1:
                raise ValueError(f"lams={self.lams!r} must be a positive number of values, or the values themselves")
            return int(self.lams)
        lams = np.atleast_1d(np.asarray(self.lams))
        if lams.ndim != 1 or len(lams) == 0:
            raise ValueError(f"lams has shape {lams.shape}; it must be a list of numbers, their count, or None")
        checked_lams = [checked_lam("lams", value, "RLSRegressor(lam=0) gives the limit") for value in lams.tolist()]
        return np.sort(np.array(checked_lams))

    def _residual_criterion(self, problem: LeastSquares) -> ResidualCriterion | None:
        """Return the function of the leave-one-out residuals that the criterion needs, or None."""
        return None

    def _scores(self, problem: LeastSquares, values: PathValues) -> Floats:
        """Return the value of the criterion for each λ; the smallest is best."""
        return np.asarray((values.loo_errors if self.criterion == "loo" else values.gcv).sum(axis=1))


def _best(solved: Solutions[LeastSquares]) -> Solved[LeastSquares]:
    """Return the solution at the point of the grid with the smallest criterion; the first of several."""
    return min(solved, key=lambda s: float(s.solution.scores.min()))


@shared_docs
class RLSRegressorCV(LeastSquaresRegressor, _RidgePathSearch):
    """Kernel ridge regression that chooses λ by exact leave-one-out or generalised cross-validation.

    One decomposition of K (one SVD of X for a linear kernel with fewer features than samples) gives the coefficients,
    the leave-one-out residuals and the GCV score for every λ and output. A sample of weight w is equivalent to w
    samples of weight 1, each of which is left out in turn.

    Parameters
    ----------
    %(ridge grid)s
    criterion : {"loo", "gcv"}, default="loo"
        Criterion to minimise, summed over the outputs.
    %(ridge path)s

    Attributes
    ----------
    lam_ : float
        Chosen λ: the largest of equally good ones.
    best_params_ : dict
        Chosen point of the grid.
    path_ : RidgePath
        Path over λ at the chosen point of the grid. For every λ of ``lams`` it has ``loo_errors`` (mean squared
        leave-one-out residual), ``gcv`` (generalised cross-validation), ``norms`` (‖f‖), ``dof`` (effective degrees of
        freedom) and ``scores``, the values of ``criterion`` ("loo", "gcv" or "mistakes"). ``best`` and ``lam`` are the
        chosen index and λ, and ``params`` is the point of the grid; ``at(lam)`` returns the machine at any λ,
        ``predict(X)`` the predictions for all λ, and ``plot()`` draws the path.
    paths_ : tuple of RidgePath
        Paths over λ for all points of the grid.
    loo_residuals_ : array of shape (n_samples,) or (n_samples, n_outputs)
        Difference between y and the prediction of the fit without one unit of the sample's weight, at the chosen λ; 0
        for samples of weight 0.
    certificate_, dual_coef_, coef_, intercept_, solver_, factor_precision_, rank_, residual_, kernel_, converged_,
    stop_reason_, n_iter_, n_features_in_, feature_names_in_
        As in `RLSRegressor`, at the chosen λ.

    See Also
    --------
    RLSRegressor : Kernel ridge regression with a given λ.
    RLSClassifierCV : The corresponding classifier.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RLSRegressorCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(80, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=80)
    >>> model = RLSRegressorCV().fit(X, y)
    >>> bool(0.08 < np.sqrt(model.path_.loo_errors.min()) < 0.13)
    True
    """

    _one_lam = RLSRegressor


@shared_docs
@dataclass(eq=False, repr=False)
class RLSClassifierCV(LeastSquaresClassifier, _RidgePathSearch):
    """Kernel ridge classification that chooses λ by exact leave-one-out.

    Parameters
    ----------
    %(ridge grid)s
    criterion : {"mistakes", "loo", "gcv"}, default="mistakes"
        Criterion to minimise. "mistakes" is the weight of the samples that are misclassified when left out, with ties
        broken by the squared leave-one-out error; the others are as in `RLSRegressorCV`.
    %(class_weight)s
    %(ridge path)s

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Class labels.
    class_weight_ : array of shape (n_classes,)
        Factor on the sample weights for each class.
    lam_, best_params_, path_, paths_, loo_residuals_
        As in `RLSRegressorCV`, with targets ±1.
    certificate_, dual_coef_, coef_, intercept_, solver_, factor_precision_, rank_, residual_, kernel_, converged_,
    stop_reason_, n_iter_, n_features_in_, feature_names_in_
        As in `RLSClassifier`, at the chosen λ.

    See Also
    --------
    RLSClassifier : Kernel ridge classification with a given λ.
    RLSRegressorCV : The corresponding regressor.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import RLSClassifierCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = RLSClassifierCV().fit(X, y)
    >>> bool(model.path_.scores.min() < 0.06)
    True
    """

    _criteria = ("loo", "gcv", "mistakes")
    _one_lam = RLSClassifier

    _: KW_ONLY
    criterion: str = "mistakes"

    def _residual_criterion(self, problem: LeastSquares) -> ResidualCriterion:
        """Return the function that computes the weighted share of misclassified samples from residuals."""

        def mistakes(residual: Floats) -> Floats:
            loo_values = problem.Y[:, None, :] - residual  # f at each sample without the sample, for each λ and output
            if problem.n_outputs == 1:
                is_wrong = (loo_values[:, :, 0] >= 0) != (problem.Y > 0)
            else:
                is_wrong = np.argmax(loo_values, axis=2) != np.argmax(problem.Y, axis=1)[:, None]
            return np.asarray(problem.weight @ is_wrong / problem.mass)

        return mistakes

    def _scores(self, problem: LeastSquares, values: PathValues) -> Floats:
        """Return the criterion for each λ; for mistakes, the squared error breaks ties."""
        if self.criterion != "mistakes":
            return super()._scores(problem, values)
        # Ties are broken by the squared error, scaled to less than half the weight of a single mistake.
        squared = values.loo_errors.sum(axis=1)
        share = 0.49 * problem.weight.min() / problem.mass
        return np.asarray(values.criterion_values + share * squared / max(squared.max(), 1e-300))
