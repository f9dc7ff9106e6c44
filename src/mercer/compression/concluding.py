"""From an expansion on fewer vectors to a fitted machine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from mercer.arrays import Floats, freeze, n_samples
from mercer.compression.distance import apart_at, lengths_of, longest
from mercer.expansion import Expansion
from mercer.fitting.pipeline.machine import CompressionRecord
from mercer.fitting.pipeline.state import check_state
from mercer.kernels.matrices import dense

# What stays true of a machine on fewer vectors; the rest speaks of training samples, or of a solve.
KEPT = frozenset(
    [
        *("n_features_in_", "feature_names_in_", "kernel_", "_expansion_", "intercept_", "classes_", "class_weight_"),
        *("_per_class_", "offset_", "radius_", "diagonal_", "quantiles_", "_flat_", "epsilon_", "nu_"),
        *("equivalent_C_", "_loss_", "lam_", "best_params_"),
    ]
)


def compressed(model: Any, found: Expansion, error: Floats, *, removed: int, moved: bool, retrained: bool) -> Any:
    """A copy of a fitted machine that decides by another expansion; `error` is at least ‖w − w'‖ of each output."""
    original: Expansion = model._expansion_
    change = np.abs(original.b - found.b) * (1 + 2.0**-52)
    lengths = lengths_of(original.kernel, original.vectors, dense(original.coefficients))
    ends = apart_at(found.vectors, original, found)
    record = CompressionRecord(n_samples(original.vectors), removed, moved, retrained, error, change, lengths, ends)
    proof = vars(model).get("certificate_")
    earlier: CompressionRecord | None = vars(model).get("_compression_")
    if earlier is not None:  # errors add up to what the first machine is away at most
        record = replace(
            record,
            n_before=earlier.n_before,
            removed=earlier.removed + removed,
            moved=earlier.moved or moved,
            retrained=earlier.retrained or retrained,
            error=(earlier.error + error) * (1 + 2.0**-52),
            b_change=(earlier.b_change + change) * (1 + 2.0**-52),
            lengths=earlier.lengths,
            at_vectors=(ends + earlier.error * longest(original.kernel, found.vectors)) * (1 + 2.0**-51),
        )
        proof = vars(model).get("_original_certificate_")
    for part in (record.error, record.b_change, record.lengths, record.at_vectors):
        freeze(part)
    made = clone(model)
    for name, value in vars(model).items():
        if name in KEPT:
            setattr(made, name, value)
    made._expansion_ = found
    made.intercept_ = freeze(np.array(found.b))
    made._compression_ = record
    if proof is not None:
        made._original_certificate_ = proof
    _follow(made)
    check_state(made)
    return made


def _follow(made: Any) -> None:
    """Attributes that follow from b and w."""
    if hasattr(made, "radius_"):
        square = max(0.0, 2.0 * float(made.intercept_[0]) + float(made._expansion_.norms()[0]) ** 2)
        made.radius_, made.offset_ = float(np.sqrt(square)), -square
    elif hasattr(made, "offset_"):
        made.offset_ = -float(made.intercept_[0])
