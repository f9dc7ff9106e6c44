"""Parameters of kernels, as scikit-learn reads and sets those of an estimator."""

from __future__ import annotations

import inspect
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator


class NamedParameters:
    """An object whose parameters are those of its `__init__`, under their own names.

    It is no BaseEstimator, as scikit-learn's own kernels are none: the printer of estimators writes one by its
    parameters, some of the time, whatever text it has of its own.
    """

    @classmethod
    def _get_param_names(cls) -> list[str]:
        names: list[str] = BaseEstimator._get_param_names.__func__(cls)
        return names

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by their names.

        Parameters
        ----------
        deep : bool, default=True
            With those of kernels inside, as `left__gamma`.
        """
        params: dict[str, Any] = BaseEstimator.get_params(self, deep)
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also those of kernels inside: `left__gamma`."""
        BaseEstimator.set_params(self, **params)
        return self

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        defaults = {name: one.default for name, one in inspect.signature(type(self)).parameters.items()}
        with np.printoptions(threshold=36, edgeitems=2):
            texts = {name: repr(value) for name, value in sorted(self.get_params(deep=False).items())}
        given = [f"{name}={text}" for name, text in texts.items() if text != repr(defaults.get(name))]
        return f"{type(self).__name__}({', '.join(given)})"
