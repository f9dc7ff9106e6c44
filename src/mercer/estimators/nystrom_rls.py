"""Nyström regularised least squares, for data whose kernel matrix does not fit into memory."""

from __future__ import annotations

from mercer.estimators.fitting.families.landmark_machine import LandmarkMachine
from mercer.estimators.fitting.families.targets import SeveralOutputs, SignClassifier, StreamLabels, StreamNumbers
from mercer.estimators.fitting.mixins import RegressorMethods
from mercer.runtime.shared_docs import shared_docs


@shared_docs
class NystromRLS(RegressorMethods, SeveralOutputs, LandmarkMachine):
    """Kernel ridge regression on landmarks (Nyström), for millions of samples.

    Minimises Σ w_i (y_i − f(x_i))² + λ‖f‖² over f(x) = Σ_j c_j k(z_j, x) + b with M landmarks z_j, exactly, for one or
    several outputs; the kernel matrix between samples and landmarks is never stored. If all samples are landmarks, the
    result is that of kernel ridge regression.

    Parameters
    ----------
    %(landmark parameters)s

    Attributes
    ----------
    %(landmark attributes)s

    See Also
    --------
    NystromRLSClassifier : The corresponding classifier.
    RLSRegressor : Exact kernel ridge regression.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import NystromRLS
    >>> X = np.linspace(-3, 3, 2000)[:, None]
    >>> y = np.sinc(X[:, 0])
    >>> model = NystromRLS(lam=1e-3, n_landmarks=50, random_state=0).fit(X, y)
    >>> round(model.score(X, y), 3)
    1.0
    >>> model.certificate_.relative_gap <= 1e-3
    True
    """

    _stream_targets = StreamNumbers


@shared_docs
class NystromRLSClassifier(SignClassifier, LandmarkMachine):
    """Kernel ridge classification on landmarks (Nyström), one class against the rest.

    Minimises Σ w_i (y_i − f(x_i))² + λ‖f‖² with y_i = ±1 over f(x) = Σ_j c_j k(z_j, x) + b with M landmarks z_j. For
    two classes the sign of a single f decides; for more there is an f for each class, and the largest decides.

    Parameters
    ----------
    %(landmark parameters)s

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Class labels.
    %(landmark attributes)s

    See Also
    --------
    NystromRLS : The corresponding regressor.
    RLSClassifier : Exact kernel ridge classification.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mercer import NystromRLSClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = NystromRLSClassifier(lam=0.1, n_landmarks=300, gamma=1e-3, random_state=0).fit(X[:1000], y[:1000])
    >>> model.score(X[1000:], y[1000:]) > 0.95
    True
    """

    _stream_targets = StreamLabels
