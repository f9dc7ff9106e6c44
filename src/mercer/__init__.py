"""mercer: kernel machines that are exact, fast and certified."""

from lazy_loader import attach_stub

__version__ = "0.1.0.dev0"

# __init__.pyi lists the module of each public name; a module is imported when one of its names is first used.
_import_name, __dir__, __all__ = attach_stub(__name__, __file__)

_NAMES_ELSEWHERE = {
    "SVM": "SVC (classes), SVR (numbers) or OneClassSVM (novelties)",
    "KernelRidge": "RLSRegressor",
    "LSSVM": "RLSClassifier or RLSRegressor",
    "KernelLogisticRegression": 'KernelMachine("logistic")',
    "GaussianProcess": "GaussianProcessRegressor",
    "RBF": "kernels.Gaussian",
    "xi_alpha": "paths.xi_alpha",
    "trace": "steps",
    "export_c": "save",
    "export_onnx": "save",
    "ipop": "teaching.ipop",
    "ask": "unwrap",
    "read_libsvm": "libsvm.read_libsvm",
    "write_libsvm": "libsvm.write_libsvm",
    "gamma_from_sigma": "kernels.gamma_from_sigma",
    **dict.fromkeys(("C_from_theta", "C_from_lam", "C_from_alpha", "C_from_liblinear"), "C_from"),
}


def __getattr__(name: str) -> object:
    if name in __all__:
        return _import_name(name)
    from mercer.runtime.missing_names import missing_name_error

    raise missing_name_error(__name__, name, __all__, _NAMES_ELSEWHERE)
