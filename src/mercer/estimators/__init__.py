"""Estimators with scikit-learn's interface."""

from mercer.estimators.pegasos import PegasosSVC
from mercer.estimators.svc import SVC

__all__ = ["SVC", "PegasosSVC"]
