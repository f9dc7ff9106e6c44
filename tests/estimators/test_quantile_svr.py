"""QuantileSVR: the fraction below, quantiles of a list of numbers, and the median of scikit-learn.

Problem and reference value: tests/reference/machines.py, tests/test_architecture.py. Certificate: tests/claims.
scikit-learn's checks: tests/scikit_learn/test_sklearn_checks.py. Bad inputs: tests/bad_inputs. Tools: tests/tools.
Order of several quantiles, and weights: tests/estimators/test_machines_agree.py.
Random problems, and its score: tests/claims/test_machine_properties.py, tests/model_selection/test_scores.py.
Leave-one-out: tests/model_selection/paths/test_leave_one_out.py. Units: tests/estimators/fitting/test_units.py.
Intervals: tests/calibration/test_calibrated_regressor.py. Pictures: tests/inspection/displays.
"""

import numpy as np
import pytest
from sklearn import svm

from mercer import QuantileSVR

rng = np.random.default_rng(2)
X = rng.uniform(-2, 2, size=(90, 1))
Y = X[:, 0] + (1.5 + 0.5 * X[:, 0]) * rng.normal(size=90)
TAUS = (0.05, 0.33, 0.5, 0.91)


def test_each_quantile_has_its_fraction_below():
    f = QuantileSVR(TAUS, C=1.0, gamma=0.3, tol=1e-9).fit(X, Y).predict(X)
    for column, tau in zip(f.T, TAUS, strict=True):
        assert (column - 1e-7 > Y).sum() <= tau * len(Y) <= (column + 1e-7 >= Y).sum()


def test_without_features_it_is_the_quantile_of_the_targets():
    """One tenth of 91 targets is no whole number, so that each quantile is one of them."""
    y = rng.normal(size=91)
    f = QuantileSVR((0.1, 0.5, 0.9), kernel="linear", tol=1e-12).fit(np.zeros((91, 1)), y).predict([[0.0]])[0]
    np.testing.assert_allclose(f, np.quantile(y, (0.1, 0.5, 0.9), method="inverted_cdf"), atol=1e-10)


@pytest.mark.parametrize("C", [0.5, 4.0])
def test_the_median_is_scikit_learns_svr_without_a_tube(C):
    """The pinball loss of ½ is half of the absolute error."""
    model = QuantileSVR(0.5, C=C, gamma=0.3, tol=1e-9).fit(X, Y)
    peer = svm.SVR(C=C / 2, epsilon=0.0, gamma=0.3, tol=1e-9).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), peer.predict(X), atol=1e-5)
