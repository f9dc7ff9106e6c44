"""Regularized least squares that chooses λ by exact leave-one-out: one decomposition tells what every λ would give."""

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
from mercer.estimators.fitting.pipeline.machine import kernel_of
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
from mercer.solvers.least_squares.spectrum import Judge, PathValues, SpectralFit, best_of, solve_path, spectrum_of

if TYPE_CHECKING:
    from mercer.inspection.displays import PathDisplay


@dataclass(frozen=True, eq=False)
class PathSource:
    """The parts a path makes machines of: one that is not fitted, its parameters at this point of the grid, and the
    training samples, where those are kept.

    `member`, `y` and `weight` are of each training row the sample in X that it is, its target, and its weight with that
    of its class; `names` are those of the features.
    """

    machine: Any
    params: dict[str, Any]
    X: Any
    member: Indices
    y: Any
    weight: Floats
    names: Any = None

    def of_every(self, lams: Floats, X: Data) -> Floats:
        """f of each λ at new samples, from one decomposition of K and one pass over its values at these samples."""
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
        """The machine at one λ, not fitted, for the samples that are kept."""
        model = clone(self.machine).set_params(lam=lam, **self.params)
        if "class_weight" in model.get_params(deep=False):  # which the weights hold already
            model.set_params(class_weight=None)
        return model

    def fitted(self, lam: float, X: Data | None, y: ArrayLike | None, sample_weight: Weights) -> Any:
        """The machine at one λ, on these samples, or on those that are kept."""
        if X is not None:
            return clone(self.machine).set_params(lam=lam, **self.params).fit(X, y, sample_weight=sample_weight)
        model = self._machine(lam).fit(take(self.X, self.member), self.y, sample_weight=self.weight)
        if self.names is not None:
            model.feature_names_in_ = self.names
        return model


@dataclass(frozen=True, eq=False, repr=False)
class RidgePath:
    """Least squares for a whole grid of λ, from one decomposition.

    Attributes
    ----------
    lams : array of shape (n_lams,)
        The values of λ.
    loo_errors, gcv, norms : arrays of shape (n_lams, n_outputs)
        Mean squared leave-one-out residual, generalised cross-validation, and ‖f‖ in the kernel's space.
    dof : array of shape (n_lams,)
        Effective degrees of freedom: the trace of the matrix that maps y to f.
    scores : array of shape (n_lams,)
        What was minimised to choose λ.
    criterion : str
        "loo", "gcv" or, for classifiers, "mistakes".
    params : dict
        The kernel's parameters, where a grid of them was searched.
    """

    lams: Floats
    loo_errors: Floats
    gcv: Floats
    norms: Floats
    dof: Floats
    scores: Floats
    criterion: str
    params: dict[str, Any] = field(default_factory=dict)
    _source: PathSource | None = field(default=None, repr=False)  # None of a path from a file

    def __post_init__(self) -> None:
        for part in fields(self):
            freeze(getattr(self, part.name))

    def __repr__(self) -> str:
        ends = f"{self.lams.min():.3g} to {self.lams.max():.3g}"
        return f"RidgePath({len(self.lams)} λ from {ends}, best {self.lam:.3g} by {self.criterion!r})"

    @property
    def best(self) -> int:
        """The index of the chosen λ; of equally good ones the largest, which gives the simplest f."""
        return best_of(self.scores)

    @property
    def lam(self) -> float:
        """The chosen λ."""
        return float(self.lams[self.best])

    def at(self, lam: float, X: Data | None = None, y: ArrayLike | None = None, sample_weight: Weights = None) -> Any:
        """The machine at any λ, fitted and certified: `dual_coef_`, `coef_` and `intercept_` are its coefficients.

        Parameters
        ----------
        lam : float
            λ, on the grid or not.
        X : array, CSR matrix or list, optional
            The training samples. A machine with a linear kernel keeps none, nor does a file; the path of any other
            machine knows them.
        y : array, optional
            Their targets, if X is given.
        sample_weight : array, optional
            Their weights, if X is given.

        Returns
        -------
        RLSRegressor or RLSClassifier
        """
        if self._source is None:
            raise ValueError(
                "this path comes from a file, which says nothing of the training samples: fit RLSRegressor(lam=...) or "
                "RLSClassifier(lam=...) on them"
            )
        if X is None and self._source.X is None:
            raise ValueError(
                "a machine with a linear or a precomputed kernel keeps no training samples: call at(lam, X, y)"
            )
        return self._source.fitted(lam, X, y, sample_weight)

    def predict(self, X: Data) -> Floats:
        """Predict new samples with the machine of each λ, from one more decomposition: hold-out errors of the path.

        For a regressor, or a classifier's f: `np.argmin(((path.predict(X) - y) ** 2).mean(axis=1))` is the best λ on
        held-out samples with one output.

        Parameters
        ----------
        X : array, CSR matrix or list
            Samples as in `fit`; not for machines with a linear or precomputed kernel, which keep no training samples.

        Returns
        -------
        array of shape (n_lams, n_samples), or (n_lams, n_samples, n_outputs)
        """
        if self._source is None or self._source.X is None:
            raise ValueError(
                "a path from a file, or with a linear or a precomputed kernel, keeps no training samples: predict with "
                "at(lam, X, y) for each λ"
            )
        return self._source.of_every(self.lams, X)

    def plot(self, *axes: Any, **options: Any) -> PathDisplay:
        """Errors, degrees of freedom and norms over λ; see `mercer.displays.PathDisplay.from_ridge_path`."""
        from mercer.inspection.displays import PathDisplay

        return PathDisplay.from_ridge_path(self, *axes, **options)


