"""What works where: of every tool, which estimators it refuses and why. The test and the page are both made from it.

A tool works for a row of the table unless one of its refusals is about that row; the first that is counts.
"""

from collections.abc import Callable
from dataclasses import dataclass

import mercer
import mercer.estimators
from mercer.estimators.fitting.families.dual_machine import DualMachine
from mercer.estimators.fitting.families.kernel_weights import MultipleKernelMachine
from mercer.estimators.novelty import NoveltyDetector
from tools import engine_tools, explain_tools, file_tools, fit_tools, model_tools
from tools.rows import Row


@dataclass(frozen=True)
class Some:
    """Some rows: a test of one, and words that follow "not" on the page where only some variants are meant."""

    holds: Callable[[Row], bool]
    words: str = ""

    def __call__(self, row: Row) -> bool:
        return self.holds(row)


@dataclass(frozen=True)
class Refusal:
    """Rows that a tool refuses.

    `why` is a sentence of the page. `says` is what the message must contain, a regular expression; `about` is what it
    names as being in the way where that is neither the estimator nor its kernel nor a parameter. An `absent` tool is no
    method, function or parameter of the estimator at all.
    """

    who: Some
    why: str
    says: str = ""
    about: str = ""
    absent: bool = False


@dataclass(frozen=True)
class Tool:
    """A column: its title, how it is checked, what the page says of that, and what messages call it."""

    key: str
    title: str
    check: Callable[[Row], object]
    text: str
    names: tuple[str, ...]
    refusals: tuple[Refusal, ...] = ()


def expected(tool: Tool, row: Row) -> Refusal | None:
    """The refusal that is about this row; None where the tool works."""
    return next((one for one in tool.refusals if one.who(row)), None)


# --- rows that refusals are about -------------------------------------------------------------------------------------


def fact(*facts, words=""):
    return Some(lambda row: any(one in row.facts for one in facts), words)


def of(*names):
    return Some(lambda row: row.estimator in names)


def but(*names):
    return Some(lambda row: row.estimator not in names)


def either(*tests, words=""):
    return Some(lambda row: any(test(row) for test in tests), words)


WITH_VECTORS = tuple(name for name in mercer.estimators.__all__ if issubclass(getattr(mercer, name), DualMachine))
DUAL = tuple(name for name in WITH_VECTORS if not issubclass(getattr(mercer, name), MultipleKernelMachine))
NOVELTY = tuple(name for name in WITH_VECTORS if issubclass(getattr(mercer, name), NoveltyDetector))
IN_LIBSVM = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM")

without_targets = fact("transforms", "clusters")
feature_maps = fact("features")
calibrated = fact("calibrated")
wrapped = fact("search", "foreign search", "calibrated", "table", "pipeline")
process_classifier = of("GaussianProcessClassifier")
has_variances = of("GaussianProcessClassifier", "GaussianProcessRegressor", "RelevanceVectorRegressor")
precomputed = fact("precomputed", words="with a precomputed kernel")
strings = fact("strings", words="on strings")
without_columns = fact("precomputed", "strings", words="on strings or with a precomputed kernel")
kernel_sums = fact("sum", "learnt kernel", words="with a sum of kernels")
laplacian = fact("laplacian", words="with the Laplacian kernel")
foreign_kernels = fact("strings", "laplacian", "sum", words="on strings, with the Laplacian kernel or a sum of kernels")
several_outputs = fact("outputs", words="with several outputs")
several_quantiles = fact("quantiles", words="with several quantiles")
hard_margin = fact("hard margin", words="with a hard margin")
joint = fact("joint", words="where classes are trained jointly")
several_classes = Some(lambda row: row.classes > 2, "with several classes")
no_pairs = Some(
    lambda row: row.classes > 2 and (row.has("rest") or row.has("joint")),
    "with several classes other than one against one",
)
no_classes = Some(lambda row: not row.classifies, "for regressions")
linear_descent = Some(lambda row: row.has("linear", "descent") or row.has("linear", "pipeline"))
keeps_w = either(of("LinearSVC", "LinearSVR"), linear_descent, words="for a linear machine")
no_single_b = either(
    *(joint, hard_margin, of("NuSVC", "NuSVR", *NOVELTY)), words=f"{joint.words}, or {hard_margin.words}"
)
views_or_outputs = either(several_outputs, of("KernelCCA"), words=several_outputs.words)
other_than_linear = Some(
    lambda row: row.estimator in ("RLSClassifier", "RLSRegressor") and not row.has("linear"),
    "with kernels other than the linear one",
)

