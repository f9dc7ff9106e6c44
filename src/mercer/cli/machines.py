"""Estimators that the commands can train: their names on the command line and the options that each takes."""

from __future__ import annotations

import argparse
from difflib import get_close_matches
from typing import Any, Final

from mercer import estimators

ClassWeight = dict[Any, float] | str | None
Estimator = Any  # a mercer estimator, or a model or Pipeline that contains one
# Name on the command line: the estimator, and the options that it takes besides those for the kernel and the solver.
# LIBSVM's machines come first, in the order of its -s; only .mercer files can store the others.
MACHINES: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "c_svc": ("SVC", ("C", "class_weight", "slack", "bias", "multiclass")),
    "nu_svc": ("NuSVC", ("nu",)),
    "one_class": ("OneClassSVM", ("nu",)),
    "epsilon_svr": ("SVR", ("C", "epsilon", "bias", "loss")),
    "nu_svr": ("NuSVR", ("C", "nu")),
    "linear_svc": ("LinearSVC", ("C", "class_weight", "bias", "multiclass", "loss")),
    "linear_svr": ("LinearSVR", ("C", "epsilon", "bias", "loss")),
    "quantile_svr": ("QuantileSVR", ("C", "quantile", "bias")),
    "svdd": ("SVDD", ("nu",)),
    "rls": ("RLSRegressor", ("lam", "bias")),
    "rls_classifier": ("RLSClassifier", ("lam", "bias", "class_weight")),
}
LIBSVM_MACHINES: Final = tuple(MACHINES)[:5]
AUTO: Final = "auto"
# Names that users of other libraries may type.
ALIASES: Final = dict.fromkeys(("svc", "svm", "classification", "classifier"), "c_svc") | dict.fromkeys(
    ("svr", "regression", "regressor"), "epsilon_svr"
)
KERNELS: Final = ("linear", "poly", "rbf", "sigmoid", "precomputed")  # in the order of LIBSVM's -t
CLASSIFIERS: Final = ("c_svc", "nu_svc", "linear_svc", "rls_classifier")
REGRESSORS: Final = ("epsilon_svr", "nu_svr", "linear_svr", "quantile_svr", "rls")
# Options that LIBSVM does not have, and the names of their parameters in Python.
EXTRA_OPTIONS: Final = {name: name for name in ("slack", "bias", "multiclass", "loss", "lam")} | {
    "quantile": "quantiles"
}
# Values of these options with which LIBSVM trains its machines.
_LIBSVM_VALUES: Final = {"slack": "l1", "bias": "free", "multiclass": "ovo", "loss": "epsilon_insensitive"}
_BIASES: Final = {"free": True, "none": False, "regularized": "regularized", "regularised": "regularized"}


def machine_name(text: str) -> str:
    """Return the machine that a word stands for; raise ArgumentTypeError with a suggestion for an unknown word."""
    word = text.lower().replace("-", "_")
    name = ALIASES.get(word, word)
    if name in MACHINES or name == AUTO:
        return name
    similar_names = get_close_matches(word, [*MACHINES, *ALIASES, AUTO], n=1)
    suggestion = f" (did you mean {similar_names[0]}?)" if similar_names else ""
    raise argparse.ArgumentTypeError(
        f"invalid choice: {text!r}{suggestion}; choose from auto, svc, svr, {', '.join(MACHINES)}"
    )


def needs_mercer_file(args: argparse.Namespace) -> bool:
    """Return True if LIBSVM has no such machine, so that only a .mercer file can store it."""
    return args.machine not in LIBSVM_MACHINES or any(
        getattr(args, name) not in (None, _LIBSVM_VALUES.get(name)) for name in EXTRA_OPTIONS
    )


def machine_of(model: Estimator) -> Estimator:
    """Return the machine inside a pipeline, a table model or a calibrated model; fitted if the model is fitted."""
    while True:
        steps = getattr(model, "steps", None)
        inner = steps[-1][1] if steps else getattr(model, "estimator_", getattr(model, "estimator", None))
        if inner is None:
            return model
        model = inner


def build_estimator(args: argparse.Namespace, gamma: float | str, class_weight: ClassWeight) -> Estimator:
    """Return the unfitted estimator that the options describe."""
    name, option_names = MACHINES[args.machine]
    estimator_class = getattr(estimators, name)
    parameter_names = estimator_class().get_params()
    _check_options(args, option_names, "kernel" in parameter_names)
    values = {**vars(args), "gamma": gamma, "class_weight": class_weight, "shrinking": bool(args.shrinking)}
    parameters: dict[str, Any] = {
        name: values[name] for name in ("C", "nu", "epsilon", "class_weight") if name in option_names
    }
    for option, parameter in EXTRA_OPTIONS.items():
        if (value := values[option]) is not None:
            parameters[parameter] = _BIASES[value] if option == "bias" else value
    common = ("kernel", "degree", "gamma", "coef0", "tol", "cache_size", "shrinking")
    return estimator_class(**{name: values[name] for name in common if name in parameter_names}, **parameters)


def _check_options(args: argparse.Namespace, option_names: tuple[str, ...], has_kernel: bool) -> None:
    """Raise for an option that this machine does not take."""
    for option in EXTRA_OPTIONS:
        if getattr(args, option) is not None and option not in option_names:
            others = ", ".join(machine for machine, (_, names) in MACHINES.items() if option in names)
            raise ValueError(f"--{option} is for {others}, not for {args.machine}")
    if not has_kernel and args.kernel not in ("rbf", "linear"):  # rbf is the default
        raise ValueError(f"{args.machine} has no kernel: leave out --kernel {args.kernel}, or choose another machine")
    if args.weight and "class_weight" not in option_names and args.machine not in LIBSVM_MACHINES:
        raise ValueError(f"--weight is for classifiers, not for {args.machine}")


def class_weights(weights: list[tuple[str, float]], classes: Any) -> tuple[dict[Any, float] | None, list[str]]:
    """Return the weights by class label, and the named classes that no row has."""
    by_class: dict[Any, float] = {}
    unknown = []
    for text, weight in weights:
        matching = [label for label in classes if str(label) == text or _same_number(label, text)]
        if matching:
            by_class[matching[0]] = weight
        else:
            unknown.append(text)
    return by_class or None, unknown


def _same_number(label: Any, text: str) -> bool:
    """Return whether the text stands for a label that is a number."""
    try:
        return not isinstance(label, str) and float(label) == float(text)
    except ValueError:
        return False
