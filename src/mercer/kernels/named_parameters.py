"""Parameters of kernels as scikit-learn sees them: `get_params`, `set_params`, `clone`, ``kernel__gamma`` in a grid."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

# Numbers of an array that a kernel's text shows before it leaves some out.
_SHOWN_NUMBERS = 36


class NamedParameters:
    """An object whose parameters are those of its `__init__`, under their own names.

    It is no BaseEstimator, as scikit-learn's own kernels are none: the printer of estimators writes one by its
    parameters, some of the time, whatever text it has of its own.
    """

    _get_param_names: Any = classmethod(BaseEstimator._get_param_names.__func__)
    get_params, set_params = BaseEstimator.get_params, BaseEstimator.set_params

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        defaults = {name: one.default for name, one in inspect.signature(type(self)).parameters.items()}
        with np.printoptions(threshold=_SHOWN_NUMBERS, edgeitems=2):
            texts = {name: repr(value) for name, value in sorted(self.get_params(deep=False).items())}
        given = [f"{name}={text}" for name, text in texts.items() if text != repr(defaults.get(name))]
        return f"{type(self).__name__}({', '.join(given)})"
