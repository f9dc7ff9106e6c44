"""Exact Shapley values of machines whose kernel is a product over the features, or a sum of such products.

The game: v(S) is the mean of f over background rows z in which the features S are those of x. For one product term

    φ_j = mean_z Σ_i β_i (k_j(x_j, s_ij) − k_j(z_j, s_ij)) ∫₀¹ Π_{l ≠ j} [t k_l(x_l, s_il) + (1 − t) k_l(z_l, s_il)] dt

because Shapley's weights are Beta integrals. The integrand is a polynomial in t, which Gauss–Legendre quadrature
integrates exactly (src/core/explain/shapley.hpp). Terms and support vectors add up.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from mercer import _core
from mercer.arrays import Floats, is_sparse
from mercer.explain.explanation import Explanation
from mercer.explain.outputs import Outputs, as_dense, outputs_of, weights_of
from mercer.fitting.pipeline.lines import Sign, listener_for
from mercer.kernels.terms import Term, Terms
from mercer.threads import effective_n_threads

# Support vectors of one call, and the values that the core keeps in it: 8 MB, more only for above 65,000 features.
_VECTORS_PER_CALL, _LEAST_VECTORS, _VALUES_PER_CALL = 512, 16, 1 << 20
# Rows × background rows × support vectors × features between two lines of a verbose run: half a second of one AVX2
# core. But rows that the core takes together stay together.
_WORK_PER_CALL, _ROWS_AT_ONCE = 250_000_000, 8


def explain(
    model: Any, X: Any, background: Any = None, *, background_weight: Any = None, verbose: bool = False
) -> Explanation:
    """Exact Shapley values of a trained machine's f at the rows of X; see the method `explain` of the machines."""
    machine = outputs_of(model)
    terms = _terms(machine)
    if background is None:
        raise TypeError(
            "background is missing: Shapley values compare a sample with rows that stand for 'feature absent', and "
            "depend on them. Give some, such as 100 training samples: "
            "model.explain(X, background=X_train[:: max(1, len(X_train) // 100)])"
        )
    rows = machine.rows(X)
    try:
        others = machine.rows(background)
    except ValueError as error:
        raise ValueError(f"background: {error}") from None
    weights = weights_of(background_weight, others.shape[0], "background_weight")
    used = np.flatnonzero(weights)
    others, weights = others[used], weights[used]
    f, base = machine.f(rows), weights @ machine.f(others)
    data = as_dense(rows)
    values = np.zeros((len(data), len(machine.names), data.shape[1]))
    n_threads = effective_n_threads(getattr(model, "n_jobs", None))
    with np.errstate(over="ignore", invalid="ignore"):
        for term in terms:
            if term.only_polynomial and len(term.polynomial) == 2:
                _add_linear(values, term, machine, data, np.asarray(weights @ others))
    curved = [term for term in terms if not (term.only_polynomial and len(term.polynomial) <= 2)]
    if curved and machine.vectors.shape[0]:
        _add_curved(values, curved, machine, data, as_dense(others), weights, n_threads, verbose)
    values *= machine.factor
    if not np.isfinite(values).all():
        raise FloatingPointError(
            f"a feature's factor of {machine.kernel!r} overflows float64 for these rows; scale the features"
        )
    reached = values.sum(axis=2) + base
    return Explanation(
        values=np.ascontiguousarray(values.transpose(0, 2, 1)),
        base_values=np.tile(base, (len(data), 1)),
        data=data,
        feature_names=machine.feature_names,
        output_names=machine.names,
        error=float(np.abs(reached - f).max(initial=0.0)),
        classes=getattr(model, "classes_", None),
        pairs=machine.pairs,
    )


def _terms(machine: Outputs) -> Terms:
    """The kernel as products over the features, or an error that says what would do."""
    machine.expect_vectors("explain")
    terms = machine.kernel.terms()
    if terms is None:
        raise ValueError(
            f"{machine.kernel!r} is no sum of products over the features, so that exact Shapley values would take 2^d "
            "steps. Gaussian (with gamma, sigma or a diagonal M), Laplacian, Chi2, Linear and Polynomial kernels and "
            "their sums, products, multiples and powers have them. For this kernel there are gradient_importance and "
            "partial_dependence, and sampling by other packages, such as shap.PermutationExplainer"
        )
    return terms


def _add_linear(values: Floats, term: Term, machine: Outputs, data: Floats, mean: Floats) -> None:
    """The closed form for q·⟨x, z⟩: w_j (x_j − the background's mean)."""
    w = np.zeros((values.shape[1], values.shape[2]))
    for vectors, coefficients in _blocks(machine, values.shape[2]):
        w += coefficients @ vectors
    values += term.polynomial[1] * w * (data - mean)[:, None, :]


def _add_curved(
    values: Floats,
    terms: list[Term],
    machine: Outputs,
    data: Floats,
    others: Floats,
    weights: Floats,
    n_threads: int,
    verbose: bool,
) -> None:
    # A column that is 0 in all of these is worth nothing, and multiplies k(·, s) by a number: much of sparse data.
    used = (data != 0).any(axis=0) | (others != 0).any(axis=0)
    data, others = np.ascontiguousarray(data[:, used]), np.ascontiguousarray(others[:, used])
    d, n = data.shape[1], machine.vectors.shape[0]
    if d == 0:
        return
    gained = np.zeros((*values.shape[:2], d))
    step = max(1, _VALUES_PER_CALL // (d * min(n, _vectors_per_call(d))))
    step = min(step, max(_ROWS_AT_ONCE, _WORK_PER_CALL // (d * n * len(others))))
    begun = told = time.monotonic()
    listener = listener_for(verbose)
    for start in range(0, len(data), step):
        some = slice(start, start + step)
        seen = 0
        for vectors, coefficients in _blocks(machine, len(used)):
            own, unseen = np.ascontiguousarray(vectors[:, used]), vectors[:, ~used]
            for term in terms:
                rates = term.rates(len(used))
                _core.shapley_add(
                    gained[some],
                    data[some],
                    others,
                    weights,
                    own,
                    coefficients * _with_zeros(rates[:, ~used], unseen),
                    np.ascontiguousarray(rates[:, used]),
                    np.array(term.polynomial),
                    n_threads,
                )
            seen += len(vectors)
            now = time.monotonic()
            if listener is not None and now >= told + 1.0:
                told, done = now, start + min(step, len(data) - start) * seen / n
                listener(Sign(f"{int(done):,} of {len(data):,} samples explained", now - begun, done / len(data)))
    values[:, :, used] += gained


def _with_zeros(rates: Floats, vectors: Floats) -> Floats:
    """Π_l k_l(0, s_l) of every vector."""
    square, absolute, chi2, _ = rates
    exponent = vectors**2 @ square + np.abs(vectors) @ absolute + np.maximum(vectors, 0.0) @ chi2
    return np.asarray(np.exp(-exponent))


def _vectors_per_call(d: int) -> int:
    return min(_VECTORS_PER_CALL, max(_LEAST_VECTORS, _VALUES_PER_CALL // max(1, d)))


def _blocks(machine: Outputs, d: int) -> Iterator[tuple[Floats, Floats]]:
    """Some support vectors at a time, and their coefficients, one row per output, both dense."""
    step = _vectors_per_call(d)
    for start in range(0, machine.vectors.shape[0], step):
        some = slice(start, start + step)
        coefficients = machine.coefficients[some]
        table = coefficients.toarray() if is_sparse(coefficients) else coefficients
        yield as_dense(machine.vectors[some]), np.ascontiguousarray(table.T, dtype=np.float64)
