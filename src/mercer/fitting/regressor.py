"""What regression machines of dual problems share: a real target, predictions f(x), several of them for several
tasks."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from mercer.arrays import Floats, Indices
from mercer.data.targets import numbers
from mercer.fitting.coefficients import weight_vector
from mercer.fitting.dual_machine import DualMachine


class KernelRegressor(RegressorMixin, DualMachine):  # type: ignore[misc]  # scikit-learn is untyped
    """A machine whose target is a number; one adds its parameters and its problems."""

    def _read(self, y: Any) -> tuple[Indices, Floats]:
        """The rank of each target among the distinct ones, so that equal (x, y) merge, and the distinct ones."""
        values, codes = np.unique(numbers(y), return_inverse=True)
        return codes, values

    def predict(self, X: Any) -> Floats:
        """f(x) of each sample."""
        return np.asarray(self._decision(X)[:, 0])

    @property
    def coef_(self) -> Any:
        """w; only for a linear kernel."""
        check_is_fitted(self)
        return weight_vector(self)
