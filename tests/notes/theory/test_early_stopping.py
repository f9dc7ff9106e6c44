"""Early stopping: every t against the iteration itself, and conjugate gradients against LSQR."""

import numpy as np
import pytest
from scipy.sparse.linalg import lsqr

from mercer import RLSRegressor
from mercer.kernels import Gaussian, Linear, Polynomial, Precomputed, Spectrum
from mercer.notes.theory import iteration_path, stopping_step

rng = np.random.default_rng(0)
N = 25
X = rng.normal(size=(N, 3))
Y = X @ [1.0, -0.5, 0.2] + 0.5 + 0.3 * rng.normal(size=N)
TWO = np.column_stack([Y, np.sin(X[:, 0])])
WEIGHT = rng.integers(1, 4, N).astype(float)
NEW = rng.normal(size=(7, 3))


def iterated(K, y, w, eta, t, bias):
    """f ← f + η Σ w_i r_i k(x_i, ·), as printed."""
    c, b = np.zeros(len(y)), 0.0
    for _ in range(t):
        r = y - K @ c
        b = w @ r / w.sum() if bias else 0.0
        c = c + eta * w * (r - b)
    return c, (w @ (y - K @ c) / w.sum() if bias else 0.0)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kernel", [Gaussian(gamma=0.3), Linear(), Polynomial(2, 1.0, 1.0)], ids=repr)
