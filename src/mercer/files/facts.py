"""How facts about models of every format are told."""

from __future__ import annotations

from typing import Any

from mercer.arrays import Floats
from mercer.data.labels import every_pair


def margins_told(norms: Floats, names: list[str]) -> dict[str, Any]:
    """1/‖w‖ of each output; an indefinite kernel has no feature space, and there may be no margin to speak of."""
    widths = [1 / norm if norm > 0 else None for norm in norms.tolist()]
    return {"margin": widths[0]} if len(widths) == 1 else {"margins": dict(zip(names, widths, strict=True))}


def pair_names(labels: Any) -> list[str]:
    """The pairs of classes, in LIBSVM's order."""
    return [f"{labels[i]} against {labels[j]}" for i, j in every_pair(len(labels))]
