"""The public names, spelt out: adding or dropping one is a decision, not an accident."""

import inspect

import mercer
from mercer import kernels

NAMES = [
    "SVC",
    "Certificate",
    "KernelMachine",
    "KernelMachineClassifier",
    "KernelMachineRegressor",
    "LinearPath",
    "LinearSVC",
    "LinearSVR",
    "NystromRLS",
    "NystromRLSClassifier",
    "PegasosSVC",
    "check_kernel",
    "linear_path",
    "load",
    "save",
    "show_versions",
]

KERNELS = [
    "Chi2",
    "Cosine",
    "Exponential",
    "FromFeatureMap",
    "FromFunction",
    "Gaussian",
    "Kernel",
    "KernelCheck",
    "Laplacian",
    "Linear",
    "Matern",
    "Normalised",
    "Polynomial",
    "Power",
    "Precomputed",
    "Product",
    "PulledBack",
    "RationalQuadratic",
    "Recipe",
    "Scaled",
    "Shifted",
    "Sigmoid",
    "Spectrum",
    "Sum",
    "Tanimoto",
    "Weighted",
    "as_kernel",
    "check_kernel",
    "kernel_accepts",
    "kernel_named",
]

SVC_PARAMETERS = [
    "C",
    "kernel",
    "degree",
    "gamma",
    "coef0",
    "shrinking",
    "probability",
    "tol",
    "gap_tol",
    "cache_size",
    "class_weight",
    "verbose",
    "max_iter",
    "max_time",
    "decision_function_shape",
    "break_ties",
    "multiclass",
    "bias",
    "random_state",
    "n_jobs",
]


def test_names():
    assert sorted(mercer.__all__) == sorted(NAMES)
    assert sorted(kernels.__all__) == sorted(KERNELS)
    for name in NAMES:
        assert getattr(mercer, name).__doc__, f"{name} has no docstring"


def test_parameters():
    assert list(inspect.signature(mercer.SVC).parameters) == SVC_PARAMETERS
    assert all(f"    {name}" in mercer.SVC.__doc__ or f", {name}" in mercer.SVC.__doc__ for name in SVC_PARAMETERS)


def test_attributes_of_a_fit_are_documented():
    model = mercer.SVC().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    fitted = [name for name in vars(model) if name.endswith("_") and not name.startswith("_")]
    missing = [name for name in fitted if name not in mercer.SVC.__doc__]
    assert not missing
