"""Fits and predictions of 100 to 2,000 rows, where a library's own overhead counts."""

from __future__ import annotations

from functools import partial
from typing import Any

import harness
import numpy as np
import tasks
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from truth import Setting

SETS = ("mixture 100", "iris", "mixture 300", "breast cancer", "mixture 1000", "digits", "mixture 2000")
_LOADERS = {"iris": load_iris, "breast cancer": load_breast_cancer, "digits": load_digits}


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Standardised samples and their classes."""
    if name.startswith("mixture"):
        task = tasks.mixture(int(name.split()[1]), n_test=0)
        return task.X, task.y
    X, y = _LOADERS[name](return_X_y=True)
    deviation = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0), y


def measure(name: str, competitors: dict[str, Any], repeats: int) -> dict[str, Any]:
    """Seconds of each competitor: a fit, the prediction of one row, and of all; the least of `repeats`."""
    X, y = load(name)
    setting = Setting(1.0, 1.0 / (X.shape[1] * X.var()))
    prepared = {one: (peer.prepare(X, y), peer.prepare(X[:1])) for one, peer in competitors.items()}
    models = {one: peer.fit(prepared[one][0], setting) for one, peer in competitors.items()}
    calls = {
        "fit": {one: partial(peer.fit, prepared[one][0], setting) for one, peer in competitors.items()},
        "one row": {one: partial(peer.predict, models[one], prepared[one][1]) for one, peer in competitors.items()},
        "all rows": {one: partial(peer.predict, models[one], prepared[one][0]) for one, peer in competitors.items()},
    }
    timings = {what: harness.interleave(some, repeats) for what, some in calls.items()}
    seconds = {what: {one: timing.best for one, timing in some.items()} for what, some in timings.items()}
    labels = [timing.result for timing in timings["all rows"].values()]
    agree = float(min(np.mean(labels[0] == other) for other in labels))
    record = {"data": name, "n": len(y), "d": X.shape[1], "classes": len(np.unique(y)), "seconds": seconds}
    return record | {"share of equal labels": agree}
