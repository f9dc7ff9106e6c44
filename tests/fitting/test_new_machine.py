"""What a new machine costs: a problem, a docstring and parameters; everything else is the pipeline's."""

import inspect
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

from contracts import scikit_learn_checks
from mercer import SVR, QuantileSVR, kernels
from mercer.fitting.families.regressor import KernelRegressor
from mercer.problems.dual_problem import DualProblem


def two_priced_tube(y, C, epsilon, tau):
    n, zero = len(y), np.zeros(len(y))
    return DualProblem(
        p=np.concatenate([y - epsilon, y + epsilon]),
        lower=np.concatenate([zero, -(1 - tau) * C]),
        upper=np.concatenate([tau * C, zero]),
        d=np.zeros(2 * n),
        row=np.tile(np.arange(n), 2),
        group=np.zeros(2 * n, dtype=np.int32),
        totals=np.zeros(1),
    )


class TwoPricedSVR(KernelRegressor):
    """Support vector regression whose errors cost τC above f and (1 − τ)C below."""

    def __init__(self, C=1.0, *, epsilon=0.1, tau=0.5, kernel="rbf", gamma="scale", tol=1e-3):
        self.C, self.epsilon, self.tau = C, epsilon, tau
        self.kernel, self.gamma, self.tol = kernel, gamma, tol

    def _problem(self, fit, y, weight):
        return two_priced_tube(y, self.C * weight, self.epsilon, self.tau)


def product(A, B):
    K = A @ B.T
    return (K.toarray() if sp.issparse(K) else K) + 1.0


RNG = np.random.default_rng(0)
X = RNG.uniform(0, 6, size=(150, 2)) * (RNG.random((150, 2)) < 0.7)
Y = np.sin(X[:, 0]) + 0.2 * RNG.normal(size=150)


def test_it_is_short():
    assert len(inspect.getsource(TwoPricedSVR).splitlines()) <= 10


@pytest.mark.parametrize("kernel", ["rbf", "linear", kernels.Gaussian(0.3) + kernels.Linear(), product])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, partial(np.asarray, dtype=np.float32)])
def test_it_is_the_machines_it_contains(kernel, form):
    data = form(X)
    # Values that NumPy computes are taken to err by 10⁻¹¹, which with coefficients of 100 hides less than 10⁻⁶.
    strict = {"kernel": kernel, "tol": 1e-8 if isinstance(kernel, str) else 1e-6}
    half, plain = (m.fit(data, Y) for m in (TwoPricedSVR(4.0, **strict), SVR(2.0, **strict)))
    np.testing.assert_allclose(half.predict(data), plain.predict(data), atol=1e-5)
    sharp = TwoPricedSVR(2.0, epsilon=0.0, tau=0.8, **strict).fit(data, Y)
    quantile = QuantileSVR(0.8, C=2.0, **strict).fit(data, Y)
    np.testing.assert_allclose(sharp.predict(data), quantile.predict(data), atol=1e-5)
    assert sharp.certificate_.dual == pytest.approx(quantile.certificate_.dual, rel=1e-6)


def test_weights_copies_and_bounds():
    weight = RNG.integers(0, 4, size=150)
    weighted = TwoPricedSVR(3.0, tau=0.9).fit(X, Y, sample_weight=weight)
    repeated = TwoPricedSVR(3.0, tau=0.9).fit(np.repeat(X, weight, axis=0), np.repeat(Y, weight))
    np.testing.assert_array_equal(weighted.predict(X), repeated.predict(X))
    assert repeated.dual_coef_.max() == 3.0 * 0.9  # exactly on the bound, copy by copy
    assert repeated.dual_coef_.min() == -3.0 * (1 - 0.9)


def test_it_goes_on_from_its_last_solution():
    machine = TwoPricedSVR().partial_fit(X[:100], Y[:100]).partial_fit(X[100:], Y[100:])
    assert machine.certificate_.dual == pytest.approx(TwoPricedSVR().fit(X, Y).certificate_.dual, rel=1e-3)


@pytest.mark.filterwarnings("ignore:all .* samples end at their bound")  # targets of one check are large
def test_scikit_learns_checks():
    scikit_learn_checks.hold(TwoPricedSVR())


class Narrower(TwoPricedSVR):
    """It has the parameters of its ancestor, which wrote an `__init__` of its own."""


@dataclass(eq=False, repr=False)
class Wider(SVR):
    """It declares one more."""

    extra: int = 7


def test_parameters_are_declared_or_inherited():
    assert set(Narrower().get_params()) == set(TwoPricedSVR().get_params())
    assert Narrower(2.0, tau=0.3).tau == 0.3
    assert set(Wider().get_params()) == {*SVR().get_params(), "extra"}
    assert Wider(extra=1).extra == 1
    with pytest.raises(TypeError, match="Wider got an unexpected parameter more=1"):
        Wider(more=1)
    with pytest.raises(TypeError, match="takes from 1 to 2 positional arguments"):
        SVR(1.0, 2.0)
