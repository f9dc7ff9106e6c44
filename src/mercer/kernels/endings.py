"""The last step of a kernel: a function of an inner product or a distance, computed in place."""

from __future__ import annotations

import numpy as np

from mercer.arrays import Floats, row_blocks


def exp_of_minus(gamma: float, t: Floats) -> Floats:
    """exp(−γt), which is 0 if γt overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        for some in row_blocks(len(t), t.nbytes // max(1, len(t))):  # between two of which Ctrl-C is heard
            part = t[some]
            part *= -gamma
            np.exp(part, out=part)
    return t


def affine(gamma: float, coef0: float, t: Floats) -> Floats:
    """γt + coef0."""
    with np.errstate(over="ignore", invalid="ignore"):
        t *= gamma
        t += coef0
    return t


def integer_power(t: Floats, n: int) -> Floats:
    """t^n for n ≥ 0 by repeated squaring, several times faster than a general power."""
    if n == 0:
        return np.ones_like(t)
    with np.errstate(over="ignore", invalid="ignore"):
        while n % 2 == 0:
            t *= t
            n //= 2
        result = t
        if n > 1:
            t = t.copy()
        while n > 1:
            n //= 2
            t *= t
            if n % 2:
                result *= t
    return result