_GRID = ("kernel", "degree", "gamma", "coef0")


@dataclass(eq=False, repr=False)
class _ChoosesLam(LeastSquaresMachine):
    """Least squares for all λ and, where there is a grid, all kernels, of which the best is kept."""

    _FITTED = fitted(
        path_=Record(RidgePath),
        paths_=Record(RidgePath, several=True),
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
        self._given_lams()

    def _kernel(self) -> Kernel:
        """The kernel by which samples are read and merged: of a grid, one that allows no more than the others."""
        return min(self._kernels(), key=lambda kernel: kernel.mergeable)

    def _kernels(self) -> list[Kernel]:
        kernels = [kernel_of(vars(self) | params) for params in self._points()]
        if len({kernel.accepts for kernel in kernels}) > 1:
            raise ValueError(f"the kernels in grid={self.grid!r} take different kinds of samples; search them apart")
        return kernels

    def _points(self) -> list[dict[str, Any]]:
        """The kernel parameters of each point of the grid."""
        if self.grid is None:
            return [{}]
        found = list(ParameterGrid(self.grid))
        names = {name for params in found for name in params}
        wrong = sorted(name for name in names if name not in _GRID and not name.startswith("kernel__"))
        if wrong or not found:
            raise ValueError(
                f"grid may hold kernel, degree, gamma, coef0 and kernel__ parameters, each with values to try; "
                f"it holds {wrong or 'nothing'}"
            )
        return found

    def _tasks(self, fit: Fit) -> Tasks[LeastSquares]:
        problem = self._problem(fit)
        if len(problem.weight) == 1 and problem.mass <= 1:
            raise ValueError("leaving one out needs at least 2 samples with positive weight, but n_samples = 1")
        solve = partial(solve_path, lams=self._given_lams(), score=self._scores, judge=self._judge(problem))
        if self.grid is None:
            return Tasks([Task("", problem, solve)])
        bound = [k if fit.precomputed else k.bind(fit.merged.X, fit.merged.weight) for k in self._kernels()]
        return Tasks(Task(repr(kernel), problem, solve, place=partial(fit.gram_under, kernel)) for kernel in bound)

    def _side_by_side(self, fit: Fit, n_tasks: int) -> int:
        return 1  # a decomposition takes all the memory there is

    def _record_end(self, solved: Solutions[LeastSquares]) -> None:
        super()._record_end(Solutions.of([_best(solved)]))

    def _conclude(self, fit: Fit, solved: Solutions[LeastSquares]) -> None:
        own, best = fit, _best(solved)
        if best.task.place is not None:
            own = replace(fit, kernel=cast(Gram, best.task.place(fit.limits.n_threads)).kernel)
        self.lam_ = float(best.solution.lams[best_of(best.solution.scores)])
        self.loo_residuals_ = freeze(self._own_residuals(fit, best.solution.loo))
        self._conclude_rows(own, best.solution.best, self.lam_)
        # The samples stay at hand only where the machine is made of them anyway.
        samples = self._expansion_.vectors if best.solution.best.C is not None else None
        model = self._with_one_lam()
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
                    fit.merged.own_weight,
                    getattr(self, "feature_names_in_", None),
                ),
            )
            for params, s in zip(self._points(), solved, strict=True)
        )
        self.path_ = self.paths_[list(solved).index(best)]
        self.best_params_ = self.path_.params

    def _with_one_lam(self) -> Any:
        """The machine of one λ with these parameters, of which none is shared with the caller."""
        own = vars(self)
        model = self._one_lam()
        return clone(model.set_params(**{name: own[name] for name in model.get_params(deep=False) if name in own}))

    # --- λ -----------------------------------------------------------------------------------------------------------

    def _given_lams(self) -> int | Floats:
        """The values of λ, or their number."""
        if self.lams is None:
            return 50
        if isinstance(self.lams, int | np.integer) and not isinstance(self.lams, bool):
            if self.lams < 1:
                raise ValueError(f"lams={self.lams!r} must be a positive number of values, or the values themselves")
            return int(self.lams)
        lams = np.atleast_1d(np.asarray(self.lams))
        if lams.ndim != 1 or len(lams) == 0:
            raise ValueError(f"lams has shape {lams.shape}; it must be a list of numbers, their count, or None")
        checked = [checked_lam("lams", value, "RLSRegressor(lam=0) gives the limit") for value in lams.tolist()]
        return np.sort(np.array(checked))

    def _judge(self, problem: LeastSquares) -> Judge | None:
        """A function of the leave-one-out residuals for the score, if it needs one."""
        return None

    def _scores(self, problem: LeastSquares, values: PathValues) -> Floats:
        """The score of each λ, of which the least is best."""
        return np.asarray((values.loo_errors if self.criterion == "loo" else values.gcv).sum(axis=1))


