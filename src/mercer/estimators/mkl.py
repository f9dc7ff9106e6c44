"""Multiple kernel learning: support vector machines that learn the weights of a sum of kernels."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from mercer.estimators.fitting.families.kernel_weights import KernelWeights
from mercer.estimators.fitting.families.pairwise import JOINT
from mercer.estimators.svc import SVC
from mercer.estimators.svr import SVR
from mercer.runtime.shared_docs import shared_docs


@shared_docs
@dataclass(eq=False, repr=False)
class MKLClassifier(KernelWeights, SVC):
    """Support vector classification with a weighted sum of kernels, whose weights are learnt with it.

    Minimises ½Σ_m‖w_m‖²/θ_m + Σ C_i ξ_i over w, b and weights θ ≥ 0 with ‖(v_mθ_m)‖_p ≤ 1: the machine is `SVC` with
    the kernel Σ θ_m k_m. The certificate is that of this problem, weights included. Several classes share one vector of
    weights, which is best for the sum of all pairs' objectives (or of all classes' against the rest).

    Parameters
    ----------
    C : float, default=1.0
        Price of slack. A sample's own C_i is C times its weight times its class's weight.
    %(several kernels)s
    %(class_weight)s
    slack, probability, decision_function_shape, break_ties : str, bool, str, bool
        As in `SVC`.
    bias : True
        f has a free b; nothing else is offered here.
    %(theta)s
    multiclass : {"ovo", "ovr"}, default="ovo"
        Several classes by machines for each pair, or for each class against the rest; all with the same weights.
    %(dual parameters)s

    Attributes
    ----------
    %(weights attributes)s
    %(dual attributes)s
    classes_, class_weight_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from mercer import MKLClassifier
    >>> from mercer.kernels import Gaussian
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = MKLClassifier(kernel=["linear", Gaussian(gamma=0.01), Gaussian(gamma=0.1)]).fit(scale(X), y)
    >>> (model.weights_ * model.scales_).round(1).tolist()
    [0.1, 0.3, 0.7]
    >>> model.certificate_.kkt["kernel weights: optimality"] < 1e-3
    True
    """

    _: KW_ONLY
    kernel: Any = ("linear", "poly", "rbf")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self._hard:
            raise ValueError("C=inf: kernel weights are learnt with a finite price of slack; give a finite C")
        if self.multiclass in JOINT:
            raise ValueError(
                f"multiclass={self.multiclass!r} is one problem over all classes; kernel weights are learnt with 'ovo' "
                "or 'ovr'"
            )


@shared_docs
@dataclass(eq=False, repr=False)
class MKLRegressor(KernelWeights, SVR):
    """Support vector regression with a weighted sum of kernels, whose weights are learnt with it.

    Minimises ½Σ_m‖w_m‖²/θ_m + Σ C_i loss(y_i − f(x_i)) over w, b and weights θ ≥ 0 with ‖(v_mθ_m)‖_p ≤ 1: the machine
    is `SVR` with the kernel Σ θ_m k_m. The certificate is that of this problem, weights included.

    Parameters
    ----------
    C : float, default=1.0
        Price of errors. A sample's own C_i is C times its weight.
    %(several kernels)s
    loss, epsilon, delta, tau : str, float, float, float
        As in `SVR`.
    bias : True
        f has a free b; nothing else is offered here.
    %(theta)s
    %(dual parameters)s

    Attributes
    ----------
    %(weights attributes)s
    %(dual attributes)s

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import MKLRegressor
    >>> from mercer.kernels import Gaussian, Linear
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.1 * X[:, 0]
    >>> model = MKLRegressor(C=10, kernel=[Linear(), Gaussian(sigma=1.0), Gaussian(sigma=0.01)], gap_tol=1e-6).fit(X, y)
    >>> (model.weights_ * model.scales_).round(2).tolist()
    [0.0, 1.0, 0.0]
    """

    _: KW_ONLY
    kernel: Any = ("linear", "poly", "rbf")
