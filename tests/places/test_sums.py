"""Sums over samples about an origin that is not their mean."""

import numpy as np

from mercer.places.sums import Sums


def test_the_bias_is_that_of_the_mean_wherever_the_origin_is():
    """Samples 2 and 4 with the targets 1 and 5: b = 3 − 3w, and sums about (1, 0) say so as well as any."""
    x, y, origin, target = np.array([2.0, 4.0]), np.array([1.0, 5.0]), 1.0, 0.0
    dx, dy = x - origin, y - target
    numbers = {"xx": [[dx @ dx]], "xy": [[dx @ dy]], "yy": [dy @ dy], "rest_x": [dx.sum()], "rest_y": [dy.sum()]}
    arrays = {name: np.array(value) for name, value in {"x": [origin], "y": [target], **numbers}.items()}
    sums = Sums(weight=2.0, bias=True, error=np.zeros(3), **arrays)
    for w in (0.0, 3.0, -1.0):
        np.testing.assert_allclose(sums.bias_of(np.array([[w]])), [3.0 - 3.0 * w], rtol=1e-15)
