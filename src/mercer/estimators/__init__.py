"""Estimators with scikit-learn's interface."""

from mercer.estimators.kernel_machine import KernelMachineClassifier, KernelMachineRegressor
from mercer.estimators.linear import LinearSVC, LinearSVR
from mercer.estimators.nystrom_rls import NystromRLS, NystromRLSClassifier
from mercer.estimators.pegasos import PegasosSVC
from mercer.estimators.svc import SVC

__all__ = [
    "SVC",
    "KernelMachineClassifier",
    "KernelMachineRegressor",
    "LinearSVC",
    "LinearSVR",
    "NystromRLS",
    "NystromRLSClassifier",
    "PegasosSVC",
]
