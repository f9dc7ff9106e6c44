"""What a new machine costs: a problem, a docstring and parameters; everything else is the pipeline's."""

import inspect
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

import mercer
from contracts import scikit_learn_checks
from mercer import SVR, OneClassSVM, QuantileSVR, kernels
from mercer.estimators.fitting.families.regressor import KernelRegressor
from mercer.estimators.fitting.pipeline.state import Array, fitted
from mercer.problems.dual_problem import DualProblem


def two_penalty_tube(y, C, epsilon, tau):
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


class TwoPenaltySVR(KernelRegressor):
    """Support vector regression whose errors cost τC above f and (1 − τ)C below."""

    def __init__(self, C=1.0, *, epsilon=0.1, tau=0.5, kernel="rbf", gamma="scale", tol=1e-3):
        self.C, self.epsilon, self.tau = C, epsilon, tau
        self.kernel, self.gamma, self.tol = kernel, gamma, tol

    def _problem(self, fit, y, weight):
        return two_penalty_tube(y, self.C * weight, self.epsilon, self.tau)


def product(A, B):
    K = A @ B.T
    return (K.toarray() if sp.issparse(K) else K) + 1.0


RNG = np.random.default_rng(0)
X = RNG.uniform(0, 6, size=(150, 2)) * (RNG.random((150, 2)) < 0.7)
Y = np.sin(X[:, 0]) + 0.2 * RNG.normal(size=150)


def test_it_is_short():
    assert len(inspect.getsource(TwoPenaltySVR).splitlines()) <= 10


@pytest.mark.parametrize("kernel", ["rbf", "linear", kernels.Gaussian(0.3) + kernels.Linear(), product])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, partial(np.asarray, dtype=np.float32)])
def test_it_is_the_machines_it_contains(kernel, form):
    data = form(X)
    # Values that NumPy computes are taken to err by 10⁻¹¹, which with coefficients of 100 hides less than 10⁻⁶.
    strict = {"kernel": kernel, "tol": 1e-8 if isinstance(kernel, str) else 1e-6}
    half, plain = (m.fit(data, Y) for m in (TwoPenaltySVR(4.0, **strict), SVR(2.0, **strict)))
    np.testing.assert_allclose(half.predict(data), plain.predict(data), atol=1e-5)
    sharp = TwoPenaltySVR(2.0, epsilon=0.0, tau=0.8, **strict).fit(data, Y)
    quantile = QuantileSVR(0.8, C=2.0, **strict).fit(data, Y)
    np.testing.assert_allclose(sharp.predict(data), quantile.predict(data), atol=1e-5)
    assert sharp.certificate_.dual == pytest.approx(quantile.certificate_.dual, rel=1e-6)


def test_weights_copies_and_bounds():
    weight = RNG.integers(0, 4, size=150)
    weighted = TwoPenaltySVR(3.0, tau=0.9).fit(X, Y, sample_weight=weight)
    repeated = TwoPenaltySVR(3.0, tau=0.9).fit(np.repeat(X, weight, axis=0), np.repeat(Y, weight))
    np.testing.assert_array_equal(weighted.predict(X), repeated.predict(X))
    assert repeated.dual_coef_.max() == 3.0 * 0.9  # exactly on the bound, copy by copy
    assert repeated.dual_coef_.min() == -3.0 * (1 - 0.9)


def test_it_goes_on_from_its_last_solution():
    machine = TwoPenaltySVR().partial_fit(X[:100], Y[:100]).partial_fit(X[100:], Y[100:])
    assert machine.certificate_.dual == pytest.approx(TwoPenaltySVR().fit(X, Y).certificate_.dual, rel=1e-3)


@pytest.mark.filterwarnings("ignore:all .* samples end at their bound")  # targets of one check are large
def test_scikit_learns_checks():
    scikit_learn_checks.hold(TwoPenaltySVR())


class Narrower(TwoPenaltySVR):
    """It has the parameters of its ancestor, which wrote an `__init__` of its own."""


@dataclass(eq=False, repr=False)
class Wider(SVR):
    """It declares one more."""

    extra: int = 7


