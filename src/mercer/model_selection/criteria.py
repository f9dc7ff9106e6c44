"""What the points of a grid can be judged by: their names, and what each of them takes; see `without_folds`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline

CRITERIA: Final = ("folds", "loo", "xi-alpha", "span", "span-bound", "radius-margin", "margin-bound")


def check_criterion(
    estimator: Any, criterion: str, given: dict[str, bool], points: Sequence[Mapping[str, Any]] = ({},)
) -> None:
    """Complain of what only folds have, and where no point of the grid can be judged.

    `given` says of each argument whether it was given.
    """
    if criterion == "folds":
        return
    if isinstance(estimator, Pipeline):
        raise ValueError(
            f"criterion={criterion!r} judges a machine by the samples it is trained on, but the other steps of a "
            "Pipeline would have seen the sample that is left out; use criterion='folds', or give the machine alone"
        )
    wrong = [name for name, here in given.items() if here and not (name == "scoring" and criterion == "loo")]
    if wrong:
        raise ValueError(f"{', '.join(wrong)}: this is for criterion='folds', not {criterion!r}; leave it out")
    if criterion != "loo" and not is_classifier(estimator):
        raise ValueError(f"criterion={criterion!r} is for classifiers; 'loo' and 'folds' judge any machine")
    reasons = [refusal(estimator, criterion, point) for point in points]
    if all(reasons):
        raise ValueError(reasons[0])


def refusal(machine: Any, criterion: str, params: Mapping[str, Any]) -> str | None:
    """Why the criterion says nothing of the machine with these parameters, or None."""
    slack, bias = (params.get(name, getattr(machine, name, None)) for name in ("slack", "bias"))
    known = ("l1", "l2") if criterion == "radius-margin" else ("l1",)
    if criterion in ("xi-alpha", "span", "span-bound", "radius-margin") and slack not in known:
        told = " or ".join(map(repr, known))
        instead = ", and 'radius-margin', a bound for slack='l2'," if slack == "l2" else ""
        return (
            f"criterion={criterion!r} is for SVC with slack={told}, not {type(machine).__name__} with slack={slack!r}; "
            f"'folds' and 'loo'{instead} judge it"
        )
    if criterion == "span-bound" and bias is not True:
        return f"criterion='span-bound' is for bias=True, not {bias!r}; 'xi-alpha' bounds the errors of this machine"
    if criterion == "margin-bound" and bias is True:
        return (
            "criterion='margin-bound' is no bound where b is free and not part of ‖w‖, so that it would choose by "
            "numbers that say nothing; use bias='regularized' or bias=False, or criterion='folds'"
        )
    return None
