"""Terms: kernels that are sums of products over the features.

    k(x, z) = Σ_terms q(⟨x, z⟩) Π_l exp(−a_l u² − b_l |u| − c_l u²/(x_l + z_l) + e_l x_l z_l),   u = x_l − z_l

with a polynomial q; its inner product may run over some of the features only. Sums, products, powers and multiples of
such kernels have the same form. Shapley values, for example, are computed from the terms.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from mercer.samples.arrays import Flags, Floats, Indices

Terms = tuple["Term", ...]

# Highest power of ⟨x, z⟩ that the core supports (kMaxSeries in src/core/simd/level.hpp).
MAX_DEGREE = 16
# Largest number of terms; a kernel with more of them counts as having no such form.
MAX_TERMS = 200
_RATES = ("square", "absolute", "chi2", "dot")


@dataclass(frozen=True, eq=False)
class Term:
    """One product over the features.

    Attributes
    ----------
    polynomial : tuple of float
        Coefficients q_0, q_1, … of the factor Σ_k q_k ⟨x, z⟩^k.
    square, absolute, chi2, dot : float or array
        Rates a, b, c and e of the exponents, one number for all features or one for each.
    inner_features : array of bool, or None
        Features over which ⟨x, z⟩ is taken; None for all.
    """

    polynomial: tuple[float, ...] = (1.0,)
    square: float | Floats = 0.0
    absolute: float | Floats = 0.0
    chi2: float | Floats = 0.0
    dot: float | Floats = 0.0
    inner_features: Flags | None = None

    @property
    def only_polynomial(self) -> bool:
        """True if there is no exponential factor."""
        return not any(np.any(getattr(self, name)) for name in _RATES)

    @property
    def constant(self) -> bool:
        """True if the term is the same number for all samples."""
        return len(self.polynomial) == 1 and self.only_polynomial

    @property
    def of_differences(self) -> bool:
        """True if the term's k(x, x) is the same number for all samples."""
        return len(self.polynomial) == 1 and not np.any(self.dot)

    def rates(self, d: int) -> Floats:
        """Return the rates as an array: rows are a, b, c and e, columns are the d features."""
        return np.stack([np.broadcast_to(np.asarray(getattr(self, name), dtype=np.float64), (d,)) for name in _RATES])

    def on(self, columns: Indices, d: int) -> Term:
        """Return the term applied to the given columns, out of d."""
        rates_of_all = np.zeros((len(_RATES), d))
        rates_of_all[:, columns] = self.rates(len(columns))
        inner_features = np.zeros(d, dtype=np.bool_)
        inner_features[columns] = True if self.inner_features is None else self.inner_features
        rates = dict(zip(_RATES, rates_of_all, strict=True))
        return Term(self.polynomial, **rates, inner_features=None if len(self.polynomial) == 1 else inner_features)

    @property
    def only_inner_features(self) -> bool:
        """True if only the features of ⟨x, z⟩ occur in the exponents."""
        return self.inner_features is None or not any(
            np.any(np.broadcast_to(getattr(self, name), self.inner_features.shape)[~self.inner_features])
            for name in _RATES
        )

    def times(self, other: Term) -> Term | None:
        """Return the product of two terms; None if both have inner products, over different features."""
        with_polynomial = [term for term in (self, other) if len(term.polynomial) > 1]
        if len(with_polynomial) == 2 and not _same_features(self.inner_features, other.inner_features):
            return None
        exponents = {name: getattr(self, name) + getattr(other, name) for name in _RATES}
        with np.errstate(over="ignore", invalid="ignore"):
            polynomial = np.convolve(self.polynomial, other.polynomial)
        return Term(
            tuple(polynomial.tolist()),
            **exponents,
            inner_features=with_polynomial[0].inner_features if with_polynomial else None,
        )

    def same_exponents(self, other: Term) -> bool:
        """Return whether the two terms differ in their polynomials only."""
        are_both_polynomial = len(self.polynomial) > 1 and len(other.polynomial) > 1
        if are_both_polynomial and not _same_features(self.inner_features, other.inner_features):
            return False
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in _RATES)

    def plus(self, other: Term) -> Term:
        """Return the sum of two terms with the same exponents."""
        size = max(len(self.polynomial), len(other.polynomial))
        total = np.zeros(size)
        for term in (self, other):
            total[: len(term.polynomial)] += term.polynomial
        longer = self if len(self.polynomial) == size else other
        return Term(
            tuple(total.tolist()),
            **{name: getattr(self, name) for name in _RATES},
            inner_features=longer.inner_features,
        )


