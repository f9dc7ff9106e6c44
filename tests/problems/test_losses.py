"""Derivatives of losses against finite differences: what is allowed at kinks, and what is refused."""

import numpy as np
import pytest

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
