"""Certificates for the coefficients of copies of a sample, which are rounded shares of the certified coefficient.

Rows that occur several times are one sample in training. If the coefficients of its copies add up to β_j + δ_j, the
decision values f(x_i) differ from the certified ones by no more than

    |Kδ|_i ≤ s_i = r_i Σ_j |δ_j| r_j,   where |K_ij| ≤ r_i r_j

so that no gradient is off by more than s_i, no loss by more than s_i times the largest multiplier that it can have, and
½β'Kβ by no more than Σ_i |β_i| s_i + ½ (Σ_j |δ_j| r_j)². Every equality is off by no more than Σ|δ_j|
(docs/certificate.md, "Copies"). A joint multi-class machine has these bounds for each class. Its losses depend on
differences of two f: Crammer and Singer's on one difference, Weston and Watkins's on one for each other class.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.certificates.certificate import BOX, EQUALITY, Certificate, widen_certificate
from mercer.certificates.table import CertificateTable
from mercer.places.rounding import DOUBLE
from mercer.problems.multiclass import JointProblem
from mercer.samples.arrays import Floats, Indices

# Roundings of a share and of its product with a coefficient, and two more that cover the sums below.
_ROUNDOFF = 4 * DOUBLE


@dataclass(frozen=True, eq=False)
class CopyErrors:
    """Rounding errors δ of the coefficients that the copies of a sample share, with one number per problem or class."""

    sums: Floats  # Σ|δ_j|
    lengths: Floats  # Σ|δ_j| r_j
    curved: Floats  # largest difference between d_iβ_i of a copy and of its sample


@dataclass(frozen=True, eq=False)
class Variables:
    """Variables of all problems, one problem after another; each begins at one of the `starts`."""

    starts: Indices
    p: Floats
    lower: Floats
    upper: Floats
    d: Floats
    beta: Floats
    r: Floats  # |K_ij| ≤ r_i r_j

    def largest(self, values: Floats) -> Floats:
        """Return the largest value of each problem."""
        return np.asarray(np.maximum.reduceat(values, self.starts))

    def sums(self, values: Floats) -> Floats:
        """Return the sum of each problem."""
        return np.asarray(np.add.reduceat(values, self.starts))

    def spread(self, values: Floats) -> Floats:
        """Repeat a number per problem for each of its variables."""
        return np.repeat(values, np.diff(self.starts, append=len(self.p)))


def widen_for_copies(certificate: Certificate, errors: CopyErrors, variables: Variables) -> Certificate:
    """Widen the certificate of one or several problems by the errors of the copies' coefficients."""
    parts = certificate.parts or (certificate,)
    violation, gap = (np.array([getattr(part, name) for part in parts]) for name in ("violation", "gap"))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        size, s = np.abs(variables.beta), variables.r * variables.spread(errors.lengths)
        # The maximum in the definition of a loss lies at a t in its box with |t − β| ≤ (violation + s)/d.
        largest_t = np.minimum(
            np.maximum(np.abs(variables.lower), np.abs(variables.upper)),
            size + (variables.spread(violation) + s) / variables.d,
        )
        shift = variables.largest(s) + errors.curved
        loss = variables.sums((largest_t + 2 * size) * s) + errors.lengths**2
        loss += errors.sums * variables.largest(np.abs(variables.p)) + _ROUNDOFF * (
            variables.sums(largest_t) * violation + gap
        )
        if errors.curved.any():
            loss += errors.curved * (violation + errors.curved) * variables.sums(1 / variables.d)
    widened = [
        _widen(part, *numbers) if any(numbers[:2]) else part
        for part, *numbers in zip(parts, errors.sums.tolist(), shift.tolist(), loss.tolist(), strict=True)
    ]
    if not isinstance(certificate.parts, CertificateTable):
        return Certificate.total(widened)
    for k, part in enumerate(widened):
        if part is not parts[k]:
            certificate.parts.put(k, part)
    return certificate.parts.total()


def widen_joint_for_copies(
    certificate: Certificate,
    errors: CopyErrors,
    problem: JointProblem,
    beta: Floats,
    r: Floats,
    residuals: tuple[float, float],
) -> Certificate:
    """Widen the certificate of a joint multi-class machine by the errors of the copies' coefficients in each class.

    r bounds the kernel plus the `shift` of the problem: |K_ij + shift| ≤ r_i r_j. `residuals` are the largest
    violations of the box and of Σ_k β_ik = 0 by the copies' coefficients.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        s, size = r * errors.lengths.max(), np.abs(beta)
        pairs = 1 if problem.shared else problem.n_classes - 1
        loss = float((size @ errors.lengths) @ r + 2 * pairs * (problem.C @ s) + errors.lengths @ errors.lengths)
        loss += float(errors.sums.sum())  # change of Σ_i β_{i,y_i}
    widened = widen_certificate(certificate, loss, 4 * float(s.max(initial=0.0)))
    box, equality = residuals
    widened.kkt[BOX] = max(widened.kkt[BOX], box)
    widened.kkt[EQUALITY] = max(widened.kkt[EQUALITY] + float(errors.sums.max()), equality)
    return widened


def _widen(part: Certificate, equality_error: float, shift: float, loss: float) -> Certificate:
    """Widen the certificate of one problem.

    The equality may be violated by `equality_error` more, each f(x) may differ by `shift`, and the primal and dual
    values by `loss`.
    """
    widened = widen_certificate(part, loss, 2 * shift)
    if part.b:
        widened.kkt[EQUALITY] += equality_error
    return widened