def _same_features(left: Flags | None, right: Flags | None) -> bool:
    """Return whether two masks select the same features; None selects all."""
    return left is right or (left is not None and right is not None and np.array_equal(left, right))


def polynomial_term(gamma: float, coef0: float, degree: int) -> Terms | None:
    """Return the terms of (γ⟨x, z⟩ + coef0)^degree; None if the degree is too high or a coefficient overflows."""
    if degree > MAX_DEGREE:
        return None
    try:
        factors = [math.comb(degree, k) * gamma**k * coef0 ** (degree - k) for k in range(degree + 1)]
    except OverflowError:
        return None
    return _join_equal([Term(tuple(factors))])


def terms_of_sum(left: Sequence[Term] | None, right: Sequence[Term] | None) -> Terms | None:
    """Return the terms of k1 + k2."""
    return None if left is None or right is None else _join_equal([*left, *right])


def terms_of_product(left: Sequence[Term] | None, right: Sequence[Term] | None) -> Terms | None:
    """Return the terms of k1·k2."""
    if left is None or right is None or len(left) * len(right) > MAX_TERMS**2:
        return None
    products = [one.times(other) for one in left for other in right]
    return None if None in products else _join_equal(cast(list[Term], products))


def on_columns(terms: Sequence[Term] | None, columns: Indices, d: int) -> Terms | None:
    """Return the terms of k applied to the given columns, out of d."""
    return None if terms is None else _join_equal(term.on(columns, d) for term in terms)


def terms_of_multiple(terms: Sequence[Term] | None, factor: float) -> Terms | None:
    """Return the terms of a·k."""
    return terms_of_product((Term((float(factor),)),), terms)


def terms_of_shifted(terms: Sequence[Term] | None, constant: float) -> Terms | None:
    """Return the terms of k + c."""
    return terms_of_sum(terms, (Term((float(constant),)),))


def terms_of_normalised(terms: Sequence[Term] | None) -> Terms | None:
    """Return the terms of k(x, z)/√(k(x, x) k(z, z)) if k(x, x) is constant; otherwise None."""
    if terms is None or not all(term.of_differences for term in terms):
        return None
    return terms_of_multiple(terms, 1.0 / sum(term.polynomial[0] for term in terms))


def terms_of_power(terms: Sequence[Term] | None, exponent: int) -> Terms | None:
    """Return the terms of k^n."""
    if terms is None:
        return None
    if len(terms) == 1 and len(terms[0].polynomial) == 1:  # c^n Π exp(n …) for any n
        term = terms[0]
        try:
            scale = float(term.polynomial[0]) ** exponent
        except OverflowError:
            return None
        return _join_equal([Term((scale,), **{name: exponent * getattr(term, name) for name in _RATES})])
    power: Terms | None = tuple(terms)
    for _ in range(exponent - 1):
        power = terms_of_product(power, terms)
        if power is None:
            return None
    return power


def terms_of_exponential(terms: Sequence[Term] | None) -> Terms | None:
    """Return the terms of exp(k) if k is a multiple of ⟨x, z⟩ plus a constant; otherwise None."""
    if terms is None or len(terms) != 1 or not terms[0].only_polynomial or len(terms[0].polynomial) > 2:
        return None
    constant, *slope = terms[0].polynomial
    try:
        scale = math.exp(constant)
    except OverflowError:
        return None
    inner_features = 1.0 if terms[0].inner_features is None else terms[0].inner_features.astype(np.float64)
    return _join_equal([Term((scale,), dot=slope[0] * inner_features if slope else 0.0)])


def _join_equal(terms: Iterable[Term]) -> Terms | None:
    """Join terms with equal exponents; return None if too many are left, a degree is too high, or one overflows."""
    joined_terms: list[Term] = []
    for term in terms:
        position = next((k for k, other in enumerate(joined_terms) if term.same_exponents(other)), None)
        if position is None:
            joined_terms.append(term)
        else:
            joined_terms[position] = joined_terms[position].plus(term)
        if len(joined_terms) > MAX_TERMS:
            return None
    for term in joined_terms:
        if len(term.polynomial) > MAX_DEGREE + 1 or not np.isfinite(term.polynomial).all():
            return None
        if not all(np.isfinite(getattr(term, name)).all() for name in _RATES):
            return None
    return tuple(joined_terms)
