"""Names as scikit-learn spells them, and whatever else may be given as a kernel."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS

from mercer.kernels import (
    ANOVA,
    Bessel,
    Chi2,
    Cosine,
    FromFunction,
    Gaussian,
    Intersection,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Precomputed,
    RationalQuadratic,
    Sigmoid,
    Spectrum,
    Spline,
    Subsequences,
    Substrings,
    Tanimoto,
)
from mercer.kernels.names import as_kernel, kernel_named

PARAMETERS = {"degree": 4, "gamma": 0.3, "coef0": 1.5}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("linear", Linear()),
        ("poly", Polynomial(4, 0.3, 1.5)),
        ("polynomial", Polynomial(4, 0.3, 1.5)),
        ("rbf", Gaussian(0.3)),
        ("gaussian", Gaussian(0.3)),
        ("sigmoid", Sigmoid(0.3, 1.5)),
        ("laplacian", Laplacian(0.3)),
        ("chi2", Chi2(0.3)),
        ("anova", ANOVA(gamma=0.3)),
        ("bessel", Bessel()),
        ("intersection", Intersection()),
        ("spline", Spline()),
        ("substrings", Substrings()),
        ("subsequences", Subsequences()),
        ("cosine", Cosine()),
        ("matern", Matern()),
        ("rational_quadratic", RationalQuadratic()),
        ("tanimoto", Tanimoto()),
        ("spectrum", Spectrum()),
        ("precomputed", Precomputed()),
    ],
)
def test_names(name, expected):
    for kernel in (kernel_named(name, **PARAMETERS), as_kernel(name, **PARAMETERS)):
        assert type(kernel) is type(expected)
        assert repr(kernel) == repr(expected)


def test_chi2_has_its_own_default():
    assert kernel_named("chi2", degree=3, gamma="scale", coef0=0.0).gamma == 1.0
    with pytest.raises(TypeError, match="gamma='auto'"):
        kernel_named("chi2", degree=3, gamma="auto", coef0=0.0)


def test_unknown_names():
    for name in ("rfb", "", "RBF", "chi", "additive_chi2"):
        with pytest.raises(ValueError, match=rf"kernel='{name}' is not the name of a kernel.*chi2, cosine, gaussian"):
            as_kernel(name, **PARAMETERS)


def test_scikit_learns_names_are_known():
    for name in set(PAIRWISE_KERNEL_FUNCTIONS) - {"additive_chi2"}:
        as_kernel(name, **PARAMETERS)


def test_kernels_and_functions():
    kernel = 2 * Gaussian()
    assert as_kernel(kernel, **PARAMETERS) is kernel
    assert isinstance(as_kernel(np.dot, **PARAMETERS), FromFunction)


def test_anything_else():
    with pytest.raises(TypeError, match=r"the class Gaussian; give an instance of it, such as Gaussian\(\)"):
        as_kernel(Gaussian, **PARAMETERS)
    for thing in (None, 3, ["rbf"], np.eye(2)):
        with pytest.raises(TypeError, match="must be a name, a kernel object or a function"):
            as_kernel(thing, **PARAMETERS)


def test_bad_parameters_are_named():
    with pytest.raises(ValueError, match=r"degree=2\.5"):
        as_kernel("poly", degree=2.5, gamma="scale", coef0=0.0)
    with pytest.raises(ValueError, match="gamma='wide'"):
        as_kernel("rbf", degree=3, gamma="wide", coef0=0.0)
    with pytest.raises(ValueError, match="coef0=nan"):
        as_kernel("sigmoid", degree=3, gamma="scale", coef0=np.nan)
    with pytest.raises(ValueError, match="gamma=-1"):  # also of a kernel without gamma, as in scikit-learn
        as_kernel("linear", degree=3, gamma=-1, coef0=0.0)
