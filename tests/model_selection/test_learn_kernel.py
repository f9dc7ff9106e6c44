"""Kernels by gradient search: each criterion as naive loops have it, its derivatives, and what is found."""

import numpy as np
import pytest
from sklearn.base import clone

from mercer import SVC, RLSRegressor, kernel_alignment, learn_kernel
from mercer.estimators.gaussian_process.process import GaussianProcess
from mercer.kernels import Gaussian, Linear
from mercer.model_selection.learn_kernel import LEARN_CRITERIA
from mercer.notes.theory import enclosing_ball

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 3))
Y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=40)
LABELS = np.where(Y > 0, 1, -1)
WEIGHT = rng.integers(1, 4, size=40).astype(float)
KERNEL = 0.5 * Gaussian(gamma=0.3) + Linear()


def of(criterion):
    return LABELS if criterion == "radius-margin" else Y


def at(kernel, criterion, **options):
    """The criterion's value, without a step that would change it."""
    return learn_kernel(X, of(criterion), kernel=kernel, criterion=criterion, sample_weight=WEIGHT, **options).start


@pytest.mark.parametrize("bias", [True, False])
def test_the_leave_one_out_error_is_that_of_n_fits(bias):
    wrong = []
    for i in range(40):
        rest = np.arange(40) != i
        model = RLSRegressor(0.2, kernel=KERNEL, bias=bias).fit(X[rest], Y[rest], sample_weight=WEIGHT[rest])
        wrong.append(Y[i] - model.predict(X[[i]])[0])
    expected = WEIGHT @ np.square(wrong) / WEIGHT.sum()
    assert at(KERNEL, "loo", lam=0.2, bias=bias) == pytest.approx(expected, rel=1e-8)


def test_radius_and_margin_are_those_of_the_machine():
    found = learn_kernel(X, LABELS, kernel=KERNEL, criterion="radius-margin", C=2.0, sample_weight=WEIGHT)
    machine = SVC(slack="l2", C=2.0, kernel=KERNEL, tol=1e-6).fit(X, LABELS, sample_weight=WEIGHT)
    K = KERNEL(X) + np.diag(1 / (2.0 * WEIGHT))
    ball = enclosing_ball(K, kernel="precomputed")
    assert found.start == pytest.approx(ball.radius**2 * 2 * machine.certificate_.dual, rel=1e-6)
    assert found.value < found.start


def naive_alignment(K, T, p):
    H = np.eye(len(p)) - np.outer(np.ones(len(p)), p)
    K, T = H @ K @ H.T, H @ T @ H.T

    def inner(A, B):
        return sum(p[i] * p[j] * A[i, j] * B[i, j] for i in range(len(p)) for j in range(len(p)))

    return inner(K, T) / np.sqrt(inner(K, K) * inner(T, T))


def test_alignment_is_the_naive_one():
    K, p = KERNEL(X), WEIGHT / WEIGHT.sum()
    for y in (Y, LABELS):
        expected = naive_alignment(K, np.outer(y, y), p)
        assert kernel_alignment(X, y, kernel=KERNEL, sample_weight=WEIGHT) == pytest.approx(expected, rel=1e-10)
        assert kernel_alignment(K, y, kernel="precomputed", sample_weight=WEIGHT) == pytest.approx(expected, rel=1e-10)
    three = np.digitize(Y, [-0.4, 0.4])
    Z = np.where(three[:, None] == np.arange(3), 1.0, -1.0)
    assert kernel_alignment(X, three, kernel=KERNEL) == pytest.approx(naive_alignment(K, Z @ Z.T, np.full(40, 1 / 40)))
    assert kernel_alignment(np.outer(Y, Y), Y, kernel="precomputed") == pytest.approx(1.0)
    plain = np.sum(K * np.outer(LABELS, LABELS)) / np.linalg.norm(K) / 40
    assert kernel_alignment(X, LABELS, kernel=KERNEL, centred=False) == pytest.approx(plain)
    with pytest.raises(ValueError, match="nothing to align"):
        kernel_alignment(X, np.full(40, 0.5), kernel=KERNEL)


@pytest.mark.parametrize("criterion", LEARN_CRITERIA)
@pytest.mark.parametrize("bias", [True, False])
def test_no_neighbour_is_better_than_what_is_found(criterion, bias):
    """Which a wrong derivative would not lead to."""
    if bias and criterion in ("radius-margin", "alignment"):
        pytest.skip("it has no such parameter")
    begin = 0.5 * Gaussian(gamma=1.0)
    options = {"criterion": criterion, "bias": bias, "sample_weight": WEIGHT}
    names = ["kernel__gamma", *({"radius-margin": ["C"], "alignment": []}.get(criterion, ["lam"]))]
    found = learn_kernel(X, of(criterion), kernel=begin, names=names, **options)
    better = np.greater if criterion in ("likelihood", "alignment") else np.less
    assert better(found.value, found.start)
    for name in names:
        for factor in (0.98, 1.02):
            kernel, numbers = clone(found.kernel), dict(found.numbers)
            if name in numbers:
                numbers[name] *= factor
            else:
                kernel.set_params(**{name: factor * kernel.get_params()[name]})
            neighbour = learn_kernel(
                X, of(criterion), kernel=kernel, names=names, max_iter=1, **numbers, **options
            ).start
            assert not better(neighbour, found.value + 1e-7 * abs(found.value) * (1 if better is np.greater else -1))


def test_the_likelihood_is_the_processs_and_what_is_wrong_says_so():
    found = learn_kernel(X, Y, kernel=Gaussian(sigma=0.5), lam=1.0)
    best = GaussianProcess(X, Y[:, None], np.ones(len(Y)), kernel=Gaussian(sigma=0.5), lam=1.0).most_likely(None, 100)
    assert found.value == pytest.approx(best.log_likelihood, rel=1e-6)
    assert found.numbers["lam"] == pytest.approx(best.lam, rel=1e-3)
    for options, message in (
        ({"kernel": "precomputed"}, "no parameters to learn"),
        ({"criterion": "luck"}, "criterion='luck' must be one of"),
        ({"names": ["degree"]}, "must be some of"),
        ({"lam": -1.0}, "lam=-1.0"),
        ({"sample_weight": np.arange(40)}, "weight 0"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            learn_kernel(**{"kernel": "rbf", "X": X, "y": Y, **options})
