"""Estimators with scikit-learn's interface."""

from typing import TYPE_CHECKING

from mercer.on_demand import on_demand

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

if TYPE_CHECKING:
    from mercer.estimators.kernel_machine import KernelMachineClassifier, KernelMachineRegressor
    from mercer.estimators.linear import LinearSVC, LinearSVR
    from mercer.estimators.novelty import SVDD, OneClassSVM
    from mercer.estimators.nu_svc import NuSVC
    from mercer.estimators.nystrom_rls import NystromRLS, NystromRLSClassifier
    from mercer.estimators.pegasos import PegasosSVC
    from mercer.estimators.ridge_path import RLSClassifierCV, RLSRegressorCV
    from mercer.estimators.rls import RLSClassifier, RLSRegressor
    from mercer.estimators.svc import SVC
    from mercer.estimators.svr import SVR, NuSVR, QuantileSVR
else:
    __getattr__, __dir__ = on_demand(
        __name__,
        {
            "KernelMachineClassifier": "mercer.estimators.kernel_machine",
            "KernelMachineRegressor": "mercer.estimators.kernel_machine",
            "LinearSVC": "mercer.estimators.linear",
            "LinearSVR": "mercer.estimators.linear",
            "SVDD": "mercer.estimators.novelty",
            "OneClassSVM": "mercer.estimators.novelty",
            "NuSVC": "mercer.estimators.nu_svc",
            "NystromRLS": "mercer.estimators.nystrom_rls",
            "NystromRLSClassifier": "mercer.estimators.nystrom_rls",
            "PegasosSVC": "mercer.estimators.pegasos",
            "QuantileSVR": "mercer.estimators.svr",
            "RLSClassifier": "mercer.estimators.rls",
            "RLSRegressor": "mercer.estimators.rls",
            "RLSClassifierCV": "mercer.estimators.ridge_path",
            "RLSRegressorCV": "mercer.estimators.ridge_path",
            "SVC": "mercer.estimators.svc",
            "SVR": "mercer.estimators.svr",
            "NuSVR": "mercer.estimators.svr",
        },
    )
