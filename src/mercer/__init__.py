"""mercer: kernel machines that are exact, fast and certified."""

from typing import TYPE_CHECKING

from mercer.runtime.on_demand import on_demand

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
    "EasyModel",
    "GaussianProcessClassifier",
    "GaussianProcessRegressor",
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
    "RelevanceVectorRegressor",
    "SpectralClustering",
    "Tabular",
    "TunedOneClassSVM",
    "TunedSVC",
    "TunedSVR",
    "TuningResult",
    "ask",
    "certify",
    "check_kernel",
    "compress",
    "config_context",
    "easy",
    "export_c",
    "get_config",
    "kernel_alignment",
    "learn_kernel",
    "leave_one_out",
    "linear_path",
    "load",
    "mmd_test",
    "save",
    "set_config",
    "show_versions",
    "stored_rows",
    "svm_path",
    "tabular",
    "trace",
    "tune",
]

if TYPE_CHECKING:
    from mercer import displays as displays
    from mercer import losses as losses
    from mercer import penalties as penalties
    from mercer.analysis.easy import EasyModel, easy
    from mercer.bayes import GaussianProcessClassifier, GaussianProcessRegressor, RelevanceVectorRegressor
    from mercer.calibration import CalibratedClassifier, CalibratedRegressor
    from mercer.certificates.certificate import Certificate
    from mercer.compression import Compression, compress
    from mercer.config import config_context, get_config, set_config
    from mercer.estimators import (
        SVC,
        SVDD,
        SVR,
        KernelMachineClassifier,
        KernelMachineRegressor,
        LinearSVC,
        LinearSVR,
        MKLClassifier,
        MKLRegressor,
        NuSVC,
        NuSVR,
        NystromRLS,
        NystromRLSClassifier,
        OneClassSVM,
        PegasosSVC,
        QuantileSVR,
        RankSVM,
        RLSClassifier,
        RLSClassifierCV,
        RLSRegressor,
        RLSRegressorCV,
    )
    from mercer.estimators.certification.certify import certify
    from mercer.estimators.kernel_machine import KernelMachine
    from mercer.estimators.linear import LinearPath, linear_path
    from mercer.files import load, save
    from mercer.files.c.export import export_c
    from mercer.files.stored_rows import stored_rows
    from mercer.kernels import check_kernel
    from mercer.paths import CPath, LeaveOneOutResult, leave_one_out, svm_path
    from mercer.runtime.versions import show_versions
    from mercer.selection.alignment import kernel_alignment
    from mercer.selection.learn_kernel import learn_kernel
    from mercer.selection.result import TuningResult
    from mercer.selection.tune import tune
    from mercer.selection.tuned import TunedOneClassSVM, TunedSVC, TunedSVR
    from mercer.tables.asked import ask
    from mercer.tables.estimator import Tabular, tabular
    from mercer.teaching import trace
    from mercer.unsupervised import KernelCCA, KernelKMeans, KernelPCA, SpectralClustering, mmd_test
else:
    _ELSEWHERE = {
        "analysis.easy": "EasyModel easy",
        "bayes": "GaussianProcessClassifier GaussianProcessRegressor RelevanceVectorRegressor",
        "calibration": "CalibratedClassifier CalibratedRegressor",
        "certificates.certificate": "Certificate",
        "compression": "Compression compress",
        "config": "config_context get_config set_config",
        "estimators.certification.certify": "certify",
        "estimators.kernel_machine": "KernelMachine",
        "estimators.linear": "LinearPath linear_path",
        "files": "load save",
        "files.c.export": "export_c",
        "files.stored_rows": "stored_rows",
        "kernels": "check_kernel",
        "paths": "CPath LeaveOneOutResult leave_one_out svm_path",
        "selection.alignment": "kernel_alignment",
        "selection.learn_kernel": "learn_kernel",
        "selection.result": "TuningResult",
        "selection.tune": "tune",
        "selection.tuned": "TunedOneClassSVM TunedSVC TunedSVR",
        "tables.asked": "ask",
        "tables.estimator": "Tabular tabular",
        "teaching": "trace",
        "unsupervised": "KernelCCA KernelKMeans KernelPCA SpectralClustering mmd_test",
        "runtime.versions": "show_versions",
    }
    _HOMES = dict.fromkeys(__all__, "mercer.estimators") | {
        name: f"mercer.{home}" for home, names in _ELSEWHERE.items() for name in names.split()
    }
    _ROOMS = (
        "analysis arrays bayes calibration certificates compression config data datasets displays engine errors "
        "estimators explain features files fitting gram kernels libsvm losses margins parameters paths penalties "
        "problems rkhs runtime selection solution solvers tables teaching theory unsupervised"
    )
    _MEANT = {
        "SVM": "SVC (classes), SVR (numbers) or OneClassSVM (novelties)",
        "KernelRidge": "RLSRegressor",
        "LSSVM": "RLSClassifier or RLSRegressor",
        "KernelLogisticRegression": 'KernelMachine("logistic")',
        "GaussianProcess": "GaussianProcessRegressor",
        "RBF": "kernels.Gaussian",
        "xi_alpha": "paths.xi_alpha",
    }
    __getattr__, __dir__ = on_demand(__name__, _HOMES | {name: f"mercer.{name}" for name in _ROOMS.split()}, _MEANT)
