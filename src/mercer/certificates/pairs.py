"""The proof of each pair of a one-against-one machine, from numbers that the core computes for all pairs at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.certificates.certificate import Certificate, Proves
from mercer.certificates.table import CertificateTable

# What rounding can do to a sum with a term per variable of a pair, of which there are at most 6,000, as a share of the
# sum of their sizes.
_SHARE = 1e-12


def pair_certificate(findings: Any, paired: bool, proves: Proves) -> Certificate:
    """The certificate of one pair from its findings; `paired` says that it has an equality, Σβ = 0."""
    return pair_certificates(np.array([findings]), paired, proves)[0]


def pair_certificates(findings: Any, paired: bool, proves: Proves) -> CertificateTable:
    """The certificates of many pairs, from a row of findings each."""
    losses, shares, total, worst, box, outward, inward, top, bottom, b, energy, gain, curved, wrong = findings.T
    ends = top - bottom if paired else np.maximum(top, -bottom)
    unbalanced = np.abs(b * total) if paired else 0.0
    # At least Σ|β|(|p| + |u|) and the other sizes: gain = Σ|β|, and where βf is negative, |βf| ≤ loss + ½dβ².
    size = np.abs(energy) + 3 * losses + 2 * curved + (1 + np.abs(b)) * gain + unbalanced
    off = 0.5 * wrong + _SHARE * size
    return CertificateTable(
        primal=0.5 * energy + losses + off,
        dual=gain - 0.5 * energy - 0.5 * curved - off - unbalanced,
        gap=(shares + unbalanced) * (1 + _SHARE),
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
