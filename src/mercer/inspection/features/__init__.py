"""Explicit feature maps of kernels: Mercer expansion, monomials, Gaussian series, random Fourier and Nyström."""

from mercer.inspection.features.expansion import (
    Nystrom,
    mercer_expansion,
    mercer_integral,
    mercer_violation,
)
from mercer.inspection.features.feature_analysis import kernel_feature_analysis
from mercer.inspection.features.gaussian import GaussianSeries, RandomFourier
from mercer.inspection.features.incomplete_cholesky import incomplete_cholesky
from mercer.inspection.features.monomials import Monomials

__all__ = [
    "GaussianSeries",
    "Monomials",
    "Nystrom",
    "RandomFourier",
    "incomplete_cholesky",
    "kernel_feature_analysis",
    "mercer_expansion",
    "mercer_integral",
    "mercer_violation",
]
