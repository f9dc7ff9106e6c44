"""Regularized least squares that chooses λ by exact leave-one-out: one decomposition answers for every λ."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin, clone
from sklearn.model_selection import ParameterGrid

from mercer.arrays import Floats, freeze
from mercer.certificates.certificate import Certificate
from mercer.data.targets import outputs
from mercer.estimators.ridge_path import RidgePath
from mercer.estimators.rls import EXACT, OneVersusAll, Ready, RegularizedLeastSquares, checked_lam
from mercer.fitting.kinds import Array, Flag, Number, Parameters, Record, fitted
from mercer.fitting.machine import Training
from mercer.parameters import one_of
from mercer.problems.least_squares import LeastSquares
from mercer.solvers.least_squares.eigen import Judge, PathValues
from mercer.solvers.least_squares.path import solve_path
from mercer.solvers.least_squares.solution import LeastSquaresSolution

_COUNT = 50
_GRID = ("kernel", "degree", "gamma", "coef0")


@dataclass(frozen=True, eq=False)
class _Chosen:
    """The best λ of one kernel, with all that is needed of its decomposition."""

    ready: Ready
    solution: LeastSquaresSolution
    certificate: Certificate
    path: RidgePath
    loo: Floats  # rows × outputs, at the best λ

    @property
    def score(self) -> float:
        return float(self.path.scores.min())


class ChoosesLam(RegularizedLeastSquares):
    """The fit that goes through all λ and, where there is a grid, all kernels."""

    FITTED = fitted(
        path_=Record(RidgePath),
        paths_=Record(RidgePath, several=True),
        lam_=Number(),
        best_params_=Parameters(),
        loo_residuals_=Array(None, "outputs", flat=True),
    )

    def _train(self, X: Any, y: Any, sample_weight: Any, training: Training) -> None:
        best: _Chosen | None = None
        paths = []
        for params in self._kernels():
            one = clone(self).set_params(**params)
            ready = one._prepare(X, y, sample_weight)
            found = one._choose(ready, params)
            paths.append(found.path)
            if best is None or found.score < best.score:
                best = found
            for name in ("n_features_in_", "feature_names_in_"):
                if hasattr(one, name):
                    setattr(self, name, getattr(one, name))
        assert best is not None
        self.path_, self.paths_ = best.path, tuple(paths)
        self.lam_, self.best_params_ = best.path.lam, best.path.params
        loo = np.zeros((best.ready.n_rows, best.loo.shape[1]))
        loo[best.ready.merged.rows] = best.loo
        self.loo_residuals_ = freeze(loo)
        self._adopt(best.ready, best.solution, best.certificate)

    def _kernels(self) -> list[dict[str, Any]]:
        if self.grid is None:
            return [{}]
        found = list(ParameterGrid(self.grid))
        wrong = sorted({name for params in found for name in params if name.partition("__")[0] not in _GRID})
        if wrong or not found:
            raise ValueError(
                f"grid may hold kernel, degree, gamma, coef0 and kernel__ parameters, each with values to try; "
                f"it holds {wrong or 'nothing'}"
            )
        return found

    def _choose(self, ready: Ready, params: dict[str, Any]) -> _Chosen:
        problem = ready.problem
        if len(problem.weight) == 1 and problem.mass <= 1:
            raise ValueError("leaving one out needs at least 2 samples with positive weight, but n_samples = 1")
        found, certificate = solve_path(
            problem, ready.gram, EXACT, lams=self._given_lams(), score=self._scores, judge=self._judge(problem)
        )
        v = found.values
        path = RidgePath(found.lams, v.loo_errors, v.gcv, v.norms, v.dof, found.scores, self.criterion, params)
        return _Chosen(ready, found.best, certificate, path, found.loo)

    def _given_lams(self) -> int | Floats:
        """How many λ are wanted, or which."""
        if self.lams is None:
            return _COUNT
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
        """What else to make of the leave-one-out residuals."""
        return None

    def _scores(self, problem: LeastSquares, values: PathValues) -> Floats:
        """What is minimised over λ."""
        return np.asarray((values.loo_errors if self.criterion == "loo" else values.gcv).sum(axis=1))

    def _lam(self) -> float:
        return float(self.lam_) if hasattr(self, "lam_") else math.nan  # it is chosen last

    def _check_parameters(self) -> None:
        if not isinstance(self.bias, bool | np.bool_):
            raise TypeError(f"bias={self.bias!r} must be True or False")
        one_of("criterion", self.criterion, ("loo", "gcv", *self._more_criteria))
        self._given_lams()

    _more_criteria: tuple[str, ...] = ()


class RLSRegressorCV(MultiOutputMixin, RegressorMixin, ChoosesLam):  # type: ignore[misc]  # untyped
    """Regularized least squares with λ chosen by exact leave-one-out or generalised cross-validation.

    One eigendecomposition of K (one SVD of X for a linear kernel with fewer features than samples) gives the
    coefficients, the leave-one-out residuals and GCV of every λ and output. A sample of weight w counts as w samples of
    weight 1, each of which is left out in turn.

    Parameters
    ----------
    lams : array, int or None, default=None
        The values of λ to try, or how many; None means 50. A number of values is spread over the range of K's
        eigenvalues.
    kernel, degree, gamma, coef0, bias, cache_size, verbose, n_jobs
        As in RLSRegressor.
    grid : dict or list of dicts, optional
        Kernel parameters to try as well, such as {"gamma": [0.1, 1.0]} or {"kernel": [...]}; each point of the grid
        costs one decomposition.
    criterion : {"loo", "gcv"}, default="loo"
        What to minimise, summed over the outputs.

    Attributes
    ----------
    lam_ : float
        The chosen λ; of equally good ones the largest.
    best_params_ : dict
        The chosen point of the grid.
    path_ : RidgePath
        Errors, norms and degrees of freedom for every λ, with `plot()`; `paths_` has one for each point of the grid.
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

    FITTED = fitted(_one_output_=Flag(required=True))

    def __init__(
        self,
        lams: Any = None,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        bias: bool = True,
        grid: Any = None,
        criterion: str = "loo",
        cache_size: float = 1000,
        verbose: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.lams = lams
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.bias = bias
        self.grid = grid
        self.criterion = criterion
        self.cache_size = cache_size
        self.verbose = verbose
        self.n_jobs = n_jobs

    def _outputs(self, y: Any, labels: Any = None) -> tuple[Floats, Any]:
        return outputs(y)

    def _remember(self, target: Any) -> None:
        self._one_output_ = bool(target)
        if target:
            self.dual_coef_ = freeze(self.dual_coef_[:, 0])
            self.loo_residuals_ = freeze(self.loo_residuals_[:, 0])

    def _one_row(self) -> bool:
        return bool(self._one_output_)

    def predict(self, X: Any) -> Floats:
        """f(x) for each sample, one column per output if there were several."""
        values = self._decision(X)
        return values[:, 0] if self._one_output_ else values


class RLSClassifierCV(OneVersusAll, ChoosesLam):
    """Regularized least squares classification with λ chosen by exact leave-one-out.

    Parameters
    ----------
    lams, kernel, degree, gamma, coef0, bias, grid, cache_size, verbose, n_jobs
        As in RLSRegressorCV.
    criterion : {"mistakes", "loo", "gcv"}, default="mistakes"
        "mistakes" counts the samples that are misclassified when left out, by weight, and breaks ties by the squared
        leave-one-out error.
    class_weight : dict or "balanced", optional

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

    _more_criteria = ("mistakes",)

    def __init__(
        self,
        lams: Any = None,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        bias: bool = True,
        class_weight: Any = None,
        grid: Any = None,
        criterion: str = "mistakes",
        cache_size: float = 1000,
        verbose: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.lams = lams
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.bias = bias
        self.class_weight = class_weight
        self.grid = grid
        self.criterion = criterion
        self.cache_size = cache_size
        self.verbose = verbose
        self.n_jobs = n_jobs

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
