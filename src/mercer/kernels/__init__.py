"""Kernels: the formulas, their algebra, their recipes and bandwidths, and the Mercer check."""

from typing import TYPE_CHECKING

from mercer.kernels.algebra import Exponential, Power, Product, Scaled, Shifted, Sum
from mercer.kernels.bandwidth import sigest
from mercer.kernels.bessel import Bessel
from mercer.kernels.columns import Categorical, Gower, OnColumns
from mercer.kernels.composite import Normalised, PulledBack, Weighted
from mercer.kernels.dot import Cosine, Linear, Polynomial, Sigmoid
from mercer.kernels.function import FromFeatureMap, FromFunction, Precomputed, rank_one
from mercer.kernels.kernel import Kernel
from mercer.kernels.mercer_check import KernelCheck, check_kernel
from mercer.kernels.names import as_kernel, kernel_accepts, kernel_named
from mercer.kernels.over_features import Chi2, Laplacian, Tanimoto
from mercer.kernels.per_feature import ANOVA, Intersection, Spline
from mercer.kernels.radial import Gaussian, Matern, RationalQuadratic
from mercer.kernels.recipe import Recipe
from mercer.kernels.strings import Mismatch, Spectrum, Subsequences, Substrings
from mercer.runtime.missing_names import missing_name

__all__ = [
    "ANOVA",
    "Bessel",
    "Categorical",
    "Chi2",
    "Cosine",
    "Exponential",
    "FromFeatureMap",
    "FromFunction",
    "Gaussian",
    "Gower",
    "Intersection",
    "Kernel",
    "KernelCheck",
    "Laplacian",
    "Linear",
    "Matern",
    "Mismatch",
    "Normalised",
    "OnColumns",
    "Polynomial",
    "Power",
    "Precomputed",
    "Product",
    "PulledBack",
    "RationalQuadratic",
    "Recipe",
    "Scaled",
    "Shifted",
    "Sigmoid",
    "Spectrum",
    "Spline",
    "Subsequences",
    "Substrings",
    "Sum",
    "Tanimoto",
    "Weighted",
    "as_kernel",
    "check_kernel",
    "kernel_accepts",
    "kernel_named",
    "rank_one",
    "sigest",
]

if not TYPE_CHECKING:  # a checker would take every name for one that may be there

    def __getattr__(name: str) -> object:
        raise missing_name(__name__, name, __all__)