# --- refusals of several tools ----------------------------------------------------------------------------------------

NO_TARGET = Refusal(without_targets, "it learns no target", absent=True)
NO_FEATURES = Refusal(without_columns, "such samples have no features", "needs features")
OWN_DIAGONAL = Refusal(
    fact("own diagonal", words="with a kernel whose k(x, x) varies"), "f is then no sum of kernel values", "not linear"
)
EXPORTS = (
    Refusal(strings, "strings have no columns", "kernel"),
    Refusal(precomputed, "new samples would need the training samples", "kernel"),
    Refusal(kernel_sums, "a file holds a single kernel", "kernel"),
    Refusal(feature_maps, "a feature map predicts nothing", "not a machine"),
    Refusal(without_targets, "the estimator predicts no target", "has none"),
    Refusal(calibrated, "a file has no probabilities or intervals; export `estimator_` instead", "estimator_"),
    Refusal(process_classifier, "f depends on the variance of the process", "variance"),
)
GIVE_THE_MACHINE = Refusal(wrapped, "save the machine inside instead", "machine|model")
INTERVALS = (
    NO_TARGET,
    Refusal(of("GaussianProcessClassifier"), "it has probabilities", absent=True),
    Refusal(of("RankSVM"), "it predicts an order", absent=True),
    Refusal(calibrated, "the model is calibrated already", "already"),
    Refusal(several_outputs, "calibrate a model for each output", "one target"),
    Refusal(several_quantiles, "no single prediction is the middle of an interval; calibrate one quantile", "quantile"),
)
WEIGHTS = (
    Refusal(feature_maps, "`fit` takes no weights", absent=True),
    Refusal(fact("pipeline"), "scikit-learn passes weights to a step by the step's name", "stepname__parameter"),
)

# --- the tools, section by section ------------------------------------------------------------------------------------

