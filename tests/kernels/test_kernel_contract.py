"""Every kernel, simple and composite, under the kernel contract."""

import inspect

import numpy as np
import pytest

from contracts.kernel_contract import check_kernel_contract
from mercer import kernels
from mercer.kernels import (
    ANOVA,
    Bessel,
    Categorical,
    Chi2,
    Cosine,
    FromFeatureMap,
    FromFunction,
    Gaussian,
    Gower,
    Intersection,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Mismatch,
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
from mercer.kernels.names import COMPOSED_KERNELS

rng = np.random.default_rng(0)
X = np.abs(rng.normal(size=(17, 3))) * (rng.random((17, 3)) > 0.3) + np.array([0.1, 0.0, 0.0])
Z = np.abs(rng.normal(size=(11, 3))) * (rng.random((11, 3)) > 0.3)
WORDS = ["".join(rng.choice(list("ACGT"), size)) for size in rng.integers(4, 30, 14)]
M = np.array([[2.0, 0.3, 0.0], [0.3, 1.0, 0.2], [0.0, 0.2, 0.5]])


def squares(X):
    return X.power(2) if hasattr(X, "power") else X**2


def weight_of(X):
    return 1.0 + np.asarray(X.sum(axis=1)).ravel()


def inner(X, Z):
    return X @ Z.T


def length_of(words):
    return np.array([[len(word), 1.0] for word in words])


def common_letters(X, Z):
    return [[len(set(x) & set(z)) for z in Z] for x in X]


VECTORS = [
    Linear(),
    Polynomial(),
    Polynomial(degree=0),
    Polynomial(degree=1, gamma=2.0, coef0=0.5),
    Polynomial(degree=2, gamma="auto", coef0=-1.0),
    Polynomial(degree=7, gamma=0.3, coef0=1.0),
    Sigmoid(),
    Sigmoid(gamma=0.5, coef0=-0.2),
    Cosine(),
    Gaussian(),
    Gaussian(gamma="auto"),
    Gaussian(gamma="median"),
    Gaussian(gamma=0.7),
    Gaussian(sigma=2),
    Gaussian(M=M),
    Gaussian(gamma=1e308),
    Laplacian(),
    Laplacian(gamma="median"),
    Laplacian(gamma=2),
    Matern(),
    Matern(nu=0.5),
    Matern(nu=2.5, length_scale=0.3),
    Matern(nu=np.inf),
    Matern(nu=0.8, length_scale=2.0),
    Matern(nu=3.3),
    RationalQuadratic(),
    RationalQuadratic(alpha=0.3, length_scale=2.0),
    Chi2(),
    Chi2(gamma=0.2),
    Tanimoto(),
    Intersection(),
    ANOVA(),
    ANOVA(order=2, gamma=0.3),
    ANOVA(order=3) ** 2,
    Spline(),
    Bessel(),
    Bessel(order=0.5, sigma=3.0),
    Bessel(order=0, sigma=2.0),
    Categorical(),
    Categorical("data"),
    Gower([0, 2], gamma=2.0),
    Gower(),
    Gaussian().on([2, 0]),
    Gaussian(gamma="median").on([0]) * Categorical("data").on([1, 2]) + 2 * Linear().on([1]),
    (Bessel().on([0, 1]) + Chi2().on([2]) * Polynomial().on([0])).normalised(),
    FromFunction(inner),
    FromFeatureMap(squares),
    2 * Gaussian(sigma=1) + Linear() ** 2,
    Gaussian() + Laplacian() + 1,
    Gaussian(gamma=0.3) * Gaussian(gamma=0.4),
    3 * Linear() * Polynomial(degree=2, coef0=1.0),
    (Linear() + 1) ** 3,
    0.5 * Laplacian(gamma=0.1) ** 2,
    (0.1 * Linear()).exp(),
    Polynomial(degree=2, coef0=1.0, gamma=1.0).normalised(),
    (3 * Gaussian()).normalised(),
    Gaussian().scaled_by(weight_of),
    Gaussian().of(squares),
    Linear().of(squares).normalised() + Chi2(),
    0.5 * FromFunction(inner) + Gaussian(gamma=1.0),
    Gaussian(gamma=0.4).exp(),
]
SEQUENCES = [
    Substrings(),
    Substrings(longest=3, decay=0.5, normalise=True),
    Subsequences(2, 0.7),
    Subsequences(3, normalise=True),
    Mismatch(3, 1),
    Spectrum(),
    Spectrum(length=1),
    Spectrum(length=2, normalise=True),
    Spectrum(length=2).normalised(),
    2 * Spectrum() + Spectrum(length=1),
    Gaussian().of(length_of, accepts="sequences"),
    FromFunction(common_letters, accepts="sequences"),
    FromFeatureMap(length_of, accepts="sequences"),
]


@pytest.mark.parametrize("kernel", VECTORS, ids=repr)
def test_kernels_on_vectors(kernel):
    check_kernel_contract(kernel, X, Z)


@pytest.mark.parametrize("kernel", SEQUENCES, ids=repr)
def test_kernels_on_strings(kernel):
    check_kernel_contract(kernel, WORDS, [*WORDS[3:8], "ACGTACGT"])


def test_no_kernel_is_left_out():
    def within(kernel):
        yield type(kernel)
        for value in kernel.get_params(deep=False).values():
            if isinstance(value, Kernel):
                yield from within(value)

    covered = {kind for kernel in VECTORS + SEQUENCES for kind in within(kernel)} | {Precomputed, Kernel}
    exported = {getattr(kernels, name) for name in kernels.__all__} | set(COMPOSED_KERNELS.values())
    missing = {kind for kind in exported if inspect.isclass(kind) and issubclass(kind, Kernel)} - covered
    assert not missing, f"{missing} need an instance in VECTORS or SEQUENCES of this file"


def test_importing_the_kernels_does_not_need_the_core():
    import subprocess
    import sys
    from pathlib import Path

    script = (
        "import sys, types; package = types.ModuleType('mercer'); package.__path__ = [sys.argv[1]]; "
        "sys.modules['mercer'] = package; import mercer.kernels; assert 'mercer._core' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script, str(Path(kernels.__file__).parents[1])], check=True)
