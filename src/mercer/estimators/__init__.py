"""Estimators with scikit-learn's interface."""

from mercer.estimators.svc import SVC

__all__ = ["SVC"]
