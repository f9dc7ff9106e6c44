"""Classifiers without `predict_proba`; the AttributeError says what to use instead.

Models of LIBSVM's -b 1 are the exception: they keep theirs.

scikit-learn finds out by `hasattr` what an estimator can do, so the answer has to be an AttributeError.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from mercer.fitting.calibrating import CalibratingClassifier
from mercer.on_demand import attribute_of

PROBABILITIES = (
    "{name}(...).fit(X, y).calibrate(X, y) learns them from samples left out, as sklearn.calibration's "
    "CalibratedClassifierCV does fold by fold, and mercer.KernelMachine(loss='logistic') is trained for them"
)


class Deciding(CalibratingClassifier):
    """`predict_proba` and `predict_log_proba` as attributes that say why there are none."""

    @property
    def predict_proba(self) -> Any:
        """Not available: a machine decides, and estimates no probabilities. `calibrate` it,
        or train `KernelMachine(loss="logistic")`."""
        if hasattr(self, "probA_"):  # a model that LIBSVM, or the command line with -b 1, gave its sigmoids
            return partial(attribute_of("mercer.calibration.curves", "libsvm_probabilities"), self)
        raise AttributeError(_none(self, "predict_proba"))

    @property
    def predict_log_proba(self) -> Any:
        """Not available; see `predict_proba`."""
        if hasattr(self, "probA_"):
            return lambda X: np.log(self.predict_proba(X))
        raise AttributeError(_none(self, "predict_log_proba"))


def _none(machine: Any, asked: str) -> str:
    name = type(machine).__name__
    return f"{name} has no {asked}: it estimates no probabilities. {PROBABILITIES.format(name=name)}"
