"""Novelty detection: the one-class support vector machine and support vector data description."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import OutlierMixin

from mercer.estimators.fitting.families.dual_machine import DualMachine, check_weight_range
from mercer.estimators.fitting.pipeline.fit import Fit, read_samples
from mercer.estimators.fitting.pipeline.state import Array, Number, fitted
from mercer.estimators.fitting.pipeline.task import Solutions, Task, Tasks
from mercer.estimators.fitting.reports.coefficients import Bounds
from mercer.problems.dual_problem import DualProblem
from mercer.problems.novelty import data_description, one_class
from mercer.runtime.available import available_if
from mercer.runtime.parameters import share
from mercer.runtime.shared_docs import shared_docs
from mercer.samples.arrays import Data, Floats, Weights, inner
from mercer.samples.engine import like_input
from mercer.solvers.dual.one_class import solve_one_class


def _is_calibrated(machine: Any) -> bool:
    """Return True if the machine is calibrated; raise AttributeError otherwise."""
    if not hasattr(machine, "prob_density_marks_"):
        raise AttributeError(
            f"{type(machine).__name__} estimates no probabilities; .calibrate(X) returns one that does"
        )
    return True


@shared_docs
@dataclass(eq=False, repr=False)
class NoveltyDetector(OutlierMixin, DualMachine):  # type: ignore[misc]  # scikit-learn is untyped
    """Base class of novelty detectors; y is ignored, present for API consistency."""

    _FITTED = fitted(
        intercept_=Array(1, required=True),
        offset_=Number(required=True),
    )

    nu: float = 0.5

    @shared_docs
    def fit(self, X: Data, y: ArrayLike | None = None, sample_weight: Weights = None) -> Any:
        """Fit the machine to samples.

        Parameters
        ----------
        %(samples alone)s
        """
        return super().fit(X, y, sample_weight)

    def _task(self, problem: DualProblem) -> Task[DualProblem]:
        """Return the task of the machine's only problem."""
        solve = self._nested_solver(solve_one_class)
        return Task("", problem, solve, np.arange(problem.n_variables), outer_solver=solve_one_class)

    def _check_parameters(self) -> None:
        share("nu", self.nu, "it bounds the fraction of outliers", whole=True)

    @like_input
    def predict(self, X: Data) -> np.ndarray:
        """Predict whether samples are inliers or outliers.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            Samples, as in `fit`. For a precomputed kernel, the kernel values with the training samples.

        Returns
        -------
        array of shape (n_samples,)
            +1 for inliers, −1 for outliers.
        """
        return np.where(self.decision_function(X) >= 0, 1, -1).astype(np.intp)

    def decision_function(self, X: Data) -> Floats:
        raise NotImplementedError

    @like_input
    def score_samples(self, X: Data) -> Floats:
        """Return the raw scores of samples, decision_function + offset_.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            Samples, as in `fit`. For a precomputed kernel, the kernel values with the training samples.

        Returns
        -------
        array of shape (n_samples,)
            Scores; outliers are below `offset_`.
        """
        return np.asarray(self.decision_function(X) + self.offset_)

    def calibrate(self, X: Data, *, cv: Any = 5, sample_weight: Weights = None) -> Self:
        """Return a copy of this machine with `predict_proba`, which ranks samples in steps of a tenth.

        Ten thresholds divide the negative decision values into five groups of equal size, and the nonnegative ones
        likewise. They are LIBSVM's `prob_density_marks_`, which its model files contain.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Training samples, or other samples with cv="held-out".
        cv : int, splitter or "held-out", default=5
            Cross-validation that holds out every sample once. With "held-out" the machine is not fitted again and its
            own decision values are used; LIBSVM does so with the training samples.
        sample_weight : array of shape (n_samples,), optional
            Sample weights for the machines of the folds and for the thresholds. A weight of k is equivalent to k
            samples; a sample of weight 0 is ignored.

        Returns
        -------
        estimator of the same class
            Calibrated copy.
        """
        from mercer.calibration.novelty import calibrate_novelty

        calibrated: Self = calibrate_novelty(self, X, cv, sample_weight)
        return calibrated

    @available_if(_is_calibrated)
    @like_input
    def predict_proba(self, X: Data) -> Floats:
        """Estimate the probabilities that a sample is an outlier (−1) and an inlier (+1).

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            Samples, as in `fit`.

        Returns
        -------
        array of shape (n_samples, 2)
            Probabilities of −1 and of +1.
        """
        from mercer.calibration.novelty import novelty_probabilities

        return novelty_probabilities(self, X)


