"""Names of the criteria of a search, and the machines and options that each of them accepts; see `without_folds`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline

CRITERIA: Final = ("folds", "loo", "xi-alpha", "span", "span-bound", "radius-margin", "margin-bound")


def check_criterion(
    estimator: Any, criterion: str, passed: dict[str, bool], points: Sequence[Mapping[str, Any]] = ({},)
) -> None:
    """Raise ValueError if the user passed an option that only folds have, or the criterion applies to no grid point.

    `passed` maps the name of each option of `tune` to whether the user passed it.
    """
    if criterion == "folds":
        return
    if isinstance(estimator, Pipeline):
        raise ValueError(
            f"criterion={criterion!r} leaves samples out of the machine only: the other steps of the Pipeline would "
            "have seen them; use criterion='folds', or pass the machine alone"
        )
    unsupported = [name for name, used in passed.items() if used and not (name == "scoring" and criterion == "loo")]
    if unsupported:
        raise ValueError(f"{', '.join(unsupported)} needs criterion='folds', not {criterion!r}; leave it out")
    if criterion != "loo" and not is_classifier(estimator):
        raise ValueError(f"criterion={criterion!r} is for classifiers; use 'loo' or 'folds'")
    reasons = [refusal(estimator, criterion, point) for point in points]
    if all(reasons):
        raise ValueError(reasons[0])


def refusal(machine: Any, criterion: str, params: Mapping[str, Any]) -> str | None:
    """Return the reason why the criterion does not apply to the machine with these parameters, or None."""
    slack, bias = (params.get(name, getattr(machine, name, None)) for name in ("slack", "bias"))
    allowed_slacks = ("l1", "l2") if criterion == "radius-margin" else ("l1",)
    if criterion in ("xi-alpha", "span", "span-bound", "radius-margin") and slack not in allowed_slacks:
        allowed_text = " or ".join(map(repr, allowed_slacks))
        alternatives = "'folds', 'loo' or 'radius-margin'" if slack == "l2" else "'folds' or 'loo'"
        return (
            f"criterion={criterion!r} is for SVC with slack={allowed_text}, not {type(machine).__name__} with "
            f"slack={slack!r}; use {alternatives}"
        )
    if criterion == "span-bound" and bias is not True:
        return f"criterion='span-bound' is for bias=True, not {bias!r}; use 'xi-alpha'"
    if criterion == "margin-bound" and bias is True:
        return (
            "criterion='margin-bound' is no bound for a free bias, which is not part of ‖w‖; use bias='regularized' or "
            "bias=False, or criterion='folds'"
        )
    return None