def test_parameters_are_declared_or_inherited():
    assert set(Narrower().get_params()) == set(TwoPenaltySVR().get_params())
    assert Narrower(2.0, tau=0.3).tau == 0.3
    assert set(Wider().get_params()) == {*SVR().get_params(), "extra"}
    assert Wider(extra=1).extra == 1
    with pytest.raises(TypeError, match="Wider got an unexpected parameter more=1"):
        Wider(more=1)
    with pytest.raises(TypeError, match="takes from 1 to 2 positional arguments"):
        SVR(1.0, 2.0)


class RelativeSVR(SVR):
    """A tube for each sample, which grows with |y|; it leaves an array about the training samples."""

    _FITTED = fitted(tubes_=Array("samples", required=True, unless="_compression_"))

    def _tubes(self, y):
        return self.epsilon + 0.2 * np.abs(y)

    def _problem(self, fit, y, weight):
        return two_penalty_tube(y, 2 * self.C * weight, self._tubes(y), 0.5)

    def _conclude(self, fit, solved):
        super()._conclude(fit, solved)
        self.tubes_ = self._tubes(fit.target)


class GroupedOneClassSVM(OneClassSVM):
    """Groups of samples with equal weight; it leaves an array that is true of fewer vectors too."""

    _FITTED = fitted(group_weight_=Array(None, required=True, kept=True))

    def _read(self, y):
        codes = np.unique(y, return_inverse=True)[1]
        return codes, np.ones(codes.max() + 1)

    def _weigh(self, target, codes, weight):
        factor = weight.sum() / np.bincount(codes, weight) / len(target)
        return weight * factor[codes], factor

    def _conclude(self, fit, solved):
        super()._conclude(fit, solved)
        self.group_weight_ = fit.target


GROUPS = np.digitize(X[:, 1], [1.0, 3.0])


@pytest.mark.parametrize(
    ("machine", "y", "name"), [(RelativeSVR(), Y, "tubes_"), (GroupedOneClassSVM(nu=0.2), GROUPS, "group_weight_")]
)
def test_an_array_of_its_own_is_read_only_saved_and_loaded(machine, y, name, tmp_path):
    model = machine.fit(X, y)
    assert not getattr(model, name).flags.writeable
    mercer.save(model, tmp_path / "a.mercer")
    loaded = mercer.load(tmp_path / "a.mercer", classes=[type(machine)])
    np.testing.assert_array_equal(getattr(loaded, name), getattr(model, name))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_what_compression_makes_of_an_array_of_its_own():
    small = mercer.compress(GroupedOneClassSVM(nu=0.2).fit(X, GROUPS), 20)
    assert small.group_weight_.shape == (3,)
    with pytest.raises(AttributeError, match="tubes_ belongs to the original"):
        _ = mercer.compress(RelativeSVR().fit(X, Y), 20).tubes_

    class Undecided(RelativeSVR):
        _FITTED = fitted(tubes_=Array("samples", required=True))

    with pytest.raises(
        TypeError, match=r"does not declare whether tubes_ stays valid.* kept=True .* unless='_compression_'"
    ):
        mercer.compress(Undecided().fit(X, Y), 20)


def test_weights_that_a_machine_changes_are_changed_once():
    """`partial_fit` and `forget` weigh all samples anew, from the weights that the user gave."""
    weight = np.linspace(0.5, 2.0, 150)
    machine = GroupedOneClassSVM(nu=0.2, tol=1e-8).partial_fit(X[:100], GROUPS[:100], weight[:100])
    machine.partial_fit(X[100:], GROUPS[100:], weight[100:])
    whole = GroupedOneClassSVM(nu=0.2, tol=1e-8).fit(X, GROUPS, weight)
    np.testing.assert_allclose(machine.decision_function(X), whole.decision_function(X), atol=1e-6)
    machine.forget(np.arange(100, 150))
    part = GroupedOneClassSVM(nu=0.2, tol=1e-8).fit(X[:100], GROUPS[:100], weight[:100])
    np.testing.assert_allclose(machine.decision_function(X), part.decision_function(X), atol=1e-6)
