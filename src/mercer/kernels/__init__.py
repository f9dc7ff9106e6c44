"""Kernels: their formulas, algebra, recipes and bandwidths, and the Mercer check."""

from typing import TYPE_CHECKING

from mercer.kernels.bandwidth import gamma_from_sigma, sigest
from mercer.kernels.bessel import Bessel
from mercer.kernels.columns import Categorical, Gower
from mercer.kernels.dot import Cosine, Linear, Polynomial, Sigmoid
from mercer.kernels.function import FromFeatureMap, FromFunction, Precomputed, rank_one
from mercer.kernels.kernel import Kernel
from mercer.kernels.mercer_check import check_kernel
from mercer.kernels.over_features import Chi2, Laplacian, Tanimoto
from mercer.kernels.per_feature import ANOVA, Intersection, Spline
from mercer.kernels.radial import Gaussian, Matern, RationalQuadratic
from mercer.kernels.strings import Mismatch, Spectrum, Subsequences, Substrings
from mercer.runtime.missing_names import missing_name_error

__all__ = [
    "ANOVA",
    "Bessel",
    "Categorical",
    "Chi2",
    "Cosine",
    "FromFeatureMap",
    "FromFunction",
    "Gaussian",
    "Gower",
    "Intersection",
    "Kernel",
    "Laplacian",
    "Linear",
    "Matern",
    "Mismatch",
    "Polynomial",
    "Precomputed",
    "RationalQuadratic",
    "Sigmoid",
    "Spectrum",
    "Spline",
    "Subsequences",
    "Substrings",
    "Tanimoto",
    "check_kernel",
    "gamma_from_sigma",
    "rank_one",
    "sigest",
]

# Classes of composed kernels, and the operator or method by which users create them.
_MEANT = {
    "Sum": "k1 + k2",
    "Product": "k1 * k2",
    "Scaled": "a * k",
    "Shifted": "k + c",
    "Power": "k ** n",
    "Exponential": "k.exp()",
    "Normalised": "k.normalised()",
    "Weighted": "k.scaled_by(f)",
    "PulledBack": "k.of(f)",
    "OnColumns": "k.on(columns)",
}

if not TYPE_CHECKING:  # a module __getattr__ would hide misspelt names from type checkers

    def __getattr__(name: str) -> object:
        raise missing_name_error(__name__, name, __all__, _MEANT)
