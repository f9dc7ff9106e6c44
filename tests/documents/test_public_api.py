"""The public names, spelt out: adding or dropping one is a decision, not an accident."""

import importlib
import importlib.util
import inspect
import re
from operator import attrgetter
from pathlib import Path

import pytest

import mercer
import mercer.estimators
from mercer import kernels, theory

spec = importlib.util.spec_from_file_location("api_table", Path(__file__).parents[2] / "docs" / "api_table.py")
api_table = importlib.util.module_from_spec(spec)
spec.loader.exec_module(api_table)

NAMES = [
    "SVC",
    "SVDD",
    "SVR",
    "C_from",
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
    "certify",
    "check_kernel",
    "compress",
    "config_context",
    "easy",
    "fit_formula",
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
    "steps",
    "stored_rows",
    "svm_path",
    "tabular",
    "transduce",
    "tune",
    "unwrap",
]

KERNELS = [
    "ANOVA",
    "Bessel",
    "Categorical",
    "Chi2",
    "Cosine",
    "FromFeatureMap",
    "FromFunction",
    "Gaussian",
    "Gower",
    "Intersection",
    "Kernel",
    "Laplacian",
    "Linear",
    "Matern",
    "Mismatch",
    "Polynomial",
    "Precomputed",
    "RationalQuadratic",
    "Sigmoid",
    "Spectrum",
    "Spline",
    "Subsequences",
    "Substrings",
    "Tanimoto",
    "check_kernel",
    "gamma_from_sigma",
    "rank_one",
    "sigest",
]

THEORY = [
    "Bound",
    "Law",
    "ball_complexity",
    "best_theta",
    "chernoff",
    "dichotomies",
    "enclosing_ball",
    "expectation_bound",
    "fewest_errors",
    "finite_complexity",
    "finite_complexity_bound",
    "finite_rules_bound",
    "glivenko_cantelli",
    "hard_margin_bound",
    "hard_margin_samples",
    "hoeffding",
    "insight",
    "iteration_path",
    "least_slack_power",
    "leave_one_out_bound",
    "linear_rules_bound",
    "log_likelihood",
    "log_posterior",
    "mcdiarmid",
    "mistake_bound",
    "off_training_error",
    "risk",
    "shattering",
    "soft_margin_bound",
    "soft_margin_expectation",
    "soft_margin_samples",
    "stopping_step",
    "support_vectors_bound",
    "tail_probability",
    "tail_samples",
    "test_set_bound",
    "trace_bound",
    "true_complexity_bound",
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
    "slack",
    "bias",
    "theta",
    "multiclass",
    "solver",
    "warm_start",
    "decision_function_shape",
    "break_ties",
    "random_state",
    "n_jobs",
]

MODULES = [
    "calibration",
    "datasets",
    "displays",
    "errors",
    "estimators",
    "explain",
    "features",
    "kernels",
    "libsvm",
    "losses",
    "margins",
    "paths",
    "penalties",
    "rkhs",
    "teaching",
    "theory",
    "unsupervised",
]


def test_names():
    assert sorted(mercer.__all__) == sorted([*NAMES, *MODULES])
    assert sorted(kernels.__all__) == sorted(KERNELS)
    assert sorted(theory.__all__) == sorted(THEORY)
    for name in mercer.__all__:
        assert getattr(mercer, name).__doc__, f"{name} has no docstring"


def test_every_public_module_lists_its_names():
    """`__all__` of every public module has the names of the reference, and each of them exists."""
    listed = {}
    for name in api_table.listed():
        module, _, last = name.rpartition(".")
        listed.setdefault(module, set()).add(last)
    assert len(listed) > 15
    for module, names in listed.items():
        public = (attrgetter(module.removeprefix("mercer."))(mercer) if "." in module else mercer).__all__
        assert names <= set(public), module
        assert len(public) == len(set(public))
    for module in MODULES:
        found = getattr(mercer, module)
        assert all(hasattr(found, name) for name in found.__all__), module


SHARED = [
    "kernel",
    "degree",
    "gamma",
    "coef0",
    "shrinking",
    "tol",
    "gap_tol",
    "cache_size",
    "verbose",
    "max_iter",
    "max_time",
    "random_state",
    "n_jobs",
    "solver",
    "warm_start",
]
OWN_PARAMETERS = {
    "SVR": ["C", "epsilon", "loss", "delta", "tau", "bias", "theta"],
    "NuSVR": ["nu", "C"],
    "QuantileSVR": ["quantiles", "C", "bias", "theta"],
    "OneClassSVM": ["nu"],
    "SVDD": ["nu"],
    "NuSVC": ["nu", "decision_function_shape", "break_ties"],
}


