"""What the points of a grid can be judged by: their names, and what each of them takes; see `without_folds`."""

from __future__ import annotations

from typing import Any, Final

from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline

CRITERIA: Final = ("folds", "loo", "xi-alpha", "span", "span-bound", "radius-margin", "margin-bound")


def check_criterion(estimator: Any, criterion: str, given: dict[str, bool]) -> None:
    """Complain of what only folds have; `given` says of each argument whether it was given."""
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
