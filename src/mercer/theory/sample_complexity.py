"""How many samples are enough, and what regularisation costs in expectation (Shalev-Shwartz).

    hard margin   m ≥ 8/ε² (2(R/γ)² + ln(2/δ))              error at most ε with probability 1 − δ
    soft margin   E L(A(S)) ≤ L(u) + λ‖u‖² + 2R²/(λm)       for every u; A minimises λ‖w‖² + hinge risk
    best λ        √(2R²/(B²m))                              excess √(8R²B²/m) over the best w with ‖w‖ ≤ B

R is the largest ‖φ(x)‖, and the machine has no bias.
"""

from __future__ import annotations

import math

from mercer.fitting.families.shared_docs import shared_docs
from mercer.parameters import integer, not_negative, positive, share
from mercer.theory.bound import IID, Assumption, Bound, log_inverse, summed

_SOURCE = "Shalev-Shwartz, lecture 8"


@shared_docs
def hard_margin_samples(epsilon: float, radius: float, margin: float, *, delta: float = 0.05) -> int:
    """How many samples bring the error of a hard-margin machine to ε with probability 1 − δ.

    Parameters
    ----------
    epsilon : float
        The error to be reached, between 0 and 1.
    delta : float, default=0.05
        The probability with which the error may be larger.
    %(radius)s
    margin : float
        γ: the margin with which the samples can be separated.

    Examples
    --------
    >>> from mercer.theory import hard_margin_samples
    >>> hard_margin_samples(0.1, delta=0.05, radius=1.0, margin=0.1)
    162952
    """
    ratio = positive("radius", radius) / positive("margin", margin)
    small = share("epsilon", epsilon)
    return _counted(8.0 / small / small * (2.0 * ratio * ratio + log_inverse(delta, 2.0)))


@shared_docs
def soft_margin_expectation(risk: float, norm: float, lam: float, radius: float, m: int) -> Bound:
    """The expected hinge risk of the machine trained on m samples, from the true hinge risk of any w and its norm.

    Parameters
    ----------
    risk : float
        L(u): the true hinge risk of any u.
    norm : float
        ‖u‖.
    lam : float
        λ of the machine.
    %(radius)s
    m : int
        The number of samples.
    """
    integer("m", m, 1, "the number of samples")
    terms = {
        "L(u)": not_negative("risk", risk),
        "λ‖u‖²": positive("lam", lam) * not_negative("norm", norm) * norm,
        "2R²/(λm)": 2.0 * not_negative("radius", radius) / lam * radius / m,
    }
    return summed("the expected hinge risk", terms, _assumptions(), None, None, _SOURCE)


@shared_docs
def best_lam(radius: float, B: float, m: int) -> float:
    """λ = √(2R²/(B²m)), which makes the two last terms equal for ‖u‖ = B.

    Parameters
    ----------
    %(radius, B and m)s
    """
    integer("m", m, 1, "the number of samples")
    return math.sqrt(2.0 / m) * positive("radius", radius) / positive("B", B)


@shared_docs
def soft_margin_excess(radius: float, B: float, m: int) -> Bound:
    """√(8R²B²/m): how much more than the best w with ‖w‖ ≤ B the machine with the best λ errs, in expectation.

    Parameters
    ----------
    %(radius, B and m)s
    """
    integer("m", m, 1, "the number of samples")
    value = math.sqrt(8.0 / m) * not_negative("radius", radius) * not_negative("B", B)
    quantity = "expected error − best hinge risk"
    return summed(quantity, {"√(8R²B²/m)": value}, _assumptions(), None, 1.0, _SOURCE)


@shared_docs
def soft_margin_samples(epsilon: float, radius: float, B: float) -> int:
    """How many samples bring that excess to ε: 8R²B²/ε².

    Parameters
    ----------
    epsilon : float
        The error to be reached, between 0 and 1.
    %(radius)s
    B : float
        The largest ‖w‖.
    """
    ratio = positive("radius", radius) * positive("B", B) / share("epsilon", epsilon)
    return _counted(8.0 * ratio * ratio)


@shared_docs
def hinge_lipschitz(radius: float) -> float:
    """R: w ↦ max(0, 1 − y⟨w, φ(x)⟩) changes by at most ‖φ(x)‖ ≤ R times as much as w.

    Parameters
    ----------
    %(radius)s
    """
    return not_negative("radius", radius)


def _counted(enough: float) -> int:
    if not math.isfinite(enough):
        raise ValueError("the number of samples that would be enough is beyond float64: the margin is too small")
    return math.ceil(enough)


def _assumptions() -> tuple[Assumption, ...]:
    return (
        IID,
        Assumption("every ‖φ(x)‖ is at most the radius"),
        Assumption("f has no bias outside of its norm"),
        Assumption("λ was fixed before the data were seen"),
    )
