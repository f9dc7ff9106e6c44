"""mercer: kernel machines that are exact, fast and certified."""

from mercer import displays as displays
from mercer import losses as losses
from mercer.certificates.certificate import Certificate
from mercer.estimators import (
    SVC,
    SVDD,
    SVR,
    KernelMachineClassifier,
    KernelMachineRegressor,
    LinearSVC,
    LinearSVR,
    NuSVC,
    NuSVR,
    NystromRLS,
    NystromRLSClassifier,
    OneClassSVM,
    PegasosSVC,
    QuantileSVR,
    RLSClassifier,
    RLSClassifierCV,
    RLSRegressor,
    RLSRegressorCV,
)
from mercer.estimators.kernel_machine import KernelMachine
from mercer.estimators.linear_path import LinearPath, linear_path
from mercer.files import load, save
from mercer.kernels import check_kernel
from mercer.tables import Tabular, tabular
from mercer.versions import show_versions

__version__ = "0.1.0"

__all__ = [
    "SVC",
    "SVDD",
    "SVR",
    "Certificate",
    "KernelMachine",
    "KernelMachineClassifier",
    "KernelMachineRegressor",
    "LinearPath",
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
    "Tabular",
    "check_kernel",
    "linear_path",
    "load",
    "save",
    "show_versions",
    "tabular",
]
