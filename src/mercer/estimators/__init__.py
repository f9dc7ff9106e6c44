"""Estimators with scikit-learn's interface."""

from mercer.estimators.kernel_machine import KernelMachineClassifier, KernelMachineRegressor
from mercer.estimators.linear import LinearSVC, LinearSVR
from mercer.estimators.novelty import SVDD, OneClassSVM
from mercer.estimators.nu_svc import NuSVC
from mercer.estimators.nystrom_rls import NystromRLS, NystromRLSClassifier
from mercer.estimators.pegasos import PegasosSVC
from mercer.estimators.quantile import QuantileSVR
from mercer.estimators.rls import RLSClassifier, RLSRegressor
from mercer.estimators.rls_cv import RLSClassifierCV, RLSRegressorCV
from mercer.estimators.svc import SVC
from mercer.estimators.svr import SVR, NuSVR

__all__ = [
    "SVC",
    "SVDD",
    "SVR",
    "KernelMachineClassifier",
    "KernelMachineRegressor",
    "LinearSVC",
    "LinearSVR",
    "NuSVC",
    "NuSVR",
    "NystromRLS",
    "NystromRLSClassifier",
    "OneClassSVM",
    "PegasosSVC",
    "QuantileSVR",
    "RLSClassifier",
    "RLSClassifierCV",
    "RLSRegressor",
    "RLSRegressorCV",
]
