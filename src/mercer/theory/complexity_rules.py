"""The seven rules of Rademacher complexity (Igel, theorem 2.1): from bounds on R̂(F) to one on R̂ of a class made of F.

Each takes and gives an upper bound on R̂ over the same samples.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from mercer.parameters import finite, not_negative
from mercer.theory.bound import Assumption, Bound, length

_SOURCE = "Igel, theorem 2.1"


def subset_rule(bound: Bound) -> Bound:
    """F ⊆ G: R̂(F) ≤ R̂(G), of which `bound` is a bound.

    Parameters
    ----------
    bound : Bound
        An upper bound on R̂ of the larger class.
    """
    return _made(bound, "R̂ of a part of the class", bound.value, "R̂(G)")


def convex_hull_rule(bound: Bound) -> Bound:
    """R̂(conv F) = R̂(F).

    Parameters
    ----------
    bound : Bound
        An upper bound on R̂ of the class.
    """
    return _made(bound, "R̂ of the convex hull", bound.value, "R̂(F)")


def multiple_rule(bound: Bound, factor: float) -> Bound:
    """R̂(cF) = |c| R̂(F).

    Parameters
    ----------
    bound : Bound
        An upper bound on R̂ of the class.
    factor : float
        c.
    """
    return _made(bound, "R̂ of the multiple", abs(finite("factor", factor)) * bound.value, "|c| R̂(F)")


def contraction_rule(bound: Bound, lipschitz: float, *, zero_at_zero: bool | None = None) -> Bound:
    """R̂(A∘F) ≤ 2L R̂(F) for A with Lipschitz constant L and A(0) = 0.

    Parameters
    ----------
    bound : Bound
        An upper bound on R̂ of the class.
    lipschitz : float
        L: how much faster than its argument the function outside can change.
    zero_at_zero : bool, optional
        Whether the function outside is 0 at 0; None leaves it to your word.
    """
    through = Assumption("the function outside is 0 at 0", zero_at_zero)
    value = 2.0 * not_negative("lipschitz", lipschitz) * bound.value
    return _made(bound, "R̂ of the composition", value, "2L R̂(F)", through)


def shift_rule(bound: Bound, shift: ArrayLike) -> Bound:
    """R̂(F + h) ≤ R̂(F) + 2√(Ê h²/n), with h given by its values on the samples.

    Parameters
    ----------
    bound : Bound
        An upper bound on R̂ of the class.
    shift : array
        The values of h on the samples.
    """
    further = _size(shift)
    parts = {"R̂(F)": bound.value, "2√(Ê h²/n)": further}
    return Bound("R̂ of the shifted class", bound.value + further, parts, bound.assumptions, bound.delta, source=_SOURCE)


def power_rule(bound: Bound, target: ArrayLike, q: float) -> Bound:
    """R̂({|f − h|^q}) ≤ 2q (R̂(F) + 2√(Ê h²/n)) where |f − h| ≤ 1, with h given by its values on the samples.

    The mean of h² is that over the samples. The notes write the true expectation here, but the empirical one in the
    rule before, from which this one follows.

    Parameters
    ----------
    bound : Bound
        An upper bound on R̂ of the class.
    target : array
        The values of h on the samples.
    q : float
        The power, at least 1.
    """
    if not q >= 1:
        raise ValueError(f"q={q!r} must be a number of at least 1: |t|^q is not Lipschitz at 0 otherwise")
    near = Assumption("no f differs from h by more than 1")
    value = 2.0 * finite("q", q) * (bound.value + _size(target))
    return _made(bound, "R̂ of the powers", value, "2q (R̂(F) + 2√(Ê h²/n))", near)


def union_rule(bounds: Sequence[Bound]) -> Bound:
    """R̂(∪F_i) ≤ Σ R̂(F_i).

    Parameters
    ----------
    bounds : list of Bound
        An upper bound on R̂ of each class.
    """
    if not bounds:
        raise ValueError("a union needs at least one class")
    parts = {f"R̂(F_{i})": bound.value for i, bound in enumerate(bounds, 1)}
    assumptions = tuple(dict.fromkeys(each for bound in bounds for each in bound.assumptions))
    deltas = [bound.delta for bound in bounds if bound.delta is not None]
    return Bound(
        "R̂ of the union", sum(parts.values()), parts, assumptions, sum(deltas) if deltas else None, source=_SOURCE
    )


def _size(values: ArrayLike) -> float:
    h = np.asarray(values, dtype=np.float64)
    if h.ndim != 1 or len(h) == 0 or not np.isfinite(h).all():
        raise ValueError(f"h must be given by one finite value per sample, not by an array of shape {h.shape}")
    return 2.0 * length(h) / len(h)


def _made(bound: Bound, quantity: str, value: float, term: str, *further: Assumption) -> Bound:
    return Bound(quantity, value, {term: value}, (*bound.assumptions, *further), bound.delta, source=_SOURCE)
