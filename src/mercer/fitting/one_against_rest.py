"""Classifiers with one function for each class, or one for two: the largest decides, and each is a hyperplane."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.arrays import Floats, freeze
from mercer.data.labels import winner
from mercer.fitting.margin_report import MarginReport


class OneAgainstRest(MarginReport):
    """Decisions and margins from `_decision`, whose columns are the classes' f(x), or that of the second of two."""

    def decision_function(self, X: Any) -> Floats:
        """f(x) for two classes, positive for the second; for more, one column per class.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            As in `fit`.
        """
        values = self._decision(X)
        return np.asarray(values[:, 0]) if values.shape[1] == 1 else values

    def predict(self, X: Any) -> np.ndarray:
        """The class of each sample: the second of two where f(x) ≥ 0, of several the first with the largest f(x).

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            As in `fit`.
        """
        check_is_fitted(self)
        return np.asarray(self.classes_[winner(self._decision(X))])

    @property
    def rkhs_norm_(self) -> Any:
        """‖w‖ of each output, computed when it is asked for; a number where there is one."""
        check_is_fitted(self)
        expansion = getattr(self, "_expansion_", None)
        if expansion is None:
            norms = np.linalg.norm(np.atleast_2d(self.coef_), axis=1)  # type: ignore[attr-defined]  # it keeps w instead
        elif expansion.vectors is None:
            raise AttributeError("rkhs_norm_ needs the kernel between the vectors, which a precomputed matrix hides")
        else:
            norms = expansion.norms()
        return float(norms[0]) if len(norms) == 1 else freeze(norms)
