"""Numbers near the ends of float64: a model, or an error that says what overflows, and never NumPy's own warnings."""

import warnings

import numpy as np
import pytest

from mercer import SVC, SVDD, SVR, NuSVC, OneClassSVM
from mercer.estimators.fitting.pipeline.task import Solutions, Solved, Task
from mercer.estimators.fitting.reports.dual_margins import BOUNDED, FREE, dual_status
from mercer.kernels import Polynomial
from mercer.problems.regression import epsilon_insensitive
from mercer.samples.merging import keep_unmerged
from mercer.solvers.solution import Solution

RNG = np.random.default_rng(0)
X = RNG.normal(size=(100, 2))
Y = (X[:, 0] > 0).astype(int)


@pytest.mark.parametrize("C", [1e150, 1e200, 1e300])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("machine", [SVC, SVR])
def test_a_large_price(machine, kernel, C):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = machine(C=C, kernel=kernel, n_jobs=1).fit(X, Y if machine is SVC else X[:, 0])
    assert model.converged_
    assert model.certificate_.violation <= 1e-3


@pytest.mark.parametrize("machine", [SVC(), SVDD(), OneClassSVM(), NuSVC(nu=0.3)])
@pytest.mark.parametrize("weight", [1e140, 1e200])
def test_large_weights(machine, weight):
    """Those of the one-class and the ν-machine are squared, so that 1e200 cannot be."""
    refused = weight == 1e200 and isinstance(machine, OneClassSVM | NuSVC)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)
        if refused:
            with pytest.raises(FloatingPointError, match="squared; scale them"):
                machine.fit(X, Y, sample_weight=np.full(100, weight))
        else:
            machine.fit(X, Y, sample_weight=np.full(100, weight))
            assert np.isfinite(machine.certificate_.gap)


@pytest.mark.parametrize("machine", [SVC(C=11, kernel="poly", slack="l2"), SVR(C=11, kernel="poly", loss="expectile")])
def test_what_overflows_on_the_way_is_an_error_not_a_proof_of_nan(machine):
    Z = 1e8 + np.random.default_rng(0).normal(size=(12, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)
        with pytest.raises(FloatingPointError, match="overflow"):
            machine.fit(Z, np.arange(12) % 2)


def test_a_degree_beyond_32_bits_is_the_kernel_s_own():
    kernel = Polynomial(degree=2**31, gamma=1 / 2**31, coef0=1.0)  # e^⟨x, z⟩, to nine digits
    np.testing.assert_allclose(kernel(X[:5], X[:5]), np.exp(X[:5] @ X[:5].T), rtol=1e-6)
    # One rounding of 1 + ⟨x, z⟩/2³¹ becomes 2³¹ of them, 2.4e-7 of a value: sums of a hundred are not known to 1e-3.
    model = SVC(kernel=kernel, tol=0.01).fit(X, Y)
    beta = np.zeros(100)
    beta[model.support_] = model.dual_coef_[0]
    assert model.converged_
    np.testing.assert_allclose(model.decision_function(X), np.exp(X @ X.T) @ beta + model.intercept_[0], atol=1e-5)


@pytest.mark.parametrize(("first", "second"), [("ovo", "ovr"), ("ovr", "ovo"), ("ovo", "crammer-singer")])
def test_margins_are_those_of_the_fit(first, second):
    y = Y + (X[:, 1] > 0.3)
    model = SVC(multiclass=first).fit(X, y)
    expected = [part.classes for part in model.margins(X, y)]
    model.set_params(multiclass=second)
    assert [part.classes for part in model.margins(X, y)] == expected


def test_a_joint_machine_has_the_margins_of_pairs_whatever_it_is_called_since():
    y = Y + (X[:, 1] > 0.3)
    model = SVC(multiclass="weston-watkins").fit(X, y)
    expected = [part.classes for part in model.margins(X, y)]
    assert len(expected) == 3
    assert [part.classes for part in model.set_params(multiclass="ovr").margins(X, y)] == expected


def test_two_free_twins_are_free():
    problem = epsilon_insensitive(np.zeros(3), np.ones(3), 0.1)
    beta = np.array([0.5, 1.0, 0.0, -0.5, 0.0, -1.0])  # free and free, bounded and unused, unused and bounded
    task = Task("", problem, None, np.arange(3))
    found = Solutions.of([Solved(task, Solution(beta, 0, "converged"), None)])
    status = dual_status(keep_unmerged(np.eye(3), np.arange(3), np.ones(3)), found, 3)
    assert status.toarray().ravel().tolist() == [FREE, BOUNDED, BOUNDED]
