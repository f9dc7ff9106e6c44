"""What a machine for any convex loss refuses, takes, and believes of a loss of the user's own."""

import numpy as np
import pytest

import mercer
from mercer import KernelMachineRegressor, kernels
from reference.losses import LogCosh

rng = np.random.default_rng(5)
N = 120
X = rng.normal(size=(N, 3))
Y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=N)
T = rng.normal(size=(40, 3))
GAUSSIAN = kernels.Gaussian(gamma=0.5)


def test_a_loss_of_ones_own_is_code_and_goes_into_no_file(tmp_path):
    model = KernelMachineRegressor(LogCosh()).fit(X, Y)
    with pytest.raises(TypeError, match="never code"):
        mercer.save(model, tmp_path / "model.mercer")


class WrongGradient(LogCosh):
    def gradient(self, y, f):
        return 2 * np.tanh(f - y)


class WrongCurvature(LogCosh):
    def curvature(self, y, f):
        return np.ones(len(f))


class WrongShape(LogCosh):
    def gradient(self, y, f):
        return 0.0


class Concave:
    def value(self, y, f):
        return -((y - f) ** 2)

    def gradient(self, y, f):
        return 2 * (y - f)

    def curvature(self, y, f):
        return np.full(len(f), -2.0)


BAD = {
    "name": ({"loss": "hinge"}, {}, ValueError, "loss='hinge' is none of 'squared', 'huber'"),
    "no loss": ({"loss": 3}, {}, TypeError, "loss=3 has no value and no gradient"),
    "gradient": (
        {"loss": WrongGradient()},
        {},
        ValueError,
        r"loss.gradient\(y, f\) is .* differences of loss.value give",
    ),
    "curvature": ({"loss": WrongCurvature()}, {}, ValueError, r"loss.curvature\(y, f\) is"),
    "shape": ({"loss": WrongShape()}, {}, ValueError, "must return 64 finite numbers"),
    "concave": ({"loss": Concave()}, {}, ValueError, "not convex"),
    "lam": ({"lam": 0}, {}, ValueError, "lam=0 must be a finite number above 0; without a penalty"),
    "lam infinite": ({"lam": np.inf}, {}, ValueError, "lam=inf must be"),
    "bias": ({"bias": "regularized"}, {}, TypeError, "bias='regularized' must be True or False"),
    "delta": ({"delta": -1.0}, {}, ValueError, "delta=-1.0 must be .* turns linear"),
    "tol": ({"tol": 0}, {}, ValueError, "tol=0 must be"),
    "max_iter": ({"max_iter": 1.5}, {}, ValueError, "max_iter=1.5 must be an integer"),
    "NaN in y": ({}, {"y": np.full(N, np.nan)}, ValueError, "y contains NaN"),
    "weights": ({}, {"sample_weight": np.zeros(N)}, ValueError, "all sample weights are zero"),
    "lengths": ({}, {"y": Y[:-1]}, ValueError, "inconsistent numbers of samples"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named(case):
    parameters, data, kind, text = BAD[case]
    model = KernelMachineRegressor(**parameters)
    with pytest.raises(kind, match=text):
        model.fit(**({"X": X, "y": Y} | data))
    assert not [name for name in vars(model) if name.endswith("_")]


def test_odd_but_legal_input():
    constant = KernelMachineRegressor("huber").fit(X, np.full(N, 7.0))
    np.testing.assert_allclose(constant.predict(T), 7.0)
    assert constant.converged_
    twice = np.vstack([X, X])
    np.testing.assert_allclose(
        KernelMachineRegressor(kernel=GAUSSIAN).fit(twice, np.append(Y, Y)).predict(T),
        KernelMachineRegressor(kernel=GAUSSIAN).fit(X, Y, sample_weight=np.full(N, 2.0)).predict(T),
        rtol=0,
        atol=0,
    )
    far = KernelMachineRegressor("huber", 1e-2, delta=0.1, kernel=GAUSSIAN).fit(X, 100 * Y)
    assert far.converged_


class Hill:
    """The squared loss with a hill on it, which is not convex; its curvature says nothing of that."""

    kind = "regression"

    def value(self, y, f):
        r = f - y
        return 0.5 * r * r + np.exp(-40 * (r - 1.2) ** 2)

    def gradient(self, y, f):
        r = f - y
        return r - 80 * (r - 1.2) * np.exp(-40 * (r - 1.2) ** 2)

    def curvature(self, y, f):
        r = f - y
        e = np.exp(-40 * (r - 1.2) ** 2)
        return np.maximum(1 - 80 * e + 6400 * (r - 1.2) ** 2 * e, 0)


def test_a_loss_of_the_users_is_convex_on_his_word_alone():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 1))
    y = np.where(X[:, 0] > 0, 0.0, 3.0) + 0.01 * rng.normal(size=60)
    given = mercer.KernelMachineRegressor(Hill(), lam=5.0, gamma=0.05).fit(X, y).certificate_
    assert given.proves == "optimality if the loss is convex"
    own = mercer.KernelMachineRegressor("squared", lam=5.0, gamma=0.05).fit(X, y).certificate_
    assert own.proves == "optimality"
    function = mercer.KernelMachineRegressor(Hill(), lam=5.0, kernel=lambda A, B: np.exp(-((A - B.T) ** 2))).fit(X, y)
    assert function.certificate_.proves == "optimality if K is positive semi-definite and the loss is convex"
