"""Explicit features of kernels: Mercer expansions, monomials, the Gaussian's series, and random Fourier features."""

from mercer.features.expansion import MercerExpansion, mercer_expansion, mercer_integral
from mercer.features.maps import GaussianSeries, Monomials, RandomFourier

__all__ = ["GaussianSeries", "MercerExpansion", "Monomials", "RandomFourier", "mercer_expansion", "mercer_integral"]
