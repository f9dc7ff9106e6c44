"""The proof of each pair of a one-against-one machine, from numbers that the core computes for all pairs at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.certificates.certificate import Certificate, Proves
from mercer.certificates.table import CertificateTable

# What rounding can take from a sum of non-negative terms, one per variable of a pair, of which there are few thousands.
_SUMMED = 1 + 1e-12


def pair_certificate(findings: Any, paired: bool, proves: Proves) -> Certificate:
    """The certificate of one pair from its findings; `paired` says that it has an equality, Σβ = 0."""
    return pair_certificates(np.array([findings]), paired, proves)[0]


def pair_certificates(findings: Any, paired: bool, proves: Proves) -> CertificateTable:
    """The same for many pairs, a row of findings each."""
    losses, shares, total, worst, box, outward, inward, top, bottom, b, energy, gain, curved, wrong = findings.T
    ends = top - bottom if paired else np.maximum(top, -bottom)
    unbalanced = np.abs(b * total) if paired else 0.0
    # The errors include four roundings of p and u, and the sums have a few thousand terms.
    return CertificateTable(
        primal=0.5 * energy + losses * _SUMMED + wrong,
        dual=gain - 0.5 * energy - 0.5 * curved * _SUMMED - wrong - unbalanced,
        gap=(shares + unbalanced) * _SUMMED,
        violation=np.maximum(ends, 0.0),
        kkt={
            "dual feasibility: box": box.copy(),
            "dual feasibility: equality": np.abs(total) if paired else np.zeros(len(total)),
            "primal feasibility": outward.copy(),
            "complementary slackness": inward.copy(),
        },
        proves=proves,
        worst=worst.astype(np.intp),
        b=b[:, None].copy() if paired else np.empty((len(b), 0)),
    )