def test_landweber_is_the_iteration(kernel, bias):
    path = iteration_path(X, Y, kernel=kernel, max_iter=200, bias=bias, sample_weight=WEIGHT)
    K = kernel(X)
    for t in (0, 1, 2, 17, 200):
        c, b = iterated(K, Y, WEIGHT, path.step_size, t, bias)
        f = path.at(t)
        np.testing.assert_allclose(path.coefficients(t), c, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(f(NEW), kernel(NEW, X) @ c + b, rtol=1e-8, atol=1e-9)
        r = Y - K @ c - b
        assert path.errors[t, 0] == pytest.approx(WEIGHT @ r**2 / WEIGHT.sum(), rel=1e-8)
        assert path.norms[t, 0] == pytest.approx(np.sqrt(max(0.0, c @ K @ c)), rel=1e-7, abs=1e-9)
        # The degrees of freedom are the trace of y ↦ f, column by column.
        ends = [iterated(K, e, WEIGHT, path.step_size, t, bias) for e in np.eye(N)]
        trace = sum(K[i] @ c + b for i, (c, b) in enumerate(ends))
        assert path.dof[t] == pytest.approx(trace, rel=1e-8, abs=1e-9) or t == 0
    assert (np.diff(path.errors[:, 0]) <= 1e-12).all()
    assert (np.diff(path.norms[:, 0]) >= -1e-12).all()


@pytest.mark.parametrize("bias", [True, False])
def test_conjugate_gradients_are_lsqr(bias):
    path = iteration_path(X, TWO, kernel=Linear(), method="cg", bias=bias)
    Z = X - X.mean(axis=0) if bias else X
    assert path.steps[-1] == 3  # three features: nothing is left to gain
    for t in (1, 2, 3):
        for k, f in enumerate(path.at(t)):
            y = TWO[:, k] - TWO[:, k].mean() if bias else TWO[:, k]
            w = lsqr(Z, y, atol=0, btol=0, conlim=0, iter_lim=t)[0]
            expected = NEW @ w + (TWO[:, k].mean() - X.mean(axis=0) @ w if bias else 0.0)
            np.testing.assert_allclose(f(NEW), expected, rtol=1e-8, atol=1e-9)


def test_conjugate_gradients_have_the_least_error_of_their_dimension():
    """The best combination of Ks, K²s, …, Kᵗs, by least squares."""
    kernel = Gaussian(gamma=0.2)
    K, path = kernel(X), iteration_path(X, Y, kernel=kernel, method="cg", bias=False, max_iter=5)
    s, columns = Y, []
    for t in range(1, 6):
        s = K @ s
        columns.append(s / np.linalg.norm(s))
        rest = Y - np.column_stack(columns) @ np.linalg.lstsq(np.column_stack(columns), Y)[0]
        assert path.errors[t, 0] == pytest.approx(np.mean(rest**2), rel=1e-8)
    # As many steps of gradient descent leave more.
    assert path.errors[5, 0] < iteration_path(X, Y, kernel=kernel, bias=False).errors[5, 0]


def test_many_steps_interpolate_as_a_vanishing_ridge_does():
    kernel = Polynomial(2, 1.0, 1.0)
    few = X[:8]
    limit = RLSRegressor(lam=1e-9, kernel=kernel).fit(few, Y[:8])
    for method, max_iter in (("landweber", 3000), ("cg", 60)):
        path = iteration_path(few, Y[:8], kernel=kernel, method=method, max_iter=max_iter)
        np.testing.assert_allclose(path.at(int(path.steps[-1]))(NEW), limit.predict(NEW), rtol=1e-2, atol=1e-2)


def test_steps_are_a_ridge():
    """Both damp small components alike, and large ones hardly: dof and norms are close at λ = 1/(ηt)."""
    kernel = Gaussian(gamma=0.3)
    path = iteration_path(X, Y, kernel=kernel, max_iter=300, bias=False)
    K = kernel(X)
    for t in (10, 300):
        dof = np.trace(K @ np.linalg.inv(K + path.ridge(t) * np.eye(N)))
        assert dof == pytest.approx(path.dof[t], rel=0.35)
    assert path.ridge(0) == np.inf
    with pytest.raises(ValueError, match="no ridge corresponds"):
        iteration_path(X, Y, kernel=kernel, method="cg").ridge(2)


def test_choosing_when_to_stop():
    data = np.random.default_rng(1)
    Z = data.uniform(-3, 3, size=(300, 1))
    y = np.sin(2 * Z[:, 0]) + 0.4 * data.normal(size=300)
    for method in ("landweber", "cg"):
        path = iteration_path(Z[:60], y[:60], kernel=Gaussian(gamma=2.0), method=method, max_iter=400)
        errors = path.errors_on(Z[60:], y[60:])
        best = path.best(Z[60:], y[60:])
        assert errors[best] == errors.min()
        assert errors[best] < 0.9 * errors[-1]  # more steps fit the noise
        assert 0 < best < path.steps[-1]
        kept, known = stopping_step(errors, window=1, rise=0.0)
        assert kept <= known
        stopped = iteration_path(
            Z[:60],
            y[:60],
            kernel=Gaussian(gamma=2.0),
            method=method,
            max_iter=400,
            validation=(Z[60:], y[60:]),
            window=3,
        )
        np.testing.assert_allclose(stopped.validation_errors, errors[: len(stopped.steps)])
        assert (stopped.kept, stopped.steps[-1]) == stopping_step(errors, window=3, rise=0.05)
        assert stopped.steps[-1] < 400
        np.testing.assert_allclose(stopped.at(stopped.kept)(Z), path.at(stopped.kept)(Z))
    assert path.kept is None
    assert stopping_step([3.0, 2.0, 1.0]) == (2, 2)
    # A single rise is noise to a window of three.
    assert stopping_step([4.0, 1.0, 3.0, 0.5, 0.4, 9.0, 9.0], window=3, rise=0.1)[0] == 4


def test_weights_are_repetitions_and_matrices_are_kernels():
    kernel = Gaussian(gamma=0.3)
    again = np.repeat(np.arange(N), WEIGHT.astype(int))
    for method in ("landweber", "cg"):
        one = iteration_path(X, Y, kernel=kernel, method=method, sample_weight=WEIGHT, max_iter=6)
        other = iteration_path(X[again], Y[again], kernel=kernel, method=method, max_iter=6)
        np.testing.assert_allclose(one.at(6)(NEW), other.at(6)(NEW), rtol=1e-7)
        given = iteration_path(kernel(X), Y, kernel=Precomputed(), method=method, sample_weight=WEIGHT, max_iter=6)
        np.testing.assert_allclose(given.at(6)(kernel(NEW, X)), one.at(6)(NEW), rtol=1e-9)
        np.testing.assert_allclose(given.errors_on(kernel(NEW, X), Y[:7]), one.errors_on(NEW, Y[:7]), rtol=1e-9)
    assert len(iteration_path(["ab", "b", "aa"], [1.0, 0.0, 2.0], kernel=Spectrum(1)).at(3)) > 0


def test_bad_arguments():
    for options, message in [
        ({"method": "newton"}, "must be one of"),
        ({"max_iter": 0}, "at least 1"),
        ({"step_size": 10.0}, "steps diverge: it must be below"),
        ({"sample_weight": np.zeros(N)}, "not all 0"),
        ({"y": Y[:4]}, "X has 25 samples and y has the shape"),
        ({"kernel": Precomputed()}, "must be finite and 25 × 25"),
    ]:
        given = {"kernel": Linear(), "X": X, "y": Y} | options
        with pytest.raises(ValueError, match=message):
            iteration_path(given.pop("X"), given.pop("y"), kernel=given.pop("kernel"), **given)
    path = iteration_path(X, Y, kernel=Linear(), max_iter=5)
    with pytest.raises(ValueError, match="t=6 is beyond the path, which ends after 5"):
        path.at(6)
    with pytest.raises(ValueError, match="one finite number per step"):
        stopping_step([])