@shared_docs
class OneClassSVM(NoveltyDetector):
    """One-class support vector machine for novelty detection, with a certificate of optimality.

    Separates the data, except for a fraction ν, from the origin of feature space with the largest margin: minimises
    ½‖w‖² + Σ w_i max(0, −f(x_i)) − νW·offset with f(x) = ⟨w, φ(x)⟩ − offset and W = Σ w_i, by solving the dual problem.
    If the offset is not zero, at most the fraction ν of the weight lies outside, and at least that fraction belongs to
    support vectors. It is a drop-in replacement for scikit-learn's OneClassSVM with the same scale: 0 ≤ α_i ≤ w_i and
    Σα = νW.

    Parameters
    ----------
    nu : float, default=0.5
        Upper bound on the fraction of outliers and lower bound on the fraction of support vectors, in the interval
        (0, 1].
    %(kernel)s
    %(dual parameters)s

    Attributes
    ----------
    offset_ : float
        Offset of the decision function: decision_function = score_samples − offset_.
    %(dual attributes)s

    See Also
    --------
    SVDD : Novelty detection by the smallest enclosing ball.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import OneClassSVM
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = OneClassSVM(nu=0.1).fit(X)
    >>> model.predict([[0.0, 0.0], [9.0, 9.0]])
    array([ 1, -1])
    """

    def _tasks(self, fit: Fit) -> Tasks[DualProblem]:
        """Return the problems to solve, with their solvers."""
        weight = fit.merged.weight
        problem = one_class(weight, float(self.nu))
        check_weight_range(weight)
        return Tasks([self._task(problem)])

    def _conclude(self, fit: Fit, solved: Solutions[DualProblem]) -> None:
        """Set the fitted attributes that only this kind of machine has."""
        (b,) = solved[0].certificate.b
        self._conclude_outputs(fit, solved, lambda: Bounds(1.0, 0.0), np.array([b]))
        self.n_iter_ = solved[0].solution.steps
        self.offset_ = -b

    @like_input
    def decision_function(self, X: Data) -> Floats:
        """Return the decision function f(x) of samples.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            Samples, as in `fit`. For a precomputed kernel, the kernel values with the training samples.

        Returns
        -------
        array of shape (n_samples,)
            Decision values: positive for inliers, negative for outliers.
        """
        return np.asarray(self._decision(X)[:, 0])


@shared_docs
class SVDD(NoveltyDetector):
    """Support vector data description: the smallest ball in feature space around the data except for a fraction ν.

    Minimises ½R² + ½ Σ w_i ξ_i / (νW) subject to ‖φ(x_i) − a‖² ≤ R² + ξ_i, ξ_i ≥ 0, by solving the dual problem. The
    objective is half of that of Tax and Duin (2004), with C = 1/(νW), so that `certificate_` bounds R²/2 if there is no
    slack. For a kernel with constant k(x, x), such as the Gaussian, the decisions are those of `OneClassSVM`. For
    ν ≤ 1/n the ball is the smallest enclosing ball.

    Parameters
    ----------
    nu : float, default=0.5
        Upper bound on the fraction of samples outside the ball, in the interval (0, 1].
    %(kernel)s
    %(dual parameters)s

    Attributes
    ----------
    radius_ : float
        Radius R of the ball. The coefficients of its centre a = Σ β_i φ(x_i) are `dual_coef_`.
    offset_ : float
        Offset −R² of the decision function: decision_function = score_samples − offset_, where score_samples is
        −‖φ(x) − a‖².
    diagonal_ : float or None
        Value of k(x, x) if it is the same for all training samples; with a precomputed kernel it is used for new
        samples too.
    %(dual attributes)s

    See Also
    --------
    OneClassSVM : Novelty detection by separation from the origin.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVDD
    >>> X = np.array([[-1.0], [0.0], [3.0]])
    >>> model = SVDD(nu=0.1, kernel="linear", tol=1e-8).fit(X)
    >>> round(model.radius_, 6)
    2.0
    """

    _FITTED = fitted(
        radius_=Number(required=True),
        diagonal_=Number(or_none=True, required=True),
    )

    # R² − ‖φ(x) − a‖² = 2(Σβ_j k(x_j, x) + b) − k(x, x)
    _DECISION_FACTOR = 2.0
    _SUBTRACTS_DIAGONAL = True

    def _tasks(self, fit: Fit) -> Tasks[DualProblem]:
        """Return the problems to solve, with their solvers."""
        weight = fit.merged.weight
        problem = data_description(fit.diagonal, weight, float(self.nu))
        return Tasks([self._task(problem)])

    def _conclude(self, fit: Fit, solved: Solutions[DualProblem]) -> None:
        """Set the fitted attributes: the centre, the radius and the offset."""
        certificate, p = solved[0].certificate, solved[0].task.problem.p
        (b,) = certificate.b
        bound = 1.0 / (float(self.nu) * float(fit.merged.weight.sum()))
        self._conclude_outputs(fit, solved, lambda: Bounds(bound, 0.0), np.array([b]))
        self.n_iter_ = solved[0].solution.steps
        energy = 2.0 * (inner(p, solved[0].solution.beta) - certificate.dual)  # β'Kβ
        radius_square = max(0.0, 2.0 * b + energy)
        self.radius_ = float(np.sqrt(radius_square))
        self.offset_ = -radius_square
        diagonal = 2.0 * p
        self.diagonal_ = float(diagonal[0]) if np.ptp(diagonal) <= 1e-12 * abs(diagonal[0]) else None

    @like_input
    def decision_function(self, X: Data) -> Floats:
        """Return the decision function R² − ‖φ(x) − a‖² of samples.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            Samples, as in `fit`. For a precomputed kernel, the kernel values with the training samples.

        Returns
        -------
        array of shape (n_samples,)
            Decision values: positive inside the ball, negative outside.
        """
        return np.asarray(self._DECISION_FACTOR * self._decision(X)[:, 0] - self._diagonal_of(X))

    def _diagonal_of(self, X: Data) -> Any:
        """Return k(x, x) of each sample; raise ValueError if a precomputed kernel does not determine it."""
        kernel = self._expansion_.kernel
        if kernel.accepts != "gram":
            return kernel.diag(read_samples(self, X, kernel, reset=False))
        if self.diagonal_ is None:
            raise ValueError(
                "the distance from the centre needs k(x, x) of each new sample, which a precomputed matrix of kernel "
                "values with the training samples does not hold; use a kernel with constant k(x, x), such as a "
                "normalised one, or give the kernel as an object or a function"
            )
        return self.diagonal_
