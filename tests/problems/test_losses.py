"""Derivatives of losses against finite differences, and losses with corners whose slopes all have one sign."""

import numpy as np
import pytest

from mercer import KernelMachine
from mercer.problems.losses import Squared, check_derivatives

Y = np.linspace(-1.0, 2.0, 9)


class Halved(Squared):
    """A squared loss whose gradient, or curvature, is half of what it must be on one side of y."""

    def __init__(self, of):
        self.__dict__["of"] = of

    def _factor(self, y, f, of):
        return np.where((f > y) & (self.of == of), 0.5, 1.0)

    def gradient(self, y, f):
        return 2 * (f - y) * self._factor(y, f, "gradient")

    def curvature(self, y, f):
        return 2.0 * self._factor(y, f, "curvature")


@pytest.mark.parametrize("of", ["gradient", "curvature"])
def test_a_derivative_that_is_wrong_on_one_side_is_refused(of):
    check_derivatives(Halved("nothing"), Y)
    with pytest.raises(ValueError, match=rf"loss\.{of}\(y, f\) is .* correct the derivative"):
        check_derivatives(Halved(of), Y)


def test_a_kink_at_one_point_is_allowed():
    class Kinked(Squared):
        def value(self, y, f):
            return (y - f) ** 2 + np.maximum(0.0, f - 0.3)

        def gradient(self, y, f):
            return 2 * (f - y) + (f > 0.3)

    check_derivatives(Kinked(), Y)


@pytest.mark.parametrize("lam", [0.1, 1e-5])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_loss_that_only_rises_or_only_falls(sign, lam):
    """With K = I each value minimises its own loss and λf²; a grid finds it, far from all targets for a small λ."""

    class Slope:
        kind = "regression"

        def value(self, y, f):
            t = sign * f
            return t + np.maximum(0.0, t - y) + np.maximum(0.0, t - y - 1)

        def gradient(self, y, f):
            t = sign * f
            return sign * (1.0 + (t > y) + (t > y + 1))

    y = np.array([-4.0, -2.0, 0.5, -12.0])
    model = KernelMachine(Slope(), lam=lam, bias=False, kernel="precomputed").fit(np.eye(4), y)
    grid = np.linspace(-3.0 / lam, 3.0 / lam, 60_001)
    least = sum((Slope().value(target, grid) + lam * grid**2).min() for target in y)
    certificate = model.certificate_
    assert certificate.primal == pytest.approx(least, rel=1e-6)
    assert certificate.dual <= least * (1 - 1e-9)
    assert certificate.dual == pytest.approx(least, rel=1e-5)
