"""NuSVR: what ν bounds, and the ε that it finds, given to scikit-learn's SVR.

Problem and reference value: tests/reference/machines.py, tests/test_architecture.py. Certificate: tests/claims.
scikit-learn's checks: tests/scikit_learn/test_sklearn_checks.py. Bad inputs: tests/bad_inputs. Tools: tests/tools.
Agreement with scikit-learn's NuSVR, and weights: tests/estimators/test_machines_agree.py.
ν for random problems: tests/claims/test_machine_properties.py. Units: tests/estimators/fitting/test_units.py.
A C that does not suit y: tests/estimators/fitting/test_price_and_scale.py.
Intervals: tests/calibration/test_calibrated_regressor.py. Files: tests/files/export/test_onnx_machines.py.
"""

import numpy as np
import pytest
from sklearn import svm

from mercer import NuSVR

rng = np.random.default_rng(1)
X = rng.normal(size=(70, 2))
Y = np.cos(2 * X[:, 0]) + 0.3 * rng.normal(size=70)


@pytest.mark.parametrize("nu", [0.13, 0.4, 0.77])
def test_nu_bounds_errors_and_support_vectors(nu):
    model = NuSVR(nu, C=2.0, gamma=0.4, tol=1e-9).fit(X, Y)
    outside = np.abs(Y - model.predict(X)) > model.epsilon_ + 1e-7
    assert outside.sum() <= nu * len(Y) <= model.n_support_[0]


@pytest.mark.parametrize("nu", [0.13, 0.4, 0.77])
def test_scikit_learns_svr_with_its_epsilon_is_the_same_function(nu):
    model = NuSVR(nu, C=2.0, gamma=0.4, tol=1e-9).fit(X, Y)
    peer = svm.SVR(C=2.0, epsilon=model.epsilon_, gamma=0.4, tol=1e-9).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), peer.predict(X), atol=1e-6)


def test_nu_of_one_leaves_no_tube():
    """As many samples outside as there are: ε = 0, and f is that of the absolute error."""
    model = NuSVR(1.0, C=2.0, gamma=0.4, tol=1e-9).fit(X, Y)
    assert model.epsilon_ == pytest.approx(0.0, abs=1e-7)
    peer = svm.SVR(C=2.0, epsilon=0.0, gamma=0.4, tol=1e-9).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), peer.predict(X), atol=1e-5)
