"""max_time holds for the whole fit, its certificate included; where there is nothing to return, an error says so."""

import math
import time

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import mercer
from mercer import _core
from mercer.kernels import Gaussian, Matern
from mercer.places import gram_for
from mercer.runtime.long_calls import check_decomposition_time
from mercer.samples.arrays import add_gram, mirror, moments, take
from mercer.solvers.deadline import ProofTime
from mercer.solvers.dual import certified
from mercer.solvers.solution import Stop

SECONDS = 0.5
# 10 % and half a second are promised; a busy machine may add what it likes, but not what an endless fit would.
PATIENCE = 10.0

rng = np.random.default_rng(0)
X = rng.normal(size=(6_000, 8))
LABELS, NUMBERS = rng.integers(3, size=6_000), rng.normal(size=6_000)
HARD = {"tol": 1e-12, "C": 1e4}
ENDLESS = {
    "SVC": (mercer.SVC(**HARD), LABELS),
    "SVC, 12 classes": (mercer.SVC(**HARD), rng.integers(12, size=6_000)),
    "SVC, linear kernel": (mercer.SVC(kernel="linear", **HARD), LABELS),
    "SVC, kernel of NumPy": (mercer.SVC(kernel=Gaussian(gamma=0.1) + Gaussian(gamma=1.0), **HARD), LABELS),
    "SVC, joint": (mercer.SVC(multiclass="crammer-singer", **HARD), LABELS),
    "NuSVC": (mercer.NuSVC(nu=0.5, tol=1e-12), LABELS),
    "SVR": (mercer.SVR(**HARD), NUMBERS),
    "KernelMachineClassifier": (mercer.KernelMachineClassifier(lam=1e-6, tol=1e-14, cache_size=2_000), LABELS),
    "KernelMachineRegressor": (mercer.KernelMachineRegressor(lam=1e-6, tol=1e-14, cache_size=50), NUMBERS),
    "LinearSVC": (mercer.LinearSVC(1e4, tol=1e-300, loss="hinge", solver="dual", max_iter=10**9), LABELS),
    "PegasosSVC": (mercer.PegasosSVC(kernel="rbf", max_iter=10**9, certificate=True), LABELS),
    "RLSRegressor, cg": (mercer.RLSRegressor(1e-12, gamma=5.0, solver="cg"), NUMBERS),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_a_fit_ends_in_time_with_a_certificate(name):
    machine, y = ENDLESS[name]
    machine = clone(machine).set_params(max_time=SECONDS, n_jobs=2)
    begun = time.monotonic()
    with pytest.warns(ConvergenceWarning, match="max_time"):
        machine.fit(X, y)
    assert time.monotonic() - begun < PATIENCE
    assert machine.stop_reason_ == "max_time"
    assert not machine.converged_
    assert machine.certificate_.gap > 0
    assert len(machine.predict(X[:10])) == 10


@pytest.mark.parametrize(
    ("machine", "y"),
    [
        (mercer.RLSRegressor(), NUMBERS),
        (mercer.RLSRegressor(kernel="linear"), NUMBERS),
        (mercer.RLSRegressor(kernel="linear", solver="lsqr"), NUMBERS),
        (mercer.RLSClassifier(), LABELS),
        (mercer.RLSRegressorCV(cache_size=4_000), NUMBERS),
        (mercer.RLSClassifierCV(kernel="linear"), LABELS),
        (mercer.NystromRLS(), NUMBERS),
    ],
)
def test_without_a_solution_there_is_an_error(machine, y):
    machine.set_params(max_time=1e-9)
    before = dict(vars(machine))
    with pytest.raises(TimeoutError, match=r"max_time passed .* solution.*[Rr]aise"):
        machine.fit(X, y)
    assert vars(machine) == before
    small = machine.set_params(max_time=60).fit(X[:300], y[:300])
    assert small.stop_reason_ == "converged"


@pytest.mark.parametrize("machine", [mercer.OneClassSVM(), mercer.SVDD(nu=0.5), mercer.NuSVR()])
def test_a_first_guess_that_cannot_be_certified_in_time_is_an_error(machine, monkeypatch):
    monkeypatch.setattr(certified, "GRACE_SECONDS", 0.0)
    machine.set_params(max_time=1e-3)
    with pytest.raises(TimeoutError, match=r"max_time passed .* Raise max_time"):
        machine.fit(X, NUMBERS)


def test_slow_kernel_values_get_small_blocks():
    """A block of a thousand variables and its proof take seconds of Bessel functions."""
    begun = time.process_time()
    with pytest.warns(ConvergenceWarning, match="max_time"):
        machine = mercer.SVC(kernel=Matern(nu=1.3), max_time=SECONDS, n_jobs=1).fit(X, LABELS > 0)
    assert time.process_time() - begun < 3 * SECONDS  # processor time: others may be busy too
    assert machine.n_iter_ > 0
    assert 0 < len(machine.support_) < 1000
    assert machine.certificate_.gap > 0


def test_the_time_to_merge_samples_counts(monkeypatch):
    monkeypatch.setattr("mercer.estimators.fitting.pipeline.fit.GRACE_SECONDS", 0.0)
    with pytest.raises(TimeoutError, match="reading the samples"):
        mercer.SVC(max_time=1e-9).fit(X, LABELS)


def test_a_decomposition_that_would_end_late_is_not_begun():
    A, sizes = np.zeros((2_000, 1_000)), []

    def takes(seconds):
        def decompose(part):
            sizes.append(part.shape)
            time.sleep(seconds * (len(part) / len(A)) ** 3)

        return decompose

    check_decomposition_time(math.inf, A, takes(1e9))  # without a deadline nothing is timed
    assert not sizes
    check_decomposition_time(time.monotonic() + 60.0, A, takes(1.0))
    with pytest.raises(TimeoutError, match=r"2,000 × 1,000 takes about .* s on this host"):
        check_decomposition_time(time.monotonic() + 1.0, A, takes(30.0))
    assert max(sizes) < (600, 300)


def test_the_time_of_a_certificate_is_known_before_it():
    gram = gram_for(Gaussian(gamma=0.1), X, 10**9, 1)
    assert ProofTime(gram, Stop(1e-3, 10))(np.ones(6_000)) == 0.0  # without a deadline nothing is timed
    proof = ProofTime(gram, Stop(1e-3, 10, deadline=time.monotonic() + 60))
    times = []
    for _ in range(3):
        begun = time.monotonic()
        gram.product(np.ones(6_000))
        times.append(time.monotonic() - begun)
    assert 0.1 * min(times) < proof(np.ones(6_000)) < 30 * max(times)
    proof.record(2.0, np.ones(100))
    assert proof(np.ones(200)) >= 4.0


def test_a_time_limit_ends_calls_of_the_core_and_is_then_forgotten():
    def forever(call):
        while True:
            call()

    with pytest.raises(TimeoutError), _core.TimeLimit(60.0), _core.TimeLimit(0.05):
        forever(lambda: _core.hash_rows(X, 1))
    with pytest.raises(_core.OutOfTime), _core.TimeLimit(0.05), _core.TimeLimit(60.0):  # the first to pass counts
        forever(_core.check_stop)
    with _core.TimeLimit(np.inf):
        _core.check_stop()
    _core.hash_rows(X, 1)


@pytest.mark.parametrize("shape", [(3_000, 40), (1_500, 900), (2_100, 1_300), (5, 0), (0, 4)])
def test_products_in_pieces_are_products(shape):
    A = rng.normal(size=shape)
    G = np.zeros((shape[1], shape[1]))
    add_gram(G, A)
    mirror(G)
    np.testing.assert_allclose(G, A.T @ A, rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(G, G.T)


def test_copies_and_moments_in_pieces_are_the_same():
    Z = (1e3 + rng.normal(size=(40_000, 100))).astype(np.float32)
    rows = rng.permutation(40_000)[:35_000]
    np.testing.assert_array_equal(take(Z, rows), Z[rows])
    mean, spread = moments(Z)
    np.testing.assert_allclose(mean, Z.mean(axis=0, dtype=np.float64), rtol=1e-12)
    np.testing.assert_allclose(spread, Z.std(axis=0, dtype=np.float64), rtol=1e-9)
