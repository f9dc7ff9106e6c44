"""Estimators by LIBSVM's names: one line for each machine, with the parameters that it takes."""

from __future__ import annotations

import argparse
from typing import Any, Final

from mercer import estimators

# LIBSVM's names, in the order of its -s; the estimator, and those it takes of the options C, nu, epsilon (-c, -n, -p)
# and class weights (-wi).
MACHINES: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "c_svc": ("SVC", ("C", "class_weight")),
    "nu_svc": ("NuSVC", ("nu",)),
    "one_class": ("OneClassSVM", ("nu",)),
    "epsilon_svr": ("SVR", ("C", "epsilon")),
    "nu_svr": ("NuSVR", ("C", "nu")),
}
KERNELS: Final = ("linear", "poly", "rbf", "sigmoid", "precomputed")  # in the order of its -t
CLASSIFIERS: Final = ("c_svc", "nu_svc")
REGRESSORS: Final = ("epsilon_svr", "nu_svr")


def build(args: argparse.Namespace, gamma: Any, class_weight: dict[Any, float] | None) -> Any:
    """The unfitted estimator that the options ask for."""
    name, taken = MACHINES[args.machine]
    given = {"C": args.C, "nu": args.nu, "epsilon": args.epsilon, "class_weight": class_weight}
    own = {name: given[name] for name in taken}
    return getattr(estimators, name)(
        kernel=args.kernel,
        degree=args.degree,
        gamma=gamma,
        coef0=args.coef0,
        tol=args.tol,
        cache_size=args.cache_size,
        shrinking=bool(args.shrinking),
        **own,
    )


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
