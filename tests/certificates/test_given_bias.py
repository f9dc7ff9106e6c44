"""The proof of coefficients that are only known up to a share of each, at a bias of the caller's own."""

import numpy as np

from mercer.certificates.given_bias import certify_with_bias
from mercer.kernels import Gaussian
from mercer.places import gram_for
from mercer.problems.classification import soft_margin


def test_the_primal_value_covers_coefficients_that_differ_by_a_share():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 2)), np.resize([1.0, -1.0], 12)
    kernel, C = Gaussian(gamma=0.5), np.full(12, 2.0)
    K, problem = kernel(X), soft_margin(y, C)
    beta = problem.nearest_feasible(y * rng.uniform(0.0, 2.0, size=12))
    share, bias = 0.05, np.array([0.3])
    bound = certify_with_bias(problem, gram_for(kernel, X).proof, beta, bias, (beta,), share).primal
    values = []
    for _ in range(200):
        other = beta * (1 + share * rng.choice([-1.0, 1.0], size=12))
        f = K @ other + 0.3
        values.append(0.5 * other @ K @ other + np.sum(C * np.maximum(0.0, 1 - y * f)))
    assert bound >= max(values)
