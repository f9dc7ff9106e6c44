"""Explicit features of kernels: Mercer expansions, monomials, the Gaussian's series, random Fourier, and Nyström."""

from mercer.features.expansion import MercerExpansion, mercer_expansion, mercer_integral
from mercer.features.gaussian_series import GaussianSeries
from mercer.features.monomials import Monomials
from mercer.features.nystrom import Nystrom
from mercer.features.random_fourier import RandomFourier

__all__ = [
    "GaussianSeries",
    "MercerExpansion",
    "Monomials",
    "Nystrom",
    "RandomFourier",
    "mercer_expansion",
    "mercer_integral",
]
