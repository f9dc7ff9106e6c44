"""Explicit features of kernels: Mercer expansions, monomials, the Gaussian's series, random Fourier, and Nyström."""

from mercer.features.expansion import (
    MercerExpansion,
    Nystrom,
    mercer_expansion,
    mercer_integral,
    mercer_violation,
)
from mercer.features.gaussian import GaussianSeries, RandomFourier
from mercer.features.monomials import Monomials

__all__ = [
    "GaussianSeries",
    "MercerExpansion",
    "Monomials",
    "Nystrom",
    "RandomFourier",
    "mercer_expansion",
    "mercer_integral",
    "mercer_violation",
]
