"""Classifiers that decide and estimate no probabilities: whoever asks one for them is told where they are.

scikit-learn finds out by `hasattr` what an estimator can do, so the answer has to be an AttributeError.
"""

from __future__ import annotations

from typing import Any

PROBABILITIES = (
    "CalibratedClassifierCV({name}(...), ensemble=False) of sklearn.calibration estimates them for any classifier, and "
    "mercer.KernelMachine(loss='logistic') is trained for them"
)


class Deciding:
    """`predict_proba` and `predict_log_proba` as attributes that say why there are none."""

    @property
    def predict_proba(self) -> Any:
        """Not available: a machine decides, and estimates no probabilities. Wrap it in
        `sklearn.calibration.CalibratedClassifierCV`, or train `KernelMachine(loss="logistic")`."""
        raise AttributeError(_none(self, "predict_proba"))

    @property
    def predict_log_proba(self) -> Any:
        """Not available; see `predict_proba`."""
        raise AttributeError(_none(self, "predict_log_proba"))


def _none(machine: Any, asked: str) -> str:
    name = type(machine).__name__
    return f"{name} has no {asked}: it estimates no probabilities. {PROBABILITIES.format(name=name)}"
