"""`calibrate`: from a fitted machine to probabilities, sets of classes, or intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from sklearn.base import RegressorMixin
from sklearn.utils.metaestimators import available_if

from mercer.arrays import Floats
from mercer.on_demand import attribute_of

if TYPE_CHECKING:
    from mercer.calibration import CalibratedClassifier, CalibratedRegressor


def _has_marks(machine: Any) -> bool:
    if not hasattr(machine, "prob_density_marks_"):
        raise AttributeError(f"{type(machine).__name__} estimates no probabilities; .calibrate(X) learns them")
    return True


class CalibratingClassifier:
    """A classifier that decides, and can be calibrated."""

    def calibrate(
        self,
        X: Any,
        y: Any,
        *,
        method: str = "sigmoid",
        cv: Any = 5,
        sample_weight: Any = None,
        verbose: bool = False,
    ) -> CalibratedClassifier:
        """This machine with probabilities, learned from decision values of samples that were left out.

        The machine stays as it is. The folds share its kernel, and start from its solution.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            The training samples, or others with cv="held-out".
        y : array of shape (n_samples,)
        method : {"sigmoid", "isotonic", "temperature", "venn-abers"}, default="sigmoid"
            See `CalibratedClassifier`.
        cv : int, splitter or "held-out", default=5
            Folds that leave every sample out once. "held-out": the machine was not trained on X, and is asked itself.
        sample_weight : array of shape (n_samples,), optional
            For the folds' machines and for the curves.
        verbose : bool, default=False
            A line for each fold that is done.

        Returns
        -------
        CalibratedClassifier
        """
        calibrate = attribute_of("mercer.calibration", "calibrate_classifier")
        calibrated: CalibratedClassifier = calibrate(self, X, y, method, cv, sample_weight, verbose)
        return calibrated


class CalibratingRegressor(RegressorMixin):  # type: ignore[misc]  # scikit-learn is untyped
    """A regressor that can be given intervals."""

    def calibrate(
        self, X: Any, y: Any, *, cv: Any = 5, sample_weight: Any = None, verbose: bool = False
    ) -> CalibratedRegressor:
        """This machine with intervals, from residuals of samples that were left out.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            The training samples, or others with cv="held-out".
        y : array of shape (n_samples,)
        cv : int, splitter, "leave-one-out" or "held-out", default=5
            Folds that leave every sample out once. "leave-one-out" is for `RLSRegressor` and `SVR`. "held-out": the
            machine was not trained on X.
        sample_weight : array of shape (n_samples,), optional
            For the folds' machines.
        verbose : bool, default=False
            A line for each fold that is done.

        Returns
        -------
        CalibratedRegressor
        """
        calibrate = attribute_of("mercer.calibration", "calibrate_regressor")
        calibrated: CalibratedRegressor = calibrate(self, X, y, cv, sample_weight, verbose)
        return calibrated


class CalibratingNovelty:
    """A machine without targets that can be given probabilities."""

    if TYPE_CHECKING:

        @property
        def prob_density_marks_(self) -> Any: ...

    def calibrate(self, X: Any, *, cv: Any = 5, sample_weight: Any = None) -> Self:
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
            For the folds' machines; samples of weight 0 do not count.

        Returns
        -------
        a machine of the same class
        """
        calibrate = attribute_of("mercer.calibration.novelty", "calibrate_novelty")
        calibrated: Self = calibrate(self, X, cv, sample_weight)
        return calibrated

    @available_if(_has_marks)  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def predict_proba(self, X: Any) -> Floats:
        """How probable it is that a sample is an outlier, −1, and that it is like those trained on, +1.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            As in `fit`.
        """
        probabilities: Floats = attribute_of("mercer.calibration.novelty", "novelty_probabilities")(self, X)
        return probabilities
