"""λ in other people's conventions, in one place.

mercer minimises Σ w_i (y_i − f(x_i))² + λ‖f‖²; with n = Σ w_i:

| library | minimises | λ here |
|---|---|---|
| scikit-learn, KernelRidge and Ridge | Σ (y − f)² + alpha‖f‖² | alpha |
| GURLS, and (1/n)Σ (y − f)² + λ‖f‖² of the textbooks | (K + nλI)c = y | nλ |
| LS-SVM | ½‖w‖² + (gamma/2)Σ e² | 1/gamma |
"""

from __future__ import annotations

from typing import Any

import numpy as np


def lam_from_alpha(alpha: Any) -> Any:
    """λ for scikit-learn's KernelRidge(alpha) or Ridge(alpha).

    Parameters
    ----------
    alpha : float or array
        scikit-learn's.
    """
    return alpha


def alpha_from_lam(lam: Any) -> Any:
    """scikit-learn's alpha for λ.

    Parameters
    ----------
    lam : float or array
        λ of mercer.
    """
    return lam


def lam_from_gurls(lam: Any, n: float) -> Any:
    """λ for GURLS's, which is per sample.

    Parameters
    ----------
    lam : float or array
        GURLS's λ.
    n : float
        The number of samples, or the sum of their weights.
    """
    return np.multiply(lam, n)[()]


def gurls_from_lam(lam: Any, n: float) -> Any:
    """GURLS's λ for ours.

    Parameters
    ----------
    lam : float or array
        λ of mercer.
    n : float
        The number of samples, or the sum of their weights.
    """
    return np.divide(lam, n)[()]


def lam_from_ls_svm(gamma: Any) -> Any:
    """λ for the gamma of least-squares support vector machines.

    Parameters
    ----------
    gamma : float or array
        The LS-SVM's.
    """
    return np.divide(1.0, gamma)[()]


def ls_svm_from_lam(lam: Any) -> Any:
    """The gamma of least-squares support vector machines for λ.

    Parameters
    ----------
    lam : float or array
        λ of mercer.
    """
    return np.divide(1.0, lam)[()]
