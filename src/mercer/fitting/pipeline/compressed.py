"""What a compressed machine keeps of the one that it was compressed from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mercer.arrays import Floats
from mercer.errors import ModelFormatError

if TYPE_CHECKING:
    from mercer.fitting.pipeline.machine import Machine

# What stays true of a machine on fewer vectors; the rest speaks of training samples, or of a solve.
KEPT = frozenset(
    [
        *("n_features_in_", "feature_names_in_", "kernel_", "_expansion_", "intercept_", "classes_", "class_weight_"),
        *("_per_class_", "offset_", "radius_", "diagonal_", "quantiles_", "_flat_", "epsilon_", "nu_"),
        *("equivalent_C_", "_loss_", "lam_", "best_params_"),
    ]
)


@dataclass(frozen=True, eq=False)
class CompressionRecord:
    """Numbers of a compression; arrays have one for each output."""

    n_before: int  # vectors of the original
    removed: int  # of which were removed without an error but rounding
    moved: bool  # whether positions were found by gradient
    retrained: bool
    error: Floats  # at least ‖w − w'‖
    b_change: Floats  # |b − b'|
    lengths: Floats  # at least Σ |β_j| √k(x_j, x_j) of the original
    at_vectors: Floats  # at least |⟨w − w', φ(z)⟩| at the vectors z that are kept: about zero for a projection

    def check(self, name: str) -> None:
        """An error for numbers that no compression has."""
        for part in ("error", "b_change", "lengths", "at_vectors"):
            if not (getattr(self, part) >= 0).all():
                raise ModelFormatError(f"{name}.{part} must not be negative")
        if self.removed > self.n_before:
            raise ModelFormatError(f"{name}.removed must be at most n_before")


def missing_since_compressed(machine: Machine, name: str) -> AttributeError:
    """Why a compressed machine lacks this attribute."""
    instead = ""
    if name == "certificate_":
        instead = "; its certificate is compression_.original_certificate"
    return AttributeError(
        f"this {type(machine).__name__} was compressed, and {name} belongs to the original, which was trained on the "
        f"samples{instead}. Ask the original machine"
    )