def _best(solved: Solutions[LeastSquares]) -> Solved[LeastSquares]:
    """The point of the grid with the least score; the first of several."""
    return min(solved, key=lambda s: float(s.solution.scores.min()))


@shared_docs
class RLSRegressorCV(LeastSquaresRegressor, _ChoosesLam):
    """Regularized least squares with λ chosen by exact leave-one-out or generalised cross-validation.

    One decomposition of K (one SVD of X for a linear kernel with fewer features than samples) gives the
    coefficients, the leave-one-out residuals and GCV of every λ and output. A sample of weight w counts as w samples of
    weight 1, each of which is left out in turn.

    Parameters
    ----------
    %(ridge grid)s
    criterion : {"loo", "gcv"}, default="loo"
        What to minimise, summed over the outputs.
    %(ridge path)s

    Attributes
    ----------
    lam_ : float
        The chosen λ; of equally good ones the largest.
    best_params_ : dict
        The chosen point of the grid.
    path_ : RidgePath
        For every λ of ``lams``: ``loo_errors`` (mean squared leave-one-out residual), ``gcv`` (generalised
        cross-validation), ``norms`` (‖f‖), ``dof`` (effective degrees of freedom) and ``scores``, which ``criterion``
        ("loo", "gcv" or "mistakes") minimises. ``best`` and ``lam`` are the chosen index and λ, ``params`` the point of
        the grid; ``at(lam)`` is the machine of any λ, ``predict(X)`` has the values of all of them, and ``plot()``
        draws the path. `paths_` has one for each point of the grid.
    loo_residuals_ : array of shape (n_samples,) or (n_samples, n_outputs)
        y minus the prediction of the fit without one unit of the sample's weight, at the chosen λ; 0 for weight 0.
    certificate_, dual_coef_, coef_, intercept_, solver_, factor_precision_, rank_, residual_, kernel_, converged_,
    stop_reason_, n_iter_, paths_, n_features_in_, feature_names_in_
        As in RLSRegressor, at the chosen λ.

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
class RLSClassifierCV(LeastSquaresClassifier, _ChoosesLam):
    """Regularized least squares classification with λ chosen by exact leave-one-out.

    Parameters
    ----------
    %(ridge grid)s
    criterion : {"mistakes", "loo", "gcv"}, default="mistakes"
        "mistakes" counts the samples that are misclassified when left out, by weight, and breaks ties by the squared
        leave-one-out error.
    %(class_weight)s
    %(ridge path)s

    Attributes
    ----------
    classes_, class_weight_ : array
    lam_, best_params_, path_, paths_, loo_residuals_
        As in RLSRegressorCV, with targets ±1.
    certificate_, dual_coef_, coef_, intercept_, solver_, factor_precision_, rank_, residual_, kernel_, converged_,
    stop_reason_, n_iter_, n_features_in_, feature_names_in_
        As in RLSClassifier, at the chosen λ.

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

    def _judge(self, problem: LeastSquares) -> Judge:
        def mistakes(residual: Floats) -> Floats:
            left_out = problem.Y[:, None, :] - residual
            if problem.n_outputs == 1:
                wrong = (left_out[:, :, 0] >= 0) != (problem.Y > 0)
            else:
                wrong = np.argmax(left_out, axis=2) != np.argmax(problem.Y, axis=1)[:, None]
            return np.asarray(problem.weight @ wrong / problem.mass)

        return mistakes

    def _scores(self, problem: LeastSquares, values: PathValues) -> Floats:
        if self.criterion != "mistakes":
            return super()._scores(problem, values)
        # Between equally many mistakes the squared error decides, scaled to less than half of the smallest mistake.
        squared = values.loo_errors.sum(axis=1)
        share = 0.49 * problem.weight.min() / problem.mass
        return np.asarray(values.judged + share * squared / max(squared.max(), 1e-300))
