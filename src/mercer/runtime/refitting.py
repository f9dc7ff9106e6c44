"""Atomic fits: a blank copy of the estimator is fitted, then the estimator adopts the fitted attributes of the copy.

So a fit that fails or is interrupted leaves the estimator unchanged, and a thread that copies or pickles the estimator
during a fit gets the complete model from before the fit or from after it.
"""

from __future__ import annotations

from typing import Any, TypeVar

from sklearn.base import BaseEstimator

Estimator = TypeVar("Estimator", bound=BaseEstimator)


def fitted_names(model: Any) -> list[str]:
    """Return the names of the attributes that a fit has set: those that end with an underscore."""
    return [name for name in vars(model) if name[-1] == "_" and name[:2] != "__"]


def blank_copy(model: Estimator) -> Estimator:
    """Return an unfitted copy of an estimator with the same parameter objects."""
    # copy.copy would run __getstate__, which takes 4 % of a fit to 30 samples, and the constructor would check nothing.
    blank: Estimator = object.__new__(type(model))
    parameters = model._get_param_names()
    for name, value in vars(model).items():
        # Callbacks and metadata requests are no parameters, and were not set by a fit either.
        if name[-1] != "_" or name[:2] == "__" or name in parameters:
            vars(blank)[name] = value
    return blank


def adopt_fit(model: Estimator, fitted: Estimator) -> Estimator:
    """Replace the fitted attributes of an estimator by those of its fitted copy."""
    # One assignment: a thread that is copying or pickling this estimator keeps the old dictionary, which stays whole.
    unfitted = {name: value for name, value in vars(model).items() if name[-1] != "_" or name[:2] == "__"}
    model.__dict__ = unfitted | vars(fitted)
    return model
