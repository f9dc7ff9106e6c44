"""Regularized least squares on landmarks, for more samples than a kernel matrix has room for."""

from __future__ import annotations

from mercer.estimators.fitting.families.landmark_machine import LandmarkMachine
from mercer.estimators.fitting.families.targets import SeveralOutputs, SignClassifier, StreamLabels, StreamNumbers
from mercer.estimators.fitting.mixins import RegressorMethods
from mercer.runtime.shared_docs import shared_docs


@shared_docs
class NystromRLS(RegressorMethods, SeveralOutputs, LandmarkMachine):
    """Regularized least squares on landmarks: kernel ridge regression for millions of samples.

    Minimises Σ w_i (y_i − f(x_i))² + λ‖f‖² over f(x) = Σ_j c_j k(z_j, x) + b with M landmarks z_j, exactly, for one or
    several outputs; the kernel matrix between samples and landmarks is never stored. With all samples as landmarks this
    is kernel ridge regression itself.

    Parameters
    ----------
    %(landmark parameters)s

    Attributes
    ----------
    %(landmark attributes)s

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
    """Regularized least squares classification on landmarks, one class against all others.

    Minimises Σ w_i (y_i − f(x_i))² + λ‖f‖² with y_i = ±1 over f(x) = Σ_j c_j k(z_j, x) + b with M landmarks z_j: for
    two classes one f, whose sign decides; for more, one per class, of which the largest decides.

    Parameters
    ----------
    %(landmark parameters)s

    Attributes
    ----------
    %(landmark attributes)s
    classes_ : array of shape (n_classes,)

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
