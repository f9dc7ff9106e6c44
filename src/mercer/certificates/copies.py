"""The proof for the coefficients of copies, which are rounded shares of what was solved and certified.

Rows that were given several times are one sample in training. If the coefficients of its copies add up to β_j + δ_j,
their f differs from the certified one by no more than

    |Kδ|_i ≤ s_i = r_i Σ_j |δ_j| r_j,   where |K_ij| ≤ r_i r_j

so that no gradient is off by more than s_i, no loss by more than s_i times the largest multiplier that it can have, and
½β'Kβ by no more than Σ_i |β_i| s_i + ½ (Σ_j |δ_j| r_j)². Every equality is off by no more than Σ|δ_j|. A joint machine
has that for each class. Its losses are about differences of two f, and Weston and Watkins' about as many as there are
other classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.certificates.certificate import BOX, EQUALITY, Certificate, allowing_for
from mercer.certificates.table import CertificateTable
from mercer.places.rounding import DOUBLE
from mercer.problems.multiclass import JointProblem
from mercer.samples.arrays import Floats, Indices

# A share and its product with a coefficient are rounded; a little more for the sums here.
_ROUNDOFF = 4 * DOUBLE


@dataclass(frozen=True, eq=False)
class Lacking:
    """Of each problem: Σ|δ_j|, Σ|δ_j| r_j, and the most that a copy's own d_iβ_i differs from that of its sample."""

    sums: Floats
    lengths: Floats
    curved: Floats


@dataclass(frozen=True, eq=False)
class Variables:
    """All variables of one problem after another, each problem beginning at one of the `starts`; r is per variable."""

    starts: Indices
    p: Floats
    lower: Floats
    upper: Floats
    d: Floats
    beta: Floats
    r: Floats

    def largest(self, values: Floats) -> Floats:
        """Of each problem."""
        return np.asarray(np.maximum.reduceat(values, self.starts))

    def sums(self, values: Floats) -> Floats:
        """Of each problem."""
        return np.asarray(np.add.reduceat(values, self.starts))

    def spread(self, values: Floats) -> Floats:
        """From a number per problem to one per variable."""
        return np.repeat(values, np.diff(self.starts, append=len(self.p)))


def allowing_for_copies(certificate: Certificate, lacking: Lacking, at: Variables) -> Certificate:
    """The certificate of all problems, or of the only one, for coefficients of copies that lack what `lacking` says."""
    parts = certificate.parts or (certificate,)
    violation, gap = (np.array([getattr(part, name) for part in parts]) for name in ("violation", "gap"))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        size, s = np.abs(at.beta), at.r * at.spread(lacking.lengths)
        # A multiplier at which a loss is reached: within its bounds, and no further from β than d and r allow.
        most = np.minimum(np.maximum(np.abs(at.lower), np.abs(at.upper)), size + (at.spread(violation) + s) / at.d)
        shift = at.largest(s) + lacking.curved
        loss = at.sums((most + 2 * size) * s) + lacking.lengths**2
        loss += lacking.sums * at.largest(np.abs(at.p)) + _ROUNDOFF * (at.sums(most) * violation + gap)
        if lacking.curved.any():
            loss += lacking.curved * (violation + lacking.curved) * at.sums(1 / at.d)
    told = [
        _allowing(part, *numbers) if any(numbers[:2]) else part
        for part, *numbers in zip(parts, lacking.sums.tolist(), shift.tolist(), loss.tolist(), strict=True)
    ]
    if not isinstance(certificate.parts, CertificateTable):
        return Certificate.total(told)
    for k, part in enumerate(told):
        if part is not parts[k]:
            certificate.parts.put(k, part)
    return certificate.parts.total()


def joint_allowing_for_copies(
    certificate: Certificate,
    lacking: Lacking,
    problem: JointProblem,
    beta: Floats,
    r: Floats,
    residuals: tuple[float, float],
) -> Certificate:
    """The certificate of a joint machine for coefficients of copies that lack what `lacking` says of each class.

    r is that of the kernel plus its `shift`; `residuals` are those of the copies' boxes, and of their Σ_k β_ik = 0.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        s, size = r * lacking.lengths.max(), np.abs(beta)
        pairs = 1 if problem.shared else problem.n_classes - 1
        loss = float((size @ lacking.lengths) @ r + 2 * pairs * (problem.C @ s) + lacking.lengths @ lacking.lengths)
        loss += float(lacking.sums.sum())  # of Σ_i β_{i,y_i}
    moved = allowing_for(certificate, loss, 4 * float(s.max(initial=0.0)))
    box, equality = residuals
    moved.kkt[BOX] = max(moved.kkt[BOX], box)
    moved.kkt[EQUALITY] = max(moved.kkt[EQUALITY] + float(lacking.sums.max()), equality)
    return moved


def _allowing(part: Certificate, lacking: float, shift: float, loss: float) -> Certificate:
    moved = allowing_for(part, loss, 2 * shift)
    if part.b:
        moved.kkt[EQUALITY] += lacking
    return moved
