"""Kernels: the formulas, their algebra, their recipes and bandwidths, and the Mercer check."""

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
from mercer.runtime.missing_names import missing_name

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

# The classes of these kernels are in the modules of this folder; users write the operator or the method.
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

if not TYPE_CHECKING:  # a checker would take every name for one that may be there

    def __getattr__(name: str) -> object:
        raise missing_name(__name__, name, __all__, _MEANT)
