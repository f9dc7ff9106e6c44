"""What every `Cross` must do, wherever samples and landmarks live.

K are the kernel values between samples and landmarks and K_MM those between landmarks, computed elsewhere; Y and weight
are the targets and weights of all samples, whatever chunks they come in.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np

from contracts.gram_contract import exact_numbers
from reference.decimals import hundred_digits


def check_cross_contract(cross, K, K_MM, Y, weight, atol, sample=None):
    """`cross` multiplies with K; `sample` is a chunk of the first samples, if there is one."""
    rng = np.random.default_rng(0)
    n, m = K.shape
    assert cross.m == m
    assert cross.kernel.bound
    assert isinstance(cross.recomputes_cheaply, bool)
    assert cross.value_error >= 0
    np.testing.assert_allclose(cross.K_MM, K_MM, atol=atol)
    assert cross.K_MM.dtype == np.float64

    W = weight[:, None]
    for outputs in (1, Y.shape[1], 8):
        C = rng.normal(size=(m, outputs))
        before = C.copy()
        np.testing.assert_allclose(cross.normal(C), K.T @ (W * (K @ C)), atol=100 * n * m * atol)
        np.testing.assert_array_equal(C, before)
    C, b = rng.normal(size=(m, Y.shape[1])), rng.normal(size=Y.shape[1])
    for coefficients, bias in ((C, b), (0 * C, b), (C, 0 * b)):
        E = Y - K @ coefficients - bias
        totals = cross.residual(coefficients, bias)
        proven, doubt = cross.proof(coefficients, bias)
        for found in (totals, proven):
            np.testing.assert_allclose(found.residual, K.T @ (W * E), atol=100 * n * m * atol)
            np.testing.assert_allclose(found.weight, weight.sum(), rtol=1e-12)
            np.testing.assert_allclose(found.error_sum, weight @ E, atol=100 * n * m * atol)
            np.testing.assert_allclose(found.squares, weight @ E**2, atol=1000 * n * m * atol)
            assert found.n == n
        if not coefficients.any():
            np.testing.assert_allclose(totals.bias_column, K.T @ weight, atol=100 * n * atol)
        assert doubt.residual.shape == C.shape
        assert (doubt.residual >= 0).all()
        assert (doubt.squares >= 0).all()
        assert doubt.terms > 0

    everything = np.arange(n)
    chunks = [(None, everything)] if sample is None else [(None, everything), (sample, everything[: sample.n])]
    for chunk, rows in chunks:
        G, totals = cross.gather(chunk)
        some, w = K[rows], weight[rows]
        np.testing.assert_allclose(G, (some.T * w) @ some, atol=100 * n * atol)
        np.testing.assert_array_equal(G, G.T)
        np.testing.assert_allclose(totals.residual, some.T @ (w[:, None] * Y[rows]), atol=100 * n * atol)
        np.testing.assert_allclose(totals.bias_column, some.T @ w, atol=100 * n * atol)
        np.testing.assert_allclose(totals.squares, w @ Y[rows] ** 2, atol=100 * n * atol)
        assert totals.n == len(rows)


def check_cross_bounds(cross, K, diagonal, K_MM, Y, weight, C, b):
    """No total is further from the true one than `ErrorTotals` says; returns the share of it that was used, by name.

    K, the diagonal k(x, x) of the samples and K_MM are exact numbers (Fraction). An f that is off by e moves the sum of
    landmark j by no more than √(Σ w k(x, x) k_jj) √(Σ w e²).
    """
    totals, doubt = cross.proof(C, b)
    Y, weight, C, b = (exact_numbers(part) for part in (Y, weight, C, b))
    W = weight[:, None]
    E = Y - K @ C - b
    true = K.T @ (W * E)
    trace = sum(weight * diagonal)
    assert Fraction(doubt.trace) * (1 + Fraction(1, 10**12)) >= trace
    heard = np.array(
        [[upper_root(trace * k_jj * Fraction(s)) for s in doubt.squares.tolist()] for k_jj in np.diag(K_MM)]
    )
    allowed = exact_numbers(doubt.residual) + heard
    off = np.abs(exact_numbers(totals.residual) - true)
    assert (off <= allowed).all()
    used = {"residual": share(off, allowed)}

    # √(Σ w E²) is off by no more than √(Σ w e²), and by the roundings of that sum.
    root, found = (np.array([upper_root(x) for x in part]) for part in (weight @ E**2, exact_numbers(totals.squares)))
    e = np.array([upper_root(x) for x in exact_numbers(doubt.squares)])
    off, allowed = np.abs(found - root), e + Fraction(doubt.terms + 20, 2**53) * (root + e)
    assert (off <= allowed).all()
    used["squares"] = share(off, allowed)

    root = np.array([upper_root(x) for x in np.diag(K_MM)])
    off, allowed = np.abs(exact_numbers(cross.K_MM) - K_MM), Fraction(cross.value_error) * np.multiply.outer(root, root)
    assert (off <= allowed).all()
    return used | {"value_error": share(off, allowed)}


def share(off, allowed):
    return float(max((a / b for a, b in zip(off.ravel(), allowed.ravel(), strict=True) if b > 0), default=0.0))


def upper_root(x):
    """√x, rounded up in its fiftieth digit."""
    with hundred_digits():
        root = (Decimal(x.numerator) / Decimal(x.denominator)).sqrt()
    return Fraction(root) * (1 + Fraction(1, 10**50))