def test_parameters():
    found = inspect.signature(mercer.SVC).parameters
    assert set(found) == set(SVC_PARAMETERS)
    assert [name for name, one in found.items() if one.kind is not inspect.Parameter.KEYWORD_ONLY] == ["C"]


@pytest.mark.parametrize("name", OWN_PARAMETERS)
def test_parameters_of_the_other_machines(name):
    assert sorted(inspect.signature(getattr(mercer, name)).parameters) == sorted(OWN_PARAMETERS[name] + SHARED)


@pytest.mark.parametrize("name", mercer.estimators.__all__)
def test_parameters_and_attributes_are_documented(name):
    estimator = getattr(mercer.estimators, name)
    text = inspect.getdoc(estimator)
    assert all(f"\n{p}" in text or f", {p}" in text for p in inspect.signature(estimator).parameters)
    model = estimator().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    fitted = [name for name in vars(model) if name.endswith("_") and not name.startswith("_")]
    assert not [name for name in fitted if name not in text]


def test_estimators_have_no_constants():
    """Declarations and switches of a class are the library's own, and begin with an underscore."""
    classes = [getattr(mercer, name) for name in mercer.__all__ if inspect.isclass(getattr(mercer, name))]
    assert len(classes) > 30
    for cls in classes:
        assert not [name for name in dir(cls) if name[0] != "_" and name.isupper() and len(name) > 1], cls


def test_every_docstring_begins_at_the_margin():
    """Texts that are put together keep their headings at the margin, whatever the compiler does with blanks."""
    for name in mercer.__all__:
        text = inspect.getdoc(getattr(mercer, name))
        assert not re.search(r"^ +(Parameters|Attributes|Returns|Examples)\n +--", text, re.MULTILINE), name


@pytest.mark.parametrize(
    ("module", "name", "suggestion"),
    [
        ("mercer", "SVM", "did you mean SVC"),
        ("mercer", "Svc", "did you mean SVC"),
        ("mercer", "LinearSVM", "did you mean LinearSV"),
        ("mercer.kernels", "RBF", "did you mean Gaussian"),
        ("mercer.kernels", "Quadratic", "did you mean Polynomial"),
        ("mercer.kernels", "SquaredExponential", "did you mean Gaussian"),
        ("mercer.kernels", "DotProduct", "did you mean Linear"),
        ("mercer.kernels", "Tanh", "did you mean Sigmoid"),
        ("mercer.kernels", "Jaccard", "did you mean Tanimoto"),
        ("mercer.kernels", "String", "did you mean Mismatch or Spectrum or Substrings"),
        ("mercer.kernels", "Callable", "did you mean FromFunction"),
        ("mercer.kernels", "Poly", "did you mean Polynomial"),
        ("mercer.theory", "margin_bound", "did you mean hard_margin_bound or soft_margin_bound"),
        ("mercer.theory", "growth_function", "did you mean dichotomies"),
        ("mercer.theory", "novikoff", "did you mean mistake_bound"),
        ("mercer.kernels", "Gausian", "did you mean Gaussian"),
        ("mercer.theory", "rademacher", "did you mean ball_complexity"),
        ("mercer.theory", "vc_bound", "did you mean linear_rules_bound"),
        ("mercer.paths", "xi_alfa", "did you mean xi_alpha"),
        ("mercer", "trace", "did you mean steps"),
        ("mercer", "export_c", "did you mean save"),
        ("mercer", "C_from_theta", "did you mean C_from"),
        ("mercer.kernels", "Sum", r"did you mean k1 \+ k2"),
        ("mercer", "nonsense", "has no attribute 'nonsense'$"),
    ],
)
def test_a_name_that_is_missing_suggests_what_was_meant(module, name, suggestion):
    with pytest.raises(AttributeError, match=suggestion):
        getattr(attrgetter(module.removeprefix("mercer."))(mercer) if "." in module else mercer, name)


def test_what_is_suggested_exists():
    """Every name of the tables, up to words about it."""
    said = [(mercer, value) for value in mercer._NAMES_ELSEWHERE.values()]
    rooms = {
        "kernels": ("RBF", "Cubic", "Poly", "Tanh", "Callable"),
        "theory": ("novikoff", "margin_bound", "growth_function"),
    }
    for room, names in rooms.items():
        module = attrgetter(room)(mercer)
        for name in names:
            with pytest.raises(AttributeError) as error:
                getattr(module, name)
            said.append((module, str(error.value).partition("did you mean ")[2]))
    for module, text in said:
        for name in re.findall(
            r"(?:theory\.|paths\.|kernels\.|libsvm\.|teaching\.)?[A-Za-z_]{3,}(?=[ (,?]|$)",
            re.sub(r"\([^)]*\)|\bor\b", "", text),
        ):
            assert attrgetter(name)(module)
