"""Conversion of names, functions and kernel objects, as users give them, to kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mercer.kernels.algebra import Exponential, Power, Product, Scaled, Shifted, Sum
from mercer.kernels.bessel import Bessel
from mercer.kernels.columns import OnColumns
from mercer.kernels.composite import Normalised, PulledBack, Weighted
from mercer.kernels.dot import Cosine, Linear, Polynomial, Sigmoid
from mercer.kernels.function import FromFunction, Precomputed
from mercer.kernels.kernel import BlockFunction, Domain, Kernel
from mercer.kernels.over_features import Chi2, Laplacian, Tanimoto
from mercer.kernels.per_feature import ANOVA, Intersection, Spline
from mercer.kernels.radial import Gaussian, Matern, RationalQuadratic
from mercer.kernels.strings import Spectrum, Subsequences, Substrings

# Type of the parameter `kernel` of estimators.
KernelLike = str | Kernel | BlockFunction

# Classes of the kernels that operators and methods of kernels return, by their names in model files.
COMPOSED_KERNELS: dict[str, type[Kernel]] = {
    cls.__name__: cls
    for cls in (Sum, Product, Scaled, Shifted, Power, Exponential, Normalised, Weighted, PulledBack, OnColumns)
}


def _is_default(gamma: Any) -> bool:
    """Return whether gamma is the estimators' default, for which a kernel without rules uses its own default."""
    return isinstance(gamma, str) and gamma == "scale"


# Functions of degree, gamma and coef0 that make a kernel, by its name.
_NAMES: dict[str, Callable[[int, Any, float], Kernel]] = {
    "anova": lambda degree, gamma, coef0: ANOVA() if _is_default(gamma) else ANOVA(gamma=gamma),
    "bessel": lambda degree, gamma, coef0: Bessel(),
    "chi2": lambda degree, gamma, coef0: Chi2() if _is_default(gamma) else Chi2(gamma),
    "cosine": lambda degree, gamma, coef0: Cosine(),
    "gaussian": lambda degree, gamma, coef0: Gaussian(gamma),
    "intersection": lambda degree, gamma, coef0: Intersection(),
    "laplacian": lambda degree, gamma, coef0: Laplacian(gamma),
    "linear": lambda degree, gamma, coef0: Linear(),
    "matern": lambda degree, gamma, coef0: Matern(),
    "poly": lambda degree, gamma, coef0: Polynomial(degree, gamma, coef0),
    "polynomial": lambda degree, gamma, coef0: Polynomial(degree, gamma, coef0),
    "precomputed": lambda degree, gamma, coef0: Precomputed(),
    "rational_quadratic": lambda degree, gamma, coef0: RationalQuadratic(),
    "rbf": lambda degree, gamma, coef0: Gaussian(gamma),
    "sigmoid": lambda degree, gamma, coef0: Sigmoid(gamma, coef0),
    "spectrum": lambda degree, gamma, coef0: Spectrum(),
    "spline": lambda degree, gamma, coef0: Spline(),
    "subsequences": lambda degree, gamma, coef0: Subsequences(),
    "substrings": lambda degree, gamma, coef0: Substrings(),
    "tanimoto": lambda degree, gamma, coef0: Tanimoto(),
}


def kernel_named(name: str, *, degree: int = 3, gamma: float | str = "scale", coef0: float = 0.0) -> Kernel:
    """Return the kernel of a given name; parameters that it does not have are ignored.

    Parameters
    ----------
    name : str
        Name, such as "rbf"; an unknown name raises a ValueError that lists all names.
    degree : int, default=3
        Degree of "poly".
    gamma : float, "scale", "auto" or "median", default="scale"
        Coefficient of "rbf", "laplacian", "poly" and "sigmoid"; if it is a number, also of "chi2" and "anova".
    coef0 : float, default=0.0
        Constant term of "poly" and "sigmoid".

    Examples
    --------
    >>> from mercer.kernels.names import kernel_named
    >>> kernel_named("rbf", gamma=0.5)
    Gaussian(gamma=0.5)
    """
    if name not in _NAMES:
        raise ValueError(
            f"kernel={name!r} is not the name of a kernel; the names are {', '.join(_NAMES)}. "
            "A kernel object or a function (X, Z) -> matrix is accepted too"
        )
    return _NAMES[name](degree, gamma, coef0)


def kernel_accepts(kernel: object) -> Domain:
    """Return the kind of samples that a kernel takes; a wrong name or parameter raises no error here.

    Parameters
    ----------
    kernel : str, Kernel or callable
        Kernel in any form that estimators take.

    Examples
    --------
    >>> from mercer.kernels import Spectrum
    >>> from mercer.kernels.names import kernel_accepts
    >>> kernel_accepts("rbf"), kernel_accepts("precomputed"), kernel_accepts(Spectrum())
    ('vectors', 'gram', 'sequences')
    """
    if isinstance(kernel, list | tuple) and kernel:  # kernels of a learnt weighted sum
        return kernel_accepts(kernel[0])
    if isinstance(kernel, str):
        return kernel_named(kernel).accepts if kernel in _NAMES else "vectors"
    return kernel.accepts if isinstance(kernel, Kernel) else "vectors"


def as_kernel(kernel: object, *, degree: int = 3, gamma: float | str = "scale", coef0: float = 0.0) -> Kernel:
    """Convert a name, a kernel object or a function (X, Z) -> matrix to a kernel.

    Parameters
    ----------
    kernel : str, Kernel or callable
        Kernel in any form that estimators take.
    degree, gamma, coef0 : as for `kernel_named`
        Parameters of a kernel given by name; they are checked even if the kernel does not have them.

    Examples
    --------
    >>> from mercer.kernels.names import as_kernel
    >>> as_kernel("poly", degree=2, gamma=1.0)
    Polynomial(degree=2, gamma=1.0)
    """
    Polynomial(degree, gamma, coef0)._check()
    if isinstance(kernel, str):
        return kernel_named(kernel, degree=degree, gamma=gamma, coef0=coef0)
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, type) and issubclass(kernel, Kernel):
        raise TypeError(f"kernel is the class {kernel.__name__}; give an instance of it, such as {kernel.__name__}()")
    if callable(kernel):
        return FromFunction(kernel)
    raise TypeError(
        f"kernel={kernel!r} must be a name, a kernel object or a function (X, Z) -> matrix, not {type(kernel).__name__}"
    )


def bound_kernel(kernel: Any, X: Any) -> Kernel:
    """Convert a kernel in any form to one whose parameters are numbers, computed from X if necessary."""
    kernel_object: Kernel = as_kernel(kernel)
    return kernel_object if kernel_object.bound else kernel_object.bind(X)
