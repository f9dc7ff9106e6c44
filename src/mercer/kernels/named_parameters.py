"""Parameters of kernels, which scikit-learn reads and sets like those of an estimator."""

from __future__ import annotations

import inspect
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator


class NamedParameters:
    """Mixin with `get_params` and `set_params` for the parameters of `__init__`.

    It is not a BaseEstimator, and neither are scikit-learn's own kernels: scikit-learn prints nested estimators by
    their parameters and would in some cases ignore the repr of a kernel.
    """

    @classmethod
    def _get_param_names(cls) -> list[str]:
        names: list[str] = BaseEstimator._get_param_names.__func__(cls)
        return names

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name.

        Parameters
        ----------
        deep : bool, default=True
            Whether to include the parameters of inner kernels, such as `left__gamma`.

        Returns
        -------
        dict
            Parameter values by name.
        """
        params: dict[str, Any] = BaseEstimator.get_params(self, deep)
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, including those of inner kernels, such as `left__gamma`.

        Parameters
        ----------
        **params : dict
            Parameter values by name.

        Returns
        -------
        self
        """
        BaseEstimator.set_params(self, **params)
        return self

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        defaults = {name: parameter.default for name, parameter in inspect.signature(type(self)).parameters.items()}
        with np.printoptions(threshold=36, edgeitems=2):
            texts = {name: repr(value) for name, value in sorted(self.get_params(deep=False).items())}
        changed = [f"{name}={text}" for name, text in texts.items() if text != repr(defaults.get(name))]
        return f"{type(self).__name__}({', '.join(changed)})"
