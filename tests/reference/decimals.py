"""Hundred-digit arithmetic on NumPy arrays of Decimals: exponents without end, and the same on every processor.

A float64 becomes a Decimal exactly. Sums, products and NumPy's `@`, `where`, `maximum` and comparisons then work as
usual, each operation rounded to a hundred digits. A float64 and a Decimal in one expression are an error, so that
nothing is rounded to float64 by accident.
"""

from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, DivisionByZero, InvalidOperation, localcontext

import numpy as np

INFINITY, ZERO, ONE = Decimal("Infinity"), Decimal(0), Decimal(1)
_HUNDRED = Context(prec=100, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[InvalidOperation, DivisionByZero])


def hundred_digits():
    """The context in which everything here has to run."""
    return localcontext(_HUNDRED)


def all_digits():
    """The context in which sums of float64 numbers, and of what hundred digits gave, are exact."""
    return localcontext(Context(prec=1000, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[InvalidOperation, DivisionByZero]))


def decimals(values):
    """The same numbers as Decimals, exactly; an array for an array, a Decimal for a number."""
    array = np.asarray(values)
    if array.dtype == object:
        return values
    flat = [Decimal(value) for value in array.astype(np.float64).ravel().tolist()]
    if array.ndim == 0:
        return flat[0]
    out = np.empty(array.size, dtype=object)
    out[:] = flat
    return out.reshape(array.shape)


def zeros(*shape):
    return np.full(shape, ZERO, dtype=object)


def _each(function, values):
    out = np.empty(values.size, dtype=object)
    out[:] = [function(value) for value in values.ravel()]
    return out.reshape(values.shape)


def _exp(value):
    # Below this float64 has nothing but 0, and a Decimal's exponential takes long.
    return ZERO if value < -1000 else value.exp()


def exp(values):
    return _each(_exp, values)


def sqrt(values):
    return _each(Decimal.sqrt, values)


def tanh(values):
    """From exp(−2|a|), so that nothing overflows; by its series where that would cancel."""

    def one(value):
        size = abs(value)
        if size < Decimal("1e-15"):
            return value - value**3 / 3
        small = _exp(-2 * size)
        return ((1 - small) / (1 + small)).copy_sign(value)

    return _each(one, values)


def floats(values):
    """Rounded to float64, for messages and for other people's solvers."""
    return np.asarray(values, dtype=object).astype(np.float64)


def solve(A, b):
    """x with Ax = b by elimination with full pivoting; directions in which A vanishes to thirty digits get 0."""
    A, b = A.copy(), b.copy()
    n = len(b)
    order = np.arange(n)
    largest = max((abs(value) for value in A.ravel()), default=ZERO)
    rank = n
    for k in range(n):
        rest = np.abs(A[k:, k:])
        i, j = np.unravel_index(int(np.argmax(rest)), rest.shape)
        if rest[i, j] <= largest * Decimal("1e-30"):
            rank = k
            break
        A[[k, k + i]], b[[k, k + i]] = A[[k + i, k]], b[[k + i, k]]
        A[:, [k, k + j]], order[[k, k + j]] = A[:, [k + j, k]], order[[k + j, k]]
        factors = A[k + 1 :, k] / A[k, k]
        A[k + 1 :, k:] = A[k + 1 :, k:] - factors[:, None] * A[k, k:]
        b[k + 1 :] = b[k + 1 :] - factors * b[k]
    x = zeros(n)
    for k in range(rank - 1, -1, -1):
        x[order[k]] = (b[k] - A[k, k + 1 : rank] @ x[order[k + 1 : rank]]) / A[k, k] if rank > k + 1 else b[k] / A[k, k]
    return x
