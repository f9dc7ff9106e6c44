"""mercer: kernel machines that are exact, fast and certified."""

from typing import TYPE_CHECKING

from mercer.on_demand import methods_from, on_demand

__version__ = "0.1.0"

__all__ = [
    "SVC",
    "SVDD",
    "SVR",
    "CPath",
    "CalibratedClassifier",
    "CalibratedRegressor",
    "Certificate",
    "Compression",
    "KernelCCA",
    "KernelKMeans",
    "KernelMachine",
    "KernelMachineClassifier",
    "KernelMachineRegressor",
    "KernelPCA",
    "LeaveOneOutResult",
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
    "SpectralClustering",
    "Tabular",
    "TunedOneClassSVM",
    "TunedSVC",
    "TunedSVR",
    "TuningResult",
    "certify",
    "check_kernel",
    "compress",
    "export_c",
    "leave_one_out",
    "linear_path",
    "load",
    "mmd_test",
    "save",
    "show_versions",
    "svm_path",
    "tabular",
    "trace",
    "tune",
]

if TYPE_CHECKING:
    from mercer import displays as displays
    from mercer import losses as losses
    from mercer.calibration import CalibratedClassifier, CalibratedRegressor
    from mercer.certificates.certificate import Certificate
    from mercer.compression import Compression, compress
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
    from mercer.estimators.linear import LinearPath, linear_path
    from mercer.files import load, save
    from mercer.files.c.export import export_c
    from mercer.fitting.families.alpha_proof import certify
    from mercer.kernels import check_kernel
    from mercer.paths import CPath, LeaveOneOutResult, leave_one_out, svm_path
    from mercer.selection.result import TuningResult
    from mercer.selection.tune import tune
    from mercer.selection.tuned import TunedOneClassSVM, TunedSVC, TunedSVR
    from mercer.tables.estimator import Tabular, tabular
    from mercer.teaching import trace
    from mercer.unsupervised import KernelCCA, KernelKMeans, KernelPCA, SpectralClustering, mmd_test
    from mercer.versions import show_versions
else:
    _HOMES = dict.fromkeys(__all__, "mercer.estimators") | {
        "CPath": "mercer.paths",
        "CalibratedClassifier": "mercer.calibration",
        "CalibratedRegressor": "mercer.calibration",
        "LeaveOneOutResult": "mercer.paths",
        "leave_one_out": "mercer.paths",
        "Certificate": "mercer.certificates.certificate",
        "Compression": "mercer.compression",
        "compress": "mercer.compression",
        "export_c": "mercer.files.c.export",
        "Tabular": "mercer.tables.estimator",
        "KernelMachine": "mercer.estimators.kernel_machine",
        "LinearPath": "mercer.estimators.linear",
        "certify": "mercer.fitting.families.alpha_proof",
        "check_kernel": "mercer.kernels",
        "linear_path": "mercer.estimators.linear",
        "load": "mercer.files",
        "save": "mercer.files",
        "show_versions": "mercer.versions",
        "svm_path": "mercer.paths",
        "tabular": "mercer.tables.estimator",
        "trace": "mercer.teaching",
        "tune": "mercer.selection.tune",
        "TunedOneClassSVM": "mercer.selection.tuned",
        "TunedSVC": "mercer.selection.tuned",
        "TunedSVR": "mercer.selection.tuned",
        "TuningResult": "mercer.selection.result",
        "KernelCCA": "mercer.unsupervised",
        "KernelKMeans": "mercer.unsupervised",
        "KernelPCA": "mercer.unsupervised",
        "SpectralClustering": "mercer.unsupervised",
        "mmd_test": "mercer.unsupervised",
    }
    _ROOMS = (
        "arrays calibration certificates compression data datasets displays errors estimators expansion explain "
        "features files fitting gram kernels losses margins optional parameters paths problems rkhs selection solution "
        "solvers tables teaching theory threads unsupervised versions"
    )
    _MEANT = {
        "SVM": "SVC (classes), SVR (numbers) or OneClassSVM (novelties)",
        "KernelRidge": "RLSRegressor",
        "LSSVM": "RLSClassifier or RLSRegressor",
        "KernelLogisticRegression": 'KernelMachine("logistic")',
        "GaussianProcess": "theory.GaussianProcess",
        "GaussianProcessRegressor": "theory.GaussianProcess",
        "RBF": "kernels.Gaussian",
        "xi_alpha": "paths.xi_alpha",
    }
    __getattr__, __dir__ = on_demand(__name__, _HOMES | {name: f"mercer.{name}" for name in _ROOMS.split()}, _MEANT)
    methods_from("mercer.methods")
