"""Multiple kernel learning: support vector machines that also learn the weights of a sum of kernels."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from mercer.estimators.fitting.families.kernel_weights import MultipleKernelMachine
from mercer.estimators.fitting.families.pairwise import JOINT
from mercer.estimators.svc import SVC
from mercer.estimators.svr import SVR
from mercer.runtime.shared_docs import shared_docs


@shared_docs
@dataclass(eq=False, repr=False)
class MKLClassifier(MultipleKernelMachine, SVC):
    """Multiple kernel learning for classification, with a certificate of optimality.

    Minimises ½Σ_m‖w_m‖²/θ_m + Σ C_i ξ_i over w, b and kernel weights θ ≥ 0 with ‖(v_mθ_m)‖_p ≤ 1: the machine is `SVC`
    with the kernel Σ θ_m k_m. The certificate covers the whole problem, kernel weights included. Several classes share
    one vector of kernel weights, which minimises the sum of the objectives of all pairs (or of all classes against the
    rest).

    Parameters
    ----------
    C : float, default=1.0
        Penalty for slack. The penalty C_i of a sample is C times its weight times the weight of its class.
    %(several kernels)s
    %(class_weight)s
    slack : {"l1", "l2"}, default="l1"
        Form of the slack term: C_i ξ_i, or ½ C_i ξ_i².
    probability : bool, default=False
        Must be False. For probabilities use `calibrate` after `fit`, or `KernelMachine(loss="logistic")`.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        Shape of `decision_function` with several classes and multiclass="ovo".
    break_ties : bool, default=False
        Whether `predict` breaks ties of the vote by the decision values, as in scikit-learn.
    bias : True
        Must be True: the intercept b is not penalised.
    %(theta)s
    multiclass : {"ovo", "ovr"}, default="ovo"
        Strategy for several classes: a machine for each pair of classes, or for each class against the rest. All share
        the kernel weights.
    %(dual parameters)s

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Class labels.
    class_weight_ : array of shape (n_classes,)
        Factor on C for each class.
    %(weights attributes)s
    %(dual attributes)s

    See Also
    --------
    MKLRegressor : The corresponding regressor.
    SVC : Support vector classification with a given kernel.

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
            raise ValueError("C=inf: kernel weights can only be learnt with slack; give a finite C")
        if self.multiclass in JOINT:
            raise ValueError(
                f"multiclass={self.multiclass!r} is one problem over all classes; kernel weights are learnt with 'ovo' "
                "or 'ovr'"
            )


@shared_docs
@dataclass(eq=False, repr=False)
class MKLRegressor(MultipleKernelMachine, SVR):
    """Multiple kernel learning for regression, with a certificate of optimality.

    Minimises ½Σ_m‖w_m‖²/θ_m + Σ C_i loss(y_i − f(x_i)) over w, b and kernel weights θ ≥ 0 with ‖(v_mθ_m)‖_p ≤ 1: the
    machine is `SVR` with the kernel Σ θ_m k_m. The certificate covers the whole problem, kernel weights included.

    Parameters
    ----------
    C : float, default=1.0
        Penalty for errors. The penalty C_i of a sample is C times its weight.
    %(several kernels)s
    loss : str, default="epsilon_insensitive"
        Loss of the residual: "epsilon_insensitive", "squared_epsilon_insensitive", "huber" or "expectile"; see `SVR`.
    epsilon : float, default=0.1
        Half-width ε of the tube within which errors are not penalised.
    delta : float, default=1.0
        Threshold δ of the Huber loss.
    tau : float, default=0.5
        Level τ of the expectile loss.
    bias : True
        Must be True: the intercept b is not penalised.
    %(theta)s
    %(dual parameters)s

    Attributes
    ----------
    %(weights attributes)s
    %(dual attributes)s

    See Also
    --------
    MKLClassifier : The corresponding classifier.
    SVR : Support vector regression with a given kernel.

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
