"""Products with a block of K whose values the core computes and adds up at once, without storing them."""

from __future__ import annotations

import numpy as np

from mercer.places.host.prepared import PreparedSamples
from mercer.samples.arrays import Floats, Indices, Precision


def fused_sums(
    prepared: PreparedSamples, rows: Indices, J: Indices, coefficients: Floats, precision: Precision, chunk: int
) -> Floats | None:
    """Return K[rows, J] times each row of coefficients; None if numbers are too large for the core.

    Several sums share the kernel values. At most `chunk` rows, and as many columns, are prepared at a time, unless all
    samples are prepared already.
    """
    # In float32, values of a Gaussian kernel always come from inner products, as `add_two` needs.
    has_pass_for_two = prepared.lowering.recipe.ending == "gaussian" and precision == np.float32
    totals = np.zeros((len(coefficients), len(rows)))
    for top in range(0, len(rows), chunk):
        row_samples, row_positions = prepared.prepare_rows(rows[top : top + chunk], precision)
        if row_samples is None:
            return None
        columns, total = row_samples.columns(row_positions), np.zeros((len(coefficients), len(row_positions)))
        for left in range(0, len(J), chunk):
            samples, positions = prepared.prepare_rows(J[left : left + chunk], precision)
            if samples is None:
                return None
            part = np.ascontiguousarray(coefficients[:, left : left + chunk])
            if len(part) == 1:
                samples.add(total[0], columns, positions, part[0])
            elif len(part) == 2 and has_pass_for_two:
                samples.add_two(total, columns, positions, part)
            else:
                samples.add_several(total, columns, positions, part)
        totals[:, top : top + chunk] = total
    return totals
