"""`calibrate`: from a fitted machine to probabilities, sets of classes, or intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.base import RegressorMixin

from mercer.on_demand import attribute_of

if TYPE_CHECKING:
    from mercer.calibration import CalibratedClassifier, CalibratedRegressor


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
