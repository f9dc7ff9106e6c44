"""The proof of each pair of a one-against-one machine, from numbers that the core computes for all pairs at once."""

from __future__ import annotations

from typing import Any

from mercer.certificates.certificate import Certificate, Proves

# What rounding can take from a sum of non-negative terms, one per variable of a pair, of which there are few thousands.
_SUMMED = 1 + 1e-12


def pair_certificate(findings: Any, paired: bool, proves: Proves) -> Certificate:
    """The certificate of one pair from its findings; `paired` says that it has an equality, Σβ = 0."""
    losses, shares, total, worst, box, outward, inward, top, bottom, b, energy, gain, curved, wrong = findings
    unbalanced = abs(b * total) if paired else 0.0
    # The errors include four roundings of p and u, and the sums have a few thousand terms.
    primal, dual = (
        0.5 * energy + losses * _SUMMED + wrong,
        gain - 0.5 * energy - 0.5 * curved * _SUMMED - wrong - unbalanced,
    )
    return Certificate(
        primal=primal,
        dual=dual,
        gap=(shares + unbalanced) * _SUMMED,
        violation=max(0.0, top - bottom) if paired else max(0.0, top, -bottom),
        kkt={
            "dual feasibility: box": box,
            "dual feasibility: equality": abs(total) if paired else 0.0,
            "primal feasibility": outward,
            "complementary slackness": inward,
        },
        proves=proves,
        worst=worst,
        b=(b,) if paired else (),
    )
