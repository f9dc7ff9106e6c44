"""Novelty detection: the one-class machine and the smallest ball."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import OutlierMixin

from mercer.estimators.fitting.families.dual_machine import DualMachine, expect_squares
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


def _has_marks(machine: Any) -> bool:
    if not hasattr(machine, "prob_density_marks_"):
        raise AttributeError(f"{type(machine).__name__} estimates no probabilities; .calibrate(X) learns them")
    return True


@shared_docs
@dataclass(eq=False, repr=False)
class NoveltyDetector(OutlierMixin, DualMachine):  # type: ignore[misc]  # scikit-learn is untyped
    """A machine without targets: y is accepted for consistency and ignored."""

    _FITTED = fitted(
        intercept_=Array(1, required=True),
        offset_=Number(required=True),
    )

    nu: float = 0.5

    @shared_docs
    def fit(self, X: Data, y: ArrayLike | None = None, sample_weight: Weights = None) -> Any:
        """Train on samples X.

        Parameters
        ----------
        %(samples alone)s
        """
        return super().fit(X, y, sample_weight)

    def _task(self, problem: DualProblem) -> Task[DualProblem]:
        solve = self._solver_around(solve_one_class)
        return Task("", problem, solve, np.arange(problem.n_variables), around=solve_one_class)

    def _check_parameters(self) -> None:
        share("nu", self.nu, "it is the largest share of samples outside", whole=True)

    @like_input
    def predict(self, X: Data) -> np.ndarray:
        """+1 for a sample like those trained on, −1 for a novelty.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            As in `fit`; of a precomputed kernel, its values between these and the training samples.
        """
        return np.where(self.decision_function(X) >= 0, 1, -1).astype(np.intp)

    def decision_function(self, X: Data) -> Floats:
        raise NotImplementedError

    @like_input
    def score_samples(self, X: Data) -> Floats:
        """The score that is compared with `offset_`: decision_function + offset_.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            As in `fit`; of a precomputed kernel, its values between these and the training samples.
        """
        return np.asarray(self.decision_function(X) + self.offset_)

    def calibrate(self, X: Data, *, cv: Any = 5, sample_weight: Weights = None) -> Self:
        """A copy of this machine with `predict_proba`: how normal a sample is, as a rank in steps of a tenth.

        Ten marks divide the decision values of samples below 0, and those from 0 on, into five groups of equal size
        each. They are `prob_density_marks_`, LIBSVM's, and stand in its model files.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            The training samples, or others with cv="held-out".
        cv : int, splitter or "held-out", default=5
            Folds that leave every sample out once. "held-out": the machine is asked itself. LIBSVM does that with the
            training samples.
        sample_weight : array of shape (n_samples,), optional
            For the folds' machines and for the marks. A weight of k counts as k samples; a sample of weight 0 counts
            nowhere.

        Returns
        -------
        a machine of the same class
        """
        from mercer.calibration.novelty import calibrate_novelty

        calibrated: Self = calibrate_novelty(self, X, cv, sample_weight)
        return calibrated

    @available_if(_has_marks)
    @like_input
    def predict_proba(self, X: Data) -> Floats:
        """Estimate the probability that a sample is an outlier, −1, and that it is like those trained on, +1.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            As in `fit`.
        """
        from mercer.calibration.novelty import novelty_probabilities

        return novelty_probabilities(self, X)


@shared_docs
class OneClassSVM(NoveltyDetector):
    """The one-class support vector machine, exact and certified.

    Separates the data from the origin in feature space with the largest margin, a share ν of them excepted: minimises
    ½‖w‖² + Σ w_i max(0, −f(x_i)) − νW·offset with f(x) = ⟨w, φ(x)⟩ − offset and W = Σ w_i, through its dual. Where
    the offset is not zero, at most the share ν of the weight lies outside and at least that share are support
    vectors. A drop-in for scikit-learn's OneClassSVM, with its scale: 0 ≤ α_i ≤ w_i and Σα = νW.

    Parameters
    ----------
    nu : float, default=0.5
        Above 0 and at most 1.
    %(kernel)s
    %(dual parameters)s

    Attributes
    ----------
    offset_ : float
        decision_function = score_samples − offset_.
    %(dual attributes)s

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
        weight = fit.merged.weight
        problem = one_class(weight, float(self.nu))
        expect_squares(weight)
        return Tasks([self._task(problem)])

    def _conclude(self, fit: Fit, solved: Solutions[DualProblem]) -> None:
        (b,) = solved[0].certificate.b
        self._conclude_outputs(fit, solved, lambda: Bounds(1.0, 0.0), np.array([b]))
        self.n_iter_ = solved[0].solution.steps
        self.offset_ = -b

    @like_input
    def decision_function(self, X: Data) -> Floats:
        """f(x): positive for samples like those trained on.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            As in `fit`; of a precomputed kernel, its values between these and the training samples.
        """
        return np.asarray(self._decision(X)[:, 0])


@shared_docs
class SVDD(NoveltyDetector):
    """Support vector data description: the smallest ball in feature space around the data, a share ν excepted.

    Minimises ½R² + ½ Σ w_i ξ_i / (νW) subject to ‖φ(x_i) − a‖² ≤ R² + ξ_i, ξ_i ≥ 0, through its dual: half of what Tax
    and Duin (2004) write, with C = 1/(νW), so that `certificate_` bounds R²/2 where there is no slack.
    For a kernel with k(x, x) constant, such as the Gaussian, it decides as `OneClassSVM` does.
    A small ν, at most 1/n, makes it the smallest enclosing ball.

    Parameters
    ----------
    nu : float, default=0.5
        Above 0 and at most 1.
    %(kernel)s
    %(dual parameters)s

    Attributes
    ----------
    radius_ : float
        R.
    offset_ : float
        −R²: decision_function = score_samples − offset_, and score_samples = −‖φ(x) − a‖².
    diagonal_ : float or None
        k(x, x) where it is the same for all training samples; with a precomputed kernel it is taken for new ones too.
    %(dual attributes)s
        `dual_coef_` are the centre's coefficients, a = Σ β_i φ(x_i).

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
        weight = fit.merged.weight
        problem = data_description(fit.diagonal, weight, float(self.nu))
        return Tasks([self._task(problem)])

    def _conclude(self, fit: Fit, solved: Solutions[DualProblem]) -> None:
        certificate, p = solved[0].certificate, solved[0].task.problem.p
        (b,) = certificate.b
        bound = 1.0 / (float(self.nu) * float(fit.merged.weight.sum()))
        self._conclude_outputs(fit, solved, lambda: Bounds(bound, 0.0), np.array([b]))
        self.n_iter_ = solved[0].solution.steps
        energy = 2.0 * (inner(p, solved[0].solution.beta) - certificate.dual)  # β'Kβ
        square = max(0.0, 2.0 * b + energy)
        self.radius_ = float(np.sqrt(square))
        self.offset_ = -square
        diagonal = 2.0 * p
        self.diagonal_ = float(diagonal[0]) if np.ptp(diagonal) <= 1e-12 * abs(diagonal[0]) else None

    @like_input
    def decision_function(self, X: Data) -> Floats:
        """R² − ‖φ(x) − a‖²: positive inside the ball.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            As in `fit`; of a precomputed kernel, its values between these and the training samples.
        """
        return np.asarray(self._DECISION_FACTOR * self._decision(X)[:, 0] - self._diagonal_of(X))

    def _diagonal_of(self, X: Data) -> Any:
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
