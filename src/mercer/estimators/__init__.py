"""Estimators with scikit-learn's interface."""

from typing import TYPE_CHECKING

from mercer.runtime.on_demand import on_demand

__all__ = [
    "SVC",
    "SVDD",
    "SVR",
    "KernelMachineClassifier",
    "KernelMachineRegressor",
    "LinearSVC",
    "LinearSVR",
    "MKLClassifier",
    "MKLRegressor",
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
    "RankSVM",
]

if TYPE_CHECKING:
    from mercer.estimators.kernel_machine import KernelMachineClassifier, KernelMachineRegressor
    from mercer.estimators.linear import LinearSVC, LinearSVR
    from mercer.estimators.mkl import MKLClassifier, MKLRegressor
    from mercer.estimators.novelty import SVDD, OneClassSVM
    from mercer.estimators.nu_svc import NuSVC
    from mercer.estimators.nystrom_rls import NystromRLS, NystromRLSClassifier
    from mercer.estimators.pegasos import PegasosSVC
    from mercer.estimators.ranking import RankSVM
    from mercer.estimators.ridge_path import RLSClassifierCV, RLSRegressorCV
    from mercer.estimators.rls import RLSClassifier, RLSRegressor
    from mercer.estimators.svc import SVC
    from mercer.estimators.svr import SVR, NuSVR, QuantileSVR
else:
    _HOMES = {
        "kernel_machine": "KernelMachineClassifier KernelMachineRegressor",
        "linear": "LinearSVC LinearSVR",
        "mkl": "MKLClassifier MKLRegressor",
        "novelty": "SVDD OneClassSVM",
        "nu_svc": "NuSVC",
        "nystrom_rls": "NystromRLS NystromRLSClassifier",
        "pegasos": "PegasosSVC",
        "ranking": "RankSVM",
        "ridge_path": "RLSClassifierCV RLSRegressorCV",
        "rls": "RLSClassifier RLSRegressor",
        "svc": "SVC",
        "svr": "SVR NuSVR QuantileSVR",
    }
    _MODULES = ("regularisation", "ridge_path", "transduction")
    __getattr__, __dir__ = on_demand(
        __name__,
        {name: f"{__name__}.{home}" for home, names in _HOMES.items() for name in names.split()}
        | {name: f"{__name__}.{name}" for name in _MODULES},
    )
