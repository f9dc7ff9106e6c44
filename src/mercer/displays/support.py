"""Which rows of a picture are support vectors of the machine inside a model, free or bounded."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import is_sparse
from mercer.fitting.pipeline.state import chosen_of
from mercer.fitting.reports.dual_margins import free_vectors
from mercer.tables.estimator import Tabular


def machine_and_rows(model: Any, X: Any) -> tuple[Any, Any]:
    """The machine inside a Pipeline, a search or a model of a table, and X as it sees it."""
    while True:
        model = chosen_of(model)
        if hasattr(model, "steps"):
            model, X = model[-1], model[:-1].transform(X) if len(model) > 1 else X
        elif isinstance(model, Tabular):
            model, X = model.estimator_, model.encode(X)
        else:
            return model, X


def rings(machine: Any, X: Any) -> tuple[Any, Any]:
    """Rows of X, as the machine sees them, that are free and bounded support vectors; None where it has none."""
    vectors = getattr(machine, "support_vectors_", None)
    if vectors is None or vectors.shape[1:] != np.shape(X)[1:]:
        return None, None
    rows = _dense(vectors)
    free = dict(zip((row.tobytes() for row in rows), _free(machine).tolist(), strict=True))
    kinds = [free.get(row.tobytes()) for row in _dense(X)]
    # Two of them, which the checker cannot count in a generator.
    return tuple(np.flatnonzero([kind is wanted for kind in kinds]) for wanted in (True, False))  # type: ignore[return-value]  # two of them


def _dense(rows: Any) -> Any:
    return np.ascontiguousarray(rows.toarray() if is_sparse(rows) else rows, dtype=np.float64) + 0.0  # no −0


def _free(machine: Any) -> Any:
    """Which support vectors are inside their box in the machine of some pair."""
    free = free_vectors(machine)
    if free is not None:
        return free
    size = np.abs(machine.dual_coef_)
    box = np.full(size.shape[1], size.max(initial=0.0))  # LIBSVM's files do not say C; the largest is at it
    if hasattr(machine, "certificate_"):  # a joint machine
        box = np.repeat(machine.C * np.asarray(machine.class_weight_), machine.n_support_)
    return ((size > 0) & (size < box * (1 - 1e-9))).any(axis=0)
