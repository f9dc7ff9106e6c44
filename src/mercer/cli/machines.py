"""Estimators by name: one line for each machine, with the options that it takes."""

from __future__ import annotations

import argparse
from difflib import get_close_matches
from typing import Any, Final

from mercer import estimators

ClassWeight = dict[Any, float] | str | None
Estimator = Any  # of mercer, or a model or Pipeline around one
# The estimator, and the options that it takes beside those of kernels and of the fit. First LIBSVM's machines, in the
# order of its -s; then those that only .mercer files hold.
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
# What people call them who do not come from LIBSVM.
ALIASES: Final = dict.fromkeys(("svc", "svm", "classification", "classifier"), "c_svc") | dict.fromkeys(
    ("svr", "regression", "regressor"), "epsilon_svr"
)
KERNELS: Final = ("linear", "poly", "rbf", "sigmoid", "precomputed")  # in the order of LIBSVM's -t
CLASSIFIERS: Final = ("c_svc", "nu_svc", "linear_svc", "rls_classifier")
REGRESSORS: Final = ("epsilon_svr", "nu_svr", "linear_svr", "quantile_svr", "rls")
# Options that LIBSVM does not have, and what they are called in Python where that differs.
OWN_OPTIONS: Final = {name: name for name in ("slack", "bias", "multiclass", "loss", "lam")} | {"quantile": "quantiles"}
# What these are for LIBSVM's machines, which its files hold.
_IN_LIBSVM: Final = {"slack": "l1", "bias": "free", "multiclass": "ovo", "loss": "epsilon_insensitive"}
_BIASES: Final = {"free": True, "none": False, "regularized": "regularized", "regularised": "regularized"}


def machine_name(text: str) -> str:
    """The machine that a word stands for; ArgumentTypeError, with what may have been meant, where it is none."""
    word = text.lower().replace("-", "_")
    name = ALIASES.get(word, word)
    if name in MACHINES or name == AUTO:
        return name
    close = get_close_matches(word, [*MACHINES, *ALIASES, AUTO], n=1)
    meant = f" (did you mean {close[0]}?)" if close else ""
    raise argparse.ArgumentTypeError(
        f"invalid choice: {text!r}{meant}; there are auto, svc, svr, {', '.join(MACHINES)}"
    )


def is_own(args: argparse.Namespace) -> bool:
    """Whether the options ask for what LIBSVM does not have."""
    return args.machine not in LIBSVM_MACHINES or any(
        getattr(args, name) not in (None, _IN_LIBSVM.get(name)) for name in OWN_OPTIONS
    )


def machine_of(model: Estimator) -> Estimator:
    """The machine itself: the last step of a pipeline, or what a table or a calibration holds, fitted if that is."""
    while True:
        steps = getattr(model, "steps", None)
        inner = steps[-1][1] if steps else getattr(model, "estimator_", getattr(model, "estimator", None))
        if inner is None:
            return model
        model = inner


def build(args: argparse.Namespace, gamma: float | str, class_weight: ClassWeight) -> Estimator:
    """The unfitted estimator that the options ask for."""
    name, taken = MACHINES[args.machine]
    made = getattr(estimators, name)
    known = made().get_params()
    _check_options(args, taken, "kernel" in known)
    values = {**vars(args), "gamma": gamma, "class_weight": class_weight, "shrinking": bool(args.shrinking)}
    own: dict[str, Any] = {name: values[name] for name in ("C", "nu", "epsilon", "class_weight") if name in taken}
    for option, parameter in OWN_OPTIONS.items():
        if (value := values[option]) is not None:
            own[parameter] = _BIASES[value] if option == "bias" else value
    common = ("kernel", "degree", "gamma", "coef0", "tol", "cache_size", "shrinking")
    return made(**{name: values[name] for name in common if name in known}, **own)


def _check_options(args: argparse.Namespace, taken: tuple[str, ...], has_kernel: bool) -> None:
    """Complain of what this machine does not take."""
    for option in OWN_OPTIONS:
        if getattr(args, option) is not None and option not in taken:
            others = ", ".join(machine for machine, (_, names) in MACHINES.items() if option in names)
            raise ValueError(f"--{option} is for {others}, not for {args.machine}")
    if not has_kernel and args.kernel not in ("rbf", "linear"):  # rbf is what stands there if nothing is said
        raise ValueError(f"{args.machine} has no kernel: leave out --kernel {args.kernel}, or choose another machine")
    if args.weight and "class_weight" not in taken and args.machine not in LIBSVM_MACHINES:
        raise ValueError(f"--weight is for classifiers, not for {args.machine}")


def class_weights(weights: list[tuple[str, float]], classes: Any) -> tuple[dict[Any, float] | None, list[str]]:
    """The weights by class as the labels spell it, and the classes named that no row has."""
    found: dict[Any, float] = {}
    unknown = []
    for text, weight in weights:
        matching = [label for label in classes if str(label) == text or _same_number(label, text)]
        if matching:
            found[matching[0]] = weight
        else:
            unknown.append(text)
    return found or None, unknown


def _same_number(label: Any, text: str) -> bool:
    try:
        return not isinstance(label, str) and float(label) == float(text)
    except ValueError:
        return False
