"""Certificates for the coefficients of copies of a sample, which are rounded shares of the certified coefficient.

Rows that occur several times are one sample in training. If the coefficients of its copies add up to β_j + δ_j, the
decision values f(x_i) differ from the certified ones by no more than

    |Kδ|_i ≤ s_i = r_i Σ_j |δ_j| r_j,   where |K_ij| ≤ r_i r_j

so that no gradient is off by more than s_i, no loss by more than s_i times the largest multiplier that it can have, and
½β'Kβ by no more than Σ_i |β_i| s_i + ½ (Σ_j |δ_j| r_j)². Every equality is off by no more than Σ|δ_j|
(docs/certificate.md, "Copies"). A joint multi-class machine has these bounds for each class. Its losses depend on
differences of two f: Crammer and Singer's on one difference, Weston and Watkins's on one for each other class.

In least squares the copies of a sample with the same target share one β_j: copy i has β_i = w_iβ_j/w + ε_i, where w is
the sum of their weights, d_i = λ/w_i, and δ_j = Σε_i. With r and b of mercer.certificates.least_squares and q = r − dβ,
P and D change by

    ½δ'Kδ + Σ_i (Kδ)_i((Kδ)_i/2 − q_i)/d_i    and    Σ_j δ_j(q_j + b) − ½δ'Kδ − ½Σ_i d_iε_i²

P is quadratic, so that the root of P − P* is a distance: it grows by no more than the root of ½δ'Kδ + ½Σ_i (Kδ)_i²/d_i.
A relative change u of all weights, such as the rounding of w, adds no more than u√P.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mercer.certificates.certificate import BOX, EQUALITY, Certificate, widen_certificate
from mercer.certificates.least_squares import SUBOPTIMALITY, column_sums
from mercer.certificates.table import CertificateTable
from mercer.places.ball import rounded_up
from mercer.places.rounding import DOUBLE
from mercer.problems.least_squares import LeastSquares
from mercer.problems.multiclass import JointProblem
from mercer.samples.arrays import Floats, Indices
from mercer.samples.exact_parts import sum_error_bounds

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


def widen_outputs_for_copies(
    certificate: Certificate,
    problem: LeastSquares,
    beta: Floats,
    copies: Floats,
    weight: Floats,
    group: Indices,
    entry_bounds: Floats,
    of_weights: bool,
) -> Certificate:
    """Widen the certificate of least squares so that it holds for the `copies` of β, with a column for each output.

    Copy i has weight[i] and shares the coefficient of row group[i] of the problem. `of_weights` says that f has weights
    of the features, so that no coefficient moves it.
    """
    n, parts = len(group), certificate.parts or (certificate,)
    numbers = np.array([(part.violation, part.primal, part.kkt[SUBOPTIMALITY], *(part.b or (0.0,))) for part in parts])
    violation, primal, suboptimality, b = numbers.T
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        # 1. δ of each row of the problem, and d_iβ_i of the copies beside that of their row.
        columns = zip(np.ascontiguousarray(beta.T), np.ascontiguousarray(copies.T), strict=True)
        delta = np.column_stack([sum_error_bounds(*column, group) for column in columns])
        r, d = entry_bounds[problem.member][:, None], (problem.lam / problem.weight)[:, None]
        own, shared = (problem.lam / weight)[:, None] * copies, (d * beta)[group]
        changes = np.abs(own - shared) + _ROUNDOFF * (np.abs(own) + np.abs(shared))
        curved = changes[np.bincount(group)[group] > 1].max(axis=0, initial=0.0)
        length = rounded_up((delta * r).sum(axis=0), n)
        s = r * length  # bounds on Kδ
        # 2. Changes of the values.
        moved = np.zeros_like(length) if of_weights else 0.5 * (length**2 + (s * s / d).sum(axis=0))
        losses = delta.sum(axis=0) * (violation + np.abs(b)) + 0.5 * (length**2 + curved**2 * (1 / d).sum())
        losses += moved + _ROUNDOFF * np.abs(primal)
        if not of_weights:
            losses += violation * (s / d).sum(axis=0)
        root = np.sqrt(suboptimality) + np.sqrt(moved) + _ROUNDOFF * np.sqrt(np.maximum(primal, 0.0))
        found = rounded_up(s.max(axis=0) + curved, 3), rounded_up(losses, n + 8), rounded_up(root**2, n + 8)
    totals, widened = column_sums(copies), []
    for k, (part, shift, loss, above) in enumerate(zip(parts, *map(_known, found), strict=True)):
        wide = widen_certificate(part, loss, 2 * shift)
        if part.b:
            wide.kkt[EQUALITY] = math.nextafter(abs(totals[k]), math.inf) if totals[k] else 0.0
        wide.kkt[SUBOPTIMALITY] = above
        widened.append(wide)
    return Certificate.total(widened)


def _known(bounds: Floats) -> list[float]:
    """Return the bounds as floats, with infinity in place of NaN."""
    return [math.inf if math.isnan(bound) else bound for bound in bounds.tolist()]


def _widen(part: Certificate, equality_error: float, shift: float, loss: float) -> Certificate:
    """Widen the certificate of one problem.

    The equality may be violated by `equality_error` more, each f(x) may differ by `shift`, and the primal and dual
    values by `loss`.
    """
    widened = widen_certificate(part, loss, 2 * shift)
    if part.b:
        widened.kkt[EQUALITY] += equality_error
    return widened
