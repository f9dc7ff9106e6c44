"""A schedule for C under which soft-margin machines with a universal kernel reach the Bayes risk as n grows.

The conditions are ϑ_n → 0 and nϑ_n² → ∞ (Igel, section 4.2; Steinwart and Christmann 2008). With ϑ = 1/(2Cn) they hold
for C = C₀(n₀/n)^(1−a) and 0 < a < ½: ϑ falls like n^(−a), and nϑ² grows like n^(1−2a).
"""

from __future__ import annotations

from mercer.parameters import integer, positive


def consistent_C(n: int, C0: float = 1.0, n0: int = 100, a: float = 0.25) -> float:
    """C for n samples: C₀ for n₀ of them.

    Parameters
    ----------
    n : int
        The number of samples.
    C0 : float, default=1.0
        C for n0 samples.
    n0 : int, default=100
        The number of samples at which C is C0.
    a : float, default=0.25
        How fast ϑ falls, like n^(−a); strictly between 0 and ½.

    Examples
    --------
    >>> from mercer.theory import consistent_C
    >>> [round(consistent_C(n), 4) for n in (100, 1600, 10_000)]
    [1.0, 0.125, 0.0316]
    """
    integer("n", n, 1, "the number of samples")
    integer("n0", n0, 1, "the number of samples at which C is C0")
    if not 0 < a < 0.5:
        raise ValueError(
            f"a={a!r} must lie strictly between 0 and ½: otherwise ϑ does not vanish, or vanishes too fast"
        )
    power: float = float(n0 / n) ** (1.0 - float(a))
    return positive("C0", C0) * power