FILES = [
    Tool(
        "save",
        "save, load",
        file_tools.save_and_load,
        "`mercer.save` and `mercer.load` return the same bits and attributes.",
        ("file", ".mercer"),
        (
            Refusal(feature_maps, "save it in a Pipeline with a machine, or pickle it", "Pipeline"),
            Refusal(fact("foreign search"), "save `best_estimator_` instead", "best_estimator_"),
        ),
    ),
    Tool("pickle", "pickle", file_tools.pickled, "The same bits come back.", ("pickle",)),
    Tool(
        "onnx",
        "ONNX",
        file_tools.onnx,
        '`mercer.save(model, "m.onnx")`: decision values and labels of onnxruntime are those of the model.',
        ("ONNX",),
        (*EXPORTS, Refusal(laplacian, "there is no operator for it", "kernel")),
    ),
    Tool(
        "c",
        "C",
        file_tools.c_file,
        '`mercer.save(model, "m.c")`: decision values and labels of the compiled file are those of the model.',
        ("C file",),
        EXPORTS,
    ),
    Tool(
        "model",
        "save as .model",
        file_tools.saved_as_model,
        '`mercer.save(model, "m.model")` and `mercer.load`, with integers as classes: a file of LIBLINEAR for its '
        "machines, of LIBSVM for others; both programs and mercer predict as the model does.",
        ("LIBSVM", "LIBLINEAR"),
        (
            GIVE_THE_MACHINE,
            Refusal(
                but(*IN_LIBSVM, "LinearSVC", "LinearSVR"), "neither LIBSVM nor LIBLINEAR has such a machine", "no model"
            ),
            Refusal(
                Some(lambda row: row.estimator in IN_LIBSVM and no_pairs(row), no_pairs.words),
                "a file holds a machine for each pair of classes",
                "pair",
            ),
            Refusal(foreign_kernels, "a file holds LIBSVM's own kernels", "kernel"),
        ),
    ),
    Tool(
        "libsvm",
        "LIBSVM",
        file_tools.libsvm,
        '`mercer.save(model, "m.model", format="libsvm")`, with integers as classes: LIBSVM and mercer read the file '
        "and predict as the model does.",
        ("LIBSVM",),
        (
            GIVE_THE_MACHINE,
            Refusal(but(*IN_LIBSVM), "LIBSVM has no such machine", "no model"),
            Refusal(no_pairs, "a file holds a machine for each pair of classes", "pair"),
            Refusal(foreign_kernels, "a file holds LIBSVM's own kernels", "kernel"),
        ),
    ),
    Tool(
        "svmlight",
        "SVMlight",
        file_tools.svmlight,
        '`mercer.save(model, "m.model", format="svmlight")`, with 1 and −1 as classes: the file\'s formula and '
        "mercer's reader predict as the model does.",
        ("SVMlight", "LIBSVM"),
        (
            GIVE_THE_MACHINE,
            Refusal(but(*IN_LIBSVM), "only machines that LIBSVM has can be written", "no model"),
            Refusal(several_classes, "a file holds one function", "one function|pair", about="svc|SVC"),
            Refusal(precomputed, "a file has no such kernel", "kernel", about="_sv[cr] with the kernel"),
            Refusal(foreign_kernels, "a file holds SVMlight's own kernels", "kernel"),
        ),
    ),
    Tool(
        "liblinear",
        "LIBLINEAR",
        file_tools.liblinear,
        '`mercer.save(model, "m.model", format="liblinear")`, with integers as classes: LIBLINEAR and mercer read the '
        "file and predict as the model does.",
        ("LIBLINEAR",),
        (Refusal(but("LinearSVC", "LinearSVR"), "a file holds only w and b of a linear machine", "LinearSVC"),),
    ),
]
EXPLANATIONS = [
    Tool(
        "explain",
        "explain",
        explain_tools.explain,
        "Shapley values, against the sum over all subsets of features.",
        ("explain",),
        (NO_TARGET, NO_FEATURES, OWN_DIAGONAL),
    ),
    Tool(
        "of_class",
        "of_class",
        explain_tools.of_class,
        "Shapley values for one class add up to the confidence in it.",
        ("explain", "class"),
        (
            NO_TARGET,
            NO_FEATURES,
            OWN_DIAGONAL,
            Refusal(no_classes, "there are no classes", "only classifiers", about="classifiers"),
        ),
    ),
    Tool(
        "gradient_importance",
        "gradient_ importance",
        explain_tools.gradient_importance,
        "The mean of |∂f/∂x|, against finite differences.",
        ("gradient_importance", "derivative", "explained"),
        (
            NO_TARGET,
            NO_FEATURES,
            OWN_DIAGONAL,
            Refusal(
                fact("table", "pipeline"),
                "derivatives are along the features of the machine inside; use the method of that machine",
                "the machine itself",
                about="features of the machine",
            ),
        ),
    ),
    Tool(
        "partial_dependence",
        "partial_ dependence",
        explain_tools.partial_dependence,
        "The mean of f over a grid, against a loop.",
        ("partial_dependence", "explained"),
        (NO_TARGET, NO_FEATURES, OWN_DIAGONAL),
    ),
    Tool(
        "reasons",
        "reasons",
        explain_tools.reasons,
        "The vectors that decide: all contributions add up to f minus b.",
        ("reasons", "vectors", "explained"),
        (NO_TARGET, OWN_DIAGONAL, Refusal(keeps_w, "the machine keeps w, and no vectors", "no vectors")),
    ),
]
JUDGING = [
    Tool(
        "margins",
        "margins",
        model_tools.margins,
        "Margins and slacks of samples, against s·f.",
        ("margins",),
        (
            NO_TARGET,
            Refusal(no_classes, "there are no classes", absent=True),
        ),
    ),
    Tool(
        "insight",
        "insight",
        model_tools.insight,
        "Bounds and complexities; the empirical risks are those of the public f.",
        ("insight", "margins"),
        (NO_TARGET,),
    ),
    Tool(
        "certify",
        "certify",
        model_tools.certify,
        "`mercer.certify` of the machine's own α gives the machine's certificate.",
        ("certify", "α", "alpha"),
        (
            Refusal(
                of("MKLClassifier", "MKLRegressor"),
                "α does not determine the weights of the kernels",
                "weights of several kernels",
            ),
            Refusal(but(*DUAL), "the machine is not trained through α", "dual variables α|best_estimator_"),
            Refusal(joint, "there is no α for each sample", "joint"),
        ),
    ),
]
REMAKING = [
    Tool(
        "compress",
        "compress",
        model_tools.compress,
        "`mercer.compress` to six vectors: f is no further off than the bound, and proven labels stay.",
        ("compress",),
        (
            Refusal(calibrated, "compress `estimator_` instead", "estimator_"),
            Refusal(precomputed, "there are no vectors", "precomputed", about="a precomputed kernel"),
            Refusal(without_targets, "there is no single f to approximate", "vectors"),
            Refusal(either(of("PegasosSVC"), keeps_w, words=keeps_w.words), "there are no vectors", "vectors"),
            Refusal(has_variances, "the variances need all vectors"),
        ),
    ),
    Tool(
        "calibrate",
        "calibrate",
        model_tools.calibrate,
        "Probabilities and intervals are Platt's sigmoids and CV+ of refits.",
        ("calibrat",),
        INTERVALS,
    ),
    Tool(
        "calibrate_weights",
        "calibrate with weights",
        model_tools.calibrate_weights,
        '`calibrate(…, cv="held-out", sample_weight=k)` counts a row k times, and not at all where k = 0.',
        ("calibrat",),
        INTERVALS,
    ),
]
CHOOSING = [
    Tool(
        "leave_one_out",
        "leave_one_out",
        model_tools.leave_one_out,
        "`mercer.leave_one_out` has the values of n refits.",
        ("leave_one_out", "leaving samples out", "loo_"),
        (
            Refusal(views_or_outputs, "train a model for each column of y", "one output", about="columns of y"),
            Refusal(several_quantiles, "train a model for each quantile", "quantile"),
            Refusal(
                of("MKLClassifier", "MKLRegressor"),
                "leaving out a sample changes the weights of the kernels",
                "kernel weights",
            ),
            Refusal(
                either(but(*WITH_VECTORS), wrapped),
                "the model has no α of its own to remove",
                "support vectors|best_estimator_",
            ),
            Refusal(
                no_single_b,
                "the problem does not have a single b and finite bounds",
                "at most one b",
            ),
        ),
    ),
    Tool(
        "tune",
        "tune",
        model_tools.tune,
        "Mean scores of `mercer.tune` are those of refits, fold by fold.",
        ("tune", "scoring"),
        (
            Refusal(views_or_outputs, "tune a model for each column of y", "target|column", about="y has"),
            Refusal(
                either(without_targets, of("TunedOneClassSVM")), "the estimator has no score; pass `scoring`", "scor"
            ),
        ),
    ),
    Tool(
        "path",
        "paths",
        model_tools.path,
        "f at any C of `svm_path` and `linear_path`, or λ of `path_`, is that of a fit.",
        ("path",),
        (
            Refusal(but("SVC", "LinearSVC", "RLSClassifierCV", "RLSRegressorCV"), "there is none", absent=True),
            Refusal(fact("squared slack", words='with slack="l2"'), "α is not piecewise linear in C", "slack='l2'"),
            Refusal(
                Some(lambda row: row.has("joint") and row.estimator == "SVC", joint.words),
                "a path describes one plane",
                "has no path",
            ),
            Refusal(
                Some(lambda row: row.classes > 2 and row.estimator in ("SVC", "LinearSVC"), several_classes.words),
                "a path describes one plane",
                "two classes",
                about="y has",
            ),
        ),
    ),
]
TRAINING = [
    Tool(
        "clone",
        "clone, refit",
        fit_tools.clone_and_refit,
        "A clone trained on the same rows, or a model trained a second time, predicts the same bits.",
        ("clone",),
    ),
    Tool(
        "frames",
        "frames",
        fit_tools.frames,
        "Columns of pandas and polars in another order are found by name, or refused by name.",
        ("frame",),
        (Refusal(without_columns, "such samples have no columns", absent=True),),
    ),
    Tool(
        "set_params",
        "set_params after fit",
        fit_tools.set_params_after_fit,
        "Parameters set after a fit are for the next fit: no prediction and no margin changes.",
        ("set_params",),
    ),
    Tool(
        "weights",
        "weights",
        fit_tools.weights_as_copies,
        "`sample_weight=k` is k copies of a row.",
        ("sample_weight",),
        WEIGHTS,
    ),
    Tool(
        "weight_zero",
        "weight 0",
        fit_tools.weight_zero,
        "A row of weight 0 is a row left out.",
        ("sample_weight",),
        WEIGHTS,
    ),
    Tool(
        "partial_fit",
        "partial_fit",
        fit_tools.partial_fit,
        "Two parts one after the other give the f of one fit; `PegasosSVC` gives nearly the same f.",
        ("partial_fit",),
        (
            Refusal(precomputed, "new samples would need kernel values with all others", absent=True),
            Refusal(other_than_linear, "only the linear machine can continue", absent=True),
            Refusal(
                but(*WITH_VECTORS, "PegasosSVC", "RLSClassifier", "RLSRegressor"), "it is not offered", absent=True
            ),
        ),
    ),
    Tool(
        "forget",
        "forget",
        fit_tools.forget,
        "After rows are removed, f is that of a fit without them.",
        ("forget",),
        (
            Refusal(other_than_linear, "only the linear machine can continue", absent=True),
            Refusal(but(*WITH_VECTORS, "RLSClassifier", "RLSRegressor"), "it is not offered", absent=True),
        ),
    ),
    Tool(
        "warm_start",
        "warm_start",
        fit_tools.warm_start,
        "A fit that starts from the solution at another C, ν or λ ends with the f of a fit from scratch.",
        ("warm_start",),
        (Refusal(but(*WITH_VECTORS), "there is no such parameter", absent=True),),
    ),
]
ENGINES = [
    Tool(
        "device",
        "torch",
        engine_tools.on_device,
        '`config_context(device="torch-cpu")`, and tensors: f of a machine that is trained on the host.',
        ("cpu", "torch", "device"),
        (Refusal(strings, "strings stay on the host", "strings", about="strings"),),
    ),
    Tool(
        "dask",
        "Dask",
        engine_tools.on_dask,
        "Dask arrays in uneven chunks on two processes: f of the host.",
        ("Dask",),
        (
            Refusal(strings, "there are no arrays of strings", absent=True),
            Refusal(
                fact("table"), "a table must be in memory; call `compute()` on a Dask frame", r"compute\(\)", "Dask"
            ),
        ),
    ),
]

SECTIONS = {
    "Files": FILES,
    "Explanations": EXPLANATIONS,
    "Judging a model": JUDGING,
    "Remaking a model": REMAKING,
    "Choosing parameters": CHOOSING,
    "Training": TRAINING,
    "Engines": ENGINES,
}
TOOLS = {tool.key: tool for tools in SECTIONS.values() for tool in tools}
