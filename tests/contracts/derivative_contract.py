"""What a differentiable kernel owes its callers: derivatives that agree with differences of its own values."""

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

# The central difference of order six: its error is step⁶ k⁽⁷⁾/140, and rounding adds about eps·|k|/step.
STENCIL = ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60))
STEP = 2.0**-8


def difference(values, step):
    return sum(c * (values(i * step) - values(-i * step)) for i, c in STENCIL) / step


def check_derivatives(kernel, X, Z, *, rtol=1e-6):
    """Both derivatives of a kernel with numbers for parameters, at samples where it is smooth over three steps."""
    K = np.abs(kernel(X, Z)).max(initial=1e-300)
    full = kernel.gradient(X, Z)
    assert full.shape == (len(X), len(Z), X.shape[1])
    for feature in range(X.shape[1]):
        towards = np.eye(X.shape[1])[feature]
        expected = difference(lambda h, u=towards: kernel(X + h * u, Z), STEP)
        _close(full[:, :, feature], expected, rtol, K)
    _check_weights(kernel, X, Z, full, rtol, K)
    _check_parameters(kernel, X, Z, rtol, K)


def _check_weights(kernel, X, Z, full, rtol, K):
    rng = np.random.default_rng(len(X))
    for weights in (rng.normal(size=len(Z)), rng.normal(size=(len(X), len(Z)))):
        table = np.broadcast_to(weights, (len(X), len(Z)))
        expected = np.einsum("ij,ijf->if", table, full)
        for x, z in ((X, Z), (sp.csr_array(X), sp.csr_array(Z)), (X, sp.csr_array(Z))):
            _close(kernel.gradient(x, z, weights=weights), expected, rtol, K * len(Z))
        sums = kernel.parameter_gradient(X, Z, weights=weights)
        for name, matrix in kernel.parameter_gradient(X, Z).items():
            expected = np.einsum("ij,ij...->...", table, matrix)
            np.testing.assert_allclose(sums[name], expected, rtol=1e-9, atol=1e-9 * np.abs(matrix).sum())


def _check_parameters(kernel, X, Z, rtol, K):
    slopes = kernel.parameter_gradient(X, Z)
    given = kernel.get_params().items()
    numbers = {name for name, value in given if isinstance(value, float) and not name.endswith(("nu", "order"))}
    assert {name for name in slopes if not name.endswith("M")} == numbers
    for name, slope in slopes.items():
        value = kernel.get_params()[name]
        if name.endswith("M"):
            _check_matrix(kernel, name, slope, X, Z, rtol, K)
            continue
        assert slope.shape == (len(X), len(Z))
        size = abs(value) or 1.0
        changed = lambda h, name=name, value=value: clone(kernel).set_params(**{name: value + h})(X, Z)  # noqa: E731
        _close(slope * size, difference(changed, STEP * size) * size, rtol, K)


def _check_matrix(kernel, name, slope, X, Z, rtol, K):
    M = kernel.get_params()[name]
    for a in range(len(M)):
        for b in range(a + 1):
            towards = np.zeros_like(M)
            towards[a, b] = towards[b, a] = 1.0
            expected = difference(lambda h, u=towards: clone(kernel).set_params(**{name: M + h * u})(X, Z), STEP / 4)
            own = slope[:, :, a, b] + slope[:, :, b, a] if a != b else slope[:, :, a, a]
            _close(own, expected, rtol, K)


def _close(own, expected, rtol, K):
    """To rtol of the largest derivative, and to what rounding does to the differences of values up to K."""
    np.testing.assert_allclose(own, expected, rtol=0, atol=rtol * np.abs(expected).max(initial=0.0) + 1e-11 * K)
