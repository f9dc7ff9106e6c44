"""RLSClassifierCV: mistakes of fits without each sample, counted with NumPy.

Problem and reference value: tests/reference/machines.py, tests/test_architecture.py. Certificate: tests/claims.
scikit-learn's checks: tests/scikit_learn/test_sklearn_checks.py. Bad inputs: tests/bad_inputs. Tools: tests/tools.
Refits, several classes, and grids of kernels: tests/estimators/test_rls_cv.py. Machine at any λ:
tests/estimators/test_ridge_path_at.py. Class weights: tests/estimators/test_rls.py.
Every kernel and kind of data: tests/estimators/test_rls_matrix.py. Time limit: tests/behaviour/test_max_time.py.
"""

import numpy as np

from mercer import RLSClassifierCV
from reference.problems import gram_matrix

rng = np.random.default_rng(10)
X = rng.normal(size=(50, 2))
Y = (X[:, 0] * X[:, 1] + 0.4 * rng.normal(size=50) > 0).astype(int)
K, SIGNS, LAMS = gram_matrix("rbf", X, gamma=1.0), np.where(Y == 1, 1.0, -1.0), np.geomspace(1e-3, 1e2, 11)


def values_without_each_sample(lam):
    f = np.empty(50)
    for i in range(50):
        rest = np.arange(50) != i
        f[i] = K[i, rest] @ np.linalg.solve(K[np.ix_(rest, rest)] + lam * np.eye(49), SIGNS[rest])
    return f


def test_the_chosen_lambda_makes_the_fewest_mistakes():
    """The largest, where several make as few."""
    model = RLSClassifierCV(LAMS, gamma=1.0, bias=False).fit(X, Y)
    mistakes = np.array([((values_without_each_sample(lam) > 0) != Y).sum() for lam in LAMS])
    assert mistakes.min() < mistakes.max()
    assert model.lam_ == LAMS[mistakes == mistakes.min()].max()


def test_residuals_are_those_of_fits_without_each_sample():
    model = RLSClassifierCV(LAMS, gamma=1.0, bias=False).fit(X, Y)
    errors = SIGNS - values_without_each_sample(model.lam_)
    np.testing.assert_allclose(np.abs(model.loo_residuals_[:, 0]), np.abs(errors), atol=1e-8)
