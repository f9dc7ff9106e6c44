"""The value of a Term, as mercer/kernels/terms.py defines it."""

import numpy as np


def term_value(term, x, z):
    u, rates = x - z, term.rates(len(x))
    total = np.where(x + z > 0, x + z, 1.0)  # both are 0: no share of χ²
    with np.errstate(over="ignore"):
        exponent = -rates[0] * u**2 - rates[1] * np.abs(u) - rates[2] * u**2 / total + rates[3] * x * z
    inner_features = slice(None) if term.inner_features is None else term.inner_features
    return np.polynomial.Polynomial(term.polynomial)(x[inner_features] @ z[inner_features]) * np.prod(np.exp(exponent))
